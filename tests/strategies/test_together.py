"""Counts and sums that are measured together: when they are chosen, and their errors."""

from collections.abc import Iterable

import numpy as np
import pytest

from leastnoise._domain import Categories, Coded, Domain, Integers, Measure
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms import Search, choose_plan, time_requests
from leastnoise._plan import Plan
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP, covers
from leastnoise._trusted.measurements import cost
from leastnoise._workload import Workload, level, marginals, mean_queries, queries
from strategies.proposals import error_of, total_squared_error

KINDS = {"cells": Coded(5), "age": Integers(0, 15)}


def domain(low: int = 0, high: int = 1000) -> Domain:
    return Domain(
        KINDS, measures={"pay": Measure("pay", low, high), "tips": Measure("tips", 0, 10)}
    )


def planned(
    workload: Workload, budget: Budget, strategy: str = "auto", neighbours: str = "add_remove"
) -> Plan:
    plan, _ = choose_plan(workload, Privacy(budget, neighbours), Search(strategy, 2.0))  # type: ignore[arg-type]
    measured = plan.measured()
    assert covers(budget, cost(measured))
    expected_error = plan.expected_error()
    assert expected_error.lower_bound <= expected_error.total_squared_error * (1 + 1e-9)
    assert total_squared_error(workload, measured) == pytest.approx(
        expected_error.total_squared_error
    )
    return plan


def at_ends(plan: Plan) -> set[str | None]:
    return {block.measure for block in plan.measured().blocks if block.ends}


@pytest.mark.parametrize(("low", "high"), [(0, 1000), (-400, 1200), (200, 1000), (-1000, 1000)])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_means_under_laplace_noise(low: int, high: int, neighbours: str) -> None:
    """One noise for v - low and high - v: a count has variance 4, a sum 2 low^2 + 2 high^2."""
    twice = 2 if neighbours == "replace" else 1
    plan = planned(
        mean_queries(domain(low, high), "pay", by=["cells"]), PureDP(1), neighbours=neighbours
    )
    assert at_ends(plan) == {"pay"}
    counts, sums = (table.rmse for table in plan.expected_error().tables)
    assert counts == pytest.approx(2 * twice, rel=1e-3)
    assert sums == pytest.approx(twice * (2 * (low**2 + high**2)) ** 0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "total"),
    [(0, 1000, ((5**0.5 + 1) / 2) ** 2), (-400, 1200, None), (-1000, 1000, 4.0)],
)
def test_gaussian_means_reach_the_lower_bound(low: int, high: int, total: float | None) -> None:
    """Measuring both ends reaches the bound; equal ends gain nothing."""
    plan = planned(mean_queries(domain(low, high), "pay", by=["cells"]), ZCDP("1/2"))
    expected_error = plan.expected_error()
    assert expected_error.total_squared_error == pytest.approx(expected_error.lower_bound, rel=2e-3)
    if total is not None:
        assert expected_error.total_squared_error / 5 == pytest.approx(total, rel=2e-3)


WORKLOADS = {
    "groups and tables": mean_queries(domain(), "pay", by=["cells"]) + marginals(domain(), upto=2),
    "two measures": mean_queries(domain(), "pay", by=["cells"])
    + mean_queries(domain(), "tips", by=["cells"]),
    "one of two measures": mean_queries(domain(), "pay", by=["cells"])
    + queries(domain(), age="identity", sum="tips"),
    "sums by more": mean_queries(domain(), "pay", by=["cells"])
    + queries(domain(), age="identity", sum="pay", weight=2),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("budget", [PureDP("1/100"), ZCDP("1/20000")], ids=["pure", "gaussian"])
def test_joint_counts_and_sums_reduce_error(name: str, budget: Budget) -> None:
    workload = WORKLOADS[name]
    for strategy in ("marginals", "workload"):
        plan = planned(workload, budget, strategy)
        assert "pay" in at_ends(plan)
        assert plan.expected_error().total_squared_error < 0.97 * error_of(
            strategy, workload, budget
        )


def test_joint_prefix_sums_use_a_strategy_for_counts() -> None:
    workload = queries(domain(), age="prefix") + queries(domain(), age="prefix", sum="pay")
    for budget in (PureDP(1), ZCDP("1/2")):
        plan = planned(workload, budget, "hierarchy")
        assert at_ends(plan) == {"pay"}
        assert plan.expected_error().total_squared_error < 0.8 * error_of(
            "hierarchy", workload, budget
        )
    assert planned(workload, ZCDP("1/2"), "gaussian_optimum").details.unit_bound == 0


def no_split_is_better(plan: Plan, strengths: Iterable[float], factor: float) -> None:
    """Check that the error is at most ``factor`` times the error of any other split."""
    total = plan.expected_error().total_squared_error
    for strength in strengths:
        blocks = [
            (block, float(1 / block.scale) * (strength if block.ends else 1))
            for block in plan.measured().blocks
        ]
        other = fit_noise_scales(plan.domain, plan.privacy, plan.measured().noise, blocks)
        assert total <= factor * total_squared_error(plan.workload, other)


def test_joint_error_is_at_most_that_of_any_split() -> None:
    plan = planned(WORKLOADS["groups and tables"], PureDP("1/100"), "marginals")
    no_split_is_better(plan, np.geomspace(1 / 8, 8, 13).tolist(), 1.002)


def test_separate_quantities_and_papers_stay_unchanged() -> None:
    alone = queries(domain(), cells="identity", sum="pay") + queries(domain(), age="identity")
    assert at_ends(planned(alone, PureDP(1))) == set()
    assert (
        at_ends(planned(mean_queries(domain(), "pay", by=["cells"]), PureDP(1), "workload_even"))
        == set()
    )


def test_time_of_a_plan_counts_both_ways() -> None:
    """What is tried is planned apart and together, so each way gets half."""
    for workload, ways in ((WORKLOADS["two measures"], 2), (marginals(domain(), ways=1), 1)):
        requests = {
            request.planner.name: request
            for request in time_requests(workload, Privacy(ZCDP(1)), 10.0)
        }
        seconds = PLANNERS["identity"].seconds(workload)
        assert requests["identity"].least == pytest.approx(ways * seconds)


ODD = {
    "one total beside cells": lambda one: mean_queries(one, "pay") + marginals(one, ways=1),
    "means beside an overall mean": lambda one: (
        mean_queries(one, "pay", by=["cells"]) + mean_queries(one, "tips")
    ),
    "totals alone": lambda one: marginals(one, ways=0),
    "groups of one cell": lambda one: (
        mean_queries(one, "pay", by=["one"])
        + mean_queries(one, "tips")
        + queries(one, age="prefix")
    ),
}
GAUSSIAN = [ApproxDP(1, "1e-6"), ZCDP("1/2")] * 2


@pytest.mark.parametrize(
    ("name", "budget"),
    [*((name, PureDP(1)) for name in ODD), *zip(ODD, GAUSSIAN, strict=True)],
    ids=str,
)
def test_totals_and_one_cell_groups_are_planned(name: str, budget: Budget) -> None:
    kinds = {"cells": Coded(4), "age": Integers(0, 2), "one": Coded(1)}
    few = Domain(kinds, measures={"pay": Measure("pay", 0, 100), "tips": Measure("tips", 0, 10)})
    planned(ODD[name](few), budget)


def test_parts_beside_means_have_own_tables() -> None:
    """Means, medians and counts by county need separate tables and a good split."""
    towns = Categories(
        [str(town) for town in range(60)],
        levels={"county": {str(town): str(town % 4) for town in range(60)}},
    )
    kinds = {"town": towns, "persons": Integers(1, 4), "income": Integers(0, 39)}
    few = Domain(kinds, measures={"pay": Measure("pay", 0, 1000)})
    county = {"town": level("county")}
    parts = (
        mean_queries(few, "pay", by=[county])
        + queries(few, income="prefix", **county, weight=2)
        + queries(few, town="identity")
    )
    workload, budget = parts + queries(few, persons="identity", **county), PureDP(2)
    plan = planned(workload, budget, "union")
    total = plan.expected_error().total_squared_error
    assert (
        total < 0.6 * planned(workload, budget, "p_identity").expected_error().total_squared_error
    )
    assert at_ends(plan) == {"pay"}
    no_split_is_better(plan, (0.5, 0.8, 0.95, 1.05, 1.25, 2), 1 + 1e-6)


@pytest.mark.parametrize(
    "budget",
    [PureDP(1), PureDP(100), ZCDP("1/2"), ZCDP(50)],
    ids=["pure", "large pure", "rho", "large rho"],
)
def test_parts_share_a_nearly_noiseless_budget(budget: Budget) -> None:
    """No other split is far better at a budget so large that most noise is 0."""
    few = Domain(
        {"sex": Coded(2), "pay": Integers(0, 89)}, measures={"pay": Measure("pay", 0, 90_000)}
    )
    workload = mean_queries(few, "pay", by=["sex"]) + queries(few, sex="identity", pay="prefix")
    plan = planned(workload, budget, "identity")
    assert at_ends(plan) == {"pay"}
    no_split_is_better(plan, (1 / 16, 1 / 4, 1 / 2, 2, 4, 16), 1.1)
