"""Products of queries over the joint cells of several attributes: their rows, and their variances under one covariance matrix."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from leastnoise._accuracy._memory import require_memory
from leastnoise._check.arrays import FloatArray
from leastnoise._families import interval_ends
from leastnoise._linop import Operator, dense

_NUMBERS = 2**24  # at a time


def joint_rows(operators: Sequence[Operator]) -> FloatArray:
    """The explicit Kronecker product of operators."""
    numbers = math.prod(operator.rows * operator.size for operator in operators)
    require_memory(16 * numbers, "A matrix of these queries", "Ask for fewer queries, or choose another strategy.")
    rows = np.ones((1, 1))
    for operator in operators:
        rows = np.kron(rows, dense(operator).astype(float))
    return rows


def joint_rows_in_parts(operators: Sequence[Operator]) -> Iterator[tuple[slice, FloatArray]]:
    """The same some rows at a time: which, and their entries."""
    matrices = [dense(operator).astype(float) for operator in operators]
    shape = [len(matrix) for matrix in matrices]
    step = max(1, _NUMBERS // math.prod(matrix.shape[1] for matrix in matrices))
    for start in range(0, math.prod(shape), step):
        part = slice(start, min(start + step, math.prod(shape)))
        rows = np.ones((part.stop - start, 1))
        for matrix, places in zip(matrices, np.unravel_index(np.arange(part.start, part.stop), shape) if shape else (), strict=True):
            rows = (rows[:, :, None] * matrix[places][:, None, :]).reshape(len(rows), -1)
        yield part, rows


def joint_variances(covariance: FloatArray, operators: Sequence[Operator]) -> FloatArray:
    """q C q for every row q of a product, shape (rows,).

    Attribute by attribute: what is left of the covariance after some of them is one matrix over the others' cells for each of the rows so
    far. Intervals are differences of its prefix sums.
    """
    left = covariance[None]
    for operator in operators:
        cells = left.shape[1] // operator.size
        left = _contracted(operator, left.reshape(-1, operator.size, cells, operator.size, cells)).reshape(-1, cells, cells)
    return left.reshape(-1)


def _contracted(operator: Operator, cube: FloatArray) -> FloatArray:
    """From shape (rows so far, n, m, n, m) to (rows so far, rows, m, m)."""
    before, n, m = cube.shape[:3]
    ends = interval_ends(operator)
    if ends is not None:
        sums = np.zeros((before, n + 1, m, n + 1, m))
        sums[:, 1:, :, 1:] = cube.cumsum(axis=1).cumsum(axis=3)
        low, high = ends[0], ends[1] + 1
        found = sums[:, high, :, high] - sums[:, low, :, high] - sums[:, high, :, low] + sums[:, low, :, low]
        return np.moveaxis(found, 0, 1)
    rows = dense(operator).astype(float)
    answer = np.empty((before, len(rows), m, m))
    step = max(1, _NUMBERS // (before * n * m * m))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        answer[:, start : start + step] = np.einsum("rkxby,rb->krxy", np.tensordot(part, cube, axes=(1, 1)), part)
    return answer
