"""Least-squares regressions by group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._error import (
    Entry,
    Gradient,
    coefficient_gradients,
    coefficient_scales,
    information_gradients,
    public_eigenvalue,
    slope_points,
    smallest_eigenvalue,
    statistic_scales,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._group_intervals import GroupIntervals
from leastnoise._estimation._moments import (
    EstimatedMoments,
    estimate_moments,
    expected_moments,
)
from leastnoise._plan import Plan
from leastnoise._threads import one_thread
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import (
    By,
    Statistic,
    checked_variables,
    factors_of_sums,
    join_measures,
    term_names,
)

CLEAR_RATIO = 1.5
"""The smallest eigenvalue of the normal equations, over the half width of its interval.

Above this limit, the intervals of coefficients have ends.
"""
SIZE_RATIO = 2.0
"""The same limit for the eigenvalue that the number of rows has at public scales.

Without this limit, 92% of the intervals with ends covered the truth in groups of 20 rows, and 80%
in groups of 10 rows. With it, the intervals of these groups have no ends (``python -m
experiments.coverage_moments``).
"""
_FULLY_CLEAR_RATIO = 2 * CLEAR_RATIO
"""Above this ratio, intervals are not stretched; between both ratios the stretch is linear."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Regression(GroupIntervals):
    """Coefficients of a least-squares regression with intercept, by group.

    The regression describes the rows that have values of all the measures. The intervals cover only
    the noise, not sampling error. Arrays have the shape of the groups along ``by``, whose last key
    is the term.

    Attributes:
        response: the measure that is explained.
        predictors: the measures that explain it.
        by: the names of the columns of the groups, and ``term``.
        coefficient: estimated coefficients: the change of the response when the predictor rises by
            1.
        low: lower ends of the intervals; minus infinity in groups where noise hides the normal
            equations.
        high: upper ends; infinity in these groups.
        std_error: standard errors by the delta method; NaN in the same groups.
        ridge: the number that was added to the diagonal of the normal equations, relative to the
            number of rows. It is 0 unless the noise makes the equations nearly or fully singular.
        counts: the estimated numbers of rows with all values.
        level: each interval contains its true coefficient with this probability.
        labels: the labels of the groups along each attribute of ``by``, and the terms.
        groups: the names of the groups, such as ``sex x store:region``.
        library: the library of the data frames; None if the data was no data frame.
    """

    response: str
    predictors: tuple[str, ...]
    coefficient: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray
    ridge: FloatArray
    counts: FloatArray

    @property
    def quantity(self) -> str:
        """The estimated quantity, such as ``regression of pay on age``."""
        return f"regression of {self.response} on {join_measures(self.predictors)}"

    def intervals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the coefficients, and the lower and upper ends of intervals."""
        return self.coefficient, self.low, self.high

    def numbers(self) -> dict[str, FloatArray]:
        """Return the numeric columns: coefficient, interval, error, ridge and count."""
        return {
            "coefficient": self.coefficient,
            "low": self.low,
            "high": self.high,
            "std_error": self.std_error,
            "ridge": self.ridge,
            "count": self.counts,
        }


@one_thread()
def regression(
    source: HasLeastSquares,
    of: str,
    *,
    on: Sequence[str],
    by: By = (),
    level: float = 0.95,
) -> Regression:
    """Estimate a least-squares regression with an intercept, by group.

    The regression describes the rows that have values of all the measures. The coefficients solve
    the normal equations, whose sums were all measured.

    Args:
        source: an estimate or a release; it costs no budget.
        of: the measure that is explained.
        on: the measures that explain it. The measures in ``of`` and ``on`` must together be a set
            that was measured.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            ln.level("region")}``. If it is empty, all rows are one group.
        level: the confidence level of each interval, separately.

    Returns:
        The coefficients. The values of the measures are clipped to their bounds.

    Raises:
        InputError: the measurements do not determine the sums by these groups, or the measure does
            not exist.

    Guarantees: post-processing. Intervals are Fieller intervals of a quotient, with variances by
        the delta method. The noise is compatible with every value of the coefficients in two cases:
        the group has too few rows, or the smallest eigenvalue of the normal equations is not
        significantly above 0. Then the interval is unbounded, and the coefficients are computed
        with the least ridge that makes this eigenvalue at least one standard error. An interval
        covers the true coefficient with a probability of about ``level`` or more; this also holds
        among the bounded intervals only.

    >>> domain = ln.Domain(
    ...     sex=["F", "M"],
    ...     measures={"pay": ln.Measure("income", 0, 100), "age": ln.Measure("age", 20, 60)},
    ... )
    >>> plan = ln.plan(ln.regression_queries(domain, "pay", on=["age"]), ln.PureDP(1))
    >>> people = pd.DataFrame(
    ...     {"sex": ["F", "M"] * 900, "income": [40, 60, 80] * 600, "age": [30, 35, 50] * 600}
    ... )
    >>> found = ln.regression(ln.release(plan, people, seed=7), "pay", on=["age"])
    >>> found.labels, found.coefficient.round(2).tolist(), found.low.round(2).tolist()
    ((('(intercept)', 'age'),), [-11.62, 1.88], [-16.28, 1.76])
    """
    domain = estimate_of(source).observation.measurements.domain
    predictors = checked_variables(domain, "on", on)
    variables = checked_variables(domain, "of and on", [of, *predictors], minimum=2)
    estimated = estimate_moments(source, variables, factors_of_sums(variables, of), by, level)
    columns = estimated.in_parts(coefficient_columns)
    terms = term_names(variables)
    shape = (*estimated.shape, len(terms))
    arrays = {name: values.reshape(shape) for name, values in columns.items()}
    return Regression(
        response=of,
        predictors=predictors,
        by=(*estimated.by, "term"),
        **arrays,
        level=estimated.level,
        labels=(*estimated.labels, terms),
        groups=estimated.groups,
        library=source.library,
    )


def expected_slope_margins(
    plan: Plan, statistic: Statistic, stds: Mapping[Entry, float], level: float
) -> dict[str, float]:
    """Compute the expected half widths of slopes' intervals, without data.

    Args:
        plan: the plan.
        statistic: a regression with a public size.
        stds: the standard error of the sums of each entry of the moments, in units of the sums.
        level: the confidence level of the intervals.

    Returns:
        The half width at the public scales for each predictor, in amounts; infinite if the interval
        has no ends.
    """
    scales = statistic_scales(statistic, plan.domain, plan.measured())
    moments = float(statistic.size or 0) * slope_points(statistic, scales)
    columns = coefficient_columns(expected_moments(plan, scales, moments, stds, level))
    half_widths = (columns["high"] - columns["low"])[0, 1:] / 2
    return dict(zip(statistic.on, half_widths.tolist(), strict=True))


def coefficient_columns(estimated: EstimatedMoments) -> dict[str, FloatArray]:
    """Return the arrays of `Regression`, each of shape (groups, terms)."""
    eigenvalue = smallest_eigenvalue(estimated.moments)
    half_width = estimated.half_width(eigenvalue)
    clearness = eigenvalue.value / half_width
    at_public_scales = estimated.counts * public_eigenvalue(estimated.scales)
    is_clear = (clearness > CLEAR_RATIO) & (at_public_scales > SIZE_RATIO * half_width)
    least_eigenvalue = estimated.std_error(eigenvalue)
    ridge = np.where(is_clear, 0.0, np.maximum(least_eigenvalue - eigenvalue.value, 0.0))
    weight_rows, constants = coefficient_scales(estimated.scales)
    coefficients = coefficient_gradients(estimated.moments, weight_rows, ridge)
    information = information_gradients(estimated.moments, weight_rows, ridge)
    stretch = interval_stretch(clearness)
    below = np.full((len(ridge), len(coefficients)), np.inf)
    above = below.copy()
    for term, pair in enumerate(zip(coefficients, information, strict=True)):
        distances = _interval_distances(estimated, *pair, stretch)
        below[is_clear, term] = distances[0][is_clear]
        above[is_clear, term] = distances[1][is_clear]
    std_errors = np.stack([estimated.std_error(one) for one in coefficients], axis=-1)
    std_errors[np.isinf(above)] = np.nan
    values = np.stack([one.value for one in coefficients], axis=-1) + constants
    share = ridge / np.maximum(estimated.counts, 1.0)
    return {
        "coefficient": values,
        "low": values - below,
        "high": values + above,
        "std_error": std_errors,
        "ridge": np.repeat(share[:, None], len(coefficients), axis=1),
        "counts": np.repeat(estimated.counts[:, None], len(coefficients), axis=1),
    }


def interval_stretch(eigenvalue_ratio: FloatArray) -> FloatArray:
    """Return the factor that widens the intervals of ill-conditioned groups.

    ``eigenvalue_ratio`` is the smallest eigenvalue of the normal equations divided by its standard
    error.

    At the least ratio for which the interval is finite, the factor equals the ratio. Noise that
    raises an eigenvalue above this threshold then stays within the interval.
    """
    part = (_FULLY_CLEAR_RATIO - eigenvalue_ratio) / (_FULLY_CLEAR_RATIO - CLEAR_RATIO)
    return np.asarray(1 + (CLEAR_RATIO - 1) * np.clip(part, 0.0, 1.0))


def _interval_distances(
    estimated: EstimatedMoments,
    numerator_gradient: Gradient,
    divisor_gradient: Gradient,
    width_factor: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the distances from a coefficient to the ends of its interval.

    A coefficient is a quotient v / d, where d is the information. The interval consists of
    all b with abs(v - b d) <= m s(b), where m is the multiplier and s(b) is the standard error of
    v - b d. The distances are infinite if d is not significantly above 0.
    """
    value = divisor_gradient.value
    factor = width_factor**2
    own = factor * value**2 * estimated.scaled_covariance(numerator_gradient, numerator_gradient)
    shared = factor * value * estimated.scaled_covariance(numerator_gradient, divisor_gradient)
    leading = value**2 - factor * estimated.scaled_covariance(divisor_gradient, divisor_gradient)
    has_ends = leading > 0
    divisor = np.where(has_ends, leading, 1.0)
    root = np.sqrt(np.maximum(shared**2 + divisor * own, 0.0))
    below = np.where(has_ends, (root + shared) / divisor, np.inf)
    above = np.where(has_ends, (root - shared) / divisor, np.inf)
    return below, above
