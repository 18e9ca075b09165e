"""How a plan is looked for: which strategies, and how long."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from leastnoise._check import refuse
from leastnoise._plan import Plan

Progress: TypeAlias = Callable[[str], None] | None
SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Search:
    """How a plan is looked for.

    Args:
        strategy: "auto" or one name.
        seconds: about how many CPU seconds of one core "auto" may take; more may find less error. They are counted by estimates, so that
            the same search finds the same plan everywhere.
        tell: called with the name of every strategy before it is tried.
        found: called with every plan as soon as it is found, long before the best is known.
        every: whether "auto" also tries what takes long and can gain next to nothing, as a lower bound proves; the same plan is chosen.

    Raises:
        InputError: the seconds are no number above 0.

    >>> Search(seconds=60).seconds
    60.0
    """

    strategy: str = "auto"
    seconds: float = SECONDS
    tell: Progress = None
    found: Callable[[Plan], None] | None = None
    every: bool = False

    def __post_init__(self) -> None:
        given = self.seconds
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
            raise refuse("seconds", given, "a number above 0, such as 20", "It says how much CPU time the search for a plan may take.")
        object.__setattr__(self, "seconds", float(given))
