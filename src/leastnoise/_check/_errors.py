"""The error classes of the whole package.

    LeastNoiseError
    ├── InputError        an argument, a spec or a file is not usable (exit code 2)
    ├── BudgetError       the ledger has less left than the plan would cost (exit code 2)
    ├── LedgerError       the ledger file cannot be used as it is (exit code 2)
    ├── GuardError        the guard of a release stopped it: only the guard was paid (exit code 2)
    ├── PaidError         something failed after a release was paid (exit code 3; 4 if the release is whole)
    └── InternalError     a fault of this package; please report it (exit code 70)

A message says what was wrong, what was got, what is allowed and what to do. On the private side it never contains a value of a row.
"""

MOST_CHARACTERS = 4000


class LeastNoiseError(Exception):
    """Base of every error that this package raises on purpose; the middle of a very long message is left out."""

    def __init__(self, message: str = "", *rest: object) -> None:
        half = MOST_CHARACTERS // 2
        super().__init__(message if len(message) <= MOST_CHARACTERS else f"{message[:half]} [...] {message[-half:]}", *rest)


class InputError(LeastNoiseError, ValueError):
    """An argument, a spec or a file cannot be used; nothing was spent."""


class BudgetError(LeastNoiseError):
    """The budget that is left does not cover the plan; nothing was spent."""


class LedgerError(LeastNoiseError):
    """The ledger file cannot be used as it is; nothing was spent."""


class GuardError(LeastNoiseError):
    """The guard of a release stopped it, because with confidence fewer than half of the rows are used; only the guard was paid."""


class PaidError(LeastNoiseError):
    """Something failed after a release was paid; the message says in what state the release is, and how to finish it.

    Attributes:
        state: "resumable" (`leastnoise resume` finishes it without paying again), "absent" (it cannot be finished), "whole" (it is
            published, and something failed afterwards) or "unknown" (the ledger could not be read).
        cause: the error.
    """

    def __init__(self, message: str, state: str = "unknown", cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.state = state
        self.cause = cause


class InternalError(LeastNoiseError):
    """A fault of this package, not of its user."""
