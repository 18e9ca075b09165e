"""Promised against true error for every strategy, every budget and several workloads."""

from functools import cache

import numpy as np
import pytest

import leastnoise as ln
from accuracy.plans import LeastSquares
from leastnoise._accounting import Privacy
from leastnoise._estimate import Estimate
from leastnoise._kernel import SeededEntropy, simulate
from leastnoise._mechanisms import candidates
from leastnoise._plan import Plan
from leastnoise._planner import PLANNERS
from leastnoise._table import Table

DOMAIN = ln.Domain(a=ln.Coded(3), b=ln.Integers(0, 15), c=ln.Coded(2), measures={"pay": ln.Measure("pay", 0, 40)})
RANGES = ln.queries(DOMAIN, b="all_ranges", weight="1/2")
MIXED = ln.marginals(DOMAIN, ways=2) + ln.queries(DOMAIN, b="prefix", weight=3) + ln.marginals(DOMAIN, ways=1, of=["a", "c"], sum="pay")
# They have every kind of budget and of workload, and every strategy but `union` can be used in one of them.
CASES = [
    (ln.PureDP("1/2"), MIXED),
    (ln.ZCDP("1/3"), RANGES),
    (ln.ApproxDP(1, "1e-6"), ln.marginals(DOMAIN, upto=2)),
    (ln.ApproxDP(1, "1e-6"), MIXED),
]


@cache
def people() -> Table:
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, DOMAIN.kind(name).size, 500) for name in DOMAIN.names}
    return Table(DOMAIN, codes, {"pay": rng.integers(0, 41, 500)})


def error_of_dense_least_squares(plan: Plan) -> float:
    """Of the importance of each query, after a look that two estimates of the package are those of an explicit matrix."""
    made, squares = plan.measured(), LeastSquares(plan.measured())
    first, second = (simulate(made, people(), SeededEntropy(seed)) for seed in range(2))
    for product in plan.workload:
        for one in (Estimate(first), Estimate(first).like(second)):
            exact = squares.answers(product, one.observation.values)
            np.testing.assert_allclose(one.values(product).reshape(-1), exact, rtol=1e-6, atol=1e-6)
    return squares.error(plan.workload)


@pytest.mark.parametrize("strategy", PLANNERS)
def test_estimates_are_dense_least_squares_whose_error_is_the_promised_one(strategy: str) -> None:
    """In the first two cases in which the strategy can be used, beginning elsewhere than the one before it."""
    used, first = 0, [*PLANNERS].index(strategy) % len(CASES)
    for budget, workload in [*CASES[first:], *CASES[:first]]:
        found = [*candidates(workload, Privacy(budget), strategy)]
        assert all(candidate.plan or candidate.reason for candidate in found)
        for plan in (candidate.plan for candidate in found if candidate.plan):
            assert error_of_dense_least_squares(plan) == pytest.approx(plan.expected_error().total_squared_error, rel=1e-6)
        used += any(candidate.plan and candidate.strategy == strategy for candidate in found)
        if used == 2:
            break
    assert used or strategy == "union"
