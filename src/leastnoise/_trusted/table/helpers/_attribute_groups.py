"""Choose which marginals to count together.

One pass over the rows counts the table of a group of attributes; several smaller tables follow from
it.

This file is not trusted. The kernel checks that the table of a group has the attributes of each
member (A3 of PROOFS-kernel.md). The only fact about the rows that this code receives is the power
of two above their number. This number decides how the counts are computed; it does not change the
counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray

# Beyond this a table of counts no longer stays in the second-level cache, and counting into it
# becomes several times slower.
CACHED_CELLS = 2**17
# For smaller tables the fixed cost of a call outweighs the cost of the cells.
LEAST_CELLS = 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeGroup:
    """Attributes whose joint table is counted in one pass over the rows.

    Attributes:
        attributes: positions of the attributes, in the order of the table's axes.
        members: the requested sets of attributes; their tables are sums of that table.
    """

    attributes: tuple[int, ...]
    members: tuple[int, ...]


def group_attribute_sets(
    attribute_sets: Sequence[tuple[int, ...]], sizes: Sequence[int], rows: int
) -> list[AttributeGroup]:
    """Group attribute sets; the rows are counted in one pass for each group.

    Each set is a member of exactly one group; a set is a tuple of distinct positions.

    A group starts from the largest set that is in no group yet. Attributes are then added one after
    the other, each time the attribute that completes the most other sets. The group stops growing
    if its table would exceed the cache. It also stops if its table would be so large, relative to
    the rows, that summing over its axes takes more time than the passes that it saves.

    >>> group_attribute_sets([(0, 1), (1, 2), (0, 2), (1,)], [2, 2, 2], 10**6)
    [AttributeGroup(attributes=(0, 1, 2), members=(0, 1, 2, 3))]
    """
    if len(attribute_sets) == 1:
        return [AttributeGroup(attributes=tuple(sorted(attribute_sets[0])), members=(0,))]
    limit = max(LEAST_CELLS, min(rows // 8, CACHED_CELLS))
    used = sorted(set(chain.from_iterable(attribute_sets)))
    column = {attribute: index for index, attribute in enumerate(used)}
    incidence = np.zeros((len(attribute_sets), len(used)), dtype=np.int16)
    for index, attributes in enumerate(attribute_sets):
        incidence[index, [column[attribute] for attribute in attributes]] = 1
    cells_of_attribute = np.array([sizes[attribute] for attribute in used], dtype=np.float64)
    cells = [
        math.prod(sizes[attribute] for attribute in attributes) for attributes in attribute_sets
    ]
    # Row i of `sorted_incidence` belongs to the set names[i]; the largest set comes first.
    names = np.array(
        sorted(range(len(attribute_sets)), key=lambda index: (-cells[index], index)), dtype=np.intp
    )
    sorted_incidence = np.asfortranarray(incidence[names])
    attribute_counts = sorted_incidence.sum(axis=1)
    waiting = np.ones(len(names), dtype=np.bool_)
    grouped = []
    first = 0
    while waiting.any():
        first += int(waiting[first:].argmax())
        group, covered = _grow_group(
            sorted_incidence,
            first,
            np.where(waiting, attribute_counts, len(used) + 2),
            cells_of_attribute,
            cells[names[first]],
            limit,
        )
        # A table that is large relative to the rows is worth summing out only for sets that are
        # large too.
        if cells[names[first]] <= max(limit, rows):
            summed = covered
        else:
            summed = covered & (sorted_incidence == sorted_incidence[first]).all(axis=1)
        summed[first] = True
        grouped.append(
            AttributeGroup(
                attributes=tuple(used[index] for index in group),
                members=tuple(sorted(names[summed].tolist())),
            )
        )
        waiting &= ~summed
    return grouped


def _grow_group(
    sorted_incidence: npt.NDArray[np.int16],
    first: int,
    missing: IntArray,
    cells_of_attribute: FloatArray,
    cells: int,
    limit: int,
) -> tuple[list[int], BoolArray]:
    """Extend one attribute set to a group; return its attributes and its sets.

    ``missing`` has, for each set, how many of its attributes the group lacks; at first, these are
    all of its attributes. For a set that is already in a group, it has a larger number.
    """
    inside = sorted_incidence[first] > 0
    missing = missing.copy()
    for column in np.flatnonzero(inside):
        missing -= sorted_incidence[:, column]
    size = float(cells)
    while True:
        is_small = ~inside & (size * cells_of_attribute <= limit)
        near = np.flatnonzero((missing == 1) & is_small.any())
        gain = np.where(is_small, sorted_incidence[near].sum(axis=0), 0)
        if not gain.any():
            return np.flatnonzero(inside).tolist(), missing == 0
        best = int(gain.argmax())
        inside[best] = True
        size *= cells_of_attribute[best]
        missing -= sorted_incidence[:, best]
