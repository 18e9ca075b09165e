"""Answers with error bars, the manifest and the report of a release; written whole or not at all."""

from leastnoise._release._directory import Draft, check_target, draft, sha256
from leastnoise._release._extras import check_columns, table_place
from leastnoise._release._large import written
from leastnoise._release._manifest import FORMAT
from leastnoise._release._release import Release, build
from leastnoise._release._tables import Table, Tables
from leastnoise._release._texts import checked_language, texts
from leastnoise._release._words import goodness, guard_words, notices
from leastnoise._release._writing import fill_draft, write

__all__ = [
    "FORMAT",
    "Draft",
    "Release",
    "Table",
    "Tables",
    "build",
    "check_columns",
    "check_target",
    "checked_language",
    "draft",
    "fill_draft",
    "goodness",
    "guard_words",
    "notices",
    "sha256",
    "table_place",
    "texts",
    "write",
    "written",
]
