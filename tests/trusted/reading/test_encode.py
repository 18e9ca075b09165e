"""Encoding, against a slow reference written from the rule of `leastnoise._domain`."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from behind_the_wall import Column, amount_encoder, is_null, to_column, value_as_text
from leastnoise._domain import (
    Bins,
    Categories,
    Coded,
    Integers,
    Measure,
    Reading,
    ValueCount,
    inner_edges,
    multiples,
)
from trusted.reading.encoders import cell_encoder

NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**60), 2**60),
    st.integers(-12, 12),
    st.decimals(-2, 2, places=1).map(float),
    st.integers(-40, 40).map(lambda number: number / 30),
    st.booleans(),
    st.none(),
)


def reference(kind, value):
    """Return the cell of a number or null, or None if the row is dropped."""

    has_other = "other" in (kind.null, kind.outside)
    own_cells = kind.regular + has_other

    def policy(word, own_cell):
        return {"other": kind.regular, "cell": own_cell}.get(word)

    def outside():
        return policy(kind.outside, own_cells + (kind.null == "cell"))

    if value is None or math.isnan(value):
        return policy(kind.null, own_cells)
    double = float(value)
    low, high = (kind.low, kind.high) if not isinstance(kind, Coded) else (0, kind.codes - 1)
    if not float(low) <= double <= float(high):
        if kind.outside != "clip":
            return outside()
        double = float(low if double < low else high)
    if isinstance(kind, Bins):
        edges = [float(edge) for edge in kind.edges[1:-1]]
        return sum(double >= edge if kind.closed == "left" else double > edge for edge in edges)
    if not double.is_integer():
        if kind.outside != "clip":
            return outside()
        double = float(round(double))
    return int(double) - low


NULL = st.sampled_from(["drop", "other", "cell"])
OUTSIDE = st.sampled_from(["drop", "clip", "other", "cell"])
KINDS = st.one_of(
    st.builds(
        lambda low, width, **how: Integers(low, low + width, **how),
        st.integers(-9, 9),
        st.integers(1, 9),
        null=NULL,
        outside=OUTSIDE,
    ),
    st.builds(Coded, st.integers(1, 9), null=NULL, outside=NULL),
    st.builds(
        lambda low, width, count, **how: Bins(low, low + width, count, **how),
        st.one_of(
            st.fractions(-2, 2, max_denominator=30), st.decimals(-2, 2, places=1).map(Fraction)
        ),
        st.one_of(
            st.fractions("1/30", 3, max_denominator=30),
            st.decimals("0.1", 3, places=1).map(Fraction),
        ),
        st.integers(1, 12),
        closed=st.sampled_from(["left", "right"]),
        null=NULL,
        outside=OUTSIDE,
    ),
)


@given(KINDS, st.lists(NUMBERS, max_size=12))
@settings(max_examples=150, deadline=None)
def test_numbers_against_the_reference(kind, values):
    encode = cell_encoder(kind)
    expected = [-1 if (cell := reference(kind, value)) is None else cell for value in values]
    assert encode(Column(values)).tolist() == expected
    assert (
        encode(Column([None if value is None else str(float(value)) for value in values])).tolist()
        == expected
    )

    null = np.array([value is None for value in values], dtype=bool)
    floats = np.array([0.0 if value is None else value for value in values], dtype=np.float64)
    assert encode(Column(floats, null)).tolist() == expected
    # The second call reads remembered values.
    assert encode(Column(values[::-1])).tolist() == expected[::-1]


@given(
    st.fractions(-5, 5, max_denominator=10**20),
    st.fractions("1/997", 9, max_denominator=10**3),
    st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_edges_are_the_nearest_doubles(low, width, count):
    kind = Bins(low, low + width, count)
    assert inner_edges(kind).tolist() == [float(edge) for edge in kind.edges[1:-1]]


def test_multiples_beyond_doubles_round_once():
    """Numerators exceed 2^53, so converting them to doubles first would round twice."""
    for low, step in (("0.12345678901234567", "0.1"), ("123456789.0123456789", "0.0000000001")):
        exact = [float(Fraction(low) + place * Fraction(step)) for place in range(100)]
        assert multiples(Fraction(low), Fraction(step), 100).tolist() == exact


TEXTS = [
    "F",
    "f",
    "F ",
    "17",
    "17.0",
    "17.00",
    "017",
    "+17",
    "17.",
    "-0.0",
    "0",
    "inf",
    "true",
    "True",
    "é",
    "e\u0301",
    "1.50",
    "1.5",
]


LONGEST = "17." + "0" * 397  # text of 400 letters at most is looked at for zeros


def _whole_text(value):
    """Return an integer without a decimal point and zeros, other text unchanged."""
    if value in {"17.0", "17.00", "-0.0", LONGEST}:
        return value.split(".", maxsplit=1)[0].replace("-0", "0")
    return value


@example(["17"], [LONGEST, LONGEST + "0"])
@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6, unique_by=_whole_text),
    st.lists(st.one_of(st.sampled_from(TEXTS), st.just("")), max_size=12),
)
@settings(max_examples=100, deadline=None)
def test_text_against_the_reference(categories, values):
    kind = Categories(categories, null="other")
    whole_texts = [_whole_text(category) for category in categories]
    expected = []
    for value in values:
        whole_text = _whole_text(value)
        if value == "":
            expected.append(len(categories))
        else:
            expected.append(whole_texts.index(whole_text) if whole_text in whole_texts else -1)

    assert cell_encoder(kind)(Column(values)).tolist() == expected


@given(st.lists(NUMBERS, max_size=12), st.sampled_from(["1", "0.5", "1000", "1/3"]))
@settings(max_examples=100, deadline=None)
def test_amounts_against_the_reference(values, unit):
    step = Fraction(unit)
    measure = Measure("m", -6 * step, 10 * step, unit)
    expected = []
    for value in values:
        if value is None or not math.isfinite(float(value)):
            expected.append(0)  # infinity is no number (E5)
        else:
            expected.append(min(max(float(value) / float(step), -6.0), 10.0))
    encode = amount_encoder(measure)
    amounts = encode(Column(values))

    assert amounts.dtype == np.int64
    # The result is the nearest multiple, up to the rounding of the quotient itself.
    assert all(
        abs(amount - exact_amount) <= 0.5 + 1e-9
        for amount, exact_amount in zip(amounts.tolist(), expected, strict=True)
    )
    assert (
        encode(Column([None if value is None else repr(float(value)) for value in values])).tolist()
        == amounts.tolist()
    )
    assert ((amounts >= -6) & (amounts <= 10)).all()


def test_non_value_adds_nothing():
    """An infinity is not a number; a number beyond all doubles is outside the bounds."""
    measure = Measure("m", 5, 10, reading=Reading(nulls=["8"]))
    column = Column([None, "x", float("nan"), "", 8, 7.4, 7.5, 8.5, "inf", -math.inf, "1e999", 0])

    assert amount_encoder(measure)(column).tolist() == [0, 0, 0, 0, 0, 7, 8, 8, 0, 0, 10, 5]
    assert amount_encoder(ValueCount(measure))(column).tolist() == [
        0,
        0,
        0,
        0,
        0,
        1,
        1,
        1,
        0,
        0,
        1,
        1,
    ]


# Equal to Python in part, and different to the rule.
ALIKE = [
    1,
    True,
    1.0,
    "1",
    "1.0",
    np.int64(1),
    np.float64(1),
    np.True_,
    b"1",
    0,
    False,
    0.0,
    -0.0,
    "0",
    None,
    "",
    "True",
    "true",
    2,
    2.0,
]
NIGHT = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
PAIRS = [
    Decimal(1),
    Decimal("1.0"),
    Decimal("1." + "0" * 50),
    Decimal("10e-1"),
    NIGHT,
    NIGHT.replace(fold=1),
]
LISTS = st.sampled_from(
    [
        ALIKE,
        PAIRS,
        PAIRS[:4],
        PAIRS[4:],
        [1, True, 1.0],
        [0, False, 0.0, -0.0, None],
        [1, np.int64(1), np.True_],
        ["1", b"1", 1.0],
    ]
).flatmap(lambda values: st.lists(st.sampled_from(values), min_size=1, max_size=10))
ENCODERS = {
    "categories": lambda: cell_encoder(
        Categories(["1", "True", "0", "False", "2", "2024-10-27 00:30:00"], outside="other")
    ),
    "integers": lambda: cell_encoder(Integers(0, 1, outside="other")),
    "bins": lambda: cell_encoder(Bins(0, 2, 4, outside="other")),
    "amounts": lambda: amount_encoder(Measure("m", 0, 5)),
}


@pytest.mark.parametrize("name", ENCODERS)
@given(st.lists(LISTS, min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_row_is_encoded_independently(name, chunks):
    """In mixed types and several chunks, no cell depends on another row."""
    encode = ENCODERS[name]()
    for chunk in chunks:
        assert encode(Column(chunk)).tolist() == [
            int(ENCODERS[name]()(Column([value]))[0]) for value in chunk
        ]


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_decimals_have_the_text_of_their_value(value, zeros):
    longer = Decimal(
        (
            value.as_tuple().sign,
            (*value.as_tuple().digits, *[0] * zeros),
            value.as_tuple().exponent - zeros,
        )
    )
    assert longer == value
    form = value_as_text(value)
    assert value_as_text(longer) == form
    if form is not None:
        assert Decimal(form) == value
        assert "e" not in form.lower()
        assert not form.endswith(".")
        assert not (form.startswith("0") and form[1:2].isdigit())


def test_library_nulls_are_null():
    nothing = [
        None,
        pd.NA,
        pd.NaT,
        math.nan,
        np.float32("nan"),
        np.datetime64("NaT", "s"),
        Decimal("NaN"),
    ]
    assert all(is_null(value) for value in nothing)
    kind = Categories(["a"], null="other", outside="drop")
    assert cell_encoder(kind)(Column(nothing)).tolist() == [1] * len(nothing)


FORMS = {
    "doubles, but for whole ones, as Python writes them": [
        (0.1, "0.1"),
        (17.0, "17"),
        (-1e39, str(int(-1e39))),
        (math.inf, "inf"),
    ],
    "whole doubles of 41 digits": [(1e40, "1e+40"), (-1e40, "-1e+40")],
    "narrow floats": [(np.float32(0.1), "0.1"), (np.float16(0.5), "0.5")],
    "whole numbers of at most 40 digits": [
        (sign * (10**40 - 1), str(sign * (10**40 - 1))) for sign in (1, -1)
    ],
    "longer ones": [(sign * 10**digits, None) for sign in (1, -1) for digits in (40, 5000)],
    "decimals of at most 40 digits on either side": [
        (Decimal(10**40 - 1), "9" * 40),
        (Decimal(1 - 10**40), "-" + "9" * 40),
        (Decimal(1).scaleb(39), "1" + "0" * 39),
        (Decimal(-1).scaleb(-40), "-0." + "0" * 39 + "1"),
    ],
    "decimals of more": [
        (sign * far, None)
        for sign in (1, -1)
        for far in (Decimal(10**40), Decimal(10**41 - 1), Decimal(1).scaleb(-41))
    ],
    "equal decimals": [(number, "1") for number in PAIRS[:4]],
    "instants": [(NIGHT, "2024-10-27 00:30:00"), (NIGHT.replace(fold=1), "2024-10-27 01:30:00")],
    "time stamps of pandas": [
        (pd.Timestamp("2024-05-01 12:00:00.123456789"), "2024-05-01 12:00:00.123456789"),
        (
            pd.Timestamp("2024-05-01 12:00:00.123456789", tz="Europe/Berlin"),
            "2024-05-01 10:00:00.123456789",
        ),
        (pd.Timestamp("2024-05-01 12:00:00.123456"), "2024-05-01 12:00:00.123456"),
    ],
    "times of coarse units, by their first day or second": [
        (np.datetime64("2024-05-01T13:07:05").astype(f"M8[{unit}]"), stamp)
        for unit, stamp in zip(
            "YMWDhms",
            [
                "2024-01-01",
                "2024-05-01",
                "2024-04-25",
                "2024-05-01",
                *(f"2024-05-01 13:{end}" for end in ("00:00", "07:00", "07:05")),
            ],
            strict=True,
        )
    ],
}


@pytest.mark.parametrize("name", FORMS)
def test_values_have_one_text_each(name):
    assert [value_as_text(value) for value, _ in FORMS[name]] == [form for _, form in FORMS[name]]


@pytest.mark.parametrize("outside", ["drop", "clip", "other"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-1, 125),
        (-1, 126),
        (-1, 127),
        (0, 2**15 - 1),
        (-(2**31), 40_000 - 2**31),
        (2**53 - 301, 2**53 - 1),
    ],
)
def test_stored_integers_encode_as_their_texts(low, high, outside):
    kind = Integers(low, high, null="other", outside=outside)
    encode = cell_encoder(kind)
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64):
        ends = np.iinfo(dtype)
        around = {low - 1, low, low + 1, high - 1, high, high + 1, high + 256, low + 65_536}
        candidates = {ends.min, ends.min + 1, -1, 0, 1, *around, ends.max - 1, ends.max}
        numbers = [number for number in sorted(candidates) if ends.min <= number <= ends.max]
        null = np.arange(len(numbers)) % 3 == 2
        codes = encode(Column(np.array(numbers, dtype=dtype), null))
        texts = [
            None if missing else str(number) for number, missing in zip(numbers, null, strict=True)
        ]
        assert codes.tolist() == encode(Column(texts)).tolist()


PLAIN = [
    "17",
    "017",
    "-5",
    "0.5",
    "-0.0",
    "1.",
    ".5",
    "1.2.3",
    "1-2",
    "--1",
    "-",
    ".",
    "",
    "9" * 20,
]
PLAIN += ["9" * 21, "0.1234567890123456789", "123456789.123456789", "1e3", "+1", "1,5", " 7", "NA"]


@pytest.mark.parametrize(
    "reading",
    [
        Reading(),
        Reading(nulls=["NA", "-9"]),
        Reading(nulls=["n/a"], trim=True, ignore_case=True),
        Reading(decimal=",", thousands="."),
    ],
    ids=str,
)
def test_many_texts_encode_like_single_ones(reading):
    """Plain decimals are parsed together where there are many texts."""
    generator = np.random.default_rng(7)
    digits = [f"{number:.2f}" for number in generator.normal(0, 100, 300)]
    texts = [text.encode() for text in [*PLAIN, "-9", "-9.0", "\u0665", *digits]] + [
        b"\xff",
        b"7\0",
    ]
    column = to_column(pa.array(texts, pa.binary()))
    for encode in (
        amount_encoder(Measure("pay", -200, 200, unit="0.01", reading=reading)),
        cell_encoder(Integers(-9, 99, outside="clip", null="other", reading=reading)),
    ):
        single = [encode(Column([value])).item() for value in texts]
        assert encode(column).tolist() == single
