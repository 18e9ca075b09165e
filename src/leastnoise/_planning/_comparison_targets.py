"""Expected errors of differences and ratios, for targets and A/B tests.

The error of a difference or a ratio of two groups follows from the plan and from public numbers:
the size of the groups, and in some cases the expected mean. No data is read.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from leastnoise._error import (
    LEVEL,
    Covariance,
    Estimated,
    PairCovariances,
    checked_level,
    correlation_of,
    difference_interval,
    error_covariance,
    estimate_quotient,
    interval_multiplier,
    linear_difference,
    measure_covariance,
    quotient_interval,
)
from leastnoise._plan import AdaptivePlan, Plan
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import (
    ComparisonTarget,
    Product,
    Quotient,
    Workload,
    read_comparison_targets,
)

# If the interval of a ratio is unbounded, the search uses the standard error by the delta method,
# divided by this number. The result is large, and decreases with the noise.
_UNBOUNDED_ERROR_DIVISOR = 0.1


@dataclass(frozen=True, slots=True)
class ComparisonErrors:
    """The expected margin and standard error of a difference or a ratio.

    Attributes:
        margin: the distance to the farther end of the interval; infinite if the interval is
            unbounded.
        std_error: the standard error.
    """

    margin: float
    std_error: float


@dataclass(frozen=True, slots=True)
class ComparisonGoal:
    """A target for the error of a comparison, and the tables that decide it.

    Attributes:
        target: the target.
        tables: the positions of these tables in the workload.
        level: the confidence level of the interval whose half width is the error; None if the error
            is the standard error.
    """

    target: ComparisonTarget
    tables: tuple[int, ...]
    level: float | None

    @property
    def most(self) -> float:
        """The largest margin or standard error that the target allows."""
        return float(self.target.most)

    @property
    def limits(self) -> tuple[float, ...]:
        """First estimates of the largest standard error that each table may have."""
        scale = self.most / math.sqrt(2)
        # The error of a difference of counts or sums does not depend on the size of the groups.
        if self.target.form == "ratio" or self.target.comparison.quantity.is_quotient:
            scale *= float(self.target.size or 1)
        return (scale,) * len(self.tables)

    def error(self, plan: Plan) -> float:
        """Return the comparison's expected margin or standard error, to be minimised.

        The result is a large number if the interval of a ratio is unbounded.
        """
        errors = comparison_errors(plan, self.target, self.level or LEVEL)
        if self.level is None:
            return errors.std_error
        if math.isfinite(errors.margin):
            return errors.margin
        return errors.std_error / _UNBOUNDED_ERROR_DIVISOR


def comparison_goals(
    workload: Workload, targets: Sequence[ComparisonTarget], level: float
) -> tuple[ComparisonGoal, ...]:
    """Return the goal of each difference or ratio that has a target.

    Raises:
        InputError: no table has the attributes of a comparison.
    """
    goals = []
    for target in targets:
        products = []
        for side in target.comparison.sides(workload.domain):
            products += [part for part in (side.numerator, side.denominator) if part is not None]
        tables = tuple(
            number for number, table in enumerate(workload) if _contains_any(table, products)
        )
        if not tables:
            raise InputError(
                f"No table of the workload determines the {target.name}. Request a table by "
                f"{' and '.join(products[0].attributes)}."
            )
        goals.append(ComparisonGoal(target, tables, level if target.kind == "margin" else None))
    return tuple(goals)


def _contains_any(table: Product, others: Iterable[Product]) -> bool:
    """Return whether a table contains the cells of at least one other table."""
    return any(
        table.measure == product.measure and {*product.attributes} <= {*table.attributes}
        for product in others
    )


def comparison_errors(plan: Plan, target: ComparisonTarget, level: float) -> ComparisonErrors:
    """Return the expected errors of a difference or a ratio under a plan.

    If the target does not state the expected value, the errors are the largest over all means
    within the bounds.

    Raises:
        InputError: the plan has no expected errors, or does not determine the comparison.
    """
    if isinstance(plan, AdaptivePlan):
        raise InputError(
            f"The error of the {target.name} is not known before the release under the "
            f"strategy {plan.strategy!r}. Choose strategy = 'auto'."
        )
    sides = target.comparison.sides(plan.domain)
    errors = [
        _errors_at(plan, target, sides, values, level) for values in _expected_values(plan, target)
    ]
    return ComparisonErrors(
        max(each.margin for each in errors), max(each.std_error for each in errors)
    )


def _expected_values(plan: Plan, target: ComparisonTarget) -> list[tuple[float, float]]:
    """Return pairs of expected values for which margins are computed.

    A pair has the value in the first group, and the value in the group ``against``.
    """
    from leastnoise._estimation import possible_values, unit_of  # slow to import

    quantity = target.comparison.quantity
    unit = unit_of(quantity, plan.domain)
    if target.value is not None:
        against = float(target.value) / unit
    elif quantity.kind == "count":
        against = float(target.size or 0)
    elif quantity.kind == "sum":
        against = 0.0
    else:
        ends = possible_values(quantity, plan.domain)
        return list(itertools.product(ends, ends))
    if target.form == "ratio":
        ratio = float(target.ratio)
    else:
        ratio = 1.0
    return [(ratio * against, against)]


def _errors_at(
    plan: Plan,
    target: ComparisonTarget,
    sides: tuple[Quotient, Quotient],
    values: tuple[float, float],
    level: float,
) -> ComparisonErrors:
    """Return the expected errors if both groups have the given values."""
    from leastnoise._estimation import unit_of  # slow to import

    covariance = plan_covariances(plan)
    multiplier = interval_multiplier(plan.measured().noise, level)
    size = float(target.size or 1)
    first, second = expect_sides(plan, target, sides, values, (size, size), covariance, multiplier)
    names = _axes(plan, sides)
    correlation = correlation_of(
        error_covariance(sides, (first, second), covariance, names), first, second
    )
    if target.form == "ratio":
        interval = quotient_interval(first, second, correlation)
        unit = 1.0
    else:
        unit = unit_of(target.comparison.quantity, plan.domain)
        if target.comparison.quantity.is_quotient:
            interval = difference_interval(first, second, correlation)
        else:
            half_step = 0.5 / plan.measured().grid
            interval = linear_difference(first, second, correlation, multiplier, half_step)
    margins = np.maximum(interval.high - interval.value, interval.value - interval.low)
    std_errors = interval.std_error
    if target.form == "ratio":
        std_errors = _ratio_std(first, second, correlation)
        margins = np.where(np.isfinite(margins), margins, np.inf)
    return ComparisonErrors(
        float(np.max(margins)) * unit, float(np.max(np.nan_to_num(std_errors, nan=np.inf))) * unit
    )


def _ratio_std(first: Estimated, second: Estimated, correlation: FloatArray) -> FloatArray:
    """Return the standard error of a ratio of estimates, by the delta method."""
    ratio = first.value / second.value
    variance = (
        first.std_error**2
        + ratio**2 * second.std_error**2
        - 2 * ratio * correlation * first.std_error * second.std_error
    )
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / np.abs(second.value))


def plan_covariances(plan: Plan) -> PairCovariances:
    """Return an object that computes the covariances of a plan's answers."""
    from leastnoise._estimation import public_counts_of_plan  # slow to import

    public = [counts.block for counts in public_counts_of_plan(plan)]
    measured = plan.measured()
    by_measure: dict[str | None, Covariance] = {}

    def covariance_of(measure: str | None) -> Covariance:
        """Return the covariance of the answers about a measure."""
        if measure not in by_measure:
            by_measure[measure] = measure_covariance(measured, measure, public)
        return by_measure[measure]

    def variances_of(product: Product) -> FloatArray:
        """Return the variances of a table's answers."""
        return np.asarray(covariance_of(product.measure).variances(product))

    return PairCovariances(measured, covariance_of, variances_of)


def _axes(plan: Plan, sides: tuple[Quotient, Quotient]) -> tuple[str, ...]:
    """Return all attributes of two compared quotients, in domain order."""
    from leastnoise._estimation import axes_of  # slow to import

    products = chain.from_iterable((side.numerator, side.denominator) for side in sides)
    return axes_of(plan.domain, *products)


def expect_sides(
    plan: Plan,
    target: ComparisonTarget,
    sides: tuple[Quotient, Quotient],
    values: tuple[float, float],
    sizes: tuple[float, float],
    covariance: PairCovariances,
    multiplier: float,
) -> tuple[Estimated, Estimated]:
    """Return the estimates for both groups that a noise-free release gives.

    Args:
        plan: the plan.
        target: the comparison.
        sides: the queries of both sides of the comparison.
        values: the two quantities, in rows or units.
        sizes: the numbers of rows of the two groups.
        covariance: the covariance of the answers.
        multiplier: half the width of an interval in standard errors.
    """
    from leastnoise._estimation import possible_values  # slow to import

    names = _axes(plan, sides)
    bounds = possible_values(target.comparison.quantity, plan.domain)
    estimated = []
    for side, value, size in zip(sides, values, sizes, strict=True):
        lengths = dict(zip(side.numerator.attributes, side.numerator.shape, strict=True))
        ones = np.ones([lengths.get(name, 1) for name in names])
        is_quotient = side.denominator is not None
        estimated.append(
            estimate_quotient(
                side,
                ones * value * (size if is_quotient else 1.0),
                ones * size if is_quotient else None,
                covariance,
                names,
                bounds,
                multiplier,
            )
        )
    first, second = estimated
    return first, second


def read_targets(workload: Workload, targets: object) -> tuple[ComparisonTarget, ...]:
    """Parse the table [targets] of a spec into comparison targets."""
    if targets is None:
        return ()
    return read_comparison_targets(workload.domain, targets)


@dataclass(frozen=True, slots=True)
class ComparisonStatus:
    """The target of a difference or ratio, and its expected error.

    ``error`` is infinite if the interval of a ratio is unbounded.
    """

    name: str
    kind: str
    most: float
    error: float

    @property
    def is_met(self) -> bool:
        """Whether the expected error is at most the target."""
        return self.error <= self.most * (1 + 1e-12)


def comparison_statuses(
    plan: Plan, targets: Sequence[ComparisonTarget], level: float
) -> tuple[ComparisonStatus, ...]:
    """Return the target and the expected error of each difference and ratio."""
    statuses = []
    for target in targets:
        errors = comparison_errors(plan, target, level)
        if target.kind == "margin":
            error = errors.margin
        else:
            error = errors.std_error
        statuses.append(ComparisonStatus(target.name, target.kind, float(target.most), error))
    return tuple(statuses)


def target_errors(
    plan: Plan, targets: Mapping[str, Any], *, level: float = LEVEL
) -> tuple[ComparisonStatus, ...]:
    """Compare the expected errors of differences and ratios with targets.

    Args:
        plan: a plan with expected errors.
        targets: a mapping like ``[targets]`` of a spec: ``difference``, ``ratio`` or both, each
            with one table or a list of tables.
        level: the confidence level of the intervals whose half width a margin limits.

    Returns:
        For each target: its name, the target, the expected error, and whether the target is met.

    Raises:
        InputError: a key or value is not allowed, or the plan does not determine a comparison.

    >>> domain = ln.Domain(arm=["A", "B"], measures={"paid": ln.Measure("paid", 0, 1)})
    >>> plan = ln.plan(ln.mean_queries(domain, "paid", by=["arm"]), ln.PureDP(1))
    >>> target = {
    ...     "along": "arm",
    ...     "group": "B",
    ...     "against": "A",
    ...     "mean": "paid",
    ...     "size": 1000,
    ...     "margin": "0.02",
    ... }
    >>> [
    ...     (status.kind, round(status.error, 4), status.is_met)
    ...     for status in ln.target_errors(plan, {"difference": target})
    ... ]
    [('margin', 0.0048, True)]
    """
    return comparison_statuses(
        plan, read_comparison_targets(plan.domain, targets), checked_level(level)
    )
