"""The share of the budget that a guard costs."""

from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from typing import Any

from leastnoise._trusted.accounting import (
    ApproxDP,
    Budget,
    Privacy,
    PureDP,
    gaussian_mu_squared,
    parameters,
    pure_mu_squared,
)
from leastnoise._trusted.check import exact_positive, refuse


def guard_share(value: Any) -> Fraction | None:
    """Return the checked share of the budget that a guard costs."""
    if value is None:
        return None
    share = exact_positive("guard", value)
    if not share <= Fraction(1, 2):
        raise refuse(
            "guard", value, "a share of the budget above 0 and at most 1/2, such as '1/100'"
        )
    return share


def without_guard(privacy: Privacy, share: Fraction | None) -> Privacy:
    """Return the privacy that a guard leaves to the plan.

    A guard takes nothing of delta, as its noise is pure. Within (epsilon, delta) guard and plan
    together are within the budget both by their epsilons and by their mu squared.
    """
    if share is None:
        return privacy
    if isinstance(privacy.budget, ApproxDP):
        return privacy.within(_without_guard_in_mu(privacy.budget, share))
    return _times(privacy, 1 - share)


def _without_guard_in_mu(budget: ApproxDP, share: Fraction) -> ApproxDP:
    """Return the largest (epsilon, delta) that guard and plan leave within the budget.

    A guard of the given share of epsilon is pure. Usually it costs less in mu squared than it
    takes of the plan's; where its share is large, all epsilons are made smaller.
    """
    whole = gaussian_mu_squared(budget.epsilon, budget.delta)

    def is_covered(thousandths: int) -> bool:
        epsilon = budget.epsilon * Fraction(thousandths, 1000)
        planned_mu_squared = gaussian_mu_squared(epsilon * (1 - share), budget.delta)
        return planned_mu_squared + pure_mu_squared(epsilon * share) <= whole

    largest = 1000
    if not is_covered(largest):
        largest = bisect_left(
            range(1, 1000), 1, key=lambda thousandths: not is_covered(thousandths)
        )
    if largest == 0:
        raise refuse("guard", str(share), "a smaller share of a budget of epsilon and delta")
    return ApproxDP(budget.epsilon * Fraction(largest, 1000) * (1 - share), budget.delta)


def guard_budget(whole: Budget, share: Fraction) -> Budget:
    """Return the budget of a guard that costs a share of a whole budget; it has no delta."""
    if isinstance(whole, ApproxDP):
        return PureDP(whole.epsilon * share)
    return whole.scaled(share)


def with_guard(privacy: Privacy, share: Fraction | None) -> Privacy:
    """Return the privacy of a plan with its guard, from the plan's privacy."""
    return _times(privacy, 1 / Fraction(1 - (share or 0)))


def _times(privacy: Privacy, part: Fraction | int) -> Privacy:
    """Return the privacy with its first parameter multiplied, and the same delta."""
    name, number = next(iter(parameters(privacy.budget).items()))
    return privacy.within(replace(privacy.budget, **{name: number * part}))  # type: ignore[arg-type]  # by name, whichever budget it is
