"""Non-negative consistent tables with the largest likelihood.

The tables are published in addition to the unbiased tables.

In the residual basis the least squares estimate has a component u(tau) with the precision w(tau)
for each attribute set tau. The result is the point nearest to these components:

    minimise    1/2 sum over tau of w(tau) |v(tau) - u(tau)|^2
    subject to  every cell of every requested table >= 0,  v(empty) = max(u(empty), 0)

The total is fixed, because otherwise clipping negative noise would increase it. Multipliers y_T >=
0, one for each cell, give v(tau): it is u(tau) + 1/w(tau) * sum of the tau parts of the y_T.
L-BFGS-B maximises the dual function, whose gradient has the cells of the tables at v.

Cells that are still negative are corrected exactly: all components except the total are multiplied
by 1 - a. The multiplication mixes every table with the uniform table, so the tables stay
consistent.

Source: the method GReM-LNN (arXiv 2410.01091). The weights w(tau) are the true precisions.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np

from leastnoise._error import subsets
from leastnoise._estimation._least_squares import Answer, Estimate
from leastnoise._estimation._public_facts import Names, PublicCounts, apply_public_facts
from leastnoise._families import apply_along_axes
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._workload import Product, table_of_all_cells

_LEAST_ROUNDS = 30  # iterations of the projection, at least
_MOST_ROUNDS = 2000  # iterations of the projection
_ROUNDS_OF_CELLS = 2**27  # iterations times components
_LEAST_GAIN = 1e-9  # relative gain of a round below which the iteration ends


def residual_parts(table: FloatArray, names: Names) -> dict[Names, FloatArray]:
    """Return the residual components of a table, keyed by attribute set.

    A component consists of contrasts along the attributes of its set; the other attributes are
    summed.
    """
    parts: dict[Names, FloatArray] = {(): np.asarray(table, dtype=np.float64)}
    for name in names:
        split: dict[Names, FloatArray] = {}
        for tau, part in parts.items():
            axis = len(tau)  # the axes before it belong to tau; the axes after it follow
            total = part.sum(axis=axis)
            split[tau] = total
            split[*tau, name] = part - np.expand_dims(total / part.shape[axis], axis)
        parts = split
    return parts


def from_residual_parts(
    components: Mapping[Names, FloatArray], names: Names, shape: Sequence[int]
) -> FloatArray:
    """Return the table with the given residual components.

    Each component is divided evenly among the cells of attributes outside its set.
    """
    answer = np.zeros(tuple(shape))
    for tau in subsets(names):
        merged_cells = math.prod(n for name, n in zip(names, shape, strict=True) if name not in tau)
        answer += (
            components[tau].reshape(
                [n if name in tau else 1 for name, n in zip(names, shape, strict=True)]
            )
            / merged_cells
        )
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class ConsistentNonNegativeTables:
    """Non-negative tables that agree on their common marginals."""

    components: Mapping[Names, FloatArray]
    sizes: Mapping[str, int]
    public: tuple[PublicCounts, ...] = ()

    def marginal(self, names: Names) -> FloatArray:
        """Return the non-negative cells of a requested table or its marginal.

        The table must have been requested.
        """

        def clipped_cells(names: Names) -> FloatArray:
            """Return the cells from the residual components, clipped at 0."""
            # Negative cells are floating-point errors, which are much smaller than any noise.
            return np.maximum(
                from_residual_parts(self.components, names, [self.sizes[name] for name in names]),
                0.0,
            )

        return apply_public_facts(clipped_cells, names, (), self.public)

    def estimate(self, product: Product) -> Answer:
        """Answer the queries of a product from the non-negative cells.

        The errors of these answers are not known.
        """
        unknown = np.full(product.shape, np.nan)
        return Answer(
            apply_along_axes(product.operators, self.marginal(product.attributes)), unknown, unknown
        )


@dataclass(frozen=True, slots=True, eq=False)
class _EqualShapeTables:
    """Tables with the same shape, for joint computation.

    A pattern is a set of axes: the attributes of a component. For each pattern, ``indices`` has the
    positions in the vector of components, shape (tables, cells).
    """

    table_count: int
    shape: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]  # axes of tau
    indices: tuple[IntArray, ...]

    def cells(self, vector: FloatArray) -> FloatArray:
        """Return the cells of the tables from components, (tables, *shape)."""
        answer = np.zeros((self.table_count, *self.shape))
        for axes, index in zip(self.patterns, self.indices, strict=True):
            merged_cells = math.prod(n for axis, n in enumerate(self.shape) if axis not in axes)
            answer += (
                vector[index].reshape(
                    -1, *(n if axis in axes else 1 for axis, n in enumerate(self.shape))
                )
                / merged_cells
            )
        return answer

    def add_parts(self, multipliers: FloatArray, vector: FloatArray) -> None:
        """Add the components of multipliers to ``vector``, in place.

        The function is the transpose of ``cells``.
        """
        for axes, index in zip(self.patterns, self.indices, strict=True):
            part = multipliers
            # The mean over an axis, or the deviations from it.
            for axis in range(len(self.shape) - 1, -1, -1):
                mean = part.mean(axis=axis + 1, keepdims=True)
                if axis in axes:
                    part = part - mean
                else:
                    part = mean
            np.add.at(vector, index.reshape(-1), part.reshape(-1))


def locally_non_negative(
    estimate: Estimate,
    tables: Iterable[Names],
    *,
    measure: str | None = None,
    max_rounds: int = _MOST_ROUNDS,
) -> ConsistentNonNegativeTables:
    """Return the non-negative consistent tables of maximum likelihood.

    The likelihood is based on the noise of the unbiased estimate.
    """
    # Post-processing. Every cell of every requested table is at least 0. Tables agree on shared
    # attributes up to rounding. The total is the estimated total (or 0). Not guaranteed: that a
    # data set with non-negative cells exists that has all these tables; that a table or a sum of
    # cells is nearer to the truth than its unbiased estimate; that the answers are unbiased. Cells
    # near 0 are raised on average, other cells are lowered. Standard errors of the unbiased answers
    # do not apply. If the estimate has no negative cell, it is returned unchanged, without any
    # round. An estimated total of at most 0 gives zeros.
    requested = list(dict.fromkeys(tables))
    domain = estimate.observation.measurements.domain
    wide = [names for names in requested if not _is_contained(names, requested)]
    unbiased: dict[Names, FloatArray] = {}
    for names in wide:
        for tau, part in residual_parts(estimate.marginal(names, measure), names).items():
            unbiased.setdefault(tau, part)
    sizes = {name: domain.kind(name).size for name in chain.from_iterable(wide)}
    nearest = nearest_tables(
        unbiased, residual_precisions(estimate, unbiased, measure), sizes, wide, max_rounds
    )
    return replace(nearest, public=estimate.public if measure is None else ())


def residual_precisions(
    estimate: Estimate, parts: Mapping[Names, FloatArray], measure: str | None
) -> dict[Names, float]:
    """Return the precision (1 / variance) of every residual component.

    The precision is the dimension of the component, divided by its summed variance. The result is
    exact if all strategies are identities.
    """
    # The components of a table are orthogonal, and each is spread over the cells of the table. So
    # the summed variance of a table is the sum of the variances of its components.
    domain = estimate.observation.measurements.domain
    spread_variances: dict[Names, float] = {}
    precision: dict[Names, float] = {}
    for tau, part in parts.items():  # subsets come before the sets that contain them
        product = table_of_all_cells(domain, tau, measure)
        inside = sum(
            spread_variances[smaller] * parts[smaller].size / part.size
            for smaller in subsets(tau)
            if smaller != tau
        )
        spread_variances[tau] = max(
            float((estimate.estimate(product).noise_std ** 2).sum()) - inside, 0.0
        )
        dimension = math.prod(n - 1 for n in part.shape)
        precision[tau] = dimension / spread_variances[tau] if spread_variances[tau] > 0 else 0.0
    return precision


def _select(names: Names, axes: Iterable[int]) -> Names:
    """Return the attributes of a table along some of its axes."""
    return tuple(names[axis] for axis in axes)


def _is_contained(names: Names, tables: Sequence[Names]) -> bool:
    """Return whether a larger table contains all attributes of a table."""
    return any(set(names) < set(other) for other in tables)


def _groups(
    maximal_tables: Sequence[Names], sizes: Mapping[str, int], indices: Mapping[Names, IntArray]
) -> list[_EqualShapeTables]:
    """Return the tables in groups of equal shape, for joint computation."""
    by_shape: dict[tuple[int, ...], list[Names]] = {}
    for names in maximal_tables:
        shape = tuple(sizes[name] for name in names)
        by_shape.setdefault(shape, []).append(names)
    groups = []
    for shape, members in by_shape.items():
        patterns = []
        pattern_indices = []
        for size in range(len(shape) + 1):
            for axes in combinations(range(len(shape)), size):
                parts = [_select(names, axes) for names in members]
                patterns.append(axes)
                pattern_indices.append(np.stack([indices[part] for part in parts]))
        groups.append(
            _EqualShapeTables(len(members), shape, tuple(patterns), tuple(pattern_indices))
        )
    return groups


def nearest_tables(
    components: Mapping[Names, FloatArray],
    precisions: Mapping[Names, float],
    sizes: Mapping[str, int],
    maximal_tables: list[Names],
    max_rounds: int = _MOST_ROUNDS,
) -> ConsistentNonNegativeTables:
    """Return the non-negative consistent tables nearest to some components.

    Distances are weighted by the precisions; the total does not change.

    If there are many cells, fewer iterations are run, to limit the time.
    """
    total = max(float(components[()]), 0.0)
    if total == 0:
        return ConsistentNonNegativeTables(
            {tau: np.zeros(part.shape) for tau, part in components.items()}, sizes
        )
    components = {**components, (): np.array(total)}
    starts = np.cumsum([0, *(part.size for part in components.values())])
    indices = {
        tau: np.arange(start, start + part.size)
        for (tau, part), start in zip(components.items(), starts, strict=False)
    }
    unbiased = np.concatenate([part.reshape(-1) for part in components.values()])
    # A variance of 0 fixes the total, and components of attributes with one value.
    variance = np.zeros(len(unbiased))
    for tau, index in indices.items():
        if tau and precisions[tau] > 0:
            variance[index] = 1 / precisions[tau]
    nearest = _nearest_components(
        _groups(maximal_tables, sizes, indices), unbiased, variance, total, max_rounds
    )
    return ConsistentNonNegativeTables(
        {tau: nearest[index].reshape(components[tau].shape) for tau, index in indices.items()},
        sizes,
    )


def _nearest_components(
    groups: Sequence[_EqualShapeTables],
    unbiased: FloatArray,
    variances: FloatArray,
    total: float,
    max_rounds: int,
) -> FloatArray:
    """Return the nearest components whose tables have no negative cell."""
    from scipy.optimize import Bounds, minimize  # slow to import

    lengths = [group.table_count * math.prod(group.shape) for group in groups]

    def cells(vector: FloatArray) -> FloatArray:
        """Return the cells of all tables in one flat array."""
        return np.concatenate([group.cells(vector).reshape(-1) for group in groups])

    def change_of_components(multipliers: FloatArray) -> FloatArray:
        """Return the change of the components that multipliers of the cells cause."""
        pull = np.zeros_like(unbiased)
        for group, of_group in zip(
            groups, np.split(multipliers, np.cumsum(lengths)[:-1]), strict=True
        ):
            group.add_parts(of_group.reshape(group.table_count, *group.shape), pull)
        return variances * pull

    def negative_dual(multipliers: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the dual function, and minus its gradient."""
        slopes = cells(unbiased + change_of_components(multipliers))
        # The squared distance that multipliers cause is half the inner product of the multipliers
        # and the change of the cells.
        return float(multipliers @ (slopes + before)) / 2, slopes

    before = cells(unbiased)
    vector = unbiased
    if before.min() < 0:
        rounds = min(max_rounds, max(_LEAST_ROUNDS, _ROUNDS_OF_CELLS // len(before)))
        descent = minimize(
            negative_dual,
            np.zeros(len(before)),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(0, np.inf),
            options={"maxiter": rounds, "ftol": _LEAST_GAIN, "maxcor": 5},
        )
        vector = unbiased + change_of_components(descent.x)
    # The smallest part of the uniform table that makes all cells non-negative.
    even_estimate = np.repeat([total / math.prod(group.shape) for group in groups], lengths)
    low = np.minimum(cells(vector), 0.0)
    share = float(np.max(-low / (even_estimate - low)))
    return np.append(total, ((1 - share) * vector)[1:])
