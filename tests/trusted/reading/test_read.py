"""Files and frames of every library: the same rows give the same table."""

import datetime as dt
import itertools
import subprocess
import sys
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leastnoise._domain import Bins, Categories, Coded, Domain, Integers, Measure
from leastnoise._progress import Progress, RowProgress
from leastnoise._sources import schema
from leastnoise._trusted.check import InputError
from leastnoise._trusted.reading import check_source, read
from leastnoise._trusted.table import open_content
from trusted.reading.encoders import refused
from trusted.reading.pools import OBJECTS, Trap
from trusted.reading.small_sources import (
    CONNECTION,
    SOURCES_OF_FRAME,
    encoded_rows,
    write_file,
)

MARK = "SECRETMARK"


@pytest.fixture(params=SOURCES_OF_FRAME, ids=str)
def constructor(request, tmp_path):
    return lambda frame: SOURCES_OF_FRAME[request.param](frame, tmp_path)


@pytest.fixture(params=SOURCES_OF_FRAME, scope="module", ids=str)
def everything(request, tmp_path_factory):
    """Return the whole frame, created once for all tests that only read it."""
    return SOURCES_OF_FRAME[request.param](FRAME, tmp_path_factory.mktemp("everything"))


STAMP = dt.datetime.fromisoformat
FRAME = pl.DataFrame(
    {
        "sex": ["F", "M", "", None, "x", "F", " F", "Ünïcode 日本", 'q"uote', "a,b"],
        "age": [17, 90, 16, None, 50, 91, 20, 21, 22, 23],
        "zone": [0.0, 1.0, 2.5, None, float("nan"), 3.0, float("inf"), -1.0, -0.0, 2.0],
        "pay": [0.0, 0.1, 0.3, None, 1.0, 1.1, -0.1, 0.7, float("-inf"), 0.5],
        "flag": [True, False, None, True, False, True, False, True, False, True],
        "day": [dt.date(2024, 5, 1), None, dt.date(1900, 1, 1), *([dt.date(2024, 5, 2)] * 7)],
        "when": [
            STAMP("2024-05-01"),
            None,
            STAMP("2024-05-01T13:45"),
            *([STAMP("2024-05-02T00:00:00.500000")] * 7),
        ],
        "price": [Decimal("1.50"), None, Decimal("2.00"), *([Decimal("0.10")] * 7)],
        "big": [2**53 + 1, None, 2**53, *([-(2**62)] * 7)],
    },
    schema_overrides={"price": pl.Decimal(10, 1)},
)

SEX = ["F", "M", "Ünïcode 日本", 'q"uote', "a,b"]


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (
            Domain(sex=Categories([*SEX, " F"], outside="other", null="other")),
            [0, 1, 6, 6, 6, 0, 5, 2, 3, 4],
        ),
        (Domain(age=Integers(17, 90, outside="clip")), [0, 73, 0, 33, 73, 3, 4, 5, 6]),
        (Domain(age=Integers(17, 90, null="other")), [0, 73, 74, 33, 3, 4, 5, 6]),
        (Domain(age=Categories([17, "90"])), [0, 1]),
        (Domain(zone=Coded(4, outside="other")), [0, 1, 4, 3, 4, 4, 0, 2]),
        (Domain(zone=Categories([0, 1, 2, "2.5"])), [0, 1, 3, 0, 2]),
        (Domain(zone=Integers(0, 3, outside="clip")), [0, 1, 2, 3, 0, 0, 2]),
        (Domain(pay=Bins(0, 1, 10, closed="right")), [0, 0, 2, 9, 6, 4]),
        (
            Domain(pay=Bins(0, 1, 10, outside="other", null="other")),
            [0, 1, 3, 10, 9, 10, 10, 7, 10, 5],
        ),
        (Domain(flag=[True, False]), [0, 1, 0, 1, 0, 1, 0, 1, 0]),
        (Domain(day=["2024-05-01", "2024-05-02"]), [0, *[1] * 7]),
        (Domain(price=["1.5", "2", "0.1"]), [0, 1, *[2] * 7]),
        (Domain(price=Bins(0, 2, 20)), [15, 19, *[1] * 7]),
        (Domain(big=Integers(0, 5, outside="other")), [6] * 9),
    ],
)
def test_every_source_has_the_same_cells(everything, domain, expected):
    # `test_encode` checks what each policy does to a value.
    (name,) = domain.names
    assert sorted(open_content(read(everything, domain)).codes[name].tolist()) == sorted(expected)


def test_large_integers_are_distinguished(everything):
    if isinstance(everything, pd.DataFrame) and everything["big"].dtype == np.float64:
        # Here pandas has converted the whole numbers to floats.
        everything = pd.DataFrame({"big": pd.Series(FRAME["big"].to_list(), dtype="Int64")})
    assert open_content(read(everything, Domain(big=[2**53, 2**53 + 1]))).codes["big"].tolist() == [
        1,
        0,
    ]


def test_time_stamps_match_categories_except_in_files_of_lines(everything):
    # A CSV file has the texts of its writer, here ISO 8601 with a T and microseconds.
    stamps = open_content(
        read(
            everything, Domain(when=["2024-05-01", "2024-05-01 13:45:00", "2024-05-02 00:00:00.5"])
        )
    ).codes["when"]
    assert sorted(stamps.tolist()) == (
        [] if str(everything).endswith(("sv", "gz")) else [0, 1, *[2] * 7]
    )


def test_several_attributes_and_a_measure(everything):
    domain = Domain(
        age=Integers(17, 90, outside="other", null="other"),
        sex=Categories(SEX, outside="other", null="other"),
        measures={"sum": Measure("pay", "-0.05", 1, unit="0.05")},
    )
    expected = [
        (0, 0, 0), (73, 1, 2), (74, 5, 6), (74, 5, 0), (33, 5, 20), (74, 0, 20), (3, 5, -1),
        (4, 2, 14), (5, 3, 0), (6, 4, 10),
    ]  # fmt: skip
    assert encoded_rows(read(everything, domain)) == sorted(expected)


def test_an_attribute_may_be_a_measure_and_a_unit_too(everything):
    domain = Domain(age=Integers(17, 90), measures={"years": Measure("age", 0, 30)})
    assert encoded_rows(read(everything, domain, unit_column="age", max_rows=2)) == [
        (0, 17), (3, 20), (4, 21), (5, 22), (6, 23), (33, 30), (73, 30),
    ]  # fmt: skip


def test_no_rows(constructor):
    table = read(
        constructor(FRAME.select("sex", "age").clear()),
        Domain(age=Integers(0, 9), sex=["F"]),
        unit_column="sex",
    )
    assert encoded_rows(table) == []


def test_chunks_do_not_change_the_table(everything, monkeypatch, capfd):
    domain = Domain(
        age=Integers(17, 90, outside="other", null="other"),
        sex=Categories(SEX, outside="other", null="other"),
    )
    expected = encoded_rows(read(everything, domain))
    for name in ("_column", "_files", "_frame_sources"):
        monkeypatch.setattr(f"leastnoise._trusted.reading.{name}.CHUNK", 3)
    monkeypatch.setattr("leastnoise._trusted.reading._lines.BLOCK", 40)
    calls = []
    monkeypatch.setattr(RowProgress, "show", lambda _, *numbers: calls.append(numbers))
    progress = RowProgress(Progress("reading"), "reading", "done")
    assert encoded_rows(read(everything, domain, progress=progress)) == expected

    rows_done = [rows for rows, _ in calls]
    assert rows_done == [3, 6, 9, 10] or (
        str(everything).endswith(("sv", "gz"))
        and rows_done == sorted(rows_done)
        and rows_done[-1] == 10
        and len(rows_done) > 2
    )
    assert {total for _, total in calls} <= {None, 10}
    assert capfd.readouterr() == ("", "")  # nothing of a row is printed


def test_categorical_columns():
    frame = pl.DataFrame({"a": ["x", "y", None]})
    sources = [
        frame.with_columns(pl.col("a").cast(pl.Categorical)),
        frame.with_columns(pl.col("a").cast(pl.Enum(["x", "y"]))),
        frame.to_pandas().astype({"a": "category"}),
        frame.to_arrow().set_column(0, "a", pa.array(["x", "y", None]).dictionary_encode()),
        duckdb.sql("SELECT unnest(['x', 'y', NULL])::ENUM('x', 'y') AS a"),
        pd.DataFrame({"a": pd.Series([1, 2, None], dtype="category")}),
    ]
    domain = Domain(a=["x", "y"])

    assert [encoded_rows(read(source, domain)) for source in sources[:-1]] == [[(0,), (1,)]] * 5
    assert encoded_rows(read(sources[-1], Domain(a=[1, 2]))) == [(0,), (1,)]


def test_numbers_stored_otherwise():
    domain = Domain(a=Bins(0, 1, 10))
    for source in (
        pl.DataFrame({"a": pl.Series([0.3, 0.7, None], dtype=pl.Float32)}),
        pl.DataFrame({"a": pl.Series([0.3, 0.7, None], dtype=pl.Float32)}).to_arrow(),
        pd.DataFrame({"a": np.array([0.3, 0.7, np.nan], dtype=np.float32)}),
        duckdb.sql("SELECT unnest([0.3, 0.7, NULL])::FLOAT AS a"),
        duckdb.sql("SELECT unnest([0.3, 0.7, NULL])::DECIMAL(4, 2) AS a"),
        pl.DataFrame({"a": ["0.30", " 7e-1 ", "nan"]}),
        pd.DataFrame(
            {"a": pd.Series([0.3, Decimal("0.70"), pd.NA, "abc", [1], object()], dtype=object)}
        ),
    ):
        assert encoded_rows(read(source, domain)) == [(3,), (7,)]
    assert encoded_rows(
        read(
            duckdb.sql("SELECT unnest([0.5, 10, 0])::DECIMAL(4, 2) AS a"),
            Domain(a=["0.5", "10", "0"]),
        )
    ) == [(0,), (1,), (2,)]
    assert encoded_rows(
        read(duckdb.sql("SELECT unnest([10, 0])::HUGEINT AS a"), Domain(a=["10", "0"]))
    ) == [(0,), (1,)]
    for kind in ("Int8", "int16", "UInt64", "Float64", "int64[pyarrow]"):
        assert encoded_rows(read(pd.DataFrame({"a": pd.Series([1, 0], dtype=kind)}), domain)) == [
            (0,),
            (9,),
        ]
    assert encoded_rows(read(pd.DataFrame({"a": pd.Series([1, None], dtype="Int64")}), domain)) == [
        (9,)
    ]


class TrapText(str):
    __slots__ = ()
    __eq__ = __hash__ = __len__ = Trap._fail


STRANGE = [*OBJECTS, {"a": MARK}, -(10**5000), "9" * 10**5, "1e999999999", TrapText("F")]


@pytest.mark.parametrize("place", range(len(STRANGE)))
def test_no_value_makes_reading_fail(place):
    frame = pd.DataFrame({"a": pd.Series([None, "F", 1], dtype=object), "id": [1, 2, 3]})
    frame.at[0, "a"] = STRANGE[place]
    for kind in (
        Categories(["F"], outside="other", null="other"),
        Integers(0, 5, outside="clip"),
        Bins(0, 5, 5),
        Coded(3),
    ):
        table = read(frame, Domain(a=kind, measures={"m": Measure("a", 0, 9)}), unit_column="id")
        assert MARK not in repr(table)
        assert len(open_content(table).codes["a"]) <= 3
        assert set(open_content(table).values["m"].tolist()) <= {0, 1, 9}

    assert len(
        open_content(read(frame, Domain(id=Integers(0, 9)), unit_column="a")).codes["id"]
    ) in {2, 3}


def test_columns_of_types_without_a_rule_are_outside():
    frame = pl.DataFrame(
        {
            "a": [[1], None],
            "b": [dt.time(1), None],
            "c": [dt.timedelta(1), None],
            "d": [{"x": 1}, None],
            "e": [b"\xff", None],
        }
    )
    for source in (frame, frame.to_arrow(), CONNECTION.from_arrow(frame.to_arrow())):
        for name in frame.columns:
            domain = Domain({name: Categories(["x"], outside="other")})
            assert encoded_rows(read(source, domain)) == [(1,)]
        assert encoded_rows(read(source, Domain(a=Integers(0, 5, outside="other")))) == [(6,)]
        with pytest.raises(
            InputError, match=r"the column 'a' of .* must hold numbers, text or dates; its type is "
        ):
            read(source, Domain(b=["x"]), unit_column="a")
        with pytest.raises(
            InputError, match=r"the column 'd' of .* must hold numbers, text or dates; its type is "
        ):
            check_source(source, Domain(d=["x"]), ["d"], [], None)


# --- CSV ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kept_rows"),
    [
        *(
            (line, [])
            for line in (
                b"F,1,extra",
                b"F",
                b"",
                b'"F,1',
                b'"F"x,1',
                b'F,"1',
                b"\xff,1",
                b"F\0,1",
                b"M,2\rM,3",
                b"\rM,2",
                b" F,1",
            )
        ),
        *(
            (line, [])
            for line in (
                b'"M,""",2',
                b"\x1fM,2",
                b"M,2\x1f",
                b"\xef\xbb\xbfM,2",
                b"x" * 3_000_000 + b",1",
            )
        ),
        *((line, [(1, 2)]) for line in (b"M,2\r", b"M,2\r\r", b'"M","2"', b'"M","2"\r', b'"M",2')),
        (b"M,5" + b" " * (2_000_000 - 3), []),
        (b"M,5" + b" " * (300 - 3), [(1, 5)]),
    ],
)
def test_each_line_of_csv_is_read_or_dropped_separately(tmp_path, line, kept_rows):
    file = write_file(tmp_path, b"sex,n\nF,0\n" + line + b"\nM,5\n")
    assert encoded_rows(read(file, Domain(sex=["F", "M"], n=Coded(6)))) == sorted(
        [(0, 0), *kept_rows, (1, 5)]
    )


@pytest.mark.parametrize(
    "content",
    [
        b"sex,n\nF,1",
        b"sex,n\r\nF,1\r\n",
        b"\xef\xbb\xbfsex,n\nF,1\n",
        b'"sex";"n"\nF;1\n',
        b"sex\tn\nF\t1\n",
        b"sex|n\nF|1\n",
    ],
)
def test_dialects_of_csv_follow_from_the_header(tmp_path, content):
    assert encoded_rows(read(write_file(tmp_path, content), Domain(sex=["F"], n=Coded(2)))) == [
        (0, 1)
    ]
    assert [field.name for field in schema(tmp_path / "x.csv")] == ["sex", "n"]


def test_columns_of_parquet(tmp_path):
    FRAME.select("sex", "age", "zone", "day").write_parquet(tmp_path / "x.parquet")
    fields = schema(tmp_path / "x.parquet")
    assert [(field.name, str(field.type)) for field in fields] == [
        ("sex", "large_string"),
        ("age", "int64"),
        ("zone", "double"),
        ("day", "date32[day]"),
    ]


# --- bad input ------------------------------------------------------------------------------------

DOMAIN = Domain(sex=["F", "M"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            pd.DataFrame([[MARK, MARK]], columns=["sex", "sex"]),
            "must have column names that differ from each other",
            id="equal column names",
        ),
        pytest.param(
            [MARK],
            "the source must be a path to .csv, .csv.gz, .tsv, .tsv.gz, .txt, .txt.gz",
            id="list, with the files that are read",
        ),
        pytest.param(
            [MARK], " files, a pandas, Polars, Py", id="list, with the frames that are read"
        ),
        pytest.param(pd.Series([MARK]), "got an object of type 'Series'.", id="series"),
        pytest.param(
            pd.DataFrame([[MARK]]),
            "the pandas data frame has no column 'sex', and none whose name is a text.",
            id="no name is a text",
        ),
        pytest.param(
            pd.DataFrame({"gender": [MARK], 5: [MARK]}),
            "the pandas data frame has no column 'sex'; it has 'gender'",
            id="other column of pandas",
        ),
        pytest.param(
            pl.DataFrame({"gender": [MARK]}),
            "the polars data frame has no column 'sex'; it has 'gender'.",
            id="other column of Polars",
        ),
        pytest.param(
            pl.LazyFrame({"sex": [MARK]}).cast(pl.Int64),
            "the polars data frame cannot be computed.",
            id="failing lazy frame",
        ),
    ],
)
def test_invalid_frames_are_refused(source, message):
    with refused(message):
        read(source, DOMAIN)


def test_failing_relation_is_refused():
    relation = duckdb.sql(f"SELECT '{MARK}' AS x").project("x::INT AS sex")
    with refused("the DuckDB relation cannot be computed."):
        read(relation, DOMAIN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"unit_column": "id"}, "has no column 'id'", id="unknown unit column"),
        pytest.param(
            {"max_rows": 2},
            "max_rows must be 1 if every row is a unit; got 2. Name the u",
            id="max_rows without a unit column",
        ),
        pytest.param(
            {"unit_column": "sex", "max_rows": 0},
            "max_rows must be a whole number of at least",
            id="max_rows of 0",
        ),
    ],
)
def test_invalid_units_are_refused(options, message):
    with refused(message):
        read(pl.DataFrame({"sex": [MARK]}), DOMAIN, **options)


def test_mapping_is_not_a_domain():
    with refused("domain must be a Domain; got"):
        read(pl.DataFrame({"sex": [MARK]}), {"sex": ["F"]})


def test_number_has_no_schema():
    with refused("the source must be a path"):
        schema(5)


def test_reading_a_file_needs_no_data_frame_library(tmp_path):
    pl.DataFrame({"sex": ["F"]}).write_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("sex\nF\n")
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in {'pandas', 'polars'}: raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import duckdb\n"
        "from leastnoise._trusted.reading import read\n"
        "from leastnoise._trusted.table import open_content\n"
        "from leastnoise._domain import Domain\n"
        "for source in (*sys.argv[1:], duckdb.sql(\"SELECT 'F' AS sex\")): "
        "print(open_content(read(source, Domain(sex=['F']))).rows)\n"
    )
    arguments = [sys.executable, "-c", code, tmp_path / "x.parquet", tmp_path / "x.csv"]

    assert (
        subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.split()
        == ["1"] * 3
    )


# --- one value has one cell, from every source ----------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "zone"), [("s", None), ("ms", "Europe/Berlin"), ("us", None), ("ns", "Europe/Berlin")]
)
def test_instant_has_one_text_in_any_source(tmp_path, monkeypatch, unit, zone):
    array = pa.array([0, 1], pa.int64()).view(pa.timestamp(unit, zone))
    table = pa.table({"when": array})
    pq.write_table(table, tmp_path / "x.parquet")
    # Pandas and Polars store the times in units of their own.
    sources = [
        table,
        tmp_path / "x.parquet",
        table.to_pandas(),
        pl.from_arrow(table),
        CONNECTION.from_arrow(table),
    ]
    sources.append(pd.DataFrame({"when": pd.Series(list(table.to_pandas()["when"]), dtype=object)}))
    after = {"s": ":01", "ms": ":00.001", "us": ":00.000001", "ns": ":00.000000001"}[unit]
    for other_zone in ("America/New_York", "Asia/Kolkata"):
        monkeypatch.setenv("TZ", other_zone)
        for source in sources:
            assert encoded_rows(
                read(source, Domain(when=["1970-01-01", f"1970-01-01 00:00{after}"]))
            ) == [(0,), (1,)], type(source)


# An array, further sources that hold it, and the cells that attributes have.
HELD = {
    "bytes": (
        pa.array([b"1", b"\xff", None, b""], pa.binary()),
        [
            pl.from_arrow,
            CONNECTION.from_arrow,
            lambda table: pd.DataFrame({"a": pd.Series(table["a"].to_pylist(), dtype=object)}),
        ],
        [(Categories(["1"], outside="other"), [0, 1]), (Integers(0, 3, null="other"), [1, 4, 4])],
    ),
    "half floats": (
        pa.array(np.array([0.1, 0.3], dtype=np.float16)),
        [lambda table: table.to_pandas()],
        [(Categories(["0.1", "0.3"]), [0, 1]), (Bins(0, 1, 10), [1, 3])],
    ),
    "long decimals": (
        pa.array([Decimal("0.5"), Decimal("1.0"), None], pa.decimal256(76, 50)),
        [pa.Table.to_pandas, lambda table: table.to_pandas(types_mapper=pd.ArrowDtype)],
        [(Categories(["0.5", "1"]), [0, 1])],
    ),
    "decimals of negative scale": (
        pa.Array.from_buffers(pa.decimal128(5, -2), 1, pa.array([17], pa.decimal128(21)).buffers()),
        [lambda table: table.to_pandas(types_mapper=pd.ArrowDtype)],
        [(Categories(["1700"]), [0])],
    ),
    "identifiers": (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"1" * 16], pa.binary(16))),
        [
            lambda _: CONNECTION.sql("SELECT '31313131-3131-3131-3131-313131313131'::UUID AS a"),
            lambda _: pd.DataFrame({"a": pd.Series([uuid.UUID(bytes=b"1" * 16)], dtype=object)}),
        ],
        [(Categories(["31313131-3131-3131-3131-313131313131"]), [0])],
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_value_is_equal_in_any_container(name, tmp_path):
    array, other_values, answers = HELD[name]
    table = pa.table({"a": array})
    sources = [table, *(make(table) for make in other_values)]
    if name != "decimals of negative scale":
        pq.write_table(table, tmp_path / "x.parquet")
        sources.append(tmp_path / "x.parquet")
    for source, (kind, cells) in itertools.product(sources, answers):
        assert encoded_rows(read(source, Domain(a=kind))) == [(cell,) for cell in cells], type(
            source
        )


class Foreign(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.int64(), "tests.foreign")

    def __arrow_ext_serialize__(self):
        return b""


def test_foreign_nulls_are_null():
    stored = pa.ExtensionArray.from_storage(Foreign(), pa.array([1, None, 2]))
    assert encoded_rows(
        read(pa.table({"a": stored}), Domain(a=Categories(["F"], outside="drop", null="other")))
    ) == [(1,)]
    assert encoded_rows(
        read(pa.table({"a": stored}), Domain(a=Categories(["F"], outside="other")))
    ) == [
        (1,),
        (1,),
    ]


class Name(str):
    __slots__ = ()


@pytest.mark.parametrize("further", [5, True, None, "\ud800"])
def test_row_does_not_affect_other_object_values(further):
    # The type that pandas infers for such a column depends on its first hundred values.
    rows = ["F"] * 100 + [Name("F"), float("nan"), np.str_("F"), b"F", bytearray(b"F")]
    domain = Domain(a=Categories(["F"], outside="other", null="drop"))
    without, with_further_row = (
        encoded_rows(read(pd.DataFrame({"a": pd.Series(values, dtype=object)}), domain))
        for values in (rows, [*rows, further])
    )
    assert with_further_row == sorted([*without, *([] if further is None else [(1,)])])


def test_columns_whose_names_have_dots(tmp_path):
    table = pa.table({"a.b": ["F"], "a": pa.array([{"b": "M"}])})
    pq.write_table(table, tmp_path / "x.parquet")
    for source in (table, tmp_path / "x.parquet"):
        assert encoded_rows(read(source, Domain({"a.b": ["F", "M"]}))) == [(0,)]


def test_duckdb_null_column_is_null():
    relation = duckdb.sql("SELECT NULL AS a")
    assert str(relation.types[0]) == '"NULL"'
    check_source(relation, Domain(a=Categories(["x"])), ["a"], [], None)
