"""Differences of neighbouring cells.

Keeps M4 of PROOFS-cost.md: `column_sums` are those of the matrix, as the conformance kit checks.
"""

from dataclasses import dataclass

import numpy as np

from leastnoise._trusted.check import whole
from leastnoise._trusted.check.arrays import Array, IntArray
from leastnoise._trusted.linop._functions import (
    apply,
    apply_transpose,
    check_column_sum_bound,
    column_sums,
    entry_bounds,
)


@dataclass(frozen=True, slots=True)
class Differences:
    """Row i is the count of cell i + 1 minus that of cell i.

    >>> Differences(3).rows
    2
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole("size", self.size, 2))

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.size - 1


@apply.register
def _(operator: Differences, x: Array) -> Array:
    return x[1:] - x[:-1]


@apply_transpose.register
def _(operator: Differences, y: Array) -> Array:
    edge = np.zeros_like(y[:1])
    return np.concatenate([edge, y]) - np.concatenate([y, edge])


@column_sums.register
def _(operator: Differences, weights: IntArray, power: int) -> IntArray:
    check_column_sum_bound(2 * int(weights.max(initial=0)))
    return np.append(0, weights) + np.append(weights, 0)


@entry_bounds.register
def _(operator: Differences) -> tuple[int, int]:
    return -1, 1
