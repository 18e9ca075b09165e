"""Estimates from a data-dependent mechanism on two attributes.

The errors have two parts: noise and approximation.

The mechanism treats the cells of each block as equal. For fixed blocks, the noise variance is the
variance of least squares, which is exact if no bounds apply. The estimate of the approximation
error is based on an assumption: beyond the noise, the cells inside a part differ from each other as
much as the part differs from its neighbours.

Cells are in an order in which every block is a run of neighbours. A layer of blocks is stored as
the first cells of the blocks. All numbers are public.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from leastnoise._estimation._least_squares import Answer
from leastnoise._families import LevelInverse, Levels, apply_along_axes
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Coarse, Operator, Ordered, Ranges, Total, apply, block_tree
from leastnoise._trusted.measurements import Observation
from leastnoise._workload import Product

_AT_ONCE = 2**22  # maximum number of array entries in a batch


def laplace_variances(scales: FloatArray) -> FloatArray:
    """Return the variance of discrete Laplace noise of each scale.

    The variance is infinite for an infinite scale.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (2 * np.sinh(0.5 / scales) ** 2))


def nested_blocks(starts: Sequence[IntArray], variances: Sequence[FloatArray]) -> LevelInverse:
    """Return the inverse Gram matrix of noisy blocks in nested layers.

    The layers are ordered from fine to coarse. Each block of a layer is a union of blocks of the
    previous layer. A block with infinite variance is not measured.
    """
    groups = [
        *(np.searchsorted(layer, starts[0], side="right") - 1 for layer in starts),
        np.zeros(len(starts[0]), dtype=np.int64),
    ]
    parents = tuple(
        coarse[np.flatnonzero(np.diff(fine, prepend=-1))] for fine, coarse in pairwise(groups)
    )
    return LevelInverse(Levels(parents), (*(1 / variance for variance in variances), 0.0))


def block_counts(inverse: LevelInverse, values: Sequence[IntArray | FloatArray]) -> FloatArray:
    """Return least-squares counts of the finest blocks from all layers' counts."""
    each = zip(inverse.precisions, values, inverse.levels.groups, strict=False)
    return inverse.solve(
        np.asarray(sum((precision * value)[groups] for precision, value, groups in each))
    )


def shrinkage_factors(
    counts: FloatArray,
    variances: FloatArray,
    total_variance: float,
    starts: IntArray,
    first_round_starts: IntArray,
    levels: Sequence[IntArray],
) -> list[FloatArray]:
    """Return the shrinkage factors with the least error, one array per level.

    The first factor applies to the total. On each level, the factors apply to the deviations of
    block halves from an even division of their block.
    """
    # There is a factor for each block of the first round and each level: ``1 - (k - 2) / q``, at
    # least 0, where q is the sum of the k squared deviations in units of their noise. If the block
    # is even, q is about k and the factor is near 0. If its parts differ far beyond the noise, the
    # factor is near 1. Above the blocks of the first round, the table is one group. Its factor is 1
    # if q is larger than noise explains, that is above ``k + 2 sqrt(5 k)``. Here 5 is the variance
    # of squared Laplace noise. Otherwise a single heavy block would lose more than many even blocks
    # gain. The factor of the total is ``1 - 1 / q``, because a total that is close to its noise
    # would be spread over all cells. Source: James and Stein 1961, the positive part.
    size = len(levels[-1])
    areas = np.diff(starts, append=size)
    cells, variance = (
        np.append(0.0, np.cumsum(np.repeat(values / areas, areas)))
        for values in (counts, variances)
    )
    factors = [np.array([max(1 - total_variance / max(float(counts.sum()) ** 2, 1e-12), 0.0)])]
    for coarse, fine in pairwise(levels):
        first = np.searchsorted(fine, coarse)
        end = np.append(coarse[1:], size)
        middle = np.append(fine[1:], size)[first]
        # Within a finest block there is no deviation and no noise of a deviation.
        divided = np.isin(coarse, starts) & np.isin(middle, starts) & (middle < end)
        part = (middle - coarse) / (end - coarse)
        explained_variance = variance[middle] - variance[coarse]
        right = variance[end] - variance[middle]
        deviation = cells[middle] - cells[coarse] - part * (cells[end] - cells[coarse])
        noise = (1 - part) ** 2 * explained_variance + part**2 * right
        owner = np.searchsorted(first_round_starts, coarse, side="right") - 1
        # Above the first-round blocks.
        owner[end > np.append(first_round_starts[1:], size)[owner]] = len(first_round_starts)
        ratio = np.where(divided, deviation**2 / np.where(divided, noise, 1.0), 0.0)
        number, q = (
            np.bincount(owner, values, len(first_round_starts) + 1)
            for values in (divided.astype(np.float64), ratio)
        )
        factor = np.where(number > 2, np.maximum(1 - (number - 2) / np.maximum(q, 1e-12), 0.0), 1.0)
        if q[-1] > number[-1] + 2 * math.sqrt(5 * number[-1]):
            factor[-1] = 1.0
        factors.append(np.where(divided, factor[owner], 1.0))
    return factors


def bounded_cells(
    cells: FloatArray, levels: Sequence[IntArray], shrinkage: Sequence[FloatArray] | None = None
) -> FloatArray:
    """Return cells shrunk such that no block is negative or above its parent.

    Each block consists of one or two blocks of the next level.
    """
    lengths = [np.diff(level, append=len(cells)) for level in levels]
    children = [np.searchsorted(fine, coarse) for coarse, fine in pairwise(levels)]
    sums = [cells]
    for first in reversed(children):
        sums.insert(0, np.add.reduceat(sums[0], first))
    bounded = np.maximum(sums[0] if shrinkage is None else sums[0] * shrinkage[0], 0.0)
    for level, first in enumerate(children):
        fine = sums[level + 1]
        total = sums[level]
        part = lengths[level + 1][first] / lengths[level]
        brood = np.diff(first, append=len(fine))
        # The first part keeps its deviation from an even share of the block, as far as the bounds
        # allow. The second part gets the remainder.
        deviation = fine[first] - total * part
        first_half = np.clip(
            bounded * part + (deviation if shrinkage is None else shrinkage[level + 1] * deviation),
            0.0,
            bounded,
        )
        both = np.repeat(bounded - first_half, brood)
        both[first] = np.where(brood > 1, first_half, bounded)
        bounded = both
    return bounded


@dataclass(frozen=True, eq=False)
class AdaptiveGridEstimate:
    """The estimate of an adaptive grid: measured rectangles (parts) of a table.

    The parts cover the table.

    Attributes:
        attributes: the two attributes of the table.
        shape: the number of cells of each attribute.
        order: the row-major index of each cell, in the order of the tree of halves.
        parts: the position in ``order`` of the first cell of each part.
        inverse: the solver of least squares for parts, groups of parts and first-round blocks.
        counts: the estimated count of each part, in rows.
        squared_differences: squared differences of counts of neighbouring parts. They determine the
            estimate of the unevenness inside a part.
        shrinkage: the factors that shrink the tree of halves, by level; None if it is not shrunk.
    """

    attributes: tuple[str, ...]
    shape: tuple[int, ...]
    order: IntArray
    parts: IntArray
    inverse: LevelInverse
    counts: FloatArray
    squared_differences: FloatArray
    shrinkage: Sequence[FloatArray] | None

    @staticmethod
    def of(observation: Observation, *, shrunk: bool = False) -> "AdaptiveGridEstimate":
        """Return the estimate from the observation of the two rounds."""
        measurements = observation.measurements
        (first,), (second,) = (block.factors for block in measurements.blocks)
        if not (
            isinstance(first.operator, Ordered)
            and isinstance(second.operator, Ordered)
            and len(second.attributes) == 2
        ):
            raise TypeError(type(first.operator))
        coarse = first.operator.operator
        ranges = second.operator.operator
        order = second.operator.order
        if not (isinstance(coarse, Coarse) and isinstance(ranges, Ranges)):
            raise TypeError(type(ranges))
        # The first rows cover the cells one after the other; the other rows are groups.
        count = int(np.flatnonzero(ranges.high == ranges.size - 1)[0]) + 1
        (on_base, on_parts), (base_noise, noise) = zip(
            *(
                (value / measurements.grid, laplace_variances(float(block.scale) / factor.weights))
                for value, block, factor in zip(
                    observation.values, measurements.blocks, (first, second), strict=True
                )
            ),
            strict=True,
        )
        # Blocks of the first round that lie in the same part are merged to one block.
        parts = ranges.low[:count]
        base = coarse.starts
        kept = np.flatnonzero(np.isin(base, parts))
        base = base[kept]
        on_base = np.add.reduceat(on_base, kept)
        base_noise = np.add.reduceat(base_noise, kept)
        groups = np.union1d(ranges.low[count:], base)
        index = np.searchsorted(groups, ranges.low[count:])
        on_groups = np.zeros(len(groups))
        group_noise = np.full(len(groups), np.inf)
        on_groups[index] = on_parts[count:]
        group_noise[index] = noise[count:]
        inverse = nested_blocks((parts, groups, base), (noise[:count], group_noise, base_noise))
        counts = block_counts(inverse, [on_parts[:count], on_groups, on_base])
        shape = tuple(measurements.domain.kind(name).size for name in second.attributes)
        shares = None
        if shrunk:
            total = float(inverse.squares(np.ones((len(parts), 1)))[0])
            shares = shrinkage_factors(
                counts, noise[:count], total, parts, base, block_tree(*shape).starts
            )
        square = _differences(on_parts[:count], noise[:count], parts, base, counts)
        grid = AdaptiveGridEstimate(
            second.attributes, shape, order, parts, inverse, counts, square, shares
        )
        if not (
            np.isin(groups, parts).all() and (grid.areas == np.diff(parts, append=len(order))).all()
        ):
            raise ValueError("blocks that are not rectangles")
        return grid

    @cached_property
    def _sides(self) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
        """The first row, first column, height and width of each rectangle."""
        firsts = np.divmod(self.order[self.parts], self.shape[1])
        lasts = np.divmod(self.order[np.append(self.parts[1:], len(self.order)) - 1], self.shape[1])
        return firsts, (lasts[0] - firsts[0] + 1, lasts[1] - firsts[1] + 1)

    @property
    def areas(self) -> IntArray:
        """The number of cells of each rectangle."""
        return self._sides[1][0] * self._sides[1][1]

    @cached_property
    def cells(self) -> FloatArray:
        """The estimated cells, bounded by the counts of enclosing blocks.

        No block of the tree of halves has a count below 0, or above the count of the next larger
        block.
        """
        cells = self._spread_cells.reshape(-1)
        tree = block_tree(*self.shape)
        bounded = np.empty_like(cells)
        bounded[tree.order] = bounded_cells(cells[tree.order], tree.starts, self.shrinkage)
        return bounded.reshape(self.shape)

    @cached_property
    def _spread_cells(self) -> FloatArray:
        """The cells if each rectangle's count is divided evenly among its cells."""
        cells = np.empty(len(self.order))
        cells[self.order] = np.repeat(self.counts / self.areas, self.areas)
        return cells.reshape(self.shape)

    def estimate(self, product: Product) -> Answer:
        """Return the answers to a product, with noise and approximation errors."""
        # The variance of the noise follows from least squares given the blocks, before any bounds.
        # The remaining error has two parts. A part of the table is assumed to be as uneven inside
        # as neighbouring parts differ, beyond the noise. The changes by shrinking and by bounds are
        # added. Because the square of these changes is included, the intervals are wide enough: by
        # Cauchy and Schwarz, an interval of t standard errors contains every truth that the least
        # squares interval of sqrt(t^2 - 1) standard errors contains. So at a nominal 95% it
        # contains at least 90.8% of normal errors, for every possible change.
        noise = self._by_queries(
            product, lambda mean, _: np.sqrt(np.maximum(self.inverse.squares(mean.T), 0.0))
        )
        # The deviation of a part lies in one cell at any place: its square is multiplied by the
        # variance of the query's entries.
        uneven = self._by_queries(
            product,
            lambda mean, squares: np.maximum(squares - mean**2, 0.0) @ self.squared_differences,
        )
        moved = self._answers(product, self.cells - self._spread_cells)
        return Answer(self._answers(product, self.cells), noise, np.sqrt(uneven + moved**2))

    def _operators(self, product: Product) -> list[Operator]:
        """Return the queries of a product along each of the two attributes.

        If the product does not name an attribute, its queries along it are the total.
        """
        operators = dict(zip(product.attributes, product.operators, strict=True))
        return [
            operators.get(name, Total(size))
            for name, size in zip(self.attributes, self.shape, strict=True)
        ]

    def _answers(self, product: Product, table: FloatArray) -> FloatArray:
        """Return the answers to a product from the cells of a table."""
        return apply_along_axes(self._operators(product), table).reshape(product.shape)

    def _by_queries(
        self, product: Product, function_of_means: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> FloatArray:
        """Compute a value for each query from its mean coefficients by rectangle.

        ``function_of_means`` computes the value from the means and the means of squares, for a
        batch of queries.
        """
        entries = [apply(operator, np.eye(operator.size)) for operator in self._operators(product)]
        kinds = [
            [np.pad((side**power).cumsum(axis=1), ((0, 0), (1, 0))) for side in entries]
            for power in (1, 2)
        ]
        result = np.empty((len(entries[0]), len(entries[1])))
        across = min(result.shape[1], max(1, _AT_ONCE // len(self.counts)))
        down = max(1, _AT_ONCE // (len(self.counts) * across))
        for top in range(0, result.shape[0], down):
            for left in range(0, result.shape[1], across):
                part = slice(top, top + down), slice(left, left + across)
                mean, squares = (self._means(sums, *part) for sums in kinds)
                result[part] = function_of_means(mean, squares).reshape(result[part].shape)
        return result.reshape(product.shape)

    def _means(self, sums: list[FloatArray], down: slice, across: slice) -> FloatArray:
        """Return each query's mean coefficient in each part, (queries, parts).

        The means are computed from cumulative sums.
        """
        rows, columns = (
            (running[part][:, first + length] - running[part][:, first]) / length
            for running, part, first, length in zip(sums, (down, across), *self._sides, strict=True)
        )
        return np.asarray((rows[:, None, :] * columns).reshape(-1, len(self.counts)))


def _differences(
    values: FloatArray,
    variance: FloatArray,
    parts: IntArray,
    block_starts: IntArray,
    counts: FloatArray,
) -> FloatArray:
    """Estimate the squared difference between the cells of each rectangle.

    The estimate is the mean squared difference between neighbouring parts in the same block, less
    the part that noise explains. If the squared difference of the part from its neighbours is
    larger, the estimate is this squared difference.
    """
    # The standard error of the mean is added. A part cannot deviate by more than its count.
    if len(parts) == 1:
        return np.maximum(counts, 0.0) ** 2 + variance
    square = np.diff(values) ** 2 - variance[1:] - variance[:-1]
    owner = np.searchsorted(block_starts, parts, side="right") - 1
    inside = owner[1:] == owner[:-1]
    is_single_part = np.bincount(owner, minlength=len(block_starts)) == 1
    total = np.zeros(len(block_starts))
    number = np.zeros(len(block_starts))
    chance = np.zeros(len(block_starts))
    for side in (slice(1, None), slice(None, -1)):
        # A block of one part is compared with its neighbours.
        used = inside | is_single_part[owner[side]]
        np.add.at(total, owner[side][used], square[used])
        np.add.at(number, owner[side][used], 1)
        np.add.at(chance, owner[side][used], (variance[1:] + variance[:-1])[used] ** 2)
    # Every pair within a block was counted twice. The relative standard error of a mean of squares
    # is the root of 2 over their number.
    number = np.maximum(number, 1)
    hidden = (np.maximum(total / number, 0.0) + np.sqrt(2 * chance) / number)[owner]
    # A part that differs from its neighbours may have all of the difference in one cell.
    square_of = np.append(square, square[-1]) + np.append(square[0], square)
    hidden = np.maximum(hidden, square_of / 2)
    return np.minimum(hidden, np.maximum(counts, 0.0) ** 2 + variance)
