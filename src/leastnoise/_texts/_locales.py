"""Write numbers, percentages, dates and lists in the notation of a language.

Separators, patterns and words come from the Unicode Common Locale Data Repository, which is part of
Babel. The number of digits depends on the error of a number, so callers choose it.
"""

import datetime as dt
import re
from collections.abc import Sequence
from copy import copy
from decimal import Decimal, localcontext
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel.core import Locale
    from babel.numbers import NumberPattern

_REGIONS = {"en": "en_GB"}
"""Locales of languages whose usual region is not the one of the pages."""
# A number in Python's notation: whole digits, perhaps with separators; decimals; power of ten.
_NUMBER = re.compile(r"(-?\d[\d,]*)(?:\.(\d+))?(?:e([+-])0*(\d+))?")
_PERCENT_IN_COMPOUND = re.compile(r"(?<=\d)\s+%-(?=\w)")
_CACHED_NUMBERS = 4096  # a page has fewer distinct margins and levels


@cache
def find_locale(language: str) -> "Locale":
    """Return Babel's locale for a language, in the region that pages use."""
    from babel.core import Locale

    return Locale.parse(_REGIONS.get(language, language))


@cache
def _number_pattern(language: str, decimals: int) -> "NumberPattern":
    """Return Babel's pattern for numbers with a fixed number of decimals."""
    pattern = copy(find_locale(language).decimal_formats[None])  # None selects the usual pattern
    pattern.frac_prec = (decimals, decimals)
    return pattern


@lru_cache(_CACHED_NUMBERS)
def localize_number(text: str, language: str) -> str:
    """Return a number in the notation of a language, with the same digits.

    Args:
        text: a number in Python's notation, such as ``1,234.50`` or ``1e-09``. The result has
            separators between groups of digits if ``text`` has them. Text that is not a number is
            returned unchanged.
        language: the language, such as ``de``.

    >>> [localize_number(text, "de") for text in ("1,234.50", "1234.5", "1.5e-09")]
    ['1.234,50', '1234,5', '1,5e-9']
    """
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    whole, decimals, exponent_sign, exponent = number.groups(default="")
    digits = Decimal(f"{whole.replace(',', '')}.{decimals or 0}")
    with localcontext() as context:
        # Babel rounds to the precision of the context.
        context.prec = max(context.prec, len(text))
        localized = _number_pattern(language, len(decimals)).apply(
            digits, find_locale(language), group_separator="," in whole
        )
    if exponent:
        # Users type budgets and probabilities with a lower-case e, so the same notation is written.
        return f"{localized}e{exponent_sign}{exponent}"
    return str(localized)


def find_decimal_mark(language: str) -> str:
    """Return the decimal mark of a language."""
    from babel.numbers import get_decimal_symbol

    return get_decimal_symbol(find_locale(language))


def find_group_mark(language: str) -> str:
    """Return the thousands separator of a language."""
    from babel.numbers import get_group_symbol

    return get_group_symbol(find_locale(language))


def add_percent_sign(number: str, language: str) -> str:
    """Return a localised number with the language's percent sign: ``95%``."""
    pattern = find_locale(language).percent_formats[None]
    return f"{pattern.prefix[0]}{number}{pattern.suffix[0]}"


def join_percent_compounds(text: str) -> str:
    """Add the hyphens of German compounds with percentages: ``95-%-Intervall``.

    German requires hyphens between all parts of such a compound.
    """
    return _PERCENT_IN_COMPOUND.sub("-%-", text)


def format_long_date(day: dt.date, language: str) -> str:
    """Return a date with the name of the month, such as ``29 November 2026``."""
    from babel.dates import format_date

    return format_date(day, "long", find_locale(language))


def format_month(day: dt.date, language: str) -> str:
    """Return the month and year of a date, such as ``January 2026``."""
    from babel.dates import format_skeleton

    return format_skeleton("yMMMM", day, locale=find_locale(language))


def join_list(parts: Sequence[str], language: str) -> str:
    """Return texts joined as a list of a sentence, such as ``a, b and c``."""
    from babel.lists import format_list

    return format_list(parts, locale=find_locale(language))


def join_alternatives(parts: Sequence[str], language: str) -> str:
    """Return texts joined as alternatives of a sentence, such as ``a, b or c``."""
    from babel.lists import format_list

    return format_list(parts, style="or", locale=find_locale(language))


def decline_plural(noun: str, language: str, *, dative: bool = False) -> str:
    """Return a plural noun as it follows an article: ``befragten Personen``.

    In German, adjectives then end in ``n``, and in the dative the noun does too. In other languages
    the text stays unchanged.

    Args:
        noun: a noun in the nominative, with its adjectives and without an article.
        language: the language, such as ``de``.
        dative: whether the text is in the dative case.

    >>> decline_plural("befragte Personen", "de"), decline_plural("Haushalte", "de", dative=True)
    ('befragten Personen', 'Haushalten')
    """
    if language != "de":
        return noun
    words = noun.split(" ")
    position = 0
    while position < len(words) - 1 and words[position].islower():
        if words[position].endswith("e"):
            words[position] += "n"
        position += 1
    if dative and words[position].endswith(("e", "er", "el")):
        words[position] += "n"
    return " ".join(words)
