"""Whole columns to cells and amounts, by the rule written in `leastnoise._domain`.

Guarantees: what becomes of a row depends on that row and on the public domain alone: not on other rows, on how the rows are cut into
chunks, or on the order of earlier rows. Nothing is remembered from one chunk to the next, and rows share one reading of their value only
where their values are the same bytes, the same text, or equal numbers of one numpy type (E2, E3 of PROOFS-adapters.md).
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from leastnoise._adapters._column import Column
from leastnoise._adapters._dates import date_encoder
from leastnoise._adapters._distinct import by_value as _by_value
from leastnoise._adapters._values import is_null, is_spelled_null, number, number_reader, text, without_zeros
from leastnoise._check import InputError, InternalError
from leastnoise._check.arrays import Array, BoolArray, FloatArray, IntArray
from leastnoise._domain import Bins, Categories, Coded, Dates, Decimals, Edges, Integers, Kind, Measure, Reading, Unknown, ValueCount

Encoder = Callable[[Column], IntArray]

# A row with this cell in any attribute is dropped.
DROP = -1


def cell_encoder(kind: Kind, marks: tuple[int, int] | None = None) -> Encoder:
    """Make the function that encodes a column of an attribute.

    Args:
        kind: the attribute.
        marks: what stands for a null and for what is outside; None: what the attribute's policies say.

    Returns:
        A function from a column to int64 cells, -1 where the row is to be dropped.

    Raises:
        InputError: the categories of the attribute are not known yet.

    >>> cell_encoder(Integers(17, 20, outside="clip"))(Column([17, "18", None, 99.5])).tolist()
    [0, 1, -1, 3]
    >>> cell_encoder(Categories(["F", "M"], outside="other"))(Column(["M", "x", ""])).tolist()
    [1, 2, -1]
    """
    null, outside = marks or _policies(kind)
    if isinstance(kind, Categories):
        lookup, reading = kind.lookup, kind.reading
        return _by_value(lambda values: np.array([_category(value, lookup, reading, null, outside) for value in values], dtype=np.int64))
    if isinstance(kind, Dates):
        return date_encoder(kind, null, outside)
    if isinstance(kind, (Integers, Coded)):
        return _numeric(_whole(kind, null, outside), kind.reading, _shifted(kind, null, outside))
    if isinstance(kind, (Bins, Edges, Decimals)):
        place = _stepped(kind, null, outside) if isinstance(kind, Decimals) else _binned(kind, null, outside)
        return _numeric(place, kind.reading)
    if isinstance(kind, Unknown):
        raise InputError(
            f"The categories of {kind!r} are not known yet. Find them first, with `leastnoise categories` or leastnoise.find_categories."
        )
    raise InternalError(f"nothing encodes the kind {type(kind).__name__}.")


def amount_encoder(measure: Measure) -> Encoder:
    """Make the function that encodes the column of a measure.

    Args:
        measure: the measure.

    Returns:
        A function from a column to int64 amounts in units: within the measure's bounds where there is a value, else 0.

    >>> amount_encoder(Measure("pay", 0, 100, unit="0.5"))(Column([1.3, 1e9, None, "x", -5])).tolist()
    [3, 200, 0, 0, 0]
    """
    low, high = measure.low_units, measure.high_units
    numerator, denominator = float(measure.unit.numerator), float(measure.unit.denominator)

    def amounts(numbers: FloatArray, strange: BoolArray) -> IntArray:
        given = ~(strange | np.isnan(numbers))
        if isinstance(measure, ValueCount):
            return given.astype(np.int64)
        # beyond the doubles is beyond the bounds, which an infinity says as well
        with np.errstate(over="ignore"):
            units = np.where(given, numbers, 0.0) * denominator / numerator
        return np.rint(np.clip(units, low, high)).astype(np.int64) * given

    return _numeric(amounts, measure.reading)


def _policies(kind: Kind) -> tuple[int, int]:
    """The cells of a null and of what is outside."""
    return tuple(kind.regular if policy == "other" else DROP for policy in (kind.null, kind.outside))  # type: ignore[return-value]


def _category(value: object, lookup: dict[str, int], reading: Reading, null: int, outside: int) -> int:
    form = None if is_null(value) else text(value)
    if form is None:
        return null if is_null(value) else outside
    form = reading.form(form)
    place = lookup.get(form)
    if place is None and is_spelled_null(form, reading):
        return null
    if place is None and isinstance(value, (str, bytes)):
        whole = without_zeros(form)
        place = None if whole is None else lookup.get(whole)
    return outside if place is None else place


Placing = Callable[[FloatArray, BoolArray], IntArray]


def _whole(kind: Integers | Coded, null: int, outside: int) -> Placing:
    """IntArray of whole numbers. Bounds stay below 2^53, so reading an integer as a double moves it across neither of them."""
    low, high = (kind.low, kind.high) if isinstance(kind, Integers) else (0, kind.codes - 1)
    rounded = _ROUNDING[kind.rounding if isinstance(kind, Integers) else None]

    def place(numbers: FloatArray, strange: BoolArray) -> IntArray:
        missing = np.isnan(numbers)
        numbers = rounded(numbers)
        if kind.outside == "clip":
            # text that is not a number has no nearest cell
            return _placed(np.rint(np.clip(numbers, low, high)) - low, missing | strange, null)
        inside = (numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)) & ~strange
        cells = _placed(numbers - low, ~inside, outside)
        cells[missing & ~strange] = null
        return cells

    return place


def _shifted(kind: Integers | Coded, null: int, outside: int) -> Callable[[Array], Array]:
    """Cells of whole numbers that are stored as such: as `_whole` has them, in a narrow type and without the way through doubles."""
    low, high = (kind.low, kind.high) if isinstance(kind, Integers) else (0, kind.codes - 1)
    narrow = np.min_scalar_type(min(-kind.size, null, outside))
    first = np.int64(low).astype(narrow)

    def place(numbers: Array) -> Array:
        # modulo a power of 2 that no two cells are apart, so it does not matter what is cut off
        cells: Array = np.subtract(numbers, first, dtype=narrow, casting="unsafe")
        below, above = numbers < low, numbers > high
        if kind.outside == "clip":
            cells[below], cells[above] = 0, high - low
        else:
            cells[below | above] = outside
        return cells

    return place


_ROUNDING: dict[str | None, Callable[[FloatArray], FloatArray]] = {
    None: lambda numbers: numbers,
    "down": np.floor,
    "up": np.ceil,
    "nearest": np.rint,
}


def _binned(kind: Bins | Edges, null: int, outside: int) -> Placing:
    """IntArray of bins: a number and an edge are compared as the doubles nearest to them."""
    inner = inner_edges(kind)
    lowest, highest = float(kind.low), float(kind.high)
    # a value on an edge lies in the bin above it where bins are closed on the left
    side: Literal["left", "right"] = "right" if kind.closed == "left" else "left"

    def place(numbers: FloatArray, strange: BoolArray) -> IntArray:
        missing = np.isnan(numbers)
        cells = np.searchsorted(inner, numbers, side=side).astype(np.int64)
        if kind.outside == "clip":
            cells[missing | strange] = null
            return cells
        cells[~((numbers >= lowest) & (numbers <= highest)) | strange] = outside
        cells[missing & ~strange] = null
        return cells

    return place


def _stepped(kind: Decimals, null: int, outside: int) -> Placing:
    """IntArray of numbers in equal steps: a number is one of them if the doubles nearest to both are the same."""
    values = multiples(kind.low, kind.step, kind.regular)
    between = multiples(kind.low + kind.step / 2, kind.step, kind.regular - 1)

    def place(numbers: FloatArray, strange: BoolArray) -> IntArray:
        missing = np.isnan(numbers)
        cells = np.searchsorted(between, numbers, side="right").astype(np.int64)
        if kind.outside == "clip":
            cells[missing | strange] = null
            return cells
        cells[(values[cells] != numbers) | strange] = outside
        cells[missing & ~strange] = null
        return cells

    return place


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


def _placed(cells: FloatArray, bad: BoolArray, otherwise: int) -> IntArray:
    """Turn doubles into cells; a double that is not one must not reach the conversion, whose result would be undefined."""
    return np.where(bad, float(otherwise), cells).astype(np.int64)


def null_numbers(reading: Reading) -> list[float]:
    """The numbers that mean a null.

    >>> null_numbers(Reading(nulls=["-9", "NA"]))
    [-9.0]
    """
    return [found for found in map(number, reading.nulls) if found is not None and not math.isnan(found)]


def _numeric(place: Placing, reading: Reading, of_wholes: Callable[[Array], Array] | None = None) -> Encoder:
    """Encode by number: arrays of numbers at once, other values one by one."""
    read = number_reader(reading)
    nulls = np.array(null_numbers(reading), dtype=np.float64)

    def of_values(values: Sequence[object]) -> IntArray:
        numbers = [read(value) for value in values]
        strange = np.array([value is None for value in numbers], dtype=np.bool_)
        known = np.array([0.0 if value is None else value for value in numbers], dtype=np.float64)
        known[np.isin(known, nulls) & ~strange] = np.nan
        return place(known, strange)

    by_value = _by_value(of_values)
    missing = int(of_values([None])[0])

    def encode(column: Column) -> IntArray:
        data = column.data
        # float32 goes by the decimal that it prints as, so through its distinct values; a date is not a number
        if not isinstance(data, np.ndarray) or not (data.dtype.kind in "biu" or data.dtype == np.float64):
            return by_value(column)
        if of_wholes is not None and not len(nulls) and data.dtype.kind == "i":
            return column.rows(of_wholes(data), missing)
        numbers = data.astype(np.float64)
        numbers[np.isin(numbers, nulls)] = np.nan
        return column.rows(place(numbers, np.zeros(len(data), dtype=np.bool_)), missing)

    return encode
