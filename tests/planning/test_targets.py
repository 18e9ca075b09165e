"""Least budgets for error targets, and plans with the smallest largest ratio."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

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


def asked():
    tables = ln.queries(DOMAIN, sex="identity").within(margin=20) + ln.queries(
        DOMAIN, education="prefix"
    ).within(margin=90)
    return tables + ln.queries(DOMAIN, education="identity", work="identity").within(rmse=12)


LEAST = {
    "pure": ln.Least(),
    "replace": ln.Least(neighbours="replace"),
    "rho": ln.Least("rho"),
    "approx": ln.Least(delta="1e-6"),
}


@pytest.mark.parametrize("kind", LEAST)
def test_least_budget_just_keeps_every_target(kind):
    workload, privacy = asked(), LEAST[kind]
    plan = targets.plan_least_budget(workload, privacy, Search("marginals"))
    goals = targets.table_goals(workload, 0.95)
    size = next(iter(parameters_by_name(plan.privacy.budget).values()))
    bound = targets.dual_bound(
        targets.equalised_weights(workload, goals), goals, plan.privacy, plan.measured().noise
    )
    assert 0 < bound <= targets.ratios(goals, plan).max() <= 1
    less = targets.plan_for_workload(workload, plan, privacy.privacy(size * Fraction(999, 1000)))
    assert targets.ratios(goals, less).max() > 1
    assert plan.privacy == privacy.privacy(size)


def test_separate_tables_reach_equal_ratios_in_one_step():
    # Two tables on different attributes: under rho the shares s_j of the budget that make a_j /
    # (s_j t_j^2) equal are a_j / t_j^2.
    workload = ln.queries(DOMAIN, education="identity").within(rmse=5) + ln.queries(
        DOMAIN, work="identity"
    ).within(rmse=20)
    balanced = targets.balance_plan(
        workload, Privacy(ZCDP(1)), targets.table_goals(workload, 0.95), Search("marginals")
    )
    first_ratio, second_ratio = targets.ratios(targets.table_goals(workload, 0.95), balanced.plan)
    assert first_ratio == pytest.approx(second_ratio, rel=0.01)
    variances = [table.rmse**2 for table in balanced.plan.expected_error().tables]
    assert variances[1] / variances[0] == pytest.approx(16, rel=0.02)
    assert (
        targets.dual_bound(
            balanced.workload, balanced.goals, balanced.plan.privacy, balanced.plan.measured().noise
        )
        <= balanced.ratio
    )


def test_margins_cover_at_their_stated_rate():
    workload = asked()
    plan = targets.plan_least_budget(workload, ln.Least(), Search("marginals"))
    education, work = np.arange(1000) % 16, np.arange(1000) % 9
    rows = pd.DataFrame({"sex": ["F", "M"] * 500, "education": education, "work": work})
    cells = np.bincount(education * 9 + work, minlength=144)
    truth = np.concatenate([[500, 500], np.cumsum(np.bincount(education)), cells])
    margins = np.repeat([20.0, 90.0, np.nan], [2, 16, 144])
    errors = np.array(
        [
            np.asarray(release.answers["answer"]) - truth
            for release in releases(plan, rows, range(60))
        ]
    )
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


ONE = ln.marginals(DOMAIN, ways=1)
PREFIX = ln.queries(DOMAIN, education="prefix").within(margin=9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (ONE.within, "got none"),
        (lambda: ONE.within(margin=0), "margin"),
        (
            lambda: targets.plan_least_budget(
                ONE.within(margin="0.9"), ln.Least(), Search("identity")
            ),
            r"margin of sex must be at least 1; got '?9/10",
        ),
        (lambda: targets.plan_least_budget(ONE, ln.Least()), "No table has a target"),
        (lambda: ONE.within(margin=1) + ONE.within(margin=2), "two targets or two sizes"),
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
def test_invalid_targets_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_worst_objective_improves_the_worst_table():
    # One attribute of 2 cells and one of 60: under the least total the small tables get little of
    # the budget.
    domain = ln.Domain(a=["x", "y"], b=ln.Integers(1, 60)).as_complete()
    workload = ln.marginals(domain, ways=1)
    usual, fair = (
        ln.plan(workload, ZCDP(1), strategy="marginals", objective=objective)
        for objective in ("total", "worst")
    )
    first, second = (
        [table.rmse for table in plan.expected_error().tables] for plan in (usual, fair)
    )
    # Measured separately, both tables have the same error, so each gets half of the budget.
    assert second[0] == pytest.approx(second[1], rel=0.01)
    assert max(first) > 1.5 * max(second)
    assert fair.expected_error().total_squared_error > usual.expected_error().total_squared_error


def test_relative_errors_follow_public_sizes():
    domain = ln.Domain(a=ln.Integers(1, 20), b=ln.Integers(1, 20)).as_complete()
    workload = ln.queries(domain, a="identity").within(size=100) + ln.queries(
        domain, b="identity"
    ).within(size=1600)
    plan = ln.plan(workload, ZCDP(1), strategy="marginals", objective="relative")
    weighted = ln.queries(domain, a="identity", weight=16) + ln.queries(domain, b="identity")
    same = ln.plan(weighted, ZCDP(1), strategy="marginals")
    errors, wanted = (
        [table.rmse for table in made.expected_error().tables] for made in (plan, same)
    )
    assert errors == pytest.approx(wanted)
    assert errors[1] > 3 * errors[0]
    assert [product.weight for product in plan.workload] == [1, 1]


def test_single_table_price_is_its_saving():
    domain = ln.Domain(a=ln.Integers(1, 20), b=ln.Integers(1, 20)).as_complete()
    plan = ln.plan(
        ln.queries(domain, a="identity") + ln.queries(domain, b="identity", weight=3),
        ZCDP(1),
        strategy="marginals",
    )
    # Both know the total.
    prices = [
        (price.alone, price.saved) for price in targets.table_prices(plan, Search("marginals"))
    ]
    assert np.array(prices) == pytest.approx(np.array([[0.25, 0.25], [0.75, 0.75]]), rel=0.05)
    with pytest.raises(InputError, match="from 2 to 24"):
        targets.table_prices(
            ln.plan(ln.queries(domain, a="identity"), ZCDP(1), strategy="marginals")
        )


@pytest.fixture(scope="module")
def covered():
    domain = ln.Domain({f"a{place}": ln.Coded(3) for place in range(5)}).as_complete()
    return ln.plan(
        ln.marginals(domain, ways=1) + ln.marginals(domain, ways=2), PureDP(1), strategy="covering"
    )


def test_table_among_many_is_priced_without_search(covered, monkeypatch):
    monkeypatch.setattr(targets, "_NEARLY_ALL", 2.0)
    slow = targets.joint_price(covered, [3])
    before = _designs._cached_design.cache_info().misses
    monkeypatch.setattr(targets, "_NEARLY_ALL", 0.9)
    quick = targets.joint_price(covered, [3])
    assert _designs._cached_design.cache_info().misses == before
    assert (quick.table, quick.alone) == (slow.table, slow.alone)
    assert quick.saved == pytest.approx(slow.saved, abs=0.02)


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


def counted(monkeypatch, module, name):
    """How often a function of a module is called from now on: a list that grows."""
    calls, function = [], getattr(module, name)
    monkeypatch.setattr(
        module, name, lambda *given, **more: calls.append(given) or function(*given, **more)
    )
    return calls


def test_shared_parts_of_prices_are_searched_once(monkeypatch):
    domain = ln.Domain(a=ln.Integers(1, 5), b=ln.Integers(1, 4)).as_complete()
    two = ln.plan(
        ln.queries(domain, a="identity") + ln.queries(domain, b="identity"),
        PureDP(1),
        strategy="marginals",
    )
    alone = counted(monkeypatch, targets, "choose_plan")
    targets.table_prices(two, Search("marginals"))
    assert len(alone) == 2  # what one needs alone is what is left where the other is left out


def test_unweightable_tables_are_searched_once_for_a_price(monkeypatch):
    domain = ln.Domain(
        {f"a{place}": ln.Coded(3) for place in range(3)}, measures={"pay": ln.Measure("pay", 0, 9)}
    ).as_complete()
    workload = sum(
        (ln.mean_queries(domain, "pay", by=[f"a{place}"]) for place in (1, 2)),
        ln.mean_queries(domain, "pay", by=["a0"]),
    )
    plan = ln.plan(workload, PureDP(1), strategy="marginals")
    with pytest.raises(InputError):
        reweight_plan(plan, plan.workload)  # it measures both ends
    monkeypatch.setattr(targets, "_NEARLY_ALL", 0.1)
    searched = counted(monkeypatch, targets, "search_again")
    assert 0.1 < targets.joint_price(plan, [0, 1]).saved < 0.9
    assert len(searched) == 2  # the table with its sums, and all others


def test_least_budget_needs_one_comparison_and_its_time(
    monkeypatch,
):
    """By the estimates of what is searched, never by a clock."""
    calls = []
    propose = Planner.strategy
    monkeypatch.setattr(
        Planner,
        "strategy",
        lambda planner, problem: calls.append((planner, problem)) or propose(planner, problem),
    )
    compared = counted(monkeypatch, targets, "choose_plan")
    search = Search(seconds=5)
    targets.plan_least_budget(asked(), ln.Least(), search)
    assert len(compared) == 1
    spent = sum(
        min(problem.seconds, one.most_seconds(problem.workload, 1))
        for one, problem in calls
        if problem.seconds >= one.least_seconds(problem.workload, 1)
    )
    about = expected_seconds(asked(), ln.Least(), search)
    assert spent / 3 <= about <= min(3 * spent, search.seconds)


def test_every_objective_has_an_estimate_of_its_time():
    privacy, search = Privacy(PureDP(1)), Search(seconds=5)
    total, worst, named = (
        expected_seconds(asked(), privacy, *more)
        for more in ((search,), (search, "worst"), (Search("covering"),))
    )
    assert 0 < worst <= search.seconds
    assert total > 0 < named
    without = ln.marginals(DOMAIN, ways=1)
    assert expected_seconds(without, privacy, search, "worst") > expected_seconds(
        without.within(rmse=9), privacy, search, "worst"
    )


def test_cached_tables_are_reweighted_for_other_queries(covered):
    """Reweighting never makes a plan worse, and restores the best weights."""
    reweighted = reweight_plan(covered, covered.workload)
    assert reweighted.expected_error().total_squared_error == pytest.approx(
        covered.expected_error().total_squared_error, rel=1e-4
    )
    first = {
        name for factor in covered.measurements.blocks[0].factors for name in factor.attributes
    }
    # Tables that the first block answers.
    inside = [product for product in covered.workload if first.issuperset(product.attributes)]
    products = [
        replace(product, weight=Fraction(9) if place % 2 else 1)
        for place, product in enumerate(covered.workload)
    ]
    for some in (products[2:], inside):
        other = ln.Workload(covered.domain, tuple(some))
        new_error, old_error = (
            plan.expected_error().total_squared_error
            for plan in (reweight_plan(covered, other), targets.plan_for_workload(other, covered))
        )
        assert new_error <= old_error * (1 + 1e-6)
    # One block has nearly the whole cost of a row, whatever the search found.
    assert new_error < 0.7 * old_error


def test_tables_without_a_common_strategy_are_refused(covered):
    # No table of four attributes contains this workload, whichever tables the search found.
    other = ln.queries(covered.domain, dict.fromkeys(covered.domain.names, "identity"))
    with pytest.raises(
        InputError, match="the strategy has no table that contains a0 x a1 x a2 x a3 x a4"
    ):
        reweight_plan(covered, other)
    domain = ln.Domain(a=ln.Integers(0, 7)).as_complete()
    mixed = ln.plan(
        ln.queries(domain, a="prefix") + ln.queries(domain, a="identity"),
        PureDP(1),
        strategy="workload",
    )
    with pytest.raises(InputError, match="do not all use the same queries along each attribute"):
        reweight_plan(mixed, mixed.workload)


def test_rescaled_errors_match_a_new_plan():
    workload = ln.marginals(DOMAIN, ways=1)
    plan, other_plan = (
        ln.plan(workload, PureDP(epsilon), strategy="marginals") for epsilon in (1, "1/3")
    )
    scaled = targets.plan_for_workload(
        workload, plan, targets.with_epsilon_or_rho(plan.privacy, "1/3")
    )
    assert scaled.expected_error().total_squared_error == pytest.approx(
        other_plan.expected_error().total_squared_error, rel=1e-5
    )


def test_target_statuses_are_reported():
    most, least = (
        targets.target_statuses(ln.plan(asked(), PureDP(epsilon), strategy="marginals"), 0.95)
        for epsilon in (1, "1/100")
    )
    assert [(status.kind, status.most, status.is_met) for status in most] == [
        ("margin", 20, True),
        ("margin", 90, True),
        ("rmse", 12, True),
    ]
    assert not any(status.is_met for status in least)


def test_planner_bound_is_not_used_for_other_workloads() -> None:
    domain = ln.Domain(age=ln.Integers(0, 31)).as_complete()
    plan = ln.plan(ln.queries(domain, age="prefix"), ln.ZCDP("1/2"), strategy="gaussian_optimum")
    assert plan.details.unit_bound > 0
    cells = targets.plan_for_workload(ln.queries(domain, age="identity"), plan)
    assert cells.data_independent_error.lower_bound == pytest.approx(
        ln.plan(
            cells.workload, ln.ZCDP("1/2"), strategy="identity"
        ).data_independent_error.lower_bound
    )
    half = targets.plan_for_workload(plan.workload, plan, ln.Privacy(ln.ZCDP("1/8")))
    assert half.data_independent_error.lower_bound == pytest.approx(
        4 * plan.data_independent_error.lower_bound, rel=1e-6
    )


@pytest.mark.parametrize("objective", ["total", "worst", "relative"])
def test_report_names_the_objective(tmp_path: Path, objective: str) -> None:
    workload = ln.marginals(ln.Domain(sex=["F", "M"], age=ln.Integers(0, 49)).as_complete(), upto=2)
    workload = workload.within(size=1000) if objective == "relative" else workload
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


def small():
    """Return a workload whose integer strategy cannot take the noise of small budgets."""
    pay = ln.Measure("pay", 0, 100)
    domain = ln.Domain(
        a=ln.Integers(0, 39), b=ln.Integers(0, 7), c=ln.Integers(0, 4), measures={"pay": pay}
    ).as_complete()
    sums = ln.queries(domain, sum="pay", a="prefix", c="identity").within(rmse=2000)
    return (
        ln.queries(domain, a="identity", b="prefix").within(rmse=90)
        + sums
        + ln.queries(domain, a="prefix").within(rmse=60)
    )


def test_least_budget_is_found_without_room_for_noise():
    workload, search = small(), Search("tilted")
    first = plan_workload(workload, ln.Privacy(ln.ZCDP(1)), search)
    plan = targets.plan_least_budget(workload, ln.Least("rho"), search)
    with pytest.raises(
        InputError, match=r"leave no room for so much noise; plan for that budget itself"
    ):
        targets.plan_for_workload(workload, first, plan.privacy)
    assert 0.99 < targets.ratios(targets.table_goals(workload, 0.95), plan).max() <= 1
