"""The protocol of mechanisms.

A mechanism has a public half that plans and checks, and a private half that runs within a series of
paid steps.

A new mechanism needs four parts: one file with a subclass of `Mechanism`; one line in
``_mechanism_registry.py``; rows of the conformance kit in tests/mechanisms/rows_NAME.py; and the
sentences of its findings, ``regime_NAME``, in each language (``_texts/locales/NAME.pot``).
This file also has the code that data-dependent mechanisms share: it writes and reads their
findings, and plans their reference, which is the best data-independent plan.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeAlias

from leastnoise._domain import Domain
from leastnoise._estimation import (
    CatalogueText,
    DataIndependentEstimate,
    Estimate,
    Estimator,
    Finding,
    Outcome,
)
from leastnoise._fitting import allowed_mu_squared, rescale_noise
from leastnoise._mechanisms._candidates import Candidate
from leastnoise._mechanisms._search import Search
from leastnoise._mechanisms._trials import try_strategies
from leastnoise._plan import (
    AdaptiveDetails,
    AdaptivePlan,
    ExpectedError,
    LinearPlan,
    Plan,
    ReferencePlan,
    SeriesPlan,
    Steps,
)
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import ReleaseContract, Series
from leastnoise._trusted.measurements import Measurements, Observation
from leastnoise._workload import Workload

Run: TypeAlias = Callable[[Series], Outcome]
"""The private half: a function that carries out a plan by steps of a paid series. It never sees a
row."""


def summarize_reference(plan: Plan) -> ReferencePlan:
    """Return the strategy and errors of a data-independent plan."""
    expected_error = plan.expected_error()
    return ReferencePlan(
        strategy=plan.strategy,
        noise=plan.measured().noise,
        expected_total_squared_error=expected_error.total_squared_error,
        lower_bound=expected_error.lower_bound,
        rmse=tuple(table.rmse for table in expected_error.tables),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Facts about a plan that are known before data are read."""

    mechanism: str
    expected_error: ExpectedError | None = None
    steps: Steps = ()
    reference: ReferencePlan | None = None


def release_contract(plan: Plan) -> ReleaseContract:
    """Return the parts of a plan that the kernel needs to charge and run it.

    A linear plan has only one step: its fixed measurements, which are paid by their exact cost.
    """
    attributes, measures = plan.used()
    along = ""
    late = "drop"
    if isinstance(plan, SeriesPlan):
        along = plan.series.along
        late = plan.series.late
    return ReleaseContract(
        domain=plan.domain,
        privacy=plan.privacy,
        attributes=attributes,
        measures=measures,
        declared_step=plan.measurements if isinstance(plan, LinearPlan) else None,
        shared_mu_squared=plan.adaptive.mu_squared if isinstance(plan, AdaptivePlan) else None,
        plan_text=plan.to_json(),
        along=along,
        late=late,
    )


class Mechanism(Protocol):
    """A method of answering a workload: it makes plans and carries them out.

    By default, users choose a mechanism by name, and its choices read the attributes of the
    workload.
    """

    names: ClassVar[tuple[str, ...]]
    """The names of its strategies; empty for the mechanism of all other strategies."""
    findings: ClassVar[tuple[type["DataDependentFinding"], ...]] = ()
    """The classes of its findings."""

    # `workload` is unused here, because planning refuses unsuitable workloads with a reason.
    def supports(self, strategy: str, workload: Workload) -> bool:  # noqa: ARG002
        """Return whether the mechanism handles a strategy and a workload."""
        return strategy in self.names

    # `workload` is unused here: by default, no private choice reads additional attributes.
    def decision_attributes(self, workload: Workload) -> tuple[str, ...]:  # noqa: ARG002
        """Return the attributes that private choices depend on; by default none.

        These attributes are read even if no query uses them.
        """
        return ()

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Plan a release that answers a workload."""

    def prepare(self, plan: Plan) -> Run:
        """Check a plan before payment, and return the function that runs it.

        The plan may come from a file, so nothing in it can be relied on. After the payment, no step
        may fail. Check here:

        - the workload and the budget, as in `plan`;
        - the steps: `require_details` compares them with the steps that this version plans, and
          checks that there is a fallback and a reference. A plan without a fallback compares them
          itself;
        - the fallback: `reference_measurements` returns it. The series refuses measurements of
          another domain, or that cost more than is left;
        - that the noise of each possible step is above zero, and that the grids of measurements
          that are joined have no overflow.

        Raises:
            InputError: the plan cannot be carried out. The message says what to do, such as "Make
                the plan again; nothing was spent."
        """

    def explain(self, plan: Plan) -> Explanation:
        """Describe a plan: its steps, its noise and its reference plan."""
        adaptive = adaptive_details(plan)
        return Explanation(
            mechanism=adaptive.noise.value, steps=adaptive.steps, reference=adaptive.reference
        )

    def finding(self, facts: Mapping[str, Any]) -> Finding:
        """Recreate the finding from a release's manifest."""
        kind = {finding.regime: finding for finding in self.findings}[facts["regime"]]
        values = {
            field.name: facts[field.name]
            for field in fields(kind)
            if facts.get(field.name) is not None
        }
        return kind(**values)


@lru_cache(maxsize=8)
def reference_plan(
    workload: Workload, privacy: Privacy, progress: Callable[[str], None] | None
) -> Plan:
    """Return the best data-independent plan that a short search finds."""
    names = [planner.name for planner in PLANNERS.values() if planner.is_near_best(workload)]
    tried: list[Candidate] = []
    for name in names:
        tried += try_strategies(workload, privacy, name, progress=progress)
    best = min(tried, key=lambda candidate: candidate.total)
    if best.plan is None:
        raise InputError(
            "No strategy can be used for this workload. "
            + "; ".join(f"{entry.strategy}: {entry.reason}" for entry in tried)
        )
    return best.plan


def rescale_plan(plan: Plan, privacy: Privacy) -> LinearPlan:
    """Rescale the noise of a linear plan to a budget; drop expected errors."""
    return LinearPlan(
        workload=plan.workload,
        privacy=privacy,
        strategy=plan.strategy,
        measurements=rescale_noise(plan.measured(), privacy),
    )


def adaptive_plan(
    reference: Plan, remaining_privacy: Privacy, strategy: str, details: AdaptiveDetails
) -> AdaptivePlan:
    """Create a data-dependent plan from its details and a reference plan.

    The plan states the errors of the reference for comparison. If the data have no useful
    structure, the release falls back to the reference, rescaled to the remaining budget.
    """
    return AdaptivePlan(
        workload=reference.workload,
        privacy=reference.privacy,
        strategy=strategy,
        adaptive=replace(details, reference=summarize_reference(reference)),
        fallback=rescale_plan(reference, remaining_privacy),
    )


def reference_measurements(plan: Plan) -> Measurements:
    """Return the measurements of the plan's data-independent fallback.

    The measurements cost at most the part of the budget that remains after the first choice.
    """
    if not isinstance(plan, AdaptivePlan) or plan.fallback is None:
        raise InputError(
            "The data-dependent plan must have a fallback plan for data without structure; it has "
            "none. Make the plan again; nothing was spent."
        )
    return plan.fallback.measured()


def require_adaptive(plan: Plan) -> AdaptivePlan:
    """Return the plan if it is data-dependent.

    Raises an error for other plans.

    Raises:
        InputError: the plan, which may come from a file, has no steps.
    """
    if not isinstance(plan, AdaptivePlan):
        raise InputError(
            "The data-dependent plan must have steps; it has none. Make the plan again; nothing "
            "was spent."
        )
    return plan


def adaptive_details(plan: Plan) -> AdaptiveDetails:
    """Return the steps of a data-dependent plan; raise for other plans."""
    return require_adaptive(plan).adaptive


def reference_of(plan: Plan) -> ReferencePlan:
    """Return the errors of the best data-independent plan, for comparison.

    Raises:
        InputError: the plan has no summary, or its summary is for other tables.
    """
    reference = adaptive_details(plan).reference
    if reference is None or len(reference.rmse) != len(plan.workload.products):
        raise InputError(
            "The plan has no errors of a data-independent plan for its tables. Make the plan "
            "again; nothing was spent."
        )
    return reference


def require_details(plan: Plan, planned_details: AdaptiveDetails) -> None:
    """Raise unless a plan's steps are the steps that this version plans.

    Args:
        plan: a plan, which may come from a file.
        planned_details: the details that this version plans; their reference is not compared.
    """
    reference_measurements(plan)
    reference_of(plan)
    details = adaptive_details(plan)
    if replace(details, reference=None) != replace(planned_details, reference=None):
        raise InputError(
            "The steps of the plan differ from the steps of this version of leastnoise. Make the "
            "plan again; nothing was spent."
        )


def shared_mu_squared(privacy: Privacy, noise: Noise) -> Fraction | None:
    """Return the mu squared that all Gaussian steps share; None for other budgets.

    The result is the mu squared of a budget (epsilon, delta). The result is None for other kinds of
    noise or budget; then the budgets of the steps add up.
    """
    if noise is not Noise.ROUNDED_GAUSSIAN or type(privacy.budget) is not ApproxDP:
        return None
    return allowed_mu_squared(privacy.budget)


def shared_step_privacy(privacy: Privacy, mu_squared: Fraction | None) -> Privacy:
    """Return the privacy of all steps together, with a budget to be split.

    The budget of the result is rho = mu^2 / 2 if Gaussian steps compose, otherwise the budget of
    ``privacy``.
    """
    if mu_squared is None:
        return privacy
    return privacy.within(ZCDP(mu_squared / 2))


def step_privacy(plan: Plan) -> Privacy:
    """Return the privacy of all steps of a plan, with a budget to be split."""
    return shared_step_privacy(plan.privacy, adaptive_details(plan).mu_squared)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDependentFinding(Finding):
    """A mechanism's choice from noisy answers, and the estimator for this choice."""

    regime: ClassVar[str]  # the name of the choice in files
    linear: ClassVar[bool] = False
    answers_new_questions: ClassVar[bool] = True
    interval: ClassVar[str] = "interval_aware"  # keys of texts in the catalogue
    reading: ClassVar[str] = "aware_reading"
    uncovered_error: ClassVar[str] = "aware_smoothed"
    estimate: ClassVar[Callable[..., Estimator]]
    """A function from an observation to the estimator, if nothing else is needed."""

    test: Mapping[str, float] | None = None

    @property
    def executed_steps(self) -> CatalogueText:
        """The catalogue key and values of the text that names the executed steps."""
        return f"regime_{self.regime}", asdict(self)

    @classmethod
    def text_keys(cls) -> tuple[str, ...]:
        """Return the catalogue keys of the texts in a report on this finding."""
        return f"regime_{cls.regime}", cls.interval, cls.reading, cls.uncovered_error

    # The same errors are uncovered in all domains.
    def uncovered_errors(self, domain: Domain) -> list[CatalogueText]:  # noqa: ARG002
        """Return texts about errors that the intervals do not include."""
        return [(self.uncovered_error, {})]

    def facts(self) -> dict[str, Any]:
        """Return the finding as a JSON object, without entries that are None."""
        return {"regime": self.regime, **_without_none(asdict(self))}

    def estimator(self, observation: Observation) -> Estimator:
        """Return the estimator that computes answers from noisy values."""
        return type(self).estimate(observation)


def _without_none(value: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the entries of a mapping that are None."""
    return {
        name: _without_none(inner) if isinstance(inner, Mapping) else inner
        for name, inner in value.items()
        if inner is not None
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStructureFinding(DataDependentFinding):
    """The finding that the data have no useful structure.

    The answers come from least squares.
    """

    regime = "independent"
    uncovered_error = "aware_independent"

    def estimator(self, observation: Observation) -> Estimator:
        """Return the least squares estimator."""
        return DataIndependentEstimate(Estimate(observation))
