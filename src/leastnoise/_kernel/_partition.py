"""Private partitions of the cells into intervals: what they have in common, and the least cost, with noise.

A partition B of n cells into intervals has the cost ``sum over b of dev(x, b) + penalty``; small costs are good. One record changes one
bucket of each partition (C4). The labels (C4, Q3 ...) refer to PROOFS-partition.md beside this file. Costs are integers, multiples of
1 / GRID.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._check import Exact, exact, exact_positive, refuse, whole
from leastnoise._check.arrays import BoolArray, IntArray
from leastnoise._kernel._entropy import Entropy
from leastnoise._kernel._interval_costs import GRID, aligned_costs, cut_counts
from leastnoise._kernel._laplace import discrete_laplace

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
    each = spent / whole("distance", distance, 1)  # Q3: group privacy
    cells = read_cells(x)
    fixed = read_penalty(penalty, len(cells))
    least = least_aligned([level + fixed for level in aligned_costs(cells, "median")])
    numerator, denominator = noise_scale(GRID, each, len(cells))
    return Fraction(least + int(discrete_laplace(numerator, denominator, 1, entropy)[0]), GRID)


def least_aligned(costs: Sequence[IntArray]) -> int:
    """Least cost of any partition into aligned intervals.

    Args:
        costs: one int64 array a length 1, 2, 4, ..., each half as long as the one before, rounded up.

    >>> least_aligned([np.array([1, 1, 1]), np.array([9, 1]), np.array([9])])
    3
    """
    best = costs[0]
    for level in costs[1:]:
        pairs = len(best) // 2
        joined = np.minimum(level[:pairs], best[: 2 * pairs].reshape(pairs, 2).sum(axis=1))
        best = np.concatenate([joined, best[2 * pairs :]])  # a node without a right half is its left half
    return int(best[0])


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
