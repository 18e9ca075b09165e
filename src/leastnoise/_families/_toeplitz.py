"""Strategies along time; a row is measured when its last cell has ended.

This file has the square root of the prefix sums, and other lower triangular strategies.

The square of the lower triangular Toeplitz matrix C with c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k) is
the matrix of all prefix sums. The column norms of C decrease towards the end, so each column is
scaled up to the largest norm. The result is near the optimum at any size. After rounding to
integers, the coefficients are a step function of the distance, with steps that become longer with
the distance. The scales are constant on runs of cells. The runs are narrower towards the end, where
the norms change fast. Least squares takes O(n log n). The inverse is in docs/mathematics.md,
section 2, with the notation of this file (r, R, d, E).

With Gaussian noise, a strategy A with the Gram matrix X = A'A has an equivalent lower triangular
strategy C with C'C = X. Cholesky's method computes C, starting with the last cell. C has the same
column norms as A, so it has the same cost and the same errors. C is square, so the estimates of the
first t cells are determined by the first t rows and do not change with later rows. With Laplace
noise, such rows would have large errors. With Laplace noise, hierarchies are used instead. Each
node of a hierarchy is measured when its last cell ends, and later nodes improve estimates that were
published before.

Source: Fichtenberger, Henzinger, Upadhyay (arXiv 2202.11205) for the root; the scaling and the
    steps are from this project. The decomposition is textbook material; Denisov et al. (arXiv
    2202.08312) show that publishing step by step loses nothing.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from leastnoise._families._dense import fit_gaussian_optimum, to_dyadic
from leastnoise._families._gram import FittedFamily, Gram
from leastnoise._families._inverse import (
    ENTRIES_IN_MEMORY,
    GramInverse,
    invert_gram,
    structured_inverse,
)
from leastnoise._families._queries import MOST_DENSE, gram_diagonal, interval_ends
from leastnoise._families._search import NotApplicable
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import (
    Dense,
    Identity,
    Operator,
    Prefix,
    Toeplitz,
    apply_transpose,
    dense,
    last_cells,
)
from leastnoise._trusted.measurements import Factor

# The number of distances with a separate coefficient; beyond them, steps grow.
SEPARATE_DISTANCES = 16
_RUN_GROWTH = 1.1  # the ratio of the starts of consecutive runs of equal values
SCALE_RUNS = 32  # maximum number of runs of equal scales
_VALUE_BITS = 14  # bits of the Toeplitz coefficients
_SCALE_BITS = 10  # bits of the column scales
_MOST_WORK = 2**28  # maximum number of cells times runs of equal scales
# Maximum number of cells for which the weights before every run of scales are stored.
_MOST_KEPT = 2**18
MOST_LISTED_WORK = 2**28  # maximum number of widths of ranges times cells
_MOST_ALONE = 20  # the number of bits if this is the only attribute; it may then use more bits


def toeplitz_root(size: int, bits: int = _VALUE_BITS + _SCALE_BITS) -> Toeplitz:
    """Return the square root of the prefix sums, scaled to integer values."""
    distances = np.arange(1, size)
    root = np.concatenate([[1.0], np.cumprod((2 * distances - 1) / (2 * distances))])
    starts = [*range(min(size, SEPARATE_DISTANCES))]
    while (after := round(max(starts[-1] + 1, starts[-1] * _RUN_GROWTH))) < size:
        starts.append(after)
    fractions = (np.arange(SCALE_RUNS + 1) / SCALE_RUNS) ** 2
    bounds = np.unique(size - np.rint(size * fractions).astype(np.int64))
    return rounded_toeplitz(root, np.array(starts), bounds[:-1], bits)


def rounded_toeplitz(
    root: FloatArray, starts: IntArray, scale_starts: IntArray, bits: int
) -> Toeplitz:
    """Return a Toeplitz strategy with integers and nearly equal column norms.

    Args:
        root: the coefficients of the distances, shape (n,); the largest absolute value is 1.
        starts: the distances at which runs of equal coefficients begin.
        scale_starts: the cells at which runs of equal scales begin.
        bits: the bits of the largest product of a coefficient and a scale.
    """
    size = len(root)
    scale_bits = min(_SCALE_BITS, bits * _SCALE_BITS // (_VALUE_BITS + _SCALE_BITS))
    lengths = np.diff(starts, append=size)
    values = np.rint(
        np.add.reduceat(root, starts) / lengths * 2.0 ** min(_VALUE_BITS, bits - scale_bits)
    ).astype(np.int64)
    norms = np.sqrt(np.cumsum(np.repeat(values.astype(float) ** 2, lengths)))[::-1]
    # The first column is the longest. Its scale is rounded first, and all other scales follow from
    # the rounded one, so its rounding costs nothing.
    first_scale = np.floor(2**scale_bits * norms[-1] / norms[0])
    ratios = norms[0] / norms[scale_starts]
    scales = np.maximum(1, np.floor(first_scale * ratios)).astype(np.int64)
    return Toeplitz(starts, values, np.repeat(scales, np.diff(scale_starts, append=size)))


def convolve(first: FloatArray, second: FloatArray, size: int) -> FloatArray:
    """Return the first ``size`` entries of a convolution along the first axis."""
    length = 1 << max(1, len(first) + len(second) - 2).bit_length()
    turned = np.fft.rfft(first, length, axis=0).reshape(-1, *([1] * (second.ndim - 1)))
    return np.asarray(
        np.fft.irfft(turned * np.fft.rfft(second, length, axis=0), length, axis=0)[:size]
    )


def inverse_series(coefficients: FloatArray) -> FloatArray:
    """Return the coefficients of the reciprocal of a power series.

    The result has the same number of coefficients as the argument.
    """
    size = len(coefficients)
    series = np.array([1 / coefficients[0]])
    while len(series) < size:
        most = min(size, 2 * len(series))
        wrong = convolve(coefficients[:most], series, most)
        wrong[0] -= 2
        series = convolve(series, -wrong, most)
    return series


class ToeplitzInverse(GramInverse):
    """The inverse Gram matrix of a Toeplitz strategy, in implicit form."""

    def __init__(self, strategy: Toeplitz) -> None:
        self.size = strategy.size
        self.strategy = strategy
        self._known: dict[Operator, FloatArray] = {}  # cache of variances

    @cached_property
    def series(self) -> FloatArray:
        """The first column of the inverse Toeplitz matrix, shape (size,)."""
        lengths = np.diff(self.strategy.starts, append=self.size)
        return inverse_series(np.repeat(self.strategy.values.astype(float), lengths))

    @cached_property
    def kappa(self) -> float:
        """The variance of the sum of all cells."""
        # More accurate than the sum of ``solve``, which uses Fourier transforms.
        return float(self.prefix_variances[-1])

    def lifted(self, v: FloatArray) -> FloatArray:
        """Return A^-T v along the first axis.

        For a query v, the norm of the result is the standard error of the answer.
        """
        scaled = v / self.strategy.scales.reshape(-1, *([1] * (v.ndim - 1)))
        return convolve(self.series, scaled[::-1], self.size)[::-1]

    def solve(self, v: FloatArray) -> FloatArray:
        """Return the inverse Gram matrix times a vector."""
        return np.asarray(
            convolve(self.series, self.lifted(v), self.size)
            / self.strategy.scales.reshape(-1, *([1] * (v.ndim - 1)))
        )

    def variances(self, operator: Operator) -> FloatArray:
        """Return the variance q G^-1 q of each query q of an operator.

        The computation takes O(n log n) for each row, and less for cells, prefixes and many short
        ranges.
        """
        if operator == Prefix(self.size):
            return self.prefix_variances
        if operator == Identity(self.size):
            return np.asarray(np.cumsum(self.series**2) / self.strategy.scales.astype(float) ** 2)
        ends = interval_ends(operator)
        if ends is not None and self.size <= _MOST_KEPT:
            if operator not in self._known:
                self._known[operator] = self.interval_variances(*ends)
            return self._known[operator]
        answer = np.empty(operator.rows)
        step = max(1, ENTRIES_IN_MEMORY // max(operator.rows, operator.size))
        for start in range(0, operator.rows, step):
            row_indicators = np.zeros((operator.rows, min(step, operator.rows - start)))
            row_indicators[
                np.arange(start, start + row_indicators.shape[1]),
                np.arange(row_indicators.shape[1]),
            ] = 1.0
            answer[start : start + step] = (
                self.lifted(apply_transpose(operator, row_indicators)) ** 2
            ).sum(axis=0)
        return answer

    def bound_of_ranges(self) -> float:
        """Return an upper bound on the variances of all ranges of cells.

        The bound is twice the largest prefix variance, or four times if a weight E is negative.
        """
        plain = (np.diff(self.strategy.scales) >= 0).all() and np.cumsum(self.series).min() >= 0
        return float(self.prefix_variances.max()) * (2 if plain else 4)

    def interval_variances(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the variance of the sum of cells low..high, for each range.

        The computation takes O(n) for each width, and O(n log n) for each run of equal scales.
        """
        # A range is the difference of two prefix sums. In the notation of docs/mathematics.md,
        # section 2, the noise of row j in the prefix up to cell i is R_(i-j) / d_i + B_j. Here B
        # depends only on the run of i. The variance of the range needs the inner products of the
        # four terms.
        sums = np.cumsum(self.series)
        squares = np.cumsum(sums**2)
        runs = list(self._runs(copy=True))
        starts = np.array([start for start, _, _ in runs])
        before = np.array([weights for _, _, weights in runs])
        products = before @ before.T
        mixed = convolve(sums, before.T, self.size).T  # of R and B, shape (runs, n)
        scales = self.strategy.scales.astype(float)

        last_run = np.searchsorted(starts, high, side="right") - 1
        variances = (
            squares[high] / scales[high] ** 2
            + products[last_run, last_run]
            + 2 * mixed[last_run, high] / scales[high]
        )
        inner = np.flatnonzero(low > 0)
        first = low[inner] - 1
        last = high[inner]
        run = last_run[inner]
        other_run = np.searchsorted(starts, first, side="right") - 1
        scale = scales[last]
        other_scale = scales[first]
        lagged = self._lagged_products(sums, first, last - first)
        variances[inner] = (
            squares[last] / scale**2
            + squares[first] / other_scale**2
            - 2 * lagged / (scale * other_scale)
            + products[run, run]
            + products[other_run, other_run]
            - 2 * products[run, other_run]
            + 2 * (mixed[run, last] - mixed[other_run, last]) / scale
            - 2 * (mixed[run, first] - mixed[other_run, first]) / other_scale
        )
        return np.asarray(variances)

    @staticmethod
    def _lagged_products(sums: FloatArray, first: IntArray, widths: IntArray) -> FloatArray:
        """Return, for each range, the sum of R_k R_(k + width) for k up to its start."""
        order = np.argsort(widths, kind="stable")
        answer = np.empty(len(widths))
        for group in np.split(order, np.flatnonzero(np.diff(widths[order])) + 1):
            if len(group):
                width = int(widths[group[0]])
                most = int(first[group].max()) + 1
                running = np.cumsum(sums[:most] * sums[width : width + most])
                answer[group] = running[first[group]]
        return answer

    def _runs(self, *, copy: bool = False) -> Iterator[tuple[int, int, FloatArray]]:
        """Yield each run of equal scales: its start, its stop, and earlier weights."""
        scales = self.strategy.scales.astype(float)
        sums = np.cumsum(self.series)
        before = np.zeros(self.size)
        changes = np.append(0, np.flatnonzero(np.diff(scales)) + 1)
        if not len(changes) * self.size <= _MOST_WORK:
            raise InputError(
                f"The scales of a Toeplitz strategy change {len(changes) - 1} times over "
                f"{self.size} cells. Use fewer scales."
            )
        for start, stop in pairwise(np.append(changes, self.size).tolist()):
            if start:
                before[:start] += (1 / scales[start - 1] - 1 / scales[start]) * sums[
                    start - 1 :: -1
                ]
            yield start, stop, before.copy() if copy else before

    @cached_property
    def prefix_variances(self) -> FloatArray:
        """The variances of the sums of the first 1, 2, ..., n cells."""
        scales = self.strategy.scales.astype(float)
        sums = np.cumsum(self.series)
        answer = np.cumsum(sums**2) / scales**2
        length = 2 * self.size
        turned = np.fft.rfft(sums, length)
        for start, stop, before in self._runs():
            if start:
                both = np.fft.irfft(turned * np.fft.rfft(before, length), length)[start:stop]
                answer[start:stop] += 2 * both / scales[start] + before @ before
        answer.setflags(write=False)
        return answer


@structured_inverse.register
def _(operator: Toeplitz, factor: Factor) -> GramInverse | None:
    """Return the inverse Gram matrix of a Toeplitz strategy, or None."""
    if factor.even:
        return ToeplitzInverse(operator)
    return None


def count_widths(gram: Gram) -> int:
    """Return the number of different widths of the weighted ranges."""
    if gram.weighted_ranges is None:
        return 0
    _, low, high = gram.weighted_ranges
    return len(np.unique(high - low))


def strategy_bits(bits: int) -> int:
    """Return the number of bits for a Toeplitz strategy's integers.

    A strategy on the only attribute may use more bits.
    """
    if bits < _MOST_ALONE:
        return bits
    return _VALUE_BITS + _SCALE_BITS


def square_root(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Return the Toeplitz square root of the prefix sums, for Gaussian noise."""
    if gram.size > MOST_DENSE and count_widths(gram) * gram.size > MOST_LISTED_WORK:
        raise NotApplicable(
            f"above {MOST_DENSE} cells this strategy is only available for prefix sums, all "
            "ranges, single cells, and ranges of few widths"
        )
    return FittedFamily(toeplitz_root(gram.size, strategy_bits(bits)))


MOST_TRIANGULAR = 512  # maximum number of cells of a matrix that a plan contains
_LEAST_DIAGONAL_ENTRY = 16  # the least rounded entry on the diagonal
# The part of the squared norm for single cells, if the queries leave some cells undetermined.
_CELL_SHARE = 1e-3
# Maximum number of cells of a hierarchy.
_MOST_HIERARCHY = 128
_MOST_BRANCHING = 16  # maximum number of children of a node in the hierarchies to compare
# Weights of a level relative to the next finer level.
_LEVEL_WEIGHT_RATIOS = (0.6, 0.8, 1.0, 1.25, 1.6)
_MOST_TIMES = 16  # maximum number of cell counts for which the error of a hierarchy is computed
_CELL_ROW_WEIGHT = 64  # the row weight of a cell
# The largest row weight if every cell has a separate weight. Contrasts of other attributes leave 5
# bits for it (`Measurements` refuses scales with terms of 2^56).
_MOST_ROW_WEIGHT = 2**5
_LEAST_SQUARE = 1e-12  # squared entry of a cell that no query uses, relative to the largest

WeightedQueries = Sequence[tuple[float, Operator]]


def causal_strategies(attribute: str, gram: Gram, bits: int) -> list[Factor]:
    """Return lower triangular strategies to compare along a time attribute.

    The candidates are the lower triangular equivalent of the Gaussian optimum or, for many cells,
    strategies in closed form.
    """
    if gram.size > MOST_TRIANGULAR:
        return [
            Factor((attribute,), Identity(gram.size)),
            Factor((attribute,), toeplitz_root(gram.size, bits)),
        ]
    factor = fit_gaussian_optimum(gram).matrix
    optimum = factor.T @ factor
    for cell_share in (0.0, _CELL_SHARE):
        try:  # C, lower triangular, with C'C the optimum
            twin = np.asarray(
                np.linalg.cholesky(
                    ((1 - cell_share) * optimum + cell_share * np.eye(gram.size))[::-1, ::-1]
                ).T[::-1, ::-1]
            )
        except np.linalg.LinAlgError:  # the optimum is not positive definite
            continue
        rounded = to_dyadic(twin, min(bits, 20))
        if rounded.shape == optimum.shape and rounded.diagonal().min() >= _LEAST_DIAGONAL_ENTRY:
            return [Factor((attribute,), Dense(rounded))]
    return [Factor((attribute,), Identity(gram.size))]


def weighted_cells(attribute: str, squared_entries: FloatArray, norm: int) -> Factor:
    """Return the cells with the best weights for units with rows in all cells.

    The cost of a unit is then the sum of the weights to the power p, where p is the norm. The error
    is the sum of the queries' squared entries over the squared weights. The error is least if each
    weight is the (p + 2)-th root of the squared entry. For p = 2, no other strategy whose columns
    have inner products of at least 0 is better (docs/mathematics.md).

    Args:
        attribute: the attribute.
        squared_entries: for each cell the weighted sum of the queries' squared entries, shape
            (cells,).
        norm: 1 for Laplace noise, 2 for Gaussian noise.
    """
    weights = np.maximum(squared_entries, squared_entries.max() * _LEAST_SQUARE) ** (1 / (norm + 2))
    # A cell that no query uses gets the least weight, because a row weight must not be 0.
    rounded = np.maximum(np.rint(weights / weights.max() * _MOST_ROW_WEIGHT), 1).astype(np.int64)
    are_equal = rounded.min() == rounded.max()
    return Factor((attribute,), Identity(len(squared_entries)), None if are_equal else rounded)


def causal_hierarchy(
    attribute: str, weighted_queries: WeightedQueries, *, in_all_cells: bool = False
) -> Factor:
    """Return the hierarchy or cells with the least error under Laplace noise.

    The error of an answer is evaluated when it is first published.

    Args:
        attribute: the attribute.
        weighted_queries: queries along the attribute, each with a weight.
        in_all_cells: whether a unit may have rows in all cells, instead of in one cell only.
    """
    size = weighted_queries[0][1].size
    if size > _MOST_HIERARCHY:
        raise NotApplicable(
            f"Under a pure budget a series may have at most {_MOST_HIERARCHY} periods; got "
            f"{size}. Use longer periods, or a budget with rho or delta."
        )
    times = sorted({round(time) for time in np.linspace(1, size, min(size, _MOST_TIMES))})
    candidates = [Factor((attribute,), Identity(size))]
    if in_all_cells:
        squares = sum(weight * gram_diagonal(operator) for weight, operator in weighted_queries)
        candidates.append(weighted_cells(attribute, np.asarray(squares), 1))
    for branching in range(2, min(size, _MOST_BRANCHING) + 1):
        candidates += [
            _hierarchy_without_total(attribute, size, branching, ratio)
            for ratio in _LEVEL_WEIGHT_RATIOS
        ]

    def error(factor: Factor) -> float:
        """Return the summed squared errors of all queries at their first release."""
        norms = (np.abs(dense(factor.operator)) * factor.weights[:, None]).sum(axis=0)
        norm = float(norms.sum() if in_all_cells else norms.max())
        variances = [
            weight * ending_variances(factor, operator, times)
            for weight, operator in weighted_queries
        ]
        return norm**2 * sum(float(ending.sum()) for ending in variances)

    return min(candidates, key=error)


def _hierarchy_without_total(
    attribute: str, size: int, branching: int, weight_ratio: float
) -> Factor:
    """Return a hierarchy of blocks of 1, b, b^2, ... cells without the total.

    The weight of each level is ``weight_ratio`` times the weight of the next finer level.
    """
    rows = []
    weights = []
    width = 1
    weight = 1.0
    while width < size:
        for start in range(0, size, width):
            rows.append([start <= cell < start + width for cell in range(size)])
            weights.append(max(1, round(weight * _CELL_ROW_WEIGHT)))
        width = width * branching
        weight = weight * weight_ratio
    return Factor((attribute,), Dense(np.array(rows, dtype=np.int64)), np.array(weights))


def first_rows(factor: Factor, cell_count: int) -> Factor:
    """Return the rows of a strategy that use only the first cells."""
    measured = last_cells(factor.operator) < cell_count
    operator = factor.operator
    match operator:
        case Dense():
            part: Operator = Dense(operator.matrix[measured, :cell_count])
        case Toeplitz():
            started = operator.starts < cell_count
            part = Toeplitz(
                operator.starts[started], operator.values[started], operator.scales[:cell_count]
            )
        case _:
            part = Identity(cell_count)
    return Factor(
        factor.attributes,
        part,
        None if factor.row_weights is None else factor.row_weights[measured],
    )


def ending_variances(factor: Factor, operator: Operator, cell_counts: Sequence[int]) -> FloatArray:
    """Return the summed variances of the queries that end at given cells.

    All variances are at unit noise. For each number of cells t, these are the variances of the
    queries that end with cell t. The variances are computed for the time when the first t cells
    have ended.
    """
    last = last_cells(operator)
    if factor.operator.rows == factor.operator.size:  # estimates never change
        every = np.bincount(
            last, weights=invert_gram(factor).variances(operator), minlength=operator.size
        )
        return np.asarray(every[np.array(cell_counts) - 1])
    queries = dense(operator)
    variances = []
    for cells in cell_counts:
        rows = queries[last == cells - 1, :cells]
        if not len(rows):
            variances.append(0.0)
            continue
        inverse = invert_gram(first_rows(factor, cells))
        variances.append(inverse.total_variance(Dense(rows)))
    return np.array(variances)
