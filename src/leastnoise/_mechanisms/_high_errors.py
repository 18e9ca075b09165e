"""Find tables whose error is high because they share the budget with others."""

import math
from contextlib import suppress
from fractions import Fraction

from leastnoise._error import lower_bound
from leastnoise._families import partition_groups
from leastnoise._mechanisms._planning_time import noises_to_plan, planning_seconds
from leastnoise._mechanisms._search import Search
from leastnoise._mechanisms._strategy_choice import choose_plan
from leastnoise._plan import Plan
from leastnoise._trusted.check import InputError
from leastnoise._workload import Workload

_CHECK_SHARE = 1 / 10  # part of the seconds for the check of tables with high errors
# A table has a high error above this multiple of its error in a separate plan.
_HIGH_ERROR_RATIO = 2.0
_VISIBLE_ERROR = 1e-3  # with a smaller standard error, no published number differs from the truth
_MOST_CROWDED = 24  # the most tables that are compared with separate plans


def tables_with_high_error(plan: Plan, search: Search) -> dict[str, float]:
    """Return tables' ratios to a separate plan's error, where it is above two.

    The result maps the names of these tables to the ratio of the two errors. The separate plan
    answers one table with an equal share of the budget.
    """
    # Only tables whose lower bounds allow a larger ratio are planned, in the order of the largest
    # possible ratio. This takes a tenth of the time.
    products = plan.workload.products
    if not 2 <= len(products) <= _MOST_CROWDED:
        return {}
    even_budget = plan.privacy.scaled(Fraction(1, len(products)))
    doubtful = []
    for product, table in zip(products, plan.expected_error().tables, strict=True):
        single_workload = Workload(plan.domain, (product,))
        least = min(
            lower_bound(single_workload, even_budget, noise)
            for noise in noises_to_plan(even_budget)
        ) / (product.importance * product.rows)
        # If neighbours replace rows, the total is public, and its least error is 0.
        is_in_doubt = table.rmse > _HIGH_ERROR_RATIO * math.sqrt(least) > 0
        if is_in_doubt and table.rmse > _VISIBLE_ERROR:
            doubtful.append((table.rmse / math.sqrt(least), table, single_workload))
    ratios: dict[str, float] = {}
    seconds_left = search.seconds * _CHECK_SHARE
    for _, table, single_workload in sorted(doubtful, key=lambda entry: -entry[0]):
        if seconds_left <= 0:
            break
        # For disjoint sums of cells, the best strategy is to measure these sums.
        is_disjoint = all(
            partition_groups(operator) is not None
            for operator in single_workload.products[0].operators
        )
        if is_disjoint:
            strategy = "marginals"
        else:
            strategy = "auto"
        separate_search = Search(
            strategy, seconds=search.seconds * _CHECK_SHARE / 2, now=search.now
        )
        seconds_left -= planning_seconds(single_workload, even_budget, separate_search)
        with suppress(InputError):
            tried, _ = choose_plan(single_workload, even_budget, separate_search)
            ratio = table.rmse / tried.expected_error().tables[0].rmse
            if ratio > _HIGH_ERROR_RATIO:
                ratios[table.name] = ratio
    return ratios
