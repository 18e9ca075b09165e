"""What is allowed and hardly ever meant: budgets that protect hardly anybody, and errors above every possible count."""

import math
from fractions import Fraction

from leastnoise._accounting import Privacy, readable
from leastnoise._measurements import MOST_ROWS
from leastnoise._plan import Plan

MOST_EPSILON = 20
MOST_DELTA = Fraction(1, 10**5)
"""Without a public number of rows."""


def budget_warnings(privacy: Privacy, rows: int | None = None) -> tuple[str, ...]:
    """One sentence for each part of a budget that protects hardly anybody."""
    budget = privacy.budget
    found = []
    epsilon = getattr(budget, "epsilon", None)
    if epsilon is not None and epsilon > MOST_EPSILON:
        times = f"{math.exp(epsilon):.2g} times" if epsilon < 700 else f"e^{readable(epsilon)} times"
        found.append(
            f"epsilon = {readable(epsilon)} makes what is published up to {times} as likely with a person as without; above "
            f"{MOST_EPSILON} hardly anybody is protected."
        )
    rho = getattr(budget, "rho", None)
    if rho is not None and rho > MOST_EPSILON:
        found.append(f"rho = {readable(rho)} is above {MOST_EPSILON}: hardly anybody is protected.")
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


def error_warnings(plan: Plan, rows: int | None = None) -> tuple[str, ...]:
    """One sentence if answers are expected to be wrong by more than every count can be."""
    if plan.promise is None:
        return ()
    most = MOST_ROWS if rows is None else rows
    tables = zip(plan.promise.tables, plan.workload, strict=True)
    count = sum(
        table.rmse > most * (1 if product.measure is None else plan.domain.measure(product.measure).largest) for table, product in tables
    )
    if not count:
        return ()
    listed = f"{count} table{'s' * (count != 1)}"
    return (f"In {listed} the expected error of an answer is above the {most} rows that there can be. Ask for less, or spend more.",)
