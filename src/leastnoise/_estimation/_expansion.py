"""Estimates along one attribute from a data-dependent mechanism.

Suppose that the choices of the mechanism (the regime, the buckets) are given. Then the error of an
answer has two parts. *Noise* was added for privacy; its variance is exact if the shrinkage factors
are taken as fixed. *Approximation* is the error from cells that are treated as equal although they
differ. The approximation error depends on the data and is estimated from the same noisy numbers.
For shrunk answers, the approximation error is estimated from the distances between the measured
differences and their posterior means, less the part of these distances that noise explains. The
changes that make blocks consistent also count as approximation error.

Levels of blocks are shrunk to their posterior means. If a second step measured buckets, the
posterior means use the results of both steps.

All estimates are functions of noisy and public numbers only.

Source: docs/decisions/dawa.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastnoise._error import block_variance
from leastnoise._estimation._least_squares import Answer, Estimate
from leastnoise._estimation._shrinkage import HalvingTree, ShrinkagePosterior, shrink
from leastnoise._families import TreeInverse, interval_ends
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import (
    Coarse,
    Operator,
    Ranges,
    Total,
    Tree,
    apply,
    apply_transpose,
    dense,
)
from leastnoise._trusted.measurements import Block, Observation
from leastnoise._workload import Product

_MOST_EDGES = 2**12 + 1  # largest number of edges whose covariance matrix is computed in one batch
_QUERIES_PER_BATCH = 2**9  # queries in a batch


def chunks(length: int, largest_size: int) -> Iterator[slice]:
    """Yield slices of at most ``largest_size`` that cover 0 to ``length``."""
    return (slice(start, start + largest_size) for start in range(0, length, largest_size))


def operator_of(product: Product, size: int) -> Operator:
    """Return the queries of a product along its only attribute, as an operator.

    If the product does not name the attribute, the only query is the total.
    """
    if product.attributes:
        return product.operators[0]
    return Total(size)


def answers_of(product: Product, cells: FloatArray) -> FloatArray:
    """Return the answers to a product from cells, shape ``product.shape``."""
    return np.asarray(apply(operator_of(product, len(cells)), cells)).reshape(product.shape)


def spread_evenly(run_counts: FloatArray, run_lengths: IntArray) -> FloatArray:
    """Divide each run's count evenly among the cells of the run."""
    return np.repeat(run_counts / run_lengths, run_lengths)


def starts_of(operator: Operator) -> IntArray:
    """Return the first cell of each run of cells that no query separates."""
    if isinstance(operator, Coarse):
        return operator.starts
    return np.arange(operator.size)


@dataclass(frozen=True, slots=True)
class RowErrors:
    """Error variances of linear functions of one attribute's cells.

    Attributes:
        size: the number of cells.
        up_to: maps each edge t to a row, the linear function that sums the first t cells.
        variances: maps rows to the variances of their errors, shape (rows,); if there are several
            kinds of errors, they are on leading axes.
        covariance: maps rows to the covariance of their errors, shape (rows, rows), with the same
            leading axes.
    """

    size: int
    up_to: Callable[[IntArray], Any]
    variances: Callable[[Any], FloatArray]
    covariance: Callable[[Any], FloatArray]

    def of_product(self, product: Product) -> FloatArray:
        """Return the error variances of the answers to a product.

        The shape is (..., *product.shape), with leading axes for the kinds of errors.
        """
        operator = operator_of(product, self.size)
        ends = interval_ends(operator)
        if ends is None:
            variances = self._of_matrix(operator)
        else:
            variances = self._of_intervals(ends[0], ends[1] + 1)
        return np.maximum(variances, 0.0).reshape((*variances.shape[:-1], *product.shape))

    def _of_matrix(self, operator: Operator) -> FloatArray:
        """Return the error variances of queries with arbitrary coefficients."""
        sums = self.up_to(np.arange(self.size + 1))
        cells = sums[1:] - sums[:-1]
        matrix = dense(operator).astype(np.float64)
        batches = [
            self.variances(matrix[part] @ cells) for part in chunks(len(matrix), _QUERIES_PER_BATCH)
        ]
        return np.concatenate(batches, axis=-1)

    def _of_intervals(self, first_cells: IntArray, stop_cells: IntArray) -> FloatArray:
        """Return the error variances of sums over intervals of cells.

        The intervals exclude their stop cells.
        """
        edges, positions = np.unique(np.concatenate([first_cells, stop_cells]), return_inverse=True)
        if len(edges) <= _MOST_EDGES and len(edges) < len(first_cells):
            return self._of_edge_pairs(
                edges, positions[: len(first_cells)], positions[len(first_cells) :]
            )
        batches = [
            self.variances(self.up_to(stop_cells[part]) - self.up_to(first_cells[part]))
            for part in chunks(len(first_cells), _QUERIES_PER_BATCH)
        ]
        return np.concatenate(batches, axis=-1)

    def _of_edge_pairs(self, edges: IntArray, first: IntArray, last: IntArray) -> FloatArray:
        """Return the error variances of sums between pairs of edges.

        ``first`` and ``last`` index the pairs in ``edges``.
        """
        covariance = self.covariance(self.up_to(edges))
        variances = np.diagonal(covariance, axis1=-2, axis2=-1)
        return np.asarray(
            variances[..., first] + variances[..., last] - 2 * covariance[..., first, last]
        )


def _bucket_factor(block: Block) -> tuple[Coarse, FloatArray]:
    """Return a block's queries on buckets, and the weight of each query."""
    (factor,) = block.factors
    if not isinstance(factor.operator, Coarse):
        raise TypeError(factor.operator)
    return factor.operator, factor.weights.astype(np.float64)


@dataclass(frozen=True, slots=True)
class DataIndependentEstimate:
    """Least squares for a data-independent plan, with approximation error 0."""

    estimator: Estimate

    def estimate(self, product: Product) -> Answer:
        """Return least-squares answers with an approximation error of 0."""
        return replace(self.estimator.estimate(product), approximation_std=np.zeros(product.shape))


@dataclass(frozen=True, eq=False)
class BucketExpansion:
    """Least-squares counts of buckets, divided evenly among their cells."""

    buckets: Coarse
    counts: FloatArray
    covariance: FloatArray

    @staticmethod
    def of(observation: Observation) -> "BucketExpansion":
        """Return the least-squares estimate from an observation of buckets."""
        measurements = observation.measurements
        (block,) = measurements.blocks
        (values,) = observation.values
        buckets, weights = _bucket_factor(block)
        queries_on_buckets = buckets.operator
        precision = weights**2 / block_variance(measurements, block)
        information = apply_transpose(
            queries_on_buckets,
            precision[:, None] * apply(queries_on_buckets, np.eye(queries_on_buckets.size)),
        )
        covariance = np.linalg.inv((information + information.T) / 2)
        counts = covariance @ apply_transpose(
            queries_on_buckets, precision * (values / measurements.grid)
        )
        return BucketExpansion(
            buckets, np.asarray(counts, dtype=np.float64), (covariance + covariance.T) / 2
        )

    @cached_property
    def evenly_divided_cells(self) -> FloatArray:
        """The cells, shape (n,); each has an equal part of its bucket's count."""
        return spread_evenly(self.counts, self.buckets.lengths)

    @cached_property
    def cells(self) -> FloatArray:
        """The estimated cells, (n,), bounded by the counts of enclosing blocks.

        After bounding, no aligned block has a negative count, or a larger count than the next
        larger block around it.
        """
        halving = HalvingTree(self.buckets.size)
        return halving.cells_of(halving.differences(self.evenly_divided_cells))

    def estimate(self, product: Product) -> Answer:
        """Return the answers with errors from noise only."""
        values = answers_of(product, self.cells)
        noise = np.sqrt(self.variances(product))
        return Answer(values, noise, np.full(product.shape, np.nan))

    def _up_to(self, edges: IntArray) -> FloatArray:
        """Return the fraction of each bucket that lies before each edge.

        The shape is (edges, buckets).
        """
        return np.clip((edges[:, None] - self.buckets.starts) / self.buckets.lengths, 0.0, 1.0)

    def variances(self, product: Product) -> FloatArray:
        """Return the noise variances of the answers, for fixed buckets."""
        covariance = self.covariance
        errors = RowErrors(
            self.buckets.size,
            self._up_to,
            variances=lambda rows: np.vecdot(rows @ covariance, rows),
            covariance=lambda rows: rows @ covariance @ rows.T,
        )
        return errors.of_product(product)


def shrunk_levels(observation: Observation) -> tuple[HalvingTree, ShrinkagePosterior]:
    """Return the halving tree, and the posterior of the block differences.

    The first block of the measurements measured the levels of the tree.
    """
    measurements = observation.measurements
    block = measurements.blocks[0]
    values = observation.values[0]
    (factor,) = block.factors
    tree = factor.operator
    if not isinstance(tree, Tree):
        raise TypeError(tree)
    squares = factor.weights.astype(np.float64) ** 2
    halving = HalvingTree(tree.size)
    tree_inverse = TreeInverse(tree, squares)
    cells = tree_inverse.solve(apply_transpose(tree, squares * values / measurements.grid))
    unit_variances = tree_inverse.variances(Ranges(tree.size, *halving.blocks()))
    noise = halving.noise(block_variance(measurements, block) * unit_variances)
    if measurements.noise.norm == 1:
        tail = float(block.scale) / int(factor.weights[-1])
    else:
        tail = None
    return halving, shrink(halving, halving.differences(cells), noise, tail)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of all cells, given measured block levels and buckets.

    The first step measured the levels, and the second step measured the buckets.

    Attributes:
        halving: the tree of aligned blocks, each with the difference of its halves.
        first: the posterior of the first step.
        mean: the posterior mean of the vector of the total and the differences.
        rows: the measurements of the second step, as queries on this vector.
        noise: the variances of the noise of the second step.
        inverse: the inverse covariance matrix of the answers of the second step, given the
            posterior of the first step.
    """

    halving: HalvingTree
    first: ShrinkagePosterior
    mean: FloatArray
    rows: Any
    noise: FloatArray
    inverse: FloatArray

    @staticmethod
    def of(observation: Observation) -> "Posterior":
        """Return the posterior given the observation of the two steps."""
        from scipy.sparse import csr_matrix

        measurements = observation.measurements
        block = measurements.blocks[1]
        values = observation.values[1]
        buckets, weights = _bucket_factor(block)
        halving, first = shrunk_levels(observation)
        rows = csr_matrix(_bucket_rows(buckets, halving))
        noise = block_variance(measurements, block) / weights**2
        covariance = (rows.multiply(first.variances) @ rows.T).toarray() + np.diag(noise)
        inverse = np.linalg.inv(covariance)
        change = inverse @ (values / measurements.grid - rows @ first.means)
        mean = first.means + first.variances * (rows.T @ change)
        return Posterior(halving, first, mean, rows, noise, inverse)

    @cached_property
    def cells(self) -> FloatArray:
        """Posterior means of cells, (n,), bounded by the counts of enclosing blocks.

        After bounding, no block has a negative count, or a larger count than the next larger block
        around it.
        """
        return self.halving.cells_of(self.mean)

    def estimate(self, product: Product) -> Answer:
        """Return posterior means with their noise and approximation errors.

        The noise variance is computed for fixed shrinkage factors. The approximation error includes
        the errors that `checked_errors` estimates, and the changes that make blocks consistent.
        """
        values = answers_of(product, self.cells)
        noise, all_errors = self._variances(product)
        moved = (
            answers_of(product, self.halving.cells_of(self.mean, are_blocks_bounded=False)) - values
        )
        approximation = np.sqrt(np.maximum(all_errors - noise, 0.0) + moved**2)
        return Answer(values, np.sqrt(noise), approximation)

    def _variances(self, product: Product) -> FloatArray:
        """Return noise variances and total error variances, (2, *product.shape)."""
        errors = _PosteriorErrors(self)
        halving = self.halving
        return RowErrors(
            halving.size, halving.up_to, errors.variances, errors.covariance
        ).of_product(product)


def _bucket_rows(buckets: Coarse, halving: HalvingTree) -> Any:
    """Return the bucket queries as a matrix on the vector of differences."""
    sums = halving.up_to(np.append(buckets.starts, buckets.size))
    ends = interval_ends(buckets.operator)
    if ends is None:
        return dense(buckets.operator) @ (sums[1:] - sums[:-1])
    return sums[ends[1] + 1] - sums[ends[0]]


class _PosteriorErrors:
    """The error covariance of posterior means: from noise only, and in total.

    The methods return the two kinds along a new first axis.
    """

    # Let R and E be the rows and the noise of the second step, and let V be the fitted posterior of
    # the first step. Let G = V R' (R V R' + E)^-1. Errors e of the first step and f of the second
    # step leave the error ``(1 - G R) e + G f``. This holds even if V does not describe the
    # variances of e.

    def __init__(self, posterior: Posterior) -> None:
        from scipy.sparse import hstack

        first = posterior.first
        rows = posterior.rows
        self._inverse = posterior.inverse
        self._kinds = (first.noise, first.errors)
        # This is V R' as three column blocks: for V as fitted, V of the noise, and V of the total
        # error.
        crossed = [rows.multiply(kind).T for kind in (first.variances, *self._kinds)]
        self._crossed = hstack(crossed).tocsr()
        _, *spreads = self._multiply_covariances(rows)
        self._spreads = [covariance + np.diag(posterior.noise) for covariance in spreads]

    def _multiply_covariances(self, rows: Any) -> list[FloatArray]:
        """Return ``rows`` V R' for three covariances V, and second-step queries R.

        V is as fitted, of the noise, or of the total error; R has the queries of the second step.
        """
        return np.split((rows @ self._crossed).toarray(), 3, axis=1)

    def variances(self, rows: Any) -> FloatArray:
        """Return the variances of noise and total error of rows, shape (2, rows)."""
        from scipy.sparse import csr_matrix

        rows = csr_matrix(rows)
        fitted, *crossed = self._multiply_covariances(rows)
        gain = fitted @ self._inverse
        by_kind = []
        for errors, across, covariance in zip(self._kinds, crossed, self._spreads, strict=True):
            first_step = np.asarray(rows.multiply(errors).multiply(rows).sum(axis=1)).reshape(-1)
            by_kind.append(first_step + np.vecdot(gain @ covariance - 2 * across, gain))
        return np.stack(by_kind)

    def covariance(self, rows: Any) -> FloatArray:
        """Return the covariances of noise and total error, (2, rows, rows)."""
        from scipy.sparse import csr_matrix

        rows = csr_matrix(rows)
        fitted, *crossed = self._multiply_covariances(rows)
        gain = fitted @ self._inverse
        by_kind = []
        for errors, across, covariance in zip(self._kinds, crossed, self._spreads, strict=True):
            first_step = (rows.multiply(errors) @ rows.T).toarray()
            both_steps = across @ gain.T
            second_step = gain @ covariance @ gain.T
            by_kind.append(first_step - both_steps - both_steps.T + second_step)
        return np.stack(by_kind)
