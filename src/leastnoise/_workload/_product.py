"""What a workload is made of: products of query sets over attributes, of rows or of a measure, their targets, and statistics."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import Any, Literal

import numpy as np

from leastnoise._check import Exact, InputError, exact, exact_positive, message, number_text, one_of, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._domain import Bins, Decimals, Domain, Edges, Integers, Label, Measure, UnitCount, Weighted
from leastnoise._linop import Operator
from leastnoise._workload._query_sets import By, QuerySet, groups_of, identity, prefix


@dataclass(frozen=True, slots=True)
class Target:
    """The largest error that a table may have."""

    kind: Literal["margin", "rmse"]
    most: Fraction

    def __post_init__(self) -> None:
        one_of("the kind of a target", self.kind, ("margin", "rmse"))
        object.__setattr__(self, "most", exact_positive(self.kind, self.most))

    def to_json(self) -> dict[str, str]:
        """A JSON value."""
        return {self.kind: str(self.most)}


def target(
    *, margin: Exact | None = None, relative: Exact | None = None, size: Exact | None = None, rmse: Exact | None = None
) -> Target | None:
    """The target of a table, said in one of three ways."""
    said: dict[str, Any] = {"margin": margin, "relative": relative, "rmse": rmse}
    given = [name for name, value in said.items() if value is not None]
    if relative is not None and size is None:
        raise InputError("A relative target needs a size: it is a share of a public number, for example relative 0.05 with size 10000.")
    if len(given) > 1:
        raise refuse("a target", " and ".join(given), "one of margin, relative and rmse")
    if not given:
        return None
    if relative is not None and size is not None:
        return Target("margin", exact_positive("relative", relative) * exact_positive("size", size))
    return Target("rmse", exact_positive("rmse", rmse)) if rmse is not None else Target("margin", exact_positive("margin", margin))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One table of queries: the product of query sets on some attributes; along all others the sum is taken."""

    domain: Domain
    attributes: tuple[str, ...]
    query_sets: tuple[QuerySet, ...]
    weight: Fraction = Fraction(1)
    measure: str | None = None
    target: Target | None = None
    size: Fraction | None = None
    _operators: list[tuple[Operator, ...]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        counted = None if self.measure is None else self.domain.measure(self.measure)
        cell = counted.attributes if isinstance(counted, UnitCount) else ()
        if cell and not (cell == self.attributes and self.is_marginal):
            advice = "A unit may be in several cells. If its rows agree in these attributes, name them in of_unit."
            raise refuse(f"the queries of {self.measure}", replace(self, measure=None).name, f"the cells of {' x '.join(cell)}", advice)

    @property
    def operators(self) -> tuple[Operator, ...]:
        """One operator an attribute, made once."""
        if not self._operators:
            operators = tuple(q.operator(name, self.domain.kind(name)) for name, q in zip(self.attributes, self.query_sets, strict=True))
            self._operators.append(operators)
        return self._operators[0]

    def knowing(self, operators: tuple[Operator, ...]) -> "Product":
        """Itself, with its operators, which many products may share."""
        self._operators.append(operators)
        return self

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """The row labels of every operator."""
        return tuple(q.labels(name, self.domain.kind(name)) for name, q in zip(self.attributes, self.query_sets, strict=True))

    @property
    def keys(self) -> tuple[str, ...]:
        """What the columns of its labels are called."""
        return tuple(q.key_along(name) for name, q in zip(self.attributes, self.query_sets, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of queries along every attribute."""
        return tuple(operator.rows for operator in self.operators)

    @property
    def rows(self) -> int:
        """Number of queries."""
        return math.prod([operator.rows for operator in self.operators])

    @property
    def is_marginal(self) -> bool:
        """Whether it asks for every cell of a marginal."""
        cells = identity()
        return all(q is cells or q == cells for q in self.query_sets)

    @property
    def of_units(self) -> bool:
        """Whether it counts privacy units, not rows."""
        return self.measure is not None and isinstance(self.domain.measure(self.measure), UnitCount)

    @property
    def of_values(self) -> bool:
        """Whether it sums the values of a measure."""
        return self.measure is not None and type(self.domain.measure(self.measure)) in (Measure, Weighted)

    @property
    def values_of(self) -> str | None:
        """The measure whose values it counts; None if it does not count values."""
        if self.measure is None or self.of_values or self.of_units:
            return None
        return next(name for name in self.domain.measures if name != self.measure and self.domain.count_of(name) == self.measure)

    @property
    def question(self) -> tuple[object, ...]:
        """What is asked, without its weight; products with equal ones are one table."""
        return self.measure, self.attributes, self.query_sets

    @property
    def spec(self) -> dict[str, object]:
        """What is asked along each attribute, as `queries` of a spec has it."""
        return {name: asked.to_spec() for name, asked in zip(self.attributes, self.query_sets, strict=True)}

    @property
    def importance(self) -> float:
        """Weight of a squared error of one row's contribution.

        The weight squared; for a sum, an error as large as the largest value that one row can add counts as an error of one row.
        """
        return (self.weight.numerator / (self.weight.denominator * self.domain.largest_value(self.measure))) ** 2

    @property
    def unit(self) -> float:
        """What one unit of an answer is worth: 1 row, or an amount of the measure."""
        return 1.0 if self.measure is None else float(self.domain.measure(self.measure).unit)

    @property
    def name(self) -> str:
        """A short name that is unique within a workload but for repetitions."""
        parts = [q.name_along(name) for name, q in zip(self.attributes, self.query_sets, strict=True)]
        table = " x ".join(parts) or "total"
        if self.of_units:
            return f"units by {table}" if parts else "units"
        if self.measure is None:
            return table
        what = f"sum of {self.measure}" if self.of_values else self.measure
        return f"{what} by {table}" if parts else what


@dataclass(frozen=True, slots=True)
class Along:
    """What is asked along one attribute."""

    name: str
    position: int
    query_set: QuerySet
    operator: Operator


@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """Products by their number of attributes."""

    along: tuple[Along, ...]
    widths: tuple[tuple[IntArray, IntArray], ...]


def numbered(products: Sequence[Product]) -> Numbered:
    """Number what products ask: their query sets are looked at once an object, not once a product."""
    domain = products[0].domain
    positions = {name: position for position, name in enumerate(domain.names)}
    sets = list(chain.from_iterable(product.query_sets for product in products))
    equal: dict[QuerySet, int] = {}
    kinds = {identifier: equal.setdefault(q, len(equal)) for identifier, q in {id(q): q for q in sets}.items()}
    where = np.fromiter((positions[name] for product in products for name in product.attributes), np.int64, len(sets))
    what = np.fromiter(map(kinds.__getitem__, map(id, sets)), np.int64, len(sets))
    _, first, every = np.unique(where * max(1, len(equal)) + what, return_index=True, return_inverse=True)
    widths = np.fromiter((len(product.attributes) for product in products), np.int64, len(products))
    begins = np.cumsum(widths) - widths
    owners: list[int] = np.atleast_1d(np.searchsorted(begins, first, side="right")).tolist()
    # A product without attributes begins where the next one does.
    along = []
    for at, owner in zip(first.tolist(), owners, strict=True):
        first, column = products[owner - 1], at - int(begins[owner - 1])
        name = first.attributes[column]
        along.append(Along(name, positions[name], first.query_sets[column], first.operators[column]))
    return Numbered(tuple(along), tuple((chosen, every.reshape(-1)[at]) for _, chosen, at in by_width(widths)))


def by_width(widths: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Rows of several widths, that stand one after the other in one array, a width at a time."""
    begins = np.cumsum(widths) - widths
    for width in np.unique(widths).tolist():
        rows = np.flatnonzero(widths == width)
        yield width, rows, begins[rows][:, None] + np.arange(width)


MEASURES_ARE_DECLARED = "Declare it with public bounds: [measures.pay] clip = [0, 100000] in a spec, ln.Measure in Python."
Cell = tuple[Fraction | int, Fraction | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticForm:
    """One kind of statistics."""

    noun: str
    column: str
    of_measure: bool = False
    at_shares: bool = False
    along: bool = False


FORMS: Mapping[str, StatisticForm] = {
    "means": StatisticForm(noun="mean", column="mean", of_measure=True),
    "quantiles": StatisticForm(noun="quantiles", column="quantile", at_shares=True),
    "cdf": StatisticForm(noun="distribution", column="share", along=True),
}
_OF_ITSELF = "{of} cannot be both of and in by: its {kind} by its own values say nothing. Leave it out of by."


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """Means of a measure, or quantiles or the distribution function of a number, of every group."""

    kind: str
    of: str
    by: tuple[str, ...] = ()
    groups: tuple[QuerySet, ...] = ()
    at: tuple[Fraction, ...] = ()
    size: Fraction | None = None
    target: Target | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", self.groups or (identity(),) * len(self.by))
        if FORMS[one_of("the kind of a statistic", self.kind, tuple(FORMS))].at_shares != bool(self.at):
            raise refuse(f"the shares of {self.kind}", [str(share) for share in self.at], "at least one for quantiles, else none")
        if not all(0 < share <= 1 for share in self.at) or len(set(self.at)) != len(self.at):
            shown = ", ".join(number_text(share) for share in self.at)
            raise refuse("at", shown, "different shares above 0 and at most 1, such as 0.5 for the median")
        if self.target is not None and not self.form.of_measure:
            raise InputError(f"{self.kind} have no targets: their errors depend on the data. Give one to queries for the same table.")
        if self.target is not None and self.size is None:
            advice = "The error of a mean depends on the rows of its group: say a public size, for example size = 1000."
            raise refuse(f"the {self.target.kind} of a mean", f"{self.target.most} without a size", "given with a size", advice)

    @property
    def form(self) -> StatisticForm:
        """What is known of statistics of this kind."""
        return FORMS[self.kind]

    @property
    def name(self) -> str:
        """What it is called in files and reports."""
        return f"{self.form.noun} of {self.of}" + (f" by {self.groups_name}" if self.by else "")

    @property
    def groups_name(self) -> str:
        """What its groups are called, such as ``sex x store:region``."""
        return " x ".join(asked.name_along(name) for name, asked in self.along.items())

    @property
    def keys(self) -> tuple[str, ...]:
        """What the columns of its groups are called."""
        return tuple(asked.key_along(name) for name, asked in self.along.items())

    @property
    def along(self) -> dict[str, QuerySet]:
        """The groups along each attribute."""
        return dict(zip(self.by, self.groups, strict=True))

    def questions(self, domain: Domain) -> tuple[tuple[object, ...], ...]:
        """The tables that it follows from, as `Product.question` says what a product asks."""
        if self.form.of_measure:
            return (domain.count_of(self.of), self.by, self.groups), (self.of, self.by, self.groups)
        asked = {**self.along, self.of: prefix()}
        names = tuple(name for name in domain.names if name in asked)
        return ((None, names, tuple(asked[name] for name in names)),)

    def to_json(self) -> dict[str, object]:
        """A JSON value."""
        at = {"at": [str(share) for share in self.at]} if self.at else {}
        size = {} if self.size is None else {"size": str(self.size)}
        wanted = {} if self.target is None else self.target.to_json()
        by = [name if asked == identity() else {name: asked.to_spec()} for name, asked in self.along.items()]
        return {self.kind: {"of": self.of, **at, "by": by, **size, **wanted}}


def checked_statistic(
    domain: Domain,
    kind: str,
    of: object,
    at: Sequence[Exact] | None,
    by: By,
    size: Exact | None,
    wanted: Target | None = None,
) -> Statistic:
    """Check what is asked for against the domain."""
    of_measure = FORMS[kind].of_measure
    if of_measure:
        if not isinstance(of, str) or of not in domain.measures:
            known = ", ".join(domain.measures) or "none is declared"
            raise refuse("of", of, f"a measure of the domain ({known})", MEASURES_ARE_DECLARED)
    else:
        if isinstance(of, str) and of in domain.measures and of not in domain.names:
            advice = f"{of} is a measure: for its quantiles declare an attribute of the same column in bins."
            raise refuse("of", of, f"an attribute of numbers ({', '.join(_numbers(domain)) or 'none is declared'})", advice)
        number_cells(domain, of)
    groups = groups_of(domain, by, "by")
    if not of_measure and of in groups:
        raise InputError(message(_OF_ITSELF, of=of, kind=kind))
    if at is not None and (isinstance(at, str) or not isinstance(at, Sequence)):
        raise refuse("at", at, 'a list of shares above 0 and at most 1, such as ["0.25", "0.5", "0.75"]')
    shares = tuple(exact("at", share) for share in at or ())
    known_size = None if size is None else exact_positive("size", size)
    return Statistic(kind=kind, of=str(of), by=(*groups,), groups=(*groups.values(),), at=shares, size=known_size, target=wanted)


def statistic_from_json(domain: Domain, value: Mapping[str, Any]) -> Statistic:
    """Read what `Statistic.to_json` wrote."""
    ((kind, asked),) = value.items()
    one_of("the kind of a statistic", kind, tuple(FORMS))
    wanted = target(margin=asked.get("margin"), rmse=asked.get("rmse"))
    return checked_statistic(domain, kind, asked["of"], asked.get("at"), asked["by"], asked.get("size"), wanted)


def number_cells(domain: Domain, attribute: object) -> tuple[Cell, ...]:
    """Lower and upper end of every cell that is a number, exact; as a range of the attribute has them."""
    kind = domain.kind(attribute) if isinstance(attribute, str) else None
    if isinstance(kind, (Bins, Edges)):
        return tuple(zip(kind.edges[:-1], kind.edges[1:], strict=True))
    if isinstance(kind, Integers):
        return tuple((number, number) for number in range(kind.low, kind.high + 1))
    if isinstance(kind, Decimals):
        return tuple((value, value) for value in kind.values)
    known = ", ".join(_numbers(domain)) or "-"
    allowed = message("one of Integers, Decimals, Bins or Edges, whose cells are numbers ({known})", known=known)
    raise refuse("the attribute of a distribution function", attribute, allowed)


def _numbers(domain: Domain) -> Iterator[str]:
    return (name for name in domain.names if isinstance(domain.kind(name), (Bins, Edges, Integers, Decimals)))
