"""Gram matrices of measured queries along one attribute, with their row weights, from their structure: rows are never all listed."""

from collections.abc import Iterator
from functools import singledispatch

import numpy as np

from leastnoise._accuracy._operators import apply_gram
from leastnoise._check.arrays import FloatArray
from leastnoise._linop import AllRanges, Operator, all_range_ends, apply, apply_transpose
from leastnoise._measurements import Factor

_MOST_NUMBERS = 2**22


def columns(weights: FloatArray, x: FloatArray) -> FloatArray:
    """Weights as a column that multiplies the first axis of an array."""
    return weights.reshape(-1, *([1] * (x.ndim - 1)))


def apply_weighted_gram(factor: Factor, x: FloatArray) -> FloatArray:
    """F^T diag(w^2) F x along the first axis."""
    if factor.even:
        return np.asarray(apply_gram(factor.operator, x))
    moved = apply(factor.operator, x)
    return np.asarray(apply_transpose(factor.operator, moved * columns(factor.scaling**2, moved)))


def weighted_gram(factor: Factor) -> FloatArray:
    """F^T diag(w^2) F as a matrix, never with more than 2^22 numbers of F at a time."""
    n = factor.operator.size
    step = n if factor.even else max(1, _MOST_NUMBERS // factor.operator.rows)
    eye = np.eye(n)
    return np.concatenate([apply_weighted_gram(factor, eye[:, start : start + step]) for start in range(0, n, step)], axis=1)


@singledispatch
def applied_in_parts(operator: Operator, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """A x some rows at a time, where they are many: which, and their answers."""
    yield slice(0, operator.rows), apply(operator, x)


@applied_in_parts.register
def _(operator: AllRanges, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
    low, high = all_range_ends(operator.size)
    step = max(1, _MOST_NUMBERS // x.shape[1])
    for start in range(0, operator.rows, step):
        part = slice(start, min(start + step, operator.rows))
        yield part, sums[high[part] + 1] - sums[low[part]]
