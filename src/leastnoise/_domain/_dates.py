"""Read dates and times as an attribute.

The cells are years, quarters, months, weeks, days or hours. The cells may also be weekdays or hours
of the day; each such cell counts the rows of all days together.
"""

import datetime as dt
import re
import zoneinfo
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import Any

from leastnoise._trusted.check import InputError, message, one_of, refuse, whole
from leastnoise._trusted.domain import ORDERED, Kind, Label, Level, level_of_groups

PERIODS = ("year", "quarter", "month", "week", "day", "hour")
FOLDED = ("weekday", "hour_of_day")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EPOCH = dt.date(1970, 1, 1)
_EPOCH_WEEKDAY = 3  # Thursday, counted from Monday = 0
# For each kind of period, the coarser periods that always contain it completely.
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
# Numbers instead of texts: days since 1899-12-30, and parts of a second since 1970 in UTC.
COUNTED = ("excel", "epoch_s", "epoch_ms", "epoch_us")
# From this day on, Excel's serials are days since 1899-12-30. Before this date, they differ,
# because Excel has a 29th of February 1900.
_FIRST_OF_EXCEL = dt.date(1900, 3, 1)
_ENGLISH_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_ZONE = r"(?P<zone>Z|(?P<ahead>[+-])(?P<zh>[0-9]{2}):?(?P<zm>[0-9]{2})?)"
_DIRECTIVES = {
    "Y": r"(?P<Y>[0-9]{4})",
    "y": r"(?P<y>[0-9]{2})",
    "m": r"(?P<m>[0-9]{1,2})",
    "d": r"(?P<d>[0-9]{1,2})",
    "H": r"(?P<H>[0-9]{1,2})",
    "I": r"(?P<I>[0-9]{1,2})",
    "p": r"(?i:(?P<am>am|a\.m\.)|(?P<pm>pm|p\.m\.))",
    "M": r"(?P<M>[0-9]{1,2})",
    "S": r"(?P<S>[0-9]{1,2})",
    "f": r"[0-9]{1,9}",
    "z": _ZONE,
    "%": "%",
}
# Of each of these groups of directives, a format can have only one.
_ALTERNATIVES = (("Y", "y"), ("m", "b", "B"), ("H", "I"))
_ALLOWED = (
    "one of 'excel', 'epoch_s', 'epoch_ms' and 'epoch_us', or text with %Y (or %y, with century), "
    "and each of %m (or %b or %B, names of months), %d, %H (or %I with %p), %M, %S, %f and %z at "
    "most once, such as '%d.%m.%Y' or '%m/%d/%Y %I:%M:%S %p'"
)
_ISO = (
    r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    r"(?:[ T](?P<H>[0-9]{2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,][0-9]+)?)?"
    rf" ?{_ZONE}?)?"
)


@dataclass(frozen=True, slots=True, repr=False)
class Dates(Kind):
    """A column of dates or time stamps between two public days, both included.

    A value is a date, a time stamp or a text. A text is read as ``2024-05-01``, ``2024-05-01
    13:45:00`` or ``2024-05-01T13:45Z``, or by ``format``. A time stamp with a time zone (or a text
    with ``Z`` or ``+02:00``) is converted to the clock of ``zone``. A time stamp without a zone is
    already on that clock. A value that is not a day or a time is outside the domain.

    Args:
        start: the first day: a date, or a text such as ``"2024-01-01"``, which is converted to a
            date.
        end: the last day, not before ``start``.
        by: the cells: ``year``, ``quarter``, ``month``, ``week`` (ISO weeks, from Monday), ``day``
            or ``hour``, for consecutive periods; or ``weekday`` (Monday first) or ``hour_of_day``
            (0 to 23), over all days together.
        zone: the time zone of the cells, an IANA name such as ``"Europe/Berlin"``. None means UTC,
            and is refused for a column whose type has a time zone.
        format: the form of texts, with ``%Y %m %d %H %M %S``, ``%y``, ``%b`` (Jan), ``%B``
            (January), ``%I`` with ``%p``, ``%f`` (a fraction of a second), ``%z`` (an offset), and
            literal letters; or the unit of numbers: ``"excel"`` for serials, or ``"epoch_s"``,
            ``"epoch_ms"`` or ``"epoch_us"`` since 1970 in UTC. None accepts the forms above.
        century: for ``%y``, the first of the hundred years that two digits can mean.
        months: the twelve names of ``%b`` or ``%B``, if they are not English.
        null: how to treat a null: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        outside: how to treat a day before ``start`` or after ``end``: ``"drop"`` the row,
            ``"clip"`` to the nearest day, ``"other"`` or ``"cell"``.
        reading: how values are read.
        levels: public maps from cells to groups. Some levels need no declaration: months have
            quarter and year, days also have weekday, week and month, and hours also have day and
            hour_of_day.

    Raises:
        InputError: a day, period, zone or format cannot be used.

    Edge cases: the first cell has only days from ``start`` on, and the last cell has only days up
    to ``end``, even if the periods are longer. Fractions of a second are ignored. If clocks repeat
    an hour in autumn, both hours are in one cell. Names of months, AM and PM may have any case.
    Excel serials are rounded to thousandths of a second.

    >>> ln.Dates("2024-11-15", "2025-01-31", by="month").labels
    ('2024-11', '2024-12', '2025-01')
    >>> ln.Dates("2024-12-30", "2025-01-06", by="week").labels
    ('2025-W01', '2025-W02')
    """

    start: Any
    end: Any
    by: str = "day"
    _: KW_ONLY
    zone: str | None = None
    format: str | None = None
    century: int | None = None
    months: Any = ()

    def __post_init__(self) -> None:
        first = _day("the first day of dates", self.start)
        last = _day("the last day of dates", self.end)
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
            zoneinfo.ZoneInfo("UTC" if self.zone is None else self.zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise refuse(
                "zone",
                self.zone,
                "an IANA time zone that this machine knows, such as 'Europe/Berlin' or 'UTC'",
            ) from None
        months = _month_names(self.months)
        _check_format(self.format, self.century, months)
        if self.format == "excel" and first < _FIRST_OF_EXCEL:
            raise refuse(
                "the first day of dates with the format 'excel'",
                first,
                f"{_FIRST_OF_EXCEL} or later",
            )
        self._set_fields(
            _count_periods(first, last, self.by), ORDERED, start=first, end=last, months=months
        )
        self._set_levels()

    @property
    def first(self) -> int:
        """The number of the first cell's period, as `period_of` returns it."""
        return 0 if self.by in FOLDED else period_of((self.start - _EPOCH).days * 24, self.by)

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The labels of the periods in order, excluding cells for other values.

        Examples are ``2024``, ``2024-Q1``, ``2024-01``, ``2024-W01``, ``2024-01-31``, ``2024-01-31
        13:00`` and ``Monday``.
        """
        return tuple(_label(self.first + cell, self.by) for cell in range(self.regular))

    @property
    def implied_levels(self) -> tuple[Level, ...]:
        """The levels of coarser periods, such as the quarters of months."""
        return _coarser_periods(self.first, self.regular, self.by)

    def last_day(self, cells: int) -> dt.date:
        """Return the last day of the first ``cells`` periods."""
        after = _first_hour(self.first + cells, self.by) // 24
        end: dt.date = self.end
        return min(end, _EPOCH + dt.timedelta(days=after - 1))

    def until(self, cells: int) -> "Dates":
        """Return the attribute with only its first ``cells`` periods, without levels.

        Args:
            cells: the number of periods.
        """
        return replace(self, end=self.last_day(cells), levels=())

    def reaching(self, cells: int) -> "Dates":
        """Return the attribute with ``cells`` periods, even beyond its last day.

        The periods begin on the first day. The result has no declared levels.

        Args:
            cells: the number of periods.
        """
        return replace(
            self,
            end=_EPOCH + dt.timedelta(days=_first_hour(self.first + cells, self.by) // 24 - 1),
            levels=(),
        )

    def ended_periods(self, day: dt.date) -> int:
        """Return how many of the periods have ended before a day."""
        return sum(self.last_day(cells) < day for cells in range(1, self.regular + 1))

    @property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression that matches the texts of dates or times."""
        return _pattern(self.format, self.months)

    @property
    def counted_in(self) -> str | None:
        """The unit of the numbers that are read as times; None if times are texts."""
        return self.format if self.format in COUNTED else None


def period_of(hour: Any, by: str) -> Any:
    """Return the number of the period of an hour; hours are counted since 1970.

    Args:
        hour: hours since 1970-01-01 00:00, as a number or an array. For years, quarters and months,
            only a number is allowed.
        by: one of `PERIODS` and `FOLDED`.
    """
    day = hour // 24
    if by in ("week", "weekday"):
        if by == "week":
            return (day + _EPOCH_WEEKDAY) // 7
        return (day + _EPOCH_WEEKDAY) % 7
    if by in ("hour", "hour_of_day"):
        return hour if by == "hour" else hour % 24
    if by == "day":
        return day
    date = _EPOCH + dt.timedelta(days=int(day))
    months = (date.year - 1970) * 12 + date.month - 1
    return {"year": date.year - 1970, "quarter": months // 3, "month": months}[by]


@lru_cache(maxsize=256)
def _coarser_periods(first: int, count: int, by: str) -> tuple[Level, ...]:
    """Return levels that group consecutive periods into coarser periods."""
    hours = [_first_hour(first + cell, by) for cell in range(count)]
    levels = []
    for coarser in _COARSER[by]:
        labels = [_label(period_of(hour, coarser), coarser) for hour in hours]
        levels.append(level_of_groups(coarser, labels))
    return tuple(levels)


def _first_hour(period: int, by: str) -> int:
    """Return the first hour, since 1970, of a period; the inverse of `period_of`."""
    if by in ("year", "quarter", "month"):
        months = period * {"year": 12, "quarter": 3, "month": 1}[by]
        return (dt.date(1970 + months // 12, months % 12 + 1, 1) - _EPOCH).days * 24
    return {
        "week": (period * 7 - _EPOCH_WEEKDAY) * 24,
        "day": period * 24,
        "hour": period,
        "weekday": (period - _EPOCH_WEEKDAY) * 24,
    }.get(by, period)


def _label(period: int, by: str) -> Label:
    """Return the label of a period, such as ``2024-Q1``."""
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


def _count_periods(start: dt.date, end: dt.date, by: str) -> int:
    """Return the number of periods from a first day to a last day."""
    if by in FOLDED:
        return 7 if by == "weekday" else 24
    first, last = ((day - _EPOCH).days * 24 for day in (start, end))
    return int(period_of(last + 23, by) - period_of(first, by)) + 1


def _day(name: str, value: object) -> dt.date:
    """Convert a date, or the text of a date, to a date; check its year."""
    day = value
    if isinstance(value, str) and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value, re.ASCII):
        with suppress(ValueError):
            day = dt.date.fromisoformat(value)
    # Keep a distance from the first and last year, so that time zones never lead beyond the
    # calendar.
    if not isinstance(day, dt.date) or isinstance(day, dt.datetime) or not 2 <= day.year <= 9998:
        raise refuse(name, value, "a day such as '2024-01-31'")
    return day


def _month_names(months: object) -> tuple[str, ...]:
    """Return the names of months; raise unless there are none or twelve."""
    if isinstance(months, (list, tuple)):
        names = tuple(months)
    else:
        names = (months,)
    if not names:
        return ()
    texts = {name.lower() for name in names if isinstance(name, str) and name.strip()}
    if len(names) != 12 or len(texts) != 12:
        raise refuse(
            "months",
            months,
            "the twelve names of months, from January on; all must differ from each other",
        )
    return names


def _check_format(written_as: object, century: object, months: tuple[str, ...]) -> None:
    """Raise for a time format that is not supported or lacks a setting.

    A format with ``%y`` needs ``century``, for example.
    """
    if written_as is None or written_as in COUNTED:
        directives: list[str] = []
    elif isinstance(written_as, str):
        directives = _directives_of(written_as)
    else:
        raise refuse("format", written_as, _ALLOWED)
    if ("I" in directives) != ("p" in directives):
        raise refuse("format", written_as, "%I and %p together, the hour of twelve and AM or PM")
    if "y" in directives and century is None:
        raise InputError(
            "A format with %y must come with century, the first of the hundred years that two "
            "digits can mean. Write century = 2000 for 2000 to 2099, or century = 1950 for 1950 to "
            "2049."
        )
    if century is not None and "y" not in directives:
        raise refuse("century", century, "set only if format contains %y", "Leave it out.")
    if century is not None:
        whole("century", century, 1, 9900)
    if months and not {"b", "B"} & {*directives}:
        raise InputError(
            "months must use only %b or %B in format. Write for example format = '%d. %B %Y'."
        )


def _directives_of(written_as: str) -> list[str]:
    """Return the directives of a time format, such as ``Y``; raise if unknown."""
    pieces = re.split("%(.)", written_as, flags=re.DOTALL)
    directives = pieces[1::2]
    allowed = {*_DIRECTIVES, "b", "B"}
    is_known = all(
        word in allowed and (word == "%" or directives.count(word) == 1) for word in directives
    )
    one_of_each = all(
        sum(word in directives for word in alternatives) <= 1 for alternatives in _ALTERNATIVES
    )
    has_year = "Y" in directives or "y" in directives
    if not (is_known and one_of_each and has_year) or any("%" in piece for piece in pieces[::2]):
        raise refuse("format", written_as, _ALLOWED)
    return directives


def _pattern(written_as: str | None, months: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a time format to a regular expression.

    A format for numbers, such as ``excel``, has the pattern of ISO texts.
    """
    if written_as is None or written_as in COUNTED:
        return re.compile(_ISO, re.ASCII)
    split_format = re.split("%(.)", written_as, flags=re.DOTALL)
    short_names = tuple(name[:3] for name in _ENGLISH_MONTHS)
    directives = {
        **_DIRECTIVES,
        "b": _pattern_of_names(months or short_names),
        "B": _pattern_of_names(months or _ENGLISH_MONTHS),
    }
    patterns = [
        directives[piece] if index % 2 else re.escape(piece)
        for index, piece in enumerate(split_format)
    ]
    return re.compile("".join(patterns), re.ASCII)


def _pattern_of_names(names: tuple[str, ...]) -> str:
    """Return a regular expression with one group for each name of a month.

    The groups are ``month1`` to ``month12``.
    """
    spelled = []
    for name in names:
        forms = dict.fromkeys((name, name.lower(), name.upper()))
        spelled.append("|".join(map(re.escape, forms)))
    groups = [f"(?P<month{number}>{forms})" for number, forms in enumerate(spelled, 1)]
    return f"(?i:{'|'.join(groups)})"
