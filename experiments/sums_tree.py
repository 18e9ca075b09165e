"""Fit GreedyH on halves of halves for sums with a threshold.

The module implements GreedyH as defined, and as in every released implementation.

The released implementations minimise the error of the workload W^T W instead of W, because they
call a routine for W with W^T W. They also damp lambda^2, although only the part that crosses the
children should be damped, and return the damped objective as the error of the child. The results of
the paper on sums come from these implementations, so a comparison needs their noise. Both versions
are equally private.
"""

from dataclasses import dataclass

import numpy as np

from leastnoise._families._gram import Gram
from leastnoise._trusted.check.arrays import FloatArray, IntArray

_GRID = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalvedTree:
    """Weighted sums over consecutive cells; weights along a path add up to 1.

    Attributes:
        size: number of cells n.
        starts: first cell of each row.
        stops: cell after the last one of each row.
        scales: weight of each row, above 0.
    """

    size: int
    starts: IntArray
    stops: IntArray
    scales: FloatArray

    def matrix(self) -> FloatArray:
        """Return a matrix with a row per node."""
        cells = np.arange(self.size)
        inside = (cells >= self.starts[:, None]) & (cells < self.stops[:, None])
        return np.asarray(inside * self.scales[:, None])


@dataclass(frozen=True, slots=True)
class _Node:
    """The values of a child that its parent needs: error, v = G^-1 1, v^T M v, and rows."""

    error: float
    vector: FloatArray
    inside: float
    rows: tuple[IntArray, IntArray, FloatArray]


def fit_halved_tree(gram: Gram, *, released: bool = False) -> HalvedTree:
    """Fit the hierarchy of GreedyH when every block is halved, the longer half right.

    Args:
        gram: Gram matrix M of the workload, n cells; the function builds the n x n matrix.
        released: compute the result of the released implementations, with M squared instead of M.

    Returns:
        The tree, at L1 sensitivity 1.

    Source: Li, Hay, Miklau, Wang, PVLDB 2014, section 4.3; the source code of the released
        implementations.

    >>> from baselines._linear import strategy_rmse
    >>> prefix_gram = Gram(128, 128, ((np.ones(128), np.arange(128.0, 0.0, -1)),))
    >>> trees = [fit_halved_tree(prefix_gram, released=released) for released in (False, True)]
    >>> [round(strategy_rmse(prefix_gram, tree.matrix(), 1), 3) for tree in trees]
    [5.344, 5.336]
    """
    workload_gram = gram.dense()
    matrix = workload_gram @ workload_gram if released else workload_gram
    shares = np.arange(_GRID) / _GRID

    def node(start: int, stop: int, depth: int) -> _Node:
        """Fit the subtree of a block."""
        if stop - start == 1:
            cell_error = float(matrix[start, start])
            return _Node(
                cell_error,
                np.ones(1),
                cell_error,
                (np.array([start]), np.array([stop]), np.ones(1)),
            )
        middle = start + (stop - start) // 2
        left = node(start, middle, depth + 1)
        right = node(middle, stop, depth + 1)
        vector = np.concatenate([left.vector, right.vector])
        mass = float(vector.sum())
        error = left.error + right.error
        joint = float(vector @ matrix[start:stop, start:stop] @ vector)
        children = left.inside + right.inside
        damping = 2 ** (-depth / 2)
        squares = shares**2 * (damping if released else 1.0)
        cross = damping * (joint - children) + children
        objective = (error - cross * squares / ((1 - shares) ** 2 + mass * squares)) / (
            1 - shares
        ) ** 2
        best_index = int(np.argmin(objective))
        share = float(shares[best_index])
        divisor = (1 - share) ** 2 + mass * share**2
        if released:
            subtree_error = float(objective[best_index])
        else:
            subtree_error = (error - share**2 / divisor * joint) / (1 - share) ** 2
        starts, stops, scales = (
            np.concatenate([a, b]) for a, b in zip(left.rows, right.rows, strict=True)
        )
        scales = scales * (1 - share)
        if share > 0:
            starts = np.append(starts, start)
            stops = np.append(stops, stop)
            scales = np.append(scales, share)
        return _Node(subtree_error, vector / divisor, joint / divisor**2, (starts, stops, scales))

    starts, stops, scales = node(0, gram.size, 0).rows
    return HalvedTree(size=gram.size, starts=starts, stops=stops, scales=scales)
