"""Thresholds as steps of a series: paid before they are drawn, for the unit's distance, and then enforced by the kernel."""

from fractions import Fraction

import numpy as np
import pytest

from leastnoise._check import BudgetError, InputError
from leastnoise.accounting import Privacy, PureDP
from leastnoise.domain import Domain, Integers, Measure
from leastnoise.linop import Identity
from leastnoise.measure import (
    LeastErrorThreshold,
    RecursiveThreshold,
    SeededEntropy,
    Series,
    SparseVectorThreshold,
    _threshold,
    geometric_candidates,
)
from leastnoise.plan import Block, DataAwarePlan, Factor, Limits, fit
from leastnoise.table import Table

DOMAIN = Domain(age=Integers(0, 3), measures={"pay": Measure("income", 0, 1000), "debt": Measure("debt", -5, 5)})
CANDIDATES = geometric_candidates(10, 2, 1000)
ASKED = {
    "sparse vector": SparseVectorThreshold(measure="pay", epsilon=Fraction(1, 2), candidates=CANDIDATES, kept=Fraction(9, 10)),
    "recursive": RecursiveThreshold(measure="pay", epsilon=Fraction(1, 2), start=10),
    "least error": LeastErrorThreshold(
        measure="pay",
        epsilon=Fraction(1, 2),
        candidates=CANDIDATES,
        low=np.array([-1]),
        high=np.array([1000]),
        noise=100.0 * np.array(CANDIDATES)[:, None],
    ),
}


def series(budget: str = "1", **privacy: object) -> Series:
    plan = DataAwarePlan(domain=DOMAIN, privacy=Privacy(PureDP(budget), **privacy), strategy="test", questions=({},))  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    unit = {key: privacy[key] for key in ("unit_column", "max_rows") if key in privacy}
    pay = np.append(rng.integers(20, 39, 5000), [900] * 10)
    table = Table(DOMAIN, {"age": rng.integers(0, 4, 5010)}, {"pay": pay, "debt": np.zeros(5010, dtype=int)}, **unit)  # type: ignore[arg-type]
    return Series.simulated(plan, table, SeededEntropy(2))


@pytest.mark.parametrize("name", ASKED)
def test_a_threshold_is_paid_and_near_the_bulk(name: str) -> None:
    steps = series()
    found = steps.choose(ASKED[name])
    assert (found.mechanism, found.spent, steps.left().epsilon) == (name, Fraction(1, 2), Fraction(1, 2))
    assert 36 <= found.limit <= 200


@pytest.mark.parametrize("name", ASKED)
def test_nothing_is_drawn_that_is_not_paid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threshold, "discrete_laplace", lambda *arguments: pytest.fail("noise was drawn before the budget agreed"))
    steps = series("1/4")
    with pytest.raises(BudgetError, match="A step asks for"):
        steps.choose(ASKED[name])
    assert steps.left().epsilon == Fraction(1, 4)


def test_the_distance_is_that_of_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = []

    def still(numerator: int, denominator: int, count: int, entropy: object) -> np.ndarray:
        scales.append(Fraction(numerator, denominator))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(_threshold, "discrete_laplace", still)
    series().choose(ASKED["recursive"])
    series(neighbours="replace", unit_column="id", max_rows=3).choose(ASKED["recursive"])
    assert scales == [2, 12]


def test_the_limit_is_what_the_next_step_costs() -> None:
    steps = series()
    limit = steps.choose(ASKED["sparse vector"]).limit
    block = Block((Factor(("age",), Identity(4)),), Fraction(1), "pay", Limits([limit]))
    plan = fit(DOMAIN, Privacy(PureDP("1/2")), "discrete_laplace", [(block, 1.0)], "cells")
    assert plan.blocks[0].scale == 2 * limit
    assert len(steps.measure(plan).values[0]) == 4
    assert steps.left().epsilon == 0


def test_measures_below_zero_are_refused_before_they_are_paid() -> None:
    steps = series()
    with pytest.raises(
        InputError, match=r"lower bound of a measure with a private limit must be at least 0; got -5. Declare it with low 0"
    ):
        steps.choose(RecursiveThreshold(measure="debt", epsilon=Fraction(1, 2), start=1))
    with pytest.raises(InputError, match="a measure must be one of 'pay', 'debt'"):
        steps.choose(RecursiveThreshold(measure="wealth", epsilon=Fraction(1, 2), start=1))
    assert steps.left().epsilon == 1


def test_what_a_choice_was_told_cannot_change_after_its_sensitivity() -> None:
    low, high, noise = np.array([-1]), np.array([50]), np.array([[1.0], [2.0]])
    told = LeastErrorThreshold(measure="pay", epsilon=Fraction(1), candidates=[10, 50], low=low, high=high, noise=noise)
    low[0], high[0], noise[0] = 50, 50, 9.0
    assert (told.low.tolist(), told.high.tolist(), told.noise.tolist(), told.candidates) == ([-1], [50], [[1.0], [2.0]], (10, 50))
    for kept in (told.low, told.high, told.noise):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 0
