"""Schemas of every kind of source: names, types, time zones and nullability."""

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leastnoise as ln
from leastnoise._sources import schema
from leastnoise._trusted.reading import check_source, read
from trusted.reading.encoders import refused
from trusted.reading.postgres import fill, server
from trusted.reading.small_sources import encoded_rows

NEW_YORK = "America/New_York"
TIME = dt.datetime.fromisoformat("2024-01-31T23:30")
TABLE = pa.table(
    {
        "whole": pa.array([1], pa.int8()),
        "flag": pa.array([True]),
        "code": pa.array(["a"]).dictionary_encode(),
        "bytes": pa.array([b"a"], pa.binary()),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"])),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16))),
        "zoned": pa.array([TIME], pa.timestamp("ms", NEW_YORK)),
        "naive": pa.array([TIME], pa.timestamp("us")),
        "list": pa.array([[1]]),
    },
    schema=pa.schema(
        [
            pa.field("whole", pa.int8(), nullable=False),
            pa.field("flag", pa.bool_()),
            pa.field("code", pa.dictionary(pa.int32(), pa.string())),
            pa.field("bytes", pa.binary()),
            pa.field("json", pa.json_()),
            pa.field("uuid", pa.uuid()),
            pa.field("zoned", pa.timestamp("ms", NEW_YORK)),
            pa.field("naive", pa.timestamp("us")),
            pa.field("list", pa.list_(pa.int64())),
        ]
    ),
)


def types_of(fields):
    return {field.name: str(field.type) for field in fields}


def test_parquet_and_arrow_have_the_same_schema(tmp_path):
    pq.write_table(TABLE, tmp_path / "x.parquet")
    of_file = schema(tmp_path / "x.parquet")
    of_table = schema(TABLE)
    readable = [field.name for field in of_table if field.readable]
    of_both = [
        {name: types_of(fields)[name] for name in readable} for fields in (of_file, of_table)
    ]

    assert of_both[0] == of_both[1]
    assert {field.name for field in of_file if not field.readable} == {"list"}
    assert {field.name for field in of_file if field.required} == {"whole"}
    assert {field.name: field.zone for field in of_file if field.zone} == {"zoned": NEW_YORK}


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, lambda rows: pl.DataFrame(rows).lazy()]
)
def test_frames_have_types_and_zones(make):
    frame = make({"n": [1, 2], "t": ["a", "b"], "b": [True, False], "x": [0.5, 1.5]})
    types = types_of(schema(frame))
    assert (types["n"], types["b"], types["x"]) == ("int64", "bool", "double")
    zoned = pl.DataFrame({"when": [TIME]}).with_columns(
        pl.col("when").dt.replace_time_zone(NEW_YORK)
    )
    fields = (*schema(zoned), *schema(zoned.to_pandas()))
    assert [field.zone for field in fields] == [NEW_YORK, NEW_YORK]


def test_numpy_columns_of_pandas_are_never_null():
    frame = pd.DataFrame({"n": np.array([1]), "b": np.array([True]), "x": [0.5], "t": ["a"]})
    frame["n2"] = pd.array([1], dtype="Int64")
    assert {field.name for field in schema(frame) if field.required} == {"n", "b"}


def test_not_null_database_columns_are_complete(tmp_path, monkeypatch):
    columns = "a INTEGER NOT NULL, b INTEGER, z TIMESTAMPTZ, t TEXT"
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits ({columns}, u UUID, h HUGEINT, d DECIMAL(9, 2))")
    monkeypatch.setenv("VISITS", f"duckdb://{tmp_path}/x.duckdb")
    fields = schema(ln.DatabaseTable("visits", "env:VISITS"))
    assert [field.name for field in fields if field.required] == ["a"]
    assert {field.name: field.zone for field in fields if field.zone is not None} == {"z": ""}
    assert types_of(fields)["d"] == "decimal128(9, 2)"

    with server() as url:
        fill(url, [f"CREATE TABLE visits ({columns}, p POINT)"])
        monkeypatch.setenv("VISITS", url)
        fields = schema(ln.DatabaseTable("visits", "env:VISITS"))
    assert [field.name for field in fields if field.required] == ["a"]
    assert {field.name: field.zone for field in fields if field.zone is not None} == {"z": ""}
    assert types_of(fields)["t"] == "string"
    assert types_of(fields)["p"] == "None"


# --- folders such as year=2024 --------------------------------------------------------------------

DOMAIN = ln.Domain(
    sex=["F", "M"],
    year=ln.Integers(2023, 2024, null="other"),
    region=ln.Categories(["01", "a b/ö"], null="other", outside="other"),
)


def partitioned(folder, ending):
    """Write folders of two columns, with escaped characters and rows without a year."""
    for year, region, sexes in (
        ("2023", "01", "FM"),
        ("2024", "a%20b%2F%c3%B6", "F"),
        ("__HIVE_DEFAULT_PARTITION__", "02", "M"),
    ):
        below = folder / f"year={year}" / f"region={region}"
        below.mkdir(parents=True)
        if ending == "csv":
            (below / "part.csv").write_text("sex\n" + "".join(f"{sex}\n" for sex in sexes))
        else:
            pq.write_table(pa.table({"sex": [*sexes]}), below / "part.parquet")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_folders_of_key_and_value_give_text_columns(tmp_path, ending):
    partitioned(tmp_path / "part", ending)
    rows = encoded_rows(read(tmp_path / "part", DOMAIN))
    assert rows == [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 2, 2)]
    assert [field.name for field in schema(tmp_path / "part")] == ["sex", "year", "region"]
    only_folders = ln.Domain(year=DOMAIN.kind("year"))
    assert encoded_rows(read(tmp_path / "part", only_folders)) == [(0,), (0,), (1,), (2,)]
    one_file = tmp_path / "part" / "year=2023" / "region=01" / f"part.{ending}"
    assert [field.name for field in schema(one_file)] == ["sex"]
    assert {field.name for field in schema(tmp_path / "part" / "year=2023")} == {"sex", "region"}
    rows_read = encoded_rows(read(tmp_path / "part" / "year=20*" / "*" / f"*.{ending}", DOMAIN))
    assert rows_read == rows[:3]


def test_file_column_wins_over_folder_name(tmp_path):
    (tmp_path / "part" / "sex=X").mkdir(parents=True)
    (tmp_path / "part" / "sex=X" / "a.csv").write_text("sex\nF\n")
    assert encoded_rows(read(tmp_path / "part", ln.Domain(sex=["F", "X"]))) == [(0,)]


def test_files_below_different_keys_are_refused(tmp_path):
    for folder in ("year=2023", "other"):
        (tmp_path / "part" / folder).mkdir(parents=True)
        (tmp_path / "part" / folder / "a.csv").write_text("sex\nF\n")
    with refused("only one of them has 'year'. Name the files that belong together"):
        read(tmp_path / "part", ln.Domain(sex=["F"]))


def test_a_unit_can_be_a_folder(tmp_path):
    for person in ("1", "2"):
        (tmp_path / "part" / f"person={person}").mkdir(parents=True)
        (tmp_path / "part" / f"person={person}" / "a.csv").write_text("sex\nF\nF\nF\n")
    table = read(tmp_path / "part", ln.Domain(sex=["F"]), unit_column="person", max_rows=1)
    assert encoded_rows(table) == [(0,), (0,)]


# --- headers --------------------------------------------------------------------------------------


def test_delimiter_in_quoted_name_is_kept(tmp_path):
    (tmp_path / "x.csv").write_text('"Umsatz, netto, brutto";"a ""b"", c"\n1;2\n')
    names = [field.name for field in schema(tmp_path / "x.csv")]
    assert names == ["Umsatz, netto, brutto", 'a "b", c']


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ('id,"Income\nper year",sex\n', "its first line ends within a quoted name"),
        ("\nid,sex\n", "its first line is empty"),
        (";;\nid;sex\n", "its first line is empty"),
        ('"id"x,sex\n', "continues after its closing quote"),
        ("id\0,sex\n", "has control characters"),
    ],
)
def test_missing_header_states_reason_and_remedy(tmp_path, header, reason):
    (tmp_path / "x.csv").write_text(f"{header}1,F\n")
    with refused(reason):
        schema(tmp_path / "x.csv")


def test_lines_before_header_explain_missing_column(tmp_path):
    (tmp_path / "x.csv").write_text("Report of 2024\n\nid,sex\n1,F\n")
    with refused("If there are lines before the names"):
        read(tmp_path / "x.csv", ln.Domain(age=["F"]))
    named = ln.CSV(tmp_path / "x.csv", header=["id", "sex"])
    assert encoded_rows(read(named, ln.Domain(sex=["F"]))) == [(0,)]


# --- time zones -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["day", "month", "hour", "weekday"])
@pytest.mark.parametrize("zone", [NEW_YORK, "UTC", "+02:00"])
def test_days_of_instants_need_a_zone(tmp_path, zone, by):
    table = pa.table({"when": pa.array([TIME], pa.timestamp("us", zone))})
    pq.write_table(table, tmp_path / "x.parquet")
    relation = duckdb.from_arrow(table)
    frame = pl.from_arrow(table)
    for source in (table, tmp_path / "x.parquet", relation, frame, frame.to_pandas(), frame.lazy()):
        dates = ln.Dates("2024-01-01", "2024-02-29", by)
        with refused("does not state the time zone of its days. Write for example zone = "):
            check_source(source, ln.Domain(when=dates), ["when"], [], None)
        stated = ln.Dates("2024-01-01", "2024-02-29", by, zone=NEW_YORK)
        check_source(source, ln.Domain(when=stated), ["when"], [], None)
        counted = encoded_rows(read(source, ln.Domain(when=stated)))
        assert len(counted) == 1


def test_days_without_a_zone_in_the_schema_need_none(tmp_path):
    dates = ln.Domain(when=ln.Dates("2024-01-01", "2024-02-29", "month"))
    (tmp_path / "x.csv").write_text("when\n2024-01-31T23:30:00Z\n2024-02-01\n")
    assert encoded_rows(read(tmp_path / "x.csv", dates)) == [(0,), (1,)]
    assert encoded_rows(read(pa.table({"when": [TIME]}), dates)) == [(0,)]
