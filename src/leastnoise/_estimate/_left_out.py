"""Sums along a number of which some cells are left out, because nothing in them stood out of their noise.

Least squares on the cells that are kept is that on all cells given that the others hold nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from leastnoise._accuracy import GivenNothing
from leastnoise._check.arrays import FloatArray
from leastnoise._estimate._answer import Answer
from leastnoise._estimate._expansion import Expanded
from leastnoise._estimate._intervals import answers_of
from leastnoise._measurements import Observation
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """Least squares on the cells that are kept.

    Args:
        full: sums of the groups of cells that queries tell apart.
        kept: the same, 0 without noise where they are left out.
        missing: estimated sum in each cell that is left out, in units, and what cells that are kept fall short by for it, shape (n,).
    """

    full: Expanded
    kept: Expanded
    missing: FloatArray

    @staticmethod
    def of(observation: Observation, first: int, stop: int, losses: Iterable[tuple[int, int, float]]) -> "LeftOut":
        """From the measurement, the cells that are kept, and the sums that may be missing between others."""
        full = Expanded.of(observation, None)
        starts = full.buckets.starts
        given = GivenNothing.of(full.covariance, (starts >= first) & (starts < stop))
        kept = replace(full, counts=given.estimates(full.counts), covariance=given.covariance)
        missing = np.zeros(full.buckets.size)
        for start, behind, loss in losses:
            missing[start:behind] = loss / (behind - start)
        carried = given.carried @ np.add.reduceat(missing, starts)
        inside = np.repeat(given.kept, full.buckets.lengths)
        missing[inside] = np.repeat(carried / full.buckets.lengths, full.buckets.lengths)[inside]
        return LeftOut(full, kept, missing)

    def estimate(self, product: Product) -> Answer:
        """The noise is exact given what is left out; the rest of the error is what may be missing, which is never added to anything.

        An answer about nothing that is kept is 0, with the noise of what was measured and did not stand out of it.
        """
        known = self.kept.variances(product)
        noise = np.sqrt(np.where(known > 0, known, self.full.variances(product)))
        return Answer(answers_of(product, self.kept.even), noise, np.abs(answers_of(product, self.missing)))
