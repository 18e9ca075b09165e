"""Try one planner after another, in the order of a queue.

Quick planners are tried first. A planner is left out if a lower bound shows that it can gain almost
nothing, or if its estimated seconds do not fit into the time limit.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from leastnoise._error import bound_seconds
from leastnoise._families import NotApplicable
from leastnoise._mechanisms._candidates import Candidate
from leastnoise._mechanisms._planning_time import (
    TimeRequest,
    noises_to_plan,
    planning_passes,
    requests_of,
    time_requests,
)
from leastnoise._mechanisms._proposed_plan import better_of_joint_and_separate
from leastnoise._mechanisms._search import SECONDS, Progress
from leastnoise._plan import Plan
from leastnoise._strategies import PLANNERS, Deadline, Planner, PlanningProblem, time_limit
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import message, one_of
from leastnoise._workload import Workload

# Estimates decide which planners are tried, so that the plan is the same on every machine. The
# clock only ends a search that hangs: a search that takes this many times the seconds. Other
# programs on the machine at most double CPU seconds, and estimates are at most three times too low
# (docs/results/auto.md).
_DEADLINE_FACTOR = 10.0
_LEAST_TIMED_SECONDS = 1.0  # quick planners together take up to a second, for every time limit
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
MANY_TABLES = 1024  # with more tables, each tried planner takes seconds


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
        self._has_many_tables = len(workload.products) > MANY_TABLES
        self._results = _ResultsSoFar(noises_to_plan(privacy))
        self._seconds_left = math.inf
        self._deadline = math.inf
        if self._is_automatic:
            self.waiting = time_requests(workload, privacy, seconds)
            self._seconds_left = seconds - bound_seconds(workload)
            self._deadline = now() + _DEADLINE_FACTOR * max(seconds, _LEAST_TIMED_SECONDS)
        else:
            self.waiting = requests_of(_planner_of(strategy), privacy)
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
        needless_reason = ""
        if request.is_slow:
            gain = _NO_GAIN
            if request.least > self._seconds_left:
                gain = _NO_GAIN_BEYOND_SECONDS
            needless_reason = self._results.reason_against(request.planner, request.noise, gain)
        problem = PlanningProblem(
            self._workload,
            self._privacy,
            request.noise,
            seconds / planning_passes(self._workload),
        )
        return _Trial(
            request, problem, Deadline(deadline, self._now), time.perf_counter(), needless_reason
        )

    def reason_to_skip(self, trial: "_Trial", *, try_all: bool) -> str:
        """Return why a planner should not be tried, or "" if it should.

        Quick planners are always tried, unless they are special cases of other planners.
        """
        reason = self._results.reason_if_contained(trial.planner, trial.problem.noise)
        if reason or not trial.request.is_slow or self._results.best == math.inf:
            return reason
        if trial.needless_reason and not try_all:
            return trial.needless_reason
        if not trial.problem.seconds > 0 or trial.deadline.has_passed():
            return message(_NO_TIME, seconds=f"{self._seconds:g}")
        return ""

    def carry_out(self, trial: "_Trial") -> Candidate:
        """Plan with one planner, record the error, and return the candidate."""
        planner = trial.planner
        noise = trial.problem.noise
        with time_limit(trial.deadline):
            plan, error = better_of_joint_and_separate(
                planner, trial.problem, iterate=not self._is_automatic
            )
        is_unsuited = isinstance(error, NotApplicable)
        if self._is_automatic and not is_unsuited:  # unsuited planners fail at once
            self._seconds_left -= planning_passes(self._workload) * trial.problem.seconds
        is_needless = bool(trial.needless_reason) and plan is not None
        if plan is not None:
            self._results.add(noise, plan, is_needless=is_needless)
            if self._has_many_tables:
                contained = planner.contains(self._workload)
                self._results.add_contained(planner, noise, contained)
        return replace(
            trial.without_plan("" if error is None else str(error)),
            plan=plan,
            needless=is_needless,
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
        needless_reason: why it can gain almost nothing; an empty text if it may gain more.
    """

    request: TimeRequest
    problem: PlanningProblem
    deadline: Deadline
    start: float
    needless_reason: str

    @property
    def planner(self) -> Planner:
        """The planner of this trial."""
        return self.request.planner

    def without_plan(self, reason: str) -> Candidate:
        """Return the candidate for a planner that found no plan, with the reason.

        The returned candidate has the number of seconds that the search would need to end.
        """
        useful_seconds = 0.0
        is_needless = reason and reason == self.needless_reason
        if not is_needless:
            most_seconds = self.planner.most_seconds(self.problem.workload, self.problem.norm)
            if self.deadline.ended or most_seconds > self.problem.seconds:
                useful_seconds = most_seconds
        return Candidate(
            strategy=self.planner.name,
            noise=self.problem.noise,
            plan=None,
            reason=reason,
            seconds=time.perf_counter() - self.start,
            useful_seconds=useful_seconds,
            needless=bool(self.needless_reason),
            ended=self.deadline.ended,
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
        promising = dict(self.least)
        for noise in promising:
            if noise.norm == 1:
                promising[noise] *= _LAPLACE_SEARCH_GAIN
        return sorted(promising, key=lambda noise: promising[noise])

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

    def reason_if_contained(self, planner: Planner, noise: Noise) -> str:
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
