"""From rho-zCDP to (epsilon, delta) by the bound of Canonne, Kamath and Steinke, in directed rounding.

    log delta = (alpha - 1)(alpha rho - epsilon) + (alpha - 1) log(alpha - 1) - alpha log(alpha)       for every alpha > 1.

The best alpha is searched without rigour; the bound is then evaluated upwards at the alpha found, which is a short exact number.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

from leastnoise._accounting._rounding import HOPELESS, LEAST_DELTA, rounding, short_upper
from leastnoise._check import Exact, exact, exact_positive, refuse

# The search only: more digits would change the bound in second order.
_SEARCH = Context(prec=28, Emax=10**8, Emin=-(10**8))
_SHORT = Context(prec=20, Emax=10**8, Emin=-(10**8))
_MOST_STEPS = 4000


def zcdp_delta(rho: Exact, epsilon: Exact) -> Fraction:
    """Give a delta for which every rho-zCDP mechanism is (epsilon, delta)-private, rounded up.

    Args:
        rho: above 0.
        epsilon: at least 0.

    Returns:
        A fraction of 17 digits, at most 1, within a relative 1e-12 of the infimum of the bound over alpha; where that is below 1e-3000, the
        number 1e-3000.

    Raises:
        InputError: an argument is not a finite number in its range.

    Guarantees:
        An upper bound whatever alpha the search found.

    Source: Canonne, Kamath, Steinke, The discrete Gaussian for differential privacy (2020), the conversion from Renyi divergence.
    For continuous Gaussian noise the analytic delta is exact, and smaller.

    >>> float(zcdp_delta("0.05", 1))
    0.0003857091637444122
    """
    eps, cost = exact("epsilon", epsilon), exact_positive("rho", rho)
    if not eps >= 0:
        raise refuse("epsilon", epsilon, "a number of at least 0")
    near_eps, near_cost, c = _near(eps), _near(cost), _SEARCH

    def slope(beta: Decimal) -> Decimal:
        """Give the derivative of log delta in alpha = 1 + beta; it rises."""
        linear = c.multiply(c.add(c.multiply(Decimal(2), beta), Decimal(1)), near_cost)
        return c.add(c.subtract(linear, near_eps), c.subtract(c.ln(beta), c.ln(c.add(beta, Decimal(1)))))

    less_one = _root(slope)
    beta = Fraction(less_one)
    alpha = beta + 1
    exponent = beta * (alpha * cost - eps)
    if exponent <= -HOPELESS:
        return LEAST_DELTA  # as beta log(beta) - alpha log(alpha) < 0
    # Of beta log(beta) - alpha log(alpha) as many digits cancel as beta has before the point.
    way = rounding(50 + 2 * max(0, less_one.adjusted()))
    down, up = way.down, way.up
    rising = up.multiply(less_one, way.ln(beta)[1])
    falling = down.multiply(way.fraction(alpha)[0], way.ln(alpha)[0])
    log_delta = up.add(way.fraction(exponent)[1], up.subtract(rising, falling))
    if log_delta >= 0:
        return Fraction(1)
    return min(Fraction(1), short_upper(way.exp(Fraction(log_delta))[1]))


def _near(value: Fraction) -> Decimal:
    return _SEARCH.divide(Decimal(value.numerator), Decimal(value.denominator))


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
