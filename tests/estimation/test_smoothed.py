"""Smoothed answers: their algebra, unchanged intervals, and simulated errors."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Integers
from leastnoise._error import block_variance
from leastnoise._estimation import (
    Answer,
    Estimate,
    HalvingTree,
    OneSidedBounds,
    RunTree,
    SmoothedEstimate,
    can_be_smoothed,
    level_prior,
    posterior_means,
    shrink,
)
from leastnoise._fitting import fit_noise_scales
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.linop import (
    AllRanges,
    Coarse,
    Dense,
    Identity,
    Operator,
    Prefix,
    Tree,
    dense,
)
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._trusted.table import Table
from leastnoise._workload import queries

SIZES = [1, 2, 5, 8, 13]
PRIVACY = {
    Noise.DISCRETE_LAPLACE: Privacy(PureDP("1/3")),
    Noise.DISCRETE_GAUSSIAN: Privacy(ZCDP("1/30")),
}


def measured(cells, operators, noise, seed):
    """Return a simulated observation of these operators on a table of cells."""
    domain = Domain(age=Coded(1) if len(cells) == 1 else Integers(0, len(cells) - 1))
    blocks = [(Block((Factor(("age",), operator),), Fraction(1)), 1.0) for operator in operators]
    plan: Measurements = fit_noise_scales(domain, PRIVACY[noise], noise, blocks)
    table = Table(domain, {"age": np.repeat(np.arange(len(cells)), cells)})
    return simulate(plan, table, SeededEntropy(seed))


def basis_of(halving):
    return np.array(
        [halving.cells_of(unit, are_blocks_bounded=False) for unit in np.eye(halving.padded)]
    ).T


class DenseLeastSquares:
    """Least squares of bucket totals from one observation, by dense matrices.

    Attributes:
        information: the sum of the rows' outer products, divided by the noise variances.
        weighted_values: the sum of the rows times their values, divided by the same.
    """

    def __init__(self, observation, operators, size):
        self.information = np.zeros((size, size))
        self.weighted_values = np.zeros(size)
        plan = observation.measurements
        for block, operator, values in zip(plan.blocks, operators, observation.values, strict=True):
            rows = dense(operator) * block.scaling()[:, None]
            precision = 1 / block_variance(plan, block)
            self.information += rows.T @ rows * precision
            self.weighted_values += rows.T @ (values / plan.grid * block.scaling() * precision)
        self.covariance = np.linalg.inv(self.information)


@pytest.mark.parametrize("buckets", [False, True])
@pytest.mark.parametrize("noise", PRIVACY)
@pytest.mark.parametrize("size", SIZES)
def test_smoothed_mean_matches_normal_posterior(size, noise, buckets):
    # Counts are far above 0, so that no bound matters.
    cells = np.where(np.arange(size) < 4, 900, 600)
    starts = np.unique(np.arange(size) * 2 // 3) if buckets else np.arange(size)
    cells_of_buckets = np.diff(starts, append=size)
    operators: list[Operator] = [Prefix(len(starts)), Identity(len(starts))]
    of_cells: list[Operator] = operators
    if buckets:
        of_cells = [Coarse(operator, starts, size) for operator in operators]
    observation = measured(cells, of_cells, noise, 3)
    squares = DenseLeastSquares(observation, operators, len(starts))

    halving = HalvingTree(len(starts), cells_of_buckets)
    values = halving.differences(squares.covariance @ squares.weighted_values)
    units = np.array([halving.differences(unit) for unit in np.eye(len(starts))])
    is_split = [(a > 0) & (b > 0) for a, b in zip(halving.left, halving.right, strict=True)]
    is_measured = np.concatenate([[True], *is_split])
    variances = np.einsum("cj,cd,dj->j", units, squares.covariance, units)
    variances = np.where(is_measured, variances, 0.0)
    block_queries = RunTree.of(observation.measurements).block_queries
    noise_of_blocks = Estimate(observation).estimate(block_queries).noise_std ** 2
    np.testing.assert_allclose(halving.noise(noise_of_blocks), variances, rtol=1e-6, atol=1e-9)

    tail = None
    if noise is Noise.DISCRETE_LAPLACE:
        tail = float(np.sqrt(np.median(np.diag(squares.covariance)) / 2))
    shrunk = shrink(halving, values, variances, tail)
    levels = zip(
        *map(halving.levels, (values, shrunk.means, shrunk.variances, variances)), strict=True
    )
    no_prior_of_total = np.zeros((2, 1))
    priors = [level_prior(*level) for level in levels]
    precision, pull = np.concatenate([no_prior_of_total, *priors], axis=1)[:, is_measured]
    basis = basis_of(halving)[:, is_measured]
    posterior_information = basis.T @ squares.information @ basis + np.diag(precision)
    posterior_values = basis.T @ squares.weighted_values + pull
    mean = basis @ np.linalg.solve(posterior_information, posterior_values)
    np.testing.assert_allclose(
        posterior_means(observation).means,
        np.repeat(mean / cells_of_buckets, cells_of_buckets),
        rtol=1e-5,
    )


@pytest.mark.parametrize(("away", "share"), [(1.0, 1.0), (2.0, 0.25)])
def test_smoothing_checks_its_prior_level_by_level(away, share):
    noise = np.full(16, 4.0)
    left = np.full(16, 1.0)
    part = np.tile([1.0, -1.0], 8) * away * np.sqrt(3.0)
    # This prior is right if differences lie sqrt(3) from their means of 0.
    sharp, pull = level_prior(part, np.zeros(16), left, noise)
    after = 1 / (1 / noise + sharp)
    np.testing.assert_allclose(after, share * left + (1 - share) * noise)
    np.testing.assert_allclose(after * (part / noise + pull), (1 - share) * part, atol=1e-12)
    few = level_prior(part[:4], np.zeros(4), left[:4], noise[:4])
    assert not np.concatenate(few).any()


def test_undetermined_cells_are_not_smoothed():
    few = measured(
        np.full(8, 50), [Dense(np.array([[1, 0, 1, 0, 1, 0, 1, 0]]))], Noise.DISCRETE_LAPLACE, 1
    )
    assert not can_be_smoothed(few.measurements)
    with pytest.raises(InputError):
        SmoothedEstimate.of(few)
    assert can_be_smoothed(
        measured(np.full(8, 50), [AllRanges(8)], Noise.DISCRETE_LAPLACE, 1).measurements
    )


@pytest.mark.parametrize("noise", PRIVACY)
def test_smoothed_intervals_reach_to_the_answer(noise):
    cells = np.zeros(32, dtype=np.int64)
    cells[5] = 40
    domain = Domain(age=Integers(0, 31))
    moved = 0
    for seed in range(6):
        observation = measured(cells, [Tree.full(32, 2)], noise, seed)
        smoothed = SmoothedEstimate.of(observation)
        plain = Estimate(observation)
        for query_set in ("identity", "prefix"):
            (product,) = queries(domain, age=query_set)
            smoothed_answer = smoothed.estimate(product)
            plain_answer = plain.estimate(product)
            below, above = smoothed_answer.interval_distances(1.0, 0.8, 0.5)
            ends = (
                plain_answer.values - plain_answer.noise_std - 0.5,
                plain_answer.values + plain_answer.noise_std + 0.5,
            )
            np.testing.assert_allclose(
                smoothed_answer.values - below,
                np.minimum(ends[0], smoothed_answer.values),
                atol=1e-9,
            )
            np.testing.assert_allclose(
                smoothed_answer.values + above,
                np.maximum(ends[1], smoothed_answer.values),
                atol=1e-9,
            )
            np.testing.assert_allclose(
                smoothed_answer.approximation_std,
                np.abs(smoothed_answer.values - plain_answer.values),
            )
            moved += int(
                ((smoothed_answer.values < ends[0]) | (smoothed_answer.values > ends[1])).sum()
            )
    assert moved > 0


@pytest.mark.parametrize(("shape", "most"), [("empty", 0.5), ("steps", 0.95), ("rough", 1.02)])
def test_smoothing_reduces_errors_on_even_counts(shape, most):
    """Mean squares of the errors of prefix sums over 20 releases."""
    place = np.arange(64)
    cells = {
        "empty": 0 * place,
        "steps": 40 + 300 * (place // 16 % 2),
        "rough": place**2 * 7919 % 5000,
    }[shape]
    (product,) = queries(Domain(age=Integers(0, 63)), age="prefix")
    squares = np.zeros(2)
    for seed in range(20):
        observation = measured(cells, [Tree.full(64, 4)], Noise.DISCRETE_LAPLACE, seed)
        for index, kind in enumerate((SmoothedEstimate.of(observation), Estimate(observation))):
            squares[index] += ((kind.estimate(product).values - np.cumsum(cells)) ** 2).sum()
    assert squares[0] <= most**2 * squares[1]


def test_smoothed_means_shrink_by_james_and_stein(monkeypatch):
    """If the means are half of least squares, 1 - n / q of least squares remains.

    Here q is the sum of the squares of least squares in units of the noise.
    """

    def halved(observation):
        smoothed = posterior_means(observation)
        return replace(smoothed, means=smoothed.least_squares / 2)

    monkeypatch.setattr("leastnoise._estimation._smoothing.posterior_means", halved)
    observation = measured(np.full(256, 6), [Identity(256)], Noise.DISCRETE_GAUSSIAN, 1)
    least = Estimate(observation).marginal(("age",))
    factor = (
        1
        - 256
        * block_variance(observation.measurements, observation.measurements.blocks[0])
        / (least**2).sum()
    )
    assert 0.6 < factor < 0.8
    # The factor's noise from three simulations is 0.015.
    np.testing.assert_allclose(
        SmoothedEstimate.of(observation).cells, factor * least, atol=0.06 * np.abs(least).max()
    )


def test_intervals_reach_both_bounds_with_noise():
    least, least_std, most, most_std = np.array(
        [[9.0, 3.0, 20.0, 1.0], [2.0, 4.0, 11.0, 6.0], [9.0, 0.0, 11.0, 0.0]]
    ).T
    below, above = Answer(
        np.full(3, 10.0), np.full(3, 1.0), None, OneSidedBounds(least, least_std, most, most_std)
    ).interval_distances(2.0, 1.5, 0.5)
    assert below.tolist() == [1 + 1.5 * 3 + 0.5, 8 + 1.5 * 4 + 0.5, 2 * 1 + 0.5]
    assert above.tolist() == [10 + 1.5 * 1 + 0.5, 1 + 1.5 * 6 + 0.5, 2 * 1 + 0.5]
