"""Charts of numbers with intervals, defined as Vega-Lite specifications.

Charts are interactive in notebooks. Elsewhere, they are pictures, which need no network.

Each family of charts has a file, and each chart has a line in the registry. A chart knows the keys,
answers and intervals that it shows, but not where they come from.
"""

from leastnoise._charts._bars import draw_dots, draw_errors
from leastnoise._charts._chart_registry import (
    CHARTS,
    CHARTS_BY_NAME,
    Chart,
    choose_chart,
    draw_chart,
)
from leastnoise._charts._curves import groups_with_wide_bands, has_axis_above_zero
from leastnoise._charts._panels import has_own_scales
from leastnoise._charts._picture import (
    Axis,
    DotPlot,
    DotRow,
    Picture,
    count_certain_largest,
    find_largest,
    format_digits,
    has_marked_intervals,
)
from leastnoise._charts._render import (
    is_drawing,
    make_altair_chart,
    missing_charts_notice,
    render_svg,
    set_locale,
)
