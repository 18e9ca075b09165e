"""What every kind of attribute has: cells with labels, policies for nulls and for values outside, a reading, and levels."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from leastnoise._check import Exact, exact, one_of, refuse
from leastnoise._domain._levels import Label, Level, find, levels_of
from leastnoise._domain._names import known_keys
from leastnoise._domain._reading import Reading

OTHER = "other"
# Bounds stay where a double holds every whole number, so that reading a value as a double never moves it across a bound.
MOST = 2**53 - 1
# Codes fit uint32, and a table on one attribute alone already has 16 GiB of counts.
MOST_CELLS = 2**31
READ_AS_IT_IS = Reading()
LISTED = ("drop", OTHER)
ORDERED = ("drop", "clip", OTHER)


class Kind(ABC):
    """An attribute: a public map from values to cells. Frozen, equal and hashable by value.

    Attributes:
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what any other value does: ``"drop"`` the row, ``"clip"`` it to the nearest cell (where cells are in order) or ``"other"``.
        reading: how values are read.
        levels: public maps to coarser cells.
    """

    __slots__ = ()

    null: str
    outside: str
    reading: Reading
    levels: tuple[Level, ...]

    @property
    @abstractmethod
    def regular(self) -> int:
        """Number of cells, ``other`` not included."""

    @property
    @abstractmethod
    def regular_labels(self) -> tuple[Label, ...]:
        """The label of every cell but ``other``, in order."""

    @property
    def implied_levels(self) -> tuple[Level, ...]:
        """Levels that the attribute has without their being declared."""
        return ()

    @property
    def has_other(self) -> bool:
        """Whether there is a last cell ``other``."""
        return OTHER in (self.null, self.outside)

    @property
    def size(self) -> int:
        """Number of cells, ``other`` included."""
        return self.regular + self.has_other

    @property
    def labels(self) -> tuple[Label, ...]:
        """The label of every cell, in order."""
        return (*self.regular_labels, OTHER) if self.has_other else self.regular_labels

    def level(self, name: str) -> Level:
        """Look up a level; ``other`` belongs to a group of that name.

        Args:
            name: of the level.

        Returns:
            The level over all cells, ``other`` included.

        Raises:
            InputError: there is none of this name.
        """
        found = find((*self.levels, *self.implied_levels), name)
        if not self.has_other:
            return found
        labels = found.labels if OTHER in found.labels else (*found.labels, OTHER)
        return Level(name, labels, (*found.cells, labels.index(OTHER)))

    def _keep(self, regular: int, allowed: tuple[str, ...], said: tuple[object, object, object, object], **own: object) -> None:
        """Set the fields of a kind that is being made: its own, what every kind has, and levels over its labels.

        Args:
            regular: number of cells without ``other``.
            allowed: what may be done with values outside.
            said: null, outside, reading and levels, as they were given.
            own: its own fields, checked.
        """
        for name, value in {**own, **common(type(self).__name__, regular, allowed, *said[:3])}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "levels", levels_of(self.regular_labels, said[3]) if said[3] else ())


def common(kind: str, regular: int, allowed: tuple[str, ...], null: object, outside: object, reading: object) -> dict[str, Any]:
    """Check what every kind has.

    Returns:
        The checked fields.
    """
    policies = {"null": "drop" if null is None else one_of("null", null, LISTED), "outside": one_of("outside", outside, allowed)}
    cells = regular + (OTHER in policies.values())
    if not cells <= MOST_CELLS:
        raise refuse(f"the number of cells of {kind}", cells, f"at most {MOST_CELLS}", "Choose a coarser attribute, for example Bins.")
    if isinstance(reading, Mapping):
        known: dict[str, Any] = known_keys(
            "reading", reading, ["column", "nulls", "decimal", "thousands", "currency", "trim", "ignore_case"]
        )
        reading = Reading(**known)
    if not isinstance(reading, Reading):
        raise refuse("reading", reading, "a Reading")
    return {**policies, "reading": reading}


def bound(name: str, value: Exact) -> Fraction:
    """Check an exact bound that doubles can be compared with."""
    number = exact(name, value)
    if not abs(number) <= MOST:
        raise refuse(name, number_text(number), "between -(2^53 - 1) and 2^53 - 1")
    return number


def number_text(number: Fraction) -> str:
    """Write an exact number as a decimal if it has one, else as a fraction.

    >>> number_text(Fraction(5, 2)), number_text(Fraction(1, 3))
    ('2.5', '1/3')
    """
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places == 0:
        return str(number)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def short(number: Fraction) -> str:
    """An exact number as Python writes it.

    >>> short(Fraction(2)), short(Fraction(1, 2))
    ('2', "'0.5'")
    """
    return str(number) if number.denominator == 1 else repr(number_text(number))


def written(kind: Kind, parts: list[str]) -> str:
    """The repr of a kind: what its own fields say, and what differs from the usual."""
    policies = [f"{key}={value!r}" for key, value in (("null", kind.null), ("outside", kind.outside)) if value != "drop"]
    rest = [] if kind.reading == READ_AS_IT_IS else [f"reading={kind.reading!r}"]
    rest += [f"levels={[level.to_json() for level in kind.levels]!r}"] if kind.levels else []
    return f"{type(kind).__name__}({', '.join([*parts, *policies, *rest])})"
