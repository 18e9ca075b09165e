"""Levels: public maps from the cells of an attribute to coarser ones, such as from stores to regions or from ages to five years."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastnoise._check import InputError, one_of, refuse, whole
from leastnoise._domain._names import attribute_name, known_keys

Label = str | int
# Words that already ask for something.
RESERVED = ("identity", "total", "prefix", "all_ranges", "ranges", "predicates", "matrix", "level")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Level:
    """A public map from the regular cells of an attribute to groups.

    Args:
        name: of the level, such as ``region``.
        labels: of the groups, in the order in which they first occur.
        cells: the group of each regular cell, from 0.
    """

    name: str
    labels: tuple[Label, ...]
    cells: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"name": self.name, "labels": list(self.labels), "cells": list(self.cells)}


def grouped(name: str, groups: Iterable[Label]) -> Level:
    """The level that puts cell after cell into these groups.

    >>> grouped("half", ["a", "a", "b"])
    Level(name='half', labels=('a', 'b'), cells=(0, 0, 1))
    """
    every = tuple(groups)
    places = {label: place for place, label in enumerate(dict.fromkeys(every))}
    return Level(name, tuple(places), tuple(places[label] for label in every))


def levels_of(labels: Sequence[Label], given: object) -> tuple[Level, ...]:
    """Check the levels of an attribute.

    Args:
        labels: of its regular cells.
        given: from name to level: a mapping from each cell's label to its group, or ``{"width": 5}`` for whole numbers; or JSON values.

    >>> levels_of([15, 16, 20], {"five": {"width": 5}})
    (Level(name='five', labels=('15 .. 19', '20 .. 24'), cells=(0, 0, 1)),)
    """
    if isinstance(given, Mapping):
        return tuple(_level(name, labels, groups) for name, groups in given.items())
    if not isinstance(given, (list, tuple)):
        raise refuse("levels", given, "a mapping from a level's name to a mapping from a cell to its group")
    return tuple(value if isinstance(value, Level) else _from_json(labels, value) for value in given)


def _level(name: object, labels: Sequence[Label], groups: object) -> Level:
    called = attribute_name("the name of a level", name)
    if called in RESERVED:
        raise refuse("the name of a level", name, "none of " + ", ".join(RESERVED))
    allowed = "a mapping from each cell to its group, or { width = 5 } for whole numbers"
    if not isinstance(groups, Mapping):
        raise refuse(f"the level {called!r}", groups, allowed)
    if set(groups) == {"width"} and all(isinstance(label, int) for label in labels):
        width = whole(f"the width of the level {called!r}", groups["width"], 1)
        starts = [int(label) // width * width for label in labels]
        return grouped(called, [f"{start} .. {start + width - 1}" for start in starts])
    by_text = {str(key): value for key, value in groups.items()}
    unknown = [str(label) for label in labels if str(label) not in by_text]
    if unknown:
        listed = ", ".join(repr(label) for label in unknown[:_MOST_NAMED]) + (", ..." if len(unknown) > _MOST_NAMED else "")
        raise InputError(
            f"the level {called!r} must give every cell a group; {len(unknown)} have none: {listed}. "
            "Add them to the map, or take them out of the attribute."
        )
    for value in by_text.values():
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise refuse(f"a group of the level {called!r}", value, "text that is not empty, or a whole number")
    return grouped(called, [by_text[str(label)] for label in labels])


def _from_json(labels: Sequence[Label], value: object) -> Level:
    table = known_keys("a level in JSON", value, ["name", "labels", "cells"])
    name, groups, cells = table.get("name"), table.get("labels"), table.get("cells")
    if not isinstance(groups, list) or not isinstance(cells, list) or len(cells) != len(labels):
        raise InputError("a level in JSON must have 'labels', and in 'cells' a group for every cell of its attribute.")
    places = [whole("a group of a level in JSON", cell, 0, len(groups) - 1) for cell in cells]
    return _level(name, labels, {str(label): groups[place] for label, place in zip(labels, places, strict=True)})


def find(levels: Iterable[Level], name: str) -> Level:
    """The level of this name.

    Raises:
        InputError: there is none.
    """
    known = {level.name: level for level in levels}
    if not known:
        raise InputError(
            f"a level must be declared; got {name!r}, and the attribute has none. Add it, for example levels.{name} = {{ ... }}."
        )
    return known[one_of("a level", name, known)]
