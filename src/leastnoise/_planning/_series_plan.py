"""Continual release: plan all periods, and publish each when it ends.

The periods are the cells of an attribute of dates.

A series measures the Kronecker product C (x) A. C is the strategy along time. C is lower
triangular, so each of its rows can be measured when its period is over. A is a planner's strategy
for the other attributes. A release of the periods so far is an ordinary release over a domain that
ends with the last of these periods. The measurements of such a release follow from the first rows
of C.
"""

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from leastnoise._domain import (
    FOLDED,
    Dates,
    Domain,
    Measure,
    PerCellBound,
    PerUnit,
    UnitCount,
)
from leastnoise._error import evaluate_plan
from leastnoise._families import (
    causal_hierarchy,
    causal_strategies,
    ending_variances,
    first_rows,
    gram_diagonal,
    gram_of,
    invert_gram,
    sum_grams,
    weighted_cells,
)
from leastnoise._fitting import NOISES, fit_noise_scales
from leastnoise._mechanisms import Search
from leastnoise._plan import Plan, SeriesDetails, SeriesPlan
from leastnoise._planning._plan_calls import plan_workload
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError, one_of, refuse, whole
from leastnoise._trusted.linop import Operator, largest_entry, last_cells
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._workload import Product, QuerySet, Workload, identity, with_hidden_cells

LATE = ("drop", "arrival")
FILES_ADVICE = (
    "a pattern that differs from period to period, such as 'year=%Y/month=%m/*' or "
    "'visits-%Y-%m.csv'"
)
_PERIOD_QUERIES = ("identity", "prefix", "all_ranges", "ranges", "predicates", "matrix", "change")
# The largest number of bits of all factors of a block together: sums over 2^32 rows must stay below
# 2^62.
_MOST_BLOCK_BITS = 29
_LEAST_BITS = 5  # least bits of a coefficient along time; below, rounding costs too much
_FIRST_BITS = 20  # bits of the first strategy along time, which only gives weights
_WEIGHT_BITS = 20  # bits of the weight of a table of one period
_OtherQueries = tuple[str | None, tuple[str, ...], tuple[QuerySet, ...]]


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """The options of a series, from the table [series] of a spec.

    Attributes:
        along: the attribute of dates along which the series runs.
        late: whether rows that arrive after their period has ended are dropped, or counted on
            arrival.
        max_rows: the most rows of a unit in all periods together; None if only the unit's bound for
            each period applies.
        files: a pattern of the file names of each period, with directives for the date of its first
            day, such as ``"year=%Y/month=%m/*"``; None if the names do not depend on the period.
    """

    along: str
    late: str = "drop"
    max_rows: int | None = None
    files: str | None = None

    def __post_init__(self) -> None:
        one_of("late", self.late, LATE)
        if self.max_rows is not None:
            whole("max_rows", self.max_rows, 1)
        if self.files is not None and (not isinstance(self.files, str) or not self.files.strip()):
            raise refuse("files", self.files, FILES_ADVICE)

    def dates(self, domain: Domain) -> Dates:
        """Return the attribute whose cells are the periods of the series.

        Raise InputError if the cells of the attribute are not consecutive periods.
        """
        kind = domain.kind(one_of("along", self.along, domain.names))
        if not isinstance(kind, Dates) or kind.by in (*FOLDED, "hour"):
            raise refuse(
                "along",
                self.along,
                "an attribute with dates = { ..., by = 'day', 'week', 'month', 'quarter' or "
                "'year' }",
            )
        if (kind.null, kind.outside) != ("drop", "drop"):
            raise refuse(
                f"null and outside of {self.along}",
                f"{kind.null}, {kind.outside}",
                "drop, which they are if left out",
            )
        if kind.size < 2:
            raise refuse(f"the number of periods of {self.along}", kind.size, "at least 2")
        return kind

    def file_patterns(self, domain: Domain) -> tuple[str, ...]:
        """Return a file name pattern for each period; empty without ``files``.

        Raise InputError if two periods have the same pattern.
        """
        if self.files is None:
            return ()
        dates = self.dates(domain)
        first_days = [dates.last_day(before) + dt.timedelta(days=1) for before in range(dates.size)]
        patterns = tuple(day.strftime(self.files) for day in first_days)
        if len(set(patterns)) < len(patterns):
            raise refuse("files", self.files, FILES_ADVICE)
        return patterns

    def privacy(self, privacy: Privacy, domain: Domain) -> Privacy:
        """Compute the privacy over all periods from the privacy of one period.

        Args:
            privacy: the privacy of one period, whose bound on the rows of a unit is per period.
            domain: the domain of the series.
        """
        if privacy.unit_column is None:
            if self.max_rows is not None:
                raise refuse(
                    "max_rows",
                    self.max_rows,
                    "left out if every row is a unit",
                    "Name the column of the unit in [privacy] unit.",
                )
            return privacy
        if privacy.max_per_cell is not None:
            raise refuse(
                "max_per_cell",
                privacy.max_per_cell.rows,
                "left out in a series, where max_rows is for each period",
                "Bound the rows of a unit in all periods together by [series] max_rows.",
            )
        in_each = privacy.max_rows
        in_all = in_each * self.dates(domain).size
        if self.max_rows is not None and self.max_rows <= in_each:
            return replace(privacy, max_rows=self.max_rows)
        if self.max_rows is not None:
            in_all = min(in_all, self.max_rows)
        return replace(privacy, max_rows=in_all, max_per_cell=PerCellBound(in_each, self.along))


def series_of(plan: Plan) -> SeriesOptions | None:
    """Return the series options with which a plan was made, or None."""
    if not isinstance(plan, SeriesPlan):
        return None
    return SeriesOptions(plan.series.along, plan.series.late)


def series_plan(
    workload: Workload, privacy: Privacy, series: SeriesOptions, search: Search
) -> Plan:
    """Plan all periods of a series together.

    The plan measures the Kronecker product of a strategy along time and a planner's strategy for
    the other attributes.
    """
    series.dates(workload.domain)
    _check_workload(workload, series)
    _check_groups_of_units(workload, privacy, series)
    problem = _SeriesProblem.of(with_hidden_cells(workload), privacy, series.along)
    plan_of_period = _plan_one_period(problem, search)
    details = SeriesDetails(
        along=series.along, late=series.late, strategy_of_a_period=plan_of_period.strategy
    )
    plans = _plans_over_time(problem, plan_of_period, details)
    return min(plans, key=lambda plan: plan.expected_error().total_squared_error)


@dataclass(frozen=True, slots=True)
class _SeriesTable:
    """A table of a series, split into queries along time and other queries."""

    product: Product
    along_time: Operator
    others: _OtherQueries


@dataclass(frozen=True, slots=True)
class _SeriesProblem:
    """The tables of a series, and the noise of their measurements.

    Attributes:
        workload: the tables to answer, with hidden cells if the domain has any.
        privacy: the budget and the unit of all periods.
        along: the attribute of dates.
        noise: the kind of noise: Gaussian if the budget allows it.
        tables: the tables of the workload.
    """

    workload: Workload
    privacy: Privacy
    along: str
    noise: Noise
    tables: tuple[_SeriesTable, ...]

    @staticmethod
    def of(workload: Workload, privacy: Privacy, along: str) -> "_SeriesProblem":
        """Split every table of a workload into queries along time and others."""
        tables = [
            _SeriesTable(
                product,
                product.operators[product.attributes.index(along)],
                _other_queries(product, along),
            )
            for product in workload
        ]
        noise = max(NOISES[type(privacy.budget)], key=lambda kind: kind.norm)
        return _SeriesProblem(workload, privacy, along, noise, tuple(tables))

    @property
    def in_all_periods(self) -> bool:
        """Whether a unit may be in all periods, as rows are bounded per period."""
        return self.privacy.max_per_cell is not None

    def privacy_of_period(self) -> Privacy:
        """Return the unit and the bound on its rows in one period.

        The budget in the result is only nominal.
        """
        if self.privacy.max_per_cell is None:
            rows_of_unit = self.privacy.max_rows
        else:
            rows_of_unit = self.privacy.max_per_cell.rows
        budget = PureDP(1) if self.noise.norm == 1 else ZCDP(Fraction(1, 2))
        return Privacy(budget, unit_column=self.privacy.unit_column, max_rows=rows_of_unit)

    def errors_of_counted_cells(self) -> dict[_OtherQueries, float]:
        """Return squared errors of other attributes' queries if cells are counted."""
        domain = self.workload.domain
        return {
            table.others: table.product.rows
            / table.along_time.rows
            * domain.largest_value(table.product.measure) ** 2
            for table in self.tables
        }

    def strategies_along_time(
        self, errors: Mapping[_OtherQueries, float], bits: int
    ) -> list[Factor]:
        """Return the strategies along time to compare for weighted tables.

        The weight of a table is the error of its queries along the other attributes.
        """
        weights: dict[Operator, float] = {}
        for table in self.tables:
            weight = table.product.importance * errors[table.others]
            weights[table.along_time] = weights.get(table.along_time, 0.0) + weight
        weighted_queries = [(weight, operator) for operator, weight in weights.items()]
        return _strategies_along_time(
            self.along, weighted_queries, self.noise, bits, in_all_periods=self.in_all_periods
        )


def _plan_one_period(problem: _SeriesProblem, search: Search) -> Plan:
    """Plan the queries of a single period, on all attributes except time.

    The weight of a table is the error of its queries along time, under a first, provisional
    strategy along time. Raise InputError if the coefficients leave too few bits for the
    coefficients along time.
    """
    first_strategies = problem.strategies_along_time(problem.errors_of_counted_cells(), _FIRST_BITS)
    along_time = invert_gram(first_strategies[0 if problem.in_all_periods else -1])
    errors = [along_time.total_variance(table.along_time) for table in problem.tables]
    workload = _workload_of_one_period(problem, errors)
    privacy = problem.privacy_of_period()
    plan = plan_workload(workload, privacy, search)
    if _bits_left_for_time(plan) < _LEAST_BITS and problem.workload.has_hidden:
        # If there are hidden cells, fitted rows may measure the cells, and their coefficients are
        # large.
        plan = plan_workload(workload, privacy, replace(search, strategy="marginals"))
    if _bits_left_for_time(plan) < _LEAST_BITS and problem.noise.norm > 1:
        advice = "Choose a larger unit, smaller clip bounds for the measure, or another strategy."
        raise InputError(
            "The measurements along the other attributes have coefficients so large that too few "
            f"bits are left for the coefficients along time. {advice}"
        )
    return plan


def _plans_over_time(
    problem: _SeriesProblem, plan_of_period: Plan, details: SeriesDetails
) -> list[SeriesPlan]:
    """Extend one period's plan to all periods, for each strategy along time.

    Raise InputError if the noise of no plan can be drawn exactly.
    """
    tables = zip(plan_of_period.workload, plan_of_period.expected_error().tables, strict=True)
    errors = {
        _other_queries(product, problem.along): table.rmse**2 * table.queries
        for product, table in tables
    }
    plans = list[SeriesPlan]()
    refusals = list[InputError]()
    for factor in problem.strategies_along_time(errors, _bits_left_for_time(plan_of_period)):
        try:
            measurements = _extend_over_time(problem, plan_of_period, factor)
        except InputError as error:  # noise with these scales cannot be drawn exactly
            refusals.append(error)
            continue
        plan = evaluate_plan(problem.workload, measurements, "series")
        plans.append(SeriesPlan.of(plan, details))
    if not plans:
        raise refusals[0]
    return plans


def _extend_over_time(
    problem: _SeriesProblem, plan_of_period: Plan, along_time: Factor
) -> Measurements:
    """Return the product of a period's measurements and a strategy along time."""
    domain = problem.workload.domain
    weighted_blocks = [
        (_extend_block(block, along_time, domain), 1 / float(block.scale))
        for block in plan_of_period.measured().blocks
    ]
    return fit_noise_scales(domain, problem.privacy, problem.noise, weighted_blocks)


def _strategies_along_time(
    along: str,
    weighted_queries: Sequence[tuple[float, Operator]],
    noise: Noise,
    bits: int,
    *,
    in_all_periods: bool,
) -> list[Factor]:
    """Return the strategies along time to compare, as lower triangular factors.

    If a unit may have rows in all periods, the result also has a strategy that is best for such
    units.
    """
    if noise.norm == 1:
        if in_all_periods:
            unit_cases = [True, False]
        else:
            unit_cases = [False]
        return [
            causal_hierarchy(along, weighted_queries, in_all_cells=in_all_cells)
            for in_all_cells in unit_cases
        ]
    gram = sum_grams([(weight, gram_of(operator)) for weight, operator in weighted_queries])
    strategies = causal_strategies(along, gram, bits)
    if not in_all_periods:
        return strategies
    squares = sum(weight * gram_diagonal(operator) for weight, operator in weighted_queries)
    return [weighted_cells(along, np.asarray(squares), noise.norm), *strategies]


def _bits_left_for_time(plan_of_period: Plan) -> int:
    """Return the number of bits that coefficients along time may have.

    More bits would make the sums overflow.
    """
    measured = plan_of_period.measured()
    largest = (
        int(measured.largest_values(block).max())
        * math.prod(largest_entry(factor.operator) for factor in block.factors)
        for block in measured.blocks
    )
    return _MOST_BLOCK_BITS - math.ceil(math.log2(max(largest)))


def _check_workload(workload: Workload, series: SeriesOptions) -> None:
    """Raise for queries that cannot be answered when each period ends."""
    along = series.along
    if series.late == "arrival" and workload.measures != (None,):
        advice = "The sum of late values is not known."
        raise refuse(
            "[series] late", "arrival", '"drop" if sums, means or units are requested', advice
        )
    for statistic in workload.statistics:
        if statistic.along.get(along) != identity():
            raise refuse(
                f"the groups of the {statistic.name}",
                statistic.groups_name or "none",
                f"with {along} in by: one for each period",
            )
    if any(
        isinstance(measure, PerUnit) and along not in measure.attributes
        for measure in workload.domain.measures.values()
    ):
        raise refuse(
            "of_unit",
            along,
            "attributes without it in a series",
            "A unit counts once in each period, and not once in all periods.",
        )
    for product in workload:
        _check_table(product, along)


def _check_table(product: Product, along: str) -> None:
    """Raise for a table that cannot be published period by period."""
    if along not in product.attributes:
        raise InputError(
            f"Every table of a series must have queries along its periods; {product.name} has "
            f"none. Request {along} = 'prefix' for totals so far, or {along} = 'identity' for each "
            "period."
        )
    group_positions = product.unit_groups(along) or {}
    if any(position != cells[-1] for cells, position in group_positions.items()):
        raise refuse(
            f"the queries along {along} that count units",
            product.name,
            "windows that end in different periods, in a series",
            "Request the other queries in a separate entry.",
        )
    kind = product.query_sets[product.attributes.index(along)].kind
    if kind not in _PERIOD_QUERIES:
        raise refuse(
            f"the query set of a series along {along}", kind, "one of " + ", ".join(_PERIOD_QUERIES)
        )


def _check_groups_of_units(workload: Workload, privacy: Privacy, series: SeriesOptions) -> None:
    """Raise for unit counts in groups if rows are bounded over all periods.

    The groups are windows of periods. With this bound, a unit's rows of closed periods are left
    out, but the count of a window may need these rows.
    """
    bound = privacy.max_per_cell
    periods = workload.domain.cells(series.along)
    if privacy.unit_column is None or (bound and bound.rows * periods <= privacy.max_rows):
        return
    for measure in workload.domain.measures.values():
        if isinstance(measure, UnitCount) and measure.has_groups:
            raise refuse(
                f"[series] max_rows together with units by {' x '.join(measure.attributes)}",
                privacy.max_rows,
                "left out if units are counted by levels, ranges or windows",
                "Leave out [series] max_rows, or count the units of each cell.",
            )


def _other_queries(product: Product, along: str) -> _OtherQueries:
    """Return a table's measure, and its query sets except the one along time."""
    other_sets = {
        name: query_set
        for name, query_set in zip(product.attributes, product.query_sets, strict=True)
        if name != along
    }
    return product.measure, tuple(other_sets), tuple(other_sets.values())


def _workload_of_one_period(problem: _SeriesProblem, errors: Sequence[float]) -> Workload:
    """Return a workload for one period, weighted by the errors along time."""
    domain = _domain_of_first_periods(problem.workload.domain, problem.along, 1)
    weights: dict[_OtherQueries, float] = {}
    for table, error in zip(problem.tables, errors, strict=True):
        weight = float(table.product.weight) ** 2 * error
        weights[table.others] = weights.get(table.others, 0.0) + weight
    most = max(weights.values())
    products = []
    for (measure, names, query_sets), weight in weights.items():
        sets = {problem.along: identity(), **dict(zip(names, query_sets, strict=True))}
        ordered = tuple(name for name in domain.names if name in sets)
        products.append(
            Product(
                domain=domain,
                attributes=ordered,
                query_sets=tuple(sets[name] for name in ordered),
                weight=_dyadic_weight(math.sqrt(weight / most)),
                measure=measure,
            )
        )
    return Workload(domain, tuple(products))


def _dyadic_weight(weight: float) -> Fraction:
    """Round a weight of at most 1 to a positive dyadic fraction."""
    return Fraction(max(1, round(weight * 2**_WEIGHT_BITS)), 2**_WEIGHT_BITS)


def _domain_of_first_periods(domain: Domain, along: str, periods: int) -> Domain:
    """Return the domain with only the first periods of a series."""
    kinds: dict[str, Any] = {name: domain.kind(name) for name in domain.names}
    measures = {
        name: _limit_to_ended_groups(measure, along, periods)
        for name, measure in domain.measures.items()
    }
    return Domain({**kinds, along: kinds[along].until(periods)}, measures=measures)


def _limit_to_ended_groups(measure: Measure, along: str, periods: int) -> Measure:
    """Limit a count of units in groups to groups that have ended.

    If no group has ended or there is only one period, units are counted in each period. Other
    measures are returned unchanged.
    """
    if not isinstance(measure, UnitCount) or along not in measure.attributes:
        return measure
    groups = [*measure.groups]
    at = measure.attributes.index(along)
    ending = [group for group in groups[at] or () if group[-1] < periods]
    groups[at] = tuple(ending) if ending and periods > 1 else None
    return UnitCount(measure.attributes, groups)


def _extend_block(block: Block, along_time: Factor, domain: Domain) -> Block:
    """Multiply a block of one period by a strategy along time."""
    factors = [along_time]
    for factor in block.factors:
        names = tuple(name for name in factor.attributes if name not in along_time.attributes)
        if names:
            factors.append(Factor(names, factor.operator, factor.row_weights))
    return replace(
        block,
        factors=tuple(sorted(factors, key=lambda factor: domain.names.index(factor.attributes[0]))),
    )


def truncate_plan(plan: Plan, periods: int) -> Plan | None:
    """Return the plan of a release after a series' first periods, or None.

    The plan has the queries that can be answered at the end of the last of these periods. The
    result is None if there are no such queries.
    """
    if not isinstance(plan, SeriesPlan):
        raise InputError("This plan is not a series; write [series] along = ... in its spec.")
    series = plan.series
    domain = _domain_of_first_periods(plan.domain, series.along, periods)
    products = tuple(
        early
        for product in plan.workload
        if (early := _queries_of_first_periods(product, series.along, domain)) is not None
    )
    if not products:
        return None
    measured = plan.measured()
    blocks = []
    for block in measured.blocks:
        cut = tuple(
            first_rows(factor, periods) if factor.attributes == (series.along,) else factor
            for factor in block.factors
        )
        blocks.append(replace(block, factors=cut))
    series_details = replace(
        series,
        through=str(domain.kind(series.along).labels[-1]),
        periods=plan.domain.cells(series.along),
        cost=plan.cost(),
    )
    measurements = Measurements(
        domain=domain,
        privacy=plan.privacy,
        noise=measured.noise,
        blocks=tuple(blocks),
        grid=measured.grid,
    )
    evaluated = evaluate_plan(
        Workload(domain, products, plan.workload.statistics),
        measurements,
        plan.strategy,
        details=plan.details,
    )
    return SeriesPlan.of(evaluated, series_details)


def _queries_of_first_periods(product: Product, along: str, domain: Domain) -> Product | None:
    """Restrict a table to queries that end within the first periods, or None.

    The result is None if there is no such query.
    """
    index = product.attributes.index(along)
    periods = domain.cells(along)
    query_set = product.query_sets[index]
    if query_set.kind == "change":
        if query_set.arguments[0][0] >= periods:
            return None
    elif query_set.arguments:
        arguments = [
            argument
            for argument, last in zip(
                query_set.arguments, last_cells(product.operators[index]), strict=True
            )
            if last < periods
        ]
        if not arguments:
            return None
        query_set = QuerySet(
            query_set.kind,
            tuple(
                argument[:periods] if query_set.kind == "matrix" else argument
                for argument in arguments
            ),
        )
    sets = (*product.query_sets[:index], query_set, *product.query_sets[index + 1 :])
    return replace(product, domain=domain, query_sets=sets)


def period_errors(plan: Plan) -> Mapping[str, list[float | None]]:
    """Map each period to the standard errors of its new answers, by table.

    An answer is new in the period in which it is first published. If a table has no new answers in
    a period, its entry is None.
    """
    series = series_of(plan)
    if series is None:
        return {}
    labels = plan.domain.kind(series.along).labels
    factor = next(
        factor
        for factor in plan.measured().blocks[0].factors
        if factor.attributes == (series.along,)
    )
    columns = []
    for product, table in zip(plan.workload, plan.expected_error().tables, strict=True):
        operator = product.operators[product.attributes.index(series.along)]
        sums = ending_variances(factor, operator, range(1, len(labels) + 1))
        numbers = np.bincount(last_cells(operator), minlength=len(labels))
        # The part of the error that comes from the other attributes.
        unit = table.rmse**2 * operator.rows / invert_gram(factor).total_variance(operator)
        columns.append(
            [
                product.unit * math.sqrt(unit * variance / number) if number else None
                for variance, number in zip(sums, numbers, strict=True)
            ]
        )
    return {str(label): list(row) for label, *row in zip(labels, *columns, strict=True)}
