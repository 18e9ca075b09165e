"""Where the bound on delta of zCDP is nearly least. Any order above 1 gives a bound, so nothing here need be believed."""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

# More digits would change the bound in second order.
_SEARCH = Context(prec=28, Emax=10**8, Emin=-(10**8))
_SHORT = Context(prec=20, Emax=10**8, Emin=-(10**8))
_MOST_STEPS = 4000


def near_best(rho: Fraction, epsilon: Fraction) -> Decimal:
    """Alpha - 1 near where log delta is least; above 0."""
    c = _SEARCH
    near_eps, near_cost = (c.divide(Decimal(value.numerator), Decimal(value.denominator)) for value in (epsilon, rho))

    def slope(beta: Decimal) -> Decimal:
        """Give the derivative of log delta in alpha = 1 + beta; it rises."""
        linear = c.multiply(c.add(c.multiply(Decimal(2), beta), Decimal(1)), near_cost)
        return c.add(c.subtract(linear, near_eps), c.subtract(c.ln(beta), c.ln(c.add(beta, Decimal(1)))))

    return _root(slope)


def _root(slope: Callable[[Decimal], Decimal]) -> Decimal:
    """Search where a rising function of beta > 0 crosses zero, to about 13 digits; give up quietly far out, as any beta is valid."""
    c = _SEARCH
    low = high = Decimal(1)
    factor = Decimal(2) if slope(low) < 0 else Decimal("0.5")
    for _ in range(_MOST_STEPS):
        high = c.multiply(low, factor)
        if (slope(high) < 0) != (factor > 1):
            break
        low = high
    for _ in range(45):
        middle = c.divide(c.add(low, high), Decimal(2))
        if (slope(middle) < 0) == (factor > 1):
            low = middle
        else:
            high = middle
    return _SHORT.plus(low)
