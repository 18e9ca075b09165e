"""Weights for a worst case, and the least budget that keeps every target. Public: no data is seen.

A plan minimises a weighted sum of squared errors. Where instead the largest of the ratios (error of table j / limit of table j)^2 is to be
least, weights make the two problems one: under any weights the largest ratio is at least the weighted mean of the ratios, so the least
weighted mean is a lower bound of the least largest ratio (its Lagrange dual), and where all ratios are equal the two agree. The weights
are found by a fixed point that needs one step where every table has measurements of its own: with squared errors a_j / s_j^p for shares
s_j of the budget (p = 1 under zCDP, 2 under pure privacy), weights times ratio^((p + 1) / p) make all ratios equal.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from leastnoise._accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP, parameters
from leastnoise._accuracy import LEVEL, interval_multiplier, lower_bound, promised
from leastnoise._check import Exact, InputError, InternalError, one_of, refuse
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import PerCell
from leastnoise._fitting import rescaled
from leastnoise._mechanisms import Search, candidates, choose, reweighted
from leastnoise._plan import Plan
from leastnoise._workload import Product, Workload

_WEIGHT_BITS = 20
_LEAST_WEIGHT = 2.0**-10
_ROUNDS = 8  # on tables that share attributes six reached what thirty did
_NEAR = 1.002
_FINALISTS = 2
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
    """The budget with neighbours and unit; None where it is still to be found.

    >>> stated(ln.Least("rho")) is None
    True
    """
    return None if isinstance(privacy, Least) else privacy


def smallest(privacy: Privacy | Least) -> Privacy:
    """The budget with neighbours and unit; a very small one in place of one that is still to be found.

    >>> smallest(ln.Least("rho")).budget
    ZCDP(rho='1/1048576')
    """
    return privacy.privacy(SMALL) if isinstance(privacy, Least) else privacy


def of_size(privacy: Privacy | Least, size: Exact) -> Privacy:
    """The same kind of budget, unit and neighbours with another epsilon or rho.

    Args:
        privacy: a budget, or what is to be least.
        size: exact, above 0.

    >>> of_size(Privacy(ApproxDP(1, "1e-9")), "1/2").budget
    ApproxDP(epsilon='1/2', delta='1/1000000000')
    """
    like = smallest(privacy)
    _, *delta = parameters(like.budget).values()
    return like.within(type(like.budget)(size, *delta))


@dataclass(frozen=True, slots=True)
class Goal:
    """What the error of a table is compared with.

    Args:
        most: the largest error wanted, in rows or in units of the measure; infinite where none is wanted.
        level: None if the error is the root mean square of the standard errors; else it is the half width, at this level, of the widest
            interval.
    """

    most: float
    level: float | None = None

    @property
    def wanted(self) -> bool:
        """Whether there is a limit at all."""
        return math.isfinite(self.most)

    def ratio(self, plan: Plan, place: int) -> float:
        """Squared error over squared limit of a table: at most 1 where the goal is kept."""
        table, measured = plan.expected_error().tables[place], plan.measured()
        if self.level is None:
            return (table.rmse / self.most) ** 2
        return ((interval_multiplier(measured.noise, self.level) * table.largest_std + 0.5 / measured.grid) / self.most) ** 2

    def std(self, noise: Noise) -> float:
        """The standard error that keeps the goal, but for half a step of the noise."""
        return self.most if self.level is None else self.most / interval_multiplier(noise, self.level)


@dataclass(frozen=True, slots=True)
class Balanced:
    """The plan whose largest ratio is least of all that were tried.

    Args:
        plan: with the promise for the workload as it was asked.
        ratio: its largest squared error over squared limit.
        bound: no plan with this kind of noise has a smaller largest ratio; proven, and seldom reached.
        weighted: the workload with the weights that the plan is best for.
        strategy: the planner's name.
    """

    plan: Plan
    ratio: float
    bound: float
    weighted: Workload
    strategy: str


def goals_of(workload: Workload, level: float) -> tuple[Goal, ...]:
    """The targets of a workload as goals.

    Args:
        workload: with a target for one table at least.
        level: of the intervals whose half widths are limited.

    Raises:
        InputError: no table has a target, or a margin is below one row.

    >>> goals_of(marginals(Domain(sex=["F", "M"]), ways=1).within(margin=50), 0.9)
    (Goal(most=50.0, level=0.9),)
    """
    if all(product.target is None for product in workload):
        raise InputError("No table has a target. Give one table at least a margin, a relative error with a size, or an rmse.")
    return tuple(goal(product, level) for product in workload)


def goal(product: Product, level: float) -> Goal:
    """The target of one table as a goal; no limit if it has none."""
    if product.target is None:
        return Goal(math.inf)
    most = float(product.target.most) / product.unit
    if product.target.kind == "margin" and most < 1:
        advice = "Half a step of the noise belongs to every interval, so that smaller margins leave no room for noise."
        raise refuse(f"the margin of {product.name}", str(product.target.most), f"at least {product.unit:g}", advice)
    return Goal(most, level if product.target.kind == "margin" else None)


def ratios(goals: Sequence[Goal], plan: Plan) -> FloatArray:
    """Squared error over squared limit of every table: float array of shape (tables,); at most 1 where the goal is kept."""
    return np.array([goal.ratio(plan, place) for place, goal in enumerate(goals)])


def balanced(
    workload: Workload,
    privacy: Privacy,
    goals: Sequence[Goal],
    search: Search | None = None,
    *,
    rounds: int = _ROUNDS,
    of: Plan | None = None,
    anew: bool = True,
) -> Balanced:
    """The plan whose largest ratio of squared error to squared limit is least.

    Args:
        workload: what is asked; its own weights play no part.
        privacy: the budget to plan for.
        goals: of every table.
        search: which strategies are tried, and how long; None for the automatic choice.
        rounds: how many weights are tried for each of the best strategies, at most; a number and no time, so that the same workload has
            the same plan on every machine.
        of: a plan whose tables get weights for these goals, in place of a search for others where that can be; None for a search.
        anew: whether other weights have other tables searched; else those found first get new weights, which is nearly as good and many
            times faster.

    Raises:
        InputError: no strategy can be used.
    """
    again = _searched if anew else _kept
    first = _weighted(workload, goals, _even(goals), Noise.DISCRETE_LAPLACE)
    start = None if of is None else _kept(of, first, of.strategy)
    tried = [start] if start is not None else [one.plan for one in choose(first, privacy, search)[1] if one.plan is not None]
    tried.sort(key=lambda plan: float(ratios(goals, plan).max()))
    found = (_balance(workload, goals, Balanced(plan, 0, 0, first, plan.strategy), rounds, again) for plan in tried[:_FINALISTS])
    best = min(found, key=lambda one: one.ratio)
    bound = _dual(best.weighted, goals, privacy, best.plan.measured().noise)
    return replace(best, plan=answering(workload, best.plan), bound=bound)


def answering(workload: Workload, plan: Plan, privacy: Privacy | None = None) -> Plan:
    """A plan with the promise of its measurements for another workload.

    Args:
        workload: what is promised.
        plan: whose measurements are taken.
        privacy: another budget, of a kind that the plan's noise fits, for the same proportions of noise; None for the plan's own.

    Raises:
        InputError: as `rescaled`.

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> answering(made.workload, made, ln.Privacy(ln.PureDP("1/2"))).cost()
    PureCost(epsilon=Fraction(1, 2))
    """
    measured = plan.measured() if privacy is None else rescaled(plan.measured(), privacy)
    return promised(workload, measured, plan.strategy, details=plan.details_for(workload))


def _even(goals: Sequence[Goal]) -> FloatArray:
    return np.array([float(goal.wanted) for goal in goals])


def _balance(workload: Workload, goals: Sequence[Goal], start: Balanced, rounds: int, again: "_Again") -> Balanced:
    """Move the weights of one strategy until all ratios are equal, or those that are not count for nothing."""
    noise = start.plan.measured().noise
    step = 1.5 if noise is Noise.DISCRETE_LAPLACE else 2.0
    shares, asked, plan, best = _even(goals), start.weighted, start.plan, None
    for _ in range(rounds):
        reached = ratios(goals, plan)
        if best is None or reached.max() < best.ratio:
            best = replace(start, plan=plan, ratio=float(reached.max()), weighted=asked)
        if reached.max() <= _NEAR * float(shares @ reached / shares.sum()):
            break
        shares = shares * (reached / reached.max()) ** step
        shares = _even(goals) * np.maximum(shares / shares.max(), _LEAST_WEIGHT**2)
        asked = _weighted(workload, goals, shares, noise)
        found = again(plan, asked, start.strategy)
        if found is None:
            break
        plan = found
    if best is None:
        raise InternalError("No weights were tried.")
    return best


_Again = Callable[[Plan, Workload, str], Plan | None]


def _searched(plan: Plan, asked: Workload, strategy: str) -> Plan | None:
    """The strategy's own search for other weights."""
    noise = plan.measured().noise
    return next((one.plan for one in candidates(asked, plan.privacy, strategy) if one.noise is noise), None)


def _kept(plan: Plan, asked: Workload, strategy: str) -> Plan | None:
    """The tables of a plan with new weights; searched for where they are none that can be weighted alone."""
    try:
        return reweighted(plan, asked)
    except InputError:
        return _searched(plan, asked, strategy)


def _weighted(workload: Workload, goals: Sequence[Goal], shares: FloatArray, noise: Noise) -> Workload:
    """The workload whose weighted squared error is the sum of shares times ratios, but for a factor."""
    stds = np.array([goal.std(noise) for goal in goals])
    largest = np.array([workload.domain.largest_value(one.measure) for one in workload])
    weights = np.sqrt(shares / np.array([product.rows for product in workload])) * largest / stds
    weights = np.maximum(weights / weights.max(), _LEAST_WEIGHT)
    exact = [Fraction(max(1, round(weight * 2**_WEIGHT_BITS)), 2**_WEIGHT_BITS) for weight in weights]
    return Workload(workload.domain, tuple(replace(one, weight=weight) for one, weight in zip(workload, exact, strict=True)))


def _dual(asked: Workload, goals: Sequence[Goal], privacy: Privacy, noise: Noise) -> float:
    """A lower bound of the largest ratio: that of the weighted sum over the tables with goals, over the sum of the weights of their ratios.

    It holds because a table's largest standard error is at least the root mean square, and half a step of the noise at least nothing.
    """
    wanted = [(product, goal) for product, goal in zip(asked, goals, strict=True) if goal.wanted]
    given = math.fsum(product.importance * product.rows * goal.std(noise) ** 2 for product, goal in wanted)
    return lower_bound(Workload(asked.domain, tuple(product for product, _ in wanted)), privacy, noise) / given


@dataclass(frozen=True, slots=True)
class Found:
    """The least budget that keeps every target, among the plans that were tried.

    Args:
        plan: made for this budget; ``plan.privacy.budget`` is it.
        size: its epsilon or rho.
        bound: no plan with this kind of noise keeps the targets with less; proven, and seldom reached.
    """

    plan: Plan
    size: Fraction
    bound: float


def least(
    workload: Workload,
    privacy: Least,
    search: Search | None = None,
    *,
    rounds: int = _ROUNDS,
) -> Found:
    """The least budget under which every table keeps its target, and the plan for it.

    Args:
        workload: with targets; its own weights play no part.
        privacy: what is to be least.
        search: which strategies are tried, and how long; None for the automatic choice.
        rounds: as for `balanced`.

    Returns:
        A budget of four decimal digits.

    Raises:
        InputError: no table has a target, or no budget up to 2^20 keeps all of them.

    Edge cases: a margin below one row is refused, because half a step of the noise belongs to every interval.

    >>> asked = marginals(Domain(sex=["F", "M"]), ways=1).within(rmse=10)
    >>> least(asked, ln.Least()).size
    Fraction(707, 5000)
    """
    goals = goals_of(workload, privacy.level)
    size, found = Fraction(1), None
    for _ in range(_TRIES):  # errors of small noise do not scale exactly, and the best strategy may depend on the budget
        search = search if found is None else replace(search or Search(), strategy=found.strategy)
        found = balanced(workload, privacy.privacy(size), goals, search, rounds=rounds)
        before, size = size, _rounded(float(size) * part(found.ratio, found.plan.privacy))
        if abs(size / before - 1) < Fraction(1, 10):
            break
    if found is None:
        raise InternalError("Nothing was planned.")
    size = _size(workload, goals, found.plan, privacy.privacy, size)
    low, high = 0.0, float(size)
    while high - low > high / 1000:  # the bound falls as the budget grows
        middle = (low + high) / 2
        short = _dual(found.weighted, goals, privacy.privacy(_rounded(middle)), found.plan.measured().noise) > 1
        low, high = (middle, high) if short else (low, middle)
    return Found(answering(workload, found.plan, privacy.privacy(size)), size, low)


def _size(workload: Workload, goals: Sequence[Goal], plan: Plan, privacy: Callable[[Fraction], Privacy], size: Fraction) -> Fraction:
    """The least epsilon or rho of few digits for which a strategy keeps every goal."""

    def reached(number: Fraction) -> float:
        return float(ratios(goals, answering(workload, plan, privacy(number))).max())

    for _ in range(_GUESSES):
        guess = _rounded(float(size) * part(reached(size), plan.privacy))
        if guess == size:
            break
        size = guess
        if size > _MOST_BUDGET:
            raise InputError(f"No budget up to {_MOST_BUDGET} keeps every target, and so large a budget protects nobody. Ask for less.")
    while reached(size) > 1:
        size += _step(size)
    while reached(size - _step(size)) <= 1:
        size -= _step(size)
    return size


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
