"""The residual algebra against dense matrices on small domains."""

import functools
import itertools
import math

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._linop import Contrasts, dense
from leastnoise._planner._residual_algebra import (
    attribute_sets,
    coefficients,
    dimensions,
    downward_closure,
    eigenvalues,
    incidence,
    locate,
    total_squared_error,
)


def subsets(count, ways):
    return [attributes for k in ways for attributes in itertools.combinations(range(count), k)]


def marginal_matrix(shape, attributes):
    return functools.reduce(np.kron, [np.eye(n) if i in attributes else np.ones((1, n)) for i, n in enumerate(shape)])


def signed_matrix(shape, attributes, signed):
    factors = []
    for i, n in enumerate(shape):
        if i in signed:
            rows = dense(Contrasts(n)) if n > 1 else np.zeros((1, 1))
            factors.append(rows / (1 if n == 2 else np.sqrt((rows**2).sum(axis=1, keepdims=True))))
        else:
            factors.append(np.eye(n) if i in attributes else np.ones((1, n)))
    return functools.reduce(np.kron, factors)


@pytest.mark.parametrize(
    ("shape", "tables", "signed"),
    [
        ((2, 3, 4), [(0, 1), (1, 2), (0,)], None),
        ((2, 2, 3), [(0, 1, 2), (0, 1), (2,), (0, 1)], [(), (0, 1), (), (1,)]),
        ((3, 2, 4), [(0, 1), (0, 2), (1, 2), (0, 1)], [(), (), (), (0, 1)]),
        ((5, 1, 2), [(0, 1), (0, 2), (2,)], [(), (), (2,)]),
    ],
)
def test_the_error_equals_those_of_the_pseudo_inverse(shape, tables, signed):
    theta = 0.3 + np.arange(len(tables)) * 0.41
    targets = {(0, 1): 0.7, (0,): 2.0, (): 1.3}
    closure = downward_closure(shape, [*targets, *tables])
    eigenvalue = eigenvalues(closure, tables, theta, signed)
    strategy = np.vstack(
        [t * signed_matrix(shape, s, g) for t, s, g in zip(theta, tables, signed or [()] * len(tables), strict=True)],
    )
    inverse = np.linalg.pinv(strategy.T @ strategy)
    expected = sum(w * np.trace(marginal_matrix(shape, s) @ inverse @ marginal_matrix(shape, s).T) for s, w in targets.items())
    assert total_squared_error(coefficients(closure, targets), eigenvalue) == pytest.approx(expected, rel=1e-10)


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


@pytest.mark.parametrize("count", [12, 70])
def test_both_ways_of_finding_containments_agree(count):
    rng = np.random.default_rng(3)
    tables = [tuple(sorted(rng.choice(count, size=k, replace=False).tolist())) for k in (1, 2, 3, 5, 8) for _ in range(6)]
    closure = downward_closure((2,) * count, [table[:3] for table in tables] + [(0, 1, 2), (3,)])
    matrix = np.asarray(incidence(closure, tables))
    for row, attributes in zip(matrix, attribute_sets(closure), strict=True):
        assert row.tolist() == [0.5 ** len(table) if set(attributes) <= set(table) else 0.0 for table in tables]


def test_a_large_incidence_is_sparse_and_equal():
    sets = subsets(40, [2])
    closure = downward_closure((4,) * 40, subsets(40, [3]))
    tables = subsets(40, [3])
    sparse = incidence(closure, tables)
    assert not isinstance(sparse, np.ndarray)
    part = np.asarray(incidence(closure, tables[:50]))
    assert np.array_equal(sparse[:, :50].toarray(), part)
    assert np.asarray(sparse.sum(axis=0)).ravel() == pytest.approx(np.full(len(tables), 8 / 64))
    assert coefficients(closure, dict.fromkeys(sets, 1.0)).sum() == pytest.approx(len(sets))


def test_hundred_attributes_three_ways_have_the_published_number_of_tables():
    closure = downward_closure((10,) * 100, subsets(100, [3]))
    assert closure.count == 166_751
    coefficient = coefficients(closure, dict.fromkeys(attribute_sets(closure), 1.0))
    assert coefficient[0] == pytest.approx(1 + 100 / 10 + 4950 / 100 + 161700 / 1000)


def test_every_guard_fires():
    closure = downward_closure((2, 2), [(0, 1)])
    with pytest.raises(InputError, match="ascending order, none twice; got \\(1, 0\\)"):
        downward_closure((2, 2), [(1, 0)])
    with pytest.raises(InputError, match="from 0 to 1"):
        downward_closure((2, 2), [(0, 2)])
    with pytest.raises(InputError, match="shape must be one whole number of at least 1"):
        downward_closure((2, 0), [(0,)])
    with pytest.raises(InputError, match="marginals of 12 attributes out of 100 are too wide; got 12, allowed are at most 9"):
        downward_closure((2,) * 100, [tuple(range(12))])
    with pytest.raises(InputError, match="weight squared must be a finite number of at least 0; got"):
        coefficients(closure, {(0,): -1.0})
    with pytest.raises(InputError, match="target must be an attribute set of the closure; got \\(0, 1\\)"):
        coefficients(downward_closure((2, 2), [(0,)]), {(0, 1): 1.0})
    with pytest.raises(InputError, match="signed attributes must be attributes of their table \\(0,\\); got \\(1,\\)"):
        incidence(closure, [(0,)], [(1,)])


def test_too_many_containments_are_refused(monkeypatch):
    monkeypatch.setattr("leastnoise._planner._residual_algebra._MOST_ENTRIES", 5)
    with pytest.raises(InputError, match="got over 5 containments, allowed are at most that many"):
        incidence(downward_closure((2, 2, 2), [(0, 1, 2)]), [(0, 1, 2)])
