"""Choose a private threshold by the predicted total error of bias and noise.

The strategy for each limit is part of the choice.

For every candidate a planner predicts, without the data, the noise of each query under the best
strategy for that limit. The bias depends on the data. The labels (J1 ...) refer to
PROOFS-threshold.md in this folder.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from experiments.selections.threshold import scale_up, sorted_amounts
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.kernel._entropy import Entropy
from leastnoise._trusted.kernel._noise import discrete_laplace

Objects = npt.NDArray[np.object_]  # of Python's integers

_GRID = 2**12  # approximate sensitivity in units of the scores
_LOW_BITS = 26
_roots = np.frompyfunc(math.isqrt, 1, 1)


def least_error(
    values: IntArray,
    epsilon: Fraction,
    entropy: Entropy,
    candidates: Sequence[int],
    low: IntArray,
    high: IntArray,
    noise: FloatArray,
) -> int:
    """Choose the limit with the smallest predicted error.

    The error is the sum over queries of the root of squared bias plus noise variance.

    Args:
        values: the amounts in units, int64 of shape (rows,); private.
        epsilon: cost of the choice.
        entropy: the source of the noise.
        candidates: public increasing limits from 1, K of them; the last is the public upper bound
            of an amount.
        low: public lower ends in units, int64 of shape (m,): query j sums the amounts above
            ``low[j]`` and up to ``high[j]``.
        high: public upper ends, at least ``low`` and at most the bound, shape (m,). -1 and the
            bound are the ends of the total.
        noise: public predicted standard errors of the queries for each limit, in units, at least 0,
            shape (K, m).

    Returns:
        The limit.

    Guarantees:
        epsilon-DP (theorem J of PROOFS-threshold.md). One row raises the predicted error of every
        limit, and by no more than it can add to the biases; so the noise needs no factor of two.

    Source:
        Report noisy max with one-sided noise (permute and flip: McKenna and Sheldon 2020), on
        monotone scores.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> values = np.repeat([30, 500], [9990, 10])
    >>> limits = (10, 20, 40, 80, 1000)
    >>> noise = 100.0 * np.array(limits)[:, None]
    >>> least_error(
    ...     values, Fraction(1), SeededEntropy(1), limits, np.array([-1]), np.array([1000]), noise
    ... )
    40
    """
    # Fractions of a unit do not matter.
    deviations = np.array([[int(std) for std in row] for row in noise.tolist()], dtype=object)
    largest = sensitivity(candidates, low, high)
    unit = max(1, largest // _GRID)
    bias = biases(sorted_amounts(values, candidates[-1]), candidates, low, high)
    scores = _roots(bias * bias + deviations * deviations).sum(axis=1) // unit  # J1, J2
    shift = -(-largest // unit)
    if shift:  # else nothing depends on the data
        flips = np.abs(discrete_laplace(*scale_up(shift, epsilon), len(candidates), entropy))  # J3
        scores = scores - flips.astype(object)
    return candidates[int(np.argmin(scores))]  # J4: the first of equals


def sensitivity(limits: Sequence[int], low: IntArray, high: IntArray) -> int:
    """Return the largest amount that one row adds to the biases under any limit.

    The lowest limit has the largest biases.

    >>> sensitivity([10, 100], np.array([-1, -1]), np.array([50, 100]))
    90
    """
    # Between two ends the queries that count an amount are the same ones, so that the largest
    # amount is the worst.
    amounts = np.unique(np.clip(np.concatenate([low, high, [limits[-1]]]), 0, limits[-1]))
    begun, ended = (
        np.searchsorted(np.sort(bounds), amounts, side="left") for bounds in (low, high)
    )
    return int(((begun - ended).astype(object) * np.maximum(amounts - limits[0], 0)).max())


def biases(amounts: IntArray, limits: Sequence[int], low: IntArray, high: IntArray) -> Objects:
    """Return the bias of every query under every limit: the clipped amounts.

    Exact, shape (K, m).

    >>> biases(np.array([5, 20, 30]), [10, 100], np.array([-1]), np.array([25])).tolist()
    [[10], [0]]
    """
    # Sums of two parts, each below 2^28, stay exact in int64 for up to 2^34 rows.
    part = np.zeros((2, len(amounts) + 1), dtype=np.int64)
    np.cumsum(amounts >> _LOW_BITS, out=part[0, 1:])
    np.cumsum(amounts & (2**_LOW_BITS - 1), out=part[1, 1:])
    excess = np.empty((len(limits), len(low)), dtype=object)
    stop = np.searchsorted(amounts, high, side="right")
    for number, limit in enumerate(limits):
        start = np.minimum(np.searchsorted(amounts, np.maximum(low, limit), side="right"), stop)
        upper, lower = ((sums[stop] - sums[start]).astype(object) for sums in part)
        excess[number] = upper * 2**_LOW_BITS + lower - (stop - start).astype(object) * limit
    return excess
