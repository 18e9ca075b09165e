"""Encode whole columns as cells and amounts, with the tables of their rules.

Guarantees: the encoding of a row depends only on that row and on the public domain. The encoding
    does not depend on other rows, on the division of the rows into chunks, or on the order of
    earlier rows. Nothing is remembered from one chunk to the next. A value is read once for several
    rows only if the values of these rows are the same bytes, the same text, or equal numbers of one
    numpy type (E2, E3 of PROOFS-reading.md).
"""

import re
import zoneinfo
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.check.arrays import Array, BoolArray, FloatArray, IntArray
from leastnoise._trusted.domain import (
    COMBINED_MEASURES,
    DeviationProduct,
    Measure,
    Reading,
    Rule,
    SquaredDeviation,
    StepTable,
    TextTable,
    ThresholdTable,
    TimeRule,
    ValueCount,
)
from leastnoise._trusted.reading._column import (
    Column,
    DistinctTexts,
    Encoder,
    by_value,
    stateless,
)
from leastnoise._trusted.reading._value_rules import (
    NO_DAY,
    counted_seconds,
    is_counted_in_utc,
    is_null,
    local_seconds,
    null_numbers,
    number_reader,
    stamps,
    time_reader,
    value_as_text,
    without_zeros,
)
from leastnoise._trusted.reading._words import arrow_words

# With fewer texts, reading them one by one is faster.
_MANY_TEXTS = 256
_LONGEST_DECIMAL = 20
_PLAIN_DECIMAL = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
_ZERO = ord("0")
_NINE = ord("9")
_POINT = ord(".")
_MINUS = ord("-")
_ROUNDING = {"down": np.floor, "up": np.ceil, "nearest": np.rint}


def cell_encoder(rule: Rule) -> Encoder:
    """Return a function that encodes an attribute's column as cell numbers.

    The cell number is -1 if the row has to be dropped.

    >>> cell_encoder(rule_of(Integers(17, 20, outside="clip")))(
    ...     Column([17, "18", None, 99.5])
    ... ).tolist()
    [0, 1, -1, 3]
    >>> cell_encoder(rule_of(Categories(["F", "M"], outside="other")))(
    ...     Column(["M", "x", ""])
    ... ).tolist()
    [1, 2, -1]
    >>> quarters = rule_of(Dates("2024-01-01", "2024-12-31", "quarter"))
    >>> cell_encoder(quarters)(Column(["2024-05-01", "2024-01-01T00:30", "x", None])).tolist()
    [1, 0, -1, -1]
    """
    if isinstance(rule.table, TextTable):
        return stateless(_category_encoder(rule, rule.table))
    if rule.clock is not None:
        return stateless(_time_encoder(rule, rule.clock))
    return stateless(
        _number_encoder(
            lambda numbers, is_outside: _cells_of_numbers(
                rule, numbers, is_outside, np.isnan(numbers)
            ),
            rule.reading,
        )
    )


def amount_encoder(measure: Measure) -> Encoder:
    """Return a function that encodes a measure's column as int64 amounts.

    An amount is within the bounds of the measure if there is a value; otherwise it is 0.

    >>> amount_encoder(Measure("pay", 0, 100, unit="0.5"))(
    ...     Column([1.3, 1e9, None, "x", -5])
    ... ).tolist()
    [3, 200, 0, 0, 0]
    """
    low = measure.low_units
    high = measure.high_units
    numerator = float(measure.unit.numerator)
    denominator = float(measure.unit.denominator)

    def amounts(numbers: Array, is_outside: BoolArray) -> IntArray:
        """Clip numbers to the measure's bounds, in units; numbers outside become 0."""
        given = ~(is_outside | np.isnan(numbers))
        if isinstance(measure, ValueCount):
            return given.astype(np.int64)
        # A product that overflows to infinity is beyond the bounds, and is clipped correctly.
        with np.errstate(over="ignore"):
            units = np.where(given, numbers, 0.0) * denominator / numerator
        return np.rint(np.clip(units, low, high)).astype(np.int64) * given

    return stateless(_number_encoder(amounts, measure.reading))


def combined_amounts(measure: Measure, amounts: Sequence[IntArray]) -> IntArray:
    """Compute the amounts of a measure from the amounts of its `column_measures`.

    All intermediate numbers stay below 2^63 (E3). Products and squares are clipped to the bounds of
    the measure. Clipping changes nothing unless the attributes of the measure were changed after
    its bounds were checked.

    >>> pay = Measure("pay", 0, 10)
    >>> combined_amounts(SquaredDeviation(pay), [np.array([0, 3, 0]), np.array([1, 1, 0])]).tolist()
    [25, 4, 0]
    >>> product = DeviationProduct([pay, age := Measure("age", 0, 4)], [pay, age])
    >>> combined_amounts(
    ...     product, list(np.array([[0, 3, 0], [1, 4, 0], [1, 1, 0], [1, 1, 1]]))
    ... ).tolist()
    [5, -4, 0]
    """
    if isinstance(measure, SquaredDeviation):
        values, has_value = amounts
        squares = (values - measure.centre) ** 2
        combined = (squares + measure.divisor // 2) // measure.divisor * has_value
    elif isinstance(measure, DeviationProduct):
        combined = _deviation_products(measure, amounts)
    else:
        combined = reduce(np.multiply, amounts)
    if not isinstance(measure, COMBINED_MEASURES):
        return combined
    return np.clip(combined, measure.low_units, measure.high_units)


def _deviation_products(measure: DeviationProduct, amounts: Sequence[IntArray]) -> IntArray:
    """Multiply the distances of a row's amounts from their centres, for each row.

    A row that lacks a value gets 0.
    """
    count = len(measure.factors)
    products = np.ones_like(amounts[0])
    for values, centre in zip(amounts[:count], measure.centres, strict=True):
        products = products * (values - centre)
    quotients = (products + measure.divisor // 2) // measure.divisor
    return reduce(np.multiply, amounts[count:], quotients)


def unreadable_encoder(reading: Reading) -> Encoder:
    """Return a function that marks the unreadable values of a column with 1.

    A value is unreadable if it is neither a null nor a number. All other values get 0.

    >>> unreadable_encoder(Reading())(Column(["1.5", "1,5", "", None, 7, "n/a"])).tolist()
    [0, 1, 0, 0, 0, 1]
    """
    return stateless(_number_encoder(lambda _, is_outside: is_outside.astype(np.int64), reading))


def _category_encoder(rule: Rule, table: TextTable) -> Encoder:
    """Return an encoder that looks up each value's normalised text in a table.

    If a text is a whole number followed by a point and zeros, the text without the point and the
    zeros is looked up too.
    """

    def cell(value: object) -> int:
        """Return the cell of a value, by its normalised text."""
        if is_null(value):
            return rule.null
        if (form := value_as_text(value)) is None:
            return rule.outside
        form = rule.reading.form(form)
        known = table.cells.get(form)
        if known is None and isinstance(value, (str, bytes)):
            known = table.whole_numbers.get(without_zeros(form) or "")
        if known is None:
            return rule.outside
        return known

    return by_value(
        lambda values: np.fromiter(map(cell, values), dtype=np.int64, count=len(values))
    )


def _cells_of_numbers(
    rule: Rule, numbers: Array, is_outside: BoolArray, missing: BoolArray
) -> IntArray:
    """Look up the cell of each number, or of each time in seconds.

    Bounds are below 2^53, so converting an integer to a double never moves it across a bound.
    """
    table = rule.table
    if isinstance(table, ThresholdTable):
        cells = table.cells[np.searchsorted(table.thresholds, numbers, side="right")]
    else:
        cells = _cells_by_steps(rule, numbers)
    cells[is_outside] = rule.unreadable
    cells[missing] = rule.null
    return cells


def _cells_by_steps(rule: Rule, numbers: Array) -> IntArray:
    """Compute the cell of each number as the number of steps above an origin."""
    table = rule.table
    if not isinstance(table, StepTable):
        raise InternalError("numbers have no cell among texts; please report this.")
    if rule.clip:
        numbers = np.clip(numbers, table.low, table.high)
    doubles = numbers.dtype.kind == "f"
    if doubles and table.rounding is not None:
        numbers = _ROUNDING[table.rounding](numbers)
    inside = (numbers >= table.low) & (numbers <= table.high)
    if doubles:
        inside &= numbers == np.floor(numbers)
    # Only integers within the bounds may be converted, because the result of other conversions is
    # undefined.
    cells = (np.where(inside, numbers, table.low).astype(np.int64) - table.origin) // table.step
    if table.repeat_after is not None:
        cells = cells % table.repeat_after
    return np.where(inside, cells, rule.outside)


def _time_encoder(rule: Rule, clocked: TimeRule) -> Encoder:
    """Return a function that encodes dates and times as cell numbers.

    The function converts arrays of time stamps as a whole, and other values one by one.
    """
    if clocked.zone == "UTC":
        clock = None
    else:
        clock = zoneinfo.ZoneInfo(clocked.zone)

    def cells_of_times(seconds: IntArray, zoned: BoolArray, missing: BoolArray) -> IntArray:
        """Return the cells of times; times with a zone are converted to local time."""
        is_outside = seconds == NO_DAY
        if clock is None:
            shown = seconds
        else:
            shown = local_seconds(clock, seconds, zoned & ~is_outside)
        return _cells_of_numbers(rule, shown, is_outside, missing)

    read_time = time_reader(clocked, rule.reading)

    def encode_values(values: Sequence[object]) -> IntArray:
        """Encode Python values one by one."""
        times = [read_time(value) for value in values]
        pairs = [time or (NO_DAY, False) for time in times]
        seconds = np.array([second for second, _ in pairs], dtype=np.int64)
        zoned = np.array([utc for _, utc in pairs], dtype=np.bool_)
        return cells_of_times(
            seconds, zoned, np.array([time is None for time in times], dtype=np.bool_)
        )

    others = by_value(encode_values)
    counted_in = clocked.counted_in

    def encode_numbers(numbers: Array, _: BoolArray) -> IntArray:
        """Encode numbers that count days or parts of a second."""
        doubles = numbers.astype(np.float64)
        seconds = counted_seconds(doubles, str(counted_in))
        zoned = np.full(len(seconds), is_counted_in_utc(str(counted_in)))
        return cells_of_times(seconds, zoned, np.isnan(doubles))

    if counted_in is None:
        number_encoder = None
    else:
        number_encoder = _number_encoder(encode_numbers, rule.reading, others)

    def encode(column: Column) -> IntArray:
        """Encode a column of dates and times."""
        seconds = stamps(column.data)
        if seconds is None:
            if number_encoder is None:
                return others(column)
            return number_encoder(column)
        missing = np.isnat(np.asarray(column.data))
        return column.rows(
            cells_of_times(seconds, np.full(len(seconds), column.zoned), missing), rule.null
        )

    return encode


def _number_encoder(
    cells_of: Callable[[Array, BoolArray], IntArray],
    reading: Reading,
    other_encoder: Encoder | None = None,
) -> Encoder:
    """Return a function that reads a column's values as numbers and encodes them.

    The function reads arrays of numbers as a whole. The function reads other values one by one, or
    passes them to ``other_encoder``.
    """
    read = number_reader(reading)
    nulls = null_numbers(reading)

    def to_doubles(numbers: Sequence[float | None]) -> tuple[Array, BoolArray]:
        """Return numbers as doubles (0 for None), and a mask of the Nones."""
        is_outside = np.array([value is None for value in numbers], dtype=np.bool_)
        known = np.array([0.0 if value is None else value for value in numbers], dtype=np.float64)
        return known, is_outside

    def encode_numbers(numbers: Array, is_outside: BoolArray) -> IntArray:
        """Replace nulls in an array by NaN, in place, and encode the numbers."""
        numbers[np.isin(numbers, nulls) & ~is_outside] = np.nan
        return cells_of(numbers, is_outside)

    def encode_values(values: Sequence[object]) -> IntArray:
        """Read values one by one as numbers, and encode them."""
        return encode_numbers(*to_doubles([read(value) for value in values]))

    def encode_texts(texts: DistinctTexts) -> IntArray:
        """Read texts as numbers, and encode them."""
        known = plain_decimals(texts)
        strange = np.zeros(len(known), dtype=np.bool_)
        positions = np.flatnonzero(np.isnan(known))
        values = texts.array.take(arrow_words(positions.astype(np.uint64))).to_pylist()
        known[positions], strange[positions] = to_doubles([read(value) for value in values])
        return encode_numbers(known, strange)

    others = other_encoder or by_value(encode_values)
    missing = int(encode_values([None])[0])
    reads_decimals = other_encoder is None and _reads_plain_decimals(reading)

    def encode(column: Column) -> IntArray:
        """Encode a column of any type."""
        data = column.data
        if reads_decimals and isinstance(data, DistinctTexts) and len(data) >= _MANY_TEXTS:
            return column.rows(encode_texts(data), missing)
        # A float32 counts as the decimal that it prints as, so its distinct values are read one by
        # one; a date is not a number.
        if not isinstance(data, np.ndarray) or not (
            data.dtype.kind in "biu" or data.dtype == np.float64
        ):
            return others(column)
        if data.dtype.kind == "i" and not len(nulls):
            numbers: Array = data.astype(np.int64)
        else:
            numbers = data.astype(np.float64)
        if len(nulls):
            numbers[np.isin(numbers, nulls)] = np.nan
        return column.rows(cells_of(numbers, np.isinf(numbers)), missing)

    return encode


def _reads_plain_decimals(reading: Reading) -> bool:
    """Return whether each text such as 12.5 is read as the nearest double.

    This is False for readings that have another decimal mark, or that read some plain decimals as
    nulls.
    """
    nulls = [reading.form(null).encode("utf-8", "surrogatepass") for null in reading.nulls]
    return reading.decimal == "." and not any(map(_PLAIN_DECIMAL.fullmatch, nulls))


def plain_decimals(texts: DistinctTexts) -> FloatArray:
    """Convert texts such as 12.5 to doubles; NaN for all other texts.

    A plain decimal has at most 20 bytes: an optional minus, and digits with at most one point among
    them. Both `number_reader` and Arrow read such a text as the nearest double.

    >>> texts = to_column(pa.array(["17", "-0.5", "1.", "1e3", "", "1.2.3", "--1", "é"])).data
    >>> plain_decimals(texts).tolist()
    [17.0, -0.5, nan, nan, nan, nan, nan, nan]
    """
    import pyarrow as pa

    content, starts = texts.bytes_and_starts()
    numbers = np.full(len(texts), np.nan)
    lengths = np.diff(starts)
    is_digit = (content >= _ZERO) & (content <= _NINE)
    others_before = np.append(0, np.cumsum(~is_digit))
    points_before = np.append(0, np.cumsum(content == _POINT))
    others = others_before[starts[1:]] - others_before[starts[:-1]]
    points = points_before[starts[1:]] - points_before[starts[:-1]]
    # An empty text has no first byte, and is shorter than all of these.
    first = np.append(content, np.uint8(0))[starts[:-1]]
    minus = first == _MINUS
    is_plain = (points <= 1) & (others == points + minus)
    is_plain &= (lengths > minus) & (lengths <= _LONGEST_DECIMAL)
    positions = np.flatnonzero(is_plain)
    ends_in_digits = (
        is_digit[starts[positions] + minus[positions]] & is_digit[starts[positions + 1] - 1]
    )
    positions = positions[ends_in_digits]
    plain_texts = texts.array.take(arrow_words(positions.astype(np.uint64)))
    try:
        numbers[positions] = np.from_dlpack(plain_texts.cast(pa.large_string()).cast(pa.float64()))
    except pa.ArrowException:  # no row may raise (E5): in this case all texts are read one by one
        return np.full(len(texts), np.nan)
    return numbers
