"""The power of an A/B test, against simulated tests."""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._estimation import Estimate
from leastnoise._trusted.check import InputError
from simulated import read_table, simulations

SITES = 40  # each one test


def share_of_significant(size, rates, budget):
    """Return the share of simulated tests that show an effect."""
    domain = ln.Domain(
        arm=ln.Categories(["A", "B"], complete=True),
        site=ln.Categories([f"s{number}" for number in range(SITES)], complete=True),
        measures={"paid": ln.Measure("paid", 0, 1)},
    )
    plan = ln.plan(ln.mean_queries(domain, "paid", by=["arm", "site"]), budget)
    random = np.random.default_rng(size)
    cells = pd.DataFrame(
        [(arm, f"s{site}") for arm in "AB" for site in range(SITES)], columns=["arm", "site"]
    )
    table = cells.loc[cells.index.repeat(size)].reset_index(drop=True)
    rate = table["arm"].map(dict(zip("AB", rates, strict=True)))
    shown = []
    for trial in range(12):
        table["paid"] = (random.random(len(table)) < rate).astype(int)
        (observation,) = simulations(plan.measured(), read_table(plan, table), 1, trial)
        test = ln.ab_test(Estimate(observation), "arm", "B", "A", mean="paid", by=["site"])
        shown.append(test.is_significant)
    return float(np.mean(shown))


@pytest.mark.parametrize(
    ("size", "rates", "budget"),
    [
        (500, (0.10, 0.17), ln.PureDP(1)),
        (300, (0.5, 0.6), ln.PureDP("1/10")),
        (400, (0.3, 0.2), ln.ZCDP("1/500")),
        (300, (0.5, 0.5001), ln.ZCDP("1/500")),
    ],
)
def test_power_matches_simulated_tests(size, rates, budget):
    promised = ln.ab_power(budget, mean=rates[0], effect=rates[1] - rates[0], size=size).power
    assert share_of_significant(size, rates, budget) == pytest.approx(promised, abs=0.06)


def test_large_budget_gives_the_classical_sample_size():
    power = ln.ab_power(ln.PureDP(20), mean=0.10, effect=0.01)
    # The size is (1.95996 + 0.84162)^2 (p q + p' q') / effect^2.
    assert power.size == pytest.approx(7.8489 * (0.09 + 0.0979) / 0.01**2, rel=0.01)
    assert power.power == pytest.approx(0.8, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("least", [ln.Least(), ln.Least("rho"), ln.Least(delta="1e-6")])
def test_searched_numbers_agree_with_each_other(least):
    budget = ln.ab_power(least, mean=0.10, effect=0.03, size=2500)
    assert 0.8 <= budget.power < 0.805
    size = ln.ab_power(budget.budget, mean=0.10, effect=0.03).size
    assert size == pytest.approx(2500, rel=0.01)
    effect = ln.ab_power(budget.budget, mean=0.10, size=2500).effect
    assert effect == pytest.approx(0.03, rel=0.01)


def test_power_counts_rows_of_units_and_other_bounds():
    single = ln.ab_power(ln.PureDP(5), mean=50, effect=5, std=20, bounds=(0, 100))
    privacy = ln.Privacy(ln.PureDP(20), unit_column="id", max_rows=4)
    several = ln.ab_power(privacy, mean=50, effect=5, std=20, bounds=(0, 100))
    assert several.size == pytest.approx(4 * single.size, rel=0.02)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("one of effect, size", {"effect": None, "size": None}),
        ("one of effect, size", {"budget": ln.Least(), "size": None}),
        ("No budget reaches", {"budget": ln.Least(), "size": 100}),
        ("enough rows", {"effect": None, "size": 3}),
        ("mean", {"mean": 1.5}),
        ("mean", {"mean": True}),
        ("effect", {"effect": 0}),
        ("effect", {"effect": 0.95}),
        ("std", {"bounds": (0, 10), "mean": 5}),
        ("std", {"std": -1}),
        ("bounds", {"bounds": 3}),
        ("size", {"size": 0}),
        ("size", {"size": 2.5}),
        ("power", {"power": 1.0}),
        ("level", {"level": 0}),
        ("budget", {"budget": 1}),
    ],
)
def test_power_refuses_invalid_arguments(message, changes):
    arguments = {"budget": ln.PureDP(1), "mean": 0.1, "effect": 0.01, "size": 1000, **changes}
    with pytest.raises(InputError, match=message):
        ln.ab_power(arguments.pop("budget"), **arguments)
