"""Columns of numbers as data frames, and as tables in text."""

import importlib
import importlib.util
import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from leastnoise._charts import format_digits
from leastnoise._trusted.check import InputError, one_of
from leastnoise._trusted.check.arrays import Array

Columns = dict[str, Array]
Label = str | int
_MOST_SHOWN_ROWS = 20  # rows of a table in text
_MOST_CELL_CHARACTERS = 60  # characters of its cells
LIBRARIES = ("pandas", "polars", "pyarrow")
_CONTROL_CHARACTERS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def find_library(kind: type) -> str | None:
    """Return the library that a data frame class belongs to, or None."""
    name = kind.__module__.partition(".")[0]
    if name in LIBRARIES:
        return name
    return None


def to_frame(columns: Columns, library: str | None = None) -> Any:
    """Convert columns to a data frame of an installed library.

    None means the first library that is installed. PyArrow is always installed, because leastnoise
    needs it.
    """
    if library:
        name = one_of("library", library, LIBRARIES)
    else:
        name = next(filter(importlib.util.find_spec, LIBRARIES))
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"library must be one that is installed; got {name!r}, which cannot be imported. "
            f"Install it (pip install {name})."
        ) from None
    if name == "pandas":
        return module.DataFrame(columns)
    lists_and_arrays = {
        column: values.tolist() if values.dtype == object else values
        for column, values in columns.items()
    }
    if name == "polars":
        return module.DataFrame(lists_and_arrays)
    return module.table(lists_and_arrays)


@dataclass(frozen=True, slots=True)
class UniqueNames:
    """A set of column names that are unique, ignoring case as databases do."""

    taken: set[str] = field(default_factory=set)

    def make_unique(self, name: str) -> str:
        """Return a name; a number is appended if the name is already used."""
        unique_name = name
        number = 2
        while unique_name.lower() in self.taken:
            unique_name = f"{name}_{number}"
            number += 1
        self.taken.add(unique_name.lower())
        return unique_name


def name_key_columns(attributes: Sequence[str], numbers: Sequence[str]) -> list[str]:
    """Return a unique column name for each attribute.

    If another column already has the name, a number is appended to the name.
    """
    names = UniqueNames({"query", *numbers})
    return [names.make_unique(name) for name in attributes]


def label_array(labels: Sequence[Label]) -> Array:
    """Convert labels to an array, shape (len(labels),).

    The array has integers or doubles if all labels are integers or doubles. Otherwise the array has
    texts, as objects.
    """
    if all(isinstance(label, int) and -(2**63) <= label < 2**63 for label in labels):
        return np.array(labels, dtype=np.int64)
    if all(isinstance(label, float) for label in labels):
        return np.array(labels, dtype=np.float64)
    return np.array([str(label) for label in labels], dtype=object)


def number_or_null(value: float) -> float | None:
    """Return a number for JSON; NaN becomes None."""
    if math.isnan(value):
        return None
    return value


def pluralize(count: int, singular: str, plural: str = "") -> str:
    """Return a count with a noun, in the singular or the plural."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def escape_controls(text: str) -> str:
    """Escape control characters, so that a text cannot control a terminal.

    Control characters are controls, line ends and changes of the direction of text.
    """
    return _CONTROL_CHARACTERS.sub(lambda sign: ascii(sign.group())[1:-1], text)


class TabularMixin:
    """A mixin for values that are displayed as tables, or as data frames."""

    __slots__ = ()

    @property
    def library(self) -> str | None:
        """The data frame library to convert to; None for any installed one."""
        return None

    @property
    def title(self) -> str:
        """The heading above the table; may be empty."""
        return ""

    @abstractmethod
    def columns(self) -> Columns:
        """Return the columns of the table by name, all of one length."""

    def frame(self, library: str | None = None) -> Any:
        """Return the columns as a data frame of pandas, polars or pyarrow.

        None means the library of the data, or else the first that is installed.
        """
        return to_frame(self.columns(), library or self.library)

    def __repr__(self) -> str:
        columns = []
        values_of = self.columns()
        rows = len(next(iter(values_of.values())))
        for texts, values in zip(self._display_columns(), values_of.values(), strict=True):
            width = max(map(len, texts))
            columns.append(
                [
                    text.rjust(width) if values.dtype.kind in "iuf" else text.ljust(width)
                    for text in texts
                ]
            )
        if rows > _MOST_SHOWN_ROWS:
            more = [f"... {rows - _MOST_SHOWN_ROWS:,} more; .frame() has all"]
        else:
            more = []
        return "\n".join(
            [
                *filter(None, [self.title]),
                *("  ".join(row).rstrip() for row in zip(*columns, strict=True)),
                *more,
            ]
        )

    def _repr_html_(self) -> str:
        rows = []
        for number, row in enumerate(zip(*self._display_columns(), strict=True)):
            mark = "td" if number else "th"
            rows.append("".join(f"<{mark}>{escape(text)}</{mark}>" for text in row))
        return (
            f"<table><caption>{escape(self.title)}</caption>"
            + "".join(f"<tr>{row}</tr>" for row in rows)
            + "</table>"
        )

    def _display_columns(self) -> list[list[str]]:
        """Return each column as a list of texts: the name, then the first values."""
        columns = []
        for name, values in self.columns().items():
            first_values = [name, *values[:_MOST_SHOWN_ROWS].tolist()]
            texts = [
                format_digits(value) if isinstance(value, float) else escape_controls(str(value))
                for value in first_values
            ]
            columns.append(
                [
                    text
                    if len(text) <= _MOST_CELL_CHARACTERS
                    else text[: _MOST_CELL_CHARACTERS - 3] + "..."
                    for text in texts
                ]
            )
        return columns


def grouped_columns(
    by: Sequence[str], labels: Sequence[Sequence[Label]], numbers: Mapping[str, Array]
) -> Columns:
    """Flatten arrays over groups into columns, with a column for each key.

    Groups are in row-major order.
    """
    shape = tuple(map(len, labels))
    if shape:
        indices = np.unravel_index(np.arange(int(np.prod(shape))), shape)
    else:
        indices = ()
    keys = [label_array(along)[index] for along, index in zip(labels, indices, strict=True)]
    named = dict(zip(name_key_columns(by, tuple(numbers)), keys, strict=True))
    return {
        **named,
        **{
            name: np.ascontiguousarray(np.broadcast_to(values, shape)).reshape(-1)
            for name, values in numbers.items()
        },
    }
