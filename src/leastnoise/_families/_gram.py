"""Gram matrices M = W^T W of workloads of m queries on one ordered attribute of n cells, kept as formulas.

Of workloads given as matrices: cells that no query tells apart, their order along a line, and the short form that it may have.

A family of strategies along one attribute is to planners a function that fits one to such a matrix, in whole numbers (`Fit`). What is
measured is the rounded strategy, and the plan's error and privacy cost are those of its integers. The inverse of what is measured is
registered for its operator: see ``_inverse``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, singledispatch
from typing import Any

import numpy as np

from leastnoise._check import InternalError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._queries import MOST_DENSE, apply_gram, first_cells, on_runs
from leastnoise._families._search import NotApplicable
from leastnoise._linop import AllRanges, Coarse, Dense, Identity, Operator, Prefix, Ranges, Total, dense
from leastnoise._measurements import Factor

Generators = tuple[tuple[FloatArray, FloatArray], ...]
# Strategies along so few cells are kept when they were found, so many of each family: some megabytes.
MOST_KEPT, FITS = 256, 64
_AT_ONCE = 2**22  # numbers


def _short_products(pairs: Generators, vector: FloatArray, width: int) -> FloatArray:
    """Products with diagonal blocks whose entries are ``sum a_i b_j`` for i <= j; O(n)."""
    size = len(vector)
    width = min(width, size)
    blocks = -(-size // width)
    missing = blocks * width - size
    beyond = np.zeros(missing)  # np.pad takes many times as long on short arrays

    def split(values: FloatArray) -> FloatArray:
        return (np.concatenate([values, beyond]) if missing else values).reshape(blocks, width)

    product = np.zeros((blocks, width))
    for a, b in pairs:
        before, after = np.cumsum(split(a * vector), axis=1), np.cumsum(split(b * vector), axis=1)
        before *= split(b)
        np.subtract(after[:, -1:].copy(), after, out=after)
        after *= split(a)
        product += before
        product += after
    return product.reshape(-1)[:size]


class Gram(ABC):
    """What families need to know of a workload; nothing of it costs n^2 unless it says so."""

    size: int  # number of cells n
    queries: int  # number of queries m (rows of W)
    mirrored: bool = False  # whether M is known to be unchanged by reversing the order of the cells
    by_matrix = False  # whether nothing is known but the matrix, not even in which order its cells lie along a line
    one_form = True  # whether M is one formula; else families do better where cells that no query tells apart are merged first
    of_ends: bool = False  # whether the queries are prefix sums, all ranges and cells alone

    @property
    def listed(self) -> int:
        """Number of queries that are not prefix sums, all ranges or cells."""
        return 0 if self.of_ends else self.queries

    @property
    @abstractmethod
    def key(self) -> tuple[object, ...]:
        """What tells it from others of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gram) and type(other) is type(self) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @abstractmethod
    def rows(self, matrix: FloatArray) -> FloatArray:
        """``matrix @ M`` for a p x n matrix: the form the solvers use, because a row is contiguous in memory."""

    def matmul(self, matrix: FloatArray) -> FloatArray:
        """``M @ matrix`` for an n x p matrix."""
        return np.asarray(self.rows(np.asarray(matrix, float).T).T)

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """The n diagonal entries of M: how often each cell is asked for."""

    def trace(self) -> float:
        """Sum of the diagonal."""
        return float(self.diagonal().sum())

    def dense(self) -> FloatArray:
        """The n x n matrix."""
        return np.asarray(self.rows(np.eye(self.size)))

    def generators(self) -> Generators | None:
        """Pairs (a, b) with ``M_ij = sum a_i b_j`` for i <= j; None when M has no such short form."""
        return None

    def block_products(self, vector: FloatArray, width: int) -> FloatArray:
        """Product with the diagonal blocks of ``width`` consecutive cells alone (the last one may be shorter)."""
        pairs = self.generators()
        if pairs is None:
            raise InternalError(f"{type(self).__name__} has no products with its diagonal blocks.")
        return _short_products(pairs, vector, width)

    @abstractmethod
    def coarsen(self, factor: int) -> "Gram":
        """The same kind of workload on groups of ``factor`` consecutive cells: a smaller problem to start from."""


@dataclass(frozen=True, eq=False)
class GeneratedGram(Gram):
    """A workload with ``M_ij = a_i b_j`` for i <= j: prefix sums or ranges in any weights that factor."""

    rising: FloatArray
    falling: FloatArray
    queries: int
    of_cells: Callable[[int], "GeneratedGram"] | None = None  # the same queries over another number of cells

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.rising))
        object.__setattr__(self, "mirrored", bool((self.rising == self.falling[::-1]).all()))
        object.__setattr__(self, "of_ends", self.of_cells is not None)

    @property
    def key(self) -> tuple[object, ...]:
        return self.queries, self.rising.tobytes(), self.falling.tobytes(), self.of_cells

    def rows(self, matrix: FloatArray) -> FloatArray:
        if self.of_cells is prefix_gram:  # half the work
            return np.cumsum(np.cumsum(matrix, axis=1)[:, ::-1], axis=1)[:, ::-1]
        before = np.cumsum(matrix * self.rising, axis=1)
        before *= self.falling
        after = np.cumsum(matrix * self.falling, axis=1)
        np.subtract(after[:, -1:].copy(), after, out=after)
        after *= self.rising
        before += after
        return before

    def diagonal(self) -> FloatArray:
        return self.rising * self.falling

    def generators(self) -> Generators:
        return ((self.rising, self.falling),)

    def coarsen(self, factor: int) -> "GeneratedGram":
        if self.of_cells is not None:
            return self.of_cells(-(-self.size // factor))
        return GeneratedGram(self.rising[::factor], self.falling[::factor], self.queries)


def prefix_gram(size: int) -> GeneratedGram:
    """All n prefix sums: ``M_ij = n - max(i, j)``."""
    return GeneratedGram(np.ones(size), np.arange(size, 0.0, -1), size, prefix_gram)


def all_ranges_gram(size: int) -> GeneratedGram:
    """All n (n + 1) / 2 ranges of consecutive cells: ``M_ij = (min(i, j) + 1) (n - max(i, j))``."""
    return GeneratedGram(np.arange(1.0, size + 1), np.arange(size, 0.0, -1), size * (size + 1) // 2, all_ranges_gram)


def _running(matrix: FloatArray) -> FloatArray:
    """Sums of the first 0, 1 ... numbers of every row."""
    sums = np.zeros((matrix.shape[0], matrix.shape[1] + 1))
    np.cumsum(matrix, axis=1, out=sums[:, 1:])
    return sums


@dataclass(frozen=True, eq=False)
class WidthGram(Gram):
    """The n - width + 1 ranges of ``width`` consecutive cells; width 1 is the identity, width n the total."""

    size: int
    width: int
    mirrored = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", self.size - self.width + 1)
        object.__setattr__(self, "of_ends", self.width == 1)

    @property
    def key(self) -> tuple[object, ...]:
        return self.size, self.width

    def rows(self, matrix: FloatArray) -> FloatArray:
        if self.width == 1:
            return np.array(matrix, float)
        if self.width == self.size:
            return np.repeat(matrix.sum(axis=1, keepdims=True), self.size, axis=1)
        sums = _running(matrix)
        sums = _running(sums[:, self.width :] - sums[:, : self.queries])
        cell = np.arange(self.size)
        return sums[:, np.minimum(cell, self.queries - 1) + 1] - sums[:, np.maximum(0, cell - self.width + 1)]

    def diagonal(self) -> FloatArray:
        cell = np.arange(self.size)
        return (np.minimum(cell, self.queries - 1) + 1.0) - np.maximum(0, cell - self.width + 1)

    def generators(self) -> Generators | None:
        return ((np.ones(self.size), np.ones(self.size)),) if self.width == self.size else None

    def block_products(self, vector: FloatArray, width: int) -> FloatArray:
        cell = np.arange(self.size)
        if width <= self.width:
            # Two cells of such a block always share a range, and how many follows from the first and the last range they share.
            last, first = np.minimum(cell, self.queries - 1) + 1.0, -np.maximum(0.0, cell - self.width + 1.0)
            return _short_products(((last, np.ones(self.size)), (np.ones(self.size), first)), vector, width)
        # Every second block is too far from the next of its kind to share a range with it.
        even = (cell // width) % 2 == 0
        apart = self.rows(np.stack([np.where(even, vector, 0.0), np.where(even, 0.0, vector)]))
        return np.where(even, apart[0], apart[1])

    def coarsen(self, factor: int) -> "WidthGram":
        size = -(-self.size // factor)
        return WidthGram(size, min(size, max(1, round(self.width / factor))))


@dataclass(frozen=True, eq=False)
class RangesGram(Gram):
    """Given ranges low..high: M is ``S^T L S``, S the sums of the first 0 to n cells, L the Laplacian of ranges as edges between these."""

    size: int
    low: IntArray
    high: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", len(self.low))

    @property
    def key(self) -> tuple[object, ...]:
        return self.size, self.low.tobytes(), self.high.tobytes()

    @cached_property
    def _edges(self) -> Any:
        from scipy.sparse import csr_array

        ends, ones = (self.low, self.high + 1), np.ones(len(self.low))
        corners = [(row, column, ones if row is column else -ones) for row in ends for column in ends]
        rows, columns, values = (np.concatenate(part) for part in zip(*corners, strict=True))
        return csr_array((values, (rows, columns)), shape=(self.size + 1,) * 2)

    def rows(self, matrix: FloatArray) -> FloatArray:
        return np.asarray(_running(matrix) @ self._edges)[:, :0:-1].cumsum(axis=1)[:, ::-1]

    def diagonal(self) -> FloatArray:
        return self._covered(np.ones(len(self.low)), self.low, self.high)

    def block_products(self, vector: FloatArray, width: int) -> FloatArray:
        sums, starts = np.append(0.0, np.cumsum(vector)), np.arange(0, self.size, width)
        first, last = self.low // width, self.high // width
        whole = np.add.reduceat(vector, starts) * self._covered(np.ones(len(first)), first + 1, last - 1)[: len(starts)]
        products = np.repeat(whole, width)[: self.size]
        # The part of a range in its first block, and that in its last one where this is another.
        ends, more = np.minimum(self.high, (first + 1) * width - 1), last > first
        for low, high in ((self.low, ends), (last[more] * width, self.high[more])):
            products = products + self._covered(sums[high + 1] - sums[low], low, high)
        return products

    def coarsen(self, factor: int) -> "DenseGram":
        starts, blocks = np.arange(0, self.size, factor), -(-self.size // factor)
        summed = np.zeros((blocks, blocks))
        for part in range(0, self.queries, step := max(1, _AT_ONCE // blocks)):
            low, high = self.low[part : part + step, None], self.high[part : part + step, None]
            inside = np.maximum(0.0, np.minimum(high + 1, starts + factor) - np.maximum(low, starts))
            summed += inside.T @ inside
        return DenseGram(summed / factor**2, self.queries)

    def _covered(self, amounts: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
        """What the ranges low..high, those that are empty left out, put on each cell."""
        some = low <= high
        change = np.bincount(low[some], amounts[some], self.size + 1) - np.bincount(high[some] + 1, amounts[some], self.size + 1)
        return np.asarray(np.cumsum(change)[: self.size], dtype=np.float64)


def ranges_gram(size: int, low: IntArray, high: IntArray) -> Gram:
    """The Gram matrix of given ranges, as that of prefix sums, of one width or of all ranges where they are these."""
    cells, indices = np.arange(size), np.sort(low * size + high)
    width = int(high[0] - low[0]) + 1
    if len(low) == size and np.array_equal(indices, cells):
        return prefix_gram(size)
    if len(low) == size - width + 1 and np.array_equal(indices, (cells * (size + 1) + width - 1)[: size - width + 1]):
        return WidthGram(size, width)
    if len(low) == size * (size + 1) // 2 and np.array_equal(indices, np.flatnonzero(np.tri(size, dtype=bool).T)):
        return all_ranges_gram(size)
    return RangesGram(size, low, high)


@dataclass(frozen=True, eq=False)
class DenseGram(Gram):
    """Any workload, by its n x n Gram matrix."""

    by_matrix, one_form = True, False

    array: FloatArray
    queries: int

    def __post_init__(self) -> None:
        array = np.ascontiguousarray(self.array, dtype=float)
        object.__setattr__(self, "array", array)
        object.__setattr__(self, "size", len(array))
        object.__setattr__(self, "mirrored", bool(np.allclose(array, array[::-1, ::-1], rtol=1e-12, atol=0)))

    @property
    def key(self) -> tuple[object, ...]:
        return self.queries, self.array.tobytes()

    def rows(self, matrix: FloatArray) -> FloatArray:
        return np.asarray(matrix @ self.array)

    def diagonal(self) -> FloatArray:
        return self.array.diagonal().copy()

    def dense(self) -> FloatArray:
        return self.array

    def block_products(self, vector: FloatArray, width: int) -> FloatArray:
        blocks = [slice(start, start + width) for start in range(0, self.size, width)]
        return np.concatenate([self.array[block, block] @ vector[block] for block in blocks])

    def coarsen(self, factor: int) -> "DenseGram":
        starts = np.arange(0, self.size, factor)
        summed = np.add.reduceat(np.add.reduceat(self.array, starts, axis=0), starts, axis=1)
        return DenseGram(summed / factor**2, self.queries)


@dataclass(frozen=True, eq=False)
class ScaledSum(Gram):
    """A union of query sets on one attribute: ``M = sum weight * part``, a weight being the square of the queries' own weight."""

    one_form = False

    parts: tuple[tuple[float, Gram], ...]

    def __post_init__(self) -> None:
        every = [part for _, part in self.parts]
        object.__setattr__(self, "size", every[0].size)
        object.__setattr__(self, "queries", sum(part.queries for part in every))
        object.__setattr__(self, "mirrored", all(part.mirrored for part in every))
        object.__setattr__(self, "of_ends", all(part.of_ends for part in every))

    @property
    def key(self) -> tuple[object, ...]:
        return self.parts

    @property
    def listed(self) -> int:
        return sum(part.listed for _, part in self.parts)

    def rows(self, matrix: FloatArray) -> FloatArray:
        total = self.parts[0][0] * self.parts[0][1].rows(matrix)
        for weight, part in self.parts[1:]:
            total += weight * part.rows(matrix)
        return total

    def diagonal(self) -> FloatArray:
        return np.asarray(sum(weight * part.diagonal() for weight, part in self.parts))

    def generators(self) -> Generators | None:
        pairs: list[tuple[FloatArray, FloatArray]] = []
        for weight, part in self.parts:
            terms = part.generators()
            if terms is None:
                return None
            pairs += [(weight * a, b) for a, b in terms]
        return tuple(pairs)

    def block_products(self, vector: FloatArray, width: int) -> FloatArray:
        return np.asarray(sum(weight * part.block_products(vector, width) for weight, part in self.parts))

    def coarsen(self, factor: int) -> "ScaledSum":
        return ScaledSum(tuple((weight, part.coarsen(factor)) for weight, part in self.parts))


def recognise(gram: Gram) -> tuple[Gram, IntArray]:
    """Order the cells of a workload given as a matrix along a line, and find its short form if it has one."""
    order = line_order(gram)
    ordered = gram.dense()[np.ix_(order, order)]
    for turned, cells in ((ordered, order), (ordered[::-1, ::-1], order[::-1])):
        if turned[0, -1] > 0:
            rising, falling = turned[:, -1] / turned[0, -1], turned[0]
            if np.allclose(np.triu(np.outer(rising, falling)), np.triu(turned), rtol=1e-12, atol=0):
                return GeneratedGram(rising, falling, gram.queries), cells
    return DenseGram(ordered, gram.queries), order


def merge_equal_cells(gram: Gram) -> tuple[DenseGram, IntArray]:
    """Merge the cells which no query tells apart: the workload then needs no strategy on the single cells."""
    if all_alike(gram):
        return DenseGram(gram.diagonal()[:1, None], gram.queries), np.zeros(gram.size, dtype=np.int64)
    matrix = gram.dense()
    _, first, group = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    kept = first[order]
    return DenseGram(matrix[np.ix_(kept, kept)], gram.queries), rank[group.reshape(-1)]


def all_alike(gram: Gram) -> bool:
    """Whether no query tells any cell from another, at any size: every cell is asked for as often as the first, and together with it."""
    diagonal, first = gram.diagonal(), np.eye(1, gram.size)
    return bool((diagonal == diagonal[0]).all() and (gram.rows(first)[0] == diagonal[0]).all())


def line_order(gram: Gram) -> IntArray:
    """Order the cells along a line so that cells which few queries tell apart lie together."""
    # Two cells are ``M_ii + M_jj - 2 M_ij`` apart. The order by the Fiedler vector of M itself (ranges of one width) or of the closeness
    # (prefix sums, whose cells differ much in how often they are asked for), whichever makes the shorter way from cell to cell, undoes any
    # permutation of a workload of ranges, so that one given as a matrix is planned as well as one given by name.
    # Source: Atkins, Boman, Hendrickson 1998 (seriation of Robinson matrices).
    from scipy.linalg import eigh

    if gram.size < 3:
        return np.arange(gram.size)
    diagonal, matrix = gram.diagonal(), gram.dense()
    apart = diagonal[:, None] + diagonal - 2 * matrix
    best, shortest = np.arange(gram.size), math.inf
    for close in (matrix, apart.max() - apart):
        _, vectors = eigh(np.diag(close.sum(axis=1)) - close, subset_by_index=[0, 1])
        # The constant vector may share its eigenvalue with others when the workload falls into parts.
        fiedler = vectors[:, 1] if np.ptp(vectors[:, 1]) > np.ptp(vectors[:, 0]) else vectors[:, 0]
        order = np.argsort(fiedler if fiedler[0] <= fiedler[-1] else -fiedler, kind="stable")
        length = float(apart[order[1:], order[:-1]].sum())
        if length < shortest * (1 - 1e-9):
            best, shortest = order, length
    return best


@singledispatch
def gram_of(operator: Operator) -> Gram:
    """The Gram matrix of queries, with its structure where there is one."""
    n = operator.size
    if n > MOST_DENSE:
        raise NotApplicable(f"queries without a known structure need a matrix of {n} x {n}; at most {MOST_DENSE} cells are allowed")
    made = apply_gram(operator, np.eye(n))
    return DenseGram((made + made.T) / 2, operator.rows)


@gram_of.register
def _(operator: Identity) -> Gram:
    return WidthGram(operator.size, 1)


@gram_of.register
def _(operator: Total) -> Gram:
    return WidthGram(operator.size, operator.size)


@gram_of.register
def _(operator: Prefix) -> Gram:
    return prefix_gram(operator.size)


@gram_of.register
def _(operator: AllRanges) -> Gram:
    return all_ranges_gram(operator.size)


@gram_of.register
def _(operator: Ranges) -> Gram:
    return ranges_gram(operator.size, operator.low, operator.high)


def summed(parts: Sequence[tuple[float, Gram]]) -> Gram:
    """The weighted sum of Gram matrices; of one, that one itself."""
    return parts[0][1] if len(parts) == 1 else ScaledSum(tuple(parts))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A strategy along one attribute."""

    factor: Factor
    bound: float = 0.0


# Fits a strategy along an attribute: its name, the Gram matrix of what is asked along it, 1 for Laplace or 2 for Gaussian noise, and the
# bits that real coefficients are rounded to.
Fit = Callable[[str, Gram, int, int], Fitted]


def fitted_to(fit: Fit, name: str, asked: Sequence[tuple[float, Operator]], norm: int, bits: int) -> Fitted:
    """What a family finds for weighted queries: on runs of cells that their ends tell apart, where they are fewer than the cells."""
    size = asked[0][1].size
    starts = np.unique(np.concatenate([first_cells(operator) for _, operator in asked]))
    grams = [(weight, gram_of(on_runs(operator, starts))) for weight, operator in asked]
    find = partial(fitted, fit) if any(gram.by_matrix for _, gram in grams) else fit
    fitting = find(name, summed(grams), norm, bits)
    if len(starts) == size:
        return fitting
    return Fitted(Factor((name,), Coarse(fitting.factor.operator, starts, size), fitting.factor.row_weights), fitting.bound)


def fitted(fit: Fit, name: str, gram: Gram, norm: int, bits: int) -> Fitted:
    """What a family finds, on cells that the queries tell apart: those that no query does are merged first."""
    # Under Laplace noise a family that measures every cell gains much where few queries are asked; the rest gain in time.
    if gram.one_form or gram.size > MOST_DENSE:
        return fit(name, gram, norm, bits)
    small, group = merge_equal_cells(gram)
    if small.size == gram.size:
        return fit(name, gram, norm, bits)
    narrow = fit(name, small, norm, bits)
    wide = Dense(dense(narrow.factor.operator)[:, group])
    return Fitted(Factor((name,), wide, narrow.factor.row_weights), narrow.bound)


def every_cell(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """Every cell by itself."""
    return Fitted(Factor((name,), Identity(gram.size)))
