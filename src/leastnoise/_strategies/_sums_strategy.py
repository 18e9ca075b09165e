"""Strategies for sums of a number, with a limit on the amount from each cell.

The functions choose the threshold at which values are clipped, and the buckets of the number that
are kept.

All results depend only on public values, or on noisy answers that have already been paid for.

A row of cell j adds at most the limit T_j. Let T be the diagonal matrix of the limits T_j, and W
the matrix of the queries. A strategy for W T, divided by T, costs as much as the same strategy for
counts. In the terms of Wu et al., TiMM with strategy A equals TaMM with A T. The optimum for W T is
at least as good as both. For a threshold theta, the predicted squared error of all queries is e^T M
e + (noise of the strategy for theta). Here M is W^T W. e_j is the amount by which the records in
cell j exceed theta. It is estimated from noisy counts between candidate thresholds.

Buckets of cells are disjoint, so each bucket gets the whole budget, and its noise is proportional
to its upper end. The noisy answers then also show, without further cost, above which bucket there
are no values (docs/decisions/sums.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from leastnoise._error import ConstrainedLeastSquares
from leastnoise._families import (
    MOST_DENSE,
    FittedFamily,
    Gram,
    NotApplicable,
    dense_gram,
    even_tree,
    fit_gaussian_optimum,
    fit_on_merged_cells,
    fit_p_identity,
    gram_of,
    is_exchangeable,
    level_tree,
    merge_equal_cells,
    singular_value_bound,
    sum_grams,
)
from leastnoise._strategies._planning_problem import Strategy
from leastnoise._strategies._table_weights import attribute_sets_with_joint, weighted_strategy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Coarse, Dense, Identity, Total
from leastnoise._trusted.measurements import MOST_ROWS, Factor, Limits
from leastnoise._workload import Workload, identity

MOST_SUM_CELLS = 1024  # maximum number of cells that queries distinguish: the optimum takes seconds
# Counts above this number of standard errors are not shrunk; with Laplace noise this happens to one
# empty interval in 10,000.
SURE = 6
# For each norm, the largest weight of a row for which sums of squared weights times squared
# coefficients stay below 2^63.
HEAVIEST = {1: 2**20, 2: 2**16}
_THRESHOLD_RATIO = 1.2  # ratio of a candidate threshold to the previous one
# The public maximum is at most this many times the least candidate.
_MAXIMUM_OVER_LEAST_CANDIDATE = 1000
_MOST_SPECTRUM = 512  # cells of a coarsened Gram matrix whose singular values are computed
_JOINT_ERROR_RATIO = 0.999  # a joint table must reduce the error below this share
# A row weight times the largest limit stays below this, so that sums over all rows fit into int64.
_MOST_WEIGHTED_LIMIT = 2**62 // MOST_ROWS
_LEAST_BITS = 6  # least bits of a row's largest coefficient; below, rounding costs too much
_FIT_EFFORT = 0.03  # share of the steps; ten times as many steps lower the error by less than 1%
# Gap of the Gaussian optimum; for prefix sums it adds less than 0.1% to the error and takes a
# quarter of the time.
_OPTIMUM_GAP = 0.05
_NEGLIGIBLE_COEFFICIENT = 1e-9  # rows with smaller coefficients are left out
# Share of the budget for measuring every cell, in addition to rows of lower rank.
_CELL_BUDGET_SHARE = 1e-4
_BUCKET_RATIO = 1.6  # ratio of the end of a bucket to the end of the previous bucket
_STANDS_OUT = 2.0  # the first kept bucket must exceed this number of standard errors
# Buckets above this number of standard errors are not shrunk to the tail; with Laplace noise this
# happens to one empty bucket in 600.
_SURE_ERRORS_OF_BUCKET = 4.0
_GROUP_RATIO = 3.0  # the same ratio for buckets of groups
# Share of releases that do not shrink some empty bucket of a group, with Laplace noise.
_FALSE_BUCKET_SHARE = 1e-4
# For groups: they can omit buckets below a threshold that is too high, but cannot correct a
# threshold that is too low.
_TAIL_INDEX = 0.5
# Squared losses are summed as if k groups were k^(1/3) times as uneven as groups of equal size.
_UNEVENNESS_EXPONENT = 1 / 3


def limited_gram(gram: Gram, limits: IntArray | FloatArray) -> Gram:
    """Return the Gram matrix T M T of queries on values clipped to limits."""
    weights = np.asarray(limits, dtype=np.float64)
    if len(gram.generators) == 1:
        return Gram(
            gram.size, gram.queries, tuple((a * weights, b * weights) for a, b in gram.generators)
        )
    return dense_gram(gram.dense() * weights * weights[:, None], gram.queries)


def candidate_cells(edges: IntArray, ratio: float = _THRESHOLD_RATIO) -> IntArray:
    """Return candidate cells whose upper edges grow by about ``ratio``.

    The last cell contains the public maximum.
    """
    high = float(edges[-1])
    least = max(float(edges[0]), high / _MAXIMUM_OVER_LEAST_CANDIDATE)
    if high > least:
        steps = math.floor(math.log(high / least) / math.log(ratio))
    else:
        steps = 0
    targets = high / ratio ** np.arange(steps, -1, -1)
    after = np.minimum(np.searchsorted(edges, targets), len(edges) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(targets - edges[before] < edges[after] - targets, before, after)
    return np.unique(np.searchsorted(edges, edges[nearest], side="right") - 1)


@dataclass(frozen=True, slots=True)
class TailLaw:
    """A power law for the tail of a distribution, fitted to noisy counts.

    Attributes:
        certain_count: counts above this number are not reduced to the power law.
        index: the tail beyond x is proportional to x^-index. At index 1 the mean is just infinite:
            each doubling of a threshold adds the same amount to the sum.
    """

    certain_count: float = math.inf
    index: float = 1.0


def decreasing_counts(
    counts: FloatArray, upper_edges: FloatArray | IntArray, law: TailLaw = TailLaw()
) -> FloatArray:
    """Fit a decreasing density to noisy interval counts; return its counts.

    The density decreases at least as fast as the power law.
    """
    # The power law applies above the median of the records beyond the first candidate. Below the
    # median, the density only has to be non-increasing.
    ends = np.asarray(upper_edges, dtype=np.float64)
    noisy = np.asarray(counts, dtype=np.float64)
    above = np.cumsum(noisy[::-1])[::-1]
    if len(noisy) and (above <= above[0] / 2).any():
        start = int(np.argmax(above <= above[0] / 2))
    else:
        start = max(0, len(noisy) - 1)
    densities = isotonic_decreasing(noisy, np.diff(ends))
    densities[start:] = isotonic_decreasing(noisy[start:], -np.diff(ends**-law.index)[start:])
    return np.where(noisy > law.certain_count, np.maximum(densities, noisy), densities)


def isotonic_decreasing(
    amounts: FloatArray, spans: FloatArray, stds: FloatArray | float = 1.0
) -> FloatArray:
    """Fit amounts to noisy amounts such that amounts over spans decrease.

    The result, divided by the spans, does not increase from one bucket to the next.
    """
    from scipy.optimize import isotonic_regression

    if not len(amounts):
        return np.zeros(0)
    unit = spans / spans.mean()
    return np.asarray(
        np.maximum(
            isotonic_regression(amounts / unit, weights=(unit / stds) ** 2, increasing=False).x,
            0.0,
        )
        * unit
    )


def shrink_bucket_totals(
    totals: FloatArray, stds: FloatArray, spans: FloatArray, mode: int, certain_deviation: float
) -> FloatArray:
    """Estimate totals of buckets such that totals divided by spans decrease.

    From the bucket ``mode`` on, totals per span do not increase. Totals of more than
    ``certain_deviation`` standard errors are exempt from this condition.
    """
    beyond = np.sqrt(np.maximum(np.maximum(totals, 0.0) ** 2 - stds**2, 0.0))
    most = np.full(len(totals), np.inf)
    most[mode:] = isotonic_decreasing(totals[mode:], spans[mode:], stds[mode:])
    return np.where(totals > certain_deviation * stds, beyond, np.minimum(most, beyond))


class ThresholdChoice(NamedTuple):
    """The chosen threshold, and the predicted errors of all candidates.

    Attributes:
        threshold: the chosen threshold, in units of the measure.
        candidates: upper edges of the candidate cells, in units.
        clipping_rmse: root mean square over all queries of the amount that clipping removes, for
            each candidate.
        noise_rmse: for each candidate, the root mean square of the noise over all queries.
        clipped_amounts: the estimated amount that the chosen threshold cuts from the records of
            each cell, in units, shape (n,). The amounts follow from counts that are fitted to the
            law of index 1, even if the choice used another law.
    """

    threshold: int
    candidates: IntArray
    clipping_rmse: FloatArray
    noise_rmse: FloatArray
    clipped_amounts: FloatArray


def estimated_rmse(gram: Gram, limits: IntArray, norm: int) -> float:
    """Estimate quickly the unit RMSE of the best strategy under limits.

    When the threshold changes, the relative change of the estimate is correct to a few per cent.

    Source: measured errors of p-Identity and the Gaussian optimum for prefix sums, relative to even
        trees and the singular value bound.
    """
    if norm == 2:
        factor = -(-gram.size // _MOST_SPECTRUM)
        return 1.02 * singular_value_bound(
            limited_gram(gram.coarsen(factor) if factor > 1 else gram, limits[::factor])
        )
    weighted = limited_gram(gram, limits)
    tree = min(even_tree(weighted, branching, norm).rmse for branching in (4, 16))
    return min(0.85 * tree, math.sqrt(float(weighted.diagonal().sum()) / weighted.queries))


def choose_threshold(
    gram: Gram,
    edges: IntArray,
    cells: IntArray,
    tail_counts: FloatArray,
    unit_noise: Callable[[IntArray], float],
    noise_scale: float,
    *,
    loss_gram: Gram | None = None,
    law: TailLaw = TailLaw(),
) -> ThresholdChoice:
    """Return the candidate threshold with the least predicted error.

    Args:
        gram: the Gram matrix of the queries on the cells, for noise.
        edges: the upper edge of every cell, in units, shape (n,).
        cells: the candidate cells, shape (k,).
        tail_counts: noisy counts of the records between consecutive candidates, shape (k - 1,).
        unit_noise: a function from the limits of the cells, shape (n,), to the RMSE at unit noise.
        noise_scale: the standard deviation of the noise; unit noise is multiplied by it.
        loss_gram: the Gram matrix for losses, if it differs from ``gram``.
        law: the power law to which the counts are fitted.
    """
    if loss_gram is None:
        missed = gram
    else:
        missed = loss_gram
    if len(tail_counts) != len(cells) - 1:
        raise InputError(
            f"There must be one count for each interval between {len(cells)} candidates; got "
            f"{len(tail_counts)}."
        )
    centres = (edges + np.concatenate([[0], edges[:-1]])) / 2
    candidates = edges[cells]

    def by_cell(index: float) -> FloatArray:
        """Return fitted tail counts, divided evenly within each interval."""
        counts = np.zeros(len(edges))
        spans = np.diff(cells)
        counts[cells[0] + 1 : cells[-1] + 1] = np.repeat(
            decreasing_counts(tail_counts, candidates, TailLaw(law.certain_count, index)) / spans,
            spans,
        )
        return counts

    counts = by_cell(law.index)
    squares = []
    for threshold in candidates:
        excess = counts * np.maximum(centres - threshold, 0.0)
        squares.append(float(missed.multiply_rows(excess[None, :])[0] @ excess))
    bias = np.sqrt(np.maximum(squares, 0.0) / gram.queries)
    noise_std = noise_scale * np.array(
        [unit_noise(np.minimum(edges, threshold)) for threshold in candidates]
    )
    best = int(np.argmin(bias**2 + noise_std**2))
    excess = by_cell(TailLaw().index) * np.maximum(centres - candidates[best], 0.0)
    return ThresholdChoice(
        threshold=int(candidates[best]),
        candidates=candidates,
        clipping_rmse=bias,
        noise_rmse=noise_std,
        clipped_amounts=excess,
    )


def gram_matrices_along(workload: Workload, attribute: str) -> tuple[Gram, Gram]:
    """Return the Gram matrices along an attribute, for noise and for losses.

    The first matrix is for noise, which is independent in every group. The second matrix is for
    losses, which the groups share.
    """
    kind = workload.domain.kind(attribute)
    noise: list[tuple[float, Gram]] = []
    loss: list[tuple[float, Gram]] = []
    for product in workload:
        names = product.attributes
        if attribute in names:
            operator = product.operators[names.index(attribute)]
        else:
            operator = Total(kind.size)
        groups = product.rows // operator.rows
        gram = gram_of(operator)
        # These queries are listed ranges.
        if (
            operator.size > MOST_DENSE
            and gram.weighted_ranges is not None
            and not gram.is_symmetric_under_reversal
        ):
            raise NotApplicable(
                "ranges along the summed attribute need a matrix of all cells; at most "
                f"{MOST_DENSE} cells are allowed"
            )
        noise.append((product.importance * groups, gram))
        loss.append((product.importance / groups, gram))
    return sum_grams(noise), sum_grams(loss)


def estimated_rmse_along(
    workload: Workload, attribute: str, norm: int
) -> Callable[[IntArray], float]:
    """Return a function that estimates the unit RMSE for given limits."""
    # Cells that no query separates are planned as one cell: 10 sums over 1000 cells have the noise
    # of 10 cells.
    small, group = merge_indistinguishable_cells(workload, attribute)
    return lambda limits: estimated_rmse(small, _largest_limits(limits, group), norm)


def limited_strategy(workload: Workload, attribute: str, limits: IntArray, norm: int) -> Strategy:
    """Return the strategy for sums of values clipped to limits.

    The strategy is optimal along the number, and consists of level trees along the other
    attributes.
    """

    def fit(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
        """Return the best integer strategy for queries along the number."""
        if len(limits) == gram.size:
            most = limits
        else:
            most = _largest_limits(limits, merge_indistinguishable_cells(workload, attribute)[1])
        return FittedFamily(*integer_rows(best_rows(gram, most, norm), most, norm))

    along = {}
    for name in workload.domain.names:
        kinds = set()
        for product in workload:
            if name in product.attributes:
                kinds.add(product.query_sets[product.attributes.index(name)])
        if kinds - {identity()} or (kinds and name == attribute):
            fitted = fit_on_merged_cells(
                fit if name == attribute else level_tree,
                gram_matrices_along(workload, name)[0],
                norm,
                20,
            )
            along[name] = fitted.factor(name)
    # Add the joint table to the requested ones only if it reduces the error. With a very small
    # weight, its noise would be too large to be sampled exactly.
    limited = Limits(limits, attribute)
    tables = workload.tables
    together = attribute_sets_with_joint(workload, along)
    strategy = weighted_strategy("truncated_sums", workload, along, tables, norm, limits=limited)
    if all(len(tables[measure]) == len(sets) for measure, sets in together.items()):
        return strategy
    joined = weighted_strategy("truncated_sums", workload, along, together, norm, limits=limited)
    if joined.error < _JOINT_ERROR_RATIO * strategy.error:
        return joined
    return strategy


def best_rows(gram: Gram, limits: IntArray, norm: int) -> FloatArray:
    """Return the rows of the best strategy for sums with a limit for each cell.

    Each column is divided by the limit of its cell. The rows have sensitivity 1 and shape
    (rows, n), and determine every sum.
    """
    # For few queries, the optimum for Gaussian noise has a lower rank. After rounding to integers,
    # it would not determine the queries. So every cell is also measured, with a ten-thousandth of
    # the budget.
    if gram.size == 1:
        return 1 / limits[None, :]
    weighted = limited_gram(gram, limits)
    if norm == 1:
        rows = fit_p_identity(weighted, effort=_FIT_EFFORT).matrix()
    else:
        rows = fit_gaussian_optimum(weighted, gap=_OPTIMUM_GAP).matrix
    rows = rows[np.abs(rows).max(axis=1) > _NEGLIGIBLE_COEFFICIENT]
    if norm == 2 and np.linalg.matrix_rank(rows) < gram.size:
        rows = np.vstack(
            [
                rows * math.sqrt(1 - _CELL_BUDGET_SHARE),
                math.sqrt(_CELL_BUDGET_SHARE) * np.eye(gram.size),
            ]
        )
    return np.asarray(rows / limits)


def integer_rows(real_rows: FloatArray, limits: IntArray, norm: int) -> tuple[Dense, IntArray]:
    """Return rows as integer coefficients, and their row weights.

    Each row uses as many bits as possible without overflow in sums of 2^32 records of the largest
    limit. The scale of each row becomes its weight.
    """
    bits = min(12 if norm == 1 else 8, (_MOST_WEIGHTED_LIMIT // int(limits.max())).bit_length() - 2)
    if bits < _LEAST_BITS:
        raise InputError(
            f"The public bounds are too large for whole coefficients: up to {int(limits.max())} "
            "units. Choose a larger unit."
        )
    weights = np.abs(real_rows).max(axis=1) / 2**bits
    rounded = np.rint(real_rows / weights[:, None]).astype(np.int64)
    return Dense(rounded), np.maximum(1, np.rint(weights / weights.max() * HEAVIEST[norm])).astype(
        np.int64
    )


def merge_indistinguishable_cells(workload: Workload, attribute: str) -> tuple[Gram, IntArray]:
    """Return the Gram matrix of merged cells, and the group of each cell."""
    gram, _ = gram_matrices_along(workload, attribute)
    if gram.size <= MOST_DENSE or is_exchangeable(gram):
        merged = merge_equal_cells(gram)
        if merged[0].size <= MOST_SUM_CELLS:
            return merged
    raise InputError(
        f"Sums along {attribute} can be answered if the queries distinguish at most "
        f"{MOST_SUM_CELLS} cells; it has {gram.size} cells. Use wider bins or fewer queries."
    )


def _largest_limits(limits: IntArray, group_of_cell: IntArray) -> IntArray:
    """Return the largest limit in each group."""
    merged = np.zeros(int(group_of_cell.max()) + 1, dtype=np.int64)
    np.maximum.at(merged, group_of_cell, limits)
    return merged


@lru_cache(maxsize=64)
def _cached_best_rows(gram: bytes, limits: bytes, norm: int) -> FloatArray:
    """Return `best_rows`, cached by the bytes of its arguments."""
    most = np.frombuffer(limits, dtype=np.int64)
    return best_rows(dense_gram(np.frombuffer(gram).reshape(len(most), -1), len(most)), most, norm)


class CellRange(NamedTuple):
    """A range of kept cells, and the estimated sums of the omitted buckets.

    Attributes:
        first: the first kept cell.
        stop: the cell after the last kept cell.
        omitted_sums: for each bucket that is left out: its first cell, the cell after its last, and
            its estimated sum in units.
    """

    first: int
    stop: int
    omitted_sums: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumBuckets:
    """Cells along a number, in groups of cells that no query separates.

    All queries treat the cells of a group alike. The groups are also combined in buckets. The end
    of a bucket is at most 1.6 times the end of the previous one.

    Attributes:
        attribute: the number.
        limits: the largest amount that a record of each cell adds, in units, shape (n,); each is at
            least a thousandth of the largest.
        group_starts: the first cell of every group, shape (m,).
        bucket_ends: the group after the last group of every bucket, shape (k,).
        spans: for every bucket, the logarithm of the ratio of its ends (upper over lower), shape
            (k,).
        gram: the Gram matrix of the queries on the groups.
    """

    attribute: str
    limits: IntArray
    group_starts: IntArray
    bucket_ends: IntArray
    spans: FloatArray
    gram: Gram

    @staticmethod
    def of(workload: Workload, attribute: str, edges: IntArray) -> "SumBuckets":
        """Return the buckets for sums along one number.

        The upper edges of the cells are in units of the measure.
        """
        matrix = gram_matrices_along(workload, attribute)[0]
        gram = matrix.dense()
        changes = np.flatnonzero((gram[1:] != gram[:-1]).any(axis=1)) + 1
        last = candidate_cells(edges, _BUCKET_RATIO)
        starts = np.union1d(np.append(0, changes), last[:-1] + 1)
        upper = edges[last].astype(np.float64)
        return SumBuckets(
            attribute=attribute,
            limits=np.maximum(edges, -(-int(edges[-1]) // _MAXIMUM_OVER_LEAST_CANDIDATE)),
            group_starts=starts,
            bucket_ends=np.searchsorted(starts, last, side="right"),
            spans=np.log(upper / np.append(upper[0] / _BUCKET_RATIO, upper[:-1])),
            gram=dense_gram(gram[np.ix_(starts, starts)], matrix.queries),
        )

    @property
    def stops(self) -> IntArray:
        """The cell after the last cell of each group."""
        return np.append(self.group_starts[1:], len(self.limits))

    def factor(self, norm: int) -> Factor:
        """Return the best strategy for the sums of the groups.

        ``norm`` is 1 or 2, for the sensitivity in L1 or L2.
        """
        limits = self.limits[self.stops - 1]
        dense, weights = integer_rows(
            _cached_best_rows(self.gram.dense().tobytes(), limits.tobytes(), norm), limits, norm
        )
        return Factor(
            (self.attribute,), Coarse(dense, self.group_starts, len(self.limits)), weights
        )

    def choices(self, covariance: FloatArray) -> "StopChoices":
        """Return the estimates for each possible last bucket of the sums.

        ``covariance`` is the covariance of the groups.
        """
        groups = np.arange(len(self.group_starts))
        gram = self.gram.dense()
        stops = []
        within = np.zeros((len(groups), len(self.bucket_ends)))
        within[groups, np.searchsorted(self.bucket_ends, groups, side="right")] = 1.0
        for last, end in enumerate(self.bucket_ends):
            constrained = ConstrainedLeastSquares.of(covariance, groups < end)
            added = within[:, : last + 1].T
            missing = constrained.coefficients @ (within / within.sum(axis=0))
            totals = added @ (
                np.eye(len(groups)) - np.where(constrained.kept, 0.0, constrained.coefficients)
            )
            noise = np.sqrt(np.maximum(((added @ constrained.covariance) * added).sum(axis=1), 0.0))
            stops.append(
                _StopEstimates(
                    totals,
                    noise,
                    float((constrained.covariance * gram).sum()),
                    missing.T @ gram @ missing,
                )
            )
        return StopChoices(self, tuple(stops))


class _StopEstimates(NamedTuple):
    """Least squares with only the buckets up to a given last bucket.

    Attributes:
        map_to_totals: maps the measured sums of groups to totals of the kept buckets.
        stds: standard errors of these totals.
        variance: total variance of all queries.
        loss_form: the squared error of all queries as a quadratic form in the true sums of the
            buckets.
    """

    map_to_totals: FloatArray
    stds: FloatArray
    variance: float
    loss_form: FloatArray


class StopChoices(NamedTuple):
    """The estimates for each possible last bucket of the sums."""

    buckets: SumBuckets
    stops: tuple[_StopEstimates, ...]

    def choose_range(self, sums: FloatArray) -> CellRange:
        """Return the kept range of buckets with the least predicted error.

        The error is summed over all queries.
        """
        # Drop the highest bucket repeatedly, and estimate the remaining buckets again each time.
        # Then empty buckets do not add noise to the estimate.
        last = len(self.stops)
        best = len(self.stops) - 1
        totals = np.zeros(0)
        noise = np.zeros(0)
        mode = 0
        while best < last:
            last -= 1
            totals = self.stops[last].map_to_totals @ sums
            noise = self.stops[last].stds
            mode = int(np.argmax(totals / noise))
            missing = self._missing(totals, mode, last)
            predicted = []
            for stop in range(mode, last + 1):
                omitted = np.where(np.arange(len(missing)) > stop, missing, 0.0)
                predicted.append(
                    self.stops[stop].variance
                    + float(omitted @ self.stops[stop].loss_form @ omitted)
                )
            best = mode + int(np.argmin(predicted))
        is_clear = totals[: mode + 1] > _STANDS_OUT * noise[: mode + 1]
        if is_clear[mode]:
            begin = int(np.argmax(is_clear))
        else:
            begin = mode
        missing = self._missing(self.stops[-1].map_to_totals @ sums, last, len(self.stops) - 1)
        missing[: last + 1] = 0.0
        missing[:begin] = np.maximum(totals[:begin], noise[:begin])
        # The first cells of the buckets.
        cells = np.append(self.buckets.group_starts, len(self.buckets.limits))[
            np.append(0, self.buckets.bucket_ends)
        ]
        losses = tuple(
            (int(cells[b]), int(cells[b + 1]), float(missing[b]))
            for b in np.flatnonzero(missing > 0)
        )
        return CellRange(first=int(cells[begin]), stop=int(cells[last + 1]), omitted_sums=losses)

    def _missing(self, totals: FloatArray, mode_bucket: int, last_kept: int) -> FloatArray:
        """Estimate the total of each bucket by shrinkage.

        The result is 0 for buckets below the mode.

        The mode is the bucket whose sum exceeds 0 by the most standard errors.
        """
        missing = np.zeros(len(self.stops))
        missing[mode_bucket : last_kept + 1] = shrink_bucket_totals(
            totals,
            self.stops[last_kept].stds,
            self.buckets.spans[: last_kept + 1],
            mode_bucket,
            _SURE_ERRORS_OF_BUCKET,
        )[mode_bucket:]
        return missing


class GroupCellRanges(NamedTuple):
    """The number of buckets that each group keeps, and the omitted sums.

    Attributes:
        kept_buckets: the number of lowest buckets that each group keeps, shape (k,).
        omitted_sums: for each group, the estimated sum of the buckets that it leaves out, in units,
            shape (k,).
        group_shares: the estimated share of each group in the total sum, positive, shape (k,). The
            square of this number estimates the squared share.
    """

    kept_buckets: IntArray
    omitted_sums: FloatArray
    group_shares: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupBuckets:
    """Buckets of a number up to a threshold, for sums by groups.

    The end of each bucket is about three times the end of the previous one. The last bucket
    contains all larger values, clipped to the threshold.
    """

    attribute: str  # the number
    limits: IntArray  # the largest amount that a row of each cell adds, in units, shape (n,)
    starts: IntArray  # the first cell of every bucket, shape (m,)
    upper_ends: IntArray  # the largest amount that a row of each bucket adds, in units, shape (m,)

    @staticmethod
    def of(attribute: str, edges: IntArray, threshold: int) -> "GroupBuckets":
        """Return the buckets up to a threshold.

        The upper edges of the cells are in units of the measure.
        """
        cells = candidate_cells(edges)
        cells = cells[edges[cells] <= threshold]
        last = cells[candidate_cells(edges[cells], _GROUP_RATIO)]
        return GroupBuckets(
            attribute=attribute,
            limits=np.minimum(edges, threshold),
            starts=np.append(0, last[:-1] + 1),
            upper_ends=edges[last],
        )

    def factor(self, norm: int) -> Factor:
        """Return the bucket sums as queries, with noise proportional to upper ends.

        ``norm`` is 1 or 2, for the sensitivity in L1 or L2.
        """
        weights = np.maximum(
            1, np.rint(HEAVIEST[norm] * (self.upper_ends[0] / self.upper_ends))
        ).astype(np.int64)
        return Factor(
            (self.attribute,),
            Coarse(Identity(len(self.upper_ends)), self.starts, len(self.limits)),
            weights,
        )

    def choose_ranges(self, sums: FloatArray, stds: FloatArray) -> GroupCellRanges:
        """Return how many buckets each group keeps, such that the error is least.

        ``sums`` has shape (groups, buckets), and ``stds`` has the standard error of a sum in each
        bucket.
        """
        # All groups are assumed to have the same distribution over buckets, up to their share of
        # the total. The shares are estimated from the sums of each group, and shrunk to the mean as
        # far as noise explains their differences. Sums that are significantly above the noise are
        # not shrunk.
        groups = len(sums)
        totals = sums.sum(axis=0)
        together = stds * np.sqrt(len(sums))
        spans = np.log(
            self.upper_ends / np.append(self.upper_ends[0] / _GROUP_RATIO, self.upper_ends[:-1])
        )
        profile = shrink_bucket_totals(
            totals,
            together,
            spans,
            int(np.argmax(totals / together)),
            _exceedance_threshold(len(totals)),
        )
        weights = profile / stds**2
        precision = float(weights @ profile)
        shares = np.full(groups, 1 / groups)
        if precision > 0:
            single = sums @ weights / precision
            variance = max(float(np.mean((single - 1 / groups) ** 2)) - 1 / precision, 0.0)
            trust = variance / (variance + 1 / precision)
            shares = np.sqrt((1 / groups + trust * (single - 1 / groups)) ** 2 + trust / precision)
        denoised = np.where(
            sums > _exceedance_threshold(sums.size) * stds,
            np.sqrt(np.maximum(sums**2 - stds**2, 0.0)),
            0.0,
        )
        beyond = np.zeros((groups, len(stds) + 1))
        beyond[:, :-1] = np.maximum(shares[:, None] * profile, denoised)[:, ::-1].cumsum(axis=1)[
            :, ::-1
        ]
        buckets = np.argmin(beyond**2 + np.append(0.0, np.cumsum(stds**2)), axis=1)
        return GroupCellRanges(
            kept_buckets=buckets,
            omitted_sums=beyond[np.arange(groups), buckets],
            group_shares=shares,
        )


def _exceedance_threshold(count: int) -> float:
    """Return a threshold that the noise of several sums rarely exceeds.

    The number of sums is ``count``, and the result is in standard errors of Laplace noise.
    """
    return math.log(count / (2 * _FALSE_BUCKET_SHARE)) / math.sqrt(2)


def choose_group_threshold(
    edges: IntArray,
    counts: FloatArray,
    groups: int,
    noise_std: Callable[[int], float],
    *,
    certain_count: float,
) -> ThresholdChoice:
    """Return the threshold with the least predicted error for sums by groups.

    All groups are assumed to keep all buckets.
    """
    # If k groups have equal size, the clipped amount is divided evenly, which gives the least sum
    # of squares. The sizes are not known yet, so this sum is multiplied by k^(1/3).
    gram = gram_of(Total(len(edges)))
    law = TailLaw(certain_count, _TAIL_INDEX)
    lost = sum_grams([(groups ** (_UNEVENNESS_EXPONENT - 2), gram)])
    cells = candidate_cells(edges)
    return choose_threshold(
        gram,
        edges,
        cells,
        counts,
        lambda limits: noise_std(int(limits.max())),
        1.0,
        loss_gram=lost,
        law=law,
    )
