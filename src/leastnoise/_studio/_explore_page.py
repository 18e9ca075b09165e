"""The page that explores a release: tables of any attributes and sums of their cells, computed from the measurements alone."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._charts import draw_chart
from leastnoise._release import (
    Catalogue,
    Release,
    Table,
    describe_rounding,
    list_answer_notices,
    load_catalogue,
    round_table,
    statistic_title,
    table_title,
)
from leastnoise._session import read_release
from leastnoise._studio._pages import Page, action, assets, chart, get, shown
from leastnoise._trusted.check import InputError, message, one_of, whole
from leastnoise._workload import level, level_names, queries

MOST_CELLS = 4096
_TOO_LARGE = "A table here may have at most {most} cells; this one would have {cells}. Pick fewer attributes."
_NO_ERROR = "No error is known for sums of cells from a release by {strategy!r}, which looked at the data. Use `leastnoise answer`."
_MOST_MARKS = 2000
_MOST_LISTED = 200  # values of a statistic
KINDS = ("identity", "prefix")
Question = tuple[tuple[str, str], ...]


class Exploring:
    """Answers from one release; the last tables and covariances are kept."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.table = lru_cache(maxsize=8)(self._table)
        self._covariances = lru_cache(maxsize=2)(release.covariances)

    def first(self) -> tuple[Question, str | None]:
        """Return the first table to show: one that the workload has if the page can show it, else one attribute, else the total."""
        products, domain = self.release.workload.products, self.release.plan.domain
        offered: list[tuple[Question, str | None]] = []
        for product in products:
            along = tuple(zip(product.attributes, product.query_sets, strict=True))
            if along and all(sets.form.named or sets.kind in KINDS for _, sets in along):
                offered.append((tuple((name, sets.word) for name, sets in along), product.measure))
        alone = [
            ((name, kind),)
            for name in domain.names
            for kind in (*KINDS, *level_names(domain.kind(name)))
        ]
        for measure in dict.fromkeys(product.measure for product in products):
            offered += [(asked, measure) for asked in (*alone, ())]
        for asked, measure in offered:
            with suppress(InputError):
                self.table(asked, measure)
                return asked, measure
        return (), None

    def _table(self, asked: Question, measure: str | None) -> Table:
        domain = self.release.plan.domain
        for name, kind in asked:
            one_of("an attribute", name, domain.names)
            one_of(
                message("what is asked of {name}", name=name),
                kind,
                (*KINDS, *level_names(domain.kind(name))),
            )
        questions = queries(
            domain,
            {name: kind if kind in KINDS else level(kind) for name, kind in asked},
            sum=measure,
        )
        if questions.rows > MOST_CELLS:
            raise InputError(message(_TOO_LARGE, most=MOST_CELLS, cells=questions.rows))
        (table,) = self.release.answer(questions)
        return table

    def sum(self, asked: Question, measure: str | None, cells: Sequence[int]) -> Table:
        """Return the sum of some cells of a table as a table of one answer with its exact error."""
        table = self.table(asked, measure)
        chosen = [whole("a cell", cell, 0, table.cells - 1) for cell in cells]
        if not chosen:
            raise InputError("Pick at least one cell.")
        if not self.release.finding.linear:
            raise InputError(message(_NO_ERROR, strategy=self.release.plan.strategy))
        weights = np.zeros(table.cells)
        weights[chosen] = 1.0
        variance = np.array([weights @ self._covariances(table.product, table.product) @ weights])
        answer, std = (
            np.array([weights @ table.answer.reshape(-1)]),
            self.release.least_squares().std(measure, variance),
        )
        interval = self.release.interval
        half = interval.multiplier * std + np.where(
            std > 0, interval.half_step * table.product.unit, 0.0
        )
        total = replace(
            table,
            approximation_std=None,
            answer=answer,
            noise_std=std,
            low=answer - half,
            high=answer + half,
        )
        return round_table(total, self.release.options)


def exploring_page(path: Path) -> Page:
    """Return the page for one release."""
    exploring = Exploring(read_release(path))
    release = exploring.release
    said, names = load_catalogue(release.options.language), release.plan.domain.names

    def asked(body: dict[str, Any]) -> tuple[Question, str | None]:
        wanted, measure = body.get("asked"), body.get("measure") or None
        if not isinstance(wanted, dict) or not (measure is None or isinstance(measure, str)):
            raise InputError("A question must have an object of attributes, and a measure or none.")
        for name in wanted:
            one_of("an attribute", name, names)
        return tuple((name, str(wanted[name])) for name in names if wanted.get(name)), measure

    def table(body: dict[str, Any]) -> Any:
        made = round_table(exploring.table(*asked(body)), release.options)
        numbers = zip(
            *(
                values.reshape(-1).tolist()
                for values in (made.answer, made.margins, made.low, made.high)
            ),
            strict=True,
        )
        rows = [
            [
                cell,
                said.format_number(answer, margin),
                said.format_error(margin),
                said.format_number(low, margin),
                said.format_number(high, margin),
            ]
            for cell, (answer, margin, low, high) in zip(made.cell_names(), numbers, strict=True)
        ]
        name = table_title(made.product, said)
        drawn = chart(
            draw_chart(made.picture(said), _MOST_MARKS), said, said.say("st_chart", name=name)
        )
        return {"name": name, "rows": rows, **drawn}

    def total(body: dict[str, Any]) -> Any:
        cells = body.get("cells")
        if not isinstance(cells, list):
            raise InputError("A sum must have a list of cells.")
        added = exploring.sum(*asked(body), cells)
        numbers, margin = (
            {name: float(values.item()) for name, values in added.numbers().items()},
            float(added.margins.item()),
        )
        low, high = (said.format_number(numbers[end], margin) for end in ("low", "high"))
        count = said.say_count("st_cells", len(set(cells)))
        words = said.say(
            "st_sum_is",
            cells=count,
            value=said.format_answer(numbers["answer"], margin),
            low=low,
            high=high,
        )
        kept = {name: numbers[name] for name in ("answer", "noise_std", "low", "high")}
        return {
            "sum": words,
            **{name: None if math.isnan(value) else value for name, value in kept.items()},
        }

    def statistic(body: dict[str, Any]) -> Any:
        key = body.get("statistic")
        if not isinstance(key, str):
            raise InputError("A statistic must be called by its id, such as s1.")
        made = release.statistics[key]
        return chart(
            made.chart_spec(said),
            said,
            said.say("st_chart", name=statistic_title(made.statistic, said)),
        )

    # Made now, so that a release that cannot be shown is refused when it is opened.
    page = shown("exploring.html", t=said, name=path.resolve().name, **_choices(exploring, said))
    return Page(
        [
            get("/", lambda: page),
            *assets("exploring.js", charts=True),
            *(
                action(f"/{name}", do, said)
                for name, do in (("table", table), ("sum", total), ("statistic", statistic))
            ),
        ]
    )


def _choices(exploring: Exploring, said: Catalogue) -> dict[str, Any]:
    """Return what the template needs: the choices of the form, notices, and the statistics of the release as texts."""
    release, domain = exploring.release, exploring.release.plan.domain
    first, measure = exploring.first()
    warnings = [] if release.private else [said.say("not_private")]
    words = [
        ("", said.say("st_left_out")),
        *zip(KINDS, (said.say("st_values"), said.say("name_along_prefix")), strict=True),
    ]
    percent = said.format_percent(release.level)
    return {
        "kinds": {
            name: [*words, *((level, level) for level in level_names(domain.kind(name)))]
            for name in domain.names
        },
        "first": dict(first),
        "measures": [
            ("", said.say("st_counts")),
            *((measure, measure) for measure in release.workload.measures if measure is not None),
        ],
        "measure": measure or "",
        "lead": said.say("st_explore", percent=percent),
        "notices": [
            *warnings,
            *filter(None, [describe_rounding(release.options, said)]),
            *list_answer_notices(release, said),
        ],
        "percent": percent,
        "statistics": [
            {
                "id": made.id,
                "name": statistic_title(made.statistic, said),
                "meaning": said.say(made.meaning_key),
                "keys": made.key_headings(said),
                "value": said.say(f"col_{made.value_name}"),
                "rows": made.format_rows(said, _MOST_LISTED),
                "cut": said.say("rows_first", count=_MOST_LISTED, all=made.cells, file=made.id)
                if made.cells > _MOST_LISTED
                else "",
            }
            for made in release.statistics
        ],
    }
