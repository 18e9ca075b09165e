"""The least delta of Gaussian noise, as the proof bounds it: what `gaussian_is_private` is compared with."""

from decimal import Decimal
from fractions import Fraction

from leastnoise._accounting._deltas import (
    _FIRST_DIGITS,
    _MOST_DIGITS,
    LEAST_DELTA,
    _arguments,
    _delta_between,
    _hopeless,
    rounding,
    short_upper,
)
from leastnoise._check import Exact


def gaussian_delta(epsilon: Exact, mu_squared: Exact) -> Fraction:
    """A fraction of 17 digits in [delta, delta (1 + 1e-15)], at most 1; where delta is below 1e-3000, the number 1e-3000."""
    eps, square = _arguments(epsilon, mu_squared)
    if _hopeless(eps, square):
        return LEAST_DELTA if 2 * eps > square else Fraction(1)
    digits = _FIRST_DIGITS
    while True:
        low, high = _delta_between(eps, square, digits)
        up = rounding(digits).up
        if up.subtract(high, low) <= up.multiply(high, Decimal("1e-17")) or digits >= _MOST_DIGITS:
            return min(short_upper(high), Fraction(1))
        digits *= 2
