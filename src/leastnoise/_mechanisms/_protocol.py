"""What every mechanism answers: a public half, and a private half that runs within a paid series.

Adding a mechanism is one file with these answers, one line in ``_registry.py``, and one row in tests/mechanisms/conformance.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

from leastnoise._accounting import Privacy
from leastnoise._estimate import Finding, Outcome
from leastnoise._kernel import Series, Terms
from leastnoise._mechanisms._search import Search
from leastnoise._plan import Plan, Promise
from leastnoise._workload import Workload

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
    series = plan.details.get("series", {})
    return Terms(
        domain=plan.domain,
        privacy=plan.privacy,
        attributes=attributes,
        measures=measures,
        only=plan.measurements,
        gaussian=plan.details.get("gaussian"),
        text=plan.to_json(),
        along=series.get("along", ""),
        late=series.get("late", "drop"),
    )


class Mechanism(Protocol):
    """A way from a workload to answers: by default one that is asked for by name, and looks at what is asked about."""

    names: ClassVar[tuple[str, ...]]
    """The strategies that ask for it by name; none for the mechanism of all other strategies."""

    def takes(self, strategy: str, workload: Workload) -> bool:  # noqa: ARG002 - what it cannot answer is refused with a reason
        """Whether it is the mechanism for this strategy and workload."""
        return strategy in self.names

    def decides_along(self, workload: Workload) -> tuple[str, ...]:  # noqa: ARG002 - none that is not asked about
        """The attributes that it looks at to decide, whether or not they are asked about: they are read too."""
        return ()

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Make the public plan."""

    def ready(self, plan: Plan) -> Run:
        """Check a plan, perhaps from a file that somebody wrote, before anything is paid, and give what carries it out."""

    def explain(self, plan: Plan) -> Explanation:
        """Tell what will be done: the steps, and the plan that does not look, where the details have one."""
        details, reference = plan.details, plan.details.get("reference")
        return Explanation(
            mechanism=details["mechanism"],
            steps=tuple(details["steps"]),
            reference=None if reference is None else Reference.read(reference),
        )

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """Read what `Finding.facts` gave, of any release of the program."""
