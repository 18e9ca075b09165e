"""Inverse of a strategy's Gram matrix, split into total and residual.

The strategy measures queries along one attribute.

Notation: F is the strategy, w are its row weights, and G = F^T diag(w^2) F is its Gram matrix. Let
    kappa = 1^T G^-1 1, mean = G^-1 1 / kappa (it sums to 1), and R = G^-1 - kappa mean mean^T, the
    residual inverse, for which R 1 = 0. For the identity, mean = 1/n and R = I - J/n, which is the
    residual basis of ResidualPlanner. Every other strategy has the same property as the identity: G
    and 11^T are diagonal in one basis. So least squares over marginals is also diagonal for any
    product of such strategies.

Every family registers its inverse with `structured_inverse` for its operator, in the file of the
family. This file has the inverses for cells with a few rows, for any matrix and for runs of cells.

The largest variance of all intervals is found without a list of intervals. An interval is the
difference of two prefix sums. So the variance of an interval is C_ii + C_jj - 2 C_ij, where C is
the covariance of the n + 1 prefix sums (including the empty sum).

Source: ResidualPlanner (arXiv 2305.08175) for the identity; the general case is proved in
    docs/mathematics.md.
"""

from abc import ABC, abstractmethod
from functools import cached_property, lru_cache, singledispatch

import numpy as np

from leastnoise._families._queries import (
    MOST_DENSE,
    RowSpace,
    apply_gram,
    full_space,
    gram_diagonal,
    interval_ends,
    invert_within,
    is_zero_one,
    restrict_to_runs,
    row_space,
    span_of_runs,
    triangular_form,
    weighted_gram,
)
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import (
    AllRanges,
    Coarse,
    DiagonalAndRows,
    Identity,
    Operator,
    Prefix,
    Total,
    apply,
    dense,
)
from leastnoise._trusted.measurements import Factor

MOST_LISTED = 2**22
"""The most answers whose variances are listed to find the largest variance."""
ENTRIES_IN_MEMORY = 2**22  # maximum number of array entries in memory at a time
_MOST_DIFFERENCES = 2**24  # array entries of the differences of ranges in memory at a time
# A triangular matrix is inverted by substitution if its smallest diagonal entry is at least this
# part of its largest entry. Otherwise rounding errors could be visible, and the spectrum decides
# which queries are determined.
_LEAST_DIAGONAL_RATIO = 1e-7

_UNDETERMINED = (
    "The measured queries along an attribute do not determine the workload's queries along it."
)


class UndeterminedQuery(InputError):
    """Raised if measured queries along an attribute do not determine a query."""


class GramInverse(ABC):
    """The inverse of the Gram matrix G of a strategy along one attribute.

    All variances are at unit noise.
    """

    size: int  # number of cells
    ranges_exact = False  # whether ``bound_of_ranges`` equals the largest variance

    @abstractmethod
    def solve(self, v: FloatArray) -> FloatArray:
        """Return G^-1 v along the first axis."""

    def covariance(self) -> FloatArray:
        """Return G^-1 as an array, shape (size, size)."""
        return self.solve(np.eye(self.size))

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the variance of the sum of cells low..high, for each range."""
        sums = np.zeros((self.size + 1,) * 2)
        sums[1:, 1:] = self.covariance().cumsum(axis=0).cumsum(axis=1)
        return np.asarray(sums[high + 1, high + 1] - 2 * sums[low, high + 1] + sums[low, low])

    def bound_of_ranges(self) -> float:
        """Return the largest variance of all ranges, or an upper bound.

        The computation does not list the ranges.
        """
        return largest_range_variance(self.covariance())

    def determined(self, operator: Operator) -> "tuple[GramInverse, Operator]":
        """Return the inverse with an equivalent operator; raise if undetermined.

        Raises:
            UndeterminedQuery: the measured queries do not determine the operator's queries.
        """
        return self, operator

    @cached_property
    def _of_total(self) -> FloatArray:
        """G^-1 times the vector of ones."""
        return self.solve(np.ones(self.size))

    @cached_property
    def kappa(self) -> float:
        """The variance of the total at unit noise."""
        return float(self._of_total.sum())

    @cached_property
    def mean(self) -> FloatArray:
        """The estimated cells if only a total of 1 is measured, shape (size,)."""
        return np.asarray(self._of_total / self._of_total.sum())

    @cached_property
    def prefix_variances(self) -> FloatArray:
        """The variances of the sums of the first 1, 2, ..., n cells."""
        answer = self.interval_variances(np.zeros(self.size, dtype=np.int64), np.arange(self.size))
        answer.setflags(write=False)
        return answer

    def residual(self, v: FloatArray) -> FloatArray:
        """Return R v: G^-1 v, less the part that is explained by the total."""
        solved = self.solve(v)
        along = np.multiply.outer(self.mean, solved.sum(axis=0))
        # In place, to save memory for large tables.
        return np.asarray(np.subtract(solved, along, out=along))

    def variances(self, operator: Operator) -> FloatArray:
        """Return the variance q G^-1 q of each query q of an operator, (rows,)."""
        inverse, queries = self.determined(operator)
        if inverse is not self:
            return inverse.variances(queries)
        if operator == Prefix(self.size):
            return self.prefix_variances
        ends = interval_ends(operator)
        if ends is not None:
            return self.interval_variances(*ends)
        rows = dense(operator).astype(float)
        return np.asarray(np.einsum("ij,ji->i", rows, self.solve(rows.T)))

    def split_sums(self, operator: Operator) -> tuple[float, float]:
        """Return the sums of (q mean)^2 and of q R q over all queries q.

        The computation does not list the rows of the operator.
        """
        along = float(self.mean @ apply_gram(operator, self.mean))
        return along, max(0.0, self.total_variance(operator) - self.kappa * along)

    def total_variance(self, operator: Operator) -> float:
        """Return the total variance of all queries of an operator."""
        inverse, queries = self.determined(operator)
        if inverse is not self:
            return inverse.total_variance(queries)
        if operator == AllRanges(self.size):
            # The ranges are the differences of all pairs of the n + 1 prefix sums S: (n + 1) sum
            # Var(S_i) - Var(sum S_i).
            cells_to_end = np.arange(self.size, 0.0, -1)
            return float(
                (self.size + 1) * self.prefix_variances.sum()
                - cells_to_end @ self.solve(cells_to_end)
            )
        if operator.rows > operator.size and interval_ends(operator) is None:
            # Use the Gram matrix of the rows, which is smaller.
            return float(np.trace(self.solve(apply_gram(operator, np.eye(operator.size)))))
        return float(self.variances(operator).sum())

    def largest_variance(self, operator: Operator) -> float:
        """Return the largest variance of the queries of an operator.

        For too many ranges, the result is an upper bound.
        """
        inverse, queries = self.determined(operator)
        if inverse is not self:
            return inverse.largest_variance(queries)
        listed = operator != AllRanges(self.size) or (
            operator.rows <= MOST_LISTED and not self.ranges_exact
        )
        if listed:
            return float(self.variances(operator).max())
        return self.bound_of_ranges()

    def largest_closed_form(self, operator: Operator) -> float | None:
        """Return the largest variance in closed form, or None if there is none."""
        if self.ranges_exact and operator == AllRanges(self.size):
            return self.bound_of_ranges()
        return None


class CellsInverse(GramInverse):
    """The inverse for weighted cells and a few dense rows T (Woodbury).

    If T has no rows, only the cells are measured.
    """

    # G^-1 = D^-2 - Y^T C^-1 Y with Y = T D^-2 and C = I + T D^-2 T^T. The rows of ``lifted`` are
    # C^(-1/2) Y.

    ranges_exact = True

    def __init__(self, inverse_squares: FloatArray, lifted: FloatArray | None = None) -> None:
        self.size = len(inverse_squares)
        self.inverse_squares = inverse_squares
        self.lifted = np.zeros((0, self.size)) if lifted is None else lifted
        self._plain = not len(self.lifted) and bool((inverse_squares == 1).all())

    @classmethod
    def of_identity(cls, size: int) -> "CellsInverse":
        """Return the inverse for cells measured with equal noise."""
        return cls(np.broadcast_to(1.0, size))

    def solve(self, v: FloatArray) -> FloatArray:
        """Return the inverse Gram matrix times ``v``, along the first axis."""
        if self._plain:
            return v
        flat = v.reshape(self.size, -1)
        return np.asarray(
            (self.inverse_squares[:, None] * flat - self.lifted.T @ (self.lifted @ flat)).reshape(
                v.shape
            )
        )

    def variances(self, operator: Operator) -> FloatArray:
        """Return the variance of each query of an operator."""
        if interval_ends(operator) is not None:
            return super().variances(operator)
        squares = self.inverse_squares
        if is_zero_one(operator):
            cell_part = apply(operator, squares)
        else:
            cell_part = dense(operator).astype(float) ** 2 @ squares
        return np.asarray(cell_part - (apply(operator, self.lifted.T) ** 2).sum(axis=1))

    def total_variance(self, operator: Operator) -> float:
        """Return the sum of the variances without listing the queries."""
        return float(
            gram_diagonal(operator) @ self.inverse_squares
            - (self.lifted.T * apply_gram(operator, self.lifted.T)).sum()
        )

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the variance of the sum of cells low..high, for each range."""
        cells = np.append(0.0, np.cumsum(self.inverse_squares))
        lifted = np.concatenate([np.zeros((1, len(self.lifted))), np.cumsum(self.lifted.T, axis=0)])
        answer = cells[high + 1] - cells[low]
        step = max(1, _MOST_DIFFERENCES // max(1, len(self.lifted)))
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            answer[part] -= ((lifted[high[part] + 1] - lifted[low[part]]) ** 2).sum(axis=1)
        return answer

    def bound_of_ranges(self) -> float:
        """Return the exact largest variance of all ranges.

        Only a few rows of the covariance of prefix sums are computed at a time.
        """
        if not len(self.lifted):
            return float(self.inverse_squares.sum())
        cells = np.append(0.0, np.cumsum(self.inverse_squares))
        points = np.concatenate([np.zeros((1, len(self.lifted))), np.cumsum(self.lifted.T, axis=0)])
        norms = (points**2).sum(axis=1)
        # For i < j, the variance is cells_j - cells_i - |p_j - p_i|^2. For i > j, this is below 0.
        late = cells - norms
        early = -cells - norms
        step = max(1, ENTRIES_IN_MEMORY // len(points))
        parts = (slice(start, start + step) for start in range(0, len(points), step))
        return max(
            float((2 * (points[part] @ points.T) + early[part, None] + late).max())
            for part in parts
        )


class DenseInverse(GramInverse):
    """The inverse as a matrix, for any strategy that determines the total.

    The Gram matrix is inverted on its row space.
    """

    ranges_exact = True

    def __init__(self, inverse: FloatArray, space: RowSpace | None = None) -> None:
        self.size = len(inverse)
        self.inverse = inverse
        self.space = space

    def determined(self, operator: Operator) -> tuple[GramInverse, Operator]:
        """Return this inverse and the operator unchanged.

        Raises:
            UndeterminedQuery: the measured queries do not determine the operator's queries.
        """
        if self.space is not None and not self.space.contains(operator):
            raise UndeterminedQuery(_UNDETERMINED)
        return self, operator

    def solve(self, v: FloatArray) -> FloatArray:
        """Return the inverse Gram matrix times ``v``, along the first axis."""
        return np.asarray((self.inverse @ v.reshape(self.size, -1)).reshape(v.shape))

    def covariance(self) -> FloatArray:
        """Return the inverse Gram matrix, shape (cells, cells)."""
        return self.inverse


class CoarseInverse(GramInverse):
    """The pseudo-inverse for a strategy on sums of runs of cells.

    The estimate of a run is divided evenly among its cells, which is the least-norm solution.
    """

    def __init__(self, runs: GramInverse, coarse: Coarse) -> None:
        self.size = coarse.size
        self.runs = runs
        self.coarse = coarse

    def determined(self, operator: Operator) -> tuple[GramInverse, Operator]:
        """Return the inverse for the buckets, and the operator restricted to them.

        Raises:
            UndeterminedQuery: the buckets do not determine the operator.
        """
        if not span_of_runs(self.size, self.coarse.starts).contains(operator):
            raise UndeterminedQuery(_UNDETERMINED)
        return self.runs.determined(restrict_to_runs(operator, self.coarse.starts))

    def solve(self, v: FloatArray) -> FloatArray:
        """Return the pseudo-inverse Gram matrix times ``v``, along the first axis."""
        lengths = self.coarse.lengths
        column = lengths.reshape(-1, *([1] * (v.ndim - 1)))
        return np.repeat(
            self.runs.solve(np.add.reduceat(v, self.coarse.starts, axis=0) / column) / column,
            lengths,
            axis=0,
        )


@singledispatch
def structured_inverse(operator: Operator, factor: Factor) -> GramInverse | None:
    """Return an operator's inverse in structured form, or None without one.

    If the result is None, compute the inverse from the matrix.
    """
    return None


@structured_inverse.register
def _(operator: Identity, factor: Factor) -> GramInverse:
    """Return the inverse Gram matrix of weighted cells."""
    if factor.row_weights is None:
        return CellsInverse.of_identity(operator.size)
    return CellsInverse(1 / factor.weights.astype(float) ** 2)


@structured_inverse.register
def _(operator: DiagonalAndRows, factor: Factor) -> GramInverse:
    """Return the inverse Gram matrix of cells and further rows (Woodbury)."""
    weights = factor.weights.astype(float)
    inverse_squares = 1 / (operator.diagonal * weights[: operator.size]) ** 2
    below = operator.below * weights[operator.size :, None]
    from scipy.linalg import solve_triangular

    lower = np.linalg.cholesky(np.eye(len(below)) + (below * inverse_squares) @ below.T)
    lifted = solve_triangular(lower, below * inverse_squares, lower=True, check_finite=False)
    return CellsInverse(inverse_squares, lifted)


@structured_inverse.register
def _(operator: Coarse, factor: Factor) -> GramInverse:
    """Return the pseudo-inverse Gram matrix of a strategy on buckets."""
    return CoarseInverse(
        invert_gram(Factor(factor.attributes, operator.operator, factor.row_weights)), operator
    )


@lru_cache(maxsize=8)
def invert_gram(factor: Factor) -> GramInverse:
    """Return the inverse Gram matrix of a factor along one attribute.

    Raises:
        UndeterminedQuery: the queries of the factor do not determine the total, or their noise is
            too unequal.
    """
    operator = factor.operator
    by_structure = structured_inverse(operator, factor)
    if by_structure is not None:
        return by_structure
    if operator.size > MOST_DENSE:
        raise InputError(
            f"This strategy needs a dense matrix of {operator.size} x {operator.size}; at most "
            f"{MOST_DENSE} cells are allowed. Choose a hierarchy or the identity along this "
            "attribute."
        )
    if factor.even:
        shape = triangular_form(operator)
    else:
        shape = None
    if shape is not None and shape[1] > _LEAST_DIAGONAL_RATIO:
        from scipy.linalg import solve_triangular

        root = solve_triangular(
            dense(operator).astype(float), np.eye(operator.size), lower=shape[0]
        )
        return DenseInverse(root @ root.T)
    gram = weighted_gram(factor)
    inverse = invert_within(gram, full_space(operator.size))
    if inverse is not None:
        return DenseInverse(inverse)
    # The queries do not determine every cell. If they determine the total, all formulas hold on
    # their row space.
    space = row_space(operator)
    attributes_text = " x ".join(factor.attributes)
    if space is None or space.is_full or not space.contains(Total(space.size)):
        raise UndeterminedQuery(
            f"The queries measured on {attributes_text} do not determine its cells. "
            "Add the identity to them."
        )
    inverse = invert_within(gram, space)
    if inverse is None:
        raise UndeterminedQuery(
            f"The noise of the queries measured on {attributes_text} is too unequal. "
            "Choose another strategy."
        )
    return DenseInverse(inverse, space)


def largest_range_variance(covariance: FloatArray) -> float:
    """Return the largest variance of all ranges of cells, from a covariance.

    ``covariance`` is the covariance of the cells, shape (size, size).
    """
    sums: FloatArray = np.zeros((len(covariance) + 1,) * 2)
    np.cumsum(covariance, axis=0, out=sums[1:, 1:])
    np.cumsum(sums[1:, 1:], axis=1, out=sums[1:, 1:])
    diagonal: FloatArray = np.diag(sums).copy()
    np.multiply(sums, -2, out=sums)
    np.add(sums, diagonal, out=sums)
    np.add(sums, diagonal[:, None], out=sums)
    return float(sums.max())
