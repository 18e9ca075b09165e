"""Columns as data frames of the user's library, and the names of the files that they are written to."""

import importlib
import importlib.util
import re
from typing import Any

from leastnoise._check import InputError, one_of
from leastnoise._check.arrays import Array

Columns = dict[str, Array]
LIBRARIES = ("pandas", "polars", "pyarrow")
_LONGEST_NAME = 60
# What spreadsheets run as a formula, or take for the end of a field, where a text begins with it; numbers and dates are none.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:/ -]*")


def to_frame(columns: Columns, library: str | None = None) -> Any:
    """Columns as a data frame of the user's library."""
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


def file_name(table_id: str, name: str, tables: int) -> str:
    """A file name that says what is in the file, in the order of the tables, without an ending."""
    words = re.sub(r"[^a-z0-9_]+", "-", name.lower().replace(" x ", "-by-")).strip("-")[:_LONGEST_NAME].rstrip("-")
    number = table_id[0] + table_id[1:].rjust(len(str(tables)), "0")
    return f"{number}-{words}" if words else number


def inert_text(text: str) -> str:
    """A text for a CSV file that no spreadsheet runs: with an apostrophe before it where it could be a formula (OWASP, CSV injection)."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def text_of_inert(text: str) -> str:
    """The text that `inert_text` made this of."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
