"""The residual algebra against brute force, weights of tables, and published figures."""

import functools
import itertools
import math

import numpy as np
import pytest
from experiments.residuals import coefficients, eigenvalues, optimal_weights, residual_noise, total_squared_error

from leastnoise._accounting import ZCDP, Privacy, covers
from leastnoise._check import InputError
from leastnoise._domain import Coded, Domain
from leastnoise._mechanisms import candidates
from leastnoise._planner._papers import residual_noise_max
from leastnoise._planner._residual_algebra import (
    at_cost_one,
    attribute_sets,
    diagonal_errors,
    dimensions,
    downward_closure,
    grouped_budgets,
    improve_weights,
    incidence,
    least_error,
    locate,
    scaled_error,
    table_sizes,
)
from leastnoise._workload import Workload, marginals, queries
from planner.proposals import ADULT8, CUBES, cube_workload, ways


def marginal_matrix(shape, attributes):
    return functools.reduce(np.kron, [np.eye(n) if i in attributes else np.ones((1, n)) for i, n in enumerate(shape)])


@pytest.mark.parametrize(
    ("shape", "tables"),
    [((2, 3, 4), [(0, 1), (1, 2), (0,)]), ((3, 2, 4), [(0, 1), (0, 2), (1, 2), (0, 1)]), ((5, 1, 2), [(0, 1), (0, 2), (2,)])],
)
def test_the_error_equals_those_of_the_pseudo_inverse(shape, tables):
    theta = 0.3 + np.arange(len(tables)) * 0.41
    targets = {(0, 1): 0.7, (0,): 2.0, (): 1.3}
    closure = downward_closure(shape, [*targets, *tables])
    strategy = np.vstack([t * marginal_matrix(shape, s) for t, s in zip(theta, tables, strict=True)])
    inverse = np.linalg.pinv(strategy.T @ strategy)
    expected = sum(w * np.trace(marginal_matrix(shape, s) @ inverse @ marginal_matrix(shape, s).T) for s, w in targets.items())
    error = total_squared_error(coefficients(closure, targets), eigenvalues(closure, tables, theta))
    assert error == pytest.approx(expected, rel=1e-10)


def test_what_is_not_measured_has_infinite_error():
    closure = downward_closure((2, 3), [(0,), (1,)])
    eigenvalue = eigenvalues(closure, [(0,)], np.ones(1))
    assert total_squared_error(coefficients(closure, {(1,): 1.0}), eigenvalue) == math.inf


@pytest.mark.parametrize("count", [5, 70])
def test_closure_lists_all_subsets_in_order_and_finds_them(count):
    closure = downward_closure((3,) * count, [(0, 2, 4), (1, 2), (4,)])
    sets = attribute_sets(closure)
    assert sets == [(), (0,), (1,), (2,), (4,), (0, 2), (0, 4), (1, 2), (2, 4), (0, 2, 4)]
    assert locate(closure, sets).tolist() == list(range(len(sets)))
    assert locate(closure, [(3,), (0, 1), (0, 1, 2, 3), (0, 1, 2)]).tolist() == [-1] * 4
    assert dimensions(closure).tolist() == [2.0 ** len(s) for s in sets]
    wide = downward_closure((2,) * 300, [tuple(range(290, 300))])
    assert locate(wide, [tuple(range(290, 300)), (1,), (299,)]).tolist() == [1023, -1, 10]


@pytest.mark.parametrize("count", [12, 70])
def test_both_ways_of_finding_containments_agree(count):
    rng = np.random.default_rng(3)
    tables = [tuple(sorted(rng.choice(count, size=k, replace=False).tolist())) for k in (1, 2, 3, 5, 8) for _ in range(6)]
    closure = downward_closure((2,) * count, [table[:3] for table in tables] + [(0, 1, 2), (3,)])
    matrix = np.asarray(incidence(closure, tables))
    for row, attributes in zip(matrix, attribute_sets(closure), strict=True):
        assert row.tolist() == [0.5 ** len(table) if set(attributes) <= set(table) else 0.0 for table in tables]


def test_a_large_incidence_is_sparse_and_equal():
    sets = ways(40, 2)
    closure = downward_closure((4,) * 40, ways(40, 3))
    tables = ways(40, 3)
    sparse = incidence(closure, tables)
    assert not isinstance(sparse, np.ndarray)
    part = np.asarray(incidence(closure, tables[:50]))
    assert np.array_equal(sparse[:, :50].toarray(), part)
    assert np.asarray(sparse.sum(axis=0)).ravel() == pytest.approx(np.full(len(tables), 8 / 64))
    assert coefficients(closure, dict.fromkeys(sets, 1.0)).sum() == pytest.approx(len(sets))


def test_every_guard_fires(monkeypatch):
    closure = downward_closure((2, 2), [(0, 1)])
    with pytest.raises(InputError, match="does not cover all that is asked"):
        optimal_weights(np.array([[1.0], [0.0]]), np.ones(2), norm=1)
    monkeypatch.setattr("leastnoise._planner._residual_algebra._MOST_ENTRIES", 3)
    with pytest.raises(InputError, match="got over 3 containments, allowed are at most that many"):
        incidence(closure, [(0, 1)])


DOMAINS = {
    "adult": (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2),
    "cps": (50, 100, 7, 4, 2),
    "loans": (101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15),
}


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
    found = grouped_budgets(errors, heights, norm)
    power = 1 if norm == 1 else 2
    assert np.sum((heights * found.theta) ** power) == pytest.approx(1.0)
    assert np.sum(errors / found.theta**2) == pytest.approx(found.error)
    for _ in range(50):
        other = found.theta * np.exp(0.1 * rng.standard_normal(4))
        other /= np.sum((heights * other) ** power) ** (1 / power)
        assert np.sum(errors / other**2) > found.error


@pytest.mark.parametrize(("shape", "k", "kind"), CUBES)
def test_tables_without_recovery_and_weights_inside_the_closure_have_the_published_errors(shape, k, kind):
    plain, inside, _ = CUBES[shape, k, kind]
    targets = cube_workload(len(shape), k, kind)
    if plain is not None:
        cells = table_sizes(shape, targets)
        assert 2 * grouped_budgets(cells, np.ones(len(cells)), 1).error == pytest.approx(plain, rel=0.003)
    if inside is not None:
        matrix, coefficient = problem(shape, targets, attribute_sets(downward_closure(shape, targets)))
        assert 2 * optimal_weights(matrix, coefficient, norm=1).error == pytest.approx(inside, rel=0.003)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_gradient_is_that_of_finite_differences(norm):
    rng = np.random.default_rng(1)
    errors = diagonal_errors(*problem((2, 3, 4), [(0, 1), (2,)], [(0, 1), (0, 2), (1, 2), (0, 1, 2)]))
    shares = rng.random(4) + 0.2
    error, slope = scaled_error(shares, errors, norm)
    assert error == pytest.approx(errors(at_cost_one(shares, np.ones(4), norm) ** 2)[0])
    for i, step in enumerate(np.eye(4) * 1e-6):
        up, down = (scaled_error(shares + sign * step, errors, norm)[0] for sign in (1, -1))
        assert slope[i] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-7 * error)


@pytest.mark.parametrize("norm", [1, 2])
def test_alternating_steps_never_raise_the_error(norm):
    errors = diagonal_errors(*problem(ADULT8, ways(8, 2), ways(8, 1, 2, 3)))
    cost, reached = np.linspace(0.8, 1.2, 92), []
    theta = np.ones(92)
    for _ in range(30):
        theta = improve_weights(theta, errors, cost, norm, 1)
        reached.append(math.log(errors(theta**2)[0]))
    assert np.all(np.diff(reached) <= 1e-12)
    assert (cost @ theta if norm == 1 else (cost * theta) @ (cost * theta)) == pytest.approx(1.0)


def test_a_weight_that_starts_at_zero_stays_there():
    matrix, coefficient = problem((2, 2), [(0,), (1,)], [(0,), (1,), (0, 1)])
    starts = np.array([[1.0, 1.0, 0.0], [0.1, 0.1, 1.0]])
    without, found = (least_error(diagonal_errors(matrix, coefficient), np.ones(3), start, norm=1) for start in starts)
    assert without.theta[2] == 0
    assert without.error > found.error


@pytest.mark.parametrize("norm", [1, 2])
def test_weights_do_not_depend_on_the_units_of_tables(norm):
    """Strategies have coefficients of any size: 1 and 2^20 side by side."""
    matrix, coefficient = problem(ADULT8, ways(8, 1), ways(8, 1, 2))
    units = np.geomspace(1, 2.0**20, matrix.shape[1])
    one, other = (
        least_error(diagonal_errors(matrix * unit**2, coefficient), unit, 1 / unit, norm=norm) for unit in (np.ones(len(units)), units)
    )
    assert other.error == pytest.approx(one.error, rel=1e-6)


def test_the_largest_variance_is_minimised_and_certified():
    shape, targets = DOMAINS["loans"], ways(12, 1, 2)
    closure = downward_closure(shape, targets)
    sizes = table_sizes(shape, attribute_sets(closure))
    noise, largest, bound = residual_noise_max(closure, targets, [1.0] * len(targets))
    assert bound <= largest <= bound * (1 + 2e-6)
    assert np.sum(dimensions(closure) / sizes / noise) == pytest.approx(1.0)
    assert cell_variances(closure, 1 / (noise * sizes), targets).max() == pytest.approx(largest)
    total, _ = residual_noise(closure, coefficients(closure, dict.fromkeys(targets, 1.0)))
    assert cell_variances(closure, 1 / (total * sizes), targets).max() > 1.01 * largest
    _, scaled, _ = residual_noise_max(closure, targets, [3.0] * len(targets))
    assert scaled == pytest.approx(3 * largest, rel=1e-5)


PUBLISHED = {
    "adult": (3.047, 6.359, 10.515, 10.665),
    "cps": (1.744, 2.035, 2.048, 2.276),
    "loans": (2.875, 5.634, 8.702, 8.876),
}


def rmse(shape: tuple[int, ...], ways: tuple[int, ...]) -> float:
    """Root mean squared error of a cell at privacy cost 1, of the plan."""
    domain = Domain({f"a{place}": Coded(size) for place, size in enumerate(shape)})
    sets = [names for k in ways for names in itertools.combinations(domain.names, k)]
    parts = [queries(domain, **dict.fromkeys(names, "identity")) if names else marginals(domain, ways=0) for names in sets]
    asked = Workload(domain, tuple(product for part in parts for product in part))
    (found,) = candidates(asked, Privacy(ZCDP("1/2")), "residual")
    assert found.plan is not None, found.reason
    assert covers(ZCDP("1/2"), found.plan.cost())
    return math.sqrt(found.total / asked.rows)


@pytest.mark.parametrize("place", range(4), ids=["1-way", "2-way", "3-way", "up to 3-way"])
@pytest.mark.parametrize("data", PUBLISHED)
def test_the_twelve_published_figures(data: str, place: int) -> None:
    assert round(rmse(DOMAINS[data], ((1,), (2,), (3,), (0, 1, 2, 3))[place]), 3) == PUBLISHED[data][place]


@pytest.mark.parametrize(("size", "figure"), [(10, 23.48), (50, 27.07)])
def test_the_figures_of_forty_attributes(size: int, figure: float) -> None:
    assert round(rmse((size,) * 40, (1, 2)), 2) == figure
