"""DAWA and its relatives: answers to queries on one attribute that make use of structure in the data, and pay for every look at it.

The default is decision 0010: a private test, then one of four ways to measure. Everything that decides between them was paid for, or is
public. What is done with which share of the budget stands in the plan's details before anything is paid; the budget itself is checked once
more by the series that carries it out.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from leastnoise._accounting import ZCDP, Budget, Noise, Privacy, PureDP
from leastnoise._accuracy import block_variance
from leastnoise._check import InputError, refuse
from leastnoise._estimate import Halving, cheapest_blocks, choice_hides, join, shrunk_levels, tested
from leastnoise._fitting import fit
from leastnoise._kernel import CheapestPartition, LeastCost, SampledPartition, Series
from leastnoise._linop import Identity, Operator, Total, Tree, pack
from leastnoise._observation import Observation
from leastnoise._plan import Block, DataAwarePlan, Factor, Plan
from leastnoise._planner import MOST_BUCKETS, difference_costs, first_levels, on_buckets
from leastnoise._session._choose import candidates, noises
from leastnoise._workload import Workload, from_json

STRATEGIES = ("dawa", "dawa_tree", "dawa_levels", "dawa_printed")
# The default rule; docs/decisions/0010-private-partition.md.
TEST_SHARE = {"pure": Fraction(3, 100), "gaussian": Fraction(1, 100)}
EASIEST, EASY, HARD = 0.01, 0.10, 0.75  # least cost, in units of the noise, per cell
CLEAR = 1.2  # times the noise of the test: no border lies lower
FIRST_SHARE = Fraction(55, 100)
PARTITION_SHARE = Fraction(1, 4)
PRIOR = Fraction(1386294361, 10**9)  # ln 4 a bucket
_MOST_ADAPTIVE = 2048
_REFERENCES = ("identity", "node_tree", "p_identity", "gaussian_optimum")
_REFERENCES_IF_LONG = ("identity", "level_tree")
_MOST_SEARCHED, _MOST_STRUCTURED = 1024, 4096  # cells; p-Identity takes a minute at the last
_STRUCTURED = ("identity", "prefix", "all_ranges")


@dataclass(frozen=True, slots=True)
class Setting:
    """What is public about a data-aware release: read from its plan.

    Args:
        plan: the plan.
        workload: what is asked.
        attribute: the one attribute.
        noise: of what is measured after a look at the data.
    """

    plan: DataAwarePlan
    workload: Workload
    attribute: str
    noise: Noise

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.plan.domain.kind(self.attribute).size

    @property
    def asked(self) -> list[tuple[float, Operator]]:
        """The queries on the attribute, with what a squared error of theirs counts."""
        return [(product.importance, product.operators[0] if product.attributes else Total(self.size)) for product in self.workload]


def plan_dawa(
    workload: Workload,
    privacy: Privacy,
    strategy: str,
    progress: Callable[[str], None] | None = None,
    reference: Plan | None = None,
) -> DataAwarePlan:
    """The public plan of a data-aware release: shares of the budget, and the best data-independent plan as reference and way out.

    Args:
        workload: counts on one attribute.
        privacy: budget, neighbours and unit of everything together.
        strategy: one of ``STRATEGIES``.
        progress: called with the name of every data-independent strategy that has been tried.
        reference: the best data-independent plan with its promise, where it is known.

    Raises:
        InputError: another workload, or an unknown name.

    >>> made = plan_dawa(queries(Domain(age=Integers(0, 63)), age="prefix"), Privacy(PureDP(1)), "dawa")
    >>> made.details["steps"][0]
    {'step': 'test', 'epsilon': '3/100'}
    """
    if strategy not in STRATEGIES:
        raise refuse("strategy", strategy, "one of " + ", ".join(f"'{name}'" for name in STRATEGIES))
    attribute = _the_attribute(workload, strategy)
    if reference is None:
        reference = reference_plan(workload, privacy, progress)
    choice = 0 if strategy == "dawa_levels" else _choice(privacy.budget, strategy)
    rest = privacy.budget.without(choice)
    independent = refit(reference, privacy.within(rest))
    promise = reference.expected_error()
    details = {
        "attribute": attribute,
        "mechanism": noises(privacy)[0].value,
        "steps": _steps(strategy, choice, rest),
        **({"borders": {"easiest": EASIEST, "easy": EASY, "hard": HARD, "clear": CLEAR}} if strategy == "dawa" else {}),
        "reference": {
            "strategy": reference.strategy,
            "mechanism": reference.noise.value,
            "expected_total_squared_error": promise.total_squared_error,
            "lower_bound": promise.lower_bound,
            "rmse": [table.rmse for table in promise.tables],
        },
        "independent": json.loads(independent.to_json()),
    }
    return DataAwarePlan(domain=workload.domain, privacy=privacy, strategy=strategy, questions=tuple(workload.to_json()), details=details)


@lru_cache(maxsize=8)
def reference_plan(workload: Workload, privacy: Privacy, progress: Callable[[str], None] | None) -> Plan:
    """The best data-independent plan that takes seconds, not minutes.

    Args:
        workload: what is asked.
        privacy: the budget to plan for.
        progress: called with the name of every strategy that has been tried.
    """
    size = max(workload.domain.kind(name).size for product in workload for name in product.attributes)
    tried = []
    structured = all(q.kind in _STRUCTURED for product in workload for q in product.query_sets)
    for name in _REFERENCES if size <= (_MOST_STRUCTURED if structured else _MOST_SEARCHED) else _REFERENCES_IF_LONG:
        tried += list(candidates(workload, privacy, name))
        if progress is not None:
            progress(name)
    best = min(tried, key=lambda candidate: candidate.total)
    if best.plan is None:
        raise InputError("No strategy can be used for this workload. " + "; ".join(f"{one.strategy}: {one.reason}" for one in tried))
    return best.plan


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
    """Epsilon of the first private choice: the default's test, or the partition."""
    gaussian = isinstance(budget, ZCDP)
    share = PARTITION_SHARE if strategy != "dawa" else TEST_SHARE["gaussian" if gaussian else "pure"]
    return budget.pure_share(share)


def _steps(strategy: str, choice: Fraction | int, rest: Budget) -> list[dict[str, Any]]:
    """What is done, with exact shares, for people and programs."""
    levels = [
        {"step": "levels", "budget": rest.share(FIRST_SHARE).to_json()},
        {"step": "buckets", "budget": rest.share(1 - FIRST_SHARE).to_json()},
    ]
    if strategy == "dawa_levels":
        return levels
    if strategy != "dawa":
        return [{"step": "partition", "epsilon": str(choice)}, {"step": "buckets", "budget": rest.to_json()}]
    drawn = rest.pure_share(PARTITION_SHARE)
    return [
        {"step": "test", "epsilon": str(choice)},
        {
            "step": "one of",
            "independent": [{"step": "independent", "budget": rest.to_json()}],
            "shrunk": [{"step": "levels", "budget": rest.to_json()}],
            "adaptive": levels,
            "buckets": [{"step": "partition", "epsilon": str(drawn)}, {"step": "buckets", "budget": rest.without(drawn).to_json()}],
        },
    ]


def refit(plan: Plan, privacy: Privacy) -> Plan:
    """The same queries within another budget, without a promise."""
    blocks = [(block, 1 / float(block.scale)) for block in plan.blocks]
    return fit(plan.domain, privacy, plan.noise, blocks, plan.strategy, questions=plan.questions)


def setting_of(plan: DataAwarePlan) -> Setting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote.

    Raises:
        InputError: its strategy, questions or details are not those of one of ``STRATEGIES``.
    """
    if plan.strategy not in STRATEGIES:
        raise refuse("the strategy of a data-aware plan", plan.strategy, "one of " + ", ".join(STRATEGIES))
    try:
        workload = from_json(plan.domain, plan.questions)
        found = Setting(plan, workload, _the_attribute(workload, plan.strategy), Noise(plan.details["mechanism"]))
        independent(plan)
        steps = json.dumps(plan.details["steps"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"The data-aware plan cannot be read: {str(error).rstrip('.')}. Make the plan again; nothing was spent.") from None
    if (steps, found.noise) != (json.dumps(plan_steps(plan.privacy.budget, plan.strategy)), noises(plan.privacy)[0]):
        raise InputError("The steps of the plan are not those that this version carries out. Make the plan again; nothing was spent.")
    return found


def plan_steps(budget: Budget, strategy: str) -> list[dict[str, Any]]:
    """The steps of a strategy within a budget, as a plan's details have them.

    >>> [step["step"] for step in plan_steps(PureDP(1), "dawa_tree")]
    ['partition', 'buckets']
    """
    choice = 0 if strategy == "dawa_levels" else _choice(budget, strategy)
    return _steps(strategy, choice, budget.without(choice))


def independent(plan: DataAwarePlan) -> Plan:
    """The data-independent plan within what the first choice leaves."""
    return Plan.from_json(json.dumps(plan.details["independent"]))


def carry_out(setting: Setting, series: Series) -> Observation:
    """Run the steps of the mechanism; together they spend at most what the series was paid.

    Args:
        setting: from ``setting_of``.
        series: paid, or simulated.

    Returns:
        All measurements side by side, with the workload as questions and the public outcome of the choices as details.
    """
    strategy, budget = setting.plan.strategy, setting.plan.privacy.budget
    if strategy == "dawa":
        observed, facts = _default(setting, series)
    elif strategy == "dawa_levels":
        observed, facts = _adaptive(setting, series, budget)
    else:
        epsilon = _choice(budget, strategy)
        observed, facts = _on_partition(setting, series, budget, epsilon, printed=strategy == "dawa_printed")
    return join(
        observed,
        setting.plan.privacy,
        strategy=strategy,
        questions=setting.plan.questions,
        details={"data_aware": {**facts, "attribute": setting.attribute, "steps": setting.plan.details["steps"]}},
    )


Outcome = tuple[list[Observation], dict[str, Any]]


def _default(setting: Setting, series: Series) -> Outcome:
    """Decision 0010: the structure decides between four ways to measure."""
    budget = setting.plan.privacy.budget
    epsilon, unit = _choice(budget, "dawa"), noise_unit(setting)
    value = series.choose(LeastCost(attributes=(setting.attribute,), epsilon=epsilon, penalty=unit))
    per_cell = float(value / unit) / setting.size
    blur = float(1 / epsilon / unit) * setting.plan.privacy.distance / setting.size
    observed, facts = measured_as(regime_of(per_cell, blur), setting, series, budget.without(epsilon))
    if facts["regime"] == "buckets":
        beside = max(float(value) - facts["buckets"] * float(unit), 0.0) + blur * float(unit) * setting.size
        facts["hidden"] = tested(facts["hidden"], beside, float(unit))
    return observed, {**facts, "test": {"value": float(value), "unit": float(unit), "per_cell": per_cell, "blur": blur}}


def regime_of(per_cell: float, blur: float) -> str:
    """The way to measure.

    Args:
        per_cell: the noisy least cost of a partition in units of the noise, per cell.
        blur: scale of the noise in it. A border that is not well above it is not used: on few cells the test cannot tell.

    >>> [regime_of(share, 0.005) for share in (0.001, 0.05, 0.5, 2.0)], regime_of(0.001, 0.05), regime_of(0.001, 0.9)
    (['buckets', 'adaptive', 'shrunk', 'independent'], 'adaptive', 'independent')
    """
    if per_cell >= HARD or CLEAR * blur > HARD:
        return "independent"
    if per_cell < EASIEST and CLEAR * blur <= EASIEST:
        return "buckets"
    return "adaptive" if per_cell < EASY and CLEAR * blur <= EASY else "shrunk"


def measured_as(regime: str, setting: Setting, series: Series, budget: Budget) -> Outcome:
    """Measure in one of the four ways, with a budget.

    Args:
        regime: independent, shrunk, adaptive or buckets.
        setting: what is public.
        series: that pays.
        budget: for everything.

    Returns:
        The observations, and what is public of the outcome.
    """
    if regime == "buckets":
        return _on_partition(setting, series, budget, budget.pure_share(PARTITION_SHARE), printed=False)
    if regime == "adaptive":
        return _adaptive(setting, series, budget)
    plan = levels_plan(setting, budget) if regime == "shrunk" else refit(independent(setting.plan), setting.plan.privacy.within(budget))
    return [series.measure(plan)], {"regime": regime}


def noise_unit(setting: Setting) -> Fraction:
    """1 / epsilon of the whole budget for the neighbours' distance; for Gaussian noise what gives Laplace noise its standard deviation."""
    privacy = setting.plan.privacy
    if isinstance(privacy.budget, PureDP):
        return privacy.distance / privacy.budget.epsilon
    return Fraction(math.sqrt(_unit_variance(setting, privacy.budget) / 2)).limit_denominator(10**6)


def _unit_variance(setting: Setting, budget: Budget) -> float:
    """Noise variance of the cells, queries whose columns have norm 1."""
    cells = Block((Factor((setting.attribute,), Identity(setting.size)),), Fraction(1))
    plan = fit(setting.plan.domain, setting.plan.privacy.within(budget), setting.noise, [(cells, 1.0)], "cells")
    return block_variance(plan, plan.blocks[0])


def levels_plan(setting: Setting, budget: Budget) -> Plan:
    """Levels of blocks, for the workload."""
    halving = Halving(setting.size)
    costs = difference_costs(setting.asked, halving.left, halving.right, setting.size)
    widths, weights = first_levels([float(one.sum()) for one in costs], setting.noise.norm)
    tree = Tree(setting.size, widths[::-1])
    whole = np.maximum(1, np.rint(weights[::-1] / weights.max() * 2**20)).astype(np.int64)
    factor = Factor((setting.attribute,), tree, np.repeat(whole, tree.level_sizes))
    return fit(setting.plan.domain, setting.plan.privacy.within(budget), setting.noise, [(Block((factor,), Fraction(1)), 1.0)], "levels")


def _adaptive(setting: Setting, series: Series, budget: Budget) -> Outcome:
    """Levels, a partition from their posterior, and its buckets; nothing paid for is thrown away."""
    first = series.measure(levels_plan(setting, budget.share(FIRST_SHARE)))
    second = budget.share(1 - FIRST_SHARE)
    halving, _, _, posterior = shrunk_levels(first, first.plan.blocks[0], first.values[0])
    costs = difference_costs(setting.asked, halving.left, halving.right, setting.size)
    squares = [mean[0] ** 2 + variance[0] for mean, variance in zip(posterior.means, posterior.variances, strict=True)]
    noise = split_noise(setting, costs) * _unit_variance(setting, second)
    starts = cheapest_blocks(squares, costs, noise, halving)
    most = max(256, min(_MOST_ADAPTIVE, 2**25 // setting.size))  # the error bars of n answers cost n k^2
    while len(starts) > most:
        noise *= 2
        starts = cheapest_blocks(squares, costs, noise, halving)
    plan = buckets_plan(setting, starts, second)
    return [first, series.measure(plan)], {"regime": "adaptive", "buckets": len(starts), "starts": pack(starts)}


def split_noise(setting: Setting, costs: list[np.ndarray]) -> float:
    """Noise variance of a difference that the second step measures, for a query of sensitivity 1.

    The data-independent plan has it at ``v`` on average. On few buckets it is less: 3 (v / 3)^0.6, which is exact for identity, where v
    is 3, and 18 for all ranges over 4096 cells under Laplace noise, as decision 0010 has it.
    """
    total = setting.plan.details["reference"]["expected_total_squared_error"]
    average = total / _unit_variance(setting, setting.plan.privacy.budget) / max(float(sum(one.sum() for one in costs)), 1e-300)
    return 3 * max(average / 3, 1.0) ** 0.6


def buckets_plan(setting: Setting, starts: np.ndarray, budget: Budget) -> Plan:
    """The best plan on buckets."""
    factor = on_buckets(setting.attribute, setting.asked, starts, setting.size, setting.noise.norm)
    return fit(setting.plan.domain, setting.plan.privacy.within(budget), setting.noise, [(Block((factor,), Fraction(1)), 1.0)], "buckets")


def _on_partition(setting: Setting, series: Series, budget: Budget, epsilon: Fraction, *, printed: bool) -> Outcome:
    """A private partition, and its buckets; without it where it has too many."""
    rest = budget.without(epsilon)
    names = (setting.attribute,)
    if printed:
        unit = Fraction(math.sqrt(_unit_variance(setting, rest) / 2)).limit_denominator(10**6)
        found = series.choose(CheapestPartition(attributes=names, epsilon=epsilon, penalty=unit))
    else:
        found = series.choose(SampledPartition(attributes=names, epsilon=epsilon, prior=PRIOR))
    if len(found.starts) > MOST_BUCKETS:
        return [series.measure(refit(independent(setting.plan), setting.plan.privacy.within(rest)))], {"regime": "independent"}
    observed = series.measure(buckets_plan(setting, found.starts, rest))
    hidden = choice_hides(float(epsilon), setting.plan.privacy.distance, setting.size, float(PRIOR))
    facts = {"regime": "buckets", "bounded": not printed, "buckets": len(found.starts), "starts": pack(found.starts), "hidden": hidden}
    return [observed], facts
