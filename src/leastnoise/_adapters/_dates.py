"""Whole columns of dates and time stamps to cells, by the rule written at `leastnoise.Dates` (E3 of PROOFS-adapters.md)."""

import bisect
import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from leastnoise._adapters._column import Column
from leastnoise._adapters._distinct import by_value
from leastnoise._adapters._values import is_null, is_spelled_null, text
from leastnoise._check.arrays import BoolArray, IntArray
from leastnoise._domain import FOLDED, Dates, Reading, period_of

_DAY = 86_400
_EPOCH = dt.date(1970, 1, 1)
# Units of time stamps, in parts of a second.
_PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# What has no day stands here.
_NO_DAY = -(2**62)


def date_encoder(kind: Dates, null: int, outside: int) -> Callable[[Column], IntArray]:
    """Make the function that encodes a column of dates.

    Args:
        kind: the attribute.
        null: the cell of a null.
        outside: the cell of what is outside.

    Returns:
        A function from a column to int64 cells.

    >>> encode = date_encoder(Dates("2024-01-01", "2024-12-31", "quarter"), -1, -1)
    >>> encode(Column(["2024-05-01", dt.date(2024, 1, 1), "x", None])).tolist()
    [1, 0, -1, -1]
    """
    clock, pattern = _Clock(kind.zone), kind.pattern
    day, cells = days_of(kind)
    first, last = day * 24, (day + len(cells) - 1) * 24
    hourly = kind.by in ("hour", "hour_of_day")

    def place(seconds: IntArray, zoned: BoolArray, missing: BoolArray) -> IntArray:
        strange = seconds == _NO_DAY
        hours = np.where(zoned, clock.wall(seconds, zoned & ~strange), seconds) // 3600
        inside = (hours >= first) & (hours < last + 24)
        # within the days the clock's hour stays; a day clipped from outside has the hour next to it
        near = np.clip(hours, first, last + 23)
        found = cells[(near - first) // 24]
        if hourly:
            found = near % 24 if kind.by in FOLDED else near - first
        if kind.outside != "clip":
            found = np.where(inside, found, outside)
        found[strange] = null if kind.outside == "clip" else outside
        found[missing] = null
        return found

    def of_values(values: Sequence[object]) -> IntArray:
        read = [instant(value, pattern, kind.reading) for value in values]
        missing = np.array([found is None for found in read], dtype=np.bool_)
        pairs = [(_NO_DAY, False) if found is None else found for found in read]
        return place(np.array([one for one, _ in pairs], dtype=np.int64), np.array([one for _, one in pairs], dtype=np.bool_), missing)

    others = by_value(of_values)

    def encode(column: Column) -> IntArray:
        seconds = stamps(column.data)
        if seconds is None:
            return others(column)
        missing = np.isnat(np.asarray(column.data))
        return column.rows(place(seconds, np.full(len(seconds), column.zoned), missing), null)

    return encode


def days_of(kind: Dates) -> tuple[int, IntArray]:
    """The first day, counted from 1970-01-01, and for each day from it to the last the cell of its period (of hours: of its first).

    >>> days_of(Dates("1970-01-31", "1970-02-01", "month"))
    (30, array([0, 1]))
    """
    first, last = ((day - _EPOCH).days for day in (kind.start, kind.end))
    return first, _periods(np.arange(first, last + 1), kind.by) - kind.first


@cache
def changes_of_clock(zone: str, start: int, end: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The seconds of UTC, after one and before another, from which a clock is another time ahead, and these times; None for over a century.

    It is looked at every hour, and no clock changes there and back within one.

    >>> changes_of_clock("Europe/Berlin", 1_700_000_000, 1_720_000_000)
    ((1711846800,), (3600, 7200))
    """
    clock = _Clock(zone)
    if zone == "UTC":
        return (), (0,)
    if end - start > 101 * 366 * _DAY:
        return None
    seconds, ahead = [], [clock.ahead(start)]
    for hour in range(start, end, 3600):
        after = min(hour + 3600, end)
        if clock.ahead(after) != ahead[-1]:
            first = bisect.bisect_left(range(hour, after), True, key=lambda second: clock.ahead(second) != ahead[-1]) + hour
            seconds.append(first)
            ahead.append(clock.ahead(after))
    return tuple(seconds), tuple(ahead)


def _periods(days: IntArray, by: str) -> IntArray:
    """The periods of days, all at once."""
    if by not in ("year", "quarter", "month"):
        return np.asarray(period_of(days * 24, by))
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    return np.asarray(months // {"year": 12, "quarter": 3, "month": 1}[by])


def stamps(data: Any) -> IntArray | None:
    """Seconds since 1970 of numpy's time stamps, rounded down, of any size; None of other values.

    >>> stamps(np.array(["1969-12-31T23:59:59.5"], dtype="M8[ms]")).tolist()
    [-1]
    """
    if not isinstance(data, np.ndarray) or data.dtype.kind != "M":
        return None
    unit, count = np.datetime_data(data.dtype)
    numbers = data.view(np.int64)
    if count != 1 or unit not in {"D", *_PARTS}:
        return None
    # days beyond what seconds hold are outside anyhow
    return np.clip(numbers, -(2**40), 2**40) * _DAY if unit == "D" else numbers // _PARTS[unit]


def instant(value: object, pattern: re.Pattern[str], reading: Reading) -> tuple[int, bool] | None:
    """What a value says of time.

    Args:
        value: anything.
        pattern: how texts are written, of `Dates`.
        reading: of the attribute.

    Returns:
        Seconds since 1970, and whether these are of UTC, not of the attribute's own clock; None for a null. Where it says nothing, the
        seconds are beyond all days.

    >>> iso = Dates("2024-01-01", "2024-01-01").pattern
    >>> instant("1970-01-02T01:00+01:00", iso, Reading()), instant(dt.date(1970, 1, 2), iso, Reading()), instant("", iso, Reading())
    ((86400, True), (86400, False), None)
    """
    try:
        return _instant(value, pattern, reading)
    except Exception:  # noqa: BLE001 - whatever a private value does, it merely says nothing of time
        return _NO_DAY, False


def _instant(value: object, pattern: re.Pattern[str], reading: Reading) -> tuple[int, bool] | None:
    if is_null(value):
        return None
    if isinstance(value, dt.datetime):
        since = value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a difference of wall clocks
        ahead = value.utcoffset()
        return (since - (ahead or dt.timedelta())) // dt.timedelta(seconds=1), ahead is not None
    if isinstance(value, dt.date):
        return (value - _EPOCH).days * _DAY, False
    if isinstance(value, np.datetime64):
        return int(value.astype("M8[s]").astype(np.int64)), False
    form = text(value)
    form = "" if form is None else reading.form(form)
    if form and is_spelled_null(form, reading):
        return None
    found = pattern.fullmatch(form)
    if found is None:
        return _NO_DAY, False
    said = found.groupdict()
    parts = {name: int(part) for name, part in said.items() if part and part.isdecimal()}
    day = dt.date(parts["Y"], parts.get("m", 1), parts.get("d", 1))
    clock = dt.time(parts.get("H", 0), parts.get("M", 0), parts.get("S", 0))
    seconds = (day - _EPOCH).days * _DAY + (clock.hour * 60 + clock.minute) * 60 + clock.second
    if not said.get("zone"):
        return seconds, False
    offset = (parts.get("zh", 0) * 60 + parts.get("zm", 0)) * 60
    return seconds - (-offset if said["ahead"] == "-" else offset), True


class _Clock:
    """The clock of a time zone."""

    def __init__(self, zone: str) -> None:
        self._zone = None if zone == "UTC" else zoneinfo.ZoneInfo(zone)

    def wall(self, seconds: IntArray, which: BoolArray) -> IntArray:
        """What the clock shows at these seconds of UTC, as seconds since 1970; of others anything."""
        if self._zone is None or not which.any():
            return seconds
        instants, where = np.unique(seconds[which], return_inverse=True)
        shown = seconds.copy()
        shown[which] = np.array([self.ahead(one) for one in instants.tolist()], dtype=np.int64)[where.reshape(-1)] + seconds[which]
        return shown

    def ahead(self, second: int) -> int:
        """How many seconds it is ahead of UTC."""
        # beyond the calendar, and outside every attribute
        if not -62_000_000_000 < second < 253_000_000_000:
            return 0
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=second)
        ahead = moment.astimezone(self._zone).utcoffset()
        return 0 if ahead is None else ahead // dt.timedelta(seconds=1)
