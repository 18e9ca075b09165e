"""Means, quantiles and distribution functions.

Computed from the tables of a release, with intervals.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from leastnoise._charts import Axis, Dots, Picture, chart_for, dots, in_digits, vega_lite
from leastnoise._domain import Domain, Weighted
from leastnoise._estimation import DIVISORS, HasLeastSquares, cdf, means, minimal_draws, quantiles
from leastnoise._frames import Columns, key_columns
from leastnoise._release._options import Options, exact_rule, labels_with_other
from leastnoise._release._tables import MOST_SHOWN, LazySequence, ResultTable, multiples
from leastnoise._release._texts import Texts, statistic_words, texts
from leastnoise._trusted.check import InputError, html_facts, number_text
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import Statistic, Workload

BEYOND = ("may_be_below", "may_be_above")
"""Columns of quantiles: 1 where the value may lie below ``low``, or above ``high``, beyond the bounds, else 0."""
NUMBERS = (
    "mean",
    "quantile",
    "share",
    "std_error",
    "low",
    "high",
    "sum",
    "count",
    "sum_of_weights",
    "up_to",
    *BEYOND,
)
MOST_DOTS = 200


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class StatisticTable(ResultTable):
    """A computed statistic with intervals, by group.

    Of quantiles and functions, a value for every share or cell.
    """

    statistic: Statistic
    domain: Domain
    values: FloatArray
    further: Mapping[str, FloatArray] = field(default_factory=dict)

    @property
    def meaning_key(self) -> str:
        """The key of the sentence that says how it was computed."""
        weighted = "_weighted" if "sum_of_weights" in self.further else ""
        return f"meta_{self.statistic.kind}{weighted}"

    def key_columns(self) -> list[str]:
        """The key columns.

        A number is appended to a name that clashes with a column of numbers.
        """
        if self.statistic.form.along:
            return key_columns(self.attributes, NUMBERS)
        names = key_columns(self.attributes[: len(self.statistic.by)], NUMBERS)
        return [*names, *self.attributes[len(names) :]]

    def numbers(self) -> Columns:
        """The columns of numbers, flat in row-major order."""
        columns = {self.value_name: self.values, "low": self.low, "high": self.high, **self.further}
        return {
            name: np.ascontiguousarray(np.broadcast_to(values, self.values.shape)).reshape(-1)
            for name, values in columns.items()
        }

    def rows(
        self, most: int | None = None
    ) -> Iterator[tuple[tuple[str, ...], tuple[float, float, float]]]:
        """Yield the first values (None for all).

        The labels of their keys, then value, low and high.
        """
        numbers = zip(
            *(values.reshape(-1)[:most].tolist() for values in (self.values, self.low, self.high)),
            strict=True,
        )
        keys = [
            np.array(along, object)[index[:most]]
            for along, index in zip(self.shown, self.indices(), strict=True)
        ]
        return zip(zip(*keys, strict=True) if keys else [()], numbers, strict=True)

    def written(self, lang: Texts, most: int) -> list[list[str]]:
        """Return the first rows as texts with significant digits.

        Keys, value, interval, with the digits that the noise leaves meaningful.
        """
        form, groups = self.statistic.form, len(self.statistic.by)
        beyond = [self.further[name].reshape(-1) for name in BEYOND if form.at_shares]
        rows = []
        for row, (names, numbers) in enumerate(self.rows(most)):
            shares = map(lang.local, names[groups:]) if form.at_shares else names[groups:]
            value, interval = shown_interval(lang, *numbers, exact=form.at_shares)
            for column, words in zip(beyond, ("or_less", "or_more"), strict=False):
                if column[row]:
                    interval = lang.say(words, interval=interval)
            rows.append([*names[:groups], *shares, value, interval])
        return rows

    def headings(self, lang: Texts) -> tuple[str, ...]:
        """The headings of the keys.

        That of shares is no attribute, and is translated.
        """
        return (
            (*self.attributes[:-1], lang.say("col_share"))
            if self.statistic.form.at_shares
            else self.attributes
        )

    def chart(self, lang: Texts) -> str:
        """The name of its chart, empty for none.

        Dots for means and quantiles, lines for functions, or what suits.
        """
        if self.statistic.form.along:
            chart = chart_for(self.picture(lang))
            return "" if chart is None or chart.name == "largest" else chart.name
        return "dots" if 1 < self.cells <= MOST_DOTS else ""

    def spec(self, lang: Texts) -> dict[str, Any] | None:
        """Its chart, as Vega-Lite; None for a single number, or too many."""
        if not self.chart(lang):
            return None
        if self.statistic.form.along:
            return vega_lite(self.picture(lang))
        every, groups, at_shares = (
            lang.say("all_rows"),
            len(self.statistic.by),
            self.statistic.form.at_shares,
        )
        rows = tuple(
            (", ".join(names[:groups]) or every, lang.local(", ".join(names[groups:])), *ends)
            for names, ends in self.rows()
        )
        title = lang.say(f"name_{self.statistic.kind}", of=self.statistic.of)
        return dots(
            Dots(
                title=title,
                groups=self.statistic.groups_name,
                rows=rows,
                series=lang.say("col_share") if at_shares else "",
            )
        )

    def picture(self, lang: Texts) -> Picture:
        """A distribution function as the picture of a table."""
        groups = [
            Axis(name=name, labels=along)
            for name, along in zip(self.attributes[:-1], self.shown, strict=False)
        ]
        numbers = Axis(
            name=self.attributes[-1],
            labels=self.shown[-1],
            kind="up_to",
            high=self.further["up_to"],
        )
        return Picture(
            name=statistic_words(self.statistic, lang),
            axes=(*groups, numbers),
            answer=self.values,
            low=self.low,
            high=self.high,
            unit=lang.say("share_of_rows"),
            value=lang.value,
            number=lang.number,
            up_to=lang.say("up_to"),
        )

    def __repr__(self) -> str:
        if self.cells > 1:
            return f"StatisticTable({self.id} {self.name!r}: {texts().some('answers', self.cells)})"
        ends = (
            in_digits(float(values.reshape(-1)[0])) for values in (self.values, self.low, self.high)
        )
        return "StatisticTable({} {!r}: {}, {} to {})".format(self.id, self.name, *ends)

    def _repr_html_(self) -> str:
        rows = []
        for names, numbers in self.rows(MOST_SHOWN):
            value, low, high = map(in_digits, numbers)
            rows.append((", ".join(names) or "all", f"{value} ({low} to {high})"))
        more = (
            [("...", f"{self.cells - MOST_SHOWN:,} more; .frame() has all")]
            if self.cells > MOST_SHOWN
            else []
        )
        return html_facts(repr(self), [*rows, *more])


def shown_interval(
    lang: Texts, value: float, low: float, high: float, *, exact: bool
) -> tuple[str, str]:
    """Write a value and its interval.

    Ends of cells, as quantiles have, are exact and keep all digits.
    """
    if math.isnan(value):
        return lang.number(value), ""
    spread = (high - low) / 8
    whole = exact and value.is_integer()
    shown = lang.number(value, spread) if spread > 0 and not whole else lang.local(in_digits(value))
    ends = [
        lang.number(end, spread) if spread > 0 and not exact else lang.local(in_digits(end))
        for end in (low, high)
    ]
    return shown, lang.say("from_to", low=ends[0], high=ends[1])


@dataclass(eq=False, repr=False)
class Statistics(LazySequence[StatisticTable]):
    """The statistics of a release, each computed when first used.

    By position, by id (``"s1"``) or by name.
    """

    _called: ClassVar[str] = "statistic"
    source: HasLeastSquares
    workload: Workload
    options: Options
    library: str | None = None

    def __post_init__(self) -> None:
        self._made: dict[int, StatisticTable] = {}
        names = [
            (key, position)
            for position, asked in enumerate(self.workload.statistics)
            for key in (f"s{position + 1}", asked.name)
        ]
        self._positions = dict(reversed(names))  # of equal names the first

    def __len__(self) -> int:
        return len(self.workload.statistics)

    def has(self, key: str) -> bool:
        """Whether one is called so."""
        return key in self._positions

    def position(self, key: str) -> int:
        """The position of a statistic, by id or name."""
        if not self.has(key):
            known = (
                ", ".join(
                    f"s{number} ({asked.name})"
                    for number, asked in enumerate(self.workload.statistics, 1)
                )
                or "none"
            )
            raise InputError(
                f"A statistic must be called by its id or name; got {key!r}. This release has "
                f"{known}."
            )
        return self._positions[key]

    def _make(self, position: int) -> StatisticTable:
        if position not in self._made:
            asked, options = self.workload.statistics[position], self.options
            keys, values = _estimated(self.source, asked, options.level, self.workload)
            if "further" in values:
                values = _published(values, options)
            self._made[position] = StatisticTable(
                id=f"s{position + 1}",
                name=asked.name,
                of=_unit_name(self.workload.domain, asked),
                value_name=asked.form.column,
                attributes=(*asked.keys, *keys),
                statistic=asked,
                domain=self.workload.domain,
                library=self.library,
                texts=labels_with_other(options, self.workload.domain),
                **values,
            )
        return self._made[position]


def _unit_name(domain: Domain, asked: Statistic) -> str:
    """Return whose unit the values of a statistic have: a measure, an attribute, or shares."""
    if asked.form.along:
        return "share"
    measure = domain.measure(asked.of) if asked.form.of_measure else None
    if not isinstance(measure, Weighted):
        return asked.of
    names = [name for name, known in domain.measures.items() if known == measure.of]
    return names[0] if names else asked.of


def _estimated(
    source: HasLeastSquares, asked: Statistic, level: float, workload: Workload
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Compute a statistic.

    Extra keys, labels, values, ends of intervals and further columns.
    """
    if asked.kind == "means":
        mean = means(source, asked.of, by=asked.along, level=level)
        further = {"std_error": mean.std_error, "sum": mean.sums, mean.divisor: mean.counts}
        return (), {
            "labels": mean.labels,
            "values": mean.mean,
            "low": mean.low,
            "high": mean.high,
            "further": further,
        }
    (product,) = workload.tables_of(asked)
    along = dict(zip(product.attributes, product.labels, strict=True))
    if asked.kind == "quantiles":
        estimated = quantiles(
            source, asked.of, [float(share) for share in asked.at], by=asked.along, level=level
        )
        labels = (
            *(along[name] for name in asked.by),
            tuple(number_text(share) for share in asked.at),
        )
        columns = np.array(
            [
                (
                    quantile.value,
                    quantile.low,
                    quantile.high,
                    float(quantile.may_be_below),
                    float(quantile.may_be_above),
                )
                for quantile in estimated
            ]
        )
        values, low, high, *beyond = columns.T.reshape(len(columns.T), *map(len, labels))
        return ("share",), {
            "labels": labels,
            "values": values,
            "low": low,
            "high": high,
            "further": dict(zip(BEYOND, beyond, strict=True)),
        }
    made = cdf(
        source,
        asked.of,
        by=asked.along,
        level=level,
        draws=minimal_draws(source.least_squares(), level),
    )
    labels = (*made.labels, along[asked.of][: len(made.values)])
    return (asked.of,), {
        "labels": labels,
        "values": made.share,
        "low": made.low,
        "high": made.high,
        "further": {"up_to": made.values},
    }


def _published(made: dict[str, Any], options: Options) -> dict[str, Any]:
    """Round sums and counts beside means, and suppress means of small groups.

    As the options ask; other statistics are unchanged.
    """
    (step, least), further = exact_rule(options), made["further"]
    divisor = next((name for name in DIVISORS if name in further), None)
    if divisor is None:
        return made
    gone = (
        np.zeros(made["values"].shape, dtype=np.bool_)
        if least is None
        else further[divisor] < float(least)
    )
    rounded = {
        name: multiples(values, step) if name in {"sum", divisor} else values
        for name, values in further.items()
    }
    rest = {name: np.where(gone, np.nan, made[name]) for name in ("values", "low", "high")}
    return {
        **made,
        **rest,
        "further": {name: np.where(gone, np.nan, array) for name, array in rounded.items()},
    }
