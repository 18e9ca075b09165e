"""Draw charts with one row for each key: bars and dots with intervals.

These charts show tables, largest cells, expected errors, means and quantiles.
"""

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np

from leastnoise._charts._picture import (
    BAR,
    MUTED,
    SERIES,
    WHISKER,
    WIDTH,
    DotPlot,
    DotRow,
    Picture,
    Spec,
    answer_encoding,
    complete_spec,
    estimate_width,
    find_largest,
    group_encoding,
    key_encoding,
    round_to_six_digits,
    tooltip_encoding,
)

_MOST_BARS = 40  # bars that can be distinguished on a page; a choice of layout
_MOST_NUMBERED_BARS = 12  # bars of cells of numbers; more are drawn as a line; a choice of layout
_LARGEST_SHOWN = 20  # bars of a table that has more than `_MOST_BARS` cells; a choice of layout
_MOST_ERRORS = 40  # tables in the chart of expected errors; a choice of layout
# An interval is only cut off if the others would otherwise fill less than a fifth of the axis.
_LARGEST_STRETCH = 5.0
_POINT: Spec = {"type": "point", "filled": True, "size": 60, "opacity": 1}
_SHAPES = ("circle", "diamond", "square", "triangle-up", "triangle-down", "cross")


def suits_bars(picture: Picture) -> bool:
    """Return whether a table can be drawn as bars.

    The table must have one key with at most forty names or twelve cells of numbers. Prefix sums and
    dates are drawn as lines.
    """
    if len(picture.axes) != 1 or (
        picture.axes[0].kind in ("times", "up_to")
        and picture.axes[0].is_numbered
        and picture.axes[0].size > 2
    ):
        return False
    if picture.axes[0].is_numbered:
        return picture.axes[0].size <= _MOST_NUMBERED_BARS
    return picture.axes[0].size <= _MOST_BARS


def draw_bars(picture: Picture) -> Spec:
    """Draw one horizontal bar per answer, with its interval and digits.

    Many names without a natural order are sorted by their answers.
    """
    axis = picture.axes[0]
    return _draw_bars_with_digits(
        picture, axis.order_by(picture.answer), picture.axis_title(axis), axis.name
    )


def suits_largest(picture: Picture) -> bool:
    """Return whether the largest cells of a table can be drawn.

    A chart of the largest cells is possible for any table with a key, except for prefix sums:
    their largest cells are always the last.
    """
    return bool(picture.axes) and all(axis.kind != "up_to" for axis in picture.axes)


def draw_largest(picture: Picture) -> Spec:
    """Draw bars for the largest answers of a table, in descending order."""
    return _draw_bars_with_digits(
        picture, find_largest(picture.answer, _LARGEST_SHOWN).tolist(), "", picture.name
    )


def _draw_bars_with_digits(
    picture: Picture, cells: Sequence[int], key_title: str, tooltip_title: str
) -> Spec:
    """Draw bars for the selected cells, each with its answer in digits.

    ``key_title`` is the title of the keys, and ``tooltip_title`` is their title in tooltips.
    """
    rows: list[Spec] = []
    for cell in cells:
        index = np.unravel_index(cell, picture.answer.shape)
        answer, low, high = (
            float(values[index]) for values in (picture.answer, picture.low, picture.high)
        )
        label = ", ".join(
            axis.labels[int(label_index)]
            for axis, label_index in zip(picture.axes, index, strict=True)
        )
        text = picture.format_answer(answer, high - answer)  # with all digits, as in the table
        rows.append(
            {
                "k0": label,
                "answer": round_to_six_digits(answer),
                "low": round_to_six_digits(low),
                "high": round_to_six_digits(high),
                "text": text,
            }
        )
    width_of_digits = estimate_width((row["text"] for row in rows), 200)
    if key_title:
        limit = 170
    else:
        # Labels of several keys are long, and differ at their ends. They get the width that the
        # digits and 130 pixels of bars leave over, within a range of layout.
        limit = max(230, min(290, WIDTH - width_of_digits - 130))
    key = key_encoding(key_title or None, limit)
    digits = {
        "mark": {"type": "text", "align": "left", "dx": 6, "color": MUTED, "fontSize": 11.5},
        "encoding": {"text": {"field": "text"}, "x": {"value": "width"}},
    }
    return {
        "data": {"values": rows},
        "width": WIDTH - estimate_width((row["k0"] for row in rows), limit) - width_of_digits,
        "height": {"step": 24},
        "encoding": {"y": key},
        "layer": [*bar_layers(picture, tooltip_encoding(("k0", tooltip_title))), digits],
    }


def bar_layers(picture: Picture, tooltip: list[Spec], ticks: int = 5) -> list[Spec]:
    """Return two Vega-Lite layers: bars from 0 to each answer, and whiskers."""
    whisker = {
        "type": "errorbar",
        "ticks": {"size": 8, "color": WHISKER},
        "rule": {"color": WHISKER, "strokeWidth": 1.5},
    }
    low = {**answer_encoding(picture, "low", ticks), "scale": {"zero": True}}
    return [
        {
            "mark": {"type": "bar", "color": BAR, "height": {"band": 0.7}},
            "encoding": {"x": answer_encoding(picture, ticks=ticks), "tooltip": tooltip},
        },
        {"mark": whisker, "encoding": {"x": low, "x2": {"field": "high"}}},
    ]


def draw_errors(rows: Sequence[tuple[str, float, float]], title: str) -> Spec:
    """Draw expected errors of tables; each is a tuple (name, typical, largest).

    Each of the first forty tables has a bar for the typical error and a tick for the largest error.
    """
    values: list[Spec] = [
        {
            "k0": name,
            "typical": round_to_six_digits(typical),
            "largest": round_to_six_digits(largest),
        }
        for name, typical, largest in rows[:_MOST_ERRORS]
    ]
    x: Spec = {"type": "quantitative", "title": title}
    tooltip: list[Spec] = [{"field": "k0", "title": "table", "type": "nominal"}]
    tooltip += [
        {"field": name, "type": "quantitative", "format": ",.4~g"}
        for name in ("typical", "largest")
    ]
    spec = {
        "data": {"values": values},
        "width": WIDTH - estimate_width((row["k0"] for row in values), 200),
        "height": {"step": 20},
        "encoding": {"y": key_encoding(None, 200), "tooltip": tooltip},
        "layer": [
            {
                "mark": {"type": "bar", "color": BAR, "height": {"band": 0.7}},
                "encoding": {"x": {**x, "field": "typical"}},
            },
            {
                "mark": {"type": "tick", "color": WHISKER, "thickness": 2},
                "encoding": {"x": {**x, "field": "largest"}},
            },
        ],
    }
    return complete_spec(spec)


def _dot_axis_ends(rows: Sequence[DotRow], *, marks_zero: bool = False) -> tuple[float, float]:
    """Return the ends of an axis that shows all values and most intervals.

    An interval is cut off if it would make the axis over five times as long, so that the other
    intervals could hardly be distinguished. The narrower half of the intervals is always shown.
    """
    values = [row.value for row in rows if not math.isnan(row.value)]
    if marks_zero:
        values.append(0.0)
    intervals = [(row.low, row.high) for row in rows if row.low <= row.high]
    narrowest_first = sorted(intervals, key=lambda ends: ends[1] - ends[0])
    half_count = (len(intervals) + 1) // 2
    numbers = [*values, *chain.from_iterable(narrowest_first[:half_count])]
    axis_low = min(numbers, default=0.0)
    axis_high = max(numbers, default=1.0)
    # Two passes, because the axis may become longer in the first one.
    for low, high in narrowest_first[half_count:] * 2:
        start = min(low, axis_low)
        end = max(high, axis_high)
        if end - start <= _LARGEST_STRETCH * (axis_high - axis_low) or axis_high == axis_low:
            axis_low = start
            axis_high = end
    return axis_low, axis_high


def draw_dots(plot: DotPlot) -> Spec:
    """Draw statistics by group as points with intervals.

    Bars from 0 would have no meaning for means or quantiles. Series differ in colour and shape. An
    interval that does not fit on the axis ends in an arrow at the end of the axis. A value that is
    not published (NaN) is not drawn.
    """
    published_rows = tuple(row for row in plot.rows if not math.isnan(row.value))
    axis_low, axis_high = _dot_axis_ends(published_rows, marks_zero=plot.marks_zero)
    room_beyond = (axis_high - axis_low) / 10
    records = _dot_records(published_rows, axis_low, axis_high, room_beyond)
    scale: Spec = {"zero": plot.marks_zero, "padding": 8}
    if any(record["open"] for record in records):
        scale |= {"domain": [axis_low - room_beyond, axis_high + room_beyond], "nice": False}
    x: Spec = {
        "type": "quantitative",
        "title": plot.title,
        "scale": scale,
        "axis": {"tickCount": 5},
    }
    if all(_has_whole_numbers(row) for row in published_rows):
        x["axis"] |= {"tickMinStep": 1}
    names = list(dict.fromkeys(record["group"] for record in records))
    row_encoding: Spec = {"color": {"value": SERIES[0]}}
    shape: Spec = {}
    height: Spec = {"step": 24}
    if len(names) > 1:
        row_encoding = _series_encoding(names, plot.series)
        shape = {"shape": group_encoding(names, _SHAPES, plot.series)}
        height = {"step": 12, "for": "offset"}
    key = key_encoding(plot.groups or None)
    key["axis"] |= {"grid": True}
    spec = {
        "data": {"values": records},
        "width": WIDTH - 20 - estimate_width((record["k0"] for record in records), 150),
        "height": height,
        "encoding": {"y": key, **row_encoding},
        "layer": _dot_layers(records, x, shape, plot.groups),
    }
    if plot.marks_zero:
        spec = _with_zero_line(spec, x)
    return complete_spec(spec)


def _has_whole_numbers(row: DotRow) -> bool:
    """Return whether the value and the ends of the interval are whole."""
    return row.value.is_integer() and row.low.is_integer() and row.high.is_integer()


def _series_encoding(names: Sequence[str], title: str) -> Spec:
    """Return the encoding of several series: a colour and a line for each."""
    return {
        "color": group_encoding(names, SERIES, title),
        "yOffset": {
            "field": "group",
            "type": "nominal",
            "sort": names,
            "scale": {"paddingOuter": 0.6},
        },
    }


def _dot_layers(
    records: Sequence[Spec], x_encoding: Spec, shape: Spec, groups_title: str
) -> list[Spec]:
    """Return the layers of a dot plot: intervals, arrows and points.

    Args:
        records: the records of `_dot_records`.
        x_encoding: the encoding of numbers on the x axis, without a field.
        shape: the encoding of shapes; empty for a single series.
        groups_title: the title of the groups; "" for the usual title.
    """
    interval = {
        "mark": {"type": "rule", "strokeWidth": 1.6},
        "encoding": {"x": {**x_encoding, "field": "from"}, "x2": {"field": "to"}},
    }
    tooltip: list[Spec] = [{"field": "k0", "title": groups_title or "group", "type": "nominal"}]
    for name in ("value", "low", "high"):
        number = {"field": name, "type": "quantitative", "format": ",.6~g"}
        tooltip.append(number)
    points = {
        "mark": {**_POINT},
        "encoding": {"x": {**x_encoding, "field": "value"}, "tooltip": tooltip, **shape},
    }
    return [interval, *_arrow_layers(records, x_encoding), points]


def _with_zero_line(spec: Spec, x_encoding: Spec) -> Spec:
    """Return a dot plot's specification with a dashed line at 0 behind the dots."""
    line = {
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": MUTED},
        "encoding": {"x": {**x_encoding, "datum": 0}},
    }
    dots = {"encoding": spec["encoding"], "layer": spec["layer"]}
    rest = {name: value for name, value in spec.items() if name not in dots}
    return {**rest, "layer": [line, dots]}


def _dot_records(
    rows: Sequence[DotRow], axis_low: float, axis_high: float, room_beyond: float
) -> list[Spec]:
    """Return Vega-Lite records of points and intervals, cut off at the axis ends.

    Intervals are cut off ``room_beyond`` outside the ends of the axis.
    """
    return [
        {
            "k0": row.group,
            "group": row.series,
            "value": round_to_six_digits(row.value),
            "low": round_to_six_digits(row.low),
            "high": round_to_six_digits(row.high),
            "from": round_to_six_digits(max(row.low, axis_low - room_beyond)),
            "to": round_to_six_digits(min(row.high, axis_high + room_beyond)),
            "open": row.low < axis_low or row.high > axis_high,
        }
        for row in rows
    ]


def _arrow_layers(records: Sequence[Spec], x_encoding: Spec) -> list[Spec]:
    """Return the Vega-Lite layers of arrows where intervals go beyond the axis."""
    layers: list[Spec] = []
    for end, interval_end, side in (("from", "low", "left"), ("to", "high", "right")):
        # Vega warns of layers without rows.
        if any(row[end] != row[interval_end] for row in records):
            layers.append(
                {
                    "transform": [{"filter": f"datum.{end} != datum.{interval_end}"}],
                    "mark": _POINT | {"shape": f"triangle-{side}"},
                    "encoding": {"x": {**x_encoding, "field": end}},
                }
            )
    return layers
