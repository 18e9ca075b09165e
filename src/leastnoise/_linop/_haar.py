"""The Haar wavelet."""

from dataclasses import dataclass

import numpy as np

from leastnoise._check.arrays import Array, IntArray
from leastnoise._linop._functions import apply, apply_transpose, column_sums, entries, refuse_overflow, run_spread
from leastnoise._linop._operators import Sized, Tree


@dataclass(frozen=True, slots=True)
class Haar(Sized):
    """The Haar wavelet: the total, then for every level the sums of left halves minus those of right halves.

    The cells are padded to the next power of two with cells that are always empty; rows go from the total and the widest level down, and
    rows that see no cell are left out.

    >>> Haar(3).rows
    4
    """

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of the differences, widest first."""
        return Tree.full(self.size, 2).widths[:-1]

    @property
    def rows(self) -> int:
        """Number of queries."""
        return 1 + sum(-(-self.size // width) for width in self.widths)


@apply.register
def _(operator: Haar, x: Array) -> Array:
    sums, levels = x, []
    for width in reversed(operator.widths):
        left = sums[0::2]
        right = np.zeros_like(left)
        right[: len(sums[1::2])] = sums[1::2]
        levels.append((left - right)[: -(-operator.size // width)])
        sums = left + right
    return np.concatenate([sums, *levels[::-1]], axis=0)


@apply_transpose.register
def _(operator: Haar, y: Array) -> Array:
    sums, start = y[:1], 1
    for width in operator.widths:
        count = -(-operator.size // width)
        own = y[start : start + count]
        start += count
        finer = np.empty((2 * count, *y.shape[1:]), dtype=y.dtype)
        finer[0::2], finer[1::2] = sums[:count] + own, sums[:count] - own
        sums = finer[: -(-operator.size // (width // 2))]
    return sums


@column_sums.register
def _(operator: Haar, weights: IntArray, power: int) -> IntArray:
    refuse_overflow(int(weights.max(initial=0)) * (1 + len(operator.widths)))
    levels = np.split(weights, np.cumsum([1, *(-(-operator.size // width) for width in operator.widths)])[:-1])
    total = np.repeat(levels[0], operator.size)
    for own, width in zip(levels[1:], operator.widths, strict=True):
        total = total + run_spread(own, width, operator.size)
    return np.asarray(total, dtype=np.int64)


@entries.register
def _(operator: Haar) -> tuple[int, int]:
    return (0 if operator.size == 1 else -1), 1
