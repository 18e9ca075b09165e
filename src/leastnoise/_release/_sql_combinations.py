"""Intervals of differences, ratios and shares of answers in SQL.

The variance of a linear sum of answers follows from their covariances, which are exact for least
squares. The interval of a quotient is Fieller's (J. R. Stat. Soc. B 16, 1954), as for means.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leastnoise._error import PairCovariances, ratio_interval
from leastnoise._release._tables import convert_to_amounts
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import Array, FloatArray
from leastnoise._workload import (
    Aggregate,
    AnswerTerm,
    Combination,
    LinearSum,
    Placement,
    Product,
    QuerySet,
    Selection,
    Workload,
    group_queries,
)

_ROUNDING = 2.0**-40  # part of a variance that the rounding of a difference may leave of it


@dataclass(frozen=True)
class AnswerNoise:
    """The noise of a release's answers.

    Attributes:
        covariances: between answers.
        multiplier: half the width of an interval, in standard errors.
        own_product: returns the queries of one table over the domain of the measurements.
    """

    covariances: PairCovariances
    multiplier: float
    own_product: Callable[[Workload], Product]

    @property
    def half_step(self) -> float:
        """Half the distance of two values of the noise, in rows or units."""
        return 0.5 / self.covariances.measurements.grid


@dataclass(frozen=True)
class CombinationReader:
    """Computes intervals of combinations of the answers to one grouping set.

    Attributes:
        selection: the groups and aggregates.
        grouping: the grouping set.
        answers: for each aggregate its answers, one for each group, flat.
        noise: of the answers.
    """

    selection: Selection
    grouping: Sequence[int]
    answers: Sequence[FloatArray]
    noise: AnswerNoise

    def interval(self, combination: Combination) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a combination's intervals; NaN where they are unknown."""
        unknown = np.full(self.shape, np.nan).reshape(-1)
        try:
            if combination.denominator is None:
                low, high = self._linear_ends(combination.numerator)
            else:
                low, high = self._quotient_ends(combination.numerator, combination.denominator)
        except InputError:  # of such answers no covariance is known
            return unknown, unknown
        if self._is_at_least_zero(combination):
            low = np.maximum(low, 0.0)
            high = np.maximum(high, 0.0)
        is_known = np.isfinite(low) & np.isfinite(high)
        return tuple(np.where(is_known, ends, np.nan).reshape(-1) for ends in (low, high))  # type: ignore[return-value]

    @cached_property
    def keys(self) -> dict[str, tuple[tuple[object, ...], ...]]:
        """The keys of the groups by attribute."""
        return self.selection.group_keys(self.grouping, self.selection.condition)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups along each attribute."""
        return tuple(map(len, self.keys.values()))

    def _linear_ends(self, linear: LinearSum) -> tuple[FloatArray, FloatArray]:
        value = self._value(linear)
        std = np.sqrt(np.maximum(self._covariance(linear, linear), 0.0))
        reach = self.noise.multiplier * std + np.where(std > 0, self._half_step(linear), 0.0)
        return value - reach, value + reach

    def _quotient_ends(
        self, numerator: LinearSum, denominator: LinearSum
    ) -> tuple[FloatArray, FloatArray]:
        top = self._value(numerator)
        bottom = self._value(denominator)
        top_variance = self._covariance(numerator, numerator)
        bottom_variance = self._covariance(denominator, denominator)
        shared = self._covariance(numerator, denominator)
        # The numerator less ``slope`` times the denominator has uncorrelated errors with it.
        is_noisy = bottom_variance > 0
        slope = np.divide(shared, bottom_variance, out=np.zeros_like(shared), where=is_noisy)
        rest = np.maximum(top_variance - slope * shared, 0.0)
        rest = np.where(rest > _ROUNDING * top_variance, rest, 0.0)
        top_step = self._half_step(numerator) + np.abs(slope) * self._half_step(denominator)
        low, high = ratio_interval(
            top - slope * bottom,
            bottom,
            rest,
            bottom_variance,
            self.noise.multiplier,
            (-np.inf, np.inf),
            steps=(np.where(rest > 0, top_step, 0.0), self._half_step(denominator)),
        )
        return low + slope, high + slope

    def _value(self, linear: LinearSum) -> FloatArray:
        value = np.full(self.shape, float(linear.shift))
        for term, factor in linear.factors:
            answers = self.answers[term.number].reshape(self.shape)
            axes = [
                axis
                for axis, name in enumerate(self.keys)
                if term.partition is not None and name not in term.partition
            ]
            if axes:
                answers = answers.sum(axis=tuple(axes), keepdims=True)
            value = value + float(factor) * answers
        return value

    def _half_step(self, linear: LinearSum) -> float:
        steps = [
            abs(float(factor)) * self._unit(self._aggregate(term))
            for term, factor in linear.factors
        ]
        return self.noise.half_step * max(steps, default=0.0)

    def _unit(self, aggregate: Aggregate) -> float:
        if aggregate.kind not in ("sum", "weighted"):
            return 1.0
        return float(self.selection.domain.measure(aggregate.of).unit)

    def _aggregate(self, term: AnswerTerm) -> Aggregate:
        return self.selection.aggregates[term.number]

    def _is_at_least_zero(self, combination: Combination) -> bool:
        """Return whether every part of a combination is a number of rows or units."""
        parts = [combination.numerator, combination.denominator or LinearSum()]
        return all(
            part.shift >= 0
            and all(
                factor >= 0 and self._aggregate(term).kind in ("rows", "units", "values")
                for term, factor in part.factors
            )
            for part in parts
        )

    # Covariances

    def _covariance(self, first: LinearSum, second: LinearSum) -> FloatArray:
        """Return the covariances between two sums, in every group."""
        total = np.zeros(self.shape)
        for term, factor in first.factors:
            for other, other_factor in second.factors:
                total = total + float(factor * other_factor) * self._term_covariance(term, other)
        return total

    def _term_covariance(self, first: AnswerTerm, second: AnswerTerm) -> FloatArray:
        """Return the covariances between two answers, in every group."""
        first_places = self._placements(first)
        second_places = self._placements(second)
        positions = []
        for name, keys in self.keys.items():
            shared = [
                key
                for key in keys
                if self._counts(first, first_places, name, key)
                and self._counts(second, second_places, name, key)
            ]
            first_places[name] = self._restricted(first, first_places[name], name, shared)
            second_places[name] = self._restricted(second, second_places[name], name, shared)
            positions.append([keys.index(key) for key in shared])
        covariances = np.zeros(self.shape)
        if not all(positions):
            return covariances
        products = [
            self._product(term, places)
            for term, places in ((first, first_places), (second, second_places))
        ]
        names = tuple(
            name
            for name in self.selection.domain.names
            if name in first_places or name in second_places
        )
        between = self.noise.covariances.between(products[0], products[1], names)
        amounts = convert_to_amounts(products[0], convert_to_amounts(products[1], between))
        other_axes = tuple(axis for axis, name in enumerate(names) if name not in self.keys)
        covariances[np.ix_(*positions)] = amounts.squeeze(other_axes)
        return covariances

    def _placements(self, term: AnswerTerm) -> dict[str, Placement]:
        """Return the cells of the groups that an answer counts, by attribute."""
        condition = self.selection.condition_of(self._aggregate(term))
        return self.selection.placements(self.grouping, condition)

    def _is_added_up(self, term: AnswerTerm, name: str) -> bool:
        return term.partition is not None and name not in term.partition

    def _counts(
        self, term: AnswerTerm, places: Mapping[str, Placement], name: str, key: tuple[object, ...]
    ) -> bool:
        """Return whether an answer for a group counts cells of it."""
        return self._is_added_up(term, name) or key in places[name].keys

    def _restricted(
        self, term: AnswerTerm, placement: Placement, name: str, keys: Sequence[tuple[object, ...]]
    ) -> Placement:
        """Return a placement of groups with some keys, or of all groups as one."""
        if self._is_added_up(term, name):
            cells = sorted(cell for _, group in placement.groups for cell in group)
            return replace(placement, groups=(((), tuple(cells)),))
        groups = tuple(group for group in placement.groups if group[0] in keys)
        return replace(placement, groups=groups)

    def _product(self, term: AnswerTerm, places: Mapping[str, Placement]) -> Product:
        """Return the queries of an answer for some groups."""
        domain = self.selection.domain
        sets: dict[str, QuerySet] = {
            name: group_queries(domain.kind(name), placement) for name, placement in places.items()
        }
        workload = self.selection.workload_of_sets(self._aggregate(term), sets)
        return self.noise.own_product(workload)


def combination_ends(
    selection: Selection,
    grouping: Sequence[int],
    answers: Sequence[FloatArray],
    noise: AnswerNoise | None,
) -> list[tuple[Array, Array]]:
    """Return the interval ends of each combination that a selection needs.

    Args:
        selection: the groups, aggregates and combinations.
        grouping: the grouping set.
        answers: for each aggregate its answers, one for each group, flat.
        noise: of the answers; None if their covariances are unknown, so that the ends are NaN.
    """
    if noise is None:
        unknown = np.full(len(answers[0]), np.nan)
        return [(unknown, unknown) for _ in selection.combinations]
    reader = CombinationReader(selection, grouping, answers, noise)
    return [reader.interval(combination) for combination in selection.combinations]
