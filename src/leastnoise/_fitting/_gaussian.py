"""How little Gaussian noise an epsilon and a delta allow; what a plan costs is computed anew by the kernel, whatever this finds."""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from leastnoise._accounting import gaussian_is_private
from leastnoise._check import Exact, exact, refuse


def gaussian_mu_squared(epsilon: Exact, delta: Exact) -> Fraction:
    """Give the largest mu squared that an (epsilon, delta) budget covers, rounded down.

    Guarantees:
        ``gaussian_is_private(epsilon, result, delta)`` was seen to be true.

    Source: Balle and Wang (ICML 2018), theorem 8; Dong, Roth, Su (JRSS-B 2022), corollary 2.13.
    """
    eps = exact("epsilon", epsilon)
    if not eps >= 0:
        raise refuse("epsilon", epsilon, "a number of at least 0")
    limit = exact("delta", delta)
    if not Fraction(1, 10**1000) <= limit < 1:
        raise refuse("delta", delta, "at least 1e-1000 and below 1 for Gaussian noise", "Choose for example '1e-9', or PureDP.")
    return _mu_squared(eps, limit)


@lru_cache(maxsize=256)
def _mu_squared(epsilon: Fraction, delta: Fraction) -> Fraction:
    return largest(lambda square: gaussian_is_private(epsilon, square, delta))


def largest(accepts: Callable[[Fraction], bool], bits: int = 44) -> Fraction:
    """Find the largest dyadic number that a predicate accepts, which is true for small numbers and false for large ones."""
    low = Fraction(1)
    if accepts(low):
        while accepts(2 * low):
            low *= 2
    else:
        while not accepts(low):
            low /= 2
    step = low / 2
    for _ in range(bits - 1):
        if accepts(low + step):
            low += step
        step /= 2
    return low
