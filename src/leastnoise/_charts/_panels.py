"""Draw small charts of lines over time, one for each group."""

import numpy as np

from leastnoise._charts._curves import (
    find_time_axis,
    group_legend,
    has_axis_above_zero,
    isolated_layers,
    line_layers,
    line_records,
    list_line_scale_keys,
)
from leastnoise._charts._picture import ANSWER_TITLE, WIDTH, Axis, Picture, Spec, tooltip_encoding
from leastnoise._trusted.check.arrays import FloatArray

_MOST_PANELS = 40  # small charts of one table; a choice of layout
_MOST_LINES = 6  # lines in one small chart
_FEWEST_PANELS = 2  # a single small chart would just be a chart with a frame
# If the largest answers of groups differ by more than this factor, each group has its own axis.
_LARGEST_SIZE_RATIO = 5.0
_AXIS_WIDTH = 55  # width of the numbers on the left, in pixels
_PANEL_HEIGHT = 84


def suits_panels(picture: Picture) -> bool:
    """Return whether a table can be drawn as small charts of lines over time.

    The table must have a key of dates and one or two keys of names. It may have at most forty
    groups, and at most six lines in each small chart.
    """
    position = find_time_axis(picture)
    if position is None or len(picture.axes) not in {2, 3}:
        return False
    others = [axis for axis in picture.axes if axis is not picture.axes[position]]
    if any(axis.kind != "names" for axis in others):
        return False
    panels, lines = _panel_and_line_axes(picture)
    return _FEWEST_PANELS <= panels.size <= _MOST_PANELS and (
        lines is None or lines.size <= _MOST_LINES
    )


def draw_panels(picture: Picture) -> Spec:
    """Draw a small chart of lines with bands over time for each group.

    All small charts have the same axis of answers. If the lines of small groups would look flat on
    it, each chart has a separate axis.
    """
    position = find_time_axis(picture) or 0
    time = picture.axes[position]
    panels, lines = _panel_and_line_axes(picture)
    line_names = ("",) if lines is None else lines.labels
    rows: list[Spec] = []
    for panel, name in enumerate(panels.labels):
        part = _panel_picture(picture, panels, panel)
        time_position = part.axes.index(time)
        records = line_records(part, time_position, line_names, range(len(line_names)))
        rows += [{**record, "panel": name} for record in records]
    columns = 2 if panels.size <= 4 else 3
    layer, encoding = line_layers(
        picture, time, ticks=3, may_start_above_zero=has_axis_above_zero(picture)
    )
    fields = [("panel", panels.name), ("x", time.name)]
    if lines is not None:
        fields.append(("group", lines.name))
        encoding |= {"color": group_legend(lines.labels, range(lines.size), lines.name)}
    tooltip = tooltip_encoding(*fields)
    layer[1]["encoding"]["tooltip"] = tooltip
    layer += isolated_layers(rows, layer, tooltip)
    # The title of the answers is above all small charts and is not repeated.
    for marks in layer[:2]:
        marks["encoding"]["y"] |= {"title": None}
    encoding["x"] |= {"title": None, "axis": {"grid": False, "tickCount": 3}}
    spec: Spec = {
        "title": {**ANSWER_TITLE, "text": picture.unit},
        "data": {"values": rows},
        "facet": {
            "field": "panel",
            "type": "nominal",
            "title": None,
            "sort": list(panels.labels),
        },
        "columns": columns,
        "spacing": 14,
        "spec": {
            "width": (WIDTH - _AXIS_WIDTH) // columns - 10,
            "height": _PANEL_HEIGHT,
            "encoding": encoding,
            "layer": layer,
        },
    }
    if has_own_scales(picture):
        spec["resolve"] = {"scale": {"y": "independent"}}
        spec["spec"]["width"] = WIDTH // columns - _AXIS_WIDTH
    return spec


def has_own_scales(picture: Picture) -> bool:
    """Return whether each small chart needs a separate scale for its answers.

    Separate scales are needed if the largest answer of one group is over five times the largest
    answer of another group.
    """
    panels, _ = _panel_and_line_axes(picture)
    largest = _largest_by_panel(picture, panels)
    published = largest[~np.isnan(largest)]
    if not published.size or published.min() <= 0:
        return False
    return bool(published.max() > _LARGEST_SIZE_RATIO * published.min())


def list_panel_scale_keys(picture: Picture) -> list[str]:
    """Return keys of texts on the scales of the small charts."""
    scales = "axes_own" if has_own_scales(picture) else "axes_shared"
    return [scales, *list_line_scale_keys(picture)]


def _largest_by_panel(picture: Picture, panels: Axis) -> FloatArray:
    """Return each small chart's largest published answer; NaN if there is none."""
    answers = np.moveaxis(picture.answer, picture.axes.index(panels), 0).reshape(panels.size, -1)
    largest = np.where(np.isnan(answers), -np.inf, answers).max(axis=1)
    return np.where(np.isfinite(largest), largest, np.nan)


def _panel_and_line_axes(picture: Picture) -> tuple[Axis, Axis | None]:
    """Return the axis of the small charts, and the axis of their lines or None."""
    position = find_time_axis(picture)
    others = [axis for number, axis in enumerate(picture.axes) if number != position]
    by_size = sorted(others, key=lambda axis: -axis.size)
    return by_size[0], by_size[1] if len(by_size) > 1 else None


def _panel_picture(picture: Picture, panels: Axis, panel: int) -> Picture:
    """Return the part of a table that one of the small charts shows."""
    position = picture.axes.index(panels)
    axes = tuple(axis for axis in picture.axes if axis is not panels)
    return Picture(
        name=picture.name,
        axes=axes,
        answer=np.moveaxis(picture.answer, position, 0)[panel],
        low=np.moveaxis(picture.low, position, 0)[panel],
        high=np.moveaxis(picture.high, position, 0)[panel],
    )
