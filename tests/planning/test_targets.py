"""Least budgets for error targets, and plans with the smallest largest ratio."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._mechanisms import Search, reweight_plan
from leastnoise._planning import _targets as targets
from leastnoise._planning import expected_seconds, plan_workload
from leastnoise._strategies import Planner
from leastnoise._strategies import _covering as _designs
from leastnoise._trusted.accounting import ZCDP, Privacy, PureDP, parameters_by_name
from leastnoise._trusted.check import InputError
from simulated import releases

pytestmark = pytest.mark.usefixtures("kept_plans")

DOMAIN = ln.Domain(
    sex=["F", "M"], education=ln.Integers(0, 15), work=ln.Integers(0, 8)
).as_complete()


def workload_with_targets():
    """Return three tables with targets: two margins and a root mean squared error."""
    sexes = ln.queries(DOMAIN, sex="identity").within(margin=20)
    education = ln.queries(DOMAIN, education="prefix").within(margin=90)
    cells = ln.queries(DOMAIN, education="identity", work="identity").within(rmse=12)
    return sexes + education + cells


LEAST = {
    "pure": ln.Least(),
    "replace": ln.Least(neighbours="replace"),
    "rho": ln.Least("rho"),
    "approx": ln.Least(delta="1e-6"),
}


@pytest.mark.parametrize("kind", LEAST)
def test_least_budget_just_keeps_every_target(kind):
    workload = workload_with_targets()
    privacy = LEAST[kind]
    plan = targets.plan_least_budget(workload, privacy, Search("marginals"))
    goals = targets.table_goals(workload, 0.95)
    size = next(iter(parameters_by_name(plan.privacy.budget).values()))
    weighted = targets.equalised_weights(workload, goals)
    bound = targets.dual_bound(weighted, goals, plan.privacy, plan.measured().noise)
    assert 0 < bound <= targets.squared_ratios(goals, plan).max() <= 1

    smaller_budget = privacy.privacy(size * Fraction(999, 1000))
    cheaper_plan = targets.plan_for_workload(workload, plan, smaller_budget)
    assert targets.squared_ratios(goals, cheaper_plan).max() > 1
    assert plan.privacy == privacy.privacy(size)


def test_separate_tables_reach_equal_ratios_in_one_step():
    # Two tables on different attributes: under rho the shares s_j of the budget that make a_j /
    # (s_j t_j^2) equal are a_j / t_j^2.
    education = ln.queries(DOMAIN, education="identity").within(rmse=5)
    work = ln.queries(DOMAIN, work="identity").within(rmse=20)
    workload = education + work
    goals = targets.table_goals(workload, 0.95)
    balanced = targets.balance_plan(workload, Privacy(ZCDP(1)), goals, Search("marginals"))
    plan = balanced.plan

    education_ratio, work_ratio = targets.squared_ratios(goals, plan)
    assert education_ratio == pytest.approx(work_ratio, rel=0.01)
    education_error, work_error = plan.expected_error().tables
    # The variances are as the squared goals: (20 / 5)^2.
    assert work_error.rmse**2 / education_error.rmse**2 == pytest.approx(16, rel=0.02)
    bound = targets.dual_bound(
        balanced.workload, balanced.goals, plan.privacy, plan.measured().noise
    )
    assert bound <= balanced.largest_squared_ratio


def test_margins_cover_at_their_stated_rate():
    workload = workload_with_targets()
    plan = targets.plan_least_budget(workload, ln.Least(), Search("marginals"))
    education = np.arange(1000) % 16
    work = np.arange(1000) % 9
    rows = pd.DataFrame({"sex": ["F", "M"] * 500, "education": education, "work": work})
    cells = np.bincount(education * 9 + work, minlength=144)
    truth = np.concatenate([[500, 500], np.cumsum(np.bincount(education)), cells])
    margins = np.repeat([20.0, 90.0, np.nan], [2, 16, 144])
    answers = [release.answers["answer"] for release in releases(plan, rows, range(60))]
    errors = np.array(answers) - truth
    for table in (slice(0, 2), slice(2, 18)):
        # The target is 0.95; the answers of the 60 releases are correlated.
        assert (np.abs(errors[:, table]) <= margins[table]).mean() > 0.93
    assert np.sqrt((errors[:, 18:] ** 2).mean()) < 12 * 1.05


def test_sums_have_targets_in_their_own_amounts():
    domain = ln.Domain(
        sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 4000, unit=10)}
    ).as_complete()
    workload = ln.queries(domain, sex="identity", sum="pay").within(rmse=10_000)
    plan = targets.plan_least_budget(workload, ln.Least())
    assert 10 * plan.expected_error().tables[0].rmse == pytest.approx(10_000, rel=0.001)


ONE_WAY = ln.marginals(DOMAIN, ways=1)
PREFIX = ln.queries(DOMAIN, education="prefix").within(margin=9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (ONE_WAY.within, "got none"),
        (lambda: ONE_WAY.within(margin=0), "margin"),
        (
            lambda: targets.plan_least_budget(
                ONE_WAY.within(margin="0.9"), ln.Least(), Search("identity")
            ),
            r"margin of sex must be at least 1; got '?9/10",
        ),
        (lambda: targets.plan_least_budget(ONE_WAY, ln.Least()), "No table has a target"),
        (lambda: ONE_WAY.within(margin=1) + ONE_WAY.within(margin=2), "two targets or two sizes"),
        (lambda: ln.plan(PREFIX, ln.Least(), strategy="dawa"), "known beforehand"),
        (
            lambda: ln.plan(PREFIX, PureDP(1), strategy="dawa", objective="worst"),
            "known beforehand",
        ),
        (lambda: ln.plan(PREFIX, PureDP(1), objective="best"), "objective must be"),
        (lambda: ln.compare(PREFIX, ln.Least()), "least epsilon"),
        (lambda: ln.Least("rho", delta="1e-9"), "delta"),
    ],
)
def test_invalid_targets_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_worst_objective_improves_the_worst_table():
    # One attribute has 2 cells, and the other 60. A plan with the least total error gives little of
    # the budget to the small table.
    domain = ln.Domain(a=["x", "y"], b=ln.Integers(1, 60)).as_complete()
    workload = ln.marginals(domain, ways=1)
    plan_for_total = ln.plan(workload, ZCDP(1), strategy="marginals", objective="total")
    plan_for_worst = ln.plan(workload, ZCDP(1), strategy="marginals", objective="worst")
    error_for_total = plan_for_total.expected_error()
    error_for_worst = plan_for_worst.expected_error()
    small, large = (table.rmse for table in error_for_worst.tables)
    # Measured separately, both tables have the same error, so each gets half of the budget.
    assert small == pytest.approx(large, rel=0.01)
    assert max(table.rmse for table in error_for_total.tables) > 1.5 * max(small, large)
    assert error_for_worst.total_squared_error > error_for_total.total_squared_error


def test_relative_errors_follow_public_sizes():
    domain = ln.Domain(a=ln.Integers(1, 20), b=ln.Integers(1, 20)).as_complete()
    small = ln.queries(domain, a="identity").within(size=100)
    large = ln.queries(domain, b="identity").within(size=1600)
    plan = ln.plan(small + large, ZCDP(1), strategy="marginals", objective="relative")
    # The same with weights in the ratio of the sizes, 1600 / 100.
    weighted = ln.queries(domain, a="identity", weight=16) + ln.queries(domain, b="identity")
    weighted_plan = ln.plan(weighted, ZCDP(1), strategy="marginals")
    errors = [table.rmse for table in plan.expected_error().tables]
    assert errors == pytest.approx([table.rmse for table in weighted_plan.expected_error().tables])
    assert errors[1] > 3 * errors[0]
    assert [product.weight for product in plan.workload] == [1, 1]


def test_single_table_price_is_its_saving():
    domain = ln.Domain(a=ln.Integers(1, 20), b=ln.Integers(1, 20)).as_complete()
    workload = ln.queries(domain, a="identity") + ln.queries(domain, b="identity", weight=3)
    plan = ln.plan(workload, ZCDP(1), strategy="marginals")
    # Both tables determine the total; the budget is divided as their weights 1 and 3.
    first, second = targets.table_prices(plan, Search("marginals"))
    assert [first.alone, first.saved] == pytest.approx([0.25, 0.25], rel=0.05)
    assert [second.alone, second.saved] == pytest.approx([0.75, 0.75], rel=0.05)


def test_prices_of_one_table_are_refused():
    plan = ln.plan(ln.queries(DOMAIN, work="identity"), ZCDP(1), strategy="marginals")
    with pytest.raises(InputError, match="from 2 to 24"):
        targets.table_prices(plan)


@pytest.fixture(scope="module")
def covering_plan():
    """Return a plan of all tables of one and two of five attributes."""
    domain = ln.Domain({f"a{place}": ln.Coded(3) for place in range(5)}).as_complete()
    workload = ln.marginals(domain, ways=1) + ln.marginals(domain, ways=2)
    return ln.plan(workload, PureDP(1), strategy="covering")


def test_table_among_many_is_priced_without_search(covering_plan, monkeypatch):
    monkeypatch.setattr(targets, "_NEARLY_ALL", 2.0)
    price_by_search = targets.joint_price(covering_plan, [3])
    searches = _designs._cached_design.cache_info().misses
    monkeypatch.setattr(targets, "_NEARLY_ALL", 0.9)
    price = targets.joint_price(covering_plan, [3])
    assert _designs._cached_design.cache_info().misses == searches
    assert price.table == price_by_search.table
    assert price.alone == price_by_search.alone
    assert price.saved == pytest.approx(price_by_search.saved, abs=0.02)


def test_table_outside_the_strategy_is_priced(monkeypatch):
    monkeypatch.setattr(targets, "_NEARLY_ALL", 0.5)
    domain = ln.Domain(
        a=ln.Coded(2), c=ln.Coded(16), measures={"pay": ln.Measure("pay", 0, 9)}
    ).as_complete()
    workload = (
        ln.queries(domain, a="identity")
        + ln.queries(domain, a="identity", sum="pay")
        + ln.queries(domain, c="prefix")
    )
    plan = ln.plan(workload, PureDP(1), strategy="p_identity")  # which refuses only cells
    with pytest.raises(InputError):
        reweight_plan(plan, plan.workload)
    assert 0 < targets.joint_price(plan, [2]).saved < 1


def record_calls(monkeypatch, module, name):
    """Return a list that grows with each call of a function of a module."""
    calls = []
    function = getattr(module, name)

    def recorded(*arguments, **options):
        calls.append(arguments)
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, recorded)
    return calls


def test_shared_parts_of_prices_are_searched_once(monkeypatch):
    domain = ln.Domain(a=ln.Integers(1, 5), b=ln.Integers(1, 4)).as_complete()
    workload = ln.queries(domain, a="identity") + ln.queries(domain, b="identity")
    plan = ln.plan(workload, PureDP(1), strategy="marginals")
    searches = record_calls(monkeypatch, targets, "choose_plan")
    targets.table_prices(plan, Search("marginals"))
    # A plan of one table is also the plan without the other.
    assert len(searches) == 2


def test_unweightable_tables_are_searched_once_for_a_price(monkeypatch):
    domain = ln.Domain(
        {f"a{place}": ln.Coded(3) for place in range(3)}, measures={"pay": ln.Measure("pay", 0, 9)}
    ).as_complete()
    workload = ln.mean_queries(domain, "pay", by=["a0"])
    for name in ("a1", "a2"):
        workload += ln.mean_queries(domain, "pay", by=[name])
    plan = ln.plan(workload, PureDP(1), strategy="marginals")
    # Its sums count the rows at both bounds.
    with pytest.raises(InputError):
        reweight_plan(plan, plan.workload)
    monkeypatch.setattr(targets, "_NEARLY_ALL", 0.1)
    searches = record_calls(monkeypatch, targets, "search_again")
    assert 0.1 < targets.joint_price(plan, [0, 1]).saved < 0.9
    # One search is for the table with its sums, and one for all others.
    assert len(searches) == 2


def test_least_budget_needs_one_comparison_and_its_time(monkeypatch):
    """The time is the sum of estimates of the searches, without a clock."""
    proposals = []
    propose = Planner.strategy

    def recorded(planner, problem):
        proposals.append((planner, problem))
        return propose(planner, problem)

    monkeypatch.setattr(Planner, "strategy", recorded)
    comparisons = record_calls(monkeypatch, targets, "choose_plan")
    search = Search(seconds=5)
    targets.plan_least_budget(workload_with_targets(), ln.Least(), search)
    assert len(comparisons) == 1
    seconds = sum(
        min(problem.seconds, planner.most_seconds(problem.workload, 1))
        for planner, problem in proposals
        if problem.seconds >= planner.least_seconds(problem.workload, 1)
    )
    expected = expected_seconds(workload_with_targets(), ln.Least(), search)
    assert seconds / 3 <= expected <= min(3 * seconds, search.seconds)


def test_every_objective_has_an_estimate_of_its_time():
    workload = workload_with_targets()
    privacy = Privacy(PureDP(1))
    search = Search(seconds=5)
    assert expected_seconds(workload, privacy, search) > 0
    assert 0 < expected_seconds(workload, privacy, search, "worst") <= search.seconds
    assert expected_seconds(workload, privacy, Search("covering")) > 0

    with_targets = ONE_WAY.within(rmse=9)
    seconds = expected_seconds(ONE_WAY, privacy, search, "worst")
    assert seconds > expected_seconds(with_targets, privacy, search, "worst")


def test_cached_tables_are_reweighted_for_other_queries(covering_plan):
    """Reweighting never makes a plan worse, and restores the best weights."""
    reweighted = reweight_plan(covering_plan, covering_plan.workload)
    assert reweighted.expected_error().total_squared_error == pytest.approx(
        covering_plan.expected_error().total_squared_error, rel=1e-4
    )
    first_block = covering_plan.measurements.blocks[0]
    # Tables that the first block answers.
    inside = [
        product
        for product in covering_plan.workload
        if set(first_block.attributes).issuperset(product.attributes)
    ]
    products = [
        replace(product, weight=Fraction(9) if place % 2 else 1)
        for place, product in enumerate(covering_plan.workload)
    ]
    for tables in (products[2:], inside):
        workload = ln.Workload(covering_plan.domain, tuple(tables))
        reweighted = reweight_plan(covering_plan, workload)
        plan = targets.plan_for_workload(workload, covering_plan)
        ratio = (
            reweighted.expected_error().total_squared_error
            / plan.expected_error().total_squared_error
        )
        assert ratio <= 1 + 1e-6
    # One block has nearly the whole cost of a row, whatever the search found.
    assert ratio < 0.7


def test_tables_without_a_common_strategy_are_refused(covering_plan):
    # No table of four attributes contains this workload, whichever tables the search found.
    other = ln.queries(covering_plan.domain, dict.fromkeys(covering_plan.domain.names, "identity"))
    with pytest.raises(
        InputError, match="the strategy has no table that contains a0 x a1 x a2 x a3 x a4"
    ):
        reweight_plan(covering_plan, other)
    domain = ln.Domain(a=ln.Integers(0, 7)).as_complete()
    workload = ln.queries(domain, a="prefix") + ln.queries(domain, a="identity")
    plan = ln.plan(workload, PureDP(1), strategy="workload")
    with pytest.raises(InputError, match="do not all use the same queries along each attribute"):
        reweight_plan(plan, workload)


def test_rescaled_errors_match_a_new_plan():
    plan = ln.plan(ONE_WAY, PureDP(1), strategy="marginals")
    new_plan = ln.plan(ONE_WAY, PureDP("1/3"), strategy="marginals")
    privacy = targets.with_epsilon_or_rho(plan.privacy, "1/3")
    rescaled = targets.plan_for_workload(ONE_WAY, plan, privacy)
    assert rescaled.expected_error().total_squared_error == pytest.approx(
        new_plan.expected_error().total_squared_error, rel=1e-5
    )


def statuses_at(epsilon):
    """Return the statuses of all targets of a plan with this epsilon."""
    plan = ln.plan(workload_with_targets(), PureDP(epsilon), strategy="marginals")
    return targets.target_statuses(plan, 0.95)


def test_target_statuses_are_reported():
    statuses = [(status.kind, status.most, status.is_met) for status in statuses_at(1)]
    assert statuses == [("margin", 20, True), ("margin", 90, True), ("rmse", 12, True)]
    assert not any(status.is_met for status in statuses_at("1/100"))


def test_planner_bound_is_not_used_for_other_workloads():
    domain = ln.Domain(age=ln.Integers(0, 31)).as_complete()
    plan = ln.plan(ln.queries(domain, age="prefix"), ln.ZCDP("1/2"), strategy="gaussian_optimum")
    assert plan.details.unit_bound > 0
    cells = ln.queries(domain, age="identity")
    plan_of_cells = ln.plan(cells, ln.ZCDP("1/2"), strategy="identity")
    assert targets.plan_for_workload(
        cells, plan
    ).data_independent_error.lower_bound == pytest.approx(
        plan_of_cells.data_independent_error.lower_bound
    )
    half = targets.plan_for_workload(plan.workload, plan, ln.Privacy(ln.ZCDP("1/8")))
    assert half.data_independent_error.lower_bound == pytest.approx(
        4 * plan.data_independent_error.lower_bound, rel=1e-6
    )


@pytest.mark.parametrize("objective", ["total", "worst", "relative"])
def test_report_names_the_objective(tmp_path, objective):
    workload = ln.marginals(ln.Domain(sex=["F", "M"], age=ln.Integers(0, 49)).as_complete(), upto=2)
    if objective == "relative":
        workload = workload.within(size=1000)
    plan = ln.plan(workload, ln.PureDP(1), objective=objective, strategy="marginals")
    assert plan.details.objective == objective
    ln.release(plan, pd.DataFrame({"sex": ["F", "M"], "age": [1, 2]}), seed=1, out=tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    phrases = {
        "total": "weighted total of all",
        "worst": "to its target small; without targets",
        "relative": "relative to the public sizes",
    }
    assert [name for name, text in phrases.items() if text in page] == [objective]


def workload_of_prefix_sums():
    """Return a workload whose integer strategy cannot take the noise of small budgets."""
    pay = ln.Measure("pay", 0, 100)
    domain = ln.Domain(
        a=ln.Integers(0, 39), b=ln.Integers(0, 7), c=ln.Integers(0, 4), measures={"pay": pay}
    ).as_complete()
    counts = ln.queries(domain, a="identity", b="prefix").within(rmse=90)
    sums = ln.queries(domain, sum="pay", a="prefix", c="identity").within(rmse=2000)
    return counts + sums + ln.queries(domain, a="prefix").within(rmse=60)


def test_least_budget_is_found_without_room_for_noise():
    workload = workload_of_prefix_sums()
    search = Search("tilted")
    plan_of_one = plan_workload(workload, ln.Privacy(ln.ZCDP(1)), search)
    plan = targets.plan_least_budget(workload, ln.Least("rho"), search)
    with pytest.raises(
        InputError, match=r"leave no room for so much noise; plan for that budget itself"
    ):
        targets.plan_for_workload(workload, plan_of_one, plan.privacy)
    assert 0.99 < targets.squared_ratios(targets.table_goals(workload, 0.95), plan).max() <= 1
