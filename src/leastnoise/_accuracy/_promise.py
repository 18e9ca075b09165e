"""The expected error of a workload under a plan: the same formula for planners, for plans and for error bars."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from leastnoise._accuracy._bounds import lower_bound
from leastnoise._accuracy._form import Known
from leastnoise._accuracy._structure import combined, quantity_structure
from leastnoise._accuracy._told import middles
from leastnoise._check import InputError
from leastnoise._families import Errors
from leastnoise._measurements import Measurements
from leastnoise._plan import Plan, Promise, TableError
from leastnoise._workload import Workload


def structures(workload: Workload, plan: Measurements) -> dict[str | None, Known]:
    """The covariance structure of every measure that a workload asks about."""
    quantities = dict.fromkeys(quantity for measure in workload.measures for quantity in middles(plan, measure))
    known = {quantity: quantity_structure(plan, quantity) for quantity in quantities}
    return {measure: combined(plan, measure, known) for measure in workload.measures}


def total_squared_error(workload: Workload, plan: Measurements) -> float:
    """Sum over all queries of their importance times the variance of their answer."""
    known = structures(workload, plan)
    return math.fsum(product.importance * known[product.measure].total(product) for product in workload)


def promised(
    workload: Workload,
    measurements: Measurements,
    strategy: str = "given",
    *,
    details: Mapping[str, Any] | None = None,
    iterate: bool = True,
) -> Plan:
    """The plan of some measurements for a workload: with the expected error of its queries, and a lower bound of it."""
    known = structures(workload, measurements)
    for own in known.values():
        if own.solver_cells and not iterate:
            raise InputError(
                f"its tables have no common product form, so that the error bars need a linear solver over {own.solver_cells} joint cells, "
                f"which takes long; ask for it by name: strategy = '{strategy}'"
            )
    errors: dict[str | None, Iterator[Errors]] = {}
    for measure, own in known.items():
        errors[measure] = iter(own.errors_of(workload.of(measure)))
    tables, total = [], 0.0
    worth: dict[tuple[int, str | None], tuple[float, float]] = {}  # very many tables share few weights
    for product in workload:
        found = next(errors[product.measure])
        key = id(product.weight), product.measure
        importance, weight = worth.get(key) or worth.setdefault(key, (product.importance, float(product.weight)))
        total += importance * found.total
        rows = product.rows
        mean = found.total / rows
        largest = math.sqrt(max(found.largest, mean))
        tables.append(TableError(product.name, rows, weight, math.sqrt(mean), largest, not found.exact))
    facts = dict(details or {})
    bound = lower_bound(workload, measurements.privacy, measurements.noise, float(facts.get("unit_bound", 0.0)))
    promise = Promise(total, bound, tuple(tables))
    return Plan(
        workload=workload, privacy=measurements.privacy, strategy=strategy, measurements=measurements, promise=promise, details=facts
    )
