"""Means, quantiles, distribution functions and SQL answers.

Computed from the tables of a release, with intervals.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from leastnoise._charts import (
    Axis,
    DotPlot,
    Picture,
    choose_chart,
    draw_chart,
    draw_dots,
    format_digits,
)
from leastnoise._domain import Domain, UnitCount, Weighted
from leastnoise._estimation import DIVISORS, HasLeastSquares, cdf, means, minimal_draws, quantiles
from leastnoise._frames import Columns, UniqueNames, name_key_columns
from leastnoise._release._options import Options, display_texts, rounding_rule
from leastnoise._release._tables import (
    MOST_SHOWN_CELLS,
    LazySequence,
    ResultTable,
    round_to_multiples,
)
from leastnoise._release._texts import Catalogue, load_catalogue, statistic_title
from leastnoise._trusted.check import InputError, html_facts, number_text, refuse
from leastnoise._trusted.check.arrays import Array, FloatArray
from leastnoise._workload import Aggregate, Grouped, Statement, Statistic, Workload, read_statements

AnswerWorkload = Callable[[Workload], tuple[FloatArray, FloatArray, FloatArray]]
"""From the workload of one column of a statement to its answers and the lower and upper ends of their intervals, one axis an attribute."""


def read_statement(workload: Workload, unit: str | None, text: str) -> Statement:
    """Read a text that holds one SQL statement, over the domain of a workload."""
    once = UnitCount()  # of the attributes of such a count the rows of a unit agree
    agree = {
        name
        for product in workload
        if product.measure and product.domain.measure(product.measure) == once
        for name in product.attributes
    }
    read = read_statements(workload.domain, [text], unit, sorted(agree))
    if len(read) != 1:
        raise refuse("the SQL that a table answers", f"{len(read)} statements", "one")
    return read[0]


def find_in_workload(workload: Workload, asked: Workload) -> int | None:
    """Return the position of a column's statistic or table in a workload.

    None if the workload lacks it.
    """
    if asked.statistics:
        known = [replace(statistic, size=None, target=None) for statistic in workload.statistics]
        return known.index(asked.statistics[0]) if asked.statistics[0] in known else None
    questions, question = [product.table_key for product in workload], asked.products[0].table_key
    return questions.index(question) if question in questions else None


def check_statements(workload: Workload, unit: str | None, texts: Sequence[str]) -> None:
    """Raise for statements that need a table or statistic the plan lacks.

    Before anything is paid.
    """
    for text in texts:
        statement = read_statement(workload, unit, text)
        for asked in (
            statement.asked(aggregate, grouping)
            for grouping in statement.sets
            for aggregate in statement.aggregates
        ):
            if find_in_workload(workload, asked) is None:
                name = (asked.statistics or asked.products)[0].name
                raise InputError(
                    f"The statement {text!r} needs {name}, which the plan does not have. Ask for "
                    "it with leastnoise.sql."
                )


def answer_statement(statement: Statement, numbers: AnswerWorkload) -> Columns:
    """Return the columns of SELECT by name, one row for each group.

    Beside an answer ``n`` stands its interval, ``n_low`` and ``n_high``.

    Guarantees: groups without rows are included; a column that is not in a set of groups is None
        there, as in SQL.
    """
    parts = [_grouping_columns(statement, grouping, numbers) for grouping in statement.sets]
    names = UniqueNames(set())
    columns: Columns = {}
    for at, column in enumerate(statement.columns):
        together = [
            np.concatenate(arrays) for arrays in zip(*(part[at] for part in parts), strict=True)
        ]
        if isinstance(column, Grouped):
            kinds = {type(value) for value in together[0].tolist() if value is not None}
            if len(kinds) > 1:  # whole numbers beside a cell of other values
                together = [
                    np.array(
                        [None if value is None else str(value) for value in together[0].tolist()],
                        dtype=object,
                    )
                ]
        called = (
            [column.name]
            if isinstance(column, Grouped)
            else [column.name, f"{column.name}_low", f"{column.name}_high"]
        )
        columns |= {
            names.make_unique(name): values for name, values in zip(called, together, strict=True)
        }
    names_given = [*columns]
    starts = np.cumsum(
        [0, *(1 if isinstance(column, Grouped) else 3 for column in statement.columns)]
    )
    order = [*range(len(columns[names_given[0]]))]
    for at, down in reversed(statement.order):  # what is not there comes last
        values = columns[names_given[starts[at]]].tolist()
        known = [row for row in order if values[row] is not None and values[row] == values[row]]
        are_texts = not all(isinstance(values[row], (int, float)) for row in known)
        keys = [str(value) if are_texts else value for value in values]
        known.sort(key=keys.__getitem__, reverse=down)
        there = {*known}
        order = [*known, *(row for row in order if row not in there)]
    return {name: values[order[: statement.limit]] for name, values in columns.items()}


def _grouping_columns(
    statement: Statement, grouping: Sequence[int], numbers: AnswerWorkload
) -> list[list[Array]]:
    """Return the arrays of every column for one set of groups.

    One for a key, three for an answer.
    """
    along = statement.group_keys(grouping, statement.condition)
    rows = [dict(zip(along, row, strict=True)) for row in product(*along.values())]
    made: list[list[Array]] = []
    for column in statement.columns:
        if isinstance(column, Aggregate):
            made.append(_answer_columns(statement, column, grouping, along, numbers))
            continue
        group = statement.groups.index(column)
        of_attribute = [at for at in grouping if statement.groups[at].attribute == column.attribute]
        values = [
            row[column.attribute][of_attribute.index(group)] if group in of_attribute else None
            for row in rows
        ]
        made.append([np.array([*values, None], dtype=object)[:-1]])
    return made


def _answer_columns(
    statement: Statement,
    aggregate: Aggregate,
    grouping: Sequence[int],
    along: Mapping[str, Sequence[object]],
    numbers: AnswerWorkload,
) -> list[Array]:
    """Return the answer of every group and the ends of its interval.

    If FILTER leaves no cell, counts and sums are exactly 0.
    """
    keys_along = statement.group_keys(grouping, statement.condition_of(aggregate))
    wanted = [
        np.array([keys.index(key) if key in keys else -1 for key in along.get(name, keys)])
        for name, keys in keys_along.items()
    ]
    gone = np.zeros([len(at) for at in wanted], dtype=np.bool_)
    for axis, at in enumerate(wanted):
        gone |= (at < 0).reshape([-1 if axis == other else 1 for other in range(len(wanted))])
    empty = np.nan if aggregate.kind in ("mean", "quantile") else 0.0
    shape = tuple(map(len, keys_along.values()))
    taken = (
        values.reshape(shape)[np.ix_(*wanted)] if wanted else values.reshape(())
        for values in numbers(statement.asked(aggregate, grouping))
    )
    return [np.where(gone, empty, values).reshape(-1) for values in taken]


BEYOND_COLUMNS = ("may_be_below", "may_be_above")
"""Columns of quantiles: 1 where the value may lie below ``low``, or above ``high``, beyond the bounds, else 0."""
NUMBER_COLUMNS = (
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
    *BEYOND_COLUMNS,
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
    extra_columns: Mapping[str, FloatArray] = field(default_factory=dict)

    @property
    def meaning_key(self) -> str:
        """The key of the sentence that says how it was computed."""
        weighted = "_weighted" if "sum_of_weights" in self.extra_columns else ""
        return f"meta_{self.statistic.kind}{weighted}"

    def key_columns(self) -> list[str]:
        """The key columns.

        A number is appended to a name that clashes with a column of numbers.
        """
        if self.statistic.form.along:
            return name_key_columns(self.attributes, NUMBER_COLUMNS)
        names = name_key_columns(self.attributes[: len(self.statistic.by)], NUMBER_COLUMNS)
        return [*names, *self.attributes[len(names) :]]

    def numbers(self) -> Columns:
        """The columns of numbers, flat in row-major order."""
        columns = {
            self.value_name: self.values,
            "low": self.low,
            "high": self.high,
            **self.extra_columns,
        }
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
            for along, index in zip(self.display_labels, self.indices(), strict=True)
        ]
        return zip(zip(*keys, strict=True) if keys else [()], numbers, strict=True)

    def format_rows(self, catalogue: Catalogue, most: int) -> list[list[str]]:
        """Return the first rows as texts with significant digits.

        Keys, value, interval, with the digits that the noise leaves meaningful.
        """
        form, groups = self.statistic.form, len(self.statistic.by)
        beyond = [self.extra_columns[name].reshape(-1) for name in BEYOND_COLUMNS if form.at_shares]
        rows = []
        for row, (names, numbers) in enumerate(self.rows(most)):
            shares = map(catalogue.localize, names[groups:]) if form.at_shares else names[groups:]
            value, interval = format_interval(catalogue, *numbers, exact=form.at_shares)
            for column, words in zip(beyond, ("or_less", "or_more"), strict=False):
                if column[row]:
                    interval = catalogue.say(words, interval=interval)
            rows.append([*names[:groups], *shares, value, interval])
        return rows

    def key_headings(self, catalogue: Catalogue) -> tuple[str, ...]:
        """The headings of the keys.

        That of shares is no attribute, and is translated.
        """
        return (
            (*self.attributes[:-1], catalogue.say("col_share"))
            if self.statistic.form.at_shares
            else self.attributes
        )

    def chart_name(self, catalogue: Catalogue) -> str:
        """The name of its chart, empty for none.

        Dots for means and quantiles, lines for functions, or what suits.
        """
        if self.statistic.form.along:
            chart = choose_chart(self.picture(catalogue))
            return "" if chart is None or chart.name == "largest" else chart.name
        return "dots" if 1 < self.cells <= MOST_DOTS else ""

    def chart_spec(self, catalogue: Catalogue) -> dict[str, Any] | None:
        """Its chart, as Vega-Lite; None for a single number, or too many."""
        if not self.chart_name(catalogue):
            return None
        if self.statistic.form.along:
            return draw_chart(self.picture(catalogue))
        every, groups, at_shares = (
            catalogue.say("all_rows"),
            len(self.statistic.by),
            self.statistic.form.at_shares,
        )
        rows = tuple(
            (
                ", ".join(names[:groups]) or every,
                catalogue.localize(", ".join(names[groups:])),
                *ends,
            )
            for names, ends in self.rows()
        )
        title = catalogue.say(f"name_{self.statistic.kind}", of=self.statistic.of)
        return draw_dots(
            DotPlot(
                title=title,
                groups=self.statistic.groups_name,
                rows=rows,
                series=catalogue.say("col_share") if at_shares else "",
            )
        )

    def picture(self, catalogue: Catalogue) -> Picture:
        """A distribution function as the picture of a table."""
        groups = [
            Axis(name=name, labels=along)
            for name, along in zip(self.attributes[:-1], self.display_labels, strict=False)
        ]
        numbers = Axis(
            name=self.attributes[-1],
            labels=self.display_labels[-1],
            kind="up_to",
            high=self.extra_columns["up_to"],
        )
        return Picture(
            name=statistic_title(self.statistic, catalogue),
            axes=(*groups, numbers),
            answer=self.values,
            low=self.low,
            high=self.high,
            unit=catalogue.say("share_of_rows"),
            format_answer=catalogue.format_answer,
            format_number=catalogue.format_number,
            up_to=catalogue.say("up_to"),
        )

    def __repr__(self) -> str:
        if self.cells > 1:
            return f"StatisticTable({self.id} {self.name!r}: {load_catalogue().say_count('answers', self.cells)})"
        ends = (
            format_digits(float(values.reshape(-1)[0]))
            for values in (self.values, self.low, self.high)
        )
        return "StatisticTable({} {!r}: {}, {} to {})".format(self.id, self.name, *ends)

    def _repr_html_(self) -> str:
        rows = []
        for names, numbers in self.rows(MOST_SHOWN_CELLS):
            value, low, high = map(format_digits, numbers)
            rows.append((", ".join(names) or "all", f"{value} ({low} to {high})"))
        more = (
            [("...", f"{self.cells - MOST_SHOWN_CELLS:,} more; .frame() has all")]
            if self.cells > MOST_SHOWN_CELLS
            else []
        )
        return html_facts(repr(self), [*rows, *more])


def format_interval(
    catalogue: Catalogue, value: float, low: float, high: float, *, exact: bool
) -> tuple[str, str]:
    """Write a value and its interval.

    Ends of cells, as quantiles have, are exact and keep all digits.
    """
    if math.isnan(value):
        return catalogue.format_number(value), ""
    spread = (high - low) / 8
    whole = exact and value.is_integer()
    shown = (
        catalogue.format_number(value, spread)
        if spread > 0 and not whole
        else catalogue.localize(format_digits(value))
    )
    ends = [
        catalogue.format_number(end, spread)
        if spread > 0 and not exact
        else catalogue.localize(format_digits(end))
        for end in (low, high)
    ]
    return shown, catalogue.say("from_to", low=ends[0], high=ends[1])


@dataclass(eq=False, repr=False)
class Statistics(LazySequence[StatisticTable]):
    """The statistics of a release, each computed when first used.

    By position, by id (``"s1"``) or by name.
    """

    _item_name: ClassVar[str] = "statistic"
    source: HasLeastSquares
    workload: Workload
    options: Options
    library: str | None = None

    def __post_init__(self) -> None:
        self._computed: dict[int, StatisticTable] = {}
        names = [
            (key, position)
            for position, asked in enumerate(self.workload.statistics)
            for key in (f"s{position + 1}", asked.name)
        ]
        self._positions = dict(reversed(names))  # of equal names the first

    def __len__(self) -> int:
        return len(self.workload.statistics)

    def has_key(self, key: str) -> bool:
        """Whether one is called so."""
        return key in self._positions

    def position(self, key: str) -> int:
        """The position of a statistic, by id or name."""
        if not self.has_key(key):
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

    def _compute(self, position: int) -> StatisticTable:
        if position not in self._computed:
            asked, options = self.workload.statistics[position], self.options
            keys, values = _compute_statistic(self.source, asked, options.level, self.workload)
            if "extra_columns" in values:
                values = _round_statistic(values, options)
            self._computed[position] = StatisticTable(
                id=f"s{position + 1}",
                name=asked.name,
                of=_name_unit(self.workload.domain, asked),
                value_name=asked.form.column,
                attributes=(*asked.keys, *keys),
                statistic=asked,
                domain=self.workload.domain,
                library=self.library,
                texts=display_texts(options, self.workload.domain),
                **values,
            )
        return self._computed[position]


def _name_unit(domain: Domain, asked: Statistic) -> str:
    """Return whose unit the values of a statistic have: a measure, an attribute, or shares."""
    if asked.form.along:
        return "share"
    measure = domain.measure(asked.of) if asked.form.of_measure else None
    if not isinstance(measure, Weighted):
        return asked.of
    names = [name for name, known in domain.measures.items() if known == measure.of]
    return names[0] if names else asked.of


def _compute_statistic(
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
            "extra_columns": further,
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
            "extra_columns": dict(zip(BEYOND_COLUMNS, beyond, strict=True)),
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
        "extra_columns": {"up_to": made.values},
    }


def _round_statistic(made: dict[str, Any], options: Options) -> dict[str, Any]:
    """Round sums and counts beside means, and suppress means of small groups.

    As the options ask; other statistics are unchanged.
    """
    (step, least), further = rounding_rule(options), made["extra_columns"]
    divisor = next((name for name in DIVISORS if name in further), None)
    if divisor is None:
        return made
    gone = (
        np.zeros(made["values"].shape, dtype=np.bool_)
        if least is None
        else further[divisor] < float(least)
    )
    rounded = {
        name: round_to_multiples(values, step) if name in {"sum", divisor} else values
        for name, values in further.items()
    }
    rest = {name: np.where(gone, np.nan, made[name]) for name in ("values", "low", "high")}
    return {
        **made,
        **rest,
        "extra_columns": {name: np.where(gone, np.nan, array) for name, array in rounded.items()},
    }
