"""Variances and quantiles of the noise against sums over its exact probabilities."""

import math

import pytest

from leastnoise._error import interval_multiplier, noise_variance
from leastnoise._trusted.accounting import Noise


def relative_probability(mechanism, scale, z):
    """Return a number that is proportional to the probability that the noise is z."""
    if mechanism is Noise.DISCRETE_LAPLACE:
        return math.exp(-abs(z) / scale)
    if mechanism is Noise.DISCRETE_GAUSSIAN:
        return math.exp(-(z**2) / (2 * scale**2))
    return 0.5 * (
        math.erfc((abs(z) - 0.5) / (scale * math.sqrt(2)))
        - math.erfc((abs(z) + 0.5) / (scale * math.sqrt(2)))
    )


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.5, 1.0, 2.5, 7.9, 8.1, 40.0])
@pytest.mark.parametrize("mechanism", Noise)
def test_variance_is_the_second_moment(mechanism, scale):
    points = [
        (z, relative_probability(mechanism, scale, z)) for z in range(int(60 * scale) + 30, -1, -1)
    ]
    exact = (
        2 * sum(z**2 * m for z, m in points) / (2 * sum(m for _, m in points[:-1]) + points[-1][1])
    )
    assert noise_variance(mechanism, scale) == pytest.approx(exact, rel=1e-9)
    assert noise_variance(mechanism, scale / 8, grid=8) == pytest.approx(exact / 64, rel=1e-9)


def test_tiny_laplace_scales_do_not_overflow():
    assert noise_variance(Noise.DISCRETE_LAPLACE, 1e-3) == 0.0


def test_multipliers_cover_their_level():
    assert interval_multiplier(Noise.DISCRETE_GAUSSIAN, 0.95) == pytest.approx(1.959964, rel=1e-6)
    assert interval_multiplier(Noise.DISCRETE_LAPLACE, 0.95) == pytest.approx(
        math.log(20) / math.sqrt(2)
    )
    # At 68% the normal quantile is the larger of the two.
    assert interval_multiplier(Noise.DISCRETE_LAPLACE, 0.68) == interval_multiplier(
        Noise.ROUNDED_GAUSSIAN, 0.68
    )


@pytest.mark.parametrize("scale", [0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 12.0])
@pytest.mark.parametrize("mechanism", Noise)
def test_interval_of_one_count_covers_exactly(mechanism, scale):
    """Exact coverage is at most a tenth of a percent below the level."""
    masses = {z: relative_probability(mechanism, scale, z) for z in range(-400, 401)}
    for level in (0.68, 0.8, 0.9, 0.95, 0.99):
        reach = math.floor(
            interval_multiplier(mechanism, level) * math.sqrt(noise_variance(mechanism, scale))
            + 0.5
        )
        assert (
            sum(masses[z] for z in range(-reach, reach + 1)) / sum(masses.values()) >= level - 1e-3
        )
