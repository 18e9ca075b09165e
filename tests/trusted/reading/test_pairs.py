"""Declared types that cannot match an attribute or measure are refused before payment."""

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leastnoise as ln
from leastnoise._trusted.reading import check_source, read
from leastnoise._trusted.table import open_content
from trusted.reading.postgres import table as server_table

CONNECTION = duckdb.connect()
DAY = dt.date(2024, 1, 5)
TABLE = pa.table(
    {
        "whole": pa.array([1, 0], pa.int64()),
        "real": pa.array([1.5, 0.0]),
        "flag": pa.array([True, False]),
        "word": pa.array(["1", "true"]),
        "day": pa.array([DAY, None]),
        "stamp": pa.array([np.datetime64("2024-01-05T12:00:00", "us"), None]),
    }
)
NUMBERS = {
    "integers": ln.Integers(0, 9),
    "bins": ln.Bins(0, 9, 3),
    "edges": ln.Edges([0, 1, 9]),
    "decimals": ln.Decimals(0, 9, "0.5"),
    "size": ln.Coded(3),
}
MONTHS = ln.Dates("2024-01-01", "2024-12-31", by="month", zone="UTC")
CODED_DAYS = ln.Dates("2024-01-01", "2024-12-31", format="%Y%m%d")
TRUTH = ln.Categories([True, False], outside="other")
SEX = ln.Categories(["F", "M"], null="other", outside="other")
REFUSED = [(column, kind) for kind in NUMBERS.values() for column in ("day", "stamp")]
REFUSED += [(column, MONTHS) for column in ("whole", "real", "flag")]
REFUSED += [("flag", CODED_DAYS), ("whole", TRUTH), ("real", TRUTH)]
REFUSED += [(column, SEX) for column in ("whole", "real", "flag", "day", "stamp")]
REFUSED += [("flag", ln.Categories([0, 1])), ("day", ln.Categories(["2024-01", "5.1.2024"]))]
ALLOWED = [(column, kind) for kind in NUMBERS.values() for column in ("whole", "flag", "word")]
ALLOWED += [(column, MONTHS) for column in ("word", "day", "stamp")]
ALLOWED += [("whole", CODED_DAYS), ("flag", TRUTH), ("word", TRUTH), ("word", SEX)]
ALLOWED += [("whole", ln.Categories([True, False], spellings={"true": ["1"], "false": ["0"]}))]
ALLOWED += [("whole", ln.Categories([1, "x"])), ("real", ln.Categories(["1.5"]))]
ALLOWED += [
    ("day", ln.Categories(["2024-01-05"])),
    ("stamp", ln.Categories(["2024-01-05 12:00:00"])),
]
ALLOWED += [("stamp", ln.Categories(["2024-01-05"])), ("flag", ln.Categories(["true", "unknown"]))]


@pytest.fixture(
    params=[
        "parquet",
        "files",
        "pyarrow",
        "polars",
        "lazy",
        "pandas",
        "arrow",
        "duckdb",
        "postgres",
        "spark",
    ]
)
def typed_source(request, tmp_path):
    """Return the table from every kind of source with declared types."""
    if request.param == "postgres":
        request.getfixturevalue("postgres")
        types = ["bigint", "double precision", "boolean", "text", "date", "timestamp"]
        row = ("1", "1.5", "true", "'1'", "'2024-01-05'", "'2024-01-05 12:00:00'")
        columns = dict(zip(TABLE.column_names, types, strict=True))
        return server_table(request.getfixturevalue("url"), "typed_source", columns, [row])
    if request.param == "spark":
        return request.getfixturevalue("spark_session").createDataFrame(TABLE)
    if request.param in {"parquet", "files"}:
        pq.write_table(TABLE, tmp_path / "a.parquet")
        if request.param == "files":
            pq.write_table(TABLE, tmp_path / "b.parquet")
        return tmp_path
    return {
        "pyarrow": lambda: TABLE,
        "polars": lambda: pl.from_arrow(TABLE),
        "lazy": lambda: pl.from_arrow(TABLE).lazy(),
        "pandas": lambda: TABLE.to_pandas().astype({"day": "datetime64[ns]"}),
        "arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
        "duckdb": lambda: CONNECTION.from_arrow(TABLE),
    }[request.param]()


def test_pairs_that_cannot_match_are_refused(typed_source):
    for column, kind in REFUSED:
        with pytest.raises(ln.InputError, match=f"can match no value of the column '{column}'"):
            check_source(typed_source, ln.Domain({column: kind}), [column], [], None)


@pytest.mark.slow
def test_pairs_that_can_match_are_not_refused(typed_source):
    for column, kind in ALLOWED:
        check_source(typed_source, ln.Domain({column: kind}), [column], [], None)


@pytest.mark.parametrize("column", ["stamp", "day"])
def test_measures_of_times_are_refused(typed_source, column):
    domain = ln.Domain({"word": SEX}, measures={"sum": ln.Measure(column, 0, 9)})
    with pytest.raises(ln.InputError, match="which dates and time stamps are not"):
        check_source(typed_source, domain, ["word"], ["sum"], None)


@pytest.mark.parametrize("column", ["whole", "flag"])
def test_measures_of_numbers_and_flags_are_allowed(typed_source, column):
    domain = ln.Domain({"word": SEX}, measures={"sum": ln.Measure(column, 0, 9)})
    check_source(typed_source, domain, ["word"], ["sum"], None)


def test_columns_of_nulls_are_not_refused(tmp_path):
    """Their type is inferred from values, so a refusal would depend on the rows."""
    table = pa.table({"word": ["F"], "nothing": pa.nulls(1)})
    pq.write_table(table, tmp_path / "a.parquet")
    sources = [
        table,
        tmp_path,
        pl.from_arrow(table),
        table.to_pandas(types_mapper=pd.ArrowDtype),
        CONNECTION.from_arrow(table),
    ]
    domain = ln.Domain(
        {"nothing": ln.Integers(0, 9), "word": SEX}, measures={"sum": ln.Measure("nothing", 0, 9)}
    )
    for source in sources:
        check_source(source, domain, ["nothing", "word"], ["sum"], None)
    pq.write_table(pa.table({"word": ["M"], "nothing": [5]}), tmp_path / "b.parquet")
    check_source(tmp_path, domain, ["nothing"], ["sum"], None)


def test_types_that_differ_between_files_are_unknown(tmp_path):
    pq.write_table(pa.table({"x": pa.array([1])}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array(["F"])}), tmp_path / "b.parquet")
    check_source(tmp_path, ln.Domain(x=SEX), ["x"], [], None)


def test_nothing_is_spent_on_a_pair_that_cannot_match(tmp_path):
    plan = ln.plan(ln.queries(ln.Domain(whole=MONTHS), whole="identity"), ln.PureDP(1))
    for paid in ({"seed": 1}, {"ledger": tmp_path / "x.ledger"}):
        with pytest.raises(ln.InputError, match='format = "%Y%m%d"'):
            ln.release(plan, TABLE, **paid)
    assert list(tmp_path.iterdir()) == []


# --- types of pandas ------------------------------------------------------------------------------

VISITS = pd.DataFrame({"time": pd.to_datetime(["2024-01-05", "2024-01-09", None, "2024-02-01"])})
AGES = pd.Series([5, 30, None, 70])


def codes_of_column(frame, kind):
    """Return the cell of each row in the only column of a frame."""
    name = next(iter(frame))
    check_source(frame, ln.Domain({name: kind}), [name], [], None)
    return open_content(read(frame, ln.Domain({name: kind}))).codes[name].tolist()


@pytest.mark.parametrize("frequency", ["M", "D", "W", "Q", "Y", "h"])
def test_periods_are_read_by_their_start(frequency):
    kind = ln.Dates("2023-12-01", "2024-03-31", by="month", null="other")
    periods = VISITS.time.dt.to_period(frequency)
    starts = pd.DataFrame({"x": periods.dt.start_time})
    for values in (periods, periods.astype("category")):
        assert codes_of_column(pd.DataFrame({"x": values}), kind) == codes_of_column(starts, kind)


def test_a_period_beyond_time_stamps_changes_no_other():
    periods = pd.Series(
        [*VISITS.time.dt.to_period("M"), pd.Period("9000-01", "M")], dtype="period[M]"
    )
    kind = ln.Dates("2024-01-01", "2024-02-29", by="month", null="other", outside="other")
    assert codes_of_column(pd.DataFrame({"x": periods}), kind) == [0, 0, 2, 1, 2]


def test_intervals_are_read_by_their_text():
    kind = ln.Categories(["(0, 18]", "(18, 65]", "(65, 120]"], null="other")
    groups = pd.cut(AGES, [0, 18, 65, 120])
    assert codes_of_column(pd.DataFrame({"x": groups}), kind) == [0, 1, 3, 2]
    intervals = pd.Series(groups.cat.categories)
    assert codes_of_column(pd.DataFrame({"x": intervals}), kind) == [0, 1, 2]


def test_interval_text_does_not_depend_on_earlier_rows():
    """-0.0 equals 0.0 but has another text: one more row must not change the others."""
    intervals = pd.Series(pd.arrays.IntervalArray.from_arrays([-0.0, 0.0, 0.0], [1.0, 1.0, 1.0]))
    kind = ln.Categories(["(-0.0, 1.0]", "(0.0, 1.0]"], null="other")
    assert codes_of_column(pd.DataFrame({"x": intervals}), kind) == [0, 1, 1]
    assert codes_of_column(pd.DataFrame({"x": intervals[::-1]}), kind) == [1, 1, 0]


@pytest.mark.parametrize(
    "values",
    [
        np.array([1j, 2j]),
        pd.Series([1j, 2j]).astype("category"),
        pd.to_timedelta([1, 2], unit="s"),
        pd.Series(pd.to_timedelta([1, 2], unit="s")).astype("category"),
    ],
    ids=["complex", "categories of complex", "durations", "categories of durations"],
)
def test_types_of_pandas_without_a_form_are_refused(values):
    frame = pd.DataFrame({"x": values})
    with pytest.raises(ln.InputError, match="must hold numbers, text or dates"):
        check_source(frame, ln.Domain(x=ln.Integers(1, 3)), ["x"], [], None)


def test_python_objects_are_not_judged_by_values():
    """Whether all objects of a column have one type depends on its rows."""
    for values in ([1, 2], ["F", "M"], [DAY, DAY], [True, False]):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        for kind in (SEX, MONTHS, ln.Integers(0, 9)):
            check_source(frame, ln.Domain(x=kind), ["x"], [], None)
