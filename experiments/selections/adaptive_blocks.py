"""The adaptive grid as one selection: some blocks are measured, then the parts of each that its noisy count deserves.

Both rounds are noisy counts of disjoint blocks, so the grid and all measurements are released together, and nothing paid for is thrown
away. A release measures the same two rounds as two plans of a series instead. The labels (W1 ...) refer to PROOFS-blocks.md.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from leastnoise._check import Exact, exact_positive, refuse, whole
from leastnoise._check.arrays import IntArray
from leastnoise._estimate._plane_expansion import joined_blocks
from leastnoise._kernel import Entropy, RectanglePartition
from leastnoise._kernel._laplace import discrete_laplace
from leastnoise._kernel._partition import noise_scale
from leastnoise._kernel._plane import read_plane, rectangles
from leastnoise._linop import block_tree
from leastnoise._planner import DEEP, FIRST_SHARE, GROUP_SHARE, divided, first_level, records_a_part

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptiveBlocks:
    """Noisy counts of blocks that nest, in three layers, finest first: parts, groups of parts, and the blocks of the first round; public.

    Blocks of the first round that are one part are one block here.

    Attributes:
        shape: height and width.
        order: places of the cells in row-major order; each block of each layer is a run of it.
        starts: for each layer, where its blocks begin in ``order``; each layer covers all cells, and each later one is coarser.
        values: for each layer, the noisy counts, int64; 0 where nothing was measured.
        scales: for each layer, the scale of the discrete Laplace noise of each, in records; infinite where nothing was measured.
        spent: the pure epsilon of all of it, for the distance it was asked for.
    """

    shape: tuple[int, int]
    order: IntArray
    starts: tuple[IntArray, ...]
    values: tuple[IntArray, ...]
    scales: tuple[Reals, ...]
    spent: Fraction

    def partition(self) -> RectanglePartition:
        """The finest layer as rectangles."""
        return rectangles(block_tree(*self.shape, "halves"), self.starts[0], self.spent)


def adaptive_blocks(
    x: IntArray,
    epsilon: Exact,
    entropy: Entropy,
    *,
    blocks: int,
    share: Exact = FIRST_SHARE,
    records: Exact = 2,
    cost: float | None = None,
    middle: Exact = GROUP_SHARE,
    deep: int = DEEP,
    distance: int = 1,
) -> AdaptiveBlocks:
    """Measure blocks of the tree, then divide each by its noisy count and measure the parts.

    Args:
        x: counts, int64 of shape (height, width); private.
        epsilon: what both rounds may cost, for data sets that differ by ``distance`` records.
        entropy: the source of the noise.
        blocks: least number of blocks of the first round (less than twice as many, or all cells if these are fewer); public.
        share: of the budget for the first round, between 0 and 1.
        records: a block is halved until its parts have about so many records' worth of noise each, ``records / epsilon2`` on average.
        cost: noisy least cost of a partition, in units of distance / epsilon; then ``records`` follow from it and the noisy counts.
        middle: of the second round's budget for groups of parts, where a block has many; between 0 and 1.
        deep: so many halvings are many; the groups are made by half as many.
        distance: how many records neighbours differ by.

    Returns:
        The measurements; they cost ``epsilon``.

    Raises:
        InputError: an argument is not of this kind; never because of a count.

    Guarantees:
        epsilon-DP (theorem W of PROOFS-blocks.md).

    Source:
        The adaptive grid of Qardaji, Yang, Li, ICDE 2013, on a tree and with least squares.

    >>> from leastnoise._kernel._entropy import SeededEntropy
    >>> found = adaptive_blocks(np.array([[90, 90, 0, 0]]), 1, SeededEntropy(1), blocks=2)
    >>> [starts.tolist() for starts in found.starts]
    [[0, 1, 2], [0, 2], [0, 2]]
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)  # Q3: group privacy
    first, groups = exact_positive("share", share), exact_positive("middle", middle)
    if not (first < 1 and groups < 1):
        raise refuse("share and middle", f"{share}, {middle}", "both between 0 and 1")
    tree, cells = read_plane(x, "halves")
    least = whole("blocks", blocks, 1)
    base = first_level(tree, least)
    coarse, coarse_scale = _measured(
        cells, tree.starts[base], [each * first], np.zeros(len(tree.starts[base]), dtype=np.int64), entropy
    )  # W1
    # From here on the tree is refined by noisy counts and public numbers alone (W2).
    rest = each * (1 - first)
    if cost is not None:
        records = Fraction(records_a_part(cost, float(int(coarse.sum()) * each)))
    layers, kind = divided(tree, base, coarse, rest / exact_positive("records", records), deep)
    fine, fine_scale = _measured(cells, layers[0], [rest, rest * (1 - groups)], kind[0], entropy)  # W3
    group, group_scale = _measured(cells, layers[1], [None, rest * groups], kind[1], entropy)
    blocks_of, together, together_scale = joined_blocks(tree.starts[base], coarse.astype(np.float64), coarse_scale, layers[0])
    return AdaptiveBlocks(
        shape=tree.shape,
        order=tree.order,
        starts=(*layers, blocks_of),
        values=(fine, group, together.astype(np.int64)),
        scales=(fine_scale, group_scale, together_scale),
        spent=spent,
    )


def _measured(
    cells: IntArray, starts: IntArray, budgets: list[Fraction] | list[Fraction | None], kind: IntArray, entropy: Entropy
) -> tuple[IntArray, Reals]:
    """Noisy counts of disjoint blocks, each with the budget of its kind, and their scales; without a budget 0 and infinity (W1, W3)."""
    values = np.zeros(len(starts), dtype=np.int64)
    scales = np.full(len(starts), np.inf)
    sums = np.add.reduceat(cells, starts)
    for number, budget in enumerate(budgets):
        if budget is None:
            continue
        numerator, denominator = noise_scale(1, budget, len(cells))  # refused whether such blocks exist or not
        mine = np.flatnonzero(kind == number)
        if len(mine) > 0:
            values[mine] = sums[mine] + discrete_laplace(numerator, denominator, len(mine), entropy)
            scales[mine] = numerator / denominator
    return values, scales
