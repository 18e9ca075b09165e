"""Describe the quantity and the unit of every column of numbers, in English.

Manifests and Parquet files contain these descriptions. Sums, means and quantiles have the unit of
the values in the measure's column.
"""

from leastnoise._domain import (
    CompleteCount,
    DeviationProduct,
    Measure,
    SquaredDeviation,
    UnitCount,
    ValueCount,
    Weighted,
)
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import ResultTable, Table
from leastnoise._release._texts import ENGLISH, name_quantity
from leastnoise._workload import Product, Statistic, join_measures

_ANSWER_COLUMNS = {
    "noise_std": "standard error of answer from the noise",
    "approximation_std": "standard error of answer from what was approximated",
    "low": "lower end of the interval of answer",
    "high": "upper end of the interval of answer",
    "answer_non_negative": "biased estimate that is not negative",
    "answer_integer": "biased estimate in whole numbers",
    "answer_nnls": "biased estimate by non-negative least squares",
    "nnls_rmse": "simulated error of answer_nnls",
    "answer_local": "biased estimate by tables without negative cells",
    "answer_top_down": "biased estimate in whole numbers that add up, none of them negative",
}
SURVEY_COLUMNS = {
    "sampling_std": "standard error of the sample, as the spec states it",
    "sampling_low": "lower end of the interval of the sampling error",
    "sampling_high": "upper end of the interval of the sampling error",
    "both_low": "lower end of the interval of noise and sampling error",
    "both_high": "upper end of the interval of noise and sampling error",
    "cv": "standard error of noise and sample together over the number, a share",
    "reliability": "flag by cv: 1 reliable, 2 use with caution, 3 not reliable or not published",
}
"""The meanings of the columns that only tables with a stated sampling error have."""
_STATISTIC_COLUMNS = {
    "std_error": "standard error",
    "low": "lower end of the interval",
    "high": "upper end of the interval",
}


def describe_unit(measure: Measure | None) -> str:
    """Return the unit of a measure's sums as text; "rows" if it is None."""
    if measure is None or isinstance(measure, (CompleteCount, ValueCount)):
        return "rows"
    if isinstance(measure, UnitCount):
        return "privacy units"
    if isinstance(measure, SquaredDeviation):
        return f"the unit of the column {measure.of.column!r}, squared"
    if isinstance(measure, DeviationProduct):
        units = [f"the unit of the column {factor.column!r}" for factor in measure.factors]
        return " times ".join(units)
    if not isinstance(measure, Weighted):
        return f"the unit of the column {measure.column!r}"
    weight = f"the unit of the column {measure.weight.column!r}"
    if isinstance(measure.of, ValueCount):
        return weight
    return f"the unit of the column {measure.of.column!r} times {weight}"


def describe_quantity(product: Product) -> str:
    """Return a text with the quantity and unit of a table's answers.

    An example is ``sum of pay, in the unit of the column 'pay'``.
    """
    quantity = name_quantity(product, ENGLISH)
    if product.measure is None:
        measure = None
    else:
        measure = product.domain.measure(product.measure)
    if not product.of_values:
        return f"number of {quantity}"
    return f"{quantity}, in {describe_unit(measure)}"


def describe_columns(result: ResultTable) -> dict[str, str]:
    """Return the meaning of every number column of a result by its name."""
    if isinstance(result, Table):
        columns = _describe_table_columns(result)
    elif isinstance(result, StatisticTable):
        columns = _describe_statistic_columns(result)
    else:
        return {}
    if result.sampling is None:
        return columns
    return columns | SURVEY_COLUMNS


def _describe_table_columns(table: Table) -> dict[str, str]:
    """Return the meaning of each number column of a table by its name."""
    product = table.product
    if product.measure is None:
        measure = None
    else:
        measure = product.domain.measure(product.measure)
    texts = {name: f"{text}, in {describe_unit(measure)}" for name, text in _ANSWER_COLUMNS.items()}
    meanings = {"answer": f"estimate of the {describe_quantity(product)}", **texts}
    return {name: meanings[name] for name in table.numbers() if name in meanings}


def _describe_statistic_columns(table: StatisticTable) -> dict[str, str]:
    """Return the meaning of each number column of a statistic by its name."""
    statistic = table.statistic
    domain = table.domain
    if statistic.form.of_several:
        return _describe_several_measures(table)
    if statistic.kind == "variances":
        return _describe_variance_columns(table, domain.measure(statistic.of))
    if statistic.form.of_measure:
        return _describe_mean_columns(table, domain.measure(statistic.of))
    column = domain.kind(statistic.of).reading.column or statistic.of
    unit = f"the unit of the column {column!r}"
    if statistic.form.at_shares:
        beyond_meanings = {
            "may_be_below": "1 where quantile may lie below low, beyond the bounds, else 0",
            "may_be_above": "1 where quantile may lie above high, beyond the bounds, else 0",
        }
        texts = {
            name: f"{text} of quantile, in {unit}" for name, text in _STATISTIC_COLUMNS.items()
        }
        meanings = {
            "quantile": f"quantile of {statistic.of}{_describe_weight(statistic)}, in {unit}",
            **texts,
            **beyond_meanings,
        }
    else:
        texts = {name: f"{text} of share, from 0 to 1" for name, text in _STATISTIC_COLUMNS.items()}
        counted_unit = "rows" if statistic.weighted_by is None else "weights"
        share = f"share of the {counted_unit} of the group up to the end of the cell, from 0 to 1"
        meanings = {"share": share, "up_to": f"end of the cell, in {unit}", **texts}
    return {name: meanings[name] for name in table.numbers() if name in meanings}


def _describe_weight(statistic: Statistic) -> str:
    """Return a phrase that names the weight of a statistic's rows, or ""."""
    if statistic.weighted_by is None:
        return ""
    return f" weighted by {statistic.weighted_by}"


def _describe_mean_columns(table: StatisticTable, measure: Measure) -> dict[str, str]:
    """Return the meaning of each number column of a table of means."""
    if isinstance(measure, Weighted):
        values = measure.of
    else:
        values = measure
    if isinstance(measure, Weighted):
        weight = measure.weight
    else:
        weight = None
    texts = {
        name: f"{text} of mean, in {describe_unit(values)}"
        for name, text in _STATISTIC_COLUMNS.items()
    }
    meanings = {
        "mean": f"{ENGLISH.say('name_means', of=table.statistic.of)}, in {describe_unit(values)}",
        **texts,
        "sum": f"sum of {table.statistic.of}, in {describe_unit(measure)}",
        "count": "number of rows with a value",
        "sum_of_weights": f"sum of the weights of rows with a value, in {describe_unit(weight)}",
    }
    return {name: meanings[name] for name in table.numbers() if name in meanings}


def _describe_several_measures(table: StatisticTable) -> dict[str, str]:
    """Return the meaning of each number column of correlations or a regression."""
    statistic = table.statistic
    if statistic.kind == "correlations":
        unit = "in the unit of one measure times the unit of the other"
        meanings = {
            "correlation": "correlation of the pair, from -1 to 1",
            "low": "lower end of the interval of correlation",
            "high": "upper end of the interval of correlation",
            "std_error": "standard error of correlation",
            "covariance": f"covariance of the pair, {unit}",
            "covariance_low": f"lower end of the interval of covariance, {unit}",
            "covariance_high": f"upper end of the interval of covariance, {unit}",
            "covariance_std_error": f"standard error of covariance, {unit}",
        }
    else:
        response = describe_unit(table.domain.measure(statistic.of))
        unit = f"in {response}, over the unit of the measure of the term if it has one"
        meanings = {
            "coefficient": f"coefficient of the term, {unit}",
            "low": "lower end of the interval of coefficient; empty where every number is possible",
            "high": "upper end of the interval of coefficient; empty in the same rows",
            "std_error": f"standard error of coefficient, {unit}",
            "ridge": "added to the diagonal of the normal equations, as a share of count",
        }
    meanings["count"] = f"number of rows with a value of {join_measures(statistic.variables)}"
    return {name: meanings[name] for name in table.numbers() if name in meanings}


def _describe_variance_columns(table: StatisticTable, measure: Measure) -> dict[str, str]:
    """Return the meaning of each number column of standard deviations."""
    unit = describe_unit(measure)
    texts = {name: f"{text} of std_dev, in {unit}" for name, text in _STATISTIC_COLUMNS.items()}
    of = table.statistic.of
    meanings = {
        "std_dev": f"{ENGLISH.say('name_variances', of=of)}, in {unit}",
        **texts,
        "variance": f"variance of {of}, in {unit}, squared",
        "variance_low": f"lower end of the interval of variance, in {unit}, squared",
        "variance_high": f"upper end of the interval of variance, in {unit}, squared",
        "mean": f"{ENGLISH.say('name_means', of=of)}, in {unit}",
        "count": "number of rows with a value",
    }
    return {name: meanings[name] for name in table.numbers() if name in meanings}
