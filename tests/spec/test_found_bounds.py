"""Bounds to find, in a spec: the widest count before the search, the results afterwards."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._session import read_spec

pytestmark = pytest.mark.filterwarnings("ignore:Some tables have more:UserWarning")

SPEC = """
[source]
path = "visits.csv"
[privacy]
{budget}
unit = {{ column = "id", max_rows = {max_rows} }}
[domain.age]
integers = {integers}
outside = "clip"
[domain.height]
bins = {bins}
[measures.pay]
column = "income"
clip = {clip}
unit = "0.5"
[[workload]]
marginals = {{ ways = 1 }}
[[workload]]
queries = {{ age = "identity" }}
sum = "pay"
[plan]
strategy = "identity"
[output]
formats = ["csv"]
"""
STATED = {
    "budget": 'epsilon = "20"',
    "max_rows": "3",
    "integers": "[0, 120]",
    "bins": "{ low = 0, high = 2, count = 4 }",
    "clip": "[0, 100]",
}
FOUND = {
    "max_rows": '{ most = 500, share = "1/4" }',
    "integers": "{ low = 0, most = 500 }",
    "bins": '{ least = "-2.5", most = 4, count = 4, closed = "right", covers = "0.9" }',
    "clip": '{ low = 0, most = 1000, found = "pay" }',
}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a spec; its table has 4000 rows."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "id": np.arange(4000) // 4,
            "age": rng.integers(1, 90, 4000),
            "height": rng.normal(1.7, 0.1, 4000).round(2),
            "income": rng.integers(1, 190, 4000) / 2,
        }
    )
    frame.to_csv(tmp_path / "visits.csv", index=False)
    file = tmp_path / "spec.toml"

    def write_spec(**settings):
        file.write_text(SPEC.format(**STATED | settings), encoding="utf-8")
        return file

    return write_spec


def bounds_of(spec):
    """Return the bounds that a spec searches for or has found."""
    age, height = (spec.domain.kind(name) for name in ("age", "height"))
    pay = spec.domain.measure("pay")
    return spec.privacy.max_rows, (age.low, age.high), (height.low, height.high), pay.high


def test_widest_bounds_are_planned_and_found_ones_released(write, tmp_path):
    spec = read_spec(write(**FOUND))
    assert bounds_of(spec) == (500, (0, 500), (Fraction(-5, 2), 4), 1000)
    names = [search.name for search in spec.bounds_searches]
    assert names == ["max_rows", "integers of age", "bins of height", "clip of pay"]
    assert spec.plan().privacy.budget == ln.PureDP(12)  # 3/5 of the budget
    release = spec.release(tmp_path / "out")
    released_spec = read_spec(tmp_path / "spec.toml")
    max_rows, age, height, pay = bounds_of(released_spec)
    assert max_rows == 5
    assert age == (0, 100)
    assert pay == 100
    assert height[0] <= 1.5
    assert 2 <= height[1] <= 4
    assert release.plan.privacy == released_spec.planned_privacy
    assert {search.attribute for search in release.options.searches} == {
        "max_rows",
        "age",
        "height",
        "income",
    }
    ledger = ln.Ledger.open(tmp_path / "visits.ledger")
    assert [str(entry.charge) for entry in ledger.entries()] == [
        "epsilon = 5",
        *["epsilon = 1"] * 3,
        "epsilon = 12",
    ]
    assert (
        released_spec.release(tmp_path / "out").observation.receipt == release.observation.receipt
    )
    assert len(ledger.entries()) == len(ln.Ledger.open(ledger.path).entries())


@pytest.mark.parametrize(
    "budget", ['rho = "2"', 'epsilon = "4"\ndelta = "1e-9"', 'rho = "4"\nshare = "1/2"']
)
def test_searches_and_release_cost_the_budget_exactly(write, tmp_path, budget):
    spec = read_spec(write(**FOUND | {"budget": budget}))
    spec.release(tmp_path / "out")
    ledger = ln.Ledger.open(tmp_path / "visits.ledger")
    assert len(ledger.entries()) == 5
    remaining = ledger.left()
    assert (remaining.epsilon, remaining.rho) == (0, 2 if "share" in budget else 0)


def test_seeded_release_finds_bounds_and_writes_none(write, tmp_path):
    spec = read_spec(write(**FOUND))
    release = spec.release(tmp_path / "out", seed=1)
    assert release.plan.privacy.max_rows == 5
    assert not release.options.searches
    assert not (tmp_path / "max-rows").exists()


def test_bounds_of_another_search_are_refused(write, tmp_path):
    spec = read_spec(write(max_rows="{ most = 500 }"))
    plan = spec.bounds_searches[0].plan(spec.privacy)
    ln.find_bounds(plan, tmp_path / "visits.csv", seed=1, out=tmp_path / "max-rows")
    with pytest.raises(ln.InputError, match="found with a seed"):
        read_spec(tmp_path / "spec.toml")
    (tmp_path / "max-rows").rename(tmp_path / "seeded")
    spec.release(tmp_path / "out")
    for max_rows in (
        "{ most = 501 }",
        '{ most = 500, covers = "0.9" }',
        '{ most = 500, share = "1/9" }',
    ):
        with pytest.raises(ln.InputError, match=r"another search than .* max_rows requests"):
            read_spec(write(max_rows=max_rows))
    with pytest.raises(ln.InputError, match=r"another search than .* clip requests"):
        read_spec(write(clip='{ low = 0, most = 1000, found = "max-rows" }'))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_rows": "{ share = 1 }"}, r"\[privacy\] unit max_rows must have 'most'"),
        ({"max_rows": "{ most = 0 }"}, r"\[privacy\] unit max_rows most must be"),
        ({"max_rows": "{ most = 5, low = 1 }"}, "unit max_rows"),
        ({"max_rows": '{ most = 5, share = "1" }'}, "must be less than 1"),
        ({"max_rows": "{ most = 5, found = 1 }"}, "the name of a directory"),
        ({"max_rows": "{ most = 5, covers = 0.2 }"}, "covers must be from 1/2"),
        ({"clip": "{ most = 5 }"}, r"\[measures.pay\] clip must have either 'low'"),
        ({"clip": "{ low = 0, least = 0, most = 5 }"}, "must have either 'low'"),
        ({"clip": "{ low = 0 }"}, "clip must have 'most'"),
        ({"clip": '{ low = 0, most = "0.7" }'}, "multiple"),
        ({"clip": "{ low = 7, most = 7 }"}, "low must be below high"),
        ({"integers": '{ low = "0.5", most = 7 }'}, "whole numbers"),
        ({"bins": "{ low = 0, most = 7 }"}, "bins must have 'count'"),
        ({"bins": "{ low = 0, most = 7, high = 9, count = 4 }"}, "bins"),
        ({"budget": 'epsilon = "least"', "max_rows": "{ most = 5 }"}, "a budget of numbers"),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused(write, settings, message):
    with pytest.raises(ln.InputError, match=message):
        read_spec(write(**settings))


def test_bounds_found_with_a_seed_are_refused_by_a_paid_release(write, tmp_path):
    spec = read_spec(write(max_rows="{ most = 500 }"))
    plan = spec.bounds_searches[0].plan(spec.privacy)
    seeded = ln.find_bounds(plan, tmp_path / "visits.csv", seed=1)
    rehearsal = ln.read_spec(tmp_path / "spec.toml", bounds={"max_rows": seeded})
    with pytest.raises(ln.InputError, match="a paid search for max_rows"):
        rehearsal.release(tmp_path / "out")
    assert not (tmp_path / "visits.ledger").exists()
    assert not rehearsal.release(tmp_path / "out", seed=1).private


@pytest.mark.parametrize(
    ("end", "query", "is_possible"),
    [
        ("low", '"prefix"', True),
        ("low", "{ ranges = [[0, 50], [51, 120]] }", False),
        ("least", '"prefix"', True),
        ("least", "{ ranges = [[2, 3]] }", False),
    ],
)
def test_spec_must_be_possible_for_the_narrowest_bounds(write, end, query, is_possible):
    file = write(integers=f"{{ {end} = 0, most = 120 }}")
    text = file.read_text()
    file.write_text(text.replace('age = "identity"', f"age = {query}"))
    if is_possible:
        assert read_spec(file).domain.kind("age").high == 120
    else:
        with pytest.raises(
            ln.InputError, match="With the narrowest bounds that the searches may find"
        ):
            read_spec(file)


def test_rows_in_a_cell_are_at_most_the_found_rows(write, tmp_path):
    settings = 'max_per_cell = 8, cell = ["age"]'
    spec = read_spec(write(budget='rho = "8"', max_rows=f"{{ most = 500 }}, {settings}"))
    assert spec.privacy.max_per_cell.rows == 8
    release = spec.release(tmp_path / "out")
    assert release.privacy.max_rows == 5
    assert release.privacy.max_per_cell.rows == 5


def test_each_search_and_the_release_have_their_own_directory(write, tmp_path):
    same_name = {"integers": '{ low = 0, most = 9, found = "pay" }', "clip": FOUND["clip"]}
    with pytest.raises(ln.InputError, match="Each search must have its own directory"):
        read_spec(write(**same_name))
    spec = ln.read_spec(write(max_rows="{ most = 500 }"))
    with pytest.raises(ln.InputError, match="not for the result of the search"):
        spec.release(tmp_path / "max-rows")
    assert not (tmp_path / "visits.ledger").exists()
