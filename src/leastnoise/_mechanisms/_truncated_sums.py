"""Sums that are not drowned: a threshold chosen privately, then the sums of the values cut at it with a strategy that knows it.

Two steps under one payment. A tenth of the budget counts the records between candidate thresholds. From those noisy counts, and from the
noise that the strategy for every candidate would have, the threshold of least predicted error follows; it costs nothing more. The rest
measures the sums, every value cut at the limit of its cell, by a hierarchy made for these limits (docs/decisions/sums.md).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._accuracy import block_variance
from leastnoise._check import InputError, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._domain import Domain
from leastnoise._estimate import Estimator, Finding, Outcome, Said, Truncated, join
from leastnoise._kernel import Series
from leastnoise._linop import Identity
from leastnoise._measurements import Block, Factor, Limits, Measurements, Observation
from leastnoise._mechanisms._bucketed_sums import BucketedSums, goes_along
from leastnoise._mechanisms._findings import Looked, read_finding
from leastnoise._mechanisms._grouped_sums import GroupedSums, goes_by_group
from leastnoise._mechanisms._protocol import Run
from leastnoise._mechanisms._search import Progress, Search
from leastnoise._mechanisms._sums import TAIL_SHARE, OfSums, Setting, after_the_tail, same_plan, setting, tail_counts
from leastnoise._plan import Plan
from leastnoise._planner import (
    SURE,
    TailLaw,
    ThresholdChoice,
    asked_along,
    candidate_cells,
    choose_threshold,
    limited_strategy,
    noise_along,
)
from leastnoise._workload import Workload

STRATEGY = "truncated_sums"
_STEPS = (("tail", TAIL_SHARE), ("sums", 1 - TAIL_SHARE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Looked):
    """Values above a threshold were cut to it."""

    regime = "truncated"
    further = False  # sums of cut values are not those that are asked for
    reading = "aware_reading_truncated"

    measure: str
    attribute: str
    threshold: int
    losses: tuple[tuple[int, int, float], ...] = ()
    estimated_loss: float

    def not_covered(self, domain: Domain) -> list[Said]:
        """What the cut does to sums."""
        unit = domain.measure(self.measure).unit
        lost = float(f"{float(self.estimated_loss * unit):.3g}")
        return [("truncated", {"name": self.measure, "cut": Fraction(self.threshold * unit), "lost": lost})]

    def estimator(self, observation: Observation) -> Estimator:
        """Least squares, and what the cut is estimated to have taken."""
        losses = ((int(start), int(stop), float(loss)) for start, stop, loss in self.losses)
        return Truncated.of(observation, self.attribute, losses)


def plan_truncated_sums(workload: Workload, privacy: Privacy, strategy: str = STRATEGY, progress: Progress = None) -> Plan:
    """The public plan of a release of truncated sums."""
    if strategy != STRATEGY:
        raise refuse("strategy", strategy, f"'{STRATEGY}'")
    found = setting(workload, privacy, _STEPS, STRATEGY)
    asked_along(workload, found.attribute)  # what it refuses is refused when it is planned
    if progress is not None:
        progress(STRATEGY)
    return found.plan


def setting_of(plan: Plan) -> Setting:
    """Read and check a plan before anything is paid; it may come from a file that somebody wrote."""
    return same_plan(setting(plan.workload, plan.privacy, _STEPS, STRATEGY), plan)


Chooser = Callable[[np.ndarray], ThresholdChoice]


def carry_out(setting: Setting, choose: Chooser, series: Series) -> Outcome:
    """Choose the threshold, and measure the sums under it."""
    places = candidate_cells(setting.edges)
    tail = tail_counts(setting, places)
    observed, counts = [], np.zeros(0)
    if tail is not None:
        observed.append(series.measure(tail))
        counts = observed[0].values[0] / tail.grid
    choice = choose(counts)
    observed.append(series.measure(sums(setting, choice.threshold)))
    kept = [(start + 1, stop + 1) for start, stop in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)]
    losses = [(start, stop, float(choice.excess[start:stop].sum())) for start, stop in kept]
    found = Cut(
        measure=setting.measure,
        attribute=setting.attribute,
        threshold=choice.threshold,
        losses=tuple(entry for entry in losses if entry[2] > 0),
        estimated_loss=float(choice.excess.sum()),
    )
    return Outcome(setting.plan, join(observed, setting.plan.privacy), found)


def chooser(setting: Setting) -> Chooser:
    """The threshold of least predicted error from noisy counts; all that is public of it is computed before anything is paid."""
    places, edges = candidate_cells(setting.edges), setting.edges
    try:
        after_the_tail(setting, [(_every_cell(setting, edges), 1.0)])
    except InputError:  # too many cells, of which there may be a strategy all the same
        sums(setting, int(edges[-1]))
    gram, lost = asked_along(setting.plan.workload, setting.attribute)
    cells = Block((Factor((setting.attribute,), Identity(len(setting.edges))),), Fraction(1))
    noise, tail = after_the_tail(setting, [(cells, 1.0)]), tail_counts(setting, places)
    unit = block_variance(noise, noise.blocks[0]) ** 0.5
    sure = SURE * block_variance(tail, tail.blocks[0]) ** 0.5 if tail is not None else 0.0
    quick = noise_along(setting.plan.workload, setting.attribute, setting.noise.norm)
    known = {int(most): quick(np.minimum(edges, most)) for most in edges[places]}

    def choose(counts: np.ndarray) -> ThresholdChoice:
        return choose_threshold(gram, edges, places, counts, lambda limits: known[int(limits.max())], unit, lost=lost, law=TailLaw(sure))

    return choose


def sums(setting: Setting, threshold: int) -> Measurements:
    """The sums under the limits of a threshold, by the first of three ways whose noise can be drawn exactly.

    The best for the weights of what is asked; the best for equal weights, as those far apart ask for noise out of all proportion; and every
    cell by itself.
    """
    workload, limits = setting.plan.workload, np.minimum(setting.edges, threshold)
    even = Workload(workload.domain, tuple(replace(product, weight=Fraction(1)) for product in workload))
    for asked in (workload, even):
        with suppress(InputError):
            strategy = limited_strategy(asked, setting.attribute, limits, setting.noise.norm)
            return after_the_tail(setting, strategy.blocks)
    return after_the_tail(setting, [(_every_cell(setting, limits), 1.0)])


def _every_cell(setting: Setting, limits: IntArray) -> Block:
    """The sum of every cell of what is asked about."""
    domain, asked = setting.plan.domain, {setting.attribute, *(name for product in setting.plan.workload for name in product.attributes)}
    factors = tuple(Factor((name,), Identity(domain.kind(name).size)) for name in domain.names if name in asked)
    return Block(factors, Fraction(1), setting.measure, Limits(limits, setting.attribute))


class TruncatedSums(OfSums):
    """The mechanism for sums of one measure."""

    names = (STRATEGY,)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Without a threshold along the number alone, and in buckets under it for one table; else see `plan_truncated_sums`."""
        if goes_along(workload):
            return BucketedSums().plan(workload, privacy, search)
        if goes_by_group(workload):
            return GroupedSums().plan(workload, privacy, search)
        return plan_truncated_sums(workload, privacy, search.strategy, search.tell)

    def ready(self, plan: Plan) -> Run:
        """See `setting_of` and `carry_out`."""
        found = setting_of(plan)
        return partial(carry_out, found, chooser(found))

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """The threshold."""
        return read_finding((Cut,), facts)
