"""The rule written in `leastnoise._domain` as SQL: expressions of one row's values, in which no value can make a query fail (E7).

Closed by default: whatever has no expression here (a kind of attribute, a type of column, an unusual category) is None, and its rows are
read instead. Expressions are trees of sqlglot, which writes and quotes them for each engine. The labels refer to PROOFS-adapters.md.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import singledispatch
from typing import Any, Literal

from sqlglot import exp

from leastnoise._adapters._encode import DROP, inner_edges, multiples
from leastnoise._domain import Bins, Categories, Coded, Decimals, Edges, Integers, Measure

# The base class of sqlglot's expressions has had several names.
Expression = Any
# What a column holds, whatever its engine calls the type: whole numbers of at most 64 bits; doubles; Booleans; text compared by its bytes.
Held = Literal["integer", "double", "boolean", "text"]
# A longer list of cases is slower than reading the rows.
MOST_CASES = 4096
# Beyond this a number read as a double is no longer itself.
_EXACT = 2**53
_LONGEST = 400
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
        """Whether it is null by the rule: also a NaN and an empty text."""
        missing: Expression = exp.Is(this=self.it.copy(), expression=exp.Null())
        if self.held == "double":
            return exp.or_(missing, exp.EQ(this=self.it.copy(), expression=double("NaN")))
        return exp.or_(missing, exp.EQ(this=self.it.copy(), expression=text(""))) if self.held == "text" else missing

    @property
    def number(self) -> "Value | None":
        """As a number, None if it is read otherwise."""
        if self.held == "boolean":
            return Value("integer", case([(self.it, whole(1)), (exp.Not(this=self.it.copy()), whole(0))], exp.Null()))
        return None if self.held == "text" else self


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


def cell_of(kind: Any, value: Value) -> Expression | None:
    """The cell of an attribute as a 64-bit integer, ``DROP`` where the row is to be dropped; None where it is read otherwise.

    >>> cell_of(Coded(2), Value("text", exp.column("a"))) is None
    True
    """
    reading = kind.reading
    # a field that this file does not know of could change what the others mean
    known = {field.name for field in fields(kind)} <= _FIELDS and {field.name for field in fields(reading)} == _READING
    return _cell(kind, value) if known and not reading.nulls else None


# Levels are read off the cells; spaces and marks around numbers matter where numbers are text, which has no SQL.
_FIELDS = {"values", "low", "high", "step", "count", "codes", "edges", "closed", "rounding", "spellings"}
_FIELDS |= {"null", "outside", "levels", "reading"}
_READING = {"column", "nulls", "decimal", "thousands", "currency", "trim", "ignore_case"}


@singledispatch
def _cell(kind: Any, value: Value) -> Expression | None:  # noqa: ARG001 - the signature of all
    return None


def _policies(kind: Any) -> tuple[Expression, Expression]:
    """The cells of nulls and of what is outside."""
    return tuple(whole(kind.regular if policy == "other" else DROP) for policy in (kind.null, kind.outside))


@_cell.register
def _(kind: Categories, value: Value) -> Expression | None:
    if kind.reading.trim or kind.reading.ignore_case or len(kind.lookup) > MOST_CASES or not all(map(_PLAIN.fullmatch, kind.lookup)):
        return None
    null, outside = _policies(kind)
    cells = [(form, whole(place)) for form, place in kind.lookup.items()]
    if value.held == "text":
        found = case([(text(form), cell) for form, cell in cells], _without_zeros(cells, value, outside), value.it)
    elif value.held == "integer":
        known = [(form, cell) for form, cell in cells if _WHOLE.fullmatch(form) and str(int(form)) == form and abs(int(form)) < 2**63]
        found = case([(whole(int(form)), cell) for form, cell in known], outside, value.it)
    elif value.held == "boolean":
        known = [(form, cell) for form, cell in cells if form in {"true", "false"}]
        found = case([(value.it if form == "true" else exp.Not(this=value.it.copy()), cell) for form, cell in known], outside)
    else:
        return None
    return case([(value.is_null, null)], found)


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


def _whole_cell(value: Value, low: int, high: int, kind: Integers | Coded) -> Expression | None:
    number = value.number
    if number is None or (number.held == "double" and isinstance(kind, Integers) and kind.rounding is not None):
        return None
    null, outside = _policies(kind)
    it, literal = number.it, whole if number.held == "integer" else double
    if kind.outside == "clip":
        found: Expression = exp.Sub(this=rounded(clipped(it, literal(low), literal(high)), number.held), expression=whole(low))
        return case([(number.is_null, null)], found)
    inside = exp.and_(exp.GTE(this=it.copy(), expression=literal(low)), exp.LTE(this=it.copy(), expression=literal(high)))
    found = exp.Sub(this=exp.cast(it.copy(), "BIGINT"), expression=whole(low))
    if number.held == "double":
        found = case([(exp.EQ(this=it.copy(), expression=exp.Floor(this=it.copy())), found)], outside)
    return case([(number.is_null, null), (inside, found)], outside)


@_cell.register
def _(kind: Bins | Edges, value: Value) -> Expression | None:
    it, below = _as_double(kind, value), exp.LT if kind.closed == "left" else exp.LTE
    if it is None:
        return None
    null, outside = _policies(kind)
    found = _searched(it.it, inner_edges(kind).tolist(), below, 0)
    if kind.outside == "clip":
        return case([(it.is_null, null)], found)
    low, high = (double(float(end)) for end in (kind.low, kind.high))
    inside = exp.and_(exp.GTE(this=it.it.copy(), expression=low), exp.LTE(this=it.it.copy(), expression=high))
    return case([(it.is_null, null), (inside, found)], outside)


@_cell.register
def _(kind: Decimals, value: Value) -> Expression | None:
    it = _as_double(kind, value)
    if it is None:
        return None
    null, outside = _policies(kind)
    if kind.outside == "clip":
        between = multiples(kind.low + kind.step / 2, kind.step, kind.regular - 1)
        return case([(it.is_null, null)], _searched(it.it, between.tolist(), exp.LT, 0))
    values = multiples(kind.low, kind.step, kind.regular).tolist()
    return case([(it.is_null, null)], case([(double(one), whole(place)) for place, one in enumerate(values)], outside, it.it))


def _as_double(kind: Bins | Edges | Decimals, value: Value) -> Value | None:
    """The number as a double, None where there is none or there are too many cases."""
    number = value.number
    if number is None or kind.regular > MOST_CASES:
        return None
    return Value("double", exp.cast(number.it.copy(), "DOUBLE")) if number.held == "integer" else number


def _searched(it: Expression, edges: list[float], below: type[exp.Binary], first: int) -> Expression:
    """The number of edges at or below a value, halving them at each step."""
    if not edges:
        return whole(first)
    middle = len(edges) // 2
    less, more = _searched(it, edges[:middle], below, first), _searched(it, edges[middle + 1 :], below, first + middle + 1)
    return case([(below(this=it.copy(), expression=double(edges[middle])), less)], more)


def amount_of(measure: Measure, value: Value) -> Expression | None:
    """The amount of a measure in units, as a 64-bit integer; None where it is read otherwise.

    >>> amount_of(Measure("pay", 0, 10), Value("text", exp.column("pay"))) is None
    True
    """
    number = value.number
    numerator, denominator = measure.unit.numerator, measure.unit.denominator
    if number is None or measure.reading.nulls or max(numerator, denominator) >= _EXACT:
        return None
    low, high = measure.low_units, measure.high_units
    zero = whole(min(max(0, low), high))
    if number.held == "integer" and measure.unit == 1:
        return case([(number.is_null, zero)], clipped(number.it, whole(low), whole(high)))
    it = exp.cast(number.it.copy(), "DOUBLE") if number.held == "integer" else number.it
    # what no product can carry over the doubles, and no quotient below them, before either is computed
    far = 4.0 * measure.largest * numerator / denominator
    near = exp.LT(this=exp.Abs(this=it.copy()), expression=double(1e-200))
    units: Expression = exp.Mul(this=exp.Paren(this=clipped(it, double(-far), double(far))), expression=double(float(denominator)))
    units = exp.Div(this=exp.Paren(this=units), expression=double(float(numerator)), typed=False, safe=False)
    found = rounded(clipped(exp.Paren(this=units), double(float(low)), double(float(high))), "double")
    return case([(number.is_null, zero), (near, zero)], found)


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
