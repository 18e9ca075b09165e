"""An empirical lower bound on what a plan loses: by its measurements, its steps that look at data, its searches for keys.

An empirical lower bound on what a plan loses, from the kernel as built, on rows that are made up: no data is read, nothing is paid.

Plans that look at the data: their steps, on rows that are made up.

What a mechanism does between its steps is public. So what it loses, it loses by its steps: those of a run are asked again, of two tables
that differ in some units, and told apart by the likelihood ratio of all of them together. Then each is looked at by itself.

Searches for keys that nobody could list: what made-up keys tell, and whether their numbers follow the noise and the threshold.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from leastnoise._accounting import ZCDP, ApproxDP, Noise, parameters
from leastnoise._audit._bounds import (
    LEAST_TRIALS,
    Effort,
    Loss,
    Part,
    approximate,
    certified,
    divergence,
    last,
    least,
    log_ratio,
    sharpness,
)
from leastnoise._audit._laws import LAWS, Law
from leastnoise._audit._made_up import Source, keys, made_up, of_table, on_keys, on_rows
from leastnoise._audit._measured import (
    Held,
    Pairs,
    Row,
    at_a_time,
    columns_of,
    draw,
    epsilon_of,
    held,
    measured_parts,
    pairs_of_rows,
    tail_of,
)
from leastnoise._check import InputError, InternalError, whole
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._fitting import allowed_epsilon
from leastnoise._kernel import KeySearch, Selection, Series, Terms
from leastnoise._measurements import Measurements, Observation
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._plan import CategoryPlan, Plan

_MOST_ROWS = 2**22


_MOST_UNITS = 1000


_CHOICES = 2**6  # at a time


@dataclass
class _Recorder:
    """A series that keeps what it is asked."""

    series: Series
    steps: list[Selection | Measurements] = field(default_factory=list)

    def choose(self, selection: Selection) -> Any:
        self.steps.append(selection)
        return self.series.choose(selection)

    def measure(self, measurements: Measurements) -> Observation:
        self.steps.append(measurements)
        return self.series.measure(measurements)


@dataclass(frozen=True, slots=True)
class Way:
    """A way that a mechanism may take."""

    name: str
    steps: tuple[Selection | Measurements, ...]


def ways(plan: Plan, entropy: Source) -> list[Way]:
    """The ways that a mechanism takes on stairs over the cells: of one step, of few, of many, and of as many as there are cells."""
    terms, run = terms_of(plan), mechanism_of(plan).ready(plan)
    sizes = [plan.domain.kind(name).size for name in terms.attributes]
    size = math.prod(sizes)
    height = max(1, min(math.ceil(8 * _noise(plan)), _MOST_ROWS // size))
    found: dict[str, Way] = {}
    for steps in dict.fromkeys((1, max(2, size // 20), max(2, size // 3), size)):
        counts = np.where(np.arange(size) * steps // size % 2 == 1, height, 0)
        cells = np.unravel_index(np.repeat(np.arange(size), counts), sizes)
        rows = int(counts.sum())
        known = {name: own.tolist() for name, own in zip(terms.attributes, cells, strict=True)}
        codes = {name: known.get(name, [0] * rows) for name in plan.domain.names}
        values = {name: [measure.high_units] * rows for name, measure in plan.domain.measures.items()}
        recorder = _Recorder(on_rows(terms, codes, values, entropy))
        facts = run(cast(Series, recorder)).finding.facts()
        name = str(facts.get("regime", "measured"))
        found.setdefault(name, Way(name, tuple(recorder.steps)))
    return list(found.values())


def _noise(plan: Plan) -> float:
    """About what a count of the whole budget is off by."""
    budget = plan.privacy.budget
    return plan.privacy.distance / allowed_epsilon(budget)


def kinds_of_steps(found: list[Way]) -> Iterator[Selection | Measurements]:
    """Each choice and each measurement of some ways, once."""
    seen = set()
    for way in found:
        for step in way.steps:
            key = step.digest() if isinstance(step, Measurements) else repr(step)
            if key not in seen:
                seen.add(key)
                yield step


def _law(plan: Plan, selection: Selection, row: Row) -> Law:
    sizes = [plan.domain.kind(name).size for name in selection.attributes]
    cell = int(np.ravel_multi_index([row[name] for name in selection.attributes], sizes))
    return LAWS[type(selection)](selection, sizes if len(sizes) == 2 else [math.prod(sizes)], cell, plan.privacy)


def _chosen(plan: Plan, selection: Selection, there: Held, units: int, count: int, effort: Effort) -> list[Any]:
    """What a choice gives, several times."""
    table = made_up(plan.domain, plan.privacy, *columns_of(plan.domain, there, units))
    return [of_table(terms_of(plan), table, effort.entropy).choose(selection) for _ in range(count)]


def choice_part(plan: Plan, selection: Selection, effort: Effort) -> Part:
    """A choice by itself: whether it follows its law."""
    row: Row = {**dict.fromkeys(plan.domain.names, 0), **{name: one.high_units for name, one in plan.domain.measures.items()}}
    law = _law(plan, selection, row)
    some, none = list[Any](), list[Any]()
    for count in effort.batches(_CHOICES):
        for own, there in ((some, held(row, plan.privacy)), (none, ())):
            own.extend(_chosen(plan, selection, there, law.units, count, effort))
    factor = sharpness(*law.statistics(some, none), effort.risk, law.tails)
    claim = law.loss(law.units) / law.units
    return Part(name=law.name, claim=claim, lower_bound=claim * factor, trials=len(some), units=law.units)


def way_part(plan: Plan, way: Way, effort: Effort) -> Part:
    """All steps of a way together, as a lower bound on the budget's own number."""
    pairs = {place: Pairs(step) for place, step in enumerate(way.steps) if isinstance(step, Measurements)}

    def told(two: tuple[Row, Row | None]) -> float:
        one, other = (held(row, plan.privacy) for row in two)
        return sum(known.of(one, other, 1).distance(known.measured.noise.norm) for known in pairs.values())

    best = max(pairs_of_rows(plan.domain, plan.privacy), key=told)
    one, other = (held(row, plan.privacy) for row in best)
    units = max(1, min(_MOST_UNITS, math.floor(4 / told(best))))
    first, second = list[FloatArray](), list[FloatArray]()
    for count in effort.batches(min([_CHOICES, *(at_a_time(known.measured, known.of(one, other, units)) for known in pairs.values())])):
        ratios = np.zeros((2, count))
        for place, step in enumerate(way.steps):
            if isinstance(step, Measurements):
                pair = pairs[place].of(one, other, units)
                ratios += [pair.ratio(own, step.noise.norm) for own in draw(step, pair, count, effort)]
            else:
                ratios += _choice_ratios(plan, step, best, units, count, effort)
        first.append(ratios[0])
        second.append(ratios[1])
    loss_of = loss_of_budget(plan, units)
    bound = loss_of(*certified(np.concatenate(first), np.concatenate(second), effort.risk, loss_of))
    budget = plan.privacy.budget
    claim = float(next(iter(parameters(budget).values())))
    return Part(name=f"all steps, {way.name}", claim=claim, lower_bound=bound, trials=sum(map(len, first)), units=units)


def _choice_ratios(
    plan: Plan, selection: Selection, two: tuple[Row, Row | None], units: int, count: int, effort: Effort
) -> list[list[float]]:
    """For replace the ratios of both rows beside none: their difference tells the tables."""
    laws = [_law(plan, selection, row) for row in two if row is not None]

    def ratio(outcome: Any) -> float:
        return laws[0].ratio(outcome, units) - (laws[1].ratio(outcome, units) if len(laws) > 1 else 0.0)

    return [[ratio(outcome) for outcome in _chosen(plan, selection, held(row, plan.privacy), units, count, effort)] for row in two]


def loss_of_budget(plan: Plan, units: int) -> Loss:
    """What an event says of one unit, in the budget's own number."""
    budget = plan.privacy.budget
    if isinstance(budget, ApproxDP):
        return approximate(float(budget.delta), units)
    measure: Callable[[float, float], float] = divergence if isinstance(budget, ZCDP) else log_ratio
    power = 2 if isinstance(budget, ZCDP) else 1
    return lambda low, high: measure(low, high) / units**power


_AT_A_TIME = 2**17  # keys


_MOST_UNITS_OF_KEYS = 100


_NEVER = -(2.0**60)  # stands for the number of a key that did not get out


def keys_alone(plan: CategoryPlan, effort: Effort) -> Part:
    """Keys of some units that nobody else has: that any of them gets out, which without these units none can.

    Whoever does not have a key's text can name it by chance alone, so the event has no probability in the other table. As many units are
    taken as certify most.
    """
    tail = tail_of(plan.rule.noise, float(plan.rule.scale))
    most, keys = plan.threshold + math.ceil(2 * float(plan.rule.scale)), plan.privacy.max_rows
    chances = {int(units): 1 - (1 - float(tail(np.array(plan.threshold - units)))) ** keys for units in np.linspace(1, most, 60)}
    likely = {units: _named(plan, units)(chance, 0.0) for units, chance in chances.items() if chance > 0.05}
    units = max(likely, key=lambda one: likely[one])
    named = np.concatenate([(drawn > _NEVER).any(axis=0) for drawn in _drawn(plan, [units] * keys, effort)])
    trials = len(named)
    low = float(least(np.array([int(named.sum())]), trials, effort.risk)[0])
    bound = _named(plan, units)(low, 0.0)
    return Part(name="all keys that nobody else has", claim=_epsilon(plan), lower_bound=bound, trials=trials, units=units)


def keys_shared(plan: CategoryPlan, effort: Effort) -> Part:
    """Keys that many others have too: the numbers of all of them, which some units change."""
    privacy, scale = plan.privacy, float(plan.rule.scale)
    norm = 2 if plan.rule.noise is Noise.ROUNDED_GAUSSIAN else 1
    units = max(1, min(_MOST_UNITS_OF_KEYS, math.floor(4 * scale / privacy.distance ** (1 / norm))))
    base = plan.threshold + math.ceil(40 * scale)
    signs = np.where(np.arange(privacy.distance) < privacy.max_rows, 1, -1)
    ratios = []
    for sign in (1, -1):
        held = np.where(signs == sign, base + units, base)
        told = [drawn - base for drawn in _drawn(plan, held.tolist(), _half(effort))]
        apart = [own * units / scale**2 if norm == 2 else (np.abs(own) - np.abs(own - units)) / scale for own in told]
        ratios.append(np.concatenate([signs @ own for own in apart]))
    loss_of = approximate(_delta(plan), units)
    first, second = (own[: min(map(len, ratios))] for own in ratios)
    bound = loss_of(*certified(first, second, effort.risk, loss_of))
    return Part(name="all keys that others have too", claim=_epsilon(plan), lower_bound=bound, trials=len(first), units=units)


def key_at_threshold(plan: CategoryPlan, effort: Effort) -> Part:
    """A key of a few more units than the threshold, and of a few less: whether it gets out, and its number, by the law of the noise."""
    noise, scale, threshold = plan.rule.noise, float(plan.rule.scale), plan.threshold
    step = max(1, round(scale))
    held = threshold + step, max(1, threshold - step)
    drawn = [np.concatenate([own[0] for own in _drawn(plan, [units], _half(effort))]) for units in held]
    first, second = (own[: min(map(len, drawn))] for own in drawn)

    def tails(factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        tail = tail_of(noise, scale / factor)
        one, other = (np.where(thresholds <= _NEVER, 1.0, tail(np.maximum(thresholds, threshold) - units)) for units in held)
        return one, other

    factor = sharpness(first, second, effort.risk, tails)
    return Part(name="a key at the threshold", claim=1 / scale, lower_bound=factor / scale, trials=len(first), units=held[0] - held[1])


LOOKS = (keys_alone, keys_shared, key_at_threshold)


def _drawn(plan: CategoryPlan, units: Sequence[int], effort: Effort) -> Iterator[FloatArray]:
    """The noisy numbers of keys that so many units have, a row each, in some trials; of those that do not get out `_NEVER`."""
    for count in effort.batches(max(1, _AT_A_TIME // len(units))):
        every: IntArray = np.tile(np.array(units, dtype=np.int64), count)
        terms = Terms(domain=plan.domain, privacy=plan.privacy, attributes=(plan.attribute,))
        series = on_keys(terms, every.tolist(), effort.entropy)
        found = series.find(KeySearch(attribute=plan.attribute, rule=plan.rule, most=len(every)))
        places = {text: place for place, text in enumerate(keys(len(every)))}
        noisy = np.full(len(every), _NEVER)
        noisy[[places[text] for text in found.keys]] = found.units
        yield noisy.reshape(count, len(units)).T


def _half(effort: Effort) -> Effort:
    """For one of two tables."""
    return replace(effort, seconds=effort.seconds / 2)


def _named(plan: CategoryPlan, units: int) -> Loss:
    """Epsilon of one unit beside a delta, at least, from an event of so many units that has no probability without them."""
    delta = _delta(plan)

    def loss_of(low: float, high: float) -> float:  # noqa: ARG001 - it is 0
        return last(lambda epsilon: delta * (math.expm1(units * epsilon) / math.expm1(epsilon) if epsilon else units) < low, 700 / units)

    return loss_of


def _epsilon(plan: CategoryPlan) -> float:
    return float(_budget(plan).epsilon)


def _delta(plan: CategoryPlan) -> float:
    return float(_budget(plan).delta)


def _budget(plan: CategoryPlan) -> ApproxDP:
    budget = plan.privacy.budget
    if not isinstance(budget, ApproxDP):
        raise InternalError("A search for keys has no delta; please report this.")
    return budget


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found."""

    claim: float
    measure: str
    lower_bound: float
    epsilon: float | None
    parts: tuple[Part, ...]
    confidence: float
    trials: int
    units: int
    held: bool


def audited(
    plan: Plan | CategoryPlan, guard: Measurements | None, *, trials: int | None, seconds: float, confidence: float, entropy: Source
) -> Audit:
    """Bound from below what a plan and its guard lose."""
    if trials is not None:
        whole("trials", trials, LEAST_TRIALS)
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence must be from 0.5 to below 1; got {confidence}.")
    if isinstance(plan, Plan) and any(product.of_units for product in plan.workload):
        raise InputError("A plan that counts units cannot be audited yet: the made-up rows of an audit have no units. Audit one of rows.")
    looks = _looks(plan, entropy)
    if guard is not None:
        looks.append(partial(_of_measurements, guard, "the guard: "))
    # Of each look at most three events, of each event two probabilities.
    effort = Effort(trials=trials, seconds=seconds / len(looks), risk=(1 - confidence) / (6 * len(looks)), entropy=entropy)
    parts = [part for look in looks for part in look(effort)]
    together = max((part for part in parts if part.name.startswith("all")), key=lambda part: part.lower_bound)
    measured = _measurements_of(plan)
    return Audit(
        claim=together.claim,
        measure=_measure(plan),
        lower_bound=together.lower_bound,
        epsilon=None if measured is None else epsilon_of(measured, together.lower_bound),
        parts=tuple(part for part in parts if part is not together),
        confidence=confidence,
        trials=together.trials,
        units=together.units,
        held=all(part.held for part in parts),
    )


Look = Callable[[Effort], tuple[Part, ...]]


def _measurements_of(plan: Plan | CategoryPlan) -> Measurements | None:
    return None if isinstance(plan, CategoryPlan) else plan.measurements


def _looks(plan: Plan | CategoryPlan, entropy: Source) -> list[Look]:
    if isinstance(plan, CategoryPlan):
        return [partial(_one, partial(look, plan)) for look in LOOKS]
    if plan.measurements is not None:
        return [partial(_of_measurements, plan.measurements, "")]
    found = ways(plan, entropy)
    looks: list[Look] = [partial(_one, partial(way_part, plan, way)) for way in found]
    for step in kinds_of_steps(found):
        if isinstance(step, Measurements):
            looks.append(partial(_of_measurements, step, "a step: "))
        else:
            looks.append(partial(_one, partial(choice_part, plan, step)))
    return looks


def _of_measurements(measured: Measurements, prefix: str, effort: Effort) -> tuple[Part, ...]:
    return tuple(replace(part, name=prefix + part.name) for part in measured_parts(measured, effort))


def _one(part_of: Callable[[Effort], Part], effort: Effort) -> tuple[Part, ...]:
    return (part_of(effort),)


def _measure(plan: Plan | CategoryPlan) -> str:
    measured = _measurements_of(plan)
    if measured is None:
        return next(iter(parameters(plan.privacy.budget)))
    noise = measured.noise
    return {"discrete_laplace": "epsilon", "rounded_gaussian": "mu", "discrete_gaussian": "rho"}[noise.value]
