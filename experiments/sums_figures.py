"""The figures of the experiment on sums."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.common import Row, legend_below, pyplot, save

_COLOURS = {
    ("identity", "none"): "#777777",
    ("identity", "svt"): "#3b75af",
    ("identity", "recursive"): "#8d3b8f",
    ("workload", "svt"): "#c8682d",
    ("timm", "svt"): "#519e3e",
    ("tamm", "svt"): "#b03a3a",
    ("sqm", "svt"): "#8a6d3b",
    ("optimum", "svt"): "#2b8c8c",
    ("optimum", "tail"): "#111111",
}
_NAMES = {
    "identity": "Identity",
    "workload": "Workload",
    "timm": "TiMM",
    "tamm": "TaMM",
    "sqm": "SQM",
    "optimum": "p-Identity on WT",
}
_THRESHOLDS = {
    "none": "no threshold",
    "svt": "SVT",
    "recursive": "recursive",
    "tail": "from the tail",
    "least error": "least error",
}


def _label(algorithm: str, kind: str) -> str:
    """Return the label of an algorithm and kind of threshold."""
    if (algorithm, kind) == ("optimum", "tail"):
        return "ours"
    return f"{_NAMES[algorithm]}, {_THRESHOLDS[kind]}"


def _curves(
    panel: Any, rows: Sequence[Row], shown: Sequence[tuple[str, str]], quantity: str, step: str
) -> None:
    """Draw means and bands by query, a curve per algorithm and kind of threshold."""
    for algorithm, kind in shown:
        matching = [
            row
            for row in rows
            if (row["algorithm"], row["threshold"], row["post-processing"])
            == (algorithm, kind, step)
        ]
        across = [row["up to"] / 1000 for row in matching]
        bounds = [[row[f"{quantity} {end}"] for row in matching] for end in ("5%", "95%")]
        colour = _COLOURS[algorithm, kind]
        panel.fill_between(across, *bounds, color=colour, alpha=0.13, linewidth=0)
        panel.plot(
            across,
            [row[quantity] for row in matching],
            color=colour,
            linewidth=1.5,
            label=_label(algorithm, kind),
        )
    panel.set_xlabel("records up to (thousands)")
    panel.grid(axis="y", color="#eeeeee")
    panel.set_axisbelow(True)


def draw_answers(rows: Sequence[Row], stem: Path) -> None:
    """Draw figure 2: noisy answers of Identity and of the matrix mechanisms.

    Identity is drawn by threshold; the others use the sparse vector technique.
    """
    figure, panels = pyplot().subplots(1, 2, figsize=(11, 4.3), sharey=True)
    parts = (
        (
            "Identity, by threshold",
            (("identity", "none"), ("identity", "recursive"), ("identity", "svt")),
        ),
        (
            "strategies, threshold from SVT; ours",
            (("identity", "svt"), ("timm", "svt"), ("tamm", "svt"), ("optimum", "tail")),
        ),
    )
    for panel, (title, shown) in zip(panels, parts, strict=True):
        _curves(panel, rows, shown, "answer", "isotonic")
        exact = [
            row
            for row in rows
            if (row["algorithm"], row["threshold"], row["post-processing"])
            == ("identity", "none", "none")
        ]
        panel.plot(
            [row["up to"] / 1000 for row in exact],
            [row["truth"] for row in exact],
            color="#111111",
            linestyle=":",
            label="truth",
        )
        panel.set_title(title, fontsize=10)
        panel.legend(frameon=False, fontsize=8, loc="lower right")
    panels[0].set_ylabel("sum of incomes (mean and 5 to 95%)")
    save(figure, stem)


def _draw_errors(
    parts: Sequence[tuple[str, str, Sequence[tuple[str, str]]]], rows: Sequence[Row], stem: Path
) -> None:
    """Draw relative errors, a panel per title, post-processing step and set of curves."""
    figure, panels = pyplot().subplots(1, 2, figsize=(11, 4.3), sharey=True)
    for panel, (title, step, shown) in zip(panels, parts, strict=True):
        _curves(panel, rows, shown, "error", step)
        panel.set_yscale("log")
        panel.set_title(title, fontsize=10)
        panel.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("relative error (mean and 5 to 95%)")
    save(figure, stem)


def draw_algorithms(rows: Sequence[Row], stem: Path) -> None:
    """Draw figure 3: relative errors with the sparse vector technique."""
    matrix = (("identity", "svt"), ("timm", "svt"), ("tamm", "svt"), ("optimum", "tail"))
    baselines = (("sqm", "svt"), ("workload", "svt"), ("identity", "svt"), ("optimum", "tail"))
    _draw_errors(
        [("truncated matrix mechanisms", "isotonic", matrix), ("baselines", "isotonic", baselines)],
        rows,
        stem,
    )


def draw_isotonic(rows: Sequence[Row], stem: Path) -> None:
    """Draw figure 4: Workload and SQM without and with isotonic regression."""
    shown = (("workload", "svt"), ("sqm", "svt"))
    _draw_errors(
        [
            ("without isotonic regression", "none", shown),
            ("with isotonic regression", "isotonic", shown),
        ],
        rows,
        stem,
    )


def draw_comparison(rows: Sequence[Row], stem: Path) -> None:
    """Draw mean relative error against epsilon, a panel per workload."""
    names = list(dict.fromkeys(row["workload"] for row in rows))
    figure, panels = pyplot().subplots(
        1, len(names), figsize=(4.2 * len(names), 4.0), sharey=True, squeeze=False
    )
    shown = (
        ("identity", "none"),
        ("identity", "svt"),
        ("timm", "svt"),
        ("tamm", "svt"),
        ("optimum", "svt"),
        ("optimum", "tail"),
    )
    for panel, name in zip(panels[0], names, strict=True):
        for algorithm, kind in shown:
            matching = [
                row
                for row in rows
                if (
                    row["workload"],
                    row["algorithm"],
                    row["threshold"],
                    row["reading"],
                    row["post-processing"],
                )
                == (name, algorithm, kind, "records", "isotonic")
                and row["threshold share"] in ("", 0.1)
            ]
            matching.sort(key=lambda row: row["epsilon"])
            mean_errors = [row["mean relative error"] for row in matching]
            across = [row["epsilon"] for row in matching]
            panel.plot(
                across,
                mean_errors,
                color=_COLOURS[algorithm, kind],
                marker="o",
                markersize=3.5,
                label=_label(algorithm, kind),
            )
            panel.fill_between(
                across,
                [row["5%"] for row in matching],
                [row["95%"] for row in matching],
                color=_COLOURS[algorithm, kind],
                alpha=0.1,
            )
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("epsilon")
        panel.grid(axis="y", color="#eeeeee")
    panels[0][0].set_ylabel("mean over queries of the relative error")
    legend_below(figure, panels[0][0], columns=3)
    save(figure, stem)
