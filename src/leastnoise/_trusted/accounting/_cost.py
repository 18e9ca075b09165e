"""Compute costs and charges, and check that a budget covers a cost.

Plans incur costs by their integer queries; a ledger adds up charges.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from leastnoise._trusted.accounting._budget import (
    ZCDP,
    ApproxDP,
    Budget,
    Json,
    PureDP,
    fraction_to_text,
    parameters,
    round_up,
)
from leastnoise._trusted.accounting._deltas import gaussian_is_private, zcdp_delta
from leastnoise._trusted.check import InputError, exact_positive, readable, refuse


@dataclass(frozen=True, slots=True)
class _Amount:
    """The common base of the costs of noise: one exact number above 0."""

    kind: ClassVar[str]
    noise: ClassVar[str]

    def __post_init__(self) -> None:
        for name, value in parameters(self).items():
            object.__setattr__(self, name, exact_positive(name, value))

    def __str__(self) -> str:
        ((name, value),) = parameters(self).items()
        return f"{name.replace('_', ' ')} = {readable(value)} ({self.noise} noise)"

    def to_json(self) -> Json:
        """Return the values for a JSON object; `cost_from_json` reads them.

        >>> PureCost(1).to_json(), GaussianCost(1).to_json()
        ({'kind': 'pure', 'epsilon': '1'}, {'kind': 'gaussian', 'mu_squared': '1'})
        """
        return {
            "kind": self.kind,
            **{name: fraction_to_text(name, value) for name, value in parameters(self).items()},
        }


@dataclass(frozen=True, slots=True)
class PureCost(_Amount):
    """The cost of discrete Laplace noise, epsilon.

    It is the largest ``sum_i |A_ij| / s_i`` over the cells j.

    >>> PureCost("1/3").epsilon
    Fraction(1, 3)
    """

    kind = "pure"
    noise = "discrete Laplace"
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class GaussianCost(_Amount):
    """The cost of rounded continuous Gaussian noise, mu squared.

    It is the largest ``sum_i A_ij^2 / sigma_i^2`` over the cells j. The mechanism is exactly
    mu-GDP, because rounding an integer plus a continuous Gaussian is post-processing.

    >>> GaussianCost("1/4").mu_squared
    Fraction(1, 4)
    """

    kind = "gaussian"
    noise = "Gaussian"
    mu_squared: Fraction


@dataclass(frozen=True, slots=True)
class ConcentratedCost(_Amount):
    """The cost of discrete Gaussian noise, rho.

    It is the largest ``sum_i A_ij^2 / (2 sigma_i^2)`` over the cells j.

    >>> ConcentratedCost("1/2").rho
    Fraction(1, 2)
    """

    kind = "concentrated"
    noise = "discrete Gaussian"
    rho: Fraction


@dataclass(frozen=True, slots=True)
class SeriesCost:
    """The cost of a series of adaptive steps: a whole budget.

    Each step is chosen after the outcomes of the steps before it, and the steps share the budget.
    The kernel keeps the charges of the steps within it (theorem 6 of PROOFS-accounting.md).

    Args:
        budget: the budget that the whole series satisfies.

    Raises:
        InputError: ``budget`` is no budget.

    >>> str(SeriesCost(PureDP(1)))
    'a series of steps within epsilon = 1'
    """

    budget: Budget

    def __post_init__(self) -> None:
        if not isinstance(self.budget, PureDP | ApproxDP | ZCDP):
            raise refuse(
                "budget", self.budget, "PureDP(epsilon), ApproxDP(epsilon, delta) or ZCDP(rho)"
            )

    def __str__(self) -> str:
        return f"a series of steps within {', '.join(f'{name} = {readable(number)}' for name, number in parameters(self.budget).items())}"

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
        return 1 if self is Noise.DISCRETE_LAPLACE else 2

    def cost(self, distance: Fraction) -> Cost:
        """Return the cost of queries with a given distance between neighbours.

        The distance is the largest ``|c - c'|_p^p`` of the answers over their noise scales, with p
        = ``norm``.

        Args:
            distance: the distance; exact, above 0.

        >>> Noise.DISCRETE_GAUSSIAN.cost(Fraction(1))
        ConcentratedCost(rho=Fraction(1, 2))
        """
        if self is Noise.DISCRETE_LAPLACE:
            return PureCost(distance)
        if self is Noise.ROUNDED_GAUSSIAN:
            return GaussianCost(distance)
        return ConcentratedCost(distance / 2)


def rho_of(cost: Cost) -> Fraction:
    """Return the least known rho of a mechanism of this cost, exactly.

    It is ``epsilon^2 / 2``, ``mu^2 / 2`` or rho itself.

    Raises:
        InputError: a series within (epsilon, delta), for which none is known.

    Source: Bun and Steinke (TCC 2016), proposition 1.4 (pure) and lemma 2.4 (Gaussian).

    >>> rho_of(PureCost(1)), rho_of(GaussianCost("1/2"))
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
    return cost.budget.rho


def covers(budget: Budget, cost: Cost) -> bool:
    """Tell whether every mechanism of this cost is proved to satisfy the budget.

    Args:
        budget: the promised budget.
        cost: the cost of the mechanism.

    Returns:
        True only where it is proved; False where it is false, or (within a relative 1e-12 of the
        boundary) not decided.

    Raises:
        InputError: one of the two is of another class.

    Guarantees:
        All comparisons are between exact fractions, one side possibly a proved upper bound; see
        PROOFS-accounting.md.

    Source: `gaussian_is_private` and `zcdp_delta` name theirs.

    >>> covers(PureDP(1), PureCost(1)), covers(PureDP(1), GaussianCost("1e-9"))
    (True, False)
    >>> covers(ApproxDP(1, "1e-5"), GaussianCost("0.0718")), covers(ApproxDP(1, "1e-5"), GaussianCost("0.0719"))
    (True, False)
    """
    if not isinstance(cost, PureCost | GaussianCost | ConcentratedCost | SeriesCost):
        raise refuse("cost", cost, "PureCost, GaussianCost, ConcentratedCost or SeriesCost")
    if isinstance(cost, SeriesCost):
        return isinstance(budget, PureDP | ApproxDP | ZCDP) and cost.budget == budget
    if isinstance(budget, PureDP):
        return isinstance(cost, PureCost) and cost.epsilon <= budget.epsilon
    if isinstance(budget, ZCDP):
        return rho_of(cost) <= budget.rho
    if not isinstance(budget, ApproxDP):
        raise refuse("budget", budget, "PureDP, ApproxDP or ZCDP")
    if isinstance(cost, PureCost):
        return cost.epsilon <= budget.epsilon
    if isinstance(cost, GaussianCost):
        return gaussian_is_private(budget.epsilon, cost.mu_squared, budget.delta)
    return zcdp_delta(cost.rho, budget.epsilon) <= budget.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """An amount of a budget: epsilon, delta and rho.

    Each is a fraction of at least zero; parameters that the definition does not have are 0.

    >>> Charge(epsilon=Fraction(1, 2))
    Charge(epsilon=Fraction(1, 2), delta=Fraction(0, 1), rho=Fraction(0, 1))
    """

    epsilon: Fraction = field(default=Fraction(0))
    delta: Fraction = field(default=Fraction(0))
    rho: Fraction = field(default=Fraction(0))

    def __post_init__(self) -> None:
        for name, value in parameters(self).items():
            if not isinstance(value, Fraction) or not value >= 0:
                raise refuse(name, value, "a Fraction of at least 0")

    def __str__(self) -> str:
        """Write the parts above zero for people."""
        return (
            ", ".join(
                f"{name} = {readable(number)}"
                for name, number in parameters(self).items()
                if number
            )
            or "nothing"
        )

    def is_within(self, limit: "Charge") -> bool:
        """Tell whether no part of this charge exceeds that part of a limit.

        >>> Charge(rho=Fraction(1)).is_within(Charge(rho=Fraction(2)))
        True
        """
        return not any(parameters(missing(self, limit)).values())

    def to_json(self) -> Json:
        """Return the values for a JSON object; `charge_from_json` reads them.

        >>> Charge(rho=Fraction(1, 2)).to_json()
        {'epsilon': '0', 'delta': '0', 'rho': '1/2'}
        """
        return {name: fraction_to_text(name, number) for name, number in parameters(self).items()}


def charge_text(budget: Budget, amount: Budget | Charge) -> str:
    """Write a charge for people, with every part of the budget's definition.

    Parts that are zero are included.

    Args:
        budget: decides which parts are written.
        amount: the charge, or a budget of the same definition.

    >>> charge_text(ApproxDP(1, "1e-9"), Charge(epsilon=Fraction(1, 2)))
    'epsilon = 0.5 and delta = 0'
    """
    numbers = parameters(amount)
    return " and ".join(f"{name} = {readable(numbers[name])}" for name in parameters(budget))


def whole_budget(budget: Budget) -> Charge:
    """Return the charge that would use a budget up.

    >>> str(whole_budget(ApproxDP(1, "1e-9")))
    'epsilon = 1, delta = 1e-9'
    """
    return Charge(**parameters(budget))


def charge(budget: Budget, declared: Budget, cost: Cost) -> Charge:
    """Compute what a release takes from the budget of a data set.

    Args:
        budget: the budget of the data set; its definition decides what is added up.
        declared: the budget that the plan declares.
        cost: the exact cost of the plan.

    Returns:
        The charge: see the table. It is the declared budget and not the cost, which is a little
        less because scales are rounded up to short fractions: a ledger of such differences would be
        hard to read and of no use.

    Raises:
        InputError: the declared budget does not cover the cost, or the definition of the data set's
            budget cannot hold such a release.

    Guarantees:
        The release satisfies the charge read as a budget: epsilon-DP, (epsilon, delta)-DP or
        rho-zCDP. The sum of charges is then valid for releases that were chosen after seeing
        earlier ones (PROOFS-accounting.md, theorem 6).

    | budget   | pure cost       | Gaussian cost                 | concentrated cost             |
    |----------|-----------------|-------------------------------|-------------------------------|
    | PureDP   | epsilon         | refused                       | refused                       |
    | ApproxDP | (epsilon, 0)    | (epsilon, delta)              | (epsilon, delta)              |
    | ZCDP     | epsilon^2 / 2   | rho                           | rho                           |

    The amounts are the declared ones, with one exception: a release that declared ApproxDP charges
    a ZCDP budget with the rho of its cost, rounded up to 128 bits. Pure noise is charged no delta.
    A series of steps is charged like a pure cost if it declares PureDP, and with all that it
    declares otherwise; under ZCDP it cannot declare ApproxDP. A budget of ApproxDP refuses releases
    that declare ZCDP, and one of PureDP those that declare ApproxDP or ZCDP.

    >>> charge(PureDP(1), PureDP("1/3"), PureCost("1/3")).epsilon, charge(ZCDP(1), PureDP(1), PureCost(1)).rho
    (Fraction(1, 3), Fraction(1, 2))
    """
    if not covers(declared, cost):
        raise InputError(
            f"The plan declares {declared}, which is not proved to cover its cost, {cost}. Make "
            "the plan again."
        )
    limit = whole_budget(declared)
    if isinstance(budget, ZCDP):
        if isinstance(declared, ZCDP):
            return limit
        return Charge(
            rho=rho_of(PureCost(declared.epsilon))
            if isinstance(declared, PureDP)
            else round_up(rho_of(cost))
        )
    if isinstance(budget, PureDP):
        if not (isinstance(declared, PureDP) and isinstance(cost, PureCost | SeriesCost)):
            raise InputError(
                "The data set has a PureDP budget, which only pure releases can be charged to; "
                f"the plan declares {declared}. Plan with PureDP(epsilon), or set a ZCDP or "
                "ApproxDP budget for the data set."
            )
        return Charge(epsilon=limit.epsilon)
    if isinstance(declared, ZCDP):
        raise InputError(
            "The data set has an ApproxDP budget, which adds up (epsilon, delta); the plan "
            f"declares {declared}. Plan with ApproxDP(epsilon, delta), or set a ZCDP budget for "
            "the data set, which adds up many Gaussian releases more tightly."
        )
    if isinstance(cost, PureCost) or isinstance(declared, PureDP):
        return Charge(epsilon=limit.epsilon)
    return limit


def total(charge_list: Iterable[Charge]) -> Charge:
    """Add charges up, exactly.

    >>> total([Charge(epsilon=Fraction(1, 10))] * 10).epsilon
    Fraction(1, 1)
    """
    summands = [parameters(numbers) for numbers in charge_list]
    return Charge(
        **{
            name: sum((numbers[name] for numbers in summands), Fraction(0))
            for name in parameters(Charge())
        }
    )


def left(budget: Budget, spent: Charge) -> Charge:
    """Return the part of a budget that is not spent.

    No part is below zero.

    >>> left(PureDP(1), Charge(epsilon=Fraction(1, 3))).epsilon
    Fraction(2, 3)
    """
    return missing(whole_budget(budget), spent)


def missing(requested: Charge, available: Charge) -> Charge:
    """Return the amount by which a request exceeds what is available.

    No part is below zero.

    >>> str(missing(Charge(rho=Fraction(1)), Charge(rho=Fraction(3, 4))))
    'rho = 0.25'
    """
    available_numbers = parameters(available)
    return Charge(
        **{
            name: max(Fraction(0), number - available_numbers[name])
            for name, number in parameters(requested).items()
        }
    )


def is_charge_of(budget: Budget, amount: Charge) -> bool:
    """Tell whether `charge` could have returned this amount for a budget.

    The amount must be above zero, with no part that the definition does not have.

    >>> is_charge_of(PureDP(1), Charge(epsilon=Fraction(2))), is_charge_of(PureDP(1), Charge(rho=Fraction(2)))
    (True, False)
    """
    budgeted = parameters(budget)
    numbers = parameters(amount)
    return numbers[next(iter(budgeted))] > 0 and not any(
        number for name, number in numbers.items() if name not in budgeted
    )
