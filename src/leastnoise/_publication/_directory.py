"""Publish directories atomically.

A directory is written under a temporary name next to its target, synced to disk, and renamed. The
directory is created after counting, when the first file is written. The timestamps of directories
and files therefore do not reveal how long counting took. Only the lock file next to the directory
is created before counting, and it is never published.
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
from leastnoise._trusted.check.helpers.locks import try_lock

_DRAFT_NAME = ".leastnoise-"
_LOCK_ENDING = ".lock"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
_CLEANING_SECONDS = 1.0  # maximum time that another process needs to remove a dead draft


def check_target(directory: str | os.PathLike[str]) -> Path:
    """Return the absolute path of an output directory; raise if it exists.

    Raises an error if the directory cannot be created.
    """
    # resolve() would follow a link.
    target = Path(os.path.abspath(Path(directory).expanduser()))  # noqa: PTH100
    try:
        target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # such as a name that is too long
        raise _unusable_target_error(target, error) from None
    if os.path.lexists(target) or not target.name:
        raise InputError(
            f"The output directory must not exist yet; got {str(target)!r}, which exists. Choose "
            "another name, or move the old release away."
        )
    parent = target.parent
    while not os.path.lexists(parent):
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(
            "The output directory must be in a directory that you can write to; got "
            f"{str(target)!r}, but you cannot write to {str(parent)!r}. Choose another place."
        )
    return target


@dataclass(slots=True)
class DraftDirectory:
    """A directory under a temporary name, which `publish` renames to its target.

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
        """The path of the directory to write into.

        The first access creates the directory; its timestamps then do not reveal how long counting
        took.
        """
        if not self.exists:
            self.partial.mkdir()
            self.exists = True
        return self.partial

    def publish(self) -> None:
        """Sync all files to disk, and rename the directory to its target."""
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


def open_optional_draft(target: Path | None) -> AbstractContextManager["DraftDirectory | None"]:
    """Open a draft as `open_draft` does, or yield None if there is no target."""
    if target is None:
        return nullcontext()
    return open_draft(target)


@contextmanager
def open_draft(target: Path) -> Iterator[DraftDirectory]:
    """Yield a draft directory next to its target; remove the draft at the end.

    Guarantees: at any time, ``target`` either does not exist, or is complete and on the disk. Only
        one process at a time has a draft of one target. If a process dies, the next process with a
        target in the same folder removes its draft. If `publish` was not called, nothing is left at
        the end of the block.
    """
    parent = next(folder for folder in target.parents if folder.exists())
    partial = parent / _draft_name(target.relative_to(parent))
    lock_file = parent / f"{partial.name}{_LOCK_ENDING}"
    try:
        handle = _lock_draft(target, lock_file)
    except OSError as error:
        raise _unusable_target_error(target, error) from None
    try:
        try:
            if os.path.lexists(target):
                raise _existing_target_error(target)
            _remove_directory(partial)  # left behind by a process that died
            remove_dead_drafts([parent])
        except OSError as error:
            raise _unusable_target_error(target, error) from None
        yield DraftDirectory(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        _remove_lock(lock_file, handle)


@contextmanager
def lock_output(target: Path, folder: Path) -> Iterator[None]:
    """Let only one process at a time pay for and write an output directory.

    For a series, the lock of a draft is not enough: the directory of the series exists from the
    first period on, and the process that has this lock may create the parents of the directory. All
    paths of one directory have the same lock.

    Args:
        target: the output directory, absolute; it may exist.
        folder: an existing folder for the lock file, the same one in each process.

    Raises:
        InputError: another process has the lock, or the lock file cannot be created.
    """
    name = _draft_name(Path(os.path.realpath(target)))
    lock_file = folder / f"{name}{_LOCK_ENDING}"
    try:
        handle = _lock_draft(target, lock_file)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(
            f"The output directory {str(target)!r} needs a lock file in {str(folder)!r}, which "
            f"cannot be created: {reason}. Make this folder writable; nothing was spent."
        ) from None
    try:
        yield
    finally:
        _remove_lock(lock_file, handle)


def _draft_name(target: Path) -> str:
    """Return the name of the draft of a directory."""
    digest = hashlib.sha256(os.fsencode(target)).hexdigest()[:16]
    return f"{_DRAFT_NAME}{digest}"


def _lock_draft(target: Path, lock_file: Path) -> int:
    """Create and lock the lock file of a draft, and return its file descriptor.

    The system frees the lock when the process ends. Another process may hold the lock for a moment
    while it removes the draft of a dead process. In that case this function tries again.
    """
    deadline = time.monotonic() + _CLEANING_SECONDS
    while True:
        handle = os.open(lock_file, os.O_CREAT | os.O_RDWR | _NO_LINK, 0o600)
        try:
            if try_lock(handle) and _refers_to_file(lock_file, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() > deadline:
            raise InputError(
                f"The output directory {str(target)!r} is being written by another process. "
                "Choose another directory, or wait for that process."
            )
        time.sleep(_CLEANING_SECONDS / 20)


def _refers_to_file(path: Path, descriptor: int) -> bool:
    """Return whether a path still leads to a file that is open."""
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _remove_lock(lock_file: Path, descriptor: int) -> None:
    """Remove a lock file and release the lock that this process has on it."""
    with suppress(OSError):  # Windows cannot remove open files; `remove_dead_drafts` will
        lock_file.unlink()
    os.close(descriptor)


def _remove_directory(path: Path) -> None:
    """Remove a directory, or a link or file of this name, if it exists.

    A symbolic link is not followed.
    """
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def remove_dead_drafts(folders: Iterable[Path]) -> None:
    """Remove the drafts in ``folders`` that dead processes left behind.

    Files that cannot be removed are left for the next process.
    """
    for folder in folders:
        for lock_file in folder.glob(f"{_DRAFT_NAME}*{_LOCK_ENDING}"):
            with suppress(OSError):
                _remove_if_dead(lock_file)


def _remove_if_dead(lock_file: Path) -> None:
    """Remove a lock file and its draft unless a running process has the lock."""
    handle = os.open(lock_file, os.O_RDWR | _NO_LINK)
    is_dead = False
    try:
        is_dead = try_lock(handle) and _refers_to_file(lock_file, handle)
        if is_dead:
            _remove_directory(lock_file.with_name(lock_file.name.removesuffix(_LOCK_ENDING)))
            with suppress(OSError):
                lock_file.unlink()
    finally:
        os.close(handle)


def _rename_draft(partial: Path, target: Path) -> None:
    """Rename a draft directory to its target.

    Raises an error if the target exists.
    """
    try:
        if os.path.lexists(target):  # the operating system would replace an empty directory
            raise FileExistsError
        partial.rename(target)
    except OSError:
        if os.path.lexists(target):
            raise _existing_target_error(target) from None
        raise


def _existing_target_error(target: Path) -> InputError:
    """Return the error if the output directory was created during the release."""
    return InputError(
        f"The output directory must not exist yet; {str(target)!r} was created while the release "
        "ran. Write the release to another directory."
    )


def _unusable_target_error(target: Path, error: OSError) -> InputError:
    """Return the error if the output directory cannot be created."""
    reason = (error.strerror or type(error).__name__).lower()
    return InputError(
        f"The output directory {str(target)!r} cannot be made: {reason}. Choose another place; "
        "nothing was spent."
    )


def sync_to_disk(path: Path) -> None:
    """Sync a file, or the entries of a directory, to disk."""
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
    """Return path, size and SHA-256 of every file in a directory."""
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
