"""The frozen, serialisable plan: what is asked, what is measured for it, and the error that this promises."""

from leastnoise._plan._categories import CategoryPlan, is_category_plan, plan_categories
from leastnoise._plan._json import measurements_from_value, read, read_json, values_from_json
from leastnoise._plan._plan import Plan, Promise, TableError, guard_share, versions, with_guard, without_guard
