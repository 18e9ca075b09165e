"""What is measured, its exact privacy cost, and what comes of it: all that the kernel sees of a plan."""

from leastnoise._measurements._limits import Limits
from leastnoise._measurements._measurements import MOST_ROWS, MOST_TABLE_CELLS, Block, Factor, Measurements
from leastnoise._measurements._observation import Observation
from leastnoise._measurements._scales import row_scales
from leastnoise._measurements._sensitivity import column_norm, cost, rows_in_view, views
from leastnoise._measurements._sums import sum_up

__all__ = [
    "MOST_ROWS",
    "MOST_TABLE_CELLS",
    "Block",
    "Factor",
    "Limits",
    "Measurements",
    "Observation",
    "column_norm",
    "cost",
    "row_scales",
    "rows_in_view",
    "sum_up",
    "views",
]
