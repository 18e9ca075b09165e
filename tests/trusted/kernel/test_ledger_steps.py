"""The record of a release's steps in the ledger, and older or newer copies of it."""

import os
import re
import sqlite3
import stat
import tracemalloc
from dataclasses import replace
from fractions import Fraction

import pytest

from leastnoise._trusted.check import LedgerError
from leastnoise._trusted.check.helpers.locks import try_lock
from leastnoise._trusted.kernel import Ledger, _ledger, _ledger_run
from trusted.kernel.ledgers import edit, take


def steps_of(ledger, **options):
    """Return a release whose first two steps have results."""
    receipt = take(ledger, plan="{}", options="[]", **options)
    for number in (1, 2):
        ledger.begin(receipt, number, f"request {number}")
        ledger.record(receipt, number, [f"outcome {number}"] * 1000)
    return receipt


def test_step_outcomes_are_kept_until_sealing(ledger):
    receipt = steps_of(ledger)
    (entry,) = Ledger.open(ledger.path).entries()
    assert entry.resumable
    pending = Ledger.open(ledger.path).pending(entry)
    assert (pending.plan, pending.options) == ("{}", "[]")
    assert [(step.request, step.outcome) for step in pending.steps] == [
        (f"request {n}", f"outcome {n}" * 1000) for n in (1, 2)
    ]
    for number in (1, 2, 3, 4):
        with pytest.raises(LedgerError, match="not under way"):
            ledger.record(receipt, number, ["another outcome"])
    assert ledger.pending(entry) == pending

    ledger.seal(receipt)
    assert not ledger.entries()[0].resumable
    with pytest.raises(LedgerError, match="nothing that could be finished"):
        ledger.pending(entry)


def test_begun_step_is_never_begun_again(ledger):
    receipt = steps_of(ledger)
    ledger.begin(receipt, 3, "request 3")

    for number in (1, 2, 3, 4, 5):
        with pytest.raises(LedgerError, match="A step is not drawn twice"):
            ledger.begin(receipt, number, "request")
    assert not ledger.entries()[0].resumable
    with (
        ledger.running() as run,
        pytest.raises(LedgerError, match="being finished by another process, or is finished"),
    ):
        ledger.take_over(ledger.entries()[0], run)
    assert [entry.state for entry in ledger.reconcile(lambda _: False)] == ["absent"]
    with pytest.raises(LedgerError, match="not under way"):
        ledger.record(receipt, 3, ["late"])


@pytest.mark.parametrize(
    ("texts", "lengths"),
    [
        ([], []),
        ([""], []),
        (["abc", "defg", "h"], [7, 1]),
        (["a" * 20], [7, 7, 6]),
        (["abc"] * 3, [7, 2]),
        (['"\\', "ä\n", "😀" * 6], [7, 3]),
    ],
)
def test_long_outcome_is_stored_in_parts_with_digest(ledger, monkeypatch, texts, lengths):
    monkeypatch.setattr("leastnoise._trusted.kernel._ledger_run._PART", 7)
    receipt = take(ledger, plan="{}", options="[]")
    ledger.begin(receipt, 1, "request")
    ledger.record(receipt, 1, iter(texts))
    # `pending` compares the digests.
    assert [step.outcome for step in ledger.pending(ledger.entries()[0]).steps] == ["".join(texts)]

    with sqlite3.connect(ledger.path) as connection:
        part_lengths = connection.execute(
            "SELECT length(text) FROM outcome ORDER BY part"
        ).fetchall()
    assert [length for (length,) in part_lengths] == lengths

    ledger.begin(receipt, 2, "request")
    with pytest.raises(ZeroDivisionError):  # of an outcome that fails half way nothing is kept
        ledger.record(receipt, 2, (str(1 // (30 - place)) * 3 for place in range(50)))
    with sqlite3.connect(ledger.path) as connection:
        assert connection.execute("SELECT count(*), max(number) FROM outcome").fetchone() == (
            len(lengths),
            1 if lengths else None,
        )
    assert not ledger.entries()[0].resumable


def test_long_text_is_copied_part_by_part(monkeypatch):
    monkeypatch.setattr(_ledger_run, "_PART", 2**12)
    texts = ["head", "x" * 2**20, "tail"]
    tracemalloc.start()
    try:
        assert sum(map(len, _ledger_run._text_parts(texts))) == 2**20 + 8
        assert tracemalloc.get_traced_memory()[1] < 2**16
    finally:
        tracemalloc.stop()


def test_damaged_outcome_leaves_ledger_usable(ledger):
    steps_of(ledger)
    for statement in (
        "UPDATE outcome SET text = 'x' || substr(text, 2) WHERE number = 2",
        "UPDATE pending SET options = '[1]'",
    ):
        intact = ledger.path.read_bytes()
        edit(ledger, statement)
        with pytest.raises(
            LedgerError, match=r"is damaged \(the (measurement|plan) of the release"
        ):
            ledger.pending(ledger.entries()[0])
        assert ledger.left().epsilon == Fraction(2, 3)
        ledger.path.write_bytes(intact)


def test_release_of_live_process_is_not_taken_over(ledger, tmp_path_factory):
    """This holds too if that process opened the ledger through a link in another folder."""
    link = tmp_path_factory.mktemp("elsewhere") / "same.ledger"
    link.symlink_to(ledger.path)
    linked_ledger = Ledger.open(link)
    with ledger.running() as run:
        steps_of(ledger, run=run)
        (entry,) = linked_ledger.entries()
        assert linked_ledger.is_running(entry)
        assert linked_ledger.reconcile(lambda _: True) == ()
        with (
            linked_ledger.running() as other_run,
            pytest.raises(LedgerError, match=r"Release 1 .* is being finished by another process"),
        ):
            linked_ledger.take_over(entry, other_run)

    assert not linked_ledger.is_running(entry)
    for number in (1, 9):  # an entry that the ledger does not have
        with (
            ledger.running() as other_run,
            pytest.raises(LedgerError, match=f"Release {number} in the ledger .* is finished"),
        ):
            ledger.take_over(replace(entry, id="cd" * 16, number=number), other_run)
    assert [*ledger.path.parent.iterdir(), *link.parent.iterdir()] == [ledger.path, link]


def test_overtaken_process_cannot_record_or_seal(ledger):
    slow = take(ledger, plan="{}", run="0" * 32)  # its process counts as dead
    with ledger.running() as run:
        quick = ledger.take_over(ledger.entries()[0], run)
        for late in (lambda: ledger.begin(slow, 1, "request"), lambda: ledger.seal(slow)):
            with pytest.raises(LedgerError, match="was taken over by another process"):
                late()
        ledger.begin(quick, 1, "request")
        ledger.record(quick, 1, ["outcome"])
        ledger.seal(quick)

    assert ledger.entries()[0].state == "sealed"


def test_lost_locks_never_cause_a_second_draw(ledger, monkeypatch):
    """The ledger's rows, not the locks, prevent second draws and draws for ended releases."""
    monkeypatch.setattr(_ledger, "is_running", lambda *_: False)
    with ledger.running() as run, ledger.running() as other_run:
        receipt = steps_of(ledger, run=run)
        taken_over = ledger.take_over(ledger.entries()[0], other_run)
        with pytest.raises(LedgerError, match="was taken over by another process"):
            ledger.begin(receipt, 3, "request 3")
        with pytest.raises(LedgerError, match="A step is not drawn twice"):
            ledger.begin(taken_over, 2, "request 2")
        ledger.begin(taken_over, 3, "request 3")
        with pytest.raises(LedgerError, match="being finished by another process, or is finished"):
            ledger.take_over(ledger.entries()[0], run)
        for answer, state in ((False, "absent"), ("reserved", "sealed")):
            monkeypatch.setattr(
                _ledger, "publication_by_entry", lambda *_, answer=answer: {receipt.id: answer}
            )
            assert [entry.state for entry in ledger.reconcile(lambda _: None)] == [state]
            with pytest.raises(LedgerError, match=f"is {state}; nothing more is drawn for it"):
                ledger.begin(taken_over, 1, "request 1")


def test_disk_room_is_reserved_until_recording(ledger):
    with ledger.running(50_000) as run:
        (reserve_file,) = (path for path in ledger.path.parent.iterdir() if run in path.name)
        assert reserve_file.stat().st_blocks * 512 >= 50_000
        receipt = take(ledger, plan="{}", run=run)
        ledger.begin(receipt, 1, "request")
        ledger.record(receipt, 1, ["outcome"])
        assert reserve_file.stat().st_size == 0
    assert not reserve_file.exists()


def test_sign_whose_handle_is_zero_is_removed_too(ledger):
    """The handle is 0 in a process without standard input."""
    saved_handle = os.dup(0)
    os.close(0)
    try:
        mask = os.umask(0)
        with ledger.running():
            os.fstat(0)
            modes = {
                path.name: stat.S_IMODE(path.stat().st_mode)
                for path in ledger.path.parent.iterdir()
            }
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(0)
    finally:
        os.umask(mask)
        os.dup2(saved_handle, 0)
        os.close(saved_handle)

    # Whatever the process allows for its files, its owner alone can lock it: another one's lock
    # would say that the release is being made.
    assert [mode for name, mode in modes.items() if ".run-" in name] == [0o600]
    assert [path.name for path in ledger.path.parent.iterdir()] == ["people.ledger"]


def test_lock_file_swept_before_locking_is_remade(ledger, monkeypatch):
    swept = []

    def late(handle):
        if not swept:
            swept.extend(path for path in ledger.path.parent.iterdir() if ".run-" in path.name)
            swept[0].unlink()
        return try_lock(handle)

    monkeypatch.setattr("leastnoise._trusted.kernel.helpers._run_locks.try_lock", late)

    with ledger.running() as run:
        assert [
            run in path.name for path in ledger.path.parent.iterdir() if ".run-" in path.name
        ] == [True]


def test_disk_without_room_is_noticed_before_payment(ledger, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)

    with (
        pytest.raises(
            LedgerError,
            match=(
                r"needs a file of 9 bytes next to the ledger .* no space left on device. Nothing "
                r"was spent."
            ),
        ),
        ledger.running(9),
    ):
        pytest.fail("no room")
    assert [path.name for path in ledger.path.parent.iterdir()] == ["people.ledger"]


def test_older_ledger_page_is_noticed_or_harmless(ledger):
    """Restoring an older page silently dropped the last entry before entries were summed."""
    for _ in range(3):
        take(ledger, "1/10")
    before = ledger.path.read_bytes()
    take(ledger, "1/10")
    after = ledger.path.read_bytes()
    noticed = 0
    for start in range(0, len(after), 4096):
        ledger.path.write_bytes(
            after[:start] + before[start : start + 4096] + after[start + 4096 :]
        )
        try:
            assert Ledger.open(ledger.path).spent().epsilon == Fraction(4, 10)
        except LedgerError:
            noticed += 1

    assert noticed >= 2


def test_damage_advice_never_suggests_a_new_ledger(ledger):
    take(ledger, description="x" * 9000)
    intact = ledger.path.read_bytes()
    for damage in (
        b"",
        intact[:50],
        intact[:5000],
        intact[:-4],
        b"\0" * len(intact),
        b"x" + intact[1:],
        intact[:68] + b"\0\0\0\0" + intact[72:],
    ):
        ledger.path.write_bytes(damage)
        for use in (lambda: Ledger.open(ledger.path, timeout=0), lambda: take(ledger)):
            with pytest.raises(LedgerError) as caught:
                use()
            assert "estore it from a copy that has all its releases" in str(caught.value)
            assert not re.search(r"(?i)\bmake\b|\bremove\b", str(caught.value))
