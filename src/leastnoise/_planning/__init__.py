"""Planning: functions that compute a plan from a workload and a budget.

Planning is public and reads no data.

Read `_plan_calls.py` first (`plan`, `compare`). `_targets.py` finds the least budget that meets
every target, minimises the worst error or relative errors, and computes the price of each target.
`_plan_cache.py` stores plans, `_series_plan.py` plans series, and `_after.py` plans releases that
use earlier releases. `_comparison_targets.py` computes the expected errors of differences and
ratios, and `_power.py` the power of an A/B test. Strategies come from `leastnoise._strategies`.
"""

from leastnoise._planning._comparison_targets import (
    ComparisonStatus,
    comparison_goals,
    comparison_statuses,
    target_errors,
)
from leastnoise._planning._moment_targets import moment_goals, statistic_std_errors
from leastnoise._planning._plan_cache import cached_choice, plan_folder, plan_from_file
from leastnoise._planning._plan_calls import (
    attributes_of_public_counts,
    compare,
    error_over_complete,
    expected_seconds,
    is_data_dependent,
    per_cell,
    plan,
    plan_workload,
    with_max_rows,
    without_cell_bound,
    workload_to_plan,
)
from leastnoise._planning._power import ABPower, ab_power, budget_json, budget_of_text
from leastnoise._planning._series_plan import (
    SeriesOptions,
    period_errors,
    series_of,
    series_plan,
    truncate_plan,
)
from leastnoise._planning._targets import (
    OBJECTIVES,
    SMALL,
    Least,
    Price,
    TargetStatus,
    joint_price,
    mean_goals,
    missed_targets,
    plan_for_workload,
    plan_least_budget,
    smallest_privacy,
    stated_privacy,
    statistic_target_statuses,
    table_goals,
    table_prices,
    target_statuses,
    with_epsilon_or_rho,
)
