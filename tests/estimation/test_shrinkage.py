"""Shrinkage: exact least squares, bounds, the posterior, and pruning."""

import itertools

import numpy as np
import pytest

from leastnoise._estimation import HalvingTree, cheapest_bucket_starts, checked_errors, shrink


def least_squares(size, widths, variances):
    """Return the matrix from values of levels to estimated cells, and their covariance."""
    rows = []
    weights = []
    for width, variance in zip(widths, variances, strict=True):
        sums = np.add.reduceat(np.eye(size), np.arange(0, size, width), axis=0)
        rows.append(sums)
        weights.append(np.full(len(sums), 1 / variance))
    rows = np.concatenate(rows)
    weighted_rows = np.concatenate(weights)[:, None] * rows
    covariance = np.linalg.inv(rows.T @ weighted_rows)
    return weighted_rows @ covariance, covariance


def noise_of(halving, covariance):
    """Return the noise variances of a tree's differences for cells with a covariance."""
    low, high = halving.blocks()
    cells = np.arange(halving.size)
    rows = ((cells >= low[:, None]) & (cells <= high[:, None])).astype(float)
    return halving.noise(((rows @ covariance) * rows).sum(axis=1))


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 21])
def test_halving_tree_has_cells_sums_and_transpose(size, runs):
    random = np.random.default_rng(size)
    lengths = np.arange(size) % 3 + 1
    halving = HalvingTree(size, lengths if runs else None)
    cells, query = random.normal(5, 9, (2, size))
    vector = halving.differences(cells)
    assert np.allclose(halving.cells_of(vector, are_blocks_bounded=False), cells)
    assert np.isclose(halving.transposed(query) @ vector, query @ cells)
    # Runs of equal cells have no differences.
    equal_cells = lengths.astype(float) if runs else np.ones(size)
    assert np.allclose(halving.differences(equal_cells)[1:], 0)
    if not runs:
        prefix_sums = np.append(0, np.cumsum(cells))
        assert np.allclose(halving.up_to(np.arange(size + 1)) @ vector, prefix_sums)


@pytest.mark.parametrize("size", [5, 8])
def test_bounded_cells_keep_a_positive_total(size):
    halving = HalvingTree(size)
    for cells in np.random.default_rng(1).normal(0, 20, (50, size)):
        bounded = halving.cells_of(halving.differences(cells))
        assert (bounded >= 0).all()
        assert np.isclose(bounded.sum(), max(cells.sum(), 0))
        assert np.allclose(halving.cells_of(halving.differences(np.abs(cells))), np.abs(cells))


@pytest.mark.parametrize("tail", [None, 6.0])
def test_shrinkage_helps_on_empty_data_only(tail):
    rng = np.random.default_rng(3)
    halving = HalvingTree(256)
    truth = np.zeros(256)
    truth[[100, 200, 201]] = 5000.0, 3000.0, 200.0
    # Laplace noise of scale b has the variance 2 b^2.
    to_cells, covariance = least_squares(256, (1, 16), (72.0, 50.0))
    before = after = 0.0
    for _ in range(20):
        cells = truth + rng.laplace(0, 6, 256)
        sums = truth.reshape(16, 16).sum(axis=1) + rng.laplace(0, 5, 16)
        vector = halving.differences(np.concatenate([cells, sums]) @ to_cells)
        shrunk = shrink(halving, vector, noise_of(halving, covariance), tail)
        before += ((halving.cells_of(vector, are_blocks_bounded=False) - truth) ** 2).sum()
        after += ((halving.cells_of(shrunk.means) - truth) ** 2).sum()
        assert (shrunk.variances >= shrunk.noise).all()
        assert (shrunk.noise >= 0).all()
    assert after < 0.05 * before


def test_posterior_variance_is_squared_error_under_prior():
    # Differences are drawn from the model itself, with one state.
    rng = np.random.default_rng(4)
    noise = np.full(1024, 25.0)
    squared_errors = []
    stated_variances = []
    for _ in range(20):
        truth = rng.normal(0, 10, 1024)
        shrunk = shrink(HalvingTree(1024), truth + rng.normal(0, 5, 1024), noise, None)
        squared_errors.append(((shrunk.means - truth)[1:513] ** 2).mean())
        stated_variances.append(shrunk.variances[1:513].mean())
    assert abs(np.mean(squared_errors) / np.mean(stated_variances) - 1) < 0.25
    assert np.mean(squared_errors) < 25


def test_differences_reveal_errors_outside_the_prior():
    """With a prior that takes everything for 0, the error is the mean square of the level."""
    rng = np.random.default_rng(6)
    truth = rng.normal(0, 8, 1024)
    values = truth + rng.normal(0, 5, 1024)
    errors = checked_errors(values, np.full(1024, 25.0), np.zeros(1024), np.full(1024, 1e-3))
    assert 0.7 < errors.mean() / (truth**2).mean() < 1.2


def test_differences_of_pure_noise_reveal_little_error():
    """The more blocks, the less error is found; a level of few blocks allows for more."""
    rng = np.random.default_rng(6)

    def mean_error(count):
        noise = np.full(count, 25.0)
        zeros = np.zeros(count)
        levels = rng.normal(0, 5, (50, count))
        return np.mean([checked_errors(level, noise, zeros, zeros) for level in levels])

    assert 0.25 * 25 < mean_error(16) < 25
    assert mean_error(4096) < 0.1 * 25


def test_checked_errors_lie_between_posterior_and_least_squares():
    rng = np.random.default_rng(6)
    values = rng.normal(0, 9, 64)
    means = rng.normal(0, 2, 64)
    variances = rng.uniform(0, 4, 64)
    is_noisy = np.arange(64) % 5 > 0
    noise = 4.0 * is_noisy
    errors = checked_errors(values, noise, means, variances)
    most = np.maximum(variances, noise + (values - means) ** 2)
    assert not errors[~is_noisy].any()
    assert ((errors >= variances) & (errors <= most))[is_noisy].all()


def test_padding_has_no_influence_on_the_fit():
    halving = HalvingTree(5)
    differences = halving.differences(np.array([9.0, 1.0, 4.0, 4.0, 7.0]))
    shrunk = shrink(halving, differences, noise_of(halving, np.eye(5)), None)
    halves = zip(halving.left, halving.right, strict=True)
    is_padding = np.concatenate([[False], *((a == 0) | (b == 0) for a, b in halves)])
    assert not shrunk.means[is_padding].any()
    assert not shrunk.variances[is_padding].any()


def test_single_cell_is_not_shrunk():
    assert shrink(HalvingTree(1), np.array([3.0]), np.array([2.0]), None).means.tolist() == [3.0]


def all_prunings(start, width):
    """Yield the starts of buckets of every pruning of a tree over some cells."""
    yield [start]
    if width > 1:
        half = width // 2
        for left, right in itertools.product(
            all_prunings(start, half), all_prunings(start + half, half)
        ):
            yield left + right


def test_pruning_is_the_cheapest_of_all():
    rng = np.random.default_rng(5)
    halving = HalvingTree(8)
    for _ in range(20):
        squares = [rng.exponential(4, 8 // 2 ** (level + 1)) for level in range(3)]
        costs = [rng.uniform(0.5, 2, len(level_squares)) for level_squares in squares]
        starts = cheapest_bucket_starts(squares, costs, 3.0, halving)

        def price(bucket_starts, squares=squares, costs=costs):
            total = 0.0
            for level in range(3):
                width = 2 ** (level + 1)
                for block in range(len(squares[level])):
                    low = block * width
                    high = (block + 1) * width
                    is_split = any(low < start < high for start in bucket_starts)
                    total += costs[level][block] * (3.0 if is_split else squares[level][block])
            return total

        cheapest = min(all_prunings(0, 8), key=price)
        assert np.isclose(price(starts.tolist()), price(cheapest))
