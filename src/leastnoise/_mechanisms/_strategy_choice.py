"""The automatic choice of a strategy.

Every applicable planner is tried, and the plan with the least expected error is chosen. No data is
read.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from leastnoise._mechanisms._candidates import Candidate, failure_reasons, with_best_lower_bounds
from leastnoise._mechanisms._search import Search
from leastnoise._mechanisms._trials import MANY_TABLES, try_strategies
from leastnoise._plan import LinearPlan
from leastnoise._trusted.accounting import Privacy, parameters_by_name
from leastnoise._trusted.check import InputError, readable, refuse
from leastnoise._trusted.measurements import MOST_ROWS
from leastnoise._workload import Workload

MOST_BUDGET = 2**20  # the largest epsilon or rho; a larger budget protects nobody


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collector in a ``with`` block.

    The millions of values of a large plan contain no cycles, and scanning them is slow.
    """
    # If several threads plan, the thread that stops the collector first also starts it again.
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Move the new values to the oldest generation, else each generation would scan them again.
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()


def choose_plan(
    workload: Workload, privacy: Privacy, search: Search | None = None
) -> tuple[LinearPlan, tuple[Candidate, ...]]:
    """Return the plan with the least expected error, and all candidates."""
    name, value = next(iter(parameters_by_name(privacy.budget).items()))
    if value > MOST_BUDGET:
        raise refuse(
            name,
            readable(value),
            f"at most {MOST_BUDGET}",
            "A budget this large protects nobody; 1 is usual.",
        )
    if privacy.max_rows > MOST_ROWS:
        raise refuse(
            "max_rows",
            privacy.max_rows,
            f"at most {MOST_ROWS}",
            "No unit can have more rows than the program can read.",
        )
    search = search or Search()
    with _gc_paused() if len(workload.products) > MANY_TABLES else nullcontext():
        requested_strategy = search.custom_planner or search.strategy
        listed = [
            *try_strategies(
                workload,
                privacy,
                requested_strategy,
                search.seconds,
                search.progress,
                try_all=search.every,
                now=search.now,
            )
        ]
    tried = with_best_lower_bounds(listed)
    best = min(tried, key=lambda candidate: candidate.rank)
    if best.plan is None and search.custom_planner is not None:
        raise InputError(best.reason)
    if best.plan is None:
        raise InputError(f"No strategy can be used for this workload. {failure_reasons(tried)}")
    ended = [*dict.fromkeys(entry.strategy for entry in tried if entry.ended)]
    details = replace(best.plan.details, ended_early=tuple(ended))
    return replace(best.plan, details=details), tuple(tried)
