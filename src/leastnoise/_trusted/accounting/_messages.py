"""Messages about charges. Not trusted: they decide nothing."""

from typing import Any

from leastnoise._trusted.accounting._budget import Budget, parameters
from leastnoise._trusted.check import readable


def pure_alone(declared: Budget) -> str:
    """Return the message for a release that must be pure and is not."""
    return (
        "The data set has a PureDP budget, which only pure releases can be charged to; the plan "
        f"declares {declared}. "
        "Plan with PureDP(epsilon), or set a ZCDP or ApproxDP budget for the data set."
    )


def not_zcdp(declared: Budget) -> str:
    """Return the message for a rho release where epsilon and delta add up."""
    return (
        "The data set has an ApproxDP budget, which adds up (epsilon, delta); the plan declares "
        f"{declared}. "
        "Plan with ApproxDP(epsilon, delta), or set a ZCDP budget for the data set, which adds "
        "many Gaussian releases up more tightly."
    )


def charge_text(budget: Budget, amount: Any) -> str:
    """Write a charge for people, with every part of the budget's definition.

    Parts that are zero are included.

    >>> charge_text(ApproxDP(1, "1e-9"), Charge(epsilon=Fraction(1, 2)))
    'epsilon = 0.5 and delta = 0'
    """
    parts = parameters(amount)
    return " and ".join(f"{name} = {readable(parts[name])}" for name in parameters(budget))
