"""The share of the budget that a guard costs."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from leastnoise._trusted.accounting import (
    Privacy,
    parameters,
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

    A guard takes nothing of delta, as its noise is pure.
    """
    return _times(privacy, 1 - (share or 0))


def with_guard(privacy: Privacy, share: Fraction | None) -> Privacy:
    """Return the privacy of a plan with its guard, from the plan's privacy."""
    return _times(privacy, 1 / Fraction(1 - (share or 0)))


def _times(privacy: Privacy, part: Fraction | int) -> Privacy:
    """Return the privacy with epsilon or rho multiplied, and the same delta."""
    name, number = next(iter(parameters(privacy.budget).items()))
    return privacy.within(replace(privacy.budget, **{name: number * part}))  # type: ignore[arg-type]  # by name, whichever budget it is
