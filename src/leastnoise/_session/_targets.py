"""Weights for a worst case, and the least budget that keeps every target. Public: no data is seen.

A plan minimises a weighted sum of squared errors. Where instead the largest of the ratios (error of table j / limit of table j)^2 is to be
least, weights make the two problems one: under any weights the largest ratio is at least the weighted mean of the ratios, so the least
weighted mean is a lower bound of the least largest ratio (its Lagrange dual), and where all ratios are equal the two agree. The weights
are found by a fixed point that needs one step where every table has measurements of its own: with squared errors a_j / s_j^p for shares
s_j of the budget (p = 1 under zCDP, 2 under pure privacy), weights times ratio^((p + 1) / p) make all ratios equal.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from leastnoise._accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from leastnoise._accuracy import interval_multiplier, lower_bound, promised
from leastnoise._check import Exact, InputError, InternalError, exact_positive, one_of, refuse
from leastnoise._check.arrays import FloatArray
from leastnoise._fitting import rescaled
from leastnoise._mechanisms import Candidate, candidates, choose
from leastnoise._plan import Plan
from leastnoise._workload import Product, Workload

_WEIGHT_BITS = 20
_LEAST_WEIGHT = 2.0**-10
_ROUNDS = 30
_NEAR = 1.002
_FINALISTS = 2
_DIGITS = 4
_TRIES = 3
_GUESSES = 30
_MOST_BUDGET = 2**20
_SECONDS = 20.0
LEVEL = 0.95


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

    Raises:
        InputError: something of the above cannot be used.

    >>> ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1).within(margin=30), ln.Least("epsilon")).privacy.budget
    PureDP(epsilon='127/1250')
    """

    of: str = "epsilon"
    delta: Exact | None = None
    level: float = 0.95
    neighbours: str = "add_remove"
    unit_column: str | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        one_of("what is to be least", self.of, ("epsilon", "rho"))
        if self.of == "rho" and self.delta is not None:
            raise refuse("delta", self.delta, "None beside rho")
        self.privacy(Fraction(1))

    def privacy(self, size: Fraction) -> Privacy:
        """The budget of this epsilon or rho, with neighbours and unit."""
        budget = ZCDP(size) if self.of == "rho" else PureDP(size) if self.delta is None else ApproxDP(size, self.delta)
        return Privacy(budget, self.neighbours, self.unit_column, self.max_rows)


def of_size(privacy: Privacy | Least, size: Exact) -> Privacy:
    """The same kind of budget, unit and neighbours with another epsilon or rho.

    Args:
        privacy: a budget, or what is to be least.
        size: exact, above 0.

    >>> of_size(Privacy(ApproxDP(1, "1e-9")), "1/2").budget
    ApproxDP(epsilon='1/2', delta='1/1000000000')
    """
    if isinstance(privacy, Least):
        return privacy.privacy(exact_positive(privacy.of, size))
    budget = privacy.budget
    if isinstance(budget, ApproxDP):
        return privacy.within(ApproxDP(size, budget.delta))
    return privacy.within(type(budget)(size))


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

    def ratio(self, plan: Plan, place: int) -> float:
        """Squared error over squared limit of a table: at most 1 where the goal is kept."""
        table = plan.expected_error().tables[place]
        if self.level is None:
            return (table.rmse / self.most) ** 2
        return ((interval_multiplier(plan.measured().noise, self.level) * table.largest_std + 0.5 / plan.measured().grid) / self.most) ** 2

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
    unit = 1.0 if product.measure is None else float(product.domain.measures[product.measure].unit)
    most = float(product.target.most) / unit
    if product.target.kind == "margin" and most < 1:
        advice = "Half a step of the noise belongs to every interval, so that smaller margins leave no room for noise."
        raise refuse(f"the margin of {product.name}", str(product.target.most), f"at least {unit:g}", advice)
    return Goal(most, level if product.target.kind == "margin" else None)


def ratios(goals: Sequence[Goal], plan: Plan) -> FloatArray:
    """Squared error over squared limit of every table: float array of shape (tables,); at most 1 where the goal is kept."""
    return np.array([goal.ratio(plan, place) for place, goal in enumerate(goals)])


def balanced(
    workload: Workload,
    privacy: Privacy,
    goals: Sequence[Goal],
    strategy: str = "auto",
    *,
    seconds: float = _SECONDS,
    progress: Callable[[str], None] | None = None,
) -> Balanced:
    """The plan whose largest ratio of squared error to squared limit is least.

    Args:
        workload: what is asked; its own weights play no part.
        privacy: the budget to plan for.
        goals: of every table.
        strategy: "auto" or one name.
        seconds: no further weights are tried after so long.
        progress: called with the name of every strategy that has been tried.

    Raises:
        InputError: no strategy can be used.
    """
    power = np.array([1.0 if math.isfinite(goal.most) else 0.0 for goal in goals])
    first = choose(_weighted(workload, goals, power, Noise.DISCRETE_LAPLACE), privacy, strategy, progress)[1]
    usable = sorted((one for one in first if one.plan is not None), key=lambda one: _largest(goals, one))
    best = min((_balance(workload, privacy, goals, one, seconds / _FINALISTS) for one in usable[:_FINALISTS]), key=lambda one: one.ratio)
    measured = best.plan.measured()
    plan = promised(workload, measured, best.plan.strategy, details=best.plan.details)
    return replace(best, plan=plan, bound=_dual(best.weighted, goals, privacy, measured.noise))


def _largest(goals: Sequence[Goal], one: Candidate) -> float:
    return math.inf if one.plan is None else float(ratios(goals, one.plan).max())


def _balance(workload: Workload, privacy: Privacy, goals: Sequence[Goal], start: Candidate, seconds: float) -> Balanced:
    """Move the weights of one strategy until all ratios are equal, or those that are not count for nothing."""
    step = 1.5 if start.noise is Noise.DISCRETE_LAPLACE else 2.0
    shares = np.array([1.0 if math.isfinite(goal.most) else 0.0 for goal in goals])
    best, end = None, time.perf_counter() + seconds
    for _ in range(_ROUNDS):
        asked = _weighted(workload, goals, shares, start.noise)
        plan = next((one.plan for one in candidates(asked, privacy, start.strategy) if one.noise is start.noise), None)
        if plan is None:
            break
        reached = ratios(goals, plan)
        if best is None or reached.max() < best.ratio:
            best = Balanced(plan, float(reached.max()), 0.0, asked, start.strategy)
        mean = float(shares @ reached / shares.sum())
        if reached.max() <= _NEAR * mean or time.perf_counter() + start.seconds > end:
            break
        shares = shares * (reached / reached.max()) ** step
        shares = np.where(np.isfinite([goal.most for goal in goals]), np.maximum(shares / shares.max(), _LEAST_WEIGHT**2), 0.0)
    if best is None:
        raise InternalError(f"The strategy {start.strategy!r} could be used, and not with other weights.")
    return best


def _weighted(workload: Workload, goals: Sequence[Goal], shares: FloatArray, noise: Noise) -> Workload:
    """The workload whose weighted squared error is the sum of shares times ratios, but for a factor."""
    stds = np.array([goal.std(noise) for goal in goals])
    largest = np.array([1 if one.measure is None else one.domain.measures[one.measure].largest for one in workload])
    weights = np.sqrt(shares / np.array([product.rows for product in workload])) * largest / stds
    weights = np.maximum(weights / weights.max(), _LEAST_WEIGHT)
    exact = [Fraction(max(1, round(weight * 2**_WEIGHT_BITS)), 2**_WEIGHT_BITS) for weight in weights]
    return Workload(workload.domain, tuple(replace(one, weight=weight) for one, weight in zip(workload, exact, strict=True)))


def _dual(asked: Workload, goals: Sequence[Goal], privacy: Privacy, noise: Noise) -> float:
    """A lower bound of the largest ratio: that of the weighted sum over the tables with goals, over the sum of the weights of their ratios.

    It holds because a table's largest standard error is at least the root mean square, and half a step of the noise at least nothing.
    """
    wanted = [(product, goal) for product, goal in zip(asked, goals, strict=True) if math.isfinite(goal.most)]
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
    strategy: str = "auto",
    *,
    seconds: float = _SECONDS,
    progress: Callable[[str], None] | None = None,
) -> Found:
    """The least budget under which every table keeps its target, and the plan for it.

    Args:
        workload: with targets; its own weights play no part.
        privacy: what is to be least.
        strategy: "auto" or one name.
        seconds: no further weights are tried after so long.
        progress: called with the name of every strategy that has been tried.

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
        name = strategy if found is None else found.strategy
        found = balanced(workload, privacy.privacy(size), goals, name, seconds=seconds / _TRIES, progress=progress)
        before, size = size, _size(workload, goals, found.plan, privacy.privacy, size)
        if abs(size / before - 1) < Fraction(1, 10):
            break
    if found is None:
        raise InternalError("Nothing was planned.")
    low, high = 0.0, float(size)
    while high - low > high / 1000:  # the bound falls as the budget grows
        middle = (low + high) / 2
        short = _dual(found.weighted, goals, privacy.privacy(_rounded(middle)), found.plan.measured().noise) > 1
        low, high = (middle, high) if short else (low, middle)
    return Found(refit(workload, found.plan, privacy.privacy(size)), size, low)


def refit(workload: Workload, plan: Plan, privacy: Privacy) -> Plan:
    """The same strategy, and the same proportions of noise, for another budget.

    Args:
        workload: what is promised.
        plan: whose blocks are taken.
        privacy: the other budget, of a kind that the plan's noise fits.

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> refit(made.workload, made, ln.Privacy(ln.PureDP("1/2"))).cost()
    PureCost(epsilon=Fraction(1, 2))
    """
    return promised(workload, rescaled(plan.measured(), privacy), plan.strategy, details=plan.details)


def _size(workload: Workload, goals: Sequence[Goal], plan: Plan, privacy: Callable[[Fraction], Privacy], size: Fraction) -> Fraction:
    """The least epsilon or rho of few digits for which a strategy keeps every goal."""

    def reached(number: Fraction) -> float:
        return float(ratios(goals, refit(workload, plan, privacy(number))).max())

    power = 0.5 if plan.measured().noise is Noise.DISCRETE_LAPLACE else 1.0
    for _ in range(_GUESSES):
        ratio = reached(size)
        guess = _rounded(float(size) * ratio**power)
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


def _step(size: Fraction) -> Fraction:
    """One in the last of the digits kept."""
    return Fraction(10) ** (math.floor(math.log10(size)) + 1 - _DIGITS)


def _rounded(size: float) -> Fraction:
    """The next number of four decimal digits above."""
    step = _step(Fraction(size))
    return math.ceil(Fraction(size) / step) * step
