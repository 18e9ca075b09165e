"""Argument checks and error classes; imports nothing of the package."""

from leastnoise._check._arguments import MOST_DIGITS, Exact, exact, exact_positive, one_of, quoted, read_json, refuse, whole
from leastnoise._check._causes import cause
from leastnoise._check._errors import BudgetError, InputError, InternalError, LeastNoiseError, LedgerError, PaidError
from leastnoise._check._runs import note_run, runs

__all__ = [
    "MOST_DIGITS",
    "BudgetError",
    "Exact",
    "InputError",
    "InternalError",
    "LeastNoiseError",
    "LedgerError",
    "PaidError",
    "cause",
    "exact",
    "exact_positive",
    "note_run",
    "one_of",
    "quoted",
    "read_json",
    "refuse",
    "runs",
    "whole",
]
