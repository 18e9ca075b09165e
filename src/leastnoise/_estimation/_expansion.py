"""Estimates along one attribute from a data-dependent mechanism.

Also smoothed estimates after a data-independent one.

Given the choices (the regime, the buckets), the error of an answer has two parts. *Noise* was
added for privacy; its variance is exact, with the factors of shrinking held fixed. *Approximation*
is what is lost by taking cells for alike that are not. It depends on the data, so it is estimated
from the same noisy numbers: for shrunk answers from how far differences lie from their posterior
means beyond their noise. What bounds changed is part of it too.

Levels of blocks are shrunk to their posterior means; with a second step on buckets, to the means
given both steps.

Smoothing a plan that does not look at the data: least squares gives the difference of the halves of
every aligned block (`HalvingTree`) and its noise. The hidden tree of `shrink` gives each difference a
separate posterior, as if it had a normal prior; Stein's estimate of the risk checks each level.
With these priors the cells are estimated once more from all measurements, so that the noise's whole
covariance counts and what queries cancel stays cancelled. On the widest blocks, which are few,
differences stay free. Where nothing can be gained the result is least squares.

All are functions only of noisy and public numbers.

Source: docs/decisions/dawa.md; Stein, Ann. Statist. 9 (1981).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastnoise._error import (
    JointBlocks,
    block_variance,
    conjugate_gradients,
    equations,
    is_nontrivial,
    quantity_structure,
)
from leastnoise._estimation._least_squares import Answer, Estimate
from leastnoise._estimation._shrinkage import HalvingTree, ShrinkagePosterior, shrink
from leastnoise._families import TreeInverse, interval_ends
from leastnoise._trusted.check import InputError
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
from leastnoise._trusted.measurements import Measurements, Observation
from leastnoise._workload import Product, queries

_MOST_EDGES = 2**12 + 1  # edges whose covariance is computed together
_ROWS = 2**9  # queries in a batch


def chunks(length: int, most: int) -> Iterator[slice]:
    """Yield slices of at most ``most`` entries that cover 0 to ``length``."""
    return (slice(start, start + most) for start in range(0, length, most))


def operator_of(product: Product, size: int) -> Operator:
    """Return the queries of a product along its only attribute.

    The total if the product does not name it.
    """
    if product.attributes:
        return product.operators[0]
    return Total(size)


def answers_of(product: Product, cells: FloatArray) -> FloatArray:
    """Return the answers of cells to a product, in its shape."""
    return np.asarray(apply(operator_of(product, len(cells)), cells)).reshape(product.shape)


def spread_evenly(counts: FloatArray, lengths: IntArray) -> FloatArray:
    """Return cells among which the counts of runs are spread evenly."""
    return np.repeat(counts / lengths, lengths)


def starts_of(operator: Operator) -> IntArray:
    """Return the first cells of the runs that no query separates."""
    if isinstance(operator, Coarse):
        return operator.starts
    return np.arange(operator.size)


def variances_of(
    product: Product,
    size: int,
    up_to: Callable[[IntArray], Any],
    variances: Callable[[Any], FloatArray],
    covariance: Callable[[Any], FloatArray],
) -> FloatArray:
    """Return variances of answers along one attribute, (..., *product.shape).

    ``up_to`` turns edges t into rows for the sums of the first t cells. ``variances`` and
    ``covariance`` are of the errors of such rows, of one kind or, along leading axes, of several.
    """
    operator = operator_of(product, size)
    ends = interval_ends(operator)
    if ends is None:
        sums = up_to(np.arange(size + 1))
        matrix = dense(operator).astype(np.float64)
        rows = (matrix[part] @ (sums[1:] - sums[:-1]) for part in chunks(len(matrix), _ROWS))
    else:
        low = ends[0]
        high = ends[1] + 1
        rows = (up_to(high[part]) - up_to(low[part]) for part in chunks(len(low), _ROWS))
        edges, indices = np.unique(np.concatenate([low, high]), return_inverse=True)
        if len(edges) <= _MOST_EDGES and len(edges) < len(low):
            of_edges = covariance(up_to(edges))
            first = indices[: len(low)]
            last = indices[len(low) :]
            edge_variances = np.diagonal(of_edges, axis1=-2, axis2=-1)
            spread = (
                edge_variances[..., first]
                + edge_variances[..., last]
                - 2 * of_edges[..., first, last]
            )
            return np.maximum(spread, 0.0).reshape((*spread.shape[:-1], *product.shape))
    spread = np.concatenate([variances(some) for some in rows], axis=-1)
    return np.maximum(spread, 0.0).reshape((*spread.shape[:-1], *product.shape))


@dataclass(frozen=True, slots=True)
class DataIndependentEstimate:
    """Least squares for a data-independent plan, without approximation error."""

    estimator: Estimate

    def estimate(self, product: Product) -> Answer:
        """Return answers whose approximation adds no error."""
        return replace(self.estimator.estimate(product), approximation_std=np.zeros(product.shape))


@dataclass(frozen=True, eq=False)
class BucketExpansion:
    """Counts of buckets by least squares, spread evenly over their cells."""

    buckets: Coarse
    counts: FloatArray
    covariance: FloatArray

    @staticmethod
    def of(observation: Observation) -> "BucketExpansion":
        """Return the estimate from an observation of buckets."""
        (block,), (values,) = observation.measurements.blocks, observation.values
        (factor,) = block.factors
        if not isinstance(factor.operator, Coarse):
            raise TypeError(factor.operator)
        inner = factor.operator.operator
        precision = factor.weights.astype(np.float64) ** 2 / block_variance(
            observation.measurements, block
        )
        information = apply_transpose(inner, precision[:, None] * apply(inner, np.eye(inner.size)))
        covariance = np.linalg.inv((information + information.T) / 2)
        counts = np.asarray(
            covariance
            @ apply_transpose(inner, precision * (values / observation.measurements.grid)),
            dtype=np.float64,
        )
        return BucketExpansion(factor.operator, counts, (covariance + covariance.T) / 2)

    @cached_property
    def even(self) -> FloatArray:
        """The cells with buckets spread evenly, shape (n,)."""
        return spread_evenly(self.counts, self.buckets.lengths)

    @cached_property
    def cells(self) -> FloatArray:
        """The cells, bounded by their aligned blocks, shape (n,).

        No aligned block is below 0 or above the one that contains it.
        """
        halving = HalvingTree(self.buckets.size)
        return halving.cells_of(halving.differences(self.even))

    def estimate(self, product: Product) -> Answer:
        """Return the answers with errors from noise only."""
        values = answers_of(product, self.cells)
        noise = np.sqrt(self.variances(product))
        return Answer(values, noise, np.full(product.shape, np.nan))

    def _up_to(self, edges: IntArray) -> FloatArray:
        """Return the share of each bucket below each edge, (edges, buckets)."""
        return np.clip((edges[:, None] - self.buckets.starts) / self.buckets.lengths, 0.0, 1.0)

    def variances(self, product: Product) -> FloatArray:
        """Return the variances of least squares, with the buckets as fixed."""
        covariance = self.covariance
        return variances_of(
            product,
            self.buckets.size,
            self._up_to,
            lambda rows: np.vecdot(rows @ covariance, rows),
            lambda rows: rows @ covariance @ rows.T,
        )


def shrunk_levels(observation: Observation) -> tuple[HalvingTree, ShrinkagePosterior]:
    """Return the halving tree, and the posterior of its differences.

    The first block of the measurements measured the levels of the tree.
    """
    plan = observation.measurements
    block = observation.measurements.blocks[0]
    values = observation.values[0]
    (factor,) = block.factors
    tree = factor.operator
    if not isinstance(tree, Tree):
        raise TypeError(tree)
    squares = factor.weights.astype(np.float64) ** 2
    halving = HalvingTree(tree.size)
    tree_inverse = TreeInverse(tree, squares)
    vector = halving.differences(
        tree_inverse.solve(apply_transpose(tree, squares * values / plan.grid))
    )
    noise = halving.noise(
        block_variance(plan, block) * tree_inverse.variances(Ranges(tree.size, *halving.blocks()))
    )
    if plan.noise.norm == 1:
        tail = float(block.scale) / int(factor.weights[-1])
    else:
        tail = None
    return halving, shrink(halving, vector, noise, tail)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior given shrunk levels of blocks and measured buckets.

    A second step measured the buckets.

    Attributes:
        mean: of the vector of total and differences.
        rows: the measurements of the second step, as queries on such vectors.
        noise: the variances of its noise.
        inverse: of the covariance of its answers under the posterior of the first step.
    """

    halving: HalvingTree
    first: ShrinkagePosterior
    mean: FloatArray
    rows: Any
    noise: FloatArray
    inverse: FloatArray

    @staticmethod
    def of(observation: Observation) -> "Posterior":
        """Return the posterior from the observation of both steps."""
        from scipy.sparse import csr_matrix

        measurements = observation.measurements
        (_, block), (_, values) = measurements.blocks, observation.values
        (factor,) = block.factors
        if not isinstance(factor.operator, Coarse):
            raise TypeError(factor.operator)
        halving, first = shrunk_levels(observation)
        sums = halving.up_to(np.append(factor.operator.starts, factor.operator.size))
        ends = interval_ends(factor.operator.operator)
        if ends is None:
            counts = dense(factor.operator.operator) @ (sums[1:] - sums[:-1])
        else:
            counts = sums[ends[1] + 1] - sums[ends[0]]
        rows = csr_matrix(counts)
        noise = block_variance(measurements, block) / factor.weights.astype(np.float64) ** 2
        inverse = np.linalg.inv(
            (rows.multiply(first.variances) @ rows.T).toarray() + np.diag(noise)
        )
        change = inverse @ (values / measurements.grid - rows @ first.means)
        return Posterior(
            halving, first, first.means + first.variances * (rows.T @ change), rows, noise, inverse
        )

    @cached_property
    def cells(self) -> FloatArray:
        """Posterior means of the cells, bounded by their blocks, shape (n,).

        No block is below 0 or above the one that contains it.
        """
        return self.halving.cells_of(self.mean)

    def estimate(self, product: Product) -> Answer:
        """Return posterior means with their noise and approximation errors.

        The noise holds the shrinkage factors fixed. Checked errors and bounds are added to it.
        """
        values = answers_of(product, self.cells)
        noise, all_errors = self._variances(product)
        moved = answers_of(product, self.halving.cells_of(self.mean, bounded=False)) - values
        return Answer(
            values, np.sqrt(noise), np.sqrt(np.maximum(all_errors - noise, 0.0) + moved**2)
        )

    def _variances(self, product: Product) -> FloatArray:
        """Return the noise variances and all variances, (2, *product.shape)."""
        # With R and E the rows and the noise of the second step, V the fitted posterior of the
        # first and G = V R' (R V R' + E)^-1, errors e of the first step and f of the second leave
        # ``(1 - G R) e + G f``, whatever the variances of e really are.
        from scipy.sparse import csr_matrix, hstack

        kinds = self.first.variances, self.first.noise, self.first.errors
        turned = hstack([self.rows.multiply(kind).T for kind in kinds]).tocsr()
        spreads = [
            part + np.diag(self.noise)
            for part in np.split((self.rows @ turned).toarray(), 3, axis=1)[1:]
        ]

        def parts(
            sums: Any,
        ) -> tuple[FloatArray, Iterator[tuple[FloatArray, FloatArray, FloatArray]]]:
            """Return q G for every row q, and its variances for noise and errors.

            They are V, q V R' and the covariance R V R' + E.
            """
            fitted, *real = np.split((sums @ turned).toarray(), 3, axis=1)
            return fitted @ self.inverse, zip(kinds[1:], real, spreads, strict=True)

        def variances(rows: Any) -> FloatArray:
            sums = csr_matrix(rows)
            gain, known = parts(sums)
            each = [
                (sums.multiply(errors).multiply(sums).sum(axis=1), gain @ spread - 2 * real)
                for errors, real, spread in known
            ]
            return np.stack(
                [np.asarray(alone).reshape(-1) + np.vecdot(rest, gain) for alone, rest in each]
            )

        def covariance(rows: Any) -> FloatArray:
            sums = csr_matrix(rows)
            gain, known = parts(sums)
            each = [
                ((sums.multiply(errors) @ sums.T).toarray(), real @ gain.T, gain @ spread @ gain.T)
                for errors, real, spread in known
            ]
            return np.stack(
                [alone - across - across.T + carried for alone, across, carried in each]
            )

        return variances_of(product, self.halving.size, self.halving.up_to, variances, covariance)


_FREE = 4  # a level of so few blocks teaches no prior
_CLEAR = 1e-6  # a posterior variance nearer to the noise than this part of it changes nothing
# simulations with added noise
_DRAWS = 3
_SEED = 20_261_126
# squared standard errors, summed over all differences, at which the equations count as solved
_NEAR = 1e-10


def runs_of(measurements: Measurements) -> tuple[IntArray, HalvingTree, Product]:
    """Return the runs that no query separates, their tree and block queries.

    The runs by their first cells; the queries count all aligned blocks of runs.
    """
    (name,) = {name for block in measurements.blocks for name in block.attributes}
    size = measurements.domain.kind(name).size
    runs = [
        starts_of(factor.operator)
        for block in measurements.blocks
        for factor in block.factors
        if is_nontrivial(factor)
    ]
    if len({each.tobytes() for each in runs}) == 1:
        starts = runs[0]
    else:
        starts = np.arange(size)
    halving = HalvingTree(len(starts), np.diff(starts, append=size))
    first, last = halving.blocks()
    operator = Ranges(size, starts[first], np.append(starts, size)[last + 1] - 1)
    return (
        starts,
        halving,
        queries(measurements.domain, {name: "identity"}).products[0].with_operators((operator,)),
    )


def can_be_smoothed(measurements: Measurements) -> bool:
    """Return whether measurements along one attribute can be smoothed.

    They must determine the counts of all aligned blocks.
    """
    if len({name for block in measurements.blocks for name in block.attributes}) != 1:
        return False
    try:
        quantity_structure(measurements, None).require(runs_of(measurements)[2])
    except InputError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class SmoothedEstimate:
    """The posterior of one attribute's cells, with least squares intervals."""

    plain: Estimate
    cells: FloatArray

    @staticmethod
    def of(observation: Observation) -> "SmoothedEstimate":
        """Return the smoothed estimate of an observation along one attribute."""
        measurements = observation.measurements
        random = np.random.default_rng(_SEED)
        stds = [
            measurements.grid * math.sqrt(block_variance(measurements, block))
            for block in measurements.blocks
        ]
        plain, joint, least, means = posterior_means(observation)
        gone = means - least
        follows = 0.0
        for _ in range(_DRAWS):
            added = [
                np.rint(std * random.standard_normal(len(value)))
                for std, value in zip(stds, observation.values, strict=True)
            ]
            values = tuple(
                value + more.astype(np.int64)
                for value, more in zip(observation.values, added, strict=True)
            )
            _, _, other, noisier = posterior_means(replace(observation, values=values))
            follows += (
                float((other - least) @ joint.gram((noisier - other - gone)[:, None])[:, 0])
                / _DRAWS
            )
        # All means move back to least squares as far as Stein's estimate of their squared error in
        # what was measured advises.
        step_length = max(-follows, 0.0) / max(float(gone @ joint.gram(gone[:, None])[:, 0]), _NEAR)
        return SmoothedEstimate(plain, least + min(step_length, 1.0) * gone)

    def estimate(self, product: Product) -> Answer:
        """Return posterior means with the intervals of least squares.

        The intervals hold the truth whatever was shrunk.
        """
        values = answers_of(product, self.cells)
        plain = self.plain.estimate(product)
        return Answer(values, plain.noise_std, np.abs(values - plain.values), centre=plain.values)


def posterior_means(
    observation: Observation,
) -> tuple[Estimate, JointBlocks, FloatArray, FloatArray]:
    """Return least squares, its joint form, its cells and posterior means."""
    measurements = observation.measurements
    plain = Estimate(observation)
    joint = JointBlocks.of(
        measurements.domain,
        [(entry.block, entry.variance) for entry in equations(measurements, None)],
    )
    starts, halving, blocks = runs_of(measurements)
    lengths = np.diff(starts, append=joint.cells)
    estimated = plain.estimate(blocks)
    counts = estimated.values[: len(starts)]
    variances = estimated.noise_std**2
    vector = halving.differences(counts)
    noise = halving.noise(variances)
    if measurements.noise.norm == 1:
        tail = float(np.sqrt(np.median(variances[: len(starts)]) / 2))
    else:
        tail = None
    shrunk = shrink(halving, vector, noise, tail)
    pilots = zip(*map(halving.levels, (vector, shrunk.means, shrunk.variances, noise)), strict=True)
    precision, pull = np.concatenate(
        [np.zeros((2, 1)), *(level_prior(*pilot) for pilot in pilots)], axis=1
    )
    has_noise = noise > 0  # all but padding

    def normal(vectors: FloatArray) -> FloatArray:
        cells = spread_evenly(halving.cells_of(vectors[:, 0], bounded=False), lengths)
        gathered_back = halving.transposed(joint.gram(cells[:, None])[starts, 0])
        return (has_noise * (gathered_back + precision * vectors[:, 0]))[:, None]

    gathered = joint.gather([values[:, None] / measurements.grid for values in observation.values])[
        starts, 0
    ]
    diagonal = (1 / np.where(has_noise, noise, 1.0) + precision)[:, None]
    gap = (has_noise * (halving.transposed(gathered) + pull))[:, None] - normal(
        shrunk.means[:, None]
    )
    mean = (
        shrunk.means
        + conjugate_gradients(normal, lambda residual: residual / diagonal, gap, _NEAR)[:, 0]
    )
    return (
        plain,
        joint,
        spread_evenly(counts, lengths),
        spread_evenly(halving.cells_of(mean), lengths),
    )


def level_prior(
    part: FloatArray, mean: FloatArray, posterior_noise: FloatArray, noise: FloatArray
) -> FloatArray:
    """Return the normal priors that imply a level's posteriors.

    Precisions, and precisions times means; shape (2, blocks).
    """
    # If the posteriors are right, measured differences lie as far from their means as the noise
    # that these take away. Where they lie further, all means of the level are moved back by the
    # same part of the way: the factor of least risk by Stein's unbiased estimate.
    has_noise = noise > 0
    before = np.where(noise > 0, noise, 1.0)
    total_reduction = (1 - posterior_noise / before)[has_noise].sum()
    away = ((part - mean) ** 2 / before)[has_noise].sum()
    shrink_factor = min(1.0, total_reduction / max(away, 1e-9))
    mean = part + shrink_factor * (mean - part)
    posterior_noise = shrink_factor * posterior_noise + (1 - shrink_factor) * noise
    lessened = (posterior_noise < (1 - _CLEAR) * noise) & (len(part) > _FREE)
    before = np.where(lessened, noise, 1.0)
    after = np.where(lessened, np.maximum(posterior_noise, _CLEAR * before), 1.0)
    return np.where(lessened, [1 / after - 1 / before, mean / after - part / before], 0.0)
