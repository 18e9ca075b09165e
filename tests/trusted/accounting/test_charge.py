"""Sums of charges, against exact output distributions of adaptively composed mechanisms."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Charge,
    ConcentratedCost,
    GaussianCost,
    PureCost,
    PureDP,
    SeriesCost,
    charge,
    charge_from_json,
    charge_of_budget,
    charge_shortfall,
    charge_text,
    gaussian_epsilon,
    is_possible_charge,
    left_of_budget,
    pure_mu_squared,
    spent_epsilon,
    step_charge,
    sum_charges,
    unspent_charge,
)
from leastnoise._trusted.check import InputError

AMOUNT = st.fractions(min_value=0, max_value=100)
CHARGES = st.builds(Charge, epsilon=AMOUNT, delta=AMOUNT, rho=AMOUNT, mu_squared=AMOUNT)
PURE_HALF = Charge(epsilon=Fraction(1, 2), mu_squared=pure_mu_squared(Fraction(1, 2)))


@pytest.mark.parametrize(
    ("budget", "declared", "cost", "expected"),
    [
        (PureDP(5), PureDP("1/2"), PureCost("1/3"), Charge(epsilon=Fraction(1, 2))),
        (ZCDP(5), ZCDP("1/2"), PureCost("1/3"), Charge(rho=Fraction(1, 2))),
        (ZCDP(5), PureDP("1/2"), PureCost("1/3"), Charge(rho=Fraction(1, 8))),
        (ZCDP(5), ZCDP("1/2"), GaussianCost("1/3"), Charge(rho=Fraction(1, 2))),
        (ZCDP(5), ApproxDP(9, "0.5"), GaussianCost("1/3"), Charge(rho=Fraction(1, 6))),
        (ZCDP(5), ZCDP("1/2"), ConcentratedCost("1/3"), Charge(rho=Fraction(1, 2))),
        (ZCDP(5), PureDP("1/2"), SeriesCost(PureDP("1/2")), Charge(rho=Fraction(1, 8))),
        (ApproxDP(5, "0.1"), PureDP("1/2"), SeriesCost(PureDP("1/2")), PURE_HALF),
        *(
            (budget, budget, SeriesCost(budget), charge_of_budget(budget))
            for budget in (PureDP("1/3"), ApproxDP(1, "1e-9"), ZCDP("1/8"), GDP("1/8"))
        ),
        (ApproxDP(5, "0.1"), PureDP("1/2"), PureCost("1/3"), PURE_HALF),
        (ApproxDP(5, "0.1"), ApproxDP("1/2", "1e-9"), PureCost("1/3"), PURE_HALF),
        (
            ApproxDP(5, "0.1"),
            ApproxDP(1, "0.01"),
            GaussianCost("1/100"),
            Charge(mu_squared=Fraction(1, 100)),
        ),
        (ApproxDP(5, "0.1"), GDP("1/50"), GaussianCost("1/99"), Charge(mu_squared=Fraction(1, 50))),
        (
            ApproxDP(5, "0.1"),
            GDP(2),
            PureCost("1/2"),
            Charge(epsilon=Fraction(1, 2), mu_squared=Fraction(2)),
        ),
        (ApproxDP(5, "0.1"), GDP(2), SeriesCost(GDP(2)), Charge(mu_squared=Fraction(2))),
        (GDP(5), GDP(2), GaussianCost(1), Charge(mu_squared=Fraction(2))),
        (GDP(5), PureDP("1/2"), PureCost("1/2"), Charge(mu_squared=PURE_HALF.mu_squared)),
        (GDP(5), ApproxDP(1, "0.01"), GaussianCost("1/100"), Charge(mu_squared=Fraction(1, 100))),
        (ZCDP(5), GDP(2), GaussianCost(1), Charge(rho=Fraction(1, 2))),
        (ZCDP(5), GDP(2), SeriesCost(GDP(2)), Charge(rho=Fraction(1))),
        (
            ApproxDP(5, "0.1"),
            ApproxDP(1, "0.01"),
            ConcentratedCost("1/100"),
            Charge(epsilon=Fraction(1), delta=Fraction(1, 100)),
        ),
    ],
)
def test_release_charge_is_computed(budget, declared, cost, expected):
    computed = charge(budget, declared, cost)
    assert computed == expected
    assert is_possible_charge(budget, computed)


@pytest.mark.parametrize(
    ("budget", "declared", "cost", "message"),
    [
        (
            PureDP(5),
            ApproxDP(1, "0.1"),
            GaussianCost("1/100"),
            "has a PureDP budget, which only pure releases can be charged to",
        ),
        (
            PureDP(5),
            ZCDP(1),
            ConcentratedCost(1),
            "Plan with PureDP(epsilon), or set a ZCDP or ApproxDP budget for the data set.",
        ),
        (PureDP(5), ZCDP(1), PureCost(1), "only pure releases"),
        (
            ApproxDP(5, "0.1"),
            ZCDP(1),
            GaussianCost(1),
            "The data set has an ApproxDP budget, which adds up mu squared; the plan declares ZCDP",
        ),
        (
            ApproxDP(5, "0.1"),
            ZCDP(1),
            PureCost(1),
            "or GDP(mu_squared), or set a ZCDP budget for the data set.",
        ),
        (
            GDP(1),
            ZCDP(1),
            GaussianCost(1),
            "The data set has a GDP budget, which adds up mu squared",
        ),
        (
            GDP(1),
            ApproxDP(1, "0.01"),
            SeriesCost(ApproxDP(1, "0.01")),
            "which has no delta; the plan declares ApproxDP(epsilon='1', delta='1/100')",
        ),
        (PureDP(1), GDP(1), GaussianCost(1), "which only pure releases can be charged to"),
        (GDP(1), GDP(1), PureCost(1), "is not proved to cover its cost, epsilon = 1"),
        (
            PureDP(1),
            ZCDP(1),
            SeriesCost(ZCDP(1)),
            "a PureDP budget, which only pure releases can be charged to",
        ),
        (
            ZCDP(1),
            ApproxDP(1, "1e-9"),
            SeriesCost(ApproxDP(1, "1e-9")),
            "Declare PureDP or ZCDP where rho is added up",
        ),
        (
            PureDP(5),
            PureDP("1/3"),
            PureCost("1/2"),
            "declares PureDP(epsilon='1/3'), which is not proved to cover its cost, epsilon = 0.5",
        ),
        (
            ZCDP(5),
            PureDP(1),
            GaussianCost("1e-9"),
            "is not proved to cover its cost, mu squared = 1e-9 (Gaussian noise). Make",
        ),
    ],
)
def test_ledger_refuses_foreign_charges(budget, declared, cost, message):
    with pytest.raises(InputError, match=re.escape(message)):
        charge(budget, declared, cost)


def test_long_costs_round_up_to_short_charges():
    long = Fraction(7**200 - 1, 7**200)
    assert charge(PureDP(5), PureDP(1), PureCost(long)).epsilon == 1
    assert charge(PureDP(5), PureDP(long), PureCost(long)).epsilon == long
    assert charge(ZCDP(5), PureDP(1), PureCost(long)).rho == Fraction(1, 2)

    cost = GaussianCost(long / 1000)
    in_rho = charge(ZCDP(5), ApproxDP(1, "1e-6"), cost).rho
    in_mu = charge(ApproxDP(5, "1e-6"), ApproxDP(1, "1e-6"), cost).mu_squared
    for least, rounded in ((cost.mu_squared / 2, in_rho), (cost.mu_squared, in_mu)):
        assert least < rounded <= least * (1 + Fraction(1, 2**127))
        assert rounded.denominator.bit_length() <= 140


def test_steps_that_share_epsilon_and_delta_declare_no_mu():
    """Charges are summed as epsilon and delta, and a step that declares mu squared has neither."""
    shared = ApproxDP(1, "1e-6")
    with pytest.raises(InputError, match="must declare ApproxDP or PureDP"):
        step_charge(shared, GDP("1/100"), GaussianCost("1/100"))
    assert step_charge(shared, PureDP("1/4"), PureCost("1/4")) == Charge(epsilon=Fraction(1, 4))


def test_spent_epsilon_has_only_the_delta_that_searches_left():
    search = Charge(epsilon=Fraction(1, 10), delta=Fraction(9, 10**7))
    gaussian = Charge(mu_squared=Fraction(1, 200))
    spent = spent_epsilon(ApproxDP(1, "1e-6"), [search, gaussian])
    assert spent == search.epsilon + gaussian_epsilon("1/200", "1e-7")


def test_delta_after_gaussian_charges_uses_up_the_budget():
    search = Charge(epsilon=Fraction(1, 100), delta=Fraction(1, 10**9))
    gaussian = Charge(mu_squared=Fraction(1, 1000))
    budget = ApproxDP(1, "1e-6")
    assert left_of_budget(budget, [search, gaussian]).mu_squared > 0
    assert left_of_budget(budget, [gaussian, search]) == Charge()


@given(st.lists(CHARGES, max_size=8), st.fractions(Fraction(1, 100), 100))
def test_charges_survive_json_and_add_in_any_order(charges, epsilon):
    assert [charge_from_json(json.loads(json.dumps(part.to_json()))) for part in charges] == charges
    half = len(charges) // 2
    total = sum_charges(charges)
    limit = charge_of_budget(PureDP(epsilon))
    assert (
        total
        == sum_charges(reversed(charges))
        == sum_charges((sum_charges(charges[:half]), sum_charges(charges[half:])))
    )
    assert all(part.is_within(total) for part in charges)
    assert unspent_charge(PureDP(epsilon), total) == Charge(
        epsilon=max(Fraction(0), epsilon - total.epsilon)
    )
    assert charge_shortfall(total, limit) == replace(
        total, epsilon=max(Fraction(0), total.epsilon - epsilon)
    )


@pytest.mark.parametrize("value", [Fraction(-1), 0.5, 1, None])
def test_charge_holds_fractions_of_at_least_zero(value):
    with pytest.raises(InputError, match="rho must be a Fraction of at least 0; got"):
        Charge(rho=value)


def test_charges_of_other_definitions_differ():
    assert not is_possible_charge(PureDP(1), Charge())
    assert not is_possible_charge(PureDP(1), Charge(epsilon=Fraction(1), delta=Fraction(1)))
    assert not is_possible_charge(ApproxDP(1, "0.1"), Charge(delta=Fraction(1, 10)))
    assert not is_possible_charge(ZCDP(1), Charge(epsilon=Fraction(1), rho=Fraction(1)))
    assert not is_possible_charge(PureDP(1), PURE_HALF)
    assert is_possible_charge(ApproxDP(1, "0.1"), PURE_HALF)
    assert not is_possible_charge(ApproxDP(1, "0.1"), replace(PURE_HALF, delta=Fraction(1, 10)))
    assert not is_possible_charge(
        ApproxDP(1, "0.1"), Charge(rho=Fraction(1), mu_squared=Fraction(1))
    )
    assert not is_possible_charge(GDP(1), PURE_HALF)
    assert (
        charge_text(ApproxDP(1, "0.1"), Charge(epsilon=Fraction(1))) == "epsilon = 1 and delta = 0"
    )
    assert str(Charge()) == "nothing"


# --- composition, by brute force ------------------------------------------------------------------
# One bit is the data. A mechanism is a pair of output distributions, one for each value of the bit.


def response(epsilon, delta=0.0):
    """Return randomised response that is exactly (epsilon, delta)-DP.

    With probability delta the output is the bit (Kairouz, Oh, Viswanath 2015).
    """
    p = (1 - delta) / (1 + math.exp(-epsilon))
    q = 1 - delta - p
    return {0: p, 1: q, "zero": delta, "one": 0.0}, {0: q, 1: p, "zero": 0.0, "one": delta}


def compose(first_mechanism, choose):
    """Return the joint distributions of two outcomes, the second mechanism chosen by the first."""
    joint_distributions = ({}, {})
    for bit, joint in enumerate(joint_distributions):
        for first_outcome, p in first_mechanism[bit].items():
            for second_outcome, q in choose(first_outcome)[bit].items():
                joint[first_outcome, second_outcome] = p * q
    return joint_distributions


def hockey_stick(pair, epsilon):
    """Return the least delta with which a pair of distributions is (epsilon, delta)-close."""
    deltas = []
    for p, q in (pair, pair[::-1]):
        excesses = [max(0.0, p[outcome] - math.exp(epsilon) * q[outcome]) for outcome in p]
        deltas.append(math.fsum(excesses))
    return max(deltas)


SPLITS = [Fraction(1, 4), Fraction(1, 3), Fraction(1, 2)]


@pytest.mark.parametrize(
    "delta", [Fraction(0), Fraction(1, 100)], ids=["epsilon", "epsilon and delta"]
)
@pytest.mark.parametrize(("first_share", "spread"), list(product(SPLITS, SPLITS)))
def test_adaptive_sums_are_tight(first_share, spread, delta):
    """The first outcome decides whether the second spends the rest or a share of it."""
    if delta:
        budget = ApproxDP(1, delta)
        declared = ApproxDP(first_share, delta * spread)
    else:
        budget = PureDP(1)
        declared = PureDP(first_share)
    remaining = unspent_charge(budget, charge(budget, declared, SeriesCost(declared)))

    def choose(outcome):
        share = 1 if outcome in {0, "one"} else float(spread)
        return response(float(remaining.epsilon) * share, float(remaining.delta) * share)

    pair = compose(response(float(first_share), float(delta * spread)), choose)

    assert float(delta) * 0.5 - 1e-15 < hockey_stick(pair, 1.0) <= float(delta) * (1 + 1e-9) + 1e-15
    assert hockey_stick(pair, 0.9 if delta else 1 - 1e-12) > float(delta)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 5.0, 30.0])
@pytest.mark.parametrize("spread", SPLITS)
def test_adaptive_sums_of_rho_hold(alpha, spread):
    """Randomised response costs epsilon^2/2; both charges together fit the budget."""
    budget = ZCDP(Fraction(1, 2))
    first_epsilon = Fraction(3, 5)
    remaining_rho = unspent_charge(
        budget, charge(budget, PureDP(first_epsilon), PureCost(first_epsilon))
    ).rho
    most = math.sqrt(2 * float(remaining_rho))

    def choose(outcome):
        return response(most if outcome == 0 else most * float(spread))

    zero, one = compose(response(float(first_epsilon)), choose)
    for p, q in ((zero, one), (one, zero)):
        terms = [p[o] * (p[o] / q[o]) ** (alpha - 1) for o in p if p[o]]
        renyi = math.log(math.fsum(terms)) / (alpha - 1)
        assert renyi <= alpha * float(budget.rho) * (1 + 1e-12)
