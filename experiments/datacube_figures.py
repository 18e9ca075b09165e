"""The figures of the data cube experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.common import Row, legend_below, pyplot, save

# Strategies with the same measured queries have the same colour: dashed lines for even budgets,
# solid lines for the best budgets. Our strategies have other colours.
_STYLE: dict[str, dict[str, Any]] = {
    "I": {"color": "#777777", "linestyle": "-", "marker": "x"},
    "Q": {"color": "#3b75af", "linestyle": "--", "marker": "o"},
    "Q+": {"color": "#3b75af", "linestyle": "-", "marker": "o"},
    "F": {"color": "#c8682d", "linestyle": "--", "marker": "s"},
    "F+": {"color": "#c8682d", "linestyle": "-", "marker": "s"},
    "C": {"color": "#519e3e", "linestyle": "--", "marker": "^"},
    "C+": {"color": "#519e3e", "linestyle": "-", "marker": "^"},
    "covering": {"color": "#111111", "linestyle": "-", "marker": "D", "linewidth": 2.4},
    "residual": {"color": "#8d3b8f", "linestyle": "-", "marker": "v"},
}
_EVEN = {"Q", "F", "C"}
_LABELS = {
    "covering": "ours: covering design",
    "residual": "ours, Gaussian: residual optimum",
    "lower bound": "lower bound (pure), no constant",
}


def _style(name: str) -> dict[str, Any]:
    """Return the line style of a strategy."""
    return {
        "linewidth": 1.4,
        "markersize": 4.5,
        "markerfacecolor": "white" if name in _EVEN else None,
        **_STYLE[name],
    }


def draw_relative_errors(rows: Sequence[Row], data: str, stem: Path) -> None:
    """Draw figures 4 and 5: relative error by epsilon, a panel for each workload."""
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    figure, axes = pyplot().subplots(2, 3, figsize=(11, 6.4), sharex=True)
    for panel, workload in zip(axes.flat, workloads, strict=True):
        for name in strategies:
            matching = [
                row for row in rows if (row["workload"], row["strategy"]) == (workload, name)
            ]
            x = [row["epsilon"] for row in matching]
            y = [row["relative error"] for row in matching]
            panel.plot(
                x,
                y,
                label=_LABELS.get(name, name),
                zorder=3 if name == "covering" else 2,
                **_style(name),
            )
        low, high = panel.get_ylim()
        if low < 1 < high:
            panel.axhline(1, color="#bbbbbb", linewidth=0.9, zorder=1)
        panel.set_xscale("log")
        panel.set_yscale("log")
        ticks = sorted({row["epsilon"] for row in rows})
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.set_title(
            workload.replace("Q", "$Q_{").replace("*", "}^*").replace("a", "}^a")
            + ("}$" if workload[-1].isdigit() else "$")
        )
        panel.grid(axis="y", color="#eeeeee")
    for panel in axes[1]:
        panel.set_xlabel("epsilon")
    for panel in axes[:, 0]:
        panel.set_ylabel("mean error of a cell /\nmean of its table")
    figure.suptitle(
        f"{data}: relative error of marginals, pure budgets (grey line: noise as large as the "
        "counts)",
        y=0.995,
    )
    figure.tight_layout()
    legend_below(figure, axes[0, 0], height=0.0)
    save(figure, stem)


def draw_seconds(rows: Sequence[Row], stem: Path) -> None:
    """Draw figure 6: seconds from the table in memory to the answers, by workload."""
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    figure, panel = pyplot().subplots(figsize=(9, 3.8))
    width = 0.86 / len(strategies)
    for number, name in enumerate(strategies):
        seconds = [
            sum(row[step] for step in ("plan", "count", "noise and recovery"))
            for row in rows
            if row["strategy"] == name
        ]
        x = [at + (number - (len(strategies) - 1) / 2) * width for at in range(len(workloads))]
        colour = _STYLE[name]["color"]
        style = {"color": "white" if name in _EVEN else colour, "edgecolor": colour, "zorder": 2}
        panel.bar(x, seconds, width * 0.92, label=_LABELS.get(name, name), **style)
    panel.set_yscale("log")
    panel.set_xticks(range(len(workloads)), workloads)
    panel.set_ylabel("seconds of the processor")
    panel.grid(axis="y", color="#eeeeee", zorder=0)
    panel.set_title("NLTCS: seconds to plan, count, add noise and recover")
    panel.legend(
        ncols=len(strategies),
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.1),
        columnspacing=1.1,
        handlelength=1.2,
    )
    save(figure, stem)


def draw_growth(rows: Sequence[Row], stem: Path) -> None:
    """Draw table 1: measured noise (solid) and the bound (dotted), a panel per k.

    The bound is scaled to its last point.
    """
    sizes = sorted({row["k"] for row in rows})
    figure, axes = pyplot().subplots(1, len(sizes), figsize=(11, 3.9))
    for panel, k in zip(axes, sizes, strict=True):
        for name in dict.fromkeys(
            row["strategy"] for row in rows if row["strategy"] != "lower bound"
        ):
            matching = [row for row in rows if (row["k"], row["strategy"]) == (k, name)]
            d = [row["d"] for row in matching]
            panel.plot(
                d,
                [row["measured"] for row in matching],
                label=_LABELS.get(name, name),
                **{**_style(name), "linestyle": "-"},
            )
            if name != "covering":
                last = matching[-1]["ratio"]
                panel.plot(
                    d,
                    [row["bound"] * last for row in matching],
                    color=_STYLE[name]["color"],
                    linestyle=":",
                    linewidth=1.1,
                )
        lower = [row for row in rows if (row["k"], row["strategy"]) == (k, "lower bound")]
        d = [row["d"] for row in lower]
        style = {"color": "#aa0000", "linestyle": "-.", "linewidth": 1.2}
        panel.plot(d, [row["bound"] for row in lower], label=_LABELS["lower bound"], **style)
        top = max(row["measured"] for row in rows if row["k"] == k and row["strategy"] == "Q")
        panel.set_yscale("log")
        panel.set_ylim(top=6 * top)  # base counts leave the panel
        panel.set_title(f"all {k}-way marginals")
        panel.set_xlabel("binary attributes d")
        panel.set_xticks(d)
        panel.grid(axis="y", color="#eeeeee")
    axes[0].set_ylabel("noise of one marginal (L1)\nat epsilon 1 or mu 1")
    figure.suptitle("Growth of the noise; dotted: the paper's bound, through the last point", y=1.0)
    figure.tight_layout()
    legend_below(figure, axes[0], height=0.0)
    save(figure, stem)
