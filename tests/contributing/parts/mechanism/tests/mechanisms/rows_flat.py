"""A table of alike cells, and a table with all rows in one cell."""

import numpy as np

from leastnoise._trusted.table import Table
from mechanisms.row import LINE, ON_LINE, ON_PLANE, Row, table_over

IN_ONE_CELL = Table(LINE, {"age": np.full(300, 2)}, {}, rows=300)
ROWS = tuple(
    Row(
        mechanism="FlatOrNot",
        strategy="flat",
        workload=ON_LINE,
        table=table,
        finding=finding,
        refused=(ON_PLANE, "counts along one attribute"),
        audited={"measurements"},
    )
    for table, finding in ((table_over(LINE), "Flat"), (IN_ONE_CELL, "Uneven"))
)
