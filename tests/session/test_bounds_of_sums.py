"""Public bounds of what is summed under a threshold: every one is either refused before anything is paid, or counts as it says."""

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._check import InputError
from leastnoise._kernel import SeededEntropy, Series
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._table import Table

pytestmark = pytest.mark.usefixtures("kept_plans")

BY_GROUP = {"group": "identity"}
ASKED = [("grouped_sums", BY_GROUP), ("truncated_sums", {**BY_GROUP, "pay": "prefix"}), ("bucketed_sums", {"pay": "prefix"})]


@pytest.mark.parametrize(("strategy", "along"), ASKED[:2])
@pytest.mark.parametrize("amount", ["1", "4"])
def test_bounds_too_large_for_the_counts_beside_them_are_refused_before_payment(strategy: str, along: dict[str, str], amount: str) -> None:
    """Counts need a finer grid than sums under (epsilon, delta), and what was measured is kept on the finer one."""
    released = refused = 0
    for most in (20_000, 400_000, 1_500_000, 4_000_000, 20_000_000):
        bins = ln.Bins(0, most, 8, closed="right")
        domain = ln.Domain(group=["a", "b"], pay=bins, measures={"wages": ln.Measure("pay", 0, most, unit="0.01")})
        cells = np.arange(40) % 8
        table = Table(domain, {"group": cells % 2, "pay": cells}, {"wages": (cells * most * 100) // 8 + 1})
        try:
            plan = ln.plan(ln.queries(domain, sum="wages", **along), ln.ApproxDP(amount, "1/1000000"), strategy=strategy)
            run = mechanism_of(plan).ready(plan)  # the last that may refuse
        except InputError as error:
            assert "Choose a larger unit" in str(error)  # noqa: PT017 - of some bounds
            refused += 1
            continue
        outcome = run(Series.simulated(terms_of(plan), table, SeededEntropy(1)))
        assert np.isfinite(outcome.estimator().estimate(plan.workload.products[0]).values).all()
        released += 1
    assert released
    assert refused


@pytest.mark.parametrize(("strategy", "along"), ASKED)
def test_values_below_the_lower_bound_are_raised_to_it(strategy: str, along: dict[str, str]) -> None:
    """As in every other sum of the measure, and whatever the end of their cell is."""
    bins = ln.Bins(0, 1000, 50, closed="right")
    domain = ln.Domain(group=["a", "b"], pay=bins, measures={"wages": ln.Measure("pay", 100, 1000)})
    numbers = np.random.default_rng(0).integers(1, 150, 40_000)
    amounts = np.maximum(numbers, 100)
    table = Table(domain, {"group": numbers % 2, "pay": -(-numbers // 20) - 1}, {"wages": amounts})
    plan = ln.plan(ln.queries(domain, sum="wages", **along), ln.PureDP(10), strategy=strategy)
    outcome = mechanism_of(plan).ready(plan)(Series.simulated(terms_of(plan), table, SeededEntropy(2)))
    answer = outcome.estimator().estimate(plan.workload.products[0])
    right = np.bincount(numbers % 2, amounts) if "group" in along else amounts.sum()
    last = answer.values if along == BY_GROUP else answer.values[..., -1]
    assert last == pytest.approx(right, rel=0.002)
