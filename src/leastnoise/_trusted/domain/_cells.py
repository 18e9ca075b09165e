"""Define the tables by which values find their cells.

They are the trusted part of attributes (E3 of PROOFS-reading.md).

A kind makes its table from public bounds, edges, days and texts, in `_rules`. Kinds are not
trusted, but this module checks the cells of every table. So for any kind, a value has one cell of
the attribute or drops its row, and only this value decides which.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from leastnoise._trusted.check import InternalError, plain, whole
from leastnoise._trusted.domain._reading import Reading

# Bounds stay where a double holds every whole number, so that reading a value as a double never
# moves it across a bound.
MOST = 2**53 - 1
# Codes fit uint32, and a table on just one attribute already has 16 GiB of counts.
MOST_CELLS = 2**31
READ_AS_IT_IS = Reading()
# A row with this cell in any attribute is dropped.
DROP = -1
_STRANGE = {
    "Cc",
    "Cs",
}  # control characters, and halves of characters, which no file in UTF-8 holds


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A table of whole numbers in equal steps.

    From ``low`` to ``high``, the cell is the number of whole steps above ``origin``.

    Attributes:
        low: the smallest number inside the table.
        high: the largest number inside the table.
        origin: the number at which cell 0 begins; at most ``low``.
        step: the width of a cell.
        again: the number of cells after which cell 0 follows again; None if the cells do not
            repeat.
        rounding: how a number between two integers is rounded: ``"down"``, ``"up"`` or
            ``"nearest"`` (ties to the even integer). With None such a number is outside the table.
    """

    low: int
    high: int
    origin: int
    step: int = 1
    again: int | None = None
    rounding: str | None = None

    def __post_init__(self) -> None:
        numbers = (
            self.low,
            self.high,
            self.origin,
            self.step,
            0 if self.again is None else self.again,
        )
        inside = (
            all(type(number) is int for number in numbers)
            and -MOST <= self.origin <= self.low <= self.high <= MOST
            and self.rounding in (None, "down", "up", "nearest")
        )
        if not (inside and self.step >= 1 and (self.again is None or self.again >= 1)):
            raise InternalError(
                "steps must be whole numbers that doubles hold; please report this."
            )

    def cells(self) -> set[int]:
        """Return the first and the last cell."""
        if self.again:
            return {0, self.again - 1}
        return {(end - self.origin) // self.step for end in (self.low, self.high)}


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """A table of numbers between thresholds.

    A number below the first threshold has the cell ``cells[0]``; a number from the first threshold
    (included) to the second has ``cells[1]``, and so on.

    Attributes:
        at: the thresholds in ascending order: an array of doubles, or of whole seconds.
        cells: an int64 array with one entry more than ``at``.
    """

    at: Any
    cells: Any

    def __post_init__(self) -> None:
        for name, values in (
            ("at", self.at),
            ("cells", self.cells),
        ):  # copies: the checked cells are the ones that are looked up
            array = values.copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        rising = (
            self.at.ndim == self.cells.ndim == 1
            and len(self.cells) == len(self.at) + 1
            and bool((self.at[1:] >= self.at[:-1]).all())
        )
        if not rising or self.cells.dtype != "int64" or self.at.dtype not in ("int64", "float64"):
            raise InternalError(
                "thresholds must rise, with a whole number between any two; please report this."
            )


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """A table of texts.

    Attributes:
        cells: the cell of each form, as the reading compares texts; the forms that mean a null are
            included.
        wholes: the cell of each category that is a whole number. The number followed by a point and
            zeros means this category too, unless such a text is itself a form.
    """

    cells: Mapping[str, int]
    wholes: Mapping[str, int]

    def __post_init__(self) -> None:
        # of Python's own: a mapping of another class could answer otherwise the next time
        for name, mapping in (("cells", self.cells), ("wholes", self.wholes)):
            cells = {plain(form): cell for form, cell in dict(mapping).items()}
            if not all(type(form) is str and type(cell) is int for form, cell in cells.items()):
                raise InternalError("forms must be texts with whole numbers; please report this.")
            object.__setattr__(self, name, cells)


@dataclass(frozen=True, slots=True)
class Keys:
    """A table of texts that cannot be listed beforehand.

    No text has a cell yet.

    Attributes:
        longest: the largest number of characters of a text.
    """

    longest: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest", whole("longest", self.longest, 1))

    def allows(self, text: str) -> bool:
        r"""Return whether a text may be a key, judged by the text only.

        Args:
            text: the text after reading, which is not a null.

        >>> [Keys(3).allows(text) for text in ("abc", "abcd", "a\n", "")]
        [True, False, False, False]
        """
        return 0 < len(text) <= self.longest and not any(
            unicodedata.category(letter) in _STRANGE for letter in text
        )


@dataclass(frozen=True, slots=True, eq=False)
class Clocked:
    """The rule by which times are read.

    Attributes:
        first: the first day, counted from 1970-01-01.
        last: the last day.
        zone: the time zone of the attribute's clock.
        pattern: the regular expression of texts. Its groups are Y or y (the year, or its last two
            digits), m or month1 to month12, d, H or I (hours of a 12-hour clock) with am and pm, M,
            S, and, if a text may have a time zone, zone, ahead, zh and zm.
        century: the first of the hundred years that two digits can mean.
        counted_in: the unit of a number: ``"excel"`` for days since 1899-12-30 on the attribute's
            clock; ``"epoch_s"``, ``"epoch_ms"`` or ``"epoch_us"`` for seconds, milliseconds or
            microseconds since 1970 in UTC; None if a number is read as the text of its digits.
    """

    first: int
    last: int
    zone: str
    pattern: re.Pattern[str]
    century: int = 0
    counted_in: str | None = None

    def __post_init__(self) -> None:
        if (type(self.first), type(self.last), type(self.zone), type(self.pattern)) != (
            int,
            int,
            str,
            re.Pattern,
        ):
            raise InternalError("a clock must have days, a zone and a pattern; please report this.")
        units = (None, "excel", "epoch_s", "epoch_ms", "epoch_us")
        if type(self.century) is not int or not any(
            self.counted_in is allowed
            or (type(self.counted_in) is str and self.counted_in == allowed)
            for allowed in units
        ):
            raise InternalError("a clock must count days or parts of a second; please report this.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """The rule of one attribute.

    Attributes:
        size: its number of cells.
        table: the table from a number, a text or a time (seconds since 1970 on the attribute's
            clock) to a cell.
        null: the cell of a null.
        outside: the cell of a value that is not in the table.
        strange: the cell of values that cannot be read as a number or time.
        clip: whether a number beyond the steps counts as the nearest number inside.
        reading: how values are read.
        clock: how times are read; None for other values.

    Raises:
        InternalError: a cell is not a cell of the attribute, or an argument is of another class.
    """

    size: int
    table: Steps | Cuts | Forms | Keys
    null: int
    outside: int
    strange: int
    clip: bool
    reading: Reading
    clock: Clocked | None = None

    def __post_init__(self) -> None:
        table = self.table
        policies = (self.null, self.outside, self.strange)
        classes = {
            type(field)
            for field in (table, self.clip, self.reading, self.clock, self.size, *policies)
        }
        if not (
            classes <= {Steps, Cuts, Forms, Keys, Clocked, Reading, int, bool, type(None)}
            and type(table) in {Steps, Cuts, Forms, Keys}
        ):
            raise InternalError("a rule must be made of its own parts; please report this.")
        cells = {*policies}
        if isinstance(table, Cuts):
            cells |= {int(table.cells.min()), int(table.cells.max())}
        elif not isinstance(table, Keys):
            cells |= (
                table.cells()
                if isinstance(table, Steps)
                else {*table.cells.values(), *table.wholes.values()}
            )
        # among thresholds that do not rise a search in many values at once could let one value have
        # a say in another's place
        if type(self.reading) is not Reading or not all(DROP <= cell < self.size for cell in cells):
            raise InternalError("a rule must give cells of its own attribute; please report this.")


@singledispatch
def rule_of(kind: object, _marks: tuple[int, int] | None = None) -> Rule:
    """Return the rule of an attribute.

    A class is a kind if it has registered this function.

    Args:
        kind: the attribute.
        _marks: two cells after the attribute's cells, for nulls and for values outside; None if the
            policies of the attribute decide.

    >>> rule = rule_of(Bins(0, 1, 2, outside="other"))
    >>> rule.table.at.tolist(), rule.table.cells.tolist()
    ([0.0, 0.5, 1.0000000000000002], [2, 0, 1, 2])
    >>> rule_of(Categories(["F", "M"], reading=Reading(nulls=["-"]))).table.cells
    {'': -1, '-': -1, 'F': 0, 'M': 1}
    """
    raise InternalError(f"nothing encodes the kind {type(kind).__name__}.")


@singledispatch
def kind_of(argument: object) -> object:
    """Return the kind that an argument stands for: a list stands for `Categories`.

    >>> kind_of(["F", "M"])
    Categories(['F', 'M'])
    """
    return argument


@singledispatch
def plain_json(kind_or_measure: object) -> dict[str, Any]:
    """Return a kind or a measure as plain JSON values.

    >>> plain_json(ln.Coded(3))
    {'kind': 'coded', 'size': 3}
    """
    raise InternalError(f"nothing writes the kind {type(kind_or_measure).__name__}.")


@singledispatch
def read_domain_parts(_value: object) -> tuple[Any, Any]:
    """Return the kinds and measures in the JSON of a domain.

    `Domain` checks them again.

    >>> read_domain_parts({"attributes": [{"name": "zone", "kind": "coded", "size": 3}], "measures": []})
    ([('zone', Coded(3))], {})
    """
    raise InternalError("nothing reads the JSON of a domain.")
