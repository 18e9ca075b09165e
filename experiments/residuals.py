"""Compute errors of designs of marginals by the definitions of the residual algebra."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from leastnoise._strategies._residual_algebra import (
    AttributeSet,
    DownwardClosure,
    Matrix,
    Weights,
    attribute_sets,
    diagonal_errors,
    dimensions,
    grouped_budgets,
    incidence,
    least_error,
    locate,
    table_sizes,
)
from leastnoise._trusted.check import refuse
from leastnoise._trusted.check.arrays import FloatArray


def coefficients(closure: DownwardClosure, targets: Mapping[AttributeSet, float]) -> FloatArray:
    """Return c_tau for marginals.

    The total squared error at unit noise is the sum of c_tau / lambda_tau.
    """
    sets = list(targets)
    weights = np.array([float(targets[attributes]) for attributes in sets])
    if not bool(np.all((weights >= 0) & np.isfinite(weights))):
        raise refuse(
            "weight squared",
            weights[~((weights >= 0) & np.isfinite(weights))][0],
            "a finite number of at least 0",
        )
    for position in np.nonzero(locate(closure, sets) < 0)[0]:
        raise refuse("target", sets[position], "an attribute set of the closure")
    result: FloatArray = dimensions(closure) * np.asarray(incidence(closure, sets) @ weights)
    return result


def eigenvalues(
    closure: DownwardClosure, tables: Sequence[AttributeSet], theta: FloatArray
) -> FloatArray:
    """Return lambda_tau of a design: the precision of each residual space.

    Its unit is 1 / (unit noise variance).
    """
    result: FloatArray = np.asarray(
        incidence(closure, tables) @ np.asarray(theta, dtype=np.float64) ** 2
    )
    return result


def total_squared_error(coefficient: FloatArray, eigenvalue: FloatArray) -> float:
    """Return the sum of c_tau / lambda_tau; infinite if a query is not measured."""
    is_requested = coefficient > 0
    if not bool(np.all(eigenvalue[is_requested] > 0)):
        return math.inf
    return float(np.sum(coefficient[is_requested] / eigenvalue[is_requested]))


def residual_noise(closure: DownwardClosure, coefficient: FloatArray) -> tuple[FloatArray, float]:
    """Choose the noise of the residual basis for Gaussian budgets.

    The noise is optimal among all mechanisms for the sum of variances.

    Source: ResidualPlanner (arXiv 2305.08175).
    """
    if not bool(np.any(coefficient > 0)):
        raise refuse(
            "coefficient", 0.0, "above 0 for at least one attribute set", "Ask for something."
        )
    is_requested = coefficient > 0
    sizes = table_sizes(closure.shape, attribute_sets(closure))[is_requested]
    # Each residual space is one group: its contrasts at unit noise add c * size to the error, and
    # cost dim / size.
    budgets = grouped_budgets(
        coefficient[is_requested] * sizes, np.sqrt(dimensions(closure)[is_requested] / sizes), 2
    )
    noise = np.full(closure.count, np.inf)
    noise[is_requested] = 1 / budgets.theta**2
    return noise, budgets.error


def optimal_weights(
    matrix: Matrix, coefficient: FloatArray, *, norm: int, steps: int = 500
) -> Weights:
    """Return the weights of equally expensive tables with the smallest total squared error.

    The recovery is by least squares.
    """
    ones = np.ones(matrix.shape[1])
    return least_error(diagonal_errors(matrix, coefficient), ones, ones, norm=norm, steps=steps)
