"""Define operators whose products need only a few running sums.

The operators are contrasts, the Haar wavelet, Toeplitz matrices, and queries on reordered cells or
on blocks.
"""

from dataclasses import dataclass

import numpy as np

from leastnoise._trusted.check import refuse, whole
from leastnoise._trusted.check.arrays import Array, IntArray
from leastnoise._trusted.linop._operator_functions import (
    apply,
    block_sums,
    check_column_sum_bound,
    check_inner_operator,
    column_sums,
    entry_bounds,
)
from leastnoise._trusted.linop._operators import Operator, Sized, Tree, ValueEquality, freeze_array


@dataclass(frozen=True, slots=True)
class Contrasts:
    """The Helmert contrasts of cells, whose rows are orthogonal.

    Row k = 1, ..., n - 1 is the sum of the first k cells minus k times the next cell.

    Row k has the squared norm k (k + 1). The contrasts and the total together determine every cell.
    Contrasts contain no information about the total.

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
        """The squared norm k (k + 1) of every row, int64 of shape (rows,)."""
        k = np.arange(1, self.size, dtype=np.int64)
        return k * (k + 1)


@apply.register
def _(operator: Contrasts, x: Array) -> Array:
    """Return the sum of the first k cells minus k times the next, for each k."""
    k = np.arange(1, operator.size, dtype=np.int64).reshape(-1, *([1] * (x.ndim - 1)))
    return np.cumsum(x, axis=0, dtype=x.dtype)[:-1] - k * x[1:]


@column_sums.register
def _(operator: Contrasts, weights: IntArray, power: int) -> IntArray:
    """Return the weighted sums of |A_ij|^power of the contrasts."""
    check_column_sum_bound(int(weights.max(initial=0)) * operator.size**power * 2)
    k = np.arange(1, operator.size, dtype=np.int64)
    answer = np.zeros(operator.size, dtype=np.int64)
    answer[:-1] = np.cumsum(weights[::-1])[::-1]
    answer[1:] += k**power * weights
    return answer


@entry_bounds.register
def _(operator: Contrasts) -> tuple[int, int]:
    """Return 1 - size and size - 1 as bounds on the entries."""
    return 1 - operator.size, operator.size - 1


@dataclass(frozen=True, slots=True)
class Haar(Sized):
    """The Haar wavelet transform of the cells.

    The first row is the total. The other rows are, level by level, the sums of left halves minus
    the sums of right halves.

    The cells are padded to the next power of two with cells that are always empty. The widest level
    comes first. Rows without a cell are omitted.

    >>> Haar(3).rows
    4
    """

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of the differences, widest first."""
        return Tree.full(self.size, 2).widths[:-1]

    @property
    def absolute(self) -> Tree:
        """The tree whose rows are the absolute values of the rows.

        Each row is the sum over a block of cells. The block of the first row contains all cells.
        The other blocks contain the cells of one difference each.
        """
        return Tree(self.size, tuple(2 * width for width in Tree.full(self.size, 2).widths))

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.absolute.rows


@apply.register
def _(operator: Haar, x: Array) -> Array:
    """Return the total and the differences of halves, level by level."""
    sums = x
    levels = []
    for _ in operator.widths:
        both = block_sums(sums, 2)
        levels.append(2 * sums[::2] - both)
        sums = both
    return np.concatenate([sums, *levels[::-1]], axis=0)


@column_sums.register
def _(operator: Haar, weights: IntArray, power: int) -> IntArray:
    """Return the column sums of |entry|^power of the wavelet."""
    return column_sums(operator.absolute, weights, power)


@entry_bounds.register
def _(operator: Haar) -> tuple[int, int]:
    """Return -1 and 1 as bounds of the entries; 0 and 1 for a single cell."""
    return (0 if operator.size == 1 else -1), 1


@dataclass(frozen=True, slots=True, eq=False)
class Toeplitz(ValueEquality):
    """A scaled lower triangular Toeplitz matrix.

    Row i has an entry for each cell j <= i: the coefficient of the distance i - j times the scale
    of the cell j.

    The coefficients are a step function of the distance, so that a product with the matrix takes
    only a few running sums and is exact.

    Args:
        starts: the distances at which a new coefficient begins, ascending: the first is 0, the last
            is below the number of cells.
        values: the coefficients, one for each start; the first coefficient is not 0.
        scales: the scale of each cell, above 0; shape (size,).

    >>> dense(Toeplitz([0, 1], [2, 1], [1, 1, 3])).tolist()
    [[2, 0, 0], [1, 2, 0], [1, 1, 6]]
    """

    starts: IntArray
    values: IntArray
    scales: IntArray

    def __post_init__(self) -> None:
        for name, array in (
            ("starts", self.starts),
            ("values", self.values),
            ("scales", self.scales),
        ):
            object.__setattr__(self, name, freeze_array(name, array, 1))
        starts = self.starts
        if (
            len(starts) != len(self.values)
            or starts[0] != 0
            or starts[-1] >= self.size
            or not (np.diff(starts) > 0).all()
        ):
            raise refuse(
                "starts",
                f"{len(starts)} from {starts[0]} to {starts[-1]}",
                f"{len(self.values)} ascending numbers, the first of them 0",
            )
        if self.values[0] == 0 or not (self.scales > 0).all():
            raise refuse(
                "values and scales",
                "a first value or a scale that is not allowed",
                "a first value other than 0, scales above 0",
            )

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.scales)

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.size


def toeplitz_product(starts: IntArray, values: IntArray, x: Array) -> Array:
    """Multiply an array by the Toeplitz matrix without its scales.

    Entry i is the sum over j <= i of x_j times the coefficient of i - j.

    For every start, the running sums are shifted by the start, multiplied by the change of the
    coefficient there, and added. Sums and products in int64 are modulo 2^64, so a final value below
    2^63 is exact even if intermediate sums are not.
    """
    sums = np.cumsum(x, axis=0, dtype=x.dtype)
    answer = values[0] * sums
    for start, step in zip(starts[1:], np.diff(values), strict=True):
        answer[start:] += step * sums[: len(x) - start]
    return answer


def scale_cells(operator: Toeplitz, x: Array, power: int = 1) -> Array:
    """Multiply x by a power of the cells' scales, along the first axis."""
    return (operator.scales**power).reshape(-1, *([1] * (x.ndim - 1))) * x


@apply.register
def _(operator: Toeplitz, x: Array) -> Array:
    """Return the Toeplitz product of the scaled cells."""
    return toeplitz_product(operator.starts, operator.values, scale_cells(operator, x))


@column_sums.register
def _(operator: Toeplitz, weights: IntArray, power: int) -> IntArray:
    """Return the weighted sums of |A_ij|^power, including the scales of cells."""
    lengths = np.diff(operator.starts, append=operator.size)
    tallest = sum(
        abs(value) ** power * length
        for value, length in zip(operator.values.tolist(), lengths.tolist(), strict=True)
    )
    check_column_sum_bound(
        tallest * int(weights.max(initial=0)) * int(operator.scales.max()) ** power
    )
    return scale_cells(
        operator,
        toeplitz_product(operator.starts, np.abs(operator.values) ** power, weights[::-1])[::-1],
        power,
    )


@entry_bounds.register
def _(operator: Toeplitz) -> tuple[int, int]:
    """Return bounds on the smallest entry and on the absolute entries."""
    most = int(operator.scales.max())
    return min(0, int(operator.values.min()) * most), int(np.abs(operator.values).max()) * most


@dataclass(frozen=True, slots=True, eq=False)
class Coarse(ValueEquality):
    """Queries on the sums of buckets.

    Buckets are runs of consecutive cells.

    Args:
        operator: the queries over the buckets; not of class `Contrasts`, `Coarse` or `Ordered`.
        starts: the first cell of every bucket, ascending from 0; one for each cell of the operator.
        size: number of cells.

    >>> Coarse(Prefix(2), [0, 3], 5).rows
    2
    """

    operator: Operator
    starts: IntArray
    size: int

    def __post_init__(self) -> None:
        check_inner_operator(
            "operator",
            self.operator,
            (Coarse, Contrasts, Ordered),
            "another operator than contrasts, coarse and ordered ones",
        )
        object.__setattr__(self, "size", whole("size", self.size, 1))
        object.__setattr__(self, "starts", freeze_array("starts", self.starts, 1))
        first = int(self.starts[0])
        last = int(self.starts[-1])
        if (
            len(self.starts) != self.operator.size
            or first != 0
            or last >= self.size
            or not (np.diff(self.starts) > 0).all()
        ):
            raise refuse(
                "starts",
                f"{len(self.starts)} from {first} to {last}",
                f"{self.operator.size} ascending cells from 0 to {self.size - 1}",
            )

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.operator.rows

    @property
    def lengths(self) -> IntArray:
        """Number of cells of every bucket."""
        return np.diff(self.starts, append=self.size)


@dataclass(frozen=True, slots=True, eq=False)
class Ordered(ValueEquality):
    """Queries on reordered cells.

    Cells that are far apart in the table may be neighbours in the order.

    Args:
        operator: the queries over the cells in their new order; not of class `Contrasts` or
            `Ordered`.
        order: for every position in the new order, the old position of its cell: a permutation of 0
            to size - 1.

    >>> Ordered(Prefix(3), [2, 0, 1]).rows
    3
    """

    operator: Operator
    order: IntArray

    def __post_init__(self) -> None:
        check_inner_operator(
            "operator",
            self.operator,
            (Ordered, Contrasts),
            "another operator than contrasts and ordered ones",
        )
        object.__setattr__(self, "order", freeze_array("order", self.order, 1))
        is_listed = np.zeros(self.operator.size, dtype=np.bool_)
        if (
            len(self.order) == len(is_listed)
            and int(self.order.min()) >= 0
            and int(self.order.max()) < len(is_listed)
        ):
            is_listed[self.order] = True
        if not is_listed.all():
            raise refuse(
                "order",
                f"{len(self.order)} places",
                f"every place from 0 to {self.operator.size - 1} once",
            )

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.operator.size

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.operator.rows


@apply.register
def _(operator: Coarse, x: Array) -> Array:
    """Return the inner operator's answers to queries on sums of buckets."""
    return apply(operator.operator, np.add.reduceat(x, operator.starts, axis=0))


@column_sums.register
def _(operator: Coarse, weights: IntArray, power: int) -> IntArray:
    """Return the column sum of each cell's bucket."""
    # The cells of a bucket have equal columns: a row in any of them changes the bucket's sum by
    # one.
    return np.repeat(column_sums(operator.operator, weights, power), operator.lengths)


@apply.register
def _(operator: Ordered, x: Array) -> Array:
    """Return the inner operator's answers to queries on reordered cells."""
    return apply(operator.operator, x[operator.order])


@column_sums.register
def _(operator: Ordered, weights: IntArray, power: int) -> IntArray:
    """Return the inner operator's column sums, in the order of the cells."""
    # The columns are the inner operator's columns in another order.
    return inverse_permute(operator, column_sums(operator.operator, weights, power))


def inverse_permute(operator: Ordered, x: Array) -> Array:
    """Return the values of reordered cells in their original order."""
    answer = np.empty_like(x)
    answer[operator.order] = x
    return answer


@entry_bounds.register(Coarse)
@entry_bounds.register(Ordered)
def _(operator: Coarse | Ordered) -> tuple[int, int]:
    """Return the bounds of the inner operator."""
    return entry_bounds(operator.operator)


@dataclass(frozen=True, slots=True)
class Nested:
    """Queries within consecutive blocks of cells, and on the block sums.

    The rows are the queries within each block, block by block, and then the queries on the block
    sums.

    Args:
        inner: the queries over the cells of a block, for every block but the last.
        last: the queries over the cells of the last block, which may have fewer cells.
        above: the queries on the block sums; its cells are the blocks, at least two.

    None of the three is a `Contrasts`, `Coarse`, `Ordered` or `Nested` operator.

    >>> dense(Nested(Prefix(2), Identity(1), Total(2))).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    """

    inner: Operator
    last: Operator
    above: Operator

    def __post_init__(self) -> None:
        for name, operator in (("inner", self.inner), ("last", self.last), ("above", self.above)):
            without = Coarse, Contrasts, Nested, Ordered
            check_inner_operator(
                name,
                operator,
                without,
                "another operator than contrasts, coarse, ordered and nested ones",
            )
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
        """Split row values into full blocks, the last block and block sums.

        The values of the full blocks have shape (inner.rows, blocks - 1, ...).
        """
        first = (self.above.size - 1) * self.inner.rows
        end = self.rows - self.above.rows
        return _split_into_runs(y[:first], self.inner.rows), y[first:end], y[end:]


def _split_into_runs(x: Array, width: int) -> Array:
    """Reshape the first axis to consecutive blocks: (width, blocks, ...)."""
    return x.reshape(-1, width, *x.shape[1:]).swapaxes(0, 1)


def join_runs(x: Array) -> Array:
    """Undo `_split_into_runs`: join consecutive blocks along the first axis."""
    return x.swapaxes(0, 1).reshape(-1, *x.shape[2:])


@apply.register
def _(operator: Nested, x: Array) -> Array:
    """Return the answers within blocks, then the answers on sums of blocks."""
    blocks = _split_into_runs(x[: operator.before], operator.inner.size)
    last = x[operator.before :]
    sums = np.concatenate([blocks.sum(axis=0), last.sum(axis=0, keepdims=True)], axis=0)
    return np.concatenate(
        [
            join_runs(apply(operator.inner, blocks)),
            apply(operator.last, last),
            apply(operator.above, sums),
        ],
        axis=0,
    )


@column_sums.register
def _(operator: Nested, weights: IntArray, power: int) -> IntArray:
    """Return each cell's column sum, over queries in its block and on block sums."""
    blocks, last, above = operator.split(weights)
    # A cell is in two kinds of queries: in the queries of its block, by its position in the block;
    # and in the queries on the block sums, like every other cell of the block.
    within = [column_sums(operator.inner, row, power) for row in np.ascontiguousarray(blocks.T)]
    within.append(column_sums(operator.last, last, power))
    sums = column_sums(operator.above, above, power)
    check_column_sum_bound(max(int(sums_within.max()) for sums_within in within) + int(sums.max()))
    return np.concatenate(
        [sums_within + both for sums_within, both in zip(within, sums, strict=True)]
    )


@entry_bounds.register
def _(operator: Nested) -> tuple[int, int]:
    """Return the smallest and the largest absolute entry of the three operators."""
    parts = [entry_bounds(part) for part in (operator.inner, operator.last, operator.above)]
    return min(low for low, _ in parts), max(largest for _, largest in parts)
