"""A plane of very many cells along two numbers or dates: darker is more, and grey where the interval contains 0."""

import math

from leastnoise._charts._heat import colours, side
from leastnoise._charts._picture import Picture, Spec
from leastnoise._charts._style import RULE, WIDTH, room, tips

MOST_ALONG, MOST_CELLS = 128, 10_000


def suits(picture: Picture) -> bool:
    """Two axes on which cells have neighbours."""
    if len(picture.axes) != 2 or any(axis.kind not in ("cells", "times") for axis in picture.axes):
        return False
    return max(picture.shape) <= MOST_ALONG and math.prod(picture.shape) <= MOST_CELLS


def draw(picture: Picture) -> Spec:
    """Small shaded squares without lines between them, the longer axis across."""
    rows = picture.rows()
    for row in rows:
        row["zero"] = row["low"] <= 0 <= row["high"]
    down, across = sorted(picture.axes, key=lambda axis: axis.size)
    names = {id(axis): f"k{place}" for place, axis in enumerate(picture.axes)}
    colour, _ = colours(picture, rows)
    step = max(3, (WIDTH - 30 - room(down.labels, 120)) // across.size)  # whole pixels, or seams are seen between the squares
    return {
        "data": {"values": rows},
        "width": {"step": step},
        "height": {"step": step},
        "layer": [{"mark": {"type": "rect"}}],
        "encoding": {
            "y": side(down, names[id(down)], most=30),
            "x": side(across, names[id(across)], most=24),
            "color": {"condition": {"test": "datum.zero", "value": RULE}, **colour},
            "tooltip": tips(*((names[id(axis)], axis.name) for axis in picture.axes)),
        },
    }
