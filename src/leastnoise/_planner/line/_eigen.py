"""Eigen-design: the eigenvectors of the workload's Gram matrix as queries, with the best weights, and columns filled.

With eigenvalues g_i, eigenvectors v_i and weights c_i the error is ``sum g_i / c_i^2`` and column j costs ``sum_i c_i^q |v_ij|^q``, q = 1
(pure DP) or 2 (Gaussian): a convex problem in n variables. Its dual has a weight d_j a cell; with ``s_i = sum_j d_j |v_ij|^q`` and
``t = sum g_i^(q/(q+2)) s_i^(2/(q+2))`` the best weights are ``c_i^q = (g_i / s_i)^(q/(q+2)) / t`` and t^((q+2)/q) is below every error of
this design, by Hoelder's inequality.

Source: Li and Miklau, arXiv 1202.3807 (with the dual iteration of the Gaussian optimum, on the design).
"""

import math
from dataclasses import dataclass

import numpy as np

from leastnoise._check import InputError, whole
from leastnoise._check.arrays import FloatArray
from leastnoise._planner._clock import over
from leastnoise._planner.line._gram import Gram
from leastnoise._planner.line._matrix import column_norm, fill_columns, strategy_rmse

_POWER = 2.0


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
        duals = np.maximum(duals * columns**_POWER, 1e-14 / gram.size)
        duals /= duals.sum()
    reached, amounts = best
    weights = amounts ** (1 / norm)
    matrix = weights[:, None] * design
    matrix = fill_columns(matrix / column_norm(matrix, norm), norm)
    return EigenDesign(matrix=matrix, weights=weights, norm=norm, rmse=strategy_rmse(gram, matrix, norm), gap=reached)
