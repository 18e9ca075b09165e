"""Rounding and suppression as publication rules ask for them: post-processing that says what it does to error bars.

Neither protects anybody: the noise does. Both only take away from what a reader knows, so they cost nothing, and error bars get wider.
"""

import csv
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leastnoise._check import Exact, exact_positive
from leastnoise._check.arrays import Array, FloatArray
from leastnoise._release._columns import file_name, to_frame

if TYPE_CHECKING:
    from leastnoise._release._release import Release
    from leastnoise._release._tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """A table after rounding and suppression; arrays are flat, one entry an answer in row-major order.

    Args:
        table: as it was.
        to: answers are multiples of this, in rows or in the measure's own unit.
        below: answers below this are left out; None: none are.
        answer: rounded; NaN where it is left out.
        margin: half the width of the interval: that of the table and half of ``to``.
        low: lower end; NaN where the answer is left out.
        high: upper end; ``below`` and the table's own margin where the answer is left out.
        std_error: a bound: the standard error of the table and half of ``to``.

    Guarantees: what is said of a cell (its interval, or that the true answer is at most ``high`` where it is left out) is right in at least
        the share of releases that the level of the table says, because it is wrong only where the table's own interval is.
    """

    table: "Table"
    to: Fraction
    below: Fraction | None
    answer: FloatArray
    margin: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray

    def columns(self) -> dict[str, Array]:
        """The table in long form: ``query``, one key column an attribute, answer, std_error, margin, low, high."""
        keys = {name: values for name, values in self.table.columns().items() if name not in self.table.numbers()}
        numbers = {"answer": self.answer, "std_error": self.std_error, "margin": self.margin, "low": self.low, "high": self.high}
        return {**keys, **numbers}

    def frame(self, library: str | None = None) -> Any:
        """The columns as a data frame of pandas, polars or pyarrow; None for the first that is installed."""
        return to_frame(self.columns(), library)

    def words(self) -> str:
        """What was done, and what it does to error bars."""
        half, to = float(self.to) / 2, float(self.to)
        said = f"Answers are rounded to multiples of {to:g}, which adds at most {half:g} to every margin and standard error. "
        if self.below is not None:
            below = float(self.below)
            said += (
                f"{int(np.isnan(self.answer).sum())} of {self.answer.size} answers are below {below:g} and left out: of them is known that "
                f"the true answer is at most {below:g} and the margin that the answer had. "
            )
        return said + "Sums of rounded answers add up the rounding too: compute sums first, from the release, and round them afterwards."


def rounded(table: "Table", to: Exact, below: Exact | None = None) -> Rounded:
    """Round a table and leave out small answers.

    Args:
        table: of a release.
        to: answers become multiples of it, in rows or in the measure's own unit; exact, above 0.
        below: answers below it (before they are rounded) are left out; exact, above 0. None: none are.

    Raises:
        InputError: a number that is not above 0.

    >>> plan = ln.plan(ln.queries(ln.Domain(sex=["F", "M"]), sex="identity"), ln.PureDP(1))
    >>> release = ln.release(plan, pd.DataFrame({"sex": ["F"] * 43 + ["M"] * 2}), seed=7)
    >>> rounded(release.tables["sex"], 5, below=10).answer.tolist()
    [45.0, nan]
    """
    step = exact_positive("what answers are rounded to", to)
    least = None if below is None else exact_positive("below which answers are left out", below)
    given, high, std = (values.reshape(-1) for values in (table.answer, table.high, table.noise_std))
    rest = 0.0 if table.approximation_std is None else np.nan_to_num(table.approximation_std.reshape(-1))
    own = high - given
    margin = own + float(step) / 2
    answer = np.rint(given / float(step)) * float(step) + 0.0
    shown = np.ones(given.shape, dtype=np.bool_) if least is None else given >= float(least)
    return Rounded(
        table=table,
        to=step,
        below=least,
        answer=np.where(shown, answer, np.nan),
        margin=np.where(shown, margin, np.nan),
        low=np.where(shown, answer - margin, np.nan),
        high=np.where(shown, answer + margin, own + float(least or 0)),
        std_error=np.where(shown, np.sqrt(std**2 + rest**2) + float(step) / 2, np.nan),
    )


def write_rounded(release: "Release", directory: Path, to: Exact, below: Exact | None = None) -> None:
    """Write every table, rounded, as CSV, and beside them what that does to error bars.

    Args:
        release: the release.
        directory: an existing directory.
        to: as for `rounded`.
        below: as for `rounded`.

    >>> plan = ln.plan(ln.queries(ln.Domain(sex=["F", "M"]), sex="identity"), ln.PureDP(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rounded(ln.release(plan, pd.DataFrame({"sex": ["F"] * 43}), seed=7), Path(folder), 5)
    ...     sorted(os.listdir(folder))
    ['README.md', 'q1-sex.csv']
    """
    lines = [f"# {release.plan_digest}: rounded tables", ""]
    if not release.private:
        lines += ["**NOT PRIVATE**: the noise of this release came from a seed.", ""]
    for table in release.tables:
        found = rounded(table, to, below)
        name = f"{file_name(table.id, table.name, len(release.tables))}.csv"
        columns = found.columns()
        with (directory / name).open("w", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(columns)
            for row in zip(*(values.tolist() for values in columns.values()), strict=True):
                rows.writerow(["" if value != value else value for value in row])  # noqa: PLR0124 - NaN is empty
        lines += [f"- `{name}`: {found.words()}"]
    (directory / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
