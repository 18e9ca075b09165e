"""The cache of plans: reuse, checks of entries, privacy, and how it is switched off."""

import hashlib
import json
import sys
from collections.abc import Callable

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._cli import main
from leastnoise._mechanisms import Search
from leastnoise._planning import _plan_cache
from leastnoise._trusted.accounting import Privacy, PureDP

DOMAIN = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 7)).as_complete()
WORKLOAD = ln.queries(DOMAIN, age="prefix") + ln.marginals(DOMAIN, ways=1, of=["sex"])
SHORT = (
    4.0  # seconds: enough for all strategies by their estimates, so that the clock decides nothing
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Keep plans in a folder of the test, and return the folder."""
    monkeypatch.setenv("LEASTNOISE_CACHE", "on")
    monkeypatch.setenv("LEASTNOISE_CACHE_DIR", str(tmp_path / "plans"))
    return tmp_path / "plans"


def entries(cache):
    return {path.name: path.read_bytes() for path in cache.iterdir()} if cache.exists() else {}


def plan_and_tried(**options):
    """Return a plan, and what was tried for it: nothing if it is from the cache."""
    tried: list[str] = []
    budget = options.pop("budget", ln.PureDP(1))
    options = {"seconds": SHORT, **options}
    plan = ln.plan(WORKLOAD, budget, progress=tried.append, **options)
    return plan, tried


@pytest.mark.slow
def test_compare_reuses_candidates_of_a_plan(cache, monkeypatch):
    plan, tried = plan_and_tried()
    assert len(tried) > 10
    before = entries(cache)
    assert len(before) == 1
    plan_from_cache, tried = plan_and_tried()
    assert plan_from_cache.to_json() == plan.to_json()
    assert tried == []
    assert plan_from_cache.workload is WORKLOAD

    candidates = ln.compare(WORKLOAD, ln.PureDP(1), tried.append, seconds=SHORT)
    assert not tried
    assert candidates[0].plan is not None
    assert candidates[0].plan.to_json() == plan.to_json()
    assert entries(cache) == before
    monkeypatch.setenv("LEASTNOISE_CACHE", "off")
    new_candidates = ln.compare(WORKLOAD, ln.PureDP(1), seconds=SHORT)
    assert list(map(facts_of, candidates)) == list(map(facts_of, new_candidates))
    assert entries(cache) == before


def facts_of(candidate):
    """Return the facts of a candidate that the cache must keep."""
    return candidate.strategy, candidate.total, candidate.reason, candidate.useful_seconds


@pytest.mark.slow
def test_compare_tries_strategies_the_plan_skipped(cache):
    workload = ln.queries(ln.Domain(a=ln.Integers(0, 255)), a="prefix")
    budget = ln.ZCDP("1/1000")
    first = ln.plan(workload, budget, seconds=2.0)
    progress: list[str] = []
    compared = ln.compare(workload, budget, progress.append, seconds=2.0)
    assert "tilted" in {
        candidate.strategy
        for candidate in compared
        if candidate.needless and candidate.plan is not None
    }
    assert "tilted" in progress
    assert len(entries(cache)) == 1
    progress.clear()
    assert (
        ln.plan(workload, budget, progress=progress.append, seconds=2.0).to_json()
        == first.to_json()
    )
    compared_again = ln.compare(workload, budget, progress.append, seconds=2.0)
    assert [(candidate.strategy, candidate.total) for candidate in compared_again] == [
        (candidate.strategy, candidate.total) for candidate in compared
    ]
    assert not progress


def test_cache_key_covers_all_inputs_of_a_plan(cache, monkeypatch):
    budgets = (ln.PureDP("1/2"), ln.ZCDP("1/2"), ln.Privacy(ln.PureDP(1), "replace"))
    different = [
        {},
        *({"budget": budget} for budget in budgets),
        {"strategy": "auto"},
        {"seconds": 0.05},
        {"objective": "worst"},
    ]
    for count, options in enumerate(different, 1):
        plan_and_tried(**{"strategy": "identity", **options})
        assert len(entries(cache)) == count
    ln.plan(WORKLOAD.within(rmse=30), ln.Least(), strategy="identity")
    assert len(entries(cache)) == count  # a budget that was found is not taken from a file
    ln.plan(ln.queries(DOMAIN, age="prefix"), ln.PureDP(1), strategy="identity")
    assert len(entries(cache)) == count + 1
    monkeypatch.setattr(_plan_cache, "versions", lambda: {"leastnoise": "another"})
    assert plan_and_tried(strategy="identity")[1] == ["identity"]


def test_cache_keeps_plans_with_targets_and_objectives(cache):
    workload = WORKLOAD.within(rmse=30)
    for options in ({"objective": "worst"}, {}):
        first_plan, second_plan = (
            ln.plan(workload, ln.PureDP(1), strategy="marginals", **options) for _ in range(2)
        )
        assert second_plan.to_json() == first_plan.to_json()
        assert second_plan.workload == workload
    assert len(entries(cache)) == 2


def test_cache_can_be_switched_off(cache, monkeypatch):
    monkeypatch.setenv("LEASTNOISE_CACHE", "off")
    for _ in range(2):
        assert plan_and_tried(strategy="identity")[1] == ["identity"]
    assert not cache.exists()


def test_cache_uses_the_user_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("LEASTNOISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    where = _plan_cache.plan_folder()
    assert where is not None
    assert where.is_relative_to(tmp_path)
    if sys.platform == "linux":
        assert where == tmp_path / "leastnoise" / "plans"


def with_digest(text):
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}".encode()


def better(text):
    """Return a plan file that promises half of its squared error."""
    plan = json.loads(text)
    plan["promise"]["total_squared_error"] /= 2
    return json.dumps(plan)


DAMAGED: dict[str, Callable[[bytes, str], bytes]] = {  # of an entry, and of the plan in it
    "cut": lambda entry, _: entry[:-50],
    "a byte": lambda entry, _: entry.replace(b"prefix", b"prefiy", 1),
    "empty": lambda *_: b"",
    "no text at all": lambda *_: b"\xff\xfe",
    "a better promise": lambda _, plan: with_digest(better(plan)),
    "another budget": lambda *_: with_digest(
        ln.plan(WORKLOAD, ln.PureDP(2), strategy="identity").to_json()
    ),
    "another workload": lambda *_: with_digest(
        ln.plan(ln.queries(DOMAIN, age="prefix"), ln.PureDP(1), strategy="identity").to_json()
    ),
    "no plan": lambda *_: with_digest("{}"),
    "a number": lambda *_: with_digest("5"),
}


@pytest.mark.parametrize("change", DAMAGED)
def test_damaged_cache_entry_is_replaced(change, cache):
    right = plan_and_tried(strategy="identity")[0].to_json()
    (path,) = cache.iterdir()
    path.write_bytes(DAMAGED[change](path.read_bytes(), right))
    plan, tried = plan_and_tried(strategy="identity")
    assert plan.to_json() == right
    assert tried == ["identity"]
    assert not plan_and_tried(strategy="identity")[1]


def test_damaged_cached_candidates_are_tried_again(cache):
    right = plan_and_tried()[0].to_json()
    (path,) = cache.iterdir()
    for damaged in ("[]", "{}", '[{"plan": 5}]'):
        path.write_bytes(with_digest(damaged))
        plan, tried = plan_and_tried()
        assert plan.to_json() == right
        assert len(tried) > 10


def test_cache_contains_no_value_of_a_row(cache):
    plan, _ = plan_and_tried(strategy="identity")
    before = entries(cache)
    people = pd.DataFrame({"sex": ["F", "M", "secret-value"] * 9, "age": [3, 4, 7777] * 9})
    answers = [ln.release(plan, people.head(count), seed=1).answers for count in (27, 6)]
    assert not answers[0].equals(answers[1])
    assert entries(cache) == before
    assert not any(
        word in text
        for text in before.values()
        for word in (b"secret-value", b"7777", str(cache.parent).encode())
    )


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("LEASTNOISE_CACHE", "on")
    monkeypatch.setenv("LEASTNOISE_CACHE_DIR", str(tmp_path / "file" / "plans"))
    assert (
        len(plan_and_tried(strategy="identity")[1])
        == len(plan_and_tried(strategy="identity")[1])
        == 1
    )


def test_cache_drops_oldest_and_refuses_large_entries(cache, monkeypatch):
    plan_and_tried(strategy="identity")
    (first,) = entries(cache)
    monkeypatch.setattr(_plan_cache, "_MOST_BYTES", len(entries(cache)[first]) * 3 // 2)
    plan_and_tried(strategy="identity", budget=ln.PureDP("1/2"))
    assert first not in entries(cache)
    assert len(entries(cache)) == 1
    before = entries(cache)
    monkeypatch.setattr(_plan_cache, "_MOST_ENTRY", 100)
    plan_and_tried(strategy="workload")
    assert entries(cache) == before


def test_cache_path_reveals_no_attribute_names(cache):
    place = _plan_cache.cache_file(WORKLOAD, Privacy(PureDP(1)), Search())
    assert place is not None
    assert place.parent == cache
    assert len(bytes.fromhex(place.stem)) == 32


SPEC = """
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.age]
integers = [0, 15]
[[workload]]
queries = { age = "prefix" }
[plan]
seconds = 5
"""


def test_plan_compare_and_release_plan_once(tmp_path, cache, monkeypatch, capsys):
    (tmp_path / "people.csv").write_text("age\n" + "3\n" * 40, encoding="utf-8")
    (tmp_path / "people.toml").write_text(SPEC, encoding="utf-8")
    planning = []
    choose = _plan_cache.choose_plan

    def counted(*arguments):
        planning.append(arguments)
        return choose(*arguments)

    monkeypatch.setattr(_plan_cache, "choose_plan", counted)
    monkeypatch.chdir(tmp_path)
    for times, command in (
        (1, ["plan", "people.toml"]),
        (1, ["compare", "people.toml"]),
        (1, ["release", "people.toml", "--out", "out"]),
        (2, ["plan", "people.toml", "--no-cache"]),
        (3, ["release", "people.toml", "--out", "again", "--seed", "1", "--no-cache"]),
    ):
        monkeypatch.setattr(sys, "argv", ["leastnoise", *command])
        monkeypatch.setenv("LEASTNOISE_CACHE", "on")  # --no-cache switches it off
        with pytest.raises(SystemExit) as stopped:
            main()
        assert (stopped.value.code or 0, len(planning)) == (0, times), capsys.readouterr().err
    assert len(entries(cache)) == 1
