"""Define the errors of the package and the checks of arguments.

The messages of all checks have the same wording.

    LeastNoiseError
    ├── InputError        an argument, a spec or a file is not usable (exit code 2)
    ├── BudgetError       the ledger has less left than the plan would cost (exit code 2)
    ├── LedgerError       the ledger file cannot be used as it is (exit code 2)
    ├── GuardError        the guard of a release stopped it: only the guard was paid (exit code 2)
    ├── PaidError         something failed after a release was paid (exit code 3; 4 if the release
    │                     is whole)
    └── InternalError     a fault of this package; please report it (exit code 70)

A message states the fault, the value, the allowed values and the remedy. A message about private
data never contains a value of a row. Comparisons state what is accepted (``if not value > 0``), so
that NaN is refused.
"""

import math
import numbers
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from leastnoise._trusted.check.helpers._value_texts import (
    ADVISED,
    REQUIRED,
    did_you_mean,
    message,
    quoted,
)

MOST_CHARACTERS = 4000  # characters of a message, so that no value fills the screen


class LeastNoiseError(Exception):
    """The base class of every error that this package raises on purpose.

    If a message is very long, its middle is omitted.
    """

    def __init__(self, message: str = "", *rest: object) -> None:
        half = MOST_CHARACTERS // 2
        super().__init__(
            message
            if len(message) <= MOST_CHARACTERS
            else f"{message[:half]} [...] {message[-half:]}",
            *rest,
        )


class InputError(LeastNoiseError, ValueError):
    """An argument, a spec or a file cannot be used; nothing was spent."""


class BudgetError(LeastNoiseError):
    """The remaining budget does not cover the plan; nothing was spent."""


class LedgerError(LeastNoiseError):
    """The ledger file cannot be used as it is; nothing was spent."""


class GuardError(LeastNoiseError):
    """The guard stopped a release; only the guard was paid.

    With high confidence, one of these is true: fewer than half of the rows are used, or none; the
    source has fewer than half of its public number of rows; or nearly no used row has a value in a
    column that only some tables use.
    """


class PaidError(LeastNoiseError):
    """Something failed after a release was paid.

    The message states the release's state, and how to finish the release.

    Attributes:
        state: "resumable" (`leastnoise resume` finishes it without a second payment), "absent" (it
            cannot be finished), "whole" (it is published, and something failed afterwards), "guard"
            (only its guard was paid) or "unknown" (the ledger could not be read).
        cause: the error.
    """

    def __init__(
        self, message: str, state: str = "unknown", cause: BaseException | None = None
    ) -> None:
        super().__init__(message)
        self.state = state
        self.cause = cause


class InternalError(LeastNoiseError):
    """A fault of this package, not an error of its user."""


Exact = int | float | str | Fraction | Decimal
MOST_DIGITS = 1000
"""Of a number that somebody typed, above or below the bar of its fraction."""

_POWER = re.compile(r"[eE][+-]?[0_]*[1-9][0-9_]{3}")


def refuse(name: str, got: object, allowed: str, advice: str = "") -> InputError:
    """Return the error to raise for an argument with an unusable value.

    Args:
        name: the name of the argument.
        got: the public value that was passed; it is quoted in at most 200 characters.
        allowed: the allowed values.
        advice: a sentence that tells the user what to do.

    >>> str(refuse("epsilon", -1, "a number above 0", "Choose for example 1."))
    'epsilon must be a number above 0; got -1. Choose for example 1.'
    """
    return InputError(
        message(
            REQUIRED + bool(advice) * ADVISED,
            what=name,
            allowed=allowed,
            got=quoted(got),
            advice=advice,
        )
    )


def exact(name: str, value: Exact) -> Fraction:
    """Convert an integer, a decimal or a fraction to an exact fraction.

    A float is read as the decimal number that Python prints for it.

    >>> exact("epsilon", "1/3"), exact("epsilon", 0.1)
    (Fraction(1, 3), Fraction(1, 10))
    """
    if (
        type(value) is Fraction
        and type(value.numerator) is type(value.denominator) is int
        and value.denominator > 0
    ):
        return Fraction(value.numerator, value.denominator)
    allowed = "a finite number, a decimal or a fraction such as 1, '0.1' or '1/3'"
    if (isinstance(value, int) and value.bit_length() > 4 * MOST_DIGITS) or (
        # Powers are refused before they are computed.
        isinstance(value, (str, Decimal))
        and (len(str(value)) > 2 * MOST_DIGITS + 2 or _POWER.search(str(value)))
    ):
        raise refuse(
            name,
            value,
            f"a fraction of two whole numbers of at most {MOST_DIGITS} digits each",
            "Use fewer digits.",
        )
    if isinstance(value, bool) or not isinstance(
        value, (int, float, str, Fraction, Decimal, numbers.Real)
    ):
        raise refuse(name, value, allowed)
    try:
        if isinstance(value, numbers.Rational):
            # A Fraction can hold numpy integers, which wrap around in later arithmetic.
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, (str, Decimal)):
            return Fraction(str(value).strip())
        if not math.isfinite(value):
            raise ValueError
        return Fraction(repr(float(value)))
    except (ValueError, ZeroDivisionError, ArithmeticError):
        raise refuse(name, value, allowed) from None


def exact_positive(name: str, value: Exact) -> Fraction:
    """Convert a number above 0 to an exact fraction.

    Raises:
        InputError: the number is 0 or less.

    >>> exact_positive("rho", "0.5")
    Fraction(1, 2)
    """
    number = exact(name, value)
    if not number.numerator > 0:  # several times as fast as the comparison of fractions
        raise refuse(name, value, "a number above 0")
    return number


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """Check that an integer is within limits, and return it.

    Raises:
        InputError: the value is not an integer from ``low`` to ``high``.

    >>> whole("ways", 2, 0)
    2
    """
    allowed = message(
        "a whole number of at least {low}"
        if high is None
        else "a whole number from {low} to {high}",
        low=low,
        high=high,
    )
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise refuse(name, value, allowed)
    number = int(value)
    if not number >= low or not (high is None or number <= high):
        raise refuse(name, value, allowed)
    return number


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """Check that a word is allowed, and return it.

    Raises:
        InputError: the value is not one of the allowed words.

    >>> one_of("neighbours", "replace", ["add_remove", "replace"])
    'replace'
    """
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        raise refuse(
            name,
            value,
            message("one of {words}", words=", ".join(map(repr, words))),
            did_you_mean(value, words),
        )
    return words[words.index(value)]


def plain(value: Any) -> Any:
    """Convert a text to a plain ``str``; return any other value unchanged.

    An object of a class derived from ``str`` could compare differently at the next comparison.

    >>> type(plain(np.str_("age")))
    <class 'str'>
    """
    characters = (value,)
    if isinstance(value, str):
        return "".join(characters)
    return value


class Immutable:
    """A base class whose objects cannot be changed after construction.

    Constructors set fields by ``object.__setattr__``.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be deleted")
