"""Coefficients of determination R^2 of regressions, by group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._error import (
    EffectNoise,
    Entry,
    covariance_gradient,
    effect_noise,
    public_eigenvalue,
    r_squared_points,
    smallest_eigenvalue,
    standardised_effects,
    statistic_scales,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._group_intervals import GroupIntervals
from leastnoise._estimation._moments import (
    EstimatedMoments,
    estimate_moments,
    expected_moments,
)
from leastnoise._estimation._regression import CLEAR_RATIO, SIZE_RATIO, interval_stretch
from leastnoise._plan import Plan
from leastnoise._threads import one_thread
from leastnoise._trusted.check.arrays import BoolArray, FloatArray
from leastnoise._workload import (
    By,
    Statistic,
    checked_variables,
    factors_of_sums,
    join_measures,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Determination(GroupIntervals):
    """The share of the variance of a measure that a regression explains.

    This share is R^2, the coefficient of determination, of the least-squares regression with
    intercept. R^2 describes the rows that have values of all the measures, not a population. Arrays
    have the shape of the groups along ``by``.

    Attributes:
        response: the measure that is explained.
        predictors: the measures that explain it.
        by: the names of the columns of the groups.
        r_squared: estimated R^2, between 0 and 1; the amount that the noise adds on average is
            subtracted. NaN where the noise hides R^2.
        low: lower ends of the intervals; 0 in groups where the noise hides R^2.
        high: upper ends; 1 in these groups.
        std_error: standard errors by the delta method to second order; NaN in the same groups.
        counts: the estimated numbers of rows with all values.
        level: each interval contains its true R^2 with this probability.
        labels: the labels of the groups along each attribute of ``by``.
        groups: the names of the groups, such as ``sex x store:region``.
        library: the library of the data frames; None if the data was no data frame.
    """

    response: str
    predictors: tuple[str, ...]
    r_squared: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray
    counts: FloatArray

    @property
    def quantity(self) -> str:
        """The estimated quantity, such as ``R^2 of pay on age and tenure``."""
        return f"R^2 of {self.response} on {join_measures(self.predictors)}"

    def intervals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return R^2, and the lower and upper ends of intervals."""
        return self.r_squared, self.low, self.high

    def numbers(self) -> dict[str, FloatArray]:
        """Return the numeric columns: R^2, its interval, its error, and the count."""
        return {
            "r_squared": self.r_squared,
            "low": self.low,
            "high": self.high,
            "std_error": self.std_error,
            "count": self.counts,
        }


@one_thread()
def r_squared(
    source: HasLeastSquares,
    of: str,
    *,
    on: Sequence[str],
    by: By = (),
    level: float = 0.95,
) -> Determination:
    """Estimate R^2 of a least-squares regression with an intercept, by group.

    R^2 is the share of the variance of a measure that the predictors explain, among the rows that
    have values of all the measures. The computation of R^2 needs the sum of squares of the
    response. This sum is measured for `r_squared_queries` and `correlation_queries`, and not for
    `regression_queries`.

    Args:
        source: an estimate or a release; it costs no budget.
        of: the measure that is explained.
        on: the measures that explain it. The measures in ``of`` and ``on`` must be exactly a set
            whose correlations or R^2 were requested.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            ln.level("region")}``. If it is empty, all rows are one group.
        level: the confidence level of each interval, separately.

    Returns:
        R^2 by group. The values of the measures are clipped to their bounds.

    Raises:
        InputError: the measurements do not determine the sums by these groups, or the measure does
            not exist.

    Guarantees: post-processing. The interval contains every R^2 that is compatible with the noise.
        The interval uses the delta method to second order, because the first order vanishes at R^2
        = 0. The interval extends from 0 to 1 in three cases: the group has too few rows, the
        variance of the response is not significantly above 0, or the smallest eigenvalue of the
        normal equations is not. An interval covers the true R^2 with a probability of about
        ``level`` or more.

    >>> domain = ln.Domain(
    ...     sex=["F", "M"],
    ...     measures={"pay": ln.Measure("income", 0, 100), "age": ln.Measure("age", 20, 60)},
    ... )
    >>> plan = ln.plan(ln.r_squared_queries(domain, "pay", on=["age"]), ln.PureDP(1))
    >>> people = pd.DataFrame(
    ...     {"sex": ["F", "M"] * 900, "income": [40, 60, 80] * 600, "age": [30, 35, 50] * 600}
    ... )
    >>> found = ln.r_squared(ln.release(plan, people, seed=7), "pay", on=["age"])
    >>> found.r_squared.round(2).item(), found.low.round(2).item(), found.high.round(2).item()
    (0.94, 0.8, 1.0)
    """
    domain = estimate_of(source).observation.measurements.domain
    predictors = checked_variables(domain, "on", on)
    variables = checked_variables(domain, "of and on", [of, *predictors], minimum=2)
    estimated = estimate_moments(source, variables, factors_of_sums(variables), by, level)
    columns = estimated.in_parts(determination_columns)
    return Determination(
        response=of,
        predictors=predictors,
        by=estimated.by,
        **{name: values.reshape(estimated.shape) for name, values in columns.items()},
        level=estimated.level,
        labels=estimated.labels,
        groups=estimated.groups,
        library=source.library,
    )


def expected_determination(
    plan: Plan, statistic: Statistic, stds: Mapping[Entry, float], level: float
) -> FloatArray:
    """Compute the expected half widths of intervals of R^2, without data.

    Args:
        plan: the plan.
        statistic: R^2 with a public size.
        stds: the standard error of the sums of each entry of the moments, in units of the sums.
        level: the confidence level of the intervals.

    Returns:
        The half widths at the public scales, for each mean and R^2 that is tried.
    """
    scales = statistic_scales(statistic, plan.domain, plan.measured())
    moments = float(statistic.size or 0) * r_squared_points(statistic, scales)
    columns = determination_columns(expected_moments(plan, scales, moments, stds, level))
    return np.asarray((columns["high"] - columns["low"]) / 2)


def determination_columns(estimated: EstimatedMoments) -> dict[str, FloatArray]:
    """Return the arrays of `Determination`, each of shape (groups,)."""
    groups = estimated.counts.shape
    columns = {
        "r_squared": np.full(groups, np.nan),
        "low": np.zeros(groups),
        "high": np.ones(groups),
        "std_error": np.full(groups, np.nan),
    }
    stretch, is_clear = _clear_groups(estimated)
    if is_clear.any():
        clear_columns = _clear_columns(estimated.of_groups(is_clear), stretch[is_clear])
        for name, values in clear_columns.items():
            columns[name][is_clear] = values
    return {**columns, "counts": estimated.counts}


def _clear_groups(estimated: EstimatedMoments) -> tuple[FloatArray, BoolArray]:
    """Return factors that widen intervals, and whether R^2 exceeds its noise.

    The normal equations must meet the same conditions as for the coefficients of a regression.
    """
    eigenvalue = smallest_eigenvalue(estimated.moments)
    half_width = estimated.half_width(eigenvalue)
    clearness = eigenvalue.value / half_width
    at_public_scales = estimated.counts * public_eigenvalue(estimated.scales)
    is_clear = (clearness > CLEAR_RATIO) & (at_public_scales > SIZE_RATIO * half_width)
    clear = estimated.of_groups(is_clear)
    variance = covariance_gradient(clear.moments, 1, 1)
    variance_ratio = variance.value / clear.half_width(variance)
    is_clear[is_clear] = variance_ratio > CLEAR_RATIO
    clearness[is_clear] = np.minimum(
        clearness[is_clear], variance_ratio[variance_ratio > CLEAR_RATIO]
    )
    return interval_stretch(clearness), is_clear


def _clear_columns(estimated: EstimatedMoments, stretch: FloatArray) -> dict[str, FloatArray]:
    """Return R^2, interval and error of groups where R^2 exceeds its noise.

    Let x be the true R^2, and N the covariance matrix of the error e of the effects v. Let T =
    |v|^2 be the R^2 of the noisy moments. Then T has the mean x + tr N and the variance Q + 4 x a,
    where Q is the variance of |e|^2 and a is the variance of e along v. The interval has all x for
    which T is at most z standard errors from its mean.
    """
    effects = standardised_effects(estimated.moments)
    scales = estimated.scales
    spread = effect_noise(scales, effects, estimated.noise, estimated.noise_kind)
    wide = effect_noise(scales, effects, estimated.interval_noise, estimated.noise_kind)
    squared_multiplier = (estimated.multiplier * stretch) ** 2
    unbiased = effects.squared_length - spread.mean
    low, _ = _ends(unbiased, squared_multiplier, wide)
    # The upper end never falls below its value for a noisy R^2 equal to the mean noise at 0.
    _, high = _ends(np.maximum(unbiased, 0.0), squared_multiplier, wide)
    return {
        "r_squared": np.clip(unbiased, 0.0, 1.0),
        "low": np.clip(low, 0.0, 1.0),
        "high": np.clip(high, 0.0, 1.0),
        "std_error": spread.std_error(np.maximum(unbiased, 0.0)),
    }


def _ends(
    unbiased: FloatArray, squared_multiplier: FloatArray, noise: EffectNoise
) -> tuple[FloatArray, FloatArray]:
    """Return the roots x of (unbiased - x)^2 = z^2 (variance + 4 x along)."""
    middle = unbiased + 2 * squared_multiplier * noise.along
    constant = unbiased**2 - squared_multiplier * noise.variance
    root = np.sqrt(np.maximum(middle**2 - constant, 0.0))
    return middle - root, middle + root
