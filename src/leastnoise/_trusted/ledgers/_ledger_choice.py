"""Choose the ledger that pays for a data set.

The module refuses a ledger that is an older copy, a second ledger of the data, or a ledger of other
data.

Trusted: `Series.paid` charges any ledger that it receives. Because this module makes the choice, a
fault in other code of the session cannot spend the budget twice.
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
from leastnoise._trusted.kernel import Entry, Ledger

CATEGORY_FOLDER = "categories"
"""The folder in a profile's directory that has the categories of its columns, each in a folder."""
_PROTECTED_TABLE = "protected_table_"


def find_ledger(
    ledger: object, source: Any, dataset: str | None, folders: list[Path], *, share: str = ""
) -> Ledger | None:
    """Open and check the ledger that pays a release; None if there is none yet.

    Args:
        ledger: the ledger, or the path of its file.
        source: the private data, of which the function uses only the name and the location.
        dataset: the name of the data in the ledger; None for the name of their file or table.
        folders: further folders to search for releases that the ledger paid, and for other ledgers
            of the data.
        share: the share that pays; "" if the budget is not divided into shares.

    Returns:
        The ledger; None if the file does not exist and may be created.

    Raises:
        InputError: the argument is not a ledger, or the ledger belongs to other data.
        LedgerError: the ledger cannot be used; it is older than a release that it paid for; or it
            would be a second ledger of the data.

    >>> folder = tempfile.TemporaryDirectory()
    >>> file, rows = Path(folder.name, "people.ledger"), Path(folder.name, "people.csv")
    >>> find_ledger(file, rows, None, []) is None
    True
    >>> find_ledger(file, rows, None, [], share="ann")
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
        check_no_missing_releases(ledger.path, ledger, folders)
        return ledger
    if not isinstance(ledger, (str, Path)):
        raise refuse("ledger", ledger, "a path or a Ledger")
    file = Path(ledger)
    opened_ledger = _open_ledger(file, share)
    check_no_missing_releases(file, opened_ledger, folders)
    name = dataset or reading.dataset_name(source)
    if opened_ledger is None:
        first_table, *joined_tables = reading.private_tables(source)
        named_tables = [(first_table, name)]
        named_tables += [(table, reading.dataset_name(table)) for table in joined_tables]
        for table, table_name in named_tables:
            table_folders = _ledger_folder(reading.source_location(table))
            check_no_second_ledger(file, table_name, [*folders, *table_folders])
    elif name not in (None, opened_ledger.dataset):
        raise InputError(
            f"The ledger {opened_ledger.path} belongs to the data set {opened_ledger.dataset!r}; "
            f"got {name!r}. Use the ledger of {name!r}. If these are the same people, set "
            f"dataset = {opened_ledger.dataset!r} ([ledger] of a spec, --dataset)."
        )
    return opened_ledger


def open_or_create_ledger(file: object, dataset: str, privacy: Privacy) -> Ledger:
    """Create the ledger of a data set, or open it if it exists by now.

    Args:
        file: the path of the ledger.
        dataset: the name of the data set.
        privacy: the whole budget, the neighbours and the unit. A bound on a unit's rows in cells
            belongs to one table; the ledger does not store it.

    Returns:
        The ledger.

    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = open_or_create_ledger(
    ...     Path(folder.name, "people.ledger"), "people", ln.Privacy(ln.PureDP(1))
    ... )
    >>> (
    ...     ledger.left().epsilon,
    ...     open_or_create_ledger(ledger.path, "people", ledger.privacy).id == ledger.id,
    ... )
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


def _open_ledger(ledger: Path, share: str) -> Ledger | None:
    """Open the ledger if its file exists; return None if it can be created."""
    if os.path.lexists(ledger) or share:
        return Ledger.open(ledger, share=share)
    _check_can_be_created(ledger)
    return None


def _ledger_folder(location: Any) -> list[Path]:
    """Return a list with the folder of a file's ledger; empty for other data."""
    if isinstance(location, dict):
        path = location.get("path")
    else:
        path = location
    if isinstance(path, str):
        return [reading.ledger_beside(path).parent]
    return []


def find_unrecorded_releases(
    ledger: Path, opened_ledger: Ledger | None, folders: Iterable[Path] = ()
) -> tuple[Path, ...]:
    """Return the paid releases that are missing or incomplete in a ledger.

    A release is missing if the ledger has no entry for it, and incomplete if the ledger has
    recorded fewer steps than the release. If there is such a release, the ledger is an older copy,
    or a new ledger of the same name.

    Args:
        ledger: the path of the ledger.
        opened_ledger: the ledger; None if its file does not exist.
        folders: further folders to search for releases.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     find_unrecorded_releases(Path(folder, "people.ledger"), None)
    ()
    """
    searched = {*_folders_of(ledger), *folders}
    if opened_ledger is None:
        key, value = "ledger", ledger.name
    else:
        key, value = "ledger_id", opened_ledger.id
        outputs = [entry.output for entry in opened_ledger.entries()]
        searched |= {Path(output).parent for output in outputs if output.startswith("/")}
    paid = [found for found in _paid_releases(searched) if found[1].get(key) == value]
    entries = {}
    # Read after the folders, because other processes may pay for releases in the meantime.
    if opened_ledger is not None and paid:
        entries = {entry.id: entry for entry in opened_ledger.entries()}
    return tuple(
        release
        for release, receipt in paid
        if not _is_recorded(release, receipt, opened_ledger, entries.get(receipt.get("id", "")))
    )


def _folders_of(ledger: Path) -> set[Path]:
    """Return the folders of a ledger's path, and of its target if it is a link."""
    return {ledger.parent, Path(os.path.realpath(ledger)).parent}


def _is_recorded(
    release: Path, receipt: Mapping[str, str], ledger: Ledger | None, entry: Entry | None
) -> bool:
    """Return whether a ledger records all steps that were drawn for a release.

    No more steps are drawn for a sealed or absent entry. An entry whose release is published will
    be sealed.
    """
    if ledger is None or entry is None:
        return False
    if entry.state != "reserved" or Path(entry.output) == release:
        return True
    return ledger.count_recorded_steps(entry) >= int(receipt.get("steps", "0"))


def _paid_releases(folders: Iterable[Path]) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield each paid release in the folders, with its receipt."""
    for folder in _distinct_folders(folders):
        with suppress(OSError):
            for inside in sorted(folder.iterdir()):
                for release in (inside, *_inner_releases(inside)):
                    with suppress(OSError):
                        receipt = read_receipt(release)
                        if receipt.get("ledger_id"):
                            yield release, receipt


def _distinct_folders(folders: Iterable[Path]) -> list[Path]:
    """Return the absolute paths of folders; a folder with several paths, once."""
    paths_by_target: dict[str, Path] = {}
    # Links are not resolved.
    for path in sorted({Path(os.path.abspath(folder)) for folder in folders}):  # noqa: PTH100
        paths_by_target.setdefault(os.path.realpath(path), path)
    return list(paths_by_target.values())


def _inner_releases(folder: Path) -> list[Path]:
    """Return the folders of releases inside the folder of a series or profile."""
    manifests: list[Path] = []
    for pattern in ("*/manifest.json", f"{CATEGORY_FOLDER}/*/manifest.json"):
        with suppress(OSError):
            manifests += folder.glob(pattern)
    return sorted(manifest.parent for manifest in manifests)


def check_no_missing_releases(
    ledger: Path, opened_ledger: Ledger | None, folders: Iterable[Path] = ()
) -> None:
    """Raise an error if a ledger lacks entries of releases that it paid for.

    An error is also raised if the ledger lacks steps of such releases.

    Args:
        ledger: the path of the ledger.
        opened_ledger: the ledger; None if its file does not exist.
        folders: further folders to search for releases.

    Raises:
        LedgerError: the ledger lacks a release or a step; the message names the first such release.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_no_missing_releases(Path(folder, "people.ledger"), None)
    """
    releases = find_unrecorded_releases(ledger, opened_ledger, folders)
    if not releases:
        return
    if opened_ledger is not None:
        entry_ids = {entry.id for entry in opened_ledger.entries()}
        if read_receipt(releases[0]).get("id") in entry_ids:
            raise LedgerError(_missing_steps(ledger, releases[0]))
    raise LedgerError(_missing_entries(ledger, releases, exists=opened_ledger is not None))


def find_other_ledgers(
    ledger: Path, dataset: str, folders: Iterable[Path] = ()
) -> tuple[Path, ...]:
    """Return other ledgers of a data set; if there are none, its paid releases.

    Ledgers and releases are searched in the folder of the ledger and in ``folders``.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     find_other_ledgers(Path(folder, "people.ledger"), "people")
    ()
    """
    others = []
    searched = _distinct_folders({*_folders_of(ledger), *folders})
    for folder in searched:
        for file in sorted(folder.glob("*.ledger")):
            with suppress(LeastNoiseError, OSError):
                if (
                    not (ledger.exists() and file.samefile(ledger))
                    and Ledger.open(file, timeout=1).dataset == dataset
                ):
                    others.append(file)
    return tuple(others) or tuple(
        release
        for release, receipt in _paid_releases(searched)
        if dataset in _dataset_names(receipt)
    )


def _dataset_names(receipt: Mapping[str, str]) -> set[str]:
    """Return the names of the data sets in the receipt of a release.

    These are the data set of its ledger and the joined tables that are not public.
    """
    return {
        text
        for name, text in receipt.items()
        if name == "dataset" or name.startswith(_PROTECTED_TABLE)
    }


def check_no_second_ledger(ledger: Path, dataset: str | None, folders: Iterable[Path] = ()) -> None:
    """Raise an error if there is another ledger of the same data.

    Raises:
        LedgerError: another ledger knows the data set, or a release was paid for it.
    """
    if dataset:
        others = find_other_ledgers(ledger, dataset, folders)
    else:
        others = ()
    if others:
        raise LedgerError(
            f"There is no ledger at {ledger}, and {_describe_payment(others[0])} the data set "
            f"{dataset!r}. A second ledger would lack the earlier charges. Nothing was spent. "
            "Choose one of three: pay from that ledger; if the data set has other people, give it "
            "another name (dataset); to keep two ledgers for the same people, whose losses add "
            f"up, create this ledger with `leastnoise ledger set {ledger}`."
        )


def _describe_payment(payer: Path) -> str:
    """Name a ledger or a paid release, as the subject of a sentence.

    Args:
        payer: the file of a ledger, or the folder of a release.
    """
    if payer.is_dir():
        return f"the release in {payer} was paid for"
    return f"the ledger {payer} knows"


def _missing_entries(ledger: Path, releases: Sequence[Path], *, exists: bool) -> str:
    """Return the message for a ledger that lacks entries of paid releases.

    Args:
        ledger: the file of the ledger.
        releases: the folders of those releases, at least one.
        exists: whether the file of the ledger exists.
    """
    first = releases[0]
    if len(releases) > 1:
        others = f" and {len(releases) - 1} more"
    else:
        others = ""
    if not exists:
        return (
            f"There is no ledger at {ledger}, but the release in {first}{others} was paid from one "
            "of this name. Nothing was spent. Restore that ledger; or, if this is another data "
            "set, give its ledger another name."
        )
    return (
        f"The ledger {ledger} does not know the release in {first}{others}, which was paid from "
        "it: it is an older copy. Nothing was spent. Restore the newest copy of the ledger; if "
        f"there is none, enter the missing releases: `leastnoise ledger spent {ledger} --release "
        f"{first}`."
    )


def _missing_steps(ledger: Path, release: Path) -> str:
    """Return the message for a ledger that lacks steps of a release that it paid."""
    return (
        f"The ledger {ledger} has fewer steps than were drawn for the release in {release}, which "
        "was paid from it: it is an older copy, and would draw them again. Nothing was spent. "
        "Restore the newest copy of the ledger, with the private file of a series; if there is "
        "none, make a new ledger, and enter this release there with `leastnoise ledger spent`."
    )


def _check_can_be_created(ledger: Path) -> None:
    """Raise if no ledger can be created at a path.

    The function is called before anything is planned or read; `Ledger.create` refuses the same
    paths when it is called.

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
    for journal in (Path(f"{ledger}-journal"), Path(f"{ledger}-wal")):
        if journal.exists():
            raise LedgerError(
                f"{journal} is left from an earlier ledger of this name. Restore that ledger. "
                "Nothing was spent."
            )


def read_receipt(release: Path) -> dict[str, str]:
    """Return the receipt in a release's manifest as texts; empty if it has none.

    The result is empty if the file is not a manifest. Entries that are not texts are left out, so
    that a damaged file cannot prevent the comparison of the other entries. Only the number of steps
    is converted to a text. The joined tables that are not public have the keys
    ``protected_table_0``, ``protected_table_1`` etc.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "manifest.json").write_text(
    ...         '{"receipt": {"id": "a1", "steps": 3, "number": 1}}'
    ...     )
    ...     read_receipt(Path(folder))
    {'id': 'a1', 'steps': '3'}
    """
    try:
        receipt = json.loads((release / "manifest.json").read_text(encoding="utf-8"))["receipt"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(receipt, dict):
        return {}
    texts = {
        name: entry for name, entry in receipt.items() if isinstance(entry, str) and name != "steps"
    }
    if type(receipt.get("steps")) is int:
        texts["steps"] = str(receipt["steps"])
    joined_tables = [receipt.get("joined")]
    if isinstance(receipt.get("further_joined"), list):
        joined_tables += receipt["further_joined"]
    for number, joined in enumerate(joined_tables):
        if not isinstance(joined, dict) or joined.get("public") is not False:
            continue
        if isinstance(joined.get("table"), str):
            texts[f"{_PROTECTED_TABLE}{number}"] = joined["table"]
    return texts
