"""The cells of a rectangle on a line along a Hilbert curve, for any height and width: a public order.

The label (O1) refers to PROOFS-blocks.md beside this file.
"""

import numpy as np

from leastnoise._check import whole
from leastnoise._check.arrays import IntArray

_MOST_CELLS = 2**24


def hilbert_order(height: int, width: int) -> IntArray:
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
    whole("height", height, 1, _MOST_CELLS)
    whole("width", width, 1, _MOST_CELLS // height)
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
    order: IntArray = start + i * major + j * minor
    return order


def _divided(jobs: IntArray) -> IntArray:
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
