"""Strategies given as matrices, on up to 4096 cells.

This file has the optimum for Gaussian noise, eigen-designs, strategies with equal profiles, and
rounding.

Notation: there are ``n`` cells and ``m`` queries. W (m x n) is the workload, with the Gram matrix M
= W^T W. A is a strategy, and ||A|| is its largest column norm (L1 or L2). The *unit RMSE* of A is
``sqrt(||A||^2 tr(M (A^T A)^-1) / m)``. This is the root mean square error per query, in counts, if
the noise of a strategy of sensitivity 1 has variance 1. Under pure DP multiply it by
sqrt(2)/epsilon, under a Gaussian budget by sigma.

Eigen-design: M has the eigenvalues g_i and the eigenvectors v_i, which are measured with weights
c_i. The error is ``sum g_i / c_i^2``. Column j costs ``sum_i c_i^q |v_ij|^q``, where q is 1 (pure
DP) or 2 (Gaussian). This is a convex problem in n variables. The dual of this problem has one
weight d_j for each cell j. Let ``s_i = sum_j d_j |v_ij|^q`` and ``t = sum g_i^(q/(q+2))
s_i^(2/(q+2))``. Then the best weights are ``c_i^q = (g_i / s_i)^(q/(q+2)) / t``. By Hoelder's
inequality, t^((q+2)/q) is below every error of this design.

Equal profiles: ``B = Q A`` with ``Q^T Q = I`` has the Gram matrix of A, and therefore the same
error. The largest column norm of B is minimised over Q, which may have more rows than A has. The
descent minimises a smooth upper bound, which is tightened after each descent. Every intermediate B
has exactly the error of A.

The Gaussian optimum: minimise tr(M X^-1) over X = A^T A with unit diagonal. The dual has one weight
d_j >= 0 for each cell j, and these weights sum to 1. Let D be diagonal with the weights d_j, ``K =
(D^1/2 M D^1/2)^1/2`` and ``t = tr K``. Then t^2 is below the error of every strategy of L2
sensitivity 1, so it is a certificate. The matrix ``X = D^-1/2 K D^-1/2 / t`` has error t^2 and
largest diagonal entry 1 + gap. Each step multiplies d_j by a power of X_jj. If X is scaled to a
unit diagonal, ``X_ij / sqrt(X_ii X_jj)``, its error exceeds t^2 only by an amount of second order
in X_jj - 1, because sum d_j X_jj = 1. Therefore, one or two iterations are enough if M is regular.
Three structures make an iteration fast. Suppose that M has entries ``a_i b_j`` for i <= j (prefix
sums, all ranges). Then the inverses of M and of ``D^1/2 M D^1/2`` are tridiagonal, so the
eigenvectors of ``D^1/2 M D^1/2`` cost O(n^2). If M is invariant under reversal of the cells, the
problem separates into two halves. If M has the rank r < n, a step needs only the eigenvectors of a
matrix with r rows.

Source: convex duality for the matrix mechanism's semidefinite programme (Li et al., PODS 2010),
    docs/mathematics.md; Li and Miklau, arXiv 1202.3807 (eigen-design; here with the dual iteration
    of the Gaussian optimum); Li, Hay, Rastogi, Miklau, McGregor, PODS 2010 (equivalent profiles).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from leastnoise._families._gram import FittedFamily, Gram, dense_gram, memoize_fit, order_cells
from leastnoise._families._queries import MOST_DENSE
from leastnoise._families._search import NotApplicable, dual_ascent
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Dense

# Maximum number of cells of an eigen-design, and of an eigen-design that is rotated.
_MOST_EIGEN = 1024
_MOST_TURNED = 16  # rotated to a smaller L1 norm
# For each step, two numbers: the sharpness of the smooth maximum over columns, and the width of the
# rounded kink of the absolute value. Both are relative to the norm.
_SHARPENING_STEPS = (
    (10.0, 0.1),
    (30.0, 0.03),
    (100.0, 0.01),
    (300.0, 3e-3),
    (1e3, 1e-3),
    (1e4, 1e-4),
    (1e5, 1e-5),
)
# Maximum number of steps of the dual ascent.
_EIGEN_STEPS = 1000
_EIGEN_GAP = 1e-4  # relative gap of the dual ascent
_COARSE_ABOVE = 96  # cells above which dual weights start from the weights of coarser cells
_EDGE_CELLS = 16  # the number of cells at each end whose weights are copied
# Eigenvalues of a tridiagonal inverse below this part of the largest are rounding errors.
_EIGENVALUE_ROUNDING = 1e-10
_MOST_STEPS = 500  # maximum number of steps of the dual iteration of the Gaussian optimum
_LOW_RANK = 0.9  # up to this rank, relative to the cells, a low rank makes a step cheaper
_SINGULAR_RATIO = 1e-8  # M counts as singular if K has an eigenvalue below this part of the largest
_MOST_QUICK_CELLS = 256  # up to this number of cells, a step takes almost no time
_RELATIVE_GAP = 3e-3  # relative gap of the squared error; filling columns recovers half of it
Spectrum = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def singular_value_bound(gram: Gram) -> float:
    """Return the singular value bound on the unit RMSE of all strategies.

    The bound is ``sqrt((sum of singular values)^2 / (n m))`` for L1 and for L2 sensitivity.
    """
    # Source: Li and Miklau, arXiv 1202.3399.
    values = np.linalg.eigvalsh(gram.dense())
    return float(np.sqrt(np.maximum(values, 0.0)).sum() / math.sqrt(gram.size * gram.queries))


def column_norm(matrix: FloatArray, norm: int) -> float:
    """Return the largest column norm of a strategy: its sensitivity.

    Use ``norm=1`` for the L1 norm and ``norm=2`` for the L2 norm.
    """
    if norm == 1:
        return float(np.abs(matrix).sum(axis=0).max())
    return math.sqrt(float(np.square(matrix, dtype=float).sum(axis=0).max()))


def fill_columns(matrix: FloatArray, norm: int) -> FloatArray:
    """Add rows with single cells until all columns have the same norm.

    The added rows reduce the error without additional privacy cost.
    """
    columns = (np.abs(matrix) ** norm).sum(axis=0)
    slack = (columns.max() - columns) ** (1 / norm)
    short = columns < columns.max() * (1 - 1e-9)
    if short.any():
        return np.vstack([matrix, np.diag(slack)[short]])
    return matrix


def to_dyadic(matrix: FloatArray, bits: int = 20) -> IntArray:
    """Return a strategy in multiples of 2^-bits, as an integer matrix.

    Rows that become zero are removed.
    """
    # Source: docs/mathematics.md. Entries can be rounded to nearest, because the norm is recomputed
    # from the rounded matrix.
    if not np.isfinite(matrix).all():
        raise InputError("A strategy to be rounded must be a matrix of finite numbers.")
    grid = np.rint(np.ldexp(matrix, bits)).astype(np.int64)
    grid = grid[grid.any(axis=1)]
    if not len(grid):
        message = f"Every coefficient of the strategy rounds to zero on the grid 2^-{bits}."
        raise InputError(message + " Use more bits, or scale the strategy to sensitivity 1.")
    return grid


def fit_eigen_design(gram: Gram, norm: int) -> FloatArray:
    """Return the weighted eigenvectors of a workload's Gram matrix as rows.

    The computation takes O(n^3) once, and then O(n^2) per iteration.
    """
    values, vectors = np.linalg.eigh(gram.dense())
    nonzero = values > max(float(values[-1]), 0.0) * gram.size * np.finfo(float).eps
    if not nonzero.any():
        raise InputError(
            "No query asks for any cell, so there is nothing to plan. Remove the empty query set."
        )
    g = values[nonzero][::-1]
    design = vectors[:, nonzero][:, ::-1].T
    powers = np.abs(design) ** norm
    power = norm / (norm + 2)

    def step(duals: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """Return column costs, 0 as dual value, and query weights for dual weights."""
        amounts = (g / (powers @ duals)) ** power
        amounts /= float(amounts @ (powers @ duals))
        return amounts @ powers, 0.0, amounts

    amounts = dual_ascent(
        step, np.full(gram.size, 1 / gram.size), (1 + _EIGEN_GAP) ** (norm / 2) - 1, _EIGEN_STEPS
    )[3]
    matrix = amounts[:, None] ** (1 / norm) * design
    return fill_columns(matrix / column_norm(matrix, norm), norm)


def smooth_norm(
    unconstrained: FloatArray, matrix: FloatArray, sharpness: float, width: float
) -> tuple[float, FloatArray]:
    """Return a smooth upper bound on a rotated matrix's L1 norm, and its gradient.

    Q is the polar factor of ``unconstrained``. The gradient is with respect to ``unconstrained``.
    """
    left, sizes, right = np.linalg.svd(unconstrained, full_matrices=False)
    turned = left @ right @ matrix
    kinks = np.sqrt(turned**2 + width**2)
    columns = kinks.sum(axis=0)
    shares = np.exp(sharpness * (columns - columns.max()))
    value = float(columns.max()) + math.log(float(shares.sum())) / sharpness
    by_turn = (turned / kinks * (shares / shares.sum())) @ matrix.T
    inner = left.T @ by_turn @ right.T
    gradient = left @ ((inner - inner.T) / np.add.outer(sizes, sizes)) @ right
    outside = by_turn - left @ (left.T @ by_turn)
    return value, gradient + (outside @ right.T / sizes) @ right


def reduce_l1_norm(matrix: FloatArray) -> FloatArray:
    """Return a strategy with the same Gram matrix and a smaller L1 norm."""
    from scipy.optimize import minimize

    scale = column_norm(matrix, 1)
    rows = 2 * matrix.shape[1]
    rng = np.random.default_rng(0)
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    rank = int((singular > singular.max() * 1e-12).sum())
    # Take the factor of the same Gram matrix with the fewest rows, so that Q has the fewest
    # columns.
    factor = singular[:rank, None] * right[:rank] / scale
    initial = np.zeros((rows, rank))
    initial[: len(matrix)] = left[:rows, :rank]
    other = rng.standard_normal((rows, rank))
    best = matrix
    for start in (initial + 1e-3 * rng.standard_normal(initial.shape), other):
        free = start
        for sharpness, width in _SHARPENING_STEPS:

            def objective(
                point: FloatArray, sharpness: float = sharpness, width: float = width
            ) -> tuple[float, FloatArray]:
                """Return the smooth norm at a flat array, and its gradient."""
                value, gradient = smooth_norm(
                    point.reshape(rows, rank), factor, sharpness, width / rows
                )
                return value, gradient.reshape(-1)

            free = minimize(
                objective, free.reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": 200}
            ).x.reshape(rows, rank)
            # Only the polar factor is needed. It is a well-conditioned start for the next descent.
            before, _, across = np.linalg.svd(free, full_matrices=False)
            free = before @ across
        best = min(best, free @ factor * scale, key=lambda turned: column_norm(turned, 1))
    return best


@memoize_fit
def short_eigen_design(gram: Gram) -> FloatArray:
    """Return the eigen-design with reduced L1 norm, for few cells."""
    return reduce_l1_norm(fit_eigen_design(gram, 1))


def eigen_design(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return the eigen-design of a workload, rounded to integers."""
    if gram.size > _MOST_EIGEN:
        raise NotApplicable(
            f"eigenvectors of a matrix of {gram.size} x {gram.size} take long; at most "
            f"{_MOST_EIGEN} cells are allowed"
        )
    if norm == 1 and gram.size <= _MOST_TURNED:
        matrix = short_eigen_design(gram)
    else:
        matrix = fit_eigen_design(gram, norm)
    return FittedFamily(Dense(to_dyadic(matrix, bits)))


class GaussianOptimum(NamedTuple):
    """The optimal strategy of L2 sensitivity 1, with a lower bound.

    Attributes:
        matrix: the strategy A, shape (rank, n); it has fewer rows than cells if the workload has a
            smaller rank.
        rmse_lower_bound: no strategy has a smaller unit RMSE.
        dual_weights: the dual weights d, shape (n,), sum 1.
    """

    matrix: FloatArray
    rmse_lower_bound: float
    dual_weights: FloatArray


def _root_eigenvalues(eigenvalues: FloatArray) -> FloatArray:
    """Return the square roots of eigenvalues; rounding errors are set to 0.

    The sum of these rounding errors would invalidate the lower bound.
    """
    return np.sqrt(
        np.where(
            eigenvalues > eigenvalues.max() * len(eigenvalues) * np.finfo(float).eps,
            eigenvalues,
            0.0,
        )
    )


def _spectrum(gram: Gram) -> Spectrum:
    """Return a function that computes the weighted spectrum from dual weights.

    The spectrum consists of the roots of the eigenvalues, and the eigenvectors, of ``D^1/2 M
    D^1/2``. D is diagonal with the dual weights d.
    """
    if len(gram.generators) == 1 and gram.size > 2:
        a, b = gram.generators[0]
        jump = a[1:] * b[:-1] - a[:-1] * b[1:]
        if (jump > 0).all() and a[0] > 0 and b[-1] > 0:
            inner = (a[2:] * b[:-2] - a[:-2] * b[2:]) / (jump[:-1] * jump[1:])
            return partial(
                _tridiagonal_spectrum,
                gram,
                np.concatenate([[a[1] / (a[0] * jump[0])], inner, [b[-2] / (b[-1] * jump[-1])]]),
                jump,
            )
    full = gram.dense()
    if gram.is_symmetric_under_reversal and gram.size > 1:
        return partial(_symmetric_spectrum, full)
    if gram.size > _COARSE_ABOVE:
        values, vectors = np.linalg.eigh(full)
        nonzero = values > values[-1] * gram.size * np.finfo(float).eps
        if nonzero.sum() < _LOW_RANK * gram.size:
            return partial(_low_rank_spectrum, (vectors[:, nonzero] * np.sqrt(values[nonzero])).T)
    return partial(_full_spectrum, full)


def _tridiagonal_spectrum(
    gram: Gram, inverse_diagonal: FloatArray, neighbour_scale: FloatArray, dual_weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the spectrum, computed from the tridiagonal inverse of M.

    ``inverse_diagonal`` is the diagonal of this inverse, and ``-1 / neighbour_scale`` are the
    entries next to the diagonal.
    """
    from scipy.linalg import eigh_tridiagonal

    values, vectors = eigh_tridiagonal(
        inverse_diagonal / dual_weights,
        -1 / (neighbour_scale * np.sqrt(dual_weights[1:] * dual_weights[:-1])),
    )
    # For very unequal weights, rounding errors would exceed even the large singular values.
    if not values[0] > _EIGENVALUE_ROUNDING * values[-1]:
        return _full_spectrum(gram.dense(), dual_weights)
    return 1 / np.sqrt(values), vectors


def _symmetric_spectrum(
    gram: FloatArray, dual_weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the spectrum of a matrix that is symmetric under reversal.

    Symmetric and antisymmetric eigenvectors are computed separately.
    """
    from scipy.linalg import eigh

    size = len(gram)
    half = size // 2
    odd = size % 2
    same_half = gram[:half, :half]
    opposite_half = gram[:half, size - half :][:, ::-1]
    root = np.sqrt((dual_weights + dual_weights[::-1]) / 2)
    scale = np.outer(root[:half], root[:half])
    even_part = np.empty((half + odd, half + odd))
    even_part[:half, :half] = scale * (same_half + opposite_half)
    if odd:
        even_part[half, :half] = even_part[:half, half] = (
            math.sqrt(2) * root[:half] * gram[:half, half] * root[half]
        )
        even_part[half, half] = gram[half, half] * root[half] ** 2
    plus, even_vectors = eigh(even_part, driver="evd")
    minus, odd_vectors = eigh(scale * (same_half - opposite_half), driver="evd")
    vectors = np.zeros((size, size))
    vectors[:half, : half + odd] = even_vectors[:half] / math.sqrt(2)
    vectors[half : half + odd, : half + odd] = even_vectors[half:]
    vectors[:half, half + odd :] = odd_vectors / math.sqrt(2)
    vectors[size - half :, : half + odd] = vectors[:half, : half + odd][::-1]
    vectors[size - half :, half + odd :] = -vectors[:half, half + odd :][::-1]
    return _root_eigenvalues(np.concatenate([plus, minus])), vectors


def _full_spectrum(gram: FloatArray, dual_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return root eigenvalues and eigenvectors of the weighted Gram matrix."""
    from scipy.linalg import eigh

    root = np.sqrt(dual_weights)
    values, vectors = eigh(root[:, None] * gram * root, driver="evd")
    return _root_eigenvalues(values), vectors


def _low_rank_spectrum(
    root_rows: FloatArray, dual_weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the nonzero spectrum of weighted ``root_rows^T root_rows``."""
    from scipy.linalg import eigh

    weighted = root_rows * np.sqrt(dual_weights)
    values, turns = eigh(weighted @ weighted.T, driver="evd")
    roots = _root_eigenvalues(values)
    nonzero = roots > 0
    return roots[nonzero], weighted.T @ turns[:, nonzero] / roots[nonzero]


def _excess_at_unit_diagonal(roots: FloatArray, vectors: FloatArray, diagonal: FloatArray) -> float:
    """Return the squared error's relative excess over t^2 for a unit diagonal.

    X is first scaled to a unit diagonal. The excess is infinite if M is singular, because the
    scaled matrix may not determine the queries of the workload.

    Args:
        roots: eigenvalues of K.
        vectors: eigenvectors of K, one in each column.
        diagonal: diagonal entries of X.
    """
    is_square = len(vectors) == len(roots)
    if not is_square or not roots.min() > _SINGULAR_RATIO * roots.max():
        return math.inf
    turned = vectors.T @ (np.sqrt(diagonal)[:, None] * vectors)
    return float((1 / roots) @ (turned**2 @ roots**2) / roots.sum()) - 1


def _interpolate_duals(coarse_weights: FloatArray, size: int) -> FloatArray:
    """Interpolate dual weights from fewer cells to ``size`` cells.

    The result is the starting point of the iteration.
    """
    # Dual weights behave like powers of the distance to the ends, so their logarithms are
    # interpolated over the log-odds of the position. The weights next to the ends are nearly
    # independent of the size and are copied cell by cell.
    odds, cells = (
        np.log((2 * np.arange(count) + 1) / (2 * (count - np.arange(count)) - 1))
        for count in (len(coarse_weights), size)
    )
    weights = np.exp(np.interp(cells, odds, np.log(coarse_weights)))
    edge = min(_EDGE_CELLS, len(coarse_weights) // 4)
    weights[:edge] = coarse_weights[:edge] * (weights[edge] / coarse_weights[edge])
    weights[-edge:] = coarse_weights[-edge:] * (weights[-edge - 1] / coarse_weights[-edge - 1])
    return np.asarray(weights / weights.sum())


def _iterate_duals(gram: Gram, gap: float) -> tuple[FloatArray, float, FloatArray]:
    """Return dual weights, the dual value t, and the strategy's Gram matrix X.

    X is the Gram matrix of the strategy, shape (n, n), and its squared error is at most (1 + gap)
    t^2. The diagonal entries of X are at most 1.
    """
    weights = np.full(gram.size, 1 / gram.size)
    if gram.size > _COARSE_ABOVE and not gram.is_matrix_only:
        small, _, _ = _iterate_duals(gram.coarsen(4), gap)
        weights = _interpolate_duals(small, gram.size)
    spectrum = _spectrum(gram)

    def step(weights: FloatArray) -> tuple[FloatArray, float, tuple[FloatArray, FloatArray]]:
        """Return the diagonal of X, the dual value t, and the spectrum."""
        roots, vectors = spectrum(weights)
        total = float(roots.sum())
        return (vectors * vectors) @ roots / (weights * total), total, (roots, vectors)

    def excess(
        diagonal: FloatArray, weights: FloatArray, spectrum: tuple[FloatArray, FloatArray]
    ) -> float:
        """Return the relative excess of the squared error over t^2."""
        largest = float(diagonal.max()) - 1
        if not gap < largest or weights @ (diagonal - 1) ** 2 > gap:
            return largest
        return min(largest, _excess_at_unit_diagonal(*spectrum, diagonal))

    over, weights, total, (roots, vectors) = dual_ascent(step, weights, gap, _MOST_STEPS, excess)
    halved = vectors * np.sqrt(roots)
    scale = 1 / np.sqrt(weights * total)
    matrix = (halved @ halved.T) * scale[:, None] * scale
    diagonal = matrix.diagonal().copy()
    if diagonal.max() > over * (1 + 1e-9):
        return weights, total, matrix / np.sqrt(np.outer(diagonal, diagonal))
    matrix /= diagonal.max()
    slack = 1 - matrix.diagonal()
    matrix.flat[:: gram.size + 1] += np.where(slack > 1e-9, slack, 0.0)
    return weights, total, matrix


def fit_gaussian_optimum(gram: Gram, *, gap: float = 1e-3) -> GaussianOptimum:
    """Return the Gaussian strategy of least squared error, up to ``gap``.

    The gap is relative to the squared error.
    """
    covered_cells = gram.diagonal() > 0
    if not covered_cells.any():
        raise InputError(
            "No query asks for any cell, so there is nothing to plan. Remove the empty query set."
        )
    if not covered_cells.all():
        inner, lower, dual = fit_gaussian_optimum(
            dense_gram(gram.dense()[np.ix_(covered_cells, covered_cells)], gram.queries), gap=gap
        )
        factor = np.zeros((len(inner), gram.size))
        weights = np.zeros(gram.size)
        factor[:, covered_cells] = inner
        weights[covered_cells] = dual
        return GaussianOptimum(factor, lower, weights)
    if gram.is_matrix_only and gram.size > _COARSE_ABOVE:
        short, order = order_cells(gram)
        if not short.is_matrix_only:
            factor, lower, weights = fit_gaussian_optimum(short, gap=gap)
            inverse_order = np.argsort(order)
            return GaussianOptimum(factor[:, inverse_order], lower, weights[inverse_order])
    weights, total, matrix = _iterate_duals(gram, gap)
    # The strategy is the Cholesky factor of X, or is computed from the eigenvectors of X if X is
    # nearly singular.
    try:
        upper = np.linalg.cholesky(matrix).T
    except np.linalg.LinAlgError:
        upper = np.zeros((1, 1))
    if not upper.diagonal().min() > 1e-6:
        values, vectors = np.linalg.eigh(matrix)
        nonzero = values > values[-1] * 1e-11
        upper = (vectors[:, nonzero] * np.sqrt(values[nonzero])).T
    return GaussianOptimum(np.asarray(upper), total / math.sqrt(gram.queries), weights)


def gaussian_optimum(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return the optimal Gaussian strategy, rounded to integers.

    The squared error of the strategy is within 0.1% of the dual value, or within 0.3% above 256
    cells.
    """
    if gram.size > MOST_DENSE:
        raise NotApplicable(
            f"the Gaussian optimum needs a matrix of {gram.size} x {gram.size}; at most "
            f"{MOST_DENSE} cells are allowed"
        )
    matrix, lower, _ = fit_gaussian_optimum(
        gram, gap=1e-3 if gram.size <= _MOST_QUICK_CELLS else _RELATIVE_GAP
    )
    if (
        len(matrix) < gram.size
        and np.abs(np.linalg.pinv(matrix) @ matrix.sum(axis=1) - 1).max() > 1e-7
    ):
        # These rows do not determine the total. Every cell is added with a millionth of the squared
        # norm, so that least squares has a product form.
        matrix = np.vstack([matrix * math.sqrt(1 - 1e-6), 1e-3 * np.eye(gram.size)])
    return FittedFamily(Dense(to_dyadic(matrix, bits)), error_lower_bound=lower**2 * gram.queries)
