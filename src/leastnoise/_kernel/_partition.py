"""Private partitions of the cells into intervals: what one is, and the numbers that every choice of one reads.

A partition B of n cells into blocks has the cost ``sum over b of dev(x, b) + penalty``; small costs are good. One record changes one block
of each partition (C4), and data that differ by several records are a chain of such steps (Q3). The labels refer to PROOFS-partition.md
beside this file. Costs are integers, multiples of 1 / GRID.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._check import Exact, exact, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._kernel._interval_costs import GRID

_SCALE_STEPS = 256  # scales are rounded up to multiples of 1 / 256 of the grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partition:
    """Intervals that cover n cells, chosen privately; public.

    Attributes:
        size: number of cells n.
        starts: first cell of each bucket, increasing, the first 0; int64, shape (k,).
        spent: the pure epsilon that choosing it has cost, for the distance it was asked for.
    """

    size: int
    starts: IntArray
    spent: Fraction

    def lengths(self) -> IntArray:
        """Number of cells of each bucket, int64 of shape (k,).

        >>> Partition(size=5, starts=np.array([0, 2]), spent=Fraction(1)).lengths().tolist()
        [2, 3]
        """
        return np.diff(self.starts, append=self.size)


def noise_scale(sensitivity: int, epsilon: Fraction, size: int) -> tuple[int, int]:
    """``sensitivity / epsilon`` as numerator and denominator, rounded up; in multiples of 1 / GRID.

    Raises:
        InputError: so much noise that a sum of it over all cells might leave int64.

    >>> noise_scale(4096, Fraction(1, 10), 8)
    (10485760, 256)
    """
    numerator = -(-sensitivity * _SCALE_STEPS * epsilon.denominator // epsilon.numerator)
    if numerator > (2**50 // size) * _SCALE_STEPS:
        raise refuse("epsilon", str(epsilon), f"larger for {size} cells, so that the sums stay exact", "Spend more or use fewer cells.")
    return numerator, _SCALE_STEPS


def read_penalty(penalty: Exact, size: int) -> int:
    """A penalty in records, at least 0, on the grid.

    >>> read_penalty("0.5", 4)
    2048
    """
    number = exact("penalty", penalty)
    if not 0 <= number * GRID <= Fraction(2**58, size):
        raise refuse("penalty", penalty, f"from 0 to {float(Fraction(2**58, GRID * size)):.3g} records")
    return round(number * GRID)
