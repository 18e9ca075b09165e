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
from leastnoise._families import Levels, NotApplicable, Orbits, descended, nested_levels
from leastnoise._linop import Total
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._planner._residual_algebra import Errors, Weights, improve_weights, least_error
from leastnoise._planner._strategy import Planner, Strategy, Task, shortly
from leastnoise._planner._tables import Candidates, Names, factor_along, table_costs, weighed, weighted_strategy
from leastnoise._workload import Workload

_MOST_TABLES, _MOST_SPACES = 128, 256
_ADDED = 0.15  # of the budget, to begin with, for a table that is added
_STEPS = 12
_GAIN = 1e-3  # of the squared error, for which a table is added, or a search goes on
_MOST_ORBITS, _MOST_CELLS = 2**12, 2**16  # up to which groups have weights of their own; of more cells columns are not added up
_GROUP_GAIN = 0.01  # of the squared error, for which they do
_FIRST_STEPS, _MOST_STEPS, _HEAVIEST, _LEAST, _LEAST_SPENT = 30, 600, 2**12, 1e-9, 1e-8


@dataclass(frozen=True, eq=False)
class _Leveled:
    """What a workload asks of levels along one attribute, by sets of others, for each measure."""

    workload: Workload
    name: str
    levels: Levels

    @cached_property
    def asked(self) -> list[tuple[str | None, int, Names, float]]:
        """For every product its measure, level, other attributes and importance."""
        products = []
        for product in self.workload:
            along = dict(zip(product.attributes, product.operators, strict=True))
            level = self.levels.level(along.pop(self.name, Total(self.levels.size)))
            products.append((product.measure, level or 0, tuple(along), product.importance))
        return products

    @cached_property
    def tables(self) -> list[tuple[str | None, int, Names]]:
        """Every asked level by every asked set of others."""
        levels = dict.fromkeys((measure, level) for measure, level, _, _ in self.asked)
        others = dict.fromkeys((measure, names) for measure, _, names, _ in self.asked)
        return [(measure, level, names) for measure, level in levels for of_measure, names in others if of_measure == measure]

    @property
    def blocks(self) -> list[Block]:
        """The tables as they are measured."""
        domain, tables = self.workload.domain, []
        operators = {self.levels.level(operator): operator for attribute, _, operator in self.workload.along if attribute == self.name}
        for measure, level, names in self.tables:
            factors = {attribute: factor_along(domain, attribute, {}) for attribute in names}
            if level < len(self.levels.groups) - 1:
                factors[self.name] = Factor((self.name,), operators[level])
            if not math.prod(domain.kind(attribute).size for attribute in factors) <= MOST_TABLE_CELLS:
                raise NotApplicable(f"the table of {' x '.join(factors)} has over {MOST_TABLE_CELLS} cells")
            tables.append(Block(tuple(factors[attribute] for attribute in domain.names if attribute in factors), Fraction(1), measure))
        return tables

    @cached_property
    def spaces(self) -> list[tuple[FloatArray, FloatArray]]:
        """For every measure and tau what is asked of each level, and by how much each table tells of it."""
        sizes = {attribute: self.workload.domain.kind(attribute).size for attribute in self.workload.domain.names}
        spaces = []
        for measure, tau in dict.fromkeys((measure, tau) for measure, _, names, _ in self.asked for tau in subsets(names)):
            wanted, known = np.zeros(len(self.levels.groups)), np.zeros((len(self.levels.groups), len(self.tables)))
            for of_measure, level, names, importance in self.asked:
                if of_measure == measure and {*tau} <= {*names}:
                    wanted[level] += importance * math.prod(
                        sizes[attribute] - 1.0 if attribute in tau else 1 / sizes[attribute] for attribute in names
                    )
            for column, (of_measure, level, names) in enumerate(self.tables):
                if of_measure == measure and {*tau} <= {*names}:
                    known[level, column] = math.prod(1 / sizes[attribute] for attribute in names if attribute not in tau)
            if wanted.any():
                spaces.append((wanted, known))
        return spaces

    def errors(self, squares: FloatArray) -> tuple[float, FloatArray]:
        """See `Errors`."""
        total, gain = 0.0, np.zeros(len(squares))
        for wanted, known in self.spaces:
            error, slopes = self.levels.orbits.error((known @ squares).tolist(), wanted.tolist())
            total, gain = total + error, gain + known.T @ [slope.sum() for slope in slopes]
        return total, gain


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
        return [[i for i, here in enumerate(levels) if here == level] for level in reversed(range(min(levels), len(self.orbits.numbers)))]

    @property
    def orbits(self) -> Orbits:
        """Groups that are alike."""
        return self.asked.levels.orbits

    @cached_property
    def information(self) -> list[tuple[list[float], list[FloatArray]]]:
        """For every measure and tau what is asked of each level, and by how much the tables of each tell of it at cost 1."""
        return [
            (wanted.tolist(), [(known[:, tables] / self.cost[tables] ** 2).sum(axis=0) for tables in self.tables])
            for wanted, known in self.asked.spaces
        ]

    def parts(self, point: FloatArray) -> list[FloatArray]:
        """Of every level what each orbit gives to each table and leaves, in no unit."""
        numbers = self.orbits.numbers[::-1]
        sizes = [(len(level), len(tables) + 1) for level, tables in zip(numbers, self.tables, strict=False)]
        sizes[-1] = len(numbers[len(sizes) - 1]), len(self.tables[-1])
        ends = np.cumsum([rows * columns for rows, columns in sizes])[:-1]
        return [part.reshape(size) for part, size in zip(np.split(point, ends), sizes, strict=True)]

    def spent(self, point: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """What is left to every orbit, and what it gives to each table."""
        parents, left, spent = self.orbits.parents[::-1], [np.ones(1)], list[FloatArray]()
        for at, (part, tables) in enumerate(zip(self.parts(point), self.tables, strict=True)):
            given = part * (left[-1] / part.sum(axis=1))[:, None]
            spent.append(given[:, : len(tables)])
            if at < len(self.tables) - 1:
                left.append(given[:, -1][parents[at]])
        return left, spent

    def error(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The total squared error, and its derivatives."""
        left, spent = self.spent(point)
        total, slopes, finer = 0.0, [np.zeros_like(given) for given in spent], len(self.orbits.numbers) - len(spent)
        for wanted, known in self.information:
            precisions = [given @ tells for given, tells in zip(spent, known, strict=True)]
            error, gains = self.orbits.error([*[0.0] * finer, *precisions[::-1]], wanted)
            total += error
            slopes = [slope - np.outer(gain, tells) for slope, gain, tells in zip(slopes, reversed(gains), known, strict=False)]
        worth, gradient = np.zeros(0), list[FloatArray]()
        for at in reversed(range(len(spent))):  # what is left is worth what those below make of it
            part, slope = self.parts(point)[at], slopes[at]
            if at < len(spent) - 1:
                slope = np.column_stack([slope, np.bincount(self.orbits.parents[::-1][at], worth)])
            whole = part.sum(axis=1)
            worth = (slope * part).sum(axis=1) / whole
            gradient.insert(0, ((slope - worth[:, None]) * (left[at] / whole)[:, None]).reshape(-1))
        return total, np.concatenate(gradient)

    def least(self, shares: FloatArray, alike: float) -> tuple[float, list[FloatArray]]:
        """The least error, and what every orbit gives to each table: a descent from shares of the tables where all groups are alike.

        It goes on where its first steps gain something of the error of these.
        """
        point, rest, numbers = list[FloatArray](), 1.0, self.orbits.numbers[::-1]
        for at, tables in enumerate(self.tables):
            rest = max(rest - shares[tables].sum(), 0.0)
            given = np.append(shares[tables], rest) if at < len(self.tables) - 1 else shares[tables]
            point.append(np.tile(given / given.sum() + _LEAST, len(numbers[at])))
        best, error = descended(self.error, np.concatenate(point), 1.0, _FIRST_STEPS)
        if error < alike * (1 - _GAIN):
            best, error = descended(self.error, best, 1.0, _MOST_STEPS)
        columns = {
            table: spent[:, at] for tables, spent in zip(self.tables, self.spent(best)[1], strict=True) for at, table in enumerate(tables)
        }
        return error, [columns[table] for table in range(len(shares))]

    def weighted(self, block: Block, squares: FloatArray) -> tuple[Block, float]:
        """A table whose groups have whole weights, and its weight."""
        heaviest, factors = math.sqrt(squares.max()), {factor.attributes: factor for factor in block.factors}
        along = factors.get((self.asked.name,))
        if along is None:
            return block, heaviest
        groups = self.orbits.of_groups[self.asked.levels.level(along.operator) or 0]
        whole = np.maximum(1, np.rint(np.sqrt(squares)[groups] * _HEAVIEST / heaviest)).astype(np.int64)
        factors[along.attributes] = Factor(along.attributes, along.operator, whole)
        return Block(tuple(factors.values()), block.scale, block.measure), heaviest / _HEAVIEST


@lru_cache(maxsize=4)
def _leveled(workload: Workload) -> _Leveled | None:
    """None where not levels along one attribute are asked, or by too many sets of others."""
    if len(workload.beyond_cells) != 1 or len(workload.products) > _MOST_TABLES:
        return None
    (name,) = workload.beyond_cells
    levels = nested_levels(workload.domain.kind(name).size, [operator for attribute, _, operator in workload.along if attribute == name])
    leveled = None if levels is None else _Leveled(workload, name, levels)
    return leveled if leveled and len(leveled.tables) <= _MOST_TABLES and len(leveled.spaces) <= _MOST_SPACES else None


def _added(errors: Errors, cost: FloatArray) -> Weights | None:
    """The best weights of tables that are added one by one to one that tells everything, if there is one."""
    alone = [unit for unit in np.diag(1 / cost) if errors(unit**2)[0] < math.inf]
    best = min((Weights(theta=unit, error=errors(unit**2)[0]) for unit in alone), key=lambda pair: pair.error, default=None)
    while best is not None and not best.theta.all():
        tried = []
        for table in np.flatnonzero(best.theta == 0):
            theta = best.theta * (1 - _ADDED)
            theta[table] = _ADDED / cost[table]
            theta = improve_weights(theta, errors, cost, 1, _STEPS)
            tried.append((errors(theta**2)[0], theta))
        weights = least_error(errors, cost, [min(tried, key=lambda pair: pair[0])[1]], norm=1)
        if not weights.error < best.error * (1 - _GAIN):
            break
        best = weights
    return best


def marginals(task: Task) -> Strategy:
    """The tables that are asked about, those of levels too."""
    workload, norm = task.workload, task.norm
    asked = _leveled(workload)
    if asked is None:
        return weighted_strategy("marginals", workload, {}, Candidates(workload.tables), norm, privacy=task.privacy)
    blocks = asked.blocks
    cost = table_costs(workload.domain, blocks, norm, task.privacy)
    weights = least_error(asked.errors, cost, [1 / cost], norm=norm)
    if norm == 2 and 1 < max(map(len, asked.levels.orbits.numbers)) <= _MOST_ORBITS and asked.levels.size <= _MOST_CELLS:
        groups = _Groups(asked, cost)
        error, spent = groups.least((weights.theta * cost) ** 2, weights.error)
        if error < weights.error * (1 - _GROUP_GAIN):
            tables = zip(blocks, spent, cost.tolist(), strict=True)
            kept = tuple(groups.weighted(block, squares / unit**2) for block, squares, unit in tables if squares.max() > _LEAST_SPENT)
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
