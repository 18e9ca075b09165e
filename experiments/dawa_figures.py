"""The figure of the DAWA experiments: our error over that of the best other private mechanism, data set by data set."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.matrix_mechanism_figures import _pyplot, _save

Row = Mapping[str, Any]
_MARKS = {"identity": ("#777777", "x"), "uniform": ("#111111", "D"), "clustered": ("#3b75af", "o"), "large clustered": ("#c8682d", "s")}


def draw_ratios(rows: Sequence[Row], stem: Path, marks: Mapping[str, tuple[str, str]] = _MARKS) -> None:
    """One panel a budget; below 1 ours is better. Only the data as they are.

    Args:
        rows: of the experiment.
        stem: the files' path without its ending.
        marks: colour and marker of every workload.
    """
    plt = _pyplot()
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    first = {(row["data"], row["epsilon"], row["workload"]): row for row in reversed(rows)}
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = plt.subplots(1, len(epsilons), figsize=(2.2 + 3.2 * len(epsilons), 1.2 + 0.28 * len(names)), sharey=True, squeeze=False)
    for panel, epsilon in zip(axes[0], epsilons, strict=True):
        panel.axvline(1.0, color="#999999", linewidth=1)
        for workload, (colour, marker) in marks.items():
            # A run in progress has not come to all data sets yet.
            found = [first.get((name, epsilon, workload), {"ratio": math.nan})["ratio"] for name in names]
            panel.plot(found, range(len(names)), linestyle="none", color=colour, marker=marker, markersize=5, label=workload)
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
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False, bbox_to_anchor=(0.5, -0.08), fontsize=9)
    _save(plt, figure, stem)
