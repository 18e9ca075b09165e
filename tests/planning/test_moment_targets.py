"""Targets of variances, correlations, regressions and R^2, and errors of releases."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._estimation import Estimate
from leastnoise._planning import (
    missed_targets,
    plan_for_workload,
    plan_least_budget,
    statistic_target_statuses,
)
from leastnoise._spec import parse_spec
from leastnoise._trusted.accounting import parameters_by_name
from leastnoise._trusted.check import InputError
from leastnoise._trusted.measurements import Observation
from leastnoise._workload import from_json
from simulated import exact_answers, read_table, simulations

pytestmark = pytest.mark.usefixtures("kept_plans")

MEASURES = {
    "pay": ln.Measure("pay", 0, 1000),
    "age": ln.Measure("age", 16, 70),
    "gain": ln.Measure("gain", -50, 200, unit="1/2"),
}
DOMAIN = ln.Domain(store=["a", "b", "c"], measures=MEASURES)
SIZE = 400
SCALES = {"age": 13}
ONES = np.tile([-1.0, 1.0], SIZE // 2)
PAIRS = np.repeat(np.tile([-1.0, 1.0], SIZE // 4), 2)
"""Signs of equal numbers, without correlation with `ONES`."""


def rows_at_scales(sign=1, *, explained=False):
    """Return rows with the public scales, and stores with low, middle and high means.

    Pay and age have the correlation ``sign``, or age and gain explain pay in equal parts.
    """
    stores = []
    for store, shift in zip("abc", (-0.5, 0.0, 0.5), strict=True):
        if explained:
            pay = 500 + 250 * (ONES + PAIRS) / np.sqrt(2)
            age = 43 + 13 * ONES
        else:
            pay = 500 + 500 * shift + 250 * ONES
            age = 43 + np.round(27 * shift) + 13 * sign * ONES
        columns = {"pay": np.round(pay), "age": age, "gain": 75 + 62.5 * PAIRS}
        stores.append(pd.DataFrame({"store": store, **columns}))
    return pd.concat(stores, ignore_index=True)


def variances(**target):
    return ln.variance_queries(DOMAIN, "pay", by=["store"], size=SIZE, **target)


def correlations(**target):
    names = ["pay", "age"]
    return ln.correlation_queries(DOMAIN, names, by=["store"], size=SIZE, scales=SCALES, **target)


def regression(**target):
    return ln.regression_queries(
        DOMAIN, "pay", on=["age", "gain"], by=["store"], size=SIZE, scales=SCALES, **target
    )


def r_squared(**target):
    return ln.r_squared_queries(
        DOMAIN, "pay", on=["age", "gain"], by=["store"], size=SIZE, scales=SCALES, **target
    )


def promised_error(plan):
    """Return the error of the plan's only statistic, which must have a target."""
    (status,) = statistic_target_statuses(plan, 0.95)
    assert status is not None
    return status.error


def size_of(plan):
    return next(iter(parameters_by_name(plan.privacy.budget).values()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "privacy"),
    [
        (variances(margin=20), ln.Least()),
        (variances(relative="0.1", target_of="variance"), ln.Least("rho")),
        (correlations(rmse="0.05"), ln.Least()),
        (correlations(relative="0.2", target_of="covariance"), ln.Least("rho")),
        (regression(relative="0.2"), ln.Least("rho")),
        (regression(rmse=3), ln.Least(neighbours="replace")),
        (r_squared(relative="0.1"), ln.Least("rho")),
    ],
)
def test_least_budget_just_keeps_a_target(workload, privacy):
    plan = plan_least_budget(workload, privacy)
    (status,) = statistic_target_statuses(plan, 0.95)
    assert status is not None
    assert status.is_met
    assert not missed_targets(plan, 0.95)
    smaller_budget = privacy.privacy(size_of(plan) * Fraction(98, 100))
    cheaper_plan = plan_for_workload(workload, plan, smaller_budget)
    assert missed_targets(cheaper_plan, 0.95) == (workload.statistics[0].name,)


BUDGETS = (ln.PureDP(2), ln.ZCDP("1/8"))
OPTIONS = {"by": ["store"], "level": 0.95}


def statistic_numbers(estimate, column):
    """Return the numbers of the statistic that has a column, and the column of its lower end."""
    if column in ("std_dev", "variance"):
        numbers = ln.variances(estimate, "pay", **OPTIONS).numbers()
        return numbers, "low" if column == "std_dev" else "variance_low"
    if column == "coefficient":
        numbers = ln.regression(estimate, "pay", on=["age", "gain"], **OPTIONS).numbers()
        return {name: values[:, 1] for name, values in numbers.items()}, "low"
    if column == "r_squared":
        return ln.r_squared(estimate, "pay", on=["age", "gain"], **OPTIONS).numbers(), "low"
    numbers = ln.correlations(estimate, ["pay", "age"], **OPTIONS).numbers()
    low = "low" if column == "correlation" else "covariance_low"
    return {name: values[:, 0] for name, values in numbers.items()}, low


def simulated_numbers(plan, rows, column, count):
    """Return estimates and half widths of simulated releases, by store: (draws, 2, stores)."""
    table = read_table(plan, rows)
    results = []
    for observation in simulations(plan.measured(), table, count, seed=5):
        numbers, low = statistic_numbers(Estimate(observation), column)
        half_widths = (numbers[low.replace("low", "high")] - numbers[low]) / 2
        results.append((numbers[column], half_widths))
    return np.array(results)


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("column", ["std_dev", "variance", "covariance", "coefficient"])
def test_errors_match_releases_at_scales(column, budget):
    """Errors and intervals are widest where the means are farthest from the middle."""
    workload_of = {
        "std_dev": variances,
        "variance": variances,
        "covariance": correlations,
        "coefficient": regression,
    }[column]
    plan = ln.plan(workload_of(margin=1, target_of=column), budget)
    margin = promised_error(plan)
    std_error = promised_error(ln.plan(workload_of(rmse=1, target_of=column), budget))
    # Covariances err most if the means are on opposite sides of the middle.
    rows = rows_at_scales(explained=column == "coefficient")
    if column == "covariance":
        rows["age"] = 86 - rows["age"]
    numbers = simulated_numbers(plan, rows, column, 60)
    stds = numbers[:, 0].std(axis=0)
    # All means of a regression are in the middle; other means are at the ends in two stores.
    if column != "coefficient":
        stds = stds[[0, 2]]
    # Three standard errors of the standard deviation of 60 draws.
    assert np.sqrt(np.mean(stds**2)) == pytest.approx(std_error, rel=0.28)
    assert np.median(numbers[:, 1], axis=0).max() == pytest.approx(margin, rel=0.06)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_correlation_errors_stay_within_the_promise(budget, sign):
    plan = ln.plan(correlations(rmse=1), budget)
    rows = rows_at_scales(sign)
    # A tenth of the rows on the other side of the mean: correlations of 0.8.
    rows.loc[rows.index % SIZE < SIZE // 10, "age"] += 26 * sign * np.tile([1, -1], SIZE // 20 * 3)
    estimates = simulated_numbers(plan, rows, "correlation", 30)[:, 0]
    assert np.abs(estimates).mean() == pytest.approx(0.8, abs=0.05)
    # Three standard errors of the standard deviation of 30 draws.
    assert estimates.std(axis=0).max() <= promised_error(plan) * 1.4


def test_relative_targets_are_shares_of_scales():
    budget = ln.PureDP(2)
    amounts = promised_error(ln.plan(variances(margin=1, scales={"pay": 200}), budget))
    share = promised_error(ln.plan(variances(relative=1, scales={"pay": 200}), budget))
    assert share == pytest.approx(amounts / 200)
    # The slope of age has the largest error. It is 250 / 13 of a standardised slope.
    options = {"on": ["age"], "size": SIZE, "scales": SCALES}
    amounts = promised_error(
        ln.plan(ln.regression_queries(DOMAIN, "pay", margin=1, **options), budget)
    )
    share = promised_error(
        ln.plan(ln.regression_queries(DOMAIN, "pay", relative=1, **options), budget)
    )
    assert share == pytest.approx(amounts * 13 / 250)


@pytest.mark.slow
def test_regression_hidden_by_noise_misses_every_margin():
    plan = ln.plan(regression(margin=10**9), ln.PureDP("1/50"))
    assert promised_error(plan) == np.inf
    assert missed_targets(plan, 0.95)
    least_plan = plan_least_budget(regression(margin=10**4), ln.Least())
    assert promised_error(least_plan) < 10**4


@pytest.mark.parametrize("budget", ["1/4", 1, 8])
def test_promised_margins_are_of_a_release_without_noise(budget):
    """At 1/4 the eigenvalue is above its half width, but too small for ends."""
    workload = regression(margin=1) + r_squared(margin=1)
    plan = ln.plan(workload, ln.PureDP(budget), strategy="workload")
    slopes, determination = (status.error for status in statistic_target_statuses(plan, 0.95))
    rows = rows_at_scales(explained=True)
    measured = plan.measured()
    answers = exact_answers(measured, read_table(plan, rows))
    exact = Estimate(Observation(measured, answers, "", private=False))
    found = ln.regression(exact, "pay", on=["age", "gain"], **OPTIONS)
    half_widths = (found.high - found.low)[:, 1:] / 2
    assert slopes == pytest.approx(half_widths.max(), rel=0.01)
    shares = ln.r_squared(exact, "pay", on=["age", "gain"], **OPTIONS)
    assert determination >= 0.99 * np.max(shares.high - shares.low) / 2
    assert determination <= 0.5


def test_r_squared_errors_stay_within_the_promise():
    """The error is largest if the mean of the response is opposite to those of the predictors."""
    budget = ln.ZCDP(1)
    plan = ln.plan(r_squared(rmse=1), budget, strategy="workload")
    promise = promised_error(plan)
    margin = promised_error(ln.plan(r_squared(margin=1), budget, strategy="workload"))
    rows = rows_at_scales(explained=True)
    rows["pay"] += np.select([rows.store == "a", rows.store == "c"], [-250, 250], 0)
    rows["age"] += np.select([rows.store == "a", rows.store == "c"], [13, -13], 0)
    rows["gain"] += np.select([rows.store == "a", rows.store == "c"], [62, -62], 0)
    rows["pay"] = np.clip(rows.pay, 0, 1000)
    numbers = simulated_numbers(plan, rows, "r_squared", 30)
    # Estimates are clipped at 1, so their errors are smaller than promised at R^2 = 1.
    assert 0.3 * promise < numbers[:, 0].std(axis=0).max() < 1.1 * promise
    assert np.median(numbers[:, 1], axis=0).max() < 1.1 * margin


def test_variance_hidden_by_noise_has_the_whole_range():
    tiny = ln.variance_queries(DOMAIN, "pay", by=["store"], size=2, margin=1)
    assert promised_error(ln.plan(tiny, ln.PureDP("1/50"))) == pytest.approx(250)


@pytest.mark.slow
def test_worst_ratio_counts_statistics():
    workload = variances(margin=5) + ln.marginals(DOMAIN, ways=1).within(rmse=50)
    fair = ln.plan(workload, ln.PureDP(1), objective="worst")
    usual = ln.plan(workload, ln.PureDP(1))
    assert promised_error(fair) < promised_error(usual)


def test_targets_survive_json():
    for workload in (
        variances(relative="0.1", target_of="variance", scales={"pay": "200.5"}),
        correlations(rmse="0.05"),
        regression(margin=3),
        r_squared(relative="0.2"),
    ):
        statistics = [statistic.to_json() for statistic in workload.statistics]
        workload_from_json = from_json(workload.domain, workload.to_json(), statistics)
        assert workload_from_json.statistics == workload.statistics
        plan = ln.plan(workload, ln.PureDP(2))
        assert ln.Plan.from_json(plan.to_json()).workload.statistics == workload.statistics


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"margin": 1, "size": None}, "the margin of variances must be given with a size"),
        ({"margin": 1, "rmse": 1}, "a target must be one of margin, relative and rmse"),
        ({"rmse": 0}, "rmse must be a number above 0"),
        ({"rmse": 1, "target_of": "mean"}, "target_of of variances must be one of"),
        ({"rmse": 1, "scales": {"age": 3}}, "scales must be numbers for pay"),
        ({"rmse": 1, "scales": {"pay": 501}}, "the scale of pay must be at most 500"),
    ],
)
def test_targets_are_refused(arguments, fault):
    with pytest.raises(InputError, match=fault):
        ln.variance_queries(DOMAIN, "pay", **{"size": SIZE, **arguments})


SPEC = """
[privacy]
epsilon = "least"
[domain.store]
categories = ["a", "b", "c"]
[measures.pay]
clip = [0, 1000]
[measures.age]
clip = [16, 70]
[[workload]]
variances = { of = "pay", by = ["store"] }
size = 400
relative = "0.1"
scales = { pay = 200 }
[[workload]]
correlations = { of = ["pay", "age"] }
size = 1200
margin = "0.2"
target_of = "covariance"
"""


def test_spec_states_targets_and_scales():
    variances_of_pay, correlation = parse_spec(SPEC, Path()).workload.statistics
    assert variances_of_pay.target is not None
    assert variances_of_pay.target.kind == "relative"
    assert variances_of_pay.scales == (("pay", Fraction(200)),)
    assert correlation.target_column == "covariance"
    for other_statistic in ("means = { of = 'pay' }", "cdf = { of = 'store' }"):
        spec = SPEC.replace('variances = { of = "pay", by = ["store"] }', other_statistic)
        with pytest.raises(InputError, match=r"a key of .* 1, which asks for"):
            parse_spec(spec, Path())
    with pytest.raises(InputError, match="to variances, correlations, regression and r_squared"):
        parse_spec(SPEC + "[[workload]]\nmarginals = { ways = 1 }\nscales = { pay = 2 }", Path())
