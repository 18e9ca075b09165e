"""How many rows of a source are used, not used and cut, as a table of its own, for the guard of a release (E8 of PROOFS-adapters.md)."""

import numpy as np

from leastnoise._domain import Domain, Measure
from leastnoise._table import Table

ROWS, CUT = "rows", "cut"
MOST_CUT = 3
"""Rows cut for which a row that counts may stand."""
USAGE = Domain({ROWS: ["used", "unused"]}, measures={CUT: Measure(CUT, 0, MOST_CUT)})


def usage_table(used: int, unused: int, cut: int, unit_column: str | None, max_rows: int) -> Table:
    """The table.

    Args:
        used: rows that the domain keeps, of those that count for their unit.
        unused: the other rows that count for their unit.
        cut: for each unit its rows that do not count, ``MOST_CUT`` at most for each one that does, added up.
        unit_column: the column whose values are the privacy units; None if every row is one.
        max_rows: how many rows of a unit count.

    Guarantees: every row that counts for its unit is in exactly one of the two cells, so that a unit changes them by ``max_rows`` at most,
        and stands for at most ``MOST_CUT`` rows that were cut.
        All its rows may be in one of them, whatever ``max_per_cell`` of the table beside it says: that is about other cells.

    >>> usage_table(3, 1, 0, None, 1)
    <Table of private rows over Domain(rows=Categories(['used', 'unused']), measures={'cut': Measure('cut', 0, 3)})>
    """
    counts = {(None, (ROWS,)): np.array([used, unused]), (CUT, ()): np.array([cut])}
    return Table.counted(USAGE, [ROWS], [CUT], counts, unit_column=unit_column, max_rows=max_rows)
