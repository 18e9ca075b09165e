"""Steps: a histogram of many neighbouring cells, each as wide as it is."""

import math
from typing import Any

from leastnoise._charts._picture import Axis, Picture, Spec, short
from leastnoise._charts._style import HEIGHT, SERIES, WIDTH, amount, large, tips

MOST = 3000


def suits(picture: Picture) -> bool:
    """One axis of neighbouring numbers."""
    return len(picture.axes) == 1 and picture.axes[0].kind == "cells" and picture.axes[0].numbered and picture.axes[0].size <= MOST


def draw(picture: Picture) -> Spec:
    """A line of steps, and around it the band of the intervals."""
    axis = picture.axes[0]
    rows = stepped(axis, picture.answer.tolist(), picture.low.tolist(), picture.high.tolist())
    return {"data": {"values": rows}, "width": WIDTH - 50, "height": HEIGHT, **layers(picture, axis, ticks=6)}


def stepped(axis: Axis, answer: list[float], low: list[float], high: list[float], **same: str) -> list[Spec]:
    """One record a cell at its lower end, and one more at its upper end where no answer follows; left out cells break the line."""
    starts, ends = ([] if axis.low is None else axis.low.tolist()), ([] if axis.high is None else axis.high.tolist())
    follows = [not math.isnan(value) for value in answer[1:]] + [False]
    rows = []
    for start, end, label, a, b, c, goes_on in zip(starts, ends, axis.labels, answer, low, high, follows, strict=True):
        record = {"cell": label, "answer": short(a), "low": short(b), "high": short(c), **same}
        places = ((start + end) / 2,) if math.isnan(a) else (start,) if goes_on else (start, end)
        rows += [{"x": place, **record} for place in places]
    return rows


def layers(picture: Picture, axis: Axis, ticks: int) -> Spec:
    """The band and the steps of one histogram."""
    x: dict[str, Any] = {"field": "x", "type": "quantitative", "title": picture.heading(axis), "axis": {"grid": False, "tickCount": ticks}}
    if axis.low is not None and axis.high is not None:
        x["axis"] |= large(float(axis.low[0]), float(axis.high[-1]))
    x["scale"] = {"zero": False, "nice": False}
    return {
        "encoding": {"x": x},
        "layer": [
            {
                "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.3, "color": SERIES[0]},
                "encoding": {"y": amount(picture, "low"), "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5, "color": SERIES[0]},
                "encoding": {"y": amount(picture), "tooltip": tips(("cell", axis.name))},
            },
        ],
    }
