"""Answers from what a data-aware mechanism measured on a table of two attributes, with the two parts of their error.

The table's cells fall into blocks that are taken for even. *Noise*: exact given the blocks, of least squares before any bounds.
*Approximation*: estimated: a part is taken to be as uneven inside as it and its neighbours differ beyond their noise.

Cells are in an order in which every block is a run; a layer is given by where its blocks begin. Public numbers only.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leastnoise._check import refuse
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._least_squares import Answer
from leastnoise._families import LevelInverse, Levels, along_each
from leastnoise._linop import Coarse, Ordered, Ranges, Total, apply, block_tree
from leastnoise._measurements import Observation
from leastnoise._workload import Product


def laplace_variances(scales: FloatArray) -> FloatArray:
    """Variances of discrete Laplace noise, in squared records; infinite for infinite scales."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (2 * np.sinh(0.5 / scales) ** 2))


def nested_blocks(starts: Sequence[IntArray], scales: Sequence[FloatArray]) -> LevelInverse:
    """What layers of blocks tell of the finest ones, each layer joining blocks of the one before."""
    if not np.isfinite(scales[0]).all():
        raise refuse("scales", "an infinite one in the finest layer", "finite there: each finest block has to be measured")
    if not all(np.isin(coarse, fine).all() for fine, coarse in itertools.pairwise(starts)):
        raise refuse("starts", "layers that do not nest", "where blocks begin, each layer joining blocks of the one before")
    groups = [*(np.searchsorted(layer, starts[0], side="right") - 1 for layer in starts), np.zeros(len(starts[0]), dtype=np.int64)]
    parents = tuple(coarse[np.flatnonzero(np.diff(fine, prepend=-1))] for fine, coarse in itertools.pairwise(groups))
    return LevelInverse(Levels(tuple(groups), parents), (*(1 / laplace_variances(scale) for scale in scales), 0.0))


def block_counts(starts: Sequence[IntArray], values: Sequence[IntArray | FloatArray], scales: Sequence[FloatArray]) -> FloatArray:
    """Least-squares counts of the finest blocks."""
    known = nested_blocks(starts, scales)
    each = zip(known.precisions, values, known.levels.groups, strict=False)
    return known.solve(np.asarray(sum((precision * value)[groups] for precision, value, groups in each)))


def joined_blocks(starts: IntArray, values: FloatArray, scales: FloatArray, parts: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Blocks that were measured, those of one part together."""
    first = np.flatnonzero(np.isin(starts, parts))
    if len(first) == len(starts):
        return starts, values, scales
    variances = np.add.reduceat(laplace_variances(scales), first)
    return starts[first], np.add.reduceat(values, first), np.asarray(0.5 / np.arcsinh(np.sqrt(0.5 / variances)))


def block_errors(starts: Sequence[IntArray], scales: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Standard errors of weighted sums of the finest blocks' least-squares counts, from the noise alone."""
    # They are right given the blocks. What a query misses because cells within a block are not alike is not in them.
    return np.sqrt(np.maximum(nested_blocks(starts, scales).squares(weights.T), 0.0))


def kept_shares(
    counts: FloatArray, variances: FloatArray, total: float, starts: IntArray, base: IntArray, levels: Sequence[IntArray]
) -> list[FloatArray]:
    """How much of the total, and of deviations from evenness, is kept, so that errors of the finest blocks are least."""
    # A factor for each first block and level: ``1 - (k - 2) / q``, at least 0, with q the sum of the k squared deviations in units of their
    # noise. Where the first block is even q is about k, and next to nothing is kept; where its parts differ beyond the noise next to
    # everything. Above the first blocks the table is one group, of which everything is kept where q is not what noise alone gives: above
    # ``k + 2 sqrt(5 k)``, 5 the variance of squared Laplace noise. One heavy block would lose what many even ones gain. Of the total it is
    # ``1 - 1 / q``: one that is not clear of its noise would be spread over all cells.
    # Source: James and Stein 1961, the positive part.
    size = len(levels[-1])
    areas = np.diff(starts, append=size)
    cells, variance = (np.append(0.0, np.cumsum(np.repeat(values / areas, areas))) for values in (counts, variances))
    factors = [np.array([max(1 - total / max(float(counts.sum()) ** 2, 1e-12), 0.0)])]
    for coarse, fine in itertools.pairwise(levels):
        first = np.searchsorted(fine, coarse)
        end, middle = np.append(coarse[1:], size), np.append(fine[1:], size)[first]
        # Within a finest block there is no deviation, and no noise of one.
        divided = np.isin(coarse, starts) & np.isin(middle, starts) & (middle < end)
        part = (middle - coarse) / (end - coarse)
        left, right = (variance[middle] - variance[coarse], variance[end] - variance[middle])
        deviation = cells[middle] - cells[coarse] - part * (cells[end] - cells[coarse])
        noise = (1 - part) ** 2 * left + part**2 * right
        owner = np.searchsorted(base, coarse, side="right") - 1
        owner[end > np.append(base[1:], size)[owner]] = len(base)  # above the first blocks
        ratio = np.where(divided, deviation**2 / np.where(divided, noise, 1.0), 0.0)
        number, q = (np.bincount(owner, values, len(base) + 1) for values in (divided.astype(np.float64), ratio))
        factor = np.where(number > 2, np.maximum(1 - (number - 2) / np.maximum(q, 1e-12), 0.0), 1.0)
        if q[-1] > number[-1] + 2 * math.sqrt(5 * number[-1]):
            factor[-1] = 1.0
        factors.append(np.where(divided, factor[owner], 1.0))
    return factors


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


_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Grid:
    """The adaptive grid: rectangles that cover a table, groups of them and first blocks, all measured."""

    attributes: tuple[str, ...]
    shape: tuple[int, ...]
    order: IntArray
    layers: tuple[IntArray, IntArray, IntArray]
    scales: tuple[FloatArray, FloatArray, FloatArray]
    counts: FloatArray
    square: FloatArray
    kept: Sequence[FloatArray] | None

    @staticmethod
    def of(observation: Observation, *, shrunk: bool = False) -> "Grid":
        """From the observation of both rounds."""
        first, second = (_factor(observation, index) for index in (0, 1))
        coarse, ranges = first.operator.operator, second.operator.operator
        if not (isinstance(coarse, Coarse) and isinstance(ranges, Ranges)):
            raise TypeError(type(ranges))
        base = coarse.starts
        # how many of the rows, from the first on, cover the cells one after the other
        count = int(np.flatnonzero(ranges.high == ranges.size - 1)[0]) + 1
        values = [value / observation.measurements.grid for value in observation.values]
        scales = [
            float(block.scale) / factor.weights for block, factor in zip(observation.measurements.blocks, (first, second), strict=True)
        ]
        parts = ranges.low[:count]
        base, values[0], scales[0] = joined_blocks(base, values[0], scales[0], parts)
        groups = np.union1d(ranges.low[count:], base)
        index = np.searchsorted(groups, ranges.low[count:])
        value, scale = np.zeros(len(groups)), np.full(len(groups), np.inf)
        value[index], scale[index] = values[1][count:], scales[1][count:]
        layers, noise = (parts, groups, base), (scales[1][:count], scale, scales[0])
        counts = block_counts(layers, [values[1][:count], value, values[0]], noise)
        shape = tuple(observation.measurements.domain.kind(name).size for name in second.attributes)
        variances, kept = laplace_variances(noise[0]), None
        if shrunk:
            total = float(block_errors(layers, noise, np.ones((1, len(parts))))[0]) ** 2
            kept = kept_shares(counts, variances, total, parts, base, block_tree(*shape).starts)
        square = _differences(values[1][:count], variances, parts, base, counts)
        grid = Grid(second.attributes, shape, second.operator.order, layers, noise, counts, square, kept)
        if not (grid.areas == np.diff(parts, append=len(grid.order))).all():
            raise ValueError("blocks that are no rectangles")
        return grid

    @cached_property
    def _sides(self) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
        """First rows and columns of the parts, and how many they have: each begins at its first cell and ends at its last."""
        firsts = np.divmod(self.order[self.layers[0]], self.shape[1])
        lasts = np.divmod(self.order[np.append(self.layers[0][1:], len(self.order)) - 1], self.shape[1])
        return firsts, (lasts[0] - firsts[0] + 1, lasts[1] - firsts[1] + 1)

    @property
    def areas(self) -> IntArray:
        """How many cells the parts have."""
        return self._sides[1][0] * self._sides[1][1]

    @cached_property
    def cells(self) -> FloatArray:
        """The table by uniform expansion, no block of the tree of halves below 0 or above the one it lies in; shape (height, width)."""
        cells, tree = self._even.reshape(-1), block_tree(*self.shape)
        bounded = np.empty_like(cells)
        bounded[tree.order] = bounded_cells(cells[tree.order], np.arange(len(cells)), tree.starts, self.kept)
        return bounded.reshape(self.shape)

    @cached_property
    def _even(self) -> FloatArray:
        cells = np.empty(len(self.order))
        cells[self.order] = np.repeat(self.counts / self.areas, self.areas)
        return cells.reshape(self.shape)

    def estimate(self, product: Product) -> Answer:
        """Uniform expansion, bounded."""
        # The noise is that of least squares given the blocks, before any bounds; the rest of the error is as if a part were as uneven
        # inside as parts that lie together differ beyond noise, and what shrinking and the bounds changed. With the square of that change
        # in it an interval of t standard errors holds whatever least squares holds with sqrt(t^2 - 1) of its own (Cauchy and Schwarz), so
        # at a nominal 95% at least 90.8% of normal errors, wherever answers are moved to.
        noise = self._by_queries(product, lambda mean, _: block_errors(self.layers, self.scales, mean))
        # Each part has its deviation in one cell, anywhere: its square times the variance of a query's entries.
        uneven = self._by_queries(product, lambda mean, squares: np.maximum(squares - mean**2, 0.0) @ self.square)
        moved = self._asked(product, self.cells - self._even)
        return Answer(self._asked(product, self.cells), noise, np.sqrt(uneven + moved**2))

    def _asked(self, product: Product, table: FloatArray) -> FloatArray:
        return along_each((self._operator(product, name) for name in self.attributes), table).reshape(product.shape)

    def _operator(self, product: Product, name: str) -> Any:
        if name in product.attributes:
            return product.operators[product.attributes.index(name)]
        return Total(self.shape[self.attributes.index(name)])

    def _by_queries(self, product: Product, of_means: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        """A function of the means of queries' entries in each part, and of their squares' means, some queries at a time."""
        entries = [apply(operator, np.eye(operator.size)) for operator in (self._operator(product, name) for name in self.attributes)]
        kinds = [[np.pad((side**power).cumsum(axis=1), ((0, 0), (1, 0))) for side in entries] for power in (1, 2)]
        out = np.empty((len(entries[0]), len(entries[1])))
        across = min(out.shape[1], max(1, _AT_ONCE // len(self.counts)))
        down = max(1, _AT_ONCE // (len(self.counts) * across))
        for top in range(0, out.shape[0], down):
            for left in range(0, out.shape[1], across):
                part = slice(top, top + down), slice(left, left + across)
                mean, squares = (self._means(sums, *part) for sums in kinds)
                out[part] = of_means(mean, squares).reshape(out[part].shape)
        return out.reshape(product.shape)

    def _means(self, sums: list[FloatArray], down: slice, across: slice) -> FloatArray:
        """Mean over the cells of each part of the products of some rows' entries, from running sums; shape (queries, k)."""
        rows, columns = (
            (running[part][:, first + length] - running[part][:, first]) / length
            for running, part, first, length in zip(sums, (down, across), *self._sides, strict=True)
        )
        return np.asarray((rows[:, None, :] * columns).reshape(-1, len(self.counts)))


def _differences(values: FloatArray, variance: FloatArray, parts: IntArray, base: IntArray, counts: FloatArray) -> FloatArray:
    """Square of what each part may hide: the mean square difference, beyond noise, of neighbouring parts of its first block, or its own."""
    # The noise's uncertainty in the mean is added; a part cannot deviate by more than it holds.
    if len(parts) == 1:
        return np.maximum(counts, 0.0) ** 2 + variance
    square = np.diff(values) ** 2 - variance[1:] - variance[:-1]
    owner = np.searchsorted(base, parts, side="right") - 1
    inside = owner[1:] == owner[:-1]
    alone = np.bincount(owner, minlength=len(base)) == 1
    total, number, chance = np.zeros(len(base)), np.zeros(len(base)), np.zeros(len(base))
    for side in (slice(1, None), slice(None, -1)):
        used = inside | alone[owner[side]]  # a block of one part is compared with what lies beside it
        np.add.at(total, owner[side][used], square[used])
        np.add.at(number, owner[side][used], 1)
        np.add.at(chance, owner[side][used], (variance[1:] + variance[:-1])[used] ** 2)
    # Every pair within a block was counted twice: a mean of few squares is uncertain by the root of 2 over their number.
    number = np.maximum(number, 1)
    hidden = (np.maximum(total / number, 0.0) + np.sqrt(2 * chance) / number)[owner]
    # A part that stands out may hold all of it in one cell.
    square_of = np.append(square, square[-1]) + np.append(square[0], square)
    hidden = np.maximum(hidden, square_of / 2)
    return np.minimum(hidden, np.maximum(counts, 0.0) ** 2 + variance)


def _factor(observation: Observation, side: int) -> Any:
    (factor,) = observation.measurements.blocks[side].factors
    if not isinstance(factor.operator, Ordered) or len(factor.attributes) != 2:
        raise TypeError(type(factor.operator))
    return factor
