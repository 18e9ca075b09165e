"""p-Identity on two levels, for long attributes under pure DP: one within every block, the same in each, and one over the blocks' sums.

With P the inverse of the inner strategy's Gram matrix, v = P 1, k = 1^T v and R = P - v v^T / k, s_b what block b's coefficients are
divided by so that all columns have L1 norm 1 (1 + what U and the blocks' sums by themselves, e, add), M_bc the blocks of M, and
W = (diag(1 / k + e^2) + U^T U)^-1 o s s^T, the error is

    f = sum_b s_b^2 tr(M_bb R) + sum_bc W_bc v^T M_bc v / k^2.

Blocks of ``M_ij = sum a_i b_j`` (i <= j) with a and b linear in the cell are such matrices again, with a 2 x 2 matrix of coefficients, so a
step takes no n at all: O(p^2 width + blocks^3). Both levels are fitted together: the gradient by the inner strategy is that of p-Identity
for the Gram matrix df/dP.

The inverse of what is measured is G^-1 = blockdiag(R / w_b^2) + H o m m^T, H = (diag(w_b^2 / kappa) + G_s)^-1, for inner strategies of
which block b has w_b times one, with kappa, mean m and R as in ``_inverse``, and sums of Gram matrix G_s.

Source: ours; the inner step is that of OPT_0 (McKenna et al., PVLDB 2018), the inverse is in docs/mathematics.md, section 2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._families._gram import Fitted, Gram
from leastnoise._families._inverse import Basis, basis, largest_between, structured
from leastnoise._families._p_identity import TALLEST, PIdentity, Support, Window, bumps, p_identity_objective, positive_inverse
from leastnoise._families._queries import MOST_DENSE, row_space, weighted_gram
from leastnoise._families._search import NotApplicable, descended
from leastnoise._linop import AllRanges, Dense, DiagonalAndRows, Nested, Ranges
from leastnoise._measurements import Factor

_FINEST = 18.0  # cells from bump to bump of the finest layer
_COARSER, _COARSER_ABOVE = 15.0, 8.0  # a layer's spacing over that of the layer below, of cells and of blocks
_MOST_BLOCKS = 1024
_FEW = 256  # blocks up to which their sums by themselves are left out: what is measured within them tells enough
_VANISHED = 1e-9
_MADE_FOR = "it is made for cells, prefix sums, ranges and totals alone"
_BLOCK_BITS, _MOST_BITS = 14, 20  # of row weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockPIdentity:
    """A strategy on two levels of L1 sensitivity 1."""

    inner: PIdentity  # within a block, of sensitivity 1; a last, shorter block has its first cells
    divisors: FloatArray  # what the coefficients within each block are divided by, shape (blocks,)
    diagonal: FloatArray  # of every block's sum by itself, shape (blocks,), before it is divided too; zeros where it is left out
    rows: FloatArray  # weighted sums of blocks, shape (p, blocks), before they are divided too
    rmse: float  # unit RMSE under L1, of whole blocks


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A workload in blocks: ``identity`` times each cell's query, and pairs of a and b, (value at 0, slope) by block, shape (blocks, 2)."""

    # Of given ranges, ``local`` has the coefficients within every block, shape (blocks, 2, 2), and ``across`` what they ask of pairs of
    # blocks on average, shape (blocks, blocks).

    identity: float
    pairs: tuple[tuple[FloatArray, FloatArray], ...]
    local: FloatArray
    across: FloatArray

    def within(self, weights: FloatArray) -> FloatArray:
        """Coefficients of the sum over blocks of weight times M_bb, shape (2, 2)."""
        return np.asarray(np.tensordot(weights, self.local, 1) + sum((a * weights[:, None]).T @ b for a, b in self.pairs))

    def between(self, weights: FloatArray) -> FloatArray:
        """Coefficients of the sum over pairs of blocks b < c of weight times M_bc and its transpose."""
        upper = np.triu(weights, 1)
        half = (upper * self.across).sum() * _ALIKE + sum(a.T @ upper @ b for a, b in self.pairs)
        return np.asarray(half + np.transpose(half))

    def of_blocks(self, forms: FloatArray) -> FloatArray:
        """The form of every M_bb, from those of the four matrices E_i E_j^T (i <= j), E = (1, cell)."""
        return np.asarray((self.local * forms).sum(axis=(1, 2)) + sum(np.einsum("bi,ij,bj->b", a, forms, b) for a, b in self.pairs))

    def of_shares(self, shares: FloatArray, forms: FloatArray) -> FloatArray:
        """m^T M_bc m for all blocks, from the sums of m and of m times the cell."""
        upper = np.triu(self.across * shares[0] ** 2 + sum(np.outer(a @ shares, b @ shares) for a, b in self.pairs), 1)
        return np.asarray(upper + upper.T + np.diag(self.of_blocks(forms)))


_ALIKE = np.array([[1.0, 0.0], [0.0, 0.0]])  # the coefficients of a matrix of ones


def _asked(gram: Gram, width: int, blocks: int) -> _Asked:
    """The blocks of a workload."""
    if gram.array is not None:
        raise NotApplicable(_MADE_FOR)
    starts, cells, pairs = width * np.arange(blocks, dtype=float), np.arange(gram.size), []
    for pair in gram.pairs:
        lines = [(float(vector[0]), float(vector[1] - vector[0])) for vector in pair]
        if not all(np.allclose(first + slope * cells, vector) for (first, slope), vector in zip(lines, pair, strict=True)):
            raise NotApplicable(_MADE_FOR)
        a, b = (np.column_stack([first + slope * starts, np.full(blocks, slope)]) for first, slope in lines)
        pairs.append((a, b))
    identity, local, across = gram.alone, np.zeros((blocks, 2, 2)), np.zeros((blocks, blocks))
    if gram.given is not None:
        # Each end of a range as if it might be anywhere in its block; those within one block by their cells alone.
        amounts, low, stop = gram.given[0], gram.given[1], gram.given[2] + 1
        alone = (low // width == (stop - 1) // width) & ((low % width > 0) | (stop % width > 0))
        identity += float((amounts * (stop - low))[alone].sum()) / gram.size
        amounts, low, stop = amounts[~alone], low[~alone], stop[~alone]
        counts = np.bincount(-(-low // width), amounts, blocks + 1) - np.bincount(stop // width, amounts, blocks + 1)
        inner = [(end[end % width > 0] // width, amounts[end % width > 0]) for end in (low, stop)]
        starting, ending = (np.bincount(block, amount, blocks)[:, None, None] for block, amount in inner)
        local += np.cumsum(counts)[:blocks, None, None] * _ALIKE + starting * np.array([[1.0, 0.0], [1.0, 0.0]]) / width
        local += ending * np.array([[1.0, -1.0 / width], [0.0, 0.0]])
        coarse = Gram(gram.size, gram.queries, given=gram.given).coarsen(width).array
        across += 0.0 if coarse is None else coarse
    return _Asked(identity, tuple(pairs), local, across)


def _forms(matrix: FloatArray) -> FloatArray:
    """Of every row y of a matrix summed: y^T T y for the symmetric T with entries E_i(cell) E_j(other), cell <= other, shape (2, 2)."""
    cells = np.arange(matrix.shape[1])
    parts = [matrix, matrix * cells]
    before = [np.cumsum(part, axis=1) - part for part in parts]
    return np.array([[float((2 * before[i] * parts[j] + parts[i] * parts[j]).sum()) for j in range(2)] for i in range(2)])


def _times(coefficients: FloatArray, v: FloatArray) -> FloatArray:
    """The matrix of such coefficients times a vector."""
    cells = np.arange(len(v), dtype=float)
    rising, falling = np.stack([np.ones(len(v)), cells]), coefficients @ np.stack([np.ones(len(v)), cells])
    after = falling * v
    upto = np.cumsum(rising * v, axis=1)
    return np.asarray((upto * falling).sum(axis=0) + (rising * (after[:, ::-1].cumsum(axis=1)[:, ::-1] - after)).sum(axis=0))


def blocks_objective(asked: _Asked, support: Support, values: FloatArray, above: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """The error of a strategy on two levels, and its gradients."""
    width = support.size
    theta = support.spread(values)
    sigma = 1 + theta.sum(axis=0)
    lifted = np.linalg.cholesky(positive_inverse(np.eye(len(theta)) + theta @ theta.T)).T @ (theta * sigma)
    v = sigma**2 - lifted.T @ lifted.sum(axis=1)
    k = float(v.sum())
    shares = v / k
    s = 1 + above.sum(axis=0)
    known = positive_inverse(np.diag(1 / k + above[0] ** 2) + above[1:].T @ above[1:])
    together, squares = known * np.outer(s, s), s**2
    forms, of_squares = _forms(shares[None, :]), float(shares @ shares)
    cells = np.arange(width)
    of_diagonal = np.array([[float((sigma**2 * cells ** (i + j)).sum()) for j in range(2)] for i in range(2)])
    traces, trace = of_diagonal - _forms(lifted), float((sigma**2).sum() - (lifted**2).sum())
    within, all_blocks = asked.within(squares), asked.within(np.diag(together).copy()) + asked.between(together)
    coefficients, cell = all_blocks - k * within, asked.identity * float(np.trace(together) - k * squares.sum())
    error = float((within * traces).sum() + asked.identity * squares.sum() * trace + (coefficients * forms).sum() + cell * of_squares)
    # By the inner strategy: the Gram matrix df/dP.
    moments = np.array([1.0, float(shares @ cells)])
    of_pairs = asked.of_shares(moments, forms) + asked.identity * of_squares * np.eye(len(s))
    turn = (_times(coefficients, shares) + cell * shares) / k
    level = (
        float((((known @ known) * np.outer(s, s)) * of_pairs).sum())
        - 2 * k * float(((coefficients + k * within) * forms).sum() + (cell + asked.identity * k * squares.sum()) * of_squares)
        + k**2 * float((within * forms).sum() + asked.identity * squares.sum() * of_squares)
    ) / k**2
    falling = within @ np.stack([np.ones(width), cells])
    ones, by_itself = np.ones(width), asked.identity * float(squares.sum())
    slope = Gram(width, 1, ((ones, falling[0] + turn + level), (cells.astype(float), falling[1]), (turn, ones)), by_itself)
    _, by_values = p_identity_objective(slope, support, values)
    # By the sums.
    apart = asked.of_blocks(traces - k * forms) + asked.identity * (trace - k * of_squares)
    by_divisors = 2 * s * apart + 2 * (known * of_pairs) @ s
    turned = known @ (of_pairs * np.outer(s, s)) @ known
    return error, by_values, by_divisors - 2 * np.vstack([above[:1] * turned.diagonal(), above[1:] @ turned])


def block_width(size: int) -> int:
    """Cells of a block."""
    width = next((width for most, width in ((2**15, 128), (2**18, 1024), (2**20, 2048)) if size <= most), 4096)
    return -(-size // max(2, -(-size // width)))


def fit_blocks(gram: Gram, *, steps: int = 100) -> BlockPIdentity:
    """Find a p-Identity strategy on two levels."""
    if not 2 <= gram.size <= 4096 * _MOST_BLOCKS:
        raise NotApplicable(f"it is made for 2 to {4096 * _MOST_BLOCKS} cells")
    width = block_width(gram.size)
    blocks = -(-gram.size // width)
    asked = _asked(gram, width, blocks)
    windows = list(_layers(width, _FINEST, _COARSER, 0.7))
    many = blocks > _FEW
    # The first layer over the blocks follows the last one within them, or, above measured sums, is like the finest one over cells.
    inside = _FINEST * (_COARSER if width < 1.5 * _FINEST * _COARSER else _COARSER**2)
    layers = _layers(blocks, 16.0 if many else max(3.0, 1.15 * inside / width), _COARSER_ABOVE, 0.2)
    above = np.zeros((1, blocks)) + (0.2 if many else 0.0)
    for start, stop, height in layers:
        above = np.vstack([above, np.zeros(blocks)])
        above[-1, start:stop] = height
    support = Support(width, [(start, stop) for start, stop, _ in windows])
    values = np.concatenate([height for *_, height in windows])
    most = np.full(len(values) + above.size, TALLEST)
    if not above[0].any():
        most[len(values) : len(values) + len(above.T)] = 0.0

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        error, by_values, by_rows = blocks_objective(asked, support, point[: len(values)], point[len(values) :].reshape(above.shape))
        return error, np.concatenate([by_values, by_rows.reshape(-1)])

    optimum, least = descended(objective, np.concatenate([values, above.reshape(-1)]), most, steps)
    theta = _without_small(support.spread(optimum[: len(values)]))
    above = optimum[len(values) :].reshape(above.shape)
    sigma = 1 + theta.sum(axis=0)
    inner = PIdentity(diagonal=1 / sigma, rows=theta / sigma, rmse=math.nan)
    rmse = math.sqrt(least / gram.queries)
    return BlockPIdentity(inner=inner, divisors=1 + above.sum(axis=0), diagonal=above[0], rows=_without_small(above[1:]), rmse=rmse)


def _layers(size: int, finest: float, coarser: float, height: float) -> Iterator[Window]:
    """Layers of bumps, from the spacing of the finest one on; one flat row where that is too wide."""
    spacing = finest
    while size / spacing >= 1.5 or spacing == finest:
        yield from bumps(size, max(0, round(size / spacing - 1)), height, 1.25)
        spacing *= coarser


def _without_small(rows: FloatArray) -> FloatArray:
    kept = np.where(rows > _VANISHED, rows, 0.0)
    return np.asarray(kept[kept.any(axis=1)])


class NestedInverse(Basis):
    """The inverse of G for a strategy on two levels, never formed."""

    def __init__(self, inner: Basis, last: Basis, heights: FloatArray, sums: FloatArray) -> None:
        self.inner, self.last, self.heights, self.sums = inner, last, heights, sums
        self.before = (len(heights) - 1) * inner.size  # cells before the last block
        self.size = self.before + last.size

    def solve(self, v: FloatArray) -> FloatArray:
        flat, width = v.reshape(self.size, -1), self.inner.size
        blocks = flat[: self.before].reshape(-1, width, flat.shape[1]).swapaxes(0, 1)
        end, squares = flat[self.before :], self.heights**2
        of_means = np.concatenate([np.tensordot(self.inner.mean, blocks, 1), (self.last.mean @ end)[None, :]])
        levels = self.sums @ of_means
        first = self.inner.residual(blocks) / squares[:-1, None] + np.multiply.outer(self.inner.mean, levels[:-1])
        second = self.last.residual(end) / squares[-1] + np.outer(self.last.mean, levels[-1])
        return np.concatenate([first.swapaxes(0, 1).reshape(self.before, -1), second]).reshape(v.shape)

    @cached_property
    def _prefixes(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Of the first 0, 1, ..., n cells: the block that the last of them is in, their share of its mean, and what R adds."""
        block, shares, spread, within = [], [], [], []
        for base in (self.inner, self.last):
            share = np.cumsum(base.mean)
            within.append((share, np.maximum(base.prefix_variances - base.kappa * share**2, 0.0)))
        for index, height in enumerate(self.heights):
            share, added = within[index == len(self.heights) - 1]
            block.append(np.full(len(share), index))
            shares.append(share)
            spread.append(added / height**2)
        return np.append(0, np.concatenate(block)), np.append(0.0, np.concatenate(shares)), np.append(0.0, np.concatenate(spread))

    @cached_property
    def _corners(self) -> tuple[FloatArray, FloatArray]:
        """Sums of H over the blocks before each: along one axis, and along both."""
        along = np.zeros((len(self.sums) + 1, len(self.sums)))
        np.cumsum(self.sums, axis=0, out=along[1:])
        both = np.zeros((len(self.sums) + 1,) * 2)
        np.cumsum(along, axis=1, out=both[:, 1:])
        return along, both

    def _covariances(self, count: IntArray, other: IntArray) -> FloatArray:
        """Of what the blocks' sums say of the first cells, so many and so many."""
        (blocks, shares, _), (along, both) = self._prefixes, self._corners
        a, b, x, y = blocks[count], blocks[other], shares[count], shares[other]
        return np.asarray(both[a, b] + y * along[a, b] + x * along[b, a] + x * y * self.sums[a, b])

    @cached_property
    def prefix_variances(self) -> FloatArray:
        cells = np.arange(1, self.size + 1)
        answer = self._covariances(cells, cells) + self._prefixes[2][1:]
        answer.setflags(write=False)
        return answer

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """In the time that the strategy within blocks takes."""
        ends = high + 1
        answer = self._covariances(ends, ends) + self._covariances(low, low) - 2 * self._covariances(low, ends)
        block = np.minimum(low // self.inner.size, len(self.heights) - 1)
        same = block == self._prefixes[0][ends]
        spread = self._prefixes[2]
        answer[~same] += spread[ends[~same]] + spread[low[~same]]
        for base, chosen in ((self.inner, same & (low < self.before)), (self.last, same & (low >= self.before))):
            if chosen.any():
                first = block[chosen] * self.inner.size
                asked = Ranges(base.size, low[chosen] - first, high[chosen] - first)
                shares = np.append(0.0, np.cumsum(base.mean))
                part = base.variances(asked) - base.kappa * (shares[asked.high + 1] - shares[asked.low]) ** 2
                answer[chosen] += np.maximum(part, 0.0) / self.heights[block[chosen]] ** 2
        return answer

    def bound_of_ranges(self) -> float:
        """What the sums say is largest from block to block, being convex in the shares."""
        # What a block says of a part of itself is at most what R adds at each end, and of a range within it what it says alone.
        narrowest = (self.inner, self.heights[:-1].min()), (self.last, self.heights[-1])
        within = max(base.largest_variance(AllRanges(base.size)) / float(height) ** 2 for base, height in narrowest)
        return max(within, largest_between(self.sums) + 2 * float(self._prefixes[2].max()))


@structured.register
def _(operator: Nested, factor: Factor) -> Basis | None:
    within, last, above = operator.split(factor.weights)
    if operator.above.size > MOST_DENSE or not (within == within[0]).all() or not (last == last[0]).all():
        return None
    heights = np.append(within[0], last[0]).astype(float)
    spans = [row_space(part) for part in (operator.inner, operator.last)]
    if not all(span is not None and span.everything for span in spans):
        return None
    bases = tuple(basis(Factor(factor.attributes, part)) for part in (operator.inner, operator.last))
    known = weighted_gram(Factor(factor.attributes, operator.above, above))
    known[np.diag_indices(len(known))] += heights**2 / np.append(np.full(len(within[0]), bases[0].kappa), bases[1].kappa)
    inverse = np.linalg.inv(np.linalg.cholesky(known))
    return NestedInverse(bases[0], bases[1], heights, inverse.T @ inverse)


def p_identity_blocks(gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """p-Identity on two levels: within blocks of cells, the same in each, and over the blocks' sums; for Laplace noise."""
    return nested_strategy(gram.size, fit_blocks(gram), min(bits, _BLOCK_BITS))


def nested_strategy(size: int, blocks: BlockPIdentity, bits: int) -> Fitted:
    """A strategy on two levels in whole numbers: those within blocks, and row weights that say how heavy they are in each."""
    diagonal, below = blocks.inner.dyadic(bits)
    norm, left = int((diagonal + below.sum(axis=0)).max()), size - (len(blocks.divisors) - 1) * len(diagonal)
    below = below if len(below) else np.ones((1, len(diagonal)), dtype=np.int64)
    within = [DiagonalAndRows(diagonal[:cells], below[:, :cells]) for cells in (len(diagonal), left)]
    sums, alone = (np.rint(norm * part / blocks.divisors).astype(np.int64) for part in (blocks.rows, blocks.diagonal))
    sums = sums[sums.any(axis=1)] if sums.any() else np.ones((1, len(alone)), dtype=np.int64)
    above = DiagonalAndRows(np.maximum(alone, 1), sums) if blocks.diagonal.any() else Dense(sums)
    unit = min(2**_BLOCK_BITS, 2**_MOST_BITS / blocks.divisors.min())  # a total alone is nearly all that is measured
    heights = np.rint(unit * blocks.divisors.min() / blocks.divisors).astype(np.int64)
    weights = np.append(
        np.repeat(heights, [within[0].rows] * (len(heights) - 1) + [within[1].rows]),
        np.full(above.rows, round(unit * blocks.divisors.min())),
    )
    return Fitted(Nested(within[0], within[1], above), weights)
