"""Tables of cells and of levels: those that are asked about, with the best weights.

Where one attribute is asked about by levels that lie in each other, and the others by their cells, every level by every asked set of the
others may be measured. With the notation of ``_leveled`` in ``accuracy``: on every residual space tau of the others the levels have weights
of their own, a(l) the sum over tables (l, S), S containing tau, of theta^2 prod over S without tau of 1 / n_i, and the error is that of the
levels. Under Gaussian noise it is convex in theta^2, and for equal groups the optimum over all strategies (docs/mathematics.md, section 2).
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
from leastnoise._families import Levels, NotApplicable, nested_levels
from leastnoise._linop import Total
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._planner._residual_algebra import Errors, Weights, improve_weights, least_error
from leastnoise._planner._strategy import Planner, Strategy, Task, shortly
from leastnoise._planner._tables import Candidates, Names, factor_along, table_costs, weighed, weighted_strategy
from leastnoise._workload import Workload

_MOST_TABLES, _MOST_SPACES = 128, 256
_ADDED = 0.15  # of the budget, to begin with, for a table that is added
_STEPS = 12
_GAIN = 1e-3  # of the squared error, for which a table is added


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
        return [(measure, level, names) for measure, level in levels for own, names in others if own == measure]

    @property
    def blocks(self) -> list[Block]:
        """The tables as they are measured."""
        domain, tables = self.workload.domain, []
        operators = {self.levels.level(operator): operator for attribute, _, operator in self.workload.along if attribute == self.name}
        for measure, level, names in self.tables:
            own = {attribute: factor_along(domain, attribute, {}) for attribute in names}
            if level < len(self.levels.groups) - 1:
                own[self.name] = Factor((self.name,), operators[level])
            if not math.prod(domain.kind(attribute).size for attribute in own) <= MOST_TABLE_CELLS:
                raise NotApplicable(f"the table of {' x '.join(own)} has over {MOST_TABLE_CELLS} cells")
            tables.append(Block(tuple(own[attribute] for attribute in domain.names if attribute in own), Fraction(1), measure))
        return tables

    @cached_property
    def spaces(self) -> list[tuple[FloatArray, FloatArray]]:
        """For every measure and tau what is asked of each level, and by how much each table tells of it."""
        sizes = {attribute: self.workload.domain.kind(attribute).size for attribute in self.workload.domain.names}
        spaces = []
        for measure, tau in dict.fromkeys((measure, tau) for measure, _, names, _ in self.asked for tau in subsets(names)):
            wanted, known = np.zeros(len(self.levels.groups)), np.zeros((len(self.levels.groups), len(self.tables)))
            for own, level, names, importance in self.asked:
                if own == measure and {*tau} <= {*names}:
                    wanted[level] += importance * math.prod(
                        sizes[attribute] - 1.0 if attribute in tau else 1 / sizes[attribute] for attribute in names
                    )
            for column, (own, level, names) in enumerate(self.tables):
                if own == measure and {*tau} <= {*names}:
                    known[level, column] = math.prod(1 / sizes[attribute] for attribute in names if attribute not in tau)
            if wanted.any():
                spaces.append((wanted, known))
        return spaces

    def errors(self, squares: FloatArray) -> tuple[float, FloatArray]:
        """See `Errors`."""
        total, gain = 0.0, np.zeros(len(squares))
        for wanted, known in self.spaces:
            error, slope = self.levels.orbits.error((known @ squares).tolist(), wanted.tolist())
            total, gain = total + error, gain + known.T @ slope
        return total, gain


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
    fewer = _added(asked.errors, cost) if norm == 1 else None
    return weighed("marginals", blocks, cost, weights if fewer is None or weights.error < fewer.error else fewer)


def _level_seconds(workload: Workload) -> float:
    """Estimated CPU seconds of the weights of levels, of a descent."""
    asked = _leveled(workload)
    return 0.0 if asked is None else 0.1 * len(asked.spaces) * len(asked.levels.groups)


MARGINALS = Planner(
    name="marginals",
    propose=marginals,
    measures="the tables of cells that are asked about, and those of levels along one attribute, with the best weights",
    made_for="marginals, and levels along one attribute",
    limits="tables of 2^28 cells",
    seconds=lambda workload: shortly(workload) + 0.1 * _level_seconds(workload),
    laplace=_level_seconds,
)
