"""Where the descent of p-Identity begins (layers of bumps, hierarchies, the total, random rows), and the windows that its rows live in."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._gram import Gram

Window = tuple[int, int, FloatArray]
# Largest entry of Theta: a cell's own coefficient then stays well above the grid of the rounding.
TALLEST = 512.0
# Above so many cells fewer starts and steps are affordable.
LARGE = 6000
# Bells as descents leave them: how wide and high next to their distance, and how far the first one lies from an end of the line that
# queries reach to, or where they thin out.
_WIDTH, _PEAK, _FALL, _HEIGHT = 1.15, 1.6, 2.1, 0.9
_REACHED, _THIN = 0.25, 1.1
Ends = tuple[float, float]
Shape = tuple[float, float, bool]
ENDS: tuple[Ends, ...] = tuple((before, after) for before in (_REACHED, _THIN) for after in (_REACHED, _THIN))


def bumps(size: int, count: int, height: float, margin: float) -> Iterator[Window]:
    """``count`` parabolas, each overlapping half of its neighbours, on windows ``margin`` times as wide; count 0 is one flat row."""
    if count == 0:
        yield 0, size, np.full(size, height)
        return
    spacing = size / (count + 1)
    for centre in spacing * np.arange(1, count + 1):
        start, stop = max(0, math.floor(centre - margin * spacing)), min(size, math.ceil(centre + margin * spacing))
        yield start, stop, height * np.maximum(0, 1 - ((np.arange(start, stop) + 0.5 - centre) / spacing) ** 2)


def bells(size: int, spacing: float, ends: Ends, height: float = _HEIGHT) -> Iterator[Window]:
    """A layer of bells ``spacing`` cells apart, or nearly so, of the shape that descents end in."""
    before, after = ends
    gaps = max(0, round(size / spacing - before - after))
    spacing = size / (gaps + before + after)
    reach = _WIDTH * spacing
    for centre in spacing * (before + np.arange(gaps + 1)):
        start, stop = max(0, math.floor(centre - reach)), min(size, math.ceil(centre + reach))
        away = np.minimum(1, np.abs(np.arange(start, stop) + 0.5 - centre) / reach)
        yield start, stop, height * (1 - away**_PEAK) ** _FALL


def layers_of_bells(size: int, shape: Shape, ends: Ends) -> list[Window]:
    """Layers of bells, each so many times coarser than the one below."""
    finest, coarser, above = shape
    rows, spacing = list(bells(size, finest, ends)), finest * coarser
    while size / spacing >= 1.4:
        rows += bells(size, spacing, ends)
        spacing *= coarser
    return [*rows, *bells(size, size, ends, 0.6)] if above else rows


def bell_shapes(size: int) -> list[list[Shape]]:
    """For each of some distances of the finest bells: what may be above them, the likeliest first."""
    if size > LARGE:
        return [[(finest, 15.0, False)] for finest in (18.0, 24.0)]
    coarser = (15.0, 12.5, 10.0, 20.0, 8.0)
    finest = (13.0, 15.0, 18.0, 21.0, 25.0, 30.0, 36.0, 43.0)
    return [[(own, ratio, above) for ratio in coarser for above in (False, True)] for own in finest]


def _blocks(size: int, width: int, height: float) -> Iterator[Window]:
    """Flat rows on consecutive blocks of ``width`` cells, as in a hierarchy."""
    for start in range(0, size, width):
        yield start, min(size, start + width), np.full(min(size, start + width) - start, height)


def ordered_starts(size: int) -> Iterator[list[Window]]:
    """Layers of bumps at many scales, the total, and hierarchies of one or two layers of blocks."""
    large = size > LARGE
    for height in (0.3, 2.0):
        yield list(bumps(size, 0, height, 1))
    spacings = [size / (count + 1) for count in (1, 2, 3, 4, 5, 6)] if size <= 256 else []
    spacings += list((17.0, 34.0, 136.0) if large else 6 * math.sqrt(2) ** np.arange(2, 2 * math.log2(max(2, size / 24)), 1))
    for spacing in spacings:
        yield list(bumps(size, max(1, round(size / spacing - 1)), 0.7, 1.25))
    for finest in (17.0, 24.0) if large else (12.0, 17.0, 24.0, 34.0):
        for ratio in (8, 12) if large else (4, 8, 12):
            layers, spacing = [max(1, round(size / finest - 1))], finest * ratio
            while size / spacing >= 2.5:
                layers.append(round(size / spacing - 1))
                spacing *= ratio
                yield [row for count in layers for row in bumps(size, count, 0.7, 1.25)]
    width = max(2, round(math.sqrt(size) / 2))
    while not large and width < size:
        yield list(_blocks(size, width, 0.7))
        yield [*_blocks(size, width, 0.7), *bumps(size, 0, 0.5, 1)]
        width *= 2


def random_starts(size: int) -> Iterator[list[Window]]:
    """Rows without any order of the cells."""
    if size > 4096:
        return
    # On short attributes a row more or less changes what is found by parts in a thousand, and is soon tried.
    counts = sorted({max(2, min(64, size // cells)) for cells in ((16, 14, 12) if size <= 256 else (16,))})
    for p in counts:
        for seed in range(8 if size <= 64 else 6 if size <= 128 else 4 if size <= 256 else 2 if size <= 1024 else 1):
            yield [(0, size, row) for row in np.random.default_rng(seed).random((p, size))]


def total_start(gram: Gram) -> list[Window]:
    """The best of all strategies of cells and total with two weights: a closed form of one variable.

    With Theta one flat row of height c: ``f(c) = (1 + c)^2 (tr M - c^2 t / (1 + n c^2))``, t the sum of all entries of M.
    """
    heights = np.geomspace(1e-3, TALLEST, 400)
    total = float(gram.rows(np.ones((1, gram.size))).sum())
    error = (1 + heights) ** 2 * (gram.trace() - heights**2 * total / (1 + gram.size * heights**2))
    return list(bumps(gram.size, 0, float(heights[np.argmin(error)]), 1))


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
