"""Least squares on nested blocks: its standard errors, bounds, and shrinkage."""

import numpy as np
import pytest

from leastnoise._error import noise_variance
from leastnoise._estimation import (
    block_counts,
    bounded_cells,
    laplace_variances,
    nested_blocks,
    shrinkage_factors,
)
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.linop import block_tree

STARTS = [np.arange(9), np.array([0, 2, 3, 4, 7]), np.array([0, 3, 4]), np.array([0])]


def random_design():
    """Return scales and values of noisy blocks, the rows of the blocks, and their weights."""
    generator = np.random.default_rng(1)
    scales = [generator.uniform(0.3, 5, len(start)) for start in STARTS]
    scales[1][3] = scales[2][0] = np.inf
    values = [
        np.where(np.isfinite(scale), generator.integers(0, 50, len(scale)), 0) for scale in scales
    ]
    rows = np.concatenate(
        [
            (
                np.searchsorted(start, np.arange(9), side="right") - 1
                == np.arange(len(start))[:, None]
            ).astype(float)
            for start in STARTS
        ]
    )
    weight = 1 / laplace_variances(np.concatenate(scales))
    return scales, values, rows, weight


def test_block_counts_match_weighted_least_squares():
    scales, values, rows, weight = random_design()
    covariance = np.linalg.inv((rows.T * weight) @ rows)
    queries = np.random.default_rng(2).uniform(-1, 1, (20, 9))
    structure = nested_blocks(STARTS, [laplace_variances(scale) for scale in scales])
    assert laplace_variances(scales[0]) == pytest.approx(
        [noise_variance(Noise.DISCRETE_LAPLACE, scale) for scale in scales[0]], rel=1e-9
    )
    np.testing.assert_allclose(
        block_counts(structure, values),
        covariance @ ((rows.T * weight) @ np.concatenate(values)),
        rtol=1e-10,
    )
    np.testing.assert_allclose(
        structure.squares(queries.T),
        np.einsum("mk,kl,ml->m", queries, covariance, queries),
        rtol=1e-10,
    )


@pytest.mark.parametrize("shape", [(8, 8), (5, 7), (1, 9)])
def test_bounded_cells_stay_within_their_blocks(shape):
    tree = block_tree(*shape)
    counts = np.random.default_rng(3).normal(0, 5, len(tree.order)) + 1
    cells = bounded_cells(counts, tree.starts)
    assert cells.min() >= 0
    assert cells.sum() == pytest.approx(max(counts.sum(), 0))
    non_negative = np.abs(counts)
    np.testing.assert_allclose(bounded_cells(non_negative, tree.starts), non_negative, atol=1e-9)


@pytest.mark.parametrize("shape", [(8, 8), (5, 7), (1, 9)])
def test_shrinkage_factors_follow_james_and_stein(shape):
    """The factors match James and Stein's from dense weights, level by level."""
    tree = block_tree(*shape)
    generator = np.random.default_rng(6)
    base = tree.starts[1]
    size = len(tree.order)
    # The second first block is not divided further than once.
    starts = np.concatenate(
        [tree.starts[-1][tree.starts[-1] < base[1]], tree.starts[2][tree.starts[2] >= base[1]]]
    )
    counts = generator.normal(9, 4, len(starts))
    variances = generator.uniform(1, 5, len(starts))
    label = np.searchsorted(starts, np.arange(size), side="right") - 1
    expand = (label[:, None] == np.arange(len(starts))) / np.bincount(label)
    total, top, *factors_by_level = shrinkage_factors(
        counts, variances, 900.0, starts, base, tree.starts
    )
    assert total == pytest.approx(max(1 - 900 / counts.sum() ** 2, 0))
    assert shrinkage_factors(-counts * 1e-3, variances, 900.0, starts, base, tree.starts)[
        0
    ].tolist() == [0.0]
    assert len(factors_by_level) == len(tree.starts) - 2
    assert top.tolist() == [1.0]
    for level, factors in enumerate(factors_by_level, 1):
        groups = {}
        for place, start in enumerate(tree.starts[level]):
            stop = np.append(tree.starts[level], size)[place + 1]
            inner = [
                inner_start for inner_start in tree.starts[level + 1] if start < inner_start < stop
            ]
            if not inner or inner[0] not in starts or len(set(label[start:stop])) == 1:
                assert factors[place] == 1.0
                continue
            share = (inner[0] - start) / (stop - start)
            weights = expand[start : inner[0]].sum(axis=0) - share * expand[start:stop].sum(axis=0)
            groups.setdefault(int(start >= base[1]), []).append(
                (place, (weights @ counts) ** 2 / (weights**2 @ variances))
            )
        for members in groups.values():
            q = sum(square for _, square in members)
            factor = max(1 - (len(members) - 2) / q, 0.0) if len(members) > 2 else 1.0
            np.testing.assert_allclose(factors[[place for place, _ in members]], factor, rtol=1e-9)


@pytest.mark.parametrize(("heavy", "keeps_all"), [(0.0, False), (3.0, False), (40.0, True)])
def test_first_blocks_keep_all_unless_noise_explains_it(heavy, keeps_all):
    tree = block_tree(4, 4)
    counts = np.full(16, 9.0)
    counts[::2] += np.random.default_rng(2).normal(size=8)
    counts[0] = 9 + heavy
    level = shrinkage_factors(
        counts, np.ones(16), 16.0, tree.starts[-1], tree.starts[-1], tree.starts
    )[-1]
    assert ((level == 1.0) if keeps_all else (level < 0.7)).all()


@pytest.mark.parametrize(
    ("deviation", "most"), [(0.0, 0.45), (1.0, 0.75), (4.0, 1.0), (40.0, 1.01)]
)
def test_keeping_less_deviation_reduces_cell_errors(deviation, most):
    """Shrinkage reduces the mean square of 64 noisy cells over 200 runs.

    James and Stein's theorem has it below 1 for every level of 3 blocks and more.
    """
    tree = block_tree(8, 8)
    generator = np.random.default_rng(8)
    truth = 100 + deviation * generator.normal(size=64)
    squares = np.zeros(2)
    for _ in range(200):
        counts = truth + generator.normal(size=64)
        factors = shrinkage_factors(
            counts, np.ones(64), 64.0, tree.starts[-1], tree.starts[0], tree.starts
        )
        cells = bounded_cells(counts, tree.starts, factors), counts
        squares += [((estimates - truth) ** 2).sum() for estimates in cells]
    assert squares[0] <= most * squares[1]


def test_deviations_of_several_levels_form_one_group():
    """The deviations within a large first block have a factor of their own."""
    tree = block_tree(8, 16)
    base = np.concatenate([[0], np.arange(64, 128, 4)])
    counts = np.concatenate(
        [np.full(64, 9.0), np.repeat(np.where(np.arange(16) < 1, 900.0, 5.0), 4)]
    )
    _, *factors = shrinkage_factors(counts, np.ones(128), 128.0, np.arange(128), base, tree.starts)
    for starts, factor in zip(tree.starts, factors, strict=False):
        above = np.isin(starts, 0) & (len(starts) < 3) | (starts >= 64) & (len(starts) < 32)
        assert (factor[above] == 1.0).all()
        if 4 < len(starts) < 64:  # of one or two halves everything is kept
            assert (factor[starts < 64] == 0.0).all()
