"""Plan and evaluate a histogram of the number of rows per unit.

Each unit counts once, whatever its number of rows. The histogram therefore does not depend on
``max_rows``, and a limit can be chosen from it by post-processing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from leastnoise._domain import Domain, Edges
from leastnoise._plan import COVERS, ROWS_OF_UNIT, Plan
from leastnoise._planning import plan as make_plan
from leastnoise._profile._share_intervals import (
    FALSE_CELL_RATE,
    ZERO,
    EstimateInterval,
    interval_at,
    level_of_two_intervals,
    share_interval,
)
from leastnoise._release import Release
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check.arrays import BoolArray, FloatArray
from leastnoise._workload import matrix, queries

SIZE_SHARE = Fraction(1, 10)
"""Share of the budget of all tables for the histogram of units."""
COVERED_UNITS = float(COVERS)
"""Share of the units that the drafted ``max_rows`` does not cut."""
_CELL_ENDS = (
    1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000, 2000, 5000, 10**4, 10**5, 10**6,
)  # fmt: skip
"""The largest number of rows of each cell; units with more rows count in the last cell."""
_PLANNING_SECONDS = 5  # time limit for planning the histogram of sizes


def unit_size_cells() -> tuple[tuple[int, int], ...]:
    """Return the smallest and the largest number of rows of each cell.

    >>> unit_size_cells()[3:7]
    ((4, 4), (5, 5), (6, 7), (8, 10))
    """
    return tuple((below + 1, last) for below, last in pairwise((0, *_CELL_ENDS)))


def size_attribute() -> Edges:
    """Return the attribute for the number of rows of a unit."""
    return Edges([0, *_CELL_ENDS], closed="right", outside="clip")


def plan_unit_sizes(privacy: Privacy) -> Plan:
    """Return a plan that measures a histogram of the number of rows per unit.

    The workload counts the units of each cell, and of all cells up to each cell. Planning reads no
    data.

    Args:
        privacy: the budget and the unit of the histogram; ``max_rows`` is not used.
    """
    domain = Domain({ROWS_OF_UNIT: size_attribute()})
    workload = queries(domain, {ROWS_OF_UNIT: "identity"})
    workload += queries(domain, {ROWS_OF_UNIT: "prefix"})
    plan = make_plan(workload, replace(privacy, max_rows=1), seconds=_PLANNING_SECONDS)
    return replace(plan, details=replace(plan.details, counts_unit_sizes=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEffect:
    """The shares of units and rows that a limit on the rows of a unit would cut.

    Attributes:
        max_rows: the limit.
        cut_units: the share of units that have more rows than the limit.
        cut_rows: the share of rows beyond the limit; None if noise hides the share; it is then not
            clear that any unit has more rows.
    """

    max_rows: int
    cut_units: EstimateInterval
    cut_rows: EstimateInterval | None


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitSizes:
    """The findings from a noisy histogram of the number of rows per unit.

    Attributes:
        cells: for each cell, the smallest and the largest number of rows.
        counts: the noisy number of units in each cell.
        margins: the half widths of the intervals of the counts.
        occupied: the cells whose count noise alone cannot explain.
        threshold: noise hides a cell with fewer than about this number of units.
        units: the number of units with at least one row.
        mean_rows: the mean number of rows of units with at most ``largest`` rows.
        largest: the upper end of the last cell that is certainly reached by some units.
        units_beyond: the number of units with more rows than ``largest``.
        limits: the effects of all limits up to ``largest`` and ``max_rows``, ascending.
        max_rows: the limit to draft.
    """

    cells: tuple[tuple[int, int], ...]
    counts: FloatArray
    margins: FloatArray
    occupied: BoolArray
    threshold: float
    units: EstimateInterval
    mean_rows: EstimateInterval
    largest: int
    units_beyond: EstimateInterval
    limits: tuple[LimitEffect, ...]
    max_rows: int

    @property
    def has_units(self) -> bool:
        """Whether the number of units is clearly above 0."""
        return self.units.low > 0

    @property
    def shown_cells(self) -> list[int]:
        """The positions of the cells to show, which are the occupied cells."""
        return [int(position) for position in np.flatnonzero(self.occupied)]

    @property
    def draft_effect(self) -> LimitEffect:
        """The effect of the drafted limit."""
        return next(effect for effect in self.limits if effect.max_rows == self.max_rows)


def describe_unit_sizes(release: Release) -> UnitSizes:
    """Compute findings from a released histogram of the number of rows per unit.

    The drafted limit is the upper end of a cell: the smallest such end that a share `COVERED_UNITS`
    of the units does not exceed, as far as the noise allows this to be determined. Means and shares
    of rows use only the cells up to ``largest``, because a cell with very many rows has noise that
    would dominate the result.

    Args:
        release: the release of the plan from `plan_unit_sizes`.
    """
    cells = unit_size_cells()
    strict_level = 1 - FALSE_CELL_RATE / (2 * len(cells))
    identity = queries(release.plan.domain, {ROWS_OF_UNIT: "identity"})
    (size_table,) = release.answer(identity)
    (strict,) = release.answer(identity, level=strict_level)
    counts = size_table.answer.reshape(-1)
    low_ends = strict.low.reshape(-1)
    beyond = _units_beyond(release, release.level)
    stop = _count_reached_cells(beyond)
    max_rows = _choose_limit(beyond)
    return UnitSizes(
        cells=cells,
        counts=counts,
        margins=size_table.margins.reshape(-1),
        occupied=low_ends > 0,
        threshold=float((counts - low_ends).max(initial=0.0)),
        units=beyond[0],
        mean_rows=_mean_rows(release, stop),
        largest=_CELL_ENDS[stop - 1],
        units_beyond=beyond[stop],
        limits=_limit_effects(release, stop, max_rows),
        max_rows=max_rows,
    )


def _count_reached_cells(units_beyond: Sequence[EstimateInterval]) -> int:
    """Return the number of cells that some units certainly reach."""
    for position in range(1, len(units_beyond)):
        if units_beyond[position].low <= 0:
            return position
    return len(units_beyond) - 1


def _choose_limit(units_beyond: Sequence[EstimateInterval]) -> int:
    """Return the row limit to draft, which is the end of a cell.

    The limit is the smallest of these ends that enough units do not exceed. The search for this end
    also stops if the number of units beyond a limit is smaller than its error. Otherwise, noise in
    the cells of many rows could lead to a large limit.
    """
    most_units = (1 - COVERED_UNITS) * units_beyond[0].value
    position = 0
    while units_beyond[position + 1].value > max(most_units, units_beyond[position + 1].margin):
        position += 1
    return _CELL_ENDS[position]


def _units_beyond(release: Release, level: float) -> list[EstimateInterval]:
    """Return the number of units in each cell or later cells; 0 at the end."""
    cells = len(_CELL_ENDS)
    weights = [[int(cell >= first) for cell in range(cells)] for first in range(cells)]
    return [*_sum_weighted_units(release, weights, level), ZERO]


def _sum_weighted_units(release: Release, weights: Any, level: float) -> list[EstimateInterval]:
    """Return weighted sums of the units in the cells, with intervals.

    Args:
        release: the histogram.
        weights: integer weights, shape (sums, cells).
        level: the coverage probability of each interval.
    """
    question = queries(release.plan.domain, {ROWS_OF_UNIT: matrix(weights)})
    (table,) = release.answer(question, level=level)
    return [interval_at(table, position) for position in range(len(weights))]


def _rows_beyond(release: Release, limits: Sequence[int], stop: int) -> list[EstimateInterval]:
    """Return the number of rows beyond each limit, with an interval.

    The number of rows of a unit is between the two ends of its cell; the estimate uses the middle
    of the cell.

    Args:
        release: the histogram.
        limits: ends of cells; 0 counts all rows.
        stop: only the first ``stop`` cells are used.
    """
    first, last = np.array(unit_size_cells(), dtype=np.int64).T
    is_counted = np.arange(len(first)) < stop
    limit_column = np.array(limits, dtype=np.int64)[:, np.newaxis]
    level = level_of_two_intervals(release.level)
    fewest = np.maximum(first - limit_column, 0) * is_counted
    twice_middle = np.maximum(first + last - 2 * limit_column, 0) * is_counted
    most = np.maximum(last - limit_column, 0) * is_counted
    intervals = []
    for low, middle, high in zip(
        _sum_weighted_units(release, fewest, level),
        _sum_weighted_units(release, twice_middle, level),
        _sum_weighted_units(release, most, level),
        strict=True,
    ):
        value = middle.value / 2
        intervals.append(EstimateInterval(value, min(value, low.low), max(value, high.high)))
    return intervals


def _mean_rows(release: Release, stop: int) -> EstimateInterval:
    """Return the mean number of rows of units in the first ``stop`` cells."""
    (rows,) = _rows_beyond(release, [0], stop)
    is_counted = np.arange(len(_CELL_ENDS)) < stop
    level = level_of_two_intervals(release.level)
    (units,) = _sum_weighted_units(release, [is_counted.astype(np.int64)], level)
    if units.low <= 0:
        return EstimateInterval(1.0, 1.0, math.inf)
    # A unit in the histogram has at least one row.
    low = max(1.0, rows.low / units.high)
    return EstimateInterval(max(low, rows.value / units.value), low, rows.high / units.low)


def _limit_effects(release: Release, stop: int, max_rows: int) -> tuple[LimitEffect, ...]:
    """Return the effects of limits up to the draft's, or the largest reached one.

    Args:
        release: the histogram.
        stop: the number of cells that some units certainly reach.
        max_rows: the limit to draft.
    """
    beyond = _units_beyond(release, level_of_two_intervals(release.level))
    largest = _CELL_ENDS[stop - 1]
    limits = [last for last in _CELL_ENDS if last <= max(max_rows, largest)]
    all_rows, *rows_beyond = _rows_beyond(release, [0, *limits], stop)
    effects = []
    for limit, units, rows in zip(limits, beyond[1:], rows_beyond, strict=False):
        cut_rows = share_interval(rows, all_rows) if limit < largest else None
        effect = LimitEffect(
            max_rows=limit, cut_units=share_interval(units, beyond[0]), cut_rows=cut_rows
        )
        effects.append(effect)
    return tuple(effects)
