"""Non-negative consistent tables of the largest likelihood.

They are published together with the unbiased tables.

In the residual basis the least squares estimate has a component u(tau) with the precision w(tau)
for each attribute set tau. The result is the point nearest to these components:

    minimise    1/2 sum over tau of w(tau) |v(tau) - u(tau)|^2
    subject to  every cell of every requested table >= 0,  v(empty) = max(u(empty), 0)

The total is fixed because clipped noise would add to it otherwise. Multipliers y_T >= 0, one for
each cell, give v(tau) = u(tau) + 1/w(tau) * sum of the tau parts of the y_T. The dual, whose slopes
are the cells at v, is maximised by L-BFGS-B.

Cells still below 0 are lifted exactly: multiplying every component except the total by 1 - a mixes
all tables with uniform tables, so they still agree.

Source: GReM-LNN (arXiv 2410.01091), with the true precisions.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

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
_EXACT = 1e-9  # relative gain of a round below which the iteration ends


def residual_parts(cube: FloatArray, names: Names) -> dict[Names, FloatArray]:
    """Return the residual components of a table, by attribute set.

    A component has contrasts along the attributes of its set and sums along the others.
    """
    parts: dict[Names, FloatArray] = {(): np.asarray(cube, dtype=np.float64)}
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
    parts: Mapping[Names, FloatArray], names: Names, shape: Sequence[int]
) -> FloatArray:
    """Return the table whose residual components are ``parts``.

    Each component is spread evenly over the attributes that it does not have.
    """
    answer = np.zeros(tuple(shape))
    for tau in subsets(names):
        merged_cells = math.prod(n for name, n in zip(names, shape, strict=True) if name not in tau)
        answer += (
            parts[tau].reshape(
                [n if name in tau else 1 for name, n in zip(names, shape, strict=True)]
            )
            / merged_cells
        )
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class LocallyNonNegative:
    """Non-negative tables that agree on their common marginals."""

    parts: Mapping[Names, FloatArray]
    sizes: Mapping[str, int]
    public: tuple[PublicCounts, ...] = ()

    def marginal(self, names: Names) -> FloatArray:
        """Return the non-negative cells of a table, or of a marginal of a table.

        The table must have been requested.
        """

        def near(
            names: Names,
        ) -> FloatArray:  # clips negative rounding errors, which are far below any noise
            return np.maximum(
                from_residual_parts(self.parts, names, [self.sizes[name] for name in names]), 0.0
            )

        return apply_public_facts(near, names, (), self.public)

    def estimate(self, product: Product) -> Answer:
        """Return the answers of non-negative cells to a product.

        Their errors are not known.
        """
        unknown = np.full(product.shape, np.nan)
        return Answer(
            apply_along_axes(product.operators, self.marginal(product.attributes)), unknown, unknown
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Tables of one shape.

    A pattern gives the axes that belong to tau. For each pattern, ``indices`` has the positions in
    the vector of components, shape (tables, cells).
    """

    tables: int
    shape: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]  # axes of tau
    indices: tuple[IntArray, ...]

    def cells(self, vector: FloatArray) -> FloatArray:
        """Return the cells of all tables, shape (tables, *shape)."""
        answer = np.zeros((self.tables, *self.shape))
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
        """Add the transpose of ``cells``, applied to multipliers, to a vector."""
        for axes, index in zip(self.patterns, self.indices, strict=True):
            part = multipliers
            for axis in range(
                len(self.shape) - 1, -1, -1
            ):  # the mean over an axis, or the deviations from it
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
    rounds: int = _MOST_ROUNDS,
) -> LocallyNonNegative:
    """Return the non-negative consistent tables of largest likelihood.

    The likelihood is that of the noise of the unbiased estimate.
    """
    # Post-processing. Every cell of every requested table is at least 0, tables agree on shared
    # attributes up to rounding, and the total is the estimated total (or 0). Not guaranteed: that
    # any data set with non-negative cells has all these tables; that a table or a sum of cells is
    # nearer to the truth than its unbiased estimate; that the answers are unbiased. Cells near 0
    # are raised on average, other cells are lowered. Standard errors of the unbiased answers do not
    # apply. If the estimate has no negative cell, it is returned unchanged, without any round. An
    # estimated total of at most 0 gives zeros.
    requested = list(dict.fromkeys(tables))
    domain = estimate.observation.measurements.domain
    wide = [names for names in requested if not any(set(names) < set(other) for other in requested)]
    unbiased: dict[Names, FloatArray] = {}
    for names in wide:
        for tau, part in residual_parts(estimate.marginal(names, measure), names).items():
            unbiased.setdefault(tau, part)
    sizes = {name: domain.kind(name).size for names in wide for name in names}
    nearest = nearest_tables(
        unbiased, residual_precisions(estimate, unbiased, measure), sizes, wide, rounds
    )
    return replace(nearest, public=estimate.public if measure is None else ())


def residual_precisions(
    estimate: Estimate, parts: Mapping[Names, FloatArray], measure: str | None
) -> dict[Names, float]:
    """Return the precision of every residual component.

    It is the dimension of the component over its summed variance; this is exact if all strategies
    are identities.
    """
    # The components of a table are orthogonal, so the summed variance of a table is the sum of the
    # variances of its components, each spread over the cells of the table.
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


def _groups(
    wide: Sequence[Names], sizes: Mapping[str, int], indices: Mapping[Names, IntArray]
) -> list[_Group]:
    """Return the tables that no other table contains, grouped by shape."""
    by_shape: dict[tuple[int, ...], list[Names]] = {}
    for names in wide:
        by_shape.setdefault(tuple(sizes[name] for name in names), []).append(names)
    groups = []
    for shape, members in by_shape.items():
        patterns = tuple(
            axes for size in range(len(shape) + 1) for axes in combinations(range(len(shape)), size)
        )
        pattern_indices = tuple(
            np.stack([indices[tuple(names[axis] for axis in axes)] for names in members])
            for axes in patterns
        )
        groups.append(_Group(len(members), shape, patterns, pattern_indices))
    return groups


def nearest_tables(
    parts: Mapping[Names, FloatArray],
    precision: Mapping[Names, float],
    sizes: Mapping[str, int],
    wide: list[Names],
    rounds: int = _MOST_ROUNDS,
) -> LocallyNonNegative:
    """Return the non-negative consistent tables nearest to components.

    Distances are weighted by the precisions; the total does not change.

    If there are many cells, fewer than ``rounds`` rounds are made, so that the time is bounded.
    """
    total = max(float(parts[()]), 0.0)
    if total == 0:
        return LocallyNonNegative({tau: np.zeros(part.shape) for tau, part in parts.items()}, sizes)
    parts = {**parts, (): np.array(total)}
    starts = np.cumsum([0, *(part.size for part in parts.values())])
    indices = {
        tau: np.arange(start, start + part.size)
        for (tau, part), start in zip(parts.items(), starts, strict=False)
    }
    unbiased = np.concatenate([part.reshape(-1) for part in parts.values()])
    variance = np.zeros(
        len(unbiased)
    )  # a variance of 0 fixes the total, and components of attributes with one value
    for tau, index in indices.items():
        if tau and precision[tau] > 0:
            variance[index] = 1 / precision[tau]
    nearest = _nearest(_groups(wide, sizes, indices), unbiased, variance, (total, rounds))
    return LocallyNonNegative(
        {tau: nearest[index].reshape(parts[tau].shape) for tau, index in indices.items()}, sizes
    )


def _nearest(
    groups: Sequence[_Group], unbiased: FloatArray, variance: FloatArray, bounds: tuple[float, int]
) -> FloatArray:
    """Return the nearest components for which all cells are non-negative."""
    from scipy.optimize import Bounds, minimize  # slow to import

    total, rounds = bounds
    lengths = [group.tables * math.prod(group.shape) for group in groups]

    def cells(vector: FloatArray) -> FloatArray:
        """Return the cells of all tables, one after the other."""
        return np.concatenate([group.cells(vector).reshape(-1) for group in groups])

    def pulled(multipliers: FloatArray) -> FloatArray:
        """Return the change of the components by the multipliers of all cells."""
        pull = np.zeros_like(unbiased)
        for group, of_group in zip(
            groups, np.split(multipliers, np.cumsum(lengths)[:-1]), strict=True
        ):
            group.add_parts(of_group.reshape(group.tables, *group.shape), pull)
        return variance * pull

    def dual(multipliers: FloatArray) -> tuple[float, FloatArray]:
        """Return the dual function and its slopes, both with a minus sign."""
        slopes = cells(unbiased + pulled(multipliers))
        # The distance that multipliers cause is half the product of the multipliers with the change
        # of the cells.
        return float(multipliers @ (slopes + before)) / 2, slopes

    before = cells(unbiased)
    vector = unbiased
    if before.min() < 0:
        rounds = min(rounds, max(_LEAST_ROUNDS, _ROUNDS_OF_CELLS // len(before)))
        descent = minimize(
            dual,
            np.zeros(len(before)),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(0, np.inf),
            options={"maxiter": rounds, "ftol": _EXACT, "maxcor": 5},
        )
        vector = unbiased + pulled(descent.x)
    # The least share of the uniform table that lifts every cell to 0.
    even_estimate = np.repeat([total / math.prod(group.shape) for group in groups], lengths)
    low = np.minimum(cells(vector), 0.0)
    share = float(np.max(-low / (even_estimate - low)))
    return np.append(total, ((1 - share) * vector)[1:])
