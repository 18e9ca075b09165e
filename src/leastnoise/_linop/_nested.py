"""Queries within every block of a long attribute, the same in each, and queries on the sums of the blocks."""

from dataclasses import dataclass

import numpy as np

from leastnoise._check import refuse
from leastnoise._check.arrays import Array, IntArray
from leastnoise._linop._contrasts import Contrasts
from leastnoise._linop._functions import apply, apply_transpose, column_sums, entries, refuse_others, refuse_overflow
from leastnoise._linop._operators import Operator
from leastnoise._linop._rearranged import Coarse, Ordered


@dataclass(frozen=True, slots=True)
class Nested:
    """Consecutive blocks of cells. Rows: the queries within each block, block by block, and then those on the sums of the blocks.

    Args:
        inner: the queries within every block but the last, over its cells.
        last: those within the last block, over as many cells or fewer.
        above: those on the sums, over as many cells as there are blocks, at least two.

    None of them are contrasts, coarse, ordered or nested themselves.

    >>> dense(Nested(Prefix(2), Identity(1), Total(2))).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    """

    inner: Operator
    last: Operator
    above: Operator

    def __post_init__(self) -> None:
        for name, part in (("inner", self.inner), ("last", self.last), ("above", self.above)):
            without = Coarse, Contrasts, Nested, Ordered
            refuse_others(name, part, without, "another operator than contrasts, coarse, ordered and nested ones")
        if self.above.size < 2 or self.last.size > self.inner.size:
            raise refuse(
                "blocks",
                f"{self.above.size}, of {self.inner.size} cells and in the end {self.last.size}",
                "two or more, the last of them not wider than the others",
            )

    @property
    def before(self) -> int:
        """Number of cells before the last block."""
        return (self.above.size - 1) * self.inner.size

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.before + self.last.size

    @property
    def rows(self) -> int:
        """Number of queries."""
        return (self.above.size - 1) * self.inner.rows + self.last.rows + self.above.rows

    def split(self, y: Array) -> tuple[Array, Array, Array]:
        """What belongs to the rows of all blocks but the last, shape (inner.rows, blocks - 1, ...), of the last, and of the sums."""
        first, end = (self.above.size - 1) * self.inner.rows, self.rows - self.above.rows
        return _blocks(y[:first], self.inner.rows), y[first:end], y[end:]


def _blocks(x: Array, width: int) -> Array:
    """Runs of so many entries side by side: shape (width, runs, ...)."""
    return x.reshape(-1, width, *x.shape[1:]).swapaxes(0, 1)


def _row(x: Array) -> Array:
    """The runs one after the other again."""
    return x.swapaxes(0, 1).reshape(-1, *x.shape[2:])


@apply.register
def _(operator: Nested, x: Array) -> Array:
    blocks, last = _blocks(x[: operator.before], operator.inner.size), x[operator.before :]
    sums = np.concatenate([blocks.sum(axis=0), last.sum(axis=0, keepdims=True)], axis=0)
    return np.concatenate([_row(apply(operator.inner, blocks)), apply(operator.last, last), apply(operator.above, sums)], axis=0)


@apply_transpose.register
def _(operator: Nested, y: Array) -> Array:
    blocks, last, above = operator.split(y)
    sums = apply_transpose(operator.above, above)
    within = apply_transpose(operator.inner, blocks) + sums[None, :-1]
    return np.concatenate([_row(within), apply_transpose(operator.last, last) + sums[-1:]], axis=0)


@column_sums.register
def _(operator: Nested, weights: IntArray, power: int) -> IntArray:
    blocks, last, above = operator.split(weights)
    # A cell is in its block's queries, by its place there, and in those on its block's sum as any other cell of the block.
    within = [column_sums(operator.inner, one, power) for one in np.ascontiguousarray(blocks.T)]
    within.append(column_sums(operator.last, last, power))
    sums = column_sums(operator.above, above, power)
    refuse_overflow(max(int(own.max()) for own in within) + int(sums.max()))
    return np.concatenate([own + both for own, both in zip(within, sums, strict=True)])


@entries.register
def _(operator: Nested) -> tuple[int, int]:
    parts = [entries(part) for part in (operator.inner, operator.last, operator.above)]
    return min(low for low, _ in parts), max(largest for _, largest in parts)
