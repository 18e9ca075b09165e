"""The charts, one line each, in the order in which they are tried."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from leastnoise._charts import _bars, _curves, _shades
from leastnoise._charts._picture import Picture, Spec, complete_spec


@dataclass(frozen=True, slots=True)
class Chart:
    """A way to draw a table."""

    name: str
    suits: Callable[[Picture], bool]
    draw: Callable[[Picture], Spec]


CHARTS = (
    Chart("bars", _bars.suits_bars, _bars.draw_bars),
    Chart("lines", _curves.suits_lines, _curves.draw_lines),
    Chart("steps", _curves.suits_steps, _curves.draw_steps),
    Chart("multiples", _curves.suits_multiples, _curves.draw_multiples),
    Chart("heat", _shades.suits_heat, _shades.draw_heat),
    Chart("largest", _bars.suits_largest, _bars.draw_largest),
)


def choose_chart(picture: Picture, most: float = math.inf) -> Chart | None:
    """Return the first chart that suits a picture.

    None for a single number, and if no chart would say anything.
    """
    # the largest cells are few, and lines are thinned out
    fitting = [
        chart for chart in CHARTS if picture.cells <= most or chart.name in ("lines", "largest")
    ]
    return next((chart for chart in fitting if chart.suits(picture)), None)


def draw_chart(picture: Picture, most: float = math.inf) -> Spec | None:
    """Return the chart of a picture as one Vega-Lite specification.

    Its data are inside; None if no chart suits.
    """
    chart = choose_chart(picture, most)
    return None if chart is None else complete_spec(chart.draw(picture))
