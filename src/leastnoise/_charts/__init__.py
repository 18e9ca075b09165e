"""Charts of numbers with intervals, defined once as Vega-Lite.

Live in notebooks, and as pictures made without a network.

One file a family of charts, and one line in the registry a chart. A chart knows keys, answers and
intervals, not where they come from.
"""

from leastnoise._charts._bars import dots, errors
from leastnoise._charts._curves import vague
from leastnoise._charts._picture import (
    Axis,
    Dots,
    Picture,
    clear_of_the_rest,
    in_digits,
    largest_first,
    marked,
)
from leastnoise._charts._registry import CHARTS, Chart, chart_for, vega_lite
from leastnoise._charts._render import drawing, live, spoken, svg_of
