"""Unknown categories in a spec: price in the plan, one or two commands, and killed runs."""

import json

import pytest

from cli.conftest import assert_contains, files
from cli.killed_program import run_until_stopped
from leastnoise._session import Ledger
from leastnoise._spec import read_spec
from leastnoise._trusted.kernel import _key_search

SPEC = """
[source]
path = "visits.csv"
[privacy]
epsilon = "1"
delta = "1e-7"
unit = { column = "id", max_rows = 2 }
[domain.agent]
unknown = { most = 40, share = "1/5" }
trim = true
outside = "other"
[domain.sex]
categories = ["F", "M"]
[[workload]]
marginals = { ways = 2 }
[plan]
strategy = "identity"
[output]
formats = ["csv"]
"""
KNOWN = "curl,wget,Firefox"


@pytest.fixture
def visits(folder):
    """Return a directory with visits by 1500 persons, and 50 agents with one visitor each."""
    agents = KNOWN.split(",")
    rows = [
        f"{number // 2},{agents[number % 3]}{' ' * (number % 2)},{'FM'[number % 2]}"
        for number in range(3000)
    ]
    rows += [f"{2000 + number},of {number} alone,F" for number in range(50)]
    (folder / "visits.csv").write_text("id,agent,sex\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "spec.toml").write_text(SPEC, encoding="utf-8")
    return folder


def read_answers(folder):
    """Return the text of the file of answers in a folder."""
    (file,) = (folder / "out/answers").glob("*.csv")
    return file.read_text(encoding="utf-8")


@pytest.mark.slow
def test_category_plan_shows_price_and_remaining_budget(visits, run):
    price = "epsilon = 0.2 and delta = 2e-8 pays for finding the categories of agent"
    assert_contains(run.succeeds("plan", "spec.toml").out, price)
    plan_before = run.json("plan", "spec.toml")
    (search,) = plan_before["searches"]
    assert search["most"] == 40
    assert search["found"] is None
    assert search["budget"]["epsilon"] == "1/5"
    assert 100 < search["threshold"] < search["detectable_units"] < 300
    assert plan_before["queries"] == 82
    assert plan_before["privacy"]["budget"] == {
        "definition": "ApproxDP",
        "epsilon": "4/5",
        "delta": "1/12500000",
    }
    run.succeeds("categories", "spec.toml")
    plan_after = run.json("plan", "spec.toml")
    assert plan_after["queries"] == 8
    assert plan_after["searches"][0]["found"] == 3
    assert plan_after["privacy"] == plan_before["privacy"]
    assert "were found and paid before" in run("plan", "spec.toml").out


def test_one_command_finds_categories_and_releases(visits, run):
    assert "3 found" in run.succeeds("release", "spec.toml", "--out", "out").out
    ledger = Ledger.open("visits.ledger")
    assert [entry.description for entry in ledger.entries()] == [
        "categories of 'agent'",
        "1 table, identity",
    ]
    assert str(ledger.entries()[0].charge) == "epsilon = 0.2, delta = 2e-8"
    assert ledger.left().epsilon == 0
    lines = read_answers(visits).splitlines()
    assert {line.split(",")[1] for line in lines[1:]} == {*KNOWN.split(","), "other"}
    (search,) = json.loads((visits / "out/manifest.json").read_text(encoding="utf-8"))["options"][
        "searches"
    ]
    assert search["attribute"] == "agent"
    assert search["number"] == 1
    assert search["charge"] == "epsilon = 0.2, delta = 2e-8"
    assert search["id"] == ledger.entries()[0].id
    assert "Finding the categories of agent" in (visits / "out/report.html").read_text(
        encoding="utf-8"
    )
    assert sum(1 for line in lines[1:] if abs(float(line.split(",")[3]) - 500) < 60) == 6
    repeated = run.succeeds("categories", "spec.toml").out  # nothing is left to be found, or paid
    assert repeated == "The categories of agent were found before: 3, in agent-categories.\n"
    run.is_refused("", "release", "spec.toml", "--out", "more")
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize(
    "command",
    [["release", "spec.toml", "--out", "out"], ["resume", "visits.ledger"]],
    ids=["again", "resume"],
)
def test_killed_category_search_is_finished_by_either_command(visits, start, run, command):
    # tests/session/test_categories.py stops the search at other steps.
    run_until_stopped(
        start,
        "change(finish, 'write_categories', before=die)",
        "release",
        "spec.toml",
        "--out",
        "out",
    )
    ledger = Ledger.open("visits.ledger")
    assert [entry.resumable for entry in ledger.entries()] == [True]
    assert not (visits / "agent-categories").exists()
    result = run.succeeds(*command)
    assert {entry.state for entry in ledger.entries()} == {"sealed"}
    assert read_spec("spec.toml").domain.kind("agent").size == 4
    if command[0] == "resume":
        assert "is finished: it is in agent-categories. Nothing was paid again." in result.out
    else:
        assert ledger.left().epsilon == 0


@pytest.mark.slow
def test_check_leaves_out_categories_not_found_yet(visits, run):
    assert "agent: its categories have not been found yet" in run("check", "spec.toml").out
    run.succeeds("categories", "spec.toml")
    assert (
        "agent: 3,000 (98.4%) matched, 0 (0.0%) null, 50 (1.6%) outside"
        in run("check", "spec.toml").out
    )
    ledger = Ledger.open("visits.ledger")
    assert [entry.state for entry in ledger.entries()] == ["sealed"]
    run.succeeds("plan", "spec.toml", "--out", "plan.json")
    assert (
        "3 found"
        not in run.succeeds("release", "spec.toml", "--out", "out", "--plan", "plan.json").out
    )
    assert ledger.left().epsilon == 0


def test_seeded_category_release_pays_and_writes_nothing(visits, run):
    run.succeeds("release", "spec.toml", "--out", "out", "--seed", "3")
    assert files(visits) == ["out", "people.csv", "people.toml", "spec.toml", "visits.csv"]
    assert "wget" in read_answers(visits)


BOTH = "[privacy] with unknown categories must be a budget of epsilon and delta"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('delta = "1e-7"\n', "", BOTH),
        ('epsilon = "1"\ndelta = "1e-7"', 'rho = "1"', BOTH),
        (
            'epsilon = "1"',
            'epsilon = "least"',
            "got 'least'. The categories of agent must be found first, with a share of the budget",
        ),
        ('"1/5"', '"1"', "must be less than 1"),
        ('"1/5"', "0", "share must be"),
        ("most = 40, ", "", "unknown must have 'most'"),
        ("most = 40", "most = 40, found = 5", "found must be the name of a directory"),
        ("most = 40", "most = 40, near = 5", "unknown has no key 'near'"),
        ("unknown = { most = 40", "integers = [1, 2]\nunknown = { most = 40", "exactly one of"),
        ("trim = true", 'levels.kind = { groups = { a = ["curl"] } }', "no levels"),
    ],
)
def test_category_search_options_are_checked(visits, run, old, new, message):
    (visits / "spec.toml").write_text(SPEC.replace(old, new), encoding="utf-8")
    run.is_refused(message, "plan", "spec.toml")


def test_categories_of_another_search_are_refused(visits, run):
    run.succeeds("categories", "spec.toml")
    (visits / "spec.toml").write_text(SPEC.replace('"1/5"', '"1/4"'), encoding="utf-8")
    run.is_refused(
        "come from another search than the one that [domain.agent] requests",
        "release",
        "spec.toml",
        "--out",
        "out",
    )
    manifest = visits / "agent-categories/manifest.json"
    manifest.write_text(
        json.dumps(json.loads(manifest.read_text(encoding="utf-8")) | {"private": False}),
        encoding="utf-8",
    )
    run.is_refused(
        "found with a seed, which protects nobody", "release", "spec.toml", "--out", "out"
    )


def test_refusals_of_the_commands(visits, run):
    run.is_refused("has no unknown categories", "categories", "people.toml")
    (visits / "plan.json").write_text("{}", encoding="utf-8")
    run.is_refused(
        "--plan needs known categories",
        "release",
        "spec.toml",
        "--out",
        "out",
        "--plan",
        "plan.json",
    )
    (visits / "spec.toml").write_text(SPEC.replace('path = "visits.csv"', ""), encoding="utf-8")
    run.is_refused("A search must have data", "categories", "spec.toml")


def test_empty_category_search_is_paid_and_reported(visits, run):
    (visits / "visits.csv").write_text("id,agent,sex\n1,curl,F\n", encoding="utf-8")
    result = run("release", "spec.toml", "--out", "out")
    assert result.code == 4
    assert_contains(result.err, "No category was found", "epsilon = 0.2")
    assert not (visits / "out").exists()


def test_audit_covers_the_category_search(visits, run, monkeypatch):
    shown = run.succeeds("audit", "spec.toml", "--trials", "200")
    assert shown.err == ""
    search_part = shown.out[shown.out.index("The search for categories of 'agent'") :]
    # Chance decides which of these tests has the largest bound. This test is not listed.
    tests_of_all_keys = ("all keys that nobody else has", "all keys that others have too")
    assert sum(name not in search_part for name in tests_of_all_keys) == 1
    parts = ("epsilon: at most 0.2", "a key at the threshold", "no bound is above its claim")
    assert_contains(search_part, *parts)
    for noise, sampler in list(_key_search._SAMPLERS.items()):
        monkeypatch.setitem(
            _key_search._SAMPLERS,
            noise,
            lambda top, bottom, *arguments, draw=sampler: draw(top, bottom * 2, *arguments),
        )
    result = run("audit", "spec.toml", "--trials", "1000", "--json")
    output = json.loads(result.out)
    assert result.code == 70
    assert output["is_within_claim"] is True
    assert output["searches"]["agent"]["is_within_claim"] is False
