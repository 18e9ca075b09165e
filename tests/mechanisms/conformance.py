"""The rows of the conformance kit of mechanisms, one for each mechanism.

A mechanism that is added has its rows in its own file: ``rows_NAME.py`` beside this one, with
a tuple ``ROWS``.
"""

from importlib import import_module
from pathlib import Path

import numpy as np

from leastnoise._domain import Domain, Integers
from leastnoise._trusted.accounting import ZCDP, PureDP
from leastnoise._trusted.table import Table
from leastnoise._workload import marginals, quantile_queries, queries
from mechanisms.row import (
    LINE,
    LOTS,
    ON_CUBE,
    ON_LINE,
    ON_PLANE,
    PAID,
    PLANE,
    SUMS,
    SUMS_BY_GROUP,
    Row,
    table_over,
)

DEPENDENT = Domain(a=Integers(0, 5), b=Integers(0, 3), c=Integers(0, 1))


def dependent(rows):
    a = np.arange(rows) % 6
    return Table(
        DEPENDENT,
        {"a": a, "b": (a + np.arange(rows) // 7) % 4, "c": (a > 2).astype(np.int64)},
        {},
        rows=rows,
    )


ROWS = (
    Row(
        mechanism="Linear",
        strategy="identity",
        workload=ON_PLANE,
        table=table_over(PLANE),
        looks=False,
        audited={"measurements"},
    ),
    *(
        Row(
            mechanism="Dawa",
            strategy=name,
            workload=ON_LINE,
            table=table_over(LINE),
            refused=(ON_CUBE, LOTS),
            audited=steps,
        )
        for name, steps in (
            ("dawa", {"least cost", "measurements"}),
            ("dawa_levels", {"measurements"}),
        )
    ),
    Row(
        mechanism="Dawa",
        strategy="dawa",
        workload=ON_PLANE,
        table=table_over(PLANE),
        budgets=(PureDP("1/2"),),
        refused=(
            queries(Domain(a=Integers(0, 4999), b=Integers(0, 1)), a="prefix", b="prefix"),
            "at most 4096 cells of each",
        ),
        audited={"least cost", "measurements"},
    ),
    *(
        Row(
            mechanism="TruncatedSums",
            strategy="truncated_sums",
            workload=workload,
            table=table_over(PAID, {"wages": "pay"}),
            refused=(ON_LINE, "answers sums of one measure"),
            audited={"measurements"},
        )
        for workload in (SUMS, queries(PAID, sex="identity", sum="wages"), SUMS_BY_GROUP)
    ),
    # The model is tested with few rows in a cell, and with many.
    *(
        Row(
            mechanism="Model",
            strategy="model",
            workload=marginals(DEPENDENT, ways=2),
            table=dependent(rows),
            budgets=budgets,
            refused=(ON_LINE, "for tables of two or more attributes"),
            audited={"measurements"},
        )
        for rows, budgets in ((300, (PureDP("1/2"), ZCDP("1/8"))), (100_000, (PureDP(1),)))
    ),
)
MEDIAN = quantile_queries(LINE, "age", ["1/2"])
ROWS += (
    Row(
        mechanism="SelectedQuantiles",
        strategy="selected_quantiles",
        workload=MEDIAN,
        table=table_over(MEDIAN.domain),
        refused=(ON_LINE, "answers quantiles, and this workload has none"),
        audited={"measurements", "quantile"},
    ),
)
ROWS += tuple(
    row
    for path in sorted(Path(__file__).parent.glob("rows_*.py"))
    for row in import_module(f"mechanisms.{path.stem}").ROWS
)
