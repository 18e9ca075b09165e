"""What may be least in place of the total squared error, what a plan makes of its targets, and what its tables cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from leastnoise._accounting import Privacy
from leastnoise._accuracy import LEVEL
from leastnoise._check import InputError, quoted, refuse
from leastnoise._mechanisms import Search, choose, planning_seconds
from leastnoise._plan import Plan
from leastnoise._planning._targets import Goal, answering, balanced, balanced_seconds, goal, goals_of, mean_goals, nearly_balanced, part
from leastnoise._workload import Workload

_NEARLY_ALL = 0.9


def worst(workload: Workload, privacy: Privacy, search: Search, level: float = LEVEL) -> Plan:
    """The plan whose largest ratio of error to limit is least."""
    if workload.has_targets:
        goals = goals_of(workload, level)
    else:
        alone = {question: choose(own, privacy, search)[0] for question, own in _alone(workload).items()}
        goals = tuple(Goal(alone[product.question].expected_error().tables[0].rmse) for product in workload)
    return answering(workload, balanced(workload, privacy, goals, search).plan)


def worst_seconds(workload: Workload, privacy: Privacy, search: Search) -> float:
    """About how many CPU seconds `worst` takes."""
    seconds = balanced_seconds(workload, privacy, search)
    if not workload.has_targets:
        seconds += sum(planning_seconds(alone, privacy, search) for alone in _alone(workload).values())
    return seconds


def _alone(workload: Workload) -> dict[tuple[object, ...], Workload]:
    """Every table by itself, what is the same once."""
    return {product.question: Workload(workload.domain, (product,)) for product in workload}


@dataclass(frozen=True, slots=True)
class Reached:
    """What a plan makes of the target of a table, or of means."""

    kind: str
    most: float
    error: float

    @property
    def kept(self) -> bool:
        """Whether the promise is within the target."""
        return self.error <= self.most * (1 + 1e-12)


def reached(plan: Plan, level: float) -> tuple[Reached | None, ...]:
    """What a plan makes of the targets of its tables; None for a table without one."""
    reached_by: list[Reached | None] = []
    for number, product in enumerate(plan.workload):
        if product.target is None:
            reached_by.append(None)
            continue
        most = float(product.target.most)
        reached_by.append(Reached(product.target.kind, most, most * math.sqrt(goal(product, level).ratio(plan, number))))
    return tuple(reached_by)


def reached_by_means(plan: Plan, level: float) -> tuple[Reached | None, ...]:
    """What a plan reaches of each target of a mean, in a group of the target's size; None for a statistic without one."""
    known = {goal.asked: goal for goal in mean_goals(plan.workload, level)}
    return tuple(
        None if statistic.target is None else Reached(statistic.target.kind, known[statistic].most, known[statistic].error(plan))
        for statistic in plan.workload.statistics
    )


@dataclass(frozen=True, slots=True)
class Price:
    """What a table costs."""

    table: str
    alone: float
    saved: float


MOST_PRICED = 24


def prices(plan: Plan, search: Search | None = None) -> tuple[Price, ...]:
    """What every table of a plan costs, as parts of its budget."""
    products = plan.workload.products
    if not 2 <= len(products) <= MOST_PRICED:
        raise refuse("the number of tables to be priced", len(products), f"from 2 to {MOST_PRICED}")
    known: Known = {}
    prices_of, search = [], search or Search()
    for number, product in enumerate(products):
        if search.tell is not None:
            search.tell(product.name)
        prices_of.append(price(plan, (number,), replace(search, tell=None), known))
    return tuple(prices_of)


Known: TypeAlias = dict[object, float]
"""What was searched for prices of a plan: each part of its tables once."""


def price(plan: Plan, numbers: Sequence[int], search: Search | None = None, known: Known | None = None) -> Price:
    """What some tables of a plan cost together, as `prices` says it."""
    count, apart, known = len(plan.workload.products), set(numbers), {} if known is None else known
    if count <= len(apart):
        raise InputError("Tables have a price where there are others beside them; keep at least one more.")
    inside, outside = (
        part(_ratio(plan, [number for number in range(count) if (number in apart) is own], search or Search(), known), plan.privacy)
        for own in (True, False)
    )
    return Price(", ".join(plan.workload.products[number].name for number in numbers), inside, 1 - min(1.0, outside))


def _ratio(plan: Plan, kept: Sequence[int], search: Search, known: Known) -> float:
    """About the largest ratio of squared errors to those of a plan, if only some of its tables were asked."""
    products, errors = plan.workload.products, [table.rmse for table in plan.expected_error().tables]
    asked = Workload(plan.domain, tuple(products[number] for number in kept))
    if len(kept) == 1:
        question = asked.products[0].question
        if question not in known:
            known[question] = choose(asked, plan.privacy, search)[0].expected_error().tables[0].rmse
        return (known[question] / errors[kept[0]]) ** 2
    if frozenset(kept) not in known:
        near = plan if len(kept) >= _NEARLY_ALL * len(products) else None  # few are left out: the rest has nearly the same tables
        known[frozenset(kept)] = nearly_balanced(asked, plan.privacy, [Goal(errors[number]) for number in kept], search, near)
    return known[frozenset(kept)]


def relative(workload: Workload, privacy: Privacy, search: Search, _level: float = LEVEL) -> Plan:
    """The plan of the least total squared error relative to the public sizes of the tables."""
    without = [product.name for product in workload if product.size is None]
    if without:
        raise InputError(f"The objective 'relative' needs a public size for every table; none is given for {quoted(', '.join(without))}.")
    products = tuple(replace(product, weight=product.weight / (product.size or 1)) for product in workload)
    return answering(workload, choose(Workload(workload.domain, products), privacy, search)[0])


OBJECTIVES = {"worst": worst, "relative": relative}
"""What may be least in place of the total, by the name in a spec."""

EXPECTED = {"worst": worst_seconds}
"""About how many CPU seconds that takes, where it is not one search."""
