"""Variances and quantiles of the noise, and intervals of answers and means.

Intervals of means are Fieller's intervals.

A quotient r = S / C belongs to its interval if |S - r C| is at most the multiplier times the
standard error of S - r C. At the true r, this has the probability of the level for every C, so the
set of all such r covers the truth. The set is an interval if C is clear of 0. Otherwise it is
unbounded, and the interval is the public bounds of the quotient.

Source: Fieller, J. R. Stat. Soc. B 16 (1954).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.check.arrays import BoolArray, FloatArray

LEVEL = 0.95
"""The default confidence level of intervals."""


def checked_level(value: object) -> float:
    """Return a confidence level as a float; raise unless it is in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise refuse("level", value, "a number above 0 and below 1, such as 0.95")
    return float(value)


def noise_variance(noise: Noise, scale: float, grid: int = 1) -> float:
    """Return the variance of one noise draw, in squared units of the query."""
    # Source: Ghosh, Roughgarden, Sundararajan 2009; Canonne, Kamath, Steinke 2020.
    fine = scale * grid
    if noise is Noise.DISCRETE_LAPLACE:
        if fine > 1e-3:
            return 0.5 / math.sinh(0.5 / fine) / math.sinh(0.5 / fine) / grid**2
        return 2 * math.exp(-1 / fine) / grid**2
    if fine > 8:
        # Poisson summation: the relative error is below exp(-2 pi^2 64).
        return (fine**2 + (1 / 12 if noise is Noise.ROUNDED_GAUSSIAN else 0.0)) / grid**2
    values = np.arange(1, 12 + math.ceil(12 * fine), dtype=float)
    if noise is Noise.DISCRETE_GAUSSIAN:
        mass = np.exp(-0.5 * (values / fine) ** 2)
        return float(2 * (values**2 @ mass) / (1 + 2 * mass.sum())) / grid**2
    # E Z^2 = sum over k >= 1 of (2k - 1) P(|Z| >= k), and |Z| >= k when |N| >= k - 1/2.
    tails = np.array([math.erfc((value - 0.5) / (fine * math.sqrt(2))) for value in values])
    return float((2 * values - 1) @ tails) / grid**2


def interval_multiplier(noise: Noise, level: float) -> float:
    """Return the half width of an interval at ``level``, in standard errors.

    To cover small discrete noise, add half a step.
    """
    from statistics import NormalDist

    normal = NormalDist().inv_cdf(0.5 + level / 2)
    if noise.norm == 2:
        return normal
    return max(normal, -math.log1p(-level) / math.sqrt(2))


def ratio_interval(
    part: FloatArray,
    whole: FloatArray,
    part_variance: FloatArray,
    whole_variance: FloatArray,
    multiplier: float,
    bounds: tuple[float, float],
    *,
    steps: tuple[Any, float] = (0.0, 0.0),
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the intervals of part / whole.

    The noise of part and whole must be uncorrelated. Where the whole is not clear of 0, the ends
    are the bounds.
    """
    low, high = bounds
    if not low <= high:
        raise InputError(
            f"The bounds of a quotient must be a lower and an upper bound; got {low} and {high}."
        )
    # Each standard error is widened so that the interval of the part, or of the whole, is longer by
    # its half step.
    spread_part = (np.sqrt(part_variance) + steps[0] / multiplier) ** 2
    spread_whole = (np.sqrt(whole_variance) + steps[1] / multiplier) ** 2
    square = multiplier**2
    a = whole**2 - square * spread_whole
    b = part * whole
    c = part**2 - square * spread_part
    inside = b**2 - a * c
    root = np.sqrt(np.maximum(inside, 0.0))
    is_clear = (a > 0) & (whole > 0)
    divisor = np.where(is_clear, a, 1.0)
    lower = np.where(is_clear, (b - root) / divisor, low)
    upper = np.where(is_clear, (b + root) / divisor, high)
    return np.clip(lower, low, high), np.clip(upper, low, high)


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedLeastSquares:
    """Least squares given that some unknowns are 0.

    It has the covariance of the other unknowns, and the coefficients with which the zero unknowns
    are subtracted from them.
    """

    kept: BoolArray
    covariance: FloatArray
    carried: FloatArray

    @staticmethod
    def of(covariance: FloatArray, kept: BoolArray) -> "ConstrainedLeastSquares":
        """Return the map to least squares with the excluded unknowns set to 0."""
        # Let i be the kept cells and o the other cells. The estimates are x_i - C_io C_oo^-1 x_o
        # with the covariance C_ii - C_io C_oo^-1 C_oi. This is least squares on the same
        # measurements without the columns of the other cells.
        size = np.sqrt(np.diag(covariance))
        scaled = covariance / size / size[:, None]
        inside = np.flatnonzero(kept)
        outside = np.flatnonzero(~kept)
        across = np.linalg.solve(
            scaled[np.ix_(outside, outside)], scaled[np.ix_(outside, inside)]
        ).T
        subtracted = np.zeros_like(covariance)
        subtracted[np.ix_(inside, inside)] = (
            scaled[np.ix_(inside, inside)] - across @ scaled[np.ix_(outside, inside)]
        )
        subtracted = (subtracted + subtracted.T) / 2 * size * size[:, None]
        carried = np.diag(np.where(kept, 0.0, 1.0))
        carried[np.ix_(inside, outside)] = across * size[inside, None] / size[outside]
        return ConstrainedLeastSquares(kept, subtracted, carried)

    def estimates(self, values: FloatArray) -> FloatArray:
        """Return the constrained estimates, 0 for the excluded unknowns.

        ``values`` are least squares estimates of all unknowns, shape (m,).
        """
        return np.asarray(values - self.carried @ np.where(self.kept, 0.0, values))
