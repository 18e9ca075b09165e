"""A directory that appears whole or not at all: written beside its place under another name, made durable, then renamed."""

import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leastnoise._check import InputError


def check_target(directory: str | os.PathLike[str]) -> Path:
    """Check, before anything is spent, that a release can be written to a directory.

    Args:
        directory: where to write; it must not exist, and the nearest directory above it that exists must be writable.

    Returns:
        The absolute path.

    Raises:
        InputError: it exists, it has no name, or the place cannot be written to.

    >>> check_target("/")
    Traceback (most recent call last):
    ...
    leastnoise._check._errors.InputError: The output directory must not exist yet; got '/', which does. ...
    """
    target = Path(os.path.abspath(Path(directory).expanduser()))  # noqa: PTH100 - resolve() would follow a link
    if os.path.lexists(target) or not target.name:
        raise InputError(
            f"The output directory must not exist yet; got {str(target)!r}, which does. Choose another name, or move the old release away."
        )
    above = target.parent
    while not os.path.lexists(above):
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InputError(
            f"The output directory must be in a directory that you can write to; got {str(target)!r}, and {str(above)!r} is not one. "
            "Choose another place."
        )
    return target


@contextmanager
def whole_directory(target: Path) -> Iterator[Path]:
    """Give a directory to write into, which gets its name when the block ends well.

    Args:
        target: from `check_target`.

    Guarantees: ``target`` does not exist, or is complete and on the disk. A process that dies leaves ``.<name>.partial-...`` beside it,
    which the next one for the same target removes; an exception leaves nothing.

    Raises:
        InputError: ``target`` came into being meanwhile.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}.partial-"
    _remove_leftovers(target.parent, prefix)
    partial, handle = _make_partial(target.parent, prefix)
    try:
        yield partial
        _make_durable(partial)
        _rename(partial, target)
        _sync(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        os.close(handle)


def _make_partial(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new directory and a lock on it.

    The lock tells a process that cleans up whether the writer is alive; the system frees it when the writer ends, however it ends.
    """
    while True:
        partial = parent / f"{prefix}{secrets.token_hex(4)}"
        partial.mkdir()
        handle = -1
        try:
            handle = os.open(partial, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if partial.exists():
                return partial, handle
        except (FileNotFoundError, BlockingIOError):
            pass  # another process took it for a leftover before it was locked
        if handle >= 0:
            os.close(handle)


def _rename(partial: Path, target: Path) -> None:
    try:
        if os.path.lexists(target):  # the system would replace an empty directory
            raise FileExistsError
        partial.rename(target)
    except FileExistsError:
        raise _appeared(target) from None
    except OSError:
        if os.path.lexists(target):
            raise _appeared(target) from None
        raise


def _appeared(target: Path) -> InputError:
    return InputError(
        f"The output directory must not exist yet; {str(target)!r} came into being while the release was written. Write it to another."
    )


def _remove_leftovers(parent: Path, prefix: str) -> None:
    for entry in sorted(parent.iterdir()):
        if entry.name.startswith(prefix) and entry.is_dir() and not entry.is_symlink():
            try:
                handle = os.open(entry, os.O_RDONLY)
            except OSError:
                continue  # gone meanwhile, or somebody else's
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry, ignore_errors=True)
            except BlockingIOError:
                pass  # another process is writing it now
            finally:
                os.close(handle)


def _make_durable(directory: Path) -> None:
    for folder, _, files in os.walk(directory):
        for name in files:
            _sync(Path(folder, name))
        _sync(Path(folder))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def list_files(directory: Path) -> list[dict[str, object]]:
    """Path, size in bytes and SHA-256 of every file below a directory, sorted by path.

    >>> import tempfile
    >>> list_files(Path(tempfile.mkdtemp()))
    []
    """
    return [
        {"path": path.relative_to(directory).as_posix(), "bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    ]


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal.

    >>> import os
    >>> sha256(Path(os.devnull))[:8]
    'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
