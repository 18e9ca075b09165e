"""``leastnoise resume``: finish releases that were paid and not published."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leastnoise._check import InputError, InternalError, LeastNoiseError, PaidError
from leastnoise._cli._earlier import named, settle_earlier
from leastnoise._cli._output import shown
from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._session import Finished, Ledger

_WORSE = (2, 4, 3, 70)  # exit codes, the least bad first


@click.command()
@click.argument("ledger", type=click.Path(path_type=Path), required=False)
@click.option("--release", "number", type=int, help="Only the release of this number in the ledger.")
@click.option("--out", type=click.Path(path_type=Path), help="Another directory than the one it was paid for; with --release.")
@click.option("--source", type=click.Path(path_type=Path), help="The data, if steps are left to measure and the data have moved.")
@click.pass_context
def resume(context: click.Context, ledger: Path | None, number: int | None, out: Path | None, source: Path | None) -> None:
    """Finish releases that were paid and measured, and not written; it costs nothing.

    LEDGER is the ledger's file; it may be left out where the current directory holds one only. What cannot be finished does not stop the
    others.
    """
    from leastnoise._session import IN_MEMORY, Ledger

    file = ledger or _only_ledger()
    settle_earlier(file, hint=False)
    book = Ledger.open(file)
    for entry in book.entries():
        if entry.resumable and book.is_running(entry):
            click.echo(f"{named(entry)} is being made by another process, and left to it.", err=True)
    waiting = [one for one in book.entries() if one.resumable and not book.is_running(one) and number in {None, one.number}]
    if number is None and out is None:
        for entry in waiting:
            if entry.output == IN_MEMORY:
                click.echo(
                    f"{named(entry)} was made in Python and not for a directory: leastnoise.resume({str(file)!r}) finishes it there, "
                    f"`leastnoise resume {shown(file)} --release {entry.number} --out DIR` here.",
                    err=True,
                )
        chosen = [entry.number for entry in waiting if entry.output != IN_MEMORY]
    else:
        chosen = [number] if number is not None else []
        if number is None:
            raise InputError("--out is for one release; say which with --release, as `leastnoise ledger show` has it.")
    if not chosen:
        click.echo("Nothing to finish.")
    codes = []
    for one in chosen:
        try:
            (finished,) = _finished(book, one, source, out)
        except LeastNoiseError as error:  # the others do not depend on it
            if len(chosen) == 1:
                raise
            click.echo(f"Release {one} was not finished: {error}", err=True)
            codes.append(_code(error))
            continue
        where = "nowhere, as it was asked for without a directory" if finished.out is None else shown(finished.out)
        click.echo(f"{named(finished.entry)} is finished: it is in {where}. Nothing was paid again.")
    if codes:
        click.echo(f"{len(codes)} of {len(chosen)} releases were not finished; the reasons are above.", err=True)
        context.exit(max(codes, key=_WORSE.index))


def _finished(book: "Ledger", one: int, source: Path | None, out: Path | None) -> "list[Finished]":
    """One release, with a display of progress."""
    from leastnoise._session import finish_all, resuming_seconds

    about = resuming_seconds(book, one)
    doing, reading = f"finishing release {one}", f"reading the data of release {one}"
    with Progress(doing, about=about) as progress:
        shown = partial(progress.rows, reading, doing, about=about)
        return finish_all(book, source, number=one, out=out, progress=shown)


def _code(error: LeastNoiseError) -> int:
    """The exit code that this error alone would have."""
    if isinstance(error, PaidError):
        return 4 if error.state == "whole" else 3
    return 70 if isinstance(error, InternalError) else 2


def _only_ledger() -> Path:
    found = sorted(Path().glob("*.ledger"))
    if len(found) != 1:
        raise InputError(f"Say which ledger, as in `leastnoise resume people.ledger`; this directory holds {len(found) or 'none'}.")
    return found[0]
