"""Draw lines with bands, histograms as steps, and one small chart per group.

Lines show distributions and developments over time.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from leastnoise._charts._bars import bar_layers
from leastnoise._charts._picture import (
    ANSWER_TITLE,
    DASHES,
    HEIGHT,
    SERIES,
    WIDTH,
    Axis,
    Picture,
    Spec,
    answer_encoding,
    estimate_width,
    group_encoding,
    key_encoding,
    round_to_six_digits,
    tooltip_encoding,
)
from leastnoise._trusted.check.arrays import FloatArray

_MOST_GROUPS = 6  # lines in one chart
# An axis over time begins at 0 if the smallest value is below this share of the largest value.
_FARTHEST_START = 0.5
_MOST_POINTS = 400  # points in one line
_MOST_STEPS = 3000  # steps of one histogram
_MOST_MULTIPLES = 12  # small charts of one table
_FEWEST_STEPS = 13  # cells of a histogram; fewer cells are drawn as bars
_MOST_INNER_BARS = 12  # bars in one small chart
_MOST_INNER_STEPS = 400  # steps in one small chart


def find_time_axis(picture: Picture) -> int | None:
    """Return the position of the axis of dates; None if there is none or several."""
    positions = [
        number
        for number, axis in enumerate(picture.axes)
        if axis.kind == "times" and axis.is_numbered and axis.size > 2
    ]
    return positions[0] if len(positions) == 1 else None


def has_axis_above_zero(picture: Picture) -> bool:
    """Return whether the answer axis of a chart over time begins above 0.

    The axis begins above 0 if the answers of all dates are far from 0. An axis from 0 would hide
    the changes over time.
    """
    if find_time_axis(picture) is None or np.isnan(picture.answer).all():
        return False
    lowest = float(np.nanmin(picture.low))
    highest = float(np.nanmax(picture.high))
    return lowest > _FARTHEST_START * highest > 0


def list_line_scale_keys(picture: Picture) -> list[str]:
    """Return the key of the text on an axis that begins above 0, if it does."""
    return ["axis_cut"] if has_axis_above_zero(picture) else []


def suits_lines(picture: Picture) -> bool:
    """Return whether a table can be drawn as lines.

    The table must have one key of prefix sums or dates, and at most one other key with at most six
    names.
    """
    running_axes = [
        axis
        for axis in picture.axes
        if axis.kind in ("up_to", "times") and axis.is_numbered and axis.size > 2
    ]
    other_axes = [axis for axis in picture.axes if axis not in running_axes]
    return (
        len(running_axes) == 1
        and len(other_axes) <= 1
        and all(axis.kind == "names" and axis.size <= _MOST_GROUPS for axis in other_axes)
    )


def draw_lines(picture: Picture) -> Spec:
    """Draw lines through the answers, with bands for their intervals.

    If there are many points, only evenly spaced points are drawn.
    """
    position = next(
        number for number, axis in enumerate(picture.axes) if axis.kind in ("up_to", "times")
    )
    axis = picture.axes[position]
    if len(picture.axes) == 2:
        groups = picture.axes[1 - position]
    else:
        groups = None
    names = ("",) if groups is None else groups.labels
    hidden = groups_with_wide_bands(picture)
    drawn_groups = [index for index, name in enumerate(names) if name not in hidden]
    rows = line_records(picture, position, names, drawn_groups)
    layer, encoding = line_layers(
        picture, axis, ticks=5, may_start_above_zero=has_axis_above_zero(picture)
    )
    fields = [("x", axis.name)]
    if groups is not None:
        fields.append(("group", groups.name))
        encoding["color"] = group_legend(groups.labels, drawn_groups, groups.name)
        dashes = group_legend(groups.labels, drawn_groups, groups.name, DASHES)
        layer[1]["encoding"]["strokeDash"] = dashes
    tooltip = tooltip_encoding(*fields)
    layer[1]["encoding"]["tooltip"] = tooltip
    layer += isolated_layers(rows, layer, tooltip)
    return {
        "data": {"values": rows},
        "width": WIDTH - 50,
        "height": HEIGHT,
        "encoding": encoding,
        "layer": layer,
    }


def group_legend(
    names: Sequence[str],
    drawn_groups: Sequence[int],
    title: str,
    marks: Sequence[Any] = SERIES,
) -> Spec:
    """Return the Vega-Lite encoding of lines by group, with a legend."""
    legend = {"columns": 3, "symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 3}
    drawn_names = [names[index] for index in drawn_groups]
    drawn_marks = [marks[index] for index in drawn_groups]
    return {**group_encoding(drawn_names, drawn_marks, title), "legend": legend}


def line_layers(
    picture: Picture, axis: Axis, ticks: int, *, may_start_above_zero: bool
) -> tuple[list[Spec], Spec]:
    """Return the Vega-Lite layers of bands and lines, and their common encoding.

    Args:
        picture: the table.
        axis: the axis of prefix sums or dates.
        ticks: the approximate number of ticks on the axis of answers.
        may_start_above_zero: whether the axis of answers may start above 0.
    """
    x: Spec = {
        "field": "x",
        "type": "temporal" if axis.kind == "times" else "quantitative",
        "title": picture.axis_title(axis),
    }
    x |= {"axis": {"grid": False, "tickCount": 6}, "scale": {"zero": False, "nice": False}}
    if axis.kind == "times":
        x["scale"] = {"type": "utc", "nice": False}
    low = answer_encoding(picture, "low", ticks)
    answer = answer_encoding(picture, ticks=ticks)
    if may_start_above_zero:
        low["scale"] = {"zero": False}
        answer["scale"] = {"zero": False}
    layer: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.25},
            "encoding": {"y": low, "y2": {"field": "high"}},
        },
        {"mark": {"type": "line", "strokeWidth": 1.8, "point": False}, "encoding": {"y": answer}},
    ]
    return layer, {"x": x, "color": {"value": SERIES[0]}}


def isolated_layers(
    records: Sequence[Spec], band_and_line: Sequence[Spec], tooltip: list[Spec]
) -> list[Spec]:
    """Return Vega-Lite layers that show points without neighbours as dots.

    A line does not show such points. If there are no such points, no layers are returned, because
    Vega warns of layers without rows.
    """
    if not any("alone" in row for row in records):
        return []
    isolated_filter: Spec = {"transform": [{"filter": "datum.alone"}]}
    band = band_and_line[0]["encoding"]
    answer = {"y": band_and_line[1]["encoding"]["y"], "tooltip": tooltip}
    point = {"type": "point", "filled": True, "size": 20}
    return [
        {**isolated_filter, "mark": {"type": "rule", "opacity": 0.5}, "encoding": band},
        {**isolated_filter, "mark": point, "encoding": answer},
    ]


def line_records(
    picture: Picture, position: int, names: Sequence[str], drawn_groups: Sequence[int]
) -> list[Spec]:
    """Return a Vega-Lite record for each point of the drawn lines.

    Args:
        picture: the table.
        position: the position of the axis of prefix sums or dates.
        names: the names of the groups; a single empty name if there are no groups.
        drawn_groups: the positions of the groups whose lines are drawn.
    """
    axis = picture.axes[position]
    spaced = np.linspace(0, axis.size - 1, min(axis.size, _MOST_POINTS))
    points = np.unique(spaced.round().astype(int)).tolist()
    answer, low, high = (
        np.moveaxis(values, position, -1).reshape(-1, axis.size)[:, points].tolist()
        for values in (picture.answer, picture.low, picture.high)
    )
    x_values: Sequence[Any] = axis.moments or axis.labels
    if axis.kind != "times" and axis.high is not None:
        x_values = axis.high.tolist()
    rows: list[Spec] = []
    for group in drawn_groups:
        is_missing = [True, *map(math.isnan, answer[group]), True]
        for index, point in enumerate(points):
            row = {
                "x": x_values[point],
                "group": names[group],
                "answer": round_to_six_digits(answer[group][index]),
                "low": round_to_six_digits(low[group][index]),
                "high": round_to_six_digits(high[group][index]),
            }
            has_no_neighbours = is_missing[index] and is_missing[index + 2]
            if has_no_neighbours and not is_missing[index + 1]:
                row["alone"] = True
            rows.append(row)
    return rows


def groups_with_wide_bands(picture: Picture) -> tuple[str, ...]:
    """Return the groups whose bands would hide the lines of other groups.

    Such bands cover over half of the picture.
    """
    groups = next((axis for axis in picture.axes if axis.kind not in ("up_to", "times")), None)
    if groups is None or len(picture.axes) != 2 or np.isnan(picture.answer).all():
        return ()
    other_axis = 1 - picture.axes.index(groups)
    widths = np.nan_to_num(picture.high - picture.low).mean(axis=other_axis)
    # A band that is at most four times as wide as the narrowest band hides no line.
    are_wide = (widths > (np.nanmax(picture.answer) - np.nanmin(picture.answer)) / 2) & (
        widths > 4 * widths.min()
    )
    return tuple(name for name, is_wide in zip(groups.labels, are_wide, strict=True) if is_wide)


def suits_steps(picture: Picture) -> bool:
    """Return whether a table can be drawn as a histogram."""
    return (
        len(picture.axes) == 1
        and picture.axes[0].kind == "cells"
        and picture.axes[0].is_numbered
        and picture.axes[0].size <= _MOST_STEPS
    )


def draw_steps(picture: Picture) -> Spec:
    """Draw a histogram as steps, with a band for the intervals."""
    axis = picture.axes[0]
    rows = step_records(axis, picture.answer.tolist(), picture.low.tolist(), picture.high.tolist())
    return {
        "data": {"values": rows},
        "width": WIDTH - 50,
        "height": HEIGHT,
        **step_layers(picture, axis, ticks=6),
    }


def step_records(
    axis: Axis, answer: list[float], low: list[float], high: list[float], **common_fields: str
) -> list[Spec]:
    """Return the Vega-Lite records of steps, with gaps at missing answers.

    Each cell has a record at its lower end. The last cell has a second record at its upper end.
    """
    if axis.low is None:
        starts = []
    else:
        starts = axis.low.tolist()
    if axis.high is None:
        ends = []
    else:
        ends = axis.high.tolist()
    has_next = [not math.isnan(value) for value in answer[1:]] + [False]
    rows = []
    for start, end, label, a, b, c, is_continued in zip(
        starts, ends, axis.labels, answer, low, high, has_next, strict=True
    ):
        record = {
            "cell": label,
            "answer": round_to_six_digits(a),
            "low": round_to_six_digits(b),
            "high": round_to_six_digits(c),
            **common_fields,
        }
        if math.isnan(a):
            positions = [(start + end) / 2]
        elif is_continued:
            positions = [start]
        else:
            positions = [start, end]
        rows += [{"x": position, **record} for position in positions]
    return rows


def step_layers(picture: Picture, axis: Axis, ticks: int) -> Spec:
    """Return the Vega-Lite layers of a histogram: band and steps."""
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": picture.axis_title(axis),
        "axis": {"grid": False, "tickCount": ticks},
    }
    x["scale"] = {"zero": False, "nice": False}
    steps = {"interpolate": "step-after", "color": SERIES[0]}
    return {
        "encoding": {"x": x},
        "layer": [
            {
                "mark": {"type": "area", **steps, "opacity": 0.3},
                "encoding": {"y": answer_encoding(picture, "low"), "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", **steps, "strokeWidth": 1.5},
                "encoding": {
                    "y": answer_encoding(picture),
                    "tooltip": tooltip_encoding(("cell", axis.name)),
                },
            },
        ],
    }


def suits_multiples(picture: Picture) -> bool:
    """Return whether a table can be drawn as small histograms or bars by group.

    The table must have two keys: up to twelve groups of a histogram, or up to three groups of a few
    cells.
    """
    if len(picture.axes) != 2:
        return False
    groups, inner = _group_and_inner_axes(picture)
    if _is_histogram(inner):
        return (
            groups.kind != "spans"
            and groups.size <= _MOST_MULTIPLES
            and inner.size <= _MOST_INNER_STEPS
        )
    return groups.size <= 3 and inner.size <= _MOST_INNER_BARS


def draw_multiples(picture: Picture) -> Spec:
    """Draw a small histogram, or small bars, for each group.

    The groups are the keys of the shorter axis.
    """
    groups, inner = _group_and_inner_axes(picture)
    is_histogram = _is_histogram(inner)
    most_columns = 2
    if is_histogram and groups.size > 4:
        most_columns = 3
    columns_of_charts = min(groups.size, most_columns)
    rows: list[Spec] = []
    arrays = [picture.answer, picture.low, picture.high]
    if picture.axes[0] is inner:
        arrays = [values.T for values in arrays]
    order = inner.order_by(np.nansum(arrays[0], axis=0))
    for name, answer, low, high in zip(groups.labels, *arrays, strict=True):
        if is_histogram:
            rows += step_records(inner, answer.tolist(), low.tolist(), high.tolist(), group=name)
        else:
            rows += _bar_records(inner, order, name, (answer, low, high))
    # The labels of the axes need room. They are numbers on the left of each small chart, or names
    # on the left of the first chart.
    if is_histogram:
        spacing = 14
        small_chart = {
            "width": (WIDTH - 45) // columns_of_charts - 14,
            "height": 90,
            **step_layers(picture, inner, ticks=3),
        }
    else:
        spacing = 24
        layer = bar_layers(
            picture, tooltip_encoding(("group", groups.name), ("k0", inner.name)), ticks=3
        )
        width = (WIDTH - estimate_width(inner.labels, 150)) // columns_of_charts - 24
        # The title of the answers is above all small charts, where it has room.
        for part in layer:
            part["encoding"]["x"]["title"] = None
        small_chart = {"width": width, "height": {"step": 20}}
        small_chart |= {"encoding": {"y": key_encoding(inner.name, 150)}, "layer": layer}
    spec: Spec = {}
    if not is_histogram:
        spec["title"] = {**ANSWER_TITLE, "text": picture.unit}
    return spec | {
        "data": {"values": rows},
        "facet": {
            "field": "group",
            "type": "nominal",
            "title": groups.name,
            "sort": list(groups.labels),
        },
        "columns": columns_of_charts,
        "spacing": spacing,
        "spec": small_chart,
    }


def _bar_records(
    axis: Axis, order: Sequence[int], group: str, values: Sequence[FloatArray]
) -> list[Spec]:
    """Return the Vega-Lite records of a group's bars, in a given order."""
    answers, lows, highs = (np.asarray(array).round(6).tolist() for array in values)
    return [
        {
            "k0": axis.labels[key],
            "group": group,
            "answer": answers[key],
            "low": lows[key],
            "high": highs[key],
        }
        for key in order
    ]


def _is_histogram(axis: Axis) -> bool:
    """Return whether an axis has enough numbered cells for a histogram."""
    return axis.kind == "cells" and axis.is_numbered and axis.size >= _FEWEST_STEPS


def _group_and_inner_axes(picture: Picture) -> tuple[Axis, Axis]:
    """Return the axis of the groups, and the axis inside each small chart.

    The inner axis is the axis of numbers or, if there is none, the longer axis.
    """
    first, second = picture.axes
    rank = [
        (axis.kind == "cells" and axis.size >= _FEWEST_STEPS, axis.size) for axis in (first, second)
    ]
    if rank[1] >= rank[0]:
        return (first, second)
    return (second, first)
