"""Answer SQL statements from the tables and statistics of a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from leastnoise._domain import UnitCount
from leastnoise._frames import Columns, UniqueNames
from leastnoise._release._sql_combinations import AnswerNoise, combination_ends
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.check.arrays import Array, FloatArray
from leastnoise._workload import (
    OF_LINES,
    OF_PAIRS,
    SPREADS,
    Aggregate,
    Selection,
    SqlSettings,
    Statement,
    Statistic,
    Workload,
    answer_column,
    combination_high_column,
    combination_low_column,
    high_column,
    low_column,
    read_statements,
    run_query,
    to_array,
)

_TERMS_OF_LINES = ("intercept", "slope")  # in the order of a regression's results

Answers = tuple[FloatArray, FloatArray, FloatArray]
"""Answers, and the lower and upper ends of their intervals."""


class AnswerWorkload(Protocol):
    """A function that answers the workload of one SQL aggregate."""

    def __call__(self, workload: Workload, column: str = "") -> Answers:
        """Return answers and interval ends; each attribute has one axis.

        Args:
            workload: a table or a statistic.
            column: the name of an extra column of a statistic; if it is empty, the values of the
                statistic are returned.
        """


def read_statement(workload: Workload, settings: SqlSettings, text: str) -> Statement:
    """Parse a single SQL statement over the domain of a workload.

    Args:
        workload: the plan's workload.
        settings: the unit, the current day and the join.
        text: the statement.

    Raises:
        InputError: the statement cannot be answered, or there are several statements.
    """
    once_for_each_unit = UnitCount()  # counts by attributes that have one value for each unit
    of_unit: set[str] = set()
    for product in workload:
        if product.measure and product.domain.measure(product.measure) == once_for_each_unit:
            of_unit.update(product.attributes)
    settings = replace(settings, of_unit=tuple(sorted(of_unit)))
    statements = read_statements(workload.domain, [text], settings)
    if len(statements) != 1:
        raise refuse("the SQL of a table", f"{len(statements)} statements", "one statement")
    return statements[0]


def find_answer(workload: Workload, aggregate_workload: Workload) -> int | None:
    """Return the position of the statistic or table for an aggregate, or None.

    The result is None if ``workload`` contains neither.
    """
    if aggregate_workload.statistics:
        statistics = [_canonical_statistic(statistic) for statistic in workload.statistics]
        statistic = _canonical_statistic(aggregate_workload.statistics[0])
        if statistic in statistics:
            return statistics.index(statistic)
        return None
    table_keys = [product.table_key for product in workload]
    table_key = aggregate_workload.products[0].table_key
    if table_key in table_keys:
        return table_keys.index(table_key)
    return None


def _canonical_statistic(statistic: Statistic) -> Statistic:
    """Return a statistic in a canonical form, for comparisons."""
    statistic = replace(statistic, size=None, target=None)
    if statistic.kind not in ("correlations", "r_squared") or len(statistic.on) != 1:
        return statistic
    of, other = sorted(statistic.variables)
    return replace(statistic, of=of, on=(other,))


def _needed_workload(
    workload: Workload | None, selection: Selection, aggregate: Aggregate, grouping: Sequence[int]
) -> Workload:
    """Return the workload from which a release answers an aggregate.

    R^2 is the square of a correlation. If ``workload`` has no correlation of the two measures, but
    has their R^2, the result is the workload of R^2.
    """
    needed = selection.aggregate_workload(aggregate, grouping)
    if workload is None or aggregate.kind != "r2" or find_answer(workload, needed) is not None:
        return needed
    r_squared_tables = selection.r_squared_workload(aggregate, grouping)
    if find_answer(workload, r_squared_tables) is None:
        return needed
    return r_squared_tables


def check_statements(workload: Workload, settings: SqlSettings, texts: Sequence[str]) -> None:
    """Raise unless a workload contains all that SQL statements need.

    Sessions call this function before a payment.

    Raises:
        InputError: a table or statistic is not in the workload, or a statement cannot be answered.
    """
    for text in texts:
        statement = read_statement(workload, settings, text)
        for selection in statement.selections:
            for grouping, aggregate in selection.workloads():
                needed = _needed_workload(workload, selection, aggregate, grouping)
                if find_answer(workload, needed) is None:
                    name = (needed.statistics or needed.products)[0].name
                    raise InputError(
                        f"The statement {text!r} needs {name}, which the plan does not have. Ask "
                        "for it with leastnoise.sql."
                    )


def answer_statement(
    statement: Statement,
    answer_workload: AnswerWorkload,
    noise: AnswerNoise | None = None,
    workload: Workload | None = None,
) -> Columns:
    """Return the columns of a statement's SELECT by name.

    A column ``n`` with answers is followed by the ends of the intervals, ``n_low`` and ``n_high``.

    Args:
        statement: the statement.
        answer_workload: a function that answers the workload of one aggregate.
        noise: the noise of the answers, for intervals of combined answers; None if it is unknown.
        workload: the plan's workload, whose R^2 can answer REGR_R2; None if it is unknown.

    Guarantees: groups without rows are included. As in SQL, a row of a grouping set is None in the
        columns that are not in the set.
    """
    released = [
        _released_columns(selection, answer_workload, noise, workload)
        for selection in statement.selections
    ]
    values = iter(run_query(statement, released))
    names = UniqueNames(set())
    columns: Columns = {}
    for column in statement.columns:
        endings = ("", "_low", "_high") if column.has_interval else ("",)
        for ending in endings:
            name = names.make_unique(f"{column.name}{ending}")
            columns[name] = to_array(next(values), are_noisy=column.has_noise)
    return columns


def _released_columns(
    selection: Selection,
    answer_workload: AnswerWorkload,
    noise: AnswerNoise | None,
    workload: Workload | None,
) -> dict[str, Array]:
    """Return the columns of the answers and interval ends that a selection uses."""
    parts: dict[str, list[Array]] = {}
    for grouping in selection.sets:
        answers = _GroupAnswers(selection, grouping, answer_workload, workload)
        for number, aggregate in enumerate(selection.aggregates):
            arrays = answers.with_ends(aggregate)
            names = (answer_column(number), low_column(number), high_column(number))
            for name, array in zip(names, arrays, strict=True):
                parts.setdefault(name, []).append(array)
        ends = combination_ends(selection, grouping, answers.answers_of, noise)
        for number, (low, high) in enumerate(ends):
            parts.setdefault(combination_low_column(number), []).append(low)
            parts.setdefault(combination_high_column(number), []).append(high)
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


@dataclass
class _GroupAnswers:
    """Answers the aggregates of a selection for one grouping set, with a cache.

    Attributes:
        selection: the groups and aggregates.
        grouping: the grouping set, as positions of grouping columns.
        answer_workload: a function that answers the workload of one aggregate.
        workload: the plan's workload; None if it is unknown.
    """

    selection: Selection
    grouping: Sequence[int]
    answer_workload: AnswerWorkload
    workload: Workload | None
    _cached: list[tuple[Aggregate, list[FloatArray]]] = field(default_factory=list)

    def with_ends(self, aggregate: Aggregate) -> list[FloatArray]:
        """Return arrays of an aggregate's answers, lower ends and upper ends."""
        for cached_aggregate, arrays in self._cached:
            if cached_aggregate == aggregate:
                return arrays
        needed = _needed_workload(self.workload, self.selection, aggregate, self.grouping)
        arrays = _aggregate_answers(
            self.selection, aggregate, self.grouping, self.answer_workload, needed
        )
        self._cached.append((aggregate, arrays))
        return arrays

    def answers_of(self, aggregate: Aggregate) -> FloatArray:
        """Return the answers of an aggregate, one for each group."""
        return self.with_ends(aggregate)[0]


def _aggregate_answers(
    selection: Selection,
    aggregate: Aggregate,
    grouping: Sequence[int],
    answer_workload: AnswerWorkload,
    workload: Workload,
) -> list[FloatArray]:
    """Return an aggregate's answers, lower ends and upper ends for all groups.

    Counts and sums are exactly 0 if FILTER excludes all cells.
    """
    shown_keys = selection.group_keys(grouping, selection.condition)
    counted_keys = selection.group_keys(grouping, selection.condition_of(aggregate))
    positions = _find_query_positions(shown_keys, counted_keys)
    is_empty = np.zeros([len(along) for along in positions], dtype=np.bool_)
    for axis, along in enumerate(positions):
        shape = [1] * len(positions)
        shape[axis] = -1
        is_empty |= (along < 0).reshape(shape)
    if aggregate.kind in ("mean", "quantile", *SPREADS, *OF_PAIRS, *OF_LINES):
        empty_value = np.nan
    else:
        empty_value = 0.0
    counted_shape = tuple(map(len, counted_keys.values()))
    if aggregate.kind in OF_PAIRS:
        answers = _pair_answers(aggregate.kind, workload, answer_workload)
    elif aggregate.kind in OF_LINES:
        term = _TERMS_OF_LINES.index(aggregate.kind)
        answers = _select_on_last_axis(answer_workload(workload), term)
    else:
        answers = answer_workload(workload)
    if aggregate.kind in SPREADS:
        answers = _variances_or_deviations(aggregate.kind, workload, answers, answer_workload)
    results = []
    for values in answers:
        counted = values.reshape(counted_shape)
        if positions:
            shown = counted[np.ix_(*positions)]
        else:
            shown = counted
        results.append(np.where(is_empty, empty_value, shown).reshape(-1))
    return results


def _variances_or_deviations(
    kind: str, workload: Workload, std_devs: Answers, answer_workload: AnswerWorkload
) -> Answers:
    """Return variances or standard deviations, of a sample or a population.

    ``kind`` is one of `SPREADS`. For a sample the divisor is n - 1; the number of values n is taken
    as at least 2. Each end of the interval uses that end of n's interval which widens the result.
    """
    estimate, low, high = std_devs
    if kind.endswith("_sample"):
        counts, counts_low, counts_high = answer_workload(
            Workload(workload.domain, workload.products[:1])
        )
        estimate = estimate * _sample_factor(counts)
        low = low * _sample_factor(counts_high)
        high = high * _sample_factor(counts_low)
    if kind.startswith("variance"):
        return estimate**2, low**2, high**2
    return estimate, low, high


def _pair_answers(kind: str, workload: Workload, answer_workload: AnswerWorkload) -> Answers:
    """Return covariances, correlations or their squares (a kind in `OF_PAIRS`)."""
    if kind == "covariance":
        return _select_on_last_axis(answer_workload(workload, "covariance"), 0)
    if kind == "covariance_sample":
        covariances = _select_on_last_axis(answer_workload(workload, "covariance"), 0)
        return _sample_covariances(covariances, workload, answer_workload)
    if workload.statistics[0].kind == "r_squared":
        return answer_workload(workload)
    correlations = _select_on_last_axis(answer_workload(workload), 0)
    if kind == "correlation":
        return correlations
    value, low, high = correlations
    squares_of_ends = low**2, high**2
    has_zero = (low <= 0) & (high >= 0)
    return (
        value**2,
        np.where(has_zero, 0.0, np.minimum(*squares_of_ends)),
        np.maximum(*squares_of_ends),
    )


def _select_on_last_axis(answers: Answers, position: int) -> Answers:
    """Return the answers at one position of the last axis."""
    values, low, high = answers
    return values[..., position], low[..., position], high[..., position]


def _sample_covariances(
    covariances: Answers, workload: Workload, answer_workload: AnswerWorkload
) -> Answers:
    """Return sample covariances: covariances times n / (n - 1).

    Each end of the interval uses that end of n's interval which widens the result.
    """
    counts, counts_low, counts_high = answer_workload(
        Workload(workload.domain, workload.products[:1])
    )
    factor, longer, shorter = (
        _sample_factor(ends) ** 2 for ends in (counts, counts_low, counts_high)
    )
    value, low, high = covariances
    return (
        value * factor,
        low * np.where(low < 0, longer, shorter),
        high * np.where(high > 0, longer, shorter),
    )


def _sample_factor(counts: FloatArray) -> FloatArray:
    """Return sqrt(n / (n - 1)) element-wise, with n raised to at least 2."""
    values = np.maximum(counts, 2.0)
    return np.asarray(np.sqrt(values / (values - 1)))


def _find_query_positions(
    shown_keys: Mapping[str, Sequence[object]], counted_keys: Mapping[str, Sequence[object]]
) -> list[Array]:
    """Return the positions of the queries for the shown keys of each attribute."""
    positions = []
    for name, keys in counted_keys.items():
        position_of = {key: position for position, key in enumerate(keys)}
        shown = shown_keys.get(name, keys)
        positions.append(np.array([position_of.get(key, -1) for key in shown]))
    return positions
