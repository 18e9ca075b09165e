"""Least squares on a strategy within blocks and over their sums, in the time that the strategies within take.

Let all blocks have one strategy of Gram matrix G_w, that of block b times w_b, with kappa, mean m and R of it as in ``_basis``, and the
sums a strategy of Gram matrix G_s. Then G = blockdiag(w_b^2 G_w) + G_s o 11^T has the inverse

    G^-1 = blockdiag(R / w_b^2) + H o m m^T,    H = (diag(w_b^2 / kappa) + G_s)^-1,

since R 1 = 0, 1^T m = 1 and G_w m = 1 / kappa. A last, shorter block has its own kappa, m and R.

Source: the split of ``_basis`` within every block; docs/mathematics.md, section 2.
"""

from dataclasses import dataclass
from functools import cached_property, singledispatchmethod
from typing import TYPE_CHECKING

import numpy as np

from leastnoise._accuracy._answers import Solved
from leastnoise._accuracy._largest import MOST_LISTED, largest_between
from leastnoise._accuracy._operators import interval_ends
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import AllRanges, Operator, Prefix, Ranges, dense

if TYPE_CHECKING:
    from leastnoise._accuracy._basis import Basis


@dataclass(frozen=True, eq=False)
class NestedInverse(Solved):
    """The inverse of G for a strategy on two levels, never formed."""

    inner: "Basis"
    last: "Basis"
    heights: FloatArray
    sums: FloatArray

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.before + self.last.size

    @property
    def before(self) -> int:
        """Number of cells before the last block."""
        return (len(self.heights) - 1) * self.inner.size

    @property
    def kappa(self) -> float:
        """Variance of the total at unit noise."""
        return float(self.sums.sum())

    @cached_property
    def mean(self) -> FloatArray:
        """G^-1 1 / kappa, shape (size,)."""
        shares = self.sums.sum(axis=1) / self.kappa
        return np.concatenate([np.outer(shares[:-1], self.inner.mean).reshape(-1), shares[-1] * self.last.mean])

    def solve(self, v: FloatArray) -> FloatArray:
        """G^-1 v along the first axis."""
        flat, width = v.reshape(self.size, -1), self.inner.size
        blocks = flat[: self.before].reshape(-1, width, flat.shape[1]).swapaxes(0, 1)
        end, squares = flat[self.before :], self.heights**2
        of_means = np.concatenate([np.tensordot(self.inner.mean, blocks, 1), (self.last.mean @ end)[None, :]])
        levels = self.sums @ of_means
        first = self.inner.residual(blocks) / squares[:-1, None] + np.multiply.outer(self.inner.mean, levels[:-1])
        second = self.last.residual(end) / squares[-1] + np.outer(self.last.mean, levels[-1])
        return np.concatenate([first.swapaxes(0, 1).reshape(self.before, -1), second]).reshape(v.shape)

    @singledispatchmethod
    def variances(self, operator: Operator) -> FloatArray:
        """q G^-1 q for every row of an operator; of intervals in the time that the strategy within blocks takes."""
        ends = interval_ends(operator)
        if ends is not None:
            return self._intervals(*ends)
        rows = dense(operator).astype(float)
        return np.einsum("ij,ji->i", rows, self.solve(rows.T))

    @variances.register
    def _(self, operator: Prefix) -> FloatArray:  # noqa: ARG002 - the class says it all
        return self.prefix_variances

    @cached_property
    def _places(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Of the first 0, 1, ..., n cells: the block that the last of them is in, their share of its mean, and what R adds."""
        block, shares, spread = [], [], []
        for place, height in enumerate(self.heights):
            share, own = self._within[place == len(self.heights) - 1]
            block.append(np.full(len(share), place))
            shares.append(share)
            spread.append(own / height**2)
        return np.append(0, np.concatenate(block)), np.append(0.0, np.concatenate(shares)), np.append(0.0, np.concatenate(spread))

    @cached_property
    def _within(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        found = []
        for own in (self.inner, self.last):
            share = np.cumsum(own.mean)
            found.append((share, np.maximum(own.variances(Prefix(own.size)) - own.kappa * share**2, 0.0)))
        return tuple(found)

    @cached_property
    def _corners(self) -> tuple[FloatArray, FloatArray]:
        """Sums of H over the blocks before each: along one axis, and along both."""
        along = np.zeros((len(self.sums) + 1, len(self.sums)))
        np.cumsum(self.sums, axis=0, out=along[1:])
        both = np.zeros((len(self.sums) + 1,) * 2)
        np.cumsum(along, axis=1, out=both[:, 1:])
        return along, both

    def _covariances(self, one: IntArray, other: IntArray) -> FloatArray:
        """Of what the blocks' sums say of the first cells, so many and so many."""
        (blocks, shares, _), (along, both) = self._places, self._corners
        a, b, x, y = blocks[one], blocks[other], shares[one], shares[other]
        return np.asarray(both[a, b] + y * along[a, b] + x * along[b, a] + x * y * self.sums[a, b])

    @cached_property
    def prefix_variances(self) -> FloatArray:
        """Variance of the estimated sums of the first 1, 2, ..., n cells, shape (size,), not to be written to."""
        cells = np.arange(1, self.size + 1)
        answer = self._covariances(cells, cells) + self._places[2][1:]
        answer.setflags(write=False)
        return answer

    def _intervals(self, low: IntArray, high: IntArray) -> FloatArray:
        """Variances of the estimated sums over the cells low..high."""
        ends = high + 1
        answer = self._covariances(ends, ends) + self._covariances(low, low) - 2 * self._covariances(low, ends)
        block = np.minimum(low // self.inner.size, len(self.heights) - 1)
        same = block == self._places[0][ends]
        spread = self._places[2]
        answer[~same] += spread[ends[~same]] + spread[low[~same]]
        for own, chosen in ((self.inner, same & (low < self.before)), (self.last, same & (low >= self.before))):
            if chosen.any():
                first = block[chosen] * self.inner.size
                asked = Ranges(own.size, low[chosen] - first, high[chosen] - first)
                shares = np.append(0.0, np.cumsum(own.mean))
                part = own.variances(asked) - own.kappa * (shares[asked.high + 1] - shares[asked.low]) ** 2
                answer[chosen] += np.maximum(part, 0.0) / self.heights[block[chosen]] ** 2
        return answer

    def largest_range(self) -> float:
        """Of all ranges; of very many a bound: what the sums say is largest from block to block, being convex in the shares.

        What a block says of a part of itself is at most what R adds at each end, and of a range within it what it says alone.
        """
        every = AllRanges(self.size)
        if every.rows <= MOST_LISTED:
            return float(self.variances(every).max())
        within = max(own.largest_range() / height**2 for own, height in self._narrowest())
        return max(within, largest_between(self.sums) + 2 * float(self._places[2].max()))

    def _narrowest(self) -> tuple[tuple["Basis", float], tuple["Basis", float]]:
        return (self.inner, float(self.heights[:-1].min())), (self.last, float(self.heights[-1]))
