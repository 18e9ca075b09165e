"""Search for an order alpha with a nearly minimal delta bound for zCDP.

This file is not trusted: every order above 1 gives a valid bound.
"""

from decimal import Context, Decimal
from fractions import Fraction

# More digits would change the bound in second order.
_SEARCH_CONTEXT = Context(prec=28, Emax=10**8, Emin=-(10**8))
_SHORT_CONTEXT = Context(prec=20, Emax=10**8, Emin=-(10**8))
_MOST_STEPS = 4000


def nearly_best_alpha_minus_one(rho: Fraction, epsilon: Fraction) -> Decimal:
    """Return a value of alpha - 1 that nearly minimises the delta bound.

    The value agrees with the best one in about 13 digits. For extreme arguments the search ends
    early; any value is valid.
    """
    c = _SEARCH_CONTEXT
    near_eps, near_cost = (
        c.divide(Decimal(value.numerator), Decimal(value.denominator)) for value in (epsilon, rho)
    )

    def log_delta_slope(beta: Decimal) -> Decimal:
        """Return the derivative of log delta at alpha = 1 + beta; it rises with beta."""
        linear = c.multiply(c.add(c.multiply(Decimal(2), beta), Decimal(1)), near_cost)
        return c.add(
            c.subtract(linear, near_eps), c.subtract(c.ln(beta), c.ln(c.add(beta, Decimal(1))))
        )

    low = high = Decimal(1)
    if log_delta_slope(low) < 0:
        factor = Decimal(2)
    else:
        factor = Decimal("0.5")
    for _ in range(_MOST_STEPS):
        high = c.multiply(low, factor)
        if (log_delta_slope(high) < 0) != (factor > 1):
            break
        low = high
    for _ in range(45):
        middle = c.divide(c.add(low, high), Decimal(2))
        if (log_delta_slope(middle) < 0) == (factor > 1):
            low = middle
        else:
            high = middle
    return _SHORT_CONTEXT.plus(low)
