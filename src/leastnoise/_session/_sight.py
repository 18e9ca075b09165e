"""What lies beside a ledger: releases that were paid from it and that it does not know, and other ledgers of the same data."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from leastnoise._check import LeastNoiseError, LedgerError
from leastnoise._kernel import Ledger
from leastnoise._session._accounts import receipt_in


def unknown_releases(ledger: Path, book: Ledger | None, folders: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Look for releases that were paid from this ledger, and that it does not know: then it is an older copy, or a new one of that name."""
    entries = book.entries() if book is not None else ()
    known = {entry.id for entry in entries}
    places = {ledger.parent, *folders} | {Path(entry.output).parent for entry in entries if entry.output.startswith("/")}
    key, own = ("ledger", ledger.name) if book is None else ("ledger_id", book.id)
    return tuple(release for release, receipt in _paid_releases(places) if receipt.get(key) == own and receipt.get("id") not in known)


def _paid_releases(places: Iterable[Path]) -> Iterator[tuple[Path, dict[str, object]]]:
    """Every release in these folders that a ledger paid, with its receipt."""
    for place in sorted({Path(os.path.abspath(place)) for place in places}):  # noqa: PTH100 - links stay links
        with suppress(OSError):
            for release in sorted(place.iterdir()):
                with suppress(OSError):
                    receipt = receipt_in(release)
                    if receipt.get("ledger_id"):
                        yield release, receipt


def check_known(ledger: Path, book: Ledger | None, folders: Iterable[Path] = ()) -> None:
    """Refuse to pay from a ledger that does not know of releases that were paid from it."""
    found = unknown_releases(ledger, book, folders)
    if not found:
        return
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    if book is None:
        raise LedgerError(
            f"There is no ledger at {ledger}, but the release in {found[0]}{more} was paid from one of this name. Nothing was spent. "
            "Restore that ledger; or, if this is another data set, give its ledger another name."
        )
    raise LedgerError(
        f"The ledger {ledger} does not know the release in {found[0]}{more}, which was paid from it: it is an older copy. Nothing was "
        f"spent. Restore the newest copy of the ledger; if there is none, enter what it lacks: `leastnoise ledger spent {ledger} --release "
        f"{found[0]}`."
    )


def other_ledgers(ledger: Path, dataset: str, folders: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Look for other ledgers that know a data set, and for releases that they paid where they are not in sight themselves."""
    found = []
    places = sorted({Path(os.path.abspath(place)) for place in (ledger.parent, *folders)})  # noqa: PTH100 - links stay links
    for place in places:
        for file in sorted(place.glob("*.ledger")):
            with suppress(LeastNoiseError, OSError):
                if not (ledger.exists() and file.samefile(ledger)) and Ledger.open(file, timeout=1).dataset == dataset:
                    found.append(file)
    return tuple(found) or tuple(release for release, receipt in _paid_releases(places) if dataset in _datasets(receipt))


def _datasets(receipt: Mapping[str, Any]) -> set[Any]:
    """The data sets that a release was made of: its ledger's, and a second table that is not public."""
    joined = receipt.get("joined")
    second = {joined.get("table")} if isinstance(joined, dict) and joined.get("public") is False else set()
    return {receipt.get("dataset"), *second}


def check_only(ledger: Path, dataset: str | None, folders: Iterable[Path] = ()) -> None:
    """Refuse to open a second ledger for data that another one knows."""
    found = other_ledgers(ledger, dataset, folders) if dataset else ()
    if found:
        knows = f"the release in {found[0]} was paid for" if found[0].is_dir() else f"the ledger {found[0]} knows"
        raise LedgerError(
            f"There is no ledger at {ledger}, and {knows} the data set {dataset!r}: a second ledger would not know what was spent. Nothing "
            "was spent. Pay from that ledger; or, if these are other people, give the data set another name (dataset); or, to keep two "
            f"ledgers whose losses add up, make this one with `leastnoise ledger set {ledger}`."
        )
