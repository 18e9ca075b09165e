"""Projections to non-negative tables against the conditions of an optimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from leastnoise._domain import Domain, Integers, Measure
from leastnoise._estimation import (
    monotone,
    non_negative,
    project_to_simplex,
    project_to_simplices,
    projection_method,
    public_counts,
    whole_numbers,
)
from leastnoise._workload import marginals, queries

DOMAIN = Domain(
    sex=["F", "M"],
    age=Integers(0, 3),
    size=["S", "M", "L"],
    measures={"pay": Measure("pay", 0, 9), "gain": Measure("gain", -5, 9)},
)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_projection_on_simplices_meets_its_conditions(seed, weighted):
    """The slope is equal where cells are positive, and no larger where they are 0."""
    rng = np.random.default_rng(seed)
    cells = rng.normal(1.0, 4.0, size=(8, 3))
    sums = np.array([*rng.uniform(0.5, 12, 2), 0.0])
    weights = rng.uniform(0.5, 4, (8, 1)) if weighted else np.ones((8, 1))
    projected = project_to_simplices(cells, weights, sums)
    if not weighted:
        assert np.allclose(
            projected,
            np.stack(
                [project_to_simplex(*column) for column in zip(cells.T, sums, strict=True)], axis=1
            ),
            atol=1e-9,
        )
    assert projected.min() >= 0
    assert np.allclose(projected.sum(axis=0), sums, atol=1e-9)
    for column in range(2):
        pull = ((cells - projected) * weights)[:, column]
        positive = projected[:, column] > 0
        assert np.ptp(pull[positive]) < 1e-9
        assert np.all(pull[~positive] <= pull[positive].max() + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_monotone_projection_matches_quadratic_programme(seed):
    rng = np.random.default_rng(100 + seed)
    answers = np.cumsum(rng.normal(0.3, 2.0, size=6)) - 1.0
    increments, _ = nnls(np.tril(np.ones((6, 6))), answers)
    assert np.allclose(monotone(answers, 0), np.cumsum(increments), atol=1e-9)


def test_monotone_projection_follows_its_axis():
    answers = np.array([[3.0, 1.0, 2.0], [5.0, 0.0, -4.0]])
    down = monotone(answers, 0)
    across = monotone(answers, 1)
    assert down.tolist() == [[3.0, 0.5, 0.0], [5.0, 0.5, 0.0]]
    assert np.allclose(across, [[2.0, 2.0, 2.0], [1 / 3] * 3])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(1e-3, 1e6))
def test_simplex_projection_keeps_total_and_order(values, total):
    projected = project_to_simplex(np.array(values), total)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(total, rel=1e-9, abs=1e-6)
    assert np.all(np.diff(projected[np.argsort(values, kind="stable")]) >= -1e-9)


def test_projection_of_non_positive_total_is_zero():
    assert project_to_simplex(np.array([1.0, -3.0]), -2.0).tolist() == [0.0, 0.0]
    assert project_to_simplex(np.array([1.0, -3.0]), float("nan")).tolist() == [0.0, 0.0]
    assert project_to_simplex(np.zeros((0, 2)), 1.0).shape == (0, 2)


@pytest.mark.parametrize(
    ("query", "method"),
    [
        ({"sex": "identity", "age": "identity"}, "marginal"),
        ({}, "marginal"),
        ({"sex": "identity", "age": "prefix"}, "prefix"),
        ({"age": "prefix", "size": "prefix"}, "clip"),
        ({"age": {"ranges": [[0, 1]]}}, "clip"),
        ({"age": "prefix", "size": {"predicates": [["S", "L"]]}}, "clip"),
        ({"size": {"matrix": [[1, -1, 0]]}}, "none"),
    ],
)
def test_method_follows_from_the_queries(query, method):
    assert projection_method(queries(DOMAIN, **query).products[0]) == method


def test_possibly_negative_sum_is_unchanged():
    product = queries(DOMAIN, sum="gain", sex="identity").products[0]
    assert projection_method(product) == "none"
    assert non_negative(product, np.array([-3.0, 4.0])) is None
    assert projection_method(queries(DOMAIN, sum="pay", sex="identity").products[0]) == "marginal"


def test_tables_of_each_method():
    pairs = queries(DOMAIN, sex="identity", size="identity").products[0]
    cells = np.array([[4.0, -1.0, 2.0], [-0.5, 3.0, 0.5]])
    assert non_negative(pairs, cells).sum() == pytest.approx(cells.sum())
    assert non_negative(pairs, cells).min() == 0.0
    prefixes = queries(DOMAIN, sex="identity", age="prefix").products[0]
    answers = np.array([[-1.0, 3.0, 2.0, 6.0], [0.0, 1.0, 2.0, 3.0]])
    assert non_negative(prefixes, answers).tolist() == [[0.0, 2.5, 2.5, 6.0], [0.0, 1.0, 2.0, 3.0]]
    ranges = queries(DOMAIN, age={"ranges": [[0, 1], [1, 2]]}).products[0]
    assert non_negative(ranges, np.array([-2.0, 1.5])).tolist() == [0.0, 1.5]


@given(st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3))
def test_whole_marginals_keep_total_and_move_below_one(values):
    product = marginals(DOMAIN, ways=1, of=["size"]).products[0]
    answers = np.array(values)
    rounded = whole_numbers(product, answers)
    assert rounded.dtype == np.int64
    assert abs(int(rounded.sum()) - answers.sum()) <= 0.5 + 1e-5
    assert np.all(np.abs(rounded - answers) < 1)


def test_whole_marginals_stay_non_negative():
    product = marginals(DOMAIN, ways=1, of=["size"]).products[0]
    rounded = whole_numbers(product, project_to_simplex(np.array([5.3, -2.0, 0.4]), 3.7))
    assert rounded.min() >= 0
    assert rounded.sum() == 4


def test_table_without_public_counts_keeps_its_total():
    public = [
        public_counts(queries(DOMAIN, **{name: "identity"}).products[0], counts)
        for name, counts in {"sex": [3, 4], "age": [1, 2, 2, 2]}.items()
    ]
    assert whole_numbers(
        queries(DOMAIN, size="identity").products[0], np.array([1.3, 2.1, 3.6]), public
    ).tolist() == [1, 2, 4]
    assert whole_numbers(queries(DOMAIN).products[0], np.array(6.7), public).tolist() == 7


def test_whole_prefix_sums_stay_monotone():
    product = queries(DOMAIN, age="prefix").products[0]
    assert whole_numbers(product, np.array([0.4, 0.6, 1.5, 2.5])).tolist() == [0, 1, 2, 2]
