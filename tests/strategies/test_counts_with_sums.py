"""Counts and sums that are measured together: when they are chosen, and their errors."""

import numpy as np
import pytest

from leastnoise._domain import Categories, Coded, Domain, Integers, Measure
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms import Search, choose_plan, time_requests
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Privacy, PureDP, covers
from leastnoise._trusted.measurements import cost
from leastnoise._workload import level, marginals, mean_queries, queries
from strategies.proposals import error_of, total_squared_error

KINDS = {"cells": Coded(5), "age": Integers(0, 15)}


def domain(low=0, high=1000):
    """Return the domain with these bounds of pay."""
    return Domain(
        KINDS, measures={"pay": Measure("pay", low, high), "tips": Measure("tips", 0, 10)}
    )


def checked_plan(workload, budget, strategy="auto", neighbours="add_remove"):
    """Plan the workload, and check the cost and the error of the plan."""
    plan, _ = choose_plan(workload, Privacy(budget, neighbours), Search(strategy, 2.0))
    measured = plan.measured()
    assert covers(budget, cost(measured))
    expected_error = plan.expected_error()
    assert expected_error.lower_bound <= expected_error.total_squared_error * (1 + 1e-9)
    assert total_squared_error(workload, measured) == pytest.approx(
        expected_error.total_squared_error
    )
    return plan


def measures_at_ends(plan):
    """Return the measures whose counts and sums are measured together."""
    return {block.measure for block in plan.measured().blocks if block.ends}


@pytest.mark.parametrize(("low", "high"), [(0, 1000), (-400, 1200), (200, 1000), (-1000, 1000)])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_means_under_laplace_noise(low, high, neighbours):
    """Noise is added to v - low and high - v: a count has variance 4, a sum 2 low^2 + 2 high^2."""
    changed_rows = 2 if neighbours == "replace" else 1
    workload = mean_queries(domain(low, high), "pay", by=["cells"])
    plan = checked_plan(workload, PureDP(1), neighbours=neighbours)
    assert measures_at_ends(plan) == {"pay"}
    counts, sums = (table.rmse for table in plan.expected_error().tables)
    assert counts == pytest.approx(2 * changed_rows, rel=1e-3)
    assert sums == pytest.approx(changed_rows * (2 * (low**2 + high**2)) ** 0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "total"),
    [(0, 1000, ((5**0.5 + 1) / 2) ** 2), (-400, 1200, None), (-1000, 1000, 4.0)],
)
def test_gaussian_means_reach_the_lower_bound(low, high, total):
    """Measuring both ends reaches the bound; equal ends gain nothing."""
    plan = checked_plan(mean_queries(domain(low, high), "pay", by=["cells"]), ZCDP("1/2"))
    expected_error = plan.expected_error()
    assert expected_error.total_squared_error == pytest.approx(expected_error.lower_bound, rel=2e-3)
    if total is not None:
        assert expected_error.total_squared_error / 5 == pytest.approx(total, rel=2e-3)


MEANS = mean_queries(domain(), "pay", by=["cells"])
WORKLOADS = {
    "groups and tables": MEANS + marginals(domain(), upto=2),
    "two measures": MEANS + mean_queries(domain(), "tips", by=["cells"]),
    "one of two measures": MEANS + queries(domain(), age="identity", sum="tips"),
    "sums by age": MEANS + queries(domain(), age="identity", sum="pay", weight=2),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("budget", [PureDP("1/100"), ZCDP("1/20000")], ids=["pure", "gaussian"])
def test_joint_counts_and_sums_reduce_error(name, budget):
    workload = WORKLOADS[name]
    for strategy in ("marginals", "workload"):
        plan = checked_plan(workload, budget, strategy)
        assert "pay" in measures_at_ends(plan)
        separate_error = error_of(strategy, workload, budget)
        assert plan.expected_error().total_squared_error < 0.97 * separate_error


def test_joint_prefix_sums_use_a_strategy_for_counts():
    workload = queries(domain(), age="prefix") + queries(domain(), age="prefix", sum="pay")
    for budget in (PureDP(1), ZCDP("1/2")):
        plan = checked_plan(workload, budget, "hierarchy")
        assert measures_at_ends(plan) == {"pay"}
        separate_error = error_of("hierarchy", workload, budget)
        assert plan.expected_error().total_squared_error < 0.8 * separate_error
    assert checked_plan(workload, ZCDP("1/2"), "gaussian_optimum").details.unit_bound == 0


def assert_no_better_split(plan, strengths, factor):
    """Check that the error is at most ``factor`` times the error of any other split."""
    total = plan.expected_error().total_squared_error
    for strength in strengths:
        blocks = [
            (block, float(1 / block.scale) * (strength if block.ends else 1))
            for block in plan.measured().blocks
        ]
        split = fit_noise_scales(plan.domain, plan.privacy, plan.measured().noise, blocks)
        assert total <= factor * total_squared_error(plan.workload, split)


def test_joint_error_is_at_most_any_split_error():
    plan = checked_plan(WORKLOADS["groups and tables"], PureDP("1/100"), "marginals")
    assert_no_better_split(plan, np.geomspace(1 / 8, 8, 13).tolist(), 1.002)


def test_separate_quantities_and_papers_stay_unchanged():
    separate = queries(domain(), cells="identity", sum="pay") + queries(domain(), age="identity")
    assert measures_at_ends(checked_plan(separate, PureDP(1))) == set()
    assert measures_at_ends(checked_plan(MEANS, PureDP(1), "workload_even")) == set()


def test_time_of_a_plan_counts_both_ways():
    """Candidates are planned separately and together, so that each way gets half of the time."""
    for workload, ways in ((WORKLOADS["two measures"], 2), (marginals(domain(), ways=1), 1)):
        requests = {
            request.planner.name: request
            for request in time_requests(workload, Privacy(ZCDP(1)), 10.0)
        }
        seconds = PLANNERS["identity"].seconds(workload)
        assert requests["identity"].least == pytest.approx(ways * seconds)


SMALL = Domain(
    {"cells": Coded(4), "age": Integers(0, 2), "one": Coded(1)},
    measures={"pay": Measure("pay", 0, 100), "tips": Measure("tips", 0, 10)},
)
SMALL_WORKLOADS = {
    "one total and cells": mean_queries(SMALL, "pay") + marginals(SMALL, ways=1),
    "means and an overall mean": (
        mean_queries(SMALL, "pay", by=["cells"]) + mean_queries(SMALL, "tips")
    ),
    "totals alone": marginals(SMALL, ways=0),
    "groups of one cell": (
        mean_queries(SMALL, "pay", by=["one"])
        + mean_queries(SMALL, "tips")
        + queries(SMALL, age="prefix")
    ),
}
GAUSSIAN = [ApproxDP(1, "1e-6"), ZCDP("1/2")] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "budget"),
    [
        *((name, PureDP(1)) for name in SMALL_WORKLOADS),
        *zip(SMALL_WORKLOADS, GAUSSIAN, strict=True),
    ],
    ids=str,
)
def test_totals_and_one_cell_groups_are_planned(name, budget):
    checked_plan(SMALL_WORKLOADS[name], budget)


def test_parts_beside_means_have_own_tables():
    """Means, medians and counts by county need separate tables and a good split."""
    towns = Categories(
        [str(town) for town in range(60)],
        levels={"county": {str(town): str(town % 4) for town in range(60)}},
    )
    kinds = {"town": towns, "persons": Integers(1, 4), "income": Integers(0, 39)}
    domain = Domain(kinds, measures={"pay": Measure("pay", 0, 1000)})
    county = {"town": level("county")}
    workload = mean_queries(domain, "pay", by=[county])
    workload += queries(domain, income="prefix", **county, weight=2)
    workload += queries(domain, town="identity")
    workload += queries(domain, persons="identity", **county)
    budget = PureDP(2)
    plan = checked_plan(workload, budget, "union")
    joint_plan = checked_plan(workload, budget, "p_identity")
    joint_error = joint_plan.expected_error().total_squared_error
    assert plan.expected_error().total_squared_error < 0.6 * joint_error
    assert measures_at_ends(plan) == {"pay"}
    assert_no_better_split(plan, (0.5, 0.8, 0.95, 1.05, 1.25, 2), 1 + 1e-6)


@pytest.mark.parametrize(
    "budget",
    [PureDP(1), PureDP(100), ZCDP("1/2"), ZCDP(50)],
    ids=["pure", "large pure", "rho", "large rho"],
)
def test_parts_share_a_nearly_noiseless_budget(budget):
    """No other split is far better at a budget so large that most noise is 0."""
    domain = Domain(
        {"sex": Coded(2), "pay": Integers(0, 89)}, measures={"pay": Measure("pay", 0, 90_000)}
    )
    workload = mean_queries(domain, "pay", by=["sex"])
    workload += queries(domain, sex="identity", pay="prefix")
    plan = checked_plan(workload, budget, "identity")
    assert measures_at_ends(plan) == {"pay"}
    assert_no_better_split(plan, (1 / 16, 1 / 4, 1 / 2, 2, 4, 16), 1.1)
