"""The level of intervals."""

from leastnoise._check import refuse

LEVEL = 0.95
"""Coverage of intervals, where nothing else is said."""


def checked_level(value: object) -> float:
    """Read the level of intervals."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise refuse("level", value, "a number above 0 and below 1, such as 0.95")
    return float(value)
