"""Exchange synthetic rows between units to match released counts of units.

A release can count the units that have a row in each cell of an attribute. An example is the
households with a child. These counts carry information on how the rows of a unit differ. This
module only post-processes the release.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._domain import Domain, UnitCount
from leastnoise._estimation import Outcome
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._workload import Product, cell_sets

_MOST_PRESENCES = 2**26  # counts of rows by unit and cell in memory (256 MB)
_LEAST_STD = 0.5  # in units; gives a finite weight to a count without noise
_MOST_ROUNDS = 60  # rounds over all rows; counts of a household survey agree after 10 to 30


@dataclass(frozen=True, slots=True, eq=False)
class MemberCounts:
    """Noisy counts of the units that have at least one row in a cell.

    Attributes:
        attributes: the attributes of the table.
        cell_of_code: for each attribute, maps each code to the index of its cell; -1 if the code
            has no cell.
        shape: the number of cells of each attribute.
        targets: the counts, at least 0, shape (cells,).
        std: the standard errors of the counts, above 0, shape (cells,).
    """

    attributes: tuple[str, ...]
    cell_of_code: tuple[IntArray, ...]
    shape: tuple[int, ...]
    targets: FloatArray
    std: FloatArray

    def cells(self, codes: IntArray, record_attributes: Sequence[str]) -> IntArray:
        """Return the flat index of the cell of each row.

        For a row without a cell, the index is the number of cells.
        """
        flat = np.zeros(len(codes), dtype=np.int64)
        is_inside = np.ones(len(codes), dtype=bool)
        for name, mapping, size in zip(self.attributes, self.cell_of_code, self.shape, strict=True):
            along = mapping[codes[:, record_attributes.index(name)]]
            is_inside &= along >= 0
            flat = flat * size + np.maximum(along, 0)
        flat[~is_inside] = self.targets.size
        return flat


def list_member_counts(
    outcome: Outcome, record_attributes: Sequence[str], records_per_row: float
) -> list[MemberCounts]:
    """Return the released tables that count the units with a row in each cell.

    Tables whose cells overlap are left out.

    Args:
        outcome: the outcome of the release.
        record_attributes: the attributes of the records.
        records_per_row: the ratio of the number of records to the number of rows that the release
            counted.
    """
    domain = outcome.plan.domain
    tables = []
    for product in outcome.plan.workload:
        measure = domain.measures.get(str(product.measure))
        if not isinstance(measure, UnitCount) or not measure.attributes:
            continue
        if not set(product.attributes) <= set(record_attributes):
            continue
        mappings = _cells_of_codes(product, domain)
        if mappings is None:
            continue
        estimate = outcome.estimator().estimate(product)
        std = np.asarray(estimate.noise_std, dtype=np.float64).reshape(-1)
        counts = np.maximum(np.asarray(estimate.values).reshape(-1), 0.0)
        table = MemberCounts(
            attributes=product.attributes,
            cell_of_code=mappings,
            shape=product.shape,
            targets=records_per_row * counts,
            std=records_per_row * np.maximum(std, _LEAST_STD),
        )
        tables.append(table)
    return tables


def _cells_of_codes(product: Product, domain: Domain) -> tuple[IntArray, ...] | None:
    """Map codes to cells along each attribute; return None if cells overlap."""
    mappings = []
    for name, query_set in product.along.items():
        kind = domain.kind(name)
        cell_of_code = np.full(kind.size, -1, dtype=np.int64)
        for number, cells in enumerate(cell_sets(name, query_set, kind)):
            codes = list(cells)
            if (cell_of_code[codes] >= 0).any():
                return None
            cell_of_code[codes] = number
        mappings.append(cell_of_code)
    return tuple(mappings)


def exchange_members(
    codes: IntArray,
    units: IntArray,
    record_attributes: Sequence[str],
    shared_positions: Sequence[int],
    tables: Sequence[MemberCounts],
    random: np.random.Generator,
) -> IntArray:
    """Exchange rows between units to bring counts of units near their targets.

    Two rows are exchanged only if their shared values are equal. Tables of rows, and tables of
    units by shared attributes, therefore do not change. An exchange is made if it reduces the sum
    of ((units - target) / standard error)^2 over all cells.

    Args:
        codes: the codes of the rows, shape (rows, attributes).
        units: the number of each row's unit, counted from 0.
        record_attributes: the attributes of the rows.
        shared_positions: the positions of the attributes that rows of a unit share.
        tables: the target counts of units.
        random: the generator that pairs rows.

    Returns:
        The codes of all rows after the exchanges, in the order of ``units``.
    """
    number_of_units = int(units.max()) + 1
    presences = [
        _Presence(table, table.cells(codes, record_attributes), units, number_of_units)
        for table in tables
        if number_of_units * (table.targets.size + 1) <= _MOST_PRESENCES
    ]
    if not presences:
        return codes
    # Rows with equal shared values are in the same stratum.
    strata = np.zeros(len(codes), dtype=np.int64)
    if shared_positions:
        shared_codes = codes[:, list(shared_positions)]
        strata = np.unique(shared_codes, axis=0, return_inverse=True)[1].reshape(-1)
    row_of_place = np.arange(len(codes))
    for _ in range(_MOST_ROUNDS):
        order = np.lexsort((random.random(len(codes)), strata))
        order = order[: len(order) // 2 * 2]
        first = order[::2]
        second = order[1::2]
        is_pair = (strata[first] == strata[second]) & (units[first] != units[second])
        if _exchange_pairs(first[is_pair], second[is_pair], units, presences, row_of_place) == 0:
            break
    return codes[row_of_place]


def _exchange_pairs(
    first: IntArray,
    second: IntArray,
    units: IntArray,
    presences: "Sequence[_Presence]",
    row_of_place: IntArray,
) -> int:
    """Exchange the pairs of rows that improve the counts; return their number."""
    changes = np.zeros(len(first))
    for presence in presences:
        changes += presence.estimate_changes(first, second, units)
    promising = np.flatnonzero(changes < 0)
    exchanged = 0
    for pair in promising[np.argsort(changes[promising], kind="stable")].tolist():
        one = int(first[pair])
        other = int(second[pair])
        change = sum(
            presence.change(one, other, int(units[one]), int(units[other]))
            for presence in presences
        )
        if change >= 0:
            continue
        for presence in presences:
            presence.exchange(one, other, int(units[one]), int(units[other]))
        row_of_place[one], row_of_place[other] = row_of_place[other], row_of_place[one]
        exchanged += 1
    return exchanged


class _Presence:
    """Counts the rows of each unit in each cell, and the units of each cell.

    Args:
        table: the target counts of units.
        cells: the index of each row's cell.
        units: the number of each row's unit.
        number_of_units: the number of units.
    """

    def __init__(
        self, table: MemberCounts, cells: IntArray, units: IntArray, number_of_units: int
    ) -> None:
        self._cells = cells.copy()
        self._weights = np.append(table.std**-2.0, 0.0)  # rows outside all cells have weight 0
        self._targets = np.append(table.targets, 0.0)
        self._rows = np.zeros((number_of_units, table.targets.size + 1), dtype=np.int32)
        np.add.at(self._rows, (units, cells), 1)
        self._units = (self._rows > 0).sum(axis=0).astype(np.float64)

    def estimate_changes(self, first: IntArray, second: IntArray, units: IntArray) -> FloatArray:
        """Return how each exchange, if made first, changes the summed squared errors."""
        cells = self._cells[first]
        other_cells = self._cells[second]
        owner = units[first]
        other = units[second]
        step = (self._rows[other, cells] == 0).astype(float) - (self._rows[owner, cells] == 1)
        other_step = (self._rows[owner, other_cells] == 0).astype(float)
        other_step -= self._rows[other, other_cells] == 1
        change = self._changes_of_squares(cells, step) + self._changes_of_squares(
            other_cells, other_step
        )
        return np.where(cells == other_cells, 0.0, change)

    def _changes_of_squares(self, cells: IntArray, unit_changes: FloatArray) -> FloatArray:
        """Return the change of each cell's squared error if its unit count changes."""
        excess = self._units[cells] - self._targets[cells]
        return np.asarray(self._weights[cells] * unit_changes * (2 * excess + unit_changes))

    def change(self, row: int, other_row: int, unit: int, other_unit: int) -> float:
        """Return the change of the summed squared errors if two rows are exchanged."""
        steps = self._list_unit_changes(row, other_row, unit, other_unit)
        total = 0.0
        for cell, step in steps:
            excess = self._units[cell] - self._targets[cell]
            total += float(self._weights[cell] * step * (2 * excess + step))
        return total

    def exchange(self, row: int, other_row: int, unit: int, other_unit: int) -> None:
        """Exchange two rows between their units."""
        for cell, step in self._list_unit_changes(row, other_row, unit, other_unit):
            self._units[cell] += step
        cell = self._cells[row]
        other_cell = self._cells[other_row]
        self._rows[unit, cell] -= 1
        self._rows[unit, other_cell] += 1
        self._rows[other_unit, other_cell] -= 1
        self._rows[other_unit, cell] += 1
        self._cells[row] = other_cell
        self._cells[other_row] = cell

    def _list_unit_changes(
        self, row: int, other_row: int, unit: int, other_unit: int
    ) -> tuple[tuple[int, int], ...]:
        """Return each cell whose number of units an exchange changes, and the change."""
        cell = int(self._cells[row])
        other_cell = int(self._cells[other_row])
        if cell == other_cell:
            return ()
        rows = self._rows
        step = int(rows[other_unit, cell] == 0) - int(rows[unit, cell] == 1)
        other_step = int(rows[unit, other_cell] == 0) - int(rows[other_unit, other_cell] == 1)
        return ((cell, step), (other_cell, other_step))
