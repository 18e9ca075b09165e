"""Planners turn a workload into a strategy and never see data: a file for each thing that is planned.

A planner is a record in ``_registry`` with a function from a `Task` to a `Strategy` (``_strategy``). ``_tables`` decides which tables are
measured with which weights, by the programme of ``_residual_algebra``; ``_covering`` finds larger tables that contain the asked ones,
``_kronecker`` fits a family along every attribute, ``_union`` two tables for two parts, ``_tilted`` residual spaces by fitted rows.
``_papers`` has strategies of papers by name, ``_own`` a user's, ``_together`` counts and sums together, ``aware`` what mechanisms that look
at the data plan in public. Begin with `identity` in ``_tables``.
"""

from leastnoise._families import Clock, NotApplicable, over, running
from leastnoise._planner._own import OWN, Own, own_planner
from leastnoise._planner._registry import PLANNERS
from leastnoise._planner._strategy import Planner, Strategy, Task
from leastnoise._planner._tables import reweighted_strategy
from leastnoise._planner._together import shared, together
from leastnoise._planner.aware._buckets import (
    DEEP,
    FIRST_SHARE,
    GROUP_SHARE,
    TEST_SHARE,
    bucket_gram,
    difference_costs,
    divided,
    first_level,
    first_levels,
    on_buckets,
    plane_regime,
    records_a_part,
    single_cells,
    total_cost,
)
from leastnoise._planner.aware._model_tables import binned_tables, precisions
from leastnoise._planner.aware._sums import (
    MOST_SUM_CELLS,
    SURE,
    GroupBuckets,
    Kept,
    KeptByGroup,
    SumBuckets,
    TailLaw,
    ThresholdChoice,
    asked_along,
    candidate_cells,
    choose_group_threshold,
    choose_threshold,
    limited_strategy,
    noise_along,
)
