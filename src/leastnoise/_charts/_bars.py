"""Bars with intervals: a table on one attribute of a few named cells."""

from leastnoise._charts._picture import Picture, Spec
from leastnoise._charts._style import BAR, MUTED, WHISKER, WIDTH, amount, room, tips

MOST = 40


def suits(picture: Picture) -> bool:
    """One axis with at most forty keys; cells of numbers only where they are few, and no line of three points or more."""
    if len(picture.axes) != 1 or (picture.axes[0].kind in ("times", "up_to") and picture.axes[0].numbered and picture.axes[0].size > 2):
        return False
    return picture.axes[0].size <= (12 if picture.axes[0].numbered else MOST)


def draw(picture: Picture) -> Spec:
    """Horizontal bars, each with its interval and, on the right, its answer in digits."""
    rows = picture.rows()
    for row in rows:
        row["said"] = picture.value(row["answer"], row["high"] - row["answer"])
    return bars_of(picture, rows, picture.heading(picture.axes[0]), tips(("k0", picture.axes[0].name)))


def bars_of(picture: Picture, rows: list[Spec], heading: str, tip: list[Spec]) -> Spec:
    """Bars for records with k0, said, answer, low and high."""
    limit = 170 if heading else 230
    axis = {"labelOverlap": False, "labelLimit": limit, "titleAngle": 0, "titleAlign": "right", "titleY": -8, "titleX": -7}
    key = {"field": "k0", "type": "nominal", "sort": None, "title": heading or None, "axis": axis}
    return {
        "data": {"values": rows},
        "width": WIDTH - room((row["k0"] for row in rows), limit) - room((row["said"] for row in rows), 200),
        "height": {"step": 24},
        "encoding": {"y": key},
        "layer": [
            {"mark": {"type": "bar", "color": BAR, "height": {"band": 0.7}}, "encoding": {"x": amount(picture), "tooltip": tip}},
            {
                "mark": {"type": "errorbar", "ticks": {"size": 8, "color": WHISKER}, "rule": {"color": WHISKER, "strokeWidth": 1.5}},
                "encoding": {"x": {**amount(picture, "low"), "scale": {"zero": True}}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 6, "color": MUTED, "fontSize": 11.5},
                "encoding": {"text": {"field": "said"}, "x": {"value": "width"}},
            },
        ],
    }
