"""The one place that wires adapters, planner, kernel, estimate and release together; the automatic choice of a strategy lives here.

Names are loaded when first used: planning needs nothing of what reads rows, pays or writes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastnoise._adapters import CSV, columns, ledger_beside
    from leastnoise._audit import Audit
    from leastnoise._descriptions import read_description
    from leastnoise._exports import FILL_IN
    from leastnoise._kernel import Entry, Ledger
    from leastnoise._mechanisms import BY_NAME, Candidate, mechanism_of
    from leastnoise._session._accounts import IN_MEMORY, account, is_published, settle
    from leastnoise._session._audit import audit
    from leastnoise._planning._balanced import answering
    from leastnoise._session._before import check_before, check_writable, read_plan
    from leastnoise._session._categories import find_categories
    from leastnoise._planning._cells import with_max_rows
    from leastnoise._session._elsewhere import enter_release
    from leastnoise._session._expected import csv_blocks, reading_seconds, resuming_seconds
    from leastnoise._session._export import export
    from leastnoise._session._finish import Finished, finish_all, resume
    from leastnoise._session._ledgers import other_ledgers, unknown_releases
    from leastnoise._planning._objectives import Price, Reached, price, prices, reached, reached_by_means
    from leastnoise._planning._planned import compare, expected_seconds, plan, planned
    from leastnoise._session._reading import outcome_from_json, read_release
    from leastnoise._spec._searches import Searched, search_plans
    from leastnoise._session._session import check_affordable, planned_spec, release, spec_seconds
    from leastnoise._spec._source import IDENTIFIER, PERSON
    from leastnoise._spec._spec import BLANK, LEAST, Spec, parse_spec, read_spec, read_spec_text, read_toml, spec_from_table
    from leastnoise._spec._warnings_of_specs import plan_warnings, spec_warnings
    from leastnoise._planning._targets import Least, of_size, stated

_HOMES = {
    "_adapters": ("CSV", "columns", "ledger_beside"),
    "_audit": ("Audit",),
    "_descriptions": ("read_description",),
    "_exports": ("FILL_IN",),
    "_kernel": ("Entry", "Ledger"),
    "_mechanisms": ("BY_NAME", "Candidate", "mechanism_of"),
    "_session._accounts": ("IN_MEMORY", "account", "is_published", "settle"),
    "_session._audit": ("audit",),
    "_planning._balanced": ("answering",),
    "_session._before": ("check_before", "check_writable", "read_plan"),
    "_session._categories": ("find_categories",),
    "_planning._cells": ("with_max_rows",),
    "_session._elsewhere": ("enter_release",),
    "_session._expected": ("csv_blocks", "reading_seconds", "resuming_seconds"),
    "_session._export": ("export",),
    "_session._finish": ("Finished", "finish_all", "resume"),
    "_session._ledgers": ("other_ledgers", "unknown_releases"),
    "_planning._objectives": ("Price", "Reached", "price", "prices", "reached", "reached_by_means"),
    "_planning._planned": ("compare", "expected_seconds", "plan", "planned"),
    "_session._reading": ("outcome_from_json", "read_release"),
    "_spec._searches": ("Searched", "search_plans"),
    "_session._session": ("check_affordable", "planned_spec", "release", "spec_seconds"),
    "_spec._source": ("IDENTIFIER", "PERSON"),
    "_spec._spec": ("BLANK", "LEAST", "Spec", "parse_spec", "read_spec", "read_spec_text", "read_toml", "spec_from_table"),
    "_spec._warnings_of_specs": ("plan_warnings", "spec_warnings"),
    "_planning._targets": ("Least", "of_size", "stated"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BLANK",
    "BY_NAME",
    "CSV",
    "FILL_IN",
    "IDENTIFIER",
    "IN_MEMORY",
    "LEAST",
    "PERSON",
    "Audit",
    "Candidate",
    "Entry",
    "Finished",
    "Least",
    "Ledger",
    "Price",
    "Reached",
    "Searched",
    "Spec",
    "account",
    "answering",
    "audit",
    "check_affordable",
    "check_before",
    "check_writable",
    "columns",
    "compare",
    "csv_blocks",
    "enter_release",
    "expected_seconds",
    "export",
    "find_categories",
    "finish_all",
    "is_published",
    "ledger_beside",
    "mechanism_of",
    "of_size",
    "other_ledgers",
    "outcome_from_json",
    "parse_spec",
    "plan",
    "plan_warnings",
    "planned",
    "planned_spec",
    "price",
    "prices",
    "reached",
    "reached_by_means",
    "read_description",
    "read_plan",
    "read_release",
    "read_spec",
    "read_spec_text",
    "read_toml",
    "reading_seconds",
    "release",
    "resume",
    "resuming_seconds",
    "search_plans",
    "settle",
    "spec_from_table",
    "spec_seconds",
    "spec_warnings",
    "stated",
    "unknown_releases",
    "with_max_rows",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"leastnoise.{_HOME_OF[name]}"), name)
