"""Dots with intervals: means and quantiles by group, which have no place to start a bar from."""

from leastnoise._charts._picture import Dots, Spec, short
from leastnoise._charts._style import SERIES, WIDTH, large, room

_SHAPES = ("circle", "diamond", "square", "triangle-up", "triangle-down", "cross")


def draw(dots: Dots) -> Spec:
    """One row a group; several values of a group in colours and shapes."""
    rows: list[Spec] = [
        {"k0": group, "group": series, "value": short(a), "low": short(b), "high": short(c)} for group, series, a, b, c in dots.rows
    ]
    names = list(dict.fromkeys(row["group"] for row in rows))
    x: Spec = {
        "type": "quantitative",
        "title": dots.title,
        "scale": {"zero": False, "padding": 8},
        "axis": {"tickCount": 5, **large(*(row["high"] for row in rows))},
    }
    colour: Spec = {"value": SERIES[0]}
    shape: Spec = {}
    if len(names) > 1:
        kinds = [SERIES[place % len(SERIES)] for place in range(len(names))]
        colour = {"field": "group", "type": "nominal", "title": dots.series, "scale": {"domain": names, "range": kinds}}
        shapes = [_SHAPES[place % len(_SHAPES)] for place in range(len(names))]
        shape = {"shape": {"field": "group", "type": "nominal", "title": dots.series, "scale": {"domain": names, "range": shapes}}}
    key: Spec = {
        "field": "k0",
        "type": "nominal",
        "sort": None,
        "title": dots.groups or None,
        "axis": {"labelOverlap": False, "grid": True},
    }
    tip: list[Spec] = [{"field": "k0", "title": dots.groups or "group", "type": "nominal"}]
    tip += [{"field": name, "type": "quantitative", "format": ",.6~g"} for name in ("value", "low", "high")]
    return {
        "data": {"values": rows},
        "width": WIDTH - 20 - room((row["k0"] for row in rows), 150),
        "height": {"step": 24},
        "encoding": {"y": key, "color": colour},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 1.6}, "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {"x": {**x, "field": "value"}, "tooltip": tip, **shape},
            },
        ],
    }
