"""Estimates with intervals, and shares computed from them."""

from dataclasses import dataclass

from leastnoise._release import AnswerTable

FALSE_CELL_RATE = 0.05
"""Probability that any empty cell of the profile is taken for an occupied one."""


@dataclass(frozen=True, slots=True)
class EstimateInterval:
    """An estimate with the ends of its interval.

    Attributes:
        value: the estimate.
        low: the lower end of the interval.
        high: the upper end of the interval.
    """

    value: float
    low: float
    high: float

    @property
    def margin(self) -> float:
        """The distance from the estimate to the farther end of the interval."""
        return max(self.high - self.value, self.value - self.low)


ZERO = EstimateInterval(0.0, 0.0, 0.0)


def interval_at(table: AnswerTable, position: int) -> EstimateInterval:
    """Return the answer of a table's cell; its interval is cut off at 0."""
    value = max(0.0, float(table.answer.reshape(-1)[position]))
    low = max(0.0, float(table.low.reshape(-1)[position]))
    return EstimateInterval(value, low, max(value, float(table.high.reshape(-1)[position])))


def level_of_two_intervals(level: float) -> float:
    """Return the level of two intervals that together have the level ``level``."""
    return 1 - (1 - level) / 2


def share_interval(part: EstimateInterval, whole: EstimateInterval) -> EstimateInterval:
    """Return the share of a part in a whole, with an interval.

    The interval contains the true share if the intervals of part and whole both contain the true
    numbers.
    """
    if whole.value <= 0:
        return EstimateInterval(0.0, 0.0, 1.0)
    low = part.low / whole.high
    high = part.high / whole.low if whole.low > 0 else 1.0
    return EstimateInterval(min(1.0, part.value / whole.value), min(1.0, low), min(1.0, high))
