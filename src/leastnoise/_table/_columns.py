"""Where the rows of a table are kept: not in the handle, so that whoever holds a `Table` holds nothing that leads to them.

Filled by `Table` when it is made, opened by the kernel alone; the import contracts allow nobody else. The labels (T1 ...) refer to
PROOFS-table.md beside this file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from leastnoise._check.arrays import IntArray

Codes = npt.NDArray[np.unsignedinteger[Any]]
Values = IntArray


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


_KEPT: WeakKeyDictionary[object, Columns] = WeakKeyDictionary()  # T3


def keep(handle: object, columns: Columns) -> None:
    """Keep the rows of a new handle for as long as it lives.

    >>> class Handle: ...
    >>> handle = Handle()
    >>> keep(handle, Columns(codes={}, values={}, rows=3))
    >>> columns_of(handle).rows
    3
    """
    _KEPT[handle] = columns


def columns_of(handle: object) -> Columns:
    """The rows behind a handle; for the kernel.

    >>> columns_of(Table(Domain(sex=["F", "M"]), {"sex": [0, 1, 1]})).rows
    3
    """
    return _KEPT[handle]
