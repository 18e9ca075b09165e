"""Profile equivalence: another strategy with the same Gram matrix, and so the same error profile, but a smaller L1 norm.

``B = Q A`` with ``Q^T Q = I`` has ``B^T B = A^T A``. The largest column norm of B is minimised over Q (which may have more rows than A)
by descent on a smooth stand-in that is sharpened step by step: every B on the way is exactly equivalent.

Source: Li, Hay, Rastogi, Miklau, McGregor, PODS 2010 (equivalent profiles). Its example, the Haar wavelet on four cells, of norm 3, is
equivalent to two pair sums and sqrt(2) times the identity, of norm 1 + sqrt(2) = 2.414. The search finds better: two copies of ((a, b),
(b, a)) with a + b = 2, 2 a b = 1.
"""

import math

import numpy as np

from leastnoise._check import InputError, whole
from leastnoise._check.arrays import FloatArray
from leastnoise._planner.line._matrix import column_norm

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
