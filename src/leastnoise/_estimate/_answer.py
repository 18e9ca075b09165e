"""What every estimate says of a table: values, and the two parts of their error."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leastnoise._check.arrays import FloatArray
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Estimated answers to one product of queries, with their errors; all of the product's shape, in rows or units of its measure.

    Args:
        values: the answers.
        noise_std: their standard errors from the noise; NaN where they are not known.
        approximation_std: estimated size of the rest of the error, NaN where nothing tells; None of estimates that have no such part.

    >>> Answer(np.array([7.0]), np.array([3.0]), np.array([4.0])).std.tolist()
    [5.0]
    """

    values: FloatArray
    noise_std: FloatArray
    approximation_std: FloatArray | None = None

    @property
    def std(self) -> FloatArray:
        """Both parts together, as far as they are known."""
        return self.noise_std if self.approximation_std is None else np.hypot(self.noise_std, np.nan_to_num(self.approximation_std))


class Estimator(Protocol):
    """Whatever answers products of queries from what was measured."""

    def estimate(self, product: Product) -> Answer:
        """Values and errors of one product.

        Raises:
            InputError: the measurements do not determine it.
        """
