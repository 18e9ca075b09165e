"""The one place that wires adapters, planner, kernel, estimate and release together; the automatic choice of a strategy lives here."""

from leastnoise.adapters import columns
from leastnoise.measure import Entry, Ledger
from leastnoise.session._audit import Audit, audit
from leastnoise.session._choose import BY_NAME, PLANNERS, Candidate, candidates, choose, mechanisms
from leastnoise.session._data_aware import MECHANISMS
from leastnoise.session._session import compare, plan, planned, release, settle
from leastnoise.session._spec import BLANK, Spec, parse_spec, read_spec

__all__ = [
    "BLANK",
    "BY_NAME",
    "MECHANISMS",
    "PLANNERS",
    "Audit",
    "Candidate",
    "Entry",
    "Ledger",
    "Spec",
    "audit",
    "candidates",
    "choose",
    "columns",
    "compare",
    "mechanisms",
    "parse_spec",
    "plan",
    "planned",
    "read_spec",
    "release",
    "settle",
]
