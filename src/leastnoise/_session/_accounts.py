"""The state of every payment: nothing paid, or paid and the release whole, resumable or absent; read from the ledger, never assumed.

Every payment of this process is made under a run of its own, noted here before it can happen, so that the ledger can be asked about it.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from leastnoise._check import LeastNoiseError, PaidError
from leastnoise._kernel import Entry, Ledger
from leastnoise._session._ledgers import receipt_in
from leastnoise._stopped import cause, note_run

IN_MEMORY = "(in memory)"
GUARD = "(guard)"
"""The output of a guard, which is whole in the ledger itself."""


@dataclass(frozen=True, slots=True)
class Account:
    """The state of a payment (nothing, guard, whole, resumable, absent, entered or unknown), and a sentence or two that say it."""

    state: str
    words: str


def account(ledger: Path, run: str) -> Account:
    """Read the state of a payment from its ledger; an entry that was published is sealed on the way."""
    try:
        book = Ledger.open(ledger)
        mine = next((entry for entry in book.entries() if run in {entry.run, entry.id}), None)
        if mine is None:
            return Account("nothing", "")
        if mine.kind != "release":
            return Account("entered", f"It was entered before that, as number {mine.number}.")
        with suppress(LeastNoiseError, OSError):  # what cannot be entered now, the next run enters
            own, number = mine.id, mine.number
            book.reconcile(lambda entry: is_published(entry) if entry.id == own else None)
            mine = book.entries()[number - 1]
        whole = mine.state == "sealed" or is_published(mine)
    except (LeastNoiseError, OSError):
        return Account("unknown", f"Whether something was paid cannot be told now; see `leastnoise ledger show {ledger}`.")
    if mine.output == GUARD:
        return Account("guard", f"Its guard was paid ({mine.charge}).")
    paid = f"The release was paid ({mine.charge})"
    if whole:
        return Account("whole", f"{paid} and is whole{'' if mine.output == IN_MEMORY else f' in {mine.output}'}.")
    if whole is None:
        return Account("unknown", f"{paid}; whether it is whole in {mine.output} cannot be told now.")
    if mine.resumable:
        return Account("resumable", f"{paid} and can be finished without paying again: `leastnoise resume {ledger}`.")
    return Account("absent", f"{paid} and is absent: its noise may have been drawn, so the budget stays spent.")


@contextmanager
def paying(book: Ledger, room: int) -> Iterator[str]:
    """Give a run to pay under; an error inside leaves as PaidError if something was paid, and as it is otherwise."""
    run = ""
    try:
        with book.running(room) as run:
            note_run(book.path.absolute(), run)
            yield run
    except Exception as error:
        found = account(book.path, run) if run else Account("nothing", "")
        if found.state == "nothing":
            raise
        raise PaidError(f"{cause(error)[0]} {found.words}", found.state, error) from error
    except BaseException as error:  # an interruption
        found = account(book.path, run) if run else Account("nothing", "")
        if found.words:
            error.add_note(found.words)
        raise


def settle(ledger: Ledger) -> tuple[Entry, ...]:
    """Settle the releases that were paid and not sealed, because their process was stopped."""
    return ledger.reconcile(is_published)


def warn_of_unfinished(book: Ledger) -> None:
    """Warn of every release that was paid and stopped, and can be finished."""
    for entry in book.entries():
        if entry.resumable and not book.is_running(entry):
            warnings.warn(
                f"Release {entry.number} of {entry.reserved_on} ({entry.charge}; {entry.output}) was stopped before it was published: "
                f"leastnoise.resume({str(book.path)!r}) finishes it without paying again.",
                stacklevel=3,
            )


def is_published(entry: Entry) -> bool | None:
    """Whether a release is in its place: a directory appears in one step, so a manifest with the entry's receipt means that it is whole."""
    if entry.output in {GUARD, IN_MEMORY}:
        return False
    try:
        found = receipt_in(Path(entry.output))
        if found.get("id") != entry.id:
            return False
        handle = os.open(Path(entry.output).parent, os.O_RDONLY)
        try:
            os.fsync(handle)  # what cannot be made durable is not known to be published
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    return True
