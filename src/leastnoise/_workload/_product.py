"""One table of what is asked: a product of per-attribute query sets, its weight and target; and very many of them as arrays."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import Any, Literal

import numpy as np

from leastnoise._check import Exact, InputError, exact_positive, one_of, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._domain import Domain, Label, Measure, UnitCount, Weighted
from leastnoise._linop import Operator
from leastnoise._workload._query_sets import QuerySet, identity


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
            found = tuple(q.operator(name, self.domain.kind(name)) for name, q in zip(self.attributes, self.query_sets, strict=True))
            self._operators.append(found)
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
    place: int
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
    places = {name: place for place, name in enumerate(domain.names)}
    sets = list(chain.from_iterable(product.query_sets for product in products))
    equal: dict[QuerySet, int] = {}
    kinds = {identifier: equal.setdefault(q, len(equal)) for identifier, q in {id(q): q for q in sets}.items()}
    where = np.fromiter((places[name] for product in products for name in product.attributes), np.int64, len(sets))
    what = np.fromiter(map(kinds.__getitem__, map(id, sets)), np.int64, len(sets))
    _, first, every = np.unique(where * max(1, len(equal)) + what, return_index=True, return_inverse=True)
    widths = np.fromiter((len(product.attributes) for product in products), np.int64, len(products))
    begins = np.cumsum(widths) - widths
    owners: list[int] = np.atleast_1d(np.searchsorted(begins, first, side="right")).tolist()
    # A product without attributes begins where the next one does.
    along = []
    for at, owner in zip(first.tolist(), owners, strict=True):
        own, column = products[owner - 1], at - int(begins[owner - 1])
        along.append(Along(own.attributes[column], places[own.attributes[column]], own.query_sets[column], own.operators[column]))
    return Numbered(tuple(along), tuple((own, every.reshape(-1)[at]) for _, own, at in by_width(widths)))


def by_width(widths: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Rows of several widths, that stand one after the other in one array, a width at a time."""
    begins = np.cumsum(widths) - widths
    for width in np.unique(widths).tolist():
        rows = np.flatnonzero(widths == width)
        yield width, rows, begins[rows][:, None] + np.arange(width)
