"""Measure one-way tables in groups with joint K-norm noise.

A row is in one cell of every one-way table, so all tables have the same total. With K-norm noise,
all tables have equal noise in their totals. Therefore K-norm noise is smaller than independent
Laplace noise, for example by a factor of 1.71 for sixteen tables of three cells.
``_error._k_norm_law`` computes the errors of K-norm noise.

Tables of very different sizes have smaller errors in separate groups. With a share epsilon_g of the
budget, a group g has the error E_g / epsilon_g^2, where E_g is its squared error at epsilon 1. So
the best shares are proportional to the cube roots of E_g, and the total error is the cube of the
sum of these roots. Tables are sorted by size, and the groups are the runs with the least sum of
cube roots, found by dynamic programming.

All other tables of the workload form an additional group. These tables are planned like a separate
workload: by p-Identity if an attribute has queries other than its cells, otherwise by covering
tables. The final weights of groups and tables minimise the error after recovery. In the residual
basis, a group with the weight theta adds 2 theta^2 / T to the precision of the total. T is the
variance of the total at scale 1. The group adds 2 theta^2 / s to the precision of contrasts of norm
1 along a table, where s is the variance of such a contrast at scale 1.

Source: Hardt and Talwar (arXiv 0907.3754) for the noise; groups are this project's own.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain

import numpy as np

from leastnoise._error import LargeScaleVariances
from leastnoise._families import MOST_DENSE, NotApplicable, invert_gram, partition_groups
from leastnoise._strategies._covering import design_seconds, designed_strategy
from leastnoise._strategies._kronecker import P_IDENTITY, P_IDENTITY_BLOCKS
from leastnoise._strategies._planning_problem import (
    Planner,
    PlanningProblem,
    Strategy,
    base_seconds,
    block_norm,
    fits_within_a_minute,
)
from leastnoise._strategies._residual_algebra import (
    DownwardClosure,
    Errors,
    Matrix,
    diagonal_errors,
    incidence,
    least_error,
    locate,
)
from leastnoise._strategies._table_weights import residual_coefficients
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Identity, Operator
from leastnoise._trusted.measurements import MOST_K_NORM_CELLS, MOST_K_NORM_TABLE, Block, Factor
from leastnoise._workload import Product, Workload, with_hidden_group

_MOST_CUTS = 24  # maximum number of positions between sizes where groups may be separated
_LAPLACE_VARIANCE = 2.0  # variance at scale 1
_SHARED_NOISE = (
    "its noise is for counts of rows in two or more one-way tables of cells or of groups of a level"
)
_BEST_APART = "its tables are best measured separately, as other strategies do"

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _OneWayTable:
    """The strategy for the one-way table of an attribute, and its error.

    Attributes:
        factor: the measured cells or groups.
        error: the squared error of the published queries, for cells with noise of variance 1.
    """

    factor: Factor
    error: float

    @property
    def size(self) -> int:
        """The number of measured cells or groups."""
        return self.factor.operator.rows


def k_norm(problem: PlanningProblem) -> Strategy:
    """Return one-way tables in groups with K-norm noise, and other tables."""
    tables = _one_way_tables(problem.workload)
    if len(tables) < 2:
        raise NotApplicable(_SHARED_NOISE)
    variances = LargeScaleVariances([table.size for table in tables.values()])
    in_larger_tables: set[str] = set()
    for product in problem.workload:
        if product.measure is None and len(product.attributes) > 1:
            in_larger_tables.update(product.attributes)
    # If a larger table contains an attribute, it may already determine the one-way tables of the
    # attribute.
    smaller_choice = {name: table for name, table in tables.items() if name not in in_larger_tables}
    choices = [tables]
    if len(smaller_choice) < len(tables):
        choices.append(smaller_choice)
    strategies = []
    for choice in choices:
        with suppress(NotApplicable):
            strategies.append(_shared_strategy(problem, choice, variances))
    if not strategies:
        raise NotApplicable(_BEST_APART)
    return min(strategies, key=lambda strategy: strategy.error)


def _shared_strategy(
    problem: PlanningProblem, tables: Mapping[str, _OneWayTable], variances: LargeScaleVariances
) -> Strategy:
    """Return a strategy in which the one-way tables form K-norm groups."""
    groups = _best_groups(tables, variances)
    if all(len(names) == 1 for names in groups):
        raise NotApplicable(_BEST_APART)
    return _weighted_groups(problem, tables, groups, variances)


def _one_way_tables(workload: Workload) -> dict[str, _OneWayTable]:
    """Return the one-way tables that can use K-norm noise, by attribute.

    Along the attributes of these tables, the workload has only queries on cells, or queries on
    groups in one-way tables.
    """
    products_along: dict[str, list[Product]] = {}
    for product in workload:
        for name in product.attributes:
            products_along.setdefault(name, []).append(product)
    tables = {}
    for name, products in products_along.items():
        one_way = [product for product in products if _is_one_way(product)]
        if one_way:
            operator = _measured_partition(workload, name, products, one_way)
            if operator is not None and operator.rows <= MOST_K_NORM_TABLE:
                factor = Factor((name,), operator)
                tables[name] = _OneWayTable(factor, _error_of_cells(factor, one_way))
    return tables


def _is_one_way(product: Product) -> bool:
    """Return whether a product counts rows along one attribute."""
    return product.measure is None and len(product.attributes) == 1


def _measured_partition(
    workload: Workload, name: str, products: Sequence[Product], one_way: Sequence[Product]
) -> Operator | None:
    """Return the cells or groups that answer all queries on an attribute, or None.

    The partition has groups only if no table of several attributes contains the attribute, because
    such tables have cells.
    """
    kind = workload.domain.kind(name)
    query_sets = {dict(product.along)[name] for product in products}
    if all(query_set.kind in ("identity", "all_cells") for query_set in query_sets):
        return Identity(kind.size)
    if len(one_way) < len(products) or kind.size > MOST_DENSE:
        return None
    operators = [with_hidden_group(each, kind).operator(name, kind) for each in query_sets]
    finest = max(operators, key=lambda operator: operator.rows)
    groups = partition_groups(finest)
    if groups is None:
        return None
    first_cells = np.unique(groups, return_index=True)[1]
    are_nested = True
    for operator in operators:
        coarser_groups = partition_groups(operator)
        if coarser_groups is None:
            return None
        are_nested = are_nested and np.array_equal(
            coarser_groups, coarser_groups[first_cells][groups]
        )
    if are_nested and finest.rows < kind.size:
        return finest
    return Identity(kind.size)


def _error_of_cells(factor: Factor, products: Sequence[Product]) -> float:
    """Return one-way products' squared error if cells have noise variance 1."""
    basis = invert_gram(factor)
    return sum(
        product.importance * basis.total_variance(product.operators[0]) for product in products
    )


def _group_error(
    names: Sequence[str], tables: Mapping[str, _OneWayTable], variances: LargeScaleVariances
) -> float:
    """Return the squared error of a group of tables at epsilon 1."""
    if len(names) == 1:
        return _LAPLACE_VARIANCE * tables[names[0]].error
    group_variances = variances.of([tables[name].size for name in names])
    return sum(tables[name].error * group_variances.cells[tables[name].size] for name in names)


def _best_groups(tables: Mapping[str, _OneWayTable], variances: LargeScaleVariances) -> list[Names]:
    """Return the division of tables into groups with the least error."""
    ordered = sorted(tables, key=lambda name: tables[name].size)
    sizes = [tables[name].size for name in ordered]
    best: dict[int, tuple[float, list[Names]]] = {0: (0.0, [])}
    for end in _possible_ends(sizes):
        for begin in [begin for begin in best if begin < end]:
            names = tuple(ordered[begin:end])
            if sum(sizes[begin:end]) > MOST_K_NORM_CELLS and len(names) > 1:
                continue
            error = _group_error(names, tables, variances)
            roots = best[begin][0] + error ** (1 / 3)
            if end not in best or roots < best[end][0]:
                best[end] = roots, [*best[begin][1], names]
    if len(ordered) not in best:
        raise NotApplicable(
            f"the tables of one size have over {MOST_K_NORM_CELLS} cells, which is too many for "
            "joint noise"
        )
    return best[len(ordered)][1]


def _possible_ends(sizes: Sequence[int]) -> list[int]:
    """Return the positions where a group may end, among the sorted sizes.

    A group may also end between tables of equal size if these have more cells than a group can
    have.
    """
    between = [
        position for position in range(1, len(sizes)) if sizes[position - 1] < sizes[position]
    ]
    between.sort(key=lambda position: sizes[position - 1] / sizes[position])
    ends = {*between[:_MOST_CUTS], len(sizes)}
    cells = 0
    for position, size in enumerate(sizes):
        if position in ends:
            cells = 0
        if cells + size > MOST_K_NORM_CELLS:
            ends.add(position)
            cells = 0
        cells += size
    return sorted(ends)


def _weighted_groups(
    problem: PlanningProblem,
    tables: Mapping[str, _OneWayTable],
    groups: Sequence[Names],
    variances: LargeScaleVariances,
) -> Strategy:
    """Choose the best weights of groups and of all tables outside the groups."""
    shared = [names for names in groups if len(names) > 1]
    other_strategy = _strategy_of_others(problem, set(chain.from_iterable(shared)))
    parts = [_group_part(number, names, tables, variances) for number, names in enumerate(shared)]
    parts += _parts_of_others(other_strategy, problem.workload)
    errors = _error_function(problem.workload, tables, shared, variances, other_strategy)
    weights = least_error(
        errors,
        np.array([part.cost for part in parts]),
        np.array([part.initial_factor for part in parts]),
        norm=1,
    )
    blocks = []
    for part, theta in zip(parts, weights.theta.tolist(), strict=True):
        if theta > 0:
            blocks += [(block, weight * theta) for block, weight in part.blocks]
    if all(block.k_norm_group is None for block, _ in blocks):
        raise NotApplicable(_BEST_APART)
    return Strategy("k_norm", tuple(blocks), error=weights.error)


@dataclass(frozen=True, slots=True)
class _WeightedPart:
    """Blocks whose relative weights are fixed when the budget is split.

    Attributes:
        blocks: the blocks with their weights.
        cost: the privacy cost of these weights.
        initial_factor: the factor by which the weights are multiplied in the first split, up to a
            common factor of all parts.
    """

    blocks: tuple[tuple[Block, float], ...]
    cost: float
    initial_factor: float


def _group_part(
    group_index: int,
    names: Names,
    tables: Mapping[str, _OneWayTable],
    variances: LargeScaleVariances,
) -> _WeightedPart:
    """Return a K-norm group's blocks, with the privacy cost of one block."""
    blocks = [
        Block((tables[name].factor,), Fraction(1), k_norm_group=group_index) for name in names
    ]
    start = _group_error(names, tables, variances) ** (1 / 3)
    return _WeightedPart(tuple((block, 1.0) for block in blocks), 1.0, start)


def _other_products(workload: Workload, one_way_names: Collection[str]) -> tuple[Product, ...]:
    """Return all products except the one-way tables of some attributes."""
    return tuple(
        product
        for product in workload
        if not (_is_one_way(product) and product.attributes[0] in one_way_names)
    )


def _strategy_of_others(problem: PlanningProblem, one_way_names: Collection[str]) -> Strategy:
    """Return the strategy for all tables except some one-way tables."""
    others = _other_products(problem.workload, one_way_names)
    if not others:
        return Strategy("k_norm", (), error=0.0)
    workload = Workload(problem.workload.domain, others)
    if not workload.beyond_cells:
        return designed_strategy("k_norm", workload, {})
    if fits_within_a_minute(workload):
        return P_IDENTITY.strategy(replace(problem, workload=workload))
    return P_IDENTITY_BLOCKS.strategy(replace(problem, workload=workload))


def _parts_of_others(other_strategy: Strategy, workload: Workload) -> list[_WeightedPart]:
    """Return one part for each table of counts, and one part for all sums."""
    if not other_strategy.blocks:
        return []
    costs = [
        weight * block_norm(workload.domain, block, 1) for block, weight in other_strategy.blocks
    ]
    start = (_LAPLACE_VARIANCE * other_strategy.error) ** (1 / 3) / sum(costs)
    entries = list(zip(other_strategy.blocks, costs, strict=True))
    counts = [
        _WeightedPart(((block, weight),), cost, start)
        for (block, weight), cost in entries
        if block.measure is None
    ]
    sums = [(entry, cost) for entry, cost in entries if entry[0].measure is not None]
    if not sums:
        return counts
    return [
        *counts,
        _WeightedPart(tuple(entry for entry, _ in sums), sum(cost for _, cost in sums), start),
    ]


def _error_function(
    workload: Workload,
    tables: Mapping[str, _OneWayTable],
    groups: Sequence[Names],
    variances: LargeScaleVariances,
    other_strategy: Strategy,
) -> Errors:
    """Return a function from the parts' squared weights to error and gradient."""
    counts = [(block, weight) for block, weight in other_strategy.blocks if block.measure is None]
    factors = {name: tables[name].factor for name in chain.from_iterable(groups)}
    for block, _ in counts:
        factors |= {factor.attributes[0]: factor for factor in block.factors}
    closure, coefficients = residual_coefficients(workload.of(None), factors)
    positions = {name: at for at, name in enumerate(workload.domain.names)}
    columns = [_group_precisions(names, tables, variances, closure, positions) for names in groups]
    if counts:
        sets = [tuple(positions[name] for name in block.attributes) for block, _ in counts]
        table_precisions = incidence(closure, sets) * np.array([weight**2 for _, weight in counts])
        columns.append(table_precisions)
    errors = diagonal_errors(_stack_columns(columns), coefficients)
    if len(counts) == len(other_strategy.blocks):
        return errors
    costs = [
        weight * block_norm(workload.domain, block, 1) for block, weight in other_strategy.blocks
    ]
    cost_of_sums = sum(
        cost
        for cost, (block, _) in zip(costs, other_strategy.blocks, strict=True)
        if block.measure is not None
    )
    total_cost = sum(costs)
    # At the best split, the error of each part is proportional to its cost.
    error_of_sums = other_strategy.error * cost_of_sums / total_cost
    # The error of the strategy is stated for cost 1. Its weights cost total_cost, so that their
    # error is smaller by its square.
    return _add_error_of_sums(errors, error_of_sums * total_cost**-2)


def _stack_columns(columns: Sequence[Matrix]) -> Matrix:
    """Return several matrices stacked horizontally."""
    if not any(hasattr(column, "tocsr") for column in columns):
        return np.hstack(columns)
    from scipy.sparse import csr_array, hstack

    return hstack([csr_array(column) for column in columns], format="csr")


def _add_error_of_sums(errors: Errors, error_of_sums: float) -> Errors:
    """Add the error of all sums, with one more squared weight, to ``errors``.

    ``error_of_sums`` is the error at squared weight 1.
    """

    def with_sums(squares: FloatArray) -> tuple[float, FloatArray]:
        """Return the total squared error with sums, and minus its gradient."""
        counts_error, gain = errors(squares[:-1])
        if not squares[-1] > 0:
            return math.inf, np.zeros_like(squares)
        sums_error = error_of_sums / float(squares[-1])
        return counts_error + sums_error, np.append(gain, sums_error / float(squares[-1]))

    return with_sums


def _group_precisions(
    names: Names,
    tables: Mapping[str, _OneWayTable],
    variances: LargeScaleVariances,
    closure: DownwardClosure,
    positions: Mapping[str, int],
) -> FloatArray:
    """Return the precision that a K-norm group adds in each residual space."""
    group_variances = variances.of([tables[name].size for name in names])
    precisions = np.zeros((closure.count, 1))
    precisions[locate(closure, [()])] = _LAPLACE_VARIANCE / group_variances.total
    for name in names:
        size = tables[name].size
        position = locate(closure, [(positions[name],)])[0]
        if size > 1 and position >= 0:
            kappa = closure.shape[positions[name]]
            precisions[position] = _LAPLACE_VARIANCE / group_variances.contrast(size) / kappa
    return precisions


def _seconds(workload: Workload) -> float:
    """Estimate the CPU seconds to choose groups and compute their errors."""
    tables = _one_way_tables(workload)
    if len(tables) < 2:
        return 0.01
    cells = sum(table.size for table in tables.values())
    seconds = base_seconds(workload) + 0.05 + 3e-6 * min(cells, MOST_K_NORM_CELLS) * cells
    others = _other_products(workload, tables)
    if not others:
        return seconds
    remaining = Workload(workload.domain, others)
    return seconds + design_seconds(remaining) + P_IDENTITY.seconds(remaining)


K_NORM = Planner(
    name="k_norm",
    propose=k_norm,
    measures="every cell or group of one-way tables, in groups of tables whose noise shares their "
    "total; the other tables have independent noise",
    made_for="small one-way tables under pure privacy",
    norms=(1,),
    advice_for_other_noise="its noise is for pure privacy; choose residual",
    limits=f"groups of {MOST_K_NORM_CELLS} cells, {MOST_K_NORM_TABLE} in a table",
    paper="Hardt and Talwar, arXiv 0907.3754",
    seconds=_seconds,
    # Where this strategy applies it is usually the best, and other strategies gain nothing.
    relative_likelihood=lambda _: 8.0,
    has_independent_noise=False,
)
