"""The frozen, serialisable plan and its exact privacy cost."""

from leastnoise._plan._data_aware import DataAwarePlan
from leastnoise._plan._limits import Limits
from leastnoise._plan._plan import MOST_ROWS, MOST_TABLE_CELLS, Block, Factor, Plan, Promise, TableError
from leastnoise._plan._scales import row_scales
from leastnoise._plan._sensitivity import column_norm, cost, sum_up
from leastnoise._plan._used import used

__all__ = [
    "MOST_ROWS",
    "MOST_TABLE_CELLS",
    "Block",
    "DataAwarePlan",
    "Factor",
    "Limits",
    "Plan",
    "Promise",
    "TableError",
    "column_norm",
    "cost",
    "row_scales",
    "sum_up",
    "used",
]
