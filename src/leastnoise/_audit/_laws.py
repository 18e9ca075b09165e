"""The laws of private choices, for tables whose rows are all in one cell: written down once more, from the definitions.

Which buckets there are is the kernel's own tree, whose tests compare it with its definition. For such a table what tells it from an empty
one is, of a partition, the bucket that has the cell: given that, all else is drawn as from empty cells. How likely each bucket is follows
along the path of the tree from all cells down to this one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._audit._measured import equal_rows
from leastnoise._check.arrays import FloatArray
from leastnoise._kernel import LeastBlockCost, LeastCost, RectanglePartition, SampledPartition, SampledRectangles
from leastnoise._linop import BlockTree, block_tree, interval_tree

_MOST_ROWS = 2**17


class Law(Protocol):
    """What a choice gives from some rows in one cell, and from none.

    Attributes:
        name: of the choice, for people.
        units: in how many units tables should differ, to see whether the choice follows the law.
    """

    name: str
    units: int

    def loss(self, units: int) -> float:
        """What it loses of so many units."""

    def ratio(self, outcome: Any, units: int) -> float:
        """The logarithm of the likelihood ratio of so many units and none."""

    def statistics(self, some: Sequence[Any], none: Sequence[Any]) -> tuple[FloatArray, FloatArray]:
        """Two lists of numbers, from outcomes for ``units`` and for none, by which a choice that is too sharp is seen."""

    def tails(self, factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How often the numbers of each list are at or above thresholds, of a choice that is sharper by a factor."""


class _Path:
    """Blocks of a tree around one cell, from all cells to it alone, and the subtrees beside them."""

    def __init__(self, tree: BlockTree, place: int) -> None:
        self.tree, self.nodes = tree, list[tuple[int, int]]()
        for level in range(len(tree.children)):
            block = int(np.searchsorted(tree.starts[level], place, side="right")) - 1
            if tree.broods(level)[block] > 1:  # a block with one child is that child
                self.nodes.append((level, block))
        self.nodes.append((len(tree.starts) - 1, place))
        self.lengths = np.array([tree.lengths(level)[block] for level, block in self.nodes], dtype=np.float64)
        self.beside = int(sum(tree.broods(level)[block] - 1 for level, block in self.nodes[:-1]))
        self.place = place

    def siblings(self, bucket: float) -> FloatArray:
        """For each block but the last the sum over partitions of what is empty beside its child on the path, in logarithms."""
        below, found = np.full(len(self.tree.order), -bucket), list[float]()
        inside = dict(self.nodes[:-1])
        for level in range(len(self.tree.children) - 1, -1, -1):
            parts = np.add.reduceat(below, self.tree.children[level])
            if level in inside:
                child = int(np.searchsorted(self.tree.starts[level + 1], self.place, side="right")) - 1
                found.append(float(parts[inside[level]] - below[child]))
            below = np.where(self.tree.broods(level) > 1, np.logaddexp(-bucket, parts), parts)
        return np.array(found[::-1])


class _Sampled:
    """The exponential mechanism: P(B) proportional to exp(-prior k - epsilon cost(B) / (2 D)) for k buckets."""

    def __init__(self, selection: SampledPartition | SampledRectangles, sizes: Sequence[int], cell: int, privacy: Privacy) -> None:
        self.name, centre, split = "partition", "mean", "halves"
        if isinstance(selection, SampledRectangles):
            self.name, centre, split = "rectangles", selection.centre, selection.split
            tree = block_tree(sizes[0], sizes[1], split)
        else:
            tree = interval_tree(sizes[0])
        self._cell = divmod(cell, tree.shape[1])
        self._path = _Path(tree, int(np.flatnonzero(tree.order == cell)[0]))
        size = len(tree.order)
        self._sensitivity = 1.0 if centre == "median" or size == 1 else 2 - 2 / size
        lengths = self._path.lengths
        self._deviation = (lengths > 1).astype(np.float64) if centre == "median" else 2 - 2 / lengths
        self._rate = float(selection.epsilon) / privacy.distance / 2 / self._sensitivity
        children = {"halves": 2, "quarters": 4}[split]
        critical = -math.log(children - 1) + children / (children - 1) * math.log(children)
        self._prior = critical if selection.prior is None else float(selection.prior)
        self._penalty = float(selection.penalty)
        self._rows = equal_rows(privacy)
        self._known: dict[tuple[float, int], FloatArray] = {}
        most = max(1, _MOST_ROWS // self._rows)
        self.units = max((min(most, math.ceil(2**power / float(selection.epsilon))) for power in range(8)), key=self._told)

    def _told(self, units: int) -> float:
        """By how much an event becomes more likely if the choice is sharper by a tenth."""
        one, other = (np.cumsum(np.exp(self._chances(factor, units))) for factor in (1.0, 1.1))
        return float(np.abs(one - other).max())

    def loss(self, units: int) -> float:
        return float(np.abs(self._ratios(units)).max())

    def ratio(self, outcome: Any, units: int) -> float:
        return float(self._ratios(units)[self._level(outcome)])

    def statistics(self, some: Sequence[Any], none: Sequence[Any]) -> tuple[FloatArray, FloatArray]:
        one, other = (np.array([self.ratio(outcome, self.units) for outcome in own]) for own in (some, none))
        return one, other

    def tails(self, factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        above = self._ratios(self.units)[:, None] >= thresholds
        one, other = (np.exp(self._chances(factor, units)) @ above for units in (self.units, 0))
        return one, other

    def _ratios(self, units: int) -> FloatArray:
        return self._chances(1.0, units) - self._chances(1.0, 0)

    def _level(self, outcome: Any) -> int:
        """Which block of the path is a bucket."""
        if isinstance(outcome, RectanglePartition):
            row, column = self._cell
            inside = (outcome.tops <= row) & (row < outcome.tops + outcome.heights)
            inside &= (outcome.lefts <= column) & (column < outcome.lefts + outcome.widths)
            length = int(outcome.areas()[inside][0])
        else:
            length = int(outcome.lengths()[np.searchsorted(outcome.starts, self._path.place, side="right") - 1])
        return int(np.flatnonzero(self._path.lengths == length)[0])

    def _chances(self, factor: float, units: int) -> FloatArray:
        """The logarithm of the probability that each block of the path is a bucket."""
        if (factor, units) not in self._known:
            bucket = self._prior + factor * self._rate * self._penalty
            own = -bucket - factor * self._rate * self._deviation * units * self._rows
            beside = self._path.siblings(bucket)
            total, apart = own[-1], np.zeros(len(own))
            for place in range(len(own) - 2, -1, -1):
                parts = beside[place] + total
                total = np.logaddexp(own[place], parts)
                own[place], apart[place] = own[place] - total, parts - total
            own[-1] = 0.0
            self._known[factor, units] = own + np.concatenate([[0.0], np.cumsum(apart[:-1])])
        return self._known[factor, units]


class _Cost:
    """The least cost of any partition, deviations being from medians, with Laplace noise of scale distance / epsilon."""

    name = "least cost"

    def __init__(self, selection: LeastCost | LeastBlockCost, sizes: Sequence[int], cell: int, privacy: Privacy) -> None:
        tree = block_tree(sizes[0], sizes[1], selection.split) if isinstance(selection, LeastBlockCost) else interval_tree(sizes[0])
        self._path = _Path(tree, int(np.flatnonzero(tree.order == cell)[0]))
        self._penalty, self._rows = float(selection.penalty), equal_rows(privacy)
        self._scale = privacy.distance / float(selection.epsilon)
        self.units = max(1, min(math.ceil(4 / float(selection.epsilon)), _MOST_ROWS // self._rows))

    def loss(self, units: int) -> float:
        return (self._least(units) - self._penalty) / self._scale

    def ratio(self, outcome: Any, units: int) -> float:
        value = float(outcome)
        return (abs(value - self._penalty) - abs(value - self._least(units))) / self._scale

    def statistics(self, some: Sequence[Any], none: Sequence[Any]) -> tuple[FloatArray, FloatArray]:
        """How near each is to what it would be without noise, of both tables, as their noise is the same."""
        near = [-abs(float(value) - self._least(units)) for units, own in ((self.units, some), (0, none)) for value in own]
        mixed = np.array(near).reshape(2, -1).T.reshape(-1)  # so that each half has both
        return mixed, mixed

    def tails(self, factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        chance = -np.expm1(thresholds * factor / self._scale)  # costs lie on so fine a grid that they may be taken for continuous
        return chance, chance

    def _least(self, units: int) -> float:
        """One bucket, or the cell alone and one bucket for each subtree beside its path."""
        if len(self._path.nodes) == 1:
            return self._penalty
        return self._penalty + min(units * self._rows, self._penalty * self._path.beside)


LAWS: Mapping[type, Callable[[Any, Sequence[int], int, Privacy], Law]] = {
    SampledPartition: _Sampled,
    SampledRectangles: _Sampled,
    LeastCost: _Cost,
    LeastBlockCost: _Cost,
}
"""Of each kind of choice: of the choice, the sizes of its attributes, a cell in row-major order and the neighbours."""
