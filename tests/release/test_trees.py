"""Releases of levels by brute force: errors of any set of places, and how often intervals cover at each level."""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from accuracy.plans import LeastSquares
from leastnoise._kernel import SeededEntropy
from leastnoise._kernel._noise import rounded_gaussian

SIZES = {"region": [9, 1, 20], "town": [4, 5, 1, 2, 7, 11]}  # of groups that lie in each other
LEVELS = {name: {place: int(group) for place, group in enumerate(np.repeat(np.arange(len(each)), each))} for name, each in SIZES.items()}
DOMAIN = ln.Domain(sex=ln.Coded(2), place=ln.Coded(30, levels=LEVELS))
PLACES = {"region:1, two places": [9, 0, 29], "a town across regions": [7, 8, 9, 10, 11, 12], "all but one": list(range(29)), "one": [17]}


@pytest.fixture(scope="module")
def release():
    along = ["total", ln.level("region"), ln.level("town"), "identity"]
    products = [ln.queries(DOMAIN, sex=of, place=one) for of in ("total", "identity") for one in along]
    plan = ln.plan(sum(products[1:], products[0]), ln.ZCDP("1/18"), strategy="marginals")
    rows = np.random.default_rng(1).geometric(0.1, 500).clip(1, 30) - 1
    return ln.release(plan, pd.DataFrame({"sex": rows % 2, "place": rows}), seed=2)


@pytest.fixture(scope="module")
def squares(release):
    return LeastSquares(release.measurements)


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("sexes", [[0], [0, 1]])
def test_any_set_of_places_has_the_error_of_dense_least_squares(release, squares, places, sexes):
    sets = {"place": ln.predicates([places])} | ({"sex": ln.predicates([sexes])} if len(sexes) == 1 else {})
    (answer,) = release.answer(ln.queries(DOMAIN, sets))
    query = np.zeros((2, 30))
    query[np.ix_(sexes, places)] = 1
    weights = query.reshape(-1) @ squares.inverse
    assert answer.noise_std.item() == pytest.approx(np.linalg.norm(weights), rel=1e-9)
    values = np.concatenate(release.observation.values) / release.measurements.grid
    assert answer.answer.item() == pytest.approx(weights @ (values / squares.spread), abs=1e-6)


def test_intervals_cover_at_every_level(release, squares):
    made, runs, noise = release.measurements, 4000, []
    for number, block in enumerate(made.blocks):
        scale = block.scale * made.grid
        drawn = rounded_gaussian(scale.numerator, scale.denominator, runs * block.rows, SeededEntropy(number))
        noise.append(drawn.reshape(block.rows, runs))
    for table in release.tables:
        covered = np.abs(squares.answers(table.product, noise)) <= table.margins.reshape(-1, 1)
        assert 0.94 <= covered.mean() <= 0.97, table.name
