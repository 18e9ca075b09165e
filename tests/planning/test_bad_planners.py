"""A planner that fails is left out, and the others are used."""

import dataclasses

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._strategies import PLANNERS, Planner, Strategy

DOMAIN = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9))
ASKED = ln.marginals(DOMAIN, ways=2)


def raising(error):
    """Return a planner that raises an error."""

    def propose(problem):
        raise error

    return propose


def dividing_by_zero(problem):
    return Strategy("bad", ((next(iter(cells(problem).blocks))[0], 1 / (len(DOMAIN.names) - 2)),))


def without_a_number(problem):
    return Strategy("bad", tuple((block, float("nan")) for block, _ in cells(problem).blocks))


def plan_by_singular_matrix(problem):
    np.linalg.inv(np.zeros((2, 2)))
    return cells(problem)


def cells(problem):
    return PLANNERS["marginals"].strategy(problem)


FAILING = {
    "value": raising(ValueError("operands could not be broadcast")),
    "linear algebra": raising(np.linalg.LinAlgError("SVD did not converge")),
    "floating point": raising(FloatingPointError("underflow")),
    "overflow": raising(OverflowError("math range error")),
    "division": dividing_by_zero,
    "singular": plan_by_singular_matrix,
    "not a number": without_a_number,
}


@pytest.mark.parametrize("propose", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP(1)], ids=["pure", "gaussian"])
def test_plan_leaves_out_a_planner_that_fails(monkeypatch, propose, budget):
    without = ln.plan(ASKED, budget)
    bad = dataclasses.replace(PLANNERS["marginals"], name="bad", propose=propose)
    monkeypatch.setattr(
        "leastnoise._mechanisms._planning_time.PLANNERS", {"bad": bad, **PLANNERS, "bad too": bad}
    )
    assert ln.plan(ASKED, budget).expected_error() == without.expected_error()
    reasons = {tried.strategy: tried.reason for tried in ln.compare(ASKED, budget)}
    assert reasons["bad"]
    assert not any(reason for name, reason in reasons.items() if name == "identity")


def test_failing_planner_by_name_is_refused(monkeypatch):
    bad = Planner(name="bad", propose=FAILING["overflow"], measures="nothing", made_for="nothing")
    monkeypatch.setitem(PLANNERS, "bad", bad)
    with pytest.raises(ln.InputError, match=r"bad: its arithmetic failed \(OverflowError\)"):
        ln.plan(ASKED, ln.PureDP(1), strategy="bad")


def test_targets_leave_out_a_planner_that_fails(monkeypatch):
    bad = dataclasses.replace(PLANNERS["marginals"], name="bad", propose=FAILING["linear algebra"])
    monkeypatch.setitem(PLANNERS, "bad", bad)
    within = ASKED.within(margin=50) + ln.marginals(DOMAIN, ways=1).within(rmse=10)
    plan = ln.plan(within, ln.PureDP(1), objective="worst")
    assert plan.strategy != "bad"
