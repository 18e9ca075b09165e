"""Hierarchies over consecutive cells: error and gradient in O(n) a level, without any matrix.

A tree is a chain of block widths ``1 = B_0 < B_1 < ...``, each a multiple of the one before. A node of level l is a block of B_l
cells (the last one may be shorter), measured with its own scale. With z the square of that scale, the strategy's Gram on a node is
``G = z 11^T + blockdiag(G of the children)``, so that by Sherman and Morrison
``tr(M G^-1) = sum over the children - z m / (1 + z k)``, where ``v`` solves ``blockdiag(children) v = 1``, ``k = 1^T v``, ``m = v^T M v``;
and the node's own v is ``v / (1 + z k)``.

Source: FORMULAS 1.6; the gradient is the reverse pass of that recursion.
"""

from collections.abc import Sequence

import numpy as np

from leastnoise.planner._gram import Gram, Reals


def block_sums(values: Reals, width: int) -> Reals:
    """Sums over consecutive blocks of ``width`` (the last one may be shorter).

    >>> block_sums(np.arange(5.0), 2).tolist()
    [1.0, 5.0, 4.0]
    """
    return np.add.reduceat(values, np.arange(0, len(values), width))


def block_spread(values: Reals, width: int, size: int) -> Reals:
    """Repeat each block's value over its cells.

    >>> block_spread(np.array([1.0, 2.0]), 2, 3).tolist()
    [1.0, 1.0, 2.0]
    """
    return np.repeat(values, width)[:size]


def full_chain(size: int, branching: int) -> tuple[int, ...]:
    """The widths 1, b, b^2, ... up to the first that covers all cells.

    >>> full_chain(9, 2)
    (1, 2, 4, 8, 16)
    """
    widths = [1]
    while widths[-1] < size:
        widths.append(widths[-1] * branching)
    return tuple(widths)


def node_counts(size: int, widths: Sequence[int]) -> tuple[int, ...]:
    """Number of nodes of each level.

    >>> node_counts(5, (1, 2, 4))
    (5, 3, 2)
    """
    return tuple(-(-size // width) for width in widths)


def tree_error(gram: Gram, widths: Sequence[int], squares: Sequence[Reals], *, gradient: bool = True) -> tuple[float, list[Reals]]:
    """``tr(M (A^T A)^-1)`` of a tree and its derivatives.

    Args:
        gram: Gram matrix of the workload, n cells.
        widths: The chain of block widths, the first 1.
        squares: For each level the squared scales of its nodes; those of the cells above 0, the others at least 0.
        gradient: Whether to compute the derivatives.

    Returns:
        The error, and its derivative by every squared scale (an empty list without ``gradient``). The error is convex in them.

    >>> from leastnoise.planner._gram import WidthGram
    >>> tree_error(WidthGram(2, 2), (1, 2), [np.ones(2), np.array([0.5])])[0]
    1.0
    """
    size = gram.size
    vector = 1 / squares[0]
    error = float(gram.diagonal() @ vector)
    stored: list[tuple[Reals, Reals, Reals, Reals, Reals]] = []
    for width, z in zip(widths[1:], squares[1:], strict=True):
        product = gram.block_products(vector, width)
        k, m = block_sums(vector, width), block_sums(vector * product, width)
        shrink = 1 / (1 + k * z)
        error -= float((z * m) @ shrink)
        stored.append((vector, product, k, m, shrink))
        vector = vector * block_spread(shrink, width, size)
    if not gradient:
        return error, []
    slopes: list[Reals] = []
    back = np.zeros(size)
    for (vector, product, k, m, shrink), width, z in zip(reversed(stored), widths[:0:-1], squares[:0:-1], strict=True):
        by_divisor = (z * m - block_sums(back * vector, width)) * shrink**2
        slopes.append(by_divisor * k - m * shrink)
        back = back * block_spread(shrink, width, size) + block_spread(by_divisor * z, width, size)
        back -= 2 * block_spread(z * shrink, width, size) * product
    slopes.append(-(gram.diagonal() + back) / squares[0] ** 2)
    return error, slopes[::-1]
