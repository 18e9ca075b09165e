"""A calendar: weeks across, days of the week down; darker is more."""

from leastnoise._charts._picture import WIDTH, Axis, Picture, Spec, tooltip_encoding

_LEAST, _MOST = 28, 371  # days: four weeks, and a year that begins in the middle of one
_DAY = len("2024-01-31")


def suits(picture: Picture) -> bool:
    """Days, from four weeks to a year of them."""
    return (
        len(picture.axes) == 1
        and picture.axes[0].kind == "times"
        and _LEAST <= picture.cells <= _MOST
        and _days(picture.axes[0])
    )


def draw(picture: Picture) -> Spec:
    """Shaded days; intervals are in the tips."""
    rows = picture.rows()
    most = max((abs(row["answer"]) for row in rows), default=1.0) or 1.0
    colour: Spec = {"field": "answer", "type": "quantitative", "title": picture.unit}
    colour |= {
        "scale": {"scheme": "blues", "domain": [0, most], "clamp": True},
        "legend": {"orient": "top"},
    }
    week: Spec = {
        "timeUnit": "utcyearweek",
        "field": "k0",
        "type": "ordinal",
        "title": picture.axes[0].name,
        "axis": {"format": "%b %d"},
    }
    day: Spec = {
        "timeUnit": "utcday",
        "field": "k0",
        "type": "ordinal",
        "title": None,
        "axis": {"format": "%a"},
    }
    return {
        "data": {"values": rows},
        "width": WIDTH,
        "height": {"step": 18},
        "encoding": {
            "x": week,
            "y": day,
            "color": colour,
            "tooltip": tooltip_encoding(("k0", picture.axes[0].name)),
        },
        "layer": [{"mark": {"type": "rect", "stroke": "white", "strokeWidth": 0.5}}],
    }


def _days(axis: Axis) -> bool:
    return all(len(label) == _DAY for label in axis.labels)
