"""The conformance kit of planners: checks of every planner in the registry."""

import sys

import pytest

from contracts.strategies import PAGE, page
from error.plans import LeastSquares
from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._error import evaluate_plan
from leastnoise._fitting import fit_noise_scales
from leastnoise._strategies import PLANNERS, NotApplicable, PlanningProblem
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP, covers
from leastnoise._trusted.measurements import cost
from leastnoise._workload import marginals, matrix, queries

DOMAIN = Domain(
    a=Coded(3), b=Integers(0, 5), c=Integers(0, 2), measures={"pay": Measure("pay", 0, 9)}
)
WORKLOADS = {
    "tables": marginals(DOMAIN, upto=2),
    "prefix": queries(DOMAIN, b="prefix", weight="1/2"),
    "product": queries(DOMAIN, b="all_ranges", c="prefix", weight="1/3"),
    "mixed": marginals(DOMAIN, ways=2)
    + queries(DOMAIN, b="prefix", weight=2)
    + queries(DOMAIN, a="identity", c="all_ranges"),
    "cells and sums of ranges": queries(DOMAIN, a="identity")
    + queries(DOMAIN, b="prefix", sum="pay"),
    "sums": marginals(DOMAIN, ways=1) + marginals(DOMAIN, ways=1, of=["a", "c"], sum="pay"),
    "any numbers": queries(DOMAIN, b=matrix([[1, -2, 0, 1, 0, 0], [0, 1, 1, 0, 0, 3]]))
    + queries(DOMAIN, a="prefix", sum="pay"),
}
NOISES = {
    "pure": (PureDP(2), Noise.DISCRETE_LAPLACE),
    "gaussian": (ZCDP("1/2"), Noise.DISCRETE_GAUSSIAN),
    "rounded": (ApproxDP("1/20", "1e-6"), Noise.ROUNDED_GAUSSIAN),
}


def proposed(name, workload, budget, noise):
    """Return the proposal of a planner; None if it does not apply."""
    try:
        return PLANNERS[name].strategy(PlanningProblem(workload, Privacy(budget), noise))
    except NotApplicable:
        return None


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("name", PLANNERS)
def test_proposal_keeps_budget_and_promised_error(name, kind):
    budget, noise = NOISES[kind]
    for workload in WORKLOADS.values():
        strategy = proposed(name, workload, budget, noise)
        if strategy is None:
            continue
        assert strategy.name == name
        measured = fit_noise_scales(DOMAIN, Privacy(budget), noise, strategy.blocks)
        assert covers(budget, cost(measured))
        expected_error = evaluate_plan(
            workload, measured, name, details=strategy.details
        ).expected_error()
        assert expected_error.lower_bound <= expected_error.total_squared_error * (1 + 1e-9)
        assert expected_error.total_squared_error == pytest.approx(
            LeastSquares(measured).error(workload), rel=2e-3
        )


def clear_planner_caches(_=None):
    """Clear the caches of all planners, so that they search again."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("leastnoise._strategies", "leastnoise._families")):
            for value in vars(module).values():
                getattr(value, "cache_clear", lambda: None)()


@pytest.mark.parametrize("name", PLANNERS)
def test_planner_proposes_the_same_twice(name):
    first_proposal, second_proposal = (
        proposed(name, WORKLOADS["prefix"], *NOISES["pure"])
        for _ in map(clear_planner_caches, range(2))
    )
    assert (first_proposal and [weight for _, weight in first_proposal.blocks]) == (
        second_proposal and [weight for _, weight in second_proposal.blocks]
    )


def test_page_of_strategies_has_rows_of_the_registry():
    """A new strategy may be missing until a release; ``make release-check`` asks for it."""
    text = PAGE.read_text(encoding="utf-8")
    current = page(text).splitlines()
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(lines) > 10
    assert [line for line in text.splitlines() if line not in current] == []


@pytest.mark.parametrize("name", PLANNERS)
def test_planner_record_describes_limits_and_choice(name):
    planner, short, long = (
        PLANNERS[name],
        *(queries(Domain(a=Integers(0, last)), a="prefix") for last in (3, 1023)),
    )
    assert planner.name == name
    assert planner.measures
    assert planner.made_for
    assert (
        planner.seconds(short)
        <= planner.seconds(long)
        <= (planner.thorough_seconds or planner.seconds)(long)
    )
    for noise in Noise:
        if noise.norm not in planner.norms:
            with pytest.raises(
                NotApplicable, match=r"never worse|; (for pure differential privacy )?choose \w+"
            ):
                planner.strategy(PlanningProblem(short, Privacy(PureDP(1)), noise))
