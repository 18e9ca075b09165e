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
    """What true answers are not below, and what they are not above, whatever an estimate leaves out; all of the product's shape.

    Args:
        least: unbiased estimates of something that the true answers are not below.
        least_std: their standard errors.
        most: unbiased estimates of something that the true answers are not above.
        most_std: their standard errors.
    """

    least: FloatArray
    least_std: FloatArray
    most: FloatArray
    most_std: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Estimated answers to one product of queries, with their errors; all of the product's shape, in rows or units of its measure.

    Args:
        values: the answers.
        noise_std: their standard errors from the noise; NaN where they are not known.
        approximation_std: estimated size of the rest of the error, NaN where nothing tells; None of estimates that have no such part.
        sides: what intervals have to reach besides; None where both parts of the error are all of it.
        centre: unbiased answers with these ``noise_std``, whose intervals are given in the place of those about the values; None for none.

    >>> Answer(np.array([7.0]), np.array([3.0]), np.array([4.0])).std.tolist()
    [5.0]
    """

    values: FloatArray
    noise_std: FloatArray
    approximation_std: FloatArray | None = None
    sides: Sides | None = None
    centre: FloatArray | None = None

    @property
    def std(self) -> FloatArray:
        """Both parts together, as far as they are known."""
        return self.noise_std if self.approximation_std is None else np.hypot(self.noise_std, np.nan_to_num(self.approximation_std))

    def reaches(self, times: float, once: float, half_step: float) -> tuple[FloatArray, FloatArray]:
        """How far an interval reaches below the values, and above them.

        Args:
            times: its half width in standard errors.
            once: the same of an interval with one end at the same level: a truth far from the values is missed on one side alone.
            half_step: added to each.

        >>> sides = Sides(np.array([7.0]), np.array([3.0]), np.array([20.0]), np.array([5.0]))
        >>> [reach.tolist() for reach in Answer(np.array([7.0]), np.array([3.0]), sides=sides).reaches(2.0, 1.6, 0.5)]
        [[6.5], [21.5]]
        >>> [reach.tolist() for reach in Answer(np.array([7.0]), np.array([3.0]), centre=np.array([6.0])).reaches(2.0, 1.6, 0.5)]
        [[7.5], [5.5]]
        """
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
        """Values and errors of one product.

        Raises:
            InputError: the measurements do not determine it.
        """


@singledispatch
def estimates(estimator: Estimator, products: Sequence[Product]) -> Iterable[Answer]:
    """``estimate`` of several products, in their order: at once where that is quicker.

    Args:
        estimator: whatever answers.
        products: of one domain.

    Raises:
        InputError: the measurements do not determine one.

    >>> plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> release = ln.release(plan, pd.DataFrame({"sex": ["F", "M", "M"]}), seed=7)
    >>> [found.values.shape for found in estimates(release.least_squares(), plan.workload.products)]
    [(2,)]
    """
    return map(estimator.estimate, products)
