"""The delta of keys found by noisy counts, against the probability in many digits."""

import math
from fractions import Fraction

import mpmath
import pytest

from leastnoise._trusted.accounting import (
    LEAST_DELTA,
    ApproxDP,
    KeyRule,
    Noise,
    Privacy,
    gaussian_mu_squared,
    keys_are_private,
)

RULES = [
    (Fraction(scale, 7), threshold) for scale in range(2, 62, 3) for threshold in (2, 5, 19, 33)
]


def chance(scale, threshold, most):
    """Bound the probability that one of a unit's keys is released, or noise leaves its range."""
    chance_of_key = mpmath.exp(-mpmath.mpf(threshold - 1) / scale) / (
        1 + mpmath.exp(-1 / mpmath.mpf(scale))
    )
    return most * (chance_of_key + mpmath.mpf(LEAST_DELTA.numerator) / LEAST_DELTA.denominator)


@pytest.mark.parametrize("most", [1, 2, 7])
def test_delta_threshold_is_sharp(most):
    """Compare 46 digits; delta is rounded up and the budget's delta down."""
    with mpmath.workdps(250):
        for scale, threshold in RULES:
            true = chance(scale, threshold, most)
            privacy = Privacy(ApproxDP(4 * most, "1/2"), unit_column="who", max_rows=most)
            rule = KeyRule(noise=Noise.DISCRETE_LAPLACE, scale=scale, threshold=threshold)
            for change, private in (
                (-(mpmath.mpf(10) ** -60), False),
                (mpmath.mpf(10) ** -46, True),
            ):
                delta = Fraction(int(true * (1 + change) * 10**220), 10**220)
                if delta < 1:
                    assert (
                        keys_are_private(rule, privacy.within(ApproxDP(4 * most, delta))) is private
                    ), (scale, threshold)


def gaussian_deltas(scale, threshold, epsilon, most):
    """Return, by number of the unit's own keys, the noise's delta plus their release chances."""
    rare = mpmath.mpf(LEAST_DELTA.numerator) / LEAST_DELTA.denominator
    out = (
        mpmath.erfc(
            (threshold - mpmath.mpf(3) / 2)
            / (mpmath.mpf(scale.numerator) / scale.denominator)
            / mpmath.sqrt(2)
        )
        / 2
        + rare
    )
    bounds = []
    for own_keys in range(most + 1):
        mu = mpmath.sqrt(most - own_keys) * scale.denominator / scale.numerator
        noise = (
            mpmath.ncdf(mu / 2 - epsilon / mu)
            - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
            if mu
            else mpmath.mpf(0)
        )
        bounds.append(noise + out * own_keys)
    return bounds


# Of 65 to 73 keys, the first stretch of several, the worst is its end, its beginning, or none of
# it.
CASES = (
    [(5, 20, most) for most in (1, 7, 64, 65, 66, 73, 74, 80)]
    + [(15, 80, most) for most in (64, 73, 100)]
    + [(300, 1400, 73)]
)


@pytest.mark.parametrize(("scale", "threshold", "most"), CASES)
def test_gaussian_search_is_private_for_any_key_count(scale, threshold, most):
    """Beyond 64 keys the bound may need a larger delta than the true one, never a smaller one."""
    rule = KeyRule(noise=Noise.ROUNDED_GAUSSIAN, scale=Fraction(scale), threshold=threshold)
    with mpmath.workdps(60):
        true = max(gaussian_deltas(rule.scale, threshold, 4, most))
        # The delta of the noise is kept to 17 digits.
        tolerance = mpmath.mpf(10) ** -16 if most <= 64 else mpmath.mpf(1) / 2
        for change, private in ((-(mpmath.mpf(10) ** -30), False), (tolerance, True)):
            delta = Fraction(int(true * (1 + change) * 10**55), 10**55)
            assert (
                keys_are_private(
                    rule, Privacy(ApproxDP(4, delta), unit_column="who", max_rows=most)
                )
                is private
            )


@pytest.mark.parametrize("most", [1, 3])
def test_replaced_units_differ_in_twice_the_keys(most):
    """One unit removes its keys and another adds as many; no key of only one unit is released."""

    def is_private(neighbours, noise, scale, budget):
        rule = KeyRule(noise=noise, scale=scale, threshold=10**9)
        return keys_are_private(rule, Privacy(budget, neighbours, "who", most))

    for neighbours, keys in (("add_remove", most), ("replace", 2 * most)):
        for epsilon, private in ((keys, True), (keys - Fraction(1, 1000), False)):
            budget = ApproxDP(epsilon, "1e-9")
            is_accepted = is_private(neighbours, Noise.DISCRETE_LAPLACE, Fraction(1), budget)
            assert is_accepted is private
        budget = ApproxDP(1, "1e-9")
        least_scale = math.sqrt(keys / gaussian_mu_squared(1, "1e-9"))
        for factor, private in ((1.0001, True), (0.9999, False)):
            scale = Fraction(round(factor * least_scale * 2**30), 2**30)
            is_accepted = is_private(neighbours, Noise.ROUNDED_GAUSSIAN, scale, budget)
            assert is_accepted is private
