"""Levels of unequal groups against dense algebra."""

import json
import math
from collections.abc import Iterable

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._families import LevelInverse, Levels, nested_levels, trace_of_root
from leastnoise._trusted.linop import Dense, Identity, Operator, Prefix, Ranges, Total, dense


def levels_of(seed: int) -> tuple[Levels, list[np.ndarray]]:
    """Return a tree of random groups, and the groups of each level as rows."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 30))
    groups, operators = np.arange(size), list[Operator]()
    shuffled = rng.permutation(size) if seed % 2 else np.arange(size)
    for _ in range(int(rng.integers(1, 4))):
        groups = np.searchsorted(
            np.cumsum(1 + rng.integers(0, 4, groups.max() + 1)), groups, side="right"
        )
        shuffled_groups = groups[shuffled]
        numbers = np.arange(shuffled_groups.max() + 1)
        operators.append(Dense((shuffled_groups == numbers[:, None]).astype(np.int64)))
    levels = nested_levels(size, operators)
    assert levels is not None
    return levels, [
        np.equal.outer(np.arange(count), groups_of_cells).astype(float)
        for count, groups_of_cells in zip(levels.counts, levels.groups, strict=True)
    ]


def gram_of_levels(weights: Iterable[float], rows: list[np.ndarray]) -> np.ndarray:
    return np.asarray(
        sum(weight * part.T @ part for weight, part in zip(weights, rows, strict=True))
    )


@pytest.mark.parametrize("seed", range(12))
def test_level_errors_slopes_and_spectra_match_matrices(seed: int) -> None:
    levels, rows = levels_of(seed)
    rng = np.random.default_rng(100 + seed)
    precisions = (
        rng.random(len(rows))
        * (rng.random(len(rows)) < 0.7)
        * ([0.0] + [1.0] * (len(rows) - 1) if seed % 3 == 0 else 1.0)
    )
    precisions[-1] += 0.1
    start = int(np.flatnonzero(precisions)[0])
    weights = rng.random(len(rows))
    gram = gram_of_levels(weights, rows)
    parts = sum(
        part.multiplicity
        * trace_of_root(
            np.asarray(
                sum(
                    weight * gram_part
                    for weight, gram_part in zip(weights, part.grams * levels.size, strict=True)
                )
            )
        )
        for part in levels.spectrum
    )
    assert parts == pytest.approx(np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0)).sum())
    assert (levels.orbits.error(precisions.tolist(), weights.tolist())[0] == np.inf) == (start > 0)
    weights[:start] = 0
    gram = gram_of_levels(weights, rows)
    inverse = np.linalg.pinv(gram_of_levels(precisions, rows))
    error, slopes = levels.orbits.error(precisions.tolist(), weights.tolist())
    assert error == pytest.approx(np.trace(gram @ inverse))
    by_level = [slope.sum() for slope in slopes[start:]]
    assert by_level == pytest.approx(
        [np.trace(gram @ inverse @ own.T @ own @ inverse) for own in rows[start:]]
    )
    structured_inverse = LevelInverse(levels, tuple(precisions.tolist()))
    seen = rows[start].T @ rng.random((len(rows[start]), 2))
    assert structured_inverse.solve(seen) == pytest.approx(inverse @ seen)
    for own in rows[start:]:
        assert structured_inverse.variances(Dense(own.astype(np.int64))) == pytest.approx(
            np.diag(own @ inverse @ own.T)
        )
    if start == 0:
        asked_rows = dense(Prefix(levels.size)).astype(float)
        assert structured_inverse.variances(Prefix(levels.size)) == pytest.approx(
            np.diag(asked_rows @ inverse @ asked_rows.T)
        )


@pytest.mark.parametrize("seed", range(6))
def test_unequal_group_weights_match_matrices(seed: int) -> None:
    levels, rows = levels_of(seed)
    rng = np.random.default_rng(seed)
    precisions, weights = [rng.random(len(own)) + 0.1 for own in rows], rng.random(len(rows))
    gram = gram_of_levels(weights, rows)
    inverse = np.linalg.inv(
        sum(
            part.T @ (precision[:, None] * part)
            for precision, part in zip(precisions, rows, strict=True)
        )
    )
    error, slopes = levels.singleton_orbits.error(precisions, weights.tolist())
    assert error == pytest.approx(np.trace(gram @ inverse))
    for slope, own in zip(slopes, rows, strict=True):
        assert slope == pytest.approx(np.diag(own @ inverse @ gram @ inverse @ own.T))
    structured_inverse = LevelInverse(levels, tuple(precisions))
    seen = rng.random((levels.size, 2))
    assert structured_inverse.solve(seen) == pytest.approx(inverse @ seen)
    for own in rows:
        operator = Dense(own.astype(np.int64))
        assert structured_inverse.variances(operator) == pytest.approx(
            np.diag(own @ inverse @ own.T)
        )
        assert structured_inverse.total_variance(operator) == pytest.approx(
            np.trace(own @ inverse @ own.T)
        )


def test_level_between_measured_ones_is_determined() -> None:
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


def test_crossing_or_overlapping_groups_are_no_levels() -> None:
    assert nested_levels(6, [Ranges(6, [0, 2], [1, 5]), Ranges(6, [0, 3], [2, 5])]) is None
    assert nested_levels(6, [Ranges(6, [0, 2], [2, 5])]) is None
    assert nested_levels(6, [Prefix(6)]) is None


def test_many_equal_groups_form_one_orbit_per_level() -> None:
    starts = np.arange(0, 2**17, 16)
    levels = nested_levels(2**17, [Ranges(2**17, starts, starts + 15)])
    assert levels is not None
    assert [len(orbit) for orbit in levels.orbits.numbers] == [1, 1, 1]


def test_error_is_infinite_where_a_group_of_the_finest_level_is_not_measured() -> None:
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
def test_level_plans_have_finite_errors_whatever_the_weights(seed: int, weight: str) -> None:
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
