"""Represent the conditions of WHERE, FILTER and CASE as boxes of cells.

A `CellBox` states for some attributes which parts of the column are kept; the parts are cells,
nulls and values outside the domain. Conditions joined by AND are intersections of boxes. OR across
attributes is a union of boxes. The boxes are made disjoint. Counts and sums over the union are then
sums over the boxes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from leastnoise._domain import Domain
from leastnoise._trusted.check import InputError
from leastnoise._workload._sql._expression_values import ColumnParts, refused

_MOST_BOXES = 64  # products of ranges that OR forms; each AND multiplies their number


@dataclass(frozen=True, slots=True)
class CellBox:
    """A product of sets of cells, which contains the rows that a condition keeps.

    Attributes:
        parts: by attribute, the parts of the column in which the condition is true. For other
            attributes, it is true in all parts.
        undecided: attributes for which the condition depends on a row's value outside the domain.
            Rows with such values are left out.
    """

    parts: Mapping[str, frozenset[int]] = field(default_factory=dict)
    undecided: frozenset[str] = frozenset()


EVERYTHING = (CellBox(),)
"""The boxes of a condition that keeps every row."""


def empty_condition_error(clause: str, *names: str) -> InputError:
    """Return the error for a condition that no row can satisfy."""
    if not names:
        return InputError(f"{clause} is never true. Leave the statement out, or correct it.")
    return InputError(
        f"{clause} keeps no value that {' and '.join(names)} may have. Compare with values of "
        f"[domain.{names[0]}]."
    )


def intersect_two(clause: str, first: CellBox, second: CellBox) -> CellBox:
    """Return the intersection of two boxes; raise if it is empty.

    Raises:
        InputError: the conditions together leave no part of an attribute; the message names the
            clause.
    """
    condition, empty_attribute = _intersection(first, second)
    if empty_attribute is not None:
        raise empty_condition_error(clause, empty_attribute)
    return condition


def _intersection(first: CellBox, second: CellBox) -> tuple[CellBox, str | None]:
    """Return two boxes' intersection, and an attribute without cells or None.

    The attribute is None if the intersection contains cells of each attribute.
    """
    parts = dict(first.parts)
    for name, second_parts in second.parts.items():
        parts[name] = parts[name] & second_parts if name in parts else second_parts
    empty = next((name for name, second_parts in parts.items() if not second_parts), None)
    return CellBox(parts, first.undecided | second.undecided), empty


def intersect(
    clause: str, first: Sequence[CellBox], second: Sequence[CellBox]
) -> tuple[CellBox, ...]:
    """Intersect two unions of boxes; raise if they have no cell in common.

    Raises:
        InputError: no row can satisfy both conditions, or there are too many boxes.
    """
    boxes = overlap(clause, first, second)
    if not boxes and first and second:
        intersect_two(clause, first[0], second[0])  # raises, and names an attribute
    return boxes


def overlap(
    clause: str, first: Sequence[CellBox], second: Sequence[CellBox]
) -> tuple[CellBox, ...]:
    """Intersect two unions of boxes; the result may be empty."""
    boxes = []
    for box_of_first in first:
        for other in second:
            box, empty_attribute = _intersection(box_of_first, other)
            if empty_attribute is None:
                boxes.append(box)
    return _few_boxes(clause, boxes)


def unite(
    clause: str, domain: Domain, first: Sequence[CellBox], second: Sequence[CellBox]
) -> tuple[CellBox, ...]:
    """Return the union of two unions of boxes, as disjoint boxes."""
    further = subtract(clause, domain, second, first)
    return _few_boxes(clause, merge(domain, [*first, *further]))


def subtract(
    clause: str, domain: Domain, boxes: Iterable[CellBox], removed: Sequence[CellBox]
) -> tuple[CellBox, ...]:
    """Return the part of some boxes outside other boxes, as disjoint boxes."""
    remaining = list(boxes)
    for box in removed:
        remaining = list(
            chain.from_iterable(_difference(domain, minuend, box) for minuend in remaining)
        )
        _few_boxes(clause, remaining)
    return tuple(remaining)


def _difference(domain: Domain, box: CellBox, removed: CellBox) -> list[CellBox]:
    """Return the part of a box outside another box, as disjoint boxes.

    The result has at most one box for each attribute.
    """
    pieces = []
    parts = dict(box.parts)
    undecided = box.undecided | removed.undecided
    for name, removed_parts in removed.parts.items():
        parts_of_box = parts.get(name, _all_parts(domain, name))
        if parts_of_box - removed_parts:
            pieces.append(CellBox({**parts, name: parts_of_box - removed_parts}, undecided))
        parts[name] = parts_of_box & removed_parts
        if not parts[name]:
            break
    return pieces


def merge(domain: Domain, boxes: Sequence[CellBox]) -> tuple[CellBox, ...]:
    """Merge disjoint boxes that differ in only one attribute."""
    merged = [_without_full_attributes(domain, box) for box in boxes]
    is_changed = True
    while is_changed:
        is_changed = False
        for index, box in enumerate(merged):
            for other_index in range(index + 1, len(merged)):
                union = _union_of_neighbours(domain, box, merged[other_index])
                if union is not None:
                    del merged[other_index]
                    merged[index] = union
                    is_changed = True
                    break
            if is_changed:
                break
    return tuple(merged)


def _union_of_neighbours(domain: Domain, first: CellBox, second: CellBox) -> CellBox | None:
    """Return the union of two boxes if it is a box; otherwise None."""
    names = {*first.parts, *second.parts}
    differing = [name for name in names if first.parts.get(name) != second.parts.get(name)]
    if len(differing) != 1 or not all(differing[0] in box.parts for box in (first, second)):
        return None
    (name,) = differing
    parts = {**first.parts, name: first.parts[name] | second.parts[name]}
    return _without_full_attributes(domain, CellBox(parts, first.undecided | second.undecided))


def _without_full_attributes(domain: Domain, box: CellBox) -> CellBox:
    """Return a box without the attributes that it does not restrict."""
    parts = {
        name: parts_of_box
        for name, parts_of_box in box.parts.items()
        if parts_of_box != _all_parts(domain, name)
    }
    return CellBox(parts, box.undecided)


def hull(domain: Domain, boxes: Sequence[CellBox]) -> CellBox:
    """Return the smallest box that contains all given boxes."""
    names = frozenset(boxes[0].parts).intersection(*(box.parts for box in boxes))
    parts = {}
    for name in domain.names:
        if name in names:
            parts[name] = frozenset[int]().union(*(box.parts[name] for box in boxes))
    undecided = frozenset[str]().union(*(box.undecided for box in boxes))
    return _without_full_attributes(domain, CellBox(parts, undecided))


def _all_parts(domain: Domain, name: str) -> frozenset[int]:
    """Return the numbers of an attribute's cells, including nulls and outside."""
    return frozenset(ColumnParts.of(domain.kind(name)).all)


def _few_boxes(clause: str, boxes: Sequence[CellBox]) -> tuple[CellBox, ...]:
    """Return boxes unchanged; raise if there are too many."""
    if len(boxes) > _MOST_BOXES:
        raise refused(
            f"{clause} with OR in more than {_MOST_BOXES} combinations",
            "Name the attributes in GROUP BY, and add up the answers",
        )
    return tuple(boxes)
