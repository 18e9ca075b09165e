"""Divide a budget between a plan and its guard."""

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from leastnoise._trusted.accounting import (
    ApproxDP,
    Budget,
    Privacy,
    PureDP,
    gaussian_mu_squared,
    pure_mu_squared,
)
from leastnoise._trusted.check import exact_positive, refuse


def checked_guard_share(value: Any) -> Fraction | None:
    """Check and return the share of the budget that a guard costs, or None."""
    if value is None:
        return None
    share = exact_positive("guard", value)
    if not share <= Fraction(1, 2):
        raise refuse(
            "guard", value, "a share of the budget above 0 and at most 1/2, such as '1/100'"
        )
    return share


def without_guard(privacy: Privacy, guard_share: Fraction | None) -> Privacy:
    """Return the privacy that remains for the plan after paying the guard.

    A guard costs no delta, because its noise satisfies pure differential privacy. With an (epsilon,
    delta) budget, guard and plan together are within the budget by two sums: the sum of their
    epsilons, and the sum of their mu squared.
    """
    if guard_share is None:
        return privacy
    if isinstance(privacy.budget, ApproxDP):
        return privacy.within(_without_guard_in_mu(privacy.budget, guard_share))
    return privacy.scaled(1 - guard_share)


def _without_guard_in_mu(budget: ApproxDP, guard_share: Fraction) -> ApproxDP:
    """Return the largest (epsilon, delta) that a guard leaves for its plan.

    The guard has a share of epsilon, and its noise satisfies pure differential privacy. Usually the
    plan's smaller epsilon frees more mu squared than the guard needs. If the guard's share is
    large, the epsilons of guard and plan are both reduced.
    """
    available = gaussian_mu_squared(budget.epsilon, budget.delta)

    def planned(thousandths: int) -> ApproxDP:
        """Return the plan's budget, for a factor on epsilon in thousandths."""
        return ApproxDP(
            budget.epsilon * Fraction(thousandths, 1000) * (1 - guard_share), budget.delta
        )

    largest = _largest_thousandths(
        lambda thousandths: _mu_squared_with_guard(planned(thousandths), guard_share) <= available
    )
    if largest == 0:
        raise refuse("guard", str(guard_share), "a smaller share of a budget of epsilon and delta")
    return planned(largest)


def _mu_squared_with_guard(plan_budget: ApproxDP, guard_share: Fraction) -> Fraction:
    """Return the total mu squared of a Gaussian plan and its guard."""
    guard_mu_squared = pure_mu_squared(plan_budget.epsilon * guard_share / (1 - guard_share))
    return gaussian_mu_squared(plan_budget.epsilon, plan_budget.delta) + guard_mu_squared


def _largest_thousandths(accepts: Callable[[int], bool]) -> int:
    """Return the largest number from 1 to 1000 that a function accepts, or 0.

    Every number below an accepted number is also accepted.
    """
    if accepts(1000):
        return 1000
    return bisect_left(range(1, 1000), 1, key=lambda thousandths: not accepts(thousandths))


def guard_budget(plan_budget: Budget, guard_share: Fraction) -> Budget:
    """Compute the budget of a guard from the budget of its plan.

    Args:
        plan_budget: the budget of the plan, without the guard.
        guard_share: the guard's share of the total epsilon, rho or mu squared of both.

    >>> guard_budget(PureDP("9/10"), Fraction(1, 10))
    PureDP(epsilon='1/10')
    """
    ratio = guard_share / (1 - guard_share)
    if isinstance(plan_budget, ApproxDP):
        return PureDP(plan_budget.epsilon * ratio)
    return plan_budget.scaled(ratio)


def with_guard(privacy: Privacy, guard_share: Fraction | None) -> Privacy:
    """Return the privacy that covers a plan and its guard.

    This is the inverse of `without_guard`. With an (epsilon, delta) budget and a large share, the
    result is slightly smaller than the exact inverse. The result still covers both the plan and the
    guard.
    """
    if guard_share is None:
        return privacy
    if isinstance(privacy.budget, ApproxDP):
        return privacy.within(_with_guard_in_mu(privacy.budget, guard_share))
    return privacy.scaled(1 / (1 - guard_share))


def _with_guard_in_mu(budget: ApproxDP, guard_share: Fraction) -> ApproxDP:
    """Return an (epsilon, delta) that covers a plan and its guard.

    The result covers the sum of their epsilons and the sum of their mu squared. Like
    `_without_guard_in_mu`, this function tries whole thousandths.
    """
    sum_of_epsilons = budget.epsilon / (1 - guard_share)
    needed = _mu_squared_with_guard(budget, guard_share)

    def together(thousandths: int) -> ApproxDP:
        """Return the total budget, for a divisor of epsilon in thousandths."""
        return ApproxDP(sum_of_epsilons / Fraction(thousandths, 1000), budget.delta)

    def is_covered(thousandths: int) -> bool:
        """Return whether the total budget for a divisor covers the sum of mu squared."""
        budget = together(thousandths)
        return needed <= gaussian_mu_squared(budget.epsilon, budget.delta)

    largest = _largest_thousandths(is_covered)
    if largest == 0:
        raise refuse("guard", str(guard_share), "a smaller share of a budget of epsilon and delta")
    return together(largest)
