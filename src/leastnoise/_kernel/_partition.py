"""Private partitions of the cells into intervals: what one is, and the numbers that every choice of one reads.

A partition B of n cells into blocks has the cost ``sum over b of dev(x, b) + penalty``; small costs are good. One record changes one block
of each partition (C4), and data that differ by several records are a chain of such steps (Q3). The labels refer to PROOFS-partition.md
beside this file. Costs are integers, multiples of 1 / GRID.

The deviation of an interval of L cells with sum S from its mean is ``dev = sum |x_j - S/L|``; ``L dev = sum |L x_j - S|`` is an integer,
and so is the deviation from a median. Everything here is a function of private counts: nothing leaves the kernel without noise.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._check import Exact, exact, refuse
from leastnoise._check.arrays import IntArray

GRID = 4096  # what adds noise to costs works in multiples of 1 / GRID
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


def largest_count(size: int) -> int:
    """The largest count of a cell for which no cost leaves int64 (C2); larger ones are cut off, which changes no neighbour by more than 1.

    Args:
        size: number of cells, at least 1.

    >>> largest_count(4096) == 2**36, largest_count(2**20) == 2**21
    (True, True)
    """
    return 2**61 // max(size * size, 2 * size * GRID)


def cut_counts(x: IntArray) -> IntArray:
    """Counts within [0, largest_count]: cell by cell, so neighbours stay neighbours, whatever the rows (C1).

    >>> cut_counts(np.array([-3, 5, 2**62])).tolist() == [0, 5, largest_count(3)]
    True
    """
    return np.clip(x, 0, largest_count(len(x)))


def on_grid(cost: IntArray, length: IntArray) -> IntArray:
    """``floor(GRID cost / length)``: deviations in multiples of 1 / GRID.

    Rounding down is monotone, so one record more changes the result by at most ``grid_sensitivity(length)`` (C3).

    >>> on_grid(np.array([2, 10]), np.array([3, 3])).tolist()
    [2730, 13653]
    """
    quotient: IntArray = np.floor_divide(cost, length)
    rest: IntArray = np.floor_divide((cost - quotient * length) * GRID, length)
    return quotient * GRID + rest


def grid_sensitivity(length: int) -> int:
    """``ceil(GRID (2 - 2 / length))``, in multiples of 1 / GRID.

    >>> grid_sensitivity(1), grid_sensitivity(2), grid_sensitivity(3) == -(-4 * GRID // 3)
    (0, 4096, True)
    """
    return -(-GRID * (2 * length - 2) // length)


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
