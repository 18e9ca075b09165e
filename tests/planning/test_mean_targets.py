"""Targets of means: least budgets, and the errors of releases at the public sizes."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._planning import (
    mean_goals,
    plan_for_workload,
    plan_least_budget,
    statistic_target_statuses,
)
from leastnoise._session import plan_spec
from leastnoise._spec import parse_spec, plan_warnings
from leastnoise._trusted.accounting import ZCDP, PureDP, parameters_by_name
from leastnoise._trusted.check import InputError
from leastnoise._workload import Statistic, Target
from simulated import releases

pytestmark = pytest.mark.usefixtures("kept_plans")

# Bounds from 0, above it, and on both sides of it; amounts of half a unit.
MEASURES = {
    "pay": ln.Measure("pay", 0, 1000),
    "age": ln.Measure("age", 16, 70),
    "gain": ln.Measure("gain", -50, 200, unit="1/2"),
}
DOMAIN = ln.Domain(store=["a", "b", "c"], sex=["F", "M"], measures=MEASURES)
NOBODY = pd.DataFrame(
    {
        "store": pd.Series(dtype=str),
        "sex": pd.Series(dtype=str),
        **{name: pd.Series(dtype=float) for name in MEASURES},
    }
)
SIZE = 400
MARGINS = {"pay": 25, "age": 2, "gain": 8}
BUDGETS = {"pure": ln.Least(), "rho": ln.Least("rho"), "replace": ln.Least(neighbours="replace")}


def size_of(plan):
    return next(iter(parameters_by_name(plan.privacy.budget).values()))


def mean_workload(measure, **target):
    """Return the means of a measure by store, with a target at the public size."""
    return ln.mean_queries(DOMAIN, measure, by=["store"], size=SIZE, **target)


@pytest.mark.parametrize(
    ("measure", "kind"), [("pay", "pure"), ("age", "replace"), ("gain", "rho"), ("pay", "rho")]
)
def test_least_budget_just_keeps_a_mean_margin(measure, kind):
    table = ln.marginals(DOMAIN, ways=2).within(rmse=50)
    workload = mean_workload(measure, margin=MARGINS[measure]) + table
    privacy = BUDGETS[kind]
    plan = plan_least_budget(workload, privacy)
    (status,) = statistic_target_statuses(plan, 0.95)
    assert status is not None
    assert status.is_met
    # The other table needs a smaller budget.
    assert status.error > 0.9 * MARGINS[measure]

    smaller_budget = privacy.privacy(size_of(plan) * Fraction(98, 100))
    cheaper_plan = plan_for_workload(workload, plan, smaller_budget)
    (missed,) = statistic_target_statuses(cheaper_plan, 0.95)
    assert missed is not None
    assert not missed.is_met


PURE = PureDP("3/4")
RHO = ZCDP("1/50")


@pytest.mark.parametrize(
    ("measure", "budget", "strategy"),
    [
        ("pay", PURE, "workload"),
        ("pay", PURE, "auto"),
        ("pay", RHO, "workload"),
        ("age", RHO, "workload"),
        ("gain", PURE, "workload"),
    ],
    ids=str,
)
def test_mean_errors_match_sum_less_mean_times_count(measure, budget, strategy):
    """The error of a mean follows from the covariance of its sum and count."""
    plan = ln.plan(mean_workload(measure, rmse=1), budget, strategy=strategy)
    (goal,) = mean_goals(plan.workload, 0.95)
    noises = [noise_of_sums_and_counts(r, measure) for r in releases(plan, NOBODY, range(100))]
    noise_of_sums, noise_of_counts = np.concatenate(noises).T[:, :, None]
    bounds = MEASURES[measure]
    means = np.linspace(float(bounds.low), float(bounds.high), 21)
    std_errors = (noise_of_sums - means * noise_of_counts).std(axis=0) / SIZE
    # A standard deviation of 300 draws has a standard error of 4%.
    assert goal.error(plan) == pytest.approx(max(std_errors), rel=0.15)
    tables = plan.expected_error().tables
    for place, limit in zip(goal.tables, goal.limits, strict=True):
        assert tables[place].rmse <= limit * goal.error(plan) * (1 + 1e-9)


def noise_of_sums_and_counts(release, measure):
    """Return the noise of the sum, in amounts, and of the count of every store without rows."""
    sums = release.tables[f"sum of {measure} by store"].answer
    counts = release.tables[f"count of {measure} by store"].answer
    return np.stack([sums, counts], axis=-1)


@pytest.mark.parametrize("measure", MEASURES)
def test_mean_margins_hold_for_groups_of_their_size(measure):
    bounds = MEASURES[measure]
    random = np.random.default_rng(5)
    plan = ln.plan(mean_workload(measure, margin=MARGINS[measure]), ln.Least())
    low = float(bounds.low)
    high = float(bounds.high)
    values = np.concatenate(
        [np.full(SIZE, high), random.integers(int(low), int(high) + 1, SIZE), np.full(SIZE, low)]
    )
    people = pd.DataFrame({"store": np.repeat(["a", "b", "c"], SIZE), "sex": "F", measure: values})
    exact = values.reshape(3, SIZE).mean(axis=1)
    half_widths = []
    covered = []
    for release in releases(plan, people, range(100)):
        frame = release.statistics[0].frame("pandas")
        half_widths.append((frame["high"] - frame["low"]) / 2)
        covered.append((frame["low"] <= exact + 1e-9) & (exact - 1e-9 <= frame["high"]))
    assert np.mean(covered) > 0.93
    # Intervals are cut at the bounds, so that only the middle group shows the whole width. It
    # depends on the noisy count, and stays near the margin.
    middle = np.array(half_widths)[:, 1]
    assert middle.mean() <= MARGINS[measure] * 1.02
    assert middle.max() <= MARGINS[measure] * 1.35


def test_mean_margin_needs_counts_above_their_noise():
    workload = ln.mean_queries(DOMAIN, "pay", by=["store"], size=2, margin=1000)
    plan = ln.plan(workload, PureDP("1/10"))
    (status,) = statistic_target_statuses(plan, 0.95)
    assert status is not None
    assert status.error > 1000


def test_margin_includes_half_a_noise_step():
    """The grid of the noise adds half a step to sums and to counts."""
    plan = ln.plan(mean_workload("pay", margin=25), PureDP(10_000), strategy="workload")
    (goal,) = mean_goals(plan.workload, 0.95)
    # Half a step of a sum, and of a count times the middle of the bounds, 500.
    assert goal.error(plan) == pytest.approx(0.5 * (1 + 500) / SIZE, rel=1e-3)


def test_table_keeps_the_stricter_of_two_targets():
    means = mean_workload("pay", margin=25)
    counts = ln.queries(DOMAIN, store="identity", count="pay").within(rmse=8)
    budget_of_means = size_of(plan_least_budget(means, ln.Least()))
    budget_of_counts = size_of(plan_least_budget(counts, ln.Least()))
    joint_budget = size_of(plan_least_budget(means + counts, ln.Least()))
    assert joint_budget >= max(budget_of_means, budget_of_counts) * Fraction(99, 100)
    assert joint_budget < budget_of_means + budget_of_counts


def test_worst_ratio_counts_means():
    tables = ln.marginals(DOMAIN, ways=2).within(rmse=50)
    workload = mean_workload("pay", margin=5) + tables
    plan_for_total = ln.plan(workload, PureDP(1))
    plan_for_worst = ln.plan(workload, PureDP(1), objective="worst")
    mean_for_total, *_ = statistic_target_statuses(plan_for_total, 0.95)
    mean_for_worst, *_ = statistic_target_statuses(plan_for_worst, 0.95)
    assert mean_for_total is not None
    assert mean_for_worst is not None
    assert mean_for_worst.error < mean_for_total.error


def test_others_than_means_have_no_target():
    with pytest.raises(InputError, match="cdf have no targets: their errors depend on the data"):
        Statistic(kind="cdf", of="store", size=Fraction(9), target=Target("rmse", 1))
    with pytest.raises(InputError, match="the rmse of a mean must be given with a size"):
        mean_workload("pay", rmse=1) + ln.mean_queries(DOMAIN, "pay", rmse=1)


SPEC = """
[privacy]
epsilon = "least"
[domain.store]
categories = ["a", "b", "c"]
[domain.sex]
categories = ["F", "M"]
[measures.pay]
clip = [0, 1000]
[[workload]]
means = { of = "pay", by = ["store"] }
size = 400
margin = 25
[[workload]]
marginals = { ways = 1, of = ["sex"] }
"""


def target_warnings(text):
    """Return the warnings of a spec that name tables without a target."""
    spec = parse_spec(text, Path())
    warnings = plan_warnings(spec, plan_spec(spec))
    return [warning for warning in warnings if "no target, so nothing limits" in warning]


def test_least_budget_names_tables_without_target():
    (warning,) = target_warnings(SPEC)
    assert warning.startswith(
        "The budget is the smallest that meets the targets, and sex has no target, so nothing "
        "limits its errors."
    )
    assert target_warnings(SPEC + "rmse = 20\n") == []
    assert target_warnings(SPEC.replace('"least"', "1")) == []


def test_limits_hold_for_every_way_to_err():
    """No covariance of sum and count has a largest error of the mean below the limits."""
    random = np.random.default_rng(3)
    for measure, bounds in MEASURES.items():
        (goal,) = mean_goals(mean_workload(measure, rmse=1), 0.95)
        ends = (bounds.low_units, bounds.high_units)
        for _ in range(200):
            root = random.normal(size=(2, 2)) * [[1.0], [random.choice([0.001, 0.1, 1.0])]]
            covariance = root @ root.T
            # The largest variance of the sum less the mean times the count is at an end.
            variances = [np.array([1, -end]) @ covariance @ [1, -end] for end in ends]
            largest_error = max(variances) ** 0.5 * float(bounds.unit) / SIZE
            assert covariance[1, 1] ** 0.5 <= goal.limits[0] * largest_error * (1 + 1e-9)
            assert covariance[0, 0] ** 0.5 <= goal.limits[1] * largest_error * (1 + 1e-9)
