"""Facts in closed form about operators, Gram matrices and row spaces.

A function returns None for a class without a closed form. The caller then computes the result from
the matrix. Properties of a matrix's entries are never guessed. Such properties are computed by
`column_sums`, `non_negative` and `largest_entry`, which raise an error for an unregistered class.

The row space of measured queries decides which other queries are determined. Intervals of n cells
are edges between n + 1 nodes: the interval from cell a to b joins the nodes a and b + 1. A query
assigns a weight to each node: minus the change of the query's coefficients from one cell to the
next. The query is a combination of some intervals exactly if these weights sum to 0 over each
connected component of the edges. The test uses integer arithmetic and takes linear time. For other
operators, the null space is computed in floating point. The null space follows from the eigenvalues
of the Gram matrix of the rows, after the rows are scaled to norm 1. Eigenvalues below 1e-10 of the
largest are treated as 0. So a direction measured with less than 1e-5 of the largest weight counts
as unmeasured. A query is undetermined if more than 1e-7 of its norm is along such directions.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check.arrays import Array, FloatArray, IntArray
from leastnoise._trusted.linop import (
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
    apply,
    apply_along_axis,
    apply_transpose,
    column_sums,
    dense,
    largest_entry,
    non_negative,
)
from leastnoise._trusted.measurements import Factor

_AT_ONCE = 2**22  # maximum number of array entries in memory
MOST_DENSE = 4096  # maximum number of cells of a dense matrix
_ZERO_EIGENVALUE = 1e-10  # relative to the largest eigenvalue
_ZERO_PART = 1e-7  # relative to the norm of the query
# Least pivots of a Cholesky factor or a triangle, relative to the largest. The first is the square
# root of _ZERO_EIGENVALUE. The square of the second is close to the rounding error of doubles.
_LEAST_PIVOT = 1e-5
_LEAST_PIVOT_OF_INVERSE = 1e-7
# For these operators, a product with the stored Gram matrix is quicker than products with the
# operator and its transpose.
QUICKER_BY_GRAM = (Dense, DiagonalAndRows, Haar)
Ends = tuple[IntArray, IntArray]


def interval_ends(operator: Operator) -> Ends | None:
    """Return the end cells of each query, or None if a query is no interval.

    The decision is based on the class of the operator, not on its entries.
    """
    n = operator.size
    match operator:
        case Identity():
            return np.arange(n), np.arange(n)
        case Total():
            return np.array([0]), np.array([n - 1])
        case Prefix():
            return np.zeros(n, dtype=np.int64), np.arange(n)
        case AllRanges():
            return all_range_ends(n)
        case Ranges():
            return operator.low, operator.high
        case Tree():
            low = np.concatenate([np.arange(0, n, width) for width in operator.widths])
            return low, np.minimum(low + np.repeat(operator.widths, operator.level_sizes), n) - 1
        case Coarse():
            ends = interval_ends(operator.operator)
            if ends is None:
                return None
            return (operator.starts[ends[0]], np.append(operator.starts, n)[ends[1] + 1] - 1)
    return None


def gram_generators(operator: Operator) -> tuple[FloatArray, FloatArray] | None:
    """Return vectors with ``(A^T A)_ij = rising_i falling_j`` (i <= j), or None.

    The result is None if there are no such vectors in closed form.
    """
    cells_to_end = np.arange(operator.size, 0.0, -1)
    match operator:
        case Total():
            return np.ones(operator.size), np.ones(operator.size)
        case Prefix():
            return np.ones(operator.size), cells_to_end
        case AllRanges():
            return cells_to_end[::-1], cells_to_end
    return None


def singular_values(operator: Operator) -> FloatArray | None:
    """Return the singular values, largest first; None without a closed form."""
    n = operator.size
    match operator:
        case Identity():
            return np.ones(n)
        case Total():
            return np.array([math.sqrt(n)])
        case Prefix():
            return np.asarray(0.5 / np.sin((2 * np.arange(1, n + 1) - 1) * math.pi / (4 * n + 2)))
        case AllRanges():
            return np.asarray(
                math.sqrt(n + 1) / (2 * np.sin(np.arange(1, n + 1) * math.pi / (2 * (n + 1))))
            )
    return None


def first_cells(operator: Operator) -> IntArray:
    """Return the first cell of each run of cells that no query separates.

    If the operator's class does not describe runs, every cell is a run.
    """
    if type(operator) in (Total, Ranges):
        ends = interval_ends(operator)
    else:
        ends = None
    if ends is None:
        return np.arange(operator.size)
    cells = np.unique(np.concatenate([[0], ends[0], ends[1] + 1]))
    return np.asarray(cells[cells < operator.size])


def restrict_to_runs(operator: Operator, starts: IntArray) -> Operator:
    """Convert queries on cells to queries on the sums over runs of cells."""
    if len(starts) == operator.size:
        return operator
    if operator == Total(operator.size):
        return Total(len(starts))
    if type(operator) is Ranges:
        ends = interval_ends(operator)
    else:
        ends = None
    if ends is None:
        return Dense(dense(operator)[:, starts])
    low, high = (np.searchsorted(starts, cells, side="right") - 1 for cells in ends)
    return Ranges(len(starts), low, high)


def apply_gram(operator: Operator, x: Array) -> Array:
    """Return A^T A x along the first axis, as floats."""
    if operator.rows > operator.size:
        generators = gram_generators(operator)
    else:
        generators = None
    if generators is not None:  # use cumulative sums instead of n^2 / 2 rows
        up, down = (column_weights(part, x) for part in generators)
        from_here = np.cumsum((down * x)[::-1], axis=0)[::-1]
        return np.asarray(down * np.cumsum(up * x, axis=0) + up * (from_here - down * x))
    if type(operator) is Dense and (operator.rows > 2 * operator.size or x.ndim > 1):
        return np.asarray((_dense_gram(operator) @ x.reshape(operator.size, -1)).reshape(x.shape))
    return apply_transpose(operator, apply(operator, x))


@lru_cache(maxsize=4)
def _dense_gram(operator: Operator) -> FloatArray:
    """Return the Gram matrix of an operator as an array, (cells, cells)."""
    real = dense(operator).astype(np.float64)
    return np.asarray(real.T @ real)


def gram_diagonal(operator: Operator) -> FloatArray:
    """Return the diagonal of A^T A (squared column norms), shape (size,)."""
    generators = gram_generators(operator)
    if generators is not None:
        return generators[0] * generators[1]
    return column_sums(operator, np.ones(operator.rows, dtype=np.int64), 2).astype(float)


def is_zero_one(operator: Operator) -> bool:
    """Return whether every coefficient is 0 or 1."""
    return non_negative(operator) and largest_entry(operator) <= 1


def column_weights(weights: FloatArray, array: FloatArray) -> FloatArray:
    """Return weights reshaped to broadcast along the first axis of an array."""
    return weights.reshape(-1, *([1] * (array.ndim - 1)))


def apply_weighted_gram(factor: Factor, x: FloatArray) -> FloatArray:
    """Return F^T diag(w^2) F x along the first axis, for a factor.

    F is the operator of a factor and w are its row weights.
    """
    if factor.even:
        return np.asarray(apply_gram(factor.operator, x))
    moved = apply(factor.operator, x)
    return np.asarray(
        apply_transpose(factor.operator, moved * column_weights(factor.scaling**2, moved))
    )


def weighted_gram(factor: Factor) -> FloatArray:
    """Return the matrix F^T diag(w^2) F of a factor, shape (size, size).

    At most 2^22 entries of F are in memory at the same time.
    """
    n = factor.operator.size
    if factor.even:
        step = n
    else:
        step = max(1, _AT_ONCE // factor.operator.rows)
    eye = np.eye(n)
    return np.concatenate(
        [apply_weighted_gram(factor, eye[:, start : start + step]) for start in range(0, n, step)],
        axis=1,
    )


def apply_along_axes(
    operators: Iterable[Operator],
    x: Array,
    function: Callable[[Operator, Array], Array] = apply,
    first_axis: int = 0,
) -> Array:
    """Return an array after applying one operator along each axis.

    ``function`` is ``apply`` or ``apply_transpose``.
    """
    for axis, operator in enumerate(operators, first_axis):
        x = apply_along_axis(function, operator, x, axis)
    return x


def apply_in_parts(operator: Operator, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield slices of rows of A, with the values of A x in these rows.

    Several slices are yielded only for a large number of ranges.
    """
    ends = interval_ends(operator)
    step = max(1, _AT_ONCE // x.shape[1])
    if ends is None or operator.rows <= step:
        yield slice(0, operator.rows), apply(operator, x)
        return
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
    for start in range(0, operator.rows, step):
        part = slice(start, min(start + step, operator.rows))
        yield part, sums[ends[1][part] + 1] - sums[ends[0][part]]


@dataclass(frozen=True, eq=False)
class RowSpace:
    """The span of the rows of an operator.

    The space is stored as the full space, a span of intervals, or the complement of a null space.

    Attributes:
        size: number of cells n.
        dimension: the dimension of the space.
        components: the connected component of each of the n + 1 nodes, if the space is a span of
            intervals.
        null_basis: an orthonormal basis of the null space, shape (n, n - dimension), if the space
            is not full and is not a span of intervals.
    """

    size: int
    dimension: int
    components: IntArray | None = None
    null_basis: FloatArray | None = None

    @property
    def is_full(self) -> bool:
        """Whether the space contains every query."""
        return self.dimension == self.size

    @cached_property
    def interval_basis(self) -> Ranges:
        """Intervals of cells that form a basis of the space.

        Each interval reaches from one node to the next node of its component.
        """
        if self.components is None:
            components = np.zeros(self.size + 1, dtype=np.int64)
        else:
            components = self.components
        order = np.argsort(components, kind="stable")
        same = components[order[1:]] == components[order[:-1]]
        return Ranges(self.size, order[:-1][same], order[1:][same] - 1)

    @cached_property
    def basis(self) -> FloatArray:
        """An orthonormal basis as columns, shape (size, dimension).

        Use it only for sizes at which a matrix fits into memory.
        """
        if self.null_basis is None:
            return np.asarray(
                np.linalg.qr(dense(self.interval_basis).T.astype(float))[0], dtype=np.float64
            )
        return np.asarray(
            np.linalg.qr(self.null_basis, mode="complete")[0][:, self.size - self.dimension :],
            dtype=np.float64,
        )

    def contains(self, operator: Operator) -> bool:
        """Return whether every row of an operator lies in the space."""
        if self.is_full:
            return True
        span = structural_row_space(operator)
        if span is not None and span.components is not None:
            return self.includes(span)
        rows = dense(operator)
        step = max(1, _AT_ONCE // self.size)
        return all(
            self.contains_rows(rows[start : start + step]) for start in range(0, len(rows), step)
        )

    def includes(self, other: "RowSpace") -> bool:
        """Return whether another space is a subspace of this space."""
        if self.is_full or other.dimension > self.dimension:
            return self.is_full
        # The null space of this space must lie in the null space of the other.
        if self.null_basis is not None and other.null_basis is not None:
            outside = self.null_basis - other.null_basis @ (other.null_basis.T @ self.null_basis)
            return self._is_negligible(outside.T, np.ones(len(outside.T)))
        if other.components is None:
            return other.dimension == 0 or self.contains_rows(other.basis.T)
        if self.components is None:
            return self._is_negligible(
                apply(other.interval_basis, np.asarray(self.null_basis)),
                apply(other.interval_basis, np.ones(self.size)),
            )
        first = np.zeros(self.size + 1, dtype=np.int64)
        # The first node of every component.
        first[other.components[::-1]] = np.arange(self.size, -1, -1)
        return bool((self.components == self.components[first[other.components]]).all())

    def contains_rows(self, rows: npt.NDArray[np.generic]) -> bool:
        """Return whether every row of an array (queries, size) is in the space."""
        if self.is_full:
            return True
        squares = (rows.astype(float) ** 2).sum(axis=1)
        if self.components is None:
            return self._is_negligible(rows.astype(float) @ np.asarray(self.null_basis), squares)
        weights = -np.diff(rows, axis=1, prepend=0, append=0)
        sums = np.zeros((self.size + 1, len(rows)), dtype=weights.dtype)
        np.add.at(sums, self.components, weights.T)
        if weights.dtype.kind == "i":
            return not sums.any()
        return self._is_negligible(sums.T, squares)

    @staticmethod
    def _is_negligible(outside: FloatArray, squared_norms: FloatArray) -> bool:
        """Return whether the coordinates outside the space are rounding errors.

        For each query, the function receives a row of coordinates and the squared norm of the
        query.
        """
        largest = np.abs(outside).max(axis=1, initial=0.0)
        return bool((largest <= _ZERO_PART * np.sqrt(squared_norms)).all())


@dataclass(frozen=True, eq=False, kw_only=True)
class _RunSpace(RowSpace):
    """The span of queries on the sums over runs of cells.

    This class is for queries that do not determine the sums of all runs.
    """

    runs: RowSpace
    starts: IntArray

    @cached_property
    def basis(self) -> FloatArray:
        """An orthonormal basis as columns, shape (size, dimension)."""
        rows = np.repeat(self.runs.basis, np.diff(self.starts, append=self.size), axis=0)
        return np.asarray(np.linalg.qr(rows)[0], dtype=np.float64)

    def contains(self, operator: Operator) -> bool:
        """Return whether every row of an operator lies in the space."""
        return span_of_runs(self.size, self.starts).contains(operator) and self.runs.contains(
            restrict_to_runs(operator, self.starts)
        )

    def includes(self, other: RowSpace) -> bool:
        """Return whether another space is a subspace of this space."""
        if isinstance(other, _RunSpace) and np.array_equal(self.starts, other.starts):
            return self.runs.includes(other.runs)
        if other.dimension > self.dimension:
            return False
        if other.components is None:
            return self.contains_rows(other.basis.T)
        return self.contains(other.interval_basis)

    def contains_rows(self, rows: npt.NDArray[np.generic]) -> bool:
        """Return whether every row of an array (queries, size) is in the space."""
        expanded = np.repeat(rows[:, self.starts], np.diff(self.starts, append=self.size), axis=1)
        return bool(np.allclose(rows, expanded)) and self.runs.contains_rows(rows[:, self.starts])


def full_space(size: int) -> RowSpace:
    """Return the space of all queries on ``size`` cells."""
    return RowSpace(size, size, np.zeros(size + 1, dtype=np.int64))


def span_of_runs(size: int, starts: IntArray) -> RowSpace:
    """Return the span of sums over consecutive runs of cells."""
    components = np.arange(size + 1)
    # The first nodes of runs and the last node form one component; every other node is a separate
    # component.
    components[starts] = size
    return RowSpace(size, len(starts), components)


def structural_row_space(operator: Operator) -> RowSpace | None:
    """Return the row space by an operator's structure; None if there is none.

    The result is None if the row space must be computed from the matrix.
    """
    n = operator.size
    match operator:
        case Identity() | Prefix() | AllRanges() | DiagonalAndRows() | Haar() | Toeplitz():
            return full_space(n)
        case Tree() if operator.widths[-1] == 1:
            return full_space(n)
        case Total():
            return span_of_runs(n, np.zeros(1, dtype=np.int64))
        case Contrasts():
            return RowSpace(n, n - 1, None, np.full((n, 1), n**-0.5))
        case Nested():
            within = [row_space(part) for part in (operator.inner, operator.last)]
            if all(space is not None and space.is_full for space in within):
                return full_space(n)
            return None
        case Coarse():
            space = row_space(operator.operator)
            if space is None:
                return None
            if space.is_full:
                return span_of_runs(n, operator.starts)
            return _RunSpace(n, space.dimension, runs=space, starts=operator.starts)
    ends = interval_ends(operator)
    if ends is None:
        return None
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array(
        (np.ones(len(ends[0]), dtype=np.int8), (ends[0], ends[1] + 1)), shape=(n + 1, n + 1)
    )
    count, components = connected_components(edges, directed=False)
    return RowSpace(n, n + 1 - int(count), components.astype(np.int64))


@lru_cache(maxsize=64)
def row_space(operator: Operator) -> RowSpace | None:
    """Return the row space of an operator; None if it is too large.

    The result is None if the operator's class does not imply the span and there are more than 4096
    cells.
    """
    by_class = structural_row_space(operator)
    if by_class is not None or operator.size > MOST_DENSE:
        return by_class
    triangle = triangular_form(operator)
    if triangle is not None:
        _, diagonal_ratio = triangle
        if diagonal_ratio > _LEAST_PIVOT:
            return full_space(operator.size)
    rows = unit_rows(dense(operator))
    return row_space_of_gram(rows.T @ rows)


def unit_rows(rows: npt.NDArray[np.generic]) -> FloatArray:
    """Return queries scaled to norm 1."""
    norms = np.sqrt((rows.astype(float) ** 2).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=np.float64)


def triangular_form(operator: Operator) -> tuple[bool, float] | None:
    """Return whether a triangular matrix is lower, and how even its diagonal is.

    The ratio is the smallest absolute diagonal entry divided by the largest. The result is None if
    the matrix is not triangular, or if its diagonal is zero.
    """
    if operator.rows != operator.size:
        return None
    matrix = dense(operator)
    lower = not matrix[0, 1:].any()
    diagonal = np.abs(matrix.diagonal())
    if (np.triu(matrix, 1) if lower else np.tril(matrix, -1)).any() or not diagonal.any():
        return None
    return lower, float(diagonal.min() / diagonal.max())


def row_space_of_gram(gram: FloatArray) -> RowSpace:
    """Return the row space from the Gram matrix of queries, (size, size)."""
    n = len(gram)
    try:
        pivots = np.diag(np.linalg.cholesky(gram))
        if np.min(pivots) > _LEAST_PIVOT * np.max(pivots):
            return full_space(n)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(gram)
    zero = values <= _ZERO_EIGENVALUE * max(float(values[-1]), 0.0)
    if not zero.any():
        return full_space(n)
    return RowSpace(n, n - int(zero.sum()), None, vectors[:, zero])


def invert_within(gram: FloatArray, space: RowSpace) -> FloatArray | None:
    """Return the pseudo-inverse of a Gram matrix on a row space, or None.

    The result is None if the Gram matrix is too badly conditioned.
    """
    if space.is_full:
        basis = None
    else:
        basis = space.basis
    try:
        lower = np.linalg.cholesky(gram if basis is None else basis.T @ gram @ basis)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diag(lower)
    least_allowed = _LEAST_PIVOT_OF_INVERSE * np.max(pivots, initial=0.0)
    if not np.min(pivots, initial=np.inf) > least_allowed:
        return None
    if basis is None:
        half = np.linalg.inv(lower)
    else:
        half = np.linalg.solve(lower, basis.T)
    return np.asarray(half.T @ half, dtype=np.float64)
