"""p-Identity on two levels, for long attributes under pure DP.

An inner strategy measures the cells of every block, and an outer strategy measures the sums of the
blocks.

In block b, the coefficients of the inner strategy are divided by s_b = 1 + e_b + sum_i U_ib. Then
all columns of the whole strategy have L1 norm 1. Here e_b is the coefficient of the query that sums
only block b. Each row i of U is a query for a weighted sum of blocks.

Let P be the inverse of the inner strategy's Gram matrix, v = P 1, k = 1^T v and R = P - v v^T / k.
Let M_bc be the blocks of the workload's Gram matrix M, and W = (diag(1 / k + e^2) + U^T U)^-1 o s
s^T. The error is

    f = sum_b s_b^2 tr(M_bb R) + sum_bc W_bc v^T M_bc v / k^2.

Let M_ij be a sum of a_i b_j (i <= j) with a and b linear in the cell. Then all blocks have a common
form: the entry for cells x <= y of a block is E(x)^T C E(y). Here E(x) = (1, x), and C is a 2 x 2
matrix, the *coefficients* of the block. Therefore, a step takes O(p^2 width + blocks^3) for any n.
The inner and the outer strategy are fitted jointly. The gradient with respect to the inner strategy
equals the gradient of p-Identity for the Gram matrix df/dP.

The inverse Gram matrix is G^-1 = blockdiag(R / w_b^2) + H o m m^T, H = (diag(w_b^2 / kappa) +
G_s)^-1. Here block b measures w_b times the inner strategy. The inner strategy has kappa, mean m
and R as in ``_inverse``, and G_s is the Gram matrix of the outer strategy.

Source: this project; the inner step is from OPT_0 (McKenna et al., PVLDB 2018), the inverse is in
    docs/mathematics.md, section 2.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from leastnoise._families._gram import FittedFamily, Gram
from leastnoise._families._inverse import (
    GramInverse,
    invert_gram,
    largest_range_variance,
    structured_inverse,
)
from leastnoise._families._p_identity import (
    TALLEST,
    PIdentity,
    Support,
    Window,
    bump_rows,
    p_identity_objective,
    positive_inverse,
)
from leastnoise._families._queries import MOST_DENSE, row_space, weighted_gram
from leastnoise._families._search import NotApplicable, minimize_lbfgs
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import AllRanges, Dense, DiagonalAndRows, Nested, Ranges
from leastnoise._trusted.measurements import Factor

_FINEST_BUMP_SPACING = 18.0  # distance of bumps in the finest layer, in cells
# Distance of bumps in a layer relative to the layer below, for cells and for blocks.
_BUMP_SPACING_RATIO = 15.0
_COARSER_ABOVE = 8.0
_MOST_BLOCKS = 1024  # maximum number of blocks, each of 4096 cells
# Up to this number of blocks, block sums are not measured separately, because the measurements
# within blocks suffice.
_MOST_UNMEASURED_BLOCKS = 256
_MOST_DESCENT_STEPS = 100  # maximum number of steps of a descent
_MADE_FOR = "it supports only cells, prefix sums, ranges and totals"
# Bits of coefficients, and of row weights.
_BLOCK_BITS = 14
_MOST_BITS = 20  # maximum number of bits of a coefficient
_ONES = np.array([[1.0, 0.0], [0.0, 0.0]])  # the coefficients of a matrix of ones


class BlockPIdentity(NamedTuple):
    """A strategy of L1 sensitivity 1 within blocks and on the sums of blocks.

    Attributes:
        inner: the strategy within a block, of sensitivity 1; a shorter last block uses its first
            cells.
        divisors: s, shape (blocks,).
        sum_coefficients: e, shape (blocks,), before the division by s; zeros if the sums of single
            blocks are not measured.
        sum_rows: U, shape (p, blocks), before the division by s.
        rmse: unit RMSE under L1 if all blocks have the full width.
    """

    inner: PIdentity
    divisors: FloatArray
    sum_coefficients: FloatArray
    sum_rows: FloatArray
    rmse: float


class BlockGram(NamedTuple):
    """The Gram matrix M of a workload, divided into blocks of equal width.

    Block M_bb is the sum of three parts: ``range_coefficients[b]``, the coefficients of the
    pairs, and ``identity`` times the identity. Block M_bc (b < c) is the sum of the coefficients of
    the pairs and the constant ``constants[b, c]``.

    Attributes:
        identity: the coefficient of the identity in every M_bb.
        pairs: for each pair, a and b in every block as (value at cell 0, slope), shape (blocks, 2).
        range_coefficients: the coefficients that listed ranges add to every M_bb, shape (blocks, 2,
            2).
        constants: the constant of each pair of blocks, shape (blocks, blocks).
    """

    identity: float
    pairs: tuple[tuple[FloatArray, FloatArray], ...]
    range_coefficients: FloatArray
    constants: FloatArray

    def within_block_sum(self, weights: FloatArray) -> FloatArray:
        """Return the coefficients of sum_b weights[b] M_bb, shape (2, 2)."""
        return np.asarray(
            np.tensordot(weights, self.range_coefficients, 1)
            + sum((a * weights[:, None]).T @ b for a, b in self.pairs)
        )

    def between_blocks_sum(self, weights: FloatArray) -> FloatArray:
        """Return the weighted sum of off-diagonal blocks, as a 2 x 2 matrix C.

        The sum runs over pairs of blocks b < c, and its terms are the weight times (M_bc + M_bc^T).
        The entry of the sum for cells x <= y is E(x)^T C E(y) with E(x) = (1, x).
        """
        upper = np.triu(weights, 1)
        half = (upper * self.constants).sum() * _ONES + sum(a.T @ upper @ b for a, b in self.pairs)
        return np.asarray(half + np.transpose(half))

    def diagonal_forms(self, forms_of_y: FloatArray) -> FloatArray:
        """Return y^T M_bb y for every block b, shape (blocks,).

        ``forms_of_y`` are the `quadratic_forms` of y, or their sum over several y.
        """
        return np.asarray(
            (self.range_coefficients * forms_of_y).sum(axis=(1, 2))
            + sum(np.einsum("bi,ij,bj->b", a, forms_of_y, b) for a, b in self.pairs)
        )

    def all_forms(self, moments_of_y: FloatArray, forms_of_y: FloatArray) -> FloatArray:
        """Return y^T M_bc y for all pairs of blocks b and c, (blocks, blocks).

        ``moments_of_y`` are the sums of y and of y times the cell number; ``forms_of_y`` are the
        `quadratic_forms` of y.
        """
        upper = np.triu(
            self.constants * moments_of_y[0] ** 2
            + sum(np.outer(a @ moments_of_y, b @ moments_of_y) for a, b in self.pairs),
            1,
        )
        return np.asarray(upper + upper.T + np.diag(self.diagonal_forms(forms_of_y)))


def block_gram(gram: Gram, width: int, blocks: int) -> BlockGram:
    """Return the Gram matrix of a workload, divided into blocks of equal width.

    Each end of a range is treated as uniformly distributed within its block.
    """
    if gram.array is not None:
        raise NotApplicable(_MADE_FOR)
    starts = width * np.arange(blocks, dtype=float)
    cells = np.arange(gram.size)
    pairs = []
    for pair in gram.pairs:
        lines = [(float(vector[0]), float(vector[1] - vector[0])) for vector in pair]
        if not all(
            np.allclose(first + slope * cells, vector)
            for (first, slope), vector in zip(lines, pair, strict=True)
        ):
            raise NotApplicable(_MADE_FOR)
        a, b = (
            np.column_stack([first + slope * starts, np.full(blocks, slope)])
            for first, slope in lines
        )
        pairs.append((a, b))
    identity = gram.identity_weight
    local = np.zeros((blocks, 2, 2))
    across = np.zeros((blocks, blocks))
    if gram.weighted_ranges is not None:
        # A range that is a proper part of one block is treated as single cells.
        amounts = gram.weighted_ranges[0]
        low = gram.weighted_ranges[1]
        stop = gram.weighted_ranges[2] + 1
        inside = (low // width == (stop - 1) // width) & ((low % width > 0) | (stop % width > 0))
        identity += float((amounts * (stop - low))[inside].sum()) / gram.size
        amounts = amounts[~inside]
        low = low[~inside]
        stop = stop[~inside]
        counts = np.bincount(-(-low // width), amounts, blocks + 1) - np.bincount(
            stop // width, amounts, blocks + 1
        )
        ends = [(end[end % width > 0] // width, amounts[end % width > 0]) for end in (low, stop)]
        starting, ending = (
            np.bincount(block, amount, blocks)[:, None, None] for block, amount in ends
        )
        local += (
            np.cumsum(counts)[:blocks, None, None] * _ONES
            + starting * np.array([[1.0, 0.0], [1.0, 0.0]]) / width
        )
        local += ending * np.array([[1.0, -1.0 / width], [0.0, 0.0]])
        coarse = (
            Gram(gram.size, gram.queries, weighted_ranges=gram.weighted_ranges).coarsen(width).array
        )
        if coarse is not None:
            across += coarse
    return BlockGram(identity, tuple(pairs), local, across)


def quadratic_forms(rows: FloatArray) -> FloatArray:
    """Return the sums of x^i y^j r_x r_y over cell pairs of rows r, (2, 2).

    For each i and j, T is symmetric with T_xy = E_i(x) E_j(y) for x <= y.
    """
    cells = np.arange(rows.shape[1])
    parts = [rows, rows * cells]
    before = [np.cumsum(part, axis=1) - part for part in parts]
    coefficients = np.empty((2, 2))
    for i, j in np.ndindex(2, 2):
        coefficients[i, j] = (2 * before[i] * parts[j] + parts[i] * parts[j]).sum()
    return coefficients


def _multiply_block(coefficients: FloatArray, v: FloatArray) -> FloatArray:
    """Return a block with 2 x 2 coefficients times a vector."""
    rising = np.stack([np.ones(len(v)), np.arange(len(v), dtype=float)])
    falling_sums = coefficients @ rising
    after = falling_sums * v
    upto = np.cumsum(rising * v, axis=1)
    return np.asarray(
        (upto * falling_sums).sum(axis=0)
        + (rising * (after[:, ::-1].cumsum(axis=1)[:, ::-1] - after)).sum(axis=0)
    )


class _InnerSummary(NamedTuple):
    """Properties of the inner strategy that determine the error.

    P is the inverse of the inner strategy's Gram matrix.
    """

    total: float  # k, the sum of all entries of P
    mean: FloatArray  # v / k, where v are the row sums of P
    norm: float  # squared norm of the mean
    mean_forms: FloatArray  # quadratic forms of the mean, shape (2, 2)
    trace: float  # the trace of P
    inverse_forms: FloatArray  # quadratic forms with P instead of y y^T, shape (2, 2)


def _summarize_inner(support: Support, values: FloatArray) -> _InnerSummary:
    """Return the properties of the inner strategy with ``values`` on a support."""
    theta = support.to_matrix(values)
    sigma = 1 + theta.sum(axis=0)
    lifted = np.linalg.cholesky(positive_inverse(np.eye(len(theta)) + theta @ theta.T)).T @ (
        theta * sigma
    )
    row_sums = sigma**2 - lifted.T @ lifted.sum(axis=1)
    total = float(row_sums.sum())
    mean = row_sums / total
    cells = np.arange(support.size)
    diagonal_forms = np.array(
        [[float((sigma**2 * cells ** (i + j)).sum()) for j in range(2)] for i in range(2)]
    )
    return _InnerSummary(
        total=total,
        mean=mean,
        norm=float(mean @ mean),
        mean_forms=quadratic_forms(mean[None, :]),
        trace=float((sigma**2).sum() - (lifted**2).sum()),
        inverse_forms=diagonal_forms - quadratic_forms(lifted),
    )


class _BlockSums(NamedTuple):
    """Properties of the outer strategy that determine the error."""

    divisors: FloatArray  # s, shape (blocks,)
    inverse: FloatArray  # (diag(1 / k + e^2) + U^T U)^-1, shape (blocks, blocks)
    outer: FloatArray  # s s^T
    weights: FloatArray  # W, the entrywise product of ``inverse`` and ``outer``


def _summarize_sums(outer_coefficients: FloatArray, inner_total: float) -> _BlockSums:
    """Return the properties of the outer strategy from its coefficients."""
    divisors = 1 + outer_coefficients.sum(axis=0)
    inverse = positive_inverse(
        np.diag(1 / inner_total + outer_coefficients[0] ** 2)
        + outer_coefficients[1:].T @ outer_coefficients[1:]
    )
    outer = np.outer(divisors, divisors)
    return _BlockSums(divisors, inverse, outer, inverse * outer)


class _ErrorTerms(NamedTuple):
    """The coefficients of a workload in the error.

    The error is the sum of four products: ``within_coefficients`` times the inverse forms;
    ``identity`` times the trace of P; ``coefficients`` times the forms of the mean; and
    ``identity_coefficient`` times the squared norm of the mean.
    """

    within_coefficients: FloatArray  # sum_b s_b^2 M_bb, shape (2, 2)
    identity: float  # the same sum for the multiples of the identity in M_bb
    coefficients: FloatArray  # sum_bc W_bc M_bc - k within, shape (2, 2)
    identity_coefficient: float  # the same sum for the multiples of the identity

    def error(self, summary: _InnerSummary) -> float:
        """Return the squared error of a workload for an inner strategy."""
        return float(
            (self.within_coefficients * summary.inverse_forms).sum()
            + self.identity * summary.trace
            + (self.coefficients * summary.mean_forms).sum()
            + self.identity_coefficient * summary.norm
        )


def _error_terms(blocks: BlockGram, sums: _BlockSums, inner_total: float) -> _ErrorTerms:
    """Return a workload's coefficients in the error."""
    squares = sums.divisors**2
    within = blocks.within_block_sum(squares)
    all_blocks = blocks.within_block_sum(np.diag(sums.weights).copy())
    all_blocks = all_blocks + blocks.between_blocks_sum(sums.weights)
    return _ErrorTerms(
        within_coefficients=within,
        identity=blocks.identity * squares.sum(),
        coefficients=all_blocks - inner_total * within,
        identity_coefficient=blocks.identity
        * float(np.trace(sums.weights) - inner_total * squares.sum()),
    )


def blocks_objective(
    gram_blocks: BlockGram, support: Support, values: FloatArray, outer_coefficients: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return the squared error of a two-level strategy, and its two gradients.

    ``values`` are the values of the inner Theta on ``support``; ``outer_coefficients`` stacks e and
    U.
    """
    inner = _summarize_inner(support, values)
    sums = _summarize_sums(outer_coefficients, inner.total)
    terms = _error_terms(gram_blocks, sums, inner.total)
    moments = np.array([1.0, float(inner.mean @ np.arange(support.size))])
    # These are m^T M_bc m for all pairs of blocks, where m is the mean.
    block_pair_forms = gram_blocks.all_forms(
        moments, inner.mean_forms
    ) + gram_blocks.identity * inner.norm * np.eye(len(sums.divisors))
    _, by_values = p_identity_objective(
        _gram_by_inverse(terms, inner, sums, block_pair_forms), support, values
    )
    by_above = _gradient_by_sums(gram_blocks, inner, sums, block_pair_forms, outer_coefficients)
    return terms.error(inner), by_values, by_above


def _gram_by_inverse(
    terms: _ErrorTerms, inner: _InnerSummary, sums: _BlockSums, pair_forms: FloatArray
) -> Gram:
    """Return the squared error's gradient by the inner inverse, as a Gram matrix."""
    total = inner.total
    turn = (
        _multiply_block(terms.coefficients, inner.mean) + terms.identity_coefficient * inner.mean
    ) / total
    by_inverse = float((((sums.inverse @ sums.inverse) * sums.outer) * pair_forms).sum())
    by_mean = float(
        ((terms.coefficients + total * terms.within_coefficients) * inner.mean_forms).sum()
        + (terms.identity_coefficient + total * terms.identity) * inner.norm
    )
    by_total = float(
        (terms.within_coefficients * inner.mean_forms).sum() + terms.identity * inner.norm
    )
    level = (by_inverse - 2 * total * by_mean + total**2 * by_total) / total**2
    width = len(inner.mean)
    ones = np.ones(width)
    cells = np.arange(width, dtype=float)
    falling_sums = terms.within_coefficients @ np.stack([ones, cells])
    pairs = (ones, falling_sums[0] + turn + level), (cells, falling_sums[1]), (turn, ones)
    return Gram(width, 1, pairs, float(terms.identity))


def _gradient_by_sums(
    blocks: BlockGram,
    inner: _InnerSummary,
    sums: _BlockSums,
    pair_forms: FloatArray,
    outer_coefficients: FloatArray,
) -> FloatArray:
    """Return the gradient of the squared error by the outer coefficients."""
    within_forms = blocks.diagonal_forms(inner.inverse_forms - inner.total * inner.mean_forms)
    within_forms = within_forms + blocks.identity * (inner.trace - inner.total * inner.norm)
    divisors = sums.divisors
    by_divisors = 2 * divisors * within_forms + 2 * (sums.inverse * pair_forms) @ divisors
    turned = sums.inverse @ (pair_forms * sums.outer) @ sums.inverse
    return np.asarray(
        by_divisors
        - 2
        * np.vstack([outer_coefficients[:1] * turned.diagonal(), outer_coefficients[1:] @ turned])
    )


def block_width(size: int) -> int:
    """Return the width of blocks that divide an attribute almost evenly."""
    width = next(
        (width for most, width in ((2**15, 128), (2**18, 1024), (2**20, 2048)) if size <= most),
        4096,
    )
    return -(-size // max(2, -(-size // width)))


def fit_blocks(gram: Gram) -> BlockPIdentity:
    """Fit a two-level p-Identity strategy to a workload."""
    if not 2 <= gram.size <= 4096 * _MOST_BLOCKS:
        raise NotApplicable(f"this strategy supports only 2 to {4096 * _MOST_BLOCKS} cells")
    width = block_width(gram.size)
    blocks = -(-gram.size // width)
    blocked_gram = block_gram(gram, width, blocks)
    windows = list(_bump_layers(width, _FINEST_BUMP_SPACING, _BUMP_SPACING_RATIO, 0.7))
    many = blocks > _MOST_UNMEASURED_BLOCKS
    # The spacing of the first outer layer continues the sequence of inner layers. If the sums of
    # single blocks are measured, the spacing of the finest layer is used.
    last = _FINEST_BUMP_SPACING * _BUMP_SPACING_RATIO
    if width >= 1.5 * last:
        last *= _BUMP_SPACING_RATIO
    rows = [np.full(blocks, 0.2 if many else 0.0)]
    for start, stop, height in _bump_layers(
        blocks, 16.0 if many else max(3.0, 1.15 * last / width), _COARSER_ABOVE, 0.2
    ):
        rows.append(np.zeros(blocks))
        rows[-1][start:stop] = height
    above = np.array(rows)
    support = Support(width, [(start, stop) for start, stop, _ in windows])
    values = np.concatenate([height for *_, height in windows])
    count = len(values)
    most = np.full(count + above.size, TALLEST)
    if not many:
        most[count : count + blocks] = 0.0

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        """Return the squared error and its gradient at a flat array of coefficients."""
        error, by_values, by_rows = blocks_objective(
            blocked_gram, support, point[:count], point[count:].reshape(above.shape)
        )
        return error, np.concatenate([by_values, by_rows.reshape(-1)])

    optimum, least = minimize_lbfgs(
        objective, np.concatenate([values, above.reshape(-1)]), most, _MOST_DESCENT_STEPS
    )
    theta = support.to_matrix(optimum[:count])
    above = optimum[count:].reshape(above.shape)
    sigma = 1 + theta.sum(axis=0)
    inner = PIdentity(diagonal=1 / sigma, rows=theta / sigma)
    return BlockPIdentity(
        inner, 1 + above.sum(axis=0), above[0], above[1:], math.sqrt(least / gram.queries)
    )


def _bump_layers(
    size: int, finest_spacing: float, spacing_factor: float, height: float
) -> Iterator[Window]:
    """Yield rows of bumps, in layers whose spacing grows by a factor.

    If the finest spacing is wider than the attribute, yield one flat row.
    """
    spacing = finest_spacing
    while size / spacing >= 1.5 or spacing == finest_spacing:
        yield from bump_rows(size, max(0, round(size / spacing - 1)), height, 1.25)
        spacing *= spacing_factor


class NestedInverse(GramInverse):
    """The inverse Gram matrix of a two-level strategy, in implicit form."""

    def __init__(
        self, inner: GramInverse, last: GramInverse, weights: FloatArray, sums_inverse: FloatArray
    ) -> None:
        """Build the inverse from inverses within blocks, in the last one and of sums.

        ``w`` has shape (blocks,) and H has shape (blocks, blocks).
        """
        self.inner = inner
        self.last = last
        self.weights = weights
        self.sums_inverse = sums_inverse
        self.before = (len(weights) - 1) * inner.size  # cells before the last block
        self.size = self.before + last.size

    def solve(self, v: FloatArray) -> FloatArray:
        """Return the inverse Gram matrix times ``v``, along the first axis."""
        flat = v.reshape(self.size, -1)
        width = self.inner.size
        blocks = flat[: self.before].reshape(-1, width, flat.shape[1]).swapaxes(0, 1)
        end = flat[self.before :]
        squares = self.weights**2
        levels = self.sums_inverse @ np.concatenate(
            [np.tensordot(self.inner.mean, blocks, 1), (self.last.mean @ end)[None, :]]
        )
        first = self.inner.residual(blocks) / squares[:-1, None] + np.multiply.outer(
            self.inner.mean, levels[:-1]
        )
        second = self.last.residual(end) / squares[-1] + np.outer(self.last.mean, levels[-1])
        return np.concatenate([first.swapaxes(0, 1).reshape(self.before, -1), second]).reshape(
            v.shape
        )

    @cached_property
    def _prefixes(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """For each prefix, its last block, and its mean share and variance there.

        The prefixes are the first 0, 1, ..., n cells. For each prefix, the three arrays have: the
        block of its last cell; the share of this block's mean that the prefix contains; and the
        variance of its cells in this block under R.
        """
        shares = []
        residuals = []
        for base, squares in (
            (self.inner, self.weights[:-1] ** 2),
            (self.last, self.weights[-1:] ** 2),
        ):
            share = np.cumsum(base.mean)
            shares.append(np.tile(share, len(squares)))
            residuals.append(
                np.outer(
                    1 / squares, np.maximum(base.prefix_variances - base.kappa * share**2, 0.0)
                ).reshape(-1)
            )
        blocks = np.append(0, np.arange(self.size) // self.inner.size)
        return blocks, np.concatenate([[0.0], *shares]), np.concatenate([[0.0], *residuals])

    @cached_property
    def _prefix_sums_of_inverse(self) -> tuple[FloatArray, FloatArray]:
        """The prefix sums of ``sums_inverse``, along one axis and along both axes."""
        along = np.zeros((len(self.sums_inverse) + 1, len(self.sums_inverse)))
        np.cumsum(self.sums_inverse, axis=0, out=along[1:])
        both = np.zeros((len(self.sums_inverse) + 1,) * 2)
        np.cumsum(along, axis=1, out=both[:, 1:])
        return along, both

    def _covariances(self, first_lengths: IntArray, second_lengths: IntArray) -> FloatArray:
        """Return the part of prefix covariances that comes from the block means.

        The prefixes have the first ``first_lengths`` and the first ``second_lengths`` cells.
        """
        blocks, shares, _ = self._prefixes
        along, both = self._prefix_sums_of_inverse
        a = blocks[first_lengths]
        b = blocks[second_lengths]
        x = shares[first_lengths]
        y = shares[second_lengths]
        return np.asarray(
            both[a, b] + y * along[a, b] + x * along[b, a] + x * y * self.sums_inverse[a, b]
        )

    @cached_property
    def prefix_variances(self) -> FloatArray:
        """The variances of the sums of the first 1, 2, ..., n cells."""
        cells = np.arange(1, self.size + 1)
        answer = self._covariances(cells, cells) + self._prefixes[2][1:]
        answer.setflags(write=False)
        return answer

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the variance of the sum of cells low..high, for each range."""
        blocks, _, residuals = self._prefixes
        ends = high + 1
        block = low // self.inner.size
        answer = (
            self._covariances(ends, ends)
            + self._covariances(low, low)
            - 2 * self._covariances(low, ends)
        )
        same = block == blocks[ends]
        answer[~same] += residuals[ends[~same]] + residuals[low[~same]]
        for base, is_in_block in (
            (self.inner, same & (low < self.before)),
            (self.last, same & (low >= self.before)),
        ):
            if is_in_block.any():
                first = block[is_in_block] * self.inner.size
                ranges_in_block = Ranges(
                    base.size, low[is_in_block] - first, high[is_in_block] - first
                )
                shares = np.append(0.0, np.cumsum(base.mean))
                residual = (
                    base.variances(ranges_in_block)
                    - base.kappa
                    * (shares[ranges_in_block.high + 1] - shares[ranges_in_block.low]) ** 2
                )
                answer[is_in_block] += (
                    np.maximum(residual, 0.0) / self.weights[block[is_in_block]] ** 2
                )
        return answer

    def bound_of_ranges(self) -> float:
        """Return an upper bound on the variances of all ranges of cells.

        The inverse of a block gives the bound of the ranges within the block. For all other ranges,
        the bound adds the largest values of the two parts of the variance.
        """
        # The part of H is convex in the shares of the first and the last block. So it is largest
        # for ranges of whole blocks. R adds at most its largest prefix variance at each end.
        lightest = (self.inner, self.weights[:-1].min()), (self.last, self.weights[-1])
        within = max(
            base.largest_variance(AllRanges(base.size)) / float(weight) ** 2
            for base, weight in lightest
        )
        return max(
            within, largest_range_variance(self.sums_inverse) + 2 * float(self._prefixes[2].max())
        )


@structured_inverse.register
def _(operator: Nested, factor: Factor) -> GramInverse | None:
    """Return the inverse Gram matrix of a two-level strategy, or None."""
    within, last, above = operator.split(factor.weights)
    if (
        operator.above.size > MOST_DENSE
        or not (within == within[0]).all()
        or not (last == last[0]).all()
    ):
        return None
    weights = np.append(within[0], last[0]).astype(float)
    spans = [row_space(part) for part in (operator.inner, operator.last)]
    if not all(span is not None and span.is_full for span in spans):
        return None
    bases = tuple(
        invert_gram(Factor(factor.attributes, part)) for part in (operator.inner, operator.last)
    )
    gram = weighted_gram(Factor(factor.attributes, operator.above, above))
    gram[np.diag_indices(len(gram))] += weights**2 / np.append(
        np.full(len(within[0]), bases[0].kappa), bases[1].kappa
    )
    inverse = np.linalg.inv(np.linalg.cholesky(gram))
    return NestedInverse(bases[0], bases[1], weights, inverse.T @ inverse)


def p_identity_blocks(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return the two-level p-Identity strategy, rounded to integers.

    The row weights are the relative weights of the blocks.
    """
    fitted = fit_blocks(gram)
    size = gram.size
    diagonal, below = fitted.inner.dyadic(min(bits, _BLOCK_BITS))
    largest = int((diagonal + below.sum(axis=0)).max())
    last_width = size - (len(fitted.divisors) - 1) * len(diagonal)
    if not len(below):
        below = np.ones((1, len(diagonal)), dtype=np.int64)
    within = [
        DiagonalAndRows(diagonal[:cells], below[:, :cells]) for cells in (len(diagonal), last_width)
    ]
    sums, block_rows = (
        np.rint(largest * part / fitted.divisors).astype(np.int64)
        for part in (fitted.sum_rows, fitted.sum_coefficients)
    )
    if sums.any():
        sums = sums[sums.any(axis=1)]
    else:
        sums = np.ones((1, len(block_rows)), dtype=np.int64)
    above = (
        DiagonalAndRows(np.maximum(block_rows, 1), sums)
        if fitted.sum_coefficients.any()
        else Dense(sums)
    )
    least = fitted.divisors.min()
    # Divisors are large if only the total is requested.
    unit = min(2**_BLOCK_BITS, 2**_MOST_BITS / least)
    heights = np.rint(unit * least / fitted.divisors).astype(np.int64)
    rows = [within[0].rows] * (len(heights) - 1) + [within[1].rows]
    return FittedFamily(
        Nested(within[0], within[1], above),
        np.append(np.repeat(heights, rows), np.full(above.rows, round(unit * least))),
    )
