"""How much of the budget each measured marginal gets.

Three situations, from closed form to search:

- groups of queries without least squares recovery: cube roots (pure) or fourth roots (Gaussian) of their error (`grouped_budgets`);
- a given set of marginals, recovered by least squares: the diagonal programme of `_residual_algebra`, convex in theta^2 for Gaussian
  budgets and not convex for pure ones (`optimal_weights`);
- Gaussian budgets with free choice of what to measure: the residual basis is optimal and closed (`residual_noise`), and for the largest
  variance a small concave dual (`residual_noise_max`).

"Error" is the total squared error at unit noise: multiply by 2 / epsilon^2 for pure budgets and by 1 / mu^2 for Gaussian ones.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._check import InputError, refuse, whole
from leastnoise._check.arrays import FloatArray
from leastnoise._planner.tables._residual_algebra import AttributeSet, Closure, Matrix, dimensions, incidence, table_sizes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Weights of measured queries and what they achieve.

    Attributes:
        theta: one weight at least 0 a measured table (noise scale proportional to 1 / theta), scaled to privacy cost 1.
        error: total squared error at unit noise.
    """

    theta: FloatArray
    error: float


def grouped_budgets(errors: Sequence[float] | FloatArray, heights: Sequence[float] | FloatArray, norm: int) -> Weights:
    """Split the budget over groups of queries that are answered without recovery by least squares.

    Source: Cormode et al., Corollary 3.3, for unequal heights and without the factor that the paper counts twice.
    """
    s = np.asarray(errors, dtype=np.float64)
    height = np.asarray(heights, dtype=np.float64)
    if not (s.ndim == 1 and s.shape == height.shape and bool(np.all(s >= 0)) and bool(np.all(np.isfinite(s))) and bool(np.any(s > 0))):
        raise refuse("errors", s.tolist(), "one finite number of at least 0 per group, at least one above 0")
    if not bool(np.all((height > 0) & np.isfinite(height))):
        raise refuse("heights", height.tolist(), "finite numbers above 0")
    if whole("norm", norm, 1, 2) == 1:
        root = (s / height) ** (1 / 3)
        scale = float(height @ root)
        return Weights(theta=root / scale, error=scale**2 * float(height @ root))
    square = np.sqrt(s) / height
    scale = float(height**2 @ square)
    return Weights(theta=np.sqrt(square / scale), error=scale**2)


def _objective(
    theta: FloatArray,
    forward: Callable[[FloatArray], FloatArray],
    backward: Callable[[FloatArray], FloatArray],
    c: FloatArray,
    cost: FloatArray,
    norm: int,
) -> tuple[float, FloatArray]:
    eigenvalue = forward(theta**2)
    if not bool(np.all(eigenvalue > 0)):
        return math.inf, np.zeros_like(theta)
    each = c / eigenvalue
    error = float(each.sum())
    pull = 2 * theta * backward(each / eigenvalue) / error
    if norm == 1:
        spent = float(cost @ theta)
        return 2 * math.log(spent) + math.log(error), 2 * cost / spent - pull
    spent = float((cost * theta) @ (cost * theta))
    return math.log(spent) + math.log(error), 2 * cost**2 * theta / spent - pull


def _privacy_cost(theta: FloatArray, cost: FloatArray, norm: int) -> float:
    return float(cost @ theta) if norm == 1 else math.sqrt(float((cost * theta) @ (cost * theta)))


def improve_weights(theta: FloatArray, matrix: Matrix, coefficient: FloatArray, cost: FloatArray, norm: int, steps: int) -> FloatArray:
    """Take steps that never raise the error: recovery and budgets optimised in turn.

    For fixed recovery the error is a sum of b_S / theta_S^2 with b_S = theta_S^4 G_S, whose optimum is closed (`grouped_budgets`); then
    recovery is optimised again by least squares. A weight of 0 stays 0.
    """
    for _ in range(steps):
        eigenvalue = np.asarray(matrix @ theta**2)
        gain = np.asarray(matrix.T @ (coefficient / eigenvalue**2))
        theta = theta * np.cbrt(theta * gain / cost) if norm == 1 else theta * np.sqrt(np.sqrt(gain) / cost)
        theta = theta / _privacy_cost(theta, cost, norm)
    return theta


def optimal_weights(
    matrix: Matrix,
    coefficient: FloatArray,
    *,
    norm: int,
    cost: FloatArray | None = None,
    starts: Sequence[FloatArray] | None = None,
    iterations: int = 500,
    tolerance: float = 1e-10,
) -> Weights:
    """Find the weights of given tables that minimise the total squared error after least squares recovery."""
    whole("norm", norm, 1, 2)
    asked = np.asarray(coefficient) > 0
    c = np.asarray(coefficient, dtype=np.float64)[asked]
    kept = matrix if bool(asked.all()) else matrix[asked]
    tables = kept.shape[1]
    cost = np.ones(tables) if cost is None else np.asarray(cost, dtype=np.float64)
    best: Weights | None = None
    for given in [np.ones(tables)] if starts is None else starts:
        start = np.asarray(given, dtype=np.float64)
        if not (start.shape == (tables,) and bool(np.all((start >= 0) & np.isfinite(start)))):
            raise refuse("start", start.shape, f"{tables} finite weights of at least 0")
        if not bool(np.all(np.asarray(kept @ start**2) > 0)):
            raise InputError(
                "a start does not cover all that is asked; got a set without a measured table, allowed are covering starts. Add tables."
            )
        found = _descend(start, kept, c, cost, norm, iterations, tolerance)
        if best is None or found.error < best.error:
            best = found
    if best is None:
        raise refuse("starts", [], "at least one start")
    return best


def _descend(start: FloatArray, matrix: Matrix, c: FloatArray, cost: FloatArray, norm: int, iterations: int, tolerance: float) -> Weights:
    from scipy.optimize import Bounds, minimize

    theta = improve_weights(start / _privacy_cost(start, cost, norm), matrix, c, cost, norm, 10)
    transposed = matrix.T.tocsr() if hasattr(matrix, "tocsr") else matrix.T
    used = theta > 0
    scale = 1.0 / theta[used].max()  # variables near 1 suit the quasi-Newton method's first step
    columns = matrix if bool(used.all()) else matrix[:, used]
    back = transposed if bool(used.all()) else transposed[used]
    result = minimize(
        lambda x: _objective(x, lambda u: np.asarray(columns @ u), lambda g: np.asarray(back @ g), c, cost[used], norm),
        theta[used] * scale,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(np.zeros(int(used.sum())), np.inf),
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": tolerance, "gtol": 1e-9},
    )
    found = np.zeros_like(theta)
    found[used] = np.where(result.x > 1e-7 * result.x.max(), result.x, 0.0)
    candidates = [weights / _privacy_cost(weights, cost, norm) for weights in (found, theta)]
    errors = [_error(weights, matrix, c) for weights in candidates]
    at = int(np.argmin(errors))
    return Weights(theta=candidates[at], error=errors[at])


def _error(theta: FloatArray, matrix: Matrix, c: FloatArray) -> float:
    eigenvalue = np.asarray(matrix @ theta**2)
    return float((c / eigenvalue).sum()) if bool(np.all(eigenvalue > 0)) else math.inf


def residual_noise(closure: Closure, coefficient: FloatArray) -> tuple[FloatArray, float]:
    """Choose the noise of the residual basis for Gaussian budgets: optimal among all mechanisms for the sum of variances.

    Source: ResidualPlanner (arXiv 2305.08175).
    """
    if not bool(np.any(coefficient > 0)):
        raise refuse("coefficient", 0.0, "above 0 for at least one attribute set", "Ask for something.")
    asked = coefficient > 0
    sizes = _sizes(closure)[asked]
    # One group a residual space: its contrasts at unit noise add c size to the error, and cost dim / size.
    best = grouped_budgets(coefficient[asked] * sizes, np.sqrt(dimensions(closure)[asked] / sizes), 2)
    noise = np.full(closure.count, np.inf)
    noise[asked] = 1 / best.theta**2
    return noise, best.error


def _sizes(closure: Closure) -> FloatArray:
    """Number of cells of every set of a closure."""
    return np.concatenate([np.array(closure.shape, dtype=np.float64)[block].prod(axis=1) for block in closure.blocks])


def residual_noise_max(
    closure: Closure,
    sets: Sequence[AttributeSet],
    scales: Sequence[float] | None = None,
    *,
    iterations: int = 5000,
    tolerance: float = 1e-6,
) -> tuple[FloatArray, float, float]:
    """Choose the noise of the residual basis for Gaussian budgets so that the largest cell variance is least.

    Source: ResidualPlanner (arXiv 2305.08175); the dual over convex combinations of the variances is concave, with gradient the variances
    at its optimal noise.
    """
    matrix = incidence(closure, sets)
    factor = np.ones(len(sets)) if scales is None else np.asarray(scales, dtype=np.float64)
    if not (factor.shape == (len(sets),) and len(sets) > 0 and bool(np.all((factor > 0) & np.isfinite(factor)))):
        raise refuse("scales", factor.tolist(), "one finite number above 0 per marginal")
    per_cell = factor / table_sizes(closure.shape, sets)  # K has 1 / size already; a cell variance needs 1 / size^2
    dims = dimensions(closure)
    share = np.full(len(sets), 1.0 / len(sets))
    best: tuple[FloatArray, float] | None = None
    bound = 0.0
    for _ in range(iterations):
        c = dims * np.asarray(matrix @ (share * per_cell))
        root = np.sqrt(c * dims)
        total = float(root.sum())
        bound = max(bound, total**2)
        with np.errstate(divide="ignore"):
            inverse = np.where(c > 0, np.sqrt(dims / c) * total, np.inf)  # 1 / lambda
        finite = np.where(c > 0, inverse, 0.0)
        variances = np.asarray(matrix.T @ (finite * dims)) * per_cell
        largest = float(variances.max())
        if best is None or largest < best[1]:
            best = inverse, largest
        if best[1] <= bound * (1 + tolerance):
            break
        share = share * variances / float(share @ variances)
    if best is None:
        raise refuse("iterations", iterations, "at least 1")
    return best[0] / _sizes(closure), best[1], bound
