"""A release that was written, opened with a line of progress."""

from pathlib import Path
from typing import TYPE_CHECKING

from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._release import Release

_BYTES_A_SECOND = 1.5e6  # of one core of 2026


def opened(directory: Path) -> "Release":
    """Read a release; large ones take seconds."""
    from leastnoise._session import read_release

    files = [file for file in (directory / "measurements").glob("*.json") if file.is_file()]
    with Progress(f"opening {directory.name}", about=sum(file.stat().st_size for file in files) / _BYTES_A_SECOND):
        return read_release(directory)
