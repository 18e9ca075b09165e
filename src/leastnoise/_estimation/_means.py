"""Means by group and changes over periods.

The results are quotients with Fieller's intervals, which are valid even if the divisor is small.
"""

from dataclasses import dataclass

import numpy as np

from leastnoise._domain import Weighted, column_measures
from leastnoise._error import (
    ROUNDING,
    centring_midpoint,
    checked_level,
    equations,
    interval_multiplier,
    ratio_interval,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._group_intervals import GroupIntervals
from leastnoise._frames import Columns, TabularMixin, grouped_columns
from leastnoise._threads import one_thread
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import Measurements
from leastnoise._workload import By, change, groups_of, queries, ranges

DIVISORS = ("count", "sum_of_weights")
"""The divisors of sums for means: the columns without weights and with weights."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Means(GroupIntervals):
    """Estimated means of a measure by group, with intervals.

    Attributes:
        measure: the measure.
        by: the names of the columns of the groups: attributes, or ``store:region`` for a level.
        mean: estimated means in the measure's own values (not units), within the public bounds; the
            shape is the numbers of groups along ``by``.
        low: lower ends of the intervals.
        high: upper ends.
        sums: the estimated sums, in the measure's own values.
        counts: the divisors of the sums: the estimated numbers of values, or the sums of their
            weights.
        divisor: the name of the column of ``counts``: ``count``, or ``sum_of_weights``.
        level: each interval contains its true mean with this probability.
        std_error: standard errors of the means by the delta method, at the estimates; NaN where the
            count is not significantly above 0.
        labels: the labels of the groups along each attribute of ``by``.
        groups: the names of the groups, such as ``sex x store:region``.
        library: the library of the data frames; None if the data was no data frame.
    """

    measure: str
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    sums: FloatArray
    counts: FloatArray
    std_error: FloatArray
    divisor: str = "count"

    @property
    def quantity(self) -> str:
        """The estimated quantity, such as ``mean of pay``."""
        return f"mean of {self.measure}"

    def intervals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the means, and the lower and upper ends of their intervals."""
        return self.mean, self.low, self.high

    def numbers(self) -> dict[str, FloatArray]:
        """Return the numeric columns: mean, interval, error, sum and divisor."""
        return {
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
            "std_error": self.std_error,
            "sum": self.sums,
            self.divisor: self.counts,
        }


@one_thread()
def means(source: HasLeastSquares, measure: str, *, by: By = (), level: float = 0.95) -> Means:
    """Estimate means of a measure by group, over the rows with a value.

    The means are computed from the measured sums and the measured numbers of values.

    Args:
        source: an estimate or a release; it costs no budget.
        measure: a measure of the domain, whose sums were measured.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            ln.level("region")}``. If it is empty, the mean is over all rows.
        level: the confidence level of each interval, separately.

    Returns:
        The means. The values of the measure are clipped to its bounds. If the plan has limits, the
        values are also clipped to these limits.

    Raises:
        InputError: the measurements do not determine the sums and counts by these groups, or the
            measure does not exist.

    Guarantees: post-processing. Fieller intervals cover each true mean with probability at least
        ``level``, provided that the release's own intervals cover with this probability. If the
        count is not significantly above 0, the interval has the public bounds of the measure as its
        ends.

    Source: Fieller 1954. The method assumes that the noise of the sums and of the counts is
        uncorrelated. If the plan measures distances from both bounds, centred sums are used, whose
        noise is uncorrelated with the counts.

    >>> domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 100)})
    >>> plan = ln.plan(ln.mean_queries(domain, "pay", by=["sex"]), ln.PureDP(1))
    >>> people = pd.DataFrame({"sex": ["F"] * 400 + ["M"] * 100, "income": [50] * 400 + [30] * 100})
    >>> made = ln.means(ln.release(plan, people, seed=7), "pay", by=["sex"])
    >>> made.mean.round(1).tolist(), made.low.round(1).tolist(), made.high.round(1).tolist()
    ([49.6, 29.2], [49.1, 26.8], [50.1, 31.5])
    """
    estimate = estimate_of(source)
    plan = estimate.observation.measurements
    summed_of = plan.domain.measure(measure)
    level = checked_level(level)
    sets = groups_of(plan.domain, by, "the groups of means")
    number = _require_count(plan, measure)
    # A weighted mean lies within the bounds of the values.
    bounds = column_measures(summed_of)[0]
    summed, counted = (
        queries(plan.domain, sets, sum=amount).products[0] for amount in (measure, number)
    )
    above = estimate.estimate(summed)
    below = estimate.estimate(counted)
    sums = above.values
    counts = below.values
    times = interval_multiplier(plan.noise, level)
    # The errors of (sums - ``apart`` * counts) are uncorrelated with the errors of the counts.
    centre_offset = centring_midpoint(plan, measure) or 0.0
    common = (centre_offset * below.noise_std) ** 2
    variance = np.maximum(above.noise_std**2 - common, 0.0) + ROUNDING * common
    ends = (bounds.low_units - centre_offset, bounds.high_units - centre_offset)
    steps = (0.5 / plan.grid, 0.5 / plan.grid)
    ratios = ratio_interval(
        sums - centre_offset * counts,
        counts,
        variance,
        below.noise_std**2,
        times,
        ends,
        half_noise_steps=steps,
    )
    low, high = (end + centre_offset for end in ratios)
    quotient = np.where(
        counts > 0,
        sums / np.where(counts > 0, counts, 1.0),
        (bounds.low_units + bounds.high_units) / 2,
    )
    unit = float(bounds.unit)
    std = np.sqrt(
        variance + (np.clip(quotient, low, high) - centre_offset) ** 2 * below.noise_std**2
    )
    is_clear = counts > times * below.noise_std
    return Means(
        measure=measure,
        by=counted.keys,
        mean=np.clip(quotient, low, high) * unit,
        low=low * unit,
        high=high * unit,
        sums=sums * float(summed_of.unit.numerator) / float(summed_of.unit.denominator),
        counts=np.asarray(counts * float(plan.domain.measure(number).unit)),
        level=level,
        std_error=np.where(is_clear, std / np.where(is_clear, counts, 1.0), np.nan) * unit,
        labels=counted.labels,
        groups=queries(plan.domain, sets).products[0].name if sets else "",
        library=source.library,
        divisor=DIVISORS[isinstance(summed_of, Weighted)],
    )


def _require_count(plan: Measurements, measure: str) -> str:
    """Return the measure that counts another's values; raise if unmeasured."""
    number = plan.domain.count_of(measure)
    if number is not None and equations(plan, measure) and equations(plan, number):
        return number
    advice = _weighted_advice(plan, measure)
    if not advice:
        advice = (
            f"Ask for means of {measure} in the workload, or for its sums and with count = "
            f'"{measure}" for the number of its values.'
        )
    raise InputError(
        f"A mean of {measure} needs measurements of its sums and of the number of its values. "
        f"{advice}"
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Changes(TabularMixin):
    """Counts of each period compared with an earlier period, by group.

    Arrays have shape (periods, groups), in the domain's order.
    """

    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    numbers: dict[str, FloatArray]
    library: str | None = None

    def columns(self) -> Columns:
        """Return the columns: group keys, then difference and ratio.

        The columns are named ``difference``, ``low``, ``high``, ``std_error``, ``ratio``,
        ``ratio_low`` and ``ratio_high``. There is one row for each change.
        """
        return grouped_columns(self.by, self.labels, self.numbers)


def _weighted_advice(plan: Measurements, measure: str) -> str:
    """Return a sentence that names the measured weighted means, or "" if none."""
    measures = plan.domain.measures
    weighted = [
        name
        for name, kind in measures.items()
        if isinstance(kind, Weighted) and kind.of == measures.get(measure) and equations(plan, name)
    ]
    names = " or ".join(f'"{name}"' for name in weighted)
    if names:
        return f"The sums with weights were measured: ask for means of {names}."
    return ""


@one_thread()
def changes(
    source: HasLeastSquares, along: str, periods: int, *, by: By = (), level: float = 0.95
) -> Changes:
    """Estimate the difference and ratio of each period to an earlier period.

    The compared numbers are counts of rows. An example is the change from year to year.

    Args:
        source: an estimate or a release; it costs no budget.
        along: an attribute of dates.
        periods: the distance between the two compared periods, in periods; at least 1.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            ln.level("region")}``.
        level: the confidence level of each interval, separately.

    Returns:
        A table; ``frame()`` returns it as a data frame. Standard errors of differences are exact
        and account for noise that is common to the two periods.

    Raises:
        InputError: the attribute has no dates, there are too many periods, or the measurements do
            not determine the counts by period.

    Guarantees: post-processing. Fieller intervals cover each true ratio with probability at least
        ``level``, provided that the release's own intervals cover with this probability. If the
        earlier count is not significantly above 0, the interval is unbounded.

    Source: Fieller 1954, applied to the later count minus the part of its noise that is common with
        the earlier count.

    >>> domain = ln.Domain(month=ln.Dates("2024-01-01", "2024-03-31", "month"))
    >>> plan = ln.plan(ln.queries(domain, month="identity"), ln.PureDP(1))
    >>> visits = pd.DataFrame(
    ...     {"month": ["2024-01-05"] * 400 + ["2024-02-05"] * 500 + ["2024-03-05"] * 300}
    ... )
    >>> frame = ln.changes(ln.release(plan, visits, seed=7), "month", 1).frame("pandas")
    >>> frame["ratio"].round(1).tolist()
    [1.2, 0.6]
    """
    estimate = estimate_of(source)
    level = checked_level(level)
    plan = estimate.observation.measurements
    sets = groups_of(plan.domain, by, "the groups of changes")
    change_product = queries(plan.domain, {**sets, along: change(periods)}).products[0]
    moved = estimate.estimate(change_product)
    labels = [*map(str, plan.domain.kind(along).regular_labels)]
    first_periods = ranges([(label, label) for label in labels[:-periods]])
    last_periods = ranges([(label, label) for label in labels[periods:]])
    ends = [first_periods, last_periods]
    before, after = (
        estimate.estimate(queries(plan.domain, {**sets, along: end}).products[0]) for end in ends
    )
    times = interval_multiplier(plan.noise, level)
    step = 0.5 / plan.grid
    earlier = before.noise_std**2
    later = after.noise_std**2
    shared = (earlier + later - moved.noise_std**2) / 2  # the covariance
    slope = np.divide(shared, earlier, out=np.zeros_like(earlier), where=earlier > 0)
    residual_variance = np.maximum(later - slope * shared, 0.0)
    steps = ((1 + abs(slope)) * step, step)
    bounds = ratio_interval(
        after.values - slope * before.values,
        before.values,
        residual_variance,
        earlier,
        times,
        (-np.inf, np.inf),
        half_noise_steps=steps,
    )
    reach = times * moved.noise_std + step
    numbers = {
        "difference": moved.values,
        "low": moved.values - reach,
        "high": moved.values + reach,
        "std_error": moved.noise_std,
    }
    is_clear = before.values > times * before.noise_std
    numbers["ratio"] = np.where(
        is_clear, np.maximum(after.values, 0.0) / np.where(is_clear, before.values, 1.0), np.nan
    )
    numbers |= {
        name: np.maximum(end + slope, 0.0)
        for name, end in zip(("ratio_low", "ratio_high"), bounds, strict=True)
    }
    return Changes(
        by=change_product.keys,
        labels=change_product.labels,
        numbers=numbers,
        library=source.library,
    )
