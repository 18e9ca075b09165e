"""Searches for keys that nobody could list: what made-up keys tell, and whether their numbers follow the noise and the threshold."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from leastnoise._accounting import ApproxDP, Noise
from leastnoise._audit._bounds import Effort, Loss, Part, approximate, certified, last, least, sharpness
from leastnoise._audit._measured import tail_of
from leastnoise._check import InternalError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._kernel import KeySearch, Series, Terms, made_up_keys
from leastnoise._plan import CategoryPlan

_AT_A_TIME = 2**17  # keys
_MOST_UNITS = 100
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
    units = max(1, min(_MOST_UNITS, math.floor(4 * scale / privacy.distance ** (1 / norm))))
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
        series = Series.rehearsed_keys(terms, every.tolist(), effort.entropy)
        found = series.find(KeySearch(attribute=plan.attribute, rule=plan.rule, most=len(every)))
        places = {text: place for place, text in enumerate(made_up_keys(len(every)))}
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
