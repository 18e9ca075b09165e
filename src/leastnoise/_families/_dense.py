"""Strategies given as matrices, on up to 4096 cells: the optimum for Gaussian noise, eigen-designs, equal profiles, and rounding.

Notation: ``n`` cells, ``m`` queries, W (m x n) the workload with the Gram matrix M = W^T W, A a strategy, ||A|| its largest column norm (L1
or L2). The *unit RMSE* of A is ``sqrt(||A||^2 tr(M (A^T A)^-1) / m)``: root mean square error per query, in counts, when the noise put on a
sensitivity-1 strategy has variance 1. Under pure DP multiply it by sqrt(2)/epsilon, under a Gaussian budget by sigma.

Eigen-design: with eigenvalues g_i of M, eigenvectors v_i and weights c_i the error is ``sum g_i / c_i^2`` and column j costs ``sum_i c_i^q
|v_ij|^q``, q = 1 (pure DP) or 2 (Gaussian): a convex problem in n variables. Its dual has a weight d_j a cell; with ``s_i = sum_j d_j
|v_ij|^q`` and ``t = sum g_i^(q/(q+2)) s_i^(2/(q+2))`` the best weights are ``c_i^q = (g_i / s_i)^(q/(q+2)) / t`` and t^((q+2)/q) is below
every error of this design, by Hoelder's inequality.

Equal profiles: ``B = Q A`` with ``Q^T Q = I`` has the Gram matrix of A, and so its error. The largest column norm of B is minimised over Q
(which may have more rows than A) by descent on a smooth stand-in that is sharpened step by step: every B on the way is exactly equivalent.

The Gaussian optimum: min tr(M X^-1) over X = A^T A with unit diagonal. The dual has one weight d_j >= 0 a cell, sum 1. With
``K = (D^1/2 M D^1/2)^1/2`` and ``t = tr K``: t^2 is below the error of every strategy of L2 sensitivity 1, a certificate, and
``X = D^-1/2 K D^-1/2 / t`` has error t^2 and largest diagonal entry 1 + gap. Each step multiplies d_j by a power of X_jj. Two structures
make a step cheap. When M has entries ``a_i b_j`` (i <= j; prefix sums, all ranges) its inverse is tridiagonal, and so is that of
``D^1/2 M D^1/2``: its eigenvectors cost O(n^2). When M is unchanged by reversing the cells, the problem falls into two halves.

Source: convex duality for the matrix mechanism's semidefinite programme (Li et al., PODS 2010), docs/mathematics.md; Li and Miklau, arXiv
1202.3807 (eigen-design, with the dual iteration of the Gaussian optimum); Li, Hay, Rastogi, Miklau, McGregor, PODS 2010 (equivalent
profiles).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from leastnoise._check import InputError, whole
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._gram import FITS, Fitted, Gram, dense_gram, recognise
from leastnoise._families._queries import MOST_DENSE
from leastnoise._families._search import NotApplicable, dual_ascent
from leastnoise._linop import Dense

# Sharpness of the maximum over columns, and the width of the rounded kink of the absolute value, relative to the norm.
_SHARPENING = ((10.0, 0.1), (30.0, 0.03), (100.0, 0.01), (300.0, 3e-3), (1e3, 1e-3), (1e4, 1e-4), (1e5, 1e-5))
_MOST_EIGEN = 1024
_MOST_TURNED = 16
_SMALL = 96
_EDGE = 16
_EIGEN_STEPS, _EIGEN_GAP = 1000, 1e-4  # of the squared error, before columns are filled
_LOST = 1e-10
_MOST_STEPS = 500
Spectrum = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def singular_value_bound(gram: Gram) -> float:
    """No strategy, under either norm, has a smaller unit RMSE than ``sqrt((sum of singular values)^2 / (n m))``."""
    # Source: Li and Miklau, arXiv 1202.3399.
    values = np.linalg.eigvalsh(gram.dense())
    return float(np.sqrt(np.maximum(values, 0.0)).sum() / math.sqrt(gram.size * gram.queries))


def column_norm(matrix: FloatArray, norm: int) -> float:
    """Sensitivity of a strategy: its largest column L1 (``norm=1``) or L2 (``norm=2``) norm, absolute values taken."""
    if norm == 1:
        return float(np.abs(matrix).sum(axis=0).max())
    return math.sqrt(float(np.square(matrix, dtype=float).sum(axis=0).max()))


def fill_columns(matrix: FloatArray, norm: int) -> FloatArray:
    """Add to a strategy a query on each single cell whose column has slack: accuracy that costs no privacy."""
    columns = (np.abs(matrix) ** norm).sum(axis=0)
    slack = (columns.max() - columns) ** (1 / norm)
    short = columns < columns.max() * (1 - 1e-9)
    return np.vstack([matrix, np.diag(slack)[short]]) if short.any() else matrix


def strategy_rmse(gram: Gram, matrix: FloatArray | IntArray, norm: int) -> float:
    """Unit RMSE of any strategy given as a matrix, for instance of a rounded one; O(n^3)."""
    real = np.asarray(matrix, float)
    scale = column_norm(real, norm)
    if scale == 0:
        return math.inf
    real = real / scale
    values, vectors = np.linalg.eigh(real.T @ real)
    seen = values > values[-1] * gram.size * 1e-15
    asked = np.einsum("ij,ij->i", gram.rows(vectors.T), vectors.T)
    if asked[~seen].sum() > 1e-9 * gram.diagonal().sum():
        return math.inf
    return math.sqrt(float((asked[seen] / values[seen]).sum()) / gram.queries)


def to_dyadic(matrix: FloatArray, bits: int = 20) -> IntArray:
    """Round a strategy to nearest on the grid 2^-bits, as integers, without the rows that vanish."""
    # Source: docs/mathematics.md; rounding to nearest loses least once the norm is recomputed.
    whole("bits", bits, 1, 20)
    if np.ndim(matrix) != 2 or not np.isfinite(matrix).all():
        raise InputError("A strategy to be rounded must be a matrix of finite numbers.")
    grid = np.rint(np.ldexp(matrix, bits)).astype(np.int64)
    grid = grid[grid.any(axis=1)]
    if not len(grid):
        message = f"Every coefficient of the strategy rounds to zero on the grid 2^-{bits}."
        raise InputError(message + " Use more bits, or scale the strategy to sensitivity 1.")
    return grid


def fit_eigen_design(gram: Gram, norm: int) -> FloatArray:
    """The eigenvectors of the workload's Gram matrix with their best weights, and cells that fill columns; O(n^3), and O(n^2) a step."""
    values, vectors = np.linalg.eigh(gram.dense())
    seen = values > max(float(values[-1]), 0.0) * gram.size * np.finfo(float).eps
    if not seen.any():
        raise InputError("No query asks for any cell, so there is nothing to plan. Remove the empty query set.")
    g, design = values[seen][::-1], vectors[:, seen][:, ::-1].T
    spread = np.abs(design) ** norm
    power = norm / (norm + 2)

    def step(duals: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        amounts = (g / (spread @ duals)) ** power
        amounts /= float(amounts @ (spread @ duals))
        return amounts @ spread, 0.0, amounts

    amounts = dual_ascent(step, np.full(gram.size, 1 / gram.size), (1 + _EIGEN_GAP) ** (norm / 2) - 1, _EIGEN_STEPS)[3]
    matrix = amounts[:, None] ** (1 / norm) * design
    return fill_columns(matrix / column_norm(matrix, norm), norm)


def smooth_norm(free: FloatArray, matrix: FloatArray, sharpness: float, width: float) -> tuple[float, FloatArray]:
    """A smooth upper stand-in for the L1 norm of ``Q A``, Q the polar factor of ``free``, and its gradient by ``free``."""
    left, sizes, right = np.linalg.svd(free, full_matrices=False)
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
    """Look for a strategy with the same Gram matrix and a smaller L1 norm."""
    from scipy.optimize import minimize

    scale, rows, rng = column_norm(matrix, 1), 2 * matrix.shape[1], np.random.default_rng(0)
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    rank = int((singular > singular.max() * 1e-12).sum())
    # A compact factor of the same Gram matrix: Q then has as few columns as can be.
    factor = singular[:rank, None] * right[:rank] / scale
    given = np.zeros((rows, rank))
    given[: len(matrix)] = left[:rows, :rank]
    other, best = rng.standard_normal((rows, rank)), matrix
    for start in (given + 1e-3 * rng.standard_normal(given.shape), other):
        free = start
        for sharpness, width in _SHARPENING:

            def objective(point: FloatArray, sharpness: float = sharpness, width: float = width) -> tuple[float, FloatArray]:
                value, gradient = smooth_norm(point.reshape(rows, rank), factor, sharpness, width / rows)
                return value, gradient.reshape(-1)

            free = minimize(objective, free.reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x.reshape(rows, rank)
            # Only the polar factor matters: go on from it, well conditioned.
            before, _, across = np.linalg.svd(free, full_matrices=False)
            free = before @ across
        best = min(best, free @ factor * scale, key=lambda turned: column_norm(turned, 1))
    return best


@lru_cache(maxsize=FITS)
def _turned(gram: Gram) -> FloatArray:
    return reduce_l1_norm(fit_eigen_design(gram, 1))


def eigen_design(gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """Weighted eigenvectors of the workload; for Laplace noise turned, on short attributes, to a smaller norm of the same profile."""
    if gram.size > _MOST_EIGEN:
        raise NotApplicable(f"eigenvectors of a matrix of {gram.size} x {gram.size} take long; at most {_MOST_EIGEN} cells are allowed")
    matrix = _turned(gram) if norm == 1 and gram.size <= _MOST_TURNED else fit_eigen_design(gram, norm)
    return Fitted(Dense(to_dyadic(matrix, bits)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianOptimum:
    """A strategy of L2 sensitivity 1 and the proof of how good it is."""

    factor: FloatArray  # the strategy A, k x n
    rmse: float  # its unit RMSE under L2
    lower: float  # no strategy has a smaller unit RMSE


def _roots(values: FloatArray) -> FloatArray:
    """Square roots, without those of eigenvalues that are rounding errors of zero: their sum would falsify the lower bound."""
    return np.sqrt(np.where(values > values.max() * len(values) * np.finfo(float).eps, values, 0.0))


def _spectrum(gram: Gram) -> Spectrum:
    """What gives for weights d the square roots of the eigenvalues of ``D^1/2 M D^1/2``, and the eigenvectors."""
    if len(gram.generators) == 1 and gram.size > 2:
        a, b = gram.generators[0]
        jump = a[1:] * b[:-1] - a[:-1] * b[1:]
        if (jump > 0).all() and a[0] > 0 and b[-1] > 0:
            inner = (a[2:] * b[:-2] - a[:-2] * b[2:]) / (jump[:-1] * jump[1:])
            return partial(_tridiagonal, gram, np.concatenate([[a[1] / (a[0] * jump[0])], inner, [b[-2] / (b[-1] * jump[-1])]]), jump)
    return partial(_mirrored if gram.mirrored and gram.size > 1 else _plain, gram.dense())


def _tridiagonal(gram: Gram, main: FloatArray, jump: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By the tridiagonal inverse of M, for ``M_ij = a_i b_j``: its diagonal, and minus one over the numbers beside it."""
    from scipy.linalg import eigh_tridiagonal

    values, vectors = eigh_tridiagonal(main / weights, -1 / (jump * np.sqrt(weights[1:] * weights[:-1])))
    if not values[0] > _LOST * values[-1]:  # cells of very unlike weights: the large singular values would drown in rounding
        return _plain(gram.dense(), weights)
    return 1 / np.sqrt(values), vectors


def _mirrored(full: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of a matrix that is unchanged by reversing the cells: symmetric and antisymmetric vectors apart."""
    from scipy.linalg import eigh

    size = len(full)
    half, odd = size // 2, size % 2
    near, far = full[:half, :half], full[:half, size - half :][:, ::-1]
    root = np.sqrt((weights + weights[::-1]) / 2)
    scale = np.outer(root[:half], root[:half])
    even = np.empty((half + odd, half + odd))
    even[:half, :half] = scale * (near + far)
    if odd:
        even[half, :half] = even[:half, half] = math.sqrt(2) * root[:half] * full[:half, half] * root[half]
        even[half, half] = full[half, half] * root[half] ** 2
    plus, even_vectors = eigh(even, driver="evd")
    minus, odd_vectors = eigh(scale * (near - far), driver="evd")
    vectors = np.zeros((size, size))
    vectors[:half, : half + odd] = even_vectors[:half] / math.sqrt(2)
    vectors[half : half + odd, : half + odd] = even_vectors[half:]
    vectors[:half, half + odd :] = odd_vectors / math.sqrt(2)
    vectors[size - half :, : half + odd] = vectors[:half, : half + odd][::-1]
    vectors[size - half :, half + odd :] = -vectors[:half, half + odd :][::-1]
    return _roots(np.concatenate([plus, minus])), vectors


def _plain(full: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.linalg import eigh

    root = np.sqrt(weights)
    values, vectors = eigh(root[:, None] * full * root, driver="evd")
    return _roots(values), vectors


def _refined(small: FloatArray, size: int) -> FloatArray:
    """Dual weights of fewer cells, as a start for more of them."""
    # They are powers of the distance to the ends, so logarithms are interpolated over log-odds of the position; the cells next to the ends
    # look alike at every size, so they are taken one by one.
    odds, cells = (np.log((2 * np.arange(count) + 1) / (2 * (count - np.arange(count)) - 1)) for count in (len(small), size))
    weights = np.exp(np.interp(cells, odds, np.log(small)))
    edge = min(_EDGE, len(small) // 4)
    weights[:edge] = small[:edge] * (weights[edge] / small[edge])
    weights[-edge:] = small[-edge:] * (weights[-edge - 1] / small[-edge - 1])
    return np.asarray(weights / weights.sum())


def _iterate(gram: Gram, gap: float) -> tuple[FloatArray, float, FloatArray]:
    """Dual weights, t, and the n x n root K of the step with the smallest gap."""
    weights = np.full(gram.size, 1 / gram.size)
    if gram.size > _SMALL and not gram.by_matrix:
        small, _, _ = _iterate(gram.coarsen(4), gap)
        weights = _refined(small, gram.size)
    spectrum = _spectrum(gram)

    def step(weights: FloatArray) -> tuple[FloatArray, float, tuple[FloatArray, FloatArray]]:
        roots, vectors = spectrum(weights)
        total = float(roots.sum())
        return (vectors * vectors) @ roots / (weights * total), total, (roots, vectors)

    _, weights, total, (roots, vectors) = dual_ascent(step, weights, gap, _MOST_STEPS)
    halved = vectors * np.sqrt(roots)
    return weights, total, halved @ halved.T


def fit_gaussian_optimum(gram: Gram, *, gap: float = 1e-3) -> GaussianOptimum:
    """Find the strategy of least mean squared error for a Gaussian budget, to a given duality gap."""
    # A workload of rank below n (a total, say) has an optimum of that rank: the strategy then has fewer rows than columns.
    factor, lower, _ = optimal_factor(gram, gap=gap)
    if len(factor) < gram.size or np.tril(factor, -1).any():
        return GaussianOptimum(factor=factor, rmse=strategy_rmse(gram, factor, 2), lower=lower)
    from scipy.linalg import solve_triangular

    inverse = solve_triangular(factor, np.eye(gram.size)).T
    rmse = column_norm(factor, 2) * math.sqrt(float(np.vdot(gram.rows(inverse), inverse)) / gram.queries)
    return GaussianOptimum(factor=factor, rmse=rmse, lower=lower)


def optimal_factor(gram: Gram, *, gap: float = 1e-3) -> tuple[FloatArray, float, FloatArray]:
    """The strategy of ``fit_gaussian_optimum``, the lower bound and the dual weights, without its error, which costs as much again."""
    asked = gram.diagonal() > 0
    if not asked.any():
        raise InputError("No query asks for any cell, so there is nothing to plan. Remove the empty query set.")
    if not asked.all():
        inner, lower, dual = optimal_factor(dense_gram(gram.dense()[np.ix_(asked, asked)], gram.queries), gap=gap)
        factor, weights = np.zeros((len(inner), gram.size)), np.zeros(gram.size)
        factor[:, asked], weights[asked] = inner, dual
        return factor, lower, weights
    if gram.by_matrix and gram.size > _SMALL:
        short, order = recognise(gram)
        if not short.by_matrix:
            factor, lower, weights = optimal_factor(short, gap=gap)
            back = np.argsort(order)
            return factor[:, back], lower, weights[back]
    weights, total, root = _iterate(gram, gap)
    scale = 1 / np.sqrt(weights * total)
    matrix = root * scale[:, None] * scale
    matrix /= matrix.diagonal().max()
    slack = 1 - matrix.diagonal()
    matrix.flat[:: gram.size + 1] += np.where(slack > 1e-9, slack, 0.0)
    # Its Cholesky factor, or the eigenvectors where that fails.
    try:
        upper = np.linalg.cholesky(matrix).T
    except np.linalg.LinAlgError:
        upper = np.zeros((1, 1))
    if not upper.diagonal().min() > 1e-6:
        values, vectors = np.linalg.eigh(matrix)
        seen = values > values[-1] * 1e-11
        upper = (vectors[:, seen] * np.sqrt(values[seen])).T
    return np.asarray(upper), total / math.sqrt(gram.queries), weights


def gaussian_optimum(gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The strategy of least error for Gaussian noise, to a duality gap of 1e-3; of 3e-3 beyond 1024 cells, where a step takes seconds."""
    if gram.size > MOST_DENSE:
        raise NotApplicable(f"the Gaussian optimum needs a matrix of {gram.size} x {gram.size}; at most {MOST_DENSE} cells are allowed")
    matrix, lower, _ = optimal_factor(gram, gap=1e-3 if gram.size <= 1024 else 3e-3)
    if len(matrix) < gram.size and np.abs(np.linalg.pinv(matrix) @ matrix.sum(axis=1) - 1).max() > 1e-7:
        # Queries that do not even tell the total: a millionth of the norm on every cell, so that least squares has its product form.
        matrix = np.vstack([matrix * math.sqrt(1 - 1e-6), 1e-3 * np.eye(gram.size)])
    return Fitted(Dense(to_dyadic(matrix, bits)), bound=lower**2 * gram.queries)
