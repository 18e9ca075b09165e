"""Which cell a value is in, written once as data: of each kind of attribute a small table, made of public numbers and texts alone (E3).

`_encode` applies a table to whole columns, and `_sql` writes it in the words of an engine; neither has a rule of its own. What a value is
before that (a number, a text, a time) is what `_values` reads, or the type of its column.
"""

import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._adapters._values import number
from leastnoise._check import InputError, InternalError
from leastnoise._check.arrays import Array, FloatArray, IntArray
from leastnoise._domain import Bins, Categories, Coded, Dates, Decimals, Edges, Integers, Kind, Reading, Unknown

# A row with this cell in any attribute is dropped.
DROP = -1
HOUR, DAY = 3600, 86_400
_EPOCH = dt.date(1970, 1, 1)
_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
# Periods of one length: it, and how many of them there are where they come again.
_EVEN = {"hour": (HOUR, None), "hour_of_day": (HOUR, 24), "day": (DAY, None), "weekday": (DAY, 7), "week": (7 * DAY, None)}


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Whole numbers in equal steps: from ``low`` to ``high`` the cell is how many whole steps a number is above ``origin``.

    Attributes:
        low: the least number inside.
        high: the greatest number inside.
        origin: where cell 0 begins, at most ``low``.
        step: numbers in a cell.
        again: after so many cells they begin anew; None: they do not.
        rounding: how a number between two whole ones becomes one of them: ``"down"``, ``"up"``, ``"nearest"`` (ties to the even one), or
            None: it is outside.
    """

    low: int
    high: int
    origin: int
    step: int = 1
    again: int | None = None
    rounding: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Numbers between thresholds: below the first one is ``cells[0]``, from the first on (itself included) ``cells[1]``, and so on.

    Attributes:
        at: the thresholds, rising; doubles, or whole seconds.
        cells: int64, one more than thresholds.
    """

    at: Array
    cells: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """Texts.

    Attributes:
        cells: of each form, as the reading compares it; the forms that mean a null are among them.
        wholes: of each category that is a whole number: text made of it, a point and zeros means it too, unless that is a form itself.
    """

    cells: Mapping[str, int]
    wholes: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """The rule of one attribute.

    Attributes:
        table: from a number, a text or a time (seconds since 1970 on the attribute's clock) to a cell.
        null: the cell of a null.
        outside: the cell of a value that the table does not have.
        strange: the cell of what is no number, or no time, at all.
        clip: whether a number beyond the steps is taken to the nearest one.
        nulls: the numbers that mean a null.
        reading: how values are read.
    """

    table: Steps | Cuts | Forms
    null: int
    outside: int
    strange: int
    clip: bool
    nulls: FloatArray
    reading: Reading


def rule_of(kind: Kind, marks: tuple[int, int] | None = None) -> Rule:
    """The rule of an attribute.

    Args:
        kind: the attribute.
        marks: what stands for a null and for what is outside; None: what the attribute's policies say.

    Raises:
        InputError: the categories of the attribute are not known yet.

    >>> rule = rule_of(Bins(0, 1, 2, outside="other"))
    >>> rule.table.at.tolist(), rule.table.cells.tolist()
    ([0.0, 0.5, 1.0000000000000002], [2, 0, 1, 2])
    >>> rule_of(Categories(["F", "M"], reading=Reading(nulls=["-"]))).table.cells
    {'': -1, '-': -1, 'F': 0, 'M': 1}
    """
    null, outside = marks or (kind.regular if policy == "other" else DROP for policy in (kind.null, kind.outside))
    clip, reading = kind.outside == "clip", kind.reading
    return Rule(_table(kind, null, outside), null, outside, null if clip else outside, clip, null_numbers(reading), reading)


def _table(kind: Kind, null: int, outside: int) -> Steps | Cuts | Forms:
    clip = kind.outside == "clip"
    if isinstance(kind, Categories):
        nulls, lookup = dict.fromkeys(("", *map(kind.reading.form, kind.reading.nulls)), null), kind.lookup
        return Forms({**nulls, **lookup}, {form: cell for form, cell in lookup.items() if _WHOLE.fullmatch(form) and form != "-0"})
    if isinstance(kind, Integers):
        # what is clipped becomes whole too
        return Steps(kind.low, kind.high, kind.low, rounding=kind.rounding or ("nearest" if clip else None))
    if isinstance(kind, Coded):
        return Steps(0, kind.codes - 1, 0)
    if isinstance(kind, Dates):
        return _periods(kind, outside)
    places = np.arange(kind.regular)
    if isinstance(kind, Decimals):
        if clip:
            return Cuts(multiples(kind.low + kind.step / 2, kind.step, kind.regular - 1), places)
        values = multiples(kind.low, kind.step, kind.regular)
        # a number is one of them if the doubles nearest to both are the same: from it to the next double
        pairs = np.stack([places, np.full(kind.regular, outside)], axis=1)
        return Cuts(np.stack([values, _next(values)], axis=1).reshape(-1), np.concatenate([[outside], pairs.reshape(-1)]))
    if isinstance(kind, (Bins, Edges)):
        # a double that is not below an edge is at least the edge, and one that is above it at least the double behind it
        inner = inner_edges(kind) if kind.closed == "left" else _next(inner_edges(kind))
        if clip:
            return Cuts(inner, places)
        ends = np.array([float(kind.low), float(kind.high)])
        return Cuts(np.concatenate([ends[:1], inner, _next(ends[1:])]), np.concatenate([[outside], places, [outside]]))
    if isinstance(kind, Unknown):
        raise InputError(
            f"The categories of {kind!r} are not known yet. Find them first, with `leastnoise categories` or leastnoise.find_categories."
        )
    raise InternalError(f"nothing encodes the kind {type(kind).__name__}.")


def _next(numbers: FloatArray) -> FloatArray:
    return np.nextafter(numbers, np.inf)


def days_of(kind: Dates) -> tuple[int, int]:
    """The first and the last day, counted from 1970-01-01.

    >>> days_of(Dates("1970-01-31", "1970-02-01", "month"))
    (30, 31)
    """
    return (kind.start - _EPOCH).days, (kind.end - _EPOCH).days


def _periods(kind: Dates, outside: int) -> Steps | Cuts:
    """By seconds; the first and the last cell hold the days from the first and to the last alone."""
    first, last = days_of(kind)
    low, behind = first * DAY, (last + 1) * DAY
    if kind.by in _EVEN:
        step, again = _EVEN[kind.by]
        # weeks and weekdays are counted from the Monday before the first day
        origin = low - (first + 3) % 7 * DAY if "week" in kind.by else low
        return Steps(low, behind - 1, origin, step, again)
    months = np.arange(first, last + 1).astype("M8[D]").astype("M8[M]").astype(np.int64)
    periods = months // {"year": 12, "quarter": 3, "month": 1}[kind.by]
    begins = (np.flatnonzero(np.diff(periods)) + 1 + first) * DAY
    if kind.outside == "clip":
        return Cuts(begins, np.arange(kind.regular))
    return Cuts(np.concatenate([[low], begins, [behind]]), np.concatenate([[outside], np.arange(kind.regular), [outside]]))


def inner_edges(kind: Bins | Edges) -> FloatArray:
    """The doubles nearest to the edges between bins.

    >>> inner_edges(Bins(0, 1, 4)).tolist()
    [0.25, 0.5, 0.75]
    """
    if isinstance(kind, Edges):
        return np.array([float(edge) for edge in kind.edges[1:-1]])
    width = (kind.high - kind.low) / kind.count
    return multiples(kind.low + width, width, kind.count - 1)


def multiples(first: Fraction, step: Fraction, count: int) -> FloatArray:
    """The doubles nearest to first, first + step ..., shape (count,).

    >>> multiples(Fraction(1, 10), Fraction(1, 10), 3).tolist()
    [0.1, 0.2, 0.3]
    """
    common = math.lcm(first.denominator, step.denominator)
    start, more = int(first * common), int(step * common)
    if max(abs(start), abs(start + more * count), common) < 2**53:
        # numerator and denominator are exact doubles, so their quotient is rounded once
        return (np.arange(count, dtype=np.int64) * more + start) / float(common)
    # Python's quotient of integers of any length is rounded once too
    return np.array([(start + more * place) / common for place in range(count)], dtype=np.float64)


def null_numbers(reading: Reading) -> FloatArray:
    """The numbers that mean a null.

    >>> null_numbers(Reading(nulls=["-9", "NA"])).tolist()
    [-9.0]
    """
    return np.array([found for found in map(number, reading.nulls) if found is not None and not math.isnan(found)], dtype=np.float64)
