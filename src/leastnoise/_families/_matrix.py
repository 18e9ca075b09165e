"""Strategies given as matrices: rounding, eigenvectors of the workload, equal profiles of smaller norm.

Notation: ``n`` cells, ``m`` queries, W (m x n) the workload with the Gram matrix M = W^T W, A a strategy, ||A|| its largest column norm (L1
or L2). The *unit RMSE* of A is ``sqrt(||A||^2 tr(M (A^T A)^-1) / m)``: root mean square error per query, in counts, when the noise put on a
sensitivity-1 strategy has variance 1. Under pure DP multiply it by sqrt(2)/epsilon, under a Gaussian budget by sigma.

Eigen-design: with eigenvalues g_i of M, eigenvectors v_i and weights c_i the error is ``sum g_i / c_i^2`` and column j costs ``sum_i c_i^q
|v_ij|^q``, q = 1 (pure DP) or 2 (Gaussian): a convex problem in n variables. Its dual has a weight d_j a cell; with ``s_i = sum_j d_j
|v_ij|^q`` and ``t = sum g_i^(q/(q+2)) s_i^(2/(q+2))`` the best weights are ``c_i^q = (g_i / s_i)^(q/(q+2)) / t`` and t^((q+2)/q) is below
every error of this design, by Hoelder's inequality.

Equal profiles: ``B = Q A`` with ``Q^T Q = I`` has the Gram matrix of A, and so its error. The largest column norm of B is minimised over Q
(which may have more rows than A) by descent on a smooth stand-in that is sharpened step by step: every B on the way is exactly equivalent.
For the Haar wavelet on four cells, of norm 3, Li et al. have 2.414; the search finds better: two copies of ((a, b), (b, a)) with a + b = 2,
2 a b = 1.

Source: Li and Miklau, arXiv 1202.3807 (eigen-design, with the dual iteration of the Gaussian optimum); Li, Hay, Rastogi, Miklau, McGregor,
PODS 2010 (equivalent profiles).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastnoise._check import InputError, whole
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._clock import over
from leastnoise._families._family import Fitted
from leastnoise._families._gram import (
    FITS,
    Gram,
    NotApplicable,
)
from leastnoise._linop import (
    Dense,
)
from leastnoise._measurements import Factor


def singular_value_bound(gram: Gram) -> float:
    """No strategy, under either norm, has a smaller unit RMSE than ``sqrt((sum of singular values)^2 / (n m))``.

    Source: Li and Miklau, arXiv 1202.3399.
    """
    return float(gram.singular_values().sum() / math.sqrt(gram.size * gram.queries))


def column_norm(matrix: FloatArray, norm: int) -> float:
    """Sensitivity of a strategy: its largest column L1 (``norm=1``) or L2 (``norm=2``) norm, absolute values taken."""
    if norm == 1:
        return float(np.abs(matrix).sum(axis=0).max())
    return math.sqrt(float(np.square(matrix, dtype=float).sum(axis=0).max()))


def fill_columns(matrix: FloatArray, norm: int) -> FloatArray:
    """Add to a strategy a query on each single cell whose column has slack: accuracy that costs no privacy.

    Source: Li, Hay, Rastogi, Miklau, McGregor, PODS 2010 (strategies whose columns have slack are dominated).
    """
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
    asked = np.einsum("ij,ij->j", vectors, gram.matmul(vectors))
    if asked[~seen].sum() > 1e-9 * gram.trace():
        return math.inf
    return math.sqrt(float((asked[seen] / values[seen]).sum()) / gram.queries)


def to_dyadic(matrix: FloatArray, bits: int = 20) -> IntArray:
    """Round a strategy to nearest on the grid 2^-bits, as integers, without the rows that vanish.

    Source: docs/mathematics.md; rounding to nearest loses least once the norm is recomputed.
    """
    whole("bits", bits, 1, 20)
    if np.ndim(matrix) != 2 or not np.isfinite(matrix).all():
        raise InputError("A strategy to be rounded must be a matrix of finite numbers.")
    grid = np.rint(np.ldexp(matrix, bits)).astype(np.int64)
    grid = grid[grid.any(axis=1)]
    if not len(grid):
        message = f"Every coefficient of the strategy rounds to zero on the grid 2^-{bits}."
        raise InputError(message + " Use more bits, or scale the strategy to sensitivity 1.")
    return grid


_DUAL_POWER = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EigenDesign:
    """An eigen-design of sensitivity 1.

    Attributes:
        matrix: The strategy: weighted eigenvectors, then queries on single cells that fill columns with slack.
        weights: The weights c of the eigenvectors with an eigenvalue above zero, the largest first.
        norm: 1 for pure DP, 2 for a Gaussian budget.
        rmse: Unit RMSE of the matrix.
        gap: By how much, as a fraction of the squared error, the weights may miss the best ones (before the filling).
    """

    matrix: FloatArray
    weights: FloatArray
    norm: int
    rmse: float
    gap: float


def fit_eigen_design(gram: Gram, norm: int, *, gap: float = 1e-4, steps: int = 1000) -> EigenDesign:
    """Find the best weights of the eigenvectors of the workload's Gram matrix; O(n^3) once and O(n^2) a step."""
    whole("norm", norm, 1, 2)
    whole("steps", steps, 1)
    if not 0 < gap < math.inf:
        raise InputError(f"gap must be a finite number above 0; got {gap!r}.")
    values, vectors = np.linalg.eigh(gram.dense())
    seen = values > max(float(values[-1]), 0.0) * gram.size * np.finfo(float).eps
    if not seen.any():
        raise InputError("No query asks for any cell, so there is nothing to plan. Remove the empty query set.")
    g, design = values[seen][::-1], vectors[:, seen][:, ::-1].T
    spread = np.abs(design) ** norm
    duals = np.full(gram.size, 1 / gram.size)
    best = (math.inf, g)
    power = norm / (norm + 2)
    for _ in range(steps):
        s = spread @ duals
        amounts = (g / s) ** power
        amounts /= float(amounts @ s)
        columns = amounts @ spread
        reached = float(columns.max()) ** (2 / norm) - 1
        best = min(best, (reached, amounts), key=lambda pair: pair[0])
        if reached <= gap or over():
            break
        duals = np.maximum(duals * columns**_DUAL_POWER, 1e-14 / gram.size)
        duals /= duals.sum()
    reached, amounts = best
    weights = amounts ** (1 / norm)
    matrix = weights[:, None] * design
    matrix = fill_columns(matrix / column_norm(matrix, norm), norm)
    return EigenDesign(matrix=matrix, weights=weights, norm=norm, rmse=strategy_rmse(gram, matrix, norm), gap=reached)


# Sharpness of the maximum over columns, and the width of the rounded kink of the absolute value, relative to the norm.
_SHARPENING = ((10.0, 0.1), (30.0, 0.03), (100.0, 0.01), (300.0, 3e-3), (1e3, 1e-3), (1e4, 1e-4), (1e5, 1e-5))


def smooth_norm(free: FloatArray, matrix: FloatArray, sharpness: float, width: float) -> tuple[float, FloatArray]:
    """A smooth upper stand-in for the L1 norm of ``Q A``, Q the polar factor of ``free``, and its gradient by ``free``."""
    left, sizes, right = np.linalg.svd(free, full_matrices=False)
    turned = left @ right @ matrix
    kinks = np.sqrt(turned**2 + width**2)
    columns = kinks.sum(axis=0)
    top = float(columns.max())
    shares = np.exp(sharpness * (columns - top))
    value = top + math.log(float(shares.sum())) / sharpness
    by_turn = (turned / kinks * (shares / shares.sum())) @ matrix.T
    inner = left.T @ by_turn @ right.T
    gradient = left @ ((inner - inner.T) / np.add.outer(sizes, sizes)) @ right
    outside = by_turn - left @ (left.T @ by_turn)
    return value, gradient + (outside @ right.T / sizes) @ right


def reduce_l1_norm(matrix: FloatArray, *, rows: int | None = None, restarts: int = 4, steps: int = 200) -> FloatArray:
    """Look for a strategy with the same Gram matrix and a smaller L1 norm."""
    from scipy.optimize import minimize

    whole("restarts", restarts, 0)
    whole("steps", steps, 1)
    scale = column_norm(matrix, 1)
    _, singular, right = np.linalg.svd(matrix, full_matrices=False)
    rank = int((singular > singular.max() * 1e-12).sum())
    if scale == 0:
        raise InputError("A strategy of zeros has no equivalent. Give one that measures something.")
    rows = 2 * matrix.shape[1] if rows is None else whole("rows", rows, 1)
    if rows < rank:
        raise InputError(f"rows must be at least the rank of the strategy, {rank}; got {rows}.")
    # A compact factor of the same Gram matrix: Q then has as few columns as can be.
    factor = singular[:rank, None] * right[:rank] / scale
    best, least = matrix, scale
    rng = np.random.default_rng(0)
    starts = [rng.standard_normal((rows, rank)) for _ in range(restarts)]
    own = np.zeros((rows, rank))
    fitting = min(rows, len(matrix))
    own[:fitting] = (np.linalg.svd(matrix, full_matrices=False)[0][:, :rank])[:fitting]
    for start in [own + 1e-3 * rng.standard_normal(own.shape), *starts]:
        free = start
        for sharpness, width in _SHARPENING:

            def objective(point: FloatArray, sharpness: float = sharpness, width: float = width) -> tuple[float, FloatArray]:
                value, gradient = smooth_norm(point.reshape(rows, rank), factor, sharpness, width / rows)
                return value, gradient.reshape(-1)

            free = minimize(objective, free.reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": steps}).x.reshape(rows, rank)
            # Only the polar factor matters: go on from it, well conditioned.
            left, _, across = np.linalg.svd(free, full_matrices=False)
            free = left @ across
        turned = free @ factor * scale
        if column_norm(turned, 1) < least:
            best, least = turned, column_norm(turned, 1)
    return best


_MOST_EIGEN = 1024
_MOST_TURNED = 16


@lru_cache(maxsize=FITS)
def _turned(gram: Gram) -> np.ndarray:
    return reduce_l1_norm(fit_eigen_design(gram, 1).matrix, restarts=1)


def eigen_design(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """Weighted eigenvectors of the workload; for Laplace noise turned, on short attributes, to a smaller norm of the same profile."""
    if gram.size > _MOST_EIGEN:
        raise NotApplicable(f"eigenvectors of a matrix of {gram.size} x {gram.size} take long; at most {_MOST_EIGEN} cells are allowed")
    matrix = _turned(gram) if norm == 1 and gram.size <= _MOST_TURNED else fit_eigen_design(gram, norm).matrix
    return Fitted(Factor((name,), Dense(to_dyadic(matrix, bits))))
