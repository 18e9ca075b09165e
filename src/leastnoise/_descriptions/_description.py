"""What another tool's description of a table says, in the words of a spec; what it does not say is left blank, never guessed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from leastnoise._check import exact

BLANK = "FILL IN"


MOST_VALUES = 1000  # of whole numbers that get a cell each; more are drafted as bins


_BINS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A described table."""

    tool: str
    attributes: Mapping[str, Mapping[str, Any]]
    measures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    max_rows: int | str = BLANK
    notes: tuple[str, ...] = ()


def whole_numbers(low: Any, high: Any) -> dict[str, Any]:
    """The domain of whole numbers between bounds, or blanks."""
    ends = _ends(low, high)
    if ends is None:
        return {"integers": [BLANK, BLANK]}
    first, last = ends
    if last - first < MOST_VALUES and first.denominator == last.denominator == 1:
        return {"integers": [int(first), int(last)], "outside": "clip"}
    return numbers(low, high)


def numbers(low: Any, high: Any) -> dict[str, Any]:
    """The domain of numbers between bounds, or blanks; values outside go to the nearest bin, as the tools clamp them."""
    ends = _ends(low, high)
    if ends is None:
        return {"bins": {"low": BLANK, "high": BLANK, "count": _BINS}}
    return {"bins": {"low": _plain(ends[0]), "high": _plain(ends[1]), "count": _BINS}, "outside": "clip"}


def clipped(low: Any, high: Any) -> dict[str, Any] | None:
    """A measure between bounds, in the coarsest unit of which both are multiples; None where there are none."""
    ends = _ends(low, high)
    if ends is None:
        return None
    unit = Fraction(1, math.lcm(*(end.denominator for end in ends)))
    return {"clip": [_plain(end) for end in ends], **({} if unit == 1 else {"unit": _plain(unit)})}


def _ends(low: Any, high: Any) -> tuple[Fraction, Fraction] | None:
    if low is None or high is None:
        return None
    first, last = exact("a lower bound", low), exact("an upper bound", high)
    return (first, last) if first < last else None


def _plain(value: Fraction) -> int | str:
    if value.denominator == 1:
        return int(value)
    text = f"{float(value):.15g}"
    return text if Fraction(text) == value else str(value)
