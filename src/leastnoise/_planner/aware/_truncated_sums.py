"""Sums under limits: what to measure, hierarchies whose limits differ, and where to cut.

A workload of sums under limits: what is asked along the number, and what to measure.

Hierarchies for sums under limits that differ from cell to cell: whole coefficients, so they are measured from the records exactly.

A row of cell j adds at most T_j to every block above it, so a tree whose blocks q have scales lambda_q costs max_j T_j * (sum of lambda_q
over the path of j). Where the limits differ, small cells have slack under scales that suit the large ones; here a coarse level of weight w
has lambda_q = w / (largest limit in q), and the cells take all that is left: lambda_j = 1 / T_j - (sum above). In the terms of the paper
that is TaMM on the sums themselves; with equal limits it is a hierarchy with the best weight for every level.

Source: Wu et al. (see ``_truncated_sums``), where TiMM with A is TaMM with A T; the error by the closed form of ``_tree``.

Where to cut: the threshold with the least predicted error, from noisy counts of the records in the tail. Public: no data is seen.

For a threshold theta the squared error of all queries is predicted as e^T M e + (noise of the strategy for theta), with e_j the excess over
theta of the records in cell j and M = W^T W. The excess follows from how many records each interval between candidate thresholds holds.
Those counts are disjoint, so one record changes one of them by 1: they are measured with a small part of the budget by the discrete Laplace
or Gaussian mechanism, like any other queries, and everything here is post-processing of them. One measurement serves every candidate, every
strategy and every workload, and the estimate of what the cut takes away comes with it.

Choosing by the prediction itself in the exponential mechanism would need its sensitivity, which is the public maximum less the least
candidate: one record of the largest value. That noise is larger than what there is to choose (docs/decisions/sums.md).
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._check import InputError, InternalError, refuse
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families import (
    MOST_DENSE,
    DenseGram,
    Fit,
    Fitted,
    GeneratedGram,
    Gram,
    NotApplicable,
    ScaledSum,
    all_alike,
    fit_gaussian_optimum,
    fit_greedy_h,
    fit_p_identity,
    fitted,
    gram_of,
    level_tree,
    merge_equal_cells,
    singular_value_bound,
    tree_error,
)
from leastnoise._families import tree_factor as _tree
from leastnoise._linop import Dense, Total, run_spread
from leastnoise._measurements import MOST_ROWS, Factor, Limits
from leastnoise._planner._strategy import Strategy
from leastnoise._planner._tables import Candidates, asked_tables, factor_along, weighted_strategy
from leastnoise._workload import Workload, identity

_RATIOS = (4, 6, 8, 12, 16, 24, 32, 48)


_FINE = 2.0**-19  # of the largest scale: what row weights of 20 bits can tell from nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LimitedTree:
    """A hierarchy with one scale a node, for limits that differ.

    Attributes:
        widths: cells in a block of each level, the first 1.
        scales: scales of the nodes of each level; with one unit of noise variance a path costs at most 1.
        rmse: root mean square error per query at noise variance 1, in units of the sums.
    """

    widths: tuple[int, ...]
    scales: tuple[FloatArray, ...]
    rmse: float


def fit_limited_tree(gram: Gram, limits: IntArray, power: int) -> LimitedTree:
    """The best of many chains of widths with one weight a coarse level."""
    amounts = np.asarray(limits, dtype=np.float64)
    if amounts.shape != (gram.size,) or not (amounts >= 1).all():
        raise refuse("the limits of a tree", f"an array of shape {amounts.shape}", f"{gram.size} numbers of at least 1")
    best: tuple[float, tuple[int, ...], FloatArray] | None = None
    for widths in _chains(gram.size, power):
        error, weights = _weighed(gram, widths, amounts, power)
        if best is None or error < best[0] * (1 - 1e-9):
            best = error, widths, weights
    if best is None:  # the chain of the cells alone is always there
        raise InternalError("no chain of widths has an error")
    error, widths, weights = best
    kept = [0, *(level + 1 for level, weight in enumerate(weights) if weight > 1e-3)]
    widths, weights = tuple(widths[level] for level in kept), np.array([weights[level - 1] for level in kept[1:]])
    scales = _scales(widths, weights, amounts, power)
    error, _ = tree_error(gram, widths, [scale**2 for scale in scales], gradient=False)
    return LimitedTree(widths=widths, scales=tuple(scales), rmse=math.sqrt(error / gram.queries))


def _chains(size: int, power: int) -> Iterator[tuple[int, ...]]:
    """The cells alone, and up to three coarser levels; under Gaussian noise whole chains of one branching."""
    yield (1,)
    if power == 2:
        for branching in (2, 3, 4, 6, 8, 16):
            widths = tuple(itertools.takewhile(lambda width: width < 2 * size, (branching**level for level in range(40))))
            if len(widths) > 1:
                yield widths
        return
    for first in _RATIOS:
        if first >= 2 * size:
            return
        yield (1, first)
        for second in _RATIOS[:6]:
            if first * second < 2 * size:
                yield (1, first, first * second)


def _scales(widths: Sequence[int], weights: FloatArray, limits: FloatArray, power: int) -> list[FloatArray]:
    """Scales of all nodes; the weights are powers of the coarse levels' scales times the largest limit, and add up to less than 1."""
    used, coarse = np.zeros(len(limits)), []
    for width, weight in zip(widths[1:], weights, strict=True):
        largest = np.maximum.reduceat(limits, np.arange(0, len(limits), width))
        own = weight / largest**power
        used += run_spread(own, width, len(limits))
        coarse.append(own ** (1 / power))
    return [np.maximum(1 / limits**power - used, 0.0) ** (1 / power), *coarse]


def _weighed(gram: Gram, widths: tuple[int, ...], limits: FloatArray, power: int) -> tuple[float, FloatArray]:
    """The best weights of the coarse levels of a chain, by descent without derivatives: there are few."""
    from scipy.optimize import minimize

    def weights_of(point: FloatArray) -> FloatArray:
        raw = np.exp(np.clip(point, -12, 12))
        return np.asarray(raw / (1 + raw.sum()))

    def error_of(weights: FloatArray) -> float:
        scales = _scales(widths, weights, limits, power)
        if not scales[0].min() > _FINE * max(float(scale.max()) for scale in scales):
            return math.inf
        return tree_error(gram, widths, [scale**2 for scale in scales], gradient=False)[0]

    count = len(widths) - 1
    if not count:
        return error_of(np.zeros(0)), np.zeros(0)
    options = {"maxiter": 50 * count, "xatol": 2e-2, "fatol": 1e-4}
    start = np.full(count, -1.0 if count < 4 else -math.log(count))

    def objective(point: FloatArray) -> float:
        return min(math.log(max(error_of(weights_of(point)), 1e-300)), 1e6)

    found = minimize(objective, start, method="Nelder-Mead", options=options)
    weights = weights_of(found.x)
    return error_of(weights), weights


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
    densities = falling(noisy, np.diff(ends))
    densities[start:] = falling(noisy[start:], -np.diff(ends**-law.index)[start:])
    return np.where(noisy > law.sure, np.maximum(densities, noisy), densities)


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


_WORTH = 0.999


_MOST_JOINT = 2**24


_MOST_OPTIMUM = {1: 1024, 2: 512}  # cells: seconds


_ROOM = 2**62 // MOST_ROWS


_LEAST_BITS = 6


_NOTHING = 1e-9  # of a row's coefficients


_BESIDE = 1e-4  # of the budget


HEAVIEST = {1: 2**20, 2: 2**16}


"""Weights of rows by norm: sums of squared weights times squared coefficients must stay below 2^63."""


def asked_along(workload: Workload, attribute: str) -> tuple[Gram, Gram]:
    """The Gram matrices of all queries along one attribute: for noise, and for losses."""
    kind = workload.domain.kind(attribute)
    noise: list[tuple[float, Gram]] = []
    loss: list[tuple[float, Gram]] = []
    for product in workload:
        names = product.attributes
        operator = product.operators[names.index(attribute)] if attribute in names else Total(kind.size)
        groups, gram = product.rows // operator.rows, gram_of(operator)
        if operator.size > MOST_DENSE and gram.listed and not gram.mirrored:  # ranges that are not all of one width
            raise NotApplicable(f"given ranges along what is summed need a matrix of all cells; at most {MOST_DENSE} cells are allowed")
        noise.append((product.importance * groups, gram))
        loss.append((product.importance / groups, gram))
    return ScaledSum(tuple(noise)), ScaledSum(tuple(loss))


def noise_along(workload: Workload, attribute: str, norm: int) -> Callable[[IntArray], float]:
    """About the unit RMSE of the best strategy along a number, as a function of the limits of its cells.

    Cells that no query tells apart are planned as one, and so they are here: 10 sums over 1000 cells have the noise of 10 cells.
    """
    small, group = _merged(workload, attribute)
    return lambda limits: quick_noise(small, _largest(limits, group, small.size), norm)


def limited_strategy(workload: Workload, attribute: str, limits: IntArray, norm: int) -> Strategy:
    """What to measure for sums under limits along a number, with level trees along other attributes.

    Along the number a hierarchy made for the limits or, up to 1024 cells (512 under Gaussian noise), the optimum on the weighted workload,
    whichever has the least error.
    """
    small, group = _merged(workload, attribute)
    merged = _largest(limits, group, small.size)

    def own_limits(gram: Gram) -> IntArray:
        return next((one for one in (limits, merged) if len(one) == gram.size), np.full(gram.size, int(limits.max())))

    def hierarchy(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
        if name != attribute:
            return level_tree(name, gram, norm, bits)
        found = fit_limited_tree(gram, own_limits(gram), norm)
        return _tree(name, gram.size, found.widths, found.scales)

    def optimum(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
        return _optimum(name, gram, own_limits(gram), norm) if name == attribute else hierarchy(name, gram, norm, bits)

    ways: list[Fit] = [hierarchy]
    if len(limits) <= _MOST_OPTIMUM[norm] and int(limits.max()) < _ROOM >> _LEAST_BITS and any(attribute in p.attributes for p in workload):
        ways.append(optimum)
    return min((_with(way, workload, attribute, limits, norm) for way in ways), key=lambda strategy: strategy.error)


def _with(fit: Fit, workload: Workload, attribute: str, limits: IntArray, norm: int) -> Strategy:
    along = {}
    for name in workload.domain.names:
        kinds = {q for p in workload for one, q in zip(p.attributes, p.query_sets, strict=True) if one == name}
        if kinds - {identity()} or (kinds and name == attribute):
            along[name] = fitted(fit, name, asked_along(workload, name)[0], norm, 20).factor
    # The joint table only where it is worth its room: beside tables that tell all that is asked, one of hardly any weight gains nothing,
    # and its noise would be too large to be drawn exactly.
    limited = Limits(limits, attribute)
    apart, together = asked_tables(workload), asked_tables(workload)
    for sets in together.values():
        joint = tuple(one for one in workload.domain.names if any(one in names for names in sets))
        if joint not in sets and math.prod(factor_along(workload.domain, one, along).operator.rows for one in joint) <= _MOST_JOINT:
            sets.append(joint)
    alone = weighted_strategy("truncated_sums", workload, along, Candidates(apart), norm, limits=limited)
    if apart == together:
        return alone
    joined = weighted_strategy("truncated_sums", workload, along, Candidates(together), norm, limits=limited)
    return joined if joined.error < _WORTH * alone.error else alone


def _optimum(name: str, gram: Gram, limits: IntArray, norm: int) -> Fitted:
    """The best strategy on W T, in whole coefficients on the sums themselves."""
    return Fitted(Factor((name,), *whole_rows(best_rows(gram, limits, norm), limits, norm)))


def best_rows(gram: Gram, limits: IntArray, norm: int, effort: float = 0.3) -> FloatArray:
    """The best strategy of sensitivity 1 on W T that determines every sum, in real coefficients on the sums themselves, shape (rows, n).

    Queries of lower rank, which are best under Gaussian noise where few are asked for, have a ten-thousandth of the budget on every cell
    besides: rounded to whole coefficients they would not tell what is asked any more.
    """
    if gram.size == 1:
        return 1 / limits[None, :]
    weighted = weighted_gram(gram, limits)
    rows = fit_p_identity(weighted, effort=effort).matrix() if norm == 1 else fit_gaussian_optimum(weighted).factor
    rows = rows[np.abs(rows).max(axis=1) > _NOTHING]
    if norm == 2 and np.linalg.matrix_rank(rows) < gram.size:
        rows = np.vstack([rows * math.sqrt(1 - _BESIDE), math.sqrt(_BESIDE) * np.eye(gram.size)])
    return np.asarray(rows / limits)


def whole_rows(real: FloatArray, limits: IntArray, norm: int) -> tuple[Dense, IntArray]:
    """Rows in whole coefficients, and their weights.

    Every row has bits of its own, as many as 2^32 rows of the largest limit leave, and its scale as a weight.
    """
    bits = min(12 if norm == 1 else 8, (_ROOM // int(limits.max())).bit_length() - 2)
    weights = np.abs(real).max(axis=1) / 2**bits
    whole = np.rint(real / weights[:, None]).astype(np.int64)
    return Dense(whole), np.maximum(1, np.rint(weights / weights.max() * HEAVIEST[norm])).astype(np.int64)


def _merged(workload: Workload, attribute: str) -> tuple[Gram, IntArray]:
    """What is asked of the groups of cells that no query tells apart, which are planned as one, and the group of every cell."""
    gram, _ = asked_along(workload, attribute)
    if gram.size > MOST_DENSE and not all_alike(gram):
        return gram, np.arange(gram.size)
    return merge_equal_cells(gram)


def _largest(limits: IntArray, group: IntArray, size: int) -> IntArray:
    """The largest limit of each group."""
    merged = np.zeros(size, dtype=np.int64)
    np.maximum.at(merged, group, limits)
    return merged
