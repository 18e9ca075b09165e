"""Choose the cells that contain quantiles, one cell for each group.

The exponential mechanism without replacement ("permute and flip") is used. Each cell passes with a
probability that falls with the distance of its rank from the target rank. One of the cells that
pass is chosen at random. The labels (S1 ...) refer to PROOFS-quantiles.md in this folder. Ranks and
distances are whole numbers; they are functions of private counts, and only the chosen cells leave
the kernel.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._trusted.check import InternalError, exact, exact_positive, refuse, whole
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel._entropy import Entropy
from leastnoise._trusted.kernel._noise import geometric
from leastnoise._trusted.kernel._sampling import SCALE_LIMIT, uniform_below

MOST_CELLS = 2**18  # of one group
MOST_PARTS = 2**10  # the largest denominator of a share
_MOST_RANK = 2**50  # rows of one group; no cell of fewer than 2^32 rows is cut (S1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileSelection:
    """A request to choose, in each group, the cell that contains a quantile.

    A separate choice is made in every group. All these choices together are one step.

    Args:
        attribute: the ordered attribute from whose cells one is chosen.
        share: the target as a share of the group's rows, above 0 and below 1.
        cells: the number of cells of the choice, from the first cell on; rows in later cells are in
            no group.
        epsilon: the privacy loss of all choices together, for any distance of neighbours.
        by: the attributes of the groups; without them, all rows are one group.

    Raises:
        InputError: an argument has another type, or is out of range.

    Guarantees: epsilon-DP (theorem S of PROOFS-quantiles.md). In a group of n cells, the chosen
        cell is close to its target for all data (S6): with probability at most ``risk``, it is
        further away than scale x ln(n / (2 risk)).

    Source:
        McKenna and Sheldon, "Permute-and-Flip" (2020), with the sensitivity of a rank at a share.

    >>> ages = QuantileSelection(attribute="age", share="1/2", cells=4, epsilon=10)
    >>> ages.draw(np.array([[300, 400, 100, 0], [0, 0, 0, 90]]), 1, SeededEntropy(1)).tolist()
    [1, 3]
    """

    attribute: str
    share: Fraction
    cells: int
    epsilon: Fraction
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", tuple(self.by))
        names = (self.attribute, *self.by)
        if not all(type(name) is str for name in names) or len(set(names)) != len(names):
            raise refuse("the attributes of a quantile", list(names), "different names")
        share = exact("share", self.share)
        if not 0 < share < 1 or share.denominator > MOST_PARTS:
            raise refuse(
                "share",
                str(self.share),
                f"above 0 and below 1, with a denominator of at most {MOST_PARTS}",
            )
        object.__setattr__(self, "share", share)
        cells = whole("the cells of a quantile", self.cells, 1, MOST_CELLS)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))

    @property
    def sensitivity(self) -> Fraction:
        """The largest change of a cell's distance by one row, in rows (S3)."""
        return max(self.share, 1 - self.share)

    def scale(self, neighbour_distance: int) -> tuple[int, int]:
        """Return the scale of the geometric noise: numerator and denominator.

        A cell whose distance exceeds the distance of the best cell by one scale passes with
        probability 1 / e. The scale is in units of a row divided by the denominator of the share.

        Args:
            neighbour_distance: the number of rows by which neighbours differ.

        Raises:
            InputError: the epsilon is too small, or has too many digits, for an exact choice. A
                series calls this method before it charges the step.

        >>> QuantileSelection(attribute="age", share="1/4", cells=9, epsilon="1/2").scale(1)
        (12, 1)
        """
        parts = self.share.denominator * self.sensitivity
        scale = 2 * whole("distance", neighbour_distance, 1) * parts / self.epsilon  # S4
        if max(scale.numerator, scale.denominator) >= SCALE_LIMIT:
            raise refuse(
                "epsilon",
                str(self.epsilon),
                "larger, or a number with fewer digits, so that the choice stays exact",
            )
        return scale.numerator, scale.denominator

    def draw(self, counts: IntArray, neighbour_distance: int, entropy: Entropy) -> IntArray:
        """Draw the chosen cell of every group, and return the numbers of the cells.

        Args:
            counts: int64 of shape (groups, cells); private.
            neighbour_distance: the number of rows by which neighbours differ: k if a unit of k rows
                is added or removed, 2 k if it is replaced.
            entropy: the source of the random bits.

        Returns:
            int64 of shape (groups,), each from 0 to cells - 1.

        Raises:
            InputError: an argument has another type or shape. The values of counts never cause this
                error.
        """
        if not (
            isinstance(counts, np.ndarray)
            and counts.dtype == np.int64
            and counts.shape == (len(counts), self.cells)
        ):
            raise refuse(
                "counts", type(counts).__name__, f"an int64 array of groups by {self.cells} cells"
            )
        numerator, denominator = self.scale(neighbour_distance)
        chosen_cells = np.zeros(len(counts), dtype=np.int64)
        for group, cells in enumerate(counts):
            distances = self.distances(cells)
            reach = geometric(numerator, denominator, len(distances), entropy)
            passed = np.flatnonzero(reach >= distances - distances.min())  # S5
            chosen_cells[group] = passed[_uniform_index(len(passed), entropy)]
        return chosen_cells

    def distances(self, counts: IntArray) -> IntArray:
        """Return the distance of each cell's rank from the target rank, in one group.

        The distance is in units of a row divided by the denominator of the share. The distance is 0
        for the first cell at which the cumulative count reaches the target, and at least 1 for all
        others (S2).

        Args:
            counts: int64 of shape (cells,); private.

        >>> ages = QuantileSelection(attribute="age", share="1/2", cells=3, epsilon=1)
        >>> ages.distances(np.array([4, 2, 9]))
        array([7, 3, 0])
        """
        cut = np.clip(counts, 0, _MOST_RANK // len(counts))  # S2: neighbours stay neighbours
        parts = self.share.denominator
        upper = parts * np.cumsum(cut)
        lower = upper - parts * cut
        target = self.share.numerator * int(cut.sum())
        distances: IntArray = np.maximum(np.maximum(lower - target + 1, target - upper), 0)
        return distances


def _uniform_index(count: int, entropy: Entropy) -> int:
    """Draw a uniform integer from 0 to count - 1, exactly."""
    if count < 1:
        raise InternalError("No cell passed; please report this.")
    bound = np.asarray(count, dtype=np.uint64)
    while True:
        drawn, accepted = uniform_below(bound, count, 1, entropy)
        if accepted[0]:
            return int(drawn[0])
