"""Compute the amount that a release is charged, and add up such charges.

Charges to a pure budget add up in epsilon, charges to a zCDP budget in rho, and charges to a GDP
budget in mu squared. Charges to an (epsilon, delta) budget also add up in mu squared: PROOFS-mu.md
has the argument.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, log10

from leastnoise._trusted.accounting._budget import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Json,
    PureDP,
    fraction_to_text,
    parameters_by_name,
    round_up,
)
from leastnoise._trusted.accounting._cost import (
    Cost,
    GaussianCost,
    PureCost,
    SeriesCost,
    covers,
    rho_of_cost,
)
from leastnoise._trusted.accounting._deltas import gaussian_is_private
from leastnoise._trusted.accounting._mu import (
    gaussian_epsilon,
    gaussian_mu_squared,
    pure_epsilon,
    pure_mu_squared,
)
from leastnoise._trusted.check import Exact, InputError, readable, refuse

_SMALLEST_DELTA = Fraction(1, 10**1000)  # of `gaussian_mu_squared`


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """An amount that is charged to a budget: epsilon, delta, rho and mu squared.

    Each parameter is a fraction of at least zero; a parameter that the budget's definition lacks is
    0. A charge to an (epsilon, delta) budget is of one of three kinds. A release that satisfies
    mu-GDP charges only mu squared. A pure release charges epsilon and mu squared, because it
    satisfies both guarantees. A release with its own delta, such as a search for categories,
    charges epsilon and delta.

    >>> Charge(epsilon=Fraction(1, 2))
    Charge(epsilon=Fraction(1, 2), delta=Fraction(0, 1), rho=Fraction(0, 1),
           mu_squared=Fraction(0, 1))
    """

    epsilon: Fraction = field(default=Fraction(0))
    delta: Fraction = field(default=Fraction(0))
    rho: Fraction = field(default=Fraction(0))
    mu_squared: Fraction = field(default=Fraction(0))

    def __post_init__(self) -> None:
        for name, value in parameters_by_name(self).items():
            if not isinstance(value, Fraction) or not value >= 0:
                raise refuse(name, value, "a Fraction of at least 0")

    def __str__(self) -> str:
        """Format the parameters above zero as text for readers."""
        parts = [
            f"{name.replace('_', ' ')} = {readable(number)}"
            for name, number in parameters_by_name(self).items()
            if number
        ]
        return ", ".join(parts) or "nothing"

    @property
    def is_pure(self) -> bool:
        """Whether this is the charge of a pure release to an (epsilon, delta) budget."""
        return self.epsilon > 0 and self.mu_squared > 0

    @property
    def has_own_delta(self) -> bool:
        """Whether this charge is summed as (epsilon, delta), not as mu squared (G3)."""
        return self.mu_squared == 0

    def is_within(self, limit: "Charge") -> bool:
        """Return whether no parameter of this charge exceeds the limit.

        >>> Charge(rho=Fraction(1)).is_within(Charge(rho=Fraction(2)))
        True
        """
        return not any(parameters_by_name(charge_shortfall(self, limit)).values())

    def to_json(self) -> Json:
        """Return the values for a JSON object; `charge_from_json` reads them.

        The key for mu squared is omitted if mu squared is 0.

        >>> Charge(rho=Fraction(1, 2)).to_json()
        {'epsilon': '0', 'delta': '0', 'rho': '1/2'}
        """
        return {
            name: fraction_to_text(name, number)
            for name, number in parameters_by_name(self).items()
            if number or name != "mu_squared"
        }


def charge_of_budget(budget: Budget) -> Charge:
    """Return the charge that uses up a whole budget.

    >>> str(charge_of_budget(ApproxDP(1, "1e-9")))
    'epsilon = 1, delta = 1e-9'
    """
    return Charge(**parameters_by_name(budget))


def charge(dataset_budget: Budget, declared_budget: Budget, cost: Cost) -> Charge:
    """Return the charge of a release to the budget of a data set.

    Args:
        dataset_budget: the budget of the data set; its definition determines which amounts are
            added up.
        declared_budget: the budget that the plan declares.
        cost: the exact cost of the plan.

    Returns:
        The charge, by the table below. It equals the declared budget and not the cost. The cost is
        slightly smaller, because noise scales are rounded up to short fractions. A ledger of such
        small differences would be hard to read and of no use. The only exceptions are costs that
        cannot be expressed by the parameters of the declared budget.

    Raises:
        InputError: the declared budget does not cover the cost, or a budget of the data set's
            definition cannot pay for a release of this kind.

    Guarantees:
        For every parameter that the budget adds up, the release satisfies the guarantee with the
        charged amount: epsilon-DP, mu-GDP, (epsilon, delta)-DP or rho-zCDP. `is_within_budget`
        determines whether charges together stay within a budget, also for releases that were chosen
        after earlier releases were seen.

    | budget   | pure cost                    | Gaussian cost    | series within (epsilon, delta) |
    |----------|------------------------------|------------------|--------------------------------|
    | PureDP   | epsilon                      | refused          | refused                        |
    | ApproxDP | epsilon and its mu squared   | mu squared       | (epsilon, delta)               |
    | GDP      | mu squared of epsilon        | mu squared       | refused                        |
    | ZCDP     | epsilon^2 / 2                | rho              | refused                        |

    The charged amounts are the declared amounts, with the following exceptions. A release that
    declares ApproxDP charges the mu squared or the rho of its cost. The amount is rounded up to 128
    bits. If a release with pure noise declares GDP, it charges the epsilon of its cost to an
    ApproxDP budget. The amount is rounded up in the same way. A series of steps charges the whole
    budget that it declares. Concentrated costs (discrete Gaussian noise) are charged to an ApproxDP
    budget like a series within (epsilon, delta). The reason is that zCDP implies no mu-GDP. Only a
    ZCDP budget accepts releases that declare ZCDP, and a PureDP budget accepts only releases that
    declare PureDP.

    >>> (
    ...     charge(PureDP(1), PureDP("1/3"), PureCost("1/3")).epsilon,
    ...     charge(ZCDP(1), PureDP(1), PureCost(1)).rho,
    ... )
    (Fraction(1, 3), Fraction(1, 2))
    >>> str(charge(ApproxDP(1, "1e-6"), ApproxDP(1, "1e-6"), GaussianCost("1/20")))
    'mu squared = 0.05'
    """
    if not covers(declared_budget, cost):
        raise InputError(
            f"The plan declares {declared_budget}, which is not proved to cover its cost, {cost}. "
            "Make the plan again."
        )
    limit = charge_of_budget(declared_budget)
    if isinstance(dataset_budget, ZCDP):
        if isinstance(declared_budget, ZCDP):
            return limit
        if isinstance(declared_budget, PureDP):
            return Charge(rho=rho_of_cost(PureCost(declared_budget.epsilon)))
        return Charge(rho=round_up(rho_of_cost(cost)))
    if isinstance(dataset_budget, PureDP):
        if not (isinstance(declared_budget, PureDP) and isinstance(cost, PureCost | SeriesCost)):
            raise InputError(
                "The data set has a PureDP budget, which only pure releases can be charged to; "
                f"the plan declares {declared_budget}. Plan with PureDP(epsilon), or set a ZCDP or "
                "ApproxDP budget for the data set."
            )
        return Charge(epsilon=limit.epsilon)
    if isinstance(declared_budget, ZCDP):
        raise InputError(
            f"The data set has {_with_article(dataset_budget)} budget, which adds up mu squared; "
            f"the plan declares {declared_budget}, which has no mu squared. Plan with "
            "ApproxDP(epsilon, delta) or GDP(mu_squared), or set a ZCDP budget for the data set."
        )
    amount = _charge_in_mu(declared_budget, cost)  # (G6)
    if isinstance(dataset_budget, ApproxDP):
        return amount
    if amount.has_own_delta:
        raise InputError(
            "The data set has a GDP budget, which has no delta; the plan declares "
            f"{declared_budget} for a release with its own delta. Plan with GDP(mu_squared) or "
            "PureDP(epsilon), or set an ApproxDP budget for the data set."
        )
    return Charge(mu_squared=amount.mu_squared)


def _with_article(budget: Budget) -> str:
    """Return the name of a budget's class with its article, as in "a GDP"."""
    name = type(budget).__name__
    if name.startswith("A"):
        return f"an {name}"
    return f"a {name}"


def _charge_in_mu(declared_budget: Budget, cost: Cost) -> Charge:
    """Return the charge to an (epsilon, delta) budget, which adds up mu squared."""
    if isinstance(declared_budget, PureDP):
        return Charge(
            epsilon=declared_budget.epsilon, mu_squared=pure_mu_squared(declared_budget.epsilon)
        )
    if isinstance(declared_budget, GDP):
        if isinstance(cost, PureCost):
            return Charge(epsilon=round_up(cost.epsilon), mu_squared=declared_budget.mu_squared)
        return Charge(mu_squared=declared_budget.mu_squared)
    if isinstance(cost, PureCost):
        epsilon = charge_of_budget(declared_budget).epsilon
        return Charge(epsilon=epsilon, mu_squared=pure_mu_squared(epsilon))
    if isinstance(cost, GaussianCost):
        return Charge(mu_squared=round_up(cost.mu_squared))
    return charge_of_budget(declared_budget)


def step_charge(shared_budget: Budget, declared_budget: Budget, cost: Cost) -> Charge:
    """Return the charge of a step, if the steps of a release share a budget.

    The result is the same as the result of `charge`, except within (epsilon, delta). Within
    (epsilon, delta), a step is charged its declared amount, so the epsilons and the deltas of the
    steps add up (theorem 6 of PROOFS-accounting.md).

    >>> str(step_charge(ApproxDP(1, "1e-6"), ApproxDP("1/2", "1e-7"), GaussianCost("1/100")))
    'epsilon = 0.5, delta = 1e-7'
    """
    amount = charge(shared_budget, declared_budget, cost)
    if not isinstance(shared_budget, ApproxDP):
        return amount
    if amount.is_pure:
        return Charge(epsilon=amount.epsilon)
    if isinstance(declared_budget, GDP):
        raise InputError(
            "Steps that share (epsilon, delta) must declare ApproxDP or PureDP; got a step that "
            f"declares {declared_budget}. Nothing was drawn."
        )
    return charge_of_budget(declared_budget)


def sum_charges(charges: Iterable[Charge]) -> Charge:
    """Add up charges exactly, parameter by parameter.

    >>> sum_charges([Charge(epsilon=Fraction(1, 10))] * 10).epsilon
    Fraction(1, 1)
    """
    summands = [parameters_by_name(numbers) for numbers in charges]
    return Charge(
        **{
            name: sum((numbers[name] for numbers in summands), Fraction(0))
            for name in parameters_by_name(Charge())
        }
    )


def unspent_charge(budget: Budget, spent: Charge) -> Charge:
    """Return the unspent amount of each parameter of a budget.

    No parameter is below zero.

    >>> unspent_charge(PureDP(1), Charge(epsilon=Fraction(1, 3))).epsilon
    Fraction(2, 3)
    """
    return charge_shortfall(charge_of_budget(budget), spent)


def charge_shortfall(requested: Charge, available: Charge) -> Charge:
    """Return the amount by which a request exceeds the amount available.

    No parameter is below zero.

    >>> str(charge_shortfall(Charge(rho=Fraction(1)), Charge(rho=Fraction(3, 4))))
    'rho = 0.25'
    """
    available_numbers = parameters_by_name(available)
    return Charge(
        **{
            name: max(Fraction(0), number - available_numbers[name])
            for name, number in parameters_by_name(requested).items()
        }
    )


def is_within_budget(budget: Budget, charges: Sequence[Charge]) -> bool:
    """Return whether releases with these charges provably satisfy a budget.

    Args:
        budget: the budget of the data set.
        charges: what `charge` returned for each release, in the order of payment.

    Returns:
        The result is True only if this is proved, even for releases that were chosen after the
        earlier releases were seen. The proof assumes that the result was True at each payment. For
        PureDP, ZCDP and GDP the sum of the charges is compared. For ApproxDP see PROOFS-mu.md, G4.

    >>> gaussian = Charge(mu_squared=Fraction("0.0276"))
    >>> [is_within_budget(ApproxDP(1, "1e-6"), [gaussian] * count) for count in (2, 3)]
    [True, False]
    """
    if not isinstance(budget, ApproxDP):
        return sum_charges(charges).is_within(charge_of_budget(budget))
    division = _divide_charges(charges)
    epsilon = budget.epsilon - division.summed.epsilon
    delta = budget.delta - division.summed.delta
    if epsilon < 0 or delta < 0 or division.has_late_delta:
        return False
    if not division.composed:
        return True
    spent = sum_charges(division.composed)
    if division.is_all_pure and spent.epsilon <= epsilon:
        return True
    # (G2): Squares of mu add up, even if a release was chosen after earlier outputs were seen.
    return gaussian_is_private(epsilon, spent.mu_squared, delta)


def has_late_delta(charges: Sequence[Charge]) -> bool:
    """Return whether a charge with its own delta follows a composed charge.

    No (epsilon, delta) budget of any size is proved to cover such charges (G4).

    >>> search = Charge(epsilon=Fraction(1, 10), delta=Fraction(1, 10**9))
    >>> gaussian = Charge(mu_squared=Fraction(1, 50))
    >>> has_late_delta([search, gaussian]), has_late_delta([gaussian, search])
    (False, True)
    """
    return _divide_charges(charges).has_late_delta


@dataclass(frozen=True, slots=True)
class _DividedCharges:
    """The charges to an (epsilon, delta) budget, divided into two groups.

    Attributes:
        summed: the sum of the epsilons and of the deltas of the first charges, up to the first
            charge without its own delta.
        composed: all later charges, in order; they add up as mu squared.
    """

    summed: Charge
    composed: tuple[Charge, ...]

    @property
    def has_late_delta(self) -> bool:
        """Whether a composed charge has its own delta, which no budget covers."""
        return any(amount.has_own_delta for amount in self.composed)

    @property
    def is_all_pure(self) -> bool:
        """Whether every composed charge belongs to a pure release."""
        return all(amount.is_pure for amount in self.composed)


def _divide_charges(charges: Sequence[Charge]) -> _DividedCharges:
    """Separate the charges summed as (epsilon, delta) from those composed in mu.

    The first charges are summed as (epsilon, delta) as long as each has its own delta. From the
    first charge without its own delta on, all charges are composed in mu. Which charges are in
    which group does not depend on the budget (G4).
    """
    count = 0
    while count < len(charges) and charges[count].has_own_delta:
        count += 1
    return _DividedCharges(sum_charges(charges[:count]), tuple(charges[count:]))


def left_of_budget(budget: Budget, charges: Sequence[Charge]) -> Charge:
    """Return how much of a budget the next release can spend, at least 0.

    Args:
        budget: the budget of the data set.
        charges: what `charge` returned for each release, in the order of payment.

    Returns:
        For ApproxDP, each parameter states the amount left for another kind of release. The mu
        squared is for a Gaussian release, and the epsilon is for a pure release. The epsilon and
        the delta together are for a release with its own delta, if such a release can be paid for.
        All amounts are rounded down. If no epsilon is left, nothing is left, although the remaining
        delta would pay for a Gaussian release with hardly any information.

    >>> some = left_of_budget(ApproxDP(1, "1e-6"), [Charge(mu_squared=Fraction("0.05"))])
    >>> round(float(some.mu_squared), 4), round(float(some.epsilon), 4), some.delta
    (0.006, 0.062, Fraction(0, 1))
    """
    if not isinstance(budget, ApproxDP):
        return unspent_charge(budget, sum_charges(charges))
    division = _divide_charges(charges)
    epsilon = budget.epsilon - division.summed.epsilon
    delta = budget.delta - division.summed.delta
    if epsilon <= 0 or not is_within_budget(budget, charges):
        return Charge()
    spent = sum_charges(division.composed)
    mu_squared = Fraction(0)
    if delta >= _SMALLEST_DELTA:
        mu_squared = max(Fraction(0), gaussian_mu_squared(epsilon, delta) - spent.mu_squared)
    pure_left = Fraction(0)
    if division.is_all_pure:
        pure_left = max(Fraction(0), epsilon - spent.epsilon)
    if division.composed and mu_squared > 0:
        pure_left = max(pure_left, _payable_epsilon(mu_squared))
    if division.composed:
        delta = Fraction(0)
    return Charge(epsilon=pure_left, delta=delta, mu_squared=mu_squared)


def _payable_epsilon(mu_squared: Fraction) -> Fraction:
    """Return nearly the largest epsilon that this mu squared can pay for.

    It is the epsilon of a pure release. `pure_mu_squared` rounds up, so the epsilon that
    `pure_epsilon` returns is lowered until its charge is at most the mu squared. The result is 0 if
    no charge is small enough.
    """
    epsilon = pure_epsilon(mu_squared)
    for _ in range(8):
        if pure_mu_squared(epsilon) <= mu_squared:
            return epsilon
        epsilon *= 1 - Fraction(1, 2**41)
    return Fraction(0)


def share_limit(budget: Budget, fraction: Exact) -> Budget:
    """Return a fraction of a budget as a budget of the same class.

    Args:
        budget: the whole budget.
        fraction: above 0 and at most 1, read exactly.

    Returns:
        A budget of the same definition. For an (epsilon, delta) budget, the result has the same
        delta. Its epsilon is the one for this fraction of the mu squared of the whole budget,
        rounded up to eight digits.

    Raises:
        InputError: the fraction is out of range, or so small that no epsilon is left.

    >>> share_limit(ApproxDP(1, "1e-6"), "1/12")
    ApproxDP(epsilon='26417179/100000000', delta='1/1000000')
    """
    part = budget.share(fraction)
    if not isinstance(budget, ApproxDP) or not isinstance(part, GDP):
        return part
    epsilon = gaussian_epsilon(part.mu_squared, budget.delta)
    if epsilon == 0:
        raise refuse(
            "the share of the budget",
            fraction,
            f"a larger fraction, because delta = {readable(budget.delta)} covers this whole share",
        )
    unit = Fraction(10) ** (floor(log10(epsilon)) - 7)
    return ApproxDP(ceil(epsilon / unit) * unit, budget.delta)


def spent_epsilon(budget: ApproxDP, charges: Sequence[Charge]) -> Fraction | None:
    """Return the total epsilon of releases at a budget's delta; None above it.

    The epsilon is computed after the releases, from what they were charged. If releases were chosen
    by looking at the outputs of earlier releases, they satisfy the budget. They need not satisfy
    this smaller epsilon, because it depends on the choices.

    Args:
        budget: the budget of the data set.
        charges: what `charge` returned for each release, in the order of payment.

    Returns:
        The epsilon, rounded up; None if the charges are not within the budget.

    >>> round(float(spent_epsilon(ApproxDP(1, "1e-6"), [Charge(mu_squared=Fraction(1, 50))])), 3)
    0.575
    """
    if not is_within_budget(budget, charges):
        return None
    division = _divide_charges(charges)
    spent = sum_charges(division.composed)
    delta = budget.delta - division.summed.delta
    bounds = [budget.epsilon]
    if division.is_all_pure:
        bounds.append(division.summed.epsilon + spent.epsilon)
    if spent.mu_squared and delta >= _SMALLEST_DELTA:
        bounds.append(division.summed.epsilon + gaussian_epsilon(spent.mu_squared, delta))
    return min(bounds)


def is_possible_charge(budget: Budget, amount: Charge) -> bool:
    """Return whether `charge` could have returned this amount for a budget.

    The amount must be above zero, and may have only parameters of the budget's definition.

    >>> (
    ...     is_possible_charge(PureDP(1), Charge(epsilon=Fraction(2))),
    ...     is_possible_charge(PureDP(1), Charge(rho=Fraction(2))),
    ... )
    (True, False)
    """
    numbers = parameters_by_name(amount)
    if isinstance(budget, ApproxDP):
        if amount.has_own_delta:
            return amount.epsilon > 0 and amount.rho == 0
        return amount.delta == 0 and amount.rho == 0
    (name,) = parameters_by_name(budget)
    return numbers[name] > 0 and not any(
        number for other_name, number in numbers.items() if other_name != name
    )
