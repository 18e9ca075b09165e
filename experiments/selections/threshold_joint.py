"""A private threshold chosen by the predicted total error, bias and noise together: the strategy for each limit is part of the choice.

For every candidate a planner predicts, without the data, the noise of each query under the best strategy for that limit. The bias is the
data's. The labels (J1 ...) refer to PROOFS-threshold.md beside this file.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from experiments.selections.threshold import Threshold, read_amounts, read_candidates, scale_up
from leastnoise._check import Exact, exact_positive, refuse, whole
from leastnoise._check.arrays import IntArray
from leastnoise._kernel._entropy import Entropy
from leastnoise._kernel._noise import discrete_laplace

Reals = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]  # of Python's integers

_MOST_TERMS = 2**22
_GRID = 2**12  # the scores' unit: the sensitivity is about so many of it
_LOW_BITS = 26
_roots = np.frompyfunc(math.isqrt, 1, 1)


def least_error(
    values: IntArray,
    epsilon: Exact,
    entropy: Entropy,
    *,
    candidates: Sequence[int],
    most: int,
    low: IntArray,
    high: IntArray,
    noise: Reals,
    weights: IntArray | None = None,
    distance: int = 1,
) -> Threshold:
    """The limit of least predicted error: sum over queries of weight times the root of squared bias plus noise variance.

    Args:
        values: the amounts in units, int64 of shape (rows,); private.
        epsilon: what the choice may cost, for data sets that differ by ``distance`` rows.
        entropy: the source of the noise.
        candidates: public increasing limits, K of them; the last is ``most``.
        most: the public upper bound of an amount.
        low: public lower ends in units, int64 of shape (m,): query j sums the amounts above ``low[j]`` and up to ``high[j]``.
        high: public upper ends, at least ``low``, shape (m,). (-1, ``most``) is the total.
        noise: public predicted standard errors of the queries for each limit, in units, at least 0, shape (K, m).
        weights: public whole numbers from 0 to 2^20, one a query, or None for ones; for relative errors, one over a public guess of
            the answers.
        distance: how many rows neighbours differ by.

    Returns:
        The limit.

    Raises:
        InputError: an argument is not of this kind; never because of a row.

    Guarantees:
        epsilon-DP (theorem J of PROOFS-threshold.md). One row raises the predicted error of every limit, and by no more than it can add to
        the biases; so the noise needs no factor of two.

    Source:
        Report noisy max with one-sided noise (permute and flip: McKenna and Sheldon 2020), on monotone scores.

    >>> from leastnoise._kernel import SeededEntropy
    >>> values = np.repeat([30, 500], [9990, 10])
    >>> limits = (10, 20, 40, 80, 1000)
    >>> noise = 100.0 * np.array(limits)[:, None]
    >>> least_error(values, 1, SeededEntropy(1), candidates=limits, most=1000, low=np.array([-1]), high=np.array([1000]), noise=noise).limit
    40
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)  # H2: group privacy
    limits = read_candidates(candidates, most)
    bound = limits[-1]
    first, last, importance = _read_queries(low, high, weights, bound)
    spread = _read_noise(noise, len(limits), len(first))
    largest = sensitivity(limits, bound, first, last, importance)
    unit = max(1, largest // _GRID)
    bias = biases(read_amounts(values, bound), limits, first, last)
    scores = (_roots(bias * bias + spread * spread) * importance).sum(axis=1) // unit  # J1, J2
    shift = -(-largest // unit)
    if shift == 0:  # nothing depends on the data
        return Threshold(limit=limits[int(np.argmin(scores))], spent=spent, mechanism="least error")
    flips = np.abs(discrete_laplace(*scale_up(shift, each), len(limits), entropy))  # J3
    noisy = scores - flips.astype(object)
    return Threshold(limit=limits[int(np.argmin(noisy))], spent=spent, mechanism="least error")  # J4: the first of equals


def sensitivity(limits: Sequence[int], most: int, low: IntArray, high: IntArray, weights: Objects) -> int:
    """The most that one row adds to the weighted biases under any limit.

    Args:
        limits: the candidates; the lowest has the largest biases.
        most: the public upper bound of an amount.
        low: lower ends of the queries, shape (m,).
        high: upper ends.
        weights: of the queries, Python's integers.

    >>> sensitivity([10, 100], 100, np.array([-1, -1]), np.array([50, 100]), np.array([1, 1], dtype=object))
    90
    """
    # Between two ends the queries that count an amount are the same ones, so that the largest amount is the worst.
    amounts = np.unique(np.clip(np.concatenate([low, high, [most]]), 0, most))
    order_low, order_high = np.argsort(low, kind="stable"), np.argsort(high, kind="stable")
    begun = np.concatenate([[0], np.cumsum(weights[order_low])])[np.searchsorted(low[order_low], amounts, side="left")]
    ended = np.concatenate([[0], np.cumsum(weights[order_high])])[np.searchsorted(high[order_high], amounts, side="left")]
    return int(((begun - ended) * np.maximum(amounts - limits[0], 0).astype(object)).max())


def biases(amounts: IntArray, limits: Sequence[int], low: IntArray, high: IntArray) -> Objects:
    """What every limit cuts off every query: sum over its amounts of what is above the limit, exact, shape (K, m).

    >>> biases(np.array([5, 20, 30]), [10, 100], np.array([-1]), np.array([25])).tolist()
    [[10], [0]]
    """
    # Sums of two parts, each below 2^28, stay exact in int64 for up to 2^34 rows.
    part = np.zeros((2, len(amounts) + 1), dtype=np.int64)
    np.cumsum(amounts >> _LOW_BITS, out=part[0, 1:])
    np.cumsum(amounts & (2**_LOW_BITS - 1), out=part[1, 1:])
    found = np.empty((len(limits), len(low)), dtype=object)
    stop = np.searchsorted(amounts, high, side="right")
    for place, limit in enumerate(limits):
        start = np.minimum(np.searchsorted(amounts, np.maximum(low, limit), side="right"), stop)
        upper, lower = ((side[stop] - side[start]).astype(object) for side in part)
        found[place] = upper * 2**_LOW_BITS + lower - (stop - start).astype(object) * limit
    return found


def _read_queries(low: IntArray, high: IntArray, weights: IntArray | None, most: int) -> tuple[IntArray, IntArray, Objects]:
    for name, ends in (("low", low), ("high", high)):
        if not (isinstance(ends, np.ndarray) and ends.dtype == np.int64 and ends.ndim == 1 and len(ends) >= 1):
            raise refuse(name, type(ends).__name__, "an int64 array with one entry a query")
    # Copies: the sensitivity and the scores are computed from the same numbers, whatever the caller does meanwhile.
    low, high = low.copy(), high.copy()
    if len(low) != len(high) or not (low <= high).all() or not (int(low.min()) >= -1 and int(high.max()) <= most):
        raise refuse("the queries", f"{len(low)} and {len(high)} ends", f"as many upper ends as lower ones, -1 <= low <= high <= {most}")
    given = np.ones(len(low), dtype=np.int64) if weights is None else weights
    if not (isinstance(given, np.ndarray) and given.dtype == np.int64 and given.shape == low.shape):
        raise refuse("weights", type(given).__name__, f"an int64 array of shape {low.shape}")
    if not (int(given.min()) >= 0 and int(given.max()) <= 2**20):
        raise refuse("weights", f"{given.min()} to {given.max()}", "whole numbers from 0 to 2^20")
    return low, high, given.astype(object)


def _read_noise(noise: Reals, candidates: int, queries: int) -> Objects:
    """The predicted standard errors in whole units: what is below a unit does not matter."""
    given = np.asarray(noise, dtype=np.float64)
    if given.shape != (candidates, queries) or not (np.isfinite(given).all() and (given >= 0).all()):
        allowed = f"finite numbers of at least 0, shape ({candidates}, {queries})"
        raise refuse("noise", f"an array of shape {given.shape}", allowed)
    if not candidates * queries <= _MOST_TERMS:
        raise refuse("noise", f"{candidates * queries} numbers", "at most 2^22", "Take fewer candidates or fewer queries.")
    return np.array([[int(one) for one in row] for row in given.tolist()], dtype=object)
