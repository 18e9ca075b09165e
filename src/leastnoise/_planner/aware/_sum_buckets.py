"""Sums along a number without a threshold, and by groups under one.

Sums along a number with one strategy for all of its cells, and where to stop: nothing has to be chosen before they are measured.

Every cell has the whole budget, and noise as large as its own upper end; queries count for as much as their own upper ends allow them to be
off, so that those about small values are not drowned by the public maximum. Where the values end is seen from the answers themselves, and
costs nothing: what lies above is left out, and least squares on the rest is what it would be had nothing else been measured. Public: no
data is seen here.

Sums by groups under a threshold: buckets of the number that are measured apart, and how many of them each group keeps.

A row is in one group and one bucket, so every sum of a group and a bucket has all of the budget, and noise as large as the bucket's own
values. A group's sum adds its buckets up from below. Those whose values are likely less than their noise are left out, so that groups of
few rows have less noise than large ones, and a threshold that is far too high does little harm. Public: no data is seen here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastnoise._accuracy import GivenNothing
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families import DenseGram, ScaledSum, gram_of
from leastnoise._linop import Coarse, Identity, Total
from leastnoise._measurements import Factor
from leastnoise._planner.aware._truncated_sums import (
    HEAVIEST,
    LEAST,
    TailLaw,
    ThresholdChoice,
    asked_along,
    best_rows,
    candidate_cells,
    choose_threshold,
    falling,
    whole_rows,
)
from leastnoise._workload import Workload

_RATIO = 1.6


_STANDS_OUT = 2.0  # standard errors


_SURE = 4.0  # standard errors: one empty bucket in 600 has as much under Laplace noise


_EFFORT = 0.03  # within a percent of what ten times as much finds


@lru_cache(maxsize=64)
def _rows_of(gram: bytes, limits: bytes, norm: int) -> FloatArray:
    """The best queries: releases of one plan search for them once."""
    most = np.frombuffer(limits, dtype=np.int64)
    return best_rows(DenseGram(np.frombuffer(gram).reshape(len(most), -1), len(most)), most, norm, _EFFORT)


def weighted_by_ends(gram: FloatArray, weights: FloatArray) -> FloatArray:
    """The Gram matrix of intervals, each with the weight of its last cell.

    Those that cover the cells j <= k and end with cell e >= k are M_je - M_j(e+1).

    Edge cases: other queries than intervals keep their own weights.
    """
    ending = np.triu(gram - np.pad(gram, ((0, 0), (0, 1)))[:, 1:])
    if ending.min() < 0:
        return gram
    upper = np.cumsum((ending * weights)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """Which cells are kept, and what is thought to be in the others.

    Attributes:
        first: first cell that is kept.
        stop: the cell behind the last one.
        losses: first cell, the one behind the last, and the sum between them that may be missing, in units, of each bucket left out.
    """

    first: int
    stop: int
    losses: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Stop:
    """Least squares on the buckets up to one of them."""

    totals: FloatArray
    noise: FloatArray
    variance: float
    lost: FloatArray

    @staticmethod
    def of(buckets: "SumBuckets", covariance: FloatArray, last: int) -> "_Stop":
        """Up to a bucket, from the covariance of all groups."""
        size = len(buckets.starts)
        given = GivenNothing.of(covariance, np.arange(size) < buckets.ends[last])
        within = np.zeros((size, len(buckets.ends)))
        within[np.arange(size), np.searchsorted(buckets.ends, np.arange(size), side="right")] = 1.0
        missing = given.carried @ (within / within.sum(axis=0))
        added = within[:, : last + 1].T
        gram = buckets.gram.array
        return _Stop(
            added @ (np.eye(size) - np.where(given.kept, 0.0, given.carried)),
            np.sqrt(np.maximum(((added @ given.covariance) * added).sum(axis=1), 0.0)),
            float((given.covariance * gram).sum()),
            missing.T @ gram @ missing,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumBuckets:
    """The cells of a number in groups that some query tells apart, and these in buckets, each up to 1.6 times as high as the one before.

    Attributes:
        attribute: the number.
        limits: the most that a record of each cell adds, in units, shape (n,); never below a thousandth of the largest.
        starts: first cell of every group, shape (m,).
        ends: the group behind the last one of every bucket, shape (k,).
        spans: logarithm of the upper end of every bucket over its lower one, shape (k,).
        gram: of the queries on the groups.
    """

    attribute: str
    limits: IntArray
    starts: IntArray
    ends: IntArray
    spans: FloatArray
    gram: DenseGram

    @staticmethod
    def of(workload: Workload, attribute: str, edges: IntArray) -> "SumBuckets":
        """For sums along one number."""
        matrix = asked_along(workload, attribute)[0]
        asked = matrix.dense()
        told = np.flatnonzero((asked[1:] != asked[:-1]).any(axis=1)) + 1
        last = candidate_cells(edges, _RATIO)
        starts = np.union1d(np.append(0, told), last[:-1] + 1)
        upper = edges[last].astype(np.float64)
        lower = np.append(upper[0] / _RATIO, upper[:-1])
        return SumBuckets(
            attribute=attribute,
            limits=np.maximum(edges, -(-int(edges[-1]) // LEAST)),
            starts=starts,
            ends=np.searchsorted(starts, last, side="right"),
            spans=np.log(upper / lower),
            gram=DenseGram(asked[np.ix_(starts, starts)], matrix.queries),
        )

    @property
    def stops(self) -> IntArray:
        """The cell behind the last one of every group."""
        return np.append(self.starts[1:], len(self.limits))

    @property
    def firsts(self) -> IntArray:
        """The first group of every bucket."""
        return np.append(0, self.ends[:-1])

    def factor(self, norm: int) -> Factor:
        """The best queries, with one sensitivity."""
        limits = self.limits[self.stops - 1]
        asked = weighted_by_ends(self.gram.array, (limits[-1] / limits) ** 2.0)
        dense, weights = whole_rows(_rows_of(asked.tobytes(), limits.tobytes(), norm), limits, norm)
        return Factor((self.attribute,), Coarse(dense, self.starts, len(self.limits)), weights)

    def choices(self, covariance: FloatArray) -> "Choices":
        """Where to stop, for noise that is known."""
        return Choices(self, tuple(_Stop.of(self, covariance, last) for last in range(len(self.ends))))


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Where sums by buckets may stop."""

    buckets: SumBuckets
    stops: tuple[_Stop, ...]

    def kept(self, sums: FloatArray) -> Kept:
        """The run of buckets with the least predicted squared error of all queries.

        Buckets are dropped from above, one after the other, and what is left is estimated anew without them: an estimate of what may be
        missing is then not blurred by cells that hold nothing.

        Guarantees: a function of noisy and public numbers; it costs nothing.
        """
        last = len(self.stops) - 1
        while True:
            stop = self.stops[last]
            totals = stop.totals @ sums
            mode = int(np.argmax(totals / stop.noise))
            missing = self._missing(totals, mode, last)
            predicted = [self.stops[place].variance + self._lost(missing, place) for place in range(mode, last + 1)]
            best = mode + int(np.argmin(predicted))
            if best == last:
                return self._run(sums, totals, mode, last)
            last -= 1

    def _missing(self, totals: FloatArray, mode: int, last: int) -> FloatArray:
        """What may be in the buckets from the one that stands out most."""
        noise = self.stops[last].noise
        beyond = np.sqrt(np.maximum(np.maximum(totals, 0.0) ** 2 - noise**2, 0.0))
        most = np.full(len(totals), np.inf)
        most[mode:] = falling(totals[mode:], self.buckets.spans[mode : last + 1], noise[mode:])
        found = np.zeros(len(self.stops))
        found[mode : last + 1] = np.where(totals > _SURE * noise, beyond, np.minimum(most, beyond))[mode:]
        return found

    def _lost(self, missing: FloatArray, last: int) -> float:
        left = np.where(np.arange(len(missing)) > last, missing, 0.0)
        return float(left @ self.stops[last].lost @ left)

    def _run(self, sums: FloatArray, totals: FloatArray, mode: int, last: int) -> Kept:
        buckets, noise = self.buckets, self.stops[last].noise
        clear = totals[: mode + 1] > _STANDS_OUT * noise[: mode + 1]
        begin = int(np.argmax(clear)) if clear[mode] else mode
        everything = self.stops[-1]
        missing = self._missing(everything.totals @ sums, last, len(self.stops) - 1)
        missing[: last + 1] = 0.0
        missing[:begin] = np.maximum(totals[:begin], noise[:begin])
        cells = np.append(buckets.starts, len(buckets.limits))
        out = [place for place in range(len(missing)) if missing[place] > 0]
        losses = tuple((int(cells[buckets.firsts[one]]), int(cells[buckets.ends[one]]), float(missing[one])) for one in out)
        return Kept(first=int(cells[buckets.firsts[begin]]), stop=int(cells[buckets.ends[last]]), losses=losses)


_LARGEST_RATIO = 3.0


_FALSE = 1e-4  # of all releases, in which some sum of nothing is taken for clear under Laplace noise


_TAIL_INDEX = 0.5  # leaving out mends a threshold that is too high, and nothing one that is too low


_UNEVEN = 1 / 3  # losses are added up as if k groups were k^(1/3) times as uneven as groups of one size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptByGroup:
    """What groups keep, and what is thought to be in the rest.

    Attributes:
        buckets: how many each group keeps, from below, shape (k,).
        missing: what may be missing in each group's sum of values cut at the threshold, in units, shape (k,).
        shares: of each group in what all groups hold together; positive, and its square an estimate of the square, shape (k,).
    """

    buckets: IntArray
    missing: FloatArray
    shares: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupBuckets:
    """Buckets of a number up to a threshold, each about three times as high as the one before; the last one has all larger values, cut.

    Attributes:
        attribute: the number.
        limits: the most that a row of each cell adds, in units, shape (n,).
        starts: first cell of every bucket, shape (m,).
        ends: the most that a row of every bucket adds, in units, shape (m,).
    """

    attribute: str
    limits: IntArray
    starts: IntArray
    ends: IntArray

    @staticmethod
    def of(attribute: str, edges: IntArray, threshold: int) -> "GroupBuckets":
        """Under a threshold."""
        places = candidate_cells(edges)
        places = places[edges[places] <= threshold]
        last = places[candidate_cells(edges[places], _LARGEST_RATIO)]
        return GroupBuckets(
            attribute=attribute,
            limits=np.minimum(edges, threshold),
            starts=np.append(0, last[:-1] + 1),
            ends=edges[last],
        )

    def factor(self, norm: int) -> Factor:
        """The sum of every bucket, with noise as large as its end."""
        weights = np.maximum(1, np.rint(HEAVIEST[norm] * (self.ends[0] / self.ends))).astype(np.int64)
        return Factor((self.attribute,), Coarse(Identity(len(self.ends)), self.starts, len(self.limits)), weights)

    def kept(self, sums: FloatArray, noise: FloatArray) -> KeptByGroup:
        """How many buckets to keep in each group: those with the least predicted squared error.

        Groups are taken to have the same profile, the sums of all groups, and shares of it that follow from their own sums, pulled to the
        middle as far as these differ by noise alone. A sum that is clear by itself is taken as it is.

        Guarantees: a function of noisy and public numbers; it costs nothing.
        """
        groups = len(sums)
        profile = self._profile(sums.sum(axis=0), noise * np.sqrt(groups))
        weights = profile / noise**2
        told = float(weights @ profile)
        shares = np.full(groups, 1 / groups)
        if told > 0:
            single = sums @ weights / told
            apart = max(float(np.mean((single - 1 / groups) ** 2)) - 1 / told, 0.0)
            trust = apart / (apart + 1 / told)
            shares = np.sqrt((1 / groups + trust * (single - 1 / groups)) ** 2 + trust / told)
        own = np.where(sums > _clear(sums.size) * noise, np.sqrt(np.maximum(sums**2 - noise**2, 0.0)), 0.0)
        beyond = np.zeros((groups, len(noise) + 1))
        beyond[:, :-1] = np.maximum(shares[:, None] * profile, own)[:, ::-1].cumsum(axis=1)[:, ::-1]
        buckets = np.argmin(beyond**2 + np.append(0.0, np.cumsum(noise**2)), axis=1)
        return KeptByGroup(buckets=buckets, missing=beyond[np.arange(groups), buckets], shares=shares)

    def _profile(self, totals: FloatArray, noise: FloatArray) -> FloatArray:
        """What all groups hold in each bucket: beyond what noise leaves, and falling as tails do but for what is no noise."""
        mode = int(np.argmax(totals / noise))
        beyond = np.sqrt(np.maximum(np.maximum(totals, 0.0) ** 2 - noise**2, 0.0))
        most = np.full(len(totals), np.inf)
        most[mode:] = falling(
            totals[mode:], np.log(self.ends / np.append(self.ends[0] / _LARGEST_RATIO, self.ends[:-1]))[mode:], noise[mode:]
        )
        return np.where(totals > _clear(len(totals)) * noise, beyond, np.minimum(most, beyond))


def _clear(count: int) -> float:
    """Standard errors that no sum of nothing, of so many, is likely to have."""
    return math.log(count / (2 * _FALSE)) / math.sqrt(2)


def choose_group_threshold(
    edges: IntArray, counts: FloatArray, groups: int, noise: Callable[[int], float], *, sure: float
) -> ThresholdChoice:
    """The threshold with the least predicted squared error of the sums of groups that keep all buckets.

    Groups of one size share what is cut evenly, and groups of very different sizes have more of its square: it is added up as if they had
    k^(1/3) times as much, which is in between, as sizes are not known yet.
    """
    gram = gram_of(Total(len(edges)))
    lost = ScaledSum(((groups ** (_UNEVEN - 2), gram),))
    return choose_threshold(
        gram,
        edges,
        candidate_cells(edges),
        counts,
        lambda limits: noise(int(limits.max())),
        1.0,
        lost=lost,
        law=TailLaw(sure, _TAIL_INDEX),
    )
