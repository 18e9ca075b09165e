"""Describe data without a dictionary for a small budget, and draft a spec.

A profile is an ordinary release of one table for each column. The cells of these tables are public,
because they depend only on the names and types of the columns. The page and the drafted spec of a
profile are post-processing.
"""

from leastnoise._profile._column_cells import (
    FIRST_YEAR,
    LAST_YEAR,
    MeasuredColumn,
    choose_measured_columns,
    number_edges,
)
from leastnoise._profile._findings import (
    TAIL_SHARE,
    ColumnFindings,
    ProfileFindings,
    compute_findings,
)
from leastnoise._profile._page import page_file, render_page, summarize_column
from leastnoise._profile._profile_draft import DRAFT_FILE, draft_text, round_down
from leastnoise._profile._request import (
    RELEASE_FOLDER,
    SPEC_FILE,
    ProfilePlan,
    ProfileRequest,
    plan_profile,
)
from leastnoise._profile._run import Profile, measured_spec, profile, run_profile
from leastnoise._profile._share_intervals import FALSE_CELL_RATE, EstimateInterval
from leastnoise._profile._unit_sizes import (
    COVERED_UNITS,
    SIZE_SHARE,
    LimitEffect,
    UnitSizes,
    describe_unit_sizes,
    plan_unit_sizes,
    unit_size_cells,
)
