"""The page that explores a release.

The page shows tables of any attributes, and sums of their cells. The tables and sums are computed
from the measurements.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._charts import draw_chart
from leastnoise._domain import Domain
from leastnoise._frames import number_or_null
from leastnoise._pages import list_further_notices
from leastnoise._release import (
    AnswerTable,
    Release,
    StatisticTable,
    describe_rounding,
    round_table,
    with_labels_in,
)
from leastnoise._session import read_release
from leastnoise._studio._pages import (
    Page,
    ShowPage,
    action_route,
    asset_routes,
    chart_json,
    page_route,
    render_page,
)
from leastnoise._texts import (
    LANGUAGES,
    Catalogue,
    attribute_heading,
    capitalize,
    name_measure,
    name_rows,
    statistic_title,
    table_format,
    table_title,
)
from leastnoise._trusted.check import InputError, message, one_of, whole
from leastnoise._workload import level, level_names, queries

MOST_CELLS = 4096  # cells of a table that the page can show
_TOO_LARGE = (
    "A table here may have at most {most} cells; this one would have {cells}. "
    "Pick fewer attributes."
)
_NO_ERROR = (
    "No error is known for sums of cells from a release by {strategy!r}, because its measurements "
    "depend on the data. Use `leastnoise answer`."
)
_MOST_MARKS = 2000  # marks of a chart
_MOST_LISTED = 200  # values of a statistic
KINDS = ("identity", "prefix")
TableRequest = tuple[tuple[str, str], ...]
"""The attributes of a table, each with a query set ("identity", "prefix") or a level."""


class ReleaseExplorer:
    """Computes answers from one release, and caches recent tables."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.table = lru_cache(maxsize=8)(self._table)
        self._covariances = lru_cache(maxsize=2)(release.covariances)

    def first(self) -> tuple[TableRequest, str | None]:
        """Return the first table to show, and its measure (None for counts).

        The result is a table of the workload, if the page can show one. Otherwise, the result is a
        table of one attribute, or the total.
        """
        for request, measure in [*self._workload_requests(), *self._simple_requests()]:
            with suppress(InputError):
                self.table(request, measure)
                return request, measure
        return (), None

    def _workload_requests(self) -> list[tuple[TableRequest, str | None]]:
        """List the tables that the page can show, and the measure of each table."""
        requests: list[tuple[TableRequest, str | None]] = []
        for product in self.release.workload.products:
            axes = tuple(zip(product.attributes, product.query_sets, strict=True))
            if axes and all(sets.form.named or sets.kind in KINDS for _, sets in axes):
                requests.append((tuple((name, sets.word) for name, sets in axes), product.measure))
        return requests

    def _simple_requests(self) -> list[tuple[TableRequest, str | None]]:
        """List the tables of one attribute and the total, each for every measure."""
        domain = self.release.plan.domain
        requests: list[TableRequest] = []
        for name in domain.names:
            kinds = (*KINDS, *level_names(domain.kind(name)))
            requests += [((name, kind),) for kind in kinds]
        requests.append(())
        measures = dict.fromkeys(product.measure for product in self.release.workload.products)
        return [(request, measure) for measure in measures for request in requests]

    def _table(self, request: TableRequest, measure: str | None) -> AnswerTable:
        """Compute the answers to a table: counts, or sums of a measure."""
        domain = self.release.plan.domain
        for name, kind in request:
            one_of("an attribute", name, domain.names)
            kinds = (*KINDS, *level_names(domain.kind(name)))
            one_of(message("the query on {name}", name=name), kind, kinds)
        query_sets = {name: kind if kind in KINDS else level(kind) for name, kind in request}
        workload = queries(domain, query_sets, sum=measure)
        if workload.rows > MOST_CELLS:
            raise InputError(message(_TOO_LARGE, most=MOST_CELLS, cells=workload.rows))
        (table,) = self.release.answer(workload)
        return table

    def sum(self, request: TableRequest, measure: str | None, cells: Sequence[int]) -> AnswerTable:
        """Compute the sum of some cells, as a table with one answer and its error.

        ``cells`` are indices into the flattened table.
        """
        table = self.table(request, measure)
        positions = [whole("a cell", cell, 0, table.cells - 1) for cell in cells]
        if not positions:
            raise InputError("Pick at least one cell.")
        if not self.release.finding.linear:
            raise InputError(message(_NO_ERROR, strategy=self.release.plan.strategy))
        weights = np.zeros(table.cells)
        weights[positions] = 1.0
        variance = np.array([weights @ self._covariances(table.product, table.product) @ weights])
        std = self.release.least_squares().std(measure, variance)
        interval = self.release.interval
        half_step = np.where(std > 0, interval.half_step * table.product.unit, 0.0)
        margin = interval.multiplier * std + half_step
        answer = np.array([weights @ table.answer.reshape(-1)])
        sum_table = replace(
            table,
            approximation_std=None,
            answer=answer,
            noise_std=std,
            low=answer - margin,
            high=answer + margin,
        )
        return round_table(sum_table, self.release.options)


def exploring_page(path: Path, show_page: ShowPage | None = None) -> Page:
    """Return the page that explores a release.

    The page is in the language of the release until the browser requests another language.

    Args:
        path: the directory of the release.
        show_page: a function that shows the page in another language; None if there is only one.
    """
    explorer = ReleaseExplorer(read_release(path))
    return _release_page(explorer, path.resolve().name, show_page, "")


def _release_page(
    explorer: ReleaseExplorer, name: str, show_page: ShowPage | None, language: str
) -> Page:
    """Return the page for a release that is open already, in a language."""
    release = explorer.release
    catalogue = release.options.catalogue(language)

    def table(body: dict[str, Any]) -> Any:
        """Return the answers and the chart of the requested table as JSON."""
        request, measure = _read_request(body, release)
        return _table_json(
            with_labels_in(
                round_table(explorer.table(request, measure), release.options),
                release,
                catalogue.language,
            ),
            catalogue,
        )

    def total(body: dict[str, Any]) -> Any:
        """Return the sum of the selected cells of a table as JSON."""
        cells = body.get("cells")
        if not isinstance(cells, list):
            raise InputError("A sum must have a list of cells.")
        request, measure = _read_request(body, release)
        return _sum_json(explorer.sum(request, measure, cells), len(set(cells)), catalogue)

    def statistic(body: dict[str, Any]) -> Any:
        """Return the chart of the requested statistic as JSON."""
        key = body.get("statistic")
        if not isinstance(key, str):
            raise InputError("A statistic must be called by its id, such as s1.")
        table = with_labels_in(release.statistics[key], release, catalogue.language)
        title = statistic_title(table.statistic, table.domain, catalogue)
        return chart_json(
            table.chart_spec(catalogue), catalogue, catalogue.say("st_chart", name=title)
        )

    def in_language(other: str) -> Page:
        """Return the same page in another language."""
        return _release_page(explorer, name, show_page, other)

    def choose_language(arguments: dict[str, Any]) -> Any:
        """Open the page in the requested language."""
        other = one_of("the language", arguments.get("language"), LANGUAGES)
        if show_page is None:
            return {}
        return show_page(in_language(other))

    # Render the page now, because a release that cannot be shown must be refused when it is opened.
    page = render_page(
        "exploring.html",
        t=catalogue,
        name=name,
        **_template_values(explorer, catalogue),
    )
    return Page(
        [
            page_route("/", lambda: page),
            *asset_routes("exploring.js", charts=True),
            action_route("/table", table, catalogue.translate),
            action_route("/sum", total, catalogue.translate),
            action_route("/statistic", statistic, catalogue.translate),
            action_route("/language", choose_language, catalogue.translate),
        ],
        in_language=in_language,
    )


def _read_request(body: dict[str, Any], release: Release) -> tuple[TableRequest, str | None]:
    """Return the table that the page requests, and its measure."""
    query_kinds = body.get("asked")
    measure = body.get("measure") or None
    if not isinstance(query_kinds, dict) or not (measure is None or isinstance(measure, str)):
        raise InputError("A question must have an object of attributes, and a measure or none.")
    names = release.plan.domain.names
    for name in query_kinds:
        one_of("an attribute", name, names)
    request = tuple((name, str(query_kinds[name])) for name in names if query_kinds.get(name))
    return request, measure


def _table_json(table: AnswerTable, catalogue: Catalogue) -> dict[str, Any]:
    """Return the name, the formatted rows and the chart of a table as JSON."""
    catalogue = catalogue.with_format(table_format(table.product, catalogue))
    columns = [
        values.reshape(-1).tolist()
        for values in (table.answer, table.margins, table.low, table.high)
    ]
    rows = [
        [
            cell,
            catalogue.format_number(answer, margin),
            catalogue.format_error(margin),
            catalogue.format_number(low, margin),
            catalogue.format_number(high, margin),
        ]
        for cell, answer, margin, low, high in zip(
            table.cell_names(catalogue), *columns, strict=True
        )
    ]
    name = table_title(table.product, catalogue)
    spec = draw_chart(table.picture(catalogue), _MOST_MARKS)
    chart = chart_json(spec, catalogue, catalogue.say("st_chart", name=name))
    return {"name": name, "rows": rows, **chart}


def _sum_json(table: AnswerTable, cell_count: int, catalogue: Catalogue) -> dict[str, Any]:
    """Return a sum of cells as JSON: a sentence, and numbers or null."""
    numbers = {name: float(values.item()) for name, values in table.numbers().items()}
    margin = float(table.margins.item())
    sentence = catalogue.say(
        "st_sum_is",
        cells=catalogue.say_count("st_cells", cell_count),
        value=catalogue.format_answer(numbers["answer"], margin),
        low=catalogue.format_number(numbers["low"], margin),
        high=catalogue.format_number(numbers["high"], margin),
    )
    shown_numbers: dict[str, float | None] = {}
    for name in ("answer", "noise_std", "low", "high"):
        shown_numbers[name] = number_or_null(numbers[name])
    return {"sum": sentence, **shown_numbers}


def _list_level_choices(
    domain: Domain, attribute: str, catalogue: Catalogue
) -> list[tuple[str, str]]:
    """Return the name and the display name of each level of an attribute."""
    choices = []
    for level_name in level_names(domain.kind(attribute)):
        names = catalogue.names.level(f"{attribute}:{level_name}")
        choices.append((level_name, names.name or level_name))
    return choices


def _template_values(explorer: ReleaseExplorer, catalogue: Catalogue) -> dict[str, Any]:
    """Return the variables of the HTML template.

    The variables are the choices of the form, notices, and the statistics of the release.
    """
    release = explorer.release
    domain = release.plan.domain
    first, measure = explorer.first()
    notices = list_further_notices(release, catalogue)
    rounding = describe_rounding(release.options, catalogue)
    if rounding:
        notices.append(rounding)
    common_choices = [
        ("", catalogue.say("st_left_out")),
        *zip(KINDS, (catalogue.say("st_values"), catalogue.say("name_along_prefix")), strict=True),
    ]
    percent = catalogue.format_percent(release.level)
    kinds = {}
    for name in domain.names:
        kinds[name] = [*common_choices, *_list_level_choices(domain, name, catalogue)]
    measures = [("", capitalize(name_rows(catalogue)))]
    measures += [
        (name, name_measure(domain, name, catalogue))
        for name in release.workload.measures
        if name is not None
    ]
    return {
        "kinds": kinds,
        "headings": {name: attribute_heading(name, catalogue) for name in domain.names},
        "first": dict(first),
        "measures": measures,
        "measure": measure or "",
        "lead": catalogue.say("st_explore", percent=percent),
        "notices": notices,
        "percent": percent,
        "statistics": [
            _statistic_texts(with_labels_in(table, release, catalogue.language), catalogue)
            for table in release.statistics
        ],
    }


def _statistic_texts(table: StatisticTable, catalogue: Catalogue) -> dict[str, Any]:
    """Return the texts of a statistic for the HTML template."""
    remark = ""
    if table.cells > _MOST_LISTED:
        remark = catalogue.say("rows_first", count=_MOST_LISTED, all=table.cells, file=table.id)
    return {
        "id": table.id,
        "name": statistic_title(table.statistic, table.domain, catalogue),
        "meaning": catalogue.say(table.meaning_key),
        "keys": table.key_headings(catalogue),
        "value": catalogue.say(f"col_{table.value_name}"),
        "rows": table.format_rows(catalogue, _MOST_LISTED),
        "cut": remark,
    }
