"""The plan: the workload, what is measured for it, and expected errors.

A frozen, serialisable, public value.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from leastnoise._charts import draw_errors, make_altair_chart
from leastnoise._domain import (
    Domain,
)
from leastnoise._frames import Columns, TabularMixin, pluralize
from leastnoise._plan._details import NO_DETAILS, PlanDetails, amount
from leastnoise._plan._json import measurements_from_value, read, read_json
from leastnoise._trusted.accounting import (
    Cost,
    GaussianCost,
    Privacy,
    SeriesCost,
    charge_text,
    privacy_from_json,
    whole_budget,
)
from leastnoise._trusted.check import InputError, html_facts, refuse, whole
from leastnoise._trusted.measurements import (
    Measurements,
    cost,
    measurements_value,
)
from leastnoise._workload import Workload
from leastnoise._workload import from_json as workload_from_json

FORMAT = 1
MOST_SHOWN = 20  # tables of a plan in a notebook
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class TableError:
    """What a plan promises for one table of the workload."""

    name: str
    queries: int
    weight: float
    rmse: float
    largest_std: float
    largest_is_bound: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Promise(TabularMixin):
    """The expected error of a workload under a plan.

    Computed before any data is read.
    """

    total_squared_error: float
    lower_bound: float
    tables: tuple[TableError, ...]
    units: tuple[float, ...] = field(default=(), compare=False)

    def columns(self) -> Columns:
        """The columns: name, queries, weight, typical and largest error.

        One row for each table; standard errors in rows or the measure's amounts.
        """
        units = np.array(self.units or [1.0] * len(self.tables))
        return {
            "table": np.array([table.name for table in self.tables], dtype=object),
            "queries": np.array([table.queries for table in self.tables]),
            "weight": np.array([float(table.weight) for table in self.tables]),
            "rmse": units * [table.rmse for table in self.tables],
            "largest_std": units * [table.largest_std for table in self.tables],
        }

    @property
    def times_least(self) -> float | None:
        """The error over the least possible, None without a bound.

        The root of the total squared error over its lower bound.
        """
        if self.lower_bound > 0:
            return math.sqrt(self.total_squared_error / self.lower_bound)
        return None


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """Everything that a release will do, but for the data.

    A mechanism that decides on the way what to measure, by noisy values that the same budget pays
    for, has no measurements beforehand and cannot promise an error, since it depends on the data.

    Args:
        workload: the queries to answer.
        privacy: budget, neighbours and privacy unit of everything together.
        strategy: name of the strategy or mechanism.
        measurements: what is measured; None where that is decided on the way.
        promise: the expected error of the workload; None where there is none.
        details: further public facts, such as the objective or the shares of steps.
        fallback: what is measured where looking at the data does not help; None where nothing is
            decided on the way.

    Raises:
        InputError: parts of another kind, or measurements of another domain or privacy.
    """

    workload: Workload
    privacy: Privacy
    strategy: str
    measurements: Measurements | None = None
    promise: Promise | None = None
    details: PlanDetails = NO_DETAILS
    fallback: "Plan | None" = None

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Workload) or not isinstance(self.privacy, Privacy):
            got = f"{type(self.workload).__name__}, {type(self.privacy).__name__}"
            raise refuse("the workload and privacy of a plan", got, "Workload, Privacy")
        if (
            not isinstance(self.strategy, str)
            or not self.strategy
            or not isinstance(self.details, PlanDetails)
        ):
            raise InputError(
                "The strategy of a plan must be a name, and its details PlanDetails. Make the plan "
                "again; nothing was spent."
            )
        measured = self.measurements
        if measured is not None and (measured.domain, measured.privacy) != (
            self.domain,
            self.privacy,
        ):
            raise InputError(
                "The measurements of a plan must be of its own domain and privacy. Make the plan "
                "again; nothing was spent."
            )
        if self.promise is not None and self.workload.measures != (None,):
            units = tuple(product.unit for product in self.workload)
            object.__setattr__(self, "promise", replace(self.promise, units=units))

    def __repr__(self) -> str:
        return f"Plan({', '.join(f'{name}: {text}' for name, text in self._facts())})"

    def _repr_html_(self) -> str:
        if self.promise is None:
            tables = []
        else:
            tables = [
                (name, f"standard error {typical:,.4g}") for name, typical, _ in self._errors()
            ]
        if len(tables) > MOST_SHOWN:
            more = [("...", f"{len(tables) - MOST_SHOWN:,} more tables")]
        else:
            more = []
        return html_facts("Plan", [*self._facts(), *tables[:MOST_SHOWN], *more])

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            (
                "asks",
                (
                    f"{pluralize(self.workload.rows, 'query', 'queries')} in "
                    f"{pluralize(len(self.workload.products), 'table')}"
                ),
            ),
            ("strategy", self.strategy),
            ("protects", self.privacy.unit),
            ("cost", charge_text(self.privacy.budget, whole_budget(self.privacy.budget))),
        ]
        if any(product.of_values for product in self.workload):
            facts.append(("rows without a value", "add nothing to sums, and are left out of means"))
        if self.promise is None:
            ratio = None
        else:
            ratio = self.promise.times_least
        if ratio is None:
            return facts
        return [*facts, ("error / least possible", f"{ratio:.3f}")]

    def _errors(self) -> list[tuple[str, float, float]]:
        """Return name, typical and largest error of every table.

        In rows or in the measure's own unit.
        """
        columns = self.expected_error().columns()
        return [
            *zip(
                *(columns[name].tolist() for name in ("table", "rmse", "largest_std")), strict=True
            )
        ]

    def plot(self) -> Any:
        """The expected error of every table as an Altair chart.

        Notebooks show it: typical errors as bars, largest errors as ticks.

        Tables of counts of rows where there are any, else tables of the first measure, as measures
        have units of their own.

        Raises:
            InputError: the error depends on the data.
        """
        measures = self.workload.measures
        drawn = None if None in measures else measures[0]
        rows = [
            row
            for row, product in zip(self._errors(), self.workload, strict=True)
            if product.measure == drawn
        ]
        if drawn is None:
            quantity = "standard error, in rows"
        else:
            quantity = f"standard error of {drawn}"
        return make_altair_chart(draw_errors(rows, quantity), quantity)

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self.workload.domain

    def measured(self) -> Measurements:
        """Return what is measured.

        Raises:
            InputError: what is measured depends on the data.
        """
        return self._require(self.measurements, "no measurements that are known beforehand")

    def expected_error(self) -> Promise:
        """The expected error of the workload.

        Raises:
            InputError: the error depends on the data.
        """
        return self._require(self.promise, "no expected error")

    def _require(self, value: "_Value | None", lacks: str) -> "_Value":
        if value is None:
            raise InputError(
                f"The plan {self.strategy!r} has {lacks}: what it does depends on the data. "
                "Choose strategy = 'auto' for a plan that "
                "promises an error."
            )
        return value

    def cost(self) -> Cost:
        """Return what a release costs.

        From its exact scales, or the budget that its steps share if measurements depend on the
        data.
        """
        if self.measurements is not None:
            return cost(self.measurements)
        adaptive = self.details.adaptive
        if adaptive is not None and adaptive.mu_squared is not None:
            return GaussianCost(adaptive.mu_squared)
        return SeriesCost(self.privacy.budget)

    def lower_bound(self) -> float:
        """Return a lower bound of the total squared error of every plan of this kind."""
        return self.expected_error().lower_bound

    def details_for(self, workload: Workload) -> PlanDetails:
        """Return the details that hold for another workload too.

        A lower bound that a planner found holds only for the workload of the plan.

        Args:
            workload: what the measurements are to answer.

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
        """Return the attributes and measures that a release reads.

        In the order of the domain.

        Queries, measurements or decisions of a mechanism use them. Nothing else is read, so an
        attribute without queries drops no row.

        >>> prefix = ln.queries(ln.Domain(sex=["F"], age=[1, 2]), age="prefix")
        >>> ln.Plan(workload=prefix, privacy=ln.Privacy(ln.PureDP(1)), strategy="dawa").used()
        (('age',), ())
        """
        attributes = {name for product in self.workload for name in product.attributes}
        if self.details.adaptive is not None:
            attributes.update(self.details.adaptive.attributes)
        measures = {product.measure for product in self.workload}
        if self.measurements is not None:
            columns = self.measurements.columns()
            attributes = attributes.union(columns[0])
            measures = measures.union(columns[1])
        return tuple(key for key in self.domain.names if key in attributes), tuple(
            key for key in self.domain.measures if key in measures
        )

    def to_json(self) -> str:
        """The plan as one JSON text, the same for equal plans."""
        return self._text

    @cached_property
    def _text(self) -> str:
        details = self.details.to_json()
        questions: dict[str, Any] = {"questions": self.workload.to_json()}
        if self.workload.statistics:
            questions["statistics"] = [item.to_json() for item in self.workload.statistics]
        if self.measurements is None:
            if self.fallback is None:
                independent = None
            else:
                independent = json.loads(self.fallback.to_json())
            begin = {
                "data_aware": FORMAT,
                "strategy": self.strategy,
                "privacy": self.privacy.to_json(),
                "domain": self.domain.to_json(),
            }
            return json.dumps(
                {**begin, **questions, "details": details, "independent": independent},
                separators=(",", ":"),
                allow_nan=False,
            )
        promise = None
        said = self.promise
        if said is not None:
            tables = [
                [
                    t.name,
                    t.queries,
                    t.weight,
                    t.rmse,
                    t.largest_std,
                    *([True] if t.largest_is_bound else []),
                ]
                for t in said.tables
            ]
            promise = {
                "total_squared_error": said.total_squared_error,
                "lower_bound": said.lower_bound,
                "tables": tables,
            }
        begin = {
            "format": FORMAT,
            "strategy": self.strategy,
            **measurements_value(self.measurements),
        }
        return json.dumps(
            {**begin, **questions, "promise": promise, "details": details},
            separators=(",", ":"),
            allow_nan=False,
        )

    def digest(self) -> str:
        """SHA-256 of the plan's JSON text, in hexadecimal."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "Plan":
        """Read what ``to_json`` wrote.

        Raises:
            InputError: the text is no plan, or of another format.
        """
        return read(
            lambda: _plan(read_json(text)),
            "plan",
            "Make it again with leastnoise.plan and Plan.to_json.",
        )


def _plan(value: Mapping[str, Any]) -> Plan:
    is_data_dependent = "data_aware" in value
    plan_format = value["data_aware" if is_data_dependent else "format"]
    if plan_format != FORMAT:
        raise refuse(
            "the format of a plan",
            plan_format,
            str(FORMAT),
            "Make the plan again with this version.",
        )
    domain = Domain.from_json(value["domain"])
    questions = value["questions"]
    details = PlanDetails.from_json(domain, value["details"])
    if not questions:
        raise InputError(
            "A plan must have questions; got none. Make plans with leastnoise.plan(workload, "
            "budget)."
        )
    workload = workload_from_json(domain, questions, value.get("statistics", ()))
    privacy = privacy_from_json(value["privacy"])
    if is_data_dependent:
        independent = value["independent"]
        if independent is None:
            fallback = None
        else:
            fallback = _plan(independent)
        return Plan(
            workload=workload,
            privacy=privacy,
            strategy=value["strategy"],
            details=details,
            fallback=fallback,
        )
    promise = value["promise"]
    return Plan(
        workload=workload,
        privacy=privacy,
        strategy=value["strategy"],
        measurements=measurements_from_value(value, domain),
        promise=None if promise is None else _promise(promise, workload),
        details=details,
    )


_MOST_QUERIES = 2**200


def _promise(value: Mapping[str, Any], workload: Workload) -> Promise:
    """Read the expected error of a plan file, which has one entry for each table."""
    tables = tuple(map(_table_error, value["tables"]))
    if len(tables) != len(workload.products):
        raise refuse(
            "the errors of a plan", f"{len(tables)} tables", f"of its {len(workload.products)}"
        )
    return Promise(
        amount("total_squared_error", value["total_squared_error"]),
        amount("lower_bound", value["lower_bound"]),
        tables,
    )


def _table_error(entry: Any) -> TableError:
    name, queries, weight, rmse, largest, *bound = entry
    if not isinstance(name, str) or not isinstance(entry, list) or bound not in ([], [True]):
        raise refuse("the error of a table in a plan", entry, "a list that begins with its name")
    return TableError(
        name,
        whole("the queries of a table", queries, 1, _MOST_QUERIES),
        amount("weight", weight),
        amount("rmse", rmse),
        amount("largest_std", largest),
        bool(bound),
    )
