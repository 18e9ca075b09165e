"""One row a mechanism: what is asked of it in the conformance tests, and what it must refuse.

A mechanism in a file of its own has its rows in a file of its own too: ``rows_NAME.py`` beside this one, with a tuple ``ROWS``.
"""

from importlib import import_module
from pathlib import Path

from leastnoise._accounting import PureDP
from leastnoise._domain import Domain, Integers
from leastnoise._workload import queries
from mechanisms.row import LINE, LOTS, ON_CUBE, ON_LINE, ON_PLANE, PAID, PLANE, SUMS, SUMS_BY_GROUP, Row, table_over

ROWS = (
    Row(mechanism="Linear", strategy="identity", workload=ON_PLANE, table=table_over(PLANE), looks=False, audited={"measurements"}),
    *(
        Row(mechanism="Dawa", strategy=name, workload=ON_LINE, table=table_over(LINE), refused=(ON_CUBE, LOTS), audited=steps)
        for name, steps in (
            ("dawa", {"least cost", "measurements"}),
            ("dawa_levels", {"measurements"}),
        )
    ),
    Row(
        mechanism="DawaPlane",
        strategy="dawa",
        workload=ON_PLANE,
        table=table_over(PLANE),
        budgets=(PureDP("1/2"),),
        refused=(queries(Domain(a=Integers(0, 4999), b=Integers(0, 1)), a="prefix", b="prefix"), "at most 4096 cells of each"),
        audited={"least cost", "measurements"},
    ),
    Row(
        mechanism="TruncatedSums",
        strategy="truncated_sums",
        workload=SUMS,
        table=table_over(PAID, {"wages": "pay"}),  # type: ignore[dict-item]
        refused=(ON_LINE, "answers sums of one measure"),
        audited={"measurements"},
    ),
    Row(
        mechanism="TruncatedSums",
        strategy="truncated_sums",
        workload=queries(PAID, sex="identity", sum="wages"),
        table=table_over(PAID, {"wages": "pay"}),  # type: ignore[dict-item]
        refused=(ON_LINE, "answers sums of one measure"),
        audited={"measurements"},
    ),
    Row(
        mechanism="TruncatedSums",
        strategy="truncated_sums",
        workload=SUMS_BY_GROUP,
        table=table_over(PAID, {"wages": "pay"}),  # type: ignore[dict-item]
        refused=(ON_LINE, "answers sums of one measure"),
        audited={"measurements"},
    ),
)
ROWS += tuple(row for path in sorted(Path(__file__).parent.glob("rows_*.py")) for row in import_module(f"mechanisms.{path.stem}").ROWS)
