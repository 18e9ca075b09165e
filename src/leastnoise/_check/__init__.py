"""Argument checks and error classes; imports nothing of the package."""

from leastnoise._check._arguments import Exact, exact, exact_positive, one_of, refuse, whole
from leastnoise._check._errors import BudgetError, InputError, InternalError, LeastNoiseError, LedgerError

__all__ = [
    "BudgetError",
    "Exact",
    "InputError",
    "InternalError",
    "LeastNoiseError",
    "LedgerError",
    "exact",
    "exact_positive",
    "one_of",
    "refuse",
    "whole",
]
