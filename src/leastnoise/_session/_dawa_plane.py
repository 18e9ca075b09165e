"""DAWA on two attributes: answers to products of queries that make use of structure in their table, and pay for every look at it.

The default is decision 0011: a private test, then a plan that does not look, an adaptive grid, or a private partition into rectangles.
Whatever is measured is a plan of the series, so that the kernel computes its cost from its integers.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._check import InputError
from leastnoise._estimate import choice_hides, join, tested
from leastnoise._fitting import fit
from leastnoise._kernel import LeastBlockCost, RectanglePartition, SampledRectangles, Series
from leastnoise._linop import Coarse, Identity, Operator, Ordered, Ranges, Total, block_tree
from leastnoise._observation import Observation
from leastnoise._plan import Block, DataAwarePlan, Factor, Plan
from leastnoise._planner import FIRST_SHARE, GROUP_SHARE, RECORDS, TEST_SHARE, divided, first_level, on_rectangles, plane_regime
from leastnoise._session._dawa import PARTITION_SHARE, independent, reference_plan, refit
from leastnoise._workload import Workload, from_json

STRATEGY = "dawa"
# Sizes that are refused beforehand, as nothing may fail or take hours when all is paid.
MOST_SIDE, MOST_CELLS, MOST_QUERIES, _MOST_ENTRIES, _MOST_PAIRS = 2**12, 2**20, 2**20, 2**24, 2**33
MOST_RECTANGLES = 2**11
_PRIOR = 1.5 * 0.75  # of a quadtree's draw: three buckets more for two halvings


@dataclass(frozen=True, slots=True)
class PlaneSetting:
    """What is public about a release on two attributes: read from its plan.

    Args:
        plan: the plan.
        workload: what is asked.
        attributes: the two, in the order of the domain.
        epsilon: of everything.
    """

    plan: DataAwarePlan
    workload: Workload
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
        found = []
        for product in self.workload:
            known = dict(zip(product.attributes, product.operators, strict=True))
            first, second = (known.get(name, Total(size)) for name, size in zip(self.attributes, self.shape, strict=True))
            found.append((product.importance, (first, second)))
        return found

    def privacy(self, epsilon: Fraction) -> Privacy:
        """The plan's unit with a part of its budget."""
        return self.plan.privacy.within(PureDP(epsilon))

    def fitted(self, factor: Factor, epsilon: Fraction, name: str) -> Plan:
        """A plan of one block within a part of the budget."""
        return fit(self.plan.domain, self.privacy(epsilon), Noise.DISCRETE_LAPLACE, [(Block((factor,), Fraction(1)), 1.0)], name)


def on_two(workload: Workload) -> bool:
    """Whether all queries together are on exactly two attributes.

    >>> on_two(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1)), on_two(marginals(Domain(a=["x", "y"]), ways=1))
    (True, False)
    """
    return len({name for product in workload for name in product.attributes}) == 2


def plan_plane(
    workload: Workload,
    privacy: Privacy,
    strategy: str = STRATEGY,
    progress: Callable[[str], None] | None = None,
    reference: Plan | None = None,
) -> DataAwarePlan:
    """The public plan of a data-aware release on two attributes: shares of the budget, and the plan that does not look.

    Args:
        workload: counts on two attributes.
        privacy: budget, neighbours and unit of everything together.
        strategy: "dawa".
        progress: called with the name of every data-independent strategy that has been tried.
        reference: the best data-independent plan with its promise, where it is known.

    Raises:
        InputError: another workload, a budget that is not pure, or sizes beyond the limits.

    >>> made = plan_plane(queries(Domain(a=Integers(0, 7), b=Integers(0, 7)), a="prefix", b="prefix"), Privacy(PureDP(1)))
    >>> made.details["steps"][0]
    {'step': 'test', 'epsilon': '1/25'}
    """
    names, epsilon = _checked(workload, privacy, strategy)
    if reference is None:
        reference = reference_plan(workload, privacy, progress)
    rest = epsilon * (1 - TEST_SHARE)
    independent = refit(reference, privacy.within(PureDP(rest)))
    promise = reference.expected_error()
    details = {
        "attributes": list(names),
        "mechanism": "discrete_laplace",
        "steps": plane_steps(epsilon),
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
    found = {name for product in workload for name in product.attributes}
    first, second = (name for name in workload.domain.names if name in found)
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
    """What is done, with exact shares, for people and programs.

    >>> list(plane_steps(Fraction(1))[1])
    ['step', 'independent', 'blocks', 'quadtree']
    """
    rest = epsilon * (1 - TEST_SHARE)

    def of(share: Fraction) -> dict[str, Any]:
        return PureDP(rest * share).to_json()

    return [
        {"step": "test", "epsilon": str(epsilon * TEST_SHARE)},
        {
            "step": "one of",
            "independent": [{"step": "independent", "budget": of(Fraction(1))}],
            "blocks": [{"step": "blocks", "budget": of(FIRST_SHARE)}, {"step": "parts", "budget": of(1 - FIRST_SHARE)}],
            "quadtree": [
                {"step": "partition", "epsilon": str(rest * PARTITION_SHARE)},
                {"step": "buckets", "budget": of(1 - PARTITION_SHARE)},
            ],
        },
    ]


def plane_setting(plan: DataAwarePlan) -> PlaneSetting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote.

    Raises:
        InputError: its questions or details are not those of a plan of ``plan_plane``.
    """
    try:
        workload = from_json(plan.domain, plan.questions)
        if not on_two(workload):
            raise InputError("The data-aware plan names two attributes, and asks about others. Make the plan again; nothing was spent.")
        names, epsilon = _checked(workload, plan.privacy, plan.strategy)
        found = PlaneSetting(plan, workload, names, epsilon)
        refit(independent(plan), found.privacy(epsilon * (1 - TEST_SHARE)))
        if json.dumps(plan.details["steps"]) != json.dumps(plane_steps(epsilon)) or tuple(plan.details["attributes"]) != names:
            raise InputError("The steps of the plan are not those that this version carries out. Make the plan again; nothing was spent.")
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"The data-aware plan cannot be read: {error}. Make the plan again; nothing was spent.") from None
    return found


def carry_out_plane(setting: PlaneSetting, series: Series) -> Observation:
    """Run the steps of the mechanism; together they spend at most what the series was paid.

    Args:
        setting: from ``plane_setting``.
        series: paid, or simulated.

    Returns:
        All measurements side by side, with the workload as questions and the public outcome of the choices as details.
    """
    epsilon = setting.epsilon * TEST_SHARE
    value = series.choose(LeastBlockCost(attributes=setting.attributes, epsilon=epsilon, penalty=setting.unit))
    cells = math.prod(setting.shape)
    way, blocks = plane_regime(value, 1 / setting.unit, cells)
    observed, facts = measured_as(way, blocks, setting, series, setting.epsilon - epsilon)
    if facts["regime"] == "quadtree":
        beside = float(max(value - facts["buckets"] * setting.unit, Fraction(0)) + setting.plan.privacy.distance / epsilon)
        facts["hidden"] = tested(facts["hidden"], beside, float(setting.unit))
    test = {"value": float(value), "unit": float(setting.unit), "per_cell": float(value / setting.unit) / cells}
    steps = setting.plan.details["steps"]
    return join(
        observed,
        setting.plan.privacy,
        strategy=setting.plan.strategy,
        questions=setting.plan.questions,
        details={"data_aware": {**facts, "attributes": list(setting.attributes), "steps": steps, "test": test}},
    )


Outcome = tuple[list[Observation], dict[str, Any]]


def measured_as(way: str, blocks: int, setting: PlaneSetting, series: Series, epsilon: Fraction) -> Outcome:
    """Measure in one of the three ways.

    Args:
        way: fixed, blocks or quadtree, as ``plane_regime`` gives it.
        blocks: of the first round.
        setting: what is public.
        series: that pays.
        epsilon: for everything.

    Returns:
        The observations, and what is public of the outcome.
    """
    if way == "blocks":
        return _adaptive_grid(blocks, setting, series, epsilon)
    if way == "quadtree":
        spent = epsilon * PARTITION_SHARE
        found = series.choose(SampledRectangles(attributes=setting.attributes, epsilon=spent))
        epsilon -= spent
        if len(found.tops) <= MOST_RECTANGLES:
            observed = series.measure(rectangles_plan(setting, found, epsilon))
            hidden = choice_hides(float(spent), setting.plan.privacy.distance, math.prod(setting.shape), _PRIOR)
            return [observed], {"regime": "quadtree", "buckets": len(found.tops), "hidden": hidden}
    return [series.measure(refit(independent(setting.plan), setting.privacy(epsilon)))], {"regime": "independent"}


def _adaptive_grid(blocks: int, setting: PlaneSetting, series: Series, epsilon: Fraction) -> Outcome:
    """Blocks, then the parts and groups of parts that their noisy counts deserve: runs of the order of the tree of halves."""
    tree = block_tree(*setting.shape, "halves")
    base, size = first_level(tree, blocks), len(tree.order)
    starts = tree.starts[base]
    coarse = Ordered(Coarse(Identity(len(starts)), starts, size), tree.order)
    first = series.measure(setting.fitted(Factor(setting.attributes, coarse), epsilon * FIRST_SHARE, "blocks"))
    rest = epsilon * (1 - FIRST_SHARE)
    (parts, groups), (many, joined) = divided(tree, base, first.values[0].astype(np.int64), rest / setting.plan.privacy.distance / RECORDS)
    kept = joined == 1
    low = np.concatenate([parts, groups[kept]])
    high = np.concatenate([np.append(parts[1:], size), np.append(groups[1:], size)[kept]]) - 1
    # A cell's weights add up to the same whether it lies in a group or not.
    group, whole = GROUP_SHARE.numerator, GROUP_SHARE.denominator
    weights = np.concatenate([np.where(many == 1, whole - group, whole), np.full(int(kept.sum()), group)])
    fine = Factor(setting.attributes, Ordered(Ranges(size, low, high), tree.order), weights)
    second = series.measure(setting.fitted(fine, rest, "parts"))
    return [first, second], {"regime": "blocks", "blocks": len(starts), "buckets": len(parts)}


def rectangles_plan(setting: PlaneSetting, found: RectanglePartition, epsilon: Fraction) -> Plan:
    """The best plan on rectangles."""
    order = block_tree(*setting.shape, "quarters").order
    factor = on_rectangles(setting.attributes, setting.asked, found.tops, found.lefts, found.heights, found.widths, order)
    return setting.fitted(factor, epsilon, "buckets")
