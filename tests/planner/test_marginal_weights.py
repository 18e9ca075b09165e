"""Weights of marginals: closed forms, gradients, published figures."""

import itertools
import math

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._planner import _residual_algebra as weights
from leastnoise._planner._residual_algebra import attribute_sets, coefficients, dimensions, downward_closure, incidence, table_sizes

ADULT8 = (9, 16, 7, 15, 6, 5, 2, 2)
NLTCS = (2,) * 16
DOMAINS = {
    "adult": (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2),
    "cps": (50, 100, 7, 4, 2),
    "loans": (101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15),
}


def ways(count, *sizes):
    return [attributes for k in sizes for attributes in itertools.combinations(range(count), k)]


def cube_workload(count, k, kind):
    larger = ways(count, k + 1)
    return ways(count, k) + {"": [], "*": larger[::2], "a": [s for s in larger if 0 in s]}[kind]


def cell_variances(closure, eigenvalue, sets):
    """Of every marginal, by the residual spaces inside it."""
    return np.asarray(incidence(closure, sets).T @ (dimensions(closure) / eigenvalue)) / table_sizes(closure.shape, sets)


def problem(shape, targets, tables):
    closure = downward_closure(shape, targets)
    return incidence(closure, tables), coefficients(closure, dict.fromkeys(targets, 1.0))


@pytest.mark.parametrize("norm", [1, 2])
def test_grouped_budgets_are_the_optimum(norm):
    rng = np.random.default_rng(5)
    errors, heights = rng.random(4) + 0.1, rng.random(4) + 0.5
    found = weights.grouped_budgets(errors, heights, norm)
    power = 1 if norm == 1 else 2
    assert np.sum((heights * found.theta) ** power) == pytest.approx(1.0)
    assert np.sum(errors / found.theta**2) == pytest.approx(found.error)
    for _ in range(50):
        other = found.theta * np.exp(0.1 * rng.standard_normal(4))
        other /= np.sum((heights * other) ** power) ** (1 / power)
        assert np.sum(errors / other**2) > found.error


@pytest.mark.parametrize(
    ("shape", "k", "kind", "published"),
    [
        (NLTCS, 1, "", 16384),
        (NLTCS, 1, "*", 3.07e6),
        (NLTCS, 1, "a", 170017),
        (NLTCS, 2, "", 1.38e7),
        (ADULT8, 1, "", 6785),
        (ADULT8, 1, "*", 582845),
        (ADULT8, 1, "a", 147696),
        (ADULT8, 2, "", 1.88e6),
        (ADULT8, 2, "*", 4.43e7),
        (ADULT8, 2, "a", 2.97e7),
    ],
)
def test_marginals_without_recovery_have_the_published_error(shape, k, kind, published):
    cells = table_sizes(shape, cube_workload(len(shape), k, kind))
    assert 2 * weights.grouped_budgets(cells, np.ones(len(cells)), 1).error == pytest.approx(published, rel=0.003)


@pytest.mark.parametrize(
    ("shape", "k", "kind", "published"),
    [
        (NLTCS, 1, "", 8704),
        (NLTCS, 1, "*", 589215),
        (NLTCS, 1, "a", 28920),
        (NLTCS, 2, "", 3.95e6),
        (NLTCS, 2, "a", 1.08e7),
        (ADULT8, 1, "", 5663),
        (ADULT8, 1, "*", 242300),
        (ADULT8, 1, "a", 65480),
        (ADULT8, 2, "", 1.31e6),
        (ADULT8, 2, "*", 1.12e7),
    ],
)
def test_weights_inside_the_closure_have_the_published_error(shape, k, kind, published):
    targets = cube_workload(len(shape), k, kind)
    matrix, coefficient = problem(shape, targets, attribute_sets(downward_closure(shape, targets)))
    assert 2 * weights.optimal_weights(matrix, coefficient, norm=1).error == pytest.approx(published, rel=0.003)


def objective(theta, matrix, coefficient, cost, norm):
    """The logarithm of the error at privacy cost 1, and its gradient."""
    return weights._objective(theta, matrix.__matmul__, matrix.T.__matmul__, coefficient, cost, norm)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_gradient_is_that_of_finite_differences(norm):
    rng = np.random.default_rng(1)
    matrix, coefficient = problem((2, 3, 4), [(0, 1), (2,)], [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
    theta, cost = rng.random(4) + 0.2, rng.random(4) + 0.5
    _, slope = objective(theta, matrix, coefficient, cost, norm)
    for i, step in enumerate(np.eye(4) * 1e-6):
        up = objective(theta + step, matrix, coefficient, cost, norm)[0]
        down = objective(theta - step, matrix, coefficient, cost, norm)[0]
        assert slope[i] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("norm", [1, 2])
def test_alternating_steps_never_raise_the_error(norm):
    matrix, coefficient = problem(ADULT8, ways(8, 2), ways(8, 1, 2, 3))
    cost = np.linspace(0.8, 1.2, matrix.shape[1])
    theta = np.ones(matrix.shape[1])
    errors = []
    for _ in range(30):
        theta = weights.improve_weights(theta, matrix, coefficient, cost, norm, 1)
        errors.append(objective(theta, matrix, coefficient, cost, norm)[0])
    assert np.all(np.diff(errors) <= 1e-12)
    assert (cost @ theta if norm == 1 else (cost * theta) @ (cost * theta)) == pytest.approx(1.0)


def test_a_weight_that_starts_at_zero_stays_there():
    matrix, coefficient = problem((2, 2), [(0,), (1,)], [(0,), (1,), (0, 1)])
    found = weights.optimal_weights(matrix, coefficient, norm=1, starts=[np.array([1.0, 1.0, 0.0])])
    assert found.theta[2] == 0
    assert found.error > weights.optimal_weights(matrix, coefficient, norm=1, starts=[np.array([0.1, 0.1, 1.0])]).error


@pytest.mark.parametrize(
    ("name", "published"),
    [("adult", (3.047, 6.359, 10.515, 10.665)), ("cps", (1.744, 2.035, 2.048, 2.276)), ("loans", (2.875, 5.634, 8.702, 8.876))],
)
def test_residual_noise_has_the_published_twelve_figures(name, published):
    shape = DOMAINS[name]
    for sizes, figure in zip([(1,), (2,), (3,), (0, 1, 2, 3)], published, strict=True):
        targets = ways(len(shape), *sizes)
        closure = downward_closure(shape, targets)
        _, error = weights.residual_noise(closure, coefficients(closure, dict.fromkeys(targets, 1.0)))
        assert round(math.sqrt(error / table_sizes(shape, targets).sum()), 3) == figure


@pytest.mark.parametrize(
    ("count", "sizes", "figure"),
    [
        *[(d, range(4), f) for d, f in ((6, 4.2752), (10, 9.3481), (20, 26.917), (50, 107.258))],
        *[(d, (2,), f) for d, f in ((6, 3.4589), (10, 5.8461), (20, 11.744), (50, 29.260))],
    ],
)
def test_residual_noise_has_the_measured_figures_of_ten_values(count, sizes, figure):
    targets = ways(count, *sizes)
    closure = downward_closure((10,) * count, targets)
    _, error = weights.residual_noise(closure, coefficients(closure, dict.fromkeys(targets, 1.0)))
    assert math.sqrt(error / table_sizes((10,) * count, targets).sum()) == pytest.approx(figure, rel=5e-5)


def test_residual_noise_costs_one_and_gives_its_error():
    shape, targets = (4, 3, 5, 2), ways(4, 2)
    closure = downward_closure(shape, targets)
    noise, error = weights.residual_noise(closure, coefficients(closure, dict.fromkeys(targets, 1.0)))
    sizes = table_sizes(shape, attribute_sets(closure))
    assert np.sum(dimensions(closure) / sizes / noise) == pytest.approx(1.0)
    variances = cell_variances(closure, 1 / (noise * sizes), targets)
    assert variances @ table_sizes(shape, targets) == pytest.approx(error)
    # With what is not asked left out, its noise is infinite and nothing is spent on it.
    noise, _ = weights.residual_noise(closure, np.where(np.arange(closure.count) == 1, 1.0, 0.0))
    assert np.isfinite(noise).tolist() == [i == 1 for i in range(closure.count)]


def test_the_largest_variance_is_minimised_and_certified():
    shape, targets = DOMAINS["loans"], ways(12, 1, 2)
    closure = downward_closure(shape, targets)
    sizes = table_sizes(shape, attribute_sets(closure))
    noise, largest, bound = weights.residual_noise_max(closure, targets)
    assert bound <= largest <= bound * (1 + 2e-6)
    assert np.sum(dimensions(closure) / sizes / noise) == pytest.approx(1.0)
    assert cell_variances(closure, 1 / (noise * sizes), targets).max() == pytest.approx(largest)
    total, _ = weights.residual_noise(closure, coefficients(closure, dict.fromkeys(targets, 1.0)))
    assert cell_variances(closure, 1 / (total * sizes), targets).max() > 1.01 * largest
    _, scaled, _ = weights.residual_noise_max(closure, targets, [3.0] * len(targets))
    assert scaled == pytest.approx(3 * largest, rel=1e-5)


def test_every_guard_fires():
    closure = downward_closure((2, 2), [(0, 1)])
    with pytest.raises(InputError, match="errors must be one finite number of at least 0 per group, at least one above 0; got"):
        weights.grouped_budgets([0.0], [1.0], 1)
    with pytest.raises(InputError, match="heights must be finite numbers above 0; got"):
        weights.grouped_budgets([1.0], [math.nan], 1)
    with pytest.raises(InputError, match="norm must be a whole number from 1 to 2; got 'l3'"):
        weights.grouped_budgets([1.0], [1.0], "l3")
    with pytest.raises(InputError, match="does not cover all that is asked"):
        weights.optimal_weights(np.array([[1.0], [0.0]]), np.ones(2), norm=1)
    with pytest.raises(InputError, match="start must be 1 finite weights of at least 0"):
        weights.optimal_weights(np.ones((1, 1)), np.ones(1), norm=1, starts=[np.array([-1.0])])
    with pytest.raises(InputError, match="starts must be at least one start"):
        weights.optimal_weights(np.ones((1, 1)), np.ones(1), norm=1, starts=[])
    with pytest.raises(InputError, match="coefficient must be above 0 for at least one attribute set"):
        weights.residual_noise(closure, np.zeros(closure.count))
    with pytest.raises(InputError, match="scales must be one finite number above 0 per marginal"):
        weights.residual_noise_max(closure, [(0, 1)], [0.0])
    with pytest.raises(InputError, match="iterations must be at least 1; got 0"):
        weights.residual_noise_max(closure, [(0, 1)], iterations=0)
