"""Kinds of attributes: what a column may hold, which cell a value falls into, and what happens to every other value.

The rule, which `leastnoise._adapters` applies to whole columns and whose words are part of the promise of a release:

1. **Null.** A missing value, a NaN and an empty text are null. ``null="drop"`` (the default) drops the row, ``null="other"`` puts it in
   the cell ``other``.
2. **Numbers** (for `Integers`, `Bins`, `Coded` and `Measure`). A number is read to double precision, and bounds and edges are compared with
   it as the doubles nearest to them: 0.3 lies on the edge 3/10 in a text, decimal, float32 or float64 column alike (a float32 is first
   written as the shortest decimal that means it), and whole numbers up to 2^53 are exact. Text is a number when it is an ASCII decimal such
   as ``17``, ``-1.50`` or ``2e3``, or an infinity; spaces around it do not matter; the text ``nan`` is a NaN. True is 1 and False is 0.
3. **Text** (for `Categories`). A value matches the category whose string form equals its own, letter for letter: spaces are not stripped,
   case counts, Unicode is not normalised. The string form of a whole number is its digits, also where it is stored as a float or a
   decimal (17.0 is ``17``); of another number its shortest decimal; of a Boolean ``true`` or ``false``; of a date ``2024-05-01``; of a
   time stamp ``2024-05-01 13:45:00``, in UTC if it has a time zone, and of one at midnight the date alone; of a UUID its usual form.
   Bytes that are UTF-8 are that text; other bytes, and numbers of more than 40 digits, have no string form. Text made of a whole number,
   a point and zeros (``17.0``) that matches no category is tried again as ``17``.
4. **Outside.** A value that is none of the cells follows ``outside``: ``drop`` the row, ``clip`` to the nearest cell (numbers only), or
   ``other``. Under ``clip``, text that is not a number has no nearest cell and follows ``null``.

A row is dropped as soon as one attribute that a query uses drops it; the others are not read. Whatever the rule does to one row depends
on that row alone.
"""

from dataclasses import dataclass
from fractions import Fraction

from leastnoise._check import Exact, InputError, exact, one_of, refuse, whole
from leastnoise._domain._names import attribute_name

OTHER = "other"
# Bounds stay where a double holds every whole number, so that reading a value as a double never moves it across a bound.
MOST = 2**53 - 1
# Codes fit uint32, and a table on one attribute alone already has 16 GiB of counts.
MOST_CELLS = 2**31
# Numerator and denominator of a unit stay within the doubles.
LEAST_UNIT = Fraction(1, 10**100)


def _policies(null: object, outside: object, allowed: tuple[str, ...]) -> tuple[str, str]:
    return ("drop" if null is None else one_of("null", null, ("drop", OTHER))), one_of("outside", outside, allowed)


def _bound(name: str, value: object) -> int:
    return whole(name, value, -MOST, MOST)


def _cells(kind: str, regular: int, *, other: bool) -> None:
    if not regular + other <= MOST_CELLS:
        raise refuse(
            f"the number of cells of {kind}", regular + other, f"at most {MOST_CELLS}", "Choose a coarser attribute, for example Bins."
        )


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


@dataclass(frozen=True, slots=True)
class Categories:
    """A column with a public list of values.

    Args:
        values: the categories in order, text or whole numbers or Booleans; compared by their string form (see the module's rule).
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what a value that is not listed does: ``"drop"`` the row or ``"other"``.

    Raises:
        InputError: no value, a value twice, a value that is neither text nor whole, or ``"other"`` beside a cell of that name.

    Edge cases: if ``null`` or ``outside`` is ``"other"`` there is one more cell, the last, labelled ``other``.

    >>> ln.Categories(["F", "M"], outside="other").labels
    ('F', 'M', 'other')
    >>> ln.Categories([1, 2, 3]).size
    3
    """

    values: tuple[str | int, ...]
    null: str = "drop"
    outside: str = "drop"

    def __post_init__(self) -> None:
        allowed = "a list of text or whole numbers that is not empty"
        if isinstance(self.values, (str, bytes)) or not hasattr(self.values, "__iter__"):
            raise refuse("categories", self.values, allowed)
        null, outside = _policies(self.null, self.outside, ("drop", OTHER))
        values = tuple(_category(value) for value in self.values)
        if not values:
            raise refuse("categories", [], allowed)
        _cells("Categories", len(values), other=OTHER in (null, outside))
        seen: set[str] = set()
        for value in values:
            if str(value) in seen:
                raise InputError(f"categories must differ from each other; got {value!r} twice. Values are compared by their string form.")
            seen.add(str(value))
        if OTHER in (null, outside) and OTHER in seen:
            raise InputError(
                "categories must not contain 'other' when null or outside is 'other', which adds a cell of that name. "
                "Leave 'other' out of the list: the added cell then holds it together with every value that is not listed."
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "null", null)
        object.__setattr__(self, "outside", outside)

    @property
    def has_other(self) -> bool:
        """Whether there is a last cell ``other``."""
        return OTHER in (self.null, self.outside)

    @property
    def size(self) -> int:
        """Number of cells, ``other`` included."""
        return len(self.values) + self.has_other

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The label of every cell, in order."""
        return (*self.values, OTHER) if self.has_other else self.values

    def __repr__(self) -> str:
        return _written("Categories", [repr(list(self.values))], self.null, self.outside)


def _category(value: object) -> str | int:
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
class Integers:
    """A column of whole numbers between two public bounds, both included.

    Args:
        low: the least value, at least -(2^53 - 1).
        high: the greatest value, above ``low``, at most 2^53 - 1.
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what another value does: ``"drop"`` the row, ``"clip"`` to the nearest whole number in the range (ties to the even one),
            or ``"other"``.

    Raises:
        InputError: a bound that is not a whole number, ``low`` not below ``high``, or over 2^31 cells.

    Edge cases: 17.5 is outside; under ``clip`` it becomes 18, and an infinity becomes the bound on its side.

    >>> ln.Integers(17, 20).labels
    (17, 18, 19, 20)
    """

    low: int
    high: int
    null: str = "drop"
    outside: str = "drop"

    def __post_init__(self) -> None:
        low, high = _bound("low", self.low), _bound("high", self.high)
        if not low < high:
            raise InputError(f"low must be below high; got low {low} and high {high}.")
        null, outside = _policies(self.null, self.outside, ("drop", "clip", OTHER))
        _cells("Integers", high - low + 1, other=OTHER in (null, outside))
        for name, value in (("low", low), ("high", high), ("null", null), ("outside", outside)):
            object.__setattr__(self, name, value)

    @property
    def has_other(self) -> bool:
        """Whether there is a last cell ``other``."""
        return OTHER in (self.null, self.outside)

    @property
    def size(self) -> int:
        """Number of cells, ``other`` included."""
        return self.high - self.low + 1 + self.has_other

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The label of every cell, in order."""
        return (*range(self.low, self.high + 1), *([OTHER] if self.has_other else []))

    def __repr__(self) -> str:
        return _written("Integers", [repr(self.low), repr(self.high)], self.null, self.outside)


@dataclass(frozen=True, slots=True)
class Coded:
    """A column that is already coded 0, 1, ..., size - 1.

    Args:
        size: the number of codes, at least 1.
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what another value does: ``"drop"`` the row or ``"other"``.

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

    def __init__(self, size: int, null: str | None = "drop", outside: str = "drop") -> None:
        codes = whole("size", size, 1, MOST_CELLS)
        nulls, outsides = _policies(null, outside, ("drop", OTHER))
        _cells("Coded", codes, other=OTHER in (nulls, outsides))
        for name, value in (("codes", codes), ("null", nulls), ("outside", outsides)):
            object.__setattr__(self, name, value)

    @property
    def has_other(self) -> bool:
        """Whether there is a last cell ``other``."""
        return OTHER in (self.null, self.outside)

    @property
    def size(self) -> int:
        """Number of cells, ``other`` included."""
        return self.codes + self.has_other

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The label of every cell, in order."""
        return (*range(self.codes), *([OTHER] if self.has_other else []))

    def __repr__(self) -> str:
        return _written("Coded", [repr(self.codes)], self.null, self.outside)


@dataclass(frozen=True, slots=True)
class Bins:
    """A numeric column cut into bins of equal width between two public bounds.

    Args:
        low: the lower bound, exact (``"0.1"`` is a tenth), between -(2^53 - 1) and 2^53 - 1.
        high: the upper bound, above ``low``.
        count: the number of bins, at least 1.
        closed: ``"left"``: a bin is [a, b), the last one is [a, high]. ``"right"``: a bin is (a, b], the first one is [low, b].
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what a number below ``low`` or above ``high`` does: ``"drop"`` the row, ``"clip"`` to the first or last bin, or
            ``"other"``.

    Raises:
        InputError: a bound that is not finite, ``low`` not below ``high``, or a count that is not a whole number from 1 to 2^31.

    Edge cases: edges are exact fractions; a value and an edge are compared as the doubles nearest to them, so that 0.3 lies on the edge
    3/10 also where a column holds it as a float, whose binary value is a little less.

    >>> ln.Bins(0, 1, 4).labels
    ('[0, 0.25)', '[0.25, 0.5)', '[0.5, 0.75)', '[0.75, 1]')
    >>> ln.Bins(0, 1, 2, closed="right").labels
    ('[0, 0.5]', '(0.5, 1]')
    """

    low: Fraction
    high: Fraction
    count: int
    closed: str = "left"
    null: str = "drop"
    outside: str = "drop"

    def __init__(
        self, low: Exact, high: Exact, count: int, *, closed: str = "left", null: str | None = "drop", outside: str = "drop"
    ) -> None:
        first, last = exact("low", low), exact("high", high)
        for name, value in (("low", first), ("high", last)):
            if not abs(value) <= MOST:
                raise refuse(name, number_text(value), "between -(2^53 - 1) and 2^53 - 1")
        if not first < last:
            raise InputError(f"low must be below high; got low {number_text(first)} and high {number_text(last)}.")
        bins = whole("count", count, 1, MOST_CELLS)
        one_of("closed", closed, ("left", "right"))
        nulls, outsides = _policies(null, outside, ("drop", "clip", OTHER))
        _cells("Bins", bins, other=OTHER in (nulls, outsides))
        fields = {"low": first, "high": last, "count": bins, "closed": closed, "null": nulls, "outside": outsides}
        for field, content in fields.items():
            object.__setattr__(self, field, content)

    @property
    def has_other(self) -> bool:
        """Whether there is a last cell ``other``."""
        return OTHER in (self.null, self.outside)

    @property
    def size(self) -> int:
        """Number of cells, ``other`` included."""
        return self.count + self.has_other

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The ``count + 1`` edges, exact, ``low`` first and ``high`` last."""
        width = (self.high - self.low) / self.count
        return tuple(self.low + width * place for place in range(self.count + 1))

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The label of every cell, in order."""
        texts = [number_text(edge) for edge in self.edges]
        left = self.closed == "left"
        bins = [
            f"{'[' if left or place == 0 else '('}{texts[place]}, {texts[place + 1]}{']' if not left or place == self.count - 1 else ')'}"
            for place in range(self.count)
        ]
        return (*bins, *([OTHER] if self.has_other else []))

    def __repr__(self) -> str:
        closed = [] if self.closed == "left" else [f"closed={self.closed!r}"]
        return _written("Bins", [_short(self.low), _short(self.high), repr(self.count), *closed], self.null, self.outside)


@dataclass(frozen=True, slots=True)
class Measure:
    """A numeric column to be summed: clipped to public bounds and counted in whole multiples of a unit.

    Args:
        column: the name of the column.
        low: the least value that counts, exact, a multiple of ``unit``.
        high: the greatest value that counts, above ``low``, a multiple of ``unit``.
        unit: what one counts, exact and above 0: ``"0.01"`` sums cents, ``"1000"`` thousands.

    Raises:
        InputError: a bound that is not finite or not a multiple of the unit, ``low`` not below ``high``, or a bound of more than 2^53 -
            1 units.

    Guarantees: every row contributes a whole number of units between ``low_units`` and ``high_units``, whatever it holds: a value is
    clipped and then rounded to the nearest multiple (in double precision, ties to the even one); a null and text that is not a number
    count as zero, clipped. It follows that one row changes a sum by at most ``largest`` units.

    >>> pay = ln.Measure("income", 0, 200_000, unit="0.01")
    >>> pay.low_units, pay.high_units, pay.largest
    (0, 20000000, 20000000)
    """

    column: str
    low: Fraction
    high: Fraction
    unit: Fraction

    def __init__(self, column: str, low: Exact, high: Exact, unit: Exact = "1") -> None:
        name, first, last, step = (
            attribute_name("the column of a measure", column),
            exact("low", low),
            exact("high", high),
            exact("unit", unit),
        )
        if not LEAST_UNIT <= step <= 1 / LEAST_UNIT:
            raise refuse("unit", unit, "a number above 0, between 1e-100 and 1e100")
        if not first < last:
            raise InputError(f"low must be below high; got low {number_text(first)} and high {number_text(last)}.")
        for field, value in (("low", first), ("high", last)):
            if (value / step).denominator != 1:
                raise refuse(
                    field, number_text(value), f"a whole multiple of the unit {number_text(step)}", "Choose another bound or unit."
                )
            if not abs(value / step) <= MOST:
                raise refuse(
                    field, number_text(value), f"at most 2^53 - 1 units of {number_text(step)}, for exact sums", "Choose a larger unit."
                )
        for field, content in {"column": name, "low": first, "high": last, "unit": step}.items():
            object.__setattr__(self, field, content)

    @property
    def low_units(self) -> int:
        """The lower bound in units."""
        return int(self.low / self.unit)

    @property
    def high_units(self) -> int:
        """The upper bound in units."""
        return int(self.high / self.unit)

    @property
    def largest(self) -> int:
        """The greatest amount, in units, that one row can add to or take from a sum."""
        return max(abs(self.low_units), abs(self.high_units))

    def __repr__(self) -> str:
        unit = [] if self.unit == 1 else [f"unit={_short(self.unit)}"]
        return f"Measure({', '.join([repr(self.column), _short(self.low), _short(self.high), *unit])})"


Kind = Categories | Integers | Bins | Coded


def _short(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else repr(number_text(number))


def _written(name: str, parts: list[str], null: str, outside: str) -> str:
    policies = [f"{key}={value!r}" for key, value in (("null", null), ("outside", outside)) if value != "drop"]
    return f"{name}({', '.join(parts + policies)})"
