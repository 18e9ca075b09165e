"""Sources: public facts about a table, and a way to its private rows, chunk by chunk, or to counts of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from leastnoise._adapters._values import stamp_text
from leastnoise._check.arrays import Array, BoolArray, IntArray
from leastnoise._domain import Measure, PerCell, Rule

# Rows in a chunk: large enough for the fixed costs to vanish, small enough for a chunk of wide text to stay within some tens of MiB.
CHUNK = 2**16


# Stands for a value that no rule reads, such as a list; whatever it was, it follows the policy ``outside``.
STRANGE = object()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column:
    """Values of a chunk: one a row, or the distinct ones and which of them each row has.

    Attributes:
        data: a numpy array of Booleans, integers, floats or datetime64, or a list of Python values, which marks its nulls itself. Text is
            Python text or bytes; bytes that are not UTF-8 are a value without a string form.
        null: where the row's value is missing; None where it cannot be.
        index: None if the values are those of the rows in order; else for each row the place of its value, -1 for a null.
        zoned: whether time stamps of an array are those of UTC, because their type has a time zone; else they are of no zone.
    """

    data: Array | Sequence[object]
    null: BoolArray | None = None
    index: IntArray | None = None
    zoned: bool = False

    def rows(self, encoded: IntArray, missing: int) -> IntArray:
        """Return what each row is encoded as, given what each value of ``data`` and a null are encoded as; ``encoded`` is overwritten.

        >>> Column(["a", "b"], index=np.array([1, 1, -1, 0])).rows(np.array([5, 7]), 0).tolist()
        [7, 7, 0, 5]
        """
        if self.index is not None:
            encoded = np.append(encoded, missing)[self.index]
        if self.null is not None:
            encoded[self.null] = missing
        return encoded


Encoder = Callable[[Column], IntArray]
Encoders = Sequence[tuple[str, Encoder]]
Made = TypeVar("Made")
Chunks = Iterator[tuple[int, list[Made]]]


def by_value(compute: Callable[[Sequence[object]], IntArray]) -> Encoder:
    """Encode each distinct value once, by a function from values to what each is encoded as.

    >>> by_value(lambda values: np.array([len(str(value)) for value in values]))(Column(["a", "bc", "a"])).tolist()
    [1, 2, 1]
    """
    missing = int(compute([None])[0])

    def encode(column: Column) -> IntArray:
        values, where = distinct(column.data)
        encoded = compute(values)
        return column.rows(encoded if where is None else encoded[where], missing)

    return encode


def distinct(data: Array | Sequence[object]) -> tuple[Sequence[object], npt.NDArray[np.intp] | None]:
    """Return the distinct values, and for each value its index among these; in place of the indices None if all values are listed.

    Only values of one numpy type, and texts, are ever taken to be the same: equal values of other types can have different texts.

    >>> values, where = distinct(["b", "a", "b", None])
    >>> values, where.tolist()
    (['b', 'a', None], [0, 1, 0, 2])
    """
    if isinstance(data, np.ndarray):
        different, where = np.unique(data, return_inverse=True)
        if data.dtype.kind != "M":
            return list(different), where.reshape(-1)
        return [None if np.isnat(value) else stamp_text(str(value)) for value in different], where.reshape(-1)
    if not set(map(type, data)) <= {str, type(None)}:
        return data, None
    positions = {value: position for position, value in enumerate(dict.fromkeys(data))}
    return list(positions), np.fromiter(map(positions.__getitem__, data), dtype=np.intp, count=len(data))


def nothing_but(value: object, null: BoolArray) -> Column:
    """Return the column that has the same value in every row that is not null."""
    return Column([value], None, -null.astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be counted, all of it public.

    Attributes:
        rules: of the attributes that are read, in the order of the domain.
        sums: the measures that are read.
        tables: for each measure that is summed, or None for rows, the attributes of its marginals.
        unit_column: the column whose values are the privacy units; None if every row is one.
        max_rows: how many rows of a unit count.
        max_per_cell: how many of them in one cell of attributes that are read; None: all.
        usage: whether also rows used, not used and cut are wanted.
    """

    rules: Mapping[str, Rule]
    sums: Mapping[str, Measure]
    tables: Mapping[str | None, Sequence[tuple[str, ...]]]
    unit_column: str | None
    max_rows: int
    max_per_cell: PerCell | None = None
    usage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Source:
    """A source that has been opened: public facts, and a way to its private rows.

    Attributes:
        what: how messages call it.
        names: the columns, in order; a name that occurs twice is there twice.
        total: the number of rows where it is known beforehand; shown as progress alone.
        encoded: given columns and what encodes each, yields for each chunk its number of rows and what was made of its columns.
        strange: columns whose declared type no rule reads, with the type.
        engine: an `leastnoise._adapters._engine.Engine` where the rows can be counted, None if they can only be read.
    """

    what: str
    names: tuple[str, ...]
    total: int | None
    encoded: Callable[[Encoders], Chunks[IntArray]]
    strange: dict[str, str]
    engine: Any = None


def by_columns(chunks: Callable[[list[str]], Chunks[Column]]) -> Callable[[Encoders], Chunks[IntArray]]:
    """Encode columns chunk by chunk, each by itself.

    Given columns, none twice, ``chunks`` yields for each chunk its number of rows and these columns in that order.

    >>> source = by_columns(lambda names: iter([(2, [Column([5, None])])]))
    >>> [(rows, codes.tolist()) for rows, (codes,) in source([("a", by_value(lambda values: np.array(list(map(bool, values)))))])]
    [(2, [True, False])]
    """

    def encoded(wanted: Encoders) -> Chunks[IntArray]:
        names = list(dict.fromkeys(name for name, _ in wanted))
        for rows, columns in chunks(names):
            column = dict(zip(names, columns, strict=True))
            yield rows, [encode(column[name]) for name, encode in wanted]

    return encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of file.

    Attributes:
        name: how messages call it.
        endings: of its files' names, in lower case.
        open: opens a file, reading no row.
    """

    name: str
    endings: tuple[str, ...]
    open: Callable[[Path], Source]
