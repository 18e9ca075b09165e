"""The measurements of a plan, their exact privacy cost, observations.

Measurements are all that the kernel sees of a plan.
"""

from leastnoise._measurements._headroom import MOST_ROWS, MOST_TABLE_CELLS
from leastnoise._measurements._measurements import Block, Factor, Limits, Measurements, row_scales
from leastnoise._measurements._sensitivity import column_norm, cost, rows_in_view, sum_up, views
from leastnoise._measurements._written import Observation, measurements_digest, measurements_value
