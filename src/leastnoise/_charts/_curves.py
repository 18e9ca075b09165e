"""Lines with bands, steps for histograms, and small multiples.

Lines are for distributions and dates.
"""

import math

import numpy as np

from leastnoise._charts._bars import bar_layers
from leastnoise._charts._picture import (
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

_MOST_GROUPS, _MOST_POINTS, _MOST_STEPS = 6, 400, 3000
_MOST_MULTIPLES, _FEWEST_STEPS, _MOST_INNER_BARS, _MOST_INNER_STEPS = 12, 13, 12, 400


def suits_lines(picture: Picture) -> bool:
    """Return whether a picture suits lines.

    One axis of prefix sums or dates, and at most one other with at most six names.
    """
    running = [
        axis
        for axis in picture.axes
        if axis.kind in ("up_to", "times") and axis.is_numbered and axis.size > 2
    ]
    others = [axis for axis in picture.axes if axis not in running]
    return (
        len(running) == 1
        and len(others) <= 1
        and all(axis.kind == "names" and axis.size <= _MOST_GROUPS for axis in others)
    )


def draw_lines(picture: Picture) -> Spec:
    """Draw a line through the answers with a band of their intervals.

    Of many points, evenly spaced ones are drawn.
    """
    along = next(
        number for number, axis in enumerate(picture.axes) if axis.kind in ("up_to", "times")
    )
    axis = picture.axes[along]
    groups = picture.axes[1 - along] if len(picture.axes) == 2 else None
    points = np.unique(
        np.linspace(0, axis.size - 1, min(axis.size, _MOST_POINTS)).round().astype(int)
    ).tolist()
    answer, low, high = (
        np.moveaxis(values, along, -1).reshape(-1, axis.size)[:, points].tolist()
        for values in (picture.answer, picture.low, picture.high)
    )
    names = ("",) if groups is None else groups.labels
    hidden = groups_with_wide_bands(picture)
    drawn = [index for index, name in enumerate(names) if name not in hidden]
    at = (
        (axis.moments or axis.labels)
        if axis.kind == "times" or axis.high is None
        else axis.high.tolist()
    )
    rows: list[Spec] = []
    for g in drawn:
        gone = [True, *map(math.isnan, answer[g]), True]
        for i, point in enumerate(points):
            numbers = {
                "answer": round_to_six_digits(answer[g][i]),
                "low": round_to_six_digits(low[g][i]),
                "high": round_to_six_digits(high[g][i]),
            }
            alone = (
                {"alone": True} if gone[i] and gone[i + 2] and not gone[i + 1] else {}
            )  # both of its neighbours are left out
            rows.append({"x": at[point], "group": names[g], **numbers, **alone})
    x: Spec = {
        "field": "x",
        "type": "temporal" if axis.kind == "times" else "quantitative",
        "title": picture.axis_title(axis),
    }
    x |= {"axis": {"grid": False, "tickCount": 6}, "scale": {"zero": False, "nice": False}}
    if axis.kind == "times":
        x["scale"] = {"type": "utc", "nice": False}
    colour: Spec = {"value": SERIES[0]}
    dash: Spec = {}
    names = tuple(names[index] for index in drawn)
    if groups is not None:
        legend = {"columns": 3, "symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 3}
        colour = group_encoding(names, [SERIES[index] for index in drawn], groups.name) | {
            "legend": legend
        }
        dash = {
            "strokeDash": group_encoding(names, [DASHES[index] for index in drawn], groups.name)
            | {"legend": legend}
        }
    tip = tooltip_encoding(
        ("x", axis.name), *([("group", groups.name)] if groups is not None else [])
    )
    band = {"y": answer_encoding(picture, "low"), "y2": {"field": "high"}}
    layer: list[Spec] = [
        {"mark": {"type": "area", "opacity": 0.25}, "encoding": band},
        {
            "mark": {"type": "line", "strokeWidth": 1.8, "point": False},
            "encoding": {"y": answer_encoding(picture), "tooltip": tip, **dash},
        },
    ]
    if any(
        "alone" in row for row in rows
    ):  # a dot and its interval, as a line would show nothing of them
        only: Spec = {"transform": [{"filter": "datum.alone"}]}
        point = {"type": "point", "filled": True, "size": 20}
        layer.append({**only, "mark": {"type": "rule", "opacity": 0.5}, "encoding": band})
        layer.append(
            {**only, "mark": point, "encoding": {"y": answer_encoding(picture), "tooltip": tip}}
        )
    return {
        "data": {"values": rows},
        "width": WIDTH - 50,
        "height": HEIGHT,
        "encoding": {"x": x, "color": colour},
        "layer": layer,
    }


def groups_with_wide_bands(picture: Picture) -> tuple[str, ...]:
    """Return the groups whose bands would hide the other lines.

    Those that cover over half of the picture.
    """
    groups = next((axis for axis in picture.axes if axis.kind not in ("up_to", "times")), None)
    if groups is None or len(picture.axes) != 2 or np.isnan(picture.answer).all():
        return ()
    across = 1 - picture.axes.index(groups)
    widths = np.nan_to_num(picture.high - picture.low).mean(axis=across)
    # of alike groups none hides another
    wide = (widths > (np.nanmax(picture.answer) - np.nanmin(picture.answer)) / 2) & (
        widths > 4 * widths.min()
    )
    return tuple(name for name, is_wide in zip(groups.labels, wide, strict=True) if is_wide)


def suits_steps(picture: Picture) -> bool:
    """One axis of neighbouring numbers."""
    return (
        len(picture.axes) == 1
        and picture.axes[0].kind == "cells"
        and picture.axes[0].is_numbered
        and picture.axes[0].size <= _MOST_STEPS
    )


def draw_steps(picture: Picture) -> Spec:
    """Draw steps as wide as their cells with a band of the intervals."""
    axis = picture.axes[0]
    rows = step_records(axis, picture.answer.tolist(), picture.low.tolist(), picture.high.tolist())
    return {
        "data": {"values": rows},
        "width": WIDTH - 50,
        "height": HEIGHT,
        **step_layers(picture, axis, ticks=6),
    }


def step_records(
    axis: Axis, answer: list[float], low: list[float], high: list[float], **same: str
) -> list[Spec]:
    """Return the records of steps, with gaps where answers are missing.

    One record for each cell at its lower end, and one at the upper end of the last.
    """
    starts, ends = (
        ([] if axis.low is None else axis.low.tolist()),
        ([] if axis.high is None else axis.high.tolist()),
    )
    follows = [not math.isnan(value) for value in answer[1:]] + [False]
    rows = []
    for start, end, label, a, b, c, goes_on in zip(
        starts, ends, axis.labels, answer, low, high, follows, strict=True
    ):
        record = {
            "cell": label,
            "answer": round_to_six_digits(a),
            "low": round_to_six_digits(b),
            "high": round_to_six_digits(c),
            **same,
        }
        positions = ((start + end) / 2,) if math.isnan(a) else (start,) if goes_on else (start, end)
        rows += [{"x": position, **record} for position in positions]
    return rows


def step_layers(picture: Picture, axis: Axis, ticks: int) -> Spec:
    """Return the layers of one histogram: its band and its steps."""
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
    """Return whether a picture suits small multiples.

    Two axes: up to twelve groups of a histogram, or up to three of a few named cells.
    """
    if len(picture.axes) != 2:
        return False
    groups, inner = _groups_and_inner(picture)
    if _is_histogram(inner):
        return (
            groups.kind != "spans"
            and groups.size <= _MOST_MULTIPLES
            and inner.size <= _MOST_INNER_STEPS
        )
    return groups.size <= 3 and inner.size <= _MOST_INNER_BARS


def draw_multiples(picture: Picture) -> Spec:
    """Draw histograms as steps, or bars with intervals, by group.

    The shorter axis makes the groups.
    """
    groups, inner = _groups_and_inner(picture)
    steps = _is_histogram(inner)
    across = min(groups.size, 2 if groups.size <= 4 or not steps else 3)
    rows: list[Spec] = []
    arrays = [
        values.T if picture.axes[0] is inner else values
        for values in (picture.answer, picture.low, picture.high)
    ]
    for name, answer, low, high in zip(groups.labels, *arrays, strict=True):
        if steps:
            rows += step_records(inner, answer.tolist(), low.tolist(), high.tolist(), group=name)
        else:
            columns = zip(
                inner.labels,
                *(np.asarray(values).round(6).tolist() for values in (answer, low, high)),
                strict=True,
            )
            rows += [
                {"k0": label, "group": name, "answer": a, "low": b, "high": c}
                for label, a, b, c in columns
            ]
    # beside the small charts stand the labels of their axes: room for numbers on the left of each,
    # or for names on the left of the first
    if steps:
        small = {
            "width": (WIDTH - 45) // across - 14,
            "height": 90,
            **step_layers(picture, inner, ticks=3),
        }
    else:
        layer = bar_layers(
            picture, tooltip_encoding(("group", groups.name), ("k0", inner.name)), ticks=3
        )
        width = (WIDTH - estimate_width(inner.labels, 150)) // across - 24
        for part in layer:
            part["encoding"]["x"]["axis"]["titleLimit"] = width
        small = {"width": width, "height": {"step": 20}}
        small |= {"encoding": {"y": key_encoding(None, 150)}, "layer": layer}
    return {
        "data": {"values": rows},
        "facet": {"field": "group", "type": "nominal", "title": None, "sort": list(groups.labels)},
        "columns": across,
        "spacing": 14 if steps else 24,
        "spec": small,
    }


def _is_histogram(axis: Axis) -> bool:
    return axis.kind == "cells" and axis.is_numbered and axis.size >= _FEWEST_STEPS


def _groups_and_inner(picture: Picture) -> tuple[Axis, Axis]:
    """Return the axis of the groups and the axis inside each chart.

    The inner axis is that of numbers, or else the longer one.
    """
    first, second = picture.axes
    rank = [
        (axis.kind == "cells" and axis.size >= _FEWEST_STEPS, axis.size) for axis in (first, second)
    ]
    return (first, second) if rank[1] >= rank[0] else (second, first)
