"""A heat map: two attributes; darker is more, in digits where there is room, and crossed where the interval contains 0."""

import math
from typing import Any

from leastnoise._charts._picture import Axis, Picture, Spec
from leastnoise._charts._style import INK, MUTED, WIDTH, room, tips

MOST_DOWN, MOST_ACROSS, MOST_CELLS = 40, 100, 1200
_MOST_WRITTEN = 9  # cells across in which digits fit


def suits(picture: Picture) -> bool:
    """Two axes of names or cells, not too many of them to see."""
    if len(picture.axes) != 2 or any(axis.kind not in ("names", "cells", "times") for axis in picture.axes):
        return False
    return min(picture.shape) <= MOST_DOWN and max(picture.shape) <= MOST_ACROSS and math.prod(picture.shape) <= MOST_CELLS


def draw(picture: Picture) -> Spec:
    """Shaded cells; the longer axis runs across unless its digits fit down the page."""
    down, across = _sides(picture)
    written = across.size <= _MOST_WRITTEN
    rows = picture.rows()
    for row in rows:
        row["said"] = picture.number(row["answer"], row["high"] - row["answer"])
        row["zero"] = row["low"] <= 0 <= row["high"]
    names = {id(axis): f"k{place}" for place, axis in enumerate(picture.axes)}
    colour, most = colours(picture, rows)
    tip = tips(*((names[id(axis)], axis.name) for axis in picture.axes))
    shades: list[Spec] = [{"mark": {"type": "rect", "stroke": "white", "strokeWidth": 0.5}, "encoding": {"color": colour, "tooltip": tip}}]
    if written:
        dark = {"test": f"datum.answer > {0.62 * most} || datum.answer < {-0.62 * most}", "value": "white"}
        shades.append(
            {"mark": {"type": "text", "fontSize": 11}, "encoding": {"text": {"field": "said"}, "color": {"condition": dark, "value": INK}}}
        )
    shades.append(
        {
            "transform": [{"filter": "datum.zero"}],
            "mark": {"type": "point", "shape": "cross", "size": 14, "filled": True, "color": MUTED, "opacity": 0.8, "yOffset": 7 * written},
        }
    )
    return {
        "data": {"values": rows},
        "width": WIDTH - 30 - room(down.labels, 120),
        "height": {"step": 26 if written else 15},
        "encoding": {"y": side(down, names[id(down)], most=60), "x": side(across, names[id(across)], most=24)},
        "layer": shades,
    }


def colours(picture: Picture, rows: list[dict[str, Any]]) -> tuple[Spec, float]:
    """The encoding of answers as colours, and the largest of them: two colours if more are below 0 for certain than noise makes."""
    known = [row["answer"] for row in rows if not math.isnan(row["answer"])]
    most = max(map(abs, known), default=1.0) or 1.0
    below = sum(row["answer"] < 0 and not row["zero"] for row in rows)  # of a few cells in a hundred noise says so
    signed = min(known, default=0.0) < -0.1 * most and below > 0.05 * len(rows)
    scale: Spec = (
        {"scheme": "blueorange", "domainMid": 0, "reverse": True} if signed else {"scheme": "blues", "domain": [0, most], "clamp": True}
    )
    legend = {"orient": "top", "gradientLength": 180, "gradientThickness": 8, "titleOrient": "left", "tickCount": 4}
    return {"field": "answer", "type": "quantitative", "title": picture.unit, "scale": scale, "legend": legend}, most


def _sides(picture: Picture) -> tuple[Axis, Axis]:
    """Down and across: digits need few columns, everything else is wider than it is high."""
    short, long = sorted(picture.axes, key=lambda axis: axis.size)
    return (long, short) if short.size <= _MOST_WRITTEN and long.size <= MOST_DOWN else (short, long)


def side(axis: Axis, field: str, most: int) -> Spec:
    """An axis that names as many of its cells as there is room for."""
    encoding: Spec = {"field": field, "type": "nominal", "sort": None, "title": axis.name}
    if axis.size <= most:
        return {**encoding, "axis": {"labelOverlap": False, "labelAngle": 0 if most > 24 or _short(axis) else -45, "labelLimit": 120}}
    every = -(-axis.size // 12)
    return {**encoding, "axis": {"values": list(axis.labels[::every]), "labelOverlap": "greedy", "labelAngle": 0 if most > 24 else -45}}


def _short(axis: Axis) -> bool:
    return max(len(label) for label in axis.labels) * axis.size <= 56
