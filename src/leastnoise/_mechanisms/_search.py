"""How a plan is looked for: which strategies, and how long."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from leastnoise._check import refuse
from leastnoise._plan import Plan
from leastnoise._planner import PLANNERS, Planner

Progress: TypeAlias = Callable[[str], None] | None
SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Search:
    """How a plan is looked for."""

    strategy: str = "auto"
    seconds: float = SECONDS
    tell: Progress = None
    found: Callable[[Plan], None] | None = None
    every: bool = False
    own: Planner | None = None
    impossible: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    public: tuple[Mapping[str, Any], ...] = ()
    now: Callable[[], float] = time.thread_time

    def __post_init__(self) -> None:
        given = self.seconds
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
            raise refuse("seconds", given, "a number above 0, such as 20", "It says how much CPU time the search for a plan may take.")
        object.__setattr__(self, "seconds", float(given))

    @property
    def planner(self) -> Planner | None:
        """The planner of the strategy; None for the automatic choice and for mechanisms that look at the data."""
        return self.own or PLANNERS.get(self.strategy)
