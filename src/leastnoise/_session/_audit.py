"""The audit of a plan, with its guard."""

from leastnoise._audit import Audit, audited
from leastnoise._check import Exact, InputError
from leastnoise._kernel import SeededEntropy
from leastnoise._plan import CategoryPlan, Plan, guard_share
from leastnoise._session._guard import guard_measurements
from leastnoise._threads import one_thread


@one_thread()
def audit(
    plan: Plan | CategoryPlan,
    *,
    guard: Exact | None = None,
    trials: int | None = None,
    seconds: float = 20.0,
    confidence: float = 0.999,
    entropy: SeededEntropy | None = None,
) -> Audit:
    """Bound from below what a plan loses, by running the kernel on made-up rows.

    Args:
        plan: as ``plan`` or ``plan_categories`` made it.
        guard: the share of the whole budget that ``release`` pays a guard with, which is looked at too.
        trials: of each of two tables; None for as many as the seconds allow.
        seconds: where no number of trials is given.
        confidence: with which all bounds together hold, below 1.
        entropy: for tests; by default the system's randomness.

    Returns:
        The bounds beside the claims. A bound above its claim is, at the given confidence, a fault of the program or of the machine.

    Raises:
        InputError: fewer than 200 trials, another confidence, or a guard of a search for categories, which has none.

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> found = ln.audit(made, trials=2000)
    >>> found.claim, found.held, 0 < found.lower_bound <= 1
    (1.0, True, True)
    """
    share = guard_share(guard)
    if share is not None and isinstance(plan, CategoryPlan):
        raise InputError("A search for categories has no guard. Leave out the guard; the release after the search may have one.")
    measured = None if share is None else guard_measurements(plan.privacy, share)
    return audited(plan, measured, trials=trials, seconds=seconds, confidence=confidence, entropy=entropy)
