"""Sums by groups of which each adds up its lowest buckets of a number, as many as are likely worth their noise.

Every sum of a group and a bucket was measured by itself, so what a group leaves out tells nothing of what it keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from sys import float_info

import numpy as np

from leastnoise._accuracy import block_variance
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._answer import Answer, Sides
from leastnoise._measurements import Observation
from leastnoise._workload import Product, identity


@dataclass(frozen=True, slots=True, eq=False)
class ByGroup:
    """Sums of the buckets that each group keeps."""

    names: tuple[str, ...]
    sums: FloatArray
    noise: FloatArray
    kept: IntArray
    missing: FloatArray

    @staticmethod
    def of(observation: Observation, attribute: str, kept: Sequence[int] | IntArray, missing: Sequence[float] | FloatArray) -> "ByGroup":
        """From the measurements, the last of which is that of the sums."""
        sums, noise = measured_by_group(observation, attribute)
        many = np.array(kept)
        if many.dtype.kind != "i" or many.ndim != 1 or not ((many >= 0) & (many <= len(noise))).all():
            raise ValueError(len(noise))
        if not all(0 <= value <= float_info.max for value in missing):
            raise ValueError(missing)
        names = tuple(factor.attributes[0] for factor in observation.measurements.blocks[-1].factors if factor.attributes != (attribute,))
        shape = sums.shape[:-1]
        lost = np.array(missing, dtype=np.float64).reshape(shape)
        return ByGroup(names, sums, noise, many.reshape(shape), lost)

    def estimate(self, product: Product) -> Answer:
        """The noise is exact given what is kept; the rest of the error is what may be missing, which is never added to anything."""
        # An answer that keeps nothing is 0, with the noise of what was measured and was not worth it.
        # Its upper side is of the sum of all buckets, wherever the values lie.
        if product.attributes != self.names or any(query_set != identity() for query_set in product.query_sets):
            raise InputError(f"Sums were measured by {' x '.join(self.names) or 'no attribute'} alone. Ask for these groups.")
        everything = np.full(self.kept.shape, np.sqrt((self.noise**2).sum()))
        within = np.arange(len(self.noise)) < self.kept[..., None]
        values = np.where(within, self.sums, 0.0).sum(axis=-1)
        noise = np.where(self.kept > 0, np.sqrt((within * self.noise**2).sum(axis=-1)), everything)
        return Answer(values, noise, self.missing, Sides(values, noise, self.sums.sum(axis=-1), everything))


def measured_by_group(observation: Observation, attribute: str) -> tuple[FloatArray, FloatArray]:
    """The sums of groups and buckets, the buckets along the last axis, and the buckets' standard errors."""
    made, values = observation.measurements, observation.values[-1]
    block = made.blocks[-1]
    position = [factor.attributes for factor in block.factors].index((attribute,))
    sums = np.moveaxis((values / made.grid).reshape([factor.operator.rows for factor in block.factors]), position, -1)
    return sums, np.sqrt(block_variance(made, block)) / block.factors[position].weights
