"""DAWA and its relatives, for queries on one or two attributes.

These mechanisms use structure in the data, and pay for every data-dependent choice.

A private test chooses between two kinds of measurements (docs/decisions/dawa.md). The first kind is
a data-independent plan. The second kind is for nearly empty data and is adaptive: on one attribute,
it measures levels and then buckets; on two attributes, it measures a grid. The choice depends only
on paid answers and public values. Before anything is paid, the plan's details state the steps and
the share of the budget of each step. All measurements are steps of a paid series, so the kernel
computes their cost from their integers and checks the budget once more.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from leastnoise._error import block_variance
from leastnoise._estimation import (
    AdaptiveGridEstimate,
    Estimator,
    HalvingTree,
    Outcome,
    Posterior,
    SmoothedEstimate,
    can_be_smoothed,
    cheapest_bucket_starts,
    join_observations,
    shrunk_levels,
)
from leastnoise._families import Gram, gram_of, sum_grams
from leastnoise._fitting import fit_noise_scales, pure_share, rescale_noise
from leastnoise._mechanisms._planning_time import noises_to_plan
from leastnoise._mechanisms._protocol import (
    DataDependentFinding,
    Mechanism,
    NoStructureFinding,
    Run,
    adaptive_plan,
    reference_measurements,
    reference_of,
    reference_plan,
    require_details,
)
from leastnoise._mechanisms._search import Progress, Search
from leastnoise._plan import AdaptiveDetails, Plan, Step, StepChoice
from leastnoise._strategies import (
    GROUP_SHARE,
    PLANE_FIRST_SHARE,
    PLANE_TEST_SHARE,
    bucket_strategy,
    difference_costs,
    divide_parts,
    first_level,
    first_levels,
    has_narrow_queries,
    plane_regime,
    records_per_part,
    total_cost,
)
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    Budget,
    Noise,
    Privacy,
    PureDP,
    charge_of_budget,
)
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.kernel import LeastCost, Series
from leastnoise._trusted.linop import (
    Coarse,
    Identity,
    Ordered,
    Ranges,
    Total,
    Tree,
    array_to_json,
    block_tree,
)
from leastnoise._trusted.measurements import MOST_ROWS, Block, Factor, Measurements, Observation
from leastnoise._workload import Workload

STRATEGIES = ("dawa", "dawa_levels")
# The share of the budget for the test, by kind of noise.
TEST_SHARE = {
    "pure": Fraction(3, 100),
    "gaussian": Fraction(1, 100),
}
# The data count as nearly empty below this least cost per cell, in units of the noise.
EASY = 0.10
CLEAR = 1.2  # the same, if this multiple of the noise of the test is below EASY too
FIRST_SHARE = Fraction(55, 100)  # share of the remaining budget for the levels
_MOST_ADAPTIVE = 2048  # the most buckets
_LARGEST_ENTRY = 2**20 - 1  # the largest coefficient of queries on buckets
# These limits on two attributes are checked beforehand, because nothing may fail or take hours
# after the payment.
_MOST_SIDE = 2**12
_MOST_CELLS = 2**20  # the most cells of both attributes together
MOST_QUERIES = 2**20  # the most queries of a table
_MOST_ENTRIES = 2**24  # the most queries times cells along an attribute
_MOST_PAIRS = 2**33  # the most queries times cells of both attributes together


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEmptinessFinding(DataDependentFinding):
    """The finding that the data are not nearly empty.

    The answers come from the data-independent plan, shrunk as far as its noisy answers allow.
    """

    regime = "smoothed"
    interval = "interval_smoothed"
    reading = "aware_reading_smoothed"
    uncovered_error = "aware_moved"
    estimate = SmoothedEstimate.of  # the posterior mean, with the intervals of least squares


@dataclass(frozen=True, slots=True, kw_only=True)
class NearlyEmptyFinding(DataDependentFinding):
    """The finding that the data are nearly empty, so few buckets are measured.

    The first step measures levels of blocks; the second step measures buckets that are chosen from
    the noisy levels.
    """

    regime = "adaptive"
    # The queries of the second step depend on the noise of the first step.
    answers_new_questions = False
    estimate = Posterior.of

    buckets: int
    starts: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveGridFinding(DataDependentFinding):
    """The finding that data on two attributes have structure.

    The first step measures blocks; the second step measures parts and groups of parts that are
    chosen from the noisy counts of the blocks.
    """

    regime = "blocks"
    # The queries of the second round depend on the noise of the first round.
    answers_new_questions = False

    blocks: int
    buckets: int
    shrunk: bool = False

    def estimator(self, observation: Observation) -> Estimator:
        """Return the least squares estimator of both steps' measurements.

        Within a measured part, all cells get the same estimate. The cells are shrunk if the queries
        cover few cells.
        """
        return AdaptiveGridEstimate.of(observation, shrunk=self.shrunk)


@dataclass(frozen=True)
class DawaSetting:
    """The public properties of a plan on which a run of DAWA depends."""

    plan: Plan
    attributes: tuple[str, ...]
    noise: Noise

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each attribute."""
        return tuple(self.plan.domain.kind(name).size for name in self.attributes)

    @cached_property
    def workload_gram(self) -> Gram:
        """The error-weighted Gram matrix of all queries on one attribute."""
        (size,) = self.shape
        parts = list[tuple[float, Gram]]()
        for product in self.plan.workload:
            parts.append(
                (
                    product.importance,
                    gram_of(product.operators[0] if product.attributes else Total(size)),
                )
            )
        return sum_grams(parts)

    @cached_property
    def has_narrow_queries(self) -> bool:
        """Whether all queries on two attributes cover few cells."""
        queries = []
        for product in self.plan.workload:
            operators = dict(zip(product.attributes, product.operators, strict=True))
            first, second = (
                operators.get(name, Total(size))
                for name, size in zip(self.attributes, self.shape, strict=True)
            )
            queries.append((product.importance, (first, second)))
        return has_narrow_queries(queries)

    @property
    def test_epsilon(self) -> Fraction:
        """The epsilon that the test for structure costs; 0 without a test."""
        return _test_epsilon(self.attributes, self.plan.privacy.budget, self.plan.strategy)

    @property
    def remaining_budget(self) -> Budget:
        """The budget that remains for measurements after the test."""
        return self.plan.privacy.budget.without(self.test_epsilon)

    @property
    def laplace_scale(self) -> Fraction:
        """The Laplace scale of cells if the whole budget measures the cells.

        For Gaussian noise, the result is the Laplace scale with the same standard deviation.
        """
        privacy = self.plan.privacy
        if isinstance(privacy.budget, PureDP):
            return privacy.distance / privacy.budget.epsilon
        return Fraction(math.sqrt(self.cell_variance(privacy.budget) / 2)).limit_denominator(10**6)

    def cell_variance(self, budget: Budget) -> float:
        """Return the noise variance if single cells are measured with a budget.

        The measured queries have columns of norm 1.
        """
        measurements = self.fit_block(
            Factor(self.attributes, Identity(math.prod(self.shape))), budget
        )
        return block_variance(measurements, measurements.blocks[0])

    def fit_block(self, factor: Factor, budget: Budget) -> Measurements:
        """Return the measurement of one factor, with noise that uses a budget."""
        return fit_noise_scales(
            self.plan.domain,
            self.plan.privacy.within(budget),
            self.noise,
            [(Block((factor,), Fraction(1)), 1.0)],
        )

    def test_structure(self, series: Series) -> tuple[Fraction, dict[str, float]]:
        """Run the test for structure, and return its cost and published numbers.

        The test computes a noisy least cost of dividing the cells into buckets. The published
        numbers are shown in the release.
        """
        value = series.choose(
            LeastCost(
                attributes=self.attributes, epsilon=self.test_epsilon, penalty=self.laplace_scale
            )
        )
        per_cell = float(value / self.laplace_scale) / math.prod(self.shape)
        return value, {
            "value": float(value),
            "unit": float(self.laplace_scale),
            "per_cell": per_cell,
        }

    def measure_reference(self, series: Series) -> Observation:
        """Carry out the data-independent plan with the remaining budget."""
        return series.measure(
            rescale_noise(
                reference_measurements(self.plan), self.plan.privacy.within(self.remaining_budget)
            )
        )


def plan_dawa(
    workload: Workload,
    privacy: Privacy,
    strategy: str,
    progress: Progress = None,
    reference: Plan | None = None,
) -> Plan:
    """Plan a release by DAWA on one or two attributes.

    The plan states the share of the budget of each step, and the best data-independent plan.
    """
    if strategy not in STRATEGIES:
        raise refuse(
            "strategy", strategy, "one of " + ", ".join(f"'{name}'" for name in STRATEGIES)
        )
    # Refuses bad workloads before the search for the reference.
    attributes = attributes_of(workload, privacy, strategy)
    details = plan_details(attributes, privacy, strategy)
    remaining_privacy = privacy.within(
        privacy.budget.without(_test_epsilon(attributes, privacy.budget, strategy))
    )
    return adaptive_plan(
        reference or reference_plan(workload, privacy, progress),
        remaining_privacy,
        strategy,
        details,
    )


def attributes_of(workload: Workload, privacy: Privacy, strategy: str) -> tuple[str, ...]:
    """Return the one or two attributes of a workload that DAWA can answer.

    Raise for all other workloads.
    """
    if workload.measures != (None,):
        raise InputError(
            f"{strategy} answers counts; this workload has sums. Choose strategy = 'auto'."
        )
    attributes = set(chain.from_iterable(product.attributes for product in workload))
    names = tuple(name for name in workload.domain.names if name in attributes)
    if len(names) == 2 and strategy == "dawa":
        _require_small_plane(workload, privacy, [workload.domain.kind(name).size for name in names])
    elif len(names) != 1:
        raise InputError(
            f"{strategy} answers queries on one attribute{' or two' * (strategy == 'dawa')}; this "
            f"workload has queries on {' and '.join(names) or 'none'}. Choose strategy = 'auto', "
            "or make one release for each attribute."
        )
    return names


def _require_small_plane(workload: Workload, privacy: Privacy, sizes: Sequence[int]) -> None:
    """Raise unless a two-attribute workload is small and has a pure budget.

    For other workloads, DAWA would fail or take hours after the payment.
    """
    if not isinstance(privacy.budget, PureDP):
        raise InputError(
            "dawa on two attributes needs a budget with only epsilon (pure differential privacy); "
            f"got {privacy.budget!r}. Give epsilon without delta and rho, or choose strategy = "
            "'auto'."
        )
    cells = math.prod(sizes)
    if not (max(sizes) <= _MOST_SIDE and cells <= _MOST_CELLS):
        raise InputError(
            f"dawa on two attributes supports at most {_MOST_SIDE} cells of each attribute and "
            f"{_MOST_CELLS} cells of both together; got {sizes[0]} x {sizes[1]}. Use coarser "
            "attributes, or choose strategy = 'auto'."
        )
    most = min(MOST_QUERIES, _MOST_PAIRS // cells)
    for product in workload:
        entries = max((operator.rows * operator.size for operator in product.operators), default=1)
        if not (product.rows <= most and entries <= _MOST_ENTRIES):
            raise InputError(
                f"dawa on two attributes answers at most {most} queries on a table of {cells} "
                f"cells, because each gets a separate error bar, and at most {_MOST_ENTRIES} "
                f"entries (queries times cells) along an attribute; got {product.rows} queries in "
                f"{product.name}, and {entries} entries. Ask for fewer queries, or choose strategy "
                "= 'auto'."
            )


def _test_epsilon(attributes: Sequence[str], budget: Budget, strategy: str) -> Fraction:
    """Return the epsilon that the test for structure costs.

    The result is 0 for the strategy that always measures levels, which has no test.
    """
    if strategy == "dawa_levels":
        return Fraction(0)
    if len(attributes) == 2:
        share = PLANE_TEST_SHARE
    elif isinstance(budget, ZCDP | GDP):
        share = TEST_SHARE["gaussian"]
    else:
        share = TEST_SHARE["pure"]
    return pure_share(budget, share)


def plan_details(attributes: Sequence[str], privacy: Privacy, strategy: str) -> AdaptiveDetails:
    """Return the noise, the steps, and the steps' budgets of a DAWA plan."""
    test_epsilon = _test_epsilon(attributes, privacy.budget, strategy)
    remaining = privacy.budget.without(test_epsilon)
    is_plane = len(attributes) == 2
    if is_plane:
        shares = {"blocks": PLANE_FIRST_SHARE, "parts": 1 - PLANE_FIRST_SHARE}
    else:
        shares = {"levels": FIRST_SHARE, "buckets": 1 - FIRST_SHARE}
    adaptive_steps = tuple(Step(name, remaining.scaled(share)) for name, share in shares.items())
    noise = noises_to_plan(privacy)[0]
    if not test_epsilon:
        return AdaptiveDetails(noise=noise, steps=adaptive_steps, attributes=tuple(attributes))
    cases = StepChoice(
        (
            ("independent", (Step("independent", remaining),)),
            ("blocks" if is_plane else "adaptive", adaptive_steps),
        )
    )
    return AdaptiveDetails(
        noise=noise,
        steps=(Step("test", PureDP(test_epsilon)), cases),
        attributes=tuple(attributes),
        borders={} if is_plane else {"easy": EASY, "clear": CLEAR},
    )


def setting_from_plan(plan: Plan) -> DawaSetting:
    """Check a plan before anything is paid, and return the settings of a run.

    The plan may come from a file.
    """
    attributes = attributes_of(plan.workload, plan.privacy, plan.strategy)
    require_details(plan, plan_details(attributes, plan.privacy, plan.strategy))
    return DawaSetting(plan, attributes, noises_to_plan(plan.privacy)[0])


# --- one attribute --------------------------------------------------------------------------------


def run_dawa(setting: DawaSetting, series: Series) -> Outcome:
    """Run DAWA on one attribute: the test, and the steps that it chooses.

    If the test finds that the data are nearly empty, or if the strategy omits the test, the steps
    measure first levels of blocks and then buckets.
    """
    plan = setting.plan
    test = None
    if setting.test_epsilon:
        _, test = setting.test_structure(series)
        test["blur"] = (
            float(1 / setting.test_epsilon / setting.laplace_scale)
            * plan.privacy.distance
            / setting.workload_gram.size
        )
        if not nearly_empty(test["per_cell"], test["blur"]):
            observed = setting.measure_reference(series)
            # Answers are shrunk if the measurements determine the cells.
            finding = (
                NoEmptinessFinding(test=test)
                if can_be_smoothed(observed.measurements)
                else NoStructureFinding(test=test)
            )
            return Outcome(plan, join_observations([observed], plan.privacy), finding)
    return _measure_levels_and_buckets(setting, series, setting.remaining_budget, test)


def nearly_empty(cost_per_cell: float, relative_noise: float) -> bool:
    """Return whether the test shows nearly empty data despite its noise."""
    return cost_per_cell < EASY and CLEAR * relative_noise <= EASY


def fit_levels(setting: DawaSetting, budget: Budget) -> Measurements:
    """Return measurements of block counts at several block widths.

    They cost ``budget``.
    """
    weighted_queries = setting.workload_gram
    halving = HalvingTree(setting.workload_gram.size)
    costs = difference_costs(weighted_queries, halving.left, halving.right)
    widths, weights = first_levels(
        [float(cost.sum()) for cost in costs], total_cost(weighted_queries), setting.noise.norm
    )
    tree = Tree(weighted_queries.size, widths[::-1])
    rounded = np.maximum(1, np.rint(weights[::-1] / weights.max() * 2**20)).astype(np.int64)
    return setting.fit_block(
        Factor(setting.attributes, tree, np.repeat(rounded, tree.level_sizes)), budget
    )


def _measure_levels_and_buckets(
    setting: DawaSetting, series: Series, budget: Budget, test: Mapping[str, float] | None
) -> Outcome:
    """Measure levels of blocks, then buckets chosen from the noisy levels.

    The answers are estimated from the observations of both steps.
    """
    first = series.measure(fit_levels(setting, budget.scaled(FIRST_SHARE)))
    second = budget.scaled(1 - FIRST_SHARE)
    halving, posterior = shrunk_levels(first)
    costs = difference_costs(setting.workload_gram, halving.left, halving.right)
    squares = halving.levels(posterior.means**2 + posterior.variances)
    noise = relative_split_noise(setting, costs) * setting.cell_variance(second)
    starts = cheapest_bucket_starts(squares, costs, noise, halving)
    # The error bars of n answers take n k^2 operations.
    most = max(256, min(_MOST_ADAPTIVE, 2**25 // setting.workload_gram.size))
    while len(starts) > most:
        noise *= 2
        starts = cheapest_bucket_starts(squares, costs, noise, halving)
    buckets = bucket_strategy(setting.attributes, setting.workload_gram, starts, setting.noise.norm)
    observed = series.measure(setting.fit_block(buckets, second))
    finding = NearlyEmptyFinding(buckets=len(starts), starts=array_to_json(starts), test=test)
    return Outcome(
        setting.plan, join_observations([first, observed], setting.plan.privacy), finding
    )


def relative_split_noise(setting: DawaSetting, costs: list[np.ndarray]) -> float:
    """Estimate the relative noise variance of a difference of bucket halves.

    The result is the variance of this noise in the second step, relative to the variance of single
    cells.
    """
    # The data-independent plan has the relative variance v on average. On few buckets it is less: 3
    # (v / 3)^0.6. This is exact for the identity, where v is 3, and gives 18 for all ranges over
    # 4096 cells under Laplace noise.
    total = reference_of(setting.plan).expected_total_squared_error
    average = (
        total
        / setting.cell_variance(setting.plan.privacy.budget)
        / max(float(sum(cost.sum() for cost in costs)), 1e-300)
    )
    return float(3 * max(average / 3, 1.0) ** 0.6)


# --- two attributes -------------------------------------------------------------------------------


def run_plane(setting: DawaSetting, series: Series) -> Outcome:
    """Run DAWA on two attributes: the test, then the adaptive grid if useful."""
    # The number of the first blocks depends only on the test's paid answer and the plan. The same
    # holds for the decision whether their deviations are shrunk. The second round also depends on
    # the noisy counts of the first round.
    plan = setting.plan
    value, test = setting.test_structure(series)
    regime, blocks = plane_regime(
        value,
        1 / setting.laplace_scale,
        math.prod(setting.shape),
        is_narrow=setting.has_narrow_queries,
    )
    if regime == "fixed":
        return Outcome(
            plan,
            join_observations([setting.measure_reference(series)], plan.privacy),
            NoStructureFinding(test=test),
        )
    return _measure_adaptive_grid(
        blocks, float(value / setting.laplace_scale), setting, series, test
    )


def _measure_adaptive_grid(
    blocks: int, cost: float, setting: DawaSetting, series: Series, test: Mapping[str, float]
) -> Outcome:
    """Measure a grid of blocks, then parts chosen from their noisy counts.

    A part is a run of cells in the order of the tree of halves.
    """
    height, width = setting.shape
    tree = block_tree(height, width)
    base = first_level(tree, blocks)
    size = len(tree.order)
    starts = tree.starts[base]
    coarse = Ordered(Coarse(Identity(len(starts)), starts, size), tree.order)
    first = series.measure(
        setting.fit_block(
            Factor(setting.attributes, coarse), setting.remaining_budget.scaled(PLANE_FIRST_SHARE)
        )
    )
    counts = first.values[0].astype(np.int64)
    remaining = setting.remaining_budget.scaled(1 - PLANE_FIRST_SHARE)
    records = Fraction(records_per_part(cost, float(int(counts.sum()) / setting.laplace_scale)))
    rate = charge_of_budget(remaining).epsilon / setting.plan.privacy.distance / records
    (parts, groups), (many, joined) = divide_parts(
        tree, base, counts, rate, is_narrow=setting.has_narrow_queries
    )
    is_unmerged = joined == 1
    low = np.concatenate([parts, groups[is_unmerged]])
    high = (
        np.concatenate([np.append(parts[1:], size), np.append(groups[1:], size)[is_unmerged]]) - 1
    )
    # The weights of all rows on a cell have the same sum, also if the cell lies in a group.
    group = GROUP_SHARE.numerator
    denominator = GROUP_SHARE.denominator
    weights = np.concatenate(
        [
            np.where(many == 1, denominator - group, denominator),
            np.full(int(is_unmerged.sum()), group),
        ]
    )
    fine = Factor(setting.attributes, Ordered(Ranges(size, low, high), tree.order), weights)
    second = series.measure(setting.fit_block(fine, remaining))
    finding = AdaptiveGridFinding(
        blocks=len(starts), buckets=len(parts), shrunk=setting.has_narrow_queries, test=test
    )
    return Outcome(setting.plan, join_observations([first, second], setting.plan.privacy), finding)


class Dawa(Mechanism):
    """The mechanism that adapts to structure in data on one or two attributes."""

    names = STRATEGIES
    findings = (
        NoStructureFinding,
        NoEmptinessFinding,
        NearlyEmptyFinding,
        AdaptiveGridFinding,
    )

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Plan the steps and the budget of each step."""
        return plan_dawa(workload, privacy, search.strategy, search.progress)

    def prepare(self, plan: Plan) -> Run:
        """Check a plan, and return the function that carries it out.

        A budget is refused if its levels need so fine a grid that the buckets would overflow.
        """
        setting = setting_from_plan(plan)
        # Refuses now instead of after the payment for the test.
        rescale_noise(reference_measurements(plan), plan.privacy.within(setting.remaining_budget))
        if len(setting.attributes) == 2:
            return partial(run_plane, setting)
        first = fit_levels(setting, setting.remaining_budget.scaled(FIRST_SHARE))
        if MOST_ROWS * _LARGEST_ENTRY * first.grid >= 2**62:
            advice = f"{plan.strategy} cannot compute exactly with so little noise; 1 is usual."
            raise refuse("the budget", plan.privacy.budget, "one that leaves more noise", advice)
        return partial(run_dawa, setting)
