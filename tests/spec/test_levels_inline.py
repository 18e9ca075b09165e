"""Levels in a spec, from a file, in Python and in JSON have one check and one meaning."""

from pathlib import Path

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._spec import parse_spec

OVERLAP = "{ low = [1, 2, 3], mid = [3, 4], high = [4, 5, 6] }"


def domain_of(attribute, folder=Path()):
    """Return the domain of a spec with one attribute."""
    text = (
        f"[privacy]\nepsilon = 1\n[domain.x]\n{attribute}\n[[workload]]\nqueries.x = 'identity'\n"
    )
    return parse_spec(text, folder).domain


def level(attribute, folder=Path()):
    return domain_of(attribute, folder).kind("x").level("group")


def inline(attribute, groups):
    return level(f"{attribute}\nlevels.group = {{ groups = {groups} }}")


def test_overlapping_groups_are_refused_everywhere(tmp_path):
    message = "levels.group must give every key one value; '3' has 'low' and 'mid'"
    with pytest.raises(ln.InputError, match=message):
        inline("integers = [1, 6]", OVERLAP)
    rows = "1,low\n2,low\n3,low\n3,mid\n4,mid\n4,high\n5,high\n6,high\n"
    (tmp_path / "groups.csv").write_text("k,g\n" + rows)
    with pytest.raises(ln.InputError, match=message):
        level(
            "integers = [1, 6]\nlevels.group = { file = 'groups.csv', key = 'k', value = 'g' }",
            tmp_path,
        )


def test_public_counts_of_overlapping_groups_are_refused():
    text = f"""
    [privacy]
    epsilon = 1
    [domain.k]
    integers = [1, 6]
    levels.big = {{ groups = {OVERLAP} }}
    [[workload]]
    queries = {{ k = "identity" }}
    [[public]]
    queries = {{ k = {{ level = "big" }} }}
    counts = [600, 700, 1500]
    """
    with pytest.raises(ln.InputError, match=r"levels\.big must give every key one value"):
        parse_spec(text, Path())


@pytest.mark.parametrize(
    ("attribute", "groups", "message"),
    [
        (
            "categories = ['a', 'b']",
            "{ x = ['a', 'a', 'b'] }",
            "a list of cells, each of them once",
        ),
        ("categories = ['a', 'b']", "{ x = ['a', 'b'], y = [] }", "the group 'y' of levels.group"),
        ("categories = ['a', 'b']", "{ x = ['a', 'b'], y = 'a' }", "a list of at least one cell"),
        (
            "categories = ['Kiel', 'Mainz']",
            "{ x = ['Kiel', 'Mainz', 'Kile'] }",
            r"made of its cells \(Kiel, Mainz\); got 'Kile'. Did you mean 'Kiel'?",
        ),
        (
            "categories = ['a', 'b']",
            "{ x = ['a'] }",
            "must give every cell a group; 1 have none: 'b'",
        ),
        ("integers = [0, 1]", "{ x = [0, 0.0], y = [1] }", "each of them once"),
        ("integers = [0, 1]", "{ x = [0], y = [1, '0'] }", "'0' has 'x' and 'y'"),
        (
            "decimals = { low = 0, high = 1, step = '0.5' }",
            "{ x = [0, '0.5'], y = [0.50, 1] }",
            "'0.5' has 'x' and 'y'",
        ),
        (
            "categories = ['a', 'b']\nignore_case = true",
            "{ x = ['a'], y = ['b', 'A'] }",
            "'A' has 'x' and 'y'",
        ),
        ("categories = ['a', 'b']", "{ x = ['a', 'b', 'other'] }", "got 'other'"),
    ],
)
def test_groups_that_do_not_partition_are_refused(attribute, groups, message):
    with pytest.raises(ln.InputError, match=message):
        inline(attribute, groups)


def test_other_is_a_cell_that_a_group_may_hold(tmp_path):
    attribute = "categories = ['a', 'b', 'c']\noutside = 'other'"
    (tmp_path / "groups.csv").write_text("k,g\na,low\nb,low\nc,rest\nother,rest\n")
    for groups in (
        inline(attribute, "{ low = ['a', 'b'], rest = ['c', 'other'] }"),
        level(
            f"{attribute}\nlevels.group = {{ file = 'groups.csv', key = 'k', value = 'g' }}",
            tmp_path,
        ),
    ):
        assert (groups.labels, groups.cells) == (("low", "rest"), (0, 0, 1, 1))
    apart = inline(attribute, "{ low = ['a', 'b'], rest = ['c'] }")
    assert (apart.labels, apart.cells) == (("low", "rest", "other"), (0, 0, 1, 2))
    with pytest.raises(ln.InputError, match="'other' has 'low' and 'rest'"):
        inline(attribute, "{ low = ['a', 'b', 'other'], rest = ['c', 'other'] }")


def test_released_groups_with_other_match_the_rows(tmp_path):
    attribute = (
        "categories = ['a', 'b']\noutside = 'other'\n"
        "levels.group = { groups = { low = ['a'], rest = ['b', 'other'] } }"
    )
    domain = domain_of(attribute)
    rows = pd.DataFrame({"x": ["a"] * 5 + ["b"] * 3 + ["z"] * 4})
    plan = ln.plan(ln.queries(domain, x=ln.level("group")), ln.PureDP(1000))
    answers = ln.release(plan, rows, seed=1).tables[0].frame()
    assert answers["answer"].round().tolist() == [5, 7]
    assert ln.Domain.from_json(domain.to_json()) == domain


HALVES = ln.Domain(x=ln.Integers(0, 3, levels={"half": {0: "low", 1: "low", 2: "high", 3: "high"}}))


def test_json_of_a_domain_keeps_its_levels():
    assert ln.Domain.from_json(HALVES.to_json()) == HALVES


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"labels": ["low", "low"]}, "the labels of the level 'half' in JSON", id="equal labels"
        ),
        pytest.param(
            {"labels": ["low", "high", "none"]},
            "the labels of the level 'half' in JSON",
            id="unused label",
        ),
        pytest.param({"labels": ["low", ""]}, "a group of the level 'half'", id="empty label"),
        pytest.param(
            {"cells": [1, 1, 0, 0]}, "in the order in which they first occur", id="other order"
        ),
        pytest.param({"cells": [0, 0, 1]}, "in 'cells' a group for every cell", id="missing cell"),
        pytest.param(
            {"cells": [0, 0, 1, 2]},
            "a group of a level in JSON must be a whole number",
            id="unknown group",
        ),
    ],
)
def test_json_levels_get_the_same_checks(change, message):
    value = HALVES.to_json()
    value["attributes"][0]["levels"][0] |= change
    with pytest.raises(ln.InputError, match=message):
        ln.Domain.from_json(value)


def test_json_levels_of_equal_names_are_refused():
    value = HALVES.to_json()
    value["attributes"][0]["levels"] *= 2
    with pytest.raises(ln.InputError, match="levels of different names"):
        ln.Domain.from_json(value)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({"g": {0: "a", "0": "b", 1: "a"}}, "levels.g must give every key one value; '0' has"),
        ({"g": {0: "a", "0.0": "b", 1: "a"}}, "'0.0' has 'a' and 'b'"),
        ({"g": {0: 1, 1: "1"}}, "different from every other group"),
        ({"g": {0: "a"}}, "must give every cell a group; 1 have none: '1'"),
        ({"g": {0: "a", 1: None}}, "a group of the level 'g' must be text"),
    ],
)
def test_python_levels_get_the_checks_of_a_spec(levels, message):
    with pytest.raises(ln.InputError, match=message):
        ln.Integers(0, 1, levels=levels)


@pytest.mark.parametrize(
    ("bounds", "width", "labels"),
    [
        ((0, 120), 7, ("0 .. 6", "119 .. 120")),
        ((0, 120), 5, ("0 .. 4", "120")),
        ((17, 90), 5, ("17 .. 19", "90")),
        ((-3, 4), 5, ("-3 .. -1", "0 .. 4")),
        ((0, 2), 1, ("0", "2")),
    ],
)
def test_groups_of_a_width_end_at_the_bounds(bounds, width, labels):
    groups = ln.Integers(*bounds, levels={"w": {"width": width}}).level("w")
    assert (groups.labels[0], groups.labels[-1]) == labels
