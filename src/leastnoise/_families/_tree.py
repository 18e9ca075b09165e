"""Hierarchies over consecutive cells: error and gradient in O(n) a level, without any matrix.

A tree is a chain of block widths ``1 = B_0 < B_1 < ...``, each a multiple of the one before. A node of level l is a block of B_l
cells (the last one may be shorter), measured with its own scale. With z the square of that scale, the strategy's Gram on a node is
``G = z 11^T + blockdiag(G of the children)``, so that by Sherman and Morrison
``tr(M G^-1) = sum over the children - z m / (1 + z k)``, where ``v`` solves ``blockdiag(children) v = 1``, ``k = 1^T v``, ``m = v^T M v``;
and the node's own v is ``v / (1 + z k)``. Least squares by two passes, variances of intervals and a bound on the largest of them are in
docs/mathematics.md, section 2.

Source: Hay et al. 2010 (inference by two passes); the gradient is the reverse pass of the recursion.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._gram import Gram
from leastnoise._families._inverse import _NUMBERS, Basis, Solved, structured
from leastnoise._families._queries import apply_gram, interval_ends
from leastnoise._linop import AllRanges, Operator, Tree, run_spread, run_sums
from leastnoise._measurements import Factor

_ROUNDING = 2.0**-50  # of a sum of squares
Part = tuple[FloatArray, FloatArray]
"""Two numbers for every suffix, prefix or run of them."""
_RUNS = 16  # of a child's suffixes or prefixes, at most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledTree:
    """A hierarchy with one scale a node."""

    size: int  # number of cells n
    widths: tuple[int, ...]  # cells in a block of each level, the first 1, each a multiple of the one before; a last block may be shorter
    scales: tuple[FloatArray, ...]  # for each level the scales of its nodes; the largest norm of the scales from a root to a cell is 1
    norm: int  # 1 for pure DP, 2 for a Gaussian budget
    rmse: float  # unit RMSE, exact

    def matrix(self) -> FloatArray:
        """The strategy as a matrix, one row a node, cells first."""
        levels = zip(self.widths, self.scales, strict=True)
        return np.vstack([scale[:, None] * np.equal.outer(np.arange(len(scale)), np.arange(self.size) // width) for width, scale in levels])


def full_chain(size: int, branching: int) -> tuple[int, ...]:
    """The widths 1, b, b^2, ... up to the first that covers all cells."""
    widths = [1]
    while widths[-1] < size:
        widths.append(widths[-1] * branching)
    return tuple(widths)


def node_counts(size: int, widths: Sequence[int]) -> tuple[int, ...]:
    """Number of nodes of each level."""
    return tuple(-(-size // width) for width in widths)


def tree_error(
    gram: Gram, widths: Sequence[int], squares: Sequence[FloatArray], *, gradient: bool = True
) -> tuple[float, list[FloatArray]]:
    """``tr(M (A^T A)^-1)`` of a tree and its derivatives."""
    size = gram.size
    vector = 1 / squares[0]
    error = known = float(gram.diagonal() @ vector)
    stored: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]] = []
    for width, z in zip(widths[1:], squares[1:], strict=True):
        product = gram.block_products(vector, width)
        k, m = run_sums(vector, width), run_sums(vector * product, width)
        shrink = 1 / (1 + k * z)
        error -= float((z * m) @ shrink)
        stored.append((vector, product, k, m, shrink))
        vector = vector * run_spread(shrink, width, size)
    error = max(error, known * _ROUNDING)
    if not gradient:
        return error, []
    slopes: list[FloatArray] = []
    back = np.zeros(size)
    for (vector, product, k, m, shrink), width, z in zip(reversed(stored), widths[:0:-1], squares[:0:-1], strict=True):
        by_divisor = (z * m - run_sums(back * vector, width)) * shrink**2
        slopes.append(by_divisor * k - m * shrink)
        back = back * run_spread(shrink, width, size) + run_spread(by_divisor * z, width, size)
        back -= 2 * run_spread(z * shrink, width, size) * product
    slopes.append(-(gram.diagonal() + back) / squares[0] ** 2)
    return error, slopes[::-1]


def scaled_tree(gram: Gram, widths: Sequence[int], scales: Sequence[FloatArray], norm: int) -> ScaledTree:
    """A hierarchy of given scales, divided by its sensitivity, with its exact error."""
    paths = sum(run_spread(np.abs(scale) ** norm, width, gram.size) for scale, width in zip(scales, widths, strict=True))
    sensitivity = float(np.max(paths)) ** (1 / norm)
    unit = tuple(scale / sensitivity for scale in scales)
    error, _ = tree_error(gram, widths, [scale**2 for scale in unit], gradient=False)
    return ScaledTree(size=gram.size, widths=tuple(widths), scales=unit, norm=norm, rmse=math.sqrt(error / gram.queries))


def path_scales(widths: Sequence[int], shares: Sequence[FloatArray], norm: int, size: int) -> list[FloatArray]:
    """Scales of nodes from shares: each node takes its share of what its ancestors have left of 1, the cells take the rest."""
    # Under L2 what is shared out is the sum of squares. ``shares`` is for the levels above the cells, the narrowest first.
    left = np.ones(len(shares[-1])) if shares else np.ones(size)
    scales: list[FloatArray] = []
    for level in range(len(shares) - 1, -1, -1):
        scales.append((left * shares[level]) ** (1 / norm))
        count = len(shares[level - 1]) if level else size
        left = np.repeat(left * (1 - shares[level]), widths[level + 1] // widths[level])[:count]
    scales.append(left ** (1 / norm))
    return scales[::-1]


@dataclass(frozen=True, eq=False)
class TreeInverse(Solved):
    """The inverse of G = F^T diag(precision) F for a hierarchy F, never formed."""

    # What is asked for more than once (the planner, the promise and the error bars all need the variances of prefixes) is kept.

    tree: Tree
    precision: FloatArray
    ratios: tuple[int, ...] = field(init=False, repr=False)  # children of a node of each level, from the root down
    # variance of the nodes of each level from their subtrees; where ``alike``, a view of one number
    own: tuple[FloatArray, ...] = field(init=False, repr=False)
    below: tuple[FloatArray, ...] = field(init=False, repr=False)  # sum of their children's variances, the same way; not of the cells
    alike: bool = field(init=False, repr=False)  # whether all nodes of each level have the same precision and the same number of cells

    def __post_init__(self) -> None:
        widths = self.tree.widths
        ratios = [wide // narrow for wide, narrow in pairwise(widths)]
        precisions = np.split(np.asarray(self.precision, dtype=float), np.cumsum(self.tree.level_sizes)[:-1])
        if len(precisions[0]) > 1:  # a root that is not measured
            ratios.insert(0, len(precisions[0]))
            precisions.insert(0, np.zeros(1))
        counts = [len(level) for level in precisions]
        alike = all(self.tree.size % width == 0 for width in widths) and all((level == level[0]).all() for level in precisions)
        if alike:
            precisions = [level[:1] for level in precisions]
        own: list[FloatArray] = [1 / precisions[-1]]
        below: list[FloatArray] = []
        for precision, ratio in zip(precisions[-2::-1], reversed(ratios), strict=True):
            below.insert(0, ratio * own[0] if alike else run_sums(own[0], ratio))
            own.insert(0, 1 / (precision + 1 / below[0]))
        object.__setattr__(self, "ratios", tuple(ratios))
        object.__setattr__(self, "own", tuple(np.broadcast_to(level, count) for level, count in zip(own, counts, strict=True)))
        object.__setattr__(self, "below", tuple(np.broadcast_to(level, count) for level, count in zip(below, counts[:-1], strict=True)))
        object.__setattr__(self, "alike", alike)

    @cached_property
    def mean(self) -> FloatArray:
        return np.full(self.size, 1 / self.size) if self.alike else self.solved_mean()

    @property
    def size(self) -> int:
        return self.tree.size

    @property
    def kappa(self) -> float:
        return float(self.own[0][0])

    def solve(self, v: FloatArray) -> FloatArray:
        """G^-1 v along the first axis, by the two passes."""
        column = (slice(None),) + (None,) * (v.ndim - 1)
        estimates = [v * self.own[-1][column]]
        for own, below, ratio in zip(self.own[-2::-1], self.below[::-1], reversed(self.ratios), strict=True):
            # Only the cells carry data here, so a node's estimate is its children's, shrunk by its own measurement of zero.
            estimates.insert(0, run_sums(estimates[0], ratio) * (own / below)[column])
        for level, ratio in enumerate(self.ratios, 1):
            own = self.own[level]
            missing = (estimates[level - 1] - run_sums(estimates[level], ratio)) / self.below[level - 1][column]
            estimates[level] = estimates[level] + own[column] * run_spread(missing, ratio, len(own))
        return estimates[-1]

    def total_variance(self, operator: Operator) -> float:
        if operator != AllRanges(self.size) and operator.rows > operator.size and interval_ends(operator) is None:
            return float(np.trace(self.solve(apply_gram(operator, np.eye(operator.size)))))  # of many rows by their Gram matrix
        return super().total_variance(operator)

    def bound_of_ranges(self) -> float:
        return largest_on_tree(self)

    @cached_property
    def posterior(self) -> tuple[FloatArray, ...]:
        """Variance of every node's final estimate, level by level from the root."""
        final: list[FloatArray] = [self.own[0]]
        for level, ratio in enumerate(self.ratios, 1):
            own = self.own[level]
            summed = run_spread(self.below[level - 1], ratio, len(own))
            final.append(own - own**2 / summed + (own / summed) ** 2 * run_spread(final[-1], ratio, len(own)))
        return tuple(final)

    @cached_property
    def prefix_variances(self) -> FloatArray:
        """Variance of the estimated sums of the first 1, 2, ..., n cells, shape (size,), not to be written to."""
        # Going up, a prefix of a node is a share of the node's value and independent noise; for the first cells of all nodes of a level at
        # once. Where the nodes are alike so are their prefixes, which are then those of one node: share (i + 1) / width.
        if self.alike:
            noise, width = np.zeros(1), 1
            for own, ratio in zip(self.own[:0:-1], reversed(self.ratios), strict=True):
                share, before = np.arange(1.0, width + 1) / width, np.arange(float(ratio))[:, None]
                # share^2 + before - (share + before)^2 / ratio, multiplied out so that few terms need all the cells.
                fixed = noise + own[0] * (1 - 1 / ratio) * share**2
                noise = (fixed + own[0] * (before - before**2 / ratio) - (2 * own[0] / ratio * before) * share).reshape(-1)
                width *= ratio
            share = np.arange(1.0, width + 1) / width
        else:
            share, noise, width = np.ones(self.size), np.zeros(self.size), 1
            for own, below, ratio in zip(self.own[:0:-1], self.below[::-1], reversed(self.ratios), strict=True):
                before = np.cumsum(own) - own
                siblings = run_spread(before - run_spread(before[::ratio], ratio, len(own)), width, self.size)
                summed = run_spread(below, ratio * width, self.size)
                share, noise = _lift(share, noise, run_spread(own, width, self.size), siblings, summed)
                width *= ratio
        answer = np.asarray(share**2 * self.own[0][0] + noise, dtype=np.float64)
        answer.setflags(write=False)
        return answer

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """In O(log n) each."""
        final = self.posterior
        answer = np.empty(len(low))
        # A range is, at every level, a prefix part of the node that holds its end and a suffix part of the one that holds its start:
        # share * (node's value) + independent noise of this variance.
        starts, ends = low.copy(), high.copy()
        from_start, noise_start = np.ones(len(low)), np.zeros(len(low))
        to_end, noise_end = np.ones(len(low)), np.zeros(len(low))
        open_ = np.ones(len(low), dtype=bool)
        same = starts == ends
        answer[same] = final[-1][starts[same]]
        open_ &= ~same
        for level in range(len(self.own) - 1, 0, -1):
            own, ratio = self.own[level], self.ratios[level - 1]
            summed, above = self.below[level - 1], final[level - 1]
            ahead = np.concatenate([[0.0], np.cumsum(own)])
            parent_start, parent_end = starts // ratio, ends // ratio
            meet = open_ & (parent_start == parent_end)
            if meet.any():
                s, e, p = starts[meet], ends[meet], parent_start[meet]
                middle = ahead[e] - ahead[s + 1]
                first, last = from_start[meet], to_end[meet]
                linear = first * own[s] + middle + last * own[e]
                square = first**2 * own[s] + middle + last**2 * own[e]
                share = linear / summed[p]
                answer[meet] = noise_start[meet] + noise_end[meet] + square - linear * share + share**2 * above[p]
                open_ &= ~meet
            # Both parts move up one level: the end's part takes in all siblings before it, the start's part those after it.
            begin = ahead[parent_end * ratio]
            finish = ahead[np.minimum((parent_start + 1) * ratio, len(own))]
            to_end, noise_end = _lift(to_end, noise_end, own[ends], ahead[ends] - begin, summed[parent_end])
            from_start, noise_start = _lift(from_start, noise_start, own[starts], finish - ahead[starts + 1], summed[parent_start])
            starts, ends = parent_start, parent_end
        return answer


def _lift(share: FloatArray, noise: FloatArray, own: FloatArray, siblings: FloatArray, summed: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Express a part of a node, with all of some siblings, by its parent's value and independent noise."""
    linear = share * own + siblings
    return linear / summed, noise + share**2 * own + siblings - linear**2 / summed


def largest_on_tree(known: TreeInverse) -> float:
    """A bound on the largest variance of an interval, some per cent above it at most; exact where children have at most 16 cells."""
    final = known.posterior
    best, width = float(final[-1].max()), 1
    # Suffixes and prefixes of the nodes of a level: shares and noise by cell, of one node where all are alike.
    from_start = to_end = (np.ones(1 if known.alike else known.size), np.zeros(1 if known.alike else known.size))
    for level in range(len(known.own) - 1, 0, -1):
        ratio = known.ratios[level - 1]
        parents = 1 if known.alike else len(known.own[level - 1])
        nodes: FloatArray = np.zeros((parents, ratio))
        here = known.own[level][: parents * ratio]
        nodes.reshape(-1)[: len(here)] = here
        summed, above = known.below[level - 1][:parents], final[level - 1][:parents]
        if known.alike:
            from_start, to_end = ((np.tile(share, ratio), np.tile(noise, ratio)) for share, noise in (from_start, to_end))
        cells = len(to_end[0])
        own = np.repeat(nodes.reshape(-1), width)[:cells]
        ends, starts = _runs(to_end, own, width, parents * ratio), _runs(from_start, own, width, parents * ratio)
        best = max(best, _largest_at(nodes, summed, above, starts, ends))
        ahead = np.cumsum(nodes, axis=1) - nodes
        behind = nodes.sum(axis=1, keepdims=True) - ahead - nodes
        whole = np.repeat(summed, ratio * width)[:cells]
        from_start, to_end = (
            _lift(*part, own, np.repeat(siblings.reshape(-1), width)[:cells], whole)
            for part, siblings in ((from_start, behind), (to_end, ahead))
        )
        width *= ratio
    return best


def _runs(part: Part, own: FloatArray, width: int, nodes: int) -> Part:
    """The largest a and the least x of runs of cells of every node, two arrays of shape (nodes, runs)."""
    share, noise = part
    runs = next(count for count in range(min(width, _RUNS), 0, -1) if width % count == 0)
    most, least = np.full(nodes * width, -np.inf), np.zeros(nodes * width)
    most[: len(share)] = noise + share**2 * own
    least[: len(share)] = share * own
    return most.reshape(nodes, runs, -1).max(axis=2), least.reshape(nodes, runs, -1).min(axis=2)


def _largest_at(nodes: FloatArray, summed: FloatArray, above: FloatArray, starts: Part, ends: Part) -> float:
    """Over all parents and pairs of their children."""
    parents, ratio = nodes.shape
    runs = starts[0].shape[1]
    ahead = np.cumsum(nodes, axis=1) - nodes
    curve = (1 - above / summed) / summed
    a, x, b, y = (values.reshape(parents, ratio, runs) for values in (*starts, *ends))
    best = 0.0
    step = max(1, _NUMBERS // runs**2)
    for first in range(0, parents, step):
        part = slice(first, first + step)
        for s in range(ratio):
            for e in range(s + 1, ratio):
                middle = (ahead[part, e] - ahead[part, s] - nodes[part, s])[:, None, None]
                linear = x[part, s, :, None] + y[part, e, None, :] + middle
                found = a[part, s, :, None] + b[part, e, None, :] + middle - curve[part, None, None] * linear**2
                best = max(best, float(found.max()))
    return best


@structured.register
def _(operator: Tree, factor: Factor) -> Basis | None:
    return TreeInverse(operator, factor.weights.astype(float) ** 2) if operator.widths[-1] == 1 else None
