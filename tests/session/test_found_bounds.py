"""Private searches for bounds: plans, payment, files, and resumption after a stop."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._plan import BoundsPlan
from leastnoise._publication import DraftDirectory, read_bounds
from leastnoise._session import enter_release
from leastnoise._trusted.kernel import QuantileSelection, SeededEntropy, Series
from session.releasing import manifest, stopped

WHOLE = ln.Privacy(ln.PureDP(2), unit_column="id")
PLAN = ln.plan_max_rows(WHOLE.scaled(Fraction(1, 2)), 1000)
# 90% of the people have 2 rows, and the others have 40.
SIZES = [2] * 1800 + [40] * 200
VISITS = pd.DataFrame({"id": np.repeat(np.arange(len(SIZES)), SIZES)})


@pytest.fixture
def visits(tmp_path):
    VISITS.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path / "visits.csv"


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.create(tmp_path / "visits.ledger", "visits", WHOLE)


def test_found_max_rows_are_paid_published_and_used(tmp_path, visits):
    ledger_path = tmp_path / "visits.ledger"
    bounds = ln.find_bounds(
        PLAN, visits, ledger=ledger_path, out=tmp_path / "bounds", total_privacy=WHOLE
    )
    assert bounds.max_rows == 50
    ledger = ln.Ledger.open(ledger_path)
    (entry,) = ledger.entries()
    assert (entry.state, entry.description) == ("sealed", "bounds of 'rows of a unit'")
    assert str(entry.charge) == "epsilon = 1"
    assert str(ledger.left()) == "epsilon = 1"
    assert read_bounds(tmp_path / "bounds") == bounds
    facts = manifest(tmp_path / "bounds")
    assert facts["private"] is True
    assert facts["low"] == "0"
    assert facts["high"] == "50"
    assert f"differs from this share by at most {PLAN.rank_error} units" in facts["promise"]
    domain = ln.Domain(id=ln.Integers(0, 1999, outside="clip"))
    plan = ln.plan(
        ln.queries(domain, id=ln.total()),
        ln.Privacy(ln.PureDP(1), unit_column="id", max_rows=bounds.max_rows),
    )
    options = ln.Options(searches=[bounds.search_facts()])
    release = ln.release(plan, visits, ledger=ledger, out=tmp_path / "out", options=options)
    (search,) = manifest(tmp_path / "out")["options"]["searches"]
    assert search["attribute"] == "max_rows"
    assert search["high"] == "50"
    assert search["rank_error"] == PLAN.rank_error
    assert search["plan"] == PLAN.digest()
    assert ln.read_release(tmp_path / "out").options == release.options
    report = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "Finding the bounds of max_rows" in report
    with pytest.raises(ln.BudgetError):
        ln.find_bounds(PLAN, visits, ledger=ledger, out=tmp_path / "second")


@pytest.mark.parametrize("drawn", [False, True], ids=["before the draw", "after it"])
@pytest.mark.parametrize("retry", ["resume", "the same call"])
def test_stopped_bounds_are_finished_unpaid(tmp_path, visits, ledger, drawn, retry):
    find = partial(ln.find_bounds, PLAN, visits, ledger=ledger, out=tmp_path / "bounds")
    stop = stopped(DraftDirectory, "publish") if drawn else stopped(Series, "choose_quantile_cells")
    with stop as error:
        find()
    assert "can be finished without paying again" in str(error.value)
    assert not (tmp_path / "bounds").exists()
    if drawn:
        visits.unlink()  # the data are not needed again
    bounds = ln.resume(ledger)[0] if retry == "resume" else find()
    assert read_bounds(tmp_path / "bounds") == bounds
    assert [entry.state for entry in ledger.entries()] == ["sealed"]
    assert str(ledger.left()) == "epsilon = 1"


def test_bounds_can_be_entered_in_an_older_ledger(tmp_path, visits, ledger):
    older = ledger.path.read_bytes()
    ln.find_bounds(PLAN, visits, ledger=ledger, out=tmp_path / "bounds")
    ledger.path.write_bytes(older)
    with pytest.raises(ln.LedgerError, match="it is an older copy"):
        ln.find_bounds(PLAN, visits, ledger=ledger.path, out=tmp_path / "more")
    entry = enter_release(ln.Ledger.open(ledger.path), tmp_path / "bounds")
    assert str(entry.charge) == "epsilon = 1"
    assert entry.plan_digest == PLAN.digest()


def test_changed_bounds_are_refused(tmp_path):
    ln.find_bounds(PLAN, VISITS, seed=1, out=tmp_path / "bounds")
    file = tmp_path / "bounds/manifest.json"
    text = file.read_text(encoding="utf-8")
    for changed in (text.replace('"high": "50"', '"high": "49"'), "{}", "[", "\x00"):
        file.write_text(changed, encoding="utf-8")
        with pytest.raises(ln.InputError, match=r"candidates of their search|damaged|no found"):
            read_bounds(tmp_path / "bounds")


def misses(plan, sizes, searches):
    """Return by how many units each of many searches misses its share."""
    edges = [int(edge) for edge in plan.kind.edges]
    cells = np.searchsorted(edges, sizes) - 1
    selection = QuantileSelection(
        attribute="rows", share=plan.covers, cells=plan.kind.size, epsilon=plan.epsilon
    )
    counts = np.tile(np.bincount(cells, minlength=plan.kind.size), (searches, 1))
    chosen = selection.draw(counts, plan.privacy.distance, SeededEntropy(7))
    target = float(plan.covers) * len(sizes)
    within = counts[0].cumsum()[chosen]
    below = within - counts[0][chosen]
    return np.maximum(np.maximum(below - target, target - within), 0)


def test_rank_error_of_the_plan_is_attained_and_never_exceeded():
    privacy = ln.Privacy(ln.PureDP("1/20"), unit_column="id")
    plan = ln.plan_max_rows(privacy, 1000, covers="1/2")
    # Every bound but one misses the share by exactly the stated error.
    worst = misses(plan, [7] * (2 * plan.rank_error), 2000)
    assert 0.93 <= (worst < plan.rank_error).mean() <= 0.965
    for covers in ("1/2", "0.95"):
        plan = ln.plan_max_rows(privacy, 1000, covers=covers)
        usual = misses(plan, [*np.random.default_rng(1).zipf(1.5, 4000).clip(1, 900)], 500)
        assert (usual <= plan.rank_error).mean() >= 0.95


BUDGETS = [ln.PureDP(1), ln.ZCDP("1/2"), ln.GDP(1), ln.ApproxDP(1, "1e-9")]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_found_range_has_most_values_of_random_rows(tmp_path, budget, neighbours):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"id": np.arange(20000) % 4000, "x": rng.normal(40, 30, 20000).round(1)})
    privacy = ln.Privacy(budget, neighbours, "id", 5)
    plan = ln.plan_bounds("x", privacy, 1000000, least=-1000000, unit="0.1", covers="0.9")
    assert BoundsPlan.from_json(plan.to_json()) == plan
    ledger = ln.Ledger.create(tmp_path / "x.ledger", "x", privacy)
    bounds = ln.find_bounds(plan, frame, ledger=ledger, dataset="x")
    assert [float(bounds.low), float(bounds.high)] == pytest.approx([-20, 100], abs=50)
    assert frame["x"].between(float(bounds.low), float(bounds.high)).mean() > 0.85
    assert ledger.entries()[0].state == "sealed"


def test_upper_bound_of_rows_without_units_is_near_its_share():
    frame = pd.DataFrame({"pay": [None, "x", *range(1, 10001)]})
    plan = ln.plan_bounds("pay", ln.PureDP("1/10"), 1000000, low=0, unit=1, covers="0.9")
    bounds = ln.find_bounds(plan, frame, seed=3)
    assert (bounds.low, bounds.high) == (0, 10000)
    with pytest.raises(ln.InputError, match="Only a search planned by plan_max_rows"):
        bounds.max_rows  # noqa: B018


def test_search_in_empty_table_gives_a_candidate():
    bounds = ln.find_bounds(PLAN, VISITS[:0].astype(object), seed=1)
    assert bounds.high in PLAN.kind.edges


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"low": 0, "least": 0}, "exactly one of two arguments: low"),
        ({}, "exactly one of two arguments: low"),
        ({"low": 9}, "most must be above the lower bound"),
        ({"low": 0, "unit": 2}, "whole multiple of the unit"),
        ({"low": 0, "covers": "1/3"}, "covers must be from 1/2"),
        ({"low": 0, "covers": "0.9999"}, "covers must be from 1/2"),
    ],
)
def test_searches_that_cannot_be_planned_are_refused(settings, message):
    with pytest.raises(ln.InputError, match=message):
        ln.plan_bounds("pay", ln.PureDP(1), 9, **settings)


def test_max_rows_need_a_unit_column_and_their_own_plan():
    with pytest.raises(ln.InputError, match="a column that names the units"):
        ln.plan_max_rows(ln.Privacy(ln.PureDP(1)), 9)
    with pytest.raises(ln.InputError, match="plan must be a plan from"):
        ln.find_bounds(ln.plan(ln.marginals(ln.Domain(a=[1, 2]), ways=1), ln.PureDP(1)), VISITS)
    with pytest.raises(ln.InputError, match=r'closed = "right"'):
        BoundsPlan.from_json(PLAN.to_json().replace('"right"', '"left"'))
    with pytest.raises(ln.InputError, match="max_rows of a search for bounds must be 1"):
        replace(PLAN, privacy=replace(PLAN.privacy, max_rows=2))
    assert json.loads(PLAN.to_json())["covers"] == "19/20"


@pytest.mark.parametrize(
    "plan", [PLAN, ln.plan_bounds("x", ln.ZCDP("1/2"), 10, least=-10)], ids=["one", "two"]
)
def test_audit_of_a_search_for_bounds_holds(plan):
    result = ln.audit(plan, trials=200)
    assert result.is_within_claim
    assert 0 < result.lower_bound <= result.claim
