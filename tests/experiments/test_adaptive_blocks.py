"""The adaptive grid: what is measured, with how much noise, and what the default begins with."""

from fractions import Fraction

import numpy as np
import pytest
from experiments.selections import adaptive_blocks as grid
from experiments.selections.adaptive_blocks import adaptive_blocks
from experiments.selections.partition_variants import labels_of

from kernel.test_partition_privacy import surely_lost
from kernel.test_plane_privacy import neighbours
from leastnoise._check import InputError
from leastnoise._kernel._entropy import SeededEntropy
from leastnoise._linop import block_tree
from mechanisms.remembered import draw_ahead


def blocks_of(found, layer):
    ends = np.append(found.starts[layer][1:], len(found.order))
    return [found.order[a:b] for a, b in zip(found.starts[layer], ends, strict=True)]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 9), (16, 16), (33, 4)])
def test_layers_cover_all_cells_and_nest(shape):
    x = np.random.default_rng(1).integers(0, 60, shape)
    found = adaptive_blocks(x, 2, SeededEntropy(1), blocks=4)
    assert found.starts[0][0] == 0
    for fine, coarse in zip(found.starts, found.starts[1:], strict=False):
        assert set(coarse.tolist()) <= set(fine.tolist())
    part = found.partition()
    assert part.areas().sum() == x.size
    for place, cells in enumerate(blocks_of(found, 0)):
        row, column = np.divmod(cells, shape[1])
        assert (row.min(), column.min()) == (part.tops[place], part.lefts[place])
        assert len(cells) == part.heights[place] * part.widths[place]
    assert found.spent == 2


def test_what_is_measured_costs_what_was_given():
    """For every cell, the sum of 1 / scale over the blocks that contain it is at most epsilon / distance, and nearly as much."""
    x = np.zeros((16, 12), dtype=np.int64)
    x[:8, :6] = 200
    found = adaptive_blocks(x, 3, SeededEntropy(2), blocks=8, distance=2)
    rates = np.zeros(x.size)
    for layer, scales in enumerate(found.scales):
        for cells, scale in zip(blocks_of(found, layer), scales, strict=True):
            rates[cells] += 1 / scale
    assert rates.max() <= 1.5
    assert rates.min() > 1.45
    assert np.isinf(found.scales[1]).any()
    assert np.isfinite(found.scales[1]).any()
    assert (found.values[1][np.isinf(found.scales[1])] == 0).all()


def test_counts_have_the_noise_that_they_state():
    """Mean of the standardised squares within 6 standard errors of that of the Laplace noise: false alarms below 1e-6."""
    x = np.random.default_rng(3).integers(0, 300, (8, 8))
    squares, signed = [], []
    for seed in range(200):
        found = adaptive_blocks(x, "0.5", SeededEntropy(seed), blocks=4)
        for layer, (values, scales) in enumerate(zip(found.values, found.scales, strict=True)):
            finite = np.isfinite(scales)
            truth = np.array([x.reshape(-1)[cells].sum() for cells in blocks_of(found, layer)])
            gap = ((values - truth) / scales)[finite]
            squares += (gap**2).tolist()
            signed += gap.tolist()
    assert np.mean(squares) == pytest.approx(2, abs=6 * np.sqrt(20 / len(squares)) + 0.01)
    assert abs(np.mean(signed)) < 6 * np.sqrt(2 / len(signed))


def test_full_blocks_are_divided_and_empty_ones_are_not():
    x = np.zeros((32, 32), dtype=np.int64)
    x[:8, :8] = 500
    part = adaptive_blocks(x, 1, SeededEntropy(4), blocks=16).partition()
    labels = labels_of(part)
    assert len(np.unique(labels[:8, :8])) == 64
    assert len(np.unique(labels)) <= 64 + 15 * 8


def test_no_count_makes_it_fail():
    for x in (np.full((10, 10), 2**63 - 1), np.full((10, 10), -(2**63))):
        assert adaptive_blocks(x, 1, SeededEntropy(1), blocks=4).shape == (10, 10)


X = np.array([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adaptive_blocks(X, 0, SeededEntropy(1), blocks=2), "epsilon must be a number above 0; got 0"),
        (lambda: adaptive_blocks(X, 1, SeededEntropy(1), blocks=0), "blocks must be a whole number of at least 1"),
        (lambda: adaptive_blocks(X, 1, SeededEntropy(1), blocks=2, share=1), "share and middle must be both between 0 and 1"),
        (lambda: adaptive_blocks(X, 1, SeededEntropy(1), blocks=2, middle="3/2"), "share and middle must be both between 0 and 1"),
        (lambda: adaptive_blocks(X, 1, SeededEntropy(1), blocks=2, records=0), "records must be a number above 0"),
        (lambda: adaptive_blocks(X, 1, SeededEntropy(1), blocks=2, deep=0), "deep must be a whole number of at least 1"),
        (lambda: adaptive_blocks(X, 1, SeededEntropy(1), blocks=2, distance=0), "distance must be a whole number of at least 1"),
        (
            lambda: adaptive_blocks(X[None], 1, SeededEntropy(1), blocks=2),
            "must be an int64 array of shape",
        ),
        (lambda: adaptive_blocks(X, Fraction(1, 2**60), SeededEntropy(1), blocks=2), "epsilon must be larger for 4 cells"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_cached_tree_of_blocks_cannot_be_written_to() -> None:
    tree = block_tree(4, 4, "quarters")
    for kept in (tree.order, *tree.starts, *tree.children):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 1


# --- privacy by Monte Carlo: surely_lost is a lower bound of the loss that holds with probability 1 - 1e-6 ---------------------------


def measured(x, entropy):
    """All that an adaptive grid gives away, noisy counts in steps of 1; small refinements happen by chance alone."""
    found = adaptive_blocks(x, 2, entropy, blocks=2, records=1, deep=2, share="1/2", middle="1/2")
    return (*(tuple(starts.tolist()) for starts in found.starts), int(found.values[2].clip(-2, 3)[0]), int(found.values[0].clip(-2, 3)[0]))


@pytest.mark.parametrize("shape", [(2, 2), (4, 2)])
def test_no_adaptive_grid_loses_more_than_epsilon(shape, monkeypatch):
    draw_ahead(monkeypatch, grid)
    for pair, (x, y) in enumerate(neighbours(shape)):
        entropy = SeededEntropy(200 * shape[0] + pair)
        one, other = ([measured(cells, entropy) for _ in range(1200)] for cells in (x, y))
        assert surely_lost(one, other) <= 2


def test_a_second_round_without_its_share_is_caught(monkeypatch):
    """With an eighth of the noise in both rounds the loss is far above epsilon = 2."""
    draw_ahead(monkeypatch, grid)
    true_scale = grid.noise_scale
    monkeypatch.setattr(grid, "noise_scale", lambda sensitivity, epsilon, size: true_scale(sensitivity, 8 * epsilon, size))
    x, y = np.array([[6, 0], [6, 0]]), np.array([[7, 0], [6, 0]])
    entropy = SeededEntropy(12)
    one, other = ([int(grid_count(cells, entropy)) for _ in range(1500)] for cells in (x, y))
    assert surely_lost(one, other) > 2.4


def grid_count(x, entropy):
    return adaptive_blocks(x, 2, entropy, blocks=1, records=1, deep=2).values[2][0]
