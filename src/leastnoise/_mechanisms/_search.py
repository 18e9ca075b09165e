"""The options of a search for a plan."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from leastnoise._plan import EarlierRelease
from leastnoise._strategies import PLANNERS, Planner
from leastnoise._trusted.check import refuse
from leastnoise._workload import ComparisonTarget

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
