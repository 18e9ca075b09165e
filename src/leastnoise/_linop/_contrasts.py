"""Contrasts: differences that do not see the total."""

from dataclasses import dataclass

import numpy as np

from leastnoise._check import whole
from leastnoise._check.arrays import Array, IntArray
from leastnoise._linop._functions import apply, apply_transpose, column_sums, entries, refuse_overflow


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Orthogonal contrasts (Helmert): row k = 1, ..., n - 1 is the sum of the first k cells minus k times the next one.

    A row has squared norm k (k + 1). Together with the total they span everything; the total they do not see.

    >>> Contrasts(3).squared_norms.tolist()
    [2, 6]
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole("size", self.size, 2, 2**20))

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.size - 1

    @property
    def squared_norms(self) -> IntArray:
        """k (k + 1) for every row, int64 of shape (rows,)."""
        k = np.arange(1, self.size, dtype=np.int64)
        return k * (k + 1)


@apply.register
def _(operator: Contrasts, x: Array) -> Array:
    k = np.arange(1, operator.size, dtype=np.int64).reshape(-1, *([1] * (x.ndim - 1)))
    return np.cumsum(x, axis=0, dtype=x.dtype)[:-1] - k * x[1:]


@apply_transpose.register
def _(operator: Contrasts, y: Array) -> Array:
    k = np.arange(1, operator.size, dtype=np.int64).reshape(-1, *([1] * (y.ndim - 1)))
    answer = np.zeros((operator.size, *y.shape[1:]), dtype=y.dtype)
    answer[:-1] = np.cumsum(y[::-1], axis=0, dtype=y.dtype)[::-1]
    answer[1:] -= k * y
    return answer


@column_sums.register
def _(operator: Contrasts, weights: IntArray, power: int) -> IntArray:
    refuse_overflow(int(weights.max(initial=0)) * operator.size**power * 2)
    k = np.arange(1, operator.size, dtype=np.int64)
    answer = np.zeros(operator.size, dtype=np.int64)
    answer[:-1] = np.cumsum(weights[::-1])[::-1]
    answer[1:] += k**power * weights
    return answer


@entries.register
def _(operator: Contrasts) -> tuple[int, int]:
    return 1 - operator.size, operator.size - 1
