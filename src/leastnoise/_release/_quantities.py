"""Describe the quantity and the unit of every column of numbers.

Manifests, Parquet files and CSVW contain these descriptions in English, and workbooks contain them
in the language of the release. Sums, means and quantiles have the display unit of the measure. If
no display unit is stated, they have the unit of the values in the measure's column.
"""

from collections.abc import Mapping

from leastnoise._domain import (
    CompleteCount,
    DeviationProduct,
    Domain,
    Measure,
    SquaredDeviation,
    UnitCount,
    ValueCount,
    Weighted,
)
from leastnoise._release._release_tables import AnswerTable, ResultTable
from leastnoise._release._statistics import StatisticTable
from leastnoise._texts import (
    ENGLISH,
    Catalogue,
    name_attribute,
    name_measure,
    name_quantity,
    name_rows,
    name_share_total,
    name_statistic,
    name_weighted,
    unit_of_declared,
)
from leastnoise._workload import Product, Statistic

_ANSWER_COLUMNS = (
    "noise_std",
    "approximation_std",
    "low",
    "high",
    "answer_non_negative",
    "answer_integer",
    "answer_nnls",
    "nnls_rmse",
    "answer_local",
    "answer_top_down",
    "margin",
)
"""The columns of tables that have the unit of the answer."""
_SURVEY_COLUMNS = (
    "sampling_std",
    "sampling_low",
    "sampling_high",
    "both_low",
    "both_high",
    "cv",
    "reliability",
)
"""The columns that only tables with a stated sampling error have."""
_INTERVAL_COLUMNS = ("std_error", "low", "high")


def describe_survey_columns(catalogue: Catalogue = ENGLISH) -> dict[str, str]:
    """Map the name of each column of a sampling error to the column's meaning."""
    return {name: catalogue.say(f"column_{name}") for name in _SURVEY_COLUMNS}


def describe_quantity(product: Product, catalogue: Catalogue = ENGLISH) -> str:
    """Return a text with the quantity and unit of a table's answers.

    An example is ``sum of pay, in the unit of the column 'pay'``.
    """
    quantity = name_quantity(product, catalogue)
    if not product.of_values:
        return catalogue.say("column_number_of", counted=quantity)
    unit = _describe_unit(product.domain, _measure_of(product), catalogue)
    return catalogue.say("column_in_unit", text=quantity, unit=unit)


def describe_columns(result: ResultTable, catalogue: Catalogue = ENGLISH) -> dict[str, str]:
    """Map the name of each number column of a result to the column's meaning.

    Args:
        result: a table or a statistic.
        catalogue: the catalogue of the language; if it has display names, they are used.
    """
    if isinstance(result, AnswerTable):
        meanings = _describe_table_columns(result.product, catalogue)
    elif isinstance(result, StatisticTable):
        meanings = _describe_statistic_columns(result, catalogue)
    else:
        return {}
    if result.sampling is not None:
        meanings |= describe_survey_columns(catalogue)
    return {name: meanings[name] for name in result.numbers() if name in meanings}


def describe_margin(result: AnswerTable, catalogue: Catalogue) -> str:
    """Return the meaning of the column ``margin``, which only workbooks have."""
    return _describe_table_columns(result.product, catalogue)["margin"]


def _measure_of(product: Product) -> Measure | None:
    """Return the measure of a table as the domain declares it; None for counts."""
    if product.measure is None:
        return None
    return product.domain.measure(product.measure)


def _describe_unit(domain: Domain, measure: Measure | None, catalogue: Catalogue) -> str:
    """Return the unit of a measure's sums as text; None means the unit of rows."""
    if measure is None or isinstance(measure, (CompleteCount, ValueCount)):
        return name_rows(catalogue)
    if isinstance(measure, UnitCount):
        return catalogue.names.units or catalogue.say("column_units")
    if isinstance(measure, SquaredDeviation):
        return _square(_describe_unit(domain, measure.of, catalogue), catalogue)
    if isinstance(measure, DeviationProduct):
        first, *others = (_describe_unit(domain, of, catalogue) for of in measure.factors)
        for other in others:
            first = catalogue.say("column_product", first=first, second=other)
        return first
    if not isinstance(measure, Weighted):
        unit = unit_of_declared(domain, measure, catalogue)
        return unit or _describe_column_unit(measure.column, catalogue)
    # A weighted measure has the display unit of its measure, as in titles.
    stated_unit = unit_of_declared(domain, measure.of, catalogue)
    if stated_unit:
        return stated_unit
    weight = _describe_unit(domain, measure.weight, catalogue)
    if isinstance(measure.of, ValueCount):
        return weight
    values = _describe_unit(domain, measure.of, catalogue)
    return catalogue.say("column_product", first=values, second=weight)


def _describe_column_unit(column: str, catalogue: Catalogue) -> str:
    """Return a phrase for the unit of the values in a column of the data."""
    return catalogue.say("column_unit_of", column=catalogue.quote(column))


def _square(unit: str, catalogue: Catalogue) -> str:
    """Return a phrase for the square of a unit."""
    return catalogue.say("column_squared", unit=unit)


def _describe_table_columns(product: Product, catalogue: Catalogue) -> dict[str, str]:
    """Map the name of each possible number column of a table to its meaning."""
    unit = _describe_unit(product.domain, _measure_of(product), catalogue)
    quantity = describe_quantity(product, catalogue)
    meanings = {"answer": catalogue.say("column_answer", quantity=quantity)}
    for name in _ANSWER_COLUMNS:
        text = catalogue.say(f"column_{name}")
        meanings[name] = catalogue.say("column_in_unit", text=text, unit=unit)
    return meanings


def _describe_statistic_columns(table: StatisticTable, catalogue: Catalogue) -> dict[str, str]:
    """Map the name of each number column of a statistic to its meaning."""
    statistic = table.statistic
    domain = table.domain
    if statistic.kind == "correlations":
        return _describe_correlation_columns(statistic, domain, catalogue)
    if statistic.kind == "regression":
        return _describe_regression_columns(statistic, domain, catalogue)
    if statistic.kind == "r_squared":
        return _describe_r_squared_columns(statistic, domain, catalogue)
    if statistic.kind == "variances":
        return _describe_variance_columns(statistic, domain, catalogue)
    if statistic.form.of_measure:
        return _describe_mean_columns(statistic, domain, catalogue)
    column = domain.kind(statistic.of).reading.column or statistic.of
    unit = catalogue.names.attribute(statistic.of).unit
    unit = unit or _describe_column_unit(column, catalogue)
    if statistic.form.at_shares:
        return _describe_quantile_columns(statistic, domain, unit, catalogue)
    share = catalogue.say("column_share", rows=name_share_total(statistic, domain, catalogue))
    up_to = catalogue.say("column_up_to")
    return {
        "share": share,
        "up_to": catalogue.say("column_in_unit", text=up_to, unit=unit),
        **{
            name: catalogue.say("column_of_share", text=text)
            for name, text in _describe_intervals("share", catalogue).items()
        },
    }


def _describe_intervals(value_name: str, catalogue: Catalogue, unit: str = "") -> dict[str, str]:
    """Return the meanings of a value's standard error and interval ends."""
    meanings = {}
    for name in _INTERVAL_COLUMNS:
        text = catalogue.say(f"column_{name}_of", column=value_name)
        if unit:
            text = catalogue.say("column_in_unit", text=text, unit=unit)
        meanings[name] = text
    return meanings


def _describe_quantile_columns(
    statistic: Statistic, domain: Domain, unit: str, catalogue: Catalogue
) -> dict[str, str]:
    """Return the meaning of each number column of a table of quantiles."""
    of = name_attribute(statistic.of, catalogue)
    if statistic.weighted_by is not None:
        of = name_weighted(domain, of, domain.measure(statistic.weighted_by), catalogue)
    quantile = catalogue.say("column_quantile", of=of)
    return {
        "quantile": catalogue.say("column_in_unit", text=quantile, unit=unit),
        **_describe_intervals("quantile", catalogue, unit),
        "may_be_below": catalogue.say("column_may_be_below"),
        "may_be_above": catalogue.say("column_may_be_above"),
    }


def _describe_mean_columns(
    statistic: Statistic, domain: Domain, catalogue: Catalogue
) -> dict[str, str]:
    """Return the meaning of each number column of a table of means."""
    measure = domain.measure(statistic.of)
    values = measure
    weight = None
    if isinstance(measure, Weighted):
        values = measure.of
        weight = measure.weight
    unit = _describe_unit(domain, values, catalogue)
    texts = {
        "mean": (name_statistic(statistic, domain, catalogue), unit),
        "sum": (
            catalogue.say("name_sum", measure=name_measure(domain, statistic.of, catalogue)),
            _describe_unit(domain, measure, catalogue),
        ),
        "sum_of_weights": (
            catalogue.say("column_sum_of_weights"),
            _describe_unit(domain, weight, catalogue),
        ),
    }
    meanings = {
        name: catalogue.say("column_in_unit", text=text, unit=its_unit)
        for name, (text, its_unit) in texts.items()
    }
    return {
        **meanings,
        **_describe_intervals("mean", catalogue, unit),
        "count": catalogue.say("column_count"),
    }


def _describe_correlation_columns(
    statistic: Statistic, domain: Domain, catalogue: Catalogue
) -> dict[str, str]:
    """Return the meaning of each number column of correlations."""
    unit = catalogue.say("column_unit_of_pair")
    covariances = _describe_intervals("covariance", catalogue, unit)
    covariance = catalogue.say("column_covariance")
    return {
        "correlation": catalogue.say("column_correlation"),
        **{
            name: catalogue.say("column_of_correlation", text=text)
            for name, text in _describe_intervals("correlation", catalogue).items()
        },
        "covariance": catalogue.say("column_in_unit", text=covariance, unit=unit),
        **{f"covariance_{name}": text for name, text in covariances.items()},
        "count": _describe_complete_count(statistic, domain, catalogue),
    }


def _describe_regression_columns(
    statistic: Statistic, domain: Domain, catalogue: Catalogue
) -> dict[str, str]:
    """Return the meaning of each number column of a regression."""
    response = _describe_unit(domain, domain.measure(statistic.of), catalogue)
    unit = catalogue.say("column_unit_of_term", unit=response)
    coefficient = catalogue.say("column_coefficient")
    intervals = _describe_intervals("coefficient", catalogue, unit)
    return {
        "coefficient": catalogue.say("column_in_unit", text=coefficient, unit=unit),
        "std_error": intervals["std_error"],
        "low": catalogue.say("column_unbounded", text=intervals["low"]),
        "high": catalogue.say("column_unbounded_too", text=intervals["high"]),
        "ridge": catalogue.say("column_ridge"),
        "count": _describe_complete_count(statistic, domain, catalogue),
    }


def _describe_r_squared_columns(
    statistic: Statistic, domain: Domain, catalogue: Catalogue
) -> dict[str, str]:
    """Return the meaning of each number column of R^2."""
    intervals = {
        name: catalogue.say("column_of_share", text=text)
        for name, text in _describe_intervals("r_squared", catalogue).items()
    }
    return {
        "r_squared": catalogue.say("column_r_squared"),
        "std_error": catalogue.say("column_unbounded_too", text=intervals["std_error"]),
        "low": intervals["low"],
        "high": intervals["high"],
        "count": _describe_complete_count(statistic, domain, catalogue),
    }


def _describe_complete_count(statistic: Statistic, domain: Domain, catalogue: Catalogue) -> str:
    """Return the meaning of a count of rows that have a value of each measure."""
    names = [name_measure(domain, name, catalogue) for name in statistic.variables]
    return catalogue.say("column_count_of", names=catalogue.join_names(names))


def _describe_variance_columns(
    statistic: Statistic, domain: Domain, catalogue: Catalogue
) -> dict[str, str]:
    """Return the meaning of each number column of standard deviations."""
    unit = _describe_unit(domain, domain.measure(statistic.of), catalogue)
    square = _square(unit, catalogue)
    of = name_measure(domain, statistic.of, catalogue)
    variances = _describe_intervals("variance", catalogue, square)
    texts = {
        "std_dev": (name_statistic(statistic, domain, catalogue), unit),
        "variance": (catalogue.say("column_variance", of=of), square),
        "mean": (catalogue.say("name_means", of=of), unit),
    }
    meanings: Mapping[str, str] = {
        name: catalogue.say("column_in_unit", text=text, unit=its_unit)
        for name, (text, its_unit) in texts.items()
    }
    return {
        **meanings,
        **_describe_intervals("std_dev", catalogue, unit),
        "variance_low": variances["low"],
        "variance_high": variances["high"],
        "count": catalogue.say("column_count"),
    }
