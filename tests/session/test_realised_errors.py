"""Predicted against simulated error for every strategy, every budget and several workloads."""

from functools import cache

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP
from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._mechanisms import candidates
from leastnoise._planner import PLANNERS
from leastnoise._table import Table
from leastnoise._workload import marginals, queries
from simulated import realised

DOMAIN = Domain(a=Coded(3), b=Integers(0, 15), c=Coded(2), measures={"pay": Measure("pay", 0, 40)})
WORKLOADS = {
    "marginals": marginals(DOMAIN, upto=2),
    "ranges": queries(DOMAIN, b="all_ranges", weight="1/2"),
    "mixed": marginals(DOMAIN, ways=2) + queries(DOMAIN, b="prefix", weight=3) + marginals(DOMAIN, ways=1, of=["a", "c"], sum="pay"),
}
BUDGETS: dict[str, Budget] = {"pure": PureDP("1/2"), "gaussian": ZCDP("1/3"), "approximate": ApproxDP(1, "1e-6")}
# Fixed seeds; a correct plan would fail one of all these cases with probability below 1e-4 had they been drawn anew.
RUNS, SIGMAS = 200, 6


@cache
def people() -> tuple[Table, dict[str | None, np.ndarray]]:
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, DOMAIN.kind(name).size, 500) for name in DOMAIN.names}
    pay = rng.integers(0, 41, 500)
    flat = np.ravel_multi_index([codes[name] for name in DOMAIN.names], DOMAIN.shape)
    cubes = {measure: np.bincount(flat, weights, DOMAIN.size).reshape(DOMAIN.shape) for measure, weights in ((None, None), ("pay", pay))}
    return Table(DOMAIN, codes, {"pay": pay}), cubes


# They have every budget and every workload, and every strategy but `union` can be used in one of them.
CASES = [("pure", "mixed"), ("gaussian", "ranges"), ("approximate", "marginals"), ("approximate", "mixed")]


@pytest.mark.parametrize("strategy", PLANNERS)
def test_realised_error_is_the_promised_one(strategy: str) -> None:
    """Estimates are those of dense least squares, whose error is the promised one exactly, and by the noise that the kernel draws.

    In the first two cases in which the strategy can be used, beginning elsewhere than the one before it.
    """
    (table, cells), used, first = people(), 0, [*PLANNERS].index(strategy) % len(CASES)
    for budget, workload in [*CASES[first:], *CASES[:first]]:
        found = [*candidates(WORKLOADS[workload], Privacy(BUDGETS[budget]), strategy)]
        assert all(candidate.plan or candidate.reason for candidate in found)
        for candidate in found:
            if candidate.plan is None:
                continue
            made, promised = realised(WORKLOADS[workload], candidate.plan.measured(), table, cells, RUNS), candidate.plan.expected_error()
            assert made.expected == pytest.approx(promised.total_squared_error, rel=1e-6)
            assert abs(np.mean(made.errors) - made.expected) < SIGMAS * made.spread, (candidate.noise, np.mean(made.errors) / made.expected)
            assert made.spread < 0.15 * made.expected
        used += any(candidate.plan and candidate.strategy == strategy for candidate in found)
        if used == 2:
            break
    assert used or strategy == "union"
