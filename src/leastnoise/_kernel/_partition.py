"""Private partitions of the cells into intervals: what they have in common, and the ways that put noise on the costs.

A partition B of n cells into intervals has the cost ``sum over b of dev(x, b) + penalty``; small costs are good. One record changes one
bucket of each partition (C4). The labels (Q1 ...) refer to PROOFS-partition.md beside this file. Costs are integers, multiples of 1 / GRID.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._check import Exact, exact, exact_positive, refuse, whole
from leastnoise._check.arrays import BoolArray, IntArray
from leastnoise._kernel._entropy import Entropy
from leastnoise._kernel._interval_costs import GRID, aligned_costs, cut_counts, grid_sensitivity, on_grid, power_of_two_costs
from leastnoise._kernel._laplace import discrete_laplace

Levels = list[IntArray]

_SCALE_STEPS = 256  # scales are rounded up to multiples of 1 / 256 of the grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partition:
    """Intervals that cover n cells, chosen privately; public.

    Attributes:
        size: number of cells n.
        starts: first cell of each bucket, increasing, the first 0; int64, shape (k,).
        spent: the pure epsilon that choosing it has cost, for the distance it was asked for.
        widths: block widths of the levels measured on the way, coarse to fine; empty unless pruned from measurements.
        values: their noisy counts, one int64 array a level, to be used again.
        scales: their noise scales, in records.
    """

    size: int
    starts: IntArray
    spent: Fraction
    widths: tuple[int, ...] = ()
    values: tuple[IntArray, ...] = ()
    scales: tuple[Fraction, ...] = ()

    def lengths(self) -> IntArray:
        """Number of cells of each bucket, int64 of shape (k,).

        >>> Partition(size=5, starts=np.array([0, 2]), spent=Fraction(1)).lengths().tolist()
        [2, 3]
        """
        return np.diff(self.starts, append=self.size)


def read_cells(x: IntArray) -> IntArray:
    """Check the shape, which is public, and cut the counts, which are private, to the range of exact arithmetic.

    Raises:
        InputError: no int64 vector of 1 to 2^24 cells. No count makes it fail.

    >>> read_cells(np.array([3, -1])).tolist()
    [3, 0]
    """
    if not (isinstance(x, np.ndarray) and x.dtype == np.int64 and x.ndim == 1 and 1 <= len(x) <= 2**24):
        got = f"{x.dtype} array of shape {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
        raise refuse("The vector of counts", got, "an int64 array of shape (n,), n from 1 to 2^24")
    return cut_counts(x)


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


def noisy_costs(x: IntArray, epsilon: Exact, entropy: Entropy, *, penalty: Exact, distance: int = 1) -> Partition:
    """The partition of least noisy cost into intervals of lengths 1, 2, 4, ... at any start: Algorithm 1 of DAWA as printed.

    Args:
        x: counts, int64 of shape (n,); private.
        epsilon: what the partition may cost, for data sets that differ by ``distance`` records.
        entropy: the source of the noise.
        penalty: what each bucket costs besides its deviation, in records; public. The paper's is 1 / epsilon2.
        distance: how many records neighbours differ by: k for add/remove of a unit of k rows, 2 k for replace.

    Returns:
        The partition; it cost exactly ``epsilon``.

    Raises:
        InputError: an argument is not of this kind; never because of a count.

    Guarantees:
        epsilon-DP (theorem N of PROOFS-partition.md). There is noise on every interval, single cells included, of scale
        (D_c + D_b) / epsilon for an interval b, with D_b = 2 - 2/L and D_c the largest; and no clamp.

    Source:
        Li, Hay, Miklau, Wang, PVLDB 2014, Algorithm 1, Theorem 2 and the Remark.

    >>> noisy_costs(np.array([9000, 9000, 0, 0]), 1, SeededEntropy(1), penalty=200).starts.tolist()
    [0, 2]
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)  # Q3: group privacy
    cells = read_cells(x)
    n = len(cells)
    fixed = read_penalty(penalty, n)
    levels = on_powers(cells)
    longest = grid_sensitivity(2 ** (len(levels) - 1))
    if longest == 0:  # one cell: there is nothing to choose
        return Partition(size=1, starts=np.zeros(1, dtype=np.int64), spent=spent)
    noisy = []
    for power, level in enumerate(levels):
        numerator, denominator = noise_scale(longest + grid_sensitivity(2**power), each, n)
        noisy.append(level + fixed + discrete_laplace(numerator, denominator, len(level), entropy))  # Q1: every interval
    return Partition(size=n, starts=cheapest_of_powers(noisy), spent=spent)


def least_cost(x: IntArray, epsilon: Exact, entropy: Entropy, *, penalty: Exact, distance: int = 1) -> Fraction:
    """The least cost of any aligned partition, with noise: how many buckets' worth of structure the counts have.

    Args:
        x: counts, int64 of shape (n,); private.
        epsilon: what the answer may cost.
        entropy: the source of the noise.
        penalty: what each bucket costs besides its deviation from the median, in records; public.
        distance: how many records neighbours differ by.

    Returns:
        ``min over B of sum over b of (deviation from the median + penalty)`` plus discrete Laplace noise of scale distance / epsilon,
        in records.

    Raises:
        InputError: an argument is not of this kind; never because of a count.

    Guarantees: epsilon-DP (theorem T of PROOFS-partition.md): the deviation from a median changes by at most 1 with one record.

    >>> float(least_cost(np.array([9000, 9000, 0, 0]), 10, SeededEntropy(1), penalty=200)) // 10
    40.0
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)
    cells = read_cells(x)
    fixed = read_penalty(penalty, len(cells))
    least, _ = cheapest_aligned([level + fixed for level in aligned_costs(cells, "median")])
    numerator, denominator = noise_scale(GRID, each, len(cells))
    return Fraction(least + int(discrete_laplace(numerator, denominator, 1, entropy)[0]), GRID)


def on_powers(cells: IntArray) -> Levels:
    """Deviations of all intervals of lengths 1, 2, 4, ..., in multiples of 1 / GRID.

    >>> [(level / GRID).tolist() for level in on_powers(np.array([2, 3, 8]))]
    [[0.0, 0.0, 0.0], [1.0, 5.0]]
    """
    return [on_grid(cost, 2**power) for power, cost in enumerate(power_of_two_costs(cells))]


def cheapest_of_powers(costs: Levels) -> IntArray:
    """Starts of the cheapest partition into intervals of lengths 1, 2, 4, ...; of equally cheap ones that with the shortest last bucket.

    >>> cheapest_of_powers([np.array([5, 5, 5]), np.array([1, 7])]).tolist()
    [0, 2]
    """
    n = len(costs[0])
    lengths = 2 ** np.arange(len(costs))
    ending = np.full((n + 1, len(costs)), np.iinfo(np.int64).max)
    for power, level in enumerate(costs):
        ending[2**power :, power] = level
    best = np.zeros(n + 1, dtype=np.int64)
    choice = np.zeros(n + 1, dtype=np.int64)
    for stop in range(1, n + 1):
        fitting = stop.bit_length()
        total = best[stop - lengths[:fitting]] + ending[stop, :fitting]
        choice[stop] = place = int(total.argmin())  # Q2: the first of equals
        best[stop] = total[place]
    starts = []
    stop = n
    while stop:
        stop -= int(lengths[choice[stop]])
        starts.append(stop)
    return np.array(starts[::-1], dtype=np.int64)


def cheapest_aligned(costs: Sequence[IntArray]) -> tuple[int, IntArray]:
    """Least cost and starts of the cheapest partition into aligned intervals; of equally cheap ones the coarser at every node.

    Args:
        costs: one int64 array a length 1, 2, 4, ..., each half as long as the one before, rounded up.

    >>> cheapest_aligned([np.array([1, 1, 1]), np.array([9, 1]), np.array([9])])
    (3, array([0, 1, 2]))
    """
    best = costs[0]
    split: list[BoolArray] = []
    for level in costs[1:]:
        pairs = len(best) // 2
        halves = best[: 2 * pairs].reshape(pairs, 2).sum(axis=1)
        whole_ones = level[:pairs] <= halves  # Q2
        joined = np.where(whole_ones, level[:pairs], halves)
        # A node without a right half is its left half; its own noise is not used.
        split.append(np.concatenate([~whole_ones, np.ones(len(level) - pairs, dtype=np.bool_)]))
        best = np.concatenate([joined, best[2 * pairs :]])
    return int(best[0]), leaves(len(costs[0]), split[::-1])


def leaves(size: int, split: Sequence[BoolArray]) -> IntArray:
    """Starts of the leaves of a binary tree of aligned intervals.

    Args:
        size: number of cells.
        split: whether each node is split, from the root's level to the pairs of cells; entries below a leaf do not matter.

    >>> leaves(3, [np.array([True]), np.array([False, True])]).tolist()
    [0, 2]
    """
    alive = np.ones(1, dtype=np.bool_)
    starts = np.zeros(size, dtype=np.bool_)
    for depth, level in enumerate(split):
        width = 2 ** (len(split) - depth)
        starts[::width] |= alive & ~level
        alive = np.repeat(alive & level, 2)[: -(-size // (width // 2))]
    starts |= alive
    return np.flatnonzero(starts)
