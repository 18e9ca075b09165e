"""Encoded private rows behind an opaque handle."""

from leastnoise._table._columns import Codes, Columns, Values, columns_of
from leastnoise._table._table import Table, code_dtype

__all__ = ["Codes", "Columns", "Table", "Values", "code_dtype", "columns_of"]
