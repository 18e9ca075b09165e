"""Implement GreedyH, the second stage of DAWA: as defined, and as in released implementations.

GreedyH gives every node a separate scale: the node takes a share of the weight that its ancestors
have left of 1, so the scales on every path from the root to a cell have the sum 1. From the cells
up, the share lambda of each node minimises the error of the queries inside the node, while its
subtree gets the remaining weight. Queries that leave the node are anticipated: the part that
crosses the node's children is damped by ``b^(-depth/2)``.

The released implementations minimise the error of the workload W^T W instead of W, because they
call a routine for W with W^T W. They also damp lambda^2, although only the part that crosses the
children should be damped; return the damped objective as the error of the child; and do not split
blocks whose columns in the workload are all equal. That version gives the published numbers; both
versions are equally private.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from baselines._baseline import Baseline, Ranges, Reals, Wholes
from baselines._tree import measure_hierarchy, sums_of_blocks, whole_weights
from leastnoise._families import Gram, dense_gram
from leastnoise._families import gram_of as gram_of_queries
from leastnoise._families._tree import ScaledTree, full_chain, tree_error
from leastnoise._trusted.check import refuse
from leastnoise._trusted.kernel import Entropy
from leastnoise._trusted.linop import AllRanges, block_sums, repeat_entries

_GRID = 100
_NODES_AT_ONCE = 8192  # in memory
_NOTHING = 1e-9  # share of the largest error below which a node counts as not requested
MOST_DENSE = 2**13  # cells of a dense Gram matrix: half a GB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hierarchy:
    """A hierarchy of nested widths and the scales of all nodes, cells first.

    The scales along any path add up to at most 1.
    """

    widths: tuple[int, ...]
    scales: tuple[Reals, ...]

    def matrix(self) -> Reals:
        """Return a matrix with a row for each measured node."""
        size = len(self.scales[0])
        rows = [
            scale[:, None] * np.equal.outer(np.arange(len(scale)), np.arange(size) // width)
            for width, scale in zip(self.widths, self.scales, strict=True)
        ]
        return np.vstack([level[level.max(axis=1) > 0] for level in rows])


def path_scales(widths: Sequence[int], shares: Sequence[Reals], size: int) -> list[Reals]:
    """Return the scales of the nodes from their shares of the remaining weight.

    Each node takes its share of the weight that its ancestors left of 1; cells take the remaining
    weight.

    Args:
        widths: widths of all levels, the cells first.
        shares: shares of the nodes of each level above the cells, the narrowest level first.
        size: number of cells.
    """
    remaining = np.ones(len(shares[-1])) if shares else np.ones(size)
    scales: list[Reals] = []
    for level in range(len(shares) - 1, -1, -1):
        scales.append(remaining * shares[level])
        count = len(shares[level - 1]) if level else size
        remaining = np.repeat(remaining * (1 - shares[level]), widths[level + 1] // widths[level])[
            :count
        ]
    return [remaining, *scales[::-1]]


def _best_shares(error: Reals, mass: Reals, cross: Reals) -> Reals:
    """Return the share lambda of ``{0, 1/100, ...}`` with the smallest error of a node.

    The error is ``(1 + u)^2 (E - c u^2 / (1 + k u^2))`` with ``u = lambda / (1 - lambda)``.
    """
    shares = np.arange(100) / 100
    u = shares / (1 - shares)
    best_share = np.empty(len(error))
    for start in range(0, len(error), _NODES_AT_ONCE):
        part = slice(start, start + _NODES_AT_ONCE)
        value = (1 + u) ** 2 * (
            error[part, None] - cross[part, None] * u**2 / (1 + mass[part, None] * u**2)
        )
        best_share[part] = shares[np.argmin(value, axis=1)]
    return best_share


def fit_greedy_h(gram: Gram) -> ScaledTree:
    """Fit the hierarchy of the greedy algorithm in DAWA's second stage to a workload."""
    widths = full_chain(gram.size, 2)
    vector = np.ones(gram.size)
    error = gram.diagonal()
    inside = gram.diagonal()
    shares: list[Reals] = []
    for level, width in enumerate(widths[1:], start=1):
        product = gram.block_products(vector, width)
        k = block_sums(vector, width)
        m = block_sums(vector * product, width)
        error = block_sums(error, 2)
        children = block_sums(inside, 2)
        damping = 2 ** (-(len(widths) - 1 - level) / 2)
        share = _best_shares(error, k, damping * (m - children) + children)
        # No query is there, so only rounding errors would be minimised.
        share[error <= _NOTHING * error.max()] = 0.0
        unshared = (1 - share) ** 2
        divisor = unshared + k * share**2
        error = (error - share**2 / divisor * m) / unshared
        inside = m / divisor**2
        vector = vector / repeat_entries(divisor, width, gram.size)
        shares.append(share)
    scales = path_scales(widths, shares, gram.size)
    rmse = math.sqrt(tree_error(gram, widths, [scale**2 for scale in scales]) / gram.queries)
    return ScaledTree(size=gram.size, widths=widths, scales=tuple(scales), norm=1, rmse=rmse)


def as_defined(gram: Gram) -> Hierarchy:
    """Fit the hierarchy of equation 9, with its decay, to the workload itself.

    >>> as_defined(gram_of_queries(AllRanges(4))).matrix().sum(axis=0).max().round(9)
    np.float64(1.0)
    """
    fitted = fit_greedy_h(gram)
    return Hierarchy(widths=fitted.widths, scales=fitted.scales)


def as_released(gram: Reals) -> Hierarchy:
    """Fit the hierarchy of the released implementations to ``gram = W^T W``, for comparison.

    The recursion of ``as_defined`` uses ``gram @ gram``, with the other differences of the module
    docstring.

    >>> as_released(np.ones((4, 4))).matrix().tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """
    size = len(gram)
    squared = dense_gram(gram @ gram, size)
    unlike = np.append(
        ~np.isclose(gram[:, 1:], gram[:, :-1], rtol=1e-12, atol=0).all(axis=0), False
    )
    widths = full_chain(size, 2)
    vector = np.ones(size)
    error = squared.diagonal()
    inside = squared.diagonal()
    shares: list[Reals] = []
    grid = np.arange(_GRID) / _GRID
    for level, width in enumerate(widths[1:], start=1):
        starts = np.arange(0, size, width)
        product = squared.block_products(vector, width)
        mass = sums_of_blocks(vector, width)
        joint = sums_of_blocks(vector * product, width)
        error = sums_of_blocks(error, 2)
        children = sums_of_blocks(inside, 2)
        damping = 2 ** (-(len(widths) - 1 - level) / 2)
        cross = damping * (joint - children) + children
        damped = damping * grid**2
        objective = (
            error[:, None] - cross[:, None] * damped / ((1 - grid) ** 2 + mass[:, None] * damped)
        ) / (1 - grid) ** 2
        best_index = objective.argmin(axis=1)
        share = grid[best_index]
        error = objective[np.arange(len(best_index)), best_index]
        divisor = (1 - share) ** 2 + mass * share**2
        inside = joint / divisor**2
        vector = vector / np.repeat(divisor, width)[:size]
        stops = np.minimum(starts + width, size)
        borders = np.concatenate([[0], np.cumsum(unlike)])
        # A block of equal columns is measured as one node, and is uniform below.
        alike = borders[stops - 1] == borders[starts]
        share = np.where(alike, 1.0, share)
        corner = squared.diagonal()[starts]
        error = np.where(alike, corner, error)
        inside = np.where(alike, corner, inside)
        vector = np.where(
            np.repeat(alike, width)[:size], 1 / np.repeat(stops - starts, width)[:size], vector
        )
        shares.append(share)
    return Hierarchy(widths=widths, scales=tuple(path_scales(widths, shares, size)))


@lru_cache(maxsize=2)
def gram_of(ranges: Ranges | None, size: int) -> Reals:
    """Compute ``W^T W`` of ranges: entry (i, j) counts the ranges that contain both cells.

    None means all ranges.

    >>> gram_of(Ranges(np.array([0, 1]), np.array([2, 3])), 3).tolist()
    [[1.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]]
    """
    if size > MOST_DENSE:
        raise refuse(
            "The counts",
            f"{size} cells",
            f"at most {MOST_DENSE} cells where ranges are listed",
            "Leave the ranges out.",
        )
    if ranges is None:
        cell = np.arange(size)
        return np.asarray(
            np.minimum.outer(cell + 1.0, cell + 1.0) * (size - np.maximum.outer(cell, cell))
        )
    number = np.zeros((size, size))
    np.add.at(number, (ranges.low, ranges.high - 1), 1.0)
    # Ranges that begin by row i and end at column j or later.
    reach = np.cumsum(np.cumsum(number, axis=0)[:, ::-1], axis=1)[:, ::-1]
    upper = np.triu(reach)
    upper += np.triu(upper, 1).T
    return upper


@lru_cache(maxsize=4)
def _fitted(
    ranges: Ranges | None, size: int, *, released: bool
) -> tuple[tuple[int, ...], list[Wholes]]:
    """Return the widths and integer weights of a fitted hierarchy."""
    if released:
        hierarchy = as_released(gram_of(ranges, size))
    elif ranges is None:
        hierarchy = as_defined(gram_of_queries(AllRanges(size)))
    else:
        hierarchy = as_defined(dense_gram(gram_of(ranges, size), len(ranges.low)))
    return hierarchy.widths, whole_weights(hierarchy.scales)


def greedy_h(x: Wholes, epsilon: Fraction, entropy: Entropy, ranges: Ranges | None) -> Reals:
    """Estimate the cells from the hierarchy that GreedyH fits to the ranges."""
    widths, weights = _fitted(ranges, len(x), released=False)
    return measure_hierarchy(x, weights, widths, epsilon, entropy)


def released_greedy_h(
    x: Wholes, epsilon: Fraction, entropy: Entropy, ranges: Ranges | None
) -> Reals:
    """Estimate the cells from the hierarchy of the released implementations."""
    widths, weights = _fitted(ranges, len(x), released=True)
    return measure_hierarchy(x, weights, widths, epsilon, entropy)


_PROOF = (
    "The weights of the nodes above a cell add up to at most 1, checked in whole numbers; "
    "a node of weight w gets w epsilon."
)
GREEDY_H = Baseline(
    name="GreedyH",
    dimensions=1,
    private=True,
    proof=_PROOF,
    source="Li, Hay, Miklau, Wang, PVLDB 2014, section 4.3",
    mechanism=greedy_h,
    aware=True,
)
RELEASED_GREEDY_H = Baseline(
    name="GreedyH, released reading",
    dimensions=1,
    private=True,
    proof=_PROOF,
    source="the same, with W^T W instead of W",
    mechanism=released_greedy_h,
    aware=True,
    most_cells=MOST_DENSE,
)
