"""List all charts, in the order in which they are tried."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from leastnoise._charts import _bars, _curves, _panels, _shades
from leastnoise._charts._picture import Picture, Spec, complete_spec


@dataclass(frozen=True, slots=True)
class Chart:
    """A kind of chart: a test whether it suits a table, and a function to draw."""

    name: str
    suits: Callable[[Picture], bool]
    draw: Callable[[Picture], Spec]


CHARTS = (
    Chart("bars", _bars.suits_bars, _bars.draw_bars),
    Chart("lines", _curves.suits_lines, _curves.draw_lines),
    Chart("panels", _panels.suits_panels, _panels.draw_panels),
    Chart("steps", _curves.suits_steps, _curves.draw_steps),
    Chart("multiples", _curves.suits_multiples, _curves.draw_multiples),
    Chart("heat", _shades.suits_heat, _shades.draw_heat),
    Chart("largest", _bars.suits_largest, _bars.draw_largest),
)


def choose_chart(picture: Picture, most_cells: float = math.inf) -> Chart | None:
    """Return the first kind of chart that suits a table, or None.

    The result is None for a single number.
    """
    # Charts of lines and of the largest cells can be drawn for any number of cells.
    candidates = [
        chart
        for chart in CHARTS
        if picture.cells <= most_cells or chart.name in ("lines", "largest")
    ]
    return next((chart for chart in candidates if chart.suits(picture)), None)


def draw_chart(picture: Picture, most_cells: float = math.inf) -> Spec | None:
    """Return the chart of a table as a Vega-Lite specification, or None.

    The specification contains the data. The result is None if no chart suits the table.
    """
    chart = choose_chart(picture, most_cells)
    if chart is None:
        return None
    return complete_spec(chart.draw(picture))
