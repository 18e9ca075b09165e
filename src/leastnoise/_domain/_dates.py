"""Dates and times as an attribute: cut into years, quarters, months, weeks, days or hours, or folded onto weekdays or hours of the day."""

import datetime as dt
import re
import zoneinfo
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from leastnoise._check import InputError, message, one_of, refuse
from leastnoise._domain._kind import ORDERED, Kind
from leastnoise._domain._levels import Label, Level, grouped

PERIODS = ("year", "quarter", "month", "week", "day", "hour")
FOLDED = ("weekday", "hour_of_day")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EPOCH = dt.date(1970, 1, 1)
# 1970-01-01 was a Thursday
_MONDAY = 3
# The periods that every period lies in as a whole.
_COARSER = {
    "year": (),
    "quarter": ("year",),
    "month": ("quarter", "year"),
    "week": (),
    "day": ("weekday", "week", "month", "quarter", "year"),
    "hour": ("hour_of_day", "day", "weekday", "week", "month", "quarter", "year"),
    "weekday": (),
    "hour_of_day": (),
}
_DIRECTIVES = {
    "Y": r"(?P<Y>[0-9]{4})",
    "m": r"(?P<m>[0-9]{1,2})",
    "d": r"(?P<d>[0-9]{1,2})",
    "H": r"(?P<H>[0-9]{1,2})",
}
_DIRECTIVES |= {"M": r"(?P<M>[0-9]{1,2})", "S": r"(?P<S>[0-9]{1,2})", "%": "%"}
_ISO = (
    r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    r"(?:[ T](?P<H>[0-9]{2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,][0-9]+)?)?"
    r" ?(?P<zone>Z|(?P<ahead>[+-])(?P<zh>[0-9]{2}):?(?P<zm>[0-9]{2})?)?)?"
)


@dataclass(frozen=True, slots=True, repr=False)
class Dates(Kind):
    """A column of dates or time stamps between two public days, both included.

    A value is a date, a time stamp or a text. A text is read as ``2024-05-01``, ``2024-05-01
    13:45:00`` or ``2024-05-01T13:45Z``, or by ``format``. A time stamp with a time zone (or a text
    with ``Z`` or ``+02:00``) is taken to the clock of ``zone``; one without is a reading of that
    clock already. Whatever has no day is outside.

    Args:
        start: the first day, a date or a text such as ``"2024-01-01"``; kept as a date.
        end: the last day, not before ``start``.
        by: the cells: ``year``, ``quarter``, ``month``, ``week`` (ISO weeks, from Monday), ``day``
            or ``hour``, one after the other; or ``weekday`` (Monday first) or ``hour_of_day`` (0 to
            23), of all days together.
        zone: the time zone of the cells, an IANA name such as ``"Europe/Berlin"``.
        format: how texts are written, of ``%Y %m %d %H %M %S`` and letters that stand for
            themselves; None: as above.
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what a day before ``start`` or after ``end`` does: ``"drop"`` the row, ``"clip"``
            to the nearest day, or ``"other"``.
        reading: how values are read.
        levels: public maps from cells to groups. Months have the levels quarter and year, days also
            weekday, week and month, hours also day and hour_of_day, without saying so.

    Raises:
        InputError: a day, period, zone or format that cannot be used.

    Edge cases: the first and the last cell hold the days from ``start`` and to ``end`` alone. A
    fraction of a second is cut off. In the
        hour that a clock repeats in autumn both passes are in one cell.

    >>> ln.Dates("2024-11-15", "2025-01-31", by="month").labels
    ('2024-11', '2024-12', '2025-01')
    >>> ln.Dates("2024-12-30", "2025-01-06", by="week").labels
    ('2025-W01', '2025-W02')
    """

    start: Any
    end: Any
    by: str = "day"
    _: KW_ONLY
    zone: str = "UTC"
    format: str | None = None

    def __post_init__(self) -> None:
        first, last = (
            _day("the first day of dates", self.start),
            _day("the last day of dates", self.end),
        )
        if not first <= last:
            raise InputError(
                message(
                    "The first day of dates must not be after the last; got {first} and {last}.",
                    first=first,
                    last=last,
                )
            )
        one_of("by", self.by, (*PERIODS, *FOLDED))
        try:
            zoneinfo.ZoneInfo(self.zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise refuse(
                "zone",
                self.zone,
                "an IANA time zone that this machine knows, such as 'Europe/Berlin' or 'UTC'",
            ) from None
        if self.format is not None:
            _pattern(self.format)
        self._set_fields(_count(first, last, self.by), ORDERED, start=first, end=last)
        self._set_levels()

    @property
    def first(self) -> int:
        """The number of the first cell's period; see `period_of`."""
        return 0 if self.by in FOLDED else period_of((self.start - _EPOCH).days * 24, self.by)

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The periods, such as ``2024``, ``2024-Q1``, ``2024-01``, ``2024-W01``, ``2024-01-31``, ``2024-01-31 13:00`` and ``Monday``."""
        return tuple(_label(self.first + cell, self.by) for cell in range(self.regular))

    @property
    def implied_levels(self) -> tuple[Level, ...]:
        """The coarser periods that every cell lies in as a whole."""
        hours = [_first_hour(self.first + cell, self.by) for cell in range(self.regular)]
        return tuple(
            grouped(by, [_label(period_of(hour, by), by) for hour in hours])
            for by in _COARSER[self.by]
        )

    def last_day(self, cells: int) -> dt.date:
        """Return the last day of the first periods."""
        after = _first_hour(self.first + cells, self.by) // 24
        end: dt.date = self.end
        return min(end, _EPOCH + dt.timedelta(days=after - 1))

    def until(self, cells: int) -> "Dates":
        """Return the dates of the first periods alone, without declared levels."""
        return replace(self, end=self.last_day(cells), levels=())

    def reaching(self, cells: int) -> "Dates":
        """Return the dates of so many periods from the first day on, also beyond the last one, without declared levels."""
        return replace(
            self,
            end=_EPOCH + dt.timedelta(days=_first_hour(self.first + cells, self.by) // 24 - 1),
            levels=(),
        )

    def over(self, day: dt.date) -> int:
        """Return how many periods are over on a day."""
        return sum(self.last_day(cells) < day for cells in range(1, self.regular + 1))

    @property
    def pattern(self) -> re.Pattern[str]:
        """How texts are written, with groups Y, m, d, H, M, S, and zone, ahead, zh, zm where it may have a time zone."""
        return _pattern(self.format)


def period_of(hour: Any, by: str) -> Any:
    """Return the number of the period that an hour since 1970-01-01 00:00 lies in; only years, quarters and months need a number."""
    day = hour // 24
    if by in ("week", "weekday"):
        return (day + _MONDAY) // 7 if by == "week" else (day + _MONDAY) % 7
    if by in ("hour", "hour_of_day"):
        return hour if by == "hour" else hour % 24
    if by == "day":
        return day
    date = _EPOCH + dt.timedelta(days=int(day))
    months = (date.year - 1970) * 12 + date.month - 1
    return {"year": date.year - 1970, "quarter": months // 3, "month": months}[by]


def _first_hour(period: int, by: str) -> int:
    """Return the first hour of a period, the inverse of `period_of`."""
    if by in ("year", "quarter", "month"):
        months = period * {"year": 12, "quarter": 3, "month": 1}[by]
        return (dt.date(1970 + months // 12, months % 12 + 1, 1) - _EPOCH).days * 24
    return {
        "week": (period * 7 - _MONDAY) * 24,
        "day": period * 24,
        "hour": period,
        "weekday": (period - _MONDAY) * 24,
    }.get(by, period)


def _label(period: int, by: str) -> Label:
    if by == "weekday":
        return WEEKDAYS[period]
    if by == "hour_of_day":
        return period
    hour = _first_hour(period, by)
    date = _EPOCH + dt.timedelta(days=hour // 24)
    year, week, _ = date.isocalendar()
    return {
        "year": f"{date.year:04}",
        "quarter": f"{date.year:04}-Q{(date.month + 2) // 3}",
        "month": f"{date.year:04}-{date.month:02}",
        "week": f"{year:04}-W{week:02}",
        "day": date.isoformat(),
        "hour": f"{date.isoformat()} {hour % 24:02}:00",
    }[by]


def _count(start: dt.date, end: dt.date, by: str) -> int:
    if by in FOLDED:
        return 7 if by == "weekday" else 24
    first, last = ((day - _EPOCH).days * 24 for day in (start, end))
    return int(period_of(last + 23, by) - period_of(first, by)) + 1


def _day(name: str, value: object) -> dt.date:
    day = value
    if isinstance(value, str) and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value, re.ASCII):
        with suppress(ValueError):
            day = dt.date.fromisoformat(value)
    # years within, so that no time zone leads out of those that calendars have
    if not isinstance(day, dt.date) or isinstance(day, dt.datetime) or not 2 <= day.year <= 9998:
        raise refuse(name, value, "a day such as '2024-01-31'")
    return day


def _pattern(written_as: object) -> re.Pattern[str]:
    if written_as is None:
        return re.compile(_ISO, re.ASCII)
    allowed = "text with %Y, and each of %m, %d, %H, %M, %S at most once, such as '%d.%m.%Y'"
    if not isinstance(written_as, str):
        raise refuse("format", written_as, allowed)
    parts = re.split("%(.)", written_as, flags=re.DOTALL)
    words = parts[1::2]
    wrong = [
        word for word in words if word not in _DIRECTIVES or (word != "%" and words.count(word) > 1)
    ]
    if wrong or "Y" not in words or any("%" in part for part in parts[::2]):
        raise refuse("format", written_as, allowed)
    return re.compile(
        "".join(
            _DIRECTIVES[part] if index % 2 else re.escape(part) for index, part in enumerate(parts)
        ),
        re.ASCII,
    )
