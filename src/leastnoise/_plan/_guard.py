"""The share of a budget that a guard takes before a plan: public arithmetic, with nothing lost."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from leastnoise._accounting import Budget, Privacy, parameters
from leastnoise._check import exact_positive, refuse


def guard_share(value: Any) -> Fraction | None:
    """Check the share of the budget that a guard costs."""
    if value is None:
        return None
    share = exact_positive("guard", value)
    if not share <= Fraction(1, 2):
        raise refuse("guard", value, "a share of the budget above 0 and at most 1/2, such as '1/100'")
    return share


def without_guard(privacy: Privacy, share: Fraction | None) -> Privacy:
    """What is left to plan for when a guard takes its share; it takes nothing of delta, because its noise is pure."""
    if share is None:
        return privacy
    return privacy.within(_times(privacy.budget, 1 - share))


def with_guard(privacy: Privacy, share: Fraction | None) -> Privacy:
    """The whole, of a plan and its guard; the other way round."""
    if share is None:
        return privacy
    return privacy.within(_times(privacy.budget, 1 / (1 - share)))


def _times(budget: Budget, part: Fraction) -> Budget:
    """A part of epsilon or of rho, and all of delta."""
    name, number = next(iter(parameters(budget).items()))
    return replace(budget, **{name: number * part})  # type: ignore[arg-type]  # by name, whichever budget it is
