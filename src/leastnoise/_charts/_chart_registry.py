"""List all charts, in the order in which they are tried."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leastnoise._charts import _bars, _curves, _panels, _shades
from leastnoise._charts._picture import Picture, Spec, complete_spec


def _list_nothing(picture: Picture) -> tuple[str, ...]:  # noqa: ARG001
    """Return an empty list: most charts have no notes on a picture."""
    return ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A kind of chart: a test whether it suits a table, and a function to draw.

    Pages read everything that they need to know about a chart from these fields, and never compare
    its name.

    Attributes:
        name: the name of the kind. The text ``how_NAME`` explains the chart.
        suits: a function that returns whether the chart can draw a table.
        draw: the function that draws a table.
        draws_any_size: whether the chart can draw any number of cells.
        draws_changes: whether the pages of series and of comparisons draw the chart.
        omits_further_cells: whether a table is drawn without its cells of nulls and of other values
            if the chart suits it only then.
        shows_only_largest: whether the chart shows only the largest answers. The report then says
            how many of them are certainly the largest.
        list_scale_keys: a function that returns keys of texts on the scales of a picture.
        list_hidden_groups: a function that returns the groups that the chart leaves out.
    """

    name: str
    suits: Callable[[Picture], bool]
    draw: Callable[[Picture], Spec]
    draws_any_size: bool = False
    draws_changes: bool = False
    omits_further_cells: bool = False
    shows_only_largest: bool = False
    list_scale_keys: Callable[[Picture], Sequence[str]] = _list_nothing
    list_hidden_groups: Callable[[Picture], Sequence[str]] = _list_nothing


CHARTS = (
    Chart("bars", _bars.suits_bars, _bars.draw_bars),
    Chart(
        "lines",
        _curves.suits_lines,
        _curves.draw_lines,
        draws_any_size=True,
        draws_changes=True,
        omits_further_cells=True,
        list_scale_keys=_curves.list_line_scale_keys,
        list_hidden_groups=_curves.groups_with_wide_bands,
    ),
    Chart(
        "panels",
        _panels.suits_panels,
        _panels.draw_panels,
        draws_changes=True,
        list_scale_keys=_panels.list_panel_scale_keys,
    ),
    Chart("steps", _curves.suits_steps, _curves.draw_steps),
    Chart("multiples", _curves.suits_multiples, _curves.draw_multiples),
    Chart("heat", _shades.suits_heat, _shades.draw_heat),
    Chart(
        "largest",
        _bars.suits_largest,
        _bars.draw_largest,
        draws_any_size=True,
        shows_only_largest=True,
    ),
)
CHARTS_BY_NAME = {chart.name: chart for chart in CHARTS}


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
