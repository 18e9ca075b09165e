"""Argument checks and error classes; imports nothing of the package."""

from leastnoise._trusted.check._days import today
from leastnoise._trusted.check._errors import (
    MOST_DIGITS,
    BudgetError,
    Exact,
    GuardError,
    Immutable,
    InputError,
    InternalError,
    LeastNoiseError,
    LedgerError,
    PaidError,
    exact,
    exact_positive,
    one_of,
    plain,
    refuse,
    whole,
)
from leastnoise._trusted.check.helpers._value_texts import (
    Message,
    did_you_mean,
    exact_python_source,
    html_facts,
    message,
    number_text,
    quoted,
    readable,
)
