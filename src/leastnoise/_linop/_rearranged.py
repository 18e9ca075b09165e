"""Operators on cells that were put together, or in another order, before another operator is applied."""

from dataclasses import dataclass

import numpy as np

from leastnoise._check import refuse, whole
from leastnoise._check.arrays import Array, IntArray
from leastnoise._linop._contrasts import Contrasts
from leastnoise._linop._functions import apply, apply_transpose, column_sums, entries, refuse_others
from leastnoise._linop._operators import Operator, frozen


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """Queries on the sums of buckets: runs of consecutive cells that are asked about together.

    Args:
        operator: the queries, over the buckets; neither contrasts nor coarse nor ordered themselves.
        starts: the first cell of every bucket, from 0 on and ascending; as many as the operator has cells.
        size: number of cells.

    >>> Coarse(Prefix(2), [0, 3], 5).rows
    2
    """

    operator: Operator
    starts: IntArray
    size: int

    def __post_init__(self) -> None:
        refuse_others("operator", self.operator, (Coarse, Contrasts, Ordered), "another operator than contrasts, coarse and ordered ones")
        object.__setattr__(self, "size", whole("size", self.size, 1))
        object.__setattr__(self, "starts", frozen("starts", self.starts, 1))
        first, last = int(self.starts[0]), int(self.starts[-1])
        if len(self.starts) != self.operator.size or first != 0 or last >= self.size or not (np.diff(self.starts) > 0).all():
            raise refuse(
                "starts", f"{len(self.starts)} from {first} to {last}", f"{self.operator.size} ascending cells from 0 to {self.size - 1}"
            )

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.operator.rows

    @property
    def lengths(self) -> IntArray:
        """Number of cells of every bucket."""
        return np.diff(self.starts, append=self.size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Coarse)
            and self.size == other.size
            and self.operator == other.operator
            and np.array_equal(self.starts, other.starts)
        )

    def __hash__(self) -> int:
        return hash((self.size, self.operator, self.starts.tobytes()))


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Queries on cells that are taken in another order: what lies together in it may lie apart on the table.

    Args:
        operator: the queries, over the cells in their new order; neither contrasts nor ordered themselves.
        order: the place of every cell of the new order in the old one: each place from 0 to size - 1 once.

    >>> Ordered(Prefix(3), [2, 0, 1]).rows
    3
    """

    operator: Operator
    order: IntArray

    def __post_init__(self) -> None:
        refuse_others("operator", self.operator, (Ordered, Contrasts), "another operator than contrasts and ordered ones")
        object.__setattr__(self, "order", frozen("order", self.order, 1))
        seen = np.zeros(self.operator.size, dtype=np.bool_)
        if len(self.order) == len(seen) and int(self.order.min()) >= 0 and int(self.order.max()) < len(seen):
            seen[self.order] = True
        if not seen.all():
            raise refuse("order", f"{len(self.order)} places", f"every place from 0 to {self.operator.size - 1} once")

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.operator.size

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.operator.rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordered) and self.operator == other.operator and np.array_equal(self.order, other.order)

    def __hash__(self) -> int:
        return hash((self.operator, self.order.tobytes()))


@apply.register
def _(operator: Coarse, x: Array) -> Array:
    return apply(operator.operator, np.add.reduceat(x, operator.starts, axis=0))


@apply_transpose.register
def _(operator: Coarse, y: Array) -> Array:
    return np.repeat(apply_transpose(operator.operator, y), operator.lengths, axis=0)


@column_sums.register
def _(operator: Coarse, weights: IntArray, power: int) -> IntArray:
    # The cells of a bucket have equal columns: a bucket's sum changes by one with one row in any of them.
    return np.repeat(column_sums(operator.operator, weights, power), operator.lengths)


@apply.register
def _(operator: Ordered, x: Array) -> Array:
    return apply(operator.operator, x[operator.order])


@apply_transpose.register
def _(operator: Ordered, y: Array) -> Array:
    return _put_back(operator, apply_transpose(operator.operator, y))


@column_sums.register
def _(operator: Ordered, weights: IntArray, power: int) -> IntArray:
    # The columns are those of the inner operator in another order.
    return _put_back(operator, column_sums(operator.operator, weights, power))


def _put_back(operator: Ordered, x: Array) -> Array:
    answer = np.empty_like(x)
    answer[operator.order] = x
    return answer


@entries.register(Coarse)
@entries.register(Ordered)
def _(operator: Coarse | Ordered) -> tuple[int, int]:
    return entries(operator.operator)
