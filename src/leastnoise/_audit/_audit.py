"""An empirical lower bound on what a plan loses, from the kernel as built, on rows that are made up; no data is read, nothing is paid.

What a mechanism does between its steps is public. So what it loses, it loses by its steps: those of a run are asked again, of two tables
that differ in some units, and told apart by the likelihood ratio of all of them together. Then each is looked at by itself.

The law of the private choice is written down once more here, from its definition, for tables whose rows are all in one cell. Which blocks
there are is the kernel's own tree, whose tests compare it with its definition.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from leastnoise._accounting import ZCDP, ApproxDP, Noise, Privacy, parameters
from leastnoise._audit._made_up import Source, keys, made_up, of_table, on_keys, on_rows
from leastnoise._audit._measured import (
    LEAST_TRIALS,
    Effort,
    Held,
    Loss,
    Pairs,
    Part,
    Row,
    approximate,
    at_a_time,
    certified,
    columns_of,
    divergence,
    draw,
    epsilon_of,
    equal_rows,
    held,
    last,
    least,
    log_ratio,
    measured_parts,
    pairs_of_rows,
    sharpness,
    tail_of,
)
from leastnoise._check import InputError, InternalError, whole
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._fitting import allowed_epsilon
from leastnoise._kernel import KeySearch, LeastCost, Series, Terms
from leastnoise._linop import block_tree, interval_tree
from leastnoise._measurements import Measurements, Observation, measurements_digest
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._plan import CategoryPlan, Plan

_MOST_ROWS, _MOST_ROWS_OF_A_CHOICE = 2**22, 2**17
_MOST_UNITS, _MOST_UNITS_OF_KEYS = 1000, 100
_CHOICES, _KEYS = 2**6, 2**17  # drawn at a time
_NEVER = -(2.0**60)  # stands for the number of a key that did not get out


class Law:
    """What a choice gives from some rows in one cell, and from none: the least cost of any partition, with Laplace noise."""

    def __init__(self, selection: LeastCost, sizes: Sequence[int], cell: int, privacy: Privacy) -> None:
        tree = block_tree(*sizes) if len(sizes) == 2 else interval_tree(*sizes)
        position = int(np.flatnonzero(tree.order == cell)[0])
        path = [int(np.searchsorted(starts, position, side="right")) - 1 for starts in tree.starts[:-1]]
        self._beside = sum(int(tree.broods(level)[block]) - 1 for level, block in enumerate(path))  # subtrees without the cell
        self._penalty, self._rows = float(selection.penalty), equal_rows(privacy)
        self._scale = privacy.distance / float(selection.epsilon)
        self.units = max(1, min(math.ceil(4 / float(selection.epsilon)), _MOST_ROWS_OF_A_CHOICE // self._rows))

    def loss(self, units: int) -> float:
        """What it loses of so many units."""
        return (self._least(units) - self._penalty) / self._scale

    def ratio(self, outcome: Any, units: int) -> float:
        """The logarithm of the likelihood ratio of so many units and none."""
        value = float(outcome)
        return (abs(value - self._penalty) - abs(value - self._least(units))) / self._scale

    def statistics(self, some: Sequence[Any], none: Sequence[Any]) -> tuple[FloatArray, FloatArray]:
        """How near each is to what it would be without noise, of both tables, as their noise is the same: a sharper choice is nearer."""
        near = [-abs(float(value) - self._least(units)) for units, outcomes in ((self.units, some), (0, none)) for value in outcomes]
        mixed = np.array(near).reshape(2, -1).T.reshape(-1)  # so that each half has both
        return mixed, mixed

    def tails(self, factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How often the numbers are at or above thresholds, of a choice that is sharper by a factor."""
        chance = -np.expm1(thresholds * factor / self._scale)  # costs lie on so fine a grid that they may be taken for continuous
        return chance, chance

    def _least(self, units: int) -> float:
        """One bucket, or the cell alone and one bucket for each subtree beside its path."""
        return self._penalty + min(units * self._rows, self._penalty * self._beside)


@dataclass
class _Recorder:
    """A series that keeps what it is asked."""

    series: Series
    steps: list[LeastCost | Measurements] = field(default_factory=list)

    def choose(self, selection: LeastCost) -> Any:
        self.steps.append(selection)
        return self.series.choose(selection)

    def measure(self, measurements: Measurements) -> Observation:
        self.steps.append(measurements)
        return self.series.measure(measurements)


@dataclass(frozen=True, slots=True)
class Way:
    """A way that a mechanism may take."""

    name: str
    steps: tuple[LeastCost | Measurements, ...]


def ways(plan: Plan, entropy: Source) -> list[Way]:
    """The ways that a mechanism takes on stairs over the cells: of one step, of few, of many, and of as many as there are cells."""
    terms, run = terms_of(plan), mechanism_of(plan).ready(plan)
    sizes = [plan.domain.kind(name).size for name in terms.attributes]
    size = math.prod(sizes)
    noise = plan.privacy.distance / allowed_epsilon(plan.privacy.budget)  # about what a count of the whole budget is off by
    height = max(1, min(math.ceil(8 * noise), _MOST_ROWS // size))
    taken: dict[str, Way] = {}
    for steps in dict.fromkeys((1, max(2, size // 20), max(2, size // 3), size)):
        counts = np.where(np.arange(size) * steps // size % 2 == 1, height, 0)
        cells = np.unravel_index(np.repeat(np.arange(size), counts), sizes)
        rows = int(counts.sum())
        known = {name: column.tolist() for name, column in zip(terms.attributes, cells, strict=True)}
        codes = {name: known.get(name, [0] * rows) for name in plan.domain.names}
        values = {name: [measure.high_units] * rows for name, measure in plan.domain.measures.items()}
        recorder = _Recorder(on_rows(terms, codes, values, entropy))
        facts = run(cast(Series, recorder)).finding.facts()
        name = str(facts.get("regime", "measured"))
        taken.setdefault(name, Way(name, tuple(recorder.steps)))
    return list(taken.values())


def kinds_of_steps(taken: list[Way]) -> Iterator[LeastCost | Measurements]:
    """Each choice and each measurement of some ways, once."""
    seen = set()
    for way in taken:
        for step in way.steps:
            key = measurements_digest(step) if isinstance(step, Measurements) else repr(step)
            if key not in seen:
                seen.add(key)
                yield step


def _law(plan: Plan, selection: LeastCost, row: Row) -> Law:
    sizes = [plan.domain.kind(name).size for name in selection.attributes]
    cell = int(np.ravel_multi_index([row[name] for name in selection.attributes], sizes))
    return Law(selection, sizes, cell, plan.privacy)


def _chosen(plan: Plan, selection: LeastCost, there: Held, units: int, count: int, effort: Effort) -> list[Any]:
    """What a choice gives, several times."""
    table = made_up(plan.domain, plan.privacy, *columns_of(plan.domain, there, units))
    return [of_table(terms_of(plan), table, effort.entropy).choose(selection) for _ in range(count)]


def choice_part(plan: Plan, selection: LeastCost, effort: Effort) -> Part:
    """A choice by itself: whether it follows its law."""
    row: Row = {**dict.fromkeys(plan.domain.names, 0), **{name: measure.high_units for name, measure in plan.domain.measures.items()}}
    law = _law(plan, selection, row)
    some, none = list[Any](), list[Any]()
    for count in effort.batches(_CHOICES):
        for outcomes, there in ((some, held(row, plan.privacy)), (none, ())):
            outcomes.extend(_chosen(plan, selection, there, law.units, count, effort))
    factor = sharpness(*law.statistics(some, none), effort.risk, law.tails)
    claim = law.loss(law.units) / law.units
    return Part(name="least cost", claim=claim, lower_bound=claim * factor, trials=len(some), units=law.units)


def way_part(plan: Plan, way: Way, effort: Effort) -> Part:
    """All steps of a way together, as a lower bound on the budget's own number."""
    pairs = {number: Pairs(step) for number, step in enumerate(way.steps) if isinstance(step, Measurements)}

    def distance(rows: tuple[Row, Row | None]) -> float:
        before, after = (held(row, plan.privacy) for row in rows)
        return sum(known.of(before, after, 1).distance(known.measured.noise.norm) for known in pairs.values())

    best = max(pairs_of_rows(plan.domain, plan.privacy), key=distance)
    before, after = (held(row, plan.privacy) for row in best)
    units = max(1, min(_MOST_UNITS, math.floor(4 / distance(best))))
    first, second = list[FloatArray](), list[FloatArray]()
    for count in effort.batches(min([_CHOICES, *(at_a_time(known.measured, known.of(before, after, units)) for known in pairs.values())])):
        ratios = np.zeros((2, count))
        for number, step in enumerate(way.steps):
            if isinstance(step, Measurements):
                pair = pairs[number].of(before, after, units)
                ratios += [pair.ratio(drawn, step.noise.norm) for drawn in draw(step, pair, count, effort)]
            else:
                ratios += _choice_ratios(plan, step, best, units, count, effort)
        first.append(ratios[0])
        second.append(ratios[1])
    loss_of = loss_of_budget(plan, units)
    bound = loss_of(*certified(np.concatenate(first), np.concatenate(second), effort.risk, loss_of))
    claim = float(next(iter(parameters(plan.privacy.budget).values())))
    return Part(name=f"all steps, {way.name}", claim=claim, lower_bound=bound, trials=sum(map(len, first)), units=units)


def _choice_ratios(
    plan: Plan, selection: LeastCost, two: tuple[Row, Row | None], units: int, count: int, effort: Effort
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


def keys_alone(plan: CategoryPlan, effort: Effort) -> Part:
    """Keys of some units that nobody else has: that any of them gets out, which without these units none can.

    Whoever does not have a key's text can name it by chance alone, so the event has no probability in the other table. As many units are
    taken as certify most.
    """
    tail = tail_of(plan.rule.noise, float(plan.rule.scale))
    most, keys = plan.threshold + math.ceil(2 * float(plan.rule.scale)), plan.privacy.max_rows
    chances = {int(units): 1 - (1 - float(tail(np.array(plan.threshold - units)))) ** keys for units in np.linspace(1, most, 60)}
    likely = {units: _named(plan, units)(chance, 0.0) for units, chance in chances.items() if chance > 0.05}
    units = max(likely, key=likely.__getitem__)
    named = np.concatenate([(drawn > _NEVER).any(axis=0) for drawn in _drawn(plan, [units] * keys, effort)])
    trials = len(named)
    low = float(least(np.array([int(named.sum())]), trials, effort.risk)[0])
    bound = _named(plan, units)(low, 0.0)
    return Part(name="all keys that nobody else has", claim=float(_budget(plan).epsilon), lower_bound=bound, trials=trials, units=units)


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
        above = [drawn - base for drawn in _drawn(plan, held.tolist(), replace(effort, seconds=effort.seconds / 2))]
        each = [noisy * units / scale**2 if norm == 2 else (np.abs(noisy) - np.abs(noisy - units)) / scale for noisy in above]
        ratios.append(np.concatenate([signs @ ratio for ratio in each]))
    loss_of = approximate(float(_budget(plan).delta), units)
    first, second = (ratio[: min(map(len, ratios))] for ratio in ratios)
    bound = loss_of(*certified(first, second, effort.risk, loss_of))
    return Part(name="all keys that others have too", claim=float(_budget(plan).epsilon), lower_bound=bound, trials=len(first), units=units)


def key_at_threshold(plan: CategoryPlan, effort: Effort) -> Part:
    """A key of a few more units than the threshold, and of a few less: whether it gets out, and its number, by the law of the noise."""
    noise, scale, threshold = plan.rule.noise, float(plan.rule.scale), plan.threshold
    step = max(1, round(scale))
    held, half = (threshold + step, max(1, threshold - step)), replace(effort, seconds=effort.seconds / 2)
    drawn = [np.concatenate([noisy[0] for noisy in _drawn(plan, [units], half)]) for units in held]
    first, second = (noisy[: min(map(len, drawn))] for noisy in drawn)

    def tails(factor: float, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        tail = tail_of(noise, scale / factor)
        above, below = (np.where(thresholds <= _NEVER, 1.0, tail(np.maximum(thresholds, threshold) - units)) for units in held)
        return above, below

    factor = sharpness(first, second, effort.risk, tails)
    return Part(name="a key at the threshold", claim=1 / scale, lower_bound=factor / scale, trials=len(first), units=held[0] - held[1])


def _drawn(plan: CategoryPlan, units: Sequence[int], effort: Effort) -> Iterator[FloatArray]:
    """The noisy numbers of keys that so many units have, a row each, in some trials; of those that do not get out `_NEVER`."""
    for count in effort.batches(max(1, _KEYS // len(units))):
        every: IntArray = np.tile(np.array(units, dtype=np.int64), count)
        terms = Terms(domain=plan.domain, privacy=plan.privacy, attributes=(plan.attribute,))
        series = on_keys(terms, every.tolist(), effort.entropy)
        listed = series.find(KeySearch(attribute=plan.attribute, rule=plan.rule, most=len(every)))
        numbers = {text: number for number, text in enumerate(keys(len(every)))}
        noisy = np.full(len(every), _NEVER)
        noisy[[numbers[text] for text in listed.keys]] = listed.units
        yield noisy.reshape(count, len(units)).T


def _named(plan: CategoryPlan, units: int) -> Loss:
    """Epsilon of one unit beside a delta, at least, from an event of so many units that has no probability without them."""
    delta = float(_budget(plan).delta)

    def loss_of(low: float, high: float) -> float:  # noqa: ARG001 - it is 0
        return last(lambda epsilon: delta * (math.expm1(units * epsilon) / math.expm1(epsilon) if epsilon else units) < low, 700 / units)

    return loss_of


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
        looks.append(partial(_parts_of_measurements, guard, "the guard: "))
    # Of each look at most three events, of each event two probabilities.
    effort = Effort(trials=trials, seconds=seconds / len(looks), risk=(1 - confidence) / (6 * len(looks)), entropy=entropy)
    seen = [look(effort) for look in looks]
    parts = [part for outcome in seen for part in (outcome if isinstance(outcome, tuple) else (outcome,))]
    together = max((part for part in parts if part.name.startswith("all")), key=lambda part: part.lower_bound)
    measured = None if isinstance(plan, CategoryPlan) else plan.measurements
    measure = next(iter(parameters(plan.privacy.budget)))
    if measured is not None:
        measure = {"discrete_laplace": "epsilon", "rounded_gaussian": "mu", "discrete_gaussian": "rho"}[measured.noise.value]
    return Audit(
        claim=together.claim,
        measure=measure,
        lower_bound=together.lower_bound,
        epsilon=None if measured is None else epsilon_of(measured, together.lower_bound),
        parts=tuple(part for part in parts if part is not together),
        confidence=confidence,
        trials=together.trials,
        units=together.units,
        held=all(part.held for part in parts),
    )


Look = Callable[[Effort], tuple[Part, ...] | Part]


def _looks(plan: Plan | CategoryPlan, entropy: Source) -> list[Look]:
    if isinstance(plan, CategoryPlan):
        return [partial(look, plan) for look in (keys_alone, keys_shared, key_at_threshold)]
    if plan.measurements is not None:
        return [partial(_parts_of_measurements, plan.measurements, "")]
    taken = ways(plan, entropy)
    looks: list[Look] = [partial(way_part, plan, way) for way in taken]
    for step in kinds_of_steps(taken):
        if isinstance(step, Measurements):
            looks.append(partial(_parts_of_measurements, step, "a step: "))
        else:
            looks.append(partial(choice_part, plan, step))
    return looks


def _parts_of_measurements(measured: Measurements, prefix: str, effort: Effort) -> tuple[Part, ...]:
    return tuple(replace(part, name=prefix + part.name) for part in measured_parts(measured, effort))
