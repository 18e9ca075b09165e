"""Killed at any instant, a release is paid and absent, resumable or whole, and the next run says which; concurrent ones never overspend."""

import json
import re
import signal
from pathlib import Path

import pytest

from cli.conftest import Run, Start, edit
from leastnoise._accounting import Privacy, PureDP
from leastnoise._session import Ledger
from waiting import HANGS, wait_until

# Runs the program with one step changed: from one of its calls on it does something before or after it, such as killing its own process.
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

from leastnoise._kernel import _measure as kernel, _ledger as book, _series as series
from leastnoise._release import _directory as directory
from leastnoise._session import _finish as finish, _session as session
from leastnoise._cli import _release as said
from leastnoise._kernel import Series
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
def _small(folder: Path) -> None:
    (folder / "people.toml").write_text(SPEC, encoding="utf-8")


# where it is killed, once between any two writes, and what becomes of the release: unpaid, absent, resumable or whole
STEPS: list[tuple[str, str, str]] = [
    ("before reserve", "change(Ledger, 'reserve', before=die)", "unpaid"),
    ("within reserve, before the commit", "change(book, 'dump', after=die)", "unpaid"),
    ("after reserve", "change(Ledger, 'reserve', after=die)", "resumable"),
    ("after the mark that drawing begins", "change(Ledger, 'begin', after=die)", "absent"),
    ("after the noise is drawn", "change(kernel, '_add_noise', after=die)", "absent"),
    ("after the record", "change(Ledger, 'record', after=die)", "resumable"),
    ("before the files are made durable", "change(directory, '_sync', before=die)", "resumable"),
    ("before the rename", "change(directory, '_rename', before=die)", "resumable"),
    ("after the rename", "change(directory, '_rename', after=die)", "whole"),
    ("after seal", "change(Ledger, 'seal', after=die)", "whole"),
]


def changed(change: str) -> str:
    return CHANGED.replace("{change}", change).replace("{hangs}", str(HANGS))


def is_whole(out: Path) -> bool:
    """Whether every file that the manifest names is there, and readable as a release."""
    from leastnoise._session import read_release

    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return bool(manifest["receipt"]["id"]) and len(read_release(out).tables) == 1


@pytest.fixture
def ledger(folder: Path) -> Path:
    Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(2)))
    return folder / "people.ledger"


def measured(ledger: Path) -> list[str]:
    """What was drawn for releases that are not published."""
    book = Ledger.open(ledger)
    return [step.outcome for entry in book.entries() if entry.resumable for step in book.pending(entry).steps]


@pytest.mark.parametrize(("change", "end"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS])
def test_killed_at_any_step_a_release_is_paid_and_absent_resumable_or_whole_and_finished_once(
    folder: Path, ledger: Path, start: Start, run: Run, change: str, end: str
) -> None:
    process = start("release", "people.toml", "--out", "out", program=changed(change))
    _, told = process.communicate(timeout=HANGS)
    assert process.returncode == -signal.SIGKILL, told
    entries = Ledger.open(ledger).entries()
    assert len(entries) == (end != "unpaid")
    assert (folder / "out").exists() == (end == "whole")
    assert not (folder / "out").exists() or is_whole(folder / "out")
    drawn = measured(ledger)
    # the next run says in what state it is, and pays for itself alone
    second = run("release", "people.toml", "--out", "second")
    assert second.code == 0, second.err
    assert ("paid and absent" in second.err) == (end == "absent")
    assert ("paid and whole" in second.err) == (end == "whole" and "'seal', after" not in change)
    assert ("paid and resumable. `leastnoise resume people.ledger` finishes it" in second.err) == (end == "resumable")
    book = Ledger.open(ledger)
    state = {"absent": "absent", "resumable": "reserved", "whole": "sealed"}.get(end)
    assert [entry.state for entry in book.entries()] == ([] if state is None else [state]) + ["sealed"]
    # what can be finished is finished without paying, with the noise that was drawn, and only once
    first = run("resume", "people.ledger")
    assert first.code == 0, first.err
    assert ("Nothing was paid again" in first.out) == (end == "resumable"), first
    assert (folder / "out").exists() == (end in {"resumable", "whole"})
    for text in drawn:
        values = json.loads(text)["values"]
        assert json.loads((folder / "out/measurements/observation.json").read_text(encoding="utf-8"))["values"] == values
    assert run("resume", "people.ledger").out == "Nothing to finish.\n"
    assert {entry.state for entry in book.entries()} <= {"sealed", "absent"}
    assert book.left().epsilon == 2 - sum(entry.charge.epsilon for entry in book.entries())
    # only a draft may stay, which the next release into that directory takes
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    assert [name[:12] for name in left] == [".leastnoise-"] * (end in {"unpaid", "absent"})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("change(finish._adapters, 'read', before=interrupt)", "Nothing was spent."),
        ("change(finish._adapters, 'read', before=twice)", "Nothing was spent."),
        ("change(Ledger, 'reserve', after=interrupt)", "can be finished without paying again"),
        ("change(kernel, '_add_noise', after=twice)", "and is absent"),
        ("change(finish, 'fill_draft', before=twice)", "can be finished without paying again"),
        ("change(directory, '_rename', after=twice)", "and is whole in "),
        ("change(said, 'show_release', before=interrupt)", "and is whole in "),
        ("change(said, 'show_facts', after=twice)", "and is whole in "),
        ("change(session, 'read_table', before=lambda: interrupt_as_duckdb_says())", "Nothing was spent."),
    ],
)
def test_one_interruption_or_two_say_truthfully_whether_something_was_paid(
    folder: Path, ledger: Path, start: Start, change: str, told: str
) -> None:
    process = start("release", "people.toml", "--out", "out", program=changed(change))
    _, said = process.communicate(timeout=HANGS)
    assert process.returncode == 130, said
    assert re.fullmatch(r"\n?leastnoise: interrupted\. [^\n]+\n", said), said
    assert told in said
    assert (folder / "out").exists() == ("whole" in told)
    entries = Ledger.open(ledger).entries()
    assert len(entries) == ("Nothing" not in told)
    assert all(entry.resumable == ("finished" in told) for entry in entries)


def test_a_real_interruption_of_a_waiting_run(folder: Path, ledger: Path, start: Start) -> None:
    process = start("release", "people.toml", "--out", "out", program=changed("change(finish._adapters, 'read', before=pause)"))
    wait_until(lambda: (folder / "paused").exists() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=HANGS)
    assert process.returncode == 130
    assert "interrupted. Nothing was spent." in said
    assert Ledger.open(ledger).entries() == ()


@pytest.mark.parametrize(("debug", "frames"), [("", False), ("1", True)])
def test_a_fault_says_what_was_paid_and_shows_no_value(folder: Path, ledger: Path, start: Start, debug: str, frames: bool) -> None:
    program = changed("change(finish, 'fill_draft', before=fail)")
    process = start("release", "people.toml", "--out", "out", program=program, LEASTNOISE_DEBUG=debug)
    _, said = process.communicate(timeout=HANGS)
    assert process.returncode == 3
    assert "a fault of the program, not of yours (RuntimeError at " in said
    assert "please report" in said
    assert "The release was paid (epsilon = " in said
    assert "secret-value" not in said
    assert "can be finished without paying again: `leastnoise resume " in said
    assert ("in carry_out" in said or "in publish" in said) == frames
    assert not (folder / "out").exists()


def test_a_full_disk_after_paying_says_so_and_loses_nothing(folder: Path, ledger: Path, start: Start, run: Run) -> None:
    process = start("release", "people.toml", "--out", "whole", program=changed("change(directory, '_rename', after=full)"))
    _, said = process.communicate(timeout=HANGS)
    assert (process.returncode, "and is whole in " in said, is_whole(folder / "whole")) == (4, True, True), said
    process = start("release", "people.toml", "--out", "out", program=changed("change(directory, '_sync', before=full)"))
    _, said = process.communicate(timeout=HANGS)
    assert process.returncode == 3
    assert re.fullmatch(r"leastnoise: [^\n]*no space left on device[^\n]*paid \(epsilon = [^\n]*can be finished[^\n]*\n", said), said
    assert "fault" not in said
    assert [path.name for path in folder.iterdir() if path.name.startswith((".", "out"))] == []
    resumed = run("resume")
    assert (resumed.code, is_whole(folder / "out")) == (0, True), resumed


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
def test_what_cannot_be_said_does_not_change_what_is_true(folder: Path, ledger: Path, start: Start, streams: str) -> None:
    process = start("release", "people.toml", "--out", "out", program=STREAMS.replace("{streams}", streams))
    _, said = process.communicate(timeout=HANGS)
    assert is_whole(folder / "out")
    assert [entry.state for entry in Ledger.open(ledger).entries()] == ["sealed"]
    assert process.returncode == (4 if "full" in streams else 0), said
    assert "Nothing was spent" not in said
    assert ("no space left on device. The release was paid (epsilon = 1) and is whole in " in said) == (streams == "full()")


@pytest.mark.parametrize("out", ["/proc/o", "/sys/out"])
def test_a_directory_that_cannot_be_made_is_noticed_before_payment(folder: Path, ledger: Path, run: Run, out: str) -> None:
    refused = run("release", "people.toml", "--out", out)
    assert refused.code == 2, refused
    assert "output directory" in refused.err
    assert Ledger.open(ledger).entries() == ()


def test_a_name_as_long_as_the_file_system_takes_is_a_name(folder: Path, ledger: Path, run: Run) -> None:
    assert run("release", "people.toml", "--out", "o" * 255).code == 0
    assert is_whole(folder / ("o" * 255))


def test_two_releases_into_one_directory_cost_one_payment(folder: Path, ledger: Path, start: Start) -> None:
    waiting = start("release", "people.toml", "--out", "out", program=changed("change(finish._adapters, 'read', before=pause)"))
    wait_until(lambda: (folder / "paused").exists() or waiting.poll() is not None)
    late = start("release", "people.toml", "--out", "out")
    _, said = late.communicate(timeout=HANGS)
    assert late.returncode == 2
    assert "is being written by another process" in said
    assert Ledger.open(ledger).entries() == ()
    waiting.send_signal(signal.SIGKILL)


def test_concurrent_releases_never_overspend(folder: Path, start: Start) -> None:
    # Five releases of one half each, of a budget of one: at most two can be paid, and those are whole.
    Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(1)))
    edit(folder, ('epsilon = "1"', 'epsilon = "1/2"'))
    processes = [start("release", "people.toml", "--out", f"out{place}") for place in range(5)]
    ends = [(process.communicate(timeout=HANGS)[1], process.returncode) for process in processes]
    assert sorted(code for _, code in ends) == [0, 0, 2, 2, 2], ends
    book = Ledger.open(folder / "people.ledger")
    assert len(book.entries()) == 2
    assert book.spent().epsilon <= 1
    for place, (said, code) in enumerate(ends):
        assert (folder / f"out{place}").exists() == (code == 0)
        assert ("Nothing was spent" in said) == (code == 2), said
    assert {entry.state for entry in book.entries()} == {"sealed"}


def test_concurrent_releases_without_a_ledger_make_one(folder: Path, start: Start) -> None:
    processes = [start("release", "people.toml", "--out", f"out{place}") for place in range(3)]
    codes = sorted(process.wait(timeout=HANGS) for process in processes)
    assert codes[0] == 0
    assert set(codes[1:]) == {2}
    assert len(Ledger.open(folder / "people.ledger").entries()) == 1
    assert sum((folder / f"out{place}").exists() for place in range(3)) == 1


def test_the_changes_are_of_steps_that_exist(start: Start) -> None:
    process = start("--version", program=changed("change(Ledger, 'reserved')"))
    process.communicate(timeout=HANGS)
    assert process.returncode == 1
