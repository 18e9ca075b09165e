"""Find cells that readers could compute from rounded or suppressed tables.

A data holder plans to publish tables in which counts are rounded or left out. A reader knows the
tables and the rounding rule, and knows that counts are whole numbers of at least 0. `solve_tables`
computes the values that the reader can infer: the smallest and the largest value of every hidden
cell. `solve_tables` reads tables and never rows, and gives no privacy guarantee.
"""

import csv
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray

COUNT_COLUMN = "count"
ROUNDINGS = ("nearest", "random", "down")
MOST_CELLS = 20_000
"""The most cells of the table of all attributes. Each has a variable of the solver."""
MOST_HIDDEN_CELLS = 2_000
"""The most hidden cells. Each takes two linear programs, and at most two integer programs."""
_MOST_DIGITS = 12  # the longest text that is read as a count; `MOST_COUNT` has 10 digits
MOST_COUNT = 10**9
"""The largest count. Larger ones are not exact within the tolerances of the solver."""
_INTEGRALITY_TOLERANCE = 1e-4  # differences by which the solver may miss a whole number
_TIME_LIMIT = 1  # a status of SciPy
_INFEASIBLE_STATUS = 2  # a status of SciPy
_MOST_EXTREME_SOLUTIONS = 12  # rounds that look for other solutions; affects only the cost
_WHOLE_TOLERANCE = 1e-6  # differences by which a whole solution may miss whole numbers
_SOLVER_SECONDS = 10.0  # the time limit of one optimisation; after it, the proved bound is used
# The time limit for finding whole solutions; after it, only linear programs are solved.
_FIRST_SECONDS = 30.0
_INTEGER_SECONDS = 120.0  # after them no further integer program is started
_LINEAR_SECONDS = 600.0  # after them no further program is started


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """A table of rounded or suppressed counts, before it is published.

    Attributes:
        name: the name of its file.
        attributes: its columns, except for the column of counts.
        counts: the count of each cell by its labels; None if it is suppressed.
    """

    name: str
    attributes: tuple[str, ...]
    counts: Mapping[tuple[str, ...], int | None]


@dataclass(frozen=True, slots=True)
class RoundingRule:
    """How counts are rounded and suppressed in published tables.

    Attributes:
        base: published counts are multiples of this number; 1 for exact counts.
        method: "nearest"; "random" (to one of the two neighbouring multiples); or "down".
        suppressed: the smallest and the largest count that is suppressed; None for no limit.
    """

    base: int = 1
    method: str = "nearest"
    suppressed: tuple[int, int | None] = (0, None)

    def bounds(self, count: int | None) -> tuple[int, int | None]:
        """Return the least and largest true count for a published count; None: no limit.

        A suppressed count is None.
        """
        if count is None:
            return self.suppressed
        if self.method == "random":
            below = above = self.base - 1
        elif self.method == "down":
            below = 0
            above = self.base - 1
        else:
            below = above = self.base // 2
        return max(0, count - below), count + above


@dataclass(frozen=True, slots=True)
class HiddenCell:
    """A rounded or suppressed cell, and the range of its possible true counts.

    Attributes:
        table: the name of its table.
        labels: its labels by attribute.
        published: the rounded count; None if it is suppressed.
        low: the smallest possible count.
        high: the largest possible count; None if there is no limit.
        is_proved: whether ``low`` and ``high`` are exact. False if the solver ran out of time, so
            that the exact interval may be narrower.
    """

    table: str
    labels: Mapping[str, str]
    published: int | None
    low: int
    high: int | None
    is_proved: bool = True

    @property
    def possible_count(self) -> int | None:
        """The number of possible true counts; None if there is no limit."""
        if self.high is None:
            return None
        return self.high - self.low + 1

    def is_disclosed(self, least_values: int) -> bool:
        """Return whether fewer true counts are possible than a given minimum."""
        return self.possible_count is not None and self.possible_count < least_values


def read_planned_table(path: Path) -> PlannedTable:
    """Read a planned table from a CSV file.

    The file has a header, a column for each attribute, and the column "count" with a whole number
    or nothing. Every combination of the labels of the file has one line.

    Raises:
        InputError: the file cannot be read or has another form.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(
            f"The table {str(path)!r} cannot be read: {reason}. Name a CSV file that you may read."
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(
            f"The table {str(path)!r} is not CSV in UTF-8. Save it in this encoding."
        ) from None
    if not lines:
        raise InputError(f"The table {str(path)!r} is empty. Write a header and a line per cell.")
    header, *rows = lines
    if header.count(COUNT_COLUMN) != 1 or len(set(header)) != len(header):
        raise InputError(
            f"The table {str(path)!r} must have one column 'count' and a column for each "
            f"attribute; got {', '.join(header)}. Rename its columns."
        )
    position = header.index(COUNT_COLUMN)
    counts: dict[tuple[str, ...], int | None] = {}
    for number, row in enumerate(rows, start=2):
        location = f"Line {number} of the table {str(path)!r}"
        if len(row) != len(header):
            raise InputError(
                f"{location} must have {len(header)} columns; got {len(row)}. "
                "If a text contains a comma, put the text in quotes."
            )
        labels = (*row[:position], *row[position + 1 :])
        if labels in counts:
            raise InputError(f"{location} repeats a cell. Write each combination of labels once.")
        counts[labels] = _read_count(row[position].strip(), location)
    attributes = (*header[:position], *header[position + 1 :])
    _check_complete(path, attributes, counts)
    return PlannedTable(path.name, attributes, counts)


def _read_count(text: str, location: str) -> int | None:
    """Parse the count of a cell; None for the empty text of a suppressed cell."""
    if not text:
        return None
    is_whole = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    if not is_whole or int(text) > MOST_COUNT:
        raise InputError(
            f"{location} must have a whole number from 0 to {MOST_COUNT:,} as its count, or "
            f"nothing if the cell is suppressed; got {text[:40]!r}."
        )
    return int(text)


def _check_complete(
    path: Path, attributes: Sequence[str], counts: Mapping[tuple[str, ...], int | None]
) -> None:
    """Raise unless the table has a line for each combination of labels."""
    needed = math.prod(len(labels) for labels in _labels_of(attributes, counts).values())
    if len(counts) != needed or not counts:
        raise InputError(
            f"The table {str(path)!r} must have a line for every combination of its labels, "
            f"{needed:,} in all; got {len(counts):,}. Write count 0 for an empty cell, and nothing "
            "for a suppressed one."
        )


def _labels_of(
    attributes: Sequence[str], cells: Mapping[tuple[str, ...], Any]
) -> dict[str, list[str]]:
    """Return the labels of each attribute, in order of appearance."""
    return {
        name: list(dict.fromkeys(labels[position] for labels in cells))
        for position, name in enumerate(attributes)
    }


def solve_tables(
    tables: Sequence[PlannedTable], rule: RoundingRule, total: str = "Total"
) -> list[HiddenCell]:
    """Compute which true counts readers can infer for every hidden cell.

    Args:
        tables: tables about the same rows. An attribute has the same labels in all tables.
        rule: the rounding, which readers know.
        total: the label of the sum over an attribute.

    Returns:
        The hidden cells, in the order of the tables.

    Raises:
        InputError: labels differ; a count is not a multiple of the base; the tables are too large;
            or no whole numbers agree with all tables.
    """
    hidden = []
    for table in tables:
        for labels, count in table.counts.items():
            if count is None or rule.base > 1:
                hidden.append((table, labels, count))
    if len(hidden) > MOST_HIDDEN_CELLS:
        raise InputError(
            f"At most {MOST_HIDDEN_CELLS:,} hidden cells can be computed together; got "
            f"{len(hidden):,}. Solve fewer tables together."
        )
    cells = _Cells(_common_labels(tables, total), total)
    sums = [cells.members(table.attributes, labels) for table, labels, _ in hidden]
    bounds = [rule.bounds(count) for _, _, count in hidden]
    intervals = _Conditions(cells, tables, rule).intervals(sums, bounds)
    solved = []
    for (table, labels, count), (low, high, is_proved) in zip(hidden, intervals, strict=True):
        along = dict(zip(table.attributes, labels, strict=True))
        solved.append(HiddenCell(table.name, along, count, low, high, is_proved))
    return solved


def _common_labels(tables: Sequence[PlannedTable], total: str) -> dict[str, list[str]]:
    """Return the labels of each attribute.

    An attribute whose only label is the label of the sum has one cell, with this label.

    Raises:
        InputError: tables disagree on the labels of an attribute.
    """
    common: dict[str, list[str]] = {}
    for table in tables:
        for name, all_labels in _labels_of(table.attributes, table.counts).items():
            labels = [label for label in all_labels if label != total]
            if set(common.setdefault(name, labels)) != set(labels):
                differing = sorted(set(common[name]) ^ set(labels))
                raise InputError(
                    f"The labels of {name} must be the same in all tables; {differing[0]!r} is not "
                    f"in all of them. Write the same labels, and {total!r} for the sum."
                )
    return {name: labels or [total] for name, labels in common.items()}


@dataclass(frozen=True)
class _Cells:
    """The cells of the joint table of all attributes, in row-major order."""

    labels: Mapping[str, Sequence[str]]
    total: str

    def __post_init__(self) -> None:
        if self.size > MOST_CELLS:
            raise InputError(
                f"The table of all attributes may have at most {MOST_CELLS:,} cells; here it has "
                f"{self.size:,} ({' x '.join(self.labels)}). Solve tables with fewer attributes "
                "together."
            )

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(map(len, self.labels.values()))

    def members(self, attributes: Sequence[str], labels: Sequence[str]) -> IntArray:
        """Return the indices of the cells whose counts add up to a published cell."""
        label_of = dict(zip(attributes, labels, strict=True))
        positions = np.zeros(1, dtype=np.int64)
        for name, values in self.labels.items():
            label = label_of.get(name, self.total)
            if label == self.total:
                along = np.arange(len(values))
            else:
                along = np.array([values.index(label)])
            positions = (positions[:, np.newaxis] * len(values) + along).reshape(-1)
        return positions


class _Conditions:
    """The constraints that published counts put on the true counts of cells."""

    def __init__(self, cells: _Cells, tables: Sequence[PlannedTable], rule: RoundingRule) -> None:
        """Collect the conditions, and check that whole numbers satisfy them.

        Args:
            cells: the cells of all attributes.
            tables: the published tables.
            rule: the rounding.
        """
        from scipy.sparse import csr_array

        self._cells = cells
        members = []
        lows = []
        highs = []
        for table in tables:
            for labels, count in table.counts.items():
                if count is not None and count % rule.base:
                    raise InputError(
                        f"Every count must be a multiple of the base {rule.base}; got {count} in "
                        f"the table {table.name!r}. Set --base to the base of the rounding."
                    )
                low, high = rule.bounds(count)
                members.append(cells.members(table.attributes, labels))
                lows.append(float(low))
                highs.append(math.inf if high is None else float(high))
        ends = np.cumsum([0, *map(len, members)])
        entries = (np.ones(ends[-1]), np.concatenate(members), ends)
        self._matrix = csr_array(entries, shape=(len(members), cells.size))
        self._lows = np.array(lows)
        self._highs = np.array(highs)
        self._solutions = self._first_solutions()
        self._start = time.monotonic()

    def _first_solutions(self) -> list[FloatArray]:
        """Find true counts that satisfy the constraints.

        The list is empty if the solver finds none in time. Raise InputError if no true counts
        satisfy the constraints.
        """
        no_costs = np.zeros(self._cells.size)
        result = self._solve(no_costs, is_whole=True, seconds=_FIRST_SECONDS)
        if result.x is not None:
            return [np.rint(result.x)]
        is_late = result.status == _TIME_LIMIT
        if is_late and self._solve(no_costs, is_whole=False).status != _INFEASIBLE_STATUS:
            return []
        raise InputError(
            "No whole numbers agree with all of these tables. Check the counts, --base, "
            "--rounding and --suppressed."
        )

    def intervals(
        self, sums: Sequence[IntArray], bounds: Sequence[tuple[int, int | None]]
    ) -> list[tuple[int, int | None, bool]]:
        """Return each sum's least and largest value, and whether they are exact.

        Args:
            sums: the positions of the cells of each sum.
            bounds: the limits that the conditions put on each sum; None for no limit.

        Returns:
            For each sum: its smallest and largest possible value (None without a limit), and
            whether these values are exact.
        """
        self._add_extreme_solutions(sums, bounds)
        intervals = []
        for members, (least, largest) in zip(sums, bounds, strict=True):
            indicator = np.zeros(self._cells.size)
            indicator[members] = 1.0
            low, is_low_exact = self._minimum(indicator, least)
            limit = None if largest is None else -largest
            negative_high, is_high_exact = self._minimum(-indicator, limit)
            high = None if negative_high is None else -negative_high
            intervals.append((low or 0, high, is_low_exact and is_high_exact))
        return intervals

    def _add_extreme_solutions(
        self, sums: Sequence[IntArray], bounds: Sequence[tuple[int, int | None]]
    ) -> None:
        """Find solutions in which many sums are as small or as large as possible.

        Each solution proves that its values are possible. This makes later optimisations
        unnecessary.
        """
        rounds = _MOST_EXTREME_SOLUTIONS if self._solutions else 0
        for _ in range(rounds):
            costs = np.zeros(self._cells.size)
            open_limits = 0
            for members, (least, largest) in zip(sums, bounds, strict=True):
                values = [float(solution[members].sum()) for solution in self._solutions]
                if min(values) > least:
                    costs[members] += 1.0
                    open_limits += 1
                elif largest is not None and max(values) < largest:
                    costs[members] -= 1.0
                    open_limits += 1
            solution = self._solve(costs, is_whole=True).x
            if not open_limits or solution is None:
                return
            self._solutions.append(np.rint(solution))

    def _minimum(self, costs: FloatArray, limit: int | None) -> tuple[int | None, bool]:
        """Return the least value of a cost (None: no least), and whether it is exact.

        A linear program is solved first. The bound from the linear program is exact if the solution
        consists of integers, or if a known solution attains the bound.

        Args:
            costs: the cost of a count of 1 in each cell.
            limit: a bound that the conditions put on the cost; None for no bound.
        """
        costs_of_solutions = [round(float(costs @ solution)) for solution in self._solutions]
        least_cost = min(costs_of_solutions, default=None)
        if least_cost is not None and least_cost == limit:
            return least_cost, True
        if time.monotonic() > self._start + _LINEAR_SECONDS:
            return limit, False
        relaxed = self._solve(costs, is_whole=False)
        if relaxed.status == _TIME_LIMIT:
            return limit, False
        if relaxed.x is None:
            return None, bool(self._solutions)  # some numbers agree, so there is no limit
        bound = math.ceil(relaxed.fun - _INTEGRALITY_TOLERANCE)
        is_whole = float(np.abs(relaxed.x - np.rint(relaxed.x)).max()) < _WHOLE_TOLERANCE
        if bound == least_cost or is_whole:
            return bound, True
        if not self._solutions or time.monotonic() > self._start + _INTEGER_SECONDS:
            return bound, False
        result = self._solve(costs, is_whole=True)
        if result.x is not None:
            self._solutions.append(np.rint(result.x))
        if result.status == 0:
            return round(result.fun), True
        if result.mip_dual_bound is not None:
            bound = max(bound, math.ceil(result.mip_dual_bound - _INTEGRALITY_TOLERANCE))
        return bound, False

    def _solve(self, costs: FloatArray, *, is_whole: bool, seconds: float = _SOLVER_SECONDS) -> Any:
        """Minimise a linear cost by SciPy's solver, and return the solver's result."""
        from scipy.optimize import LinearConstraint, milp

        return milp(
            costs,
            integrality=np.full(self._cells.size, int(is_whole)),
            constraints=LinearConstraint(self._matrix, self._lows, self._highs),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
