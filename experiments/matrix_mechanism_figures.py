"""The figures of the matrix mechanism experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.common import Row, legend_below, pyplot, save

_LINES: dict[str, dict[str, Any]] = {
    "cells": {"color": "#777777", "marker": "x", "label": "cells (identity)"},
    "hierarchy": {"color": "#3b75af", "marker": "o", "label": "binary hierarchy"},
    "wavelet": {"color": "#c8682d", "marker": "s", "label": "Haar wavelet"},
    "ours for all ranges": {
        "color": "#519e3e",
        "marker": "v",
        "label": "ours, optimised for all ranges",
    },
    "ours": {"color": "#111111", "marker": "D", "linewidth": 2.4, "label": "ours"},
    "bound": {
        "color": "#8d3b8f",
        "linestyle": "--",
        "marker": None,
        "label": "singular value bound",
    },
}
_TITLES = {
    "pure": "pure, unit: Laplace of scale 1",
    "Gaussian": "Gaussian, unit: standard deviation 1",
}
_VERSIONS = {
    "non-negative": ("#c8682d", "non-negative, total not fixed"),
    "total fixed": ("#111111", "non-negative, total fixed"),
    "whole counts": ("#519e3e", "the same, as whole counts"),
}


def draw_against_sizes(rows: Sequence[Row], across: str, label: str, stem: Path) -> None:
    """Draw errors and the bound against a size, a panel per budget; both logarithmic."""
    figure, axes = pyplot().subplots(1, 2, figsize=(10.5, 4.2), sharex=True)
    for panel, budget in zip(axes, _TITLES, strict=True):
        matching = [row for row in rows if row["budget"] == budget]
        for name, style in _LINES.items():
            if name in matching[0]:
                panel.plot(
                    [row[across] for row in matching],
                    [row[name] for row in matching],
                    **{"linewidth": 1.4, "markersize": 5, **style},
                )
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        marks = sorted({row[across] for row in rows})
        panel.set_xticks(marks, [f"{mark}" for mark in marks])
        low, high = panel.get_ylim()
        ticks = [
            tick for tick in (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40) if low <= tick <= high
        ]
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.grid(axis="y", color="#eeeeee")
        panel.set_title(_TITLES[budget], fontsize=10)
        panel.set_xlabel(label)
    axes[0].set_ylabel("root mean square error of a range")
    legend_below(figure, axes[0])
    save(figure, stem)


def draw_non_negative(rows: Sequence[Row], stem: Path) -> None:
    """Draw the effect of non-negative inference on errors of cells and ranges.

    There is a panel for each of them and for each data set.
    """
    sets = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = pyplot().subplots(
        len(sets),
        2,
        figsize=(10.5, 3.1 * len(sets) + 0.4),
        sharex=True,
        sharey="col",
        squeeze=False,
    )
    for line, data in zip(axes, sets, strict=True):
        matching = [row for row in rows if row["data"] == data]
        for panel, query_kind in zip(line, ("cells", "ranges"), strict=True):
            for shift, (version, (color, label)) in enumerate(_VERSIONS.items()):
                heights = [
                    row[f"{version}, {query_kind}"] / row[f"unbiased, {query_kind}"]
                    for row in matching
                ]
                positions = [
                    number + 0.26 * (shift - 1) + 0.6 * (number // 4)
                    for number in range(len(matching))
                ]
                panel.bar(positions, heights, 0.24, color=color, label=label)
            panel.axhline(1, color="#8d3b8f", linestyle="--", linewidth=1.2)
            panel.set_title(f"{data}: {query_kind}", fontsize=10)
            names = [row["strategy"].replace("_", " ") for row in matching]
            panel.set_xticks(
                [number + 0.6 * (number // 4) for number in range(len(matching))],
                names,
                rotation=60,
                ha="right",
                fontsize=8,
            )
            panel.grid(axis="y", color="#eeeeee")
            panel.set_axisbelow(True)
            panel.set_ylim(0, 1.15 * max(1.05, panel.get_ylim()[1]))
            for group, epsilon in enumerate(dict.fromkeys(row["epsilon"] for row in matching)):
                above = {"transform": panel.get_xaxis_transform(), "ha": "center", "va": "top"}
                panel.text(
                    4.6 * group + 1.5,
                    0.99,
                    f"epsilon = {epsilon}",
                    fontsize=8,
                    color="#555555",
                    **above,
                )
        line[0].set_ylabel("error divided by the error\nof the unbiased estimate")
    figure.tight_layout()
    legend_below(figure, axes[0][0])
    save(figure, stem)
