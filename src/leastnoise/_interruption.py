"""Describe errors, and record the payments that a run makes before them.

This module has no influence on payments.
"""

import re
import traceback
from collections.abc import Sequence
from pathlib import Path

from leastnoise._trusted.check import InternalError, LeastNoiseError

_SPENT = re.compile(r"(; nothing was spent|[ ]?Nothing was spent\.)")
_FULL = re.compile("No space left|Disk quota|File too large|Input/output error")
_RUNS: list[tuple[Path, str]] = []


def describe_error(error: BaseException) -> tuple[str, bool]:
    """Return a sentence about an error, and whether the program is at fault.

    The sentence contains no value of a row.
    """
    if isinstance(error, LeastNoiseError) and not isinstance(error, InternalError):
        return _SPENT.sub("", str(error)), False
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return "There is not enough memory.", False
    if isinstance(error, OSError) and error.strerror:
        if isinstance(error.filename, str):
            where = f" {error.filename}"
        else:
            where = ""
        return f"The file system refused{where}: {error.strerror.lower()}.", False
    # An error of DuckDB, which writes the answers.
    if type(error).__name__ == "IOException" or _FULL.search(str(error)):
        return "A file cannot be written or read; perhaps the disk is full.", False
    # The type of the fault and where it happened, without its text.
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "leastnoise" in Path(frame.filename).parts] or list(frames)
    if ours:
        where = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}"
    else:
        where = ""
    sentence = (
        f"A fault of the program, not of yours ({type(error).__name__}{where}); please report this "
        "line and the version."
    )
    return sentence, True


def note_run(ledger: Path, run: str) -> None:
    """Record a payment in this process before the payment is made.

    At the end of the process, the program looks up in the ledger whether the payment was made.

    Args:
        ledger: the file of the ledger.
        run: the receipt of the payment.
    """
    _RUNS.append((ledger, run))


def noted_runs() -> Sequence[tuple[Path, str]]:
    """Return the ledger file and the receipt of each recorded payment, in order."""
    return tuple(_RUNS)
