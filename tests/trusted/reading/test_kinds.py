"""Cells of dates, times, texts and numbers, against slow references and over sources."""

import datetime as dt
import json
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leastnoise as ln
from behind_the_wall import Column, amount_encoder
from leastnoise._sources import schema
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.reading import CSV, read
from leastnoise._trusted.table import open_content
from trusted.reading.encoders import cell_encoder, refused

PERIODS = {
    "year": lambda d, h: f"{d.year:04}",
    "quarter": lambda d, h: f"{d.year:04}-Q{(d.month - 1) // 3 + 1}",
    "month": lambda d, h: d.strftime("%Y-%m"),
    "week": lambda d, h: "{}-W{:02}".format(*d.isocalendar()[:2]),
    "day": lambda d, h: d.isoformat(),
    "hour": lambda d, h: f"{d} {h:02}:00",
    "weekday": lambda d, h: d.strftime("%A"),
    "hour_of_day": lambda d, h: h,
}
STAMPS = st.datetimes(dt.datetime(2023, 12, 20), dt.datetime(2024, 4, 10))  # noqa: DTZ001
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia")


@pytest.mark.slow
@given(
    st.sampled_from(sorted(PERIODS)),
    st.sampled_from(ZONES),
    st.sampled_from(["drop", "clip", "other"]),
    st.lists(STAMPS, max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_dates_against_the_calendar(by, zone, outside, stamps):
    kind = ln.Dates("2024-01-01", "2024-03-31", by, zone=zone, outside=outside)
    encode = cell_encoder(kind)

    def expected_cell(stamp):
        day = stamp.date()
        hour = stamp.hour
        if not kind.start <= day <= kind.end:
            if outside != "clip":
                return kind.regular if outside == "other" else -1
            day, hour = (kind.start, 0) if day < kind.start else (kind.end, 23)
        return kind.labels.index(PERIODS[by](day, hour))

    aware = [stamp.replace(tzinfo=dt.UTC) for stamp in stamps]
    clocks = [stamp.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for stamp in aware]
    assert encode(Column(stamps)).tolist() == [expected_cell(stamp) for stamp in stamps]

    cells_of_clocks = [expected_cell(stamp) for stamp in clocks]
    assert encode(Column(aware)).tolist() == cells_of_clocks
    assert encode(Column([stamp.isoformat() for stamp in aware])).tolist() == cells_of_clocks
    for unit in ("s", "ns"):
        array = np.array(stamps, dtype=f"M8[{unit}]")
        assert encode(Column(array, zoned=True)).tolist() == cells_of_clocks
        assert encode(Column(array)).tolist() == [expected_cell(stamp) for stamp in stamps]


def test_clock_changes_and_year_ends_are_read():
    encode = cell_encoder(ln.Dates("2024-03-31", "2024-03-31", "hour", zone="Europe/Berlin"))
    around = [
        f"2024-03-{moment}Z" for moment in ("31T00:59:59", "31T01:00:00", "30T23:30", "31T22:00")
    ]
    assert encode(Column(around)).tolist() == [1, 3, 0, -1]
    assert ln.Dates("2020-12-28", "2021-01-10", "week").labels == ("2020-W53", "2021-W01")
    encode_week = cell_encoder(ln.Dates("2020-12-28", "2021-01-10", "week"))
    assert encode_week(Column(["2021-01-03", "2021-01-04"])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("2024-02-29", 59),
        ("2023-02-29", -1),
        ("2024-2-29", -1),
        ("2024-02-29 24:00", -1),
        (b"2024-02-29T23:59:59.999999999", 59),
        ("2024-01-01T00:30+01:00", -1),
        (dt.date(2024, 1, 1), 0),
        (pd.Timestamp("2024-01-02", tz="Europe/Berlin"), 0),
        (pd.NaT, -2),
        ("NA", -2),
        ("", -2),
        (20240101, -1),
        (np.datetime64("2024-01-01T05"), 0),
        (dt.time(1), -1),
        (b"\xff", -1),
    ],
)
def test_single_dates(value, cell):
    kind = ln.Dates(
        "2024-01-01", "2024-12-31", "day", null="other", reading=ln.Reading(nulls=["NA"])
    )
    assert cell_encoder(kind)(Column([value])).tolist() == [kind.regular if cell == -2 else cell]


@pytest.mark.parametrize(
    "stamp",
    [
        pd.Timestamp.min,
        pd.Timestamp.max,
        pd.Timestamp(-1),
        pd.Timestamp("1960-05-01", tz="Asia/Tokyo"),
    ],
)
def test_time_stamp_has_one_cell_in_any_form(stamp):
    """Include time stamps near the ends of the range."""
    encode = cell_encoder(ln.Dates("1900-01-01", "2024-12-31", "month", outside="clip"))
    values = [stamp, stamp.to_datetime64(), stamp.isoformat()]
    cells = [
        *encode(Column(values)).tolist(),
        *encode(Column(np.array([stamp.to_datetime64()]), zoned=stamp.tz is not None)).tolist(),
    ]
    assert len(set(cells)) == 1


def test_dates_in_other_formats():
    kind = ln.Dates(
        "2024-01-01", "2024-12-31", "month", format="%d.%m.%Y", reading=ln.Reading(trim=True)
    )
    texts = ["31.12.2024", " 1.2.2024 ", "2024-01-01", "32.01.2024", "31.12.24"]
    assert cell_encoder(kind)(Column(texts)).tolist() == [11, 1, -1, -1, -1]

    kind_of_numbers = ln.Dates("2024-01-01", "2024-12-31", "month", format="%Y%m%d")
    numbers = np.array([20240131, 20241301, 20240201.0])
    assert cell_encoder(kind_of_numbers)(Column(numbers)).tolist() == [0, -1, 1]


GERMAN = ln.Reading(decimal=",", thousands=".", currency=["€", "EUR"], nulls=["k. A.", "-9"])
# None: no number, and outside of every kind.
NUMBER_OF_TEXT = {
    "39,82": 39.82,
    "1.234,5": 1234.5,
    "1.23": None,
    "-1.234.567,00 €": -1234567.0,
    "€ 5": 5.0,
    "EUR-7,5": -7.5,
    "--5": None,
    "12.34.567": None,
    ",5": 0.5,
    "5,": 5.0,
    "k. A.": "null",
    "-9": "null",
    "-9,0": "null",
    "": "null",
    "1e2": 100.0,
    "nan": "null",
    ".": None,
}
TEXTS = list(NUMBER_OF_TEXT)


def test_numbers_in_other_formats():
    kind = ln.Edges([-2000000, 0, 10, 50, 2000], null="other", reading=GERMAN)
    edges = [float(edge) for edge in kind.edges]

    def cell_of(number):
        if number == "null":
            return kind.regular
        if number is None:
            return -1
        return int(np.searchsorted(edges, number, side="right")) - 1

    expected_cells = [cell_of(number) for number in NUMBER_OF_TEXT.values()]
    assert cell_encoder(kind)(Column(TEXTS)).tolist() == expected_cells
    assert cell_encoder(kind)(Column([text.encode() for text in TEXTS])).tolist() == expected_cells
    amounts = amount_encoder(ln.Measure("x", -100, 2000, "0.01", reading=GERMAN))(Column(TEXTS))
    assert amounts.tolist()[:6] == [3982, 123450, 0, -10000, 500, -750]


def test_a_null_may_be_a_number():
    kind = ln.Integers(0, 5, null="other", outside="clip", reading=ln.Reading(nulls=["-9"]))
    for data in (
        np.array([-9, 3]),
        np.array([-9.0, 3.0]),
        np.array([-9, 3], dtype=np.float32),
        ["-9", "3"],
    ):
        assert cell_encoder(kind)(Column(data)).tolist() == [6, 3]


def test_decimals_of_halves_are_encoded():
    values = [165.5, "165.5", np.float32(165.5), 165.4, "120", 119.9, 220.5, float("nan"), "x"]
    halves = cell_encoder(ln.Decimals(120, 220, "0.5"))
    assert halves(Column(values)).tolist() == [91, 91, 91, -1, 0, -1, -1, -1, -1]
    clipped = cell_encoder(ln.Decimals(120, 220, "0.5", outside="clip", null="other"))
    assert clipped(Column(values)).tolist() == [91, 91, 91, 91, 0, 0, 200, 201, 201]


def test_decimals_of_tenths_are_exact():
    tenths = cell_encoder(ln.Decimals("-0.3", "0.3", "0.1"))
    values = ["-0.3", "-0.2", "-0.1", "0", "0.1", "0.2", 0.30000000000000004]
    assert tenths(Column(values)).tolist() == [0, 1, 2, 3, 4, 5, -1]


@pytest.mark.parametrize(
    ("rounding", "cells"),
    [("down", [45, 46, -1]), ("up", [46, 46, 0]), ("nearest", [46, 46, 0]), (None, [-1, 46, -1])],
)
def test_heights_are_rounded_to_integers(rounding, cells):
    kind = ln.Integers(120, 220, rounding=rounding)
    assert cell_encoder(kind)(Column(np.array([165.5, 166.0, 119.6]))).tolist() == cells


def test_spellings_case_and_blanks():
    reading = ln.Reading(trim=True, ignore_case=True, nulls=["N/A"])
    kind = ln.Categories(
        [True, False],
        spellings={"true": ["yes", "1", "ja"], "false": ["no", "0"]},
        reading=reading,
        null="other",
    )
    values = [" YES", "Ja", True, 1, 1.0, "1.0", "False ", "0", "n/a", "\u00a0", "maybe"]
    assert cell_encoder(kind)(Column(values)).tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 2, 2, -1]


STAMPS_OF_ROWS = [
    dt.datetime(2024, 1, 31, 23, 30),  # noqa: DTZ001
    dt.datetime(2024, 6, 30, 22, 30),  # noqa: DTZ001
    None,
    dt.datetime(1900, 1, 1),  # noqa: DTZ001
]
HEIGHTS = [165.5, 120.0, None, 3.0]
ROWS = pa.table(
    {
        "when": pa.array(STAMPS_OF_ROWS, pa.timestamp("us", "UTC")),
        "naive": pa.array(STAMPS_OF_ROWS, pa.timestamp("ns")).cast(pa.timestamp("ms")),
        "height": pa.array(HEIGHTS),
    }
)


def parquet_of_rows(folder):
    pq.write_table(ROWS, folder / "x.parquet")
    return folder / "x.parquet"


def csv_of_rows(folder):
    lines = ["when,naive,height"]
    for stamp, height in zip(STAMPS_OF_ROWS, HEIGHTS, strict=True):
        when = "" if stamp is None else f"{stamp.isoformat()}Z"
        naive = "" if stamp is None else str(stamp)
        lines.append(f"{when},{naive},{'' if height is None else height}")
    (folder / "x.csv").write_text("".join(f"{line}\n" for line in lines))
    return folder / "x.csv"


SOURCES_OF_ROWS = {
    "Arrow": lambda _: ROWS,
    "Parquet": parquet_of_rows,
    "CSV": csv_of_rows,
    "pandas": lambda _: ROWS.to_pandas(),
    "Polars": lambda _: pl.from_arrow(ROWS),
    "Polars lazy": lambda _: pl.from_arrow(ROWS).lazy(),
}


@pytest.mark.parametrize("make_source", SOURCES_OF_ROWS.values(), ids=SOURCES_OF_ROWS)
def test_every_source_agrees(make_source, tmp_path):
    year = ("2024-01-01", "2024-12-31")
    policies = {"null": "other", "outside": "other"}
    domain = ln.Domain(
        month=ln.Dates(
            *year, "month", zone="Europe/Berlin", reading=ln.Reading(column="when"), **policies
        ),
        naive=ln.Dates(*year, "quarter", **policies),
        height=ln.Decimals(120, 220, "0.5", **policies),
    )

    codes = open_content(read(make_source(tmp_path), domain)).codes
    assert codes["month"].tolist() == [1, 6, 12, 12]
    assert codes["naive"].tolist() == [0, 1, 4, 4]
    assert codes["height"].tolist() == [91, 0, 201, 201]


def test_latin_1_semicolons_and_no_header(tmp_path):
    file = tmp_path / "x.csv"
    file.write_bytes("München;1.234,5\nKöln;7\nK\x81ln;7\n".encode("latin-1"))
    domain = ln.Domain(
        town=ln.Categories(["München", "Köln"], outside="other"),
        pay=ln.Bins(
            0,
            2000,
            2,
            null="other",
            outside="other",
            reading=ln.Reading(decimal=",", thousands="."),
        ),
    )
    codes = open_content(read(CSV(file, ";", "latin-1", ["town", "pay"]), domain)).codes
    assert codes["town"].tolist() == [0, 1, 2]
    assert codes["pay"].tolist() == [1, 0, 0]
    codes = open_content(read(CSV(file, ";", "cp1252", ["town", "pay"]), domain)).codes
    assert codes["town"].tolist() == [0, 1, 2]

    place = CSV(file, ";", "latin-1", ["town", "pay"]).located()
    assert json.loads(json.dumps(place)) == place
    assert place == {
        "path": str(file),
        "delimiter": ";",
        "encoding": "iso8859-1",
        "header": ["town", "pay"],
    }
    named = schema(CSV(file, ";", "latin-1", ["town", "pay"]))
    assert [field.name for field in named] == ["town", "pay"]
    headed = schema(CSV(file, ";", "latin-1"))
    assert [field.name for field in headed] == ["München", "1.234,5"]
    with pytest.raises(
        InputError, match=r"must be text in UTF-8; its first line is not. Say its encoding"
    ):
        read(file, domain)


@pytest.mark.parametrize(
    "encoding", ["ascii", "latin-1", "cp1252", "cp1253", "cp437", "koi8-r", "tis-620", "mac-roman"]
)
def test_each_byte_has_the_character_of_its_encoding(tmp_path, encoding):
    """No byte warns or makes reading fail."""
    raw = [b"x%b\\d77" % bytes([byte]) for byte in range(256) if byte not in b'\n\r;"']
    (tmp_path / "x.csv").write_bytes(b";1\n".join([*raw, b""]))
    texts = [text.decode(encoding, "replace") for text in raw]
    printable = [text for text in texts if text.isprintable() and "\ufffd" not in text]
    domain = ln.Domain(a=ln.Categories(printable, outside="other"))
    codes = (
        open_content(read(CSV(tmp_path / "x.csv", ";", encoding, ["a", "b"]), domain))
        .codes["a"]
        .tolist()
    )

    assert codes == [
        printable.index(text) if text in printable else len(printable) for text in texts
    ]


def test_the_mark_of_utf_8_is_skipped(tmp_path):
    (tmp_path / "x.csv").write_bytes("\ufefftown\nKöln\n".encode())
    for encoding in ("utf-8", "utf-8-sig"):
        assert open_content(
            read(CSV(tmp_path / "x.csv", encoding=encoding), ln.Domain(town=["Köln"]))
        ).codes["town"].tolist() == [0]


@pytest.mark.parametrize(
    "encoding", ["utf-16", "unicode-escape", "idna", "punycode", "zlib_codec", "undefined"]
)
def test_reader_refuses_multi_byte_encodings(tmp_path, encoding):
    (tmp_path / "x.csv").write_bytes(b"\\d77\n")
    source = CSV(tmp_path / "x.csv", header=["a"])
    object.__setattr__(source, "encoding", encoding)
    with pytest.raises(InternalError, match="an encoding must be one character for each byte"):
        read(source, ln.Domain(a=["1"]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CSV("x", delimiter=";;"), "delimiter must be one ASCII character"),
        (lambda: CSV("x", delimiter='"'), "delimiter must be one ASCII character"),
        (
            lambda: CSV("x", encoding="utf-16"),
            "encoding must be 'utf-8', or an encoding with one character for every byte",
        ),
        (lambda: CSV("x", encoding="cp037"), "encoding must be"),
        (lambda: CSV("x", encoding=7), "encoding must be"),
        *(
            (partial(CSV, "x", encoding=name), "encoding must be")
            for name in (
                "unicode_escape",
                "raw_unicode_escape",
                "iso2022_jp",
                "utf-7",
                "shift_jis",
                "idna",
                "punycode",
                "zlib_codec",
            )
        ),
        (lambda: CSV("x", header=False), "the number of columns is not inferred from a row"),
        (lambda: CSV("x", header="id"), "header must be true or a list of names"),
        (lambda: CSV(7), "the path of CSV files must be a path"),
        (lambda: ln.Reading(decimal=";"), "decimal must be '.' or ','"),
        (lambda: ln.Reading(decimal=",", thousands=","), "decimal and thousands must differ"),
        (lambda: ln.Reading(thousands="x"), "thousands must be empty, or one of"),
        (lambda: ln.Reading(currency=["5"]), "a currency sign must be text without digits"),
        (lambda: ln.Reading(nulls="NA"), "nulls must be a list of texts"),
        (lambda: ln.Reading(nulls={"NA": 1}), "nulls must be a list of texts"),
        (lambda: ln.Reading(trim=1), "trim must be true or false"),
        (lambda: ln.Edges([1]), "edges must be a list of at least two numbers"),
        (lambda: ln.Edges(["1", "1"]), "edges must increase; got 1 before 1"),
        (lambda: ln.Decimals(0, 1, "0.3"), "high must be a whole number of steps of 0.3 above 0"),
        (lambda: ln.Decimals(0, 1, 0), "step must be a number above 0"),
        (
            lambda: ln.Dates("2024-13-01", "2025-01-01"),
            "the first day of dates must be a day such as '2024-01-31'; got '2024-13-01'",
        ),
        *(
            (
                partial(ln.Dates, f"{year}-01-01", "9999-01-01"),
                "must be a day such as '2024-01-31'; got",
            )
            for year in ("0001", "2024")
        ),
        (lambda: ln.Dates("2024-01-02", "2024-01-01"), "must not be after the last"),
        (lambda: ln.Dates("2024-01-01", "2024-01-02", "decade"), "by must be one of 'year'"),
        (
            lambda: ln.Dates("2024-01-01", "2024-01-02", zone="Mars/Phobos"),
            "zone must be an IANA time zone",
        ),
        (
            lambda: ln.Dates("2024-01-01", "2024-01-02", format="%d.%m"),
            "or text with %Y (or %y, with century)",
        ),
        (
            lambda: ln.Dates("2024-01-01", "2024-01-02", format="%Y%Y"),
            "or text with %Y (or %y, with century)",
        ),
        (
            lambda: ln.Categories(["a", "A"], reading=ln.Reading(ignore_case=True)),
            "categories must differ from each other; got 'A' twice",
        ),
        (
            lambda: ln.Categories(["a", "b"], spellings={"a": ["b"]}),
            "a spelling must belong to only one category; got 'b' twice",
        ),
        (
            lambda: ln.Categories(["a"], spellings={"c": ["b"]}),
            "a key of spellings must be one of the categories",
        ),
        (
            lambda: ln.Categories(["a", "b"], levels={"half": {"a": "x"}}),
            "the level 'half' must give every cell a group; 1 have none: 'b'",
        ),
        (
            lambda: ln.Categories(["a"], levels={"prefix": {"a": "x"}}),
            "the name of a level must be none of identity",
        ),
        (
            lambda: ln.Integers(0, 9, rounding="half"),
            "rounding must be one of 'down', 'nearest', 'up'",
        ),
        (
            lambda: ln.Measure("a", 0, 1, reading=ln.Reading(column="b")),
            "The column of a measure is its first argument",
        ),
    ],
)
def test_guards(make, message):
    with refused(message):
        make()


def test_missing_column_lists_twenty_existing():
    for count, end in ((20, "'c19'."), (21, "'c19', ...")):
        names = [f"c{place}" for place in range(count)]
        with refused(f"it has {str(names[:19])[1:-1]}, {end}"):
            read(pa.table({name: [1] for name in names}), ln.Domain(sex=["F"]))
