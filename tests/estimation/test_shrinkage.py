"""Shrinkage: exact least squares, bounds, the posterior, and pruning."""

import itertools

import numpy as np
import pytest

from leastnoise._estimation import HalvingTree, cheapest_bucket_starts, checked_errors, shrink


def least_squares(size, widths, variances):
    """The matrix from values of levels to estimated cells, and the covariance of these."""
    rows = np.concatenate(
        [np.add.reduceat(np.eye(size), np.arange(0, size, width), axis=0) for width in widths]
    )
    weights = np.concatenate(
        [
            np.full(-(-size // width), 1 / variance)
            for width, variance in zip(widths, variances, strict=True)
        ]
    )
    covariance = np.linalg.inv(rows.T @ (weights[:, None] * rows))
    return (weights[:, None] * rows) @ covariance, covariance


def noise_of(halving, covariance):
    low, high = halving.blocks()
    rows = np.array(
        [
            (np.arange(halving.size) >= a) & (np.arange(halving.size) <= b)
            for a, b in zip(low, high, strict=True)
        ],
        dtype=float,
    )
    return halving.noise(((rows @ covariance) * rows).sum(axis=1))


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 21])
def test_halving_tree_has_cells_sums_and_transpose(size, runs):
    random, lengths = np.random.default_rng(size), np.arange(size) % 3 + 1
    halving = HalvingTree(size, lengths if runs else None)
    cells, query = random.normal(5, 9, (2, size))
    vector = halving.differences(cells)
    assert np.allclose(halving.cells_of(vector, are_blocks_bounded=False), cells)
    assert np.isclose(halving.transposed(query) @ vector, query @ cells)
    assert np.allclose(
        halving.differences((lengths if runs else np.ones(size)).astype(float))[1:], 0
    )
    if not runs:
        assert np.allclose(
            halving.up_to(np.arange(size + 1)) @ vector, np.append(0, np.cumsum(cells))
        )


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
    rng, halving, truth = np.random.default_rng(3), HalvingTree(256), np.zeros(256)
    truth[[100, 200, 201]] = 5000.0, 3000.0, 200.0
    back, covariance = least_squares(256, (1, 16), (72.0, 50.0))
    before = after = 0.0
    for _ in range(20):
        values = np.concatenate(
            [
                truth + rng.laplace(0, 6, 256),
                truth.reshape(16, 16).sum(axis=1) + rng.laplace(0, 5, 16),
            ]
        )
        vector = halving.differences(values @ back)
        shrunk = shrink(halving, vector, noise_of(halving, covariance), tail)
        before += ((halving.cells_of(vector, are_blocks_bounded=False) - truth) ** 2).sum()
        after += ((halving.cells_of(shrunk.means) - truth) ** 2).sum()
        assert (shrunk.variances >= shrunk.noise).all()
        assert (shrunk.noise >= 0).all()
    assert after < 0.05 * before


def test_posterior_variance_is_squared_error_under_prior():
    # Differences drawn from the model itself, one state: what the posterior says of its error comes
    # out within a quarter.
    rng, noise, realised, stated_variances = np.random.default_rng(4), np.full(1024, 25.0), [], []
    for _ in range(20):
        truth = rng.normal(0, 10, 1024)
        shrunk = shrink(HalvingTree(1024), truth + rng.normal(0, 5, 1024), noise, None)
        realised.append(((shrunk.means - truth)[1:513] ** 2).mean())
        stated_variances.append(shrunk.variances[1:513].mean())
    assert abs(np.mean(realised) / np.mean(stated_variances) - 1) < 0.25
    assert np.mean(realised) < 25


def test_differences_reveal_errors_outside_the_prior():
    # A prior that takes everything for 0, and differences that are not: the error is what they are,
    # on average over the level.
    rng = np.random.default_rng(6)
    truth = rng.normal(0, 8, 1024)
    errors = checked_errors(
        truth + rng.normal(0, 5, 1024), np.full(1024, 25.0), np.zeros(1024), np.full(1024, 1e-3)
    )
    assert 0.7 < errors.mean() / (truth**2).mean() < 1.2
    # Where nothing is there, it is found to be little, and the more blocks the less.
    few, many = (
        np.mean(
            [
                checked_errors(part, np.full(count, 25.0), *np.zeros((2, count)))
                for part in rng.normal(0, 5, (50, count))
            ]
        )
        for count in (16, 4096)
    )
    assert many < 0.1 * 25 < 0.25 * 25 < few < 25
    part, mean, variance, noise = (
        rng.normal(0, 9, 64),
        rng.normal(0, 2, 64),
        rng.uniform(0, 4, 64),
        4.0 * (np.arange(64) % 5 > 0),
    )
    # The error lies between the posterior error and the least squares error with the shrunk part.
    errors = checked_errors(part, noise, mean, variance)
    assert not errors[noise == 0].any()
    assert ((errors >= variance) & (errors <= np.maximum(variance, noise + (part - mean) ** 2)))[
        noise > 0
    ].all()


def test_padding_is_known_and_not_learned_from():
    halving = HalvingTree(5)
    shrunk = shrink(
        halving,
        halving.differences(np.array([9.0, 1.0, 4.0, 4.0, 7.0])),
        noise_of(halving, np.eye(5)),
        None,
    )
    empty = np.concatenate(
        [[False], *((a == 0) | (b == 0) for a, b in zip(halving.left, halving.right, strict=True))]
    )
    assert not shrunk.means[empty].any()
    assert not shrunk.variances[empty].any()
    assert shrink(HalvingTree(1), np.array([3.0]), np.array([2.0]), None).means.tolist() == [3.0]


def all_prunings(start, width):
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

        def price(chosen, squares=squares, costs=costs):
            cost = 0.0
            for level in range(3):
                for block in range(len(squares[level])):
                    inside = [
                        s
                        for s in chosen
                        if block * 2 ** (level + 1) < s < (block + 1) * 2 ** (level + 1)
                    ]
                    cost += costs[level][block] * (3.0 if inside else squares[level][block])
            return cost

        best = min(all_prunings(0, 8), key=price)
        assert np.isclose(price(starts.tolist()), price(best))
