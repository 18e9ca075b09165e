"""DAWA on two attributes: answers to products of queries that make use of structure in their table, and pay for every look at it.

A private test, then a plan that does not look or an adaptive grid (docs/decisions/dawa.md). Whatever is measured is a plan of the series,
so that the kernel computes its cost from its integers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._check import InputError
from leastnoise._estimate import Estimator, Finding, Grid, Outcome, join
from leastnoise._fitting import fit, rescaled
from leastnoise._kernel import LeastCost, Series
from leastnoise._linop import Coarse, Identity, Operator, Ordered, Ranges, Total, block_tree
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._mechanisms._dawa import STRATEGIES as ON_ONE
from leastnoise._mechanisms._findings import Looked, Unused, fallback, read_finding, reference_plan, require_details, within
from leastnoise._mechanisms._protocol import Mechanism, Reference, Run
from leastnoise._mechanisms._search import Progress, Search
from leastnoise._plan import Plan
from leastnoise._planner import (
    FIRST_SHARE,
    GROUP_SHARE,
    TEST_SHARE,
    divided,
    first_level,
    plane_regime,
    records_a_part,
    single_cells,
)
from leastnoise._workload import Workload

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
        found = []
        for product in self.plan.workload:
            known = dict(zip(product.attributes, product.operators, strict=True))
            first, second = (known.get(name, Total(size)) for name, size in zip(self.attributes, self.shape, strict=True))
            found.append((product.importance, (first, second)))
        return found

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
    rest = privacy.within(PureDP(epsilon * (1 - TEST_SHARE)))
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
    rest = epsilon * (1 - TEST_SHARE)

    def of(share: Fraction) -> dict[str, Any]:
        return PureDP(rest * share).to_json()

    return [
        {"step": "test", "epsilon": str(epsilon - rest)},
        {
            "step": "one of",
            "independent": [{"step": "independent", "budget": of(Fraction(1))}],
            "blocks": [{"step": "blocks", "budget": of(FIRST_SHARE)}, {"step": "parts", "budget": of(1 - FIRST_SHARE)}],
        },
    ]


def plane_setting(plan: Plan) -> PlaneSetting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote."""
    names, epsilon = _checked(plan.workload, plan.privacy, plan.strategy)
    setting = PlaneSetting(plan, names, epsilon)
    require_details(plan, lambda: {"steps": plane_steps(epsilon), "attributes": names})
    rescaled(fallback(plan), setting.privacy(epsilon * (1 - TEST_SHARE)))
    return setting


Measured = tuple[list[Observation], Looked]


def carry_out_plane(setting: PlaneSetting, series: Series) -> Outcome:
    """Measure: the structure of the data decides between two ways."""
    # How many first blocks there are, and whether their deviations are shrunk, is a function of the test's answer, which is paid for, and
    # of the plan; what the second round measures is one of the first round's noisy counts besides.
    epsilon = setting.epsilon * TEST_SHARE
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
    first = series.measure(setting.fitted(Factor(setting.attributes, coarse), epsilon * FIRST_SHARE))
    counts, rest = first.values[0].astype(np.int64), epsilon * (1 - FIRST_SHARE)
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
        return strategy in ON_ONE and on_two(workload)

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
