"""A release that another ledger paid, or that an older copy does not know, entered into a ledger from its own files."""

import json
from datetime import date
from pathlib import Path

from leastnoise._accounting import Cost, SeriesCost
from leastnoise._check import InputError
from leastnoise._kernel import Entry, Ledger
from leastnoise._release import found_there, read_categories
from leastnoise._session._ledgers import receipt_in
from leastnoise._session._reading import read_release
from leastnoise._stopped import note_run


def enter_release(ledger: Ledger, release: str | Path, note: str = "") -> Entry:
    """Enter what a release, or a search for categories, cost into a ledger that does not know it."""
    directory = Path(release).absolute()
    if found_there(directory):
        categories = read_categories(directory)
        private, privacy, digest = categories.private, categories.plan.privacy, categories.plan.digest()
        cost: Cost = SeriesCost(privacy.budget)
    else:
        made = read_release(release)
        private, privacy, digest, cost = made.observation.private, made.plan.privacy, made.plan_digest, made.plan.cost()
    receipt = receipt_in(directory)
    if not private or not receipt.get("id"):
        raise InputError(f"The release in {str(directory)!r} was paid by no ledger, because it is not private. There is nothing to enter.")
    paid_from = f"paid from {receipt.get('ledger')}, release {receipt.get('number')}"
    if all(entry.id != receipt["id"] for entry in ledger.entries()):
        note_run(ledger.path.absolute(), str(receipt["id"]))
    return ledger.add_spent(
        privacy,
        cost,
        receipt=str(receipt["id"]),
        output=str(directory),
        plan_digest=digest,
        note=note or paid_from,
        on=_written_on(directory),
    )


def _written_on(release: Path) -> date:
    try:
        return date.fromisoformat(json.loads((release / "manifest.json").read_text(encoding="utf-8"))["written"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"The release in {str(release)!r} is damaged: its manifest does not say when it was written.") from None
