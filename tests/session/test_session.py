"""Plans, comparisons and releases from Python: promised errors, and refusals before payment."""

from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import leastnoise as ln
from error.plans import LeastSquares
from leastnoise._estimation import Estimate
from leastnoise._mechanisms import try_strategies
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.table import Table

PEOPLE = pd.DataFrame(
    {"sex": ["F", "M", None] * 100, "age": [17, 30, 200] * 100, "income": [0.0, 250.0, -4.0] * 100}
)
DOMAIN = ln.Domain(
    {
        "sex": ln.Categories(["F", "M"]),
        "age": ln.Integers(17, 90),
        "income": ln.Bins(0, 100, 4, outside="clip"),
    }
)
WORKLOAD = ln.marginals(DOMAIN, upto=2, of=["sex", "age"])


def test_unused_columns_are_not_read_and_drop_no_row():
    domain = ln.Domain(
        {"sex": ["F", "M"], "age": ln.Integers(0, 1), "absent": ["x"]},
        measures={"pay": ln.Measure("also absent", 0, 100)},
    )
    plan = ln.plan(
        ln.marginals(domain, ways=1, of=["sex"]) + ln.marginals(domain, ways=0), ln.PureDP(50)
    )
    source = pd.DataFrame({"sex": ["F", "M", "M"], "age": [50, 60, 70]})
    assert ln.release(plan, source, seed=1).answers["answer"].round().tolist() == [1, 2, 3]
    total = ln.plan(ln.marginals(domain, ways=0), ln.PureDP(50))
    assert ln.release(total, source, seed=1).answers["answer"].round().tolist() == [3]


def test_two_private_releases_differ(tmp_path):
    plan = ln.plan(ln.marginals(DOMAIN, ways=2), ln.PureDP(1))
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP(2)))
    first, second = (ln.release(plan, PEOPLE, ledger=ledger) for _ in range(2))
    assert np.mean(first.tables[0].answer == second.tables[0].answer) < 0.5


def test_dual_bound_of_one_strategy_holds_for_all():
    workload = ln.queries(
        ln.Domain(x=ln.Integers(0, 11), y=ln.Integers(0, 7)), x="prefix", y="all_ranges"
    )
    tried = ln.compare(workload, ln.Privacy(ln.ApproxDP(1, "1e-6")))
    assert [candidate.total for candidate in tried] == sorted(
        candidate.total for candidate in tried
    )
    assert all(
        candidate.plan.strategy == candidate.strategy
        for candidate in tried
        if candidate.plan is not None
    )
    assert tried[0].plan == ln.plan(workload, tried[0].plan.privacy)
    ratios = {}
    for noise in (Noise.ROUNDED_GAUSSIAN, Noise.DISCRETE_LAPLACE):
        candidates = [candidate for candidate in tried if candidate.noise == noise]
        plans = [candidate.plan for candidate in candidates if candidate.plan is not None]
        (bound,) = {plan.lower_bound() for plan in plans}
        ratios[noise] = min(candidate.total for candidate in candidates) / bound
    # The Gaussian optimum of a product is the product of the optima, and proves it; the singular
    # values leave 8%.
    assert 1 <= ratios[Noise.ROUNDED_GAUSSIAN] < 1.002
    assert ratios[Noise.DISCRETE_LAPLACE] > 3.5


PLAN = ln.plan(ln.marginals(DOMAIN, ways=1), ln.PureDP(1))
OF_LISTS = pa.table({"sex": [["F"]], "age": [17], "income": [0.0]})
REFUSED = [
    (
        "a workload that is none",
        lambda _: ln.plan([1, 2], ln.PureDP(1)),
        "workload must be a workload.*got 'list'",
    ),
    ("a budget that is none", lambda _: ln.plan(WORKLOAD, 1.0), "budget must be PureDP"),
    (
        "a budget that is none to compare",
        lambda _: ln.compare(WORKLOAD, 1),
        "budget must be PureDP",
    ),
    (
        "a workload that is none to compare",
        lambda _: ln.compare("sex", ln.PureDP(1)),
        "workload must be a workload",
    ),
    ("a plan that is none", lambda _: ln.release("plan", PEOPLE, seed=1), "plan must be a plan"),
    ("no ledger", lambda _: ln.release(PLAN, PEOPLE), "A release must have a ledger"),
    (
        "a ledger of a number",
        lambda _: ln.release(PLAN, PEOPLE, ledger=3),
        "ledger must be a path or a Ledger",
    ),
    (
        "seed and ledger",
        lambda folder: ln.release(PLAN, PEOPLE, seed=1, ledger=folder / "x.ledger"),
        "leave out the ledger or the seed",
    ),
    ("a seed that is none", lambda _: ln.release(PLAN, PEOPLE, seed=-1), "seed must be"),
    (
        "options that are none",
        lambda _: ln.release(PLAN, PEOPLE, seed=1, options={"level": 0.9}),
        "options must be leastnoise.Options",
    ),
    (
        "a source that is none",
        lambda folder: ln.release(PLAN, 17, ledger=folder / "x.ledger"),
        "source must be",
    ),
    (
        "a source that is not there",
        lambda folder: ln.release(PLAN, folder / "no.csv", ledger=folder / "x.ledger"),
        "no.csv",
    ),
    (
        "a column that is not there",
        lambda folder: ln.release(PLAN, PEOPLE[["sex", "income"]], ledger=folder / "x.ledger"),
        "age",
    ),
    (
        "a column of lists",
        lambda folder: ln.release(PLAN, OF_LISTS, ledger=folder / "x.ledger"),
        "'sex' of .* must hold numbers, text or dates",
    ),
    (
        "a column of lists in a seeded release",
        lambda _: ln.release(PLAN, OF_LISTS, seed=1),
        "'sex' of .* must hold numbers, text or dates",
    ),
    (
        "a directory that is there",
        lambda folder: ln.release(PLAN, PEOPLE, ledger=folder / "x.ledger", out=folder),
        "must not exist yet",
    ),
]


@pytest.mark.parametrize(
    ("call", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_invalid_arguments_are_refused_unpaid(tmp_path, call, message):
    with pytest.raises(ln.InputError, match=message):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- promised against true error for every strategy, every budget and several workloads ---

SMALL = ln.Domain(
    a=ln.Coded(3), b=ln.Integers(0, 15), c=ln.Coded(2), measures={"pay": ln.Measure("pay", 0, 40)}
)
RANGES = ln.queries(SMALL, b="all_ranges", weight="1/2")
WINDOWS = ln.queries(SMALL, b=ln.ranges([(start, start + 3) for start in range(13)]))
MIXED = (
    ln.marginals(SMALL, ways=2)
    + ln.queries(SMALL, b="prefix", weight=3)
    + ln.marginals(SMALL, ways=1, of=["a", "c"], sum="pay")
)
# These cases have every kind of budget and of workload. Every strategy except `union` supports at
# least one of them.
CASES = [
    (ln.PureDP("1/2"), MIXED),
    (ln.ZCDP("1/3"), RANGES),
    (ln.ApproxDP(1, "1e-6"), ln.marginals(SMALL, upto=2)),
    (ln.ApproxDP(1, "1e-6"), MIXED),
    (ln.ZCDP("1/3"), WINDOWS),
]


@cache
def table():
    """Return a table of 500 random rows."""
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, SMALL.kind(name).size, 500) for name in SMALL.names}
    return Table(SMALL, codes, {"pay": rng.integers(0, 41, 500)})


def error_of_dense_least_squares(plan):
    """Check two estimates against an explicit matrix, and return the weighted squared error."""
    measurements = plan.measured()
    squares = LeastSquares(plan.measured())
    observation, other_observation = (
        simulate(measurements, table(), SeededEntropy(seed)) for seed in range(2)
    )
    for product in plan.workload:
        for estimate in (
            Estimate(observation),
            Estimate(observation).for_observation(other_observation),
        ):
            exact = squares.answers(product, estimate.observation.values)
            np.testing.assert_allclose(
                estimate.values(product).reshape(-1), exact, rtol=1e-6, atol=1e-6
            )
    return squares.error(plan.workload)


@pytest.mark.parametrize("strategy", PLANNERS)
def test_estimates_are_dense_least_squares_as_promised(strategy):
    """Each strategy runs on the first two cases that it supports, from a start of its own."""
    used = 0
    first_case = [*PLANNERS].index(strategy) % len(CASES)
    for budget, workload in [*CASES[first_case:], *CASES[:first_case]]:
        candidates = [*try_strategies(workload, Privacy(budget), strategy)]
        assert all(candidate.plan or candidate.reason for candidate in candidates)
        for plan in (candidate.plan for candidate in candidates if candidate.plan):
            assert error_of_dense_least_squares(plan) == pytest.approx(
                plan.expected_error().total_squared_error, rel=1e-6
            )
        used += any(candidate.plan and candidate.strategy == strategy for candidate in candidates)
        if used == 2:
            break
    assert used or strategy == "union"
