"""Controlled rounding of children's cells to their parents' integers.

A linear program rounds cells down or up such that children add up to their parent and other sums
hold. The sums over children and the sums over the cells of a child are two nested families of sets.
Therefore the matrix of the program is totally unimodular, and its vertices have integer coordinates
(Cox 1987). A parent with very many cells is divided twice: first among groups of its children, then
among the children of each group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray

_WHOLE_TOLERANCE = 1e-6  # a cell or sum this near to a whole number counts as whole
_LEAST_CELLS = 2**12  # the least cells of one linear program; several small parents share a program
# Maximum number of cells of one linear program, which take seconds on one core of 2026.
_MOST_CELLS = 2**17
_SCALING_ROUNDS = 20  # the number of rounds that scale cells to several families of sums


@dataclass(frozen=True, slots=True, eq=False)
class SumConstraints:
    """Disjoint sets of a step's cells, and the sum that each set must have.

    Attributes:
        labels: the sum that contains each cell, shape (children, cells of others).
        targets: the value of each sum.
        positions: for each other attribute, a position in its chain: a child's cells belong to the
            groups at this position. The positions are used if each sum belongs to one child.
    """

    labels: IntArray
    targets: FloatArray
    positions: tuple[int, ...]

    def for_children(self, children: slice) -> "SumConstraints":
        """Return the constraints of a slice of the children."""
        return SumConstraints(self.labels[children], self.targets, self.positions)

    def for_groups_of_children(self, group_starts: IntArray) -> "SumConstraints":
        """Return the constraints on sums of cells over groups of children."""
        _, first, columns = np.unique(self.labels[0], return_index=True, return_inverse=True)
        by_child = self.targets[self.labels[:, first]]
        targets = np.add.reduceat(by_child, group_starts, axis=0)
        labels = np.arange(len(group_starts))[:, None] * len(first) + columns
        return SumConstraints(labels, targets.reshape(-1), self.positions)

    def scale(self, cells: FloatArray) -> FloatArray:
        """Scale cells such that they meet this family of sums."""
        sums = np.bincount(self.labels.reshape(-1), cells.reshape(-1), len(self.targets))
        factors = np.divide(self.targets, sums, out=np.zeros_like(sums), where=sums > 0)
        return cells * factors[self.labels]


def scale_to_sums(cells: FloatArray, sums: Sequence[SumConstraints]) -> FloatArray:
    """Scale cells to all required sums; approximate for several families."""
    for _ in range(_SCALING_ROUNDS if len(sums) > 1 else 1):
        for family in sums:
            cells = family.scale(cells)
    return cells


def round_children(
    cells: FloatArray,
    parents: IntArray,
    sums: Sequence[SumConstraints],
    groupings: Sequence[IntArray],
    possible: BoolArray | None,
) -> IntArray:
    """Round cells to nearby integers that meet the sums.

    Args:
        cells: the cells, at least 0, shape (children, cells of a child); children of one parent are
            adjacent.
        parents: the parent of every child.
        sums: the sums of the parents, if there are parents, and then other sums.
        groupings: nested groups of a child's cells; the sum of each group is rounded down or up.
        possible: the cells that may be above 0; None for all.
    """
    width = cells.shape[1]
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    stops = np.append(starts[1:], len(parents))
    rounded = np.empty(cells.shape, dtype=np.int64)
    start = 0
    for number, stop in enumerate(stops):
        is_last = number + 1 == len(stops)
        next_size = 0 if is_last else (stops[number + 1] - start) * width
        if (stop - start) * width < _LEAST_CELLS and not is_last and next_size <= _MOST_CELLS:
            continue
        rows = slice(start, stop)
        start = stop
        part = None if possible is None else possible[rows]
        rounded[rows] = _round_rows(
            cells[rows], [family.for_children(rows) for family in sums], groupings, part
        )
    return rounded


def _round_rows(
    cells: FloatArray,
    sums: Sequence[SumConstraints],
    groupings: Sequence[IntArray],
    possible: BoolArray | None,
) -> IntArray:
    """Round cells to whole numbers that meet the sums.

    A large problem is first solved for groups of children, then for the children of each group.
    """
    children, width = cells.shape
    if cells.size > _MOST_CELLS and children > 2:
        return _round_in_groups(cells, sums, groupings, possible)
    labels_and_targets = [(family.labels.reshape(-1), family.targets) for family in sums]
    soft_labels = []
    for grouping in groupings:
        child_numbers = np.arange(children)[:, None] * (int(grouping.max()) + 1)
        soft_labels.append((child_numbers + grouping).reshape(-1))
    values = cells.reshape(-1)
    whole = _round_adjacent(values, labels_and_targets, soft_labels)
    if whole is None:
        allowed = None if possible is None else possible.reshape(-1)
        whole = _round_least_distance(values, labels_and_targets, allowed)
    return whole.reshape(children, width)


def _round_in_groups(
    cells: FloatArray,
    sums: Sequence[SumConstraints],
    groupings: Sequence[IntArray],
    possible: BoolArray | None,
) -> IntArray:
    """Round cells first in groups of children, then within each group."""
    children, width = cells.shape
    groups = int(np.clip(-(-cells.size // _MOST_CELLS), 2, max(_MOST_CELLS // width, 2)))
    starts = np.arange(0, children, -(-children // groups))
    parent_sums, *child_sums = sums
    group_sums = [parent_sums.for_children(slice(0, len(starts)))]
    group_sums += [family.for_groups_of_children(starts) for family in child_sums]
    group_possible = None
    if possible is not None:
        group_possible = np.logical_or.reduceat(possible, starts, axis=0)
    group_cells = _round_rows(
        np.add.reduceat(cells, starts, axis=0), group_sums, groupings, group_possible
    )
    rounded = np.empty(cells.shape, dtype=np.int64)
    for start, stop, group in zip(starts, [*starts[1:], children], group_cells, strict=True):
        rows = slice(start, stop)
        labels = np.broadcast_to(np.arange(width), (stop - start, width))
        family = [SumConstraints(labels, group.astype(np.float64), ())]
        family += [each.for_children(rows) for each in child_sums]
        part = None if possible is None else possible[rows]
        rounded[rows] = _round_rows(scale_to_sums(cells[rows], family), family, groupings, part)
    return rounded


def _round_adjacent(
    cells: FloatArray, sums: Sequence[tuple[IntArray, FloatArray]], soft_labels: Sequence[IntArray]
) -> IntArray | None:
    """Round cells down or up such that the sums hold, or return None.

    The result is None if no such rounding exists.

    Args:
        cells: the cells, at least 0.
        sums: the sum that contains each cell, and the values of all sums.
        soft_labels: for each further family, the sum that contains each cell. These sums are
            rounded down or up.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    floors = np.floor(cells + _WHOLE_TOLERANCE)
    fractions = cells - floors
    is_free = fractions > _WHOLE_TOLERANCE
    matrix, low, high = _sum_constraints(cells, floors, sums, soft_labels, is_free)
    if not is_free.any():
        if (low <= 0).all() and (high >= 0).all():
            return floors.astype(np.int64)
        return None
    solution = milp(
        1 - 2 * fractions[is_free],
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, low, high),
    )
    if solution.x is None:
        return None
    raised = np.rint(solution.x)
    if np.abs(solution.x - raised).max() > _WHOLE_TOLERANCE:
        return None
    floors[is_free] += raised
    return floors.astype(np.int64)


def _sum_constraints(
    cells: FloatArray,
    floors: FloatArray,
    sums: Sequence[tuple[IntArray, FloatArray]],
    soft_labels: Sequence[IntArray],
    is_free: BoolArray,
) -> tuple[Any, FloatArray, FloatArray]:
    """Return matrix and bounds of the sums, for cells that may be rounded up.

    Args:
        cells: the cells, at least 0.
        floors: the cells rounded down.
        sums: the sum that contains each cell, and the values of all sums.
        soft_labels: for each further family, the sum that contains each cell.
        is_free: which cells may be rounded up.

    Returns:
        A sparse matrix of shape (sums, free cells). The result also has, for each sum, the least
        and the largest number of its free cells that may be rounded up.
    """
    from scipy.sparse import coo_array, vstack

    free_cells = np.flatnonzero(is_free)
    blocks = []
    lows: list[FloatArray] = []
    highs: list[FloatArray] = []
    for number, labels in enumerate([labels for labels, _ in sums] + [*soft_labels]):
        present, positions = np.unique(labels, return_inverse=True)
        floor_sums = np.bincount(positions, floors)
        if number < len(sums):
            low = high = sums[number][1][present] - floor_sums
        else:
            cell_sums = np.bincount(positions, cells)
            low = np.floor(cell_sums + _WHOLE_TOLERANCE) - floor_sums
            high = np.ceil(cell_sums - _WHOLE_TOLERANCE) - floor_sums
        matrix = coo_array(
            (np.ones(len(free_cells)), (positions[free_cells], np.arange(len(free_cells)))),
            shape=(len(present), len(free_cells)),
        )
        blocks.append(matrix)
        lows.append(low)
        highs.append(high)
    return vstack(blocks, format="csr"), np.concatenate(lows), np.concatenate(highs)


def _round_least_distance(
    cells: FloatArray,
    sums: Sequence[tuple[IntArray, FloatArray]],
    possible: BoolArray | None,
) -> IntArray:
    """Return the nearest integer cells that meet the sums."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, hstack, vstack

    size = len(cells)
    floors = np.floor(cells + _WHOLE_TOLERANCE)
    fractions = np.maximum(cells - floors, 0.0)
    allowed = np.ones(size) if possible is None else possible.astype(np.float64)
    blocks = []
    targets = []
    for labels, values in sums:
        present, positions = np.unique(labels, return_inverse=True)
        blocks.append(coo_array((np.ones(size), (positions, np.arange(size)))))
        targets.append(values[present] - np.bincount(positions, floors))
    incidence = vstack(blocks, format="csr")
    # A cell moves to the whole number above, farther up, or down.
    costs = np.concatenate([1 - 2 * fractions, np.ones(size), np.ones(size)])
    most = np.concatenate([allowed, np.where(allowed > 0, np.inf, 0.0), floors])
    target = np.concatenate(targets)
    solution = milp(
        costs,
        integrality=np.ones(3 * size),
        bounds=Bounds(0.0, most),
        constraints=LinearConstraint(
            hstack([incidence, incidence, -incidence], format="csr"), target, target
        ),
    )
    if solution.x is None:
        raise InternalError("cells cannot be rounded within public sums; please report this.")
    up, more, down = np.rint(solution.x).reshape(3, size)
    return np.asarray(floors + up + more - down, dtype=np.int64)
