"""Interpret one value by the rule of its attribute.

A value is a null, a number, a text or a time. No value makes a function of this module raise an
error (E5).
"""

import bisect
import datetime as dt
import math
import re
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

import numpy as np

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._trusted.domain import BLANKS, MINUS, Reading, TimeRule, number_pattern

# Matches most numeric texts if the decimal mark is the point.
_SIMPLE = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE
)
_NAN = re.compile(f"[{BLANKS}]*+[+-]?nan[{BLANKS}]*+", re.IGNORECASE)
_WHOLE = re.compile(r"(-?[0-9]+)\.0+", re.ASCII)
_NO_DIGIT = re.compile("[^0-9]")
_MOST_OFFSET_HOURS = 23
_MOST_OFFSET_MINUTES = 59
# Longer texts are not treated as numbers, because parsing them could take very long.
MOST_NUMBER_CHARACTERS = 400
# A decimal with more digits before or after the point is never a category.
_DIGITS = 40
DAY = 86_400
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Units of time stamps, in parts of a second.
_PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Seconds that represent values without a day.
NO_DAY = -(2**62)
# Times that are numbers: units in a second, counted from 1970; and the number of the first day of
# 1970 if days are counted from 1899-12-30. No calendar has days beyond these limits.
IN_A_SECOND = {"epoch_s": 1, "epoch_ms": 10**3, "epoch_us": 10**6}
EXCEL_OF_1970 = 25_569.0
MILLISECONDS_A_DAY = 86_400_000.0
MOST_DAYS = 1e7
MOST_SECONDS = 1e12

Given = ParamSpec("Given")
Read = TypeVar("Read")
Else = TypeVar("Else")


def unless_it_raises(
    otherwise: Else,
) -> Callable[[Callable[Given, Read]], Callable[Given, Read | Else]]:
    """Return a decorator that replaces an exception by a fixed result (E5).

    No value can make a decorated function fail.

    Args:
        otherwise: the fixed result.

    >>> unless_it_raises(None)(int)("x") is None
    True
    """

    def decorate(function: Callable[Given, Read]) -> Callable[Given, Read | Else]:
        """Return the function, changed to return the fixed result if it raises."""

        @wraps(function)
        def call_or_replace(*args: Given.args, **named: Given.kwargs) -> Read | Else:
            """Call the function, and return the fixed result if it raises."""
            try:
                return function(*args, **named)
            except Exception:  # noqa: BLE001
                # If a private value makes it raise, the value is of another kind.
                return otherwise

        return call_or_replace

    return decorate


@unless_it_raises(False)
def is_null(value: object) -> bool:
    """Return whether a value is null: None, NaN, NaT or an empty text.

    >>> [is_null(value) for value in (None, float("nan"), "", 0, "nan")]
    [True, True, True, False, False]
    """
    if isinstance(value, (str, bytes)):
        return not value[:1]
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(value != value)  # noqa: PLR0124 - NaN
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    # Pandas marks missing values by objects of its own; the package does not import pandas.
    return type(value).__name__ in {"NAType", "NaTType"}


@unless_it_raises(None)
def number(value: object) -> float | None:
    """Convert a value that is not text to a float; NaN for null, None if invalid.

    A float32 is converted to the double that is nearest to its shortest decimal. A number that is
    too large for a double becomes an infinity. The result is None for an infinity, and for a value
    that is not a number.

    >>> number(np.float32(0.7)), number(True), number(None), number([]), number(10**400)
    (0.7, 1.0, nan, None, inf)
    >>> number(float("inf"))
    """
    if is_null(value):
        return float("nan")
    if isinstance(value, (float, np.floating, Decimal)) and not math.isfinite(value):
        return None
    if isinstance(value, (np.float32, np.float16)):
        return float(str(value))
    if isinstance(value, (bool, int, float, Decimal, np.bool_, np.integer, np.floating)):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return None


def is_spelled_null(form: str, reading: Reading) -> bool:
    """Return whether a normalised text is empty or a spelling of null.

    ``form`` is the text after the reading has removed blanks and case, if it ignores these.

    >>> is_spelled_null("NA", Reading(nulls=["NA"])), is_spelled_null("na", Reading(nulls=["NA"]))
    (True, False)
    """
    return not form or form in map(reading.form, reading.nulls)


def null_numbers(reading: Reading) -> FloatArray:
    """Return the numbers that count as null, parsed from the reading's nulls.

    >>> null_numbers(Reading(nulls=["-9", "NA", "1.000,5"], decimal=",", thousands=".")).tolist()
    [-9.0, 1000.5]
    """
    numbers = map(text_number(reading), reading.nulls)
    return np.array(
        [null for null in numbers if null is not None and not math.isnan(null)], dtype=np.float64
    )


def text_number(reading: Reading) -> Callable[[str], float | None]:
    """Return a function that parses a text as a number; None if it is not one.

    The function returns NaN for ``nan``. The forms are listed in the table in docs/spec.md. These
    forms are the same for every reading, except that a reading has its own decimal mark, mark of
    thousands and currency signs.

    >>> read = text_number(Reading())
    >>> [read(form) for form in ("17.50", "(5)", "5-", "2e3", " 7 ", "inf", "1,5", "--5", "NaN")]
    [17.5, -5.0, -5.0, 2000.0, 7.0, None, None, None, nan]
    """
    pattern = number_pattern(reading)
    # A compiled pattern keeps no state between texts.
    if type(pattern) is not re.Pattern:
        raise InternalError("the numbers of a reading must be a pattern; please report this.")
    has_point = reading.decimal == "."

    def read(form: str) -> float | None:
        """Return the number of a text; None if it is not a number."""
        if len(form) > MOST_NUMBER_CHARACTERS:
            return None
        if has_point and _SIMPLE.fullmatch(form):
            return float(form)
        match = pattern.fullmatch(form)
        if match is None:
            if _NAN.fullmatch(form):
                return float("nan")
            return None
        groups = match.groupdict()
        whole = groups["whole"]
        part = groups["part"]
        signs = [groups[f"sign{position}"] for position in range(1, 5) if groups[f"sign{position}"]]
        symbols = [position for position in range(1, 5) if groups[f"money{position}"]]
        in_brackets = groups["opened"] is not None
        if not (whole or part) or in_brackets != (groups["closed"] is not None):
            return None
        if len(signs) + in_brackets > 1 or len(symbols) > 1:
            return None
        digits = _NO_DIGIT.sub("", whole or "0")
        size = float(f"{digits}.{part or '0'}{groups['power'] or ''}")
        if in_brackets or signs in (["-"], [MINUS]):
            return -size
        return size

    return read


def number_reader(reading: Reading) -> Callable[[object], float | None]:
    """Return a function that converts any value to a number; None if it cannot.

    The conversions are done by `number` and `text_number`.

    >>> read = number_reader(Reading(decimal=",", thousands=".", currency=["€"], nulls=["-"]))
    >>> read("1.234,50 €"), read("-5"), read("1.5"), read("-"), read(0.5), read("")
    (1234.5, -5.0, None, nan, 0.5, nan)
    """
    number_of_text = text_number(reading)

    @unless_it_raises(None)
    def read(value: object) -> float | None:
        """Return the number of a value; NaN for null, None if it is not a number."""
        # Test for text first, because most columns that are not arrays contain text.
        if isinstance(value, bytes):
            value = value.decode()
        if not isinstance(value, str):
            return number(value)
        form = reading.form(value)
        if is_spelled_null(form, reading):
            return float("nan")
        return number_of_text(form)

    return read


@unless_it_raises(None)
def value_as_text(value: object) -> str | None:
    """Return the normalised text of a value; None for null and for other types.

    Equal values of one type have the same text. An instant has the same text in all time zones.
    For bytes that are UTF-8, the result is the text that they encode.

    >>> values = 17.0, 0.5, True, dt.date(2024, 5, 1), dt.datetime(2024, 5, 1, 13, 45), [1]
    >>> tuple(value_as_text(value) for value in values)
    ('17', '0.5', 'true', '2024-05-01', '2024-05-01 13:45:00', None)
    """
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value)) if abs(int(value)) < 10**_DIGITS else None
    if isinstance(value, (float, np.floating)):
        double = float(str(value)) if isinstance(value, (np.float32, np.float16)) else float(value)
        return (
            str(int(double)) if double.is_integer() and abs(double) < 10**_DIGITS else repr(double)
        )
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if isinstance(value, dt.datetime):
        return stamp_text(str(_stamp(value)))
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, np.datetime64):
        return stamp_text(
            str(
                value.astype("M8[s]")
                if np.datetime_data(value.dtype)[0] in {"Y", "M", "W", "h", "m"}
                else value
            )
        )
    return str(value) if isinstance(value, UUID) else None


def _decimal_text(value: Decimal) -> str | None:
    """Return the shortest text of a decimal; None if it has too many digits."""
    if not value.is_finite():
        return "-inf" if value < 0 else "inf"
    if not value:
        return "0"
    # Check the length before formatting, because the text could be very long.
    if not -_DIGITS <= value.adjusted() < _DIGITS:
        return None
    plain = format(value, "f")
    whole, _, part = plain.partition(".")
    # The numbers 1.0 and 1 are equal, and have the same text.
    part = part.rstrip("0")
    if len(part) > _DIGITS:
        return None
    if part:
        return f"{whole}.{part}"
    return whole


def _stamp(value: dt.date | np.datetime64) -> np.datetime64:
    """Convert a date or time to `datetime64`, in UTC if it has a time zone.

    The conversion uses only integers, so it also works for years that Python's dates do not
    support.
    """
    if hasattr(value, "to_datetime64"):  # a pandas time stamp, which has nanoseconds
        return np.datetime64(value.to_datetime64())
    if isinstance(value, dt.datetime):
        return np.datetime64(value.replace(tzinfo=None), "us") - np.timedelta64(
            value.utcoffset() or dt.timedelta(), "us"
        )
    return np.datetime64(value)


def stamp_text(iso: str) -> str:
    """Normalise an ISO time stamp.

    The result has a space between date and time, and omits zeros at the end of the fraction and a
    time of midnight.

    >>> (
    ...     stamp_text("2024-05-01T00:00:00.000000"),
    ...     stamp_text("2024-05-01T12:30:00.500000"),
    ...     stamp_text("2024-05-01T12:30"),
    ... )
    ('2024-05-01', '2024-05-01 12:30:00.5', '2024-05-01 12:30:00')
    """
    day, _, time = iso.replace("T", " ").partition(" ")
    if "." in time:
        time = time.rstrip("0").rstrip(".")
    if time.count(":") == 1:
        time += ":00"
    return day if time in {"", "00:00:00"} else f"{day} {time}"


def without_zeros(form: str) -> str | None:
    """Return the text 12 for a text such as 12.00; None for other texts.

    >>> without_zeros("17.0"), without_zeros("-0.00"), without_zeros("17.5")
    ('17', '0', None)
    """
    if form[-1:] != "0" or "." not in form or len(form) > MOST_NUMBER_CHARACTERS:
        return None
    match = _WHOLE.fullmatch(form)
    if not match:
        return None
    return "0" if match.group(1) == "-0" else match.group(1)


@cache
def changes_of_clock(
    zone: str, start: int, end: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return when a zone's UTC offset changes and the offsets; None if too long.

    The times are UTC seconds between two bounds. The result has one more offset than times. The
    result is None for a span of over 101 years.

    The offset is checked at every hour; no clock changes forward and back within one hour.

    >>> changes_of_clock("Europe/Berlin", 1_700_000_000, 1_720_000_000)
    ((1711846800,), (3600, 7200))
    """
    if zone == "UTC":
        return (), (0,)
    if end - start > 101 * 366 * DAY:
        return None
    clock = zoneinfo.ZoneInfo(zone)
    seconds = []
    shown = [utc_offset(clock, start)]
    for hour in range(start, end, 3600):
        after = min(hour + 3600, end)
        if (then := utc_offset(clock, after)) != shown[-1]:
            seconds.append(
                bisect.bisect_left(
                    range(hour, after),
                    True,
                    key=lambda second: utc_offset(clock, second) != shown[-1],
                )
                + hour
            )
            shown.append(then)
    return tuple(seconds), tuple(shown)


def stamps(data: Any) -> IntArray | None:
    """Convert NumPy time stamps to seconds since 1970; None for other data.

    >>> stamps(np.array(["1969-12-31T23:59:59.5"], dtype="M8[ms]")).tolist()
    [-1]
    """
    if not isinstance(data, np.ndarray) or data.dtype.kind != "M":
        return None
    unit, count = np.datetime_data(data.dtype)
    numbers = data.view(np.int64)
    if count != 1 or unit not in {"D", *_PARTS}:
        return None
    # Days whose seconds overflow are outside every domain.
    if unit == "D":
        return np.clip(numbers, -(2**40), 2**40) * DAY
    return numbers // _PARTS[unit]


def time_reader(clocked: TimeRule, reading: Reading) -> Callable[[object], tuple[int, bool] | None]:
    """Return a function that reads any value as a time; None for a null.

    Texts are read by a pattern, and numbers by their unit. The function returns seconds since 1970,
    and whether these are in UTC instead of the attribute's time zone. If a value is not a time, its
    seconds are outside the days of every attribute.

    >>> read = time_reader(rule_of(Dates("2024-01-01", "2024-01-01")).clock, Reading())
    >>> read("1970-01-02T01:00+01:00"), read(dt.date(1970, 1, 2)), read("")
    ((86400, True), (86400, False), None)
    """
    read_number = number_reader(reading)
    numbers_of_null = null_numbers(reading).tolist()
    pattern = clocked.pattern
    if reading.ignore_case:  # the text is in lower case, and the T of a time is not
        pattern = re.compile(pattern.pattern, pattern.flags & ~re.ASCII | re.IGNORECASE)

    @unless_it_raises((NO_DAY, False))
    def read(value: object) -> tuple[int, bool] | None:
        """Return the seconds of a value, and whether they are in UTC; None for null."""
        if is_null(value):
            return None
        if isinstance(value, (dt.date, np.datetime64)):
            zoned = isinstance(value, dt.datetime) and value.utcoffset() is not None
            # The cast of NumPy from nanoseconds overflows near the least time stamp.
            exact = stamps(np.asarray(stamp := _stamp(value)))
            return int(stamp.astype("M8[s]").astype(np.int64) if exact is None else exact), zoned
        if clocked.counted_in is not None:
            number_of_units = read_number(value)
            if number_of_units is None:
                return NO_DAY, False
            if math.isnan(number_of_units) or number_of_units in numbers_of_null:
                return None
            counted = counted_seconds(np.array([number_of_units]), clocked.counted_in)
            return int(counted[0]), is_counted_in_utc(clocked.counted_in)
        form = value_as_text(value)
        form = "" if form is None else reading.form(form)
        if form and is_spelled_null(form, reading):
            return None
        match = pattern.fullmatch(form)
        if match is None:
            return (NO_DAY, False)
        return _seconds_of_match(match, clocked.century)

    return read


def _seconds_of_match(match: re.Match[str], century: int) -> tuple[int, bool]:
    """Return the seconds since 1970 of a matched text, and whether in UTC.

    An error is raised if there is no such time.
    """
    groups = match.groupdict()
    parts = {name: int(part) for name, part in groups.items() if part and part.isdecimal()}
    if "Y" in parts:
        year = parts["Y"]
    else:
        year = century + (parts["y"] - century) % 100
    names = [month_number for month_number in range(1, 13) if groups.get(f"month{month_number}")]
    month = names[0] if names else parts.get("m", 1)
    hour = parts.get("H", 0)
    if "I" in parts:
        if not 1 <= parts["I"] <= 12:
            return NO_DAY, False
        hour = parts["I"] % 12 + (12 if groups["pm"] else 0)
    moment = dt.datetime(
        year, month, parts.get("d", 1), hour, parts.get("M", 0), parts.get("S", 0), tzinfo=dt.UTC
    )
    seconds = (moment - _EPOCH) // dt.timedelta(seconds=1)
    if not groups.get("zone"):
        return seconds, False
    hours = parts.get("zh", 0)
    minutes = parts.get("zm", 0)
    if hours > _MOST_OFFSET_HOURS or minutes > _MOST_OFFSET_MINUTES:
        return NO_DAY, False
    offset = (hours * 60 + minutes) * 60
    return seconds - (-offset if groups["ahead"] == "-" else offset), True


def is_counted_in_utc(counted_in: str) -> bool:
    """Return whether numbers in a unit count the time since 1970 in UTC.

    >>> is_counted_in_utc("epoch_s"), is_counted_in_utc("excel")
    (True, False)
    """
    return counted_in != "excel"


def counted_seconds(numbers: FloatArray, counted_in: str) -> IntArray:
    """Convert numeric times to seconds since 1970, rounded down.

    Each entry is read separately.

    Days since 1899-12-30 are first rounded to thousandths of a second, because files store them as
    shortened decimals. A number that is outside all days is converted to seconds outside all days
    on the same side; NaN and the infinities have no day.

    >>> counted_seconds(np.array([43480.604166667, 43480.0]), "excel").tolist()
    [1547562600, 1547510400]
    >>> counted_seconds(np.array([1.5, -0.5]), "epoch_s").tolist()
    [1, -1]
    """
    has_day = np.isfinite(numbers)
    known = np.where(has_day, numbers, 0.0)
    if counted_in == "excel":
        days = np.clip(known, -MOST_DAYS, MOST_DAYS) - EXCEL_OF_1970
        seconds = np.floor(np.rint(days * MILLISECONDS_A_DAY) / 1000.0)
    else:
        a_second = float(IN_A_SECOND[counted_in])
        near = np.clip(known, -MOST_SECONDS * a_second, MOST_SECONDS * a_second)
        # Round down first, as in SQL, where dividing a number near 0 can raise an error.
        seconds = np.floor(np.floor(near) / a_second)
    return np.where(has_day, seconds.astype(np.int64), NO_DAY)


def local_seconds(clock: zoneinfo.ZoneInfo, seconds: IntArray, is_selected: BoolArray) -> IntArray:
    """Convert UTC seconds to the local clock time of a time zone.

    Only the entries marked by ``is_selected`` are converted; all other entries of the result are
    arbitrary.
    """
    instants, where = np.unique(seconds[is_selected], return_inverse=True)
    shown = seconds.copy()
    shown[is_selected] += np.array(
        [utc_offset(clock, moment) for moment in instants.tolist()], dtype=np.int64
    )[where.reshape(-1)]
    return shown


def utc_offset(clock: zoneinfo.ZoneInfo, second: int) -> int:
    """Return how many seconds a zone's clock is ahead of UTC at some time."""
    # Beyond the calendar, and so outside the domain of every attribute.
    if not -62_000_000_000 < second < 253_000_000_000:
        return 0
    return (
        (_EPOCH + dt.timedelta(seconds=second)).astimezone(clock).utcoffset() or dt.timedelta(0)
    ) // dt.timedelta(seconds=1)
