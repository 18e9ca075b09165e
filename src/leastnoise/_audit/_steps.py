"""Plans that look at the data: their steps, on rows that are made up.

What a mechanism does between its steps is public. So what it loses, it loses by its steps: those of a run are asked again, of two tables
that differ in some units, and told apart by the likelihood ratio of all of them together. Then each is looked at by itself.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from leastnoise._accounting import ZCDP, ApproxDP, parameters
from leastnoise._audit._bounds import Effort, Loss, Part, approximate, certified, divergence, log_ratio, sharpness
from leastnoise._audit._laws import LAWS, Law
from leastnoise._audit._measured import Held, Pairs, Row, at_a_time, columns_of, draw, held, pairs_of_rows
from leastnoise._check.arrays import FloatArray
from leastnoise._fitting import allowed_epsilon
from leastnoise._kernel import Entropy, Selection, Series
from leastnoise._measurements import Measurements, Observation
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._plan import Plan

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


def ways(plan: Plan, entropy: Entropy | None) -> list[Way]:
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
        recorder = _Recorder(next(Series.rehearsed(terms, codes, values, entropy)))
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
    series = Series.rehearsed(terms_of(plan), *columns_of(plan.domain, there, units), effort.entropy)
    return [one.choose(selection) for one, _ in zip(series, range(count), strict=False)]


def choice_part(plan: Plan, selection: Selection, effort: Effort) -> Part:
    """A choice by itself: whether it follows its law."""
    row: Row = {**dict.fromkeys(plan.domain.names, 0), **{name: one.low_units for name, one in plan.domain.measures.items()}}
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
