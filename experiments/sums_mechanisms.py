"""The mechanisms of the experiment on sums.

Thresholds come from the kernel; measurements are in integers with the kernel's exact noise.

Every way is private as built, with the faults of the printed algorithms repaired: SQM divides its
budget among the queries, the number of records stays private, searches end at the public maximum,
values are filtered before they are cut, and beta belongs to the budget of the threshold.
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
from leastnoise._strategies._sums import (
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
MOST = 800_000
WIDTH = 800
START = 50_000
# thresholds of the recursive mechanism are rounded up to multiples of this, so that strategies can
# be kept
_ROUND = 16_000
_BITS = 12
TAIL_SHARE = Fraction(1, 10)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of integers, clipped to 0 and the public maximum.

    Args:
        values: int64, one a record.
    """

    values: Wholes

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "values", np.sort(np.clip(np.asarray(self.values, dtype=np.int64), 0, MOST))
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
        place = np.searchsorted(edges, upper)
        return np.bincount(place, weights=counted, minlength=len(edges)).astype(np.int64)[
            : len(edges)
        ]

    def answers(self, sums: PrefixSums, reading: str) -> Wholes:
        """Return the true answers without clipping."""
        return np.cumsum(self.cut_sums(sums.edges, MOST, reading))[sums.last]


def workload(count: int) -> PrefixSums:
    """Return Q1, Q2 or Q3: prefix sums up to multiples of 800, 8000 or 80000.

    There are 1000, 100 or 10.
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
    return sparse_vector(column.values, epsilon, entropy, geometric_candidates(START, "1.2", MOST))


def recursive_threshold(column: Column, epsilon: Fraction, entropy: Entropy) -> int:
    """Choose a threshold by the paper's recursive mechanism.

    beta = 2 epsilon1 / 5, theta = 50000 and mu = 0.5; rounded up to a multiple of 16000.
    """
    limit = recursive(column.values, epsilon, entropy, start=START, most=MOST)
    return min(MOST, -(-limit // _ROUND) * _ROUND)


def tail_threshold(column: Column, sums: PrefixSums, epsilon: Fraction, entropy: Entropy) -> int:
    """Choose our threshold: a tenth of the budget on counts of the tail.

    It has the smallest predicted error with the remaining budget.
    """
    return chosen_threshold(column.cells, sums, epsilon, entropy)


def chosen_threshold(cells: Wholes, sums: PrefixSums, epsilon: Fraction, entropy: Entropy) -> int:
    """Choose our threshold for records given by their cells."""
    small = merged(sums)
    places = candidate_cells(sums.edges)
    first = epsilon * TAIL_SHARE
    counts = np.bincount(np.searchsorted(places, cells), minlength=len(places))[1:].astype(np.int64)
    noisy = counts + discrete_laplace(first.denominator, first.numerator, len(counts), entropy)
    noise = 2**0.5 / float(epsilon - first)
    sure = SURE * 2**0.5 / float(first)
    found = choose_threshold(
        sums.gram(),
        sums.edges,
        places,
        noisy.astype(float),
        lambda limits: _quick(small, int(limits.max())),
        noise,
        law=TailLaw(sure),
    )
    return found.threshold


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
        [2**0.5 / float(epsilon - first) * _spread(sums, threshold) for threshold in candidates]
    )
    ends = sums.edges[sums.last]
    low = np.full(len(ends), -1, dtype=np.int64)
    return least_error(column.values, first, entropy, candidates, low, ends, noise)


@cache
def _spread(sums: PrefixSums, threshold: int) -> Reals:
    """Predict standard errors of the queries.

    They grow with the limits, and their root mean square is the predicted one.
    """
    small = merged(sums)
    shape = np.sqrt(np.cumsum(small.limits(threshold).astype(float)))
    return np.asarray(shape / np.sqrt((shape**2).mean()) * _quick(small, threshold))


@dataclass(frozen=True, eq=False)
class WholeRows:
    """A strategy with integer coefficients.

    Args:
        rows: coefficients on the cut sums by bin, int64, shape (k, n).
        weights: what a row must be multiplied by, shape (k,).
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


def made(name: str, sums: PrefixSums, threshold: int) -> tuple[WholeRows, PrefixSums]:
    """Return the rows of an algorithm for a threshold, and their bins."""
    bins = merged(sums) if name == "optimum" else sums
    limits = bins.limits(threshold)
    if name == "timm":  # the same strategy for every threshold
        own, inverse = _truncation_independent(sums)
        sensitivity = float(np.abs(own * limits).sum(axis=0).max())
        strategy = SumStrategy(rows=own * limits / sensitivity, recover=inverse * sensitivity)
    else:
        released = name == "tamm"  # what the paper ran
        strategy = sum_strategy(
            name, bins.matrix(), bins.gram(), limits, released=released, effort=0.5
        )
    return WholeRows.of(strategy, bins, limits), bins


@cache
def _truncation_independent(sums: PrefixSums) -> tuple[Reals, Reals]:
    """Return the rows of TiMM and their recovery matrix."""
    own = fit_halved_tree(sums.gram(), released=True).matrix()
    return own, np.linalg.solve(own.T @ own, sums.matrix().T).T @ own.T


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
    each = epsilon / len(sums.last)
    first = each * share if share is not None else Fraction(0)
    edges = sums.edges[sums.last]
    thresholds = np.full(len(edges), MOST, dtype=np.int64)
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
    rest = each - first
    numerators = np.array(
        [-(-int(limit) * rest.denominator // rest.numerator) for limit in limits], dtype=np.int64
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
    asked = queries(domain, pay={"matrix": upto.astype(int).tolist()}, sum="wages")
    found = SumBuckets.of(asked, "pay", sums.edges)
    factor = found.factor(1)
    whole = dense(factor.operator)[:, found.group_starts]
    weights = factor.weights.astype(float)
    weighted = whole * weights[:, None]
    cost = float((np.abs(weighted) * found.limits[found.stops - 1]).sum(axis=0).max()) * (1 + 1e-12)
    return found, WholeRows(
        whole, weights, cost, np.linalg.solve(weighted.T @ weighted, weighted.T)
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
    found, rows = bucketed(sums)
    groups = np.add.reduceat(cut, found.group_starts)
    covariance = 2 * (rows.cost / float(epsilon)) ** 2 * (rows.recover @ rows.recover.T)
    upto = found.group_starts <= sums.last[:, None]
    choices = found.choices(covariance)
    answers = []
    given: dict[tuple[int, int], ConstrainedLeastSquares] = {}
    for noisy in rows.draw(groups, epsilon, trials, entropy):
        kept = choices.choose_range(noisy)
        run = kept.first, kept.stop
        if run not in given:
            given[run] = ConstrainedLeastSquares.of(
                covariance, (found.group_starts >= kept.first) & (found.group_starts < kept.stop)
            )
        answers.append(upto @ given[run].estimates(noisy))
    return np.array(answers)
