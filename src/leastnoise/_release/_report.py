"""The report: one HTML page for readers of a release.

With a chart and the cells of every table; it loads nothing from elsewhere.
"""

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._charts import (
    Picture,
    chart_for,
    clear_of_the_rest,
    in_digits,
    largest_first,
    marked,
    svg_of,
    vague,
    vega_lite,
)
from leastnoise._error import interval_multiplier
from leastnoise._frames import Columns
from leastnoise._plan import versions
from leastnoise._release import _sentences as words
from leastnoise._release._options import Options, exact_rule, labels_with_other
from leastnoise._release._release import Release, TableEntry, statement_file
from leastnoise._release._statistics import StatisticTable, shown_interval
from leastnoise._release._tables import Table, in_unit
from leastnoise._release._texts import (
    TEMPLATES,
    Texts,
    filled,
    measured_words,
    statistic_words,
    table_words,
    texts,
    unit_words,
)
from leastnoise._trusted.check.arrays import Array
from leastnoise._workload import OutputColumn, Product, Statement, level_names

MOST_CELLS = 60_000  # rows of HTML on the page, which a browser opens in a second
MOST_OF_A_TABLE = 20_000
MOST_LARGEST = 500  # rows of a table that is not whole
MOST_PICTURES = 100
MOST_MARKS = (
    20_000  # cells in all pictures; when they are used up, tables are drawn by their largest cells
)
MOST_BYTES = 5_000_000  # of all pictures
_LARGEST = 20  # bars for a table that is too large to draw
_OPEN = 100  # rows that are shown without being asked for
MOST_RULES = 40
MOST_LISTED = 5000
MOST_MAIN = 5
_MOST_NAMED = 4
_OBJECTIVES = (
    "worst",
    "relative",
    "least",
)  # what a plan says that it was chosen for, if it is not the least total


def report(release: Release, seen: "ReportCache") -> str:
    """Return the report as one HTML text, in the language of the release."""
    lang = texts(release.options.language)
    statistics = [_summary_of_statistic(release, made, lang) for made in release.statistics]
    published = [summary for summary in statistics if not math.isnan(summary.margin)]
    tables = [summary for summary in seen.summaries if not math.isnan(summary.margin)]
    first = words.first_words(release, lang)
    rules = _rules(release, lang)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    cut_rules = lang.say("rows_more", count=MOST_RULES, all=len(rules))
    attributes = (product.attributes for product in release.workload if product.attributes)
    of = words.of_words(release, lang)
    return filled(
        "report.html",
        t=lang,
        release=release,
        words=words,
        versions=versions(),
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        title=_title(release, lang),
        warning="" if release.private else lang.say("not_private"),
        source=_source(release, lang),
        first=first,
        notices=[notice for notice in _notices(release, lang) if notice not in first],
        what=_what(release, [summary.name for summary in statistics], lang),
        about=_about(release, lang),
        exact=_exact(published, tables, lang),
        beyond=f" {lang.say('beyond', of=of)}" if of else "",
        fit=_fit([*published, *tables], words.beyond_margins_words(release, lang), lang),
        ratio=words.goodness(release.plan),
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        index=_index(release, seen, lang),
        levels=_levels(seen.summaries, lang),
        seen=seen,
        rules=rules[:MOST_RULES],
        more_rules=cut_rules if len(rules) > MOST_RULES else "",
        spent=_spent(release, lang),
        cite=_citation(release, lang),
        cells=next((names[0] for names in attributes), "NAME"),
    )


def _rules(release: Release, lang: Texts) -> list[str]:
    """Describe the cells of every attribute, and what every measure sums."""
    domain = release.plan.domain
    return [
        *(words.domain_words(name, domain.kind(name), lang) for name in domain.names),
        *(words.measure_words(name, measure, lang) for name, measure in domain.measures.items()),
    ]


def _notices(release: Release, lang: Texts) -> list[str]:
    """Return the notices of the headline, with the guard's counts last."""
    guard = words.guard_words(release, lang)
    notices = [*words.notices(release, lang), *words.clipped(release, lang)]
    return notices if guard is None else [*notices, guard]


def _source(release: Release, lang: Texts) -> str:
    source = release.options.source
    return lang.say("source_line", source=source) if source else ""


def _about(release: Release, lang: Texts) -> str:
    """Say whose rows are protected."""
    privacy = release.privacy
    if privacy.unit_column is None:
        return lang.say("about_row")
    return lang.some("about_unit", privacy.max_rows, column=repr(privacy.unit_column))


def _citation(release: Release, lang: Texts) -> str:
    """Return the line by which a publication cites the release."""
    agency = release.options.agency
    text = lang.say(
        "cite_text",
        title=_title(release, lang),
        budget=words.budget_words(release.privacy, lang),
        unit=release.privacy.unit,
        digest=release.plan_digest,
        version=versions()["leastnoise"],
        year=str(datetime.now(UTC).year),
    )
    parts = [f"{agency}:" if agency else "", text, _source(release, lang)]
    return " ".join(part for part in parts if part)


def _title(release: Release, lang: Texts) -> str:
    if release.options.title:
        return release.options.title
    start = lang.say(
        "title_private" if release.private else "title_seeded",
        tables=lang.some("tables", len(release.tables)),
    )
    names = _asked(release, 5, lang)
    return lang.say("title_on", start=start, names=names) if names else start


def _asked(release: Release, most: int, lang: Texts) -> str:
    """Join the names of the attributes of the workload.

    Of more than ``most`` names, the last are counted.
    """
    asked = {name for product in release.workload for name in product.attributes}
    names = [name for name in release.plan.domain.names if name in asked]
    return lang.listed(
        names
        if len(names) <= most
        else [*names[: most - 1], lang.say("more_attributes", count=len(names) - most + 1)]
    )


def _shortened(names: list[str], lang: Texts) -> str:
    """Join names; those after the fourth are counted."""
    return lang.listed(
        names
        if len(names) <= _MOST_NAMED
        else [*names[:_MOST_NAMED], lang.some("further", len(names) - _MOST_NAMED)]
    )


def _what(release: Release, statistics: list[str], lang: Texts) -> str:
    """Describe the workload in a sentence.

    Counts and sums, in how many tables, of which attributes, and the statistics made of them.
    """
    products = release.workload.products
    sums = sorted({str(product.measure) for product in products if product.of_values})
    valued = sorted(str(product.values_of) for product in products if product.values_of is not None)
    kinds = [lang.say("counts")] if any(product.measure is None for product in products) else []
    kinds += (
        [lang.say("counts_values", names=lang.listed([*dict.fromkeys(valued)]))] if valued else []
    )
    kinds += [lang.say("counts_units")] if any(product.of_units for product in products) else []
    kinds += [lang.say("sums_of", names=lang.listed(sums))] if sums else []
    names = _asked(release, 12, lang)
    values = {
        "answers": lang.some("answers", release.workload.rows),
        "tables": lang.some("in_tables", len(products)),
    }
    sentence = lang.say(
        "what" if names else "what_nothing", kinds=lang.listed(kinds), names=names, **values
    )
    return (
        f"{sentence} {lang.say('what_made', names=_shortened(statistics, lang))}"
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


def _summary(table: Table, lang: Texts) -> Summary:
    """Summarise a table, with its largest cells if it is along one attribute."""
    known = table.answer[~np.isnan(table.answer)]
    unit = lang.say("name_units" if table.product.of_units else "unit_rows")
    return Summary(
        product=table.product,
        name=table_words(table.product, lang),
        unit="" if table.product.of_values else unit,
        answer=math.nan if table.labels else float(table.answer),
        typical=float(abs(known).mean()) if known.size else 0.0,
        margin=table.typical_margin,
        largest_margin=table.largest_margin,
        largest=_largest_cells(table, lang) if len(table.labels) == 1 else (),
    )


def _largest_cells(table: Table, lang: Texts) -> tuple[str, ...]:
    """Return the largest cells of a table along one attribute in words, those published."""
    cells = []
    for cell in largest_first(table.answer, _MOST_NAMED).tolist():
        answer, margin = float(table.answer[cell]), float(table.margins[cell])
        if not math.isnan(answer):
            cells.append(f"{table.shown[0][cell]}: {lang.value(answer, margin)}")
    return tuple(cells)


def _summary_of_statistic(release: Release, made: StatisticTable, lang: Texts) -> Summary:
    """Summarise a statistic.

    Its margin is the root mean square of half its intervals, NaN where all values are left out.
    """
    first_table = release.plan.workload.tables_of(made.statistic)[0]
    known = ~np.isnan(made.values)
    halves = (made.high - made.low)[known] / 2
    any_known = bool(known.any())
    return Summary(
        product=first_table,
        name=statistic_words(made.statistic, lang),
        unit="",
        answer=float(made.values.item()) if made.cells == 1 else math.nan,
        typical=float(abs(made.values[known]).mean()) if any_known else math.nan,
        margin=math.sqrt((halves**2).mean()) if any_known else math.nan,
        largest_margin=float(halves.max()) if any_known else math.nan,
    )


def _exact(
    statistics: Sequence[Summary], tables: Sequence[Summary], lang: Texts
) -> list[tuple[str, str]]:
    """Say how exact statistics and the main tables are: pairs of a name and a sentence.

    The main tables are those of the fewest attributes.
    """
    ranks = [
        (len(table.product.attributes), table.product.rows > 1000, position)
        for position, table in enumerate(tables)
    ]
    most_tables = max(0, MOST_MAIN - len(statistics))
    main = sorted(position for _, _, position in sorted(ranks)[:most_tables])
    shown = [*statistics[:MOST_MAIN], *(tables[position] for position in main)]
    return [(summary.name, _exactness(summary, lang)) for summary in shown]


def _exactness(summary: Summary, lang: Texts) -> str:
    """Say how exact a table or statistic is."""
    margin = lang.error(summary.margin)
    typical = f"{lang.number(summary.typical, summary.margin)} {summary.unit}".strip()
    if not math.isnan(summary.answer):
        return f"{lang.value(summary.answer, summary.margin)} {summary.unit}"
    if summary.margin > summary.typical > 0:
        return lang.say("exact_unreliable", margin=margin, typical=typical)
    if summary.typical > 0:
        share = lang.percent(summary.margin / summary.typical, 2)
        return lang.say("exact_relative", margin=margin, typical=typical, share=share)
    return lang.say("exact_plain", margin=margin)


def _fit(exact: Sequence[Summary], beyond: Sequence[str], lang: Texts) -> list[str]:
    """Return what tables can be used for.

    By the ratio of their typical margins to their typical answers.

    Args:
        exact: the statistics and tables.
        beyond: what is in none of the margins, which comes first, and leaves no plain yes.
        lang: the catalogue.
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
        lang.say(keys.get(kind, f"fit_{kind}"), names=_shortened(names, lang))
        for kind, names in fit.items()
        if names
    ]
    return [*beyond, *judged] if judged else []


def _index(release: Release, seen: "ReportCache", lang: Texts) -> dict[str, Any]:
    """Return the list of all tables with their margins.

    And how near the errors are to the least possible.
    """
    rows = [
        (
            entry.query,
            table.name,
            ", ".join(entry.leaves_out) or lang.say("leaves_out_none"),
            lang.plain(entry.answers),
            lang.error(table.margin),
            lang.error(table.largest_margin),
        )
        for table, entry in zip(seen.summaries, seen.entries, strict=False)
    ]
    promise, summary = release.plan.promise, ""
    if not release.finding.linear:
        summary = lang.say("aware_errors")
    elif promise is not None and promise.lower_bound > 0:
        objective = release.plan.details.objective
        objective = objective if objective in _OBJECTIVES else "total"
        summary = f"{lang.say(f'chosen_{objective}')} {lang.say('squared', total=promise.total_squared_error, bound=promise.lower_bound)}"
    cut = (
        lang.say("index_cut", count=MOST_LISTED, all=len(seen.entries))
        if len(seen.entries) > MOST_LISTED
        else ""
    )
    heads = [
        lang.say(f"col_{head}")
        for head in ("id", "table", "leaves_out", "answers", "typical", "largest")
    ]
    note = lang.say("index_note", percent=lang.percent(release.level))
    return {"heads": heads, "rows": rows, "summary": summary, "cut": cut, "note": note}


def _levels(summaries: Sequence[Summary], lang: Texts) -> list[tuple[str, ...]]:
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
            lang.plain(table.product.rows),
            lang.error(table.margin),
            lang.error(table.largest_margin),
            "; ".join(table.largest),
        )
        for table in alone
        if (table.product.measure, table.product.attributes) in leveled
    ]


def _spent(release: Release, lang: Texts) -> list[tuple[str, str]]:
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
        lang.some("done", len(release.measurements.blocks))
        if finding.linear
        else lang.say(finding.done[0], **finding.done[1])
    )
    series = plan.details.series
    return [
        (
            lang.say("s_budget"),
            f"{words.budget_words(privacy, lang)} ({words.definition(privacy, lang)[0]})",
        ),
        *(
            [(lang.say("s_series"), lang.say(f"series_{series.late}", **series.to_json()))]
            if series
            else []
        ),
        (
            lang.say("s_cost"),
            lang.say(
                "computed" if finding.linear else "computed_aware",
                cost=words.cost_words(plan.cost(), lang),
            ),
        ),
        *(
            [(lang.say("s_guard"), str(receipt["guard_charge"]))]
            if "guard_charge" in receipt
            else []
        ),
        *((lang.say("s_search", **search), lang.say("searched", **search)) for search in searches),
        (lang.say("s_neighbours"), f"{words.change(privacy, lang)} ({privacy.neighbours})"),
        (lang.say("s_noise"), lang.say(release.measurements.noise.value)),
        (lang.say("s_strategy"), f"{plan.strategy}: {done}"),
        (lang.say("s_receipt"), facts or lang.say("no_receipt")),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
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
        return len(self.rows) <= _OPEN

    def without_alike(self, lang: Texts) -> "View":
        """Drop the keys that are equal in all rows; each becomes a sentence."""
        alike = [
            column
            for column in range(len(self.keys))
            if len(self.rows) > 1 and len({row[column] for row in self.rows}) == 1
        ]
        sentences = [
            lang.say("alike", name=self.keys[column], value=self.rows[0][column])
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
class ReportCache:
    """What the page keeps of the tables, each of which is estimated once.

    All entries, and as many summaries and views as fit.
    """

    entries: list[TableEntry]
    summaries: list[Summary]
    statements: list[View]
    views: list[View]  # of the statistics first


def views(
    release: Release, written: Iterable[tuple[Table, TableEntry]], lang: Texts
) -> ReportCache:
    """Collect the tables that fit on the page.

    Of the largest ones only the largest cells.
    """
    entries: list[TableEntry] = []
    summaries: list[Summary] = []
    shown: list[View] = []
    charts: dict[
        str, tuple[dict[str, Any], str, str]
    ] = {}  # of a view its chart, and the name and the words of that
    for statistic in release.statistics:
        spec, view = statistic.spec(lang), _statistic_view(release, statistic, lang)
        if spec is not None:
            along = statistic.picture(lang) if statistic.statistic.form.along else None
            view = _captioned(view, statistic.chart(lang), spec, along, release, lang)
            charts[view.id] = (spec, view.name, view.meta)
        shown.append(view)
    left, marks = MOST_CELLS, MOST_MARKS
    for table, entry in written:
        entries.append(entry)
        if len(summaries) < MOST_LISTED:
            summaries.append(_summary(table, lang))
        if left <= 0:
            continue
        picture = table.picture(lang)
        chart = chart_for(picture, marks)
        view = _view(release, entry, table, lang, whole=entry.answers <= min(MOST_OF_A_TABLE, left))
        spec = vega_lite(picture, marks) if len(charts) < MOST_PICTURES else None
        if chart is not None:
            view = _captioned(view, chart.name, spec, picture, release, lang)
        if chart is not None and spec is not None:
            charts[view.id] = (spec, picture.name, _alt(picture, lang))
            marks -= len(spec["data"]["values"])
            view = (
                replace(view, drawn=f"{_sure(release, table, lang)} {view.drawn}")
                if chart.name == "largest"
                else view
            )
        left -= len(view.rows)
        shown.append(view)
    statements = [
        _statement_view(release, number, lang).without_alike(lang)
        for number in range(1, len(release.options.statements) + 1)
    ]
    shown = [view.without_alike(lang) for view in _pictured(shown, charts, lang)]
    return ReportCache(entries, summaries, statements, shown)


def _pictured(
    shown: list[View], charts: Mapping[str, tuple[dict[str, Any], str, str]], lang: Texts
) -> Iterator[View]:
    """Yield the views with their pictures.

    As long as all pictures together are not too large.
    """
    described = [(f"c-{key}", name, alt) for key, (_, name, alt) in charts.items()]
    pictures = dict(
        zip(
            charts,
            svg_of([spec for spec, *_ in charts.values()], described, lang.language),
            strict=True,
        )
    )
    used = 0
    for view in shown:
        svg = pictures.get(view.id) or ""
        used += len(svg)
        svg = svg if used <= MOST_BYTES else ""
        notes = f"{view.drawn if svg else lang.say('not_drawn', id=view.id)} {view.notes}".strip()
        yield replace(view, svg=svg, notes=notes) if view.drawn else view


def _captioned(
    view: View,
    chart: str,
    spec: dict[str, Any] | None,
    picture: Picture | None,
    release: Release,
    lang: Texts,
) -> View:
    """Explain the chart of a view and its marks.

    Also which lines are not drawn, and which rows the answers count.
    """
    keys = [f"how_{chart}", *([f"how_{chart}_marked"] if spec is not None and marked(spec) else [])]
    hidden, of = (
        vague(picture) if picture is not None and chart == "lines" else (),
        words.of_words(release, lang),
    )
    rest = [lang.say("vague", names=lang.listed([*hidden]))] if hidden else []
    drawn = " ".join(lang.say(key, percent=lang.percent(release.level)) for key in keys)
    return replace(
        view, drawn=drawn, notes=" ".join([*rest, *([lang.say("beyond", of=of)] if of else [])])
    )


def _statistic_view(release: Release, made: StatisticTable, lang: Texts) -> View:
    """Return the view of a statistic, with intervals.

    Of very many values the first.
    """
    cut = lang.say("rows_first", count=MOST_LARGEST, all=made.cells, file=made.id)
    return View(
        id=made.id,
        name=statistic_words(made.statistic, lang),
        meta=lang.say(made.meaning_key),
        keys=made.headings(lang),
        numbers=(
            lang.say(f"col_{made.value_name}"),
            lang.say("col_interval", percent=lang.percent(release.level)),
        ),
        rows=made.written(lang, MOST_LARGEST),
        rows_note=lang.say("rows_whole") if made.cells <= MOST_LARGEST else cut,
    )


def _statement_view(release: Release, number: int, lang: Texts) -> View:
    """Return the view of a SQL statement under its text.

    Groups, and each answer with its interval where it has one.
    """
    text = release.options.statements[number - 1]
    statement = release.read_statement(text)
    columns = release.answered(text)
    shown = _shown_columns(statement, columns)
    code_labels = _code_labels(release)
    size = len(next(iter(columns.values())))
    rows = []
    for position in range(min(size, MOST_LARGEST)):
        row: list[str] = []
        for column, arrays in shown:
            values = [array.tolist()[position] for array in arrays]
            row += _shown_values(lang, column, values, code_labels)
        rows.append(row)
    interval_heading = lang.say("col_interval", percent=lang.percent(release.level))
    numbers = []
    for column, _ in shown:
        if column.has_noise:
            numbers.append(column.name)
        if column.has_interval:
            numbers.append(interval_heading)
    cut = lang.say("rows_first", count=MOST_LARGEST, all=size, file=statement_file(number))
    notes = [lang.say("rows_whole") if size <= MOST_LARGEST else cut]
    if statement.left_out:
        notes.append(lang.say("statement_left_out", names=lang.listed(list(statement.left_out))))
    if statement.without_interval:
        names = lang.listed(list(statement.without_interval))
        notes.append(lang.say("statement_without_interval", names=names))
    return View(
        id=f"sql{number}",
        name=lang.say("name_statement", number=number),
        meta=" ".join(text.split()),
        keys=[column.name for column, _ in shown if not column.has_noise],
        numbers=numbers,
        rows=rows,
        rows_note=" ".join(notes),
    )


def _shown_columns(
    statement: Statement, columns: Columns
) -> list[tuple[OutputColumn, list[Array]]]:
    """Return the columns of a statement with their arrays; those without noise come first."""
    arrays = iter(columns.values())
    pairs = []
    for column in statement.columns:
        count = 3 if column.has_interval else 1
        pairs.append((column, [next(arrays) for _ in range(count)]))
    return sorted(pairs, key=lambda pair: pair[0].has_noise)


def _code_labels(release: Release) -> dict[str, Mapping[str, str]]:
    """Return the texts of codes, by the name of an attribute or level in lower case."""
    domain = release.plan.domain
    labels = labels_with_other(release.options, domain)
    return {
        column: labels[name]
        for name in labels
        for column in (name, *level_names(domain.kind(name)))
    }


def _shown_values(
    lang: Texts,
    column: OutputColumn,
    values: Sequence[Any],
    code_labels: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """Return what a row shows of a column: a label, or a number and its interval."""
    value = values[0]
    if column.has_interval:
        return [*shown_interval(lang, *values, exact=False)]
    if column.has_noise and isinstance(value, float):
        return [lang.number(value) if math.isnan(value) else lang.local(in_digits(value))]
    if value is None:
        return [""]
    text = str(value)
    return [code_labels.get(column.name, {}).get(text, text)]


def _view(release: Release, entry: TableEntry, table: Table, lang: Texts, *, whole: bool) -> View:
    """Return the view of a table, or of its largest cells.

    With what it counts and how exact it is.
    """
    product, unit = table.product, measured_words(table.product, lang)
    if (
        product.measure is not None
        and product.of_values
        and (step := product.domain.measures[product.measure].unit) != 1
    ):
        unit = lang.say("unit_measure", measure=product.measure, unit=lang.exact(step))
    cells, rows_note = np.arange(table.cells), lang.say("rows_whole")
    if not whole:
        cells = largest_first(table.answer, MOST_LARGEST)
        rows_note = lang.say("rows_cut", count=len(cells), all=table.cells, file=entry.files)
    margins, numbers = table.margins.reshape(-1)[cells].tolist(), table.numbers()
    extra = [
        name
        for name in numbers
        if name not in ("answer", "noise_std", "approximation_std", "low", "high")
    ]
    indices = np.unravel_index(cells, table.answer.shape) if table.labels else ()
    columns = [
        np.array(labels, dtype=object)[index].tolist()
        for labels, index in zip(table.shown, indices, strict=True)
    ]
    columns.append(
        [
            lang.number(answer, margin / 4)
            for answer, margin in zip(numbers["answer"][cells].tolist(), margins, strict=True)
        ]
    )
    errors = {margin: lang.error(margin) for margin in {*margins}}
    columns.append([errors[margin] for margin in margins])
    columns += [
        [
            "" if math.isnan(value) else lang.number(float(value), 0.5)
            for value in numbers[name][cells].tolist()
        ]
        for name in extra
    ]
    return View(
        id=table.id,
        name=table_words(product, lang),
        meta=lang.say(
            "meta",
            answers=lang.some("answers", table.cells),
            unit=unit_words(unit, table.privacy, lang),
            margin=lang.error(table.typical_margin),
        ),
        total="" if table.labels else lang.value(float(table.answer), float(table.margins)),
        keys=product.keys,
        numbers=(
            lang.say("col_answer"),
            lang.say("col_margin", percent=lang.percent(release.level)),
            *extra,
        ),
        rows=[list(row) for row in zip(*columns, strict=True)] if table.labels else [],
        rows_note=rows_note,
        file=f"{entry.files.rsplit('/', 1)[-1]}.csv",
    )


def _sure(release: Release, table: Table, lang: Texts) -> str:
    """Say how many of the largest cells are certainly the largest.

    By intervals that hold for all cells at once.
    """
    shown = min(_LARGEST, table.cells)
    if not release.finding.linear:
        return lang.say("largest_unknown", count=shown)
    # the union bound over all cells
    times = interval_multiplier(release.measurements.noise, 1 - (1 - release.level) / table.cells)
    rounding = float(exact_rule(release.options)[0]) / 2
    margin = (
        times * table.noise_std
        + in_unit(table.product, np.array(release.interval.half_step))
        + rounding
    )
    gone = np.isnan(table.answer)  # of these is known that they are below
    low = np.where(gone, -np.inf, table.answer - margin).reshape(-1)
    high = np.where(
        gone, float(release.options.below or 0) + margin, table.answer + margin
    ).reshape(-1)
    sure = clear_of_the_rest(low, high, largest_first(table.answer, shown))
    if not sure:
        return lang.say("largest_unsure", count=shown, all=table.cells)
    return lang.some(
        "largest_sure", sure, shown=shown, all=table.cells, percent=lang.percent(release.level)
    )


def _alt(drawn: Picture, lang: Texts) -> str:
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
        return lang.say("alt_left_out", name=drawn.name, cells=lang.some("answers", drawn.cells))
    for cell in (known[flat[known].argmax()], known[flat[known].argmin()]):
        index = np.unravel_index(cell, drawn.answer.shape)
        key = ", ".join(axis.labels[int(at)] for axis, at in zip(drawn.axes, index, strict=True))
        ends.append((key, lang.value(float(flat[cell]), float(margins[cell]))))
    (top, most), (bottom, least) = ends
    return lang.say(
        "alt",
        name=drawn.name,
        cells=lang.some("answers", drawn.cells),
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
    lang, published = (
        texts(options.language),
        [label for label in errors if (folder / label / "report.html").exists()],
    )
    page = filled(
        "series.html",
        t=lang,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        title=options.title or lang.say("series_title"),
        published=published,
        periods=len(errors),
        heads=[lang.say("col_period"), *(table_words(product, lang) for product in tables)],
        rows=[
            (label, ["" if error is None else lang.error(error) for error in row])
            for label, row in errors.items()
        ],
    )
    draft = folder / "index.html.new"
    draft.write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")
    draft.replace(folder / "index.html")
