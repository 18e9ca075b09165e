"""Hierarchies over consecutive cells: error and gradient in O(n) a level, without any matrix.

A tree is a chain of block widths ``1 = B_0 < B_1 < ...``, each a multiple of the one before. A node of level l is a block of B_l
cells (the last one may be shorter), measured with its own scale. With z the square of that scale, the strategy's Gram on a node is
``G = z 11^T + blockdiag(G of the children)``, so that by Sherman and Morrison
``tr(M G^-1) = sum over the children - z m / (1 + z k)``, where ``v`` solves ``blockdiag(children) v = 1``, ``k = 1^T v``, ``m = v^T M v``;
and the node's own v is ``v / (1 + z k)``.

Source: docs/mathematics.md, section 2; the gradient is the reverse pass of that recursion.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._check.arrays import FloatArray
from leastnoise._planner.line._gram import Gram

_ROUNDING = 2.0**-50  # of a sum of squares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledTree:
    """A hierarchy with one scale a node.

    Attributes:
        size: Number of cells n.
        widths: Cells in a block of each level, the first 1, each a multiple of the one before; a last block may be shorter.
        scales: For each level the scales of its nodes; the largest norm of the scales from a root to a cell is 1.
        norm: 1 for pure DP, 2 for a Gaussian budget.
        rmse: Unit RMSE, exact.
    """

    size: int
    widths: tuple[int, ...]
    scales: tuple[FloatArray, ...]
    norm: int
    rmse: float

    def matrix(self) -> FloatArray:
        """The strategy as a matrix, one row a node, cells first."""
        levels = zip(self.widths, self.scales, strict=True)
        return np.vstack([scale[:, None] * np.equal.outer(np.arange(len(scale)), np.arange(self.size) // width) for width, scale in levels])


def block_sums(values: FloatArray, width: int) -> FloatArray:
    """Sums over consecutive blocks of ``width`` (the last one may be shorter)."""
    return np.add.reduceat(values, np.arange(0, len(values), width))


def block_spread(values: FloatArray, width: int, size: int) -> FloatArray:
    """Repeat each block's value over its cells."""
    return np.repeat(values, width)[:size]


def full_chain(size: int, branching: int) -> tuple[int, ...]:
    """The widths 1, b, b^2, ... up to the first that covers all cells."""
    widths = [1]
    while widths[-1] < size:
        widths.append(widths[-1] * branching)
    return tuple(widths)


def node_counts(size: int, widths: Sequence[int]) -> tuple[int, ...]:
    """Number of nodes of each level."""
    return tuple(-(-size // width) for width in widths)


def tree_error(
    gram: Gram, widths: Sequence[int], squares: Sequence[FloatArray], *, gradient: bool = True
) -> tuple[float, list[FloatArray]]:
    """``tr(M (A^T A)^-1)`` of a tree and its derivatives."""
    size = gram.size
    vector = 1 / squares[0]
    error = known = float(gram.diagonal() @ vector)
    stored: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]] = []
    for width, z in zip(widths[1:], squares[1:], strict=True):
        product = gram.block_products(vector, width)
        k, m = block_sums(vector, width), block_sums(vector * product, width)
        shrink = 1 / (1 + k * z)
        error -= float((z * m) @ shrink)
        stored.append((vector, product, k, m, shrink))
        vector = vector * block_spread(shrink, width, size)
    error = max(error, known * _ROUNDING)
    if not gradient:
        return error, []
    slopes: list[FloatArray] = []
    back = np.zeros(size)
    for (vector, product, k, m, shrink), width, z in zip(reversed(stored), widths[:0:-1], squares[:0:-1], strict=True):
        by_divisor = (z * m - block_sums(back * vector, width)) * shrink**2
        slopes.append(by_divisor * k - m * shrink)
        back = back * block_spread(shrink, width, size) + block_spread(by_divisor * z, width, size)
        back -= 2 * block_spread(z * shrink, width, size) * product
    slopes.append(-(gram.diagonal() + back) / squares[0] ** 2)
    return error, slopes[::-1]


def scaled_tree(gram: Gram, widths: Sequence[int], scales: Sequence[FloatArray], norm: int) -> ScaledTree:
    """A hierarchy of given scales, divided by its sensitivity, with its exact error."""
    paths = sum(block_spread(np.abs(scale) ** norm, width, gram.size) for scale, width in zip(scales, widths, strict=True))
    sensitivity = float(np.max(paths)) ** (1 / norm)
    unit = tuple(scale / sensitivity for scale in scales)
    error, _ = tree_error(gram, widths, [scale**2 for scale in unit], gradient=False)
    return ScaledTree(size=gram.size, widths=tuple(widths), scales=unit, norm=norm, rmse=math.sqrt(error / gram.queries))


def path_scales(widths: Sequence[int], shares: Sequence[FloatArray], norm: int, size: int) -> list[FloatArray]:
    """Scales of nodes from shares: each node takes its share of what its ancestors have left of 1, the cells take the rest.

    Under L2 what is shared out is the sum of squares. ``shares`` is for the levels above the cells, the narrowest first.
    """
    left = np.ones(len(shares[-1])) if shares else np.ones(size)
    scales: list[FloatArray] = []
    for level in range(len(shares) - 1, -1, -1):
        scales.append((left * shares[level]) ** (1 / norm))
        count = len(shares[level - 1]) if level else size
        left = np.repeat(left * (1 - shares[level]), widths[level + 1] // widths[level])[:count]
    scales.append(left ** (1 / norm))
    return scales[::-1]
