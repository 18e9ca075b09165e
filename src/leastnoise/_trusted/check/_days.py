"""The current day."""

from datetime import UTC, date, datetime


def today() -> date:
    """Return the current day in UTC.

    >>> today() >= date(2026, 1, 1)
    True
    """
    return datetime.now(UTC).date()
