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
