"""Deviations of intervals from their mean (DAWA's interval costs), as exact integers.

The deviation of an interval of L cells with sum S is ``dev = sum |x_j - S/L|``; ``L dev = sum |L x_j - S|`` is an integer, and so is the
deviation from a median. Everything here is a function of private counts: nothing leaves the kernel without noise.
The labels (C1 ...) refer to PROOFS-partition.md beside this file.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from leastnoise._check import whole
from leastnoise._check.arrays import IntArray

Ranks = npt.NDArray[np.int32]

GRID = 4096  # what adds noise to costs works in multiples of 1 / GRID
_SHORT = 128  # up to so many cells a pass for every cell of the window is quicker than the search in the sorted halves
_BLOCK = 1 << 15  # windows at a time: the temporaries stay in the processor's cache


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


class _Halves:
    """The cells sorted by value, bit by bit of their ranks (a wavelet matrix): sums and numbers of smaller cells in any window.

    Level by level from the leading bit of the rank, cells whose bit is 0 go stably to the front. ``zeros[l][i]`` counts those among the
    first i of level l, ``sums[l][i]`` adds up their values. Memory: 12 bytes a cell and level.
    """

    def __init__(self, x: IntArray) -> None:
        self.values, rank = np.unique(x, return_inverse=True)
        self.bits = max(1, int(len(self.values) - 1).bit_length())
        self.zeros: list[Ranks] = []
        self.sums: list[IntArray] = []
        cells, ranks = x, rank.reshape(-1).astype(np.int32)
        for bit in range(self.bits - 1, -1, -1):
            low = (ranks >> bit) & 1 == 0
            zeros = np.zeros(len(x) + 1, dtype=np.int32)
            np.cumsum(low, out=zeros[1:])
            sums = np.zeros(len(x) + 1, dtype=np.int64)
            np.cumsum(np.where(low, cells, 0), out=sums[1:])
            self.zeros.append(zeros)
            self.sums.append(sums)
            cells, ranks = np.concatenate([cells[low], cells[~low]]), np.concatenate([ranks[low], ranks[~low]])

    def below(self, start: int, stop: int, length: int, bound: IntArray) -> tuple[IntArray, IntArray]:
        """Number and sum of the cells below ``bound`` (one a window) in the windows that begin at start .. stop - 1."""
        limit = np.searchsorted(self.values, bound, side="left")  # as many ranks are below
        everything = limit >= 1 << self.bits
        left = np.arange(start, stop)
        right = left + length
        number = np.zeros(stop - start, dtype=np.int64)
        total = np.zeros(stop - start, dtype=np.int64)
        for level, bit in enumerate(range(self.bits - 1, -1, -1)):
            zeros, sums = self.zeros[level], self.sums[level]
            low, high = zeros[left].astype(np.int64), zeros[right].astype(np.int64)
            taken = (limit >> bit) & 1 == 1
            number += np.where(taken, high - low, 0)
            total += np.where(taken, sums[right] - sums[left], 0)
            front = int(zeros[-1])
            left, right = np.where(taken, front + left - low, low), np.where(taken, front + right - high, high)
        # A limit beyond the last rank has no bits of its own at all: every cell of the window is below.
        return np.where(everything, length, number), np.where(everything, -1, total)


def costs_of_length(x: IntArray, lengths: Iterable[int]) -> Iterator[IntArray]:
    """Length times deviation from the mean, of all intervals of the given lengths.

    Args:
        x: counts of n cells, int64 in [0, largest_count(n)].
        lengths: numbers of cells from 1 to n.

    Yields:
        For each length L an int64 array of shape (n - L + 1,): ``sum |L x_j - S|`` of the interval that begins at each cell, in counts
        times cells, exact.

    Raises:
        InputError: a length that is not from 1 to n.

    Guarantees:
        One record more changes the deviation of an interval that contains it by at most 2 - 2/L, and no other.

    Source:
        Li, Hay, Miklau, Wang, PVLDB 2014, section 3.2. O(n log n) a length, by a wavelet matrix in the place of a search tree.

    >>> [cost.tolist() for cost in costs_of_length(np.array([2, 3, 8]), (1, 2, 3))]
    [[0, 0, 0], [2, 10], [22]]
    """
    n = len(x)
    prefix = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(x, dtype=np.int64)])
    halves: _Halves | None = None
    for length in lengths:
        whole("length", length, 1, n)
        count = n - length + 1
        cost = np.zeros(count, dtype=np.int64)
        short = length <= _SHORT
        if not short and halves is None:
            halves = _Halves(x)
        for start in range(0, count, _BLOCK):
            stop = min(start + _BLOCK, count)
            total = prefix[start + length : stop + length] - prefix[start:stop]
            if short or halves is None:
                part = cost[start:stop]
                scaled = x[start : stop + length - 1] * length
                for place in range(length):
                    part += np.abs(scaled[place : place + stop - start] - total)
                continue
            bound = -(-total // length)  # the cells below the mean are those below its ceiling
            number, below = halves.below(start, stop, length, bound)
            below = np.where(below < 0, total, below)
            cost[start:stop] = 2 * (number * total - length * below)
        yield cost


def power_of_two_costs(x: IntArray) -> list[IntArray]:
    """``costs_of_length`` of the lengths 1, 2, 4, ... up to n, at every start.

    Args:
        x: as for ``costs_of_length``.

    Returns:
        One int64 array a length; 8 n log2(n) bytes together.

    >>> [cost.tolist() for cost in power_of_two_costs(np.array([2, 3, 8, 1]))]
    [[0, 0, 0, 0], [2, 10, 14], [36]]
    """
    return list(costs_of_length(x, [2**power for power in range(len(x).bit_length())]))


def on_grid(cost: IntArray, length: int) -> IntArray:
    """``floor(GRID cost / length)``: deviations in multiples of 1 / GRID.

    Rounding down is monotone, so one record more changes the result by at most ``grid_sensitivity(length)`` (C3).

    >>> on_grid(np.array([2, 10]), 3).tolist()
    [2730, 13653]
    """
    quotient = cost // length
    return quotient * GRID + ((cost - quotient * length) * GRID) // length


def grid_sensitivity(length: int) -> int:
    """``ceil(GRID (2 - 2 / length))``, in multiples of 1 / GRID.

    >>> grid_sensitivity(1), grid_sensitivity(2), grid_sensitivity(3) == -(-4 * GRID // 3)
    (0, 4096, True)
    """
    return -(-GRID * (2 * length - 2) // length)


def aligned_costs(x: IntArray, centre: str = "mean") -> list[IntArray]:
    """Deviations of the aligned intervals ``[i 2^k, (i + 1) 2^k)``, the last of each length cut off at n, in multiples of 1 / GRID.

    Args:
        x: as for ``costs_of_length``.
        centre: ``"mean"``, rounded down, or ``"median"``, exact; one record changes the first by at most 2, the second by at most 1.

    Returns:
        One int64 array a length 1, 2, 4, ..., of ceil(n / length) entries; the last has one entry, all cells.

    >>> [(cost / GRID).tolist() for cost in aligned_costs(np.array([2, 3, 8]), "median")]
    [[0.0, 0.0, 0.0], [1.0, 0.0], [6.0]]
    """
    n = len(x)
    levels = [np.zeros(n, dtype=np.int64)]
    width = 1
    while len(levels[-1]) > 1:
        width *= 2
        full = n // width
        blocks = x[: full * width].reshape(full, width)
        parts = [_deviation(blocks, centre)]
        if full * width < n:
            parts.append(_deviation(x[full * width :].reshape(1, -1), centre))
        levels.append(np.concatenate(parts))
    return levels


def _deviation(blocks: IntArray, centre: str) -> IntArray:
    length = blocks.shape[1]
    if centre == "mean":
        return on_grid(np.abs(length * blocks - blocks.sum(axis=1, keepdims=True)).sum(axis=1), length)
    ordered = np.sort(blocks, axis=1)
    above: IntArray = ordered[:, (length + 1) // 2 :].sum(axis=1)
    below: IntArray = ordered[:, : length // 2].sum(axis=1)
    return GRID * (above - below)
