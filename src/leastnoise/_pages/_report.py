"""The report: one HTML page for readers of a release.

The page shows a chart and the cells of every table, and loads nothing from the network.
"""

import base64
import hashlib
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from leastnoise._charts import (
    CHARTS_BY_NAME,
    Picture,
    choose_chart,
    count_certain_largest,
    draw_chart,
    find_largest,
    format_digits,
    has_marked_intervals,
    render_svg,
)
from leastnoise._error import measured_multiplier, noise_name
from leastnoise._facts import list_facts
from leastnoise._frames import Columns
from leastnoise._pages import _sentences as sentences
from leastnoise._pages._display_sections import describe_release
from leastnoise._plan import LinearPlan, SeriesPlan, versions
from leastnoise._release import (
    AnswerTable,
    FlagRule,
    Options,
    Release,
    SamplingErrors,
    SearchFacts,
    StatisticTable,
    TableEntry,
    convert_to_amounts,
    display_texts,
    format_interval,
    largest_rounding_change,
    product_rounding,
    statement_path,
    write_record,
)
from leastnoise._texts import (
    TEMPLATES,
    Catalogue,
    capitalize,
    fill_template,
    key_headings,
    load_catalogue,
    name_attribute,
    name_counted_or_summed,
    name_measure,
    name_quantity,
    name_quantity_and_unit,
    name_rows,
    name_unit,
    name_with_row_limit,
    name_with_weight,
    statistic_title,
    table_format,
    table_title,
    unit_of_statistic,
    unit_of_sums,
)
from leastnoise._trusted.check.arrays import Array, FloatArray, IntArray
from leastnoise._workload import OutputColumn, Product, Statement, level_names

MOST_PAGE_ROWS = 60_000  # rows of HTML on the page, which a browser opens in a second
MOST_TABLE_ROWS = 20_000  # maximum number of rows of a table that the page shows completely
MOST_SHORTENED_ROWS = 500  # rows of a table that is not shown completely
MOST_PICTURES = 100  # limits the size of a report and its time; a choice of layout
# Cells in all pictures together. After this number, pictures show only the largest cells of a
# table.
MOST_MARKS = 20_000
MOST_PICTURE_BYTES = 5_000_000  # size of all pictures together
_LARGEST_BARS = 20  # bars of a table that is too large to draw completely
_MOST_OPEN_ROWS = 100  # rows of a table that are visible when the page opens
MOST_RULES = 40
MOST_INDEX_ROWS = 5000
MOST_MAIN_ERRORS = 5
_MOST_LISTED_NAMES = 4
_LEAST_ROUNDED_MARGIN = 1000  # three digits of a smaller margin keep all digits before the point
_WHOLE_COLUMNS = ("answer_integer", "answer_top_down")
_OBJECTIVES = ("worst", "relative", "least")  # the objectives of plans other than the total error


def render_report(release: Release, content: "ReportContent") -> str:
    """Return the report of a release as HTML, in the language of its content."""
    catalogue = content.catalogue
    statistics = [
        _summarize_statistic(release, statistic, catalogue) for statistic in release.statistics
    ]
    statistics_with_margins = [summary for summary in statistics if not math.isnan(summary.margin)]
    parts = sentences.keys_of_parts(release.plan.workload)
    tables_with_margins = sorted(
        (summary for summary in content.summaries if not math.isnan(summary.margin)),
        key=lambda summary: summary.product.table_key in parts,
    )
    first_warnings = sentences.list_first_warnings(release, catalogue)
    notices = [
        notice
        for notice in _list_headline_notices(release, catalogue)
        if notice not in first_warnings
    ]
    rules = _describe_rules(release, catalogue)
    more_rules = ""
    if len(rules) > MOST_RULES:
        more_rules = catalogue.say("rows_more", count=MOST_RULES, all=len(rules))
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    attributes = (product.attributes for product in release.workload if product.attributes)
    return fill_template(
        "report.html",
        t=catalogue,
        release=release,
        sentences=sentences,
        versions=versions(),
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        title=_make_title(release, catalogue),
        warning=_describe_seed(release, catalogue),
        source=_format_source(release, catalogue),
        first_warnings=first_warnings,
        notices=notices,
        description=_describe_workload(
            release, [summary.quoted_name for summary in statistics], catalogue
        ),
        protected_unit=describe_protected_unit(release, catalogue),
        main_errors=_describe_main_errors(statistics_with_margins, tables_with_margins, parts),
        row_limit_note=_describe_row_limit(release, catalogue),
        ratings=_rate_tables(release, [*statistics_with_margins, *tables_with_margins], catalogue),
        facts={fact.key: fact for fact in list_facts(describe_release(release, catalogue))},
        day=catalogue.format_date(datetime.now(UTC).date()),
        index=_make_table_list(release, content, catalogue),
        levels=_list_level_tables(content.summaries, catalogue),
        content=content,
        **_describe_statistics(release, catalogue),
        rules=rules[:MOST_RULES],
        more_rules=more_rules,
        spending=_list_spending_facts(release, catalogue),
        citation=_format_citation(release, catalogue),
        example_attribute=next((names[0] for names in attributes), "NAME"),
        agency=release.options.text("agency", catalogue.language),
        contact=release.options.text("contact", catalogue.language),
        other_languages=list_other_languages(release.options, catalogue),
    )


def _describe_statistics(release: Release, catalogue: Catalogue) -> dict[str, str]:
    """Return heading and introduction of the part on statistics."""
    kinds = dict.fromkeys(table.statistic.kind for table in release.statistics)
    names = catalogue.join_names([catalogue.say(f"kind_{kind}") for kind in kinds])
    heading = capitalize(names)
    intro_key = "statistics_intro_cdf" if "cdf" in kinds else "statistics_intro"
    return {
        "statistics_heading": heading,
        "statistics_intro": catalogue.say(intro_key, kinds=heading),
    }


def _describe_seed(release: Release, catalogue: Catalogue) -> str:
    """Return the warning that the noise came from a seed, or ""."""
    if release.private:
        return ""
    return catalogue.say("not_private")


def _describe_row_limit(release: Release, catalogue: Catalogue) -> str:
    """Return the note on rows beyond the row limit of a unit, or ""."""
    row_limit = sentences.describe_row_limit_of_answers(release, catalogue)
    if not row_limit:
        return ""
    return f" {row_limit}"


def list_other_languages(options: Options, catalogue: Catalogue) -> list[tuple[str, str, str]]:
    """Return code, name and report file of each language except the catalogue's."""
    return [
        (language, load_catalogue(language).say("this_language"), report_file(options, language))
        for language in options.languages
        if language != catalogue.language
    ]


def report_file(options: Options, language: str) -> str:
    """Return the file name of the report of a language."""
    return "report.html" if language == options.language else f"report.{language}.html"


def _describe_rules(release: Release, catalogue: Catalogue) -> list[str]:
    """Return one sentence for the cells of each attribute and for each measure."""
    domain = release.plan.domain
    return [
        *(
            sentences.describe_attribute(name, domain.kind(name), catalogue)
            for name in domain.names
        ),
        *(
            sentences.describe_measure(
                name_with_weight(domain, name, catalogue), measure, catalogue
            )
            for name, measure in domain.measures.items()
        ),
    ]


def _list_headline_notices(release: Release, catalogue: Catalogue) -> list[str]:
    """Return the notices for the top of the page, the guard's counts last."""
    guard = sentences.describe_guard_counts(release, catalogue)
    notices = [
        *sentences.list_page_notices(release, catalogue),
        *sentences.list_clipped_values(release, catalogue),
    ]
    return notices if guard is None else [*notices, guard]


def _format_source(release: Release, catalogue: Catalogue) -> str:
    """Return the line that names the data source, or "" if none is stated."""
    source = release.options.text("source", catalogue.language)
    if source:
        return catalogue.say("source_line", source=source)
    return ""


def describe_protected_unit(release: Release, catalogue: Catalogue) -> str:
    """Return a text that names the privacy unit: a row, or values of a column."""
    privacy = release.privacy
    if privacy.unit_column is None:
        return catalogue.say("about_named_rows" if catalogue.names.rows else "about_row")
    if release.plan.details.counts_unit_sizes:
        column = catalogue.quote(privacy.unit_column)
        return catalogue.say("profile_about_unit", column=column)
    unit_names = name_unit(privacy, catalogue)
    if not sentences.has_row_limit(release):
        return catalogue.say("about_unit_with_all_rows", **unit_names)
    return catalogue.say_count("about_unit", privacy.max_rows, **unit_names)


def _format_citation(release: Release, catalogue: Catalogue) -> str:
    """Return the citation of the release for publications."""
    agency = release.options.text("agency", catalogue.language)
    text = catalogue.say(
        "cite_text",
        title=_make_title(release, catalogue),
        budget=sentences.format_budget(release.privacy, catalogue),
        unit=sentences.name_protected_unit(release.privacy, catalogue),
        digest=release.plan_digest,
        version=versions()["leastnoise"],
        year=str(datetime.now(UTC).year),
    )
    parts = [f"{agency}:" if agency else "", text, _format_source(release, catalogue)]
    return " ".join(part for part in parts if part)


def _make_title(release: Release, catalogue: Catalogue) -> str:
    """Return the title of the report, from the options or from the workload."""
    title = release.options.text("title", catalogue.language)
    if title:
        return title
    start = catalogue.say(
        "title_private" if release.private else "title_seeded",
        tables=catalogue.say_count("tables", len(release.tables)),
    )
    names = _join_workload_attributes(release, 5, catalogue)
    if names:
        return catalogue.say("title_on", start=start, names=names)
    return start


def _join_workload_attributes(release: Release, most_names: int, catalogue: Catalogue) -> str:
    """Return the names of the workload's attributes as a list in one text.

    At most ``most_names`` items are listed; the last one may be the number of further attributes.
    """
    workload_attributes = set(
        chain.from_iterable(product.attributes for product in release.workload)
    )
    names = [
        name_attribute(name, catalogue)
        for name in release.plan.domain.names
        if name in workload_attributes
    ]
    if len(names) > most_names:
        more = catalogue.say("more_attributes", count=len(names) - most_names + 1)
        names = [*names[: most_names - 1], more]
    return catalogue.join_names(names)


def _join_first_names(names: list[str], catalogue: Catalogue) -> str:
    """Return the first four names as a list, then the number of further names."""
    if len(names) > _MOST_LISTED_NAMES:
        more = catalogue.say_count("further", len(names) - _MOST_LISTED_NAMES)
        names = [*names[:_MOST_LISTED_NAMES], more]
    return catalogue.join_names(names)


def _describe_workload(release: Release, statistics: list[str], catalogue: Catalogue) -> str:
    """Return one or two sentences that describe the workload.

    The sentences state the quantities, the number of tables, the attributes and the statistics.
    Quantities that are only parts of statistics come last.
    """
    parts = sentences.keys_of_parts(release.plan.workload)
    products = sorted(release.workload.products, key=lambda product: product.table_key in parts)
    kinds = _name_quantities(products, catalogue)
    names = _join_workload_attributes(release, 12, catalogue)
    sentence = catalogue.say(
        "what" if names else "what_nothing",
        kinds=catalogue.join_names(kinds),
        names=names,
        answers=catalogue.say_count("answers", release.workload.rows),
        tables=catalogue.say_count("in_tables", len(products)),
    )
    if not statistics:
        return sentence
    statistic_names = _join_first_names(statistics, catalogue)
    return f"{sentence} {catalogue.say('what_made', names=statistic_names)}"


def _name_quantities(products: Sequence[Product], catalogue: Catalogue) -> list[str]:
    """Return the quantities of tables, such as "counts of rows" or "sums of pay"."""
    if not catalogue.names.is_empty:
        return [*dict.fromkeys(name_quantity(product, catalogue) for product in products)]
    summed_measures = sorted(
        {
            name_measure(product.domain, str(product.measure), catalogue)
            for product in products
            if product.of_values
        }
    )
    counted_measures = sorted(
        str(product.values_of) for product in products if product.values_of is not None
    )
    kinds = []
    counts = [product for product in products if product.measure is None]
    changes = [product for product in counts if _has_changes(product)]
    if len(changes) < len(counts):
        kinds.append(catalogue.say("counts"))
    if changes:
        kinds.append(catalogue.say("counts_changes"))
    if counted_measures:
        counted_names = catalogue.join_names([*dict.fromkeys(counted_measures)])
        kinds.append(catalogue.say("counts_values", names=counted_names))
    if any(product.of_units for product in products):
        kinds.append(catalogue.say("counts_units"))
    if summed_measures:
        kinds.append(catalogue.say("sums_of", names=catalogue.join_names(summed_measures)))
    return kinds


def _has_changes(product: Product) -> bool:
    """Return whether a table has changes between periods."""
    return any(query_set.kind == "change" for query_set in product.query_sets)


@dataclass(frozen=True, slots=True)
class Summary:
    """Facts about a table or statistic that the page shows besides its cells.

    The page stores them; thus each table is estimated only once.

    Attributes:
        product: the table; for a statistic, the first table from which it is computed.
        name: the title on the page.
        unit: the unit of the answers; empty if the title contains the unit.
        answer: the answer of a table with one cell; NaN for other tables.
        typical: the mean absolute answer; 0 if all answers are suppressed.
        margin: the root mean square of the margins.
        largest_margin: the largest margin.
        catalogue: the sentences of the language, with the number format of the table.
        flag_counts: for each reliability flag, the number of answers that have it; empty if no
            sampling error is stated.
        largest: texts of the largest cells of a one-way table.
        measures: the measures whose values are added up in the table, or in the tables from which
            the statistic is computed.
    """

    product: Product
    name: str
    unit: str
    answer: float
    typical: float
    margin: float
    largest_margin: float
    catalogue: Catalogue
    flag_counts: tuple[int, ...] = ()
    largest: tuple[str, ...] = ()
    measures: frozenset[str] = frozenset()

    @property
    def quoted_name(self) -> str:
        """The name for use in a sentence; a display name is put in quotation marks."""
        if self.catalogue.names.is_empty:
            return self.name
        return self.catalogue.say("quoted", name=self.name)


def _summarize_table(table: AnswerTable, catalogue: Catalogue) -> Summary:
    """Return the page's summary of a table."""
    published_answers = table.answer[~np.isnan(table.answer)]
    catalogue = catalogue.with_format(table_format(table.product, catalogue))
    answer = math.nan
    if not table.labels:
        answer = float(table.answer)
    typical = 0.0
    if published_answers.size:
        typical = float(abs(published_answers).mean())
    largest: tuple[str, ...] = ()
    if len(table.labels) == 1:
        largest = _describe_largest_cells(table, catalogue)
    return Summary(
        product=table.product,
        name=table_title(table.product, catalogue),
        unit=_noun_after_answers(table.product, catalogue),
        answer=answer,
        typical=typical,
        margin=table.typical_margin,
        largest_margin=table.largest_margin,
        catalogue=catalogue,
        flag_counts=table.flag_counts,
        largest=largest,
        measures=_summed_measures([table.product]),
    )


def _summed_measures(products: Iterable[Product]) -> frozenset[str]:
    """Return the names of the measures that the tables add up."""
    return frozenset(str(product.measure) for product in products if product.of_values)


def _noun_after_answers(product: Product, catalogue: Catalogue) -> str:
    """Return the noun after an answer: counted rows or units, or a sum's unit."""
    if product.of_values:
        return unit_of_sums(product, catalogue)
    if product.of_units:
        return name_counted_or_summed(product, catalogue)
    return name_rows(catalogue)


def _describe_largest_cells(table: AnswerTable, catalogue: Catalogue) -> tuple[str, ...]:
    """Return texts, such as "A: 120 ± 7", for a one-way table's largest cells."""
    cells = []
    for cell in find_largest(table.answer, _MOST_LISTED_NAMES).tolist():
        answer = float(table.answer[cell])
        margin = float(table.margins_with_sampling[cell])
        if not math.isnan(answer):
            cells.append(
                f"{table.display_labels[0][cell]}: {catalogue.format_answer(answer, margin)}"
            )
    return tuple(cells)


def _summarize_statistic(release: Release, table: StatisticTable, catalogue: Catalogue) -> Summary:
    """Return the page's summary of a statistic.

    The margin is the root mean square of the half widths, or NaN if all values are suppressed.
    """
    tables = release.plan.workload.tables_of(table.statistic)
    is_published = ~np.isnan(table.values)
    half_widths = (table.high_with_sampling - table.low_with_sampling)[is_published] / 2
    answer = math.nan
    if table.cells == 1:
        answer = float(table.values.item())
    typical = math.nan
    margin = math.nan
    largest_margin = math.nan
    own_format = table.with_own_format(catalogue)
    unit = ""
    if not own_format.number_format.percent:
        unit = unit_of_statistic(table.statistic, table.domain, catalogue)
    if is_published.any():
        typical = float(abs(table.values[is_published]).mean())
        margin = math.sqrt((half_widths**2).mean())
        largest_margin = float(half_widths.max())
    return Summary(
        product=tables[0],
        name=statistic_title(table.statistic, table.domain, catalogue),
        unit=unit,
        answer=answer,
        typical=typical,
        margin=margin,
        largest_margin=largest_margin,
        catalogue=own_format,
        flag_counts=table.flag_counts,
        measures=_summed_measures(tables),
    )


def _describe_main_errors(
    statistics: Sequence[Summary],
    tables: Sequence[Summary],
    statistic_table_keys: Container[object],
) -> list[tuple[str, str]]:
    """Return names of the main tables, each with a text about its error.

    Statistics come first, followed by the tables with the fewest attributes. Tables whose keys are
    in ``statistic_table_keys`` come last; statistics are computed from them.
    """
    ranks = [
        (
            table.product.table_key in statistic_table_keys,
            len(table.product.attributes),
            table.product.rows > 1000,
            position,
        )
        for position, table in enumerate(tables)
    ]
    most_tables = max(0, MOST_MAIN_ERRORS - len(statistics))
    main_positions = sorted(position for *_, position in sorted(ranks)[:most_tables])
    main = [*statistics[:MOST_MAIN_ERRORS], *(tables[position] for position in main_positions)]
    return [(summary.name, _describe_error(summary)) for summary in main]


def _round_to_margin(value: float, margin: float) -> float:
    """Return a value without digits below the third digit of its margin."""
    if not (math.isfinite(value) and math.isfinite(margin) and margin >= _LEAST_ROUNDED_MARGIN):
        return value
    return round(value, 2 - math.floor(math.log10(margin)))


def _describe_error(summary: Summary) -> str:
    """Describe a table's typical margin.

    If the table has only one answer, the text has this answer and its margin.
    """
    catalogue = summary.catalogue
    margin = catalogue.format_error(summary.margin)
    typical_value = _round_to_margin(summary.typical, summary.margin)
    typical = f"{catalogue.format_number(typical_value, summary.margin)} {summary.unit}".strip()
    if not math.isnan(summary.answer):
        return f"{catalogue.format_answer(summary.answer, summary.margin)} {summary.unit}".strip()
    if summary.margin > summary.typical > 0:
        return catalogue.say("exact_unreliable", margin=margin, typical=typical)
    if summary.typical > 0:
        share = catalogue.format_percent(summary.margin / summary.typical, 2)
        return catalogue.say("exact_relative", margin=margin, typical=typical, share=share)
    return catalogue.say("exact_plain", margin=margin)


def _rate_tables(release: Release, summaries: Sequence[Summary], catalogue: Catalogue) -> list[str]:
    """Return notes, and then sentences that rate the tables by reliability.

    The rating depends on the ratio of the typical margin to the typical answer. A table is never
    rated "yes" if its margin omits a part of the error, such as the sampling error of a survey, or
    the values beyond the bounds of a measure.
    """
    unused_rows = sentences.describe_unused_rows(release, catalogue)
    is_survey = bool(release.options.survey) or sentences.has_weights(release)
    covered = [summary for summary in summaries if summary.flag_counts or not is_survey]
    uncovered = [summary for summary in summaries if not (summary.flag_counts or not is_survey)]
    clipped_measures = sentences.measures_with_clipping(release)
    clipped = [summary for summary in covered if summary.measures & clipped_measures]
    exact = [summary for summary in covered if not summary.measures & clipped_measures]
    ratings = _rate_by_margins(exact, catalogue, has_all_errors=not unused_rows)
    ratings += _rate_by_margins([*clipped, *uncovered], catalogue, has_all_errors=False)
    if not ratings:
        return []
    notes = [unused_rows] if unused_rows else []
    if is_survey and not covered:
        notes.append(catalogue.say("fit_sample"))
    elif uncovered:
        names = _join_first_names([summary.quoted_name for summary in uncovered], catalogue)
        notes.append(catalogue.say("fit_sample_of", names=names))
    if release.survey is not None and covered:
        notes.append(_count_flags(release.survey.flags, covered, catalogue))
    return [*notes, *ratings]


def _count_flags(flags: FlagRule, summaries: Sequence[Summary], catalogue: Catalogue) -> str:
    """Return a sentence with the number of values that have each flag."""
    counts = [sum(column) for column in zip(*(s.flag_counts for s in summaries), strict=True)]
    return catalogue.say(
        "flags_suppressed" if flags.suppress else "flags",
        all=sum(counts),
        reliable=counts[0],
        care=counts[1],
        rest=counts[2],
        caution=catalogue.format_percent(flags.caution),
        unreliable=catalogue.format_percent(flags.unreliable),
    )


def _rate_by_margins(
    summaries: Sequence[Summary], catalogue: Catalogue, *, has_all_errors: bool
) -> list[str]:
    """Return one sentence for each rating; it names the tables with the rating.

    Args:
        summaries: the statistics and tables.
        catalogue: the catalogue of the page's language.
        has_all_errors: whether the margins include all known errors.
    """
    names_by_rating: dict[str, list[str]] = {"good": [], "care": [], "bad": []}
    for table in summaries[:MOST_PICTURES]:
        if table.margin <= table.typical / 10:
            rating = "good"
        elif table.margin <= table.typical / 2:
            rating = "care"
        else:
            rating = "bad"
        names_by_rating[rating].append(table.quoted_name)
    ending = "" if has_all_errors else "_by_noise"
    return [
        catalogue.say(f"fit_{rating}{ending}", names=_join_first_names(names, catalogue))
        for rating, names in names_by_rating.items()
        if names
    ]


def _make_table_list(
    release: Release, content: "ReportContent", catalogue: Catalogue
) -> dict[str, Any]:
    """Return the template values of the page's list of tables.

    Among them is a summary that compares the plan's error with the least possible error.
    """
    rows = []
    for table, entry in zip(content.summaries, content.entries, strict=False):
        left_out = ", ".join(name_attribute(name, catalogue) for name in entry.leaves_out)
        rows.append(
            (
                entry.query,
                table.name,
                left_out or catalogue.say("leaves_out_none"),
                catalogue.format_value(entry.answers),
                table.catalogue.format_error(table.margin),
                table.catalogue.format_error(table.largest_margin),
            )
        )
    expected_error = release.plan.data_independent_error
    summary = ""
    if not release.finding.linear:
        summary = catalogue.say("aware_errors")
    elif expected_error is not None and expected_error.lower_bound > 0:
        objective = release.plan.details.objective
        if objective in _OBJECTIVES:
            key = f"chosen_{objective}"
        else:
            key = "chosen_total"
        squared = catalogue.say(
            "squared", total=expected_error.total_squared_error, bound=expected_error.lower_bound
        )
        summary = f"{catalogue.say(key)} {squared}"
    if len(content.entries) > MOST_INDEX_ROWS:
        cut_note = catalogue.say("index_cut", count=MOST_INDEX_ROWS, all=len(content.entries))
    else:
        cut_note = ""
    headings = [
        catalogue.say(f"col_{column}")
        for column in ("id", "table", "leaves_out", "answers", "typical", "largest")
    ]
    note = catalogue.say(
        "index_note",
        percent=catalogue.format_percent(release.level),
        rows=name_rows(catalogue),
    )
    if release.options.survey:
        note = f"{note} {catalogue.say('index_survey')}"
    return {
        "headings": headings,
        "rows": rows,
        "summary": summary,
        "cut_note": cut_note,
        "note": note,
    }


def _list_level_tables(summaries: Sequence[Summary], catalogue: Catalogue) -> list[tuple[str, ...]]:
    """Return a row of texts for each one-way table of an attribute with levels.

    A row consists of name, number of groups, typical and largest margin, and largest groups.
    """
    one_way_tables = [table for table in summaries if len(table.product.attributes) == 1]
    keys_with_levels = {
        (table.product.measure, table.product.attributes)
        for table in one_way_tables
        if table.product.keys != table.product.attributes
    }
    return [
        (
            table.name,
            catalogue.format_value(table.product.rows),
            table.catalogue.format_error(table.margin),
            table.catalogue.format_error(table.largest_margin),
            "; ".join(table.largest),
        )
        for table in one_way_tables
        if (table.product.measure, table.product.attributes) in keys_with_levels
    ]


def _describe_paid_search(search: SearchFacts, catalogue: Catalogue) -> tuple[str, str]:
    """Return heading and text on a search that was paid before the release."""
    payment = {name: str(entry) for name, entry in write_record(search.receipt).items()}
    bounds = search.bounds
    if bounds is None:
        heading = catalogue.say("s_search", attribute=search.attribute)
        return heading, catalogue.say("searched", **payment)
    result = catalogue.say(
        "bounds_found",
        low=Fraction(bounds.low),
        high=Fraction(bounds.high),
        covers=100 * Fraction(bounds.covers),
        error=bounds.rank_error,
        **payment,
    )
    return catalogue.say("s_bounds", attribute=search.attribute), result


def _list_spending_facts(release: Release, catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return pairs of heading and text on payment, noise and strategy."""
    plan = release.plan
    privacy = release.privacy
    finding = release.finding
    receipt = release.receipt
    # The top of the page states the facts about the guard and the joined tables.
    only_payment = replace(
        receipt, guard=None, guard_reduced_from=None, joined=None, further_joined=()
    )
    payment = write_record(only_payment)
    if "charge" in payment:
        payment["charge"] = catalogue.localize_parameters(str(payment["charge"]))
    facts = ", ".join(f"{name}: {value}" for name, value in payment.items() if value)
    if finding.linear:
        measured = catalogue.say_count("done", _count_measured_tables(release))
        cost_key = "computed"
    else:
        measured = catalogue.say(finding.executed_steps[0], **finding.executed_steps[1])
        cost_key = "computed_aware"
    budget = sentences.format_budget(privacy, catalogue)
    definition = sentences.describe_definition(privacy, catalogue)[0]
    neighbours = sentences.describe_neighbours(privacy, catalogue)
    cost = sentences.format_cost(plan.cost(), catalogue)
    spending = [(catalogue.say("s_budget"), f"{budget} ({definition})")]
    if isinstance(plan, SeriesPlan):
        text = catalogue.say(f"series_{plan.series.late}", **plan.series.to_json())
        spending.append((catalogue.say("s_series"), text))
    spending.append((catalogue.say("s_cost"), catalogue.say(cost_key, cost=cost)))
    if isinstance(plan, LinearPlan) and plan.earlier:
        spending.append((catalogue.say("s_after"), sentences.describe_earlier(plan, catalogue)))
    if receipt.guard is not None:
        spending.append(
            (catalogue.say("s_guard"), catalogue.localize_parameters(receipt.guard.charge))
        )
    spending += [_describe_paid_search(search, catalogue) for search in release.options.searches]
    return [
        *spending,
        (catalogue.say("s_neighbours"), neighbours),
        (catalogue.say("s_noise"), catalogue.say(noise_name(release.measurements))),
        (catalogue.say("s_strategy"), f"{plan.strategy}: {measured}"),
        (catalogue.say("s_receipt"), facts or catalogue.say("no_receipt")),
    ]


def _count_measured_tables(release: Release) -> int:
    """Return the number of tables that the release measured."""
    if isinstance(release.plan, LinearPlan):
        return len(release.plan.measurements.blocks)
    return len(release.measurements.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """The texts that the page shows for a table.

    Attributes:
        id: the id, such as ``q1``.
        name: the display title.
        description: one line about unit and error, or the text of a SQL statement.
        key_headings: the headings of the columns of keys.
        number_headings: the headings of the columns of numbers.
        rows: the texts of each row: keys, then numbers.
        rows_note: a sentence that states which rows are shown.
        file: the file with all answers; empty for statistics and statements.
        total: the answer of a table without keys.
        chart_note: the sentence that explains the chart.
        notes: the notes below the chart, about chart and numbers.
        svg: the picture of the chart; empty if there is none.
        has_sampling_error: whether the intervals include the sampling error of a survey.
    """

    id: str
    name: str
    description: str
    key_headings: Sequence[str]
    number_headings: Sequence[str]
    rows: list[list[str]]
    rows_note: str
    file: str = ""
    total: str = ""
    chart_note: str = ""
    notes: str = ""
    svg: str = ""
    has_sampling_error: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the rows are visible when the page opens."""
        return len(self.rows) <= _MOST_OPEN_ROWS

    def drop_constant_keys(self, catalogue: Catalogue) -> "TableView":
        """Replace each column of keys that is equal in all rows by a sentence."""
        constant_columns = []
        notes = []
        for column, heading in enumerate(self.key_headings):
            values = {row[column] for row in self.rows}
            if len(self.rows) > 1 and len(values) == 1:
                constant_columns.append(column)
                notes.append(catalogue.say("alike", name=heading, value=self.rows[0][column]))
        if not constant_columns:
            return self

        def without_constants(row: Sequence[Any]) -> list[Any]:
            """Return a row without the entries of constant columns."""
            return [cell for column, cell in enumerate(row) if column not in constant_columns]

        headings = without_constants(self.key_headings)
        rows = [without_constants(row) for row in self.rows]
        rows_note = " ".join([self.rows_note, *notes])
        return replace(self, key_headings=headings, rows=rows, rows_note=rows_note)


@dataclass(frozen=True, slots=True)
class ReportContent:
    """The tables of the report page in one language.

    Attributes:
        entries: the lines of the index file, one for each table of the release.
        summaries: the summaries of the first tables, as many as fit on the page.
        statements: the views of the SQL statements.
        views: the views of the statistics, then of the tables.
        catalogue: the sentences of the page's language.
    """

    entries: list[TableEntry]
    summaries: list[Summary]
    statements: list[TableView]
    views: list[TableView]
    catalogue: Catalogue


@dataclass(frozen=True, slots=True)
class ReportChart:
    """A chart of the report: Vega-Lite specification, title and description."""

    spec: dict[str, Any]
    title: str
    description: str


def collect_contents(
    release: Release, written_tables: Iterable[tuple[AnswerTable, TableEntry]]
) -> list[ReportContent]:
    """Return the report's content in each language, the main language first.

    Each table is estimated only once for all languages.
    """
    collectors = [_ContentCollector(release, language) for language in release.options.languages]
    for table, entry in written_tables:
        for collector in collectors:
            collector.add(table, entry)
    return [collector.finish() for collector in collectors]


class _ContentCollector:
    """Collects the statistics, tables and statements of a page in one language.

    If a table does not fit on the page, only its largest cells are collected.
    """

    def __init__(self, release: Release, language: str) -> None:
        self._release = release
        self._catalogue = release.options.catalogue(language, scaled=True)
        self._code_texts = display_texts(release.options, release.plan.domain, language)
        self._entries: list[TableEntry] = []
        self._summaries: list[Summary] = []
        self._views: list[TableView] = []
        self._charts: dict[str, ReportChart] = {}  # keyed by the id of the view
        self._rows_left = MOST_PAGE_ROWS
        self._marks_left = MOST_MARKS
        for statistic in release.statistics:
            self._add_statistic(replace(statistic, code_texts=self._code_texts))

    def _add_statistic(self, statistic: StatisticTable) -> None:
        """Add the table and the chart of a statistic to the page."""
        catalogue = self._catalogue
        spec = statistic.chart_spec(catalogue)
        view = _statistic_view(self._release, statistic, catalogue)
        if spec is not None:
            picture = statistic.picture(catalogue)
            chart_name = statistic.chart_name(catalogue)
            view = _add_caption(view, chart_name, spec, picture, self._release, catalogue)
            self._charts[view.id] = ReportChart(spec, view.name, view.description)
        self._views.append(view)

    def add(self, table: AnswerTable, entry: TableEntry) -> None:
        """Add summary, view and chart of a table to the page."""
        release = self._release
        catalogue = self._catalogue
        table = replace(table, code_texts=self._code_texts)
        self._entries.append(entry)
        if len(self._summaries) < MOST_INDEX_ROWS:
            self._summaries.append(_summarize_table(table, catalogue))
        if self._rows_left <= 0:
            return
        picture = table.picture(catalogue, has_caption=True)
        chart = choose_chart(picture, self._marks_left)
        fits_on_page = entry.answers <= min(MOST_TABLE_ROWS, self._rows_left)
        view = _table_view(release, entry, table, catalogue, shows_all_cells=fits_on_page)
        if len(self._charts) < MOST_PICTURES:
            spec = draw_chart(picture, self._marks_left)
        else:
            spec = None
        if chart is not None:
            view = _add_caption(view, chart.name, spec, picture, release, catalogue, table.product)
        if chart is not None and spec is not None:
            description = describe_picture(picture, catalogue)
            self._charts[view.id] = ReportChart(spec, picture.name, description)
            self._marks_left -= len(spec["data"]["values"])
            if chart.shows_only_largest:
                certain_note = _describe_certain_largest(release, table, catalogue)
                view = replace(view, chart_note=f"{certain_note} {view.chart_note}")
        self._rows_left -= len(view.rows)
        self._views.append(view)

    def finish(self) -> ReportContent:
        """Draw the pictures, and return the content of the page."""
        catalogue = self._catalogue
        statements = [
            _statement_view(self._release, number, catalogue).drop_constant_keys(catalogue)
            for number in range(1, len(self._release.options.statements) + 1)
        ]
        views = [
            view.drop_constant_keys(catalogue)
            for view in _add_pictures(self._views, self._charts, catalogue)
        ]
        return ReportContent(self._entries, self._summaries, statements, views, catalogue)


def _add_pictures(
    table_views: list[TableView],
    charts: Mapping[str, ReportChart],
    catalogue: Catalogue,
) -> Iterator[TableView]:
    """Yield views with pictures, until the pictures exceed the page's size limit."""
    texts = [(f"c-{key}", chart.title, chart.description) for key, chart in charts.items()]
    svg_texts = render_svg([chart.spec for chart in charts.values()], texts, catalogue.language)
    pictures = dict(zip(charts, svg_texts, strict=True))
    picture_bytes = 0
    for view in table_views:
        svg = pictures.get(view.id) or ""
        picture_bytes += len(svg)
        if picture_bytes > MOST_PICTURE_BYTES:
            svg = ""
        if not view.chart_note:
            yield view
            continue
        if svg:
            chart_note = view.chart_note
        else:
            chart_note = catalogue.say("not_drawn", id=view.id)
        yield replace(view, svg=svg, notes=f"{chart_note} {view.notes}".strip())


def _add_caption(
    view: TableView,
    chart_name: str,
    spec: dict[str, Any] | None,
    picture: Picture | None,
    release: Release,
    catalogue: Catalogue,
    product: Product | None = None,
) -> TableView:
    """Return a view with explanatory notes on its chart.

    The notes explain the chart and its marks. They also state which lines are not drawn, and which
    rows the answers count.
    """
    keys = [f"how_{chart_name}"]
    if spec is not None and has_marked_intervals(spec):
        keys.append(f"how_{chart_name}_marked")
    keys += chart_scale_keys(chart_name, picture)
    percent = catalogue.format_percent(release.level)
    chart_note = " ".join(catalogue.say(key, percent=percent) for key in keys)
    notes = []
    chart = CHARTS_BY_NAME.get(chart_name)
    if picture is not None and chart is not None:
        hidden = chart.list_hidden_groups(picture)
        if hidden:
            notes.append(catalogue.say("vague", names=catalogue.join_names([*hidden])))
    if view.has_sampling_error:
        notes.append(catalogue.say("survey_chart"))
    row_limit = sentences.describe_row_limit(release, catalogue, product)
    if row_limit:
        notes.append(catalogue.say("beyond", of=row_limit))
    return replace(view, chart_note=chart_note, notes=" ".join(notes))


def chart_scale_keys(chart_name: str, picture: Picture | None) -> list[str]:
    """Return keys of texts that explain the scales of a chart."""
    chart = CHARTS_BY_NAME.get(chart_name)
    if picture is None or chart is None:
        return []
    return [*chart.list_scale_keys(picture)]


def _statistic_view(release: Release, statistic: StatisticTable, catalogue: Catalogue) -> TableView:
    """Return the view of a statistic, with its first values as rows."""
    cut_note = catalogue.say(
        "rows_first", count=MOST_SHORTENED_ROWS, all=statistic.cells, file=statistic.id
    )
    rows = statistic.format_rows(catalogue, MOST_SHORTENED_ROWS)
    number_headings = [
        catalogue.say(f"col_{statistic.value_name}"),
        catalogue.say("col_interval", percent=catalogue.format_percent(release.level)),
    ]
    if statistic.sampling is not None:
        number_headings += _sampling_headings(catalogue)
        sampling_cells = _format_sampling_errors(
            statistic.sampling,
            (statistic.high - statistic.low) / 2,
            np.arange(len(rows)),
            statistic.with_own_format(catalogue),
        )
        rows = [[*row, *cells] for row, cells in zip(rows, sampling_cells, strict=True)]
    rows_note = cut_note
    if statistic.cells <= MOST_SHORTENED_ROWS:
        rows_note = catalogue.say("rows_whole")
    return TableView(
        id=statistic.id,
        name=statistic_title(statistic.statistic, statistic.domain, catalogue),
        description=catalogue.say(statistic.meaning_key),
        key_headings=statistic.key_headings(catalogue),
        number_headings=number_headings,
        rows=rows,
        has_sampling_error=statistic.sampling is not None,
        rows_note=rows_note,
    )


def _sampling_headings(catalogue: Catalogue) -> list[str]:
    """Return the headings of the columns that are shown only for surveys."""
    return [catalogue.say(key) for key in ("col_noise", "col_sampling", "col_reliability")]


def _format_sampling_errors(
    sampling: SamplingErrors, noise_margins: FloatArray, cells: IntArray, catalogue: Catalogue
) -> list[list[str]]:
    """Return the noise margin, sampling margin and flag of each cell as texts."""
    is_suppressed = sampling.is_suppressed.reshape(-1)[cells]
    rows = []
    for suppressed, noise, sample, flag in zip(
        is_suppressed.tolist(),
        noise_margins.reshape(-1)[cells].tolist(),
        sampling.margins.reshape(-1)[cells].tolist(),
        sampling.reliability.reshape(-1)[cells].tolist(),
        strict=True,
    ):
        margins = (math.nan, math.nan) if suppressed else (noise, sample)
        errors = [catalogue.format_error(margin) for margin in margins]
        rows.append([*errors, catalogue.say(sampling.flag_keys[flag - 1])])
    return rows


def _statement_view(release: Release, number: int, catalogue: Catalogue) -> TableView:
    """Return the view of a SQL statement's result.

    Each row is a group, with all its answers and their intervals, if the intervals are known.
    """
    text = release.options.statements[number - 1]
    statement = release.read_statement(text)
    columns = release.answer_sql(text)
    shown = _columns_with_values(statement, columns)
    code_labels = _code_labels(release, catalogue.language)
    size = len(next(iter(columns.values())))
    rows = []
    for position in range(min(size, MOST_SHORTENED_ROWS)):
        row: list[str] = []
        for column, arrays in shown:
            values = [array.tolist()[position] for array in arrays]
            row += _format_output_values(catalogue, column, values, code_labels)
        rows.append(row)
    interval_heading = catalogue.say(
        "col_interval", percent=catalogue.format_percent(release.level)
    )
    numbers = []
    for column, _ in shown:
        if column.has_noise:
            numbers.append(column.name)
        if column.has_interval:
            numbers.append(interval_heading)
    cut = catalogue.say(
        "rows_first", count=MOST_SHORTENED_ROWS, all=size, file=statement_path(number)
    )
    notes = [catalogue.say("rows_whole") if size <= MOST_SHORTENED_ROWS else cut]
    if statement.left_out:
        notes.append(
            catalogue.say(
                "statement_left_out", names=catalogue.join_names(list(statement.left_out))
            )
        )
    if release.options.survey:
        notes.append(catalogue.say("statement_noise_only"))
    if statement.without_interval:
        names = catalogue.join_names(list(statement.without_interval))
        notes.append(catalogue.say("statement_without_interval", names=names))
    return TableView(
        id=f"sql{number}",
        name=catalogue.say("name_statement", number=number),
        description=" ".join(text.split()),
        key_headings=[column.name for column, _ in shown if not column.has_noise],
        number_headings=numbers,
        rows=rows,
        rows_note=" ".join(notes),
    )


def _columns_with_values(
    statement: Statement, columns: Columns
) -> list[tuple[OutputColumn, list[Array]]]:
    """Return each column of a statement with its values and interval ends.

    Columns without noise come first.
    """
    arrays = iter(columns.values())
    pairs = []
    for column in statement.columns:
        count = 3 if column.has_interval else 1
        pairs.append((column, [next(arrays) for _ in range(count)]))
    return sorted(pairs, key=lambda pair: pair[0].has_noise)


def _code_labels(release: Release, language: str) -> dict[str, Mapping[str, str]]:
    """Return the texts of codes by the name of an attribute or level."""
    domain = release.plan.domain
    labels = display_texts(release.options, domain, language)
    labels_by_column: dict[str, Mapping[str, str]] = {}
    for name in labels:
        columns = (name, *level_names(domain.kind(name)))
        labels_by_column |= dict.fromkeys(columns, labels[name])
    return labels_by_column


def _format_output_values(
    catalogue: Catalogue,
    column: OutputColumn,
    values: Sequence[Any],
    code_labels: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """Return an answer and its interval as texts, or a label as a text."""
    value = values[0]
    if column.has_interval:
        return [*format_interval(catalogue, *values)]
    if column.has_noise and isinstance(value, float):
        return [
            catalogue.format_number(value)
            if math.isnan(value)
            else catalogue.localize(format_digits(value))
        ]
    if value is None:
        return [""]
    text = str(value)
    return [code_labels.get(column.name, {}).get(text, text)]


def _table_view(
    release: Release,
    entry: TableEntry,
    table: AnswerTable,
    catalogue: Catalogue,
    *,
    shows_all_cells: bool,
) -> TableView:
    """Return the view of a table with all cells, or with only the largest."""
    product = table.product
    unit = _describe_table_unit(product, catalogue)
    catalogue = catalogue.with_format(table_format(product, catalogue))
    if shows_all_cells:
        cells = np.arange(table.cells)
        rows_note = catalogue.say("rows_whole")
    else:
        cells = find_largest(table.answer, MOST_SHORTENED_ROWS)
        rows_note = catalogue.say("rows_cut", count=len(cells), all=table.cells, file=entry.files)
    columns = _format_number_columns(release, table, cells, catalogue)
    total = ""
    rows: list[list[str]] = []
    if table.labels:
        all_columns = [*_select_labels(table, cells), *columns.values()]
        rows = [list(row) for row in zip(*all_columns, strict=True)]
    else:
        total = catalogue.format_answer(float(table.answer), float(table.margins_with_sampling))
    return TableView(
        id=table.id,
        name=table_title(product, catalogue),
        description=_describe_table(table, unit, catalogue),
        total=total,
        key_headings=key_headings(product.along, catalogue),
        number_headings=list(columns),
        has_sampling_error=table.sampling is not None,
        rows=rows,
        rows_note=rows_note,
        file=f"{entry.files.rsplit('/', 1)[-1]}.csv",
    )


def _describe_table(table: AnswerTable, unit: str, catalogue: Catalogue) -> str:
    """Return a line with the number of answers, unit and margin of a table."""
    description = catalogue.say(
        "meta",
        answers=catalogue.say_count("answers", table.cells),
        unit=name_with_row_limit(unit, table.privacy, catalogue),
        margin=catalogue.format_error(table.typical_margin),
    )
    if table.sampling is None or table.labels:
        return description
    ((noise, sample, flag),) = _format_sampling_errors(
        table.sampling, table.margins, np.arange(1), catalogue
    )
    both_errors = catalogue.say("meta_survey", noise=noise, sample=sample, flag=flag)
    return f"{description}; {both_errors}"


def _select_labels(table: AnswerTable, cells: IntArray) -> list[list[str]]:
    """Return the labels of the selected cells, one list for each key of a table."""
    indices = np.unravel_index(cells, table.answer.shape)
    return [
        np.array(labels, dtype=object)[index].tolist()
        for labels, index in zip(table.display_labels, indices, strict=True)
    ]


def _format_number_columns(
    release: Release, table: AnswerTable, cells: IntArray, catalogue: Catalogue
) -> dict[str, list[str]]:
    """Return the numbers of selected cells as texts, by column heading."""
    numbers = table.numbers()
    margins = table.margins_with_sampling.reshape(-1)[cells].tolist()
    margin_heading = catalogue.say("col_margin", percent=catalogue.format_percent(release.level))
    errors = {margin: catalogue.format_error(margin) for margin in {*margins}}
    published = numbers["answer"][~np.isnan(numbers["answer"])]
    is_whole = bool((published == np.rint(published)).all())
    is_scaled = catalogue.number_format.scale != 1  # the margins then decide the digits
    columns = {
        catalogue.say("col_answer"): [
            catalogue.format_number(answer, 1.0 if is_whole and not is_scaled else margin / 4)
            for answer, margin in zip(numbers["answer"][cells].tolist(), margins, strict=True)
        ],
        margin_heading: [errors[margin] for margin in margins],
    }
    if table.sampling is not None:
        sampling_cells = _format_sampling_errors(table.sampling, table.margins, cells, catalogue)
        for number, heading in enumerate(_sampling_headings(catalogue)):
            columns[heading] = [row[number] for row in sampling_cells]
    for name in numbers:
        if name.startswith(("answer_", "nnls")):
            values = numbers[name][cells].tolist()
            heading = catalogue.say(f"col_{name}")
            uncertainty = table.typical_margin / 4 if is_scaled else 0.5
            columns[heading] = [
                _format_extra_number(float(value), name, uncertainty, catalogue) for value in values
            ]
    return columns


def _format_extra_number(value: float, name: str, uncertainty: float, catalogue: Catalogue) -> str:
    """Return a number of an optional column as text, or "" for NaN."""
    if math.isnan(value):
        return ""
    if name in _WHOLE_COLUMNS and value.is_integer() and catalogue.number_format.scale == 1:
        return catalogue.format_number(value)
    return catalogue.format_number(value, uncertainty)


def _describe_table_unit(product: Product, catalogue: Catalogue) -> str:
    """Return the quantity of a table's answers, and their unit if one is stated."""
    has_names = not catalogue.names.is_empty
    if product.measure is None or not product.of_values or has_names:
        return name_quantity_and_unit(product, catalogue)
    step = product.domain.measures[product.measure].unit
    if step == 1:
        return name_quantity(product, catalogue)
    return catalogue.say(
        "unit_measure",
        measure=name_quantity(product, catalogue),
        unit=catalogue.format_exact(step),
    )


def _describe_certain_largest(release: Release, table: AnswerTable, catalogue: Catalogue) -> str:
    """Return a sentence on how many cells are certainly the largest.

    The comparison uses intervals that hold for all cells simultaneously.
    """
    count = min(_LARGEST_BARS, table.cells)
    if not release.finding.linear:
        return catalogue.say("largest_unknown", count=count)
    # Union bound over all cells.
    level_of_each = 1 - (1 - release.level) / table.cells
    multiplier = measured_multiplier(release.measurements, level_of_each, [table.product])
    step, bound = product_rounding(release.options, table.product)
    rounding = float(largest_rounding_change(release.options, step))
    margin = (
        multiplier * table.noise_std
        + convert_to_amounts(table.product, np.array(release.interval.half_step))
        + rounding
    )
    is_suppressed = np.isnan(table.answer)  # the true answers are below the bound
    low = np.where(is_suppressed, -np.inf, table.answer - margin).reshape(-1)
    high = np.where(is_suppressed, float(bound or 0) + margin, table.answer + margin).reshape(-1)
    certain = count_certain_largest(low, high, find_largest(table.answer, count))
    if not certain:
        return catalogue.say("largest_unsure", count=count, all=table.cells)
    return catalogue.say_count(
        "largest_sure",
        certain,
        shown=count,
        all=table.cells,
        percent=catalogue.format_percent(release.level),
    )


def describe_picture(picture: Picture, catalogue: Catalogue) -> str:
    """Return a text alternative of a chart: name, largest and smallest cell."""
    answers = picture.answer.reshape(-1)
    margins = np.maximum(picture.high - picture.answer, picture.answer - picture.low).reshape(-1)
    ends = []
    published_cells = np.flatnonzero(~np.isnan(answers))
    if not published_cells.size:
        return catalogue.say(
            "alt_left_out", name=picture.name, cells=catalogue.say_count("answers", picture.cells)
        )
    for cell in (
        published_cells[answers[published_cells].argmax()],
        published_cells[answers[published_cells].argmin()],
    ):
        index = np.unravel_index(cell, picture.answer.shape)
        key = ", ".join(
            axis.labels[int(label)] for axis, label in zip(picture.axes, index, strict=True)
        )
        ends.append((key, catalogue.format_answer(float(answers[cell]), float(margins[cell]))))
    (top, most), (bottom, least) = ends
    return catalogue.say(
        "alt",
        name=picture.name,
        cells=catalogue.say_count("answers", picture.cells),
        top=top,
        most=most,
        bottom=bottom,
        least=least,
    )
