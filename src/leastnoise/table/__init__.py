"""Encoded private rows behind an opaque handle, and exact counts of them."""

from leastnoise.table._count import count
from leastnoise.table._table import Table

__all__ = ["Table", "count"]
