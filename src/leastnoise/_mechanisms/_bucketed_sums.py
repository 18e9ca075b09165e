"""Sums that are not drowned, along one number: all of it is measured with the whole budget, and what holds nothing is left out.

One step, known beforehand. Every cell's noise is as large as its own values, so that a public maximum far above all of them does harm
only to answers that ask about values there; and these cells are left out of the answers where nothing in them stands out of their noise,
which the paid answers tell themselves (docs/decisions/sums.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from leastnoise._accounting import Privacy
from leastnoise._check import InputError
from leastnoise._domain import Domain
from leastnoise._estimate import Estimator, Expanded, Finding, LeftOut, Outcome, Said
from leastnoise._fitting import fit
from leastnoise._kernel import Series
from leastnoise._measurements import Block, Limits, Measurements, Observation
from leastnoise._mechanisms._findings import Looked, read_finding
from leastnoise._mechanisms._protocol import Run
from leastnoise._mechanisms._search import Search
from leastnoise._mechanisms._sums import OfSums, Setting, number_of_sums, same_plan, setting
from leastnoise._plan import Plan
from leastnoise._planner import SumBuckets
from leastnoise._workload import Workload

STRATEGY = "bucketed_sums"
_MOST_CELLS = 1024
_STEPS = (("number", Fraction(1)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucketed(Looked):
    """Sums of the values between two bounds; those of other values were left out."""

    regime = "bucketed"
    further = False  # sums without some of the values are not those that are asked for
    reading = "aware_reading_bucketed"

    measure: str
    attribute: str
    first: int
    stop: int
    low: int
    high: int
    losses: tuple[tuple[int, int, float], ...] = ()
    estimated_loss: float

    def not_covered(self, domain: Domain) -> list[Said]:
        """What is left out."""
        unit = domain.measure(self.measure).unit
        lost = float(f"{float(self.estimated_loss * unit):.3g}")
        facts = {"name": self.measure, "low": Fraction(self.low * unit), "high": Fraction(self.high * unit), "lost": lost}
        return [("bucketed", facts)]

    def estimator(self, observation: Observation) -> Estimator:
        """Least squares on what is kept, and what may be missing."""
        losses = ((int(start), int(stop), float(loss)) for start, stop, loss in self.losses)
        return LeftOut.of(observation, int(self.first), int(self.stop), losses)


def goes_along(workload: Workload) -> bool:
    """Whether sums of one measure are asked for along its own number alone, which has few enough cells."""
    column = number_of_sums(workload)
    if column is None:
        return False
    alone = {product.attributes for product in workload} == {(column,)}
    return alone and workload.domain.kind(column).size <= _MOST_CELLS


def _setting(workload: Workload, privacy: Privacy) -> Setting:
    found = setting(workload, privacy, _STEPS, STRATEGY)
    if goes_along(workload):
        return found
    others = sorted({" x ".join(product.attributes) or "no attribute" for product in workload if product.attributes != (found.attribute,)})
    if others:
        raise InputError(
            f"{STRATEGY} answers sums along {found.attribute} alone; this workload asks for sums by {', '.join(others)} too. "
            "Ask for sums by groups, or for the total, with truncated_sums, which cuts values at one threshold for all of them."
        )
    raise InputError(
        f"{STRATEGY} answers sums along at most {_MOST_CELLS} cells; {found.attribute} has {len(found.edges)}. "
        "Use wider bins, or truncated_sums, which cuts values at a threshold."
    )


def measured(found: Setting) -> tuple[SumBuckets, Measurements]:
    """The buckets of the number, and what is measured, with all of the budget."""
    buckets = SumBuckets.of(found.plan.workload, found.attribute, found.edges)
    limits = Limits(buckets.limits, found.attribute)
    block = Block((buckets.factor(found.noise.norm),), Fraction(1), found.measure, limits)
    return buckets, fit(found.plan.domain, found.plan.privacy, found.noise, [(block, 1.0)])


def carry_out(found: Setting, buckets: SumBuckets, measurements: Measurements, series: Series) -> Outcome:
    """Measure, and see from the answers which buckets of the number to keep."""
    observation = series.measure(measurements)
    groups = Expanded.of(observation, None)
    kept = buckets.choices(groups.covariance).kept(groups.counts)
    finding = Bucketed(
        measure=found.measure,
        attribute=found.attribute,
        first=kept.first,
        stop=kept.stop,
        low=int(found.edges[kept.first - 1]) if kept.first else 0,
        high=int(found.edges[kept.stop - 1]),
        losses=kept.losses,
        estimated_loss=sum(loss for _, _, loss in kept.losses),
    )
    return Outcome(found.plan, observation, finding)


class BucketedSums(OfSums):
    """The mechanism for sums of one measure along its own number alone."""

    names = (STRATEGY,)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """One step."""
        found = _setting(workload, privacy).plan
        if search.tell is not None:
            search.tell(STRATEGY)
        return found

    def ready(self, plan: Plan) -> Run:
        """It must be what this version would plan."""
        found = same_plan(_setting(plan.workload, plan.privacy), plan)
        return partial(carry_out, found, *measured(found))

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """What was kept."""
        return read_finding((Bucketed,), facts)
