"""Rows of one table with the columns of their partner in a second one (E10 of PROOFS-adapters.md)."""

from collections.abc import Hashable, Sequence

import numpy as np

from leastnoise._adapters._column import Chunks, Column, Encoders, Source
from leastnoise._adapters._places import Joined
from leastnoise._adapters._units import numbering, unit_key
from leastnoise._check import InputError
from leastnoise._check.arrays import IntArray

# In place of the partner of a row whose key is not in the second table, or is there more than once.
NONE, SEVERAL = -1, -2


def joined_source(joined: Joined, first: Source, second: Source, wanted: Sequence[str] | None = None) -> Source:
    """Open two tables as one source: rows of the first, with columns of the second beside those of the first.

    Of an engine only the columns wanted are joined, None for all. An `InputError` if a column that they are joined on is not there, or
    holds what cannot be compared.

    Guarantees: a row has nulls for columns of the second table, or the values of the one row there whose key is its own.
    """
    for opened, name in ((first, joined.own), (second, joined.key)):
        if (times := opened.names.count(name)) != 1:
            raise InputError(f"{opened.what} must have one column {name!r} to be joined on; it has {times} of that name.")
        if name in opened.strange:
            raise InputError(f"the column {name!r} of {opened.what} must hold numbers, text or dates; its type is {opened.strange[name]}.")
    joined_names = [name for name in second.names if name != joined.key] if joined.columns is None else list(joined.columns)
    missing = [name for name in joined_names if name not in second.names]
    if missing:
        raise InputError(f"{second.what} has no column {missing[0]!r}, which the join names. Correct its columns.")

    def encoded(wanted: Encoders) -> Chunks[IntArray]:
        beside = [pair for pair in wanted if pair[0] not in first.names]
        if not beside:
            yield from first.encoded(wanted)
            return
        partners = Partners(second, joined.key, beside)
        mine = [pair for pair in wanted if pair[0] in first.names]
        for rows, (*cells, partner) in first.encoded([*mine, (joined.own, partners.of)]):
            ours, theirs = iter(cells), iter(partners.beside(partner))
            yield rows, [next(ours if name in first.names else theirs) for name, _ in wanted]

    asked = (*first.names, *joined_names) if wanted is None else tuple(dict.fromkeys(wanted))
    beside = [name for name in asked if name in joined_names and name not in first.names]
    engine = None if beside else first.engine
    if beside and first.engine is not None and second.engine is not None:
        mine = [name for name in asked if name in first.names]
        engine = first.engine.joined(second.engine, (joined.own, joined.key), mine, beside)
    strange = {**first.strange, **{name: kind for name, kind in second.strange.items() if name in joined_names and name not in first.names}}
    what, names = f"{first.what} joined with {second.what}", (*first.names, *joined_names)
    return Source(what=what, names=names, total=first.total, encoded=encoded, strange=strange, engine=engine)


class Partners:
    """The rows of the second table, by their keys.

    Args:
        second: the table.
        key: its column of keys.
        wanted: columns of it, and what encodes each.
    """

    def __init__(self, second: Source, key: str, wanted: Encoders) -> None:
        numbers: dict[Hashable, int] = {}
        every = [*wanted, (key, numbering(numbers, unit_key))]
        chunks = [[np.zeros(0, dtype=np.int64)] * len(every), *(encoded for _, encoded in second.encoded(every))]
        *columns, keys = [np.concatenate(parts) for parts in zip(*chunks, strict=True)]
        # behind the last row what a null becomes, which place -1 finds
        self._columns = [np.append(column, encode(Column([None]))) for column, (_, encode) in zip(columns, wanted, strict=True)]
        self._find = numbering(numbers, unit_key, known=True)
        self.times = np.bincount(keys[keys >= 0], minlength=len(numbers))
        self._row = np.full(len(numbers) + 1, NONE, dtype=np.int64)  # the last is that of a key that is not there
        self._row[keys[keys >= 0]] = np.flatnonzero(keys >= 0)
        self._row[:-1][self.times > 1] = SEVERAL

    def of(self, keys: Column) -> IntArray:
        """For each row of a chunk its partner, `NONE` or `SEVERAL`."""
        return self._row[self._find(keys)]

    def beside(self, partner: IntArray) -> list[IntArray]:
        """What the wanted columns of partners were encoded as, and what a null is where there is none."""
        return [column[np.maximum(partner, -1)] for column in self._columns]
