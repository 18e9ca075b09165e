"""The bound for keys found by noisy counts against the chance itself, in many digits."""

from fractions import Fraction

import mpmath
import pytest

from leastnoise._accounting import ApproxDP, KeyRule, Noise, Privacy, keys_are_private
from leastnoise._accounting._rounding import LEAST_DELTA

RULES = [(Fraction(scale, 7), threshold) for scale in range(2, 62) for threshold in (2, 5, 19, 33)]


def chance(scale: Fraction, threshold: int, most: int) -> mpmath.mpf:
    """That one of so many keys of one unit alone gets out, or that noise leaves its numbers."""
    one = mpmath.exp(-mpmath.mpf(threshold - 1) / scale) / (1 + mpmath.exp(-1 / mpmath.mpf(scale)))
    return 1 - (1 - one - mpmath.mpf(LEAST_DELTA.numerator) / LEAST_DELTA.denominator) ** most


@pytest.mark.parametrize("most", [1, 2, 7])
def test_a_delta_below_the_chance_is_not_promised_and_one_above_is(most: int) -> None:
    """To 46 digits; what is rounded is rounded upwards, and the delta of the budget downwards."""
    with mpmath.workdps(250):
        for scale, threshold in RULES:
            true, privacy = chance(scale, threshold, most), Privacy(ApproxDP(4 * most, "1/2"), unit_column="who", max_rows=most)
            rule = KeyRule(noise=Noise.DISCRETE_LAPLACE, scale=scale, threshold=threshold)
            for change, private in ((-(mpmath.mpf(10) ** -60), False), (mpmath.mpf(10) ** -46, True)):
                delta = Fraction(int(true * (1 + change) * 10**220), 10**220)
                if delta < 1:
                    assert keys_are_private(rule, privacy.within(ApproxDP(4 * most, delta))) is private, (scale, threshold)
