"""Build the lookup tables that assign values to cells, for each kind.

A table contains only public numbers and texts (E3 in `_cells`).
"""

import datetime as dt
import math
import re
from fractions import Fraction
from typing import Any

from leastnoise._domain._dates import Dates
from leastnoise._domain._kinds import (
    Bins,
    Categories,
    Coded,
    Decimals,
    Edges,
    Integers,
    Unknown,
    compared_form,
)
from leastnoise._trusted.check import InternalError
from leastnoise._trusted.domain import (
    DROP,
    NOT_NUMBERS,
    Holds,
    KeyTable,
    Kind,
    Reading,
    Rule,
    StepTable,
    TextTable,
    ThresholdTable,
    TimeRule,
    rule_of,
    type_fault,
)

# Numpy is imported only when rules are made, so that other commands start quickly.
HOUR = 3600
DAY = 86_400
_EPOCH = dt.date(1970, 1, 1)
_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
# Periods of equal length: the length in seconds, and after how many periods they repeat.
_EVEN = {
    "hour": (HOUR, None),
    "hour_of_day": (HOUR, 24),
    "day": (DAY, None),
    "weekday": (DAY, 7),
    "week": (7 * DAY, None),
}

_FORMS = {
    "numbers": re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?(e[+-]?[0-9]+)?|-?inf", re.ASCII),
    "Booleans": re.compile(r"true|false"),
    "dates": re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2}", re.ASCII),
    "time stamps": re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2}( [0-9]{2}:.*)?", re.ASCII),
}
_TRUTH_VALUES = {"true", "false"}


@rule_of.register
def _(
    kind: Categories | Integers | Decimals | Bins | Edges | Dates | Coded | Unknown,
    marks: tuple[int, int] | None = None,
) -> Rule:
    """Return the rule that assigns values to the cells of an attribute."""
    if kind.hidden:
        dropped = kind.published
    else:
        dropped = DROP
    if marks is None:
        null = dropped if kind.null_cell is None else kind.null_cell
        outside = dropped if kind.outside_cell is None else kind.outside_cell
        size = kind.size
    else:
        null, outside = marks
        size = kind.size + 2
    clip = kind.outside == "clip"
    if isinstance(kind, Dates):
        clock = _clock(kind)
    else:
        clock = None
    table = _lookup_table(kind, null, outside)
    if clip:
        unreadable = null
    else:
        unreadable = outside
    return Rule(
        size=size,
        table=table,
        null=null,
        outside=outside,
        unreadable=unreadable,
        clip=clip,
        reading=kind.reading,
        clock=clock,
    )


def _null_forms(reading: Reading) -> list[str]:
    """Return the texts that mean a null; a null -9.0 is also written -9."""
    forms = [""]
    for text in reading.nulls:
        forms += [reading.form(text), compared_form(reading, text)]
    return forms


def _lookup_table(
    kind: Kind, null: int, outside: int
) -> StepTable | ThresholdTable | TextTable | KeyTable:
    """Return the lookup table that assigns read values to cells.

    Args:
        kind: the attribute.
        null: the number of the cell for a null.
        outside: the number of the cell for a value without a cell.
    """
    if isinstance(kind, Categories):
        return _text_table(kind, null)
    if isinstance(kind, Integers):
        return _integer_table(kind)
    if isinstance(kind, Coded):
        return StepTable(0, kind.codes - 1, 0)
    if isinstance(kind, Dates):
        return _period_table(kind, outside)
    if isinstance(kind, Unknown):
        return KeyTable(kind.longest)
    if isinstance(kind, Decimals):
        return _decimal_table(kind, outside)
    if isinstance(kind, (Bins, Edges)):
        return _bin_table(kind, outside)
    raise InternalError(f"nothing encodes the kind {type(kind).__name__}.")


def _text_table(kind: Categories, null: int) -> TextTable:
    """Return the lookup table of categories, by text and by whole number."""
    text_cells = dict.fromkeys(_null_forms(kind.reading), null) | kind.lookup
    whole_numbers = {
        form: cell for form, cell in text_cells.items() if _WHOLE.fullmatch(form) and form != "-0"
    }
    return TextTable(text_cells, whole_numbers)


def _integer_table(kind: Integers) -> StepTable:
    """Return the lookup table of integers; clipped values are rounded."""
    rounding = kind.rounding
    if not rounding and kind.outside == "clip":
        rounding = "nearest"
    return StepTable(kind.low, kind.high, kind.low, rounding=rounding or None)


def _decimal_table(kind: Decimals, outside: int) -> ThresholdTable:
    """Return the lookup table of decimals; clipped values take the nearest."""
    import numpy as np

    cells = np.arange(kind.regular)
    if kind.outside == "clip":
        middles = multiples(kind.low + kind.step / 2, kind.step, kind.regular - 1)
        return ThresholdTable(middles, cells)
    # A number equals a value if both have the same nearest double. Then it is at least the
    # value's double and below the next double.
    values = multiples(kind.low, kind.step, kind.regular)
    thresholds = np.stack([values, np.nextafter(values, np.inf)], axis=1)
    cells_from = np.stack([cells, np.full(kind.regular, outside)], axis=1)
    return ThresholdTable(
        thresholds.reshape(-1), np.concatenate([[outside], cells_from.reshape(-1)])
    )


def _bin_table(kind: Bins | Edges, outside: int) -> ThresholdTable:
    """Return the lookup table of bins; clipped values fall in the outermost."""
    import numpy as np

    cells = np.arange(kind.regular)
    # "x >= edge" is a comparison with the edge's double, and "x > edge" is a comparison with
    # the next double.
    if kind.closed == "left":
        inner = inner_edges(kind)
    else:
        inner = np.nextafter(inner_edges(kind), np.inf)
    if kind.outside == "clip":
        return ThresholdTable(inner, cells)
    ends = float(kind.low), math.nextafter(float(kind.high), math.inf)
    return ThresholdTable(
        np.concatenate([ends[:1], inner, ends[1:]]),
        np.concatenate([[outside], cells, [outside]]),
    )


def _clock(kind: Dates) -> TimeRule:
    """Return the rule that converts the texts or numbers of a column to times."""
    first, last = _days(kind)
    return TimeRule(
        first, last, kind.zone or "UTC", kind.pattern, kind.century or 0, kind.counted_in
    )


def _days(kind: Dates) -> tuple[int, int]:
    """Return the first and the last day, counted in days since 1970-01-01."""
    return (kind.start - _EPOCH).days, (kind.end - _EPOCH).days


def _period_table(kind: Dates, outside: int) -> StepTable | ThresholdTable:
    """Return the lookup table that assigns seconds since 1970 to periods.

    Even if a period is longer, its cell has only days from the first to the last day.
    """
    import numpy as np

    first, last = _days(kind)
    low = first * DAY
    end_second = (last + 1) * DAY
    if kind.by in _EVEN:
        step, repetition = _EVEN[kind.by]
        # Weeks and weekdays are counted from the Monday before the first day.
        if "week" in kind.by:
            origin = low - (first + 3) % 7 * DAY
        else:
            origin = low
        return StepTable(low, end_second - 1, origin, step, repetition)
    months = np.arange(first, last + 1).astype("M8[D]").astype("M8[M]").astype(np.int64)
    periods = months // {"year": 12, "quarter": 3, "month": 1}[kind.by]
    begins = (np.flatnonzero(np.diff(periods)) + 1 + first) * DAY
    if kind.outside == "clip":
        return ThresholdTable(begins, np.arange(kind.regular))
    return ThresholdTable(
        np.concatenate([[low], begins, [end_second]]),
        np.concatenate([[outside], np.arange(kind.regular), [outside]]),
    )


def inner_edges(kind: Bins | Edges) -> Any:
    """Return the edges of bins as nearest doubles, except the outermost edges."""
    import numpy as np

    if isinstance(kind, Edges):
        return np.array([float(edge) for edge in kind.edges[1:-1]])
    width = (kind.high - kind.low) / kind.count
    return multiples(kind.low + width, width, kind.count - 1)


def multiples(first: Fraction, step: Fraction, count: int) -> Any:
    """Return first, first + step, ... as nearest doubles, shape (count,)."""
    import numpy as np

    common = math.lcm(first.denominator, step.denominator)
    start = int(first * common)
    increment = int(step * common)
    if max(abs(start), abs(start + increment * count), common) < 2**53:
        # Numerator and denominator are exact as doubles, so the quotient is rounded only once.
        return (np.arange(count, dtype=np.int64) * increment + start) / float(common)
    # Python also rounds the quotient of two long integers only once.
    return np.array(
        [(start + increment * index) / common for index in range(count)], dtype=np.float64
    )


@type_fault.register
def _(_kind: Bins | Coded | Decimals | Edges | Integers, holds: Holds) -> str | None:
    """Return why a column of this type cannot hold numbers; None if it can."""
    if holds in ("dates", "time stamps"):
        return NOT_NUMBERS
    return None


@type_fault.register
def _(kind: Dates, holds: Holds) -> str | None:
    """Return why a column of this type cannot hold dates; None if it can."""
    if holds == "Booleans":
        return "it is read as dates, but true and false are not dates"
    if holds == "numbers" and kind.format is None:
        return (
            "it is read as dates, but numbers are not dates without a format; state the format, "
            'for example format = "%Y%m%d", or convert the column'
        )
    return None


@type_fault.register
def _(kind: Categories, holds: Holds) -> str | None:
    """Return why a column of this type has none of the categories, or None."""
    if holds not in _FORMS:
        return None
    forms = {*kind.lookup}
    if any(map(_FORMS[holds].fullmatch, forms)):
        return None
    examples = {
        "numbers": "such as 17 or 0.5",
        "Booleans": "true or false",
        "dates": "such as 2024-05-01",
        "time stamps": "such as 2024-05-01 13:45:00",
    }
    fault = f"none of its categories is the text of one of these, {examples[holds]}"
    if holds == "numbers" and forms <= _TRUTH_VALUES:
        return f'{fault}; say spellings = {{ true = ["1"], false = ["0"] }}'
    return f"{fault}; list the values as they are written so, or convert the column"
