"""Which epsilon a rho amounts to at a delta, for people; ledgers add up rho."""

import math
from fractions import Fraction
from functools import lru_cache

from leastnoise._accounting import zcdp_delta
from leastnoise._check import Exact, exact, exact_positive, refuse
from leastnoise._fitting._fit import root_up
from leastnoise._fitting._gaussian import largest

_BITS = 34


def zcdp_epsilon(rho: Exact, delta: Exact) -> Fraction:
    """Give an epsilon for which every rho-zCDP mechanism is (epsilon, delta)-private, rounded up.

    Guarantees:
        ``zcdp_delta(rho, result) <= delta`` was seen to be true.

    Source: as `zcdp_delta`; the search begins at ``rho + 2 sqrt(rho log(1/delta))`` (Bun and Steinke, TCC 2016).
    """
    cost, limit = exact_positive("rho", rho), exact("delta", delta)
    if not 0 < limit < 1:
        raise refuse("delta", delta, "a number above 0 and below 1")
    return _least(cost, limit)


@lru_cache(maxsize=64)
def _least(cost: Fraction, limit: Fraction) -> Fraction:
    def proved(epsilon: Fraction) -> bool:
        return zcdp_delta(cost, epsilon) <= limit

    if proved(Fraction(0)):
        return Fraction(0)
    simple = cost + 2 * root_up(cost * Fraction(math.log(limit.denominator) - math.log(limit.numerator)))
    epsilon = simple * largest(lambda part: not proved(part * simple), _BITS)
    while not proved(epsilon):
        epsilon *= 1 + Fraction(1, 2 ** (_BITS - 1))
    return epsilon
