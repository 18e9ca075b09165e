"""Define the opaque handle on encoded private rows.

The rows are stored outside the handle, so that no reference leads from the handle to them. `Table`
stores them when it is created, and only the kernel opens them. The import contracts allow no other
code to open them. The labels (T1 ...) refer to PROOFS-table.md in this folder.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import Immutable, InputError, InternalError, today
from leastnoise._trusted.check.arrays import Array, BoolArray, IntArray
from leastnoise._trusted.domain import Domain, KeyTable, Measure, PerCellBound, PerUnit
from leastnoise._trusted.table._allowance import PeriodUse

Codes = npt.NDArray[np.unsignedinteger[Any]]
Values = IntArray
# A measure to be summed, or None for rows, and the attributes of a marginal.
TableKey = tuple[str | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False, repr=False)
class Columns:
    """Private rows, stored as one column for each attribute and measure.

    Attributes:
        codes: for each attribute that was read, the cell of every row.
        values: for each measure that was read, the amount of every row in units. The key None, if
            present, has 1 for each row that counts as a row. The array has 0 for a row that counts
            only for its unit.
        rows: the number of rows.
        period_use: the rows that units use in each period, if a series bounds the rows of a unit in
            all periods; None for other tables.
    """

    codes: Mapping[str, Codes]
    values: Mapping[str | None, Values]
    rows: int
    period_use: PeriodUse | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False, repr=False)
class Counted:
    """Private marginals of rows that stay in their database.

    Attributes:
        tables: the marginals, as flat arrays in row-major order of their attributes. They count
            rows, or are in units of a measure.
    """

    tables: Mapping[TableKey, IntArray]


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False, repr=False)
class Keyed:
    """Private keys, and the number of units that have each key.

    Attributes:
        keys: distinct texts; their order has no meaning.
        units: the number of units of each key, an int64 array. Each number is at least 1, because
            keys without a unit are not listed.
    """

    keys: tuple[str, ...]
    units: IntArray


_CONTENT: WeakKeyDictionary[object, Columns | Counted | Keyed] = WeakKeyDictionary()  # T3


def store_content(handle: object, content: Columns | Counted | Keyed) -> None:
    """Store the private content of a handle for as long as the handle lives.

    >>> class Handle: ...
    >>> handle = Handle()
    >>> store_content(handle, Columns(codes={}, values={}, rows=3))
    >>> open_content(handle).rows
    3
    """
    _CONTENT[handle] = content


def open_content(handle: object, *kinds: type) -> Any:
    """Return the private content behind a handle; only for the kernel.

    Args:
        handle: a table.
        kinds: the allowed classes of contents among `Columns`, `Counted` and `Keyed`; if there are
            none, only rows are allowed.

    Raises:
        InternalError: the contents of the handle are of another class.

    >>> open_content(Table(ln.Domain(sex=["F", "M"]), {"sex": [0, 1, 1]})).rows
    3
    >>> open_content(
    ...     Table.keyed(ln.Domain(agent=ln.Unknown(9)), "agent", ["curl"], np.array([3])), Keyed
    ... ).keys
    ('curl',)
    """
    content = _CONTENT[handle]
    if not isinstance(content, kinds or Columns):
        raise InternalError(
            f"This table has {type(content).__name__}, but other content was requested; "
            "please report this."
        )
    return content


class Table(Immutable):
    """An opaque handle on private rows, encoded as columns of whole numbers.

    There is one column of cell numbers for each attribute, and one column of integer amounts for
    each measure.

    The package `leastnoise._trusted.reading` creates it, and only the kernel opens it. A table does
    not reveal its number of rows, which is private too. A table can be neither changed, compared
    nor pickled.

    Args:
        domain: the public domain that the rows were encoded with.
        codes: for each attribute that was read, the cell of every row: integers from 0 to the
            attribute's size - 1.
        values: for each measure that was read, the amount of every row in units. The amount is an
            integer within the measure's bounds if the row has a value, and 0 otherwise. The
            `ValueCount` of the measure, if it was read, records which rows have a value.
        unit_column: the column whose values are the privacy units; None if every row is a unit.
        max_rows: the largest number of rows of one unit in the table.
        max_per_cell: the largest number of them in one cell; None without such a bound.
        rows: the number of rows. This number is needed if no column was read, because only the
            total can then be requested.
        counting: 1 for every row that counts as a row, and 0 for a row that has only an amount of
            its unit (`PerUnit`); None if all rows count.
        usage: the handle on a second table, which counts the used and the unused rows of the
            source; None if it was not requested.
        period_use: the rows that units use in each period of a series that bounds them in all
            periods; private, and None for other tables.

    Attributes:
        domain: the public domain.
        attributes: the attributes that were read, in the order of the domain. No row was dropped
            because of another attribute, and no other attribute can be counted.
        measures: the measures that were read, in the order of the domain.
        unit_column: as above.
        max_rows: as above.
        max_per_cell: as above.
        usage: as above.
        read_on: the day (UTC) on which reading began. If the budget has periods, the budget of a
            period pays only for rows that were read in that period.

    Raises:
        InternalError: the columns do not fit the domain. The cause is a fault of the encoder; the
            message names the column, never a value.

    Guarantees: every code is a cell of its attribute, and every value lies within the bounds of its
        measure or is 0. Therefore one row is in exactly one cell of each marginal, and adds at most
        ``largest`` units to a sum. The columns are copies and cannot be written.

    >>> Table(Domain(sex=["F", "M"]), {"sex": [0, 1, 1]})
    <Table of private rows over Domain(sex=Categories(['F', 'M']))>
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "domain",
        "max_per_cell",
        "max_rows",
        "measures",
        "read_on",
        "unit_column",
        "usage",
    )

    domain: Domain
    attributes: tuple[str, ...]
    measures: tuple[str, ...]
    unit_column: str | None
    max_rows: int
    max_per_cell: PerCellBound | None
    usage: "Table | None"
    read_on: date

    def __init__(
        self,
        domain: Domain,
        codes: Mapping[str, npt.ArrayLike],
        values: Mapping[str, npt.ArrayLike] | None = None,
        *,
        unit_column: str | None = None,
        max_rows: int = 1,
        max_per_cell: PerCellBound | None = None,
        rows: int | None = None,
        counting: npt.ArrayLike | None = None,
        usage: "Table | None" = None,
        period_use: PeriodUse | None = None,
    ) -> None:
        amounts = {} if values is None else values
        if not (set(codes) <= set(domain.names) and set(amounts) <= set(domain.measures)):
            raise InternalError(
                "the columns of a table must be codes of attributes and values of measures of its "
                "domain."
            )
        columns = {
            name: _checked_codes(name, codes[name], domain.cells(name))
            for name in domain.names
            if name in codes
        }
        measures = {name: measure for name, measure in domain.measures.items() if name in amounts}
        # T2
        sums: dict[str, Values] = {
            name: _read_only_copy(_integer_array("values", name, amounts[name]))
            for name in measures
        }
        lengths = {len(column) for column in (*columns.values(), *sums.values())} | (
            set() if rows is None else {rows}
        )
        if len(lengths) != 1:
            raise InternalError("all columns of a table must have the same number of rows.")  # T1
        for name, measure in measures.items():
            value_counts = sums.get(domain.count_of(name) or "")
            if not _is_within_bounds(measure, sums[name], value_counts).all():
                # T1
                raise InternalError(
                    f"the values of {name!r} must lie within the bounds of the measure."
                )
        if counting is None:
            counts = None
        else:
            counts = _checked_counting(counting, lengths, measures, sums)
        bounds = {
            "unit_column": unit_column,
            "max_rows": max_rows,
            "max_per_cell": max_per_cell,
            "usage": usage,
        }
        self._set_facts(domain=domain, attributes=tuple(columns), measures=tuple(sums), **bounds)
        values_of: dict[str | None, Values] = {name: sums[name] for name in measures}
        if counts is not None:
            values_of[None] = counts
        # T7
        content = Columns(
            codes=columns, values=values_of, rows=lengths.pop(), period_use=period_use
        )
        store_content(self, content)

    @classmethod
    def counted(
        cls,
        domain: Domain,
        attributes: Sequence[str],
        measures: Sequence[str],
        tables: Mapping[TableKey, IntArray],
        *,
        unit_column: str | None = None,
        max_rows: int = 1,
        max_per_cell: PerCellBound | None = None,
        usage: "Table | None" = None,
    ) -> "Table":
        """Return a handle on private marginals that a database has counted.

        If one of these attributes drops a row, the row is in no marginal.

        Args:
            domain: the public domain.
            attributes: the attributes that were read.
            measures: the measures that were read.
            tables: a mapping from the measure (None for rows) and the attributes to the marginal, a
                flat row-major int64 array.
            unit_column: as for `Table`.
            max_rows: as for `Table`.
            max_per_cell: as for `Table`.
            usage: as for `Table`.

        Raises:
            InternalError: the counts do not fit the domain; the message names the attributes, never
                a number.

        >>> Table.counted(
        ...     ln.Domain(sex=["F", "M"]), ["sex"], [], {(None, ("sex",)): np.array([1, 2])}
        ... )
        <Table of private rows over Domain(sex=Categories(['F', 'M']))>
        """
        table = object.__new__(cls)
        read = tuple(name for name in domain.names if name in attributes)
        sums = tuple(name for name in domain.measures if name in measures)
        counted_tables = {}
        for (measure, names), counts in tables.items():
            cells = math.prod(map(domain.cells, names))
            if (
                not {*names} <= {*read}
                or measure not in (None, *sums)
                or counts.shape != (cells,)
                or counts.dtype != np.int64
            ):
                # T4
                raise InternalError(
                    f"the counts of {names!r} must be int64 numbers of cells that were read."
                )
            if measure is None and int(counts.min()) < 0:
                raise InternalError(f"the counts of {names!r} must not be negative.")  # T4
            counted_tables[measure, tuple(names)] = _read_only_copy(counts)
        bounds = {
            "unit_column": unit_column,
            "max_rows": max_rows,
            "max_per_cell": max_per_cell,
            "usage": usage,
        }
        table._set_facts(domain=domain, attributes=read, measures=sums, **bounds)
        store_content(table, Counted(tables=counted_tables))
        return table

    @classmethod
    def keyed(
        cls,
        domain: Domain,
        attribute: str,
        keys: Sequence[str],
        units: IntArray,
        *,
        unit_column: str | None = None,
        max_rows: int = 1,
    ) -> "Table":
        """Return a handle on private keys, with the number of units of each key.

        Args:
            domain: a domain in which the attribute is `Unknown`.
            attribute: the attribute to which the keys belong.
            keys: the distinct keys that occur.
            units: the number of units that have each key, an int64 array.
            unit_column: the column whose values are the units.
            max_rows: the largest number of keys for which a unit counts; it counts once for each.

        Raises:
            InternalError: keys or numbers do not fit; the message names the attribute, never a key
                or a number.

        >>> Table.keyed(ln.Domain(agent=ln.Unknown(9)), "agent", ["curl"], np.array([3]))
        <Table of private rows over Domain(agent=Unknown(9))>
        """
        allowed = domain.keys(attribute).table
        texts = tuple(keys)
        are_allowed = (
            isinstance(allowed, KeyTable)
            and len(set(texts)) == len(texts)
            and all(type(text) is str and allowed.allows(text) for text in texts)
        )
        if (
            not are_allowed
            or units.shape != (len(texts),)
            or units.dtype != np.int64
            or not int(units.min(initial=1)) >= 1
        ):
            # T5
            raise InternalError(
                f"the keys of {attribute!r} must be distinct and allowed, and each must have a "
                "number of units of at least 1."
            )
        table = object.__new__(cls)
        bounds = {
            "unit_column": unit_column,
            "max_rows": max_rows,
            "max_per_cell": None,
            "usage": None,
        }
        table._set_facts(domain=domain, attributes=(attribute,), measures=(), **bounds)
        store_content(table, Keyed(keys=texts, units=_read_only_copy(units)))
        return table

    def _set_facts(self, **facts: object) -> None:
        """Set the public facts of a new handle."""
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "read_on", today())  # T8

    def require(self, attributes: Iterable[str], measures: Iterable[str] = ()) -> None:
        """Raise unless the table was read with these attributes and measures.

        Args:
            attributes: the names of the attributes that a step needs.
            measures: the names of the measures that a step needs.

        Raises:
            InputError: the domain lacks one of the attributes or measures, or the table was read
                without it.
        """
        for column_kind, names, names_read, look_up in (
            ("attribute", attributes, self.attributes, self.domain.kind),
            ("measure", measures, self.measures, self.domain.measure),
        ):
            for name in names:
                if name not in names_read:
                    look_up(name)
                    raise InputError(
                        f"The table was read without the {column_kind} {name!r}. Read the source "
                        "again for the plan."
                    )

    def __repr__(self) -> str:
        return f"<Table of private rows over {self.domain!r}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(
            "a Table holds private rows and is not pickled; read it again from its source"
        )


def set_reading_day(table: Table, day: date) -> Table:
    """Set the day on which the reading of a new table began; return the table.

    The table of its usage gets the same day. Only readers may call the function, before they return
    the table.

    >>> set_reading_day(Table(ln.Domain(sex=["F", "M"]), {"sex": [0]}), date(2026, 11, 30)).read_on
    datetime.date(2026, 11, 30)
    """
    object.__setattr__(table, "read_on", day)
    if table.usage is not None:
        set_reading_day(table.usage, day)
    return table


def code_dtype(size: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest unsigned type that holds the codes of an attribute.

    Args:
        size: the number of cells, at least 1.

    Returns:
        uint8, uint16, uint32 or uint64.

    >>> code_dtype(256), code_dtype(257)
    (dtype('uint8'), dtype('uint16'))
    """
    return np.min_scalar_type(size - 1)


def _checked_codes(name: str, column: npt.ArrayLike, size: int) -> Codes:
    """Check a column of codes, and return a read-only copy (T1, T2)."""
    array = _integer_array("codes", name, column)
    if array.size and not (int(array.min()) >= 0 and int(array.max()) < size):
        raise InternalError(f"the codes of {name!r} must be cells of the attribute.")  # T1
    codes: Codes = _read_only_copy(array, code_dtype(size))  # T2
    return codes


def _checked_counting(
    column: npt.ArrayLike,
    lengths: set[int],
    measures: Mapping[str, Measure],
    sums: Mapping[str, Values],
) -> Values:
    """Check and return the column that states which rows count as rows (T6).

    A row that does not count adds 0 to every sum except amounts of units.
    """
    counting: Values = _read_only_copy(_integer_array("rows", "counting", column))
    if {len(counting)} != lengths or not ((counting == 0) | (counting == 1)).all():
        raise InternalError("counting must be 1 or 0 for every row of a table.")
    for name, measure in measures.items():
        of_rows = not isinstance(measure, PerUnit)
        if of_rows and (sums[name][counting == 0] != 0).any():
            raise InternalError(f"a row that only represents its unit must add 0 to {name!r}.")
    return counting


def _integer_array(content: str, name: str, column: npt.ArrayLike) -> Array:
    """Return a column as a flat integer array; raise if it is not one."""
    array = np.asarray(column)
    # An empty list has no integer type.
    if array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        raise InternalError(f"the {content} of {name!r} must be a flat array of integers.")
    return array


def _read_only_copy(array: Array, dtype: npt.DTypeLike = np.int64) -> Any:
    """Return a read-only copy (T2)."""
    copy = array.astype(dtype, order="C")
    copy.flags.writeable = False
    return copy


def _is_within_bounds(measure: Measure, amounts: Values, value_counts: Values | None) -> BoolArray:
    """Return a mask of the amounts that a measure allows.

    Allowed are the amounts within the bounds, and 0 for a row without a value.

    Args:
        measure: the measure with the bounds, in units.
        amounts: the amount of each row, in units.
        value_counts: 1 for each row with a value, and 0 for other rows; None if the table does not
            have this measure. The amount 0 is then always allowed.
    """
    is_within = (amounts >= measure.low_units) & (amounts <= measure.high_units)
    is_zero = amounts == 0
    if value_counts is None:
        return np.asarray(is_within | is_zero)
    return np.where(np.asarray(value_counts != 0), is_within, is_zero)
