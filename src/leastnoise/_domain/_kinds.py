"""Kinds of attributes: what a column may hold, which cell a value falls into, and what happens to every other value.

The rule, which `leastnoise._adapters` applies to whole columns and whose words are part of the promise of a release:

1. **Null.** A missing value, a NaN, an empty text and the spellings in ``reading.nulls`` are null. ``null="drop"`` (the default) drops
   the row, ``null="other"`` puts it in the cell ``other``.
2. **Numbers** (for `Integers`, `Decimals`, `Bins`, `Edges`, `Coded` and `Measure`). A number is read to double precision, and bounds
   and edges are compared with it as the doubles nearest to them: 0.3 lies on the edge 3/10 in a text, decimal, float32 or float64 column
   alike (a float32 is first written as the shortest decimal that means it), and whole numbers up to 2^53 are exact. Text is a number
   when it is an ASCII decimal such as ``17``, ``-1.50`` or ``2e3``, or an infinity; spaces around it do not matter; the text ``nan`` is
   a NaN. True is 1 and False is 0.
   Where the reading names a decimal mark, a thousands mark or currency signs, text is a number when it is written with these and no
   others, thousands in groups of three.
3. **Text** (for `Categories`). A value matches the category whose string form equals its own, letter for letter: spaces are not stripped,
   case counts, Unicode is not normalised. The string form of a whole number is its digits, also where it is stored as a float or a
   decimal (17.0 is ``17``); of another number its shortest decimal; of a Boolean ``true`` or ``false``; of a date ``2024-05-01``; of a
   time stamp ``2024-05-01 13:45:00``, in UTC if it has a time zone, and of one at midnight the date alone; of a UUID its usual form.
   Bytes that are UTF-8 are that text; other bytes, and numbers of more than 40 digits, have no string form. Text made of a whole number,
   a point and zeros (``17.0``) that matches no category is tried again as ``17``. ``trim`` and ``ignore_case`` of the reading are
   applied to both sides; a value may also be one of the further ``spellings`` of a category.
4. **Dates** (for `Dates`): see there.
5. **Outside.** A value that is none of the cells follows ``outside``: ``drop`` the row, ``clip`` to the nearest cell (numbers and dates),
   or ``other``. Under ``clip``, text that is no number or date has no nearest cell and follows ``null``.

A row is dropped as soon as one attribute that a query uses drops it; the others are not read. Whatever the rule does to one row depends
on that row alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastnoise._check import InputError, did_you_mean, one_of, refuse, whole
from leastnoise._domain._kind import LISTED, MOST, MOST_CELLS, ORDERED, OTHER, READ_AS_IT_IS, Kind, common, written
from leastnoise._domain._levels import Label, Level, levels_of
from leastnoise._domain._reading import Reading


@dataclass(frozen=True, slots=True)
class Categories(Kind):
    """A column with a public list of values.

    Args:
        values: the categories in order, text or whole numbers or Booleans; compared by their string form (see the module's rule).
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what a value that is not listed does: ``"drop"`` the row or ``"other"``.
        reading: how values are read; ``trim`` and ``ignore_case`` are about these.
        levels: public maps from categories to groups, such as ``{"region": {"Mainz": "south", "Kiel": "north"}}``.
        spellings: other texts that mean a category, such as ``{"true": ["yes", "1"]}``.

    Raises:
        InputError: no value, a value twice, a value that is neither text nor whole, ``"other"`` beside a cell of that name, or a spelling
            of two categories.

    Edge cases: if ``null`` or ``outside`` is ``"other"`` there is one more cell, the last, labelled ``other``.

    >>> ln.Categories(["F", "M"], outside="other").labels
    ('F', 'M', 'other')
    >>> ln.Categories([1, 2, 3]).size
    3
    """

    values: tuple[Label, ...]
    null: str = "drop"
    outside: str = "drop"
    reading: Reading = READ_AS_IT_IS
    levels: tuple[Level, ...] = ()
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        allowed = "a list of text or whole numbers that is not empty"
        if isinstance(self.values, (str, bytes)) or not hasattr(self.values, "__iter__"):
            raise refuse("categories", self.values, allowed)
        values = tuple(_category(value) for value in self.values)
        if not values:
            raise refuse("categories", [], allowed)
        fields = common("Categories", len(values), LISTED, self.null, self.outside, self.reading)
        seen: set[str] = set()
        for value in values:
            if fields["reading"].form(str(value)) in seen:
                raise InputError(f"categories must differ from each other; got {value!r} twice. Values are compared by their string form.")
            seen.add(fields["reading"].form(str(value)))
        if OTHER in (fields["null"], fields["outside"]) and OTHER in seen:
            raise InputError(
                "categories must not contain 'other' when null or outside is 'other', which adds a cell of that name. "
                "Leave 'other' out of the list: the added cell then holds it together with every value that is not listed."
            )
        spellings = _spellings(self.spellings, values, fields["reading"], seen)
        levels = levels_of(values, self.levels) if self.levels else ()
        for name, value in {"values": values, **fields, "levels": levels, "spellings": spellings}.items():
            object.__setattr__(self, name, value)

    @property
    def lookup(self) -> dict[str, int]:
        """The cell of every text that matches one, by its compared form."""
        places = {str(value): place for place, value in enumerate(self.values)}
        pairs = [(text, places[value]) for value, texts in self.spellings for text in texts]
        return {self.reading.form(text): place for text, place in (*places.items(), *pairs)}

    @property
    def regular(self) -> int:
        """Number of cells, ``other`` not included."""
        return len(self.values)

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The label of every cell but ``other``, in order."""
        return self.values

    def __repr__(self) -> str:
        spellings = [f"spellings={ {value: list(texts) for value, texts in self.spellings}!r}"] if self.spellings else []
        return written(self, [repr(list(self.values)), *spellings])


def _spellings(given: object, values: tuple[Label, ...], reading: Reading, taken: set[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Check further spellings; those of the categories themselves are taken."""
    pairs: list[Any] = list(given.items() if isinstance(given, Mapping) else given) if isinstance(given, (Mapping, tuple, list)) else [None]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise refuse("spellings", given, "a mapping from a category to a list of texts")
    known, found = {str(value) for value in values}, []
    for value, listed in pairs:
        category = str(_category(value))
        if category not in known:
            raise refuse("a category that spellings are given for", value, "one of the categories", did_you_mean(category, known))
        texts = tuple(listed) if isinstance(listed, (list, tuple)) else (None,)
        if not all(isinstance(text, str) and text for text in texts):
            raise refuse(f"spellings of {category!r}", listed, "a list of texts that are not empty")
        for text in texts:
            if reading.form(text) in taken:
                raise InputError(f"a spelling must mean one category; got {text!r} twice. Leave it out once.")
            taken.add(reading.form(text))
        found.append((category, texts))
    return tuple(found)


def _category(value: object) -> Label:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if not value:
            raise refuse("a category", value, "text that is not empty", "An empty text is a null; null='other' counts those.")
        return str(value)
    try:
        return whole("a category", value, -(2**63), 2**64 - 1)
    except InputError:
        raise refuse(
            "a category", value, "text or a whole number", "Write other numbers and dates as text, such as '0.5' or '2024-05-01'."
        ) from None


@dataclass(frozen=True, slots=True)
class Integers(Kind):
    """A column of whole numbers between two public bounds, both included.

    Args:
        low: the least value, at least -(2^53 - 1).
        high: the greatest value, above ``low``, at most 2^53 - 1.
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what another value does: ``"drop"`` the row, ``"clip"`` to the nearest whole number in the range (ties to the even one),
            or ``"other"``.
        rounding: what a number between two whole ones is: None: outside; ``"down"``, ``"up"``, or ``"nearest"`` (ties to the even one).
        reading: how values are read.
        levels: public maps to groups: ``{"five": {"width": 5}}`` makes 15 .. 19, 20 .. 24 and so on.

    Raises:
        InputError: a bound that is not a whole number, ``low`` not below ``high``, or over 2^31 cells.

    Edge cases: 17.5 is outside; under ``clip`` it becomes 18, and an infinity becomes the bound on its side. A number is rounded first and
        then compared with the bounds.

    >>> ln.Integers(17, 20).labels
    (17, 18, 19, 20)
    """

    low: int
    high: int
    null: str = "drop"
    outside: str = "drop"
    rounding: str | None = None
    reading: Reading = READ_AS_IT_IS
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        low, high = whole("low", self.low, -MOST, MOST), whole("high", self.high, -MOST, MOST)
        if not low < high:
            raise InputError(f"low must be below high; got low {low} and high {high}.")
        if self.rounding is not None:
            one_of("rounding", self.rounding, ("down", "nearest", "up"))
        self._keep(high - low + 1, ORDERED, (self.null, self.outside, self.reading, self.levels), low=low, high=high)

    @property
    def regular(self) -> int:
        """Number of cells, ``other`` not included."""
        return self.high - self.low + 1

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The label of every cell but ``other``, in order."""
        return tuple(range(self.low, self.high + 1))

    def __repr__(self) -> str:
        rounding = [] if self.rounding is None else [f"rounding={self.rounding!r}"]
        return written(self, [repr(self.low), repr(self.high), *rounding])


@dataclass(frozen=True, slots=True)
class Coded(Kind):
    """A column that is already coded 0, 1, ..., size - 1.

    Args:
        size: the number of codes, at least 1.
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what another value does: ``"drop"`` the row or ``"other"``.
        reading: how values are read.
        levels: public maps from codes to groups.

    Raises:
        InputError: a size that is not a whole number from 1 to 2^31.

    Edge cases: the code 3 may be stored as 3, 3.0 or the text ``3``. ``codes`` counts the codes alone, ``size`` also the cell ``other``
    if there is one.

    >>> ln.Coded(3).labels
    (0, 1, 2)
    >>> ln.Coded(3, outside="other").size
    4
    """

    codes: int
    null: str = "drop"
    outside: str = "drop"
    reading: Reading = READ_AS_IT_IS
    levels: tuple[Level, ...] = ()

    def __init__(
        self,
        size: int,
        null: str | None = "drop",
        outside: str = "drop",
        *,
        reading: Reading = READ_AS_IT_IS,
        levels: Mapping[str, Mapping[Any, Any]] | Sequence[Level] = (),
    ) -> None:
        codes = whole("size", size, 1, MOST_CELLS)
        self._keep(codes, LISTED, (null, outside, reading, levels), codes=codes)

    @property
    def regular(self) -> int:
        """Number of cells, ``other`` not included."""
        return self.codes

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The label of every cell but ``other``, in order."""
        return tuple(range(self.codes))

    def __repr__(self) -> str:
        return written(self, [repr(self.codes)])
