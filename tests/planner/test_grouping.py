"""Budgets by the convex programme, against general solvers and brute force."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from leastnoise._linop import AllRanges, Operator, Prefix, Tree, dense
from leastnoise._planner._papers import signs
from leastnoise._planner._residual_algebra import grouped_budgets
from leastnoise._planner._tables import optimal_budgets

NORMS: tuple[int, ...] = (1, 2)


def magnitudes(operator: Operator) -> np.ndarray:
    return np.abs(dense(operator)).astype(float)


def error(errors: np.ndarray, theta: np.ndarray) -> float:
    return float((errors / theta**2).sum())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("rows", [magnitudes(Tree.full(16, 2)), np.abs(signs(8)).astype(float)], ids=["tree", "Fourier"])
def test_groups_that_see_every_column_once_get_their_closed_form(rows: np.ndarray, norm: int) -> None:
    """Rows of one number of entries are a group of a tree, each sign by itself: weights by cube or square roots of summed errors."""
    _, group = np.unique((rows > 0).sum(axis=1) * 100 + (np.arange(len(rows)) if rows.shape == (7, 8) else 0), return_inverse=True)
    each = np.random.default_rng(3).random(group.max() + 1) + 0.2
    found = optimal_budgets(rows, each[group], norm)
    heights = np.array([rows[group == one].max() for one in range(len(each))])
    best = grouped_budgets(np.bincount(group, each[group]), heights, norm)
    assert error(each[group], found) == pytest.approx(best.error, rel=1e-4)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("operator", [Prefix(6), AllRanges(4)], ids=["prefix", "ranges"])
def test_the_programme_against_a_general_solver(operator: Operator, norm: int) -> None:
    rows = magnitudes(operator)
    errors = np.random.default_rng(2).random(len(rows)) + 0.2
    found = optimal_budgets(rows, errors, norm)
    costs = rows if norm == 1 else rows**2
    power = 1 if norm == 1 else 2
    assert (costs.T @ found**power).max() == pytest.approx(1)
    # In u = theta^power the problem is convex: sum of errors / u^(2 / power) under linear constraints.
    solved = minimize(
        lambda u: math.log((errors / u ** (2 / power)).sum()),
        np.full(len(rows), 0.5 / len(rows)),
        bounds=[(1e-9, None)] * len(rows),
        constraints={"type": "ineq", "fun": lambda u: 1 - costs.T @ u},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert error(errors, found) == pytest.approx(math.exp(solved.fun), rel=1e-4)
