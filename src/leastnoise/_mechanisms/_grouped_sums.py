"""Sums by groups that are not drowned: a threshold chosen privately, and buckets under it, of which groups keep what is worth its noise.

Two steps under one payment. A tenth of the budget counts the rows between candidate thresholds; from these noisy counts one threshold for
all groups follows. The rest measures the sums of buckets of the number under it, by group. What each group keeps is seen from the paid
answers, and costs nothing (docs/decisions/sums.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from sys import float_info
from typing import Any

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._accuracy import block_variance
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._estimate import ByGroup, Estimator, Finding, Outcome, Said, join, measured_by_group
from leastnoise._kernel import Series
from leastnoise._linop import Identity
from leastnoise._measurements import Block, Factor, Limits, Measurements, Observation
from leastnoise._mechanisms._findings import Looked, read_finding
from leastnoise._mechanisms._protocol import Run
from leastnoise._mechanisms._search import Search
from leastnoise._mechanisms._sums import TAIL_SHARE, OfSums, Setting, after_the_tail, number_of_sums, same_plan, setting, tail_counts
from leastnoise._plan import Plan
from leastnoise._planner import SURE, GroupBuckets, ThresholdChoice, candidate_cells, choose_group_threshold
from leastnoise._workload import Workload, identity

STRATEGY = "grouped_sums"
_STEPS = (("tail", TAIL_SHARE), ("groups", 1 - TAIL_SHARE))
_MOST_GROUPS = 2**14


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped(Looked):
    """Values above a threshold were cut to it, and each group keeps some of the buckets under it."""

    regime = "grouped"
    further = False  # sums without some of the values are not those that are asked for
    reading = "aware_reading_grouped"

    measure: str
    attribute: str
    threshold: int
    kept: tuple[int, ...]
    missing: tuple[float, ...]
    estimated_loss: float

    def not_covered(self, domain: Domain) -> list[Said]:
        """What the cut and what was left out do to sums."""
        unit = domain.measure(self.measure).unit
        lost = float(f"{float(self.estimated_loss * unit):.3g}")
        return [("grouped", {"name": self.measure, "cut": Fraction(self.threshold * unit), "lost": lost})]

    def estimator(self, observation: Observation) -> Estimator:
        """The sums of what each group keeps."""
        block = observation.measurements.blocks[-1]
        limited = None if block.limits is None else (block.limits.attribute, int(block.limits.values.max()))
        if (block.measure, limited) != (self.measure, (self.attribute, self.threshold)) or not 0 <= self.estimated_loss <= float_info.max:
            raise ValueError(self.threshold)
        return ByGroup.of(observation, self.attribute, self.kept, self.missing)


def goes_by_group(workload: Workload) -> bool:
    """Whether sums of one measure are asked for by one table of few enough groups, or in total, and not along its own number."""
    column = number_of_sums(workload)
    if column is None:
        return False
    (names, *others) = {product.attributes for product in workload}
    cells = all(one == identity() for product in workload for one in product.query_sets)
    return not others and cells and column not in names and workload.products[0].rows <= _MOST_GROUPS


def _setting(workload: Workload, privacy: Privacy) -> Setting:
    found = setting(workload, privacy, _STEPS, STRATEGY)
    if not goes_by_group(workload):
        raise InputError(
            f"{STRATEGY} answers the sums of the cells of one table of other attributes than {found.attribute}, of at most {_MOST_GROUPS} "
            "cells, and nothing else. Ask for other sums with truncated_sums, which cuts values at one threshold for all of them."
        )
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Under:
    """What is measured under a threshold."""

    buckets: GroupBuckets
    measurements: Measurements
    noise: FloatArray


def under(found: Setting, threshold: int) -> Under:
    """The sums of buckets under a threshold, with the second part of the budget."""
    domain, (product, *_) = found.plan.domain, found.plan.workload
    buckets = GroupBuckets.of(found.attribute, found.edges, threshold)
    along = {name: Factor((name,), Identity(domain.kind(name).size)) for name in product.attributes}
    along[found.attribute] = buckets.factor(found.noise.norm)
    block = Block(
        tuple(along[name] for name in domain.names if name in along), Fraction(1), found.measure, Limits(buckets.limits, found.attribute)
    )
    made = after_the_tail(found, [(block, 1.0)])
    return Under(buckets, made, np.sqrt(block_variance(made, made.blocks[0])) / along[found.attribute].weights)


def _counted(tail: Measurements) -> float:
    """The standard error of the counts, in rows."""
    return float(block_variance(tail, tail.blocks[0]) ** 0.5)


def measurable(found: Setting) -> dict[int, Under]:
    """What is measured under every threshold that may be chosen."""
    if (tail := tail_counts(found, candidate_cells(found.edges))) is not None:
        _counted(tail)  # refused now, and not when it has been paid for
    return {threshold: under(found, threshold) for threshold in found.edges[candidate_cells(found.edges)].tolist()}


def chosen(found: Setting, thresholds: Mapping[int, Under], counts: FloatArray, counted: float) -> ThresholdChoice:
    """The threshold that noisy counts tell to take."""

    def noise(threshold: int) -> float:
        return float(np.sqrt((thresholds[threshold].noise ** 2).sum()))

    return choose_group_threshold(found.edges, counts, found.plan.workload.products[0].rows, noise, sure=SURE * counted)


def carry_out(found: Setting, thresholds: Mapping[int, Under], series: Series) -> Outcome:
    """Choose the threshold, measure the sums under it, and see from them what each group keeps."""
    tail = tail_counts(found, candidate_cells(found.edges))
    observed, counts, counted = [], np.zeros(0), 0.0
    if tail is not None:
        observed.append(series.measure(tail))
        counts, counted = observed[0].values[0] / tail.grid, _counted(tail)
    choice = chosen(found, thresholds, counts, counted)
    below = thresholds[choice.threshold]
    observed.append(series.measure(below.measurements))
    sums, noise = measured_by_group(observed[-1], found.attribute)
    kept = below.buckets.kept(sums.reshape(-1, len(noise)), noise)
    missing = kept.missing + kept.shares * choice.excess.sum()
    finding = Grouped(
        measure=found.measure,
        attribute=found.attribute,
        threshold=choice.threshold,
        kept=tuple(kept.buckets.tolist()),
        missing=tuple(float(f"{one:.3g}") for one in missing),
        estimated_loss=float(choice.excess.sum()),
    )
    return Outcome(found.plan, join(observed, found.plan.privacy), finding)


class GroupedSums(OfSums):
    """The mechanism for sums of one measure by one table of groups."""

    names = (STRATEGY,)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Two steps."""
        found = _setting(workload, privacy).plan
        if search.tell is not None:
            search.tell(STRATEGY)
        return found

    def ready(self, plan: Plan) -> Run:
        """It must be what this version would plan, and what is measured under every threshold that may be chosen is made now."""
        found = same_plan(_setting(plan.workload, plan.privacy), plan)
        return partial(carry_out, found, measurable(found))

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """The threshold, and what was kept."""
        return read_finding((Grouped,), facts)
