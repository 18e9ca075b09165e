"""An empirical lower bound on what a plan loses, from the kernel as built, on rows that are made up: no data is read, nothing is paid."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from leastnoise._accounting import parameters
from leastnoise._audit._bounds import LEAST_TRIALS, Effort, Part
from leastnoise._audit._keys import LOOKS
from leastnoise._audit._measured import epsilon_of, measured_parts
from leastnoise._audit._steps import choice_part, kinds_of_steps, way_part, ways
from leastnoise._check import InputError, whole
from leastnoise._kernel import Entropy
from leastnoise._measurements import Measurements
from leastnoise._plan import CategoryPlan, Plan


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
    plan: Plan | CategoryPlan, guard: Measurements | None, *, trials: int | None, seconds: float, confidence: float, entropy: Entropy | None
) -> Audit:
    """Bound from below what a plan and its guard lose."""
    if trials is not None:
        whole("trials", trials, LEAST_TRIALS)
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence must be from 0.5 to below 1; got {confidence}.")
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


def _looks(plan: Plan | CategoryPlan, entropy: Entropy | None) -> list[Look]:
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
