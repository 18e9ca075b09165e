"""Attribute kinds and measures: cells, labels, and every guard with its message."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._domain import (
    Bins,
    Categories,
    Coded,
    Dates,
    Decimals,
    Domain,
    Edges,
    Integers,
    Measure,
    Reading,
    Unknown,
)
from leastnoise._trusted.check import InputError, number_text
from leastnoise._trusted.domain import Kind


def test_kinds_have_sizes_and_labels():
    assert Categories(["F", "M"]).labels == ("F", "M")
    assert Categories((1, "b", True), null="other").labels == (1, "b", "true", "other")
    assert Integers(-1, 2, outside="other").labels == (-1, 0, 1, 2, "other")
    assert Coded(size=3).labels == (0, 1, 2)
    assert Bins(0, "0.3", 3).labels == ("[0, 0.1)", "[0.1, 0.2)", "[0.2, 0.3]")
    assert Bins(0, 1, 3, closed="right", outside="other").labels == (
        "[0, 1/3]",
        "(1/3, 2/3]",
        "(2/3, 1]",
        "other",
    )
    week = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    assert Dates("2024-12-30", "2025-01-05", by="weekday").labels == week
    other = [
        Integers(0, 5, null="other"),
        Coded(4, outside="other"),
        Bins(0, 1, 7, outside="other"),
        Unknown(5, outside="other"),
    ]
    for kind in (
        Categories(["a"]),
        Unknown(5),
        Dates("2024-01-01", "2024-02-01"),
        Edges([0, 1, 5]),
        Decimals(0, 1, "0.1"),
        *other,
    ):
        assert kind.size == len(kind.labels)
        assert kind.regular == len(kind.regular_labels) == kind.size - (kind in other)


def test_days_lie_in_coarser_periods():
    levels = {
        level.name: (level.labels, level.cells)
        for level in Dates("2023-12-31", "2024-01-02").implied_levels
    }
    two = (0, 1, 1)
    week = ("2023-W52", "2024-W01")
    assert levels == {
        "weekday": (("Sunday", "Monday", "Tuesday"), (0, 1, 2)),
        "week": (week, two),
        "month": (("2023-12", "2024-01"), two),
        "quarter": (("2023-Q4", "2024-Q1"), two),
        "year": (("2023", "2024"), two),
    }


@pytest.mark.parametrize(
    ("by", "coarser"),
    [
        ("year", []),
        ("quarter", ["year"]),
        ("month", ["quarter", "year"]),
        ("week", []),
        ("hour", ["hour_of_day", "day", "weekday", "week", "month", "quarter", "year"]),
        ("weekday", []),
        ("hour_of_day", []),
    ],
)
def test_period_lies_in_coarser_ones_as_a_whole(by, coarser):
    assert [
        level.name for level in Dates("2024-01-01", "2024-01-02", by=by).implied_levels
    ] == coarser


def test_reading_may_be_a_mapping():
    how = {
        "column": "c",
        "nulls": ["-"],
        "decimal": ",",
        "thousands": ".",
        "currency": ["EUR"],
        "trim": True,
        "ignore_case": False,
    }
    assert Integers(0, 9, reading=how).reading == Reading(**how)
    with pytest.raises(InputError, match="has no key 'comma'"):
        Integers(0, 9, reading={"comma": ","})


def test_foreign_kind_is_refused(monkeypatch):
    class Foreign(Kind):
        def __repr__(self):
            return "Foreign()"

    monkeypatch.setattr(Foreign, "__abstractmethods__", frozenset())
    with pytest.raises(
        InputError,
        match=r"the attribute 'a' must be a list of categories, .* or Unknown; got Foreign\(\)",
    ):
        Domain(a=Foreign())


def test_days_are_of_years_that_every_time_zone_has():
    first = Dates("0002-01-01", "0002-01-03")
    last = Dates("9998-12-30", "9998-12-31")
    assert first.size == 3
    assert first.labels[0] == "0002-01-01"
    assert last.labels[-1] == "9998-12-31"
    for day in ("0001-12-31", "9999-01-01"):
        with pytest.raises(InputError, match=f"must be a day such as '2024-01-31'; got '{day}'"):
            Dates(day, day)


@pytest.mark.parametrize("nothing", [(), {}, [], None], ids=repr)
def test_empty_levels_have_every_spelling(nothing):
    kinds = [
        Categories(["a"], levels=nothing),
        Integers(0, 9, levels=nothing),
        Dates("2024-01-01", "2024-01-02", levels=nothing),
    ]
    assert [kind.levels for kind in kinds] == [()] * 3


def test_other_cell_is_a_group_on_every_level():
    levels = {"half": {"width": 5}}
    assert Integers(0, 9, levels=levels).level("half").labels == ("0 .. 4", "5 .. 9")
    groups = Integers(0, 9, outside="other", levels=levels).level("half")
    assert (groups.name, groups.labels, groups.cells) == (
        "half",
        ("0 .. 4", "5 .. 9", "other"),
        (*[0] * 5, *[1] * 5, 2),
    )


def test_whole_categories_fit_64_bits():
    assert Categories([-(2**63), 2**64 - 1]).labels == (-(2**63), 2**64 - 1)
    for value in (-(2**63) - 1, 2**64):
        with pytest.raises(InputError, match="a category must be text or a whole number"):
            Categories([value])


def test_whole_category_with_zeros_is_the_whole_number():
    kind = Categories(["1.0", "-0.0", "1.50"], spellings={"1.50": ["2.00"]})
    assert {form: kind.lookup[form] for form in ("1", "0", "1.50", "2")} == {
        "1": 0,
        "0": 1,
        "1.50": 2,
        "2": 2,
    }
    with pytest.raises(
        InputError, match=r"categories must differ from each other; got '1\.0' twice"
    ):
        Categories([1, "1.0"])
    with pytest.raises(
        InputError, match=r"a spelling must belong to only one category; got '1\.00' twice"
    ):
        Categories([1, 2], spellings={"2": ["1.00"]})


def test_unknown_level_names_the_existing_ones():
    with pytest.raises(
        InputError, match="a level must be declared; got 'five', and the attribute has none"
    ):
        Integers(0, 9).level("five")
    with pytest.raises(InputError, match="a level must be one of 'five'; got 'six'"):
        Integers(0, 9, levels={"five": {"width": 5}}).level("six")


def test_levels_added_later_get_the_same_checks():
    levels = {"half": ["low", "low", "high"]}
    plain = Categories(["a", "b", "c"], spellings={"a": ["A"]})
    assert (
        plain.with_levels(levels)
        == Categories(["a", "b", "c"], spellings={"a": ["A"]}, levels=levels)
        != plain
    )
    with pytest.raises(
        InputError, match="the level 'half' must be a mapping from each cell to its group"
    ):
        plain.with_levels({"half": ["low"]})
    for wrong in (True, "", 1.5):
        with pytest.raises(
            InputError,
            match="a group of the level 'half' must be text that is not empty, or a whole number",
        ):
            plain.with_levels({"half": ["low", 1, wrong]})


def test_edges_repr_can_be_evaluated():
    edges = Edges([0, "0.5", 2], closed="right")
    assert repr(edges) == "Edges(['0', '0.5', '2'], closed='right')"
    assert Edges(["0", "0.5", "2"], closed="right") == edges


@pytest.mark.parametrize(
    "kind",
    [
        Categories(["a"]),
        Integers(0, 1),
        Coded(2),
        Bins(0, 1, 2),
        Edges([0, 1]),
        Decimals(0, 1, "0.5"),
        Dates("2024-01-01", "2024-01-02"),
    ],
)
def test_undeclared_value_drops_the_row(kind):
    assert kind.null == "drop"
    assert kind.outside == "drop"
    assert getattr(kind, "closed", "left") == "left"
    assert Categories(["a"], null=None) == Categories(["a"])


def test_edges_are_exact():
    assert Bins("-0.1", Decimal("0.2"), 3).edges == (
        Fraction(-1, 10),
        Fraction(0),
        Fraction(1, 10),
        Fraction(1, 5),
    )


@given(st.fractions(min_value=-1000, max_value=1000, max_denominator=10**6))
@settings(max_examples=200, deadline=None)
def test_number_text_is_exact(number):
    assert Fraction(number_text(number)) == number


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Categories([]),
            "categories must be a list of text or whole numbers that is not empty; got [].",
        ),
        (
            lambda: Categories("FM"),
            "categories must be a list of text or whole numbers that is not empty; got 'FM'.",
        ),
        (
            lambda: Categories(["a", "a"]),
            (
                "categories must differ from each other; got 'a' twice. Values are compared by "
                "their string form"
            ),
        ),
        (lambda: Categories([1, "1"]), "categories must differ from each other; got '1' twice."),
        (
            lambda: Categories(["a", ""]),
            (
                "a category must be text that is not empty; got ''. An empty text is a null; "
                "null = 'other' counts"
            ),
        ),
        (
            lambda: Categories([0.5]),
            (
                "a category must be text or a whole number of at most 64 bits; got 0.5. Write "
                "other numbers and dates as text"
            ),
        ),
        (
            lambda: Categories(["a", "other"], outside="other"),
            "categories must not contain 'other' if null or outside is 'other'",
        ),
        (
            lambda: Categories(["a"], outside="clip"),
            "outside must be one of 'drop', 'other', 'cell'; got 'clip'.",
        ),
        (
            lambda: Categories(["a"], null="clip"),
            "null must be one of 'drop', 'other', 'cell'; got 'clip'.",
        ),
        (lambda: Integers(5, 5), "low must be below high; got low 5 and high 5."),
        (lambda: Integers(0.5, 5), "low must be a whole number from"),
        (
            lambda: Integers(0, 2**53),
            (
                "high must be a whole number from -9007199254740991 to 9007199254740991; got "
                "9007199254740992."
            ),
        ),
        (
            lambda: Integers(0, 2**40),
            (
                "the number of cells of Integers must be at most 2147483648; got 1099511627777. "
                "Choose a coarser"
            ),
        ),
        (
            lambda: Integers(0, 5, outside="keep"),
            "outside must be one of 'drop', 'clip', 'other', 'cell'; got 'keep'.",
        ),
        (lambda: Coded(0), "size must be a whole number from 1 to 2147483648; got 0."),
        (lambda: Coded(2.5), "size must be a whole number from 1 to 2147483648; got 2.5."),
        (lambda: Coded(True), "size must be a whole number from 1 to 2147483648; got True."),
        (
            lambda: Bins(0, float("inf"), 5),
            (
                "high must be a finite number, a decimal or a fraction such as 1, '0.1' or '1/3'; "
                "got inf."
            ),
        ),
        (lambda: Bins(1, "1", 5), "low must be below high; got low 1 and high 1."),
        (
            lambda: Bins(0, 10**20, 5),
            "high must be between -(2^53 - 1) and 2^53 - 1; got '100000000000000000000'.",
        ),
        (lambda: Bins(0, 1, 0), "count must be a whole number from 1 to 2147483648; got 0."),
        (
            lambda: Bins(0, 1, 2, closed="both"),
            "closed must be one of 'left', 'right'; got 'both'.",
        ),
        (
            lambda: Reading(currency=[""]),
            "currency must be a list of texts that are not empty; got ''.",
        ),
        (lambda: Edges("12"), "edges must be a list of at least two numbers; got '12'."),
        (
            lambda: Measure("", 0, 1),
            (
                "the column of a measure must be text that is not empty and has no control "
                "characters; got ''."
            ),
        ),
        (lambda: Measure("pay", 0, 0), "low must be below high; got low 0 and high 0."),
        (
            lambda: Measure("pay", 0, 1, unit=0),
            "unit must be a number above 0, between 1e-100 and 1e100; got 0.",
        ),
        (lambda: Measure("pay", 0, 1, unit=-1), "unit must be a number above 0"),
        (
            lambda: Measure("pay", 0, "0.5"),
            "high must be a whole multiple of the unit 1; got '0.5'. Choose another bound or unit.",
        ),
        (
            lambda: Measure("pay", 0, 10**10, unit="1e-9"),
            "high must be between -1073741823 and 1073741823 units of 0.000000001, so that",
        ),
    ],
)
def test_kinds_refuse_invalid_arguments(make, message):
    with pytest.raises(InputError) as error:
        make()
    assert message in str(error.value)


def test_measure_bounds_are_whole_units():
    measure = Measure("pay", -5, "0.5", unit="0.25")
    assert (measure.low_units, measure.high_units, measure.largest) == (-20, 2, 20)


def test_kinds_are_frozen_and_hashable():
    kind = Bins(0, 1, 2)
    with pytest.raises(AttributeError):
        kind.low = 5
    assert len({Bins(0, 1, 2), Bins("0", "1/1", 2), Bins(0, 1, 3)}) == 2
