"""Encoded private rows, or counts of them, behind an opaque handle."""

from leastnoise._trusted.table._share import Group, groups
from leastnoise._trusted.table._table import (
    Codes,
    Columns,
    Counted,
    Keyed,
    Table,
    TableKey,
    Values,
    code_dtype,
    columns_of,
)
