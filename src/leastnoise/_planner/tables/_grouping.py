"""The best budgets for given queries and a given recovery: in closed form where the queries fall into groups, else by a convex programme.

Query i is measured with weight theta_i (noise scale in proportion to 1 / theta_i), and a unit of its noise variance adds b_i to the total
squared error. Column j costs sum_i |S_ij| theta_i for Laplace noise, sum_i S_ij^2 theta_i^2 for Gaussian noise, and no column may cost more
than 1. Queries form a *group* if no two of them share a column and together they see every column with one magnitude C. If everything
falls into groups, and b is constant within each, equal weights within a group are best and the optimum is closed (``grouped_budgets``):
cells, marginals, the levels of a hierarchy or a wavelet, single Fourier coefficients, the repetitions of a sketch.

Without groups the same problem has the dual, over weights y_j >= 0 of the columns with sum 1 and q = S y,

    Laplace:  (sum_i (b_i q_i^2)^(1/3))^3   with theta_i   in proportion to (b_i / q_i)^(1/3),
    Gaussian: (sum_i (b_i q_i)^(1/2))^2     with theta_i^2 in proportion to (b_i / q_i)^(1/2) and q = S^2 y,

which is a lower bound for every y, and is reached when the columns with y_j > 0 cost the same.

Source: Cormode et al. (arXiv 1207.6096), section 3, for the groups; the dual is Hoelder's inequality.
"""

import math
from dataclasses import dataclass

import numpy as np

from leastnoise._check import InternalError, refuse, whole
from leastnoise._check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._planner.tables._marginal_weights import grouped_budgets


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Budgets:
    """Weights of queries and what they achieve.

    Attributes:
        theta: one weight a query, scaled to privacy cost 1.
        error: total squared error at unit noise.
        lower: no weights have a smaller one.
        groups: the group of every query if there is a grouping that was used, else None.
    """

    theta: FloatArray
    error: float
    lower: float
    groups: IntArray | None


def grouping(magnitudes: FloatArray) -> tuple[IntArray, FloatArray] | None:
    """Put queries into groups greedily, and check that they are groups.

    Guarantees: what is returned was verified against the definition; that None is returned does not prove that there are no groups.
    """
    seen = magnitudes > 0
    heights = magnitudes.max(axis=1)
    if not (seen.any(axis=1).all() and np.allclose(magnitudes, np.where(seen, heights[:, None], 0.0), rtol=1e-12, atol=0)):
        return None
    covered = seen.sum(axis=0)
    if (covered != covered[0]).any():  # every group sees every column once: without this, as for ranges, there is nothing to look for
        return None
    group = np.zeros(len(magnitudes), dtype=np.int64)
    taken: list[BoolArray] = []
    tall: list[float] = []
    for row in np.argsort(-seen.sum(axis=1), kind="stable"):  # the widest first: a level is full before the next one begins
        at = next(
            (
                place
                for place, used in enumerate(taken)
                if math.isclose(tall[place], heights[row], rel_tol=1e-12) and not (used & seen[row]).any()
            ),
            len(taken),
        )
        if at == len(taken):
            taken.append(np.zeros(magnitudes.shape[1], dtype=bool))
            tall.append(float(heights[row]))
        taken[at] |= seen[row]
        group[row] = at
    return (group, np.array(tall)) if all(used.all() for used in taken) else None


def optimal_budgets(magnitudes: FloatArray, errors: FloatArray, norm: int, *, gap: float = 1e-6, steps: int = 20_000) -> Budgets:
    """The best weights of queries that are not recovered from each other."""
    whole("norm", norm, 1, 2)
    if not (
        magnitudes.ndim == 2 and errors.shape == magnitudes.shape[:1] and bool(np.all(errors > 0)) and bool(np.all(np.isfinite(errors)))
    ):
        raise refuse("errors", errors.tolist(), "one finite number above 0 a query")
    if not (bool(np.all(magnitudes >= 0)) and bool(np.all(magnitudes.max(axis=1, initial=0.0) > 0))):
        raise refuse("magnitudes", magnitudes.tolist(), "numbers of at least 0, in every row one above 0")
    found = grouping(magnitudes)
    if found is not None:
        group, heights = found
        first = np.unique(group, return_index=True)[1]
        if np.allclose(errors, errors[first][group], rtol=1e-9, atol=0):
            best = grouped_budgets(np.bincount(group, errors).astype(np.float64), heights, norm)
            return Budgets(theta=best.theta[group], error=best.error, lower=best.error, groups=group)
    return _programme(magnitudes if norm == 1 else magnitudes**2, errors, 3 if norm == 1 else 2, gap, steps)


def _programme(entries: FloatArray, errors: FloatArray, root: int, gap: float, steps: int) -> Budgets:
    """Multiply column weights by powers of what the columns cost until they agree; ``root`` is 3 for Laplace noise, 2 for Gaussian."""
    columns = entries.shape[1]
    weights = np.full(columns, 1 / columns)
    best: tuple[float, FloatArray] | None = None
    lower, previous, power = 0.0, -math.inf, 2.0
    for _ in range(steps):
        own = entries @ weights
        bound = float(((errors * own ** (root - 1)) ** (1 / root)).sum())
        budget = (errors / own) ** (1 / root)
        budget /= float(own @ budget)  # theta for Laplace, theta^2 for Gaussian noise
        cost = entries.T @ budget
        worst = float(cost.max())
        error = bound**root * worst ** (root - 1)
        lower = max(lower, bound**root)
        if best is None or error < best[0]:
            best = error, budget / worst
        if best[0] <= lower * (1 + gap):
            break
        # The bound can only rise under the plain first power: when a longer step lowers it, come back to that.
        power = 1.0 if bound < previous * (1 - 1e-12) else power
        previous = bound
        weights = weights * cost**power
        weights = weights / weights.sum()
    if best is None:
        raise InternalError("The programme was given no steps.")
    return Budgets(theta=best[1] if root == 3 else np.sqrt(best[1]), error=best[0], lower=lower, groups=None)
