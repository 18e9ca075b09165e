"""Group synthetic rows into units, using the counts of units in a release.

This module only post-processes the release.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from leastnoise._domain import Domain, Kind, UnitCount
from leastnoise._estimation import Outcome
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, eq=False)
class UnitCounts:
    """Noisy counts of units by attributes that have one value for each unit.

    Attributes:
        attributes: the attributes of the table; all rows of a unit share their values.
        counts: the counts of units, at least 0, with one axis for each attribute.
        std: the standard errors of the counts, in the same shape.
        shared: the attributes of all tables in the release that count each unit once.
    """

    attributes: tuple[str, ...]
    counts: FloatArray
    std: FloatArray
    shared: tuple[str, ...]

    def scaled(self, factor: float) -> "UnitCounts":
        """Return the counts of units multiplied by a factor."""
        return replace(self, counts=self.counts * factor)


class Positions(NamedTuple):
    """The positions of cell attributes and shared attributes in records.

    Attributes:
        cells: the positions of the attributes whose cells count the units.
        shared: the positions of the attributes that rows of a unit share.
    """

    cells: tuple[int, ...]
    shared: tuple[int, ...]


def count_units(outcome: Outcome, record_attributes: Sequence[str]) -> UnitCounts:
    """Return counts of units from the largest table that counts each unit once.

    Args:
        outcome: the outcome of the release.
        record_attributes: the attributes of the records.

    Raises:
        InputError: no table counts each unit once.
    """
    domain = outcome.plan.domain
    tables = [
        product
        for product in outcome.plan.workload
        if _counts_units_once(product, domain, record_attributes)
    ]
    if not tables:
        raise InputError(
            "Records can be grouped into units only if the release counts units, and this release "
            "does not. Leave out --units, or plan a release with two more tables: marginals = "
            '{ ways = 0 } with count = "units", and a table with count = "units" by attributes '
            "that are listed in of_unit."
        )
    table = max(tables, key=lambda product: (len(product.attributes), product.rows))
    estimate = outcome.estimator().estimate(table)
    answers = np.asarray(estimate.values, dtype=np.float64)
    counts = np.maximum(answers.reshape(table.shape), 0.0)
    total = max(float(answers.sum()), 1.0)
    if counts.any():  # negative counts were set to 0, which makes the sum too large
        counts *= total / counts.sum()
    sizes = [domain.kind(name).size for name in table.attributes]
    shared = dict.fromkeys(chain.from_iterable(product.attributes for product in tables))
    return UnitCounts(
        attributes=table.attributes,
        counts=_with_hidden_cells(counts, sizes),
        std=_with_hidden_cells(estimate.noise_std.reshape(table.shape), sizes),
        shared=tuple(shared),
    )


def _with_hidden_cells(cells: FloatArray, shape: Sequence[int]) -> FloatArray:
    """Return a table of cells padded with zeros for the hidden cells."""
    all_cells = np.zeros(shape)
    all_cells[tuple(slice(size) for size in cells.shape)] = cells
    return all_cells


def _counts_units_once(product: Product, domain: Domain, record_attributes: Sequence[str]) -> bool:
    """Return whether a table counts each unit once, by attributes of the records."""
    measure = domain.measures.get(str(product.measure))
    return (
        isinstance(measure, UnitCount)
        and not measure.attributes
        and set(product.attributes) <= set(record_attributes)
        and product.asks_single_cells
    )


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Synthetic rows that are grouped into units.

    Attributes:
        codes: the codes of the rows, shape (rows, attributes); the rows of a unit are consecutive.
        units: the number of each row's unit.
    """

    codes: IntArray
    units: IntArray


def group_rows(
    codes: IntArray,
    unit_counts: UnitCounts,
    positions: Positions,
    max_rows: int,
    are_impossible: Callable[[IntArray], BoolArray],
    random: np.random.Generator,
) -> Grouping:
    """Group the rows of each cell into units of about equal size.

    The numbers of units in the cells are rounded to integers together, so that the rounded total of
    these numbers does not change. Each unit has at least one row and at most ``max_rows``.

    Args:
        codes: the codes of the rows, shape (rows, attributes).
        unit_counts: the number of units in each cell, scaled to this number of rows.
        positions: the positions of two kinds of attributes: those whose cells count the units, and
            those that all rows of a unit share.
        max_rows: the largest number of rows of a unit.
        are_impossible: returns a mask of the rows that have an impossible combination of codes.
        random: the random generator that decides which rows form a unit.
    """
    sizes = unit_counts.counts.shape
    cells = np.zeros(len(codes), dtype=np.int64)
    for size, attribute in zip(sizes, positions.cells, strict=True):
        cells = cells * size + codes[:, attribute]
    order = random.permutation(len(codes))
    keys = [codes[order, attribute] for attribute in positions.shared]
    order = order[np.lexsort((*keys, cells[order]))]
    rows = np.bincount(cells, minlength=unit_counts.counts.size)
    units = round_within(unit_counts.counts.reshape(-1), -(-rows // max_rows), rows)
    place_in_cell = np.arange(len(codes)) - np.repeat(np.cumsum(rows) - rows, rows)
    unit_in_cell = place_in_cell * np.repeat(units, rows) // np.repeat(rows, rows)
    numbers = np.repeat(np.cumsum(units) - units, rows) + unit_in_cell
    return _copy_shared_values(codes[order], numbers, positions.shared, are_impossible, random)


def round_within(targets: FloatArray, low: IntArray, high: IntArray) -> IntArray:
    """Round targets to integers within bounds, and preserve their rounded total.

    If the bounds do not allow the rounded total, the nearest possible total is used.

    >>> round_within(np.array([1.4, 1.4, 9.0]), np.array([0, 0, 1]), np.array([5, 5, 4])).tolist()
    [4, 4, 4]
    """
    numbers = np.clip(np.floor(targets + 0.5).astype(np.int64), low, high)
    total = int(np.clip(round(float(targets.sum())), low.sum(), high.sum()))
    while missing := total - int(numbers.sum()):
        step = 1 if missing > 0 else -1
        has_room = numbers < high if missing > 0 else numbers > low
        candidates = np.flatnonzero(has_room)
        gains = step * (targets - numbers)[candidates]
        changed = candidates[np.argsort(-gains, kind="stable")[: abs(missing)]]
        numbers[changed] += step
    return numbers


def group_rows_by_size(
    codes: IntArray,
    sizes: IntArray,
    shared_positions: Sequence[int],
    units_by_size: Mapping[int, float],
    are_impossible: Callable[[IntArray], BoolArray],
    random: np.random.Generator,
) -> Grouping:
    """Group rows into units of the sizes that an attribute states.

    The rows whose units have the same size are sorted by the shared attributes and divided into
    units. If the rows of a unit differ in these attributes, all rows of the unit get the values of
    its middle row. Rows are repeated or left out until every unit is complete.

    Args:
        codes: the codes of the rows, shape (rows, attributes).
        sizes: the size of each row's unit, in rows; 0 if the attribute's value is not a number.
        shared_positions: the positions of the attributes that rows of a unit share, including the
            size.
        units_by_size: the number of units of each size. A size without an entry gets as many units
            as its rows can form.
        are_impossible: returns a mask of the rows that have an impossible combination of codes.
        random: the random generator that decides which rows form a unit.
    """
    row_positions = []
    unit_numbers = []
    units = 0
    for size in np.unique(sizes):
        rows = random.permutation(np.flatnonzero(sizes == size))
        rows = rows[np.lexsort(codes[rows][:, list(shared_positions)].T)]
        rows_of_unit = max(int(size), 1)
        needed = max(1, round(units_by_size.get(int(size), len(rows) / rows_of_unit)))
        # Evenly spaced, to repeat or leave out all rows equally often.
        positions = (np.arange(needed * rows_of_unit) + 0.5) * (len(rows) / (needed * rows_of_unit))
        rows = rows[positions.astype(np.int64)]
        row_positions.append(rows)
        unit_numbers.append(units + np.arange(len(rows)) // rows_of_unit)
        units += needed
    return _copy_shared_values(
        codes[np.concatenate(row_positions)],
        np.concatenate(unit_numbers),
        shared_positions,
        are_impossible,
        random,
    )


def _copy_shared_values(
    codes: IntArray,
    units: IntArray,
    shared_positions: Sequence[int],
    are_impossible: Callable[[IntArray], BoolArray],
    random: np.random.Generator,
) -> Grouping:
    """Copy the shared values of each unit's middle row to all rows of the unit.

    A row whose combination becomes impossible is replaced by the middle row. The units are numbered
    in random order.
    """
    number_of_units = int(units[-1]) + 1
    first_rows = np.searchsorted(units, np.arange(number_of_units))
    middle = codes[first_rows + np.bincount(units) // 2][units]
    new_codes = codes.copy()
    for attribute in shared_positions:
        new_codes[:, attribute] = middle[:, attribute]
    wrong = are_impossible(new_codes)
    new_codes[wrong] = middle[wrong]
    new_numbers = random.permutation(number_of_units)[units]
    order = np.argsort(new_numbers, kind="stable")
    return Grouping(new_codes[order], new_numbers[order])


def sizes_of_codes(kind: Kind, max_rows: int) -> IntArray:
    """Map each code of an attribute that states the size of a unit to this size.

    The size is 0 for a code that is not a number of at least 1.

    Args:
        kind: the kind of the attribute.
        max_rows: the largest number of rows of a unit; larger sizes are reduced to it.
    """
    sizes = np.zeros(kind.size, dtype=np.int64)
    for code, label in enumerate(kind.regular_labels):
        text = str(label)
        if text.isdecimal():
            sizes[code] = min(int(text), max_rows)
    return sizes
