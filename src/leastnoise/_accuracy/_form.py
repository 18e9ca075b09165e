"""The questions that every form of the covariance of least squares answers, and what its estimate needs and gives."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._linop import SignedArray
from leastnoise._measurements import Block
from leastnoise._workload import Product

Names = tuple[str, ...]
MOST_COVARIANCES = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What a table measured."""

    block: Block
    counts: SignedArray | FloatArray
    grid: int
    variance: float

    @property
    def values(self) -> FloatArray:
        """The noisy answers in rows (or units of the measure)."""
        return self.counts / self.grid


class Errors(NamedTuple):
    """The variances of a table's answers in short."""

    total: float
    largest: float
    exact: bool = True

    def times(self, factors: FloatArray) -> "Errors":
        """Of the products of these answers with each of some numbers."""
        return Errors(self.total * float((factors**2).sum()), self.largest * float((factors**2).max()), self.exact)


class Cells(ABC):
    """Estimated cells: right for queries that the measurements determine, and only for them."""

    __slots__ = ()

    names: Names  # the attributes that they are known along; along others they are all alike

    @abstractmethod
    def marginals(self, tables: Sequence[Names]) -> FloatArray:
        """Marginals of one shape on some of ``names``, in the order of the domain, stacked. Not to be written to."""

    def marginal(self, names: Names) -> FloatArray:
        """The cells of one marginal, shape: its sizes. Not to be written to."""
        return np.asarray(self.marginals([names])[0])


@dataclass(frozen=True, slots=True, eq=False)
class JointCells(Cells):
    """Cells of one joint table."""

    names: Names
    cube: FloatArray

    def marginals(self, tables: Sequence[Names]) -> FloatArray:
        """Sums of the cells."""
        without = [tuple(axis for axis, name in enumerate(self.names) if name not in names) for names in tables]
        return np.stack([self.cube.sum(axis=axes) for axes in without]) if len(without) > 1 else self.cube.sum(axis=without[0])[None]


class Known(ABC):
    """The covariance of least squares for the counts or the sums of one measure."""

    # Every question about a product refuses one that the measurements do not determine.

    __slots__ = ()

    @property
    def solver_cells(self) -> int:
        """The joint cells over which a linear solver must work for errors; 0 where they have a closed form."""
        return 0

    @abstractmethod
    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine."""

    @abstractmethod
    def variances(self, product: Product) -> FloatArray:
        """Variance of every answer of a product, shape ``product.shape``."""

    def variances_of(self, products: Sequence[Product]) -> list[FloatArray]:
        """``variances`` of every product."""
        return [self.variances(product) for product in products]

    @abstractmethod
    def errors(self, product: Product) -> Errors:
        """The sum and the largest of the variances of a product's answers."""

    def errors_of(self, products: Sequence[Product]) -> list[Errors]:
        """``errors`` of every product."""
        return [self.errors(product) for product in products]

    @abstractmethod
    def total(self, product: Product) -> float:
        """Sum of the variances of a product's answers."""

    @abstractmethod
    def covariance(self, product: Product, other: Product) -> FloatArray:
        """Covariance of every answer of a product with every answer of another, shape (one.rows, other.rows)."""


class Structure(Known):
    """The same from blocks that all tell of one table of cells, in one of its forms, with the estimate of these cells."""

    __slots__ = ()

    @abstractmethod
    def cells(self, measured: Sequence[Measured]) -> Cells:
        """The least squares estimate from what all blocks measured, in the order of the plan."""


def covariances(structure: Known, product: Product, other: Product | None = None) -> FloatArray:
    """Covariance of every answer of a table with every answer of another, or of its own."""
    second = product if other is None else other
    if product.measure != second.measure:
        raise InputError(f"Covariances must be of one measure; got {product.name} and {second.name}. Ask for each of them.")
    if not product.rows * second.rows <= MOST_COVARIANCES:
        raise InputError(
            f"At most {MOST_COVARIANCES} covariances can be listed at once; got {product.rows} x {second.rows}. Ask for smaller tables."
        )
    return structure.covariance(product, second)
