"""Write public values as text for people.

This file is not trusted: the texts are for messages and displays, and no decision depends on them.
"""

import re
import reprlib
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from html import escape

MOST_QUOTED = 200  # characters of a value in a message
REQUIRED = "{what} must be {allowed}; got {got}."
ADVISED = " {advice}"
_NAME = re.compile(r"{(\w+)(!r)?}")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = MOST_QUOTED
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHORT.maxfrozenset = 20


class Message(str):
    """A message that stores its template and its values for translation.

    Pages look up the translation of a message by its template.
    """

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, object]


def message(template: str, **values: object) -> Message:
    """Replace the names in braces of a template by values; return the message.

    Unlike a format string, a template uses only the text of a value.

    >>> message("{what} must be {allowed}.", what="rho", allowed="a number")
    'rho must be a number.'
    """
    shown = {
        name: number_text(value) if isinstance(value, Fraction) else value
        for name, value in values.items()
    }
    filled = Message(
        _NAME.sub(lambda name: repr(shown[name[1]]) if name[2] else str(shown[name[1]]), template)
    )
    filled.template = template
    filled.values = shown
    return filled


def html_facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return an HTML table of labels and texts, all of which are escaped."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def quoted(value: object) -> str:
    """Return the ``repr`` of a value for a message, with at most 200 characters."""
    if isinstance(value, int) and value.bit_length() > 4000:  # writing it would take long
        return "a whole number of over 1000 digits"
    try:
        text = _SHORT.repr(value)
    except (ValueError, RecursionError):
        # The value contains a huge number, or is nested without end.
        text = f"a {type(value).__name__}"
    if len(text) <= MOST_QUOTED:
        return text
    return text[:MOST_QUOTED] + "..."


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """Return a sentence that suggests the most similar word; "" if there is none."""
    if not isinstance(word, str):
        return ""
    names = list(words)
    same = [name for name in names if name.casefold() == word.casefold()]
    if not same:
        # Difflib costs a few milliseconds to import and only an error needs it.
        from difflib import get_close_matches

        same = get_close_matches(word, names, n=1)
    if same:
        return message("Did you mean {word!r}?", word=same[0])
    return ""


def readable(value: Fraction) -> str:
    """Format a fraction as a short decimal or as p/q.

    If a short decimal or a short ``p/q`` is exact, the text is this number. Otherwise it has six
    digits and the word "about".

    >>> readable(Fraction(1, 8)), readable(Fraction(1, 3)), readable(Fraction(2**70 + 1, 2**71))
    ('0.125', '1/3', 'about 0.500000')
    """
    context = Context(prec=12)
    decimal = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(
        context
    )
    if not context.flags[Inexact]:
        if Fraction(1, 10**5) <= abs(value) < 10**14:
            return format(decimal, "f")
        return str(decimal).lower()
    if value.numerator.bit_length() + value.denominator.bit_length() <= 40:
        return f"{value.numerator}/{value.denominator}"
    return (
        "about "
        + str(Context(prec=6).divide(Decimal(value.numerator), Decimal(value.denominator))).lower()
    )


def number_text(number: Fraction) -> str:
    """Format an exact number as a decimal if possible, otherwise as a fraction."""
    remainder = number.denominator
    twos = 0
    fives = 0
    while remainder % 2 == 0:
        remainder = remainder // 2
        twos = twos + 1
    while remainder % 5 == 0:
        remainder = remainder // 5
        fives = fives + 1
    decimals = max(twos, fives)
    if remainder != 1 or decimals == 0:
        return str(number)
    digits = str(abs(number.numerator) * 10**decimals // number.denominator).rjust(
        decimals + 1, "0"
    )
    return f"{'-' if number < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"


def exact_python_source(number: Fraction) -> str:
    """Format an exact number as Python source: an integer or a quoted decimal."""
    if number.denominator == 1:
        return str(number)
    return repr(number_text(number))
