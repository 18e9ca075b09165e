"""Descent between bounds, against known minimisers."""

import numpy as np
import pytest

from leastnoise._families import minimize_lbfgs
from leastnoise._families._search import _line_search

RNG = np.random.default_rng(0)


def test_descent_ends_at_a_constrained_minimum():
    root = RNG.normal(size=(30, 30))
    bend = root @ root.T + np.eye(30)
    centre = RNG.normal(size=30) * 3

    def objective(point):
        away = point - centre
        return 1 + float(away @ bend @ away), 2 * bend @ away

    most = RNG.uniform(0.5, 3, 30)
    point, error = minimize_lbfgs(objective, np.full(30, 0.4), most, 2000)
    _, slope = objective(point)
    low = point <= 0
    high = point >= most
    assert low.any()
    assert high.any()
    assert (~low & ~high).any()
    assert np.abs(slope[~low & ~high]).max() < 1e-2 * np.abs(slope).max()
    assert (slope[low] > 0).all()
    assert (slope[high] < 0).all()
    assert error == pytest.approx(objective(point)[0], rel=1e-12)


def test_descent_follows_a_curved_valley():
    def objective(point):
        x, y = point
        error = 0.01 + (1 - x) ** 2 + 100 * (y - x**2) ** 2
        return float(error), np.array([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)])

    point, error = minimize_lbfgs(objective, np.array([0.1, 2.0]), 5.0, 300)
    np.testing.assert_allclose(point, [1, 1], atol=1e-3)
    assert error == pytest.approx(0.01, abs=1e-6)


def test_descent_stops_where_no_step_helps():
    points = []

    def objective(point):
        points.append(point.copy())
        # The slope is wrong, so that no shorter step helps.
        return 1 + abs(float(point[0]) - 1), np.array([1.0])

    point, error = minimize_lbfgs(objective, np.array([1.0]), 9.0, 50)
    assert point[0] == 1.0
    assert error == 1.0
    assert len(points) == 21


@pytest.mark.parametrize(
    ("direction", "upper_bound", "least", "largest"),
    [(0.01, 9.0, 0.5, 3.5), (0.01, 0.1, 0.1, 0.1), (2.0, 9.0, 2, 2), (100.0, 999.0, 1, 5)],
    ids=["short direction", "bound below the step", "whole direction", "long direction"],
)
def test_line_search_adapts_the_step_to_the_slope(direction, upper_bound, least, largest):
    def objective(point):
        return float((point[0] - 3) ** 2), 2 * (point - 3)

    start = np.zeros(1), *objective(np.zeros(1))
    step = _line_search(objective, start, np.array([direction]), upper_bound)

    assert step is not None
    (point, error, *_) = step
    assert least <= point[0] <= largest
    assert error < 9


def test_line_search_requires_sufficient_decrease():
    def objective(point):
        return 9 - 0.5e-4 * float(point[0]), np.array([-1.0])

    assert (
        _line_search(objective, (np.zeros(1), 9.0, np.array([-1.0])), np.array([1.0]), 9.0) is None
    )
