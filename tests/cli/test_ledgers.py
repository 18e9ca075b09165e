"""Commands that change, share and show ledgers, and refusals before any planning."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import leastnoise as ln
from behind_the_wall import hash_row
from cli.conftest import assert_contains, disk_is_full, edit, files
from leastnoise._mechanisms import Search, mechanism_for
from leastnoise._session import Ledger
from leastnoise._spec import read_spec
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Privacy, PureCost, PureDP
from leastnoise._trusted.check import InputError, InternalError, PaidError


@pytest.fixture
def no_planning(monkeypatch):
    """Fail where any planning begins."""

    def planned(*_, **__):
        raise AssertionError("planned")

    monkeypatch.setattr("leastnoise._planning.plan_workload", planned)
    monkeypatch.setattr("leastnoise._spec._spec.plan_workload", planned)


def create_ledger(amount=1):
    """Create the ledger of the data set `people` with a budget of epsilon."""
    return Ledger.create("people.ledger", "people", Privacy(PureDP(amount)))


def entry_states():
    """Return the states of the entries of the ledger, oldest first."""
    return [entry.state for entry in Ledger.open("people.ledger").entries()]


def test_ledger_commands_set_share_spend_and_raise(folder, run):
    def run_ledger(command, *arguments):
        return run.succeeds("ledger", *command.split(), *arguments).out

    run_ledger("set people.ledger --epsilon 1")
    assert "budget    epsilon = 2 a month" in run_ledger(
        "change people.ledger --epsilon 2 --per month --note", "yes"
    )
    assert "share     epsilon = 1 a month for ann" in run_ledger(
        "share people.ledger ann --epsilon 1"
    )
    assert "Entered: epsilon = 0.25, on 2024-02-03." in run_ledger(
        "spent people.ledger --epsilon 1/4 --on 2024-02-03"
    )
    run.is_refused("must name the share that pays: ann", "release", "people.toml", "--out", "a")
    run.succeeds("release", "people.toml", "--out", "a", "--share", "ann")
    message = "for the share 'ann' of the data set 'people' only epsilon = 0 is left"
    run.is_refused(message, "release", "people.toml", "--out", "b", "--share", "ann")
    run.is_refused(
        "at least what is spent, epsilon = 1;",
        "ledger",
        "change",
        "people.ledger",
        "--epsilon",
        "1/2",
    )
    parts = (
        "epsilon = 2 a month\n",
        "for ann; epsilon = 0 is left",
        "budget set",
        "spent elsewhere",
        "a (share ann)",
        "yes",
    )
    assert_contains(run_ledger("show people.ledger"), *parts)
    entries = run.json("ledger", "show", "people.ledger")["releases"]
    assert [entry["kind"] for entry in entries] == ["budget", "budget", "spent", "release"]
    run_ledger("change people.ledger --epsilon 2 --per ever")
    assert Ledger.open("people.ledger").left().epsilon == PureDP("3/4").epsilon


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["change", "none.ledger", "--epsilon", "2"], "There is no ledger at none.ledger"),
        (["change", "people.ledger"], "got none of them"),
        (
            ["change", "people.ledger", "--rho", "2"],
            (
                "must have --epsilon, because the ledger adds up its entries in this definition; "
                "got --rho. Say --epsilon."
            ),
        ),
        (["share", "people.ledger", " ", "--epsilon", "1"], "A share must have a name"),
        (["spent", "people.ledger", "--release", "nowhere"], "There is no release in 'nowhere'"),
        (
            ["spent", "people.ledger", "--release", "x", "--epsilon", "1"],
            "A release records its own cost",
        ),
        (
            ["spent", "people.ledger", "--epsilon", "1", "--on", "2999-01-01"],
            "today or an earlier day",
        ),
        (
            ["spent", "people.ledger", "--epsilon", "1", "--share", "eve"],
            "of the ledger: none yet; got 'eve'",
        ),
    ],
)
def test_invalid_ledger_entry_is_one_sentence(folder, run, arguments, message):
    create_ledger()
    run.is_refused(message, "ledger", *arguments)
    assert entry_states() == []


def test_release_unknown_to_ledger_copy_is_entered(folder, run):
    create_ledger(2)
    shutil.copy("people.ledger", "older")
    run.succeeds("release", "people.toml", "--out", "a")
    shutil.copy("older", "people.ledger")
    advice = [
        "Restore the newest copy of the ledger; if there is none, enter the missing releases",
        "`leastnoise ledger spent people.ledger --release",
    ]
    run.is_refused(advice, "release", "people.toml", "--out", "b")
    assert "this file is an older copy" in run("ledger", "show", "people.ledger").err
    run.succeeds("ledger", "spent", "people.ledger", "--release", "a")
    run.is_refused("already has the release", "ledger", "spent", "people.ledger", "--release", "a")
    run.succeeds("release", "people.toml", "--out", "b")
    (entry, _) = Ledger.open("people.ledger").entries()
    assert entry.kind == "spent"
    assert entry.description == "paid from people.ledger, release 1"
    assert Path(entry.output) == folder / "a"
    assert Ledger.open("people.ledger").left().epsilon == 0
    Path("people.ledger").unlink()
    run.is_refused("was paid from one of this name", "release", "people.toml", "--out", "c")


def test_second_ledger_opens_on_request(folder, run):
    run.succeeds("release", "people.toml", "--out", "a")
    (folder / "other").mkdir()
    arguments = ["release", "people.toml", "--out", "b", "--ledger", "other/second.ledger"]
    message = "people.ledger knows the data set 'people'. A second ledger would lack"
    run.is_refused(
        [message, "create this ledger with `leastnoise ledger set other/second.ledger`"], *arguments
    )
    assert not (folder / "other/second.ledger").exists()
    shutil.move("people.ledger", "other/moved")  # out of sight; the release that it paid is not
    run.is_refused("was paid for the data set 'people'. A second ledger", *arguments)
    shutil.move("other/moved", "people.ledger")
    run.succeeds("ledger", "set", "other/second.ledger", "--epsilon", "1", "--dataset", "people")
    run.succeeds(*arguments)
    warned = run.succeeds("ledger", "set", "third.ledger", "--epsilon", "1", "--dataset", "people")
    assert "people.ledger is a second ledger of a data set 'people'" in warned.err
    run.succeeds(
        "release", "people.toml", "--out", "c", "--ledger", "x.ledger", "--dataset", "others"
    )


def test_release_in_memory_names_resumable_entries(folder):
    entry = {
        "cost": PureCost(1),
        "privacy": Privacy(PureDP(1)),
        "plan_digest": "ab",
        "output": "(in memory)",
    }
    create_ledger(2).reserve(**entry, plan="{}", options="{}")
    plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    with pytest.warns(
        UserWarning,
        match=(
            r"Release 1 of .*in memory.* was stopped before it was published: "
            r"leastnoise\.resume\("
        ),
    ):
        ln.release(plan, "people.csv", ledger="people.ledger")


# --- stopped releases, of this version or another one ---------------------------------------------


def test_late_amount_with_delta_is_warned_of(folder, run):
    run.succeeds("ledger", "set", "people.ledger", "--epsilon", "1", "--delta", "1e-6")
    run.succeeds("ledger", "spent", "people.ledger", "--epsilon", "1/5", "--delta", "5e-7")
    run.succeeds("ledger", "spent", "people.ledger", "--epsilon", "1/100")
    shown = run.succeeds("ledger", "show", "people.ledger").out
    assert "epsilon <= 0.2100 at delta = 0.000001, computed after the fact" in shown
    run.succeeds("ledger", "change", "people.ledger", "--epsilon", "3", "--delta", "1e-6")
    entered = run("ledger", "spent", "people.ledger", "--epsilon", "1/100", "--delta", "1e-9")
    assert "nothing more can be paid from it. Pay from a new ledger" in entered.err
    shown = run("ledger", "show", "people.ledger")
    assert "nothing more can be paid from it. Pay from a new ledger" in shown.err
    assert_contains(shown.out, "which is not within the budget", "left   nothing")
    ledger_shown = run.json("ledger", "show", "people.ledger")
    assert ledger_shown["implied_epsilon"]["spent"] == "unknown"
    change = ["ledger", "change", "people.ledger", "--epsilon", "9", "--delta", "1e-3"]
    run.is_refused("Pay from a new ledger", *change)


@pytest.fixture
def full_disk(monkeypatch):
    """Let every write fail."""

    @contextmanager
    def used(where="leastnoise._session._release_job.fill_draft"):
        with monkeypatch.context() as patch:
            patch.setattr(where, disk_is_full)
            yield

    return used


@pytest.fixture
def stopped(folder, run, full_disk):
    """Return a ledger with a release that was paid and measured, but not written."""
    with full_disk():
        assert run("release", "people.toml", "--out", "a").code == 3
    return folder / "people.ledger"


def recorded(ledger, change):
    """Rewrite the plan and options of an entry as another version would, with the digest."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        ((entry, plan, options, _),) = connection.execute("SELECT * FROM pending").fetchall()
        values = json.loads(plan), json.loads(options)
        change(*values)
        texts = [json.dumps(value) for value in values]
        connection.execute(
            "UPDATE pending SET plan = ?, options = ?, digest = ?",
            (*texts, hash_row((entry, *texts))),
        )


OTHERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "a plan of another format": lambda plan, _: plan.update(format=2),
    "a plan of other noise": lambda plan, _: plan.update(mechanism="laplace"),
    "an option of another version": lambda _, request: request["options"].update(further=1),
    "nothing of the data": lambda _, request: request.pop("source"),
}


@pytest.mark.parametrize(
    ("how", "version", "version_named"),
    [(how, "0.0.9", "leastnoise 0.0.9") for how in OTHERS]
    + [("a plan of another format", None, "an earlier leastnoise")],
)
def test_foreign_version_entry_names_its_version(stopped, run, how, version, version_named):
    def change(plan, request):
        OTHERS[how](plan, request)
        request.pop("version") if version is None else request.update(version=version)

    recorded(stopped, change)
    message = (
        f"Release 1 in the ledger people.ledger was paid with {version_named}, but leastnoise "
        f"{ln.__version__} cannot read"
    )
    run.is_refused(message, "resume", "people.ledger")
    assert [entry.resumable for entry in Ledger.open(stopped).entries()] == [True]


def test_unreadable_entry_is_damaged_but_alike_is_finished(stopped, run):
    bytes_before = stopped.read_bytes()
    for how in OTHERS.values():
        recorded(stopped, how)
        assert "was paid with" not in run.is_refused("", "resume", "people.ledger").err
        stopped.write_bytes(bytes_before)
    recorded(stopped, lambda _, request: request.update(version="0.0.9"))
    run.succeeds("resume", "people.ledger")
    assert entry_states() == ["sealed"]


def test_unfinishable_entry_does_not_block_others(folder, run, full_disk):
    run.succeeds("ledger", "set", "people.ledger", "--epsilon", "9", "--dataset", "people")
    with full_disk():
        assert [run("release", "people.toml", "--out", name).code for name in ("a", "b", "c")] == [
            3,
            3,
            3,
        ]
    (folder / "a").mkdir()
    result = run("resume", "people.ledger")
    assert result.code == 2  # nothing of the first was touched
    assert "Release 1 was not finished: The output directory must not exist yet; got" in result.err
    assert result.err.endswith("1 of 3 releases were not finished; the reasons are above.\n")
    assert entry_states() == ["reserved", "sealed", "sealed"]
    (folder / "a").rmdir()
    run.succeeds("resume", "people.ledger")


@pytest.mark.parametrize(
    ("stops", "code"), [(["x", "resumable"], 3), (["whole", "x"], 4), (["x", "bug", "absent"], 70)]
)
def test_exit_code_comes_from_the_worst_error(run, stopped, monkeypatch, stops, code):
    kinds = {"x": InputError("no"), "bug": InternalError("bug")}
    errors = iter([kinds.get(stop) or PaidError("Full.", stop, OSError()) for stop in stops])

    def fail(*_, **__):
        raise next(errors)

    (entry,) = Ledger.open(stopped).entries()
    several = tuple(replace(entry, number=number) for number, _ in enumerate(stops, 1))
    monkeypatch.setattr(Ledger, "entries", lambda _: several)
    monkeypatch.setattr("leastnoise._cli._release.finish_releases", fail)
    assert run("resume", "people.ledger").code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ["change", "--epsilon", "2"],
        ["share", "ann", "--epsilon", "1"],
        ["spent", "--epsilon", "1/4"],
    ],
)
def test_failure_message_lists_completed_entries(folder, run, full_disk, arguments):
    create_ledger()
    command = ["ledger", arguments[0], "people.ledger", *arguments[1:]]
    with full_disk("leastnoise._trusted.kernel._ledger.append_entry"):  # before it
        assert "entered" not in run.is_refused("", *command).err
    assert entry_states() == []
    with full_disk("leastnoise._cli._ledger._print_remaining_budget"):
        refused = run(*command)
    assert refused.code == 4, refused.err
    assert "no space left on device. It was entered before that, as number 1." in refused.err
    assert len(entry_states()) == 1


# --- nothing is planned twice, or before it can be refused ----------------------------------------


def test_given_plan_is_not_planned_again(folder, run, no_planning):
    parsed_spec = read_spec("people.toml")
    plan = mechanism_for(parsed_spec.strategy, parsed_spec.workload).plan(
        parsed_spec.workload, parsed_spec.privacy, Search(parsed_spec.strategy)
    )
    (folder / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    run.succeeds("release", "people.toml", "--plan", "plan.json", "--out", "a")
    (entry,) = Ledger.open("people.ledger").entries()
    assert entry.plan_digest == plan.digest()


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ('epsilon = "1"', 'epsilon = "1/2"', "[privacy]"),
        ("integers = [17, 90]", "integers = [17, 91]", "[domain]"),
        ("weight = 2.0", "weight = 3.0", "[[workload]]"),
    ],
)
def test_plan_of_another_spec_is_refused(folder, run, old, new, part):
    run.succeeds("plan", "people.toml", "--out", "plan.json")
    edit(folder, (old, new))
    run.is_refused(
        f"belongs to another spec: its {part}",
        "release",
        "people.toml",
        "--plan",
        "plan.json",
        "--out",
        "a",
    )
    assert not (folder / "people.ledger").exists()


@pytest.mark.parametrize("text", [None, b"", b"{}", b"[1]", b"\xff\xfe"])
def test_invalid_plan_file_is_one_sentence(folder, run, text):
    if text is not None:
        (folder / "plan.json").write_bytes(text)
    run.is_refused("", "release", "people.toml", "--plan", "plan.json", "--out", "a")


def _book(*charges, privacy=None, name="people", share="", file="people.ledger"):
    """Make a ledger with entries and a share."""

    def prepare(folder):
        ledger = Ledger.create(folder / file, name, privacy or Privacy(PureDP(1)))
        for amount in charges:
            ledger.add_spent(PureDP(amount))
        if share:
            ledger.set_budget(PureDP(1), share=share)

    return prepare


def _damaged(folder):
    _book("1/2")(folder)
    os.truncate(folder / "people.ledger", 5000)


def _file(name):
    return lambda folder: (folder / name).write_text("x", encoding="utf-8") and None


APPROXIMATE = 'epsilon = "1"\ndelta = "1e-9"'
EARLY = [  # the budget of the spec, the state of the folder, further arguments, and the message
    ("", lambda folder: (folder / "out").mkdir(), [], "The output directory must not exist yet"),
    ("", _file("out"), [], "The output directory must not exist yet"),
    ("", _book(), ["--out", "people.csv/out"], "that you can write to"),
    ("", _book(), ["--out", "o" * 300], "cannot be made"),
    ("", _book(), ["--out", "/dev/null/o"], "output directory"),
    (
        "",
        _book(file="x"),
        ["--ledger", "none/people.ledger"],
        "A ledger cannot be made at none/people.ledger",
    ),
    ("", _file("other"), ["--share", "ann"], "There is no ledger at people.ledger"),
    ("", _book(privacy=Privacy(PureDP("1/2"))), [], "only epsilon = 0.5 is left"),
    ("", _book(privacy=Privacy(ZCDP("1/4"))), [], "only rho = 0.25 is left"),
    (
        "",
        _book(privacy=Privacy(ApproxDP("1/2", "1e-9"))),
        [],
        "only epsilon = 0.5 and delta = 1e-9, or mu squared = ",
    ),
    ("", _book(privacy=Privacy(PureDP(1), "replace")), [], "these costs cannot be added"),
    ("", _book(privacy=Privacy(PureDP(1), unit_column="id")), [], "these costs cannot be added"),
    ("", _book(name="visits"), [], "belongs to the data set 'visits'; got 'people'"),
    ("", _book("1/2"), [], "only epsilon = 0.5 is left"),
    ("", _damaged, [], "is damaged"),
    ("", lambda folder: (folder / "people.ledger").mkdir(), [], "is a folder, not a ledger"),
    ("", _book(share="ann"), [], "must name the share that pays: ann"),
    ("", _book(share="ann"), ["--share", "eve"], "of the ledger: ann; got 'eve'"),
    ("", _book(file="first.ledger"), [], "first.ledger knows the data set 'people'"),
    ("", _file("people.ledger-journal"), [], "is left from an earlier ledger of this name"),
    (
        APPROXIMATE,
        _book(privacy=Privacy(PureDP(9))),
        [],
        "which only pure releases can be charged to",
    ),
    (APPROXIMATE, _book(privacy=Privacy(ApproxDP("1/2", "1e-9"))), [], "only epsilon = 0.5"),
    ('rho = "1"', _book(privacy=Privacy(ApproxDP(9, "1e-9"))), [], "ApproxDP budget"),
    (APPROXIMATE, _book(privacy=Privacy(ZCDP(1), "replace")), [], "these costs cannot be added"),
]


@pytest.mark.parametrize(("budget", "prepare", "options", "message"), EARLY)
def test_output_budget_and_ledger_are_checked_first(
    folder, run, no_planning, budget, prepare, options, message
):
    edit(folder, ('epsilon = "1"', budget or 'epsilon = "1"'))
    prepare(folder)
    files_before = files(folder)
    run.is_refused(
        message,
        "release",
        "people.toml",
        *(options if "--out" in options else ["--out", "out", *options]),
    )
    assert files(folder) == files_before


@pytest.mark.parametrize(
    "command", [("change", "people.ledger"), ("share", "people.ledger", "ann")]
)
def test_other_budget_definition_names_missing_options(folder, run, command):
    Ledger.create("people.ledger", "people", Privacy(ApproxDP(4, "1e-9")))
    for option, advice in (
        ("--epsilon", "got --epsilon. Add --delta."),
        ("--rho", "got --rho. Say --epsilon and --delta."),
    ):
        assert "DP(" not in run.is_refused(advice, "ledger", *command, option, "1").err
    assert entry_states() == []
    run.succeeds("ledger", *command, "--epsilon", "1", "--delta", "1e-9")
