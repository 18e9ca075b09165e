"""Draw tables of two attributes as shaded cells; darker means more.

A table may have a few cells for names, or very many for numbers or dates.
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

# cells where an axis has names, which must be read
_MOST_NAMED_ROWS = 40
_MOST_NAMED_COLUMNS = 100
_MOST_NAMED_CELLS = 1200
# where all cells have neighbours
_MOST_SIDE_CELLS = 128
_MOST_CELLS = 10_000
_MOST_COLUMNS_WITH_DIGITS = 9  # columns of cells that are wide enough for digits


def suits_heat(picture: Picture) -> bool:
    """Return whether a table can be drawn as shaded cells."""
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
    """Draw a table of two attributes as shaded cells, with digits if they fit.

    A cell is grey if its interval contains 0.
    """
    small, large = sorted(picture.axes, key=lambda axis: axis.size)
    # Digits fit only in few columns. All other charts are wider than high.
    if small.size <= _MOST_COLUMNS_WITH_DIGITS and large.size <= _MOST_NAMED_ROWS:
        down = large
        across = small
    else:
        down = small
        across = large
    rows, colour, largest_answer, encoding = _shade_cells(picture, down, across)
    grey = {"condition": {"test": "datum.zero", "value": RULE}}
    layer: list[Spec] = [
        {"mark": {"type": "rect"}, "encoding": {"color": {**grey, **colour}, **encoding["tip"]}}
    ]
    # whole pixels, to avoid visible seams between the cells
    width = max(3, (WIDTH - 30 - estimate_width(down.labels, 120)) // across.size)
    if down.size <= _MOST_NAMED_ROWS:
        height = 15
    else:
        height = width
    if across.size <= _MOST_COLUMNS_WITH_DIGITS:
        height = 26
        for row, answer, high in zip(
            rows,
            picture.answer.reshape(-1).tolist(),
            picture.high.reshape(-1).tolist(),
            strict=True,
        ):
            # with all digits, as in the table
            row["text"] = picture.format_number(answer, high - answer)
        dark = {
            "test": f"!datum.zero && (datum.answer > {0.62 * largest_answer} || datum.answer < "
            f"{-0.62 * largest_answer})",
            "value": "white",
        }
        text = {"text": {"field": "text"}, "color": {"condition": dark, "value": "#000000"}}
        layer.append({"mark": {"type": "text", "fontSize": 11}, "encoding": text})
    sizes = {"width": {"step": width}, "height": {"step": height}}
    return {"data": {"values": rows}, **sizes, "encoding": encoding["sides"], "layer": layer}


def _shade_cells(
    picture: Picture, down: Axis, across: Axis
) -> tuple[list[Spec], Spec, float, dict[str, Spec]]:
    """Return the parts of a Vega-Lite specification for shaded cells.

    Returns:
        The records of the cells; the encoding of colours; the largest absolute answer; and the
        encodings of axes and tooltips.

    Two colours are used if over 5% of the cells are certainly below 0. Up to a few cells in a
    hundred can appear certainly below 0 only because of noise.
    """
    rows = picture.rows()
    for row in rows:
        row["zero"] = row["low"] <= 0 <= row["high"]
    answers = [row["answer"] for row in rows if not math.isnan(row["answer"])]
    largest_answer = max(map(abs, answers), default=1.0) or 1.0
    certainly_negative = sum(row["answer"] < 0 and not row["zero"] for row in rows)
    has_two_colours = min(
        answers, default=0.0
    ) < -0.1 * largest_answer and certainly_negative > 0.05 * len(rows)
    scale: Spec = {"scheme": "blues", "domain": [0, largest_answer], "clamp": True}
    if has_two_colours:
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
        "y": _axis_encoding(down, fields[id(down)], _MOST_NAMED_ROWS),
        "x": _axis_encoding(across, fields[id(across)], 24),
    }
    tooltip = {
        "tooltip": tooltip_encoding(*((fields[id(axis)], axis.name) for axis in picture.axes))
    }
    return rows, colour, largest_answer, {"sides": sides, "tip": tooltip}


def _axis_encoding(axis: Axis, field: str, most_labels: int) -> Spec:
    """Return the Vega-Lite encoding of an axis, with as many labels as fit."""
    encoding: Spec = {"field": field, "type": "nominal", "sort": None, "title": axis.name}
    is_level = most_labels > 24
    if axis.size <= most_labels:
        is_level = is_level or max(map(len, axis.labels)) * axis.size <= 56
        options: Spec = {"labelOverlap": False, "labelLimit": 120}
    else:
        shown_labels = list(axis.labels[:: -(-axis.size // 12)])
        options = {"values": shown_labels, "labelOverlap": "greedy"}
    options["labelAngle"] = -45
    if is_level:
        options["labelAngle"] = 0
    return {**encoding, "axis": options}
