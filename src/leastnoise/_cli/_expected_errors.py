"""The expected errors of a plan: their numbers, and the tables that show them."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import click

from leastnoise._cli._output import format_number, print_table
from leastnoise._error import LEVEL, StatisticError, interval_multiplier, statistic_errors
from leastnoise._frames import pluralize
from leastnoise._mechanisms import largest_rank_errors
from leastnoise._plan import AdaptivePlan, LinearPlan, Plan, TableError
from leastnoise._planning import (
    ComparisonStatus,
    TargetStatus,
    statistic_std_errors,
    statistic_target_statuses,
    target_statuses,
)
from leastnoise._release import write_record
from leastnoise._texts import (
    ENGLISH,
    Catalogue,
    name_attribute,
    name_rows,
    name_summed,
    statistic_title,
    table_title,
    unit_of_sums,
)
from leastnoise._workload import Statistic, leaves_out

MOST_TABLES = 40  # rows that are printed; --json has all
_BY_DELTA = (
    "std_error of a mean in a group of size rows, at most: by the delta method, at the largest "
    "mean that the bounds allow"
)
_BY_DELTA_OF_VARIANCE = (
    "std_error of a variance (squared values) in a group of size rows, at most: by the delta "
    "method, at the mean and variance within the bounds at which it is largest"
)
_BY_DELTA_OF_COVARIANCE = (
    "std_error of a covariance (products of values) in a group of size rows with all values, at "
    "most: by the delta method, at the means and covariance within the bounds at which it is "
    "largest; std_error is the largest of parts"
)
_AT_PUBLIC_SCALES = (
    "std_error of a coefficient in a group of size rows with all values, by the delta method, at "
    "public scales: means in the middle of the bounds, standard deviations as stated in scales or "
    "a quarter of the distance of the bounds, predictors without correlation that explain the "
    "response wholly and in equal parts; std_error is the largest of parts"
)
_AT_PUBLIC_SCALES_OF_R_SQUARED = (
    "std_error of R^2 in a group of size rows with all values, at most: by the delta method to "
    "second order, at public scales: means in the middle half of the bounds, standard deviations "
    "as stated in scales or a quarter of the distance of the bounds, predictors without "
    "correlation that explain any share of the response in equal parts"
)
_SIZE_KEY = "size = ... in its [[workload]]"
_BY_SHARE = "rows: standard error of the counts up to a cell; std_error is their share of size rows"
_METHODS = {
    "means": _BY_DELTA,
    "variances": _BY_DELTA_OF_VARIANCE,
    "correlations": _BY_DELTA_OF_COVARIANCE,
    "regression": _AT_PUBLIC_SCALES,
    "r_squared": _AT_PUBLIC_SCALES_OF_R_SQUARED,
}


def target_json(status: TargetStatus | ComparisonStatus | None) -> dict[str, Any]:
    """Return a target, the error that it limits, and whether it is met, as JSON."""
    if status is None:
        return {}
    error = status.error if math.isfinite(status.error) else None
    return {"target": {status.kind: status.most}, status.kind: error, "is_met": status.is_met}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTable:
    """The expected error of a table; errors that depend on the data are None.

    Errors of counts are in rows. Errors of sums are in the unit of the measure.

    Attributes:
        name: the name of the table; a number follows equal names.
        queries: the number of queries.
        rmse: the root mean square error of the answers.
        largest_std: the largest standard error of an answer.
        largest_is_bound: whether ``largest_std`` is an upper bound instead of the exact error.
        weight: the weight of the table in the workload.
        measure: the summed measure; None for counts of rows.
        leaves_out: the attributes that a row must have; a row without a value of one of them is not
            in the table.
        target: the target for the error and its status; None without a target.
    """

    name: str
    queries: int
    rmse: float | None
    largest_std: float | None
    largest_is_bound: bool | None
    weight: float
    measure: str | None
    leaves_out: tuple[str, ...]
    target: TargetStatus | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the table as a JSON object, without a target if it has none."""
        return {**write_record(replace(self, target=None)), **target_json(self.target)}


def expected_tables(plan: Plan, level: float = 0.95) -> list[ExpectedTable]:
    """Return the expected error of every table of a plan."""
    products = plan.workload.products
    table_errors: Sequence[TableError | None] = [None] * len(products)
    targets: Sequence[TargetStatus | None] = [None] * len(products)
    if plan.data_independent_error is not None:
        table_errors = plan.data_independent_error.tables
        targets = target_statuses(plan, level)
    name_counts = Counter[str]()
    tables = []
    for product, error, target in zip(products, table_errors, targets, strict=True):
        name_counts[product.name] += 1
        count = name_counts[product.name]
        tables.append(
            ExpectedTable(
                name=product.name if count == 1 else f"{product.name} ({count})",
                queries=product.rows,
                rmse=None if error is None else error.rmse * product.unit,
                largest_std=None if error is None else error.largest_std * product.unit,
                largest_is_bound=None if error is None else error.largest_is_bound,
                weight=float(product.weight),
                measure=product.measure,
                leaves_out=tuple(leaves_out(product)),
                target=target,
            )
        )
    return tables


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExpectedStatistic:
    """The expected error of a statistic, such as means, quantiles or a CDF.

    Attributes:
        name: the title of the statistic, or its name if it has no title.
        error: the error of the counts behind the statistic; and, if the spec states a public size,
            the error of the statistic.
        size_quantity: "rows" if the public size is a number of rows, "weights" if it is a sum of
            weights.
        margin_of_counts: the margin of the cumulative counts, in rows; stated only if a private
            choice of quantiles would be more accurate, otherwise None.
        selected_within: the largest error in rank of privately chosen quantiles, in rows; None if
            ``margin_of_counts`` is None.
        target: the target of the statistic and the error that it limits; None without a target.
        at_scales: the standard errors of standard deviations or correlations, computed for scales
            that the spec states.
    """

    name: str
    error: StatisticError
    size_quantity: str
    margin_of_counts: float | None
    selected_within: float | None
    target: TargetStatus | None
    at_scales: Mapping[str, float]

    @property
    def statistic(self) -> Statistic:
        """The statistic itself."""
        return self.error.statistic

    @property
    def size(self) -> str:
        """The public size of each group as text."""
        return format_number(float(self.statistic.size or 0))

    def to_json(self) -> dict[str, Any]:
        """Return the statistic as a JSON object; facts without a value are left out."""
        error = self.error
        statistic = self.statistic
        optional = {
            "margin_of_counts": self.margin_of_counts,
            "selected_within": self.selected_within,
        }
        return {
            "name": self.name,
            "request": statistic.to_json(),
            "tables": list(error.tables),
            "rows": error.rows,
            "largest_rows": error.largest_rows,
            "size": None if statistic.size is None else float(statistic.size),
            "size_is": self.size_quantity,
            "std_error": error.std_error,
            **({"parts": dict(error.parts)} if statistic.form.row_key else {}),
            "method": _METHODS.get(statistic.kind, _BY_SHARE),
            **{name: number for name, number in optional.items() if number is not None},
            **({"at_scales": dict(self.at_scales)} if self.at_scales else {}),
            **target_json(self.target),
        }


def expected_statistics(
    plan: Plan, level: float, catalogue: Catalogue = ENGLISH
) -> list[_ExpectedStatistic]:
    """Return the expected errors of the statistics of a plan.

    Statistics are named by their titles if the catalogue has display names.
    """
    if isinstance(plan, AdaptivePlan):
        return []
    reach_of: dict[Statistic, float] = {}
    if type(plan) is LinearPlan and not plan.earlier:  # a series cannot choose quantiles
        reach_of = largest_rank_errors(plan.workload, plan.privacy)
    targets = statistic_target_statuses(plan, level)
    multiplier = interval_multiplier(plan.measured().noise, LEVEL)
    statistics = []
    for error, target in zip(statistic_errors(plan), targets, strict=True):
        statistic = error.statistic
        name = statistic.name
        if not catalogue.names.is_empty:
            name = statistic_title(statistic, plan.domain, catalogue)
        margin = error.rows * multiplier
        reach = reach_of.get(statistic)
        is_selectable = reach is not None and reach <= margin
        is_weighted = plan.workload.weight_of(statistic) is not None
        statistics.append(
            _ExpectedStatistic(
                name=name,
                error=error,
                size_quantity="weights" if is_weighted else "rows",
                margin_of_counts=margin if is_selectable else None,
                selected_within=reach if is_selectable else None,
                target=target,
                at_scales=_std_errors_at_scales(plan, statistic),
            )
        )
    return statistics


def _std_errors_at_scales(plan: Plan, statistic: Statistic) -> dict[str, float]:
    """Return the standard errors of parameters, for scales that the spec states.

    Only standard deviations and correlations have errors of this kind. The errors of regression
    coefficients and of R^2 are always computed for such scales, so they are not listed here.
    """
    if statistic.size is None or statistic.kind not in ("variances", "correlations"):
        return {}
    return statistic_std_errors(plan, replace(statistic, target=None, target_of=""))


def with_titles(
    tables: list[ExpectedTable], plan: Plan, catalogue: Catalogue
) -> list[ExpectedTable]:
    """Replace the names of tables by their display titles, if any exist."""
    if catalogue.names.is_empty:
        return tables
    return [
        replace(table, name=table_title(product, catalogue))
        for table, product in zip(tables, plan.workload.products, strict=True)
    ]


class _Column(NamedTuple):
    """A column of the table of expected errors.

    ``cell`` takes a table and the unit of its errors, and returns the text of the cell.
    """

    heading: str
    alignment: str
    cell: Callable[[ExpectedTable, str], str]
    is_shown: bool = True


def print_expected_errors(
    plan: Plan, tables: Sequence[ExpectedTable], catalogue: Catalogue
) -> list[tuple[str, str]]:
    """Print the errors of each table; return labels and texts for the total.

    Columns that are equal in all tables are left out.
    """
    columns = [column for column in _error_columns(plan, tables, catalogue) if column.is_shown]
    units = _table_units(plan, catalogue)
    rows = [
        [column.cell(table, unit) for column in columns]
        for table, unit in zip(tables[:MOST_TABLES], units, strict=False)
    ]
    print_table("Expected error", [column[:2] for column in columns], rows)
    if remaining := tables[MOST_TABLES:]:
        errors = [table.rmse for table in remaining if table.rmse is not None]
        queries = pluralize(sum(table.queries for table in remaining), "query", "queries")
        click.echo(
            f"and {pluralize(len(remaining), 'more table')}, {queries}, rmse "
            f"{format_number(min(errors))} to {format_number(max(errors))} (--json)\n"
        )
    expected_error = plan.expected_error()
    return [
        ("total squared error", format_number(expected_error.total_squared_error)),
        ("lower bound", format_lower_bound(expected_error.lower_bound)),
    ]


def format_lower_bound(bound: float) -> str:
    """Return a lower bound of the squared error as text; 0 if none is known."""
    if bound > 0:
        return format_number(bound)
    return "none known"


def _table_units(plan: Plan, catalogue: Catalogue) -> list[str]:
    """Return the unit of each table's answers: rows, persons, or a measure."""
    units = []
    for product in plan.workload:
        if product.of_values:
            measure = name_summed(product.domain, str(product.measure), catalogue)
            units.append(unit_of_sums(product, catalogue) or measure)
        elif product.of_units:
            units.append(catalogue.names.units or "units")
        else:
            units.append(name_rows(catalogue))
    return units


def _error_columns(
    plan: Plan, tables: Sequence[ExpectedTable], catalogue: Catalogue
) -> list[_Column]:
    """Return all possible columns of the table of expected errors."""
    hidden = {name for name in plan.domain.names if plan.domain.kind(name).hidden}

    def largest_error(table: ExpectedTable, _unit: str) -> str:
        """Return the largest standard error of a table, or the bound on it, as text."""
        if table.largest_is_bound:
            sign = "<= "
        else:
            sign = ""
        return sign + format_optional(table.largest_std)

    def hidden_left_out(table: ExpectedTable, _unit: str) -> str:
        """Return the names of attributes for which a table omits rows without values."""
        return ", ".join(
            name_attribute(name, catalogue) for name in table.leaves_out if name in hidden
        )

    sizes = {
        table.name: float(product.size)
        for table, product in zip(tables, plan.workload.products, strict=True)
        if product.size is not None
    }

    def error_by_size(table: ExpectedTable, _unit: str) -> str:
        """Return the largest standard error as a share of the public size, as text."""
        if table.name not in sizes or table.largest_std is None:
            return ""
        return f"{table.largest_std / sizes[table.name]:.1%}"

    has_weights = any(table.weight != 1 for table in tables)
    has_targets = any(table.target is not None for table in tables)
    has_units = len({*_table_units(plan, catalogue), name_rows(catalogue)}) > 1
    return [
        _Column("table", "fold", lambda table, _: table.name),
        _Column("queries", "right", lambda table, _: f"{table.queries:,}"),
        _Column("rmse", "right", lambda table, _: format_optional(table.rmse)),
        _Column("largest\nstd error", "right", largest_error),
        _Column("in", "fold", lambda _, unit: unit, has_units),
        _Column("of the\npublic size", "right", error_by_size, bool(sizes)),
        _Column("weight", "right", lambda table, _: f"{table.weight:g}", has_weights),
        _Column("target", "left", lambda table, _: describe_target(table.target), has_targets),
        _Column("leaves out\nrows without", "fold", hidden_left_out, bool(hidden)),
    ]


def print_statistics(statistics: Sequence[_ExpectedStatistic]) -> None:
    """Print the expected errors of means, quantiles and distribution functions."""
    if not statistics:
        return
    rows = [
        [expected.name, _describe_error(expected), describe_target(expected.target)]
        for expected in statistics
    ]
    columns = [("made of the tables", "fold"), ("known beforehand", "fold"), ("target", "left")]
    if any(expected.target is not None for expected in statistics):
        column_count = 3
    else:
        column_count = 2
    print_table("", columns[:column_count], [row[:column_count] for row in rows])


def _describe_error(expected: _ExpectedStatistic) -> str:
    """Describe the expected error of a statistic in a phrase."""
    kind = expected.statistic.kind
    if kind == "means":
        return _describe_mean_error(expected)
    if kind == "variances":
        return _describe_variance_error(expected)
    if kind in ("correlations", "regression"):
        return _describe_parameter_errors(expected)
    if kind == "r_squared":
        return _describe_r_squared_error(expected)
    if expected.size_quantity == "weights":
        return _describe_weighted_share_error(expected)
    error = expected.error
    words = f"standard error of the counts up to a cell {format_number(error.rows)} rows"
    if error.std_error is not None:
        words = f"{words}, {format_number(error.std_error)} of {expected.size} rows"
    if expected.selected_within is None:
        return words
    return (
        f'{words}; strategy = "selected_quantiles" would choose values within '
        f"{format_number(expected.selected_within)} rows of their ranks (95%), with wider "
        "intervals"
    )


def _describe_weighted_share_error(expected: _ExpectedStatistic) -> str:
    """Describe the error of weighted shares for the public sum of weights."""
    if expected.error.std_error is None:
        return "depends on the sum of the weights of a group; state it as size for the error"
    return (
        f"standard error of the shares up to a cell {format_number(expected.error.std_error)} in a "
        f"group whose weights add up to {expected.size}"
    )


def _describe_mean_error(expected: _ExpectedStatistic) -> str:
    """Describe the error of a mean for the public group size.

    Without a public size, describe which size the spec should state.
    """
    size = "rows"
    remark = ""
    group = f"of {expected.size} rows"
    if expected.size_quantity == "weights":
        size = "sum of the weights"
        remark = ", about their sum of weights,"
        group = f"with weights of {expected.size} in all"
    if expected.error.std_error is None:
        return (
            f"depends on the {size} of a group; state a public size{remark} for the error of a "
            f"mean ({_SIZE_KEY})"
        )
    std_error = format_number(expected.error.std_error)
    return f"standard error at most {std_error} in a group {group} (delta method)"


def _describe_variance_error(expected: _ExpectedStatistic) -> str:
    """Describe the error of a variance for the public group size."""
    if expected.error.std_error is None:
        return (
            "depends on the rows of a group; state a public size for the largest error of a "
            f"variance ({_SIZE_KEY})"
        )
    std_error = format_number(expected.error.std_error)
    at_scales = format_number(expected.at_scales["std_dev"])
    return (
        f"standard error of the variance at most {std_error} in a group of {expected.size} rows "
        f"(delta method); of the standard deviation {at_scales} at the public scale"
    )


def _describe_parameter_errors(expected: _ExpectedStatistic) -> str:
    """Describe errors of covariances or coefficients for the public group size."""
    is_regression = expected.statistic.kind == "regression"
    if expected.error.std_error is None:
        numbers = "each coefficient" if is_regression else "each covariance"
        return (
            f"depends on the rows of a group; state a public size for the error of {numbers} "
            f"({_SIZE_KEY})"
        )
    listing = ", ".join(f"{name} {format_number(error)}" for name, error in expected.error.parts)
    if is_regression:
        return (
            f"standard error of each coefficient in a group of {expected.size} rows, at public "
            f"scales: {listing}"
        )
    at_scales = ", ".join(
        f"{name} {format_number(error)}" for name, error in expected.at_scales.items()
    )
    return (
        f"standard error of each covariance in a group of {expected.size} rows, at most: {listing} "
        f"(delta method); of each correlation at public scales: {at_scales}"
    )


def _describe_r_squared_error(expected: _ExpectedStatistic) -> str:
    """Describe the error of R^2 for the public group size."""
    if expected.error.std_error is None:
        return (
            "depends on the rows of a group; state a public size for the largest error of R^2 "
            f"({_SIZE_KEY})"
        )
    std_error = format_number(expected.error.std_error)
    return (
        f"standard error of R^2 at most {std_error} in a group of {expected.size} rows, at public "
        "scales"
    )


def describe_target(status: TargetStatus | ComparisonStatus | None) -> str:
    """Describe a target and the error that it limits, such as "margin 50: 48.2"."""
    if status is None:
        return ""
    error = "no bound"
    if math.isfinite(status.error):
        error = format_number(status.error)
    remark = "" if status.is_met else ", missed"
    return f"{status.kind} {format_number(status.most)}: {error}{remark}"


def format_optional(error: float | None) -> str:
    """Format an error; empty for None."""
    if error is None:
        return ""
    return format_number(error)
