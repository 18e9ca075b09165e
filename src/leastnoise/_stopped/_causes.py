"""What went wrong, in one sentence that shows no value of a row."""

import re
import traceback
from pathlib import Path

from leastnoise._check import InternalError, LeastNoiseError

_SPENT = re.compile(r"(; nothing was spent|[ ]?Nothing was spent\.)")


def cause(error: BaseException) -> tuple[str, bool]:
    """Say what an error was."""
    if isinstance(error, LeastNoiseError) and not isinstance(error, InternalError):
        return _SPENT.sub("", str(error)), False
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return "There is not enough memory.", False
    if isinstance(error, OSError) and error.strerror:
        where = f" {error.filename}" if isinstance(error.filename, str) else ""
        return f"The file system refused{where}: {error.strerror.lower()}.", False
    if type(error).__name__ == "IOException" or _is_full(str(error)):  # of DuckDB, which writes the answers
        return "A file cannot be written or read; perhaps the disk is full.", False
    return f"A fault of the program, not of yours ({_place(error)}); please report this line and the version.", True


def _is_full(text: str) -> bool:
    return any(os_text in text for os_text in ("No space left", "Disk quota", "File too large", "Input/output error"))


def _place(error: BaseException) -> str:
    """The kind and the place of a fault, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "leastnoise" in Path(frame.filename).parts] or list(frames)
    return f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else type(error).__name__
