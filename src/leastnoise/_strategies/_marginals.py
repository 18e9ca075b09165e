"""The requested tables of cells and levels, with the best weights.

Suppose that one attribute is queried by nested levels and all others by cells. Then there is a
candidate table for each level and each requested set of other attributes. In the notation of
``_error._product_covariance``, let a(l) be the precision of level l on a residual space tau of the
other attributes. a(l) is a sum over the tables (l, S) with tau inside S. A table adds theta^2 times
the product of 1 / n_i over the attributes of S that are not in tau. The error is the same as the
error of levels that are measured with these precisions.

With Gaussian noise, the error is convex in theta^2. For groups of equal size, the least error is
the optimum over all strategies (docs/mathematics.md, section 2). If groups have different sizes,
each group gets a separate weight if that lowers the error by over 1%. With Laplace noise, the error
is not convex, and a weight of 0 stays 0 in a descent. So the search starts with the best single
table that determines all queries. The search then adds tables one at a time: always the table that
reduces the error most. At the optimum, most tables have weight 0.

Source: Cormode et al. (arXiv 1207.6096), strategy Q+; here the weights are the best weights after
    recovery. The levels are from this project.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error import subsets
from leastnoise._families import Levels, minimize_lbfgs, nested_levels
from leastnoise._strategies._planning_problem import (
    Planner,
    PlanningProblem,
    Strategy,
    base_seconds,
)
from leastnoise._strategies._residual_algebra import Errors, Weights, improve_weights, least_error
from leastnoise._strategies._table_weights import (
    Names,
    check_table_size,
    factor_along,
    table_costs,
    weighted_strategy,
    weighted_tables,
)
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Total
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._workload import Workload

_MOST_TABLES = 128  # maximum number of tables of levels that are weighted together
_MOST_SPACES = 256  # maximum number of residual spaces that are weighted together
_ADDED_BUDGET_SHARE = 0.15  # share of the budget that a new table gets
_STEPS_PER_TABLE = 12  # descent steps after each added table
_LEAST_RELATIVE_GAIN = 1e-3  # least relative gain for which a table is added or a search continues
_MOST_ORBITS = 2**12  # maximum number of orbits whose groups get separate weights
_MOST_CELLS = 2**16  # maximum number of cells of the attribute with levels
_GROUP_GAIN = 0.01  # least relative gain of squared error for which groups get separate weights
_FIRST_STEPS = 30  # steps of the descent from each start
_MOST_STEPS = 600  # maximum number of steps of the descent from the best start
_MOST_ROW_WEIGHT = 2**12  # largest integer row weight of a group
_LEAST_LEVEL_SHARE = 1e-9  # share that keeps every level's gradient finite
_LEAST_SPENT = 1e-8  # squared weight below which a table is left out


@dataclass(frozen=True, slots=True, eq=False)
class _LevelTables:
    """The tables of cells and levels that can be measured for a workload.

    Attributes:
        attribute: the attribute that has levels.
        levels: the levels of the attribute.
        tables: the measure, the level and the other attributes of every table that may be measured.
        space_terms: for every measure and residual space of the other attributes, two arrays: the
            importance of each level, shape (levels,), and the precision that each table adds to
            each level, shape (levels, tables).
    """

    attribute: str
    levels: Levels
    tables: list[tuple[str | None, int, Names]]
    space_terms: list[tuple[FloatArray, FloatArray]]

    def errors(self, squared_weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the squared error for squared weights, and minus its gradient.

        See `Errors` for the form of the result.
        """
        total = 0.0
        gain = np.zeros(len(squared_weights))
        for importance, precision in self.space_terms:
            error, slopes = self.levels.orbits.error(
                (precision @ squared_weights).tolist(), importance.tolist()
            )
            total = total + error
            gain = gain + precision.T @ [slope.sum() for slope in slopes]
        return total, gain


@lru_cache(maxsize=4)
def _level_tables(workload: Workload) -> _LevelTables | None:
    """Return the tables of levels, or None if they do not fit the workload.

    The result is None in two cases: there are other queries than cells and nested levels of one
    attribute, or there are too many tables.
    """
    if (
        workload.has_hidden
        or len(workload.beyond_cells) != 1
        or len(workload.products) > _MOST_TABLES
    ):
        return None
    (name,) = workload.beyond_cells
    domain = workload.domain
    levels = nested_levels(
        domain.kind(name).size,
        [operator for attribute, _, operator in workload.along if attribute == name],
    )
    if levels is None:
        return None
    requested = _requested_tables(workload, name, levels)
    levels_by_measure = dict.fromkeys((table.measure, table.level) for table in requested)
    names_by_measure = dict.fromkeys((table.measure, table.names) for table in requested)
    tables = []
    for measure, level in levels_by_measure:
        for of_measure, names in names_by_measure:
            if of_measure == measure:
                table = (measure, level, names)
                tables.append(table)
    if len(tables) > _MOST_TABLES:
        return None
    spaces: dict[tuple[str | None, Names], None] = {}
    for measure, names in names_by_measure:
        spaces |= dict.fromkeys((measure, space) for space in subsets(names))
    space_terms = []
    for measure, space in spaces:
        importance = _importance_of_levels(requested, measure, space, domain, len(levels.groups))
        if importance.any():
            precision = _precision_of_tables(tables, measure, space, domain, len(levels.groups))
            space_terms.append((importance, precision))
    if len(space_terms) > _MOST_SPACES:
        return None
    return _LevelTables(name, levels, tables, space_terms)


class _RequestedTable(NamedTuple):
    """A requested table: its measure, level, other attributes and importance."""

    measure: str | None
    level: int
    names: Names
    importance: float


def _requested_tables(workload: Workload, attribute: str, levels: Levels) -> list[_RequestedTable]:
    """Return the requested tables, each with its level of an attribute."""
    requested = []
    for product in workload:
        operators = dict(zip(product.attributes, product.operators, strict=True))
        level = levels.level(operators.pop(attribute, Total(levels.size))) or 0
        requested.append(
            _RequestedTable(product.measure, level, tuple(operators), product.importance)
        )
    return requested


def _importance_of_levels(
    requested: list[_RequestedTable], measure: str | None, space: Names, domain: Domain, depth: int
) -> FloatArray:
    """Return each level's importance for a residual space of other attributes."""
    importance = np.zeros(depth)
    for table in requested:
        if table.measure != measure or not {*space} <= {*table.names}:
            continue
        factor = 1.0
        for name in table.names:
            size = domain.kind(name).size
            factor *= size - 1.0 if name in space else 1 / size
        importance[table.level] += table.importance * factor
    return importance


def _precision_of_tables(
    tables: list[tuple[str | None, int, Names]],
    measure: str | None,
    space: Names,
    domain: Domain,
    depth: int,
) -> FloatArray:
    """Return the precision that each table adds to each level of a space.

    The space is a residual space of the other attributes. The result has the shape (depth, tables).
    """
    precision = np.zeros((depth, len(tables)))
    for column, (of_measure, level, names) in enumerate(tables):
        if of_measure == measure and {*space} <= {*names}:
            precision[level, column] = math.prod(
                1 / domain.kind(name).size for name in names if name not in space
            )
    return precision


class _GroupWeights:
    """The search for separate weights of the groups of a level.

    Groups of one orbit are exchangeable and have the same weight.

    The privacy cost of a cell is the sum of the squared weights of all groups that contain it. No
    cell may have a privacy cost above 1. From the total downwards, every group gets a budget from
    its parent. The group divides this budget among the tables of its level and its child groups. A
    point of the search has, for each level and each orbit, a row of positive shares. This row has
    one share for each table, and a last share for the child groups.
    """

    def __init__(self, tables: _LevelTables, cost: FloatArray) -> None:
        self.orbits = tables.levels.orbits
        # From the total down, like all lists in this class.
        self.numbers = self.orbits.numbers[::-1]
        self.parents = self.orbits.parents[::-1]
        levels = [level for _, level, _ in tables.tables]
        # The positions of the tables of every level down to the finest one that has any.
        self.tables = [
            np.flatnonzero(np.equal(levels, level))
            for level in reversed(range(min(levels), len(self.numbers)))
        ]
        # For every space, two arrays: the importance of the levels, and the precision that each
        # table adds to its level at privacy cost 1.
        self.information = []
        for importance, precision in tables.space_terms:
            precision_by_level = [
                (precision[:, tables] / cost[tables] ** 2).sum(axis=0) for tables in self.tables
            ]
            self.information.append((importance.tolist(), precision_by_level))

    def divide_budget(
        self, point: FloatArray
    ) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
        """Return lists by level: shares, budgets of orbits, budgets of their tables."""
        budgets = [np.ones(1)]
        shares = list[FloatArray]()
        spent = list[FloatArray]()
        begin = 0
        for level, tables in enumerate(self.tables):
            last = level == len(self.tables) - 1
            end = begin + len(self.numbers[level]) * (len(tables) + (not last))
            shares.append(point[begin:end].reshape(len(self.numbers[level]), -1))
            spending = shares[-1] * (budgets[-1] / shares[-1].sum(axis=1))[:, None]
            begin = end
            spent.append(spending[:, : len(tables)])
            if not last:
                budgets.append(spending[:, -1][self.parents[level]])
        return shares, budgets, spent

    def error(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the total squared error at a point, and its gradient."""
        shares, budgets, spent = self.divide_budget(point)
        total = 0.0
        slopes = [np.zeros_like(spending) for spending in spent]
        finer = len(self.numbers) - len(spent)
        for importance, precision in self.information:
            precisions = [
                spending @ tells for spending, tells in zip(spent, precision, strict=True)
            ]
            error, gains = self.orbits.error([*[0.0] * finer, *precisions[::-1]], importance)
            total += error
            slopes = [
                slope - np.outer(gain, tells)
                for slope, gain, tells in zip(slopes, reversed(gains), precision, strict=False)
            ]
        # Derivatives with respect to the budgets of a level, and to the shares.
        budget_slopes = np.zeros(0)
        gradient = list[FloatArray]()
        for level in reversed(range(len(spent))):
            share = shares[level]
            slope = slopes[level]
            if level < len(spent) - 1:
                slope = np.column_stack([slope, np.bincount(self.parents[level], budget_slopes)])
            total_share = share.sum(axis=1)
            budget_slopes = (slope * share).sum(axis=1) / total_share
            gradient.insert(
                0,
                (
                    (slope - budget_slopes[:, None]) * (budgets[level] / total_share)[:, None]
                ).reshape(-1),
            )
        return total, np.concatenate(gradient)

    def minimize(
        self, initial_shares: FloatArray, initial_error: float
    ) -> tuple[float, list[FloatArray]]:
        """Minimise the squared error; return it and the orbits' budgets by table.

        An orbit is a set of exchangeable groups of a level. The descent starts with equal weights
        for the groups of each table; ``initial_shares`` are their shares, and ``initial_error`` is
        their error. The descent continues only if its first steps reduce the error.
        """
        point = list[FloatArray]()
        remaining = 1.0
        for level, tables in enumerate(self.tables):
            remaining = max(remaining - initial_shares[tables].sum(), 0.0)
            if level < len(self.tables) - 1:
                level_shares = np.append(initial_shares[tables], remaining)
            else:
                level_shares = initial_shares[tables]
            point.append(
                np.tile(
                    level_shares / level_shares.sum() + _LEAST_LEVEL_SHARE, len(self.numbers[level])
                )
            )
        best, error = minimize_lbfgs(self.error, np.concatenate(point), 1.0, _FIRST_STEPS)
        if error < initial_error * (1 - _LEAST_RELATIVE_GAIN):
            best, error = minimize_lbfgs(self.error, best, 1.0, _MOST_STEPS)
        spent = zip(self.tables, self.divide_budget(best)[2], strict=True)
        columns: dict[int, FloatArray] = {}
        for tables, level_shares in spent:
            columns |= {table: level_shares[:, at] for at, table in enumerate(tables.tolist())}
        return error, [columns[table] for table in range(len(initial_shares))]


def _weighted_table(
    level_tables: _LevelTables, block: Block, squared_weights: FloatArray
) -> tuple[Block, float]:
    """Return a block with integer weights of groups, and the size of weight 1.

    The block measures the groups. The weight of a group's query is the factor times the integer.
    ``squared_weights`` has the squared weight of every orbit.
    """
    heaviest = math.sqrt(squared_weights.max())
    along = {factor.attributes: factor for factor in block.factors}
    factor = along.get((level_tables.attribute,))
    if factor is None:
        return block, heaviest
    groups = level_tables.levels.orbits.orbit_of_group[
        level_tables.levels.level(factor.operator) or 0
    ]
    rounded = np.maximum(
        1, np.rint(np.sqrt(squared_weights)[groups] * _MOST_ROW_WEIGHT / heaviest)
    ).astype(np.int64)
    along[factor.attributes] = Factor(factor.attributes, factor.operator, rounded)
    return Block(tuple(along.values()), block.scale, block.measure), heaviest / _MOST_ROW_WEIGHT


def _weights_of_added_tables(errors: Errors, cost: FloatArray) -> Weights | None:
    """Add tables greedily to the best single table; return the weights or None.

    The result is None if no single table determines all queries.
    """
    single_weights = [Weights(theta=unit, error=errors(unit**2)[0]) for unit in np.diag(1 / cost)]
    best = min(
        (weights for weights in single_weights if weights.error < math.inf),
        key=lambda weights: weights.error,
        default=None,
    )
    while best is not None and not best.theta.all():
        tried = []
        for table in np.flatnonzero(best.theta == 0):
            theta = best.theta * (1 - _ADDED_BUDGET_SHARE)
            theta[table] = _ADDED_BUDGET_SHARE / cost[table]
            theta = improve_weights(theta, errors, cost, 1, _STEPS_PER_TABLE)
            tried.append((errors(theta**2)[0], theta))
        weights = least_error(errors, cost, min(tried, key=lambda pair: pair[0])[1], norm=1)
        if not weights.error < best.error * (1 - _LEAST_RELATIVE_GAIN):
            break
        best = weights
    return best


def marginals(problem: PlanningProblem) -> Strategy:
    """Return the requested tables of cells and levels with best weights."""
    workload = problem.workload
    norm = problem.norm
    domain = problem.workload.domain
    level_tables = _level_tables(workload)
    if level_tables is None:
        return weighted_strategy(
            "marginals", workload, {}, workload.tables, norm, privacy=problem.privacy
        )
    blocks = []
    total = len(level_tables.levels.groups) - 1
    operators = {
        level_tables.levels.level(operator): operator
        for attribute, _, operator in workload.along
        if attribute == level_tables.attribute
    }
    for measure, level, names in level_tables.tables:
        factors = {attribute: factor_along(domain, attribute, {}) for attribute in names}
        if level < total:
            factors[level_tables.attribute] = Factor((level_tables.attribute,), operators[level])
        blocks.append(
            check_table_size(
                Block(
                    tuple(factors[name] for name in domain.names if name in factors),
                    Fraction(1),
                    measure,
                )
            )
        )
    cost = table_costs(domain, blocks, norm, problem.privacy)
    weights = least_error(level_tables.errors, cost, 1 / cost, norm=norm)
    if (
        norm == 2
        and 1 < max(map(len, level_tables.levels.orbits.numbers)) <= _MOST_ORBITS
        and level_tables.levels.size <= _MOST_CELLS
    ):
        error, spent = _GroupWeights(level_tables, cost).minimize(
            (weights.theta * cost) ** 2, weights.error
        )
        if error < weights.error * (1 - _GROUP_GAIN):
            tables = zip(blocks, spent, cost.tolist(), strict=True)
            weighted_blocks = tuple(
                _weighted_table(level_tables, block, squares / unit**2)
                for block, squares, unit in tables
                if squares.max() > _LEAST_SPENT
            )
            return Strategy("marginals", weighted_blocks, error=error)
    if norm == 1:
        fewer = _weights_of_added_tables(level_tables.errors, cost)
    else:
        fewer = None
    return weighted_tables(
        "marginals",
        blocks,
        cost,
        weights if fewer is None or weights.error < fewer.error else fewer,
    )


def _level_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds to weight tables of levels for Laplace noise."""
    level_tables = _level_tables(workload)
    if level_tables is None:
        return 0.0
    return 0.1 * len(level_tables.space_terms) * len(level_tables.levels.groups)


def _group_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds to weight levels and groups for Gaussian noise."""
    level_tables = _level_tables(workload)
    if level_tables is None:
        orbits = 1
    else:
        orbits = max(map(len, level_tables.levels.orbits.numbers))
    return 0.1 * _level_seconds(workload) + (0.5 if 2 < orbits <= _MOST_ORBITS else 0.0)


MARGINALS = Planner(
    name="marginals",
    propose=marginals,
    measures="the workload's tables of cells, and its tables of levels along one attribute, with "
    "the best weights",
    made_for="marginals, and levels along one attribute",
    limits="tables of 2^28 cells",
    seconds=lambda workload: base_seconds(workload) + _group_seconds(workload),
    extra_laplace_seconds=_level_seconds,
)
