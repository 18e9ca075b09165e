"""The plan: the workload, the measured queries, and expected errors.

The package also reads plans, measurements and observations from JSON that any version of the
program wrote.
"""

from leastnoise._plan._bounds_plan import (
    COVERS,
    RISK,
    ROWS_OF_UNIT,
    BoundsPlan,
    SearchPlan,
    candidate_edges,
    plan_bounds,
    plan_max_rows,
    read_search_plan,
)
from leastnoise._plan._categories import CategoryPlan, is_search_plan, plan_categories
from leastnoise._plan._details import (
    NO_DETAILS,
    AdaptiveDetails,
    PlanDetails,
    ReferencePlan,
    SeriesDetails,
    Step,
    StepChoice,
    Steps,
)
from leastnoise._plan._earlier_measurements import (
    EarlierRelease,
    HasMeasurements,
    check_domain,
    check_earlier,
    check_noise,
    hidden_attributes,
    joint_measurements,
    joint_observation,
    with_earlier_measures,
)
from leastnoise._plan._frozen import FrozenDict, freeze
from leastnoise._plan._guard_cost import (
    checked_guard_share,
    guard_budget,
    with_guard,
    without_guard,
)
from leastnoise._plan._plan import (
    AdaptivePlan,
    ExpectedError,
    LinearPlan,
    Plan,
    SeriesPlan,
    TableError,
)
from leastnoise._plan._plan_json import (
    measurements_from_value,
    operator_from_json,
    parse_or_refuse,
    read_json,
    values_from_json,
)
from leastnoise._plan._versions import versions
