"""Bound the rows of units; count rows that are used, not used and cut.

The labels (E6, E8, E12, E14) refer to PROOFS-reading.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import refuse
from leastnoise._trusted.check.arrays import Array, BoolArray, IntArray
from leastnoise._trusted.domain import (
    MOST_UNITS,
    READ_AS_IT_IS,
    Domain,
    Measure,
    PerCellBound,
    Reading,
    UnitCount,
    UnitTotal,
)
from leastnoise._trusted.reading._key_sets import Numbers
from leastnoise._trusted.reading._unit_keys import UnitNumbers
from leastnoise._trusted.table import PeriodUse, RowAllowance, Table, TableKey, used_rows

# How many rows get a random key, or are counted, at a time: 8 MiB of numbers.
_ROWS_PER_BLOCK = 2**20
# How many rows are compared at a time: few enough for the processor cache.
_ROWS_AT_A_TIME = 2**16


class Units:
    """Numbers the units of a source's rows, and chooses the rows to keep.

    Units are numbered chunk after chunk.

    Attributes:
        number: the encoder from a column to the entries that `add` receives, one for each row
            (`UnitNumbers`). Two rows belong to one unit if their values have the same key
            (`key_reader`). A row whose value has no key belongs to no unit, and its entry is -1.

    >>> units = Units()
    >>> units.add(units.number(Column(["a", "b", "a", None])))
    >>> keep = units.keep(1, lambda count: bytes(range(count)))
    >>> keep.tolist()
    [True, True, False, False]
    """

    def __init__(
        self,
        bound: PerCellBound | None = None,
        sizes: Mapping[str, int] | None = None,
        reading: Reading = READ_AS_IT_IS,
        allowance: RowAllowance | None = None,
    ) -> None:
        self._numbers = UnitNumbers(reading)
        self.number = self._numbers.entries
        self._entries: list[IntArray] = []
        self._chunks: list[Numbers] = [np.zeros(0, dtype=np.int32)]
        names = list(sizes or {})
        if bound is not None and not set(bound.attributes) <= set(names):
            raise refuse(
                "the attributes of max_per_cell",
                list(bound.attributes),
                "attributes that are read: " + ", ".join(names),
            )
        self._bound = bound
        self._within: list[tuple[int, int]] = []
        if bound and sizes:
            self._within = [(names.index(name), sizes[name]) for name in bound.attributes]
        self._cells: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        self._names = names
        self._series: _SeriesRows | None = None
        if allowance is not None:
            self._series = _SeriesRows(allowance, sizes or {})

    def add(self, units: IntArray, codes: Sequence[IntArray] = ()) -> None:
        """Add the units, and the cells, of the rows of a chunk.

        Args:
            units: the entries of the rows' units, from the encoder `number`.
            codes: the cells of the rows along every attribute that is read. The cell of a value
                outside the domain is -1, which also counts as a cell.
        """
        self._entries.append(units)
        if self._numbers.is_full:
            self._number_units()
        if self._series is not None:
            self._series.add(codes)
        if self._within:
            self._cells.append(self._bounded_cells(len(units), codes))

    def _number_units(self) -> None:
        """Number the units of all rows added so far."""
        self._numbers.number_keys()
        self._chunks += map(self._numbers.numbers_of, self._entries)
        self._entries = []

    def _unit_of_rows(self) -> Numbers:
        """Return the unit number of every row; -1 for a row without a unit."""
        self._number_units()
        if len(self._chunks) > 1:
            self._chunks = [np.concatenate(self._chunks)]
        return self._chunks[0]

    def _cells_of_rows(self) -> IntArray:
        """Return the number of each row's cell, for the limit ``max_per_cell``.

        Without this limit, the number is 0 for all rows.
        """
        if not self._within:
            return np.zeros(len(self._unit_of_rows()), dtype=np.int64)
        return np.concatenate(self._cells)

    def _bounded_cells(self, rows: int, codes: Sequence[IntArray]) -> IntArray:
        """Return the number of each row's cell for ``max_per_cell``, for a chunk."""
        cell = np.zeros(rows, dtype=np.int64)
        for attribute, size in self._within:
            # Beyond int64, two cells may get the same number and share one bound, which is safe.
            cell = cell * (size + 1) + (codes[attribute].astype(np.int64) + 1)
        return cell

    def keep(
        self,
        max_rows: int,
        entropy_bytes: Callable[[int], bytes],
        is_selectable: BoolArray | None = None,
    ) -> BoolArray:
        """Choose up to ``max_rows`` random rows of each unit; return their mask.

        Values influence the choice only through the cells in which ``max_per_cell`` limits rows.

        Args:
            max_rows: the number k, at least 1. If there is an allowance, k is the bound of the
                series.
            entropy_bytes: a function that returns the requested number of random bytes;
                `os.urandom` outside tests.
            is_selectable: a mask of the rows to choose from. The entry of a row depends only on
                that row; None for all rows.

        Returns:
            A mask over all rows added.

        Guarantees (stability): let each row have a random key that is independent of everything
            else. Let a unit keep its k rows with the smallest keys. Take two sources that are
            equal, except that one of them also has the rows of one more unit. Give every common row
            the same key in both. This couples the two runs; each run keeps its distribution.
            Whether a row of another unit is kept depends only on the keys of that other unit's
            rows. So this row is kept in both sources or in neither. At most k rows of the
            additional unit are kept. So the kept rows differ by at most k. Each kept row is then
            encoded or dropped by a function of only that row. Dropping removes rows from both
            tables and adds none. So the encoded tables also differ by at most k rows. A mechanism
            that is private for every pair of tables at this distance is private for every fixed
            choice of keys. Hence it is also private on average over the keys. Replacing a unit
            means removing one and adding one: at most 2k rows change.

            With a bound m on the rows in a cell, a unit first keeps, in each cell, the m rows with
            the smallest keys. Of these rows, it keeps the k rows with the smallest keys. This
            choice, too, depends only on the unit's rows and keys. So the kept rows of other units
            stay the same, and at most k rows are added or removed, with at most m in one cell.

            With an allowance (E14) the rows of closed periods are left out, and a unit keeps rows
            period after period, until its allowance is used up.

            Rows without a unit are dropped. If together they were one unit, any number of people
            would share its k rows. If each were a separate unit, one person could have more than k
            rows. Because rows without a unit are dropped, a change of such a row affects no other
            row.

        Edge cases: two keys of 64 bits are equal with probability 2^-64 for each pair. In this
            case, the earlier row comes first, and the proof above remains valid.
        """
        units = self._units_of_open_rows()
        if is_selectable is not None:
            units = np.where(is_selectable, units, -1)
        keys = _random_keys(len(units), entropy_bytes)
        if self._bound is not None:
            units = np.where(
                _smallest_in_group(keys, self._bound.rows, units, self._cells_of_rows()), units, -1
            )
        return self._within_bound(keys, max_rows, units, None) & (units >= 0)

    def _units_of_open_rows(self) -> Numbers:
        """Return the unit of every row; -1 for a row of a closed period."""
        units = self._unit_of_rows()
        if self._series is None:
            return units
        return np.where(self._series.is_open(), units, -1)

    def _within_bound(
        self,
        keys: npt.NDArray[np.uint64],
        most_rows: int,
        units: Numbers,
        name: str | None,
        rows: BoolArray | slice = slice(None),
    ) -> BoolArray:
        """Return a mask of the rows within their unit's bound or allowance (E14).

        Args:
            keys: the random key of each row; rows with smaller keys are preferred.
            most_rows: the bound on the rows of a unit.
            units: the unit of each row.
            name: the measure of units for which these rows are chosen; None for rows that count as
                rows.
            rows: a mask or a slice that selects these rows among the rows of the source.
        """
        if self._series is None:
            return _smallest_in_group(keys, most_rows, units)
        used = self._series.used(self._numbers, name)
        # The last entry is for rows without a unit, whose number is -1.
        allowed = np.append(np.maximum(most_rows - used, 0), 0)
        return _smallest_in_group(
            keys, allowed[units], units, period_of_row=self._series.periods[rows]
        )

    def count_period_use(self, is_counted: Mapping[str | None, BoolArray]) -> PeriodUse | None:
        """Count each unit's rows in each open period; None outside a series.

        Args:
            is_counted: masks over all added rows. The mask with the key None marks the rows that
                count as rows. The mask of a count or total of units marks the rows that were chosen
                for it.
        """
        if self._series is None:
            return None
        return self._series.count_period_use(self._unit_of_rows(), self._numbers, is_counted)

    def count_cut_rows(self, keep: BoolArray, most_per_kept_row: int) -> int:
        """Count the rows of units that are not kept, up to a limit for each unit.

        At most ``most_per_kept_row`` rows of a unit that are not kept are counted for each kept row
        of the unit.

        Args:
            keep: the mask that `keep` returned.
            most_per_kept_row: the largest number of cut rows for each kept row.

        >>> units = Units()
        >>> units.add(units.number(Column(["a"] * 9 + ["b", "b", None])))
        >>> units.count_cut_rows(units.keep(1, os.urandom), 3)
        4
        """
        units = self._unit_of_rows()
        count = len(self._numbers)
        kept = np.bincount(units.take(np.flatnonzero(keep)), minlength=count)
        rows = _count_groups(units, count)[1:]
        return int(np.minimum(rows - kept, most_per_kept_row * kept).sum())

    def choose_representatives(
        self,
        is_inside: BoolArray,
        cells: Sequence[npt.ArrayLike],
        most_cells: int,
        entropy_bytes: Callable[[int], bytes],
        *,
        name: str | None = None,
        hidden_cell_counts: IntArray | None = None,
        is_selectable: BoolArray | None = None,
    ) -> IntArray:
        """Choose the rows that represent their units in cells; return their mask.

        The mask, of integers 0 and 1, marks one row of a unit in each of its cells.

        Several rows of a unit in one cell count once towards ``most_cells``, and once towards a
        bound on the rows in cells of other attributes. If a unit has more cells than
        ``most_cells``, random keys choose ``most_cells`` of them.

        Args:
            is_inside: a mask of the rows inside the domain, over all rows that were added.
            cells: for every attribute whose values together identify a cell, the cells of these
                rows. If there is no such attribute, all rows of a unit are in one cell.
            most_cells: the largest number of cells in which a unit counts.
            entropy_bytes: as for `keep`.
            name: the name of the measure of units; each unit may have an allowance of cells for it
                (E14).
            hidden_cell_counts: the number of hidden cells that each of these rows is in. Rows in
                fewer hidden cells are chosen first, so that rows with a value represent a unit.
            is_selectable: a mask of the rows that may be chosen. For a count of units, a row may be
                chosen if it is in none of the hidden cells of these attributes. For totals of
                units, it may be chosen if it has a value. None if all rows may be chosen.

        >>> units = Units()
        >>> units.add(units.number(Column(["a", "a", "a", "b", None])))
        >>> units.choose_representatives(
        ...     np.ones(5, dtype=bool), [np.array([0, 0, 1, 0, 0])], 2, lambda count: bytes(count)
        ... ).tolist()
        [1, 0, 1, 1, 0]
        """
        every = self._units_of_open_rows()
        units = every[is_inside]
        keys = _random_keys(len(every), entropy_bytes)[is_inside]
        if is_selectable is not None:
            units = np.where(is_selectable, units, -1)
        if hidden_cell_counts is not None:
            keys = _rank_keys(keys, hidden_cell_counts)
        bounded = self._cells_of_rows()[is_inside]
        chosen = self._chosen(
            keys, most_cells, units, [*map(np.asarray, cells)], bounded, name=name, rows=is_inside
        )
        return chosen.astype(np.int64)

    def _chosen(
        self,
        keys: npt.NDArray[np.uint64],
        most_cells: int,
        units: Numbers,
        cells: Sequence[IntArray],
        bounded_cells: IntArray,
        *,
        name: str | None = None,
        rows: BoolArray | slice = slice(None),
    ) -> BoolArray:
        """Choose one row of each unit in each cell, within bounds; return a mask."""
        once = _smallest_in_group(keys, 1, units, *cells) & (units >= 0)
        if self._bound is not None:
            once &= _smallest_in_group(
                keys, self._bound.rows, np.where(once, units, -1), bounded_cells
            )
        return self._within_bound(keys, most_cells, np.where(once, units, -1), name, rows) & once

    def group_rows(
        self,
        is_inside: BoolArray,
        codes: Mapping[str, Array],
        unit_count: UnitCount,
        most_groups: int,
        entropy_bytes: Callable[[int], bytes],
        *,
        hidden_cell_counts: IntArray,
        is_selectable: BoolArray,
    ) -> dict[str, Array]:
        """Choose a row for each unit and group; return cells by attribute (E12).

        Args:
            is_inside: a mask of the rows inside the domain, over all rows that were added.
            codes: for every attribute that is read, the cells of these rows.
            unit_count: the count of units, with groups.
            most_groups: the largest number of groups in which a unit counts.
            entropy_bytes: as for `keep`.
            hidden_cell_counts: the number of hidden cells that each of these rows is in.
            is_selectable: whether each of these rows may count, as for `choose_representatives`.

        Returns:
            The cells of one row for each group that a unit is in. Along the attributes of the
            count, this is the cell that stores the count of the group. Along other attributes, it
            is the cell of one of the unit's rows in the group.

        >>> units = Units(None, {"month": 4})
        >>> units.add(units.number(Column(["a", "a", "b"])))
        >>> every = np.ones(3, dtype=bool)
        >>> counted = UnitCount(["month"], [[[0, 1], [2, 3]]])
        >>> made = units.group_rows(
        ...     every,
        ...     {"month": np.array([0, 1, 2])},
        ...     counted,
        ...     2,
        ...     os.urandom,
        ...     hidden_cell_counts=np.zeros(3),
        ...     is_selectable=every,
        ... )
        >>> sorted(made["month"].tolist())
        [1, 3]
        """
        if self._series is not None:  # because windows may need rows of closed periods (E14)
            raise refuse(
                "a count of units in groups of cells",
                ", ".join(unit_count.attributes),
                "without a bound on the rows of a unit in all periods of a series",
            )
        units = np.where(is_selectable, self._unit_of_rows()[is_inside], -1)
        keys = _rank_keys(_random_keys(len(units), entropy_bytes), hidden_cell_counts)
        cells = [codes[name].astype(np.int64) for name in unit_count.attributes]
        # All rows of a unit in one cell are in the same groups, so one of them is enough.
        source = np.flatnonzero(_smallest_in_group(keys, 1, units, *cells) & (units >= 0))
        along: dict[str, IntArray] = {}
        for name, column, groups, positions in zip(
            unit_count.attributes, cells, unit_count.groups, unit_count.places, strict=True
        ):
            if groups is None or positions is None:
                along[name] = column[source]
                continue
            times, place_of_copy = _group_places(column[source], groups, positions)
            copied = np.repeat(np.arange(len(source)), times)
            source = source[copied]
            along = {other: of_rows[copied] for other, of_rows in along.items()}
            along[name] = place_of_copy
        keys = _rank_keys(_random_keys(len(source), entropy_bytes), hidden_cell_counts[source])
        copied_cells = {
            name: along[name] if name in along else codes[name][source] for name in codes
        }
        bounded = self._bounded_cells(len(source), [copied_cells[name] for name in self._names])
        chosen = self._chosen(keys, most_groups, units[source], [*along.values()], bounded)
        return {
            name: column[chosen].astype(codes[name].dtype) for name, column in copied_cells.items()
        }

    def cut_amount(
        self,
        is_inside: BoolArray,
        cells: Sequence[npt.ArrayLike],
        totals: IntArray,
        amounts: IntArray,
        *,
        is_chosen: BoolArray,
        is_selectable: BoolArray,
        most_per_cell: int,
    ) -> int:
        """Return the amount that clipping and limits cut from unit totals (E8).

        At most ``most_per_cell`` times the number of a unit's chosen rows is counted for the unit.

        Args:
            is_inside: a mask of the rows inside the domain, over all rows that were added.
            cells: for every attribute whose values together identify a cell, the cells of these
                rows.
            totals: for each of these rows the total of its unit in its cell.
            amounts: the amount of each of these rows; it is 0 unless the row was chosen.
            is_chosen: a mask of the rows that have the totals of their units.
            is_selectable: whether each of these rows may have been chosen.
            most_per_cell: the largest cut amount for each chosen row.

        >>> units = Units()
        >>> units.add(units.number(Column(["a", "a", "b"])))
        >>> every, totals = np.ones(3, dtype=bool), np.array([9, 4, 5])
        >>> chosen = np.array([True, False, True])
        >>> units.cut_amount(
        ...     every,
        ...     [np.array([0, 1, 0])],
        ...     totals,
        ...     np.array([6, 0, 5]),
        ...     is_chosen=chosen,
        ...     is_selectable=every,
        ...     most_per_cell=30,
        ... )
        7
        """
        units = self._units_of_open_rows()[is_inside]
        eligible = np.flatnonzero(is_selectable & (units >= 0))
        order, starts = _order_by_group(
            len(eligible), units[eligible], *(np.asarray(column)[eligible] for column in cells)
        )
        one_in_each_cell = eligible[order[starts]]
        positions = np.flatnonzero(is_chosen)
        beyond = np.zeros(len(self._numbers), dtype=np.int64)
        np.add.at(beyond, units[one_in_each_cell], np.abs(totals[one_in_each_cell]))
        np.subtract.at(beyond, units[positions], np.abs(totals[positions]))
        np.add.at(beyond, units[positions], np.abs(totals[positions] - amounts[positions]))
        number_chosen = np.bincount(units[positions], minlength=len(self._numbers))
        return int(np.minimum(beyond, most_per_cell * number_chosen).sum())

    def totals(
        self, is_inside: BoolArray, cells: Sequence[npt.ArrayLike], amounts: IntArray
    ) -> IntArray:
        """Sum the amounts of each unit in each cell; return each row's sum (E12).

        The amounts are whole numbers, so the totals do not depend on the order of the rows.

        Args:
            is_inside: a mask of the rows inside the domain, over all rows that were added.
            cells: for every attribute whose values together identify a cell, the cells of these
                rows.
            amounts: the amounts of these rows, in units.

        >>> units = Units()
        >>> units.add(units.number(Column(["a", "a", "a", "b"])))
        >>> units.totals(
        ...     np.ones(4, dtype=bool), [np.array([0, 0, 1, 0])], np.array([5, -2, 7, 1])
        ... ).tolist()
        [3, 3, 7, 1]
        """
        units = self._unit_of_rows()[is_inside]
        order, starts = _order_by_group(len(units), units, *map(np.asarray, cells))
        totals = np.zeros(len(units), dtype=np.int64)
        if len(starts):
            lengths = np.diff(np.append(starts, len(units)))
            totals[order] = np.repeat(np.add.reduceat(amounts[order], starts), lengths)
        return totals


class _SeriesRows:
    """The period of each row, and the rows used in closed periods (E14).

    Args:
        allowance: the allowance of the units in all periods of a series.
        sizes: the number of cells of every attribute that is read, in the order of the codes of a
            chunk.
    """

    def __init__(self, allowance: RowAllowance, sizes: Mapping[str, int]) -> None:
        if allowance.along not in sizes:
            raise refuse("the periods of a series", allowance.along, "an attribute that is read")
        self._column = [*sizes].index(allowance.along)
        self._number_of_periods = sizes[allowance.along]
        self._chunks: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        self._most = allowance.most
        self._before = used_rows(allowance)
        self._digests: tuple[bytes, ...] = ()

    def add(self, codes: Sequence[IntArray]) -> None:
        """Add the periods of a chunk; rows without a period come after all periods."""
        periods = codes[self._column].astype(np.int64)
        self._chunks.append(np.where(periods < 0, self._number_of_periods, periods))

    @property
    def periods(self) -> IntArray:
        """The period of every row."""
        if len(self._chunks) > 1:
            self._chunks = [np.concatenate(self._chunks)]
        return self._chunks[0]

    def is_open(self) -> BoolArray:
        """Return a mask of the rows that are not in a closed period."""
        return self.periods >= self._before.periods

    def digests(self, numbers: UnitNumbers) -> tuple[bytes, ...]:
        """Return the digest of each unit, by which a series identifies the unit.

        The digests are in the order of the unit numbers.
        """
        if len(self._digests) != len(numbers):
            self._digests = tuple(map(self._before.digest, numbers.keys()))
        return self._digests

    def used(self, numbers: UnitNumbers, name: str | None) -> IntArray:
        """Return how many rows each unit used in closed periods, by unit number.

        ``name`` is the measure of units; None for rows that count as rows.
        """
        return self._before.used_by_units(self.digests(numbers), name)

    def count_period_use(
        self,
        units: Numbers,
        numbers: UnitNumbers,
        is_counted: Mapping[str | None, BoolArray],
    ) -> PeriodUse:
        """Count the rows that each unit uses in each open period."""
        has_period = self.periods < self._number_of_periods
        uses: dict[str | None, tuple[IntArray, IntArray, IntArray]] = {}
        for name, mask in is_counted.items():
            rows = mask & has_period
            cells = units[rows].astype(np.int64) * self._number_of_periods + self.periods[rows]
            distinct, times = np.unique(cells, return_counts=True)
            unit, period = np.divmod(distinct, self._number_of_periods)
            uses[name] = (unit, period, times.astype(np.int64))
        return PeriodUse(
            before=self._before, most=self._most, units=self.digests(numbers), uses=uses
        )


def _random_keys(count: int, entropy_bytes: Callable[[int], bytes]) -> npt.NDArray[np.uint64]:
    """Return ``count`` random 64-bit numbers."""
    keys = np.empty(count, dtype=np.uint64)
    for start in range(0, count, _ROWS_PER_BLOCK):
        some = keys[start : start + _ROWS_PER_BLOCK]
        some[:] = np.frombuffer(entropy_bytes(some.nbytes), dtype="<u8")
    return keys


def _rank_keys(keys: npt.NDArray[np.uint64], hidden_cell_counts: Array) -> npt.NDArray[np.uint64]:
    """Replace random keys by ranks in which rows in fewer hidden cells are first."""
    order = np.lexsort((keys, hidden_cell_counts))
    ranks = np.empty_like(keys)
    ranks[order] = np.arange(len(order), dtype=np.uint64)
    return ranks


def _group_places(
    cells: IntArray, groups: Sequence[Sequence[int]], counting_cells: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Return how many groups contain each cell, and where they are counted.

    ``counting_cells`` has the cell that stores the count of each group.

    >>> times, place_of_copy = _group_places(np.array([1, 0, 9]), [(0, 1), (1, 2)], [1, 2])
    >>> times.tolist(), place_of_copy.tolist()
    ([2, 1, 0], [1, 2, 1])
    """
    members = np.concatenate([np.array(group, dtype=np.int64) for group in groups])
    place_of_member = np.repeat(np.array(counting_cells), [len(group) for group in groups])
    order = np.argsort(members, kind="stable")
    starts = np.searchsorted(members[order], cells, side="left")
    times = np.searchsorted(members[order], cells, side="right") - starts
    within = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
    return times, place_of_member[order][np.repeat(starts, times) + within]


def _smallest_in_group(
    keys: npt.NDArray[np.uint64],
    most_rows: int | IntArray,
    *groups: Array,
    period_of_row: IntArray | None = None,
) -> BoolArray:
    """Return a mask that selects the rows with the smallest keys in each group.

    At most ``most_rows`` rows of a group are selected. ``most_rows`` is one number, or an array
    with a number for every row; the rows of a group have the same number. Rows with a smaller
    number in ``period_of_row`` are chosen first, regardless of their keys. Among rows with equal
    keys the earlier row comes first.
    """
    if period_of_row is None and isinstance(most_rows, int):
        group = _group_numbers(*groups)
        if group is not None:
            return _smallest_by_limits(keys, most_rows, group)
    ranks: tuple[Array, ...] = (keys,)
    if period_of_row is not None:
        ranks = (keys, period_of_row)
    order, starts = _order_by_group(len(keys), *groups, ranks=ranks)
    first = np.zeros(len(keys), dtype=np.bool_)
    positions = _places_in_groups(len(keys), starts)
    first[order] = positions < (most_rows if isinstance(most_rows, int) else most_rows[order])
    return first


def _smallest_by_limits(keys: npt.NDArray[np.uint64], most_rows: int, group: Array) -> BoolArray:
    """Return a mask of each group's ``most_rows`` rows with the smallest keys.

    The function combines the number of a row's group and the first bits of the row's key in one
    integer. The integers of all rows are sorted. The limit of a group is its ``most_rows``-th
    smallest integer. Rows whose integers are at most the limit are chosen. If the next integer of a
    group equals the limit, the rows of that group are sorted by their whole keys.

    Args:
        keys: the key of each row.
        most_rows: at least 1.
        group: the number of each row's group, at least -1.
    """
    sizes = _count_groups(group, int(group.max(initial=-1)) + 1)
    exceeds = sizes > most_rows
    if not exceeds.any():
        return np.ones(len(keys), dtype=np.bool_)
    # Only groups with more than ``most`` rows are numbered; all other groups have -1.
    number = np.where(exceeds, np.cumsum(exceeds) - 1, -1).astype(np.int32)
    sizes = sizes[exceeds]
    group_bits = len(sizes).bit_length()
    blocks = [
        slice(start, start + _ROWS_AT_A_TIME) for start in range(0, len(keys), _ROWS_AT_A_TIME)
    ]

    def packed(block: slice) -> tuple[Numbers, npt.NDArray[np.uint64]]:
        """Return each row's group number, and this number combined with key bits."""
        numbers = number.take(group[block] + 1)
        shifted = numbers.astype(np.uint64) << np.uint64(64 - group_bits)
        return numbers, shifted | (keys[block] >> np.uint64(group_bits))

    ordered = np.empty(int(sizes.sum()), dtype=np.uint64)
    end = 0
    for block in blocks:
        numbers, values = packed(block)
        if numbers.min() < 0:
            values = values[numbers >= 0]
        ordered[end : end + len(values)] = values
        end += len(values)
    ordered.sort()
    positions = np.cumsum(sizes) - sizes + most_rows - 1
    limits = ordered[positions]
    is_tied = ordered[positions + 1] == limits
    first = np.empty(len(keys), dtype=np.bool_)
    for block in blocks:
        numbers, values = packed(block)
        first[block] = (values <= limits.take(numbers)) | (numbers < 0)
    if is_tied.any():
        tied = np.flatnonzero(np.append(is_tied, False)[number[group + 1]])
        order, starts = _order_by_group(len(tied), group[tied], ranks=(keys[tied],))
        first[tied[order]] = _places_in_groups(len(tied), starts) < most_rows
    return first


def _count_groups(group: Array, groups: int) -> IntArray:
    """Count the rows of each group; entry 0 counts rows without a group.

    Args:
        group: the group of each row, from 0 to ``groups`` - 1; -1 for a row without a group.
        groups: the number of groups.
    """
    sizes = np.zeros(groups + 1, dtype=np.int64)
    # With blocks smaller than the number of groups, empty groups would take most of the time.
    block = max(_ROWS_PER_BLOCK, groups)
    for start in range(0, len(group), block):
        sizes += np.bincount(group[start : start + block] + 1, minlength=groups + 1)
    return sizes


def _group_numbers(*groups: Array) -> Array | None:
    """Number each row's combination of groups; None if 64 bits are too few.

    The smallest number is -1 or 0. The result is None if there are too many combinations for 64
    bits.
    """
    if len(groups) == 1:
        return groups[0]
    combined = _combined_groups(*groups)
    if combined is None:
        return None
    return np.unique(combined, return_inverse=True)[1]


def _combined_groups(*groups: Array) -> IntArray | None:
    """Combine each row's groups in one integer; None if 64 bits are too few."""
    combined = np.zeros(len(groups[0]), dtype=np.int64)
    combinations = 1
    for group in groups:
        low = int(group.min(initial=0))
        size = int(group.max(initial=0)) - low + 1
        combinations *= size
        if combinations >= 2**63:
            return None
        combined = combined * size + (group.astype(np.int64) - low)
    return combined


def _places_in_groups(rows: int, starts: npt.NDArray[np.intp]) -> IntArray:
    """Return each sorted row's index within its group."""
    sizes = np.diff(np.append(starts, rows))
    positions: IntArray = np.arange(rows) - np.repeat(starts, sizes)
    return positions


def _order_by_group(
    rows: int, *groups: Array, ranks: Sequence[Array] = ()
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return indices that sort rows by group, and the start of each group.

    Args:
        rows: the number of rows.
        groups: one array for each criterion; rows that agree in all of them form a group.
        ranks: arrays that determine the order in a group, the last array first; if there are none,
            the order is arbitrary.
    """
    combined = None
    if not ranks:
        combined = _combined_groups(*groups)
    if combined is None:
        order = np.lexsort((*ranks, *groups))
    else:
        order = np.argsort(combined)
        groups = (combined,)
    new = np.ones(rows, dtype=np.bool_)
    changes = []
    for group in groups:
        ordered = group[order]
        changes.append(ordered[1:] != ordered[:-1])
    new[1:] = np.logical_or.reduce(changes)
    return order, np.flatnonzero(new)


ROWS = "rows"
ATTRIBUTE = "attribute"
CUT = "cut"
LACKING = "lacking"
MOST_CUT = 3
"""The number of cut rows that one counted row may represent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowUsage:
    """Private numbers of the rows that a release uses, does not use and cuts.

    Attributes:
        used: the number of rows that count for their unit and that the domain keeps.
        unused: the number of other rows that count for their unit.
        cut: the number of cut rows, summed over units. For each row that counts, at most
            ``MOST_CUT`` cut rows are counted.
        lacking: for each attribute that only some tables use, the difference of two numbers of used
            rows that were drawn for it: the rows without a value minus the rows with a value.
        amounts: for each total of units, two sums in its units: the absolute amounts that count,
            and the amounts that clipping and the limit of cells take away from each unit
            (`cut_limit`).
    """

    used: int
    unused: int
    cut: int
    lacking: tuple[int, ...] = ()
    amounts: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def kept_amount(name: str) -> str:
    """Return the name of the measure for a unit total's counted amounts.

    >>> kept_amount("revenue")
    'kept of revenue'
    """
    return f"kept of {name}"


def cut_amount(name: str) -> str:
    """Return the name of the measure for a unit total's cut amounts.

    >>> cut_amount("revenue")
    'cut of revenue'
    """
    return f"cut of {name}"


def cut_limit(largest: int) -> int:
    """Return the largest amount that counts as cut for one cell of a unit.

    Args:
        largest: the largest amount of the total.

    >>> cut_limit(100), cut_limit(MOST_UNITS - 1)
    (300, 1073741822)
    """
    return min(MOST_CUT, MOST_UNITS // largest) * largest


def usage_domain(attributes: int = 0, totals: Mapping[str, UnitTotal] | None = None) -> Domain:
    """Return the domain of the table of used, unused and cut rows.

    Args:
        attributes: the number of attributes that only some tables use.
        totals: the totals of units whose kept and cut amounts are measures of the domain.

    >>> usage_domain().names, usage_domain(2).names
    (('rows',), ('rows', 'attribute'))
    >>> [*usage_domain(totals={"revenue": UnitTotal("amount", 0, 9)}).measures]
    ['cut', 'kept of revenue', 'cut of revenue']
    """
    largest_amounts = tuple((name, total.largest) for name, total in (totals or {}).items())
    return _usage_domain(attributes, largest_amounts)


@cache
def _usage_domain(attributes: int, totals: tuple[tuple[str, int], ...]) -> Domain:
    """Return the domain of the usage table, from a cache."""
    kinds = {ROWS: ["used", "unused"]}
    measures = {CUT: Measure(CUT, 0, MOST_CUT)}
    if attributes:
        kinds[ATTRIBUTE] = [str(number) for number in range(attributes)]
        measures[LACKING] = Measure(LACKING, -1, 1)
    for name, largest in totals:
        measures[kept_amount(name)] = Measure(kept_amount(name), 0, largest)
        measures[cut_amount(name)] = Measure(cut_amount(name), 0, cut_limit(largest))
    return Domain(kinds, measures=measures)


def usage_table(
    usage: RowUsage,
    unit_column: str | None,
    max_rows: int,
    totals: Mapping[str, UnitTotal] | None = None,
) -> Table:
    """Return the `Table` of used, unused and cut rows, and of cut amounts.

    Args:
        usage: the private numbers.
        unit_column: the column whose values are the privacy units; None if every row is a unit.
        max_rows: the largest number of rows of a unit that count. The same number limits the cells
            in which a unit has a total.
        totals: the totals of units that are read.

    Guarantees: every row that counts for its unit is in exactly one of the two cells, and adds 1 or
        -1 to at most one attribute. So a unit changes each of the two cells by at most
        ``max_rows``, and at most ``MOST_CUT`` cut rows are counted for each of its rows that count.
        All rows of the unit may be in one of the two cells, because ``max_per_cell`` of the main
        table limits rows in other cells. A unit has a total in at most ``max_rows`` cells. For each
        of these cells, it changes the kept amounts by at most the largest amount, and the cut
        amounts by at most `cut_limit`.

    >>> usage_table(RowUsage(used=3, unused=1, cut=0), None, 1)
    <Table of private rows over Domain(rows=Categories(['used', 'unused']),
    measures={'cut': Measure('cut', 0, 3)})>
    """
    domain = usage_domain(len(usage.lacking), totals)
    counts: dict[TableKey, IntArray] = {
        (None, (ROWS,)): np.array([usage.used, usage.unused], dtype=np.int64),
        (CUT, ()): np.array([usage.cut], dtype=np.int64),
    }
    if usage.lacking:
        counts[LACKING, (ATTRIBUTE,)] = np.array(usage.lacking, dtype=np.int64)
    for name, (kept, cut) in usage.amounts.items():
        counts[kept_amount(name), ()] = np.array([kept], dtype=np.int64)
        counts[cut_amount(name), ()] = np.array([cut], dtype=np.int64)
    return Table.counted(
        domain, domain.names, [*domain.measures], counts, unit_column=unit_column, max_rows=max_rows
    )


def lacking_rows(
    hidden_cells: Sequence[BoolArray], entropy_bytes: Callable[[int], bytes]
) -> tuple[int, ...]:
    """Return sampled rows without a value minus other ones, by attribute (E8).

    Args:
        hidden_cells: for each attribute that only some tables use, a mask of the used rows that are
            in its hidden cell.
        entropy_bytes: a function that returns the requested number of random bytes.

    Returns:
        One number for each attribute: among the rows drawn for the attribute, the number of rows in
        the hidden cell minus the number of other rows.

    >>> lacking_rows([np.array([True, True, False])], bytes)
    (1,)
    """
    if not hidden_cells:
        return ()
    hidden_numbers = _random_keys(len(hidden_cells[0]), entropy_bytes) % np.uint64(
        len(hidden_cells)
    )
    counts = []
    for attribute, is_hidden in enumerate(hidden_cells):
        of_attribute = is_hidden[hidden_numbers == attribute]
        counts.append(2 * int(np.count_nonzero(of_attribute)) - len(of_attribute))
    return tuple(counts)
