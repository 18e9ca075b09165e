"""Shrinking towards slopes: what the counts beside a block let expect of the difference of its halves, where the data bear that out.

Of smooth data the two halves of a block differ about as much as its neighbours let expect: by an eighth of the difference of their counts.
A difference is taken to have that mean or 0, by the part of the data that it lies in, and shrunk towards it. Functions of noisy numbers
alone.

Source: docs/decisions/0057-slopes.md. The expectation is that of average-interpolating wavelets (Donoho 1993), the states those of
`leastnoise._estimate._shrinkage`; the last step is that of James and Stein (1961), towards the posterior means.
"""

import math
from collections.abc import Sequence

import numpy as np

from leastnoise._check.arrays import BoolArray, FloatArray
from leastnoise._estimate._hidden_tree import ROUNDS, STATES, ladder, log_likelihood, posterior_states, relative, transitions
from leastnoise._estimate._shrinkage import Halving, Shrunk, checked_errors

_CHANGES = 0.1  # how often halves of a block of one kind are of the other, before anything was learned


def slopes(halving: Halving, cells: FloatArray) -> list[FloatArray]:
    """What the blocks on both sides let expect of the difference of every block's halves; 0 for a block that has none, or holds padding."""
    sums, found = np.pad(cells, ((0, 0), (0, halving.padded - cells.shape[1]))), []
    for left, right in zip(halving.left, halving.right, strict=True):
        sums = sums.reshape(len(sums), -1, 2).sum(axis=-1)
        full = np.pad((left == left[0]) & (right == left[0]), 1)
        before, behind = full[:-2] & full[1:-1], full[2:] & full[1:-1]
        beside = np.pad(sums, ((0, 0), (1, 1)))
        fall = np.where(before, beside[:, :-2], sums) - np.where(behind, beside[:, 2:], sums)
        found.append(fall / np.where(before & behind, 8.0, 4.0))
    return found


def shrink_to_slopes(halving: Halving, cells: FloatArray, noise: Sequence[FloatArray], tail: float | None) -> Shrunk:
    """Posterior means and variances of the differences that have mean 0 or the slope beside them, fitted to each trial by itself.

    States are those of `shrink`, each with both means; which mean a block has depends on its parent's, too. Of a level of K differences the
    squares of what the means lie from what was measured, in units of the noise, sum up to about K at most, give or take sqrt(2 K), if they
    are right. Where they sum up to more, all means of the level are moved back by the same part of the way.
    """
    _, parts = halving.differences(cells)
    if not parts:
        return Shrunk(means=[], variances=[], noise=[], errors=[])
    beside = slopes(halving, cells)
    known = [one > 0 for one in noise]
    spread = [np.sqrt(np.where(one > 0, one, 1.0)) for one in noise]
    variance = ladder(spread, known, STATES)
    likelihood = []
    for part, slope, sd, seen in zip(parts, beside, spread, known, strict=True):
        own = (sd**2)[:, None] + variance
        both = [log_likelihood(np.abs(one)[..., None], own, tail) for one in (part, part - slope)]
        likelihood.append(np.where(seen[:, None], relative(np.concatenate(both, axis=-1)), 1.0))
    kinds = np.array([[1 - _CHANGES, _CHANGES], [_CHANGES, 1 - _CHANGES]])
    posterior = posterior_states(likelihood, known, np.kron(kinds, transitions(STATES)), ROUNDS)
    levels = zip(parts, beside, noise, known, posterior, strict=True)
    found = [_moments(part, slope, own, seen, state, variance) for part, slope, own, seen, state in levels]
    means, variances, parts_noise = ([one[place] for one in found] for place in range(3))
    errors = [checked_errors(*one) for one in zip(parts, noise, means, variances, strict=True)]
    return Shrunk(means=means, variances=variances, noise=parts_noise, errors=errors)


def _moments(
    part: FloatArray, slope: FloatArray, noise: FloatArray, seen: BoolArray, state: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means, variances and the noise in the means of one level's differences."""
    own = np.where(seen, noise, 1.0)
    gain = variance / (own[:, None] + variance)
    flat, sloped = np.split(state, 2, axis=-1)
    towards = slope[..., None] + gain * (part - slope)[..., None]
    weight = ((flat + sloped) * gain).sum(axis=-1)
    mean = part * (flat * gain).sum(axis=-1) + (sloped * towards).sum(axis=-1)
    square = own * weight + part**2 * (flat * gain**2).sum(axis=-1) + (sloped * towards**2).sum(axis=-1)
    count = max(int(seen.sum()), 1)
    away = np.where(seen, (part - mean) ** 2 / own, 0.0).sum(axis=1, keepdims=True)
    most = count + math.sqrt(2 * count)
    kept = most / np.maximum(away, most)
    spread = kept * np.maximum(square - mean**2, 1e-6 * own) + (1 - kept) * own
    weight = 1 - kept * (1 - weight)
    of_noise = weight**2 * own
    moved = part - kept * (part - mean)
    return tuple(np.where(seen, one, 0.0) for one in (moved, np.maximum(spread, of_noise), of_noise))  # type: ignore[return-value]
