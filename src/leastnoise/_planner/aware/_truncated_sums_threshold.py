"""Where to cut: the threshold with the least predicted error, from noisy counts of the records in the tail. Public: no data is seen.

For a threshold theta the squared error of all queries is predicted as e^T M e + (noise of the strategy for theta), with e_j the excess over
theta of the records in cell j and M = W^T W. The excess follows from how many records each interval between candidate thresholds holds.
Those counts are disjoint, so one record changes one of them by 1: they are measured with a small part of the budget by the discrete Laplace
or Gaussian mechanism, like any other queries, and everything here is post-processing of them. One measurement serves every candidate, every
strategy and every workload, and the estimate of what the cut takes away comes with it.

Choosing by the prediction itself in the exponential mechanism would need its sensitivity, which is the public maximum less the least
candidate: one record of the largest value. That noise is larger than what there is to choose (docs/decisions/0012).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._planner.line._gram import DenseGram, GeneratedGram, Gram
from leastnoise._planner.line._greedy_h import fit_greedy_h
from leastnoise._planner.line._matrix import singular_value_bound

RATIO = 1.2
_MOST_SPECTRUM = 512
SURE = 6  # standard errors of a count: one empty interval in 10,000 has as much under Laplace noise
LEAST = 1000  # the least candidate is at most this many times below the public maximum


def weighted_gram(gram: Gram, limits: IntArray | FloatArray) -> Gram:
    """The Gram matrix T M T of the queries on z, in the short form of M where it has one."""
    weights = np.asarray(limits, dtype=np.float64)
    pairs = gram.generators()
    if pairs is not None and len(pairs) == 1:
        ((rising, falling),) = pairs
        return GeneratedGram(rising * weights, falling * weights, gram.queries)
    return DenseGram(gram.dense() * weights * weights[:, None], gram.queries)


def candidate_cells(edges: IntArray, ratio: float = RATIO) -> IntArray:
    """The cells whose upper edges are worth trying as thresholds: steps of about a fifth, up to the public maximum."""
    high = float(edges[-1])
    least = max(float(edges[0]), high / LEAST)
    steps = math.floor(math.log(high / least) / math.log(ratio)) if high > least else 0
    wanted = high / ratio ** np.arange(steps, -1, -1)
    after = np.minimum(np.searchsorted(edges, wanted), len(edges) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(wanted - edges[before] < edges[after] - wanted, before, after)
    return np.unique(np.searchsorted(edges, edges[nearest], side="right") - 1)


@dataclass(frozen=True, slots=True)
class TailLaw:
    """What noisy counts of a tail are held to."""

    sure: float = math.inf
    index: float = 1.0  # where means end: every doubling of a threshold then cuts away as much of the sum as the one before


def falling_counts(counts: FloatArray, edges: FloatArray | IntArray, law: TailLaw = TailLaw()) -> FloatArray:
    """Noisy counts of consecutive intervals made at least 0 and of a density that falls as tails do.

    Edge cases: below the mode of the data the density does rise, and the counts there are spread out; a threshold there cuts most records
        anyway.
    """
    ends = np.asarray(edges, dtype=np.float64)
    noisy = np.asarray(counts, dtype=np.float64)
    above = np.cumsum(noisy[::-1])[::-1]
    start = int(np.argmax(above <= above[0] / 2)) if len(noisy) and (above <= above[0] / 2).any() else max(0, len(noisy) - 1)
    fitted = falling(noisy, np.diff(ends))
    fitted[start:] = falling(noisy[start:], -np.diff(ends**-law.index)[start:])
    return np.where(noisy > law.sure, np.maximum(fitted, noisy), fitted)


def falling(amounts: FloatArray, spans: FloatArray, noise: FloatArray | float = 1.0) -> FloatArray:
    """The nearest amounts of at least 0 whose quotients by the spans do not rise."""
    from scipy.optimize import isotonic_regression

    if not len(amounts):
        return np.zeros(0)
    unit = spans / spans.mean()
    return np.asarray(np.maximum(isotonic_regression(amounts / unit, weights=(unit / noise) ** 2, increasing=False).x, 0.0) * unit)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThresholdChoice:
    """A threshold, and what was predicted for every candidate.

    Attributes:
        threshold: in units.
        candidates: upper edges of the candidate cells, in units.
        bias: what the cut takes from all queries, root of the mean square, for each candidate.
        noise: standard error, root of the mean square, for each candidate.
        excess: for the threshold chosen: what the cut is thought to take from the records of each cell, in units, shape (n,). Counts are
            held to the tail of index 1 for that, whatever they were held to for the choice.
    """

    threshold: int
    candidates: IntArray
    bias: FloatArray
    noise: FloatArray
    excess: FloatArray


def quick_noise(gram: Gram, limits: IntArray, norm: int) -> float:
    """About the unit RMSE of the best strategy for W T, in milliseconds: right to a few percent in its dependence on the threshold.

    Source: what p-Identity and the Gaussian optimum reach for prefix sums, beside GreedyH and the singular value bound.
    """
    if norm == 2:
        factor = -(-gram.size // _MOST_SPECTRUM)
        return 1.02 * singular_value_bound(
            weighted_gram(gram.coarsen(factor), limits[::factor]) if factor > 1 else weighted_gram(gram, limits)
        )
    weighted = weighted_gram(gram, limits)
    return min(0.75 * fit_greedy_h(weighted).rmse, math.sqrt(weighted.trace() / weighted.queries))


def choose_threshold(
    gram: Gram,
    edges: IntArray,
    cells: IntArray,
    tail: FloatArray,
    unit_noise: Callable[[IntArray], float],
    noise: float,
    *,
    lost: Gram | None = None,
    law: TailLaw = TailLaw(),
) -> ThresholdChoice:
    """The candidate with the least predicted squared error.

    Guarantees: a function of noisy and public numbers; it costs nothing.
    """
    missed = gram if lost is None else lost
    places = np.asarray(cells)
    if len(tail) != len(places) - 1:
        raise InputError(f"There must be one count for each interval between {len(places)} candidates; got {len(tail)}.")
    centres = (edges + np.concatenate([[0], edges[:-1]])) / 2
    candidates = edges[places]
    counts = _by_cell(falling_counts(tail, candidates, law), places, len(edges))
    bias, spread = [], []
    for threshold in candidates:
        excess = counts * np.maximum(centres - threshold, 0.0)
        squared = float(missed.rows(excess[None, :])[0] @ excess)
        bias.append(math.sqrt(max(squared, 0.0) / gram.queries))
        spread.append(noise * unit_noise(np.minimum(edges, threshold)))
    best = int(np.argmin(np.square(bias) + np.square(spread)))
    told = _by_cell(falling_counts(tail, candidates, TailLaw(law.sure)), places, len(edges))
    return ThresholdChoice(
        threshold=int(candidates[best]),
        candidates=candidates,
        bias=np.array(bias),
        noise=np.array(spread),
        excess=told * np.maximum(centres - candidates[best], 0.0),
    )


def _by_cell(counts: FloatArray, places: IntArray, cells: int) -> FloatArray:
    """Counts of intervals between candidates, spread evenly over their cells."""
    found = np.zeros(cells)
    for start, stop, count in zip(places[:-1], places[1:], counts, strict=True):
        found[start + 1 : stop + 1] = count / (stop - start)
    return found
