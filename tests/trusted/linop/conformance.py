"""Conformance kit of operators: a case with its explicit matrix gets every test."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, toeplitz

from leastnoise._trusted.linop import (
    AllRanges,
    Coarse,
    Contrasts,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Nested,
    Operator,
    Ordered,
    Prefix,
    Ranges,
    Toeplitz,
    Total,
    Tree,
)


@dataclass(frozen=True)
class Case:
    """An operator with its explicit matrix."""

    name: str
    operator: Operator
    reference: Callable[[], np.ndarray]


def _intervals(size, pairs):
    return np.array(
        [[int(low <= cell <= high) for cell in range(size)] for low, high in pairs], dtype=np.int64
    )


def _tree(size, branching):
    widths = [1]
    while widths[0] < size:
        widths.insert(0, widths[0] * branching)
    return _intervals(
        size,
        [
            (start, min(start + width, size) - 1)
            for width in widths
            for start in range(0, size, width)
        ],
    )


def _haar(size):
    matrix = np.ones((1, 1), dtype=np.int64)
    while len(matrix) < size:
        matrix = np.vstack(
            [np.kron(matrix, [[1, 1]]), np.kron(np.eye(len(matrix), dtype=np.int64), [[1, -1]])]
        )
    return matrix[matrix[:, :size].any(axis=1), :size]


def _nested(inner, last, above):
    widths = [inner.shape[1]] * (above.shape[1] - 1) + [last.shape[1]]
    within = block_diag(*[inner] * (above.shape[1] - 1), last)
    return np.vstack([within, np.repeat(above, widths, axis=1)]).astype(np.int64)


def _toeplitz(coefficients, scales):
    return np.tril(toeplitz(coefficients)) * scales


_MATRIX = [[3, -1, 0, 7], [0, 0, 2, -5]]
_WITHIN = [[3, 0, 0], [0, -1, 0], [0, 0, 2], [1, 4, -5]]
_ABOVE = [[2, 0, 1, 0], [0, -3, 1, 7]]

CASES = [
    Case("identity of 1", Identity(1), lambda: np.eye(1, dtype=np.int64)),
    Case("identity", Identity(6), lambda: np.eye(6, dtype=np.int64)),
    Case("total", Total(6), lambda: np.ones((1, 6), dtype=np.int64)),
    Case("prefix", Prefix(6), lambda: np.tril(np.ones((6, 6), dtype=np.int64))),
    Case(
        "all ranges",
        AllRanges(5),
        lambda: _intervals(5, [(a, b) for a in range(5) for b in range(a, 5)]),
    ),
    Case(
        "ranges",
        Ranges(7, [0, 3, 6, 0], [6, 3, 6, 2]),
        lambda: _intervals(7, [(0, 6), (3, 3), (6, 6), (0, 2)]),
    ),
    Case("tree of 1", Tree.full(1, 2), lambda: _tree(1, 2)),
    Case("binary tree", Tree.full(8, 2), lambda: _tree(8, 2)),
    Case("uneven binary tree", Tree.full(11, 2), lambda: _tree(11, 2)),
    Case("uneven ternary tree", Tree.full(10, 3), lambda: _tree(10, 3)),
    Case("contrasts of 2", Contrasts(2), lambda: np.array([[1, -1]])),
    Case(
        "contrasts", Contrasts(4), lambda: np.array([[1, -1, 0, 0], [1, 1, -2, 0], [1, 1, 1, -3]])
    ),
    Case(
        "tree without a root",
        Tree(11, (6, 3)),
        lambda: _intervals(11, [(0, 5), (6, 10), (0, 2), (3, 5), (6, 8), (9, 10)]),
    ),
    Case("haar of 1", Haar(1), lambda: _haar(1)),
    Case("haar of 8", Haar(8), lambda: _haar(8)),
    Case("haar of 5", Haar(5), lambda: _haar(5)),
    Case("haar of 11", Haar(11), lambda: _haar(11)),
    Case(
        "diagonal and rows",
        DiagonalAndRows([3, -1, 2, 2], [[1, 0, 5, -7], [0, 0, 2, 1]]),
        lambda: np.vstack([np.diag([3, -1, 2, 2]), [[1, 0, 5, -7], [0, 0, 2, 1]]]),
    ),
    Case("dense", Dense(_MATRIX), lambda: np.array(_MATRIX)),
    Case(
        "coarse tree",
        Coarse(Tree.full(3, 2), [0, 1, 5], 7),
        lambda: np.repeat(_tree(3, 2), [1, 4, 2], axis=1),
    ),
    Case(
        "coarse dense",
        Coarse(Dense(_MATRIX), [0, 2, 3, 4], 6),
        lambda: np.repeat(_MATRIX, [2, 1, 1, 2], axis=1),
    ),
    Case(
        "ordered ranges",
        Ordered(Ranges(4, [0, 1, 0], [0, 3, 1]), [2, 0, 3, 1]),
        lambda: np.array([[0, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 0]]),
    ),
    Case(
        "ordered coarse",
        Ordered(Coarse(Dense(_MATRIX), [0, 2, 3, 4], 6), [5, 0, 4, 1, 3, 2]),
        lambda: np.repeat(_MATRIX, [2, 1, 1, 2], axis=1)[:, [1, 3, 5, 4, 2, 0]],
    ),
    Case(
        "nested",
        Nested(
            DiagonalAndRows([3, -1, 2], [[1, 4, -5]]),
            DiagonalAndRows([5, 4], [[0, 1]]),
            Dense(_ABOVE),
        ),
        lambda: _nested(np.array(_WITHIN), np.array([[5, 0], [0, 4], [0, 1]]), np.array(_ABOVE)),
    ),
    Case(
        "nested of equal blocks",
        Nested(Prefix(2), Prefix(2), Tree.full(2, 2)),
        lambda: _nested(np.tri(2), np.tri(2), np.array([[1, 1], [1, 0], [0, 1]])),
    ),
    Case(
        "nested of cells",
        Nested(Identity(1), Identity(1), Dense([[1, 2]])),
        lambda: np.array([[1, 0], [0, 1], [1, 2]]),
    ),
    Case("toeplitz of 1", Toeplitz([0], [3], [2]), lambda: np.array([[6]])),
    Case(
        "toeplitz",
        Toeplitz([0, 1, 3], [5, 3, 1], [2, 2, 3, 4, 9, 9]),
        lambda: _toeplitz([5, 3, 3, 1, 1, 1], [2, 2, 3, 4, 9, 9]),
    ),
    Case(
        "signed toeplitz",
        Toeplitz([0, 2, 4], [-4, 2, 0], [1, 3, 1, 2, 1]),
        lambda: _toeplitz([-4, -4, 2, 2, 0], [1, 3, 1, 2, 1]),
    ),
]
