"""Encoded private rows behind an opaque handle."""

from leastnoise.table._columns import Codes, Values
from leastnoise.table._table import Table, code_dtype

__all__ = ["Codes", "Table", "Values", "code_dtype"]
