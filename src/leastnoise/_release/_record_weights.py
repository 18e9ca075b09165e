"""Compute weights of synthetic rows that agree with released sums of weights.

This module only post-processes the release.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._domain import Measure
from leastnoise._estimation import Outcome
from leastnoise._trusted.check import InputError, one_of
from leastnoise._trusted.check.arrays import FloatArray, IntArray

_MOST_RAKING_ROUNDS = 50  # rounds of raking; two tables of a survey agree within 1% after about ten


@dataclass(frozen=True, slots=True, eq=False)
class WeightTotals:
    """The released sums of weights in the cells of one table.

    Attributes:
        positions: the positions of the table's attributes among the attributes of the records.
        sums: the sums in units of the measure, at least 0, with one axis for each attribute.
    """

    positions: tuple[int, ...]
    sums: FloatArray

    def cells(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the positions of the rows with a cell in the table, and their cells."""
        inside = np.ones(len(codes), dtype=np.bool_)
        cells = np.zeros(len(codes), dtype=np.int64)
        for size, position in zip(self.sums.shape, self.positions, strict=True):
            inside &= codes[:, position] < size
            cells = cells * size + codes[:, position]
        rows = np.flatnonzero(inside)
        return rows, cells[rows]


def list_weight_totals(
    outcome: Outcome, record_attributes: Sequence[str], weight: str
) -> list[WeightTotals]:
    """Return the released tables with sums of a weight, smallest first.

    Args:
        outcome: the outcome of the release.
        record_attributes: the attributes of the records.
        weight: the name of the measure.

    Raises:
        InputError: there is no such measure; it may be negative; or no table has sums of it by
            cells.
    """
    domain = outcome.plan.domain
    weights = [
        name
        for name, measure in domain.measures.items()
        if type(measure) is Measure and measure.low >= 0
    ]
    one_of("weight", weight, weights)
    tables = [
        product
        for product in outcome.plan.workload
        if product.measure == weight
        and set(product.attributes) <= set(record_attributes)
        and product.asks_single_cells
    ]
    if not tables:
        raise InputError(
            f"Records can only have weights if the release has sums of {weight} by cells; this "
            f"release has none. Make a release with tables that have weighted_by = {weight!r}."
        )
    estimator = outcome.estimator()
    totals = []
    for product in sorted(tables, key=lambda table: table.rows):
        sums = np.asarray(estimator.estimate(product).values, dtype=np.float64)
        positions = tuple(record_attributes.index(name) for name in product.attributes)
        totals.append(WeightTotals(positions, np.maximum(sums.reshape(product.shape), 0.0)))
    return totals


def rake_weights(
    codes: IntArray,
    totals: Sequence[WeightTotals],
    measure: Measure,
    records_per_row: float,
    random: np.random.Generator,
) -> FloatArray:
    """Return a whole weight for each row, in units of the measure.

    The weights start equal. For one table after another, the weights in each cell are then
    multiplied so that they add up to the released sum, and clipped to the bounds of the measure.
    Finally each weight is rounded up or down at random, which keeps the expected sums.

    Args:
        codes: the codes of the rows, shape (rows, attributes).
        totals: the released sums.
        measure: the weight.
        records_per_row: the ratio of the number of rows to the number that the release counted.
        random: the generator for the rounding.

    Source: iterative proportional fitting, Deming and Stephan 1940.
    """
    low = float(measure.low_units)
    high = float(measure.high_units)
    start = float(totals[0].sums.sum()) * records_per_row / len(codes)
    weights = np.full(len(codes), np.clip(start, low, high))
    for _ in range(_MOST_RAKING_ROUNDS):
        for table in totals:
            rows, cells = table.cells(codes)
            targets = table.sums.reshape(-1) * records_per_row
            present = np.bincount(cells, weights[rows], minlength=len(targets))
            factors = np.divide(targets, present, out=np.ones_like(present), where=present > 0)
            weights[rows] = np.clip(weights[rows] * factors[cells], low, high)
    return np.asarray(np.floor(weights + random.random(len(weights))))
