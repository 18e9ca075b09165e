"""Compute the findings about each column from the noisy tables of a profile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from leastnoise._estimation import quantiles
from leastnoise._profile._column_cells import NARROW_WIDTH, MeasuredColumn
from leastnoise._profile._request import ProfilePlan
from leastnoise._profile._share_intervals import (
    FALSE_CELL_RATE,
    ZERO,
    EstimateInterval,
    interval_at,
    level_of_two_intervals,
    share_interval,
)
from leastnoise._profile._unit_sizes import UnitSizes
from leastnoise._release import AnswerTable, Release
from leastnoise._trusted.check.arrays import BoolArray, FloatArray
from leastnoise._workload import marginals, predicates, queries

TAIL_SHARE = 0.005
"""Share of the counted rows that may lie below, and above, the drafted bounds."""
_RUN_LENGTHS = (1, 2, 4, 8)  # numbers of cells next to a bound that are tested together
_RUN_LEVEL = 0.99
"""Level of the interval of a run: a false alarm only widens the bounds."""
_QUARTILES = (0.25, 0.5, 0.75)
_SPECIAL_CELLS = 2  # every table ends with the cells (null) and (outside)
_TYPE_SHARE = 0.5  # if fewer of the present values fit a cell, the type is wrong


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnFindings:
    """The findings about a column, from its noisy table.

    Attributes:
        measured: the column and the cells of its table.
        labels: the labels of the cells, without the cells for missing and unreadable values.
        counts: the noisy number of rows of each cell.
        margins: the half width of the 95% interval of each cell.
        occupied: a mask of the cells with counts that noise alone cannot explain.
        missing: the number of rows without a value.
        unreadable: the number of rows with a value that fits no cell.
        missing_share: the share of rows without a value.
        unreadable_share: the share of rows with a value that fits no cell.
        quartiles: the quartiles of numbers; empty for other kinds and if they are too noisy.
        threshold: noise hides a cell with fewer than about this number of rows.
        range_cells: the first and the last cell within the drafted bounds; of all cells if none is
            occupied.
        rows_below: the number of rows in cells before ``range_cells``.
        rows_above: the number of rows in cells after ``range_cells``.
    """

    measured: MeasuredColumn
    labels: tuple[str, ...]
    counts: FloatArray
    margins: FloatArray
    occupied: BoolArray
    missing: EstimateInterval
    unreadable: EstimateInterval
    missing_share: EstimateInterval
    unreadable_share: EstimateInterval
    quartiles: tuple[EstimateInterval, ...]
    threshold: float
    range_cells: tuple[int, int]
    rows_below: EstimateInterval
    rows_above: EstimateInterval

    @property
    def shown_cells(self) -> list[int]:
        """The positions of the cells to show, which are the occupied cells."""
        return [int(position) for position in np.flatnonzero(self.occupied)]

    @property
    def is_too_noisy(self) -> bool:
        """Whether noise hides all cells."""
        return not self.occupied.any()

    @property
    def fits_type(self) -> bool:
        """Whether at least half of the values have a cell; nulls are not counted."""
        present = float(self.counts[self.occupied].sum())
        if self.unreadable.low <= 0:
            return True
        return present >= _TYPE_SHARE * (present + self.unreadable.value)

    @property
    def describes_values(self) -> bool:
        """Whether most values have a cell, and some cell is clearly occupied."""
        return self.fits_type and not self.is_too_noisy

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The drafted bounds of numbers; for whole numbers, both are allowed values."""
        first, last = self.range_cells
        low = self.measured.edges[first]
        high = self.measured.edges[last + 1]
        if self.is_whole:
            return Fraction(math.ceil(low)), Fraction(math.ceil(high) - 1)
        # A narrow cell begins at a whole number and contains no other number of interest.
        if low - NARROW_WIDTH in self.measured.edges:
            low -= NARROW_WIDTH
        if high - NARROW_WIDTH in self.measured.edges and high - NARROW_WIDTH > low:
            high -= NARROW_WIDTH
        return low, high

    @property
    def is_whole(self) -> bool:
        """Whether all numbers seem to be whole, judging by the occupied cells."""
        if self.measured.kind == "whole":
            return True
        if not self.measured.is_number:
            return False
        edges = self.measured.edges
        last_number = edges[self.range_cells[1]]
        if last_number > 10 or edges[self.range_cells[0]] < 0:
            return False
        starts = [edges[position] for position in self.shown_cells]
        widths = [edges[position + 1] - edges[position] for position in self.shown_cells]
        return all(
            start.denominator == 1 and (width == NARROW_WIDTH or start == 0)
            for start, width in zip(starts, widths, strict=True)
        )


@dataclass(frozen=True, kw_only=True)
class ProfileFindings:
    """The findings of a profile about all rows, columns and units.

    Attributes:
        rows: the number of rows that the release counts.
        columns: the findings from each table.
        unit_sizes: the findings about the number of rows per unit; None if every row is a unit.
    """

    rows: EstimateInterval
    columns: tuple[ColumnFindings, ...]
    unit_sizes: UnitSizes | None = None

    @property
    def has_rows(self) -> bool:
        """Whether the number of rows is clearly above 0."""
        return self.rows.low > 0

    def by_column(self) -> dict[str, ColumnFindings]:
        """Return the findings to show for each column, preferably those on numbers."""
        best: dict[str, ColumnFindings] = {}
        for table in self.columns:
            name = table.measured.column.name
            if name not in best or not best[name].describes_values:
                best[name] = table
        return best


def compute_findings(
    plan: ProfilePlan, release: Release, unit_sizes: UnitSizes | None = None
) -> ProfileFindings:
    """Compute the findings of a profile from its noisy release.

    Args:
        plan: the tables of the profile.
        release: the release that measured them.
        unit_sizes: the findings about the number of rows per unit; None if every row is a unit.
    """
    by_attribute = {table.attribute: table for table in plan.tables}
    # The interval of a share holds if the intervals of part and whole hold.
    careful_level = level_of_two_intervals(release.level)
    levels = (release.level, careful_level, 1 - FALSE_CELL_RATE / release.workload.rows)
    tables_by_level = [
        release.answer(marginals(release.plan.domain, ways=1), level=level) for level in levels
    ]
    total = queries(release.plan.domain)
    (row_table,) = release.answer(total)
    (careful_row_table,) = release.answer(total, level=careful_level)
    careful_rows = _first_interval(careful_row_table)
    columns = []
    for stated, careful, strict in zip(*tables_by_level, strict=True):
        measured = by_attribute[stated.product.attributes[0]]
        tables = _ColumnTables(stated, careful, strict)
        columns.append(_column_findings(measured, release, tables, careful_rows))
    return ProfileFindings(
        rows=_first_interval(row_table), columns=tuple(columns), unit_sizes=unit_sizes
    )


class _ColumnTables(NamedTuple):
    """The noisy table of a column, with intervals at three levels.

    Attributes:
        stated: the level of the release.
        careful: the level of the part and of the whole from which a share is computed.
        strict: a level so high that empty cells rarely appear occupied.
    """

    stated: AnswerTable
    careful: AnswerTable
    strict: AnswerTable


def _first_interval(table: AnswerTable) -> EstimateInterval:
    """Return the answer of a table's first cell with its interval."""
    return interval_at(table, 0)


def _column_findings(
    measured: MeasuredColumn,
    release: Release,
    tables: _ColumnTables,
    careful_rows: EstimateInterval,
) -> ColumnFindings:
    """Return the findings about a column from its tables."""
    cells = tables.stated.answer.size - _SPECIAL_CELLS
    answers = tables.stated.answer.reshape(-1)
    margins = tables.stated.margins.reshape(-1)
    missing = interval_at(tables.careful, cells)
    unreadable = interval_at(tables.careful, cells + 1)
    low_ends = tables.strict.low.reshape(-1)[:cells]
    labels = tuple(str(label) for label in tables.stated.labels[0][:cells])
    threshold = float((answers[:cells] - low_ends).max(initial=0.0))
    findings = ColumnFindings(
        measured=measured,
        labels=labels,
        counts=answers[:cells],
        margins=margins[:cells],
        occupied=low_ends > 0,
        missing=interval_at(tables.stated, cells),
        unreadable=interval_at(tables.stated, cells + 1),
        missing_share=share_interval(missing, careful_rows),
        unreadable_share=share_interval(unreadable, careful_rows),
        quartiles=(),
        threshold=threshold,
        range_cells=(0, cells - 1),
        rows_below=ZERO,
        rows_above=ZERO,
    )
    if findings.is_too_noisy or not findings.fits_type:
        return findings
    if measured.is_number or measured.kind == "date":
        findings = _with_drafted_bounds(findings, release, TAIL_SHARE * careful_rows.high)
    if measured.is_number:
        findings = _with_quartiles(findings, release)
    return findings


def _with_drafted_bounds(
    findings: ColumnFindings, release: Release, max_tail_rows: float
) -> ColumnFindings:
    """Return findings with the drafted bounds and the rows beyond them.

    At first the bounds enclose the occupied cells, except a share `TAIL_SHARE` of their rows at
    each end. Each bound is then moved outwards until at most this share of rows appears to be
    beyond it. Each step moves the bound past the shortest run of neighbouring cells whose sum is
    too large to be noise only. Whole runs are tested, because many small cells together can have
    many rows.
    """
    weights = np.where(findings.occupied, findings.counts, 0.0)
    shares = np.cumsum(weights) / weights.sum()
    first = int(np.argmax(shares > TAIL_SHARE))
    stop = 1 + max(first, int(np.argmax(shares >= 1 - TAIL_SHARE)))
    cells = len(findings.labels)
    below = [(max(0, first - length), first) for length in _RUN_LENGTHS]
    while run := _shortest_occupied_run(findings, release, [(0, first), *below], max_tail_rows):
        first = run[0]
        below = [(max(0, first - length), first) for length in _RUN_LENGTHS]
    above = [(stop, min(cells, stop + length)) for length in _RUN_LENGTHS]
    while run := _shortest_occupied_run(findings, release, [(stop, cells), *above], max_tail_rows):
        stop = run[1]
        above = [(stop, min(cells, stop + length)) for length in _RUN_LENGTHS]
    (rows_below,) = _rows_in_runs(findings, release, [(0, first)], release.level)
    (rows_above,) = _rows_in_runs(findings, release, [(stop, cells)], release.level)
    return replace(
        findings, range_cells=(first, stop - 1), rows_below=rows_below, rows_above=rows_above
    )


def _shortest_occupied_run(
    findings: ColumnFindings,
    release: Release,
    runs: Sequence[tuple[int, int]],
    max_tail_rows: float,
) -> tuple[int, int] | None:
    """Return the shortest run of cells that clearly contains rows, or None.

    Args:
        findings: the findings of the column.
        release: the release of the profile.
        runs: pairs (first cell, stop). The first run consists of all cells beyond the bound; the
            other runs begin at the bound, the shortest first.
        max_tail_rows: the result is None if at most this number of rows is beyond the bound.
    """
    intervals = _rows_in_runs(findings, release, runs, _RUN_LEVEL)
    if intervals[0].value <= max_tail_rows:
        return None
    for run, interval in zip(runs[1:], intervals[1:], strict=True):
        if interval.low > 0:
            return run
    return None


def _rows_in_runs(
    findings: ColumnFindings, release: Release, runs: Sequence[tuple[int, int]], level: float
) -> list[EstimateInterval]:
    """Return the estimated number of rows in each run (first cell, stop)."""
    if runs[0][0] == runs[0][1]:
        return [ZERO] * len(runs)
    cell_sets = predicates([findings.labels[start:stop] for start, stop in runs])
    question = queries(release.plan.domain, {findings.measured.attribute: cell_sets})
    (table,) = release.answer(question, level=level)
    return [interval_at(table, position) for position in range(len(runs))]


def _with_quartiles(findings: ColumnFindings, release: Release) -> ColumnFindings:
    """Return findings with the quartiles of a column of numbers."""
    answers = quantiles(release, findings.measured.attribute, _QUARTILES, level=release.level)
    quartiles = tuple(EstimateInterval(entry.value, entry.low, entry.high) for entry in answers)
    if findings.is_whole:
        quartiles = tuple(_round_to_whole_numbers(quartile) for quartile in quartiles)
    return replace(findings, quartiles=quartiles)


def _round_to_whole_numbers(quartile: EstimateInterval) -> EstimateInterval:
    """Return a quartile with its value and interval rounded to whole numbers."""
    low = float(math.ceil(quartile.low))
    high = max(low, float(math.ceil(quartile.high) - 1))
    return EstimateInterval(min(max(float(math.floor(quartile.value)), low), high), low, high)
