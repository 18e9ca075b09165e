"""Shrinkage: exact least squares and noise of levels with padding, bounds, posterior, pruning."""

import itertools

import numpy as np
import pytest

from leastnoise._estimate import Halving, cheapest_blocks, shrink
from leastnoise._estimate._shrinkage import checked_errors

SHAPES = [(16, (1, 4), (3.0, 2.0)), (13, (1, 2, 8), (3.0, 2.0, 5.0)), (9, (1, 4), (0.5, 40.0)), (2, (1,), (1.0,)), (1, (1,), (2.0,))]


def matrix_of(size, widths):
    return np.concatenate([np.add.reduceat(np.eye(size), np.arange(0, size, width), axis=0) for width in widths])


def least_squares(size, widths, variances):
    """The matrix from values of levels to estimated cells, and the covariance of these."""
    rows = matrix_of(size, widths)
    weights = np.concatenate([np.full(-(-size // width), 1 / own) for width, own in zip(widths, variances, strict=True)])
    covariance = np.linalg.inv(rows.T @ (weights[:, None] * rows))
    return (weights[:, None] * rows) @ covariance, covariance


def noise_of(halving, covariance):
    low, high = halving.blocks()
    rows = np.array([(np.arange(halving.size) >= a) & (np.arange(halving.size) <= b) for a, b in zip(low, high, strict=True)], dtype=float)
    return halving.noise(((rows @ covariance) * rows).sum(axis=1))


@pytest.mark.parametrize(("size", "widths", "variances"), SHAPES)
def test_the_noise_of_differences_follows_from_that_of_blocks(size, widths, variances):
    halving, covariance = Halving(size), least_squares(size, widths, variances)[1]
    _, parts = halving.differences(np.eye(size))
    for part, own in zip(parts, noise_of(halving, covariance), strict=True):
        assert np.allclose(own, np.einsum("cb,cd,db->b", part, covariance, part))


def test_differences_of_a_power_of_two_are_uncorrelated():
    covariance = least_squares(16, (1, 4), (3.0, 2.0))[1]
    total, parts = Halving(16).differences(np.eye(16))
    every = np.concatenate([total, *parts], axis=1)
    joint = every.T @ covariance @ every
    assert np.abs(joint - np.diag(joint.diagonal())).max() < 1e-12


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 21])
def test_total_and_differences_are_the_cells_and_edges_sum_them(size):
    halving = Halving(size)
    cells = np.random.default_rng(size).normal(5, 9, (4, size))
    total, parts = halving.differences(cells)
    assert np.allclose(halving.together(total, parts, bounded=False), cells)
    edges = np.arange(size + 1)
    sums = total * edges / size
    for level, part in enumerate(parts):
        block, weight = halving.edge_weights(level, edges)
        sums = sums + part[:, block] * weight
    assert np.allclose(sums, np.pad(np.cumsum(cells, axis=1), ((0, 0), (1, 0))))


@pytest.mark.parametrize("size", [5, 8])
def test_bounded_cells_are_not_negative_and_keep_a_positive_total(size):
    halving = Halving(size)
    cells = np.random.default_rng(1).normal(0, 20, (50, size))
    total, parts = halving.differences(cells)
    bounded = halving.together(total, parts)
    assert (bounded >= 0).all()
    assert np.allclose(bounded.sum(axis=1), np.maximum(total[:, 0], 0))
    truth = np.abs(cells)
    assert np.allclose(halving.together(*halving.differences(truth)), truth)


@pytest.mark.parametrize("tail", [None, 6.0])
def test_shrinking_helps_where_there_is_nothing_and_keeps_what_is_there(tail):
    rng = np.random.default_rng(3)
    halving = Halving(1024)
    truth = np.zeros(1024)
    truth[[100, 700, 701]] = 5000.0, 3000.0, 200.0
    back, covariance = least_squares(1024, (1, 32), (72.0, 50.0))
    noise = [rng.laplace(0, 6, (20, 1024)), rng.laplace(0, 5, (20, 32))]
    values = [truth + noise[0], truth.reshape(32, 32).sum(axis=1) + noise[1]]
    total, parts = halving.differences(np.concatenate(values, axis=1) @ back)
    found = shrink(parts, noise_of(halving, covariance), tail)
    before = halving.together(total, parts, bounded=False) - truth
    after = halving.together(total, found.means) - truth
    assert (after**2).mean() < 0.05 * (before**2).mean()
    for mean, variance, own in zip(found.means, found.variances, found.noise, strict=True):
        assert mean.shape == variance.shape == own.shape
        assert (variance >= own).all()
        assert (own >= 0).all()


def test_the_posterior_variance_is_the_squared_error_where_the_prior_holds():
    # Differences drawn from the model itself, one state: what the posterior says of its error comes out within a quarter.
    rng = np.random.default_rng(4)
    truth = rng.normal(0, 10, (40, 512))
    part = truth + rng.normal(0, 5, truth.shape)
    found = shrink([part, rng.normal(0, 5, (40, 256))], [np.full(512, 25.0), np.full(256, 25.0)], None)
    realised = ((found.means[0] - truth) ** 2).mean()
    assert abs(realised / found.variances[0].mean() - 1) < 0.25
    assert realised < 25


def test_errors_that_the_prior_does_not_know_of_are_found_in_the_differences():
    # A prior that takes everything for 0, and differences that are not: the error is what they are, on average over the level.
    rng = np.random.default_rng(6)
    truth = rng.normal(0, 8, (1, 1024))
    part = truth + rng.normal(0, 5, truth.shape)
    found = checked_errors(part, np.full(1024, 25.0), np.zeros_like(part), np.full(part.shape, 1e-3))
    assert 0.7 < found.mean() / (truth**2).mean() < 1.2
    # Where nothing is there, it is found to be little, and the more blocks the less.
    few, many = (
        checked_errors(rng.normal(0, 5, (50, count)), np.full(count, 25.0), np.zeros((50, count)), np.zeros((50, count)))
        for count in (16, 4096)
    )
    assert many.mean() < 0.1 * 25 < 0.25 * 25 < few.mean() < 25


def test_checked_errors_are_between_the_posterior_and_least_squares_with_what_was_shrunk_away():
    rng = np.random.default_rng(7)
    part, mean = rng.normal(0, 9, (3, 64)), rng.normal(0, 2, (3, 64))
    variance = rng.uniform(0, 4, (3, 64))
    noise = np.where(np.arange(64) % 5 == 0, 0.0, 4.0)
    found = checked_errors(part, noise, mean, variance)
    assert not found[:, noise == 0].any()
    assert (found >= variance)[:, noise > 0].all()
    assert (found <= np.maximum(variance, noise + (part - mean) ** 2))[:, noise > 0].all()


def test_padding_is_known_and_not_learned_from():
    halving = Halving(5)
    _, parts = halving.differences(np.array([[9.0, 1.0, 4.0, 4.0, 7.0]]))
    found = shrink(parts, noise_of(halving, np.eye(5)), None)
    for level, mean in enumerate(found.means):
        empty = (halving.left[level] == 0) | (halving.right[level] == 0)
        assert not mean[0, empty].any()
        assert not found.variances[level][0, empty].any()
    assert shrink([], [], None).means == []


def all_prunings(start, width):
    yield [start]
    if width > 1:
        half = width // 2
        for left, right in itertools.product(all_prunings(start, half), all_prunings(start + half, half)):
            yield left + right


def test_pruning_is_the_cheapest_of_all():
    rng = np.random.default_rng(5)
    halving = Halving(8)
    for _ in range(20):
        squares = [rng.exponential(4, 8 // 2 ** (level + 1)) for level in range(3)]
        costs = [rng.uniform(0.5, 2, len(one)) for one in squares]
        starts = cheapest_blocks(squares, costs, 3.0, halving)

        def price(chosen, squares=squares, costs=costs):
            cost = 0.0
            for level in range(3):
                for block in range(len(squares[level])):
                    inside = [s for s in chosen if block * 2 ** (level + 1) < s < (block + 1) * 2 ** (level + 1)]
                    cost += costs[level][block] * (3.0 if inside else squares[level][block])
            return cost

        best = min(all_prunings(0, 8), key=price)
        assert np.isclose(price(starts.tolist()), price(best))
