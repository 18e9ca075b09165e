"""Colours and sizes that all charts share; colours are told apart by colour-blind people and on grey paper."""

from collections.abc import Iterable, Sequence
from typing import Any

from leastnoise._charts._picture import Picture, Spec

WIDTH = 450  # of a whole chart with its labels, about; on a phone it is made smaller, to about two thirds
HEIGHT = 200
# Pages give the first three other values at night, by these very numbers; digits on shades stay as they are.
INK, MUTED, RULE, BAR, WHISKER = "#17212b", "#4d5a66", "#d5dbe1", "#6aa5cc", "#12344d"
# Okabe and Ito 2008, without the yellow that cannot be read on white, then each with a dash of its own.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#9a4f83", "#000000", "#a06a00")
DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 3])
_FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
CONFIG: Spec = {
    "aria": False,
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "labelFontSize": 12,
        "titleColor": MUTED,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": RULE,
        "domainColor": MUTED,
        "tickColor": RULE,
        "labelLimit": 150,
        "labelOverlap": True,
        "labelSeparation": 8,
    },
    "axisY": {"domain": False, "ticks": False},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": MUTED,
        "orient": "top",
    },
    "header": {"labelFontSize": 12, "labelFontWeight": "bold", "labelColor": INK, "titleColor": MUTED, "labelLimit": 150},
    "text": {"fontSize": 12, "color": INK},
}


def room(labels: Iterable[str], most: int) -> int:
    """About how wide some texts are, in pixels."""
    return min(most, round(6.5 * max((len(label) for label in labels), default=0)))


def amount(picture: Picture, channel: str = "answer", ticks: int = 5) -> Spec:
    """The encoding of answers or of one end of their intervals."""
    return {"field": channel, "type": "quantitative", "title": picture.unit, "axis": {"tickCount": ticks, "grid": True}}


def named_rows(title: str | None, limit: int | None = None) -> Spec:
    """The encoding of keys down the page, in their own order, none of whose labels is left out."""
    axis: Spec = {"labelOverlap": False, **({} if limit is None else {"labelLimit": limit})}
    return {"field": "k0", "type": "nominal", "sort": None, "title": title, "axis": axis}


def tips(*fields: tuple[str, str]) -> list[Spec]:
    """What a live chart shows where the pointer rests: pairs of a field and its title, then the answer and its interval."""
    numbers = [{"field": name, "type": "quantitative", "format": ",.6~g"} for name in ("answer", "low", "high")]
    return [{"field": name, "title": title, "type": "nominal"} for name, title in fields] + numbers


def told_apart(names: Sequence[str], by: Sequence[Any], title: str) -> Spec:
    """The encoding of groups by colours, dashes or shapes of their own."""
    scale = {"domain": [*names], "range": [by[place % len(by)] for place in range(len(names))]}
    return {"field": "group", "type": "nominal", "title": title, "scale": scale}
