"""The message when a run stops: why it stopped, and what was paid.

It takes part in no payment.
"""

import re
import traceback
from collections.abc import Sequence
from pathlib import Path

from leastnoise._trusted.check import InternalError, LeastNoiseError

_SPENT = re.compile(r"(; nothing was spent|[ ]?Nothing was spent\.)")
_FULL = re.compile("No space left|Disk quota|File too large|Input/output error")
_RUNS: list[tuple[Path, str]] = []


def cause(error: BaseException) -> tuple[str, bool]:
    """Return what went wrong, and whether it is a fault of the program.

    One sentence that shows no value of a row.
    """
    if isinstance(error, LeastNoiseError) and not isinstance(error, InternalError):
        return _SPENT.sub("", str(error)), False
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return "There is not enough memory.", False
    if isinstance(error, OSError) and error.strerror:
        where = f" {error.filename}" if isinstance(error.filename, str) else ""
        return f"The file system refused{where}: {error.strerror.lower()}.", False
    if type(error).__name__ == "IOException" or _FULL.search(
        str(error)
    ):  # of DuckDB, which writes the answers
        return "A file cannot be written or read; perhaps the disk is full.", False
    # the kind and the place of the fault, without its text
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "leastnoise" in Path(frame.filename).parts] or list(frames)
    where = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return (
        (
            f"A fault of the program, not of yours ({type(error).__name__}{where}); please report "
            "this line and the version."
        ),
        True,
    )


def note_run(ledger: Path, run: str) -> None:
    """Note a payment before it can happen.

    At the end of the process the ledger is asked about it.
    """
    _RUNS.append((ledger, run))


def runs() -> Sequence[tuple[Path, str]]:
    """Return the payments that this process prepared, in order.

    The ledger's file, and the run.
    """
    return tuple(_RUNS)
