"""Keys that nobody could list beforehand, and how many units have each (E9 of PROOFS-adapters.md)."""

from collections.abc import Callable, Sequence
from functools import partial
from os import urandom
from typing import Any

import numpy as np

from leastnoise._adapters._distinct import by_value
from leastnoise._adapters._read import Progress, opened_for
from leastnoise._adapters._units import Units
from leastnoise._adapters._values import is_null, is_spelled_null, text
from leastnoise._check import refuse
from leastnoise._check.arrays import IntArray
from leastnoise._domain import Domain, PerCell, Unknown
from leastnoise._table import Table

_NONE = -1


def read_keys(
    source: Any,
    domain: Domain,
    attribute: str,
    *,
    unit_column: str | None = None,
    max_rows: int = 1,
    progress: Progress | None = None,
) -> Table:
    """Read the keys of a column, and count the units that have each: in an engine that can, else here, chunk by chunk.

    Args:
        source: as for `leastnoise._adapters.read`.
        domain: where the attribute is `Unknown`.
        attribute: whose keys are counted.
        unit_column: the column whose values are the privacy units; None: each row is a unit.
        max_rows: in how many keys a unit counts, once in each; which of its keys, no value decides.
        progress: as for `leastnoise._adapters.read`.

    Returns:
        The keys, behind a handle.

    Raises:
        InputError: as for `leastnoise._adapters.read`. Never because of a row, and never with a value of one.

    Guarantees: adding or removing all rows of a unit changes the numbers of at most ``max_rows`` keys, each by 1.

    Edge cases: rows without a key, or whose unit is null, are dropped first, so they take no key's place.

    >>> frame = pd.DataFrame({"agent": ["curl", " curl", None, "wget"]})
    >>> read_keys(frame, ln.Domain(agent=ln.Unknown(9, reading=ln.Reading(trim=True))), "agent")
    <Table of private rows over Domain(agent=Unknown(9, reading=Reading(trim=True)))>
    """
    kind = domain.kind(attribute)
    if not isinstance(kind, Unknown):
        raise refuse(f"the attribute {attribute!r}", kind, "Unknown", "The categories of the others are known.")
    opened, names = opened_for(source, {attribute: kind}, {}, unit_column)
    table = partial(Table.keyed, domain, attribute, unit_column=unit_column, max_rows=max_rows)
    if opened.engine is not None:
        from leastnoise._adapters._engine import counted_keys

        there = counted_keys(opened.engine, attribute, kind, unit_column, max_rows, urandom)
        if there is not None:
            return table(list(there), np.array(list(there.values()), dtype=np.int64))
    units = None if unit_column is None else Units(PerCell(1, attribute), {attribute: kind})
    numbers: dict[str, int] = {}
    encode, parts, read = by_value(_numbered(kind, numbers)), [np.zeros(0, dtype=np.int64)], 0
    counts = np.zeros(0, dtype=np.int64)
    for rows, columns in opened.chunks(names):
        found = encode(columns[0])
        if units is None:
            counts = np.append(counts, np.zeros(len(numbers) - len(counts), dtype=np.int64))
            counts += np.bincount(found[found != _NONE], minlength=len(numbers))
        else:
            units.add(columns[-1], [found])
            parts.append(found)
        read += rows
        if progress is not None:
            progress(read, opened.total)
    if units is not None:
        every = np.concatenate(parts)
        counts = np.bincount(every[units.keep(max_rows, urandom, every != _NONE)], minlength=len(numbers))
    return table([key for key, units_of in zip(numbers, counts.tolist(), strict=True) if units_of], counts[counts > 0].astype(np.int64))


def _numbered(kind: Unknown, numbers: dict[str, int]) -> Callable[[Sequence[object]], IntArray]:
    """From values to the numbers of their keys; a new key gets the next number."""

    def number(value: object) -> int:
        form = None if is_null(value) else text(value)
        form = None if form is None else kind.reading.form(form)
        if form is None or is_spelled_null(form, kind.reading) or not kind.allows(form):
            return _NONE
        return numbers.setdefault(form, len(numbers))

    return lambda values: np.fromiter((number(value) for value in values), dtype=np.int64, count=len(values))
