"""Private choices that a series of steps can make: what each needs to be told, and the proved mechanism that makes it.

Each is a frozen value of public numbers with an ``epsilon``, which pays for the choice whatever the distance of neighbours. The kernel's
series carries out these classes and no others.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from leastnoise._check import exact_positive, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._kernel._entropy import Entropy
from leastnoise._kernel._partition import Partition
from leastnoise._kernel._plane import PRIOR, least_block_cost, sampled_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    most: ClassVar[int]
    attributes: tuple[str, ...]
    epsilon: Fraction
    penalty: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not 1 <= len(self.attributes) <= self.most:
            raise refuse("the attributes of a private choice", list(self.attributes), "one name" + " or two" * (self.most > 1))
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastCost(_Choice):
    """Ask for the least cost of any partition of a table's cells into blocks of a tree, with noise; see ``least_block_cost``.

    Args:
        attributes: one, whose cells lie on a line, or two; the cells of the first are the rows of the table.
        epsilon: what the answer may cost.
        penalty: what each bucket costs besides its deviation from the median, in records.
    """

    most = 2

    def draw(self, cells: IntArray, distance: int, entropy: Entropy) -> Fraction:
        """The noisy least cost, in records, from counts of shape (n,) or (height, width)."""
        return least_block_cost(cells, self.epsilon, entropy, penalty=self.penalty, distance=distance)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledPartition(_Choice):
    """Draw a partition of an attribute's cells into aligned intervals by the exponential mechanism; see ``sampled_partition``.

    Args:
        attributes: one.
        epsilon: what the partition may cost.
        penalty: what each bucket costs besides its deviation, in records.
        prior: a further penalty, in natural logarithms.
    """

    most = 1
    prior: Fraction = PRIOR

    def draw(self, cells: IntArray, distance: int, entropy: Entropy) -> Partition:
        """The partition."""
        return sampled_partition(cells, self.epsilon, entropy, penalty=self.penalty, prior=self.prior, distance=distance)


Selection = LeastCost | SampledPartition
"""Every choice that a series knows."""
