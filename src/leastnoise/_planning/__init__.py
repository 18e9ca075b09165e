"""Planning: one call in, one plan out. Public: no data is seen.

Begin with `_planned.py` (`plan`, `compare`). `_targets.py` finds the least budget that keeps every
target, the least of the worst or of relative errors and what each target costs, `_plan_cache.py`
keeps plans, `_over_time.py` plans series. Strategies are those of `leastnoise._planner`.
"""

from leastnoise._planning._over_time import AlongTime, period_errors, series_of, series_plan, up_to
from leastnoise._planning._plan_cache import plan_in
from leastnoise._planning._planned import (
    attributes_of_public_counts,
    compare,
    error_over_complete,
    expected_seconds,
    looks,
    per_cell,
    plan,
    planned,
    protected,
    with_max_rows,
    workload_to_plan,
)
from leastnoise._planning._targets import (
    OBJECTIVES,
    SMALL,
    Least,
    Price,
    Reached,
    answering,
    goals_of,
    of_size,
    price,
    prices,
    reached,
    reached_by_means,
    smallest,
    stated,
)
