"""Weighted sums of all cells up to one, with weights that depend on how far back a cell lies: lower triangular Toeplitz matrices."""

from dataclasses import dataclass

import numpy as np

from leastnoise._check import refuse
from leastnoise._check.arrays import Array, IntArray
from leastnoise._linop._functions import apply, apply_transpose, column_sums, entries, refuse_overflow
from leastnoise._linop._operators import frozen


@dataclass(frozen=True, slots=True, eq=False)
class Toeplitz:
    """Row i is the sum over the cells j <= i of a coefficient of the distance i - j, times a scale of the cell j.

    The coefficients are a step function of the distance, so that a product takes a few running sums, exactly.

    Args:
        starts: the distances from which on a coefficient holds, from 0 on and ascending, below the number of cells.
        values: the coefficients, one a start; the first is not 0.
        scales: of the cells, shape (size,), above 0.

    >>> dense(Toeplitz([0, 1], [2, 1], [1, 1, 3])).tolist()
    [[2, 0, 0], [1, 2, 0], [1, 1, 6]]
    """

    starts: IntArray
    values: IntArray
    scales: IntArray

    def __post_init__(self) -> None:
        for name, given in (("starts", self.starts), ("values", self.values), ("scales", self.scales)):
            object.__setattr__(self, name, frozen(name, given, 1))
        starts = self.starts
        if len(starts) != len(self.values) or starts[0] != 0 or starts[-1] >= self.size or not (np.diff(starts) > 0).all():
            raise refuse("starts", f"{len(starts)} from {starts[0]} to {starts[-1]}", f"{len(self.values)} ascending ones from 0 on")
        if self.values[0] == 0 or not (self.scales > 0).all():
            raise refuse("values and scales", "a first value or a scale that is not allowed", "a first value other than 0, scales above 0")

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.scales)

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Toeplitz) and hash(self) == hash(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[bytes, ...]:
        return self.starts.tobytes(), self.values.tobytes(), self.scales.tobytes()


def _running(starts: IntArray, values: IntArray, x: Array) -> Array:
    """Sums of the entries up to each, with the coefficients of their distances: a running sum times the step at every start.

    In int64 what is left after all steps is exact wherever it is below 2^63, since sums and products there are those modulo 2^64.
    """
    sums = np.cumsum(x, axis=0, dtype=x.dtype)
    answer = values[0] * sums
    for start, step in zip(starts[1:], np.diff(values), strict=True):
        answer[start:] += step * sums[: len(x) - start]
    return answer


def _scaled(operator: Toeplitz, x: Array, power: int = 1) -> Array:
    return (operator.scales**power).reshape(-1, *([1] * (x.ndim - 1))) * x


@apply.register
def _(operator: Toeplitz, x: Array) -> Array:
    return _running(operator.starts, operator.values, _scaled(operator, x))


@apply_transpose.register
def _(operator: Toeplitz, y: Array) -> Array:
    return _scaled(operator, _running(operator.starts, operator.values, y[::-1])[::-1])


@column_sums.register
def _(operator: Toeplitz, weights: IntArray, power: int) -> IntArray:
    lengths = np.diff(operator.starts, append=operator.size)
    tallest = sum(abs(value) ** power * length for value, length in zip(operator.values.tolist(), lengths.tolist(), strict=True))
    refuse_overflow(tallest * int(weights.max(initial=0)) * int(operator.scales.max()) ** power)
    return _scaled(operator, _running(operator.starts, np.abs(operator.values) ** power, weights[::-1])[::-1], power)


@entries.register
def _(operator: Toeplitz) -> tuple[int, int]:
    most = int(operator.scales.max())
    return min(0, int(operator.values.min()) * most), int(np.abs(operator.values).max()) * most
