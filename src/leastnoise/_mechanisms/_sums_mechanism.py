"""Sums whose public maximum is far above most values.

Noise proportional to the maximum would be too large (docs/decisions/sums.md).

If queries use only the summed number and it has at most 1024 cells, one step measures buckets of
the number with the whole budget. The noise of a bucket is proportional to the largest values in it.
Buckets whose noisy sums do not exceed their noise are left out of the answers.

Otherwise a tenth of the budget counts the records between candidate thresholds. From these noisy
counts, the threshold with the least predicted error is chosen. For a single table of groups, the
range of the number below the threshold is divided into buckets, and the remaining budget measures
them by group. Each group keeps the buckets that reduce its error. For other workloads, every value
is clipped at the threshold. A strategy is then planned for the largest amounts that the cells can
contain.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from sys import float_info
from typing import SupportsFloat

import numpy as np

from leastnoise._domain import Bins, Decimals, Domain, Edges, Integers, Kind, Measure
from leastnoise._error import block_variance, check_noise
from leastnoise._estimation import (
    BucketExpansion,
    CatalogueText,
    DroppedBucketsEstimate,
    Estimator,
    GroupedBucketSumsEstimate,
    Outcome,
    TruncatedSumsEstimate,
    join_measurements,
    join_observations,
    measured_by_group,
)
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms._planning_time import noises_to_plan
from leastnoise._mechanisms._protocol import (
    DataDependentFinding,
    Mechanism,
    Run,
    shared_mu_squared,
    shared_step_privacy,
    step_privacy,
)
from leastnoise._mechanisms._search import Search
from leastnoise._plan import AdaptiveDetails, AdaptivePlan, Plan, Step
from leastnoise._strategies import (
    MOST_SUM_CELLS,
    SURE,
    GroupBuckets,
    SumBuckets,
    TailLaw,
    ThresholdChoice,
    candidate_cells,
    choose_group_threshold,
    choose_threshold,
    estimated_rmse_along,
    gram_matrices_along,
    limited_strategy,
)
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.kernel import Series
from leastnoise._trusted.linop import Identity, Ranges
from leastnoise._trusted.measurements import Block, Factor, Limits, Measurements, Observation
from leastnoise._workload import Workload, identity

STRATEGY = "truncated_sums"
TAIL_SHARE = Fraction(1, 10)
"""The part of the budget that chooses the threshold."""
_MOST_GROUPS = 2**14  # the most groups with separate buckets


def _describe_omitted_values(
    finding: "RangeFinding | GroupedThresholdFinding | ThresholdFinding",
    domain: Domain,
    **limits: int,
) -> list[CatalogueText]:
    """Describe the values that sums leave out.

    The text states the limits of these values and their estimated total. ``limits`` are the limits
    of the values that are summed, in units of the measure.
    """
    unit = domain.measure(finding.measure).unit
    amounts = {name: Fraction(end * unit) for name, end in limits.items()}
    return [
        (
            finding.uncovered_error,
            {
                "name": finding.measure,
                **amounts,
                "lost": _three_digits(finding.estimated_loss * unit),
            },
        )
    ]


def _three_digits(estimate: SupportsFloat) -> float:
    """Round a published estimate to three significant digits."""
    return float(f"{float(estimate):.3g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeFinding(DataDependentFinding):
    """Finding: only values between two bounds are summed.

    Attributes:
        measure: the summed measure.
        attribute: the summed number as an attribute.
        first: the first kept cell along ``attribute``.
        stop: the cell after the last kept cell.
        low: the largest amount below the kept cells, in units.
        high: the largest amount of the kept cells, in units.
        losses: ranges of omitted cells (start, stop), each with its estimated sum in units.
        estimated_loss: the estimated sum of all omitted values, in units.
    """

    regime = "bucketed"
    answers_new_questions = False  # other queries would need the omitted values
    reading = "aware_reading_bucketed"
    uncovered_error = "bucketed"

    measure: str
    attribute: str
    first: int
    stop: int
    low: int
    high: int
    losses: tuple[tuple[int, int, float], ...] = ()
    estimated_loss: float

    def uncovered_errors(self, domain: Domain) -> list[CatalogueText]:
        """Describe the values outside the bounds."""
        return _describe_omitted_values(self, domain, low=self.low, high=self.high)

    def estimator(self, observation: Observation) -> Estimator:
        """Return least squares on the kept buckets, and estimates for the others.

        The estimated amounts of the dropped buckets are part of the errors.
        """
        losses = ((int(start), int(stop), float(loss)) for start, stop, loss in self.losses)
        return DroppedBucketsEstimate.of(observation, int(self.first), int(self.stop), losses)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedThresholdFinding(DataDependentFinding):
    """Finding: values are clipped at a threshold, and each group has its own buckets.

    Buckets are ranges of values below the threshold.

    Attributes:
        measure: the summed measure.
        attribute: the summed number as an attribute.
        threshold: the threshold, in units.
        kept: the number of buckets that each group keeps.
        missing: the estimated amount that each group's sum may lack, in units.
        estimated_loss: the estimated amount above the threshold, in units.
    """

    regime = "grouped"
    answers_new_questions = False  # other queries would need the omitted values
    reading = "aware_reading_grouped"
    uncovered_error = "grouped"

    measure: str
    attribute: str
    threshold: int
    kept: tuple[int, ...]
    missing: tuple[float, ...]
    estimated_loss: float

    def uncovered_errors(self, domain: Domain) -> list[CatalogueText]:
        """Describe the values that the groups' sums leave out."""
        return _describe_omitted_values(self, domain, cut=self.threshold)

    def estimator(self, observation: Observation) -> Estimator:
        """Return the estimator that sums the buckets that each group keeps."""
        block = observation.measurements.blocks[-1]
        if block.limits is None:
            limited = None
        else:
            limited = (block.limits.attribute, int(block.limits.values.max()))
        if (block.measure, limited) != (
            self.measure,
            (self.attribute, self.threshold),
        ) or not 0 <= self.estimated_loss <= float_info.max:
            raise ValueError(self.threshold)
        return GroupedBucketSumsEstimate.of(observation, self.attribute, self.kept, self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdFinding(DataDependentFinding):
    """Finding: values above a threshold are clipped to the threshold."""

    regime = "truncated"
    answers_new_questions = False  # other queries would need the unclipped values
    reading = "aware_reading_truncated"
    uncovered_error = "truncated"

    measure: str
    attribute: str
    threshold: int
    losses: tuple[tuple[int, int, float], ...] = ()
    estimated_loss: float

    def uncovered_errors(self, domain: Domain) -> list[CatalogueText]:
        """Describe the amounts that clipping removes from sums."""
        return _describe_omitted_values(self, domain, cut=self.threshold)

    def estimator(self, observation: Observation) -> Estimator:
        """Return the least squares estimator; its errors include clipping losses."""
        losses = ((int(start), int(stop), float(loss)) for start, stop, loss in self.losses)
        return TruncatedSumsEstimate.of(observation, self.attribute, losses)


@dataclass(frozen=True, slots=True)
class SumsSetting:
    """The public properties of a plan on which a release of sums depends."""

    plan: Plan
    measure: str
    attribute: str  # the summed number
    edges: IntArray  # the largest amount that a row of each cell adds, in units, shape (cells,)

    @property
    def noise(self) -> Noise:
        """The kind of noise of all measurements."""
        return noises_to_plan(self.plan.privacy)[0]

    @property
    def candidates(self) -> IntArray:
        """The cells whose upper ends may become the threshold."""
        return candidate_cells(self.edges)


def plan_sums(workload: Workload, privacy: Privacy) -> SumsSetting:
    """Check a workload of sums, and return the setting of its release."""
    if (
        len(workload.measures) != 1
        or workload.measures[0] is None
        or not workload.products[0].of_values
        or workload.products[0].is_per_unit
    ):
        quantities: dict[str | None, str] = {}
        for product in workload:
            if product.of_values:
                quantities[product.measure] = f"sums of {product.measure}"
            elif product.of_units:
                quantities[product.measure] = "counts of units"
            else:
                quantities[product.measure] = product.measure or "counts"
        raise InputError(
            f"{STRATEGY} answers sums of one measure; this workload has "
            f"{' and '.join(quantities[name] for name in workload.measures)}. "
            "Request counts and other sums in separate releases."
        )
    measure = workload.measures[0]
    attribute, edges = _attribute_and_amounts(workload, measure)
    noise = noises_to_plan(privacy)[0]
    mu_squared = shared_mu_squared(privacy, noise)
    budget = shared_step_privacy(privacy, mu_squared).budget
    steps = tuple(
        Step(name, budget.scaled(share))
        for name, share in _step_shares(workload, attribute).items()
    )
    adaptive = AdaptiveDetails(
        noise=noise,
        steps=steps,
        mu_squared=mu_squared,
        attributes=(attribute,),
        measure=measure,
    )
    plan = AdaptivePlan(workload=workload, privacy=privacy, strategy=STRATEGY, adaptive=adaptive)
    return SumsSetting(plan, measure, attribute, edges)


def setting_from_plan(plan: Plan) -> SumsSetting:
    """Check a plan before anything is paid, and return the settings of a run.

    The plan may come from a file.
    """
    expected = plan_sums(plan.workload, plan.privacy)
    if expected.plan.digest() != plan.digest():
        raise InputError(
            "The details of the plan are from another version. Make the plan again; nothing "
            "was spent."
        )
    return replace(expected, plan=plan)


def _attribute_and_amounts(workload: Workload, name: str) -> tuple[str, IntArray]:
    """Return the summed number's attribute, and the largest amount per cell.

    The amounts are in units of the measure.
    """
    domain = workload.domain
    measure = workload.domain.measure(name)
    if measure.low_units < 0:
        raise InputError(
            f"{STRATEGY} clips values from above, so {name} must not be negative; its lower bound "
            f"is {float(measure.low):g}. Choose a lower bound of 0."
        )
    kind = None
    if measure.column in domain.names:
        kind = domain.kind(measure.column)
    if not isinstance(kind, (Bins, Edges, Decimals, Integers)):
        raise InputError(
            f"{STRATEGY} chooses its threshold along the number that is summed, so the domain must "
            f"have the attribute {measure.column} as Integers or Bins. Add it, for example "
            f"{measure.column} = Bins(0, {float(measure.high):g}, 500)."
        )
    if kind.reading != measure.reading or (
        isinstance(kind, Integers) and kind.rounding is not None
    ):
        raise InputError(
            f"{STRATEGY} needs the same settings for reading the column in the attribute "
            f"{measure.column} and in the measure {name}."
        )
    return measure.column, _largest_amounts(kind, measure)


def _largest_amounts(kind: Kind, measure: Measure) -> IntArray:
    """Return a row's largest amount in each cell of the summed number.

    The amounts are in units of the measure.
    """
    ends: Sequence[Fraction] = []
    if isinstance(kind, Integers):
        ends = [Fraction(label) for label in kind.regular_labels]
    elif isinstance(kind, (Bins, Edges)):
        ends = kind.edges[1:]
    elif isinstance(kind, Decimals):
        ends = kind.values
    least = max(1, measure.low_units)  # smaller values are raised to the lower bound
    upper_ends = []
    for end in ends:
        units = math.ceil(end / measure.unit)
        upper_ends.append(max(least, min(measure.high_units, units)))
    if kind.outside == "clip":
        upper_ends[-1] = measure.high_units  # the last cell contains all larger values
    for cell in range(kind.regular, kind.published):  # only nulls add nothing to sums
        if cell == kind.outside_cell:
            upper_ends.append(measure.high_units)
        else:
            upper_ends.append(upper_ends[-1])
    if kind.hidden:  # dropped values beyond the last cell add at most as much as that cell
        upper_ends.append(upper_ends[-1])
    return np.maximum.accumulate(np.array(upper_ends, dtype=np.int64))


def tail_counts(setting: SumsSetting) -> Measurements | None:
    """Return the measurement of rows between candidate thresholds, or None.

    The result is None if there is only one candidate.
    """
    cells = setting.candidates
    plan = setting.plan
    if len(cells) < 2:
        return None
    last = cells[1:].copy()
    kind = plan.domain.kind(setting.attribute)
    # Nulls are not large values, and the hidden cell includes nulls.
    last[-1] = kind.regular - 1 if kind.outside_cell is None else kind.published - 1
    factor = Factor((setting.attribute,), Ranges(len(setting.edges), cells[:-1] + 1, last))
    return fit_noise_scales(
        plan.domain,
        step_privacy(plan).scaled(TAIL_SHARE),
        setting.noise,
        [(Block((factor,), Fraction(1)), 1.0)],
    )


def fit_second_step(setting: SumsSetting, blocks: Sequence[tuple[Block, float]]) -> Measurements:
    """Return measurements of blocks that use the budget of the second step.

    This budget remains after the first step, which counts the records between candidate thresholds.
    """
    measurements = fit_noise_scales(
        setting.plan.domain,
        step_privacy(setting.plan).scaled(1 - TAIL_SHARE),
        setting.noise,
        blocks,
    )
    tail = tail_counts(setting)
    # Refuses measurements that cannot be joined, before anything is paid.
    join_measurements(
        [measurements] if tail is None else [tail, measurements], setting.plan.privacy
    )
    return measurements


Chooser = Callable[[FloatArray], ThresholdChoice]


def measure_under_threshold(
    setting: SumsSetting,
    series: Series,
    choose: Chooser,
    measurements: Callable[[int], Measurements],
) -> tuple[ThresholdChoice, list[Observation]]:
    """Choose a threshold from noisy counts, then measure the sums below it."""
    tail = tail_counts(setting)
    if tail is None:
        counted = []
    else:
        counted = [series.measure(tail)]
    choice = choose(np.zeros(0) if tail is None else counted[0].values[0] / tail.grid)
    return choice, [*counted, series.measure(measurements(choice.threshold))]


def _deviation(measurements: Measurements | None) -> float:
    """Return the noise standard deviation of the first block; 0 without blocks."""
    if measurements is None:
        return 0.0
    check_noise(measurements)
    return float(block_variance(measurements, measurements.blocks[0]) ** 0.5)


# --- workloads with queries only on the summed number ---------------------------------------------


def fit_bucket_sums(setting: SumsSetting) -> tuple[SumBuckets, Measurements]:
    """Return the buckets of the summed number and the measurement of sums."""
    buckets = SumBuckets.of(setting.plan.workload, setting.attribute, setting.edges)
    limits = Limits(buckets.limits, setting.attribute)
    block = Block((buckets.factor(setting.noise.norm),), Fraction(1), setting.measure, limits)
    return buckets, fit_noise_scales(
        setting.plan.domain, step_privacy(setting.plan), setting.noise, [(block, 1.0)]
    )


def measure_bucket_sums(
    setting: SumsSetting, buckets: SumBuckets, measurements: Measurements, series: Series
) -> Outcome:
    """Measure bucket sums, and keep the buckets that exceed their noise."""
    observation = series.measure(measurements)
    groups = BucketExpansion.of(observation)
    kept_range = buckets.choices(groups.covariance).choose_range(groups.counts)
    finding = RangeFinding(
        measure=setting.measure,
        attribute=setting.attribute,
        first=kept_range.first,
        stop=kept_range.stop,
        low=int(setting.edges[kept_range.first - 1]) if kept_range.first else 0,
        high=int(setting.edges[kept_range.stop - 1]),
        losses=kept_range.omitted_sums,
        estimated_loss=sum(loss for _, _, loss in kept_range.omitted_sums),
    )
    return Outcome(setting.plan, observation, finding)


# --- one table of groups --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class BucketsBelowThreshold:
    """Buckets below a threshold, their measurement and their standard errors."""

    buckets: GroupBuckets
    measurements: Measurements
    noise: FloatArray


def buckets_below(setting: SumsSetting, threshold: int) -> BucketsBelowThreshold:
    """Return the buckets below a threshold, and the measurement of their sums.

    The measurements cost the second part of the budget.
    """
    domain = setting.plan.domain
    product, *_ = setting.plan.workload
    buckets = GroupBuckets.of(setting.attribute, setting.edges, threshold)
    along = {name: Factor((name,), Identity(domain.kind(name).size)) for name in product.attributes}
    along[setting.attribute] = buckets.factor(setting.noise.norm)
    factors = tuple(along[name] for name in domain.names if name in along)
    measurements = fit_second_step(
        setting,
        [
            (
                Block(
                    factors, Fraction(1), setting.measure, Limits(buckets.limits, setting.attribute)
                ),
                1.0,
            )
        ],
    )
    return BucketsBelowThreshold(
        buckets, measurements, _deviation(measurements) / along[setting.attribute].weights
    )


def measurable_thresholds(setting: SumsSetting) -> dict[int, BucketsBelowThreshold]:
    """Return the buckets and the measurement for each possible threshold."""
    return {
        threshold: buckets_below(setting, threshold)
        for threshold in setting.edges[setting.candidates].tolist()
    }


def group_chooser(setting: SumsSetting, thresholds: Mapping[int, BucketsBelowThreshold]) -> Chooser:
    """Return a function that chooses a threshold for groups from noisy counts.

    The function takes noisy counts, and returns the threshold of least predicted error.
    """
    groups = setting.plan.workload.products[0].rows
    sure = SURE * _deviation(tail_counts(setting))
    noise = {
        threshold: float(np.sqrt((measurements.noise**2).sum()))
        for threshold, measurements in thresholds.items()
    }
    return lambda counts: choose_group_threshold(
        setting.edges, counts, groups, noise.__getitem__, certain_count=sure
    )


def measure_sums_by_group(
    setting: SumsSetting,
    thresholds: Mapping[int, BucketsBelowThreshold],
    choose: Chooser,
    series: Series,
) -> Outcome:
    """Choose a threshold, measure bucket sums, and keep buckets per group.

    The noisy sums determine which buckets each group keeps.
    """
    choice, observed = measure_under_threshold(
        setting, series, choose, lambda threshold: thresholds[threshold].measurements
    )
    values, noise = measured_by_group(observed[-1], setting.attribute)
    ranges = thresholds[choice.threshold].buckets.choose_ranges(
        values.reshape(-1, len(noise)), noise
    )
    missing = ranges.omitted_sums + ranges.group_shares * choice.clipped_amounts.sum()
    finding = GroupedThresholdFinding(
        measure=setting.measure,
        attribute=setting.attribute,
        threshold=choice.threshold,
        kept=tuple(ranges.kept_buckets.tolist()),
        missing=tuple(map(_three_digits, missing)),
        estimated_loss=float(choice.clipped_amounts.sum()),
    )
    return Outcome(setting.plan, join_observations(observed, setting.plan.privacy), finding)


# --- all other tables and queries -----------------------------------------------------------------


def threshold_chooser(setting: SumsSetting) -> Chooser:
    """Return a function that chooses the threshold of least error from counts.

    The measurements of every threshold are computed before anything is paid.
    """
    cells = setting.candidates
    edges = setting.edges
    workload = setting.plan.workload
    try:
        fit_second_step(setting, [(_block_of_cells(setting, edges), 1.0)])
    except InputError:  # even if there are too many single cells, another strategy may exist
        fit_limited_sums(setting, int(edges[-1]))
    gram, lost = gram_matrices_along(workload, setting.attribute)
    rows = Block((Factor((setting.attribute,), Identity(len(edges))),), Fraction(1))
    unit = _deviation(fit_second_step(setting, [(rows, 1.0)]))
    sure = SURE * _deviation(tail_counts(setting))
    quick = estimated_rmse_along(workload, setting.attribute, setting.noise.norm)
    rmse_by_threshold = {int(most): quick(np.minimum(edges, most)) for most in edges[cells]}

    def choose(counts: FloatArray) -> ThresholdChoice:
        """Choose the threshold from noisy counts between candidates."""
        return choose_threshold(
            gram,
            edges,
            cells,
            counts,
            lambda limits: rmse_by_threshold[int(limits.max())],
            unit,
            loss_gram=lost,
            law=TailLaw(sure),
        )

    return choose


def fit_limited_sums(setting: SumsSetting, threshold: int) -> Measurements:
    """Return the measurements of sums of values clipped at a threshold.

    The measurements come from the first of three strategies whose noise can be drawn exactly.
    """
    # Three strategies are tried: the best strategy for the weights of the workload; the best
    # strategy for equal weights, because very unequal weights may need noise of extreme scales; and
    # every single cell.
    workload = setting.plan.workload
    limits = np.minimum(setting.edges, threshold)
    unweighted = Workload(
        workload.domain, tuple(replace(product, weight=Fraction(1)) for product in workload)
    )
    for candidate_workload in (workload, unweighted):
        with suppress(InputError):
            strategy = limited_strategy(
                candidate_workload, setting.attribute, limits, setting.noise.norm
            )
            return fit_second_step(setting, strategy.blocks)
    return fit_second_step(setting, [(_block_of_cells(setting, limits), 1.0)])


def _block_of_cells(setting: SumsSetting, limits: IntArray) -> Block:
    """Return the block that sums the values in each cell of the attributes."""
    domain = setting.plan.domain
    attributes = {
        setting.attribute,
        *chain.from_iterable(product.attributes for product in setting.plan.workload),
    }
    factors = tuple(
        Factor((name,), Identity(domain.kind(name).size))
        for name in domain.names
        if name in attributes
    )
    return Block(factors, Fraction(1), setting.measure, Limits(limits, setting.attribute))


def measure_clipped_sums(setting: SumsSetting, choose: Chooser, series: Series) -> Outcome:
    """Choose a threshold, then measure sums of clipped values."""
    choice, observed = measure_under_threshold(
        setting, series, choose, lambda threshold: fit_limited_sums(setting, threshold)
    )
    intervals = [
        (start + 1, stop + 1) for start, stop in itertools.pairwise(setting.candidates.tolist())
    ]
    losses = [
        (start, stop, float(choice.clipped_amounts[start:stop].sum())) for start, stop in intervals
    ]
    finding = ThresholdFinding(
        measure=setting.measure,
        attribute=setting.attribute,
        threshold=choice.threshold,
        losses=tuple(entry for entry in losses if entry[2] > 0),
        estimated_loss=float(choice.clipped_amounts.sum()),
    )
    return Outcome(setting.plan, join_observations(observed, setting.plan.privacy), finding)


def _step_shares(workload: Workload, attribute: str) -> dict[str, Fraction]:
    """Return the budget share of each step that a workload of sums needs.

    Raise for workloads that cannot be answered.
    """
    names, *other_sets = {product.attributes for product in workload}
    if (
        not other_sets
        and names == (attribute,)
        and workload.domain.kind(attribute).size <= MOST_SUM_CELLS
    ):
        return {"number": Fraction(1)}
    cells = all(queries == identity() for product in workload for queries in product.query_sets)
    if (
        not other_sets
        and cells
        and attribute not in names
        and workload.products[0].rows <= _MOST_GROUPS
    ):
        return {"tail": TAIL_SHARE, "groups": 1 - TAIL_SHARE}
    estimated_rmse_along(workload, attribute, 1)  # refuses unplannable workloads
    return {"tail": TAIL_SHARE, "sums": 1 - TAIL_SHARE}


class TruncatedSums(Mechanism):
    """The mechanism for sums whose public bound is far above most values."""

    names = (STRATEGY,)
    findings = (RangeFinding, GroupedThresholdFinding, ThresholdFinding)

    def decision_attributes(self, workload: Workload) -> tuple[str, ...]:
        """Return the attribute of the summed number, on which choices depend."""
        columns = {
            workload.domain.measure(name).column for name in workload.measures if name is not None
        }
        return tuple(name for name in workload.domain.names if name in columns)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Plan the one or two steps of a release of sums."""
        plan = plan_sums(workload, privacy).plan
        if search.progress is not None:
            search.progress(STRATEGY)
        return plan

    def prepare(self, plan: Plan) -> Run:
        """Check that this version makes the same plan; return the run function.

        The measurements of all possible thresholds are prepared here, or tried.
        """
        sums_setting = setting_from_plan(plan)
        step_shares = _step_shares(plan.workload, sums_setting.attribute)
        if "number" in step_shares:
            return partial(measure_bucket_sums, sums_setting, *fit_bucket_sums(sums_setting))
        if "groups" in step_shares:
            thresholds = measurable_thresholds(sums_setting)
            return partial(
                measure_sums_by_group,
                sums_setting,
                thresholds,
                group_chooser(sums_setting, thresholds),
            )
        return partial(measure_clipped_sums, sums_setting, threshold_chooser(sums_setting))
