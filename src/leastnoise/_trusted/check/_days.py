"""The current day."""

from datetime import UTC, date, datetime


def today() -> date:
    """Return the current day in UTC."""
    return datetime.now(UTC).date()
