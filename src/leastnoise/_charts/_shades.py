"""Two attributes as shades: heat maps of a few cells, and planes of very many cells along two numbers or dates; darker is more."""

import math

from leastnoise._charts._picture import RULE, WHISKER, WIDTH, Axis, Picture, Spec, room, tips

_HEAT_DOWN, _HEAT_ACROSS, _HEAT_CELLS = 40, 100, 1200
_PLANE_ALONG, _PLANE_CELLS = 128, 10_000
_MOST_WRITTEN = 9  # cells across in which digits fit


def suits_heat(picture: Picture) -> bool:
    """Two axes of names or cells, not too many of them to see."""
    if len(picture.axes) != 2 or any(axis.kind not in ("names", "cells", "times") for axis in picture.axes):
        return False
    return min(picture.answer.shape) <= _HEAT_DOWN and max(picture.answer.shape) <= _HEAT_ACROSS and picture.cells <= _HEAT_CELLS


def draw_heat(picture: Picture) -> Spec:
    """Shaded cells, in digits where there is room, and crossed where the interval contains 0."""
    small, large = sorted(picture.axes, key=lambda axis: axis.size)
    # digits need few columns; everything else is wider than it is high
    down, across = (large, small) if small.size <= _MOST_WRITTEN and large.size <= _HEAT_DOWN else (small, large)
    written = across.size <= _MOST_WRITTEN
    rows, colour, most, encoding = _shaded(picture, down, across, most_down=60)
    for row, answer, high in zip(rows, picture.answer.reshape(-1).tolist(), picture.high.reshape(-1).tolist(), strict=True):
        row["text"] = picture.number(answer, high - answer)  # with all digits, as in the table
    shades: list[Spec] = [
        {"mark": {"type": "rect", "stroke": "white", "strokeWidth": 0.5}, "encoding": {"color": colour, **encoding["tip"]}}
    ]
    if written:
        dark = {"test": f"datum.answer > {0.62 * most} || datum.answer < {-0.62 * most}", "value": "white"}
        text = {"text": {"field": "text"}, "color": {"condition": dark, "value": "#000000"}}
        shades.append({"mark": {"type": "text", "fontSize": 11}, "encoding": text})
    cross = {"type": "point", "shape": "cross", "size": 14, "filled": True, "color": WHISKER, "opacity": 0.8, "yOffset": 7 * written}
    shades.append({"transform": [{"filter": "datum.zero"}], "mark": cross})
    return {
        "data": {"values": rows},
        "width": WIDTH - 30 - room(down.labels, 120),
        "height": {"step": 26 if written else 15},
        "encoding": encoding["sides"],
        "layer": shades,
    }


def suits_plane(picture: Picture) -> bool:
    """Two axes on which cells have neighbours."""
    if len(picture.axes) != 2 or any(axis.kind not in ("cells", "times") for axis in picture.axes):
        return False
    return max(picture.answer.shape) <= _PLANE_ALONG and picture.cells <= _PLANE_CELLS


def draw_plane(picture: Picture) -> Spec:
    """Small shaded squares without lines between them, the longer axis across; grey where the interval contains 0."""
    down, across = sorted(picture.axes, key=lambda axis: axis.size)
    rows, colour, _, encoding = _shaded(picture, down, across, most_down=30)
    step = max(3, (WIDTH - 30 - room(down.labels, 120)) // across.size)  # whole pixels, or seams are seen between the squares
    grey = {"condition": {"test": "datum.zero", "value": RULE}}
    return {
        "data": {"values": rows},
        "width": {"step": step},
        "height": {"step": step},
        "layer": [{"mark": {"type": "rect"}}],
        "encoding": {**encoding["sides"], "color": {**grey, **colour}, **encoding["tip"]},
    }


def _shaded(picture: Picture, down: Axis, across: Axis, most_down: int) -> tuple[list[Spec], Spec, float, dict[str, Spec]]:
    """Return the records of the cells, the encoding of their colours, the largest answer, and the encodings of both sides and of tips.

    Two colours are used if over 5% of the cells are below 0 for certain: noise alone makes a few in a hundred look so.
    """
    rows = picture.rows()
    for row in rows:
        row["zero"] = row["low"] <= 0 <= row["high"]
    answers = [row["answer"] for row in rows if not math.isnan(row["answer"])]
    most = max(map(abs, answers), default=1.0) or 1.0
    below = sum(row["answer"] < 0 and not row["zero"] for row in rows)
    signed = min(answers, default=0.0) < -0.1 * most and below > 0.05 * len(rows)
    scale: Spec = {"scheme": "blues", "domain": [0, most], "clamp": True}
    if signed:
        scale = {"scheme": "blueorange", "domainMid": 0, "reverse": True}
    legend = {"orient": "top", "gradientLength": 180, "gradientThickness": 8, "titleLimit": WIDTH, "tickCount": 4}
    colour = {"field": "answer", "type": "quantitative", "title": picture.unit, "scale": scale, "legend": legend}
    fields = {id(axis): f"k{number}" for number, axis in enumerate(picture.axes)}
    sides = {"y": _side(down, fields[id(down)], most_down), "x": _side(across, fields[id(across)], 24)}
    tip = {"tooltip": tips(*((fields[id(axis)], axis.name) for axis in picture.axes))}
    return rows, colour, most, {"sides": sides, "tip": tip}


def _side(axis: Axis, field: str, most: int) -> Spec:
    """Return the encoding of a side, with as many labels as there is room for."""
    encoding: Spec = {"field": field, "type": "nominal", "sort": None, "title": axis.name}
    level = most > 24
    if axis.size <= most:
        level = level or max(map(len, axis.labels)) * axis.size <= 56
        return {**encoding, "axis": {"labelOverlap": False, "labelAngle": 0 if level else -45, "labelLimit": 120}}
    shown = list(axis.labels[:: -(-axis.size // 12)])
    return {**encoding, "axis": {"values": shown, "labelOverlap": "greedy", "labelAngle": 0 if level else -45}}
