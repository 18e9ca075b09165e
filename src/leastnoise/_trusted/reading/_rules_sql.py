"""Express as SQL the rules that map values to cells (E7).

Each result is an expression of one row's values, and no value can make it fail.

The module fails closed: if it has no expression for the types of the columns, for a long table or
for unusual texts, the result is None, and the rows are read instead. Expressions are trees of
sqlglot. SQLGlot writes and quotes the expressions for each engine. The labels refer to
PROOFS-reading.md.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache, reduce
from typing import Any, Literal

import sqlglot
from sqlglot import exp

from leastnoise._trusted.domain import (
    COMBINED_MEASURES,
    READ_AS_IT_IS,
    DeviationProduct,
    KeyTable,
    Measure,
    Reading,
    Rule,
    SquaredDeviation,
    StepTable,
    TextTable,
    TimeRule,
    ValueCount,
)
from leastnoise._trusted.reading._unit_keys import null_keys
from leastnoise._trusted.reading._value_rules import (
    DAY,
    EXCEL_OF_1970,
    IN_A_SECOND,
    MILLISECONDS_A_DAY,
    MOST_NUMBER_CHARACTERS,
    changes_of_clock,
    is_counted_in_utc,
    null_numbers,
    without_zeros,
)

# The base class of sqlglot's expressions has had several names.
Expression = Any
# The content of a column, for any name of its type in the engine. It is one of: integers of at most
# 64 bits; doubles; Booleans; text compared by its bytes; days since 1970; or microseconds since
# 1970 on a clock without a time zone, in UTC, or on the clock of an attribute. Days and
# microseconds are also 64-bit integers.
ContentKind = Literal["integer", "double", "boolean", "text", "day", "stamp", "instant", "clock"]
# If there are more cases than this, CASE is slower than reading the rows.
MOST_CASES = 4096
# Integers beyond this bound may change when they are read as doubles.
_MOST_EXACT_INTEGER = 2**53
_MICROSECONDS = 10**6
_CONTROLS = "".join(map(chr, (*range(1, 32), *range(127, 160))))
_INFINITIES = ("Infinity", "-Infinity")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\\]*")
_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
# The settings of a reading that this module supports. Any other setting makes it return None.
_READING = {"column", "nulls", "decimal", "thousands", "currency", "trim", "ignore_case"}


def sql(template: str, **parts: Any) -> Expression:
    """Parse an SQL template, and fill in its placeholders.

    A placeholder ``:name`` is replaced by the argument of this name.

    Args:
        template: SQL that all engines understand.
        parts: expressions, whole numbers of 64 bits, doubles or texts. A double is written as the
            shortest decimal that reads as the double.

    >>> sql("CASE WHEN :it < :low THEN :low ELSE :it END", it=exp.column("a"), low=3).sql()
    "CASE WHEN a < CAST('3' AS BIGINT) THEN CAST('3' AS BIGINT) ELSE a END"
    """
    return _parse_template(template).transform(
        lambda node: _to_expression(parts[node.name]) if isinstance(node, exp.Placeholder) else node
    )


def _to_expression(argument: Any) -> Expression:
    """Convert an argument of a template to an SQL expression."""
    if isinstance(argument, str):
        return exp.Literal.string(argument)
    if isinstance(argument, (int, float)):
        kind = "DOUBLE"
        if isinstance(argument, int):
            kind = "BIGINT"
        return exp.cast(exp.Literal.string(repr(argument)), kind)
    if isinstance(argument, (exp.Binary, exp.Not, exp.Neg)):
        return exp.Paren(this=argument.copy())
    return argument.copy()


@cache
def _parse_template(template: str) -> Expression:
    """Return the syntax tree of an SQL template, from a cache."""
    return sqlglot.parse_one(template)


@dataclass(frozen=True, slots=True)
class Value:
    """An SQL expression for a column's value, and the kind of this value.

    The content is text, an integer, days since 1970, and so on (`ContentKind`).

    Attributes:
        content: the content of the column.
        expression: the SQL expression of the value.
    """

    content: ContentKind
    expression: Expression

    def is_missing(self, nulls: Iterable[float] = ()) -> Expression:
        """Return an SQL condition: the value is null, or one of some numbers.

        A NaN, an empty text, and a time that is the smallest integer also count as null.
        """
        also = {
            "double": exp.cast(exp.Literal.string("NaN"), "DOUBLE"),
            "text": "",
            "stamp": -(2**63),
            "instant": -(2**63),
        }
        null = sql(
            ":it IS NULL OR :it = :also" if self.content in also else ":it IS NULL",
            it=self.expression,
            also=also.get(self.content),
        )
        if nulls:
            return exp.or_(
                null, *(sql(":it = :one", it=self.double, one=number) for number in nulls)
            )
        return null

    def is_infinite(self) -> Expression:
        """Return an SQL condition: the value is infinite."""
        if self.content != "double":
            return exp.false()
        infinities = (exp.cast(exp.Literal.string(text), "DOUBLE") for text in _INFINITIES)
        return exp.or_(
            *(sql(":it = :infinity", it=self.expression, infinity=one) for one in infinities)
        )

    @property
    def number(self) -> "Value | None":
        """The value converted to a number; None if SQL cannot convert it."""
        if self.content == "boolean":
            return Value(
                "integer",
                sql(
                    "CASE WHEN :it THEN :yes WHEN NOT :it THEN :no ELSE NULL END",
                    it=self.expression,
                    yes=1,
                    no=0,
                ),
            )
        if self.content in {"integer", "double", "clock"}:
            return self
        return None

    @property
    def double(self) -> Expression:
        """The value as an SQL double; it must be a number."""
        if self.content == "integer":
            return exp.cast(self.expression.copy(), "DOUBLE")
        return self.expression


def prepare_value(rule: Rule, value: Value) -> Value | None:
    """Return SQL for a value in the form that the rule's table compares, or None.

    A query computes this form first, because the expression of the cell uses it several times. The
    result is None if rows must be read.

    SQL compares texts unchanged. If a reading ignores blanks or capital letters, the rows are read.

    >>> prepare_value(rule_of(Coded(2)), Value("integer", exp.column("a"))).expression.sql()
    'a'
    """
    table = rule.table
    reading = rule.reading
    if {field.name for field in fields(reading)} != _READING:
        return None
    if rule.clock is not None:
        if value.content in {"day", "stamp", "instant"}:
            return _local_microseconds(rule.clock, value)
        # An infinity is not a time, so it must not be clipped to the first or last day.
        has_number = value.content == "integer" or (value.content == "double" and not rule.clip)
        if has_number:
            return _time_of_number(rule.clock, value, reading)
        return None
    if value.content == "text":
        if reading.trim or reading.ignore_case:
            return None
        if isinstance(table, KeyTable):
            return Value("text", _without_zero_decimals(value.expression))
        return value
    if not isinstance(table, KeyTable):
        return value
    if value.content == "boolean":
        return Value(
            "text",
            sql(
                "CASE WHEN :it THEN 'true' WHEN NOT :it THEN 'false' ELSE NULL END",
                it=value.expression,
            ),
        )
    form = _key_form(value)
    return form and Value("text", form)


def cell_of(
    rule: Rule, value: Value, is_valid_text: Callable[[Expression], Expression] | None = None
) -> Expression | None:
    """Return SQL for the cell of an attribute's value; None if impossible.

    The cell is a 64-bit integer; ``DROP`` means that the row is dropped. The result is None if rows
    must be read.

    For unknown categories, the result is the key that a value becomes. The key is null if the value
    cannot be a key. For unknown categories, ``is_valid_text`` returns the condition that a text
    from the database engine is UTF-8 and has no NUL; None if every text satisfies this condition.

    >>> cell_of(rule_of(Coded(2)), Value("text", exp.column("a"))) is None
    True
    """
    if isinstance(rule.table, TextTable):
        return _category_cell(rule, rule.table, value)
    if isinstance(rule.table, KeyTable):
        return _key_text(rule.reading, rule.table, value, is_valid_text)
    number = value.number
    if number is None or (rule.clock is not None) != (number.content == "clock"):
        return None
    if isinstance(rule.table, StepTable):
        cell = _cell_by_steps(rule, rule.table, number)
    elif len(rule.table.thresholds) > MOST_CASES:
        return None
    else:
        clock = number.content == "clock"
        cuts = rule.table.thresholds.tolist()
        cells = rule.table.cells.tolist()
        if clock:
            cell = _bisect_cuts(
                number.expression, [int(cut) * _MICROSECONDS for cut in cuts], cells
            )
        else:
            cell = _bisect_cuts(number.double, cuts, cells)
    # For times, null numbers were compared before the conversion to the clock.
    if rule.clock is not None:
        nulls = []
    else:
        nulls = null_numbers(rule.reading).tolist()
    return sql(
        "CASE WHEN :missing THEN :null WHEN :infinite THEN :strange ELSE :cell END",
        missing=number.is_missing(nulls),
        null=rule.null,
        infinite=number.is_infinite(),
        strange=rule.unreadable,
        cell=cell,
    )


def _category_cell(rule: Rule, table: TextTable, value: Value) -> Expression | None:
    """Return SQL for a category's cell; None if SQL cannot compute it."""
    forms = {form: cell for form, cell in table.cells.items() if form}
    # An empty text is a null under every reading, and `is_missing` finds it.
    if (
        len(forms) > MOST_CASES
        or table.cells[""] != rule.null
        or not all(map(_PLAIN.fullmatch, forms))
    ):
        return None
    if value.content == "text":
        cell = _case_of_pairs(
            value.expression,
            forms.items(),
            _cell_without_zeros(table, value.expression, rule.outside),
        )
    elif value.content == "integer":
        known = [
            (int(form), cell)
            for form, cell in forms.items()
            if _WHOLE.fullmatch(form) and str(int(form)) == form
        ]
        cell = _case_of_pairs(
            value.expression,
            [(number, cell) for number, cell in known if number >> 63 in {0, -1}],
            _to_expression(rule.outside),
        )
    elif value.content == "boolean":
        yes, no = (forms.get(form, rule.outside) for form in ("true", "false"))
        cell = sql("CASE WHEN :it THEN :yes ELSE :no END", it=value.expression, yes=yes, no=no)
    else:
        return None
    return sql(
        "CASE WHEN :missing THEN :null ELSE :cell END",
        missing=value.is_missing(),
        null=rule.null,
        cell=cell,
    )


def _case_of_pairs(compared: Expression, pairs: Any, otherwise: Expression) -> Expression:
    """Return a CASE that maps constants to cells."""
    built = exp.Case(this=compared.copy())
    for constant, cell in pairs:
        built = built.when(_to_expression(constant), _to_expression(cell), copy=False)
    if built.args.get("ifs"):
        return built.else_(otherwise, copy=False)
    return otherwise


def _cell_without_zeros(table: TextTable, text_expression: Expression, outside: int) -> Expression:
    """Return SQL that finds the cell of a text such as 12.00 by looking up 12.

    Such a text consists of an integer, a point and zeros. The cell of other texts is ``outside``.
    """
    again = [(f"{form}.", cell) for form, cell in table.whole_numbers.items()]
    if "0" in table.whole_numbers:
        again.append(("-0.", table.whole_numbers["0"]))
    if not again:
        return _to_expression(outside)
    kept = sql("TRIM(TRAILING '0' FROM :it)", it=text_expression)
    fits = f":it LIKE '%.0%' AND LENGTH(:it) <= {MOST_NUMBER_CHARACTERS} AND :kept <> :it"
    matched = _case_of_pairs(kept, again, _to_expression(outside))
    return sql(
        f"CASE WHEN {fits} THEN :cell ELSE :outside END",
        it=text_expression,
        kept=kept,
        cell=matched,
        outside=outside,
    )


def _key_text(
    reading: Reading,
    keys: KeyTable,
    value: Value,
    is_valid_text: Callable[[Expression], Expression] | None,
) -> Expression | None:
    """Return SQL for the text of a value's key, NULL if it has no key; or None.

    ``value`` is a text without zeros after a point; `prepare_value` makes it. The result is None if
    one of the texts that mean null has unusual characters.
    """
    nulls = sorted(null_keys(reading))
    if not all(map(_PLAIN.fullmatch, nulls)):
        return None
    fits = [sql(":it <> :one", it=value.expression, one=null) for null in nulls]
    fits.append(
        sql(
            f"LENGTH(:it) <= {keys.max_length} AND TRANSLATE(:it, :controls, '') = :it",
            it=value.expression,
            controls=_CONTROLS,
        )
    )
    if is_valid_text is not None:
        fits.append(is_valid_text(value.expression))
    return sql("CASE WHEN :fits THEN :it ELSE NULL END", fits=exp.and_(*fits), it=value.expression)


def rounded(number: Expression) -> Expression:
    """Return SQL that rounds a double to the nearest integer, ties to even."""
    floor = sql("CAST(FLOOR(:it) AS BIGINT)", it=number)
    fraction = sql(":it - CAST(:floor AS DOUBLE)", it=number, floor=floor)
    up = sql(
        ":rest > :half OR :rest = :half AND :floor % :two <> :zero",
        rest=fraction,
        half=0.5,
        floor=floor,
        two=2,
        zero=0,
    )
    return sql(":floor + CASE WHEN :up THEN :one ELSE :zero END", floor=floor, up=up, one=1, zero=0)


_ROUNDING: dict[str, Callable[[Expression], Expression]] = {
    "down": lambda it: sql("CAST(FLOOR(:it) AS BIGINT)", it=it),
    "up": lambda it: sql("CAST(CEIL(:it) AS BIGINT)", it=it),
    "nearest": rounded,
}


def _cell_by_steps(rule: Rule, table: StepTable, number: Value) -> Expression:
    """Return SQL for the number of whole steps of a number above an origin."""
    scale = 1
    if number.content == "clock":
        scale = _MICROSECONDS
    low = table.low * scale
    high = (table.high + 1) * scale - 1
    it = number.expression
    kind: type[int | float] = int
    if number.content == "double":
        kind = float
    whole = kind is int or table.rounding is not None
    if rule.clip:
        it = clipped(it, kind(low), kind(high))
    elif kind is float and whole:
        # A number outside the bounds stays outside: it is clipped to the bounds widened by 1.
        it = clipped(it, kind(low - 1), kind(high + 1))
    if kind is float and whole:
        it = _ROUNDING[str(table.rounding)](it)
        kind = int
    cell = sql(
        ":it - :origin",
        it=it if whole else exp.cast(it.copy(), "BIGINT"),
        origin=table.origin * scale,
    )
    if table.step > 1:
        # The quotient is rounded down first, so that no engine rounds it.
        cell = sql("CAST((:it - :it % :step) / :step AS BIGINT)", it=cell, step=table.step * scale)
    if table.repeat_after is not None:
        cell = sql(":it % :again", it=cell, again=table.repeat_after)
    if not whole:
        cell = sql(
            "CASE WHEN :it = FLOOR(:it) THEN :cell ELSE :outside END",
            it=it,
            cell=cell,
            outside=rule.outside,
        )
    inside = sql(":it >= :low AND :it <= :high", it=it, low=kind(low), high=kind(high))
    if rule.clip:
        return cell
    return sql(
        "CASE WHEN :inside THEN :cell ELSE :outside END",
        inside=inside,
        cell=cell,
        outside=rule.outside,
    )


def _bisect_cuts(
    number: Expression, thresholds: Sequence[int | float], cells: Sequence[int]
) -> Expression:
    """Return nested CASEs that find the cell of a number by bisection.

    The result is ``cells[k]``, where k is the number of thresholds that are at most the number.
    """
    if not thresholds:
        return _to_expression(cells[0])
    middle = len(thresholds) // 2
    less = _bisect_cuts(number, thresholds[:middle], cells[: middle + 1])
    more = _bisect_cuts(number, thresholds[middle + 1 :], cells[middle + 1 :])
    return (
        exp.Case()
        .when(
            exp.LT(this=_to_expression(number), expression=_to_expression(thresholds[middle])),
            less,
            copy=False,
        )
        .else_(more, copy=False)
    )


def _time_of_number(clock: TimeRule, value: Value, reading: Reading) -> Value | None:
    """Return SQL for a numeric time in microseconds since 1970, or None.

    The result is None if rows must be read.
    """
    if clock.counted_in is None:
        return None
    # The limits have a margin of one day for every clock, as in `_local_microseconds`.
    first = float(clock.first - 3)
    last = float(clock.last + 4)
    if is_counted_in_utc(clock.counted_in):
        a_second = float(IN_A_SECOND[clock.counted_in])
        near = clipped(value.double, first * DAY * a_second, last * DAY * a_second)
        seconds = sql("FLOOR(:near) / :second", near=near, second=a_second)
    else:
        near = clipped(value.double, first + EXCEL_OF_1970, last + EXCEL_OF_1970)
        days = sql(":near - :origin", near=near, origin=EXCEL_OF_1970)
        milliseconds = rounded(sql(":days * :day", days=days, day=MILLISECONDS_A_DAY))
        seconds = sql("CAST(:it AS DOUBLE) / :second", it=milliseconds, second=1000.0)
    microseconds = sql("CAST(FLOOR(:it) AS BIGINT) * :times", it=seconds, times=_MICROSECONDS)
    missing = value.is_missing(null_numbers(reading).tolist())
    it = sql("CASE WHEN :missing THEN NULL ELSE :it END", missing=missing, it=microseconds)
    column_type: ContentKind = "stamp"
    if is_counted_in_utc(clock.counted_in):
        column_type = "instant"
    return _local_microseconds(clock, Value(column_type, it))


def _local_microseconds(clock: TimeRule, value: Value) -> Value | None:
    """Return SQL for a time in local microseconds since 1970, or None.

    A time far before or far after the days of the attribute becomes another time on the same side.
    """
    first = clock.first
    last = clock.last
    day = DAY * _MICROSECONDS
    if value.content == "day":
        it = sql(
            ":near * :day",
            near=clipped(exp.cast(value.expression.copy(), "BIGINT"), first - 1, last + 1),
            day=day,
        )
    else:
        # No clock is a day from UTC.
        it = clipped(value.expression, (first - 2) * day, (last + 3) * day)
    if value.content == "instant":
        changes = changes_of_clock(clock.zone, (first - 2) * DAY, (last + 3) * DAY)
        if changes is None:
            return None
        seconds, offsets = ([second * _MICROSECONDS for second in some] for some in changes)
        it = sql(":it + :ahead", it=it, ahead=_bisect_cuts(it, seconds, offsets))
    return Value(
        "clock", sql("CASE WHEN :missing THEN NULL ELSE :it END", missing=value.is_missing(), it=it)
    )


def amount_of(measure: Measure, value: Value) -> Expression | None:
    """Return SQL for a measure's amount in units, a 64-bit integer, or None.

    The result is None if rows must be read.

    >>> amount_of(Measure("pay", 0, 10), Value("text", exp.column("pay"))) is None
    True
    """
    number = value.number
    numerator = measure.unit.numerator
    denominator = measure.unit.denominator
    if number is None or max(numerator, denominator) >= _MOST_EXACT_INTEGER:
        return None
    low = measure.low_units
    high = measure.high_units
    written = "CASE WHEN :missing THEN :none ELSE :units END"
    missing = exp.or_(
        number.is_missing(null_numbers(measure.reading).tolist()), number.is_infinite()
    )
    if isinstance(measure, ValueCount):
        return sql(written, missing=missing, none=0, units=1)
    if number.content == "integer" and measure.unit == 1:
        return sql(written, missing=missing, none=0, units=clipped(number.expression, low, high))
    # The number is clipped first, so that products and quotients neither overflow nor underflow.
    far = 4.0 * measure.largest * numerator / denominator
    units = sql(
        ":it * :by / :unit",
        it=clipped(number.double, -far, far),
        by=float(denominator),
        unit=float(numerator),
    )
    units = rounded(clipped(units, float(low), float(high)))
    zero = min(max(0, low), high)
    units = sql(
        "CASE WHEN ABS(:it) < :least THEN :zero ELSE :units END",
        it=number.double,
        least=1e-200,
        zero=zero,
        units=units,
    )
    return sql(written, missing=missing, none=0, units=units)


def combined_amount(measure: Measure, amounts: Sequence[Expression | None]) -> Expression | None:
    """Return SQL for a product or square of amounts, from their SQL, or None.

    The result is None if rows must be read. Rows must be read in two cases: a factor has no SQL; or
    products are divided, because engines have no common operator for this.

    Products and squares are clipped to the bounds of the measure, as `combined_amounts` does.

    >>> square = SquaredDeviation(Measure("pay", 0, 10))
    >>> combined_amount(square, [exp.column("v"), exp.column("g")]).sql()
    "LEAST(GREATEST((((v - CAST('5' AS BIGINT)) * (v - CAST('5' AS BIGINT))) * g),
    CAST('0' AS BIGINT)), CAST('25' AS BIGINT))"
    """
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts):
        return None
    if isinstance(measure, SquaredDeviation):
        if measure.divisor > 1:
            return None
        deviation = sql(":value - :centre", value=known[0], centre=measure.centre)
        known = [deviation, deviation, known[1]]
    if isinstance(measure, DeviationProduct):
        if measure.divisor > 1:
            return None
        for position, centre in enumerate(measure.centres):
            known[position] = sql(":value - :centre", value=known[position], centre=centre)
    combined = reduce(lambda one, other: sql(":one * :other", one=one, other=other), known)
    if not isinstance(measure, COMBINED_MEASURES):
        return combined
    return sql(
        "LEAST(GREATEST(:it, :low), :high)",
        it=combined,
        low=measure.low_units,
        high=measure.high_units,
    )


def clipped(number: Expression, low: float, high: float) -> Expression:
    """Return SQL that clips a number to bounds.

    CASE is used, because engines guarantee that they do not compute branches of CASE that do not
    apply.
    """
    return sql(
        "CASE WHEN :it < :low THEN :low WHEN :it > :high THEN :high ELSE :it END",
        it=number,
        low=low,
        high=high,
    )


def unit_of(value: Value, reading: Reading = READ_AS_IT_IS) -> Expression | None:
    """Return SQL for the key of a row's unit, NULL for no unit; or None (E6).

    The result is None if rows must be read.

    >>> unit_of(Value("integer", exp.column("id"))).sql()
    'CASE WHEN (id IS NULL) THEN NULL ELSE CAST(id AS TEXT) END'
    """
    form = _key_form(value)
    nulls = sorted(set(reading.nulls))
    if form is None or {field.name for field in fields(reading)} != _READING:
        return None
    if value.content == "text":
        if reading.trim or reading.ignore_case or not all(map(_PLAIN.fullmatch, nulls)):
            return None
        form = _without_zero_decimals(form)
    missing = value.is_missing()
    for null in nulls:
        missing = exp.or_(
            missing, sql(":form = :null", form=form, null=without_zeros(null) or null)
        )
    return sql("CASE WHEN :missing THEN NULL ELSE :form END", missing=missing, form=form)


def _key_form(value: Value) -> Expression | None:
    """Return SQL for the text by which a value is compared as a key, or None."""
    if value.content == "integer":
        return exp.cast(value.expression.copy(), "TEXT")
    return value.expression.copy() if value.content == "text" else None


def _without_zero_decimals(text_expression: Expression) -> Expression:
    """Return SQL that turns a text such as 12.00 into 12, and keeps other texts.

    See `without_zeros`.
    """
    kept = sql("TRIM(TRAILING '0' FROM :it)", it=text_expression)
    body = sql("TRIM(TRAILING '.' FROM :kept)", kept=kept)
    digits = sql("TRIM(LEADING '-' FROM :body)", body=body)
    fits = sql(
        ":it LIKE '%.%0' AND LENGTH(:it) <= :longest AND :kept = :body || '.'"
        " AND :digits <> '' AND TRANSLATE(:digits, '0123456789', '') = ''"
        " AND (:body = :digits OR :body = '-' || :digits)",
        it=text_expression,
        longest=MOST_NUMBER_CHARACTERS,
        kept=kept,
        body=body,
        digits=digits,
    )
    return sql(
        "CASE WHEN :fits THEN CASE WHEN :body = '-0' THEN '0' ELSE :body END ELSE :it END",
        fits=fits,
        body=body,
        it=text_expression,
    )
