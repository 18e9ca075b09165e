"""The adaptive grid: what is measured, with how much noise, and what the default begins with."""

from fractions import Fraction

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise.linop import block_tree
from leastnoise.measure._entropy import SeededEntropy
from leastnoise.measure._plane_blocks import adaptive_blocks, plane_regime


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
    labels = part.labels()
    assert len(np.unique(labels[:8, :8])) == 64
    assert len(np.unique(labels)) <= 64 + 15 * 8


def test_no_count_makes_it_fail():
    for x in (np.full((10, 10), 2**63 - 1), np.full((10, 10), -(2**63))):
        assert adaptive_blocks(x, 1, SeededEntropy(1), blocks=4).shape == (10, 10)


def test_the_default_begins_with_more_blocks_where_there_is_more_structure():
    costs = (-50, 0, 79, 81, 223, 224, 447, 448, 5999, 6001)
    want = [("quadtree", 0)] * 3 + [("blocks", b) for b in (16, 16, 32, 32, 64, 64)] + [("fixed", 0)]
    assert [plane_regime(cost, 1, 10**4) for cost in costs] == want
    assert plane_regime(Fraction(3200), "0.1", 10**4) == ("blocks", 32)


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
        (lambda: adaptive_blocks(X[0], 1, SeededEntropy(1), blocks=2), "must be an int64 array of shape \\(height, width\\)"),
        (lambda: adaptive_blocks(X, Fraction(1, 2**60), SeededEntropy(1), blocks=2), "epsilon must be larger for 4 cells"),
        (lambda: plane_regime(1, -1, 4), "epsilon must be a number above 0"),
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
