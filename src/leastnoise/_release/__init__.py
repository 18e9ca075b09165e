"""Answers with error bars, the manifest and the report of a release.

Written atomically.
"""

from leastnoise._release._directory import (
    COLUMN,
    LIST,
    Draft,
    FoundCategories,
    check_target,
    draft,
    holds_categories,
    read_categories,
    read_categories_manifest,
    sha256,
    words,
    write_categories,
)
from leastnoise._release._exports import EXPORTS, FILL_IN, Published
from leastnoise._release._manifest import (
    Manifest,
    Payment,
    Unit,
    in_markdown,
    markdown_text,
    read_manifest,
)
from leastnoise._release._options import (
    Options,
    check_formats,
    rounding_words,
    table_position,
    written,
)
from leastnoise._release._records import make_records
from leastnoise._release._release import Release, build, check_options
from leastnoise._release._report import write_series_page
from leastnoise._release._sentences import (
    budget_words,
    goodness,
    guard_words,
    guessing_words,
    left_out_words,
    notices,
    notices_of_all,
    stated_words,
    sums_words,
)
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import Rounded, Table, Tables, published
from leastnoise._release._texts import (
    ENGLISH,
    LANGUAGES,
    TEMPLATES,
    Texts,
    picture_of,
    statistic_words,
    table_words,
    templates,
    texts,
)
from leastnoise._release._writing import (
    check_records_file,
    fill_draft,
    finishing_seconds,
    write_records,
    write_rounded,
)
