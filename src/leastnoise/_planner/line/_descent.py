"""Descent on the logarithm of an error by coefficients of at least 0."""

import math
from collections.abc import Callable

import numpy as np

from leastnoise._check.arrays import FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]


def descended(objective: Objective, start: FloatArray, most: float | FloatArray, steps: int) -> tuple[FloatArray, float]:
    """Where at most ``steps`` steps of L-BFGS-B lead, and the error there.

    Args:
        objective: the error, above 0, and its gradient.
        start: coefficients to begin with.
        most: the largest that each may have; the least is 0.
        steps: of the descent.

    >>> point, error = descended(lambda x: (1 + float(((x - 2) ** 2).sum()), 2 * (x - 2)), np.zeros(2), np.array([1.0, 9.0]), 50)
    >>> point.round(3).tolist(), round(error, 3)
    ([1.0, 2.0], 2.0)
    """
    from scipy.optimize import Bounds, minimize

    def logarithm(point: FloatArray) -> tuple[float, FloatArray]:
        error, gradient = objective(point)
        return math.log(error), gradient / error

    options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-9, "gtol": 1e-9, "maxcor": 10}
    found = minimize(logarithm, start, jac=True, method="L-BFGS-B", bounds=Bounds(0, most), options=options)
    return np.asarray(found.x), math.exp(found.fun)
