"""Columns of numbers as data frames of the user's library, and as tables in text."""

from leastnoise._frames._columns import LIBRARIES, Columns, Names, key_columns, label_array, library_of, to_frame, visible
from leastnoise._frames._framed import Framed, grouped_columns

__all__ = [
    "LIBRARIES",
    "Columns",
    "Framed",
    "Names",
    "grouped_columns",
    "key_columns",
    "label_array",
    "library_of",
    "to_frame",
    "visible",
]
