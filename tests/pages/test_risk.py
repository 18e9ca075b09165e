"""The bounds of the risk sentence against brute force, and where it appears."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._pages import describe_guessing_chance, guessing_chance, published_part
from leastnoise._trusted.accounting import GDP, GaussianCost, PureCost, gaussian_mu_squared


def best_guess(first, second):
    """Return the chance of a right guess which of two equally likely distributions occurred."""
    return float(np.maximum(first, second).sum() / 2)


def largest_posterior(first, second):
    """Return the largest posterior probability of one of two equally likely distributions."""
    seen = (first > 1e-250) & (second > 1e-250)
    return float((np.maximum(first, second)[seen] / (first + second)[seen]).max())


def noisy_counts(counts, weights, reach=40):
    """Return the joint distribution of counts with independent noise, on a window of points."""
    points = np.arange(-reach, reach + 1)
    total = sum(weights(z) for z in range(-400, 401))
    rows = [np.array([weights(int(z) - count) for z in points]) / total for count in counts]
    return np.array([math.prod(cell) for cell in product(*rows)])


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize(
    ("neighbours", "column", "rows", "other"),
    [
        ("add_remove", None, 1, (3, 1)),
        ("replace", None, 1, (1, 2)),
        ("add_remove", "id", 2, (3, 2)),
        ("replace", "id", 2, (0, 3)),
    ],
)
def test_pure_bound_is_largest_posterior(epsilon, neighbours, column, rows, other):
    privacy = ln.Privacy(ln.PureDP(epsilon), neighbours, column, rows)
    scale = privacy.distance / epsilon
    before = noisy_counts((2, 1), lambda z: math.exp(-abs(z) / scale))
    after = noisy_counts(other, lambda z: math.exp(-abs(z) / scale))
    chance = guessing_chance(privacy)
    assert chance == pytest.approx(1 / (1 + math.exp(-epsilon)))
    assert largest_posterior(before, after) <= chance + 1e-12
    assert best_guess(before, after) <= chance
    if sum(abs(a - b) for a, b in zip((2, 1), other, strict=True)) == privacy.distance:
        assert largest_posterior(before, after) == pytest.approx(chance)


@pytest.mark.parametrize("rho", [0.02, 0.5, 2.0])
@pytest.mark.parametrize("other", [(3, 1), (1, 2)])
def test_zcdp_bound_covers_discrete_gaussian(rho, other):
    neighbours = "add_remove" if other == (3, 1) else "replace"
    squares = sum((a - b) ** 2 for a, b in zip((2, 1), other, strict=True))
    variance = squares / (2 * rho)
    before = noisy_counts((2, 1), lambda z: math.exp(-z * z / (2 * variance)))
    after = noisy_counts(other, lambda z: math.exp(-z * z / (2 * variance)))
    assert best_guess(before, after) <= guessing_chance(ln.Privacy(ln.ZCDP(rho), neighbours))


@pytest.mark.parametrize("rho", [0.001, 0.125, 1.0, 5.0])
def test_zcdp_bound_is_attained_by_randomised_response(rho):
    chance = guessing_chance(ln.Privacy(ln.ZCDP(rho)))
    orders = np.concatenate([[1 + 1e-6], np.geomspace(1.001, 1000, 400)])
    logs = np.log([chance, 1 - chance])
    exponents = [
        orders * logs[0] + (1 - orders) * logs[1],
        orders * logs[1] + (1 - orders) * logs[0],
    ]
    divergence = np.logaddexp(*exponents) / (orders - 1)
    assert (divergence <= orders * rho * (1 + 1e-6)).all()
    assert divergence[0] == pytest.approx(rho, rel=1e-4)


def test_zcdp_bound_covers_random_distributions():
    rng = np.random.default_rng(4)
    for _ in range(400):
        first, second = rng.dirichlet(np.ones(3), size=2)
        orders = np.array([1.0001, 1.5, 2.0, 4.0, 16.0, 64.0])[:, np.newaxis]
        logs = np.log([first, second])
        rho = 0.0
        for top, bottom in (logs, logs[::-1]):
            sums = np.logaddexp.reduce(orders * top + (1 - orders) * bottom, axis=1)
            rho = max(rho, float((sums / (orders[:, 0] - 1) / orders[:, 0]).max()))
        chance = guessing_chance(ln.Privacy(ln.ZCDP(rho * 1.001)))
        assert best_guess(first, second) <= chance


def test_gaussian_bound_is_best_guess_of_a_normal():
    points = np.arange(-20, 20, 1e-3)
    density = np.exp(-(points**2) / 2)
    shifted = np.exp(-((points - 0.5) ** 2) / 2)
    exact = best_guess(density / density.sum(), shifted / shifted.sum())
    assert guessing_chance(ln.Privacy(GDP("1/4"))) == pytest.approx(exact, abs=1e-6)


def test_approximate_bound_follows_noise():
    privacy = ln.Privacy(ln.ApproxDP(1, "1/100"))
    # With probability delta the row is shown; otherwise this is randomised response.
    response = np.array([math.e, 1]) * 0.99 / (math.e + 1)
    first = np.array([0.01, 0, *response])
    second = np.array([0, 0.01, *response[::-1]])
    assert guessing_chance(privacy) == pytest.approx(best_guess(first, second))
    assert guessing_chance(privacy, PureCost(1)) == pytest.approx(1 / (1 + math.exp(-1)))
    mu = math.sqrt(gaussian_mu_squared(1, "1/100"))
    gaussian = guessing_chance(privacy, GaussianCost(Fraction(1, 9)))
    assert gaussian == pytest.approx(NormalDist().cdf(mu / 2))
    assert gaussian < guessing_chance(privacy)


@pytest.mark.parametrize("budget", [ln.PureDP(10**400), ln.ZCDP(10**400), GDP(10**400)])
def test_huge_budgets_promise_little(budget):
    privacy = ln.Privacy(budget)
    assert guessing_chance(privacy) == 1
    assert "more than 99% sure" in describe_guessing_chance(privacy)


UNIT = ln.Privacy(ln.PureDP(1), "add_remove", "id", 3)
PATIENT = {"unit": {"en": "patient", "de": "Patient"}}


@pytest.mark.parametrize(
    ("privacy", "names", "english", "german"),
    [
        (
            ln.Privacy(ln.PureDP("1/2")),
            {},
            "become at most 63% sure",
            "höchstens zu 63\xa0% sicher",
        ),
        (
            ln.Privacy(ln.ZCDP("1/8"), "replace"),
            {},
            "one row is this one and not another guesses right with a probability of at most 63%",
            "von höchstens 63\xa0% richtig",
        ),
        (
            UNIT,
            {},
            "that one person or other unit (all rows with the same 'id') is in the data can",
            "Ähnliches, alle Zeilen mit demselben Wert von „id“) in den Daten vorkommt, kann",
        ),
        (
            replace(UNIT, neighbours="replace"),
            {},
            "the data of one person or other unit (all rows with the same 'id') are these and no",
            "Ähnliches, alle Zeilen mit demselben Wert von „id“) bestimmte Angaben hat, kann",
        ),
        (
            UNIT,
            PATIENT,
            "that one patient (with all its rows) is in the data can become",
            "eine bestimmte Einheit (Patient, mit allen Zeilen) in den Daten vorkommt, kann",
        ),
    ],
)
def test_risk_sentence_in_two_languages(privacy, names, english, german):
    options = ln.Options(names=names, languages=("en", "de"))
    assert english in describe_guessing_chance(privacy, options.catalogue("en"))
    assert german in describe_guessing_chance(privacy, options.catalogue("de"))


def test_manifest_states_risk_with_guard(tmp_path):
    domain = ln.Domain(sex=["F", "M"])
    plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1), guard="1/10")
    rows = pd.DataFrame({"sex": ["F", "M"] * 500})
    options = ln.Options(guard="1/10")
    release = ln.release(plan, rows, seed=1, out=tmp_path / "out", options=options)
    risk = json.loads((tmp_path / "out" / "manifest.json").read_text())["privacy"]["risk"]
    assert risk == {
        "in_words": describe_guessing_chance(release.privacy),
        "prior": 0.5,
        "best_guess": pytest.approx(1 / (1 + math.exp(-1))),
        "every_result": True,
    }


def test_risk_of_a_plan_after_a_release_is_of_the_addition():
    domain = ln.Domain(sex=["F", "M"])
    rows = pd.DataFrame({"sex": ["F", "M", "M"]})
    workload = ln.marginals(domain, ways=1)
    first = ln.release(ln.plan(workload, ln.PureDP("1/2")), rows, seed=1)
    plan = ln.plan(workload, ln.PureDP("1/2"), after=[first])
    assert published_part(first.plan, has_searches=False) == "release"
    assert published_part(first.plan, has_searches=True) == "addition"
    published = published_part(plan, has_searches=False)
    sentence = describe_guessing_chance(plan.privacy, covered_part=published)
    assert "once they know the results that were paid for separately" in sentence
