"""Public planning for data-dependent mechanisms.

This file has strategies on buckets of cells, an adaptive grid, and the tables of a model.

Buckets of cells are DAWA's second stage along one attribute. The count of a bucket is divided
evenly among its cells, so each query becomes a weighted sum of bucket counts. These queries are V =
W T, with T_ci = 1 / length of bucket i for its cells c. Only V^T V = T^T W^T W T (k x k) is
computed, some rows at a time.

An adaptive grid uses the tree of halved blocks of two attributes. Noisy counts and public numbers
determine how many blocks are measured first, and how these blocks are then divided and joined.

A model first measures the table of every single attribute. A model then measures tables of pairs of
attributes on bins; on average, a bin has half as many rows as the size of the noise. Budget shares
depend only on sizes and on earlier noisy counts. For least squared error, the precision of a table
of n cells is in proportion to n^(2/3) with either noise. In experiments with real tables, no
exponent was better than 0.66.

Source: Li, Hay, Miklau, Wang, PVLDB 2014, definition 6 and section 4.3.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np

from leastnoise._families import (
    FittedFamily,
    Gram,
    dense_gram,
    fit_gaussian_optimum,
    fit_level_tree,
    fit_p_identity,
    to_dyadic,
    tree_factor,
)
from leastnoise._trusted.check import Exact, InputError, InternalError, exact_positive
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import (
    BlockTree,
    Coarse,
    Dense,
    DiagonalAndRows,
    Identity,
    Operator,
    Total,
    block_sums,
    dense,
)
from leastnoise._trusted.measurements import Factor

# Maximum number of buckets for which p-Identity is fitted.
_MOST_P_IDENTITY = 64
_MOST_OPTIMUM = 512  # maximum number of buckets for which the Gaussian optimum is fitted
_AT_ONCE = 2**22  # maximum number of array entries in memory
_LEAST_WEIGHT = 1e-3  # the part of the norm on every bucket, so that all buckets are determined
_FAULTS = (InputError, InternalError, ArithmeticError, ValueError, np.linalg.LinAlgError)


def bucket_gram(gram: Gram, starts: IntArray) -> Gram:
    """Return the Gram matrix of the queries on bucket counts.

    ``gram`` is W^T W, ``starts`` are the first cells of the buckets, and the result is V^T V.
    """
    lengths = np.diff(starts, append=gram.size)
    result = np.zeros((len(starts), len(starts)))
    at_once = max(1, _AT_ONCE // gram.size)
    for first in range(0, len(starts), at_once):
        part = slice(first, first + at_once)
        # The rows of T^T for some buckets, shape (buckets, cells). An entry is the share of a cell
        # in a bucket.
        shares = (
            np.repeat(np.arange(len(starts)), lengths) == np.arange(len(starts))[part, None]
        ) / lengths[part, None]
        result[part] = np.add.reduceat(gram.multiply_rows(shares), starts, axis=1) / lengths
    return dense_gram((result + result.T) / 2, gram.queries)


def difference_costs(
    gram: Gram, left_sizes: Sequence[IntArray], right_sizes: Sequence[IntArray]
) -> list[FloatArray]:
    """Return the squared error from a unit error in each block difference.

    The result has one number for each level and each aligned block. The difference is between the
    counts of the two halves of the block. The squared error is the total over all queries of the
    workload. ``left_sizes`` and ``right_sizes`` are the numbers of cells in the halves, by level.
    """
    costs = []
    for level, (before, after) in enumerate(zip(left_sizes, right_sizes, strict=True)):
        width = 2 << level
        real = (before > 0) & (after > 0)
        # The error is divided evenly among the cells of each half. Blocks with only one half have
        # no difference.
        halves = np.stack(
            [real / (2 * np.maximum(before, 1)), -(real / (2 * np.maximum(after, 1)))], axis=1
        )
        errors = np.repeat(halves.reshape(-1), width // 2)[: gram.size]
        cost = np.zeros(len(before))
        cost[: -(-gram.size // width)] = block_sums(
            errors * gram.block_products(errors, width), width
        )
        costs.append(cost)
    return costs


def bucket_strategy(attributes: tuple[str, ...], gram: Gram, starts: IntArray, norm: int) -> Factor:
    """Return the strategy on buckets with the least expected error.

    For few buckets, the strategy is p-Identity or the Gaussian optimum; for many buckets, it is a
    level tree.
    """
    factor = _bucket_factor(bucket_gram(gram, starts), norm)
    return Factor(attributes, Coarse(factor.operator, starts, gram.size), factor.row_weights)


def _bucket_factor(gram: Gram, norm: int) -> FittedFamily:
    """Return the strategy on buckets of least expected error for a Gram matrix."""
    k = gram.size
    if k == 1:
        return FittedFamily(Total(1))
    if not gram.diagonal().sum() > 0:  # all coefficients are 0
        return FittedFamily(Identity(k))
    # The budget is already paid, so this step must not fail. The fallback is to measure every
    # bucket.
    with suppress(*_FAULTS):
        if norm == 1 and k <= _MOST_P_IDENTITY:
            diagonal, rows = fit_p_identity(gram).dyadic()
            return FittedFamily(DiagonalAndRows(diagonal, rows) if len(rows) else Identity(k))
        if norm == 2 and k <= _MOST_OPTIMUM:
            optimum = fit_gaussian_optimum(gram).matrix
            stacked_rows = np.vstack(
                [optimum * math.sqrt(1 - _LEAST_WEIGHT**2), _LEAST_WEIGHT * np.eye(k)]
            )
            return FittedFamily(Dense(to_dyadic(stacked_rows)))
    with suppress(*_FAULTS):
        tree = fit_level_tree(gram, norm)
        # If a bucket has a very small weight, the error is computed inaccurately, as a difference
        # of huge numbers.
        if math.isfinite(tree.rmse) and tree.scales[0].min() > 1e-6:
            floor = _LEAST_WEIGHT * max(float(scale.max()) for scale in tree.scales)
            return tree_factor(
                k, tree.widths, [np.maximum(tree.scales[0], floor), *tree.scales[1:]]
            )
    return FittedFamily(Identity(k))


def total_cost(gram: Gram) -> float:
    """Return the squared error from a unit error in the total.

    This unit error is divided evenly among the cells.
    """
    return float(gram.multiply_rows(np.ones((1, gram.size))).sum()) / gram.size**2


def first_levels(
    costs: Sequence[float], total_error_cost: float, norm: int
) -> tuple[tuple[int, ...], FloatArray]:
    """Return the block widths to measure first, and the weights of the levels.

    The widest blocks have an eighth of all cells, because a total or prefix sum that consists of
    many blocks includes the noise of all of them. The levels between these blocks and the cells
    have about equal ratios of widths, at most 16. The weights minimise the error for the costs of
    the differences and the total. The weights are then multiplied by 1.3 for each level: shrinkage
    removes noise from narrow blocks, so wide blocks get more of the budget.
    """
    from scipy.optimize import minimize

    depth = len(costs)
    top = max(depth - 3, 0)
    steps = -(-top // 4)
    if steps:
        powers = [top * level_of // steps for level_of in range(steps + 1)]
    else:
        powers = [0]

    def weights_of(point: FloatArray) -> FloatArray:
        """Return the level weights at a point of the search, at privacy cost 1."""
        weights = np.exp(np.clip(point - point.max(), -9.0, 0.0))
        return np.asarray(weights / (weights**norm).sum() ** (1 / norm))

    def error(point: FloatArray) -> float:
        """Return the squared error of the level weights at a point."""
        variances = 1 / weights_of(point) ** 2
        upward = [float(variances[0])]  # variance of a block from the measurements inside it
        for variance, low, high in zip(variances[1:], powers[:-1], powers[1:], strict=True):
            below = upward[-1] * 2 ** (high - low)
            upward.append(below * float(variance) / (below + float(variance)))
        indices = np.searchsorted(powers, np.arange(depth), side="right") - 1
        parts = (
            costs[level] * 2 ** (level + 1 - powers[level_of]) * upward[level_of]
            for level, level_of in enumerate(indices.tolist())
        )
        return float(sum(parts) + total_error_cost * 2 ** (depth - top) * upward[-1])

    minimum = minimize(
        lambda point: math.log(error(point) + 1e-300),
        np.zeros(len(powers)),
        method="Nelder-Mead",
        options={"maxfev": 600, "xatol": 1e-3, "fatol": 1e-6},
    ).x
    raised = weights_of(minimum) * (1.3 if norm == 1 else 1.3**0.75) ** np.arange(len(powers))
    kept_levels = [
        level_of
        for level_of in range(len(powers))
        if level_of == 0 or raised[level_of] > 0.03 * raised.max()
    ]
    weights = np.maximum(raised[kept_levels], 0.03 * raised.max())
    return tuple(2 ** powers[level_of] for level_of in kept_levels), np.asarray(
        weights / (weights**norm).sum() ** (1 / norm)
    )


# The adaptive grid (docs/decisions/dawa.md). Costs and records are in units of 1 / epsilon.
PLANE_TEST_SHARE = Fraction(4, 100)
PLANE_FIRST_SHARE = Fraction(1, 4)
GROUP_SHARE = Fraction(2, 5)
# If the estimated number of buckets is above this share of the cells, no blocks are joined.
_MOST_BUCKET_SHARE = 0.6
_TEST_NOISE_FACTOR = 1.2  # the test has no power if its noise times this number exceeds the share
_BUCKETS_A_BLOCK = 7
# The first round has 16 to 64 blocks, or 128 or 256 if all queries are narrow.
_FIRST_ROUND_LEVELS = (4, 6)
_NARROW_LEVELS = (7, 8)
_MOST_NARROW_CELLS = 4  # maximum number of cells of a narrow query
_LEAST_GROUPED_HALVINGS = 4  # from this number of halvings on, parts are also measured in groups
# Target records in a part, in units of 1 / epsilon.
_LEAST_PART_RECORDS = 2.0
_MOST_PART_RECORDS = 11.0
# Blocks are joined if the target for all of them is at most this number of parts.
_JOINED_PART_RATIO = 0.5
_LIGHT_NARROW = 2.0


def plane_regime(
    partition_cost: Exact, epsilon: Exact, cells: int, *, is_narrow: bool = False
) -> tuple[str, int]:
    """Return whether the grid is "fixed" or of "blocks", and how many blocks.

    The regime is "fixed", or "blocks" with the number of blocks of the first round. Except for
    ``partition_cost``, the arguments are public numbers.
    """
    buckets = float(Fraction(partition_cost) * exact_positive("epsilon", epsilon))
    if max(buckets, _TEST_NOISE_FACTOR / float(PLANE_TEST_SHARE)) > _MOST_BUCKET_SHARE * cells:
        return "fixed", 0
    if is_narrow:
        fewest, most = _NARROW_LEVELS
    else:
        fewest, most = _FIRST_ROUND_LEVELS
    return "blocks", int(
        2 ** min(max(math.floor(math.log2(max(buckets, 1.0) / _BUCKETS_A_BLOCK)), fewest), most)
    )


def has_narrow_queries(weighted_queries: Sequence[tuple[float, tuple[Operator, Operator]]]) -> bool:
    """Return whether every query covers at most 4 cells."""
    for _, operators in weighted_queries:
        most_cells = [int((dense(operator) != 0).sum(axis=1).max()) for operator in operators]
        if math.prod(most_cells) > _MOST_NARROW_CELLS:
            return False
    return True


def records_per_part(buckets: float, records: float) -> float:
    """Return the target number of records in a part of the grid.

    The number is in units of the noise of a part.

    If no cell is significantly above the noise, the cost of a partition is close to the number of
    records, and parts can be large. If the records are concentrated in few cells, the cost is much
    smaller than the number of records, and parts must be small.
    """
    least = 4 / float(PLANE_TEST_SHARE)
    return min(
        max(
            _MOST_PART_RECORDS * (max(buckets, least) / max(records, least)) ** 1.5,
            _LEAST_PART_RECORDS,
        ),
        _MOST_PART_RECORDS,
    )


def first_level(tree: BlockTree, blocks: int) -> int:
    """Return the first level of a tree that has at least ``blocks`` blocks.

    If there is no such level, return the last level.
    """
    return next(
        (level for level, starts in enumerate(tree.starts) if len(starts) >= blocks),
        len(tree.starts) - 1,
    )


def divide_parts(
    tree: BlockTree,
    base_level: int,
    counts: IntArray,
    parts_per_record: Fraction,
    *,
    is_narrow: bool = False,
) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
    """Return the starts of parts and of groups, and flags of deep blocks.

    Parts and groups are the fine and the coarse layer of blocks in the grid's second round. The
    first pair of arrays has the starts of the parts and of the groups. For each part and each
    group, the second pair states whether it belongs to a deep block: one that is halved often.

    Based on its noisy count, each block of the level ``base_level`` is halved repeatedly, until
    each part has at most 1 / ``parts_per_record`` records. Blocks with few records are joined.
    """
    shares = np.asarray(counts * float(parts_per_record), dtype=np.float64)
    starts = tree.starts[base_level]
    first = _join_blocks(
        tree, base_level, shares, _LIGHT_NARROW if is_narrow else _JOINED_PART_RATIO
    )
    deserved = np.maximum(counts, 1) * float(parts_per_record)
    deserved[np.bincount(first)[first] > 1] = 1.0
    depth = np.clip(np.ceil(np.log2(deserved)), 0, len(tree.starts) - 1 - base_level).astype(
        np.int64
    )
    # Groups reduce the error of queries on many cells. Queries on few cells have the least error if
    # the parts get the whole budget of the round.
    many = (depth >= (len(tree.starts) if is_narrow else _LEAST_GROUPED_HALVINGS)).astype(np.int64)
    inner = starts[first != np.arange(len(starts))]
    layers = tuple(
        np.setdiff1d(_refine_blocks(tree, base_level, most), inner, assume_unique=True)
        for most in (depth, depth // 2)
    )
    parts, groups = (many[np.searchsorted(starts, layer, side="right") - 1] for layer in layers)
    return (layers[0], layers[1]), (parts, groups)


def _join_blocks(
    tree: BlockTree, base_level: int, deserved_parts: FloatArray, max_parts: float
) -> IntArray:
    """Return, for each base block, the first block of its merged part.

    Blocks are merged to the largest block of the tree that should have only a few parts.
    """
    first = np.arange(len(deserved_parts))
    unmerged = np.ones(len(deserved_parts), dtype=np.bool_)
    for level in range(base_level):
        begin = np.searchsorted(tree.starts[base_level], tree.starts[level])
        number = np.diff(begin, append=len(first))
        light = np.repeat(np.add.reduceat(deserved_parts, begin) <= max_parts, number) & unmerged
        first[light] = np.repeat(begin, number)[light]
        unmerged &= ~light
    return first


def _refine_blocks(tree: BlockTree, base_level: int, depths: IntArray) -> IntArray:
    """Return the starts of parts, after base blocks are halved to given depths."""
    starts = np.zeros(len(tree.order), dtype=np.bool_)
    for level in range(base_level, len(tree.starts)):
        block = np.searchsorted(tree.starts[base_level], tree.starts[level], side="right") - 1
        starts[tree.starts[level][depths[block] >= level - base_level]] = True
    return np.flatnonzero(starts)


_EXPONENT = 0.66
# Rows of an average bin, relative to the noise; 1.0 is 1% better on real tables and 1.3 times worse
# on chains.
_HELD = 0.5
_ROUNDS = 3


def table_precisions(cell_counts: Sequence[float], importance: Sequence[float]) -> FloatArray:
    """Return the relative precision (1 / std) of each table, at most 1.

    The precisions are computed from the numbers of cells and the importances.
    """
    weights = np.sqrt(
        np.asarray(cell_counts, dtype=np.float64) ** _EXPONENT * np.asarray(importance)
    )
    return np.asarray(weights / weights.max())


def bin_starts(cell_shares: FloatArray, target_share: float) -> IntArray:
    """Return the starts of bins with about the share ``target_share`` or more.

    A cell with at least this share closes the bin before it, and the last bin may have half the
    share. With at least two cells, there are at least two bins.
    """
    starts = [0]
    share_in_run = 0.0
    for cell, share in enumerate(cell_shares.tolist()):
        if share_in_run >= target_share or (share_in_run > 0 and share >= target_share):
            starts.append(cell)
            share_in_run = 0.0
        share_in_run += share
    if share_in_run < target_share / 2 and len(starts) > 1:
        starts.pop()
    if len(starts) == 1 and len(cell_shares) > 1:
        before = np.cumsum(cell_shares)[:-1]
        starts.append(1 + int(np.abs(before - 0.5).argmin()))
    return np.array(starts, dtype=np.int64)


def table_bins(cell_shares: Sequence[FloatArray], table_bin_share: float) -> tuple[IntArray, ...]:
    """Return the starts of a table's bins along each attribute.

    An average bin of the table has the share ``table_bin_share`` of the rows, so an average bin
    along one attribute has a larger share. Small attributes get fewer bins.
    """
    even_share = table_bin_share ** (1 / len(cell_shares))
    starts: dict[int, IntArray] = {}
    for side in sorted(
        range(len(cell_shares)), key=lambda axis: len(bin_starts(cell_shares[axis], even_share))
    ):
        starts[side] = bin_starts(
            cell_shares[side], min(table_bin_share ** (1 / (len(cell_shares) - len(starts))), 1.0)
        )
        table_bin_share = min(table_bin_share * len(starts[side]), 1.0)
    return tuple(starts[side] for side in range(len(cell_shares)))


def binned_tables(
    shares: Mapping[str, FloatArray],
    tables: Mapping[tuple[str, ...], float],
    total: float,
    std: float,
    norm: int,
) -> dict[tuple[str, ...], tuple[float, tuple[IntArray, ...]]]:
    """Choose the bins of each table, and the relative precision of each table.

    The choice uses noisy estimates, and no private number.

    Args:
        shares: estimated share of the rows in every cell of each attribute.
        tables: the attributes and the importance of each table.
        total: estimated number of rows.
        std: standard deviation of the noise of a table that gets the whole budget.
        norm: 1 for Laplace noise, 2 for Gaussian noise. With 1, the precisions add up to the
            budget; with 2, the squared precisions add up to the budget.
    """
    relative = last = np.ones(len(tables))
    table_bins_list: list[tuple[IntArray, ...]] = []
    for _ in range(_ROUNDS + 1):
        noise = std * (relative**norm).sum() ** (1 / norm) / relative
        target_share = _HELD * noise / np.maximum(total, noise)
        table_bins_list = []
        for names, share in zip(tables, target_share, strict=True):
            table_shares = [shares[name] for name in names]
            table_bins_list.append(table_bins(table_shares, float(share)))
        last = relative
        relative = table_precisions(
            [math.prod(map(len, starts)) for starts in table_bins_list], list(tables.values())
        )
    return {
        names: (float(precision), starts)
        for names, precision, starts in zip(tables, last, table_bins_list, strict=True)
    }
