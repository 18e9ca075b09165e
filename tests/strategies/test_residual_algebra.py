"""The residual algebra and its budgets against brute force, solvers and papers."""

import math
from functools import reduce

import numpy as np
import pytest
from scipy.optimize import minimize

from experiments.residuals import (
    coefficients,
    eigenvalues,
    optimal_weights,
    residual_noise,
    total_squared_error,
)
from leastnoise._strategies import (
    attribute_sets,
    diagonal_errors,
    dimensions,
    downward_closure,
    grouped_budgets,
    improve_weights,
    incidence,
    least_error,
    locate,
    optimal_budgets,
    residual_noise_max,
    scale_to_cost_one,
    scaled_error,
    table_sizes,
    walsh_functions,
)
from leastnoise._trusted.accounting import ZCDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import AllRanges, Prefix, Tree, dense
from strategies.proposals import ADULT8, CUBES, cube_workload, error_of, tables, ways

both_norms = pytest.mark.parametrize("norm", [1, 2])


def marginal_matrix(shape, attributes):
    return reduce(
        np.kron, [np.eye(n) if i in attributes else np.ones((1, n)) for i, n in enumerate(shape)]
    )


def problem(shape, targets, tables):
    closure = downward_closure(shape, targets)
    return incidence(closure, tables), coefficients(closure, dict.fromkeys(targets, 1.0))


@pytest.mark.parametrize(
    ("shape", "measured"),
    [
        ((2, 3, 4), [(0, 1), (1, 2), (0,)]),
        ((3, 2, 4), [(0, 1), (0, 2), (1, 2), (0, 1)]),
        ((5, 1, 2), [(0, 1), (0, 2), (2,)]),
    ],
)
def test_residual_error_is_pseudo_inverse_or_infinite(shape, measured):
    theta = 0.3 + np.arange(len(measured)) * 0.41
    targets = {(0, 1): 0.7, (0,): 2.0, (): 1.3}
    closure = downward_closure(shape, [*targets, *measured])
    strategy = np.vstack(
        [t * marginal_matrix(shape, s) for t, s in zip(theta, measured, strict=True)]
    )
    inverse = np.linalg.pinv(strategy.T @ strategy)
    expected = sum(
        w * np.trace(marginal_matrix(shape, s) @ inverse @ marginal_matrix(shape, s).T)
        for s, w in targets.items()
    )
    coefficient = coefficients(closure, targets)
    assert total_squared_error(coefficient, eigenvalues(closure, measured, theta)) == pytest.approx(
        expected, rel=1e-10
    )
    assert total_squared_error(coefficient, eigenvalues(closure, [()], np.ones(1))) == math.inf


@pytest.mark.parametrize("count", [5, 70])
def test_closure_lists_subsets_in_order(count):
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
    tables = [
        tuple(sorted(rng.choice(count, size=k, replace=False).tolist()))
        for k in (1, 2, 3, 5, 8)
        for _ in range(6)
    ]
    closure = downward_closure((2,) * count, [table[:3] for table in tables] + [(0, 1, 2), (3,)])
    matrix = np.asarray(incidence(closure, tables))
    for row, attributes in zip(matrix, attribute_sets(closure), strict=True):
        assert row.tolist() == [
            0.5 ** len(table) if set(attributes) <= set(table) else 0.0 for table in tables
        ]


def test_large_incidence_is_sparse_and_equal():
    triples = ways(40, 3)
    closure = downward_closure((4,) * 40, triples)
    sparse = incidence(closure, triples)
    assert not isinstance(sparse, np.ndarray)
    assert np.array_equal(sparse[:, :50].toarray(), incidence(closure, triples[:50]))
    assert np.asarray(sparse.sum(axis=0)).ravel() == pytest.approx(np.full(len(triples), 8 / 64))
    assert coefficients(closure, dict.fromkeys(ways(40, 2), 1.0)).sum() == pytest.approx(
        math.comb(40, 2)
    )


def test_residual_algebra_refuses_invalid_input(monkeypatch):
    closure = downward_closure((2, 2), [(0, 1)])
    with pytest.raises(InputError, match="must cover the workload"):
        optimal_weights(np.array([[1.0], [0.0]]), np.ones(2), norm=1)
    monkeypatch.setattr("leastnoise._strategies._residual_algebra._MOST_ENTRIES", 3)
    with pytest.raises(InputError, match="too many attribute sets: more than 3 pairs of a table"):
        incidence(closure, [(0, 1)])


DOMAINS = {
    "adult": (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2),
    "cps": (50, 100, 7, 4, 2),
    "loans": (101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15),
}


def cell_variances(closure, eigenvalue, sets):
    """Return the variance of a cell of each marginal, from its residual spaces."""
    return np.asarray(
        incidence(closure, sets).T @ (dimensions(closure) / eigenvalue)
    ) / table_sizes(closure.shape, sets)


@pytest.mark.parametrize(("shape", "k", "kind"), CUBES)
def test_tables_without_recovery_have_published_errors(shape, k, kind):
    plain, inside, _ = CUBES[shape, k, kind]
    targets = cube_workload(len(shape), k, kind)
    if plain is not None:
        cells = table_sizes(shape, targets)
        assert 2 * grouped_budgets(cells, np.ones(len(cells)), 1).error == pytest.approx(
            plain, rel=0.003
        )
    if inside is not None:
        matrix, coefficient = problem(
            shape, targets, attribute_sets(downward_closure(shape, targets))
        )
        assert 2 * optimal_weights(matrix, coefficient, norm=1).error == pytest.approx(
            inside, rel=0.003
        )


@both_norms
def test_residual_gradient_matches_finite_differences(norm):
    rng = np.random.default_rng(1)
    errors = diagonal_errors(
        *problem((2, 3, 4), [(0, 1), (2,)], [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
    )
    shares = rng.random(4) + 0.2
    error, slope = scaled_error(shares, errors, norm)
    assert error == pytest.approx(errors(scale_to_cost_one(shares, np.ones(4), norm) ** 2)[0])
    for i, step in enumerate(np.eye(4) * 1e-6):
        up, down = (scaled_error(shares + sign * step, errors, norm)[0] for sign in (1, -1))
        assert slope[i] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-7 * error)


@both_norms
def test_alternating_steps_never_raise_the_error(norm):
    errors = diagonal_errors(*problem(ADULT8, ways(8, 2), ways(8, 1, 2, 3)))
    cost = np.linspace(0.8, 1.2, 92)
    reached = []
    theta = np.ones(92)
    for _ in range(30):
        # The errors of the tables if the recovered parts of each stay the same.
        target = theta**4 * errors(theta**2)[1]
        theta = improve_weights(theta, errors, cost, norm, 1)
        assert theta == pytest.approx(grouped_budgets(target, cost, norm).theta)
        reached.append(math.log(errors(theta**2)[0]))
    assert np.all(np.diff(reached) <= 1e-12)
    assert (cost @ theta if norm == 1 else (cost * theta) @ (cost * theta)) == pytest.approx(1.0)


def test_weight_that_starts_at_zero_stays_there():
    matrix, coefficient = problem((2, 2), [(0,), (1,)], [(0,), (1,), (0, 1)])
    starts = np.array([[1.0, 1.0, 0.0], [0.1, 0.1, 1.0]])
    without, with_pair = (
        least_error(diagonal_errors(matrix, coefficient), np.ones(3), start, norm=1)
        for start in starts
    )
    assert without.theta[2] == 0
    assert without.error > with_pair.error


@both_norms
def test_weights_do_not_depend_on_the_units_of_tables(norm):
    """Strategies have coefficients of any size: 1 and 2^20 side by side."""
    matrix, coefficient = problem(ADULT8, ways(8, 1), ways(8, 1, 2))
    units = np.geomspace(1, 2.0**20, matrix.shape[1])
    weights, other_weights = (
        least_error(diagonal_errors(matrix * unit**2, coefficient), unit, 1 / unit, norm=norm)
        for unit in (np.ones(len(units)), units)
    )
    assert other_weights.error == pytest.approx(weights.error, rel=1e-6)


def test_largest_variance_is_minimised_and_certified():
    shape = DOMAINS["loans"]
    targets = ways(12, 1, 2)
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


def residual_rmse(shape, *sizes):
    """Return the root mean squared error of a cell at privacy cost 1."""
    workload = tables(shape, ways(len(shape), *sizes))
    return math.sqrt(error_of("residual", workload, ZCDP("1/2")) / workload.rows)


@pytest.mark.parametrize("data", PUBLISHED)
def test_residual_errors_match_published_figures(data):
    figures = [
        round(residual_rmse(DOMAINS[data], *sizes), 3) for sizes in ((1,), (2,), (3,), (0, 1, 2, 3))
    ]
    assert figures == list(PUBLISHED[data])


@pytest.mark.parametrize(("size", "figure"), [(10, 23.48), (50, 27.07)])
def test_residual_errors_of_forty_attributes(size, figure):
    assert round(residual_rmse((size,) * 40, 1, 2), 2) == figure


# --- budgets of queries by the convex programme ---------------------------------------------------


def magnitudes(operator):
    return np.abs(dense(operator)).astype(float)


@both_norms
@pytest.mark.parametrize("is_tree", [True, False], ids=["tree", "Fourier"])
def test_equal_groups_get_the_closed_form(is_tree, norm):
    """Weights of equal groups are cube or square roots of their summed errors."""
    rows = magnitudes(Tree.full(16, 2)) if is_tree else np.abs(walsh_functions(8)).astype(float)
    group = np.unique(rows.sum(axis=1), return_inverse=True)[1] if is_tree else np.arange(len(rows))
    each = np.random.default_rng(3).random(group.max() + 1) + 0.2
    budgets = optimal_budgets(rows, each[group], norm)
    heights = np.array([rows[group == one].max() for one in range(len(each))])
    best = grouped_budgets(np.bincount(group, each[group]), heights, norm)
    assert (each[group] / budgets**2).sum() == pytest.approx(best.error, rel=1e-4)


@both_norms
@pytest.mark.parametrize("operator", [Prefix(6), AllRanges(4)], ids=["prefix", "ranges"])
def test_residual_budgets_match_a_general_solver(operator, norm):
    costs = magnitudes(operator) ** norm
    errors = np.random.default_rng(2).random(len(costs)) + 0.2
    budgets = optimal_budgets(magnitudes(operator), errors, norm)
    assert (costs.T @ budgets**norm).max() == pytest.approx(1)
    # In u = theta^norm the problem is convex: sum of errors / u^(2 / norm) under linear
    # constraints.
    solved = minimize(
        lambda u: math.log((errors / u ** (2 / norm)).sum()),
        np.full(len(costs), 0.5 / len(costs)),
        bounds=[(1e-9, None)] * len(costs),
        constraints={"type": "ineq", "fun": lambda u: 1 - costs.T @ u},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert (errors / budgets**2).sum() == pytest.approx(math.exp(solved.fun), rel=1e-4)
