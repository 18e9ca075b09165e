"""Kinds and measures that engines and reading must encode in the same way."""

import leastnoise as ln
from leastnoise._domain import (
    CompleteCount,
    DeviationProduct,
    SquaredDeviation,
    ValueCount,
    Weighted,
)

KINDS = [
    ln.Integers(0, 17),
    ln.Integers(-(2**31), 9 - 2**31, outside="clip"),
    ln.Integers(-1, 3, null="cell", outside="clip"),
    ln.Integers(0, 3, outside="other"),
    ln.Coded(18, null="other", outside="cell"),
    ln.Bins(0, 1, 4),
    ln.Bins("0.1", "0.5", 4, closed="right", outside="clip"),
    ln.Bins(-1, 3, 7, null="cell", outside="cell"),
    ln.Categories(["F", "M", "17", "0", "é", "O'Brien", "%.0%", "true"], outside="other"),
    ln.Categories(
        ["false", "17.00", "-1", "x", "{F}", "$1", ":a", 'say "x"', "-0", "F "], null="other"
    ),
]
KINDS += [
    ln.Edges(["-0.5", "0.1", "0.3", 17], closed="right", null="other"),
    ln.Edges([0, 1, 18], outside="clip"),
    ln.Decimals("-0.5", "2.5", "0.25", outside="other"),
    ln.Decimals(0, 1, "0.1", outside="clip"),
    ln.Categories(["F", "M"], spellings={"F": ["f", " F"], "M": ["x", "17.0"]}, outside="other"),
    ln.Categories(
        ["FALSE", "ß", "f"], reading=ln.Reading(ignore_case=True, trim=True), outside="other"
    ),
    ln.Integers(0, 3, reading=ln.Reading(nulls=["17", "-1"]), null="other", outside="other"),
    ln.Integers(0, 3, rounding="down", null="other"),
    ln.Bins(0, 20, 5000, outside="clip"),
    ln.Integers(0, 17, rounding="up", outside="clip", reading=ln.Reading(nulls=["0.1", "x", "-1"])),
    ln.Integers(-1, 3, rounding="nearest", outside="other"),
    ln.Categories(
        ["f", "é", "17", "m"],
        reading=ln.Reading(ignore_case=True, trim=True, nulls=["X", "true", "0"]),
        null="other",
        outside="other",
    ),
    ln.Categories(["M", "1"], spellings={"M": ["  "]}, reading=ln.Reading(trim=True)),
    ln.Categories([str(2**63 - 1), str(-(2**63)), str(2**63), str(-(2**63) - 1)], outside="other"),
    ln.Bins(-1, 3, 7, reading=ln.Reading(nulls=["1.5", "16"]), null="other"),
    ln.Decimals(
        "-0.5", "2.5", "0.25", reading=ln.Reading(nulls=["0.5"]), null="other", outside="clip"
    ),
]
BERLIN = "Europe/Berlin"
HOWE = "Australia/Lord_Howe"
JOHNS = "America/St_Johns"
TIMES = [
    ln.Dates("2023-12-31", "2025-01-05", by, zone=zone, null=null, outside=outside)
    for by, zone, null, outside in [
        ("year", "UTC", "drop", "drop"), ("quarter", BERLIN, "other", "clip"),
        ("month", JOHNS, "other", "other"), ("week", BERLIN, "cell", "clip"),
        ("day", HOWE, "cell", "other"), ("weekday", BERLIN, "other", "clip"),
        ("hour_of_day", JOHNS, "drop", "clip"), ("hour_of_day", HOWE, "other", "drop"),
    ]
]  # fmt: skip
TIMES += [
    ln.Dates("2024-03-31", "2024-04-30", "hour", zone=zone, outside="clip")
    for zone in ("UTC", BERLIN)
]
# The clocks of Berlin change on the last day.
TIMES += [ln.Dates("2024-10-25", "2024-10-27", "hour_of_day", zone=BERLIN)]
TIMES += [
    ln.Dates("0002-01-01", "9998-12-31", "weekday", zone="UTC", outside="clip"),
    ln.Dates("1800-01-01", "2100-12-31", "year", zone=BERLIN),
]
COUNTED = [
    ln.Dates(
        "1969-12-31", "1970-01-02", "hour", zone=zone, format=counted_in, null=null, outside=outside
    )
    for zone, counted_in, null, outside in [
        ("UTC", "epoch_s", "other", "other"),
        (BERLIN, "epoch_ms", "other", "clip"),
        ("UTC", "epoch_us", "drop", "clip"),
        (JOHNS, "epoch_s", "other", "drop"),
    ]
]
COUNTED += [
    ln.Dates("1900-03-01", "1900-12-31", "day", zone="UTC", format="excel", outside=outside)
    for outside in ("clip", "other")
]
COUNTED += [
    ln.Dates(
        "1970-01-01",
        "1970-01-01",
        "hour",
        zone="UTC",
        format="epoch_s",
        reading=ln.Reading(nulls=["0", "16"]),
        null="other",
    )
]
KINDS += [*TIMES, ln.Dates("2024-01-01", "2024-12-31", "hour", zone="UTC"), *COUNTED]
MEASURES = [
    ln.Measure("x", 0, 10),
    ln.Measure("x", -5, 20, unit="0.01"),
    ln.Measure("n", -7, 2**30 - 1),
    ln.Measure("n", 1, 2, unit="0.5"),
    ln.Measure("b", 0, 1),
    ln.Measure("n", -7, 20, reading=ln.Reading(nulls=["16", "-1"])),
    ln.Measure("x", -7, 20, unit="0.5", reading=ln.Reading(nulls=["0.5"])),
]
MEASURES += [ln.Measure("x", -1000, 3000, unit="1000"), ln.Measure("x", "0.3", "0.9", unit="0.3")]
MEASURES += [ValueCount(measure) for measure in MEASURES]
# Values times weights, of a server's small integers and doubles.
WEIGHTED = [
    Weighted(ln.Measure("n", -7, 2**20), ln.Measure("n", 0, 2**10 - 1)),
    Weighted(ln.Measure("x", -5, 20, unit="0.01"), ln.Measure("n", 0, 17)),
    Weighted(ValueCount(ln.Measure("x", 0, 1)), ln.Measure("x", 0, 10, unit="0.5")),
]

SQUARES = [
    SquaredDeviation(ln.Measure("n", -7, 2**15)),
    SquaredDeviation(ln.Measure("x", -5, 20, unit="0.01")),
]

COMPLETE = [ln.Measure("n", -7, 2**10), ln.Measure("x", -5, 20, unit="0.01"), ln.Measure("b", 0, 1)]
PRODUCTS = [
    CompleteCount(COMPLETE),
    DeviationProduct(COMPLETE[:1], COMPLETE[:2]),
    DeviationProduct(COMPLETE[:2], COMPLETE),
    DeviationProduct([COMPLETE[1]] * 2, COMPLETE[1:]),
]
