"""The plan: the workload, the measured queries, and expected errors.

A plan is a frozen, serialisable, public value.
"""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastnoise._charts import draw_errors, make_altair_chart
from leastnoise._domain import Domain
from leastnoise._facts import summarize
from leastnoise._frames import Columns, TabularMixin
from leastnoise._plan._details import (
    NO_DETAILS,
    AdaptiveDetails,
    PlanDetails,
    SeriesDetails,
    checked_number,
)
from leastnoise._plan._earlier_measurements import (
    EarlierRelease,
    check_earlier,
    joint_measurements,
    joint_observation,
)
from leastnoise._plan._plan_json import measurements_from_value, parse_or_refuse, read_json
from leastnoise._trusted.accounting import (
    Cost,
    GaussianCost,
    Privacy,
    SeriesCost,
    privacy_from_json,
)
from leastnoise._trusted.check import InputError, html_facts, refuse, whole
from leastnoise._trusted.measurements import (
    Measurements,
    Observation,
    cost,
    measurements_value,
)
from leastnoise._workload import Workload
from leastnoise._workload import from_json as workload_from_json

FORMAT = 1  # the format of plans in JSON; other formats are refused
MOST_SHOWN = 20  # tables of a plan in a notebook
_FACTS_IN_REPR = ("size", "error_ratio", "strategy", "budget", "protects", "after")


@dataclass(frozen=True, slots=True)
class TableError:
    """The expected errors of one table's answers under a plan.

    Attributes:
        name: the name of the table.
        queries: the number of queries.
        weight: the weight of the table in the workload.
        rmse: the root mean square error, in rows or units of the measure.
        largest_std: the largest standard error of an answer.
        largest_is_bound: whether ``largest_std`` is an upper bound.
    """

    name: str
    queries: int
    weight: float
    rmse: float
    largest_std: float
    largest_is_bound: bool = False

    def to_json(self) -> list[Any]:
        """Return the errors as a JSON list."""
        value = [self.name, self.queries, self.weight, self.rmse, self.largest_std]
        if self.largest_is_bound:
            value.append(True)
        return value


# The ratio of error to lower bound exceeds this number only if the noise is far below one row.
MOST_TIMES_LEAST = 1e6


@dataclass(frozen=True, slots=True, repr=False)
class ExpectedError(TabularMixin):
    """The expected errors of a workload's tables under a plan.

    They are computed before any data is read.
    """

    total_squared_error: float
    lower_bound: float
    tables: tuple[TableError, ...]
    units: tuple[float, ...] = field(default=(), compare=False)

    def columns(self) -> Columns:
        """Return the errors as columns: table, queries, weight, typical and largest.

        Each table is a row. Standard errors are in rows or in amounts of the measure.
        """
        units = np.array(self.units or [1.0] * len(self.tables))
        return {
            "table": np.array([table.name for table in self.tables], dtype=object),
            "queries": np.array([table.queries for table in self.tables]),
            "weight": np.array([float(table.weight) for table in self.tables]),
            "rmse": units * [table.rmse for table in self.tables],
            "largest_std": units * [table.largest_std for table in self.tables],
        }

    def table_errors(self) -> list[tuple[str, float, float]]:
        """Return the name, the typical and the largest error of each table.

        The errors are in rows or in amounts of the measure.
        """
        columns = self.columns()
        names = ("table", "rmse", "largest_std")
        return [*zip(*(columns[name].tolist() for name in names), strict=True)]

    def to_json(self) -> dict[str, Any]:
        """Return the errors as a JSON object."""
        return {
            "total_squared_error": self.total_squared_error,
            "lower_bound": self.lower_bound,
            "tables": [table.to_json() for table in self.tables],
        }

    @property
    def times_least(self) -> float | None:
        """The total error divided by its lower bound; None without a bound.

        The ratio is the square root of the total squared error divided by its lower bound. If the
        budget is so large that discrete noise nearly vanishes, the bound has no meaning, and the
        result is None.
        """
        if self.lower_bound * MOST_TIMES_LEAST**2 > self.total_squared_error:
            return math.sqrt(self.total_squared_error / self.lower_bound)
        return None


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(ABC):
    """The public description of a release, made before data are read.

    A plan has one of three classes: a `LinearPlan` with fixed measurements; a `SeriesPlan` with
    fixed measurements for all periods of a series; or an `AdaptivePlan`, whose measurements depend
    on noisy values.

    Args:
        workload: the queries to answer.
        privacy: the budget, the neighbours and the privacy unit of the whole plan.
        strategy: the name of the strategy or mechanism.
        details: further public facts, such as the objective.

    Raises:
        InputError: an argument has another type.
    """

    workload: Workload
    privacy: Privacy
    strategy: str
    details: PlanDetails = NO_DETAILS

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Workload) or not isinstance(self.privacy, Privacy):
            received = f"{type(self.workload).__name__}, {type(self.privacy).__name__}"
            raise refuse("the workload and privacy of a plan", received, "Workload, Privacy")
        if (
            not isinstance(self.strategy, str)
            or not self.strategy
            or not isinstance(self.details, PlanDetails)
        ):
            raise InputError(
                "The strategy of a plan must be a name, and the plan's details must be a "
                "PlanDetails object. Make the plan again; nothing was spent."
            )
        if self.details.counts_unit_sizes:
            self._check_unit_sizes()

    def _check_unit_sizes(self) -> None:
        """Raise if a plan that counts unit sizes has a wrong workload or privacy."""
        domain = self.workload.domain
        unit = self.privacy
        if (
            not isinstance(self, LinearPlan)
            or isinstance(self, SeriesPlan)
            or (len(domain.names), len(domain.measures)) != (1, 0)
            or unit.unit_column is None
            or (unit.max_rows, unit.max_per_cell) != (1, None)
        ):
            raise InputError(
                "A plan that counts units by their number of rows must have fixed measurements, "
                "one attribute, no measure, a unit with a column, and max_rows = 1. Make the plan "
                "again; nothing was spent."
            )

    def __repr__(self) -> str:
        facts = summarize(self, *_FACTS_IN_REPR)
        return f"Plan({', '.join(f'{label}: {text}' for label, text in facts)})"

    def _repr_html_(self) -> str:
        return html_facts("Plan", summarize(self, *_FACTS_IN_REPR, "values"))

    @property
    def data_independent_error(self) -> ExpectedError | None:
        """The expected errors of the tables; None if they depend on the data."""
        return None

    @abstractmethod
    def cost(self) -> Cost:
        """Return the privacy cost of carrying out the plan."""

    @abstractmethod
    def measured(self) -> Measurements:
        """Return all measurements that the answers are estimated from.

        They include the measurements of earlier releases that the plan uses.

        Raises:
            InputError: the measurements depend on the data.
        """

    @abstractmethod
    def expected_error(self) -> ExpectedError:
        """Return the expected errors of the workload's tables.

        Raises:
            InputError: the error depends on the data.
        """

    @abstractmethod
    def _names_that_are_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of attributes and measures that are measured."""

    @abstractmethod
    def json_value(self) -> dict[str, Any]:
        """Return the plan as a JSON object."""

    def details_json(self) -> dict[str, Any]:
        """Return the details as JSON, including the details of this kind of plan."""
        return self.details.to_json()

    def lower_bound(self) -> float:
        """Return a lower bound on the total squared error with this kind of noise.

        The bound holds for every unbiased plan.
        """
        return self.expected_error().lower_bound

    def plot(self) -> Any:
        """Return the expected error of each table as an Altair chart.

        Notebooks show the chart: typical errors as bars, largest errors as ticks.

        The chart shows the tables that count rows. If no table counts rows, the chart shows the
        tables of the first measure, because each measure has a separate unit.

        Raises:
            InputError: the error depends on the data.
        """
        errors = self.expected_error().table_errors()
        measures = self.workload.measures
        if None in measures:
            measure = None
        else:
            measure = measures[0]
        rows = []
        for error, product in zip(errors, self.workload, strict=True):
            if product.measure == measure:
                rows.append(error)
        if measure is None:
            quantity = "standard error, in rows"
        else:
            quantity = f"standard error of {measure}"
        return make_altair_chart(draw_errors(rows, quantity), quantity)

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self.workload.domain

    def details_for(self, workload: Workload) -> PlanDetails:
        """Return those details that remain true if the workload is changed.

        A lower bound that a planner found holds only for the workload of the plan.

        Args:
            workload: the queries to be answered from the measurements.

        >>> prefix = ln.queries(ln.Domain(age=ln.Integers(0, 9)), age="prefix")
        >>> plan = ln.plan(prefix, ln.ZCDP(1), strategy="gaussian_optimum")
        >>> plan.details_for(prefix).unit_bound > 0
        True
        >>> plan.details_for(ln.queries(prefix.domain, age="identity")).unit_bound
        0.0
        """
        if workload == self.workload:
            return self.details
        return replace(self.details, unit_bound=0.0)

    def used(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the attributes and measures that the release reads.

        The names are in the order of the domain.

        These are the attributes and measures that queries, measurements or choices of a mechanism
        use. No other attribute or measure is read. So an attribute that is not used drops no rows.

        >>> prefix = ln.queries(ln.Domain(sex=["F"], age=[1, 2]), age="prefix")
        >>> ln.plan(prefix, ln.PureDP(1), strategy="dawa").used()
        (('age',), ())
        """
        attributes = {*self.workload.read_attributes}
        measures = {product.measure for product in self.workload}
        further_attributes, further_measures = self._names_that_are_read()
        attributes.update(further_attributes)
        measures.update(further_measures)
        return tuple(name for name in self.domain.names if name in attributes), tuple(
            name for name in self.domain.measures if name in measures
        )

    def to_json(self) -> str:
        """Return the plan as JSON text, equal for equal plans."""
        return self._text

    @cached_property
    def _text(self) -> str:
        """The plan as JSON text on one line, from a cache."""
        return json.dumps(self.json_value(), separators=(",", ":"), allow_nan=False)

    def _json_of_workload(self) -> dict[str, Any]:
        """Return the queries and statistics as a JSON value."""
        value: dict[str, Any] = {"questions": self.workload.to_json()}
        if self.workload.statistics:
            value["statistics"] = [item.to_json() for item in self.workload.statistics]
        return value

    def digest(self) -> str:
        """Return the SHA-256 of the plan's JSON text, in hexadecimal."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "Plan":
        """Return the plan whose JSON text `to_json` wrote.

        Raises:
            InputError: the text is not a plan, or has another format.
        """
        return parse_or_refuse(
            lambda: _plan_from_value(read_json(text)),
            "plan",
            "Make it again with leastnoise.plan and Plan.to_json.",
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class LinearPlan(Plan):
    """A plan with fixed measurements, whose expected errors are known.

    Args:
        measurements: the measurements that the release pays for.
        data_independent_error: the expected error of the workload, from these measurements and
            the measurements of the earlier releases; None until it is computed.
        earlier: earlier releases of the same data; their measurements are also used.

    Raises:
        InputError: the measurements have another domain or privacy; or an earlier release did not
            count the same rows in the same cells with the same kind of noise.
    """

    measurements: Measurements
    data_independent_error: ExpectedError | None = None
    earlier: tuple[EarlierRelease, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        measured = self.measurements
        if (measured.domain, measured.privacy) != (self.domain, self.privacy):
            raise InputError(
                "The measurements of a plan must have its domain and privacy. Make the "
                "plan again; nothing was spent."
            )
        if self.data_independent_error is not None and self.workload.measures != (None,):
            units = tuple(product.unit for product in self.workload)
            object.__setattr__(
                self, "data_independent_error", replace(self.data_independent_error, units=units)
            )
        if self.earlier:
            check_earlier(self.earlier, self.domain, self.privacy, self.used()[0])
            self.measured()  # refuses earlier releases with other noise

    def _repr_html_(self) -> str:
        tables = []
        if self.data_independent_error is not None:
            for name, typical, _ in self.data_independent_error.table_errors():
                tables.append((name, f"standard error {typical:,.4g}"))
        if len(tables) > MOST_SHOWN:
            further = len(tables) - MOST_SHOWN
            tables = [*tables[:MOST_SHOWN], ("...", f"{further:,} more tables")]
        facts = summarize(self, *_FACTS_IN_REPR, "values")
        return html_facts("Plan", [*facts, *tables])

    def measured(self) -> Measurements:
        """Return the plan's measurements, then the earlier releases' measurements."""
        return self._joint

    @cached_property
    def _joint(self) -> Measurements:
        """The plan's measurements, then the earlier releases' measurements."""
        return joint_measurements(self.measurements, self.earlier)

    def observed(self, observation: Observation) -> Observation:
        """Combine this plan's noisy values with the noisy values of earlier releases."""
        return joint_observation(observation, self.earlier)

    def expected_error(self) -> ExpectedError:
        """Return the expected errors of the workload's tables.

        Raises:
            InputError: the expected error was not computed.
        """
        if self.data_independent_error is None:
            raise InputError(
                f"The plan {self.strategy!r} has no expected error. Make the plan again; nothing "
                "was spent."
            )
        return self.data_independent_error

    def cost(self) -> Cost:
        """Return the privacy cost, computed from the exact scales."""
        return cost(self.measurements)

    def _names_that_are_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of attributes and measures that are measured."""
        return self.measurements.columns()

    def json_value(self) -> dict[str, Any]:
        """Return the values of the plan for a JSON object."""
        expected_error = self.data_independent_error
        return {
            "format": FORMAT,
            "strategy": self.strategy,
            **measurements_value(self.measurements),
            **self._json_of_workload(),
            "promise": None if expected_error is None else expected_error.to_json(),
            "details": self.details_json(),
            **({"after": [release.to_json() for release in self.earlier]} if self.earlier else {}),
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class SeriesPlan(LinearPlan):
    """A plan for all periods of a series, or for its first periods.

    Args:
        series: the public facts about the publication of the series.
    """

    series: SeriesDetails

    @staticmethod
    def of(plan: LinearPlan, series: SeriesDetails) -> "SeriesPlan":
        """Convert a linear plan to a plan of a series."""
        values = {entry.name: getattr(plan, entry.name) for entry in fields(LinearPlan)}
        return SeriesPlan(**values, series=series)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.earlier:
            raise InputError(
                "A series must use only its own measurements, because its rows arrive period by "
                "period. Got earlier releases. Leave out `after`; nothing was spent."
            )

    def details_json(self) -> dict[str, Any]:
        """Return the details and the facts about the series as a JSON value."""
        return {**super().details_json(), "series": self.series.to_json()}


@dataclass(frozen=True, kw_only=True, repr=False)
class AdaptivePlan(Plan):
    """A plan whose measurements depend on noisy values of earlier steps.

    The plan's budget also pays for these values. The plan states no expected error, because the
    error depends on the data.

    Attributes:
        adaptive: the steps, and the budget of each step.
        fallback: the measurements that are used if the data have no useful structure; None if the
            mechanism needs none.
    """

    adaptive: AdaptiveDetails
    fallback: LinearPlan | None = None

    def measured(self) -> Measurements:
        """Raise InputError, because the measurements depend on the data."""
        raise self._data_dependent_error("no measurements that are known beforehand")

    def expected_error(self) -> ExpectedError:
        """Raise InputError, because the error depends on the data."""
        raise self._data_dependent_error("no expected error")

    def _data_dependent_error(self, missing: str) -> InputError:
        """Return the error to raise for a property that only fixed plans have."""
        return InputError(
            f"The plan {self.strategy!r} has {missing}: its measurements depend on the data. "
            "Choose strategy = 'auto' for a plan with an expected error."
        )

    def cost(self) -> Cost:
        """Return the privacy cost: the whole budget that the steps share."""
        if self.adaptive.mu_squared is not None:
            return GaussianCost(self.adaptive.mu_squared)
        return SeriesCost(self.privacy.budget)

    def _names_that_are_read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of attributes and measures that are read."""
        return self.adaptive.attributes, ()

    def details_json(self) -> dict[str, Any]:
        """Return the details and the steps of the plan as a JSON value."""
        return {**super().details_json(), "adaptive": self.adaptive.to_json()}

    def json_value(self) -> dict[str, Any]:
        """Return the values of the plan for a JSON object."""
        if self.fallback is None:
            independent = None
        else:
            independent = self.fallback.json_value()
        return {
            "data_aware": FORMAT,
            "strategy": self.strategy,
            "privacy": self.privacy.to_json(),
            "domain": self.domain.to_json(),
            **self._json_of_workload(),
            "details": self.details_json(),
            "independent": independent,
        }


def _plan_from_value(value: Mapping[str, Any]) -> Plan:
    """Parse the JSON object of a plan of any kind."""
    is_adaptive = "data_aware" in value
    plan_format = value["data_aware" if is_adaptive else "format"]
    if plan_format != FORMAT:
        raise refuse(
            "the format of a plan",
            plan_format,
            str(FORMAT),
            "Make the plan again with this version.",
        )
    if is_adaptive:
        return _adaptive_plan_from_value(value)
    return _linear_plan_from_value(value)


def _adaptive_plan_from_value(value: Mapping[str, Any]) -> AdaptivePlan:
    """Parse the JSON object of a data-dependent plan."""
    domain = Domain.from_json(value["domain"])
    details = dict(value["details"])
    adaptive = AdaptiveDetails.from_json(domain, details.pop("adaptive"))
    fallback = None
    if value["independent"] is not None:
        fallback = _linear_plan_from_value(value["independent"])
    return AdaptivePlan(
        workload=_workload_from_value(domain, value),
        privacy=privacy_from_json(value["privacy"]),
        strategy=value["strategy"],
        details=PlanDetails.from_json(domain, details),
        adaptive=adaptive,
        fallback=fallback,
    )


def _linear_plan_from_value(value: Mapping[str, Any]) -> LinearPlan:
    """Parse the JSON object of a linear plan or a series plan."""
    domain = Domain.from_json(value["domain"])
    details = dict(value["details"])
    series = details.pop("series", None)
    workload = _workload_from_value(domain, value)
    expected_error = None
    if value["promise"] is not None:
        expected_error = _expected_error_from_value(value["promise"], workload)
    plan = LinearPlan(
        workload=workload,
        privacy=privacy_from_json(value["privacy"]),
        strategy=value["strategy"],
        measurements=measurements_from_value(value, domain),
        data_independent_error=expected_error,
        details=PlanDetails.from_json(domain, details),
        earlier=tuple(map(EarlierRelease.from_json, value.get("after", ()))),
    )
    if series is None:
        return plan
    return SeriesPlan.of(plan, SeriesDetails.from_json(domain, series))


def _workload_from_value(domain: Domain, value: Mapping[str, Any]) -> Workload:
    """Parse the workload in a plan's JSON object."""
    questions = value["questions"]
    if not questions:
        raise InputError(
            "A plan must have queries; got none. Make plans with leastnoise.plan(workload, budget)."
        )
    return workload_from_json(domain, questions, value.get("statistics", ()))


# The most queries of a table in JSON: far more than any table has, but still a double.
_MOST_QUERIES = 2**200


def _expected_error_from_value(value: Mapping[str, Any], workload: Workload) -> ExpectedError:
    """Parse the expected errors in a plan's JSON object."""
    tables = tuple(map(_table_error, value["tables"]))
    if len(tables) != len(workload.products):
        raise refuse(
            "the errors of a plan", f"{len(tables)} tables", f"of its {len(workload.products)}"
        )
    return ExpectedError(
        checked_number("total_squared_error", value["total_squared_error"]),
        checked_number("lower_bound", value["lower_bound"]),
        tables,
    )


def _table_error(entry: Any) -> TableError:
    """Parse the expected errors of a table from a JSON list."""
    name, queries, weight, rmse, largest, *bound = entry
    if not isinstance(name, str) or not isinstance(entry, list) or bound not in ([], [True]):
        raise refuse("the error of a table in a plan", entry, "a list that begins with its name")
    return TableError(
        name,
        whole("the queries of a table", queries, 1, _MOST_QUERIES),
        checked_number("weight", weight),
        checked_number("rmse", rmse),
        checked_number("largest_std", largest),
        bool(bound),
    )
