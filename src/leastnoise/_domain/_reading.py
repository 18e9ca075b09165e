"""Names, and how the text of a value is read: said by whoever describes the data, never guessed from them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leastnoise._check import InputError, plain, refuse

BLANKS = " \t\r\u00a0\u202f"
THOUSANDS = (",", ".", "'", "\u2019", "_", " ", "\u00a0", "\u202f")


def attribute_name(what: str, name: object) -> str:
    """Check one name of an attribute, a measure or a column.

    >>> attribute_name("the name of an attribute", "sex")
    'sex'
    """
    allowed = "text that is not empty and has no control characters"
    # str.isprintable would also refuse the ideographic space, which occurs in real column names
    name = plain(name)
    if not isinstance(name, str) or not name or any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise refuse(what, name, allowed)
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the values of a column are read before its kind says which cell they are in.

    Args:
        column: the column's name in the source, where it is not that of the attribute.
        nulls: further spellings of a missing value besides the empty text, such as ``["NA", "-"]``; compared with the text as it is read,
            and with numbers as numbers: ``["-9"]`` makes the number -9 a null too.
        decimal: the decimal mark of numbers that are text, ``"."`` or ``","``.
        thousands: what stands between groups of three digits, such as ``"."`` or ``"'"``; empty: nothing does.
        currency: signs that may stand once before or after a number, such as ``["€", "$"]``.
        trim: leave out blanks at both ends of a text (space, tab, CR, no-break spaces).
        ignore_case: compare letters without regard to their case, each letter by itself.

    Raises:
        InputError: a value that is not one of these, or marks that cannot be told apart.

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
            attribute_name("column", self.column)
        object.__setattr__(self, "nulls", _texts("nulls", self.nulls, empty=True))
        object.__setattr__(self, "currency", _texts("currency", self.currency, empty=False))
        if self.decimal not in (".", ","):
            raise refuse("decimal", self.decimal, "'.' or ','")
        if self.thousands != "" and self.thousands not in THOUSANDS:
            raise refuse("thousands", self.thousands, "empty, or one of " + ", ".join(repr(mark) for mark in THOUSANDS))
        if self.thousands == self.decimal:
            raise InputError(f"decimal and thousands must differ; got {self.decimal!r} for both.")
        for sign in self.currency:
            if re.search(r"[0-9+\-.,]", sign) or sign != sign.strip(BLANKS):
                raise refuse("a currency sign", sign, "text without digits, signs, points, commas and outer blanks, such as '€' or 'EUR'")
        for name, flag in (("trim", self.trim), ("ignore_case", self.ignore_case)):
            if not isinstance(flag, bool):
                raise refuse(name, flag, "true or false")

    @property
    def plain_numbers(self) -> bool:
        """Whether numbers that are text are read as everywhere, without marks of their own."""
        return (self.decimal, self.thousands, self.currency) == (".", "", ())

    def form(self, text: str) -> str:
        """The text that is compared.

        >>> ln.Reading(trim=True, ignore_case=True).form(" Straße ")
        'straße'
        """
        text = text.strip(BLANKS) if self.trim else text
        return lowered(text) if self.ignore_case else text

    def to_json(self) -> dict[str, object]:
        """What differs from the usual, as plain JSON values."""
        said: dict[str, object] = {"column": self.column, "nulls": list(self.nulls), "thousands": self.thousands}
        said |= {"currency": list(self.currency), "trim": self.trim, "ignore_case": self.ignore_case}
        point = {} if self.decimal == "." else {"decimal": self.decimal}
        return {**point, **{name: value for name, value in said.items() if value}}

    def __repr__(self) -> str:
        return f"Reading({', '.join(f'{name}={value!r}' for name, value in self.to_json().items())})"


def lowered(text: str) -> str:
    """Every letter in lower case by itself, whatever stands around it.

    >>> lowered("ÉTÉ, İ")
    'été, İ'
    """
    if text.isascii():
        return text.lower()
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def _texts(name: str, value: object, *, empty: bool) -> tuple[str, ...]:
    allowed = "a list of texts" + ("" if empty else " that are not empty")
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise refuse(name, value, allowed)
    texts = tuple(value)
    for text in texts:
        if not isinstance(text, str) or not (text or empty):
            raise refuse(name, text, allowed)
    return tuple(dict.fromkeys(text for text in texts if text))
