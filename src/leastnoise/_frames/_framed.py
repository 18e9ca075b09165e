"""What is a table: it gives a data frame and prints as a table."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from leastnoise._charts import in_digits
from leastnoise._check.arrays import Array
from leastnoise._frames._columns import Columns, Label, key_columns, label_array, to_frame, visible

_MOST_SHOWN = 20
_WIDEST = 60


class Framed:
    """A value that is a table."""

    __slots__ = ()

    @property
    def library(self) -> str | None:
        """The library of its data frames; None where that of the data is not known."""
        return None

    @property
    def title(self) -> str:
        """What the table is of; empty where its columns say it all."""
        return ""

    @abstractmethod
    def columns(self) -> Columns:
        """Its columns, all of one length."""

    def frame(self, library: str | None = None) -> Any:
        """The columns as a data frame of pandas, polars or pyarrow; None for that of the data, or else the first installed."""
        return to_frame(self.columns(), library or self.library)

    def __repr__(self) -> str:
        columns, shown, rows = [], self._shown(), self._rows()
        for texts, values in zip(shown, self.columns().values(), strict=True):
            width = max(map(len, texts))
            columns.append([text.rjust(width) if values.dtype.kind in "iuf" else text.ljust(width) for text in texts])
        more = [f"... {rows - _MOST_SHOWN:,} more; .frame() has all"] if rows > _MOST_SHOWN else []
        return "\n".join([*filter(None, [self.title]), *("  ".join(row).rstrip() for row in zip(*columns, strict=True)), *more])

    def _repr_html_(self) -> str:
        rows = []
        for place, row in enumerate(zip(*self._shown(), strict=True)):
            mark = "td" if place else "th"
            rows.append("".join(f"<{mark}>{escape(text)}</{mark}>" for text in row))
        return f"<table><caption>{escape(self.title)}</caption>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"

    def _rows(self) -> int:
        return len(next(iter(self.columns().values())))

    def _shown(self) -> list[list[str]]:
        """The name of every column and its first values, as texts."""
        return [[*map(_text, [name, *values[:_MOST_SHOWN].tolist()])] for name, values in self.columns().items()]


def _text(value: object) -> str:
    text = in_digits(value) if isinstance(value, float) else visible(str(value))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def grouped_columns(by: Sequence[str], labels: Sequence[Sequence[Label]], numbers: Mapping[str, Array]) -> Columns:
    """One column for each key and each array of numbers over the groups, flat in row-major order."""
    shape = tuple(map(len, labels))
    places = np.unravel_index(np.arange(int(np.prod(shape))), shape) if shape else ()
    keys = [label_array(own)[place] for own, place in zip(labels, places, strict=True)]
    named = dict(zip(key_columns(by, tuple(numbers)), keys, strict=True))
    return {**named, **{name: np.ascontiguousarray(np.broadcast_to(values, shape)).reshape(-1) for name, values in numbers.items()}}
