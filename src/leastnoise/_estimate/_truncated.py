"""Sums of values cut at a threshold that was chosen privately: least squares, and what the cut is estimated to have taken away.

The error bars cover the noise, given the threshold. The bias is known only as far as the noisy counts of the tail tell it, which chose the
threshold: every record of an interval between two candidates is taken at the middle of its cell, and groups are taken to share the loss in
proportion to their sums.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from leastnoise._check.arrays import FloatArray
from leastnoise._estimate._answer import Answer
from leastnoise._estimate._least_squares import Estimate
from leastnoise._linop import along, apply
from leastnoise._measurements import Observation
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, eq=False)
class Truncated:
    """Least squares on truncated sums."""

    estimator: Estimate
    attribute: str
    excess: FloatArray

    @staticmethod
    def of(observation: Observation, attribute: str, losses: Iterable[tuple[int, int, float]]) -> "Truncated":
        """From both measurements, and what the cut is estimated to have taken between cells of the attribute."""
        excess = np.zeros(observation.measurements.domain.kind(attribute).size)
        for start, stop, loss in losses:
            excess[start:stop] = loss / max(stop - start, 1)
        return Truncated(Estimate(observation), attribute, excess)

    def estimate(self, product: Product) -> Answer:
        """Least squares answers about the cut values; the noise is exact given the threshold, the rest is the estimated loss."""
        return replace(self.estimator.estimate(product), approximation_std=np.abs(self.losses(product)))

    def losses(self, product: Product) -> FloatArray:
        """What the cut is estimated to have taken from each answer, shape ``product.shape``, in units; never subtracted from anything."""
        if self.attribute in product.attributes:
            axis = product.attributes.index(self.attribute)
            lost = apply(product.operators[axis], self.excess)
        else:
            axis, lost = -1, np.array(float(self.excess.sum()))
        others = tuple(place for place in range(len(product.attributes)) if place != axis)
        if not others:
            return np.broadcast_to(lost, product.shape).copy()
        cells = np.maximum(self.estimator.cells(tuple(product.attributes[place] for place in others), product.measure), 0.0)
        share = cells / cells.sum() if cells.sum() > 0 else np.full(cells.shape, 1 / cells.size)
        for place, other in enumerate(others):
            share = along(apply, product.operators[other], share, place)
        outer = np.multiply.outer(share, lost)
        return np.asarray(np.moveaxis(outer, -1, axis) if axis >= 0 else outer)
