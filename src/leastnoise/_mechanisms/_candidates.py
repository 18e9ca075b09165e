"""The result of planning with one strategy, and tables of such results."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastnoise._error import noise_name
from leastnoise._frames import Columns, TabularMixin
from leastnoise._plan import LinearPlan
from leastnoise._trusted.accounting import Noise


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


def with_best_lower_bounds(tried: Sequence[Candidate]) -> list[Candidate]:
    """Give all candidates the largest lower bound found for their noise.

    A bound that one candidate found holds for all candidates with this kind of noise. Candidates
    with K-norm noise are an exception, and keep their own bounds.
    """
    bounds: dict[Noise, float] = {}
    for entry in tried:
        if entry.plan is not None and not entry.plan.measured().k_norm_groups():
            bounds[entry.noise] = max(bounds.get(entry.noise, 0.0), entry.plan.lower_bound())
    candidates = []
    for entry in tried:
        candidate = entry
        if entry.plan is not None and not entry.plan.measured().k_norm_groups():
            error = replace(entry.plan.expected_error(), lower_bound=bounds[entry.noise])
            candidate = replace(entry, plan=replace(entry.plan, data_independent_error=error))
        candidates.append(candidate)
    return candidates


def failure_reasons(tried: Sequence[Candidate]) -> str:
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
