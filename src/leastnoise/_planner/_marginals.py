"""Tables of cells and of levels: those that are asked about, with the best weights.

Where one attribute is asked about by levels that lie in each other, and the others by their cells, every level by every asked set of the
others may be measured. With the notation of ``_product`` in ``accuracy``: on every residual space tau of the others the levels have weights
of their own, a(l) the sum over tables (l, S), S containing tau, of theta^2 prod over S without tau of 1 / n_i, and the error is that of the
levels. Under Gaussian noise it is convex in theta^2, and for equal groups the optimum over all strategies (docs/mathematics.md, section 2);
where groups are of many sizes each has a weight of its own if that gains over 1%.
Under Laplace noise it is not, and a weight of 0 stays 0: beginning with one table that tells everything, those that gain most are added one
by one. Most get nothing.

Source: Cormode et al. (arXiv 1207.6096), strategy Q+, here with weights that are best after recovery; levels are this project's own.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from leastnoise._accuracy import subsets
from leastnoise._check.arrays import FloatArray
from leastnoise._families import Levels, descended, nested_levels
from leastnoise._linop import Total
from leastnoise._measurements import Block, Factor
from leastnoise._planner._residual_algebra import Errors, Weights, improve_weights, least_error
from leastnoise._planner._strategy import Planner, Strategy, Task, shortly
from leastnoise._planner._tables import Names, checked, factor_along, table_costs, weighed, weighted_strategy
from leastnoise._workload import Workload

_MOST_TABLES, _MOST_SPACES = 128, 256
_ADDED = 0.15  # of the budget, to begin with, for a table that is added
_STEPS = 12
_GAIN = 1e-3  # of the squared error, for which a table is added, or a search goes on
_MOST_ORBITS, _MOST_CELLS = 2**12, 2**16  # up to which groups have weights of their own; of more cells columns are not added up
_GROUP_GAIN = 0.01  # of the squared error, for which they do
_FIRST_STEPS, _MOST_STEPS, _HEAVIEST, _LEAST, _LEAST_SPENT = 30, 600, 2**12, 1e-9, 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class _Leveled:
    """What a workload asks of levels along one attribute, by sets of others, for each measure."""

    name: str
    levels: Levels
    tables: list[tuple[str | None, int, Names]]  # every asked level by every asked set of others
    spaces: list[tuple[FloatArray, FloatArray]]  # for every measure and tau what is asked of each level, and what each table tells of it

    def errors(self, squares: FloatArray) -> tuple[float, FloatArray]:
        """See `Errors`."""
        total, gain = 0.0, np.zeros(len(squares))
        for wanted, known in self.spaces:
            error, slopes = self.levels.orbits.error((known @ squares).tolist(), wanted.tolist())
            total, gain = total + error, gain + known.T @ [slope.sum() for slope in slopes]
        return total, gain


@lru_cache(maxsize=4)
def _leveled(workload: Workload) -> _Leveled | None:
    """None where not levels along one attribute are asked, or by too many sets of others."""
    if len(workload.beyond_cells) != 1 or len(workload.products) > _MOST_TABLES:
        return None
    (name,), domain = workload.beyond_cells, workload.domain
    levels = nested_levels(domain.kind(name).size, [operator for attribute, _, operator in workload.along if attribute == name])
    if levels is None:
        return None
    asked = []
    for product in workload:
        along = dict(zip(product.attributes, product.operators, strict=True))
        level = levels.level(along.pop(name, Total(levels.size)))
        asked.append((product.measure, level or 0, tuple(along), product.importance))
    pairs = dict.fromkeys((measure, level) for measure, level, _, _ in asked)
    others = dict.fromkeys((measure, names) for measure, _, names, _ in asked)
    tables = [(measure, level, names) for measure, level in pairs for of_measure, names in others if of_measure == measure]
    if len(tables) > _MOST_TABLES:
        return None
    spaces, depth = [], len(levels.groups)
    for measure, tau in dict.fromkeys((measure, tau) for measure, names in others for tau in subsets(names)):
        wanted, known = np.zeros(depth), np.zeros((depth, len(tables)))
        for of_measure, level, names, importance in asked:
            if of_measure == measure and {*tau} <= {*names}:
                sizes = {other: domain.kind(other).size for other in names}
                wanted[level] += importance * math.prod(sizes[other] - 1.0 if other in tau else 1 / sizes[other] for other in names)
        for column, (of_measure, level, names) in enumerate(tables):
            if of_measure == measure and {*tau} <= {*names}:
                known[level, column] = math.prod(1 / domain.kind(other).size for other in names if other not in tau)
        if wanted.any():
            spaces.append((wanted, known))
    return _Leveled(name, levels, tables, spaces) if len(spaces) <= _MOST_SPACES else None


@dataclass(frozen=True, eq=False)
class _Groups:
    """Tables of levels whose groups have weights of their own; groups that are alike have the same.

    Every cell costs what the groups that it lies in do together. So of what its parent leaves a group gives a part to each table of its
    level, and leaves the rest to what lies in it: all such parts are allowed, and all cells cost the same.
    """

    asked: _Leveled
    cost: FloatArray

    @cached_property
    def tables(self) -> list[list[int]]:
        """Those of every level, the total first, up to the finest that has some."""
        levels = [level for _, level, _ in self.asked.tables]
        depth = len(self.asked.levels.groups)
        return [[i for i, here in enumerate(levels) if here == level] for level in reversed(range(min(levels), depth))]

    @cached_property
    def information(self) -> list[tuple[list[float], list[FloatArray]]]:
        """For every measure and tau what is asked of each level, and by how much the tables of each tell of it at cost 1."""
        return [
            (wanted.tolist(), [(known[:, tables] / self.cost[tables] ** 2).sum(axis=0) for tables in self.tables])
            for wanted, known in self.asked.spaces
        ]

    def spent(self, point: FloatArray) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
        """Of every level what each orbit gives to each table and leaves, in no unit; what is left to each; what it gives to each table."""
        orbits, last = self.asked.levels.orbits, len(self.tables) - 1
        left, parts, spent, begin = [np.ones(1)], list[FloatArray](), list[FloatArray](), 0
        for at, tables in enumerate(self.tables):
            rows, columns = len(orbits.numbers[::-1][at]), len(tables) + (at < last)
            parts.append(point[begin : begin + rows * columns].reshape(rows, columns))
            begin += rows * columns
            given = parts[-1] * (left[-1] / parts[-1].sum(axis=1))[:, None]
            spent.append(given[:, : len(tables)])
            if at < last:
                left.append(given[:, -1][orbits.parents[::-1][at]])
        return parts, left, spent

    def error(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The total squared error, and its derivatives."""
        orbits, (parts, left, spent) = self.asked.levels.orbits, self.spent(point)
        total, slopes, finer = 0.0, [np.zeros_like(given) for given in spent], len(orbits.numbers) - len(spent)
        for wanted, known in self.information:
            precisions = [given @ tells for given, tells in zip(spent, known, strict=True)]
            error, gains = orbits.error([*[0.0] * finer, *precisions[::-1]], wanted)
            total += error
            slopes = [slope - np.outer(gain, tells) for slope, gain, tells in zip(slopes, reversed(gains), known, strict=False)]
        worth, gradient = np.zeros(0), list[FloatArray]()
        for at in reversed(range(len(spent))):  # what is left is worth what those below make of it
            part, slope = parts[at], slopes[at]
            if at < len(spent) - 1:
                slope = np.column_stack([slope, np.bincount(orbits.parents[::-1][at], worth)])
            whole = part.sum(axis=1)
            worth = (slope * part).sum(axis=1) / whole
            gradient.insert(0, ((slope - worth[:, None]) * (left[at] / whole)[:, None]).reshape(-1))
        return total, np.concatenate(gradient)

    def least(self, shares: FloatArray, alike: float) -> tuple[float, list[FloatArray]]:
        """The least error, and what every orbit gives to each table: a descent from shares of the tables where all groups are alike.

        It goes on where its first steps gain something of the error of these.
        """
        point, rest, numbers = list[FloatArray](), 1.0, self.asked.levels.orbits.numbers[::-1]
        for at, tables in enumerate(self.tables):
            rest = max(rest - shares[tables].sum(), 0.0)
            given = np.append(shares[tables], rest) if at < len(self.tables) - 1 else shares[tables]
            point.append(np.tile(given / given.sum() + _LEAST, len(numbers[at])))
        best, error = descended(self.error, np.concatenate(point), 1.0, _FIRST_STEPS)
        if error < alike * (1 - _GAIN):
            best, error = descended(self.error, best, 1.0, _MOST_STEPS)
        given_to = zip(self.tables, self.spent(best)[2], strict=True)
        columns = {table: spent[:, at] for tables, spent in given_to for at, table in enumerate(tables)}
        return error, [columns[table] for table in range(len(shares))]


def _with_weights(asked: _Leveled, block: Block, squares: FloatArray) -> tuple[Block, float]:
    """A table whose groups have whole weights, by what every orbit gives to it, and its weight."""
    heaviest, along = math.sqrt(squares.max()), {factor.attributes: factor for factor in block.factors}
    factor = along.get((asked.name,))
    if factor is None:
        return block, heaviest
    groups = asked.levels.orbits.of_groups[asked.levels.level(factor.operator) or 0]
    whole = np.maximum(1, np.rint(np.sqrt(squares)[groups] * _HEAVIEST / heaviest)).astype(np.int64)
    along[factor.attributes] = Factor(factor.attributes, factor.operator, whole)
    return Block(tuple(along.values()), block.scale, block.measure), heaviest / _HEAVIEST


def _added(errors: Errors, cost: FloatArray) -> Weights | None:
    """The best weights of tables that are added one by one to one that tells everything, if there is one."""
    alone = [Weights(theta=unit, error=errors(unit**2)[0]) for unit in np.diag(1 / cost)]
    best = min((weights for weights in alone if weights.error < math.inf), key=lambda weights: weights.error, default=None)
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
    """The tables that are asked about, those of levels too."""
    workload, norm, domain = task.workload, task.norm, task.workload.domain
    asked = _leveled(workload)
    if asked is None:
        return weighted_strategy("marginals", workload, {}, workload.tables, norm, privacy=task.privacy)
    blocks, total = [], len(asked.levels.groups) - 1
    operators = {asked.levels.level(operator): operator for attribute, _, operator in workload.along if attribute == asked.name}
    for measure, level, names in asked.tables:
        factors = {attribute: factor_along(domain, attribute, {}) for attribute in names}
        factors |= {asked.name: Factor((asked.name,), operators[level])} if level < total else {}
        blocks.append(checked(Block(tuple(factors[name] for name in domain.names if name in factors), Fraction(1), measure)))
    cost = table_costs(domain, blocks, norm, task.privacy)
    weights = least_error(asked.errors, cost, 1 / cost, norm=norm)
    if norm == 2 and 1 < max(map(len, asked.levels.orbits.numbers)) <= _MOST_ORBITS and asked.levels.size <= _MOST_CELLS:
        error, spent = _Groups(asked, cost).least((weights.theta * cost) ** 2, weights.error)
        if error < weights.error * (1 - _GROUP_GAIN):
            tables = zip(blocks, spent, cost.tolist(), strict=True)
            kept = tuple(_with_weights(asked, block, squares / unit**2) for block, squares, unit in tables if squares.max() > _LEAST_SPENT)
            return Strategy("marginals", kept, error=error)
    fewer = _added(asked.errors, cost) if norm == 1 else None
    return weighed("marginals", blocks, cost, weights if fewer is None or weights.error < fewer.error else fewer)


def _level_seconds(workload: Workload) -> float:
    """Estimated CPU seconds of the weights of levels, of a descent."""
    asked = _leveled(workload)
    return 0.0 if asked is None else 0.1 * len(asked.spaces) * len(asked.levels.groups)


def _group_seconds(workload: Workload) -> float:
    """Of a search for the weights of groups, that of levels as a tenth of what it takes under Laplace noise."""
    asked = _leveled(workload)
    orbits = 1 if asked is None else max(map(len, asked.levels.orbits.numbers))
    return 0.1 * _level_seconds(workload) + (0.5 if 2 < orbits <= _MOST_ORBITS else 0.0)


MARGINALS = Planner(
    name="marginals",
    propose=marginals,
    measures="the tables of cells that are asked about, and those of levels along one attribute, with the best weights",
    made_for="marginals, and levels along one attribute",
    limits="tables of 2^28 cells",
    seconds=lambda workload: shortly(workload) + _group_seconds(workload),
    laplace=_level_seconds,
)
