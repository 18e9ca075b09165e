"""The rule written in `leastnoise._domain` as SQL: expressions of one row's values, in which no value can make a query fail (E7).

Closed by default: whatever has no expression here (a kind of attribute, a type of column, an unusual category) is None, and its rows are
read instead. Expressions are trees of sqlglot, which writes and quotes them for each engine. The labels refer to PROOFS-adapters.md.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, singledispatch
from typing import Any, Literal

import numpy as np
from sqlglot import exp

from leastnoise._adapters._dates import changes_of_clock, days_of
from leastnoise._adapters._encode import DROP, inner_edges, multiples, null_numbers
from leastnoise._domain import BLANKS, Bins, Categories, Coded, Dates, Decimals, Edges, Integers, Measure, Reading, Unknown, ValueCount

# The base class of sqlglot's expressions has had several names.
Expression = Any
# What a column holds, whatever its engine calls the type: whole numbers of at most 64 bits; doubles; Booleans; text compared by its bytes;
# days since 1970; microseconds since then on a clock without a time zone, and of UTC; microseconds since an attribute's days begin. These
# are whole numbers of 64 bits too.
Held = Literal["integer", "double", "boolean", "text", "day", "stamp", "instant", "since"]
# A longer list of cases is slower than reading the rows.
MOST_CASES = 4096
# Beyond this a number read as a double is no longer itself.
_EXACT = 2**53
_LONGEST = 400
# Not every engine takes later ones for one letter.
_LAST_SHORT = 0xFFFF
_HOUR, _DAY = 3600 * 10**6, 24 * 3600 * 10**6
_CONTROLS = "".join(map(chr, (*range(1, 32), *range(127, 160))))
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\\]*")
_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Value:
    """A column as an engine sees it: what it holds, and the expression of its value.

    Attributes:
        held: what it holds.
        it: the expression.
    """

    held: Held
    it: Expression

    @property
    def is_null(self) -> Expression:
        """Whether it is null by the rule: also a NaN, an empty text, and the least number as a time."""
        missing: Expression = exp.Is(this=self.it.copy(), expression=exp.Null())
        other = _NULLS.get(self.held)
        return missing if other is None else exp.or_(missing, exp.EQ(this=self.it.copy(), expression=other.copy()))

    @property
    def number(self) -> "Value | None":
        """As a number, None if it is read otherwise."""
        if self.held == "boolean":
            return Value("integer", case([(self.it, whole(1)), (exp.Not(this=self.it.copy()), whole(0))], exp.Null()))
        return self if self.held in {"integer", "double"} else None

    def is_missing(self, reading: Reading) -> Expression:
        """Whether a number is null, or one of the numbers that mean a null."""
        nulls = null_numbers(reading)
        it = exp.cast(self.it.copy(), "DOUBLE") if self.held == "integer" else self.it
        return exp.or_(self.is_null, *(exp.EQ(this=it.copy(), expression=double(one)) for one in nulls))


def whole(number: int) -> Expression:
    """A whole number of 64 bits."""
    return exp.cast(exp.Literal.string(str(number)), "BIGINT")


def double(number: float | str) -> Expression:
    """A double, by the shortest text that means it."""
    return exp.cast(exp.Literal.string(number if isinstance(number, str) else repr(number)), "DOUBLE")


def text(value: str) -> Expression:
    """A text."""
    return exp.Literal.string(value)


def case(ifs: Sequence[tuple[Expression, Expression]], otherwise: Expression, of: Expression | None = None) -> Expression:
    """The first that applies: of CASE alone an engine promises that what does not apply is not computed.

    >>> case([(exp.column("a"), whole(1))], exp.Null()).sql()
    "CASE WHEN a THEN CAST('1' AS BIGINT) ELSE NULL END"
    """
    if not ifs:
        return otherwise.copy()
    built = exp.Case(this=None if of is None else of.copy())
    for condition, then in ifs:
        built = built.when(condition.copy(), then.copy(), copy=False)
    return built.else_(otherwise.copy(), copy=False)


# What is a null too, of what a column holds.
_NULLS = {"double": double("NaN"), "text": text(""), "stamp": whole(-(2**63)), "instant": whole(-(2**63))}


def prepared(kind: Any, value: Value, sound: Callable[[Expression], Expression] | None = None) -> Value | None:
    """What the cell of an attribute is an expression of, many times over, so that it is given a name; None where it is read otherwise.

    >>> prepared(Coded(2), Value("integer", exp.column("a"))).it.sql()
    'a'
    """
    if isinstance(kind, Dates):
        return _since(kind, value) if value.held in {"day", "stamp", "instant"} else None
    if sound is not None and value.held == "text" and (kind.reading.trim or kind.reading.ignore_case):
        # What is no text could become one by what is taken off or changed: before that it becomes one that has no form.
        forms = {*kind.lookup, *_nulls(kind)} if isinstance(kind, Categories) else {""}
        strange = exp.Null() if isinstance(kind, Unknown) else text("?" * (1 + max(map(len, forms))))
        value = Value("text", case([(exp.not_(sound(value.it)), strange)], value.it))
    if isinstance(kind, Unknown):
        return _spelled(kind, value)
    return _formed(kind, value) if isinstance(kind, Categories) and value.held == "text" else value


def cell_of(kind: Any, value: Value) -> Expression | None:
    """The cell of an attribute as a 64-bit integer, ``DROP`` where the row is to be dropped; None where it is read otherwise.

    Args:
        kind: the attribute.
        value: as `prepared` gives it.

    >>> cell_of(Coded(2), Value("text", exp.column("a"))) is None
    True
    """
    # a field that this file does not know of could change what the others mean
    known = {field.name for field in fields(kind)} <= _FIELDS and {field.name for field in fields(kind.reading)} == _READING
    return _cell(kind, value) if known else None


# Levels are read off the cells; spaces and marks around numbers, and how dates are written, matter where these are text, which has no SQL.
_FIELDS = {"values", "low", "high", "step", "count", "codes", "edges", "closed", "rounding", "spellings"}
_FIELDS |= {"start", "end", "by", "zone", "format"}
_FIELDS |= {"null", "outside", "levels", "reading"}
_READING = {"column", "nulls", "decimal", "thousands", "currency", "trim", "ignore_case"}


@cache
def _capitals() -> tuple[tuple[str, str], ...]:
    """Every letter that has a lower case of one letter, and that."""
    letters = [chr(code) for code in range(sys.maxunicode + 1)]
    return tuple((letter, small) for letter in letters if len(small := letter.lower()) == 1 and small != letter)


@singledispatch
def _cell(kind: Any, value: Value) -> Expression | None:  # noqa: ARG001 - the signature of all
    return None


def _policies(kind: Any) -> tuple[Expression, Expression]:
    """The cells of nulls and of what is outside."""
    return tuple(whole(kind.regular if policy == "other" else DROP) for policy in (kind.null, kind.outside))


@_cell.register
def _(kind: Categories, value: Value) -> Expression | None:
    lookup, nulls = kind.lookup, _nulls(kind)
    # a form without a letter is null, whatever its spelling
    if len(lookup) + len(nulls) > MOST_CASES or "" in lookup or not all(map(_PLAIN.fullmatch, (*lookup, *nulls))):
        return None
    null, outside = _policies(kind)
    cells = [(form, whole(place)) for form, place in lookup.items()]
    every = [*cells, *((form, null) for form in sorted(nulls))]
    if value.held == "text":
        found = case([(text(form), cell) for form, cell in every], _without_zeros(cells, value, outside), value.it)
    elif value.held == "integer":
        known = [(form, cell) for form, cell in every if _WHOLE.fullmatch(form) and str(int(form)) == form and int(form) >> 63 in {0, -1}]
        found = case([(whole(int(form)), cell) for form, cell in known], outside, value.it)
    elif value.held == "boolean":
        known = [(form, cell) for form, cell in every if form in {"true", "false"}]
        found = case([(value.it if form == "true" else exp.Not(this=value.it.copy()), cell) for form, cell in known], outside)
    else:
        return None
    return case([(value.is_null, null)], found)


def key_of(kind: Any, value: Value, sound: Callable[[Expression], Expression] | None) -> Expression | None:
    """The key that a value is, null where it is none; None where it is read otherwise.

    Args:
        kind: the attribute.
        value: as `prepared` gives it.
        sound: whether a text of the engine has no NUL and is UTF-8; None if all are so.

    >>> key_of(Unknown(9, reading=Reading(ignore_case=True)), Value("text", exp.column("a")), None) is None
    True
    """
    known = {field.name for field in fields(kind)} <= _KEY_FIELDS and {field.name for field in fields(kind.reading)} == _READING
    nulls = sorted({"", *map(kind.reading.form, kind.reading.nulls)})
    if not known or kind.reading.ignore_case or not all(map(_PLAIN.fullmatch, nulls)):
        return None
    it, without = value.it, exp.Anonymous(this="TRANSLATE", expressions=[value.it.copy(), text(_CONTROLS), text("")])
    fits: list[Expression] = [exp.NEQ(this=it.copy(), expression=text(one)) for one in nulls]
    short = exp.LTE(this=exp.Length(this=it.copy()), expression=exp.Literal.number(kind.longest))
    fits += [short, exp.EQ(this=without, expression=it.copy())]
    return case([(exp.and_(*fits, *([] if sound is None else [sound(it)])), it)], exp.Null())


def without_nul(it: Expression) -> Expression:
    """Whether a text has no NUL.

    >>> without_nul(exp.column("a")).sql()
    "TRANSLATE(a, CHR(0), '') = a"
    """
    nul = exp.Anonymous(this="CHR", expressions=[exp.Literal.number(0)])
    return exp.EQ(this=exp.Anonymous(this="TRANSLATE", expressions=[it.copy(), nul, text("")]), expression=it.copy())


_KEY_FIELDS = {"most", "longest", "null", "outside", "levels", "reading"}


def _spelled(kind: Unknown, value: Value) -> Value | None:
    """The string form of a value, as its reading compares it but for the case of letters."""
    if value.held == "boolean":
        return Value("text", case([(value.it, text("true")), (exp.Not(this=value.it.copy()), text("false"))], exp.Null()))
    it = unit_of(value)
    if it is None:
        return None
    trimmed = exp.Trim(this=it, expression=text(BLANKS), position="BOTH")
    return Value("text", trimmed if kind.reading.trim and value.held == "text" else it)


def _nulls(kind: Categories) -> set[str]:
    """The forms that mean a null and no category."""
    return {form for form in map(kind.reading.form, kind.reading.nulls) if form} - set(kind.lookup)


def _formed(kind: Categories, value: Value) -> Value | None:
    """A text as its reading compares it, where it may be one of the forms."""
    it, alphabet = value.it, set("".join((*kind.lookup, *_nulls(kind))))
    if kind.reading.trim:
        it = exp.Trim(this=it.copy(), expression=text(BLANKS), position="BOTH")
    # a letter that becomes none of the alphabet is in no form, before as after
    pairs = [(large, small) for large, small in _capitals() if small in alphabet] if kind.reading.ignore_case else []
    if any(ord(large) > _LAST_SHORT for large, _ in pairs):
        return None
    if pairs:
        large, small = (text("".join(letters)) for letters in zip(*pairs, strict=True))
        it = exp.Anonymous(this="TRANSLATE", expressions=[it.copy(), large, small])
    return Value("text", it)


def _without_zeros(cells: list[tuple[str, Expression]], value: Value, outside: Expression) -> Expression:
    """Text made of a whole number, a point and zeros: without its zeros it ends with the point, and with them in a zero."""
    again = [(f"{form}.", cell) for form, cell in cells if _WHOLE.fullmatch(form) and form != "-0"]
    again += [("-0.", cell) for form, cell in cells if form == "0"]
    if not again:
        return outside
    kept = exp.Trim(this=value.it.copy(), expression=text("0"), position="TRAILING")
    ends = exp.Like(this=value.it.copy(), expression=text("%.0%"))
    short = exp.LTE(this=exp.Length(this=value.it.copy()), expression=exp.Literal.number(_LONGEST))
    zeros = exp.NEQ(this=kept.copy(), expression=value.it.copy())
    return case([(exp.and_(ends, short, zeros), case([(text(form), cell) for form, cell in again], outside, kept))], outside)


@_cell.register
def _(kind: Integers, value: Value) -> Expression | None:
    return _whole_cell(value, kind.low, kind.high, kind)


@_cell.register
def _(kind: Coded, value: Value) -> Expression | None:
    return _whole_cell(value, 0, kind.codes - 1, kind)


_ROUNDING: dict[str, Callable[[Expression], Expression]] = {
    "down": lambda it: exp.cast(exp.Floor(this=it), "BIGINT"),
    "up": lambda it: exp.cast(exp.Ceil(this=it), "BIGINT"),
    "nearest": lambda it: rounded(it, "double"),
}


def _whole_cell(value: Value, low: int, high: int, kind: Integers | Coded) -> Expression | None:
    number = value.number
    if number is None:
        return None
    null, outside = _policies(kind)
    missing, it = number.is_missing(kind.reading), number.it
    literal = whole if number.held == "integer" else double
    if number.held == "double" and isinstance(kind, Integers) and kind.rounding is not None:
        # a step beyond the bounds on either side stays beyond them
        it = _ROUNDING[kind.rounding](clipped(it, double(low - 1), double(high + 1)))
        number, literal = Value("integer", it), whole
    if kind.outside == "clip":
        found: Expression = exp.Sub(this=rounded(clipped(it, literal(low), literal(high)), number.held), expression=whole(low))
        return case([(missing, null)], found)
    inside = exp.and_(exp.GTE(this=it.copy(), expression=literal(low)), exp.LTE(this=it.copy(), expression=literal(high)))
    found = exp.Sub(this=exp.cast(it.copy(), "BIGINT"), expression=whole(low))
    if number.held == "double":
        found = case([(exp.EQ(this=it.copy(), expression=exp.Floor(this=it.copy())), found)], outside)
    return case([(missing, null), (inside, found)], outside)


@_cell.register
def _(kind: Bins | Edges, value: Value) -> Expression | None:
    it, below = _as_double(kind, value), exp.LT if kind.closed == "left" else exp.LTE
    if it is None:
        return None
    null, outside = _policies(kind)
    found = _searched(it.it, list(map(double, inner_edges(kind).tolist())), below)
    missing = it.is_missing(kind.reading)
    if kind.outside == "clip":
        return case([(missing, null)], found)
    low, high = (double(float(end)) for end in (kind.low, kind.high))
    inside = exp.and_(exp.GTE(this=it.it.copy(), expression=low), exp.LTE(this=it.it.copy(), expression=high))
    return case([(missing, null), (inside, found)], outside)


@_cell.register
def _(kind: Decimals, value: Value) -> Expression | None:
    it = _as_double(kind, value)
    if it is None:
        return None
    null, outside = _policies(kind)
    missing = it.is_missing(kind.reading)
    if kind.outside == "clip":
        between = multiples(kind.low + kind.step / 2, kind.step, kind.regular - 1)
        return case([(missing, null)], _searched(it.it, list(map(double, between.tolist()))))
    values = multiples(kind.low, kind.step, kind.regular).tolist()
    return case([(missing, null)], case([(double(one), whole(place)) for place, one in enumerate(values)], outside, it.it))


def _as_double(kind: Bins | Edges | Decimals, value: Value) -> Value | None:
    """The number as a double, None where there is none or there are too many cases."""
    number = value.number
    if number is None or kind.regular > MOST_CASES:
        return None
    return Value("double", exp.cast(number.it.copy(), "DOUBLE")) if number.held == "integer" else number


def _searched(
    it: Expression, edges: Sequence[Expression], below: type[exp.Binary] = exp.LT, values: Sequence[Expression] | None = None
) -> Expression:
    """The value at the number of edges at or below a value, halved at each step, uncopied; the number itself without values."""
    values = [whole(place) for place in range(len(edges) + 1)] if values is None else values
    if not edges:
        return values[0].copy()
    middle = len(edges) // 2
    less = _searched(it, edges[:middle], below, values[: middle + 1])
    more = _searched(it, edges[middle + 1 :], below, values[middle + 1 :])
    return exp.Case().when(below(this=it.copy(), expression=edges[middle].copy()), less, copy=False).else_(more, copy=False)


@_cell.register
def _(kind: Dates, value: Value) -> Expression | None:
    first, cells = days_of(kind)
    begins = [] if kind.by in _EVEN else [whole(int(day) * _DAY) for day in np.flatnonzero(np.diff(cells)) + 1]
    if value.held != "since" or len(begins) > MOST_CASES:
        return None
    null, outside = _policies(kind)
    length = len(cells) * _DAY
    inside = exp.and_(exp.GTE(this=value.it.copy(), expression=whole(0)), exp.LT(this=value.it.copy(), expression=whole(length)))
    since: Expression = exp.Paren(this=clipped(value.it, whole(0), whole(length - 1)))
    if kind.by in _EVEN:
        step, every = _EVEN[kind.by]
        # weeks begin before the first day, which has its number in one
        found = _quotient(exp.Paren(this=exp.Add(this=since, expression=whole((first + 3) % 7 * _DAY if "week" in kind.by else 0))), step)
        found = found if every is None else exp.Mod(this=found, expression=whole(every))
    else:
        found = _searched(since, begins)
    return case([(value.is_null, null)], found if kind.outside == "clip" else case([(inside, found)], outside))


# Periods of one length, in microseconds, and how many of them there are where they come again.
_EVEN: dict[str, tuple[int, int | None]] = {"hour": (_HOUR, None), "hour_of_day": (_HOUR, 24), "day": (_DAY, None), "weekday": (_DAY, 7)}
_EVEN |= {"week": (7 * _DAY, None)}


def _since(kind: Dates, value: Value) -> Value | None:
    """Microseconds since the attribute's days began, on its clock; of times far from these, others beyond them on the same side."""
    first, cells = days_of(kind)
    low, high = first * _DAY, (first + len(cells)) * _DAY
    if value.held == "day":
        near = exp.Paren(this=clipped(exp.cast(value.it.copy(), "BIGINT"), whole(first - 1), whole(first + len(cells))))
        it: Expression = exp.Mul(this=near, expression=whole(_DAY))
    else:
        # no clock is a day from UTC
        it = exp.Paren(this=clipped(value.it, whole(low - 2 * _DAY), whole(high + 2 * _DAY)))
    if value.held == "instant":
        changes = changes_of_clock(kind.zone, low // 10**6 - 2 * 86_400, high // 10**6 + 2 * 86_400)
        if changes is None:
            return None
        seconds, ahead = ([whole(one * 10**6) for one in some] for some in changes)
        it = exp.Add(this=it, expression=exp.Paren(this=_searched(it, seconds, values=ahead)))
    return Value("since", case([(value.is_null, exp.Null())], exp.Sub(this=it, expression=whole(low))))


def _quotient(it: Expression, by: int) -> Expression:
    """Of a whole number that is not negative: of the multiple below it, so that no engine rounds."""
    multiple = exp.Paren(this=exp.Sub(this=it.copy(), expression=exp.Mod(this=it.copy(), expression=whole(by))))
    return exp.cast(exp.Div(this=multiple, expression=whole(by), typed=False, safe=False), "BIGINT")


def amount_of(measure: Measure, value: Value) -> Expression | None:
    """The amount of a measure in units, as a 64-bit integer; None where it is read otherwise.

    >>> amount_of(Measure("pay", 0, 10), Value("text", exp.column("pay"))) is None
    True
    """
    number = value.number
    numerator, denominator = measure.unit.numerator, measure.unit.denominator
    if number is None or max(numerator, denominator) >= _EXACT:
        return None
    low, high = measure.low_units, measure.high_units
    none = number.is_missing(measure.reading), whole(0)
    if isinstance(measure, ValueCount):
        return case([none], whole(1))
    if number.held == "integer" and measure.unit == 1:
        return case([none], clipped(number.it, whole(low), whole(high)))
    it = exp.cast(number.it.copy(), "DOUBLE") if number.held == "integer" else number.it
    # what no product can carry over the doubles, and no quotient below them, before either is computed
    far = 4.0 * measure.largest * numerator / denominator
    near = exp.LT(this=exp.Abs(this=it.copy()), expression=double(1e-200))
    units: Expression = exp.Mul(this=exp.Paren(this=clipped(it, double(-far), double(far))), expression=double(float(denominator)))
    units = exp.Div(this=exp.Paren(this=units), expression=double(float(numerator)), typed=False, safe=False)
    found = rounded(clipped(exp.Paren(this=units), double(float(low)), double(float(high))), "double")
    return case([none, (near, whole(min(max(0, low), high)))], found)


def clipped(it: Expression, low: Expression, high: Expression) -> Expression:
    """A number that is not null, brought within bounds."""
    return case([(exp.LT(this=it.copy(), expression=low), low), (exp.GT(this=it.copy(), expression=high), high)], it)


def rounded(it: Expression, held: Held) -> Expression:
    """A number within the whole numbers of a double, as the nearest of them, ties to the even one."""
    if held == "integer":
        return it
    floor = exp.cast(exp.Floor(this=it.copy()), "BIGINT")
    rest = exp.Paren(this=exp.Sub(this=it.copy(), expression=exp.cast(floor.copy(), "DOUBLE")))
    odd = exp.NEQ(this=exp.Mod(this=floor.copy(), expression=whole(2)), expression=whole(0))
    up = exp.or_(exp.GT(this=rest.copy(), expression=double(0.5)), exp.and_(exp.EQ(this=rest.copy(), expression=double(0.5)), odd))
    return exp.Paren(this=exp.Add(this=floor, expression=case([(up, whole(1))], whole(0))))


def unit_of(value: Value) -> Expression | None:
    """The string form of a unit; None where it is read otherwise.

    >>> unit_of(Value("integer", exp.column("id"))).sql()
    'CAST(id AS TEXT)'
    """
    if value.held == "integer":
        return exp.cast(value.it.copy(), "TEXT")
    return value.it.copy() if value.held == "text" else None
