"""Killed at any instant, a release is paid and absent or paid and whole, and the next run says which; concurrent ones never overspend."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from leastnoise._check import LedgerError
from leastnoise.accounting import Privacy, PureDP
from leastnoise.session import Ledger

Start = Callable[..., subprocess.Popen[str]]
Run = Callable[..., Any]

# Runs the program with one step changed: it does something before or after that step, such as killing its own process.
CHANGED = """
import os, signal, sys, time
from pathlib import Path

# A process started in the background may have been told to ignore interruptions.
signal.signal(signal.SIGINT, signal.default_int_handler)

def change(owner, name, before=None, after=None):
    step = getattr(owner, name)
    def changed(*arguments, **named):
        if before: before()
        result = step(*arguments, **named)
        if after: after()
        return result
    setattr(owner, name, changed)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def pause():
    Path("paused").touch()
    time.sleep(60)

def interrupt():
    signal.raise_signal(signal.SIGINT)

def fail():
    raise RuntimeError("a value of a row: secret-value")

def full():
    raise OSError(28, "No space left on device")

from leastnoise.measure import _kernel as kernel, _ledger as book
from leastnoise.release import _directory as directory
from leastnoise.session import _session as session
Ledger = book.Ledger
{change}
from leastnoise.cli import main
main()
"""

# where it is killed, and whether the release is then paid, and whole
STEPS: list[tuple[str, str, bool, bool]] = [
    ("before the data are read", "change(session.adapters, 'read', before=die)", False, False),
    ("before the ledger is opened for paying", "change(session, 'measure', before=die)", False, False),
    ("before reserve", "change(Ledger, 'reserve', before=die)", False, False),
    ("within reserve, before the commit", "change(book, '_dump', after=die)", False, False),
    ("after reserve", "change(Ledger, 'reserve', after=die)", True, False),
    ("before the noise is drawn", "change(kernel, '_add_noise', before=die)", True, False),
    ("after the noise is drawn", "change(kernel, '_add_noise', after=die)", True, False),
    ("after the measurement", "change(session, 'measure', after=die)", True, False),
    ("before the answers are written", "change(session, 'write', before=die)", True, False),
    ("before the files are made durable", "change(directory, '_make_durable', before=die)", True, False),
    ("after the files are made durable", "change(directory, '_make_durable', after=die)", True, False),
    ("before the rename", "change(directory, '_rename', before=die)", True, False),
    ("after the rename", "change(directory, '_rename', after=die)", True, True),
    ("after the answers are written", "change(session, 'write', after=die)", True, True),
    ("before seal", "change(Ledger, 'seal', before=die)", True, True),
    ("after seal", "change(Ledger, 'seal', after=die)", True, True),
]


def changed(change: str) -> str:
    return CHANGED.replace("{change}", change)


def is_whole(out: Path) -> bool:
    """Whether every file that the manifest names is there, and readable as a release."""
    from leastnoise.release import read_release as read

    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return bool(manifest["receipt"]["id"]) and len(read(out).tables) == 5


@pytest.fixture
def ledger(folder: Path) -> Path:
    Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(2)))
    return folder / "people.ledger"


@pytest.mark.parametrize(("change", "paid", "whole"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS])
def test_killed_at_any_step_a_release_is_paid_and_absent_or_paid_and_whole(
    folder: Path, ledger: Path, start: Start, run: Run, change: str, paid: bool, whole: bool
) -> None:
    process = start("release", "people.toml", "--out", "out", program=changed(change))
    _, told = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, told
    assert len(Ledger.open(ledger).entries()) == paid
    assert (folder / "out").exists() == whole
    assert not whole or is_whole(folder / "out")
    # the next run says what became of it
    second = run("release", "people.toml", "--out", "second")
    assert second.code == 0, second.err
    sealed_by_itself = "'seal', after" in change
    assert ("paid and absent" in second.err) == (paid and not whole)
    assert ("paid and whole" in second.err) == (whole and not sealed_by_itself)
    assert is_whole(folder / "second")
    states = ["sealed" if whole else "absent"] * paid + ["sealed"]
    book = Ledger.open(ledger)
    assert [entry.state for entry in book.entries()] == states
    assert book.left().epsilon == 2 - sum(entry.charge.epsilon for entry in book.entries())
    # and the one after that has nothing to tell
    assert "paid and" not in run("release", "people.toml", "--out", "third").err


def test_killed_at_any_time_the_ledger_and_the_directory_agree(folder: Path, ledger: Path, start: Start) -> None:
    # Not at chosen steps but at times spread over a whole run, whose length is measured first.
    begun = time.monotonic()
    assert start("release", "people.toml", "--out", "whole").wait(timeout=120) == 0
    length = time.monotonic() - begun
    ends = []
    for place in range(6):
        out, paying = folder / f"out{place}", folder / f"p{place}.ledger"
        process = start("release", "people.toml", "--out", out.name, "--ledger", paying.name, "--dataset", "people")
        try:
            process.wait(timeout=length * (0.4 + 0.12 * place))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=120)
        states = []
        if paying.exists():
            with suppress(LedgerError):  # killed while the ledger was being made: there is nothing in it
                states = [entry.state for entry in Ledger.open(paying).entries()]
        assert states in ([], ["reserved"], ["sealed"])
        assert not out.exists() or (states != [] and is_whole(out)), "out and unpaid, or half-written"
        assert states != ["sealed"] or out.exists()
        ends.append((states, out.exists()))
    assert len(ends) == 6


@pytest.mark.parametrize(
    ("change", "paid", "told"),
    [
        ("change(session.adapters, 'read', before=interrupt)", False, "Nothing was spent."),
        ("change(Ledger, 'reserve', after=interrupt)", True, "The release was paid (epsilon = "),
        ("change(session, 'write', before=interrupt)", True, "and is absent"),
        ("change(session, 'write', after=interrupt)", True, "and is whole in out"),
    ],
    ids=["unpaid", "paid", "measured", "written"],
)
def test_an_interruption_says_whether_something_was_paid(
    folder: Path, ledger: Path, start: Start, change: str, paid: bool, told: str
) -> None:
    process = start("release", "people.toml", "--out", "out", program=changed(change))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert re.fullmatch(r"leastnoise: interrupted\. [^\n]+\n", said), said
    assert told in said
    states = [entry.state for entry in Ledger.open(ledger).entries()]
    assert states == ([] if not paid else ["sealed"] if "whole" in told else ["absent"])
    assert (folder / "out").exists() == ("whole" in told)


def test_a_real_interruption_of_a_waiting_run(folder: Path, ledger: Path, start: Start) -> None:
    process = start("release", "people.toml", "--out", "out", program=changed("change(session.adapters, 'read', before=pause)"))
    deadline = time.monotonic() + 60
    while not (folder / "paused").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted. Nothing was spent." in said
    assert Ledger.open(ledger).entries() == ()


@pytest.mark.parametrize(("debug", "frames"), [("", False), ("1", True)])
def test_a_fault_says_what_was_paid_and_shows_no_value(folder: Path, ledger: Path, start: Start, debug: str, frames: bool) -> None:
    program = changed("change(session, 'write', before=fail)")
    process = start("release", "people.toml", "--out", "out", program=program, LEASTNOISE_DEBUG=debug)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 70
    assert "a fault of the program, not of yours (RuntimeError at " in said
    assert "please report" in said
    assert "The release was paid (epsilon = " in said
    assert "secret-value" not in said
    assert ("in carry_out" in said) == frames
    assert not (folder / "out").exists()


def test_a_full_disk_after_paying_says_so(folder: Path, ledger: Path, start: Start) -> None:
    process = start("release", "people.toml", "--out", "out", program=changed("change(directory, '_make_durable', before=full)"))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 2
    # On a slow machine lines of progress come first.
    progress = r"(?:[a-z]+ing[^\n]*\(\d+ s\)\n)*"
    assert re.fullmatch(progress + r"leastnoise: [^\n]*no space left on device[^\n]*paid \(epsilon = [^\n]*absent[^\n]*\n", said), said
    assert [entry.state for entry in Ledger.open(ledger).entries()] == ["absent"]
    assert [path.name for path in folder.iterdir() if path.name.startswith((".out", "out"))] == []


def test_concurrent_releases_never_overspend(folder: Path, start: Start) -> None:
    # Five releases of one half each, of a budget of one: at most two can be paid, and those are whole.
    Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(1)))
    spec = folder / "people.toml"
    spec.write_text(spec.read_text(encoding="utf-8").replace('epsilon = "1"', 'epsilon = "1/2"'), encoding="utf-8")
    processes = [start("release", "people.toml", "--out", f"out{place}") for place in range(5)]
    ends = [(process.communicate(timeout=240)[1], process.returncode) for process in processes]
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
    codes = sorted(process.wait(timeout=240) for process in processes)
    assert codes[0] == 0
    assert set(codes[1:]) == {2}
    assert len(Ledger.open(folder / "people.ledger").entries()) == 1
    assert sum((folder / f"out{place}").exists() for place in range(3)) == 1


def test_the_changes_are_of_steps_that_exist(start: Start) -> None:
    process = start("--version", program=changed("change(Ledger, 'reserved')"))
    process.communicate(timeout=120)
    assert process.returncode == 1
