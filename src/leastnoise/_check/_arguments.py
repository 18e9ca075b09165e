"""Checks of arguments, with one wording for all of them.

Comparisons accept instead of reject (``if not value > 0``), so that NaN fails.
"""

import math
import numbers
import re
import reprlib
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any

from leastnoise._check._errors import InputError


def html_facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """A small table of names and texts in HTML, everything escaped.

    Args:
        title: above it.
        facts: a name and a text each.

    >>> html_facts("a <b>", [("x", "1 & 2")])
    '<table><caption>a &lt;b&gt;</caption><tr><th>x</th><td>1 &amp; 2</td></tr></table>'
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts)
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


Exact = int | float | str | Fraction | Decimal

MOST_DIGITS = 1000
"""Of a number that somebody typed, above or below the bar of its fraction."""
MOST_QUOTED = 200
_POWER = re.compile(r"[eE][+-]?[0_]*[1-9][0-9_]{3}")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = MOST_QUOTED
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHORT.maxfrozenset = 20


def quoted(value: object) -> str:
    """What was got, for a message: at most 200 characters of it.

    >>> quoted("a" * 1000)[:5], len(quoted([["a" * 1000] * 9])), quoted(10**5000)
    ("'aaaa", 203, 'a whole number of over 1000 digits')
    """
    if isinstance(value, int) and value.bit_length() > 4 * MOST_DIGITS:
        return f"a whole number of over {MOST_DIGITS} digits"
    try:
        text = _SHORT.repr(value)
    except (ValueError, RecursionError):  # a huge number within, or endless nesting
        text = f"a {type(value).__name__}"
    return text if len(text) <= MOST_QUOTED else text[:MOST_QUOTED] + "..."


def refuse(name: str, got: object, allowed: str, advice: str = "") -> InputError:
    """Build the error for an unusable argument.

    >>> str(refuse("epsilon", -1, "a number above 0", "Choose for example 1."))
    'epsilon must be a number above 0; got -1. Choose for example 1.'
    """
    return InputError(f"{name} must be {allowed}; got {quoted(got)}." + (f" {advice}" if advice else ""))


def exact(name: str, value: Exact) -> Fraction:
    """Read a number exactly: integers, decimals and fractions; a float is read as the decimal it prints as.

    >>> exact("epsilon", "1/3"), exact("epsilon", 0.1)
    (Fraction(1, 3), Fraction(1, 10))
    """
    if type(value) is Fraction and type(value.numerator) is type(value.denominator) is int and value.denominator > 0:
        return Fraction(value.numerator, value.denominator)
    allowed = "a finite number, a decimal or a fraction such as 1, '0.1' or '1/3'"
    if (isinstance(value, int) and value.bit_length() > 4 * MOST_DIGITS) or (
        # Powers are refused before they are computed.
        isinstance(value, (str, Decimal)) and (len(str(value)) > 2 * MOST_DIGITS + 2 or _POWER.search(str(value)))
    ):
        raise refuse(name, value, f"a fraction of two whole numbers of at most {MOST_DIGITS} digits each", "Use fewer digits.")
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction, Decimal, numbers.Real)):
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
    """Read an exact number above zero.

    >>> exact_positive("rho", "0.5")
    Fraction(1, 2)
    """
    number = exact(name, value)
    if not number.numerator > 0:  # several times as fast as the comparison of fractions
        raise refuse(name, value, "a number above 0")
    return number


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """Read a whole number of at least ``low`` and, if given, at most ``high``.

    >>> whole("ways", 2, 0)
    2
    """
    allowed = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise refuse(name, value, allowed)
    number = int(value)
    if not number >= low or not (high is None or number <= high):
        raise refuse(name, value, allowed)
    return number


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """Suggest the public name that was probably meant.

    Args:
        word: what was typed.
        words: the names that exist.

    Returns:
        A sentence, or an empty text when nothing is close.

    Edge cases: a name that differs in case alone is always found; a word that is not text gives an empty text.

    >>> did_you_mean("incom", ["age", "income"])
    "Did you mean 'income'?"
    >>> did_you_mean("xyz", ["age", "income"])
    ''
    """
    if not isinstance(word, str):
        return ""
    names = list(words)
    same = [name for name in names if name.casefold() == word.casefold()]
    if not same:
        # difflib costs a few milliseconds to import and only an error needs it
        from difflib import get_close_matches

        same = get_close_matches(word, names, n=1)
    return f"Did you mean {same[0]!r}?" if same else ""


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """Read one word of a closed list.

    >>> one_of("neighbours", "replace", ["add_remove", "replace"])
    'replace'
    """
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        raise refuse(name, value, "one of " + ", ".join(repr(word) for word in words), did_you_mean(value, words))
    return words[words.index(value)]


def plain(value: Any) -> Any:
    """A text as one of Python's own, anything else as it is: a class derived from ``str`` could compare otherwise the next time.

    >>> type(plain(np.str_("age")))
    <class 'str'>
    """
    characters = (value,)
    return "".join(characters) if isinstance(value, str) else value
