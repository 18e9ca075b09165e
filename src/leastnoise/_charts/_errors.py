"""Expected errors of tables: bars for the typical one, and a tick for the largest."""

from collections.abc import Sequence

from leastnoise._charts._picture import Spec, short
from leastnoise._charts._style import BAR, WHISKER, WIDTH, room

MOST = 40


def draw(rows: Sequence[tuple[str, float, float]], title: str) -> Spec:
    """One row a table; of many the first forty."""
    values: list[Spec] = [{"k0": name, "typical": short(typical), "largest": short(largest)} for name, typical, largest in rows[:MOST]]
    key: Spec = {"field": "k0", "type": "nominal", "sort": None, "title": None, "axis": {"labelOverlap": False, "labelLimit": 200}}
    x: Spec = {"type": "quantitative", "title": title}
    tip: list[Spec] = [{"field": "k0", "title": "table", "type": "nominal"}]
    tip += [{"field": name, "type": "quantitative", "format": ",.4~g"} for name in ("typical", "largest")]
    return {
        "data": {"values": values},
        "width": WIDTH - room((row["k0"] for row in values), 200),
        "height": {"step": 20},
        "encoding": {"y": key, "tooltip": tip},
        "layer": [
            {"mark": {"type": "bar", "color": BAR, "height": {"band": 0.7}}, "encoding": {"x": {**x, "field": "typical"}}},
            {"mark": {"type": "tick", "color": WHISKER, "thickness": 2}, "encoding": {"x": {**x, "field": "largest"}}},
        ],
    }
