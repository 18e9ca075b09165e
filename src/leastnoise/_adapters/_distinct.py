"""The values of a column that are told apart, each looked at once (E2, E3 of PROOFS-adapters.md)."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from leastnoise._adapters._column import Column
from leastnoise._adapters._values import stamp_text
from leastnoise._check.arrays import Array, IntArray


def by_value(compute: Callable[[Sequence[object]], IntArray]) -> Callable[[Column], IntArray]:
    """Encode each distinct value once.

    Args:
        compute: from values to what was found for each.

    >>> by_value(lambda values: np.array([len(str(value)) for value in values]))(Column(["a", "bc", "a"])).tolist()
    [1, 2, 1]
    """
    missing = int(compute([None])[0])

    def encode(column: Column) -> IntArray:
        values, where = distinct(column.data)
        found = compute(values)
        return column.rows(found if where is None else found[where], missing)

    return encode


def distinct(data: Array | Sequence[object]) -> tuple[Sequence[object], npt.NDArray[np.intp] | None]:
    """The values that are told apart, and which of them each one is; None for where if all are listed.

    Only values of one numpy type, and texts, are ever taken to be the same: equal values of other types can have different texts.

    >>> values, where = distinct(["b", "a", "b", None])
    >>> values, where.tolist()
    (['b', 'a', None], [0, 1, 0, 2])
    """
    if isinstance(data, np.ndarray):
        found, where = np.unique(data, return_inverse=True)
        return [stamp_or_null(value) for value in found] if data.dtype.kind == "M" else list(found), where.reshape(-1)
    if not set(map(type, data)) <= {str, type(None)}:
        return data, None
    places = {value: place for place, value in enumerate(dict.fromkeys(data))}
    return list(places), np.fromiter(map(places.__getitem__, data), dtype=np.intp, count=len(data))


def stamp_or_null(value: np.datetime64) -> str | None:
    """The text of a time stamp, None for a missing one.

    >>> stamp_or_null(np.datetime64("2024-05-01T00:00:00.000")), stamp_or_null(np.datetime64("NaT"))
    ('2024-05-01', None)
    """
    return None if np.isnat(value) else stamp_text(str(value))
