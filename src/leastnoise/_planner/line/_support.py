"""Where the rows of a p-Identity strategy may differ from zero: windows of consecutive cells, kept end to end."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the values of a support lie, seen from the cells; what the structured step needs and can be computed once.

    ``row`` is that of each value; ``rank`` counts the rows, in the order ``by_start``, that start at or before its cell, ``passed`` those,
    in the order ``by_stop``, that stop there or before. ``member`` (n x c, filled up with a dummy) lists the values of each cell, ``owner``
    their rows, ``pair`` (n x c x c) numbers two of them. ``first`` and ``last`` (p x p) say where in one row's running sums another row
    starts and stops.
    """

    row: IntArray
    by_start: IntArray
    by_stop: IntArray
    rank: IntArray
    passed: IntArray
    member: IntArray
    owner: IntArray
    pair: IntArray
    first: IntArray
    last: IntArray


class Support:
    """Where each row of Theta may differ from zero: one window of consecutive cells a row, the values kept end to end."""

    def __init__(self, size: int, windows: Sequence[tuple[int, int]]) -> None:
        self.size = size
        self.windows = tuple((int(start), int(stop)) for start, stop in windows)
        lengths = [stop - start for start, stop in self.windows]
        self.full = all(length == size for length in lengths)
        self.offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.cells = np.concatenate([np.arange(*window) for window in self.windows]) if lengths else np.zeros(0, np.int64)

    def spread(self, values: FloatArray, into: FloatArray) -> FloatArray:
        """Write the values into a zeroed p x n matrix."""
        if self.full:
            into[:] = values.reshape(into.shape)
            return into
        for row, (start, stop) in enumerate(self.windows):
            into[row, start:stop] = values[self.offsets[row] : self.offsets[row + 1]]
        return into

    def gather(self, matrix: FloatArray) -> FloatArray:
        """Read the values back from a p x n matrix."""
        if not self.windows:
            return np.zeros(0)
        return np.concatenate([matrix[row, start:stop] for row, (start, stop) in enumerate(self.windows)])

    @cached_property
    def layout(self) -> _Layout:
        """The same support seen from the cells."""
        starts, stops = np.array(self.windows, dtype=np.int64).T
        p, count = len(starts), len(self.cells)
        row = np.repeat(np.arange(p), stops - starts)
        order = np.argsort(self.cells, kind="stable")
        cover = np.bincount(self.cells, minlength=self.size)
        member = np.full((self.size, int(cover.max())), count)
        place = np.arange(count) - np.repeat(np.cumsum(cover) - cover, cover)
        member[self.cells[order], place] = order
        by_start, by_stop = np.argsort(starts, kind="stable"), np.argsort(stops, kind="stable")
        length = stops - starts
        # Where, in running sums along each row that begin with a zero, the part before another row's start, or stop, ends.
        base = (self.offsets[:-1] + np.arange(p))[:, None]
        owner = np.append(row, p)[member]
        return _Layout(
            row=row,
            by_start=by_start,
            by_stop=by_stop,
            rank=np.searchsorted(starts[by_start], self.cells, side="right"),
            passed=np.searchsorted(stops[by_stop], self.cells, side="right"),
            member=member,
            owner=owner,
            pair=owner[:, :, None] * (p + 1) + owner[:, None, :],
            first=base + np.clip(starts - starts[:, None], 0, length[:, None]),
            last=base + np.clip(stops - starts[:, None], 0, length[:, None]),
        )
