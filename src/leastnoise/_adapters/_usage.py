"""How many rows of a source are used and how many are not, as a table of its own, for the guard of a release (E8 of PROOFS-adapters.md)."""

import numpy as np

from leastnoise._check.arrays import IntArray
from leastnoise._domain import Domain, PerCell
from leastnoise._table import Table, Wanted

ROWS = "rows"
USAGE = Domain({ROWS: ["used", "unused"]})


def usage_table(used: int, unused: int, unit_column: str | None, max_rows: int, max_per_cell: PerCell | None = None) -> Table:
    """The table.

    Args:
        used: rows that the domain keeps, of those that count for their unit.
        unused: the other rows that count for their unit.
        unit_column: the column whose values are the privacy units; None if every row is one.
        max_rows: how many rows of a unit count.
        max_per_cell: how many of them in one cell.

    Guarantees: every row that counts for its unit is in exactly one of the two cells, so that a unit changes them by ``max_rows`` at most.

    >>> usage_table(3, 1, None, 1)
    <Table of private rows over Domain(rows=Categories(['used', 'unused']))>
    """
    counts: dict[Wanted, IntArray] = {(None, (ROWS,)): np.array([used, unused], dtype=np.int64)}
    return Table.counted(USAGE, [ROWS], [], counts, unit_column=unit_column, max_rows=max_rows, max_per_cell=max_per_cell)
