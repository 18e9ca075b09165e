"""Tables of cells and of levels: those that are asked about, with the best weights.

Where one attribute is asked about by nested levels, and the others by their cells, a table of every level and every asked set of the others
may be measured. With the notation of ``_product`` in ``accuracy``: on each residual space tau of the others the precision of level l is
a(l), the sum over tables (l, S) with tau inside S of theta^2 times the product of 1 / n_i over S without tau, and the error is that of
levels with these precisions.

Under Gaussian noise the error is convex in theta^2, and for equal groups its minimum is the optimum over all strategies
(docs/mathematics.md, section 2). Under Laplace noise the error is not convex, and a weight of 0 stays 0 in a descent: beginning with the
best single table that determines everything, the tables that gain most are added one by one. Most tables get no weight.

Source: Cormode et al. (arXiv 1207.6096), strategy Q+, here with weights that are best after recovery; levels are this project's own.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from leastnoise._accuracy import subsets
from leastnoise._check.arrays import FloatArray
from leastnoise._families import Levels, nested_levels
from leastnoise._linop import Total
from leastnoise._measurements import Block, Factor
from leastnoise._planner._residual_algebra import Errors, Weights, improve_weights, least_error
from leastnoise._planner._strategy import Planner, Strategy, Task, shortly
from leastnoise._planner._tables import Names, checked, factor_along, table_costs, weighed, weighted_strategy
from leastnoise._workload import Workload

_MOST_TABLES, _MOST_SPACES = 128, 256
_ADDED = 0.15  # share of the budget with which a table is added
_STEPS = 12
_GAIN = 1e-3  # relative gain of squared error for which a table is added


@dataclass(frozen=True, slots=True, eq=False)
class _LevelTables:
    """What a workload asks of levels along one attribute, and the tables of levels that may be measured for it."""

    name: str  # the attribute that has levels
    levels: Levels
    tables: list[tuple[str | None, int, Names]]  # measure, level and other attributes of every table that may be measured
    # For every measure and residual space of the others: the importance of each level, shape (levels,), and how much of its precision each
    # table adds to each level, shape (levels, tables).
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
    return _LevelTables(name, levels, tables, spaces) if len(spaces) <= _MOST_SPACES else None


def _added(errors: Errors, cost: FloatArray) -> Weights | None:
    """Return the best weights of tables that are added one by one to a table that determines everything; None if there is no such table."""
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
    """Measure the tables that are asked about, of cells and of levels, with the best weights."""
    workload, norm, domain = task.workload, task.norm, task.workload.domain
    asked = _level_tables(workload)
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
    fewer = _added(asked.errors, cost) if norm == 1 else None
    return weighed("marginals", blocks, cost, weights if fewer is None or weights.error < fewer.error else fewer)


def _level_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of the weights of tables of levels under Laplace noise; under Gaussian noise it is a tenth."""
    asked = _level_tables(workload)
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
