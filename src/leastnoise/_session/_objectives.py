"""What may be least in place of the total squared error, what a plan makes of its targets, and what its tables cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from leastnoise._accounting import Privacy
from leastnoise._accuracy import LEVEL
from leastnoise._check import InputError, quoted, refuse
from leastnoise._mechanisms import Search, choose
from leastnoise._plan import Plan
from leastnoise._session._targets import Goal, answering, balanced, goal, goals_of, part
from leastnoise._workload import Workload

_PRICE_ROUNDS = 2
_NEARLY_ALL = 0.9


def worst(workload: Workload, privacy: Privacy, search: Search, level: float = LEVEL) -> Plan:
    """The plan whose largest ratio of error to limit is least.

    Args:
        workload: what is asked. The limit of a table is its target, if one of the tables has a target; else its error if it alone were
            planned for the whole budget.
        privacy: the budget to plan for.
        search: which strategies are tried, and how long.
        level: of the intervals that margins are about.

    >>> asked = marginals(Domain(a=["x", "y"], b=[str(i) for i in range(50)]), upto=2)
    >>> usual, fair = (plan(asked, PureDP(1), objective=objective) for objective in ("total", "worst"))
    >>> usual.expected_error().tables[0].rmse > 1.5 * fair.expected_error().tables[0].rmse
    True
    """
    if any(product.target is not None for product in workload):
        goals = goals_of(workload, level)
    else:
        alone: dict[tuple[object, ...], Goal] = {}
        for product in workload:
            key = (product.measure, product.operators)
            if key not in alone:
                own = choose(Workload(workload.domain, (product,)), privacy, search)[0]
                alone[key] = Goal(own.expected_error().tables[0].rmse)
        goals = tuple(alone[product.measure, product.operators] for product in workload)
    return balanced(workload, privacy, goals, search).plan


@dataclass(frozen=True, slots=True)
class Reached:
    """What a plan makes of the target of a table.

    Args:
        kind: "margin" or "rmse".
        most: the target, in rows or in the amounts of the measure.
        error: what the plan promises, in the same.
    """

    kind: str
    most: float
    error: float

    @property
    def kept(self) -> bool:
        """Whether the promise is within the target."""
        return self.error <= self.most * (1 + 1e-12)


def reached(plan: Plan, level: float) -> tuple[Reached | None, ...]:
    """What a plan makes of the targets of its tables; None for a table without one.

    Args:
        plan: with its promise.
        level: of the intervals that margins are about.

    >>> reached(plan(marginals(Domain(sex=["F", "M"]), ways=1).within(margin=30), PureDP(1)), 0.95)[0].kept
    True
    """
    found: list[Reached | None] = []
    for place, product in enumerate(plan.workload):
        if product.target is None:
            found.append(None)
            continue
        most = float(product.target.most)
        found.append(Reached(product.target.kind, most, most * math.sqrt(goal(product, level).ratio(plan, place))))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Price:
    """What a table costs.

    Args:
        table: its name.
        alone: the part of the budget that it would need for its error if nothing else were asked.
        saved: the part of the budget that all other tables would not need for theirs if it were left out.
    """

    table: str
    alone: float
    saved: float


MOST_PRICED = 24


def prices(plan: Plan, search: Search | None = None) -> tuple[Price, ...]:
    """What every table of a plan costs, as parts of its budget.

    Args:
        plan: with its promise, for at most 24 tables.
        search: which strategies are tried, and how long; its ``tell`` is called with the name of every table. None for the automatic
            choice.

    Returns:
        Parts of epsilon, or of rho, by scaling errors: near enough for a decision, not exact for small noise.

    Raises:
        InputError: too many tables, or one.

    >>> [round(price.alone, 2) for price in prices(plan(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1), PureDP(1)))]
    [0.71, 0.71]
    """
    products = plan.workload.products
    if not 2 <= len(products) <= MOST_PRICED:
        raise refuse("the number of tables to be priced", len(products), f"from 2 to {MOST_PRICED}")
    found, search = [], search or Search()
    for place, product in enumerate(products):
        if search.tell is not None:
            search.tell(product.name)
        found.append(price(plan, (place,), replace(search, tell=None)))
    return tuple(found)


def price(plan: Plan, places: Sequence[int], search: Search | None = None) -> Price:
    """What some tables of a plan cost together, as `prices` says it.

    Args:
        plan: with its promise, for at least one table more.
        places: of the tables in the workload.
        search: how strategies are searched; None for "auto".

    Raises:
        InputError: no table is left when they are left out.

    >>> made = plan(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1), PureDP(1))
    >>> price(made, (1,)).table, round(price(made, (1,)).saved, 2)
    ('b', 0.29)
    """
    products, apart, search = plan.workload.products, set(places), search or Search()
    if len(products) <= len(apart):
        raise InputError("Tables have a price where there are others beside them; keep at least one more.")
    goals = [Goal(table.rmse) for table in plan.expected_error().tables]
    needed = []
    for inside in (True, False):
        kept = [place for place in range(len(products)) if (place in apart) is inside]
        asked, wanted = Workload(plan.domain, tuple(products[place] for place in kept)), [goals[place] for place in kept]
        if len(kept) == 1:
            ratio = wanted[0].ratio(choose(asked, plan.privacy, search)[0], 0)
        else:
            near = plan if len(kept) >= _NEARLY_ALL * len(products) else None  # few are left out: the rest has nearly the same tables
            ratio = balanced(asked, plan.privacy, wanted, search, rounds=_PRICE_ROUNDS, of=near, anew=False).ratio
        needed.append(part(ratio, plan.privacy))
    return Price(", ".join(products[place].name for place in places), needed[0], 1 - min(1.0, needed[1]))


def relative(workload: Workload, privacy: Privacy, search: Search, _level: float = LEVEL) -> Plan:
    """The plan of the least total squared error relative to the public sizes of the tables.

    Args:
        workload: what is asked; every table has a size.
        privacy: the budget to plan for.
        search: which strategies are tried, and how long.

    Raises:
        InputError: a table has no size.

    >>> asked = marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1)
    >>> relative(asked, Privacy(PureDP(1)), Search())
    Traceback (most recent call last):
    leastnoise._check._errors.InputError: The objective 'relative' needs a public size for every table; none is given for 'a, b'.
    """
    without = [product.name for product in workload if product.size is None]
    if without:
        raise InputError(f"The objective 'relative' needs a public size for every table; none is given for {quoted(', '.join(without))}.")
    products = tuple(replace(product, weight=product.weight / (product.size or 1)) for product in workload)
    return answering(workload, choose(Workload(workload.domain, products), privacy, search)[0])


OBJECTIVES = {"worst": worst, "relative": relative}
"""What may be least in place of the total, by the name in a spec."""
