"""Deviations of intervals from their mean (DAWA's interval costs), as exact integers.

The deviation of an interval of L cells with sum S is ``dev = sum |x_j - S/L|``; ``L dev = sum |L x_j - S|`` is an integer, and so is the
deviation from a median. Everything here is a function of private counts: nothing leaves the kernel without noise.
The labels (C1 ...) refer to PROOFS-partition.md beside this file.
"""

import numpy as np

from leastnoise._check.arrays import IntArray

GRID = 4096  # what adds noise to costs works in multiples of 1 / GRID


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
