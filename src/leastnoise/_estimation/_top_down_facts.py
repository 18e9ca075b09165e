"""Public facts about the cells of a step: public sums and impossible cells."""

from collections.abc import Mapping, Sequence

import numpy as np

from leastnoise._estimation._non_negative import groups_of_cells
from leastnoise._estimation._public_facts import (
    Combination,
    KnownSums,
    PublicCounts,
    replace_groups,
)
from leastnoise._estimation._top_down_rounding import SumConstraints
from leastnoise._estimation._top_down_steps import SplitStep
from leastnoise._trusted.check import InternalError
from leastnoise._trusted.check.arrays import BoolArray, IntArray
from leastnoise._workload import Product


def list_public_sums(
    step: SplitStep, public: Sequence[PublicCounts], order: IntArray
) -> list[SumConstraints]:
    """Return public sums of the children that parents' sums do not imply.

    Args:
        step: the split.
        public: the tables of public counts.
        order: the children in the order of the result.
    """
    families = []
    for table in public:
        sums = replace_groups(table.sums, step.groups_along)
        if sums is None:
            continue
        along = dict(zip(sums.names, sums.groups, strict=True))
        children = np.zeros(len(order), dtype=np.int64)
        if step.name is not None:
            if step.name not in along:
                continue
            children = along[step.name][order]
            if len(np.unique(children)) < len(children):
                continue  # the parents determine these sums
        positions = tuple(
            _require_position(axis.find(along[axis.name])) if axis.name in along else 0
            for axis in step.others
        )
        labels = _label_cells(step, sums, along, children)
        families.append(SumConstraints(labels, sums.counts.reshape(-1), positions))
    return families


def _require_position(position: int | None) -> int:
    """Return a chain position, or raise InternalError if it is None."""
    if position is None:
        raise InternalError("public counts are not of groups of a step; please report this.")
    return position


def _label_cells(
    step: SplitStep, sums: KnownSums, groups_along: Mapping[str, IntArray], children: IntArray
) -> IntArray:
    """Return the index of the public sum of each cell, (children, other cells)."""
    sizes = dict(zip(sums.names, sums.counts.shape, strict=True))
    axes = [step.name, *(axis.name for axis in step.others)]
    labels = np.zeros((1,) * len(axes), dtype=np.int64)
    for name in sums.names:
        groups = children if name == step.name else groups_along[name]
        sides = [1] * len(axes)
        sides[axes.index(name)] = -1
        labels = labels * sizes[name] + groups.reshape(sides)
    return np.broadcast_to(labels, (len(children), *step.shape)).reshape(len(children), -1)


def list_possible_cells(step: SplitStep, impossible: Sequence[Combination]) -> BoolArray | None:
    """Return whether each cell of the children may contain rows; None if all may.

    A cell may contain rows if it contains a cell of the finest table that may contain rows.
    """
    if not impossible:
        return None
    finest = step.finest
    possible = _possible_cells_of_table(finest, impossible)
    for axis, (name, groups) in enumerate(
        zip(finest.attributes, groups_of_cells(finest), strict=True)
    ):
        coarser = np.zeros(len(groups), dtype=np.int64)
        if name in step.groups_along:
            coarser = step.groups_along[name]
        _, first = np.unique(groups, return_index=True)
        possible = _any_in_groups(possible, axis, coarser[first])
    sizes = [
        size
        for name, size in zip(finest.attributes, possible.shape, strict=True)
        if name in step.groups_along
    ]
    possible = possible.reshape(sizes)
    if step.name is None:
        return possible[None]
    return np.moveaxis(possible, step.position, 0)


def _possible_cells_of_table(table: Product, impossible: Sequence[Combination]) -> BoolArray:
    """Return whether each group of a table may contain rows."""
    groups_along = dict(zip(table.attributes, groups_of_cells(table), strict=True))
    possible = np.ones([int(groups.max()) + 1 for groups in groups_along.values()], dtype=np.bool_)
    for combination in impossible:
        codes = dict(combination)
        if not set(codes) <= set(table.attributes):
            continue
        groups_within = []
        for name, groups in groups_along.items():
            is_outside = np.zeros(len(groups), dtype=np.bool_)
            if name in codes:
                is_outside[:] = True
                is_outside[list(codes[name])] = False
            cells_outside = np.bincount(groups, is_outside)
            groups_within.append(np.flatnonzero(cells_outside == 0))
        possible[np.ix_(*groups_within)] = False
    return possible


def _any_in_groups(flags: BoolArray, axis: int, groups: IntArray) -> BoolArray:
    """Return whether any flag is set in each group, along an axis."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.asarray(np.logical_or.reduceat(np.take(flags, order, axis), starts, axis))
