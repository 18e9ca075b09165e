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
    """The Gram matrix T M T of the queries on z, in the short form of M where it has one.

    Args:
        gram: M = W^T W.
        limits: T_j, shape (n,).

    >>> weighted_gram(GeneratedGram(np.ones(2), np.array([2.0, 1.0]), 2), np.array([3, 5])).dense().tolist()
    [[18.0, 15.0], [15.0, 25.0]]
    """
    weights = np.asarray(limits, dtype=np.float64)
    pairs = gram.generators()
    if pairs is not None and len(pairs) == 1:
        ((rising, falling),) = pairs
        return GeneratedGram(rising * weights, falling * weights, gram.queries)
    return DenseGram(gram.dense() * weights * weights[:, None], gram.queries)


def candidate_cells(edges: IntArray, ratio: float = RATIO) -> IntArray:
    """The cells whose upper edges are worth trying as thresholds: steps of about a fifth, up to the public maximum.

    Args:
        edges: upper edges of the cells, in units, not falling and above 0.
        ratio: of one step to the next.

    Returns:
        Places of cells, increasing, the last one the last cell; of cells with one upper edge the last.

    >>> candidate_cells(100 * np.arange(1, 41)).tolist()
    [0, 1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 18, 22, 27, 32, 39]
    >>> candidate_cells(np.array([1, 1, 2, 2, 2])).tolist()
    [1, 4]
    """
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
    """What noisy counts of a tail are held to.

    Args:
        sure: what cannot be noise: larger counts are at least what they are.
        index: of the heaviest Pareto tail that smaller ones may show.
    """

    sure: float = math.inf
    index: float = 1.0  # where means end: every doubling of a threshold then cuts away as much of the sum as the one before


def falling_counts(counts: FloatArray, edges: FloatArray | IntArray, law: TailLaw = TailLaw()) -> FloatArray:
    """Noisy counts of consecutive intervals made at least 0 and of a density that falls as tails do.

    Args:
        counts: shape (k,), all with the same noise.
        edges: ends of the intervals, increasing and above 0, shape (k + 1,).
        law: how they fall.

    Returns:
        Shape (k,): the nearest counts whose density does not rise and, from where about half of the records are above, falls at least as
        fast as t^-(1 + index). Of index 1: every lighter one has a mean, and every heavier one has none, so that its sums are
        whatever the public maximum makes them. Without that, noise in the empty part below a generous public maximum would be taken for a
        few records of enormous value.

    Edge cases: below the mode of the data the density does rise, and the counts there are spread out; a threshold there cuts most records
        anyway.

    >>> falling_counts(np.array([10.0, 4.0, 6.0, -3.0]), np.arange(1, 6)).round(2).tolist()
    [10.0, 5.6, 2.8, 0.0]
    """
    ends = np.asarray(edges, dtype=np.float64)
    noisy = np.asarray(counts, dtype=np.float64)
    above = np.cumsum(noisy[::-1])[::-1]
    start = int(np.argmax(above <= above[0] / 2)) if len(noisy) and (above <= above[0] / 2).any() else max(0, len(noisy) - 1)
    fitted = falling(noisy, np.diff(ends))
    fitted[start:] = falling(noisy[start:], -np.diff(ends**-law.index)[start:])
    return np.where(noisy > law.sure, np.maximum(fitted, noisy), fitted)


def falling(amounts: FloatArray, spans: FloatArray, noise: FloatArray | float = 1.0) -> FloatArray:
    """The nearest amounts of at least 0 whose quotients by the spans do not rise.

    Args:
        amounts: noisy ones, shape (k,).
        spans: above 0, shape (k,).
        noise: standard error of each amount, above 0.

    >>> falling(np.array([10.0, 4.0, 6.0, -3.0]), np.ones(4)).tolist()
    [10.0, 5.0, 5.0, 0.0]
    """
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

    Args:
        gram: M = W^T W, of cells that some query tells apart.
        limits: T_j.
        norm: 1 for Laplace noise, 2 for Gaussian noise.

    Source: what p-Identity and the Gaussian optimum reach for prefix sums, beside GreedyH and the singular value bound.

    >>> quick_noise(PrefixGram(100), np.full(100, 10), 1) > quick_noise(PrefixGram(100), np.full(100, 9), 1)
    True
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

    Args:
        gram: M = W^T W on the cells of the number.
        edges: upper edges of the cells, in units, shape (n,).
        cells: places of the candidates, from `candidate_cells`, shape (k,).
        tail: noisy counts of records between one candidate and the next, shape (k - 1,).
        unit_noise: unit RMSE of the strategy that would be taken for limits T_j, such as `quick_noise`.
        noise: standard deviation of the noise on a query of sensitivity 1 with what is left of the budget.
        lost: the Gram matrix that squares of losses are added up with; None for M. It differs where sums are asked for by groups, which
            share the loss and each have noise of their own.
        law: what the counts are held to for the choice.

    Raises:
        InputError: a number of counts that does not fit the candidates.

    Guarantees: a function of noisy and public numbers; it costs nothing.

    >>> edges = 100 * np.arange(1, 9)
    >>> for counts in ([0.0] * 7, [90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0]):
    ...     choose_threshold(PrefixGram(8), edges, np.arange(8), np.array(counts), lambda limits: float(limits.max()), 3.0).threshold
    100
    700
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
