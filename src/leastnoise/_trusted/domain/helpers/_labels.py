"""Read the names of cells as users write them.

Names are read in the same way in predicates, groups, public counts and later queries to a release.
They are read by the same rule as values of the data (see `leastnoise._domain._kinds`): ``true`` is
the category ``true``, and 0, 0.0 and ``"0.0"`` are the same number.

This file is not trusted: queries are public, and no row is read with these names.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from leastnoise._trusted.check import InputError, did_you_mean, exact, number_text, refuse

_WHOLE_WITH_ZEROS = re.compile(r"(-?[0-9]+)\.0*", re.ASCII)
_MOST_LISTED = 5  # cells in a message


def label_text(value: object) -> str | None:
    """Convert the name of a cell to text; None if the value cannot be a name.

    >>> label_text(True), label_text(2.0), label_text(0.5), label_text("Kiel"), label_text([1])
    ('true', '2', '0.5', 'Kiel', None)
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "minutes")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (float, Decimal, Fraction)):
        number = _number(value)
        if number is None:
            return None
        return number_text(number)
    # The integers of NumPy are not `int`.
    if hasattr(value, "__index__"):
        return str(int(value))
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellNames:
    """A lookup of the cells of an attribute by name.

    Attributes:
        by_label: the cell of every label.
        by_spelling: the cell of every spelling of a category, by the form in which texts are
            compared.
        form: a function that converts a text to the form in which texts are compared.
        of_number: a function that returns the cell of an exact number; None if no cell is that
            number.
    """

    by_label: Mapping[str, int]
    by_spelling: Mapping[str, int]
    form: Callable[[str], str]
    of_number: Callable[[Fraction], int | None]

    def find(self, value: object) -> int | None:
        """Return the number of the cell that a value names; None if there is none.

        >>> ln.Decimals(0, 1, "0.5").names.find(0.0), ln.Categories([True, False]).names.find(False)
        (0, 1)
        """
        text = label_text(value)
        if text is None:
            return None
        if text in self.by_label:
            return self.by_label[text]
        form = self.form(text)
        if form in self.by_spelling:
            return self.by_spelling[form]
        if whole := _WHOLE_WITH_ZEROS.fullmatch(form):
            return self.by_label.get(whole[1])
        number = _number(text)
        if number is None:
            return None
        return self.of_number(number)

    def cells(self, description: str, values: Iterable[object]) -> list[int]:
        """Return the numbers of the cells that are named by some values.

        Args:
            description: the name, for messages, of the part of the query that these cells belong
                to.
            values: the names.

        Raises:
            InputError: a value names no cell.
        """
        cells = []
        for value in values:
            cell = self.find(value)
            if cell is None:
                names = list(self.by_label)
                listing = ", ".join(names[:_MOST_LISTED])
                listing += ", ..." if len(names) > _MOST_LISTED else ""
                advice = did_you_mean(label_text(value), names)
                raise refuse(description, value, f"made of its cells ({listing})", advice)
            cells.append(cell)
        return cells


def _number(value: Any) -> Fraction | None:
    """Convert a number or the text of a number to an exact fraction; else None."""
    try:
        return exact("a number", value)
    except InputError:
        return None
