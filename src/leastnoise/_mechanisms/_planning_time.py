"""Estimates of the CPU seconds that planners need.

Estimates decide which planners are tried, so that the plan is the same on every machine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leastnoise._error import bound_seconds
from leastnoise._fitting import NOISES
from leastnoise._mechanisms._search import Search
from leastnoise._strategies import PLANNERS, Planner
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._workload import Workload

_QUICK_SHARE = 1 / 10  # a planner is quick if it takes at most this part of the seconds
_SEARCH_SHARE = 1 / 2  # part of the remaining seconds that a search may take beyond its least
# Factor of the seconds that a planner may take if its error reaches the lower bound. For prefix
# sums of 4096 cells under Gaussian noise, such a planner takes 13 seconds. Quick planners are only
# 1.5% worse.
_TIMES_TO_REACH_BOUND = 4
_CHANCE_OF_OTHER_NOISE = 1 / 8  # probability that the best plan has the other kind of noise


def noises_to_plan(privacy: Privacy) -> tuple[Noise, ...]:
    """Return the kinds of noise that planning tries, the usual one first."""
    kinds = NOISES[type(privacy.budget)]
    if kinds[0] is Noise.DISCRETE_GAUSSIAN:
        return kinds[:1]
    return kinds


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
    passes = planning_passes(workload)
    noises = noises_to_plan(privacy)
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


def requests_of(planner: Planner, privacy: Privacy) -> list[TimeRequest]:
    """Return one planner's requests by kind of noise, ignoring time limits."""
    return [
        TimeRequest(planner, noise, math.inf, math.inf, 1.0, is_slow=False)
        for noise in noises_to_plan(privacy)
    ]


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
    return planning_passes(workload) * sum(
        planner.most_seconds(workload, noise.norm) for noise in noises_to_plan(privacy)
    )


def planning_passes(workload: Workload) -> int:
    """Return how often each strategy plans a workload: once or twice.

    A strategy plans twice if counts and sums may be measured either separately or jointly.
    """
    if workload.counted_sums:
        return 2
    return 1
