"""Define the kinds of attributes, and read and write them as JSON.

A kind defines which values a column may have, in which cell each of these values is counted, and
how all other values are treated.

The rule follows. `leastnoise._trusted.reading` applies these rules to whole columns. Their wording
is part of the promise of a release:

1. **Null.** A missing value, a NaN, an empty text and the spellings in ``reading.nulls`` are null.
  ``null="drop"`` (the default) drops
   the row, ``null="other"`` puts it in the cell ``other``, ``null="cell"`` in a separate cell,
   ``(null)``.
2. **Numbers** (for `Integers`, `Decimals`, `Bins`, `Edges`, `Coded` and `Measure`). A number is
  read to double precision, and bounds
   and edges are compared with it as the doubles nearest to them: 0.3 lies on the edge 3/10 in a
   text, decimal, float32 or float64 column alike (a float32 is first written as the shortest
   decimal that means it), and whole numbers up to 2^53 are exact. docs/spec.md lists
   the texts that are numbers ("How a text is read"), the same under every reading
   but for its decimal mark, its mark of thousands and its currency signs. The text ``nan`` is a
   null. An infinity, as a text or as a float, is not a number. The Booleans True and False are read
   as 1 and 0.
3. **Text** (for `Categories`). A value belongs to the category that has the same string form,
   letter for letter: spaces are not stripped, case matters, and Unicode is not normalised. The
   string form of a whole number is its digits, also where it is stored as a float or a decimal
   (17.0 is ``17``); of another number, its shortest decimal; of a Boolean, ``true`` or ``false``;
   of a date, ``2024-05-01``; of a time stamp, ``2024-05-01 13:45:00``, in UTC if it has a time
   zone, and only the date if the time is midnight; of a UUID, its usual form. Bytes in UTF-8 are
   read as text. Other bytes, and numbers of more than 40 digits, have no string form. A text that
   consists of a whole number, a point and zeros, such as ``17.0``, counts as ``17``. The same holds
   for a category. ``trim`` and ``ignore_case`` of the reading are applied to both sides; a value
   may also be one of the further ``spellings`` of a category.
4. **Dates** (for `Dates`): see there.
5. **Outside.** A value without a cell is treated by ``outside``: ``drop`` the row, ``clip`` to the
   nearest cell (numbers and dates), ``other``, or ``cell``: count it in the cell ``(outside)``.
   Under ``clip``, a text that is not a number or a date has no nearest cell, and is treated as
   ``null`` says.

A row whose value is dropped is missing only in the tables of this attribute. If there are other
tables, planning gives the attribute a ``hidden`` last cell for these rows, which is measured and
never published. There is no hidden cell in two cases: all tables have the attribute, or the
attribute is declared ``complete``. In these cases the row is dropped from every table. Attributes
that no query uses are not read. The result of the rule for a row depends only on that row.
"""

import datetime as dt
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from fractions import Fraction
from itertools import chain
from typing import Any

from leastnoise._domain._dates import Dates
from leastnoise._trusted.check import (
    InputError,
    did_you_mean,
    message,
    number_text,
    one_of,
    refuse,
    whole,
)
from leastnoise._trusted.domain import (
    LISTED,
    MOST,
    MOST_CELLS,
    NULL_LABEL,
    ORDERED,
    OTHER,
    OUTSIDE_LABEL,
    READ_AS_IT_IS,
    CompleteCount,
    DeviationProduct,
    Kind,
    Label,
    Level,
    Measure,
    Reading,
    SquaredDeviation,
    UnitCount,
    UnitTotal,
    ValueCount,
    Weighted,
    added_fields,
    attribute_name,
    check_bound,
    check_bounds_order,
    checked_keys,
    kind_of_argument,
    plain_json,
    read_domain_parts,
)

_TWICE = (
    "categories must differ from each other; got {value!r} twice. "
    "Values are compared by their string form."
)
_ZEROS_AFTER_POINT = re.compile(r"(-?[0-9]+)\.0+", re.ASCII)
_MOST_KEYS = 10**6  # the most categories that a search may find, all of which are in memory
_MOST_KEY_LENGTH = 1000  # characters of a key, against texts that fill the memory
_DEFAULT_KEY_LENGTH = 200  # characters of a key, if the spec does not say


@dataclass(frozen=True, slots=True, repr=False)
class Categories(Kind):
    """A column with a public list of values.

    Args:
        values: the categories in order: texts, whole numbers or Booleans. They are compared by
            their string form (see the rule of the module).
        null: how to treat a null: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        outside: how to treat a value that is not listed: ``"drop"`` the row, ``"other"`` or
            ``"cell"``.
        reading: how values are read; ``trim`` and ``ignore_case`` apply to categories.
        levels: public maps from categories to groups, such as ``{"region": {"Mainz": "south",
            "Kiel": "north"}}``.
        spellings: other texts that mean a category, such as ``{"true": ["yes", "1"]}``.

    Raises:
        InputError: there is no value; a value occurs twice or is neither text nor whole;
            ``"other"`` is used although a cell has that name; or two categories have the same
            spelling.

    Edge cases: if ``null`` or ``outside`` is ``"other"``, an additional last cell has the label
        ``other``.

    >>> ln.Categories(["F", "M"], outside="other").labels
    ('F', 'M', 'other')
    >>> ln.Categories([1, 2, 3]).size
    3
    """

    values: tuple[Label, ...]
    _: KW_ONLY
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        allowed = "a list of text or whole numbers that is not empty"
        if isinstance(self.values, (str, bytes)) or not hasattr(self.values, "__iter__"):
            raise refuse("categories", self.values, allowed)
        values = tuple(map(_category, self.values))
        if not values:
            raise refuse("categories", [], allowed)
        self._set_fields(len(values), LISTED, values=values)
        forms = [compared_form(self.reading, str(value)) for value in values]
        distinct_forms = {*forms}
        if len(distinct_forms) < len(forms):
            first: dict[str, int] = {}
            repeated = next(
                values[cell]
                for cell, form in enumerate(forms)
                if first.setdefault(form, cell) < cell
            )
            raise InputError(message(_TWICE, value=repeated))
        for label in (NULL_LABEL, OUTSIDE_LABEL):
            if label in self.further_labels and label in distinct_forms:
                raise InputError(
                    f"categories must not contain {label!r} if null or outside is 'cell', because "
                    "this setting adds a cell with this name. Rename the category."
                )
        if self.has_other and OTHER in distinct_forms:
            raise InputError(
                "categories must not contain 'other' if null or outside is 'other', because this "
                "setting adds a cell with this name. Leave 'other' out of the list: the added cell "
                "then counts it together with every value that is not listed."
            )
        object.__setattr__(
            self, "spellings", _spellings(self.spellings, values, self.reading, distinct_forms)
        )
        self._set_levels()

    @property
    def spellings_of_cells(self) -> Mapping[str, int]:
        """The cell of each text of a category, by the text's normalised form."""
        return self.lookup

    @property
    def lookup(self) -> dict[str, int]:
        """The cell of each text of a category, by the text's normalised form."""
        cells = {str(value): cell for cell, value in enumerate(self.values)}
        pairs = [*cells.items()]
        for value, texts in self.spellings:
            pairs += [(text, cells[value]) for text in texts]
        lookup = {}
        for text, cell in pairs:
            lookup[self.reading.form(text)] = cell
            lookup[compared_form(self.reading, text)] = cell
        return lookup

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The labels of listed categories, without the cells for other values."""
        return self.values


@kind_of_argument.register(list)
@kind_of_argument.register(tuple)
def _(values: list[object] | tuple[object, ...]) -> Categories:
    """Return the categories that a list of values describes."""
    return Categories(tuple(values))  # type: ignore[arg-type]  # checked there


def _spellings(
    spelling_map: object, values: tuple[Label, ...], reading: Reading, used_forms: set[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Check the additional spellings of categories, and return them sorted."""
    pairs: list[Any]
    if isinstance(spelling_map, Mapping):
        pairs = list(spelling_map.items())
    elif isinstance(spelling_map, (tuple, list)):
        pairs = list(spelling_map)
    else:
        pairs = [None]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise refuse("spellings", spelling_map, "a mapping from a category to a list of texts")
    category_texts = {*map(str, values)} if pairs else set()
    spellings = []
    for value, category_spellings in pairs:
        category = str(_category(value))
        if category not in category_texts:
            raise refuse(
                "a key of spellings",
                value,
                "one of the categories",
                did_you_mean(category, category_texts),
            )
        if isinstance(category_spellings, (list, tuple)):
            texts = tuple(category_spellings)
        else:
            texts = (None,)
        if not all(isinstance(text, str) and text for text in texts):
            raise refuse(
                f"spellings of {category!r}",
                category_spellings,
                "a list of texts that are not empty",
            )
        for text in texts:
            form = compared_form(reading, text)
            if form in used_forms:
                raise InputError(
                    f"a spelling must belong to only one category; got {text!r} twice. Leave it "
                    "out once."
                )
            used_forms.add(form)
        spellings.append((category, texts))
    return tuple(spellings)


def compared_form(reading: Reading, text: str) -> str:
    """Return the form of a text that is compared with categories: 17 for 17.0."""
    form = reading.form(text)
    match = _ZEROS_AFTER_POINT.fullmatch(form)
    if match is None:
        return form
    return "0" if match.group(1) == "-0" else match.group(1)


def _category(value: object) -> Label:
    """Check one category, which must be a text or an integer, and return it."""
    if isinstance(value, str):
        if not value:
            raise refuse(
                "a category",
                value,
                "text that is not empty",
                "An empty text is a null; null = 'other' counts nulls.",
            )
        return str(value)
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    try:
        return whole("a category", value, -(2**63), 2**64 - 1)
    except InputError:
        raise refuse(
            "a category",
            value,
            "text or a whole number of at most 64 bits",
            "Write other numbers and dates as text, such as '0.5' or '2024-05-01'.",
        ) from None


@dataclass(frozen=True, slots=True, repr=False)
class Integers(Kind):
    """A column of whole numbers between two public bounds, both included.

    Args:
        low: the smallest value, at least -(2^53 - 1).
        high: the largest value, above ``low``, at most 2^53 - 1.
        null: how to treat a null: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        outside: how to treat another value: ``"drop"`` the row, ``"clip"`` to the nearest whole
            number in the range (ties to the even one), ``"other"`` or ``"cell"``.
        rounding: how to round a number between two whole numbers: ``"down"``, ``"up"`` or
            ``"nearest"`` (ties to the even number). With None such a number is outside.
        reading: how values are read.
        levels: public maps to groups: ``{"five": {"width": 5}}`` makes 15 .. 19, 20 .. 24 and so
            on; the first and the last group end at the bounds.

    Raises:
        InputError: a bound is not a whole number, ``low`` is not below ``high``, or there are over
            2^31 cells.

    Edge cases: the value 17.5 is outside; under ``clip`` it becomes 18, and an infinity becomes the
    nearest bound. A number is rounded first and then compared with the bounds.

    >>> ln.Integers(17, 20).labels
    (17, 18, 19, 20)
    """

    low: int
    high: int
    _: KW_ONLY
    rounding: str | None = None

    def __post_init__(self) -> None:
        low = whole("low", self.low, -MOST, MOST)
        high = whole("high", self.high, -MOST, MOST)
        check_bounds_order(low, high)
        if self.rounding is not None:
            one_of("rounding", self.rounding, ("down", "nearest", "up"))
        self._set_fields(high - low + 1, ORDERED, low=low, high=high)
        self._set_levels()

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The labels of the cells between the bounds."""
        return tuple(range(self.low, self.high + 1))

    def cell_of_number(self, number: Fraction) -> int | None:
        """Return the cell of an exact number; None if it is not a value."""
        is_cell = number.denominator == 1 and self.low <= number <= self.high
        if is_cell:
            return int(number) - self.low
        return None


@dataclass(frozen=True, slots=True, repr=False)
class Coded(Kind):
    """A column that is already coded 0, 1, ..., size - 1.

    Args:
        size: the number of codes, at least 1.
        null: how to treat a null: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        outside: how to treat another value: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        reading: how values are read.
        levels: public maps from codes to groups.

    Raises:
        InputError: the size is not a whole number from 1 to 2^31.

    Edge cases: a column may store the code 3 as 3, 3.0 or the text ``3``. ``codes`` is the number
    of codes; ``size`` also counts the cell ``other`` if there is one.

    >>> ln.Coded(3).labels
    (0, 1, 2)
    >>> ln.Coded(3, outside="other").size
    4
    """

    codes: int

    def __init__(
        self,
        size: int,
        *,
        null: str | None = "drop",
        outside: str = "drop",
        reading: Reading = READ_AS_IT_IS,
        levels: Any = (),
        complete: bool = False,
        hidden: bool = False,
    ) -> None:
        for name, value in {
            "null": null,
            "outside": outside,
            "reading": reading,
            "levels": levels,
            "complete": complete,
            "hidden": hidden,
        }.items():
            object.__setattr__(self, name, value)
        codes = whole("size", size, 1, MOST_CELLS)
        self._set_fields(codes, LISTED, codes=codes)
        self._set_levels()

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The labels of the codes."""
        return tuple(range(self.codes))

    def cell_of_number(self, number: Fraction) -> int | None:
        """Return the cell of an exact number; None if it is not a code."""
        is_cell = number.denominator == 1 and 0 <= number < self.codes
        if is_cell:
            return int(number)
        return None


def _intervals(kind: Any) -> tuple[Label, ...]:
    """Return the labels of bins, such as ``[0, 500)``, from their edges."""
    texts = [*map(number_text, kind.edges)]
    left = kind.closed == "left"
    return tuple(
        f"{'[' if left or cell == 0 else '('}{texts[cell]}, "
        f"{texts[cell + 1]}{']' if not left or cell == kind.regular - 1 else ')'}"
        for cell in range(kind.regular)
    )


@dataclass(frozen=True, slots=True, repr=False)
class Bins(Kind):
    """A numeric column in bins of equal width between two public bounds.

    Args:
        low: the lower bound, exact (``"0.1"`` is a tenth), between -(2^53 - 1) and 2^53 - 1.
        high: the upper bound, above ``low``.
        count: the number of bins, at least 1.
        closed: ``"left"``: a bin is [a, b), the last one is [a, high]. ``"right"``: a bin is (a,
            b], the first one is [low, b].
        null: how to treat a null: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        outside: how to treat a number below ``low`` or above ``high``: ``"drop"`` the row,
            ``"clip"`` to the first or last bin, ``"other"`` or ``"cell"``.
        reading: how values are read.
        levels: public maps from the bins' labels to groups.

    Raises:
        InputError: a bound is not finite; ``low`` is not below ``high``; or the count is not a
            whole number from 1 to 2^31.

    Edge cases: edges are exact fractions. A value and an edge are compared as the doubles nearest
        to them. So 0.3 lies on the edge 3/10 even if a column stores it as a float, whose binary
        value is a little less.

    >>> ln.Bins(0, 1, 4).labels
    ('[0, 0.25)', '[0.25, 0.5)', '[0.5, 0.75)', '[0.75, 1]')
    >>> ln.Bins(0, 1, 2, closed="right").labels
    ('[0, 0.5]', '(0.5, 1]')
    """

    low: Any
    high: Any
    count: int
    _: KW_ONLY
    closed: str = "left"

    def __post_init__(self) -> None:
        low = check_bound("low", self.low)
        high = check_bound("high", self.high)
        check_bounds_order(low, high)
        bins = whole("count", self.count, 1, MOST_CELLS)
        one_of("closed", self.closed, ("left", "right"))
        self._set_fields(bins, ORDERED, low=low, high=high, count=bins)
        self._set_levels()

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The ``count + 1`` edges, exact, ``low`` first and ``high`` last."""
        width = (self.high - self.low) / self.count
        return tuple(self.low + width * edge for edge in range(self.count + 1))

    regular_labels = property(_intervals)


@dataclass(frozen=True, slots=True, repr=False)
class Edges(Kind):
    """A numeric column in bins between listed public edges.

    Args:
        edges: at least two exact numbers in ascending order, between -(2^53 - 1) and 2^53 - 1.
        closed: as for `Bins`.
        null: how to treat a null: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        outside: as for `Bins`.
        reading: how values are read.
        levels: public maps from the bins' labels to groups.

    Raises:
        InputError: there are fewer than two edges, or they are not ascending.

    Edge cases: as for `Bins`. Two edges must also differ as doubles, because a bin between equal
    doubles could have no values.

    >>> ln.Edges(["0", "9.99", "50"]).labels
    ('[0, 9.99)', '[9.99, 50]')
    """

    edges: Any
    _: KW_ONLY
    closed: str = "left"

    def __post_init__(self) -> None:
        if isinstance(self.edges, (str, bytes)) or not isinstance(self.edges, Iterable):
            raise refuse("edges", self.edges, "a list of at least two numbers")
        edges = tuple(check_bound("an edge", edge) for edge in self.edges)
        if not len(edges) >= 2:
            raise refuse(
                "edges", [number_text(edge) for edge in edges], "a list of at least two numbers"
            )
        for below, above in itertools.pairwise(edges):
            if not float(below) < float(above):
                raise InputError(
                    f"edges must increase; got {number_text(below)} before {number_text(above)}."
                )
        one_of("closed", self.closed, ("left", "right"))
        self._set_fields(len(edges) - 1, ORDERED, edges=edges)
        self._set_levels()

    @property
    def low(self) -> Any:
        """The first edge."""
        return self.edges[0]

    @property
    def high(self) -> Any:
        """The last edge."""
        return self.edges[-1]

    regular_labels = property(_intervals)


@dataclass(frozen=True, slots=True, repr=False)
class Decimals(Kind):
    """A column of numbers in equal steps.

    Examples are heights 120, 120.5, 121 ... in half centimetres.

    Args:
        low: the smallest value, exact, between -(2^53 - 1) and 2^53 - 1.
        high: the largest value, which must be a whole number of steps above ``low``.
        step: the difference between one value and the next, exact and above 0.
        null: how to treat a null: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        outside: how to treat other numbers, such as numbers between two values: ``"drop"`` the row,
            ``"clip"`` to the nearest value (the upper one of two), ``"other"`` or ``"cell"``.
        reading: how values are read.
        levels: public maps from values, as text, to groups.

    Raises:
        InputError: a bound is not finite or not a whole number of steps away; ``low`` is not below
            ``high``; or doubles cannot distinguish the steps.

    Edge cases: a number has the cell of a value if both have the same nearest double. So 165.5 has
        a cell in text, decimal, float32 and float64 columns.

    >>> ln.Decimals("1", "2", "0.5").labels
    ('1', '1.5', '2')
    """

    low: Any
    high: Any
    step: Any

    def __post_init__(self) -> None:
        low = check_bound("low", self.low)
        high = check_bound("high", self.high)
        step = check_bound("step", self.step)
        check_bounds_order(low, high)
        if not step > 0:
            raise refuse("step", self.step, "a number above 0")
        count = (high - low) / step
        if count.denominator != 1:
            raise refuse(
                "high",
                number_text(high),
                f"a whole number of steps of {number_text(step)} above {number_text(low)}",
            )
        if not max(abs(low), abs(high)) / step < 2**50:
            raise refuse(
                "step",
                number_text(step),
                "at least 2^-50 of the bounds, so that doubles tell the values apart",
            )
        self._set_fields(int(count) + 1, ORDERED, low=low, high=high, step=step)
        self._set_levels()

    @property
    def values(self) -> tuple[Fraction, ...]:
        """The values, exact, in order."""
        return tuple(self.low + self.step * cell for cell in range(self.regular))

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The values as decimals."""
        return tuple(number_text(value) for value in self.values)

    def cell_of_number(self, number: Fraction) -> int | None:
        """Return the cell of an exact number; None if it is not a value."""
        steps = (number - self.low) / self.step
        is_cell = steps.denominator == 1 and 0 <= steps < self.regular
        if is_cell:
            return int(steps)
        return None


@dataclass(frozen=True, slots=True, repr=False)
class Unknown(Kind):
    """An attribute whose categories must be found by a private search.

    The function `leastnoise.find_categories` finds the categories that many people have.

    Args:
        most: the public largest number of categories; those with the largest noisy counts are kept.
            Before the search, plans assume that this many categories exist.
        longest: the largest number of characters of a category; a longer text is outside.
        null: how to treat a null after the search: ``"drop"`` the row, ``"other"`` or ``"cell"``.
        outside: how to treat a value that was not found: ``"drop"`` the row, ``"other"`` or
            ``"cell"``.
        reading: how values are read; ``trim`` and ``ignore_case`` are applied before values are
            counted.

    Raises:
        InputError: ``most`` is below 1 or above 10^6; ``longest`` is below 1 or above 1000; or
            there are levels, which are not allowed because they need known categories.

    Edge cases: a search finds no nulls, no values without a string form (see `Categories`), no
    texts that are too long, and no texts with control characters.

    >>> ln.Unknown(10000, outside="other").size
    10001
    """

    most: int
    _: KW_ONLY
    longest: int = _DEFAULT_KEY_LENGTH

    def __post_init__(self) -> None:
        most = whole("most", self.most, 1, _MOST_KEYS)
        longest = whole("longest", self.longest, 1, _MOST_KEY_LENGTH)
        if self.levels:
            raise InputError(
                "unknown categories have no levels: find the categories first, then map them."
            )
        self._set_fields(most, LISTED, most=most, longest=longest)
        self._set_levels()

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """Placeholder labels, for categories that are not found yet."""
        return tuple(f"category {number}" for number in range(1, self.most + 1))

    def to_categories(self, texts: tuple[str, ...]) -> Categories:
        """Return the attribute with categories that a search has found.

        Args:
            texts: the categories after reading.

        Raises:
            InputError: there is no category.

        >>> ln.Unknown(9, outside="other").to_categories(("curl", "wget")).labels
        ('curl', 'wget', 'other')
        """
        categories = tuple(text for text in texts if text not in self.further_labels)
        if not categories:
            raise InputError(
                "No category was found, because no category has enough people to reach the "
                "threshold. Give the search more of the budget or a larger delta, let a person "
                "count in fewer categories (max_rows), or use coarser categories."
            )
        return Categories(
            categories,
            null=self.null,
            outside=self.outside,
            reading=self.reading,
            complete=self.complete,
        )


# In JSON, values at their default are left out, so that equal values have equal JSON.
_KINDS: dict[str, type[Kind]] = {
    "categories": Categories,
    "integers": Integers,
    "decimals": Decimals,
    "bins": Bins,
    "edges": Edges,
    "dates": Dates,
    "coded": Coded,
    "unknown": Unknown,
}


def _fields(kind: type[Kind]) -> dict[str, tuple[str, Any]]:
    """Map the JSON key of each field to the field's name and default value.

    The default is `MISSING` if the key is required.
    """
    named = [*added_fields(kind), *(field for field in fields(Kind) if field.init)]
    return {
        "size" if field.name == "codes" else field.name: (
            field.name,
            field.default if field.kw_only else MISSING,
        )
        for field in named
    }


@plain_json.register
def kind_to_json(kind: Kind) -> dict[str, Any]:
    """Convert a kind of attribute to a JSON object."""
    word = next(word for word, kinds in _KINDS.items() if isinstance(kind, kinds))
    values = {
        key: (getattr(kind, name), usual) for key, (name, usual) in _fields(type(kind)).items()
    }
    return {
        "kind": word,
        **{key: _plain(value) for key, (value, usual) in values.items() if value != usual},
    }


def _plain(value: object) -> Any:
    """Convert a setting of an attribute to a JSON value."""
    if isinstance(value, (Level, Reading)):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return str(value)
    return value


def kind_from_json(value: Mapping[str, Any]) -> tuple[str, Kind]:
    """Parse the JSON object of an attribute into its name and its kind."""
    all_fields = sorted(set(chain.from_iterable(_fields(kind) for kind in _KINDS.values())))
    table = checked_keys("an attribute in JSON", value, ["name", "kind", *all_fields])
    name = attribute_name("'name' of an attribute in JSON", table.pop("name", None))
    word = table.pop("kind", None)
    if not isinstance(word, str) or word not in _KINDS:
        raise refuse(
            f"'kind' of the attribute {name!r}",
            word,
            "one of " + ", ".join(repr(key) for key in _KINDS),
        )
    kind = _KINDS[word]
    arguments: dict[str, Any] = checked_keys(
        f"the attribute {name!r} in JSON", table, list(_fields(kind))
    )
    for key, (_, usual) in _fields(kind).items():
        if usual is MISSING and key not in arguments:
            raise InputError(
                f"the attribute {name!r} in JSON must have {key!r}, as every attribute of kind "
                f"{word!r}."
            )
    return name, kind(**arguments)


@plain_json.register
def measure_to_json(measure: Measure) -> dict[str, Any]:
    """Convert a measure to a JSON object."""
    if isinstance(measure, UnitCount):
        written_groups = [
            None if along is None else [list(group) for group in along] for along in measure.groups
        ]
        if measure.has_groups:
            groups = {"groups": written_groups}
        else:
            groups = {}
        return {"units_of": list(measure.attributes), **groups}
    if isinstance(measure, SquaredDeviation):
        return {"square_of": measure_to_json(measure.of)}
    if isinstance(measure, CompleteCount):
        return {"complete": list(map(measure_to_json, measure.present))}
    if isinstance(measure, DeviationProduct):
        positions = [measure.present.index(factor) for factor in measure.factors]
        return {"complete": list(map(measure_to_json, measure.present)), "product_of": positions}
    if isinstance(measure, Weighted):
        return {"of": measure_to_json(measure.of), "weighted_by": measure_to_json(measure.weight)}
    written: dict[str, Any] = {"column": measure.column}
    if not isinstance(measure, ValueCount):
        written |= {"low": str(measure.low), "high": str(measure.high), "unit": str(measure.unit)}
    if isinstance(measure, UnitTotal):
        written["total_by"] = list(measure.attributes)
    return written | {
        name: value for name, value in {"reading": measure.reading.to_json()}.items() if value
    }


_PARTS = ("column", "low", "high", "unit", "reading")


def _complete_measure_from_json(value: Mapping[str, Any]) -> tuple[str, Measure]:
    """Parse a JSON object about complete rows into a name and a measure."""
    parts: dict[str, Any] = checked_keys(
        "a measure of complete rows in JSON", value, ["name", "complete", "product_of"]
    )
    name = attribute_name("'name' of a measure of complete rows in JSON", parts.get("name"))
    listed = parts["complete"]
    if not isinstance(listed, list):
        raise refuse("'complete' in JSON", listed, "a list of measures")
    present = [
        measure_from_json({"name": name, **checked_keys("a measure", entry, _PARTS)})[1]
        for entry in listed
    ]
    if "product_of" not in parts:
        return name, CompleteCount(present)
    positions = parts["product_of"]
    if not isinstance(positions, list):
        raise refuse("'product_of' in JSON", positions, "a list of positions in 'complete'")
    factors = [
        present[whole("a position in 'product_of'", position, 0, len(present) - 1)]
        for position in positions
    ]
    return name, DeviationProduct(factors, present)


def measure_from_json(value: Mapping[str, Any]) -> tuple[str, Measure]:
    """Parse the JSON object of a measure into its name and the measure."""
    if "units_of" in value:
        counted: dict[str, Any] = checked_keys(
            "a count of units in JSON", value, ["name", "units_of", "groups"]
        )
        name = attribute_name("'name' of a count of units in JSON", counted.get("name"))
        return name, UnitCount(counted["units_of"], counted.get("groups"))
    if "square_of" in value:
        square: dict[str, Any] = checked_keys(
            "a squared deviation in JSON", value, ["name", "square_of"]
        )
        name = attribute_name("'name' of a squared deviation in JSON", square.get("name"))
        parts = checked_keys("a measure", square.get("square_of"), _PARTS)
        return name, SquaredDeviation(measure_from_json({"name": name, **parts})[1])
    if "complete" in value:
        return _complete_measure_from_json(value)
    if "weighted_by" in value:
        product: dict[str, Any] = checked_keys(
            "a weighted measure in JSON", value, ["name", "of", "weighted_by"]
        )
        name = attribute_name("'name' of a weighted measure in JSON", product.get("name"))
        measured, weight = (
            measure_from_json(
                {"name": name, **checked_keys("a measure", product.get(key), _PARTS)}
            )[1]
            for key in ("of", "weighted_by")
        )
        return name, Weighted(measured, weight)
    is_total = "total_by" in value
    if is_total:
        keys = ["name", "column", "low", "high", "unit", "total_by"]
    elif {*value} - {"name", "column", "reading"}:
        keys = ["name", "column", "low", "high", "unit"]
    else:
        keys = ["name", "column"]
    arguments: dict[str, Any] = checked_keys("a measure in JSON", value, [*keys, "reading"])
    if missing := [key for key in keys if key not in arguments]:
        raise InputError(f"a measure in JSON must have {missing[0]!r}.")
    marks: dict[str, Any] = checked_keys(
        "reading", arguments.pop("reading", {}), [field.name for field in fields(Reading)]
    )
    name = attribute_name("'name' of a measure in JSON", arguments.pop("name"))
    reading = Reading(**marks)
    if is_total:
        attributes = arguments.pop("total_by")
        return name, UnitTotal(**arguments, by=attributes, reading=reading)
    measure = Measure(**{"low": 0, "high": 1} | arguments, reading=reading)
    return name, measure if "low" in arguments else ValueCount(measure)


@read_domain_parts.register(object)
def _(value: object) -> tuple[list[tuple[str, Kind]], dict[str, Measure]]:
    """Parse the JSON object of a domain into its attributes and its measures."""
    table: dict[str, Any] = checked_keys("a domain in JSON", value, ["attributes", "measures"])
    for key in ("attributes", "measures"):
        if not isinstance(table.get(key), (list, tuple)):
            raise refuse(f"{key!r} of a domain in JSON", table.get(key), "a list")
    kinds = list(map(kind_from_json, table["attributes"]))
    measures = list(map(measure_from_json, table["measures"]))
    if len(dict(measures)) != len(measures):
        raise InputError("measures must have different names; got a name twice in 'measures'.")
    return kinds, dict(measures)
