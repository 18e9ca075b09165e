"""Quantiles and distribution functions count values beyond the bounds under every policy."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._session import plan_spec
from leastnoise._spec import parse_spec
from leastnoise._texts import load_catalogue

GENERATOR = np.random.default_rng(1)
INCOMES = GENERATOR.lognormal(9.8, 0.8, 4000)
ROWS = pd.DataFrame({"income": INCOMES, "shop": GENERATOR.choice(["a", "b"], 4000)})
ROWS.loc[::10, "income"] = None
VALUES = ROWS["income"].dropna()
LEVEL = {
    "half": {
        f"[{low}, {low + 5000}{']' if low == 25000 else ')'}": "x" for low in range(0, 30000, 5000)
    }
}


def incomes(outside, null="drop"):
    kind = ln.Bins(0, 30000, 120, outside=outside, null=null)
    return ln.Domain(income=kind, shop=["a", "b"])


def release_of(workload, rows=ROWS):
    return ln.release(ln.plan(workload, ln.PureDP(20)), rows, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("null", ["drop", "other"])
@pytest.mark.parametrize("outside", ["drop", "other", "clip"])
def test_quantiles_count_values_beyond_the_bounds(outside, null):
    domain = incomes(outside, null)
    workload = ln.quantile_queries(domain, "income", ["0.25", "0.5", "0.9"])
    table = release_of(workload + ln.queries(domain, shop="identity")).statistics[0]
    truth = np.quantile(VALUES, [0.25, 0.5])
    assert np.abs(table.values[:2] - truth).max() < 300
    assert (table.low[:2] <= truth).all()
    assert (truth <= table.high[:2]).all()
    assert table.extra_columns["may_be_above"].tolist() == [0, 0, 1]
    assert table.extra_columns["may_be_below"].tolist() == [0, 0, 0]
    assert table.high[2] == 30000 < np.quantile(VALUES, 0.9)
    cells = [row[-1] for row in table.format_rows(load_catalogue(), 3)]
    assert [text.endswith(", or more") for text in cells] == [False, False, True]


@pytest.mark.parametrize("outside", ["drop", "other", "clip"])
def test_low_quantiles_may_lie_below_the_bounds(outside):
    domain = ln.Domain(income=ln.Bins(10000, 90000, 100, outside=outside))
    workload = ln.quantile_queries(domain, "income", ["0.1", "0.5"])
    table = release_of(workload).statistics[0]
    assert table.extra_columns["may_be_below"].tolist() == [1, 0]
    assert table.format_rows(load_catalogue(), 2)[0][-1].endswith(", or less")
    assert abs(table.values[1] - np.median(VALUES)) < 800


@pytest.mark.slow
@pytest.mark.parametrize("outside", ["drop", "other", "clip"])
def test_cdfs_count_values_beyond_the_bounds(outside):
    table = release_of(ln.cdf_queries(incomes(outside), "income", by=["shop"])).statistics[0]
    for number, shop in enumerate("ab"):
        values = VALUES[ROWS.loc[VALUES.index, "shop"] == shop]
        ends = np.arange(1, 120) * 250.0
        truth = np.array([(values <= end).mean() for end in ends])
        assert np.abs(table.values[number, :-1] - truth).max() < 0.02
    assert (table.values[:, -1] == 1).all()


SPEC = """
[privacy]
epsilon = 20
[domain.income]
bins = {{ low = 0, high = 30000, count = 120 }}
{outside}
[domain.shop]
categories = ["a", "b"]
{parts}
"""
QUANTILES = "[[workload]]\nquantiles = { of = 'income', at = ['0.5'] }\n"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MEDIAN(income) FROM t",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) FROM t",
        "SELECT COUNT(*), QUANTILE_CONT(income, 0.5) FROM t",
    ],
)
def test_medians_of_sql_count_values_beyond_the_bounds(sql):
    parts = f'[[workload]]\nsql = "{sql}"\n'
    spec = parse_spec(SPEC.format(outside="", parts=parts), Path())
    release = ln.release(plan_spec(spec), ROWS, seed=1)
    assert abs(float(release.statistics[0].values.reshape(-1)[0]) - np.median(VALUES)) < 300


@pytest.mark.parametrize("outside", ["", "outside = 'other'"])
@pytest.mark.parametrize(
    "table",
    [
        "queries = { income = 'identity' }",
        "queries = { income = 'prefix' }",
        "marginals = { ways = 2 }",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_quantiles_refuse_tables_that_drop_values(outside, table, first):
    parts = [QUANTILES, f"[[workload]]\n{table}\n"]
    text = SPEC.format(outside=outside, parts="".join(parts if first else reversed(parts)))
    does = "counts them in other" if outside else "leaves them out"
    message = (
        f"values beyond the bounds of income, and the table .*income.* {does}.*outside = .clip."
    )
    with pytest.raises(ln.InputError, match=message):
        parse_spec(text, Path())


@pytest.mark.slow
def test_clipped_tables_stand_beside_quantiles():
    parts = QUANTILES + "[[workload]]\nmarginals = { ways = 2 }\n"
    spec = parse_spec(SPEC.format(outside="outside = 'clip'", parts=parts), Path())
    release = ln.release(plan_spec(spec), ROWS, seed=1)
    assert abs(float(release.statistics[0].values.reshape(-1)[0]) - np.median(VALUES)) < 600


def test_quantile_release_answers_the_first_domain():
    domain = incomes("drop")
    workload = ln.quantile_queries(domain, "income", ["0.5"], by=["shop"])
    release = release_of(workload + ln.queries(domain, shop="identity"))
    (table,) = release.answer(ln.queries(domain, shop="identity"))
    expected = ROWS.groupby("shop").size().to_numpy()
    assert np.abs(np.asarray(table.answer) - expected).max() < 60
    with pytest.raises(ln.InputError, match="must use the domain of the release"):
        release.answer(ln.queries(ln.Domain(shop=["a", "b"]), shop="identity"))


def test_levels_survive_clipped_values():
    kind = ln.Bins(0, 30000, 6, outside="other", levels=LEVEL)
    clipped = kind.clipped()
    assert clipped.level("half").labels == ("x",)
    assert kind.size == 7
    assert clipped.size == 6
    with_null = ln.Bins(0, 30000, 6, outside="other", null="other", levels=LEVEL).clipped()
    assert with_null.level("half").labels == ("x", "other")
    assert clipped.clipped() is clipped


def test_plan_of_quantiles_that_drop_values_is_refused():
    plan = ln.plan(ln.quantile_queries(incomes("drop"), "income", ["0.5"]), ln.PureDP(1))
    text = plan.to_json()
    assert '"outside": "clip"' in text or '"outside":"clip"' in text
    changed = text.replace('"outside": "clip"', '"outside": "drop"')
    changed = changed.replace('"outside":"clip"', '"outside":"drop"')
    with pytest.raises(ln.InputError, match="must count values beyond the bounds of income"):
        ln.Plan.from_json(changed)
