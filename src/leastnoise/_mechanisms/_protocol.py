"""What every mechanism answers: a public half, and a private half that runs within a paid series.

Adding a mechanism is one file with these answers, one line in ``_registry.py``, and one row in tests/mechanisms/conformance. Mechanisms
that look at the data share how findings are written and read, and the best plan that does not look.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias

from leastnoise._accounting import ZCDP, ApproxDP, Noise, Privacy, parameters
from leastnoise._check import InputError, exact
from leastnoise._domain import Domain
from leastnoise._estimate import Estimate, Estimator, Finding, Hidden, Independent, Outcome, Said
from leastnoise._fitting import allowed_mu_squared, rescaled
from leastnoise._kernel import Series, Terms
from leastnoise._measurements import Measurements, Observation
from leastnoise._mechanisms._choose import Search, candidates
from leastnoise._plan import Plan, Promise
from leastnoise._planner import PLANNERS
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
        promise = plan.expected_error()
        return Reference(
            strategy=plan.strategy,
            mechanism=plan.measured().noise.value,
            expected_total_squared_error=promise.total_squared_error,
            lower_bound=promise.lower_bound,
            rmse=tuple(table.rmse for table in promise.tables),
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
    findings: ClassVar[tuple[type["Looked"], ...]] = ()
    """What may be found, of any release of the program."""

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
        """Read what `Finding.facts` gave; what else stands there, in files of earlier releases, is left."""
        kind = {name: each for each in self.findings for name in (each.regime, *each.earlier)}[facts["regime"]]
        known = {field.name: facts[field.name] for field in fields(kind) if facts.get(field.name) is not None}
        if "hidden" in known:
            known["hidden"] = Hidden(scale=known["hidden"]["scale"], prior=known["hidden"]["prior"])
        return kind(**known)


@lru_cache(maxsize=8)
def reference_plan(workload: Workload, privacy: Privacy, progress: Callable[[str], None] | None) -> Plan:
    """The best data-independent plan that takes seconds, not minutes."""
    names = [planner.name for planner in PLANNERS.values() if planner.reference(workload)]
    tried = [entry for name in names for entry in candidates(workload, privacy, name, tell=progress)]
    best = min(tried, key=lambda candidate: candidate.total)
    if best.plan is None:
        raise InputError("No strategy can be used for this workload. " + "; ".join(f"{entry.strategy}: {entry.reason}" for entry in tried))
    return best.plan


def within(plan: Plan, privacy: Privacy) -> Plan:
    """The same queries within another budget, without a promise."""
    return Plan(workload=plan.workload, privacy=privacy, strategy=plan.strategy, measurements=rescaled(plan.measured(), privacy))


def looking(reference: Plan, rest: Privacy, strategy: str, details: Mapping[str, Any]) -> Plan:
    """A plan that looks at the data, with the one that does not for comparison, and within the rest of the budget as its way out."""
    details = {**details, "reference": Reference.of(reference).facts()}
    way_out = within(reference, rest)
    return Plan(workload=reference.workload, privacy=reference.privacy, strategy=strategy, details=details, fallback=way_out)


def fallback(plan: Plan) -> Measurements:
    """The data-independent measurements within what the first choice leaves."""
    if plan.fallback is None:
        raise InputError("The data-aware plan does not say what it measures without structure. Make the plan again; nothing was spent.")
    return plan.fallback.measured()


def require_details(plan: Plan, details: Callable[[], Mapping[str, Any]]) -> None:
    """Refuse a plan, perhaps from a file that somebody wrote, whose details are not what this version carries out, or cannot be read."""
    try:
        fallback(plan)
        tables = len(Reference.read(plan.details["reference"]).rmse)
        same = all(json.dumps(plan.details[name]) == json.dumps(value) for name, value in details().items())
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"The data-aware plan cannot be read: {str(error).rstrip('.')}. Make the plan again; nothing was spent.") from None
    if not same or tables != len(plan.workload.products):
        raise InputError("The steps of the plan are not those that this version carries out. Make the plan again; nothing was spent.")


def squares_added(privacy: Privacy, noise: Noise) -> dict[str, str]:
    """What a plan says where all its steps have Gaussian noise within (epsilon, delta): the mu squared that they share out."""
    if noise is not Noise.ROUNDED_GAUSSIAN or type(privacy.budget) is not ApproxDP:
        return {}
    return {"gaussian": str(allowed_mu_squared(privacy.budget))}


def shared_out(plan: Plan) -> Privacy:
    """What the steps of a plan take parts of: rho where squares are added, which is half of mu squared, else the budget."""
    squares = plan.details.get("gaussian")
    return plan.privacy if squares is None else plan.privacy.within(ZCDP(exact("gaussian", squares) / 2))


def part_of(plan: Plan, share: Fraction) -> dict[str, str]:
    """What a step of a plan takes, for its details."""
    return {name: str(number) for name, number in parameters(shared_out(plan).budget.share(share)).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked(Finding):
    """What was found by looking at the data."""

    regime: ClassVar[str]
    earlier: ClassVar[tuple[str, ...]] = ()  # the same in files of earlier releases
    linear: ClassVar[bool] = False
    further: ClassVar[bool] = True
    interval: ClassVar[str] = "interval_aware"
    reading: ClassVar[str] = "aware_reading"
    hides: ClassVar[str] = "aware_smoothed"
    estimate: ClassVar[Callable[..., Estimator]]
    """The estimate that belongs to the way to measure, where it needs no more than what was measured."""

    test: Mapping[str, float] | None = None

    @property
    def done(self) -> Said:
        """What was done, in a clause with the finding's own numbers."""
        return f"regime_{self.regime}", asdict(self)

    def not_covered(self, domain: Domain) -> list[Said]:  # noqa: ARG002 - of all domains
        """What intervals leave out, which is in most cases the same for all releases of a kind."""
        return [(self.hides, {})]

    def facts(self) -> dict[str, Any]:
        """The way to measure and its numbers, as a JSON value."""
        return {"regime": self.regime, **_known(asdict(self))}

    def estimator(self, observation: Observation) -> Estimator:
        """The estimate of the answers."""
        return type(self).estimate(observation)


def _known(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _known(inner) if isinstance(inner, Mapping) else inner for name, inner in value.items() if inner is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused(Looked):
    """No structure worth using: least squares."""

    regime, hides = "independent", "aware_independent"

    def estimator(self, observation: Observation) -> Estimator:
        """Least squares."""
        return Independent(Estimate(observation))
