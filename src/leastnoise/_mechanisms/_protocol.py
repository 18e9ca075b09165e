"""The protocol of mechanisms.

A public half that plans and checks, and a private half that runs within a paid series.

A new mechanism is one file with a subclass of `Mechanism`, one line in ``_registry.py``, and one
row in tests/mechanisms/conformance. Mechanisms that look at the data share here how their findings
are written and read, and their reference, the best plan that does not look.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias

from leastnoise._domain import Domain
from leastnoise._estimation import (
    DataIndependentEstimate,
    DeviationBound,
    Estimate,
    Estimator,
    Finding,
    Outcome,
    Said,
)
from leastnoise._fitting import allowed_mu_squared, rescale_noise
from leastnoise._mechanisms._choice import Search, try_strategies
from leastnoise._plan import Plan, Promise
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy, parameters
from leastnoise._trusted.check import InputError, exact
from leastnoise._trusted.kernel import ReleaseContract, Series
from leastnoise._trusted.measurements import Measurements, Observation
from leastnoise._workload import Workload

Run: TypeAlias = Callable[[Series], Outcome]
"""The private half: carries a plan out by steps of a paid series; it never sees a row."""


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
        """Summarise a plan with its promise."""
        promise = plan.expected_error()
        return Reference(
            strategy=plan.strategy,
            mechanism=plan.measured().noise.value,
            expected_total_squared_error=promise.total_squared_error,
            lower_bound=promise.lower_bound,
            rmse=tuple(table.rmse for table in promise.tables),
        )

    def facts(self) -> dict[str, Any]:
        """Return the entry of a plan's details."""
        return {**asdict(self), "rmse": list(self.rmse)}

    @staticmethod
    def read(facts: Mapping[str, Any]) -> "Reference":
        """Read the entry of a plan's details."""
        return Reference(**{**facts, "rmse": tuple(facts["rmse"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is known of a plan before the data are seen."""

    mechanism: str
    promise: Promise | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    reference: Reference | None = None


def release_contract(plan: Plan) -> ReleaseContract:
    """Return what the kernel needs of a plan.

    Fixed measurements are its only step, paid by their exact cost.
    """
    attributes, measures = plan.used()
    series = plan.details.get("series", {})
    return ReleaseContract(
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
    """A way from a workload to answers.

    By default it is chosen by name, and reads the attributes of the workload.
    """

    names: ClassVar[tuple[str, ...]]
    """The strategies that ask for it by name; none for the mechanism of all other strategies."""
    findings: ClassVar[tuple[type["DataDependentFinding"], ...]] = ()
    """The kinds of its findings, also those of earlier releases of the program."""

    def supports(self, strategy: str, workload: Workload) -> bool:  # noqa: ARG002 - what it cannot answer is refused with a reason
        """Whether this is the mechanism for a strategy and a workload."""
        return strategy in self.names

    def decision_attributes(self, workload: Workload) -> tuple[str, ...]:  # noqa: ARG002 - none that is not asked about
        """Return the attributes that decisions depend on.

        They are read even if no query is about them.
        """
        return ()

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Make the public plan."""

    def prepare(self, plan: Plan) -> Run:
        """Check a plan before anything is paid, and return its run.

        The plan may come from a file.
        """

    def explain(self, plan: Plan) -> Explanation:
        """Return the steps, and the reference if the details have one."""
        details, reference = plan.details, plan.details.get("reference")
        return Explanation(
            mechanism=details["mechanism"],
            steps=tuple(details["steps"]),
            reference=None if reference is None else Reference.read(reference),
        )

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """Read what `Finding.facts` wrote."""
        kind = {name: each for each in self.findings for name in (each.regime, *each.earlier)}[
            facts["regime"]
        ]
        values = {
            field.name: facts[field.name]
            for field in fields(kind)
            if facts.get(field.name) is not None
        }
        if "hidden" in values:
            values["hidden"] = DeviationBound(
                scale=values["hidden"]["scale"], prior=values["hidden"]["prior"]
            )
        return kind(**values)


@lru_cache(maxsize=8)
def reference_plan(
    workload: Workload, privacy: Privacy, progress: Callable[[str], None] | None
) -> Plan:
    """Return the best data-independent plan that takes seconds to find."""
    names = [planner.name for planner in PLANNERS.values() if planner.reference(workload)]
    tried = [
        entry for name in names for entry in try_strategies(workload, privacy, name, tell=progress)
    ]
    best = min(tried, key=lambda candidate: candidate.total)
    if best.plan is None:
        raise InputError(
            "No strategy can be used for this workload. "
            + "; ".join(f"{entry.strategy}: {entry.reason}" for entry in tried)
        )
    return best.plan


def rescale_plan(plan: Plan, privacy: Privacy) -> Plan:
    """Return the measurements of a plan within another budget, without a promise."""
    return Plan(
        workload=plan.workload,
        privacy=privacy,
        strategy=plan.strategy,
        measurements=rescale_noise(plan.measured(), privacy),
    )


def adaptive_plan(
    reference: Plan, remaining: Privacy, strategy: str, details: Mapping[str, Any]
) -> Plan:
    """Return a data-dependent plan with its data-independent reference.

    The reference is kept for comparison, and rescaled to the rest of the budget as the fallback.
    """
    details = {**details, "reference": Reference.of(reference).facts()}
    return Plan(
        workload=reference.workload,
        privacy=reference.privacy,
        strategy=strategy,
        details=details,
        fallback=rescale_plan(reference, remaining),
    )


def reference_measurements(plan: Plan) -> Measurements:
    """Return the data-independent measurements of a plan.

    Within the budget that the first choice leaves.
    """
    if plan.fallback is None:
        raise InputError(
            "The data-aware plan does not say what it measures without structure. Make the plan "
            "again; nothing was spent."
        )
    return plan.fallback.measured()


def require_details(plan: Plan, details: Callable[[], Mapping[str, Any]]) -> None:
    """Raise if a plan's details differ from those of this version.

    Also if they cannot be read.
    """
    try:
        reference_measurements(plan)
        tables = len(Reference.read(plan.details["reference"]).rmse)
        same = all(
            json.dumps(plan.details[name]) == json.dumps(value) for name, value in details().items()
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"The data-aware plan cannot be read: {str(error).rstrip('.')}. Make the plan again; "
            "nothing was spent."
        ) from None
    if not same or tables != len(plan.workload.products):
        raise InputError(
            "The steps of the plan are not those that this version carries out. Make the plan "
            "again; nothing was spent."
        )


def gaussian_composition_details(privacy: Privacy, noise: Noise) -> dict[str, str]:
    """Return the details entry for Gaussian steps that compose in mu^2.

    If all steps have Gaussian noise within (epsilon, delta): the mu^2 that they share.
    """
    if noise is not Noise.ROUNDED_GAUSSIAN or type(privacy.budget) is not ApproxDP:
        return {}
    return {"gaussian": str(allowed_mu_squared(privacy.budget))}


def step_privacy(plan: Plan) -> Privacy:
    """Return the privacy that the steps of a plan share.

    rho, half of mu^2, if Gaussian steps compose; else the budget.
    """
    squares = plan.details.get("gaussian")
    return (
        plan.privacy
        if squares is None
        else plan.privacy.within(ZCDP(exact("gaussian", squares) / 2))
    )


def step_budget_details(plan: Plan, share: Fraction) -> dict[str, str]:
    """Return the budget of a step as an entry of the details."""
    return {
        name: str(number)
        for name, number in parameters(step_privacy(plan).budget.share(share)).items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDependentFinding(Finding):
    """The decision that a mechanism made from noisy answers, and its numbers."""

    regime: ClassVar[str]  # its name in files
    earlier: ClassVar[tuple[str, ...]] = ()  # its names in files of earlier releases
    linear: ClassVar[bool] = False
    further: ClassVar[bool] = True
    interval: ClassVar[str] = "interval_aware"  # keys of sentences
    reading: ClassVar[str] = "aware_reading"
    hides: ClassVar[str] = "aware_smoothed"
    estimate: ClassVar[Callable[..., Estimator]]
    """The estimator of the answers, if it needs the observation alone."""

    test: Mapping[str, float] | None = None

    @property
    def done(self) -> Said:
        """The key of the clause that says what was done, and the numbers in it."""
        return f"regime_{self.regime}", asdict(self)

    def not_covered(self, domain: Domain) -> list[Said]:  # noqa: ARG002 - of all domains
        """Return the sentences on errors that the intervals do not cover."""
        return [(self.hides, {})]

    def facts(self) -> dict[str, Any]:
        """Return the finding as a JSON value, without numbers that are None."""
        return {"regime": self.regime, **_is_known(asdict(self))}

    def estimator(self, observation: Observation) -> Estimator:
        """Return the estimator of the answers."""
        return type(self).estimate(observation)


def _is_known(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _is_known(inner) if isinstance(inner, Mapping) else inner
        for name, inner in value.items()
        if inner is not None
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStructureFinding(DataDependentFinding):
    """The data have no structure worth using.

    The answers are those of least squares.
    """

    regime, hides = "independent", "aware_independent"

    def estimator(self, observation: Observation) -> Estimator:
        """Return the estimator of least squares."""
        return DataIndependentEstimate(Estimate(observation))
