"""Checks of arguments: what they accept, and the message when they refuse."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastnoise._plan import read_json
from leastnoise._trusted.check import (
    BudgetError,
    InputError,
    InternalError,
    LeastNoiseError,
    LedgerError,
    did_you_mean,
    exact,
    exact_positive,
    one_of,
    refuse,
    whole,
)


def test_middle_of_a_very_long_message_is_left_out():
    longest = "a" * 2000 + "b" * 2000
    assert str(InputError(longest)) == longest
    assert (
        str(InputError(f"{longest[:2000]}c{longest[2000:]}")) == "a" * 2000 + " [...] " + "b" * 2000
    )


@pytest.mark.parametrize(
    "value",
    [
        "",
        "one",
        "1/0",
        "nan",
        "inf",
        math.nan,
        math.inf,
        -math.inf,
        True,
        None,
        [1],
        1j,
        b"1",
        Decimal("nan"),
    ],
)
def test_exact_refuses_non_finite_numbers(value):
    allowed = r"^epsilon must be a finite number, a decimal or a fraction such as .*; got "
    with pytest.raises(InputError, match=allowed + re.escape(repr(value))):
        exact("epsilon", value)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, Fraction(3)),
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e-9", Fraction(1, 10**9)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (Decimal("2.50"), Fraction(5, 2)),
        (Fraction(2, 3), Fraction(2, 3)),
        (-0.0, Fraction(0)),
    ],
)
def test_exact_reads_the_written_number(value, number):
    assert exact("epsilon", value) == number


def test_invalid_fraction_is_refused():
    broken = Fraction(1, 2)
    broken._denominator = 0  # as whoever means ill could make one
    with pytest.raises(InputError, match=r"^epsilon must be a finite number"):
        exact("epsilon", broken)


@given(st.fractions())
def test_exact_is_the_inverse_of_printing(number):
    assert exact("epsilon", str(number)) == number


@pytest.mark.parametrize(
    ("check", "values", "message"),
    [
        (
            lambda value: exact_positive("rho", value),
            [0, "0", -1, "-1/3", 0.0],
            "rho must be a number above 0; got ",
        ),
        (
            lambda value: whole("n", value, 2, 3),
            [1, 4, 2.0, "2", True, None, math.nan],
            "n must be a whole number from 2 to 3; got ",
        ),
        (
            lambda value: whole("n", value, 0),
            [-1],
            "n must be a whole number of at least 0; got -1.",
        ),
        (
            lambda value: one_of("n", value, ["a", "b"]),
            ["A", "", None, 1],
            "n must be one of 'a', 'b'; got ",
        ),
        (
            lambda value: refuse("delta", value, "below 1", "Choose '1e-9'."),
            [2],
            "delta must be below 1; got 2. Choose '1e-9'.",
        ),
    ],
)
def test_refusal_states_allowed_values(check, values, message):
    for value in values:
        with pytest.raises(InputError, match="^" + re.escape(message)):
            # `refuse` returns its error, which is raised here; the other checks raise theirs.
            raise check(value)
    assert whole("n", np.int64(7), 0) == 7


def test_every_error_can_be_caught_as_one():
    assert [
        issubclass(kind, LeastNoiseError)
        for kind in (BudgetError, InputError, InternalError, LedgerError)
    ] == [True] * 4
    assert issubclass(InputError, ValueError)


LONG_VALUES = {
    "text": "a" * 10**6,
    "number": 10**5000,
    "list of a number": [10**5000],
    "nested lists": reduce(lambda inner, _: [inner], range(100_000), []),
    "mapping": {"k" * 9999: ["v"] * 9999},
    "fraction": Fraction(1, 3**9000),
    "bytes": b"x" * 10**6,
}
NUMBERS_OF_MANY_DIGITS = {
    "exponent": "1e99999999",
    "exponent with sign and zeros": "3.5e+0001000",
    "exponent of 1000": "1e1000",
    "negative exponent": "1E-9999999",
    "decimals": "0." + "1" * 5000,
    "digits": "1" * 5000,
    "exponent with underscores": "1e0_1_0_0_0_0",
    "Decimal": Decimal("1e-999999"),
    "int": 10**5000,
}


@pytest.mark.parametrize("long_value", LONG_VALUES.values(), ids=LONG_VALUES)
def test_message_quotes_at_most_200_characters(long_value):
    message = str(refuse("size", long_value, "small"))
    assert len(message) < 250
    assert message.startswith("size must be small; got ")


@pytest.mark.parametrize("number", NUMBERS_OF_MANY_DIGITS.values(), ids=NUMBERS_OF_MANY_DIGITS)
def test_number_of_many_digits_is_refused_uncomputed(number):
    with pytest.raises(InputError, match=r"at most 1000 digits each; got .* Use fewer digits"):
        exact("clip", number)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "NaN", "[-Infinity]", "{", ""],
    ids=["lists", "mappings", "digits", "NaN", "infinity", "unclosed", "empty"],
)
def test_unusual_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_name_outside_a_list_gets_a_suggestion():
    assert did_you_mean(5, ["a"]) == ""
    with pytest.raises(
        InputError,
        match=r"a strategy must be one of 'auto', 'union'; got 'unoin'. Did you mean 'union'\?$",
    ):
        one_of("a strategy", "unoin", ["auto", "union"])
    for strange in ("wavelet", 5, None):
        with pytest.raises(InputError, match=r"one of 'auto', 'union'; got [^.]*\.$"):
            one_of("a strategy", strange, ["auto", "union"])
