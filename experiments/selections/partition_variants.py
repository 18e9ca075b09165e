"""Two more ways to a partition: noisy costs of aligned intervals, and the exponential mechanism on intervals of lengths 1, 2, 4, ...

The labels (X6, N) refer to PROOFS-blocks.md beside this file, the others to PROOFS-partition.md beside the kernel
and PROOFS-noisy-costs.md beside the baselines.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from baselines._noisy_costs import on_powers, read_line

from leastnoise._check import Exact, exact_positive, whole
from leastnoise._check.arrays import BoolArray, IntArray
from leastnoise._kernel import Entropy, Partition
from leastnoise._kernel._entropy import fresh_words
from leastnoise._kernel._noise import discrete_laplace
from leastnoise._kernel._partition import grid_sensitivity, noise_scale, read_penalty
from leastnoise._kernel._partition_sampling import Scaled, lowered, settle, weights_of
from leastnoise._kernel._plane import block_costs
from leastnoise._linop import interval_tree

_UNIT = Fraction(1, 2**53)  # relative error of one operation in float64
_DOUBT = 2.0**-40  # a comparison in float64 that is closer is settled in whole numbers


def aligned_costs(x: IntArray, centre: str = "mean") -> list[IntArray]:
    """Deviations of the aligned intervals of lengths 1, 2, 4, ..., in multiples of 1 / GRID.

    >>> [(cost / 4096).tolist() for cost in aligned_costs(np.array([2, 3, 8]), "median")]
    [[0.0, 0.0, 0.0], [1.0, 0.0], [6.0]]
    """
    return block_costs(x, interval_tree(len(x)), centre)[::-1]


def noisy_aligned(x: IntArray, epsilon: Exact, entropy: Entropy, *, penalty: Exact, distance: int = 1) -> Partition:
    """The partition of least noisy cost into aligned intervals, with a penalty.

    Args:
        x: counts, int64 of shape (n,); private.
        epsilon: what the partition may cost, for data sets that differ by ``distance`` records.
        entropy: the source of the noise.
        penalty: what each bucket costs besides its deviation, in records; public.
        distance: how many records neighbours differ by.

    Guarantees: epsilon-DP (theorem N of the baselines' PROOFS-noisy-costs.md, which holds for every family of intervals).

    >>> from leastnoise._kernel import SeededEntropy
    >>> noisy_aligned(np.array([9000, 9000, 0, 0]), 1, SeededEntropy(1), penalty=200).starts.tolist()
    [0, 2]
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)
    cells = read_line(x)
    n = len(cells)
    fixed = read_penalty(penalty, n)
    levels = aligned_costs(cells)
    longest = grid_sensitivity(n)
    noisy = []
    for power, level in enumerate(levels):
        if longest == 0:
            noisy.append(level + fixed)
            continue
        numerator, denominator = noise_scale(longest + grid_sensitivity(min(n, 2**power)), each, n)
        noisy.append(level + fixed + discrete_laplace(numerator, denominator, len(level), entropy))
    return Partition(size=n, starts=cheapest_aligned(noisy)[1], spent=spent)


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


def powers_charge(size: int) -> Fraction:
    """What the rounding errors of one run can add to epsilon (X6).

    >>> float(powers_charge(2**20)) < 1e-6
    True
    """
    return (500 + 200 * size) * 2 * _UNIT


def sampled_powers(
    x: IntArray, epsilon: Exact, entropy: Entropy, *, penalty: Exact, prior: Exact = Fraction(1386294361, 10**9), distance: int = 1
) -> Partition:
    """Draw a partition into intervals of lengths 1, 2, 4, ... at any start, as the kernel does into aligned ones.

    Args:
        x: counts, int64 of shape (n,); private.
        epsilon: what the partition may cost, for data sets that differ by ``distance`` records.
        entropy: the source of bits.
        penalty: what each bucket costs besides its deviation, in records; public.
        prior: a further penalty, in natural logarithms; that of the number of lengths keeps the number of partitions in check.
        distance: how many records neighbours differ by.

    Guarantees: epsilon-DP (X6).

    >>> from leastnoise._kernel import SeededEntropy
    >>> sampled_powers(np.array([9000, 9000, 0, 0]), 1, SeededEntropy(1), penalty=2).starts.tolist()
    [0, 2]
    """
    spent = exact_positive("epsilon", epsilon)
    cells = read_line(x)
    n = len(cells)
    if n == 1:
        return Partition(size=1, starts=np.zeros(1, dtype=np.int64), spent=spent)
    levels = on_powers(cells)
    each = spent / whole("distance", distance, 1) - powers_charge(n)
    weights = weights_of(levels, grid_sensitivity(2 ** (len(levels) - 1)), each, prior, read_penalty(penalty, n))
    return Partition(size=n, starts=draw_powers(weights, entropy), spent=spent)


def draw_powers(weights: Sequence[Scaled], entropy: Entropy) -> IntArray:
    """Draw a partition into intervals of lengths 1, 2, 4, ... at any start; from left to right, then from right to left (X6).

    Args:
        weights: of the intervals of each length, by start.
        entropy: the source of bits.

    Returns:
        Starts of the buckets.
    """
    n = len(weights[0].mantissa)
    lengths = 2 ** np.arange(len(weights))
    mantissa, exponent = np.zeros((n + 1, len(weights))), np.zeros((n + 1, len(weights)), dtype=np.int64)
    for power, weight in enumerate(weights):
        mantissa[2**power :, power], exponent[2**power :, power] = weight.mantissa, weight.exponent
    sums = Scaled(np.ones(n + 1), np.zeros(n + 1, dtype=np.int64))  # of no cells: one empty partition
    for stop in range(1, n + 1):
        fitting = stop.bit_length()
        before = stop - lengths[:fitting]
        e = exponent[stop, :fitting] + sums.exponent[before]
        top = e.max()
        terms = lowered(Scaled(mantissa[stop, :fitting] * sums.mantissa[before], e), top)
        own, carry = math.frexp(float(terms.sum()))
        sums.mantissa[stop], sums.exponent[stop] = own, top + carry
    starts = []
    stop = n
    while stop:
        fitting = stop.bit_length()
        before = stop - lengths[:fitting]
        row = Scaled(mantissa[stop, :fitting], exponent[stop, :fitting])
        e = row.exponent + sums.exponent[before]
        edges = np.cumsum(lowered(Scaled(row.mantissa * sums.mantissa[before], e), e.max()))
        edges /= edges[-1]
        word = int(fresh_words(entropy, 1)[0])
        point = word * 2.0**-64
        place = int(np.searchsorted(edges[:-1], point, side="right"))
        if fitting > 1 and np.abs(edges[:-1] - point).min() < _DOUBT:
            exact_terms = []
            for column in range(fitting):
                (a, g), (b, h) = row.whole(column), sums.whole(int(before[column]))
                exact_terms.append((a * b, g + h))
            place = settle(exact_terms, word, entropy)
        stop = int(before[place])
        starts.append(stop)
    return np.array(starts[::-1], dtype=np.int64)
