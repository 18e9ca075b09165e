"""What the blocks of a plan tell of counts and of the sums of a measure, where some measure distances from both ends of its values.

Let R = high - low, m the middle of the two, x and y noise of one variance. A query on both ends gives

    a = sum of (v - low) + x,    b = sum of (high - v) + y,    so that
    (a + b) / R = count + (x + y) / R,    (a - b) / 2 = sum of (v - m) + (x - y) / 2.

The noise of the two is uncorrelated, and counts and *centred sums*, of v - m, are two unknown tables. So least squares falls apart: counts
are estimated from what tells of counts, centred sums from what tells of these, as if they had been measured apart; the sum of v is the
centred one plus m times the count, and the variances of both parts add up. Proved in docs/mathematics.md, section 8.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastnoise._accuracy._blocks import block_variance
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Measure
from leastnoise._measurements import Block, Measurements

Quantity = str | None
"""Counts (None); or of a measure its sums, centred where distances from both ends are measured."""
_WHOLE = (1.0,)


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What a block tells of a quantity."""

    place: int
    block: Block
    variance: float
    shares: tuple[float, ...] = _WHOLE

    def values(self, measured: Any) -> FloatArray:
        """Answers about the quantity, shape (rows, ...)."""
        if self.shares == _WHOLE:
            return np.asarray(measured)
        parts = zip(self.shares, np.split(np.asarray(measured, dtype=np.float64), len(self.shares)), strict=True)
        return np.asarray(sum(share * part for share, part in parts))


def told(plan: Measurements, quantity: Quantity) -> list[Told]:
    """What every block that tells something of a quantity tells of it, in the order of the plan."""
    if quantity is None:
        return [_of(one, (1 / _apart(plan, one.block),) * 2) if one.block.ends else one for one in _blocks(plan, None)]
    return [_of(one, (0.5, -0.5)) if one.block.ends else one for one in _blocks(plan, quantity)]


def sums_told(plan: Measurements, measure: Quantity) -> list[Told]:
    """What every block tells of the counts or of the sums of a measure by itself: sums are not centred."""
    if measure is None:
        return told(plan, None)
    bounds = plan.domain.measure(measure)
    apart = bounds.high_units - bounds.low_units
    both = (bounds.high_units / apart, bounds.low_units / apart)
    return [_of(one, both) if one.block.ends else one for one in _blocks(plan, measure)]


def middles(plan: Measurements, measure: Quantity) -> Mapping[Quantity, float]:
    """Of which quantities the counts or the sums of a measure are made, and how often each counts."""
    if measure is None or not any(block.ends and block.measure == measure for block in plan.blocks):
        return {measure: 1.0}
    return {measure: 1.0, None: middle(plan.domain.measure(measure))}


def middle(measure: Measure) -> float:
    """The middle of a measure's bounds, in units."""
    return (measure.low_units + measure.high_units) / 2


def attributes_told(plan: Measurements, measure: Quantity) -> frozenset[str]:
    """The attributes by which counts, or sums of a measure, are measured."""
    return frozenset(name for one in _blocks(plan, measure) for name in one.block.attributes)


def _blocks(plan: Measurements, quantity: Quantity) -> Sequence[Told]:
    """The blocks that tell something of a quantity, as they are."""
    plan.limits(quantity)  # refuses sums that are not of the same values
    variances: dict[int, float] = {}
    for group in plan.alike:
        if group[0].measure == quantity or (quantity is None and group[0].ends):
            variances.update(dict.fromkeys(map(id, group), block_variance(plan, group[0])))
    found = [Told(place, block, variances[id(block)]) for place, block in enumerate(plan.blocks) if id(block) in variances]
    if quantity is not None and len({one.block.ends for one in found}) > 1:
        raise InputError(
            f"Sums of {quantity} by themselves and distances from both ends of its values are not estimated together. "
            "Measure all of them in one of the two ways."
        )
    return found


def _apart(plan: Measurements, block: Block) -> float:
    return float(plan.largest_values(block)[0])


def _of(both: Told, shares: tuple[float, ...]) -> Told:
    """What a block on both ends tells, with its answers added up by these shares."""
    return Told(both.place, replace(both.block, ends=False), both.variance * sum(share**2 for share in shares), shares)
