"""Sums of values clipped at a threshold, and sums over some cells.

The stated errors include the estimated amount that a sum leaves out.

There are three kinds of sums. For truncated sums, the threshold was chosen privately, and error
bars cover the noise for this threshold. The bias is estimated from the noisy counts of the tail,
which also determined the threshold. Every record between two candidate thresholds is assigned the
middle of its cell. The loss is divided among groups in proportion to their sums. For sums over some
cells, the cells along a number are omitted if no sum in them exceeded the noise. Least squares on
the kept cells equals least squares on all cells, given that all other cells are 0. For sums by
group, the lowest buckets of a number are added up in each group. The sums were measured
independently, so the omitted buckets of a group carry no information about its kept buckets.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from sys import float_info

import numpy as np

from leastnoise._error import ConstrainedLeastSquares, block_variance
from leastnoise._estimation._expansion import (
    BucketExpansion,
    answers_of,
    chunks,
    operator_of,
    spread_evenly,
)
from leastnoise._estimation._least_squares import Answer, Estimate, OneSidedBounds
from leastnoise._families import apply_along_axes, interval_ends
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Operator, apply, dense
from leastnoise._trusted.measurements import Observation
from leastnoise._workload import Product, identity

_AT_ONCE = 2**22  # maximum number of array entries in a batch
_ZERO_TOLERANCE = 1e-9  # a coefficient this near to 0 counts as 0


@dataclass(frozen=True, slots=True, eq=False)
class TruncatedSumsEstimate:
    """Least squares on sums of values that were clipped at a threshold."""

    estimator: Estimate
    attribute: str
    excess: FloatArray

    @staticmethod
    def of(
        observation: Observation, attribute: str, range_losses: Iterable[tuple[int, int, float]]
    ) -> "TruncatedSumsEstimate":
        """Return the estimate from an observation and estimated clipping losses.

        Each loss is for a range of cells of the attribute.
        """
        excess = np.zeros(observation.measurements.domain.kind(attribute).size)
        for start, stop, loss in range_losses:
            excess[start:stop] = loss / max(stop - start, 1)
        return TruncatedSumsEstimate(Estimate(observation), attribute, excess)

    def estimate(self, product: Product) -> Answer:
        """Return least-squares answers on clipped values.

        The noise errors are exact for the chosen threshold. The estimated loss is part of the
        stated errors.
        """
        return replace(
            self.estimator.estimate(product), approximation_std=np.abs(self.losses(product))
        )

    def losses(self, product: Product) -> FloatArray:
        """Return the estimated amount that clipping removes from each answer.

        The array has shape ``product.shape``. The estimated loss is never added to an answer.
        """
        if self.attribute in product.attributes:
            axis = product.attributes.index(self.attribute)
            lost = apply(product.operators[axis], self.excess)
        else:
            axis = -1
            lost = np.array(float(self.excess.sum()))
        other_axes = tuple(index for index in range(len(product.attributes)) if index != axis)
        if not other_axes:
            return np.broadcast_to(lost, product.shape).copy()
        cells = np.maximum(
            self.estimator.cells(
                tuple(product.attributes[index] for index in other_axes), product.measure
            ),
            0.0,
        )
        if cells.sum() > 0:
            share = cells / cells.sum()
        else:
            share = np.full(cells.shape, 1 / cells.size)
        outer = np.multiply.outer(
            apply_along_axes((product.operators[other] for other in other_axes), share), lost
        )
        return np.asarray(np.moveaxis(outer, -1, axis) if axis >= 0 else outer)


@dataclass(frozen=True, slots=True, eq=False)
class DroppedBucketsEstimate:
    """Least squares on a range of kept cells; all other cells are 0."""

    full: BucketExpansion
    kept: BucketExpansion
    constrained: ConstrainedLeastSquares
    missing: FloatArray

    @staticmethod
    def of(
        observation: Observation,
        first: int,
        stop: int,
        range_losses: Iterable[tuple[int, int, float]],
    ) -> "DroppedBucketsEstimate":
        """Return the estimate from an observation and the range of kept cells.

        The losses are the estimated sums over omitted ranges of cells.
        """
        full = BucketExpansion.of(observation)
        starts = full.buckets.starts
        constrained = ConstrainedLeastSquares.of(
            full.covariance, (starts >= first) & (starts < stop)
        )
        kept_buckets = replace(
            full, counts=constrained.estimates(full.counts), covariance=constrained.covariance
        )
        missing = np.zeros(full.buckets.size)
        for start, end, loss in range_losses:
            missing[start:end] = loss / (end - start)
        carried = constrained.coefficients @ np.add.reduceat(missing, starts)
        inside = np.repeat(constrained.kept, full.buckets.lengths)
        missing[inside] = spread_evenly(carried, full.buckets.lengths)[inside]
        return DroppedBucketsEstimate(full, kept_buckets, constrained, missing)

    def estimate(self, product: Product) -> Answer:
        """Return the answers from the kept cells, with their exact noise errors.

        The amount that may be missing is never added to an answer.
        """
        # An answer without any kept cell is 0. Its stated noise is the noise of the measured sums,
        # which did not exceed this noise. The sides bound the sum of all values, in kept or omitted
        # cells. No sum of a cell is below 0. So the estimate from all measurements bounds a sum
        # from above. A sum can be below its answer by at most the amount that omitted cells added
        # to the answer.
        values = answers_of(product, self.kept.evenly_divided_cells)
        variances = self.kept.variances(product)
        everything = np.sqrt(self.full.variances(product))
        noise = np.where(variances > 0, np.sqrt(variances), everything)
        raised, variance = (
            part.reshape(product.shape)
            for part in self._omitted_amounts(operator_of(product, self.full.buckets.size))
        )
        sides = OneSidedBounds(
            values - raised,
            np.sqrt(variances + variance),
            answers_of(product, self.full.evenly_divided_cells),
            everything,
        )
        return Answer(values, noise, np.abs(answers_of(product, self.missing)), sides)

    def _omitted_amounts(self, operator: Operator) -> tuple[FloatArray, FloatArray]:
        """Return the estimated amount that each answer omits, and its variance."""
        outside = np.flatnonzero(~self.constrained.kept)
        raised = np.zeros((2, operator.rows))
        covariance = self.full.covariance[np.ix_(outside, outside)]
        groups = np.zeros((operator.size, len(outside)))
        groups[self.full.buckets.starts] = self.constrained.coefficients[:, outside]
        ends = interval_ends(operator)
        upto = np.concatenate([np.zeros((1, len(outside))), np.cumsum(groups, axis=0)])
        if ends is None:
            matrix = dense(operator).astype(np.float64)
        else:
            matrix = np.zeros((0, 0))
        for part in chunks(operator.rows, max(1, _AT_ONCE // len(self.constrained.kept))):
            if ends is None:
                carried = matrix[part] @ groups
            else:
                carried = upto[ends[1][part] + 1] - upto[ends[0][part]]
            some = np.flatnonzero((carried < -_ZERO_TOLERANCE).any(axis=1))
            below = np.maximum(-carried[some], 0.0)
            raised[:, part.start + some] = (
                below @ self.full.counts[outside],
                ((below @ covariance) * below).sum(axis=1),
            )
        return raised[0], raised[1]


@dataclass(frozen=True, slots=True, eq=False)
class GroupedBucketSumsEstimate:
    """The sum of each group's lowest buckets, up to a separate limit per group."""

    names: tuple[str, ...]
    sums: FloatArray
    noise: FloatArray
    kept: IntArray
    missing: FloatArray

    @staticmethod
    def of(
        observation: Observation,
        attribute: str,
        kept_counts: Sequence[int] | IntArray,
        missing_amounts: Sequence[float] | FloatArray,
    ) -> "GroupedBucketSumsEstimate":
        """Return the estimate from the last step, with each group's kept buckets.

        For each group, ``kept_counts`` has the number of its kept buckets, and ``missing_amounts``
        the amount that may be missing.
        """
        sums, noise = measured_by_group(observation, attribute)
        many = np.array(kept_counts)
        if (
            many.dtype.kind != "i"
            or many.ndim != 1
            or not ((many >= 0) & (many <= len(noise))).all()
        ):
            raise ValueError(len(noise))
        if not all(0 <= value <= float_info.max for value in missing_amounts):
            raise ValueError(missing_amounts)
        names = tuple(
            factor.attributes[0]
            for factor in observation.measurements.blocks[-1].factors
            if factor.attributes != (attribute,)
        )
        shape = sums.shape[:-1]
        lost = np.array(missing_amounts, dtype=np.float64).reshape(shape)
        return GroupedBucketSumsEstimate(names, sums, noise, many.reshape(shape), lost)

    def estimate(self, product: Product) -> Answer:
        """Return the sums with their noise errors and estimated omissions.

        The amount that may be missing is never added to an answer.
        """
        # An answer without any kept bucket is 0. Its stated noise is the noise of the measured
        # buckets that are not kept. Its upper side bounds the sum of all buckets, kept or not.
        if product.attributes != self.names or any(
            query_set != identity() for query_set in product.query_sets
        ):
            raise InputError(
                f"Sums were measured by {' x '.join(self.names) or 'no attribute'} only. "
                "Request these groups."
            )
        everything = np.full(self.kept.shape, np.sqrt((self.noise**2).sum()))
        within = np.arange(len(self.noise)) < self.kept[..., None]
        values = np.where(within, self.sums, 0.0).sum(axis=-1)
        noise = np.where(self.kept > 0, np.sqrt((within * self.noise**2).sum(axis=-1)), everything)
        return Answer(
            values,
            noise,
            self.missing,
            OneSidedBounds(values, noise, self.sums.sum(axis=-1), everything),
        )


def measured_by_group(observation: Observation, attribute: str) -> tuple[FloatArray, FloatArray]:
    """Return sums by group and bucket, and the standard error in each bucket.

    The buckets are the last axis.
    """
    measurements = observation.measurements
    values = observation.values[-1]
    block = measurements.blocks[-1]
    position = [factor.attributes for factor in block.factors].index((attribute,))
    sums = np.moveaxis(
        (values / measurements.grid).reshape([factor.operator.rows for factor in block.factors]),
        position,
        -1,
    )
    return sums, np.sqrt(block_variance(measurements, block)) / block.factors[position].weights
