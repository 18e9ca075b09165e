"""Earlier releases of a ledger that were not finished: what is said of them before something else is paid."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from leastnoise._cli._output import shown

if TYPE_CHECKING:
    from leastnoise._session import Entry


def settle_earlier(ledger: Path, *, hint: bool = True) -> frozenset[str]:
    """Settle earlier releases that were not finished, and write the state of each."""
    from leastnoise._session import Ledger, settle

    if not ledger.exists():
        return frozenset()
    book = Ledger.open(ledger)
    for entry in settle(book):
        what, where = named(entry), shown(Path(entry.output))
        if entry.state == "sealed":
            click.echo(f"{what} was stopped after it was published: paid and whole, in {where}.", err=True)
        else:
            click.echo(
                f"{what} was stopped while it was measured: paid and absent. Nothing is at {where}, and its budget stays spent.", err=True
            )
    entries = book.entries()
    for entry in entries if hint else ():
        if entry.resumable and not book.is_running(entry):
            click.echo(
                f"{named(entry)} was stopped before it was published: paid and resumable. `leastnoise resume {shown(ledger)}` finishes it "
                "without paying again.",
                err=True,
            )
    return frozenset(entry.id for entry in entries)


def named(entry: "Entry") -> str:
    """How an entry of the ledger is called in messages."""
    return f"Release {entry.number} of {entry.reserved_on} ({entry.charge})"
