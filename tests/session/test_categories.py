"""Tests of private searches for categories: price, payment, files, and resumption."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._plan import CategoryPlan
from leastnoise._publication import read_categories
from leastnoise._release import NO_RECEIPT
from leastnoise._session import _release_job, enter_release
from leastnoise._trusted.kernel import KeySearch, Series, outcome_from_text
from session.releasing import manifest, stopped

WHOLE_BUDGET = ln.Privacy(ln.ApproxDP(1, "1e-6"))
PLAN = ln.plan_categories("agent", ln.Unknown(9, outside="other"), ln.ApproxDP("1/2", "1e-9"))
PEOPLE = pd.DataFrame(
    {
        "agent": [
            *["curl"] * 200,
            *["wget"] * 150,
            *["rare"] * 3,
            *(f"alone {number}" for number in range(300)),
        ]
    }
)


@pytest.fixture
def people(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.create(tmp_path / "people.ledger", "people", WHOLE_BUDGET)


@pytest.fixture
def categories(tmp_path, people, ledger):
    """Return the categories of a paid search, which is published in `agents`."""
    return ln.find_categories(PLAN, people, ledger=ledger, out=tmp_path / "agents")


@pytest.fixture
def counts_plan(categories):
    """Return a plan of the counts of the categories, for the rest of the budget."""
    domain = ln.Domain(agent=categories.kind())
    return ln.plan(ln.marginals(domain, ways=1), ln.ApproxDP("1/2", "9e-7"))


def test_search_creates_and_charges_its_ledger(tmp_path, people):
    path = tmp_path / "people.ledger"
    ln.find_categories(
        PLAN, people, ledger=path, out=tmp_path / "agents", total_privacy=WHOLE_BUDGET
    )
    ledger = ln.Ledger.open(path)
    (entry,) = ledger.entries()
    assert entry.state == "sealed"
    assert entry.description == "categories of 'agent'"
    assert str(entry.charge) == "epsilon = 0.5, delta = 1e-9"
    assert str(ledger.left()).startswith("epsilon = 0.5, delta = 9.99e-7, mu squared =")


def test_search_publishes_its_categories(tmp_path, categories):
    assert categories.texts == ("curl", "wget")
    assert abs(categories.units[0] - 200) < 60
    assert read_categories(tmp_path / "agents") == categories
    record = manifest(tmp_path / "agents")
    assert record["private"] is True
    assert record["receipt"]["number"] == 1
    assert record["plan"] == json.loads(PLAN.to_json())
    rate = f"A search finds a category of {PLAN.detectable_units} units in 95 of 100 cases"
    assert rate in record["promise"]
    assert "alone" not in (tmp_path / "agents/categories.csv").read_text(encoding="utf-8")


def test_search_is_paid_published_and_used(tmp_path, people, ledger, categories, counts_plan):
    options = ln.Options(searches=[categories.search_facts()])
    release = ln.release(counts_plan, people, ledger=ledger, out=tmp_path / "out", options=options)
    (search,) = manifest(tmp_path / "out")["options"]["searches"]
    assert search["attribute"] == "agent"
    assert search["plan"] == PLAN.digest()
    assert search["head"] == categories.receipt.payment.head
    assert ln.read_release(tmp_path / "out").options == release.options
    assert release.answers["cell"].tolist() == ["agent=curl", "agent=wget", "agent=other"]

    with pytest.raises(ln.BudgetError):
        ln.find_categories(PLAN, people, ledger=ledger, out=tmp_path / "second")
    with pytest.raises(ln.InputError, match="must not exist yet"):
        ln.find_categories(PLAN, people, ledger=ledger, out=tmp_path / "agents")


def test_search_of_another_data_set_is_refused(people, ledger, categories, counts_plan):
    payment = replace(categories.receipt.payment, dataset="other")
    receipt = replace(categories.receipt, payment=payment)
    options = ln.Options(searches=[replace(categories.search_facts(), receipt=receipt)])
    message = "found in the data set 'other'; got a release of 'people'"
    with pytest.raises(ln.InputError, match=message):
        ln.release(counts_plan, people, ledger=ledger, options=options)


def test_older_ledger_copy_gets_the_cost_of_a_search(tmp_path, people, ledger):
    older_copy = ledger.path.read_bytes()
    ln.find_categories(PLAN, people, ledger=ledger, out=tmp_path / "agents")
    ledger.path.write_bytes(older_copy)
    message = r"does not know the release in .*agents, which was paid from it: it is an older copy"
    with pytest.raises(ln.LedgerError, match=message):
        ln.find_categories(PLAN, people, ledger=ledger.path, out=tmp_path / "more")

    copied_ledger = ln.Ledger.open(ledger.path)
    entry = enter_release(copied_ledger, tmp_path / "agents")
    assert str(entry.charge) == "epsilon = 0.5, delta = 1e-9"
    assert entry.plan_digest == PLAN.digest()
    assert str(copied_ledger.left()).startswith("epsilon = 0.5, delta = 9.99e-7, mu squared =")

    ln.find_categories(PLAN, PEOPLE, seed=1, out=tmp_path / "seeded")
    with pytest.raises(ln.InputError, match="no ledger paid for it"):
        enter_release(copied_ledger, tmp_path / "seeded")


def test_changed_lists_are_refused(tmp_path):
    out = tmp_path / "agents"
    ln.find_categories(PLAN, PEOPLE, seed=1, out=out)
    categories = read_categories(out)
    assert not categories.private
    assert categories.receipt == NO_RECEIPT
    with (out / "categories.csv").open("a", encoding="utf-8") as file:
        file.write("alone 7,50\n")
    with pytest.raises(ln.InputError, match="were changed since they were found"):
        read_categories(out)
    (out / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ln.InputError, match="damaged"):
        read_categories(out)


@pytest.mark.parametrize("drawn", [False, True], ids=["before the draw", "after it"])
@pytest.mark.parametrize("finish_by", ["resume", "the same call"])
def test_stopped_search_is_finished_unpaid(tmp_path, people, ledger, drawn, finish_by):
    find = partial(ln.find_categories, PLAN, people, ledger=ledger, out=tmp_path / "agents")
    with stopped(_release_job, "write_categories") if drawn else stopped(Series, "find") as error:
        find()
    assert "can be finished without paying again" in str(error.value)
    assert not (tmp_path / "agents").exists()
    steps = ledger.pending(ledger.entries()[0]).steps
    assert bool(steps) == drawn
    if drawn:
        people.unlink()  # the data are not needed again
    categories = ln.resume(ledger)[0] if finish_by == "resume" else find()
    assert read_categories(tmp_path / "agents") == categories
    assert categories.texts == ("curl", "wget")
    assert all(tuple(outcome_from_text(step.outcome).units) == categories.units for step in steps)
    assert [entry.state for entry in ledger.entries()] == ["sealed"]
    assert str(ledger.left()).startswith("epsilon = 0.5, delta = 9.99e-7, mu squared =")


def test_search_in_memory_needs_its_data_again(ledger):
    with stopped(Series, "find"):
        ln.find_categories(PLAN, PEOPLE, ledger=ledger)
    with pytest.raises(ln.PaidError, match="its data did not come from a file"):
        ln.resume(ledger)
    (categories,) = ln.resume(ledger, source=PEOPLE)
    assert categories.texts == ("curl", "wget")


def test_search_stopped_while_drawing_is_absent(tmp_path, ledger):
    with stopped(KeySearch, "draw") as error:
        ln.find_categories(PLAN, PEOPLE, ledger=ledger, out=tmp_path / "agents")
    assert "absent" in str(error.value)
    assert ln.resume(ledger) == []
    assert not (tmp_path / "agents").exists()


def test_search_is_not_resumed_with_another_rule(ledger, monkeypatch):
    with stopped(_release_job, "FoundCategories"):
        ln.find_categories(PLAN, PEOPLE, ledger=ledger)
    other_search = KeySearch(attribute="agent", rule=PLAN.rule, most=10)
    monkeypatch.setattr(_release_job, "KeySearch", lambda **_: other_search)
    with pytest.raises(ln.PaidError, match="other steps than the ledger recorded"):
        ln.resume(ledger)


@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP(1)])
def test_budget_without_delta_pays_for_no_search(tmp_path, budget):
    message = r"must be ApproxDP.*Under delta = 0 the search would find nothing"
    with pytest.raises(ln.InputError, match=message):
        ln.plan_categories("agent", ln.Unknown(9), budget)
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(budget))
    with pytest.raises(ln.InputError):
        ln.find_categories(PLAN, PEOPLE, ledger=ledger)
    assert ledger.entries() == ()


PERSON_LEDGER = ln.Privacy(ln.ApproxDP(1, "1e-6"), unit_column="id", max_rows=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ledger": "people.ledger"}, r"no ledger at .*the argument total_privacy"),
        ({}, "must have a ledger"),
        ({"ledger": "people.ledger", "seed": 1}, "leave out the ledger or the seed"),
    ],
)
def test_search_without_a_way_to_pay_is_refused(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ln.InputError, ln.LedgerError), match=message):
        ln.find_categories(PLAN, PEOPLE, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_invalid_search_plans_are_refused():
    with pytest.raises(ln.InputError, match=r"a plan from leastnoise\.plan_categories"):
        ln.find_categories("agent", PEOPLE, seed=1)
    with pytest.raises(ln.InputError, match=r"kind of 'agent' must be Unknown"):
        ln.plan_categories("agent", ln.Categories(["a"]), WHOLE_BUDGET)


def test_refusals_spend_nothing(tmp_path):
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", PERSON_LEDGER)
    with pytest.raises(ln.LeastNoiseError, match="id"):
        ln.find_categories(PLAN, PEOPLE, ledger=ledger)
    assert ledger.entries() == ()


def test_plan_is_read_back_and_proved_again():
    value = json.loads(PLAN.to_json())
    assert CategoryPlan.from_json(PLAN.to_json()) == PLAN
    value["rule"]["threshold"] -= 1
    with pytest.raises(ln.InputError, match="must provably satisfy its budget"):
        CategoryPlan.from_json(json.dumps(value))
    for changed_plan in (
        {**value, "search": "2"},
        {**value, "rule": {}},
        {**value, "attribute": {"name": "a", "kind": "coded", "size": 3}},
    ):
        with pytest.raises(ln.InputError):
            CategoryPlan.from_json(json.dumps(changed_plan))


def test_plan_without_categories_has_an_error_only(tmp_path):
    plan, larger_plan = (
        ln.plan(ln.marginals(ln.Domain(agent=ln.Unknown(most)), ways=1), ln.ApproxDP(1, "1e-6"))
        for most in (50, 60)
    )
    assert plan.workload.rows == 50
    assert larger_plan.digest() != plan.digest()
    with pytest.raises(ln.InputError, match="not known yet"):
        ln.release(plan, PEOPLE, ledger=tmp_path / "people.ledger")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "max_rows"), [("1/2", 1), ("2", 30)])
def test_categories_are_found_at_the_planned_rate(epsilon, max_rows):
    """A category with ``detectable_units`` units is found in 95 of 100 searches, or a few more."""
    privacy = ln.Privacy(ln.ApproxDP(epsilon, "1e-7"), unit_column="id", max_rows=max_rows)
    plan = ln.plan_categories("agent", ln.Unknown(10**4), privacy)
    categories = 300
    keys = np.repeat([f"key {number}" for number in range(categories)], plan.detectable_units)
    frame = pd.DataFrame({"id": np.arange(len(keys)), "agent": keys})
    searches = 3
    found = sum(len(ln.find_categories(plan, frame, seed=seed).texts) for seed in range(searches))
    assert 0.925 < found / (searches * categories) < 0.995
    assert plan.threshold < plan.detectable_units


@pytest.mark.parametrize("seed", [None, 1])
def test_column_of_lists_is_refused_before_payment(ledger, seed):
    lists = pa.table({"agent": [["curl"], ["wget"]]})
    payment = {"ledger": ledger} if seed is None else {"seed": seed}
    with pytest.raises(ln.InputError, match="must hold numbers, text or dates"):
        ln.find_categories(PLAN, lists, **payment)
    assert ledger.entries() == ()
