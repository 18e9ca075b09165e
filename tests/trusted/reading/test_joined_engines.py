"""Tables joined and counted in PostgreSQL and Spark, against the same join read locally."""

import datetime as dt
import math
from collections import Counter

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leastnoise as ln
from behind_the_wall import open_source
from leastnoise import Bins, Categories, DatabaseTable, Dates, Domain, Measure
from trusted.reading.engine_rows import ARROW, COLUMNS, ROWS, counts, literal
from trusted.reading.postgres import fill, table

PARTNERS = pa.table(
    {
        # Some keys occur twice or three times, some are in no row, some are null, and each key has
        # another text as its form.
        "k": pa.array([*range(80), 3, 4, 4, 7, 500, None, None], pa.int64()),
        "f": pa.array(
            [*(f"u:{number}'" for number in range(80)), "u:3'", "u:5'", "u:5'", "17", "é", "", None]
        ),
        "g": pa.array([["F", "M", None, "x", "é"][place % 5] for place in range(87)]),
        "y": pa.array(
            [[0.25, 1.5, None, 17.0, -1.0, 2.0, math.inf][place % 7] for place in range(87)],
            pa.float64(),
        ),
        "day": pa.array(
            [
                [dt.date(2024, 1, 1), dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)][place % 4]
                for place in range(87)
            ]
        ),
        "x": pa.array([1.0] * 87),  # the first table has one of this name
    }
)


@pytest.fixture(scope="session")
def partners_of_spark(spark_session):
    return spark_session.createDataFrame(PARTNERS)


@pytest.fixture(scope="session")
def partners_of_postgres(url):
    names = {
        "k": "bigint",
        "f": "text",
        "g": "varchar",
        "y": "double precision",
        "day": "date",
        "x": "real",
    }
    return table(
        url,
        "partners",
        names,
        (
            [literal(row[name], kind) for name, kind in names.items()]
            for row in PARTNERS.to_pylist()
        ),
    )


@pytest.fixture
def partners(engine, request):
    """Return the second table next to the first."""
    return request.getfixturevalue(
        "partners_of_postgres" if isinstance(engine, DatabaseTable) else "partners_of_spark"
    )


BESIDE = Domain(
    {
        "t": Categories(["F", "M"], null="other", outside="other"),
        "g": Categories(["F", "M"], null="other", outside="other"),
        "y": Bins(-1, 3, 4, null="other", outside="clip"),
        "day": Dates("2024-01-01", "2024-12-31", "quarter", null="other", outside="other"),
    },
    measures={"most": Measure("y", 0, 20, unit="0.25")},
)
OF_G = Domain(g=BESIDE.kind("g"))
BESIDE_TABLES = {None: [("t", "g", "y", "day")], "most": [("t", "g", "y", "day")]}


@pytest.mark.parametrize(
    ("engine", "on", "public"),
    [
        *(
            ("postgres", on, public)
            for on, public in (({"u": "k"}, True), ({"w": "f"}, False), ({"t": "k"}, True))
        ),
        ("spark", {"w": "f"}, False),
    ],
    indirect=["engine"],
)
def test_engine_joins_and_counts_two_tables(engine, partners, on, public):
    """Keys are numbers, texts and formatted numbers; the second table is public or of units."""
    (unit,) = on
    options = {} if public else {"unit_column": unit, "max_rows": ROWS}
    numbers, is_counted_there = counts(
        ln.Joined(engine, partners, on=on, public=public), BESIDE, BESIDE_TABLES, **options
    )
    expected, read_here = counts(
        ln.Joined(ARROW, PARTNERS, on=on, public=public), BESIDE, BESIDE_TABLES, **options
    )

    assert numbers == expected
    assert is_counted_there is True
    assert read_here is False
    assert np.count_nonzero(numbers[None, ("t", "g", "y", "day")]) > 3


@pytest.mark.parametrize("engine", ["postgres", "spark"], indirect=True)
def test_engine_joins_several_tables(engine, partners, tmp_path):
    """One query joins on a number, a text, and a column of the first partner."""

    def star(visits, others):
        joined = ln.Joined(visits, others, on={"u": "k"}, columns=("g", "f"), public=True)
        joined = ln.Joined(joined, others, on={"w": "f"}, columns=("y",), public=True)
        return ln.Joined(joined, others, on={"f": "f"}, columns=("day",), public=True)

    options = {"unit_column": "u", "max_rows": ROWS}
    numbers, is_counted_there = counts(star(engine, partners), BESIDE, BESIDE_TABLES, **options)
    expected, _ = counts(star(ARROW, PARTNERS), BESIDE, BESIDE_TABLES, **options)
    assert is_counted_there
    assert numbers == expected
    assert np.count_nonzero(numbers[None, ("t", "g", "y", "day")]) > 3

    # With one seed all sources have the same release, noise included.
    plan = ln.plan(
        ln.queries(BESIDE, t="identity", g="identity", day="identity"),
        ln.Privacy(ln.PureDP(1), unit_column="u", max_rows=ROWS),
        strategy="identity",
    )
    parquet = [tmp_path / "rows.parquet", tmp_path / "partners.parquet"]
    for rows, path in zip((ARROW, PARTNERS), parquet, strict=True):
        pq.write_table(rows, path)
    pairs = [(ARROW, PARTNERS), (ARROW.to_pandas(), PARTNERS.to_pandas()), parquet]
    with duckdb.connect(":memory:") as database:
        pairs.append(tuple(database.from_parquet(str(path)) for path in parquet))
        of_engine = ln.release(plan, star(engine, partners), seed=5).long("pandas")
        for visits, others in pairs:
            assert ln.release(plan, star(visits, others), seed=5).long("pandas").equals(of_engine)
    # Both tables have the unit, and each keeps its own rule.
    joined_twice = ln.Joined(engine, partners, on={"u": "k"}, columns=("g",))
    joined_twice = ln.Joined(joined_twice, partners, on={"u": "k"}, columns=("y",))
    local = ln.Joined(ARROW, PARTNERS, on={"u": "k"}, columns=("g", "y"))
    domain = Domain(g=BESIDE.kind("g"), y=BESIDE.kind("y"))
    tables = {None: [("g", "y")]}
    numbers, is_counted_there = counts(joined_twice, domain, tables, **options)
    assert is_counted_there
    assert numbers == counts(local, domain, tables, **options)[0]


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_engine_bounds_a_joined_unit(engine, partners):
    rows = Counter(unit for unit in COLUMNS["u"] if unit is not None)
    numbers = counts(
        ln.Joined(engine, partners, on={"u": "k"}),
        BESIDE,
        {None: [()]},
        [],
        unit_column="u",
        max_rows=2,
    )
    assert numbers == ({(None, ()): [sum(min(2, number) for number in rows.values())]}, True)

    # The other table is public. It names the unit, and has keys that no row has.
    named = [number for unit, number in rows.items() if unit < 80 and unit not in {3, 4, 7}]
    homes = counts(
        ln.Joined(engine, partners, on={"u": "k"}, public=True),
        BESIDE,
        {None: [()]},
        [],
        unit_column="f",
        max_rows=3,
    )
    assert homes == ({(None, ()): [sum(min(3, number) for number in named)]}, True)


def test_tables_that_one_query_cannot_have_are_read(engine, partners):
    expected, _ = counts(
        ln.Joined(ARROW, PARTNERS, on={"u": "k"}, public=True), BESIDE, BESIDE_TABLES
    )
    for pair in ((engine, PARTNERS), (ARROW, partners)):
        assert counts(ln.Joined(*pair, on={"u": "k"}, public=True), BESIDE, BESIDE_TABLES) == (
            expected,
            False,
        )

    # A double cannot be a key there.
    opened = [
        open_source(ln.Joined(engine, partners, on=on, public=True)).engine
        for on in ({"x": "y"}, {"u": "y"}, {"u": "k"})
    ]
    assert [engine_or_none is None for engine_or_none in opened] == [True, True, False]


def test_engine_reads_only_needed_columns(url, postgres, monkeypatch):
    make = [
        "CREATE TABLE partly (k bigint, g text, secret text)",
        "INSERT INTO partly VALUES (1, 'F', 'x'), (2, 'M', 'y')",
    ]
    make += ["CREATE TABLE hidden (k bigint, g text)", "CREATE ROLE clerk LOGIN"]
    fill(
        url,
        [*make, "GRANT SELECT (u, t) ON visits TO clerk", "GRANT SELECT (k, g) ON partly TO clerk"],
    )
    monkeypatch.setenv("CLERK_URL", url.replace("tester:", "clerk:"))
    visits, partly, hidden = (
        DatabaseTable(name, "env:CLERK_URL") for name in ("visits", "partly", "hidden")
    )
    rows = Counter(unit for unit in COLUMNS["u"] if unit is not None)
    beside = ln.Joined(visits, hidden, on={"u": "k"}, public=True)
    numbers = counts(ln.Joined(visits, partly, on={"u": "k"}, public=True), OF_G, {None: [("g",)]})

    assert numbers == ({(None, ("g",)): [rows[1], rows[2], ROWS - rows[1] - rows[2]]}, True)
    assert counts(beside, Domain(t=BESIDE.kind("t")), {None: [()]}) == ({(None, ()): [ROWS]}, True)
    with pytest.raises(
        ln.InputError,
        match="the table 'visits' of PostgreSQL joined with the table 'hidden' of PostgreSQL "
        "cannot be read",
    ):
        counts(beside, OF_G, {None: [("g",)]})


def test_spark_ignores_unused_duplicate_columns(spark_session, spark):
    import pyspark.sql.functions as sql

    doubled = spark_session.createDataFrame(PARTNERS).select(
        "k", "g", sql.lit(1).alias("n"), sql.lit(2).alias("n")
    )
    expected, _ = counts(
        ln.Joined(ARROW, PARTNERS, on={"u": "k"}, public=True), OF_G, {None: [("g",)]}
    )

    assert counts(
        ln.Joined(spark, doubled, on={"u": "k"}, public=True), OF_G, {None: [("g",)]}
    ) == (expected, True)


def test_frames_of_two_sessions_of_spark_are_read(spark_session, spark):
    """Neither session sees the other's views."""
    partners = spark_session.newSession().createDataFrame(PARTNERS)
    assert open_source(ln.Joined(spark, partners, on={"u": "k"}, public=True)).engine is None
