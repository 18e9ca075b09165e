"""Shrinkage of noisy differences of nested blocks towards 0.

All functions use only noisy numbers, so they are post-processing.

Cells are padded to a power of two by cells that are publicly known to be empty. Consider a block of
2^p cells. Let l and r be the numbers of cells in its left and its right half that are not padding,
and let L and R be the counts of the halves. The *difference* of the block is

    2 (r L - l R) / (l + r), which is L - R if no cell is padding,

and this difference is 0 if the block is uniform. The total and all differences determine the cells.
After least squares on levels of equal weights, the errors of the differences are uncorrelated
(docs/mathematics.md). The only exception in each level is the block that contains the edge of the
padding.

Source: wavelet shrinkage with hidden Markov trees (Crouse, Nowak, Baraniuk 1998). Here the noise
    variances are exact and the prior is fitted by empirical Bayes; docs/decisions/dawa.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._trusted.check.arrays import Array, BoolArray, FloatArray, IntArray

_EM_ROUNDS = 10  # rounds of expectation-maximisation
_STATE_COUNT = 18  # standard deviations of differences, each twice the previous one
_PRIOR_OBSERVATIONS = 20  # weight of the prior, in observations per row of the transition matrix


class HalvingTree:
    """The binary tree of aligned blocks of n cells or runs, padded to 2^k."""

    # A *vector* has the total first, then the differences of all blocks of 2 cells, then the
    # differences of all blocks of 4 cells, and so on.

    def __init__(self, size: int, lengths: IntArray | None = None) -> None:
        self.size = size
        self.depth = (size - 1).bit_length()
        self.padded = 1 << self.depth
        # For each level, two arrays over its blocks: the number of cells in each half that are not
        # padding, and the share of these cells in the left half (1/2 if there are none).
        self.left: list[IntArray] = []
        self.right: list[IntArray] = []
        self.share: list[FloatArray] = []
        cells = np.pad(
            np.ones(size, dtype=np.int64) if lengths is None else lengths, (0, self.padded - size)
        )
        for _ in range(self.depth):
            left, right = cells.reshape(-1, 2).T
            cells = left + right
            self.left.append(left)
            self.right.append(right)
            self.share.append(np.where(cells > 0, left / np.maximum(cells, 1), 0.5))
        self._begins = np.cumsum([1, *map(len, self.left)])[:-1]

    def levels(self, vector: Array) -> list[Array]:
        """Split a vector of block differences into one array for each level."""
        return np.split(vector, self._begins)[1:]

    def differences(self, cells: FloatArray) -> FloatArray:
        """Return the vector of the total and all block differences of cells."""
        padded_cells = np.pad(cells, (0, self.padded - self.size))
        parts = []
        for share in self.share:
            pairs = padded_cells.reshape(-1, 2)
            parts.append(2 * ((1 - share) * pairs[:, 0] - share * pairs[:, 1]))
            padded_cells = pairs.sum(axis=1)
        return np.concatenate([padded_cells, *parts])

    def cells_of(self, vector: FloatArray, *, are_blocks_bounded: bool = True) -> FloatArray:
        """Convert a vector of the total and block differences back to cells.

        If the cells are bounded, no block has a count below 0, or above the count of the next
        larger block.
        """
        if are_blocks_bounded:
            cells = np.maximum(vector[:1], 0.0)
        else:
            cells = vector[:1]
        for part, share in zip(reversed(self.levels(vector)), reversed(self.share), strict=True):
            left = cells * share + part / 2
            if are_blocks_bounded:
                left = np.clip(left, 0.0, cells)
            cells = np.stack([left, cells - left], axis=1).reshape(-1)
        return cells[: self.size]

    def transposed(self, query: FloatArray) -> FloatArray:
        """Convert a query on cells to a query on the total and the differences.

        The function is the transpose of `cells_of` without bounds.
        """
        padded_query = np.pad(query, (0, self.padded - self.size))
        parts = []
        for share in self.share:
            pairs = padded_query.reshape(-1, 2)
            parts.append((pairs[:, 0] - pairs[:, 1]) / 2)
            padded_query = share * pairs[:, 0] + (1 - share) * pairs[:, 1]
        return np.concatenate([padded_query, *parts])

    def up_to(self, edges: IntArray) -> Any:
        """Return queries on differences that sum the cells before each edge.

        The result is a sparse matrix of shape (edges, padded).
        """
        from scipy.sparse import csr_matrix

        columns = [np.zeros(len(edges), dtype=np.int64)]
        weights = [edges / self.size]
        for level, (left, right, begin) in enumerate(
            zip(self.left, self.right, self._begins, strict=True)
        ):
            width = 2 ** (level + 1)
            block = np.minimum(edges // width, len(left) - 1)
            inside = edges - block * width
            halves = (left[block], right[block])
            rising = np.minimum(inside, halves[0]) / np.maximum(halves[0], 1)
            falling = np.clip(inside - width // 2, 0, halves[1]) / np.maximum(halves[1], 1)
            columns.append(begin + block)
            weights.append(np.where((halves[0] > 0) & (halves[1] > 0), (rising - falling) / 2, 0.0))
        rows = np.tile(np.arange(len(edges)), len(columns))
        return csr_matrix(
            (np.concatenate(weights), (rows, np.concatenate(columns))),
            shape=(len(edges), self.padded),
        )

    def blocks(self) -> tuple[IntArray, IntArray]:
        """Return the index of the first and the last run of each aligned block.

        The blocks are ordered by width: single runs, then blocks of two runs, then of four runs,
        and so on.
        """
        low = [np.arange(0, self.size, 1 << power) for power in range(self.depth + 1)]
        return np.concatenate(low), np.concatenate(
            [np.minimum(low_of + (1 << power), self.size) - 1 for power, low_of in enumerate(low)]
        )

    def noise(self, variances: FloatArray) -> FloatArray:
        """Compute the noise variance of each difference from block variances.

        The variance is 0 if one of the halves is padding.
        """
        levels = np.split(
            variances, np.cumsum([-(-self.size // (1 << power)) for power in range(self.depth)])
        )
        by_level = [levels[-1]]
        for share, left, right, halves, parent in zip(
            self.share, self.left, self.right, levels, levels[1:], strict=False
        ):
            both = np.pad(halves, (0, 2 * len(share) - len(halves))).reshape(-1, 2)
            # Twice the covariance of the two halves.
            across = np.pad(parent, (0, len(share) - len(parent))) - both.sum(axis=1)
            variance = 4 * (
                (1 - share) ** 2 * both[:, 0] + share**2 * both[:, 1] - share * (1 - share) * across
            )
            by_level.append(np.where((left > 0) & (right > 0), np.maximum(variance, 0.0), 0.0))
        return np.concatenate(by_level)


@dataclass(frozen=True, kw_only=True)
class ShrinkagePosterior:
    """The posterior of the total and the differences; the total is not shrunk.

    ``noise`` has the variances of the noise in the posterior means, and ``errors`` has the
    estimated squared errors of these means.
    """

    means: FloatArray
    variances: FloatArray
    noise: FloatArray
    errors: FloatArray


def shrink(
    halving: HalvingTree,
    noisy_differences: FloatArray,
    noise_variances: FloatArray,
    tail_scale: float | None,
) -> ShrinkagePosterior:
    """Return the posterior of block differences under a hidden Markov tree.

    The tree is fitted to the differences (empirical Bayes).

    ``noise_variances`` has the variances of the noise of the differences. ``tail_scale`` is None
    for normal noise, else the scale of the exponential tails of the noise.
    """
    # A difference is 0 (state 0) or normal with a standard deviation from a geometric sequence
    # (states 1 ...). The state of a block depends on the state of its parent through one transition
    # matrix. The matrix is learned by expectation-maximisation. Its prior counts as 20 observations
    # per row and favours nearby states. The noise is normal, or normal in the middle and
    # exponential in the tails. Given a state of variance v, the posterior is computed as if prior
    # and noise were normal. With the gain g = v / (v + s^2), the mean is g d. Its squared error is
    # g s^2 = (g s)^2 + (1 - g) g s^2: the first term is the noise, and the second is the square of
    # the shrinkage. In the mixture over states, the second part grows by the variance between the
    # means of the states.
    has_noise = noise_variances > 0
    has_noise[0] = False
    if not has_noise.any():
        return ShrinkagePosterior(
            means=noisy_differences,
            variances=noise_variances,
            noise=noise_variances,
            errors=noise_variances,
        )
    sd = np.sqrt(np.where(has_noise, noise_variances, 1.0))
    size = np.abs(noisy_differences)[:, None]
    # The sequence starts at a quarter of the least noise.
    rungs = np.concatenate(
        [[0.0], (float(sd[has_noise].min()) / 4 * 2.0 ** np.arange(_STATE_COUNT)) ** 2]
    )
    total = (sd**2)[:, None] + rungs
    log = -(size**2) / (2 * total)
    if tail_scale is not None:
        log = np.where(
            size < total / tail_scale, log, total / (2 * tail_scale**2) - size / tail_scale
        )
    log = log - np.log(total) / 2
    likelihood = np.where(has_noise[:, None], np.exp(log - log.max(axis=1, keepdims=True)), 1.0)
    gain = np.where(has_noise[:, None], rungs / total, 0.0)
    state = np.concatenate(
        [
            np.zeros((1, len(rungs))),
            *posterior_states(halving.levels(likelihood), halving.levels(has_noise)),
        ]
    )
    mean_gain = (state * gain).sum(axis=1)
    square = noisy_differences**2 * (state * gain**2).sum(axis=1) + sd**2 * mean_gain
    means = noisy_differences * mean_gain
    mean_noise = np.where(has_noise, mean_gain**2 * sd**2, 0.0)
    variances = np.where(
        has_noise, np.maximum(square - means**2, np.maximum(mean_noise, 1e-6 * sd**2)), 0.0
    )
    levels = zip(
        *map(halving.levels, (noisy_differences, noise_variances, means, variances)), strict=True
    )
    errors = np.concatenate([noise_variances[:1], *(checked_errors(*level) for level in levels)])
    means[0] = noisy_differences[0]
    variances[0] = noise_variances[0]
    mean_noise[0] = noise_variances[0]
    return ShrinkagePosterior(means=means, variances=variances, noise=mean_noise, errors=errors)


def posterior_states(
    likelihoods: Sequence[FloatArray], is_known: Sequence[BoolArray]
) -> list[FloatArray]:
    """Return, for each level, the posterior state probabilities of its blocks.

    Each level has one array. The probabilities of transitions from blocks to their halves are
    learned.
    """
    rung = np.arange(_STATE_COUNT + 1)
    # Favours nearby states, and empty halves for an empty block.
    prior = 0.6 ** np.abs(rung[:, None] - rung)
    prior[0] = 0.15 * 0.8 ** (rung - 1.0)
    prior[:, 0] = 0.15
    prior[0, 0] = 1.0
    prior /= prior.sum(axis=1, keepdims=True)
    matrix = prior
    posterior = list[FloatArray]()
    for _ in range(_EM_ROUNDS):
        upward = list[FloatArray]()
        message = list[FloatArray]()
        for level, likely in enumerate(likelihoods):
            if level == 0:
                inside = likely
            else:
                inside = likely * message[-1].reshape(-1, 2, len(rung)).prod(axis=1)
            upward.append(inside / inside.max(axis=1, keepdims=True))
            message.append(upward[-1] @ matrix.T)
        posterior = [upward[-1] / upward[-1].sum(axis=1, keepdims=True)]
        counts = np.zeros_like(matrix)
        for level in range(len(likelihoods) - 2, -1, -1):
            parent = np.repeat(posterior[0], 2, axis=0) / np.maximum(message[level], 1e-200)
            posterior.insert(0, (parent @ matrix) * upward[level])
            parent[~is_known[level]] = 0.0  # nothing is learned from padding
            counts += matrix * (parent.T @ upward[level])
        matrix = counts + _PRIOR_OBSERVATIONS * prior
        matrix /= matrix.sum(axis=1, keepdims=True)
    return posterior


def checked_errors(
    differences: FloatArray,
    noise_variances: FloatArray,
    posterior_means: FloatArray,
    posterior_variances: FloatArray,
) -> FloatArray:
    """Return squared errors of posterior means, estimated without the prior.

    All arrays are for one level. The estimate does not rely on the fitted prior.
    """
    # Take the distance of a difference from its posterior mean. If the prior is right, the mean of
    # its square over the level is ``noise - variance``. Any larger distance is an error that the
    # prior does not explain. An average of K squares has a standard error of about ``noise * sqrt(2
    # / K)``. It is added so that levels with few blocks fall back to least squares. No prior can be
    # learned from few blocks. No squared error exceeds the squared error of least squares plus the
    # square of the shrinkage.
    # Source: Stein, Ann. Statist. 9 (1981), the unbiased estimate of risk, with the posterior
    #     variance for the derivative (Tweedie).
    has_noise = noise_variances > 0
    count = max(int(has_noise.sum()), 1)
    away = np.where(has_noise, (differences - posterior_means) ** 2, 0.0)
    unknown = (
        away - np.where(has_noise, noise_variances - posterior_variances, 0.0)
    ).sum() / count + math.sqrt(2 / count) * noise_variances.sum() / count
    return np.where(
        has_noise,
        np.minimum(
            posterior_variances + max(float(unknown), 0.0),
            np.maximum(posterior_variances, noise_variances + away),
        ),
        0.0,
    )


def cheapest_bucket_starts(
    squared_differences: Sequence[FloatArray],
    difference_costs: Sequence[FloatArray],
    split_noise: float,
    halving: HalvingTree,
) -> IntArray:
    """Return the first cell of each bucket in the division of least error.

    A block becomes a bucket if this lowers the error of the queries: the error from ignoring the
    differences inside the block is then smaller than the noise that splitting the block would add.
    """
    bias = np.zeros(halving.padded)
    cost = np.zeros(halving.padded)
    split: list[BoolArray] = []
    for square, weight in zip(squared_differences, difference_costs, strict=True):
        bias = bias.reshape(-1, 2).sum(axis=1) + weight * square
        divided = cost.reshape(-1, 2).sum(axis=1) + weight * split_noise
        split.append(divided < bias)
        cost = np.minimum(divided, bias)
    alive = np.ones(1, dtype=bool)
    starts = np.zeros(halving.padded, dtype=bool)
    for level in range(len(squared_differences) - 1, -1, -1):
        starts[:: 2 ** (level + 1)] |= alive & ~split[level]
        alive = np.repeat(alive & split[level], 2)
    return np.asarray(np.flatnonzero((starts | alive)[: halving.size]))
