"""Rows of one table with the columns of their partner in a second one (E10 of PROOFS-adapters.md)."""

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from leastnoise._adapters._column import Column, Source, by_value
from leastnoise._adapters._location import Joined
from leastnoise._adapters._units import known_numbers, numbered
from leastnoise._check import InputError
from leastnoise._check.arrays import IntArray

# In place of the partner of a row whose key is not in the second table, or is there more than once.
NONE, SEVERAL = -1, -2
# Bits of a partner's place among those of one form, below the number of that form.
_BITS = 40


def joined_source(joined: Joined, first: Source, second: Source, wanted: Sequence[str] | None = None) -> Source:
    """Open two tables as one source.

    Args:
        joined: how they are joined.
        first: whose rows are the rows of the source.
        second: whose columns are beside those of the first.
        wanted: the columns that an engine counts by; None for all.

    Raises:
        InputError: a column that they are joined on is not there, or holds what cannot be compared.

    Guarantees: a row has nulls for columns of the second table, or the values of the one row there whose key is its own.
    """
    for opened, name in ((first, joined.own), (second, joined.key)):
        if (times := opened.names.count(name)) != 1:
            raise InputError(f"{opened.what} must have one column {name!r} to be joined on; it has {times} of that name.")
        if name in opened.strange:
            raise InputError(f"the column {name!r} of {opened.what} must hold numbers, text or dates; its type is {opened.strange[name]}.")
    own = [name for name in second.names if name != joined.key] if joined.columns is None else list(joined.columns)
    missing = [name for name in own if name not in second.names]
    if missing:
        raise InputError(f"{second.what} has no column {missing[0]!r}, which the join names. Correct its columns.")

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        others = [name for name in dict.fromkeys(columns) if name not in first.names]
        if not others:
            yield from first.chunks(columns)
            return
        names = [name for name in dict.fromkeys((*columns, joined.own)) if name in first.names]
        partners = Partners(second, joined.key, others)
        order = [[*names, *others].index(name) for name in columns]
        for _, found in first.chunks(names):
            for rows, beside in partners.beside(found, partners.of(found[names.index(joined.own)])):
                yield rows, [beside[place] for place in order]

    asked = (*first.names, *own) if wanted is None else tuple(dict.fromkeys(wanted))
    beside = [name for name in asked if name in own and name not in first.names]
    engine = None if beside else first.engine
    if beside and first.engine is not None and second.engine is not None:
        mine = [name for name in asked if name in first.names]
        engine = first.engine.joined(second.engine, (joined.own, joined.key), mine, beside)
    strange = {**first.strange, **{name: kind for name, kind in second.strange.items() if name in own and name not in first.names}}
    what, names = f"{first.what} joined with {second.what}", (*first.names, *own)
    return Source(what=what, names=names, total=first.total, chunks=chunks, strange=strange, engine=engine)


class Partners:
    """The rows of the second table, by their keys.

    Args:
        second: the table.
        key: its column of keys.
        columns: of it, that are wanted.
    """

    def __init__(self, second: Source, key: str, columns: Sequence[str]) -> None:
        self._numbers: dict[Hashable, int] = {}
        number = by_value(lambda values: numbered(self._numbers, values))
        forms: dict[Hashable, tuple[int, list[list[Column]]]] = {}
        filled: list[int] = []
        keys, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for rows, found in second.chunks(list(dict.fromkeys((*columns, key)))):
            own = found[: len(columns)]
            form, chunks = forms.setdefault(tuple(map(_form, own)), (len(forms), []))
            filled += [0] * (len(forms) - len(filled))
            keys.append(number(found[-1] if key not in columns else found[columns.index(key)]))
            places.append((form << _BITS) + filled[form] + np.arange(rows))
            filled[form] += rows
            chunks.append(own)
        every = np.concatenate(keys)
        self._row = np.full(len(self._numbers) + 1, NONE, dtype=np.int64)  # the last is that of a key that is not there
        self._row[every[every >= 0]] = np.concatenate(places)[every >= 0]
        self.times = np.bincount(every[every >= 0], minlength=len(self._numbers))
        self._row[:-1][self.times > 1] = SEVERAL
        self._find = by_value(lambda values: known_numbers(self._numbers, values))
        self._forms = [[_stacked(parts) for parts in zip(*chunks, strict=True)] for _, chunks in forms.values()]
        self._forms = self._forms or [[_stacked([Column([None])]) for _ in columns]]

    def of(self, keys: Column) -> IntArray:
        """For each row of a chunk its partner, `NONE` or `SEVERAL`."""
        return self._row[self._find(keys)]

    def beside(self, found: list[Column], partner: IntArray) -> Iterator[tuple[int, list[Column]]]:
        """The rows of a chunk with the columns of their partners, nulls without one; those with partners of one form together."""
        forms = np.where(partner < 0, 0, partner >> _BITS)
        places = np.where(partner < 0, -1, partner & (2**_BITS - 1))
        for form, columns in enumerate(self._forms):
            rows = np.flatnonzero(forms == form)
            own = found if len(rows) == len(partner) else [_taken(_stacked([column]), rows) for column in found]
            if len(rows):
                yield len(rows), [*own, *(_taken(column, places[rows]) for column in columns)]


def _form(column: Column) -> Hashable:
    """What chunks of a column must have in common to be put together: then each value is read as it would be in its own."""
    return column.data.dtype.str if isinstance(column.data, np.ndarray) else "", column.zoned


def _stacked(chunks: Sequence[Column]) -> Column:
    """Chunks of one form as one column, by the places of values, with a null behind its last row: so -1 finds a null."""
    starts = np.cumsum([0, *(len(column.data) for column in chunks)])
    index = [np.where(_places(column) < 0, -1, _places(column) + start) for column, start in zip(chunks, starts, strict=False)]
    arrays = [column.data for column in chunks if isinstance(column.data, np.ndarray)]
    data = np.concatenate(arrays) if arrays else [value for column in chunks for value in column.data]
    return Column(data, None, np.concatenate([*index, [-1]]), chunks[0].zoned)


def _places(column: Column) -> IntArray:
    own = np.arange(len(column.data)) if column.index is None else column.index
    return own if column.null is None else np.where(column.null, -1, own)


def _taken(stacked: Column, rows: IntArray) -> Column:
    """Some rows, with only the values that they have; a null where the row is -1."""
    index = _places(stacked)[rows]
    used, where = np.unique(np.append(index, -1), return_inverse=True)
    data = stacked.data[used[1:]] if isinstance(stacked.data, np.ndarray) else [stacked.data[place] for place in used[1:]]
    return Column(data, None, where.reshape(-1)[:-1] - 1, stacked.zoned)
