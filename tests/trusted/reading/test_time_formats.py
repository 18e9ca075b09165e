"""Days and times in other formats: formatted texts, Excel serials, seconds since 1970."""

import datetime as dt
import itertools
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leastnoise as ln
from behind_the_wall import Column
from leastnoise._spec import parse_spec
from leastnoise._trusted.reading import read
from leastnoise._trusted.table import open_content
from trusted.reading.encoders import cell_encoder, refused

OUT = -1
GERMAN = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
]


def cells(values, by="day", first="2019-01-01", last="2019-12-31", **how):
    return cell_encoder(ln.Dates(first, last, by, **how))(Column(values)).tolist()


def test_twelve_hour_clock_matches_python():
    how = {"format": "%m/%d/%Y %I:%M %p", "by": "hour_of_day"}
    for hour, mark in itertools.product(range(14), ("AM", "pm", "P.M.", "a.m.", "xm", "")):
        text = f"01/15/2019 {hour:02}:30 {mark}"
        try:
            spelled = text.replace(".", "")
            expected = (
                dt.datetime.strptime(spelled, "%m/%d/%Y %I:%M %p").replace(tzinfo=dt.UTC).hour
            )
        except ValueError:
            expected = OUT
        assert cells([text], **how) == [expected], text


@pytest.mark.parametrize("century", [1900, 1950, 1969, 2000, 2019])
def test_two_digits_are_a_year_of_the_stated_century(century):
    texts = [f"{year:02}-06-01" for year in range(100)]
    years = cells(
        texts,
        "year",
        f"{century}-01-01",
        f"{century + 99}-12-31",
        format="%y-%m-%d",
        century=century,
    )

    assert [century + cell for cell in years] == [
        next(year for year in range(century, century + 100) if year % 100 == two)
        for two in range(100)
    ]


@pytest.mark.parametrize(
    ("written_as", "names", "months"),
    [
        (
            "%d-%b-%Y",
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
            (),
        ),
        (
            "%d-%B-%Y",
            [
                "January",
                "February",
                "March",
                "April",
                "May",
                "June",
                "July",
                "August",
                "September",
                "October",
                "November",
                "December",
            ],
            (),
        ),
        ("%d-%B-%Y", GERMAN, GERMAN),
        ("%d-%b-%Y", [f"{name[:3]}." for name in GERMAN], [f"{name[:3]}." for name in GERMAN]),
    ],
)
def test_names_of_months_are_read_in_any_case(written_as, names, months):
    how = {"by": "month", "format": written_as, "months": months}
    for change in (str, str.lower, str.upper):
        assert cells([f"5-{change(name)}-2019" for name in names], **how) == [*range(12)]
    wrong = ["5-Foo-2019", f"5-{names[0]}x-2019", "5--2019", f"31-{names[1]}-2019", "5-1-2019"]
    assert cells(wrong, **how) == [OUT] * len(wrong)


@pytest.mark.parametrize(
    ("written_as", "text"),
    [
        (None, "2019-02-03T10:00:00Z"),
        (None, "2019-02-03T10:00"),
        ("%dT%m of %Y, %I:%M %p", "03T02 OF 2019, 10:00 AM"),
        ("%d É %B %Y", "03 É February 2019"),
    ],
)
def test_ignored_case_changes_no_time(written_as, text):
    how = {} if written_as is None else {"format": written_as}
    forms = [text, text.lower(), text.upper()]
    assert cells(forms, reading={"ignore_case": True, "nulls": ["None"]}, **how) == [33] * 3


def test_offsets_and_fractions_are_read():
    how = {"by": "hour_of_day", "format": "%d/%b/%Y:%H:%M:%S.%f %z"}
    texts = [
        "15/Jan/2019:23:30:00.999999 +0100",
        "15/Jan/2019:23:30:00.1 Z",
        "15/Jan/2019:23:30:00",
    ]

    assert cells(texts, **how) == [22, 23, OUT]
    assert cells(texts, zone="Asia/Tokyo", **how) == [7, 8, OUT]
    assert (
        cells(["15/Jan/2019:23:30:00.1 +9999", "15/Jan/2019:23:30:00.1 +2400"], **how) == [OUT] * 2
    )
    assert cells(["2019-01-15T12:00+99:99", "2019-01-15T12:00-02:60"]) == [OUT] * 2


def test_impossible_times_are_outside():
    how = {"by": "month", "format": "%d.%m.%y %H:%M", "century": 2000}
    texts = [
        "30.02.19 10:00",
        "01.13.19 10:00",
        "01.01.19 24:00",
        "00.01.19 10:00",
        "01.01.19 10:60",
    ]
    assert cells([*texts, "01.01.19 10:59"], **how) == [*[OUT] * len(texts), 0]


# --- times that are numbers -----------------------------------------------------------------------

MOMENTS = [
    dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    for text in ("2019-01-01 00:00", "2019-01-15 14:00", "2019-03-31 23:59:59", "2019-12-31 23:00")
]
SERIALS = [
    (moment - dt.datetime(1899, 12, 30, tzinfo=dt.UTC)) / dt.timedelta(days=1) for moment in MOMENTS
]
SECONDS = [int(moment.timestamp()) for moment in MOMENTS]


@pytest.mark.parametrize(
    ("counted_in", "numbers"),
    [
        ("excel", SERIALS),
        ("excel", [round(serial, 9) for serial in SERIALS]),
        ("epoch_s", SECONDS),
        ("epoch_ms", [1000 * time + 999 for time in SECONDS]),
        ("epoch_us", [10**6 * time + 1 for time in SECONDS]),
    ],
)
def test_numbers_count_days_or_seconds_in_every_source(tmp_path, counted_in, numbers):
    """Try texts, integers, doubles and decimals, in files, frames and a relation."""
    domain = ln.Domain(
        when=ln.Dates(
            "2019-01-01", "2019-12-31", "hour", zone="UTC", format=counted_in, null="other"
        )
    )
    hours = [(moment - MOMENTS[0]) // dt.timedelta(hours=1) for moment in MOMENTS]
    null = 365 * 24
    table = pa.table({"when": pa.array([*numbers, None])})
    (tmp_path / "x.csv").write_text(
        "when\n" + "".join(f"{number}\n" for number in numbers) + '""\n'
    )
    pq.write_table(table, tmp_path / "x.parquet")
    objects = pd.DataFrame({"when": [*map(Decimal, map(str, numbers)), None]}, dtype=object)
    sources = [
        *(tmp_path / "x.csv", tmp_path / "x.parquet", table, table.to_pandas(), objects),
        *(pl.from_arrow(table), duckdb.from_arrow(table)),
    ]

    for source in sources:
        assert open_content(read(source, domain)).codes["when"].tolist() == [*hours, null]


@pytest.mark.parametrize("counted_in", ["excel", "epoch_s", "epoch_ms", "epoch_us"])
def test_numbers_beyond_all_days_are_outside(counted_in):
    far = [1e300, -1e300, float("inf"), float("-inf"), 2**63, -(2**63), "x", "1e999", [1], True]
    how = {"format": counted_in, "null": "other", "first": "2019-01-01"}
    assert cells(far, **how) == [OUT] * len(far)
    at_the_ends = [364, 0, 365, 365, 364, 0]  # an infinity is no time, and follows the nulls
    assert cells(far[:6], outside="clip", **how) == at_the_ends
    assert cells(np.array(far[:6], dtype=np.float64), outside="clip", **how) == at_the_ends
    assert cells(np.array([2**64 - 1], dtype=np.uint64), **how) == [OUT]

    nulls = {"reading": ln.Reading(nulls=["-9", "NA"]), **how}
    assert cells([-9, "-9", "NA", "-9.0", None, float("nan")], **nulls) == [365] * 6
    assert cells(np.array([-9.0, np.nan]), **nulls) == [365] * 2


def test_a_decimal_comma_holds_for_serials():
    reading = ln.Reading(decimal=",", thousands=".")
    assert cells(["43.480,5"], format="excel", reading=reading) == [14]


def test_days_count_on_the_clock_and_seconds_in_utc():
    tokyo = {"by": "hour_of_day", "zone": "Asia/Tokyo"}
    assert cells([43480.5], format="excel", **tokyo) == [12]
    assert cells([int(MOMENTS[1].timestamp())], format="epoch_s", **tokyo) == [23]


def test_dates_stay_dates_beside_serials():
    assert cells([dt.date(2019, 1, 15), 43480, "43480"], format="excel") == [14] * 3


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"format": "%d.%m.%y"}, "A format with %y must come with century"),
        ({"format": "%Y", "century": 2000}, "century must be set only if format contains %y"),
        ({"format": "%y", "century": "2000"}, "century must be a whole number"),
        ({"format": "%Y-%m-%d %I:%M"}, "%I and %p together"),
        ({"format": "%Y-%m-%d %H:%M %p"}, "%I and %p together"),
        ({"format": "%Y %H %I %p"}, "or text with %Y"),
        ({"format": "%Y %b %m"}, "or text with %Y"),
        ({"format": "%Y %y", "century": 2000}, "or text with %Y"),
        ({"format": "%Y %Q"}, "or text with %Y"),
        ({"format": "epoch"}, "one of 'excel', 'epoch_s', 'epoch_ms' and 'epoch_us'"),
        ({"format": "%Y %m", "months": GERMAN}, "months must use only %b or %B"),
        ({"format": "%Y %B", "months": GERMAN[:11]}, "months must be the twelve names"),
        (
            {"format": "%Y %B", "months": ["a", "A", *GERMAN[:10]]},
            "months must be the twelve names",
        ),
        ({"format": "excel", "first": "1900-02-28"}, "must be 1900-03-01 or later"),
    ],
)
def test_formats_that_cannot_be_read_are_refused(how, reason):
    with refused(reason):
        cells([], **how)


def test_a_spec_and_a_plan_keep_how_times_are_written(tmp_path):
    months = ", ".join(f'"{name}"' for name in GERMAN)
    spec = parse_spec(
        f"""
        [privacy]
        epsilon = "1"
        [domain.day.dates]
        from = "2019-01-01"
        to = "2019-12-31"
        by = "month"
        format = "%d. %B %y"
        century = 1950
        months = [{months}]
        [domain.at]
        dates = {{ from = "2019-01-01", to = "2019-12-31", by = "day", format = "epoch_ms" }}
        [[workload]]
        marginals = {{ ways = 1 }}
        """,
        tmp_path,
    )
    assert ln.Domain.from_json(spec.domain.to_json()) == spec.domain
    assert spec.domain.kind("day").months == tuple(GERMAN)

    (tmp_path / "x.csv").write_text("day,at\n3. März 19,1547512200000\n")
    codes = open_content(read(tmp_path / "x.csv", spec.domain)).codes
    assert codes["day"].tolist() == [2]
    assert codes["at"].tolist() == [14]
