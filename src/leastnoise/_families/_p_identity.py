"""p-Identity strategies for pure DP, found by descent.

A p-Identity strategy measures every cell and a few weighted sums of cells.

The strategy is ``A = [I; Theta] D`` with ``Theta >= 0`` (p x n), ``D = diag(1 / s)`` and ``s = 1 +
column sums of Theta``, so every column has L1 norm 1. Let ``G = I + Theta Theta^T`` and ``Y = Theta
diag(s)``. The error is ``f = sum_j s_j^2 M_jj - tr(G^-1 Y M Y^T)``. No n x n matrix is
formed: a step costs O(p^2 n) and one product of the workload's Gram matrix with p vectors.

The problem is not convex. For ordered workloads, descents from random starts ended in strategies of
the same form at all sizes that were tried. The rows form one or a few layers of smooth bells. Each
bell overlaps half of its neighbours. A layer is 8 to 20 times coarser than the layer below it. If
many queries contain the first cells, the first bell lies close to the first cell. If few queries
contain the first cells, the first bell lies one spacing away from the first cell. The bells at the
other end of the line follow the same rule. Therefore, most descents start from bells. Bells of this
shape have an error within 3% of the final error before any step of the descent. The supports of the
rows remain narrow windows, which makes n = 16384 affordable.

Source: McKenna, Miklau, Hay, Machanavajjhala, PVLDB 2018 (OPT_0).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np

from leastnoise._families._dense import to_dyadic
from leastnoise._families._gram import FittedFamily, Generators, Gram, memoize_fit, order_cells
from leastnoise._families._search import deadline_passed, minimize_lbfgs
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import DiagonalAndRows, Identity

# The first cell, the cell after the last, and the values of a row of Theta between them.
Window = tuple[int, int, FloatArray]
# Distances of the first and the last bell from the ends of the line, relative to the spacing.
Ends = tuple[float, float]
# Spacing of the finest bells, factor between layers, and whether one wide bell is above all layers.
Shape = tuple[float, float, bool]
Start = TypeVar("Start")
# Largest entry of Theta; it keeps the coefficient of a single cell well above the rounding grid.
TALLEST = 512.0
LARGE = 6000  # above this number of cells, fewer starts and steps are used to save time
# The shape of the bells in which descents end: the width and the height, relative to the spacing,
# and the distance from an end of the line. There are two distances: for an end to which queries
# reach, and for an end where they thin out.
_BELL_WIDTH = 1.15
_BELL_PEAK = 1.6
_BELL_FALL = 2.1
_BELL_HEIGHT = 0.9
_REACHED_DISTANCE = 0.25
_THINNED_DISTANCE = 1.1
_END_DISTANCES = (_REACHED_DISTANCE, _THINNED_DISTANCE)
ENDS: tuple[Ends, ...] = tuple(product(_END_DISTANCES, _END_DISTANCES))
# Maximum number of entries of Theta for one product instead of one for each window.
_MOST_DENSE_ENTRIES = 1 << 15
# The structured gradient is faster with at least these rows, and at most these windows on a cell.
_MANY_ROWS = 32
_FEW_PER_CELL = 16
# Below this fraction of the error of cells only, rounding errors dominate the difference, and a
# descent would fit them.
_ERROR_ROUNDING = 1e-8
_MOST_CELLS_OF_ALL_STARTS = 256  # up to this number of cells, blocks and random rows are starts too
_MOST_MEDIUM_CELLS = 2048  # up to this number of cells, descents start from many layers of bells
_ALL_STARTS = 0.5  # from this effort on, every shape of layers is compared
_LEAST_STEPS = 10  # least number of steps of a descent, which it needs to estimate the curvature
# The least number of last steps of the best descent: at 10,853 cells they lower the error by 1.5%,
# and 70 further steps lower it by 0.5%.
_LEAST_LAST_STEPS = 30
# A descent ends if ten steps lower the logarithm of the squared error by less than this.
_LEAST_DESCENT_GAIN = 5e-5
_BELLS_FOR_ENDS = 128  # maximum number of bells in the finest layer


def bump_rows(size: int, count: int, height: float, margin: float) -> Iterator[Window]:
    """Yield ``count`` overlapping parabolas on windows of equal width.

    Each parabola overlaps half of its neighbours; windows are ``margin`` times as wide. If the
    windows do not fit, yield one flat row instead.
    """
    if count == 0:
        yield 0, size, np.full(size, height)
        return
    spacing = size / (count + 1)
    for centre in spacing * np.arange(1, count + 1):
        start = max(0, math.floor(centre - margin * spacing))
        stop = min(size, math.ceil(centre + margin * spacing))
        yield (
            start,
            stop,
            height * np.maximum(0, 1 - ((np.arange(start, stop) + 0.5 - centre) / spacing) ** 2),
        )


def bell_rows(
    size: int, spacing: float, ends: Ends, height: float = _BELL_HEIGHT
) -> Iterator[Window]:
    """Yield one layer of bells, about ``spacing`` cells apart.

    The bells have the shape that results from descents.
    """
    before, after = ends
    gaps = max(0, round(size / spacing - before - after))
    spacing = size / (gaps + before + after)
    reach = _BELL_WIDTH * spacing
    for centre in spacing * (before + np.arange(gaps + 1)):
        start = max(0, math.floor(centre - reach))
        stop = min(size, math.ceil(centre + reach))
        away = np.minimum(1, np.abs(np.arange(start, stop) + 0.5 - centre) / reach)
        yield start, stop, height * (1 - away**_BELL_PEAK) ** _BELL_FALL


def layers_of_bells(size: int, shape: Shape, ends: Ends) -> list[Window]:
    """Return the rows of all layers of bells with the same shape."""
    finest, coarser, above = shape
    rows = list(bell_rows(size, finest, ends))
    spacing = finest * coarser
    while size / spacing >= 1.4:
        rows += bell_rows(size, spacing, ends)
        spacing *= coarser
    if above:
        return [*rows, *bell_rows(size, size, ends, 0.6)]
    return rows


def bell_shapes(size: int) -> list[list[Shape]]:
    """Return shapes of bell layers to start from, grouped by finest spacing.

    The bells are rows of a strategy that overlap. The most promising shape of each group is first.
    """
    if size > LARGE:
        return [[(finest, 15.0, False)] for finest in (21.0, 24.0)]
    coarser = (15.0, 12.5, 10.0, 20.0, 8.0)
    finest = (13.0, 15.0, 18.0, 21.0, 25.0, 30.0, 36.0, 43.0)
    shapes: list[list[Shape]] = []
    for distance in finest:
        coarser_bells = product(coarser, (False, True))
        shapes.append([(distance, ratio, above) for ratio, above in coarser_bells])
    return shapes


def _random_starts(size: int) -> int:
    """Return the number of random starts for an attribute of ``size`` cells."""
    for most_cells, starts in ((64, 8), (128, 6), (256, 4), (1024, 2)):
        if size <= most_cells:
            return starts
    return 1


def other_starts(size: int) -> Iterator[list[Window]]:
    """Yield further starting rows: layers of blocks, and random rows.

    The random rows do not depend on the order of the cells.
    """
    for width in (2**power for power in range(2, (size - 1).bit_length())):
        blocks = [
            (start, min(size, start + width), np.full(min(width, size - start), 0.7))
            for start in range(0, size, width)
        ]
        yield blocks
        yield [*blocks, *bump_rows(size, 0, 0.5, 1)]
    # On short attributes, one more or one fewer row changes the error by a few parts in a thousand,
    # and a trial takes little time.
    cells_per_row: tuple[int, ...] = (16,)
    if size <= _MOST_CELLS_OF_ALL_STARTS:
        cells_per_row = (16, 14, 12)
    counts = sorted({max(2, min(64, size // cells)) for cells in cells_per_row})
    for p in counts:
        for seed in range(_random_starts(size)):
            yield [(0, size, row) for row in np.random.default_rng(seed).random((p, size))]


def total_start(gram: Gram) -> list[Window]:
    """Return the best flat row for a strategy of cells and one total.

    A search in one variable finds the height of this row.
    """
    # If Theta is one flat row of height c, the error is ``f(c) = (1 + c)^2 (tr M - c^2 t / (1 + n
    # c^2))``, where t is the sum of all entries of M.
    heights = np.geomspace(1e-3, TALLEST, 400)
    total = float(gram.multiply_rows(np.ones((1, gram.size))).sum())
    error = (1 + heights) ** 2 * (
        gram.diagonal().sum() - heights**2 * total / (1 + gram.size * heights**2)
    )
    return list(bump_rows(gram.size, 0, float(heights[np.argmin(error)]), 1))


class _Layout(NamedTuple):
    """Index arrays for the structured gradient, computed once per support.

    The support has p windows with v values in all, and at most c of them on one cell.

    Attributes:
        row: the row of each value, shape (v,).
        by_start: the rows in the order of their starts, shape (p,).
        by_stop: the rows in the order of their stops, shape (p,).
        started_before: for each value, the number of rows that start at or before its cell.
        stopped_before: for each value, the number of rows that stop at or before its cell.
        values_of_cell: the values of each cell, shape (n, c); shorter lists are filled up with v.
        rows_of_cell: the rows of these values; shorter lists are filled up with p.
        pairs_of_cell: the number of each pair of rows on a cell, shape (n, c, c).
        start_positions: for each pair of rows, the position in the running sums of one row at which
            the other row starts, shape (p, p); running sums begin with a zero.
        stop_positions: for each pair of rows, the position in these sums at which the other row
            stops, shape (p, p).
    """

    row: IntArray
    by_start: IntArray
    by_stop: IntArray
    started_before: IntArray
    stopped_before: IntArray
    values_of_cell: IntArray
    rows_of_cell: IntArray
    pairs_of_cell: IntArray
    start_positions: IntArray
    stop_positions: IntArray


class Support:
    """The entries of Theta that may be nonzero: one window for each row.

    Each row has one window of consecutive cells. The values of all rows are stored in one array,
    one row after the other.
    """

    def __init__(self, size: int, windows: Sequence[tuple[int, int]]) -> None:
        self.size = size
        self.windows = tuple((int(start), int(stop)) for start, stop in windows)
        lengths = [stop - start for start, stop in self.windows]
        self.full = all(length == size for length in lengths)
        self.offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if lengths:
            self.cells = np.concatenate([np.arange(*window) for window in self.windows])
        else:
            self.cells = np.zeros(0, np.int64)

    def to_matrix(self, values: FloatArray) -> FloatArray:
        """Return values on the support as a matrix of shape (p, n)."""
        if self.full:
            return values.reshape(-1, self.size)
        matrix = np.zeros((len(self.windows), self.size))
        for row, (start, stop) in enumerate(self.windows):
            matrix[row, start:stop] = values[self.offsets[row] : self.offsets[row + 1]]
        return matrix

    def from_matrix(self, matrix: FloatArray) -> FloatArray:
        """Return a (p, n) matrix's values on the support."""
        return np.concatenate(
            [matrix[row, start:stop] for row, (start, stop) in enumerate(self.windows)]
        )

    @cached_property
    def layout(self) -> _Layout:
        """The index arrays for the structured gradient."""
        starts, stops = np.array(self.windows, dtype=np.int64).T
        p = len(starts)
        count = len(self.cells)
        row = np.repeat(np.arange(p), stops - starts)
        order = np.argsort(self.cells, kind="stable")
        cover = np.bincount(self.cells, minlength=self.size)
        values_of_cell = np.full((self.size, int(cover.max())), count)
        slot = np.arange(count) - np.repeat(np.cumsum(cover) - cover, cover)
        values_of_cell[self.cells[order], slot] = order
        by_start = np.argsort(starts, kind="stable")
        by_stop = np.argsort(stops, kind="stable")
        length = stops - starts
        base = (self.offsets[:-1] + np.arange(p))[:, None]
        rows_of_cell = np.append(row, p)[values_of_cell]
        return _Layout(
            row=row,
            by_start=by_start,
            by_stop=by_stop,
            started_before=np.searchsorted(starts[by_start], self.cells, side="right"),
            stopped_before=np.searchsorted(stops[by_stop], self.cells, side="right"),
            values_of_cell=values_of_cell,
            rows_of_cell=rows_of_cell,
            pairs_of_cell=rows_of_cell[:, :, None] * (p + 1) + rows_of_cell[:, None, :],
            start_positions=base + np.clip(starts - starts[:, None], 0, length[:, None]),
            stop_positions=base + np.clip(stops - starts[:, None], 0, length[:, None]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PIdentity:
    """A p-Identity strategy of L1 sensitivity 1."""

    diagonal: FloatArray  # coefficient of each cell's own query, n positive numbers
    rows: FloatArray  # coefficients of the p sums, p x n, at least 0

    def matrix(self) -> FloatArray:
        """Return the strategy as a matrix of shape (n + p, n)."""
        return np.vstack([np.diag(self.diagonal), self.rows])

    def dyadic(self, bits: int = 20) -> tuple[IntArray, IntArray]:
        """Return ``diagonal`` and ``rows`` in multiples of 2^-bits, as integers.

        Rows that round to zero are removed.
        """
        diagonal = np.rint(np.ldexp(self.diagonal, bits)).astype(np.int64)
        if not diagonal.all():
            raise InputError(
                f"A cell's own query rounds to zero on the grid 2^-{bits}. Use more bits or "
                "another strategy."
            )
        if not np.rint(np.ldexp(self.rows, bits)).any():
            return diagonal, np.zeros((0, len(diagonal)), np.int64)
        return diagonal, to_dyadic(self.rows, bits)


def p_identity_rmse(
    gram: Gram, diagonal: FloatArray | IntArray, rows: FloatArray | IntArray
) -> float:
    """Return the unit RMSE of ``[diag(diagonal); rows]`` under pure DP.

    The strategy may have any scale, and entries of any sign, for example after rounding. The
    computation takes O(p^2 n).
    """
    diag = np.asarray(diagonal, float)
    sums = np.asarray(rows, float)
    scale = float((np.abs(diag) + np.abs(sums).sum(axis=0)).max())
    scaled = sums / diag
    inner = scaled / diag
    lifted = gram.multiply_rows(inner) @ inner.T
    if len(sums):
        gain = float((positive_inverse(np.eye(len(sums)) + scaled @ scaled.T) * lifted).sum())
    else:
        gain = 0.0
    return scale * math.sqrt(float((gram.diagonal() / diag**2).sum() - gain) / gram.queries)


def positive_inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a symmetric positive definite matrix."""
    # Cholesky's method is stable here. Gaussian elimination with row exchanges (`np.linalg.inv`) is
    # not: with overlapping windows, its entries can grow exponentially along the band. It inverted
    # a well-conditioned matrix of 765 rows with an error of 1e-2.
    from scipy.linalg.lapack import dpotrf, dpotri

    if not len(matrix):
        return np.zeros((0, 0))
    # LAPACK stores columns, so its upper triangle of a symmetric matrix is the lower triangle here.
    factor, failed = dpotrf(matrix.T, lower=1, clean=0)
    if failed:
        raise InternalError(
            "A matrix that is at least the identity was found not to be positive definite."
        )
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(lower, -1).T)


def p_identity_objective(
    gram: Gram, support: Support, values: FloatArray
) -> tuple[float, FloatArray]:
    """Return the squared error of a p-Identity strategy, and its gradient.

    The error is ``f = tr(P (M o s s^T))``.

    P is the inverse of I + Theta^T Theta. The gradient is with respect to the values of Theta.
    """
    p = len(support.windows)
    pairs = gram.generators
    if pairs and p >= _MANY_ROWS and len(support.cells) < _FEW_PER_CELL * support.size:
        return _windowed_objective(gram, pairs, support, values)
    theta = support.to_matrix(values)
    s = 1 + theta.sum(axis=0)
    weighted = theta * s
    moved = gram.multiply_rows(weighted)
    is_dense = support.full or theta.size <= _MOST_DENSE_ENTRIES
    if is_dense:
        inner = theta @ theta.T
        lifted = weighted @ moved.T
    else:
        from scipy.sparse import csr_matrix

        sparse = csr_matrix((values, support.cells, support.offsets), shape=theta.shape)
        inner = (sparse @ sparse.T).toarray()
        lifted = np.empty((p, p))
        for row, (a, b) in enumerate(support.windows):
            lifted[row] = moved[:, a:b] @ weighted[row, a:b]
    inner.flat[:: p + 1] += 1
    inverse = positive_inverse(inner)
    reduced = inverse @ lifted
    gram_diagonal = gram.diagonal()
    error = float(s @ (s * gram_diagonal) - np.trace(reduced))
    both = reduced @ inverse
    per_cell = 2 * s * gram_diagonal
    if is_dense:
        projected = inverse @ moved
        per_cell -= 2 * np.einsum("ij,ij->j", theta, projected)
        gradient = 2 * (both @ theta) - 2 * projected * s + per_cell
        return error, gradient.reshape(-1) if support.full else support.from_matrix(gradient)
    gradient = np.empty_like(values)
    for row, (a, b) in enumerate(support.windows):
        here = inverse[row] @ moved[:, a:b]
        per_cell[a:b] -= 2 * theta[row, a:b] * here
        gradient[support.offsets[row] : support.offsets[row + 1]] = (
            2 * (both[row] @ theta[:, a:b]) - 2 * here * s[a:b]
        )
    return error, gradient + per_cell[support.cells]


def _windowed_objective(
    gram: Gram, pairs: Generators, support: Support, values: FloatArray
) -> tuple[float, FloatArray]:
    """Return the squared error and its gradient, fast for many narrow windows.

    M must have the entries ``M_ij = sum a_i b_j`` (i <= j). No matrix of shape (p, n) is formed.
    """
    # Outside the window of a row, the row times M is a multiple of a on the left and of b on the
    # right. So a step needs only the windows and two numbers for each row. It takes O(p^3 + n c^2),
    # where c is the number of windows on a cell.
    windows = _WindowProducts(support)
    cells = support.cells
    s = 1 + np.bincount(cells, weights=values, minlength=support.size)
    weighted = values * s[cells]
    parts = [_GeneratorPart.of(support, a, b, weighted) for a, b in pairs]
    local = np.zeros(len(values))
    lifted = np.zeros((windows.rows, windows.rows))
    for part in parts:
        local += part.values_on_support
        lifted += part.outside_product
    lifted += windows.multiply_transposed(weighted, local)
    inner = windows.multiply_transposed(values, values)
    inner.flat[:: windows.rows + 1] += 1
    inverse = positive_inverse(inner)
    reduced = inverse @ lifted
    both = reduced @ inverse
    projected = windows.multiply_left(inverse, local)
    for part in parts:
        projected += part.project(support, inverse)
    gram_diagonal = gram.diagonal()
    error = float(s @ (s * gram_diagonal) - np.trace(reduced))
    per_cell = 2 * s * gram_diagonal - 2 * np.bincount(
        cells, weights=values * projected, minlength=support.size
    )
    gradient = 2 * windows.multiply_left(both, values) - 2 * projected * s[cells] + per_cell[cells]
    return error, gradient


class _WindowProducts:
    """Products of (p, n) matrices that are nonzero only on a support."""

    def __init__(self, support: Support) -> None:
        self.layout = support.layout
        self.rows = len(support.windows)

    def _by_cell(self, entries: FloatArray) -> FloatArray:
        """Return the entries of each cell, padded with zeros, shape (n, c)."""
        return np.asarray(np.append(entries, 0.0)[self.layout.values_of_cell])

    def multiply_transposed(self, entries: FloatArray, other_entries: FloatArray) -> FloatArray:
        """Return a matrix times the transpose of another, shape (p, p)."""
        terms = self._by_cell(entries)[:, :, None] * self._by_cell(other_entries)[:, None, :]
        padded = self.rows + 1
        summed = np.bincount(self.layout.pairs_of_cell.reshape(-1), terms.reshape(-1), padded**2)
        return np.asarray(summed.reshape(padded, padded)[: self.rows, : self.rows], float)

    def multiply_left(self, matrix: FloatArray, entries: FloatArray) -> FloatArray:
        """Return a (p, p) matrix times another matrix, evaluated on the support."""
        padded = np.zeros((self.rows + 1, self.rows + 1))
        padded[: self.rows, : self.rows] = matrix
        rows = self.layout.rows_of_cell
        block = padded[rows[:, :, None], rows[:, None, :]]
        result = np.zeros(len(entries) + 1)
        result[self.layout.values_of_cell] = np.einsum("jkl,jl->jk", block, self._by_cell(entries))
        return result[:-1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _GeneratorPart:
    """The products of rows Y with the part ``a_i b_j`` (i <= j) of M.

    Attributes:
        a: the factors a_i, shape (n,).
        b: the factors b_j, shape (n,).
        row_sums_a: the sums of each row times a, shape (p,).
        row_sums_b: the sums of each row times b, shape (p,).
        values_on_support: the rows of Y M on the support.
        outside_product: the part of Y M Y^T from entries of Y M outside the support, shape (p, p).
    """

    a: FloatArray
    b: FloatArray
    row_sums_a: FloatArray
    row_sums_b: FloatArray
    values_on_support: FloatArray
    outside_product: FloatArray

    @staticmethod
    def of(support: Support, a: FloatArray, b: FloatArray, y: FloatArray) -> "_GeneratorPart":
        """Return the products for rows with the entries y on a support."""
        layout = support.layout
        cells = support.cells
        begin = support.offsets[:-1]
        end = support.offsets[1:]
        running_a = np.append(0.0, np.cumsum(a[cells] * y))
        running_b = np.append(0.0, np.cumsum(b[cells] * y))
        row_sums_a = running_a[end] - running_a[begin]
        row_sums_b = running_b[end] - running_b[begin]
        running_a_in_row = running_a[1:] - running_a[begin][layout.row]
        running_b_in_row = running_b[1:] - running_b[begin][layout.row]
        local = b[cells] * running_a_in_row + a[cells] * (
            running_b[end][layout.row] - running_b[1:]
        )
        # The running sums along each row begin with a zero. They are read where the other rows
        # start and stop.
        slots = np.arange(len(y)) + layout.row + 1
        before = np.zeros(len(y) + len(begin))
        before[slots] = running_a_in_row
        upto = np.zeros(len(y) + len(begin))
        upto[slots] = running_b_in_row
        lifted = (
            before[layout.start_positions] * row_sums_b
            + (row_sums_b[:, None] - upto[layout.stop_positions]) * row_sums_a
        )
        return _GeneratorPart(
            a=a,
            b=b,
            row_sums_a=row_sums_a,
            row_sums_b=row_sums_b,
            values_on_support=local,
            outside_product=lifted,
        )

    def project(self, support: Support, inverse: FloatArray) -> FloatArray:
        """Return a (p, p) matrix times the part of Y M outside the windows."""
        layout = support.layout
        p = len(inverse)
        later = np.zeros((p, p + 1))
        by_start = (inverse * self.row_sums_b)[:, layout.by_start]
        later[:, :-1] = np.cumsum(by_start[:, ::-1], axis=1)[:, ::-1]
        earlier = np.zeros((p, p + 1))
        earlier[:, 1:] = np.cumsum((inverse * self.row_sums_a)[:, layout.by_stop], axis=1)
        from_later = self.a[support.cells] * later[layout.row, layout.started_before]
        from_earlier = self.b[support.cells] * earlier[layout.row, layout.stopped_before]
        return np.asarray(from_later + from_earlier)


class _DescentRun:
    """A resumable descent: the current Theta on a support, and its RMSE."""

    def __init__(self, gram: Gram, rows: Iterable[Window]) -> None:
        starts, stops, heights = zip(*rows, strict=True)
        self.gram = gram
        self.support = Support(gram.size, tuple(zip(starts, stops, strict=True)))
        self.values = np.concatenate(heights)
        error, _ = p_identity_objective(gram, self.support, self.values)
        self.rmse = math.sqrt(error / gram.queries) if error > 0 else math.inf

    def continue_descent(self, steps: float, least_steps: int = _LEAST_STEPS) -> None:
        """Continue the descent by ``steps`` steps, at least ``least_steps``."""
        gram_diagonal = self.gram.diagonal()

        def objective(point: FloatArray) -> tuple[float, FloatArray]:
            """Return the squared error at a flat array of values, and its gradient."""
            error, gradient = p_identity_objective(self.gram, self.support, point)
            s = 1 + np.bincount(self.support.cells, weights=point, minlength=self.gram.size)
            certain = float(s @ (s * gram_diagonal))
            # Here, rounding errors exceed the error. The error of the cells only is not affected,
            # and its gradient leads back to valid points.
            if not error > _ERROR_ROUNDING * certain:
                return certain, 2 * (s * gram_diagonal)[self.support.cells]
            return error, gradient

        self.values, error = minimize_lbfgs(
            objective,
            self.values,
            TALLEST,
            max(least_steps, round(steps)),
            least_gain=_LEAST_DESCENT_GAIN,
        )
        self.rmse = math.sqrt(error / self.gram.queries)


def _starts_in_time(starts: Iterable[Start]) -> Iterator[Start]:
    """Yield the first start, and further starts until the deadline has passed."""
    for number, start in enumerate(starts):
        if number and deadline_passed():
            return
        yield start


def _best_runs(runs: Iterable[_DescentRun], count: int) -> list[_DescentRun]:
    """Return the ``count`` runs with the least RMSE."""
    return sorted(runs, key=lambda run: run.rmse)[:count]


def _successive_halving(
    runs: list[_DescentRun], rounds: Sequence[tuple[int, int]], scale: float
) -> _DescentRun:
    """Return the run of least RMSE, after rounds that continue ever fewer runs.

    Each round keeps the best runs. The last round runs without interruption.
    """
    for number, (keep, steps) in enumerate(rounds):
        runs = _best_runs(runs, keep)
        if len(runs) == 1:
            steps_left = scale * sum(more for _, more in rounds[number:])
            runs[0].continue_descent(steps_left, _LEAST_LAST_STEPS)
            break
        for run in runs:
            run.continue_descent(steps * scale)
    return _best_runs(runs, 1)[0]


def _descend_from_bells(gram: Gram, effort: float) -> _DescentRun:
    """Return the best descent that starts from layers of bells.

    All layers are compared by their errors before any descent.
    """
    if gram.size <= _MOST_MEDIUM_CELLS:
        keep = 8
        last = 250
    elif gram.size <= LARGE:
        keep = 4
        last = 160
    else:
        keep = 1
        last = 60
    # Wider bells also show which ends queries reach, and there are far fewer of them.
    finest = max(18.0, gram.size / _BELLS_FOR_ENDS)
    ends = min(
        _starts_in_time(ENDS),
        key=lambda end: (
            _DescentRun(gram, layers_of_bells(gram.size, (finest, 15.0, False), end)).rmse
        ),
    )

    def best(shapes: Iterable[Shape]) -> tuple[_DescentRun, Shape]:
        """Return the run of least RMSE among shapes, and its shape."""
        tried = (
            (_DescentRun(gram, layers_of_bells(gram.size, shape, ends)), shape)
            for shape in _starts_in_time(shapes)
        )
        return min(tried, key=lambda pair: pair[0].rmse)

    groups = bell_shapes(gram.size)
    # First choose the spacing of the finest bells, then the layers above them.
    if effort < _ALL_STARTS and gram.size > 2 * _MOST_CELLS_OF_ALL_STARTS:
        run, shape = best(group[0] for group in groups)
        runs = [run, best(next(group[1:] or group for group in groups if group[0] == shape))[0]]
    else:
        runs = [best(group)[0] for group in _starts_in_time(groups)]
    return _successive_halving(
        runs,
        ((max(1, round(keep * effort)), 15), (max(1, round(keep * effort / 3)), 30), (1, last)),
        effort,
    )


def _descend_from_blocks(gram: Gram, effort: float) -> _DescentRun:
    """Return the best descent that starts from blocks or random rows.

    These starts are compared only after some steps, because their errors before these steps are not
    informative.
    """
    runs: list[_DescentRun] = []
    for rows in _starts_in_time(other_starts(gram.size)):
        run = _DescentRun(gram, rows)
        run.continue_descent(25 * effort)
        runs = _best_runs([*runs, run], 8)
    return _successive_halving(
        runs, ((5, 75), (2, 300)) if gram.size <= 1024 else ((4, 40), (1, 300)), effort
    )


@memoize_fit
def fit_p_identity(gram: Gram, *, effort: float = 1.0) -> PIdentity:
    """Fit a p-Identity strategy of small error to a workload.

    The descents start from bells and from the total, and on short attributes also from blocks and
    random rows.
    """
    order: IntArray = np.arange(gram.size)
    runs: list[_DescentRun] = []
    if gram.size > 1:
        if gram.is_matrix_only:
            gram, order = order_cells(gram)
        runs = [_descend_from_bells(gram, effort), _DescentRun(gram, total_start(gram))]
        if gram.size <= _MOST_CELLS_OF_ALL_STARTS:
            runs.append(_descend_from_blocks(gram, 2 * effort))
        elif gram.is_matrix_only:
            runs.append(_descend_from_blocks(gram, effort))
    best = min(runs, key=lambda run: run.rmse, default=None)
    theta = np.zeros((0, gram.size))
    if best is not None and best.rmse < math.sqrt(gram.diagonal().sum() / gram.queries):
        # Rows of zeros are dropped. A row with a single nonzero cell is added to the query of that
        # cell.
        theta = best.support.to_matrix(np.where(best.values > 1e-9, best.values, 0.0))
        single = (theta > 0).sum(axis=1) == 1
        theta = theta[~single & theta.any(axis=1)] / (1 + theta[single].sum(axis=0))
    s = 1 + theta.sum(axis=0)
    inverse_order = np.argsort(order)
    diagonal = 1 / s[inverse_order]
    rows = (theta / s)[:, inverse_order]
    for array in (diagonal, rows):
        array.setflags(write=False)
    return PIdentity(diagonal=diagonal, rows=rows)


def p_identity_seconds(size: int, *, is_one_dimensional: bool = False) -> tuple[float, float]:
    """Estimate the least and the most CPU seconds of a p-Identity fit.

    The formula is fitted to measurements from 64 to 10,853 cells.

    Args:
        size: the number of cells.
        is_one_dimensional: whether the workload requests only cells, prefix sums and all ranges.
    """
    thousands = size / 1024
    if size <= _MOST_CELLS_OF_ALL_STARTS:
        return 0.02 + 0.3 * thousands, 0.1 + 3.4 * thousands
    if is_one_dimensional:
        return 0.08 * thousands**1.45, 0.8 * thousands**1.1
    return 0.22 * thousands**1.55, 1.5 * thousands**1.9


def p_identity(gram: Gram, norm: int, bits: int = 20, *, effort: float = 1.0) -> FittedFamily:
    """Return a p-Identity strategy for Laplace noise, rounded to integers.

    ``effort`` is the fraction of the steps of a full search.
    """
    diagonal, rows = fit_p_identity(gram, effort=effort).dyadic(bits)
    return FittedFamily(DiagonalAndRows(diagonal, rows) if len(rows) else Identity(gram.size))
