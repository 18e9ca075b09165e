"""What two rows share in the queries of one factor: exact integers, for every pair of cells. Trusted: ``_apart`` bounds losses with it.

The labels (R1 ...) are those of PROOFS-replace.md beside this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._check.arrays import Array, IntArray
from leastnoise._linop import (
    AllRanges,
    Coarse,
    Contrasts,
    Dense,
    Haar,
    Identity,
    Operator,
    Ordered,
    Tree,
    column_sums,
    dense,
    largest_entry,
    non_negative,
)
from leastnoise._measurements._measurements import Factor

MOST_CELLS = 2048  # of an axis whose pairs of cells are listed; beyond, what two rows share is bounded
_MOST_ENTRIES = 2**23
_MOST_PRODUCTS = 2**30
_MOST_NORM = 2**60
_EXACT_FLOAT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """Shares of pairs of cells in one factor.

    Args:
        unit: by which the shares are multiplied.
        shares: whole numbers of shape (pairs, 4): the norm of the first column, of the second, twice the sum over the rows in which the
            columns have the same sign of the smaller |entry| and twice that over rows of different signs (power 1), or twice the inner
            product and 0 (power 2); rows count with their weights.
    """

    unit: int
    shares: Array


def shared(factor: Factor, power: int, steps: Sequence[int] | None) -> Shared | None:
    """The shares of all pairs of cells of a factor, or of the pairs (0, t) of a ladder (R3).

    Args:
        factor: the queries along some attributes.
        power: 1 or 2.
        steps: None for all ordered pairs of cells, in row-major order; else the cells t of ``ladder``.

    Returns:
        None where pairs are too many to be listed.

    >>> shared(Factor(("a",), Prefix(2)), 2, None).shares.tolist()
    [[2, 2, 4, 0], [2, 1, 2, 0], [1, 2, 2, 0], [1, 1, 2, 0]]
    """
    operator, weights = factor.operator, factor.weights
    unit = operator.size if isinstance(operator, Contrasts) else 1
    if steps is not None:
        return Shared(unit, np.array([_of_ladder(operator, weights**power, power, t) for t in steps], dtype=object))
    if operator.size > MOST_CELLS:
        return None
    found = _common(factor, power)
    if found is None:
        return None
    norms, same, other = found
    size = operator.size
    return Shared(unit, np.stack([np.repeat(norms, size), np.tile(norms, size), 2 * same.reshape(-1), 2 * other.reshape(-1)], axis=-1))


def _common(factor: Factor, power: int) -> tuple[Array, Array, Array] | None:
    """Norms, and over all pairs of cells the parts of the same and of different signs, or inner products and zeros."""
    operator, weights, size = factor.operator, factor.weights, factor.operator.size
    zeros = np.zeros((size, size), dtype=np.int64)
    if isinstance(operator, Contrasts):  # over the rows' norms, inner products are (n - 1) / n of a cell with itself, else -1 / n
        return np.full(size, size - 1, dtype=np.int64), size * np.eye(size, dtype=np.int64) - 1, zeros
    if isinstance(operator, Dense) and operator.rows == 1:
        return _of_row(operator.matrix[0].astype(object) * int(weights[0]), power) if size <= MOST_CELLS // 4 else None
    norms = column_sums(operator, weights**power, power)
    top = int(norms.max())
    if isinstance(operator, AllRanges) and factor.row_weights is None:
        places = np.arange(size, dtype=np.int64)
        return norms, (np.minimum.outer(places, places) + 1) * (size - np.maximum.outer(places, places)), zeros
    if top >= _MOST_NORM or operator.rows * size > _MOST_ENTRIES or (top >= _EXACT_FLOAT and operator.rows * size**2 > _MOST_PRODUCTS):
        return None
    matrix = dense(operator)
    if power == 2:
        scaled = matrix * weights[:, None]
        return norms, _product(scaled, scaled, top), zeros
    if largest_entry(operator) <= 1:
        signed, absolute = (_product(part, part * weights[:, None], top) for part in (matrix, np.abs(matrix)))
        return norms, (absolute + signed) // 2, (absolute - signed) // 2
    # A row with one entry has nothing in common with it but in its own cell.
    several = (matrix * weights[:, None])[np.count_nonzero(matrix, axis=1) > 1]
    if len(several) * size**2 > _MOST_PRODUCTS:
        return None
    same = _less_than_apart(several, norms)
    return norms, same, zeros if non_negative(operator) else _less_than_apart(several, norms, -1)


def _less_than_apart(rows: IntArray, norms: IntArray, sign: int = 1) -> IntArray:
    """Half of |a| + |b| - |a - b| for the columns of all pairs of cells, of |a| + |b| - |a + b| for sign -1: what has the same sign."""
    own = np.abs(rows).sum(axis=0)
    answer = np.empty((len(own), len(own)), dtype=np.int64)
    for place, column in enumerate(rows.T):
        answer[place] = (own[place] + own - np.abs(rows - sign * column[:, None]).sum(axis=0)) // 2
    answer[np.diag_indices(len(own))] = norms if sign == 1 else 0
    return answer


def _of_row(row: Array, power: int) -> tuple[Array, Array, Array]:
    """For one row, in Python's integers: values of sums have squares beyond int64."""
    if power == 2:
        return row * row, np.multiply.outer(row, row), np.multiply.outer(row, row) * 0
    least, agree = np.minimum.outer(abs(row), abs(row)), np.equal.outer(row > 0, row > 0)
    return abs(row), least * agree, least * ~agree


def _product(left: IntArray, right: IntArray, top: int) -> IntArray:
    """left^T right, exactly: partial sums are at most the largest norm, so in floating point if that is below 2^53."""
    if top < _EXACT_FLOAT:
        return np.asarray((left.T.astype(np.float64) @ right.astype(np.float64)).astype(np.int64))
    return np.asarray(left.T @ right)


def ladder(factors: Sequence[Factor]) -> tuple[int, ...] | None:
    """Cells t such that every pair of cells has the shares of one of the pairs (0, t), in all factors at once (R3).

    Args:
        factors: along the same attributes.

    Returns:
        None if the factors do not allow it.

    >>> ladder((Factor(("a",), Tree.full(5, 2)), Factor(("a",), Identity(5))))
    (0, 1, 2, 4)
    """
    nested = {factor.operator for factor in factors if isinstance(factor.operator, (Tree, Haar))}
    if len(nested) > 1 or not all(_is_nested(factor) for factor in factors):
        return None
    widths = [width for one in nested for width in (one.widths if isinstance(one, Tree) else [width // 2 for width in one.widths])]
    return tuple(sorted({0, *(width for width in (1, *widths) if width < factors[0].operator.size)}))


def _is_nested(factor: Factor) -> bool:
    if isinstance(factor.operator, (Tree, Haar)):
        return _levels(factor.operator, factor.weights) is not None
    return isinstance(factor.operator, (Identity, Contrasts)) and factor.row_weights is None


def _levels(operator: Tree | Haar, weights: IntArray) -> list[int] | None:
    """One weight a level of a tree or wavelet, None if they differ within a level."""
    sizes = list(operator.level_sizes) if isinstance(operator, Tree) else [1, *(-(-operator.size // width) for width in operator.widths)]
    parts = np.split(weights, np.cumsum(sizes)[:-1])
    return [int(part[0]) for part in parts] if all((part == part[0]).all() for part in parts) else None


def _of_ladder(operator: Operator, weights: IntArray, power: int, t: int) -> tuple[int, int, int, int]:
    """The shares of the cells 0 and t."""
    if isinstance(operator, Contrasts):
        return operator.size - 1, operator.size - 1, 2 * (operator.size * (t == 0) - 1), 0
    if not isinstance(operator, (Tree, Haar)):
        return 1, 1, 2 * (t == 0), 0
    levels = _levels(operator, weights) or []
    own = list(zip(levels if isinstance(operator, Tree) else levels[1:], operator.widths, strict=True))
    if isinstance(operator, Tree):
        same, other = sum(weight for weight, width in own if t < width), 0
    else:
        same = levels[0] + sum(weight for weight, width in own if t < width // 2)
        other = sum(weight for weight, width in own if width // 2 <= t < width)
    return sum(levels), sum(levels), 2 * (same - other if power == 2 else same), 0 if power == 2 else 2 * other


def unwrapped(factor: Factor) -> Factor:
    """The factor without its buckets and its order, which leave the set of its columns as it is (R3); of no attribute's cells.

    >>> unwrapped(Factor(("a",), Coarse(Identity(2), [0, 1], 5))).operator
    Identity(size=2)
    """
    operator = factor.operator
    while isinstance(operator, (Coarse, Ordered)):
        operator = operator.operator
    return Factor((), operator, factor.row_weights)


def bounds(factor: Factor, power: int) -> tuple[int, int, int]:
    """The unit, the largest norm of a column, and a number below 0 if the common part of two columns can be.

    >>> bounds(Factor(("a",), Haar(4)), 2)
    (1, 3, -1)
    """
    operator = factor.operator
    if isinstance(operator, Contrasts):
        return operator.size, operator.size - 1, -1
    if isinstance(operator, Dense) and operator.rows == 1:
        top = (operator.largest * int(factor.weights[0])) ** power
    else:
        top = int(column_sums(operator, factor.weights**power, power).max())
    return 1, top, 0 if power == 1 or non_negative(operator) else -1
