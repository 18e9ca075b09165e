"""Estimates from noisy counts of blocks that nest: least squares, their errors on rectangles, and the bounds from the top down.

Cells are in an order in which every block is a run; a layer is given by where its blocks begin. Public numbers only.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from leastnoise._check import refuse
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import Operator, apply_transpose, dense


def laplace_variances(scales: FloatArray) -> FloatArray:
    """Variances of discrete Laplace noise, in squared records; infinite for infinite scales."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (2 * np.sinh(0.5 / scales) ** 2))


def block_counts(starts: Sequence[IntArray], values: Sequence[IntArray | FloatArray], scales: Sequence[FloatArray]) -> FloatArray:
    """Least-squares counts of the finest blocks.

    Source:
        Hay et al., PVLDB 2010: one pass up, one down; with a variance for each block.
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


def joined_blocks(starts: IntArray, values: FloatArray, scales: FloatArray, parts: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Blocks that were measured, those of one part together."""
    first = np.flatnonzero(np.isin(starts, parts))
    if len(first) == len(starts):
        return starts, values, scales
    variances = np.add.reduceat(laplace_variances(scales), first)
    return starts[first], np.add.reduceat(values, first), np.asarray(0.5 / np.arcsinh(np.sqrt(0.5 / variances)))


def block_errors(starts: Sequence[IntArray], scales: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Standard errors of weighted sums of the finest blocks' least-squares counts, from the noise alone.

    They are right given the blocks. What a query misses because cells within a block are not alike is not in them.
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


def told_by(operator: Operator, precision: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The inverse covariance of the cells, shape (n, n), and the weighted sum of answers, shape (n,), from noisy queries."""
    return apply_transpose(operator, precision[:, None] * dense(operator)), apply_transpose(operator, precision * values)


def kept_shares(
    counts: FloatArray, variances: FloatArray, total: float, starts: IntArray, base: IntArray, levels: Sequence[IntArray]
) -> list[FloatArray]:
    """How much of the total, and of deviations from evenness, is kept, so that errors of the finest blocks are least.

    A factor for each first block and level: ``1 - (k - 2) / q``, at least 0, with q the sum of the k squared deviations in units of their
    noise. Where the first block is even q is about k, and next to nothing is kept; where its parts differ beyond the noise next to
    everything. Above the first blocks the table is one group, of which everything is kept where q is not what noise alone gives: above
    ``k + 2 sqrt(5 k)``, 5 the variance of squared Laplace noise. One heavy block would lose what many even ones gain.
    Of the total it is ``1 - 1 / q``: one that is not clear of its noise would be spread over all cells.

    Source: James and Stein 1961, the positive part.
    """
    size = len(levels[-1])
    areas = np.diff(starts, append=size)
    cells, variance = (np.append(0.0, np.cumsum(np.repeat(one / areas, areas))) for one in (counts, variances))
    found = [np.array([max(1 - total / max(float(counts.sum()) ** 2, 1e-12), 0.0)])]
    for coarse, fine in itertools.pairwise(levels):
        first = np.searchsorted(fine, coarse)
        end, middle = np.append(coarse[1:], size), np.append(fine[1:], size)[first]
        # Within a finest block there is no deviation, and no noise of one.
        divided = np.isin(coarse, starts) & np.isin(middle, starts) & (middle < end)
        part = (middle - coarse) / (end - coarse)
        own, other = (variance[middle] - variance[coarse], variance[end] - variance[middle])
        deviation = cells[middle] - cells[coarse] - part * (cells[end] - cells[coarse])
        noise = (1 - part) ** 2 * own + part**2 * other
        owner = np.searchsorted(base, coarse, side="right") - 1
        owner[end > np.append(base[1:], size)[owner]] = len(base)  # above the first blocks
        ratio = np.where(divided, deviation**2 / np.where(divided, noise, 1.0), 0.0)
        number, q = (np.bincount(owner, one, len(base) + 1) for one in (divided.astype(np.float64), ratio))
        factor = np.where(number > 2, np.maximum(1 - (number - 2) / np.maximum(q, 1e-12), 0.0), 1.0)
        if q[-1] > number[-1] + 2 * math.sqrt(5 * number[-1]):
            factor[-1] = 1.0
        found.append(np.where(divided, factor[owner], 1.0))
    return found


def bounded_cells(counts: FloatArray, starts: IntArray, levels: Sequence[IntArray], kept: Sequence[FloatArray] | None = None) -> FloatArray:
    """Cells by uniform expansion, so that from the top down no block is below 0 or above the block it is part of."""
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
    cells = np.maximum(sums[0] if kept is None else sums[0] * kept[0], 0.0)
    for level, (first, brood) in enumerate(zip(children, broods, strict=True)):
        fine, total = sums[level + 1], sums[level]
        part = lengths[level + 1][first] / lengths[level]
        # The parts keep what the first has more than its share of the block, as far as the bounds allow.
        deviation = fine[first] - total * part
        left = np.clip(cells * part + (deviation if kept is None else kept[level + 1] * deviation), 0.0, cells)
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
