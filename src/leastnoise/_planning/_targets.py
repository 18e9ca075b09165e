"""The least budget that keeps every target of a workload. Public: no data is seen."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from leastnoise._accounting import ZCDP, ApproxDP, Privacy, PureDP, parameters
from leastnoise._accuracy import LEVEL
from leastnoise._check import Exact, InputError, one_of, refuse
from leastnoise._domain import PerCell
from leastnoise._mechanisms import Search, noises
from leastnoise._plan import Plan
from leastnoise._planning._balanced import Balanced, answering, balanced, dual, even, rebalanced
from leastnoise._planning._goals import Goal, goals_of, ratios
from leastnoise._workload import Workload

_DIGITS = 4
_TRIES = 3
_GUESSES = 30
_MOST_BUDGET = 2**20
SMALL = Fraction(1, 2**20)


@dataclass(frozen=True, slots=True)
class Least:
    """In place of a budget: the least that keeps every target of a workload.

    Args:
        of: "epsilon" or "rho".
        delta: beside epsilon; None for pure differential privacy.
        level: of the intervals that margins are about.
        neighbours: "add_remove" or "replace".
        unit_column: the column whose values are the privacy units; None if every row is one.
        max_rows: at most this many rows of a unit count.
        max_per_cell: how many of them in one cell; None if all may.

    Raises:
        InputError: something of the above cannot be used.

    >>> ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1).within(margin=30), ln.Least("epsilon")).privacy.budget
    PureDP(epsilon='127/1250')
    """

    of: str = "epsilon"
    delta: Exact | None = None
    level: float = LEVEL
    neighbours: str = "add_remove"
    unit_column: str | None = None
    max_rows: int = 1
    max_per_cell: PerCell | None = None

    def __post_init__(self) -> None:
        one_of("what is to be least", self.of, ("epsilon", "rho"))
        if self.of == "rho" and self.delta is not None:
            raise refuse("delta", self.delta, "None beside rho")
        self.privacy(Fraction(1))

    def privacy(self, size: Fraction) -> Privacy:
        """The budget of this epsilon or rho, with neighbours and unit."""
        budget = ZCDP(size) if self.of == "rho" else PureDP(size) if self.delta is None else ApproxDP(size, self.delta)
        return Privacy(budget, self.neighbours, self.unit_column, self.max_rows, self.max_per_cell)


def stated(privacy: Privacy | Least) -> Privacy | None:
    """The budget with neighbours and unit; None where it is still to be found."""
    return None if isinstance(privacy, Least) else privacy


def smallest(privacy: Privacy | Least) -> Privacy:
    """The budget with neighbours and unit; a very small one in place of one that is still to be found."""
    return privacy.privacy(SMALL) if isinstance(privacy, Least) else privacy


def of_size(privacy: Privacy | Least, size: Exact) -> Privacy:
    """The same kind of budget, unit and neighbours with another epsilon or rho."""
    like = smallest(privacy)
    _, *delta = parameters(like.budget).values()
    return like.within(type(like.budget)(size, *delta))


@dataclass(frozen=True, slots=True)
class Found:
    """The least budget that keeps every target, among the plans that were tried."""

    plan: Plan
    size: Fraction
    bound: float


def least(workload: Workload, privacy: Least, search: Search | None = None) -> Found:
    """The least budget under which every table keeps its target, and the plan for it.

    Edge cases: a margin below one row is refused, because half a step of the noise belongs to every interval.
    """
    goals, search = goals_of(workload, privacy.level), search or Search()
    size = _begin(workload, privacy, goals)
    found = balanced(workload, privacy.privacy(size), goals, search)
    for _ in range(_TRIES):  # errors of small noise do not scale exactly
        before, size = size, _rounded(float(size) * part(found.ratio, found.plan.privacy))
        if abs(size / before - 1) < Fraction(1, 100):
            break
        found = rebalanced(found, workload, privacy.privacy(_checked(size)), goals, search)
    plan, size = _size(workload, goals, found.plan, privacy.privacy, size)
    return Found(plan, size, _bound(found, goals, privacy, float(size)))


def _begin(workload: Workload, privacy: Least, goals: Sequence[Goal]) -> Fraction:
    """Where the search begins: below this no plan keeps all targets, and the best one is not far above."""
    one = privacy.privacy(Fraction(1))
    ratio = dual(even(workload, goals), goals, one, noises(one)[0])
    return min(max(_rounded(part(ratio, one)) if ratio > 0 else SMALL, SMALL), Fraction(_MOST_BUDGET))


def _bound(found: Balanced, goals: Sequence[Goal], privacy: Least, high: float) -> float:
    """The largest budget, to a thousandth, that the lower bound rules out; the bound falls as budgets grow."""
    low = 0.0
    while high - low > high / 1000:
        middle = (low + high) / 2
        short = dual(found.weighted, goals, privacy.privacy(_rounded(middle)), found.plan.measured().noise) > 1
        low, high = (middle, high) if short else (low, middle)
    return low


def _checked(size: Fraction) -> Fraction:
    if size > _MOST_BUDGET:
        raise InputError(f"No budget up to {_MOST_BUDGET} keeps every target, and so large a budget protects nobody. Ask for less.")
    return size


def _size(
    workload: Workload, goals: Sequence[Goal], plan: Plan, privacy: Callable[[Fraction], Privacy], size: Fraction
) -> tuple[Plan, Fraction]:
    """The least epsilon or rho of few digits for which a strategy keeps every goal, and the plan for it."""
    known: dict[Fraction, tuple[Plan, float]] = {}

    def reached(number: Fraction) -> float:
        if number not in known:
            scaled = answering(workload, plan, privacy(_checked(number)))
            known[number] = scaled, float(ratios(goals, scaled).max())
        return known[number][1]

    for _ in range(_GUESSES):
        guess = _rounded(float(size) * part(reached(size), plan.privacy))
        if guess == size:
            break
        size = guess
    while reached(size) > 1:
        size += _step(size)
    while reached(size - _step(size)) <= 1:
        size -= _step(size)
    return known[size][0], size


def part(ratio: float, privacy: Privacy) -> float:
    """By what to multiply epsilon or rho for a ratio of squared errors to become about 1: errors go as 1 / epsilon, or as 1 / sqrt(rho)."""
    return ratio if isinstance(privacy.budget, ZCDP) else math.sqrt(ratio)


def _step(size: Fraction) -> Fraction:
    """One in the last of the digits kept."""
    return Fraction(10) ** (math.floor(math.log10(size)) + 1 - _DIGITS)


def _rounded(size: float) -> Fraction:
    """The next number of four decimal digits above."""
    step = _step(Fraction(size))
    return math.ceil(Fraction(size) / step) * step
