"""What is allowed and hardly ever meant: budgets that protect hardly anybody, and errors above what answers are expected to be."""

import math
from fractions import Fraction

from leastnoise._accounting import Privacy, readable
from leastnoise._accuracy import interval_multiplier
from leastnoise._frames import several
from leastnoise._measurements import MOST_ROWS
from leastnoise._plan import Plan

MOST_EPSILON = 20
MOST_OF_TARGETS = 2
MOST_DELTA = Fraction(1, 10**5)
"""Without a public number of rows."""
_LISTED = 3


def budget_warnings(privacy: Privacy, rows: int | None = None, *, of_targets: bool = False) -> tuple[str, ...]:
    """One sentence for each part of a budget that protects hardly anybody; a budget that nobody chose is told earlier."""
    most = MOST_OF_TARGETS if of_targets else MOST_EPSILON
    advice = "that is much to pay for targets: give them wider margins, or ask for less" if of_targets else "hardly anybody is protected"
    budget = privacy.budget
    found = []
    epsilon = getattr(budget, "epsilon", None)
    if epsilon is not None and epsilon > most:
        times = f"{math.exp(epsilon):.2g} times" if epsilon < 700 else f"e^{readable(epsilon)} times"
        found.append(
            f"epsilon = {readable(epsilon)} makes what is published up to {times} as likely with a person as without; above "
            f"{most} {advice}."
        )
    rho = getattr(budget, "rho", None)
    if rho is not None and rho > most:
        found.append(f"rho = {readable(rho)} is above {most}: {advice}.")
    delta = getattr(budget, "delta", None)
    if delta is not None and delta > (MOST_DELTA if rows is None else Fraction(1, rows)):
        above = (
            f"{readable(MOST_DELTA)}; say rows in [privacy] if the number of rows is public and small, so that it can be judged"
            if rows is None
            else f"1 / {rows}, one over the number of rows: publishing somebody's row in the clear would satisfy it"
        )
        found.append(f"delta = {readable(delta)} is above {above}.")
    return tuple(found)


def early_warnings(plan: Plan) -> tuple[str, ...]:
    """One sentence if the clock ended the search of strategies."""
    ended = plan.details.get("ended_early", ())
    if not ended:
        return ()
    return (f"The time for planning was over before the search of {', '.join(ended)} ended. Set seconds in [plan] higher to search on.",)


def crowded_warnings(plan: Plan) -> tuple[str, ...]:
    """One sentence if tables have much larger errors than they would have alone."""
    known = sorted(plan.details.get("crowded", {}).items(), key=lambda one: -one[1])
    if not known:
        return ()
    listed = ", ".join(f"{name} ({ratio:.2g} times)" for name, ratio in known)
    said = f"Over twice the error that an even share of the budget would leave it if it were planned alone: {listed}. "
    return (said + "Give what matters more weight, or ask for it in a release of its own.",)


def error_warnings(plan: Plan, level: float, rows: int | None = None) -> tuple[str, ...]:
    """One sentence if answers are expected to be smaller than their margins, by what is public of them."""
    if plan.promise is None:
        return ()
    measured, found = plan.measured(), []
    groups = {table.question: one.size for one in plan.workload.statistics if one.size for table in plan.workload.tables_of(one)}
    times, step = interval_multiplier(measured.noise, level), 0.5 / measured.grid
    for table, product in zip(plan.promise.tables, plan.workload, strict=True):
        known = product.size or (groups.get(product.question) if product.measure is None else None)
        cells = [one.rows for one, asked in zip(product.operators, product.query_sets, strict=True) if asked.form.axis == "cells"]
        most = (MOST_ROWS if rows is None else rows) * plan.domain.largest_value(product.measure) / math.prod(cells)
        size = most if known is None else float(known) / product.unit  # of cells on average, of sums of cells at most
        margin = times * table.largest_std + step
        if margin > size:
            found.append(f"{product.name} (± {margin * product.unit:.3g} around {size * product.unit:.3g})")
    if not found:
        return ()
    listed = ", ".join(found[:_LISTED]) + (f" and {several(len(found) - _LISTED, 'more table')}" if len(found) > _LISTED else "")
    said = f"By what is public of sizes and rows, margins are larger than the answers that they belong to: {listed}."
    return (f"{said} Ask for less, such as coarser groups, or spend more.",)
