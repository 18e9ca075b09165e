"""How much memory and time a release takes, from public plans and the sizes of files: for refusals and the line of progress alone."""

import glob
import math
from pathlib import Path
from typing import Any

from leastnoise import _adapters
from leastnoise._accuracy import require_memory
from leastnoise._check import LeastNoiseError
from leastnoise._kernel import Ledger
from leastnoise._plan import Plan, is_category_plan
from leastnoise._release import Options, finishing_seconds
from leastnoise._release import written as as_written

# Bytes, measured on the largest tables of each kind (identities, prefixes and all ranges of 10^6 answers) and rounded up.
_A_CELL = 64  # counts, noise and noisy answers of the table that is measured
_KEPT = 16  # of every noisy answer until the release is done
_AN_ANSWER = 100  # of the table that is worked on
_A_LABEL = 900  # of a key of a table that is written: its texts, in both formats
_BLOCK = 2**20  # bytes of a CSV file after each of which progress is told
_ENDINGS = (".csv", ".tsv")  # how long the text in a .gz is nobody knows beforehand
_BYTES_A_SECOND = 2e7


def csv_blocks(source: Any) -> int:
    """How often progress is told while CSV files are read: after every block of theirs; 0, for nobody knows, for another source."""
    return sum(math.ceil(size / _BLOCK) for size in csv_sizes(source))


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


def release_memory(plan: Plan, *, written: bool) -> int:
    """About how many bytes a release takes beside the program itself and its rows."""
    asked, measurements = plan.workload.products, plan.measurements
    each = as_written(asked)
    answers, labels = max(product.rows for product in each), max(sum(operator.rows for operator in product.operators) for product in each)
    if measurements is None:
        tables = [(product.rows, math.prod(plan.domain.kind(name).size for name in product.attributes)) for product in asked]
    else:
        tables = [(block.rows, math.prod(factor.operator.size for factor in block.factors)) for block in measurements.blocks]
    measured = _A_CELL * max(map(max, tables)) + _KEPT * sum(rows for rows, _ in tables)
    return measured + _AN_ANSWER * answers + (_A_LABEL * labels if written else 0)


def check_memory(plan: Plan, *, written: bool) -> None:
    """Refuse a release that would need more memory than there is."""
    require_memory(
        release_memory(plan, written=written),
        "This release",
        "Ask for fewer or smaller tables, or run it on a larger machine; nothing was spent.",
    )
