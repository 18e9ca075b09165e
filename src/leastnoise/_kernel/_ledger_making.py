"""Where a ledger is: its path, the making of its file, and the wait for one that is just being made."""

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from leastnoise._accounting import Privacy
from leastnoise._check import LedgerError, refuse
from leastnoise._kernel._ledger_file import MAKE, fill

_TAKEN = "{} exists already, and a ledger is never replaced. Open it, or change its budget with `leastnoise ledger change`."


def make(file: Path, name: str, privacy: Privacy, timeout: float) -> str:
    """Make an empty ledger and return its identification.

    Made whole under a name that nobody else uses, then linked into place: no process ever sees half a ledger, or removes another's.
    """
    draft = file.parent / f".{file.name}.{secrets.token_hex(8)}"
    try:
        if file.exists():
            raise LedgerError(_TAKEN.format(file))
        for left_over in (file.parent / f"{file.name}-journal", file.parent / f"{file.name}-wal"):
            if left_over.exists():  # SQLite would play it into the new ledger
                raise LedgerError(f"{left_over} is left from an earlier ledger of this name. Restore that ledger, or remove both.")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            identity = fill(draft, name, privacy, timeout)
            os.link(draft, file)
        finally:
            with suppress(OSError):  # the ledger is in its place, or never will be
                draft.unlink()
        _flush_folder(file.parent)
    except FileExistsError:
        raise LedgerError(_TAKEN.format(file)) from None
    except OSError as error:
        raise LedgerError(
            f"A ledger cannot be made at {file}: {_reason(error)}. Choose a folder that exists and that you may write to."
        ) from None
    return identity


def wait_for(file: Path, timeout: float) -> None:
    """Refuse what cannot be a ledger.

    By stat only: opening and closing the file here would drop the locks that another thread's connection holds on it.
    """
    try:
        if file.is_dir():
            raise LedgerError(f"{file} is a folder, not a ledger. Give the path of the ledger's file.")
        size = file.stat().st_size
        patience = time.monotonic() + min(timeout, 1.0)
        while size == 0 and time.monotonic() < patience:  # perhaps another process is making it just now
            time.sleep(0.02)
            size = file.stat().st_size
    except FileNotFoundError:
        raise LedgerError(f"There is no ledger at {file}. If there was one, restore it. {MAKE}") from None
    except OSError as error:
        raise LedgerError(f"The ledger {file} cannot be read: {_reason(error)}. Check its path and permissions.") from None
    if size == 0:
        raise LedgerError(
            f"{file} is empty: no ledger, or what is left of one. If it was a ledger, restore it from a copy that has all its releases."
        )


def checked_path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise refuse("path", path, "the path of a ledger's file")
    return Path(path)


def checked_seconds(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= 86400:
        raise refuse("timeout", timeout, "a number of seconds from 0 to 86400")
    return float(timeout)


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _flush_folder(folder: Path) -> None:
    """Make the name of a new file durable too."""
    with suppress(OSError):  # a file system that cannot flush a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
