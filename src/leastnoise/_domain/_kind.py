"""What kinds of attributes share: checks of what every kind has, levels, and how they are shown.

Levels are public maps from the cells of an attribute to coarser ones, such as from stores to
regions or from ages to five years.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import Field, asdict, dataclass, field, fields
from fractions import Fraction
from typing import Any, Self

from leastnoise._check import (
    Exact,
    InputError,
    did_you_mean,
    exact,
    message,
    number_text,
    one_of,
    refuse,
    short,
    whole,
)
from leastnoise._domain._cells import MOST, MOST_CELLS, READ_AS_IT_IS
from leastnoise._domain._measure import Measure
from leastnoise._domain._reading import Reading, attribute_name

Label = str | int
OTHER = "other"
LISTED = ("drop", OTHER)
ORDERED = ("drop", "clip", OTHER)
# Words that already ask for something.
RESERVED = ("identity", "total", "prefix", "all_ranges", "ranges", "predicates", "matrix", "level")
_MOST_NAMED = 5
_NO_GROUP = "the level {level!r} must give every cell a group; {count} have none: {listed}. Add them to the map, or take them out of the attribute."  # noqa: E501


def known_keys(what: str, got: object, allowed: Iterable[str]) -> dict[str, object]:
    """Check that a table of a spec is a table and has only keys that exist."""
    keys = list(allowed)
    listed = ", ".join(repr(key) for key in keys)
    if not isinstance(got, Mapping):
        raise refuse(what, got, f"a table with keys among {listed}")
    for key in got:
        if key not in keys:
            advice = did_you_mean(key, keys)
            raise InputError(
                f"{what} has no key {key!r}; allowed are {listed}."
                + (f" {advice}" if advice else "")
            )
    return dict(got)


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
        """The level as plain JSON values."""
        return {"name": self.name, "labels": list(self.labels), "cells": list(self.cells)}


def grouped(name: str, groups: Iterable[Label]) -> Level:
    """Return the level whose cells, in order, are in these groups."""
    every = tuple(groups)
    cells = {label: cell for cell, label in enumerate(dict.fromkeys(every))}
    return Level(name, tuple(cells), tuple(map(cells.__getitem__, every)))


def levels_of(labels: Sequence[Label], given: object) -> tuple[Level, ...]:
    """Check the levels of an attribute: maps from each cell's label to its group, ``{"width": 5}`` for whole numbers, or JSON values."""
    if isinstance(given, Mapping):
        return tuple(_level(name, labels, groups) for name, groups in given.items())
    if not isinstance(given, (list, tuple)):
        raise refuse(
            "levels", given, "a mapping from a level's name to a mapping from a cell to its group"
        )
    return tuple(
        value if isinstance(value, Level) else _from_json(labels, value) for value in given
    )


def _level(name: object, labels: Sequence[Label], groups: object) -> Level:
    called = attribute_name("the name of a level", name)
    if called in RESERVED:
        raise refuse(
            "the name of a level", name, message("none of {words}", words=", ".join(RESERVED))
        )
    allowed = "a mapping from each cell to its group, or { width = 5 } for whole numbers"
    if (
        isinstance(groups, Mapping)
        and set(groups) == {"width"}
        and all(isinstance(label, int) for label in labels)
    ):
        width = whole(f"the width of the level {called!r}", groups["width"], 1)
        starts = [int(label) // width * width for label in labels]
        return grouped(called, [f"{start} .. {start + width - 1}" for start in starts])
    if isinstance(groups, Mapping):
        by_text, texts = {str(key): value for key, value in groups.items()}, [*map(str, labels)]
        if unknown := [text for text in texts if text not in by_text]:
            listed = ", ".join(map(repr, unknown[:_MOST_NAMED])) + (
                ", ..." if len(unknown) > _MOST_NAMED else ""
            )
            raise InputError(message(_NO_GROUP, level=called, count=len(unknown), listed=listed))
        groups = [by_text[text] for text in texts]
    if not isinstance(groups, list) or len(groups) != len(labels):
        raise refuse(f"the level {called!r}", groups, allowed)
    for value in {*groups} if {*map(type, groups)} == {str} else groups:
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise refuse(
                message("a group of the level {level!r}", level=called),
                value,
                "text that is not empty, or a whole number",
            )
    return grouped(called, groups)


def _from_json(labels: Sequence[Label], value: object) -> Level:
    table = known_keys("a level in JSON", value, ["name", "labels", "cells"])
    name, groups, cells = table.get("name"), table.get("labels"), table.get("cells")
    if not isinstance(groups, list) or not isinstance(cells, list) or len(cells) != len(labels):
        raise InputError(
            "a level in JSON must have 'labels', and in 'cells' a group for every cell of its "
            "attribute."
        )
    return _level(
        name,
        labels,
        [groups[whole("a group of a level in JSON", cell, 0, len(groups) - 1)] for cell in cells],
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Kind(ABC):
    """An attribute: a public map from values to cells. Frozen, equal and hashable by value.

    Attributes:
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what any other value does: ``"drop"`` the row, ``"clip"`` it to the nearest cell
            (where cells are in order) or ``"other"``.
        reading: how values are read.
        levels: public maps to coarser cells.
        regular: the number of cells, ``other`` not included.
        has_other: whether there is a last cell ``other``.
        size: the number of cells, ``other`` included.
    """

    null: str | None = "drop"
    outside: str = "drop"
    reading: Reading = READ_AS_IT_IS
    levels: Any = ()
    regular: int = field(init=False, compare=False)
    has_other: bool = field(init=False, compare=False)
    size: int = field(init=False, compare=False)

    @property
    @abstractmethod
    def regular_labels(self) -> tuple[Label, ...]:
        """The label of every cell but ``other``, in order."""

    @property
    def implied_levels(self) -> tuple[Level, ...]:
        """Levels that the attribute has without their being declared."""
        return ()

    @property
    def labels(self) -> tuple[Label, ...]:
        """The label of every cell, in order."""
        return (*self.regular_labels, OTHER) if self.has_other else self.regular_labels

    def level(self, name: str) -> Level:
        """Look up a level over all cells; ``other`` belongs to a group of that name."""
        known: dict[str, Level] = {
            level.name: level for level in (*self.levels, *self.implied_levels)
        }
        if not known:
            raise InputError(
                f"a level must be declared; got {name!r}, and the attribute has none. Add it, for "
                f"example levels.{name} = {{ ... }}."
            )
        level = known[one_of("a level", name, known)]
        if not self.has_other:
            return level
        labels = level.labels if OTHER in level.labels else (*level.labels, OTHER)
        return Level(name, labels, (*level.cells, labels.index(OTHER)))

    def with_levels(self, levels: object) -> Self:
        """Return the attribute with these levels; the cells, which can be a million, are not checked again."""
        made = copy(self)
        made._keep(self.regular, (self.outside,), levels=levels)  # noqa: SLF001 - of the same class
        return made

    def _keep(self, regular: int, allowed: tuple[str, ...], **parameters: object) -> None:
        """Set the fields of a kind that is being made: its own, checked, what every kind has, and levels over its labels."""
        policies = {"null": "drop" if self.null is None else one_of("null", self.null, LISTED)}
        policies["outside"] = one_of("outside", self.outside, allowed)
        has_other = OTHER in policies.values()
        cells = regular + has_other
        if not cells <= MOST_CELLS:
            advice = "Choose a coarser attribute, for example Bins."
            what = message("the number of cells of {kind}", kind=type(self).__name__)
            raise refuse(what, cells, message("at most {most}", most=MOST_CELLS), advice)
        reading: Any = self.reading
        if isinstance(reading, Mapping):
            known: dict[str, Any] = known_keys(
                "reading", reading, [part.name for part in fields(Reading)]
            )
            reading = Reading(**known)
        if not isinstance(reading, Reading):
            raise refuse("reading", reading, "a Reading")
        counts = {"regular": regular, "has_other": has_other, "size": cells}
        for name, value in {**parameters, **policies, "reading": reading, **counts}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(
            self, "levels", levels_of(self.regular_labels, self.levels) if self.levels else ()
        )

    def __repr__(self) -> str:
        values = asdict(self)
        pairs = [(part, values[part.name]) for part in own_fields(type(self))]
        parts = [_shown(value) for part, value in pairs if not part.kw_only]
        parts += [
            f"{part.name}={_shown(value)}"
            for part, value in pairs
            if part.kw_only and value != part.default
        ]
        parts += [
            f"{key}={value!r}"
            for key, value in (("null", self.null), ("outside", self.outside))
            if value != "drop"
        ]
        parts += [] if self.reading == READ_AS_IT_IS else [f"reading={self.reading!r}"]
        parts += [f"levels={[level.to_json() for level in self.levels]!r}"] if self.levels else []
        return f"{type(self).__name__}({', '.join(parts)})"


def own_fields(kind: type[Kind]) -> list[Field[Any]]:
    """Return the fields that a kind has and `Kind` has not; those without a default are not keyword-only."""
    common = {part.name for part in fields(Kind)}
    return [part for part in fields(kind) if part.name not in common]


def _shown(value: object) -> str:
    """Return a field as Python writes it."""
    if isinstance(value, Fraction):
        return short(value)
    if isinstance(value, dt.date):
        return repr(value.isoformat())
    if isinstance(value, tuple):
        if value and isinstance(value[0], tuple):
            return repr({key: list(texts) for key, texts in value})
        return repr([number_text(part) if isinstance(part, Fraction) else part for part in value])
    return repr(value)


def rising(low: Fraction | int, high: Fraction | int) -> None:
    """Refuse bounds of which the first is not the lower one."""
    if not low < high:
        raise InputError(
            message(
                "low must be below high; got low {low} and high {high}.",
                low=Fraction(low),
                high=Fraction(high),
            )
        )


def bound(name: str, value: Exact) -> Fraction:
    """Check an exact bound that doubles can be compared with."""
    number = exact(name, value)
    if not abs(number) <= MOST:
        raise refuse(name, number_text(number), "between -(2^53 - 1) and 2^53 - 1")
    return number


def pairs_of(attributes: Any) -> list[tuple[str, Any]]:
    """Return the attributes given positionally as pairs of a name and an unchecked kind."""
    if attributes is None:
        return []
    single = isinstance(attributes, str) or not isinstance(attributes, Iterable)
    pairs = (
        [*attributes.items()]
        if isinstance(attributes, Mapping)
        else [attributes]
        if single
        else [*attributes]
    )
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise refuse("attributes", pair, "a mapping from a name to a kind, or pairs of them")
    return [(name, kind) for name, kind in pairs]


def domain_text(kinds: Mapping[str, Kind], measures: Mapping[str, Measure]) -> str:
    """Return a domain as Python writes it."""
    if all(name.isidentifier() and name != "measures" for name in kinds):
        parts = [f"{name}={kind!r}" for name, kind in kinds.items()]
    else:
        parts = [f"{dict(kinds)!r}"]
    return f"Domain({', '.join([*parts, *([f'measures={measures!r}'] if measures else [])])})"
