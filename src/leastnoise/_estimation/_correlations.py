"""Covariances and correlations by group, of pairs of measures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from leastnoise._error import Gradient, correlation_gradient, covariance_gradient
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._group_intervals import GroupIntervals
from leastnoise._estimation._moments import EstimatedMoments, estimate_moments
from leastnoise._threads import one_thread
from leastnoise._trusted.check.arrays import BoolArray, FloatArray
from leastnoise._workload import By, checked_variables, factors_of_sums, join_measures, pair_names

_LARGEST_COVARIANCE = 0.25  # the largest absolute covariance of two measures on [0, 1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Correlations(GroupIntervals):
    """Correlations and covariances of all pairs of some measures, by group.

    Correlations and covariances describe the rows that have values of all the measures, and not a
    population from which the rows were drawn. So covariances are divided by the number n of these
    rows, not by n - 1. Arrays have the shape of the groups along ``by``, whose last key is the
    pair.

    Attributes:
        measures: the measures.
        by: the names of the columns of the groups, and ``pair``.
        correlation: estimated correlations, between -1 and 1; 0 where a variance is not above 0.
        low: lower ends of the intervals of the correlations.
        high: upper ends.
        std_error: standard errors of the correlations by the delta method; NaN where the count or a
            variance is not significantly above 0.
        covariance: estimated covariances, in products of the measures' own values.
        covariance_low: lower ends of the intervals of the covariances.
        covariance_high: upper ends.
        covariance_std_error: standard errors of the covariances; NaN where the count is not
            significantly above 0.
        counts: the estimated numbers of rows with all values.
        level: each interval contains its true value with this probability.
        labels: the labels of the groups along each attribute of ``by``, and the pairs.
        groups: the names of the groups, such as ``sex x store:region``.
        library: the library of the data frames; None if the data was no data frame.
    """

    measures: tuple[str, ...]
    correlation: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray
    covariance: FloatArray
    covariance_low: FloatArray
    covariance_high: FloatArray
    covariance_std_error: FloatArray
    counts: FloatArray

    @property
    def quantity(self) -> str:
        """The estimated quantity, such as ``correlations of pay and age``."""
        return f"correlations of {join_measures(self.measures)}"

    def intervals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the correlations, and the lower and upper ends of intervals."""
        return self.correlation, self.low, self.high

    def numbers(self) -> dict[str, FloatArray]:
        """Return the numeric columns: correlation, covariance and count.

        The columns ``low``, ``high`` and ``std_error`` belong to the correlation.
        """
        return {
            "correlation": self.correlation,
            "low": self.low,
            "high": self.high,
            "std_error": self.std_error,
            "covariance": self.covariance,
            "covariance_low": self.covariance_low,
            "covariance_high": self.covariance_high,
            "covariance_std_error": self.covariance_std_error,
            "count": self.counts,
        }


@one_thread()
def correlations(
    source: HasLeastSquares, measures: Sequence[str], *, by: By = (), level: float = 0.95
) -> Correlations:
    """Estimate covariances and correlations of all pairs of measures by group.

    The estimates describe the rows that have values of all the measures. Three kinds of measured
    numbers are used: the number of these rows, the sums of deviations, and the sums of products of
    deviations.

    Args:
        source: an estimate or a release; it costs no budget.
        measures: the names of the measures, exactly those that were measured together.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            ln.level("region")}``. If it is empty, all rows are one group.
        level: the confidence level of each interval, separately.

    Returns:
        The correlations and covariances. The values of the measures are clipped to their bounds.

    Raises:
        InputError: the measurements do not determine the sums by these groups, or the measure does
            not exist.

    Guarantees: post-processing. Intervals come from the delta method, with the multiplier of the
        release's own intervals. If the count is not significantly above 0, the interval contains
        all values that the bounds allow. The interval of a correlation contains all these values
        also if a variance is not significantly above 0. An interval covers the true value with a
        probability of about ``level`` or more.

    >>> domain = ln.Domain(
    ...     sex=["F", "M"],
    ...     measures={"pay": ln.Measure("income", 0, 100), "age": ln.Measure("age", 20, 60)},
    ... )
    >>> plan = ln.plan(ln.correlation_queries(domain, ["pay", "age"]), ln.PureDP(1))
    >>> people = pd.DataFrame(
    ...     {"sex": ["F", "M"] * 900, "income": [40, 60, 80] * 600, "age": [30, 35, 50] * 600}
    ... )
    >>> found = ln.correlations(ln.release(plan, people, seed=7), ["pay", "age"])
    >>> (
    ...     found.correlation.round(2).tolist(),
    ...     found.low.round(2).tolist(),
    ...     found.high.round(2).tolist(),
    ... )
    ([0.97], [0.89], [1.0])
    """
    variables = checked_variables(
        estimate_of(source).observation.measurements.domain, "measures", measures, minimum=2
    )
    estimated = estimate_moments(source, variables, factors_of_sums(variables), by, level)
    pairs = [*combinations(range(1, len(variables) + 1), 2)]
    columns = [
        estimated.in_parts(partial(pair_columns, first=first, second=second))
        for first, second in pairs
    ]
    shape = (*estimated.shape, len(pairs))
    arrays = {
        name: np.stack([of_pair[name] for of_pair in columns], axis=-1).reshape(shape)
        for name in columns[0]
    }
    return Correlations(
        measures=variables,
        by=(*estimated.by, "pair"),
        **arrays,
        level=estimated.level,
        labels=(*estimated.labels, pair_names(variables)),
        groups=estimated.groups,
        library=source.library,
    )


def pair_columns(estimated: EstimatedMoments, first: int, second: int) -> dict[str, FloatArray]:
    """Return the arrays of `Correlations` for one pair of measures.

    ``first`` and ``second`` are the rows of the measures in the moment matrices.
    """
    scales = estimated.scales
    at = [first - 1, second - 1]
    width = float(np.prod(scales.widths[at]))
    largest = _LARGEST_COVARIANCE * float(np.prod((scales.highs - scales.lows)[at]))
    covariance = _estimate_clear_groups(
        estimated,
        estimated.has_clear_count,
        lambda moments: covariance_gradient(moments, first, second),
        largest,
    )
    correlation = _estimate_clear_groups(
        estimated,
        _has_clear_variances(estimated, first, second),
        lambda moments: correlation_gradient(moments, first, second),
        1.0,
    )
    return {
        "correlation": correlation.values,
        "low": correlation.low,
        "high": correlation.high,
        "std_error": correlation.std_error,
        "covariance": covariance.values * width,
        "covariance_low": covariance.low * width,
        "covariance_high": covariance.high * width,
        "covariance_std_error": covariance.std_error * width,
        "counts": estimated.counts,
    }


class _GroupEstimates(NamedTuple):
    """An estimate for each group, with its interval and standard error."""

    values: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray


def _estimate_clear_groups(
    estimated: EstimatedMoments,
    is_clear: BoolArray,
    gradient_of: Callable[[FloatArray], Gradient],
    largest_magnitude: float,
) -> _GroupEstimates:
    """Return an estimate and its interval for each group.

    The interval is from -largest_magnitude to largest_magnitude for groups with ``is_clear``
    False.
    """
    groups = estimated.counts.shape
    values = np.zeros(groups)
    low = np.full(groups, -largest_magnitude)
    high = np.full(groups, largest_magnitude)
    std_error = np.full(groups, np.nan)
    clear = estimated.of_groups(is_clear)
    gradient = gradient_of(clear.moments)
    half_width = clear.half_width(gradient)
    values[is_clear] = np.clip(gradient.value, -largest_magnitude, largest_magnitude)
    low[is_clear] = np.clip(gradient.value - half_width, -largest_magnitude, largest_magnitude)
    high[is_clear] = np.clip(gradient.value + half_width, -largest_magnitude, largest_magnitude)
    std_error[is_clear] = clear.std_error(gradient)
    return _GroupEstimates(values, low, high, std_error)


def _has_clear_variances(estimated: EstimatedMoments, first: int, second: int) -> BoolArray:
    """Return whether the count and both variances are significantly above 0.

    The result has one value for each group.
    """
    is_clear = estimated.has_clear_count.copy()
    clear_groups = estimated.of_groups(is_clear)
    variances = [covariance_gradient(clear_groups.moments, row, row) for row in (first, second)]
    is_clear[is_clear] = np.logical_and(
        *(clear_groups.is_clear(variance) for variance in variances)
    )
    return is_clear
