"""Apply, transpose and sum operators, dispatched by class.

Every function works along the first axis of its array, in exact int64 arithmetic if the input is
int64. The caller of ``apply`` excludes overflow by public bounds (``plan`` checks them); an
overflow would make answers wrong, but would not reduce privacy. In ``column_sums`` an overflow
would reduce privacy, so sums that might reach 2^63 are refused.
"""

from collections.abc import Callable
from functools import lru_cache, singledispatch
from itertools import pairwise

import numpy as np

from leastnoise._trusted.check import InternalError, refuse
from leastnoise._trusted.check.arrays import Array, IntArray
from leastnoise._trusted.linop._operators import (
    AllRanges,
    Dense,
    DiagonalAndRows,
    Identity,
    Operator,
    Prefix,
    Ranges,
    Total,
    Tree,
    sealed_copy,
)

_EXACT_FLOAT = 2**53  # whole numbers up to it are exact in doubles


def _unregistered_error(operator: object) -> InternalError:
    """Return the error for an operator class without one of the functions."""
    return InternalError(
        f"The operator class {type(operator).__name__} has not registered this function; see "
        "docs/adding-parts.md."
    )


@singledispatch
def apply(operator: Operator, x: Array) -> Array:
    """Return A x, along the first axis.

    Args:
        operator: A, of shape (rows, size).
        x: array of shape (size, ...); int64 stays int64.

    Returns:
        Array of shape (rows, ...).

    >>> apply(Prefix(3), np.array([1, 2, 3]))
    array([1, 3, 6])
    """
    raise _unregistered_error(operator)


@singledispatch
def apply_transpose(operator: Operator, y: Array) -> Array:
    """Return A^T y, along the first axis.

    Args:
        operator: A, of shape (rows, size).
        y: array of shape (rows, ...).

    Returns:
        Array of shape (size, ...).

    >>> apply_transpose(Prefix(3), np.array([1, 2, 3]))
    array([6, 5, 3])
    """
    raise _unregistered_error(operator)


@singledispatch
def column_sums(operator: Operator, weights: IntArray, power: int) -> IntArray:
    """Return sum_i |A_ij|^power * weights_i for each column j, exactly.

    Args:
        operator: A, of shape (rows, size).
        weights: non-negative int64 of shape (rows,).
        power: 1 for the Laplace sensitivity, 2 for the Gaussian one.

    Returns:
        int64 array of shape (size,).

    Raises:
        InputError: a sum might reach 2^63, according to the largest weight and entry.

    Guarantees: (M4 of PROOFS-cost.md) the sums never wrap around, because the privacy cost of a
        plan is computed from them.

    >>> column_sums(Dense([[1, -2], [3, 0]]), np.array([1, 10]), 2)
    array([91,  4])
    """
    raise _unregistered_error(operator)


@apply.register
def _(operator: Identity, x: Array) -> Array:
    """Return the cells."""
    return x


@apply.register
def _(operator: Total, x: Array) -> Array:
    """Return the sum of all cells."""
    return x.sum(axis=0, keepdims=True)


@apply_transpose.register
def _(operator: Total, y: Array) -> Array:
    """Return the value of the total in every cell."""
    return np.repeat(y, operator.size, axis=0)


@apply.register
def _(operator: Prefix, x: Array) -> Array:
    """Return the sums of the first 1, 2, ..., n cells."""
    return np.cumsum(x, axis=0, dtype=x.dtype)


@apply_transpose.register
def _(operator: Prefix, y: Array) -> Array:
    """Return the sums of the last n, n - 1, ..., 1 values of a vector."""
    return np.cumsum(y[::-1], axis=0, dtype=y.dtype)[::-1]


def _range_ends(operator: AllRanges | Ranges) -> tuple[IntArray, IntArray]:
    """Return arrays of the first and the last cell of every range."""
    if isinstance(operator, Ranges):
        return (operator.low, operator.high)
    return all_range_ends(operator.size)


@apply.register(AllRanges)
@apply.register(Ranges)
def _(operator: AllRanges | Ranges, x: Array) -> Array:
    """Return the sum of each range, as a difference of prefix sums."""
    low, high = _range_ends(operator)
    # The sums of the first 0, 1, ..., n cells.
    sums = np.zeros((x.shape[0] + 1, *x.shape[1:]), dtype=x.dtype)
    np.cumsum(x, axis=0, dtype=x.dtype, out=sums[1:])
    return sums[high + 1] - sums[low]


@apply_transpose.register(AllRanges)
@apply_transpose.register(Ranges)
def _(operator: AllRanges | Ranges, y: Array) -> Array:
    """Return, for every cell, the sum of the values of ranges that contain it."""
    low, high = _range_ends(operator)
    steps = np.zeros((operator.size + 1, *y.shape[1:]), dtype=y.dtype)
    np.add.at(steps, low, y)
    np.subtract.at(steps, high + 1, y)
    return np.cumsum(steps, axis=0, dtype=y.dtype)[:-1]


def all_range_ends(size: int) -> tuple[IntArray, IntArray]:
    """Return arrays of the first and the last cell of every interval of cells.

    The intervals are in the order of `AllRanges`.

    >>> all_range_ends(2)
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    low, high = np.triu_indices(size)
    return low.astype(np.int64), high.astype(np.int64)


def block_sums(x: Array, width: int) -> Array:
    """Return the sums of blocks of ``width`` entries along the first axis.

    The last block may be shorter.

    >>> block_sums(np.arange(5), 2).tolist()
    [1, 5, 4]
    """
    return np.add.reduceat(x, np.arange(0, len(x), width), axis=0)


def repeat_entries(x: Array, width: int, length: int) -> Array:
    """Repeat each entry ``width`` times along the first axis, up to ``length``.

    The result is cut to its first ``length`` entries.

    >>> repeat_entries(np.array([1, 2]), 2, 3).tolist()
    [1, 1, 2]
    """
    return np.repeat(x, min(width, length), axis=0)[:length]


@apply.register
def _(operator: Tree, x: Array) -> Array:
    """Return the sum of each node, level by level from the root."""
    levels = [block_sums(x, operator.widths[-1])]
    for wide, narrow in reversed(list(pairwise(operator.widths))):
        levels.append(block_sums(levels[-1], wide // narrow))
    return np.concatenate(levels[::-1], axis=0)


@apply_transpose.register
def _(operator: Tree, y: Array) -> Array:
    """Return, for every cell, the sum of the values of nodes that contain it."""
    parts = np.split(y, np.cumsum(operator.level_sizes)[:-1])
    carried = parts[0]
    for level, (wide, narrow) in zip(parts[1:], pairwise(operator.widths), strict=True):
        carried = level + repeat_entries(carried, wide // narrow, len(level))
    return repeat_entries(carried, operator.widths[-1], operator.size)


@column_sums.register(Total)
@column_sums.register(Prefix)
@column_sums.register(AllRanges)
@column_sums.register(Ranges)
def _(operator: Total | Prefix | AllRanges | Ranges, weights: IntArray, power: int) -> IntArray:
    """Return the weighted number of queries that contain each cell."""
    # All entries are 0 or 1, so |A_ij|^power is equal to A_ij.
    check_column_sum_bound(int(weights.max(initial=0)) * operator.rows)
    return np.asarray(apply_transpose(operator, weights), dtype=np.int64)


@column_sums.register
def _(operator: Identity, weights: IntArray, power: int) -> IntArray:
    """Return the weights unchanged, because each cell is in exactly one query."""
    return weights


@column_sums.register
def _(operator: Tree, weights: IntArray, power: int) -> IntArray:
    """Return, for every cell, the sum of the weights of nodes that contain it."""
    # A cell lies in one row of every level.
    check_column_sum_bound(int(weights.max(initial=0)) * len(operator.widths))
    return apply_transpose(operator, weights)


@apply.register
def _(operator: DiagonalAndRows, x: Array) -> Array:
    """Return the multiples of the cells, followed by the dense rows' answers."""
    scaled = operator.diagonal.reshape(-1, *([1] * (x.ndim - 1))) * x
    return np.concatenate([scaled, multiply_first_axis(operator.below, x)], axis=0)


def multiply_first_axis(matrix: IntArray, x: Array) -> Array:
    """Return the product of a matrix and an array, along its first axis."""
    return (matrix @ x.reshape(x.shape[0], -1)).reshape(matrix.shape[0], *x.shape[1:])


@apply.register
def _(operator: Dense, x: Array) -> Array:
    """Return the product of the matrix and the cells."""
    return multiply_first_axis(operator.matrix, x)


@column_sums.register
def _(operator: DiagonalAndRows, weights: IntArray, power: int) -> IntArray:
    """Return the weighted sums of |A_ij|^power over rows i, for each cell j."""
    cells = Dense(operator.diagonal[None, :])
    top = int(weights.max(initial=0))
    check_column_sum_bound(
        cells.largest**power * top
        + Dense(operator.below).largest ** power * top * len(operator.below)
    )
    diagonal = np.abs(operator.diagonal) ** power * weights[: operator.size]
    return np.asarray(
        diagonal + (np.abs(operator.below) ** power).T @ weights[operator.size :], dtype=np.int64
    )


@column_sums.register
def _(operator: Dense, weights: IntArray, power: int) -> IntArray:
    """Return the weighted sums of |A_ij|^power over rows i, for each cell j."""
    most = operator.largest**power * int(weights.max(initial=0)) * operator.rows
    check_column_sum_bound(most)
    powered: IntArray = np.abs(operator.matrix) ** power
    if most < _EXACT_FLOAT:
        return (powered.T.astype(np.float64) @ weights.astype(np.float64)).astype(np.int64)
    return powered.T @ weights


def check_column_sum_bound(largest_sum: int) -> None:
    """Raise if column sums might reach 2^63 and overflow int64.

    >>> check_column_sum_bound(2**62)
    """
    if largest_sum >= 2**63:
        raise refuse(
            "matrix",
            f"entries whose weighted column sums may reach {largest_sum}",
            "small enough for sums below 2^63",
        )


def apply_along_axis(
    function: Callable[[Operator, Array], Array], operator: Operator, x: Array, axis: int
) -> Array:
    """Call ``apply`` or ``apply_transpose`` along any axis of an array.

    Args:
        function: ``apply`` or ``apply_transpose``.
        operator: A, of shape (rows, size).
        x: the array; along ``axis`` it has the length that the function needs.
        axis: the number of the axis, counted from 0.

    Returns:
        An array of the same shape, except that ``axis`` has the length of the result.

    >>> apply_along_axis(apply, Total(2), np.array([[1, 2], [3, 4]]), 1)
    array([[3],
           [7]])
    """
    order = [axis, *range(axis), *range(axis + 1, x.ndim)]
    moved = function(operator, x.transpose(order))
    return moved.transpose(np.argsort(order))


def dense(operator: Operator) -> IntArray:
    """Return the explicit matrix, int64 of shape (rows, size).

    Use this function only for small operators and in tests.

    >>> dense(Tree.full(3, 2)).tolist()
    [[1, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    if isinstance(operator, Dense):
        return operator.matrix
    return np.asarray(apply(operator, np.eye(operator.size, dtype=np.int64)))


@lru_cache(maxsize=64)
def last_cells(operator: Operator) -> IntArray:
    """Return, for each row, the last cell with a nonzero coefficient.

    The result is a sealed array of shape (rows,), computed from the explicit matrix.

    >>> last_cells(Tree.full(3, 2)).tolist()
    [2, 1, 2, 0, 1, 2]
    """
    return sealed_copy(operator.size - 1 - (dense(operator) != 0)[:, ::-1].argmax(axis=1))


@singledispatch
def entry_bounds(operator: Operator) -> tuple[int, int]:
    """Return a lower bound on the nonzero entries, and the largest |entry|.

    The lower bound is at least 0 if and only if no entry is negative.

    >>> entry_bounds(Prefix(4)), entry_bounds(Dense([[1, -7]]))
    ((0, 1), (-7, 7))
    """
    raise _unregistered_error(operator)


@entry_bounds.register(Identity)
@entry_bounds.register(Total)
@entry_bounds.register(Prefix)
@entry_bounds.register(AllRanges)
@entry_bounds.register(Ranges)
@entry_bounds.register(Tree)
def _(operator: Operator) -> tuple[int, int]:
    """Return 0 and 1, because a query either contains a cell or does not."""
    return 0, 1


@entry_bounds.register
def _(operator: Dense) -> tuple[int, int]:
    """Return the smallest entry and the largest absolute entry."""
    return int(operator.matrix.min()), operator.largest


@entry_bounds.register
def _(operator: DiagonalAndRows) -> tuple[int, int]:
    """Return the smallest entry and the largest absolute entry."""
    parts = [entry_bounds(Dense(part)) for part in (operator.diagonal[None, :], operator.below)]
    return min(low for low, _ in parts), max(largest for _, largest in parts)


def non_negative(operator: Operator) -> bool:
    """Return whether all entries of an operator are at least 0.

    >>> non_negative(Prefix(4)), non_negative(Dense([[1, -1]]))
    (True, False)
    """
    return entry_bounds(operator)[0] >= 0


def largest_entry(operator: Operator) -> int:
    """Return the largest |entry| of an operator.

    No |(A x)_i| exceeds this entry times the sum of |x|.

    >>> largest_entry(Dense([[1, -7]]))
    7
    """
    return entry_bounds(operator)[1]


def is_partition(operator: Operator) -> bool:
    """Return whether each cell is in exactly one row, with coefficient 1 (J1).

    >>> (
    ...     is_partition(Identity(3)),
    ...     is_partition(Prefix(3)),
    ...     is_partition(Dense([[1, 0, 1], [0, 1, 0]])),
    ... )
    (True, False, True)
    """
    ones = np.ones(operator.rows, dtype=np.int64)
    return non_negative(operator) and bool((column_sums(operator, ones, 1) == 1).all())


def check_inner_operator(
    name: str, operator: Operator, excluded: tuple[type, ...], allowed: str
) -> None:
    """Raise unless an inner operator is exactly of an allowed class (M6).

    Subclasses of operators and the ``excluded`` classes are refused.
    """
    if type(operator) not in operator_classes() or type(operator) in excluded:
        raise refuse(name, type(operator).__name__, allowed)


def operator_classes() -> tuple[type[Operator], ...]:
    """Return all classes of operators for which an `apply` is registered.

    >>> Prefix in operator_classes(), object in operator_classes()
    (True, False)
    """
    return tuple(kind for kind in apply.registry if kind is not object)
