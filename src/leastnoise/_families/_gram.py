"""Gram matrices M = W^T W of workloads, in their most compact form.

W is the matrix of m queries on one ordered attribute of n cells.

For workloads that are matrices, this file finds three things: the cells that no query
distinguishes, an order of the cells along a line, and a short form of M in that order.

Planners see a family of strategies along one attribute as a function (`FitFamily`). Such a function
fits a strategy in whole numbers to the matrix. The rounded strategy is measured, and the plan's
error and privacy cost are computed from its integers. The inverse of the strategy's Gram matrix is
registered for its operator: see ``_inverse``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from leastnoise._families._queries import (
    MOST_DENSE,
    apply_gram,
    first_cells,
    gram_generators,
    interval_ends,
    restrict_to_runs,
)
from leastnoise._families._search import NotApplicable, search_was_cut_short
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import (
    AllRanges,
    Coarse,
    Dense,
    Identity,
    Operator,
    Prefix,
    Total,
    dense,
)
from leastnoise._trusted.measurements import Factor

Generators = tuple[tuple[FloatArray, FloatArray], ...]
# Largest number of cells for which fits are cached; the cache takes some megabytes.
_MOST_KEPT = 256
_MOST_CACHED_FITS = 64  # largest number of cached fits for each family
_AT_ONCE = 2**22  # maximum number of array entries in memory
Fitting = TypeVar("Fitting", bound=Callable[..., Any])


def _cover_sums(size: int, range_amounts: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    """Return, for each cell, the sum of the amounts of ranges that contain it.

    A range with low > high is empty.
    """
    filled = low <= high
    change = np.bincount(low[filled], range_amounts[filled], size + 1) - np.bincount(
        high[filled] + 1, range_amounts[filled], size + 1
    )
    return np.asarray(np.cumsum(change)[:size], dtype=np.float64)


def _pair_products(a: FloatArray, b: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return ``matrix @ M`` for M with entries ``a_i b_j`` (i <= j)."""
    # Prefix sums need only half of the computation.
    if (a == a[0]).all() and np.array_equal(b, np.arange(len(b), 0.0, -1)):
        sums = np.cumsum(np.cumsum(matrix, axis=1)[:, ::-1], axis=1)[:, ::-1]
        if a[0] == 1:
            return sums
        return np.asarray(a[0] * sums)
    before = np.cumsum(matrix * a, axis=1)
    before *= b
    after = np.cumsum(matrix * b, axis=1)
    np.subtract(after[:, -1:].copy(), after, out=after)
    after *= a
    before += after
    return before


@dataclass(frozen=True, eq=False)
class Gram:
    """The Gram matrix M of a workload, as a sum of structured matrices.

    A method takes O(n^2) only if ``array`` is not None, or if its docstring says that it does.

    Attributes:
        size: number of cells n.
        queries: number of queries m (rows of W).
        pairs: the pairs (a, b) of matrices with ``M_ij = a_i b_j`` for i <= j, as for prefix sums,
            ranges and the total.
        identity_weight: the factor of the identity matrix, which is the weight of single cells.
        weighted_ranges: the weights, the first cells and the last cells of ranges.
        array: the part of M without a structured form, shape (n, n).
    """

    size: int
    queries: int
    pairs: Generators = ()
    identity_weight: float = 0.0
    weighted_ranges: tuple[FloatArray, IntArray, IntArray] | None = None
    array: FloatArray | None = None

    @cached_property
    def _key(self) -> tuple[object, ...]:
        """A hashable value that identifies equal Gram matrices."""
        arrays = [
            *chain.from_iterable(self.pairs),
            *(self.weighted_ranges or ()),
            *([] if self.array is None else [self.array]),
        ]
        return (
            self.size,
            self.queries,
            self.identity_weight,
            len(self.pairs),
            self.weighted_ranges is None,
            *(array.tobytes() for array in arrays),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gram) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def is_matrix_only(self) -> bool:
        """Whether M is stored only as an array, without structure."""
        return (
            self.array is not None
            and not self.pairs
            and not self.identity_weight
            and self.weighted_ranges is None
        )

    @property
    def generators(self) -> Generators:
        """The pairs (a, b) if they describe M completely; otherwise ()."""
        if self.identity_weight == 0 and self.weighted_ranges is None and self.array is None:
            return self.pairs
        return ()

    @cached_property
    def is_symmetric_under_reversal(self) -> bool:
        """Whether M is known to be symmetric under reversal of the cells."""
        symmetric = all(
            np.allclose(a[::-1] * b[0], b * a[-1], rtol=1e-12, atol=0) for a, b in self.pairs
        )
        symmetric = symmetric and (
            self.weighted_ranges is None or not (self._edges != self._edges[::-1, ::-1]).nnz
        )
        return bool(
            symmetric
            and (
                self.array is None
                or np.allclose(self.array, self.array[::-1, ::-1], rtol=1e-12, atol=0)
            )
        )

    @cached_property
    def _edges(self) -> Any:
        """The sparse matrix L of the listed ranges, shape (n + 1, n + 1).

        ``S^T L S`` is the part of M that comes from listed ranges. Row i of S sums the first i
        cells.
        """
        from scipy.sparse import csr_array

        amounts, low, high = self.weighted_ranges or (
            np.zeros(0),
            *np.zeros((2, 0), dtype=np.int64),
        )
        ends = (low, high + 1)
        corners = []
        for row in ends:
            for column in ends:
                signed_amounts = amounts if row is column else -amounts
                corners.append((row, column, signed_amounts))
        rows, columns, values = (np.concatenate(part) for part in zip(*corners, strict=True))
        return csr_array((values, (rows, columns)), shape=(self.size + 1,) * 2)

    def multiply_rows(self, matrix: FloatArray) -> FloatArray:
        """Return ``matrix @ M`` for a matrix of shape (p, n).

        Solvers multiply from this side, because rows are contiguous in memory.
        """
        parts = [_pair_products(a, b, matrix) for a, b in self.pairs]
        if self.identity_weight:
            parts.append(self.identity_weight * matrix)
        if self.weighted_ranges is not None:
            # Sums of the first 0, 1, ... numbers of every row.
            sums = np.zeros((len(matrix), self.size + 1))
            np.cumsum(matrix, axis=1, out=sums[:, 1:])
            parts.append(np.asarray(sums @ self._edges)[:, :0:-1].cumsum(axis=1)[:, ::-1])
        if self.array is not None:
            parts.append(matrix @ self.array)
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total

    def diagonal(self) -> FloatArray:
        """Return the diagonal of M, shape (n,): the weight of each cell."""
        total = np.full(self.size, self.identity_weight)
        for a, b in self.pairs:
            total += a * b
        if self.weighted_ranges is not None:
            total += _cover_sums(self.size, *self.weighted_ranges)
        if self.array is None:
            return total
        return total + self.array.diagonal()

    def dense(self) -> FloatArray:
        """Return M as an array of shape (n, n)."""
        if self.array is not None and self.is_matrix_only:
            return self.array
        return self.multiply_rows(np.eye(self.size))

    def block_products(self, vector: FloatArray, width: int) -> FloatArray:
        """Return the diagonal blocks of M with ``width`` cells, times a vector.

        The last block may be shorter. The computation takes O(n) if ``array`` is None.
        """
        width = min(width, self.size)
        blocks = -(-self.size // width)
        beyond = np.zeros(blocks * width - self.size)  # np.pad takes much longer for short arrays

        def split(values: FloatArray) -> FloatArray:
            """Return values in rows of ``width`` cells, padded with zeros."""
            return np.concatenate([values, beyond]).reshape(blocks, width)

        total = np.zeros((blocks, width))
        for a, b in self.pairs:
            before = np.cumsum(split(a * vector), axis=1)
            after = np.cumsum(split(b * vector), axis=1)
            before *= split(b)
            np.subtract(after[:, -1:].copy(), after, out=after)
            after *= split(a)
            total += before
            total += after
        product = total.reshape(-1)[: self.size] + self.identity_weight * vector
        if self.weighted_ranges is not None:
            amounts, low, high = self.weighted_ranges
            sums = np.append(0.0, np.cumsum(vector))
            first = low // width
            last = high // width
            spanning = (
                np.add.reduceat(vector, np.arange(0, self.size, width))
                * _cover_sums(self.size, amounts, first + 1, last - 1)[:blocks]
            )
            product += np.repeat(spanning, width)[: self.size]
            # A range overlaps its first block. It also overlaps its last block, if this is a
            # different block.
            more = last > first
            for each, start, stop in (
                (amounts, low, np.minimum(high, (first + 1) * width - 1)),
                (amounts[more], last[more] * width, high[more]),
            ):
                product += _cover_sums(
                    self.size, each * (sums[stop + 1] - sums[start]), start, stop
                )
        if self.array is not None:
            parts = [slice(start, start + width) for start in range(0, self.size, width)]
            product += np.concatenate([self.array[part, part] @ vector[part] for part in parts])
        return product

    def block_traces(self, widths: Sequence[int]) -> FloatArray:
        """Return ``tr(M P)`` for each block width, where P averages over blocks.

        P is the projection on vectors that are constant on blocks of that width.
        """
        traces = np.array([self.size * self.identity_weight / width for width in widths])
        if self.pairs:
            traces += self._pair_traces(widths)
        if self.weighted_ranges is not None:
            amounts, low, high = self.weighted_ranges
            # A range consists of whole blocks, a part of its first block, and a part of its last
            # block.
            for at, width in enumerate(widths):
                first = low // width
                last = high // width
                begin = np.minimum(high + 1, (first + 1) * width) - low
                end = high + 1 - last * width
                parts = np.where(
                    last > first,
                    (last - first - 1) * float(width) ** 2 + end.astype(float) ** 2,
                    0.0,
                )
                traces[at] += float((amounts * (begin.astype(float) ** 2 + parts)).sum()) / width
        if self.array is not None:
            array_part = Gram(self.size, self.queries, array=self.array)
            ones = np.ones(self.size)
            traces += [array_part.block_products(ones, width).sum() / width for width in widths]
        return traces

    def _pair_traces(self, widths: Sequence[int]) -> FloatArray:
        """Return the part of `block_traces` from the generator pairs.

        The sums over a block are computed from the sums over the smaller blocks inside it.
        """
        by_width = {1: (np.sum([a * b for a, b in self.pairs], axis=0), list(self.pairs))}
        for width in sorted({*widths} - {1}):
            part = max(smaller for smaller in by_width if width % smaller == 0)
            sums, ends = by_width[part]
            joined = min(width // part, len(sums))
            missing = -len(sums) % joined
            runs = [
                np.pad(values, (0, missing)).reshape(-1, joined).T
                for values in (sums, *chain.from_iterable(ends))
            ]
            whole_sums = runs[0].sum(axis=0)
            for rising, falling_run in zip(runs[1::2], runs[2::2], strict=True):
                before = np.zeros(len(whole_sums))
                for index in range(1, joined):
                    before += rising[index - 1]
                    whole_sums += 2 * before * falling_run[index]
            totals = [run.sum(axis=0) for run in runs[1:]]
            by_width[width] = whole_sums, list(zip(totals[::2], totals[1::2], strict=True))
        return np.array([by_width[width][0].sum() / width for width in widths])

    def coarsen(self, factor: int) -> "Gram":
        """Return an approximate Gram matrix on groups of ``factor`` cells.

        The count of a group is assumed to be divided evenly among its cells.
        """
        starts = np.arange(0, self.size, factor)
        array = None
        ends = np.minimum(starts + factor, self.size) - 1
        count = len(starts)
        if self.array is not None:
            array = (
                np.add.reduceat(np.add.reduceat(self.array, starts, axis=0), starts, axis=1)
                / factor**2
            )
        if self.weighted_ranges is not None:
            amounts, first, last = self.weighted_ranges
            if array is None:
                array = np.zeros((count, count))
            for part in range(0, len(first), step := max(1, _AT_ONCE // count)):
                low = first[part : part + step, None]
                high = last[part : part + step, None]
                inside = (
                    np.maximum(0.0, np.minimum(high, ends) + 1 - np.maximum(low, starts)) / factor
                )
                array += (inside.T * amounts[part : part + step]) @ inside
        # Entries for queries that contain both groups completely.
        pairs = tuple((a[ends], b[starts]) for a, b in self.pairs)
        return Gram(count, self.queries, pairs, self.identity_weight / factor, None, array)


def dense_gram(array: FloatArray, queries: int) -> Gram:
    """Return the Gram matrix stored as ``array``, shape (n, n)."""
    return Gram(len(array), queries, array=np.ascontiguousarray(array, dtype=float))


def gram_of(operator: Operator) -> Gram:
    """Return the Gram matrix of an operator in its most compact form."""
    n = operator.size
    pair = gram_generators(operator)
    if operator == Identity(n):
        return Gram(n, n, identity_weight=1.0)
    if pair is not None:  # a list of all ranges of a long attribute would exceed the memory
        return Gram(n, operator.rows, (pair,))
    ends = interval_ends(operator)
    if ends is not None:
        low, high = ends
        for structured in (Identity(n), Total(n), Prefix(n), AllRanges(n)):
            if structured.rows == operator.rows:
                first, last = interval_ends(structured) or (low, high)
                if np.array_equal(np.sort(low * n + high), np.sort(first * n + last)):
                    return gram_of(structured)
        return Gram(n, operator.rows, weighted_ranges=(np.ones(len(low)), low, high))
    if n > MOST_DENSE:
        raise NotApplicable(
            f"queries without a known structure need a matrix of {n} x {n}; at most {MOST_DENSE} "
            "cells are allowed"
        )
    array = apply_gram(operator, np.eye(n))
    return dense_gram((array + array.T) / 2, operator.rows)


def sum_grams(weighted_grams: Sequence[tuple[float, Gram]]) -> Gram:
    """Return the weighted sum of Gram matrices.

    Each weight is the squared factor by which the queries are multiplied.
    """
    ranges = [
        (weight * part.weighted_ranges[0], *part.weighted_ranges[1:])
        for weight, part in weighted_grams
        if part.weighted_ranges is not None
    ]
    arrays = [weight * part.array for weight, part in weighted_grams if part.array is not None]
    return Gram(
        weighted_grams[0][1].size,
        sum(part.queries for _, part in weighted_grams),
        tuple((weight * a, b) for weight, part in weighted_grams for a, b in part.pairs),
        math.fsum(weight * part.identity_weight for weight, part in weighted_grams),
        (
            np.concatenate([amounts for amounts, _, _ in ranges]),
            *np.concatenate([ends for _, *ends in ranges], axis=1),
        )
        if ranges
        else None,
        np.sum(arrays, axis=0) if arrays else None,
    )


def order_cells(gram: Gram) -> tuple[Gram, IntArray]:
    """Return a Gram matrix with similar cells together, and the cells' order.

    The result also has the order of the cells. If M has a compact form in that order, the result is
    stored in this form.
    """
    order = seriate_cells(gram)
    ordered = gram.dense()[np.ix_(order, order)]
    for turned, cells in ((ordered, order), (ordered[::-1, ::-1], order[::-1])):
        if turned[0, -1] > 0:
            rising = turned[:, -1] / turned[0, -1]
            falling_sums = turned[0]
            if np.allclose(
                np.triu(np.outer(rising, falling_sums)), np.triu(turned), rtol=1e-12, atol=0
            ):
                return Gram(gram.size, gram.queries, ((rising, falling_sums),)), cells
    return dense_gram(ordered, gram.queries), order


def merge_equal_cells(gram: Gram) -> tuple[Gram, IntArray]:
    """Return the Gram matrix of merged equal cells, and the group of each cell.

    The result also has the Gram matrix of the merged cells, as its first part.
    """
    if is_exchangeable(gram):
        return dense_gram(gram.diagonal()[:1, None], gram.queries), np.zeros(
            gram.size, dtype=np.int64
        )
    matrix = gram.dense()
    _, first, group = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    representatives = first[order]
    return dense_gram(matrix[np.ix_(representatives, representatives)], gram.queries), np.argsort(
        order
    )[group.reshape(-1)]


def is_exchangeable(gram: Gram) -> bool:
    """Return whether no query distinguishes any two cells.

    The result is True if all entries of M are equal.
    """
    diagonal = gram.diagonal()
    first = np.eye(1, gram.size)
    return bool(
        (diagonal == diagonal[0]).all() and (gram.multiply_rows(first)[0] == diagonal[0]).all()
    )


def seriate_cells(gram: Gram) -> IntArray:
    """Return an order of the cells that puts cells in similar queries together."""
    # The distance of two cells is ``M_ii + M_jj - 2 M_ij``. Two Fiedler vectors give two orders.
    # The vector of M itself suits ranges of one width. The vector of the closeness suits prefix
    # sums, whose cells are requested with different frequencies. The order with the shorter path
    # from cell to cell undoes any permutation of a workload of ranges. Such a workload is then
    # planned as well as a workload of listed ranges. Source: Atkins, Boman, Hendrickson 1998
    # (seriation of Robinson matrices).
    from scipy.linalg import eigh

    if gram.size < 3:
        return np.arange(gram.size)
    diagonal = gram.diagonal()
    matrix = gram.dense()
    distances = diagonal[:, None] + diagonal - 2 * matrix
    best = np.arange(gram.size)
    shortest = math.inf
    for close in (matrix, distances.max() - distances):
        _, vectors = eigh(np.diag(close.sum(axis=1)) - close, subset_by_index=[0, 1])
        # If the workload falls into independent parts, the eigenvalue of the constant vector also
        # has other eigenvectors.
        if np.ptp(vectors[:, 1]) > np.ptp(vectors[:, 0]):
            fiedler = vectors[:, 1]
        else:
            fiedler = vectors[:, 0]
        order = np.argsort(fiedler if fiedler[0] <= fiedler[-1] else -fiedler, kind="stable")
        length = float(distances[order[1:], order[:-1]].sum())
        if length < shortest * (1 - 1e-9):
            best = order
            shortest = length
    return best


class FittedFamily(NamedTuple):
    """An integer strategy along one attribute, fitted to a workload.

    Attributes:
        operator: the integer queries to measure.
        row_weights: the integer weight of each query; None if all are 1.
        error_lower_bound: a lower bound on the total squared error of every strategy of norm 1, at
            unit noise; 0 if no bound is computed.
    """

    operator: Operator
    row_weights: IntArray | None = None
    error_lower_bound: float = 0.0

    def factor(self, attribute: str) -> Factor:
        """Return the strategy as a factor of a block, on a named attribute."""
        return Factor((attribute,), self.operator, self.row_weights)


FitFamily = Callable[[Gram, int, int], FittedFamily]
"""A family: a function that returns a fitted strategy.

Its arguments are a Gram matrix, the norm of the noise (1 for Laplace, 2 for Gaussian) and the
number of bits of rounded coefficients.
"""


def memoize_fit(fit: Fitting) -> Fitting:
    """Return a fit function that caches results for attributes of few cells.

    Other budgets, strategies and data-dependent mechanisms need the same fits.
    """
    cached = lru_cache(maxsize=_MOST_CACHED_FITS)(fit)

    @wraps(fit)
    def fitted(gram: Gram, *args: Any, **options: Any) -> Any:
        """Return the cached fit, or compute it."""
        result = (cached if gram.size <= _MOST_KEPT else fit)(gram, *args, **options)
        if search_was_cut_short():
            # Do not cache: with more time, the search would find a better strategy.
            cached.cache_clear()
        return result

    return cast(Fitting, fitted)


def fit_family(
    fit: FitFamily, weighted_queries: Sequence[tuple[float, Operator]], norm: int, bits: int
) -> FittedFamily:
    """Fit the strategy of a family to weighted queries along one attribute.

    Before the fit, runs of cells that no query separates are merged, as far as the ends of ranges
    show these runs.
    """
    size = weighted_queries[0][1].size
    starts = np.unique(np.concatenate([first_cells(operator) for _, operator in weighted_queries]))
    grams = [
        (weight, gram_of(restrict_to_runs(operator, starts)))
        for weight, operator in weighted_queries
    ]
    # A common weight of all queries does not change the strategy.
    if len(grams) == 1:
        factor, gram = grams[0]
    else:
        factor = 1.0
        gram = sum_grams(grams)
    if gram.array is None:
        operator, row_weights, bound = fit(gram, norm, bits)
    else:
        operator, row_weights, bound = fit_on_merged_cells(fit, gram, norm, bits)
    return FittedFamily(
        operator if len(starts) == size else Coarse(operator, starts, size),
        row_weights,
        factor * bound,
    )


def fit_on_merged_cells(fit: FitFamily, gram: Gram, norm: int, bits: int) -> FittedFamily:
    """Fit the strategy of a family after merging equal cells."""
    # With Laplace noise, merging lowers the error of a family that measures every cell if there are
    # few queries. Other families take less time.
    if gram.size <= MOST_DENSE:
        small, group = merge_equal_cells(gram)
    else:
        small = gram
        group = None
    if group is None or small.size == gram.size:
        return fit(gram, norm, bits)
    narrow = fit(small, norm, bits)
    return FittedFamily(
        Dense(dense(narrow.operator)[:, group]), narrow.row_weights, narrow.error_lower_bound
    )


def identity_family(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return the strategy that measures every cell."""
    return FittedFamily(Identity(gram.size))
