"""One column of a chunk of rows, on its way from a source to the encoder."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leastnoise._check.arrays import Array, BoolArray, IntArray

if TYPE_CHECKING:
    from leastnoise._adapters._engine import Engine

# Rows in a chunk: large enough for the fixed costs to vanish, small enough for a chunk of wide text to stay within some tens of MiB.
CHUNK = 2**16


class Strange:
    """Stands for a value that no rule reads, such as a list; whatever it was, it follows the policy ``outside``."""

    __slots__ = ()


STRANGE = Strange()


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

    def rows(self, found: IntArray, missing: int) -> IntArray:
        """From what was found for each value of ``data``, and for a null, to the rows; writes into ``found``.

        >>> Column(["a", "b"], index=np.array([1, 1, -1, 0])).rows(np.array([5, 7]), 0).tolist()
        [7, 7, 0, 5]
        """
        if self.index is not None:
            found = np.append(found, missing)[self.index]
        if self.null is not None:
            found[self.null] = missing
        return found


def nothing_but(value: object, null: BoolArray) -> Column:
    """The column that has the same value in every row that is not null."""
    return Column([value], None, -null.astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Source:
    """A source that has been opened: public facts, and a way to its private rows.

    Attributes:
        what: how messages call it.
        names: the columns, in order; a name that occurs twice is there twice.
        total: the number of rows where it is known beforehand; shown as progress alone.
        chunks: given the columns wanted, yields for each chunk its number of rows and its columns in that order.
        strange: columns whose declared type no rule reads, with the type.
        engine: where the rows can be counted, None if they can only be read.
    """

    what: str
    names: tuple[str, ...]
    total: int | None
    chunks: Callable[[Sequence[str]], Iterator[tuple[int, list[Column]]]]
    strange: dict[str, str]
    engine: "Engine | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of file.

    Attributes:
        name: how messages call it.
        endings: of its files' names, in lower case.
        open: opens a file, reading no row.
        columns: name and type of each column, in order, from the header or schema alone.
    """

    name: str
    endings: tuple[str, ...]
    open: Callable[[Path], Source]
    columns: Callable[[Path], list[tuple[str, str]]]


def not_whole(what: str) -> str:
    """The message about a file that breaks off or breaks its own format."""
    return f"{what} cannot be read to its end. Check that it is whole and is not being written."
