"""The share of the budget that a guard costs."""

from bisect import bisect_left
from collections.abc import Callable
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
    """Return the privacy that remains for the plan after the guard.

    A guard takes no part of delta, because its noise is pure. With an (epsilon, delta) budget,
    guard and plan together are within the budget in two ways: by the sum of their epsilons and by
    the sum of their mu squared.
    """
    if share is None:
        return privacy
    if isinstance(privacy.budget, ApproxDP):
        return privacy.within(_without_guard_in_mu(privacy.budget, share))
    return _scale_budget(privacy, 1 - share)


def _without_guard_in_mu(budget: ApproxDP, share: Fraction) -> ApproxDP:
    """Return the largest (epsilon, delta) that a guard leaves for a plan.

    The guard has a share of epsilon and pure noise. Usually the mu squared of the guard is less
    than the decrease of the plan's mu squared. If the share is large, all epsilons are reduced.
    """
    available = gaussian_mu_squared(budget.epsilon, budget.delta)

    def planned(thousandths: int) -> ApproxDP:
        return ApproxDP(budget.epsilon * Fraction(thousandths, 1000) * (1 - share), budget.delta)

    largest = _largest_thousandths(
        lambda thousandths: _mu_squared_with_guard(planned(thousandths), share) <= available
    )
    if largest == 0:
        raise refuse("guard", str(share), "a smaller share of a budget of epsilon and delta")
    return planned(largest)


def _mu_squared_with_guard(budget: ApproxDP, share: Fraction) -> Fraction:
    """Return the mu squared of a Gaussian plan together with its guard."""
    guard_mu_squared = pure_mu_squared(budget.epsilon * share / (1 - share))
    return gaussian_mu_squared(budget.epsilon, budget.delta) + guard_mu_squared


def _largest_thousandths(accepts: Callable[[int], bool]) -> int:
    """Return the largest number from 1 to 1000 that is accepted, or 0.

    Every number below an accepted number is accepted, too.
    """
    if accepts(1000):
        return 1000
    return bisect_left(range(1, 1000), 1, key=lambda thousandths: not accepts(thousandths))


def guard_budget(budget: Budget, share: Fraction) -> Budget:
    """Return the guard's budget, computed from the plan's budget.

    Args:
        budget: the budget of the plan, without the guard.
        share: of the epsilons, rhos or mu squared of plan and guard, added up.

    >>> guard_budget(PureDP("9/10"), Fraction(1, 10))
    PureDP(epsilon='1/10')
    """
    ratio = share / (1 - share)
    if isinstance(budget, ApproxDP):
        return PureDP(budget.epsilon * ratio)
    return budget.scaled(ratio)


def with_guard(privacy: Privacy, share: Fraction | None) -> Privacy:
    """Return the privacy of a plan together with its guard.

    It is the argument of `without_guard`. With an (epsilon, delta) budget and a large share, it is
    a slightly smaller budget that covers both.
    """
    if share is None:
        return privacy
    if isinstance(privacy.budget, ApproxDP):
        return privacy.within(_with_guard_in_mu(privacy.budget, share))
    return _scale_budget(privacy, 1 / (1 - share))


def _with_guard_in_mu(budget: ApproxDP, share: Fraction) -> ApproxDP:
    """Return a least (epsilon, delta) that covers a plan and its guard.

    It covers the sum of their epsilons and the sum of their mu squared. `_without_guard_in_mu`
    divides by the same thousandths.
    """
    sum_of_epsilons = budget.epsilon / (1 - share)
    needed = _mu_squared_with_guard(budget, share)

    def together(thousandths: int) -> ApproxDP:
        return ApproxDP(sum_of_epsilons / Fraction(thousandths, 1000), budget.delta)

    def is_covered(thousandths: int) -> bool:
        budget = together(thousandths)
        return needed <= gaussian_mu_squared(budget.epsilon, budget.delta)

    largest = _largest_thousandths(is_covered)
    if largest == 0:
        raise refuse("guard", str(share), "a smaller share of a budget of epsilon and delta")
    return together(largest)


def _scale_budget(privacy: Privacy, part: Fraction | int) -> Privacy:
    """Return the privacy with epsilon or rho multiplied and delta unchanged."""
    name, number = next(iter(parameters(privacy.budget).items()))
    return privacy.within(replace(privacy.budget, **{name: number * part}))  # type: ignore[arg-type]  # by name
