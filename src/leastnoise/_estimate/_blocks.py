"""Estimates from noisy counts of blocks that nest: least squares, their errors on rectangles, and the bounds from the top down.

Cells are in an order in which every block is a run; a layer is given by where its blocks begin. Public numbers only.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from leastnoise._check import refuse
from leastnoise._check.arrays import FloatArray, IntArray


def laplace_variances(scales: FloatArray) -> FloatArray:
    """Variances of discrete Laplace noise, in squared records; infinite for infinite scales.

    >>> laplace_variances(np.array([2.0, np.inf])).round(4).tolist()
    [7.8354, inf]
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (2 * np.sinh(0.5 / scales) ** 2))


def block_counts(starts: Sequence[IntArray], values: Sequence[IntArray | FloatArray], scales: Sequence[FloatArray]) -> FloatArray:
    """Least-squares counts of the finest blocks.

    Args:
        starts: for each layer, finest first, where its blocks begin; each later layer joins blocks of the one before.
        values: noisy counts of the blocks of each layer.
        scales: of their discrete Laplace noise, in records; infinite where nothing was measured, but not in the finest layer.

    Returns:
        Unbiased counts of the finest blocks, shape (k,).

    Raises:
        InputError: layers that do not nest, or a finest block that was not measured.

    Source:
        Hay et al., PVLDB 2010: one pass up, one down; with a variance for each block.

    >>> block_counts([np.array([0, 1]), np.array([0])], [np.array([4, 0]), np.array([10])], [np.ones(2), np.ones(1)]).round(6).tolist()
    [6.0, 2.0]
    """
    firsts, spreads, shares = _upward(starts, scales)
    estimate = [np.asarray(values[0], dtype=np.float64)]
    for first, share, value in zip(firsts, shares, values[1:], strict=True):
        below = np.add.reduceat(estimate[-1], first)
        estimate.append(np.where(share > 0, share * value, 0.0) + (1 - share) * below)
    final = estimate[-1]
    for place in range(len(firsts) - 1, -1, -1):
        first, noise = firsts[place], spreads[place]
        gap = (final - np.add.reduceat(estimate[place], first)) / np.add.reduceat(noise, first)
        final = estimate[place] + np.repeat(gap, np.diff(first, append=len(noise))) * noise
    return np.asarray(final)


def block_errors(starts: Sequence[IntArray], scales: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Standard errors of weighted sums of the finest blocks' least-squares counts, from the noise alone.

    They are right given the blocks. What a query misses because cells within a block are not alike is not in them.

    Args:
        starts: as for ``block_counts``.
        scales: as for ``block_counts``.
        weights: one row a query, (m, k): for a rectangle the share of each block that lies in it.

    Returns:
        In records, shape (m,).

    Raises:
        InputError: as ``block_counts``.

    >>> float(block_errors([np.array([0, 1]), np.array([0])], [np.full(2, 2.0), np.full(1, 2.0)], np.ones((1, 2)))[0].round(4))
    2.2855
    """
    firsts, spreads, shares = _upward(starts, scales)
    variances = laplace_variances(scales[0])
    product = weights * variances  # covariance of each query with each block, before the coarser layers are used
    result = (weights * product).sum(axis=1)
    for first, share, noise in zip(firsts, shares, spreads[:-1], strict=True):
        joined = np.add.reduceat(product, first, axis=1)
        result -= (joined**2 * share / np.add.reduceat(noise, first)).sum(axis=1)
        product = joined * (1 - share)
    return np.sqrt(np.maximum(result, 0.0))


def bounded_cells(counts: FloatArray, starts: IntArray, levels: Sequence[IntArray]) -> FloatArray:
    """Cells by uniform expansion, so that from the top down no block is below 0 or above the block it is part of.

    Args:
        counts: of the finest blocks, shape (k,).
        starts: where they begin.
        levels: where the blocks of each level of a tree begin, coarse to fine, first all cells, last each cell; a block has one or
            two parts in the next level.

    Returns:
        Counts of the cells, at least 0, in the order of the tree; biased.

    Raises:
        InputError: levels that are no such tree.

    >>> bounded_cells(np.array([5.0, -1.0]), np.array([0, 2]), [np.array([0]), np.array([0, 2]), np.arange(4)]).tolist()
    [2.0, 2.0, 0.0, 0.0]
    """
    size = len(levels[-1])
    lengths = [np.diff(level, append=size) for level in levels]
    areas = np.diff(starts, append=size)
    raw = np.repeat(counts / areas, areas)
    children = [np.searchsorted(fine, coarse) for coarse, fine in itertools.pairwise(levels)]
    broods = [np.diff(first, append=len(fine)) for first, fine in zip(children, levels[1:], strict=True)]
    if len(levels[0]) != 1 or any(not (brood.min() >= 1 and brood.max() <= 2) for brood in broods):
        raise refuse("levels", [len(level) for level in levels], "a tree: one block, then each of one or two parts, and last the cells")
    sums = [raw]
    for first in reversed(children):
        sums.insert(0, np.add.reduceat(sums[0], first))
    cells = np.maximum(sums[0], 0.0)
    for level, (first, brood) in enumerate(zip(children, broods, strict=True)):
        fine, total = sums[level + 1], sums[level]
        part = lengths[level + 1][first] / lengths[level]
        # The parts keep what the first has more than its share of the block, as far as the bounds allow.
        left = np.clip(cells * part + fine[first] - total * part, 0.0, cells)
        both = np.repeat(cells - left, brood)
        both[first] = np.where(brood > 1, left, cells)
        cells = both
    return cells


def _upward(starts: Sequence[IntArray], scales: Sequence[FloatArray]) -> tuple[list[IntArray], list[FloatArray], list[FloatArray]]:
    """First parts of each block of the later layers, variances on the way up, and the weight of each own measurement."""
    if not np.isfinite(scales[0]).all():
        raise refuse("scales", "an infinite one in the finest layer", "finite there: each finest block has to be measured")
    firsts, spreads, shares = [], [laplace_variances(scales[0])], []
    for (fine, coarse), scale in zip(itertools.pairwise(starts), scales[1:], strict=True):
        if not np.isin(coarse, fine).all():
            raise refuse("starts", "layers that do not nest", "where blocks begin, each layer joining blocks of the one before")
        first = np.searchsorted(fine, coarse)
        noise = np.add.reduceat(spreads[-1], first)
        ratio = noise / laplace_variances(scale)
        share = ratio / (1 + ratio)
        firsts.append(first)
        shares.append(share)
        spreads.append((1 - share) * noise)
    return firsts, spreads, shares
