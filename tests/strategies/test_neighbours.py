"""The cost of a plan against the changes by every row added, removed or replaced."""

import dataclasses
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Integers
from leastnoise._mechanisms import try_strategies
from leastnoise._plan import Plan
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
# Of the strategies that measure cells of tables the worst replacement is as bad as it can be: two
# rows that share no cell. Of characters, whose signs two rows share in part, each is bounded as if
# the rows had none in common.
LOOSE = {"fourier": 0.67, "fourier_even": 0.67, "union": 0.99}


@cache
def plan_of(strategy: str, budget: str, workload: str, neighbours: str) -> Plan | None:
    (candidate,) = try_strategies(
        WORKLOADS[workload], Privacy(BUDGETS[budget], neighbours), strategy
    )  # type: ignore[arg-type]
    return candidate.plan


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("strategy", PLANNERS)
def test_strategies_cost_at_most_their_claim(strategy: str, budget: str, workload: str) -> None:
    added, replaced = (
        plan_of(strategy, budget, workload, neighbours) for neighbours in ("add_remove", "replace")
    )
    assert (added is None) == (replaced is None)
    if added is None or replaced is None:
        assert strategy not in ("identity", "workload", "marginals")
        return
    power = 1 if budget == "pure" else 2
    total = 0.01 if budget == "pure" else 0.0001  # the budget as epsilon, or as mu squared
    cost = worst(added.measured())
    assert cost <= claimed(added.measured()) * (1 + 1e-12) <= total * (1 + 1e-9)
    assert cost >= total * (1 - 1e-3)  # the whole budget is noise that the worst row needs
    seen = units_of(replaced.measured())
    apart, most = worst(replaced.measured(), seen), claimed(replaced.measured())
    assert apart <= most * (1 + 1e-12) <= total * (1 + 1e-9)
    assert apart >= total * LOOSE.get(strategy, 1 - 1e-3)  # also of replaced rows
    errors = [plan.expected_error().total_squared_error for plan in (added, replaced)]
    ratio = float(most / (np.abs(seen) ** power).sum(axis=1).max()) ** (3 - power)
    assert errors[1] / errors[0] == pytest.approx(ratio, rel=1e-3)


def test_row_that_leaves_the_domain_counts() -> None:
    # The total is the same for all rows inside, and seen by a row that is replaced by one outside.
    contrasts = Block((Factor(("a",), Contrasts(3)),), Fraction(10))
    blocks = (Block((), Fraction(1)), contrasts)
    plan = Measurements(
        domain=DOMAIN,
        privacy=Privacy(ZCDP(9), "replace"),
        noise=Noise.DISCRETE_GAUSSIAN,
        blocks=blocks,
    )
    assert 2 * cost(plan).rho == 1 + Fraction(2, 300)  # type: ignore[union-attr]
    spent = 2 * cost(dataclasses.replace(plan, blocks=(contrasts,))).rho  # type: ignore[union-attr]
    assert Fraction(2, 100) <= spent <= Fraction(2, 100) + Fraction(1, 2**120)


def test_contrasts_of_many_attributes_lose_no_factor_two() -> None:
    # Alike attributes are counted, not told apart: all pairs of 40, and of 20 of four sizes, of two
    # cells and more.
    for sizes in ([2] * 40, [2, 3, 4, 5] * 5):
        workload = marginals(
            Domain({f"a{place}": Coded(size) for place, size in enumerate(sizes)}), ways=2
        )
        (added,), (replaced,) = (
            try_strategies(workload, Privacy(ZCDP("1/2"), n), "residual")
            for n in ("add_remove", "replace")
        )  # type: ignore[arg-type]
        assert 1.8 < replaced.total / added.total < 2.2


def test_units_of_many_rows_under_tiny_budgets() -> None:
    for rho in ("1e-12", "100"):
        one = Privacy(ZCDP(rho), "replace")
        many = Privacy(ZCDP(rho), "replace", "id", 5)
        (few,), (more,) = (
            try_strategies(WORKLOADS["marginals"], privacy, "residual") for privacy in (one, many)
        )
        assert few.plan is not None
        assert more.plan is not None
        assert covers(ZCDP(rho), more.plan.cost())
        if rho != "100":
            assert more.total == pytest.approx(25 * few.total, rel=1e-3)
