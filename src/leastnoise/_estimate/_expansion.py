"""Answers from what a data-aware mechanism measured along one attribute, with the two parts of their error.

Given the outcome of the choices (the regime, the buckets), an answer's error has two parts. *Noise* was added for privacy; its variance is
exact, with the factors of shrinking held fixed. *Approximation* is what is lost by taking cells for alike that are not: it depends on the
data, so it is estimated, from the same paid numbers: for shrunk answers what the differences lie away from the posterior means beyond their
noise, for buckets the deviations that their choice and the test could not see; for both what the bounds changed.

The exponential mechanism keeps a bucket whole with a probability that falls by a factor e for each ``scale`` records of deviation, and
takes ``prior`` (natural logarithms) for each further bucket. So a deviation that ``j`` more buckets would remove is seen when it is well
above ``j * prior * scale``, and hidden below. Post-processing: the scale is public, the counts are noisy.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leastnoise._accuracy import block_variance
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._answer import Answer
from leastnoise._estimate._least_squares import Estimate
from leastnoise._estimate._shrinkage import Halving
from leastnoise._families import interval_ends
from leastnoise._linop import Coarse, Operator, Total, apply, apply_transpose, dense
from leastnoise._measurements import Observation
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What is known of deviations inside buckets."""

    scale: float
    prior: float

    def squares(self, cells: IntArray, counts: FloatArray, variances: FloatArray) -> FloatArray:
        """Square of the deviation that each bucket may hide, as that of one cell of it."""
        # Either every cell deviates by what one more bucket costs, or one by what isolating it costs; no more than the bucket holds, as far
        # as its noisy count tells.
        alone = (np.ceil(np.log2(cells)) * self.prior + 1) ** 2
        seen = self.scale**2 * np.maximum(cells * self.prior**2, alone)
        return np.asarray(np.where(cells > 1, np.minimum(seen, np.maximum(counts, 0.0) ** 2 + variances), 0.0))


_AT_ONCE = 2**22


def chunks(length: int, most: int = _AT_ONCE) -> Iterator[slice]:
    """Slices of at most so many."""
    return (slice(start, start + most) for start in range(0, length, most))


def operator_of(product: Product, size: int) -> Operator:
    """The queries along the one attribute."""
    return product.operators[0] if product.attributes else Total(size)


def answers_of(product: Product, cells: FloatArray) -> FloatArray:
    """Answers from cells, in the product's shape."""
    return np.asarray(apply(operator_of(product, len(cells)), cells)).reshape(product.shape)


def edges_of(operator: Operator) -> tuple[IntArray, IntArray] | None:
    """First cells, and last cells plus 1, if every row is an interval; else None."""
    ends = interval_ends(operator)
    return None if ends is None else (ends[0], ends[1] + 1)


@dataclass(frozen=True, slots=True)
class Independent:
    """Least squares on the measurements of a data-independent plan: no approximation."""

    estimator: Estimate

    def estimate(self, product: Product) -> Answer:
        """Least squares: no approximation, exact errors."""
        return replace(self.estimator.estimate(product), approximation_std=np.zeros(product.shape))


@dataclass(frozen=True, eq=False)
class Expanded:
    """Counts of buckets by least squares, spread evenly over their cells: the estimate of least norm."""

    buckets: Coarse
    counts: FloatArray
    covariance: FloatArray
    hidden: Hidden | None

    @staticmethod
    def of(observation: Observation, hidden: Hidden | None) -> "Expanded":
        """From the observation of one step on buckets."""
        (block,), (values,) = observation.measurements.blocks, observation.values
        (factor,) = block.factors
        if not isinstance(factor.operator, Coarse):
            raise TypeError(factor.operator)
        inner = factor.operator.operator
        precision = factor.weights.astype(np.float64) ** 2 / block_variance(observation.measurements, block)
        unit = np.eye(inner.size)
        information = apply_transpose(inner, precision[:, None] * apply(inner, unit))
        covariance = np.asarray(np.linalg.inv((information + information.T) / 2), dtype=np.float64)
        counts = np.asarray(covariance @ apply_transpose(inner, precision * (values / observation.measurements.grid)), dtype=np.float64)
        return Expanded(factor.operator, counts, (covariance + covariance.T) / 2, hidden)

    @cached_property
    def cells(self) -> FloatArray:
        """Shape (n,): no aligned block is below 0 or above the one it lies in."""
        halving = Halving(self.buckets.size)
        return np.asarray(halving.together(*halving.differences(self.even[None, :]))[0])

    @cached_property
    def even(self) -> FloatArray:
        """The counts spread evenly over the cells of their buckets, without bounds, shape (n,)."""
        return np.asarray(np.repeat(self.counts / self.buckets.lengths, self.buckets.lengths))

    def estimate(self, product: Product) -> Answer:
        """Uniform expansion. The rest of its error: what is hidden in each bucket as if it lay in one cell, and what the bounds changed."""
        values = answers_of(product, self.cells)
        noise = np.sqrt(self.variances(product))
        if self.hidden is None:
            return Answer(values, noise, np.full(product.shape, np.nan))
        square = self.hidden.squares(self.buckets.lengths, self.counts, np.diag(self.covariance))
        moved = answers_of(product, self.even) - values
        return Answer(values, noise, np.sqrt(self._unevenness(product, square) + moved**2))

    def variances(self, product: Product) -> FloatArray:
        """Given the partition: of least squares, before any bounds."""
        operator = operator_of(product, self.buckets.size)
        ends = edges_of(operator)
        if ends is None:
            rows = np.add.reduceat(dense(operator).astype(np.float64), self.buckets.starts, axis=1) / self.buckets.lengths
            return np.asarray(((rows @ self.covariance) * rows).sum(axis=1)).reshape(product.shape)
        sums = np.zeros((len(self.counts) + 1,) * 2)
        sums[1:, 1:] = self.covariance.cumsum(axis=0).cumsum(axis=1)
        variances = np.empty(len(ends[0]))
        for part in chunks(len(variances)):
            low, high = self._place(ends[0][part]), self._place(ends[1][part])
            variances[part] = _between(sums, high, high) + _between(sums, low, low) - 2 * _between(sums, low, high)
        return np.maximum(variances, 0.0).reshape(product.shape)

    def _place(self, edges: IntArray) -> tuple[IntArray, FloatArray]:
        """The bucket in which an edge lies, and the part of it before the edge."""
        bucket = np.minimum(np.searchsorted(self.buckets.starts, edges, side="right") - 1, len(self.counts) - 1)
        return bucket, (edges - self.buckets.starts[bucket]) / self.buckets.lengths[bucket]

    def _unevenness(self, product: Product, square: FloatArray) -> FloatArray:
        """Squared errors of answers where each bucket has its deviation in one cell, anywhere."""
        operator = operator_of(product, self.buckets.size)
        ends = edges_of(operator)
        if ends is None:
            rows, starts, lengths = dense(operator).astype(np.float64), self.buckets.starts, self.buckets.lengths
            mean = np.add.reduceat(rows, starts, axis=1) / lengths
            inside = np.add.reduceat(rows**2, starts, axis=1) / lengths - mean**2
            return np.asarray(np.maximum(inside, 0.0) @ square).reshape(product.shape)
        (first, before), (last, after) = self._place(ends[0]), self._place(ends[1])
        inside = after - before
        apart = square[first] * before * (1 - before) + square[last] * after * (1 - after)
        return np.where(first == last, square[first] * inside * (1 - inside), apart).reshape(product.shape)


def _between(sums: FloatArray, start: tuple[IntArray, FloatArray], end: tuple[IntArray, FloatArray]) -> FloatArray:
    """Covariance of sums up to edges inside buckets, from that of sums up to buckets' starts."""
    (a, f), (b, g) = start, end
    return (1 - f) * ((1 - g) * sums[a, b] + g * sums[a, b + 1]) + f * ((1 - g) * sums[a + 1, b] + g * sums[a + 1, b + 1])
