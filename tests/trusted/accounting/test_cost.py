"""Which budgets cover which costs, against exact probabilities of mechanisms."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastnoise._trusted.accounting import (
    ZCDP,
    ApproxDP,
    ConcentratedCost,
    GaussianCost,
    Noise,
    PureCost,
    PureDP,
    SeriesCost,
    cost_from_json,
    covers,
    gaussian_mu_squared,
    parameters_by_name,
    rho_of_cost,
)
from leastnoise._trusted.check import InputError
from trusted.kernel.noise_oracle import cumulative

POSITIVE = st.fractions(min_value=Fraction(1, 10**6), max_value=100)
COSTS = st.one_of(
    POSITIVE.map(PureCost), POSITIVE.map(GaussianCost), POSITIVE.map(ConcentratedCost)
)
HAIR = Fraction(1, 10**30)


@pytest.mark.parametrize(
    ("budget", "cost"),
    [
        (PureDP("1/3"), PureCost("1/3")),
        (ApproxDP("1/3", "1e-9"), PureCost("1/3")),
        (ZCDP("1/18"), PureCost("1/3")),
        (ZCDP("1/3"), GaussianCost("2/3")),
        (ZCDP("1/3"), ConcentratedCost("1/3")),
    ],
)
def test_costs_at_boundaries_are_exact(budget, cost):
    """A cost equal to the budget is covered; one larger by a relative 1e-30 is not."""
    ((name, value),) = parameters_by_name(cost).items()
    assert covers(budget, cost)
    assert not covers(budget, replace(cost, **{name: value * (1 + HAIR)}))
    # A pure budget covers no Gaussian noise, however little it costs.
    assert isinstance(cost, PureCost) or not covers(PureDP(100), replace(cost, **{name: HAIR}))


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-9"), ("1", "1e-6"), ("8", "1e-12")])
def test_largest_covered_cost_is_tight(epsilon, delta):
    budget = ApproxDP(epsilon, delta)
    square = gaussian_mu_squared(epsilon, delta)
    assert covers(budget, GaussianCost(square))
    assert not covers(budget, GaussianCost(square * (1 + Fraction(1, 10**12))))
    # The general bound is weaker than the bound for Gaussian noise.
    assert not covers(budget, ConcentratedCost(square / 2))


@given(COSTS)
def test_costs_survive_json_and_are_covered_by_rho(cost):
    assert cost_from_json(json.loads(json.dumps(cost.to_json()))) == cost
    assert covers(ZCDP(rho_of_cost(cost)), cost)
    assert not covers(ZCDP(rho_of_cost(cost) * (1 - HAIR)), cost)


@pytest.mark.parametrize("make", [PureCost, GaussianCost, ConcentratedCost])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_costs_are_above_zero(make, value):
    with pytest.raises(InputError, match=r"must be a (finite )?number"):
        make(value)


def test_covers_refuses_other_types():
    with pytest.raises(
        InputError,
        match=re.escape(
            "cost must be PureCost, GaussianCost, ConcentratedCost or SeriesCost; got 1."
        ),
    ):
        covers(PureDP(1), 1)
    with pytest.raises(
        InputError, match=re.escape("budget must be PureDP, ApproxDP, ZCDP or GDP; got 1.")
    ):
        covers(1, PureCost(1))
    with pytest.raises(InputError, match="budget must be PureDP"):
        SeriesCost(1)


def test_cost_repr_names_its_definition():
    assert str(PureCost("1/3")) == "epsilon = 1/3 (discrete Laplace noise)"
    assert str(GaussianCost(2)) == "mu squared = 2 (Gaussian noise)"
    assert str(ConcentratedCost("0.5")) == "rho = 0.5 (discrete Gaussian noise)"


KINDS = {
    "laplace": Noise.DISCRETE_LAPLACE,
    "gaussian": Noise.DISCRETE_GAUSSIAN,
    "rounded": Noise.ROUNDED_GAUSSIAN,
}


@pytest.mark.parametrize("law", KINDS)
@pytest.mark.parametrize(
    "scale", [Fraction(1, 2), Fraction(7, 10), Fraction(3), Fraction(11), Fraction(40)]
)
def test_noise_loses_no_more_than_its_cost_says(law, scale):
    """Compare hockey-stick divergence, Renyi divergence and largest ratio for a shift of 1."""
    reach = int(12 * scale) + 4
    cost = KINDS[law].cost(1 / scale ** KINDS[law].norm)
    weights = np.diff(cumulative(law, float(scale), np.arange(-reach, reach)))
    assert covers(ApproxDP(100, "0.999999"), cost)

    for epsilon in ("0.1", "0.5", "1", "3"):
        exact = math.fsum(np.maximum(weights[:-1] - math.exp(float(epsilon)) * weights[1:], 0))
        assert exact < 1e-14 or not covers(
            ApproxDP(epsilon, Fraction(exact) * Fraction(999, 1000)), cost
        )
    p = weights[:-1][weights[1:] > 1e-9]
    q = weights[1:][weights[1:] > 1e-9]
    assert law != "laplace" or np.log(p / q).max() == pytest.approx(float(1 / scale), rel=1e-6)
    for alpha in (1.01, 1.5, 2, 8):
        assert math.log(math.fsum(p * (p / q) ** (alpha - 1))) / (alpha - 1) <= alpha * float(
            rho_of_cost(cost)
        ) * (1 + 1e-6)


@pytest.mark.parametrize("budget", [PureDP("1/3"), ApproxDP(1, "1e-9"), ZCDP("1/8")])
def test_series_costs_its_whole_budget(budget):
    cost = SeriesCost(budget)
    assert covers(budget, cost)
    # Larger budgets would cover the cost, but only equality is proved.
    for larger_budget in (PureDP(2), ApproxDP(2, "1e-3"), ZCDP(2)):
        assert not covers(larger_budget, cost)
    assert cost_from_json(json.loads(json.dumps(cost.to_json()))) == cost


def test_rho_of_a_series_matches_its_budget():
    assert rho_of_cost(SeriesCost(PureDP("1/2"))) == Fraction(1, 8)
    assert rho_of_cost(SeriesCost(ZCDP("1/3"))) == Fraction(1, 3)
