"""The conformance kit: an operator adds a row, a constructor and a dense reference, and inherits every test of the suite.

An operator in a file of its own has its rows in a file of its own too: ``cases_NAME.py`` beside this one, with a list ``CASES``.
"""

from importlib import import_module
from pathlib import Path

import numpy as np

from leastnoise._linop import AllRanges, Coarse, Contrasts, Dense, DiagonalAndRows, Haar, Identity, Ordered, Prefix, Ranges, Total, Tree
from linop.case import Case


def _intervals(size: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array([[int(low <= cell <= high) for cell in range(size)] for low, high in pairs], dtype=np.int64)


def _tree(size: int, branching: int) -> np.ndarray:
    height = 0
    while branching**height < size:
        height += 1
    rows = []
    for level in range(height, -1, -1):
        width = branching**level
        rows += [(start, min(start + width, size) - 1) for start in range(0, size, width)]
    return _intervals(size, rows)


def _haar(size: int) -> np.ndarray:
    padded = 1
    while padded < size:
        padded *= 2
    rows, width = [np.ones(padded)], padded
    while width > 1:
        for start in range(0, size, width):
            row = np.zeros(padded)
            row[start : start + width // 2], row[start + width // 2 : start + width] = 1, -1
            rows.append(row)
        width //= 2
    return np.array(rows, dtype=np.int64)[:, :size]


_MATRIX = [[3, -1, 0, 7], [0, 0, 2, -5]]

CASES = [
    Case("identity of 1", Identity(1), lambda: np.eye(1, dtype=np.int64)),
    Case("identity", Identity(6), lambda: np.eye(6, dtype=np.int64)),
    Case("total", Total(6), lambda: np.ones((1, 6), dtype=np.int64)),
    Case("prefix", Prefix(6), lambda: np.tril(np.ones((6, 6), dtype=np.int64))),
    Case("all ranges", AllRanges(5), lambda: _intervals(5, [(a, b) for a in range(5) for b in range(a, 5)])),
    Case("ranges", Ranges(7, [0, 3, 6, 0], [6, 3, 6, 2]), lambda: _intervals(7, [(0, 6), (3, 3), (6, 6), (0, 2)])),
    Case("tree of 1", Tree.full(1, 2), lambda: _tree(1, 2)),
    Case("binary tree", Tree.full(8, 2), lambda: _tree(8, 2)),
    Case("uneven binary tree", Tree.full(11, 2), lambda: _tree(11, 2)),
    Case("uneven ternary tree", Tree.full(10, 3), lambda: _tree(10, 3)),
    Case("contrasts of 2", Contrasts(2), lambda: np.array([[1, -1]])),
    Case("contrasts", Contrasts(4), lambda: np.array([[1, -1, 0, 0], [1, 1, -2, 0], [1, 1, 1, -3]])),
    Case("tree without a root", Tree(11, (6, 3)), lambda: _intervals(11, [(0, 5), (6, 10), (0, 2), (3, 5), (6, 8), (9, 10)])),
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
    Case("coarse tree", Coarse(Tree.full(3, 2), [0, 1, 5], 7), lambda: np.repeat(_tree(3, 2), [1, 4, 2], axis=1)),
    Case("coarse dense", Coarse(Dense(_MATRIX), [0, 2, 3, 4], 6), lambda: np.repeat(_MATRIX, [2, 1, 1, 2], axis=1)),
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
]
CASES += [case for path in sorted(Path(__file__).parent.glob("cases_*.py")) for case in import_module(f"linop.{path.stem}").CASES]
