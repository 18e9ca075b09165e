"""Where the rows of a table, or its counts, are kept: not in the handle, so that whoever holds a `Table` holds nothing that leads to them.

Filled by `Table` when it is made, opened by the kernel alone; the import contracts allow nobody else. The labels (T1 ...) refer to
PROOFS-table.md beside this file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from leastnoise._check import InternalError
from leastnoise._check.arrays import IntArray

Codes = npt.NDArray[np.unsignedinteger[Any]]
Values = IntArray
# A measure to be summed, or None for rows, and the attributes of a marginal.
Wanted = tuple[str | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False, repr=False)
class Columns:
    """Private rows.

    Attributes:
        codes: for each attribute that was read, the cell of every row.
        values: for each measure that was read, the amount of every row in units.
        rows: their number.
    """

    codes: Mapping[str, Codes]
    values: Mapping[str, Values]
    rows: int


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False, repr=False)
class Counted:
    """Private counts of rows that stay where they are.

    Attributes:
        tables: marginals, flat and row-major in the order of their attributes: rows, or units of a measure.
    """

    tables: Mapping[Wanted, IntArray]


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False, repr=False)
class Keyed:
    """Private keys, and how many units have each.

    Attributes:
        keys: texts, each once, in an order that means nothing.
        units: int64, of the same length, at least 1: nobody's keys are not there.
    """

    keys: tuple[str, ...]
    units: IntArray


_KEPT: WeakKeyDictionary[object, Columns | Counted | Keyed] = WeakKeyDictionary()  # T3


def keep(handle: object, columns: Columns | Counted | Keyed) -> None:
    """Keep the rows or counts of a new handle for as long as it lives.

    >>> class Handle: ...
    >>> handle = Handle()
    >>> keep(handle, Columns(codes={}, values={}, rows=3))
    >>> columns_of(handle).rows
    3
    """
    _KEPT[handle] = columns


def columns_of(handle: object) -> Columns:
    """The rows behind a handle; for the kernel.

    Raises:
        InternalError: the handle has counts.

    >>> columns_of(Table(ln.Domain(sex=["F", "M"]), {"sex": [0, 1, 1]})).rows
    3
    """
    kept = _KEPT[handle]
    if not isinstance(kept, Columns):
        raise InternalError("The rows of this table were counted where they are; please report this.")
    return kept


def counted_of(handle: object) -> Counted | None:
    """The counts behind a handle, None if it has rows; for the kernel.

    >>> counted_of(Table(ln.Domain(sex=["F", "M"]), {"sex": [0, 1, 1]})) is None
    True
    """
    kept = _KEPT[handle]
    return kept if isinstance(kept, Counted) else None


def keyed_of(handle: object) -> Keyed:
    """The keys behind a handle; for the kernel.

    Raises:
        InternalError: the handle has something else.

    >>> keyed_of(Table.keyed(ln.Domain(agent=ln.Unknown(9)), "agent", ["curl"], np.array([3]))).keys
    ('curl',)
    """
    kept = _KEPT[handle]
    if not isinstance(kept, Keyed):
        raise InternalError("This table has rows or counts, and no keys; please report this.")
    return kept
