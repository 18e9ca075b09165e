"""The effect of a treatment, from a release with means by arm.

The effect is about the population from which the rows were drawn. So the interval of the effect
covers the sampling error as well as the noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from leastnoise._domain import Domain, Measure
from leastnoise._error import (
    ComparisonInterval,
    Estimated,
    correlation_of,
    difference_interval,
    interval_multiplier,
    quotient_interval,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._comparisons import (
    ComparedPair,
    ComparisonMixin,
    ComparisonSubject,
    estimate_compared_pair,
    group_keys,
    group_shape,
    interval_columns,
    intervals_text,
    level_of,
    lift_of,
    products_of_pairs,
    ratio_errors,
    stack_columns,
    with_sampling_error,
)
from leastnoise._estimation._joint_intervals import (
    joint_multiplier,
    simulate_answers,
    simulate_sampling_errors,
)
from leastnoise._estimation._least_squares import Estimate
from leastnoise._frames import Columns, grouped_columns
from leastnoise._threads import one_thread
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import refuse
from leastnoise._trusted.check.arrays import BoolArray, FloatArray
from leastnoise._workload import (
    By,
    Comparison,
    read_comparison,
    read_quantity,
    separate_groups,
)

# Pseudo-rows added to each group before its sampling error is computed: Agresti and Coull (1998).
_PRIOR_ROWS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ABTest(ComparisonMixin):
    """The effect of a treatment: a difference of means with its interval.

    Attributes:
        measure: the outcome.
        subject: the arms and the release.
        numbers: the columns, each with one value for each group. ``treatment`` and ``control`` are
            the means; ``difference`` and ``lift`` have intervals that contain the effect in the
            population from which the rows were drawn. They cover the noise and the sampling error
            together. ``noise_std`` and ``sampling_std`` are the two parts of the standard error of
            the difference.
        level: each interval contains the effect with this probability.
        is_joint: whether the intervals are simultaneous. Then, with probability ``level``, all
            differences lie within their intervals. The same holds for all lifts.
        by: the names of the columns of the groups.
        labels: the labels of the groups along each column of ``by``.
        library: the library of the data frames; None if the data was no data frame.
    """

    measure: str
    subject: ComparisonSubject
    numbers: Mapping[str, FloatArray]
    level: float
    is_joint: bool = False
    by: tuple[str, ...] = ()
    labels: tuple[tuple[str | int, ...], ...] = ()
    library: str | None = None

    @property
    def title(self) -> str:
        """The tested quantity and the confidence level, as a heading."""
        text = intervals_text(self.level, is_joint=self.is_joint)
        return f"effect on the mean of {self.measure}, {text}"

    @property
    def is_significant(self) -> bool | BoolArray:
        """Whether the interval of the difference excludes 0; an array by group."""
        outside = (self.numbers["difference_low"] > 0) | (self.numbers["difference_high"] < 0)
        if not self.labels:
            return bool(outside)
        return outside

    def columns(self) -> Columns:
        """Return the columns: keys, then the numbers; each group has one row."""
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
    each: bool = False,
) -> ABTest:
    """Return the estimated effect of a treatment, from means by arm.

    Args:
        source: a release or an estimate; it costs no budget.
        along: the attribute whose cells are the arms.
        treatment: the cell of the treated arm, or a list of cells.
        control: the cell of the arm to compare with, or a list of cells.
        mean: the measure of the outcome; its values are 0 and 1 if the outcome is a rate.
        std: the public standard deviation of the outcome within an arm. If None, the largest
            standard deviation that the mean and the bounds of the measure permit. This is exact for
            outcomes of 0 and 1, and too large for other outcomes.
        by: the groups within which the effect is estimated.
        level: the confidence level of each interval; None for the level of the release.
        each: test each arm of the list ``treatment`` separately, as in an A/B/n test. With this,
            all differences lie within their intervals with probability ``level``, for any number of
            arms. All lifts also lie within their intervals with this probability. Without it, the
            arms are one treatment.

    Returns:
        The effect, its interval, and the two parts of its standard error.

    Raises:
        InputError: the arm or the measure does not exist; the standard deviation is not above 0; or
            the measurements do not determine the means.

    Guarantees: post-processing. The interval covers the effect in the population if rows are
        independent draws from it. If a unit has up to ``max_rows`` rows, the sampling variance is
        multiplied by ``max_rows``. This factor is the largest effect that the dependence between
        the rows of a unit can have.

    Source: Fieller 1954 for the noise; Dunnett 1955 for several treatments with one control;
        Agresti and Coull, The American Statistician 52 (1998), for the variance of rates near 0 and
        1; Bhatia and Davis 2000 for its bound.

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
    treatments = [treatment]
    separate = None
    if each:
        separate = separate_groups(along, treatment)
        treatments = [*separate.selections]
    comparisons = [
        read_comparison(domain, along, arm, control, by=by, quantity=quantity) for arm in treatments
    ]
    _check_outcome(domain, mean)
    outcome = _Outcome(estimate, std, design_effect(measurements.privacy))
    keys, labels = group_keys(domain, dict(comparisons[0].by))
    shape = group_shape(labels)
    multipliers = _Multipliers(
        interval_multiplier(measurements.noise, level), NormalDist().inv_cdf(0.5 + level / 2)
    )
    effects = [outcome.effect(comparison, multipliers) for comparison in comparisons]
    if separate is None:
        numbers = _effect_columns(effects[0], shape)
    else:
        joint = _joint_multipliers(estimate, effects, level)
        columns = []
        for comparison in comparisons:
            for_difference, for_ratio = (
                outcome.effect(comparison, _Multipliers(multiplier, multiplier))
                for multiplier in joint
            )
            columns.append(_effect_columns(for_difference._replace(ratio=for_ratio.ratio), shape))
        numbers = stack_columns(columns)
        keys = (separate.key, *keys)
        labels = (separate.labels, *labels)
    return ABTest(
        measure=mean,
        subject=ComparisonSubject(
            sources=(source,),
            quantity=quantity,
            by=dict(comparisons[0].by),
            along=along,
            selections=tuple(treatments),
            against=control,
        ),
        numbers=numbers,
        level=level,
        is_joint=each,
        by=keys,
        labels=labels,
        library=source.library,
    )


class _Multipliers(NamedTuple):
    """Half widths of intervals in standard errors, for noise and for sampling."""

    noise: float
    sampling: float


class _Effect(NamedTuple):
    """A treatment's effect by group, with intervals for noise and sampling error.

    Attributes:
        pair: the means of treatment and control, with the intervals of the noise.
        variances: the sampling variances of the two means, in squared units.
        difference: the difference of the means.
        ratio: the ratio of the means.
    """

    pair: ComparedPair
    variances: tuple[FloatArray, FloatArray]
    difference: ComparisonInterval
    ratio: ComparisonInterval


class _Outcome(NamedTuple):
    """The outcome of an A/B test.

    Attributes:
        estimate: the estimate of the release.
        std: the public standard deviation of the outcome, in amounts; None if it is not stated.
        design_effect: the factor by which sampling variances are multiplied because a unit may have
            several rows.
    """

    estimate: Estimate
    std: float | None
    design_effect: int

    def effect(self, comparison: Comparison, multipliers: _Multipliers) -> _Effect:
        """Return the effect of the treatment in a comparison with the control."""
        pair = estimate_compared_pair(self.estimate, comparison, multipliers.noise)
        std_in_units = None if self.std is None else self.std / pair.first.unit
        arms = (pair.first.estimated, pair.second.estimated)
        variances = (
            self.design_effect * sampling_variance(arms[0], std_in_units),
            self.design_effect * sampling_variance(arms[1], std_in_units),
        )
        treatment, control = (
            with_sampling_error(arm, variance, multipliers.sampling)
            for arm, variance in zip(arms, variances, strict=True)
        )
        # Samples are independent, so they share only noise.
        shared = pair.correlation * arms[0].std_error * arms[1].std_error
        correlation = correlation_of(np.nan_to_num(shared), treatment, control)
        return _Effect(
            pair,
            variances,
            difference_interval(treatment, control, correlation),
            quotient_interval(treatment, control, correlation),
        )


def _joint_multipliers(
    estimate: Estimate, effects: Sequence[_Effect], level: float
) -> tuple[float, float]:
    """Return multipliers for joint intervals of all differences and all ratios.

    The errors of the noise and of the samples are simulated. All treatments are compared with the
    same control, so they share the sampling error of this control.
    """
    answers = simulate_answers(estimate, products_of_pairs([effect.pair for effect in effects]))
    errors_of_differences = None
    errors_of_ratios = None
    if answers is not None:
        differences = []
        ratios = []
        for number, effect in enumerate(effects):
            treatment, control = effect.pair.errors_of_sides(answers)
            treatment = treatment + simulate_sampling_errors(
                np.sqrt(effect.variances[0]), number + 1
            )
            control = control + simulate_sampling_errors(np.sqrt(effect.variances[1]), 0)
            differences.append(treatment - control)
            control_mean = effect.pair.second.estimated
            ratios.append(ratio_errors(control_mean, effect.ratio, treatment, control))
        errors_of_differences = np.stack(differences, axis=1)
        errors_of_ratios = np.stack(ratios, axis=1)
    noise = estimate.observation.measurements.noise
    return (
        joint_multiplier(
            errors_of_differences,
            np.stack([effect.difference.std_error for effect in effects]),
            noise,
            level,
        ),
        joint_multiplier(
            errors_of_ratios,
            np.stack([effect.ratio.std_error for effect in effects]),
            noise,
            level,
        ),
    )


def _check_std(std: float | None) -> None:
    """Raise unless the standard deviation is a number above 0."""
    if std is None:
        return
    is_number = isinstance(std, (int, float)) and not isinstance(std, bool)
    if not (is_number and 0 < std < math.inf):
        raise refuse("std", std, "a number above 0, or None")


def _effect_columns(effect: _Effect, shape: tuple[int, ...]) -> dict[str, FloatArray]:
    """Return the columns of an A/B test: both arms, the effect and its errors."""
    unit = effect.pair.first.unit
    sampling_variance_of_effect = effect.variances[0] + effect.variances[1]
    noise = difference_interval(
        effect.pair.first.estimated, effect.pair.second.estimated, effect.pair.correlation
    )
    numbers = {
        "treatment": effect.pair.first.estimated.value * unit,
        "control": effect.pair.second.estimated.value * unit,
        **interval_columns("difference", effect.difference, unit),
        "noise_std": noise.std_error * unit,
        "sampling_std": np.sqrt(sampling_variance_of_effect) * unit,
        **interval_columns("lift", lift_of(effect.ratio), 1.0),
    }
    return {name: array.reshape(shape) for name, array in numbers.items()}


def design_effect(privacy: Privacy) -> int:
    """Return the factor by which several rows per unit increase variances."""
    if privacy.unit_column is None:
        return 1
    return privacy.max_rows


def _check_outcome(domain: Domain, measure: str) -> None:
    """Raise if the outcome is weighted, because its sampling error is unknown."""
    if type(domain.measure(measure)) is not Measure:
        raise refuse(
            "mean",
            measure,
            "a measure without weights",
            "Use compare_groups; its intervals are for the rows of the release.",
        )


def sampling_variance(estimated: Estimated, std: float | None) -> FloatArray:
    """Return the sampling variance of the mean of each group.

    The variance is in squared units of the measure.

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
