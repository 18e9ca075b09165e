"""Brute force over all neighbours on small domains: changes of the measured queries."""

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leastnoise._domain import PerUnit, UnitCount
from leastnoise._trusted.accounting import ConcentratedCost, PureCost
from leastnoise._trusted.linop import dense
from leastnoise._trusted.measurements import cost

Value = int | None  # of a measure in a row; None where the row has none


@dataclass(frozen=True)
class Row:
    """A possible row: its cells, values, and effect on all queries in noise scales."""

    cells: Mapping[str, int]
    values: Mapping[str, Value]
    column: np.ndarray


def extremes(measure):
    """Return the values to try: a loss is convex in the value."""
    return measure.low_units, 0, measure.high_units


def rows_of(plan, values=extremes):
    """Return every possible row with the values to try; in a unit count it is worth 0 or 1."""
    sizes = {name: plan.domain.cells(name) for name in plan.domain.names}
    measures = plan.domain.measures
    options: dict[str, tuple[Value, ...]] = {}
    for name in dict.fromkeys(block.measure for block in plan.blocks if block.measure is not None):
        if isinstance(measures[name], UnitCount):
            options[name] = (0, 1)
        else:  # a count of values follows from the values
            counted_measure = counted_by(plan, name) or name
            options[counted_measure] = values(measures[counted_measure])
    rows = []
    for cells in itertools.product(*map(range, sizes.values())):
        at = dict(zip(sizes, cells, strict=True))
        for chosen in itertools.product(*options.values()):
            values_of_row = dict(zip(options, chosen, strict=True))
            if not _are_at_places(plan, values_of_row, at):
                continue
            columns = []
            for block in plan.blocks:
                column = _added(plan, block, values_of_row, at) / float(block.scale)
                for factor in block.factors:
                    place = np.ravel_multi_index(
                        [at[name] for name in factor.attributes],
                        [sizes[name] for name in factor.attributes],
                    )
                    column = np.kron(column, dense(factor.operator)[:, place] * factor.scaling)
                columns.append(column)
            rows.append(Row(at, values_of_row, np.concatenate(columns)))
    return rows


def _are_at_places(plan, values, at):
    """Return whether a row counts units only in groups of cells at the groups' places."""
    for name, value in values.items():
        counted = plan.domain.measure(name)
        if value and isinstance(counted, UnitCount):
            for attribute, places in zip(counted.attributes, counted.places, strict=True):
                if places is not None and at[attribute] not in places:
                    return False
    return True


def counted_by(plan, measure):
    """Return the measure whose values this measure counts, or None."""
    return next(
        (name for name in plan.domain.measures if plan.domain.count_of(name) == measure), None
    )


def _added(plan, block, values, at):
    """Return what a row adds to its cell: one number within the limit, or two distances."""
    if block.measure is None:
        return np.ones(1)
    if counted_measure := counted_by(plan, block.measure):
        return np.array([values[counted_measure] is not None])
    value = values[block.measure]
    if block.ends and value is None and plan.domain.count_of(block.measure):
        return np.zeros(2)
    measure = plan.domain.measure(block.measure)
    value = value or 0
    if block.ends:
        return np.array([value - measure.low_units, measure.high_units - value])
    if block.limits is not None:
        value = min(value, int(block.limits.values[at.get(block.limits.attribute or "", 0)]))
    return np.array([value])


def units_of(plan):
    """Return what every unit within the bounds adds, without repetitions."""
    rows = rows_of(plan)
    sums = [np.zeros_like(rows[0].column)]
    sums += [sum(row.column for row in chosen) for chosen in _bounded_rows(plan, rows)]
    all_sums = np.array(sums)
    return all_sums[np.unique(all_sums.round(9), axis=0, return_index=True)[1]]


def _bounded_rows(plan, rows):
    """Yield each unit's rows: bounded in a cell, with one row for a unit's amount in a cell."""
    bound = plan.privacy.max_per_cell
    most = [(bound.attributes, bound.rows, None)] if bound else []
    most += [
        (measure.attributes, 1, name)
        for name, measure in plan.domain.measures.items()
        if isinstance(measure, PerUnit)
    ]
    for number in range(1, plan.privacy.max_rows + 1):
        for chosen in itertools.combinations_with_replacement(rows, number):
            often = [
                (
                    Counter(
                        tuple(row.cells[name] for name in names)
                        for row in chosen
                        if of is None or row.values.get(of)
                    ),
                    limit,
                )
                for names, limit, of in most
            ]
            if all(max(counted.values(), default=0) <= limit for counted, limit in often):
                yield chosen


def worst(plan, units=None):
    """Return the largest change: a sum under Laplace noise, of squares under Gaussian noise."""
    units = units_of(plan) if units is None else units
    power = plan.noise.norm
    bases = units if plan.privacy.neighbours == "replace" else units[:1] * 0
    return float(max((np.abs(units - base) ** power).sum(axis=1).max() for base in bases))


def claimed(plan):
    """Return the claimed cost: epsilon, mu squared, or twice rho."""
    plan_cost = cost(plan)
    if isinstance(plan_cost, PureCost):
        return float(plan_cost.epsilon)
    if isinstance(plan_cost, ConcentratedCost):
        return float(2 * plan_cost.rho)
    return float(plan_cost.mu_squared)
