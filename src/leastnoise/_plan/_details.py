"""Describe plans by public facts other than measurements and expected errors.

Each fact has a type, a form in JSON, and a check that also applies to plan files.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from leastnoise._domain import Domain, checked_keys
from leastnoise._plan._frozen import freeze
from leastnoise._trusted.accounting import (
    Budget,
    Cost,
    Noise,
    budget_from_json,
    cost_from_json,
    fraction_from_text,
)
from leastnoise._trusted.check import one_of, refuse, whole

_LARGEST_NUMBER = 1e150  # the square of a number up to this bound is still a double
# The most periods of a plan, because an attribute has at most this many cells.
_MOST_PERIODS = 2**31
_Entry = TypeVar("_Entry")


def checked_number(name: str, value: Any) -> float:
    """Check that a JSON value is a number from 0 to 1e150, and return it."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _LARGEST_NUMBER:
        raise refuse(name, value, f"a number from 0 to {_LARGEST_NUMBER:g}")
    number: float = value
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePlan:
    """The strategy and the errors of the best data-independent plan.

    A data-dependent plan states them for comparison, because its own error is unknown.

    Attributes:
        strategy: the name of its strategy.
        noise: the kind of its noise.
        expected_total_squared_error: the weighted squared error over all queries.
        lower_bound: a lower bound on that error for every plan of this kind.
        rmse: the root mean squared error of each table of the workload.
    """

    strategy: str
    noise: Noise
    expected_total_squared_error: float
    lower_bound: float
    rmse: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        return {
            "strategy": self.strategy,
            "mechanism": self.noise.value,
            "expected_total_squared_error": self.expected_total_squared_error,
            "lower_bound": self.lower_bound,
            "rmse": list(self.rmse),
        }

    @staticmethod
    def from_json(value: Any) -> "ReferencePlan":
        """Read the summary back from the JSON object that `to_json` returned."""
        entries = _checked_object(value)
        return ReferencePlan(
            strategy=_checked_text("strategy", entries["strategy"]),
            noise=_noise_from_json(entries["mechanism"]),
            expected_total_squared_error=checked_number(
                "expected_total_squared_error", entries["expected_total_squared_error"]
            ),
            lower_bound=checked_number("lower_bound", entries["lower_bound"]),
            rmse=tuple(checked_number("rmse", error) for error in _checked_list(entries["rmse"])),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a data-dependent plan, and the budget that it may spend."""

    name: str
    budget: Budget

    def to_json(self) -> dict[str, Any]:
        """Return the step as a JSON object."""
        return {"step": self.name, "budget": self.budget.to_json()}


@dataclass(frozen=True, slots=True)
class StepChoice:
    """A choice between lists of steps, which noisy answers make during a release.

    Attributes:
        cases: the steps of each alternative, by its name.
    """

    cases: tuple[tuple[str, tuple[Step, ...]], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the alternatives as a JSON object."""
        cases = {name: [step.to_json() for step in steps] for name, steps in self.cases}
        return {"step": _ONE_OF, **cases}


Steps: TypeAlias = tuple[Step | StepChoice, ...]
_ONE_OF = "one of"


def _steps_from_json(value: Any) -> Steps:
    """Parse the JSON list of a mechanism's steps."""
    return tuple(_step_from_json(entry) for entry in _checked_list(value))


def _step_from_json(value: Any) -> Step | StepChoice:
    """Parse a step, or a choice between lists of steps, from JSON."""
    entries = _checked_object(value)
    if entries["step"] != _ONE_OF:
        return _plain_step_from_json(entries)
    cases = []
    for name, steps in entries.items():
        if name != "step":
            cases.append(
                (name, tuple(_plain_step_from_json(step) for step in _checked_list(steps)))
            )
    return StepChoice(tuple(cases))


def _plain_step_from_json(value: Any) -> Step:
    """Parse one step with its budget from a JSON object."""
    entries = _checked_object(value)
    return Step(
        _checked_text("step", entries["step"]), budget_from_json(_checked_object(entries["budget"]))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveDetails:
    """How a data-dependent plan spends its budget, and the columns its choices read.

    Attributes:
        noise: the kind of noise of all measurements.
        steps: the steps in order, and the budget of each step.
        mu_squared: the mu^2 that Gaussian steps share; None if the budgets of the steps add up.
        attributes: the attributes on which the mechanism's choices depend. They are read even if no
            query uses them.
        measure: the measure of the sums, if the mechanism answers sums.
        pairs: the number of pairs of attributes to which a model is fitted.
        borders: the thresholds "easy" and "clear" with which a private test decides whether the
            data are nearly empty; if they are not, the data-independent plan is used.
        reference: the best data-independent plan.
        selects_quantiles: whether quantiles are chosen privately and all other statistics follow
            from fixed measurements. Other adaptive plans cannot compute statistics.
    """

    noise: Noise
    steps: Steps = ()
    mu_squared: Fraction | None = None
    attributes: tuple[str, ...] = ()
    measure: str | None = None
    pairs: int | None = None
    borders: Mapping[str, float] = field(default_factory=dict)
    reference: ReferencePlan | None = None
    selects_quantiles: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "borders", freeze(self.borders))

    def to_json(self) -> dict[str, Any]:
        """Return the details as a JSON object, without facts that are not set."""
        value: dict[str, Any] = {
            "noise": self.noise.value,
            "steps": [step.to_json() for step in self.steps],
        }
        if self.mu_squared is not None:
            value["mu_squared"] = str(self.mu_squared)
        if self.attributes:
            value["attributes"] = list(self.attributes)
        if self.measure is not None:
            value["measure"] = self.measure
        if self.pairs is not None:
            value["pairs"] = self.pairs
        if self.borders:
            value["borders"] = dict(self.borders)
        if self.reference is not None:
            value["reference"] = self.reference.to_json()
        if self.selects_quantiles:
            value["selects_quantiles"] = True
        return value

    @staticmethod
    def from_json(domain: Domain, value: Any) -> "AdaptiveDetails":
        """Return the details whose JSON value `to_json` wrote."""
        entries: dict[str, Any] = checked_keys(
            "the steps of a plan", value, [entry.name for entry in fields(AdaptiveDetails)]
        )
        names = _optional(entries, "attributes", _checked_list) or []
        return AdaptiveDetails(
            noise=_noise_from_json(entries["noise"]),
            steps=_steps_from_json(entries["steps"]),
            mu_squared=_optional(
                entries, "mu_squared", lambda text: fraction_from_text("mu_squared", text)
            ),
            attributes=tuple(one_of("an attribute", name, domain.names) for name in names),
            measure=_optional(
                entries, "measure", lambda name: one_of("a measure", name, domain.measures)
            ),
            pairs=_optional(
                entries, "pairs", lambda number: whole("the number of pairs", number, 1)
            ),
            borders={
                name: checked_number(name, border)
                for name, border in (_optional(entries, "borders", _checked_object) or {}).items()
            },
            reference=_optional(entries, "reference", ReferencePlan.from_json),
            selects_quantiles=entries.get("selects_quantiles", False) is True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesDetails:
    """The public facts about how a series is published.

    Attributes:
        along: the attribute of dates.
        late: the treatment of rows that arrive after their period: "drop" or "arrival".
        strategy_of_a_period: the strategy for the attributes other than time.
        through: in a release of the first periods, the label of the last period.
        periods: the number of periods of such a release.
        cost: the cost of all periods; another ledger may have to record it too.
    """

    along: str
    late: str
    strategy_of_a_period: str | None = None
    through: str | None = None
    periods: int | None = None
    cost: Cost | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the details as a JSON object, without facts that are not set."""
        facts = {
            "along": self.along,
            "late": self.late,
            "strategy_of_a_period": self.strategy_of_a_period,
            "through": self.through,
            "periods": self.periods,
            "cost": None if self.cost is None else self.cost.to_json(),
        }
        return {name: fact for name, fact in facts.items() if fact is not None}

    @staticmethod
    def from_json(domain: Domain, value: Any) -> "SeriesDetails":
        """Return the details whose JSON value `to_json` wrote."""
        entries: dict[str, Any] = checked_keys(
            "the series of a plan", value, [entry.name for entry in fields(SeriesDetails)]
        )
        return SeriesDetails(
            along=one_of("along", entries["along"], domain.names),
            late=one_of("late", entries["late"], ("drop", "arrival")),
            strategy_of_a_period=_optional(
                entries, "strategy_of_a_period", lambda name: _checked_text("a strategy", name)
            ),
            through=_optional(entries, "through", lambda label: _checked_text("through", label)),
            periods=_optional(
                entries, "periods", lambda number: whole("periods", number, 1, _MOST_PERIODS)
            ),
            cost=_optional(entries, "cost", cost_from_json),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDetails:
    """Public facts of a plan that are not its measurements or expected errors.

    Attributes:
        objective: the number that the plan minimises. It is the total squared error ("total"),
            another objective, or the budget that meets every target ("least").
        ended_early: the strategies whose search the time limit ended.
        high_errors: by table, the ratio of two errors: the table's error, and its error in a
            separate plan with an equal share of the budget. Only ratios over two are listed.
        unit_bound: the planner's lower bound on the workload's total squared error at unit noise;
            it is 0 if the planner found no bound.
        largest_variance_over_least: for strategies that minimise the largest variance of a query,
            this variance divided by a lower bound on it.
        impossible: the combinations of cells that no row can have; each lists cells by attribute.
        public: the tables of counts that are public: each has its queries and its counts.
        counts_unit_sizes: whether the plan counts units by their number of rows. In this case the
            number of rows is the only attribute, and only the column of the unit is read.
    """

    objective: str = "total"
    ended_early: tuple[str, ...] = ()
    high_errors: Mapping[str, float] = field(default_factory=dict)
    unit_bound: float = 0.0
    largest_variance_over_least: float | None = None
    impossible: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    public: tuple[Mapping[str, Any], ...] = ()
    counts_unit_sizes: bool = False

    def __post_init__(self) -> None:
        for name in ("ended_early", "high_errors", "impossible", "public"):
            object.__setattr__(self, name, freeze(getattr(self, name)))

    def to_json(self) -> dict[str, Any]:
        """Return the details as a JSON object, without facts that are not set."""
        value: dict[str, Any] = {}
        if self.objective != "total":
            value["objective"] = self.objective
        for name in ("ended_early", "impossible", "public"):
            if getattr(self, name):
                value[name] = list(getattr(self, name))
        if self.high_errors:
            value["high_errors"] = dict(self.high_errors)
        if self.unit_bound:
            value["unit_bound"] = self.unit_bound
        if self.largest_variance_over_least is not None:
            value["largest_variance_over_least"] = self.largest_variance_over_least
        if self.counts_unit_sizes:
            value["counts_unit_sizes"] = True
        return value

    @staticmethod
    def from_json(domain: Domain, value: Any) -> "PlanDetails":
        """Parse the details of a plan from the JSON object that `to_json` wrote.

        Raises:
            InputError: a fact is unknown or has another type.
        """
        entries: dict[str, Any] = checked_keys(
            "the details of a plan", value, [entry.name for entry in fields(PlanDetails)]
        )
        early = _optional(entries, "ended_early", _checked_list) or []
        ratios = _optional(entries, "high_errors", _checked_object) or {}
        impossible = _optional(entries, "impossible", _checked_list) or []
        public = _optional(entries, "public", _checked_list) or []
        return PlanDetails(
            objective=_checked_text("objective", entries.get("objective", "total")),
            ended_early=tuple(_checked_text("ended_early", name) for name in early),
            high_errors={name: checked_number(name, ratio) for name, ratio in ratios.items()},
            unit_bound=checked_number("unit_bound", entries.get("unit_bound", 0.0)),
            largest_variance_over_least=_optional(
                entries,
                "largest_variance_over_least",
                lambda ratio: checked_number("largest_variance_over_least", ratio),
            ),
            impossible=tuple(_cells_from_json(domain, combination) for combination in impossible),
            public=tuple(_checked_object(counts) for counts in public),
            counts_unit_sizes=entries.get("counts_unit_sizes", False) is True,
        )


NO_DETAILS = PlanDetails()


def _optional(
    entries: Mapping[str, Any], name: str, reader: Callable[[Any], _Entry]
) -> _Entry | None:
    """Return an entry of a JSON object that a function parses; None if missing."""
    if name in entries:
        return reader(entries[name])
    return None


def _cells_from_json(domain: Domain, value: Any) -> dict[str, tuple[int, ...]]:
    """Parse a JSON object that maps attributes to lists of cell numbers.

    The file stores impossible combinations in this form.
    """
    cells = {}
    for name, codes in _checked_object(value).items():
        most = domain.kind(one_of("an attribute", name, domain.names)).size - 1
        cells[name] = tuple(
            whole(f"a cell of {name}", code, 0, most) for code in _checked_list(codes)
        )
    return cells


def _noise_from_json(value: Any) -> Noise:
    """Parse the kind of noise."""
    return Noise(one_of("mechanism", value, [kind.value for kind in Noise]))


def _checked_list(value: Any) -> list[Any]:
    """Check that a JSON value is a list, and return it."""
    if not isinstance(value, list):
        raise refuse("a part of the details of a plan", value, "a list")
    return value


def _checked_object(value: Any) -> Mapping[str, Any]:
    """Check that a JSON value is an object, and return it."""
    if not isinstance(value, Mapping):
        raise refuse("a part of the details of a plan", value, "an object")
    return value


def _checked_text(name: str, value: Any) -> str:
    """Check that a JSON value is a text, and return it."""
    if not isinstance(value, str):
        raise refuse(name, value, "a text")
    return value
