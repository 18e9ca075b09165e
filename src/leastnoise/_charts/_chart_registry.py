"""List all charts, in the order in which they are tried."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from leastnoise._charts import _bars, _curves, _panels, _shades
from leastnoise._charts._picture import Picture, Spec, complete_spec


@dataclass(frozen=True, slots=True)
class Chart:
    """A kind of chart: a test whether it suits a table, and a function to draw.

    Attributes:
        name: the name of the kind.
        suits: a function that returns whether the chart can draw a table.
        draw: the function that draws a table.
        draws_any_size: whether the chart can draw any number of cells.
    """

    name: str
    suits: Callable[[Picture], bool]
    draw: Callable[[Picture], Spec]
    draws_any_size: bool = False


CHARTS = (
    Chart("bars", _bars.suits_bars, _bars.draw_bars),
    Chart("lines", _curves.suits_lines, _curves.draw_lines, draws_any_size=True),
    Chart("panels", _panels.suits_panels, _panels.draw_panels),
    Chart("steps", _curves.suits_steps, _curves.draw_steps),
    Chart("multiples", _curves.suits_multiples, _curves.draw_multiples),
    Chart("heat", _shades.suits_heat, _shades.draw_heat),
    Chart("largest", _bars.suits_largest, _bars.draw_largest, draws_any_size=True),
)


def choose_chart(picture: Picture, most_cells: float = math.inf) -> Chart | None:
    """Return the first kind of chart that suits a table, or None.

    The result is None for a single number.
    """
    for chart in CHARTS:
        has_size = picture.cells <= most_cells or chart.draws_any_size
        if has_size and chart.suits(picture):
            return chart
    return None


def draw_chart(picture: Picture, most_cells: float = math.inf) -> Spec | None:
    """Return the chart of a table as a Vega-Lite specification, or None.

    The specification contains the data. The result is None if no chart suits the table.
    """
    chart = choose_chart(picture, most_cells)
    if chart is None:
        return None
    return complete_spec(chart.draw(picture))
