"""Pages and sentences about releases: report, series, utility and comparison pages."""

from leastnoise._pages._comparison_page import (
    COMPARISON_CSV,
    COMPARISON_JSON,
    catalogue_of,
    comparison_page_file,
    list_page_files,
    list_page_languages,
    list_page_notes,
    render_comparison_page,
)
from leastnoise._pages._comparison_suppression import (
    ComparisonResult,
    releases_of,
    without_suppressed,
)
from leastnoise._pages._comparison_view import ComparisonView, shorten_titles
from leastnoise._pages._display_sections import describe_draft, describe_plan, describe_release
from leastnoise._pages._guard_shares import estimate_cut_share
from leastnoise._pages._report import (
    MOST_PAGE_ROWS,
    MOST_PICTURES,
    MOST_SHORTENED_ROWS,
    MOST_TABLE_ROWS,
    collect_contents,
    render_report,
    report_file,
)
from leastnoise._pages._risk import guessing_chance
from leastnoise._pages._sentences import (
    describe_answers,
    describe_attribute,
    describe_cut_rows,
    describe_cuts,
    describe_definition,
    describe_dropped_rows,
    describe_earlier,
    describe_guard_counts,
    describe_guessing_chance,
    describe_intervals,
    describe_large_table,
    describe_measure,
    describe_neighbours,
    describe_optional_columns,
    describe_promise,
    describe_risk,
    describe_row_limit,
    describe_row_limit_of_answers,
    describe_second_table,
    describe_survey,
    dropping_attributes,
    error_over_bound,
    format_budget,
    format_cost,
    format_public_facts,
    format_ratio,
    has_weights,
    is_weighted,
    keys_of_parts,
    list_answer_notices,
    list_clipped_values,
    list_dropped_rows,
    list_file_notices,
    list_further_notices,
    list_sum_contributions,
    list_uncovered_errors,
    name_paid_unit,
    name_protected_unit,
    published_part,
)
from leastnoise._pages._series_page import write_series_page
from leastnoise._pages._utility_page import render_utility_page, utility_file
