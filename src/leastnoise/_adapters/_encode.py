"""Whole columns to cells and amounts, by the rule written in `leastnoise._domain`.

Guarantees: what becomes of a row depends on that row and on the public domain alone: not on other rows, on how the rows are cut into
chunks, or on the order of earlier rows. Nothing is remembered from one chunk to the next, and rows share one reading of their value only
where their values are the same bytes, the same text, or equal numbers of one numpy type (E2, E3 of PROOFS-adapters.md).
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from leastnoise._adapters._column import Column
from leastnoise._adapters._values import is_null, number, stamp_text, text, without_zeros
from leastnoise._check.arrays import Array, BoolArray, FloatArray, IntArray
from leastnoise._domain import Bins, Categories, Coded, Integers, Kind, Measure

Encoder = Callable[[Column], IntArray]

# A row with this cell in any attribute is dropped.
DROP = -1


def cell_encoder(kind: Kind) -> Encoder:
    """Make the function that encodes a column of an attribute.

    Args:
        kind: the attribute.

    Returns:
        A function from a column to int64 cells, -1 where the row is to be dropped.

    >>> cell_encoder(Integers(17, 20, outside="clip"))(Column([17, "18", None, 99.5])).tolist()
    [0, 1, -1, 3]
    >>> cell_encoder(Categories(["F", "M"], outside="other"))(Column(["M", "x", ""])).tolist()
    [1, 2, -1]
    """
    if isinstance(kind, Categories):
        lookup = {str(value): place for place, value in enumerate(kind.values)}
        null, outside = _policy(kind.null, len(lookup)), _policy(kind.outside, len(lookup))
        return _by_value(lambda values: np.array([_category(value, lookup, null, outside) for value in values], dtype=np.int64))
    place = _binned(kind) if isinstance(kind, Bins) else _whole(kind)
    return _numeric(place)


def amount_encoder(measure: Measure) -> Encoder:
    """Make the function that encodes the column of a measure.

    Args:
        measure: the measure.

    Returns:
        A function from a column to int64 amounts in units, always within the measure's bounds.

    >>> amount_encoder(Measure("pay", 0, 100, unit="0.5"))(Column([1.3, 1e9, None, "x", -5])).tolist()
    [3, 200, 0, 0, 0]
    """
    low, high = measure.low_units, measure.high_units
    numerator, denominator = float(measure.unit.numerator), float(measure.unit.denominator)

    def amounts(numbers: FloatArray, strange: BoolArray) -> IntArray:
        known = np.where(strange | np.isnan(numbers), 0.0, numbers)
        # beyond the doubles is beyond the bounds, which an infinity says as well
        with np.errstate(over="ignore"):
            units = known * denominator / numerator
        return np.rint(np.clip(units, low, high)).astype(np.int64)

    return _numeric(amounts)


def _policy(policy: str, regular: int) -> int:
    return regular if policy == "other" else DROP


def _category(value: object, lookup: dict[str, int], null: int, outside: int) -> int:
    if is_null(value):
        return null
    form = text(value)
    if form is None:
        return outside
    place = lookup.get(form)
    if place is None and isinstance(value, (str, bytes)):
        whole = without_zeros(form)
        place = None if whole is None else lookup.get(whole)
    return outside if place is None else place


Placing = Callable[[FloatArray, BoolArray], IntArray]


def _whole(kind: Integers | Coded) -> Placing:
    """Cells of whole numbers. Bounds stay below 2^53, so reading an integer as a double moves it across neither of them."""
    low, high = (kind.low, kind.high) if isinstance(kind, Integers) else (0, kind.codes - 1)
    regular = high - low + 1
    null, outside = _policy(kind.null, regular), _policy(kind.outside, regular)

    def place(numbers: FloatArray, strange: BoolArray) -> IntArray:
        missing = np.isnan(numbers)
        if kind.outside == "clip":
            # text that is not a number has no nearest cell
            return _placed(np.rint(np.clip(numbers, low, high)) - low, missing | strange, null)
        inside = (numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)) & ~strange
        cells = _placed(numbers - low, ~inside, outside)
        cells[missing & ~strange] = null
        return cells

    return place


def _binned(kind: Bins) -> Placing:
    """Cells of bins: a number and an edge are compared as the doubles nearest to them."""
    null, outside = _policy(kind.null, kind.count), _policy(kind.outside, kind.count)
    edges = _inner_edges(kind)
    lowest, highest = float(kind.low), float(kind.high)
    # a value on an edge lies in the bin above it where bins are closed on the left
    side: Literal["left", "right"] = "right" if kind.closed == "left" else "left"

    def place(numbers: FloatArray, strange: BoolArray) -> IntArray:
        missing = np.isnan(numbers)
        cells = np.searchsorted(edges, numbers, side=side).astype(np.int64)
        if kind.outside == "clip":
            cells[missing | strange] = null
            return cells
        cells[~((numbers >= lowest) & (numbers <= highest)) | strange] = outside
        cells[missing & ~strange] = null
        return cells

    return place


def _inner_edges(kind: Bins) -> FloatArray:
    """The doubles nearest to the edges between bins."""
    width = (kind.high - kind.low) / kind.count
    common = math.lcm(kind.low.denominator, width.denominator)
    first, step = int(kind.low * common), int(width * common)
    if max(abs(first), first + step * kind.count, common) < 2**53:
        # numerator and denominator are exact doubles, so their quotient is rounded once
        return (np.arange(1, kind.count, dtype=np.int64) * step + first) / float(common)
    # Python's quotient of integers of any length is rounded once too
    return np.array([(first + step * place) / common for place in range(1, kind.count)], dtype=np.float64)


def _placed(cells: FloatArray, bad: BoolArray, otherwise: int) -> IntArray:
    """Turn doubles into cells; a double that is not one must not reach the conversion, whose result would be undefined."""
    return np.where(bad, float(otherwise), cells).astype(np.int64)


def _numeric(place: Placing) -> Encoder:
    """Encode by number: arrays of numbers at once, other values one by one."""

    def of_values(values: Sequence[object]) -> IntArray:
        numbers = [number(value) for value in values]
        strange = np.array([value is None for value in numbers], dtype=np.bool_)
        return place(np.array([0.0 if value is None else value for value in numbers], dtype=np.float64), strange)

    by_value = _by_value(of_values)
    missing = int(of_values([None])[0])

    def encode(column: Column) -> IntArray:
        data = column.data
        # float32 goes by the decimal that it prints as, so through its distinct values; a date is not a number
        if not isinstance(data, np.ndarray) or not (data.dtype.kind in "biu" or data.dtype == np.float64):
            return by_value(column)
        return column.rows(place(data.astype(np.float64), np.zeros(len(data), dtype=np.bool_)), missing)

    return encode


def _by_value(compute: Callable[[Sequence[object]], IntArray]) -> Encoder:
    """Encode each distinct value once."""
    missing = int(compute([None])[0])

    def encode(column: Column) -> IntArray:
        values, where = distinct(column.data)
        found = compute(values)
        return column.rows(found if where is None else found[where], missing)

    return encode


def distinct(data: Array | Sequence[object]) -> tuple[Sequence[object], npt.NDArray[np.intp] | None]:
    """The values that are told apart, and which of them each one is; None for where if all are listed.

    Only values of one numpy type, and texts, are ever taken to be the same: equal values of other types can have different texts.

    >>> values, where = distinct(["b", "a", "b", None])
    >>> values, where.tolist()
    (['b', 'a', None], [0, 1, 0, 2])
    """
    if isinstance(data, np.ndarray):
        found, where = np.unique(data, return_inverse=True)
        return [stamp_or_null(value) for value in found] if data.dtype.kind == "M" else list(found), where.reshape(-1)
    if not set(map(type, data)) <= {str, type(None)}:
        return data, None
    places = {value: place for place, value in enumerate(dict.fromkeys(data))}
    return list(places), np.fromiter(map(places.__getitem__, data), dtype=np.intp, count=len(data))


def stamp_or_null(value: np.datetime64) -> str | None:
    """The text of a time stamp, None for a missing one.

    >>> stamp_or_null(np.datetime64("2024-05-01T00:00:00.000")), stamp_or_null(np.datetime64("NaT"))
    ('2024-05-01', None)
    """
    return None if np.isnat(value) else stamp_text(str(value))
