"""One table of what is asked: a product of per-attribute query sets, with a weight."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

from leastnoise._check import refuse
from leastnoise._domain import Domain, Label, Measure, UnitCount, Weighted
from leastnoise._linop import Operator
from leastnoise._workload._query_sets import QuerySet, identity
from leastnoise._workload._target import Target


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
