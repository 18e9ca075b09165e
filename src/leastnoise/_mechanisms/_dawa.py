"""DAWA and its relatives: answers to queries on one or two attributes that use structure in the data, and pay for every look at it.

The default is docs/decisions/dawa.md: a private test, then one of two ways to measure: on one attribute the levels or a plan that does not
look, on two that plan or an adaptive grid. Everything that decides between them was paid for, or is public. What is done with which share
of the budget stands in the plan's details before anything is paid; whatever is measured is a plan of the series, so that the kernel
computes its cost from its integers and checks the budget once more.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from leastnoise._accounting import ZCDP, Budget, Noise, Privacy, PureDP
from leastnoise._accuracy import block_variance
from leastnoise._check import InputError, refuse
from leastnoise._domain import Domain
from leastnoise._estimate import (
    Estimator,
    Expanded,
    Finding,
    Grid,
    Halving,
    Hidden,
    Outcome,
    Posterior,
    Said,
    Smoothed,
    can_be_smoothed,
    cheapest_blocks,
    join,
    shrunk_levels,
)
from leastnoise._fitting import fit, pure_share, rescaled
from leastnoise._kernel import LeastCost, Series
from leastnoise._linop import Coarse, Identity, Operator, Ordered, Ranges, Total, Tree, block_tree, pack
from leastnoise._measurements import MOST_ROWS, Block, Factor, Measurements, Observation
from leastnoise._mechanisms._choose import Progress, Search, noises
from leastnoise._mechanisms._protocol import (
    Looked,
    Mechanism,
    Reference,
    Run,
    Unused,
    fallback,
    read_finding,
    reference_plan,
    require_details,
    within,
)
from leastnoise._plan import Plan
from leastnoise._planner import (
    GROUP_SHARE,
    PLANE_FIRST_SHARE,
    PLANE_TEST_SHARE,
    difference_costs,
    divided,
    first_level,
    first_levels,
    on_buckets,
    plane_regime,
    records_a_part,
    single_cells,
    total_cost,
)
from leastnoise._workload import Workload

STRATEGIES = ("dawa", "dawa_levels")
EARLIER = "dawa_tree"  # buckets drawn privately: its releases are read, and none is made
# The default rule; docs/decisions/dawa.md.
TEST_SHARE = {"pure": Fraction(3, 100), "gaussian": Fraction(1, 100)}
EASY = 0.10  # least cost, in units of the noise, per cell
CLEAR = 1.2  # times the noise of the test: the border does not lie lower
FIRST_SHARE = Fraction(55, 100)
_MOST_ADAPTIVE = 2048
_LARGEST_ENTRY = 2**20 - 1  # of queries on buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Smooth(Looked):
    """Not nearly empty, as far as the test could tell: the plan that does not look, shrunk as far as its own noisy answers tell."""

    regime = "smoothed"
    interval = "interval_smoothed"
    reading = "aware_reading_smoothed"
    hides = "aware_moved"

    def estimator(self, observation: Observation) -> Estimator:
        """The posterior, with the intervals of least squares."""
        return Smoothed.of(observation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive(Looked):
    """Much structure: levels, then buckets that they suggested."""

    regime = "adaptive"
    further = False  # the second step's queries were chosen by the first one's noise

    buckets: int
    starts: Any

    def estimator(self, observation: Observation) -> Estimator:
        """The posterior given both steps."""
        return Posterior.of(observation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets(Looked):
    """A private partition, in releases of earlier versions."""

    regime = "buckets"

    buckets: int
    hidden: Hidden | None = None
    starts: Any = None

    def not_covered(self, domain: Domain) -> list[Said]:
        """Whatever the buckets hide, where nothing tells it."""
        return [("aware_unknown", {})] if self.hidden is None else Looked.not_covered(self, domain)

    def estimator(self, observation: Observation) -> Estimator:
        """Uniform expansion."""
        return Expanded.of(observation, self.hidden)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is public about a data-aware release: read from its plan."""

    plan: Plan
    attribute: str
    noise: Noise

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.plan.domain.kind(self.attribute).size

    @property
    def privacy(self) -> Privacy:
        """Of the plan."""
        return self.plan.privacy

    @property
    def asked(self) -> list[tuple[float, Operator]]:
        """The queries on the attribute, with what a squared error of theirs counts."""
        return [(product.importance, product.operators[0] if product.attributes else Total(self.size)) for product in self.plan.workload]


def plan_dawa(workload: Workload, privacy: Privacy, strategy: str, progress: Progress = None, reference: Plan | None = None) -> Plan:
    """The public plan of a data-aware release: shares of the budget, and the best data-independent plan as reference and way out."""
    if strategy not in STRATEGIES:
        raise refuse("strategy", strategy, "one of " + ", ".join(f"'{name}'" for name in STRATEGIES))
    attribute = _the_attribute(workload, strategy)
    if reference is None:
        reference = reference_plan(workload, privacy, progress)
    rest = privacy.budget.without(_choice(privacy.budget, strategy))
    details = {
        "attribute": attribute,
        "mechanism": noises(privacy)[0].value,
        "steps": plan_steps(privacy.budget, strategy),
        **({"borders": {"easy": EASY, "clear": CLEAR}} if strategy == "dawa" else {}),
        "reference": Reference.of(reference).facts(),
    }
    return Plan(workload=workload, privacy=privacy, strategy=strategy, details=details, fallback=within(reference, privacy.within(rest)))


def _the_attribute(workload: Workload, strategy: str) -> str:
    """The attribute that all queries are on; two attributes have mechanisms of their own."""
    if workload.measures != (None,):
        raise InputError(f"{strategy} answers counts; this workload asks for sums. Choose strategy = 'auto'.")
    names = {name for product in workload for name in product.attributes}
    if len(names) != 1:
        got = " and ".join(name for name in workload.domain.names if name in names) or "none"
        raise InputError(
            f"{strategy} answers queries on one attribute{' or two' * (strategy == 'dawa')}; this workload asks about {got}. "
            "Choose strategy = 'auto', or make one release for each attribute."
        )
    return names.pop()


def _choice(budget: Budget, strategy: str) -> Fraction:
    """Epsilon of the default's test; 0 for levels, before which nothing is chosen."""
    if strategy == "dawa_levels":
        return Fraction(0)
    return pure_share(budget, TEST_SHARE["gaussian" if isinstance(budget, ZCDP) else "pure"])


def setting_of(plan: Plan) -> Setting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote."""
    setting = Setting(plan, _the_attribute(plan.workload, plan.strategy), noises(plan.privacy)[0])
    steps = plan_steps(plan.privacy.budget, plan.strategy) if plan.strategy in STRATEGIES else []
    require_details(plan, lambda: {"steps": steps, "mechanism": setting.noise.value})
    return setting


def _check_grid(setting: Setting) -> None:
    """Refuse budgets under which levels need so fine a grid that buckets, measured after them, could not be kept on it."""
    strategy, budget = setting.plan.strategy, setting.privacy.budget
    first = levels(setting, budget.without(_choice(budget, strategy)).share(FIRST_SHARE))
    if MOST_ROWS * _LARGEST_ENTRY * first.grid >= 2**62:
        raise refuse("the budget", budget, "one that leaves more noise", f"{strategy} has no exact arithmetic for so little; 1 is usual.")


def plan_steps(budget: Budget, strategy: str) -> list[dict[str, Any]]:
    """The steps of a strategy within a budget, as a plan's details have them."""
    choice = _choice(budget, strategy)
    rest = budget.without(choice)
    levels = [
        {"step": "levels", "budget": rest.share(FIRST_SHARE).to_json()},
        {"step": "buckets", "budget": rest.share(1 - FIRST_SHARE).to_json()},
    ]
    if strategy == "dawa_levels":
        return levels
    return [
        {"step": "test", "epsilon": str(choice)},
        {
            "step": "one of",
            "independent": [{"step": "independent", "budget": rest.to_json()}],
            "adaptive": levels,
        },
    ]


def carry_out(setting: Setting, series: Series) -> Outcome:
    """Measure, with private choices on the way."""
    observed, finding = _BY_NAME[setting.plan.strategy](setting, series, setting.privacy.budget)
    return Outcome(setting.plan, join(observed, setting.privacy), finding)


Measured = tuple[list[Observation], Looked]
Way = Callable[[Setting, Series, Budget], Measured]
"""Measures within a budget: the observations, and what was found."""


def _default(setting: Setting, series: Series, budget: Budget) -> Measured:
    """Levels and buckets where the data are nearly empty, else the plan that does not look."""
    epsilon, unit = _choice(budget, "dawa"), noise_unit(setting)
    value = series.choose(LeastCost(attributes=(setting.attribute,), epsilon=epsilon, penalty=unit))
    per_cell = float(value / unit) / setting.size
    blur = float(1 / epsilon / unit) * setting.privacy.distance / setting.size
    observed, finding = (_adaptive if nearly_empty(per_cell, blur) else _independent)(setting, series, budget.without(epsilon))
    return observed, replace(finding, test={"value": float(value), "unit": float(unit), "per_cell": per_cell, "blur": blur})


def nearly_empty(per_cell: float, blur: float) -> bool:
    """Whether levels and buckets are measured."""
    return per_cell < EASY and CLEAR * blur <= EASY


def _independent(setting: Setting, series: Series, budget: Budget) -> Measured:
    """What does not look at the data, shrunk afterwards; as it is where it does not tell the cells."""
    observed = series.measure(rescaled(fallback(setting.plan), setting.privacy.within(budget)))
    return [observed], Smooth() if can_be_smoothed(observed.measurements) else Unused()


def noise_unit(setting: Setting) -> Fraction:
    """1 / epsilon of the whole budget for the neighbours' distance; for Gaussian noise what gives Laplace noise its standard deviation."""
    privacy = setting.privacy
    if isinstance(privacy.budget, PureDP):
        return privacy.distance / privacy.budget.epsilon
    return Fraction(math.sqrt(_unit_variance(setting, privacy.budget) / 2)).limit_denominator(10**6)


def _unit_variance(setting: Setting, budget: Budget) -> float:
    """Noise variance of the cells, queries whose columns have norm 1."""
    cells = Block((Factor((setting.attribute,), Identity(setting.size)),), Fraction(1))
    plan = fit(setting.plan.domain, setting.privacy.within(budget), setting.noise, [(cells, 1.0)])
    return block_variance(plan, plan.blocks[0])


def levels(setting: Setting, budget: Budget) -> Measurements:
    """Levels of blocks, for the workload."""
    halving = Halving(setting.size)
    costs = difference_costs(setting.asked, halving.left, halving.right, setting.size)
    widths, weights = first_levels([float(cost.sum()) for cost in costs], total_cost(setting.asked, setting.size), setting.noise.norm)
    tree = Tree(setting.size, widths[::-1])
    whole = np.maximum(1, np.rint(weights[::-1] / weights.max() * 2**20)).astype(np.int64)
    factor = Factor((setting.attribute,), tree, np.repeat(whole, tree.level_sizes))
    return fit(setting.plan.domain, setting.privacy.within(budget), setting.noise, [(Block((factor,), Fraction(1)), 1.0)])


def _adaptive(setting: Setting, series: Series, budget: Budget) -> Measured:
    """Levels, a partition from their posterior, and its buckets; nothing paid for is thrown away."""
    first = series.measure(levels(setting, budget.share(FIRST_SHARE)))
    second = budget.share(1 - FIRST_SHARE)
    halving, posterior = shrunk_levels(first)
    costs = difference_costs(setting.asked, halving.left, halving.right, setting.size)
    squares = halving.levels(posterior.means**2 + posterior.variances)
    noise = split_noise(setting, costs) * _unit_variance(setting, second)
    starts = cheapest_blocks(squares, costs, noise, halving)
    most = max(256, min(_MOST_ADAPTIVE, 2**25 // setting.size))  # the error bars of n answers cost n k^2
    while len(starts) > most:
        noise *= 2
        starts = cheapest_blocks(squares, costs, noise, halving)
    observed = series.measure(on_starts(setting, starts, second))
    return [first, observed], Adaptive(buckets=len(starts), starts=pack(starts))


def split_noise(setting: Setting, costs: list[np.ndarray]) -> float:
    """Noise variance of a difference that the second step measures, for a query of sensitivity 1."""
    # The data-independent plan has it at ``v`` on average. On few buckets it is less: 3 (v / 3)^0.6, which is exact for identity, where v
    # is 3, and 18 for all ranges over 4096 cells under Laplace noise.
    total = float(setting.plan.details["reference"]["expected_total_squared_error"])
    average = total / _unit_variance(setting, setting.privacy.budget) / max(float(sum(cost.sum() for cost in costs)), 1e-300)
    return float(3 * max(average / 3, 1.0) ** 0.6)


def on_starts(setting: Setting, starts: np.ndarray, budget: Budget) -> Measurements:
    """The best plan on buckets."""
    factor = on_buckets(setting.attribute, setting.asked, starts, setting.size, setting.noise.norm)
    return fit(setting.plan.domain, setting.privacy.within(budget), setting.noise, [(Block((factor,), Fraction(1)), 1.0)])


_BY_NAME: Mapping[str, Way] = {"dawa": _default, "dawa_levels": _adaptive}


class Dawa(Mechanism):
    """The mechanisms on one attribute."""

    names = STRATEGIES

    def takes(self, strategy: str, workload: Workload) -> bool:  # noqa: ARG002 - refused with a reason
        """By name."""
        return strategy in {*STRATEGIES, EARLIER}

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """See `plan_dawa`."""
        return plan_dawa(workload, privacy, search.strategy, search.tell)

    def ready(self, plan: Plan) -> Run:
        """See `setting_of` and `carry_out`."""
        setting = setting_of(plan)
        _check_grid(setting)
        return partial(carry_out, setting)

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """One of four ways to measure and estimate; levels alone, of earlier releases, are measurements as any others."""
        regime = {"shrunk": Smooth.regime, "sloped": Smooth.regime}.get(facts["regime"], facts["regime"])
        return read_finding((Unused, Smooth, Adaptive, Buckets), {**facts, "regime": regime})


STRATEGY = "dawa"
# Sizes that are refused beforehand, as nothing may fail or take hours when all is paid.
MOST_SIDE, MOST_CELLS, MOST_QUERIES, _MOST_ENTRIES, _MOST_PAIRS = 2**12, 2**20, 2**20, 2**24, 2**33


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveGrid(Looked):
    """Some structure: blocks, then parts and groups of parts as their noisy counts deserve."""

    regime = "blocks"
    further = False  # the second round's queries were chosen by the first one's noise

    blocks: int
    buckets: int
    shrunk: bool = False

    def estimator(self, observation: Observation) -> Estimator:
        """Least squares on all rounds, spread evenly, and shrunk where queries are of few cells."""
        return Grid.of(observation, shrunk=self.shrunk)


@dataclass(frozen=True, slots=True)
class PlaneSetting:
    """What is public about a release on two attributes: read from its plan."""

    plan: Plan
    attributes: tuple[str, str]
    epsilon: Fraction

    @property
    def shape(self) -> tuple[int, int]:
        """Cells of the first attribute, and of the second."""
        height, width = (self.plan.domain.kind(name).size for name in self.attributes)
        return height, width

    @property
    def unit(self) -> Fraction:
        """The noise of the whole budget, in records."""
        return self.plan.privacy.distance / self.epsilon

    @property
    def asked(self) -> list[tuple[float, tuple[Operator, Operator]]]:
        """The queries along both attributes, with what a squared error of theirs counts."""
        queries = []
        for product in self.plan.workload:
            known = dict(zip(product.attributes, product.operators, strict=True))
            first, second = (known.get(name, Total(size)) for name, size in zip(self.attributes, self.shape, strict=True))
            queries.append((product.importance, (first, second)))
        return queries

    @property
    def narrow(self) -> bool:
        """Whether no query is of many cells."""
        return single_cells(self.asked)

    def privacy(self, epsilon: Fraction) -> Privacy:
        """The plan's unit with a part of its budget."""
        return self.plan.privacy.within(PureDP(epsilon))

    def fitted(self, factor: Factor, epsilon: Fraction) -> Measurements:
        """One block within a part of the budget."""
        return fit(self.plan.domain, self.privacy(epsilon), Noise.DISCRETE_LAPLACE, [(Block((factor,), Fraction(1)), 1.0)])


def on_two(workload: Workload) -> bool:
    """Whether all queries together are on exactly two attributes."""
    return len({name for product in workload for name in product.attributes}) == 2


def plan_plane(workload: Workload, privacy: Privacy, progress: Progress = None, reference: Plan | None = None) -> Plan:
    """The public plan of a data-aware release on two attributes: shares of the budget, and the plan that does not look."""
    names, epsilon = _checked(workload, privacy, STRATEGY)
    if reference is None:
        reference = reference_plan(workload, privacy, progress)
    details = {
        "attributes": list(names),
        "mechanism": "discrete_laplace",
        "steps": plane_steps(epsilon),
        "reference": Reference.of(reference).facts(),
    }
    rest = privacy.within(PureDP(epsilon * (1 - PLANE_TEST_SHARE)))
    return Plan(workload=workload, privacy=privacy, strategy=STRATEGY, details=details, fallback=within(reference, rest))


def _checked(workload: Workload, privacy: Privacy, strategy: str) -> tuple[tuple[str, str], Fraction]:
    """The two attributes and epsilon, if everything can be carried out."""
    if workload.measures != (None,):
        raise InputError(f"{strategy} answers counts; this workload asks for sums. Choose strategy = 'auto'.")
    if strategy != STRATEGY:
        raise InputError(f"{strategy} answers queries on one attribute; this workload asks about two. Choose strategy = '{STRATEGY}'.")
    if not isinstance(privacy.budget, PureDP):
        raise InputError(
            f"{strategy} on two attributes needs a budget of epsilon alone (pure differential privacy); got {privacy.budget!r}. "
            "Give epsilon without delta and rho, or choose strategy = 'auto'."
        )
    attributes = {name for product in workload for name in product.attributes}
    first, second = (name for name in workload.domain.names if name in attributes)
    sizes = [workload.domain.kind(name).size for name in (first, second)]
    if not (max(sizes) <= MOST_SIDE and math.prod(sizes) <= MOST_CELLS):
        raise InputError(
            f"{strategy} on two attributes takes at most {MOST_SIDE} cells of each and {MOST_CELLS} of both together; got "
            f"{sizes[0]} x {sizes[1]}. Use coarser attributes, or choose strategy = 'auto'."
        )
    for product in workload:
        entries = max((operator.rows * operator.size for operator in product.operators), default=1)
        most = min(MOST_QUERIES, _MOST_PAIRS // math.prod(sizes))
        if not (product.rows <= most and entries <= _MOST_ENTRIES):
            raise InputError(
                f"{strategy} on two attributes answers at most {most} queries a table of {math.prod(sizes)} cells, each with its own error "
                f"bar, and at most {_MOST_ENTRIES} entries (queries times cells) along an attribute; got {product.rows} queries in "
                f"{product.name}, and {entries} entries. Ask for fewer queries, or choose strategy = 'auto'."
            )
    return (first, second), privacy.budget.epsilon


def plane_steps(epsilon: Fraction) -> list[dict[str, Any]]:
    """What is done, with exact shares, for people and programs."""
    rest = epsilon * (1 - PLANE_TEST_SHARE)

    def of(share: Fraction) -> dict[str, Any]:
        return PureDP(rest * share).to_json()

    return [
        {"step": "test", "epsilon": str(epsilon - rest)},
        {
            "step": "one of",
            "independent": [{"step": "independent", "budget": of(Fraction(1))}],
            "blocks": [{"step": "blocks", "budget": of(PLANE_FIRST_SHARE)}, {"step": "parts", "budget": of(1 - PLANE_FIRST_SHARE)}],
        },
    ]


def plane_setting(plan: Plan) -> PlaneSetting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote."""
    names, epsilon = _checked(plan.workload, plan.privacy, plan.strategy)
    setting = PlaneSetting(plan, names, epsilon)
    require_details(plan, lambda: {"steps": plane_steps(epsilon), "attributes": names})
    rescaled(fallback(plan), setting.privacy(epsilon * (1 - PLANE_TEST_SHARE)))
    return setting


def carry_out_plane(setting: PlaneSetting, series: Series) -> Outcome:
    """Measure: the structure of the data decides between two ways."""
    # How many first blocks there are, and whether their deviations are shrunk, is a function of the test's answer, which is paid for, and
    # of the plan; what the second round measures is one of the first round's noisy counts besides.
    epsilon = setting.epsilon * PLANE_TEST_SHARE
    value = series.choose(LeastCost(attributes=setting.attributes, epsilon=epsilon, penalty=setting.unit))
    cells = math.prod(setting.shape)
    way, blocks = plane_regime(value, 1 / setting.unit, cells, narrow=setting.narrow)
    cost, rest = float(value / setting.unit), setting.epsilon - epsilon
    observed: list[Observation]
    finding: Looked
    if way == "fixed":
        observed, finding = [series.measure(rescaled(fallback(setting.plan), setting.privacy(rest)))], Unused()
    else:
        observed, finding = _adaptive_grid(blocks, cost, setting, series, rest)
    test = {"value": float(value), "unit": float(setting.unit), "per_cell": cost / cells}
    return Outcome(setting.plan, join(observed, setting.plan.privacy), replace(finding, test=test))


def _adaptive_grid(blocks: int, cost: float, setting: PlaneSetting, series: Series, epsilon: Fraction) -> Measured:
    """Blocks, then the parts and groups of parts that their noisy counts deserve: runs of the order of the tree of halves."""
    tree = block_tree(*setting.shape)
    base, size = first_level(tree, blocks), len(tree.order)
    starts = tree.starts[base]
    coarse = Ordered(Coarse(Identity(len(starts)), starts, size), tree.order)
    first = series.measure(setting.fitted(Factor(setting.attributes, coarse), epsilon * PLANE_FIRST_SHARE))
    counts, rest = first.values[0].astype(np.int64), epsilon * (1 - PLANE_FIRST_SHARE)
    records = Fraction(records_a_part(cost, float(int(counts.sum()) / setting.unit)))
    rate = rest / setting.plan.privacy.distance / records
    (parts, groups), (many, joined) = divided(tree, base, counts, rate, narrow=setting.narrow)
    kept = joined == 1
    low = np.concatenate([parts, groups[kept]])
    high = np.concatenate([np.append(parts[1:], size), np.append(groups[1:], size)[kept]]) - 1
    # A cell's weights add up to the same whether it lies in a group or not.
    group, whole = GROUP_SHARE.numerator, GROUP_SHARE.denominator
    weights = np.concatenate([np.where(many == 1, whole - group, whole), np.full(int(kept.sum()), group)])
    fine = Factor(setting.attributes, Ordered(Ranges(size, low, high), tree.order), weights)
    second = series.measure(setting.fitted(fine, rest))
    return [first, second], AdaptiveGrid(blocks=len(starts), buckets=len(parts), shrunk=setting.narrow)


class DawaPlane(Mechanism):
    """The mechanisms on two attributes."""

    names = (STRATEGY,)

    def takes(self, strategy: str, workload: Workload) -> bool:
        """By name, for workloads on two attributes."""
        return strategy in STRATEGIES and on_two(workload)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """See `plan_plane`."""
        _checked(workload, privacy, search.strategy)
        return plan_plane(workload, privacy, search.tell)

    def ready(self, plan: Plan) -> Run:
        """See `plane_setting` and `carry_out_plane`."""
        return partial(carry_out_plane, plane_setting(plan))

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """One of two ways to measure."""
        return read_finding((Unused, AdaptiveGrid), facts)
