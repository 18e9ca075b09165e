"""Define the tables that map values to cells.

These tables are the trusted part of attributes (E3 of PROOFS-reading.md). A kind of attribute makes
its table from public bounds, edges, days and texts, in `_rules`. Kinds are not trusted, but this
module checks the cells of every table. Whatever the kind, a value is therefore mapped to one cell
of the attribute, or its row is dropped. Only the value itself decides its cell, and whether its row
is dropped.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from leastnoise._trusted.check import InternalError, plain, whole
from leastnoise._trusted.domain._reading import Reading

# Bounds stay where doubles represent every whole number. So a value that is read as a double is
# never moved across a bound.
MOST = 2**53 - 1
# Codes fit uint32, and a table on just one attribute already has 16 GiB of counts.
MOST_CELLS = 2**31
READ_AS_IT_IS = Reading()
# A row with this cell in any attribute is dropped.
DROP = -1
# Control characters, and halves of characters, which no file in UTF-8 holds.
_STRANGE = {"Cc", "Cs"}


@dataclass(frozen=True, slots=True, eq=False)
class StepTable:
    """The cells of numbers, if all cells have the same width.

    The cell of a number from ``low`` to ``high`` is the number of whole steps from ``origin`` to
    it.

    Attributes:
        low: the smallest number inside the table.
        high: the largest number inside the table.
        origin: the number at which cell 0 begins; at most ``low``.
        step: the width of a cell.
        repeat_after: the number of cells after which the numbering begins again with cell 0; None
            if the cells do not repeat.
        rounding: how a number between two integers is rounded: ``"down"``, ``"up"`` or
            ``"nearest"`` (ties to the even integer). If it is None, a number of this kind is
            outside the table.
    """

    low: int
    high: int
    origin: int
    step: int = 1
    repeat_after: int | None = None
    rounding: str | None = None

    def __post_init__(self) -> None:
        numbers = (
            self.low,
            self.high,
            self.origin,
            self.step,
            0 if self.repeat_after is None else self.repeat_after,
        )
        inside = (
            all(type(number) is int for number in numbers)
            and -MOST <= self.origin <= self.low <= self.high <= MOST
            and self.rounding in (None, "down", "up", "nearest")
        )
        if not (
            inside and self.step >= 1 and (self.repeat_after is None or self.repeat_after >= 1)
        ):
            raise InternalError(
                "steps must be whole numbers that a double can represent exactly; please report "
                "this."
            )

    def cells(self) -> set[int]:
        """Return the first and the last cell."""
        if self.repeat_after:
            return {0, self.repeat_after - 1}
        return {(end - self.origin) // self.step for end in (self.low, self.high)}


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdTable:
    """The cells of numbers, defined by the thresholds between the cells.

    A number below the first threshold has the cell ``cells[0]``. A number from the first threshold
    (included) to the second has the cell ``cells[1]``, and so on.

    Attributes:
        thresholds: the thresholds in ascending order: an array of doubles, or of whole seconds.
        cells: an int64 array with one entry more than ``thresholds``.
    """

    thresholds: Any
    cells: Any

    def __post_init__(self) -> None:
        # Copies, so that a later change of the caller cannot change the checked cells.
        for name, values in (("thresholds", self.thresholds), ("cells", self.cells)):
            array = values.copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        rising = (
            self.thresholds.ndim == self.cells.ndim == 1
            and len(self.cells) == len(self.thresholds) + 1
            and bool((self.thresholds[1:] >= self.thresholds[:-1]).all())
        )
        if (
            not rising
            or self.cells.dtype != "int64"
            or self.thresholds.dtype not in ("int64", "float64")
        ):
            raise InternalError(
                "thresholds must increase, with a whole number between any two; please report this."
            )


@dataclass(frozen=True, slots=True, eq=False)
class TextTable:
    """The cells of texts that are listed one by one.

    Attributes:
        cells: the cell of each text, in the form in which the reading compares texts. Texts that
            mean a null are included.
        whole_numbers: the cell of each text that is a whole number. A text with the same number
            followed by a point and zeros has the same cell, unless that text is listed itself.
    """

    cells: Mapping[str, int]
    whole_numbers: Mapping[str, int]

    def __post_init__(self) -> None:
        # A plain `dict`, because a mapping of another class could change its answers.
        for name, mapping in (("cells", self.cells), ("whole_numbers", self.whole_numbers)):
            cells = {plain(form): cell for form, cell in dict(mapping).items()}
            if not all(type(form) is str and type(cell) is int for form, cell in cells.items()):
                raise InternalError("forms must be texts with whole numbers; please report this.")
            object.__setattr__(self, name, cells)


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The condition that a text must satisfy if texts cannot be listed.

    No text has a cell yet.

    Attributes:
        max_length: the largest number of characters of a text.
    """

    max_length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_length", whole("max_length", self.max_length, 1))

    def allows(self, text: str) -> bool:
        r"""Return whether a text may be a key, which depends only on the text.

        Args:
            text: the text after reading; it is not a null.

        >>> [KeyTable(3).allows(text) for text in ("abc", "abcd", "a\n", "")]
        [True, False, False, False]
        """
        return 0 < len(text) <= self.max_length and not any(
            unicodedata.category(letter) in _STRANGE for letter in text
        )


@dataclass(frozen=True, slots=True, eq=False)
class TimeRule:
    """The rule that converts a text or a number to a time.

    Attributes:
        first: the first day, counted from 1970-01-01.
        last: the last day.
        zone: the time zone of the attribute's clock.
        pattern: the regular expression of texts. Its groups are Y or y (the year, or its last two
            digits), m or month1 to month12, d, H or I (hours of a 12-hour clock) with am and pm, M,
            and S. If a text may have a time zone, its groups also include zone, ahead, zh and zm.
        century: the first of the hundred years that a year of two digits can mean.
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
            raise InternalError(
                "counted_in must be None, 'excel', 'epoch_s', 'epoch_ms' or 'epoch_us', and "
                "century must be an integer; please report this."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """The rule by which the values of one attribute are mapped to cells.

    Attributes:
        size: its number of cells.
        table: the table from a number, a text or a time (seconds since 1970 on the attribute's
            clock) to a cell.
        null: the cell of a null.
        outside: the cell of a value that is not in the table.
        unreadable: the cell of values that cannot be read as a number or time.
        clip: whether a number beyond the steps counts as the nearest number inside.
        reading: how values are read.
        clock: how times are read; None for other values.

    Raises:
        InternalError: a cell is not a cell of the attribute, or an argument has the wrong class.
    """

    size: int
    table: StepTable | ThresholdTable | TextTable | KeyTable
    null: int
    outside: int
    unreadable: int
    clip: bool
    reading: Reading
    clock: TimeRule | None = None

    def __post_init__(self) -> None:
        table = self.table
        policies = (self.null, self.outside, self.unreadable)
        classes = {
            type(field)
            for field in (table, self.clip, self.reading, self.clock, self.size, *policies)
        }
        if not (
            classes
            <= {
                StepTable,
                ThresholdTable,
                TextTable,
                KeyTable,
                TimeRule,
                Reading,
                int,
                bool,
                type(None),
            }
            and type(table) in {StepTable, ThresholdTable, TextTable, KeyTable}
        ):
            raise InternalError("a rule must be made of its own parts; please report this.")
        cells = {*policies}
        if isinstance(table, ThresholdTable):
            cells |= {int(table.cells.min()), int(table.cells.max())}
        elif not isinstance(table, KeyTable):
            cells |= (
                table.cells()
                if isinstance(table, StepTable)
                else {*table.cells.values(), *table.whole_numbers.values()}
            )
        # If thresholds did not rise, the search of many values at once could let one value affect
        # the cell of another.
        if type(self.reading) is not Reading or not all(DROP <= cell < self.size for cell in cells):
            raise InternalError("a rule must give cells of its own attribute; please report this.")


@singledispatch
def rule_of(kind: object, _marks: tuple[int, int] | None = None) -> Rule:
    """Return the rule that maps an attribute's values to cells.

    A class is a kind if an implementation of this function is registered for it.

    Args:
        kind: the attribute.
        _marks: two cells after the attribute's cells, for nulls and for values outside; None if the
            policies of the attribute decide.

    >>> rule = rule_of(Bins(0, 1, 2, outside="other"))
    >>> rule.table.thresholds.tolist(), rule.table.cells.tolist()
    ([0.0, 0.5, 1.0000000000000002], [2, 0, 1, 2])
    >>> rule_of(Categories(["F", "M"], reading=Reading(nulls=["-"]))).table.cells
    {'': -1, '-': -1, 'F': 0, 'M': 1}
    """
    raise InternalError(f"nothing encodes the kind {type(kind).__name__}.")


@singledispatch
def kind_of_argument(argument: object) -> object:
    """Convert an argument to a kind: a list means `Categories`.

    >>> kind_of_argument(["F", "M"])
    Categories(['F', 'M'])
    """
    return argument


@singledispatch
def plain_json(kind_or_measure: object) -> dict[str, Any]:
    """Convert a kind or a measure to plain JSON values.

    >>> plain_json(ln.Coded(3))
    {'kind': 'coded', 'size': 3}
    """
    raise InternalError(f"nothing writes the kind {type(kind_or_measure).__name__}.")


@singledispatch
def read_domain_parts(_value: object) -> tuple[Any, Any]:
    """Read the kinds and the measures from the JSON value of a domain.

    `Domain` checks them again.

    >>> read_domain_parts(
    ...     {"attributes": [{"name": "zone", "kind": "coded", "size": 3}], "measures": []}
    ... )
    ([('zone', Coded(3))], {})
    """
    raise InternalError("nothing reads the JSON of a domain.")
