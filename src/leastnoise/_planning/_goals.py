"""What the errors of tables are compared with: their targets, and those of the means that they make. Public: no data is seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from leastnoise._accounting import Noise
from leastnoise._accuracy import farthest, interval_multiplier, mean_error
from leastnoise._check import InputError, refuse
from leastnoise._check.arrays import FloatArray
from leastnoise._plan import Plan
from leastnoise._workload import Product, Statistic, Target, Workload

_CLEAR = 0.99  # of the square of a count's half width over its size: beyond that an interval of a mean is as good as unbounded


@dataclass(frozen=True, slots=True)
class MeanGoal:
    """The target of means by group: what their error in a group of the public size is compared with, whatever the mean is.

    It limits both tables that the means follow from: with bounds low and high of the measure, the error of a mean m has the variance of
    S - m C over the size n. That is linear between the bounds, so both S = (high (S - low C) - low (S - high C)) / (high - low) and
    C = ((S - low C) - (S - high C)) / (high - low) have at most so many times the largest error of S - m C as their coefficients add up to.
    """

    asked: Statistic
    most: float
    size: float
    places: tuple[int, int]
    limits: tuple[float, float]
    level: float | None

    @classmethod
    def of(cls, asked: Statistic, target: Target, workload: Workload, level: float) -> Self:
        """That of a statistic of a workload, with its target."""
        measure = workload.domain.measure(asked.of)
        low, high = measure.low_units, measure.high_units
        most, size = float(target.most), float(asked.size or 0)
        whole = most / float(measure.unit) * size
        where = {product.question: place for place, product in enumerate(workload)}
        counts, sums = (where[product.question] for product in workload.tables_of(asked))
        limits = 2 * whole / (high - low), whole * (abs(high) + abs(low)) / (high - low)
        return cls(asked, most, size, (counts, sums), limits, level if target.kind == "margin" else None)

    def error(self, plan: Plan) -> float:
        """Standard error of a mean by the delta method, or half the width of its interval, at most; in the measure's amounts."""
        measured, tables = plan.measured(), plan.expected_error().tables
        counts, sums = (tables[place] for place in self.places)
        amounts = float(plan.domain.measure(self.asked.of).unit) / self.size
        if self.level is None:
            return mean_error(measured, self.asked.of, counts.rmse, sums.rmse) * amounts
        times, step = interval_multiplier(measured.noise, self.level), 0.5 / measured.grid
        half = times * mean_error(measured, self.asked.of, counts.largest_std, sums.largest_std)
        half += step * (1 + farthest(measured, self.asked.of))
        return half * amounts / (1 - min(_CLEAR, ((times * counts.largest_std + step) / self.size) ** 2))

    def ratio(self, plan: Plan) -> float:
        """Squared error over squared limit: at most 1 where the target is kept."""
        return (self.error(plan) / self.most) ** 2

    def std(self, noise: Noise, place: int) -> float:
        """The standard error of a table beyond which the target cannot be kept."""
        return _std(self.limits[self.places.index(place)], self.level, noise)


@dataclass(frozen=True, slots=True)
class Goal:
    """What the error of a table is compared with."""

    most: float
    level: float | None = None
    means: tuple[MeanGoal, ...] = ()

    @property
    def wanted(self) -> bool:
        """Whether there is a limit at all."""
        return math.isfinite(self.most) or bool(self.means)

    def ratio(self, plan: Plan, place: int) -> float:
        """Squared error over squared limit of a table, or of means that are made of it: at most 1 where the goal is kept."""
        table, measured = plan.expected_error().tables[place], plan.measured()
        if self.level is None:
            own = table.rmse
        else:
            own = interval_multiplier(measured.noise, self.level) * table.largest_std + 0.5 / measured.grid
        return max([(own / self.most) ** 2, *(goal.ratio(plan) for goal in self.means)])

    def std(self, noise: Noise, place: int) -> float:
        """The standard error that keeps the goal, but for half a step of the noise."""
        return min([_std(self.most, self.level, noise), *(goal.std(noise, place) for goal in self.means)])


def _std(most: float, level: float | None, noise: Noise) -> float:
    return most if level is None else most / interval_multiplier(noise, level)


def goals_of(workload: Workload, level: float) -> tuple[Goal, ...]:
    """The targets of a workload as goals of its tables."""
    if not workload.has_targets:
        raise InputError("No table has a target. Give one table at least a margin, a relative error with a size, or an rmse.")
    means = mean_goals(workload, level)
    return tuple(goal(product, level, [one for one in means if place in one.places]) for place, product in enumerate(workload))


def mean_goals(workload: Workload, level: float) -> tuple[MeanGoal, ...]:
    """The targets of means as goals, in the order of the statistics."""
    return tuple(MeanGoal.of(one, one.target, workload, level) for one in workload.statistics if one.target is not None)


def goal(product: Product, level: float, means: Sequence[MeanGoal] = ()) -> Goal:
    """The target of one table as a goal, with those of means that are made of it; no limit if there is none."""
    if product.target is None:
        return Goal(math.inf, None, tuple(means))
    most = float(product.target.most) / product.unit
    if product.target.kind == "margin" and most < 1:
        advice = "Half a step of the noise belongs to every interval, so that smaller margins leave no room for noise."
        raise refuse(f"the margin of {product.name}", str(product.target.most), f"at least {product.unit:g}", advice)
    return Goal(most, level if product.target.kind == "margin" else None, tuple(means))


def ratios(goals: Sequence[Goal], plan: Plan) -> FloatArray:
    """Squared error over squared limit of every table: float array of shape (tables,); at most 1 where the goal is kept."""
    return np.array([goal.ratio(plan, place) for place, goal in enumerate(goals)])
