"""The measurements of a plan, which are all that the kernel sees of it; their exact privacy cost; and observations."""

from leastnoise._measurements._headroom import MOST_ROWS, MOST_TABLE_CELLS
from leastnoise._measurements._measurements import Block, Factor, Limits, Measurements, row_scales
from leastnoise._measurements._sensitivity import column_norm, cost, rows_in_view, sum_up, views
from leastnoise._measurements._written import Observation, measurements_digest, measurements_value
