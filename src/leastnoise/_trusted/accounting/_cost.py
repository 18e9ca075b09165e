"""Define the costs of plans, and check that a budget covers a cost.

The cost of a plan is computed from its integer queries.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from leastnoise._trusted.accounting._budget import (
    BUDGET_FORMS,
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Json,
    PureDP,
    fraction_to_text,
    parameters_by_name,
)
from leastnoise._trusted.accounting._deltas import gaussian_is_private, zcdp_delta
from leastnoise._trusted.accounting._mu import pure_is_gaussian
from leastnoise._trusted.check import exact_positive, readable, refuse


@dataclass(frozen=True, slots=True)
class _NoiseCost:
    """The base class of the costs of noise; a cost is one exact number above 0."""

    kind: ClassVar[str]
    noise: ClassVar[str]

    def __post_init__(self) -> None:
        for name, value in parameters_by_name(self).items():
            object.__setattr__(self, name, exact_positive(name, value))

    def __str__(self) -> str:
        ((name, value),) = parameters_by_name(self).items()
        return f"{name.replace('_', ' ')} = {readable(value)} ({self.noise} noise)"

    def to_json(self) -> Json:
        """Return the values for a JSON object; `cost_from_json` reads them.

        >>> PureCost(1).to_json(), GaussianCost(1).to_json()
        ({'kind': 'pure', 'epsilon': '1'}, {'kind': 'gaussian', 'mu_squared': '1'})
        """
        return {
            "kind": self.kind,
            **{
                name: fraction_to_text(name, value)
                for name, value in parameters_by_name(self).items()
            },
        }


@dataclass(frozen=True, slots=True)
class PureCost(_NoiseCost):
    """The cost of discrete Laplace noise: an epsilon.

    Epsilon is the largest ``sum_i |A_ij| / s_i`` over the cells j.

    >>> PureCost("1/3").epsilon
    Fraction(1, 3)
    """

    kind = "pure"
    noise = "discrete Laplace"
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class GaussianCost(_NoiseCost):
    """The cost of rounded continuous Gaussian noise: a mu squared.

    mu squared is the largest ``sum_i A_ij^2 / sigma_i^2`` over the cells j. The mechanism is
    exactly mu-GDP, because rounding an integer plus a continuous Gaussian is post-processing.

    >>> GaussianCost("1/4").mu_squared
    Fraction(1, 4)
    """

    kind = "gaussian"
    noise = "Gaussian"
    mu_squared: Fraction


@dataclass(frozen=True, slots=True)
class ConcentratedCost(_NoiseCost):
    """The cost of discrete Gaussian noise: a rho.

    rho is the largest ``sum_i A_ij^2 / (2 sigma_i^2)`` over the cells j.

    >>> ConcentratedCost("1/2").rho
    Fraction(1, 2)
    """

    kind = "concentrated"
    noise = "discrete Gaussian"
    rho: Fraction


@dataclass(frozen=True, slots=True)
class SeriesCost:
    """The cost of a series of adaptive steps, which is a whole budget.

    Each step is chosen after the outcomes of the steps before it, and the steps share the budget.
    The kernel ensures that the charges of the steps stay within this budget (theorem 6 of
    PROOFS-accounting.md).

    Args:
        budget: the budget that the whole series satisfies.

    Raises:
        InputError: ``budget`` is not a budget.

    >>> str(SeriesCost(PureDP(1)))
    'a series of steps within epsilon = 1'
    """

    budget: Budget

    def __post_init__(self) -> None:
        if not isinstance(self.budget, PureDP | ApproxDP | ZCDP | GDP):
            raise refuse("budget", self.budget, BUDGET_FORMS)

    def __str__(self) -> str:
        bounds = [
            f"{name.replace('_', ' ')} = {readable(number)}"
            for name, number in parameters_by_name(self.budget).items()
        ]
        return f"a series of steps within {', '.join(bounds)}"

    def to_json(self) -> dict[str, Json | str]:
        """Return the values for a JSON object; `cost_from_json` reads them.

        >>> SeriesCost(PureDP(1)).to_json()
        {'kind': 'series', 'budget': {'definition': 'PureDP', 'epsilon': '1'}}
        """
        return {"kind": "series", "budget": self.budget.to_json()}


Cost = PureCost | GaussianCost | ConcentratedCost | SeriesCost


class Noise(Enum):
    """A kind of noise; its value is its name in files.

    >>> Noise("discrete_laplace").norm, Noise.ROUNDED_GAUSSIAN.norm
    (1, 2)
    """

    DISCRETE_LAPLACE = "discrete_laplace"
    DISCRETE_GAUSSIAN = "discrete_gaussian"
    ROUNDED_GAUSSIAN = "rounded_gaussian"

    @property
    def norm(self) -> int:
        """The p of the sensitivity norm: 1 for Laplace, 2 for Gaussian noise."""
        if self is Noise.DISCRETE_LAPLACE:
            return 1
        return 2

    def cost(self, distance: Fraction) -> Cost:
        """Return the cost of queries, from the largest |c - c'|_p^p of neighbours.

        The distance is the largest ``|c - c'|_p^p`` for neighbouring tables, with p = ``norm``.
        Here c and c' are the exact answers to the two tables, divided by their noise scales.

        Args:
            distance: the exact distance, above 0.

        >>> Noise.DISCRETE_GAUSSIAN.cost(Fraction(1))
        ConcentratedCost(rho=Fraction(1, 2))
        """
        if self is Noise.DISCRETE_LAPLACE:
            return PureCost(distance)
        if self is Noise.ROUNDED_GAUSSIAN:
            return GaussianCost(distance)
        return ConcentratedCost(distance / 2)


def rho_of_cost(cost: Cost) -> Fraction:
    """Return the smallest rho that is proved for a cost, exactly.

    The result is ``epsilon^2 / 2``, ``mu^2 / 2`` or rho itself.

    Raises:
        InputError: the cost belongs to a series within (epsilon, delta), for which no rho is known.

    Source: Bun and Steinke (TCC 2016), proposition 1.4 (pure) and lemma 2.4 (Gaussian).

    >>> rho_of_cost(PureCost(1)), rho_of_cost(GaussianCost("1/2"))
    (Fraction(1, 2), Fraction(1, 4))
    """
    if isinstance(cost, PureCost):
        return cost.epsilon * cost.epsilon / 2
    if isinstance(cost, GaussianCost):
        return cost.mu_squared / 2
    if isinstance(cost, ConcentratedCost):
        return cost.rho
    if isinstance(cost.budget, ApproxDP):
        raise refuse(
            "a series of steps",
            str(cost),
            "one within epsilon or rho",
            "Declare PureDP or ZCDP where rho is added up.",
        )
    if isinstance(cost.budget, PureDP):
        return cost.budget.epsilon * cost.budget.epsilon / 2
    if isinstance(cost.budget, GDP):
        return cost.budget.mu_squared / 2
    return cost.budget.rho


def covers(budget: Budget, cost: Cost) -> bool:
    """Return whether all mechanisms of this cost provably satisfy a budget.

    Args:
        budget: the promised budget.
        cost: the cost of the mechanism.

    Returns:
        True only if this is proved. False if the budget does not cover the cost, or if this is
        undecided because the cost is within a relative 1e-12 of the boundary.

    Raises:
        InputError: an argument has another class.

    Guarantees:
        All comparisons are between exact fractions; one side may be a proved upper bound (see
        PROOFS-accounting.md).

    Source: see `gaussian_is_private` and `zcdp_delta`.

    >>> covers(PureDP(1), PureCost(1)), covers(PureDP(1), GaussianCost("1e-9"))
    (True, False)
    >>> (
    ...     covers(ApproxDP(1, "1e-5"), GaussianCost("0.0718")),
    ...     covers(ApproxDP(1, "1e-5"), GaussianCost("0.0719")),
    ... )
    (True, False)
    """
    if not isinstance(cost, PureCost | GaussianCost | ConcentratedCost | SeriesCost):
        raise refuse("cost", cost, "PureCost, GaussianCost, ConcentratedCost or SeriesCost")
    if isinstance(cost, SeriesCost):
        return isinstance(budget, PureDP | ApproxDP | ZCDP | GDP) and cost.budget == budget
    if isinstance(budget, PureDP):
        return isinstance(cost, PureCost) and cost.epsilon <= budget.epsilon
    if isinstance(budget, ZCDP):
        return rho_of_cost(cost) <= budget.rho
    if isinstance(budget, GDP):
        if isinstance(cost, PureCost):
            return pure_is_gaussian(cost.epsilon, budget.mu_squared)
        return isinstance(cost, GaussianCost) and cost.mu_squared <= budget.mu_squared
    if not isinstance(budget, ApproxDP):
        raise refuse("budget", budget, "PureDP, ApproxDP, ZCDP or GDP")
    if isinstance(cost, PureCost):
        return cost.epsilon <= budget.epsilon
    if isinstance(cost, GaussianCost):
        return gaussian_is_private(budget.epsilon, cost.mu_squared, budget.delta)
    return zcdp_delta(cost.rho, budget.epsilon) <= budget.delta
