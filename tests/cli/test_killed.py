"""Tests of killed releases, which are absent, resumable or whole, and never overspend."""

import json
import re
import signal

import pytest

from cli.conftest import assert_contains, edit, ended, files
from cli.killed_program import changed_program, drawn_values, published_values, run_until_stopped
from leastnoise._session import Ledger, read_release
from leastnoise._trusted.accounting import ApproxDP, Charge, Privacy, PureDP, gaussian_mu_squared
from waiting import wait_until

# A small spec without warnings, so that all messages are about the payment.
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
def _write_small_survey(folder):
    (folder / "people.toml").write_text(SPEC, encoding="utf-8")


# Where the release is killed, once between any two writes, and its state then: unpaid, absent,
# resumable or whole.
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


def is_whole(out):
    """Tell whether a directory is a paid release with all files of its manifest."""
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return bool(manifest["receipt"]["id"]) and len(read_release(out).tables) == 1


@pytest.fixture
def ledger(folder):
    return Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(2)))


def hidden_files(folder):
    return [name for name in files(folder) if name.startswith(".")]


# The states of the entries of the ledger after the next release, by the state of the killed one.
STATES = {
    "unpaid": ["sealed"],
    "absent": ["absent", "sealed"],
    "resumable": ["reserved", "sealed"],
    "whole": ["sealed", "sealed"],
}


@pytest.mark.parametrize(
    ("change", "end"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS]
)
def test_killed_release_is_absent_resumable_or_whole(folder, ledger, start, run, change, end):
    run_until_stopped(start, change, "release", "people.toml", "--out", "out")
    assert len(ledger.entries()) == (end != "unpaid")
    assert (folder / "out").exists() == (end == "whole")
    assert not (folder / "out").exists() or is_whole(folder / "out")
    outcomes = drawn_values(ledger)

    # The next release reports the state of the killed one, and pays only for itself.
    next_release = run.succeeds("release", "people.toml", "--out", "second")
    can_finish = "paid and resumable. `leastnoise resume people.ledger` finishes it"
    is_reported_whole = end == "whole" and "'seal', after" not in change
    assert ("paid and absent" in next_release.err) == (end == "absent")
    assert ("paid and whole" in next_release.err) == is_reported_whole
    assert (can_finish in next_release.err) == (end == "resumable")
    assert [entry.state for entry in ledger.entries()] == STATES[end]
    assert hidden_files(folder) == []

    # A resumable release is finished once, unpaid, with the noise that was drawn.
    resumed = run.succeeds("resume", "people.ledger")
    assert ("Nothing was paid again" in resumed.out) == (end == "resumable"), resumed
    assert (folder / "out").exists() == (end in {"resumable", "whole"})
    assert [published_values(folder / "out") for _ in outcomes] == outcomes
    assert run("resume", "people.ledger").out == "Nothing to finish.\n"
    assert {entry.state for entry in ledger.entries()} <= {"sealed", "absent"}
    assert ledger.left().epsilon == 2 - sum(entry.charge.epsilon for entry in ledger.entries())
    assert hidden_files(folder) == []


@pytest.mark.parametrize(
    ("change", "end"), [step[1:] for step in STEPS[::2]], ids=[step[0] for step in STEPS[::2]]
)
def test_killed_share_of_mu_is_paid_once(folder, start, run, change, end):
    """A release with a third of an (epsilon, delta) budget, killed after its payment."""
    spec = SPEC.replace('epsilon = "1"', 'epsilon = "1"\ndelta = "1e-6"\nshare = "1/3"')
    (folder / "people.toml").write_text(spec, encoding="utf-8")
    budget = ApproxDP(1, "1e-6")
    ledger = Ledger.create(folder / "people.ledger", "people", Privacy(budget))
    run_until_stopped(start, change, "release", "people.toml", "--out", "out")
    assert len(ledger.entries()) == (end != "unpaid")
    outcomes = drawn_values(ledger)
    run.succeeds("resume", "people.ledger")
    assert [published_values(folder / "out") for _ in outcomes] == outcomes
    for number in range(len(ledger.entries()), 3):
        run.succeeds("release", "people.toml", "--out", f"out{number}")
    assert ledger.spent().mu_squared == gaussian_mu_squared(1, "1e-6")
    assert ledger.left() == Charge()
    refusal = run("release", "people.toml", "--out", "more")
    assert refusal.code == 2
    assert "nothing is left" in refusal.err
    assert not (folder / "more").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("change(finish.reading, 'read', before=interrupt)", "Nothing was spent."),
        ("change(finish.reading, 'read', before=interrupt_twice)", "Nothing was spent."),
        ("change(Ledger, 'reserve', after=interrupt)", "can be finished without paying again"),
        ("change(kernel, '_add_noise', after=interrupt_twice)", "and is absent"),
        (
            "change(finish, 'fill_draft', before=interrupt_twice)",
            "can be finished without paying again",
        ),
        ("change(directory, '_rename_draft', after=interrupt_twice)", "and is whole in "),
        ("change(release_command, 'print_release', before=interrupt)", "and is whole in "),
        ("change(release_command, 'print_facts', after=interrupt_twice)", "and is whole in "),
        (
            "change(session, 'read_table', before=lambda: interrupt_as_duckdb_says())",
            "Nothing was spent.",
        ),
    ],
)
def test_interruption_message_states_the_payment(folder, ledger, start, change, sentence):
    output = run_until_stopped(start, change, "release", "people.toml", "--out", "out", code=130)
    assert re.fullmatch(r"\n?leastnoise: interrupted\. [^\n]+\n", output), output
    assert sentence in output
    assert (folder / "out").exists() == ("whole" in sentence)
    if sentence == "Nothing was spent.":
        assert ledger.entries() == ()
    else:
        (entry,) = ledger.entries()
        assert entry.resumable == ("finished" in sentence)


def start_paused_release(folder, start):
    """Start a release that waits before it reads the rows."""
    process = start(
        "release",
        "people.toml",
        "--out",
        "out",
        program=changed_program("change(finish.reading, 'read', before=pause)"),
    )
    wait_until(lambda: (folder / "paused").exists() or process.poll() is not None)
    return process


def test_interrupted_waiting_run_spends_nothing(folder, ledger, start):
    process = start_paused_release(folder, start)
    process.send_signal(signal.SIGINT)
    result = ended(process)
    assert result.code == 130
    assert "interrupted. Nothing was spent." in result.err
    assert ledger.entries() == ()


@pytest.mark.parametrize(("debug", "has_frames"), [("", False), ("1", True)])
def test_fault_message_states_payment_and_no_value(folder, ledger, start, debug, has_frames):
    change = "change(finish, 'fill_draft', before=fail)"
    arguments = ("release", "people.toml", "--out", "out")
    output = run_until_stopped(start, change, *arguments, code=3, LEASTNOISE_DEBUG=debug)
    assert_contains(
        output,
        "a fault of the program, not of yours (RuntimeError at ",
        "please report",
        "The release was paid (epsilon = ",
        "can be finished without paying again: `leastnoise resume ",
    )
    assert "secret-value" not in output
    assert ("in carry_out" in output or "in publish" in output) == has_frames
    assert not (folder / "out").exists()


def test_disk_full_after_publication_leaves_a_whole_release(folder, ledger, start):
    change = "change(directory, '_rename_draft', after=full)"
    output = run_until_stopped(start, change, "release", "people.toml", "--out", "whole", code=4)
    assert "and is whole in " in output
    assert is_whole(folder / "whole")


def test_full_disk_after_payment_loses_nothing(folder, ledger, start, run):
    change = "change(directory, 'sync_to_disk', before=full)"
    output = run_until_stopped(start, change, "release", "people.toml", "--out", "out", code=3)
    message = (
        r"leastnoise: [^\n]*no space left on device[^\n]*paid \(epsilon = [^\n]*can be "
        r"finished[^\n]*\n"
    )
    assert re.fullmatch(message, output), output
    assert "fault" not in output
    assert [name for name in files(folder) if name.startswith((".", "out"))] == []
    run.succeeds("resume")
    assert is_whole(folder / "out")


# The program as a shell starts it with closed streams, or with output to a full disk.
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
    program = STREAMS.replace("{streams}", streams)
    result = ended(start("release", "people.toml", "--out", "out", program=program))
    assert is_whole(folder / "out")
    assert [entry.state for entry in ledger.entries()] == ["sealed"]
    assert result.code == (4 if "full" in streams else 0), result.err
    assert "Nothing was spent" not in result.err
    message = "no space left on device. The release was paid (epsilon = 1) and is whole in "
    assert (message in result.err) == (streams == "full()")


@pytest.mark.parametrize("out", ["/proc/o", "/sys/out"])
def test_uncreatable_directory_fails_before_payment(folder, ledger, run, out):
    run.is_refused("output directory", "release", "people.toml", "--out", out)
    assert ledger.entries() == ()


def test_name_of_maximum_length_is_accepted(folder, ledger, run):
    run.succeeds("release", "people.toml", "--out", "o" * 255)
    assert is_whole(folder / ("o" * 255))


def test_two_releases_into_one_directory_pay_once(folder, ledger, start):
    start_paused_release(folder, start)
    second = ended(start("release", "people.toml", "--out", "out"))
    assert second.code == 2
    assert "is being written by another process" in second.err
    assert ledger.entries() == ()


def start_releases(start, number):
    """Start releases at the same time, into the directories out0, out1 and so on."""
    return [start("release", "people.toml", "--out", f"out{i}") for i in range(number)]


def test_concurrent_releases_never_overspend(folder, start):
    """At most two of five releases of epsilon = 1/2 can be paid from a budget of 1."""
    ledger = Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(1)))
    edit(folder, ('epsilon = "1"', 'epsilon = "1/2"'))
    results = [ended(process) for process in start_releases(start, 5)]
    assert sorted(result.code for result in results) == [0, 0, 2, 2, 2], results
    assert [entry.state for entry in ledger.entries()] == ["sealed", "sealed"]
    assert ledger.spent().epsilon <= 1
    for number, result in enumerate(results):
        assert (folder / f"out{number}").exists() == (result.code == 0)
        assert ("Nothing was spent" in result.err) == (result.code == 2), result.err


def test_concurrent_releases_create_one_ledger(folder, start):
    codes = [ended(process).code for process in start_releases(start, 3)]
    assert sorted(codes) == [0, 2, 2]
    assert len(Ledger.open(folder / "people.ledger").entries()) == 1
    for number, code in enumerate(codes):
        assert (folder / f"out{number}").exists() == (code == 0)


def test_kill_points_name_existing_steps(start):
    run_until_stopped(start, "change(Ledger, 'reserved')", "--version", code=1)
