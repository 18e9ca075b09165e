"""Facts about operators that errors follow from, each once, answered by class; Gram matrices with row weights; and row spaces.

None is the answer of a class that has no short form: what follows is then computed from its matrix. Nothing is guessed about entries: those
facts rest on `column_sums`, `non_negative` and `largest_entry`, which refuse a class that has not answered them.

The row space of queries decides which others are determined. Intervals of n cells are edges between n + 1 places: the interval from cell a
to b joins the places a and b + 1. A query puts a weight on each place, minus its differences from cell to cell, and lies in the span of
some intervals exactly if these weights sum to 0 over each of their connected components. That is decided in whole numbers, in linear time.
Of other operators the null space is found in floating point, from the eigenvalues of the Gram matrix of rows of norm 1. They count as 0
below 1e-10 of the largest: a direction that is seen 1e-5 times as weakly as the best is treated as not seen, and a query with more than
1e-7 of itself along it as not determined.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, singledispatch

import numpy as np
import numpy.typing as npt

from leastnoise._check.arrays import Array, FloatArray, IntArray
from leastnoise._linop import (
    AllRanges,
    Coarse,
    Contrasts,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Nested,
    Operator,
    Prefix,
    Ranges,
    Toeplitz,
    Total,
    Tree,
    all_range_ends,
    along,
    apply,
    apply_transpose,
    column_sums,
    dense,
    largest_entry,
    non_negative,
)
from leastnoise._measurements import Factor

_MOST_NUMBERS = 2**22
MOST_DENSE = 4096
_ZERO_EIGENVALUE = 1e-10
_ZERO_PART = 1e-7
_AT_ONCE = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of an operator without its matrix; None where its class has no short form."""

    ends: Callable[[], tuple[IntArray, IntArray]] | None = None
    first_cells: Callable[[], IntArray] | None = None
    on_runs: Callable[[IntArray], Operator] | None = None
    generators: Callable[[], tuple[FloatArray, FloatArray]] | None = None
    singular_values: Callable[[], FloatArray] | None = None
    apply_gram: Callable[[Array], Array] | None = None
    quicker_by_gram: bool = False  # whether the Gram matrix, once made, is quicker to multiply by than the operator and its transpose


@singledispatch
def facts(operator: Operator) -> Facts:
    """What is known of an operator of this class."""
    return Facts()


@facts.register
def _(operator: Identity) -> Facts:
    cells = np.arange(operator.size, dtype=np.int64)
    return Facts(ends=lambda: (cells, cells), singular_values=lambda: np.ones(operator.size))


@facts.register
def _(operator: Total) -> Facts:
    n = operator.size
    return Facts(
        ends=lambda: (np.array([0]), np.array([n - 1])),
        first_cells=lambda: np.zeros(1, dtype=np.int64),
        on_runs=lambda starts: Total(len(starts)),
        generators=lambda: (np.ones(n), np.ones(n)),
        singular_values=lambda: np.array([math.sqrt(n)]),
    )


@facts.register
def _(operator: Prefix) -> Facts:
    n = operator.size
    return Facts(
        ends=lambda: (np.zeros(n, dtype=np.int64), np.arange(n, dtype=np.int64)),
        generators=lambda: (np.ones(n), np.arange(n, 0.0, -1)),
        singular_values=lambda: np.asarray(0.5 / np.sin((2 * np.arange(1, n + 1) - 1) * math.pi / (4 * n + 2))),
    )


@facts.register
def _(operator: AllRanges) -> Facts:
    n = operator.size
    falling = np.arange(n, 0.0, -1)

    def product(x: Array) -> Array:
        # Cumulative sums of the generators instead of n^2 / 2 rows.
        down = columns(falling, x)
        up = down[::-1]
        before = np.cumsum(up * x, axis=0)
        from_here = np.cumsum((down * x)[::-1], axis=0)[::-1]
        return down * before + up * (from_here - down * x)

    return Facts(
        ends=lambda: all_range_ends(n),
        generators=lambda: (falling[::-1], falling),
        singular_values=lambda: np.asarray(math.sqrt(n + 1) / (2 * np.sin(np.arange(1, n + 1) * math.pi / (2 * (n + 1))))),
        apply_gram=product,
    )


@facts.register
def _(operator: Ranges) -> Facts:
    n = operator.size

    def edges() -> IntArray:
        cells = np.unique(np.concatenate([[0], operator.low, operator.high + 1]))
        return cells[cells < n]

    def between(starts: IntArray) -> Operator:
        low, high = (np.searchsorted(starts, ends, side="right") - 1 for ends in (operator.low, operator.high))
        return operator if len(starts) == n else Ranges(len(starts), low, high)

    return Facts(ends=lambda: (operator.low, operator.high), first_cells=edges, on_runs=between)


@facts.register
def _(operator: Tree) -> Facts:
    def ends() -> tuple[IntArray, IntArray]:
        low = np.concatenate([np.arange(0, operator.size, width) for width in operator.widths])
        return low, np.minimum(low + np.repeat(operator.widths, operator.level_sizes), operator.size) - 1

    return Facts(ends=ends)


@facts.register
def _(operator: Coarse) -> Facts:
    ends = interval_ends(operator.operator)
    if ends is None:
        return Facts()
    return Facts(ends=lambda: (operator.starts[ends[0]], np.append(operator.starts, operator.size)[ends[1] + 1] - 1))


@facts.register
def _(operator: Dense) -> Facts:
    def product(x: Array) -> Array:
        if operator.rows <= 2 * operator.size and x.ndim == 1:
            return apply_transpose(operator, apply(operator, x))
        return np.asarray((_gram(operator) @ x.reshape(operator.size, -1)).reshape(x.shape))

    return Facts(apply_gram=product, quicker_by_gram=True)


@lru_cache(maxsize=4)
def _gram(operator: Dense) -> FloatArray:
    real = operator.matrix.astype(np.float64)
    return np.asarray(real.T @ real)


@facts.register
def _(operator: DiagonalAndRows | Haar) -> Facts:
    return Facts(quicker_by_gram=True)


def interval_ends(operator: Operator) -> tuple[IntArray, IntArray] | None:
    """First and last cells if every row is an interval, else None."""
    ends = facts(operator).ends
    return None if ends is None else ends()


def first_cells(operator: Operator) -> IntArray:
    """The first cell of every run of cells that no query tells apart, from 0 on; every cell where the class does not tell."""
    known = facts(operator).first_cells
    return np.arange(operator.size) if known is None else known()


def on_runs(operator: Operator, starts: IntArray) -> Operator:
    """The same queries over the sums of runs of cells that none of them tells apart."""
    known = facts(operator).on_runs
    if known is not None:
        return known(starts)
    return operator if len(starts) == operator.size else Dense(dense(operator)[:, starts])


def gram_generators(operator: Operator) -> tuple[FloatArray, FloatArray] | None:
    """Rising and falling numbers with ``(A^T A)_ij = rising_i falling_j`` for i <= j; None of operators without that form."""
    generators = facts(operator).generators
    return None if generators is None else generators()


def singular_values(operator: Operator) -> FloatArray | None:
    """Singular values where a closed form is known, largest first, else None."""
    values = facts(operator).singular_values
    return None if values is None else values()


def apply_gram(operator: Operator, x: Array) -> Array:
    """Multiply by the Gram matrix: A^T A x along the first axis, in floating point."""
    product = facts(operator).apply_gram
    return apply_transpose(operator, apply(operator, x)) if product is None else product(x)


@singledispatch
def only_total(operator: Operator) -> bool:
    """Whether the total is known to be its only query; taken for more, it costs time alone."""
    return False


@only_total.register
def _(operator: Total) -> bool:
    return True


def gram_diagonal(operator: Operator) -> FloatArray:
    """The diagonal of A^T A: squared column norms, shape (size,). Its sum is the sum of the squares of all entries."""
    generators = gram_generators(operator)
    if generators is not None:
        return generators[0] * generators[1]
    return column_sums(operator, np.ones(operator.rows, dtype=np.int64), 2).astype(float)


def zero_one(operator: Operator) -> bool:
    """Whether all entries are 0 or 1."""
    return non_negative(operator) and largest_entry(operator) <= 1


def row_squares(operator: Operator) -> FloatArray:
    """Squared norms of the rows, shape (rows,)."""
    return np.asarray(apply(operator, np.ones(operator.size)) if zero_one(operator) else (dense(operator).astype(float) ** 2).sum(axis=1))


def columns(weights: FloatArray, x: FloatArray) -> FloatArray:
    """Weights as a column that multiplies the first axis of an array."""
    return weights.reshape(-1, *([1] * (x.ndim - 1)))


def apply_weighted_gram(factor: Factor, x: FloatArray) -> FloatArray:
    """F^T diag(w^2) F x along the first axis."""
    if factor.even:
        return np.asarray(apply_gram(factor.operator, x))
    moved = apply(factor.operator, x)
    return np.asarray(apply_transpose(factor.operator, moved * columns(factor.scaling**2, moved)))


def weighted_gram(factor: Factor) -> FloatArray:
    """F^T diag(w^2) F as a matrix, never with more than 2^22 numbers of F at a time."""
    n = factor.operator.size
    step = n if factor.even else max(1, _MOST_NUMBERS // factor.operator.rows)
    eye = np.eye(n)
    return np.concatenate([apply_weighted_gram(factor, eye[:, start : start + step]) for start in range(0, n, step)], axis=1)


def along_each(operators: Iterable[Operator], x: Array, function: Callable[[Operator, Array], Array] = apply, first: int = 0) -> Array:
    """Use ``apply`` or ``apply_transpose`` of every operator along an axis of its own, from the first on."""
    for axis, operator in enumerate(operators, first):
        x = along(function, operator, x, axis)
    return x


@singledispatch
def applied_in_parts(operator: Operator, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """A x some rows at a time, where they are many: which, and their answers."""
    yield slice(0, operator.rows), apply(operator, x)


@applied_in_parts.register
def _(operator: AllRanges, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
    low, high = all_range_ends(operator.size)
    step = max(1, _MOST_NUMBERS // x.shape[1])
    for start in range(0, operator.rows, step):
        part = slice(start, min(start + step, operator.rows))
        yield part, sums[high[part] + 1] - sums[low[part]]


@dataclass(frozen=True, eq=False)
class RowSpace:
    """The span of the rows of an operator over ``size`` cells."""

    size: int
    dimension: int
    components: IntArray | None = None
    unseen: FloatArray | None = None

    @property
    def everything(self) -> bool:
        """Whether every query lies in the space."""
        return self.dimension == self.size

    @cached_property
    def joined(self) -> Ranges:
        """A basis of a span of intervals: from each place to the next one of its component."""
        components = np.zeros(self.size + 1, dtype=np.int64) if self.components is None else self.components
        order = np.argsort(components, kind="stable")
        same = components[order[1:]] == components[order[:-1]]
        return Ranges(self.size, order[:-1][same], order[1:][same] - 1)

    @cached_property
    def basis(self) -> FloatArray:
        """An orthonormal basis, shape (size, dimension); only for sizes whose matrices are affordable."""
        if self.unseen is None:
            return np.asarray(np.linalg.qr(dense(self.joined).T.astype(float))[0], dtype=np.float64)
        return np.asarray(np.linalg.qr(self.unseen, mode="complete")[0][:, self.size - self.dimension :], dtype=np.float64)

    def holds(self, operator: Operator) -> bool:
        """Whether every row of an operator lies in the space."""
        if self.everything:
            return True
        asked = known_span(operator)
        if asked is not None and asked.components is not None:
            return self.includes(asked)
        rows, step = dense(operator), max(1, _AT_ONCE // self.size)
        return all(self.holds_rows(rows[start : start + step]) for start in range(0, len(rows), step))

    def includes(self, other: "RowSpace") -> bool:
        """Whether another space lies within this one."""
        if self.everything or other.dimension > self.dimension:
            return self.everything
        if self.unseen is not None and other.unseen is not None:  # what this one does not see must be what the other does not
            seen = self.unseen - other.unseen @ (other.unseen.T @ self.unseen)
            return self._sees(seen.T, np.ones(len(seen.T)))
        if other.components is None:
            return other.dimension == 0 or self.holds_rows(other.basis.T)
        if self.components is None:
            return self._sees(apply(other.joined, np.asarray(self.unseen)), apply(other.joined, np.ones(self.size)))
        first = np.zeros(self.size + 1, dtype=np.int64)
        first[other.components[::-1]] = np.arange(self.size, -1, -1)  # the first place of every component
        return bool((self.components == self.components[first[other.components]]).all())

    def holds_rows(self, rows: npt.NDArray[np.generic]) -> bool:
        """Whether given queries, shape (queries, size), lie in the space."""
        if self.everything:
            return True
        squares = (rows.astype(float) ** 2).sum(axis=1)
        if self.components is None:
            return self._sees(rows.astype(float) @ np.asarray(self.unseen), squares)
        weights = -np.diff(rows, axis=1, prepend=0, append=0)
        sums = np.zeros((self.size + 1, len(rows)), dtype=weights.dtype)
        np.add.at(sums, self.components, weights.T)
        return not sums.any() if weights.dtype.kind == "i" else self._sees(sums.T, squares)

    @staticmethod
    def _sees(outside: FloatArray, squares: FloatArray) -> bool:
        return bool((np.abs(outside).max(axis=1, initial=0.0) <= _ZERO_PART * np.sqrt(squares)).all())


@dataclass(frozen=True, eq=False, kw_only=True)
class _OnRuns(RowSpace):
    """The span of queries over the sums of runs of cells, some of which they do not determine."""

    runs: RowSpace
    starts: IntArray

    @cached_property
    def basis(self) -> FloatArray:
        """An orthonormal basis, shape (size, dimension)."""
        rows = np.repeat(self.runs.basis, np.diff(self.starts, append=self.size), axis=0)
        return np.asarray(np.linalg.qr(rows)[0], dtype=np.float64)

    def holds(self, operator: Operator) -> bool:
        """Whether every row of an operator lies in the space."""
        whole = row_space(Coarse(Identity(len(self.starts)), self.starts, self.size))
        return whole is not None and whole.holds(operator) and self.runs.holds(on_runs(operator, self.starts))

    def includes(self, other: RowSpace) -> bool:
        """Whether another space lies within this one."""
        if isinstance(other, _OnRuns) and np.array_equal(self.starts, other.starts):
            return self.runs.includes(other.runs)
        if other.dimension > self.dimension:
            return False
        return self.holds_rows(other.basis.T) if other.components is None else self.holds(other.joined)

    def holds_rows(self, rows: npt.NDArray[np.generic]) -> bool:
        """Whether given queries, shape (queries, size), lie in the space."""
        whole = np.repeat(rows[:, self.starts], np.diff(self.starts, append=self.size), axis=1)
        return bool(np.allclose(rows, whole)) and self.runs.holds_rows(rows[:, self.starts])


def everything(size: int) -> RowSpace:
    """The span of all cells."""
    return RowSpace(size, size, np.zeros(size + 1, dtype=np.int64))


@singledispatch
def known_span(operator: Operator) -> RowSpace | None:
    """The span of an operator's rows where its class tells, and of intervals by their ends; None where it follows from the matrix alone."""
    ends, n = interval_ends(operator), operator.size
    if ends is None:
        return None
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(ends[0]), dtype=np.int8), (ends[0], ends[1] + 1)), shape=(n + 1, n + 1))
    count, components = connected_components(edges, directed=False)
    return RowSpace(n, n + 1 - int(count), components.astype(np.int64))


@known_span.register
def _(operator: Identity | Prefix | AllRanges | DiagonalAndRows | Haar | Toeplitz) -> RowSpace:
    return everything(operator.size)


@known_span.register
def _(operator: Total) -> RowSpace:
    components = np.arange(operator.size + 1)
    components[-1] = 0  # the first place and the last are one
    return RowSpace(operator.size, 1, components)


@known_span.register
def _(operator: Tree) -> RowSpace | None:
    return everything(operator.size) if operator.widths[-1] == 1 else known_span.dispatch(object)(operator)


@known_span.register
def _(operator: Nested) -> RowSpace | None:
    within = [row_space(part) for part in (operator.inner, operator.last)]
    return everything(operator.size) if all(space is not None and space.everything for space in within) else None


@known_span.register
def _(operator: Coarse) -> RowSpace | None:
    within = row_space(operator.operator)
    if within is None or not within.everything:
        return None if within is None else _OnRuns(operator.size, within.dimension, runs=within, starts=operator.starts)
    components = np.arange(operator.size + 1)
    components[operator.starts] = operator.size  # one with the last place; the places between them stay alone
    return RowSpace(operator.size, len(operator.starts), components)


@known_span.register
def _(operator: Contrasts) -> RowSpace:
    return RowSpace(operator.size, operator.size - 1, None, np.full((operator.size, 1), operator.size**-0.5))


@lru_cache(maxsize=64)
def row_space(operator: Operator) -> RowSpace | None:
    """The span of an operator's rows; None if finding it needs too large a matrix: over 4096 cells, where the class alone does not tell."""
    known = known_span(operator)
    if known is not None:
        return known
    if operator.size > MOST_DENSE:
        return None
    shape = triangle(operator)
    if shape is not None and shape.pivot > 1e-5:
        return everything(operator.size)
    rows = unit_rows(dense(operator))
    return of_gram(rows.T @ rows)


def unit_rows(rows: npt.NDArray[np.generic]) -> FloatArray:
    """Queries of norm 1 with the same span: how large the integers of a query are says nothing of what it sees."""
    norms = np.sqrt((rows.astype(float) ** 2).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Triangle:
    """A square matrix of queries with zeros above (lower) or below its diagonal; pivot: the least diagonal entry over the largest."""

    lower: bool
    pivot: float


@singledispatch
def triangle(operator: Operator) -> Triangle | None:
    """The shape of a triangular matrix of queries, such as the Gaussian optimum's; None of any other."""
    return None


@triangle.register
def _(operator: Dense) -> Triangle | None:
    if operator.rows != operator.size:
        return None
    lower = not operator.matrix[0, 1:].any()
    if (np.triu(operator.matrix, 1) if lower else np.tril(operator.matrix, -1)).any():
        return None
    diagonal = np.abs(operator.matrix.diagonal())
    return Triangle(lower, float(diagonal.min() / diagonal.max())) if diagonal.any() else None


def of_gram(gram: FloatArray) -> RowSpace:
    """The row space of queries with a given Gram matrix, shape (size, size)."""
    n = len(gram)
    try:
        pivots = np.diag(np.linalg.cholesky(gram))
        if np.min(pivots) > 1e-5 * np.max(pivots):
            return everything(n)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(gram)
    zero = values <= _ZERO_EIGENVALUE * max(float(values[-1]), 0.0)
    if not zero.any():
        return everything(n)
    return RowSpace(n, n - int(zero.sum()), None, vectors[:, zero])


def inverted(gram: FloatArray, space: RowSpace) -> FloatArray | None:
    """The inverse of a Gram matrix within the row space of its queries; None where that is too badly conditioned."""
    seen = None if space.everything else space.basis
    try:
        lower = np.linalg.cholesky(gram if seen is None else seen.T @ gram @ seen)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diag(lower)
    if not np.min(pivots, initial=np.inf) > 1e-7 * np.max(pivots, initial=0.0):
        return None
    half = np.linalg.inv(lower) if seen is None else np.linalg.solve(lower, seen.T)
    return np.asarray(half.T @ half, dtype=np.float64)
