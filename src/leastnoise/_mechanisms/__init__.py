"""Mechanisms: every method that computes answers to a workload.

The public half of a mechanism plans and checks; the private half runs within a series of paid
steps.

The mechanisms are loaded at their first use, because the choice of a strategy does not need the
private halves.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from leastnoise._mechanisms._candidates import Candidate, StrategyComparison, with_best_lower_bounds
from leastnoise._mechanisms._high_errors import tables_with_high_error
from leastnoise._mechanisms._planning_time import noises_to_plan, planning_seconds, time_requests
from leastnoise._mechanisms._proposed_plan import memory_error_reason, reweight_plan, search_again
from leastnoise._mechanisms._search import SECONDS, Progress, Search
from leastnoise._mechanisms._strategy_choice import MOST_BUDGET, choose_plan
from leastnoise._mechanisms._trials import try_strategies

if TYPE_CHECKING:
    from leastnoise._mechanisms._mechanism_registry import (
        BY_NAME,
        MECHANISMS,
        mechanism_for,
        mechanism_of,
    )
    from leastnoise._mechanisms._protocol import (
        Explanation,
        Mechanism,
        Run,
        release_contract,
    )
    from leastnoise._mechanisms._quantile_mechanism import largest_rank_errors

_HOMES = {
    "_mechanisms._protocol": ("Explanation", "Mechanism", "Run", "release_contract"),
    "_mechanisms._quantile_mechanism": ("largest_rank_errors",),
    "_mechanisms._mechanism_registry": ("BY_NAME", "MECHANISMS", "mechanism_for", "mechanism_of"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"leastnoise.{_HOME_OF[name]}"), name)
