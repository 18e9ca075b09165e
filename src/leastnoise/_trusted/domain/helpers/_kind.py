"""Define the base class of all kinds: checks, names of cells and display.

This file is not trusted: kinds are public, and `Rule` refuses a cell that its kind does not have.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import Field, asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Self

from leastnoise._trusted.check import (
    Exact,
    InputError,
    exact,
    exact_python_source,
    message,
    number_text,
    one_of,
    refuse,
)
from leastnoise._trusted.domain._cells import MOST, MOST_CELLS, READ_AS_IT_IS
from leastnoise._trusted.domain._measure import Measure
from leastnoise._trusted.domain._reading import Reading
from leastnoise._trusted.domain.helpers._labels import CellNames
from leastnoise._trusted.domain.helpers._levels import (
    OTHER,
    Label,
    Level,
    check_levels,
    checked_keys,
    level_of_groups,
)

OWN_CELL = "cell"
NULL_LABEL = "(null)"
OUTSIDE_LABEL = "(outside)"
LISTED = ("drop", OTHER, OWN_CELL)
ORDERED = ("drop", "clip", OTHER, OWN_CELL)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Kind(ABC):
    """A kind of attribute: a public map from values to cells.

    Kinds are frozen, and compare and hash by value.

    Attributes:
        null: how to treat a null: ``"drop"`` the row; ``"other"``: count it in the cell of that
            name; or ``"cell"``: count it in a separate cell, ``(null)``.
        outside: how to treat a value outside the domain: ``"drop"`` the row; ``"clip"`` the value
            to the nearest cell (only for ordered cells); ``"other"``: count it in the cell of that
            name; or ``"cell"``: count it in the cell ``(outside)``.
        reading: how values are read.
        levels: public maps to coarser cells.
        complete: whether the data holder declares that no value of the column is dropped. A row
            with such a value is then dropped from every table.
        hidden: whether the attribute has a last cell that is measured but never published. This
            cell has the values that would be dropped, so that their rows count in tables without
            the attribute. Planning sets it.
        regular: the number of cells for values that the domain lists.
        has_other: whether the attribute has a cell ``other``; it follows the regular cells.
        size: the number of all cells: the regular cells, ``other``, ``(null)``, ``(outside)`` and
            the hidden cell, in this order.
    """

    null: str | None = "drop"
    outside: str = "drop"
    reading: Reading = READ_AS_IT_IS
    levels: Any = ()
    complete: bool = False
    hidden: bool = False
    regular: int = field(init=False, compare=False)
    has_other: bool = field(init=False, compare=False)
    size: int = field(init=False, compare=False)

    @property
    @abstractmethod
    def regular_labels(self) -> tuple[Label, ...]:
        """The label of every regular cell, in order."""

    @property
    def implied_levels(self) -> tuple[Level, ...]:
        """The levels that the attribute has even if none is declared."""
        return ()

    @property
    def published(self) -> int:
        """The number of published cells, which are all cells but the hidden cell."""
        return self.size - self.hidden

    @property
    def may_drop(self) -> bool:
        """Whether some values of the column cause their rows to be dropped.

        A value can drop its row if a policy of the attribute is ``"drop"`` and the attribute is not
        declared complete.
        """
        return not self.complete and "drop" in (self.null, self.outside)

    def with_hidden(self, hidden: bool) -> Self:  # noqa: FBT001
        """Return a copy of the attribute with or without a hidden cell.

        The other cells are not checked again.
        """
        changed = copy(self)
        object.__setattr__(changed, "hidden", hidden)
        object.__setattr__(changed, "size", self.published + hidden)
        return changed

    def as_complete(self) -> Self:
        """Return a copy that is declared complete, and has no hidden cell."""
        changed = self.with_hidden(False)
        object.__setattr__(changed, "complete", True)
        return changed

    @property
    def labels(self) -> tuple[Label, ...]:
        """The label of every published cell, in order."""
        return (*self.regular_labels, *self.further_labels)

    @property
    def further_labels(self) -> tuple[str, ...]:
        """The labels of the published cells after the regular ones."""
        return further_labels(str(self.null), self.outside)

    @property
    def null_cell(self) -> int | None:
        """The cell in which nulls are counted; None if a null drops its row."""
        return self._further_cell(str(self.null), NULL_LABEL)

    @property
    def outside_cell(self) -> int | None:
        """The cell of values outside the domain; None if they are dropped or clipped."""
        return self._further_cell(self.outside, OUTSIDE_LABEL)

    def _further_cell(self, policy: str, own_label: str) -> int | None:
        """Return the number of the cell for nulls or for values outside, or None."""
        label = {OTHER: OTHER, OWN_CELL: own_label}.get(policy)
        if label is None:
            return None
        return self.regular + self.further_labels.index(label)

    @property
    def spellings_of_cells(self) -> Mapping[str, int]:
        """The cell of each further spelling, by the spelling's normalised text.

        The mapping is empty if there are no further spellings.
        """
        return {}

    def cell_of_number(self, _number: Fraction) -> int | None:
        """Return the cell of an exact number; None if it has no cell."""
        return None

    @property
    def names(self) -> CellNames:
        """The lookup of published cells by their names."""
        return CellNames(
            by_label={str(label): cell for cell, label in enumerate(self.labels)},
            by_spelling=self.spellings_of_cells,
            form=self.reading.form,
            of_number=self.cell_of_number,
        )

    def level(self, name: str) -> Level:
        """Return the level with a name, extended to all published cells.

        Each cell after the regular cells is a separate group. The cell ``other`` has a group of
        that name unless the level assigns it to one.
        """
        every_level: tuple[Level, ...] = (*self.levels, *self.implied_levels)
        levels = {level.name: level for level in every_level}
        if not levels:
            raise InputError(
                f"a level must be declared; got {name!r}, and the attribute has none. Add it, for "
                f"example levels.{name} = {{ ... }}."
            )
        level = levels[one_of("a level", name, levels)]
        return level.with_further(self.further_labels[len(level.cells) - self.regular :])

    def clipped(self) -> Self:
        """Return a copy that clips values outside the domain to the nearest cell.

        Clipping is possible only if the cells are ordered.
        """
        if self.outside == "clip":
            return self
        cells = self.regular + (self.null == OTHER)
        levels = [
            level_of_groups(level.name, [level.labels[group] for group in level.cells[:cells]])
            for level in self.levels
        ]
        return replace(self, outside="clip", levels=tuple(levels))

    def with_levels(self, levels: object) -> Self:
        """Return a copy of the attribute with these levels.

        The cells are not checked again, because there can be a million.
        """
        attribute = copy(self)
        object.__setattr__(attribute, "levels", levels)
        attribute._set_levels()  # noqa: SLF001 - of the same class
        return attribute

    def _set_fields(self, regular: int, allowed: tuple[str, ...], **parameters: object) -> None:
        """Check and set all fields except the levels.

        This includes the fields that only this class of kinds has.

        Args:
            regular: the number of cells, not counting ``other``.
            allowed: the policies for a value outside.
            parameters: the fields that the kind adds, already checked.
        """
        if self.null is None:
            null = "drop"
        else:
            null = one_of("null", self.null, LISTED)
        outside = one_of("outside", self.outside, allowed)
        has_other = OTHER in (null, outside)
        for name in ("complete", "hidden"):
            if not isinstance(getattr(self, name), bool):
                raise refuse(name, getattr(self, name), "true or false")
        size = regular + len(further_labels(null, outside)) + self.hidden
        if not size <= MOST_CELLS:
            advice = "Choose a coarser attribute, for example Bins."
            quantity = message("the number of cells of {kind}", kind=type(self).__name__)
            raise refuse(quantity, size, message("at most {most}", most=MOST_CELLS), advice)
        values = {
            **parameters,
            "null": null,
            "outside": outside,
            "reading": _checked_reading(self.reading),
            "regular": regular,
            "has_other": has_other,
            "size": size,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _set_levels(self) -> None:
        """Check and set the levels, after all other fields are set."""
        levels: tuple[Level, ...] = ()
        if self.levels:
            levels = check_levels(self.levels, self.regular_labels, self.names, self.published)
        object.__setattr__(self, "levels", levels)

    def __repr__(self) -> str:
        values = asdict(self)
        pairs = [(own_field, values[own_field.name]) for own_field in added_fields(type(self))]
        arguments = [_python_text(value) for own_field, value in pairs if not own_field.kw_only]
        arguments += [
            f"{own_field.name}={_python_text(value)}"
            for own_field, value in pairs
            if own_field.kw_only and value != own_field.default
        ]
        arguments += [
            f"{key}={value!r}"
            for key, value in (("null", self.null), ("outside", self.outside))
            if value != "drop"
        ]
        if self.reading != READ_AS_IT_IS:
            arguments.append(f"reading={self.reading!r}")
        arguments += [f"{name}=True" for name in ("complete", "hidden") if getattr(self, name)]
        arguments += (
            [f"levels={[level.to_json() for level in self.levels]!r}"] if self.levels else []
        )
        return f"{type(self).__name__}({', '.join(arguments)})"


def _checked_reading(reading: object) -> Reading:
    """Return a `Reading`, converted from JSON values if necessary."""
    if isinstance(reading, Mapping):
        settings: dict[str, Any] = checked_keys(
            "reading", reading, [setting.name for setting in fields(Reading)]
        )
        return Reading(**settings)
    if not isinstance(reading, Reading):
        raise refuse("reading", reading, "a Reading")
    return reading


def further_labels(null: str, outside: str) -> tuple[str, ...]:
    """Return the labels of the cells that the policies for nulls and outside add.

    >>> further_labels("cell", "other")
    ('other', '(null)')
    """
    cells = {
        OTHER: OTHER in (null, outside),
        NULL_LABEL: null == OWN_CELL,
        OUTSIDE_LABEL: outside == OWN_CELL,
    }
    return tuple(label for label, is_there in cells.items() if is_there)


def added_fields(kind: type[Kind]) -> list[Field[Any]]:
    """Return the dataclass fields that a class of kinds adds to `Kind`.

    Fields without a default are not keyword-only.
    """
    common = {candidate.name for candidate in fields(Kind)}
    return [candidate for candidate in fields(kind) if candidate.name not in common]


def _python_text(value: object) -> str:
    """Return a field's value as Python source."""
    if isinstance(value, Fraction):
        return exact_python_source(value)
    if isinstance(value, dt.date):
        return repr(value.isoformat())
    if isinstance(value, tuple):
        if value and isinstance(value[0], tuple):
            return repr({key: list(texts) for key, texts in value})
        return repr(
            [number_text(entry) if isinstance(entry, Fraction) else entry for entry in value]
        )
    return repr(value)


def check_bounds_order(low: Fraction | int, high: Fraction | int) -> None:
    """Raise unless the first bound is below the second."""
    if not low < high:
        raise InputError(
            message(
                "low must be below high; got low {low} and high {high}.",
                low=Fraction(low),
                high=Fraction(high),
            )
        )


def check_bound(name: str, value: Exact) -> Fraction:
    """Return a bound as an exact number; raise if it is beyond +-(2^53 - 1)."""
    number = exact(name, value)
    if not abs(number) <= MOST:
        raise refuse(name, number_text(number), "between -(2^53 - 1) and 2^53 - 1")
    return number


def attribute_pairs(attributes: Any) -> list[tuple[str, Any]]:
    """Convert attributes in any allowed form to pairs of a name and a kind."""
    if attributes is None:
        return []
    single = isinstance(attributes, str) or not isinstance(attributes, Iterable)
    if isinstance(attributes, Mapping):
        pairs = [*attributes.items()]
    elif single:
        pairs = [attributes]
    else:
        pairs = [*attributes]
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise refuse("attributes", pair, "a mapping from a name to a kind, or pairs of them")
    return [(name, kind) for name, kind in pairs]


def domain_text(kinds: Mapping[str, Kind], measures: Mapping[str, Measure]) -> str:
    """Return the attributes and measures of a domain as Python source."""
    if all(name.isidentifier() and name != "measures" for name in kinds):
        arguments = [f"{name}={kind!r}" for name, kind in kinds.items()]
    else:
        arguments = [f"{dict(kinds)!r}"]
    return f"Domain({', '.join([*arguments, *([f'measures={measures!r}'] if measures else [])])})"
