"""Names of cells have one reading everywhere, and empty query sets are refused."""

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._spec import parse_spec
from leastnoise._trusted.linop import dense

TRUTH = ln.Categories([True, False])
HALVES = ln.Decimals(0, 1, "0.5")
MONTHS = ln.Dates("2024-01-01", "2024-03-31", "month")
DAYS = ln.Dates("2024-01-01", "2024-01-03")
CASELESS = ln.Categories(
    ["F", "M"], reading=ln.Reading(ignore_case=True), spellings={"F": ["woman"]}
)


@pytest.mark.parametrize(
    ("kind", "name", "cell"),
    [
        (TRUTH, True, 0),
        (TRUTH, False, 1),
        (TRUTH, "true", 0),
        (HALVES, 0.0, 0),
        (HALVES, 0, 0),
        (HALVES, "0.0", 0),
        (HALVES, 0.5, 1),
        (HALVES, "0.50", 1),
        (HALVES, 1.0, 2),
        (HALVES, Fraction(1, 2), 1),
        (ln.Integers(17, 20), 18, 1),
        (ln.Integers(17, 20), "18", 1),
        (ln.Integers(17, 20), 18.0, 1),
        (ln.Integers(17, 20), "18.0", 1),
        (ln.Coded(3), 2.0, 2),
        (ln.Categories([1, 2]), 2.0, 1),
        (ln.Categories([1, 2]), "2.0", 1),
        (ln.Categories(["0.5", "b"]), 0.5, 0),
        (CASELESS, "f", 0),
        (CASELESS, "Woman", 0),
        (MONTHS, "2024-02", 1),
        (DAYS, dt.date(2024, 1, 2), 1),
        (ln.Categories(["a"], outside="other"), "other", 1),
        (ln.Bins(0, 1, 2), "[0.5, 1]", 1),
    ],
)
def test_cells_are_named_alike_in_all_forms(kind, name, cell):
    predicates = ln.predicates([[name]])
    row = dense(predicates.operator("x", kind))[0]
    assert np.flatnonzero(row).tolist() == [cell]
    assert predicates.labels("x", kind) == (str(kind.labels[cell]),)
    workload = ln.queries(ln.Domain(x=kind), x=predicates)
    assert json.loads(json.dumps(workload.to_json())) == workload.to_json()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TRUTH, 1),
        (ln.Integers(0, 1), True),
        (TRUTH, "True"),
        (HALVES, 0.25),
        (ln.Integers(17, 20), 18.5),
        (ln.Integers(17, 20), 21),
        (ln.Coded(3), -1),
        (ln.Categories(["F", "M"]), "f"),
        (ln.Categories(["F", "M"]), None),
        (ln.Categories(["F", "M"]), ["F"]),
        (ln.Integers(0, 3), float("nan")),
    ],
)
def test_names_of_no_cell_are_refused(kind, name):
    with pytest.raises(ln.InputError, match="a predicate on x must be made of its cells"):
        ln.predicates([[name]]).operator("x", kind)


SPEC = """
[privacy]
epsilon = "1000"
[domain.k]
KIND
levels.big = { groups = { yes = [CELLS], no = [OTHERS] } }
[[workload]]
queries = { k = { predicates = [[CELLS], [OTHERS]] } }
[[workload]]
queries = { k = { level = "big" } }
[[public]]
queries = { k = "identity" }
counts = { file = "counts.csv", column = "n" }
[[impossible]]
k = IMPOSSIBLE
h = [0, 0]
[domain.h]
integers = [0, 1]
[plan]
strategy = "model"
"""


@pytest.mark.parametrize(
    ("kind", "cells", "others", "impossible", "column"),
    [
        ("categories = [true, false]", "true", "false", "[true]", "true,2\nfalse,1\n"),
        ("categories = [true, false]", "'true'", "'false'", "['true']", "true,2\nfalse,1\n"),
        (
            "decimals = { low = 0, high = 1, step = 1 }",
            "0.0",
            "1.0",
            "[0.0, 0.0]",
            "0.0,2\n1.0,1\n",
        ),
        ("integers = [0, 1]", "0.0", "1", "[0, 0]", "0,2\n1.0,1\n"),
    ],
)
def test_every_part_of_a_spec_reads_names_alike(tmp_path, kind, cells, others, impossible, column):
    (tmp_path / "counts.csv").write_text("k,n\n" + column)
    text = SPEC.replace("KIND", kind).replace("IMPOSSIBLE", impossible)
    spec = parse_spec(text.replace("CELLS", cells).replace("OTHERS", others), tmp_path)
    products = spec.workload.products
    assert [dense(product.operators[0]).tolist() for product in products] == [[[1, 0], [0, 1]]] * 2
    assert spec.public[0]["counts"] == [2, 1]
    assert spec.impossible == ({"k": (0,), "h": (0,)},)


def test_release_reads_cell_names_like_a_spec():
    domain = ln.Domain(k=TRUTH, h=HALVES)
    plan = ln.plan(ln.marginals(domain, ways=2), ln.PureDP(30))
    rows = pd.DataFrame({"k": [True, True, False], "h": [0.0, 0.5, 0.5]})
    release = ln.release(plan, rows, seed=1)
    (table,) = release.answer(ln.queries(domain, k=ln.predicates([[True]]), h="identity"))
    assert table.frame()["answer"].round().tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    "query_set",
    [lambda: ln.predicates([[]]), lambda: ln.predicates([[], []]), lambda: ln.matrix([[0, 0]])],
)
def test_query_sets_that_count_nothing_are_refused(query_set):
    with pytest.raises(ln.InputError, match="must count at least one cell; got"):
        query_set()


@pytest.mark.parametrize(
    "part",
    [
        "queries = { g = { predicates = [[]] } }",
        "queries = { g = { matrix = [[0, 0]] } }",
        "marginals = { ways = 1, of = [{ g = { predicates = [[]] } }] }",
        "means = { of = 'h', by = [{ g = { predicates = [[]] } }] }",
        "cdf = { of = 'a', by = [{ g = { predicates = [[], []] } }] }",
    ],
)
@pytest.mark.parametrize("strategy", ["auto", "workload", "identity"])
def test_spec_parts_that_count_nothing_are_refused(part, strategy):
    text = f"""
    [privacy]
    epsilon = 1
    [domain.g]
    categories = ["a", "b"]
    [domain.a]
    integers = [0, 9]
    [measures.h]
    clip = [0, 9]
    [[workload]]
    {part}
    [plan]
    strategy = "{strategy}"
    """
    with pytest.raises(ln.InputError, match="must count at least one cell"):
        parse_spec(text, Path())


def test_empty_predicate_beside_another_is_0():
    domain = ln.Domain(g=["a", "b"])
    workload = ln.queries(domain, g=ln.predicates([["a"], []]))
    assert workload.products[0].labels == (("a", "(none)"),)
    release = ln.release(ln.plan(workload, ln.PureDP(30)), pd.DataFrame({"g": ["a", "b"]}), seed=1)
    assert release.tables[0].frame()["answer"].round().tolist() == [1, 0]
