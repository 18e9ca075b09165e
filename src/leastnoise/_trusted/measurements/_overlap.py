"""Bound the change of answers by a unit whose rows lie in several cells.

Suppose that a unit has rows in two cells of the attributes that a matrix measures. Each cell's rows
change the answers in the direction of the cell's column. How far the two changes add up depends on
the inner product of the two columns. The labels (S5 ...) refer to PROOFS-spread.md.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Contrasts, Identity, Total, column_sums, dense
from leastnoise._trusted.measurements._measurements import Factor

MOST_CELLS = 2**11  # cells of the attributes together; all pairs of them are examined
_MOST_ENTRIES = 2**23  # of the matrix of a factor
_EXACT_FLOAT = 2**53  # sums of whole numbers below it are exact in floating point
_EXACT_INT = 2**62  # and below this in int64


def largest_squared_change(
    factors: Sequence[Factor],
    cell_counts: Mapping[str, int],
    total_length: Fraction,
    *,
    mixed_signs: bool,
) -> Fraction | None:
    """Bound |sum_j v_j A_j|^2 over vectors v_j of cells (S5); None if too large.

    The column A_j of each cell is multiplied by a vector v_j of length at most 1.

    Args:
        factors: the factors of a block; the block sums over the attributes of no factor.
        cell_counts: the number of cells of each attribute, in the order of the domain.
        total_length: an upper bound on the sum of the lengths of the vectors of all cells.
        mixed_signs: whether the vectors of two cells may have a negative inner product.

    Returns:
        An exact fraction; None if the matrices are too large to be examined.

    >>> month = Factor(("month",), Identity(12))
    >>> largest_squared_change([month], {"month": 12}, Fraction(5), mixed_signs=True)
    Fraction(5, 1)
    """
    if math.prod(cell_counts.values()) > MOST_CELLS:
        return None
    if total_length >= math.prod(cell_counts.values()):
        total_length = Fraction(math.prod(cell_counts.values()))
    return _squared_change_bound(
        tuple(factors), tuple(cell_counts.items()), total_length, mixed_signs=mixed_signs
    )


@lru_cache(maxsize=512)
def _squared_change_bound(
    factors: tuple[Factor, ...],
    cell_counts: tuple[tuple[str, int], ...],
    total_length: Fraction,
    *,
    mixed_signs: bool,
) -> Fraction | None:
    """Bound the squared change of answers by a unit (S6); None if too large.

    The result is None if the matrices are too large to be examined.
    """
    products = _inner_products(factors, dict(cell_counts))
    if products is None:
        return None
    numerators, denominator = products
    if mixed_signs:
        overlaps = np.abs(numerators)
    else:
        overlaps = np.maximum(numerators, 0)
    if int(overlaps.max()) * len(overlaps) >= _EXACT_INT:
        return None
    # (S6): The sum of x_t (Hx)_t is x'Hx, and (Hx)_t is at most the sum of its row's largest
    # entries.
    return _largest_sum(_largest_sums(overlaps, total_length), total_length) / denominator


def column_l1_norms(factors: Sequence[Factor], cell_counts: Mapping[str, int]) -> list[int]:
    """Return the L1 norm of each cell's column in the weighted query matrix.

    Args:
        factors: the factors of a block; the block sums over the attributes of no factor.
        cell_counts: the number of cells of each attribute, in the order of the domain.

    >>> column_l1_norms([Factor(("month",), Identity(2), np.array([3, 5]))], {"month": 2})
    [3, 5]
    """
    lengths = np.ones(tuple(cell_counts.values()), dtype=object)
    for factor in factors:
        sums = column_sums(factor.operator, factor.weights, 1).astype(object)
        lengths = lengths * sums.reshape(_cell_shape(factor, cell_counts))
    return [int(length) for length in lengths.reshape(-1)]


def largest_weighted_sum(values: Sequence[int], weight_sum: Fraction) -> Fraction:
    """Return the largest weighted sum of whole numbers (S6).

    Weights are from 0 to 1 and sum to ``weight_sum``.

    Args:
        values: whole numbers of at least 0.
        weight_sum: the sum of the weights.

    >>> largest_weighted_sum([1, 5, 3], Fraction(3, 2))
    Fraction(13, 2)
    """
    return _largest_sum([Fraction(value) for value in values], weight_sum)


def _largest_sum(values: Sequence[Fraction], weight_sum: Fraction) -> Fraction:
    """Return the largest sum of values multiplied by weights from 0 to 1 (S6)."""
    largest = sorted(values, reverse=True)
    full = min(math.floor(weight_sum), len(largest))
    total = sum(largest[:full], start=Fraction(0))
    if full < len(largest):
        total += (weight_sum - full) * largest[full]
    return total


def _largest_sums(rows: IntArray, weight_sum: Fraction) -> list[Fraction]:
    """Return each row's largest sum of entries multiplied by weights in [0, 1]."""
    full = math.floor(weight_sum)
    count = len(rows)
    if full >= count:
        return [Fraction(int(total)) for total in rows.sum(axis=1)]
    largest = -np.sort(-rows, axis=1)
    whole = largest[:, :full].sum(axis=1)
    next_one = largest[:, full]
    part = weight_sum - full
    return [
        Fraction(int(total)) + part * int(entry)
        for total, entry in zip(whole, next_one, strict=True)
    ]


def _inner_products(
    factors: Sequence[Factor], cell_counts: Mapping[str, int]
) -> tuple[IntArray, int] | None:
    """Return inner products of all columns, and their denominator, or None."""
    shape = tuple(cell_counts.values())
    cells = math.prod(cell_counts.values())
    products = np.ones((1,) * (2 * len(shape)), dtype=np.int64)
    largest = 1
    denominator = 1
    for factor in factors:
        of_factor = _factor_products(factor)
        if of_factor is None:
            return None
        numerators, divisor = of_factor
        largest *= max(int(np.abs(numerators).max()), 1)
        if largest >= _EXACT_INT:
            return None
        axes = _cell_shape(factor, cell_counts)
        products = products * numerators.reshape(axes + axes)
        denominator *= divisor
    every = np.broadcast_to(products, shape + shape)
    return np.ascontiguousarray(every).reshape(cells, cells), denominator


def _cell_shape(factor: Factor, cell_counts: Mapping[str, int]) -> tuple[int, ...]:
    """Return each attribute's number of cells; 1 if it is not in the factor."""
    return tuple(size if name in factor.attributes else 1 for name, size in cell_counts.items())


@lru_cache(maxsize=64)
def _factor_products(factor: Factor) -> tuple[IntArray, int] | None:
    """Return inner products of a factor's columns, their denominator, or None.

    The rows of the factor are divided by their noise scales. The second number is the common
    divisor of the inner products. The result is None if the numbers are too large.
    """
    operator = factor.operator
    size = factor.operator.size
    if isinstance(operator, Contrasts):  # an orthonormal basis with the total: E - 1/n
        return size * np.eye(size, dtype=np.int64) - 1, size
    if isinstance(operator, Identity):
        return np.diag(factor.weights**2), 1
    if isinstance(operator, Total):
        return np.full((size, size), int(factor.weights[0]) ** 2, dtype=np.int64), 1
    if operator.rows * size > _MOST_ENTRIES:
        return None
    largest = int(np.abs(dense(operator)).max()) * factor.heaviest
    if operator.rows * largest**2 >= _EXACT_INT:
        return None
    products = _gram_matrix(dense(operator) * factor.weights[:, None], largest)
    if products is None:
        return None
    return (products, 1)


def _gram_matrix(matrix: IntArray, largest_entry: int) -> IntArray | None:
    """Return the matrix A'A exactly; None if float64 could not represent it.

    The computation uses floating-point products in which every partial sum is exact.
    """
    rows = len(matrix)
    if rows * largest_entry**2 < _EXACT_FLOAT:
        return _exact_product(matrix, matrix)
    shift = (largest_entry.bit_length() + 1) // 2
    if rows << (2 * shift + 1) >= _EXACT_FLOAT:
        return None
    high = matrix >> shift  # |high| <= 2^shift, 0 <= low < 2^shift
    low = matrix - (high << shift)
    across = _exact_product(high, low)
    return (
        (_exact_product(high, high) << 2 * shift)
        + ((across + across.T) << shift)
        + _exact_product(low, low)
    )


def _exact_product(left: IntArray, right: IntArray) -> IntArray:
    """Return the exact product left^T right, through float64."""
    product: FloatArray = left.T.astype(np.float64) @ right.astype(np.float64)
    return product.astype(np.int64)
