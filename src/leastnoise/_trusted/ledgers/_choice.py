"""Which ledger pays: found, or made, and refused if it is an older copy, a second one, or of other data.

Trusted: `Series.paid` charges whatever ledger it is given. Everything else of the session may be
    wrong without spending twice.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from leastnoise._trusted import reading
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError, LeastNoiseError, LedgerError, refuse
from leastnoise._trusted.kernel import Ledger


def ledger_for(
    ledger: object, source: Any, dataset: str | None, folders: list[Path], *, share: str = ""
) -> Ledger | None:
    """The ledger that pays, if it is there.

    Args:
        ledger: it, or its file.
        source: the private data; only what they are called, and where they are, is asked.
        dataset: their name in the ledger; None for that of their file or table.
        folders: where releases that it paid, and other ledgers of the data, are looked for besides.
        share: whose part of the budget pays; "" if it is not shared out.

    Returns:
        The ledger; None if the file does not exist and may be made.

    Raises:
        InputError: it is no ledger, or belongs to other data.
        LedgerError: it cannot be used, is older than a release that it paid, or would be a second
            one of the data.

    >>> folder = tempfile.TemporaryDirectory()
    >>> file, rows = Path(folder.name, "people.ledger"), Path(folder.name, "people.csv")
    >>> ledger_for(file, rows, None, []) is None
    True
    >>> ledger_for(file, rows, None, [], share="ann")
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.LedgerError: There is no ledger at ... restore it. ...
    >>> folder.cleanup()
    """
    if ledger is None:
        raise InputError(
            "A release must have a ledger, which records what it costs; pass for example "
            "ledger='people.ledger'."
        )
    if isinstance(ledger, Ledger):
        check_known(ledger.path, ledger, folders)
        return ledger
    if not isinstance(ledger, (str, Path)):
        raise refuse("ledger", ledger, "a path or a Ledger")
    file = Path(ledger)
    opened_ledger = _opened(file, share)
    check_known(file, opened_ledger, folders)
    name = dataset or reading.dataset_name(source)
    if opened_ledger is None:
        first, *joined = reading.protected_tables(source)
        for table, table_name in [
            (first, name),
            *((second, reading.dataset_name(second)) for second in joined),
        ]:
            check_only(file, table_name, [*folders, *_folder(reading.source_location(table))])
    elif name not in (None, opened_ledger.dataset):
        raise InputError(
            f"The ledger {opened_ledger.path} belongs to the data set {opened_ledger.dataset!r}; got {name!r}. "
            f"Use the ledger of {name!r}; or, if these are the same people, set dataset = "
            f"{opened_ledger.dataset!r} ([ledger] of a spec, --dataset)."
        )
    return opened_ledger


def ledger_made(file: object, dataset: str, privacy: Privacy) -> Ledger:
    """Make the ledger that `ledger_for` found missing; or open it, if another process has made it meanwhile.

    Args:
        file: where.
        dataset: the name of the data set.
        privacy: what it may spend in all, the neighbours and the unit. A bound on a unit's rows in
            cells is of one table, and left out.

    >>> folder = tempfile.TemporaryDirectory()
    >>> made = ledger_made(Path(folder.name, "people.ledger"), "people", ln.Privacy(ln.PureDP(1)))
    >>> made.left().epsilon, ledger_made(made.path, "people", made.privacy).id == made.id
    (Fraction(1, 1), True)
    >>> folder.cleanup()
    """
    path = Path(str(file))
    if path.exists():
        return Ledger.open(path)
    return Ledger.create(
        path,
        dataset,
        Privacy(privacy.budget, privacy.neighbours, privacy.unit_column, privacy.max_rows),
    )


def _opened(ledger: Path, share: str) -> Ledger | None:
    """The ledger, if there is one."""
    if os.path.lexists(ledger) or share:
        return Ledger.open(ledger, share=share)
    _check_can_be_created(ledger)
    return None


def _folder(location: Any) -> list[Path]:
    """Where data that are files are, and so their ledger."""
    path = location.get("path") if isinstance(location, dict) else location
    return [reading.ledger_beside(path).parent] if isinstance(path, str) else []


def unknown_releases(
    ledger: Path, book: Ledger | None, folders: Iterable[Path] = ()
) -> tuple[Path, ...]:
    """Return the releases in sight that this ledger paid for and has no row of.

    If there is one, the ledger is an older copy, or a new one of that name.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     unknown_releases(Path(folder, "people.ledger"), None)
    ()
    """
    entries = book.entries() if book is not None else ()
    entry_ids = {entry.id for entry in entries}
    parents = {ledger.parent, *folders} | {
        Path(entry.output).parent for entry in entries if entry.output.startswith("/")
    }
    key, value = ("ledger", ledger.name) if book is None else ("ledger_id", book.id)
    return tuple(
        release
        for release, receipt in _paid_releases(parents)
        if receipt.get(key) == value and receipt.get("id") not in entry_ids
    )


def _paid_releases(folders: Iterable[Path]) -> Iterator[tuple[Path, dict[str, str]]]:
    """Every release in these folders that a ledger paid, with its receipt."""
    for folder in sorted({Path(os.path.abspath(folder)) for folder in folders}):  # noqa: PTH100 - links stay links
        with suppress(OSError):
            for inside in sorted(folder.iterdir()):
                for release in (inside, *_periods_in(inside)):
                    with suppress(OSError):
                        receipt = receipt_in(release)
                        if receipt.get("ledger_id"):
                            yield release, receipt


def _periods_in(folder: Path) -> list[Path]:
    """The releases in the directory of a series, one for each of its periods."""
    with suppress(OSError):
        return sorted(manifest.parent for manifest in folder.glob("*/manifest.json"))
    return []


def check_known(ledger: Path, book: Ledger | None, folders: Iterable[Path] = ()) -> None:
    """Refuse to pay from a ledger that does not know of releases that were paid from it."""
    if unknown := unknown_releases(ledger, book, folders):
        raise LedgerError(_missing_entries(ledger, unknown, exists=book is not None))


def other_ledgers(ledger: Path, dataset: str, folders: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Return the other ledgers in sight that know a data set; if there are none, releases paid for it.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     other_ledgers(Path(folder, "people.ledger"), "people")
    ()
    """
    others = []
    searched = sorted({Path(os.path.abspath(folder)) for folder in (ledger.parent, *folders)})  # noqa: PTH100 - links stay links
    for folder in searched:
        for file in sorted(folder.glob("*.ledger")):
            with suppress(LeastNoiseError, OSError):
                if (
                    not (ledger.exists() and file.samefile(ledger))
                    and Ledger.open(file, timeout=1).dataset == dataset
                ):
                    others.append(file)
    return tuple(others) or tuple(
        release for release, receipt in _paid_releases(searched) if dataset in _datasets(receipt)
    )


def _datasets(receipt: Mapping[str, str]) -> set[str]:
    """The data sets that a release was made of: its ledger's, and a second table that is not public."""
    return {receipt[name] for name in ("dataset", "protected_table") if name in receipt}


def check_only(ledger: Path, dataset: str | None, folders: Iterable[Path] = ()) -> None:
    """Refuse to open a second ledger for data that another one knows."""
    others = other_ledgers(ledger, dataset, folders) if dataset else ()
    if others:
        raise LedgerError(
            f"There is no ledger at {ledger}, and {_describe_payment(others[0])} the data set "
            f"{dataset!r}: a second ledger would not know what was spent. Nothing was spent. Pay "
            "from that ledger; or, if these are other people, give the data set another name "
            "(dataset); or, to keep two ledgers whose losses add up, make this one with "
            f"`leastnoise ledger set {ledger}`."
        )


def _describe_payment(payer: Path) -> str:
    """Return the start of a clause: what knows, or was paid for, a data set.

    Args:
        payer: the file of a ledger, or the folder of a release.
    """
    if payer.is_dir():
        return f"the release in {payer} was paid for"
    return f"the ledger {payer} knows"


def _missing_entries(ledger: Path, releases: Sequence[Path], *, exists: bool) -> str:
    """Return the message for a ledger without the entries of releases that it paid.

    Args:
        ledger: the file of the ledger.
        releases: the folders of those releases, at least one.
        exists: whether the file of the ledger exists.
    """
    first = releases[0]
    others = f" and {len(releases) - 1} more" if len(releases) > 1 else ""
    if not exists:
        return (
            f"There is no ledger at {ledger}, but the release in {first}{others} was paid from one "
            "of this name. Nothing was spent. Restore that ledger; or, if this is another data "
            "set, give its ledger another name."
        )
    return (
        f"The ledger {ledger} does not know the release in {first}{others}, which was paid from it: "
        "it is an older copy. Nothing was spent. Restore the newest copy of the ledger; if there "
        f"is none, enter what it lacks: `leastnoise ledger spent {ledger} --release {first}`."
    )


def _check_can_be_created(ledger: Path) -> None:
    """Refuse a path at which no ledger can be created.

    Called before anything is planned or read; `Ledger.create` refuses the same after the plan.

    Raises:
        LedgerError: the folder is missing or cannot be written, or an earlier ledger of this name
            left a journal.
    """
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


def receipt_in(release: Path) -> dict[str, str]:
    """Return the texts of the receipt in a release's manifest; empty if that is no manifest.

    Entries that are no texts are left out, so that the others can be compared whatever the file
    holds. A second table that is not public is named under ``protected_table``.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "manifest.json").write_text('{"receipt": {"id": "a1", "step": 3}}')
    ...     receipt_in(Path(folder))
    {'id': 'a1'}
    """
    try:
        receipt = json.loads((release / "manifest.json").read_text(encoding="utf-8"))["receipt"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(receipt, dict):
        return {}
    texts = {name: entry for name, entry in receipt.items() if isinstance(entry, str)}
    joined = receipt.get("joined")
    second = joined if isinstance(joined, dict) else {}
    if second.get("public") is False and isinstance(second.get("table"), str):
        texts["protected_table"] = second["table"]
    return texts
