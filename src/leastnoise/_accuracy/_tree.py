"""Least squares on a hierarchy in O(n): two passes over the tree, and the variance of any interval in O(log n).

Up: v_u = 1 / (p_u + 1 / sum of the children's v) is the variance of node u from the measurements in its subtree. Down: a child's estimate
moves by its share v_c / sum v of what the parent's estimate differs from the sum of its children's. Given a node's value the subtrees are
independent of everything above it, which gives interval variances by one more pass.

Where all nodes of a level are alike, a level is kept as one number, and the variances of prefixes repeat themselves from node to node.

Source: Hay et al. 2010 (inference by two passes); docs/mathematics.md, section 2.
"""

from dataclasses import dataclass, field
from functools import cached_property, singledispatchmethod
from itertools import pairwise

import numpy as np

from leastnoise._accuracy._answers import Solved
from leastnoise._accuracy._largest import MOST_LISTED, largest_on_tree
from leastnoise._accuracy._operators import apply_gram, interval_ends
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import AllRanges, Operator, Prefix, Tree, dense, run_spread, run_sums


@dataclass(frozen=True, eq=False)
class TreeInverse(Solved):
    """The inverse of G = F^T diag(precision) F for a hierarchy F, never formed.

    What is asked for more than once (the planner, the promise and the error bars all need the variances of prefixes) is kept.

    Attributes:
        ratios: children of a node of each level, from the root down.
        own: variance of the nodes of each level from their subtrees; where ``alike``, a view of one number.
        below: sum of their children's variances, the same way; not of the cells.
        alike: whether all nodes of each level have the same precision and the same number of cells.
    """

    tree: Tree
    precision: FloatArray
    ratios: tuple[int, ...] = field(init=False, repr=False)
    own: tuple[FloatArray, ...] = field(init=False, repr=False)
    below: tuple[FloatArray, ...] = field(init=False, repr=False)
    alike: bool = field(init=False, repr=False)

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
        """G^-1 1 / kappa, shape (size,)."""
        if self.alike:
            return np.full(self.size, 1 / self.size)
        solved = self.solve(np.ones(self.tree.size))
        return np.asarray(solved / solved.sum(), dtype=np.float64)

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.tree.size

    @property
    def kappa(self) -> float:
        """Variance of the total at unit noise."""
        return float(self.own[0][0])

    def solve(self, b: FloatArray) -> FloatArray:
        """G^-1 b along the first axis, by the two passes."""
        column = (slice(None),) + (None,) * (b.ndim - 1)
        estimates = [b * self.own[-1][column]]
        for own, below, ratio in zip(self.own[-2::-1], self.below[::-1], reversed(self.ratios), strict=True):
            # Only the cells carry data here, so a node's estimate is its children's, shrunk by its own measurement of zero.
            estimates.insert(0, run_sums(estimates[0], ratio) * (own / below)[column])
        for level, ratio in enumerate(self.ratios, 1):
            own = self.own[level]
            missing = (estimates[level - 1] - run_sums(estimates[level], ratio)) / self.below[level - 1][column]
            estimates[level] = estimates[level] + own[column] * run_spread(missing, ratio, len(own))
        return estimates[-1]

    @singledispatchmethod
    def variances(self, operator: Operator) -> FloatArray:
        """q G^-1 q for every row of an operator; O(log n) a row for intervals."""
        ends = interval_ends(operator)
        if ends is not None:
            return self.interval_variances(*ends)
        n, rows = self.tree.size, dense(operator).astype(float)
        solved = rows @ self.solve(np.eye(n)) if len(rows) > n else self.solve(rows.T).T
        return np.einsum("ij,ij->i", rows, solved)

    @variances.register
    def _(self, operator: Prefix) -> FloatArray:  # noqa: ARG002 - the class says it all
        return self.prefix_variances

    def summed(self, operator: Operator) -> float:
        """The sum of ``variances``; of many rows that are no intervals by their Gram matrix."""
        if operator.rows > operator.size and interval_ends(operator) is None:
            return float(np.trace(self.solve(apply_gram(operator, np.eye(operator.size)))))
        return float(self.variances(operator).sum())

    def largest_range(self) -> float:
        """Of all ranges."""
        every = AllRanges(self.size)
        return largest_on_tree(self) if every.rows > MOST_LISTED else float(self.variances(every).max())

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
        """Variance of the estimated sums of the first 1, 2, ..., n cells, shape (size,), not to be written to.

        Going up, a prefix of a node is a share of the node's value and independent noise; for the first cells of all nodes of a level at
        once. Where the nodes are alike so are their prefixes, which are then those of one node: share (i + 1) / width.
        """
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
        """Variance of the estimated sums over the cells low..high."""
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
