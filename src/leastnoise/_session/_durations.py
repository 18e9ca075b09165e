"""How long reading and finishing take, from sizes alone: for the line of progress of the data's holder, and for nothing that is written."""

import glob
from math import ceil
from pathlib import Path
from typing import Any

from leastnoise import _adapters
from leastnoise._check import LeastNoiseError
from leastnoise._kernel import Ledger
from leastnoise._plan import Plan, is_category_plan
from leastnoise._release import Options, finishing_seconds

_BLOCK = 2**20  # bytes of a CSV file after each of which progress is told
_ENDINGS = (".csv", ".tsv")  # how long the text in a .gz is nobody knows beforehand
_BYTES_A_SECOND = 2e7


def csv_blocks(source: Any) -> int:
    """How often progress is told while CSV files are read: after every block of theirs; 0, for nobody knows, for another source."""
    return sum(ceil(size / _BLOCK) for size in csv_sizes(source))


def csv_sizes(source: Any) -> list[int]:
    """The sizes in bytes of the CSV files that a source is, of two joined tables those of the first; none where it is something else."""
    source_location = _adapters.location(source)
    source_location = source_location["joined"][0] if isinstance(source_location, dict) and "joined" in source_location else source_location
    if source_location is None:
        return []
    path = Path(str(source_location["path"] if isinstance(source_location, dict) else source_location))
    files = path.rglob("*") if path.is_dir() else [path] if path.is_file() else map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207
    return [file.stat().st_size for file in files if file.name.lower().endswith(_ENDINGS) and file.is_file()]


def reading_seconds(source: Any) -> float:
    """About how many CPU seconds reading CSV files takes; 0, for nobody knows, for another source."""
    return sum(csv_sizes(source)) / _BYTES_A_SECOND


def resuming_seconds(book: Ledger, number: int) -> float:
    """About how many CPU seconds it takes to finish a release that was measured; 0 where nobody knows."""
    try:
        plans = [book.pending(entry).plan for entry in book.entries() if entry.number == number and entry.resumable]
        return sum((finishing_seconds(Plan.from_json(plan), Options()) for plan in plans if not is_category_plan(plan)), 0.0)
    except LeastNoiseError:  # what is wrong is said by whoever finishes it
        return 0.0
