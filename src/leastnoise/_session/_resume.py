"""Releases that were paid and stopped are finished: those of one measurement, searches for categories, and series."""

import warnings
from pathlib import Path
from typing import Any

from leastnoise._check import InputError, LeastNoiseError
from leastnoise._kernel import Entry, Ledger
from leastnoise._plan import is_category_plan
from leastnoise._progress import rows_shown
from leastnoise._session._accounts import IN_MEMORY, settle
from leastnoise._session._categories import finish_search
from leastnoise._session._finish import Finished, RowProgress, finish_one
from leastnoise._session._periods import finish_series, is_series_plan, is_unfinished, last_release
from leastnoise._threads import one_thread


def resume(ledger: Any, *, number: int | None = None, source: Any = None, out: Any = None, progress: RowProgress = None) -> list[Any]:
    """Finish the releases of a ledger that were paid and stopped before they were published; it costs nothing.

    Args:
        ledger: the ledger, or its file.
        number: of the one release to finish; None for all that can be finished.
        source: the data, if they are needed (a release was stopped between two steps) and not where they were.
        out: another directory than the one it was paid for; with ``number`` only.
        progress: called with the rows read so far and their number if it is known.

    Returns:
        The releases, and what searches for categories found, in the order in which they were paid; empty if there is nothing to finish.

    Warns:
        UserWarning: one of several could not be finished, and why; the others are, and are returned.

    Raises:
        InputError: no such release, a directory that exists or cannot be made, or data that are needed and not there.
        LedgerError: the ledger cannot be used.
        PaidError: something failed again; the message says whether the release can still be finished. Of several releases, the first error
            if none could be finished.

    Guarantees: what was drawn is drawn never again: recorded steps are taken as they are, and a step that was begun without a record makes
        the release absent.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.resume(ln.Ledger.create(Path(folder, "people.ledger"), "people", ln.Privacy(ln.PureDP(1))))
    []
    """
    return [finished.release for finished in finish_all(ledger, source, number=number, out=out, progress=progress)]


@one_thread()
@rows_shown("finishing")
def finish_all(
    ledger: Any, source: Any = None, *, number: int | None = None, out: Any = None, progress: RowProgress = None
) -> list[Finished]:
    """As `resume`, with the entries."""
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    settle(book)
    if out is not None and number is None:
        raise InputError("Another directory is for one release; say which with its number, as `leastnoise ledger show` has it.")
    chosen = [entry for entry in book.entries() if number in {None, entry.number} and is_unfinished(book, entry)]
    if number is not None and not chosen:
        running = any(one.number == number and one.resumable for one in book.entries())
        why = "is being made by another process, as far as can be told" if running else "is not one that can be finished"
        raise InputError(f"Release {number} in the ledger {book.path} {why}; see `leastnoise ledger show`.")
    done, failed = [], []
    for entry in chosen:
        try:
            done.append(_finished(book, entry, source, out, progress))
        except LeastNoiseError as error:  # the others do not depend on it, and one that is in memory alone would be lost with it
            failed.append((entry, error))
    if failed and not done:
        raise failed[0][1]
    for entry, why_not in failed:
        warnings.warn(f"Release {entry.number} was not finished: {why_not}", stacklevel=4)
    return done


def _finished(book: Ledger, entry: Entry, source: Any, out: Any, progress: RowProgress) -> Finished:
    """A release, or a search for categories."""
    text = book.pending(entry).plan
    if is_series_plan(text):
        if out is not None:
            raise InputError("The releases of a series are in the directory that it was paid for; leave out the other one.")
        return Finished(entry, last_release(finish_series(book, entry)), Path(entry.output))
    if not is_category_plan(text):
        return finish_one(book, entry, source, out=out, progress=progress)
    found = finish_search(book, entry, source, out=out, progress=progress)
    return Finished(entry, found, None if out is None and entry.output == IN_MEMORY else Path(out or entry.output))
