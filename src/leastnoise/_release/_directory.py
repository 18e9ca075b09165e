"""Directories that are published atomically.

A directory is written under another name next to its target, synced to disk, then renamed. It is
created when the first file is written, after counting, so the modification and creation times of
directories and files do not reveal how long counting took. Only the lock file next to it is created
before counting, and it is never published.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.locks import try_lock

_DRAFT_NAME = ".leastnoise-"
_LOCK_ENDING = ".lock"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
_CLEANING_SECONDS = 1.0  # for which another process may hold a lock to remove a dead draft


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
        partial: the path of the directory before it is published.
        target: the path of the directory after it is published.
        exists: whether the directory was created; this happens when the first file is written.
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
    """Open a draft of a directory.

    With None nothing is written, and None is yielded.
    """
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

    The system frees the lock when the process ends. Another process may hold it for a moment while
    it removes the draft of a dead process; in that case this function tries again.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file of a release: its path, size in bytes and SHA-256 in hexadecimal."""

    path: str
    bytes: int
    sha256: str


def list_files(directory: Path) -> tuple[ListedFile, ...]:
    """Return every file of a directory, sorted by path."""
    return tuple(
        ListedFile(
            path=path.relative_to(directory).as_posix(),
            bytes=path.stat().st_size,
            sha256=sha256(path),
        )
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    )


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
