"""Argument checks and error classes; imports nothing of the package."""

from leastnoise._check._arguments import Exact, exact, exact_positive, one_of, refuse, whole
from leastnoise._check._errors import BudgetError, InputError, InternalError, LeastNoiseError, LedgerError
from leastnoise._check._memory import available_memory, in_bytes, limit_advice, require_memory

__all__ = [
    "BudgetError",
    "Exact",
    "InputError",
    "InternalError",
    "LeastNoiseError",
    "LedgerError",
    "available_memory",
    "exact",
    "exact_positive",
    "in_bytes",
    "limit_advice",
    "one_of",
    "refuse",
    "require_memory",
    "whole",
]
