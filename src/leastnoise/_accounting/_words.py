"""Messages about charges. Not trusted: they decide nothing."""

from typing import Any

from leastnoise._accounting._budget import Budget, parameters
from leastnoise._check import readable


def pure_alone(declared: Budget) -> str:
    """The sentence for a release that is not pure, where pure ones alone can be charged."""
    return (
        "The data set has a PureDP budget, which only pure releases can be charged to; the plan "
        f"declares {declared}. "
        "Plan with PureDP(epsilon), or set a ZCDP or ApproxDP budget for the data set."
    )


def not_zcdp(declared: Budget) -> str:
    """The sentence for a release within rho, where epsilon and delta are added up."""
    return (
        "The data set has an ApproxDP budget, which adds up (epsilon, delta); the plan declares "
        f"{declared}. "
        "Plan with ApproxDP(epsilon, delta), or set a ZCDP budget for the data set, which adds "
        "many Gaussian releases up more tightly."
    )


def charge_text(budget: Budget, amount: Any) -> str:
    """Write a charge for people, with every part that the definition of the budget has, also those that are zero.

    >>> charge_text(ApproxDP(1, "1e-9"), Charge(epsilon=Fraction(1, 2)))
    'epsilon = 0.5 and delta = 0'
    """
    parts = parameters(amount)
    return " and ".join(f"{name} = {readable(parts[name])}" for name in parameters(budget))
