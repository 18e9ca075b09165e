"""Sums by public buckets of the number, each up to twice as high as the one before: nothing has to be chosen before they are measured.

A record lies in one bucket, so every bucket has the whole budget, and noise as large as its own upper end: that of the buckets up to any
end is at most 4/3 of the last one's in variance, as if the end were the public maximum. Which buckets hold nothing that stands out of their
noise is seen from the answers themselves, and costs nothing: those are left out. Public: no data is seen here.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import Coarse
from leastnoise._measurements import Factor
from leastnoise._planner.aware._truncated_sums_plans import asked_along, best_rows, whole_rows
from leastnoise._planner.aware._truncated_sums_threshold import LEAST, candidate_cells, falling
from leastnoise._planner.line._gram import DenseGram
from leastnoise._workload import Workload

_RATIO = 2.0
_STANDS_OUT = 2.0  # standard errors
_EFFORT = 0.03  # within a percent of what ten times as much finds


@lru_cache(maxsize=64)
def _rows_of(gram: bytes, limits: bytes, norm: int) -> FloatArray:
    """The best queries of a bucket: releases of one plan search for them once."""
    most = np.frombuffer(limits, dtype=np.int64)
    return best_rows(DenseGram(np.frombuffer(gram).reshape(len(most), -1), len(most)), most, norm, _EFFORT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """Which buckets are kept, and what is thought to be in the others.

    Attributes:
        first: first cell that is kept.
        stop: the cell behind the last one.
        losses: first cell, the one behind the last, and the sum between them that may be missing, in units, of each bucket left out.
    """

    first: int
    stop: int
    losses: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumBuckets:
    """The cells of a number in groups that some query tells apart, and these in buckets.

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
        """For sums along one number.

        Args:
            workload: sums of one measure, along the number alone.
            attribute: the number.
            edges: the most that a record of each of its cells adds, in units, not falling, at least 1.

        >>> domain = Domain(pay=Integers(1, 16), measures={"wages": Measure("pay", 0, 16)})
        >>> found = SumBuckets.of(queries(domain, pay="prefix", sum="wages"), "pay", np.arange(1, 17))
        >>> found.ends.tolist()
        [1, 2, 4, 8, 16]
        """
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
        """The best queries of every bucket, with one sensitivity.

        Args:
            norm: 1 for Laplace, 2 for Gaussian noise.
        """
        from scipy.linalg import block_diag

        limits = self.limits[self.stops - 1]
        parts = [
            _rows_of(self.gram.array[first:end, first:end].tobytes(), limits[first:end].tobytes(), norm)
            for first, end in zip(self.firsts, self.ends, strict=True)
        ]
        dense, weights = whole_rows(block_diag(*parts), limits, norm)
        return Factor((self.attribute,), Coarse(dense, self.starts, len(self.limits)), weights)

    def kept(self, sums: FloatArray, covariance: FloatArray) -> Kept:
        """The buckets with the least predicted squared error of all queries.

        Args:
            sums: unbiased estimates of the sums of all groups, shape (m,).
            covariance: of their noise, shape (m, m).

        Returns:
            One run of buckets, with the one that stands out most. Below it the first that stands out by two standard errors begins the run.
            Above it a sum is taken for what its noise leaves of its square, and to fall at least like those of a Pareto tail of index 1,
            whose buckets of one ratio have one sum.

        Guarantees: a function of noisy and public numbers; it costs nothing.
        """
        totals = np.add.reduceat(sums, self.firsts)
        runs = [slice(first, end) for first, end in zip(self.firsts, self.ends, strict=True)]
        noise = np.sqrt([covariance[run, run].sum() for run in runs])
        asked = np.array([(covariance[run, run] * self.gram.array[run, run]).sum() for run in runs])
        mode = int(np.argmax(totals / noise))
        begin = int(np.argmax(totals[: mode + 1] > _STANDS_OUT * noise[: mode + 1])) if totals[mode] > _STANDS_OUT * noise[mode] else mode
        missing = np.maximum(totals, noise)
        beyond = np.sqrt(np.maximum(np.maximum(totals, 0.0) ** 2 - noise**2, 0.0))
        missing[mode:] = np.minimum(falling(totals[mode:], self.spans[mode:], noise[mode:]), beyond[mode:])
        missing[begin : mode + 1] = 0.0
        spread = np.repeat(missing / np.diff(self.ends, prepend=0), np.diff(self.ends, prepend=0))
        predicted = []
        for stop in range(mode, len(totals)):
            lost = np.where(np.arange(len(spread)) >= self.ends[stop], spread, 0.0)
            predicted.append(float(lost @ self.gram.array @ lost) + float(asked[begin : stop + 1].sum()))
        last = mode + int(np.argmin(predicted))
        cells = np.append(self.starts, len(self.limits))
        out = [place for place in range(len(totals)) if (place < begin or place > last) and missing[place] > 0]
        losses = tuple((int(cells[self.firsts[one]]), int(cells[self.ends[one]]), float(missing[one])) for one in out)
        return Kept(first=int(cells[self.firsts[begin]]), stop=int(cells[self.ends[last]]), losses=losses)
