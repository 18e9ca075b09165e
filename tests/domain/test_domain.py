"""Domain: its parts, JSON and spec forms, and every guard with its message."""

import copy
import json
import pickle

import numpy as np
import pytest

from leastnoise._domain import (
    Bins,
    Categories,
    Coded,
    Dates,
    Decimals,
    Domain,
    Edges,
    Integers,
    KeyTable,
    Measure,
    Reading,
    Rule,
    StepTable,
    TextTable,
    ThresholdTable,
    TimeRule,
)
from leastnoise._spec import domain_from_spec
from leastnoise._trusted.check import InputError, InternalError

PEOPLE = Domain(
    {
        "sex": ["F", "M"],
        "age": Integers(17, 90, outside="clip"),
        "home town": Coded(9, null="other"),
        "pay": Bins(0, "0.5", 5, closed="right"),
    },
    measures={"income": Measure("pay", 0, 200_000, unit="0.01")},
)


def test_domain_has_its_names_shape_and_measures():
    assert PEOPLE.names == ("sex", "age", "home town", "pay")
    assert PEOPLE.shape == (2, 74, 10, 5)
    assert PEOPLE.size == 2 * 74 * 10 * 5
    assert PEOPLE.kind("sex") == Categories(["F", "M"])
    assert PEOPLE.measures == {"income": PEOPLE.measure("income")}
    assert eval(repr(PEOPLE)) == PEOPLE  # noqa: S307


def test_size_is_exact_for_astronomical_domains():
    domain = Domain({f"a{place}": Coded(10) for place in range(100)})
    assert domain.size == 10**100


def test_equal_by_value_and_immutable():
    same = Domain.from_json(json.loads(json.dumps(PEOPLE.to_json())))
    assert same == PEOPLE
    assert hash(same) == hash(PEOPLE)
    assert json.dumps(same.to_json()) == json.dumps(PEOPLE.to_json())
    assert PEOPLE != "PEOPLE"
    assert copy.deepcopy(PEOPLE) is copy.copy(PEOPLE)
    assert pickle.loads(pickle.dumps(PEOPLE)) == PEOPLE
    with pytest.raises(AttributeError, match="a Domain is immutable; 'x' cannot be set"):
        PEOPLE.x = 1
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del PEOPLE._kinds


KINDS = [
    Categories(["c", -5, 5], null="other"),
    Categories([0], outside="other"),
    Categories(
        ["yes", "no"], spellings={"yes": ["y", "1"]}, reading=Reading(trim=True, ignore_case=True)
    ),
    Categories(
        ["Kiel", "Mainz"], outside="other", levels={"region": {"Kiel": "north", "Mainz": "south"}}
    ),
    *(Integers(-9, 9, outside=outside) for outside in ("drop", "clip", "other")),
    Integers(0, 99, rounding="down", levels={"five": {"width": 5}}),
    *(Bins("-1/9", "2.5", 7, closed=closed) for closed in ("left", "right")),
    *(Coded(9, null=null) for null in ("drop", "other")),
    Edges(
        ["0", "9.99", "100/3"],
        closed="right",
        outside="clip",
        reading=Reading(decimal=",", thousands=".", currency=["€"]),
    ),
    Decimals(
        "120",
        "220",
        "0.5",
        outside="other",
        reading=Reading(column="height in cm", nulls=["NA", "-9"]),
    ),
    Dates(
        "2024-01-15",
        "2025-12-31",
        by="month",
        zone="Europe/Berlin",
        format="%d.%m.%Y",
        null="other",
    ),
    Dates(
        "2024-01-01",
        "2024-01-31",
        levels={
            "half": {f"2024-01-{day:02}": "late" if day > 15 else "early" for day in range(1, 32)}
        },
    ),
]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_domain_json_round_trip(kind):
    pay = Measure("pay in €", 0, 9, reading=Reading(decimal=",", thousands=".", trim=True))
    domain = Domain({"é x": kind, "b": Coded(2)}, measures={"pay": pay, "n": Measure("n", 0, 1)})
    assert eval(repr(kind)) == kind  # noqa: S307
    assert Domain.from_json(json.loads(json.dumps(domain.to_json()))) == domain


def test_domain_is_written_in_spec_form():
    spec = {
        "sex": {"categories": ["F", "M"]},
        "age": {"integers": [17, 90], "outside": "clip"},
        "home town": {"size": 9, "null": "other"},
        "pay": {"bins": {"low": 0, "high": "0.5", "count": 5, "closed": "right"}},
    }
    assert (
        domain_from_spec(spec, {"income": {"column": "pay", "clip": [0, 200000], "unit": "0.01"}})
        == PEOPLE
    )
    assert domain_from_spec({"a": {"size": 2}}, {"pay": {"clip": [0, 5]}}).measure(
        "pay"
    ) == Measure("pay", 0, 5)


CODED = {"name": "a", "kind": "coded"}


def from_json(*attributes, measures=()):
    return Domain.from_json({"attributes": attributes, "measures": measures})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Domain({}), "a domain must have at least one attribute; got none."),
        (
            lambda: Domain([("a", ["x"]), ("a", ["y"])]),
            "attributes must have different names; got 'a' twice.",
        ),
        (
            lambda: Domain({"a": ["x"]}, a=["x"]),
            "attributes must have different names; got 'a' twice.",
        ),
        (
            lambda: Domain({"": ["x"]}),
            (
                "the name of an attribute must be text that is not empty and has no control "
                "characters; got ''."
            ),
        ),
        (lambda: Domain({"a\nb": ["x"]}), "has no control characters; got 'a\\nb'."),
        (lambda: Domain({1: ["x"]}), "the name of an attribute must be text"),
        (
            lambda: Domain(a=5),
            (
                "the attribute 'a' must be a list of categories, Categories, Integers, Decimals, "
                "Bins, Edges, Dates, Coded"
            ),
        ),
        (lambda: Domain(trust=11), "got 11. For the codes 0 to 10 write ln.Coded(11)."),
        (lambda: Domain(trust=0), "Coded or Unknown; got 0."),
        (lambda: Domain(trust=True), "Coded or Unknown; got True."),
        (lambda: Domain(a="xy"), "the attribute 'a' must be a list of categories"),
        (lambda: Domain(a=Measure("a", 0, 1)), "Name the measure in measures={...}."),
        (
            lambda: Domain("abc"),
            "attributes must be a mapping from a name to a kind, or pairs of them; got 'abc'.",
        ),
        (
            lambda: Domain(a=["x"], measures=[1]),
            "measures must be a mapping from a name to a Measure; got [1].",
        ),
        (lambda: Domain(a=["x"], measures={"m": 5}), "the measure 'm' must be a Measure; got 5."),
        (
            lambda: PEOPLE.kind("Age"),
            (
                "an attribute must be one of 'sex', 'age', 'home town', 'pay'; got 'Age'. Did you "
                "mean 'age'?"
            ),
        ),
        (
            lambda: PEOPLE.measure("incme"),
            "a measure must be one of 'income'; got 'incme'. Did you mean 'income'?",
        ),
        (
            lambda: Domain(a=["x"]).measure("m"),
            "a measure must be declared in the domain, which has none; got 'm'.",
        ),
        (
            lambda: Domain.from_json([]),
            "a domain in JSON must be a table with keys among 'attributes', 'measures'; got [].",
        ),
        (
            lambda: Domain.from_json({"attributes": 5}),
            "'attributes' of a domain in JSON must be a list; got 5.",
        ),
        (
            lambda: Domain.from_json({"attribute": []}),
            "a domain in JSON has no key 'attribute'; allowed are 'attributes', 'measures'. Did",
        ),
        (
            lambda: from_json({"name": "a", "kind": "x"}),
            "'kind' of the attribute 'a' must be one of",
        ),
        (
            lambda: from_json(CODED),
            "the attribute 'a' in JSON must have 'size', as every attribute of kind",
        ),
        (
            lambda: from_json(CODED | {"size": 2, "low": 1}),
            "in JSON has no key 'low'; allowed are 'size', 'null', 'outside', 'reading'",
        ),
        (lambda: from_json(measures=[{"name": "m"}]), "a measure in JSON must have 'column'."),
        (
            lambda: from_json(
                measures=[{"name": "m", "column": "c", "low": 0, "high": 1, "unit": 1}] * 2
            ),
            "measures must have different names",
        ),
        (lambda: domain_from_spec(5), "[domain] must be a table of tables; got 5."),
        (
            lambda: domain_from_spec({"a": 5}),
            (
                "[domain.a] must be a table with keys among 'categories', 'integers', 'decimals', "
                "'bins', 'e"
            ),
        ),
        (
            lambda: domain_from_spec({"a": {"catgories": ["x"]}}),
            "[domain.a] has no key 'catgories'; allowed are 'categories', 'integers',",
        ),
        (
            lambda: domain_from_spec({"a": {}}),
            (
                "one of 'categories', 'integers', 'decimals', 'bins', 'edges', 'dates', 'unknown' "
                "and 'size"
            ),
        ),
        (
            lambda: domain_from_spec({"a": {"size": 2, "integers": [1, 2]}}),
            "got 'integers' and 'size'.",
        ),
        (
            lambda: domain_from_spec({"a": {"integers": [1]}}),
            "[domain.a]: integers must be a list of two numbers, [low, high]; got [1].",
        ),
        (
            lambda: domain_from_spec({"a": {"integers": [2, 1]}}),
            "[domain.a]: low must be below high; got low 2 and high 1.",
        ),
        (
            lambda: domain_from_spec({"a": {"categories": "x"}}),
            "[domain.a]: categories must be a list of text or whole numbers, or { file",
        ),
        (
            lambda: domain_from_spec({"a": {"bins": {"low": 0, "high": 1}}}),
            "[domain.a]: bins must have 'count'",
        ),
        (
            lambda: domain_from_spec({"a": {"bins": {"lo": 0}}}),
            "[domain.a]: bins has no key 'lo'; allowed are 'low', 'high', 'count', 'cl",
        ),
        (
            lambda: domain_from_spec({"a": {"size": 2}}, {"m": {}}),
            "[measures.m] must have either 'clip', the public bounds of a value, or 'unit_total'",
        ),
        (
            lambda: domain_from_spec({"a": {"size": 2}}, {"m": {"clip": 5}}),
            "[measures.m]: clip must be a list of two numbers, [low, high]",
        ),
        (
            lambda: domain_from_spec({"a": {"size": 2}}, {"m": {"clip": [1, 0]}}),
            "[measures.m]: low must be below high",
        ),
        (
            lambda: domain_from_spec({"a": {"size": 2}}, {"m": {"clamp": [1, 0]}}),
            "[measures.m] has no key 'clamp'",
        ),
    ],
)
def test_domain_refuses_invalid_attributes(make, message):
    with pytest.raises(InputError) as error:
        make()
    assert message in str(error.value)


def derived(kind):
    return type(f"Of{kind.__name__}", (kind,), {"__slots__": ()})


STEPS = StepTable(0, 3, 0)
FORMS = TextTable({"": -1, "a": 3}, {})
RULE = {
    "size": 4,
    "table": STEPS,
    "null": -1,
    "outside": -1,
    "unreadable": -1,
    "clip": False,
    "reading": Reading(),
}


@pytest.mark.parametrize(
    "changed",
    [
        {"null": 4},
        {"outside": -2},
        {"unreadable": 4},
        {"size": 3},
        {"table": StepTable(0, 3, -1)},
        {"table": StepTable(0, 9, 0, repeat_after=5)},
        {"table": ThresholdTable(np.array([0.5]), np.array([0, 4]))},
        {"table": ThresholdTable(np.array([0.5]), np.array([-2, 0]))},
        {"table": TextTable({"": -1, "a": 4}, {})},
        {"table": TextTable({"": -1}, {"1": -2})},
        {"reading": None},
        {"reading": derived(Reading)()},
        {"size": np.uint8(4)},
        {"outside": np.int64(-1)},
        {"table": derived(StepTable)(0, 3, 0)},
        {"table": derived(TextTable)({"": -1}, {})},
        {"table": derived(KeyTable)(9)},
        {"table": {"a": 1}},
        {"clock": "UTC"},
    ],
    ids=str,
)
def test_domain_refuses_foreign_rules_and_classes(changed):
    for table in (STEPS, FORMS, KeyTable(9), ThresholdTable(np.array([0.5]), np.array([-1, 3]))):
        Rule(**{**RULE, "table": table})
    with pytest.raises(InternalError, match=r"made of its own parts|cells of its own attribute"):
        Rule(**{**RULE, **changed})


class Remembering(dict):
    """Answers otherwise the next time."""

    def __getitem__(self, key):
        return 0

    def get(self, key, default=None):
        return 3 if key else default


@pytest.mark.parametrize(
    ("at", "cells"),
    [
        ([0.5], [0, 1, 2]),
        ([0.5, 0.25], [0, 1, 2]),
        ([0.5, np.nan], [0, 1, 2]),
        ([[0.5]], [[0, 1]]),
        ([0.5], np.array([0, 1], np.uint8)),
        (np.array([1], np.int8), [0, 1]),
    ],
    ids=str,
)
def test_thresholds_must_rise_with_integers_between(at, cells):
    with pytest.raises(InternalError, match="thresholds must increase"):
        ThresholdTable(np.asarray(at), np.asarray(cells))


def test_rule_looks_up_exactly_what_it_checked():
    at = np.array([0.5])
    cells = np.array([0, 1])
    cuts = ThresholdTable(at, cells)
    forms = TextTable(Remembering({"": -1, "a": 3}), {})
    at[0] = 9.0
    cells[0] = 70
    assert cuts.thresholds.tolist() == [0.5]
    assert cuts.cells.tolist() == [0, 1]
    for array in (cuts.thresholds, cuts.cells):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    assert type(forms.cells) is dict
    assert forms.cells == {"": -1, "a": 3}


def test_rule_parts_are_builtin_classes():
    with pytest.raises(InternalError, match="whole numbers"):
        StepTable(np.int8(-128), np.int8(127), np.int8(-128))
    with pytest.raises(InternalError, match="texts with whole numbers"):
        TextTable({"a": np.int64(1)}, {})
    with pytest.raises(InputError, match="max_length must be a whole number"):
        KeyTable("1 OR 1=1")
    with pytest.raises(InternalError, match="days, a zone and a pattern"):
        TimeRule(0, 1, "UTC", "%Y")
    with pytest.raises(InputError, match="reading must be a Reading"):
        Measure("pay", 0, 9, reading=derived(Reading)())


@pytest.mark.parametrize(
    "steps",
    [
        (1, 0, 0),
        (0, 3, 1),
        (0, 3, 0, 0),
        (0, 3, 0, 1, 0),
        (0, 2**53, 0),
        (0, 3, -(2**53)),
        (0, 3, 0, 1, None, "away"),
    ],
    ids=str,
)
def test_steps_are_whole_numbers_that_doubles_hold(steps):
    most = 2**53 - 1
    for rounding in (None, "down", "up", "nearest"):
        assert StepTable(-most, most, -most, 1, 1, rounding).cells() == {0}
    assert StepTable(3, 3, 3, 2).cells() == {0}
    assert StepTable(5, 9, 3, 2).cells() == {1, 3}
    with pytest.raises(InternalError, match="that a double can represent"):
        StepTable(*steps)


def test_domain_reads_cell_counts_once():
    domain = Domain(zone=Coded(3))
    same = Domain(zone=Coded(3))
    object.__setattr__(domain.kind("zone"), "size", 5)
    assert domain.kind("zone").size == 5
    assert domain.cells("zone") == 3
    assert domain.shape == (3,)
    assert domain == same
    assert domain != Domain(zone=domain.kind("zone"))
    with pytest.raises(InternalError, match="the rule of 'zone' must be about its own cells"):
        domain.rule("zone")


def test_kind_must_have_a_registered_rule():
    class Own(Coded):
        pass

    with pytest.raises(InputError, match="must be a list of categories, Categories"):
        Domain(zone=Own(3))
