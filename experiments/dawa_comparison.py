"""Write tables and a figure of errors for ``dawa`` on one and on two attributes."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from baselines import Ranges
from experiments.common import (
    Reals,
    Report,
    Row,
    Wholes,
    geometric_mean,
    legend_below,
    pyplot,
    save,
    standard_error,
    write_csv,
)

Errors = dict[str, dict[str, list[float]]]
"""Mean absolute errors by mechanism and workload, one for each trial."""
OUR_MECHANISMS = ("dawa", "dawa_levels")
DATA_INDEPENDENT = "D"
"""The best data-independent plan, which `dawa` uses if data-dependent choices do not help."""


def add_error(
    errors: Errors, mechanism: str, workload: str, queries: Ranges, estimate: Reals, x: Wholes
) -> None:
    """Add the mean absolute error of an estimate over the queries of a workload."""
    errors.setdefault(mechanism, {}).setdefault(workload, []).append(
        float(np.abs(queries.answers(estimate - x)).mean())
    )


def summary(head: Row, errors: Errors, workloads: Sequence[str]) -> Iterator[Row]:
    """Yield a row per workload with mean errors, standard errors and our ratios.

    The ratios are to the best other private mechanism and to D.
    """
    for workload in workloads:
        errors_by_name = {
            name: by_workload[workload]
            for name, by_workload in errors.items()
            if workload in by_workload
        }
        mean_errors = {name: float(np.mean(values)) for name, values in errors_by_name.items()}
        other_errors = {
            name: mean
            for name, mean in mean_errors.items()
            if name not in (*OUR_MECHANISMS, DATA_INDEPENDENT) and "not private" not in name
        }
        best_name = min(other_errors, key=lambda name: other_errors[name])
        yield {
            **head,
            "workload": workload,
            "best other": best_name,
            "ratio": mean_errors["dawa"] / other_errors[best_name],
            "ratio to D": mean_errors["dawa"] / mean_errors[DATA_INDEPENDENT],
            "worst release": max(errors_by_name["dawa"]) / float(np.median(errors_by_name["dawa"])),
            **mean_errors,
            **{f"{name} se": standard_error(values) for name, values in errors_by_name.items()},
        }


def line(rows: Sequence[Row], workloads: Sequence[str]) -> str:
    """Return the last rows, one per workload, as a line of the report."""
    return ", ".join(
        f"{row['workload']} {row['dawa']:.3g} ({row['ratio']:.2f})"
        for row in rows[-len(workloads) :]
    )


def regret(rows: Sequence[Row]) -> list[Row]:
    """Return a row per budget and workload with each mechanism's regret.

    The regret is the geometric mean over data sets of the mechanism's error over the smallest error
    of any private mechanism. A row also has our largest ratio, our mean ratio to D, and the largest
    error of one of our releases over the median of our releases.
    """
    names = [name for name in rows[0] if f"{name} se" in rows[0] and "not private" not in name]
    result_rows = []
    for epsilon, workload in dict.fromkeys((row["epsilon"], row["workload"]) for row in rows):
        matching = [row for row in rows if (row["epsilon"], row["workload"]) == (epsilon, workload)]
        ratios = {
            name: [
                row[name] / min(row[other] for other in names if other in row)
                for row in matching
                if name in row
            ]
            for name in names
        }
        numbers = {name: geometric_mean(values) for name, values in ratios.items()}
        numbers |= {
            "dawa, largest": max(ratios["dawa"]),
            "dawa / D": geometric_mean(row["ratio to D"] for row in matching),
        }
        numbers["worst release"] = max(row["worst release"] for row in matching)
        result_rows.append(
            {
                "epsilon": epsilon,
                "workload": workload,
                **{name: round(number, 3) for name, number in numbers.items()},
            }
        )
    return result_rows


def write(
    rows: Sequence[Row], out: Path, marks: Mapping[str, tuple[str, str]], report: Report
) -> None:
    """Write the tables ``errors.csv`` and ``regret.csv`` and the figure."""
    write_csv(out / "errors.csv", rows)
    write_csv(out / "regret.csv", table := regret(rows))
    for row in table:
        report(json.dumps(row))
    draw_ratios(rows, out / "ratios", marks)
    report(f"Tables and figures are in {out}.")


def draw_ratios(rows: Sequence[Row], stem: Path, marks: Mapping[str, tuple[str, str]]) -> None:
    """Draw our ratios by data set, a panel per budget.

    If a data set has several sizes, the figure shows the first one.

    Args:
        rows: rows of `summary`; a run in progress may lack some.
        stem: path of the files without ending.
        marks: colour and marker of every workload.
    """
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    first = {(row["data"], row["epsilon"], row["workload"]): row["ratio"] for row in reversed(rows)}
    names = list(dict.fromkeys(row["data"] for row in rows))
    width = 2.2 + 3.2 * len(epsilons)
    height = 1.2 + 0.28 * len(names)
    figure, axes = pyplot().subplots(
        1, len(epsilons), figsize=(width, height), sharey=True, squeeze=False
    )
    for panel, epsilon in zip(axes[0], epsilons, strict=True):
        panel.axvline(1.0, color="#999999", linewidth=1)
        for workload, (colour, marker) in marks.items():
            ratios = [first.get((name, epsilon, workload), math.nan) for name in names]
            panel.plot(
                ratios,
                range(len(names)),
                linestyle="none",
                color=colour,
                marker=marker,
                markersize=5,
                label=workload,
            )
        panel.set_xscale("log")
        low, high = panel.get_xlim()
        ticks = [tick for tick in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5) if low <= tick <= high]
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.grid(axis="both", color="#eeeeee")
        panel.set_title(f"epsilon {epsilon}", fontsize=10)
        panel.set_xlabel("error / best other private mechanism")
    axes[0][0].set_yticks(range(len(names)), names)
    axes[0][0].invert_yaxis()
    legend_below(figure, axes[0][0])
    save(figure, stem)
