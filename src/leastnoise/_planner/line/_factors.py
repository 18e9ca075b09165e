"""Strategies along one attribute as integer factors of a plan: the families' real numbers, rounded on a dyadic grid.

What is measured is the rounded strategy, and the plan's error is that of the rounded strategy; its privacy cost is computed from the
rounded integers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, singledispatch

import numpy as np

from leastnoise._accuracy import apply_gram, first_cells, on_runs
from leastnoise._linop import (
    AllRanges,
    Coarse,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Nested,
    Operator,
    Prefix,
    Ranges,
    Total,
    Tree,
    dense,
)
from leastnoise._measurements import Factor
from leastnoise._planner._strategy import NotApplicable
from leastnoise._planner.line._blocks import BlockPIdentity, fit_blocks
from leastnoise._planner.line._cell_order import merge_equal_cells
from leastnoise._planner.line._eigen import fit_eigen_design
from leastnoise._planner.line._gaussian_optimal import optimal_factor
from leastnoise._planner.line._gram import FITS, AllRangesGram, DenseGram, Gram, PrefixGram, ScaledSum, WidthGram, ranges_gram
from leastnoise._planner.line._greedy_h import fit_greedy_h
from leastnoise._planner.line._level_tree import fit_haar, fit_level_tree, uniform_tree
from leastnoise._planner.line._matrix import to_dyadic
from leastnoise._planner.line._node_tree import fit_node_tree
from leastnoise._planner.line._p_identity import bells_suffice, fit_p_identity
from leastnoise._planner.line._profile import reduce_l1_norm
from leastnoise._planner.line._toeplitz_root import toeplitz_root
from leastnoise._planner.line._tree import scaled_tree

MOST_DENSE = 4096
_MOST_EIGEN = 1024
_MOST_TURNED = 16
_WEIGHT_BITS = 20
_BLOCK_BITS = 14
_MOST_LISTED = 2**28  # given ranges times cells
_MOST_ALONE = 20  # bits, where one attribute has them all


@dataclass(frozen=True, slots=True)
class Fitted:
    """A strategy along one attribute."""

    factor: Factor
    bound: float = 0.0


# Fits a strategy along an attribute: its name, the Gram matrix of what is asked along it, 1 for Laplace or 2 for Gaussian noise, and the
# bits that real coefficients are rounded to.
Fit = Callable[[str, Gram, int, int], Fitted]


@singledispatch
def gram_of(operator: Operator) -> Gram:
    """The Gram matrix of queries, with its structure where there is one."""
    n = operator.size
    if n > MOST_DENSE:
        raise NotApplicable(f"queries without a known structure need a matrix of {n} x {n}; at most {MOST_DENSE} cells are allowed")
    made = apply_gram(operator, np.eye(n))
    return DenseGram((made + made.T) / 2, operator.rows)


@gram_of.register
def _(operator: Identity) -> Gram:
    return WidthGram(operator.size, 1)


@gram_of.register
def _(operator: Total) -> Gram:
    return WidthGram(operator.size, operator.size)


@gram_of.register
def _(operator: Prefix) -> Gram:
    return PrefixGram(operator.size)


@gram_of.register
def _(operator: AllRanges) -> Gram:
    return AllRangesGram(operator.size)


@gram_of.register
def _(operator: Ranges) -> Gram:
    return ranges_gram(operator.size, operator.low, operator.high)


def fitted_to(fit: Fit, name: str, asked: Sequence[tuple[float, Operator]], norm: int, bits: int) -> Fitted:
    """What a family finds for weighted queries: on runs of cells that their ends tell apart, where they are fewer than the cells."""
    size = asked[0][1].size
    starts = np.unique(np.concatenate([first_cells(operator) for _, operator in asked]))
    grams = [(weight, gram_of(on_runs(operator, starts))) for weight, operator in asked]
    find = partial(fitted, fit) if any(gram.by_matrix for _, gram in grams) else fit
    found = find(name, summed(grams), norm, bits)
    if len(starts) == size:
        return found
    return Fitted(Factor((name,), Coarse(found.factor.operator, starts, size), found.factor.row_weights), found.bound)


def fitted(fit: Fit, name: str, gram: Gram, norm: int, bits: int) -> Fitted:
    """What a family finds, on cells that the queries tell apart: those that no query does are merged first.

    Under Laplace noise a family that measures every cell gains much where few queries are asked; the rest gain in time.
    """
    if gram.one_form or gram.size > MOST_DENSE:
        return fit(name, gram, norm, bits)
    small, group = merge_equal_cells(gram)
    if small.size == gram.size:
        return fit(name, gram, norm, bits)
    found = fit(name, small, norm, bits)
    wide = Dense(dense(found.factor.operator)[:, group])
    return Fitted(Factor((name,), wide, found.factor.row_weights), found.bound)


def summed(parts: Sequence[tuple[float, Gram]]) -> Gram:
    """The weighted sum of Gram matrices; of one, that one itself."""
    return parts[0][1] if len(parts) == 1 else ScaledSum(tuple(parts))


def _tree(name: str, size: int, widths: Sequence[int], scales: Sequence[np.ndarray]) -> Fitted:
    """A hierarchy from the narrowest level up, with a scale a node; levels without any weight are left out."""
    used = [place for place in range(len(widths)) if scales[place].max() > 0]
    tree = Tree(size, tuple(int(widths[place]) for place in reversed(used)))
    weights = np.concatenate([scales[place] for place in reversed(used)])
    return Fitted(Factor((name,), tree, _whole_weights(weights)))


def _whole_weights(weights: np.ndarray) -> np.ndarray | None:
    # A row may have no weight at all beside heavy ones; the least whole weight costs next to nothing.
    whole = np.maximum(1, np.rint(weights / weights.max() * 2**_WEIGHT_BITS)).astype(np.int64)
    return None if (whole == whole[0]).all() else whole


def every_cell(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """Every cell by itself."""
    return Fitted(Factor((name,), Identity(gram.size)))


def best_hierarchy(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The hierarchy without weights of the branching that gives the least error."""
    found = uniform_tree(gram, norm)
    return _tree(name, gram.size, found.widths, [np.ones(-(-gram.size // width)) for width in found.widths])


def level_tree(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The hierarchy with the best weight for every level."""
    found = fit_level_tree(gram, norm)
    counts = [-(-gram.size // width) for width in found.widths]
    return _tree(name, gram.size, found.widths, [np.full(count, weight) for count, weight in zip(counts, found.weights, strict=True)])


def node_tree(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The hierarchy with the best weight for every node."""
    levels = fit_level_tree(gram, norm)
    counts = [-(-gram.size // width) for width in levels.widths]
    scales = [np.full(count, weight) for count, weight in zip(counts, levels.weights, strict=True)]
    starts = [scaled_tree(gram, levels.widths, scales, norm), *([fit_greedy_h(gram)] if norm == 1 else [])]
    found = fit_node_tree(gram, starts)
    return _tree(name, gram.size, found.widths, found.scales)


def haar(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The Haar wavelet with the best weight for every level."""
    if gram.size > MOST_DENSE:
        raise NotApplicable(f"the wavelet's error bars need a matrix of {gram.size} x {gram.size}; at most {MOST_DENSE} cells are allowed")
    found = fit_haar(gram, norm)
    operator = Haar(gram.size)
    counts = [1, *(-(-gram.size // width) for width in operator.widths)]
    weights = np.concatenate([np.full(count, weight) for count, weight in zip(counts, found.weights, strict=True)])
    return Fitted(Factor((name,), operator, _whole_weights(weights)))


def p_identity_seconds(size: int, *, in_line: bool = False) -> tuple[float, float]:
    """About how many CPU seconds p-Identity takes on one core: to begin with, and with all its steps."""
    if in_line and size > 256:
        # A step inverts a matrix of all bells, one for every 18 cells: from 2^14 cells on that is what takes the time.
        inverted = (size / 2**14) ** 3
        begin = max(0.3 + size / 4096, 1.5 * inverted)
        return begin, begin + max(5.5 * (size / 1024) ** 0.75, 44 * inverted)
    begin = min(2.0, 0.1 + 1.35 * (size / 1024) ** 1.5)
    return begin, begin + (9 * min(1.0, size / 1024) if size <= 2048 else 55 * (size / 4096) ** 1.2)


def p_identity(name: str, gram: Gram, norm: int, bits: int = 20, *, seconds: float = math.inf) -> Fitted:
    """A p-Identity strategy, for Laplace noise."""
    begin, whole = p_identity_seconds(gram.size, in_line=bells_suffice(gram))
    effort = min(1.0, max(0.01, (seconds - begin) / (whole - begin)))
    diagonal, rows = fit_p_identity(gram, effort=effort).dyadic(bits)
    return Fitted(Factor((name,), DiagonalAndRows(diagonal, rows) if len(rows) else Identity(gram.size)))


def p_identity_blocks(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """p-Identity on two levels: within blocks of cells, the same in each, and over the blocks' sums; for Laplace noise."""
    return Fitted(nested_factor(name, gram.size, fit_blocks(gram), min(bits, _BLOCK_BITS)))


def nested_factor(name: str, size: int, found: BlockPIdentity, bits: int) -> Factor:
    """A strategy on two levels in whole numbers: those within blocks, and row weights that say how heavy they are in each."""
    diagonal, below = found.inner.dyadic(bits)
    norm, left = int((diagonal + below.sum(axis=0)).max()), size - (len(found.divisors) - 1) * len(diagonal)
    below = below if len(below) else np.ones((1, len(diagonal)), dtype=np.int64)
    within = [DiagonalAndRows(diagonal[:cells], below[:, :cells]) for cells in (len(diagonal), left)]
    sums, own = (np.rint(norm * part / found.divisors).astype(np.int64) for part in (found.rows, found.own))
    sums = sums[sums.any(axis=1)] if sums.any() else np.ones((1, len(own)), dtype=np.int64)
    above = DiagonalAndRows(np.maximum(own, 1), sums) if found.own.any() else Dense(sums)
    heights = np.rint(2**_BLOCK_BITS * found.divisors.min() / found.divisors).astype(np.int64)
    weights = np.append(
        np.repeat(heights, [within[0].rows] * (len(heights) - 1) + [within[1].rows]),
        np.full(above.rows, round(2**_BLOCK_BITS * found.divisors.min())),
    )
    return Factor((name,), Nested(within[0], within[1], above), weights)


def gaussian_optimum(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The strategy of least error for Gaussian noise, to a duality gap of 1e-3; of 3e-3 beyond 1024 cells, where a step takes seconds."""
    if gram.size > MOST_DENSE:
        raise NotApplicable(f"the Gaussian optimum needs a matrix of {gram.size} x {gram.size}; at most {MOST_DENSE} cells are allowed")
    matrix, lower, _ = optimal_factor(gram, gap=1e-3 if gram.size <= 1024 else 3e-3)
    if len(matrix) < gram.size and np.abs(np.linalg.pinv(matrix) @ matrix.sum(axis=1) - 1).max() > 1e-7:
        # Queries that do not even tell the total: a millionth of the norm on every cell, so that least squares has its product form.
        matrix = np.vstack([matrix * math.sqrt(1 - 1e-6), 1e-3 * np.eye(gram.size)])
    return Fitted(Factor((name,), Dense(to_dyadic(matrix, bits))), lower**2 * gram.queries)


def square_root(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The Toeplitz square root of the prefix sums, for Gaussian noise."""
    if gram.size > MOST_DENSE and gram.listed * gram.size > _MOST_LISTED:
        raise NotApplicable(f"above {MOST_DENSE} cells it is made for prefix sums, all ranges, cells and few other ranges")
    return Fitted(Factor((name,), toeplitz_root(gram.size, bits if bits < _MOST_ALONE else 24)))


@lru_cache(maxsize=FITS)
def _turned(gram: Gram) -> np.ndarray:
    return reduce_l1_norm(fit_eigen_design(gram, 1).matrix, restarts=1)


def eigen_design(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """Weighted eigenvectors of the workload; for Laplace noise turned, on short attributes, to a smaller norm of the same profile."""
    if gram.size > _MOST_EIGEN:
        raise NotApplicable(f"eigenvectors of a matrix of {gram.size} x {gram.size} take long; at most {_MOST_EIGEN} cells are allowed")
    matrix = _turned(gram) if norm == 1 and gram.size <= _MOST_TURNED else fit_eigen_design(gram, norm).matrix
    return Fitted(Factor((name,), Dense(to_dyadic(matrix, bits))))
