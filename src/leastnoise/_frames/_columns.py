"""Columns as data frames of the user's library, and the names of key columns."""

import importlib
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leastnoise._check import InputError, one_of
from leastnoise._check.arrays import Array

Columns = dict[str, Array]
Label = str | int
LIBRARIES = ("pandas", "polars", "pyarrow")
_ACTS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def library_of(kind: type) -> str | None:
    """The library of a class of data frames; None for anything else."""
    name = kind.__module__.partition(".")[0]
    return name if name in LIBRARIES else None


def to_frame(columns: Columns, library: str | None = None) -> Any:
    """Columns as a data frame of a library; None for the first that is installed."""
    # PyArrow always is: the library needs it itself.
    name = one_of("library", library, LIBRARIES) if library else next(filter(importlib.util.find_spec, LIBRARIES))
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"library must be one that is installed; got {name!r}, which cannot be imported. Install it (pip install {name})."
        ) from None
    if name == "pandas":
        return module.DataFrame(columns)
    plain = {column: values.tolist() if values.dtype == object else values for column, values in columns.items()}
    return module.DataFrame(plain) if name == "polars" else module.table(plain)


@dataclass(frozen=True, slots=True)
class Names:
    """Column names given so far, compared as databases do: without regard to case."""

    taken: set[str] = field(default_factory=set)

    def give(self, name: str) -> str:
        given, number = name, 2
        while given.lower() in self.taken:
            given, number = f"{name}_{number}", number + 1
        self.taken.add(given.lower())
        return given


def key_columns(attributes: Sequence[str], numbers: Sequence[str]) -> list[str]:
    """The key column of every attribute: its name, with a number behind it where it would repeat another column."""
    names = Names({"query", *numbers})
    return [names.give(name) for name in attributes]


def label_array(labels: Sequence[Label]) -> Array:
    """Labels as an array, shape (len(labels),): numbers if all are whole numbers that fit, or doubles; else text as objects."""
    if all(isinstance(label, int) and -(2**63) <= label < 2**63 for label in labels):
        return np.array(labels, dtype=np.int64)
    if all(isinstance(label, float) for label in labels):
        return np.array(labels, dtype=np.float64)
    return np.array([str(label) for label in labels], dtype=object)


def visible(text: str) -> str:
    r"""A text for a terminal, with what it would act on written as Python writes it: controls, ends of lines, turns of direction.

    >>> visible("a\x1b[31m"), visible("\u202egpj.exe")
    ('a\\x1b[31m', '\\u202egpj.exe')
    """
    return _ACTS.sub(lambda found: ascii(found.group())[1:-1], text)
