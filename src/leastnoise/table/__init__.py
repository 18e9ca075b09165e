"""Encoded private rows behind an opaque handle, and exact counts of them."""

from leastnoise.table._count import amounts, count
from leastnoise.table._table import Table

__all__ = ["Table", "amounts", "count"]
