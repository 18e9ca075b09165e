"""Hierarchies over consecutive cells, and Haar wavelets.

The best weights of the levels are found without a matrix, in O(n) for each level.

A tree is a chain of block widths ``1 = B_0 < B_1 < ...``, each a multiple of the previous one. A
node of level l is a block of B_l cells (the last block may be shorter), measured with a separate
scale. Let z be the square of the scale of a node. The Gram matrix of the strategy on a node is ``G
= z 11^T + blockdiag(G of the children)``. So by Sherman and Morrison ``tr(M G^-1) = sum over the
children - z m / (1 + z k)``. Here ``v`` is the solution of ``blockdiag(children) v = 1``, ``k = 1^T
v`` and ``m = v^T M v``. The v of the node is ``v / (1 + z k)``. docs/mathematics.md, section 2, has
the remaining parts: least squares by two passes, the variances of intervals, and a bound on the
largest of these variances.

If each level has one weight, there are closed forms, so all chains can be searched. Let ``tau_l =
tr(M P_l)``. P_l is the projection on vectors that are constant on the blocks of level l. A tree of
widths B_l and weights w_l has the error ``sum_l (tau_l - tau_(l+1)) / sum_(i <= l) w_i^2 B_i``. A
Haar wavelet has the error ``sum_l (tau_(l-1) - tau_l) / (w_l^2 B_l)``. If a width does not divide
n, the formulas are for a padded domain whose additional cells are not assumed to be empty. Under
L1, the best trees have few levels with very different widths, and further levels only add cost. So
chains of arbitrary widths are searched, instead of only the powers of one branching factor. Under
L2, every level reduces the error a little.

Source: Hay et al. 2010 (inference by two passes). All other parts of this file are from this
    project.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leastnoise._families._gram import FittedFamily, Gram, memoize_fit
from leastnoise._families._inverse import ENTRIES_IN_MEMORY, GramInverse, structured_inverse
from leastnoise._families._level_trees import LevelInverse, Levels
from leastnoise._families._queries import MOST_DENSE
from leastnoise._families._search import NotApplicable, minimize_lbfgs
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Haar, Tree, block_sums, repeat_entries
from leastnoise._trusted.measurements import Factor

Part = tuple[FloatArray, FloatArray]
"""Two numbers for every suffix or prefix of a node, or for every run of them."""
_MOST_RUNS = 16  # maximum number of runs of suffixes or prefixes of a child; each run has one bound
_SQUARE_SUM_ROUNDING = 2.0**-50  # relative rounding error of a sum of squares
# Logarithm of the least weight relative to the largest; with smaller weights of the cells, rounding
# errors exceed the error.
_LEAST_LOG_WEIGHT = -6.0
# The number of best chains of each length that are descended from further, after common steps.
_BEST_CHAINS = 12
_DESCENT_STEPS = 20  # the most L-BFGS steps on the level weights
# The level weights of all chains are improved by common steps. Beyond these numbers of cells there
# are more chains, so fewer steps and fewer refits limit the time of a fit.
_MOST_SMALL_CELLS = 2**16
_COMMON_STEPS_SMALL = 300
_COMMON_STEPS_LARGE = 60
_MOST_CELLS_WITH_MANY_REFITS = 4096
_REFITTED_CHAINS_SMALL = 32
_REFITTED_CHAINS_LARGE = 4
_REFIT_STEPS = 20  # common steps on the weights of the chains without their negligible levels
_LEAST_KEPT_FACTOR = 1.01  # levels of less than this factor times the least weight are dropped
_WEIGHT_BITS = 20  # the most bits of row weights
# The least bits of row weights: with 5 bits, the error of a tree on four attributes was 0.02%
# larger than with 9.
_LEAST_WEIGHT_BITS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledTree:
    """A hierarchy of blocks in which every node has its own scale.

    Attributes:
        size: number of cells n.
        widths: the number of cells in a block of each level; the first is 1, and each is a multiple
            of the previous one. The last block may be shorter.
        scales: for each level, the scales of its nodes. The largest norm of the scales from a root
            to a cell is 1.
        norm: 1 for pure DP, 2 for a Gaussian budget.
        rmse: unit RMSE, exact.
    """

    size: int
    widths: tuple[int, ...]
    scales: tuple[FloatArray, ...]
    norm: int
    rmse: float

    def matrix(self) -> FloatArray:
        """Return the strategy as a matrix with one row per node, cells first."""
        levels = zip(self.widths, self.scales, strict=True)
        return np.vstack(
            [
                scale[:, None]
                * np.equal.outer(np.arange(len(scale)), np.arange(self.size) // width)
                for width, scale in levels
            ]
        )


def full_chain(size: int, branching: int) -> tuple[int, ...]:
    """Return the block widths 1, b, b^2, ... that reach ``size`` cells."""
    return Tree.full(size, branching).widths[::-1]


def tree_error(gram: Gram, widths: Sequence[int], squared_scales: Sequence[FloatArray]) -> float:
    """Return ``tr(M (A^T A)^-1)`` for a hierarchy A.

    ``squared_scales`` are the squared scales of the nodes of each level, the cells first.
    """
    vector = 1 / squared_scales[0]
    error = error_so_far = float(gram.diagonal() @ vector)
    for width, z in zip(widths[1:], squared_scales[1:], strict=True):
        product = gram.block_products(vector, width)
        k = block_sums(vector, width)
        m = block_sums(vector * product, width)
        shrink = 1 / (1 + k * z)
        error -= float((z * m) @ shrink)
        vector = vector * repeat_entries(shrink, width, gram.size)
    return max(error, error_so_far * _SQUARE_SUM_ROUNDING)


def _log_errors_and_gradients(
    log_weights: FloatArray, trace_drops: FloatArray, widths: FloatArray, norm: int
) -> tuple[FloatArray, FloatArray]:
    """Return log squared errors of width chains, and their gradients.

    The gradients are with respect to the logarithms of the weights.
    """
    amounts = np.exp(2 * log_weights) * widths
    each = trace_drops / np.cumsum(amounts, axis=-1)
    error = each.sum(axis=-1)
    shares = np.exp(norm * log_weights) * (widths > 0)
    spent = shares.sum(axis=-1)
    later = np.cumsum((each**2 / np.where(trace_drops > 0, trace_drops, 1.0))[..., ::-1], axis=-1)[
        ..., ::-1
    ]
    slope = 2 * shares / spent[..., None] - 2 * amounts * later / error[..., None]
    return np.log(error) + 2 / norm * np.log(spent), slope


def _clamp_logs(log_weights: FloatArray, widths: FloatArray) -> FloatArray:
    """Return log weights shifted to maximum 0 and clipped from below."""
    used = np.where(widths > 0, log_weights, -np.inf)
    return np.maximum(used - used.max(axis=-1, keepdims=True), _LEAST_LOG_WEIGHT)


def _trace_drops(
    chains: Sequence[tuple[int, ...]], traces: Mapping[int, float]
) -> tuple[FloatArray, FloatArray]:
    """Return trace differences and widths of chains, (chains, levels).

    Shorter chains are padded with zeros.
    """
    most = max(map(len, chains))
    tau = np.zeros((len(chains), most + 1))
    for row, chain in zip(tau, chains, strict=True):
        row[: len(chain)] = [traces[width] for width in chain]
    widths = np.array([(*chain, *[0] * (most - len(chain))) for chain in chains], dtype=float)
    return np.maximum(tau[:, :-1] - tau[:, 1:], 0.0), widths


def _optimize_weights(
    trace_drops: FloatArray, widths: FloatArray, norm: int, common_steps: int
) -> tuple[IntArray, FloatArray]:
    """Optimise the weights of chains; return the best chains and weights.

    The result has the indices of the chains, best first, and the weights of each of these chains.
    """
    # Gradient steps are applied to all chains at once. These few steps do not identify the best
    # chain, so the best chains of each length are then optimised by full descents.
    logs = _clamp_logs(np.zeros(trace_drops.shape), widths)
    for step in range(common_steps):
        _, slope = _log_errors_and_gradients(logs, trace_drops, widths, norm)
        logs = _clamp_logs(logs - (0.5 / (1 + step / 100)) * slope, widths)
    ranked = np.argsort(
        _log_errors_and_gradients(logs, trace_drops, widths, norm)[0], kind="stable"
    )
    levels = (widths > 0).sum(axis=-1)
    best = np.concatenate(
        [ranked[levels[ranked] == count][:_BEST_CHAINS] for count in np.unique(levels)]
    )
    ends = [_descend(logs[chain], trace_drops[chain], widths[chain], norm) for chain in best]
    order = np.argsort([error for _, error in ends], kind="stable")
    return best[order], np.array([weights for weights, _ in ends])[order]


def _descend(
    log_weights: FloatArray, trace_drops: FloatArray, widths: FloatArray, norm: int
) -> tuple[FloatArray, float]:
    """Return the best weights of one chain by descent, and the squared error."""
    used = widths > 0

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        """Return the squared error at log weights, and its gradient."""
        value, slope = _log_errors_and_gradients(
            point + _LEAST_LOG_WEIGHT, trace_drops[used], widths[used], norm
        )
        return math.exp(value), math.exp(value) * slope

    point, error = minimize_lbfgs(
        objective, log_weights[used] - _LEAST_LOG_WEIGHT, -_LEAST_LOG_WEIGHT, _DESCENT_STEPS
    )
    weights = np.zeros(len(widths))
    weights[used] = np.exp(point + _LEAST_LOG_WEIGHT)
    return weights, error


def _candidate_chains(size: int, norm: int) -> list[tuple[int, ...]]:
    """Return the chains of block widths to compare."""
    if norm == 2:
        return [
            full_chain(size, branching)
            for branching in (2, 3, 4, 5, 6, 8, 12, 16)
            if branching <= 2 * size
        ]
    factors = (2, 3) if size <= 2**16 else (2,)
    multiples: set[int] = set()
    for factor in factors:
        multiples.update(factor * 2**power for power in range(40))
    ratios = sorted(ratio for ratio in multiples if ratio < 4 * size)
    chains: list[tuple[int, ...]] = [(1,)]
    for depth in (1, 2, 3, 4):
        if depth > 1:
            steps = [ratio for ratio in ratios if ratio <= max(64, 2 * size ** (1 / depth))]
        else:
            steps = ratios
        for tree_ratios in itertools.product(steps if depth < 4 else [4, 8, 16, 32], repeat=depth):
            widths = tuple(itertools.accumulate((1, *tree_ratios), int.__mul__))
            # A single level with one block is enough, of width at most the number of cells.
            if len(widths) < 2 or widths[-2] < size:
                if len(widths) > 1:
                    below = widths[-2]
                else:
                    below = 1
                chains.append((*widths[:-1], min(widths[-1], -(-size // below) * below)))
    return list(dict.fromkeys(chains))


def weighted_tree(gram: Gram, widths: Sequence[int], weights: FloatArray, norm: int) -> ScaledTree:
    """Return the hierarchy with one weight per level, at sensitivity 1.

    The result also has the exact error of this hierarchy.
    """
    scaled = weights / np.linalg.norm(weights, ord=norm)
    scales = tuple(
        np.broadcast_to(weight, -(-gram.size // width))
        for weight, width in zip(scaled, widths, strict=True)
    )
    if all(gram.size % width == 0 for width in widths):
        tau = np.append(gram.block_traces(widths), 0.0)
        error = float(((tau[:-1] - tau[1:]) / np.cumsum(scaled**2 * np.array(widths))).sum())
    else:
        error = tree_error(gram, widths, [scale**2 for scale in scales])
    return ScaledTree(
        size=gram.size,
        widths=tuple(widths),
        scales=scales,
        norm=norm,
        rmse=math.sqrt(error / gram.queries),
    )


def even_tree(gram: Gram, branching: int, norm: int) -> ScaledTree:
    """Return the hierarchy with equal weights and a given branching factor."""
    widths = full_chain(gram.size, branching)
    return weighted_tree(gram, widths, np.ones(len(widths)), norm)


def uniform_tree(gram: Gram, norm: int) -> ScaledTree:
    """Return the hierarchy with equal weights and the best branching factor."""
    candidates = sorted(
        {*range(2, 34), *(2**power for power in range(6, 40) if 2**power < 2 * gram.size)}
    )
    # Each branching factor is tried with and without the total, which hardly helps for short
    # ranges.
    chains = []
    for b in candidates:
        with_total = full_chain(gram.size, b)
        chains += [with_total, with_total[:-1] or (1,)]
    widths = sorted(set().union(*chains))
    traces = dict(zip(widths, gram.block_traces(widths), strict=True))

    def score(chain: Sequence[int]) -> float:
        """Return the squared error of a chain with equal weights."""
        levels = np.array([*(traces[width] for width in chain), 0.0])
        return len(chain) ** (3 - norm) * float(
            ((levels[:-1] - levels[1:]) / np.cumsum(chain)).sum()
        )

    best = min(chains, key=score)
    return weighted_tree(gram, best, np.ones(len(best)), norm)


@memoize_fit
def fit_level_tree(gram: Gram, norm: int) -> ScaledTree:
    """Return the hierarchy with the best widths and level weights."""
    plain = set()
    steps = _COMMON_STEPS_LARGE
    if gram.size <= _MOST_SMALL_CELLS:
        plain = {uniform_tree(gram, norm).widths}
        steps = _COMMON_STEPS_SMALL
    refitted = _REFITTED_CHAINS_LARGE
    if gram.size <= _MOST_CELLS_WITH_MANY_REFITS:
        refitted = _REFITTED_CHAINS_SMALL
    chains = sorted({*_candidate_chains(gram.size, norm), *plain}, key=len)
    widths = sorted(set().union(*chains))
    traces = dict(zip(widths, gram.block_traces(widths), strict=True))
    best, weights = _optimize_weights(*_trace_drops(chains, traces), norm, steps)
    # Levels with the least possible weight are dropped, and the other levels are weighted again.
    shorter = []
    for index, row in zip(best, weights, strict=True):
        least = _LEAST_KEPT_FACTOR * math.exp(_LEAST_LOG_WEIGHT) * row.max()
        levels = zip(chains[index], row, strict=False)
        shorter.append(tuple(width for width, weight in levels if width == 1 or weight > least))
    shorter = list(dict.fromkeys(shorter))[:refitted]
    best, weights = _optimize_weights(*_trace_drops(shorter, traces), norm, _REFIT_STEPS)
    trees = [
        weighted_tree(gram, shorter[index], row[: len(shorter[index])], norm)
        for index, row in zip(best, weights, strict=True)
    ]
    return min(trees, key=lambda tree: tree.rmse)


def haar_weights(gram: Gram, norm: int) -> FloatArray:
    """Return the optimal weights of Haar wavelet levels, in closed form.

    The weight of the total comes first, followed by the weights of the differences of halves,
    widest first.
    """
    widths = full_chain(gram.size, 2)
    traces = gram.block_traces(widths)
    cost = np.concatenate([[traces[-1]], (traces[:-1] - traces[1:])[::-1]]) / np.array(
        [widths[-1], *widths[:0:-1]]
    )
    weights = np.maximum(cost, 1e-12 * cost.max()) ** (1 / (2 + norm))
    return np.asarray(weights / np.linalg.norm(weights, ord=norm))


def tree_factor(
    size: int, widths: Sequence[int], scales: Sequence[FloatArray], bits: int = _WEIGHT_BITS
) -> FittedFamily:
    """Return the hierarchy with given node scales, rounded to ``bits`` bits.

    Nothing is fitted. Levels of weight 0 are dropped.
    """
    used = [level for level in reversed(range(len(widths))) if scales[level].max() > 0]
    tree = Tree(size, tuple(int(widths[level]) for level in used))
    return _round_row_weights(tree, np.concatenate([scales[level] for level in used]), bits)


def _round_row_weights(operator: Haar | Tree, weights: FloatArray, bits: int) -> FittedFamily:
    """Return a strategy with row weights rounded to integers.

    A weight that rounds to 0 is replaced by the least weight, which has a negligible cost. The
    weights along all attributes of a table are multiplied with each other. Scales with products of
    more than about 30 bits are rounded up, or cannot be drawn.
    """
    bits = min(_WEIGHT_BITS, max(_LEAST_WEIGHT_BITS, bits))
    rounded = np.maximum(1, np.rint(weights / weights.max() * 2**bits)).astype(np.int64)
    return FittedFamily(operator, None if (rounded == rounded[0]).all() else rounded)


def best_hierarchy(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return the hierarchy with equal weights and the best branching factor.

    The coefficients of this hierarchy are integers, so the argument ``bits``, which every family
    has, is not used.
    """
    widths = uniform_tree(gram, norm).widths
    return tree_factor(gram.size, widths, [np.ones(-(-gram.size // width)) for width in widths])


def level_tree(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return the hierarchy with the best weight for each level, in integers."""
    tree = fit_level_tree(gram, norm)
    return tree_factor(gram.size, tree.widths, tree.scales, bits)


def haar(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return the Haar wavelet with the best weight for each level, in integers."""
    if gram.size > MOST_DENSE:
        raise NotApplicable(
            f"the wavelet's error bars need a matrix of {gram.size} x {gram.size}; at most "
            f"{MOST_DENSE} cells are allowed"
        )
    operator = Haar(gram.size)
    counts = [1, *(-(-gram.size // width) for width in operator.widths)]
    return _round_row_weights(operator, np.repeat(haar_weights(gram, norm), counts), bits)


class TreeInverse(GramInverse):
    """The inverse Gram matrix of a hierarchy, in implicit form.

    The matrix is never computed. A hierarchy corresponds to levels whose groups are blocks of
    cells.
    """

    def __init__(self, tree: Tree, precision: FloatArray) -> None:
        self.size = tree.size
        # Level by level, from the cells up to the root: the precision of each node, and the number
        # of its children.
        precisions = np.split(np.asarray(precision, dtype=float), np.cumsum(tree.level_sizes)[:-1])[
            ::-1
        ]
        self.ratios = [wide // narrow for wide, narrow in itertools.pairwise(tree.widths)][::-1]
        if len(precisions[-1]) > 1:  # add the root, which is not measured
            self.ratios.append(len(precisions[-1]))
            precisions.append(np.zeros(1))
        parents = [
            np.arange(len(level)) // ratio
            for level, ratio in zip(precisions, self.ratios, strict=False)
        ]
        self.levels = LevelInverse(Levels(tuple(parents)), tuple(precisions))
        # Whether in every level all nodes have the same precision and the same number of cells.
        self.alike = tree.size % tree.widths[0] == 0 and all(
            (level == level[0]).all() for level in precisions
        )
        # Three variances. First, for each node, the variance from the measurements within it.
        # Second, for all levels but the cells, the sum of these variances over the children. Third,
        # for each node, the variance from all measurements.
        _, self.upward, self.below, self.posterior = self.levels.group_variances

    def solve(self, v: FloatArray) -> FloatArray:
        """Return the inverse Gram matrix times a vector."""
        return self.levels.solve(v)

    @cached_property
    def prefix_variances(self) -> FloatArray:
        """The variances of the sums of the first 1, 2, ..., n cells."""
        # On the way up, the sum of a node's first cells is a share of the node's value plus
        # independent noise. Share and noise are computed for all prefixes of all nodes of a level
        # at once.
        share = np.ones(self.size)
        noise = np.zeros(self.size)
        width = 1
        for upward, below, ratio in zip(self.upward, self.below, self.ratios, strict=False):
            before = np.cumsum(upward) - upward
            siblings = repeat_entries(
                before - repeat_entries(before[::ratio], ratio, len(upward)), width, self.size
            )
            summed = repeat_entries(below, ratio * width, self.size)
            share, noise = _lift_to_parent(
                share, noise, repeat_entries(upward, width, self.size), siblings, summed
            )
            width *= ratio
        answer = np.asarray(share**2 * self.upward[-1][0] + noise, dtype=np.float64)
        answer.setflags(write=False)
        return answer

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the variance of the sum of cells low..high, for each range."""
        answer = np.empty(len(low))
        # At every level, a range consists of two parts: a prefix of the node that contains its end,
        # and a suffix of the node that contains its start. Each part is share * (node's value) +
        # independent noise of this variance.
        starts = low
        ends = high
        open_ = low != high
        from_start = np.ones(len(low))
        noise_start = np.zeros(len(low))
        to_end = np.ones(len(low))
        noise_end = np.zeros(len(low))
        answer[~open_] = self.posterior[0][low[~open_]]
        for upward, ratio, summed, above in zip(
            self.upward, self.ratios, self.below, self.posterior[1:], strict=False
        ):
            sums_before = np.concatenate([[0.0], np.cumsum(upward)])
            parent_start = starts // ratio
            parent_end = ends // ratio
            meet = open_ & (parent_start == parent_end)
            if meet.any():
                s = starts[meet]
                e = ends[meet]
                p = parent_start[meet]
                middle = sums_before[e] - sums_before[s + 1]
                first = from_start[meet]
                last = to_end[meet]
                linear = first * upward[s] + middle + last * upward[e]
                square = first**2 * upward[s] + middle + last**2 * upward[e]
                share = linear / summed[p]
                answer[meet] = (
                    noise_start[meet]
                    + noise_end[meet]
                    + square
                    - linear * share
                    + share**2 * above[p]
                )
                open_ &= ~meet
            # Move the two parts up one level. The part at the end of the range absorbs its
            # preceding siblings, and the part at the start absorbs its following siblings.
            begin = sums_before[parent_end * ratio]
            finish = sums_before[np.minimum((parent_start + 1) * ratio, len(upward))]
            to_end, noise_end = _lift_to_parent(
                to_end, noise_end, upward[ends], sums_before[ends] - begin, summed[parent_end]
            )
            from_start, noise_start = _lift_to_parent(
                from_start,
                noise_start,
                upward[starts],
                finish - sums_before[starts + 1],
                summed[parent_start],
            )
            starts = parent_start
            ends = parent_end
        return answer

    def bound_of_ranges(self) -> float:
        """Return an upper bound on the variances of all ranges of cells.

        The bound is a few per cent above the largest variance, and exact if nodes have at most 16
        children.
        """
        best = float(self.posterior[0].max())
        width = 1
        # For each cell, the share and the noise of the suffix and the prefix of its node. If all
        # nodes are alike, only for one node.
        from_start = to_end = (
            np.ones(1 if self.alike else self.size),
            np.zeros(1 if self.alike else self.size),
        )
        for level, ratio in enumerate(self.ratios):
            if self.alike:
                parents = 1
            else:
                parents = len(self.below[level])
            nodes: FloatArray = np.zeros((parents, ratio))  # the children of each parent
            here = self.upward[level][: parents * ratio]
            nodes.reshape(-1)[: len(here)] = here
            summed = self.below[level][:parents]
            above = self.posterior[level + 1][:parents]
            if self.alike:
                from_start, to_end = (
                    (np.tile(share, ratio), np.tile(noise, ratio))
                    for share, noise in (from_start, to_end)
                )
            cells = len(to_end[0])
            upward = np.repeat(nodes.reshape(-1), width)[:cells]
            ends = _largest_by_run(to_end, upward, width, parents * ratio)
            starts = _largest_by_run(from_start, upward, width, parents * ratio)
            best = max(best, _bound_ranges_across(nodes, summed, above, starts, ends))
            sums_before = np.cumsum(nodes, axis=1) - nodes
            sums_after = nodes.sum(axis=1, keepdims=True) - sums_before - nodes
            expanded = np.repeat(summed, ratio * width)[:cells]
            from_start, to_end = (
                _lift_to_parent(
                    *part, upward, np.repeat(siblings.reshape(-1), width)[:cells], expanded
                )
                for part, siblings in ((from_start, sums_after), (to_end, sums_before))
            )
            width *= ratio
        return best


def _lift_to_parent(
    node_share: FloatArray,
    noise_variance: FloatArray,
    node_variance: FloatArray,
    sibling_variance: FloatArray,
    total_variance: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Convert a prefix's share and noise variance from a node to its parent."""
    linear = node_share * node_variance + sibling_variance
    return (
        linear / total_variance,
        noise_variance
        + node_share**2 * node_variance
        + sibling_variance
        - linear**2 / total_variance,
    )


def _largest_by_run(
    shares_and_noise: Part, node_variances: FloatArray, node_width: int, node_count: int
) -> Part:
    """Return each run's largest variance, for runs of prefixes or suffixes.

    The second array has, for each run, the least product of a share and the variance of its node.
    Both arrays have shape (nodes, runs).
    """
    share, noise = shares_and_noise
    runs = next(
        count for count in range(min(node_width, _MOST_RUNS), 0, -1) if node_width % count == 0
    )
    most = np.full(node_count * node_width, -np.inf)
    least = np.zeros(node_count * node_width)
    most[: len(share)] = noise + share**2 * node_variances
    least[: len(share)] = share * node_variances
    return most.reshape(node_count, runs, -1).max(axis=2), least.reshape(node_count, runs, -1).min(
        axis=2
    )


def _bound_ranges_across(
    node_variances: FloatArray,
    summed_variances: FloatArray,
    parent_variances: FloatArray,
    starts: Part,
    ends: Part,
) -> float:
    """Return an upper bound on the variances of ranges over several children.

    The bound holds for all parents and all pairs of their children.
    """
    parents, ratio = node_variances.shape
    runs = starts[0].shape[1]
    sums_before = np.cumsum(node_variances, axis=1) - node_variances
    curve = (1 - parent_variances / summed_variances) / summed_variances
    a, x, b, y = (values.reshape(parents, ratio, runs) for values in (*starts, *ends))
    best = 0.0
    step = max(1, ENTRIES_IN_MEMORY // runs**2)
    for first in range(0, parents, step):
        part = slice(first, first + step)
        for s in range(ratio):
            for e in range(s + 1, ratio):
                middle = (sums_before[part, e] - sums_before[part, s] - node_variances[part, s])[
                    :, None, None
                ]
                linear = x[part, s, :, None] + y[part, e, None, :] + middle
                variances = (
                    a[part, s, :, None]
                    + b[part, e, None, :]
                    + middle
                    - curve[part, None, None] * linear**2
                )
                best = max(best, float(variances.max()))
    return best


@structured_inverse.register
def _(operator: Tree, factor: Factor) -> GramInverse | None:
    """Return a hierarchy's inverse Gram matrix; None if it measures no cells."""
    if operator.widths[-1] == 1:
        return TreeInverse(operator, factor.weights.astype(float) ** 2)
    return None
