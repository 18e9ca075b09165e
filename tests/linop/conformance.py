"""The conformance kit: a new operator adds one row here, a constructor and a dense reference, and inherits every test of the suite."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leastnoise.linop import AllRanges, Dense, Identity, Operator, Prefix, Ranges, Total, Tree


@dataclass(frozen=True)
class Case:
    """One operator with the explicit matrix it must stand for."""

    name: str
    operator: Operator
    reference: Callable[[], np.ndarray]


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


_MATRIX = [[3, -1, 0, 7], [0, 0, 2, -5]]

CASES = [
    Case("identity of 1", Identity(1), lambda: np.eye(1, dtype=np.int64)),
    Case("identity", Identity(6), lambda: np.eye(6, dtype=np.int64)),
    Case("total", Total(6), lambda: np.ones((1, 6), dtype=np.int64)),
    Case("prefix", Prefix(6), lambda: np.tril(np.ones((6, 6), dtype=np.int64))),
    Case("all ranges", AllRanges(5), lambda: _intervals(5, [(a, b) for a in range(5) for b in range(a, 5)])),
    Case("ranges", Ranges(7, [0, 3, 6, 0], [6, 3, 6, 2]), lambda: _intervals(7, [(0, 6), (3, 3), (6, 6), (0, 2)])),
    Case("tree of 1", Tree(1, 2), lambda: _tree(1, 2)),
    Case("binary tree", Tree(8, 2), lambda: _tree(8, 2)),
    Case("uneven binary tree", Tree(11, 2), lambda: _tree(11, 2)),
    Case("uneven ternary tree", Tree(10, 3), lambda: _tree(10, 3)),
    Case("dense", Dense(_MATRIX), lambda: np.array(_MATRIX)),
]
