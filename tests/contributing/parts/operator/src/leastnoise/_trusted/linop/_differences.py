"""Differences of neighbouring cells.

Relies on M4 of PROOFS-cost.md: `column_sums` returns the column sums of the matrix. The conformance
kit checks it.
"""

from dataclasses import dataclass

import numpy as np

from leastnoise._trusted.check import whole
from leastnoise._trusted.check.arrays import Array, IntArray
from leastnoise._trusted.linop._operator_functions import (
    apply,
    apply_transpose,
    check_column_sum_bound,
    column_sums,
    entry_bounds,
)


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences of neighbouring cells: row i is cell i + 1 minus cell i.

    Args:
        size: the number of cells, at least 2.

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
    """Return the differences of neighbouring entries of ``x``."""
    return x[1:] - x[:-1]


@apply_transpose.register
def _(operator: Differences, y: Array) -> Array:
    """Return the product of the transposed matrix and ``y``."""
    edge = np.zeros_like(y[:1])
    return np.concatenate([edge, y]) - np.concatenate([y, edge])


@column_sums.register
def _(operator: Differences, weights: IntArray, power: int) -> IntArray:
    """Return the column sums; weights are not negative, and entries are 1 or -1."""
    check_column_sum_bound(2 * int(weights.max(initial=0)))
    return np.append(0, weights) + np.append(weights, 0)


@entry_bounds.register
def _(operator: Differences) -> tuple[int, int]:
    """Return the least and the largest entry."""
    return -1, 1
