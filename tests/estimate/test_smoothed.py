"""Answers of a plan that does not look, shrunk: the algebra against dense matrices, intervals that stay, and errors by simulation."""

from fractions import Fraction

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._accuracy import block_variance
from leastnoise._domain import Coded, Domain, Integers
from leastnoise._estimate import Estimate, Halving, Smoothed, shrink
from leastnoise._estimate._posterior import _FREE, _priors
from leastnoise._fitting import fit
from leastnoise._kernel import SeededEntropy, simulate
from leastnoise._linop import Identity, Operator, Prefix, Tree, dense
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._table import Table
from leastnoise._workload import queries

SIZES = [1, 2, 5, 8, 13]
PRIVACY = {Noise.DISCRETE_LAPLACE: Privacy(PureDP("1/3")), Noise.DISCRETE_GAUSSIAN: Privacy(ZCDP("1/30"))}


def measured(cells: np.ndarray, operators: list[Operator], noise: Noise, seed: int) -> Observation:
    domain = Domain(age=Coded(1) if len(cells) == 1 else Integers(0, len(cells) - 1))
    blocks = [(Block((Factor(("age",), operator),), Fraction(1)), 1.0) for operator in operators]
    plan: Measurements = fit(domain, PRIVACY[noise], noise, blocks)
    table = Table(domain, {"age": np.repeat(np.arange(len(cells)), cells)})
    return simulate(plan, table, SeededEntropy(seed))


def basis_of(size: int) -> np.ndarray:
    halving = Halving(size)
    return halving.synthesised(np.eye(halving.padded)).T


@pytest.mark.parametrize("size", SIZES)
def test_differences_and_back_are_linear_maps_with_transposes(size: int) -> None:
    halving, random = Halving(size), np.random.default_rng(size)
    basis, rows = basis_of(size), random.normal(size=(3, size))
    np.testing.assert_allclose(halving.transposed(rows), rows @ basis, atol=1e-12)
    cells = random.normal(size=size)
    total, parts = halving.differences(cells[None])
    np.testing.assert_allclose(halving.synthesised(np.concatenate([total[:, None].reshape(1, -1), *parts], axis=1))[0], cells, atol=1e-9)
    root = random.normal(size=(size, size))
    inverse = np.array([np.concatenate(halving.differences(one[None])[1], axis=1)[0] if halving.left else [] for one in np.eye(size)]).T
    expected = np.diag(inverse @ root @ root.T @ inverse.T) if halving.left else np.zeros(0)
    known = np.concatenate([np.zeros(0), *((a > 0) & (b > 0) for a, b in zip(halving.left, halving.right, strict=True))]).astype(bool)
    np.testing.assert_allclose(np.concatenate([np.zeros(0), *halving.variances(root @ root.T)]), np.where(known, expected, 0), atol=1e-9)


@pytest.mark.parametrize("noise", PRIVACY)
@pytest.mark.parametrize("size", SIZES)
def test_the_mean_is_that_of_normals(size: int, noise: Noise) -> None:
    cells = np.where(np.arange(size) < 4, 900, 600)  # far above 0, so that no bound is met
    observation = measured(cells, [Prefix(size), Identity(size)], noise, 3)
    information, told = np.zeros((size, size)), np.zeros(size)
    for block, values in zip(observation.measurements.blocks, observation.values, strict=True):
        rows = dense(block.factors[0].operator) * block.scaling()[:, None]
        precision = 1 / block_variance(observation.measurements, block)
        information += rows.T @ rows * precision
        told += rows.T @ (values / observation.measurements.grid * block.scaling() * precision)
    covariance, halving, basis = np.linalg.inv(information), Halving(size), basis_of(size)
    spread = halving.variances(covariance)
    tail = float(np.sqrt(np.median(np.diag(covariance)) / 2)) if noise is Noise.DISCRETE_LAPLACE else None
    total, parts = halving.differences((covariance @ told)[None])
    prior = _priors(parts, spread, shrink(parts, spread, tail).variances)
    root = np.sqrt(np.append(_FREE * (covariance.sum() + total.sum() ** 2), prior))
    inner = basis * root
    mean = inner @ np.linalg.solve(inner.T @ information @ inner + np.eye(len(root)), inner.T @ told)
    np.testing.assert_allclose(Smoothed.of(observation).cells, mean, rtol=1e-5)


@pytest.mark.parametrize("noise", PRIVACY)
def test_intervals_are_those_of_least_squares_and_reach_to_the_answer(noise: Noise) -> None:
    cells = np.zeros(32, dtype=np.int64)
    cells[5] = 40
    domain = Domain(age=Integers(0, 31))
    moved = 0
    for seed in range(6):
        observation = measured(cells, [Tree.full(32, 2)], noise, seed)
        smoothed, plain = Smoothed.of(observation), Estimate(observation)
        for asked in ("identity", "prefix"):
            (product,) = queries(domain, age=asked)
            one, other = smoothed.estimate(product), plain.estimate(product)
            below, above = one.reaches(1.0, 0.8, 0.5)
            ends = other.values - other.noise_std - 0.5, other.values + other.noise_std + 0.5
            np.testing.assert_allclose(one.values - below, np.minimum(ends[0], one.values), atol=1e-9)
            np.testing.assert_allclose(one.values + above, np.maximum(ends[1], one.values), atol=1e-9)
            np.testing.assert_allclose(one.approximation_std, np.abs(one.values - other.values))
            moved += int(((one.values < ends[0]) | (one.values > ends[1])).sum())
    assert moved > 0


def test_differences_that_are_clear_stay_as_they_are() -> None:
    """Ten million records, noise of a few: no answer moves by more than a fifth of its standard error."""
    cells = np.rint(1e7 * np.linspace(1, 9, 64) ** 2 / (np.linspace(1, 9, 64) ** 2).sum()).astype(np.int64)
    (product,) = queries(Domain(age=Integers(0, 63)), age="prefix")
    for seed in range(3):
        found = Smoothed.of(measured(cells, [Tree.full(64, 4)], Noise.DISCRETE_LAPLACE, seed)).estimate(product)
        assert found.approximation_std is not None
        assert (found.approximation_std <= found.noise_std / 5).all()


@pytest.mark.parametrize(("shape", "most"), [("empty", 0.5), ("steps", 0.95), ("rough", 1.02)])
def test_errors_fall_where_counts_are_even_and_stay_where_they_are_not(shape: str, most: float) -> None:
    """Mean squares of the errors of prefix sums over 30 releases."""
    place = np.arange(64)
    cells = {"empty": 0 * place, "steps": 40 + 300 * (place // 16 % 2), "rough": place**2 * 7919 % 5000}[shape]
    (product,) = queries(Domain(age=Integers(0, 63)), age="prefix")
    squares = np.zeros(2)
    for seed in range(30):
        observation = measured(cells, [Tree.full(64, 4)], Noise.DISCRETE_LAPLACE, seed)
        for index, kind in enumerate((Smoothed.of(observation), Estimate(observation))):
            squares[index] += ((kind.estimate(product).values - np.cumsum(cells)) ** 2).sum()
    assert squares[0] <= most**2 * squares[1]
