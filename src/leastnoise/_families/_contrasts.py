"""Gaussian strategies along one attribute that exclude its total.

This file finds the best rows for a tilt, and good tilts. A separate block measures the total.

Let F be n - 1 rows over n cells that determine every query except the total. F and a vector m
satisfy F m = 0 and 1^T m = 1. The vector m is the *tilt*. The variance of a query q has two parts:
(q m)^2 from the noise of the total, and q R q from the noise of the rows. R is the inverse of F^T F
on the sum-zero vectors. For a fixed tilt, the best rows solve a convex problem, by the dual
iteration of the search for the Gaussian optimum. The best tilt depends on the cost of measuring the
total. The *pull* is a number that states this cost. A search finds the best pull
(docs/mathematics.md, section 5). A pull of 0 gives the split of ResidualPlanner+. The tilt m = 1/n
results from pull 0, and contrasts with equal noise have this tilt.

Source: ResidualPlanner+ (arXiv 2305.08175v4) for the split; the tilt and the convex problem are
    from this project.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastnoise._families._inverse import DenseInverse, GramInverse, UndeterminedQuery
from leastnoise._families._search import dual_ascent
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Contrasts, Dense, Operator, dense
from leastnoise._trusted.measurements import Factor

# A small weight on directions that no query uses keeps the rows linearly independent.
_RIDGE_WEIGHT = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContrastRows:
    """Queries along an attribute that determine everything except the total."""

    rows: FloatArray  # F, shape (n - 1, n), largest column norm 1
    lower_bound: float  # no rows of that norm with this tilt have a smaller tr(M R)
    dual_weights: FloatArray  # dual weights, shape (n,), sum 1


def best_tilt(
    gram: FloatArray, pull: float, dual_weights: FloatArray | None = None, *, gap: float = 1e-3
) -> tuple[FloatArray, FloatArray]:
    """Return the best tilt for a given cost of the total, and the dual weights.

    The tilt is the direction that the contrast rows do not measure.

    Args:
        gram: the Gram matrix M of the queries, shape (n, n).
        pull: the relative cost of the total, added to every entry of M.
        dual_weights: dual weights from which the search starts, shape (n,).
        gap: the search ends at this relative distance from the optimum.

    Returns:
        Two arrays of shape (n,) and sum 1: the tilt, and the dual weights.
    """
    n = len(gram)
    optimum = _optimal_rows(np.eye(n), gram + pull, dual_weights, gap, 200)
    # This is X^-1 1 with X = F^T F.
    mean = np.linalg.solve(optimum.rows, np.linalg.solve(optimum.rows.T, np.ones(n)))
    return mean / mean.sum(), optimum.dual_weights


def fit_contrast_rows(
    gram: FloatArray,
    tilt: FloatArray,
    dual_weights: FloatArray | None = None,
    *,
    gap: float = 1e-3,
    max_steps: int = 500,
) -> ContrastRows:
    """Return the contrast rows of least error for a tilt."""
    columns = np.eye(len(gram))[:-1] - tilt[:-1, None]
    return _optimal_rows(columns, _gram_on_sum_zero_vectors(gram), dual_weights, gap, max_steps)


def _gram_on_sum_zero_vectors(gram: FloatArray) -> FloatArray:
    """Return B^T M B for the basis e_j - e_n of the sum-zero vectors."""
    return np.asarray(gram[:-1, :-1] - gram[:-1, -1:] - gram[-1:, :-1] + gram[-1, -1])


def contrast_variances(rows: FloatArray, grams: Iterable[FloatArray]) -> list[float]:
    """Return the summed query variance tr(M R) for each Gram matrix M.

    R is the inverse of the Gram matrix of the rows on sum-zero vectors. The rows have unit noise,
    and the total is assumed to be known.
    """
    inverse = np.linalg.inv(rows[:, :-1] - rows[:, -1:])
    covariance = inverse @ inverse.T
    return [float(np.vdot(_gram_on_sum_zero_vectors(gram), covariance)) for gram in grams]


def _optimal_rows(
    columns: FloatArray,
    gram: FloatArray,
    dual_weights: FloatArray | None,
    gap: float,
    max_steps: int,
) -> ContrastRows:
    """Return the rows of least summed variance with column norms up to 1.

    The matrix Y minimises tr(N Y^-1) subject to c_j^T Y c_j <= 1. Here N is ``gram``, and the c_j
    are the columns C. The rows are Y^(1/2) C, up to a rotation.
    """
    from scipy.linalg import eigh

    count = columns.shape[1]
    lower = np.linalg.cholesky(gram + _RIDGE_WEIGHT * np.trace(gram) * np.eye(len(gram)))
    if dual_weights is None:
        dual_weights = np.full(count, 1 / count)
    turned = lower.T @ columns

    def step(weights: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """Compute column costs, the dual value and rows from dual weights."""
        squares, vectors = eigh((turned * weights) @ turned.T, driver="evd")
        roots = np.sqrt(np.maximum(squares, squares[-1] * 1e-30))
        total = float(roots.sum())
        rows = (vectors.T @ turned) / np.sqrt(roots * total)[:, None]
        return (rows * rows).sum(axis=0), total, rows

    worst, dual_weights, total, rows = dual_ascent(step, dual_weights, gap, max_steps)
    return ContrastRows(
        rows=rows / math.sqrt(worst), lower_bound=total**2, dual_weights=dual_weights
    )


def balanced_rounding(rows: FloatArray, largest_entry: int) -> IntArray:
    """Return rows rounded to integers with nearly equal column norms."""
    # If all entries were rounded to nearest, the longest column would determine the noise of all
    # columns. So some entries of each column are rounded in the other direction, starting with the
    # entries closest to the middle between two integers. With entries up to 255 this costs less
    # than a thousandth of the error.
    fine = rows * (largest_entry / float(np.abs(rows).max()))
    rounded = np.rint(fine)
    other = np.where(fine >= rounded, rounded + 1, rounded - 1)
    change = other**2 - rounded**2
    order = np.argsort(np.abs(other - fine), axis=0, kind="stable")
    excess = (rounded**2).sum(axis=0) - (fine**2).sum(axis=0)
    for column in range(rows.shape[1]):
        remaining = float(excess[column])
        for row in order[:, column].tolist():
            moved = remaining + float(change[row, column])
            if abs(moved) < abs(remaining) and abs(other[row, column]) <= largest_entry:
                rounded[row, column] = other[row, column]
                remaining = moved
    return rounded.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class GroupContrasts(Dense):
    """Queries that contrast the count of each group with the total.

    The rows G of these queries are linearly dependent, and G^T G = g^2 P^T (I - J / g) P for the
    partition P. So measuring these rows with independent noise of variance g^2 s is equivalent to
    measuring contrasts of norm 1 between the groups with noise of variance s. No plan measures
    these rows.

    >>> group_contrasts(Dense([[1, 1, 0], [0, 0, 1]])).matrix.tolist()
    [[1, 1, -1], [-1, -1, 1]]
    """

    partition: Operator

    @property
    def of_groups(self) -> Dense:
        """Return the queries as a matrix on the counts of the groups."""
        return Dense(self.rows * np.eye(self.rows, dtype=np.int64) - 1)


def group_contrasts(partition: Operator) -> GroupContrasts:
    """Return the contrasts between the groups of a partition."""
    return GroupContrasts(partition.rows * dense(partition) - 1, partition)


def excludes_total(operator: Operator) -> bool:
    """Return whether a strategy consists of contrasts that exclude the total.

    The strategy consists of contrasts of cells or groups, or is a matrix with one row fewer than
    cells.
    """
    if type(operator) is GroupContrasts:
        return True
    return type(operator) in (Contrasts, Dense) and operator.rows == operator.size - 1


def contrast_strength(factor: Factor) -> float | None:
    """Return c if the Gram matrix of a factor is c (I - J / n), else None.

    For `GroupContrasts`, the matrix is over the groups instead of the cells.
    """
    # For differences between cells, such a factor is equivalent to c measurements of every cell.
    # Therefore, it can be combined with blocks that measure all cells. For contrasts with noise in
    # proportion to their norms, c is 1. For the difference of two cells c is 2. For the
    # non-constant sign patterns of m bits on their 2^m cells, c is 2^m.
    operator = factor.operator
    if type(operator) is Contrasts:
        return 1.0
    if type(operator) is GroupContrasts:
        return float(operator.rows) ** 2
    if not (excludes_total(operator) and factor.even):
        return None
    rows = dense(operator).astype(float)
    n = operator.size
    gram = rows.T @ rows
    off = -gram[0, -1]
    if off > 0 and not rows.sum(axis=1).any() and np.array_equal(gram, off * (n * np.eye(n) - 1)):
        return float(off * n)
    return None


@lru_cache(maxsize=8)
def invert_contrast_gram(factor: Factor) -> GramInverse:
    """Return the inverse Gram matrix of a strategy that excludes the total.

    The total is added with an arbitrary weight, which affects only the variance kappa of the total.
    """
    rows = dense(factor.operator).astype(float) * factor.scaling[:, None]
    unseen = np.linalg.svd(rows)[2][-1]
    total = float(unseen.sum())
    # The coordinates of a sum-zero vector are its first n - 1 cells; the last cell makes the sum
    # zero.
    square = rows[:, :-1] - rows[:, -1:]
    if abs(total) > 1e-7 and np.linalg.cond(square) < 1e7:
        inverse = np.linalg.inv(square)
        lifted = np.vstack([inverse, -inverse.sum(axis=0)])
        mean = unseen / total
        residual = lifted @ lifted.T
        kappa = float(np.trace(residual)) / float(mean @ mean)
        return DenseInverse(residual + kappa * np.outer(mean, mean))
    raise UndeterminedQuery(
        f"The queries measured on {' x '.join(factor.attributes)} do not determine its cells. Add "
        "the identity to them."
    )
