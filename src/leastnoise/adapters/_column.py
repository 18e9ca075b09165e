"""One column of a chunk of rows, on its way from a source to the encoder."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Rows in a chunk: large enough for the fixed costs to vanish, small enough for a chunk of wide text to stay within some tens of MiB.
CHUNK = 2**16


class Strange:
    """Stands for a value that no rule reads, such as a list; whatever it was, it follows the policy ``outside``."""

    __slots__ = ()


STRANGE = Strange()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column:
    """Values of a chunk.

    Attributes:
        data: a numpy array of Booleans, integers, floats or datetime64, or a list of Python values.
        null: where the array's value is missing; None where it cannot be. A list marks its nulls itself.
    """

    data: npt.NDArray[Any] | Sequence[object]
    null: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Source:
    """A source that has been opened: public facts, and a way to its private rows.

    Attributes:
        what: how messages call it.
        names: the columns, in order; a name that occurs twice is there twice.
        total: the number of rows where it is known beforehand; shown as progress alone.
        chunks: given the columns wanted, yields for each chunk its number of rows and its columns in that order.
        strange: columns whose declared type no rule reads, with the type.
    """

    what: str
    names: tuple[str, ...]
    total: int | None
    chunks: Callable[[Sequence[str]], Iterator[tuple[int, list[Column]]]]
    strange: dict[str, str]
