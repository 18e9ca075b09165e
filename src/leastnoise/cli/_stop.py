"""How a release that did not end well says what became of the money."""

import os
from pathlib import Path


def place_of(out: Path) -> str:
    """How the ledger names a directory.

    >>> place_of(Path("/a/../b"))
    '/b'
    """
    return os.path.abspath(out.expanduser())  # noqa: PTH100 - resolve() would follow links, as the release does not


class Stopped(BaseException):
    """An error together with the sentence that says whether something was paid.

    Args:
        cause: the error, or the interruption.
        paid: one sentence or more.
    """

    def __init__(self, cause: BaseException, paid: str) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.paid = paid


def what_was_paid(ledger: Path, known: frozenset[str], out: Path) -> str:
    """Look into the ledger after an error.

    Args:
        ledger: its file.
        known: the identifications of the entries that were there before.
        out: the directory that was to be written.

    Returns:
        What was paid and what became of it; empty if nothing was paid.
    """
    from leastnoise.session import Ledger, settle

    if not ledger.exists():
        return ""
    try:
        book = Ledger.open(ledger)
        place = place_of(out)
        # Two runs with one target: both would be told of both entries, which is the safe side.
        mine = {entry.id for entry in book.entries() if entry.id not in known and entry.output == place}
        if not mine:
            return ""
        settle(book)
        entry = next(entry for entry in reversed(book.entries()) if entry.id in mine)
    except Exception:  # noqa: BLE001 - the first error must not be hidden by a second one
        return f"Whether something was paid cannot be told; see `leastnoise ledger show {ledger}`."
    if entry.state == "sealed":
        return f"The release was paid ({entry.charge}) and is whole in {out}."
    return f"The release was paid ({entry.charge}) and is absent: its noise may have been drawn, so the budget stays spent."
