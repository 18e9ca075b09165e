"""Strategies given as matrices: their sensitivity, their error, and their rounding to integers.

Notation: ``n`` cells, ``m`` queries, W (m x n) the workload with the Gram matrix M = W^T W, A a strategy, ||A|| its largest column norm (L1
or L2). The *unit RMSE* of A is ``sqrt(||A||^2 tr(M (A^T A)^-1) / m)``: root mean square error per query, in counts, when the noise put on a
sensitivity-1 strategy has variance 1. Under pure DP multiply it by sqrt(2)/epsilon, under a Gaussian budget by sigma.
"""

import math

import numpy as np

from leastnoise._check import InputError, whole
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._planner.line._gram import Gram


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
