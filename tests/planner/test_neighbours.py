"""What a row added, removed or replaced really changes in a plan, tried for all rows: never more than claimed, no factor 2 is lost."""

from functools import cache

import numpy as np
import pytest

from leastnoise.accounting import ZCDP, Budget, Privacy, PureDP
from leastnoise.accuracy import joint_rows
from leastnoise.domain import Coded, Domain, Integers
from leastnoise.linop import Total, non_negative
from leastnoise.plan import Plan, cost
from leastnoise.session import PLANNERS, candidates
from leastnoise.workload import marginals, queries

DOMAIN = Domain(a=Coded(3), b=Integers(0, 3), c=Coded(2))
WORKLOADS = {"marginals": marginals(DOMAIN, upto=2), "mixed": marginals(DOMAIN, ways=2) + queries(DOMAIN, b="prefix", weight=2)}
BUDGETS: dict[str, Budget] = {"pure": PureDP("1/100"), "gaussian": ZCDP("1/20000")}
# Of the strategies that measure cells of tables the worst replacement is as bad as it can be: two rows that share no cell.
TABLES = {"pure": ("identity", "marginals", "cuboids", "cuboids_even"), "gaussian": ("identity", "hierarchy")}


@cache
def plan_of(strategy: str, budget: str, workload: str, neighbours: str) -> Plan | None:
    (found,) = candidates(WORKLOADS[workload], Privacy(BUDGETS[budget], neighbours), strategy)  # type: ignore[arg-type]
    return found.plan


def columns(plan: Plan) -> np.ndarray:
    """What a row in each cell adds to every measured query, over the query's noise scale."""
    rows = []
    for block in plan.blocks:
        along = {factor.attributes[0]: factor.operator for factor in block.factors}
        own = joint_rows([along.get(name, Total(DOMAIN.kind(name).size)) for name in DOMAIN.names]).astype(float)
        rows.append(own * (block.scaling() / float(block.scale))[:, None])
    return np.vstack(rows)


def claimed(plan: Plan) -> float:
    """Epsilon of Laplace noise, twice rho of Gaussian noise."""
    spent = cost(plan)
    return float(spent.epsilon) if plan.mechanism == "discrete_laplace" else 2 * float(spent.rho)  # type: ignore[union-attr]


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("strategy", PLANNERS)
def test_all_neighbours(strategy: str, budget: str, workload: str) -> None:
    added, replaced = (plan_of(strategy, budget, workload, neighbours) for neighbours in ("add_remove", "replace"))
    assert (added is None) == (replaced is None)
    if added is None or replaced is None:
        assert strategy not in ("identity", "workload", "marginals")
        return
    power = 1 if budget == "pure" else 2
    total = 0.01 if budget == "pure" else 0.0001  # the budget as epsilon, or as mu squared
    own = (np.abs(columns(added)) ** power).sum(axis=0)
    assert own.max() <= claimed(added) * (1 + 1e-12) <= total * (1 + 1e-9)
    assert own.max() >= total * (1 - 1e-3)  # the whole budget is noise that the worst row needs
    seen = columns(replaced)
    apart = (np.abs(seen[:, :, None] - seen[:, None, :]) ** power).sum(axis=0)
    assert apart.max() <= claimed(replaced) * (1 + 1e-12) <= total * (1 + 1e-9)
    signs = not all(non_negative(factor.operator) for block in replaced.blocks for factor in block.factors)
    factor = 2 if power == 1 or not signs else 4  # two columns of signed queries can be opposite to each other
    assert claimed(replaced) == pytest.approx(factor * (np.abs(seen) ** power).sum(axis=0).max(), rel=1e-6)
    errors = [plan.expected_error().total_squared_error for plan in (added, replaced)]
    assert errors[1] / errors[0] == pytest.approx(4 if power == 1 else factor, rel=1e-3)


@pytest.mark.parametrize(("budget", "strategy"), [(budget, strategy) for budget, known in TABLES.items() for strategy in known])
def test_of_tables_nothing_is_lost(budget: str, strategy: str) -> None:
    plan = plan_of(strategy, budget, "mixed", "replace")
    assert plan is not None
    seen = columns(plan)
    apart = (np.abs(seen[:, :, None] - seen[:, None, :]) ** (1 if budget == "pure" else 2)).sum(axis=0)
    assert apart.max() == pytest.approx(0.01 if budget == "pure" else 0.0001, rel=1e-3)
