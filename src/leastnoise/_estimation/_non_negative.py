"""Answers that look like counts: non-negative, monotone, integers.

These answers are biased. They are published in addition to the unbiased answers, never instead of
them.

A table without levels is projected on a convex set. If the truth lies in the set, the projection is
no farther from the truth than the unbiased table is, in Euclidean distance. Sums of cells do not
have this guarantee. A marginal keeps its total, because clipping would otherwise increase the
total.

Tables with levels are made to agree from the total down, in time linear in the number of cells. The
finest table has, along each attribute, either the cells or the groups of a level. All other tables
are sums of it.
The finest table is estimated attribute by attribute and level by level. The estimates of the groups
within a larger group are moved to the nearest numbers (least squares) that add up to the number of
the larger group. If requested, all numbers are at least 0. Whole numbers are computed as
differences of rounded cumulative sums. So each number changes by less than one, and the sum of any
run of neighbours also changes by less than one. All tables are sums of the finest table, so they
agree.

The cells of the joint table come from non-negative least squares: no cell is below 0, and the cells
explain all measurements best.

    minimise    f(x) = 1/2 x^T M x - b^T x
    subject to  x >= 0, the sum of x fixed to its unbiased estimate

with M and b as in `JointBlocks`. Cells come closer to the truth, but sums of cells may not. The
total is fixed: if the measurements determine it only weakly, clipping noise below 0 would otherwise
increase it. The method is projected gradients in the metric of the diagonal of M, with Nesterov's
momentum. The momentum restarts where it points uphill. The method stops at a small duality gap.
With g the gradient at x, f(x) - f* is at most x^T g - (sum) * min g, the linear bound on the
simplex. Every answer q x then differs from the answer of the exact minimiser by at most sqrt(2
(f(x) - f*)) times the unbiased standard error of q x.

Source: projection on a simplex: Held, Wolfe, Crowder 1974, Michelot 1986; isotonic regression on
    prefix sums: Hay et al. 2010; Li et al., VLDB Journal 2015 (non-negative inference); Nesterov
    1983; O'Donoghue and Candes 2015 for the restart.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leastnoise._error import Covariance, JointBlocks, equations, measure_covariance
from leastnoise._estimation._least_squares import Answer, Estimator
from leastnoise._estimation._public_facts import (
    PublicCounts,
    replace_groups,
    round_to_public_sums,
    scale_to_public_sums,
)
from leastnoise._families import apply_along_axes, nested_levels, partition_groups
from leastnoise._trusted.check import refuse
from leastnoise._trusted.check.arrays import Array, BoolArray, FloatArray, IntArray
from leastnoise._trusted.linop import Operator, apply_transpose
from leastnoise._trusted.linop import non_negative as has_no_negative_entry
from leastnoise._trusted.measurements import (
    Measurements,
    Observation,
    ball_count_numerators,
    draw_tables,
)
from leastnoise._workload import Product, QuerySet, identity, prefix

GAP = 1e-4  # duality gap of the objective at which a solution is accepted
MOST_CELLS = 2**20  # maximum number of joint cells
REPETITIONS = 50
"""The number of simulated releases from which the errors of an answer are computed."""
_MOST_STEPS = 20000  # maximum number of steps of the accelerated gradient method
_CHECK_EVERY = 25  # steps between computations of the gap
_SEED = 20240301  # seed of simulated releases, so that equal releases state equal errors


@dataclass(frozen=True, slots=True, eq=False)
class ConsistentCells:
    """The cells of the finest table; the other tables are sums of its cells."""

    finest: Product
    cells: Array

    def values(self, product: Product) -> Array:
        """Return the answers to a product as sums of the cells.

        Every query of the product is a sum of groups of the finest table.
        """
        attributes = self.finest.attributes
        without = tuple(
            axis for axis, name in enumerate(attributes) if name not in product.attributes
        )
        groups = dict(zip(attributes, groups_of_cells(self.finest), strict=True))
        values = self.cells.sum(axis=without)
        for axis, name in enumerate(product.attributes):
            values = _at_first_cells(values, axis, groups[name])
        return apply_along_axes(product.operators, values)


def groups_of_cells(product: Product) -> tuple[IntArray, ...]:
    """Return, for each attribute of a table, the group number of each cell.

    The queries of the table must partition the cells.
    """
    groups = [partition_groups(operator) for operator in product.operators]
    return tuple(group for group in groups if group is not None)


def _at_first_cells(values: Array, axis: int, groups: IntArray) -> Array:
    """Return an array with each group's value at its first cell, and 0 elsewhere."""
    if values.shape[axis] == len(groups):
        return values
    _, first = np.unique(groups, return_index=True)
    shape = (*values.shape[:axis], len(groups), *values.shape[axis + 1 :])
    cells = np.zeros(shape, dtype=values.dtype)
    np.moveaxis(cells, axis, 0)[first] = np.moveaxis(values, axis, 0)
    return cells


def finest_table(products: Sequence[Product], *, only_levels: bool = True) -> Product | None:
    """Return the table from which all other tables can be summed, or None.

    Along every attribute, this table has cells, or groups that divide the cells, such as the groups
    of a level.

    Args:
        products: the tables.
        only_levels: if True, return None if no table has levels.
    """
    if only_levels and all(product.keys == product.attributes for product in products):
        return None
    divides: dict[int, bool] = {}
    for product in products:
        for operator in product.operators:
            if id(operator) not in divides:
                groups = partition_groups(operator)
                divides[id(operator)] = (
                    groups is not None and len(np.unique(groups)) == operator.rows
                )
    candidates = [
        product
        for product in products
        if not product.of_units and all(divides[id(operator)] for operator in product.operators)
    ]
    finest = max(candidates, key=lambda product: product.rows, default=None)
    if finest is None:
        return None
    groups_along = dict(zip(finest.attributes, groups_of_cells(finest), strict=True))
    checked: dict[tuple[str, int], bool] = {}
    for product in products:
        for name, operator in zip(product.attributes, product.operators, strict=True):
            if (name, id(operator)) not in checked:
                checked[name, id(operator)] = name in groups_along and is_sum_of_groups(
                    operator, groups_along[name]
                )
    if all(checked.values()):
        return finest
    return None


def is_sum_of_groups(operator: Operator, groups: IntArray) -> bool:
    """Return whether each query has equal coefficients within every group."""
    if int(groups.max()) + 1 == len(groups):
        return True
    # Two different columns have the same product with random numbers with probability 2^-30.
    numbers = np.random.default_rng(_SEED).integers(1, 2**30, operator.rows)
    columns = apply_transpose(operator, numbers)
    _, first = np.unique(groups, return_index=True)
    return bool(np.array_equal(columns, columns[first][groups]))


def public_sums_on(
    finest: Product, public: Sequence[PublicCounts]
) -> tuple[PublicCounts, ...] | None:
    """Return public counts as sums of the finest groups; None if they overlap.

    The result is None if a group of the finest table overlaps a public group only in part.
    """
    groups_along = groups_of_cells(finest)
    if len(groups_along) < len(finest.attributes):
        return None
    groups = dict(zip(finest.attributes, groups_along, strict=True))
    mapped = [replace_groups(table.sums, groups) for table in public]
    if any(sums is None for sums in mapped):
        return None
    return tuple(
        replace(table, sums=sums)
        for table, sums in zip(public, mapped, strict=True)
        if sums is not None
    )


def make_consistent(
    estimator: Estimator,
    products: Sequence[Product],
    finest: Product,
    *,
    is_non_negative: bool,
    is_whole: bool,
) -> ConsistentCells:
    """Return cells of the finest table, made consistent from the total down."""
    paths = {name: [*levels_to_finest(finest, products, name)] for name in finest.attributes}
    cells = estimator.estimate(replace(finest, attributes=(), query_sets=())).values
    if is_non_negative:
        cells = np.maximum(cells, 0.0)
    if is_whole:
        cells = np.rint(cells)
    query_sets: dict[str, QuerySet] = {}
    for name in sorted(paths, key=lambda name_of: len(paths[name_of])):
        before = np.zeros(finest.domain.cells(name), dtype=np.int64)
        axis = sum(
            other in query_sets for other in finest.attributes[: finest.attributes.index(name)]
        )
        cells = np.expand_dims(cells, axis)
        for query_set, groups in paths[name]:
            query_sets[name] = query_set
            names = tuple(each for each in finest.attributes if each in query_sets)
            step = replace(
                finest, attributes=names, query_sets=tuple(query_sets[each] for each in names)
            )
            parents = np.empty(int(groups.max()) + 1, dtype=np.int64)
            parents[groups] = before
            values = np.moveaxis(estimator.estimate(step).values, axis, 0)
            cells = np.moveaxis(
                project_to_parent_sums(
                    values,
                    parents,
                    np.moveaxis(cells, axis, 0),
                    is_non_negative=is_non_negative,
                    is_whole=is_whole,
                ),
                0,
                axis,
            )
            before = groups
    return ConsistentCells(finest, cells.astype(np.int64) if is_whole else cells)


def levels_to_finest(
    finest: Product, products: Sequence[Product], name: str
) -> Iterator[tuple[QuerySet, IntArray]]:
    """Yield the levels along an attribute, from coarse to fine.

    Each level comes with an array: the group of every cell in this level. The last item is the
    groups of the finest table.

    If the levels do not nest, the groups of the finest table are the only item.
    """
    size = finest.domain.cells(name)
    requested_levels = {}
    position = finest.attributes.index(name)
    last_set = finest.query_sets[position]
    last = finest.operators[position]
    for product in products:
        requested_levels.update(
            {
                q: o
                for n, q, o in zip(
                    product.attributes, product.query_sets, product.operators, strict=True
                )
                if n == name
            }
        )
    requested_levels = {
        query_set: operator
        for query_set, operator in requested_levels.items()
        if partition_groups(operator) is not None
    }
    levels = nested_levels(size, requested_levels.values())
    if levels is not None:
        query_sets_by_level = {
            levels.level(operator): query_set for query_set, operator in requested_levels.items()
        }
        finest_level = levels.level(last) or 0
        for level in range(len(levels.groups) - 2, finest_level, -1):
            yield query_sets_by_level[level], levels.groups[level]
    yield last_set, groups_of_cells(finest)[position]


def project_to_parent_sums(
    values: FloatArray,
    parents: IntArray,
    sums: FloatArray,
    *,
    is_non_negative: bool,
    is_whole: bool,
) -> FloatArray:
    """Return the nearest values that add up to ``sums`` for each parent.

    ``parents`` has the index of the parent for each entry of the first axis.
    """
    order = np.argsort(parents, kind="stable")
    parents = parents[order]
    values = values[order]
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    is_positive = np.ones(values.shape, dtype=np.bool_)
    while True:
        number = np.add.reduceat(is_positive, starts, axis=0, dtype=np.int64)
        moved = (
            np.add.reduceat(np.where(is_positive, values, 0.0), starts, axis=0) - sums
        ) / np.maximum(number, 1)
        nearest = values - moved[parents]
        below = is_positive & (nearest <= 0.0)
        if not is_non_negative or not below.any():
            break
        is_positive &= ~below
    nearest = np.where(is_positive, nearest, 0.0)
    if is_whole:
        ends = np.append(starts[1:], len(parents)) - 1
        upto = np.cumsum(nearest, axis=0)
        rounded = np.floor(upto - (upto[starts] - nearest[starts])[parents] + 0.5)
        rounded[ends] = sums
        nearest = np.diff(rounded, axis=0, prepend=0.0)
        nearest[starts] = rounded[starts]
    result = np.empty_like(nearest)
    result[order] = nearest
    return result


def project_to_simplex(cells: FloatArray, total: float) -> FloatArray:
    """Return the nearest non-negative cells with the sum ``total``.

    The distance is Euclidean.
    """
    if not total > 0 or cells.size == 0:
        return np.zeros_like(cells, dtype=np.float64)
    return project_to_simplices(
        cells.reshape(-1, 1), np.ones((cells.size, 1)), np.array([total])
    ).reshape(cells.shape)


def project_to_simplices(
    cells: FloatArray, weights: FloatArray, sums: FloatArray, active_guess: BoolArray | None = None
) -> FloatArray:
    """Return the nearest non-negative columns with the given column sums.

    The distance has a weight for each cell; ``active_guess`` marks the cells that are expected to
    be positive.
    """
    # y = max(0, x - shift / weight). The sum of y is a convex, piecewise linear and decreasing
    # function of the shift. So Newton's method reaches the right shift from any set of cells. From
    # the second step on, each set of active cells lies within the previous set.
    inverse = 1 / weights
    target_sums = np.where(sums > 0, sums, 1.0)
    if active_guess is None:
        above = np.ones(cells.shape, dtype=np.bool_)
    else:
        above = active_guess | ~active_guess.any(axis=0)
    allowed: BoolArray | bool = True
    while True:
        counted = above.astype(np.float64)
        steps = (
            (np.einsum("ij,ij->j", cells, counted) - target_sums)
            / (inverse[:, 0] @ counted)
            * inverse
        )
        is_active = (cells > steps) & allowed
        is_active |= above & ~is_active.any(axis=0)  # if rounding leaves no active cell
        if np.array_equal(is_active, above):
            return np.where(sums > 0, np.maximum(cells - steps, 0.0), 0.0)
        above = allowed = is_active


def projection_method(product: Product) -> str:
    """Return the name of the method that makes a table non-negative.

    The name is ``marginal``, ``prefix`` or ``clip``; it is ``none`` if there is no projection.
    """
    if product.measure is not None and product.domain.measures[product.measure].low_units < 0:
        return "none"
    if product.is_marginal or _divides_by_levels(product):
        return "marginal"
    if [q for q in product.query_sets if q != identity()] == [prefix()]:
        return "prefix"
    if all(has_no_negative_entry(operator) for operator in product.operators):
        return "clip"
    return "none"


def _divides_by_levels(product: Product) -> bool:
    """Return whether a table divides each attribute into cells or one level."""
    return all(query_set.kind in ("identity", "level") for query_set in product.query_sets)


def monotone(answers: FloatArray, axis: int) -> FloatArray:
    """Return the nearest non-negative, non-decreasing answers along an axis.

    The distance is Euclidean.
    """
    from scipy.optimize import isotonic_regression

    lines = np.array(np.moveaxis(answers, axis, -1), dtype=np.float64)
    for line in np.ndindex(lines.shape[:-1]):
        if np.any(np.diff(lines[line]) < 0):
            lines[line] = isotonic_regression(lines[line]).x
    return np.moveaxis(np.maximum(lines, 0.0), -1, axis)


def non_negative(
    product: Product, answers: FloatArray, public: Sequence[PublicCounts] = ()
) -> FloatArray | None:
    """Return a table's answers projected to non-negative values, or None.

    A marginal keeps its total, or gets the public sums.
    """
    method = projection_method(product)
    if method == "marginal":
        projected = project_to_simplex(answers, float(answers.sum()))
        public_sums = public_sums_on(product, public) or ()
        if public_sums:
            return scale_to_public_sums(projected, product, public_sums)
        return projected
    if method == "prefix":
        return monotone(answers, product.query_sets.index(prefix()))
    if method == "clip":
        return np.maximum(answers, 0.0)
    return None


def whole_numbers(
    product: Product, answers: FloatArray, public: Sequence[PublicCounts] = ()
) -> IntArray:
    """Return the answers of a table, rounded to integers that keep the total.

    A marginal keeps its rounded total, or gets the public sums.
    """
    if product.is_marginal or _divides_by_levels(product):
        return round_to_public_sums(answers, product, public_sums_on(product, public) or ())
    return np.rint(answers).astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class NonNegativeCells:
    """Non-negative least-squares cells of counts or of one measure.

    The cells are biased: sums of small cells tend to be too large.

    Attributes:
        plan: the measurements of the release.
        joint: the joint cells, and the measured tables on them.
        cells: the non-negative cells, with the shape of the joint table.
        duality_gap: an upper bound on the objective at ``cells`` less its minimum.
        measure: the summed measure; None for counts.
        repetitions: the number of simulated releases from which errors are computed.
        covariance: the covariance of unconstrained least squares; computed if None.
    """

    plan: Measurements
    joint: JointBlocks
    cells: FloatArray
    duality_gap: float
    measure: str | None = None
    repetitions: int = REPETITIONS
    covariance: Covariance | None = None

    def estimate(self, product: Product) -> Answer:
        """Return the answers of the cells to a product, with simulated errors."""
        # The errors come from releases that are simulated with these cells as the truth:
        # ``noise_std`` is the standard deviation, ``approximation_std`` the size of the bias,
        # ``std`` the root mean square error. The true errors depend on the true cells, which are
        # not known. These are their values at the estimate (a parametric bootstrap), not an
        # expected error that a plan states before the data are seen. The relative Monte Carlo error
        # of these errors is about 1 / sqrt(2 repetitions).
        if product.measure == self.measure:
            self._covariance.require(product)
        values = self.values(product)
        bias = np.zeros(product.shape)
        square = np.zeros(product.shape)
        for batch in self._simulations:
            for column in batch.T:
                error = self.values(product, column.reshape(self.joint.shape)) - values
                bias += error / self.repetitions
                square += error**2 / self.repetitions
        return Answer(values, np.sqrt(np.maximum(square - bias**2, 0.0)), np.abs(bias))

    def values(self, product: Product, joint_cells: FloatArray | None = None) -> FloatArray:
        """Return the answers of the cells, shape ``product.shape``.

        If ``joint_cells`` is not None, these cells of the joint table are used instead.
        """
        # The joint table may not have attributes with a single cell.
        added = [
            axis for axis, name in enumerate(product.attributes) if name not in self.joint.names
        ]
        if product.measure != self.measure or any(
            product.domain.kind(product.attributes[axis]).size > 1 for axis in added
        ):
            raise refuse(
                "product",
                product.name,
                f"one of {self.measure or 'counts'} on {', '.join(self.joint.names)}",
            )
        summed = tuple(
            axis for axis, name in enumerate(self.joint.names) if name not in product.attributes
        )
        return apply_along_axes(
            product.operators,
            np.expand_dims(
                (self.cells if joint_cells is None else joint_cells).sum(axis=summed), tuple(added)
            ),
        )

    @cached_property
    def _covariance(self) -> Covariance:
        """The least-squares covariance: as passed to the class, or computed."""
        if self.covariance is None:
            return measure_covariance(self.plan, self.measure)
        return self.covariance

    @cached_property
    def _simulations(self) -> list[FloatArray]:
        """The cells of simulated releases, in batches (cells, releases)."""
        generator = np.random.default_rng(_SEED)
        batches = []
        exact = self.joint.gram(self.cells.reshape(-1, 1))
        step = max(1, min(self.repetitions, 2**21 // self.joint.cells))
        for start in range(0, self.repetitions, step):
            columns = min(step, self.repetitions - start)
            parts = equations(self.plan, self.measure, are_sums_centred=False)
            indices = [part.index for part in parts]
            noise = simulate_noise(self.plan, indices, columns, generator)
            noise_parts = [part.values(noise[part.index]) for part in parts]
            batches.append(
                non_negative_cells(self.joint, exact + self.joint.gather(noise_parts), GAP)[0]
            )
        return batches


def nnls(
    observation: Observation,
    *,
    measure: str | None = None,
    duality_gap: float = GAP,
    covariance: Covariance | None = None,
) -> NonNegativeCells:
    """Estimate non-negative least-squares cells from an observation.

    The cells are published in addition to the unbiased estimate.

    If the least-squares covariance of the same measurements has already been computed, pass it as
    ``covariance``. This covariance decides which queries can be answered.
    """
    plan = observation.measurements
    entries = equations(plan, measure, are_sums_centred=False)
    joint = JointBlocks.of(plan.domain, [(entry.block, entry.variance) for entry in entries])
    if not joint.cells <= MOST_CELLS:
        raise refuse(
            "the joint table of non-negative least squares",
            f"{joint.cells} cells",
            f"at most {MOST_CELLS}",
        )
    values = [
        entry.values(observation.values[entry.index]).astype(float)[:, None] / plan.grid
        for entry in entries
    ]
    cells, reached = non_negative_cells(joint, joint.gather(values), duality_gap)
    return NonNegativeCells(
        plan=plan,
        joint=joint,
        cells=cells.reshape(joint.shape),
        duality_gap=reached,
        measure=measure,
        covariance=covariance,
    )


def simulate_noise(
    plan: Measurements, block_indices: Sequence[int], draws: int, generator: np.random.Generator
) -> dict[int, FloatArray]:
    """Return simulated noise of some blocks, (rows, draws) by block index.

    The simulated noise has the distribution of the plan's noise. The generator is not
    cryptographic. Do not use this noise to protect data.
    """
    groups = plan.k_norm_groups()
    noise = dict[int, FloatArray]()
    for index in dict.fromkeys(block_indices):
        number = plan.blocks[index].k_norm_group
        if number is None:
            noise[index] = _simulate_block(plan, index, draws, generator)
        elif index not in noise:
            noise.update(_simulate_group(plan, groups[number], draws, generator))
    return noise


def _simulate_block(
    plan: Measurements, index: int, draws: int, generator: np.random.Generator
) -> FloatArray:
    """Return simulated noise of the queries of a block, shape (queries, draws)."""
    block = plan.blocks[index]
    scales = (float(block.scale) * plan.grid / block.scaling())[:, None] * np.ones(draws)
    if plan.noise.norm == 1:
        steps = -np.expm1(-1 / scales)
        return (generator.geometric(steps) - generator.geometric(steps)) / plan.grid
    return np.rint(generator.normal(0.0, scales)) / plan.grid


def _random_below(bound: int, generator: np.random.Generator) -> int:
    """Return a random integer from 0 to ``bound - 1``."""
    words = -(-bound.bit_length() // 64) + 1
    return int.from_bytes(generator.bytes(8 * words), "little") % bound


def _simulate_group(
    plan: Measurements, block_indices: Sequence[int], draws: int, generator: np.random.Generator
) -> dict[int, FloatArray]:
    """Return simulated K-norm noise of a group of blocks, by block index."""
    sizes = [plan.blocks[index].rows for index in block_indices]
    scale = float(plan.blocks[block_indices[0]].scale)
    weights = ball_count_numerators(tuple(sorted(sizes)))
    logarithms = np.array([math.log(weight) if weight else -math.inf for weight in weights])
    logarithms -= np.arange(len(weights)) / scale
    law = np.exp(logarithms - logarithms.max())
    norms = generator.choice(len(weights), size=draws, p=law / law.sum())
    norms = norms + generator.negative_binomial(len(weights), -math.expm1(-1 / scale), draws)
    points = [
        draw_tables(sizes, int(norm), lambda bound: _random_below(bound, generator))
        for norm in norms
    ]
    noise = {}
    for at, index in enumerate(block_indices):
        tables = [point[at] for point in points]
        noise[index] = np.array(tables, dtype=np.float64).T
    return noise


def non_negative_cells(
    joint: JointBlocks, right_side: FloatArray, duality_gap: float
) -> tuple[FloatArray, float]:
    """Return non-negative cells of least residual, and the duality gap.

    The number of iterations is bounded. The returned gap is the duality gap at the end of the
    iteration.
    """
    unbiased = joint.solve(right_side, "the unbiased estimate")
    diagonal = joint.diagonal()
    sums = np.maximum(unbiased.sum(axis=0), 0.0)
    weights = np.maximum(diagonal, 1e-12 * float(diagonal.max()))[:, None]
    # The bound is slightly more than the largest eigenvalue of D^-1/2 M D^-1/2. The eigenvalue is
    # found by power iteration from a positive start.
    scale = np.sqrt(weights)
    vector = scale / np.linalg.norm(scale)
    bound = 1.0
    for _ in range(60):
        turned = joint.gram(vector / scale) / scale
        bound = float(np.linalg.norm(turned))
        vector = turned / bound
    metric = 1.05 * bound * weights
    x = project_to_simplices(np.maximum(unbiased, 0.0), weights, sums)
    extrapolated = x
    momentum = np.ones(right_side.shape[1])
    worst = math.inf
    for count in range(1, _MOST_STEPS + 1):
        fresh = project_to_simplices(
            extrapolated - (joint.gram(extrapolated) - right_side) / metric, weights, sums, x > 0
        )
        uphill = ((extrapolated - fresh) * weights * (fresh - x)).sum(axis=0) > 0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        extrapolated = fresh + np.where(uphill, 0.0, (momentum - 1) / grown) * (fresh - x)
        momentum = np.where(uphill, 1.0, grown)
        x = fresh
        if count % _CHECK_EVERY == 0:
            slope = joint.gram(x) - right_side
            worst = float(((x * slope).sum(axis=0) - sums * slope.min(axis=0)).max())
            if worst <= duality_gap:
                break
    return x, worst
