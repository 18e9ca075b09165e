"""What every estimate says of a table: values, and the two parts of their error."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol

import numpy as np

from leastnoise._check.arrays import FloatArray
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """What true answers are not below, and what they are not above, whatever an estimate leaves out; all of the product's shape."""

    least: FloatArray
    least_std: FloatArray
    most: FloatArray
    most_std: FloatArray


# What floating point may have added to a whole number: of a row, through an inverse that is hard on it; of the largest value.
_OF_A_ROW, _OF_THE_LARGEST = 2.0**-20, 2.0**-44


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Estimated answers to one product of queries, with their errors; all of the product's shape, in rows or units of its measure."""

    # A value that is a whole number but for the rounding of floating point is that number.

    values: FloatArray
    noise_std: FloatArray
    approximation_std: FloatArray | None = None
    sides: Sides | None = None
    centre: FloatArray | None = None

    def __post_init__(self) -> None:
        whole = np.rint(self.values)
        near = np.abs(self.values - whole) <= max(_OF_A_ROW, _OF_THE_LARGEST * np.abs(self.values).max(initial=0.0))
        object.__setattr__(self, "values", np.where(near, whole + 0.0, self.values))

    @property
    def std(self) -> FloatArray:
        """Both parts together, as far as they are known."""
        return self.noise_std if self.approximation_std is None else np.hypot(self.noise_std, np.nan_to_num(self.approximation_std))

    def reaches(self, times: float, once: float, half_step: float) -> tuple[FloatArray, FloatArray]:
        """How far an interval reaches below the values, and above them."""
        if self.centre is not None:
            plain, moved = times * self.noise_std + half_step, self.values - self.centre
            return np.maximum(plain + moved, 0.0), np.maximum(plain - moved, 0.0)
        margin = times * self.std + half_step
        if self.sides is None:
            return margin, margin
        below = self.values - self.sides.least + once * self.sides.least_std + half_step
        above = self.sides.most - self.values + once * self.sides.most_std + half_step
        return np.maximum(margin, below), np.maximum(margin, above)


class Estimator(Protocol):
    """Whatever answers products of queries from what was measured."""

    def estimate(self, product: Product) -> Answer:
        """Values and errors of one product."""


@singledispatch
def estimates(estimator: Estimator, products: Sequence[Product]) -> Iterable[Answer]:
    """``estimate`` of several products, in their order: at once where that is quicker."""
    return map(estimator.estimate, products)
