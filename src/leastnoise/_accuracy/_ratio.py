"""The interval of a quotient of two noisy numbers, honest where the divisor may be small: Fieller's.

A quotient r belongs to the interval when |S - r C| is at most the multiplier times the standard error of S - r C. That has the level's
probability at the true r whatever C is, so the set of all such r covers the truth. It is an interval when C is clear of 0; else it is
unbounded, and what remains are the public bounds of the quotient.

Source: Fieller, J. R. Stat. Soc. B 16 (1954).
"""

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray


def ratio_interval(
    part: FloatArray,
    whole: FloatArray,
    part_variance: FloatArray,
    whole_variance: FloatArray,
    multiplier: float,
    bounds: tuple[float, float],
    *,
    steps: tuple[float, float] = (0.0, 0.0),
) -> tuple[FloatArray, FloatArray]:
    """Ends of the intervals of part / whole, for uncorrelated noise on both.

    Edge cases: where C is not clear of 0, an end is that of the bounds.
    """
    low, high = bounds
    if not low <= high:
        raise InputError(f"The bounds of a quotient must be a lower and an upper one; got {low} and {high}.")
    # Each half step widens its own standard error, so that an interval for S or C alone would be wider by just that.
    spread_part = (np.sqrt(part_variance) + steps[0] / multiplier) ** 2
    spread_whole = (np.sqrt(whole_variance) + steps[1] / multiplier) ** 2
    square = multiplier**2
    a = whole**2 - square * spread_whole
    b = part * whole
    c = part**2 - square * spread_part
    inside = b**2 - a * c
    root = np.sqrt(np.maximum(inside, 0.0))
    clear = (a > 0) & (whole > 0)
    divisor = np.where(clear, a, 1.0)
    lower = np.where(clear, (b - root) / divisor, low)
    upper = np.where(clear, (b + root) / divisor, high)
    return np.clip(lower, low, high), np.clip(upper, low, high)
