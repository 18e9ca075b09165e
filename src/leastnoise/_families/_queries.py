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
from functools import cached_property, lru_cache
from typing import Any

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

_AT_ONCE = 2**22  # numbers
MOST_DENSE = 4096
_ZERO_EIGENVALUE = 1e-10
_ZERO_PART = 1e-7
# Whose Gram matrices, once made, are quicker to multiply by than the operators and their transposes.
QUICKER_BY_GRAM = (Dense, DiagonalAndRows, Haar)
Ends = tuple[IntArray, IntArray]


def _tree_ends(operator: Tree) -> Ends:
    low = np.concatenate([np.arange(0, operator.size, width) for width in operator.widths])
    return low, np.minimum(low + np.repeat(operator.widths, operator.level_sizes), operator.size) - 1


def _coarse_ends(operator: Coarse) -> Ends | None:
    ends = interval_ends(operator.operator)
    return None if ends is None else (operator.starts[ends[0]], np.append(operator.starts, operator.size)[ends[1] + 1] - 1)


_ENDS: dict[type, Callable[[Any], Ends | None]] = {
    Identity: lambda operator: (np.arange(operator.size), np.arange(operator.size)),
    Total: lambda operator: (np.array([0]), np.array([operator.size - 1])),
    Prefix: lambda operator: (np.zeros(operator.size, dtype=np.int64), np.arange(operator.size)),
    AllRanges: lambda operator: all_range_ends(operator.size),
    Ranges: lambda operator: (operator.low, operator.high),
    Tree: _tree_ends,
    Coarse: _coarse_ends,
}
_GENERATORS: dict[type, Callable[[int], tuple[FloatArray, FloatArray]]] = {
    Total: lambda n: (np.ones(n), np.ones(n)),
    Prefix: lambda n: (np.ones(n), np.arange(n, 0.0, -1)),
    AllRanges: lambda n: (np.arange(1.0, n + 1), np.arange(n, 0.0, -1)),
}
_SINGULAR_VALUES: dict[type, Callable[[int], FloatArray]] = {
    Identity: np.ones,
    Total: lambda n: np.array([math.sqrt(n)]),
    Prefix: lambda n: np.asarray(0.5 / np.sin((2 * np.arange(1, n + 1) - 1) * math.pi / (4 * n + 2))),
    AllRanges: lambda n: np.asarray(math.sqrt(n + 1) / (2 * np.sin(np.arange(1, n + 1) * math.pi / (2 * (n + 1))))),
}


def interval_ends(operator: Operator) -> Ends | None:
    """First and last cells if every row is an interval, else None."""
    known = _ENDS.get(type(operator))
    return None if known is None else known(operator)


def gram_generators(operator: Operator) -> tuple[FloatArray, FloatArray] | None:
    """Rising and falling numbers with ``(A^T A)_ij = rising_i falling_j`` for i <= j; None of operators without that form."""
    known = _GENERATORS.get(type(operator))
    return None if known is None else known(operator.size)


def singular_values(operator: Operator) -> FloatArray | None:
    """Singular values where a closed form is known, largest first, else None."""
    known = _SINGULAR_VALUES.get(type(operator))
    return None if known is None else known(operator.size)


def first_cells(operator: Operator) -> IntArray:
    """The first cell of every run of cells that no query tells apart, from 0 on; every cell where the class does not tell."""
    ends = interval_ends(operator) if type(operator) in (Total, Ranges) else None
    if ends is None:
        return np.arange(operator.size)
    cells = np.unique(np.concatenate([[0], ends[0], ends[1] + 1]))
    return np.asarray(cells[cells < operator.size])


def on_runs(operator: Operator, starts: IntArray) -> Operator:
    """The same queries over the sums of runs of cells that none of them tells apart."""
    if len(starts) == operator.size:
        return operator
    if operator == Total(operator.size):
        return Total(len(starts))
    ends = interval_ends(operator) if type(operator) is Ranges else None
    if ends is None:
        return Dense(dense(operator)[:, starts])
    low, high = (np.searchsorted(starts, cells, side="right") - 1 for cells in ends)
    return Ranges(len(starts), low, high)


def apply_gram(operator: Operator, x: Array) -> Array:
    """Multiply by the Gram matrix: A^T A x along the first axis, in floating point."""
    generators = gram_generators(operator) if operator.rows > operator.size else None
    if generators is not None:  # running sums instead of n^2 / 2 rows
        up, down = (columns(part, x) for part in generators)
        from_here = np.cumsum((down * x)[::-1], axis=0)[::-1]
        return np.asarray(down * np.cumsum(up * x, axis=0) + up * (from_here - down * x))
    if type(operator) is Dense and (operator.rows > 2 * operator.size or x.ndim > 1):
        return np.asarray((_dense_gram(operator) @ x.reshape(operator.size, -1)).reshape(x.shape))
    return apply_transpose(operator, apply(operator, x))


@lru_cache(maxsize=4)
def _dense_gram(operator: Operator) -> FloatArray:
    real = dense(operator).astype(np.float64)
    return np.asarray(real.T @ real)


def gram_diagonal(operator: Operator) -> FloatArray:
    """The diagonal of A^T A: squared column norms, shape (size,). Its sum is the sum of the squares of all entries."""
    generators = gram_generators(operator)
    if generators is not None:
        return generators[0] * generators[1]
    return column_sums(operator, np.ones(operator.rows, dtype=np.int64), 2).astype(float)


def zero_one(operator: Operator) -> bool:
    """Whether all entries are 0 or 1."""
    return non_negative(operator) and largest_entry(operator) <= 1


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
    step = n if factor.even else max(1, _AT_ONCE // factor.operator.rows)
    eye = np.eye(n)
    return np.concatenate([apply_weighted_gram(factor, eye[:, start : start + step]) for start in range(0, n, step)], axis=1)


def along_each(operators: Iterable[Operator], x: Array, function: Callable[[Operator, Array], Array] = apply, first: int = 0) -> Array:
    """Use ``apply`` or ``apply_transpose`` of every operator along an axis of its own, from the first on."""
    for axis, operator in enumerate(operators, first):
        x = along(function, operator, x, axis)
    return x


def applied_in_parts(operator: Operator, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """A x some rows at a time, where they are very many ranges: which, and their answers."""
    ends, step = interval_ends(operator), max(1, _AT_ONCE // x.shape[1])
    if ends is None or operator.rows <= step:
        yield slice(0, operator.rows), apply(operator, x)
        return
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
    for start in range(0, operator.rows, step):
        part = slice(start, min(start + step, operator.rows))
        yield part, sums[ends[1][part] + 1] - sums[ends[0][part]]


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
        return of_runs(self.size, self.starts).holds(operator) and self.runs.holds(on_runs(operator, self.starts))

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


def of_runs(size: int, starts: IntArray) -> RowSpace:
    """The span of the sums of consecutive runs of cells."""
    components = np.arange(size + 1)
    components[starts] = size  # one with the last place; the places between them stay alone
    return RowSpace(size, len(starts), components)


def _of_intervals(operator: Operator) -> RowSpace | None:
    ends, n = interval_ends(operator), operator.size
    if ends is None:
        return None
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(ends[0]), dtype=np.int8), (ends[0], ends[1] + 1)), shape=(n + 1, n + 1))
    count, components = connected_components(edges, directed=False)
    return RowSpace(n, n + 1 - int(count), components.astype(np.int64))


def _nested_span(operator: Nested) -> RowSpace | None:
    within = [row_space(part) for part in (operator.inner, operator.last)]
    return everything(operator.size) if all(space is not None and space.everything for space in within) else None


def _coarse_span(operator: Coarse) -> RowSpace | None:
    within = row_space(operator.operator)
    if within is None or within.everything:
        return None if within is None else of_runs(operator.size, operator.starts)
    return _OnRuns(operator.size, within.dimension, runs=within, starts=operator.starts)


_SPANS: dict[type, Callable[[Any], RowSpace | None]] = {
    **dict.fromkeys((Identity, Prefix, AllRanges, DiagonalAndRows, Haar, Toeplitz), lambda operator: everything(operator.size)),
    Total: lambda operator: of_runs(operator.size, np.zeros(1, dtype=np.int64)),
    Tree: lambda operator: everything(operator.size) if operator.widths[-1] == 1 else _of_intervals(operator),
    Nested: _nested_span,
    Coarse: _coarse_span,
    Contrasts: lambda operator: RowSpace(operator.size, operator.size - 1, None, np.full((operator.size, 1), operator.size**-0.5)),
}


def known_span(operator: Operator) -> RowSpace | None:
    """The span of an operator's rows where its class tells, and of intervals by their ends; None where it follows from the matrix alone."""
    return _SPANS.get(type(operator), _of_intervals)(operator)


@lru_cache(maxsize=64)
def row_space(operator: Operator) -> RowSpace | None:
    """The span of an operator's rows; None if finding it needs too large a matrix: over 4096 cells, where the class alone does not tell."""
    known = known_span(operator)
    if known is not None or operator.size > MOST_DENSE:
        return known
    shape = triangle(operator)
    if shape is not None and shape[1] > 1e-5:
        return everything(operator.size)
    rows = unit_rows(dense(operator))
    return of_gram(rows.T @ rows)


def unit_rows(rows: npt.NDArray[np.generic]) -> FloatArray:
    """Queries of norm 1 with the same span: how large the integers of a query are says nothing of what it sees."""
    norms = np.sqrt((rows.astype(float) ** 2).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=np.float64)


def triangle(operator: Operator) -> tuple[bool, float] | None:
    """Of a triangular matrix, such as the Gaussian optimum's: whether it is a lower one, and its least diagonal entry over the largest."""
    if operator.rows != operator.size:
        return None
    matrix = dense(operator)
    lower, diagonal = not matrix[0, 1:].any(), np.abs(matrix.diagonal())
    if (np.triu(matrix, 1) if lower else np.tril(matrix, -1)).any() or not diagonal.any():
        return None
    return lower, float(diagonal.min() / diagonal.max())


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
