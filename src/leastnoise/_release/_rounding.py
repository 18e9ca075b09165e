"""Rounding and suppression as publication rules ask for them: post-processing that says what it does to error bars.

Neither protects anybody: the noise does. Both only take away from what a reader knows, so they cost nothing, and error bars get wider.
"""

import csv
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leastnoise._check import Exact, exact_positive
from leastnoise._check.arrays import Array, FloatArray
from leastnoise._frames import to_frame
from leastnoise._release._columns import file_name, inert_text
from leastnoise._release._cut import cut_words
from leastnoise._release._options import Options
from leastnoise._release._texts import Texts, texts

if TYPE_CHECKING:
    from leastnoise._release._release import Release
    from leastnoise._release._tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """A table after rounding and suppression; arrays are flat, one entry an answer in row-major order.

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
        """The columns as a data frame of pandas, polars or pyarrow; None for that of the data, or else the first that is installed."""
        return to_frame(self.columns(), library or self.table.library)

    def words(self) -> str:
        """What was done, and what it does to error bars."""
        said = ""
        if self.to:
            to, half = (texts().plain(value) for value in (self.to, self.to / 2))
            said = f"Answers are rounded to multiples of {to}, which adds at most {half} to every margin and standard error. "
        if self.below is not None:
            below, count = texts().plain(self.below), int(np.isnan(self.answer).sum() - np.isnan(self.table.answer).sum())
            said += (
                f"{count} of {self.answer.size} answers are below {below} and left out: of them is known that "
                f"the true answer is at most {below} and the margin that the answer had. "
            )
        if gone := int(np.isnan(self.table.answer).sum()):
            said += f"{gone} of {self.answer.size} answers were left out by the release already: high is the bound that it gives. "
        return said + "Sums of rounded answers add up the rounding too: compute sums first, from the release, and round them afterwards."


def rounded(table: "Table", to: Exact | None, below: Exact | None = None) -> Rounded:
    """Round a table and leave out small answers."""
    step = Fraction(0) if to is None else exact_positive("what answers are rounded to", to)
    least = None if below is None else exact_positive("below which answers are left out", below)
    given, std = table.answer.reshape(-1), table.noise_std.reshape(-1)
    rest = 0.0 if table.approximation_std is None else np.nan_to_num(table.approximation_std.reshape(-1))
    half = float(step) / 2
    down, up = (values.reshape(-1) for values in (table.answer - table.low, table.high - table.answer))
    answer = multiples(given, step)
    shown = ~np.isnan(given) if least is None else given >= float(least)
    return Rounded(
        table=table,
        to=step,
        below=least,
        answer=np.where(shown, answer, np.nan),
        margin=np.where(shown, np.maximum(down, up) + half, np.nan),
        low=np.where(shown, answer - (down + half), np.nan),
        high=np.where(np.isnan(given), table.high.reshape(-1), np.where(shown, answer + (up + half), up + float(least or 0))),
        std_error=np.where(shown, np.sqrt(std**2 + rest**2) + half + float(table.rounded_to) / 2, np.nan),
    )


def multiples(values: FloatArray, step: Fraction) -> FloatArray:
    """The nearest multiples of a step; the values themselves where it is 0."""
    return np.rint(values / float(step)) * float(step) + 0.0 if step else values


def published(table: "Table", options: Options) -> "Table":
    """A table as a release publishes it: rounded, and without small answers, where its options ask for that.

    Guarantees: as `Rounded`; where an answer is left out, no other column of it tells more than that it is below.
    """
    step, least = exact_rule(options)
    if not step and least is None:
        return table
    found = rounded(table, step or None, least)
    shape, gone = table.answer.shape, np.isnan(found.answer)

    def shown(values: Array | None) -> FloatArray | None:
        if values is None:
            return None
        return np.where(gone.reshape(shape), np.nan, multiples(values.astype(np.float64), step))

    return replace(
        table,
        answer=found.answer.reshape(shape),
        low=found.low.reshape(shape),
        high=found.high.reshape(shape),
        non_negative=shown(table.non_negative),
        integer=shown(table.integer),
        nnls=shown(table.nnls),
        nnls_rmse=None if table.nnls_rmse is None else np.where(gone.reshape(shape), np.nan, table.nnls_rmse),
        local=shown(table.local),
        rounded_to=step,
    )


def exact_rule(options: Options) -> tuple[Fraction, Fraction | None]:
    """The step of rounding, 0 for none, and what is left out below, as the numbers that options hold."""
    step = Fraction(0) if options.round is None else exact_positive("round", options.round)
    return step, None if options.below is None else exact_positive("below", options.below)


def rounding_words(options: Options, said: Texts) -> str:
    """How answers were rounded and which were left out, and what that does to the error bars."""
    step, least = exact_rule(options)
    parts = [said.say("rounded", to=said.plain(step), half=said.plain(step / 2))] if step else []
    return " ".join([*parts, *([] if least is None else [said.say("left_out", below=said.plain(least))])])


def rule_facts(options: Options) -> dict[str, Any]:
    """What a manifest says of rounding and of answers left out; nothing where there is none of it."""
    step, least = exact_rule(options)
    if not step and least is None:
        return {}
    facts: dict[str, Any] = {}
    if step:
        facts = {"multiples_of": str(step), "added_to_half_widths": float(step) / 2}
        facts["standard_error_of_rounding"] = round(float(step) / math.sqrt(12), 3 - math.floor(math.log10(float(step))))
    if least is not None:
        facts["left_out_below"] = str(least)
    facts["note"] = (
        "post-processing, which protects nobody further; noise_std is of the noise alone; low and high hold both, and of an answer "
        "that is left out high alone is given: the true one is not above it, at the level of the intervals"
    )
    return {"rounding": facts}


def write_rounded(release: "Release", directory: Path, to: Exact, below: Exact | None = None) -> None:
    """Write every table, rounded, as CSV, and beside them what that does to error bars."""
    dataset = release.receipt.get("dataset")
    lines = [f"# {dataset}: rounded tables" if dataset else "# Rounded tables", ""]
    if not release.private:
        lines += ["**NOT PRIVATE**: the noise of this release came from a seed.", ""]
    if said := cut_words(release):
        lines += [said, ""]
    for table in release.tables:
        found = rounded(table, to, below)
        name = f"{file_name(table.id, table.name, len(release.tables))}.csv"
        columns = found.columns()
        with (directory / name).open("w", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(map(inert_text, columns))
            for row in zip(*(values.tolist() for values in columns.values()), strict=True):
                known = ("" if value != value else value for value in row)  # noqa: PLR0124 - NaN is empty
                rows.writerow([inert_text(value) if isinstance(value, str) else value for value in known])
        lines += [f"- `{name}`: {found.words()}"]
    (directory / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
