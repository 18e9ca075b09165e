"""Counts that may be alike everywhere."""

from mechanisms.row import LINE, ON_LINE, ON_PLANE, Row, table_over

REFUSED = (ON_PLANE, "counts along one attribute")
ROWS = (
    Row(
        mechanism="FlatOrNot",
        strategy="flat",
        workload=ON_LINE,
        table=table_over(LINE),
        refused=REFUSED,
        audited={"measurements"},
    ),
)
