"""Non-negative tables that agree with each other, beside the unbiased ones: the nearest in the likelihood of the measurements.

In the residual basis the least squares estimate is u(tau), each with its own precision w(tau). Asked is the point nearest to it,

    minimise    1/2 sum over tau of w(tau) |v(tau) - u(tau)|^2
    subject to  every cell of every asked table >= 0,  v(empty) = max(u(empty), 0)

The total is fixed, as clipped noise would add to it otherwise. Multipliers y_T >= 0, one for each cell, give
v(tau) = u(tau) + 1/w(tau) * sum of the tau parts of the y_T. The dual is maximised by projected gradients with Nesterov's momentum,
restarted when it goes downhill. A table's step is 1 / max over tau of (number of tables with tau) / (w(tau) * cells summed over), which
bounds the curvature.

Cells still below 0 are lifted exactly: multiplying every component but the total by 1 - a mixes all tables with the uniform one, so they
still agree. That point is feasible, so its distance less the dual's value bounds what more rounds could gain.

Source: GReM-LNN (arXiv 2410.01091), with the true precisions; Nesterov 1983; O'Donoghue and Candes 2015 for the restart.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from leastnoise._accuracy import subsets
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._least_squares import Answer, Estimate
from leastnoise._estimate._stated import Names, PublicCounts, as_stated
from leastnoise._families import along_each
from leastnoise._workload import Product, marginals

_LEAST_ROUNDS, _MOST_ROUNDS, _ROUNDS_OF_CELLS = 30, 2000, 2**27


def residual_parts(cube: FloatArray, names: Names) -> dict[Names, FloatArray]:
    """Split a table into its residual components: contrasts along some attributes, sums along the others."""
    parts: dict[Names, FloatArray] = {(): np.asarray(cube, dtype=np.float64)}
    for name in names:
        split: dict[Names, FloatArray] = {}
        for tau, part in parts.items():
            axis = len(tau)  # the axes before it are those of tau, the ones behind are still to come
            total = part.sum(axis=axis)
            split[tau] = total
            split[*tau, name] = part - np.expand_dims(total / part.shape[axis], axis)
        parts = split
    return parts


def from_residual_parts(parts: Mapping[Names, FloatArray], names: Names, shape: Sequence[int]) -> FloatArray:
    """Return the table of given residual components, each spread evenly over the attributes it does not have."""
    answer = np.zeros(tuple(shape))
    for tau in subsets(names):
        spread = math.prod(n for name, n in zip(names, shape, strict=True) if name not in tau)
        answer += parts[tau].reshape([n if name in tau else 1 for name, n in zip(names, shape, strict=True)]) / spread
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class LocallyNonNegative:
    """Non-negative tables that agree, and bounds on how far they are from the best."""

    parts: Mapping[Names, FloatArray]
    sizes: Mapping[str, int]
    rounds: int
    shrunk: float
    distance: float
    gap: float
    public: tuple[PublicCounts, ...] = ()

    def marginal(self, names: Names) -> FloatArray:
        """Return the cells, at least 0, of a table that was asked for, or of a part of one."""

        def near(names: Names) -> FloatArray:  # what is left of rounding below 0 is far below any noise
            return np.maximum(from_residual_parts(self.parts, names, [self.sizes[name] for name in names]), 0.0)

        return as_stated(near, names, (), self.public)

    def estimate(self, product: Product) -> Answer:
        """Return the answers of a table's cells to a product on its attributes; their errors are not known."""
        unknown = np.full(product.shape, np.nan)
        return Answer(along_each(product.operators, self.marginal(product.attributes)), unknown, unknown)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Tables of one shape; for each pattern of tau ``indices`` has positions in the vector of components, shape (tables, cells)."""

    tables: int
    shape: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]  # axes of tau
    indices: tuple[IntArray, ...]
    step: FloatArray  # shape (tables,)

    def cells(self, vector: FloatArray) -> FloatArray:
        """Return the cells of all tables, shape (tables, *shape)."""
        answer = np.zeros((self.tables, *self.shape))
        for axes, index in zip(self.patterns, self.indices, strict=True):
            spread = math.prod(n for axis, n in enumerate(self.shape) if axis not in axes)
            answer += vector[index].reshape(-1, *(n if axis in axes else 1 for axis, n in enumerate(self.shape))) / spread
        return answer

    def add_parts(self, multipliers: FloatArray, vector: FloatArray) -> None:
        """Add the transpose of ``cells`` to a vector of components."""
        for axes, index in zip(self.patterns, self.indices, strict=True):
            part = multipliers
            for axis in range(len(self.shape) - 1, -1, -1):  # the mean over an axis, or what differs from it
                mean = part.mean(axis=axis + 1, keepdims=True)
                part = part - mean if axis in axes else mean
            np.add.at(vector, index.reshape(-1), part.reshape(-1))


def locally_non_negative(
    estimate: Estimate, tables: Iterable[Names], *, measure: str | None = None, rounds: int | None = None, tolerance: float = 1e-3
) -> LocallyNonNegative:
    """Return the non-negative tables that agree with each other and are nearest to the unbiased estimate in the likelihood of its noise."""
    # Post-processing. Every cell of every asked table is at least 0, tables agree on shared attributes up to rounding, and the total is the
    # estimate's (or 0). Not guaranteed: that a data set with non-negative cells exists which has all these tables; that a table or a sum of
    # cells is nearer to the truth than the unbiased one; that the answers are unbiased: cells near 0 are raised on average, others lowered.
    # Standard errors of the unbiased answers do not apply.
    # Where the estimate has no negative cell it is returned as it is, after no rounds. An estimated total of at most 0 gives zeros.
    asked, domain = list(dict.fromkeys(tables)), estimate.observation.measurements.domain
    wide = [names for names in asked if not any(set(names) < set(other) for other in asked)]
    unbiased: dict[Names, FloatArray] = {}
    for names in wide:
        for tau, part in residual_parts(estimate.marginal(names, measure), names).items():
            unbiased.setdefault(tau, part)
    sizes = {name: domain.kind(name).size for names in wide for name in names}
    near = nearest_tables(unbiased, residual_precisions(estimate, unbiased, measure), sizes, wide, rounds, tolerance)
    return replace(near, public=estimate.public if measure is None else ())


def residual_precisions(estimate: Estimate, parts: Mapping[Names, FloatArray], measure: str | None) -> dict[Names, float]:
    """Return the dimension of every component over its mean squared error: its precision, if all strategies are identities."""
    # The components of a table are orthogonal, so its summed variance is the sum of theirs over the cells that each is spread over.
    domain = estimate.observation.measurements.domain
    spread: dict[Names, float] = {}
    precision: dict[Names, float] = {}
    for tau, part in parts.items():  # subsets come before the sets that contain them
        product = marginals(domain, ways=len(tau), of=tau, sum=measure).products[0]
        inside = sum(spread[smaller] * parts[smaller].size / part.size for smaller in subsets(tau) if smaller != tau)
        spread[tau] = max(float((estimate.estimate(product).noise_std ** 2).sum()) - inside, 0.0)
        dimension = math.prod(n - 1 for n in part.shape)
        precision[tau] = dimension / spread[tau] if spread[tau] > 0 else 0.0
    return precision


def _groups(wide: Sequence[Names], sizes: Mapping[str, int], indices: Mapping[Names, IntArray], variance: FloatArray) -> list[_Group]:
    """Collect the widest tables by shape."""
    containing: dict[Names, int] = {}
    by_shape: dict[tuple[int, ...], list[Names]] = {}
    for names in wide:
        by_shape.setdefault(tuple(sizes[name] for name in names), []).append(names)
        for tau in subsets(names):
            containing[tau] = containing.get(tau, 0) + 1
    groups = []
    for shape, members in by_shape.items():
        patterns = tuple(axes for size in range(len(shape) + 1) for axes in combinations(range(len(shape)), size))
        taken = tuple(np.stack([indices[tuple(names[axis] for axis in axes)] for names in members]) for axes in patterns)
        curvature = np.full(len(members), np.finfo(float).tiny)
        for axes, index in zip(patterns, taken, strict=True):
            spread = math.prod(n for axis, n in enumerate(shape) if axis not in axes)
            count = np.array([containing[tuple(names[axis] for axis in axes)] for names in members])
            curvature = np.maximum(curvature, count * variance[index[:, 0]] / spread)
        groups.append(_Group(len(members), shape, patterns, taken, 1 / curvature))
    return groups


def nearest_tables(
    parts: Mapping[Names, FloatArray],
    precision: Mapping[Names, float],
    sizes: Mapping[str, int],
    wide: list[Names],
    rounds: int | None = None,
    tolerance: float = 1e-3,
) -> LocallyNonNegative:
    """Return the non-negative tables that agree with each other, nearest to residual components of given precisions; their total stays.

    ``rounds`` is the most, and None for as many as take a bounded time.
    """
    total = max(float(parts[()]), 0.0)
    parts = {**parts, (): np.array(total)}
    if total == 0:
        distance = 0.5 * sum(precision[tau] * float((part**2).sum()) for tau, part in parts.items())
        return LocallyNonNegative({tau: np.zeros(part.shape) for tau, part in parts.items()}, sizes, 0, 1.0, distance, 0.0)
    if rounds is None:
        cells = sum(math.prod(sizes[name] for name in names) for names in wide)
        rounds = max(_LEAST_ROUNDS, min(_MOST_ROUNDS, _ROUNDS_OF_CELLS // cells))
    starts = np.cumsum([0, *(part.size for part in parts.values())])
    indices = {tau: np.arange(start, start + part.size) for (tau, part), start in zip(parts.items(), starts, strict=False)}
    unbiased = np.concatenate([part.reshape(-1) for part in parts.values()])
    variance = np.zeros(len(unbiased))  # 0 keeps the total, and components of attributes with one value, where they are
    for tau, index in indices.items():
        if tau and precision[tau] > 0:
            variance[index] = 1 / precision[tau]
    near, done, share, distance, bound = _climb(_groups(wide, sizes, indices, variance), unbiased, variance, (total, rounds, tolerance))
    gap = max(0.0, 1 - bound / distance) if distance > 0 else 0.0
    return LocallyNonNegative(
        {tau: near[indices[tau]].reshape(part.shape) for tau, part in parts.items()}, sizes, done, share, distance, gap
    )


def _climb(
    groups: list[_Group], unbiased: FloatArray, variance: FloatArray, bounds: tuple[float, int, float]
) -> tuple[FloatArray, int, float, float, float]:
    """Maximise the dual until tables need little shrinking and the gap is small.

    Returns:
        The best feasible point seen, the rounds, by how much it was shrunk, its distance, and the greatest lower bound on the distance.
    """
    total, rounds, tolerance = bounds
    free = variance > 0

    def distance_of(vector: FloatArray) -> float:
        """Return half the squared distance from the unbiased components, in units of their variances."""
        return 0.5 * float(((vector - unbiased)[free] ** 2 / variance[free]).sum())

    def feasible(vector: FloatArray, cells: list[FloatArray]) -> tuple[float, float, FloatArray]:
        """Mix with the least share of the uniform table that lifts every cell to 0."""
        lowest = [(float(values.min()), total / math.prod(group.shape)) for group, values in zip(groups, cells, strict=True)]
        share = max([0.0, *(-low / (even - low) for low, even in lowest if low < 0)])
        lifted = np.append(total, (vector * (1 - share))[1:])
        return distance_of(lifted), share, lifted

    def primal(multipliers: list[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
        """Return the components and the tables that multipliers lead to."""
        pull = np.zeros_like(unbiased)
        for group, multiplier in zip(groups, multipliers, strict=True):
            group.add_parts(multiplier, pull)
        vector = unbiased + variance * pull
        return vector, [group.cells(vector) for group in groups]

    multipliers = [np.zeros((group.tables, *group.shape)) for group in groups]
    ahead, momentum = multipliers, 1.0
    cells = [group.cells(unbiased) for group in groups]
    nearest, share, best = feasible(unbiased, cells)
    bound, done = 0.0, 0
    while done < rounds and not (share <= tolerance and nearest - bound <= tolerance * nearest):
        done += 1
        steps = [group.step.reshape(-1, *[1] * len(group.shape)) for group in groups]
        fresh = [np.maximum(point - step * values, 0.0) for point, step, values in zip(ahead, steps, cells, strict=True)]
        if sum(float((values * (new - old)).sum()) for values, new, old in zip(cells, fresh, multipliers, strict=True)) > 0:
            momentum = 1.0  # the gradient and the move disagree
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = [new + (momentum - 1) / following * (new - old) for new, old in zip(fresh, multipliers, strict=True)]
        multipliers, momentum = fresh, following
        if done % 10 == 0 or done == rounds:
            vector, cells = primal(multipliers)
            # The dual's value at y: the distance of its own primal point less the multipliers' pull on the cells.
            bound = max(bound, distance_of(vector) - sum(float((y * x).sum()) for y, x in zip(multipliers, cells, strict=True)))
            if (seen := feasible(vector, cells))[0] < nearest:
                nearest, share, best = seen
        cells = primal(ahead)[1]
    return best, done, share, nearest, bound
