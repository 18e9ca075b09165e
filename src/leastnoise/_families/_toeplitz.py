"""The square root of the prefix sums as a strategy for Gaussian noise, and least squares on Toeplitz strategies in O(n log n).

The lower triangular Toeplitz matrix C with c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k) has C^2 = all prefix sums. Its columns are shorter
towards the end, so each is scaled up to the norm of the longest: near the optimum at any size. Measured in whole numbers: the coefficients
as a step function of the distance, whose steps grow with it, and the scales in runs, narrower towards the end where the norms change fast.
The inverse, with the notation of this file (r, R, d, E), is in docs/mathematics.md, section 2.

Source: Fichtenberger, Henzinger, Upadhyay (arXiv 2202.11205) for the root; the scaling and the steps are ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._family import Fitted
from leastnoise._families._gram import Gram
from leastnoise._families._inverse import Basis, Solved, interval_variances, structured
from leastnoise._families._queries import MOST_DENSE, interval_ends
from leastnoise._families._search import NotApplicable
from leastnoise._linop import Identity, Operator, Prefix, Toeplitz, apply_transpose
from leastnoise._measurements import Factor

_SINGLE = 16  # distances with a coefficient of their own
_GROWTH = 1.1  # of the steps beyond
_RUNS = 32
_VALUE_BITS, _SCALE_BITS = 14, 10
_MOST_WORK = 2**28  # cells times runs of equal scales
_MOST_COVARIED = 4096  # cells whose covariance is made as a matrix
_NUMBERS = 2**22  # at a time
_MOST_KEPT = 2**18  # cells, of which what those before a run of scales weigh is kept for every run
_MOST_LISTED = 2**28  # given ranges times cells
_MOST_ALONE = 20  # bits, where one attribute has them all


def toeplitz_root(size: int, bits: int = _VALUE_BITS + _SCALE_BITS) -> Toeplitz:
    """The strategy in whole numbers."""
    scale_bits = min(_SCALE_BITS, bits * _SCALE_BITS // (_VALUE_BITS + _SCALE_BITS))
    distances = np.arange(1, size)
    root = np.concatenate([[1.0], np.cumprod((2 * distances - 1) / (2 * distances))])
    starts = [*range(min(size, _SINGLE))]
    while (after := round(max(starts[-1] + 1, starts[-1] * _GROWTH))) < size:
        starts.append(after)
    lengths = np.diff(starts, append=size)
    values = np.rint(np.add.reduceat(root, starts) / lengths * 2.0 ** min(_VALUE_BITS, bits - scale_bits)).astype(np.int64)
    norms = np.sqrt(np.cumsum(np.repeat(values.astype(float) ** 2, lengths)))[::-1]
    places = np.unique(size - np.rint(size * (np.arange(_RUNS + 1) / _RUNS) ** 2).astype(np.int64))
    scales = np.maximum(1, np.floor(2**scale_bits * norms[-1] / norms[places[:-1]])).astype(np.int64)
    return Toeplitz(np.array(starts), values, np.repeat(scales, np.diff(places)))


def convolved(one: FloatArray, other: FloatArray, size: int) -> FloatArray:
    """The first entries of the convolution of an array with another one, along the first axis."""
    length = 1 << max(1, len(one) + len(other) - 2).bit_length()
    turned = np.fft.rfft(one, length, axis=0).reshape(-1, *([1] * (other.ndim - 1)))
    return np.asarray(np.fft.irfft(turned * np.fft.rfft(other, length, axis=0), length, axis=0)[:size])


def inverse_series(coefficients: FloatArray) -> FloatArray:
    """The coefficients of one over a power series, as many as are given."""
    size, series = len(coefficients), np.array([1 / coefficients[0]])
    while len(series) < size:
        most = min(size, 2 * len(series))
        wrong = convolved(coefficients[:most], series, most)
        wrong[0] -= 2
        series = convolved(series, -wrong, most)
    return series


@dataclass(frozen=True, eq=False)
class ToeplitzInverse(Solved):
    """The inverse of G = A^T A for a Toeplitz strategy, never formed."""

    strategy: Toeplitz

    @property
    def size(self) -> int:
        return self.strategy.size

    @cached_property
    def series(self) -> FloatArray:
        """r, shape (size,)."""
        lengths = np.diff(self.strategy.starts, append=self.size)
        return inverse_series(np.repeat(self.strategy.values.astype(float), lengths))

    @cached_property
    def _known(self) -> dict[Operator, FloatArray]:
        return {}

    @cached_property
    def kappa(self) -> float:
        return float(self.prefix_variances[-1])  # sums of what Fourier transforms solve are less exact

    def lifted(self, v: FloatArray) -> FloatArray:
        """A^-T v along the first axis: the norm of a query's is the standard error of its answer."""
        scaled = v / self.strategy.scales.reshape(-1, *([1] * (v.ndim - 1)))
        return convolved(self.series, scaled[::-1], self.size)[::-1]

    def solve(self, v: FloatArray) -> FloatArray:
        return np.asarray(convolved(self.series, self.lifted(v), self.size) / self.strategy.scales.reshape(-1, *([1] * (v.ndim - 1))))

    def variances(self, operator: Operator) -> FloatArray:
        """q G^-1 q for every row of an operator: O(n log n) a row, but for cells, prefixes and many ranges of few cells."""
        if operator == Prefix(self.size):
            return self.prefix_variances
        if operator == Identity(self.size):
            return np.asarray(np.cumsum(self.series**2) / self.strategy.scales.astype(float) ** 2)
        ends = interval_ends(operator)
        if ends is not None and self.size <= _MOST_COVARIED and operator.rows > self.size:
            return interval_variances(self.solve(np.eye(self.size)), *ends)
        if ends is not None and self.size <= _MOST_KEPT:
            if operator not in self._known:  # planners and error bars ask again
                self._known[operator] = self.interval_variances(*ends)
            return self._known[operator]
        answer = np.empty(operator.rows)
        step = max(1, _NUMBERS // max(operator.rows, operator.size))
        for start in range(0, operator.rows, step):
            chosen = np.zeros((operator.rows, min(step, operator.rows - start)))
            chosen[np.arange(start, start + chosen.shape[1]), np.arange(chosen.shape[1])] = 1.0
            answer[start : start + step] = (self.lifted(apply_transpose(operator, chosen)) ** 2).sum(axis=0)
        return answer

    def bound_of_ranges(self) -> float:
        """Twice that of prefixes, or four times where a weight E is below 0."""
        plain = (np.diff(self.strategy.scales) >= 0).all() and np.cumsum(self.series).min() >= 0
        return float(self.prefix_variances.max()) * (2 if plain else 4)

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """The squares of the differences of E."""
        sums, runs = np.cumsum(self.series), list(self._runs(copy=True))
        starts = np.array([start for start, _, _ in runs])

        def weights(cells: int) -> FloatArray:
            if cells == 0:
                return np.zeros(self.size)
            found = runs[int(np.searchsorted(starts, cells - 1, side="right")) - 1][2].copy()
            found[:cells] += sums[cells - 1 :: -1] / self.strategy.scales[cells - 1]
            return found

        apart = (weights(end + 1) - weights(start) for start, end in zip(low.tolist(), high.tolist(), strict=True))
        return np.array([one @ one for one in apart])

    def _runs(self, *, copy: bool = False) -> Iterator[tuple[int, int, FloatArray]]:
        """The runs of equal scales: first cell, the one after the last, and what the cells before them weigh."""
        scales, sums = self.strategy.scales.astype(float), np.cumsum(self.series)
        before = np.zeros(self.size)
        changes = np.append(0, np.flatnonzero(np.diff(scales)) + 1)
        if not len(changes) * self.size <= _MOST_WORK:
            raise InputError(f"The scales of a Toeplitz strategy change {len(changes) - 1} times over {self.size} cells. Use fewer scales.")
        for start, stop in pairwise(np.append(changes, self.size).tolist()):
            if start:
                before[:start] += (1 / scales[start - 1] - 1 / scales[start]) * sums[start - 1 :: -1]
            yield start, stop, before.copy() if copy else before

    @cached_property
    def prefix_variances(self) -> FloatArray:
        scales, sums = self.strategy.scales.astype(float), np.cumsum(self.series)
        answer = np.cumsum(sums**2) / scales**2
        length = 2 * self.size
        turned = np.fft.rfft(sums, length)
        for start, stop, before in self._runs():
            if start:
                both = np.fft.irfft(turned * np.fft.rfft(before, length), length)[start:stop]
                answer[start:stop] += 2 * both / scales[start] + before @ before
        answer.setflags(write=False)
        return answer


@structured.register
def _(operator: Toeplitz, factor: Factor) -> Basis | None:
    return ToeplitzInverse(operator) if factor.even else None


def square_root(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The Toeplitz square root of the prefix sums, for Gaussian noise."""
    if gram.size > MOST_DENSE and gram.listed * gram.size > _MOST_LISTED:
        raise NotApplicable(f"above {MOST_DENSE} cells it is made for prefix sums, all ranges, cells and few other ranges")
    return Fitted(Factor((name,), toeplitz_root(gram.size, bits if bits < _MOST_ALONE else 24)))
