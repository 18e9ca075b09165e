"""Private choices that a series of steps can make: what each needs to be told, and the proved mechanism that makes it.

Each is a frozen value of public numbers with an ``epsilon``, which pays for the choice whatever the distance of neighbours. The kernel's
series carries out these classes and no others.
"""

from dataclasses import dataclass
from fractions import Fraction

from leastnoise._check import exact_positive, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._kernel._entropy import Entropy
from leastnoise._kernel._partition import Partition
from leastnoise._kernel._plane import PRIORS, RectanglePartition, least_block_cost, quadtree_mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    attributes: tuple[str, ...]
    epsilon: Fraction
    penalty: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnPlane(_Choice):
    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if len(self.attributes) != 2:
            raise refuse("the attributes of a choice on a plane", list(self.attributes), "two names")
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastCost(_Choice):
    """Ask for the least cost of any aligned partition of a table's cells, with noise; see ``least_block_cost``.

    Args:
        attributes: of the table, whose cells are taken in row-major order.
        epsilon: what the answer may cost.
        penalty: what each bucket costs besides its deviation from the median, in records.
    """

    def draw(self, cells: IntArray, distance: int, entropy: Entropy) -> Fraction:
        """The noisy least cost, in records."""
        return least_block_cost(cells, self.epsilon, entropy, penalty=self.penalty, distance=distance)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledPartition(_Choice):
    """Draw a partition of a table's cells into aligned intervals by the exponential mechanism; see ``quadtree_mechanism``.

    Args:
        attributes: of the table, whose cells are taken in row-major order.
        epsilon: what the partition may cost.
        penalty: what each bucket costs besides its deviation, in records.
        prior: a further penalty, in natural logarithms.
    """

    prior: Fraction = PRIORS["halves"]

    def draw(self, cells: IntArray, distance: int, entropy: Entropy) -> Partition:
        """The partition."""
        found = quadtree_mechanism(cells, self.epsilon, entropy, penalty=self.penalty, prior=self.prior, distance=distance)
        return Partition(size=len(cells), starts=found.lefts, spent=found.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastBlockCost(_OnPlane):
    """Ask for the least cost of any partition of a table of two attributes into blocks of a tree, with noise; see ``least_block_cost``.

    Args:
        attributes: two; the cells of the first are the rows of the table.
        epsilon: what the answer may cost.
        penalty: what each bucket costs besides its deviation from the median, in records.
        split: ``"quarters"`` or ``"halves"``.
    """

    split: str = "halves"

    def draw(self, cells: IntArray, distance: int, entropy: Entropy) -> Fraction:
        """The noisy least cost, in records, from counts of shape (height, width)."""
        return least_block_cost(cells, self.epsilon, entropy, penalty=self.penalty, split=self.split, distance=distance)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRectangles(_OnPlane):
    """Draw a partition of a table of two attributes into rectangles by the exponential mechanism; see ``quadtree_mechanism``.

    Args:
        attributes: two; the cells of the first are the rows of the table.
        epsilon: what the partition may cost.
        penalty: what each bucket costs besides its deviation, in records.
        prior: a further penalty, in natural logarithms; None for the critical one of the split.
        split: ``"quarters"`` or ``"halves"``.
        centre: ``"mean"`` or ``"median"``.
    """

    prior: Fraction | None = None
    split: str = "quarters"
    centre: str = "mean"

    def draw(self, cells: IntArray, distance: int, entropy: Entropy) -> RectanglePartition:
        """The partition, from counts of shape (height, width)."""
        return quadtree_mechanism(
            cells,
            self.epsilon,
            entropy,
            penalty=self.penalty,
            prior=self.prior,
            split=self.split,
            centre=self.centre,
            distance=distance,
        )


PlaneSelection = LeastBlockCost | SampledRectangles
Selection = LeastCost | SampledPartition | LeastBlockCost | SampledRectangles
"""Every choice that a series knows."""
