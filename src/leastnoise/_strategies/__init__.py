"""Planners map a workload to a strategy and never see data.

A planner is a record (`Planner` in ``_planning_problem``) with a function from a `PlanningProblem`
to a `Strategy`. ``_table_weights`` chooses the weights of measured tables by the optimisation in
``_residual_algebra``. Start reading at the planner `identity` in ``_table_weights``. ``_marginals``
measures tables of cells and of levels. ``_covering`` measures larger tables that contain the
requested ones. ``_kronecker`` measures a fitted strategy along every attribute. ``_union`` measures
one table for each of two parts of the queries. ``_tilted`` measures residual spaces by fitted rows.
``_k_norm_strategy`` measures one-way tables with joint K-norm noise. ``_datacube_baselines`` has
the strategies of papers by name, and ``_user_strategy`` the strategies of users.
``_counts_and_sums`` measures counts and sums jointly. ``_data_dependent`` and ``_sums_strategy``
plan the public steps of data-dependent mechanisms.
"""

from collections.abc import Mapping

from leastnoise._families import Deadline, NotApplicable, deadline_passed, time_limit
from leastnoise._strategies._counts_and_sums import counts_and_sums, split_units_budget
from leastnoise._strategies._covering import (
    COVERING,
    cover_errors,
    covering_design,
    design_seconds,
    greedy_cover,
)
from leastnoise._strategies._data_dependent import (
    GROUP_SHARE,
    PLANE_FIRST_SHARE,
    PLANE_TEST_SHARE,
    binned_tables,
    bucket_gram,
    bucket_strategy,
    difference_costs,
    divide_parts,
    first_level,
    first_levels,
    has_narrow_queries,
    plane_regime,
    records_per_part,
    table_precisions,
    total_cost,
)
from leastnoise._strategies._datacube_baselines import (
    CUBOIDS,
    CUBOIDS_EVEN,
    FOURIER,
    FOURIER_EVEN,
    RESIDUAL_MAX,
    bits_of,
    residual_noise_max,
    walsh_functions,
)
from leastnoise._strategies._k_norm_strategy import K_NORM
from leastnoise._strategies._kronecker import FAMILIES
from leastnoise._strategies._marginals import MARGINALS
from leastnoise._strategies._planning_problem import (
    Planner,
    PlanningProblem,
    Strategy,
    attribute_costs,
)
from leastnoise._strategies._residual_algebra import (
    attribute_sets,
    diagonal_errors,
    dimensions,
    downward_closure,
    grouped_budgets,
    improve_weights,
    incidence,
    least_error,
    locate,
    scale_to_cost_one,
    scaled_error,
    table_sizes,
)
from leastnoise._strategies._sums_strategy import (
    MOST_SUM_CELLS,
    SURE,
    GroupBuckets,
    SumBuckets,
    TailLaw,
    ThresholdChoice,
    candidate_cells,
    choose_group_threshold,
    choose_threshold,
    decreasing_counts,
    estimated_rmse,
    estimated_rmse_along,
    gram_matrices_along,
    integer_rows,
    isotonic_decreasing,
    limited_gram,
    limited_strategy,
)
from leastnoise._strategies._table_weights import (
    IDENTITY,
    RESIDUAL,
    WORKLOAD,
    WORKLOAD_EVEN,
    identity,
    optimal_budgets,
    reweighted_strategy,
)
from leastnoise._strategies._tilted import TILTED
from leastnoise._strategies._union import UNION
from leastnoise._strategies._user_strategy import OWN, Own, user_planner

# All planners; lists of planners show them in this order. A new planner needs an import and a line
# here; the planner of a family along every attribute is in `FAMILIES`.
_ALL = (
    IDENTITY,
    WORKLOAD,
    MARGINALS,
    COVERING,
    K_NORM,
    RESIDUAL,
    TILTED,
    *FAMILIES,
    UNION,
    RESIDUAL_MAX,
    WORKLOAD_EVEN,
    FOURIER,
    FOURIER_EVEN,
    CUBOIDS,
    CUBOIDS_EVEN,
)
PLANNERS: Mapping[str, Planner] = {planner.name: planner for planner in _ALL}
