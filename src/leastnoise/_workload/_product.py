"""Products of query sets, their targets and statistics."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from leastnoise._domain import (
    Bins,
    CompleteCount,
    Decimals,
    DeviationProduct,
    Domain,
    Edges,
    Integers,
    Kind,
    Label,
    Measure,
    PerUnit,
    SquaredDeviation,
    UnitCount,
    UnitTotal,
    Weighted,
)
from leastnoise._trusted.check import (
    Exact,
    InputError,
    exact,
    exact_positive,
    message,
    number_text,
    one_of,
    refuse,
)
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.linop import Operator, Ranges, dense
from leastnoise._workload._complete_rows import (
    Factors,
    checked_variables,
    factors_of_sums,
    in_domain_order,
    in_factor_order,
    join_measures,
    name_sums,
    pair_names,
    term_names,
)
from leastnoise._workload._query_sets import By, QuerySet, groups_of, identity, prefix

MOST_GROUP_ENTRIES = 2**22
"""Queries times cells that are looked at to count units in groups of cells."""


@dataclass(frozen=True, slots=True)
class Target:
    """The largest error that a table or a statistic may have.

    A relative target of a statistic is its margin divided by its public scale. A relative target of
    a table is a share of the public size, and is converted to a margin when the spec is read.
    """

    kind: Literal["margin", "relative", "rmse"]
    most: Fraction

    def __post_init__(self) -> None:
        one_of("the kind of a target", self.kind, ("margin", "relative", "rmse"))
        object.__setattr__(self, "most", exact_positive(self.kind, self.most))

    def to_json(self) -> dict[str, str]:
        """Return the target as a JSON object."""
        return {self.kind: str(self.most)}


def target(
    *,
    margin: Exact | None = None,
    relative: Exact | None = None,
    size: Exact | None = None,
    rmse: Exact | None = None,
) -> Target | None:
    """Return a table's target: a margin, a share of a size, or an RMSE; or None.

    The result is None if no error is stated.
    """
    if relative is not None and size is None:
        raise InputError(
            "A relative target needs a size: it is a share of a public number, for example "
            "relative 0.05 with size 10000."
        )
    stated = statistic_target(margin=margin, relative=relative, rmse=rmse)
    if stated is not None and stated.kind == "relative":
        return Target("margin", stated.most * exact_positive("size", size or 0))
    return stated


def statistic_target(
    *, margin: Exact | None = None, relative: Exact | None = None, rmse: Exact | None = None
) -> Target | None:
    """Return a statistic's target; None if no error is stated."""
    kinds: tuple[tuple[Literal["margin", "relative", "rmse"], Exact | None], ...] = (
        ("margin", margin),
        ("relative", relative),
        ("rmse", rmse),
    )
    targets = [Target(kind, exact_positive(kind, most)) for kind, most in kinds if most is not None]
    if len(targets) > 1:
        names = " and ".join(each.kind for each in targets)
        raise refuse("a target", names, "one of margin, relative and rmse")
    return targets[0] if targets else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A table of queries: all combinations of query sets on some attributes.

    The table is summed over all other attributes.

    Attributes:
        domain: the domain.
        attributes: the attributes of the table.
        query_sets: the query set on each attribute.
        weight: the factor by which errors are multiplied in the objective.
        measure: the summed measure; None for counts of rows.
        target: the largest allowed error; None without a target.
        size: the public size of an answer, to which relative errors refer; None without one.
    """

    domain: Domain
    attributes: tuple[str, ...]
    query_sets: tuple[QuerySet, ...]
    weight: Fraction = Fraction(1)
    measure: str | None = None
    target: Target | None = None
    size: Fraction | None = None
    _operators: list[tuple[Operator, ...]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.measure is None:
            return
        summed = self.domain.measure(self.measure)
        if isinstance(summed, UnitCount):
            self._check_unit_count(summed)
        elif isinstance(summed, UnitTotal):
            self._check_unit_total(summed)

    def _check_unit_count(self, unit_count: UnitCount) -> None:
        """Raise for queries that would count a unit more than once."""
        cell = unit_count.attributes
        if unit_count.has_groups:
            self._check_groups(unit_count)
        elif cell and not (cell == self.attributes and self.asks_single_cells):
            advice = (
                "A unit may be in several cells. If its rows agree in these attributes, name them "
                "in of_unit."
            )
            raise refuse(
                f"the queries of units by {' x '.join(cell)}",
                replace(self, measure=None).name,
                f"the cells of {' x '.join(cell)}",
                advice,
            )

    def _check_groups(self, unit_count: UnitCount) -> None:
        """Raise for queries about groups that do not count units."""
        if unit_count.attributes == self.attributes and all(
            set(cell_sets(name, query_set, self.domain.kind(name))) <= set(groups)
            if groups is not None
            else _is_of_single_cells(query_set)
            for (name, query_set), groups in zip(self.along.items(), unit_count.groups, strict=True)
        ):
            return
        raise refuse(
            f"the queries of units by {' x '.join(unit_count.attributes)}",
            replace(self, measure=None).name,
            f"groups of {' x '.join(unit_count.attributes)} that it counts",
            "Ask for them in the workload of a release.",
        )

    def _check_unit_total(self, unit_total: UnitTotal) -> None:
        """Raise for a table that is finer than the cells of a unit's totals."""
        others = [name for name in self.attributes if name not in unit_total.attributes]
        if others:
            raise refuse(
                f"the attributes of a table of {self.measure}",
                " x ".join(self.attributes),
                f"among the attributes of its unit_total, by = {list(unit_total.attributes)}",
                f"The values of a unit are added up in each cell of by: add {others[0]} to by.",
            )

    @property
    def along(self) -> dict[str, QuerySet]:
        """The query set on each attribute, by name."""
        return dict(zip(self.attributes, self.query_sets, strict=True))

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The matrix of each query set as an operator, cached."""
        if not self._operators:
            self._operators.append(tuple(map(self._operator_along, self.attributes)))
        return self._operators[0]

    def _operator_along(self, attribute: str) -> Operator:
        """Return the operator of the query set on an attribute.

        If units are counted in groups, the count of each group is stored in one cell.
        """
        kind = self.domain.kind(attribute)
        queries = self.along[attribute]
        groups = self.unit_groups(attribute)
        if groups is None:
            return queries.operator(attribute, kind)
        positions = np.array([groups[cells] for cells in cell_sets(attribute, queries, kind)])
        return Ranges(kind.size, positions, positions)

    def unit_groups(self, attribute: str) -> dict[tuple[int, ...], int] | None:
        """Map each group of cells to its cell of the unit count; None without groups.

        Groups are tuples of cells. The result is None if units are counted by cell, or if rows are
        counted.
        """
        if not self.counts_groups:
            return None
        unit_count = self.domain.measure(str(self.measure))
        if not isinstance(unit_count, UnitCount):
            return None
        at = unit_count.attributes.index(attribute)
        groups = unit_count.groups[at]
        positions = unit_count.places[at]
        if groups is None or positions is None:
            return None
        return dict(zip(groups, positions, strict=True))

    def with_operators(self, operators: tuple[Operator, ...]) -> "Product":
        """Store operators that were computed before, and return the product."""
        self._operators.append(operators)
        return self

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """The labels of the queries, for each attribute."""
        return tuple(q.labels(name, self.domain.kind(name)) for name, q in self.along.items())

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns, one for each attribute."""
        return tuple(q.key_along(name) for name, q in self.along.items())

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of queries on each attribute."""
        return tuple(operator.rows for operator in self.operators)

    @property
    def rows(self) -> int:
        """The number of queries in the table."""
        return math.prod([operator.rows for operator in self.operators])

    @property
    def is_marginal(self) -> bool:
        """Whether the queries are exactly the published cells of a marginal."""
        cells = identity()
        # The comparison `is` is faster if there are very many tables.
        return all(q is cells or q == cells for q in self.query_sets)

    @property
    def asks_single_cells(self) -> bool:
        """Whether each query counts a single cell."""
        return self.is_marginal or all(map(_is_of_single_cells, self.query_sets))

    @property
    def has_hidden(self) -> bool:
        """Whether one of the attributes has a hidden cell of omitted rows."""
        return any(self.domain.kind(name).hidden for name in self.attributes)

    @property
    def adds_up(self) -> bool:
        """Whether the queries are all cells of a marginal, and no row is omitted."""
        return self.is_marginal and not self.has_hidden

    @property
    def _unit_count(self) -> UnitCount | None:
        """The measure of a table that counts privacy units; None for other tables."""
        if self.measure is None:
            return None
        measure = self.domain.measure(self.measure)
        return measure if isinstance(measure, UnitCount) else None

    @property
    def of_units(self) -> bool:
        """Whether the table counts privacy units, not rows."""
        return self._unit_count is not None

    @property
    def is_per_unit(self) -> bool:
        """Whether the table sums one amount per unit: counts or clipped totals."""
        return self.measure is not None and isinstance(self.domain.measure(self.measure), PerUnit)

    @property
    def counts_groups(self) -> bool:
        """Whether the table counts privacy units in groups of cells."""
        unit_count = self._unit_count
        return unit_count is not None and unit_count.has_groups

    @property
    def counts_units_in_cells(self) -> bool:
        """Whether a unit counts in each cell, or cell group, that has a row of it."""
        unit_count = self._unit_count
        return unit_count is not None and bool(unit_count.attributes)

    @property
    def of_values(self) -> bool:
        """Whether the table sums the values of a measure."""
        return self.measure is not None and type(self.domain.measure(self.measure)) in (
            DeviationProduct,
            Measure,
            SquaredDeviation,
            UnitTotal,
            Weighted,
        )

    @property
    def of_complete_rows(self) -> bool:
        """Whether the table counts rows that have values of several measures."""
        return self.measure is not None and isinstance(
            self.domain.measure(self.measure), CompleteCount
        )

    @property
    def values_of(self) -> str | None:
        """The measure whose non-null values the table counts; None for other tables."""
        if self.measure is None or self.of_values or self.of_units or self.of_complete_rows:
            return None
        return next(
            name
            for name in self.domain.measures
            if name != self.measure and self.domain.count_of(name) == self.measure
        )

    @property
    def table_key(self) -> tuple[object, ...]:
        """A hashable key, equal for tables that differ in weight or target only."""
        return self.measure, self.attributes, self.query_sets

    @property
    def spec(self) -> dict[str, object]:
        """The query set of each attribute, in the form that ``queries`` of a spec has."""
        return {name: query_set.to_spec() for name, query_set in self.along.items()}

    @property
    def importance(self) -> float:
        """The factor of this table's squared errors in the total.

        For a count, the factor is the weight squared. For a sum, errors are first divided by the
        largest value that one row can add.
        """
        return (
            self.weight.numerator
            / (self.weight.denominator * self.domain.largest_value(self.measure))
        ) ** 2

    @property
    def unit(self) -> float:
        """The size of one unit of an answer: 1 row, or the unit of the measure."""
        if self.measure is None:
            return 1.0
        return float(self.domain.measure(self.measure).unit)

    @property
    def name(self) -> str:
        """A short name of the table; different tables have different names."""
        names = [query_set.name_along(name) for name, query_set in self.along.items()]
        table = " x ".join(names) or "total"
        if self.of_units:
            if names:
                return f"units by {table}"
            return "units"
        if self.measure is None:
            return table
        if self.of_values:
            sum_name = f"sum of {self.measure}"
        else:
            sum_name = self.measure
        if names:
            return f"{sum_name} by {table}"
        return sum_name


def cell_sets(attribute: str, query_set: QuerySet, kind: Kind) -> list[tuple[int, ...]]:
    """Return the cells that each query counts, one tuple for each query.

    >>> cell_sets("age", prefix(), ln.Integers(0, 2))
    [(0,), (0, 1), (0, 1, 2)]
    """
    operator = query_set.operator(attribute, kind)
    if operator.rows * operator.size > MOST_GROUP_ENTRIES:
        raise refuse(
            f"the queries along {attribute} that count units",
            f"{operator.rows} of {operator.size} cells",
            f"at most {MOST_GROUP_ENTRIES} together",
            "Ask for fewer ranges or sets.",
        )
    matrix = dense(operator)
    if not ((matrix == 0) | (matrix == 1)).all():
        raise refuse(
            f"the queries along {attribute} that count units",
            query_set.word,
            "cells, levels, ranges, predicates or prefix sums",
            "Compute differences from the published counts.",
        )
    return [tuple(np.flatnonzero(row).tolist()) for row in matrix]


def _is_of_single_cells(query_set: QuerySet) -> bool:
    """Return whether each query of a query set counts one cell."""
    if query_set.kind == "predicates":
        return all(len(cells) == 1 for cells in query_set.arguments)
    if query_set.kind == "ranges":
        return all(first == last for first, last in query_set.arguments)
    return query_set == identity()


class AttributeQueries(NamedTuple):
    """A query set on an attribute, and its operator."""

    name: str
    position: int  # the position of the attribute in the domain
    query_set: QuerySet
    operator: Operator


class QueryIndex(NamedTuple):
    """The distinct query sets on attributes in some tables, and their positions.

    ``along`` lists the distinct pairs of an attribute and a query set. ``widths`` has two arrays
    for each number of attributes. The first array has the indices of the products with this number
    of attributes. The second array has the indices in ``along`` of the pairs of each of these
    products; its shape is (products, attributes).
    """

    along: tuple[AttributeQueries, ...]
    widths: tuple[tuple[IntArray, IntArray], ...]


def index_queries(products: Sequence[Product]) -> QueryIndex:
    """Number the distinct query sets on attributes in some tables."""
    positions = {name: position for position, name in enumerate(products[0].domain.names)}
    along: list[AttributeQueries] = []
    numbers: dict[tuple[str, QuerySet], int] = {}
    # Compare objects by identity, because many tables share few query sets, and comparing these may
    # take long.
    number_of_entry: dict[tuple[str, int], int] = {}
    all_numbers: list[int] = []  # the number of each attribute of each product
    for product in products:
        for name, query_set, operator in zip(
            product.attributes, product.query_sets, product.operators, strict=True
        ):
            number = number_of_entry.get((name, id(query_set)))
            if number is None:
                number = number_of_entry[name, id(query_set)] = numbers.setdefault(
                    (name, query_set), len(along)
                )
                if number == len(along):
                    along.append(AttributeQueries(name, positions[name], query_set, operator))
            all_numbers.append(number)
    widths = np.array([len(product.attributes) for product in products])
    query_numbers = np.array(all_numbers, dtype=np.int64)
    return QueryIndex(
        tuple(along), tuple((rows, query_numbers[at]) for _, rows, at in group_by_width(widths))
    )


def group_by_width(widths: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Group rows of different lengths by their length, as indices.

    Yields: a length, the indices of the rows with this length, and an array of shape (rows,
    length). The array has the position of each element of these rows in the concatenation of all
    rows.
    """
    begins = np.cumsum(widths) - widths
    for width in np.unique(widths).tolist():
        rows = np.flatnonzero(widths == width)
        yield width, rows, begins[rows][:, None] + np.arange(width)


MEASURES_ARE_DECLARED = (
    "Declare it with public bounds: [measures.pay] clip = [0, 100000] in a spec, "
    "ln.Measure in Python."
)
Cell = tuple[Fraction | int, Fraction | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticForm:
    """How one kind of statistics is named, requested and printed.

    Attributes:
        noun: the name of the statistic in files and reports.
        column: the name of the column with the values.
        of_measure: whether the statistic is of a measure, instead of an attribute.
        of_several: whether it is about several measures, in the rows with a value of each.
        has_predictors: whether other measures explain the measure.
        row_key: the name of the column with the pairs or terms; empty for one number per group.
        at_shares: whether there is one value for each requested share.
        along: whether there is one value for each cell of the attribute.
        target_columns: the columns whose errors a target can limit.
        has_scales: whether the error of the statistic depends on the standard deviations of
            measures.
    """

    noun: str
    column: str
    of_measure: bool = False
    of_several: bool = False
    has_predictors: bool = False
    row_key: str = ""
    at_shares: bool = False
    along: bool = False
    target_columns: tuple[str, ...] = ()
    has_scales: bool = False


FORMS: Mapping[str, StatisticForm] = {
    "means": StatisticForm(noun="mean", column="mean", of_measure=True, target_columns=("mean",)),
    "variances": StatisticForm(
        noun="standard deviation",
        column="std_dev",
        of_measure=True,
        target_columns=("std_dev", "variance"),
        has_scales=True,
    ),
    "correlations": StatisticForm(
        noun="correlations",
        column="correlation",
        of_measure=True,
        of_several=True,
        row_key="pair",
        target_columns=("correlation", "covariance"),
        has_scales=True,
    ),
    "regression": StatisticForm(
        noun="regression",
        column="coefficient",
        of_measure=True,
        of_several=True,
        has_predictors=True,
        row_key="term",
        target_columns=("coefficient",),
        has_scales=True,
    ),
    "r_squared": StatisticForm(
        noun="R^2",
        column="r_squared",
        of_measure=True,
        of_several=True,
        has_predictors=True,
        target_columns=("r_squared",),
        has_scales=True,
    ),
    "quantiles": StatisticForm(noun="quantiles", column="quantile", at_shares=True),
    "cdf": StatisticForm(noun="distribution", column="share", along=True),
}
_OF_ITSELF = (
    "{of} cannot be both of and in by: its {kind} by its own values say nothing. "
    "Leave it out of by."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A statistic by group: means, variances, quantiles and similar numbers.

    Correlations are between all pairs of ``of`` and the measures ``on``. A regression explains
    ``of`` by ``on``, and R^2 is the explained share of the variance of ``of``. A weighted mean is
    the mean of a weighted measure.

    Attributes:
        kind: a key of `FORMS`, such as ``means``.
        of: the measure, or the attribute of quantiles and distribution functions.
        on: the other measures of correlations, or the predictors of a regression or of R^2.
        by: the attributes that define the groups.
        groups: the query set on each attribute of ``by``.
        at: the shares of quantiles.
        size: the public size of a group; None if not stated.
        target: the largest allowed error; None without a target.
        weighted_by: the measure that weights the rows of quantiles and cdf; None without weights.
        target_of: the column whose error the target limits; empty for the first possible one.
        scales: public standard deviations of measures, by name.
    """

    kind: str
    of: str
    on: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    groups: tuple[QuerySet, ...] = ()
    at: tuple[Fraction, ...] = ()
    size: Fraction | None = None
    target: Target | None = None
    weighted_by: str | None = None
    target_of: str = ""
    scales: tuple[tuple[str, Fraction], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", self.groups or (identity(),) * len(self.by))
        if FORMS[one_of("the kind of a statistic", self.kind, tuple(FORMS))].at_shares != bool(
            self.at
        ):
            raise refuse(
                f"the shares of {self.kind}",
                [str(share) for share in self.at],
                "at least one for quantiles, else none",
            )
        if not all(0 < share <= 1 for share in self.at) or len(set(self.at)) != len(self.at):
            shown = ", ".join(number_text(share) for share in self.at)
            raise refuse(
                "at", shown, "different shares above 0 and at most 1, such as 0.5 for the median"
            )
        weight = self.weighted_by
        if weight is not None and (self.form.of_measure or not isinstance(weight, str)):
            raise refuse("weighted_by", weight, "a measure, of quantiles and cdf")
        self._check_target()

    def _check_target(self) -> None:
        """Raise an error for a target that a statistic of this form cannot have."""
        columns = self.form.target_columns
        if self.target_of:
            one_of(f"target_of of {self.kind}", self.target_of, columns)
        if self.target is None:
            return
        kind = self.target.kind
        if not columns:
            raise InputError(
                f"{self.kind} have no targets: their errors depend on the data. Give a target to "
                "queries of the same table."
            )
        if kind == "relative" and not self.form.has_scales:
            raise refuse(
                f"the target of {self.kind}", kind, "margin or rmse, in amounts of the measure"
            )
        if self.size is None:
            of = "a mean" if self.kind == "means" else self.kind
            advice = (
                f"The error of {of} depends on the rows of a group: state a public size, for "
                "example size = 1000."
            )
            raise refuse(
                f"the {kind} of {of}",
                f"{self.target.most} without a size",
                "given with a size",
                advice,
            )

    @property
    def target_column(self) -> str:
        """The name of the column of results whose error the target limits."""
        return self.target_of or self.form.target_columns[0]

    @property
    def form(self) -> StatisticForm:
        """How statistics of this kind are named, requested and printed."""
        return FORMS[self.kind]

    @property
    def name(self) -> str:
        """The name of the statistic in files and reports."""
        name = f"{self.form.noun} of {self.subject}"
        if self.weighted_by is not None:
            name += f" weighted by {self.weighted_by}"
        if self.by:
            name += f" by {self.groups_name}"
        return name

    @property
    def subject(self) -> str:
        """The measures or the attribute, as text: ``pay and age`` or ``pay on age``."""
        if self.form.has_predictors:
            return f"{self.of} on {join_measures(self.on)}"
        return join_measures(self.variables)

    @property
    def variables(self) -> tuple[str, ...]:
        """The measure or attribute ``of``, followed by the measures ``on``."""
        return (self.of, *self.on)

    @property
    def row_labels(self) -> tuple[str, ...]:
        """The names of the numbers of a group; empty if each group has one number."""
        if self.kind == "correlations":
            return pair_names(self.variables)
        if self.kind == "regression":
            return term_names(self.variables)
        return ()

    @property
    def sum_factors(self) -> list[Factors]:
        """The measures to be multiplied in each sum that the statistic needs."""
        if not self.form.of_several:
            return []
        response = self.of if self.kind == "regression" else None
        return factors_of_sums(self.variables, response)

    def sum_names(self, domain: Domain) -> tuple[str, ...]:
        """Return the names of the measures of all sums that the statistic needs."""
        present = in_domain_order(domain, self.variables)
        return tuple(
            name_sums(in_factor_order(present, factors), present) for factors in self.sum_factors
        )

    @property
    def groups_name(self) -> str:
        """The name of the grouping, such as ``sex x store:region``."""
        return " x ".join(query_set.name_along(name) for name, query_set in self.along.items())

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns, one for each grouping attribute."""
        return tuple(query_set.key_along(name) for name, query_set in self.along.items())

    @property
    def along(self) -> dict[str, QuerySet]:
        """The query set that defines the groups, by attribute."""
        return dict(zip(self.by, self.groups, strict=True))

    def table_keys(self, domain: Domain) -> tuple[tuple[object, ...], ...]:
        """Return the `table_key` of each table that the statistic needs."""
        if self.form.of_several:
            names = self.sum_names(domain)
            return tuple((name, self.by, self.groups) for name in names)
        if self.form.of_measure:
            measures = [domain.count_of(self.of), self.of]
            if self.kind == "variances":
                measures.append(square_measure(domain, self.of))
            return tuple((measure, self.by, self.groups) for measure in measures)
        query_sets = {**self.along, self.of: prefix()}
        names = tuple(name for name in domain.names if name in query_sets)
        return ((self.weighted_by, names, tuple(query_sets[name] for name in names)),)

    def to_json(self) -> dict[str, object]:
        """Return the statistic as a JSON object."""
        facts: dict[str, object] = {"of": self.of}
        if self.kind == "correlations":
            facts["of"] = list(self.variables)
        if self.form.has_predictors:
            facts["on"] = list(self.on)
        if self.at:
            facts["at"] = [str(share) for share in self.at]
        facts["by"] = [
            name if query_set == identity() else {name: query_set.to_spec()}
            for name, query_set in self.along.items()
        ]
        if self.weighted_by is not None:
            facts["weighted_by"] = self.weighted_by
        if self.size is not None:
            facts["size"] = str(self.size)
        if self.target is not None:
            facts |= self.target.to_json()
        if self.target_of:
            facts["target_of"] = self.target_of
        if self.scales:
            facts["scales"] = {name: str(scale) for name, scale in self.scales}
        return {self.kind: facts}


def squares_name(measure: str) -> str:
    """Return the name of the measure of a measure's squared deviations."""
    return f"squares of {measure}"


def square_measure(domain: Domain, measure: str) -> str | None:
    """Return the name of a measure's squared deviations in the domain, or None."""
    of = domain.measure(measure)
    return next(
        (
            name
            for name, declared in domain.measures.items()
            if isinstance(declared, SquaredDeviation) and declared.of == of
        ),
        None,
    )


def checked_statistic(
    domain: Domain,
    kind: str,
    of: object,
    at: Sequence[Exact] | None,
    by: By,
    size: Exact | None,
    error_target: Target | None = None,
    on: object = None,
    target_of: object = None,
    scales: object = None,
) -> Statistic:
    """Check the arguments of a statistic against the domain, and return it."""
    of_measure = FORMS[kind].of_measure
    further_measures: tuple[str, ...] = ()
    if kind == "correlations":
        of, *others = checked_variables(domain, "of", of, minimum=2)
        further_measures = tuple(others)
    if FORMS[kind].has_predictors:
        further_measures = checked_variables(domain, "on", on)
        of, *_ = checked_variables(domain, "of and on", [of, *further_measures], minimum=2)
    if of_measure:
        _check_statistic_measure(domain, kind, of)
    else:
        _check_statistic_attribute(domain, of)
    groups = groups_of(domain, by, "by")
    if not of_measure and of in groups:
        raise InputError(message(_OF_ITSELF, of=of, kind=kind))
    if at is not None and (isinstance(at, str) or not isinstance(at, Sequence)):
        raise refuse(
            "at", at, 'a list of shares above 0 and at most 1, such as ["0.25", "0.5", "0.75"]'
        )
    shares = tuple(exact("at", share) for share in at or ())
    exact_size = None
    if size is not None:
        exact_size = exact_positive("size", size)
    variables = (str(of), *further_measures)
    return Statistic(
        kind=kind,
        of=str(of),
        on=further_measures,
        by=(*groups,),
        groups=(*groups.values(),),
        at=shares,
        size=exact_size,
        target=error_target,
        target_of="" if target_of is None else str(target_of),
        scales=_checked_scales(domain, kind, variables, scales),
    )


def _checked_scales(
    domain: Domain, kind: str, variables: Sequence[str], scales: object
) -> tuple[tuple[str, Fraction], ...]:
    """Check public standard deviations of measures; return them in order.

    Raises:
        InputError: the statistic needs no scales; a scale is of another measure; or it is not a
            number above 0 that the bounds allow.
    """
    if scales is None:
        return ()
    if not FORMS[kind].has_scales:
        raise refuse(
            "scales", scales, f"left out for {kind}, because its errors do not depend on them"
        )
    if not isinstance(scales, Mapping) or not all(name in variables for name in scales):
        advice = 'Write the standard deviation of each measure, such as { pay = "20000" }.'
        names = join_measures(variables)
        raise refuse("scales", scales, message("numbers for {names}", names=names), advice)
    checked = []
    for name in variables:
        if name in scales:
            measure = domain.measure(name)
            largest = (measure.high - measure.low) / 2
            scale = exact_positive(f"the scale of {name}", scales[name])
            if scale > largest:
                raise refuse(
                    f"the scale of {name}",
                    number_text(scale),
                    message("at most {largest}", largest=number_text(largest)),
                    "No standard deviation is above half the distance of the bounds.",
                )
            checked.append((name, scale))
    return tuple(checked)


def _check_statistic_measure(domain: Domain, kind: str, of: object) -> None:
    """Raise unless a measure is suitable for a kind of statistic."""
    if not (isinstance(of, str) and of in domain.measures):
        raise refuse(
            "of",
            of,
            f"a measure of the domain ({', '.join(domain.measures) or 'none is declared'})",
            MEASURES_ARE_DECLARED,
        )
    allowed = "a measure of values of rows, with clip"
    measure = domain.measure(of)
    if isinstance(measure, PerUnit):
        raise refuse(
            "of",
            of,
            allowed,
            "A total of units has no mean of rows: declare another measure of the same column.",
        )
    if kind == "variances" and type(measure) is not Measure:
        raise refuse("of", of, allowed, "Weighted values and squares have no variances here.")


def _check_statistic_attribute(domain: Domain, of: object) -> None:
    """Raise an error unless an attribute has numbers.

    Statistics need numbers.
    """
    is_measure = isinstance(of, str) and of in domain.measures
    if is_measure and of not in domain.names:
        advice = (
            f"{of} is a measure: for its quantiles declare an attribute of the same column in bins."
        )
        raise refuse(
            "of",
            of,
            "an attribute of numbers "
            f"({', '.join(_numeric_attributes(domain)) or 'none is declared'})",
            advice,
        )
    number_cells(domain, of)


def number_cells(domain: Domain, attribute: object) -> tuple[Cell, ...]:
    """Return the exact lower and upper end of each cell of a numeric attribute.

    The cell ``other`` has no ends, so the result does not contain this cell.
    """
    if isinstance(attribute, str):
        kind = domain.kind(attribute)
    else:
        kind = None
    if isinstance(kind, (Bins, Edges)):
        return tuple(zip(kind.edges[:-1], kind.edges[1:], strict=True))
    if isinstance(kind, Integers):
        return tuple((number, number) for number in range(kind.low, kind.high + 1))
    if isinstance(kind, Decimals):
        return tuple((value, value) for value in kind.values)
    numeric_names = ", ".join(_numeric_attributes(domain)) or "-"
    allowed = message(
        "one of Integers, Decimals, Bins or Edges, whose cells are numbers ({known})",
        known=numeric_names,
    )
    raise refuse("the attribute of a distribution function", attribute, allowed)


def _numeric_attributes(domain: Domain) -> list[str]:
    """Return the names of the attributes whose values are numbers."""
    return [
        name
        for name in domain.names
        if isinstance(domain.kind(name), (Bins, Edges, Integers, Decimals))
    ]
