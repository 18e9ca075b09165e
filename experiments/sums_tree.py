"""GreedyH on halves of halves for sums with a threshold.

It is implemented as defined, and as in every released implementation.

The released copies minimise the error of the workload W^T W in the place of W, because a routine
written for W is called with W^T W; they also damp lambda^2 where only what crosses the children is
to be damped, and hand the damped objective up as the error of the child. What the paper on sums
shows was run with them, so their noise is needed to compare. Both readings are equally private.
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
        stops: cell behind the last one of each row.
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
        gram: Gram matrix M of the workload, n cells; the n x n matrix is made.
        released: compute what the released copies compute, with M squared in the place of M.

    Returns:
        The tree, at L1 sensitivity 1.

    Source: Li, Hay, Miklau, Wang, PVLDB 2014, section 4.3; the particulars of the released copies
        from their text.

    >>> from baselines._linear import strategy_rmse
    >>> asked = Gram(128, 128, ((np.ones(128), np.arange(128.0, 0.0, -1)),))
    >>> [
    ...     round(strategy_rmse(asked, fit_halved_tree(asked, released=r).matrix(), 1), 3)
    ...     for r in (False, True)
    ... ]
    [5.344, 5.336]
    """
    asked = gram.dense()
    matrix = asked @ asked if released else asked
    shares = np.arange(_GRID) / _GRID

    def node(start: int, stop: int, depth: int) -> _Node:
        """Fit the subtree of a block."""
        if stop - start == 1:
            own = float(matrix[start, start])
            return _Node(own, np.ones(1), own, (np.array([start]), np.array([stop]), np.ones(1)))
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
        best = int(np.argmin(objective))
        share = float(shares[best])
        divisor = (1 - share) ** 2 + mass * share**2
        if released:
            kept = float(objective[best])
        else:
            kept = (error - share**2 / divisor * joint) / (1 - share) ** 2
        starts, stops, scales = (
            np.concatenate([a, b]) for a, b in zip(left.rows, right.rows, strict=True)
        )
        scales = scales * (1 - share)
        if share > 0:
            starts = np.append(starts, start)
            stops = np.append(stops, stop)
            scales = np.append(scales, share)
        return _Node(kept, vector / divisor, joint / divisor**2, (starts, stops, scales))

    starts, stops, scales = node(0, gram.size, 0).rows
    return HalvedTree(size=gram.size, starts=starts, stops=stops, scales=scales)
