"""Strategies that users write: checks, costs, plans and the errors of releases."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._error import block_variance
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import covers
from leastnoise._trusted.check import InputError
from leastnoise._trusted.measurements import cost

CELLS = 12
DOMAIN = ln.Domain(
    sex=["F", "M"], age=ln.Integers(0, CELLS - 1), measures={"pay": ln.Measure("pay", 0, 50)}
).as_complete()
TREE = np.vstack([np.ones((1, CELLS)), np.repeat(np.eye(3), 4, axis=1), 2 * np.eye(CELLS)]).astype(
    np.int64
)
PREFIX = ln.queries(DOMAIN, age="prefix")
MIXED = (
    PREFIX
    + ln.queries(DOMAIN, sex="identity", age="identity", weight=3)
    + ln.mean_queries(DOMAIN, "pay", by=["sex"])
)


@pytest.fixture(scope="module")
def rows():
    """Return 600 random rows."""
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "sex": random.choice(["F", "M"], 600),
            "age": random.integers(0, CELLS, 600),
            "pay": random.integers(0, 51, 600),
        }
    )


@pytest.mark.parametrize(
    "budget", [ln.PureDP("0.6"), ln.ApproxDP("0.9", "1e-6"), ln.ZCDP("0.3")], ids=repr
)
def test_user_strategy_error_is_least_squares(budget):
    plan = ln.plan(PREFIX, budget, strategy=TREE)
    measurements = plan.measured()
    exact = np.trace(
        np.tri(CELLS) @ np.linalg.inv(TREE.T @ TREE) @ np.tri(CELLS).T
    ) * block_variance(measurements, measurements.blocks[0])
    assert plan.strategy == "own"
    assert plan.expected_error().total_squared_error == pytest.approx(exact)
    height = (np.abs(TREE) ** measurements.noise.norm).sum(axis=0).max() ** (
        1 / measurements.noise.norm
    )
    (cells,) = ln.plan(PREFIX, budget, strategy="identity").measured().blocks
    assert float(measurements.blocks[0].scale) == pytest.approx(height * float(cells.scale))
    assert covers(plan.privacy.budget, cost(measurements))


def test_registered_function_gives_the_same_plan():
    by_name = ln.plan(MIXED, ln.ZCDP(1), strategy="hierarchy")
    plan = ln.plan(MIXED, ln.ZCDP(1), strategy=PLANNERS["hierarchy"].propose)
    assert plan.expected_error() == by_name.expected_error()
    problems = []
    ln.plan(
        PREFIX,
        ln.PureDP(1),
        strategy=lambda problem: problems.append(problem) or {"age": TREE * problem.norm},
    )
    assert [(problem.norm, problem.workload) for problem in problems] == [(1, PREFIX)]


@pytest.mark.parametrize(
    "strategy",
    [TREE, TREE.tolist(), TREE.astype(float), {"age": TREE}, lambda _: TREE],
    ids=["integer array", "lists", "float array", "by attribute", "function"],
)
def test_every_form_of_user_strategy_gives_one_plan(strategy):
    assert ln.plan(PREFIX, ln.PureDP(1), strategy=strategy) == ln.plan(
        PREFIX, ln.PureDP(1), strategy={"age": ln.matrix(TREE.tolist())}
    )


def test_real_strategies_are_rounded_and_cost_integers():
    random = np.random.default_rng(0)
    real = np.vstack([np.eye(CELLS), random.random((3, CELLS))])
    plan = ln.plan(PREFIX, ln.ZCDP(1), strategy=real)
    assert covers(plan.privacy.budget, cost(plan.measured()))
    covariance = np.linalg.inv(real.T @ real) * (real**2).sum(axis=0).max()
    exact = np.trace(np.tri(CELLS) @ covariance @ np.tri(CELLS).T) / 2
    assert plan.expected_error().total_squared_error == pytest.approx(exact, rel=1e-3)
    assert ln.plan(
        PREFIX, ln.ZCDP(1), strategy=1000 * real
    ).expected_error().total_squared_error == pytest.approx(exact, rel=1e-3)


def test_user_strategy_merges_cells_it_cannot_separate():
    edges = [0, 10, 500, 501, 3000, 5000]
    pairs = [(low, high - 1) for low, high in pairwise(edges)]
    runs = np.array([[low <= cell <= high for cell in range(5000)] for low, high in pairs])
    workload = ln.queries(
        ln.Domain(age=ln.Integers(0, 4999)), age=ln.ranges([*pairs, (0, 499), (0, 4999)])
    )
    plans = [
        ln.plan(workload, ln.PureDP(1), strategy=strategy)
        for strategy in (runs, runs.astype(int), {"age": ln.ranges(pairs)})
    ]
    exact = 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2
    assert [plan.expected_error().total_squared_error for plan in plans] == pytest.approx(
        [exact * (5 + 2 + 5)] * 3
    )
    (table,) = ln.release(plans[0], pd.DataFrame({"age": [3, 499, 500, 4999]}), seed=1).tables
    assert (table.low <= [1, 1, 1, 0, 1, 2, 4]).all()
    assert (table.high >= [1, 1, 1, 0, 1, 2, 4]).all()
    with pytest.raises(InputError, match="determine"):
        ln.plan(ln.queries(workload.domain, age=ln.ranges([(0, 5)])), ln.PureDP(1), strategy=runs)


def test_user_strategy_serves_targets_and_objectives(rows):
    workload = PREFIX.within(margin=40) + ln.queries(DOMAIN, sex="identity").within(margin=5)
    plan = ln.plan(workload, ln.Least("rho"), strategy={"age": TREE})
    worst = ln.plan(workload, plan.privacy, strategy={"age": TREE}, objective="worst")
    assert plan.strategy == "own"
    assert worst.strategy == "own"
    first, second = ln.release(plan, rows, seed=1).tables
    assert first.largest_margin <= 40
    assert second.largest_margin <= 5
    (candidate,) = (
        candidate
        for candidate in ln.compare(PREFIX, ln.PureDP(1), custom_strategy=TREE)
        if candidate.strategy == "own"
    )
    assert (
        candidate.total
        == ln.plan(PREFIX, ln.PureDP(1), strategy=TREE).expected_error().total_squared_error
    )


@pytest.mark.usefixtures("kept_plans")
def test_user_strategy_does_not_reuse_cached_plans():
    first, second = (
        ln.plan(PREFIX, ln.PureDP(1), strategy=strategy)
        for strategy in (TREE, np.eye(CELLS, dtype=int))
    )
    assert first != second
    assert ln.Plan.from_json(first.to_json()) == first


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (None, "strategy must be 'auto', a name, an array of numbers"),
        (3, "strategy must be 'auto', a name"),
        (
            lambda _: 1 / 0,
            "The function given as strategy failed: ZeroDivisionError: division by zero",
        ),
        (
            lambda: TREE,
            "failed: TypeError: .* It is called with one argument, the planning problem",
        ),
        (lambda _: ln.queries(DOMAIN, zip="prefix"), "^an attribute of a query must be"),
        ({}, "got 'an empty mapping'"),
        (
            {"sex": np.eye(2)},
            "an attribute of the strategy must be an attribute of the workload: age; got 'sex'",
        ),
        ({"zip": np.eye(2)}, "an attribute of the workload: age; got 'zip'"),
        (TREE[:, :5], "12 columns, one a cell; got '16 x 5'"),
        (
            np.ones(CELLS),
            (
                "an array of numbers \\(queries x cells\\), an operator or a query set; got "
                "'float64 of shape"
            ),
        ),
        (np.zeros((2, CELLS)), "measures nothing"),
        (np.full((2, CELLS), np.nan), "finite numbers"),
        (np.eye(CELLS) * 1j, "an array of numbers"),
        ([["a"] * CELLS], "an array of numbers"),
        ([[1], [2, 3]], "rows of different lengths"),
        (np.full((1, CELLS), 2**60), "whole numbers between -2\\^53 and 2\\^53"),
        (np.eye(CELLS, dtype=np.int64) * 2**52, "too large for exact arithmetic"),
        ({"age": "spiral"}, "query set on age"),
        (lambda _: None, "an array of numbers"),
        (object(), "an array of numbers"),
        (np.ones((1, CELLS)), "The measurements do not determine age:prefix"),
    ],
)
def test_invalid_user_strategy_is_refused(strategy, message):
    with pytest.raises(InputError, match=message):
        ln.plan(PREFIX, ln.PureDP(1), strategy=strategy)


def test_single_array_needs_a_single_attribute():
    with pytest.raises(
        InputError,
        match="a mapping from attributes to arrays; got 'one array for 2 attributes \\(sex, "
        "age\\)'",
    ):
        ln.plan(MIXED, ln.PureDP(1), strategy=TREE)


def test_user_strategy_may_miss_unqueried_cells():
    workload = ln.queries(DOMAIN, sex="identity", age=ln.ranges([(0, 3), (4, 11)])) + ln.queries(
        DOMAIN, age=ln.ranges([(0, 3)])
    )
    plan = ln.plan(workload, ln.PureDP(1), strategy={"age": ln.ranges([(0, 3), (4, 11)])})
    # One table of four sums, each of them with the whole budget.
    first, second = plan.expected_error().tables
    assert second.rmse == pytest.approx(2**0.5 * first.rmse)
    assert first.rmse == pytest.approx(
        ln.plan(ln.queries(DOMAIN, sex="identity"), ln.PureDP(1)).expected_error().tables[0].rmse
    )
