"""Measure what is asked, as it is asked, each query with its best share of the budget.

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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._check import InternalError, refuse, whole
from leastnoise._check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._domain import Domain
from leastnoise._families import MOST_DENSE, NotApplicable
from leastnoise._linop import Identity, column_sums, dense
from leastnoise._measurements import Block, Factor
from leastnoise._planner._residual_algebra import grouped_budgets
from leastnoise._planner._strategy import Planner, Strategy, Task, block_norm, shortly
from leastnoise._workload import Workload

_MOST_ROWS = 2**22
_MOST_COLUMNS = 2**14
_MOST_ENTRIES = 2**22
_LEAST_WEIGHT = 2**-20  # of the heaviest row


def measured_workload(task: Task) -> Strategy:
    """Every product of the workload as a measured table, with the best split of the budget between them.

    Source: the strategy Q+ of Cormode et al. (arXiv 1207.6096); recovery by least squares comes on top.
    """
    workload, norm = task.workload, task.norm
    blocks = asked_blocks(workload)
    if len(blocks) == 1 and len(blocks[0].factors) == 1:
        return Strategy("workload", ((_weighted_rows(blocks[0], norm), 1.0),))
    errors = np.array([product.importance * product.rows for product in workload])
    columns = _columns(workload.domain, blocks, norm)
    if columns is None:
        weights = grouped_budgets(errors, [block_norm(workload.domain, block, norm) for block in blocks], norm).theta
    else:
        weights = optimal_budgets(columns, errors, norm, gap=1e-4, steps=2000).theta
    return Strategy("workload", tuple(zip(blocks, weights.tolist(), strict=True)))


def asked_blocks(workload: Workload) -> list[Block]:
    """Every product of a workload as a measured table."""
    if not workload.rows <= _MOST_ROWS:
        raise NotApplicable(f"the workload has {workload.rows} queries; measured one by one at most {_MOST_ROWS} are allowed")
    return [
        Block(
            tuple(Factor((one,), operator) for one, operator in zip(product.attributes, product.operators, strict=True)),
            Fraction(1),
            product.measure,
        )
        for product in workload
    ]


def _weighted_rows(block: Block, norm: int) -> Block:
    """A table along one attribute with the best weight for every query, where they are few."""
    factor = block.factors[0]
    if not factor.operator.rows * factor.operator.size <= _MOST_ENTRIES:
        return block
    found = optimal_budgets(np.abs(dense(factor.operator)).astype(float), np.ones(factor.operator.rows), norm, gap=1e-4, steps=2000)
    shares = np.maximum(found.theta / found.theta.max(), _LEAST_WEIGHT)
    weights = np.rint(shares / _LEAST_WEIGHT).astype(np.int64)
    if (weights == weights[0]).all():
        return block
    return Block((Factor(factor.attributes, factor.operator, weights),), block.scale, block.measure)


def _columns(domain: Domain, blocks: Sequence[Block], norm: int) -> FloatArray | None:
    """The column norms of every block over the joint cells of the attributes along which they differ, if some do and they are few."""
    parts = []
    for block in blocks:
        sums = {f.attributes[0]: column_sums(f.operator, f.weights**norm, norm).astype(float) ** (1 / norm) for f in block.factors}
        parts.append({one: own if own.min() < own.max() else own[:1] for one, own in sums.items()})
    names = [one for one in domain.names if any(len(own.get(one, ())) > 1 for own in parts)]
    cells = math.prod(domain.kind(one).size for one in names)
    if not names or not (cells <= _MOST_COLUMNS and cells * len(blocks) <= _MOST_ENTRIES):
        return None
    columns = np.empty((len(blocks), cells))
    for row, block, own in zip(columns, blocks, parts, strict=True):
        cube = np.full([1] * len(names), float(domain.largest_value(block.measure)))
        for one, sums_along in own.items():
            cube = cube * (sums_along.reshape([-1 if one == other else 1 for other in names]) if one in names else sums_along[0])
        row[:] = np.broadcast_to(cube, [domain.kind(one).size for one in names]).reshape(-1)
    return columns


def _seconds(workload: Workload) -> float:
    """Estimated CPU seconds: of the programme for single queries, and of the inverses that the error bars need."""
    known = {operator for _, _, operator in workload.along if operator.rows > 1} - {
        Identity(workload.domain.kind(name).size) for name in workload.domain.names
    }
    entries = sum(operator.rows * operator.size for operator in known)
    alone = len(workload.products) == 1 and len(workload.products[0].operators) == 1 and entries <= _MOST_ENTRIES
    inverses = sum(0.25 * (min(operator.rows, operator.size) / 1024) ** 3 if operator.size <= MOST_DENSE else 0.3 for operator in known)
    return shortly(workload) + (1.8 * entries / 2**20 if alone else 0.0) + inverses + _joint_seconds(workload)


def _joint_seconds(workload: Workload) -> float:
    """Of the inverse over the joint cells, where an attribute is asked about in several ways."""
    ways = {(name, operator) for name, _, operator in workload.along}
    cells = math.prod(workload.domain.kind(name).size for name in workload.attributes)
    return 10 * (cells / 2880) ** 3 if len(ways) > len(workload.attributes) and cells <= MOST_DENSE else 0.0


WORKLOAD = Planner(
    name="workload",
    propose=measured_workload,
    measures="every query that is asked, as it is asked",
    made_for="few queries",
    limits="2^22 queries",
    seconds=_seconds,
    late=True,
)


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
