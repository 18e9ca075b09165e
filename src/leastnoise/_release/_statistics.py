"""The means, quantiles and distribution functions of a release: made of its tables, with labels and intervals."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leastnoise._charts import Axis, Dots, Picture, chart_for, dots, in_digits, vega_lite
from leastnoise._check import InputError, html_facts, number_text
from leastnoise._check.arrays import FloatArray
from leastnoise._estimate import HasLeastSquares, cdf, few_draws, means, quantiles
from leastnoise._frames import Columns, key_columns
from leastnoise._release._names import statistic_words, with_other
from leastnoise._release._options import Options, exact_rule
from leastnoise._release._tables import MOST_SHOWN, LazySequence, Part, multiples
from leastnoise._release._texts import Texts, texts
from leastnoise._workload import Statistic, Workload

NUMBERS = ("mean", "quantile", "share", "std_error", "low", "high", "sum", "count", "up_to")
MOST_DOTS = 200


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class StatisticTable(Part):
    """What was made of a statistic: one value with an interval for every group and, of quantiles and functions, every share or cell."""

    statistic: Statistic
    values: FloatArray
    further: Mapping[str, FloatArray] = field(default_factory=dict)

    def key_columns(self) -> list[str]:
        """The columns of the keys; an attribute that is called as a column of numbers gets a number behind it."""
        if self.statistic.form.along:
            return key_columns(self.attributes, NUMBERS)
        names = key_columns(self.attributes[: len(self.statistic.by)], NUMBERS)
        return [*names, *self.attributes[len(names) :]]

    def numbers(self) -> Columns:
        """The columns of numbers, flat in row-major order."""
        columns = {self.value_name: self.values, "low": self.low, "high": self.high, **self.further}
        return {name: np.ascontiguousarray(np.broadcast_to(values, self.values.shape)).reshape(-1) for name, values in columns.items()}

    def _labelled(self, most: int | None = None) -> Iterator[tuple[tuple[str, ...], tuple[float, float, float]]]:
        """The first values: the labels of their keys, then value, low and high."""
        numbers = zip(*(values.reshape(-1)[:most].tolist() for values in (self.values, self.low, self.high)), strict=True)
        keys = [np.array(along, object)[place[:most]] for along, place in zip(self.shown, self.places(), strict=True)]
        return zip(zip(*keys, strict=True) if keys else [()], numbers, strict=True)

    def rows(self) -> list[tuple[str, str, float, float, float]]:
        """Group, share or cell (empty for means), value, low and high; the group is empty where there are none."""
        groups = len(self.statistic.by)
        return [(", ".join(names[:groups]), ", ".join(names[groups:]), *numbers) for names, numbers in self._labelled()]

    def written(self, said: Texts, most: int) -> list[list[str]]:
        """The first values with their keys and intervals, as texts in the digits that the noise leaves meaningful."""
        form, groups = self.statistic.form, len(self.statistic.by)
        rows = []
        for names, numbers in self._labelled(most):
            shares = map(said.local, names[groups:]) if form.at_shares else names[groups:]
            rows.append([*names[:groups], *shares, *shown_interval(said, *numbers, exact=form.at_shares)])
        return rows

    def headings(self, said: Texts) -> tuple[str, ...]:
        """The keys, of which a share is no attribute, in the language of the catalogue."""
        return (*self.attributes[:-1], said.say("col_share")) if self.statistic.form.at_shares else self.attributes

    def chart(self, said: Texts) -> str:
        """The name of its chart: dots for means and quantiles, lines for functions, or what suits; empty for none."""
        if self.statistic.form.along:
            chart = chart_for(self.picture(said))
            return "" if chart is None or chart.name == "largest" else chart.name
        return "dots" if 1 < self.cells <= MOST_DOTS else ""

    def spec(self, said: Texts) -> dict[str, Any] | None:
        """Its chart, as Vega-Lite; None for a single number, or too many."""
        if not self.chart(said):
            return None
        if self.statistic.form.along:
            return vega_lite(self.picture(said))
        every = said.say("all_rows")
        rows = tuple((group or every, said.local(share), value, low, high) for group, share, value, low, high in self.rows())
        words = statistic_words(self.statistic, said)
        series, what = (said.say("col_share"), self.statistic.of) if self.statistic.form.at_shares else ("", words)
        return dots(Dots(title=what, groups=self.statistic.groups_name, rows=rows, series=series))

    def picture(self, said: Texts) -> Picture:
        """A distribution function as the picture of a table."""
        groups = [Axis(name=name, labels=along) for name, along in zip(self.attributes[:-1], self.shown, strict=False)]
        numbers = Axis(name=self.attributes[-1], labels=self.shown[-1], kind="up_to", high=self.further["up_to"])
        return Picture(
            name=statistic_words(self.statistic, said),
            axes=(*groups, numbers),
            answer=self.values,
            low=self.low,
            high=self.high,
            unit=said.say("col_share"),
            value=said.value,
            number=said.number,
            up_to=said.say("up_to"),
        )

    def __repr__(self) -> str:
        if self.cells > 1:
            return f"StatisticTable({self.id} {self.name!r}: {texts().some('answers', self.cells)})"
        ends = (in_digits(float(values.reshape(-1)[0])) for values in (self.values, self.low, self.high))
        return "StatisticTable({} {!r}: {}, {} to {})".format(self.id, self.name, *ends)

    def _repr_html_(self) -> str:
        shown = [
            (", ".join(filter(None, (group, key))) or "all", value, low, high) for group, key, value, low, high in self.rows()[:MOST_SHOWN]
        ]
        rows = [(name, f"{in_digits(value)} ({in_digits(low)} to {in_digits(high)})") for name, value, low, high in shown]
        more = [("...", f"{self.cells - MOST_SHOWN:,} more; .frame() has all")] if self.cells > MOST_SHOWN else []
        return html_facts(repr(self), [*rows, *more])


def shown_interval(said: Texts, value: float, low: float, high: float, *, exact: bool) -> tuple[str, str]:
    """A value, and the ends of its interval; those of quantiles are ends of cells, exact, and written as they are."""
    if math.isnan(value):
        return said.number(value), ""
    spread = (high - low) / 8
    whole = exact and value.is_integer()
    shown = said.number(value, spread) if spread > 0 and not whole else said.local(in_digits(value))
    ends = [said.number(end, spread) if spread > 0 and not exact else said.local(in_digits(end)) for end in (low, high)]
    return shown, said.say("from_to", low=ends[0], high=ends[1])


class Statistics(LazySequence[StatisticTable]):
    """The statistics of a release, each computed once, when it is first taken: by position, by id (``"s1"``) or by name."""

    _called = "statistic"

    def __init__(self, source: HasLeastSquares, workload: Workload, options: Options, library: str | None = None) -> None:
        self.library = library
        self._source = source
        self._workload = workload
        self._options = options
        self._made: dict[int, StatisticTable] = {}
        names = [(key, position) for position, asked in enumerate(workload.statistics) for key in (f"s{position + 1}", asked.name)]
        self._positions = dict(reversed(names))  # of equal names the first

    def __len__(self) -> int:
        return len(self._workload.statistics)

    def has(self, key: str) -> bool:
        """Whether one is called so."""
        return key in self._positions

    def position(self, key: str) -> int:
        """The position of a statistic, by id or name."""
        if not self.has(key):
            known = ", ".join(f"s{number} ({asked.name})" for number, asked in enumerate(self._workload.statistics, 1)) or "none"
            raise InputError(f"A statistic must be called by its id or name; got {key!r}. This release has {known}.")
        return self._positions[key]

    def _make(self, position: int) -> StatisticTable:
        if position not in self._made:
            asked = self._workload.statistics[position]
            keys, values = _MAKERS[asked.kind](self._source, asked, self._options.level, self._workload)
            made = StatisticTable(
                id=f"s{position + 1}",
                name=asked.name,
                of="share" if asked.form.along else asked.of,
                value_name=asked.form.column,
                attributes=(*asked.keys, *keys),
                statistic=asked,
                library=self.library,
                texts=with_other(self._options, self._workload.domain),
                **values,
            )
            self._made[position] = _published(made, self._options)
        return self._made[position]


def _published(made: StatisticTable, options: Options) -> StatisticTable:
    """The sums and counts beside means are rounded as those of the tables, and small groups left out; means and shares are no counts."""
    step, least = exact_rule(options)
    if "count" not in made.further:
        return made
    gone = np.zeros(made.values.shape, dtype=np.bool_) if least is None else made.further["count"] < float(least)
    further = {name: multiples(values, step) if name in {"sum", "count"} else values for name, values in made.further.items()}
    values, low, high = (np.where(gone, np.nan, array) for array in (made.values, made.low, made.high))
    further = {name: np.where(gone, np.nan, array) for name, array in further.items()}
    return replace(made, values=values, low=low, high=high, further=further)


Made = tuple[tuple[str, ...], dict[str, Any]]
"""The key beside those of the groups, and labels, values, their intervals, and further columns."""


def _means(source: HasLeastSquares, asked: Statistic, level: float, workload: Workload) -> Made:  # noqa: ARG001 - one form for all
    made = means(source, asked.of, by=asked.along, level=level)
    further = {"std_error": made.std_error, "sum": made.sums, "count": made.counts}
    return (), {"labels": made.labels, "values": made.mean, "low": made.low, "high": made.high, "further": further}


def _quantiles(source: HasLeastSquares, asked: Statistic, level: float, workload: Workload) -> Made:
    estimated = quantiles(source, asked.of, [float(share) for share in asked.at], by=asked.along, level=level)
    (product,) = workload.tables_of(asked)
    groups = dict(zip(product.attributes, product.labels, strict=True))
    labels = (*(groups[name] for name in asked.by), tuple(number_text(share) for share in asked.at))
    columns = np.array([(quantile.value, quantile.low, quantile.high) for quantile in estimated])
    values, low, high = columns.T.reshape(3, *map(len, labels))
    return ("share",), {"labels": labels, "values": values, "low": low, "high": high}


def _cdf(source: HasLeastSquares, asked: Statistic, level: float, workload: Workload) -> Made:
    made = cdf(source, asked.of, by=asked.along, level=level, draws=few_draws(source.least_squares(), level))
    (product,) = workload.tables_of(asked)
    names = product.labels[product.attributes.index(asked.of)][: len(made.values)]
    further = {"up_to": made.values}
    return (asked.of,), {"labels": (*made.labels, names), "values": made.share, "low": made.low, "high": made.high, "further": further}


_MAKERS: Mapping[str, Callable[[HasLeastSquares, Statistic, float, Workload], Made]] = {
    "means": _means,
    "quantiles": _quantiles,
    "cdf": _cdf,
}
