"""The report: one HTML page for readers of a release.

With a chart and the cells of every table; it loads nothing from elsewhere.
"""

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._charts import (
    Picture,
    choose_chart,
    count_certain_largest,
    draw_chart,
    find_largest,
    groups_with_wide_bands,
    has_marks,
    render_svg,
)
from leastnoise._error import interval_multiplier
from leastnoise._plan import versions
from leastnoise._release import _sentences as sentences
from leastnoise._release._options import Options, display_texts, rounding_rule
from leastnoise._release._release import Release, TableEntry, statement_path
from leastnoise._release._statistics import StatisticTable, format_interval, read_statement
from leastnoise._release._tables import Table, convert_to_amounts
from leastnoise._release._texts import (
    TEMPLATES,
    Catalogue,
    fill_template,
    load_catalogue,
    name_measured,
    name_with_row_limit,
    statistic_title,
    table_title,
)
from leastnoise._workload import Product, level_names

MOST_PAGE_ROWS = 60_000  # rows of HTML on the page, which a browser opens in a second
MOST_TABLE_ROWS = 20_000
MOST_SHORTENED_ROWS = 500  # rows of a table that is not whole
MOST_PICTURES = 100
MOST_MARKS = (
    20_000  # cells in all pictures; when they are used up, tables are drawn by their largest cells
)
MOST_PICTURE_BYTES = 5_000_000  # of all pictures
_LARGEST_BARS = 20  # bars for a table that is too large to draw
_MOST_OPEN_ROWS = 100  # rows that are shown without being asked for
MOST_RULES = 40
MOST_INDEX_ROWS = 5000
MOST_MAIN_ERRORS = 5
_MOST_LISTED_NAMES = 4
_OBJECTIVES = (
    "worst",
    "relative",
    "least",
)  # what a plan says that it was chosen for, if it is not the least total


def render_report(release: Release, seen: "ReportContent") -> str:
    """Return the report as one HTML text, in the language of the release."""
    catalogue = load_catalogue(release.options.language)
    statistics = [_summarize_statistic(release, made, catalogue) for made in release.statistics]
    published = [summary for summary in statistics if not math.isnan(summary.margin)]
    tables = [summary for summary in seen.summaries if not math.isnan(summary.margin)]
    first = sentences.list_first_warnings(release, catalogue)
    rules = _describe_rules(release, catalogue)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    cut_rules = catalogue.say("rows_more", count=MOST_RULES, all=len(rules))
    attributes = (product.attributes for product in release.workload if product.attributes)
    of = sentences.describe_row_limit(release, catalogue)
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
        warning="" if release.private else catalogue.say("not_private"),
        source=_format_source(release, catalogue),
        first=first,
        notices=[
            notice for notice in _list_headline_notices(release, catalogue) if notice not in first
        ],
        what=_describe_workload(release, [summary.name for summary in statistics], catalogue),
        about=_describe_unit(release, catalogue),
        exact=_describe_main_errors(published, tables, catalogue),
        beyond=f" {catalogue.say('beyond', of=of)}" if of else "",
        fit=_rate_tables(
            [*published, *tables],
            sentences.list_errors_beyond_margins(release, catalogue),
            catalogue,
        ),
        ratio=sentences.error_over_bound(release.plan),
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        index=_make_index(release, seen, catalogue),
        levels=_list_level_tables(seen.summaries, catalogue),
        seen=seen,
        rules=rules[:MOST_RULES],
        more_rules=cut_rules if len(rules) > MOST_RULES else "",
        spent=_list_spending_facts(release, catalogue),
        cite=_format_citation(release, catalogue),
        cells=next((names[0] for names in attributes), "NAME"),
    )


def _describe_rules(release: Release, catalogue: Catalogue) -> list[str]:
    """Describe the cells of every attribute, and what every measure sums."""
    domain = release.plan.domain
    return [
        *(
            sentences.describe_attribute(name, domain.kind(name), catalogue)
            for name in domain.names
        ),
        *(
            sentences.describe_measure(name, measure, catalogue)
            for name, measure in domain.measures.items()
        ),
    ]


def _list_headline_notices(release: Release, catalogue: Catalogue) -> list[str]:
    """Return the notices of the headline, with the guard's counts last."""
    guard = sentences.describe_guard_counts(release, catalogue)
    notices = [
        *sentences.list_file_notices(release, catalogue),
        *sentences.list_clipped_values(release, catalogue),
    ]
    return notices if guard is None else [*notices, guard]


def _format_source(release: Release, catalogue: Catalogue) -> str:
    source = release.options.source
    return catalogue.say("source_line", source=source) if source else ""


def _describe_unit(release: Release, catalogue: Catalogue) -> str:
    """Say whose rows are protected."""
    privacy = release.privacy
    if privacy.unit_column is None:
        return catalogue.say("about_row")
    return catalogue.say_count("about_unit", privacy.max_rows, column=repr(privacy.unit_column))


def _format_citation(release: Release, catalogue: Catalogue) -> str:
    """Return the line by which a publication cites the release."""
    agency = release.options.agency
    text = catalogue.say(
        "cite_text",
        title=_make_title(release, catalogue),
        budget=sentences.format_budget(release.privacy, catalogue),
        unit=release.privacy.unit,
        digest=release.plan_digest,
        version=versions()["leastnoise"],
        year=str(datetime.now(UTC).year),
    )
    parts = [f"{agency}:" if agency else "", text, _format_source(release, catalogue)]
    return " ".join(part for part in parts if part)


def _make_title(release: Release, catalogue: Catalogue) -> str:
    if release.options.title:
        return release.options.title
    start = catalogue.say(
        "title_private" if release.private else "title_seeded",
        tables=catalogue.say_count("tables", len(release.tables)),
    )
    names = _join_workload_attributes(release, 5, catalogue)
    return catalogue.say("title_on", start=start, names=names) if names else start


def _join_workload_attributes(release: Release, most: int, catalogue: Catalogue) -> str:
    """Join the names of the attributes of the workload.

    Of more than ``most`` names, the last are counted.
    """
    asked = {name for product in release.workload for name in product.attributes}
    names = [name for name in release.plan.domain.names if name in asked]
    return catalogue.join_names(
        names
        if len(names) <= most
        else [*names[: most - 1], catalogue.say("more_attributes", count=len(names) - most + 1)]
    )


def _join_first_names(names: list[str], catalogue: Catalogue) -> str:
    """Join names; those after the fourth are counted."""
    return catalogue.join_names(
        names
        if len(names) <= _MOST_LISTED_NAMES
        else [
            *names[:_MOST_LISTED_NAMES],
            catalogue.say_count("further", len(names) - _MOST_LISTED_NAMES),
        ]
    )


def _describe_workload(release: Release, statistics: list[str], catalogue: Catalogue) -> str:
    """Describe the workload in a sentence.

    Counts and sums, in how many tables, of which attributes, and the statistics made of them.
    """
    products = release.workload.products
    sums = sorted({str(product.measure) for product in products if product.of_values})
    valued = sorted(str(product.values_of) for product in products if product.values_of is not None)
    kinds = (
        [catalogue.say("counts")] if any(product.measure is None for product in products) else []
    )
    kinds += (
        [catalogue.say("counts_values", names=catalogue.join_names([*dict.fromkeys(valued)]))]
        if valued
        else []
    )
    kinds += (
        [catalogue.say("counts_units")] if any(product.of_units for product in products) else []
    )
    kinds += [catalogue.say("sums_of", names=catalogue.join_names(sums))] if sums else []
    names = _join_workload_attributes(release, 12, catalogue)
    values = {
        "answers": catalogue.say_count("answers", release.workload.rows),
        "tables": catalogue.say_count("in_tables", len(products)),
    }
    sentence = catalogue.say(
        "what" if names else "what_nothing",
        kinds=catalogue.join_names(kinds),
        names=names,
        **values,
    )
    return (
        f"{sentence} {catalogue.say('what_made', names=_join_first_names(statistics, catalogue))}"
        if statistics
        else sentence
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """What the page says about a table or statistic besides its cells.

    Kept so that each is estimated once.
    """

    product: Product  # of a statistic the first table that it is made of
    name: str
    unit: str  # where the name does not say it
    answer: float  # of a single number; NaN for others
    typical: float  # the mean size of its answers; 0 where all are left out
    margin: float
    largest_margin: float
    largest: tuple[str, ...] = ()  # its largest cells in words, of a table along one attribute


def _summarize_table(table: Table, catalogue: Catalogue) -> Summary:
    """Summarise a table, with its largest cells if it is along one attribute."""
    known = table.answer[~np.isnan(table.answer)]
    unit = catalogue.say("name_units" if table.product.of_units else "unit_rows")
    return Summary(
        product=table.product,
        name=table_title(table.product, catalogue),
        unit="" if table.product.of_values else unit,
        answer=math.nan if table.labels else float(table.answer),
        typical=float(abs(known).mean()) if known.size else 0.0,
        margin=table.typical_margin,
        largest_margin=table.largest_margin,
        largest=_describe_largest_cells(table, catalogue) if len(table.labels) == 1 else (),
    )


def _describe_largest_cells(table: Table, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the largest cells of a table along one attribute in words, those published."""
    cells = []
    for cell in find_largest(table.answer, _MOST_LISTED_NAMES).tolist():
        answer, margin = float(table.answer[cell]), float(table.margins[cell])
        if not math.isnan(answer):
            cells.append(
                f"{table.display_labels[0][cell]}: {catalogue.format_answer(answer, margin)}"
            )
    return tuple(cells)


def _summarize_statistic(release: Release, made: StatisticTable, catalogue: Catalogue) -> Summary:
    """Summarise a statistic.

    Its margin is the root mean square of half its intervals, NaN where all values are left out.
    """
    first_table = release.plan.workload.tables_of(made.statistic)[0]
    known = ~np.isnan(made.values)
    halves = (made.high - made.low)[known] / 2
    any_known = bool(known.any())
    return Summary(
        product=first_table,
        name=statistic_title(made.statistic, catalogue),
        unit="",
        answer=float(made.values.item()) if made.cells == 1 else math.nan,
        typical=float(abs(made.values[known]).mean()) if any_known else math.nan,
        margin=math.sqrt((halves**2).mean()) if any_known else math.nan,
        largest_margin=float(halves.max()) if any_known else math.nan,
    )


def _describe_main_errors(
    statistics: Sequence[Summary], tables: Sequence[Summary], catalogue: Catalogue
) -> list[tuple[str, str]]:
    """Say how exact statistics and the main tables are: pairs of a name and a sentence.

    The main tables are those of the fewest attributes.
    """
    ranks = [
        (len(table.product.attributes), table.product.rows > 1000, position)
        for position, table in enumerate(tables)
    ]
    most_tables = max(0, MOST_MAIN_ERRORS - len(statistics))
    main = sorted(position for _, _, position in sorted(ranks)[:most_tables])
    shown = [*statistics[:MOST_MAIN_ERRORS], *(tables[position] for position in main)]
    return [(summary.name, _describe_error(summary, catalogue)) for summary in shown]


def _describe_error(summary: Summary, catalogue: Catalogue) -> str:
    """Say how exact a table or statistic is."""
    margin = catalogue.format_error(summary.margin)
    typical = f"{catalogue.format_number(summary.typical, summary.margin)} {summary.unit}".strip()
    if not math.isnan(summary.answer):
        return f"{catalogue.format_answer(summary.answer, summary.margin)} {summary.unit}"
    if summary.margin > summary.typical > 0:
        return catalogue.say("exact_unreliable", margin=margin, typical=typical)
    if summary.typical > 0:
        share = catalogue.format_percent(summary.margin / summary.typical, 2)
        return catalogue.say("exact_relative", margin=margin, typical=typical, share=share)
    return catalogue.say("exact_plain", margin=margin)


def _rate_tables(
    exact: Sequence[Summary], beyond: Sequence[str], catalogue: Catalogue
) -> list[str]:
    """Return what tables can be used for.

    By the ratio of their typical margins to their typical answers.

    Args:
        exact: the statistics and tables.
        beyond: what is in none of the margins, which comes first, and leaves no plain yes.
        catalogue: the catalogue.
    """
    fit: dict[str, list[str]] = {"good": [], "care": [], "bad": []}
    for table in exact[:MOST_PICTURES]:
        kind = (
            "good"
            if table.margin <= table.typical / 10
            else "care"
            if table.margin <= table.typical / 2
            else "bad"
        )
        fit[kind].append(table.name)
    keys = {"good": "fit_good_by_noise" if beyond else "fit_good"}
    judged = [
        catalogue.say(keys.get(kind, f"fit_{kind}"), names=_join_first_names(names, catalogue))
        for kind, names in fit.items()
        if names
    ]
    return [*beyond, *judged] if judged else []


def _make_index(release: Release, seen: "ReportContent", catalogue: Catalogue) -> dict[str, Any]:
    """Return the list of all tables with their margins.

    And how near the errors are to the least possible.
    """
    rows = [
        (
            entry.query,
            table.name,
            ", ".join(entry.leaves_out) or catalogue.say("leaves_out_none"),
            catalogue.format_value(entry.answers),
            catalogue.format_error(table.margin),
            catalogue.format_error(table.largest_margin),
        )
        for table, entry in zip(seen.summaries, seen.entries, strict=False)
    ]
    promise = release.plan.promise
    summary = ""
    if not release.finding.linear:
        summary = catalogue.say("aware_errors")
    elif promise is not None and promise.lower_bound > 0:
        objective = release.plan.details.get("objective")
        key = f"chosen_{objective}" if objective in _OBJECTIVES else "chosen_total"
        squared = catalogue.say(
            "squared", total=promise.total_squared_error, bound=promise.lower_bound
        )
        summary = f"{catalogue.say(key)} {squared}"
    cut = (
        catalogue.say("index_cut", count=MOST_INDEX_ROWS, all=len(seen.entries))
        if len(seen.entries) > MOST_INDEX_ROWS
        else ""
    )
    heads = [
        catalogue.say(f"col_{head}")
        for head in ("id", "table", "leaves_out", "answers", "typical", "largest")
    ]
    note = catalogue.say("index_note", percent=catalogue.format_percent(release.level))
    return {"heads": heads, "rows": rows, "summary": summary, "cut": cut, "note": note}


def _list_level_tables(summaries: Sequence[Summary], catalogue: Catalogue) -> list[tuple[str, ...]]:
    """Return the one-attribute tables of attributes with levels.

    Name, number of groups, margins and largest groups.
    """
    alone = [table for table in summaries if len(table.product.attributes) == 1]
    leveled = {
        (table.product.measure, table.product.attributes)
        for table in alone
        if table.product.keys != table.product.attributes
    }
    return [
        (
            table.name,
            catalogue.format_value(table.product.rows),
            catalogue.format_error(table.margin),
            catalogue.format_error(table.largest_margin),
            "; ".join(table.largest),
        )
        for table in alone
        if (table.product.measure, table.product.attributes) in leveled
    ]


def _list_spending_facts(release: Release, catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return the facts about payment, noise and strategy.

    Pairs of a heading and a text.
    """
    plan, privacy, finding, receipt = (
        release.plan,
        release.privacy,
        release.finding,
        release.receipt,
    )
    kept = {
        name: value for name, value in receipt.items() if not name.startswith(("guard_", "joined"))
    }  # told in the headline
    facts = ", ".join(
        f"{name}: {value}"
        for name, value in {"id": release.observation.receipt, **kept}.items()
        if value
    )
    searches = [
        {name: str(paid[name]) for name in ("attribute", "charge", "number", "ledger")}
        for paid in release.options.searches
    ]
    done = (
        catalogue.say_count("done", len(release.measurements.blocks))
        if finding.linear
        else catalogue.say(finding.done[0], **finding.done[1])
    )
    series = plan.details.series
    return [
        (
            catalogue.say("s_budget"),
            f"{sentences.format_budget(privacy, catalogue)} ({sentences.describe_definition(privacy, catalogue)[0]})",
        ),
        *(
            [(catalogue.say("s_series"), catalogue.say(f"series_{series['late']}", **series))]
            if series
            else []
        ),
        (
            catalogue.say("s_cost"),
            catalogue.say(
                "computed" if finding.linear else "computed_aware",
                cost=sentences.format_cost(plan.cost(), catalogue),
            ),
        ),
        *(
            [(catalogue.say("s_guard"), str(receipt["guard_charge"]))]
            if "guard_charge" in receipt
            else []
        ),
        *(
            (catalogue.say("s_search", **search), catalogue.say("searched", **search))
            for search in searches
        ),
        (
            catalogue.say("s_neighbours"),
            f"{sentences.describe_neighbours(privacy, catalogue)} ({privacy.neighbours})",
        ),
        (catalogue.say("s_noise"), catalogue.say(release.measurements.noise.value)),
        (catalogue.say("s_strategy"), f"{plan.strategy}: {done}"),
        (catalogue.say("s_receipt"), facts or catalogue.say("no_receipt")),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table on the page.

    ``drawn`` explains its picture, ``notes`` its picture and numbers.
    """

    id: str
    name: str
    meta: str
    keys: Sequence[str]
    numbers: Sequence[str]
    rows: list[list[str]]
    rows_note: str
    file: str = ""
    total: str = ""
    drawn: str = ""
    notes: str = ""
    svg: str = ""

    @property
    def is_open(self) -> bool:
        """Whether its rows are shown without being asked for."""
        return len(self.rows) <= _MOST_OPEN_ROWS

    def drop_constant_keys(self, catalogue: Catalogue) -> "TableView":
        """Drop the keys that are equal in all rows; each becomes a sentence."""
        alike = [
            column
            for column in range(len(self.keys))
            if len(self.rows) > 1 and len({row[column] for row in self.rows}) == 1
        ]
        sentences = [
            catalogue.say("alike", name=self.keys[column], value=self.rows[0][column])
            for column in alike
        ]
        keys, *rows = (
            [cell for column, cell in enumerate(row) if column not in alike]
            for row in [[*self.keys], *self.rows]
        )
        return (
            replace(self, keys=keys, rows=rows, rows_note=" ".join([self.rows_note, *sentences]))
            if alike
            else self
        )


@dataclass(frozen=True, slots=True)
class ReportContent:
    """What the page keeps of the tables, each of which is estimated once.

    All entries, and as many summaries and views as fit.
    """

    entries: list[TableEntry]
    summaries: list[Summary]
    statements: list[TableView]
    views: list[TableView]  # of the statistics first


def collect_content(
    release: Release, written: Iterable[tuple[Table, TableEntry]], catalogue: Catalogue
) -> ReportContent:
    """Collect the tables that fit on the page.

    Of the largest ones only the largest cells.
    """
    entries: list[TableEntry] = []
    summaries: list[Summary] = []
    shown: list[TableView] = []
    charts: dict[
        str, tuple[dict[str, Any], str, str]
    ] = {}  # of a view its chart, and the name and the words of that
    for statistic in release.statistics:
        spec, view = statistic.chart_spec(catalogue), _statistic_view(release, statistic, catalogue)
        if spec is not None:
            along = statistic.picture(catalogue) if statistic.statistic.form.along else None
            view = _add_caption(
                view, statistic.chart_name(catalogue), spec, along, release, catalogue
            )
            charts[view.id] = (spec, view.name, view.meta)
        shown.append(view)
    left, marks = MOST_PAGE_ROWS, MOST_MARKS
    for table, entry in written:
        entries.append(entry)
        if len(summaries) < MOST_INDEX_ROWS:
            summaries.append(_summarize_table(table, catalogue))
        if left <= 0:
            continue
        picture = table.picture(catalogue)
        chart = choose_chart(picture, marks)
        view = _table_view(
            release, entry, table, catalogue, whole=entry.answers <= min(MOST_TABLE_ROWS, left)
        )
        spec = draw_chart(picture, marks) if len(charts) < MOST_PICTURES else None
        if chart is not None:
            view = _add_caption(view, chart.name, spec, picture, release, catalogue)
        if chart is not None and spec is not None:
            charts[view.id] = (spec, picture.name, _describe_picture(picture, catalogue))
            marks -= len(spec["data"]["values"])
            view = (
                replace(
                    view,
                    drawn=f"{_describe_certain_largest(release, table, catalogue)} {view.drawn}",
                )
                if chart.name == "largest"
                else view
            )
        left -= len(view.rows)
        shown.append(view)
    statements = [
        _statement_view(release, number, catalogue).drop_constant_keys(catalogue)
        for number in range(1, len(release.options.statements) + 1)
    ]
    shown = [view.drop_constant_keys(catalogue) for view in _add_pictures(shown, charts, catalogue)]
    return ReportContent(entries, summaries, statements, shown)


def _add_pictures(
    shown: list[TableView],
    charts: Mapping[str, tuple[dict[str, Any], str, str]],
    catalogue: Catalogue,
) -> Iterator[TableView]:
    """Yield the views with their pictures.

    As long as all pictures together are not too large.
    """
    described = [(f"c-{key}", name, alt) for key, (_, name, alt) in charts.items()]
    pictures = dict(
        zip(
            charts,
            render_svg([spec for spec, *_ in charts.values()], described, catalogue.language),
            strict=True,
        )
    )
    used = 0
    for view in shown:
        svg = pictures.get(view.id) or ""
        used += len(svg)
        svg = svg if used <= MOST_PICTURE_BYTES else ""
        notes = (
            f"{view.drawn if svg else catalogue.say('not_drawn', id=view.id)} {view.notes}".strip()
        )
        yield replace(view, svg=svg, notes=notes) if view.drawn else view


def _add_caption(
    view: TableView,
    chart: str,
    spec: dict[str, Any] | None,
    picture: Picture | None,
    release: Release,
    catalogue: Catalogue,
) -> TableView:
    """Explain the chart of a view and its marks.

    Also which lines are not drawn, and which rows the answers count.
    """
    keys = [
        f"how_{chart}",
        *([f"how_{chart}_marked"] if spec is not None and has_marks(spec) else []),
    ]
    hidden, of = (
        groups_with_wide_bands(picture) if picture is not None and chart == "lines" else (),
        sentences.describe_row_limit(release, catalogue),
    )
    rest = [catalogue.say("vague", names=catalogue.join_names([*hidden]))] if hidden else []
    drawn = " ".join(
        catalogue.say(key, percent=catalogue.format_percent(release.level)) for key in keys
    )
    return replace(
        view,
        drawn=drawn,
        notes=" ".join([*rest, *([catalogue.say("beyond", of=of)] if of else [])]),
    )


def _statistic_view(release: Release, made: StatisticTable, catalogue: Catalogue) -> TableView:
    """Return the view of a statistic, with intervals.

    Of very many values the first.
    """
    cut = catalogue.say("rows_first", count=MOST_SHORTENED_ROWS, all=made.cells, file=made.id)
    return TableView(
        id=made.id,
        name=statistic_title(made.statistic, catalogue),
        meta=catalogue.say(made.meaning_key),
        keys=made.key_headings(catalogue),
        numbers=(
            catalogue.say(f"col_{made.value_name}"),
            catalogue.say("col_interval", percent=catalogue.format_percent(release.level)),
        ),
        rows=made.format_rows(catalogue, MOST_SHORTENED_ROWS),
        rows_note=catalogue.say("rows_whole") if made.cells <= MOST_SHORTENED_ROWS else cut,
    )


def _statement_view(release: Release, number: int, catalogue: Catalogue) -> TableView:
    """Return the view of a SQL statement under its text.

    Groups, and each answer with its interval.
    """
    text, domain = release.options.statements[number - 1], release.plan.domain
    columns = release.answer_sql(text)
    answers = [name for name in columns if {f"{name}_low", f"{name}_high"} <= {*columns}]
    keys = [
        name for name in columns if name not in answers and name.rsplit("_", 1)[0] not in answers
    ]
    labels = display_texts(release.options, domain)
    called = {
        column: labels[name]
        for name in labels
        for column in (name, *level_names(domain.kind(name)))
    }
    rows: list[list[str]] = []
    for row in zip(
        *(values[:MOST_SHORTENED_ROWS].tolist() for values in columns.values()), strict=True
    ):
        of = dict(zip(columns, row, strict=True))
        cells = [
            "" if of[name] is None else called.get(name, {}).get(str(of[name]), str(of[name]))
            for name in keys
        ]
        ends = [
            format_interval(catalogue, of[name], of[f"{name}_low"], of[f"{name}_high"], exact=False)
            for name in answers
        ]
        rows.append([*cells, *chain.from_iterable(ends)])
    interval, size = (
        catalogue.say("col_interval", percent=catalogue.format_percent(release.level)),
        len(next(iter(columns.values()))),
    )
    cut = catalogue.say(
        "rows_first", count=MOST_SHORTENED_ROWS, all=size, file=statement_path(number)
    )
    notes = [catalogue.say("rows_whole") if size <= MOST_SHORTENED_ROWS else cut]
    statement = read_statement(release.plan.workload, release.privacy.unit_column, text)
    if statement.left_out:
        notes.append(
            catalogue.say(
                "statement_left_out", names=catalogue.join_names(list(statement.left_out))
            )
        )
    return TableView(
        id=f"sql{number}",
        name=catalogue.say("name_statement", number=number),
        meta=" ".join(text.split()),
        keys=keys,
        numbers=[heading for name in answers for heading in (name, interval)],
        rows=rows,
        rows_note=" ".join(notes),
    )


def _table_view(
    release: Release, entry: TableEntry, table: Table, catalogue: Catalogue, *, whole: bool
) -> TableView:
    """Return the view of a table, or of its largest cells.

    With what it counts and how exact it is.
    """
    product, unit = table.product, name_measured(table.product, catalogue)
    if (
        product.measure is not None
        and product.of_values
        and (step := product.domain.measures[product.measure].unit) != 1
    ):
        unit = catalogue.say(
            "unit_measure", measure=product.measure, unit=catalogue.format_exact(step)
        )
    cells, rows_note = np.arange(table.cells), catalogue.say("rows_whole")
    if not whole:
        cells = find_largest(table.answer, MOST_SHORTENED_ROWS)
        rows_note = catalogue.say("rows_cut", count=len(cells), all=table.cells, file=entry.files)
    margins, numbers = table.margins.reshape(-1)[cells].tolist(), table.numbers()
    extra = [
        name
        for name in numbers
        if name not in ("answer", "noise_std", "approximation_std", "low", "high")
    ]
    indices = np.unravel_index(cells, table.answer.shape) if table.labels else ()
    columns = [
        np.array(labels, dtype=object)[index].tolist()
        for labels, index in zip(table.display_labels, indices, strict=True)
    ]
    columns.append(
        [
            catalogue.format_number(answer, margin / 4)
            for answer, margin in zip(numbers["answer"][cells].tolist(), margins, strict=True)
        ]
    )
    errors = {margin: catalogue.format_error(margin) for margin in {*margins}}
    columns.append([errors[margin] for margin in margins])
    columns += [
        [
            "" if math.isnan(value) else catalogue.format_number(float(value), 0.5)
            for value in numbers[name][cells].tolist()
        ]
        for name in extra
    ]
    return TableView(
        id=table.id,
        name=table_title(product, catalogue),
        meta=catalogue.say(
            "meta",
            answers=catalogue.say_count("answers", table.cells),
            unit=name_with_row_limit(unit, table.privacy, catalogue),
            margin=catalogue.format_error(table.typical_margin),
        ),
        total=""
        if table.labels
        else catalogue.format_answer(float(table.answer), float(table.margins)),
        keys=product.keys,
        numbers=(
            catalogue.say("col_answer"),
            catalogue.say("col_margin", percent=catalogue.format_percent(release.level)),
            *extra,
        ),
        rows=[list(row) for row in zip(*columns, strict=True)] if table.labels else [],
        rows_note=rows_note,
        file=f"{entry.files.rsplit('/', 1)[-1]}.csv",
    )


def _describe_certain_largest(release: Release, table: Table, catalogue: Catalogue) -> str:
    """Say how many of the largest cells are certainly the largest.

    By intervals that hold for all cells at once.
    """
    shown = min(_LARGEST_BARS, table.cells)
    if not release.finding.linear:
        return catalogue.say("largest_unknown", count=shown)
    # the union bound over all cells
    times = interval_multiplier(release.measurements.noise, 1 - (1 - release.level) / table.cells)
    rounding = float(rounding_rule(release.options)[0]) / 2
    margin = (
        times * table.noise_std
        + convert_to_amounts(table.product, np.array(release.interval.half_step))
        + rounding
    )
    gone = np.isnan(table.answer)  # of these is known that they are below
    low = np.where(gone, -np.inf, table.answer - margin).reshape(-1)
    high = np.where(
        gone, float(release.options.below or 0) + margin, table.answer + margin
    ).reshape(-1)
    sure = count_certain_largest(low, high, find_largest(table.answer, shown))
    if not sure:
        return catalogue.say("largest_unsure", count=shown, all=table.cells)
    return catalogue.say_count(
        "largest_sure",
        sure,
        shown=shown,
        all=table.cells,
        percent=catalogue.format_percent(release.level),
    )


def _describe_picture(drawn: Picture, catalogue: Catalogue) -> str:
    """Describe a chart in words.

    What it shows, and its largest and smallest cell.
    """
    flat, margins = (
        drawn.answer.reshape(-1),
        np.maximum(drawn.high - drawn.answer, drawn.answer - drawn.low).reshape(-1),
    )
    ends = []
    known = np.flatnonzero(~np.isnan(flat))
    if not known.size:
        return catalogue.say(
            "alt_left_out", name=drawn.name, cells=catalogue.say_count("answers", drawn.cells)
        )
    for cell in (known[flat[known].argmax()], known[flat[known].argmin()]):
        index = np.unravel_index(cell, drawn.answer.shape)
        key = ", ".join(axis.labels[int(at)] for axis, at in zip(drawn.axes, index, strict=True))
        ends.append((key, catalogue.format_answer(float(flat[cell]), float(margins[cell]))))
    (top, most), (bottom, least) = ends
    return catalogue.say(
        "alt",
        name=drawn.name,
        cells=catalogue.say_count("answers", drawn.cells),
        top=top,
        most=most,
        bottom=bottom,
        least=least,
    )


def write_series_page(
    folder: Path,
    options: Options,
    tables: Sequence[Product],
    errors: Mapping[str, Sequence[float | None]],
) -> None:
    """Write ``index.html`` of a series.

    The expected errors by period and table, None for a table that a period does not complete.
    """
    catalogue, published = (
        load_catalogue(options.language),
        [label for label in errors if (folder / label / "report.html").exists()],
    )
    page = fill_template(
        "series.html",
        t=catalogue,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        title=options.title or catalogue.say("series_title"),
        published=published,
        periods=len(errors),
        heads=[
            catalogue.say("col_period"),
            *(table_title(product, catalogue) for product in tables),
        ],
        rows=[
            (label, ["" if error is None else catalogue.format_error(error) for error in row])
            for label, row in errors.items()
        ],
    )
    draft = folder / "index.html.new"
    draft.write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")
    draft.replace(folder / "index.html")
