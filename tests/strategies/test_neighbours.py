"""The cost of a plan against the changes by every row added, removed or replaced."""

import dataclasses
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Integers
from leastnoise._mechanisms import try_strategies
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import ZCDP, Budget, Noise, Privacy, PureDP, covers
from leastnoise._trusted.linop import Contrasts
from leastnoise._trusted.measurements import Block, Factor, Measurements, cost
from leastnoise._workload import marginals, queries
from trusted.measurements.brute import claimed, units_of, worst

DOMAIN = Domain(a=Coded(3), b=Integers(0, 3), c=Coded(2))
WORKLOADS = {
    "marginals": marginals(DOMAIN, upto=2),
    "mixed": marginals(DOMAIN, ways=2) + queries(DOMAIN, b="prefix", weight=2),
}
BUDGETS: dict[str, Budget] = {"pure": PureDP("1/100"), "gaussian": ZCDP("1/20000")}
# Part of the budget that the worst replacement spends. With cells of tables it spends all: two rows
# share no cell. Characters of two rows share signs, and are bounded as if they shared none.
SPENT_SHARES = {"fourier": 0.67, "fourier_even": 0.67, "union": 0.99}


@cache
def plan_of(strategy, budget, workload, neighbours):
    (candidate,) = try_strategies(
        WORKLOADS[workload], Privacy(BUDGETS[budget], neighbours), strategy
    )
    return candidate.plan


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("strategy", PLANNERS)
def test_strategies_cost_at_most_their_claim(strategy, budget, workload):
    plan_of_added = plan_of(strategy, budget, workload, "add_remove")
    plan_of_replaced = plan_of(strategy, budget, workload, "replace")
    assert (plan_of_added is None) == (plan_of_replaced is None)
    if plan_of_added is None or plan_of_replaced is None:
        # Without a plan there is no cost. These strategies apply to every workload and budget.
        assert strategy not in ("identity", "workload", "marginals")
        return
    # The budget as epsilon, or as mu squared.
    total = 0.01 if budget == "pure" else 0.0001
    added = plan_of_added.measured()
    cost_of_added = worst(added)
    assert cost_of_added <= claimed(added) * (1 + 1e-12) <= total * (1 + 1e-9)
    assert cost_of_added >= total * (1 - 1e-3)

    replaced = plan_of_replaced.measured()
    changes = units_of(replaced)
    cost_of_replaced = worst(replaced, changes)
    assert cost_of_replaced <= claimed(replaced) * (1 + 1e-12) <= total * (1 + 1e-9)
    assert cost_of_replaced >= total * SPENT_SHARES.get(strategy, 1 - 1e-3)

    power = 1 if budget == "pure" else 2
    cost_of_one_row = float((np.abs(changes) ** power).sum(axis=1).max())
    error_of_added = plan_of_added.expected_error().total_squared_error
    error_of_replaced = plan_of_replaced.expected_error().total_squared_error
    ratio = float(claimed(replaced) / cost_of_one_row) ** (3 - power)
    assert error_of_replaced / error_of_added == pytest.approx(ratio, rel=1e-3)


def test_row_that_leaves_the_domain_counts():
    # The total changes only if a row of the domain is replaced by a row outside the domain.
    contrasts = Block((Factor(("a",), Contrasts(3)),), Fraction(10))
    blocks = (Block((), Fraction(1)), contrasts)
    plan = Measurements(
        domain=DOMAIN,
        privacy=Privacy(ZCDP(9), "replace"),
        noise=Noise.DISCRETE_GAUSSIAN,
        blocks=blocks,
    )
    assert 2 * cost(plan).rho == 1 + Fraction(2, 300)
    spent = 2 * cost(dataclasses.replace(plan, blocks=(contrasts,))).rho
    assert Fraction(2, 100) <= spent <= Fraction(2, 100) + Fraction(1, 2**120)


def test_contrasts_of_many_attributes_lose_no_factor_two():
    # All pairs of 40 attributes of one size, and of 20 attributes of four sizes.
    for sizes in ([2] * 40, [2, 3, 4, 5] * 5):
        domain = Domain({f"a{place}": Coded(size) for place, size in enumerate(sizes)})
        workload = marginals(domain, ways=2)
        (added,) = try_strategies(workload, Privacy(ZCDP("1/2"), "add_remove"), "residual")
        (replaced,) = try_strategies(workload, Privacy(ZCDP("1/2"), "replace"), "residual")
        assert 1.8 < replaced.total / added.total < 2.2


def test_units_of_many_rows_under_tiny_budgets():
    for rho in ("1e-12", "100"):
        workload = WORKLOADS["marginals"]
        of_rows = Privacy(ZCDP(rho), "replace")
        of_units = Privacy(ZCDP(rho), "replace", "id", 5)
        (row_candidate,) = try_strategies(workload, of_rows, "residual")
        (unit_candidate,) = try_strategies(workload, of_units, "residual")
        assert row_candidate.plan is not None
        assert unit_candidate.plan is not None
        assert covers(ZCDP(rho), unit_candidate.plan.cost())
        if rho != "100":
            # Five rows change five times as much: 5^2 times the variance.
            assert unit_candidate.total == pytest.approx(25 * row_candidate.total, rel=1e-3)
