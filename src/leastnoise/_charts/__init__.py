"""Charts of numbers with intervals, defined once as Vega-Lite.

Live in notebooks, and as pictures made without a network.

One file a family of charts, and one line in the registry a chart. A chart knows keys, answers and
intervals, not where they come from.
"""

from leastnoise._charts._bars import draw_dots, draw_errors
from leastnoise._charts._curves import groups_with_wide_bands, has_cut_axis
from leastnoise._charts._panels import has_own_scales
from leastnoise._charts._picture import (
    Axis,
    DotPlot,
    Picture,
    count_certain_largest,
    find_largest,
    format_digits,
    has_marks,
)
from leastnoise._charts._registry import CHARTS, Chart, choose_chart, draw_chart
from leastnoise._charts._render import (
    is_drawing,
    make_altair_chart,
    missing_charts_notice,
    render_svg,
    set_locale,
)
