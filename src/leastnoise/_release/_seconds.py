"""About how long a release takes from its counts to its files: by public sizes alone, so that a line of progress tells nothing."""

from leastnoise._charts import drawing
from leastnoise._plan import Plan
from leastnoise._release._files import MOST_TABLE_FILES
from leastnoise._release._options import Options
from leastnoise._release._views import MOST_CELLS, MOST_LARGEST, MOST_OF_A_TABLE, MOST_PICTURES

# CPU seconds, measured on one core of 2026
_START, _PICTURE, _FILE, _ROW, _ANSWER, _NUMBER = 1.3, 0.08, 0.02, 7e-5, 3e-6, 3e-7


def finishing_seconds(plan: Plan, options: Options, *, written: bool = True) -> float:
    """About how many CPU seconds measuring, estimating and writing take, for a plan whose measurements are known beforehand."""
    if plan.measurements is None:
        return 0.0
    seconds = _NUMBER * sum(block.rows for block in plan.measurements.blocks)
    if not written:
        return seconds
    sizes = [product.rows for product in plan.workload.products]
    rows = min(sum(size if size <= MOST_OF_A_TABLE else MOST_LARGEST for size in sizes), MOST_CELLS)
    files = min(len(sizes), MOST_TABLE_FILES) * len(options.formats) / 2
    pictures = min(len(sizes), MOST_PICTURES) if drawing() else 0
    return seconds + _START + _PICTURE * pictures + _FILE * files + _ROW * rows + _ANSWER * sum(sizes)
