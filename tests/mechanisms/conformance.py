"""The rows of the conformance kit of mechanisms, one for each branch of a mechanism.

A mechanism that is added has its rows in its own file: ``rows_NAME.py`` beside this one, with
a tuple ``ROWS``.
"""

from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np

from leastnoise._domain import Domain, Integers
from leastnoise._trusted.accounting import PureDP
from leastnoise._trusted.table import Table
from leastnoise._workload import marginals, quantile_queries, queries
from mechanisms.row import (
    ALL_BUDGETS,
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
    """Return a table whose attributes depend on each other."""
    a = np.arange(rows) % 6
    return Table(
        DEPENDENT,
        {"a": a, "b": (a + np.arange(rows) // 7) % 4, "c": (a > 2).astype(np.int64)},
        {},
        rows=rows,
    )


NO_DELTA = {"delta": Fraction("1e-6")}  # Laplace noise spends no delta
SQUARE = Domain(age=Integers(0, 15), hours=Integers(0, 15))
CUBE = Domain(a=Integers(0, 19), b=Integers(0, 19), c=Integers(0, 19))


def in_one_cell(rows):
    """Return a table of the square with all rows in one cell."""
    cells = np.full(rows, 2)
    return Table(SQUARE, {"age": cells, "hours": cells}, {}, rows=rows)


def on_diagonal(rows):
    """Return a table of the cube with three equal attributes."""
    cells = np.arange(rows) % 20
    return Table(CUBE, {"a": cells, "b": cells, "c": cells}, {}, rows=rows)


ROWS = (
    Row(
        mechanism="Linear",
        strategy="identity",
        workload=ON_PLANE,
        table=table_over(PLANE),
        finding="Finding",
        leaves=NO_DELTA,
        looks=False,
        audited={"measurements"},
    ),
    *(
        Row(
            mechanism="Dawa",
            strategy=name,
            workload=ON_LINE,
            table=table_over(LINE),
            finding=finding,
            leaves=NO_DELTA,
            refused=(ON_CUBE, LOTS),
            audited=steps,
        )
        for name, finding, steps in (
            ("dawa", "NoEmptinessFinding", {"least cost", "measurements"}),
            ("dawa_levels", "NearlyEmptyFinding", {"measurements"}),
        )
    ),
    # One plane has all rows in one of its cells, and one has no structure.
    *(
        Row(
            mechanism="Dawa",
            strategy="dawa",
            workload=queries(table.domain, age="prefix", hours="identity"),
            table=table,
            finding=finding,
            budgets=(PureDP("1/2"),),
            refused=(
                queries(Domain(a=Integers(0, 4999), b=Integers(0, 1)), a="prefix", b="prefix"),
                "at most 4096 cells of each",
            ),
            audited={"least cost", "measurements"},
        )
        for table, finding in (
            (in_one_cell(3000), "AdaptiveGridFinding"),
            (table_over(PLANE), "NoStructureFinding"),
        )
    ),
    *(
        Row(
            mechanism="TruncatedSums",
            strategy="truncated_sums",
            workload=workload,
            table=table_over(PAID, {"wages": "pay"}),
            finding=finding,
            refused=(ON_LINE, "answers sums of one measure"),
            audited={"measurements"},
        )
        for workload, finding in (
            (SUMS, "RangeFinding"),
            (queries(PAID, sex="identity", sum="wages"), "GroupedThresholdFinding"),
            (SUMS_BY_GROUP, "ThresholdFinding"),
        )
    ),
    # The model is tested with few rows in a cell, with more rows, and with many.
    *(
        Row(
            mechanism="Model",
            strategy="model",
            workload=marginals(table.domain, ways=ways),
            table=table,
            finding=finding,
            budgets=budgets,
            leaves=NO_DELTA,
            refused=(ON_LINE, "for tables of two or more attributes"),
            audited={"measurements"},
        )
        for ways, table, finding, budgets in (
            (3, on_diagonal(100_000), "ThreeWayModelFinding", (PureDP("1/2"),)),
            (2, dependent(20), "BinnedModelFinding", ALL_BUDGETS),
            (2, dependent(100_000), "TableModelFinding", (PureDP(1),)),
        )
    ),
)
MEDIAN = quantile_queries(LINE, "age", ["1/2"])
ROWS += (
    Row(
        mechanism="SelectedQuantiles",
        strategy="selected_quantiles",
        workload=MEDIAN,
        table=table_over(MEDIAN.domain),
        finding="SelectedQuantilesFinding",
        # The epsilon of a choice is rounded down: as a root of rho, or to fewer digits.
        leaves={"epsilon": 1e-6, "rho": 1e-6} | NO_DELTA,
        refused=(ON_LINE, "answers quantiles, and this workload has none"),
        audited={"measurements", "quantile"},
    ),
)
ROWS += tuple(
    row
    for path in sorted(Path(__file__).parent.glob("rows_*.py"))
    for row in import_module(f"mechanisms.{path.stem}").ROWS
)
