"""Measurements of a plan, their exact privacy cost, and observations.

The kernel sees nothing of a plan but its measurements.
"""

from leastnoise._trusted.measurements._lattice import (
    WholeNumbers,
    ball_count_numerators,
    count_tables,
    count_tables_up_to,
    draw_tables,
    lattice_dimension,
    multiply_by_one_minus_x,
)
from leastnoise._trusted.measurements._measurements import (
    MOST_K_NORM_CELLS,
    MOST_K_NORM_TABLE,
    Block,
    Factor,
    Limits,
    Measurements,
    row_scales,
)
from leastnoise._trusted.measurements._sensitivity import (
    column_norm,
    cost,
    privacy_of_part,
    split_by_quantity,
    sum_rounded_up,
)
from leastnoise._trusted.measurements.helpers._headroom import MOST_ROWS, MOST_TABLE_CELLS
from leastnoise._trusted.measurements.helpers._measurements_json import (
    Observation,
    measurements_digest,
    measurements_value,
)
