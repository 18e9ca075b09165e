"""How many rows of a source are used and how many are not, as a table of its own, for the guard of a release (E8 of PROOFS-adapters.md)."""

import numpy as np

from leastnoise._check.arrays import IntArray
from leastnoise._domain import Domain
from leastnoise._table import Table, Wanted

ROWS = "rows"
USAGE = Domain({ROWS: ["used", "unused"]})


def usage_table(used: int, unused: int, unit_column: str | None, max_rows: int) -> Table:
    """The table.

    Args:
        used: rows that the domain keeps, of those that count for their unit.
        unused: the other rows that count for their unit.
        unit_column: the column whose values are the privacy units; None if every row is one.
        max_rows: how many rows of a unit count.

    Guarantees: every row that counts for its unit is in exactly one of the two cells, so that a unit changes them by ``max_rows`` at most.
        All its rows may be in one of them, whatever ``max_per_cell`` of the table beside it says: that is about other cells.

    >>> usage_table(3, 1, None, 1)
    <Table of private rows over Domain(rows=Categories(['used', 'unused']))>
    """
    counts: dict[Wanted, IntArray] = {(None, (ROWS,)): np.array([used, unused], dtype=np.int64)}
    return Table.counted(USAGE, [ROWS], [], counts, unit_column=unit_column, max_rows=max_rows)
