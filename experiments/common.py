"""Write CSV files and figures, parse command lines, and simulate releases for experiments."""

import argparse
import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastnoise._estimation import Outcome
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._plan import Plan
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries
from leastnoise._trusted.table import Table

Row = dict[str, Any]
Report = Callable[[str], None]
Wholes = NDArray[np.int64]
Reals = NDArray[np.float64]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write a line per row, with all columns that occur in any row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, list(dict.fromkeys(column for row in rows for column in row)), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)


def arguments(description: str | None, **options: dict[str, Any]) -> dict[str, Any]:
    """Parse the command line, with the arguments of ``add_argument`` for each option."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, keywords in options.items():
        parser.add_argument(f"--{name}", **keywords)
    return vars(parser.parse_args())


def simulated(plan: Plan, table: Table, seed: int | SeededEntropy) -> Outcome:
    """Carry out a plan with seeded noise; nothing is paid, and nothing is private."""
    if isinstance(seed, int):
        entropy = SeededEntropy(seed)
    else:
        entropy = seed
    return mechanism_of(plan).prepare(plan)(UnpaidSeries(release_contract(plan), table, entropy))


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return float(np.exp(np.mean(np.log([*values]))))


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; NaN for a single value."""
    if len(values) > 1:
        return float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return math.nan


def pyplot() -> Any:
    """Return Matplotlib's pyplot with the style of all figures, for drawing into files.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise InputError(
            "Figures need matplotlib, which is not installed; the CSV tables are written. "
            "Install it with pip install 'leastnoise[experiments]'."
        ) from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.fonttype": "none",
            "svg.hashsalt": "leastnoise",
        }
    )
    return plt


def save(figure: Any, stem: Path) -> None:
    """Write a figure as PNG and as SVG, and close it."""
    figure.savefig(stem.with_suffix(".png"), bbox_inches="tight", dpi=110)
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    # Hundredths of a point are enough and make the file a third smaller.
    stem.with_suffix(".svg").write_text(
        re.sub(r"(\d\.\d\d)\d+", r"\1", text.getvalue()), encoding="utf-8"
    )
    pyplot().close(figure)


def legend_below(figure: Any, panel: Any, columns: int | None = None, height: float = 0.02) -> None:
    """Put the legend of a panel below all panels of its figure."""
    handles, labels = panel.get_legend_handles_labels()
    position = {"loc": "upper center", "bbox_to_anchor": (0.5, height)}
    figure.legend(
        handles, labels, ncols=columns or len(labels), frameon=False, fontsize=9, **position
    )
