"""Error targets: the least budget that meets all of them.

Other functions minimise the largest ratio of error to target.

A goal limits the error of a table. A goal may also limit the error of a statistic that is computed
from tables. Balancing changes the weights of the tables until the largest ratio of error to goal is
as small as possible. Other objectives are numbers that a plan minimises instead of the total
squared error. This module reads no data.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from leastnoise._domain import READ_AS_IT_IS, PerCellBound, Reading, column_measures
from leastnoise._error import (
    LEVEL,
    evaluate_plan,
    interval_multiplier,
    largest_mean_deviation,
    lower_bound,
    mean_error,
    measured_multiplier,
)
from leastnoise._fitting import rescale_noise
from leastnoise._mechanisms import (
    MOST_BUDGET,
    Search,
    choose_plan,
    noises_to_plan,
    planning_seconds,
    reweight_plan,
    search_again,
)
from leastnoise._plan import EarlierRelease, LinearPlan, Plan
from leastnoise._planning._comparison_targets import ComparisonGoal, comparison_goals
from leastnoise._planning._moment_targets import MomentGoal, moment_goals
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import (
    ZCDP,
    ApproxDP,
    Budget,
    Noise,
    Privacy,
    PureDP,
    parameters_by_name,
)
from leastnoise._trusted.check import Exact, InputError, message, one_of, quoted, refuse
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import ComparisonTarget, Product, Statistic, Workload

# The largest square of a ratio: half the width of a count's interval, divided by the size. Above
# it, the interval of a mean is practically unbounded.
_MOST_SQUARED_RATIO = 0.99


@dataclass(frozen=True, slots=True)
class MeanGoal:
    """A limit on the error of means by group, for a group of a public size.

    The limit applies to every possible mean.

    The limit also bounds the errors of the two tables from which the means are computed. The error
    of a mean m is the error of S - m C divided by the size n. Let low and high be the bounds of the
    measure. S - m C is linear in m. So S = (high (S - low C) - low (S - high C)) / (high - low) and
    C = ((S - low C) - (S - high C)) / (high - low). The errors of S and of C are each at most the
    largest error of S - m C times the sum of the absolute coefficients. With weights, C and the
    size are sums of weights.

    Attributes:
        statistic: the means.
        most: the target.
        size: the size of a group, in rows or as the sum of weights.
        tables: the positions of the tables of counts and of sums.
        limits: the largest errors of the two tables that are compatible with the target.
        level: the level of the interval whose half width is the error; None for the standard error.
    """

    statistic: Statistic
    most: float
    size: float
    tables: tuple[int, int]
    limits: tuple[float, float]
    level: float | None

    def error(self, plan: Plan) -> float:
        """Return the largest standard error of a mean under a plan (delta method).

        If ``level`` is not None, the result is the half width of the interval instead. Errors are
        in the unit of the measure's values.
        """
        measured = plan.measured()
        tables = plan.expected_error().tables
        counts, sums = (tables[number] for number in self.tables)
        amounts = float(plan.domain.measure(self.statistic.of).unit) / self.size
        if self.level is None:
            return mean_error(measured, self.statistic.of, counts.rmse, sums.rmse) * amounts
        times = measured_multiplier(measured, self.level, plan.workload)
        step = 0.5 / measured.grid
        half = times * mean_error(measured, self.statistic.of, counts.largest_std, sums.largest_std)
        half += step * (1 + largest_mean_deviation(measured, self.statistic.of))
        number = plan.domain.count_of(self.statistic.of)
        if number is None:
            count_unit = 1.0
        else:
            count_unit = float(plan.domain.measure(number).unit)
        margin_of_size = (times * counts.largest_std + step) * count_unit
        return half * amounts / (1 - min(_MOST_SQUARED_RATIO, (margin_of_size / self.size) ** 2))


StatisticGoal: TypeAlias = MeanGoal | MomentGoal | ComparisonGoal


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit on the error of a table.

    Attributes:
        most: the largest error that is allowed, in rows or units; infinite if only statistics of
            the table have targets.
        level: the level of the interval whose half width is the error; None for the RMSE.
        statistics: targets of statistics, differences and ratios that follow from the table.
    """

    most: float
    level: float | None = None
    statistics: tuple[StatisticGoal, ...] = ()

    @property
    def has_target(self) -> bool:
        """Whether the table, or a statistic that is computed from it, has a target."""
        return math.isfinite(self.most) or bool(self.statistics)

    def squared_ratio(self, plan: Plan, table_index: int) -> float:
        """Return the table's squared error under a plan, over its squared target.

        Statistics that are computed from the table are not included.
        """
        table = plan.expected_error().tables[table_index]
        measured = plan.measured()
        if self.level is None:
            error = table.rmse
        else:
            times = measured_multiplier(measured, self.level, plan.workload)
            error = times * table.largest_std + 0.5 / measured.grid
        return (error / self.most) ** 2

    def std(self, noise: Noise, table_index: int) -> float:
        """Return the largest standard error with which the table meets the goal.

        A target for a margin is divided by the multiplier of the interval.
        """
        limits = [
            (self.most, self.level),
            *(
                (goal.limits[goal.tables.index(table_index)], goal.level)
                for goal in self.statistics
            ),
        ]
        return min(
            most if level is None else most / interval_multiplier(noise, level)
            for most, level in limits
        )


def table_goals(
    workload: Workload, level: float, comparisons: Sequence[ComparisonTarget] = ()
) -> tuple[Goal, ...]:
    """Return the goal of each table of a workload, in order.

    ``comparisons`` are targets of differences and ratios that follow from the tables.
    """
    if not (workload.has_targets or comparisons):
        raise InputError(
            "No table has a target. Give at least one table a margin, a relative error with a "
            "size, or an rmse."
        )
    goals: list[StatisticGoal] = [
        *mean_goals(workload, level),
        *moment_goals(workload, level),
        *comparison_goals(workload, comparisons, level),
    ]
    return tuple(
        _table_goal(product, level, tuple(goal for goal in goals if number in goal.tables))
        for number, product in enumerate(workload)
    )


def mean_goals(workload: Workload, level: float) -> tuple[MeanGoal, ...]:
    """Return the goal of each mean that has a target."""
    where = {product.table_key: number for number, product in enumerate(workload)}
    goals = []
    for statistic in workload.statistics:
        if statistic.target is not None and statistic.kind == "means":
            measure = workload.domain.measure(statistic.of)
            values, *_ = column_measures(measure)
            low = values.low_units
            high = values.high_units
            most = float(statistic.target.most)
            size = float(statistic.size or 0)
            largest_sum_error = most / float(measure.unit) * size
            counts, sums = (where[product.table_key] for product in workload.tables_of(statistic))
            limits = (
                2 * largest_sum_error / (high - low),
                largest_sum_error * (abs(high) + abs(low)) / (high - low),
            )
            goals.append(
                MeanGoal(
                    statistic,
                    most,
                    size,
                    (counts, sums),
                    limits,
                    level if statistic.target.kind == "margin" else None,
                )
            )
    return tuple(goals)


def _table_goal(product: Product, level: float, statistics: tuple[StatisticGoal, ...] = ()) -> Goal:
    """Return the goal of a table, including the goals of its statistics."""
    if product.target is None:
        return Goal(math.inf, None, statistics)
    most = float(product.target.most) / product.unit
    if product.target.kind == "margin" and most < 1:
        advice = (
            "Every interval includes half a step of the noise, so smaller margins leave no room "
            "for noise."
        )
        margin_name = message("the margin of {table}", table=product.name)
        raise refuse(
            margin_name,
            str(product.target.most),
            message("at least {least}", least=f"{product.unit:g}"),
            advice,
        )
    return Goal(most, level if product.target.kind == "margin" else None, statistics)


def squared_ratios(goals: Sequence[Goal], plan: Plan) -> FloatArray:
    """Return each table's squared error over its squared target, (tables,).

    If a statistic that is computed from the table has a larger ratio, the entry is the ratio of the
    statistic. An entry is at most 1 if the goal is met.
    """
    # Computed once, because a statistic follows from several tables, and its error takes long.
    ratio_of_statistic = {
        statistic: (statistic.error(plan) / statistic.most) ** 2
        for statistic in set(itertools.chain.from_iterable(goal.statistics for goal in goals))
    }
    largest_squared_ratios = []
    for number, goal in enumerate(goals):
        table_ratio = goal.squared_ratio(plan, number)
        statistic_ratios = [ratio_of_statistic[statistic] for statistic in goal.statistics]
        largest_squared_ratios.append(max([table_ratio, *statistic_ratios]))
    return np.array(largest_squared_ratios)


_WEIGHT_BITS = 20  # bits of a table's exact weight
_LEAST_WEIGHT = 2.0**-10  # the least weight, relative to the heaviest table
_MOST_SEARCHES = 2  # new searches of a strategy whose tables cannot be reweighted without a search
# Updates of the weights; for tables on shared attributes, 6 were as good as 30.
_MOST_WEIGHT_ROUNDS = 8
_NEAR_BOUND_SQUARED_RATIO = 1.002  # squared ratios this near to their bound are balanced
_COMPARISON_TIME_SHARE = 1 / 5  # share of the time for comparing strategies
_TIME_MARGIN = 1.25  # factor of the time that the usually best strategies need
_MOST_FINALISTS = 2  # the strategies that are searched again with the full time
# With the full time, a strategy whose squared ratio is larger by up to this factor may be the best.
_FINALIST_SQUARED_RATIO = 1.1


@dataclass(frozen=True, slots=True, eq=False)
class BalancedPlan:
    """A plan for some table weights, and the squared ratios of error to goal.

    Attributes:
        plan: the plan.
        workload: the workload with these weights.
        goals: the goals of the tables.
        squared_ratios: the ratio of squared error to squared target of every table.
        shares: the weight of each table's squared ratio in the total squared error; the sum is 1.
        largest_squared_ratio: the largest of the squared ratios.
        mean_squared_ratio: the mean of the squared ratios, weighted by the shares. If this plan is
            the strategy's best plan for the weights, no plan of the strategy has a largest squared
            ratio below this mean.
    """

    plan: Plan
    workload: Workload
    goals: tuple[Goal, ...]
    squared_ratios: FloatArray
    shares: FloatArray
    largest_squared_ratio: float
    mean_squared_ratio: float


def _evaluate_balance(plan: Plan, workload: Workload, goals: tuple[Goal, ...]) -> BalancedPlan:
    """Return a plan with the squared ratios of its errors to the goals."""
    weights = _ratio_weights(workload, goals, plan.measured().noise)
    table_ratios = squared_ratios(goals, plan)
    shares = np.array(weights) / math.fsum(weights)
    return BalancedPlan(
        plan=plan,
        workload=workload,
        goals=goals,
        squared_ratios=table_ratios,
        shares=shares,
        largest_squared_ratio=float(table_ratios.max()),
        mean_squared_ratio=float(shares @ table_ratios),
    )


def balance_plan(
    workload: Workload, privacy: Privacy, goals: Sequence[Goal], search: Search | None = None
) -> BalancedPlan:
    """Find the plan that minimises the largest ratio of an error to its goal.

    The number of tried plans does not depend on the speed of the machine.
    """
    search = search or Search()
    finalists = list[BalancedPlan]()
    for trial in _compare_strategies(
        equalised_weights(workload, goals), privacy, tuple(goals), _MOST_WEIGHT_ROUNDS, search
    )[:_MOST_FINALISTS]:
        if search.progress is not None:
            search.progress(trial.plan.strategy)
        again = _search_weights(trial, trial.workload, search)  # this time with the full time limit
        finalists.append(trial)
        if again is not None:
            finalists.append(_equalise_ratios(again, _MOST_WEIGHT_ROUNDS, search))
    return min(finalists, key=lambda trial: trial.largest_squared_ratio)


def balanced_seconds(workload: Workload, privacy: Privacy, search: Search) -> float:
    """Estimate the CPU seconds of `balance_plan`.

    The estimate covers a quick comparison of strategies, and then longer searches with the best of
    them.
    """
    quick = _quick_search(search, workload, privacy)
    first = planning_seconds(workload, privacy, quick)
    if search.strategy != "auto":
        return 2 * first
    norms = {noise.norm for noise in noises_to_plan(privacy)}
    # The best strategies are not known, so the estimate is for the strategies that may take
    # longest.
    seconds_of_planners = []
    for planner in PLANNERS.values():
        if not planner.automatic:
            continue
        least = max(planner.least_seconds(workload, norm) for norm in norms)
        if least <= quick.seconds:
            seconds_of_planners.append(max(planner.most_seconds(workload, norm) for norm in norms))
    return first + sum(sorted(seconds_of_planners)[-_MOST_FINALISTS:])


def _quick_search(search: Search, workload: Workload, privacy: Privacy) -> Search:
    """Return the options of a search that takes a part of the planning time.

    This part is enough for the strategies that are usually best, and for promising strategies that
    need at most half of the time.
    """
    automatic = [planner for planner in PLANNERS.values() if planner.automatic]
    enough = 0.0
    for planner, noise in itertools.product(automatic, noises_to_plan(privacy)):
        cost = planner.least_seconds(workload, noise.norm)
        if planner.is_near_best(workload) or (
            planner.relative_likelihood(workload) >= 1 and cost <= search.seconds / 2
        ):
            enough += cost
    return replace(
        search,
        every=True,
        seconds=max(
            _COMPARISON_TIME_SHARE * search.seconds, min(search.seconds, _TIME_MARGIN * enough)
        ),
    )


def _compare_strategies(
    weighted_workload: Workload,
    privacy: Privacy,
    goals: tuple[Goal, ...],
    max_rounds: int,
    search: Search,
) -> list[BalancedPlan]:
    """Balance each strategy in a quick search, and return the best plans.

    Plans are sorted by their largest ratio.
    """
    quick_search = _quick_search(search, weighted_workload, privacy)
    _, candidates = choose_plan(weighted_workload, privacy, quick_search)
    tried = [
        _evaluate_balance(candidate.plan, weighted_workload, goals)
        for candidate in candidates
        if candidate.plan is not None
    ]
    compared: list[BalancedPlan] = []
    for trial in sorted(tried, key=lambda trial: trial.mean_squared_ratio):
        least_ratio = min((other.largest_squared_ratio for other in compared), default=math.inf)
        if trial.mean_squared_ratio <= _FINALIST_SQUARED_RATIO * least_ratio:
            compared.append(_equalise_ratios(trial, max_rounds, search))
    compared.sort(key=lambda trial: trial.largest_squared_ratio)
    most = _FINALIST_SQUARED_RATIO * compared[0].largest_squared_ratio
    return [trial for trial in compared if trial.largest_squared_ratio <= most]


def _equalise_ratios(start: BalancedPlan, max_rounds: int, search: Search) -> BalancedPlan:
    """Change table weights until all ratios of errors to goals are nearly equal.

    The result is the best of the plans of one strategy. If the strategy's tables cannot be
    reweighted, each round is a new search, so there are only a few rounds.
    """
    best = start
    now = start
    searches = 0
    noise = start.plan.measured().noise
    if noise is Noise.DISCRETE_LAPLACE:
        step = 1.5
    else:
        step = 2.0
    for _ in range(max_rounds - 1):
        if now.largest_squared_ratio <= _NEAR_BOUND_SQUARED_RATIO * now.mean_squared_ratio:
            break
        shares = now.shares * (now.squared_ratios / now.largest_squared_ratio) ** step
        shares = np.where(
            [goal.has_target for goal in now.goals],
            np.maximum(shares / shares.max(), _LEAST_WEIGHT**2),
            0.0,
        )
        workload = _weight_by_ratio_shares(now.workload, now.goals, shares, noise)
        try:
            now = _evaluate_balance(reweight_plan(now.plan, workload), workload, now.goals)
        except InputError:
            seconds = _quick_search(search, workload, now.plan.privacy).seconds
            if searches < _MOST_SEARCHES:
                searched = _search_weights(now, workload, search, seconds)
            else:
                searched = None
            if searched is None:
                break
            now = searched
            searches = searches + 1
        if now.largest_squared_ratio < best.largest_squared_ratio:
            best = now
    return best


def _search_weights(
    trial: BalancedPlan, workload: Workload, search: Search, *seconds: float
) -> BalancedPlan | None:
    """Plan with a trial's strategy and other table weights; None if it fails.

    ``seconds`` limits the time of the search. The search fails if the strategy does not apply.
    """
    try:
        return _evaluate_balance(
            search_again(trial.plan, workload, search, *seconds), workload, trial.goals
        )
    except InputError:
        return None


def plan_for_workload(workload: Workload, plan: Plan, privacy: Privacy | None = None) -> Plan:
    """Return a plan with the same measurements for another workload.

    With ``privacy``, the noise is rescaled to that budget. The expected error is computed again.
    """
    measured = plan.measured()
    earlier: tuple[EarlierRelease, ...] = ()
    if isinstance(plan, LinearPlan):
        measured = plan.measurements
        earlier = plan.earlier
    if privacy is not None:
        measured = rescale_noise(measured, privacy)
    details = plan.details_for(workload)
    return evaluate_plan(workload, measured, plan.strategy, details=details, earlier=earlier)


def equalised_weights(workload: Workload, goals: Sequence[Goal]) -> Workload:
    """Weight the tables such that errors equal to the goals count equally."""
    return _weight_by_ratio_shares(
        workload,
        goals,
        np.array([float(goal.has_target) for goal in goals]),
        Noise.DISCRETE_LAPLACE,
    )


def _weight_by_ratio_shares(
    workload: Workload, goals: Sequence[Goal], ratio_weights: FloatArray, noise: Noise
) -> Workload:
    """Weight the tables such that the error is a weighted sum of squared ratios.

    A ratio is the error of a table divided by its goal. ``ratio_weights`` are the weights of the
    squared ratios in this sum. The error equals the sum up to a constant factor.
    """
    stds = np.array([goal.std(noise, number) for number, goal in enumerate(goals)])
    largest = np.array([workload.domain.largest_value(product.measure) for product in workload])
    weights = (
        np.sqrt(ratio_weights / np.array([product.rows for product in workload])) * largest / stds
    )
    weights = np.maximum(weights / weights.max(), _LEAST_WEIGHT)
    exact = [
        Fraction(max(1, round(weight * 2**_WEIGHT_BITS)), 2**_WEIGHT_BITS) for weight in weights
    ]
    return Workload(
        workload.domain,
        tuple(
            replace(product, weight=weight) for product, weight in zip(workload, exact, strict=True)
        ),
    )


def _ratio_weights(workload: Workload, goals: Sequence[Goal], noise: Noise) -> list[float]:
    """Return the weight of each table's squared ratio in the total error.

    A table without a goal has the weight 0.
    """
    return [
        product.importance * product.rows * goal.std(noise, number) ** 2 if goal.has_target else 0.0
        for number, (product, goal) in enumerate(zip(workload, goals, strict=True))
    ]


def dual_bound(workload: Workload, goals: Sequence[Goal], privacy: Privacy, noise: Noise) -> float:
    """Return a lower bound on each plan's largest squared ratio of error to goal.

    The result is the lower bound on the weighted squared error of the tables with goals, divided by
    the sum of their weights. This bound is valid for three reasons: a table's largest standard
    error is at least the root mean square; half a step of the noise is at least 0; and the ratio of
    a mean is at least the ratio of its tables (see `MeanGoal`). With targets of other statistics,
    the bound is only approximate.
    """
    products_with_goals = tuple(
        product for product, goal in zip(workload, goals, strict=True) if goal.has_target
    )
    return lower_bound(Workload(workload.domain, products_with_goals), privacy, noise) / math.fsum(
        _ratio_weights(workload, goals, noise)
    )


_BUDGET_DIGITS = 4  # decimal digits of a least budget
_MOST_BUDGET_ESTIMATES = 30  # the most estimates of the budget for fixed measurements
_NO_BUDGET = (
    "No budget up to {most} meets every target, and a budget this large protects nobody. Allow "
    "larger errors, or request less."
)
SMALL = Fraction(1, 2**20)  # the epsilon or rho at which the search for a least budget begins


@dataclass(frozen=True, slots=True)
class Least:
    """The least budget that meets every target of a workload.

    Args:
        of: the parameter to minimise: "epsilon" or "rho".
        delta: the delta of a budget (epsilon, delta); None for pure differential privacy.
        level: the confidence level of the intervals whose half width a margin limits.
        neighbours: "add_remove" or "replace".
        unit_column: the column whose values are the privacy units; None if every row is a unit.
        max_rows: at most this many rows of a unit count.
        max_per_cell: at most this many of these rows count in one cell; None for no limit.
        unit_reading: the rules for reading the values of the unit's column.

    Raises:
        InputError: an argument cannot be used.

    >>> workload = ln.marginals(ln.Domain(sex=["F", "M"]), ways=1).within(margin=30)
    >>> ln.plan(workload, ln.Least("epsilon")).privacy.budget
    PureDP(epsilon='127/1250')
    """

    of: str = "epsilon"
    delta: Exact | None = None
    level: float = LEVEL
    neighbours: str = "add_remove"
    unit_column: str | None = None
    max_rows: int = 1
    max_per_cell: PerCellBound | None = None
    unit_reading: Reading = READ_AS_IT_IS

    def __post_init__(self) -> None:
        one_of("the quantity to minimise", self.of, ("epsilon", "rho"))
        if self.of == "rho" and self.delta is not None:
            raise refuse("delta", self.delta, "None together with rho")
        self.privacy(Fraction(1))

    def privacy(self, epsilon_or_rho: Fraction) -> Privacy:
        """Return the privacy with the given epsilon or rho, neighbours and unit."""
        if epsilon_or_rho > MOST_BUDGET:
            raise InputError(message(_NO_BUDGET, most=MOST_BUDGET))
        budget: Budget
        if self.of == "rho":
            budget = ZCDP(epsilon_or_rho)
        elif self.delta is None:
            budget = PureDP(epsilon_or_rho)
        else:
            budget = ApproxDP(epsilon_or_rho, self.delta)
        return Privacy(
            budget,
            self.neighbours,
            self.unit_column,
            self.max_rows,
            self.max_per_cell,
            self.unit_reading,
        )


def stated_privacy(privacy: Privacy | Least) -> Privacy | None:
    """Return the argument if it is a `Privacy`; None if it is a `Least`."""
    return None if isinstance(privacy, Least) else privacy


def smallest_privacy(privacy: Privacy | Least) -> Privacy:
    """Return a `Privacy` unchanged; for a `Least`, return its smallest budget."""
    if isinstance(privacy, Least):
        return privacy.privacy(SMALL)
    return privacy


def with_epsilon_or_rho(privacy: Privacy | Least, epsilon_or_rho: Exact) -> Privacy:
    """Return the privacy with another epsilon or rho."""
    like = smallest_privacy(privacy)
    _, *delta = parameters_by_name(like.budget).values()
    return like.within(type(like.budget)(epsilon_or_rho, *delta))


def plan_least_budget(workload: Workload, privacy: Least, search: Search | None = None) -> Plan:
    """Find the least budget that meets every target, and return its plan.

    The budget is rounded up to four significant digits. With the candidate strategies, no smaller
    budget meets the targets.
    """
    search = search or Search()
    goals = table_goals(workload, privacy.level, search.comparisons)
    privacy_of_size_one = privacy.privacy(Fraction(1))
    squared_ratio = dual_bound(
        equalised_weights(workload, goals),
        goals,
        privacy_of_size_one,
        noises_to_plan(privacy_of_size_one)[0],
    )
    # No plan keeps all targets with less than the first size, and the best plan needs slightly
    # more.
    size = SMALL
    if squared_ratio > 0:
        size = max(size, _round_up_to_digits(_budget_factor(squared_ratio, privacy_of_size_one)))
    size = min(size, Fraction(MOST_BUDGET))
    best = balance_plan(workload, privacy.privacy(size), goals, search)
    # The errors of small noise do not scale exactly, so the weights are balanced once more at the
    # budget that the first plan needs.
    size = _round_up_to_digits(
        float(size) * _budget_factor(best.largest_squared_ratio, best.plan.privacy)
    )
    within = privacy.privacy(size)
    try:
        best = _equalise_ratios(
            _evaluate_balance(
                plan_for_workload(best.workload, best.plan, within), best.workload, best.goals
            ),
            _MOST_WEIGHT_ROUNDS,
            search,
        )
    except InputError:  # the measurements of the plan cannot be rescaled
        best = balance_plan(
            best.workload, within, goals, replace(search, strategy=best.plan.strategy)
        )

    @cache
    def scaled(epsilon_or_rho: Fraction) -> tuple[Plan, float]:
        """Rescale the plan to a budget; return it with its largest squared ratio."""
        plan = plan_for_workload(workload, best.plan, privacy.privacy(epsilon_or_rho))
        return plan, float(squared_ratios(goals, plan).max())

    # Find the least size at which these measurements meet every goal.
    for _ in range(_MOST_BUDGET_ESTIMATES):
        guess = _round_up_to_digits(
            float(size) * _budget_factor(scaled(size)[1], best.plan.privacy)
        )
        if guess == size:
            break
        size = guess
    if scaled(size)[1] > 1:
        size = _least_parameter_above(size, lambda number: scaled(number)[1] <= 1)
    return scaled(size)[0]


def _least_parameter_above(
    lower_limit: Fraction, meets_goals: Callable[[Fraction], bool]
) -> Fraction:
    """Find the least epsilon or rho above a limit that meets the goals.

    Epsilon and rho have four significant digits. Usually the next value above the limit meets the
    goals. If noise hides a statistic, a much larger value can be necessary. The step to the next
    tried value doubles until a value meets the goals; then the value is found by bisection.

    Raises:
        InputError: no value up to the largest budget meets the goals.
    """
    low = lower_limit
    step = _last_digit_unit(lower_limit)
    high = lower_limit + step
    while not meets_goals(high):
        if high > MOST_BUDGET:
            raise InputError(message(_NO_BUDGET, most=MOST_BUDGET))
        low = high
        step *= 2
        high = _round_up_to_digits(float(high + step))
    while True:
        middle = _round_up_to_digits(float(low + high) / 2)
        if middle in {low, high}:
            return high
        if meets_goals(middle):
            high = middle
        else:
            low = middle


def _budget_factor(squared_ratio: float, privacy: Privacy) -> float:
    """Return the budget factor that changes a squared ratio to about 1.

    Errors are proportional to 1 / epsilon or to 1 / sqrt(rho).
    """
    if isinstance(privacy.budget, ZCDP):
        return squared_ratio
    return math.sqrt(squared_ratio)


def _last_digit_unit(epsilon_or_rho: Fraction) -> Fraction:
    """Return one unit in the fourth significant digit of an epsilon or rho."""
    return Fraction(10) ** (math.floor(math.log10(epsilon_or_rho)) + 1 - _BUDGET_DIGITS)


def _round_up_to_digits(epsilon_or_rho: float) -> Fraction:
    """Round an epsilon or rho up to four significant digits."""
    step = _last_digit_unit(Fraction(epsilon_or_rho))
    return math.ceil(Fraction(epsilon_or_rho) / step) * step


def plan_worst_ratio(
    workload: Workload, privacy: Privacy, search: Search, level: float = LEVEL
) -> Plan:
    """Return the plan that minimises the largest ratio of error to target.

    If there are no targets, each error is divided by the error that the table would have if only
    this table were planned.
    """
    if workload.has_targets or search.comparisons:
        goals = table_goals(workload, level, search.comparisons)
    else:
        single_plans = {
            question: choose_plan(single_workload, privacy, search)[0]
            for question, single_workload in _single_table_workloads(workload).items()
        }
        goals = tuple(
            Goal(single_plans[product.table_key].expected_error().tables[0].rmse)
            for product in workload
        )
    return plan_for_workload(workload, balance_plan(workload, privacy, goals, search).plan)


def worst_seconds(workload: Workload, privacy: Privacy, search: Search) -> float:
    """Estimate the CPU seconds of `plan_worst_ratio`."""
    has_targets = workload.has_targets or search.comparisons
    single_workloads = [] if has_targets else _single_table_workloads(workload).values()
    return balanced_seconds(workload, privacy, search) + sum(
        planning_seconds(table, privacy, search) for table in single_workloads
    )


def _single_table_workloads(workload: Workload) -> dict[tuple[object, ...], Workload]:
    """Return, for each distinct table, a workload of only this table."""
    return {product.table_key: Workload(workload.domain, (product,)) for product in workload}


def plan_relative_error(
    workload: Workload, privacy: Privacy, search: Search, _level: float = LEVEL
) -> Plan:
    """Return the plan with the least errors relative to public table sizes.

    The plan minimises the sum of the squared relative errors.
    """
    without = [product.name for product in workload if product.size is None]
    if without:
        needs_size = (
            "The objective 'relative' needs a public size for every table; it is missing for "
            "{tables}."
        )
        raise InputError(message(needs_size, tables=quoted(", ".join(without))))
    products = tuple(
        replace(product, weight=product.weight / (product.size or 1)) for product in workload
    )
    return plan_for_workload(
        workload, choose_plan(Workload(workload.domain, products), privacy, search)[0]
    )


OBJECTIVES = {
    "worst": (plan_worst_ratio, worst_seconds),
    "relative": (plan_relative_error, planning_seconds),
}
"""The objectives other than the total, by their names in a spec.

Each has two entries: the function that plans for it, and an estimate of its CPU seconds.
"""


class TargetStatus(NamedTuple):
    """The target of a table or a statistic, and its expected error.

    The error is infinite if the interval of a statistic is unbounded.
    """

    kind: str
    most: float
    error: float

    @property
    def is_met(self) -> bool:
        """Whether the expected error is within the target."""
        return self.error <= self.most * (1 + 1e-12)


def target_statuses(plan: Plan, level: float) -> tuple[TargetStatus | None, ...]:
    """Compare each table's error with its target; None if it has no target."""
    return tuple(
        None
        if product.target is None
        else TargetStatus(
            product.target.kind,
            most := float(product.target.most),
            most * math.sqrt(_table_goal(product, level).squared_ratio(plan, number)),
        )
        for number, product in enumerate(plan.workload)
    )


def statistic_target_statuses(plan: Plan, level: float) -> tuple[TargetStatus | None, ...]:
    """Compare each statistic's error with its target; None if it has none.

    The error is for a group of the public size. For variances, correlations and regressions, it is
    at the public scales. The result has one entry for each statistic.
    """
    errors = {goal.statistic: goal.error(plan) for goal in mean_goals(plan.workload, level)}
    errors |= {
        goal.statistic: goal.expected_error(plan) for goal in moment_goals(plan.workload, level)
    }
    return tuple(
        None
        if statistic.target is None
        else TargetStatus(statistic.target.kind, float(statistic.target.most), errors[statistic])
        for statistic in plan.workload.statistics
    )


def missed_targets(plan: Plan, level: float) -> tuple[str, ...]:
    """Return the names of the tables and statistics that miss their targets.

    Args:
        plan: the plan. The result is empty if the plan's error depends on the data.
        level: the confidence level of the intervals whose half width a margin limits.
    """
    if plan.data_independent_error is None:
        return ()
    table_names = [product.name for product in plan.workload.products]
    statistic_names = [statistic.name for statistic in plan.workload.statistics]
    statuses = (*target_statuses(plan, level), *statistic_target_statuses(plan, level))
    return tuple(
        name
        for name, status in zip(table_names + statistic_names, statuses, strict=True)
        if status is not None and not status.is_met
    )


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of some tables, as shares of a plan's budget."""

    table: str
    alone: float  # the budget for only these tables with the same errors
    saved: float  # the decrease of the budget if only the other tables are requested


MOST_PRICED = 24  # maximum number of tables; each of them needs a plan
# If at least this share of the tables remains, they are reweighted, and strategies are not
# compared.
_NEARLY_ALL = 0.9
PriceCache: TypeAlias = dict[object, float]
"""The results of searches for prices of one plan, by the remaining tables."""


def table_prices(plan: Plan, search: Search | None = None) -> tuple[Price, ...]:
    """Return the cost of each table of a plan, as shares of the budget."""
    products = plan.workload.products
    if not 2 <= len(products) <= MOST_PRICED:
        raise refuse("the number of tables to be priced", len(products), f"from 2 to {MOST_PRICED}")
    cached_prices: PriceCache = {}
    prices_of = []
    search = search or Search()
    for number, product in enumerate(products):
        if search.progress is not None:
            search.progress(product.name)
        prices_of.append(
            joint_price(plan, (number,), replace(search, progress=None), cached_prices)
        )
    return tuple(prices_of)


def joint_price(
    plan: Plan,
    table_indices: Sequence[int],
    search: Search | None = None,
    cached_prices: PriceCache | None = None,
) -> Price:
    """Return the joint cost of several tables, as shares of the budget."""
    if isinstance(plan, LinearPlan) and plan.earlier:
        raise InputError(
            "Prices of tables require a plan without earlier releases, because a price is a share "
            "of a single budget. Leave out `after`."
        )
    count = len(plan.workload.products)
    selection = set(table_indices)
    if cached_prices is None:
        cached_prices = {}
    if count <= len(selection):
        raise InputError(
            "A table has a price only if there are other tables; keep at least one more table."
        )
    inside_tables = [number for number in range(count) if number in selection]
    outside_tables = [number for number in range(count) if number not in selection]
    inside, outside = (
        _budget_factor(
            _squared_error_ratio_of_tables(plan, tables, search or Search(), cached_prices),
            plan.privacy,
        )
        for tables in (inside_tables, outside_tables)
    )
    return Price(
        ", ".join(plan.workload.products[number].name for number in table_indices),
        inside,
        1 - min(1.0, outside),
    )


def _squared_error_ratio_of_tables(
    plan: Plan, table_indices: Sequence[int], search: Search, cached_prices: PriceCache
) -> float:
    """Return the largest ratio of new to old squared errors with fewer tables.

    Old errors are the errors of the plan. New errors are the errors of a plan of only the remaining
    tables with the same budget.
    """
    products = plan.workload.products
    errors = [table.rmse for table in plan.expected_error().tables]
    workload = Workload(plan.domain, tuple(products[number] for number in table_indices))
    if len(table_indices) == 1:
        question = workload.products[0].table_key
        if question not in cached_prices:
            cached_prices[question] = (
                choose_plan(workload, plan.privacy, search)[0].expected_error().tables[0].rmse
            )
        return (cached_prices[question] / errors[table_indices[0]]) ** 2
    if frozenset(table_indices) not in cached_prices:
        goals = tuple(Goal(errors[number]) for number in table_indices)
        smaller_plan = None
        # Only a few tables are left out, so the same strategy is nearly the best one.
        if len(table_indices) >= _NEARLY_ALL * len(products):
            with suppress(InputError):
                smaller_plan = _equalise_ratios(
                    _evaluate_balance(reweight_plan(plan, workload), workload, goals), 2, search
                )
            # The strategy may not suit the remaining tables, such as cells without prefix sums.
            with suppress(InputError):
                smaller_plan = smaller_plan or _evaluate_balance(
                    search_again(
                        plan,
                        workload,
                        search,
                        _quick_search(search, workload, plan.privacy).seconds,
                    ),
                    workload,
                    goals,
                )
        cached_prices[frozenset(table_indices)] = (
            smaller_plan or _compare_strategies(workload, plan.privacy, goals, 2, search)[0]
        ).largest_squared_ratio
    return cached_prices[frozenset(table_indices)]
