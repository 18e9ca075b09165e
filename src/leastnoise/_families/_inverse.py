"""What a strategy along one attribute knows: the inverse of its Gram matrix, split into the total and the rest.

Notation: F the strategy, w its row weights, G = F^T diag(w^2) F, kappa = 1^T G^-1 1, mean = G^-1 1 / kappa (it sums to 1), and the
residual inverse R = G^-1 - kappa mean mean^T, for which R 1 = 0. For the identity, mean = 1/n and R = I - J/n, the residual basis of
ResidualPlanner; for any other strategy this is its generalisation: G and 11^T are diagonal in one basis, so least squares over marginals
of any such product strategies is.

Every family has its inverse in its own file, registered with `structured` for its operator; here are cells, any matrix, and runs of cells.
The largest variance of all intervals needs no list of them: an interval is the difference of two prefix sums, so that with C the covariance
of the n + 1 prefix sums (the empty one too) its variance is C_ii + C_jj - 2 C_ij.

Source: ResidualPlanner (arXiv 2305.08175) for the identity; the general case is proved in docs/mathematics.md.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache, singledispatch

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._queries import (
    MOST_DENSE,
    RowSpace,
    apply_gram,
    gram_diagonal,
    interval_ends,
    inverted,
    on_runs,
    row_space,
    row_squares,
    triangle,
    weighted_gram,
)
from leastnoise._linop import AllRanges, Coarse, Identity, Operator, Prefix, Total, dense
from leastnoise._measurements import Factor

MOST_LISTED = 2**22
"""The most answers whose variances are listed to find the largest."""
_NUMBERS = 2**22  # at a time


class Undetermined(InputError):
    """The queries along an attribute do not determine its cells."""


class Basis(ABC):
    """The inverse of the Gram matrix G of a strategy along one attribute. A family answers at least the abstract questions."""

    ranges_exact = False
    """Whether ``largest_range`` is no more than the largest."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of cells."""

    @abstractmethod
    def solve(self, v: FloatArray) -> FloatArray:
        """G^-1 v along the first axis."""

    @abstractmethod
    def largest_range(self) -> float:
        """The largest of ``variances`` of all ranges, or a bound above it."""

    @cached_property
    def _of_total(self) -> FloatArray:
        return self.solve(np.ones(self.size))

    @cached_property
    def kappa(self) -> float:
        """Variance of the total at unit noise."""
        return float(self._of_total.sum())

    @cached_property
    def mean(self) -> FloatArray:
        """The estimate of the cells if only the total is known to be 1, shape (size,)."""
        return np.asarray(self._of_total / self._of_total.sum())

    def residual(self, v: FloatArray) -> FloatArray:
        """R v along the first axis."""
        solved = self.solve(v)
        along = np.multiply.outer(self.mean, solved.sum(axis=0))
        return np.asarray(np.subtract(solved, along, out=along))  # of large tables one array less

    def variances(self, operator: Operator) -> FloatArray:
        """q G^-1 q for every row q of an operator, shape (rows,)."""
        ends = interval_ends(operator)
        if ends is not None:
            return self.interval_variances(*ends)
        rows = dense(operator).astype(float)
        return np.asarray(np.einsum("ij,ji->i", rows, self.solve(rows.T)))

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """Variances of the estimated sums over the cells low..high."""
        return interval_variances(self.solve(np.eye(self.size)), low, high)

    def split_sums(self, operator: Operator) -> tuple[float, float]:
        """The sums over all rows q of an operator of (q mean)^2 and of q R q, without listing the rows."""
        along = float(self.mean @ apply_gram(operator, self.mean))
        return along, max(0.0, self.total_variance(operator) - self.kappa * along)

    def total_variance(self, operator: Operator) -> float:
        """The sum of ``variances``."""
        return float(self.variances(operator).sum())

    def largest_variance(self, operator: Operator) -> float:
        """The largest of ``variances``, or a bound above it, without listing all ranges."""
        return self.largest_range() if operator == AllRanges(self.size) else float(self.variances(operator).max())

    def largest_unlisted(self, operator: Operator) -> float | None:
        """The largest of ``variances`` where that is known without listing them, else None."""
        return self.largest_range() if self.ranges_exact and operator == AllRanges(self.size) else None


class Solved(Basis):
    """The inverse of a family that solves in less than a product with a matrix."""

    @property
    @abstractmethod
    def prefix_variances(self) -> FloatArray:
        """Variance of the estimated sums of the first 1, 2, ..., n cells, shape (size,), not to be written to."""

    @abstractmethod
    def bound_of_ranges(self) -> float:
        """Above the variances of all ranges."""

    def variances(self, operator: Operator) -> FloatArray:
        return self.prefix_variances if operator == Prefix(self.size) else super().variances(operator)

    def largest_range(self) -> float:
        every = AllRanges(self.size)
        return float(self.variances(every).max()) if every.rows <= MOST_LISTED else self.bound_of_ranges()

    def total_variance(self, operator: Operator) -> float:
        if operator != AllRanges(self.size):
            return float(self.variances(operator).sum())
        # Ranges are the differences of all pairs of the n + 1 prefix sums S: (n + 1) sum Var(S_i) - Var(sum S_i).
        asked = np.arange(self.size, 0.0, -1)
        return float((self.size + 1) * self.prefix_variances.sum() - asked @ self.solve(asked))


def interval_variances(covariance: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    """Variances of the sums over the cells low..high, from the covariance of the cells: those of differences of two prefix sums."""
    sums = np.zeros((len(covariance) + 1,) * 2)
    sums[1:, 1:] = covariance.cumsum(axis=0).cumsum(axis=1)
    return np.asarray(sums[high + 1, high + 1] - 2 * sums[low, high + 1] + sums[low, low])


@dataclass(frozen=True)
class IdentityBasis(Basis):
    """Every cell is measured by itself, with equal noise."""

    cells: int

    ranges_exact = True

    @property
    def size(self) -> int:
        return self.cells

    def solve(self, v: FloatArray) -> FloatArray:
        return v

    def variances(self, operator: Operator) -> FloatArray:
        return row_squares(operator)

    def total_variance(self, operator: Operator) -> float:
        return float(gram_diagonal(operator).sum())

    def largest_range(self) -> float:
        return float(self.cells)


@dataclass(frozen=True)
class DenseBasis(Basis):
    """Any strategy that determines the total, by the inverse of its Gram matrix."""

    inverse: FloatArray
    space: RowSpace | None = None

    @property
    def size(self) -> int:
        return len(self.inverse)

    def solve(self, v: FloatArray) -> FloatArray:
        return np.asarray((self.inverse @ v.reshape(self.size, -1)).reshape(v.shape))

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        return interval_variances(self.inverse, low, high)

    def variances(self, operator: Operator) -> FloatArray:
        self._refuse_undetermined(operator)
        return super().variances(operator)

    def total_variance(self, operator: Operator) -> float:
        self._refuse_undetermined(operator)
        return float(np.trace(apply_gram(operator, self.inverse)))

    def largest_variance(self, operator: Operator) -> float:
        self._refuse_undetermined(operator)
        return super().largest_variance(operator)

    def largest_range(self) -> float:
        return largest_between(self.inverse)

    def _refuse_undetermined(self, operator: Operator) -> None:
        if self.space is not None and not self.space.holds(operator):
            raise Undetermined("The queries measured along an attribute do not determine what is asked along it.")


@dataclass(frozen=True, eq=False)
class CoarseBasis(Basis):
    """A strategy on the sums of runs of cells: what is known of a run is spread evenly over its cells, the estimate of least norm."""

    runs: Basis
    coarse: Coarse

    @property
    def size(self) -> int:
        return self.coarse.size

    def solve(self, v: FloatArray) -> FloatArray:
        lengths = self.coarse.lengths
        column = lengths.reshape(-1, *([1] * (v.ndim - 1)))
        return np.repeat(self.runs.solve(np.add.reduceat(v, self.coarse.starts, axis=0) / column) / column, lengths, axis=0)

    def variances(self, operator: Operator) -> FloatArray:
        return self.runs.variances(self._on_runs(operator))

    def total_variance(self, operator: Operator) -> float:
        return self.runs.total_variance(self._on_runs(operator))

    def largest_variance(self, operator: Operator) -> float:
        return self.runs.largest_variance(self._on_runs(operator))

    def largest_range(self) -> float:
        """Of the ranges that the runs make."""
        return self.runs.largest_range()

    def _on_runs(self, operator: Operator) -> Operator:
        space = row_space(Coarse(Identity(len(self.coarse.starts)), self.coarse.starts, self.size))
        if space is None or not space.holds(operator):
            raise Undetermined("The queries measured along an attribute do not determine what is asked along it.")
        return on_runs(operator, self.coarse.starts)


@singledispatch
def structured(operator: Operator, factor: Factor) -> Basis | None:
    """The basis of a factor whose operator has a structure to use; None where it follows from the matrix alone."""
    return None


@structured.register
def _(operator: Identity, factor: Factor) -> Basis | None:
    return IdentityBasis(operator.size) if factor.row_weights is None else None


@structured.register
def _(operator: Coarse, factor: Factor) -> Basis:
    return CoarseBasis(basis(Factor(factor.attributes, operator.operator, factor.row_weights)), operator)


@lru_cache(maxsize=8)
def basis(factor: Factor) -> Basis:
    """The basis of a factor on one attribute."""
    operator = factor.operator
    known = structured(operator, factor)
    if known is not None:
        return known
    if operator.size > MOST_DENSE:
        raise InputError(
            f"This strategy needs a dense matrix of {operator.size} x {operator.size}; at most {MOST_DENSE} cells are allowed. "
            "Choose a hierarchy or the identity along this attribute."
        )
    shape = triangle(operator) if factor.even else None
    if shape is not None and shape.pivot > 1e-7:
        from scipy.linalg import solve_triangular

        inverse = solve_triangular(dense(operator).astype(float), np.eye(operator.size), lower=shape.lower)
        return DenseBasis(inverse @ inverse.T)
    gram = weighted_gram(factor)
    try:
        lower = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        lower = np.zeros((1, 1))
    if not np.min(np.diag(lower)) > 1e-7 * np.max(np.diag(lower)):
        return _within(factor, gram)
    inverse = np.linalg.inv(lower)
    return DenseBasis(inverse.T @ inverse)


def _within(factor: Factor, gram: FloatArray) -> DenseBasis:
    """The basis of queries that do not determine every cell; what follows needs the total, with it all holds within their row space."""
    space = row_space(factor.operator)
    if space is None or space.everything or not space.holds(Total(space.size)):
        raise Undetermined(f"The queries measured on {' x '.join(factor.attributes)} do not determine its cells. Add the identity to them.")
    inverse = inverted(gram, space)
    if inverse is None:
        raise Undetermined(f"The noise of the queries measured on {' x '.join(factor.attributes)} is too unequal. Choose another strategy.")
    return DenseBasis(inverse, space)


def largest_between(covariance: FloatArray) -> float:
    """The largest variance of an interval, exactly, from the covariance of the cells."""
    sums: FloatArray = np.zeros((len(covariance) + 1,) * 2)
    np.cumsum(covariance, axis=0, out=sums[1:, 1:])
    np.cumsum(sums[1:, 1:], axis=1, out=sums[1:, 1:])
    diagonal: FloatArray = np.diag(sums).copy()
    np.multiply(sums, -2, out=sums)
    np.add(sums, diagonal, out=sums)
    np.add(sums, diagonal[:, None], out=sums)
    return float(sums.max())


def largest_apart(diagonal: FloatArray, lifted: FloatArray) -> float:
    """The same for a covariance ``diag(diagonal) - lifted^T lifted``, some rows at a time."""
    cells = np.concatenate([[0.0], np.cumsum(diagonal)])
    points = np.concatenate([np.zeros((1, len(lifted))), np.cumsum(lifted.T, axis=0)])
    norms = (points**2).sum(axis=1)
    # cells_j - cells_i - |p_j - p_i|^2 for i < j; for i > j it is below 0.
    late, early = cells - norms, -cells - norms
    step = max(1, _NUMBERS // len(points))
    best = 0.0
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        apart = 2 * (points[part] @ points.T)
        apart += early[part, None]
        apart += late
        best = max(best, float(apart.max()))
    return best
