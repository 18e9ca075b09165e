"""A partition that is pure post-processing: measure a few levels of blocks, then prune the hierarchy bottom-up.

The measurements stay with the partition, so that the final least squares uses all that was paid for. Only the measuring touches the
counts; the labels (V1 ...) refer to PROOFS-blocks.md.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from baselines._noisy_costs import read_line

from leastnoise._check import Exact, exact_positive, refuse, whole
from leastnoise._check.arrays import IntArray
from leastnoise._kernel._entropy import Entropy
from leastnoise._kernel._laplace import discrete_laplace
from leastnoise._kernel._partition import Partition, noise_scale

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pruned(Partition):
    """A partition with what was measured on the way.

    Attributes:
        widths: block widths of the levels, coarse to fine.
        values: their noisy counts, one int64 array a level, to be used again.
        scales: their noise scales, in records.
    """

    widths: tuple[int, ...]
    values: tuple[IntArray, ...]
    scales: tuple[Fraction, ...]


def pruned_levels(
    x: IntArray,
    epsilon: Exact,
    entropy: Entropy,
    *,
    widths: Sequence[int],
    shares: Sequence[Exact],
    penalty: float = 3.0,
    distance: int = 1,
) -> Pruned:
    """Measure levels of blocks and join what noise alone explains.

    Args:
        x: counts, int64 of shape (n,); private.
        epsilon: what the measurements may cost, for data sets that differ by ``distance`` records.
        entropy: the source of the noise.
        widths: cells in a block of each level, each a multiple of the next one; the last level's blocks are the finest buckets.
        shares: of the budget for each level, above 0, at most 1 together.
        penalty: what a further bucket has to gain, in units of the residual's variance; see ``prune``.
        distance: how many records neighbours differ by.

    Returns:
        The partition with its measurements; it cost ``epsilon``.

    Raises:
        InputError: an argument is not of this kind; never because of a count.

    Guarantees: the partition together with the measurements is epsilon-DP (theorem V of PROOFS-blocks.md).

    Source: penalised least squares on a tree (CART's pruning), for measured hierarchies.

    >>> from leastnoise._kernel._entropy import SeededEntropy
    >>> x = np.repeat([9000, 0], [4, 12])
    >>> found = pruned_levels(x, 1, SeededEntropy(3), widths=(16, 4, 1), shares=("1/4", "1/4", "1/2"))
    >>> found.starts.tolist(), [len(level) for level in found.values]
    ([0, 4, 8, 12], [1, 4, 16])
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)
    cells = read_line(x)
    n = len(cells)
    chain = tuple(whole("width", width, 1, 2**24) for width in widths)
    if not chain or any(coarse <= fine or coarse % fine for coarse, fine in itertools.pairwise(chain)):
        raise refuse("widths", list(widths), "widths of blocks, each a larger multiple of the next")
    parts = tuple(exact_positive("share", share) for share in shares)
    if len(parts) != len(chain) or not sum(parts) <= 1:
        raise refuse("shares", list(shares), "one share above 0 for each width, at most 1 together")
    values, scales = [], []
    for width, part in zip(chain, parts, strict=True):
        numerator, denominator = noise_scale(1, each * part, n)
        sums = np.add.reduceat(cells, np.arange(0, n, width))
        values.append(sums + discrete_laplace(numerator, denominator, len(sums), entropy))  # V1
        scales.append(Fraction(numerator, denominator))
    starts = prune(n, chain, values, [float(scale) for scale in scales], penalty)  # V2
    return Pruned(size=n, starts=starts, spent=spent, widths=chain, values=tuple(values), scales=tuple(scales))


def prune(size: int, widths: Sequence[int], values: Sequence[IntArray], scales: Sequence[float], penalty: float) -> IntArray:
    """Cheapest pruning of a measured hierarchy; public numbers only.

    At every node either all measurements in its subtree are explained by one density, the residual sum of squares in units of the noise's
    variance being the cost, or its children are taken as they come out best; each bucket costs ``penalty``.

    Args:
        size: number of cells.
        widths: of the levels, coarse to fine.
        values: noisy counts of the blocks of each level.
        scales: of the Laplace noise of each level, in records.
        penalty: cost of a bucket.

    Returns:
        Starts of the buckets, int64.

    >>> prune(4, (2, 1), [np.array([20, 0]), np.array([10, 9, 1, -1])], [1.0, 1.0], 3.0).tolist()
    [0, 2]
    """
    cost: Reals = np.zeros(0)
    squares: list[Reals] = []  # sums over the subtree, by weight: cells squared, cells times value, value squared
    kept: list[npt.NDArray[np.bool_]] = []
    for place in range(len(widths) - 1, -1, -1):
        first = np.arange(0, size, widths[place])
        cells = np.diff(first, append=size).astype(np.float64)
        weight = 1 / (2 * scales[place] ** 2)
        own = [weight * cells**2, weight * cells * values[place], weight * values[place].astype(np.float64) ** 2]
        if not squares:
            squares, cost = own, np.full(len(first), penalty)
            kept.append(np.ones(len(first), dtype=np.bool_))
            continue
        child = np.arange(0, len(cost), widths[place] // widths[place + 1])
        squares = [mine + np.add.reduceat(below, child) for mine, below in zip(own, squares, strict=True)]
        together = np.maximum(squares[2] - squares[1] ** 2 / squares[0], 0.0) + penalty
        # What the node's own measurement disagrees with its children's is the same noise in either case.
        apart = np.add.reduceat(cost, child) + _disagreement(place, widths, values, scales)
        kept.append(together <= apart)
        cost = np.minimum(together, apart)
    starts = np.zeros(size, dtype=np.bool_)
    alive = np.ones(len(kept[-1]), dtype=np.bool_)
    for place, join in enumerate(reversed(kept)):
        starts[:: widths[place]] |= alive & join
        if place + 1 < len(widths):
            ratio = widths[place] // widths[place + 1]
            alive = np.repeat(alive & ~join, ratio)[: -(-size // widths[place + 1])]
    return np.flatnonzero(starts)


def _disagreement(place: int, widths: Sequence[int], values: Sequence[IntArray], scales: Sequence[float]) -> Reals:
    """Squared difference of each block's measurement and the sum of its children's, in units of its variance."""
    child = np.arange(0, len(values[place + 1]), widths[place] // widths[place + 1])
    number = np.diff(child, append=len(values[place + 1]))
    gap = values[place] - np.add.reduceat(values[place + 1], child)
    return np.asarray(gap.astype(np.float64) ** 2 / (2 * (scales[place] ** 2 + number * scales[place + 1] ** 2)))
