"""Measurements of made-up rows, many times over, and what draws of two tables tell apart.

Measurements of two tables that are made up: how far apart what comes out is, and whether it follows the law of the noise.

All queries together are looked at by the likelihood ratio. The query that tells most is looked at by itself: the law of its noise is known
exactly, so any other law of enough weight is seen, also where all queries together are far from what the budget allows.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from leastnoise._accounting import ApproxDP, GaussianCost, Noise, Privacy, PureCost
from leastnoise._audit._bounds import Effort, Part, Tails, certified, divergence, gap, gaussian_epsilon, log_ratio, sharpness
from leastnoise._audit._made_up import Source, on_rows
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._domain import Coded, Domain, ValueCount
from leastnoise._kernel import Terms
from leastnoise._linop import Identity, SignedArray, apply
from leastnoise._measurements import Block, Factor, Measurements, cost, row_scales


def rehearse(
    measurements: Measurements,
    codes: Mapping[str, Sequence[int]],
    values: Mapping[str, Sequence[int]],
    count: int,
    entropy: Source = None,
) -> tuple[SignedArray, ...]:
    """Measure made-up rows many times, independently, with the kernel's own noise and, by default, the system's randomness.

    Guarantees: nothing is paid. The trials are an attribute more, along which every cell is measured by itself, so that each has its own
        noise of the block's scales. The series is one of added or removed rows, whatever the measurements': no row is in two trials.
    """
    trial = "trial" + "'" * max(map(len, measurements.domain.names))  # longer than every attribute's name, so none of them
    kinds = {name: measurements.domain.kind(name) for name in measurements.domain.names}
    domain = Domain({**kinds, trial: Coded(count)}, measures=measurements.domain.measures)
    each, privacy = Factor((trial,), Identity(count)), replace(measurements.privacy, neighbours="add_remove")
    blocks = tuple(replace(block, factors=(*block.factors, each)) for block in measurements.blocks)
    rows = len(next(iter(codes.values()), ()))
    # that the measurements cost no more than they declare is asked before they are changed
    on_rows(Terms(domain=measurements.domain, privacy=measurements.privacy, only=measurements), codes, values, entropy)
    several: dict[str, Any] = {name: np.tile(np.array(own, dtype=np.int64), count) for name, own in codes.items()}
    amounts: dict[str, Any] = {name: np.tile(np.array(own, dtype=np.int64), count) for name, own in values.items()}
    several[trial] = np.repeat(np.arange(count), rows)
    terms = Terms(domain=domain, privacy=privacy, attributes=domain.names, measures=tuple(domain.measures))
    series = on_rows(terms, several, amounts, entropy)
    drawn = series.measure(replace(measurements, domain=domain, privacy=privacy, blocks=blocks)).values
    return tuple(own.reshape(-1, count) for own in drawn)


Row: TypeAlias = Mapping[str, int]


"""A row, by the cells of attributes and the units of measures."""


Held: TypeAlias = tuple[tuple[Row, int], ...]


"""The rows of a unit, each with how often it is there."""


_CANDIDATES = 40  # rows that are tried for the worst pair


_BATCH = 2**20  # numbers drawn at a time


_MOST_UNITS = 1000


_SMOOTH = 2**10  # discrete and rounded Gaussians of larger scales differ by less than 1e-6 of a probability


@dataclass(frozen=True, slots=True)
class Pair:
    """What measurements see of two tables that differ in some units."""

    held: tuple[Held, Held]
    units: int
    places: IntArray
    centres: IntArray
    shifts: FloatArray
    scales: FloatArray

    def distance(self, norm: int) -> float:
        """Of the answers, in units of their noise."""
        return float((np.abs(self.shifts / self.scales) ** norm).sum() ** (1 / norm))

    def ratio(self, drawn: IntArray, norm: int) -> FloatArray:
        """The logarithm of the likelihood ratio of the two tables, up to a constant, for each trial."""
        noisy, shifts, scales = drawn.astype(np.float64), self.shifts[:, None], self.scales[:, None]
        if norm == 2:
            return np.asarray((noisy * shifts / scales**2).sum(axis=0), dtype=np.float64)
        return np.asarray(((np.abs(noisy) - np.abs(noisy - shifts)) / scales).sum(axis=0), dtype=np.float64)


class Pairs:
    """Pairs of tables for measurements."""

    def __init__(self, measured: Measurements) -> None:
        self.measured = measured
        self._scales = np.concatenate([top / bottom for top, bottom in (row_scales(block, measured.grid) for block in measured.blocks)])
        self._columns: dict[tuple[tuple[str, int], ...], dict[int, int]] = {}

    def of(self, one: Held, other: Held, units: int) -> Pair:
        """Some units that have one thing, or another."""
        first, second = self._told(one), self._told(other)
        shifts = {place: first.get(place, 0) - second.get(place, 0) for place in {*first, *second}}
        places = np.array(sorted(place for place, shift in shifts.items() if shift), dtype=np.int64)
        centres = np.array([second.get(place, 0) for place in places.tolist()], dtype=np.int64) * units
        apart = np.array([shifts[place] for place in places.tolist()], dtype=np.float64) * units
        return Pair((one, other), units, places, centres, apart, self._scales[places])

    def worst(self) -> Pair:
        """Of some units the one (or, for replace, the two) that all queries tell best, and enough of it to be told at all."""
        norm = self.measured.noise.norm
        return self._best(lambda pair: pair.distance(norm))

    def unseen_by(self, pair: Pair) -> Pair | None:
        """The units told best by one query of blocks, or of a measure's end, whose answers do not differ for a pair; None without any."""
        ends = np.cumsum([block.rows // block.copies for block in self.measured.blocks for _ in range(block.copies)])
        seen = set(np.searchsorted(ends, pair.places, side="right").tolist())

        def told(other: Pair) -> float:
            blocks = np.searchsorted(ends, other.places, side="right").tolist()
            apart = np.abs(other.shifts / other.scales).tolist()
            return max((one for block, one in zip(blocks, apart, strict=True) if block not in seen), default=0.0)

        best = self._best(told) if len(seen) < len(ends) else pair
        return best if told(best) > 0 else None

    def _best(self, told: Callable[[Pair], float]) -> Pair:
        pairs = pairs_of_units(self.measured.domain, self.measured.privacy)
        best = max(pairs, key=lambda two: float(f"{told(self.of(two[0], two[1], 1)):.9g}"))  # of equal ones the first
        single = self.of(best[0], best[1], 1)
        alone = float(np.max(np.abs(single.shifts) / single.scales))
        most = math.floor(4 / single.distance(self.measured.noise.norm))
        return self.of(best[0], best[1], max(1, min(_MOST_UNITS, math.ceil(1.5 / alone), most)))

    def _told(self, held: Held) -> dict[int, int]:
        """What the rows of a unit add to all measured queries."""
        told: dict[int, int] = {}
        for row, often in held:
            for place, value in self._column(row).items():
                told[place] = told.get(place, 0) + value * often
        return told

    def _column(self, row: Row) -> dict[int, int]:
        key = tuple(row.items())
        if key not in self._columns:
            self._columns[key] = _column(self.measured, row)
        return self._columns[key]


def pairs_of_rows(domain: Domain, privacy: Privacy) -> Iterator[tuple[Row, Row | None]]:
    """Rows to be added or removed, and for replace two of them."""
    rows = list(candidates(domain))
    yield from ((row, None) for row in rows)
    if privacy.neighbours == "replace":
        yield from itertools.combinations(rows, 2)


def pairs_of_units(domain: Domain, privacy: Privacy) -> Iterator[tuple[Held, Held]]:
    """Units to be added or removed, and for replace two of them: of equal rows, or of rows in as many cells as it may have rows in."""
    for one, other in pairs_of_rows(domain, privacy):
        yield held(one, privacy), held(other, privacy)
        if privacy.max_per_cell is not None and other is None:
            yield spread(domain, privacy, one), ()


def held(row: Row | None, privacy: Privacy) -> Held:
    """A unit of equal rows, or nothing."""
    return () if row is None else ((row, equal_rows(privacy)),)


def spread(domain: Domain, privacy: Privacy, row: Row) -> Held:
    """A unit that has all its rows: as many as may be in the cell of a row, as many in the next cell, and so on until there are enough."""
    bound, left, found = privacy.max_per_cell, privacy.max_rows, list[tuple[Row, int]]()
    if bound is None:
        return held(row, privacy)
    sizes = [domain.kind(name).size for name in bound.attributes]
    first = int(np.ravel_multi_index([row[name] for name in bound.attributes], sizes))
    for step in range(min(math.ceil(left / bound.rows), math.prod(sizes))):
        cell = np.unravel_index((first + step) % math.prod(sizes), sizes)
        often = min(left, bound.rows)
        found.append(({**row, **{name: int(code) for name, code in zip(bound.attributes, cell, strict=True)}}, often))
        left -= often
    return tuple(found)


def equal_rows(privacy: Privacy) -> int:
    """How many equal rows a unit may have."""
    return privacy.max_rows if privacy.max_per_cell is None else privacy.max_per_cell.rows


def candidates(domain: Domain) -> Iterator[Row]:
    """Rows at the ends of all attributes, and others scattered over the cells: public, of the domain alone.

    Values between the ends of a measure come first: of rows that are told equally well they alone add to both distances from the ends.
    """
    sizes = {name: domain.kind(name).size for name in domain.names}
    listed = math.prod(sizes.values()) <= _CANDIDATES
    cells = (
        list(itertools.product(*(range(size) for size in sizes.values())))
        if listed
        else [
            tuple(0 for _ in sizes),
            tuple(size - 1 for size in sizes.values()),
            tuple(size // 2 for size in sizes.values()),
            *(tuple((number * 2654435761 >> shift) % size for shift, size in enumerate(sizes.values())) for number in range(_CANDIDATES)),
        ]
    )
    # Every row has a value: those without one are told less well.
    bounds = {name: (1 if isinstance(one, ValueCount) else one.low_units, one.high_units) for name, one in domain.measures.items()}
    between = {name: low + max(1, (high - low) // 3) if high - low > 1 else high for name, (low, high) in bounds.items()}
    amounts = [between, {name: high for name, (_, high) in bounds.items()}, {name: low for name, (low, _) in bounds.items()}]
    amounts = amounts if bounds else [{}]
    for cell, amount in itertools.product(cells, amounts):
        yield {**dict(zip(sizes, cell, strict=True)), **amount}


def _column(plan: Measurements, row: Row) -> dict[int, int]:
    """What a row adds to all measured queries, in multiples of 1 / grid, by their places; zeros left out."""
    found: dict[int, int] = {}
    starts = itertools.accumulate((block.rows for block in plan.blocks), initial=0)
    for block, start in zip(plan.blocks, starts, strict=False):
        entries = {place: added for place, added in enumerate(_added(plan.domain, block, row)) if added}
        for factor in block.factors:
            sizes = [plan.domain.kind(name).size for name in factor.attributes]
            cell = np.zeros(factor.operator.size, dtype=np.int64)
            cell[np.ravel_multi_index([row[name] for name in factor.attributes], sizes)] = 1
            column = apply(factor.operator, cell)
            own = [(int(place), int(column[place])) for place in np.flatnonzero(column)]
            entries = {place * factor.operator.rows + at: value * entry for place, value in entries.items() for at, entry in own}
        found.update({start + place: value * plan.grid for place, value in entries.items()})
    return found


def _added(domain: Domain, block: Block, row: Row) -> tuple[int, ...]:
    """What a row adds to its cell; to the cells of both distances where these are measured."""
    if block.measure is None:
        return (1,)
    value, measure = row[block.measure], domain.measure(block.measure)
    if block.ends:
        return value - measure.low_units, measure.high_units - value
    if block.limits is None:
        return (value,)
    name = block.limits.attribute
    return (min(value, int(block.limits.values[0 if name is None else row[name]])),)


def draw(measured: Measurements, pair: Pair, count: int, effort: Effort) -> tuple[IntArray, IntArray]:
    """What the two tables give in the queries in which they differ, less what the second would give without noise."""
    drawn = []
    for held in pair.held:
        every = np.concatenate(rehearse(measured, *columns_of(measured.domain, held, pair.units), count, effort.entropy))
        drawn.append(every[pair.places].astype(np.int64) - pair.centres[:, None])
    return drawn[0], drawn[1]


def columns_of(domain: Domain, held: Held, units: int) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Codes and values of a table of so many units that all have the same."""
    rows = [row for row, often in held for _ in range(often * units)]
    codes, values = ({name: [row[name] for row in rows] for name in names} for names in (domain.names, domain.measures))
    return codes, values


def at_a_time(measured: Measurements, pair: Pair) -> int:
    """How many trials fit into memory together."""
    rows = max(pair.units * sum(often for _, often in held) for held in pair.held)
    return max(1, _BATCH // max(sum(block.rows for block in measured.blocks), rows))


def measured_parts(measured: Measurements, effort: Effort) -> tuple[Part, ...]:
    """All queries together, the most telling query, and the most telling one of blocks whose tables share one answer."""
    pairs = Pairs(measured)
    pair, norm = pairs.worst(), measured.noise.norm
    first, second = _drawn(measured, pair, effort)
    of_all = {Noise.DISCRETE_LAPLACE: log_ratio, Noise.ROUNDED_GAUSSIAN: gap, Noise.DISCRETE_GAUSSIAN: divergence}[measured.noise]
    bound = of_all(*certified(pair.ratio(first, norm), pair.ratio(second, norm), effort.risk, of_all)) / pair.units
    if of_all is divergence:
        bound /= pair.units
    together = Part(name="all queries together", claim=claim_of(measured), lower_bound=bound, trials=first.shape[1], units=pair.units)
    alone = _alone("the query that tells most", measured, pair, (first, second), effort)
    other = pairs.unseen_by(pair)
    if other is None:
        return together, alone
    return together, alone, _alone("the query that tells most of the rest", measured, other, _drawn(measured, other, effort), effort)


def _drawn(measured: Measurements, pair: Pair, effort: Effort) -> tuple[IntArray, IntArray]:
    draws = [draw(measured, pair, count, effort) for count in effort.batches(at_a_time(measured, pair))]
    first, second = (np.concatenate(drawn, axis=1) for drawn in zip(*draws, strict=True))
    return first, second


def _alone(name: str, measured: Measurements, pair: Pair, drawn: tuple[IntArray, IntArray], effort: Effort) -> Part:
    """The query that tells a pair best, by the law of its noise."""
    worst = int(np.argmax(np.abs(pair.shifts) / pair.scales))
    sign = 1 if pair.shifts[worst] > 0 else -1
    one, other = (sign * own[worst].astype(np.float64) for own in drawn)
    shift, scale = float(abs(pair.shifts[worst])), float(pair.scales[worst])
    factor = sharpness(one, other, effort.risk, _tails(measured.noise, shift, scale))
    claim = shift / scale / pair.units
    return Part(name=name, claim=claim, lower_bound=claim * factor, trials=drawn[0].shape[1], units=pair.units)


def claim_of(measured: Measurements) -> float:
    """Epsilon of Laplace noise, mu of Gaussian noise under epsilon and delta, rho."""
    spent = cost(measured)
    if isinstance(spent, PureCost):
        return float(spent.epsilon)
    return math.sqrt(spent.mu_squared) if isinstance(spent, GaussianCost) else float(spent.rho)  # type: ignore[union-attr]


def epsilon_of(measured: Measurements, bound: float) -> float | None:
    """The epsilon of a mu, at the budget's delta; None for other measures."""
    budget = measured.privacy.budget
    if not (isinstance(budget, ApproxDP) and measured.noise is Noise.ROUNDED_GAUSSIAN):
        return None
    return gaussian_epsilon(bound, float(budget.delta))


def _tails(noise: Noise, shift: float, scale: float) -> Tails:
    """Of one query, whose answers differ by a shift."""

    def tails(factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        tail = tail_of(noise, scale / factor)
        return tail(thresholds - shift), tail(thresholds)

    return tails


def tail_of(noise: Noise, scale: float) -> Callable[[FloatArray], FloatArray]:
    """P(noise >= x) for whole numbers x."""
    from scipy.special import ndtr

    if noise is Noise.ROUNDED_GAUSSIAN or (noise is Noise.DISCRETE_GAUSSIAN and scale > _SMOOTH):
        return lambda x: np.asarray(ndtr(-(x - 0.5) / scale), dtype=np.float64)
    if noise is Noise.DISCRETE_LAPLACE:
        below = math.exp(-1 / scale)
        return lambda x: np.where(
            x >= 1, np.exp(-np.maximum(x, 1) / scale) / (1 + below), 1 - np.exp((np.minimum(x, 0) - 1) / scale) / (1 + below)
        )
    reach = math.ceil(12 * scale) + 2
    whole_numbers = np.arange(-reach, reach + 1)
    weights = np.exp(-((whole_numbers / scale) ** 2) / 2)
    above = np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]]) / weights.sum()
    return lambda x: above[np.clip(x + reach, 0, 2 * reach + 1).astype(np.int64)]
