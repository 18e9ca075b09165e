"""Answers on rows with nulls, in every engine, against DuckDB."""

import functools
import operator

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import leastnoise as ln
from trusted.reading.engine_rows import literal
from trusted.reading.postgres import table
from trusted.reading.sources import CONNECTION

ROWS = 240
LAND = {"north": "coast", "south": "inland", "west": "coast"}
KINDS = {
    "id": "bigint",
    "region": "text",
    "age": "bigint",
    "income": "double precision",
    "pay": "bigint",
    "weight": "bigint",
}
DOMAIN = ln.Domain(
    region=ln.Categories([*LAND], levels={"land": LAND}),
    age=ln.Integers(0, 4),
    income=ln.Bins(0, 40, 4, outside="clip"),
    measures={"pay": ln.Measure("pay", 0, 10), "weight": ln.Measure("weight", 0, 3)},
)
PEOPLE = ln.Domain(sex=["F", "M"], income=ln.Bins(0, 40, 4, outside="clip"), age=DOMAIN.kind("age"))
SEX = pa.table(
    {
        # Two people have no row here, one has two rows, and one has no sex.
        "id": pa.array([*range(38), 7, None], pa.int64()),
        "sex": pa.array([["F", "M", "F", None, "x"][place % 5] for place in range(40)]),
    }
)
COMPLETE = ln.correlation_queries(DOMAIN, ["pay", "weight"]).domain
HAS_REGION = "region IN ('north', 'south', 'west')"
COMPLETE_ROWS = f"{HAS_REGION} AND pay IS NOT NULL AND weight IS NOT NULL GROUP BY ALL"
BY_LAND = "if(region = 'south', 'inland', 'coast')"
HAS_AGE = "age BETWEEN 0 AND 4"
BIN = "least(greatest(floor(income / 10), 0), 3)"


def draw_rows(seed):
    """Return rows with nulls and values outside the domain in every column."""
    rng = np.random.default_rng(seed)

    def draw(values, kind):
        places = rng.integers(0, len(values), ROWS)
        return pa.array([values[place] for place in places], kind)

    return pa.table(
        {
            "id": draw([*range(40), None], pa.int64()),
            "region": draw([*LAND, "elsewhere", None], pa.string()),
            "age": draw([0, 1, 2, 3, 4, 9, None], pa.int64()),
            "income": draw([-5.0, 0.5, 12.25, 25.0, 39.5, 60.0, None], pa.float64()),
            "pay": draw([1, 5, 20, None], pa.int64()),
            "weight": draw([1, 2, 3, None], pa.int64()),
        }
    )


# Each workload has a statement for DuckDB with the same answers: keys by position, then a number.
COUNTS = [
    (ln.queries(DOMAIN), "SELECT count(*)"),
    (
        ln.queries(DOMAIN, region="identity"),
        f"SELECT region, count(*) WHERE {HAS_REGION} GROUP BY ALL",
    ),
    (
        ln.queries(DOMAIN, region=ln.level("land"), age="identity"),
        f"SELECT {BY_LAND}, age, count(*) WHERE {HAS_REGION} AND {HAS_AGE} GROUP BY ALL",
    ),
    (
        ln.queries(DOMAIN, region="identity", sum="pay"),
        f"SELECT region, sum(if(pay > 10, 10, pay)) WHERE {HAS_REGION} GROUP BY ALL",
    ),
    (ln.queries(DOMAIN, sum="pay"), "SELECT sum(if(pay > 10, 10, pay))"),
    (
        ln.queries(DOMAIN, region="identity", count="pay"),
        f"SELECT region, count(pay) WHERE {HAS_REGION} GROUP BY ALL",
    ),
]
ROWS_ONLY = [
    (
        ln.queries(DOMAIN, region="identity").weighted_by("weight"),
        f"SELECT region, sum(weight) WHERE {HAS_REGION} GROUP BY ALL",
    ),
    (
        ln.queries(DOMAIN, region="identity", sum="pay").weighted_by("weight"),
        f"SELECT region, sum(weight * if(pay > 10, 10, pay)) WHERE {HAS_REGION} GROUP BY ALL",
    ),
    (
        ln.queries(COMPLETE, region="identity", sum="rows with pay and weight"),
        f"SELECT region, count(*) WHERE {COMPLETE_ROWS}",
    ),
    (
        ln.queries(COMPLETE, region="identity", sum="products of pay and weight"),
        f"SELECT region, sum((if(pay > 10, 10, pay) - 5) * (weight - 1)) WHERE {COMPLETE_ROWS}",
    ),
]
UNITS_ONLY = [
    (
        ln.queries(DOMAIN, region="identity", count="units"),
        f"SELECT region, count(DISTINCT id) WHERE {HAS_REGION} GROUP BY ALL",
    ),
    (
        ln.queries(DOMAIN, age=ln.ranges([(0, 2)])),
        "SELECT '0 .. 2', count(*) WHERE age BETWEEN 0 AND 2 GROUP BY ALL",
    ),
]

HAS_SEX = "sex IN ('F', 'M')"
BIN_LABEL = f"['[0, 10)', '[10, 20)', '[20, 30)', '[30, 40]'][1 + CAST({BIN} AS INTEGER)]"
JOINED = [
    (ln.queries(PEOPLE), "SELECT count(*)"),
    (ln.queries(PEOPLE, sex="identity"), f"SELECT sex, count(*) WHERE {HAS_SEX} GROUP BY ALL"),
    (ln.queries(PEOPLE, age="identity"), f"SELECT age, count(*) WHERE {HAS_AGE} GROUP BY ALL"),
    (
        ln.queries(PEOPLE, sex="identity", age="identity"),
        f"SELECT sex, age, count(*) WHERE {HAS_SEX} AND {HAS_AGE} GROUP BY ALL",
    ),
    (
        ln.queries(PEOPLE, sex="identity", income="identity"),
        f"SELECT sex, {BIN_LABEL}, count(*) WHERE {HAS_SEX} AND income IS NOT NULL GROUP BY ALL",
    ),
]


def by_sql(statement, rows, condition="true"):
    """Answer a statement, completed with its FROM, by groups."""
    select, *grouped = statement.partition(" GROUP BY ")
    select, _, where = select.partition(" WHERE ")
    text = f"{select} FROM rows WHERE {where or 'true'} AND {condition}{''.join(grouped)}"
    with duckdb.connect() as database:
        database.register("rows", rows)
        rows_of_answer = database.execute(text).fetchall()
    return {tuple(map(str, keys)): float(value or 0) for *keys, value in rows_of_answer}


def sources(rows, folder, request):
    """Return the rows in every engine, each with a table of the sexes of people."""
    request.getfixturevalue("postgres")
    url = request.getfixturevalue("url")

    def in_postgres(arrow, name):
        kinds = {column: KINDS.get(column, "text") for column in arrow.column_names}
        lines = [[literal(row[k], kind) for k, kind in kinds.items()] for row in arrow.to_pylist()]
        return table(url, name, kinds, lines)

    spark = request.getfixturevalue("spark_session")
    yield in_postgres(rows, "missing"), in_postgres(SEX, "sexes")
    yield spark.createDataFrame(rows), spark.createDataFrame(SEX)
    yield (
        duckdb.from_arrow(rows, connection=CONNECTION),
        duckdb.from_arrow(SEX, connection=CONNECTION),
    )
    ibis = pytest.importorskip("ibis")
    yield ibis.memtable(rows), ibis.memtable(SEX)
    yield pl.from_arrow(rows).lazy(), pl.from_arrow(SEX)
    for name, arrow in (("rows", rows), ("sexes", SEX)):
        pl.from_arrow(arrow).write_csv(folder / f"{name}.csv")
    yield folder / "rows.csv", folder / "sexes.csv"


def answers(table):
    """Return the answers of a table by its groups."""
    frame = table.frame("pandas")
    keys = [name for name in frame if name == "sex" or name.split(":")[0] in DOMAIN.names]
    return {
        tuple(str(row[key]) for key in keys): (row["answer"], row["noise_std"])
        for row in frame.to_dict("records")
    }


def assert_like_sql(plan, source, tables, rows, condition="true"):
    release = ln.release(plan, source, seed=1)
    for answered, (_, statement) in zip(release.tables, tables, strict=True):
        published = answers(answered)
        truth = by_sql(statement, rows, condition)
        assert truth.keys() <= published.keys()
        for group, (answer, noise) in published.items():
            assert answer == pytest.approx(truth.get(group, 0), abs=0.1 + 6 * noise), statement


def plan_of_tables(tables, privacy):
    total_workload = functools.reduce(operator.add, [workload for workload, _ in tables])
    return ln.plan(total_workload, privacy, strategy="identity")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_tables_with_missing_values_match_sql(seed, tmp_path, request):
    rows = draw_rows(seed)
    plan = plan_of_tables(COUNTS + ROWS_ONLY, ln.PureDP(400))
    for source, _ in sources(rows, tmp_path, request):
        assert_like_sql(plan, source, COUNTS + ROWS_ONLY, rows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_units_with_missing_values_match_sql(seed, tmp_path, request):
    rows = draw_rows(seed)
    privacy = ln.Privacy(ln.PureDP(8000), unit_column="id", max_rows=20)
    plan = plan_of_tables(COUNTS + UNITS_ONLY, privacy)
    for source, _ in sources(rows, tmp_path, request):
        assert_like_sql(plan, source, COUNTS + UNITS_ONLY, rows, "id IS NOT NULL")


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
def test_joined_tables_with_missing_values_match_sql(public, tmp_path, request):
    rows = draw_rows(5)
    with duckdb.connect() as database:
        database.register("rows", rows)
        database.register("sexes", SEX)
        partners = "SELECT id, min(sex) AS sex FROM sexes GROUP BY id HAVING count(*) = 1"
        joined = database.sql(f"FROM rows LEFT JOIN ({partners}) USING (id)").to_arrow_table()
    unit = {} if public else {"unit_column": "id", "max_rows": 20}
    plan = plan_of_tables(JOINED, ln.Privacy(ln.PureDP(400 if public else 8000), **unit))
    for source, sexes in sources(rows, tmp_path, request):
        together = ln.Joined(source, sexes, on="id", public=public)
        assert_like_sql(plan, together, JOINED, joined, "true" if public else "id IS NOT NULL")
