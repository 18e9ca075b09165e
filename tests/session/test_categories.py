"""Private searches for categories: price, payment, files, and resumption after a stop."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._plan import CategoryPlan
from leastnoise._release import NO_RECEIPT, read_categories
from leastnoise._session import _release_job, enter_release
from leastnoise._trusted.kernel import KeySearch, Series, outcome_from_text
from session.releasing import manifest, stopped

WHOLE = ln.Privacy(ln.ApproxDP(1, "1e-6"))
PLAN = ln.plan_categories("agent", ln.Unknown(9, outside="other"), ln.ApproxDP("1/2", "1e-9"))
PEOPLE = pd.DataFrame(
    {
        "agent": ["curl"] * 200
        + ["wget"] * 150
        + ["rare"] * 3
        + [f"alone {number}" for number in range(300)]
    }
)


@pytest.fixture
def people(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture
def book(tmp_path) -> ln.Ledger:
    return ln.Ledger.create(tmp_path / "people.ledger", "people", WHOLE)


def test_search_is_paid_published_and_used(tmp_path, people) -> None:
    categories = ln.find_categories(
        PLAN, people, ledger=tmp_path / "people.ledger", out=tmp_path / "agents", whole=WHOLE
    )
    assert categories.texts == ("curl", "wget")
    assert abs(categories.units[0] - 200) < 60
    book = ln.Ledger.open(tmp_path / "people.ledger")
    (entry,) = book.entries()
    assert (entry.state, entry.description) == ("sealed", "categories of 'agent'")
    assert str(entry.charge) == "epsilon = 0.5, delta = 1e-9"
    assert str(book.left()).startswith("epsilon = 0.5, delta = 9.99e-7, mu squared =")
    assert read_categories(tmp_path / "agents") == categories
    record = manifest(tmp_path / "agents")
    assert (record["private"], record["receipt"]["number"], record["plan"]) == (
        True,
        1,
        json.loads(PLAN.to_json()),
    )
    assert (
        f"A search finds a category of {PLAN.detectable_units} units in 95 of 100 cases"
        in record["promise"]
    )
    assert "alone" not in (tmp_path / "agents/categories.csv").read_text(encoding="utf-8")
    plan = ln.plan(
        ln.marginals(ln.Domain(agent=categories.kind()), ways=1), ln.ApproxDP("1/2", "9e-7")
    )
    payment = replace(categories.receipt.payment, dataset="other")
    other_search = replace(
        categories.search_facts(), receipt=replace(categories.receipt, payment=payment)
    )
    with pytest.raises(
        ln.InputError, match=r"found in the data set 'other'; got a release of 'people'"
    ):
        ln.release(
            plan,
            people,
            ledger=book,
            options=ln.Options(searches=[other_search]),
        )
    release = ln.release(
        plan,
        people,
        ledger=book,
        out=tmp_path / "out",
        options=ln.Options(searches=[categories.search_facts()]),
    )
    (named,) = manifest(tmp_path / "out")["options"]["searches"]
    assert (named["attribute"], named["plan"], named["head"]) == (
        "agent",
        PLAN.digest(),
        categories.receipt.payment.head,
    )
    assert ln.read_release(tmp_path / "out").options == release.options
    assert release.answers["cell"].tolist() == ["agent=curl", "agent=wget", "agent=other"]
    with pytest.raises(ln.BudgetError):
        ln.find_categories(PLAN, people, ledger=book, out=tmp_path / "again")
    with pytest.raises(ln.InputError, match="must not exist yet"):
        ln.find_categories(PLAN, people, ledger=book, out=tmp_path / "agents")


def test_older_ledger_copy_gets_the_cost_of_a_search(tmp_path, people, book) -> None:
    older = book.path.read_bytes()
    ln.find_categories(PLAN, people, ledger=book, out=tmp_path / "agents")
    book.path.write_bytes(older)
    with pytest.raises(
        ln.LedgerError,
        match=r"does not know the release in .*agents, which was paid from it: it is an older copy",
    ):
        ln.find_categories(PLAN, people, ledger=book.path, out=tmp_path / "more")
    copied_ledger = ln.Ledger.open(book.path)
    entry = enter_release(copied_ledger, tmp_path / "agents")
    assert (str(entry.charge), entry.plan_digest) == ("epsilon = 0.5, delta = 1e-9", PLAN.digest())
    assert str(copied_ledger.left()).startswith("epsilon = 0.5, delta = 9.99e-7, mu squared =")
    ln.find_categories(PLAN, PEOPLE, seed=1, out=tmp_path / "seeded")
    with pytest.raises(ln.InputError, match="no ledger paid for it"):
        enter_release(copied_ledger, tmp_path / "seeded")


def test_changed_lists_are_refused(tmp_path) -> None:
    out = tmp_path / "agents"
    ln.find_categories(PLAN, PEOPLE, seed=1, out=out)
    categories = read_categories(out)
    assert (categories.private, categories.receipt) == (False, NO_RECEIPT)
    with (out / "categories.csv").open("a", encoding="utf-8") as file:
        file.write("alone 7,50\n")
    with pytest.raises(ln.InputError, match="were changed since they were found"):
        read_categories(out)
    (out / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ln.InputError, match="damaged"):
        read_categories(out)


@pytest.mark.parametrize("drawn", [False, True], ids=["before the draw", "after it"])
@pytest.mark.parametrize("again", ["resume", "the same call"])
def test_stopped_search_is_finished_unpaid(tmp_path, people, book, drawn: bool, again: str) -> None:
    find = partial(ln.find_categories, PLAN, people, ledger=book, out=tmp_path / "agents")
    with stopped(_release_job, "write_categories") if drawn else stopped(Series, "find") as error:
        find()
    assert "can be finished without paying again" in str(error.value)
    assert not (tmp_path / "agents").exists()
    steps = book.pending(book.entries()[0]).steps
    assert bool(steps) == drawn
    if drawn:
        people.unlink()  # the data are not needed again
    categories = ln.resume(book)[0] if again == "resume" else find()
    assert read_categories(tmp_path / "agents") == categories
    assert categories.texts == ("curl", "wget")
    assert all(tuple(outcome_from_text(step.outcome).units) == categories.units for step in steps)
    assert [entry.state for entry in book.entries()] == ["sealed"]
    assert str(book.left()).startswith("epsilon = 0.5, delta = 9.99e-7, mu squared =")


def test_search_in_memory_needs_its_data_again(book) -> None:
    with stopped(Series, "find"):
        ln.find_categories(PLAN, PEOPLE, ledger=book)
    with pytest.raises(ln.PaidError, match="its data did not come from a file"):
        ln.resume(book)
    (categories,) = ln.resume(book, source=PEOPLE)
    assert categories.texts == ("curl", "wget")


def test_search_stopped_while_drawing_is_absent(tmp_path, book) -> None:
    with stopped(KeySearch, "draw") as error:
        ln.find_categories(PLAN, PEOPLE, ledger=book, out=tmp_path / "agents")
    assert "absent" in str(error.value)
    assert ln.resume(book) == []
    assert not (tmp_path / "agents").exists()


def test_search_is_not_resumed_with_another_rule(book, monkeypatch) -> None:
    with stopped(_release_job, "FoundCategories"):
        ln.find_categories(PLAN, PEOPLE, ledger=book)
    other_search = KeySearch(attribute="agent", rule=PLAN.rule, most=10)
    monkeypatch.setattr(_release_job, "KeySearch", lambda **_: other_search)
    with pytest.raises(ln.PaidError, match="other steps than the ledger recorded"):
        ln.resume(book)


@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP(1)])
def test_budget_without_delta_pays_for_no_search(tmp_path, budget) -> None:
    with pytest.raises(
        ln.InputError, match=r"must be ApproxDP.*Nobody can be found under delta = 0"
    ):
        ln.plan_categories("agent", ln.Unknown(9), budget)
    book = ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(budget))
    with pytest.raises(ln.InputError):
        ln.find_categories(PLAN, PEOPLE, ledger=book)
    assert book.entries() == ()


def test_refusals_spend_nothing(tmp_path) -> None:
    ledger, find = tmp_path / "people.ledger", partial(ln.find_categories, PLAN, PEOPLE)
    for refused, message in (
        (partial(find, ledger=ledger), r"no ledger at .*the argument whole"),
        (find, "must have a ledger"),
        (partial(find, ledger=ledger, seed=1), "leave out the ledger or the seed"),
        (
            partial(ln.find_categories, "agent", PEOPLE, seed=1),
            r"a plan from leastnoise\.plan_categories",
        ),
        (
            partial(ln.plan_categories, "agent", ln.Categories(["a"]), WHOLE),
            r"kind of 'agent' must be Unknown",
        ),
    ):
        with pytest.raises((ln.InputError, ln.LedgerError), match=message):
            refused()
    assert list(tmp_path.iterdir()) == []
    book = ln.Ledger.create(
        ledger, "people", ln.Privacy(ln.ApproxDP(1, "1e-6"), unit_column="id", max_rows=2)
    )
    with pytest.raises(ln.LeastNoiseError, match="id"):
        find(ledger=book)
    assert book.entries() == ()


def test_plan_is_read_back_and_proved_again() -> None:
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


def test_plan_without_categories_has_an_error_only(tmp_path) -> None:
    plan = ln.plan(ln.marginals(ln.Domain(agent=ln.Unknown(50)), ways=1), ln.ApproxDP(1, "1e-6"))
    assert plan.workload.rows == 50
    assert (
        ln.plan(
            ln.marginals(ln.Domain(agent=ln.Unknown(60)), ways=1), ln.ApproxDP(1, "1e-6")
        ).digest()
        != plan.digest()
    )
    with pytest.raises(ln.InputError, match="not known yet"):
        ln.release(plan, PEOPLE, ledger=tmp_path / "people.ledger")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("epsilon", "max_rows"), [("1/2", 1), ("2", 30)])
def test_categories_are_found_at_the_planned_rate(epsilon: str, max_rows: int) -> None:
    """A category with ``detectable_units`` units is found in 95 of 100 searches, or a few more."""
    plan = ln.plan_categories(
        "agent",
        ln.Unknown(10**4),
        ln.Privacy(ln.ApproxDP(epsilon, "1e-7"), unit_column="id", max_rows=max_rows),
    )
    categories = 300
    keys = np.repeat([f"key {number}" for number in range(categories)], plan.detectable_units)
    frame = pd.DataFrame({"id": np.arange(len(keys)), "agent": keys})
    share = sum(len(ln.find_categories(plan, frame, seed=seed).texts) for seed in range(3)) / (
        3 * categories
    )
    assert 0.925 < share < 0.995
    assert plan.threshold < plan.detectable_units


@pytest.mark.parametrize("seed", [None, 1])
def test_column_of_lists_is_refused_before_payment(book, seed) -> None:
    lists = pa.table({"agent": [["curl"], ["wget"]]})
    payment = {"ledger": book} if seed is None else {"seed": seed}
    with pytest.raises(ln.InputError, match="must hold numbers, text or dates"):
        ln.find_categories(PLAN, lists, **payment)
    assert book.entries() == ()
