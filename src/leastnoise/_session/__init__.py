"""The only code that calls sources, planning, kernel, estimate and release together: it pays, and finishes paid releases.

Names are loaded when first used: planning needs nothing of what reads rows, pays or writes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastnoise._adapters import CSV, DatabaseTable, columns, ledger_beside
    from leastnoise._kernel import Entry, Ledger
    from leastnoise._session._accounts import IN_MEMORY, account, is_published, settle
    from leastnoise._session._audit import audit
    from leastnoise._session._categories import find_categories
    from leastnoise._session._checks import check_before, check_writable, read_plan
    from leastnoise._session._durations import csv_blocks, reading_seconds, resuming_seconds
    from leastnoise._session._entering import enter_release
    from leastnoise._session._export import export
    from leastnoise._session._finish import Finished
    from leastnoise._session._ledgers import other_ledgers, unknown_releases
    from leastnoise._session._periods import PeriodState, PublishedPeriods, is_unfinished, period_state, release_due
    from leastnoise._session._reading import outcome_from_json, read_release
    from leastnoise._session._resume import finish_all, resume
    from leastnoise._session._session import check_affordable, planned_spec, release, spec_seconds

_HOMES = {
    "_adapters": ("CSV", "DatabaseTable", "columns", "ledger_beside"),
    "_kernel": ("Entry", "Ledger"),
    "_session._accounts": ("IN_MEMORY", "account", "is_published", "settle"),
    "_session._audit": ("audit",),
    "_session._checks": ("check_before", "check_writable", "read_plan"),
    "_session._categories": ("find_categories",),
    "_session._entering": ("enter_release",),
    "_session._durations": ("csv_blocks", "reading_seconds", "resuming_seconds"),
    "_session._export": ("export",),
    "_session._finish": ("Finished",),
    "_session._ledgers": ("other_ledgers", "unknown_releases"),
    "_session._periods": ("PeriodState", "PublishedPeriods", "is_unfinished", "period_state", "release_due"),
    "_session._reading": ("outcome_from_json", "read_release"),
    "_session._resume": ("finish_all", "resume"),
    "_session._session": ("check_affordable", "planned_spec", "release", "spec_seconds"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"leastnoise.{_HOME_OF[name]}"), name)
