"""Exact variances and quantiles of the three noise distributions, in double precision. Nothing here draws noise."""

import math

import numpy as np

from leastnoise._accounting import Noise


def noise_variance(noise: Noise, scale: float, grid: int = 1) -> float:
    """Variance of one noise draw, in squared units of the query.

    Source: Ghosh, Roughgarden, Sundararajan 2009; Canonne, Kamath, Steinke 2020.
    """
    fine = scale * grid
    if noise is Noise.DISCRETE_LAPLACE:
        return 0.5 / math.sinh(0.5 / fine) / math.sinh(0.5 / fine) / grid**2 if fine > 1e-3 else 2 * math.exp(-1 / fine) / grid**2
    if fine > 8:
        # Poisson summation: what is left out is below exp(-2 pi^2 64) relatively.
        return (fine**2 + (1 / 12 if noise is Noise.ROUNDED_GAUSSIAN else 0.0)) / grid**2
    places = np.arange(1, 12 + math.ceil(12 * fine), dtype=float)
    if noise is Noise.DISCRETE_GAUSSIAN:
        mass = np.exp(-0.5 * (places / fine) ** 2)
        return float(2 * (places**2 @ mass) / (1 + 2 * mass.sum())) / grid**2
    # E Z^2 = sum over k >= 1 of (2k - 1) P(|Z| >= k), and |Z| >= k when |N| >= k - 1/2.
    tails = np.array([math.erfc((place - 0.5) / (fine * math.sqrt(2))) for place in places])
    return float((2 * places - 1) @ tails) / grid**2


def interval_multiplier(noise: Noise, level: float) -> float:
    """Half width of an interval at ``level``, in standard errors of the answer.

    Edge cases: noise in whole steps takes few values where it is small; half a step must be added to the half width for it to cover.
    """
    from statistics import NormalDist

    normal = NormalDist().inv_cdf(0.5 + level / 2)
    return normal if noise.norm == 2 else max(normal, -math.log1p(-level) / math.sqrt(2))
