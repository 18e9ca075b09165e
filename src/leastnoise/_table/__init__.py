"""Encoded private rows, or counts of them, behind an opaque handle."""

from leastnoise._table._share import Group, groups
from leastnoise._table._table import (
    Codes,
    Columns,
    Counted,
    Keyed,
    Table,
    Values,
    Wanted,
    code_dtype,
    columns_of,
)
