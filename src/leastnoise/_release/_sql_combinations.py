"""Compute intervals of differences, ratios and shares of answers in SQL.

The variance of a linear sum of answers follows from their covariances, which are exact for least
squares. The interval of a quotient is Fieller's (J. R. Stat. Soc. B 16, 1954), as for means. The
interval of a sum or a ratio of quotients is computed from the intervals of the quotients and the
correlations of their errors, as in `leastnoise.compare_groups`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from leastnoise._error import (
    Estimated,
    PairCovariances,
    correlation_of,
    quotient_interval,
    ratio_interval,
    sum_interval,
)
from leastnoise._release._release_tables import convert_to_amounts
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import Array, FloatArray
from leastnoise._workload import (
    Aggregate,
    AnswerExpression,
    AnswerTerm,
    Combination,
    CombinationRatio,
    CombinationSum,
    LinearSum,
    Placement,
    Product,
    QuerySet,
    Selection,
    Workload,
    group_queries,
)

AnswerOf = Callable[[Aggregate], FloatArray]
"""From an aggregate to its answers, one for each group of a grouping set, flat."""
_VARIANCE_ROUNDING = 2.0**-40  # relative size of a variance that may be only a rounding error


@dataclass(frozen=True)
class AnswerNoise:
    """The covariances between a release's answers, for intervals of combinations.

    Attributes:
        covariances: the covariances between answers.
        multiplier: the half width of intervals, in standard errors.
        product_of: a function that returns a workload's only table, over the domain of the
            measurements.
    """

    covariances: PairCovariances
    multiplier: float
    product_of: Callable[[Workload], Product]

    @property
    def half_step(self) -> float:
        """Half the distance between adjacent values of the noise, in rows or units."""
        return 0.5 / self.covariances.measurements.grid


class EstimatedExpression(NamedTuple):
    """An expression in each group, and its derivative by each sum of answers."""

    estimated: Estimated
    error_parts: tuple[tuple[LinearSum, FloatArray], ...]


@dataclass(frozen=True)
class CombinationIntervals:
    """Computes intervals of combinations of answers, for one grouping set.

    Attributes:
        selection: the groups and aggregates.
        grouping: the grouping set, as positions of grouping columns.
        answer_of: a function that returns the answers of an aggregate, one for each group.
        noise: the noise of the answers.
    """

    selection: Selection
    grouping: Sequence[int]
    answer_of: AnswerOf
    noise: AnswerNoise

    def interval(self, expression: AnswerExpression) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of an expression; NaN for unknown intervals."""
        unknown = np.full(self.shape, np.nan).reshape(-1)
        try:
            with np.errstate(invalid="ignore"):
                if isinstance(expression, CombinationRatio):
                    low, high = self._ratio_interval(expression)
                elif isinstance(expression, CombinationSum):
                    low, high = self._interval_of_sum(expression)
                else:
                    low, high = self._combination_interval(expression)
        except InputError:  # the covariance of these answers is unknown
            return unknown, unknown
        is_known = np.isfinite(low) & np.isfinite(high)
        return tuple(np.where(is_known, ends, np.nan).reshape(-1) for ends in (low, high))  # type: ignore[return-value]

    @cached_property
    def keys(self) -> dict[str, tuple[tuple[object, ...], ...]]:
        """The keys of the groups along each attribute."""
        return self.selection.group_keys(self.grouping, self.selection.condition)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups along each attribute."""
        return tuple(map(len, self.keys.values()))

    def _combination_interval(self, combination: Combination) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of a sum or quotient in each group."""
        if combination.denominator is None:
            low, high = self._sum_interval(combination.numerator)
        else:
            low, high = self._quotient_interval(combination.numerator, combination.denominator)
        least, largest = self._combination_bounds(combination)
        return np.clip(low, least, largest), np.clip(high, least, largest)

    def _interval_of_sum(self, linear: CombinationSum) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of a sum of combinations."""
        estimated = self._estimate_sum(linear).estimated
        is_known = np.isfinite(estimated.value)
        return (
            np.where(is_known, estimated.low, np.nan),
            np.where(is_known, estimated.high, np.nan),
        )

    def _ratio_interval(self, ratio: CombinationRatio) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of a ratio of two sums of combinations."""
        dividend = self._estimate_sum(ratio.dividend)
        divisor = self._estimate_sum(ratio.divisor)
        correlation = self._correlation(dividend, divisor)
        interval = quotient_interval(dividend.estimated, divisor.estimated, correlation)
        is_known = np.isfinite(dividend.estimated.value) & np.isfinite(divisor.estimated.value)
        return (
            np.where(is_known, interval.low, np.nan),
            np.where(is_known, interval.high, np.nan),
        )

    def _correlation(self, first: EstimatedExpression, second: EstimatedExpression) -> FloatArray:
        """Return the correlation of the errors of two expressions."""
        total = np.zeros(self.shape)
        for first_part, first_factor in first.error_parts:
            for second_part, second_factor in second.error_parts:
                shared = self._covariance(first_part, second_part)
                total = total + first_factor * second_factor * shared
        return correlation_of(total, first.estimated, second.estimated)

    def _estimate_sum(self, linear: CombinationSum) -> EstimatedExpression:
        """Return value, interval and derivatives of a sum of combinations, by group."""
        parts = [self._estimate_combination(part) for part, _ in linear.factors]
        factors = [float(factor) for _, factor in linear.factors]
        if not parts:
            return _constant_expression(np.full(self.shape, float(linear.shift)))
        correlations: dict[tuple[int, int], FloatArray] = {}
        for row, part in enumerate(parts):
            correlations |= {
                (row, column): self._correlation(part, parts[column]) for column in range(row)
            }
        estimated = sum_interval(
            [part.estimated for part in parts], factors, correlations, float(linear.shift)
        )
        error_parts = []
        for part, factor in zip(parts, factors, strict=True):
            error_parts += [
                (answers, factor * derivative) for answers, derivative in part.error_parts
            ]
        return EstimatedExpression(estimated, tuple(error_parts))

    def _estimate_combination(self, combination: Combination) -> EstimatedExpression:
        """Return value, interval and derivatives of a combination in each group."""
        low, high = self._combination_interval(combination)
        top = self._value_of_sum(combination.numerator)
        variance = self._covariance(combination.numerator, combination.numerator)
        divisor = np.ones(self.shape)
        quotient = np.zeros(self.shape)
        value = top
        if combination.denominator is not None:
            bottom = self._value_of_sum(combination.denominator)
            divisor = np.where(bottom > 0, bottom, 1.0)
            quotient = np.clip(top / divisor, low, high)
            value = quotient
            shared = self._covariance(combination.numerator, combination.denominator)
            denominator_variance = self._covariance(
                combination.denominator, combination.denominator
            )
            variance = variance - 2 * quotient * shared + quotient**2 * denominator_variance
        is_clear = np.isfinite(low) & np.isfinite(high)
        std_error = np.sqrt(np.maximum(variance, 0.0)) / divisor
        estimated = Estimated(
            value=value,
            low=low,
            high=high,
            std_error=np.where(is_clear, std_error, np.nan),
            is_clear=is_clear,
            error_divisor=divisor,
            bounded_quotient=quotient,
            bounds=self._combination_bounds(combination),
        )
        error_parts = [(combination.numerator, 1 / divisor)]
        if combination.denominator is not None:
            error_parts.append((combination.denominator, -quotient / divisor))
        return EstimatedExpression(estimated, tuple(error_parts))

    def _sum_interval(self, linear: LinearSum) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of a weighted sum in each group."""
        value = self._value_of_sum(linear)
        std = np.sqrt(np.maximum(self._covariance(linear, linear), 0.0))
        reach = self.noise.multiplier * std + np.where(std > 0, self._half_step(linear), 0.0)
        return value - reach, value + reach

    def _quotient_interval(
        self, numerator: LinearSum, denominator: LinearSum
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of a quotient of two sums in each group."""
        top = self._value_of_sum(numerator)
        bottom = self._value_of_sum(denominator)
        top_variance = self._covariance(numerator, numerator)
        bottom_variance = self._covariance(denominator, denominator)
        shared = self._covariance(numerator, denominator)
        # The error of the numerator minus ``slope`` times the denominator is uncorrelated with the
        # error of the denominator.
        is_noisy = bottom_variance > 0
        slope = np.divide(shared, bottom_variance, out=np.zeros_like(shared), where=is_noisy)
        residual_variance = np.maximum(top_variance - slope * shared, 0.0)
        residual_variance = np.where(
            residual_variance > _VARIANCE_ROUNDING * top_variance, residual_variance, 0.0
        )
        top_step = self._half_step(numerator) * np.ones_like(slope)
        if not any(term.part for term, _ in numerator.factors):  # the errors of means are centred
            top_step = top_step + np.abs(slope) * self._half_step(denominator)
        low, high = ratio_interval(
            top - slope * bottom,
            bottom,
            residual_variance,
            bottom_variance,
            self.noise.multiplier,
            (-np.inf, np.inf),
            half_noise_steps=(
                np.where(residual_variance > 0, top_step, 0.0),
                self._half_step(denominator),
            ),
        )
        return low + slope, high + slope

    def _value_of_sum(self, linear: LinearSum) -> FloatArray:
        """Return the value of a weighted sum of answers in each group."""
        value = np.full(self.shape, float(linear.shift))
        for term, factor in linear.factors:
            answers = self.answer_of(self._aggregate_of_term(term)).reshape(self.shape)
            answers = self._sum_over_window(term, answers)
            axes = [
                axis
                for axis, name in enumerate(self.keys)
                if term.partition is not None and name not in term.partition
            ]
            if axes:
                answers = answers.sum(axis=tuple(axes), keepdims=True)
            value = value + float(factor) * answers
        return value

    def _sum_over_window(self, term: AnswerTerm, answers: FloatArray) -> FloatArray:
        """Return a term's answers, summed over its SQL window; NaN if that is empty."""
        if term.frame is None:
            return answers
        axis = [*self.keys].index(term.frame.attribute)
        windows = self._windows(term, term.frame.attribute)
        is_member = np.array(
            [[position in window for position in range(len(windows))] for window in windows],
            dtype=float,
        )
        sums = np.moveaxis(np.tensordot(is_member, answers, axes=(1, axis)), 0, axis)
        shape = [len(windows) if other == axis else 1 for other in range(answers.ndim)]
        has_members = np.array([*map(bool, windows)]).reshape(shape)
        return np.where(has_members, sums, np.nan)

    def _windows(self, term: AnswerTerm, attribute: str) -> list[list[int]]:
        """Return the groups in each group's SQL window, along one attribute.

        Raises:
            InputError: the order of the groups is unknown, because their labels have no common
                type.
        """
        keys = self.keys[attribute]
        if term.frame is None or term.frame.attribute != attribute:
            return [[position] for position in range(len(keys))]
        order = [*range(len(keys))]
        for position, descends in reversed(term.frame.order):
            values = [key[position] for key in keys]
            if len({type(value) for value in values}) > 1 or None in values:
                raise InputError("These groups have no order.")
            order.sort(key=values.__getitem__, reverse=descends)
        windows: list[list[int]] = [[] for _ in keys]
        for rank, place in enumerate(order):
            start = 0 if term.frame.first is None else rank + term.frame.first
            end = len(order) if term.frame.last is None else rank + term.frame.last + 1
            windows[place] = order[max(start, 0) : max(end, 0)]
        return windows

    def _half_step(self, linear: LinearSum) -> float:
        """Return half a step of a weighted sum's noise, in amounts of its measure."""
        steps = [
            abs(float(factor)) * self._unit_of_aggregate(self._aggregate_of_term(term))
            for term, factor in linear.factors
        ]
        return self.noise.half_step * max(steps, default=0.0)

    def _unit_of_aggregate(self, aggregate: Aggregate) -> float:
        """Return the unit of a sum's measure; 1 for counts."""
        if aggregate.kind not in ("sum", "weighted"):
            return 1.0
        return float(self.selection.domain.measure(aggregate.of).unit)

    def _aggregate_of_term(self, term: AnswerTerm) -> Aggregate:
        """Return the aggregate whose answers a term refers to."""
        aggregate = self.selection.aggregates[term.number]
        if term.part:
            return replace(aggregate, kind=term.part)
        return aggregate

    def _combination_bounds(self, combination: Combination) -> tuple[float, float]:
        """Return the bounds between which a combination's true value lies."""
        (term, _), *others = combination.numerator.factors or ((AnswerTerm(0), 0),)
        if term.part and not others:
            measure = self.selection.domain.measure(self._aggregate_of_term(term).of)
            return float(measure.low), float(measure.high)
        return (0.0 if self._is_at_least_zero(combination) else -np.inf), np.inf

    def _is_at_least_zero(self, combination: Combination) -> bool:
        """Return whether a combination consists of counts with weights of at least 0."""
        parts = [combination.numerator, combination.denominator or LinearSum()]
        for part in parts:
            if not part.shift >= 0:
                return False
            for term, factor in part.factors:
                if not factor >= 0:
                    return False
                if self._aggregate_of_term(term).kind not in ("rows", "units", "values"):
                    return False
        return True

    # --- covariances ------------------------------------------------------------------------------

    def _covariance(self, first: LinearSum, second: LinearSum) -> FloatArray:
        """Return the covariance of two weighted sums in each group."""
        total = np.zeros(self.shape)
        for term, factor in first.factors:
            for other, other_factor in second.factors:
                total = total + float(factor * other_factor) * self._term_covariance(term, other)
        return total

    def _term_covariance(self, first: AnswerTerm, second: AnswerTerm) -> FloatArray:
        """Return the covariance of two answers in each group."""
        covariances = np.zeros(self.shape)
        positions, placements = self._shared_groups(first, second)
        if not all(positions):
            return covariances
        products = [
            self._product_of_term(term, placement_of)
            for term, placement_of in zip((first, second), placements, strict=True)
        ]
        names = tuple(
            name
            for name in self.selection.domain.names
            if any(name in placement_of for placement_of in placements)
        )
        between = self.noise.covariances.between(products[0], products[1], names)
        amounts = convert_to_amounts(products[0], convert_to_amounts(products[1], between))
        other_axes = tuple(axis for axis, name in enumerate(names) if name not in self.keys)
        covariances[np.ix_(*positions)] = amounts.squeeze(other_axes)
        return covariances

    def _shared_groups(
        self, first: AnswerTerm, second: AnswerTerm
    ) -> tuple[list[list[int]], list[dict[str, Placement]]]:
        """Return the groups for which both answers count cells, and these cells.

        Returns:
            The positions of these groups along each attribute; and the cells of each answer along
            each attribute.
        """
        terms = (first, second)
        placements = [self._placements(term) for term in terms]
        positions = []
        for name in self.keys:
            windows = [
                self._counted_windows(term, placement_of, name)
                for term, placement_of in zip(terms, placements, strict=True)
            ]
            shared = [
                position for position, pair in enumerate(zip(*windows, strict=True)) if all(pair)
            ]
            positions.append(shared)
            for term, placement_of, window in zip(terms, placements, windows, strict=True):
                counted = [window[position] for position in shared]
                placement_of[name] = self._cells_of_windows(term, placement_of[name], name, counted)
        return positions, placements

    def _counted_windows(
        self, term: AnswerTerm, placement_of: Mapping[str, Placement], attribute: str
    ) -> list[list[tuple[object, ...]]]:
        """Return the keys that an answer counts in each SQL window of an attribute."""
        windows = []
        for window in self._windows(term, attribute):
            keys = [self.keys[attribute][position] for position in window]
            windows.append(
                [key for key in keys if self._counts_group(term, placement_of, attribute, key)]
            )
        return windows

    def _placements(self, term: AnswerTerm) -> dict[str, Placement]:
        """Return the groups of cells that an answer counts, along each attribute."""
        condition = self.selection.condition_of(self._aggregate_of_term(term))
        return self.selection.placements(self.grouping, condition)

    def _is_added_up(self, term: AnswerTerm, attribute: str) -> bool:
        """Return whether a term adds up all groups along an attribute."""
        return term.partition is not None and attribute not in term.partition

    def _counts_group(
        self,
        term: AnswerTerm,
        placement_of: Mapping[str, Placement],
        attribute: str,
        key: tuple[object, ...],
    ) -> bool:
        """Return whether an answer counts any cells of the group with a key."""
        return self._is_added_up(term, attribute) or key in placement_of[attribute].keys

    def _cells_of_windows(
        self,
        term: AnswerTerm,
        placement: Placement,
        attribute: str,
        windows: Sequence[Sequence[tuple[object, ...]]],
    ) -> Placement:
        """Return the cells of each window, or of all groups together for a total."""
        if self._is_added_up(term, attribute):
            cells = sorted(chain.from_iterable(group for _, group in placement.groups))
            return replace(placement, groups=(((), tuple(cells)),))
        cells_of = dict(placement.groups)
        groups = []
        for window in windows:
            cells = sorted(chain.from_iterable(cells_of[key] for key in window))
            groups.append((window[0], tuple(cells)))
        return replace(placement, groups=tuple(groups))

    def _product_of_term(self, term: AnswerTerm, placement_of: Mapping[str, Placement]) -> Product:
        """Return the table of queries that an answer consists of."""
        domain = self.selection.domain
        sets: dict[str, QuerySet] = {
            name: group_queries(domain.kind(name), placement)
            for name, placement in placement_of.items()
        }
        workload = self.selection.workload_of_sets(self._aggregate_of_term(term), sets)
        return self.noise.product_of(workload)


def _constant_expression(value: FloatArray) -> EstimatedExpression:
    """Return a constant as an expression without error, for each group."""
    estimated = Estimated(
        value=value,
        low=value,
        high=value,
        std_error=np.zeros_like(value),
        is_clear=np.ones(value.shape, dtype=np.bool_),
        error_divisor=np.ones_like(value),
        bounded_quotient=np.zeros_like(value),
        bounds=(float(value.min()), float(value.max())),
    )
    return EstimatedExpression(estimated, ())


def combination_ends(
    selection: Selection,
    grouping: Sequence[int],
    answer_of: AnswerOf,
    noise: AnswerNoise | None,
) -> list[tuple[Array, Array]]:
    """Return the lower and upper ends of each combination of a selection.

    Args:
        selection: the groups, aggregates and combinations.
        grouping: the grouping set, as positions of grouping columns.
        answer_of: a function that returns the answers of an aggregate, one for each group.
        noise: the noise of the answers. If it is None, the covariances are unknown, and all ends
            are NaN.
    """
    if noise is None:
        unknown = np.full(len(answer_of(selection.aggregates[0])), np.nan)
        return [(unknown, unknown) for _ in selection.combinations]
    reader = CombinationIntervals(selection, grouping, answer_of, noise)
    return [reader.interval(combination) for combination in selection.combinations]
