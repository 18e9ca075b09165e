"""What every mechanism answers, and how a plan is looked for: which strategies, and how long.

A public half plans, checks and explains; a private half runs within a paid series. Adding a mechanism is one file with these answers, one
line in ``_registry.py``, and one row in tests/mechanisms/conformance.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeAlias

from leastnoise._accounting import Privacy
from leastnoise._check import refuse
from leastnoise._estimate import Finding, Outcome
from leastnoise._kernel import Series, Terms
from leastnoise._plan import Plan, Promise
from leastnoise._planner import PLANNERS, Planner
from leastnoise._workload import Workload

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


Run: TypeAlias = Callable[[Series], Outcome]
"""The private half: carries a plan out by steps of a series, which is paid; it never sees a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The best plan that does not look at the data, for comparison."""

    strategy: str
    mechanism: str
    expected_total_squared_error: float
    lower_bound: float
    rmse: tuple[float, ...]

    @staticmethod
    def of(plan: Plan) -> "Reference":
        """Of a plan with its promise."""
        promise, mechanism = plan.expected_error(), plan.measured().noise.value
        rmse = tuple(table.rmse for table in promise.tables)
        return Reference(
            strategy=plan.strategy,
            mechanism=mechanism,
            expected_total_squared_error=promise.total_squared_error,
            lower_bound=promise.lower_bound,
            rmse=rmse,
        )

    def facts(self) -> dict[str, Any]:
        """As the details of a plan have it."""
        return {**asdict(self), "rmse": list(self.rmse)}

    @staticmethod
    def read(facts: Mapping[str, Any]) -> "Reference":
        """From the details of a plan."""
        return Reference(**{**facts, "rmse": tuple(facts["rmse"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is known of a plan before the data are seen."""

    mechanism: str
    promise: Promise | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    reference: Reference | None = None


def terms_of(plan: Plan) -> Terms:
    """What the kernel is told of a plan: measurements that are known beforehand are its only step, and paid by their real cost."""
    attributes, measures = plan.used()
    return Terms(
        domain=plan.domain,
        privacy=plan.privacy,
        attributes=attributes,
        measures=measures,
        only=plan.measurements,
        text=plan.to_json(),
    )


class Mechanism(Protocol):
    """A way from a workload to answers."""

    @property
    def names(self) -> tuple[str, ...]:
        """The strategies that ask for it by name; none for the mechanism of all other strategies."""

    def takes(self, strategy: str, workload: Workload) -> bool:
        """Whether it is the mechanism for this strategy and workload."""

    def decides_along(self, workload: Workload) -> tuple[str, ...]:
        """The attributes that it looks at to decide, whether or not they are asked about: they are read too."""

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Make the public plan."""

    def ready(self, plan: Plan) -> Run:
        """Check a plan, perhaps from a file that somebody wrote, before anything is paid, and give what carries it out."""

    def explain(self, plan: Plan) -> Explanation:
        """Tell what will be done."""

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """Read what `Finding.facts` gave, of any release of the program."""
