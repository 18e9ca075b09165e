"""GreedyH: a hierarchy whose scales are set greedily, from the cells up, for pure DP.

At each node the share lambda of the node is chosen, with its subtree given what is left, to make the error of the queries inside
the node least; queries that leave the node are anticipated by damping what crosses the node's children with ``b^(-depth/2)``.

The copies of this in public code call it with W^T W where W is meant, and so optimise another workload; that is not repeated here.

Source: Li, Hay, Miklau, Wang, PVLDB 2014, section 4.3.
"""

import numpy as np

from leastnoise._check import whole
from leastnoise._check.arrays import FloatArray
from leastnoise._planner.line._gram import Gram
from leastnoise._planner.line._tree import ScaledTree, block_spread, block_sums, full_chain, path_scales, scaled_tree

_NODES_AT_ONCE = 8192
_NOTHING = 1e-9


def _best_shares(error: FloatArray, mass: FloatArray, cross: FloatArray, grid: int) -> FloatArray:
    """Of ``{0, 1/grid, ...}`` the lambda with the least ``(1 + u)^2 (E - c u^2 / (1 + k u^2))``, ``u = lambda / (1 - lambda)``."""
    shares = np.arange(grid) / grid
    u = shares / (1 - shares)
    best = np.empty(len(error))
    for start in range(0, len(error), _NODES_AT_ONCE):
        part = slice(start, start + _NODES_AT_ONCE)
        value = (1 + u) ** 2 * (error[part, None] - cross[part, None] * u**2 / (1 + mass[part, None] * u**2))
        best[part] = shares[np.argmin(value, axis=1)]
    return best


def fit_greedy_h(gram: Gram, *, branching: int = 2, grid: int = 100) -> ScaledTree:
    """The hierarchy that the greedy of DAWA's second stage chooses, on the exact workload.

    Edge cases:
        When n is no power of the branching, the nodes at the right end are shorter.
    """
    whole("grid", grid, 2)
    widths = full_chain(gram.size, whole("branching", branching, 2))
    vector = np.ones(gram.size)
    error = gram.diagonal()
    inside = gram.diagonal()
    shares: list[FloatArray] = []
    for level, width in enumerate(widths[1:], start=1):
        joined = widths[level] // widths[level - 1]
        product = gram.block_products(vector, width)
        k, m = block_sums(vector, width), block_sums(vector * product, width)
        error, children = block_sums(error, joined), block_sums(inside, joined)
        damping = branching ** (-(len(widths) - 1 - level) / 2)
        share = _best_shares(error, k, damping * (m - children) + children, grid)
        share[error <= _NOTHING * error.max()] = 0.0  # nobody asks there: only rounding errors would be minimised
        rest = (1 - share) ** 2
        divisor = rest + k * share**2
        error = (error - share**2 / divisor * m) / rest
        inside = m / divisor**2
        vector = vector / block_spread(divisor, width, gram.size)
        shares.append(share)
    return scaled_tree(gram, widths, path_scales(widths, shares, 1, gram.size), 1)
