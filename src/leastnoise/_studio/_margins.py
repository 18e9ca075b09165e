"""What a plan promises for the tables of a draft: pure functions from a plan and a spec to margins."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from leastnoise._accuracy import block_variance, interval_multiplier, lower_bound
from leastnoise._check import InputError
from leastnoise._fitting import rescaled
from leastnoise._measurements import Measurements
from leastnoise._plan import Plan, Promise, TableError
from leastnoise._session import Reached, Spec, answering, reached, stated
from leastnoise._studio._draft import Question
from leastnoise._workload import Workload

_SAME = 1e-6  # relative: scales are rounded to 24 bits, and margins are shown in three digits


@dataclass(frozen=True, slots=True)
class Margin:
    """What is promised for one table, in rows or in the amounts of its measure."""

    typical: float
    largest: float
    is_bound: bool
    share: float | None
    target: Reached | None


def scaled(plan: Plan, spec: Spec) -> Plan | None:
    r"""The measurements of a plan at the budget of a spec, and what they promise for those of its tables that they answer.

    Exact for these measurements: their noise is fitted to the budget anew, as a plan's is. Where that multiplies all their variances by one
    number, it multiplies those of least squares too; else the error is computed anew.
    """
    if plan.measurements is None or plan.promise is None or plan.domain != spec.domain:
        return None
    privacy = stated(spec.planned_privacy) or plan.privacy
    if type(privacy.budget) is not type(plan.privacy.budget):
        return None
    known = dict(zip((product.question for product in plan.workload), plan.promise.tables, strict=True))
    try:
        measured = rescaled(plan.measurements, privacy)
    except InputError:  # so small a budget needs a plan of its own
        return None
    pairs = zip(measured.blocks, plan.measurements.blocks, strict=True)
    shares = [block_variance(measured, new) / block_variance(plan.measurements, old) for new, old in pairs]
    if max(shares) <= min(shares) * (1 + _SAME) and all(product.question in known for product in spec.workload):
        return _multiplied(plan, spec.workload, measured, max(shares), known)
    for products in (spec.workload.products, tuple(product for product in spec.workload if product.question in known)):
        try:
            return answering(Workload(spec.domain, products), plan, privacy) if products else None
        except InputError:
            continue  # a table that these measurements do not determine
    return None


def _multiplied(plan: Plan, asked: Workload, measured: Measurements, by: float, known: Mapping[Question, TableError]) -> Plan:
    """The plan for tables that are known, all of whose variances are multiplied by one number."""
    root = math.sqrt(by)
    tables = []
    for product in asked:
        before = known[product.question]
        weight, rmse, largest = float(product.weight), root * before.rmse, root * before.largest_std
        tables.append(replace(before, name=product.name, weight=weight, rmse=rmse, largest_std=largest))
    total = math.fsum(product.importance * product.rows * table.rmse**2 for product, table in zip(asked, tables, strict=True))
    details = plan.details_for(asked)
    bound = lower_bound(asked, measured.privacy, measured.noise, float(details.get("unit_bound", 0.0)))
    promise = Promise(total, bound, tuple(tables))
    return replace(plan, workload=asked, privacy=measured.privacy, measurements=measured, promise=promise, details=details)


def margins(plan: Plan, level: float) -> Mapping[Question, Margin]:
    """What a plan promises for each of its tables, by what they ask; nothing where the error depends on the data."""
    if plan.promise is None:
        return {}
    measured = plan.measured()
    times, half = interval_multiplier(measured.noise, level), 0.5 / measured.grid
    found = {}
    for product, table, target in zip(plan.workload, plan.promise.tables, reached(plan, level), strict=True):
        typical, largest = ((times * error + half) * product.unit for error in (table.rmse, table.largest_std))
        share = None if product.size is None else typical / float(product.size)
        found[product.question] = Margin(typical, largest, table.largest_is_bound, share, target)
    return found
