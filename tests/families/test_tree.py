"""The O(n) tree inverse against the dense inverse."""

import numpy as np
import pytest

from leastnoise._families._tree import TreeInverse
from leastnoise._linop import AllRanges, Dense, Identity, Prefix, Ranges, Total, Tree, dense

TREES = [Tree.full(size, b) for size, b in [(1, 2), (2, 2), (5, 2), (8, 2), (13, 3), (16, 4), (27, 3), (30, 7), (33, 2)]]


@pytest.mark.parametrize("tree", [*TREES, Tree(11, (6, 3, 1)), Tree(20, (5, 1)), Tree(7, (1,))], ids=repr)
def test_everything_about_the_inverse(tree: Tree) -> None:
    size = tree.size
    rng = np.random.default_rng(size)
    precision = rng.uniform(0.05, 4, tree.rows)
    rows = dense(tree).astype(float)
    inverse = np.linalg.inv(rows.T @ (precision[:, None] * rows))
    known = TreeInverse(tree, precision)
    v = rng.normal(size=(size, 3))
    np.testing.assert_allclose(known.solve(v), inverse @ v, rtol=1e-9, atol=1e-9)
    assert known.kappa == pytest.approx(inverse.sum())
    np.testing.assert_allclose(known.mean, inverse.sum(axis=1) / inverse.sum(), rtol=1e-9)
    residual = inverse - known.kappa * np.outer(known.mean, known.mean)
    np.testing.assert_allclose(known.residual(v), residual @ v, rtol=1e-7, atol=1e-9)
    low = rng.integers(0, size, 20)
    high = low + rng.integers(0, size - low)
    for operator in (
        Identity(size),
        Total(size),
        Prefix(size),
        AllRanges(size),
        Ranges(size, low, high),
        tree,
        Tree.full(size, 4),
        Dense(rng.integers(-3, 4, (4, size))),
    ):
        asked = dense(operator).astype(float)
        np.testing.assert_allclose(known.variances(operator), np.einsum("ij,jk,ik->i", asked, inverse, asked), rtol=1e-8)


@pytest.mark.parametrize(
    "tree", [Tree.full(16, 4), Tree.full(27, 3), Tree(20, (5, 1)), Tree(24, (12, 4, 1)), Tree(7, (1,)), Tree(6, (3, 1))], ids=repr
)
def test_levels_of_nodes_that_are_alike_are_kept_as_one_number(tree: Tree) -> None:
    weights = np.random.default_rng(tree.size).uniform(0.05, 4, len(tree.widths))
    precision = np.repeat(weights, tree.level_sizes)
    rows = dense(tree).astype(float)
    inverse = np.linalg.inv(rows.T @ (precision[:, None] * rows))
    known = TreeInverse(tree, precision)
    assert known.alike
    assert all(level.strides == (0,) for level in known.own)
    np.testing.assert_allclose(known.mean, np.full(tree.size, 1 / tree.size), rtol=1e-12)
    v = np.random.default_rng(0).normal(size=(tree.size, 2))
    np.testing.assert_allclose(known.solve(v), inverse @ v, rtol=1e-9, atol=1e-9)
    for operator in (Prefix(tree.size), AllRanges(tree.size), Identity(tree.size), tree):
        asked = dense(operator).astype(float)
        np.testing.assert_allclose(known.variances(operator), np.einsum("ij,jk,ik->i", asked, inverse, asked), rtol=1e-9)
    assert known.prefix_variances is known.variances(Prefix(tree.size))  # computed once
    with pytest.raises(ValueError, match="read-only"):
        known.prefix_variances[0] = 0
