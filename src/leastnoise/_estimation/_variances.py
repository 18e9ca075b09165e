"""Variances and standard deviations by group.

Variances are computed from noisy counts of values, noisy sums, and noisy sums of squared distances
from the middle of the bounds. An interval contains every variance that agrees with all three
numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastnoise._domain import Measure, SquaredDeviation
from leastnoise._error import (
    ROUNDING,
    centring_midpoint,
    checked_level,
    equations,
    interval_multiplier,
    ratio_interval,
    squared_deviation,
    statistic_scales,
    variance_points,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._group_intervals import GroupIntervals
from leastnoise._estimation._least_squares import Answer
from leastnoise._plan import Plan
from leastnoise._threads import one_thread
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.measurements import Measurements
from leastnoise._workload import By, Statistic, groups_of, queries, square_measure

_MEAN_STEPS = 65
"""The number of means at which the ends of an interval are computed.

A second grid refines the best mean; it has the same number of means.
"""
_GROUPS_AT_ONCE = 2**13  # the arrays of these groups take a few MB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Variances(GroupIntervals):
    """Variances and standard deviations of a measure by group.

    Variances and standard deviations describe the values of a group, and not a population from
    which the values were drawn. So the divisor is the number n of values, not n - 1.

    Attributes:
        measure: the measure.
        by: the names of the columns of the groups: attributes, or ``store:region`` for a level.
        variance: estimated variances in squared values of the measure; the shape is the numbers of
            groups along ``by``.
        low: lower ends of the intervals of the variances.
        high: upper ends.
        std_error: standard errors of the variances by the delta method, at the estimates; NaN where
            the count is not significantly above 0.
        mean: estimated means, in the measure's own values.
        counts: the estimated numbers of values.
        level: each interval contains its true variance with this probability.
        labels: the labels of the groups along each attribute of ``by``.
        groups: the names of the groups, such as ``sex x store:region``.
        library: the library of the data frames; None if the data was no data frame.
    """

    measure: str
    variance: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray
    mean: FloatArray
    counts: FloatArray

    @property
    def std_dev(self) -> FloatArray:
        """Standard deviations in the measure's own values: roots of the variances."""
        return np.sqrt(self.variance)

    @property
    def std_dev_low(self) -> FloatArray:
        """The lower ends of the intervals of the standard deviations."""
        return np.sqrt(self.low)

    @property
    def std_dev_high(self) -> FloatArray:
        """The upper ends of the intervals of the standard deviations."""
        return np.sqrt(self.high)

    @property
    def std_dev_std_error(self) -> FloatArray:
        """Standard errors of the standard deviations; NaN at an estimate of 0."""
        is_positive = self.variance > 0
        divisor = np.where(is_positive, 2 * self.std_dev, 1.0)
        return np.where(is_positive, self.std_error / divisor, np.nan)

    @property
    def quantity(self) -> str:
        """The estimated quantity, such as ``standard deviation of pay``."""
        return f"standard deviation of {self.measure}"

    def intervals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the standard deviations, and the ends of their intervals."""
        return self.std_dev, self.std_dev_low, self.std_dev_high

    def numbers(self) -> dict[str, FloatArray]:
        """Return the numeric columns: std deviation, variance, mean and count.

        The columns ``low``, ``high`` and ``std_error`` belong to the standard deviation.
        """
        return {
            "std_dev": self.std_dev,
            "low": self.std_dev_low,
            "high": self.std_dev_high,
            "std_error": self.std_dev_std_error,
            "variance": self.variance,
            "variance_low": self.low,
            "variance_high": self.high,
            "mean": self.mean,
            "count": self.counts,
        }


@one_thread()
def variances(
    source: HasLeastSquares, measure: str, *, by: By = (), level: float = 0.95
) -> Variances:
    """Estimate variances and standard deviations by group.

    The variances are computed from three measured numbers: the counts of values, the sums, and the
    sums of squared deviations.

    Args:
        source: an estimate or a release; it costs no budget.
        measure: a measure of the domain, whose sums and squares were measured.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            ln.level("region")}``. If it is empty, all rows are one group.
        level: the confidence level of each interval, separately.

    Returns:
        The variances. The values of the measure are clipped to its bounds.

    Raises:
        InputError: the measurements do not determine the counts, sums and squares by these groups,
            or the measure does not exist.

    Guarantees: post-processing. An interval contains every variance that fits the three numbers:
        for some mean, all three agree within their noise, at the multiplier of the release's own
        intervals. The coverage of the true variance is about ``level``, even for small counts. If
        the count is not significantly above 0, the interval contains all variances that the bounds
        allow.

    Source: each end is found from the least distance to the measurements, in standard errors of the
        noise (a profile). For quotients this is the method of Fieller 1954.

    >>> domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 100)})
    >>> plan = ln.plan(ln.variance_queries(domain, "pay", by=["sex"]), ln.PureDP(1))
    >>> people = pd.DataFrame(
    ...     {"sex": ["F"] * 900 + ["M"] * 900, "income": [40, 60, 80] * 300 + [30, 50, 50] * 300}
    ... )
    >>> spread = ln.variances(ln.release(plan, people, seed=7), "pay", by=["sex"])
    >>> (
    ...     spread.std_dev.round(1).tolist(),
    ...     spread.std_dev_low.round(1).tolist(),
    ...     spread.std_dev_high.round(1).tolist(),
    ... )
    ([16.4, 9.4], [15.9, 8.5], [16.9, 10.2])
    """
    estimate = estimate_of(source)
    plan = estimate.observation.measurements
    level = checked_level(level)
    of = plan.domain.measure(measure)
    sets = groups_of(plan.domain, by, "the groups of variances")
    number = plan.domain.count_of(measure)
    squares = square_measure(plan.domain, measure)
    names = (number, measure, squares)
    if number is None or squares is None or not all(equations(plan, name) for name in names):
        raise InputError(
            f"A variance of {measure} needs measurements of the number of its values, of their "
            f"sums and of the sums of their squares. Ask for variances of {measure} in the "
            "workload."
        )
    tables = [queries(plan.domain, sets, sum=name).products[0] for name in names]
    counts, sums, sums_of_squares = (estimate.estimate(table) for table in tables)
    moments = noisy_moments(plan, measure, counts, sums, sums_of_squares)
    low, high = _rounded_intervals(plan, measure, moments, level)
    deviation = squared_deviation(plan.domain, measure)
    reach = value_reach(of, deviation)
    width = reach * float(of.unit)
    is_clear = moments.counts > interval_multiplier(plan.noise, level) * moments.count_std
    return Variances(
        measure=measure,
        by=tables[0].keys,
        variance=np.clip(moments.variances, low, high) * width**2,
        low=low * width**2,
        high=high * width**2,
        std_error=np.where(is_clear, moments.std_errors(), np.nan) * width**2,
        mean=(moments.means * reach + deviation.centre) * float(of.unit),
        counts=moments.counts,
        level=level,
        labels=tables[0].labels,
        groups=queries(plan.domain, sets).products[0].name if sets else "",
        library=source.library,
    )


def _rounded_intervals(
    plan: Measurements, measure: str, moments: "NoisyMoments", level: float
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of variances of u, widened for rounded squares."""
    times = interval_multiplier(plan.noise, level)
    low, high = variance_intervals(moments, times, half_noise_step=0.5 / plan.grid)
    deviation = squared_deviation(plan.domain, measure)
    # Squared values were rounded to multiples of the divisor before they were summed.
    rounding = (deviation.divisor // 2) / value_reach(plan.domain.measure(measure), deviation) ** 2
    return np.maximum(low - rounding, 0.0), high + rounding


def expected_variance_intervals(
    plan: Plan, statistic: Statistic, stds: Sequence[float], level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the expected intervals of variances, computed without data.

    Args:
        plan: the plan.
        statistic: variances with a public size.
        stds: the standard errors of the counts, the sums and the sums of squares, in their units.
        level: the confidence level of the intervals.

    Returns:
        The ends of the interval for each mean that is tried, in squared values of the measure. The
        group has the public size and the public standard deviation.
    """
    measured = plan.measured()
    measure = statistic.of
    scales = statistic_scales(statistic, plan.domain, measured)
    std_dev, means = variance_points(statistic, scales)
    deviation = squared_deviation(plan.domain, measure)
    reach = float(scales.reaches[0])
    size = float(statistic.size or 0)
    values = (
        np.full(means.shape, size),
        size * (means * reach + deviation.centre),
        size * (std_dev**2 + means**2) * reach**2 / deviation.divisor,
    )
    answers = [
        Answer(value, np.full(means.shape, std)) for value, std in zip(values, stds, strict=True)
    ]
    moments = noisy_moments(measured, measure, *answers)
    low, high = _rounded_intervals(measured, measure, moments, level)
    width = float(scales.widths[0])
    return low * width**2, high * width**2


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMoments:
    """Noisy counts, sums and sums of squares by group, of scaled values u.

    The values u are scaled such that the range between the bounds of the measure becomes -1 to 1.

    The noise of the counts, sums and squares is uncorrelated. All arrays have the shape of the
    table of groups.

    Attributes:
        counts: numbers of values.
        sums: sums of ``u - mean_offset``.
        squares: sums of ``u^2 - square_offset``.
        count_std: standard errors of the counts.
        sum_std: standard errors of the sums.
        square_std: standard errors of the sums of squares.
        mean_offset: the number that is subtracted from each value.
        square_offset: the number that is subtracted from each square.
        low: the lower bound of u.
        high: the upper bound of u.
        sum_unit: one step of the noise of sums, in multiples of u.
        square_unit: one step of the noise of squares, in multiples of u^2.
    """

    counts: FloatArray
    sums: FloatArray
    squares: FloatArray
    count_std: FloatArray
    sum_std: FloatArray
    square_std: FloatArray
    mean_offset: float
    square_offset: float
    low: float
    high: float
    sum_unit: float = 1.0
    square_unit: float = 1.0

    def with_longer_intervals(self, noise_steps: float) -> "NoisyMoments":
        """Return the moments with a number of noise steps added to standard errors."""
        return replace(
            self,
            count_std=self.count_std + noise_steps,
            sum_std=self.sum_std + noise_steps * self.sum_unit,
            square_std=self.square_std + noise_steps * self.square_unit,
        )

    def of_groups(self, groups: IntArray) -> "NoisyMoments":
        """Return the moments of selected groups as flat arrays."""
        return replace(
            self,
            counts=self._flat(self.counts)[groups],
            sums=self._flat(self.sums)[groups],
            squares=self._flat(self.squares)[groups],
            count_std=self._flat(self.count_std)[groups],
            sum_std=self._flat(self.sum_std)[groups],
            square_std=self._flat(self.square_std)[groups],
        )

    def _flat(self, values: FloatArray) -> FloatArray:
        """Return values as a flat array, repeated for each group if scalar."""
        return np.broadcast_to(values, self.counts.shape).reshape(-1)

    @property
    def means(self) -> FloatArray:
        """The means of u; the middle of the bounds where the count is not positive."""
        is_positive = self.counts > 0
        quotient = self.sums / np.where(is_positive, self.counts, 1.0) + self.mean_offset
        middle = (self.low + self.high) / 2
        return np.clip(np.where(is_positive, quotient, middle), self.low, self.high)

    @property
    def variances(self) -> FloatArray:
        """The variances of the scaled values u by group, within their possible range.

        The variances are 0 where the count is not positive.
        """
        is_positive = self.counts > 0
        squares = self.squares / np.where(is_positive, self.counts, 1.0) + self.square_offset
        largest = (self.high - self.means) * (self.means - self.low)
        return np.where(is_positive, np.clip(squares - self.means**2, 0.0, largest), 0.0)

    def std_errors(self) -> FloatArray:
        """Return the standard errors of the variances of u, by the delta method.

        The standard errors are valid if the count is significantly above 0.
        """
        means = self.means
        slope_of_counts = (
            self.variances + means**2 - self.square_offset - 2 * means * (means - self.mean_offset)
        )
        variance = (
            self.square_std**2
            + (2 * means * self.sum_std) ** 2
            + (slope_of_counts * self.count_std) ** 2
        )
        return np.asarray(np.sqrt(variance) / np.where(self.counts > 0, self.counts, 1.0))


def noisy_moments(
    plan: Measurements, measure: str, counts: Answer, sums: Answer, squares: Answer
) -> NoisyMoments:
    """Return the noisy moments of values scaled by the bounds of a measure.

    Args:
        plan: the measurements.
        measure: the measure.
        counts: the estimated numbers of values.
        sums: the estimated sums, in units of the measure.
        squares: the estimated sums of squared deviations, in units of the squared deviation.
    """
    deviation = squared_deviation(plan.domain, measure)
    of = deviation.of
    reach = value_reach(of, deviation)
    # The errors of (sums - offset * counts) are uncorrelated with the errors of the counts. The
    # offset is the middle of the bounds if distances from both bounds were measured, else 0.
    sum_offset = centring_midpoint(plan, measure) or 0.0
    squares_name = str(square_measure(plan.domain, measure))
    square_offset = deviation.divisor * (centring_midpoint(plan, squares_name) or 0.0)
    return NoisyMoments(
        counts=counts.values,
        sums=(sums.values - sum_offset * counts.values) / reach,
        squares=(squares.values * deviation.divisor - square_offset * counts.values) / reach**2,
        count_std=counts.noise_std,
        sum_std=_std_without(sums.noise_std, sum_offset * counts.noise_std) / reach,
        square_std=_std_without(
            squares.noise_std * deviation.divisor, square_offset * counts.noise_std
        )
        / reach**2,
        mean_offset=(sum_offset - deviation.centre) / reach,
        square_offset=square_offset / reach**2,
        low=(of.low_units - deviation.centre) / reach,
        high=(of.high_units - deviation.centre) / reach,
        sum_unit=1 / reach,
        square_unit=deviation.divisor / reach**2,
    )


def _std_without(noise_std: FloatArray, count_noise_std: FloatArray) -> FloatArray:
    """Return the standard error of a sum, less the part from the count's noise."""
    variance = np.maximum(noise_std**2 - count_noise_std**2, 0.0) + ROUNDING * count_noise_std**2
    return np.asarray(np.sqrt(variance))


def value_reach(measure: Measure, deviation: SquaredDeviation) -> float:
    """Return the largest distance of a value from the centre, in units."""
    return float(max(measure.high_units - deviation.centre, deviation.centre - measure.low_units))


def variance_intervals(
    moments: NoisyMoments, multiplier: float, half_noise_step: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper interval ends of the variances of u.

    Args:
        moments: the noisy counts and sums.
        multiplier: the half width of an interval in standard errors.
        half_noise_step: a length that is added to the interval of each of the three numbers because
            the noise is discrete. It is in steps of that number.

    Returns:
        The least and the greatest variance V for which some mean m and some count c agree with the
        measurements: the vector (c (m - mean_offset), c (V + m^2 - square_offset), c) is at most
        ``multiplier`` standard errors from the sums, the squares and the counts. If the count is
        not significantly above 0, the interval contains all variances that the bounds allow.

    Guarantees: V is between 0 and the square of half the distance of the bounds, which no variance
        exceeds. With only sums and counts, this rule gives Fieller's interval.
    """
    largest = ((moments.high - moments.low) / 2) ** 2
    longer = moments.with_longer_intervals(half_noise_step / multiplier)
    is_clear = moments.counts > multiplier * longer.count_std
    low = np.zeros(moments.counts.shape)
    high = np.full(moments.counts.shape, largest)
    groups = np.flatnonzero(is_clear)
    for start in range(0, len(groups), _GROUPS_AT_ONCE):
        part = groups[start : start + _GROUPS_AT_ONCE]
        ends = _clear_intervals(longer.of_groups(part), multiplier, largest)
        low.reshape(-1)[part], high.reshape(-1)[part] = ends
    return low, high


def _clear_intervals(
    moments: NoisyMoments, multiplier: float, largest: float
) -> tuple[FloatArray, FloatArray]:
    """Return the interval ends of groups with counts significantly above 0."""
    sum_std = moments.sum_std
    square_std = moments.square_std
    count_std = moments.count_std
    y_sum = moments.sums / sum_std
    y_square = moments.squares / square_std
    y_count = moments.counts / count_std
    # Divide by the standard error each coordinate of y and of q = (m - mean_offset, V + m^2 -
    # square_offset, 1). The squared distance of y from the ray through q is |y|^2 - (y q)^2 /
    # |q|^2. Let x be the middle coordinate of q. Between the roots of a quadratic in x, this
    # squared distance is at most multiplier^2.
    plain = y_sum**2 + y_count**2 - multiplier**2
    whole = plain + y_square**2

    def ends_at(means: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the interval ends for some ``means``, shape (steps, groups)."""
        q_sum = (means - moments.mean_offset) / sum_std
        along = y_sum * q_sum + y_count / count_std
        length = q_sum**2 + 1 / count_std**2
        root = np.sqrt(np.maximum(whole * (along**2 - length * plain), 0.0))
        shift = moments.square_offset - means**2
        return (
            square_std * (along * y_square - root) / plain + shift,
            square_std * (along * y_square + root) / plain + shift,
        )

    # Means beyond the bounds are also tried. Without them, intervals would cover with less than
    # ``level`` if all values are at a bound.
    first, last = ratio_interval(
        moments.sums, moments.counts, sum_std**2, count_std**2, multiplier, (-np.inf, np.inf)
    )
    first = first + moments.mean_offset
    last = last + moments.mean_offset
    means = np.linspace(first, last, _MEAN_STEPS)
    lower, upper = ends_at(means)
    step = (last - first) / (_MEAN_STEPS - 1)
    groups = np.arange(len(first))
    refined = []
    for best in (lower.argmin(axis=0), upper.argmax(axis=0)):
        at = means[best, groups]
        near = np.linspace(np.maximum(at - step, first), np.minimum(at + step, last), _MEAN_STEPS)
        refined.append(ends_at(near))
    low = refined[0][0].min(axis=0)
    high = refined[1][1].max(axis=0)
    return _within_bounds(low, high, largest)


def _within_bounds(
    low: FloatArray, high: FloatArray, largest: float
) -> tuple[FloatArray, FloatArray]:
    """Return the intervals clipped to the range from 0 to ``largest``.

    An interval that lies entirely outside is replaced by an interval of half its width at the
    nearer bound.
    """
    half = (high - low) / 2
    high = np.where(high < 0, half, high)
    low = np.where(low > largest, largest - half, low)
    return np.clip(low, 0.0, largest), np.clip(high, 0.0, largest)
