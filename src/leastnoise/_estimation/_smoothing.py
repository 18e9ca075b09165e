"""Smoothed estimates of one attribute's cells after a data-independent plan.

Least squares gives the difference of the halves of every aligned block (`HalvingTree`) and its
noise. The hidden Markov tree of `shrink` computes a posterior of each difference, which is treated
as if it came from a normal prior. Each level is checked by Stein's unbiased estimate of the risk.
With these priors, the cells are estimated once more from all measurements. So the full covariance
of the noise is used, including errors that cancel within a query. The differences of the widest
blocks have no prior, because there are too few of these blocks to fit one. If smoothing does not
reduce the error, the result equals least squares.

All estimates are functions only of noisy and public numbers.

Source: docs/decisions/dawa.md; Stein, Ann. Statist. 9 (1981).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from leastnoise._error import (
    JointBlocks,
    block_variance,
    conjugate_gradients,
    equations,
    is_nontrivial,
    quantity_structure,
)
from leastnoise._estimation._expansion import answers_of, spread_evenly, starts_of
from leastnoise._estimation._least_squares import Answer, Estimate
from leastnoise._estimation._shrinkage import HalvingTree, ShrinkagePosterior, shrink
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._trusted.linop import Ranges
from leastnoise._trusted.measurements import Measurements, Observation
from leastnoise._workload import Product, queries

_MOST_UNFITTED_BLOCKS = 4  # maximum number of blocks of a level that is too small to fit a prior
# Relative difference from the noise below which a posterior variance counts as equal.
_VARIANCE_TOLERANCE = 1e-6
# The number of simulations with added noise.
_NOISE_DRAWS = 3
_SEED = 20_261_126
# The equations count as solved if the squared standard errors, summed over all differences, are
# below this number.
_SOLVED_ERROR = 1e-10
_LEAST_DISTANCE = 1e-9  # prevents a division by zero; the quotient is at most 1 in any case


@dataclass(frozen=True, eq=False)
class RunTree:
    """Runs of cells that no query separates, and the halving tree of the runs.

    Attributes:
        starts: the first cell of each run.
        lengths: the number of cells of each run.
        halving: the halving tree over the runs.
        block_queries: the queries that count the aligned blocks.
    """

    starts: IntArray
    lengths: IntArray
    halving: HalvingTree
    block_queries: Product

    @staticmethod
    def of(measurements: Measurements) -> "RunTree":
        """Return the runs and their tree for measurements on one attribute."""
        (name,) = set(chain.from_iterable(block.attributes for block in measurements.blocks))
        size = measurements.domain.kind(name).size
        starts = _common_starts(measurements, size)
        lengths = np.diff(starts, append=size)
        halving = HalvingTree(len(starts), lengths)
        first, last = halving.blocks()
        block_ranges = Ranges(size, starts[first], np.append(starts, size)[last + 1] - 1)
        (cells,) = queries(measurements.domain, {name: "identity"}).products
        return RunTree(starts, lengths, halving, cells.with_operators((block_ranges,)))

    def spread(self, counts: FloatArray) -> FloatArray:
        """Divide each run's count evenly among the cells of the run."""
        return spread_evenly(counts, self.lengths)

    def cells_of(self, vector: FloatArray, *, are_blocks_bounded: bool = True) -> FloatArray:
        """Convert a vector of the total and the differences back to cells."""
        return self.spread(self.halving.cells_of(vector, are_blocks_bounded=are_blocks_bounded))


def _common_starts(measurements: Measurements, size: int) -> IntArray:
    """Return the first cells of the runs, if all blocks have the same runs.

    If the blocks have different runs, every cell is a run.
    """
    starts = []
    for block in measurements.blocks:
        starts += [starts_of(factor.operator) for factor in filter(is_nontrivial, block.factors)]
    if len({each.tobytes() for each in starts}) == 1:
        return starts[0]
    return np.arange(size)


def can_be_smoothed(measurements: Measurements) -> bool:
    """Return whether the estimate from some measurements can be smoothed.

    Smoothing requires that the measurements determine the counts of all aligned blocks.
    """
    if len(set(chain.from_iterable(block.attributes for block in measurements.blocks))) != 1:
        return False
    try:
        quantity_structure(measurements, None).require(RunTree.of(measurements).block_queries)
    except InputError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class SmoothedEstimate:
    """Smoothed cells of one attribute, with the intervals of least squares."""

    least_squares: Estimate
    cells: FloatArray

    @staticmethod
    def of(observation: Observation) -> "SmoothedEstimate":
        """Return the smoothed estimate of an observation on one attribute.

        At the end, all means are moved towards least squares. The fraction of this move minimises
        Stein's estimate of the squared error in the measured answers.
        """
        smoothed = posterior_means(observation)
        change = smoothed.change
        squared_change = float(change @ smoothed.joint.gram(change[:, None])[:, 0])
        slope = _estimate_divergence(observation, smoothed)
        step_length = max(-slope, 0.0) / max(squared_change, _SOLVED_ERROR)
        return SmoothedEstimate(
            smoothed.least_squares_estimate, smoothed.least_squares + min(step_length, 1.0) * change
        )

    def estimate(self, product: Product) -> Answer:
        """Return the answers from smoothed cells, with least-squares intervals.

        The intervals of least squares cover the truth for any amount of shrinkage.
        """
        values = answers_of(product, self.cells)
        plain = self.least_squares.estimate(product)
        return Answer(values, plain.noise_std, np.abs(values - plain.values), centre=plain.values)


def _estimate_divergence(observation: Observation, smoothed: "PosteriorMeans") -> float:
    """Return the mean inner product of added noise and the resulting change.

    The mean inner product estimates the divergence in Stein's formula.

    The noise changes the difference between the posterior means and the least-squares cells. The
    noise is simulated a few times.
    """
    measurements = observation.measurements
    random = np.random.default_rng(_SEED)
    stds = [
        measurements.grid * math.sqrt(block_variance(measurements, block))
        for block in measurements.blocks
    ]
    mean = 0.0
    for _ in range(_NOISE_DRAWS):
        noisier = posterior_means(_with_added_noise(observation, stds, random))
        added = noisier.least_squares - smoothed.least_squares
        further_change = noisier.change - smoothed.change
        mean += float(added @ smoothed.joint.gram(further_change[:, None])[:, 0]) / _NOISE_DRAWS
    return mean


def _with_added_noise(
    observation: Observation, stds: Sequence[float], random: np.random.Generator
) -> Observation:
    """Add further rounded normal noise to each block of an observation."""
    values = []
    for std, measured in zip(stds, observation.values, strict=True):
        noise = np.rint(std * random.standard_normal(len(measured)))
        values.append(measured + noise.astype(np.int64))
    return replace(observation, values=tuple(values))


@dataclass(frozen=True, eq=False)
class PosteriorMeans:
    """The cells of one attribute by least squares, and their posterior means.

    Attributes:
        least_squares_estimate: the least squares estimate.
        joint: the blocks of the measurements, over the cells.
        least_squares: the cells by least squares, spread evenly within runs.
        means: the posterior means of the cells.
    """

    least_squares_estimate: Estimate
    joint: JointBlocks
    least_squares: FloatArray
    means: FloatArray

    @property
    def change(self) -> FloatArray:
        """The posterior means minus the least-squares cells."""
        return self.means - self.least_squares


def posterior_means(observation: Observation) -> PosteriorMeans:
    """Return the least-squares cells and posterior means of one attribute."""
    measurements = observation.measurements
    plain = Estimate(observation)
    joint = JointBlocks.of(
        measurements.domain,
        [(entry.block, entry.variance) for entry in equations(measurements, None)],
    )
    runs = RunTree.of(measurements)
    estimated = plain.estimate(runs.block_queries)
    differences = _Differences.of(runs, estimated, measurements.noise)
    pilot = shrink(runs.halving, differences.values, differences.noise, differences.tail)
    normal_equations = _PosteriorEquations(
        runs, joint, differences.noise, *_fit_priors(runs.halving, differences, pilot)
    )
    mean = normal_equations.solve(observation, pilot.means)
    return PosteriorMeans(
        plain, joint, runs.spread(estimated.values[: len(runs.starts)]), runs.cells_of(mean)
    )


@dataclass(frozen=True, eq=False)
class _Differences:
    """Noisy differences between the halves of aligned blocks.

    Attributes:
        values: the total, then the differences of all blocks.
        noise: the variances of the noise of these values; 0 if one half is padding.
        tail: the scale of Laplace noise of a run; None for Gaussian noise.
    """

    values: FloatArray
    noise: FloatArray
    tail: float | None

    @staticmethod
    def of(runs: RunTree, blocks: Answer, noise: Noise) -> "_Differences":
        """Return the differences, computed from estimated counts of blocks."""
        number = len(runs.starts)
        variances = blocks.noise_std**2
        if noise.norm == 1:
            tail = float(np.sqrt(np.median(variances[:number]) / 2))
        else:
            tail = None
        return _Differences(
            runs.halving.differences(blocks.values[:number]), runs.halving.noise(variances), tail
        )


def _fit_priors(
    halving: HalvingTree, differences: _Differences, pilot: ShrinkagePosterior
) -> tuple[FloatArray, FloatArray]:
    """Return the precision of each prior, and this precision times its mean.

    The total has no prior.
    """
    levels = zip(
        halving.levels(differences.values),
        halving.levels(pilot.means),
        halving.levels(pilot.variances),
        halving.levels(differences.noise),
        strict=True,
    )
    total_prior = np.zeros((2, 1))
    precision, pull = np.concatenate(
        [total_prior, *(level_prior(*level) for level in levels)], axis=1
    )
    return precision, pull


@dataclass(frozen=True, eq=False)
class _PosteriorEquations:
    """The normal equations of differences with independent normal priors.

    Attributes:
        runs: the runs of cells, and the halving tree that defines the differences.
        joint: the measured queries.
        noise: the noise variance of each difference; 0 for padding.
        precision: the precision of the prior of each difference.
        precision_times_mean: precisions times the means of the priors.
    """

    runs: RunTree
    joint: JointBlocks
    noise: FloatArray
    precision: FloatArray
    precision_times_mean: FloatArray

    @property
    def has_noise(self) -> BoolArray:
        """Whether each difference has noise (False for padding)."""
        return self.noise > 0

    def multiply(self, vectors: FloatArray) -> FloatArray:
        """Return the product of the equations' matrix and columns, shape (n, 1)."""
        vector = vectors[:, 0]
        cells = self.runs.cells_of(vector, are_blocks_bounded=False)
        information = self.runs.halving.transposed(
            self.joint.gram(cells[:, None])[self.runs.starts, 0]
        )
        return (self.has_noise * (information + self.precision * vector))[:, None]

    def right_side(self, observation: Observation) -> FloatArray:
        """Return the right-hand side of the equations, shape (n, 1)."""
        grid = observation.measurements.grid
        gathered = self.joint.gather([values[:, None] / grid for values in observation.values])
        from_values = self.runs.halving.transposed(gathered[self.runs.starts, 0])
        return (self.has_noise * (from_values + self.precision_times_mean))[:, None]

    def solve(self, observation: Observation, start: FloatArray) -> FloatArray:
        """Return the solution for an observation, by iteration from ``start``."""
        diagonal = (1 / np.where(self.has_noise, self.noise, 1.0) + self.precision)[:, None]
        gap = self.right_side(observation) - self.multiply(start[:, None])
        step = conjugate_gradients(
            self.multiply, lambda residual: residual / diagonal, gap, _SOLVED_ERROR
        )
        return start + step[:, 0]


def level_prior(
    differences: FloatArray,
    level_means: FloatArray,
    level_variances: FloatArray,
    noise_variances: FloatArray,
) -> FloatArray:
    """Return precisions, and precisions times means, of a level's normal priors.

    The result has the precisions, and the precisions times the means, shape (2, blocks).
    """
    shrink_factor = _stein_factor(differences - level_means, level_variances, noise_variances)
    level_means = differences + shrink_factor * (level_means - differences)
    level_variances = shrink_factor * level_variances + (1 - shrink_factor) * noise_variances
    is_fitted = len(differences) > _MOST_UNFITTED_BLOCKS
    lessened = is_fitted & (level_variances < (1 - _VARIANCE_TOLERANCE) * noise_variances)
    before = np.where(lessened, noise_variances, 1.0)
    after = np.where(lessened, np.maximum(level_variances, _VARIANCE_TOLERANCE * before), 1.0)
    return np.where(
        lessened, [1 / after - 1 / before, level_means / after - differences / before], 0.0
    )


def _stein_factor(
    distances: FloatArray, posterior_variances: FloatArray, noise_variances: FloatArray
) -> float:
    """Return the fraction of the way that a level moves to its posterior means.

    If the posterior is right, the distances of the measured differences from the posterior means
    are as large as the noise that the posterior removes. If the distances are larger, all means of
    the level are moved back towards least squares by the same factor. This factor minimises Stein's
    unbiased estimate of the risk.
    """
    has_noise = noise_variances > 0
    before = np.where(has_noise, noise_variances, 1.0)
    total_reduction = (1 - posterior_variances / before)[has_noise].sum()
    away = (distances**2 / before)[has_noise].sum()
    return float(min(1.0, total_reduction / max(away, _LEAST_DISTANCE)))
