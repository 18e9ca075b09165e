"""Every way from a workload to answers, with one protocol: public halves plan and check, private halves run within a paid series."""

from leastnoise._mechanisms._choose import Candidate, candidates, choose, noises, planning_seconds, reweighted, sharpened, too_large
from leastnoise._mechanisms._protocol import SECONDS, Explanation, Mechanism, Progress, Reference, Run, Search, terms_of
from leastnoise._mechanisms._registry import BY_NAME, MECHANISMS, mechanism_for, mechanism_of

__all__ = [
    "BY_NAME",
    "MECHANISMS",
    "SECONDS",
    "Candidate",
    "Explanation",
    "Mechanism",
    "Progress",
    "Reference",
    "Run",
    "Search",
    "candidates",
    "choose",
    "mechanism_for",
    "mechanism_of",
    "noises",
    "planning_seconds",
    "reweighted",
    "sharpened",
    "terms_of",
    "too_large",
]
