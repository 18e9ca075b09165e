"""Small multiples: one small chart a group, all with the same axes."""

from typing import Any

import numpy as np

from leastnoise._charts._picture import Axis, Picture, Spec
from leastnoise._charts._steps import layers, stepped
from leastnoise._charts._style import BAR, WHISKER, WIDTH, amount, room, tips

MOST_GROUPS, FEWEST_STEPS, MOST_BARS, MOST_STEPS = 12, 13, 12, 400


def suits(picture: Picture) -> bool:
    """Two axes: up to twelve groups of a histogram, or up to three of a few named cells."""
    if len(picture.axes) != 2:
        return False
    groups, inner = _parts(picture)
    if inner.kind == "cells" and inner.numbered and inner.size >= FEWEST_STEPS:
        return groups.kind != "spans" and groups.size <= MOST_GROUPS and inner.size <= MOST_STEPS
    return groups.size <= 3 and inner.size <= MOST_BARS


def draw(picture: Picture) -> Spec:
    """Histograms as steps, or bars with intervals; the shorter axis makes the groups."""
    groups, inner = _parts(picture)
    turned = picture.axes[0] is inner
    answer, low, high = (v.T if turned else v for v in (picture.answer, picture.low, picture.high))
    steps = inner.kind == "cells" and inner.numbered and inner.size >= FEWEST_STEPS
    across = min(groups.size, 2 if groups.size <= 4 or not steps else 3)
    rows: list[Spec] = []
    for place, name in enumerate(groups.labels):
        parts = (answer[place].tolist(), low[place].tolist(), high[place].tolist())
        rows += stepped(inner, *parts, group=name) if steps else _named(inner, parts, name)
    # beside the small charts stand the labels of their axes: room for numbers on the left of each, or for names on the left of the first
    left = room(inner.labels, 150)
    width = (WIDTH - 45) // across - 14 if steps else (WIDTH - left) // across - 24
    one: dict[str, Any] = {"width": width, "height": 90} if steps else {"width": width, "height": {"step": 20}}
    content = layers(picture, inner, ticks=3) if steps else _bars(picture, inner, groups)
    return {
        "data": {"values": rows},
        "facet": {"field": "group", "type": "nominal", "title": None, "sort": list(groups.labels)},
        "columns": across,
        "spacing": 14 if steps else 24,
        "spec": {**one, **content},
    }


def _parts(picture: Picture) -> tuple[Axis, Axis]:
    """The axis of the groups and the one inside; the longer one is inside, or the one of numbers."""
    first, second = picture.axes
    rank = [(axis.kind == "cells" and axis.size >= FEWEST_STEPS, axis.size) for axis in (first, second)]
    return (first, second) if rank[1] >= rank[0] else (second, first)


def _named(inner: Axis, parts: tuple[list[float], list[float], list[float]], group: str) -> list[Spec]:
    columns = zip(inner.labels, *(np.asarray(part).round(6).tolist() for part in parts), strict=True)
    return [{"k0": label, "group": group, "answer": a, "low": b, "high": c} for label, a, b, c in columns]


def _bars(picture: Picture, inner: Axis, groups: Axis) -> Spec:
    key = {"field": "k0", "type": "nominal", "sort": None, "title": None, "axis": {"labelOverlap": False, "labelLimit": 150}}
    tip = tips(("group", groups.name), ("k0", inner.name))
    return {
        "encoding": {"y": key},
        "layer": [
            {"mark": {"type": "bar", "color": BAR, "height": {"band": 0.7}}, "encoding": {"x": amount(picture, ticks=3), "tooltip": tip}},
            {
                "mark": {"type": "errorbar", "ticks": {"size": 7, "color": WHISKER}, "rule": {"color": WHISKER, "strokeWidth": 1.5}},
                "encoding": {"x": {**amount(picture, "low", ticks=3), "scale": {"zero": True}}, "x2": {"field": "high"}},
            },
        ],
    }
