"""Define levels: public maps from cells to groups of cells.

Examples are maps from stores to regions, or from ages to groups of five years.

This file is not trusted: the maps are public, and no row is read with them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastnoise._trusted.check import InputError, did_you_mean, message, refuse, whole
from leastnoise._trusted.domain._reading import attribute_name
from leastnoise._trusted.domain.helpers._labels import CellNames, label_text

Label = str | int
OTHER = "other"
# Words that already ask for something.
RESERVED = ("identity", "total", "prefix", "all_ranges", "ranges", "predicates", "matrix", "level")
_MOST_LISTED = 5
_NO_GROUP = (
    "the level {level!r} must give every cell a group; {count} have none: {listed}. Add them to "
    "the map, or take them out of the attribute."
)
_TWO_VALUES = "{what} must give every key one value; {code!r} has {first!r} and {second!r}."
_FORMS = "a mapping from each cell to its group, or { width = 5 } for whole numbers"


def checked_keys(description: str, value: object, allowed: Iterable[str]) -> dict[str, object]:
    """Return a spec's table as a dictionary; raise if a key is not allowed.

    >>> checked_keys("[source]", {"path": "a.csv"}, ["path", "null"])
    {'path': 'a.csv'}
    """
    keys = list(allowed)
    listing = ", ".join(repr(key) for key in keys)
    if not isinstance(value, Mapping):
        raise refuse(description, value, f"a table with keys among {listing}")
    for key in value:
        if key not in keys:
            advice = did_you_mean(key, keys)
            raise InputError(
                f"{description} has no key {key!r}; allowed are {listing}."
                + (f" {advice}" if advice else "")
            )
    return dict(value)


@dataclass(frozen=True, slots=True)
class Level:
    """A public map from the cells of an attribute to groups.

    Attributes:
        name: the name of the level, such as ``region``.
        labels: the names of the groups, in the order in which they first occur.
        cells: the number of the group of each cell, counted from 0. The cell ``other`` may be
            omitted.
    """

    name: str
    labels: tuple[Label, ...]
    cells: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the level as plain JSON values."""
        return {"name": self.name, "labels": list(self.labels), "cells": list(self.cells)}

    def with_further(self, labels: Sequence[str]) -> "Level":
        """Return the level, extended by one cell for each of these labels.

        Each additional cell is in the group that has its label.

        Args:
            labels: the labels of the additional cells, such as ``other``.
        """
        groups = [self.labels[group] for group in self.cells]
        return level_of_groups(self.name, [*groups, *labels])


def level_of_groups(name: str, groups: Iterable[Label]) -> Level:
    """Build a level from a list with the group label of each cell."""
    group_of_cell = tuple(groups)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(group_of_cell))}
    return Level(name, tuple(numbers), tuple(map(numbers.__getitem__, group_of_cell)))


def map_by_text(description: str, pairs: Iterable[tuple[object, Any]]) -> dict[str, Any]:
    """Map the text of each key to its value.

    Raises an error if two keys have the same text and different values.

    Args:
        description: the name of the map in messages.
        pairs: keys and values.

    Raises:
        InputError: two keys have the same text and different values.

    >>> map_by_text("levels.region", [("Kiel", "north"), (7, "south"), ("Kiel", "north")])
    {'Kiel': 'north', '7': 'south'}
    """
    values: dict[str, Any] = {}
    for key, value in pairs:
        text = label_text(key)
        if text is None:
            raise refuse(f"a key of {description}", key, "text, a number, true or false")
        first = values.setdefault(text, value)
        if first != value:
            raise InputError(
                message(_TWO_VALUES, what=description, code=text, first=first, second=value)
            )
    return values


def group_pairs(description: str, groups: Mapping[str, object], names: CellNames) -> dict[str, str]:
    """Return the group of each cell, by the cell's label.

    Args:
        description: the name of the level in messages.
        groups: the cells of each group.
        names: the cells of the attribute by their names.

    Raises:
        InputError: a group is not a list or is empty; an entry is not a cell; or a cell is in two
            groups or twice in one group.

    >>> group_pairs(
    ...     "levels.big", {"yes": [True], "no": [False]}, ln.Categories([True, False]).names
    ... )
    {'true': 'yes', 'false': 'no'}
    """
    pairs: list[tuple[object, str]] = []
    for group, cells in groups.items():
        group_name = f"the group {group!r} of {description}"
        if not isinstance(cells, (list, tuple)) or not cells:
            raise refuse(group_name, cells, "a list of at least one cell")
        numbers = names.cells(group_name, cells)
        if len(set(numbers)) < len(numbers):
            raise refuse(group_name, list(cells), "a list of cells, each of them once")
        pairs += [(cell, group) for cell in cells]
    return map_by_text(description, pairs)


def check_levels(
    levels: object, labels: Sequence[Label], names: CellNames, size: int
) -> tuple[Level, ...]:
    """Return the checked levels of an attribute.

    Args:
        levels: a mapping or a list. A mapping has the name of each level, and for each name one of
            three values: a mapping from cells to groups, the list of the cells' groups, or
            ``{"width": 5}`` for whole numbers. A list has `Level` objects or their JSON values.
        labels: the labels of all cells but ``other``.
        names: the cells by their names, with ``other``.
        size: the number of cells, ``other`` included.

    Raises:
        InputError: a level does not assign every cell to exactly one group.
    """
    if isinstance(levels, Mapping):
        return tuple(_level(name, labels, names, size, groups) for name, groups in levels.items())
    if not isinstance(levels, (list, tuple)):
        allowed = "a mapping from a level's name to a mapping from a cell to its group"
        raise refuse("levels", levels, allowed)
    checked = tuple(_level_from_json(labels, names, size, value) for value in levels)
    level_names = [level.name for level in checked]
    if len(set(level_names)) < len(level_names):
        raise refuse("levels", level_names, "levels of different names")
    return checked


def _level(
    name: object, labels: Sequence[Label], names: CellNames, size: int, groups: object
) -> Level:
    """Build a level from groups in any form that `check_levels` accepts."""
    level_name = attribute_name("the name of a level", name)
    if level_name in RESERVED:
        allowed = message("none of {words}", words=", ".join(RESERVED))
        raise refuse("the name of a level", name, allowed)
    if isinstance(groups, Mapping) and set(groups) == {"width"} and _are_whole(labels):
        return level_of_groups(level_name, _groups_of_width(level_name, labels, groups["width"]))
    if isinstance(groups, Mapping):
        groups = _groups_by_cell(level_name, labels, names, size, groups)
    if not isinstance(groups, list) or len(groups) not in (len(labels), size):
        raise refuse(f"the level {level_name!r}", groups, _FORMS)
    _check_group_names(level_name, groups)
    return level_of_groups(level_name, groups)


def _are_whole(labels: Sequence[Label]) -> bool:
    """Return whether all labels are integers."""
    return all(isinstance(label, int) for label in labels)


def _groups_of_width(level_name: str, labels: Sequence[Label], width: object) -> list[str]:
    """Return the label of the group of each integer, such as ``15 .. 19``.

    The first and the last group end at the bounds of the attribute.
    """
    step = whole(f"the width of the level {level_name!r}", width, 1)
    numbers = [int(label) for label in labels]
    groups = []
    for number in numbers:
        start = number // step * step
        first = max(start, numbers[0])
        last = min(start + step - 1, numbers[-1])
        groups.append(str(first) if first == last else f"{first} .. {last}")
    return groups


def _groups_by_cell(
    level_name: str,
    labels: Sequence[Label],
    names: CellNames,
    size: int,
    groups: Mapping[Any, Any],
) -> list[Any]:
    """Return the label of each cell's group, from a map of cells to groups.

    The cell ``other`` has no group if the map omits it.
    """
    description = f"levels.{level_name}"
    group_of_cell: dict[int, Any] = {}
    for text, group in map_by_text(description, groups.items()).items():
        cell = names.find(text)
        # A public map may have more keys than the attribute has cells.
        if cell is None:
            continue
        first = group_of_cell.setdefault(cell, group)
        if first != group:
            raise InputError(
                message(_TWO_VALUES, what=description, code=text, first=first, second=group)
            )
    missing = [str(label) for cell, label in enumerate(labels) if cell not in group_of_cell]
    if missing:
        listing = ", ".join(map(repr, missing[:_MOST_LISTED]))
        listing += ", ..." if len(missing) > _MOST_LISTED else ""
        raise InputError(message(_NO_GROUP, level=level_name, count=len(missing), listed=listing))
    cells = range(size if size - 1 in group_of_cell else len(labels))
    return [group_of_cell[cell] for cell in cells]


def _check_group_names(level_name: str, groups: Sequence[Any]) -> None:
    """Raise if a group's name is neither text nor whole number, or names clash.

    Two names clash if they have the same text.
    """
    description = message("a group of the level {level!r}", level=level_name)
    by_text: dict[str, Any] = {}
    for group in {*groups} if {*map(type, groups)} == {str} else groups:
        if isinstance(group, bool) or not isinstance(group, (str, int)) or group == "":
            raise refuse(description, group, "text that is not empty, or a whole number")
        if by_text.setdefault(str(group), group) != group:
            raise refuse(description, group, "different from every other group")


def _level_from_json(labels: Sequence[Label], names: CellNames, size: int, value: object) -> Level:
    """Read and check a level from the JSON value that `Level.to_json` wrote."""
    entry = value.to_json() if isinstance(value, Level) else value
    table = checked_keys("a level in JSON", entry, ["name", "labels", "cells"])
    groups, cells = table.get("labels"), table.get("cells")
    if not (
        isinstance(groups, (list, tuple))
        and isinstance(cells, (list, tuple))
        and len(cells) in (len(labels), size)
    ):
        raise InputError(
            "a level in JSON must have 'labels', and in 'cells' a group for every cell of its "
            "attribute."
        )
    last = len(groups) - 1
    group_of_cell = [groups[whole("a group of a level in JSON", cell, 0, last)] for cell in cells]
    level = _level(table.get("name"), labels, names, size, group_of_cell)
    if level.labels != tuple(groups):
        allowed = "the different groups of its cells, in the order in which they first occur"
        raise refuse(f"the labels of the level {level.name!r} in JSON", list(groups), allowed)
    return level
