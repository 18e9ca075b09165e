"""Multiply by transposed operators, for estimates and error bars.

This file is not trusted: its functions are not used for column sums, and therefore not for privacy
costs.
"""

import numpy as np

from leastnoise._trusted.check.arrays import Array
from leastnoise._trusted.linop._operator_functions import apply_transpose, multiply_first_axis
from leastnoise._trusted.linop._operators import Dense, DiagonalAndRows, Identity
from leastnoise._trusted.linop._structured import (
    Coarse,
    Contrasts,
    Haar,
    Nested,
    Ordered,
    Toeplitz,
    inverse_permute,
    join_runs,
    scale_cells,
    toeplitz_product,
)

__all__ = ["apply_transpose"]  # together with the transposes of the other operators


@apply_transpose.register
def _(operator: Identity, y: Array) -> Array:
    """Return the values."""
    return y


@apply_transpose.register
def _(operator: DiagonalAndRows, y: Array) -> Array:
    """Add the scaled values and the transposed products of the dense rows."""
    scaled = operator.diagonal.reshape(-1, *([1] * (y.ndim - 1))) * y[: operator.size]
    return scaled + multiply_first_axis(operator.below.T, y[operator.size :])


@apply_transpose.register
def _(operator: Dense, y: Array) -> Array:
    """Return the product of the transposed matrix and the values."""
    return multiply_first_axis(operator.matrix.T, y)


@apply_transpose.register
def _(operator: Contrasts, y: Array) -> Array:
    """Return the transposed contrasts of the values."""
    k = np.arange(1, operator.size, dtype=np.int64).reshape(-1, *([1] * (y.ndim - 1)))
    answer = np.zeros((operator.size, *y.shape[1:]), dtype=y.dtype)
    answer[:-1] = np.cumsum(y[::-1], axis=0, dtype=y.dtype)[::-1]
    answer[1:] -= k * y
    return answer


@apply_transpose.register
def _(operator: Haar, y: Array) -> Array:
    """Return, for every cell, the signed sum of the values of its nodes."""
    sums = y[:1]
    start = 1
    for width in operator.widths:
        count = -(-operator.size // width)
        differences = y[start : start + count]
        start += count
        finer = np.empty((2 * count, *y.shape[1:]), dtype=y.dtype)
        finer[0::2], finer[1::2] = sums[:count] + differences, sums[:count] - differences
        sums = finer[: -(-operator.size // (width // 2))]
    return sums


@apply_transpose.register
def _(operator: Toeplitz, y: Array) -> Array:
    """Return the transposed Toeplitz product, scaled by cell."""
    return scale_cells(operator, toeplitz_product(operator.starts, operator.values, y[::-1])[::-1])


@apply_transpose.register
def _(operator: Coarse, y: Array) -> Array:
    """Return the value of each cell's bucket."""
    return np.repeat(apply_transpose(operator.operator, y), operator.lengths, axis=0)


@apply_transpose.register
def _(operator: Ordered, y: Array) -> Array:
    """Return the inner transposed product, in the order of the cells."""
    return inverse_permute(operator, apply_transpose(operator.operator, y))


@apply_transpose.register
def _(operator: Nested, y: Array) -> Array:
    """Add the transposed products of queries within blocks and on block sums."""
    blocks, last, above = operator.split(y)
    sums = apply_transpose(operator.above, above)
    within = apply_transpose(operator.inner, blocks) + sums[None, :-1]
    return np.concatenate(
        [join_runs(within), apply_transpose(operator.last, last) + sums[-1:]], axis=0
    )
