"""Why a ledger does not pay for these data, in sentences, and whether one can be made in a place.

Not trusted: nothing is decided by it. What is refused here is refused again by `Ledger.create`,
after the plan.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from leastnoise._trusted.check import LedgerError


def other_data(ledger: Path, dataset: str, got: object) -> str:
    """The sentence for a ledger of other data."""
    return (
        f"The ledger {ledger} belongs to the data set {dataset!r}; got {got!r}. "
        f"Use the ledger of {got!r}; or, if these are the same people, say dataset = {dataset!r} "
        "([ledger] of a spec, --dataset)."
    )


def check_makeable(ledger: Path) -> None:
    """Refuse a place where no ledger can be made, before anything is planned or read."""
    folder = ledger.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise LedgerError(
            f"A ledger cannot be made at {ledger}: choose a folder that exists and that you may "
            "write to. Nothing was spent."
        )
    for left_over in (Path(f"{ledger}-journal"), Path(f"{ledger}-wal")):
        if left_over.exists():
            raise LedgerError(
                f"{left_over} is left from an earlier ledger of this name. Restore that ledger. "
                "Nothing was spent."
            )


def older_copy(ledger: Path, releases: Sequence[Path], *, there: bool) -> str:
    """The sentence for a ledger that does not know of releases that were paid from it, or that is not there."""
    first, more = releases[0], f" and {len(releases) - 1} more" if len(releases) > 1 else ""
    if not there:
        return (
            f"There is no ledger at {ledger}, but the release in {first}{more} was paid from one "
            "of this name. Nothing was spent. "
            "Restore that ledger; or, if this is another data set, give its ledger another name."
        )
    return (
        f"The ledger {ledger} does not know the release in {first}{more}, which was paid from it: "
        "it is an older copy. Nothing was "
        "spent. Restore the newest copy of the ledger; if there is none, enter what it lacks: "
        f"`leastnoise ledger spent {ledger} --release "
        f"{first}`."
    )


def second_ledger(ledger: Path, dataset: str | None, other: Path) -> str:
    """The sentence for data that another ledger knows, or a release that it paid."""
    knows = (
        f"the release in {other} was paid for" if other.is_dir() else f"the ledger {other} knows"
    )
    return (
        f"There is no ledger at {ledger}, and {knows} the data set {dataset!r}: a second ledger "
        "would not know what was spent. Nothing "
        "was spent. Pay from that ledger; or, if these are other people, give the data set "
        "another name (dataset); or, to keep two "
        f"ledgers whose losses add up, make this one with `leastnoise ledger set {ledger}`."
    )
