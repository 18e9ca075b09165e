"""What can be said of means, quantiles and distribution functions before there are data: all that does not depend on them."""

import math
from dataclasses import dataclass

from leastnoise._accuracy._told import middles
from leastnoise._measurements import Measurements
from leastnoise._plan import Plan, TableError
from leastnoise._workload import Statistic

ROUNDING = 2.0**-46
"""Of what is subtracted from a variance, at least the error of doing so in doubles: what is left is never too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticError:
    """What a plan promises for a statistic."""

    statistic: Statistic
    tables: tuple[str, ...]
    rows: float
    largest_rows: float
    std_error: float | None


def statistic_errors(plan: Plan) -> tuple[StatisticError, ...]:
    """What is known beforehand of the statistics that a plan's workload asks for.

    The mean S / C has about the error (s - r c) / C, with the errors s and c of sum and count, C the size and r the mean itself: at most
    the larger of its public bounds. Of quantiles and distribution functions, the counts up to a cell have a known error, and so has their
    share of a known number of rows.
    """
    if not plan.workload.statistics:
        return ()
    promised = plan.expected_error().tables
    places = {product.question: place for place, product in enumerate(plan.workload)}
    found = []
    for asked in plan.workload.statistics:
        tables = [promised[places[product.question]] for product in plan.workload.tables_of(asked)]
        counts = tables[0]
        found.append(
            StatisticError(
                statistic=asked,
                tables=tuple(table.name for table in tables),
                rows=counts.rmse,
                largest_rows=counts.largest_std,
                std_error=None if asked.size is None else _error(plan, asked, tables) / float(asked.size),
            )
        )
    return tuple(found)


def _error(plan: Plan, asked: Statistic, tables: list[TableError]) -> float:
    """Of a share times the size in rows, or of a mean times the size in amounts, where it is largest."""
    if not asked.form.of_measure:
        return tables[0].rmse
    counts, sums = tables
    return mean_error(plan.measured(), asked.of, counts.rmse, sums.rmse) * float(plan.domain.measure(asked.of).unit)


def mean_error(measured: Measurements, measure: str, counts: float, sums: float) -> float:
    """Standard error of S - r C, sum and count of a group, at the mean r within the measure's bounds where it is largest."""
    # (r - m)^2 c^2 beside the centred sums' own, s^2 - m^2 c^2, at the r farthest from m; m is 0 where sums are not centred.
    apart = _middle(measured, measure)
    variance = sums**2 + (farthest(measured, measure) ** 2 - (1 - ROUNDING) * apart**2) * counts**2
    return math.sqrt(max(0.0, variance))


def farthest(measured: Measurements, measure: str) -> float:
    """How far a mean can be from the middle of the bounds, where sums are centred, else from 0; in units of the measure."""
    bounds, apart = measured.domain.measure(measure), _middle(measured, measure)
    return max(abs(bounds.low_units - apart), abs(bounds.high_units - apart))


def _middle(measured: Measurements, measure: str) -> float:
    return middles(measured, measure).get(None, 0.0)
