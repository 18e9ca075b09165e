"""Answers with error bars, the manifest and the report of a release; written whole or not at all."""

from leastnoise.release._directory import Draft, check_target, draft
from leastnoise.release._extras import check_columns, table_place
from leastnoise.release._large import written
from leastnoise.release._release import Release, build
from leastnoise.release._tables import Table, Tables
from leastnoise.release._words import notices
from leastnoise.release._writing import fill_draft, read_release, write

__all__ = [
    "Draft",
    "Release",
    "Table",
    "Tables",
    "build",
    "check_columns",
    "check_target",
    "draft",
    "fill_draft",
    "notices",
    "read_release",
    "table_place",
    "write",
    "written",
]
