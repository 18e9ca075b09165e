"""Random queries of random tables: every paid plan is released.

What is measured after the first step follows from noisy answers, so no check beforehand sees every
plan that may come.
"""

from typing import Any

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._trusted.accounting import Budget, Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries
from leastnoise._trusted.table import Table
from mechanisms.remembered import without_a_search

pytestmark = pytest.mark.usefixtures("kept_plans")

SUMS = ("truncated_sums", "truncated_sums along the number", "truncated_sums by group")
ON_TWO = ("dawa",)


def random_queries(rng, name, size):
    """Return a random query set along an attribute; for numbers also partial ranges."""
    kind = rng.choice(["identity", "prefix", "total", "all_ranges", "ranges", "ranges"])
    if kind == "ranges" and name == "number":
        ends = np.sort(rng.integers(0, size, (int(rng.integers(1, 4)), 2)), axis=1)
        return ln.ranges([(int(low), int(high)) for low, high in ends])
    if kind == "ranges":
        return "identity"
    if kind == "all_ranges" and size > 40:
        return "prefix"
    return str(kind)


def random_plan(rng, strategy):
    """Return a plan of a named mechanism over a number and groups.

    Raises:
        InputError: the mechanism does not answer the drawn queries.
    """
    size = int(rng.choice([2, 3, 7, 16, 40, 150]))
    groups = int(rng.choice([1, 2, 5, 12]))
    measures = {"amount": ln.Measure("number", 0, size - 1)}
    domain = ln.Domain(
        number=ln.Integers(0, size - 1),
        group=[f"g{group}" for group in range(groups)],
        measures=measures,
    )
    on_two = strategy in ON_TWO and rng.random() < 0.5
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        along: dict[str, Any] = {"number": random_queries(rng, "number", size)}
        if strategy == SUMS[2]:
            along = {"group": "identity"}
        elif (on_two or strategy == SUMS[0]) and rng.random() < 0.7:
            along["group"] = random_queries(rng, "group", groups)
        weight = rng.choice(["1", "1/1000", "1000"])
        parts.append(
            ln.queries(domain, sum="amount" if strategy in SUMS else None, weight=weight, **along)
        )
    amount = str(rng.choice(["1/100", "1/2", "1", "10"]))
    budgets: list[Budget] = [ln.PureDP(amount), ln.ZCDP(amount), ln.ApproxDP(amount, "1/100000")]
    budget = budgets[0 if on_two else int(rng.integers(3))]
    privacy = Privacy(budget, neighbours=str(rng.choice(["add_remove", "replace"])))
    return ln.plan(sum(parts[1:], parts[0]), privacy, strategy=strategy.split()[0], seconds=1)


def random_table(rng, domain, *, sums):
    """Return no, one, few or many rows: anywhere, all in one cell, or with a tail."""
    size = domain.kind("number").size
    rows = int(rng.choice([0, 1, 30, 3000]))
    numbers = [
        rng.integers(0, size, rows),
        np.full(rows, rng.integers(size)),
        np.minimum(rng.geometric(0.2, rows) - 1, size - 1),
    ][int(rng.integers(3))]
    codes: dict[str, Any] = {
        "number": numbers.astype(np.int32),
        "group": rng.integers(0, domain.kind("group").size, rows),
    }
    # A row in the hidden cell can have any value; here it has the largest.
    amounts = np.minimum(numbers, domain.kind("number").published - 1).astype(np.int64)
    return Table(domain, codes, {"amount": amounts} if sums else {})


@pytest.mark.parametrize("strategy", ["dawa", "dawa_levels", *SUMS])
def test_paid_release_is_always_written(monkeypatch, strategy):
    released = 0
    for seed in range(10):
        # Only the first seed runs the slow search for a reference plan.
        if seed == 1:
            without_a_search(monkeypatch)
        rng = np.random.default_rng([seed, len(strategy)])
        try:
            plan = random_plan(rng, strategy)
        except InputError:
            continue
        run = mechanism_of(plan).prepare(plan)  # the last call that may refuse the plan
        series = UnpaidSeries(
            release_contract(plan),
            random_table(rng, plan.domain, sums=strategy in SUMS),
            SeededEntropy(seed),
        )
        estimator = run(series).estimator()
        for product in plan.workload:
            answer = estimator.estimate(product)
            assert np.isfinite(answer.values).all(), seed
            assert (np.isfinite(answer.noise_std) & (answer.noise_std >= 0)).all(), seed
            assert (
                answer.approximation_std is None or not np.isnan(answer.approximation_std).any()
            ), seed
        released += 1
    assert released >= 5
