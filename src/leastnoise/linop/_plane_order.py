"""The cells of a rectangle on a line: a Hilbert curve for any height and width, and the order of a tree of blocks.

Public: nothing here sees a count. The labels (O1 ...) are those of the proofs of the plane in ``measure``.
"""

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastnoise._check import one_of, whole
from leastnoise.linop._operators import IntArray as Integers

_MOST_CELLS = 2**24
SPLITS = ("quarters", "halves")


def hilbert_order(height: int, width: int) -> Integers:
    """Cells of a rectangle along a Hilbert curve, each step to a neighbouring cell, whatever the sides.

    Args:
        height: rows of cells.
        width: columns of cells.

    Returns:
        Places in row-major order, int64 of shape (height * width,): ``x.reshape(-1)[order]`` is the vector along the curve.

    Raises:
        InputError: a side below 1, or more than 2^24 cells.

    Edge cases:
        On a square whose side is a power of two it is Hilbert's curve, so aligned runs of 4^k cells are squares.

    Source:
        Hilbert, Math. Annalen 38, 1891; uneven halves chosen so that no step is long (O1).

    >>> hilbert_order(2, 3).tolist()
    [0, 1, 2, 5, 4, 3]
    """
    _read_sides(height, width)
    # A path through w x h cells from one end of the side w to its other end exists unless w is odd and h even (O1).
    along_rows = width >= height if width % 2 == height % 2 else width % 2 == 0
    down, right = np.array([[width]]), np.array([[1]])
    # A job: first cell, step along the major side, step along the minor side (differences of places), and the two lengths.
    jobs = np.concatenate([[[0]], right, down, [[width]], [[height]]] if along_rows else [[[0]], down, right, [[height]], [[width]]])
    while ((jobs[4] > 1) & (jobs[3] * jobs[4] != 4)).any():
        jobs = _divided(jobs)
    area = jobs[3] * jobs[4]
    start, major, minor, _, h = np.repeat(jobs, area, axis=1)
    place = np.arange(height * width) - np.repeat(np.cumsum(area) - area, area)
    # What is left is a row (h = 1), or a pair of columns: up the first and down the second (h = 2, w = 2).
    i = np.where(h == 1, place, place // 2)
    j = np.where(h == 1, 0, (place == 1) | (place == 2))
    order: Integers = start + i * major + j * minor
    return order


def _divided(jobs: Integers) -> Integers:
    """One step of the recursion for all rectangles at once: long ones in two, others in three parts, finished ones as they are (O1)."""
    start, major, minor, w, h = jobs
    two = (h > 1) & ((2 * w > 3 * h) | (h == 2)) & (w > 2)
    three = (h > 2) & ~two
    # O1: the first part of a long one has an even length, and so has the first part of the minor side of the others.
    cut = np.where(two, np.maximum(2, w // 4 * 2), w)
    half, rise = w // 2, np.maximum(2, h // 4 * 2)
    first = np.where(three, [start, minor, major, rise, half], [start, major, minor, cut, h])
    second = np.where(three, [start + rise * minor, major, minor, w, h - rise], [start + cut * major, major, minor, w - cut, h])
    third = np.array([start + (w - 1) * major + (rise - 1) * minor, -minor, -major, rise, w - half])
    stacked = np.stack([first, second, third], axis=-1).reshape(5, -1)
    kept = np.stack([np.ones_like(two), two | three, three], axis=-1).reshape(-1)
    return np.asarray(stacked[:, kept])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockTree:
    """Blocks of a rectangle, each divided into at most four (or two) of the next level; the same for all counts.

    Attributes:
        shape: height and width.
        order: places of the cells in row-major order, so that each block of each level is a run; int64, shape (n,).
        starts: for each level, coarse to fine, the place in ``order`` where each block begins; first one block, last the single cells.
        children: for each level but the last, the first child of each block in the next level.
    """

    shape: tuple[int, int]
    order: Integers
    starts: tuple[Integers, ...]
    children: tuple[Integers, ...]

    def lengths(self, level: int) -> Integers:
        """Number of cells of each block of a level.

        >>> block_tree(2, 3, "quarters").lengths(1).tolist()
        [2, 1, 2, 1]
        """
        return np.diff(self.starts[level], append=len(self.order))

    def broods(self, level: int) -> Integers:
        """Number of children of each block of a level but the last; a block with one child is that child.

        >>> block_tree(2, 3, "quarters").broods(1).tolist()
        [2, 1, 2, 1]
        """
        return np.diff(self.children[level], append=len(self.starts[level + 1]))


@lru_cache(maxsize=2)
def block_tree(height: int, width: int, split: str) -> BlockTree:
    """The tree of blocks that halves sides again and again, the longer part of an odd side first.

    Args:
        height: rows of cells.
        width: columns of cells.
        split: ``"quarters"``: a level halves both sides of a block unless the longest block is at least twice as long as the other way;
            ``"halves"``: a level halves the longer side only.

    Returns:
        The tree.

    Raises:
        InputError: a side below 1, more than 2^24 cells, or another word for the split.

    >>> block_tree(2, 3, "halves").order.tolist()
    [0, 3, 1, 4, 2, 5]
    """
    _read_sides(height, width)
    one_of("split", split, SPLITS)
    edges = [np.array([0, height]), np.array([0, width])]
    labels: list[Integers] = []
    while True:
        row, column = (np.repeat(np.arange(len(edge) - 1), np.diff(edge)) for edge in edges)
        labels.append((row[:, None] * (len(edges[1]) - 1) + column).reshape(-1))
        longest = [int(np.diff(edge).max()) for edge in edges]
        if max(longest) == 1:
            break
        longer = int(longest[1] >= longest[0])
        edges[longer] = _halved(edges[longer])
        if split == "quarters" and longest[longer] < 2 * longest[1 - longer]:
            edges[1 - longer] = _halved(edges[1 - longer])
    order = np.lexsort(labels[::-1])
    starts = [np.flatnonzero(np.diff(label[order], prepend=-1)) for label in labels]
    children = [np.searchsorted(fine, coarse) for coarse, fine in itertools.pairwise(starts)]
    for kept in (order, *starts, *children):  # the tree is cached and its arrays are handed out
        kept.setflags(write=False)
    return BlockTree(shape=(height, width), order=order, starts=tuple(starts), children=tuple(children))


def _halved(edges: Integers) -> Integers:
    return np.unique(np.concatenate([edges, (edges[:-1] + edges[1:] + 1) // 2]))


def _read_sides(height: int, width: int) -> None:
    whole("height", height, 1, _MOST_CELLS)
    whole("width", width, 1, _MOST_CELLS // height)
