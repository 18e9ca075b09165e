"""Fractions as text for files and for people, and rounding up to short fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastnoise._trusted.accounting import fraction_from_text, fraction_to_text, round_up
from leastnoise._trusted.check import InputError, readable


@given(st.fractions(min_value=0))
def test_text_there_and_back(value):
    assert fraction_from_text("x", fraction_to_text("x", value)) == value


TEXTS = [
    None,
    "",
    "+1",
    "-1",
    "1.0",
    "1e3",
    "01",
    "1/0",
    "1/02",
    "1/",
    "/2",
    "1/2/3",
    "1_0",
    "1\n",
    " 1",
    "²",
    "1" * 3000,
]


@pytest.mark.parametrize("text", TEXTS)
def test_other_text_is_refused(text):
    with pytest.raises(InputError, match="x must be "):
        fraction_from_text("x", text)


def test_negative_and_overlong_fractions_are_refused():
    with pytest.raises(InputError, match="at least 0"):
        fraction_to_text("x", Fraction(-1))
    with pytest.raises(InputError, match="at most 1000 digits"):
        fraction_to_text("x", Fraction(10**1000))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(1), "1"),
        (Fraction(100), "100"),
        (Fraction(1, 10), "0.1"),
        (Fraction(1, 10**9), "1e-9"),
        (Fraction(2, 3), "2/3"),
        (Fraction(10**20), "1e+20"),
        (Fraction(1, 3**30), "about 4.85694e-15"),
        (Fraction(10**5000 + 1, 10**5000), "about 1.00000"),
    ],
)
def test_readable_writes_short_decimals(value, text):
    assert readable(value) == text


@given(st.fractions(min_value=0), st.integers(1, 200))
def test_round_up_is_never_below_and_tight(value, bits):
    up = round_up(value / 3**50, bits)
    assert value / 3**50 <= up <= value / 3**50 * (1 + Fraction(2) ** (1 - bits))


@given(st.integers(1, 2**300), st.integers(2**64, 2**300))
def test_round_up_makes_short_dyadic_numbers(top, bottom):
    value = Fraction(top, bottom)
    up = round_up(value, 60)
    if value.denominator.bit_length() > 64:
        assert up.denominator & (up.denominator - 1) == 0
        assert (up.numerator // (up.numerator & -up.numerator)).bit_length() <= 61
    else:
        assert up == value
