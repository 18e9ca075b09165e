"""Consistent tables: exactness, the doubling bound, and agreement with programmes over the whole data vector."""

import itertools

import numpy as np
import pytest
from experiments.consistency import consistent, disagreement, unknowns
from scipy.optimize import linprog

from leastnoise._check import InputError
from leastnoise._estimate import from_residual_parts, residual_parts

SIZES = {"a": 3, "b": 2, "c": 4, "d": 2}
TABLES = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "b"), ("c",), ()]
NORMS = ["l1", "l2", "linf"]
LENGTH = {
    "l1": lambda v: float(np.abs(v).sum()),
    "l2": lambda v: float(np.sqrt((v**2).sum())),
    "linf": lambda v: float(np.abs(v).max()),
}


def shape(names):
    return tuple(SIZES[name] for name in names)


def marginal(cells, names):
    every = list(SIZES)
    summed = cells.sum(axis=tuple(axis for axis, name in enumerate(every) if name not in names))
    kept = [name for name in every if name in names]
    return np.transpose(summed, [kept.index(name) for name in names])


def rows(tables):
    """The query matrix over the whole data vector."""
    cells = np.eye(np.prod(list(SIZES.values()))).reshape(-1, *SIZES.values())
    return np.concatenate([np.stack([marginal(one, names).reshape(-1) for one in cells]).T.reshape(-1, len(cells)) for names in tables])


def flat(tables):
    return np.concatenate([np.asarray(cells).reshape(-1) for cells in tables.values()])


def noisy(rng, tables=TABLES, spread=5.0):
    cells = rng.poisson(7.0, size=tuple(SIZES.values())).astype(float)
    truth = {names: marginal(cells, names) for names in tables}
    return truth, {names: values + rng.laplace(scale=spread, size=values.shape) for names, values in truth.items()}


@pytest.mark.parametrize("norm", NORMS)
def test_tables_agree_and_are_marginals_of_one_vector(norm) -> None:
    _, given = noisy(np.random.default_rng(1))
    found = consistent(given, norm)
    assert disagreement(given) > 1
    assert disagreement(found) < 1e-8
    assert {names: cells.shape for names, cells in found.items()} == {names: shape(names) for names in TABLES}
    matrix = rows(TABLES)
    vector = np.linalg.lstsq(matrix, flat(found), rcond=None)[0]
    np.testing.assert_allclose(matrix @ vector, flat(found), atol=1e-8)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(10))
def test_error_at_most_doubles(norm, seed) -> None:
    truth, given = noisy(np.random.default_rng(seed))
    before = LENGTH[norm](flat(given) - flat(truth))
    after = LENGTH[norm](flat(consistent(given, norm)) - flat(truth))
    assert after <= (1 if norm == "l2" else 2) * before * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_distances_are_those_of_programmes_over_all_cells(seed) -> None:
    rng = np.random.default_rng(seed)
    _, given = noisy(rng)
    scales = {names: float(rng.uniform(0.5, 4)) for names in TABLES}
    weight = np.concatenate([np.full(np.prod(shape(names), dtype=int), 1 / scales[names]) for names in TABLES])
    matrix, target = rows(TABLES) * weight[:, None], flat(given) * weight
    count, size = matrix.shape
    free = [(None, None)] * size
    lp = {
        "l1": linprog(
            np.r_[np.zeros(size), np.ones(count)],
            A_ub=np.block([[matrix, -np.eye(count)], [-matrix, -np.eye(count)]]),
            b_ub=np.r_[target, -target],
            bounds=free + [(0, None)] * count,
        ).fun,
        "linf": linprog(
            np.r_[np.zeros(size), 1.0],
            A_ub=np.block([[matrix, -np.ones((count, 1))], [-matrix, -np.ones((count, 1))]]),
            b_ub=np.r_[target, -target],
            bounds=[*free, (0, None)],
        ).fun,
        "l2": np.linalg.norm(matrix @ np.linalg.lstsq(matrix, target, rcond=None)[0] - target),
    }
    for norm in NORMS:
        found = consistent(given, norm, scales=scales)
        assert LENGTH[norm]((flat(found) - flat(given)) * weight) == pytest.approx(lp[norm], rel=1e-7)
        assert disagreement(found) < 1e-8


def test_weighted_least_squares_is_the_projection() -> None:
    rng = np.random.default_rng(3)
    _, given = noisy(rng)
    scales = {names: float(rng.uniform(0.5, 4)) for names in TABLES}
    weight = np.concatenate([np.full(np.prod(shape(names), dtype=int), 1 / scales[names]) for names in TABLES])
    matrix = rows(TABLES)
    fitted = matrix @ np.linalg.lstsq(matrix * weight[:, None], flat(given) * weight, rcond=None)[0]
    np.testing.assert_allclose(flat(consistent(given, scales=scales)), fitted, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_consistent_tables_stay(norm) -> None:
    truth, _ = noisy(np.random.default_rng(4))
    np.testing.assert_allclose(flat(consistent(truth, norm)), flat(truth), atol=1e-9)


def test_unknowns_are_the_rank_and_far_fewer_than_cells() -> None:
    assert unknowns({names: shape(names) for names in TABLES}) == np.linalg.matrix_rank(rows(TABLES))
    names = [f"x{i}" for i in range(20)]
    pairs = dict.fromkeys(itertools.combinations(names, 2), (2, 2))
    assert unknowns(pairs) == 1 + 20 + 190


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_twenty_attributes_need_no_vector_of_a_million_cells(norm) -> None:
    rng = np.random.default_rng(5)
    given = {(f"x{i}", f"x{j}"): 100 + rng.laplace(scale=5, size=(2, 2)) for i in range(20) for j in range(i + 1, min(i + 4, 20))}
    found = consistent(given, norm)
    assert disagreement(found) < 1e-7
    least = consistent(given, "l2")
    assert LENGTH[norm](flat(found) - flat(given)) <= LENGTH[norm](flat(least) - flat(given)) * (1 + 1e-9)


def test_attributes_of_one_value() -> None:
    for norm in NORMS:
        found = consistent({("x", "y"): [[1.0, 2.0]], ("x",): [5.0]}, norm)
        assert disagreement(found) < 1e-9


def test_residual_parts_are_orthogonal_and_complete() -> None:
    cube = np.random.default_rng(6).normal(size=(3, 2, 4))
    parts = residual_parts(cube, ("a", "b", "c"))
    np.testing.assert_allclose(from_residual_parts(parts, ("a", "b", "c"), cube.shape), cube)
    assert all(np.abs(part.sum(axis=axis)).max() < 1e-12 for part in parts.values() for axis in range(part.ndim))
    squares = sum(float((part**2).sum()) * part.size / cube.size for part in parts.values())
    assert squares == pytest.approx(float((cube**2).sum()))


@pytest.mark.parametrize(
    ("tables", "scales", "message"),
    [
        ({}, None, "at least one table"),
        ({("a",): [1.0], ("a", "b"): [[1.0], [2.0]]}, None, "the size of a"),
        ({("a", "a"): [[1.0]]}, None, "a tuple of different attribute names"),
        ({("a",): [[1.0]]}, None, "one for each axis"),
        ({("a",): [float("nan")]}, None, "finite numbers"),
        ({("a",): [1.0]}, {("b",): 1.0}, "one number for each"),
        ({("a",): [1.0]}, {("a",): 0.0}, "scale"),
    ],
)
def test_guards(tables, scales, message) -> None:
    with pytest.raises(InputError, match=message):
        consistent(tables, scales=scales)


def test_norm_is_checked() -> None:
    with pytest.raises(InputError, match="norm"):
        consistent({(): 1.0}, "l3")
