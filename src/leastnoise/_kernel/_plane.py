"""Private partitions of a line or a rectangle of cells into the blocks of a tree: the exponential mechanism, and the least cost.

A partition B has the cost ``sum over b of dev(x, b) + penalty``; one record changes one block of each partition. P(B) is proportional to
the product of the weights of its blocks. The labels (Y1 ...) refer to PROOFS-plane.md beside this file, the others to PROOFS-partition.md.

The choices that a series of steps can make stand at the end: frozen values of public numbers with an ``epsilon``, which pays for the choice
whatever the distance of neighbours. The kernel's series carries out these classes and no others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from leastnoise._check import Exact, exact_positive, refuse, whole
from leastnoise._check.arrays import BoolArray, IntArray
from leastnoise._kernel._entropy import Entropy, fresh_words
from leastnoise._kernel._noise import discrete_laplace
from leastnoise._kernel._partition import (
    GRID,
    Partition,
    cut_counts,
    grid_sensitivity,
    largest_count,
    noise_scale,
    on_grid,
    read_penalty,
)
from leastnoise._kernel._partition_sampling import Scaled, plus, settle, times, weights_of
from leastnoise._linop import BlockTree, block_tree, interval_tree

_UNIT = Fraction(1, 2**53)  # relative error of one operation in float64
_DOUBT = 2.0**-40  # a comparison in float64 that is closer is settled in whole numbers
PRIOR = Fraction(1386294361, 10**9)  # ln 4 a block: above it the sum over all trees, Z = q + Z^2, stays bounded


def sampled_partition(
    x: IntArray, epsilon: Exact, entropy: Entropy, *, penalty: Exact = 0, prior: Exact = PRIOR, distance: int = 1
) -> Partition:
    """Draw a partition B into k aligned intervals with probability proportional to ``exp(-prior k - epsilon cost(B) / (2 D))``.

    Args:
        x: counts, int64 of shape (n,); private.
        epsilon: what the partition may cost, for data sets that differ by ``distance`` records.
        entropy: the source of bits.
        penalty: what each bucket costs besides its deviation from the mean, in records; public. D = 2 - 2/n.
        prior: a further penalty, in natural logarithms; the usual one keeps the number of partitions in check.
        distance: how many records neighbours differ by: k for add/remove of a unit of k rows, 2 k for replace.

    Returns:
        The partition; it cost at most ``epsilon``, rounding errors included.

    Raises:
        InputError: an argument is not of this kind, or an epsilon below what the rounding errors cost; never because of a count.

    Guarantees:
        epsilon-DP (theorem Y of PROOFS-plane.md).

    Source:
        McSherry and Talwar, FOCS 2007; the recursion over the tree is proved in PROOFS-plane.md.

    >>> sampled_partition(np.array([9000, 9000, 0, 0]), 1, SeededEntropy(1), penalty=2).starts.tolist()
    [0, 2]
    """
    spent = exact_positive("epsilon", epsilon)
    if np.ndim(x) != 1:
        raise refuse("the counts of a partition", f"an array of shape {np.shape(x)}", "of shape (n,)")
    tree, cells = read_plane(x)
    n = len(cells)
    each = spent / whole("distance", distance, 1) - plane_charge(len(tree.starts))  # Q3: group privacy
    sensitivity = GRID if n == 1 else grid_sensitivity(n)
    weights = weights_of(block_costs(cells, tree, "mean"), sensitivity, each, prior, read_penalty(penalty, n))
    buckets = draw_blocks(weights, tree, entropy)
    starts = np.sort(np.concatenate([level[kept] for level, kept in zip(tree.starts, buckets, strict=True)]))
    return Partition(size=n, starts=starts, spent=spent)


def least_block_cost(x: IntArray, epsilon: Exact, entropy: Entropy, *, penalty: Exact, distance: int = 1) -> Fraction:
    """The least cost of any partition into blocks of a tree, with noise: how many buckets' worth of structure the counts have.

    Args:
        x: counts, int64 of shape (height, width), or (n,) for aligned intervals; private.
        epsilon: what the answer may cost.
        entropy: the source of the noise.
        penalty: what each bucket costs besides its deviation from the median, in records; public.
        distance: how many records neighbours differ by.

    Returns:
        ``min over B of sum over b of (deviation from the median + penalty)`` plus discrete Laplace noise of scale distance / epsilon,
        in records.

    Raises:
        InputError: an argument is not of this kind; never because of a count.

    Guarantees:
        epsilon-DP (theorem L of PROOFS-plane.md): the deviation from a median changes by at most 1 with one record.

    >>> float(least_block_cost(np.array([[9000, 0], [9000, 0]]), 10, SeededEntropy(1), penalty=200)) // 10
    40.0
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)
    tree, cells = read_plane(x)
    fixed = read_penalty(penalty, len(cells))
    costs = [cost + fixed for cost in block_costs(cells, tree, "median")]
    best = costs[-1]
    for level in range(len(costs) - 2, -1, -1):
        apart = np.add.reduceat(best, tree.children[level])
        best = np.where(tree.broods(level) > 1, np.minimum(costs[level], apart), apart)
    numerator, denominator = noise_scale(GRID, each, len(cells))
    return Fraction(int(best[0]) + int(discrete_laplace(numerator, denominator, 1, entropy)[0]), GRID)


def plane_charge(levels: int) -> Fraction:
    """What the rounding errors of one run on a tree of so many levels can add to epsilon (Y3).

    >>> float(plane_charge(21)) < 1e-12
    True
    """
    return (500 + 24 * levels) * 2 * _UNIT


def block_costs(cells: IntArray, tree: BlockTree, centre: str) -> list[IntArray]:
    """Deviations of all blocks from their mean (rounded down) or median (exact), in multiples of 1 / GRID (Y0).

    Args:
        cells: counts in the order of the tree, in [0, largest_count(n)].
        tree: the blocks.
        centre: ``"mean"`` or ``"median"``.

    Returns:
        One int64 array a level; the last, of single cells, is 0.

    >>> [(cost / GRID).tolist() for cost in block_costs(np.array([2, 3, 8]), block_tree(1, 3), "median")]
    [[6.0], [1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    out = []
    for level in range(len(tree.starts) - 1):
        starts, length = tree.starts[level], tree.lengths(level)
        if centre == "mean":
            total = np.add.reduceat(cells, starts)
            cost = np.add.reduceat(np.abs(cells * np.repeat(length, length) - np.repeat(total, length)), starts)
            out.append(on_grid(cost, length))
            continue
        shift = np.repeat(np.arange(len(starts)) * (largest_count(len(cells)) + 1), length)  # block by block in one sort (Y0)
        ordered = np.sort(cells + shift) - shift
        place = np.arange(len(cells)) - np.repeat(starts, length)
        spread = np.repeat(length, length)
        sign = (place >= (spread + 1) // 2).astype(np.int64) - (place < spread // 2)
        out.append(GRID * np.add.reduceat(sign * ordered, starts))
    return [*out, np.zeros(len(cells), dtype=np.int64)]


def draw_blocks(weights: Sequence[Scaled], tree: BlockTree, entropy: Entropy) -> list[BoolArray]:
    """Draw a partition with probability proportional to the product of the weights of its blocks; up, then down (Y2, Y3).

    Args:
        weights: of the blocks of each level.
        tree: the blocks.
        entropy: the source of bits.

    Returns:
        For each level which of its blocks are buckets.
    """
    sums = [weights[-1]]
    apart: list[Scaled] = []
    for level in range(len(weights) - 2, -1, -1):
        parts = _products(sums[0], tree, level)
        both = plus(weights[level], parts)
        alone = tree.broods(level) == 1  # the same block as its child, which stands for it
        apart.insert(0, parts)
        sums.insert(0, Scaled(np.where(alone, parts.mantissa, both.mantissa), np.where(alone, parts.exponent, both.exponent)))
    buckets: list[BoolArray] = []
    alive = np.ones(1, dtype=np.bool_)
    for level, parts in enumerate(apart):
        chosen = np.flatnonzero(alive & (tree.broods(level) > 1))
        whole_ones = np.zeros(len(alive), dtype=np.bool_)
        whole_ones[chosen] = _coins(weights[level], parts, sums[level + 1], tree, level, chosen, entropy)
        buckets.append(whole_ones)
        alive = np.repeat(alive & ~whole_ones, tree.broods(level))
    return [*buckets, alive]


def _products(below: Scaled, tree: BlockTree, level: int) -> Scaled:
    """Product of the sums of the one or two children of each block (Y3)."""
    first, two = tree.children[level], tree.broods(level) > 1
    out = below.at(first)
    product = times(out, below.at(np.where(two, first + 1, first)))
    return Scaled(np.where(two, product.mantissa, out.mantissa), np.where(two, product.exponent, out.exponent))


def _coins(weight: Scaled, parts: Scaled, below: Scaled, tree: BlockTree, level: int, nodes: IntArray, entropy: Entropy) -> BoolArray:
    """For some nodes whether they stay whole: the weight against the product of the children's sums, exactly (Y2)."""
    gap = np.clip(parts.exponent[nodes] - weight.exponent[nodes], -1000, 1000).astype(np.int32)
    chance = 1.0 / (1.0 + np.ldexp(parts.mantissa[nodes] / weight.mantissa[nodes], gap))
    words = fresh_words(entropy, len(nodes))
    point = words * 2.0**-64
    result = np.asarray(point < chance)
    for i in np.flatnonzero(np.abs(point - chance) < _DOUBT).tolist():
        node = int(nodes[i])
        first = int(tree.children[level][node])
        factors = [below.whole(first + place) for place in range(int(tree.broods(level)[node]))]
        product = (math.prod(mantissa for mantissa, _ in factors), sum(exponent for _, exponent in factors))
        result[i] = settle([weight.whole(node), product], int(words[i]), entropy) == 0
    return result


def read_plane(x: IntArray) -> tuple[BlockTree, IntArray]:
    """Check the shape, which is public, and cut the counts, which are private, to the range of exact arithmetic (C1).

    Cells on a line are those of aligned intervals, a rectangle's of halved blocks. No count makes it fail.

    >>> read_plane(np.array([[3, -1]]))[1].tolist()
    [3, 0]
    """
    if not (isinstance(x, np.ndarray) and x.dtype == np.int64 and x.ndim in (1, 2) and 1 <= x.size <= 2**24):
        got = f"{x.dtype} array of shape {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
        raise refuse("The table of counts", got, "an int64 array of shape (n,) or (height, width) with 1 to 2^24 cells")
    tree = interval_tree(len(x)) if x.ndim == 1 else block_tree(*x.shape)
    return tree, cut_counts(x.reshape(-1)[tree.order])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    most: ClassVar[int]
    attributes: tuple[str, ...]
    epsilon: Fraction
    penalty: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not 1 <= len(self.attributes) <= self.most:
            raise refuse("the attributes of a private choice", list(self.attributes), "one name" + " or two" * (self.most > 1))
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastCost(_Choice):
    """Ask for the least cost of any partition of a table's cells into blocks of a tree, with noise; see ``least_block_cost``.

    Args:
        attributes: one, whose cells lie on a line, or two; the cells of the first are the rows of the table.
        epsilon: what the answer may cost.
        penalty: what each bucket costs besides its deviation from the median, in records.
    """

    most = 2

    def draw(self, cells: IntArray, distance: int, entropy: Entropy) -> Fraction:
        """The noisy least cost, in records, from counts of shape (n,) or (height, width)."""
        return least_block_cost(cells, self.epsilon, entropy, penalty=self.penalty, distance=distance)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledPartition(_Choice):
    """Draw a partition of an attribute's cells into aligned intervals by the exponential mechanism; see ``sampled_partition``.

    Args:
        attributes: one.
        epsilon: what the partition may cost.
        penalty: what each bucket costs besides its deviation, in records.
        prior: a further penalty, in natural logarithms.
    """

    most = 1
    prior: Fraction = PRIOR

    def draw(self, cells: IntArray, distance: int, entropy: Entropy) -> Partition:
        """The partition."""
        return sampled_partition(cells, self.epsilon, entropy, penalty=self.penalty, prior=self.prior, distance=distance)


Selection = LeastCost | SampledPartition
"""Every choice that a series knows."""
