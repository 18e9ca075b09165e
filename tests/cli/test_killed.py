"""A release killed at any time is absent, resumable or whole; runs never overspend."""

import json
import re
import signal
from pathlib import Path

import pytest

from cli.conftest import Start, assert_contains, edit, ended, files
from forked import Forked
from leastnoise._session import Ledger, read_release
from leastnoise._trusted.accounting import (
    ApproxDP,
    Charge,
    Privacy,
    PureDP,
    gaussian_mu_squared,
)
from waiting import HANGS, wait_until

# Runs the program with one step changed: from one of its calls on it does something before or after
# it, such as killing its own process.
CHANGED = """
import os, signal, sys, time
from pathlib import Path

# A process started in the background may have been told to ignore interruptions.
signal.signal(signal.SIGINT, signal.default_int_handler)

def change(owner, name, before=None, after=None, call=1):
    step, calls = getattr(owner, name), []
    def changed(*arguments, **named):
        calls.append(name)
        reached = len(calls) >= call
        if before and reached: before()
        result = step(*arguments, **named)
        if after and reached: after()
        return result
    setattr(owner, name, changed)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def pause():
    Path("paused").touch()
    time.sleep({hangs})

def interrupt():
    signal.raise_signal(signal.SIGINT)

def twice():
    try:
        interrupt()
    finally:
        interrupt()

def interrupt_as_duckdb_says():
    try:
        interrupt()
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted")

def fail():
    raise RuntimeError("a value of a row: secret-value")

def full():
    raise OSError(28, "No space left on device")

from leastnoise._trusted.kernel import _measure as kernel, _ledger as book, _series as series
from leastnoise._release import _directory as directory
from leastnoise._session import _release_job as finish, _session as session
from leastnoise._cli import _release as said
from leastnoise._trusted.kernel import Series
Ledger = book.Ledger
{change}
from leastnoise._cli import main
main()
"""


# Small, and without anything that is warned of: what is said is then about the payment alone.
SPEC = """\
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.sex]
categories = ["F", "M"]
[[workload]]
marginals = { ways = 1 }
[plan]
strategy = "identity"
[output]
formats = ["csv"]
"""


@pytest.fixture(autouse=True)
def _small(folder):
    (folder / "people.toml").write_text(SPEC, encoding="utf-8")


# where it is killed, once between any two writes, and what becomes of the release: unpaid, absent,
# resumable or whole
STEPS = [
    ("before reserve", "change(Ledger, 'reserve', before=die)", "unpaid"),
    ("within reserve, before the commit", "change(book, 'dump', after=die)", "unpaid"),
    ("after reserve", "change(Ledger, 'reserve', after=die)", "resumable"),
    ("after the mark that drawing begins", "change(Ledger, 'begin', after=die)", "absent"),
    ("after the noise is drawn", "change(kernel, '_add_noise', after=die)", "absent"),
    ("after the record", "change(Ledger, 'record', after=die)", "resumable"),
    (
        "before the files are made durable",
        "change(directory, 'sync_to_disk', before=die)",
        "resumable",
    ),
    ("before the rename", "change(directory, '_rename_draft', before=die)", "resumable"),
    ("after the rename", "change(directory, '_rename_draft', after=die)", "whole"),
    ("after seal", "change(Ledger, 'seal', after=die)", "whole"),
]


def stopped(
    start: Start, change: str, *arguments: str, code: int = -signal.SIGKILL, **environment: str
) -> str:
    """Return the error output of a run with a changed step, and check its exit code."""
    result = ended(start(*arguments, program=changed(change), **environment))
    assert result.code == code, result.err
    return result.err


def changed(change: str) -> str:
    return CHANGED.replace("{change}", change).replace("{hangs}", str(HANGS))


def is_whole(out: Path) -> bool:
    """Whether every file of the manifest exists, readable as a release."""
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return bool(manifest["receipt"]["id"]) and len(read_release(out).tables) == 1


def values_of(out: Path) -> list[list[int]]:
    return json.loads((out / "measurements/observation.json").read_text(encoding="utf-8"))["values"]


@pytest.fixture
def ledger(folder):
    return Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(2)))


def drawn_for(book: Ledger) -> list[list[list[int]]]:
    """Return the outcomes of unpublished releases, step by step."""
    steps = [
        step for entry in book.entries() if entry.resumable for step in book.pending(entry).steps
    ]
    return [json.loads(step.outcome)["values"] for step in steps]


@pytest.mark.parametrize(
    ("change", "end"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS]
)
def test_killed_release_is_absent_resumable_or_whole(folder, ledger, start, run, change, end):
    stopped(start, change, "release", "people.toml", "--out", "out")
    assert len(ledger.entries()) == (end != "unpaid")
    assert (folder / "out").exists() == (end == "whole")
    assert not (folder / "out").exists() or is_whole(folder / "out")
    outcomes = drawn_for(ledger)
    # the next run says in what state it is, and pays for itself alone; nothing hidden is left
    second_result = run.succeeds("release", "people.toml", "--out", "second")
    assert [name for name in files(folder) if name.startswith(".")] == []
    assert ("paid and absent" in second_result.err) == (end == "absent")
    assert ("paid and whole" in second_result.err) == (
        end == "whole" and "'seal', after" not in change
    )
    assert (
        "paid and resumable. `leastnoise resume people.ledger` finishes it" in second_result.err
    ) == (end == "resumable")
    state = {"absent": ["absent"], "resumable": ["reserved"], "whole": ["sealed"], "unpaid": []}[
        end
    ]
    assert [entry.state for entry in ledger.entries()] == [*state, "sealed"]
    # what can be finished is finished without paying, with the noise that was drawn, and only once
    resumed = run.succeeds("resume", "people.ledger")
    assert ("Nothing was paid again" in resumed.out) == (end == "resumable"), resumed
    assert (folder / "out").exists() == (end in {"resumable", "whole"})
    assert [values_of(folder / "out") for _ in outcomes] == outcomes
    assert run("resume", "people.ledger").out == "Nothing to finish.\n"
    assert {entry.state for entry in ledger.entries()} <= {"sealed", "absent"}
    assert ledger.left().epsilon == 2 - sum(entry.charge.epsilon for entry in ledger.entries())
    assert [name for name in files(folder) if name.startswith(".")] == []


@pytest.mark.parametrize(
    ("change", "end"),
    [step[1:] for step in STEPS[::2]],
    ids=[step[0] for step in STEPS[::2]],
)
def test_killed_share_of_mu_is_paid_once(folder, start, run, change, end):
    """A release with a third of an (epsilon, delta) budget, killed after its payment."""
    spec = SPEC.replace('epsilon = "1"', 'epsilon = "1"\ndelta = "1e-6"\nshare = "1/3"')
    (folder / "people.toml").write_text(spec, encoding="utf-8")
    budget = ApproxDP(1, "1e-6")
    ledger = Ledger.create(folder / "people.ledger", "people", Privacy(budget))
    stopped(start, change, "release", "people.toml", "--out", "out")
    assert len(ledger.entries()) == (end != "unpaid")
    outcomes = drawn_for(ledger)
    run.succeeds("resume", "people.ledger")
    assert [values_of(folder / "out") for _ in outcomes] == outcomes
    for number in range(len(ledger.entries()), 3):
        run.succeeds("release", "people.toml", "--out", f"out{number}")
    assert ledger.spent().mu_squared == gaussian_mu_squared(1, "1e-6")
    assert ledger.left() == Charge()
    refusal = run("release", "people.toml", "--out", "more")
    assert (refusal.code, "nothing is left" in refusal.err) == (2, True)
    assert not (folder / "more").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("change(finish.reading, 'read', before=interrupt)", "Nothing was spent."),
        ("change(finish.reading, 'read', before=twice)", "Nothing was spent."),
        ("change(Ledger, 'reserve', after=interrupt)", "can be finished without paying again"),
        ("change(kernel, '_add_noise', after=twice)", "and is absent"),
        ("change(finish, 'fill_draft', before=twice)", "can be finished without paying again"),
        ("change(directory, '_rename_draft', after=twice)", "and is whole in "),
        ("change(said, 'print_release', before=interrupt)", "and is whole in "),
        ("change(said, 'print_facts', after=twice)", "and is whole in "),
        (
            "change(session, 'read_table', before=lambda: interrupt_as_duckdb_says())",
            "Nothing was spent.",
        ),
    ],
)
def test_interruption_message_states_what_was_paid(folder, ledger, start, change, sentence):
    output = stopped(start, change, "release", "people.toml", "--out", "out", code=130)
    assert re.fullmatch(r"\n?leastnoise: interrupted\. [^\n]+\n", output), output
    assert sentence in output
    assert (folder / "out").exists() == ("whole" in sentence)
    assert [entry.resumable for entry in ledger.entries()] == ["finished" in sentence] * (
        "Nothing" not in sentence
    )


def waiting(folder: Path, start: Start) -> Forked:
    """Start a release that waits before it reads the rows."""
    process = start(
        "release",
        "people.toml",
        "--out",
        "out",
        program=changed("change(finish.reading, 'read', before=pause)"),
    )
    wait_until(lambda: (folder / "paused").exists() or process.poll() is not None)
    return process


def test_interrupted_waiting_run_spends_nothing(folder, ledger, start):
    process = waiting(folder, start)
    process.send_signal(signal.SIGINT)
    result = ended(process)
    assert (result.code, "interrupted. Nothing was spent." in result.err) == (130, True)
    assert ledger.entries() == ()


@pytest.mark.parametrize(("debug", "frames"), [("", False), ("1", True)])
def test_fault_message_states_payment_and_no_value(folder, ledger, start, debug, frames):
    change = "change(finish, 'fill_draft', before=fail)"
    output = stopped(
        start, change, "release", "people.toml", "--out", "out", code=3, LEASTNOISE_DEBUG=debug
    )
    assert_contains(
        output, "a fault of the program, not of yours (RuntimeError at ", "please report"
    )
    assert_contains(
        output,
        "The release was paid (epsilon = ",
        "can be finished without paying again: `leastnoise resume ",
    )
    assert "secret-value" not in output
    assert ("in carry_out" in output or "in publish" in output) == frames
    assert not (folder / "out").exists()


def test_full_disk_after_payment_loses_nothing(folder, ledger, start, run):
    output = stopped(
        start,
        "change(directory, '_rename_draft', after=full)",
        "release",
        "people.toml",
        "--out",
        "whole",
        code=4,
    )
    assert ("and is whole in " in output, is_whole(folder / "whole")) == (True, True), output
    output = stopped(
        start,
        "change(directory, 'sync_to_disk', before=full)",
        "release",
        "people.toml",
        "--out",
        "out",
        code=3,
    )
    assert re.fullmatch(
        (
            r"leastnoise: [^\n]*no space left on device[^\n]*paid \(epsilon = [^\n]*can be "
            r"finished[^\n]*\n"
        ),
        output,
    ), output
    assert "fault" not in output
    assert [name for name in files(folder) if name.startswith((".", "out"))] == []
    run.succeeds("resume")
    assert is_whole(folder / "out")


# As an interpreter begins whose streams the shell has closed, or led to a disk that is full.
STREAMS = """
import os, sys

def shut(*numbers):
    for number in numbers:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)

def full():
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)

{streams}
from leastnoise._cli import main
main()
"""


@pytest.mark.parametrize("streams", ["full()", "shut(1)", "full(); shut(2)", "shut(0, 1, 2)"])
def test_failed_message_does_not_change_state(folder, ledger, start, streams):
    result = ended(
        start(
            "release", "people.toml", "--out", "out", program=STREAMS.replace("{streams}", streams)
        )
    )
    assert is_whole(folder / "out")
    assert [entry.state for entry in ledger.entries()] == ["sealed"]
    assert result.code == (4 if "full" in streams else 0), result.err
    assert "Nothing was spent" not in result.err
    assert (
        "no space left on device. The release was paid (epsilon = 1) and is whole in " in result.err
    ) == (streams == "full()")


@pytest.mark.parametrize("out", ["/proc/o", "/sys/out"])
def test_uncreatable_directory_fails_before_payment(folder, ledger, run, out):
    run.is_refused("output directory", "release", "people.toml", "--out", out)
    assert ledger.entries() == ()


def test_name_of_maximum_length_is_accepted(folder, ledger, run):
    run.succeeds("release", "people.toml", "--out", "o" * 255)
    assert is_whole(folder / ("o" * 255))


def test_two_releases_into_one_directory_pay_once(folder, ledger, start):
    waiting(folder, start)
    late = ended(start("release", "people.toml", "--out", "out"))
    assert (late.code, "is being written by another process" in late.err) == (2, True)
    assert ledger.entries() == ()


def test_concurrent_releases_never_overspend(folder, start):
    # Five releases of one half each, of a budget of one: at most two can be paid, and those are
    # whole.
    book = Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(1)))
    edit(folder, ('epsilon = "1"', 'epsilon = "1/2"'))
    ends = [
        ended(process)
        for process in [
            start("release", "people.toml", "--out", f"out{place}") for place in range(5)
        ]
    ]
    assert sorted(result.code for result in ends) == [0, 0, 2, 2, 2], ends
    assert [entry.state for entry in book.entries()] == ["sealed", "sealed"]
    assert book.spent().epsilon <= 1
    for place, result in enumerate(ends):
        assert (folder / f"out{place}").exists() == (result.code == 0)
        assert ("Nothing was spent" in result.err) == (result.code == 2), result.err


def test_concurrent_releases_without_a_ledger_make_one(folder, start):
    ends = [
        ended(process).code
        for process in [
            start("release", "people.toml", "--out", f"out{place}") for place in range(3)
        ]
    ]
    assert sorted(ends) == [0, 2, 2]
    assert len(Ledger.open(folder / "people.ledger").entries()) == 1
    assert [(folder / f"out{place}").exists() for place in range(3)] == [code == 0 for code in ends]


def test_kill_points_name_existing_steps(start):
    stopped(start, "change(Ledger, 'reserved')", "--version", code=1)
