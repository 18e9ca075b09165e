"""Two attributes as shades; darker is more.

From a few cells to very many along two numbers or dates.
"""

import math

from leastnoise._charts._picture import (
    RULE,
    WIDTH,
    Axis,
    Picture,
    Spec,
    estimate_width,
    tooltip_encoding,
)

_MOST_NAMED_ROWS, _MOST_NAMED_COLUMNS, _MOST_NAMED_CELLS = (
    40,
    100,
    1200,
)  # cells where an axis has names, which must be read
_MOST_SIDE_CELLS, _MOST_CELLS = 128, 10_000  # where all cells have neighbours
_MOST_COLUMNS_WITH_DIGITS = 9  # cells across in which digits fit


def suits_heat(picture: Picture) -> bool:
    """Two axes of names, cells or dates, with few enough cells to see."""
    if len(picture.axes) != 2 or any(
        axis.kind not in ("names", "cells", "times") for axis in picture.axes
    ):
        return False
    small, large = sorted(picture.answer.shape)
    if any(axis.kind == "names" for axis in picture.axes):
        return (
            small <= _MOST_NAMED_ROWS
            and large <= _MOST_NAMED_COLUMNS
            and picture.cells <= _MOST_NAMED_CELLS
        )
    return large <= _MOST_SIDE_CELLS and picture.cells <= _MOST_CELLS


def draw_heat(picture: Picture) -> Spec:
    """Draw shaded cells, with digits if there is room.

    Grey if the interval contains 0.
    """
    small, large = sorted(picture.axes, key=lambda axis: axis.size)
    # digits need few columns; everything else is wider than it is high
    down, across = (
        (large, small)
        if small.size <= _MOST_COLUMNS_WITH_DIGITS and large.size <= _MOST_NAMED_ROWS
        else (small, large)
    )
    rows, colour, most, encoding = _shade_cells(picture, down, across)
    grey = {"condition": {"test": "datum.zero", "value": RULE}}
    layer: list[Spec] = [
        {"mark": {"type": "rect"}, "encoding": {"color": {**grey, **colour}, **encoding["tip"]}}
    ]
    width = max(
        3, (WIDTH - 30 - estimate_width(down.labels, 120)) // across.size
    )  # whole pixels, or seams are seen between the cells
    height = 15 if down.size <= _MOST_NAMED_ROWS else width
    if across.size <= _MOST_COLUMNS_WITH_DIGITS:
        height = 26
        for row, answer, high in zip(
            rows,
            picture.answer.reshape(-1).tolist(),
            picture.high.reshape(-1).tolist(),
            strict=True,
        ):
            row["text"] = picture.format_number(
                answer, high - answer
            )  # with all digits, as in the table
        dark = {
            "test": f"!datum.zero && (datum.answer > {0.62 * most} || datum.answer < "
            f"{-0.62 * most})",
            "value": "white",
        }
        text = {"text": {"field": "text"}, "color": {"condition": dark, "value": "#000000"}}
        layer.append({"mark": {"type": "text", "fontSize": 11}, "encoding": text})
    sizes = {"width": {"step": width}, "height": {"step": height}}
    return {"data": {"values": rows}, **sizes, "encoding": encoding["sides"], "layer": layer}


def _shade_cells(
    picture: Picture, down: Axis, across: Axis
) -> tuple[list[Spec], Spec, float, dict[str, Spec]]:
    """Return the records and encodings of a shaded chart.

    Records of the cells, encodings of colours, sides and tooltips, and the largest answer.

    Two colours are used if over 5% of the cells are below 0 for certain: noise alone makes a few in
    a hundred look so.
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
    legend = {
        "orient": "top",
        "gradientLength": 180,
        "gradientThickness": 8,
        "titleLimit": WIDTH,
        "tickCount": 4,
    }
    colour = {
        "field": "answer",
        "type": "quantitative",
        "title": picture.unit,
        "scale": scale,
        "legend": legend,
    }
    fields = {id(axis): f"k{number}" for number, axis in enumerate(picture.axes)}
    sides = {
        "y": _side_encoding(down, fields[id(down)], _MOST_NAMED_ROWS),
        "x": _side_encoding(across, fields[id(across)], 24),
    }
    tip = {"tooltip": tooltip_encoding(*((fields[id(axis)], axis.name) for axis in picture.axes))}
    return rows, colour, most, {"sides": sides, "tip": tip}


def _side_encoding(axis: Axis, field: str, most: int) -> Spec:
    """Return the encoding of a side, with as many labels as there is room for."""
    encoding: Spec = {"field": field, "type": "nominal", "sort": None, "title": axis.name}
    level = most > 24
    if axis.size <= most:
        level = level or max(map(len, axis.labels)) * axis.size <= 56
        return {
            **encoding,
            "axis": {"labelOverlap": False, "labelAngle": 0 if level else -45, "labelLimit": 120},
        }
    shown = list(axis.labels[:: -(-axis.size // 12)])
    return {
        **encoding,
        "axis": {"values": shown, "labelOverlap": "greedy", "labelAngle": 0 if level else -45},
    }
