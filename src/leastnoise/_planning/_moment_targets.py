"""Targets of variances, correlations, regressions and R^2 at public scales.

The errors of these statistics depend on the data. A target is for a group with the public size,
whose measures have the public standard deviations ("scales"). This module reads no data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._error import (
    LEVEL,
    Gradient,
    MomentScales,
    NumberAtScales,
    interval_multiplier,
    largest_relative_derivatives,
    numbers_at_scales,
    r_squared_std_error,
    statistic_scales,
)
from leastnoise._plan import Plan
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import Statistic, Target, Workload

# If an interval is unbounded, the search adds to the target the error by the delta method, divided
# by this number. The result is large, and decreases with the noise.
_UNBOUNDED_ERROR_DIVISOR = 0.1
# Each table counts as at least this share of the largest table's part of the error.
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class MomentGoal:
    """A target for the error of variances, correlations, a regression or R^2.

    Attributes:
        statistic: the statistic.
        target: its target.
        tables: positions of its tables in the workload.
        limits: first estimates of the largest error of each table that meets the target, in the
            table's unit. If each table has its limit as its goal, the total squared error of the
            tables is about the error of the statistic.
        level: the confidence level of the interval whose half width is the error; None if the error
            is the standard error.
    """

    statistic: Statistic
    target: Target
    tables: tuple[int, ...]
    limits: tuple[float, ...]
    level: float | None

    @property
    def most(self) -> float:
        """The largest margin or standard error that the target allows."""
        return float(self.target.most)

    def error(self, plan: Plan) -> float:
        """Return the statistic's expected error under a plan, to be minimised.

        The result is above the target if an interval is unbounded.
        """
        return max(
            self.most + error.delta / _UNBOUNDED_ERROR_DIVISOR
            if math.isinf(error.promised)
            else error.promised
            for error in _errors(self, plan)
        )

    def expected_error(self, plan: Plan) -> float:
        """Return the statistic's expected error; infinite for an unbounded interval."""
        return max(error.promised for error in _errors(self, plan))


@dataclass(frozen=True, slots=True)
class _NumberError:
    """A published number's error: by its interval, and by the delta method."""

    promised: float
    delta: float


def moment_goals(workload: Workload, level: float) -> tuple[MomentGoal, ...]:
    """Return the goal of each statistic that has a target at public scales."""
    positions = {product.table_key: number for number, product in enumerate(workload)}
    goals = []
    for statistic in workload.statistics:
        target = statistic.target
        if target is None or not statistic.form.has_scales:
            continue
        tables = tuple(positions[product.table_key] for product in workload.tables_of(statistic))
        goals.append(
            MomentGoal(
                statistic,
                target,
                tables,
                _first_limits(statistic, target, workload, tables),
                None if target.kind == "rmse" else level,
            )
        )
    return tuple(goals)


def _first_limits(
    statistic: Statistic, target: Target, workload: Workload, tables: Sequence[int]
) -> tuple[float, ...]:
    """Return each table's error that would use up the whole target."""
    products = workload.products
    slopes = largest_relative_derivatives(statistic, workload.domain)
    rows = np.array([workload.domain.largest_value(products[number].measure) for number in tables])
    shares = np.maximum(slopes * rows, _LEAST_SHARE * (slopes * rows).max())
    most = float(target.most) * float(statistic.size or 0)
    if target.kind != "relative":
        units = [
            number.public_scale
            for number in numbers_at_scales(statistic, statistic_scales(statistic, workload.domain))
        ]
        most /= max(units)
    return tuple((most * rows / shares).tolist())


def statistic_std_errors(plan: Plan, statistic: Statistic) -> dict[str, float]:
    """Return the standard errors of a statistic's numbers, by their names."""
    scales = statistic_scales(statistic, plan.domain, plan.measured())
    stds = _table_stds(plan, statistic, scales)
    if statistic.kind == "r_squared":
        std_error = r_squared_std_error(plan.measured(), statistic, list(stds.values()))
        return {statistic.target_column: std_error}
    noise = scales.noise(stds)
    size = float(statistic.size or 0)
    return {
        number.name: _largest_error_over_means(scales, number.gradient, noise) / size
        for number in numbers_at_scales(statistic, scales)
    }


def _table_stds(
    plan: Plan, statistic: Statistic, scales: MomentScales, *, largest: bool = False
) -> dict[tuple[int, int], float]:
    """Return the standard errors of the tables that determine a statistic."""
    tables = plan.expected_error().tables
    positions = {product.table_key: number for number, product in enumerate(plan.workload)}
    numbers = [positions[product.table_key] for product in plan.workload.tables_of(statistic)]
    stds = [tables[number].largest_std if largest else tables[number].rmse for number in numbers]
    return dict(zip(scales.names, stds, strict=True))


def _errors(goal: MomentGoal, plan: Plan) -> list[_NumberError]:
    """Return the error of each number of a statistic, as the target defines it."""
    statistic = goal.statistic
    if goal.level is None:
        return [
            _NumberError(error, error) for error in statistic_std_errors(plan, statistic).values()
        ]
    measured = plan.measured()
    scales = statistic_scales(statistic, plan.domain, measured)
    multiplier = interval_multiplier(measured.noise, goal.level)
    half_step = 0.5 / measured.grid
    stds = _table_stds(plan, statistic, scales, largest=True)
    noise = scales.noise(stds, half_step / multiplier)
    margins = _own_margins(goal, plan, stds)
    errors = []
    for number in numbers_at_scales(statistic, scales):
        unit = number.public_scale if goal.target.kind == "relative" else 1.0
        size = float(statistic.size or 0)
        delta = multiplier * _largest_error_over_means(scales, number.gradient, noise) / size
        if number.name in margins:
            promised = margins[number.name]
        elif _exceeds_noise(scales, number, noise * multiplier, size):
            promised = delta
        else:
            promised = max(delta, number.largest_half_width)
        errors.append(_NumberError(promised / unit, delta / unit))
    return errors


def _exceeds_noise(
    scales: MomentScales, published_number: NumberAtScales, margins: FloatArray, size: float
) -> bool:
    """Return whether the count and positive quantities exceed their noise."""
    if size <= margins[0, 0]:
        return False
    for positive in published_number.must_be_positive:
        half_widths = scales.propagate(positive, margins) / size
        if np.any(positive.value <= half_widths):
            return False
    return True


def _own_margins(
    goal: MomentGoal, plan: Plan, stds: dict[tuple[int, int], float]
) -> dict[str, float]:
    """Return half widths of intervals in a noise-free release, by number.

    The names are the names of the statistic's numbers. The result is empty for correlations, whose
    largest half width follows from derivatives.
    """
    from leastnoise._estimation import (  # slow to import
        expected_determination,
        expected_slope_margins,
        expected_variance_intervals,
    )

    statistic = goal.statistic
    level = goal.level or LEVEL
    if statistic.kind == "regression":
        return expected_slope_margins(plan, statistic, stds, level)
    if statistic.kind == "r_squared":
        half_widths = expected_determination(plan, statistic, stds, level)
        return {statistic.target_column: float(np.max(half_widths))}
    if statistic.kind != "variances":
        return {}
    low, high = expected_variance_intervals(plan, statistic, list(stds.values()), level)
    if statistic.target_column == "std_dev":
        low = np.sqrt(low)
        high = np.sqrt(high)
    return {statistic.target_column: float(np.max(high - low)) / 2}


def _largest_error_over_means(scales: MomentScales, gradient: Gradient, noise: FloatArray) -> float:
    """Return the largest standard error of a number over possible means."""
    return float(np.max(scales.propagate(gradient, noise)))
