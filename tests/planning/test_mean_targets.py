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


def size_of(plan: ln.Plan) -> Fraction:
    return next(iter(parameters_by_name(plan.privacy.budget).values()))


def asked(measure: str, **target: int) -> ln.Workload:
    return ln.mean_queries(DOMAIN, measure, by=["store"], size=SIZE, **target)


@pytest.mark.parametrize(
    ("measure", "kind"), [("pay", "pure"), ("age", "replace"), ("gain", "rho"), ("pay", "rho")]
)
def test_least_budget_just_keeps_a_mean_margin(measure: str, kind: str) -> None:
    workload, privacy = (
        asked(measure, margin=MARGINS[measure]) + ln.marginals(DOMAIN, ways=2).within(rmse=50),
        BUDGETS[kind],
    )
    plan = plan_least_budget(workload, privacy)
    (status,) = statistic_target_statuses(plan, 0.95)
    assert status is not None
    assert status.is_met
    assert status.error > 0.9 * MARGINS[measure]  # the other table needs less
    less = plan_for_workload(workload, plan, privacy.privacy(size_of(plan) * Fraction(98, 100)))
    (missed,) = statistic_target_statuses(less, 0.95)
    assert missed is not None
    assert not missed.is_met


PURE, RHO = PureDP("3/4"), ZCDP("1/50")


@pytest.mark.parametrize(
    ("measure", "budget"), [("pay", PURE), ("pay", RHO), ("age", RHO), ("gain", PURE)], ids=str
)
def test_mean_errors_match_sum_less_mean_times_count(
    measure: str, budget: ln.PureDP | ln.ZCDP
) -> None:
    """The error of a mean follows from the covariance of its sum and count."""
    bounds = MEASURES[measure]
    for strategy in ("workload", "auto") if (measure, budget) == ("pay", PURE) else ("workload",):
        plan = ln.plan(asked(measure, rmse=1), budget, strategy=strategy)
        (goal,) = mean_goals(plan.workload, 0.95)
        drawn = np.concatenate(
            [sums_and_counts(released, measure) for released in releases(plan, NOBODY, range(100))]
        )
        means = np.linspace(float(bounds.low), float(bounds.high), 21)
        spreads = (drawn[:, :1] - means * drawn[:, 1:]).std(axis=0) / SIZE
        assert goal.error(plan) == pytest.approx(max(spreads), rel=0.15)  # 300 draws
        tables = plan.expected_error().tables
        for place, limit in zip(goal.tables, goal.limits, strict=True):
            assert tables[place].rmse <= limit * goal.error(plan) * (1 + 1e-9)


def sums_and_counts(released: ln.Release, measure: str) -> np.ndarray:
    """Noise of sums, in amounts, and of counts, of every store; nobody is in the table."""
    return np.stack(
        [
            released.tables[f"{quantity} of {measure} by store"].answer
            for quantity in ("sum", "count")
        ],
        axis=-1,
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_mean_margins_hold_for_groups_of_their_size(
    measure: str,
) -> None:
    bounds, random = MEASURES[measure], np.random.default_rng(5)
    plan = ln.plan(asked(measure, margin=MARGINS[measure]), ln.Least())
    low, high = float(bounds.low), float(bounds.high)
    values = np.concatenate(
        [np.full(SIZE, high), random.integers(int(low), int(high) + 1, SIZE), np.full(SIZE, low)]
    )
    people = pd.DataFrame({"store": np.repeat(["a", "b", "c"], SIZE), "sex": "F", measure: values})
    exact = values.reshape(3, SIZE).mean(axis=1)
    halves, covered = [], []
    for released in releases(plan, people, range(100)):
        frame = released.statistics[0].frame("pandas")
        halves.append((frame["high"] - frame["low"]) / 2)
        covered.append((frame["low"] <= exact + 1e-9) & (exact - 1e-9 <= frame["high"]))
    assert np.mean(covered) > 0.93
    # Ends at the bounds are cut there, so the middle group alone shows the width: it is that of its
    # noisy count, near the margin at most.
    middle = np.array(halves)[:, 1]
    assert middle.mean() <= MARGINS[measure] * 1.02
    assert middle.max() <= MARGINS[measure] * 1.35


def test_mean_margin_needs_counts_above_their_noise() -> None:
    plan = ln.plan(
        ln.mean_queries(DOMAIN, "pay", by=["store"], size=2, margin=1000), PureDP("1/10")
    )
    (status,) = statistic_target_statuses(plan, 0.95)
    assert status is not None
    assert status.error > 1000


def test_margin_includes_half_a_noise_step() -> None:
    """The grid of the noise adds half a step to sums and to counts."""
    plan = ln.plan(asked("pay", margin=25), PureDP(10_000), strategy="workload")
    (goal,) = mean_goals(plan.workload, 0.95)
    assert goal.error(plan) == pytest.approx(0.5 * (1 + 500) / SIZE, rel=1e-3)


def test_table_keeps_the_stricter_of_two_targets() -> None:
    means = asked("pay", margin=25)
    count = ln.queries(DOMAIN, store="identity", count="pay").within(rmse=8)
    alone, counts = (
        size_of(plan_least_budget(workload, ln.Least())) for workload in (means, count)
    )
    both = size_of(plan_least_budget(means + count, ln.Least()))
    assert both >= max(alone, counts) * Fraction(99, 100)
    assert both < alone + counts


def test_worst_ratio_counts_means() -> None:
    exact, other = asked("pay", margin=5), ln.marginals(DOMAIN, ways=2).within(rmse=50)
    fair = ln.plan(exact + other, PureDP(1), objective="worst")
    usual = ln.plan(exact + other, PureDP(1))
    (before, *_), (after, *_) = (statistic_target_statuses(plan, 0.95) for plan in (usual, fair))
    assert before is not None
    assert after is not None
    assert after.error < before.error


def test_others_than_means_have_no_target() -> None:
    with pytest.raises(InputError, match="cdf have no targets: their errors depend on the data"):
        Statistic(kind="cdf", of="store", size=Fraction(9), target=Target("rmse", 1))
    with pytest.raises(InputError, match="the rmse of a mean must be given with a size"):
        asked("pay", rmse=1) + ln.mean_queries(DOMAIN, "pay", rmse=1)


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


def test_least_budget_names_tables_without_target() -> None:
    for text, named in (
        (SPEC, True),
        (SPEC + "rmse = 20\n", False),
        (SPEC.replace('"least"', "1"), False),
    ):
        spec = parse_spec(text, Path())
        warnings = [
            warning
            for warning in plan_warnings(spec, plan_spec(spec))
            if "no target, so nothing limits" in warning
        ]
        start = (
            "The budget is the smallest that meets the targets, and sex has no target, so nothing "
            "limits its errors."
        )
        assert [warning.startswith(start) for warning in warnings] == [True] * named


def test_limits_hold_for_every_way_to_err() -> None:
    """No covariance of sum and count has a largest error of the mean below the limits."""
    random = np.random.default_rng(3)
    for measure, bounds in MEASURES.items():
        (goal,) = mean_goals(asked(measure, rmse=1), 0.95)
        ends = (bounds.low_units, bounds.high_units)
        for _ in range(200):
            root = random.normal(size=(2, 2)) * [[1.0], [random.choice([0.001, 0.1, 1.0])]]
            covariance = root @ root.T
            worst = (
                max(
                    covariance[0, 0] - 2 * end * covariance[0, 1] + end**2 * covariance[1, 1]
                    for end in ends
                )
                ** 0.5
                * float(bounds.unit)
                / SIZE
            )
            assert covariance[1, 1] ** 0.5 <= goal.limits[0] * worst * (1 + 1e-9)
            assert covariance[0, 0] ** 0.5 <= goal.limits[1] * worst * (1 + 1e-9)
