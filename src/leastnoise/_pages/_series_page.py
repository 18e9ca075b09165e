"""Write the page of a series: lines, newest values, changes and errors.

The page shows the newest release of the series. Each further language has a separate page.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._charts import Picture, choose_chart, draw_chart, render_svg
from leastnoise._domain import Dates
from leastnoise._estimation import compare_groups
from leastnoise._pages._report import (
    chart_scale_keys,
    describe_picture,
    list_other_languages,
    report_file,
)
from leastnoise._pages._sentences import has_weights
from leastnoise._plan import SeriesPlan
from leastnoise._release import (
    AnswerTable,
    Options,
    Release,
    StatisticTable,
    display_texts,
    largest_rounding_change,
    quantity_key,
    rounding_rule,
)
from leastnoise._texts import (
    TEMPLATES,
    Catalogue,
    NumberFormat,
    fill_template,
    key_headings,
    statistic_title,
    table_format,
    table_title,
    window_width,
)
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import Product, QuerySet

_MOST_VIEWS = 24  # tables on the page; the reports show all tables
_MOST_ROWS = 60  # groups in the list of newest values
_MOST_NAMED = 3  # tables that a sentence names; of more, it says how many
_PERIODS_OF_A_YEAR = {"month": 12, "quarter": 4, "week": 52}
_ONE_DECIMAL = NumberFormat(decimals=1)
_ONE_DECIMAL_PERCENT = NumberFormat(decimals=1, percent=True)
_MINUS = "\u2212"
_COMPARED_QUERIES = ("identity", "level")  # only the groups of these query sets can be compared


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """The texts that the page shows for a table or statistic over time.

    Attributes:
        id: the id, such as ``q1``.
        name: the display title.
        headings: the headings of the groups, the newest values and the changes.
        rows: the texts of each group, as pairs: its labels, its newest value and its changes. The
            second text of a pair is the change in percent, or empty.
        rows_note: a sentence about the rows that are not shown, or an empty text if all rows are
            shown.
        svg: the picture of the lines; empty if there is none.
        notes: the notes below the picture.
        has_sampling: whether the margins of its values include a stated sampling error.
    """

    id: str
    name: str
    headings: list[str]
    rows: list[list[tuple[str, str]]]
    rows_note: str
    svg: str = ""
    notes: str = ""
    has_sampling: bool = False

    @property
    def numbers(self) -> int:
        """The number of columns with numbers."""
        return len(self.rows[0]) - sum(second == "label" for _, second in self.rows[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _TimeTable:
    """A table or statistic over time; the periods are the last axis.

    Attributes:
        id: the id, such as ``q1``.
        name: the display title.
        groups: the query set of each attribute except the periods.
        headings: the headings of the groups.
        labels: the display labels along each attribute of the groups.
        values: the values, with one axis for each attribute of the groups, then the periods.
        low: the lower ends of the intervals; they include a stated sampling error.
        high: the upper ends.
        periods: the labels of the periods.
        quantity: the argument by which `compare_groups` selects the quantity; None if changes
            cannot be estimated.
        rounding_key: the key of the rounding rule for the values; see `quantity_key`.
        catalogue: the texts of the page's language, with the table's number format.
        picture: the data of the chart; None if there are too few periods.
        has_sampling: whether the intervals include a stated sampling error.
    """

    id: str
    name: str
    groups: Mapping[str, QuerySet]
    headings: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    values: FloatArray
    low: FloatArray
    high: FloatArray
    periods: tuple[str, ...]
    quantity: Mapping[str, Any] | None
    rounding_key: str
    catalogue: Catalogue
    picture: Picture | None
    has_sampling: bool


def write_series_page(
    folder: Path,
    options: Options,
    tables: Sequence[Product],
    errors: Mapping[str, Sequence[float | None]],
    newest: Release | None = None,
) -> None:
    """Write ``index.html`` of a series, and a page for each further language.

    Args:
        folder: the folder of the series.
        options: the options of the releases.
        tables: the tables of each release.
        errors: maps each period to the expected error of each table. An error is None if the table
            is not complete with this period.
        newest: the newest release of the series; None if there is none yet.
    """
    for language in options.languages:
        catalogue = options.catalogue(language, scaled=True)
        views = [] if newest is None else _make_views(newest, catalogue)
        notices = _list_survey_notices(newest, views, catalogue)
        page = _render_page(folder, options, catalogue, tables, errors, views, notices)
        name = report_file(options, language).replace("report", "index")
        new_page = folder / f"{name}.new"
        new_page.write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")
        new_page.replace(folder / name)


def _render_page(
    folder: Path,
    options: Options,
    catalogue: Catalogue,
    tables: Sequence[Product],
    errors: Mapping[str, Sequence[float | None]],
    views: Sequence[SeriesView],
    notices: Sequence[str],
) -> str:
    """Return the page of a series as HTML, in the catalogue's language."""
    report = report_file(options, catalogue.language)
    published_periods = [label for label in errors if (folder / label / report).exists()]
    source = options.text("source", catalogue.language)
    if source:
        source = catalogue.say("source_line", source=source)
    rows = []
    for label, row in errors.items():
        rows.append((label, [_format_optional_error(error, catalogue) for error in row]))
    return fill_template(
        "series.html",
        t=catalogue,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        title=options.text("title", catalogue.language) or catalogue.say("series_title"),
        source=source,
        agency=options.text("agency", catalogue.language),
        contact=options.text("contact", catalogue.language),
        report=report,
        other_languages=[
            (language, name, file.replace("report", "index"))
            for language, name, file in list_other_languages(options, catalogue)
        ],
        published_periods=published_periods,
        periods=len(errors),
        views=views,
        notices=notices,
        percent=catalogue.format_percent(options.level),
        headings=[
            catalogue.say("col_period"),
            *(table_title(product, catalogue) for product in tables),
        ],
        rows=rows,
    )


def _format_optional_error(error: float | None, catalogue: Catalogue) -> str:
    """Return an error as text, or "" for None."""
    if error is None:
        return ""
    return catalogue.format_error(error)


def _make_views(release: Release, catalogue: Catalogue) -> list[SeriesView]:
    """Return a view with a picture for each table and statistic over time."""
    views = []
    specs = []
    tables = _list_time_tables(release, catalogue)
    # Totals come first; all other tables keep the order of the spec.
    for table in sorted(tables, key=lambda table: bool(table.groups)):
        picture = table.picture
        chart = None if picture is None else choose_chart(picture)
        if picture is None or chart is None or not chart.draws_changes:
            views.append(_make_view(release, table, ""))
        else:
            views.append(_make_view(release, table, chart.name))
            description = describe_picture(picture, table.catalogue)
            specs.append((table.id, draw_chart(picture) or {}, table.name, description))
        if len(views) == _MOST_VIEWS:
            break
    svg_texts = render_svg(
        [spec for _, spec, _, _ in specs],
        [(f"c-{key}", title, description) for key, _, title, description in specs],
        catalogue.language,
    )
    pictures = {key: svg or "" for (key, _, _, _), svg in zip(specs, svg_texts, strict=True)}
    return [_add_picture(view, pictures.get(view.id, "")) for view in views]


def _add_picture(view: SeriesView, svg: str) -> SeriesView:
    """Return a view with a picture of its lines.

    If there is no picture, the view has no notes either.
    """
    return replace(view, svg=svg, notes=view.notes if svg else "")


def _list_time_tables(release: Release, catalogue: Catalogue) -> Iterator[_TimeTable]:
    """Yield the statistics over time, then the tables that serve no statistic."""
    if not isinstance(release.plan, SeriesPlan):
        return
    along = release.plan.series.along
    texts = display_texts(release.options, release.plan.domain, catalogue.language)
    workload = release.plan.workload
    served = {
        product.name
        for product in chain.from_iterable(map(workload.tables_of, workload.statistics))
    }
    for statistic in release.statistics:
        form = statistic.statistic.form
        has_one_value = form.of_measure and not form.row_key
        if along in statistic.statistic.by and has_one_value:
            yield _statistic_over_time(replace(statistic, code_texts=texts), along, catalogue)
    for table in release.tables:
        query_set = table.product.along.get(along)
        if query_set is None:
            continue
        is_over_time = query_set.form.axis in {"cells", "up_to"} or window_width(query_set) > 0
        if is_over_time and table.name not in served:
            yield _table_over_time(replace(table, code_texts=texts), along, catalogue)


def _table_over_time(table: AnswerTable, period_attribute: str, catalogue: Catalogue) -> _TimeTable:
    """Return the texts and numbers that the page shows for a table."""
    product = table.product
    position = product.attributes.index(period_attribute)
    quantity: Mapping[str, Any] | None = {}
    if product.of_units:
        quantity = {"count": "units"}
    elif product.measure is not None:
        quantity = {"sum": product.measure}
    query_set = product.along[period_attribute]
    if query_set.kind != "identity":
        quantity = None
    periods = tuple(map(str, table.labels[position]))
    if window_width(query_set):
        last_periods = [str(last) for _, last in query_set.arguments]
        periods = tuple(last_periods[: len(periods)])
    return _TimeTable(
        id=table.id,
        name=table_title(product, catalogue),
        **_describe_groups(period_attribute, product.along, table.display_labels, catalogue),
        values=np.moveaxis(table.answer, position, -1),
        low=np.moveaxis(table.low_with_sampling, position, -1),
        high=np.moveaxis(table.high_with_sampling, position, -1),
        periods=periods,
        quantity=quantity,
        rounding_key=quantity_key(product.domain, product.measure),
        catalogue=catalogue.with_format(table_format(product, catalogue)),
        picture=table.picture(catalogue, has_caption=True),
        has_sampling=table.sampling is not None,
    )


def _statistic_over_time(
    statistic: StatisticTable, period_attribute: str, catalogue: Catalogue
) -> _TimeTable:
    """Return the texts and numbers that the page shows for a statistic."""
    position = statistic.statistic.by.index(period_attribute)
    return _TimeTable(
        id=statistic.id,
        name=statistic_title(statistic.statistic, statistic.domain, catalogue),
        **_describe_groups(
            period_attribute, statistic.statistic.along, statistic.display_labels, catalogue
        ),
        values=np.moveaxis(statistic.values, position, -1),
        low=np.moveaxis(statistic.low_with_sampling, position, -1),
        high=np.moveaxis(statistic.high_with_sampling, position, -1),
        periods=tuple(map(str, statistic.labels[position])),
        quantity={"mean": statistic.statistic.of},
        rounding_key="",  # means are not rounded
        catalogue=statistic.with_own_format(catalogue),
        picture=statistic.picture(catalogue),
        has_sampling=statistic.sampling is not None,
    )


def _describe_groups(
    period_attribute: str,
    query_sets: Mapping[str, QuerySet],
    labels: Sequence[tuple[str, ...]],
    catalogue: Catalogue,
) -> dict[str, Any]:
    """Return the fields of `_TimeTable` that describe groups other than periods."""
    groups = {name: query_set for name, query_set in query_sets.items() if name != period_attribute}
    labels_of = dict(zip(query_sets, labels, strict=True))
    return {
        "groups": groups,
        "headings": key_headings(groups, catalogue),
        "labels": tuple(labels_of[name] for name in groups),
    }


def _make_view(release: Release, table: _TimeTable, chart: str) -> SeriesView:
    """Return the view of a table over time: newest values and their changes."""
    catalogue = table.catalogue
    newest = _prevent_line_breaks(catalogue.format_period(table.periods[-1].removeprefix("<= ")))
    headings = [*table.headings, newest]
    shape = tuple(map(len, table.labels))
    shown_groups = list(np.ndindex(shape))[:_MOST_ROWS]
    rows = []
    for group in shown_groups:
        labels = [(along[key], "label") for along, key in zip(table.labels, group, strict=True)]
        value = float(table.values[group][-1])
        margin = _farther_half_width(value, table.low[group][-1], table.high[group][-1])
        rows.append([*labels, (catalogue.format_answer(value, margin), "")])
    for earlier in _earlier_positions(release, len(table.periods)):
        changes = _estimate_changes(release, table, earlier)
        if changes is None:
            continue
        earlier_period = _prevent_line_breaks(catalogue.format_period(table.periods[earlier]))
        headings.append(catalogue.say("series_change", period=earlier_period))
        for row, group in zip(rows, shown_groups, strict=True):
            row.append(_format_change(table, changes, group, earlier, release.options))
    rows_note = ""
    if len(shown_groups) < math.prod(shape):
        rows_note = catalogue.say(
            "series_more_groups", count=len(shown_groups), all=math.prod(shape)
        )
    percent = catalogue.format_percent(release.level)
    keys = [f"how_{chart}", *chart_scale_keys(chart, table.picture)] if chart else []
    notes = [catalogue.say(key, percent=percent) for key in keys]
    return SeriesView(
        id=table.id,
        name=table.name,
        headings=headings,
        rows=rows,
        rows_note=rows_note,
        notes=" ".join(notes),
        has_sampling=table.has_sampling,
    )


def _list_survey_notices(
    release: Release | None, views: Sequence[SeriesView], catalogue: Catalogue
) -> list[str]:
    """Return sentences on margins without the sampling error of a survey."""
    if release is None or not (release.options.survey or has_weights(release)):
        return []
    uncovered = [view.name for view in views if not view.has_sampling]
    if len(uncovered) == len(views):
        return [catalogue.say("st_noise_only")]
    notices = []
    if uncovered:
        shown = [catalogue.say("quoted", name=name) for name in uncovered[:_MOST_NAMED]]
        if len(uncovered) > len(shown):
            shown.append(catalogue.say_count("further", len(uncovered) - len(shown)))
        names = catalogue.join_names(shown)
        notices.append(catalogue.say("fit_sample_of", names=names))
    return [*notices, catalogue.say("series_change_noise_only")]


def _earlier_positions(release: Release, periods: int) -> list[int]:
    """Return the positions of the previous period and the period a year before."""
    kind = release.plan.domain.kind(_period_attribute(release))
    year = _PERIODS_OF_A_YEAR.get(kind.by) if isinstance(kind, Dates) else None
    lags = [1] if year is None else [1, year]
    return [periods - 1 - lag for lag in lags if periods - 1 - lag >= 0]


def _period_attribute(release: Release) -> str:
    """Return the attribute whose cells are the periods of a series."""
    if not isinstance(release.plan, SeriesPlan):
        raise TypeError("only a release of a series has periods")
    return release.plan.series.along


def _estimate_changes(
    release: Release, table: _TimeTable, earlier_position: int
) -> Mapping[str, FloatArray] | None:
    """Return the changes of all groups since an earlier period, or None.

    Returns:
        The columns of `compare_groups` by name, with one axis for each attribute of the groups;
        None if the changes cannot be estimated.
    """
    is_comparable = all(query_set.kind in _COMPARED_QUERIES for query_set in table.groups.values())
    if table.quantity is None or not is_comparable:
        return None
    try:
        changes = compare_groups(
            release,
            _period_attribute(release),
            table.periods[-1],
            table.periods[earlier_position],
            by=dict(table.groups),
            **table.quantity,
        )
    except InputError:
        return None
    shape = tuple(map(len, table.labels))
    if changes.numbers["difference"].shape != (shape or changes.numbers["difference"].shape):
        return None
    return {name: values.reshape(shape) for name, values in changes.numbers.items()}


def _format_change(
    table: _TimeTable,
    changes: Mapping[str, FloatArray],
    group: tuple[int, ...],
    earlier_position: int,
    options: Options,
) -> tuple[str, str]:
    """Return a group's change and its change in percent, each with its margin.

    The change is the difference of two published values, which may be rounded.
    """
    catalogue = table.catalogue
    change = float(table.values[group][-1] - table.values[group][earlier_position])
    if math.isnan(change):
        return catalogue.format_number(math.nan), ""
    is_rounded = options.round is not None
    # Both values are rounded.
    step = 2 * float(
        largest_rounding_change(options, rounding_rule(options, table.rounding_key)[0])
    )
    margin = step + _farther_half_width(
        float(changes["difference"][group]),
        float(changes["difference_low"][group]),
        float(changes["difference_high"][group]),
    )
    text = _format_signed(change, margin, catalogue)
    is_relative = bool(changes["ratio_bounded"][group]) and changes["against"][group] > 0
    if catalogue.number_format.percent or is_rounded or not is_relative:
        return text, ""
    lift = float(changes["lift"][group])
    reach = _farther_half_width(
        lift, float(changes["lift_low"][group]), float(changes["lift_high"][group])
    )
    number = catalogue.with_format(_ONE_DECIMAL).format_number(100 * lift)
    percentage = catalogue.with_format(_ONE_DECIMAL_PERCENT).format_number(reach)
    return text, f"{_with_sign(number, lift)} ± {percentage}"


def _format_signed(change: float, margin: float, catalogue: Catalogue) -> str:
    """Return a change as text with sign and margin, in points for percentages."""
    if catalogue.number_format.percent:
        plain = catalogue.with_format(replace(catalogue.number_format, percent=False))
        number = plain.format_number(100 * change, 100 * margin / 4)
        return f"{_with_sign(number, change)} ± {catalogue.format_error(margin)}"
    number = catalogue.format_number(change, margin / 4)
    error = catalogue.format_number(margin, margin / 4)
    return f"{_with_sign(number, change)} ± {error}"


def _with_sign(number: str, change: float) -> str:
    """Return a number with the sign of a change, unless all digits are 0."""
    is_zero = not number.strip("-0.,")
    return f"{'+' if change > 0 and not is_zero else ''}{number}".replace("-", _MINUS)


def _prevent_line_breaks(period: str) -> str:
    """Return a period's label with characters that prevent line breaks."""
    return period.replace("-", "\u2011").replace(" ", "\u00a0")


def _farther_half_width(value: float, low: float, high: float) -> float:
    """Return the distance from a value to the farther end of its interval."""
    return max(high - value, value - low)
