"""Weeks, differences of dates and series as BigQuery, Snowflake and PostgreSQL write them."""

import datetime as dt

import duckdb
import pandas as pd
import pytest

import leastnoise as ln
from differential.exact import ExactNumbers
from leastnoise._release import answer_statement
from leastnoise._workload import SqlSettings, over_common_domain, read_statements
from workload.sql.answer_rows import assert_rows_equal, normalize, normalized_rows

TODAY = "2025-03-10"
DOMAIN = ln.Domain(
    visited=ln.Dates("2025-01-01", "2025-03-31", by="day"), kind=["a", "b"], age=ln.Integers(0, 9)
)
ROWS = pd.DataFrame(
    {
        "visited": [dt.date(2025, 1, 1) + dt.timedelta(number * 7 % 90) for number in range(300)],
        "kind": ["a", "b", "b"] * 100,
        "age": [number % 10 for number in range(300)],
    }
)


def assert_equals_reference(text, reference):
    """Compare the answer to a statement with the answer of DuckDB to a reference."""
    statements = read_statements(DOMAIN, [text], SqlSettings(today=TODAY))
    (statement,) = over_common_domain(statements)
    frame = pd.DataFrame(answer_statement(statement, ExactNumbers(ROWS, None)))
    frame = frame[[name for name in frame if not name.endswith(("_low", "_high"))]]
    answer = normalized_rows(frame)
    with duckdb.connect(":memory:") as database:
        database.register("frame", ROWS)
        database.execute(
            "CREATE TABLE t AS SELECT * REPLACE (CAST(visited AS DATE) AS visited) FROM frame"
        )
        expected = [tuple(map(normalize, row)) for row in database.execute(reference).fetchall()]
    assert_rows_equal(answer, expected, is_ordered=False)


@pytest.mark.parametrize(
    ("unit", "week"),
    [
        ("WEEK", "date_trunc('week', visited + INTERVAL 1 DAY) - INTERVAL 1 DAY"),
        ("WEEK(SUNDAY)", "date_trunc('week', visited + INTERVAL 1 DAY) - INTERVAL 1 DAY"),
        ("WEEK(MONDAY)", "date_trunc('week', visited)"),
        ("ISOWEEK", "date_trunc('week', visited)"),
        ("WEEK(THURSDAY)", "date_trunc('week', visited - INTERVAL 3 DAY) + INTERVAL 3 DAY"),
        ("MONTH", "date_trunc('month', visited)"),
    ],
)
def test_weeks_begin_on_the_day_of_bigquery(unit, week):
    assert_equals_reference(
        f"SELECT DATE_TRUNC(visited, {unit}) AS week, COUNT(*) AS n FROM t GROUP BY 1",
        f"SELECT CAST({week} AS DATE) AS week, COUNT(*) AS n FROM t GROUP BY 1",
    )
    assert_equals_reference(
        f"SELECT COUNT(*) AS n FROM t WHERE visited >= DATE_TRUNC(CURRENT_DATE(), {unit})",
        "SELECT COUNT(*) AS n FROM t WHERE visited >= "
        + week.replace("visited", f"DATE '{TODAY}'").replace("DAY", "days"),
    )


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (
            (
                "SELECT DATE_DIFF(visited, DATE '2025-02-01', DAY) AS d, COUNT(*) AS n FROM t "
                "GROUP BY 1"
            ),
            "SELECT visited - DATE '2025-02-01' AS d, COUNT(*) AS n FROM t GROUP BY 1",
        ),
        (
            "SELECT DATE_DIFF(CURRENT_DATE(), visited, WEEK) AS w, COUNT(*) AS n FROM t GROUP BY 1",
            (
                f"SELECT date_diff('week', visited + 1, DATE '{TODAY}' + 1) AS w, COUNT(*) AS n "
                "FROM t GROUP BY 1"
            ),
        ),
        (
            (
                "SELECT DATE_DIFF(visited, DATE '2025-02-01', ISOWEEK) AS w, COUNT(*) AS n FROM t "
                "GROUP BY 1"
            ),
            (
                "SELECT date_diff('week', DATE '2025-02-01', visited) AS w, COUNT(*) AS n FROM t "
                "GROUP BY 1"
            ),
        ),
        (
            (
                "SELECT DATEDIFF('month', DATE '2025-01-01', visited) AS m, COUNT(*) AS n FROM t "
                "GROUP BY 1"
            ),
            "SELECT month(visited) - 1 AS m, COUNT(*) AS n FROM t GROUP BY 1",
        ),
        (
            "SELECT EXTRACT(ISOWEEK FROM visited) AS w, COUNT(*) AS n FROM t GROUP BY 1",
            "SELECT week(visited) AS w, COUNT(*) AS n FROM t GROUP BY 1",
        ),
        (
            "SELECT WEEKISO(visited) AS w, COUNT(*) AS n FROM t GROUP BY 1",
            "SELECT week(visited) AS w, COUNT(*) AS n FROM t GROUP BY 1",
        ),
        (
            (
                "SELECT kind, COUNT(*) AS n FROM t WHERE visited >= PARSE_DATE('%Y%m%d', "
                "'20250301') GROUP BY 1"
            ),
            "SELECT kind, COUNT(*) AS n FROM t WHERE visited >= DATE '2025-03-01' GROUP BY 1",
        ),
        (
            """WITH months AS (SELECT generate_series(DATE '2025-01-01', DATE '2025-03-01',
            INTERVAL '1 month')::date AS month), per AS (SELECT date_trunc('month', visited)::date
            AS month, COUNT(*) AS n FROM t GROUP BY 1)
            SELECT months.month, COALESCE(per.n, 0) AS n FROM months LEFT JOIN per USING (month)""",
            "SELECT date_trunc('month', visited)::date AS month, COUNT(*) AS n FROM t GROUP BY 1",
        ),
    ],
)
def test_dates_of_other_databases_are_answered(text, reference):
    assert_equals_reference(text, reference)


@pytest.mark.parametrize("function", ["MODE()", "RANK()", "LISTAGG(age)"])
def test_ordered_aggregates_of_rows_are_refused(function):
    text = f"SELECT kind, {function} WITHIN GROUP (ORDER BY age) AS x FROM t GROUP BY kind"
    with pytest.raises(
        ln.InputError, match=r"Statement 1 \(line 1, column \d+\).*cannot be answered"
    ):
        ln.sql(DOMAIN, text)
