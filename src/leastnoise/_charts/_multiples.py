"""Small multiples: one small chart a group, all with the same axes."""

import numpy as np

from leastnoise._charts._bars import bars_with_intervals
from leastnoise._charts._curves import step_layers, stepped
from leastnoise._charts._picture import Axis, Picture, Spec
from leastnoise._charts._style import WIDTH, named_rows, room, tips

_MOST_GROUPS, _FEWEST_STEPS, _MOST_BARS, _MOST_STEPS = 12, 13, 12, 400


def suits(picture: Picture) -> bool:
    """Two axes: up to twelve groups of a histogram, or up to three of a few named cells."""
    if len(picture.axes) != 2:
        return False
    groups, inner = _groups_and_inner(picture)
    if _is_histogram(inner):
        return groups.kind != "spans" and groups.size <= _MOST_GROUPS and inner.size <= _MOST_STEPS
    return groups.size <= 3 and inner.size <= _MOST_BARS


def draw(picture: Picture) -> Spec:
    """Histograms as steps, or bars with intervals; the shorter axis makes the groups."""
    groups, inner = _groups_and_inner(picture)
    steps = _is_histogram(inner)
    across = min(groups.size, 2 if groups.size <= 4 or not steps else 3)
    rows: list[Spec] = []
    arrays = [values.T if picture.axes[0] is inner else values for values in (picture.answer, picture.low, picture.high)]
    for name, answer, low, high in zip(groups.labels, *arrays, strict=True):
        if steps:
            rows += stepped(inner, answer.tolist(), low.tolist(), high.tolist(), group=name)
        else:
            columns = zip(inner.labels, *(np.asarray(values).round(6).tolist() for values in (answer, low, high)), strict=True)
            rows += [{"k0": label, "group": name, "answer": a, "low": b, "high": c} for label, a, b, c in columns]
    # beside the small charts stand the labels of their axes: room for numbers on the left of each, or for names on the left of the first
    if steps:
        small = {"width": (WIDTH - 45) // across - 14, "height": 90, **step_layers(picture, inner, ticks=3)}
    else:
        layer = bars_with_intervals(picture, tips(("group", groups.name), ("k0", inner.name)), ticks=3)
        width = (WIDTH - room(inner.labels, 150)) // across - 24
        for part in layer:
            part["encoding"]["x"]["axis"]["titleLimit"] = width
        small = {"width": width, "height": {"step": 20}}
        small |= {"encoding": {"y": named_rows(None, 150)}, "layer": layer}
    return {
        "data": {"values": rows},
        "facet": {"field": "group", "type": "nominal", "title": None, "sort": list(groups.labels)},
        "columns": across,
        "spacing": 14 if steps else 24,
        "spec": small,
    }


def _is_histogram(axis: Axis) -> bool:
    return axis.kind == "cells" and axis.numbered and axis.size >= _FEWEST_STEPS


def _groups_and_inner(picture: Picture) -> tuple[Axis, Axis]:
    """The axis of the groups and the one inside; the longer one is inside, or the one of numbers."""
    first, second = picture.axes
    rank = [(axis.kind == "cells" and axis.size >= _FEWEST_STEPS, axis.size) for axis in (first, second)]
    return (first, second) if rank[1] >= rank[0] else (second, first)
