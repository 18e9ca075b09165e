"""Directories that are published atomically, and their CSV files.

One of them holds categories that were found privately.

A directory is written under another name next to its target, synced to disk, then renamed. It is
created when the first file is written, after counting, so the times of directories and files (also
their creation times) do not reveal how long counting took. Only the lock file next to it is created
before counting, and it is never published.
"""

import csv
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from leastnoise._domain import Categories
from leastnoise._plan import CategoryPlan, read, read_json
from leastnoise._release._manifest import check_receipt, read_record
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.check.locks import try_lock

_MOST_NAME_CHARACTERS = 60
# Texts that a spreadsheet may run as a formula, or read as the end of a field. They begin with such
# a sign, which may be full-width, and may follow blanks or controls that a program ignores. Numbers
# and dates are harmless. ``report.js`` has the same two patterns.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\u200b\ufeff]*[=+\-@＝＋－＠])")  # noqa: RUF001 - full-width
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:/ -]*")
_DRAFT_NAME = ".leastnoise-"
_LOCK_ENDING = ".lock"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
_CLEANING_SECONDS = 1.0  # for which another process may hold a lock to remove a dead draft


def write_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file.

    No spreadsheet runs its texts; lists of names are joined by " x ", and NaN is left empty.
    """
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        minimal_writer, quoting_writer = (
            csv.writer(file, lineterminator="\n", quoting=rule)
            for rule in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )
        for row in chain([header], rows):
            fields = [_format_field(value) for value in row]
            # Before Python 3.13 the writer leaves a carriage return bare, where readers end the
            # line.
            if any(isinstance(field, str) and "\r" in field for field in fields):
                quoting_writer.writerow(fields)
            else:
                minimal_writer.writerow(fields)


def _format_field(value: object) -> object:
    """Return a value as a CSV file has it: inert texts, no NaN, joined lists."""
    if value != value:  # noqa: PLR0124 - NaN
        return ""
    if isinstance(value, (list, tuple)):
        value = " x ".join(value)
    if isinstance(value, str):
        return make_inert(value)
    return value


def make_file_name(table_id: str, name: str, tables: int) -> str:
    """Return the name of a table's files without ending.

    It has the id, padded so that names sort, and the name of the table.
    """
    words = (
        re.sub(r"[^a-z0-9_]+", "-", name.lower().replace(" x ", "-by-"))
        .strip("-")[:_MOST_NAME_CHARACTERS]
        .rstrip("-")
    )
    number = table_id[0] + table_id[1:].rjust(len(str(tables)), "0")
    return f"{number}-{words}" if words else number


def make_inert(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet could run.

    This prevents CSV injection (OWASP).
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def restore_inert(text: str) -> str:
    """Undo `make_inert`."""
    if text.startswith("'") and _FORMULA.match(text):
        return text[1:]
    return text


def check_target(directory: str | os.PathLike[str]) -> Path:
    """Raise unless a release can be written to a directory; return its path."""
    target = Path(os.path.abspath(Path(directory).expanduser()))  # noqa: PTH100 - resolve() would follow a link
    try:
        target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # such as a name that is too long
        raise _unusable_target_error(target, error) from None
    if os.path.lexists(target) or not target.name:
        raise InputError(
            f"The output directory must not exist yet; got {str(target)!r}, which does. Choose "
            "another name, or move the old release away."
        )
    parent = target.parent
    while not os.path.lexists(parent):
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(
            "The output directory must be in a directory that you can write to; got "
            f"{str(target)!r}, and {str(parent)!r} is not one. "
            "Choose another place."
        )
    return target


@dataclass(slots=True)
class Draft:
    """A directory that only this process writes, until `publish` renames it.

    Attributes:
        partial: its path before it is published.
        target: its path when it is published.
        exists: whether it was created; it is created when the first file is written.
    """

    partial: Path
    target: Path
    exists: bool = False

    @property
    def path(self) -> Path:
        """The directory to write into.

        The first access creates it, so that its times do not reveal how long counting took.
        """
        if not self.exists:
            self.partial.mkdir()
            self.exists = True
        return self.partial

    def publish(self) -> None:
        """Sync all files to disk, then rename the directory to its target."""
        path = self.path
        created = []
        for directory, _, files in os.walk(path):
            for name in (*files, "."):
                sync_to_disk(Path(directory, name))
        try:
            for folder in reversed(self.target.parents):
                if not folder.exists():
                    folder.mkdir(exist_ok=True)
                    created.append(folder)
                    sync_to_disk(folder.parent)
            _rename_draft(path, self.target)
        except BaseException:
            for folder in reversed(created):
                with suppress(OSError):
                    folder.rmdir()
            raise
        sync_to_disk(self.target.parent)


def open_optional_draft(target: Path | None) -> AbstractContextManager["Draft | None"]:
    """Open a draft of a directory; None, to write nothing, stays None."""
    if target is None:
        return nullcontext()
    return open_draft(target)


@contextmanager
def open_draft(target: Path) -> Iterator[Draft]:
    """Open a draft: a directory to write into, next to its target.

    Guarantees: ``target`` does not exist, or is complete and on the disk. Only one process at a
        time has a draft of one target. If a process dies, the next process with a target in the
        same folder removes its draft. Without `publish` nothing is left at the end of the block.
    """
    parent = next(folder for folder in target.parents if folder.exists())
    name = hashlib.sha256(os.fsencode(target.relative_to(parent))).hexdigest()[:16]
    partial = parent / f"{_DRAFT_NAME}{name}"
    lock_file = parent / f"{partial.name}{_LOCK_ENDING}"
    try:
        handle = _lock_draft(target, lock_file)
    except OSError as error:
        raise _unusable_target_error(target, error) from None
    try:
        try:
            if os.path.lexists(target):
                raise _existing_target_error(target)
            _remove_directory(partial)  # of a process that died
            remove_dead_drafts([parent])
        except OSError as error:
            raise _unusable_target_error(target, error) from None
        yield Draft(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        _remove_lock(lock_file, handle)


def _lock_draft(target: Path, lock_file: Path) -> int:
    """Create and lock the lock file of a draft, and return its descriptor.

    The system frees the lock when the process ends. Another process may hold it for a moment, to
    remove the draft of a dead one; then this function tries again.
    """
    deadline = time.monotonic() + _CLEANING_SECONDS
    while True:
        handle = os.open(lock_file, os.O_CREAT | os.O_RDWR | _NO_LINK, 0o600)
        try:
            if try_lock(handle) and _is_file(lock_file, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() > deadline:
            raise InputError(
                f"The output directory {str(target)!r} is being written by another process. "
                "Choose another, or wait for that process."
            )
        time.sleep(_CLEANING_SECONDS / 20)


def _is_file(path: Path, handle: int) -> bool:
    """Return whether an open file still has this path."""
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _remove_lock(lock_file: Path, handle: int) -> None:
    """Remove a lock file that this process holds, and free the lock."""
    with suppress(OSError):  # Windows cannot remove an open file; `remove_dead_drafts` does later
        lock_file.unlink()
    os.close(handle)


def _remove_directory(path: Path) -> None:
    """Remove a directory, if there is one; a link is removed and not followed."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def remove_dead_drafts(folders: Iterable[Path]) -> None:
    """Remove the drafts in some folders whose processes have died.

    Files that cannot be removed are left for the next process.
    """
    for folder in folders:
        for lock_file in folder.glob(f"{_DRAFT_NAME}*{_LOCK_ENDING}"):
            with suppress(OSError):
                _remove_if_dead(lock_file)


def _remove_if_dead(lock_file: Path) -> None:
    """Remove a lock file and its draft, unless a living process holds the lock."""
    handle = os.open(lock_file, os.O_RDWR | _NO_LINK)
    is_dead = False
    try:
        is_dead = try_lock(handle) and _is_file(lock_file, handle)
        if is_dead:
            _remove_directory(lock_file.with_name(lock_file.name.removesuffix(_LOCK_ENDING)))
            with suppress(OSError):
                lock_file.unlink()
    finally:
        os.close(handle)


def _rename_draft(partial: Path, target: Path) -> None:
    """Rename the partial directory to the target; raise if that exists."""
    try:
        if os.path.lexists(target):  # the system would replace an empty directory
            raise FileExistsError
        partial.rename(target)
    except OSError:
        if os.path.lexists(target):
            raise _existing_target_error(target) from None
        raise


def _existing_target_error(target: Path) -> InputError:
    """Return the error for an output directory created during the release."""
    return InputError(
        f"The output directory must not exist yet; {str(target)!r} came into being while the "
        "release was made. Write it to another."
    )


def _unusable_target_error(target: Path, error: OSError) -> InputError:
    """Return the error for an output directory that cannot be created."""
    reason = (error.strerror or type(error).__name__).lower()
    return InputError(
        f"The output directory {str(target)!r} cannot be made: {reason}. Choose another place; "
        "nothing was spent."
    )


def sync_to_disk(path: Path) -> None:
    """Write a file, or the names in a directory, to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a directory
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def list_files(directory: Path) -> list[dict[str, object]]:
    """Return path, size in bytes and SHA-256 of every file, sorted by path."""
    return [
        {
            "path": path.relative_to(directory).as_posix(),
            "bytes": path.stat().st_size,
            "sha256": sha256(path),
        }
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    ]


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


CATEGORIES_FORMAT = "leastnoise categories 1"
CATEGORY_FILE = "categories.csv"
CATEGORY_COLUMN = "category"
_ADVICE = "Name the directory that leastnoise categories wrote, the one with manifest.json."


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCategories:
    """The categories that a search found; public, because they were paid for.

    Attributes:
        plan: the plan of the search.
        texts: the categories as the data spell them, beginning with the most units.
        units: the noisy number of units of each category, with noise of ``plan.std``. Small numbers
            are too large, because only categories with at least ``plan.threshold`` are kept.
        private: False if the noise came from a seed.
        receipt: the ledger's facts about the payment; empty if nothing was paid.
    """

    plan: CategoryPlan
    texts: tuple[str, ...]
    units: tuple[int, ...]
    private: bool
    receipt: Mapping[str, Any] = field(default_factory=dict)

    def kind(self) -> Categories:
        """Return the attribute with these categories, for a `Domain`."""
        return self.plan.kind.found(self.texts)

    def search_facts(self) -> dict[str, Any]:
        """Return the facts about the search, for `Options.searches`.

        The manifest of a release lists them.
        """
        return {"attribute": self.plan.attribute, "plan": self.plan.digest(), **self.receipt}


def describe_search(plan: CategoryPlan) -> str:
    """Return sentences about the chances of a search to find a category."""
    return (
        f"A search finds a category of {plan.often:,} units in 95 of 100 cases, one of "
        f"{plan.threshold:,} units in about half of them, and "
        f"one of a single unit with a chance of at most delta. It keeps the {plan.kind.most:,} "
        "categories with the largest noisy counts."
    )


def write_categories(categories: FoundCategories, draft: Draft) -> None:
    """Write the list of categories and its manifest into a draft."""
    plan = categories.plan
    write_rows(
        draft.path / CATEGORY_FILE,
        [CATEGORY_COLUMN, "units"],
        zip(categories.texts, categories.units, strict=True),
    )
    value = {
        "format": CATEGORIES_FORMAT,
        "written": datetime.now(UTC).date().isoformat(),
        "private": categories.private,
        "promise": describe_search(plan),
        "units": f"with noise of standard deviation {plan.std:.3g}; those near the threshold of "
        f"{plan.threshold} are too large",
        "plan": json.loads(plan.to_json()),
        "receipt": dict(categories.receipt) or None,
        "files": list_files(draft.path),
    }
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (draft.path / "manifest.json").write_text(text, encoding="utf-8", newline="\n")


def holds_categories(directory: Path) -> bool:
    """Return whether a directory holds found categories, not a release."""
    return (directory / CATEGORY_FILE).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoriesManifest:
    """The manifest of found categories, every value of its type."""

    format: str
    written: date
    private: bool
    plan: Mapping[str, Any]
    files: tuple[Mapping[str, Any], ...]
    receipt: Mapping[str, Any] | None = None


def read_categories_manifest(directory: Path) -> CategoriesManifest:
    """Return the checked manifest that `write_categories` wrote."""
    try:
        text = (directory / "manifest.json").read_text(encoding="utf-8")
        manifest = read(
            lambda: read_record(CategoriesManifest, read_json(text)), "manifest", _ADVICE
        )
        check_receipt(manifest.receipt or {})
    except OSError:
        raise InputError(
            f"There are no found categories in {str(directory)!r}, or they cannot be read. "
            f"{_ADVICE}"
        ) from None
    except ValueError as error:
        if isinstance(error, InputError):
            reason = str(error)
        else:
            reason = "It is no text."
        raise InputError(
            f"The categories in {str(directory)!r} are damaged. In their manifest: {reason} "
            f"{_ADVICE}"
        ) from None
    if manifest.format != CATEGORIES_FORMAT:
        raise refuse("the format of found categories", manifest.format, repr(CATEGORIES_FORMAT))
    return manifest


def read_categories(directory: str | os.PathLike[str]) -> FoundCategories:
    """Return the categories that `write_categories` wrote."""
    folder = Path(directory)
    manifest = read_categories_manifest(folder)
    try:
        listed = [entry for entry in list_files(folder) if entry["path"] == CATEGORY_FILE]
        with (folder / CATEGORY_FILE).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
    except OSError:
        raise InputError(
            f"There are no found categories in {str(folder)!r}, or they cannot be read. {_ADVICE}"
        ) from None
    if [*manifest.files] != listed:
        raise InputError(
            f"The categories in {str(folder)!r} were changed since they were found. Use an "
            "intact copy."
        )
    return FoundCategories(
        plan=CategoryPlan.from_json(json.dumps(manifest.plan, separators=(",", ":"))),
        texts=tuple(restore_inert(text) for text, _ in rows),
        units=tuple(int(units) for _, units in rows),
        private=manifest.private,
        receipt=dict(manifest.receipt or {}),
    )
