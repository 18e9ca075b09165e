"""Hierarchies with the scale of every node optimised, by a gradient method on the tree recursion: O(n) a level and step.

Each node takes a share of what its ancestors have left (of the L1 norm, or of the square of the L2 norm), so every path from a root
to a cell has norm exactly 1 whatever the shares are. Under L1 a share of zero is always a local optimum: which levels are used at all
is decided by the starts, of which the best tree with one weight a level is the strongest.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._planner._clock import over
from leastnoise._planner.line._gram import Gram
from leastnoise._planner.line._tree import ScaledTree, block_spread, path_scales, scaled_tree, tree_error

# A share of 1 would leave nothing for the descendants.
_LARGEST_SHARE = 0.999


def shares_of(tree: ScaledTree) -> list[FloatArray]:
    """The shares that give a tree's scales (see ``path_scales``), the narrowest level first."""
    left = np.ones(tree.size)
    shares: list[FloatArray] = []
    for width, scale in zip(tree.widths[:0:-1], tree.scales[:0:-1], strict=True):
        share = np.clip(scale**tree.norm / left[::width], 0.0, _LARGEST_SHARE)
        shares.append(share)
        left = left * (1 - block_spread(share, width, tree.size))
    return shares[::-1]


def node_objective(gram: Gram, widths: Sequence[int], shares: Sequence[FloatArray], norm: int) -> tuple[float, list[FloatArray]]:
    """The error ``tr(M (A^T A)^-1)`` of a tree given by its shares, and its derivatives by the shares."""
    scales = path_scales(widths, shares, norm, gram.size)
    error, by_square = tree_error(gram, widths, [scale**2 for scale in scales])
    # What is shared out at a node is scale^norm, so a squared scale is that to the power 2 / norm.
    by_amount = [2 * slope * scale for slope, scale in zip(by_square, scales, strict=True)] if norm == 1 else by_square
    below = by_amount[0]
    slopes: list[FloatArray] = []
    left = _remainders(widths, shares, gram.size)
    for level, share in enumerate(shares):
        joined = widths[level + 1] // widths[level]
        below = np.add.reduceat(below, np.arange(0, len(below), joined))
        slopes.append(left[level] * (by_amount[level + 1] - below))
        below = share * by_amount[level + 1] + (1 - share) * below
    return error, slopes


def _remainders(widths: Sequence[int], shares: Sequence[FloatArray], size: int) -> list[FloatArray]:
    """What each node above the cells finds left by its ancestors."""
    left = [np.ones(len(shares[-1]))] if shares else []
    for level in range(len(shares) - 2, -1, -1):
        rest = left[-1] * (1 - shares[level + 1])
        left.append(np.repeat(rest, widths[level + 2] // widths[level + 1])[: len(shares[level])])
    return left[::-1]


def _look_at_clock(_: FloatArray) -> None:
    if over():
        raise StopIteration


def fit_node_tree(gram: Gram, starts: Sequence[ScaledTree], *, steps: int | None = None, descents: int = 1) -> ScaledTree:
    """Improve hierarchies by optimising the scale of every node."""
    from scipy.optimize import minimize

    if not starts or {(tree.size, tree.norm) for tree in starts} != {(gram.size, starts[0].norm)}:
        raise InputError("A tree needs at least one start; all of the workload's size and of one norm.")
    norm = starts[0].norm
    ranked = sorted(starts, key=lambda tree: tree.rmse)
    found = [ranked[0]]
    for tree in [tree for tree in ranked if len(tree.widths) > 1][:descents]:
        shapes = np.cumsum([0, *(len(scale) for scale in tree.scales[1:])])

        def objective(point: FloatArray, tree: ScaledTree = tree, shapes: FloatArray = shapes) -> tuple[float, FloatArray]:
            shares = [point[first:last] for first, last in itertools.pairwise(shapes)]
            error, slopes = node_objective(gram, tree.widths, shares, norm)
            return math.log(error), np.concatenate(slopes) / error

        start = np.concatenate(shares_of(tree))
        bounds = [(0.0, _LARGEST_SHARE)] * len(start)
        most = max(8, min(300, 600 * 2**18 // (gram.size * len(tree.widths)))) if steps is None else steps
        options = {"maxiter": most, "maxfun": 2 * most, "ftol": 1e-10, "maxcor": 8}
        end = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=_look_at_clock).x
        shares = [end[first:last] for first, last in itertools.pairwise(shapes)]
        found.append(scaled_tree(gram, tree.widths, path_scales(tree.widths, shares, norm, gram.size), norm))
    return min(found, key=lambda tree: tree.rmse)
