"""Queries within blocks, and on the sums of the blocks."""

import numpy as np
from scipy.linalg import block_diag

from leastnoise._linop import Dense, DiagonalAndRows, Identity, Nested, Prefix, Tree
from linop.case import Case


def _nested(inner: np.ndarray, last: np.ndarray, above: np.ndarray) -> np.ndarray:
    widths = [inner.shape[1]] * (above.shape[1] - 1) + [last.shape[1]]
    within = block_diag(*[inner] * (above.shape[1] - 1), last)
    return np.vstack([within, np.repeat(above, widths, axis=1)]).astype(np.int64)


_WITHIN = [[3, 0, 0], [0, -1, 0], [0, 0, 2], [1, 4, -5]]
_ABOVE = [[2, 0, 1, 0], [0, -3, 1, 7]]
CASES = [
    Case(
        "nested",
        Nested(DiagonalAndRows([3, -1, 2], [[1, 4, -5]]), DiagonalAndRows([5, 4], [[0, 1]]), Dense(_ABOVE)),
        lambda: _nested(np.array(_WITHIN), np.array([[5, 0], [0, 4], [0, 1]]), np.array(_ABOVE)),
    ),
    Case(
        "nested of equal blocks",
        Nested(Prefix(2), Prefix(2), Tree.full(2, 2)),
        lambda: _nested(np.tri(2), np.tri(2), np.array([[1, 1], [1, 0], [0, 1]])),
    ),
    Case("nested of cells", Nested(Identity(1), Identity(1), Dense([[1, 2]])), lambda: np.array([[1, 0], [0, 1], [1, 2]])),
]
