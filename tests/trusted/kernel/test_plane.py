"""Trees of blocks of a plane or a line, and the least cost of a partition."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from behind_the_wall import clip_counts
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.kernel import GRID, LeastCost, SeededEntropy
from leastnoise._trusted.kernel import _plane as plane
from leastnoise._trusted.kernel._noise import discrete_laplace
from leastnoise._trusted.kernel._plane import (
    block_costs,
    largest_count,
    noise_scale,
    order_counts_by_tree,
    penalty_on_grid,
)
from leastnoise._trusted.linop import BlockTree, block_tree, interval_tree

SHAPES = [(1, 1), (1, 2), (2, 2), (3, 2), (4, 2), (3, 3), (1, 5), (2, 5)]


def all_partitions(tree):
    """Return every partition into blocks, as tuples of (level, block), once each."""

    def partitions_of(level, block):
        """Yield the partitions of a block of a level."""
        if level == len(tree.children):
            yield ((level, block),)
            return
        first = tree.children[level][block]
        number = tree.child_counts(level)[block]
        if number > 1:
            yield ((level, block),)
        for parts in itertools.product(
            *(list(partitions_of(level + 1, first + place)) for place in range(number))
        ):
            yield tuple(itertools.chain.from_iterable(parts))

    return list(partitions_of(0, 0))


def cells_of(tree, level, block):
    start = tree.starts[level][block]
    return frozenset(tree.order[start : start + tree.block_sizes(level)[block]].tolist())


def deviation(values):
    return np.abs(values - np.median(values)).sum()


def least_cost(x, epsilon, seed, *, penalty, distance=1):
    """Draw the least cost as a series does."""
    names = ("age", "sex")[: np.ndim(x)]
    return LeastCost(attributes=names, epsilon=epsilon, penalty=penalty).draw(
        x, distance, SeededEntropy(seed)
    )


# --- trees ----------------------------------------------------------------------------------------


def test_blocks_are_rectangles_of_their_children():
    for height, width in itertools.product(range(1, 10), (1, 2, 3, 7, 20)):
        tree = block_tree(height, width)
        assert sorted(tree.order.tolist()) == list(range(height * width))
        assert len(tree.starts[0]) == 1
        assert len(tree.starts[-1]) == height * width
        for level in range(len(tree.starts)):
            sides = []
            for block in range(len(tree.starts[level])):
                row, column = np.divmod(np.array(sorted(cells_of(tree, level, block))), width)
                sides.append((np.ptp(row) + 1, np.ptp(column) + 1))
                assert len(row) == sides[-1][0] * sides[-1][1]
            assert np.ptp(sides, axis=0).max() <= 1  # uneven parts, but even ones overall
            if level < len(tree.children):
                assert set(tree.children[level].tolist()) <= set(range(len(tree.starts[level + 1])))
                assert (tree.child_counts(level) >= 1).all()
                assert tree.child_counts(level).max() == 2
                assert (tree.starts[level + 1][tree.children[level]] == tree.starts[level]).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100, 153])
def test_line_blocks_are_aligned_intervals(size):
    tree = interval_tree(size)
    powers = range(len(tree.starts) - 1, -1, -1)
    assert [starts.tolist() for starts in tree.starts] == [
        list(range(0, size, 2**power)) for power in powers
    ]
    assert order_counts_by_tree(np.arange(size))[0].tolist() == list(range(size))


TREE = block_tree(2, 3)
FAULTS: dict[str, BlockTree] = {
    "a cell twice": replace(TREE, order=np.array([0, 0, 1, 4, 2, 5])),
    "a cell that is not there": replace(TREE, order=np.array([0, 3, 1, 4, 2, 6])),
    "a cell left out": replace(TREE, order=TREE.order[:-1]),
    "blocks that do not ascend, unsigned": replace(
        TREE, starts=(TREE.starts[0], TREE.starts[1][::-1].astype(np.uint64), *TREE.starts[2:])
    ),
    "a cell before the first": replace(TREE, order=np.array([0, 3, 1, 4, 2, -1])),
    "two blocks of all cells": replace(TREE, starts=TREE.starts[1:], children=TREE.children[1:]),
    "no single cells": replace(TREE, starts=TREE.starts[:-1], children=TREE.children[:-1]),
    "blocks that do not ascend": replace(
        TREE, starts=(TREE.starts[0], TREE.starts[1][::-1], *TREE.starts[2:])
    ),
    "blocks that leave the first cells out": replace(
        TREE, starts=(TREE.starts[0] + 1, *TREE.starts[1:])
    ),
    "children that leave some out": replace(
        TREE, children=(TREE.children[0] + 1, *TREE.children[1:])
    ),
    "children of another block": replace(
        TREE, children=(*TREE.children[:-1], np.arange(len(TREE.children[-1])))
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_blocks_must_form_a_tree(fault, monkeypatch):
    """Untrusted code proposes the tree."""
    monkeypatch.setattr(plane, "block_tree", lambda *_: FAULTS[fault])
    with pytest.raises(InternalError, match="do not form a tree"):
        order_counts_by_tree(np.ones((2, 3), dtype=np.int64))


def test_tree_choice_follows_the_cost_only(monkeypatch):
    flat = BlockTree(
        shape=(2, 3),
        order=np.arange(6)[::-1],
        starts=(np.array([0]), np.arange(6)),
        children=(np.array([0]),),
    )
    monkeypatch.setattr(plane, "block_tree", lambda *_: flat)
    # Six single cells cost 6 * 2, and one block costs 27 + 2.
    assert round(least_cost(np.array([[9, 9, 9], [0, 0, 0]]), 10**6, 1, penalty=2)) == 12


# --- costs and the least of them ------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_least_cost_matches_all_partitions(shape):
    generator = np.random.default_rng(3)
    tree = block_tree(*shape)
    for _ in range(5):
        x = generator.integers(0, 500, shape)
        costs = [
            sum(deviation(x.reshape(-1)[list(cells_of(tree, *block))]) + 400 for block in B)
            for B in all_partitions(tree)
        ]
        assert float(least_cost(x, 10**6, 1, penalty=400)) == pytest.approx(min(costs), abs=0.01)


def test_no_count_makes_the_choice_fail():
    checked = np.where(np.arange(100) % 2, 2**63 - 1, 0).reshape(10, 10)
    for x in (
        np.full((10, 10), 2**63 - 1),
        np.full((10, 10), -(2**63)),
        checked,
        checked.reshape(-1),
    ):
        assert least_cost(x, 1, 1, penalty=1) > -100


@pytest.mark.parametrize("n", [1, 2, 3, 64, 1000])
def test_nothing_overflows_at_the_largest_counts(n):
    x = np.zeros(n, dtype=np.int64)
    x[: (n + 1) // 2] = 2**63 - 1
    cut = clip_counts(x)
    assert cut.max() == largest_count(n)
    assert block_costs(cut, [*interval_tree(n).starts])[0][0] == GRID * largest_count(n) * (n // 2)


@given(st.integers(1, 2 * GRID), st.fractions(Fraction(1, 900), 50, max_denominator=997))
@settings(max_examples=100, deadline=None)
def test_scales_are_rounded_up_and_only_a_little(sensitivity, epsilon):
    scale = Fraction(*noise_scale(sensitivity, epsilon, 4))
    assert sensitivity / epsilon <= scale < sensitivity / epsilon + Fraction(1, 256)


# --- refusals -------------------------------------------------------------------------------------


def test_penalties_and_scales_keep_sums_exact():
    most = Fraction(2**58, 4 * GRID)
    assert penalty_on_grid(most, 4) == 2**56
    with pytest.raises(InputError, match=r"penalty must be from 0 to 1\.76e\+13 records"):
        penalty_on_grid(most + Fraction(1, GRID), 4)
    numerator, denominator = noise_scale(1, Fraction(1, 2**47), 8)
    assert numerator == 2**47 * denominator
    with pytest.raises(InputError, match="epsilon must be larger for 8 cells"):
        noise_scale(1, Fraction(1, 2**47 + 1), 8)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_largest_noise_scale_can_be_drawn(size):
    scale = noise_scale(1, Fraction(1, 2**48 - 1), size)
    assert discrete_laplace(*scale, 1, SeededEntropy(1)).shape == (1,)
    with pytest.raises(InputError, match=f"epsilon must be larger for {size} cells"):
        noise_scale(1, Fraction(1, 2**48), size)


X = np.array([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: order_counts_by_tree(np.array([1.0])), "got 'float64 array of shape \\(1,\\)'"),
        (lambda: order_counts_by_tree(X[None]), "must be an int64 array of shape \\(n,\\) or"),
        (lambda: order_counts_by_tree([1]), "got 'list'"),
        (lambda: order_counts_by_tree(X[:0]), "with 1 to 2\\^24 cells"),
        (lambda: least_cost(X, 0, 1, penalty=1), "epsilon must be a number above 0; got 0"),
        (lambda: least_cost(X, float("nan"), 1, penalty=1), "epsilon must be a finite number"),
        (lambda: least_cost(X, 1, 1, penalty=-1), "penalty must be from 0 to"),
        (
            lambda: least_cost(X, 1, 1, penalty=1, distance=0),
            "distance must be a whole number of at least 1",
        ),
        (lambda: block_tree(2, -1), "width must be a whole number from 1"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
