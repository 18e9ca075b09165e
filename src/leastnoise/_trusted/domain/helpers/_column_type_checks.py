"""Refuse columns whose declared types cannot have values of the attributes.

The module also refuses a measure whose column has such a type.

This file is not trusted. A column that the module does not refuse is read by its rule, value by
value.
"""

from functools import singledispatch
from typing import Literal

from leastnoise._trusted.domain._measure import Measure

Holds = Literal["numbers", "Booleans", "texts", "dates", "time stamps", "nulls"]
NOT_NUMBERS = (
    "it is read as numbers, which dates and time stamps are not; declare an attribute with dates"
)


@singledispatch
def type_fault(_declared: object, _holds: Holds) -> str | None:
    """Explain why no value of a column can be read; None if a value can be read.

    Args:
        _declared: the attribute or measure; `leastnoise._domain._rules` adds the kinds of
            attributes.
        _holds: the type of the column's values, such as "dates".

    >>> type_fault(Measure("paid", 0, 9), "time stamps")
    'it is read as numbers, which dates and time stamps are not; declare an attribute with dates'
    >>> type_fault(Integers(0, 9), "Booleans")
    """
    return None


@type_fault.register
def _(_measure: Measure, holds: Holds) -> str | None:
    """Explain why a column of this type has no numbers to sum; None if it has."""
    if holds in ("dates", "time stamps"):
        return NOT_NUMBERS
    return None
