"""Variances and quantiles of the noise, and intervals of answers and means.

Intervals of means are Fieller's intervals.

A quotient r = S / C belongs to its interval if |S - r C| is at most the multiplier times the
standard error of S - r C. For the true r, this condition holds with the probability of the level,
whatever C is. So the set of all r that meet the condition contains the true quotient with this
probability. The set is an interval if C is significantly above 0. Otherwise the set is unbounded,
and the interval is the public bounds of the quotient.

Source: Fieller, J. R. Stat. Soc. B 16 (1954).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    """Return the variance of one noise draw, in squared units of the query.

    ``scale`` is in the units of the query, and the noise is a multiple of 1 / ``grid``.
    """
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
    """Return the half width of an interval, in standard errors of the noise.

    For discrete noise of small scale, add half a step to the half width.
    """
    from statistics import NormalDist

    normal = NormalDist().inv_cdf(0.5 + level / 2)
    if noise.norm == 2:
        return normal
    return max(normal, -math.log1p(-level) / math.sqrt(2))


def widen_interval(
    answer: FloatArray, low: FloatArray, high: FloatArray, half_width: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals widened by a second, independent error.

    The half widths for the two errors are added in quadrature, on either side of the answer.

    Args:
        answer: the answers.
        low: the lower ends of the intervals for the first error.
        high: the upper ends.
        half_width: the half widths of the intervals for the second error.
    """
    return answer - np.hypot(answer - low, half_width), answer + np.hypot(high - answer, half_width)


def ratio_interval(
    numerator: FloatArray,
    denominator: FloatArray,
    numerator_variance: FloatArray,
    denominator_variance: FloatArray,
    multiplier: float,
    bounds: tuple[float, float],
    *,
    half_noise_steps: tuple[npt.NDArray[np.floating[Any]] | float, float] = (0.0, 0.0),
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of the intervals of a ratio.

    The noise of numerator and denominator must be uncorrelated. If the denominator is not
    significantly above 0, the ends are ``bounds``.
    """
    low, high = bounds
    if not low <= high:
        raise InputError(
            f"The bounds of a quotient must be a lower and an upper bound; got {low} and {high}."
        )
    # Each standard error is increased such that the interval of the numerator or the denominator is
    # longer by half a noise step.
    spread_part = (np.sqrt(numerator_variance) + half_noise_steps[0] / multiplier) ** 2
    spread_whole = (np.sqrt(denominator_variance) + half_noise_steps[1] / multiplier) ** 2
    square = multiplier**2
    a = denominator**2 - square * spread_whole
    b = numerator * denominator
    c = numerator**2 - square * spread_part
    inside = b**2 - a * c
    root = np.sqrt(np.maximum(inside, 0.0))
    is_clear = (a > 0) & (denominator > 0)
    divisor = np.where(is_clear, a, 1.0)
    lower = np.where(is_clear, (b - root) / divisor, low)
    upper = np.where(is_clear, (b + root) / divisor, high)
    return np.clip(lower, low, high), np.clip(upper, low, high)


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedLeastSquares:
    """Least squares under the constraint that some unknowns are 0.

    ``covariance`` is the covariance of the constrained estimates. To get the constrained estimate
    of an unknown, subtract the excluded unknowns times ``coefficients``.
    """

    kept: BoolArray
    covariance: FloatArray
    coefficients: FloatArray

    @staticmethod
    def of(covariance: FloatArray, kept: BoolArray) -> "ConstrainedLeastSquares":
        """Create the constrained problem from the unconstrained covariance."""
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

    def estimates(self, unconstrained: FloatArray) -> FloatArray:
        """Return constrained estimates from unconstrained ones, shape (m,).

        ``unconstrained`` are least squares estimates of all unknowns, shape (m,).
        """
        return np.asarray(
            unconstrained - self.coefficients @ np.where(self.kept, 0.0, unconstrained)
        )
