"""The covariance of sums that are made of centred sums and of counts: see `_told`."""

from dataclasses import dataclass

from leastnoise._accuracy._form import Known
from leastnoise._check.arrays import FloatArray
from leastnoise._families import MOST_LISTED, Errors
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, eq=False)
class SumKnown(Known):
    """Sums of v as those of v - m plus m times counts, whose errors are uncorrelated."""

    centred: Known
    counts: Known
    middle: float

    @property
    def solver_cells(self) -> int:
        """The larger of the two."""
        return max(self.centred.solver_cells, self.counts.solver_cells)

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine: whatever tells of centred sums tells of the counts too."""
        self.centred.require(product)

    def variances(self, product: Product) -> FloatArray:
        """Variance of every answer of a product, shape ``product.shape``."""
        return self.centred.variances(product) + self.middle**2 * self.counts.variances(product)

    def errors(self, product: Product) -> Errors:
        """The sum and the largest of the variances of a product's answers; of very many answers a bound on the largest."""
        centred, counts = self.centred.errors(product), self.counts.errors(product)
        total = centred.total + self.middle**2 * counts.total
        if not self.middle or (product.rows <= MOST_LISTED and not self.solver_cells):
            return Errors(total, float(self.variances(product).max())) if self.middle else centred
        return Errors(total, centred.largest + self.middle**2 * counts.largest, exact=False)

    def total(self, product: Product) -> float:
        """Sum of the variances of a product's answers."""
        return self.centred.total(product) + self.middle**2 * self.counts.total(product)

    def covariance(self, one: Product, other: Product) -> FloatArray:
        """Covariance of every answer of a product with every answer of another, shape (one.rows, other.rows)."""
        return self.centred.covariance(one, other) + self.middle**2 * self.counts.covariance(one, other)
