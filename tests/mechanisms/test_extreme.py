"""Extreme weights and budgets are planned without warnings, or refused."""

import math

import pandas as pd
import pytest

import leastnoise as ln

WORKLOADS = {
    "weights far apart": lambda domain: (
        ln.queries(domain, x="identity", weight="1/1000000")
        + ln.queries(domain, y="prefix", weight=1_000_000)
    ),
    "sums far apart": lambda domain: (
        ln.queries(domain, x="identity", sum="pay", weight="1/1000000000")
        + ln.queries(domain, x="prefix", y="identity")
    ),
    "ranges of next to no weight": lambda domain: (
        ln.queries(domain, x="all_ranges", weight="1/1000000000") + ln.queries(domain, y="identity")
    ),
}
CASES = [(name, budget) for name in WORKLOADS for budget in (ln.PureDP(20), ln.ZCDP("1/1000"))]
CASES += [("weights far apart", ln.PureDP("1/1000")), ("sums far apart", ln.ZCDP(200))]


@pytest.mark.parametrize(("name", "budget"), CASES, ids=repr)
def test_extreme_weights_are_planned_without_a_warning(name, budget):
    domain = ln.Domain(x=ln.Coded(12), y=ln.Coded(9), measures={"pay": ln.Measure("pay", 0, 10**6)})
    # Every warning is an error in these tests.
    plan = ln.plan(WORKLOADS[name](domain), budget)
    expected_error = plan.expected_error()
    assert 0 < expected_error.total_squared_error < math.inf
    assert expected_error.total_squared_error >= expected_error.lower_bound * (1 - 1e-9)


@pytest.mark.parametrize("strategy", ["identity", "covering"])
def test_noise_beyond_doubles_is_refused_unmeasured(strategy):
    with pytest.raises(
        ln.InputError, match=r"The budget is so large that the noise of .* vanishes"
    ):
        ln.plan(
            ln.marginals(ln.Domain(x=ln.Coded(2), y=ln.Coded(4)).as_complete(), ways=1),
            ln.PureDP(740),
            strategy=strategy,
        )


@pytest.mark.parametrize("budget", [ln.PureDP(3000), ln.ZCDP(90_000)], ids=repr)
def test_noise_of_a_paid_step_may_vanish(budget):
    domain = ln.Domain(x=ln.Coded(2), y=ln.Coded(3), z=ln.Integers(0, 11))
    rows = pd.DataFrame({"x": [0, 1] * 60, "y": [0, 1, 2] * 40, "z": [*range(12)] * 10})
    plan = ln.plan(ln.marginals(domain, ways=2), budget, strategy="model")
    table = ln.release(plan, rows, seed=1).tables[0]
    assert table.answer.reshape(-1) == pytest.approx([20] * 6, abs=0.2)
