"""Searches for bounds by commands: the price in the plan, one or two runs, killed runs."""

import json

import pytest

from cli.conftest import assert_contains
from cli.killed_program import run_until_stopped
from leastnoise._session import Ledger

SPEC = """
[source]
path = "visits.csv"
[privacy]
epsilon = "5"
delta = "1e-7"
unit = { column = "id", max_rows = { most = 20, share = "1/5" } }
[domain.agent]
unknown = { most = 40, share = "1/5" }
[measures.pay]
clip = { low = 0, most = 1000, share = "1/5" }
[[workload]]
queries = { agent = "identity" }
sum = "pay"
[plan]
strategy = "identity"
[output]
formats = ["csv"]
"""


@pytest.fixture
def visits(folder):
    """Return a directory with visits by 1500 persons, and a spec."""
    rows = [f"{number // 2},{('curl', 'wget')[number % 2]},{number % 47}" for number in range(3000)]
    (folder / "visits.csv").write_text("id,agent,pay\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "spec.toml").write_text(SPEC, encoding="utf-8")
    return folder


def test_plan_shows_rule_share_and_error_of_bounds(visits, run):
    spec = SPEC.replace('unknown = { most = 40, share = "1/5" }', 'categories = ["curl", "wget"]')
    (visits / "spec.toml").write_text(spec, encoding="utf-8")
    shown = run.succeeds("plan", "spec.toml").out
    parts = (
        "epsilon = 1 and delta = 2e-8 pays for finding max_rows",
        "the smallest limit that 95% of the units do not exceed",
        "the number within the bounds differs from this share by at most",
        "pays for finding clip of pay",
        "by one random row of each unit",
        "for the widest bounds, 0 and 1000",
    )
    assert_contains(" ".join(shown.split()), *parts)
    run.succeeds("categories", "spec.toml")
    assert "were found and paid before" in run("plan", "spec.toml").out
    plan_after = run.json("plan", "spec.toml")
    max_rows, pay = plan_after["searches"]
    assert max_rows["attribute"] == "max_rows"
    assert pay["attribute"] == "clip of pay"
    assert max_rows["covers"] == "0.95"
    assert max_rows["widest"] == ["0", "20"]
    assert max_rows["bounds"] == ["0", "2"]
    assert pay["bounds"] == ["0", "50"]
    assert 5 < max_rows["rank_error"] < 15
    assert plan_after["privacy"]["max_rows"] == 2
    repeated = run.succeeds("categories", "spec.toml").out
    assert "max_rows was found before: at most 2, in max-rows." in repeated


@pytest.mark.parametrize(
    "command",
    [["release", "spec.toml", "--out", "out"], ["resume", "visits.ledger"]],
    ids=["again", "resume"],
)
def test_killed_search_for_bounds_is_finished_by_either_command(visits, start, run, command):
    # tests/session/test_found_bounds.py stops the search at other steps.
    kill = "change(finish, 'write_bounds', before=die)"
    run_until_stopped(start, kill, "release", "spec.toml", "--out", "out")
    ledger = Ledger.open("visits.ledger")
    assert [entry.resumable for entry in ledger.entries()] == [True]
    assert not (visits / "max-rows").exists()
    result = run.succeeds(*command)
    assert {entry.state for entry in ledger.entries()} == {"sealed"}
    assert json.loads((visits / "max-rows/manifest.json").read_text("utf-8"))["high"] == "2"
    if command[0] == "resume":
        assert "is finished: it is in max-rows. Nothing was paid again." in result.out
    else:
        assert "at most 2" in result.out
        assert [entry.description for entry in ledger.entries()] == [
            "bounds of 'rows of a unit'",
            "bounds of 'pay'",
            "categories of 'agent'",
            "1 table, identity",
        ]
        assert ledger.left().epsilon == 0
        report = (visits / "out/report.html").read_text("utf-8")
        assert "Finding the bounds of max_rows" in report


def test_plan_option_needs_finished_searches_for_bounds(visits, run):
    (visits / "plan.json").write_text("{}", encoding="utf-8")
    message = "--plan needs known categories and bounds"
    run.is_refused(message, "release", "spec.toml", "--out", "out", "--plan", "plan.json")
