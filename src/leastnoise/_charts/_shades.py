"""Draw tables of two attributes as shaded cells; darker means more.

A table may have few cells with names, or very many cells of numbers or dates.
"""

import math
from dataclasses import dataclass

from leastnoise._charts._picture import (
    RULE,
    WIDTH,
    Axis,
    Picture,
    Spec,
    estimate_width,
    tooltip_encoding,
)

# The limits below are chosen by eye, so that texts are legible in a picture of the usual width.
# Cells where an axis has names, which must be read:
_MOST_NAMED_ROWS = 40
_MOST_NAMED_COLUMNS = 100
_MOST_NAMED_CELLS = 1200
# Cells where no axis has names:
_MOST_SIDE_CELLS = 128
_MOST_CELLS = 10_000
_MOST_COLUMNS_WITH_DIGITS = 9  # columns of cells that are wide enough for digits
_MOST_COLUMN_LABELS = 24  # slanted labels of columns, each under its column
_MOST_LABEL_CHARACTERS = 56  # characters in all labels of columns that are not slanted
_SHOWN_LABELS = 12  # labels of an axis with too many cells for a label each
_LEAST_DARK_SHARE = 0.62  # share of the largest answer from which digits are white
# Two colours are used if an answer is below 0 by the first share of the largest absolute answer,
# and the second share of the cells is certainly below 0. Noise makes a few in a hundred appear so.
_LEAST_NEGATIVE_SHARE = 0.1
_LEAST_NEGATIVE_CELLS = 0.05


@dataclass(frozen=True, slots=True)
class _ShadedCells:
    """The parts of a Vega-Lite specification for shaded cells.

    Attributes:
        records: the numbers and keys of each cell.
        colour: the encoding of colours.
        largest_answer: the largest absolute answer.
        axes: the encodings of both axes.
        tooltip: the encoding of tooltips.
    """

    records: list[Spec]
    colour: Spec
    largest_answer: float
    axes: Spec
    tooltip: list[Spec]


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
    cells = _shade_cells(picture, down, across)
    grey = {"condition": {"test": "datum.zero", "value": RULE}}
    layer: list[Spec] = [
        {
            "mark": {"type": "rect"},
            "encoding": {"color": {**grey, **cells.colour}, "tooltip": cells.tooltip},
        }
    ]
    # Whole pixels, to avoid visible seams between the cells.
    width = max(3, (WIDTH - 30 - estimate_width(down.labels, 120)) // across.size)
    if down.size <= _MOST_NAMED_ROWS:
        height = 15
    else:
        height = width
    if across.size <= _MOST_COLUMNS_WITH_DIGITS:
        height = 26
        for record, answer, high in zip(
            cells.records,
            picture.answer.reshape(-1).tolist(),
            picture.high.reshape(-1).tolist(),
            strict=True,
        ):
            # With all digits, as in the table.
            record["text"] = picture.format_number(answer, high - answer)
        dark_answer = _LEAST_DARK_SHARE * cells.largest_answer
        dark = {
            "test": f"!datum.zero && (datum.answer > {dark_answer} || datum.answer < "
            f"{-dark_answer})",
            "value": "white",
        }
        text = {"text": {"field": "text"}, "color": {"condition": dark, "value": "#000000"}}
        layer.append({"mark": {"type": "text", "fontSize": 11}, "encoding": text})
    sizes = {"width": {"step": width}, "height": {"step": height}}
    return {"data": {"values": cells.records}, **sizes, "encoding": cells.axes, "layer": layer}


def _shade_cells(picture: Picture, down: Axis, across: Axis) -> _ShadedCells:
    """Return the shaded cells of a table, with colours, axes and tooltips."""
    records = picture.rows()
    for record in records:
        record["zero"] = record["low"] <= 0 <= record["high"]
    answers = [record["answer"] for record in records if not math.isnan(record["answer"])]
    largest_answer = max(map(abs, answers), default=1.0) or 1.0
    scale: Spec = {"scheme": "blues", "domain": [0, largest_answer], "clamp": True}
    if _has_negative_cells(records, min(answers, default=0.0), largest_answer):
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
    row_labels = _axis_encoding(down, fields[id(down)], _MOST_NAMED_ROWS, may_slant=False)
    column_labels = _axis_encoding(across, fields[id(across)], _MOST_COLUMN_LABELS, may_slant=True)
    return _ShadedCells(
        records=records,
        colour=colour,
        largest_answer=largest_answer,
        axes={"y": row_labels, "x": column_labels},
        tooltip=tooltip_encoding(*((fields[id(axis)], axis.name) for axis in picture.axes)),
    )


def _has_negative_cells(records: list[Spec], least_answer: float, largest_answer: float) -> bool:
    """Return whether more cells are certainly negative than noise could explain."""
    if least_answer >= -_LEAST_NEGATIVE_SHARE * largest_answer:
        return False
    negative = sum(record["answer"] < 0 and not record["zero"] for record in records)
    return negative > _LEAST_NEGATIVE_CELLS * len(records)


def _axis_encoding(axis: Axis, field: str, most_labels: int, *, may_slant: bool) -> Spec:
    """Return the Vega-Lite encoding of an axis, with as many labels as fit."""
    is_slanted = may_slant
    if axis.size <= most_labels:
        if max(map(len, axis.labels)) * axis.size <= _MOST_LABEL_CHARACTERS:
            is_slanted = False
        options: Spec = {"labelOverlap": False, "labelLimit": 120}
    else:
        shown_labels = list(axis.labels[:: -(-axis.size // _SHOWN_LABELS)])
        options = {"values": shown_labels, "labelOverlap": "greedy"}
    options["labelAngle"] = 0
    if is_slanted:
        options["labelAngle"] = -45
    return {"field": field, "type": "nominal", "sort": None, "title": axis.name, "axis": options}
