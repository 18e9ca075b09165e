"""Weights under which the largest of the ratios (error of a table / its limit)^2 is least. Public: no data is seen.

A plan minimises a weighted sum of squared errors. Where instead the largest of the ratios is to be least, weights make the two problems
one: under any weights the largest ratio is at least the weighted mean of the ratios, so the least weighted mean is a lower bound of the
least largest ratio (its Lagrange dual), and where all ratios are equal the two agree. The weights are found by a fixed point that needs one
step where every table has measurements of its own: with squared errors a_j / s_j^p for shares s_j of the budget (p = 1 under zCDP, 2 under
pure privacy), weights times ratio^((p + 1) / p) make all ratios equal.

Strategies are compared in a part of the time, and their tables get new weights without a search; only the best of them are searched again,
with all their steps, for the weights that were found. Docs: decisions, 0050.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from leastnoise._accounting import Noise, Privacy
from leastnoise._accuracy import lower_bound, promised
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._fitting import rescaled
from leastnoise._mechanisms import Search, choose, noises, planning_seconds, reweighted, searched_again
from leastnoise._plan import Plan
from leastnoise._planner import PLANNERS
from leastnoise._planning._goals import Goal, ratios
from leastnoise._workload import Workload

_WEIGHT_BITS = 20
_LEAST_WEIGHT = 2.0**-10
_SEARCHES = 2  # for weights of tables that cannot be weighted alone
_ROUNDS = 8  # on tables that share attributes six reached what thirty did
_NEAR = 1.002
_QUICK = 1 / 5  # of the time: strategies are compared in it
_BESIDE = 1.25  # times as much as what is mostly the best takes
_FINALISTS = 2
_BEHIND = 1.1  # a strategy whose errors are so much above those of the best may still be the best with all its time


@dataclass(frozen=True, slots=True)
class Balanced:
    """The plan whose largest ratio is least of all that were tried."""

    plan: Plan
    ratio: float
    bound: float
    weighted: Workload

    @property
    def strategy(self) -> str:
        """The planner's name."""
        return self.plan.strategy


@dataclass(frozen=True, slots=True)
class _Tried:
    """A plan, the weights that it is best for, and what it makes of the goals."""

    plan: Plan
    asked: Workload
    goals: tuple[Goal, ...]

    @property
    def ratios(self) -> FloatArray:
        return ratios(self.goals, self.plan)

    @property
    def ratio(self) -> float:
        return float(self.ratios.max())

    @property
    def shares(self) -> FloatArray:
        """What the ratio of every table counts under the weights; their sum is 1."""
        counted = _counted(self.asked, self.goals, self.plan.measured().noise)
        return np.array(counted) / math.fsum(counted)

    @property
    def mean(self) -> float:
        """No plan of the same strategy has a smaller largest ratio, where the plan is the best one for the weights."""
        return float(self.shares @ self.ratios)


def balanced(workload: Workload, privacy: Privacy, goals: Sequence[Goal], search: Search | None = None) -> Balanced:
    """The plan whose largest ratio of squared error to squared limit is least.

    Guarantees: weights are tried a number of times, not for a time, so that the same workload has the same plan on every machine.
    """
    search = search or Search()
    tried = _compared(_first(even(workload, goals), privacy, tuple(goals), search), _ROUNDS, search)
    best = min((_again(one, search) for one in tried[:_FINALISTS]), key=lambda one: one.ratio)
    return _found(best, workload, privacy)


def balanced_seconds(workload: Workload, privacy: Privacy, search: Search) -> float:
    """About how many CPU seconds `balanced` takes: a search in a part of the time, and the best strategies once more."""
    quick = _quick(search, workload, privacy)
    first = planning_seconds(workload, privacy, quick)
    if search.strategy != "auto":
        return 2 * first
    norms = {noise.norm for noise in noises(privacy)}
    # Which strategies are the best is not known: those that may take longest of what can be tried in a part of the time.
    fits = [one for one in PLANNERS.values() if one.automatic and all(one.least_seconds(workload, norm) <= quick.seconds for norm in norms)]
    again = sorted(max(one.most_seconds(workload, norm) for norm in norms) for one in fits)
    return first + sum(again[-_FINALISTS:])


def nearly_balanced(workload: Workload, privacy: Privacy, goals: Sequence[Goal], search: Search, near: Plan | None = None) -> float:
    """About the least largest ratio beside a plan for more tables under the same weights, which are moved once, or not at all."""
    kept = tuple(goals)
    if near is None:
        return _compared(_first(workload, privacy, kept, search), 2, search)[0].ratio
    try:
        return _moved(_Tried(reweighted(near, workload), workload, kept), 2, search).ratio
    except InputError:
        return _Tried(searched_again(near, workload, search, _quick(search, workload, privacy).seconds), workload, kept).ratio


def rebalanced(found: Balanced, workload: Workload, privacy: Privacy, goals: Sequence[Goal], search: Search) -> Balanced:
    """The same under another budget of the same kind: the measurements found, with their scales for it and weights that fit it."""
    try:
        start = _Tried(answering(found.weighted, found.plan, privacy), found.weighted, tuple(goals))
    except InputError:
        return balanced(workload, privacy, goals, replace(search, strategy=found.strategy))
    return _found(_moved(start, _ROUNDS, search), workload, privacy)


def _first(first: Workload, privacy: Privacy, goals: tuple[Goal, ...], search: Search) -> list[_Tried]:
    return [_Tried(one.plan, first, goals) for one in choose(first, privacy, _quick(search, first, privacy))[1] if one.plan is not None]


def _quick(search: Search, workload: Workload, privacy: Privacy) -> Search:
    """A part of the time, but enough for what is mostly the best, and for what is not mostly worse and takes at most half of all."""
    enough = 0.0
    for noise in noises(privacy):
        known = [(one, one.least_seconds(workload, noise.norm)) for one in PLANNERS.values() if one.automatic]
        enough += sum(cost for one, cost in known if one.reference(workload) or (not one.late and cost <= search.seconds / 2))
    return replace(search, every=True, seconds=max(_QUICK * search.seconds, min(search.seconds, _BESIDE * enough)))


def _compared(tried: Sequence[_Tried], rounds: int, search: Search) -> list[_Tried]:
    """Those that may be the best, with weights of their own, the least largest ratio first."""
    found: list[_Tried] = []
    for one in sorted(tried, key=lambda one: one.mean):
        if not found or one.mean <= _BEHIND * min(other.ratio for other in found):
            found.append(_moved(one, rounds, search))
    found.sort(key=lambda one: one.ratio)
    return [one for one in found if one.ratio <= _BEHIND * found[0].ratio]


def _moved(start: _Tried, rounds: int, search: Search) -> _Tried:
    """Move the weights of one strategy until all ratios are equal, or those that are not count for nothing.

    Where its tables are none that can be weighted alone, each weighting is a search, and few are made.
    """
    best, now, searches = start, start, 0
    step = 1.5 if start.plan.measured().noise is Noise.DISCRETE_LAPLACE else 2.0
    for _ in range(rounds - 1):
        reached, shares = now.ratios, now.shares
        if reached.max() <= _NEAR * (shares @ reached):
            break
        shares = shares * (reached / reached.max()) ** step
        shares = _wanted(now.goals) * np.maximum(shares / shares.max(), _LEAST_WEIGHT**2)
        asked = _weighted(now.asked, now.goals, shares, now.plan.measured().noise)
        try:
            now = _Tried(reweighted(now.plan, asked), asked, now.goals)
        except InputError:
            found = _searched(now, asked, search) if searches < _SEARCHES else None
            if found is None:
                break
            now, searches = found, searches + 1
        best = now if now.ratio < best.ratio else best
    return best


def _searched(one: _Tried, asked: Workload, search: Search) -> _Tried | None:
    """What its strategy finds for other weights in a part of the time; None where it cannot be used."""
    try:
        return _Tried(searched_again(one.plan, asked, search, _quick(search, asked, one.plan.privacy).seconds), asked, one.goals)
    except InputError:
        return None


def _again(one: _Tried, search: Search) -> _Tried:
    """What the strategy finds for these weights with all its steps; never worse."""
    if search.tell is not None:
        search.tell(one.plan.strategy)
    try:
        found = _Tried(searched_again(one.plan, one.asked, search), one.asked, one.goals)
    except InputError:
        return one
    return min(one, _moved(found, _ROUNDS, search), key=lambda one: one.ratio)


def _found(best: _Tried, workload: Workload, privacy: Privacy) -> Balanced:
    bound = dual(best.asked, best.goals, privacy, best.plan.measured().noise)
    return Balanced(answering(workload, best.plan), best.ratio, bound, best.asked)


def answering(workload: Workload, plan: Plan, privacy: Privacy | None = None) -> Plan:
    """A plan with the promise of its measurements for another workload."""
    measured = plan.measured() if privacy is None else rescaled(plan.measured(), privacy)
    return promised(workload, measured, plan.strategy, details=plan.details_for(workload))


def even(workload: Workload, goals: Sequence[Goal], noise: Noise = Noise.DISCRETE_LAPLACE) -> Workload:
    """The workload with weights under which the ratios of all tables count alike."""
    return _weighted(workload, goals, _wanted(goals), noise)


def _wanted(goals: Sequence[Goal]) -> FloatArray:
    return np.array([float(goal.wanted) for goal in goals])


def _weighted(workload: Workload, goals: Sequence[Goal], shares: FloatArray, noise: Noise) -> Workload:
    """The workload whose weighted squared error is the sum of shares times ratios, but for a factor."""
    stds = np.array([goal.std(noise, place) for place, goal in enumerate(goals)])
    largest = np.array([workload.domain.largest_value(one.measure) for one in workload])
    weights = np.sqrt(shares / np.array([product.rows for product in workload])) * largest / stds
    weights = np.maximum(weights / weights.max(), _LEAST_WEIGHT)
    exact = [Fraction(max(1, round(weight * 2**_WEIGHT_BITS)), 2**_WEIGHT_BITS) for weight in weights]
    return Workload(workload.domain, tuple(replace(one, weight=weight) for one, weight in zip(workload, exact, strict=True)))


def dual(asked: Workload, goals: Sequence[Goal], privacy: Privacy, noise: Noise) -> float:
    """A lower bound of the largest ratio: that of the weighted sum over the tables with goals, over the sum of the weights of their ratios.

    It holds because a table's largest standard error is at least the root mean square, half a step of the noise at least nothing, and
    the ratio of a mean at least that of its tables, as `MeanGoal` says.
    """
    wanted = tuple(product for product, goal in zip(asked, goals, strict=True) if goal.wanted)
    return lower_bound(Workload(asked.domain, wanted), privacy, noise) / math.fsum(_counted(asked, goals, noise))


def _counted(asked: Workload, goals: Sequence[Goal], noise: Noise) -> list[float]:
    """The weight of every table's ratio in the weighted squared error; 0 where there is no goal."""
    return [
        product.importance * product.rows * goal.std(noise, place) ** 2 if goal.wanted else 0.0
        for place, (product, goal) in enumerate(zip(asked, goals, strict=True))
    ]
