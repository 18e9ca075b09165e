"""Public bounds of what is summed under a threshold: every one is either refused before anything is paid, or counts as it says."""

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._check import InputError
from leastnoise._kernel import SeededEntropy, UnpaidSeries
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._table import Table

pytestmark = pytest.mark.usefixtures("kept_plans")

BY_GROUP = {"group": "identity"}
ASKED = [BY_GROUP, {**BY_GROUP, "pay": "prefix"}, {"pay": "prefix"}]


@pytest.mark.parametrize("along", ASKED[:2])
@pytest.mark.parametrize("amount", ["1", "4"])
def test_bounds_too_large_for_the_counts_beside_them_are_refused_before_payment(along: dict[str, str], amount: str) -> None:
    """Counts need a finer grid than sums under (epsilon, delta), and what was measured is kept on the finer one."""
    released = refused = 0
    for most in (20_000, 400_000, 1_500_000, 4_000_000, 20_000_000):
        bins = ln.Bins(0, most, 8, closed="right")
        domain = ln.Domain(group=["a", "b"], pay=bins, measures={"wages": ln.Measure("pay", 0, most, unit="0.01")})
        cells = np.arange(40) % 8
        table = Table(domain, {"group": cells % 2, "pay": cells}, {"wages": (cells * most * 100) // 8 + 1})
        try:
            plan = ln.plan(ln.queries(domain, sum="wages", **along), ln.ApproxDP(amount, "1/1000000"), strategy="truncated_sums")
            run = mechanism_of(plan).ready(plan)  # the last that may refuse
        except InputError as error:
            assert "Choose a larger unit" in str(error)  # noqa: PT017 - of some bounds
            refused += 1
            continue
        outcome = run(UnpaidSeries(terms_of(plan), table, SeededEntropy(1)))
        assert np.isfinite(outcome.estimator().estimate(plan.workload.products[0]).values).all()
        released += 1
    assert released
    assert refused


@pytest.mark.parametrize("along", ASKED)
def test_values_below_the_lower_bound_are_raised_to_it(along: dict[str, str]) -> None:
    """As in every other sum of the measure, and whatever the end of their cell is."""
    bins = ln.Bins(0, 1000, 50, closed="right")
    domain = ln.Domain(group=["a", "b"], pay=bins, measures={"wages": ln.Measure("pay", 100, 1000)})
    numbers = np.random.default_rng(0).integers(1, 150, 40_000)
    amounts = np.maximum(numbers, 100)
    table = Table(domain, {"group": numbers % 2, "pay": -(-numbers // 20) - 1}, {"wages": amounts})
    plan = ln.plan(ln.queries(domain, sum="wages", **along), ln.PureDP(10), strategy="truncated_sums")
    outcome = mechanism_of(plan).ready(plan)(UnpaidSeries(terms_of(plan), table, SeededEntropy(2)))
    answer = outcome.estimator().estimate(plan.workload.products[0])
    right = np.bincount(numbers % 2, amounts) if "group" in along else amounts.sum()
    last = answer.values if along == BY_GROUP else answer.values[..., -1]
    assert last == pytest.approx(right, rel=0.002)


@pytest.mark.parametrize("along", ASKED[:2])
@pytest.mark.parametrize("most", [12_800, 40_000])
def test_nulls_in_a_cell_of_their_own_do_not_move_the_threshold(along: dict[str, str], most: int) -> None:
    """They add the lower bound; a third of the rows, counted above every threshold, would have driven it up."""
    ends = [0, 25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800]
    random = np.random.default_rng(1)
    amounts = np.where(random.random(3000) < 1 / 3, 0, random.integers(1, 400, 3000))
    cells, group = np.where(amounts == 0, len(ends) - 1, np.searchsorted(ends[1:], amounts)), random.integers(0, 2, 3000)
    thresholds = []
    for null, rows in (("drop", amounts > 0), ("other", slice(None))):
        pay = ln.Edges(ends, closed="right", null=null)
        domain = ln.Domain(group=["a", "b"], pay=pay, measures={"wages": ln.Measure("pay", 0, most)})
        table = Table(domain, {"group": group[rows], "pay": cells[rows]}, {"wages": amounts[rows]})
        plan = ln.plan(ln.queries(domain, sum="wages", **along), ln.PureDP(1), strategy="truncated_sums")
        run = mechanism_of(plan).ready(plan)
        found = (run(UnpaidSeries(terms_of(plan), table, SeededEntropy(seed))).finding.facts() for seed in range(3))
        thresholds.append([facts["threshold"] for facts in found])
    assert thresholds[0] == thresholds[1]
