"""Workloads: weighted unions of products of query sets, and statistics."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from itertools import chain, combinations
from typing import Any

from leastnoise._domain import (
    DeviationProduct,
    Domain,
    Measure,
    PerUnit,
    SquaredDeviation,
    UnitCount,
    ValueCount,
    Weighted,
)
from leastnoise._trusted.check import (
    Exact,
    InputError,
    exact_positive,
    message,
    one_of,
    refuse,
    whole,
)
from leastnoise._trusted.linop import Operator
from leastnoise._workload._complete_rows import (
    complete_rows_measures,
    in_domain_order,
    in_factor_order,
)
from leastnoise._workload._product import (
    FORMS,
    MEASURES_ARE_DECLARED,
    Product,
    Statistic,
    cell_sets,
    checked_statistic,
    index_queries,
    squares_name,
    statistic_target,
    target,
)
from leastnoise._workload._query_sets import (
    By,
    QuerySet,
    groups_of,
    identity,
    prefix,
    query_set,
    total,
)

# Squares are doubles.
_LEAST_WEIGHT = Fraction(1, 10**100)
_MOST_WEIGHT = Fraction(10**100)


@dataclass(frozen=True, repr=False)
class Workload:
    """The queries to answer together: tables over one domain, and statistics.

    Args:
        domain: the domain.
        products: the tables.
        statistics: means, variances, quantiles and distribution functions. The statistics are
            computed from the tables.

    Guarantees: a workload is not empty, every product belongs to ``domain``, and the tables of
        every statistic are requested. If ``+`` requests a table again, the result has the table
        once, with the sum of the weights.

    >>> domain = ln.Domain(sex=["F", "M"], age=["young", "old"])
    >>> workload = ln.marginals(domain, ways=1) + ln.queries(domain, age="prefix", weight=2)
    >>> [product.name for product in workload.products]
    ['sex', 'age', 'age:prefix']
    """

    domain: Domain
    products: tuple[Product, ...]
    statistics: tuple[Statistic, ...] = ()

    def __post_init__(self) -> None:
        if not self.products:
            raise InputError(
                "The workload is empty; ask for at least one query, for example marginals(domain, "
                "ways=1)."
            )
        if any(
            product.domain is not self.domain and product.domain != self.domain
            for product in self.products
        ):
            raise InputError(
                "A workload must have all its queries over one domain; got two different domains. "
                "Use one Domain value for all parts."
            )
        for statistic in self.statistics:
            self.tables_of(statistic)
            counts_all = statistic.form.of_measure or (
                self.domain.kind(statistic.of).outside == "clip"
            )
            if not counts_all:
                raise InputError(
                    f"The {statistic.name} must count values beyond the bounds of {statistic.of}: "
                    'its outside must be "clip".'
                )

    def tables_of(self, statistic: Statistic) -> tuple[Product, ...]:
        """Return the tables from which a statistic is computed.

        Means need counts and sums, and variances also sums of squares. Quantiles and distribution
        functions need counts up to every cell.

        Raises:
            InputError: the workload does not request one of these tables.
        """
        product_of_key = {product.table_key: product for product in self.products}
        keys = statistic.table_keys(self.domain)
        if not all(question in product_of_key for question in keys):
            raise InputError(
                f"The tables that the {statistic.name} needs are not in the workload. Request the "
                "statistic and its tables together."
            )
        return tuple(product_of_key[question] for question in keys)

    def __repr__(self) -> str:
        return f"Workload({len(self.products):,} tables, {self.rows:,} queries)"

    def __add__(self, other: "Workload") -> "Workload":
        if isinstance(other, Workload):
            return together((self, other))
        return NotImplemented

    def __iter__(self) -> Iterator[Product]:
        return iter(self.products)

    @property
    def has_targets(self) -> bool:
        """Whether any table or statistic has an error target."""
        entries: Sequence[Product | Statistic] = (*self.products, *self.statistics)
        return any(entry.target is not None for entry in entries)

    @cached_property
    def rows(self) -> int:
        """The number of queries in all tables."""
        return sum(product.rows for product in self.products)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the queries use, in domain order."""
        queried_names = {name for name, _, _ in self.along}
        return tuple(name for name in self.domain.names if name in queried_names)

    @property
    def beyond_cells(self) -> tuple[str, ...]:
        """The attributes that have other queries than single cells, in domain order."""
        queried_names = {name for name, queries_of, _ in self.along if queries_of != identity()}
        return tuple(name for name in self.domain.names if name in queried_names)

    @property
    def has_hidden(self) -> bool:
        """Whether one of the attributes has a hidden cell of omitted rows."""
        return any(self.domain.kind(name).hidden for name in self.attributes)

    @cached_property
    def along(self) -> tuple[tuple[str, QuerySet, Operator], ...]:
        """The distinct query sets on attributes, each with its operator.

        Each entry is an attribute, a query set and its operator, in order of first appearance.
        """
        return tuple(
            (along.name, along.query_set, along.operator)
            for along in index_queries(self.products).along
        )

    @cached_property
    def tables(self) -> Mapping[str | None, Sequence[tuple[str, ...]]]:
        """The attribute sets of the tables, by measure (None for counts of rows)."""
        return {
            measure: tuple(dict.fromkeys(product.attributes for product in self.of(measure)))
            for measure in self.measures
        }

    @cached_property
    def used(self) -> Mapping[str | None, frozenset[str]]:
        """The attributes that queries use, by measure (None for counts of rows)."""
        return {
            measure: frozenset(chain.from_iterable(sets)) for measure, sets in self.tables.items()
        }

    @cached_property
    def read_attributes(self) -> frozenset[str]:
        """All attributes that must be read, for queries or for counts of units."""
        names = set(chain.from_iterable(product.attributes for product in self.products))
        for name in self.measures:
            measure = None if name is None else self.domain.measure(name)
            if isinstance(measure, PerUnit):
                names.update(measure.attributes)
        return frozenset(names)

    def of(self, measure: str | None) -> Sequence[Product]:
        """Return the tables of a measure; for None, the tables that count rows."""
        if len(self.measures) == 1 and measure in self.measures:
            return self.products
        return tuple(product for product in self.products if product.measure == measure)

    @cached_property
    def measures(self) -> tuple[str | None, ...]:
        """The measures of the tables, None for counts, in order of first appearance."""
        return tuple(dict.fromkeys(product.measure for product in self.products))

    @cached_property
    def counted_sums(self) -> tuple[str, ...]:
        """The measures whose tables are requested both as sums and as counts.

        If the domain declares a count of values, values are counted; otherwise rows are counted.
        """
        if len(self.measures) == 1:
            return ()
        tables = {
            name: {product.table_key[1:] for product in self.of(name)} for name in self.measures
        }
        summed = []
        for name in filter(None, self.measures):
            kind = self.domain.measure(name)
            count = self.domain.count_of(name)
            has_ends = type(kind) in (Measure, SquaredDeviation)
            # Of numbers with both signs, both ends together cost twice as much as the sum.
            has_ends |= isinstance(kind, DeviationProduct) and kind.low_units >= 0
            # Together with counts of rows, a row without a value adds 0.
            has_zero = count is not None or kind.low_units <= 0 <= kind.high_units
            if has_ends and has_zero and tables[name] & tables.get(count, set()):
                summed.append(name)
        return tuple(summed)

    def within(
        self,
        *,
        margin: Exact | None = None,
        relative: Exact | None = None,
        size: Exact | None = None,
        rmse: Exact | None = None,
    ) -> "Workload":
        """Return the same queries with a target for the error of each table.

        Args:
            margin: a target for the half width of every answer's interval, at the confidence level
                of the release. It is in rows or in the amounts of the measure.
            relative: the target as a share of ``size``; pass it instead of ``margin``.
            size: the expected value of an answer, which is public. Without ``relative``, the size
                sets no target, but the objective "relative" uses it.
            rmse: a target for the root mean square of the standard errors of a table's answers;
                pass it instead of ``margin`` and ``relative``.

        Raises:
            InputError: none or several of the three targets are stated, or one is not above 0.

        Edge cases: ``leastnoise.least`` finds the budget that meets every target; a plan for a
            stated budget shows which targets it meets.

        >>> ln.marginals(ln.Domain(sex=["F", "M"]), ways=1).within(margin=50).products[0].target
        Target(kind='margin', most=Fraction(50, 1))
        """
        target_value = target(margin=margin, relative=relative, size=size, rmse=rmse)
        if size is None:
            exact_size = None
        else:
            exact_size = exact_positive("size", size)
        if target_value is None and exact_size is None:
            raise InputError(
                "A target must have one of margin, relative (with size) and rmse; got none."
            )
        products = tuple(
            replace(product, target=target_value, size=exact_size) for product in self.products
        )
        return replace(self, products=products)

    def weighted_by(self, weight: str) -> "Workload":
        """Return the same tables and statistics with weighted rows.

        The count of a row, or the value that it adds to a sum, is multiplied by the row's weight.

        Args:
            weight: a measure whose bounds are not negative.

        Raises:
            InputError: there is no such measure; the tables count privacy units or have weights
                already; or the workload has variances.

        The ``size`` of a statistic is then the expected sum of the weights in a group. The weighted
        p-quantile is the smallest value v with this property: the rows with values of at most v
        have at least the share p of all weights.

        >>> domain = ln.Domain(
        ...     sex=["F", "M"],
        ...     measures={"pay": ln.Measure("pay", 0, 100), "w": ln.Measure("weight", 0, 50)},
        ... )
        >>> [table.name for table in ln.mean_queries(domain, "pay", by=["sex"]).weighted_by("w")]
        ['sum of w of rows with pay by sex', 'sum of pay weighted by w by sex']
        """
        self._check_weight(weight)
        self._check_weightable()
        measures = self.domain.measures
        weighted_names = {}
        for product in self:
            if product.measure and product.values_of:
                weighted_names[product.measure] = f"{weight} of rows with {product.values_of}"
            elif product.measure:
                weighted_names[product.measure] = f"{product.measure} weighted by {weight}"
        weighted_measures = {
            new_name: Weighted(measures[name], measures[weight])
            for name, new_name in weighted_names.items()
        }
        with_measures = _with_measures(self, weighted_measures)
        products = []
        for product in with_measures:
            measure = weighted_names[product.measure] if product.measure else weight
            weighted = replace(product, measure=measure)
            products.append(weighted.with_operators(product.operators))
        statistics = []
        for statistic in self.statistics:
            if statistic.form.of_measure:
                statistics.append(replace(statistic, of=weighted_names[statistic.of]))
            else:
                statistics.append(replace(statistic, weighted_by=weight))
        return replace(with_measures, products=tuple(products), statistics=tuple(statistics))

    def _check_weight(self, weight: object) -> None:
        """Raise unless a name belongs to a measure that can be the weight of rows."""
        measures = self.domain.measures
        if isinstance(weight, str):
            weight_measure = measures.get(weight)
        else:
            weight_measure = None
        if type(weight_measure) is not Measure or weight_measure.low < 0:
            listing = ", ".join(
                name for name, kind in measures.items() if type(kind) is Measure and kind.low >= 0
            )
            advice = (
                "Declare it: [measures.weight] clip = [0, 500] in a spec, ln.Measure in Python."
            )
            allowed = message(
                "a measure whose bounds are not negative ({listed})", listed=listing or "-"
            )
            raise refuse("weighted_by", weight, allowed, advice)

    def _check_weightable(self) -> None:
        """Raise if some tables or statistics cannot have weights."""
        measures = self.domain.measures
        if any(entry.form.has_scales for entry in self.statistics):
            raise InputError(
                "weighted_by is for counts, sums, means, quantiles and distribution functions. "
                "Variances, correlations, regressions and R^2 have no weights, because no measure "
                "is the product of a weight and two values. For a weighted variance add a column "
                "of squares to the source, and ask for weighted means of both columns."
            )
        if any(entry.weighted_by is not None for entry in self.statistics):
            raise InputError(
                "weighted_by can be applied only once; these quantiles already have a weight. "
                "Leave out one of the two weights."
            )
        if any(type(measures[name]) not in (Measure, ValueCount) for name in self.measures if name):
            raise InputError(
                "weighted_by applies to counts of rows, counts of values and sums. It cannot be "
                "applied to counts of units, or to tables that already have a weight."
            )

    def weight_of(self, statistic: Statistic) -> Measure | None:
        """Return the measure that weights the rows of a statistic, or None."""
        if statistic.weighted_by is not None:
            return self.domain.measure(statistic.weighted_by)
        if statistic.form.of_measure:
            measure = self.domain.measure(statistic.of)
        else:
            measure = None
        if isinstance(measure, Weighted):
            return measure.weight
        return None

    def to_json(self) -> list[dict[str, object]]:
        """Return the tables as a JSON list; domain and statistics are separate."""
        # Many tables share few query sets, so each object is converted only once.
        query_sets = {id(sets): sets for product in self.products for sets in product.query_sets}
        json_of = {key: query_set.to_json() for key, query_set in query_sets.items()}
        return [
            {
                "queries": dict(
                    zip(
                        product.attributes,
                        map(json_of.__getitem__, map(id, product.query_sets)),
                        strict=True,
                    )
                ),
                "weight": str(product.weight),
                "measure": product.measure,
                **({"target": product.target.to_json()} if product.target is not None else {}),
                **({"size": str(product.size)} if product.size is not None else {}),
            }
            for product in self.products
        ]


def _of_counts(count: str, of_unit: Sequence[str], workload: Workload) -> Workload:
    """Convert tables of row counts to counts of values or of units, if requested."""
    sums = [name for name, kind in workload.domain.measures.items() if type(kind) is Measure]
    if one_of("count", count, ("rows", "units", *sums)) == "rows":
        return workload
    if any(product.measure is not None for product in workload):
        raise refuse("count", count, 'left out or "rows", because a measure is summed')
    if count in sums:
        name = f"count of {count}"
        counting = _with_measures(workload, {name: ValueCount(workload.domain.measure(count))})
        return replace(
            counting,
            products=tuple(
                replace(product, measure=name).with_operators(product.operators)
                for product in counting
            ),
        )
    of_units = {*groups_of(workload.domain, list(of_unit), "of_unit")}
    counts = [_unit_count(product, of_units) for product in workload]
    names = [
        _unit_count_name(product, counted)
        for product, counted in zip(workload, counts, strict=True)
    ]
    counting = _with_measures(workload, dict(zip(names, counts, strict=True)))
    products = tuple(
        replace(product, measure=name) for product, name in zip(counting, names, strict=True)
    )
    return replace(counting, products=products)


def _unit_count(product: Product, of_units: set[str]) -> UnitCount:
    """Return the measure that counts units in the cells or groups of a table."""
    if {*product.attributes} <= of_units:
        return UnitCount()
    if product.asks_single_cells:
        return UnitCount(product.attributes)
    groups = [
        None
        if query_set_along == identity()
        else cell_sets(name, query_set_along, product.domain.kind(name))
        for name, query_set_along in product.along.items()
    ]
    empty = [
        name
        for name, along in zip(product.attributes, groups, strict=True)
        if along and () in along
    ]
    if empty:
        raise refuse(
            f"the queries along {empty[0]} that count units",
            "one of no cell",
            "sets with at least one cell",
        )
    return UnitCount(product.attributes, groups)


def _unit_count_name(product: Product, unit_count: UnitCount) -> str:
    """Return the name of a count of units, unique for its attributes and groups."""
    if not unit_count.attributes:
        return "units"
    if not unit_count.has_groups:
        return f"units by {' x '.join(unit_count.attributes)}"
    digest = sha256(repr((unit_count.attributes, unit_count.groups)).encode()).hexdigest()
    return f"units by {product.name} ({digest[:8]})"


def _clipped_domain(domain: Domain, names: Iterable[str]) -> Domain:
    """Return the domain that counts outside numbers in the outermost cells."""
    clipped = {name: domain.kind(name).clipped() for name in names}
    if all(clipped[name] is domain.kind(name) for name in clipped):
        return domain
    kinds = {name: clipped.get(name, domain.kind(name)) for name in domain.names}
    return Domain(kinds, measures=domain.measures)


_LEAVES_OUT = (
    "The {statistic} must count values beyond the bounds of {of}, and the table {table} {does}. "
    'Write outside = "clip" for {of}. Then its first and last cell contain these values in every '
    "table. Or ask for the table in a separate release."
)


def _with_clipped(workload: Workload, statistics: Iterable[Statistic]) -> Workload:
    """Clip the numbers whose quantiles are requested, in a workload's domain.

    Raises:
        InputError: a table of the workload needs an attribute that is not clipped.
    """
    of_numbers = [statistic for statistic in statistics if not statistic.form.of_measure]
    domain = workload.domain
    for statistic in of_numbers:
        if statistic.of in domain.names:
            outside = domain.kind(statistic.of).outside
        else:
            outside = "clip"
        if outside == "clip":
            continue
        for product in workload:
            if statistic.of in product.attributes:
                if outside == "drop":
                    does = "leaves them out"
                else:
                    does = "counts them in other"
                parts = {"statistic": statistic.name, "of": statistic.of, "does": does}
                raise InputError(message(_LEAVES_OUT, table=product.name, **parts))
    names = [statistic.of for statistic in of_numbers if statistic.of in domain.names]
    return with_domain(workload, _clipped_domain(domain, names))


def with_domain(workload: Workload, domain: Domain) -> Workload:
    """Return the workload over another domain that has the same cells."""
    if domain is workload.domain:
        return workload
    products = tuple(
        replace(product, domain=domain).with_operators(product.operators) for product in workload
    )
    return replace(workload, domain=domain, products=products)


def questions_over(questions: Workload, domain: Domain) -> Workload | None:
    """Return a workload over the domain of a release; None if domains differ.

    A release clips numbers whose quantiles it has, but the domain of the workload may lack this
    setting.
    """
    if questions.domain == domain:
        return questions
    clipped = [
        name
        for name in questions.domain.names
        if name in domain.names
        and domain.kind(name).outside == "clip" != questions.domain.kind(name).outside
        and domain.cells(name) == questions.domain.cells(name)
    ]
    if not clipped or _clipped_domain(questions.domain, clipped) != domain:
        return None
    return with_domain(questions, domain)


def _with_measures(workload: Workload, counts: Mapping[str, Measure]) -> Workload:
    """Add measures for counts of values or units to a workload's domain."""
    measures_before = workload.domain.measures
    if taken := [
        name for name in counts if measures_before.get(name, counts[name]) != counts[name]
    ]:
        raise refuse(
            "the name of a measure",
            taken[0],
            "another one, as a count of units or of values has it",
        )
    measures = {
        name: measure for name, measure in measures_before.items() if name not in counts
    } | {**counts}
    if [*measures] == [*measures_before]:
        return workload
    kinds = {name: workload.domain.kind(name) for name in workload.domain.names}
    return with_domain(workload, Domain(kinds, measures=measures))


def together(workloads: Sequence[Workload]) -> Workload:
    """Return the union of several workloads, as ``+`` does for two.

    If several workloads have the same table, the result has this table once, with the sum of the
    weights.
    """
    counts = {
        name: kind
        for workload in workloads
        for name, kind in workload.domain.measures.items()
        if type(kind) is not Measure
    }
    numbers = [*chain.from_iterable(workload.statistics for workload in workloads)]
    parts = [_with_clipped(workload, numbers) for workload in workloads]
    if counts:
        parts = [_with_measures(workload, counts) for workload in parts]
    product_of_key: dict[tuple[object, ...], Product] = {}
    for product in chain.from_iterable(workload.products for workload in parts):
        if same := product_of_key.get(product.table_key):
            targets = {same.target, product.target} - {None}
            sizes = {same.size, product.size} - {None}
            if max(len(targets), len(sizes)) > 1:
                raise InputError(
                    message(
                        "The table {name!r} is requested twice with two targets or two "
                        "sizes; state one.",
                        name=same.name,
                    )
                )
            weight = same.weight + product.weight
            target_of = next(iter(targets), None)
            product_of_key[product.table_key] = replace(
                same, weight=weight, target=target_of, size=next(iter(sizes), None)
            )
        else:
            product_of_key[product.table_key] = product
    statistics = dict.fromkeys(chain.from_iterable(workload.statistics for workload in parts))
    return Workload(parts[0].domain, tuple(product_of_key.values()), tuple(statistics))


def from_json(
    domain: Domain, value: Iterable[Mapping[str, Any]], statistics: Iterable[Mapping[str, Any]] = ()
) -> Workload:
    """Recreate the workload that `Workload.to_json` wrote."""
    products = []
    for entry in value:
        sets = {}
        for name, form in entry["queries"].items():
            arguments = tuple(tuple(row) for row in form["arguments"])
            sets[name] = QuerySet(form["kind"], arguments)
        product = _product(domain, sets, entry["weight"], entry["measure"])
        if "size" not in entry:
            size = None
        else:
            size = exact_positive("size", entry["size"])
        products.append(replace(product, target=target(**entry.get("target", {})), size=size))
    read_statistics = []
    for ((kind, settings),) in (entry.items() for entry in statistics):
        stated = {name: settings.get(name) for name in ("margin", "relative", "rmse")}
        one_of("the kind of a statistic", kind, tuple(FORMS))
        statistic = checked_statistic(
            domain,
            kind,
            settings["of"],
            settings.get("at"),
            settings["by"],
            settings.get("size"),
            statistic_target(**stated),
            settings.get("on"),
            settings.get("target_of"),
            settings.get("scales"),
        )
        read_statistics.append(replace(statistic, weighted_by=settings.get("weighted_by")))
    return Workload(domain, tuple(products), tuple(read_statistics))


def _weight(value: Exact) -> Fraction:
    """Check the weight of a table, and return it as a fraction.

    The square of the weight must be a normal double (not subnormal, 0 or infinite).
    """
    weight = exact_positive("weight", value)
    if not _LEAST_WEIGHT <= weight <= _MOST_WEIGHT:
        raise refuse("weight", value, "a number above 0, between 1e-100 and 1e100")
    return weight


def _product(
    domain: Domain, sets: Mapping[str, object], weight: Exact, measure: str | None
) -> Product:
    """Return the table of given query sets, except attributes to be summed over.

    Raises for labels that do not fit.
    """
    for name in sets:
        if name not in domain.names:
            raise refuse("an attribute of a query", name, "one of " + ", ".join(domain.names))
    _check_measure(domain, measure)
    read = {name: query_set(name, sets[name]) for name in domain.names if name in sets}
    query_sets_by_name = {
        name: query_set_value
        for name, query_set_value in read.items()
        if query_set_value != total()
    }
    for name, query_set_value in query_sets_by_name.items():
        # Raise now for query sets that do not fit.
        query_set_value.operator(name, domain.kind(name))
    return Product(
        domain=domain,
        attributes=tuple(query_sets_by_name),
        query_sets=tuple(query_sets_by_name.values()),
        weight=_weight(weight),
        measure=measure,
    )


def _check_measure(domain: Domain, measure: object) -> None:
    """Raise unless a measure is None or declared in the domain."""
    if measure is not None and (not isinstance(measure, str) or measure not in domain.measures):
        declared_names = ", ".join(domain.measures) or "none is declared"
        raise refuse(
            "sum", measure, f"a measure of the domain ({declared_names})", MEASURES_ARE_DECLARED
        )


def queries(
    domain: Domain,
    sets_by_attribute: Mapping[str, object] | None = None,
    /,
    *,
    weight: Exact = 1,
    sum: str | None = None,  # noqa: A002 - the word users expect
    count: str = "rows",
    of_unit: Sequence[str] = (),
    **query_sets: object,
) -> Workload:
    """Return a workload of one table: all combinations of query sets.

    Args:
        domain: the domain.
        sets_by_attribute: a mapping from attributes to query sets, for attributes whose names are
            not Python identifiers or are parameters of this function.
        weight: a number above 0. The total error is the sum over tables of the squared error times
            the weight squared.
        sum: a measure to sum; if it is None, rows are counted.
        count: one of three: "rows"; a measure, to count the rows that have a value of it; or
            "units", to count every privacy unit once in each cell that has one of its rows.
        of_unit: attributes that have one value for all rows of a unit. In a table by these
            attributes only, a unit counts once in total.
        query_sets: by attribute: ``identity()``, ``prefix()`` ... or their names; tables sum over
            the other attributes.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: an unknown attribute or measure, or a query set that does not fit.

    Edge cases: without query sets the workload is the total.

    >>> domain = ln.Domain(sex=["F", "M"], age=["young", "old"])
    >>> ln.queries(domain, sex=ln.identity(), age="prefix").rows
    4
    """
    if sets_by_attribute is not None and not isinstance(sets_by_attribute, Mapping):
        raise refuse(
            "queries",
            sets_by_attribute,
            "a mapping from attributes to query sets, such as {'age': 'prefix'}",
        )
    twice = sorted({*(sets_by_attribute or {})} & {*query_sets})
    if twice:
        raise refuse("an attribute of a query", twice[0], "given once")
    return _of_counts(
        count,
        of_unit,
        Workload(
            domain, (_product(domain, {**(sets_by_attribute or {}), **query_sets}, weight, sum),)
        ),
    )


def marginals(
    domain: Domain,
    *,
    ways: int | None = None,
    upto: int | None = None,
    of: By | None = None,
    weight: Exact = 1,
    sum: str | None = None,  # noqa: A002 - the word users expect
    count: str = "rows",
    of_unit: Sequence[str] = (),
) -> Workload:
    """Return a workload of all marginals with a given number of attributes.

    Args:
        domain: the domain.
        ways: number of attributes of every marginal.
        upto: request all marginals on 0, 1, ..., ``upto`` attributes; use it instead of ``ways``.
        of: the attributes to choose from, by default all; a mapping such as ``{"store":
            level("region")}`` chooses the groups of a level.
        weight: a number above 0. The total error is the sum over marginals of the squared error
            times the weight squared.
        sum: a measure to sum; if it is None, rows are counted.
        count: one of three: "rows"; a measure, to count the rows that have a value of it; or
            "units", to count every privacy unit once in each cell that has one of its rows.
        of_unit: attributes that have one value for all rows of a unit. In a table by these
            attributes only, a unit counts once in total.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: neither or both of ``ways`` and ``upto`` are stated; or there are fewer
            attributes than ``ways``.

    >>> ln.marginals(ln.Domain(a=["x", "y"], b=["x", "y"], c=["x", "y"]), ways=2).rows
    12
    >>> [table.name for table in ln.marginals(ln.Domain(region=["N", "S"]), upto=1, count="units")]
    ['units', 'units by region']
    """
    if of is None:
        sets = dict.fromkeys(domain.names, identity())
    else:
        sets = groups_of(domain, of, "of")
    if (ways is None) == (upto is None):
        raise InputError(
            "marginals must have exactly one of ways and upto; got "
            + ("neither." if ways is None else "both.")
        )
    if upto is None:
        widths = [whole("ways", ways, 0, len(sets))]
    else:
        widths = [*range(whole("upto", upto, 0, len(sets)) + 1)]
    subsets = list(chain.from_iterable(combinations(sets, width) for width in widths))
    _check_measure(domain, sum)
    # Many tables share query sets, so each one is checked and made only once.
    share = _weight(weight)
    operators = {
        name: query_set_value.operator(name, domain.kind(name))
        for name, query_set_value in sets.items()
    }
    products = []
    for set_ in subsets:
        along = tuple(map(sets.__getitem__, set_))
        product = Product(
            domain=domain, attributes=set_, query_sets=along, weight=share, measure=sum
        )
        products.append(product.with_operators(tuple(map(operators.__getitem__, set_))))
    return _of_counts(count, of_unit, Workload(domain, tuple(products)))


def mean_queries(
    domain: Domain,
    of: str,
    *,
    by: By = (),
    weight: Exact = 1,
    size: Exact | None = None,
    margin: Exact | None = None,
    rmse: Exact | None = None,
) -> Workload:
    """Return a workload of means of a measure by group.

    A mean is over the rows with a value. The workload also contains the sums and the counts of
    values that determine the means.

    Args:
        domain: the domain.
        of: the name of a measure.
        by: the groups of the means: attributes (one group for each cell), or mappings such as
            ``{"store": level("region")}``. If it is empty, there is one mean, of all rows.
        weight: the weight of both tables, above 0.
        size: the expected number of rows with a value in a group, which is public. The plan states
            the error of a mean for a group of this size.
        margin: a target for half the width of the interval of a mean, in units of the measure. The
            target is for the confidence level of the release, and for every possible mean in a
            group of ``size`` rows.
        rmse: a target for the standard error; pass it instead of ``margin``.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: there is no such measure or attribute, or the target is not above 0 or has no
            size.

    >>> domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 100)})
    >>> [product.name for product in ln.mean_queries(domain, "pay", by=["sex"])]
    ['count of pay by sex', 'sum of pay by sex']
    """
    statistic = checked_statistic(
        domain, "means", of, None, by, size, statistic_target(margin=margin, rmse=rmse)
    )
    tables = queries(domain, statistic.along, weight=weight, count=of) + queries(
        domain, statistic.along, weight=weight, sum=of
    )
    return replace(tables, statistics=(statistic,))


def variance_queries(
    domain: Domain,
    of: str,
    *,
    by: By = (),
    weight: Exact = 1,
    size: Exact | None = None,
    margin: Exact | None = None,
    relative: Exact | None = None,
    rmse: Exact | None = None,
    target_of: str | None = None,
    scales: Mapping[str, Exact] | None = None,
) -> Workload:
    """Return a workload of variances and standard deviations by group.

    The variances are over the rows with a value. The workload also contains the tables from which
    variances follow: the counts of values, the sums, and the sums of squared distances from the
    middle of the bounds.

    Args:
        domain: the domain.
        of: the name of a measure.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            level("region")}``. If it is empty, all rows are one group.
        weight: the weight of the three tables, above 0.
        size: the expected number of rows with a value in a group, which is public. The plan states
            the error of a variance for a group of this size.
        margin: a target for half the width of the interval of a standard deviation, in units of the
            measure. The target is for the confidence level of the release, in a group of ``size``
            rows whose standard deviation is the public scale.
        relative: the target as a share of the public scale; pass it instead of ``margin``.
        rmse: a target for the standard error; pass it instead of ``margin`` and ``relative``.
        target_of: ``"variance"`` if the target is for the variance, in squared values.
        scales: the public standard deviation of the measure, such as ``{"pay": 20_000}``. Defaults
            to a quarter of the distance between its bounds.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: there is no such measure or attribute; the measure has weights or totals of
            units; the size is not above 0; a target is stated without a size; or the bounds do not
            allow a scale.

    >>> domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 100)})
    >>> [product.name for product in ln.variance_queries(domain, "pay", by=["sex"])]
    ['count of pay by sex', 'sum of pay by sex', 'sum of squares of pay by sex']
    """
    stated = statistic_target(margin=margin, relative=relative, rmse=rmse)
    statistic = checked_statistic(
        domain, "variances", of, None, by, size, stated, None, target_of, scales
    )
    squares = squares_name(of)
    tables = queries(domain, statistic.along, weight=weight, count=of) + queries(
        domain, statistic.along, weight=weight, sum=of
    )
    measured = _with_measures(tables, {squares: SquaredDeviation(domain.measure(of))})
    tables = measured + queries(measured.domain, statistic.along, weight=weight, sum=squares)
    return replace(tables, statistics=(statistic,))


def correlation_queries(
    domain: Domain,
    of: Sequence[str],
    *,
    by: By = (),
    weight: Exact = 1,
    size: Exact | None = None,
    margin: Exact | None = None,
    relative: Exact | None = None,
    rmse: Exact | None = None,
    target_of: str | None = None,
    scales: Mapping[str, Exact] | None = None,
) -> Workload:
    """Return a workload of covariances and correlations of measures by group.

    Covariances and correlations are over the rows that have a value of every measure. The workload
    also contains the tables from which these numbers follow: the number of these rows, the sums of
    the distances of values from the middle of their bounds, and the sums of products of two
    distances.

    Args:
        domain: the domain.
        of: the names of 2 to 11 measures.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            level("region")}``. If it is empty, all rows are one group.
        weight: the weight of the tables, above 0.
        size: the expected number of rows with all values in a group, which is public. The plan
            states the error of a covariance for a group of this size.
        margin: a target for half the width of the interval of every correlation. The target is for
            the confidence level of the release, in a group of ``size`` rows whose standard
            deviations are the public scales.
        relative: a target to pass instead of ``margin``. For covariances, this is a share of the
            product of both scales; for correlations, it means the same as ``margin``.
        rmse: a target for the standard error; pass it instead of ``margin`` and ``relative``.
        target_of: ``"covariance"`` if the target is for the covariances, in products of values.
        scales: public standard deviations by measure. For other measures, a quarter of the distance
            between the bounds is used.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: there is no such measure or attribute; the measure has weights or totals of
            units; the size is not above 0; a target is stated without a size; or the bounds do not
            allow a scale.

    >>> domain = ln.Domain(
    ...     sex=["F", "M"],
    ...     measures={"pay": ln.Measure("income", 0, 100), "age": ln.Measure("age", 20, 60)},
    ... )
    >>> [product.name for product in ln.correlation_queries(domain, ["pay", "age"])][2:4]
    ['sum of deviations of age in rows with pay and age',
     'sum of squares of pay in rows with pay and age']
    """
    stated = statistic_target(margin=margin, relative=relative, rmse=rmse)
    statistic = checked_statistic(
        domain, "correlations", of, None, by, size, stated, None, target_of, scales
    )
    return _queries_of_complete_rows(domain, statistic, weight)


def regression_queries(
    domain: Domain,
    of: str,
    *,
    on: Sequence[str],
    by: By = (),
    weight: Exact = 1,
    size: Exact | None = None,
    margin: Exact | None = None,
    relative: Exact | None = None,
    rmse: Exact | None = None,
    target_of: str | None = None,
    scales: Mapping[str, Exact] | None = None,
) -> Workload:
    """Return a workload of a least-squares regression by group.

    The regression has an intercept, and is over the rows that have a value of every measure. The
    workload also contains the sums of the normal equations, as for `correlation_queries`.

    Args:
        domain: the domain.
        of: the measure that is explained.
        on: the names of 1 to 10 measures that explain it.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            level("region")}``. If it is empty, all rows are one group.
        weight: the weight of the tables, above 0.
        size: the expected number of rows with all values in a group, which is public. The plan
            states the error of each coefficient for a group of this size and for public scales of
            the measures.
        margin: a target for half the width of the interval of every slope. The target is for the
            confidence level of the release, in a group of ``size`` rows whose standard deviations
            are the public scales. The intercept has no target.
        relative: the target as a share of a public number: the response's scale divided by the
            predictor's scale. Pass it instead of ``margin``.
        rmse: a target for the standard error; pass it instead of ``margin`` and ``relative``.
        target_of: ``"coefficient"``, the only column that a target can be for.
        scales: public standard deviations by measure. For other measures, a quarter of the distance
            between the bounds is used.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: there is no such measure or attribute; a measure occurs twice; a measure has
            weights or totals of units; the size is not above 0; a target is stated without a size;
            or the bounds do not allow a scale.

    >>> domain = ln.Domain(
    ...     sex=["F", "M"],
    ...     measures={"pay": ln.Measure("income", 0, 100), "age": ln.Measure("age", 20, 60)},
    ... )
    >>> len(ln.regression_queries(domain, "pay", on=["age"], by=["sex"]).products)
    5
    """
    stated = statistic_target(margin=margin, relative=relative, rmse=rmse)
    statistic = checked_statistic(
        domain, "regression", of, None, by, size, stated, on, target_of, scales
    )
    return _queries_of_complete_rows(domain, statistic, weight)


def r_squared_queries(
    domain: Domain,
    of: str,
    *,
    on: Sequence[str],
    by: By = (),
    weight: Exact = 1,
    size: Exact | None = None,
    margin: Exact | None = None,
    relative: Exact | None = None,
    rmse: Exact | None = None,
    target_of: str | None = None,
    scales: Mapping[str, Exact] | None = None,
) -> Workload:
    """Return a workload of R^2 by group, for a least-squares regression.

    R^2 is the share of the variance of a measure that the predictors explain, among the rows that
    have a value of every measure. The workload also contains the tables of `correlation_queries`,
    so a release also determines the coefficients and all correlations.

    Args:
        domain: the domain.
        of: the measure that is explained.
        on: the names of 1 to 10 measures that explain it.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            level("region")}``. If it is empty, all rows are one group.
        weight: the weight of the tables, above 0.
        size: the expected number of rows with all values in a group, which is public. The plan
            states the error of R^2 for a group of this size and for public scales of the measures.
        margin: a target for half the width of the interval of R^2. The target is for the confidence
            level of the release, in a group of ``size`` rows whose standard deviations are the
            public scales.
        relative: means the same as ``margin``, because R^2 is a share.
        rmse: a target for the standard error; pass it instead of ``margin`` and ``relative``.
        target_of: ``"r_squared"``, the only column that a target can be for.
        scales: public standard deviations by measure. For other measures, a quarter of the distance
            between the bounds is used.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: there is no such measure or attribute; a measure occurs twice; a measure has
            weights or totals of units; the size is not above 0; a target is stated without a size;
            or the bounds do not allow a scale.

    >>> domain = ln.Domain(
    ...     sex=["F", "M"],
    ...     measures={"pay": ln.Measure("income", 0, 100), "age": ln.Measure("age", 20, 60)},
    ... )
    >>> ln.r_squared_queries(domain, "pay", on=["age"], by=["sex"]).statistics[0].name
    'R^2 of pay on age by sex'
    """
    stated = statistic_target(margin=margin, relative=relative, rmse=rmse)
    statistic = checked_statistic(
        domain, "r_squared", of, None, by, size, stated, on, target_of, scales
    )
    return _queries_of_complete_rows(domain, statistic, weight)


def _queries_of_complete_rows(domain: Domain, statistic: Statistic, weight: Exact) -> Workload:
    """Return a workload of a statistic of several measures and its tables."""
    present = in_domain_order(domain, statistic.variables)
    factors = [in_factor_order(present, factors) for factors in statistic.sum_factors]
    declared = complete_rows_measures(domain, present, factors)
    counts = _with_measures(queries(domain, statistic.along, weight=weight), declared)
    products = tuple(
        replace(product, measure=name) for name in declared for product in counts.products
    )
    return replace(counts, products=products, statistics=(statistic,))


def quantile_queries(
    domain: Domain,
    of: str,
    at: Sequence[Exact],
    *,
    by: By = (),
    weight: Exact = 1,
    size: Exact | None = None,
) -> Workload:
    """Return a workload of quantiles of a numeric attribute by group.

    The workload also contains the counts up to every cell, which determine the quantiles.

    Values beyond the bounds of the attribute are counted in its first and last cell, because the
    attribute has ``outside="clip"`` in the domain of the workload. Therefore no other table by this
    attribute in the same workload can leave out values beyond the bounds.

    Args:
        domain: the domain.
        of: the name of an attribute of Integers, Decimals, Bins or Edges.
        at: shares above 0 and at most 1, read exactly; ["0.25", "0.5", "0.75"] for the quartiles.
        by: as for `mean_queries`.
        weight: the weight of the table, above 0.
        size: the expected number of rows in a group, which is public. The plan states the error of
            the shares for a group of this size.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: the attribute does not exist or has no numbers; a share is not in (0, 1]; or
            ``by`` contains the number.

    >>> ln.quantile_queries(ln.Domain(age=ln.Integers(17, 90)), "age", ["0.5"]).products[0].name
    'age:prefix'
    """
    statistic = checked_statistic(domain, "quantiles", of, at, by, size)
    return _of_number(domain, statistic, weight)


def cdf_queries(
    domain: Domain, of: str, *, by: By = (), weight: Exact = 1, size: Exact | None = None
) -> Workload:
    """Return a workload of distribution functions of an attribute by group.

    The workload also contains the counts up to every cell, which determine the function.

    Args:
        domain: the domain.
        of: the name of an attribute of Integers, Decimals, Bins or Edges.
        by: as for `mean_queries`.
        weight: the weight of the table, above 0.
        size: as for `quantile_queries`.

    Returns:
        A workload, which you can add to others and pass to `plan`.

    Raises:
        InputError: as for `quantile_queries`.

    >>> ln.cdf_queries(ln.Domain(age=ln.Integers(17, 90)), "age").statistics[0].name
    'distribution of age'
    """
    statistic = checked_statistic(domain, "cdf", of, None, by, size)
    return _of_number(domain, statistic, weight)


def _of_number(domain: Domain, statistic: Statistic, weight: Exact) -> Workload:
    """Return a workload of a statistic and the counts up to every cell.

    Values beyond the bounds are counted in the first and the last cell, even if the domain drops
    them elsewhere. Quantiles of only the values between the bounds would be different numbers.
    """
    clipped = _clipped_domain(domain, [statistic.of])
    tables = queries(clipped, {**statistic.along, statistic.of: prefix()}, weight=weight)
    return replace(tables, statistics=(statistic,))
