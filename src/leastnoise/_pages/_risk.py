"""Compute from the budget how likely a right guess about a unit can be.

Suppose that a reader knows all other rows and considers two neighbouring tables equally likely. The
bound is the largest probability that this reader guesses the true table from the release. It is ``1
- (alpha + beta) / 2`` at one point of the trade-off curve: the point with the smallest sum of both
errors (section 12 of docs/mathematics.md).
"""

import math
from fractions import Fraction
from statistics import NormalDist

from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Cost,
    GaussianCost,
    Privacy,
    PureCost,
    PureDP,
    gaussian_mu_squared,
)

PRIOR = 0.5
"""The probability that the reader gives to each of the two tables before reading."""
_LARGE_LOSS = Fraction(10**6)  # at this epsilon, rho or mu squared every chance rounds to 1
_BISECTION_STEPS = 60  # each halves an interval of length 1; a double has fewer bits


def guessing_chance(privacy: Privacy, cost: Cost | None = None) -> float:
    """Return the largest probability that a reader guesses the true table.

    The reader considers two neighbouring tables equally likely before the release. Under pure
    differential privacy the bound holds for every single result; under other budgets it holds on
    average over the results.

    Args:
        privacy: the budget of everything that is published.
        cost: the cost of the plan; with an (epsilon, delta) budget, the bound is smaller if the
            cost is stated.

    Returns:
        The bound. The bound is exact: a mechanism within the budget attains it.

    Source: Dong, Roth, Su (JRSS-B 2022), for the trade-off curves; docs/mathematics.md for zCDP.
    """
    budget = _strengthen_approx_budget(privacy.budget, cost)
    if isinstance(budget, GDP):
        return NormalDist().cdf(math.sqrt(_limit_loss(budget.mu_squared)) / 2)
    if isinstance(budget, ZCDP):
        return (1 + _concentrated_distance(_limit_loss(budget.rho))) / 2
    inverse_factor = math.exp(-_limit_loss(budget.epsilon))
    if isinstance(budget, ApproxDP):
        delta = float(budget.delta)
    else:
        delta = 0.0
    return min(1.0, (1 + delta * inverse_factor) / (1 + inverse_factor))


def risk_holds_always(privacy: Privacy, cost: Cost | None = None) -> bool:
    """Return whether the bound of `guessing_chance` holds for every result."""
    return isinstance(_strengthen_approx_budget(privacy.budget, cost), PureDP)


def _strengthen_approx_budget(budget: Budget, cost: Cost | None) -> Budget:
    """Return pure DP or GDP for (epsilon, delta), by the kind of noise.

    Other budgets are unchanged. For a budget (epsilon, delta), a plan with Laplace noise satisfies
    pure DP with this epsilon. A plan with Gaussian noise satisfies mu-GDP, with the largest mu that
    the budget allows. Both statements also hold for a guard and its plan as one release.
    """
    if isinstance(budget, ApproxDP) and isinstance(cost, PureCost):
        return PureDP(budget.epsilon)
    if isinstance(budget, ApproxDP) and isinstance(cost, GaussianCost):
        return GDP(gaussian_mu_squared(budget.epsilon, budget.delta))
    return budget


def _limit_loss(loss: Fraction) -> float:
    """Return a privacy loss as a float of at most a million."""
    return float(min(loss, _LARGE_LOSS))


def _concentrated_distance(rho: float) -> float:
    """Return the largest total variation distance for rho-zCDP, rounded up.

    The distance v satisfies ``2 v artanh(v) = rho``, and randomised response attains it.
    """
    low = 0.0
    high = 1.0
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        if middle < 1 and 2 * middle * math.atanh(middle) < rho:
            low = middle
        else:
            high = middle
    return high
