"""A mixture of product distributions, fitted to noisy tables.

Within a component of the mixture, the attributes are independent.

For a set of attributes, the table of the model is a sum over the components. Each component adds
its share times the outer product of its distributions along these attributes. So a few thousand
numbers determine every table of any size. The fit minimises two terms: half the squared residuals
in units of their noise, plus a penalty. The penalty is a multiple of the mutual information between
the component and each attribute. The penalty is adjusted until the residuals have the size that
they would have if the model were correct (the discrepancy principle). The fit is deterministic,
because it starts from a fixed seed.

Source: latent classes fitted to private tables, Nixon et al. (arXiv 2201.10545); the steps are from
    Adam (arXiv 1412.6980).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeAlias

import numpy as np

from leastnoise._estimation._non_negative import project_to_simplex
from leastnoise._trusted.check.arrays import FloatArray, IntArray

KINDS = 100  # components of the mixture
_FIRST_STEP_SIZE = 0.05  # first step size of Adam
_FIRST_LOGIT_STD = 0.2  # standard deviation of the components' first logits
_SEED = 20_261_124  # seed of the first logits
_LEAST_ROUNDS = 60  # steps before a fit may end
_LAST_ROUNDS = 250  # number of steps during which the step size falls to zero
_STEPS_BETWEEN_CHECKS = 10  # steps between two checks of the residual
# Maximum number of steps, if answers are moved towards the measurements and if they are not.
ROUNDS = 300
MORE_ROUNDS = 1500
# Factors of the penalty; the penalty is lowered if residuals fall by less than this share in ten
# rounds.
_PENALTY_INCREASE = 1.25
_PENALTY_DECREASE = 0.85
_LEAST_RESIDUAL_DECREASE = 0.01
# Relative to the first penalty.
_LEAST_PENALTY = 0.003
_MOST_PENALTY = 10.0
# Fraction of the universal threshold sqrt(2 log n), which pure noise rarely exceeds.
_THRESHOLD_FRACTION = 0.7
# The least count of a cell is this fraction of the noise, divided evenly among all cells.
_LEAST_COUNT_RATIO = 0.05
_SMOOTHING_SHIFTS = 16  # shifts of the cells over which Haar smoothing is averaged
# The mean squared residual, in units of the noise, that a fit should leave; it is below 1 because a
# fit follows some of the noise.
RESIDUAL = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """Noisy counts of bins along one to three attributes.

    ``attributes`` are positions among the attributes of the model. ``starts`` has the first cells
    of the bins along each attribute, and ``counts`` has one number for each bin.
    """

    attributes: tuple[int, ...]
    starts: tuple[IntArray, ...]
    counts: FloatArray
    std: float


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """A mixture of product distributions: shares and distributions.

    ``shares`` has shape (components,); the array of each attribute has shape (cells, components).
    """

    shares: FloatArray
    distributions: tuple[FloatArray, ...]
    penalty: float

    def table(self, attributes: Sequence[int]) -> FloatArray:
        """Return the share of rows in each cell of a table; they sum to 1."""
        parts = [self.distributions[attribute] for attribute in attributes] or [
            np.ones((1, len(self.shares)))
        ]
        cells = _outer_product(parts[:-1], len(self.shares)) @ (parts[-1] * self.shares).T
        return cells.reshape([len(self.distributions[attribute]) for attribute in attributes])


def _outer_product(distributions: Sequence[FloatArray], components: int) -> FloatArray:
    """Return the outer product of distributions, for each mixture component."""
    joined = np.ones((1, components))
    for part in distributions:
        joined = (joined[:, None, :] * part[None, :, :]).reshape(-1, components)
    return joined


def smoothed_shares(counts: FloatArray, std: float, total: float) -> FloatArray:
    """Return the share of each cell along an attribute, from noisy counts.

    Steps that could be noise are removed; all cells are above 0.
    """
    # Source: translation-invariant thresholding in a Haar basis, Coifman and Donoho 1995.
    size = len(counts)
    if size < _SMOOTHING_SHIFTS:
        smooth = np.asarray(counts, dtype=np.float64)
    else:
        smooth = _thresholded(counts, std * _THRESHOLD_FRACTION * math.sqrt(2 * math.log(size)))
    cells = np.maximum(project_to_simplex(smooth, max(total, 1.0)), _LEAST_COUNT_RATIO * std / size)
    return np.asarray(cells / cells.sum())


def _thresholded(counts: FloatArray, threshold: float) -> FloatArray:
    """Return counts smoothed by shift-averaged Haar thresholding."""
    size = len(counts)
    padded_size = 1 << (size - 1).bit_length()
    smooth = np.zeros(size)
    shifts = range(0, padded_size, padded_size // _SMOOTHING_SHIFTS)
    for shift in shifts:
        cells = (np.arange(size) + shift) % padded_size
        sums = np.zeros(padded_size)
        steps = []
        sums[cells] = counts
        while len(sums) > 1:
            step = (sums[0::2] - sums[1::2]) / math.sqrt(2)
            steps.append(np.where(np.abs(step) > threshold, step, 0.0))
            sums = (sums[0::2] + sums[1::2]) / math.sqrt(2)
        for step in reversed(steps):
            sums = np.stack([sums + step, sums - step], axis=1).reshape(-1) / math.sqrt(2)
        smooth += sums[cells]
    return smooth / len(shifts)


def fit_mixture(
    total: float,
    initial_shares: Sequence[FloatArray],
    tables: Sequence[NoisyTable],
    components: int = KINDS,
    max_rounds: int = MORE_ROUNDS,
) -> Mixture:
    """Fit a mixture to noisy tables of ``total`` rows.

    ``total`` is the estimated number of rows. The fit starts from one distribution along every
    attribute, whose cells are all above 0.
    """
    noise = np.random.default_rng(_SEED).standard_normal(
        (sum(map(len, initial_shares)), components)
    )
    logits = np.log(np.concatenate(initial_shares))[:, None] + _FIRST_LOGIT_STD * noise
    return _Fit(total, initial_shares, tables, (logits, np.zeros(components))).run(max_rounds)


def refit_mixture(
    mixture: Mixture,
    total: float,
    initial_shares: Sequence[FloatArray],
    tables: Sequence[NoisyTable],
    rounds: int,
) -> Mixture:
    """Fit a mixture again, to the same tables with other noise.

    The new fit runs for ``rounds`` rounds. The new fit starts from the given mixture and its
    penalty.
    """
    logits, weights = (
        np.log(np.maximum(shares_of, 1e-12))
        for shares_of in (np.concatenate(mixture.distributions), mixture.shares)
    )
    fit = _Fit(total, initial_shares, tables, (logits, weights))
    for round_number in range(rounds):
        fit.round(mixture.penalty, _FIRST_STEP_SIZE * max(1 - round_number / rounds, 0.02))
    return fit.mixture(mixture.penalty)


_Part: TypeAlias = tuple[int, IntArray]  # an attribute, and the first cells of its bins
_Rows: TypeAlias = tuple[slice, ...]  # rows of the stacked parts


def _join_tables(
    tables: Sequence[NoisyTable], total: float
) -> list[tuple[list[list[_Part]], FloatArray, FloatArray]]:
    """Return tables in units of their noise, joined along common attributes.

    Pairs of attributes that share an attribute become one table, because few large matrix
    products are faster than many small ones.

    Returns:
        Three values for each joined table: the attributes' parts along every axis; the counts, of
        shape (cells of all axes but the last, cells of the last); and, for every cell of the last
        axis, the number of rows in units of the noise.
    """
    joined = []
    first_parts = []
    for table in tables:
        parts = list(zip(table.attributes, table.starts, strict=True))
        counts = table.counts / table.std
        if len(parts) == 2:
            first_parts.append(
                (
                    {(attribute, starts.tobytes()): starts for attribute, starts in parts},
                    counts,
                    total / table.std,
                )
            )
        else:
            last = counts.shape[-1]
            joined.append(
                (
                    [[part] for part in parts],
                    counts.reshape(-1, last),
                    np.full(last, total / table.std),
                )
            )
    while first_parts:
        used = Counter(chain.from_iterable(keys for keys, *_ in first_parts))
        common = max(used, key=lambda key: (used[key], key))
        with_it = [table for table in first_parts if common in table[0]]
        first_parts = [table for table in first_parts if common not in table[0]]
        other_parts = []
        columns = []
        scales = []
        for keys, counts, scale in with_it:
            (other,) = (key for key in keys if key != common)
            other_parts.append((other[0], keys[other]))
            columns.append(counts if next(iter(keys)) == common else counts.T)
            scales.append(np.full(len(keys[other]), scale))
        shared = (common[0], with_it[0][0][common])
        joined.append(
            (
                [[shared], other_parts],
                np.ascontiguousarray(np.hstack(columns)),
                np.concatenate(scales),
            )
        )
    return joined


class _Fit:
    """The mutable state of a fit: logits and the moments of Adam.

    Logits have shapes (cells of all attributes, components) and (components,).
    """

    def __init__(
        self,
        total: float,
        start: Sequence[FloatArray],
        tables: Sequence[NoisyTable],
        state: tuple[FloatArray, FloatArray],
    ) -> None:
        from scipy.sparse import csr_array  # slow to import

        self.state = state
        self.kinds = len(state[1])
        self.first = np.cumsum([0, *(len(start_of) for start_of in start[:-1])])
        self.sizes = np.array([len(start_of) for start_of in start])
        self.prior = np.log(np.concatenate(start))[:, None]
        self.moments = [
            (np.zeros_like(start_of), np.zeros_like(start_of)) for start_of in self.state
        ]
        self.rounds = 0
        self.cells = sum(table.counts.size for table in tables)
        self.scale = math.exp(
            sum(math.log(total / table.std) for table in tables) / max(len(tables), 1)
        )
        self.tables: list[tuple[_Rows, FloatArray, FloatArray]] = []
        begins = []
        ends = []
        stacked = 0
        for axes, counts, scales in _join_tables(tables, total):
            lengths = [sum(len(starts) for _, starts in axis) for axis in axes]
            cuts = np.cumsum([stacked, *lengths]).tolist()
            self.tables.append(
                (tuple(slice(low, high) for low, high in pairwise(cuts)), counts, scales)
            )
            for attribute, starts in chain.from_iterable(axes):
                begins.append(self.first[attribute] + starts)
                ends.append(self.first[attribute] + np.append(starts[1:], self.sizes[attribute]))
            stacked = cuts[-1]
        # The sum of a bin is the difference of two cumulative sums. All cells of a bin have the
        # slope of the bin.
        self.begins = np.concatenate(begins)
        self.ends = np.concatenate(ends)
        rows = np.arange(stacked)
        ones = np.ones(stacked)
        shape = (len(self.prior) + 1, stacked)
        self.spread = csr_array((ones, (self.begins, rows)), shape) - csr_array(
            (ones, (self.ends, rows)), shape
        )
        # Large arrays are allocated once: allocating them in every round takes longer than filling
        # them.
        self.sums = np.zeros((shape[0], self.kinds))
        self.parts, self.pulls = np.empty((2, stacked, self.kinds))

    def distributions(self) -> tuple[FloatArray, FloatArray]:
        """Return the stacked distributions of all attributes, and the kinds' shares."""
        logits, weights = self.state
        along = np.exp(logits)  # no overflow: a fit moves logits by less than a hundred
        along /= np.repeat(np.add.reduceat(along, self.first), self.sizes, axis=0)
        shares = np.exp(weights - weights.max())
        return along, shares / shares.sum()

    def slopes(
        self, distributions: FloatArray, shares: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return the sum of squared residuals, and half its two gradients.

        The first gradient is with respect to the distributions. The caller has to multiply it by
        the shares. The second gradient is with respect to the shares.
        """
        parts = self.parts
        pulls = self.pulls
        pull = np.zeros(self.kinds)
        squares = 0.0
        np.cumsum(distributions, axis=0, out=self.sums[1:])
        np.take(self.sums, self.ends, axis=0, out=parts, mode="clip")  # this mode needs no copy
        np.subtract(
            parts, np.take(self.sums, self.begins, axis=0, out=pulls, mode="clip"), out=parts
        )
        for rows, observed, scales in self.tables:
            last = parts[rows[-1]]
            first = _outer_product([parts[row] for row in rows[:-1]], self.kinds)
            gap = (first * shares) @ last.T
            gap *= scales
            gap -= observed
            squares += float(np.vdot(gap, gap))
            gap *= scales
            np.matmul(gap.T, first, out=pulls[rows[-1]])
            gap_sums = gap @ last
            pull += np.einsum("ck,ck->k", gap_sums, first)
            if len(rows) == 2:
                pulls[rows[0]] = gap_sums
            elif len(rows) == 3:
                leading = parts[rows[0]]
                middle = parts[rows[1]]
                gap_sums = gap_sums.reshape(len(leading), len(middle), self.kinds)
                pulls[rows[0]] = np.einsum("abk,bk->ak", gap_sums, middle)
                pulls[rows[1]] = np.einsum("abk,ak->bk", gap_sums, leading)
        return squares, np.cumsum((self.spread @ pulls)[:-1], axis=0), pull

    def step(
        self,
        distributions: FloatArray,
        shares: FloatArray,
        distribution_gradient: FloatArray,
        share_gradient: FloatArray,
        penalty: float,
        learning_rate: float,
    ) -> None:
        """Update the logits in place by one step of Adam."""
        log_ratio = np.log(np.maximum(distributions, 1e-12)) - self.prior
        log_ratio *= penalty
        distribution_gradient += log_ratio
        share_gradient = share_gradient + np.einsum("ck,ck->k", distributions, log_ratio)
        distribution_gradient *= distributions
        distribution_gradient -= distributions * np.repeat(
            np.add.reduceat(distribution_gradient, self.first), self.sizes, axis=0
        )
        distribution_gradient *= shares
        self.rounds += 1
        slopes = (distribution_gradient, shares * (share_gradient - shares @ share_gradient))
        # Corrects the bias of the running means in the first rounds.
        learning_rate *= math.sqrt(1 - 0.99**self.rounds) / (1 - 0.9**self.rounds)
        for state, (mean, square), slope in zip(self.state, self.moments, slopes, strict=True):
            np.add(mean, 0.1 * (slope - mean), out=mean)
            np.square(slope, out=slope)
            np.add(square, 0.01 * (slope - square), out=square)
            np.sqrt(square, out=slope)
            np.add(slope, 1e-12, out=slope)
            np.subtract(state, learning_rate * mean / slope, out=state)

    def run(self, max_rounds: int) -> Mixture:
        """Run Adam until the residuals stall, and return the mixture.

        The step size is first constant and then falls to zero.
        """
        first = self.scale
        penalty = first
        last = math.inf
        end = None
        residual_history = []
        residual = math.inf
        while end is None or self.rounds - end < _LAST_ROUNDS:
            if end is None:
                step_factor = 1.0
            else:
                step_factor = max(1 - (self.rounds - end) / _LAST_ROUNDS, 0.02)
            residual = self.round(penalty, _FIRST_STEP_SIZE * step_factor)
            if self.rounds % _STEPS_BETWEEN_CHECKS == 0:
                if residual < RESIDUAL:
                    penalty = min(
                        penalty * min(1 + 2 * (RESIDUAL / residual - 1), _PENALTY_INCREASE),
                        first * _MOST_PENALTY,
                    )
                elif last - residual < _LEAST_RESIDUAL_DECREASE * last:
                    penalty = max(penalty * _PENALTY_DECREASE, first * _LEAST_PENALTY)
                last = residual
                residual_history.append(residual)
                stalled = (
                    len(residual_history) > 30
                    and residual_history[-1] > 0.97 * residual_history[-21]
                )
                if (
                    end is None
                    and self.rounds >= _LEAST_ROUNDS
                    and (residual <= 1.03 * RESIDUAL or self.rounds >= max_rounds or stalled)
                ):
                    end = self.rounds
        return self.mixture(penalty)

    def round(self, penalty: float, learning_rate: float) -> float:
        """Do one step of Adam; return the mean squared residual before the step."""
        along, shares = self.distributions()
        squares, derivatives, pull = self.slopes(along, shares)
        self.step(along, shares, derivatives, pull, penalty, learning_rate)
        return squares / max(self.cells, 1)

    def mixture(self, penalty: float) -> Mixture:
        """Return the mixture with the current shares and distributions."""
        along, shares = self.distributions()
        ends = np.append(self.first, len(along))
        return Mixture(
            shares, tuple(along[ends[k] : ends[k + 1]] for k in range(len(self.sizes))), penalty
        )
