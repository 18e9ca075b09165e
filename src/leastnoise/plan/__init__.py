"""The frozen, serialisable plan and its exact privacy cost."""

from leastnoise.plan._data_aware import DataAwarePlan
from leastnoise.plan._limits import Limits
from leastnoise.plan._plan import MECHANISMS, MOST_ROWS, MOST_TABLE_CELLS, Block, Factor, Plan, Promise, TableError
from leastnoise.plan._scales import row_scales
from leastnoise.plan._sensitivity import column_norm, cost, sum_up
from leastnoise.plan._used import used

__all__ = [
    "MECHANISMS",
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
