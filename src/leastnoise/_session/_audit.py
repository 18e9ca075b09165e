"""An empirical lower bound on what a plan loses, from the kernel as built, on rows that are made up: no data is read, nothing is paid.

Two tables that differ in some units are measured many times. One half of the trials chooses a threshold of the likelihood ratio, the other
half bounds the probabilities of lying above it by Clopper and Pearson. A second look takes the query that tells most: the law of its noise
is known exactly, so any other law of enough weight is seen, also where all queries together are far from what the budget allows.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._accounting import ApproxDP, GaussianCost, Noise, PureCost
from leastnoise._check import InputError, whole
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._kernel import Entropy, rehearse
from leastnoise._linop import apply
from leastnoise._measurements import Block, Measurements, cost, row_scales
from leastnoise._plan import Plan
from leastnoise._threads import one_thread

_CANDIDATES = 40  # rows that are tried for the worst pair
_BATCH = 2**20  # numbers drawn at a time
_MOST_UNITS = 1000
_LEAST_TRIALS = 200
_ORDERS = 1 + np.geomspace(1e-3, 50, 100)
_SMOOTH = 2**10  # discrete and rounded Gaussians of larger scales differ by less than 1e-6 of a probability


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Args:
        claim: what the plan's cost says: epsilon, mu (Gaussian noise under epsilon and delta) or rho.
        measure: which of them, in a word.
        lower_bound: the same quantity, at least; 0 if nothing was certified.
        epsilon: under epsilon and delta: the epsilon of a Gaussian mechanism with this mu; else None.
        query_claim: what the query that tells most loses by itself, per unit: epsilon of Laplace noise, mu of Gaussian noise.
        query_lower_bound: the same, at least.
        confidence: that both bounds hold, together.
        trials: of each of the two tables.
        units: in how many units the tables differ; bounds are for one.
        held: False if a bound exceeds its claim: then the plan is not private as it says.
    """

    claim: float
    measure: str
    lower_bound: float
    epsilon: float | None
    query_claim: float
    query_lower_bound: float
    confidence: float
    trials: int
    units: int
    held: bool


@dataclass(frozen=True, slots=True)
class _Pair:
    """Rows of two tables that differ in some units.

    Args:
        rows: of both, by attribute and measure.
        units: in how many units they differ.
        places: the queries whose answers differ, among all of the plan.
        centres: the answers of the second table there, in multiples of 1 / grid.
        shifts: what the first answers more.
        scales: of the noise.
    """

    rows: tuple[dict[str, Any], dict[str, Any]]
    units: int
    places: IntArray
    centres: IntArray
    shifts: FloatArray
    scales: FloatArray


@one_thread()
def audit(
    plan: Plan,
    *,
    trials: int | None = None,
    seconds: float = 20.0,
    confidence: float = 0.999,
    entropy: Entropy | None = None,
) -> Audit:
    """Bound from below what a plan loses, by running the kernel on made-up rows.

    Args:
        plan: as ``plan`` made it; data-aware plans are refused.
        trials: of each of two tables; None for as many as the seconds allow.
        seconds: where no number of trials is given.
        confidence: with which all bounds together hold, below 1.
        entropy: for tests; by default the system's randomness.

    Returns:
        The bounds beside the claims. A bound above its claim is, at the given confidence, a fault of the program or of the machine.

    Raises:
        InputError: a data-aware plan, or fewer than 200 trials.

    Source: Clopper and Pearson 1934; Dong, Roth and Su 2019 (mu); van Erven and Harremoes 2014 (divergence of an event, for rho).

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> found = ln.audit(made, trials=2000)
    >>> found.claim, found.held, 0 < found.lower_bound <= 1
    (1.0, True, True)
    """
    measured = plan.measurements
    if measured is None:
        raise InputError(
            "Only plans that do not look at the data can be audited; got a data-aware one, whose steps are tested one by one in the "
            "project's own suite. Choose strategy = 'auto'."
        )
    if trials is not None:
        whole("trials", trials, _LEAST_TRIALS)
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence must be from 0.5 to below 1; got {confidence}.")
    pair = _worst_pair(measured)
    first, second = (np.concatenate(drawn, axis=1) for drawn in zip(*_draws(measured, pair, trials, seconds, entropy), strict=True))
    risk = (1 - confidence) / 4  # two events, two probabilities each
    power = measured.noise.norm
    loss_of = _log_ratio if power == 1 else _gap
    of_all = _divergence if measured.noise is Noise.DISCRETE_GAUSSIAN else loss_of
    low, high = _certified(_ratio(pair, first, power), _ratio(pair, second, power), risk, of_all)
    claim, name, bound, epsilon = _whole(measured, pair, low, high)
    worst = int(np.argmax(np.abs(pair.shifts) / pair.scales))
    sign = 1 if pair.shifts[worst] > 0 else -1
    low, high = _certified(sign * first[worst].astype(np.float64), sign * second[worst].astype(np.float64), risk, loss_of)
    shift, scale = int(abs(pair.shifts[worst])), float(pair.scales[worst])
    query_claim = shift / scale / pair.units
    factor = _explained(measured.noise, shift, scale, low, high)
    return Audit(
        claim=claim,
        measure=name,
        lower_bound=bound,
        epsilon=epsilon,
        query_claim=query_claim,
        query_lower_bound=query_claim * factor,
        confidence=confidence,
        trials=first.shape[1],
        units=pair.units,
        held=bound <= claim * (1 + 1e-9) and factor <= 1 + 1e-6,
    )


# --- the worst pair of tables ----------------------------------------------------------------------------------------------------


def _worst_pair(plan: Measurements) -> _Pair:
    """Of some rows the one (or, for replace, the two) that all queries together tell best, and enough units of it to be told at all."""
    starts = np.cumsum([0, *(block.rows for block in plan.blocks)])
    scales = np.concatenate([top / bottom for top, bottom in (row_scales(block, plan.grid) for block in plan.blocks)])
    power = plan.noise.norm
    rows = list(_candidates(plan))
    columns = [_column(plan, row, starts) for row in rows]
    none: dict[int, int] = {}
    pairs = [(place, None) for place in range(len(rows))]
    if plan.privacy.neighbours == "replace":
        pairs += [two for two in itertools.combinations(range(len(rows)), 2)]  # type: ignore[misc]  # noqa: C416 - for the types

    def apart(one: int, two: int | None) -> dict[int, int]:
        other = none if two is None else columns[two]
        shifts = {place: columns[one].get(place, 0) - other.get(place, 0) for place in {*columns[one], *other}}
        return {place: shift for place, shift in shifts.items() if shift}

    def told(two: tuple[int, int | None]) -> float:
        return math.fsum(abs(shift / scales[place]) ** power for place, shift in apart(*two).items())

    one, two = max(pairs, key=told)
    shifts = apart(one, two)
    places = np.array(sorted(shifts), dtype=np.int64)
    own = _equal_rows(plan)
    each = np.array([shifts[place] for place in places.tolist()], dtype=np.float64) * own
    together = told((one, two)) ** (1 / power) * own
    alone = float(np.max(np.abs(each) / scales[places]))
    units = max(1, min(_MOST_UNITS, math.ceil(1.5 / alone), math.floor(4 / together)))
    count = units * own
    tables = tuple({} if place is None else {name: [value] * count for name, value in rows[place].items()} for place in (one, two))
    empty: dict[str, list[int]] = {name: [] for name in (*plan.domain.names, *plan.domain.measures)}
    second = none if two is None else columns[two]
    centres = np.array([second.get(place, 0) for place in places.tolist()], dtype=np.int64) * count
    return _Pair((tables[0], tables[1] or empty), units, places, centres, each * units, scales[places])


def _equal_rows(plan: Measurements) -> int:
    """How many equal rows a unit may have; where few may be in a cell, others that it may have elsewhere are not tried."""
    bound = plan.privacy.max_per_cell
    return plan.privacy.max_rows if bound is None else bound.rows


def _candidates(plan: Measurements) -> Iterator[dict[str, int]]:
    """Rows at the ends of all attributes, and others scattered over the cells: public, of the domain alone."""
    sizes = {name: plan.domain.kind(name).size for name in plan.domain.names}
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
    amounts = [{name: measure.high_units for name, measure in plan.domain.measures.items()}]
    if plan.domain.measures:
        amounts.append({name: measure.low_units for name, measure in plan.domain.measures.items()})
    for cell, amount in itertools.product(cells, amounts):
        yield {**dict(zip(sizes, cell, strict=True)), **amount}


def _column(plan: Measurements, row: dict[str, int], starts: IntArray) -> dict[int, int]:
    """What a row adds to all measured queries, in multiples of 1 / grid, by their places; zeros left out."""
    found: dict[int, int] = {}
    for block, start in zip(plan.blocks, starts.tolist(), strict=False):
        added = _added(block, row)
        entries = {0: added} if added else {}
        for factor in block.factors:
            sizes = [plan.domain.kind(name).size for name in factor.attributes]
            cell = np.zeros(factor.operator.size, dtype=np.int64)
            cell[np.ravel_multi_index([row[name] for name in factor.attributes], sizes)] = 1
            column = apply(factor.operator, cell)
            own = [(int(place), int(column[place])) for place in np.flatnonzero(column)]
            entries = {place * factor.operator.rows + at: value * entry for place, value in entries.items() for at, entry in own}
        found.update({start + place: value * plan.grid for place, value in entries.items()})
    return found


def _added(block: Block, row: dict[str, int]) -> int:
    if block.measure is None:
        return 1
    if block.limits is None:
        return row[block.measure]
    name = block.limits.attribute
    return min(row[block.measure], int(block.limits.values[0 if name is None else row[name]]))


def _draws(
    plan: Measurements, pair: _Pair, trials: int | None, seconds: float, entropy: Entropy | None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Batches of what the two tables give in the queries in which they differ."""
    most = max(1, _BATCH // max(sum(block.rows for block in plan.blocks), pair.units * _equal_rows(plan)))
    end, done = time.monotonic() + seconds, 0
    wanted = trials if trials is not None else math.inf
    while done < wanted and (trials is not None or done < _LEAST_TRIALS or time.monotonic() < end):
        count = int(min(most, wanted - done))
        drawn = []
        for rows in pair.rows:
            codes = {name: rows[name] for name in plan.domain.names}
            values = {name: rows[name] for name in plan.domain.measures}
            every = np.concatenate(rehearse(plan, codes, values, count, entropy))
            drawn.append(every[pair.places].astype(np.int64) - pair.centres[:, None])
        done += count
        yield drawn[0], drawn[1]


# --- bounds ----------------------------------------------------------------------------------------------------------------------


def _ratio(pair: _Pair, drawn: IntArray, power: int) -> FloatArray:
    """The logarithm of the likelihood ratio of the two tables, up to a constant, for each trial."""
    noisy, shifts, scales = drawn.astype(np.float64), pair.shifts[:, None], pair.scales[:, None]
    if power == 2:
        return np.asarray((noisy * shifts / scales**2).sum(axis=0), dtype=np.float64)
    return np.asarray(((np.abs(noisy) - np.abs(noisy - shifts)) / scales).sum(axis=0), dtype=np.float64)


def _certified(first: FloatArray, second: FloatArray, risk: float, loss_of: Callable[[float, float], float]) -> tuple[float, float]:
    """At least how often the first is above a threshold, and at most how often the second is; each wrong with at most the given risk.

    One half of each chooses the threshold that would certify most, the other half certifies.
    """
    half = len(first) // 2
    chosen = np.unique(np.concatenate([np.quantile(own[:half], np.linspace(0.005, 0.995, 100)) for own in (first, second)]))
    above = [half - np.searchsorted(np.sort(own[:half]), chosen) for own in (first, second)]
    low, high = _least(above[0], half, risk), _most(above[1], half, risk)
    best = chosen[int(np.argmax([loss_of(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]))]
    rest = len(first) - half
    return (
        float(_least(np.array([(first[half:] >= best).sum()]), rest, risk)[0]),
        float(_most(np.array([(second[half:] >= best).sum()]), rest, risk)[0]),
    )


def _least(hits: Any, trials: int, risk: float) -> FloatArray:
    from scipy.stats import beta

    return np.where(hits > 0, beta.ppf(risk, np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1), 0.0)


def _most(hits: Any, trials: int, risk: float) -> FloatArray:
    from scipy.stats import beta

    return np.where(hits < trials, beta.isf(risk, np.minimum(hits, trials - 1) + 1, trials - np.minimum(hits, trials - 1)), 1.0)


def _log_ratio(low: float, high: float) -> float:
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _gap(low: float, high: float) -> float:
    """The least mu of a Gaussian mechanism with such an event."""
    from scipy.special import ndtri

    return max(0.0, float(ndtri(low) - ndtri(high))) if low > 0 and high < 1 else 0.0


def _divergence(low: float, high: float) -> float:
    """The largest Renyi divergence of an event over its order: at most rho, as no function of an output is farther apart than it is."""
    if not 0 < high < low:
        return 0.0
    inside = _ORDERS * math.log(low) + (1 - _ORDERS) * math.log(high)
    outside = _ORDERS * math.log1p(-min(low, 1 - 1e-15)) + (1 - _ORDERS) * math.log1p(-high)
    return max(0.0, float((np.logaddexp(inside, outside) / (_ORDERS - 1) / _ORDERS).max()))


def _whole(plan: Measurements, pair: _Pair, low: float, high: float) -> tuple[float, str, float, float | None]:
    """Claim, its name, the bound for one unit and, under epsilon and delta, an epsilon."""
    spent = cost(plan)
    if isinstance(spent, PureCost):
        return float(spent.epsilon), "epsilon", _log_ratio(low, high) / pair.units, None
    if isinstance(spent, GaussianCost):
        bound, budget = _gap(low, high) / pair.units, plan.privacy.budget
        epsilon = _gaussian_epsilon(bound, float(budget.delta)) if isinstance(budget, ApproxDP) else None
        return math.sqrt(spent.mu_squared), "mu", bound, epsilon
    return float(spent.rho), "rho", _divergence(low, high) / pair.units**2, None  # type: ignore[union-attr]


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of a Gaussian mechanism, from below."""
    from scipy.special import log_ndtr

    def spent(epsilon: float) -> float:
        return float(np.exp(log_ndtr(mu / 2 - epsilon / mu)) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))

    if mu <= 0 or spent(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while spent(high) > delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return low


# --- the query that tells most ---------------------------------------------------------------------------------------------------


def _explained(noise: Noise, shift: int, scale: float, low: float, high: float) -> float:
    """The least factor by which the noise would have to be smaller than it should be for an event to have these probabilities.

    A test that is right of a shift at least ``low`` often may be wrong at most ``high`` often; exact, from the law of the noise.
    """
    if not _power(_tail(noise, scale * 4), shift, scale * 4, high) < low:
        return 0.0
    small, large = 0.25, 64.0
    for _ in range(40):
        middle = math.sqrt(small * large)
        own = scale / middle
        small, large = (middle, large) if _power(_tail(noise, own), shift, own, high) < low else (small, middle)
    return small


def _power(tail: Callable[[FloatArray], FloatArray], shift: int, scale: float, level: float) -> float:
    """The largest probability of an event under the shift that without it has at most the given one: thresholds, and mixtures of two."""
    reach = math.ceil(40 * scale) + 2
    at = np.unique(np.rint(np.linspace(-reach, shift + reach, 20001)))
    wrong, right = tail(at)[::-1], tail(at - shift)[::-1]
    if len(at) < 2 * reach + shift + 1:  # not all thresholds: between two of them the later one's power at the earlier one's level
        place = int(np.searchsorted(wrong, level, side="right"))
        return float(right[min(place, len(right) - 1)])
    return float(np.interp(level, wrong, right))


def _tail(noise: Noise, scale: float) -> Callable[[FloatArray], FloatArray]:
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
