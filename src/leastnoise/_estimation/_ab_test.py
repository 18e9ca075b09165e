"""The effect of a treatment, from a release with means by arm.

The effect is about the population from which the rows were drawn, so its interval covers the
sampling error as well as the noise.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from leastnoise._domain import Domain, Measure
from leastnoise._error import (
    Estimated,
    Interval,
    correlation_of,
    difference_interval,
    error_covariance,
    quotient_interval,
    widen_interval,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._comparisons import (
    axes_of,
    estimate_compared_quantity,
    group_keys,
    group_shape,
    interval_columns,
    level_of,
)
from leastnoise._frames import Columns, TabularMixin, grouped_columns
from leastnoise._threads import one_thread
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import refuse
from leastnoise._trusted.check.arrays import BoolArray, FloatArray
from leastnoise._workload import By, read_comparison, read_quantity

# pseudo-rows added to each group before its sampling error is computed: Agresti and Coull (1998)
_PRIOR_ROWS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ABTest(TabularMixin):
    """The effect of a treatment: a difference of means with its interval.

    Attributes:
        measure: the outcome.
        numbers: the columns, each with one value for each group. ``treatment`` and ``control`` are
            the means; ``difference`` and ``lift`` have intervals that cover the effect in the
            population from which the rows were drawn: noise and sampling error together.
            ``noise_std`` and ``sampling_std`` are the two parts of the standard error of the
            difference.
        level: each interval contains the effect with this probability.
        by: the names of the columns of the groups.
        labels: the labels of the groups along each column of ``by``.
        library: the library of the data frames; None if the data was no data frame.
    """

    measure: str
    numbers: Mapping[str, FloatArray]
    level: float
    by: tuple[str, ...] = ()
    labels: tuple[tuple[str | int, ...], ...] = ()
    library: str | None = None

    @property
    def title(self) -> str:
        """The tested quantity and the confidence level, as a heading."""
        return f"effect on the mean of {self.measure}, {100 * self.level:g}% intervals"

    @property
    def is_significant(self) -> bool | BoolArray:
        """Whether the interval of the difference excludes 0; an array by group."""
        outside = (self.numbers["difference_low"] > 0) | (self.numbers["difference_high"] < 0)
        if not self.labels:
            return bool(outside)
        return outside

    def columns(self) -> Columns:
        """Return the columns: keys, then the numbers; one row for each group."""
        return grouped_columns(self.by, self.labels, self.numbers)


@one_thread()
def ab_test(
    source: HasLeastSquares,
    along: str,
    treatment: object,
    control: object,
    *,
    mean: str,
    std: float | None = None,
    by: By = (),
    level: float | None = None,
) -> ABTest:
    """Return the estimated effect of a treatment, from means by arm.

    Args:
        source: a release or an estimate; it costs no budget.
        along: the attribute with the arms.
        treatment: the cell of the treated arm, or a list of cells.
        control: the cell of the arm to compare with, or a list of cells.
        mean: the measure of the outcome; its values are 0 and 1 if the outcome is a rate.
        std: the public standard deviation of the outcome within an arm. If None, the largest
            standard deviation that the mean and the bounds of the measure permit. This is exact for
            outcomes of 0 and 1, and too large for other outcomes.
        by: the groups within which the effect is estimated.
        level: the confidence level of each interval; None for the level of the release.

    Returns:
        The effect, its interval and the parts of its error.

    Raises:
        InputError: the arm or the measure does not exist, the standard deviation is not above 0, or
            the measurements do not determine the means.

    Guarantees: post-processing. The interval covers the effect in the population if rows are
        independent draws from it. If a unit has up to ``max_rows`` rows, the sampling variance is
        multiplied by ``max_rows``, the most that dependence between the rows of a unit can add.

    Source: Fieller 1954 for the noise; Agresti and Coull, The American Statistician 52 (1998), for
        the variance of rates near 0 and 1; Bhatia and Davis 2000 for its bound.

    >>> domain = ln.Domain(arm=["A", "B"], measures={"paid": ln.Measure("paid", 0, 1)})
    >>> plan = ln.plan(ln.mean_queries(domain, "paid", by=["arm"]), ln.PureDP(1))
    >>> visits = pd.DataFrame(
    ...     {"arm": ["A", "B"] * 5000, "paid": [0, 0, 1, 1, 0, 1, 0, 0, 0, 0] * 1000}
    ... )
    >>> test = ln.ab_test(ln.release(plan, visits, seed=7), "arm", "B", "A", mean="paid")
    >>> columns = ["difference", "difference_low", "difference_high"]
    >>> test.frame("pandas")[columns].round(3).values.tolist()
    [[0.2, 0.183, 0.218]]
    """
    _check_std(std)
    estimate = estimate_of(source)
    level = level_of(source, level)
    measurements = estimate.observation.measurements
    domain = measurements.domain
    quantity = read_quantity(domain, mean=mean)
    comparison = read_comparison(domain, along, treatment, control, by=by, quantity=quantity)
    _check_outcome(domain, mean)
    quotients = comparison.sides(domain)
    names = axes_of(domain, *(each.numerator for each in quotients))
    first, second = (
        estimate_compared_quantity(estimate, quantity, each, names, level) for each in quotients
    )
    correlation = correlation_of(
        error_covariance(quotients, (first.estimated, second.estimated), first.covariance, names),
        first.estimated,
        second.estimated,
    )
    std_in_units = None if std is None else std / first.unit
    effect = design_effect(measurements.privacy)
    variances = (
        effect * sampling_variance(first.estimated, std_in_units),
        effect * sampling_variance(second.estimated, std_in_units),
    )
    arms = (first.estimated, second.estimated)
    numbers = _effect_columns(arms, variances, correlation, first.unit, level)
    keys, labels = group_keys(domain, dict(comparison.by))
    shape = group_shape(labels)
    return ABTest(
        measure=mean,
        numbers={name: array.reshape(shape) for name, array in numbers.items()},
        level=level,
        by=keys,
        labels=labels,
        library=source.library,
    )


def _check_std(std: float | None) -> None:
    """Raise for a standard deviation that is not a number above 0."""
    if std is None:
        return
    is_number = isinstance(std, (int, float)) and not isinstance(std, bool)
    if not (is_number and 0 < std < math.inf):
        raise refuse("std", std, "a number above 0, or None")


def _effect_columns(
    arms: tuple[Estimated, Estimated],
    sampling_variances: tuple[FloatArray, FloatArray],
    noise_correlation: FloatArray,
    outcome_unit: float,
    level: float,
) -> dict[str, FloatArray]:
    """Return the columns of an A/B test: both arms, the effect and its errors.

    Args:
        arms: the means of treatment and control, with the intervals of the noise.
        sampling_variances: the sampling variances of the means, in squared units.
        noise_correlation: the correlation between the noise of the two means.
        outcome_unit: the amount of the outcome that one unit stands for.
        level: the confidence level of the intervals.
    """
    treatment, control = arms
    noise = difference_interval(treatment, control, noise_correlation)
    normal = NormalDist().inv_cdf(0.5 + level / 2)
    wider_treatment = with_sampling_error(treatment, sampling_variances[0], normal)
    wider_control = with_sampling_error(control, sampling_variances[1], normal)
    # Samples are independent, so they share only noise.
    shared = noise_correlation * treatment.std_error * control.std_error
    joint = correlation_of(np.nan_to_num(shared), wider_treatment, wider_control)
    difference = difference_interval(wider_treatment, wider_control, joint)
    ratio = quotient_interval(wider_treatment, wider_control, joint)
    lift = Interval(ratio.value - 1, ratio.low - 1, ratio.high - 1, ratio.std_error)
    return {
        "treatment": treatment.value * outcome_unit,
        "control": control.value * outcome_unit,
        **interval_columns("difference", difference, outcome_unit),
        "noise_std": noise.std_error * outcome_unit,
        "sampling_std": np.sqrt(sampling_variances[0] + sampling_variances[1]) * outcome_unit,
        **interval_columns("lift", lift, 1.0),
    }


def design_effect(privacy: Privacy) -> int:
    """Return the factor of the sampling variance for units with several rows."""
    if privacy.unit_column is None:
        return 1
    return privacy.max_rows


def _check_outcome(domain: Domain, measure: str) -> None:
    """Raise if the outcome is weighted: its sampling error is unknown."""
    if type(domain.measure(measure)) is not Measure:
        raise refuse(
            "mean",
            measure,
            "a measure without weights",
            "Use compare_groups, whose intervals hold for the rows of the release.",
        )


def sampling_variance(estimated: Estimated, std: float | None) -> FloatArray:
    """Return the sampling variance of the mean of each group.

    It is in squared units of the measure.

    Args:
        estimated: the estimated mean; its divisor is the number of rows.
        std: the standard deviation of the values. If None, the largest that the mean and the bounds
            permit.
    """
    rows = np.maximum(estimated.error_divisor, 1.0)
    if std is not None:
        return np.asarray(std**2 / rows)
    low, high = estimated.bounds
    middle = (low + high) / 2
    shrunk = (rows * estimated.bounded_quotient + _PRIOR_ROWS * middle) / (rows + _PRIOR_ROWS)
    return np.asarray((high - shrunk) * (shrunk - low) / (rows + _PRIOR_ROWS))


def with_sampling_error(
    estimated: Estimated, sampling_variance: FloatArray, normal_multiplier: float
) -> Estimated:
    """Return the estimated mean with an interval widened by the sampling error."""
    half_width = normal_multiplier * np.sqrt(sampling_variance)
    low, high = widen_interval(estimated.value, estimated.low, estimated.high, half_width)
    return estimated._replace(
        low=np.maximum(low, estimated.bounds[0]),
        high=np.minimum(high, estimated.bounds[1]),
        std_error=np.sqrt(estimated.std_error**2 + sampling_variance),
    )
