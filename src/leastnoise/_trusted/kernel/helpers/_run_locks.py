"""Lock a file next to the ledger while a process makes a release.

The file also reserves disk space for the outcome.

This file is not trusted: the locks only decide which process waits. The rows of the ledger ensure
that nothing is drawn twice (PROOFS-ledger.md, theorem 4).
"""

import errno
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leastnoise._trusted.check import LedgerError
from leastnoise._trusted.check.helpers.locks import try_lock
from leastnoise._trusted.kernel._ledger_file import os_error_reason


def run_lock_path(ledger: Path, run: str) -> Path:
    """Return the path of the lock file of a run, next to the ledger.

    For an empty ``run``, return the common prefix of these paths.
    """
    # The same folder for all processes, also if they open the ledger through links.
    real = Path(os.path.realpath(ledger))
    return real.parent / f".{real.name[:64]}.run-{run}"


@contextmanager
def hold_run_lock(ledger: Path, reserved_bytes: int) -> Iterator[str]:
    """Lock the file of a new run for a ``with`` block; yield the id of the run.

    The operating system frees the lock when the process ends, for any reason.
    """
    handle = -1
    file = ledger
    run = ""
    try:
        try:
            while handle < 0:
                run = secrets.token_hex(16)
                file = run_lock_path(ledger, run)
                handle = _lock_new_file(file)
            _reserve_space(handle, reserved_bytes)
        except OSError as error:
            raise LedgerError(
                f"A release needs a file of {reserved_bytes} bytes next to the ledger {ledger} "
                f"while it is made: {os_error_reason(error)}. Nothing was spent. "
                "Make room there, or check that you may write to that folder."
            ) from None
        yield run
    finally:
        if handle >= 0:
            with suppress(OSError):  # else `publication_by_entry` removes it later
                file.unlink()
            os.close(handle)


def _lock_new_file(file: Path) -> int:
    """Create and lock a file; return its descriptor, or -1 if it is not locked.

    The result is -1 if another process has removed the file meanwhile.
    """
    handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        if try_lock(handle) and os.fstat(handle).st_nlink:
            return handle
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return -1


def publication_by_entry(
    ledger: Path, entries: Iterable[Any], is_published: Callable[[Any], bool | None]
) -> dict[str, bool]:
    """Return whether the release of each ended run was published, by entry id.

    Releases that can still be finished are left out. The files of processes that have ended are
    removed.
    """
    ended = {}
    for entry in entries:
        if entry.state == "sealed" or is_running(ledger, entry.run):
            continue
        published = is_published(entry)
        if published or (
            published is not None and entry.state == "reserved" and not entry.resumable
        ):
            ended[entry.id] = published
    with suppress(OSError):
        sign = run_lock_path(ledger, "")
        for file in list(sign.parent.iterdir()):
            if file.name.startswith(sign.name):
                is_running(ledger, file.name.rpartition("-")[2])
    return ended


def _reserve_space(handle: int, byte_count: int) -> None:
    """Reserve disk space for an open file, if the file system can do that."""
    if not hasattr(os, "posix_fallocate"):  # macOS
        return
    try:
        os.posix_fallocate(handle, 0, max(byte_count, 1))
    except OSError as error:
        # Some file systems cannot reserve space.
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise


def free_reserved_space(ledger: Path, run: str) -> None:
    """Free the disk space that a run reserved, so that its outcome has room."""
    with suppress(OSError):
        os.truncate(run_lock_path(ledger, run), 0)


def is_running(ledger: Path, run: str) -> bool:
    """Return whether a process holds the lock of a run.

    If this cannot be determined, the result is True. The function removes the file of a process
    that has ended.
    """
    if not run:
        return False
    file = run_lock_path(ledger, run)
    try:
        handle = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        if not try_lock(handle):
            return True
        with suppress(OSError):
            file.unlink()
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
