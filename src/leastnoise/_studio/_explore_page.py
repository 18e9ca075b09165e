"""The page that explores a release: its routes, and what they show."""

import math
from functools import cache
from pathlib import Path
from typing import Any

from leastnoise._charts import spoken, vega_lite
from leastnoise._check import InputError, InternalError
from leastnoise._release import StatisticTable, Table, Texts, notices_of_all, picture, rounding_words, statistic_words, table_words, texts
from leastnoise._session import read_release
from leastnoise._studio._exploring import KINDS, Asked, Exploring, question
from leastnoise._studio._pages import Page, action, asset, html, shown, text
from leastnoise._workload import level_names

_MOST_MARKS = 2000
_MOST_LISTED = 200  # values of a statistic


def exploring_page(place: Path) -> Page:
    """The page for one release."""
    exploring = Exploring(read_release(place))
    release = exploring.release
    said = texts(release.options.language)
    domain = release.plan.domain

    def asked(body: dict[str, Any]) -> tuple[Asked, str | None]:
        wanted, measure = body.get("asked"), body.get("measure") or None
        if not isinstance(wanted, dict) or not (measure is None or isinstance(measure, str)):
            raise InputError("A question must have an object of attributes, and a measure or none.")
        return question(wanted, domain.names), measure

    def table(body: dict[str, Any]) -> Any:
        return _table(exploring.shown(*asked(body)), said)

    def total(body: dict[str, Any]) -> Any:
        cells = body.get("cells")
        if not isinstance(cells, list):
            raise InputError("A sum must have a list of cells.")
        found = exploring.sum(*asked(body), cells)
        margin = max(found.high - found.answer, found.answer - found.low)
        ends = [said.number(end, margin) for end in (found.low, found.high)]
        words = said.say(
            "st_sum_is", cells=said.some("st_cells", found.cells), value=said.value(found.answer, margin), low=ends[0], high=ends[1]
        )
        numbers = {"answer": found.answer, "noise_std": found.noise_std, "low": found.low, "high": found.high}
        return {"sum": words, **{name: None if math.isnan(value) else value for name, value in numbers.items()}}

    def statistic(body: dict[str, Any]) -> Any:
        key = body.get("statistic")
        if not isinstance(key, str):
            raise InputError("A statistic must be called by its id, such as s1.")
        made = release.statistics[key]
        return {"chart": _spoken(made.spec(said), said), "alt": said.say("st_chart", name=statistic_words(made.statistic, said))}

    return Page(
        routes=[
            html("/", lambda: shown("exploring.html", t=said, name=place.resolve().name, **_choices(exploring, said))),
            *(asset(name) for name in ("studio.css", "asking.js", "exploring.js")),
            text("/vega.js", _vega, "text/javascript"),
            action("/table", table),
            action("/sum", total),
            action("/statistic", statistic),
        ]
    )


def _choices(exploring: Exploring, said: Texts) -> dict[str, Any]:
    release, domain = exploring.release, exploring.release.plan.domain
    first, measure = exploring.first()
    warnings = [] if release.private else [said.say("not_private")]
    words = [("", said.say("st_left_out")), *zip(KINDS, (said.say("st_values"), said.say("st_up_to")), strict=True)]
    return {
        "kinds": {name: [*words, *((one, one) for one in level_names(domain.kind(name)))] for name in domain.names},
        "first": dict(first),
        "measures": [("", said.say("st_counts")), *((one, one) for one in release.workload.measures if one is not None)],
        "measure": measure or "",
        "lead": said.say("st_explore", percent=said.percent(release.level)),
        "notices": [*warnings, *filter(None, [rounding_words(release.options, said)]), *notices_of_all(release, said)],
        "percent": said.percent(release.level),
        "statistics": [_statistic(made, said) for made in release.statistics],
    }


def _statistic(made: StatisticTable, said: Texts) -> dict[str, Any]:
    """Means, quantiles or a distribution function, as texts."""
    cut = said.say("rows_first", count=_MOST_LISTED, all=made.cells, file=made.id) if made.cells > _MOST_LISTED else ""
    return {
        "id": made.id,
        "name": statistic_words(made.statistic, said),
        "meaning": said.say(f"meta_{made.statistic.kind}"),
        "keys": made.headings(said),
        "value": said.say(f"col_{made.value_name}"),
        "rows": made.written(said, _MOST_LISTED),
        "cut": cut,
    }


def _table(table: Table, said: Texts) -> dict[str, Any]:
    """A table as texts, and its chart."""
    columns = (values.reshape(-1).tolist() for values in (table.answer, table.margins, table.low, table.high))
    rows = []
    for cell, answer, margin, low, high in zip(table.cell_names(), *columns, strict=True):
        rows.append(
            [
                cell or said.say("st_counts"),
                said.number(answer, margin),
                said.error(margin),
                *(said.number(end, margin) for end in (low, high)),
            ]
        )
    return {
        "name": table_words(table.product, said),
        "rows": rows,
        "chart": _spoken(vega_lite(picture(table, said), _MOST_MARKS), said),
        "alt": said.say("st_chart", name=table_words(table.product, said)),
    }


def _spoken(chart: dict[str, Any] | None, said: Texts) -> dict[str, Any] | None:
    return None if chart is None else spoken(chart, said.language)


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which the package that makes the report's pictures has with it."""
    import vl_convert

    found = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if not isinstance(found, str):
        raise InternalError("No script that draws charts was found.")
    return found
