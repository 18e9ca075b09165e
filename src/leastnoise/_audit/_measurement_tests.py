"""Compute lower bounds on the loss of measurements from repeated runs.

The measurements are repeated on two synthetic tables that differ in some units.

The first half of the trials selects an event, such as "the statistic is above 3". The second half
yields bounds on the probability of the event on both tables (Clopper and Pearson 1934). The bounds
on the probabilities imply a lower bound on the loss. For mu, this follows from Dong, Roth and Su
2019; for rho, it follows from the divergence of an event (van Erven and Harremoes 2014). For all
queries together, the statistic is the likelihood ratio. The query whose answers differ most,
relative to its noise, is also tested separately. The distribution of this query's noise is known
exactly. So the separate test detects a wrong noise scale even if the bound for all queries together
is far below the budget.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from leastnoise._audit._k_norm_audit import NoiseGroup, NormDistribution, noise_groups
from leastnoise._audit._synthetic_tables import (
    EntropySource,
    series_on_rows,
    series_on_table,
    synthetic_table,
)
from leastnoise._domain import Coded, CompleteCount, Domain, ValueCount
from leastnoise._trusted.accounting import (
    ApproxDP,
    GaussianCost,
    Noise,
    Privacy,
    PureCost,
    gaussian_is_private,
)
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._trusted.kernel import ReleaseContract
from leastnoise._trusted.linop import Identity, SignedArray, apply
from leastnoise._trusted.measurements import Block, Factor, Measurements, cost, row_scales

LEAST_TRIALS = 200  # trials of a test, regardless of the time they take
_RENYI_ORDERS = 1 + np.geomspace(1e-3, 50, 100)
_PROBABILITY_ROUNDING = 1e-9  # floating-point error of a probability
_SCALE_FACTORS_TRIED = 2 ** (np.arange(-80, 161) / 80)
_MOST_CANDIDATE_ROWS = 40  # rows that are tried in the search for the worst pair
_NUMBERS_PER_BATCH = 2**20  # random numbers drawn at a time
_MOST_UNITS = 1000  # units in which two tables differ
_TRIALS_OF_SHARED_NOISE = 32  # trials between two readings of the clock
# Discrete and rounded Gaussians of larger scales differ by less than 1e-6 of a probability.
_LEAST_CONTINUOUS_SCALE = 2**10
Row: TypeAlias = Mapping[str, int]
"""A row: its cell of every attribute, and its value of every measure in units of the measure."""
UnitRows: TypeAlias = tuple[tuple[Row, int], ...]
"""The rows of a privacy unit, each with its multiplicity."""
Loss = Callable[[float, float], float]
"""A function that returns a lower bound on the loss.

Its arguments bound an event's probability: from below on one table, and from above on the other.
"""
Tails = Callable[[float, FloatArray], tuple[FloatArray, FloatArray]]
"""A function of a factor and of thresholds.

The noise is smaller by this factor. The function returns P(statistic >= threshold) on each of the
two tables.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long a test runs, its error probability, and its source of noise.

    If ``trials`` is None, a test runs for ``seconds``. ``risk`` is the probability that a bound is
    wrong.
    """

    trials: int | None
    seconds: float
    risk: float
    entropy: EntropySource

    def batches(self, largest_batch: int) -> Iterator[int]:
        """Yield sizes of batches of trials until the trials suffice or time is over."""
        end = time.monotonic() + self.seconds
        trials_done = 0
        if self.trials is None:
            trial_limit = math.inf
        else:
            trial_limit = self.trials
        while trials_done < trial_limit and (
            self.trials is not None or trials_done < LEAST_TRIALS or time.monotonic() < end
        ):
            count = int(min(largest_batch, trial_limit - trials_done))
            trials_done += count
            yield count


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """The result of one test: the claimed and the certified loss per unit."""

    name: str
    claim: float
    lower_bound: float
    trials: int
    units: int

    @property
    def is_within_claim(self) -> bool:
        """Whether the lower bound is at most the claimed loss."""
        return self.lower_bound <= self.claim * (1 + 1e-6)


def _select_event(
    first: FloatArray,
    second: FloatArray,
    risk: float,
    score: Callable[[FloatArray, FloatArray, FloatArray], Any],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a threshold, and bounds on the probabilities of two samples above it.

    The bounds are a lower bound on P(first >= threshold) and an upper bound on P(second >=
    threshold). All arrays have the shape (1,).

    The first half of the draws selects the threshold with the highest score, and the second half
    yields the bounds. Each bound is wrong with probability ``risk``.
    """
    half = len(first) // 2

    def probabilities(
        part: slice, thresholds: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return thresholds, and bounds on each sample's probability to reach them."""
        above = [
            len(sample[part]) - np.searchsorted(np.sort(sample[part]), thresholds)
            for sample in (first, second)
        ]
        return (
            thresholds,
            clopper_pearson_lower(above[0], len(first[part]), risk),
            1 - clopper_pearson_lower(len(second[part]) - above[1], len(second[part]), risk),
        )

    # Try a hundred quantiles of the draws of each table.
    tried = [
        np.quantile(sample[:half], np.linspace(0.005, 0.995, 100), method="lower")
        for sample in (first, second)
    ]
    probabilities_of_half = probabilities(slice(half), np.unique(np.concatenate(tried)))
    best = int(np.argmax(score(*probabilities_of_half)))
    return probabilities(slice(half, None), probabilities_of_half[0][best : best + 1])


def certify_loss(first: FloatArray, second: FloatArray, risk: float, loss_of: Loss) -> float:
    """Return a lower bound on the privacy loss, from draws on two tables.

    The draws are values of one statistic.

    The bound is computed from draws of a statistic on two tables.
    """
    _, low, high = _select_event(
        first, second, risk, lambda _, low, high: list(map(loss_of, low.tolist(), high.tolist()))
    )
    return loss_of(float(low[0]), float(high[0]))


def noise_shortfall(first: FloatArray, second: FloatArray, risk: float, tails: Tails) -> float:
    """Return a lower bound on the factor by which noise is smaller than claimed.

    The factor is at least 1/2. If it is at most 1, the claimed noise explains the draws.
    """
    event = _select_event(
        first,
        second,
        risk,
        lambda thresholds, low, high: _smallest_factors(thresholds, low, high, tails),
    )
    return float(_smallest_factors(*event, tails)[0])


def _smallest_factors(
    thresholds: FloatArray, low: FloatArray, high: FloatArray, tails: Tails
) -> FloatArray:
    """Return the smallest factor that satisfies both bounds, for each threshold.

    The factor is rounded down to a grid. A factor is accepted if the bounds allow the probabilities
    at this factor or at the next larger factor of the grid.
    """
    least_allowed = np.full(len(thresholds), _SCALE_FACTORS_TRIED[-1])
    more_often, less_often = tails(_SCALE_FACTORS_TRIED[-1], thresholds)
    for factor in _SCALE_FACTORS_TRIED[-2::-1].tolist():
        more, less = tails(factor, thresholds)
        allowed = (np.maximum(more_often, more) >= low - _PROBABILITY_ROUNDING) & (
            np.minimum(less_often, less) <= high + _PROBABILITY_ROUNDING
        )
        least_allowed = np.where(allowed, factor, least_allowed)
        more_often = more
        less_often = less
    return least_allowed


def clopper_pearson_lower(hits: Any, trials: int, risk: float) -> FloatArray:
    """Return the lower Clopper-Pearson bound on a probability, element-wise."""
    from scipy.stats import beta

    return np.where(
        hits > 0, beta.ppf(risk, np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1), 0.0
    )


def epsilon_bound(low: float, high: float) -> float:
    """Return a lower bound on epsilon from bounds on an event's probabilities."""
    if low > 0:
        return max(0.0, math.log(low / high))
    return 0.0


def gaussian_mu_bound(low: float, high: float) -> float:
    """Return a lower bound on mu from bounds on an event's probabilities."""
    from scipy.special import ndtri

    if low > 0 and high < 1:
        return max(0.0, float(ndtri(low) - ndtri(high)))
    return 0.0


def rho_bound(low: float, high: float) -> float:
    """Return a lower bound on rho from bounds on an event's probabilities.

    The Renyi divergence of the event is divided by its order, and the bound is the maximum of this
    ratio over all orders. It is at most rho, because post-processing cannot increase a divergence.
    """
    if not 0 < high < low:
        return 0.0
    inside = _RENYI_ORDERS * math.log(low) + (1 - _RENYI_ORDERS) * math.log(high)
    outside = _RENYI_ORDERS * math.log1p(-min(low, 1 - 1e-15)) + (1 - _RENYI_ORDERS) * math.log1p(
        -high
    )
    return max(
        0.0, float((np.logaddexp(inside, outside) / (_RENYI_ORDERS - 1) / _RENYI_ORDERS).max())
    )


def approximate_dp_loss(delta: float, units: int) -> Loss:
    """Return a function that bounds epsilon at a delta from two probabilities.

    The epsilon holds for one unit; the tables differ in ``units`` units (group privacy).
    """

    def allowed(epsilon: float, high: float) -> float:
        return math.exp(units * epsilon) * high + delta * (
            math.expm1(units * epsilon) / math.expm1(epsilon) if epsilon else units
        )

    return lambda low, high: largest_value_satisfying(
        lambda epsilon: allowed(epsilon, high) < low, 700 / units
    )


def largest_value_satisfying(condition: Callable[[float], bool], end: float) -> float:
    """Return the largest number up to ``end`` that satisfies a condition.

    There must be a number up to which the condition holds, and above which it fails. The result is
    rounded down, and 0.0 if the condition never holds.
    """
    low = 0.0
    high = min(1.0, end)
    if not condition(low):
        return 0.0
    while high < end and condition(high):
        high = min(2 * high, end)
    for _ in range(60):
        middle = (low + high) / 2
        if condition(middle):
            low = middle
        else:
            high = middle
    return low


def measure_repeatedly(
    measurements: Measurements,
    codes: Mapping[str, Sequence[int]],
    values: Mapping[str, Sequence[int]],
    count: int,
    entropy: EntropySource = None,
) -> tuple[SignedArray, ...]:
    """Measure a synthetic table ``count`` times; return the noisy answers.

    The kernel draws the noise, by default from the randomness of the system. Each array has the
    shape (queries of a block, count).

    Guarantees: nothing is paid. The trials are cells of an additional attribute. Every cell of this
        attribute is measured separately. So each trial has separate noise of the block's scales.
        The series treats rows as added or removed for both kinds of neighbours, because no row is
        in two trials. Noise that several blocks share is drawn trial by trial.
    """
    if measurements.k_norm_groups():
        return _measure_trial_by_trial(measurements, codes, values, count, entropy)
    # Longer than the name of every attribute, and so different from all.
    trial = "trial" + "'" * max(map(len, measurements.domain.names))
    kinds = {name: measurements.domain.kind(name) for name in measurements.domain.names}
    domain = Domain({**kinds, trial: Coded(count)}, measures=measurements.domain.measures)
    each = Factor((trial,), Identity(count))
    privacy = replace(measurements.privacy, neighbours="add_remove")
    blocks = tuple(replace(block, factors=(*block.factors, each)) for block in measurements.blocks)
    rows = len(next(iter(codes.values()), ()))
    # Before the measurements are changed, this function checks that they cost no more than they
    # declare.
    series_on_rows(
        ReleaseContract(
            domain=measurements.domain, privacy=measurements.privacy, declared_step=measurements
        ),
        codes,
        values,
        entropy,
    )
    tiled_codes = {name: np.tile(column, count) for name, column in codes.items()}
    tiled_values = {name: np.tile(column, count) for name, column in values.items()}
    tiled_codes[trial] = np.repeat(np.arange(count), rows)
    contract = ReleaseContract(
        domain=domain, privacy=privacy, attributes=domain.names, measures=tuple(domain.measures)
    )
    series = series_on_rows(contract, tiled_codes, tiled_values, entropy)
    answers = series.measure(
        replace(measurements, domain=domain, privacy=privacy, blocks=blocks)
    ).values
    return tuple(block.reshape(-1, count) for block in answers)


def _measure_trial_by_trial(
    measurements: Measurements,
    codes: Mapping[str, Sequence[int]],
    values: Mapping[str, Sequence[int]],
    count: int,
    entropy: EntropySource,
) -> tuple[SignedArray, ...]:
    """Measure like `measure_repeatedly`, but with a separate series per trial."""
    contract = ReleaseContract(
        domain=measurements.domain, privacy=measurements.privacy, declared_step=measurements
    )
    table = synthetic_table(measurements.domain, measurements.privacy, codes, values)
    trials = [
        series_on_table(contract, table, entropy).measure(measurements).values for _ in range(count)
    ]
    return tuple(np.stack(blocks, axis=1) for blocks in zip(*trials, strict=True))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tables that differ in some units, and how their exact answers differ.

    The differences concern the exact answers to measured queries.

    Attributes:
        unit_rows: the rows of a unit in the first and in the second table.
        units: the number of units that have these rows.
        queries: the indices of the queries whose answers differ, and of all queries with shared
            noise.
        centres: the exact answers of the second table to these queries, shape (queries,).
        shifts: the exact answers of the first table minus the answers of the second.
        scales: the noise scales of these queries.
        groups: the groups of queries that share K-norm noise.
    """

    unit_rows: tuple[UnitRows, UnitRows]
    units: int
    queries: IntArray
    centres: IntArray
    shifts: FloatArray
    scales: FloatArray
    groups: tuple[NoiseGroup, ...] = ()

    @property
    def independent(self) -> BoolArray:
        """A mask of the queries with independent noise, shape (queries,)."""
        mask = np.ones(len(self.queries), dtype=bool)
        for group in self.groups:
            mask[np.concatenate(group.tables)] = False
        return mask

    def distance(self, norm: int) -> float:
        """Return the norm of the answer differences divided by the noise scales."""
        relative = np.abs(self.shifts / self.scales)[self.independent]
        group_distance = sum(float(group.norm(self.shifts)) / group.scale for group in self.groups)
        return float((relative**norm).sum() ** (1 / norm)) + group_distance

    def log_likelihood_ratio(self, noise: IntArray, norm: int) -> FloatArray:
        """Return the log likelihood ratio of the two tables, shape (trials,).

        ``noise`` are the answers minus ``centres``, shape (queries, trials). The ratio is correct
        up to an additive constant.
        """
        noisy = noise.astype(np.float64)
        shifts = self.shifts[:, None]
        scales = self.scales[:, None]
        if norm == 2:
            return np.asarray((noisy * shifts / scales**2).sum(axis=0), dtype=np.float64)
        difference = (np.abs(noisy) - np.abs(noisy - shifts)) / scales
        ratio = difference[self.independent].sum(axis=0)
        for group in self.groups:
            ratio = ratio + (group.norm(noisy) - group.norm(noisy - shifts)) / group.scale
        return np.asarray(ratio, dtype=np.float64)


class Pairs:
    """Builds pairs of neighbouring synthetic tables for measurements."""

    def __init__(self, measured: Measurements) -> None:
        self.measured = measured
        scales = []
        for block in measured.blocks:
            numerators, denominators = row_scales(block, measured.grid)
            scales.append(numerators / denominators)
        self._scales = np.concatenate(scales)
        self._columns: dict[tuple[tuple[str, int], ...], dict[int, int]] = {}
        self._groups = noise_groups(measured)

    def build(self, unit_pair: tuple[UnitRows, UnitRows], units: int) -> Pair:
        """Return two tables with different rows; each has ``units`` equal units.

        ``unit_pair`` contains the rows of a unit in the first and in the second table.
        """
        first, second = (self._amounts_by_query(rows) for rows in unit_pair)
        shifts = {query: first.get(query, 0) - second.get(query, 0) for query in {*first, *second}}
        shared = {int(query) for group in self._groups for query in np.concatenate(group.tables)}
        differing = {query for query, shift in shifts.items() if shift}
        queries = np.array(sorted(differing | shared), dtype=np.int64)
        centres = (
            np.array([second.get(query, 0) for query in queries.tolist()], dtype=np.int64) * units
        )
        shift_values = (
            np.array([shifts.get(query, 0) for query in queries.tolist()], dtype=np.float64) * units
        )
        groups = []
        for group in self._groups:
            positions = tuple(np.searchsorted(queries, table) for table in group.tables)
            groups.append(NoiseGroup(positions, group.scale))
        return Pair(
            unit_pair, units, queries, centres, shift_values, self._scales[queries], tuple(groups)
        )

    def worst(self) -> Pair:
        """Return the pair of tables whose answers to all queries differ most.

        The number of units is chosen to make the difference detectable.
        """
        return self._farthest_pair(lambda pair: pair.distance(self.measured.noise.norm))

    def worst_in_other_blocks(self, pair: Pair) -> Pair | None:
        """Return the pair that differs most in blocks where ``pair`` does not; or None.

        The result is None if there are no such blocks. For a measure that is measured from both of
        its bounds, each bound counts as a block.
        """
        rows_of_copies: list[int] = []
        for block in self.measured.blocks:
            rows_of_copies += [block.rows // block.copies] * block.copies
        ends = np.cumsum(rows_of_copies)
        differing_blocks = np.unique(np.searchsorted(ends, pair.queries, side="right"))

        def distance_in_other_blocks(other: Pair) -> float:
            """Return the largest scaled difference of another pair in these blocks."""
            scaled_shifts = np.abs(other.shifts / other.scales)[
                ~np.isin(np.searchsorted(ends, other.queries, side="right"), differing_blocks)
            ]
            return float(scaled_shifts.max(initial=0.0))

        if len(differing_blocks) < len(ends):
            best = self._farthest_pair(distance_in_other_blocks)
        else:
            best = pair
        if distance_in_other_blocks(best) > 0:
            return best
        return None

    def _farthest_pair(self, distance: Callable[[Pair], float]) -> Pair:
        """Return the pair of tables with the largest ``distance``."""
        pairs = pairs_of_units(self.measured.domain, self.measured.privacy)
        # Among equal distances the first.
        best = max(pairs, key=lambda unit_rows: float(f"{distance(self.build(unit_rows, 1)):.9g}"))
        single = self.build(best, 1)
        single_distance = float(np.max(np.abs(single.shifts) / single.scales))
        enough = math.floor(4 / single.distance(self.measured.noise.norm))
        return self.build(best, max(1, min(_MOST_UNITS, math.ceil(1.5 / single_distance), enough)))

    def _amounts_by_query(self, unit_rows: UnitRows) -> dict[int, int]:
        """Return what a unit adds to the answer of each measured query."""
        added: dict[int, int] = {}
        for row, copies in unit_rows:
            key = tuple(row.items())
            if key not in self._columns:
                self._columns[key] = _query_contributions(self.measured, row)
            for query, value in self._columns[key].items():
                added[query] = added.get(query, 0) + value * copies
        return added


def pairs_of_units(
    domain: Domain, privacy: Privacy, *, equal: bool = False
) -> Iterator[tuple[UnitRows, UnitRows]]:
    """Yield pairs: the rows of one unit in each of two neighbouring tables.

    All rows of a unit are equal. Unless ``equal`` is True, there are also pairs whose rows are in
    many cells: in the largest allowed number of cells, and in half of them. Such pairs are needed
    because rows in all cells cancel in contrasts.
    """
    bound = privacy.max_per_cell
    rows = list(candidate_rows(domain))
    for row in rows:
        yield unit_with_equal_rows(row, privacy), ()
        if bound is not None and not equal:
            yield _unit_with_spread_rows(domain, privacy, row, privacy.max_rows), ()
            if privacy.max_rows > 2 * bound.rows:
                yield _unit_with_spread_rows(domain, privacy, row, privacy.max_rows // 2), ()
    if privacy.neighbours == "replace":
        for first, second in itertools.combinations(rows, 2):
            yield unit_with_equal_rows(first, privacy), unit_with_equal_rows(second, privacy)


def unit_with_equal_rows(row: Row, privacy: Privacy) -> UnitRows:
    """Return a unit with the largest allowed number of equal rows."""
    return ((row, privacy.max_rows if privacy.max_per_cell is None else privacy.max_per_cell.rows),)


def _unit_with_spread_rows(
    domain: Domain, privacy: Privacy, row: Row, number_of_rows: int
) -> UnitRows:
    """Return a unit whose rows are distributed over neighbouring cells.

    Each cell has the largest allowed number of rows. The first cell is the cell of ``row``.
    """
    bound = privacy.max_per_cell
    rows_left = number_of_rows
    rows = list[tuple[Row, int]]()
    if bound is None:
        return unit_with_equal_rows(row, privacy)
    sizes = [domain.kind(name).size for name in bound.attributes]
    first = int(np.ravel_multi_index([row[name] for name in bound.attributes], sizes))
    for step in range(min(math.ceil(rows_left / bound.rows), math.prod(sizes))):
        cell = np.unravel_index((first + step) % math.prod(sizes), sizes)
        copies = min(rows_left, bound.rows)
        rows.append(
            (
                {
                    **row,
                    **{name: int(code) for name, code in zip(bound.attributes, cell, strict=True)},
                },
                copies,
            )
        )
        rows_left -= copies
    return tuple(rows)


def candidate_rows(domain: Domain) -> Iterator[Row]:
    """Yield rows to try, in each cell of a domain or in a sample of the cells.

    In a large domain the sample consists of the first and last cells, the middle and some scattered
    cells.
    """
    sizes = [domain.kind(name).size for name in domain.names]
    for cell, amounts in itertools.product(_candidate_cells(sizes), _candidate_amounts(domain)):
        yield {**dict(zip(domain.names, cell, strict=True)), **amounts}


def _candidate_cells(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return cells of a domain to try, given each attribute's number of cells."""
    if math.prod(sizes) <= _MOST_CANDIDATE_ROWS:
        return list(itertools.product(*(range(size) for size in sizes)))
    cells = [
        tuple(0 for _ in sizes),
        tuple(size - 1 for size in sizes),
        tuple(size // 2 for size in sizes),
    ]
    for number in range(_MOST_CANDIDATE_ROWS):
        scattered = [(number * 2654435761 >> shift) % size for shift, size in enumerate(sizes)]
        cells.append(tuple(scattered))
    return cells


def _candidate_amounts(domain: Domain) -> list[dict[str, int]]:
    """Return amounts of all measures to try: both bounds, and a value between.

    Every row has a value of each measure, because rows without a value are harder to distinguish.
    """
    if not domain.measures:
        return [{}]
    low_amounts = {}
    high_amounts = {}
    amounts_between = {}
    for name, measure in domain.measures.items():
        low = measure.low_units
        high = measure.high_units
        if isinstance(measure, (CompleteCount, ValueCount)):
            low = 1
        low_amounts[name] = low
        high_amounts[name] = high
        amounts_between[name] = high
        if high - low > 1:
            amounts_between[name] = low + max(1, (high - low) // 3)
    return [amounts_between, high_amounts, low_amounts]


def _query_contributions(plan: Measurements, row: Row) -> dict[int, int]:
    """Return what a row adds to the answer of each measured query.

    Contributions are multiples of 1 / grid; zeros are left out.
    """
    column_of_row: dict[int, int] = {}
    starts = itertools.accumulate((block.rows for block in plan.blocks), initial=0)
    for block, start in zip(plan.blocks, starts, strict=False):
        entries = {
            query: added
            for query, added in enumerate(_cell_contributions(plan.domain, block, row))
            if added
        }
        for factor in block.factors:
            sizes = [plan.domain.kind(name).size for name in factor.attributes]
            cell = np.zeros(factor.operator.size, dtype=np.int64)
            cell[np.ravel_multi_index([row[name] for name in factor.attributes], sizes)] = 1
            column = apply(factor.operator, cell)
            nonzero = [(int(query), int(column[query])) for query in np.flatnonzero(column)]
            joint_entries: dict[int, int] = {}
            for query, value in entries.items():
                first = query * factor.operator.rows
                joint_entries |= {first + at: value * entry for at, entry in nonzero}
            entries = joint_entries
        column_of_row.update({start + query: value * plan.grid for query, value in entries.items()})
    return column_of_row


def _cell_contributions(domain: Domain, block: Block, row: Row) -> tuple[int, ...]:
    """Return the amount, or the two amounts, that a row adds to its cell.

    A row adds 1 or its value. If a block measures both distances, a row adds its distances from
    both bounds of the measure.
    """
    if block.measure is None:
        return (1,)
    value = row[block.measure]
    measure = domain.measure(block.measure)
    if block.ends:
        return value - measure.low_units, measure.high_units - value
    if block.limits is None:
        return (value,)
    name = block.limits.attribute
    return (min(value, int(block.limits.values[0 if name is None else row[name]])),)


def draw_answer_differences(
    measured: Measurements, pair: Pair, count: int, effort: Effort
) -> list[IntArray]:
    """Return the noisy answers on both tables minus the exact ones on the second.

    Each of the two arrays has the shape (queries of the pair, trials).
    """
    samples = []
    for unit_rows in pair.unit_rows:
        every = np.concatenate(
            measure_repeatedly(
                measured,
                *build_columns(measured.domain, unit_rows, pair.units),
                count,
                effort.entropy,
            )
        )
        samples.append(every[pair.queries].astype(np.int64) - pair.centres[:, None])
    return samples


def build_columns(
    domain: Domain, unit_rows: UnitRows, units: int
) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return cell codes and measure values of a table of units with the same rows."""
    rows: list[Mapping[str, int]] = []
    for row, copies in unit_rows:
        rows += [row] * (copies * units)
    codes = {name: [row[name] for row in rows] for name in domain.names}
    values = {name: [row[name] for row in rows] for name in domain.measures}
    return codes, values


def batch_size(measured: Measurements, pair: Pair) -> int:
    """Return the number of trials to draw in one batch.

    A batch consists of as many trials as fit into memory, or of a few trials if each is a separate
    series.
    """
    if measured.k_norm_groups():
        return _TRIALS_OF_SHARED_NOISE
    rows = max(pair.units * sum(copies for _, copies in unit_rows) for unit_rows in pair.unit_rows)
    return max(1, _NUMBERS_PER_BATCH // max(sum(block.rows for block in measured.blocks), rows))


def audit_measurements(measured: Measurements, effort: Effort) -> tuple[AuditResult, ...]:
    """Test the loss of all queries together, and of single queries.

    If the two tables do not differ in some blocks, a second pair of tables tests these blocks.
    """
    pairs = Pairs(measured)
    pair = pairs.worst()
    norm = measured.noise.norm
    draws = _draw_all_trials(measured, pair, effort)
    joint_loss = {
        Noise.DISCRETE_LAPLACE: epsilon_bound,
        Noise.ROUNDED_GAUSSIAN: gaussian_mu_bound,
        Noise.DISCRETE_GAUSSIAN: rho_bound,
    }[measured.noise]
    first, second = (pair.log_likelihood_ratio(trials, norm) for trials in draws)
    # Rho is quadratic in the distance of neighbours, epsilon and mu are linear.
    power = 2 if joint_loss is rho_bound else 1
    bound = certify_loss(first, second, effort.risk, joint_loss) / pair.units**power
    # Epsilon for Laplace noise; mu or rho for Gaussian noise, depending on the budget.
    plan_cost = cost(measured)
    if isinstance(plan_cost, GaussianCost):
        claim = math.sqrt(plan_cost.mu_squared)
    else:
        claim = float(plan_cost.epsilon if isinstance(plan_cost, PureCost) else plan_cost.rho)  # type: ignore[union-attr]
    joint_result = AuditResult(
        name="all queries together",
        claim=claim,
        lower_bound=bound,
        trials=len(first),
        units=pair.units,
    )
    results = [joint_result, *_test_norms(pair, draws, effort)]
    if pair.shifts[pair.independent].any():
        results.append(
            _test_single_query("the most revealing query", measured, pair, draws, effort)
        )
    second_pair = pairs.worst_in_other_blocks(pair)
    if second_pair is not None:
        results.append(
            _test_single_query(
                "the most revealing of the other queries",
                measured,
                second_pair,
                _draw_all_trials(measured, second_pair, effort),
                effort,
            )
        )
    return tuple(results)


def _test_norms(pair: Pair, samples: Sequence[IntArray], effort: Effort) -> Iterator[AuditResult]:
    """Test the K-norm noise of each group of tables."""
    for number, group in enumerate(pair.groups, 1):
        law = NormDistribution([len(table) for table in group.tables])
        noises = samples[0] - pair.shifts[:, None], samples[1].astype(np.float64)
        first, second = (-group.norm(noise) for noise in noises)

        def tails(
            factor: float,
            thresholds: FloatArray,
            law: NormDistribution = law,
            scale: float = group.scale,
        ) -> tuple[FloatArray, FloatArray]:
            """Return, twice, the probability to reach each threshold at smaller noise."""
            chance = law.at_most(-thresholds, scale / factor)
            return chance, chance

        factor = noise_shortfall(first, second, effort.risk, tails)
        claim = float(group.norm(pair.shifts)) / group.scale / pair.units
        yield AuditResult(
            name=f"the size of the K-norm noise of group {number}",
            claim=claim,
            lower_bound=claim * factor,
            trials=len(first),
            units=pair.units,
        )


def _draw_all_trials(measured: Measurements, pair: Pair, effort: Effort) -> list[IntArray]:
    """Draw the trials of both tables: two arrays of shape (queries, trials)."""
    draws = [
        draw_answer_differences(measured, pair, count, effort)
        for count in effort.batches(batch_size(measured, pair))
    ]
    return [np.concatenate(trials, axis=1) for trials in zip(*draws, strict=True)]


def _test_single_query(
    name: str, measured: Measurements, pair: Pair, samples: Sequence[IntArray], effort: Effort
) -> AuditResult:
    """Test the noise of the query whose answers differ most between the tables.

    The test compares the draws with the exact distribution of the query's noise.
    """
    worst = int(np.argmax(np.abs(pair.shifts) / pair.scales * pair.independent))
    if pair.shifts[worst] > 0:
        sign = 1
    else:
        sign = -1
    first, second = (sign * trials[worst].astype(np.float64) for trials in samples)
    shift = float(abs(pair.shifts[worst]))
    scale = float(pair.scales[worst])
    factor = noise_shortfall(first, second, effort.risk, _query_tails(measured.noise, shift, scale))
    claim = shift / scale / pair.units
    return AuditResult(
        name=name, claim=claim, lower_bound=claim * factor, trials=len(first), units=pair.units
    )


def epsilon_of_mu(measured: Measurements, mu: float) -> float | None:
    """Return the epsilon of Gaussian noise with mu at the budget's delta, or None.

    The epsilon is rounded down. The result is None for other noise or other budgets.
    """
    budget = measured.privacy.budget
    if not (isinstance(budget, ApproxDP) and measured.noise is Noise.ROUNDED_GAUSSIAN):
        return None
    if mu > 0:
        return largest_value_satisfying(
            lambda epsilon: not gaussian_is_private(epsilon, mu**2, budget.delta), 2**20
        )
    return 0.0


def _query_tails(noise: Noise, shift: float, scale: float) -> Tails:
    """Return a function that computes a query's tail probabilities on two tables.

    The exact answers on the two tables differ by ``shift``.
    """

    def tails(factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both tables' probabilities to reach thresholds at smaller noise."""
        tail = noise_tail(noise, scale / factor)
        return tail(thresholds - shift), tail(thresholds)

    return tails


def noise_tail(noise: Noise, scale: float) -> Callable[[FloatArray], FloatArray]:
    """Return a function that computes P(noise >= x) for arrays of integers x."""
    from scipy.special import ndtr

    if noise is Noise.ROUNDED_GAUSSIAN or (
        noise is Noise.DISCRETE_GAUSSIAN and scale > _LEAST_CONTINUOUS_SCALE
    ):
        return lambda x: np.asarray(ndtr(-(x - 0.5) / scale), dtype=np.float64)
    if noise is Noise.DISCRETE_LAPLACE:
        below = math.exp(-1 / scale)
        return lambda x: np.where(
            x >= 1,
            np.exp(-np.maximum(x, 1) / scale) / (1 + below),
            1 - np.exp((np.minimum(x, 0) - 1) / scale) / (1 + below),
        )
    reach = math.ceil(12 * scale) + 2
    weights = np.exp(-((np.arange(-reach, reach + 1) / scale) ** 2) / 2)
    above = np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]]) / weights.sum()
    return lambda x: above[np.clip(x + reach, 0, 2 * reach + 1).astype(np.int64)]
