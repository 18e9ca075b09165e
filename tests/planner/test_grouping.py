"""Budgets by groups and by the convex programme, against general solvers and brute force."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from leastnoise._check import InputError
from leastnoise._linop import AllRanges, Haar, Identity, Operator, Prefix, Total, Tree, dense
from leastnoise._planner._papers import signs
from leastnoise._planner._tables import grouping, optimal_budgets

NORMS: tuple[int, ...] = (1, 2)


def magnitudes(operator: Operator) -> np.ndarray:
    return np.abs(dense(operator)).astype(float)


def sketch(repetitions: int, buckets: int, cells: int) -> np.ndarray:
    """A random sketch: every repetition adds every cell to one bucket, with a sign."""
    rng = np.random.default_rng(0)
    rows = np.zeros((repetitions, buckets, cells))
    for one in rows:
        one[rng.permutation(np.arange(cells) % buckets), np.arange(cells)] = rng.choice([-1, 1], cells)
    return rows.reshape(-1, cells)


def marginal_rows() -> np.ndarray:
    return np.vstack([np.kron(np.eye(3), np.ones((1, 4))), np.kron(np.ones((1, 3)), np.eye(4)), np.eye(12)])


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        (magnitudes(Identity(5)), 1),
        (magnitudes(Total(5)), 1),
        (magnitudes(Tree.full(16, 2)), 5),
        (magnitudes(Tree.full(13, 3)), 4),
        (magnitudes(Haar(16)), 5),
        (magnitudes(Haar(11)), 5),
        (np.abs(signs(8)).astype(float), 7),
        (marginal_rows(), 3),
        (np.abs(sketch(6, 4, 20)), 6),
    ],
    ids=["cells", "total", "tree", "ragged tree", "Haar", "ragged Haar", "Fourier", "marginals", "sketch"],
)
def test_groups_of_the_known_strategies(rows: np.ndarray, groups: int) -> None:
    shuffled = rows[np.random.default_rng(1).permutation(len(rows))]
    # A sketch is only found repetition by repetition: its buckets are as wide in all of them.
    for own in (rows,) if groups == 6 else (rows, shuffled):
        found = grouping(own)
        assert found is not None
        group, heights = found
        assert len(heights) == groups
        for one in range(groups):  # the definition: every column is seen once, with one magnitude
            assert ((own[group == one] > 0).sum(axis=0) == 1).all()
            assert np.allclose(own[group == one].sum(axis=0), heights[one])


@pytest.mark.parametrize("operator", [Prefix(4), AllRanges(4)], ids=["prefix", "ranges"])
def test_what_has_no_groups(operator: Operator) -> None:
    assert grouping(magnitudes(operator)) is None
    assert grouping(np.array([[1.0, 2.0]])) is None


@pytest.mark.parametrize("norm", NORMS)
def test_closed_form_and_programme_agree(norm: int) -> None:
    rows = magnitudes(Tree.full(8, 2)) * 3
    errors = np.repeat([4.0, 1.0, 2.0, 0.5], [1, 2, 4, 8])
    closed = optimal_budgets(rows, errors, norm)
    assert closed.groups is not None
    assert closed.error == pytest.approx(float((errors / closed.theta**2).sum()))
    apart = optimal_budgets(rows, errors * (1 + 1e-7 * np.arange(len(errors))), norm)  # no longer constant within groups
    assert apart.groups is None
    assert apart.error == pytest.approx(closed.error, rel=1e-4)


@pytest.mark.parametrize("norm", NORMS)
def test_a_sketch_gets_its_budgets_in_closed_form(norm: int) -> None:
    # Six repetitions of four buckets with signs, each repetition with its own error a bucket.
    rows, each = np.abs(sketch(6, 4, 20)), np.array([1.0, 2.0, 5.0, 0.3, 8.0, 4.0])
    found = optimal_budgets(rows, np.repeat(each, 4), norm)
    assert found.groups is not None
    assert found.groups.tolist() == np.repeat(np.arange(6), 4).tolist()
    root = 1 / 3 if norm == 1 else 1 / 2
    assert found.error == pytest.approx(((4 * each) ** root).sum() ** (1 / root))
    theta = found.theta.reshape(6, 4)
    assert np.allclose(theta, theta[:, :1])
    assert np.allclose(theta[:, 0] ** (1 if norm == 1 else 2), (4 * each) ** root / ((4 * each) ** root).sum())
    apart = optimal_budgets(rows, np.repeat(each, 4) * (1 + 1e-7 * np.arange(24)), norm)  # the programme knows no groups
    assert apart.groups is None
    assert apart.error == pytest.approx(found.error, rel=1e-4)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("operator", [Prefix(6), AllRanges(4)], ids=["prefix", "ranges"])
def test_the_programme_against_a_general_solver(operator: Operator, norm: int) -> None:
    rows = magnitudes(operator)
    errors = np.random.default_rng(2).random(len(rows)) + 0.2
    found = optimal_budgets(rows, errors, norm)
    costs = rows if norm == 1 else rows**2
    power = 1 if norm == 1 else 2
    assert (costs.T @ found.theta**power).max() == pytest.approx(1)
    assert found.lower <= found.error <= found.lower * (1 + 1e-6)
    # In u = theta^power the problem is convex: sum of errors / u^(2 / power) under linear constraints.
    solved = minimize(
        lambda u: math.log((errors / u ** (2 / power)).sum()),
        np.full(len(rows), 0.5 / len(rows)),
        bounds=[(1e-9, None)] * len(rows),
        constraints={"type": "ineq", "fun": lambda u: 1 - costs.T @ u},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.error == pytest.approx(math.exp(solved.fun), rel=1e-4)


def test_what_is_no_problem_is_refused() -> None:
    with pytest.raises(InputError, match="errors must be one finite number above 0 a query"):
        optimal_budgets(np.eye(2), np.array([1.0, 0.0]), 1)
    with pytest.raises(InputError, match="magnitudes must be numbers of at least 0"):
        optimal_budgets(np.array([[0.0, 0.0], [1.0, 1.0]]), np.ones(2), 1)
