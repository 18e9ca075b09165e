"""Run the mechanisms of the experiment on sums.

Thresholds come from the kernel; measurements are in integers with the kernel's exact noise.

All mechanisms are private, because faults of the printed algorithms are repaired: SQM divides its
budget among the queries, the number of records stays private, searches end at the public maximum,
values are filtered before they are clipped, and beta belongs to the budget of the threshold.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from experiments.common import Reals, Wholes
from experiments.selections.threshold import geometric_candidates, recursive, sparse_vector
from experiments.selections.threshold_joint import least_error
from experiments.sums_strategies import PrefixSums, SumStrategy, sum_strategy
from experiments.sums_tree import fit_halved_tree
from leastnoise._domain import Bins, Domain, Measure
from leastnoise._error import ConstrainedLeastSquares
from leastnoise._strategies import SumBuckets
from leastnoise._strategies._sums_strategy import (
    SURE,
    TailLaw,
    candidate_cells,
    choose_threshold,
    estimated_rmse,
)
from leastnoise._trusted.kernel import Entropy
from leastnoise._trusted.kernel._noise import discrete_laplace
from leastnoise._trusted.linop import dense
from leastnoise._workload import queries

READINGS = ("records", "edges")
MAXIMUM = 800_000
WIDTH = 800
START = 50_000
# Thresholds of the recursive mechanism are rounded up to multiples of this number, so that trials
# share strategies.
_ROUND = 16_000
_BITS = 12  # of the largest coefficient of a rounded row
TAIL_SHARE = Fraction(1, 10)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of integers, clipped to 0 and the public maximum.

    Args:
        values: int64, one for each record.
    """

    values: Wholes

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "values", np.sort(np.clip(np.asarray(self.values, dtype=np.int64), 0, MAXIMUM))
        )

    @cached_property
    def cells(self) -> Wholes:
        """Return the bin of every record: (0, 800], (800, 1600], ...; 0 is in the first."""
        return np.maximum(-(-self.values // WIDTH) - 1, 0)

    def cut_sums(self, edges: Wholes, threshold: int, reading: str) -> Wholes:
        """Sum by bin the clipped values, or the clipped upper edges of their bins.

        Exact, with the shape of ``edges``.
        """
        upper = (self.cells + 1) * WIDTH
        counted = np.minimum(self.values if reading == "records" else upper, threshold)
        position = np.searchsorted(edges, upper)
        return np.bincount(position, weights=counted, minlength=len(edges)).astype(np.int64)[
            : len(edges)
        ]

    def answers(self, sums: PrefixSums, reading: str) -> Wholes:
        """Return the true answers without clipping."""
        return np.cumsum(self.cut_sums(sums.edges, MAXIMUM, reading))[sums.last]


def workload(count: int) -> PrefixSums:
    """Return Q1, Q2 or Q3: prefix sums up to multiples of 800, 8000 or 80000.

    The number of queries is 1000, 100 or 10.
    """
    step = 1000 // count
    return PrefixSums(edges=WIDTH * np.arange(1, 1001), last=np.arange(step - 1, 1000, step))


@cache
def merged(sums: PrefixSums) -> PrefixSums:
    """Merge the bins that no query separates.

    The limit of a merged bin is the limit of its upper end, which its sums need.
    """
    return PrefixSums(edges=sums.edges[sums.last], last=np.arange(len(sums.last)))


def income(data: Path | None, seed: int = 0) -> Column:
    """Read the incomes of the Current Population Survey, or generate incomes."""
    if data is None:
        return Column(
            np.rint(np.random.default_rng(seed).lognormal(10.6, 0.8, 20_000)).astype(np.int64)
        )
    return Column(
        np.loadtxt(data / "microdata" / "cps.csv", delimiter=",", skiprows=1, usecols=0).astype(
            np.int64
        )
    )


def svt_threshold(column: Column, epsilon: Fraction, entropy: Entropy) -> int:
    """Choose a threshold by the paper's sparse vector technique.

    r = 0.998, c = 1.2 and s = 50000.
    """
    return sparse_vector(
        column.values, epsilon, entropy, geometric_candidates(START, "1.2", MAXIMUM)
    )


def recursive_threshold(column: Column, epsilon: Fraction, entropy: Entropy) -> int:
    """Choose a threshold by the paper's recursive mechanism.

    beta = 2 epsilon1 / 5, theta = 50000 and mu = 0.5; rounded up to a multiple of 16000.
    """
    limit = recursive(column.values, epsilon, entropy, start=START, maximum=MAXIMUM)
    return min(MAXIMUM, -(-limit // _ROUND) * _ROUND)


def tail_threshold(column: Column, sums: PrefixSums, epsilon: Fraction, entropy: Entropy) -> int:
    """Choose our threshold: a tenth of the budget on counts of the tail.

    It has the smallest predicted error with the remaining budget.
    """
    return chosen_threshold(column.cells, sums, epsilon, entropy)


def chosen_threshold(cells: Wholes, sums: PrefixSums, epsilon: Fraction, entropy: Entropy) -> int:
    """Choose our threshold for records given by their cells."""
    small = merged(sums)
    candidates = candidate_cells(sums.edges)
    first = epsilon * TAIL_SHARE
    counts = np.bincount(np.searchsorted(candidates, cells), minlength=len(candidates))[1:].astype(
        np.int64
    )
    noisy = counts + discrete_laplace(first.denominator, first.numerator, len(counts), entropy)
    noise = 2**0.5 / float(epsilon - first)
    sure = SURE * 2**0.5 / float(first)
    choice = choose_threshold(
        sums.gram(),
        sums.edges,
        candidates,
        noisy.astype(float),
        lambda limits: _quick(small, int(limits.max())),
        noise,
        law=TailLaw(sure),
    )
    return choice.threshold


@cache
def _quick(small: PrefixSums, threshold: int) -> float:
    """Predict the error of a threshold quickly."""
    return estimated_rmse(small.gram(), small.limits(threshold), 1)


def least_error_threshold(
    column: Column, sums: PrefixSums, epsilon: Fraction, entropy: Entropy
) -> int:
    """Choose by the kernel's predicted error with a tenth of the budget."""
    first = epsilon * TAIL_SHARE
    candidates = tuple(
        int(edge) for edge in sums.edges[candidate_cells(sums.edges)] if edge >= START
    )
    noise = np.array(
        [
            2**0.5 / float(epsilon - first) * _standard_errors(sums, threshold)
            for threshold in candidates
        ]
    )
    query_ends = sums.edges[sums.last]
    low = np.full(len(query_ends), -1, dtype=np.int64)
    return least_error(column.values, first, entropy, candidates, low, query_ends, noise)


@cache
def _standard_errors(sums: PrefixSums, threshold: int) -> Reals:
    """Predict standard errors of the queries.

    The standard errors grow with the limits, and their root mean square is the predicted one.
    """
    small = merged(sums)
    shape = np.sqrt(np.cumsum(small.limits(threshold).astype(float)))
    return np.asarray(shape / np.sqrt((shape**2).mean()) * _quick(small, threshold))


@dataclass(frozen=True, eq=False)
class WholeRows:
    """A strategy with integer coefficients.

    Args:
        rows: coefficients on the cut sums by bin, int64, shape (k, n).
        weights: the factor of each row, shape (k,).
        cost: the pure epsilon at noise scales of 1 / weights.
        recover: answers from the weighted rows, shape (m, k).
    """

    rows: Wholes
    weights: Reals
    cost: float
    recover: Reals

    @staticmethod
    def of(strategy: SumStrategy, sums: PrefixSums, limits: Wholes) -> "WholeRows":
        """Round every row to 12 bits of its largest coefficient.

        Sensitivity and recovery are computed from the rounded rows.
        """
        real = strategy.rows / limits
        weights = np.abs(real).max(axis=1) / 2**_BITS
        rows = np.rint(real / weights[:, None]).astype(np.int64)
        rounded = rows * weights[:, None] * limits
        columns = np.abs(rounded).sum(axis=0)
        recover = strategy.recover
        if np.abs(rounded - strategy.rows).max() > 1e-12:
            recover = np.linalg.solve(rounded.T @ rounded, (sums.matrix() * limits).T).T @ rounded.T
        return WholeRows(rows, weights, float(columns.max()) * (1 + 1e-12), recover)

    def draw(self, cut: Wholes, epsilon: Fraction, trials: int, entropy: Entropy) -> Reals:
        """Draw noisy answers, shape (trials, m).

        They are exact sums plus discrete Laplace noise with integer scales, rounded up.
        """
        scales = np.ceil(self.cost / (self.weights * float(epsilon))).astype(np.int64)
        exact = self.rows @ cut
        noise = discrete_laplace(
            np.tile(scales, trials),
            np.ones(len(scales) * trials, dtype=np.int64),
            len(scales) * trials,
            entropy,
        )
        measured = exact + noise.reshape(trials, -1)
        return np.asarray((measured * self.weights) @ self.recover.T)


def rows_for_threshold(name: str, sums: PrefixSums, threshold: int) -> tuple[WholeRows, PrefixSums]:
    """Return the rows of an algorithm for a threshold, and their bins."""
    bins = merged(sums) if name == "optimum" else sums
    limits = bins.limits(threshold)
    if name == "timm":  # the same strategy for every threshold
        rows, inverse = _truncation_independent(sums)
        sensitivity = float(np.abs(rows * limits).sum(axis=0).max())
        strategy = SumStrategy(rows=rows * limits / sensitivity, recover=inverse * sensitivity)
    else:
        released = name == "tamm"  # the implementation that the paper used
        strategy = sum_strategy(
            name, bins.matrix(), bins.gram(), limits, released=released, effort=0.5
        )
    return WholeRows.of(strategy, bins, limits), bins


@cache
def _truncation_independent(sums: PrefixSums) -> tuple[Reals, Reals]:
    """Return the rows of TiMM and their recovery matrix."""
    rows = fit_halved_tree(sums.gram(), released=True).matrix()
    return rows, np.linalg.solve(rows.T @ rows, sums.matrix().T).T @ rows.T


def single_queries(
    column: Column,
    sums: PrefixSums,
    reading: str,
    epsilon: Fraction,
    share: Fraction | None,
    threshold: str,
    entropy: Entropy,
) -> tuple[Reals, Wholes]:
    """Answer by SQM: each query has its part of the budget and its own threshold.

    Returns:
        The noisy answers and the thresholds, each of shape (m,).

    Raises:
        InputError: the budget of one query is too small for the search.
    """
    query_epsilon = epsilon / len(sums.last)
    first = query_epsilon * share if share is not None else Fraction(0)
    edges = sums.edges[sums.last]
    thresholds = np.full(len(edges), MAXIMUM, dtype=np.int64)
    if threshold != "none":
        if threshold == "svt":
            search = svt_threshold
        else:
            search = recursive_threshold
        thresholds = np.array([search(column, first, entropy) for _ in edges], dtype=np.int64)
    limits = np.minimum(edges, thresholds)
    upper = (column.cells + 1) * WIDTH
    counted = column.values if reading == "records" else upper
    stops = np.searchsorted(upper, edges, side="right")  # filter first, then cut
    exact = np.array(
        [
            int(np.minimum(counted[:stop], limit).sum())
            for stop, limit in zip(stops, limits, strict=True)
        ]
    )
    answer_epsilon = query_epsilon - first
    numerators = np.array(
        [
            -(-int(limit) * answer_epsilon.denominator // answer_epsilon.numerator)
            for limit in limits
        ],
        dtype=np.int64,
    )
    return exact + discrete_laplace(
        numerators, np.ones_like(numerators), len(numerators), entropy
    ).astype(float), thresholds


@cache
def bucketed(sums: PrefixSums) -> tuple[SumBuckets, WholeRows]:
    """Return the public buckets of sums along a number, and their measurements.

    The answers are recovered from sums of groups of bins.
    """
    high = int(sums.edges[-1])
    kind = Bins(0, high, len(sums.edges), closed="right")
    upto = np.arange(len(sums.edges)) <= sums.last[:, None]
    domain = Domain(pay=kind, measures={"wages": Measure("pay", 0, high)}).as_complete()
    prefix_workload = queries(domain, pay={"matrix": upto.astype(int).tolist()}, sum="wages")
    buckets = SumBuckets.of(prefix_workload, "pay", sums.edges)
    factor = buckets.factor(1)
    rows = dense(factor.operator)[:, buckets.group_starts]
    weights = factor.weights.astype(float)
    weighted = rows * weights[:, None]
    cost = float((np.abs(weighted) * buckets.limits[buckets.stops - 1]).sum(axis=0).max()) * (
        1 + 1e-12
    )
    return buckets, WholeRows(
        rows, weights, cost, np.linalg.solve(weighted.T @ weighted, weighted.T)
    )


def bucketed_answers(
    cut: Wholes, sums: PrefixSums, epsilon: Fraction, trials: int, entropy: Entropy
) -> Reals:
    """Draw the answers of truncated_sums along a number with all of the budget.

    Shape (trials, m).

    Args:
        cut: sums by bin of the values, cut at the public maximum.
        sums: the queries.
        epsilon: the budget.
        trials: releases.
        entropy: the source of the noise.
    """
    buckets, rows = bucketed(sums)
    groups = np.add.reduceat(cut, buckets.group_starts)
    covariance = 2 * (rows.cost / float(epsilon)) ** 2 * (rows.recover @ rows.recover.T)
    upto = buckets.group_starts <= sums.last[:, None]
    choices = buckets.choices(covariance)
    answers = []
    estimators: dict[tuple[int, int], ConstrainedLeastSquares] = {}
    for noisy in rows.draw(groups, epsilon, trials, entropy):
        kept_range = choices.choose_range(noisy)
        run = kept_range.first, kept_range.stop
        if run not in estimators:
            estimators[run] = ConstrainedLeastSquares.of(
                covariance,
                (buckets.group_starts >= kept_range.first)
                & (buckets.group_starts < kept_range.stop),
            )
        answers.append(upto @ estimators[run].estimates(noisy))
    return np.array(answers)
