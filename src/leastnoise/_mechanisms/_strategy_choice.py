"""The automatic choice of a strategy.

Every applicable planner is tried, and the plan with the least expected error is chosen. No data is
read.
"""

import gc
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from leastnoise._error import bound_seconds, evaluate_plan, lower_bound, noise_name
from leastnoise._families import NotApplicable, partition_groups
from leastnoise._fitting import NOISES, fit_noise_scales
from leastnoise._frames import Columns, TabularMixin
from leastnoise._plan import EarlierRelease, LinearPlan, Plan
from leastnoise._strategies import (
    PLANNERS,
    Deadline,
    Planner,
    PlanningProblem,
    Strategy,
    counts_and_sums,
    deadline_passed,
    reweighted_strategy,
    split_units_budget,
    time_limit,
)
from leastnoise._trusted.accounting import Noise, Privacy, parameters_by_name
from leastnoise._trusted.check import InputError, InternalError, message, one_of, readable, refuse
from leastnoise._trusted.measurements import MOST_ROWS
from leastnoise._workload import ComparisonTarget, Workload

Progress: TypeAlias = Callable[[str], None] | None
SECONDS = 5.0  # the default CPU seconds of planning


@dataclass(frozen=True, slots=True)
class Search:
    """The options of a search for a plan.

    Attributes:
        strategy: the name of a strategy, or "auto".
        seconds: the CPU seconds that planning may take.
        progress: called with the name of each strategy that is tried; None to report nothing.
        every: whether to try also the strategies that probably cannot be the best.
        custom_planner: the planner of a user's strategy; None otherwise.
        impossible: combinations of cells that no row has, by attribute.
        public: the public counts of the spec.
        comparisons: the targets for comparisons of groups.
        earlier: the earlier releases whose measurements the plan uses.
        now: the clock that measures ``seconds``.
    """

    strategy: str = "auto"
    seconds: float = SECONDS
    progress: Progress = None
    every: bool = False
    custom_planner: Planner | None = None
    impossible: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    public: tuple[Mapping[str, Any], ...] = ()
    comparisons: tuple[ComparisonTarget, ...] = ()
    earlier: tuple[EarlierRelease, ...] = ()
    now: Callable[[], float] = time.thread_time

    def __post_init__(self) -> None:
        seconds = self.seconds
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, (int, float))
            or not 0 < seconds < math.inf
        ):
            raise refuse(
                "seconds",
                seconds,
                "a number above 0, such as 5",
                "It limits the CPU time of the search for a plan.",
            )
        object.__setattr__(self, "seconds", float(seconds))

    @property
    def planner(self) -> Planner | None:
        """The planner ``strategy`` or the user's own; None for automatic choices.

        None for the automatic choice and for data-dependent mechanisms.
        """
        return self.custom_planner or PLANNERS.get(self.strategy)


MOST_BUDGET = 2**20  # the largest epsilon or rho; a larger budget protects nobody
_QUICK_SHARE = 1 / 10  # a planner is quick if it takes at most this part of the seconds
_CHECK_SHARE = 1 / 10  # part of the seconds for the check of tables with high errors
_SEARCH_SHARE = 1 / 2  # part of the remaining seconds that a search may take beyond its least
# Estimates decide which planners are tried, so that the plan is the same on every machine. The
# clock only ends a search that hangs: a search that takes this many times the seconds. Other
# programs on the machine at most double CPU seconds, and estimates are at most three times too low
# (docs/results/auto.md).
_DEADLINE_FACTOR = 10.0
_LEAST_TIMED_SECONDS = 1.0  # quick planners together take up to a second, for every time limit
# Factor of the seconds that a planner may take if its error reaches the lower bound. For prefix
# sums of 4096 cells under Gaussian noise, such a planner takes 13 seconds. Quick planners are only
# 1.5% worse.
_TIMES_TO_REACH_BOUND = 4
_CHANCE_OF_OTHER_NOISE = 1 / 8  # probability that the best plan has the other kind of noise
# With Laplace noise, searches reach this part of the squared error of quick planners; with Gaussian
# noise, quick planners are near the best.
_LAPLACE_SEARCH_GAIN = 1 / 2
# The largest gain of such a search that was measured is 0.28 of the squared error of quick planners
# (case 34 of bench/auto_grid.py). Below it, no search with Laplace noise is tried.
_LARGEST_SEARCH_GAIN = 1 / 4
_NO_GAIN = 2e-3  # relative gain of the squared error; this is 0.1% of the error
# The same for a search that exceeds the seconds: 0.5% of the error is not worth the wait.
_NO_GAIN_BEYOND_SECONDS = 1e-2
_NEEDLESS = (
    "by a lower bound, it can gain at most {gain} of the squared error; choose it by name to try it"
)
_FAR_BEHIND = (
    "quick strategies with this noise have more than {times} times the least squared error, and "
    "searches with this noise rarely gain more; choose it by name to try it"
)
_NO_TIME = (
    "its estimated time does not fit into the rest of the {seconds} CPU seconds; allow more "
    "seconds, or choose it by name"
)
_CONTAINED = "its tables are among those that {name} chooses from; ask for it by name"
# A table has a high error above this multiple of its error in a separate plan.
_HIGH_ERROR_RATIO = 2.0
_VISIBLE_ERROR = 1e-3  # with a smaller standard error, no published number differs from the truth
_MOST_CROWDED = 24  # the most tables that are compared with separate plans
_MANY_TABLES = 1024  # with more tables, each tried planner takes seconds


@dataclass(frozen=True, slots=True)
class Candidate:
    """The result of planning with one strategy and one kind of noise.

    Attributes:
        strategy: the name of the strategy.
        noise: the kind of noise.
        plan: the plan; None if the strategy found none.
        reason: the reason why there is no plan.
        seconds: the CPU seconds that the trial took.
        useful_seconds: CPU seconds with which its search might find a better plan; 0 if more time
            does not help.
        needless: whether a lower bound or the errors of quick planners show that it can gain almost
            nothing.
        ended: whether it stopped because of the deadline.
        unsuited: whether it is only for other workloads or other noise.
    """

    strategy: str
    noise: Noise
    plan: LinearPlan | None
    reason: str
    seconds: float
    useful_seconds: float = 0.0
    needless: bool = False
    ended: bool = False
    unsuited: bool = False

    @property
    def mechanism(self) -> str:
        """The name of the kind of noise: of the plan or, without one, of the trial."""
        if self.plan is None:
            return self.noise.value
        return noise_name(self.plan.measured())

    @property
    def left_out(self) -> bool:
        """Whether the strategy was not tried because it could gain almost nothing."""
        return self.needless and self.plan is None

    @property
    def rank(self) -> tuple[bool, float]:
        """The sort key of candidates; the best candidate comes first."""
        return self.needless, self.total

    @property
    def total(self) -> float:
        """The expected total squared error; infinite without a plan."""
        if self.plan is None:
            return float("inf")
        return self.plan.expected_error().total_squared_error


class StrategyComparison(TabularMixin, tuple[Candidate, ...]):
    """The results of planning with all strategies, which print as a table."""

    __slots__ = ()

    def columns(self) -> Columns:
        """The columns of the table, with one row for each strategy.

        If a strategy does not apply, its errors are NaN and ``reason`` has the reason.
        """
        expected_errors = [
            None if tried.plan is None else tried.plan.expected_error() for tried in self
        ]
        ratios_to_bound = [
            None if expected_error is None else expected_error.times_least
            for expected_error in expected_errors
        ]
        return {
            "strategy": np.array([tried.strategy for tried in self], dtype=object),
            "noise": np.array([tried.mechanism for tried in self], dtype=object),
            "expected_total_squared_error": np.array(
                [
                    math.nan if error is None else error.total_squared_error
                    for error in expected_errors
                ]
            ),
            "error_over_least": np.array(
                [math.nan if ratio is None else ratio for ratio in ratios_to_bound]
            ),
            "seconds": np.array([tried.seconds for tried in self]),
            "reason": np.array([tried.reason for tried in self], dtype=object),
        }


def noise_kinds(privacy: Privacy) -> tuple[Noise, ...]:
    """Return the kinds of noise that a budget allows, the usual one first."""
    kinds = NOISES[type(privacy.budget)]
    if kinds[0] is Noise.DISCRETE_GAUSSIAN:
        return kinds[:1]
    return kinds


def try_strategies(
    workload: Workload,
    privacy: Privacy,
    strategy: str | Planner = "auto",
    seconds: float = SECONDS,
    progress: Progress = None,
    *,
    try_all: bool = True,
    now: Callable[[], float] = time.thread_time,
) -> Iterator[Candidate]:
    """Plan with one strategy after another, and yield each result.

    Quick planners are tried first. Other planners follow in the order of their seconds divided by
    the probability that they find the best plan. Estimates of seconds determine which planners are
    tried and how long they search. So the plan does not depend on the machine or its load. The
    clock ends only searches that take far too long: all planners have a common deadline, after ten
    times the seconds. A planner that reaches the lower bound may take four times the seconds.

    Args:
        workload: the queries to answer.
        privacy: budget, neighbours and privacy unit.
        strategy: "auto", the name of a planner, or a planner.
        seconds: CPU seconds that the automatic choice may take.
        progress: a function that is called with the name of each tried strategy.
        try_all: whether to try also the strategies that, by a lower bound, gain almost nothing.
        now: the clock.
    """
    trials = _Trials(workload, privacy, strategy, seconds, now)
    while trials.waiting:
        trial = trials.next_trial()
        reason = trials.reason_to_skip(trial, try_all=try_all)
        if reason:
            yield trial.without_plan(reason)
            continue
        if progress is not None:
            progress(trial.planner.name)
        yield trials.carry_out(trial)


class _Trials:
    """The queue of planners that are still to be tried, and the results so far.

    Attributes:
        waiting: the remaining planners, the next planner first.
    """

    def __init__(
        self,
        workload: Workload,
        privacy: Privacy,
        strategy: str | Planner,
        seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._workload = workload
        self._privacy = privacy
        self._seconds = seconds
        self._now = now
        self._is_automatic = strategy == "auto"
        self._has_many_tables = len(workload.products) > _MANY_TABLES
        self._results = _ResultsSoFar(noise_kinds(privacy))
        self._seconds_left = math.inf
        self._deadline = math.inf
        if self._is_automatic:
            self.waiting = time_requests(workload, privacy, seconds)
            self._seconds_left = seconds - bound_seconds(workload)
            self._deadline = now() + _DEADLINE_FACTOR * max(seconds, _LEAST_TIMED_SECONDS)
        else:
            self.waiting = _requests_of(_planner_of(strategy), privacy)
        if self._has_many_tables:
            self.waiting.sort(key=lambda request: not request.planner.contains(workload))
        self._is_ordered = not self._is_automatic or self._has_many_tables

    def next_trial(self) -> "_Trial":
        """Remove the next planner from the queue, and return its trial."""
        if not self._is_ordered and self.waiting[0].is_slow:
            self._is_ordered = True
            order = self._results.promising_noise()
            self.waiting.sort(key=lambda request: request.rank(order))
        request = self.waiting.pop(0)
        seconds = request.granted(self._seconds_left)
        deadline = self._deadline
        if request.own_seconds:
            deadline += _DEADLINE_FACTOR * request.own_seconds
        needless = ""
        if request.is_slow:
            gain = _NO_GAIN
            if request.least > self._seconds_left:
                gain = _NO_GAIN_BEYOND_SECONDS
            needless = self._results.reason_against(request.planner, request.noise, gain)
        problem = PlanningProblem(
            self._workload,
            self._privacy,
            request.noise,
            seconds / _planning_passes(self._workload),
        )
        return _Trial(
            request, problem, Deadline(deadline, self._now), time.perf_counter(), needless
        )

    def reason_to_skip(self, trial: "_Trial", *, try_all: bool) -> str:
        """Return why a planner should not be tried, or "" if it should.

        Quick planners are always tried, unless they are special cases of other planners.
        """
        reason = self._results.reason_to_skip(trial.planner, trial.problem.noise)
        if reason or not trial.request.is_slow or self._results.best == math.inf:
            return reason
        if trial.needless and not try_all:
            return trial.needless
        if not trial.problem.seconds > 0 or trial.deadline.has_passed():
            return message(_NO_TIME, seconds=f"{self._seconds:g}")
        return ""

    def carry_out(self, trial: "_Trial") -> Candidate:
        """Plan with one planner, record the error, and return the candidate."""
        planner = trial.planner
        noise = trial.problem.noise
        with time_limit(trial.deadline):
            plan, error = _better_of_joint_and_separate(
                planner, trial.problem, iterate=not self._is_automatic
            )
        is_unsuited = isinstance(error, NotApplicable)
        if self._is_automatic and not is_unsuited:  # unsuited planners fail at once
            self._seconds_left -= _planning_passes(self._workload) * trial.problem.seconds
        needless = bool(trial.needless) and plan is not None
        if plan is not None:
            self._results.add(noise, plan, is_needless=needless)
            if self._has_many_tables:
                contained = planner.contains(self._workload)
                self._results.add_contained(planner, noise, contained)
        return replace(
            trial.without_plan("" if error is None else str(error)),
            plan=plan,
            needless=needless,
            unsuited=is_unsuited,
        )


@dataclass(frozen=True, slots=True)
class _Trial:
    """A planner, the problem to plan, and the time that it may take.

    Attributes:
        request: the planner and the time that it is estimated to need.
        problem: the public input of the planner.
        deadline: the time at which the planner must end.
        start: the time at which the trial began.
        needless: the reason why it can gain almost nothing, or an empty text if it may gain more.
    """

    request: "TimeRequest"
    problem: PlanningProblem
    deadline: Deadline
    start: float
    needless: str

    @property
    def planner(self) -> Planner:
        """The planner of this trial."""
        return self.request.planner

    def without_plan(self, reason: str) -> Candidate:
        """Return the candidate for a planner that found no plan, with the reason.

        The returned candidate has the number of seconds that the search would need to end.
        """
        useful_seconds = 0.0
        is_needless = reason and reason == self.needless
        if not is_needless:
            most_seconds = self.planner.most_seconds(self.problem.workload, self.problem.norm)
            if self.deadline.ended or most_seconds > self.problem.seconds:
                useful_seconds = most_seconds
        return Candidate(
            self.planner.name,
            self.problem.noise,
            None,
            reason,
            time.perf_counter() - self.start,
            useful_seconds,
            bool(self.needless),
            self.deadline.ended,
        )


def _planner_of(strategy: str | Planner) -> Planner:
    """Return the planner that a name denotes; return a planner unchanged."""
    if isinstance(strategy, Planner):
        return strategy
    return PLANNERS[one_of("strategy", strategy, ("auto", *PLANNERS))]


class _ResultsSoFar:
    """The least errors and the largest lower bounds found so far, by noise.

    Attributes:
        least: the least total squared error for each kind of noise.
        proved: the largest lower bound for each kind of noise.
        contained: for each planner that is a special case of another planner, the name of the other
            planner.
    """

    def __init__(self, noises: Sequence[Noise]) -> None:
        self.least = dict.fromkeys(noises, math.inf)
        self.proved = dict.fromkeys(noises, 0.0)
        self.contained: dict[tuple[str, Noise], str] = {}

    @property
    def best(self) -> float:
        """The least total squared error so far with any kind of noise."""
        return min(self.least.values())

    def promising_noise(self) -> list[Noise]:
        """Return the kinds of noise, ordered by the least error so far."""
        return sorted(
            self.least,
            key=lambda noise: (
                self.least[noise] * (_LAPLACE_SEARCH_GAIN if noise.norm == 1 else 1.0)
            ),
        )

    def reason_against(self, planner: Planner, noise: Noise, gain: float) -> str:
        """Return why a planner can gain almost nothing, or "" if it can gain more.

        ``gain`` is the relative gain of the squared error up to which a gain counts as almost
        nothing.
        """
        if self.gains_almost_nothing(planner, noise, gain):
            return message(_NEEDLESS, gain=f"{gain:.1%}")
        if self.is_far_behind(noise):
            return message(_FAR_BEHIND, times=f"{1 / _LARGEST_SEARCH_GAIN:g}")
        return ""

    def is_far_behind(self, noise: Noise) -> bool:
        """Return whether no search with this noise can give the best plan.

        The result can be True only for Laplace noise. With Laplace noise, searches reduce the
        squared error of quick planners by at most a known factor.
        """
        least = self.least[noise]
        return noise.norm == 1 and self.best < _LARGEST_SEARCH_GAIN * least < math.inf

    def gains_almost_nothing(self, planner: Planner, noise: Noise, gain: float) -> bool:
        """Return whether a bound proves that a planner gains almost nothing.

        The lower bounds are valid for independent noise, and prove nothing about joint noise.
        """
        is_proved = self.best <= (1 + gain) * self.proved[noise]
        is_bounded = planner.has_independent_noise
        return is_bounded and is_proved and (planner.name, noise) not in self.contained

    def reason_to_skip(self, planner: Planner, noise: Noise) -> str:
        """Return why a planner that another planner covers is skipped, or ""."""
        container = self.contained.get((planner.name, noise))
        if container is None:
            return ""
        return message(_CONTAINED, name=container)

    def add(self, noise: Noise, plan: Plan, *, is_needless: bool) -> None:
        """Record the expected error and the lower bound of a plan."""
        if not is_needless:
            expected_error = plan.expected_error()
            self.least[noise] = min(self.least[noise], expected_error.total_squared_error)
            self.proved[noise] = max(self.proved[noise], expected_error.lower_bound)

    def add_contained(self, planner: Planner, noise: Noise, names: Sequence[str]) -> None:
        """Record the names of planners that are special cases of a planner."""
        for name in names:
            self.contained[name, noise] = planner.name


def _better_of_joint_and_separate(
    planner: Planner, problem: PlanningProblem, *, iterate: bool
) -> tuple[LinearPlan | None, InputError | None]:
    """Return the better plan of joint and separate sums, or else the reason.

    Counts and sums can be measured jointly, which is usually better. If neither plan exists, the
    result is None and the reason.
    """
    both = None
    separate_plan = None
    error = None
    if problem.workload.counted_sums:
        both, _ = _plan_proposal(partial(counts_and_sums, planner), problem, iterate=iterate)
    if both is None or not deadline_passed():
        separate_plan, error = _plan_proposal(planner.strategy, problem, iterate=iterate)
    plans = [plan for plan in (separate_plan, both) if plan is not None]
    if not plans:
        return None, error
    return min(plans, key=lambda plan: plan.expected_error().total_squared_error), None


def _plan_proposal(
    propose: Callable[[PlanningProblem], Strategy], problem: PlanningProblem, *, iterate: bool
) -> tuple[LinearPlan | None, InputError | None]:
    """Return the plan of a planner's proposal, or else the error that prevents it."""
    try:
        with not_applicable_if_arithmetic_fails():
            # Extreme weights or budgets may overflow in a search. Its result is checked exactly.
            with np.errstate(all="ignore"):
                proposal = propose(problem)
            blocks = split_units_budget(problem, proposal.blocks)
            fitted = fit_noise_scales(
                problem.workload.domain, problem.privacy, problem.noise, blocks
            )
            plan = evaluate_plan(
                problem.workload,
                fitted,
                proposal.name,
                details=proposal.details,
                may_iterate=iterate,
            )
            _check_finite(plan)
    except InputError as error:
        return None, error
    except MemoryError as error:
        return None, InputError(memory_error_reason(error))
    return plan, None


@contextmanager
def not_applicable_if_arithmetic_fails() -> Iterator[None]:
    """Convert arithmetic errors of a ``with`` block to NotApplicable.

    A planner proposes the queries to measure, so a fault in a planner can only cost accuracy.
    """
    try:
        yield
    except InputError:
        raise
    # LinAlgError is a ValueError. A weight that is not a number ends in an InternalError.
    except (ArithmeticError, ValueError, InternalError) as error:
        raise NotApplicable(
            message("its arithmetic failed ({fault})", fault=type(error).__name__)
        ) from error


def _check_finite(plan: Plan) -> None:
    """Raise ArithmeticError if a plan's expected error is infinite or NaN."""
    total = plan.expected_error().total_squared_error
    if not math.isfinite(total):
        raise FloatingPointError(f"the expected error is {total}")


@dataclass(frozen=True, slots=True)
class TimeRequest:
    """The CPU seconds that a planner is estimated to need.

    Attributes:
        planner: the planner.
        noise: the kind of noise.
        least: the seconds until it has any strategy; 0 if it does not support the noise.
        most: seconds until it has the best strategy that it can find.
        likely: the probability that it is the best planner for this noise, relative to the same
            probability of other planners.
        is_slow: whether ``most`` exceeds a small share of the seconds.
        own_seconds: the seconds that it may take even beyond the time limit; 0 for most planners.
    """

    planner: Planner
    noise: Noise
    least: float
    most: float
    likely: float
    is_slow: bool
    own_seconds: float = 0.0

    def rank(self, noise_order: Sequence[Noise]) -> tuple[bool, float]:
        """Return the sort key of the request, given an order of the kinds of noise.

        Quick planners come first. The other planners are sorted by the ratio of their seconds to
        the probability that they are best.
        """
        if not self.is_slow:
            return False, noise_order.index(self.noise)
        chance_of_noise = _CHANCE_OF_OTHER_NOISE ** noise_order.index(self.noise)
        return True, self.least / (chance_of_noise * self.likely)

    def granted(self, seconds_left: float) -> float:
        """Return the seconds that the planner may take; 0 if too few remain."""
        seconds_left = max(seconds_left, self.own_seconds)
        if self.least > seconds_left and self.is_slow:
            return 0.0
        return min(self.most, max(self.least, _SEARCH_SHARE * seconds_left))


def time_requests(workload: Workload, privacy: Privacy, seconds: float) -> list[TimeRequest]:
    """Estimate the CPU seconds of each planner that the automatic choice may try.

    Args:
        workload: the queries to answer.
        privacy: budget, neighbours and privacy unit.
        seconds: CPU seconds that the automatic choice may take.
    """
    passes = _planning_passes(workload)
    noises = noise_kinds(privacy)
    requests: list[TimeRequest] = []
    for noise in noises:
        for planner in PLANNERS.values():
            if not planner.automatic:
                continue
            least = passes * planner.least_seconds(workload, noise.norm)
            most = passes * planner.most_seconds(workload, noise.norm)
            is_slow = most > _QUICK_SHARE * seconds
            likely = planner.relative_likelihood(workload)
            own_seconds = 0.0
            if planner.reaches_bound(workload):
                own_seconds = _TIMES_TO_REACH_BOUND * seconds
            requests.append(TimeRequest(planner, noise, least, most, likely, is_slow, own_seconds))
    return sorted(requests, key=lambda request: request.rank(noises))


def _requests_of(planner: Planner, privacy: Privacy) -> list[TimeRequest]:
    """Return one planner's requests by kind of noise, ignoring time limits."""
    return [
        TimeRequest(planner, noise, math.inf, math.inf, 1.0, is_slow=False)
        for noise in noise_kinds(privacy)
    ]


def reweight_plan(plan: Plan, workload: Workload) -> LinearPlan:
    """Optimise the weights of a plan's measured tables for another workload.

    Planning is quick, because the strategies of the tables stay the same.
    """
    measured = plan.measured()
    with not_applicable_if_arithmetic_fails():
        proposal = reweighted_strategy(
            plan.strategy, workload, measured.blocks, measured.noise.norm
        )
        fitted = fit_noise_scales(workload.domain, plan.privacy, measured.noise, proposal.blocks)
        return evaluate_plan(workload, fitted, proposal.name)


def search_again(
    plan: Plan, workload: Workload, search: Search, seconds: float = math.inf
) -> LinearPlan:
    """Plan another workload with the strategy and budget of a plan."""
    planner = search.custom_planner or PLANNERS[plan.strategy]
    noise = plan.measured().noise
    time_limit_seconds = max(
        seconds / _planning_passes(workload), planner.least_seconds(workload, noise.norm)
    )
    best, error = _better_of_joint_and_separate(
        planner, PlanningProblem(workload, plan.privacy, noise, time_limit_seconds), iterate=True
    )
    if best is None:
        raise error if error is not None else InputError("No strategy can be used.")
    return best


def planning_seconds(workload: Workload, privacy: Privacy, search: Search) -> float:
    """Estimate the CPU seconds of a search over strategies.

    The estimate for a data-dependent mechanism is 0.
    """
    if search.strategy == "auto":
        seconds_left = search.seconds - bound_seconds(workload)
        total = 0.0
        for request in time_requests(workload, privacy, search.seconds):
            seconds = request.granted(seconds_left)
            seconds_left -= seconds
            total += seconds
        return total
    planner = search.planner
    if planner is None:
        return 0.0
    return _planning_passes(workload) * sum(
        planner.most_seconds(workload, noise.norm) for noise in noise_kinds(privacy)
    )


def _planning_passes(workload: Workload) -> int:
    """Return how often each strategy plans a workload: once or twice.

    A strategy plans twice if counts and sums may be measured either separately or jointly.
    """
    if workload.counted_sums:
        return 2
    return 1


def memory_error_reason(error: MemoryError) -> str:
    """Describe a MemoryError: the memory requested, and what users can do."""
    size = str(error).split(" for an array", 1)[0][:80]
    if size:
        at_once = f" ({size[:1].lower()}{size[1:]} at once)"
    else:
        at_once = ""
    return message(
        "it needs more memory than is available{at_once}; ask for fewer or smaller tables",
        at_once=at_once,
    )


def with_best_lower_bounds(tried: Sequence[Candidate]) -> list[Candidate]:
    """Give all candidates the largest lower bound found for their noise.

    A bound that one candidate found holds for all candidates with this kind of noise. Candidates
    with K-norm noise are an exception, and keep their own bounds.
    """
    bounds: dict[Noise, float] = {}
    for entry in tried:
        if entry.plan is not None and not entry.plan.measured().k_norm_groups():
            bounds[entry.noise] = max(bounds.get(entry.noise, 0.0), entry.plan.lower_bound())
    return [
        entry
        if entry.plan is None or entry.plan.measured().k_norm_groups()
        else replace(
            entry,
            plan=replace(
                entry.plan,
                data_independent_error=replace(
                    entry.plan.expected_error(), lower_bound=bounds[entry.noise]
                ),
            ),
        )
        for entry in tried
    ]


def _failure_reasons(tried: Sequence[Candidate]) -> str:
    """Explain in sentences why no strategy could be used.

    Reasons that another workload or budget would remove are listed first.

    Reasons that are equal except for numbers are listed once, with the names of all their
    strategies. Strategies for other workloads are listed only by name, if there is any other
    reason.
    """
    decisive = [entry for entry in tried if not entry.unsuited] or [*tried]
    named: dict[str, tuple[str, dict[str, None]]] = {}
    for entry in decisive:
        without_numbers = re.sub(r"[\d./e+-]+", "#", entry.reason)
        _, names = named.setdefault(without_numbers, (entry.reason.rstrip("."), {}))
        names[entry.strategy] = None
    sentences = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in named.values())
    others = dict.fromkeys(entry.strategy for entry in tried if entry not in decisive)
    for entry in decisive:
        others.pop(entry.strategy, None)
    if not others:
        return f"{sentences}."
    return f"{sentences}. Made for other workloads or other noise: {', '.join(others)}."


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collector in a ``with`` block.

    The millions of values of a large plan contain no cycles, and scanning them is slow.
    """
    # If several threads plan, the thread that stops the collector first also starts it again.
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Move the new values to the oldest generation, else each generation would scan them again.
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()


def choose_plan(
    workload: Workload, privacy: Privacy, search: Search | None = None
) -> tuple[LinearPlan, tuple[Candidate, ...]]:
    """Return the plan with the least expected error, and all candidates."""
    name, value = next(iter(parameters_by_name(privacy.budget).items()))
    if value > MOST_BUDGET:
        raise refuse(
            name,
            readable(value),
            f"at most {MOST_BUDGET}",
            "A budget this large protects nobody; 1 is usual.",
        )
    if privacy.max_rows > MOST_ROWS:
        raise refuse(
            "max_rows",
            privacy.max_rows,
            f"at most {MOST_ROWS}",
            "No unit can have more rows than the program can read.",
        )
    search = search or Search()
    with _gc_paused() if len(workload.products) > _MANY_TABLES else nullcontext():
        requested_strategy = search.custom_planner or search.strategy
        listed = [
            *try_strategies(
                workload,
                privacy,
                requested_strategy,
                search.seconds,
                search.progress,
                try_all=search.every,
                now=search.now,
            )
        ]
    tried = with_best_lower_bounds(listed)
    best = min(tried, key=lambda candidate: candidate.rank)
    if best.plan is None and search.custom_planner is not None:
        raise InputError(best.reason)
    if best.plan is None:
        raise InputError(f"No strategy can be used for this workload. {_failure_reasons(tried)}")
    ended = [*dict.fromkeys(entry.strategy for entry in tried if entry.ended)]
    details = replace(best.plan.details, ended_early=tuple(ended))
    return replace(best.plan, details=details), tuple(tried)


def tables_with_high_error(plan: Plan, search: Search) -> dict[str, float]:
    """Return tables' ratios to a separate plan's error, where it is above two.

    The result maps the names of these tables to the ratio of the two errors. The separate plan
    answers one table with an equal share of the budget.
    """
    # Only tables whose lower bounds allow a larger ratio are planned, in the order of the largest
    # possible ratio. This takes a tenth of the time.
    products = plan.workload.products
    if not 2 <= len(products) <= _MOST_CROWDED:
        return {}
    even_budget = plan.privacy.scaled(Fraction(1, len(products)))
    doubtful = []
    for product, table in zip(products, plan.expected_error().tables, strict=True):
        single_workload = Workload(plan.domain, (product,))
        least = min(
            lower_bound(single_workload, even_budget, noise) for noise in noise_kinds(even_budget)
        ) / (product.importance * product.rows)
        # If neighbours replace rows, the total is public, and its least error is 0.
        is_in_doubt = table.rmse > _HIGH_ERROR_RATIO * math.sqrt(least) > 0
        if is_in_doubt and table.rmse > _VISIBLE_ERROR:
            doubtful.append((table.rmse / math.sqrt(least), table, single_workload))
    ratios: dict[str, float] = {}
    seconds_left = search.seconds * _CHECK_SHARE
    for _, table, single_workload in sorted(doubtful, key=lambda entry: -entry[0]):
        if seconds_left <= 0:
            break
        # For disjoint sums of cells, the best strategy is to measure these sums.
        disjoint = all(
            partition_groups(operator) is not None
            for operator in single_workload.products[0].operators
        )
        if disjoint:
            strategy = "marginals"
        else:
            strategy = "auto"
        separate_search = Search(
            strategy, seconds=search.seconds * _CHECK_SHARE / 2, now=search.now
        )
        seconds_left -= planning_seconds(single_workload, even_budget, separate_search)
        with suppress(InputError):
            tried, _ = choose_plan(single_workload, even_budget, separate_search)
            ratio = table.rmse / tried.expected_error().tables[0].rmse
            ratios |= {table.name: ratio} if ratio > _HIGH_ERROR_RATIO else {}
    return ratios
