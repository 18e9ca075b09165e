"""The plan: the workload, what is measured for it, and expected errors.

A frozen, serialisable, public value.

Plans, measurements and observations are read from JSON that any release of the program has written.
Every value is made by its own constructor, which checks it, so a file can say nothing that a
program could not. The plan of a search for categories that nobody can list beforehand is a text of
its own.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, NoReturn, TypeVar

import numpy as np

from leastnoise._charts import errors, live
from leastnoise._domain import (
    Domain,
    Unknown,
    attribute_name,
    kind_from_json,
    kind_to_json,
    known_keys,
)
from leastnoise._fitting import key_rule, units_found_often
from leastnoise._frames import Columns, TabularMixin, pluralize
from leastnoise._trusted.accounting import (
    ApproxDP,
    Budget,
    Cost,
    GaussianCost,
    KeyRule,
    Noise,
    Privacy,
    SeriesCost,
    charge_text,
    cost_from_json,
    fraction_from_text,
    keys_are_private,
    parameters,
    privacy_from_json,
    whole_budget,
)
from leastnoise._trusted.check import InputError, exact_positive, html_facts, one_of, refuse, whole
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.linop import (
    MOST_UNPACKED,
    Operator,
    SignedArray,
    narrow,
    operators,
    unpack,
)
from leastnoise._trusted.measurements import (
    Block,
    Factor,
    Limits,
    Measurements,
    cost,
    measurements_value,
)
from leastnoise._workload import Workload
from leastnoise._workload import from_json as workload_from_json


def operator_from_json(value: Mapping[str, Any], cells: int | None = None) -> Operator:
    """Return the operator that ``to_json`` of ``_linop`` wrote.

    It must have one column for each of the cells.
    """
    operator = _from_json(value, MOST_UNPACKED if cells is None else cells)
    if cells is not None and operator.size != cells:
        raise refuse(
            "the size of an operator", operator.size, f"the {cells} cells of its attributes"
        )
    return operator


def _from_json(value: Mapping[str, Any], cells: int) -> Operator:
    """Return an operator whose matrices have at most ``cells`` columns.

    Those of the operators inside it too.
    """

    def read(entry: Any, kind: object) -> object:
        if kind == IntArray:
            shape = entry["shape"]
            if isinstance(shape, list) and len(shape) > 1 and not shape[-1] <= cells:
                raise refuse(
                    "the shape of an operator's matrix",
                    shape,
                    f"[rows, columns] with at most {cells} columns",
                )
            return unpack(entry)
        if kind is Operator:
            return _from_json(entry, cells)
        return tuple(entry) if kind == tuple[int, ...] else entry

    kinds: dict[str, type] = {kind.__name__.lower(): kind for kind in operators()}
    try:
        kind = kinds[value["kind"]]
        made: Operator = kind(
            **{
                entry.name: read(value[entry.name], entry.type)
                for entry in fields(kind)
                if entry.init
            }
        )
    except (KeyError, TypeError, RecursionError):
        raise refuse(
            "operator",
            value if len(str(value)) < 80 else "something else",
            "an operator as a plan file has it",
        ) from None
    return made


_Read = TypeVar("_Read")


def read(reader: Callable[[], _Read], what: str, advice: str) -> _Read:
    """Call a reader of untrusted text, turning its errors into InputError."""
    try:
        return reader()
    except InputError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, RecursionError):
        raise InputError(
            f"This is not {'an' if what[0] in 'aeiou' else 'a'} {what}, or a damaged one. {advice}"
        ) from None


def read_json(text: str) -> Any:
    """Return a JSON value from untrusted text, or raise ValueError."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def measurements_from_value(value: Mapping[str, Any], domain: Domain | None = None) -> Measurements:
    """Return the measurements that `measurements_value` wrote."""
    domain = Domain.from_json(value["domain"]) if domain is None else domain
    factors = [_factor(domain, entry) for entry in value["factors"]]
    limits = [_limits(domain, entry) for entry in value.get("limits", ())]
    return Measurements(
        domain=domain,
        privacy=privacy_from_json(value["privacy"]),
        noise=Noise(one_of("mechanism", value["mechanism"], [kind.value for kind in Noise])),
        blocks=tuple(
            Block(
                tuple(
                    factors[whole("a factor's place", number, 0, len(factors) - 1)]
                    for number in entry["factors"]
                ),
                fraction_from_text("scale", entry["scale"]),
                entry["measure"],
                limits[whole("the place of limits", entry["limits"], 0, len(limits) - 1)]
                if "limits" in entry
                else None,
                entry.get("ends", False),
            )
            for entry in value["blocks"]
        ),
        grid=value["grid"],
    )


def _factor(domain: Domain, entry: Mapping[str, Any]) -> Factor:
    """Return a factor of a plan file.

    Its arrays may be no larger than the public domain allows.
    """
    names = tuple(entry["attributes"])
    operator = operator_from_json(
        entry["operator"], math.prod(domain.kind(name).size for name in names)
    )
    return Factor(
        names,
        operator,
        None if entry["row_weights"] is None else unpack(entry["row_weights"], operator.rows),
    )


def _limits(domain: Domain, entry: Mapping[str, Any]) -> Limits:
    name = entry["attribute"]
    return Limits(unpack(entry["values"], 1 if name is None else domain.kind(name).size), name)


def values_from_json(measurements: Measurements, entries: Iterable[Any]) -> tuple[SignedArray, ...]:
    """Return the values of an observation, an array for each block."""
    packed = list(entries)
    if len(packed) != len(measurements.blocks):
        raise refuse(
            "the values of an observation", f"{len(packed)} arrays", "one array a block of the plan"
        )
    return tuple(
        narrow(unpack(entry, block.rows))
        for entry, block in zip(packed, measurements.blocks, strict=True)
    )


_PLAIN = {bool, int, float, str, type(None)}


class FrozenDict(dict[str, Any]):
    """A dictionary that refuses every change.

    Equal to, and written to JSON as, an ordinary one.
    """

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "What a plan says cannot be changed; make another plan, for example with "
            "dataclasses.replace."
        )

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


def frozen(value: Any) -> Any:
    """Return a copy of a JSON value that cannot be changed at any depth.

    Frozen dictionaries, and tuples for lists.
    """
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen(entry) for key, entry in value.items()})
    if isinstance(value, (list, tuple)):
        if {*map(type, value)} <= _PLAIN:  # a matrix has millions of entries
            return tuple(value)
        return tuple(frozen(entry) for entry in value)
    return value


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of the program, NumPy and Python.

    Plans and releases depend on them.
    """
    import platform  # here, because planning is often done without
    from importlib.metadata import PackageNotFoundError, version

    try:
        package = version("leastnoise")
    except PackageNotFoundError:  # run from a source tree
        package = "unknown"
    return FrozenDict(
        {"leastnoise": package, "numpy": np.__version__, "python": platform.python_version()}
    )


def guard_share(value: Any) -> Fraction | None:
    """Return the checked share of the budget that a guard costs."""
    if value is None:
        return None
    share = exact_positive("guard", value)
    if not share <= Fraction(1, 2):
        raise refuse(
            "guard", value, "a share of the budget above 0 and at most 1/2, such as '1/100'"
        )
    return share


def without_guard(privacy: Privacy, share: Fraction | None) -> Privacy:
    """Return the privacy that a guard leaves to the plan.

    A guard takes nothing of delta, as its noise is pure.
    """
    return _times(privacy, 1 - (share or 0))


def with_guard(privacy: Privacy, share: Fraction | None) -> Privacy:
    """Return the privacy of a plan and its guard together, from that of the plan."""
    return _times(privacy, 1 / Fraction(1 - (share or 0)))


def _times(privacy: Privacy, part: Fraction | int) -> Privacy:
    """Return the privacy with epsilon or rho multiplied, and the same delta."""
    name, number = next(iter(parameters(privacy.budget).items()))
    return privacy.within(replace(privacy.budget, **{name: number * part}))  # type: ignore[arg-type]  # by name, whichever budget it is


FORMAT = 1
MOST_SHOWN = 20  # tables of a plan in a notebook
_Given = TypeVar("_Given")


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
        return (
            math.sqrt(self.total_squared_error / self.lower_bound) if self.lower_bound > 0 else None
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """Everything that a release will do, but for the data.

    A mechanism that decides on the way what to measure, by noisy values that the same budget pays
    for, has no measurements beforehand and cannot promise an error, since it depends on the data.

    Args:
        workload: what is asked.
        privacy: budget, neighbours and privacy unit of everything together.
        strategy: name of the strategy or mechanism.
        measurements: what is measured; None where that is decided on the way.
        promise: the expected error of the workload; None where there is none.
        details: further public facts, such as a duality gap or the shares of steps; JSON values.
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
    details: Mapping[str, Any] = field(default_factory=dict)
    fallback: "Plan | None" = None

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Workload) or not isinstance(self.privacy, Privacy):
            got = f"{type(self.workload).__name__}, {type(self.privacy).__name__}"
            raise refuse("the workload and privacy of a plan", got, "Workload, Privacy")
        if (
            not isinstance(self.strategy, str)
            or not self.strategy
            or not isinstance(self.details, Mapping)
        ):
            raise InputError(
                "The strategy of a plan must be a name, and its details an object. Make the plan "
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
        object.__setattr__(self, "details", frozen(self.details))
        if self.promise is not None and self.workload.measures != (None,):
            units = tuple(product.unit for product in self.workload)
            object.__setattr__(self, "promise", replace(self.promise, units=units))

    def __repr__(self) -> str:
        return f"Plan({', '.join(f'{name}: {text}' for name, text in self._facts())})"

    def _repr_html_(self) -> str:
        tables = (
            []
            if self.promise is None
            else [(name, f"standard error {typical:,.4g}") for name, typical, _ in self._errors()]
        )
        more = (
            [("...", f"{len(tables) - MOST_SHOWN:,} more tables")]
            if len(tables) > MOST_SHOWN
            else []
        )
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
        ratio = None if self.promise is None else self.promise.times_least
        return facts if ratio is None else [*facts, ("error / least possible", f"{ratio:.3f}")]

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

        Tables of counts of rows where there are any, else those of the first measure, as measures
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
        quantity = "standard error, in rows" if drawn is None else f"standard error of {drawn}"
        return live(errors(rows, quantity), quantity)

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self.workload.domain

    def measured(self) -> Measurements:
        """Return what is measured.

        Raises:
            InputError: what is measured depends on the data.
        """
        return self._given(self.measurements, "no measurements that are known beforehand")

    def expected_error(self) -> Promise:
        """The expected error of the workload.

        Raises:
            InputError: the error depends on the data.
        """
        return self._given(self.promise, "no expected error")

    def _given(self, value: "_Given | None", lacks: str) -> "_Given":
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
        return (
            GaussianCost(self.details["gaussian"])
            if "gaussian" in self.details
            else SeriesCost(self.privacy.budget)
        )

    def lower_bound(self) -> float:
        """Return a lower bound of the total squared error of every plan of this kind."""
        return self.expected_error().lower_bound

    def details_for(self, workload: Workload) -> Mapping[str, Any]:
        """Return the details that hold for another workload too.

        A lower bound that a planner found holds only for the workload of the plan.

        Args:
            workload: what the measurements are to answer.

        >>> asked = ln.queries(ln.Domain(age=ln.Integers(0, 9)), age="prefix")
        >>> made = ln.plan(asked, ln.ZCDP(1), strategy="gaussian_optimum")
        >>> ["unit_bound" in made.details_for(one) for one in (asked, ln.queries(asked.domain, age="identity"))]
        [True, False]
        """
        return {
            name: value
            for name, value in self.details.items()
            if name != "unit_bound" or workload == self.workload
        }

    def used(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the attributes and measures that a release reads.

        In the order of the domain.

        These are asked about, measured, or chosen by a mechanism. Nothing else is read, so no row
        is dropped by an attribute that nobody asks about.

        >>> asked = ln.queries(ln.Domain(sex=["F"], age=[1, 2]), age="prefix")
        >>> ln.Plan(workload=asked, privacy=ln.Privacy(ln.PureDP(1)), strategy="dawa").used()
        (('age',), ())
        """
        attributes = {name for product in self.workload for name in product.attributes}
        chosen_along = self.details.get(
            "attribute"
        )  # by a mechanism, whether or not it is asked about
        attributes |= {name for name in self.domain.names if name == chosen_along}
        measures = {product.measure for product in self.workload}
        if self.measurements is not None:
            columns = self.measurements.columns()
            attributes, measures = attributes.union(columns[0]), measures.union(columns[1])
        return tuple(key for key in self.domain.names if key in attributes), tuple(
            key for key in self.domain.measures if key in measures
        )

    def to_json(self) -> str:
        """The plan as one JSON text, the same for equal plans."""
        return self._text

    @cached_property
    def _text(self) -> str:
        details = dict(self.details)
        asked: dict[str, Any] = {"questions": self.workload.to_json()}
        if self.workload.statistics:
            asked["statistics"] = [statistic.to_json() for statistic in self.workload.statistics]
        if self.measurements is None:
            if self.fallback is not None:
                details["independent"] = json.loads(self.fallback.to_json())
            begin = {
                "data_aware": FORMAT,
                "strategy": self.strategy,
                "privacy": self.privacy.to_json(),
                "domain": self.domain.to_json(),
            }
            return json.dumps(
                {**begin, **asked, "details": details}, separators=(",", ":"), allow_nan=False
            )
        promise, said = None, self.promise
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
            {**begin, **asked, "promise": promise, "details": details},
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
    decided_on_the_way = "data_aware" in value
    known = value["data_aware" if decided_on_the_way else "format"]
    if known != FORMAT:
        raise refuse(
            "the format of a plan", known, str(FORMAT), "Make the plan again with this version."
        )
    domain, asked = Domain.from_json(value["domain"]), value["questions"]
    details = _details(domain, value["details"])
    if not asked:
        raise InputError(
            "A plan must have questions; got none. Make plans with leastnoise.plan(workload, "
            "budget)."
        )
    workload = workload_from_json(domain, asked, value.get("statistics", ()))
    privacy = privacy_from_json(value["privacy"])
    if decided_on_the_way:
        fallback = details.pop("independent", None)
        independent = None if fallback is None else _plan(fallback)
        return Plan(
            workload=workload,
            privacy=privacy,
            strategy=value["strategy"],
            details=details,
            fallback=independent,
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


_LARGEST_NUMBER = 1e150  # its square is still a double
_MOST_PERIODS = 2**31
_MOST_QUERIES = 2**200


def _promise(value: Mapping[str, Any], workload: Workload) -> Promise:
    """Read the expected error of a plan file, which has one entry for each table."""
    tables = tuple(map(_table_error, value["tables"]))
    if len(tables) != len(workload.products):
        raise refuse(
            "the errors of a plan", f"{len(tables)} tables", f"of its {len(workload.products)}"
        )
    return Promise(
        _amount("total_squared_error", value["total_squared_error"]),
        _amount("lower_bound", value["lower_bound"]),
        tables,
    )


def _table_error(entry: Any) -> TableError:
    name, queries, weight, rmse, largest, *bound = entry
    if not isinstance(name, str) or not isinstance(entry, list) or bound not in ([], [True]):
        raise refuse("the error of a table in a plan", entry, "a list that begins with its name")
    return TableError(
        name,
        whole("the queries of a table", queries, 1, _MOST_QUERIES),
        _amount("weight", weight),
        _amount("rmse", rmse),
        _amount("largest_std", largest),
        bool(bound),
    )


def _amount(name: str, value: Any) -> float:
    """Read a number of at least 0 that is far from overflow."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _LARGEST_NUMBER:
        raise refuse(name, value, f"a number from 0 to {_LARGEST_NUMBER:g}")
    amount: float = value  # as it was written, so that the digest of the plan stays
    return amount


def _details(domain: Domain, value: Any) -> dict[str, Any]:
    """Read the further facts of a plan file; those that the program uses are of their types."""
    if not isinstance(value, Mapping):
        raise refuse("the details of a plan", value, "an object")
    readers: dict[str, Callable[[Any], object]] = {
        "gaussian": lambda entry: fraction_from_text("gaussian", entry),
        "unit_bound": lambda entry: _amount("unit_bound", entry),
        "series": lambda entry: _check_series(domain, entry),
        "impossible": lambda entry: [_cells(domain, combination) for combination in _listed(entry)],
        "public": lambda entry: [_mapping(counts) for counts in _listed(entry)],
        "steps": lambda entry: [_mapping(step) for step in _listed(entry)],
        "crowded": lambda entry: [_amount(*pair) for pair in _mapping(entry).items()],
        "ended_early": lambda entry: [_text("ended_early", name) for name in _listed(entry)],
        "objective": lambda entry: _text("objective", entry),
    }
    for name, check in readers.items():
        if name in value:
            check(value[name])
    return dict(value)


def _check_series(domain: Domain, value: Any) -> None:
    entries = _mapping(value)
    one_of("along", entries["along"], domain.names)
    one_of("late", entries["late"], ("drop", "arrival"))
    if "periods" in entries:
        whole("periods", entries["periods"], 1, _MOST_PERIODS)
        _text("through", entries["through"])
    if "cost" in entries:
        cost_from_json(entries["cost"])


def _cells(domain: Domain, value: Any) -> dict[str, list[int]]:
    """Read the cells of some attributes, such as of a combination that is impossible."""
    cells = {}
    for name, codes in _mapping(value).items():
        most = domain.kind(one_of("an attribute", name, domain.names)).size - 1
        cells[name] = [whole(f"a cell of {name}", code, 0, most) for code in _listed(codes)]
    return cells


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise refuse("a part of the details of a plan", value, "a list")
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise refuse("a part of the details of a plan", value, "an object")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise refuse(name, value, "a text")
    return value


CATEGORY_FORMAT = "leastnoise search for categories 1"
_ADVICE = "Make it again with leastnoise.plan_categories."


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPlan:
    """A plan to find the categories of an attribute.

    Made by `plan_categories`.

    Attributes:
        attribute: its name.
        kind: what may be found.
        privacy: an ApproxDP budget that all of the search costs, neighbours and unit.
        rule: the noise on the number of units that have a category, its scale, and the threshold.
    """

    attribute: str
    kind: Unknown
    privacy: Privacy
    rule: KeyRule

    def __post_init__(self) -> None:
        attribute_name("the name of an attribute", self.attribute)
        if not keys_are_private(self.rule, self.privacy):
            raise InputError(
                "The rule of a search is not proved to satisfy its budget, "
                f"{self.privacy.budget!r}. {_ADVICE}"
            )

    @property
    def threshold(self) -> int:
        """The number of units at which a category is found with even chances.

        A category with one unit fewer is seldom found.
        """
        return self.rule.threshold

    @property
    def often(self) -> int:
        """The number of units at which 95 of 100 searches find a category.

        If there are no more than ``kind.most`` categories.
        """
        return units_found_often(self.rule)

    @property
    def std(self) -> float:
        """Standard deviation of the noise on a number of units."""
        scale = float(self.rule.scale)
        return scale if self.rule.noise is Noise.ROUNDED_GAUSSIAN else 2**0.5 * scale

    @property
    def domain(self) -> Domain:
        """The attribute alone."""
        return Domain({self.attribute: self.kind})

    def to_json(self) -> str:
        """The plan as one JSON text, the same for equal plans."""
        rule = {
            "noise": self.rule.noise.value,
            "scale": str(self.rule.scale),
            "threshold": self.rule.threshold,
        }
        value = {"search": CATEGORY_FORMAT, "privacy": self.privacy.to_json(), "rule": rule}
        return json.dumps(
            {**value, "attribute": {"name": self.attribute, **kind_to_json(self.kind)}},
            separators=(",", ":"),
        )

    def digest(self) -> str:
        """SHA-256 of the plan's JSON text, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "CategoryPlan":
        """Read what ``to_json`` wrote."""
        return read(lambda: _category_plan(read_json(text)), "search for categories", _ADVICE)


def is_category_plan(text: str) -> bool:
    """Whether the text of a plan is that of a search for categories."""
    return text.startswith('{"search":')


def _category_plan(value: Mapping[str, Any]) -> CategoryPlan:
    entries: dict[str, Any] = known_keys(
        "a search for categories", value, ["search", "privacy", "rule", "attribute"]
    )
    if entries["search"] != CATEGORY_FORMAT:
        raise refuse(
            "the format of a search for categories", entries["search"], repr(CATEGORY_FORMAT)
        )
    name, kind = kind_from_json(entries["attribute"])
    if not isinstance(kind, Unknown):
        raise refuse("the attribute of a search for categories", kind, "Unknown")
    rule = entries["rule"]
    made = KeyRule(
        noise=Noise(rule["noise"]), scale=Fraction(rule["scale"]), threshold=rule["threshold"]
    )
    return CategoryPlan(
        attribute=name, kind=kind, privacy=privacy_from_json(entries["privacy"]), rule=made
    )


def plan_categories(attribute: str, kind: Unknown, budget: Budget | Privacy) -> CategoryPlan:
    """Plan a search for the categories of an attribute.

    Public, without data, and with the number of people that a category needs to be found.

    Args:
        attribute: its name, and that of its column unless its reading names another.
        kind: how many categories are kept at most, and how values are read.
        budget: an ApproxDP, all of which the search costs; or a Privacy with one, which says the
            unit and the neighbours. A unit counts in at most ``max_rows`` categories, once in each.

    Returns:
        The plan; see its ``threshold`` and ``often``. Of Laplace and of Gaussian noise it has the
        one that finds categories of fewer units.

    Raises:
        InputError: a kind whose categories are known, a budget without delta, or one that is too
            small for any threshold.

    >>> made = ln.plan_categories("agent", ln.Unknown(10000), ln.ApproxDP(1, "1e-9"))
    >>> made.threshold, made.often
    (22, 24)
    """
    if not isinstance(kind, Unknown):
        raise refuse(
            f"the kind of {attribute!r}",
            kind,
            "Unknown(most)",
            "The categories of the others are known.",
        )
    privacy = budget if isinstance(budget, Privacy) else Privacy(budget)
    if not isinstance(privacy.budget, ApproxDP):
        advice = "Nobody can be found under delta = 0: a category of one person must have a chance of nothing to be seen."
        raise refuse(
            "the budget of a search for categories",
            privacy.budget,
            "ApproxDP(epsilon, delta)",
            advice,
        )
    plain = replace(privacy, max_per_cell=None)  # whatever is bounded in other cells
    return CategoryPlan(attribute=attribute, kind=kind, privacy=plain, rule=key_rule(plain))
