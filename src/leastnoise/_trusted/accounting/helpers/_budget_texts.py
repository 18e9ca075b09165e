"""Write budgets and charges as text for people.

This file is not trusted: no decision depends on these texts.
"""

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from leastnoise._trusted.accounting._budget import ApproxDP, Budget, parameters_by_name
from leastnoise._trusted.accounting._charge import Charge, charge_of_budget
from leastnoise._trusted.check import readable

_SHOWN_DIGITS = 6  # of an amount that has no short exact form, as in `readable`


def format_amount(value: Fraction, *, up: bool) -> str:
    """Format an epsilon, delta, rho or mu squared, rounded up or down.

    The text is exact if the exact number is short. Otherwise the text has six digits; if the amount
    is above 1, six digits after the point. Small and large amounts are rounded in the requested
    direction.

    Args:
        value: the amount, at least 0.
        up: whether digits are rounded up; amounts that are left must be rounded down.

    >>> format_amount(Fraction(1, 3), up=True), format_amount(Fraction(2**70, 3**45), up=False)
    ('1/3', '0.399616')
    >>> (
    ...     format_amount(Fraction(1, 3**30), up=False),
    ...     format_amount(Fraction(1, 3 * 10**330), up=True),
    ... )
    ('4.85693e-15', '3.33334e-331')
    """
    text = readable(value)
    if not text.startswith("about"):
        return text
    parts = Decimal(value.numerator), Decimal(value.denominator)
    digits_before_point = Context(prec=1, rounding=ROUND_FLOOR).divide(*parts).adjusted() + 1
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    context = Context(prec=_SHOWN_DIGITS + max(0, digits_before_point), rounding=rounding)
    return str(context.divide(*parts).normalize(context)).lower()


def charge_text(budget: Budget, amount: Budget | Charge, *, up: bool = True) -> str:
    """Format a charge as text, with each parameter of the budget's class.

    Parameters that are zero are included.

    Args:
        budget: its definition determines which parameters are written.
        amount: the charge, or a budget of the same definition.
        up: whether digits are rounded up.

    >>> charge_text(ApproxDP(1, "1e-9"), Charge(epsilon=Fraction(1, 2)))
    'epsilon = 0.5 and delta = 0'
    """
    return _join_parts(amount, parameters_by_name(budget), up=up)


def spent_text(budget: Budget, spent: Charge) -> str:
    """Format a charge or a sum of charges as text, rounded up.

    Args:
        budget: the budget that paid.
        spent: the charge. If the budget is an (epsilon, delta) budget, only the parameters above
            zero are written.

    >>> spent_text(ApproxDP(1, "1e-6"), Charge(mu_squared=Fraction(1, 50)))
    'mu squared = 0.02'
    """
    names = list(parameters_by_name(budget))
    if isinstance(budget, ApproxDP):
        names = [name for name, number in parameters_by_name(spent).items() if number]
    return _join_parts(spent, names, up=True) or "nothing"


def left_text(budget: Budget, available: Charge) -> str:
    """Format the amount that is left of a budget as text, rounded down.

    Args:
        budget: the budget.
        available: the amount left. For an (epsilon, delta) budget the text states the amounts for
            a Gaussian and for a pure release.

    >>> left_text(ApproxDP(1, "1e-6"), Charge(epsilon=Fraction(1, 2), mu_squared=Fraction(1, 50)))
    'mu squared = 0.02 for Gaussian noise, or epsilon = 0.5 for a pure release'
    """
    if not isinstance(budget, ApproxDP):
        return charge_text(budget, available, up=False)
    if not (available.mu_squared or available.epsilon):
        return "nothing"
    mu_squared = format_amount(available.mu_squared, up=False)
    gaussian = f"mu squared = {mu_squared} for Gaussian noise"
    if available.delta:
        return f"{charge_text(budget, available, up=False)}, or {gaussian}"
    epsilon = format_amount(available.epsilon, up=False)
    return f"{gaussian}, or epsilon = {epsilon} for a pure release"


def limit_text(budget: Budget, period: str = "", share: str = "") -> str:
    """Format a budget, its period and its share as text, rounded down.

    Args:
        budget: the budget.
        period: the period after which the budget is renewed, such as "month"; "" if it never is.
        share: the name of the share that has this budget; "" for the whole budget.

    >>> limit_text(PureDP("1/2"), "month", "ann")
    'epsilon = 0.5 a month for ann'
    """
    text = charge_text(budget, charge_of_budget(budget), up=False)
    if period:
        text += f" a {period}"
    if share:
        text += f" for {share}"
    return text


def _join_parts(amount: Budget | Charge, names: Iterable[str], *, up: bool) -> str:
    """Format the named parameters of a charge or budget, joined by "and"."""
    numbers = parameters_by_name(amount)
    return " and ".join(
        f"{name.replace('_', ' ')} = {format_amount(numbers[name], up=up)}" for name in names
    )
