"""Charges: what a ledger adds up, in the definition of the budget set for its data set."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from leastnoise._accounting._budget import ZCDP, Budget, Json, PureDP, fields_of, parameters
from leastnoise._accounting._cost import Cost, PureCost, SeriesCost, covers, rho_of
from leastnoise._accounting._fractions import fraction_from_text, fraction_to_text, readable, round_up
from leastnoise._check import InputError, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """An amount of a budget: epsilon, delta and rho, each a fraction of at least zero; those foreign to the definition are 0.

    >>> Charge(epsilon=Fraction(1, 3)) + Charge(epsilon=Fraction(1, 6))
    Charge(epsilon=Fraction(1, 2), delta=Fraction(0, 1), rho=Fraction(0, 1))
    """

    epsilon: Fraction = field(default=Fraction(0))
    delta: Fraction = field(default=Fraction(0))
    rho: Fraction = field(default=Fraction(0))

    def __post_init__(self) -> None:
        for name, value in parameters(self).items():
            if not isinstance(value, Fraction) or not value >= 0:
                raise refuse(name, value, "a Fraction of at least 0")

    def __add__(self, other: "Charge") -> "Charge":
        return total((self, other))

    def __str__(self) -> str:
        """Write the parts above zero for people.

        >>> str(Charge(epsilon=Fraction(1), delta=Fraction(1, 10**9)))
        'epsilon = 1, delta = 1e-9'
        """
        return ", ".join(f"{name} = {readable(part)}" for name, part in parameters(self).items() if part) or "nothing"

    def within(self, other: "Charge") -> bool:
        """Tell whether no part of this charge is above that part of the other.

        >>> Charge(rho=Fraction(1)).within(Charge(rho=Fraction(2)))
        True
        """
        return not any(parameters(missing(self, other)).values())

    def to_json(self) -> Json:
        """Give the values for a JSON object; `charge_from_json` reads them back.

        >>> Charge(rho=Fraction(1, 2)).to_json()
        {'epsilon': '0', 'delta': '0', 'rho': '1/2'}
        """
        return {name: fraction_to_text(name, part) for name, part in parameters(self).items()}


def charge_from_json(data: object) -> Charge:
    """Read a charge back from the values `Charge.to_json` gave.

    Raises:
        InputError: a missing or superfluous key, or a number that is not an exact fraction of at least zero.

    >>> charge_from_json({"epsilon": "1/3", "delta": "0", "rho": "0"}).epsilon
    Fraction(1, 3)
    """
    fields = fields_of("a charge", data, {*parameters(Charge())})
    return Charge(**{name: fraction_from_text(name, value) for name, value in fields.items()})


def whole_budget(budget: Budget) -> Charge:
    """Give the charge that would use a budget up.

    >>> str(whole_budget(ApproxDP(1, "1e-9")))
    'epsilon = 1, delta = 1e-9'
    """
    return Charge(**parameters(budget))


def charge(budget: Budget, declared: Budget, cost: Cost) -> Charge:
    """Compute what a release takes from the budget of a data set.

    Args:
        budget: the budget of the data set; its definition decides what is added up.
        declared: what the plan of the release promises.
        cost: what the plan was found to spend.

    Returns:
        The charge: see the table. It is what was declared, never less than the cost: scales are rounded up to short fractions, so a plan
        costs a hair less than its budget, and a ledger that kept such hairs would be hard to read and useful to nobody.

    Raises:
        InputError: the declared budget does not cover the cost, or the definition of the data set's budget cannot hold such a release.

    Guarantees:
        The release satisfies the charge read as a budget: epsilon-DP, (epsilon, delta)-DP or rho-zCDP. The sum of charges is then valid for
        releases that were chosen after seeing earlier ones (PROOFS-accounting.md, theorem 6).

    | budget   | pure cost       | Gaussian cost                 | concentrated cost             |
    |----------|-----------------|-------------------------------|-------------------------------|
    | PureDP   | epsilon         | refused                       | refused                       |
    | ApproxDP | (epsilon, 0)    | (epsilon, delta)              | (epsilon, delta)              |
    | ZCDP     | epsilon^2 / 2   | rho                           | rho                           |

    A series of steps is charged like a pure cost if it declares PureDP, and with all of its declared parts otherwise; under ZCDP it cannot
    declare ApproxDP. All are the declared ones; a release that declared ApproxDP charges a ZCDP budget with the rho of its cost, rounded
    up to 128 bits, and delta is left out of a pure cost because pure noise never needs it. Under ApproxDP a release that declared ZCDP is
    refused, and so is one under PureDP that declared ApproxDP or ZCDP.

    >>> charge(PureDP(1), PureDP("1/3"), PureCost("1/3")).epsilon, charge(ZCDP(1), PureDP(1), PureCost(1)).rho
    (Fraction(1, 3), Fraction(1, 2))
    """
    if not covers(declared, cost):
        raise InputError(f"The plan declares {declared}, which is not proved to cover its cost, {cost}. Make the plan again.")
    limit = whole_budget(declared)
    if isinstance(budget, ZCDP):
        if isinstance(declared, ZCDP):
            return limit
        return Charge(rho=rho_of(PureCost(declared.epsilon)) if isinstance(declared, PureDP) else round_up(rho_of(cost)))
    if isinstance(budget, PureDP):
        if not (isinstance(declared, PureDP) and isinstance(cost, PureCost | SeriesCost)):
            raise InputError(
                f"The data set has a PureDP budget, which only pure releases can be charged to; the plan declares {declared}. "
                "Plan with PureDP(epsilon), or set a ZCDP or ApproxDP budget for the data set."
            )
        return Charge(epsilon=limit.epsilon)
    if isinstance(declared, ZCDP):
        raise InputError(
            f"The data set has an ApproxDP budget, which adds up (epsilon, delta); the plan declares {declared}. "
            "Plan with ApproxDP(epsilon, delta), or set a ZCDP budget for the data set, which adds many Gaussian releases up more tightly."
        )
    if isinstance(cost, PureCost) or isinstance(declared, PureDP):
        return Charge(epsilon=limit.epsilon)
    return limit


def total(charges: Iterable[Charge]) -> Charge:
    """Add charges up, exactly.

    >>> total([Charge(epsilon=Fraction(1, 10))] * 10).epsilon
    Fraction(1, 1)
    """
    # Part by part and not by +, to check each part of the sum once only.
    listed = [parameters(one) for one in charges]
    return Charge(**{name: sum((one[name] for one in listed), Fraction(0)) for name in parameters(Charge())})


def left(budget: Budget, spent: Charge) -> Charge:
    """Give what is left of a budget; no part is below zero.

    >>> left(PureDP(1), Charge(epsilon=Fraction(1, 3))).epsilon
    Fraction(2, 3)
    """
    return missing(whole_budget(budget), spent)


def missing(requested: Charge, available: Charge) -> Charge:
    """Give by how much a request exceeds what is available; no part is below zero.

    >>> str(missing(Charge(rho=Fraction(1)), Charge(rho=Fraction(3, 4))))
    'rho = 0.25'
    """
    there = parameters(available)
    return Charge(**{name: max(Fraction(0), part - there[name]) for name, part in parameters(requested).items()})


def charge_text(budget: Budget, amount: Charge) -> str:
    """Write a charge for people, with every part that the definition of the budget has, also those that are zero.

    >>> charge_text(ApproxDP(1, "1e-9"), Charge(epsilon=Fraction(1, 2)))
    'epsilon = 0.5 and delta = 0'
    """
    parts = parameters(amount)
    return " and ".join(f"{name} = {readable(parts[name])}" for name in parameters(budget))


def is_charge_of(budget: Budget, amount: Charge) -> bool:
    """Tell whether a charge could have come from `charge` for this budget: above zero, and no part that its definition does not have.

    >>> is_charge_of(PureDP(1), Charge(epsilon=Fraction(2))), is_charge_of(PureDP(1), Charge(rho=Fraction(2)))
    (True, False)
    """
    own, parts = parameters(budget), parameters(amount)
    return parts[next(iter(own))] > 0 and not any(part for name, part in parts.items() if name not in own)
