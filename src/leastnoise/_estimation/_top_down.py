"""Whole, non-negative tables that add up, from the total down.

One table has the cells of which all other tables are sums. It is refined attribute by attribute and
level by level. A step splits the groups of one attribute (the counties of a state), and each
parent's cells are divided among its children in two parts.

1. Non-negative least squares. With x the children's cells and u their unbiased estimates,

       minimise    1/2 sum over components c of w(c) |P(c) (x - u)|^2
       subject to  x >= 0, the children add up to the parent's cells, public counts hold,
                   impossible cells are 0

   The components are the sums over all other attributes and the differences along each set of
   them (level by level, where they have levels); P(c) is the projection on a component, and 1/w(c)
   its variance given the parent. Method: alternating direction method of multipliers. A basis of
   the components meets all equations exactly; clipping meets the inequalities.

2. Controlled rounding (Cox 1987). Each cell is rounded down or up such that the children add up to
   the parent's whole cells and public counts hold. The sums of a child's cells that other tables
   ask for are rounded down or up too, as far as these tables nest. The linear program prefers the
   nearest whole number of each cell. The sums over children and the sums over cells are two nested
   families of sets, so its matrix is totally unimodular and its vertices are whole.

A division always exists: impossible cells that do not name the attribute of a step are 0 in the
parent already, and those that do are refused together with public counts of that attribute.

Source: the order of steps and the two parts are TopDown's (Abowd et al., arXiv 2204.08986); ADMM:
    Boyd et al. 2011. Weights by component, with which every table of a step counts by its own
    precision, are of this project.
"""

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product as combine

import numpy as np

from leastnoise._domain import UnitCount
from leastnoise._estimation._least_squares import Estimator
from leastnoise._estimation._non_negative import (
    ConsistentCells,
    finest_table,
    groups_of_cells,
    public_on,
)
from leastnoise._estimation._public_facts import (
    Combination,
    PublicCounts,
    replace_groups,
)
from leastnoise._estimation._top_down_rounding import Sums, round_children, scale_to_sums
from leastnoise._estimation._top_down_steps import Step, list_steps
from leastnoise._families import partition_groups
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._workload import Product

MOST_TOP_DOWN_CELLS = 2**23
"""The most cells of the table of which all others are sums."""
MOST_CELLS_ALONG = 2048
"""The most cells along every attribute but the largest; they have a dense basis."""
MOST_CELLS_BESIDE = 2**16
"""The most cells of all attributes but the largest together; a linear program has two times them."""
_MOST_PUBLIC_TABLES = 2  # three of them that cross need not have whole cells
_MOST_ROUNDS = 300  # of the method of multipliers
_CLIPPED = 0.01  # rows that clipping may still move when the method stops
_CHECK_EVERY = 10  # rounds between two looks at that
_RELAXATION = 1.6  # of the method of multipliers (Boyd et al. 2011, section 3.4.3)
_LARGEST_RATIO = 1e4  # of two weights: variances of components are approximate
_MERGED_SIZE = 512  # cells of axes whose bases are multiplied into one matrix


def make_top_down(
    estimator: Estimator,
    products: Sequence[Product],
    finest: Product,
    public: Sequence[PublicCounts] = (),
    impossible: Sequence[Combination] = (),
) -> ConsistentCells:
    """Return whole non-negative cells from which the answers of all tables follow.

    Args:
        estimator: unbiased estimates with standard errors.
        products: the tables of one quantity.
        finest: the table of which all of them are sums.
        public: counts of rows that hold exactly.
        impossible: combinations of values whose cells are 0.

    Returns:
        Cells of the finest table, at least 0 and whole. Public counts hold, impossible cells are 0,
        and the total is the rounded unbiased one (at least 0) where it is not public.
    """
    cells = np.zeros((), dtype=np.int64)
    for step in list_steps(products, finest, public):
        if step.name is None:
            cells = np.zeros((1, *step.shape), dtype=np.int64)
        elif step.is_first_of_attribute:
            cells = np.expand_dims(cells, step.position)
        parents = np.moveaxis(cells, step.position, 0)
        children = _divide(estimator, step, parents, public, impossible)
        cells = np.moveaxis(children, 0, step.position)
        if step.name is None:
            cells = cells[0]
    return ConsistentCells(finest, np.ascontiguousarray(cells))


def top_down_measures(products: Sequence[Product]) -> list[str | None]:
    """Return the measures that get whole non-negative tables; None means counts.

    Counts of units do not add up, and measures may have values below 0.
    """
    measures: list[str | None] = []
    for measure in dict.fromkeys(product.measure for product in products):
        if measure is None:
            measures.append(measure)
            continue
        declared = products[0].domain.measure(measure)
        if not isinstance(declared, UnitCount) and declared.low_units >= 0:
            measures.append(measure)
    return measures


def check_top_down(
    products: Sequence[Product],
    quantity: str,
    public: Sequence[PublicCounts] = (),
    impossible: Sequence[Combination] = (),
) -> Product:
    """Return the table of which all tables of a quantity are sums.

    Raises:
        InputError: there is none, it is too large, or public facts do not fit or contradict each
            other. What is not refused here can be computed, whatever the data are.
    """
    finest = finest_table(products, only_levels=False)
    if finest is None:
        raise InputError(
            f"top_down = true needs one table that has all tables of {quantity} as sums of its "
            "cells. Ask for that table too, or leave top_down out."
        )
    if not finest.rows <= MOST_TOP_DOWN_CELLS:
        raise refuse(
            f"the table {finest.name!r} under top_down",
            f"{finest.rows} cells",
            f"of at most {MOST_TOP_DOWN_CELLS} cells",
            "Leave top_down out, or ask for coarser tables.",
        )
    *smaller, _ = sorted([*finest.shape, 1])
    limits = (max(smaller, default=1), MOST_CELLS_ALONG), (math.prod(smaller), MOST_CELLS_BESIDE)
    subjects = ("every attribute but the largest", "the product of all attributes but the largest")
    for subject, (cells, most) in zip(subjects, limits, strict=True):
        if not cells <= most:
            raise refuse(
                f"{subject} of {finest.name!r} under top_down",
                f"{cells} cells",
                f"of at most {most} cells",
                "Leave top_down out, or ask for coarser tables.",
            )
    _check_facts(products, finest, public, impossible)
    return finest


def _check_facts(
    products: Sequence[Product],
    finest: Product,
    public: Sequence[PublicCounts],
    impossible: Sequence[Combination],
) -> None:
    """Raise for public facts that no whole tables may be able to keep."""
    if public_on(finest, public) is None:
        raise InputError(
            f"top_down = true needs public counts that are sums of the cells of {finest.name}. "
            "Ask for a finer table, or leave top_down out."
        )
    first, *further = list_steps(products, finest, public)
    if len(public) > _MOST_PUBLIC_TABLES:
        raise refuse(
            "top_down",
            True,
            f"left out with more than {_MOST_PUBLIC_TABLES} tables of public counts",
        )
    if not impossible:
        return
    names_with_counts = {name for table in public for name in table.product.attributes}
    names_of_steps = {step.name for step in further}
    for combination in impossible:
        for name, _ in combination:
            if name in names_of_steps & names_with_counts:
                raise InputError(
                    f"top_down = true cannot keep both impossible cells and public counts of {name}, "
                    "because whole tables with both need not exist. Leave one of them out."
                )
    sums = _list_public_sums(first, public, np.zeros(1, dtype=np.int64))
    possible = _list_possible(first, impossible)
    if possible is None:
        return
    if len(sums) > 1:
        raise InputError(
            "top_down = true can keep one table of public counts with [[impossible]]; got two. "
            "Leave one of them out."
        )
    cells_with_rows = possible.reshape(1, -1)
    for each in sums:
        holds_rows = np.bincount(each.labels[cells_with_rows], minlength=len(each.targets)) > 0
        if (each.targets[~holds_rows] > 0).any():
            raise InputError(
                "Public counts and impossible cells must agree; there are public counts above 0 of "
                "impossible cells. Correct them."
            )
    if not possible.any():
        raise InputError("[[impossible]] must leave some cell possible. Correct it.")


def _divide(
    estimator: Estimator,
    step: Step,
    parents: IntArray,
    public: Sequence[PublicCounts],
    impossible: Sequence[Combination],
) -> IntArray:
    """Return the children's cells, shape (children, *others).

    Args:
        estimator: of all tables.
        step: the split.
        parents: the parents' whole cells, shape (parents, *others).
        public: counts that hold exactly.
        impossible: combinations of values whose cells are 0.
    """
    finest_positions = [len(axis.chain) - 1 for axis in step.others]
    values, _ = step.estimate(estimator, step.query_set, finest_positions)
    width = int(np.prod(step.shape))
    # Children of one parent stand together.
    order = np.argsort(step.parents, kind="stable")
    estimates = values.reshape(-1, width)[order]
    sorted_parents = step.parents[order]
    public_sums = _list_public_sums(step, public, order)
    if step.name is not None:
        labels = sorted_parents[:, None] * width + np.arange(width)
        parent_sums = Sums(labels, parents.reshape(-1).astype(np.float64), ())
        sums = [parent_sums, *public_sums]
    elif public_sums:
        sums = public_sums
    else:
        total = np.maximum(np.rint(estimates.sum()), 0.0).reshape(1)
        public_sums = [
            Sums(np.zeros_like(estimates, dtype=np.int64), total, (0,) * len(step.others))
        ]
        sums = public_sums
    possible = _list_possible(step, impossible)
    if possible is not None:
        possible = possible.reshape(-1, width)[order]
    nearest = _Multipliers(estimator, step, sorted_parents, public_sums).solve(
        estimates, parents.reshape(-1, width), possible
    )
    rounded = round_children(
        scale_to_sums(nearest, sums),
        sorted_parents,
        sums,
        _choose_nested_sums(step, sums),
        possible,
    )
    result = np.empty_like(rounded)
    result[order] = rounded
    return result.reshape(-1, *step.shape)


def _list_public_sums(step: Step, public: Sequence[PublicCounts], order: IntArray) -> list[Sums]:
    """Return the public sums of the children's cells that no parent's cells have."""
    groups = {axis.name: axis.groups for axis in step.others}
    if step.name is not None:
        groups[step.name] = step.groups
    listed = []
    for table in public:
        sums = replace_groups(table.sums, groups)
        if sums is None or (step.name is not None and step.name not in sums.names):
            continue
        along = dict(zip(sums.names, sums.groups, strict=True))
        children = np.zeros(len(order), dtype=np.int64)
        if step.name is not None:
            children = along[step.name][order]
            if len(np.unique(children)) < len(children):
                continue  # the sums are of parents
        sizes = dict(zip(sums.names, sums.counts.shape, strict=True))
        labels = np.zeros((1,) * (1 + len(step.others)), dtype=np.int64)
        for name in sums.names:
            if name == step.name:
                part = children.reshape(-1, *[1] * len(step.others))
            else:
                axis_number = [axis.name for axis in step.others].index(name)
                sides = [1] * (1 + len(step.others))
                sides[1 + axis_number] = -1
                part = along[name].reshape(sides)
            labels = labels * sizes[name] + part
        labels = np.broadcast_to(labels, (len(order), *step.shape)).reshape(len(order), -1)
        positions = []
        for axis in step.others:
            position = 0
            if axis.name in along:
                position = axis.find(along[axis.name]) or 0
            positions.append(position)
        listed.append(Sums(labels, sums.counts.reshape(-1), tuple(positions)))
    return listed


def _list_possible(step: Step, impossible: Sequence[Combination]) -> BoolArray | None:
    """Return which cells of the children may hold rows, shape (children, *others).

    A cell may if a cell of the finest table that it contains may; None if all may.
    """
    if not impossible:
        return None
    finest = step.finest
    shape = tuple(finest.domain.cells(name) for name in finest.attributes)
    groups_along = dict(zip(finest.attributes, groups_of_cells(finest), strict=True))
    step_groups = {axis.name: axis.groups for axis in step.others}
    if step.name is not None:
        step_groups[step.name] = step.groups
    finest_shape = tuple(int(groups_along[name].max()) + 1 for name in finest.attributes)
    possible = np.ones(finest_shape, dtype=np.bool_)
    for combination in impossible:
        codes = dict(combination)
        if not set(codes) <= set(finest.attributes):
            continue
        covered = []
        for name, size in zip(finest.attributes, shape, strict=True):
            is_named = np.ones(size, dtype=np.bool_)
            if name in codes:
                is_named[:] = False
                is_named[list(codes[name])] = True
            outside = np.bincount(groups_along[name], ~is_named) > 0
            covered.append(np.flatnonzero(~outside))
        possible[np.ix_(*covered)] = False
    for axis_number, name in enumerate(finest.attributes):
        _, first = np.unique(groups_along[name], return_index=True)
        if name in step_groups:
            coarser = step_groups[name][first]
        else:
            coarser = np.zeros(len(first), dtype=np.int64)
        possible = _any_in_groups(possible, axis_number, coarser)
    kept = [number for number, name in enumerate(finest.attributes) if name in step_groups]
    possible = possible.reshape([possible.shape[number] for number in kept])
    if step.name is None:
        return possible[None]
    return np.moveaxis(possible, step.position, 0)


def _any_in_groups(flags: BoolArray, axis: int, groups: IntArray) -> BoolArray:
    """Return whether any flag is set in each group along an axis."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.asarray(np.logical_or.reduceat(np.take(flags, order, axis), starts, axis))


class _Multipliers:
    """The method of multipliers for the children of all parents of a step."""

    def __init__(
        self,
        estimator: Estimator,
        step: Step,
        parents: IntArray,
        public_sums: Sequence[Sums],
    ) -> None:
        bases = [axis.basis() for axis in step.others]
        self._matrices = _merge_bases([vectors for vectors, _ in bases])
        grid = np.meshgrid(*[positions for _, positions in bases], indexing="ij")
        positions = [each.reshape(-1) for each in grid]
        self._weights = np.ones(int(np.prod(step.shape)))
        if positions:
            self._weights = component_weights(estimator, step)[tuple(positions)]
        self._parents = parents
        self._has_parents = step.name is not None
        self._starts = np.flatnonzero(np.diff(parents, prepend=-1))
        self._children = np.diff(self._starts, append=len(parents))
        self._fixed: list[tuple[BoolArray, FloatArray]] = []
        for sums in public_sums:
            is_fixed = np.ones(len(self._weights), dtype=np.bool_)
            for at, position in zip(positions, sums.positions, strict=True):
                is_fixed &= at <= position
            sizes = np.bincount(sums.labels.reshape(-1), minlength=len(sums.targets))
            even = (sums.targets / np.maximum(sizes, 1))[sums.labels]
            self._fixed.append((is_fixed, self._turn(even)[:, is_fixed]))

    def solve(
        self, estimates: FloatArray, parent_cells: IntArray, possible: BoolArray | None
    ) -> FloatArray:
        """Return the nearest non-negative cells, shape of the estimates.

        They meet the sums up to a small part of a row.
        """
        turned = self._turn(estimates) * self._weights
        turned_parents = self._turn(parent_cells.astype(np.float64))
        # A component's standard error of more than a row needs no more than its hundredth.
        clipped_at_most = _CLIPPED * max(1.0, float(1 / np.sqrt(self._weights.max())))
        step_size = float(np.sqrt(self._weights.min() * self._weights.max()))
        nearest = np.maximum(estimates, 0.0)
        if possible is not None:
            nearest *= possible
        multipliers = np.zeros_like(estimates)
        for number in range(1, _MOST_ROUNDS + 1):
            pulled = turned + step_size * self._turn(nearest - multipliers)
            met = self._turn_back(
                self._meet_sums(pulled / (self._weights + step_size), turned_parents)
            )
            relaxed = _RELAXATION * met + (1 - _RELAXATION) * nearest
            multipliers += relaxed
            before = nearest
            nearest = np.maximum(multipliers, 0.0)
            if possible is not None:
                nearest *= possible
            multipliers -= nearest
            if number % _CHECK_EVERY == 0:
                clipped = float(np.abs(met - nearest).max())
                moved = float(np.abs(nearest - before).max())
                if max(clipped, moved) <= clipped_at_most:
                    break
        return nearest

    def _meet_sums(self, turned: FloatArray, turned_parents: FloatArray) -> FloatArray:
        """Return the nearest coordinates that have the sums of parents and facts."""
        if self._has_parents:
            sums = np.add.reduceat(turned, self._starts, axis=0)
            moved = (turned_parents - sums) / self._children[:, None]
            turned += np.repeat(moved, self._children, axis=0)
        for is_fixed, values in self._fixed:
            turned[:, is_fixed] = values
        return turned

    def _turn(self, cells: FloatArray) -> FloatArray:
        """Return the coordinates of cells in the basis of components."""
        return _apply_matrices(cells, self._matrices)

    def _turn_back(self, coordinates: FloatArray) -> FloatArray:
        """Return the cells that have some coordinates."""
        return _apply_matrices(coordinates, [matrix.T for matrix in self._matrices])


def _merge_bases(bases: Sequence[FloatArray]) -> list[FloatArray]:
    """Return the bases of axes, small neighbours multiplied into one matrix."""
    merged: list[FloatArray] = []
    for basis in bases:
        if merged and len(merged[-1]) * len(basis) <= _MERGED_SIZE:
            merged[-1] = np.asarray(np.kron(merged[-1], basis), dtype=np.float64)
        else:
            merged.append(basis)
    return merged


def _apply_matrices(cells: FloatArray, matrices: Sequence[FloatArray]) -> FloatArray:
    """Return cells times a matrix along each axis, shape (children, cells)."""
    result = cells
    after = cells.shape[1]
    for matrix in matrices:
        size = len(matrix)
        after //= size
        if after == 1:
            result = result.reshape(-1, size) @ matrix
        else:
            result = matrix.T @ result.reshape(-1, size, after)
    return np.array(result.reshape(cells.shape))


def component_weights(estimator: Estimator, step: Step) -> FloatArray:
    """Return the precision of each component of the children's cells.

    Args:
        estimator: of all tables.
        step: the split.

    Returns:
        One over the mean variance of a component's coordinates given the parent, by positions in
        the chains of the others. All 1 if the estimator does not state variances.
    """
    shape = tuple(len(axis.chain) for axis in step.others)
    traces = np.empty(shape)
    children = np.bincount(step.parents)
    for positions in combine(*map(range, shape)):
        sizes = [
            np.bincount(axis.chain[position][1])
            for axis, position in zip(step.others, positions, strict=True)
        ]
        members = reduce(np.multiply.outer, sizes, np.ones(()))
        _, variances = step.estimate(estimator, step.query_set, positions)
        trace = float((variances / members).sum())
        if step.name is not None:
            _, of_parents = step.estimate(estimator, step.parent_set, positions)
            shares = of_parents / members
            trace -= float((shares.reshape(len(children), -1).sum(axis=1) / children).sum())
        traces[positions] = trace
    dimensions = np.asarray(float(max(len(step.parents) - len(children), 1)))
    for axis_number, axis in enumerate(step.others):
        traces = np.diff(traces, axis=axis_number, prepend=0.0)
        dimensions = np.multiply.outer(dimensions, np.diff(axis.counts, prepend=0))
    variances = traces / np.maximum(dimensions, 1)
    if not np.isfinite(variances).all() or not variances.max() > 0:
        return np.ones(shape)
    return np.asarray(1 / np.maximum(variances, variances.max() / _LARGEST_RATIO))


def _choose_nested_sums(step: Step, sums: Sequence[Sums]) -> list[IntArray]:
    """Return groups of a child's cells, nested, whose sums tables ask for.

    The first ones are those of public counts, which are in ``sums``.
    """
    chosen = [each.positions for each in sums if len(each.positions) == len(step.others)]
    if step.name is not None:
        chosen = [each.positions for each in sums[1:]]
    if len(chosen) > 1:
        return []
    given = len(chosen)
    finest = tuple(len(axis.chain) - 1 for axis in step.others)
    candidates = {(0,) * len(step.others)}
    for table in step.tables:
        positions = _find_positions(step, table)
        if positions is not None:
            candidates.add(positions)
    for positions in sorted(candidates, key=lambda each: (sum(each), each)):
        is_nested = all(
            all(a <= b for a, b in zip(positions, other, strict=True))
            or all(a >= b for a, b in zip(positions, other, strict=True))
            for other in chosen
        )
        if is_nested and positions != finest and positions not in chosen:
            chosen.append(positions)
    groupings = []
    for positions in chosen[given:]:
        labels = np.zeros((1,) * len(step.others), dtype=np.int64)
        for number, (axis, position) in enumerate(zip(step.others, positions, strict=True)):
            sides = [1] * len(step.others)
            sides[number] = -1
            labels = labels * axis.counts[position] + axis.chain[position][1].reshape(sides)
        groupings.append(np.broadcast_to(labels, step.shape).reshape(-1))
    return groupings


def _find_positions(step: Step, table: Product) -> tuple[int, ...] | None:
    """Return the positions of a table's groups in the chains of the others."""
    operators = dict(zip(table.attributes, table.operators, strict=True))
    positions = []
    for axis in step.others:
        position: int | None = 0
        if axis.name in operators:
            groups = partition_groups(operators[axis.name])
            _, first = np.unique(axis.groups, return_index=True)
            position = None if groups is None else axis.find(groups[first])
        if position is None:
            return None
        positions.append(position)
    return tuple(positions)
