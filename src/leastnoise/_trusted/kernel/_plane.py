"""Compute the noisy cost of the best partition of a table into blocks.

The noisy answer is the least cost of a partition of the table's cells into blocks of a tree, plus
noise.

A partition B has the cost ``sum over b of dev(x, b) + penalty``. Here dev is the sum over a block's
counts of their distances from the median count. One record changes one block of each partition
(C4). The labels (C1 ...) refer to PROOFS-plane.md in this folder. Costs are whole numbers, in
multiples of 1 / GRID, and functions of private counts. No cost leaves the kernel without noise.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from leastnoise._trusted.check import Exact, InternalError, exact, exact_positive, refuse, whole
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel._entropy import Entropy
from leastnoise._trusted.kernel._noise import discrete_laplace
from leastnoise._trusted.kernel._sampling import SCALE_LIMIT
from leastnoise._trusted.linop import BlockTree, block_tree, interval_tree

MOST_CELLS = 2**24  # 128 MiB of counts
GRID = 4096  # noise is added to costs in multiples of 1 / GRID
_SCALE_STEPS = 256  # scales are rounded up to multiples of 1 / 256 of the grid


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastCost:
    """A request for the noisy least cost of a partition of cells into blocks.

    The blocks come from a tree. The lower the cost, the better buckets of similar cells describe
    the data.

    The request is a frozen value of public numbers. It is the only kind of choice in a series of
    steps.

    Args:
        attributes: one attribute, whose cells lie on a line, or two attributes. If there are two,
            the cells of the first attribute are the rows of the table.
        epsilon: the privacy loss of the answer; it is the same for any distance of neighbours.
        penalty: the cost of each block in addition to its deviation from the median, in records.

    Raises:
        InputError: there is no attribute or more than two, or the epsilon is not above 0.

    Guarantees:
        epsilon-DP (theorem L of PROOFS-plane.md): one record changes a block's deviation from its
        median by at most 1.

    >>> cells = np.array([[9000, 0], [9000, 0]])
    >>> least_cost = LeastCost(attributes=("age", "sex"), epsilon=10, penalty=200)
    >>> float(least_cost.draw(cells, 1, SeededEntropy(1))) // 10
    40.0
    """

    attributes: tuple[str, ...]
    epsilon: Fraction
    penalty: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not 1 <= len(self.attributes) == len(set(self.attributes)) <= 2:
            raise refuse(
                "the attributes of a private choice", list(self.attributes), "one name or two"
            )
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))

    def penalty_and_scale(self, cell_count: int, neighbour_distance: int) -> tuple[int, int, int]:
        """Return the penalty, and the noise scale's numerator and denominator.

        The penalty and the scale are in multiples of 1 / GRID.

        Args:
            cell_count: number of cells of the table.
            neighbour_distance: the number of records by which neighbours differ.

        Raises:
            InputError: there are too many cells; or sums would not be exact with this penalty or
                epsilon. A series calls this method before it charges the step.

        >>> LeastCost(attributes=("age",), epsilon=1, penalty=2).penalty_and_scale(4, 1)
        (8192, 1048576, 256)
        """
        if not cell_count <= MOST_CELLS:
            raise refuse("the cells of a private choice", cell_count, f"at most {MOST_CELLS}")
        return penalty_on_grid(self.penalty, cell_count), *noise_scale(
            GRID, self.epsilon / whole("distance", neighbour_distance, 1), cell_count
        )

    def draw(self, cells: IntArray, neighbour_distance: int, entropy: Entropy) -> Fraction:
        """Return the noisy least cost, in records.

        Args:
            cells: counts, int64 of shape (n,) or (height, width); private.
            neighbour_distance: the number of records by which neighbours differ: k if a unit of k
                rows is added or removed, 2 k if it is replaced.
            entropy: the source of the noise.

        Returns:
            ``min over B of sum over b of (deviation from the median + penalty)`` plus discrete
            Laplace noise of scale distance / epsilon.

        Raises:
            InputError: an argument has another type or shape. The values of counts never cause this
                error.
        """
        counts, starts, children = order_counts_by_tree(cells)
        # Q3: This is group privacy.
        fixed, numerator, denominator = self.penalty_and_scale(len(counts), neighbour_distance)
        costs = [cost + fixed for cost in block_costs(counts, starts)]
        best = costs[-1]
        for undivided, first in zip(costs[-2::-1], children[::-1], strict=True):
            split_costs = np.add.reduceat(best, first)
            # A block with one child has the same cells as the child.
            best = np.where(
                np.diff(first, append=len(best)) > 1,
                np.minimum(undivided, split_costs),
                split_costs,
            )
        return Fraction(
            int(best[0]) + int(discrete_laplace(numerator, denominator, 1, entropy)[0]), GRID
        )


def order_counts_by_tree(counts: IntArray) -> tuple[IntArray, list[IntArray], list[IntArray]]:
    """Clip counts, and order them by the tree of blocks; also return it (C1).

    The shape is public, and a wrong shape is refused. The counts are private: they are clipped to
    the range of exact arithmetic, and no value raises an error. The blocks of a line are aligned
    intervals; the blocks of a rectangle come from halving it.

    Args:
        counts: int64 of shape (n,) or (height, width); private.

    Returns:
        Three results: the counts in the order of the tree; for each level, coarse to fine, where
        each of its blocks begins; and for each level but the last, the first child of each block in
        the next level.

    Raises:
        InputError: the counts are not an int64 array of one or two dimensions with 1 to 2^24 cells.
        InternalError: the blocks do not form a tree (O2). The code that makes the tree is not
            trusted.

    >>> order_counts_by_tree(np.array([[3, -1]]))
    (array([3, 0]), [array([0]), array([0, 1])], [array([0])])
    """
    if not (
        isinstance(counts, np.ndarray)
        and counts.dtype == np.int64
        and counts.ndim in (1, 2)
        and 1 <= counts.size <= MOST_CELLS
    ):
        if isinstance(counts, np.ndarray):
            received = f"{counts.dtype} array of shape {counts.shape}"
        else:
            received = type(counts).__name__
        raise refuse(
            "The table of counts",
            received,
            "an int64 array of shape (n,) or (height, width) with 1 to 2^24 cells",
        )
    tree: BlockTree = interval_tree(len(counts)) if counts.ndim == 1 else block_tree(*counts.shape)
    order, *levels = (
        np.asarray(array, dtype=np.int64) for array in (tree.order, *tree.starts, *tree.children)
    )
    starts = levels[: len(tree.starts)]
    children = levels[len(tree.starts) :]
    runs = all(level[0] == 0 and (np.diff(level) > 0).all() for level in levels)
    unions = all(
        np.array_equal(fine[first], coarse)
        for (coarse, fine), first in zip(pairwise(starts), children, strict=True)
    )
    once = np.array_equal(np.sort(order), np.arange(counts.size))
    if not (
        runs
        and unions
        and once
        and len(starts[0]) == 1
        and np.array_equal(starts[-1], np.arange(counts.size))
    ):
        raise InternalError(
            "The blocks of a table do not form a tree; please report this. Nothing was drawn."
        )
    return clip_counts(counts.reshape(-1)[order]), starts, children


def block_costs(counts: IntArray, starts: list[IntArray]) -> list[IntArray]:
    """Return, by level, each block's sum of deviations from its median (C3).

    The deviations are exact, in multiples of 1 / GRID.

    Args:
        counts: the counts in the order of the tree, each in [0, largest_count(n)].
        starts: for each level, the positions where its blocks begin.

    Returns:
        One int64 array for each level. The array of the last level is 0, because this level has
        single cells.

    >>> [
    ...     (cost / GRID).tolist()
    ...     for cost in block_costs(*order_counts_by_tree(np.array([[2, 3, 8]]))[:2])
    ... ]
    [[6.0], [1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    costs = []
    for level in starts:
        length = np.diff(level, append=len(counts))
        # Block by block in one sort.
        shift = np.repeat(np.arange(len(level)) * (largest_count(len(counts)) + 1), length)
        ordered = np.sort(counts + shift) - shift
        position = np.arange(len(counts)) - np.repeat(level, length)
        lengths = np.repeat(length, length)
        sign = (position >= (lengths + 1) // 2).astype(np.int64) - (position < lengths // 2)
        costs.append(GRID * np.add.reduceat(sign * ordered, level))
    return costs


def largest_count(cell_count: int) -> int:
    """Return the largest count for which all costs fit into int64 (C2).

    After clipping to this count, the counts of neighbours still differ by at most 1.

    Args:
        cell_count: number of cells, at least 1.

    >>> largest_count(4096) == 2**36, largest_count(2**20) == 2**21
    (True, True)
    """
    return 2**61 // max(cell_count * cell_count, 2 * cell_count * GRID)


def clip_counts(counts: IntArray) -> IntArray:
    """Clip each count to the range from 0 to `largest_count` (C1).

    Each cell is clipped separately, so that neighbours stay neighbours.

    >>> clip_counts(np.array([-3, 5, 2**62])).tolist() == [0, 5, largest_count(3)]
    True
    """
    return np.clip(counts, 0, largest_count(len(counts)))


def noise_scale(sensitivity: int, epsilon: Fraction, cell_count: int) -> tuple[int, int]:
    """Return the noise scale sensitivity / epsilon as a fraction, rounded up.

    The numerator and the denominator of the scale, in multiples of 1 / GRID.

    Raises:
        InputError: the noise is so large that its sum over all cells might exceed int64; or the
            sampler does not accept the scale.

    >>> noise_scale(4096, Fraction(1, 10), 8)
    (10485760, 256)
    """
    numerator = -(-sensitivity * _SCALE_STEPS * epsilon.denominator // epsilon.numerator)
    # Refused here, before anything is charged, and not by the sampler (D4 of PROOFS-noise.md).
    if numerator > min((2**50 // cell_count) * _SCALE_STEPS, SCALE_LIMIT - 1):
        raise refuse(
            "epsilon",
            str(epsilon),
            f"larger for {cell_count} cells, so that the sums stay exact",
            "Spend more or use fewer cells.",
        )
    return numerator, _SCALE_STEPS


def penalty_on_grid(penalty: Exact, cell_count: int) -> int:
    """Convert a penalty in records to an integer in multiples of 1 / GRID.

    >>> penalty_on_grid("0.5", 4)
    2048
    """
    number = exact("penalty", penalty)
    if not 0 <= number * GRID <= Fraction(2**58, cell_count):
        raise refuse(
            "penalty", penalty, f"from 0 to {float(Fraction(2**58, GRID * cell_count)):.3g} records"
        )
    return round(number * GRID)
