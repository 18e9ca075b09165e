"""The one place that wires adapters, planner, kernel, estimate and release together; the automatic choice of a strategy lives here."""

from leastnoise._adapters import CSV, columns, ledger_beside
from leastnoise._audit import Audit
from leastnoise._descriptions import read_description
from leastnoise._exports import FILL_IN
from leastnoise._kernel import Entry, Ledger
from leastnoise._mechanisms import BY_NAME, Candidate, mechanism_of
from leastnoise._session._accounts import IN_MEMORY, account, is_published, settle
from leastnoise._session._audit import audit
from leastnoise._session._before import check_before, read_plan
from leastnoise._session._categories import find_categories
from leastnoise._session._cells import with_max_rows
from leastnoise._session._elsewhere import enter_release
from leastnoise._session._export import export
from leastnoise._session._finish import Finished, finish_all, resume
from leastnoise._session._objectives import Price, Reached, price, prices, reached
from leastnoise._session._reading import outcome_from_json, read_release
from leastnoise._session._searches import Searched
from leastnoise._session._session import check_affordable, compare, expected_seconds, plan, planned, planned_spec, release
from leastnoise._session._sight import other_ledgers, unknown_releases
from leastnoise._session._spec import BLANK, LEAST, Spec, parse_spec, read_spec, read_spec_text, read_toml, spec_from_table
from leastnoise._session._spec_warnings import plan_warnings, spec_warnings
from leastnoise._session._targets import Least, answering, of_size, stated

__all__ = [
    "BLANK",
    "BY_NAME",
    "CSV",
    "FILL_IN",
    "IN_MEMORY",
    "LEAST",
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
    "columns",
    "compare",
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
    "read_description",
    "read_plan",
    "read_release",
    "read_spec",
    "read_spec_text",
    "read_toml",
    "release",
    "resume",
    "settle",
    "spec_from_table",
    "spec_warnings",
    "stated",
    "unknown_releases",
    "with_max_rows",
]
