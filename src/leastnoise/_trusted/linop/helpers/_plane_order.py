"""Define the block tree of a rectangle of cells, and its cell order.

In that order every block of the tree is a run of consecutive cells.

This file is not trusted. This module receives no counts, and the kernel checks that the blocks form
a tree (O2 of PROOFS-plane.md).
"""

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastnoise._trusted.check import whole
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.linop._operators import sealed_copy

_MOST_CELLS = 2**24  # as many as the kernel divides (`_plane.py`)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockTree:
    """A tree of blocks of the cells in a rectangle, level by level.

    Each block is divided into one or two blocks of the next level. The division does not depend on
    counts.

    Attributes:
        shape: height and width.
        order: the row-major numbers of the cells, int64, shape (n,). In this order, each block is a
            run of consecutive cells.
        starts: for each level, the positions in ``order`` at which its blocks begin. The first
            level has one block; the blocks of the last level are the single cells.
        children: for each level but the last, the first child of each block in the next level.
    """

    shape: tuple[int, int]
    order: IntArray
    starts: tuple[IntArray, ...]
    children: tuple[IntArray, ...]

    def block_sizes(self, level: int) -> IntArray:
        """Return the number of cells in each block of a level.

        >>> block_tree(2, 3).block_sizes(1).tolist()
        [4, 2]
        """
        return np.append(self.starts[level][1:], len(self.order)) - self.starts[level]

    def child_counts(self, level: int) -> IntArray:
        """Return the number of children of each block of a level.

        The last level has no children. A block and its only child have the same cells.

        >>> block_tree(2, 3).child_counts(1).tolist()
        [2, 1]
        """
        return (
            np.append(self.children[level][1:], len(self.starts[level + 1])) - self.children[level]
        )


@lru_cache(maxsize=2)
def block_tree(height: int, width: int) -> BlockTree:
    """Return the tree that halves each block along its longer side.

    If the length of this side is odd, the first half is the longer one.

    Args:
        height: the number of rows of cells.
        width: the number of columns of cells.

    Raises:
        InputError: a side is below 1, or there are more than 2^24 cells.

    >>> block_tree(2, 3).order.tolist()
    [0, 3, 1, 4, 2, 5]
    """
    whole("height", height, 1, _MOST_CELLS)
    whole("width", width, 1, _MOST_CELLS // height)
    edges = [np.array([0, height]), np.array([0, width])]
    labels: list[IntArray] = []
    while True:
        row, column = (np.repeat(np.arange(len(edge) - 1), np.diff(edge)) for edge in edges)
        labels.append((row[:, None] * (len(edges[1]) - 1) + column).reshape(-1))
        longest = [int(np.diff(edge).max()) for edge in edges]
        if max(longest) == 1:
            break
        longer = int(longest[1] >= longest[0])
        edge = edges[longer]
        edges[longer] = np.unique(np.concatenate([edge, (edge[:-1] + edge[1:] + 1) // 2]))
    order = np.lexsort(labels[::-1])
    starts = [np.flatnonzero(np.diff(label[order], prepend=-1)) for label in labels]
    children = [np.searchsorted(fine, coarse) for coarse, fine in itertools.pairwise(starts)]
    # The cached tree goes to all callers, so nobody may change its arrays.
    return BlockTree(
        shape=(height, width),
        order=sealed_copy(order),
        starts=tuple(map(sealed_copy, starts)),
        children=tuple(map(sealed_copy, children)),
    )


def interval_tree(size: int) -> BlockTree:
    """Return the tree of the intervals ``[i 2^k, (i + 1) 2^k)`` of a line.

    The last interval of each length ends at the last cell.

    >>> [starts.tolist() for starts in interval_tree(5).starts]
    [[0], [0, 4], [0, 2, 4], [0, 1, 2, 3, 4]]
    """
    starts = tuple(np.arange(0, size, 2**power) for power in range((size - 1).bit_length(), -1, -1))
    children = tuple(np.arange(0, len(fine), 2) for fine in starts[1:])
    return BlockTree(shape=(1, size), order=starts[-1], starts=starts, children=children)
