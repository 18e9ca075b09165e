"""The one place that wires adapters, planner, kernel, estimate and release together; the automatic choice of a strategy lives here."""

from leastnoise._adapters import CSV, columns, ledger_beside
from leastnoise._kernel import Entry, Ledger
from leastnoise._session._accounts import IN_MEMORY, account, is_published, settle, unknown_releases
from leastnoise._session._audit import Audit, audit
from leastnoise._session._choose import Candidate, candidates, choose, noises
from leastnoise._session._data_aware import MECHANISMS
from leastnoise._session._finish import Finished, finish_all, resume
from leastnoise._session._session import check_affordable, compare, plan, planned, release
from leastnoise._session._spec import BLANK, Spec, parse_spec, read_spec
from leastnoise._session._spec_warnings import spec_warnings
from leastnoise._session._warnings import budget_warnings, error_warnings

__all__ = [
    "BLANK",
    "CSV",
    "IN_MEMORY",
    "MECHANISMS",
    "Audit",
    "Candidate",
    "Entry",
    "Finished",
    "Ledger",
    "Spec",
    "account",
    "audit",
    "budget_warnings",
    "candidates",
    "check_affordable",
    "choose",
    "columns",
    "compare",
    "error_warnings",
    "finish_all",
    "is_published",
    "ledger_beside",
    "noises",
    "parse_spec",
    "plan",
    "planned",
    "read_spec",
    "release",
    "resume",
    "settle",
    "spec_warnings",
    "unknown_releases",
]
