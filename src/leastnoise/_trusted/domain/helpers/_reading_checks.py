"""Check the settings for reading a column, and write them as JSON.

This file is not trusted. Whatever the marks and spellings of a `Reading` are, the result of reading
a value depends only on that value.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from leastnoise._trusted.check import InputError, plain, refuse

THOUSANDS = (",", ".", "'", "\u2019", "_", " ", "\u00a0", "\u2009", "\u202f")
ALIKE_THOUSANDS = ("'\u2019", " \u00a0\u2009\u202f")
"""Marks of thousands that are used interchangeably, even in one file."""


def checked_reading(reading: Any, blanks: str) -> dict[str, object]:
    """Check the settings of a `Reading`, and return them by name."""
    nulls = _texts("nulls", reading.nulls, empty=True)
    currency = _texts("currency", reading.currency, empty=False)
    if reading.decimal not in (".", ","):
        raise refuse("decimal", reading.decimal, "'.' or ','")
    if reading.thousands != "" and reading.thousands not in THOUSANDS:
        raise refuse(
            "thousands",
            reading.thousands,
            "empty, or one of " + ", ".join(repr(mark) for mark in THOUSANDS),
        )
    if reading.thousands == reading.decimal:
        raise InputError(f"decimal and thousands must differ; got {reading.decimal!r} for both.")
    for sign in currency:
        if re.search("[0-9+\\-.,()\u2212]", sign) or sign != sign.strip(blanks):
            raise refuse(
                "a currency sign",
                sign,
                "text without digits, signs, brackets, points, commas and outer blanks, such as "
                "'€' or 'EUR'",
            )
    for name, flag in (("trim", reading.trim), ("ignore_case", reading.ignore_case)):
        if not isinstance(flag, bool):
            raise refuse(name, flag, "true or false")
    marks = {"decimal": plain(reading.decimal), "thousands": plain(reading.thousands)}
    return {**marks, "nulls": nulls, "currency": currency}


def reading_to_json(reading: Any) -> dict[str, object]:
    """Return the settings that differ from the defaults, as JSON values."""
    settings: dict[str, object] = {
        "decimal": reading.decimal,
        "column": reading.column,
        "nulls": list(reading.nulls),
        "thousands": reading.thousands,
        "currency": list(reading.currency),
        "trim": reading.trim,
        "ignore_case": reading.ignore_case,
    }
    if reading.decimal == ".":
        del settings["decimal"]
    return {name: value for name, value in settings.items() if value}


def _texts(name: str, value: object, *, empty: bool) -> tuple[str, ...]:
    """Return the distinct texts of a list; the empty text is omitted."""
    allowed = "a list of texts" + ("" if empty else " that are not empty")
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise refuse(name, value, allowed)
    texts = tuple(value)
    for text in texts:
        if not isinstance(text, str) or not (text or empty):
            raise refuse(name, text, allowed)
    return tuple(plain(text) for text in dict.fromkeys(texts) if text)
