"""A calendar: one column for each week, one row for each weekday.

Darker days have larger answers.
"""

from leastnoise._charts._picture import WIDTH, Axis, Picture, Spec, tooltip_encoding

_LEAST_DAYS = 28
_MOST_DAYS = 371  # a year that begins in the middle of a week
_DAY_LENGTH = len("2024-01-31")


def suits(picture: Picture) -> bool:
    """Return whether a table has an axis of four weeks to a year of days."""
    return (
        len(picture.axes) == 1
        and picture.axes[0].kind == "times"
        and _LEAST_DAYS <= picture.cells <= _MOST_DAYS
        and _days(picture.axes[0])
    )


def draw(picture: Picture) -> Spec:
    """Draw the shaded days; tooltips have the intervals."""
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
    """Return whether all labels of an axis are days."""
    return all(len(label) == _DAY_LENGTH for label in axis.labels)
