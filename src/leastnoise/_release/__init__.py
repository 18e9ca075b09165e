"""Answers with error bars, the manifest and the report of a release.

A release is written atomically.
"""

from leastnoise._release._category_files import (
    CATEGORY_COLUMN,
    CATEGORY_FILE,
    FoundCategories,
    describe_category_search,
    describe_search_chances,
    holds_categories,
    read_categories,
    read_categories_manifest,
    write_categories,
)
from leastnoise._release._csv_files import make_inert, restore_inert
from leastnoise._release._describe import (
    describe_draft,
    describe_plan,
    describe_release,
)
from leastnoise._release._directory import (
    Draft,
    check_target,
    lock_output,
    open_draft,
    open_optional_draft,
    remove_dead_drafts,
    sha256,
    sync_to_disk,
)
from leastnoise._release._exports import EXPORTS, REVIEW
from leastnoise._release._found_bounds import (
    FoundBounds,
    describe_bounds_search,
    describe_found_bounds,
    holds_bounds,
    read_bounds,
    read_bounds_manifest,
    write_bounds,
)
from leastnoise._release._guard_shares import estimate_cut_share
from leastnoise._release._json_records import REQUIRED, flat, read_record, write_record
from leastnoise._release._manifest import Manifest, read_manifest
from leastnoise._release._manifest_of_release import check_manifest, check_table_facts
from leastnoise._release._metadata import FILL_IN, FILL_IN_ADDRESS, Publication
from leastnoise._release._names import NumberFormat, capitalize, is_translated
from leastnoise._release._observation import OBSERVATION_FILE
from leastnoise._release._options import (
    FORMATS,
    MOST_TABLES,
    Options,
    check_formats,
    describe_rounding,
    display_texts,
    find_table_or_groups,
    find_table_position,
    name_survey_tables,
    product_rounding,
    resolve_names,
    tables_to_write,
)
from leastnoise._release._publication import PublicationTable
from leastnoise._release._receipt import (
    NO_RECEIPT,
    AmountsOfTotal,
    GuardCounts,
    Payment,
    ReceiptFacts,
    SearchFacts,
    SecondTable,
)
from leastnoise._release._records import Records, make_records
from leastnoise._release._release import (
    Release,
    build_release,
    check_options,
    with_labels_in,
    with_table_ids,
)
from leastnoise._release._report import collect_contents, render_report
from leastnoise._release._risk import guessing_chance
from leastnoise._release._sentences import (
    describe_answers,
    describe_attribute,
    describe_cut_rows,
    describe_definition,
    describe_earlier,
    describe_guard_counts,
    describe_guessing_chance,
    describe_measure,
    describe_promise,
    describe_risk,
    describe_row_limit,
    error_over_bound,
    format_budget,
    format_public_facts,
    format_ratio,
    list_answer_notices,
    list_clipped_values,
    list_dropped_rows,
    list_file_notices,
    list_further_notices,
    list_sum_contributions,
    list_uncovered_errors,
    published_part,
)
from leastnoise._release._series_page import write_series_page
from leastnoise._release._sql_answers import answer_statement
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import RoundedTable, Table, Tables, convert_to_amounts, round_table
from leastnoise._release._texts import (
    ENGLISH,
    TEMPLATES,
    Catalogue,
    attribute_heading,
    key_headings,
    list_language_names,
    load_catalogue,
    load_templates,
    make_picture,
    name_attribute,
    name_measure,
    name_quantity,
    name_rows,
    name_summed,
    statistic_title,
    table_format,
    table_title,
    unit_of_sums,
)
from leastnoise._release._translations import LANGUAGES, LOCALES, list_sentences
from leastnoise._release._utility_page import render_utility_page, utility_file
from leastnoise._release._writing import (
    WRITERS,
    check_records_file,
    fill_draft,
    finishing_seconds,
    write_records,
    write_rounded,
)
