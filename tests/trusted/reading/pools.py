"""Pools of odd values of every column type that sources have."""

import datetime as dt
import uuid
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

STAMP = dt.datetime.fromisoformat
BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN)
SHORT = (
    b"F", b"M", None, b"", b"\xff\xfe", b"\xc3", b"1", b"1.0", b"\0", b"a,b", b'"', "é".encode(),
    b"x" * 5000, b"1" * 401, b"nan", b"2024-05-01",
)  # fmt: skip
EXTREMES = [
    0,
    1,
    -1,
    3600,
    86_400,
    10**9,
    10**15,
    10**17,
    -(10**17),
    2**62,
    -(2**62),
    2**63 - 1,
    -(2**63 - 1),
    -(2**63),
    None,
]


class Trap:
    """A value that misbehaves in every operation and whose text must never appear."""

    def _fail(self, *_):
        raise RuntimeError("SECRETMARK")

    __eq__ = __lt__ = __bool__ = __float__ = __str__ = __repr__ = __len__ = __iter__ = _fail
    __hash__ = None


def _raw(kind, numbers=EXTREMES):
    """Return numbers as they are stored, whatever the type makes of them."""
    return pa.array(numbers, pa.int64()).view(kind)


def _as_text(kind, storage_type):
    """Return bytes as text, whether or not they are UTF-8."""
    raw = pa.array(SHORT, storage_type)
    return pa.Array.from_buffers(kind, len(raw), raw.buffers())


def _dictionary(values, index):
    indices = pa.array([*range(len(values)), None, 0], index)
    return pa.DictionaryArray.from_arrays(indices, values)


def _decimals(kind, numbers):
    width = kind.bit_width // 8
    raw = b"".join(
        (0 if number is None else number).to_bytes(width, "little", signed=True)
        for number in numbers
    )
    mask = pa.array([number is not None for number in numbers]).buffers()[1]
    return pa.Array.from_buffers(kind, len(numbers), [mask, pa.py_buffer(raw)])


def _arrow():
    numbers = [0, 1, -1, 2, 17, 100, None]
    pools = {
        "null": pa.nulls(5),
        "bool": pa.array([True, False, None]),
        "string, not UTF-8": _as_text(pa.string(), pa.binary()),
        "large_string, not UTF-8": _as_text(pa.large_string(), pa.large_binary()),
        "string_view": pa.array(["F", "M", None, "", "1.0", "x" * 50], pa.string_view()),
        "binary(2)": pa.array([b"17", b"\xff\xff", None, b"\0\0"], pa.binary(2)),
        "dictionary of text": _dictionary(_as_text(pa.string(), pa.binary()), pa.int8()),
        "dictionary of numbers": _dictionary(pa.array([1.0, None, float("nan"), 2.5]), pa.int32()),
        "dictionary of times": _dictionary(_raw(pa.timestamp("us")), pa.int64()),
        "dictionary of plain text": pa.array(["F", "M", None, "1.0"]).dictionary_encode(),
        "float16": pa.array(np.array([0.1, 1, np.nan, np.inf, -0.0, 65504], dtype=np.float16)),
        "float32": pa.array([0.1, 1, None, float("nan"), float("inf"), -0.0, 3e38], pa.float32()),
        "float64": pa.array(
            [0.1, 1.0, 0.5, None, float("nan"), float("-inf"), -0.0, 1e308, 17.0, 2.5e-320],
            pa.float64(),
        ),
        "date32": pa.array([0, 1, 19_844, 2**31 - 1, -(2**31), None], pa.int32()).view(pa.date32()),
        "date64": _raw(pa.date64()),
        "time32": pa.array([0, 2**31 - 1, -5, None], pa.int32()).view(pa.time32("s")),
        "time64": _raw(pa.time64("us")),
        "duration": _raw(pa.duration("ns")),
        "interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
        "decimal32(5, 2)": pa.array(
            [Decimal("1.50"), Decimal(1), None, Decimal("-0.5")], pa.decimal32(5, 2)
        ),
        "decimal64(18, 0)": pa.array([Decimal(1), Decimal(10**17), None], pa.decimal64(18, 0)),
        "decimal128(5, 2)": _decimals(
            pa.decimal128(5, 2), [0, 150, -50, 10**30, -(2**127), 2**127 - 1, 100, None]
        ),
        "decimal128(38, 37)": _decimals(pa.decimal128(38, 37), [10**37, 10**36, 0, 1, None]),
        "decimal128(5, -2)": _decimals(pa.decimal128(5, -2), [0, 1, -1, 17, None]),
        "decimal256(76, 50)": _decimals(
            pa.decimal256(76, 50), [10**50, 10**49, 1, 2**255 - 1, 5 * 10**49, None]
        ),
        **{
            f"decimal{bits}, scale {scale}": _decimals(
                getattr(pa, f"decimal{bits}")(5, scale), [0, 17, -1, None]
            )
            for bits, most in ((32, 9), (64, 18), (128, 38), (256, 76))
            for scale in (most + 1, -most - 3)
        },
        "list": pa.array([[1], [], None, [None]], pa.list_(pa.int8())),
        "struct": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int8())])),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int8())),
        "run ends": pa.RunEndEncodedArray.from_arrays([2, 3, 5], ["F", None, "M"]),
        "uuid": pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([b"1" * 16, b"\xff" * 16, None], pa.binary(16))
        ),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "F", None], pa.string())),
    }
    pools |= {
        str(kind): pa.array(SHORT, kind)
        for kind in (pa.binary(), pa.large_binary(), pa.binary_view())
    }
    for size in (8, 16, 32, 64):
        ends = [2 ** (size - 1) - 1, -(2 ** (size - 1))]
        pools[f"int{size}"] = pa.array([*numbers, *ends], getattr(pa, f"int{size}")())
        pools[f"uint{size}"] = pa.array([0, 1, 17, None, 2**size - 1], getattr(pa, f"uint{size}")())
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "Europe/Berlin", "+05:30"):
            pools[f"timestamp[{unit}, {zone}]"] = _raw(pa.timestamp(unit, zone))
    return pools


ARROW = _arrow()
# What the Parquet writer takes; found out once from the types alone.
NO_PARQUET = {
    "decimal128(5, -2)", "interval", "run ends", "binary_view", "string_view", "duration",
    "dictionary of text", "dictionary of numbers", "dictionary of times",
    *(name for name in ARROW if name.startswith("timestamp[s") or ", scale " in name),
}  # fmt: skip
OBJECTS = [
    1, True, 1.0, "1", "1.0", "F", "M", "", None, b"1", b"\xff", b"F", Decimal(1), Decimal("1.0"),
    Decimal("1." + "0" * 50), Decimal("sNaN"), Decimal("NaN"), Decimal("1e999999"),
    Decimal("-Infinity"), Decimal("0.5"), NIGHT, NIGHT.replace(fold=1),
    dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=9))), STAMP("2024-05-01"),
    dt.date(2024, 5, 1), dt.date(1970, 1, 1), dt.time(1), dt.timedelta(1), np.int8(1),
    np.float16(0.1), np.float32(0.1), np.True_, np.float64("nan"), np.datetime64("2024"),
    np.datetime64("2024-05-01T00"), np.datetime64("NaT", "s"), pd.NaT, pd.NA,
    pd.Timestamp("2024-05-01", tz="Europe/Berlin"), pd.Timestamp(1), pd.Timedelta(1),
    pd.Period("2024-05"), uuid.UUID(int=1), 1j, [1], {}, Trap(), object(), "\ud800", "\0", 10**5000,
    10**39, -(10**40), float("inf"), -0.0, "1" * 500, ..., "2024-05-01", "true",
]  # fmt: skip


def _objects(values):
    column = pd.Series([None] * len(values), dtype=object)
    for row, value in enumerate(values):
        column.iat[row] = value
    return column


def _pandas():
    stamps = pd.Series(["2024-05-01", None, "1970-01-01", "1999-12-31 23:59:59.999999999"]).astype(
        "datetime64[ns]"
    )
    pools = {
        "objects": _objects(OBJECTS),
        "objects, alike": _objects(
            [1, True, 1.0, Decimal("1.0"), Decimal("1." + "0" * 50), "1", b"1", None]
        ),
        "objects, decimals": _objects(
            [Decimal(1), Decimal("1.0"), Decimal("1." + "0" * 50), Decimal("sNaN"), None]
        ),
        "objects, times": _objects([NIGHT, NIGHT.replace(fold=1), STAMP("2024-05-01"), None]),
        "objects, text": _objects(["F", "1", "1.0", None, "", "\ud800"]),
        "category": pd.Series(["F", "M", None], dtype="category"),
        "category, mixed": pd.Series(["F", 1, 1.5, None], dtype="category"),
        "datetime64": stamps,
        "datetime64, zone": stamps.dt.tz_localize("Europe/Berlin"),
        "timedelta": pd.Series([pd.Timedelta(1), None]),
        "period": pd.Series(pd.period_range("2024-05", periods=3)),
        "interval": pd.Series(pd.interval_range(0, 3)),
        "complex": pd.Series([1j, 1, 2]),
        "sparse": pd.Series([1, 0, 2], dtype=pd.SparseDtype(int)),
        "str": pd.Series(["F", "M", None, "", "1.0"]),
        "string[python]": pd.Series(["F", "M", None, "", "\ud800"], dtype=pd.StringDtype("python")),
        "boolean": pd.Series([True, False, None], dtype="boolean"),
        "Int64": pd.Series([1, None, 2**62], dtype="Int64"),
        "Float64": pd.Series([0.1, None, 1], dtype="Float64"),
    }
    for name in ("int8", "uint64", "float16", "float32", "float64", "bool"):
        pools[name] = pd.Series(np.array([0, 1, 0, 17], dtype=name))
    held = (
        "decimal128(5, 2)",
        "decimal256(76, 50)",
        "decimal128(5, -2)",
        "timestamp[us, Europe/Berlin]",
        "time64",
        "list",
    )
    for name in ("string, not UTF-8", *held, "dictionary of text"):
        pools[f"arrow {name}"] = pd.Series(
            pd.arrays.ArrowExtensionArray(pa.chunked_array([ARROW[name]]))
        )
    return pools


PANDAS = _pandas()


def _polars():
    naive = [STAMP("2024-05-01"), STAMP("1970-01-01"), None, STAMP("9999-12-31T23:59:59.999999")]
    pools = {
        "Null": pl.Series([None, None]),
        "Boolean": pl.Series([True, False, None]),
        "String": pl.Series(["F", "M", None, "", "1.0", "é"]),
        "Categorical": pl.Series(["F", "M", None, ""], dtype=pl.Categorical),
        "Enum": pl.Series(["F", None, "M"], dtype=pl.Enum(["F", "M"])),
        "Binary": pl.Series([b"F", b"\xff", None, b""]),
        "Decimal": pl.Series(
            [Decimal("1.50"), None, Decimal(1), Decimal("1e20")], dtype=pl.Decimal(38, 10)
        ),
        "Date": pl.Series([0, 10**7, -(10**7), None, 2**31 - 1], dtype=pl.Int32).cast(pl.Date),
        "Time": pl.Series([dt.time(1), None]),
        "Duration": pl.Series([dt.timedelta(1), None]),
        "List": pl.Series([[1], [], None]),
        "Array": pl.Series([[1], None], dtype=pl.Array(pl.Int8, 1)),
        "Struct": pl.Series([{"x": 1}, {"x": None}]),
        "Object": pl.Series([object(), None, 1, "F", Decimal(1)], dtype=pl.Object),
        "Int128": pl.Series([1, None, 2**100, -(2**127)], dtype=pl.Int128),
    }
    for name in (
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "Float32",
        "Float64",
    ):
        pools[name] = pl.Series([0, 1, 17, None, 100], dtype=getattr(pl, name))
    for unit in ("ms", "us", "ns"):
        far = pl.Series([0, 1, 2**62, -(2**62), 2**63 - 1, None], dtype=pl.Int64)
        pools[f"Datetime({unit})"] = far.cast(pl.Datetime(unit))
        pools[f"Datetime({unit}, zone)"] = pl.Series(
            naive[:3], dtype=pl.Datetime(unit)
        ).dt.replace_time_zone("Europe/Berlin")
    return pools


POLARS = _polars()

# Type and literals.
DUCKDB = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("1", "-128"),
    "UBIGINT": ("1", "18446744073709551615"),
    "HUGEINT": ("1", "-170141183460469231731687303715884105728"),
    "UHUGEINT": ("1", "340282366920938463463374607431768211455"),
    "FLOAT": ("0.1", "'nan'", "'inf'"),
    "DOUBLE": ("0.1", "'nan'", "'-inf'", "17"),
    "DECIMAL(4,2)": ("1.50", "1"),
    "DECIMAL(38,37)": ("1", "0.1"),
    "VARCHAR": ("'F'", "''", "'1.0'", "'é'", "chr(0)"),
    "ENUM('F','M')": ("'F'", "'M'"),
    "BLOB": ("'F'", r"'\xFF'", "'1'"),
    "BIT": ("'101'",),
    "UUID": ("'31313131-3131-3131-3131-313131313131'",),
    "JSON": ("'1'", "'[1]'"),
    "DATE": ("'2024-05-01'", "'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'290000-01-01'"),
    "TIME": ("'01:00:00'",),
    "TIMETZ": ("'01:00:00+01'",),
    "INTERVAL": ("'1 day'",),
    "TIMESTAMP": ("'2024-05-01'", "'infinity'", "'-infinity'", "'1970-01-01 00:00:00.001'"),
    "TIMESTAMP_S": ("'2024-05-01'", "'1970-01-01'"),
    "TIMESTAMP_MS": ("'2024-05-01'", "'1970-01-01'"),
    "TIMESTAMP_NS": ("'2024-05-01'", "'1970-01-01 00:00:00.000000001'"),
    "TIMESTAMPTZ": ("'2024-05-01 00:00:00+00'", "'infinity'", "'1970-01-01 05:30:00+05:30'"),
    "INTEGER[]": ("[1]", "[]"),
    "INTEGER[1]": ("[1]",),
    "STRUCT(x INTEGER)": ("{'x': 1}",),
    "MAP(INTEGER, INTEGER)": ("MAP {1: 2}",),
    "UNION(k INTEGER)": ("union_value(k := 1)",),
}

FIELDS = [
    b"F", b"M", b"", b"1", b"1.0", b"17", b"-0.0", b"1e3", b"nan", b"inf", b"x", b" F", b"\xff",
    b"\xc3", b"\0", b"\x1f", b"\r", b"F\r", b"\rF", b'"F"', b'"a,b"', b'"a;b"', b'"a ""b"""', b'""',
    b'"1"', b'F"', b"\xef\xbb\xbfF", b"2024-05-01", b"true", b"x" * 70, b"'F'", b"\\", b"\x0b",
    b"\x0c", b"\x85", "é".encode(), "\u2028".encode(), b"1" * 400,
]  # fmt: skip
JUNK = [
    b"", b"\r", b"\r\r", b",", b",,,,,,,,", b'"', b'"""', b'"F,1', b'1,"F', b'"F"x,1,1,1',
    b"F" * 200, b"\0" * 50, b"\xff" * 20, b'",",",', b"\x1f" * 4, b'"\r', b"a\rb\rc", b",\r,",
    b'"F\r', b"\x1a", b"\xef\xbb\xbf", b"\xff\xfeF\0", b";;;", b"\t\t\t", b"id,mark,a,b",
]  # fmt: skip
