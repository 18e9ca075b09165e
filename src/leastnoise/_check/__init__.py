"""Argument checks and error classes; imports nothing of the package."""

from leastnoise._check._arguments import (
    MOST_DIGITS,
    Exact,
    did_you_mean,
    exact,
    exact_positive,
    html_facts,
    one_of,
    plain,
    quoted,
    refuse,
    whole,
)
from leastnoise._check._errors import BudgetError, GuardError, InputError, InternalError, LeastNoiseError, LedgerError, PaidError
