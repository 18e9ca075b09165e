"""The rows of the model in the conformance tests: one where cells hold few rows, one where they hold many."""

import numpy as np

from leastnoise._accounting import ZCDP, PureDP
from leastnoise._domain import Domain, Integers
from leastnoise._table import Table
from leastnoise._workload import marginals
from mechanisms.row import ON_LINE, Row

_DOMAIN = Domain(a=Integers(0, 5), b=Integers(0, 3), c=Integers(0, 1))
_PAIRS = marginals(_DOMAIN, ways=2)


def _table(rows: int) -> Table:
    a = np.arange(rows) % 6
    return Table(_DOMAIN, {"a": a, "b": (a + np.arange(rows) // 7) % 4, "c": (a > 2).astype(np.int64)}, {}, rows=rows)


ROWS = tuple(
    Row(
        mechanism="Model",
        strategy="model",
        workload=_PAIRS,
        table=_table(rows),
        budgets=budgets,
        refused=(ON_LINE, "for tables of two attributes and more"),
        audited={"measurements"},
    )
    for rows, budgets in ((300, (PureDP("1/2"), ZCDP("1/8"))), (100_000, (PureDP(1),)))
)
