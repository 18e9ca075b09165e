"""Implement the first stage of DAWA as printed: noisy costs and the cheapest partition.

Intervals have lengths 1, 2, 4, ... and any start.

The stage is private (theorem N of PROOFS-noisy-costs.md in this folder, which defines the labels N,
Q1 and Q2; the other labels are in the kernel's PROOFS-plane.md). No release runs it, because the
partition follows its noise.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel import Entropy
from leastnoise._trusted.kernel._noise import discrete_laplace
from leastnoise._trusted.kernel._plane import (
    GRID,
    noise_scale,
    order_counts_by_tree,
    penalty_on_grid,
)

Ranks = npt.NDArray[np.int32]

# Largest window in cells for which a pass for every cell is faster than a search in sorted halves.
_SHORT = 128
_BLOCK = 1 << 15  # windows at a time: the temporaries stay in the processor's cache


def on_grid(cost: IntArray, length: int) -> IntArray:
    """Return ``floor(GRID cost / length)``: deviations in multiples of 1 / GRID (C3m).

    >>> on_grid(np.array([2, 10]), 3).tolist()
    [2730, 13653]
    """
    quotient = cost // length
    return quotient * GRID + (cost - quotient * length) * GRID // length


def grid_sensitivity(length: int) -> int:
    """Return ``ceil(GRID (2 - 2 / length))``, the sensitivity in multiples of 1 / GRID (C3m).

    >>> grid_sensitivity(1), grid_sensitivity(2), grid_sensitivity(3) == -(-4 * GRID // 3)
    (0, 4096, True)
    """
    return -(-GRID * (2 * length - 2) // length)


class _Halves:
    """A wavelet matrix of the ranks: counts and sums of smaller cells in any window.

    Level by level from the leading bit of the rank, cells whose bit is 0 move stably to the front.
    ``zeros[l][i]`` counts such cells among the first i of level l, and ``sums[l][i]`` adds up their
    values. The memory is 12 bytes for each cell and level.
    """

    def __init__(self, x: IntArray) -> None:
        self.values, rank = np.unique(x, return_inverse=True)
        self.bits = max(1, int(len(self.values) - 1).bit_length())
        self.zeros: list[Ranks] = []
        self.sums: list[IntArray] = []
        cells = x
        ranks = rank.reshape(-1).astype(np.int32)
        for bit in range(self.bits - 1, -1, -1):
            low = (ranks >> bit) & 1 == 0
            zeros = np.zeros(len(x) + 1, dtype=np.int32)
            np.cumsum(low, out=zeros[1:])
            sums = np.zeros(len(x) + 1, dtype=np.int64)
            np.cumsum(np.where(low, cells, 0), out=sums[1:])
            self.zeros.append(zeros)
            self.sums.append(sums)
            cells = np.concatenate([cells[low], cells[~low]])
            ranks = np.concatenate([ranks[low], ranks[~low]])

    def below(
        self, start: int, stop: int, length: int, bound: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the number and the sum of cells below ``bound`` in each window.

        The windows begin at start, ..., stop - 1, and each has a separate bound.
        """
        limit = np.searchsorted(self.values, bound, side="left")  # as many ranks are below
        everything = limit >= 1 << self.bits
        left = np.arange(start, stop)
        right = left + length
        number = np.zeros(stop - start, dtype=np.int64)
        total = np.zeros(stop - start, dtype=np.int64)
        for level, bit in enumerate(range(self.bits - 1, -1, -1)):
            zeros = self.zeros[level]
            sums = self.sums[level]
            low = zeros[left].astype(np.int64)
            high = zeros[right].astype(np.int64)
            has_bit = (limit >> bit) & 1 == 1
            number += np.where(has_bit, high - low, 0)
            total += np.where(has_bit, sums[right] - sums[left], 0)
            front = int(zeros[-1])
            left = np.where(has_bit, front + left - low, low)
            right = np.where(has_bit, front + right - high, high)
        # A limit beyond the last rank needs more bits than the ranks have: every cell of the window
        # is below it.
        return np.where(everything, length, number), np.where(everything, -1, total)


def costs_of_length(x: IntArray, lengths: Iterable[int]) -> Iterator[IntArray]:
    """Yield, per length, length times the deviation from the mean of all intervals.

    Args:
        x: counts of n cells, int64 in [0, largest_count(n)].
        lengths: numbers of cells from 1 to n.

    Yields:
        For each length L an int64 array of shape (n - L + 1,): ``sum |L x_j - S|`` of the interval
        that begins at each cell, in counts times cells, exact.

    Guarantees:
        One more record changes the deviation of an interval that contains it by at most 2 - 2/L,
        and no other deviation.

    Source:
        Li, Hay, Miklau, Wang, PVLDB 2014, section 3.2. O(n log n) for each length, by a wavelet
        matrix instead of a search tree.

    >>> [cost.tolist() for cost in costs_of_length(np.array([2, 3, 8]), (1, 2, 3))]
    [[0, 0, 0], [2, 10], [22]]
    """
    n = len(x)
    prefix = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(x, dtype=np.int64)])
    halves: _Halves | None = None
    for length in lengths:
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
                for offset in range(length):
                    part += np.abs(scaled[offset : offset + stop - start] - total)
                continue
            bound = -(-total // length)  # the cells below the mean are those below its ceiling
            number, below = halves.below(start, stop, length, bound)
            below = np.where(below < 0, total, below)
            cost[start:stop] = 2 * (number * total - length * below)
        yield cost


def power_of_two_costs(x: IntArray) -> list[IntArray]:
    """Return the costs of all intervals of lengths 1, 2, 4, ... up to n.

    They need 8 n log2(n) bytes.

    >>> [cost.tolist() for cost in power_of_two_costs(np.array([2, 3, 8, 1]))]
    [[0, 0, 0, 0], [2, 10, 14], [36]]
    """
    return list(costs_of_length(x, [2**power for power in range(len(x).bit_length())]))


def noisy_costs(x: IntArray, epsilon: Fraction, entropy: Entropy, penalty: Fraction) -> IntArray:
    """Return the starts of the partition with the smallest noisy cost: algorithm 1 of DAWA.

    Its intervals have lengths 1, 2, 4, ... and any start, as printed.

    Args:
        x: counts, int64 of shape (n,); private.
        epsilon: cost of the partition.
        entropy: the source of the noise.
        penalty: the cost of each bucket in addition to its deviation, in records; public. The
            paper's penalty is 1 / epsilon2.

    Returns:
        First cell of each bucket, increasing, the first 0; int64, shape (k,).

    Raises:
        InputError: an epsilon or a penalty beyond exact arithmetic; never because of a count.

    Guarantees:
        epsilon-DP (theorem N). There is noise on every interval, single cells included, of scale
        (D_c + D_b) / epsilon for an interval b, with D_b = 2 - 2/L and D_c the largest; and no
        clamp.

    Source:
        Li, Hay, Miklau, Wang, PVLDB 2014, Algorithm 1, Theorem 2 and the Remark.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> noisy_costs(
    ...     np.array([9000, 9000, 0, 0]), Fraction(1), SeededEntropy(1), Fraction(200)
    ... ).tolist()
    [0, 2]
    """
    cells = order_counts_by_tree(x)[0]
    n = len(cells)
    fixed = penalty_on_grid(penalty, n)
    levels = on_powers(cells)
    longest = grid_sensitivity(2 ** (len(levels) - 1))
    if longest == 0:  # one cell: there is nothing to choose
        return np.zeros(1, dtype=np.int64)
    noisy = []
    for power, level in enumerate(levels):
        numerator, denominator = noise_scale(longest + grid_sensitivity(2**power), epsilon, n)
        # Q1: Every interval gets noise of its own.
        noisy.append(level + fixed + discrete_laplace(numerator, denominator, len(level), entropy))
    return cheapest_of_powers(noisy)


def on_powers(cells: IntArray) -> list[IntArray]:
    """Return the deviations of all intervals of lengths 1, 2, 4, ..., in multiples of 1 / GRID.

    >>> [(level / GRID).tolist() for level in on_powers(np.array([2, 3, 8]))]
    [[0.0, 0.0, 0.0], [1.0, 5.0]]
    """
    return [on_grid(cost, 2**power) for power, cost in enumerate(power_of_two_costs(cells))]


def cheapest_of_powers(costs: list[IntArray]) -> IntArray:
    """Return the starts of the cheapest partition into intervals of lengths 1, 2, 4, ...

    Among equal costs, the function returns the partition with the shortest last bucket.

    >>> cheapest_of_powers([np.array([5, 5, 5]), np.array([1, 7])]).tolist()
    [0, 2]
    """
    n = len(costs[0])
    lengths = 2 ** np.arange(len(costs))
    ending = np.full((n + 1, len(costs)), np.iinfo(np.int64).max)
    for power, level in enumerate(costs):
        ending[2**power :, power] = level
    lowest_cost = np.zeros(n + 1, dtype=np.int64)
    choice = np.zeros(n + 1, dtype=np.int64)
    for stop in range(1, n + 1):
        fitting = stop.bit_length()
        total = lowest_cost[stop - lengths[:fitting]] + ending[stop, :fitting]
        choice[stop] = total.argmin()  # Q2: the first of equals
        lowest_cost[stop] = total[choice[stop]]
    starts = []
    stop = n
    while stop:
        stop -= int(lengths[choice[stop]])
        starts.append(stop)
    return np.array(starts[::-1], dtype=np.int64)
