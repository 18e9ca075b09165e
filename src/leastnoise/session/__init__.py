"""The one place that wires adapters, planner, kernel, estimate and release together; the automatic choice of a strategy lives here."""

from leastnoise.session._choose import PLANNERS, Candidate, candidates, choose, mechanisms
from leastnoise.session._session import compare, plan, release, settle
from leastnoise.session._spec import Spec, parse_spec, read_spec

__all__ = [
    "PLANNERS",
    "Candidate",
    "Spec",
    "candidates",
    "choose",
    "compare",
    "mechanisms",
    "parse_spec",
    "plan",
    "read_spec",
    "release",
    "settle",
]
