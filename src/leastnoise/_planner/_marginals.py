"""Tables of cells and of levels: those that are asked about, with the best weights.

Where one attribute is asked about by nested levels, and the others by their cells, a table of every
level and every asked set of the others may be measured. With the notation of ``_product`` in
``accuracy``: on each residual space tau of the others the precision of level l is a(l), the sum
over tables (l, S) with tau inside S of theta^2 times the product of 1 / n_i over S without tau, and
the error is that of levels with these precisions.

Under Gaussian noise the error is convex in theta^2, and for equal groups its minimum is the optimum
over all strategies (docs/mathematics.md, section 2). Where groups are of many sizes each gets its
own weight if that gains over 1%. Under Laplace noise the error is not convex, and a weight of 0
stays 0 in a descent: beginning with the best single table that determines everything, the tables
that gain most are added one by one. Most tables get no weight.

Source: Cormode et al. (arXiv 1207.6096), strategy Q+, here with weights that are best after
    recovery; levels are this project's own.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from leastnoise._accuracy import subsets
from leastnoise._check.arrays import FloatArray
from leastnoise._families import Levels, descended, nested_levels
from leastnoise._linop import Total
from leastnoise._measurements import Block, Factor
from leastnoise._planner._residual_algebra import Errors, Weights, improve_weights, least_error
from leastnoise._planner._strategy import Planner, Strategy, Task, shortly
from leastnoise._planner._tables import (
    Names,
    checked,
    factor_along,
    table_costs,
    weighed,
    weighted_strategy,
)
from leastnoise._workload import Workload

_MOST_TABLES, _MOST_SPACES = 128, 256
_ADDED = 0.15  # share of the budget with which a table is added
_STEPS = 12
_GAIN = 1e-3  # relative gain of squared error for which a table is added, or a search goes on
_MOST_ORBITS, _MOST_CELLS = (
    2**12,
    2**16,
)  # up to which groups get weights of their own; columns of more cells are not added up
_GROUP_GAIN = 0.01  # relative gain of squared error for which groups get weights of their own
_FIRST_STEPS, _MOST_STEPS, _HEAVIEST, _LEAST, _LEAST_SPENT = 30, 600, 2**12, 1e-9, 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class _LevelTables:
    """What a workload asks of levels along one attribute, and the tables of levels that may be measured for it."""

    name: str  # the attribute that has levels
    levels: Levels
    tables: list[
        tuple[str | None, int, Names]
    ]  # measure, level and other attributes of every table that may be measured
    # For every measure and residual space of the others: the importance of each level, shape
    # (levels,), and how much of its precision each table adds to each level, shape (levels,
    # tables).
    spaces: list[tuple[FloatArray, FloatArray]]

    def errors(self, squares: FloatArray) -> tuple[float, FloatArray]:
        """Return the total squared error for squared weights of the tables, and minus its derivatives; see `Errors`."""
        total, gain = 0.0, np.zeros(len(squares))
        for wanted, known in self.spaces:
            error, slopes = self.levels.orbits.error((known @ squares).tolist(), wanted.tolist())
            total, gain = total + error, gain + known.T @ [slope.sum() for slope in slopes]
        return total, gain


@lru_cache(maxsize=4)
def _level_tables(workload: Workload) -> _LevelTables | None:
    """Return the tables of levels, or None where other queries than nested levels of one attribute are asked, or too many tables."""
    if (
        workload.has_hidden
        or len(workload.beyond_cells) != 1
        or len(workload.products) > _MOST_TABLES
    ):
        return None
    (name,), domain = workload.beyond_cells, workload.domain
    levels = nested_levels(
        domain.kind(name).size,
        [operator for attribute, _, operator in workload.along if attribute == name],
    )
    if levels is None:
        return None
    asked = []
    for product in workload:
        along = dict(zip(product.attributes, product.operators, strict=True))
        level = levels.level(along.pop(name, Total(levels.size)))
        asked.append((product.measure, level or 0, tuple(along), product.importance))
    pairs = dict.fromkeys((measure, level) for measure, level, _, _ in asked)
    others = dict.fromkeys((measure, names) for measure, _, names, _ in asked)
    tables = [
        (measure, level, names)
        for measure, level in pairs
        for of_measure, names in others
        if of_measure == measure
    ]
    if len(tables) > _MOST_TABLES:
        return None
    spaces, depth = [], len(levels.groups)
    for measure, tau in dict.fromkeys(
        (measure, tau) for measure, names in others for tau in subsets(names)
    ):
        wanted, known = np.zeros(depth), np.zeros((depth, len(tables)))
        for of_measure, level, names, importance in asked:
            if of_measure == measure and {*tau} <= {*names}:
                sizes = {other: domain.kind(other).size for other in names}
                wanted[level] += importance * math.prod(
                    sizes[other] - 1.0 if other in tau else 1 / sizes[other] for other in names
                )
        for column, (of_measure, level, names) in enumerate(tables):
            if of_measure == measure and {*tau} <= {*names}:
                known[level, column] = math.prod(
                    1 / domain.kind(other).size for other in names if other not in tau
                )
        if wanted.any():
            spaces.append((wanted, known))
    return _LevelTables(name, levels, tables, spaces) if len(spaces) <= _MOST_SPACES else None


class _GroupWeights:
    """The search for weights of single groups; groups in one orbit are alike and have the same weight.

    The privacy cost of a cell is the sum of the squared weights of all groups that it lies in, and
    all cells may have the cost 1. So from the total downwards every group divides what its parent
    leaves to it between the tables of its level and the groups inside it. A point of the search
    holds, level by level, a row of positive shares for every orbit: one for each table, and the
    last for the groups inside.
    """

    def __init__(self, asked: _LevelTables, cost: FloatArray) -> None:
        self.orbits = asked.levels.orbits
        self.numbers, self.parents = (
            self.orbits.numbers[::-1],
            self.orbits.parents[::-1],
        )  # from the total down, as all lists here
        levels = [level for _, level, _ in asked.tables]
        # The positions of the tables of every level down to the finest one that has any.
        self.tables = [
            np.flatnonzero(np.equal(levels, level))
            for level in reversed(range(min(levels), len(self.numbers)))
        ]
        # For every space the importance of the levels, and how much precision each table adds to
        # its level at privacy cost 1.
        self.information = [
            (
                wanted.tolist(),
                [(known[:, tables] / cost[tables] ** 2).sum(axis=0) for tables in self.tables],
            )
            for wanted, known in asked.spaces
        ]

    def divided(
        self, point: FloatArray
    ) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
        """Return for every level the shares of the point, the budget that each orbit has, and what each orbit spends on each table."""
        budgets, shares, spent, begin = [np.ones(1)], list[FloatArray](), list[FloatArray](), 0
        for level, tables in enumerate(self.tables):
            last = level == len(self.tables) - 1
            end = begin + len(self.numbers[level]) * (len(tables) + (not last))
            shares.append(point[begin:end].reshape(len(self.numbers[level]), -1))
            given, begin = shares[-1] * (budgets[-1] / shares[-1].sum(axis=1))[:, None], end
            spent.append(given[:, : len(tables)])
            if not last:
                budgets.append(given[:, -1][self.parents[level]])
        return shares, budgets, spent

    def error(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the total squared error, and its derivatives."""
        shares, budgets, spent = self.divided(point)
        total, slopes, finer = (
            0.0,
            [np.zeros_like(given) for given in spent],
            len(self.numbers) - len(spent),
        )
        for wanted, known in self.information:
            precisions = [given @ tells for given, tells in zip(spent, known, strict=True)]
            error, gains = self.orbits.error([*[0.0] * finer, *precisions[::-1]], wanted)
            total += error
            slopes = [
                slope - np.outer(gain, tells)
                for slope, gain, tells in zip(slopes, reversed(gains), known, strict=False)
            ]
        of_budget, gradient = (
            np.zeros(0),
            list[FloatArray](),
        )  # derivatives by the budgets of a level, and by the shares
        for level in reversed(range(len(spent))):
            share, slope = shares[level], slopes[level]
            if level < len(spent) - 1:
                slope = np.column_stack([slope, np.bincount(self.parents[level], of_budget)])
            whole = share.sum(axis=1)
            of_budget = (slope * share).sum(axis=1) / whole
            gradient.insert(
                0, ((slope - of_budget[:, None]) * (budgets[level] / whole)[:, None]).reshape(-1)
            )
        return total, np.concatenate(gradient)

    def least(self, shares: FloatArray, alike: float) -> tuple[float, list[FloatArray]]:
        """Return the least error, and what every orbit spends on each table.

        The descent begins with the shares of the tables where all groups of a table are weighted
        alike, whose error is ``alike``. It goes on only if its first steps gain something.
        """
        point, rest = list[FloatArray](), 1.0
        for level, tables in enumerate(self.tables):
            rest = max(rest - shares[tables].sum(), 0.0)
            given = (
                np.append(shares[tables], rest) if level < len(self.tables) - 1 else shares[tables]
            )
            point.append(np.tile(given / given.sum() + _LEAST, len(self.numbers[level])))
        best, error = descended(self.error, np.concatenate(point), 1.0, _FIRST_STEPS)
        if error < alike * (1 - _GAIN):
            best, error = descended(self.error, best, 1.0, _MOST_STEPS)
        spent = zip(self.tables, self.divided(best)[2], strict=True)
        columns = {
            table: given[:, at]
            for tables, given in spent
            for at, table in enumerate(tables.tolist())
        }
        return error, [columns[table] for table in range(len(shares))]


def _with_weights(asked: _LevelTables, block: Block, squares: FloatArray) -> tuple[Block, float]:
    """Return a table with whole weights of its groups, and the weight of the table, from the squared weight of every orbit."""
    heaviest, along = (
        math.sqrt(squares.max()),
        {factor.attributes: factor for factor in block.factors},
    )
    factor = along.get((asked.name,))
    if factor is None:
        return block, heaviest
    groups = asked.levels.orbits.of_groups[asked.levels.level(factor.operator) or 0]
    whole = np.maximum(1, np.rint(np.sqrt(squares)[groups] * _HEAVIEST / heaviest)).astype(np.int64)
    along[factor.attributes] = Factor(factor.attributes, factor.operator, whole)
    return Block(tuple(along.values()), block.scale, block.measure), heaviest / _HEAVIEST


def _added(errors: Errors, cost: FloatArray) -> Weights | None:
    """Return the best weights of tables that are added one by one to a table that determines everything; None if there is no such table."""
    alone = [Weights(theta=unit, error=errors(unit**2)[0]) for unit in np.diag(1 / cost)]
    best = min(
        (weights for weights in alone if weights.error < math.inf),
        key=lambda weights: weights.error,
        default=None,
    )
    while best is not None and not best.theta.all():
        tried = []
        for table in np.flatnonzero(best.theta == 0):
            theta = best.theta * (1 - _ADDED)
            theta[table] = _ADDED / cost[table]
            theta = improve_weights(theta, errors, cost, 1, _STEPS)
            tried.append((errors(theta**2)[0], theta))
        weights = least_error(errors, cost, min(tried, key=lambda pair: pair[0])[1], norm=1)
        if not weights.error < best.error * (1 - _GAIN):
            break
        best = weights
    return best


def marginals(task: Task) -> Strategy:
    """Measure the tables that are asked about, of cells and of levels, with the best weights."""
    workload, norm, domain = task.workload, task.norm, task.workload.domain
    asked = _level_tables(workload)
    if asked is None:
        return weighted_strategy(
            "marginals", workload, {}, workload.tables, norm, privacy=task.privacy
        )
    blocks, total = [], len(asked.levels.groups) - 1
    operators = {
        asked.levels.level(operator): operator
        for attribute, _, operator in workload.along
        if attribute == asked.name
    }
    for measure, level, names in asked.tables:
        factors = {attribute: factor_along(domain, attribute, {}) for attribute in names}
        factors |= {asked.name: Factor((asked.name,), operators[level])} if level < total else {}
        blocks.append(
            checked(
                Block(
                    tuple(factors[name] for name in domain.names if name in factors),
                    Fraction(1),
                    measure,
                )
            )
        )
    cost = table_costs(domain, blocks, norm, task.privacy)
    weights = least_error(asked.errors, cost, 1 / cost, norm=norm)
    if (
        norm == 2
        and 1 < max(map(len, asked.levels.orbits.numbers)) <= _MOST_ORBITS
        and asked.levels.size <= _MOST_CELLS
    ):
        error, spent = _GroupWeights(asked, cost).least((weights.theta * cost) ** 2, weights.error)
        if error < weights.error * (1 - _GROUP_GAIN):
            tables = zip(blocks, spent, cost.tolist(), strict=True)
            kept = tuple(
                _with_weights(asked, block, squares / unit**2)
                for block, squares, unit in tables
                if squares.max() > _LEAST_SPENT
            )
            return Strategy("marginals", kept, error=error)
    fewer = _added(asked.errors, cost) if norm == 1 else None
    return weighed(
        "marginals",
        blocks,
        cost,
        weights if fewer is None or weights.error < fewer.error else fewer,
    )


def _level_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of the weights of tables of levels under Laplace noise."""
    asked = _level_tables(workload)
    return 0.0 if asked is None else 0.1 * len(asked.spaces) * len(asked.levels.groups)


def _group_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of the weights of tables of levels, and of groups, under Gaussian noise."""
    asked = _level_tables(workload)
    orbits = 1 if asked is None else max(map(len, asked.levels.orbits.numbers))
    return 0.1 * _level_seconds(workload) + (0.5 if 2 < orbits <= _MOST_ORBITS else 0.0)


MARGINALS = Planner(
    name="marginals",
    propose=marginals,
    measures="the tables of cells that are asked about, and those of levels along one attribute, "
    "with the best weights",
    made_for="marginals, and levels along one attribute",
    limits="tables of 2^28 cells",
    seconds=lambda workload: shortly(workload) + _group_seconds(workload),
    laplace=_level_seconds,
)
