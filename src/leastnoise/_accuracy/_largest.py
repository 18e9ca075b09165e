"""The largest variance of all intervals of cells, without listing the intervals.

An interval is the difference of two prefix sums. With C the covariance of the n + 1 prefix sums (the empty one too) its variance is
C_ii + C_jj - 2 C_ij. On a hierarchy, an interval whose ends lie in two children s < e of a node is, given the node's value, a suffix of s,
the siblings between them and a prefix of e, so that with x and y the parts' shares of their nodes' values

    variance = a_s + b_e + m - c (x + y + m)^2,    c >= 0,

a and x of the suffix, b and y of the prefix, m the sum of the siblings' own variances. Runs of suffixes and of prefixes are taken together,
with the largest a and b and the least x and y of each: what comes out is never below the largest variance.

Source: docs/mathematics.md, section 2.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leastnoise._check.arrays import FloatArray

if TYPE_CHECKING:
    from leastnoise._accuracy._tree import TreeInverse

Part = tuple[FloatArray, FloatArray]
"""Two numbers for every suffix, prefix or run of them."""
MOST_LISTED = 2**22
"""The most answers whose variances are listed to find the largest."""
_RUNS = 16  # of a child's suffixes or prefixes, at most
_NUMBERS = 2**22  # at a time


class Errors(NamedTuple):
    """The variances of a table's answers in short."""

    total: float
    largest: float
    exact: bool = True

    def times(self, factors: FloatArray) -> "Errors":
        """Of the products of these answers with each of some numbers."""
        return Errors(self.total * float((factors**2).sum()), self.largest * float((factors**2).max()), self.exact)


def largest_between(covariance: FloatArray) -> float:
    """The largest variance of an interval, exactly, from the covariance of the cells."""
    sums: FloatArray = np.zeros((len(covariance) + 1,) * 2)
    np.cumsum(covariance, axis=0, out=sums[1:, 1:])
    np.cumsum(sums[1:, 1:], axis=1, out=sums[1:, 1:])
    own: FloatArray = np.diag(sums).copy()
    np.multiply(sums, -2, out=sums)
    np.add(sums, own, out=sums)
    np.add(sums, own[:, None], out=sums)
    return float(sums.max())


def largest_apart(diagonal: FloatArray, lifted: FloatArray) -> float:
    """The same for a covariance ``diag(diagonal) - lifted^T lifted``, some rows at a time."""
    cells = np.concatenate([[0.0], np.cumsum(diagonal)])
    points = np.concatenate([np.zeros((1, len(lifted))), np.cumsum(lifted.T, axis=0)])
    norms = (points**2).sum(axis=1)
    # cells_j - cells_i - |p_j - p_i|^2 for i < j; for i > j it is below 0.
    late, early = cells - norms, -cells - norms
    step = max(1, _NUMBERS // len(points))
    best = 0.0
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        found = 2 * (points[part] @ points.T)
        found += early[part, None]
        found += late
        best = max(best, float(found.max()))
    return best


def largest_on_tree(known: "TreeInverse") -> float:
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
            _lifted(part, own, np.repeat(siblings.reshape(-1), width)[:cells], whole)
            for part, siblings in ((from_start, behind), (to_end, ahead))
        )
        width *= ratio
    return best


def _lifted(
    part: tuple[FloatArray, FloatArray], own: FloatArray, siblings: FloatArray, summed: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A part of a node with some siblings, by its parent's value and independent noise."""
    share, noise = part
    linear = share * own + siblings
    return linear / summed, noise + share**2 * own + siblings - linear**2 / summed


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
