"""Check names, and define how the text of a value is read.

The author of the domain declares names and readings; they are never inferred from the data.
"""

import re
from dataclasses import dataclass

from leastnoise._trusted.check import InternalError, plain, refuse
from leastnoise._trusted.domain.helpers._reading_checks import (
    ALIKE_THOUSANDS,
    checked_reading,
    reading_to_json,
)

BLANKS = " \t\r\u00a0\u202f"
MINUS = "\u2212"
"""The minus sign of Unicode; it means the same as the hyphen."""


def attribute_name(description: str, name: object) -> str:
    """Check the name of an attribute, measure or column, and return it.

    Raises:
        InputError: the name is unusable.

    >>> attribute_name("the name of an attribute", "sex")
    'sex'
    """
    allowed = "text that is not empty and has no control characters"
    # The method `isprintable` would also refuse the ideographic space, which occurs in real column
    # names.
    name = plain(name)
    if (
        not isinstance(name, str)
        or not name
        or any(ord(character) < 32 or ord(character) == 127 for character in name)
    ):
        raise refuse(description, name, allowed)
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The rule by which the values of a column are read.

    Values are read by this rule before the kind of the attribute decides their cells.

    Args:
        column: the column's name in the source, if it differs from the attribute's name.
        nulls: spellings of a missing value in addition to the empty text, such as ``["NA", "-"]``.
            They are compared with the text after reading. In a column of numbers, they are compared
            as numbers: ``["-9"]`` also makes the number -9 a null.
        decimal: the decimal mark of numbers that are text, ``"."`` or ``","``.
        thousands: the separator of groups of three digits, such as ``"."`` or ``"'"``; if it is
            empty, digits are not grouped. All blanks count as one mark, and so do both apostrophes.
        currency: signs that may stand once before or after a number, such as ``["€", "$"]``.
        trim: whether blanks (space, tab, CR, no-break spaces) are removed at both ends of a text.
        ignore_case: whether the comparison ignores the case of letters; each letter is compared
            separately.

    Raises:
        InputError: a setting has a value that is not allowed, or two marks cannot be distinguished.
        InternalError: an argument is neither a text nor a Boolean.

    >>> ln.Reading(decimal=",", thousands=".", currency=["€"])
    Reading(decimal=',', thousands='.', currency=['€'])
    """

    column: str | None = None
    nulls: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    currency: tuple[str, ...] = ()
    trim: bool = False
    ignore_case: bool = False

    def __post_init__(self) -> None:
        if self.column is not None:
            object.__setattr__(self, "column", attribute_name("column", self.column))
        for name, value in checked_reading(self, BLANKS).items():
            object.__setattr__(self, name, value)
        # Plain `str`: a text of another class could give another answer the next time.
        texts = {
            type(text)
            for text in (
                self.column or "",
                self.decimal,
                self.thousands,
                *self.nulls,
                *self.currency,
            )
        }
        kinds = [
            type(setting) for setting in (self.nulls, self.currency, self.trim, self.ignore_case)
        ]
        if texts != {str} or kinds != [tuple, tuple, bool, bool]:
            raise InternalError(
                "a reading must be made of texts and of true or false; please report this."
            )

    def form(self, text: str) -> str:
        """Normalise a text, so that it can be compared with categories.

        >>> ln.Reading(trim=True, ignore_case=True).form(" Straße ")
        'straße'
        """
        if self.trim:
            text = text.strip(BLANKS)
        if self.ignore_case:
            return lower_case(text)
        return text

    def to_json(self) -> dict[str, object]:
        """Return the settings that differ from the defaults, as JSON values."""
        return reading_to_json(self)

    def __repr__(self) -> str:
        return (
            f"Reading({', '.join(f'{name}={value!r}' for name, value in self.to_json().items())})"
        )


def lower_case(text: str) -> str:
    """Convert letters to lower case, except those that would become two letters.

    Each letter is changed independently of the letters around it.

    >>> lower_case("ÉTÉ, İ")
    'été, İ'
    """
    if text.isascii():
        return text.lower()
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def number_pattern(reading: Reading) -> re.Pattern[str]:
    """Return the regular expression that matches texts of numbers.

    Its groups are ``whole``, ``part`` and ``power`` (the digits and the exponent), four positions
    of a sign (``sign1`` to ``sign4``), ``opened`` and ``closed`` (brackets of a negative amount)
    and four positions of a currency sign (``money1`` to ``money4``). The expression also matches a
    text that has several signs, or only one of the two brackets;
    `leastnoise._trusted.reading._value_rules.number_reader` refuses it. Blanks are matched
    possessively, so that the time of a match is proportional to the length of the text.

    >>> number_pattern(Reading(decimal=",")).fullmatch("3,5")["whole"]
    '3'
    """
    blanks = f"[{BLANKS}]*+"
    symbols = sorted(reading.currency, key=len, reverse=True)
    money = "|".join(map(re.escape, symbols)) or "(?!)"
    currency = [f"(?:(?P<money{position}>{money}){blanks})?" for position in range(1, 5)]
    sign = [f"(?:(?P<sign{position}>[+\\-{MINUS}]){blanks})?" for position in range(1, 5)]
    digits = "[0-9]+"
    if reading.thousands:
        digits = f"(?:[0-9]{{1,3}}(?:{_thousands_pattern(reading.thousands)}[0-9]{{3}})+|[0-9]+)"
    mark = re.escape(reading.decimal)
    number = f"(?P<whole>{digits})?(?:{mark}(?P<part>[0-9]*))?(?P<power>e[+-]?[0-9]+)?"
    before = f"{blanks}{currency[0]}(?:(?P<opened>[(]){blanks})?{sign[0]}{currency[1]}{sign[1]}"
    ending = f"{blanks}{sign[2]}{currency[2]}{sign[3]}(?:(?P<closed>[)]){blanks})?{currency[3]}"
    return re.compile(f"{before}{number}{ending}", re.IGNORECASE)


def _thousands_pattern(mark: str) -> str:
    """Return the regular expression that matches a thousands separator.

    All blanks count as one mark, and so do both apostrophes.
    """
    equal_marks = next((marks for marks in ALIKE_THOUSANDS if mark in marks), mark)
    return f"[{re.escape(equal_marks)}]"
