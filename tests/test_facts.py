"""`describe` lists the same facts for a plan, a release and a ledger."""

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._facts import describe, list_facts
from leastnoise._session import describe_ledger

DOMAIN = ln.Domain(sex=["F", "M"]).as_complete()


@pytest.fixture
def plan():
    return ln.plan(ln.queries(DOMAIN, sex="identity"), ln.PureDP("1/2"))


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP(1)))


def fact_texts(value):
    return {fact.key: fact.text for fact in list_facts(describe(value))}


def test_plan_and_release_state_the_same_facts(plan):
    release = ln.release(plan, pd.DataFrame({"sex": ["F", "M"]}), seed=1)
    planned = fact_texts(plan)
    published = fact_texts(release)
    for key in ("size", "error_ratio", "strategy", "budget", "protects", "risk"):
        assert planned[key] == published[key]
    for key in ("size", "error_ratio", "strategy", "budget", "protects"):
        assert planned[key] in repr(plan)
    assert published["noise"] in repr(release)


def test_ledger_display_states_the_described_facts(plan, ledger):
    ln.release(plan, pd.DataFrame({"sex": ["F", "M"]}), ledger=ledger)
    ledger.set_budget(ln.PureDP("1/4"), share="ann")
    texts = fact_texts(ledger)
    assert texts["spent"] == texts["left"] == "epsilon = 0.5"
    assert texts["share"] == "epsilon = 0.25 for ann; epsilon = 0.25 is left"
    for key in ("dataset", "budget", "spent", "left"):
        assert texts[key] in repr(ledger)
    # Commands state the neighbours in words, and a repr states the value of the setting.
    assert texts["protects"] == "one row (added or removed)"
    assert "one row (add_remove)" in repr(ledger)
    assert describe_ledger(ledger, ledger.entries()) == describe(ledger)


def test_describe_refuses_other_values():
    with pytest.raises(TypeError, match="plans, releases and ledgers; got Domain"):
        describe(DOMAIN)
