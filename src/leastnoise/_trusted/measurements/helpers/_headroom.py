"""Public bounds within which answers are exact and fit into memory.

The bounds are computed without the data.

This file is not trusted. A sum beyond the bounds would be wrong but would reveal nothing, because
it is reduced modulo 2^64 (PROOFS-kernel.md).
"""

import math
from typing import Any

from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.linop import largest_entry

MOST_ROWS = 2**32  # of a table; bounds of exact answers are computed from it
MOST_TABLE_CELLS = 2**28  # of one measured table: 2 GiB of counts


def check_headroom(block: Any, largest_amount: int, largest_limited_amount: int, grid: int) -> None:
    """Raise if the table or the answers of a block could be too large for int64.

    A row changes a sum by at most ``largest_limited_amount``. This number includes limits and the
    distances from both bounds; ``largest_amount`` is the largest amount of the measure itself.
    """
    cells = math.prod(factor.operator.size for factor in block.factors)
    if not cells <= MOST_TABLE_CELLS:
        raise InputError(
            f"A measured table may have at most {MOST_TABLE_CELLS} cells; got {cells} for "
            f"{' x '.join(block.attributes)}. Ask for marginals on fewer attributes, use coarser "
            "attributes, or choose another strategy."
        )
    if not block.rows <= MOST_TABLE_CELLS:
        raise refuse(
            "the number of measured queries of a block",
            block.rows,
            f"at most {MOST_TABLE_CELLS}",
            "Choose another strategy.",
        )
    # The cells of a table add up to at most the amount of all rows. No entry of a product of
    # matrices is above the product of their largest entries.
    if block.ends:
        largest = max(largest_amount, largest_limited_amount)
    else:
        largest = largest_limited_amount
    most = (
        MOST_ROWS
        * largest
        * math.prod(largest_entry(factor.operator) for factor in block.factors)
        * grid
    )
    if not most < 2**62:
        raise InputError(
            "The public bounds are too large for exact arithmetic: a measured sum may reach "
            f"{most}, allowed is below 2^62. Choose a larger unit or smaller clip bounds for the "
            "measure."
        )
