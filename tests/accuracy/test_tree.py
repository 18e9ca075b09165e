"""The O(n) tree inverse against the dense inverse."""

import numpy as np
import pytest

from leastnoise.accuracy._tree import TreeInverse
from leastnoise.linop import AllRanges, Dense, Identity, Prefix, Ranges, Total, Tree, dense

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
