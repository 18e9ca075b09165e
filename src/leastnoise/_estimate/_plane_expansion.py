"""Answers from what a data-aware mechanism measured on a table of two attributes, with the two parts of their error.

The table's cells fall into blocks that are taken for even. *Noise*: exact given the blocks, of least squares before any bounds.
*Approximation*: estimated. Where only buckets were measured, it is what their choice may have left inside them; in an adaptive grid a part
is taken to be as uneven inside as it and its neighbours differ beyond their noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastnoise._accuracy import block_variance
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._answer import Answer
from leastnoise._estimate._blocks import block_counts, block_errors, bounded_cells, joined_blocks, kept_shares, laplace_variances, told_by
from leastnoise._estimate._hidden import Hidden
from leastnoise._linop import Coarse, Ordered, Ranges, Total, along, apply, block_tree
from leastnoise._measurements import Observation
from leastnoise._workload import Product

_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rectangles that cover a table, with estimates of their counts."""

    attributes: tuple[str, str]
    tops: IntArray
    lefts: IntArray
    heights: IntArray
    widths: IntArray
    order: IntArray
    starts: IntArray
    shape: tuple[int, int]
    counts: FloatArray
    kept: Sequence[FloatArray] | None = None

    @staticmethod
    def of(attributes: tuple[str, str], shape: tuple[int, int], order: IntArray, starts: IntArray, counts: FloatArray) -> "Blocks":
        """Blocks that are rectangles: each begins at its first cell and ends at its last."""
        top, left = np.divmod(order[starts], shape[1])
        bottom, right = np.divmod(order[np.append(starts[1:], len(order)) - 1], shape[1])
        found = Blocks(attributes, top, left, bottom - top + 1, right - left + 1, order, starts, shape, counts)
        if not (found.heights * found.widths == np.diff(starts, append=len(order))).all():
            raise ValueError("blocks that are no rectangles")
        return found

    @cached_property
    def cells(self) -> FloatArray:
        """The table by uniform expansion, no block of the tree of halves below 0 or above the one it lies in; shape (height, width)."""
        cells, tree = self._even.reshape(-1), block_tree(*self.shape, "halves")
        bounded = np.empty_like(cells)
        bounded[tree.order] = bounded_cells(cells[tree.order], np.arange(len(cells)), tree.starts, self.kept)
        return bounded.reshape(self.shape)

    @cached_property
    def _even(self) -> FloatArray:
        lengths = self.heights * self.widths
        cells = np.empty(len(self.order))
        cells[self.order] = np.repeat(self.counts / lengths, lengths)
        return cells.reshape(self.shape)

    def estimate(self, product: Product, noise: FloatArray, square: FloatArray | None) -> Answer:
        """Uniform expansion, bounded."""
        values = self._asked(product, self.cells)
        if square is None:
            return Answer(values, noise, np.full(product.shape, np.nan))
        moved = self._asked(product, self.cells - self._even)
        return Answer(values, noise, np.sqrt(self._unevenness(product, square) + moved**2))

    def _asked(self, product: Product, table: FloatArray) -> FloatArray:
        for axis, name in enumerate(self.attributes):
            table = along(apply, self._operator(product, name), table, axis)
        return np.asarray(table).reshape(product.shape)

    def _operator(self, product: Product, name: str) -> Any:
        if name in product.attributes:
            return product.operators[product.attributes.index(name)]
        return Total(self.shape[self.attributes.index(name)])

    def by_queries(self, product: Product, found: Callable[..., FloatArray], *, squares: bool = False) -> FloatArray:
        """A function of the queries' weights on the blocks, some queries at a time."""
        entries = [apply(one, np.eye(one.size)) for one in (self._operator(product, name) for name in self.attributes)]
        sums = [np.pad(one.cumsum(axis=1), ((0, 0), (1, 0))) for one in entries]
        more = [np.pad((one**2).cumsum(axis=1), ((0, 0), (1, 0))) for one in entries] if squares else []
        out = np.empty((len(entries[0]), len(entries[1])))
        across = min(out.shape[1], max(1, _AT_ONCE // len(self.counts)))
        down = max(1, _AT_ONCE // (len(self.counts) * across))
        for top in range(0, out.shape[0], down):
            for left in range(0, out.shape[1], across):
                part = slice(top, top + down), slice(left, left + across)
                given = [self._means(kind, *part) for kind in (sums, more) if kind]
                out[part] = found(*given).reshape(out[part].shape)
        return out.reshape(product.shape)

    def _means(self, sums: list[FloatArray], down: slice, across: slice) -> FloatArray:
        """Mean over the cells of each block of the products of some rows' entries, from running sums; shape (queries, k)."""
        rows, columns = (
            (one[part][:, first + length] - one[part][:, first]) / length
            for one, part, first, length in zip(sums, (down, across), (self.tops, self.lefts), (self.heights, self.widths), strict=True)
        )
        return np.asarray((rows[:, None, :] * columns).reshape(-1, len(self.counts)))

    def _unevenness(self, product: Product, square: FloatArray) -> FloatArray:
        """Squared error where each block has its deviation in one cell, anywhere: its square times the variance of a query's entries."""
        return self.by_queries(product, lambda mean, squares: np.maximum(squares - mean**2, 0.0) @ square, squares=True)


@dataclass(frozen=True, eq=False)
class Grid:
    """The adaptive grid: parts, groups of parts and first blocks, all measured."""

    blocks: Blocks
    layers: tuple[IntArray, IntArray, IntArray]
    scales: tuple[FloatArray, FloatArray, FloatArray]
    square: FloatArray

    @staticmethod
    def of(observation: Observation, *, shrunk: bool = False) -> "Grid":
        """From the observation of both rounds."""
        first, second = (_factor(observation, place) for place in (0, 1))
        coarse, ranges = first.operator.operator, second.operator.operator
        if not (isinstance(coarse, Coarse) and isinstance(ranges, Ranges)):
            raise TypeError(type(ranges))
        order, base, count = second.operator.order, coarse.starts, _parts(ranges)
        values = [value / observation.measurements.grid for value in observation.values]
        scales = [
            float(block.scale) / factor.weights for block, factor in zip(observation.measurements.blocks, (first, second), strict=True)
        ]
        parts = ranges.low[:count]
        base, values[0], scales[0] = joined_blocks(base, values[0], scales[0], parts)
        groups = np.union1d(ranges.low[count:], base)
        place = np.searchsorted(groups, ranges.low[count:])
        value, scale = np.zeros(len(groups)), np.full(len(groups), np.inf)
        value[place], scale[place] = values[1][count:], scales[1][count:]
        layers, noise = (parts, groups, base), (scales[1][:count], scale, scales[0])
        counts = block_counts(layers, [values[1][:count], value, values[0]], noise)
        shape = _shape(observation, second.attributes)
        blocks = Blocks.of((second.attributes[0], second.attributes[1]), shape, order, parts, counts)
        variances = laplace_variances(noise[0])
        if shrunk:
            total = float(block_errors(layers, noise, np.ones((1, len(parts))))[0]) ** 2
            blocks = replace(blocks, kept=kept_shares(counts, variances, total, parts, base, block_tree(*shape, "halves").starts))
        return Grid(blocks, layers, noise, _differences(values[1][:count], variances, parts, base, counts))

    def estimate(self, product: Product) -> Answer:
        """Uniform expansion, bounded.

        The noise is that of least squares given the blocks, before any bounds; the rest of the error is as if a part were as uneven inside
        as parts that lie together differ beyond noise, and what shrinking and the bounds changed. With the square of that change in it an
        interval of t standard errors holds whatever least squares holds with sqrt(t^2 - 1) of its own (Cauchy and Schwarz), so at a
        nominal 95% at least 90.8% of normal errors, wherever answers are moved to.
        """
        noise = self.blocks.by_queries(product, lambda weights: block_errors(self.layers, self.scales, weights))
        return self.blocks.estimate(product, noise, self.square)


def _parts(ranges: Ranges) -> int:
    """How many of the rows, from the first on, cover the cells one after the other."""
    return int(np.flatnonzero(ranges.high == ranges.size - 1)[0]) + 1


def _differences(values: FloatArray, variance: FloatArray, parts: IntArray, base: IntArray, counts: FloatArray) -> FloatArray:
    """Square of what each part may hide: the mean square difference, beyond noise, of neighbouring parts of its first block, or its own.

    The noise's uncertainty in the mean is added; a part cannot deviate by more than it holds.
    """
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
    found = (np.maximum(total / number, 0.0) + np.sqrt(2 * chance) / number)[owner]
    # A part that stands out may hold all of it in one cell.
    own = np.append(square, square[-1]) + np.append(square[0], square)
    found = np.maximum(found, own / 2)
    return np.minimum(found, np.maximum(counts, 0.0) ** 2 + variance)


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Counts of buckets by least squares on the measured queries, spread evenly over their cells."""

    blocks: Blocks
    covariance: FloatArray
    hidden: Hidden | None

    @staticmethod
    def of(observation: Observation, hidden: Hidden | None) -> "Rectangles":
        """From the observation of one step on buckets."""
        if len(observation.values) != 1:
            raise ValueError("more than one step")
        factor = _factor(observation, 0)
        coarse = factor.operator.operator
        if not isinstance(coarse, Coarse):
            raise TypeError(type(coarse))
        inner = coarse.operator
        precision = factor.weights.astype(np.float64) ** 2 / block_variance(observation.measurements, observation.measurements.blocks[0])
        information, told = told_by(inner, precision, observation.values[0] / observation.measurements.grid)
        covariance = np.asarray(np.linalg.inv((information + information.T) / 2), dtype=np.float64)
        counts = covariance @ told
        shape = _shape(observation, factor.attributes)
        names = (factor.attributes[0], factor.attributes[1])
        return Rectangles(Blocks.of(names, shape, factor.operator.order, coarse.starts, np.asarray(counts)), covariance, hidden)

    def estimate(self, product: Product) -> Answer:
        """Uniform expansion, bounded.

        The noise is that of least squares given the buckets, before any bounds; the rest of the error is as if what is hidden in each
        bucket lay in one of its cells, anywhere, and what the bounds changed.
        """
        blocks = self.blocks
        noise = blocks.by_queries(product, lambda rows: np.sqrt(np.maximum(((rows @ self.covariance) * rows).sum(axis=1), 0.0)))
        areas, own = blocks.heights * blocks.widths, np.diag(self.covariance)
        return blocks.estimate(product, noise, None if self.hidden is None else self.hidden.squares(areas, blocks.counts, own))


def _factor(observation: Observation, place: int) -> Any:
    (factor,) = observation.measurements.blocks[place].factors
    if not isinstance(factor.operator, Ordered) or len(factor.attributes) != 2:
        raise TypeError(type(factor.operator))
    return factor


def _shape(observation: Observation, names: tuple[str, ...]) -> tuple[int, int]:
    height, width = (observation.measurements.domain.kind(name).size for name in names)
    return height, width
