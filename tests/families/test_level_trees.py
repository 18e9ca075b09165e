"""Levels of unequal groups against dense algebra."""

import json
import math

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._families import LevelInverse, nested_levels, trace_of_root
from leastnoise._trusted.linop import Dense, Identity, Operator, Prefix, Ranges, Total, dense


def levels_of(seed):
    """Return a tree of random groups, and the groups of each level as rows."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 30))
    groups = np.arange(size)
    operators: list[Operator] = []
    order = rng.permutation(size) if seed % 2 else np.arange(size)
    for _ in range(int(rng.integers(1, 4))):
        ends = np.cumsum(1 + rng.integers(0, 4, groups.max() + 1))
        groups = np.searchsorted(ends, groups, side="right")
        numbers = np.arange(groups.max() + 1)
        operators.append(Dense((groups[order] == numbers[:, None]).astype(np.int64)))
    levels = nested_levels(size, operators)
    assert levels is not None
    rows = [
        np.equal.outer(np.arange(count), groups_of_cells).astype(float)
        for count, groups_of_cells in zip(levels.counts, levels.groups, strict=True)
    ]
    return levels, rows


def gram_of_levels(weights, rows):
    """Return the sum over levels of the weight times the level's Gram matrix."""
    grams = [
        weight * level_rows.T @ level_rows for weight, level_rows in zip(weights, rows, strict=True)
    ]
    return np.sum(grams, axis=0)


def random_precisions(rng, count, *, first_is_0):
    """Return a precision of each level, of which some are 0, but not the last one."""
    precisions = rng.random(count) * (rng.random(count) < 0.7)
    if first_is_0:
        precisions[0] = 0
    precisions[-1] += 0.1
    return np.asarray(precisions)


@pytest.mark.parametrize("seed", range(12))
def test_spectrum_of_levels_matches_the_matrix(seed):
    levels, rows = levels_of(seed)
    weights = np.random.default_rng(200 + seed).random(len(rows))
    trace = 0.0
    for part in levels.spectrum:
        gram = np.tensordot(weights, np.asarray(part.grams) * levels.size, 1)
        trace += part.multiplicity * trace_of_root(gram)
    eigenvalues = np.linalg.eigvalsh(gram_of_levels(weights, rows))
    assert trace == pytest.approx(np.sqrt(np.maximum(eigenvalues, 0)).sum())


@pytest.mark.parametrize("seed", range(12))
def test_level_errors_and_slopes_match_matrices(seed):
    levels, rows = levels_of(seed)
    rng = np.random.default_rng(100 + seed)
    precisions = random_precisions(rng, len(rows), first_is_0=seed % 3 == 0)
    weights = rng.random(len(rows))
    # Levels above the first measured one are not determined.
    first_measured = int(np.flatnonzero(precisions)[0])
    error, _ = levels.orbits.error(precisions.tolist(), weights.tolist())
    assert (error == np.inf) == (first_measured > 0)

    weights[:first_measured] = 0
    error, slopes = levels.orbits.error(precisions.tolist(), weights.tolist())
    gram = gram_of_levels(weights, rows)
    inverse = np.linalg.pinv(gram_of_levels(precisions, rows))
    assert error == pytest.approx(np.trace(gram @ inverse))
    for slope, level_rows in zip(slopes[first_measured:], rows[first_measured:], strict=True):
        expected = np.trace(gram @ inverse @ level_rows.T @ level_rows @ inverse)
        assert slope.sum() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(12))
def test_level_inverse_matches_the_matrix(seed):
    levels, rows = levels_of(seed)
    rng = np.random.default_rng(100 + seed)
    precisions = random_precisions(rng, len(rows), first_is_0=seed % 3 == 0)
    first_measured = int(np.flatnonzero(precisions)[0])
    inverse = np.linalg.pinv(gram_of_levels(precisions, rows))
    level_inverse = LevelInverse(levels, tuple(precisions.tolist()))

    vectors = rows[first_measured].T @ rng.random((len(rows[first_measured]), 2))
    assert level_inverse.solve(vectors) == pytest.approx(inverse @ vectors)
    for level_rows in rows[first_measured:]:
        variances = level_inverse.variances(Dense(level_rows.astype(np.int64)))
        assert variances == pytest.approx(np.diag(level_rows @ inverse @ level_rows.T))
    if first_measured == 0:
        prefix_rows = dense(Prefix(levels.size)).astype(float)
        variances = level_inverse.variances(Prefix(levels.size))
        assert variances == pytest.approx(np.diag(prefix_rows @ inverse @ prefix_rows.T))


@pytest.mark.parametrize("seed", range(6))
def test_unequal_group_weights_match_matrices(seed):
    levels, rows = levels_of(seed)
    rng = np.random.default_rng(seed)
    precisions = [rng.random(len(level_rows)) + 0.1 for level_rows in rows]
    weights = rng.random(len(rows))
    gram = gram_of_levels(weights, rows)
    measured_rows = np.vstack(rows)
    inverse = np.linalg.inv(measured_rows.T @ (np.concatenate(precisions)[:, None] * measured_rows))
    error, slopes = levels.singleton_orbits.error(precisions, weights.tolist())
    assert error == pytest.approx(np.trace(gram @ inverse))
    for slope, level_rows in zip(slopes, rows, strict=True):
        expected = np.diag(level_rows @ inverse @ gram @ inverse @ level_rows.T)
        assert slope == pytest.approx(expected)

    level_inverse = LevelInverse(levels, tuple(precisions))
    vectors = rng.random((levels.size, 2))
    assert level_inverse.solve(vectors) == pytest.approx(inverse @ vectors)
    for level_rows in rows:
        operator = Dense(level_rows.astype(np.int64))
        covariance = level_rows @ inverse @ level_rows.T
        assert level_inverse.variances(operator) == pytest.approx(np.diag(covariance))
        assert level_inverse.total_variance(operator) == pytest.approx(np.trace(covariance))


def test_level_between_measured_ones_is_determined():
    measured = nested_levels(12, [Ranges(12, [0, 6], [5, 11])])
    assert measured is not None
    between = Ranges(12, [0, 2, 6], [1, 5, 11])
    rows = [
        dense(operator).astype(float)
        for operator in (Identity(12), Ranges(12, [0, 6], [5, 11]), Total(12))
    ]
    inverse = np.linalg.inv(gram_of_levels((0.3, 2.0, 0.7), rows))
    between_rows = dense(between).astype(float)
    assert LevelInverse(measured, (0.3, 2.0, 0.7)).total_variance(between) == pytest.approx(
        np.trace(between_rows @ inverse @ between_rows.T)
    )


def test_crossing_or_overlapping_groups_are_refused():
    assert nested_levels(6, [Ranges(6, [0, 2], [1, 5]), Ranges(6, [0, 3], [2, 5])]) is None
    assert nested_levels(6, [Ranges(6, [0, 2], [2, 5])]) is None
    assert nested_levels(6, [Prefix(6)]) is None


def test_many_equal_groups_form_one_orbit_per_level():
    starts = np.arange(0, 2**17, 16)
    levels = nested_levels(2**17, [Ranges(2**17, starts, starts + 15)])
    assert levels is not None
    assert [len(orbit) for orbit in levels.orbits.numbers] == [1, 1, 1]


def test_error_is_infinite_where_a_group_of_the_finest_level_is_not_measured():
    """A group of one cell cannot replace that cell in the finest level."""
    levels = nested_levels(4, [Ranges(4, [0, 1], [0, 3])])
    assert levels is not None
    for unmeasured in (0.0, 1e-310):
        precisions = (np.array([unmeasured, 1.0, 1.0, 1.0]), np.ones(2), np.zeros(1))
        error, slopes = levels.singleton_orbits.error(precisions, [1.0, 1e-60, 0.0])
        assert error == math.inf
        assert all(np.isfinite(of_level).all() for of_level in slopes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weight", ["1e-6", "1e-30", "1e-100", "1e100"])
def test_level_plans_have_finite_errors_for_all_weights(seed, weight):
    rng = np.random.default_rng(seed)
    names = [f"v{place}" for place in range(int(rng.integers(2, 9)))]
    groups = {name: f"g{rng.integers(len(names))}" for name in names}
    domain = ln.Domain(a=ln.Categories(names, levels={"up": groups}, complete=True))
    workload = ln.queries(domain, a=ln.level("up"))
    workload += ln.queries(domain, a="identity", weight=weight)
    for budget in (ln.PureDP(1), ln.ZCDP("1/2")):
        plan = ln.plan(workload, budget, strategy="marginals")
        json.loads(plan.to_json(), parse_constant=pytest.fail)
        assert math.isfinite(plan.expected_error().total_squared_error)
