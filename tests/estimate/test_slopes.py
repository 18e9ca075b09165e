"""Shrinking towards slopes: what is expected of a block, errors by the shape of the data, and means near what was measured."""

import math

import numpy as np
import pytest

from leastnoise._estimate import Halving, Levels, shrink
from leastnoise._estimate._shrinkage import shrink_to_slopes, slopes

WIDTHS, SCALES = (1, 4, 32), (40.0, 30.0, 20.0)


def noisy(x, trials, seed=1):
    """Least squares cells of levels of blocks, and the noise of their total and differences."""
    random = np.random.default_rng(seed)
    levels = Levels(Halving(len(x)), WIDTHS, tuple(2 * scale**2 for scale in SCALES))
    values = []
    for width, scale in zip(WIDTHS, SCALES, strict=True):
        blocks = np.add.reduceat(x, np.arange(0, len(x), width))
        values.append(blocks + random.laplace(0, scale, (trials, len(blocks))))
    return levels.halving, levels.estimate(values), *levels.noise()


@pytest.mark.parametrize("size", [1, 2, 3, 8, 13, 21])
def test_a_slope_is_what_full_blocks_on_both_sides_let_expect(size):
    halving, cells = Halving(size), np.random.default_rng(size).normal(0, 9, (2, size))
    found = slopes(halving, cells)
    assert [one.shape[1] for one in found] == [len(one) for one in halving.left]
    for level, one in enumerate(found):
        width = 2 ** (level + 1)
        full = size // width
        sums = cells[:, : full * width].reshape(2, full, width).sum(axis=2)
        for block in range(one.shape[1]):
            around = [place for place in (block - 1, block, block + 1) if 0 <= place < full]
            expected = np.zeros(2)
            if block < full and len(around) > 1:
                expected = (sums[:, around[0]] - sums[:, around[-1]]) / (4 * (around[-1] - around[0]))
            np.testing.assert_allclose(one[:, block], expected, atol=1e-9)


def test_of_a_straight_line_every_slope_is_the_difference():
    line = np.arange(32.0)[None] * 3 + 7
    for one, part in zip(slopes(Halving(32), line)[:-1], Halving(32).differences(line)[1][:-1], strict=True):
        np.testing.assert_allclose(one, part)


PLACE = np.arange(256)
SHAPES = {
    "linear": (4 * PLACE, 0.8),
    "bell": (np.rint(900 * np.exp(-(((PLACE - 128) / 40) ** 2) / 2)).astype(int), 0.95),
    "even": (np.full(256, 20), 1.03),
    "rough": (PLACE**2 * 7919 % 5000, 1.02),
    "steps": (300 * (PLACE // 32 % 2), 1.02),
    "one heavy cell": (np.where(PLACE == 77, 5000, 3), 1.02),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_errors_of_prefix_sums_fall_where_data_are_smooth_and_stay_elsewhere(shape):
    """Over those of the same levels shrunk towards 0; 100 releases."""
    x, most = SHAPES[shape]
    halving, cells, _, noise = noisy(x, 100)
    total, parts = halving.differences(cells)
    squares = []
    for found in (shrink_to_slopes(halving, cells, noise, SCALES[0]), shrink(parts, noise, SCALES[0])):
        errors = halving.together(total, found.means) - x
        squares.append((errors.cumsum(axis=1) ** 2).mean())
    assert math.sqrt(squares[0] / squares[1]) <= most


@pytest.mark.parametrize("shape", SHAPES)
def test_means_of_a_level_lie_no_further_from_what_was_measured_than_noise_would_bring_them(shape):
    x, _ = SHAPES[shape]
    halving, cells, _, noise = noisy(x, 10)
    found = shrink_to_slopes(halving, cells, noise, SCALES[0])
    for part, mean, own in zip(halving.differences(cells)[1], found.means, noise, strict=True):
        assert (((part - mean) ** 2 / own).sum(axis=1) <= len(own) + math.sqrt(2 * len(own)) + 1e-9).all()


def test_wide_blocks_that_differ_are_kept_where_narrow_ones_are_even():
    """Two steps of few blocks: the tree alone takes them for noise."""
    x = np.full(256, 5)
    x[64:128] += 5
    halving, cells, _, noise = noisy(x, 200)
    _, parts = halving.differences(cells)
    truth = halving.differences(x[None].astype(float))[1]
    found, before = shrink_to_slopes(halving, cells, noise, SCALES[0]), shrink(parts, noise, SCALES[0])
    errors = [((one.means[6] - truth[6]) ** 2).mean() for one in (found, before)]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize("size", [1, 5, 100, 128])
@pytest.mark.parametrize("tail", [None, 3.0])
def test_trials_are_by_themselves_padding_is_known_and_errors_hold_noise(size, tail):
    halving, random = Halving(size), np.random.default_rng(size)
    levels = Levels(halving, (1,), (18.0,))
    cells = levels.estimate([random.normal(10, 5, (3, size))])
    noise = levels.noise()[1]
    found = shrink_to_slopes(halving, cells, noise, tail)
    for trial in range(3):
        alone = shrink_to_slopes(halving, cells[trial : trial + 1], noise, tail)
        for one, other in zip(found.means, alone.means, strict=True):
            np.testing.assert_allclose(one[trial], other[0])
    for mean, variance, part, error, own in zip(found.means, found.variances, found.noise, found.errors, noise, strict=True):
        assert not mean[:, own == 0].any()
        assert not error[:, own == 0].any()
        assert (part <= variance + 1e-9).all()
        assert (variance <= error + 1e-9).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_errors_of_differences_are_not_below_what_happens(shape):
    """Root mean squares of a level over 40 releases are at most those that are told, but for the luck of few blocks."""
    x, _ = SHAPES[shape]
    halving, cells, _, noise = noisy(x, 40)
    found, truth = shrink_to_slopes(halving, cells, noise, SCALES[0]), halving.differences(x[None].astype(float))[1]
    for mean, told, true in zip(found.means, found.errors, truth, strict=True):
        assert ((mean - true) ** 2).mean() <= 1.3 * told.mean()
