"""The best plan that does not look at the data: what a mechanism that looks is compared with, and falls back on."""

from collections.abc import Callable
from functools import lru_cache

from leastnoise._accounting import Privacy
from leastnoise._check import InputError
from leastnoise._fitting import rescaled
from leastnoise._measurements import Measurements
from leastnoise._mechanisms._choose import candidates
from leastnoise._mechanisms._protocol import Explanation, Reference
from leastnoise._plan import Plan
from leastnoise._planner import PLANNERS
from leastnoise._workload import Workload


@lru_cache(maxsize=8)
def reference_plan(workload: Workload, privacy: Privacy, progress: Callable[[str], None] | None) -> Plan:
    """The best data-independent plan that takes seconds, not minutes."""
    names = [planner.name for planner in PLANNERS.values() if planner.reference(workload)]
    tried = [one for name in names for one in candidates(workload, privacy, name, tell=progress)]
    best = min(tried, key=lambda candidate: candidate.total)
    if best.plan is None:
        raise InputError("No strategy can be used for this workload. " + "; ".join(f"{one.strategy}: {one.reason}" for one in tried))
    return best.plan


def within(plan: Plan, privacy: Privacy) -> Plan:
    """The same queries within another budget, without a promise."""
    return Plan(workload=plan.workload, privacy=privacy, strategy=plan.strategy, measurements=rescaled(plan.measured(), privacy))


def fallback(plan: Plan) -> Measurements:
    """The data-independent measurements within what the first choice leaves."""
    if plan.fallback is None:
        raise InputError("The data-aware plan does not say what it measures without structure. Make the plan again; nothing was spent.")
    return plan.fallback.measured()


def explained(plan: Plan) -> Explanation:
    """What the details of a plan say."""
    details = plan.details
    return Explanation(mechanism=details["mechanism"], steps=tuple(details["steps"]), reference=Reference.read(details["reference"]))
