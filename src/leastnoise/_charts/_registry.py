"""The charts, one line each, in the order in which they are tried."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leastnoise._charts import _bars, _dots, _errors, _heat, _largest, _lines, _multiples, _plane, _steps
from leastnoise._charts._picture import Dots, Picture, Spec
from leastnoise._charts._style import CONFIG

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


@dataclass(frozen=True, slots=True)
class Chart:
    """A way to draw a table."""

    name: str
    suits: Callable[[Picture], bool]
    draw: Callable[[Picture], Spec]


CHARTS = (
    Chart("bars", _bars.suits, _bars.draw),
    Chart("lines", _lines.suits, _lines.draw),
    Chart("steps", _steps.suits, _steps.draw),
    Chart("multiples", _multiples.suits, _multiples.draw),
    Chart("heat", _heat.suits, _heat.draw),
    Chart("plane", _plane.suits, _plane.draw),
    Chart("largest", _largest.suits, _largest.draw),
)


def chart_for(picture: Picture, most: float = math.inf) -> Chart | None:
    """The first chart that suits; None for a single number."""
    fitting = CHARTS if picture.cells <= most else CHARTS[-1:]
    return next((chart for chart in fitting if chart.suits(picture)), None)


def vega_lite(picture: Picture, most: float = math.inf) -> Spec | None:
    """The chart of a picture as one Vega-Lite specification with its data inside; None for a single number."""
    chart = chart_for(picture, most)
    return None if chart is None else _whole(chart.draw(picture))


def dots(made: Dots) -> Spec:
    """Dots with intervals, as a Vega-Lite specification."""
    return _whole(_dots.draw(made))


def errors(rows: Sequence[tuple[str, float, float]], title: str) -> Spec:
    """Expected errors of tables, as a Vega-Lite specification."""
    return _whole(_errors.draw(rows, title))


def _whole(spec: Spec) -> Spec:
    """A specification with what all have; what is left out of a table is null in its data, and not drawn."""
    rows = [{name: None if value != value else value for name, value in row.items()} for row in spec["data"]["values"]]  # noqa: PLR0124
    return {"$schema": _SCHEMA, **spec, "data": {"values": rows}, "config": CONFIG}
