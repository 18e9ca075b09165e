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

    >>> round(singular_value_bound(PrefixGram(128)), 4)
    2.2544
    """
    return float(gram.singular_values().sum() / math.sqrt(gram.size * gram.queries))


def column_norm(matrix: FloatArray, norm: int) -> float:
    """Sensitivity of a strategy: its largest column L1 (``norm=1``) or L2 (``norm=2``) norm, absolute values taken.

    >>> column_norm(np.array([[-2.0, 0.0], [1.0, 1.0]]), 1)
    3.0
    """
    if norm == 1:
        return float(np.abs(matrix).sum(axis=0).max())
    return math.sqrt(float(np.square(matrix, dtype=float).sum(axis=0).max()))


def fill_columns(matrix: FloatArray, norm: int) -> FloatArray:
    """Add to a strategy a query on each single cell whose column has slack: accuracy that costs no privacy.

    Args:
        matrix: The strategy, k x n.
        norm: 1 for pure DP, 2 for a Gaussian budget.

    Returns:
        The strategy with at most n more rows, all columns having the largest norm; itself when no column has slack.

    Source: Li, Hay, Rastogi, Miklau, McGregor, PODS 2010 (strategies whose columns have slack are dominated).

    >>> fill_columns(np.array([[1.0, 0.5]]), 1).tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    columns = (np.abs(matrix) ** norm).sum(axis=0)
    slack = (columns.max() - columns) ** (1 / norm)
    short = columns < columns.max() * (1 - 1e-9)
    return np.vstack([matrix, np.diag(slack)[short]]) if short.any() else matrix


def strategy_rmse(gram: Gram, matrix: FloatArray | IntArray, norm: int) -> float:
    """Unit RMSE of any strategy given as a matrix, for instance of a rounded one; O(n^3).

    Args:
        gram: Gram matrix of the workload, n cells.
        matrix: The strategy, k x n, real or integer, of any scale.
        norm: 1 for pure DP, 2 for a Gaussian budget.

    Returns:
        The unit RMSE, or infinity when the row space of the strategy does not contain the workload's.

    >>> strategy_rmse(WidthGram(4, 1), np.eye(4), 1)
    1.0
    """
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

    Args:
        matrix: The strategy, k x n, normalised to sensitivity 1.
        bits: Grid of the rounding, 1 to 20.

    Returns:
        Integers, about ``matrix * 2^bits``; a row that rounds to zero is left out. The sensitivity is that of the integers:
        recompute it. Whether the workload is still supported is seen by ``strategy_rmse``, which is then infinite.

    Raises:
        InputError: ``matrix`` is not two-dimensional, not finite, or everything rounds to zero.

    Source: docs/mathematics.md; rounding to nearest loses least once the norm is recomputed.

    >>> to_dyadic(np.array([[1.0, 0.25], [0.0, 1e-9]]), bits=2).tolist()
    [[4, 1]]
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
