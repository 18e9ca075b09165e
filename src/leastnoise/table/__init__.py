"""Encoded private rows behind an opaque handle."""

from leastnoise.table._table import Codes, Table, Values, code_dtype

__all__ = ["Codes", "Table", "Values", "code_dtype"]
