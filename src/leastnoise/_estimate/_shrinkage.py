"""Shrinking noisy levels of blocks: what is not there is not added up. Functions of noisy numbers alone, so all of it is post-processing.

Cells are padded to a power of two by cells that are publicly known to be empty. A block of 2^p cells, of which its left half has l and its
right half r that are not padding, has the *difference*

    2 (r L - l R) / (l + r)        L, R the counts of the halves; L - R where nothing is padding

which is 0 where the block is uniform. The total and all differences determine the cells, and are uncorrelated after least squares on levels
of equal weights (docs/mathematics.md), but for those of the one block a level at the edge of the padding.

Source: wavelet shrinkage with hidden Markov trees (Crouse, Nowak, Baraniuk 1998), here with exact noise variances and empirical Bayes;
docs/decisions/dawa.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leastnoise._check.arrays import BoolArray, FloatArray, IntArray

ROUNDS, STATES = 10, 18
_PSEUDO = 20  # observations a row that the prior transitions count for


def ladder(spread: Sequence[FloatArray], known: Sequence[BoolArray], states: int) -> FloatArray:
    """Variances of the states: 0, and rungs a factor 2 of standard deviation apart from a quarter of the least noise."""
    least = min((float(sd[seen].min()) for sd, seen in zip(spread, known, strict=True) if seen.any()), default=1.0)
    return np.concatenate([[0.0], (least / 4 * 2.0 ** np.arange(states)) ** 2])


def log_likelihood(size: FloatArray, variance: FloatArray, tail: float | None) -> FloatArray:
    """Of a difference of this size, by the variance that it has in every state, noise included."""
    log = -(size**2) / (2 * variance)
    if tail is not None:
        log = np.where(size < variance / tail, log, variance / (2 * tail**2) - size / tail)
    return np.asarray(log - np.log(variance) / 2)


def relative(log: FloatArray) -> FloatArray:
    """Likelihoods relative to that of the likeliest state."""
    return np.asarray(np.exp(log - log.max(axis=-1, keepdims=True)))


def transitions(states: int) -> FloatArray:
    """A prior that favours staying near, and an empty block's halves being empty; shape (states + 1, states + 1)."""
    rung = np.arange(states + 1)
    prior = 0.6 ** np.abs(rung[:, None] - rung)
    prior[0], prior[:, 0] = 0.15 * 0.8 ** (rung - 1.0), 0.15
    prior[0, 0] = 1.0
    return np.asarray(prior / prior.sum(axis=1, keepdims=True))


def posterior_states(likelihood: Sequence[FloatArray], known: Sequence[BoolArray], prior: FloatArray, rounds: int) -> list[FloatArray]:
    """Probabilities of every block's states given all blocks."""
    trials, count = len(likelihood[0]), len(prior)
    matrix = np.repeat(prior[None], trials, axis=0)
    posterior: list[FloatArray] = []
    for _ in range(rounds):
        upward: list[FloatArray] = []
        message: list[FloatArray] = []
        for level, likely in enumerate(likelihood):
            inside = likely if level == 0 else likely * message[-1].reshape(trials, -1, 2, count).prod(axis=2)
            upward.append(inside / inside.max(axis=-1, keepdims=True))
            message.append(upward[-1] @ matrix.transpose(0, 2, 1))
        posterior, counts = [upward[-1] / upward[-1].sum(axis=-1, keepdims=True)], np.zeros_like(matrix)
        for level in range(len(likelihood) - 2, -1, -1):
            parent = np.repeat(posterior[0], 2, axis=1) / np.maximum(message[level], 1e-200)
            posterior.insert(0, (parent @ matrix) * upward[level])
            parent[:, ~known[level]] = 0.0  # padding teaches nothing
            counts += matrix * (parent.transpose(0, 2, 1) @ upward[level])
        matrix = counts + _PSEUDO * prior
        matrix /= matrix.sum(axis=-1, keepdims=True)
    return posterior


@dataclass(frozen=True, eq=False)
class Halving:
    """All aligned blocks over n cells, or over n runs of cells of some lengths, padded to a power of two."""

    size: int
    lengths: IntArray | None = None

    @property
    def depth(self) -> int:
        """How often all cells can be halved."""
        return (self.size - 1).bit_length()

    @property
    def padded(self) -> int:
        """Number of cells with the padding."""
        return 1 << self.depth

    @cached_property
    def left(self) -> list[IntArray]:
        """Cells that are not padding in the left half of every block; blocks of 2 first."""
        return [self._real(2**power, 0) for power in range(1, self.depth + 1)]

    @cached_property
    def right(self) -> list[IntArray]:
        """The same for the right halves."""
        return [self._real(2**power, 2 ** (power - 1)) for power in range(1, self.depth + 1)]

    def _real(self, width: int, offset: int) -> IntArray:
        lengths = np.ones(self.size, dtype=np.int64) if self.lengths is None else self.lengths
        cells = np.pad(lengths, (0, self.padded - self.size)).reshape(-1, width)
        return np.asarray(cells[:, offset : offset + width // 2].sum(axis=1))

    @cached_property
    def share(self) -> list[FloatArray]:
        """Part of a block's cells that lie in its left half; 1/2 where all are padding."""
        return [np.where(a + b > 0, a / np.maximum(a + b, 1), 0.5) for a, b in zip(self.left, self.right, strict=True)]

    def differences(self, cells: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """The total and the differences of all blocks, of 2 cells first."""
        missing = self.padded - cells.shape[-1]
        rest = np.pad(cells, ((0, 0), (0, missing))) if missing else cells
        out = []
        for share in self.share:
            pairs = rest.reshape(len(rest), -1, 2)
            out.append(2 * ((1 - share) * pairs[..., 0] - share * pairs[..., 1]))
            rest = pairs.sum(axis=-1)
        return rest, out

    def blocks(self) -> tuple[IntArray, IntArray]:
        """First and last run of every aligned block that is not all padding: single runs, then blocks of two, of four, and so on."""
        low = [np.arange(0, self.size, 1 << power) for power in range(self.depth + 1)]
        return np.concatenate(low), np.concatenate([np.minimum(low_of + (1 << power), self.size) - 1 for power, low_of in enumerate(low)])

    def noise(self, variances: FloatArray) -> list[FloatArray]:
        """Variances of the differences from those of the counts of ``blocks``; 0 where a half is padding."""
        levels = np.split(variances, np.cumsum([-(-self.size // (1 << power)) for power in range(self.depth)]))
        by_level = []
        for share, left, right, halves, whole in zip(self.share, self.left, self.right, levels, levels[1:], strict=False):
            both = np.pad(halves, (0, 2 * len(share) - len(halves))).reshape(-1, 2)
            across = np.pad(whole, (0, len(share) - len(whole))) - both.sum(axis=1)  # twice the covariance of the halves
            variance = 4 * ((1 - share) ** 2 * both[:, 0] + share**2 * both[:, 1] - share * (1 - share) * across)
            by_level.append(np.where((left > 0) & (right > 0), np.maximum(variance, 0.0), 0.0))
        return by_level

    def together(self, total: FloatArray, parts: Sequence[FloatArray], *, bounded: bool = True) -> FloatArray:
        """Cells from the total and the differences, from the top down."""
        cells = np.maximum(total, 0.0) if bounded else total
        for part, share in zip(reversed(parts), reversed(self.share), strict=True):
            left = cells * share + part / 2
            if bounded:
                left = np.clip(left, 0.0, cells)
            cells = np.stack([left, cells - left], axis=-1).reshape(len(cells), -1)
        return cells[:, : self.size]

    def synthesised(self, vectors: FloatArray) -> FloatArray:
        """Cells from vectors of the total and all differences, of blocks of 2 cells first; shapes (trials, padded) and (trials, n)."""
        ends = np.cumsum([1, *(len(level) for level in self.left)])
        return self.together(vectors[:, :1], np.split(vectors, ends, axis=1)[1:-1], bounded=False)

    def transposed(self, rows: FloatArray) -> FloatArray:
        """Queries on cells as queries on the total and all differences: the transpose of ``synthesised``."""
        rest, out = np.pad(rows, ((0, 0), (0, self.padded - rows.shape[1]))), []
        for share in self.share:
            pairs = rest.reshape(len(rest), -1, 2)
            out.append((pairs[..., 0] - pairs[..., 1]) / 2)
            rest = share * pairs[..., 0] + (1 - share) * pairs[..., 1]
        return np.concatenate([rest, *out], axis=1)

    def edge_weights(self, level: int, edges: IntArray) -> tuple[IntArray, FloatArray]:
        """What a difference adds to the sum of the first t cells: the block in which t lies, and the coefficient."""
        width = 2 ** (level + 1)
        block = np.minimum(edges // width, len(self.left[level]) - 1)
        inside = edges - block * width
        left, right = self.left[level][block], self.right[level][block]
        rising = np.minimum(inside, left) / np.maximum(left, 1)
        falling = np.clip(inside - width // 2, 0, right) / np.maximum(right, 1)
        return block, np.asarray(np.where((left > 0) & (right > 0), (rising - falling) / 2, 0.0))


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """Posterior of the differences, for every trial."""

    means: list[FloatArray]
    variances: list[FloatArray]
    noise: list[FloatArray]
    errors: list[FloatArray]


def shrink(parts: Sequence[FloatArray], noise: Sequence[FloatArray], tail: float | None) -> Shrunk:
    """Posterior means and variances of the differences under a hidden Markov tree, fitted to each trial by itself (empirical Bayes)."""
    # A difference is 0 (state 0) or normal with a standard deviation from a geometric ladder (states 1 ...). The state of a block depends
    # on its parent's by one transition matrix, learned by expectation-maximisation with a prior of 20 observations a row that favours
    # staying near. The noise is normal, or normal in the middle and exponential in the tails.
    # With a known state of variance v the posterior is that of two normals: with gain g = v / (v + s^2) the mean is g d, and its error g
    # s^2 = (g s)^2 + (1 - g) g s^2: noise, and the square of what was shrunk away. Mixed over states, what is not noise grows by the spread
    # between the states' means.
    if not parts:
        return Shrunk(means=[], variances=[], noise=[], errors=[])
    known = [level > 0 for level in noise]
    spread = [np.sqrt(np.where(level > 0, level, 1.0)) for level in noise]
    variance = ladder(spread, known, STATES)
    likelihood, gain = [], []
    for part, sd, seen in zip(parts, spread, known, strict=True):
        total = (sd**2)[:, None] + variance
        likelihood.append(np.where(seen[:, None], relative(log_likelihood(np.abs(part)[..., None], total, tail)), 1.0))
        gain.append(np.where(seen[:, None], variance / total, 0.0))
    posterior = posterior_states(likelihood, known, transitions(STATES), ROUNDS)
    means, variances, parts_noise = [], [], []
    for part, state, factor, sd, seen in zip(parts, posterior, gain, spread, known, strict=True):
        mean_gain = (state * factor).sum(axis=-1)
        square = part**2 * (state * factor**2).sum(axis=-1) + sd**2 * mean_gain
        means.append(part * mean_gain)
        own_noise = np.where(seen, mean_gain**2 * sd**2, 0.0)
        parts_noise.append(own_noise)
        variances.append(np.where(seen, np.maximum(square - means[-1] ** 2, np.maximum(own_noise, 1e-6 * sd**2)), 0.0))
    errors = [checked_errors(*level) for level in zip(parts, noise, means, variances, strict=True)]
    return Shrunk(means=means, variances=variances, noise=parts_noise, errors=errors)


def checked_errors(part: FloatArray, noise: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Squared errors of the posterior means of one level, where the fitted prior is not taken at its word."""
    # If the prior holds, a difference lies ``noise - variance`` from its posterior mean, in mean square over its level. What it lies
    # further away is error that the prior does not know of. An average of K squares is itself uncertain by about ``noise * sqrt(2 / K)``,
    # which is added, so that levels of few blocks, from which no prior can be learned, fall back on least squares. No error is above that
    # of least squares with the square of what was shrunk away.
    # Source: Stein, Ann. Statist. 9 (1981), the unbiased estimate of risk, with the posterior variance for the derivative (Tweedie).
    known = noise > 0
    count = max(int(known.sum()), 1)
    away = np.where(known, (part - mean) ** 2, 0.0)
    unknown = (away - np.where(known, noise - variance, 0.0)).sum(axis=1) / count + math.sqrt(2 / count) * noise.sum() / count
    most = np.maximum(variance, noise + away)
    return np.asarray(np.where(known, np.minimum(variance + np.maximum(unknown, 0.0)[:, None], most), 0.0))


def cheapest_blocks(squares: Sequence[FloatArray], costs: Sequence[FloatArray], noise: float, halving: Halving) -> IntArray:
    """Starts of the cheapest pruning: a block is one bucket if its inner differences cost the queries less than splitting."""
    bias, cost = np.zeros(halving.padded), np.zeros(halving.padded)
    split: list[BoolArray] = []
    for square, weight in zip(squares, costs, strict=True):
        bias = bias.reshape(-1, 2).sum(axis=1) + weight * square
        divided = cost.reshape(-1, 2).sum(axis=1) + weight * noise
        split.append(divided < bias)
        cost = np.minimum(divided, bias)
    alive, starts = np.ones(1, dtype=bool), np.zeros(halving.padded, dtype=bool)
    for level in range(len(squares) - 1, -1, -1):
        starts[:: 2 ** (level + 1)] |= alive & ~split[level]
        alive = np.repeat(alive & split[level], 2)
    return np.asarray(np.flatnonzero((starts | alive)[: halving.size]))
