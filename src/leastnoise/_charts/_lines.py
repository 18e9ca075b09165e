"""Lines with bands: distribution functions and dates, one line a group where the groups are few."""

import math

import numpy as np

from leastnoise._charts._picture import Axis, Picture, Spec, short
from leastnoise._charts._style import HEIGHT, SERIES, WIDTH, amount, coloured, dashed, tips

MOST_GROUPS = 6
MOST_POINTS = 400


def suits(picture: Picture) -> bool:
    """One axis of prefix sums or dates, and at most one other with at most six names."""
    running = [axis for axis in picture.axes if axis.kind in ("up_to", "times") and axis.numbered and axis.size > 2]
    others = [axis for axis in picture.axes if axis not in running]
    return len(running) == 1 and len(others) <= 1 and all(axis.kind == "names" and axis.size <= MOST_GROUPS for axis in others)


def draw(picture: Picture) -> Spec:
    """A line through the answers, and around it the band of their intervals; many points are thinned out evenly."""
    place = next(number for number, axis in enumerate(picture.axes) if axis.kind in ("up_to", "times"))
    axis = picture.axes[place]
    groups = picture.axes[1 - place] if len(picture.axes) == 2 else None
    count = axis.size
    kept = np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(int))
    answer, low, high = (
        np.moveaxis(v, place, -1).reshape(-1, count)[:, kept].tolist() for v in (picture.answer, picture.low, picture.high)
    )
    names = ("",) if groups is None else groups.labels
    at = _positions(axis)
    rows = [
        {"x": at[k], "group": name, "answer": short(answer[g][i]), "low": short(low[g][i]), "high": short(high[g][i]), **alone}
        for g, name in enumerate(names)
        for i, (k, alone) in enumerate(zip(kept.tolist(), _alone(answer[g]), strict=True))
    ]
    x: Spec = {"field": "x", "type": "temporal" if axis.kind == "times" else "quantitative", "title": picture.heading(axis)}
    x |= {"axis": {"grid": False, "tickCount": 6}, "scale": {"zero": False, "nice": False}}
    if axis.kind == "times":
        x["scale"] = {"type": "utc", "nice": False}
    colour: Spec = {"color": {"value": SERIES[0]}}
    if groups is not None:
        colour = {"color": coloured(len(names), groups.name, names), "strokeDash": dashed(len(names), names)}
    tip = tips(("x", axis.name), *([("group", groups.name)] if groups is not None else []))
    return {
        "data": {"values": rows},
        "width": WIDTH - 50,
        "height": HEIGHT,
        "encoding": {"x": x, "color": colour["color"]},
        "layer": [
            {"mark": {"type": "area", "opacity": 0.25}, "encoding": {"y": amount(picture, "low"), "y2": {"field": "high"}}},
            {
                "mark": {"type": "line", "strokeWidth": 1.8, "point": False},
                "encoding": {"y": amount(picture), "tooltip": tip, **{name: value for name, value in colour.items() if name != "color"}},
            },
            *(_dots(picture, tip) if any("alone" in row for row in rows) else []),
        ],
    }


def _alone(answer: list[float]) -> list[Spec]:
    """A mark for every answer whose neighbours are left out, of which a line would show nothing."""
    gone = [True, *map(math.isnan, answer), True]
    return [{"alone": True} if before and after and not own else {} for before, own, after in zip(gone, gone[1:], gone[2:], strict=False)]


def _dots(picture: Picture, tip: list[Spec]) -> list[Spec]:
    """Answers that stand alone: a dot each, and its interval."""
    only: Spec = {"transform": [{"filter": "datum.alone"}]}
    return [
        {**only, "mark": {"type": "rule", "opacity": 0.5}, "encoding": {"y": amount(picture, "low"), "y2": {"field": "high"}}},
        {**only, "mark": {"type": "point", "filled": True, "size": 20}, "encoding": {"y": amount(picture), "tooltip": tip}},
    ]


def _positions(axis: Axis) -> list[object]:
    if axis.kind == "times" or axis.high is None:
        return list(axis.moments or axis.labels)
    return list(axis.high.tolist())
