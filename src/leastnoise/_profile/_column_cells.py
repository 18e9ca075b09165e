"""Choose the public cells in which a profile counts the values of a column.

The cells depend only on the name and type of the column. No value is read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, product
from typing import Any

from leastnoise._spec import SourceColumn, SourceColumns
from leastnoise._trusted.check import InputError, number_text

FIRST_YEAR = 1900
LAST_YEAR = 2049
NARROW_WIDTH = Fraction(1, 1000)
"""Width of the cells that show whether small numbers are whole."""
LARGEST_NARROW_NUMBER = 10  # the whole numbers from 0 to this number are edges of cells
_STEPS_PER_DECADE = ("1", "1.5", "2", "3", "5", "7")
_COARSE_STEPS_PER_DECADE = ("1", "2", "5")
_FINE_DECADES = range(1, 9)  # fine steps for positive numbers from 10 to 10^9
_FAR_DECADES = range(9, 16)  # one cell for each decade; larger doubles are not exact
_SMALL_DECADES = range(-6, 0)
_MOST_CATEGORIES = 100  # categories that a search keeps
SEARCH_SHARE = Fraction(1, 2)
"""Share of the budget for all searches, if there is a search."""
_YEAR_NAME = re.compile(r"year|yr|jahr|annee|año|birth|born|geburt", flags=re.IGNORECASE)
_SPECIAL_CELLS = ("(null)", "(outside)")
_COMMON_CODES = (
    "yes", "no", "y", "n", "true", "false", "t", "f", "male", "female", "m", "w", "ja", "nein",
    "j", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "other", "unknown",
)  # fmt: skip
"""Texts that many data sets use; counted where no search can find the categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredColumn:
    """A profile's table of one column: the public cells for its values.

    Attributes:
        column: the column of the data.
        attribute: the name of the table in the profile.
        kind: "whole", "number", "date", "truth", "text" (a search finds the categories) or "codes"
            (common codes are counted).
        settings: the settings of the attribute in ``[domain.NAME]`` of a spec.
        edges: the edges of the cells of numbers; empty for other kinds.
        is_searched: whether the budget pays for a search for categories in the column.
    """

    column: SourceColumn
    attribute: str
    kind: str
    settings: Mapping[str, Any]
    edges: tuple[Fraction, ...] = ()
    is_searched: bool = False

    @property
    def is_number(self) -> bool:
        """Whether the cells are intervals of numbers."""
        return bool(self.edges)


def choose_measured_columns(
    columns: SourceColumns, *, unit_column: str | None, has_delta: bool
) -> tuple[MeasuredColumn, ...]:
    """Return the tables of a profile: one or two for each column.

    Args:
        columns: the columns of the data.
        unit_column: the column that names a person, which has no table.
        has_delta: whether the budget has a delta, which searches for categories need.

    Raises:
        InputError: no column can be profiled.
    """
    profiled = [
        column for column in columns.listed if not column.left_out and column.name != unit_column
    ]
    measured = list(
        chain.from_iterable(_tables_of_column(column, has_delta=has_delta) for column in profiled)
    )
    if not measured:
        raise InputError(
            "A profile needs a column with numbers, dates, truth values or categories; got none. "
            "Check the delimiter and the header, or draft a spec with `leastnoise init`."
        )
    searches = sum(table.kind == "text" for table in measured)
    return tuple(_with_search_share(table, searches) for table in measured)


def _tables_of_column(column: SourceColumn, *, has_delta: bool) -> Iterator[MeasuredColumn]:
    """Yield the tables of a column: two if its type is unknown, otherwise one."""
    if column.kind == "date":
        yield _date_table(column)
    elif column.kind == "truth":
        yield _make_table(column, "truth", {"categories": [True, False]})
    elif column.is_identifier:
        yield _text_table(column) if has_delta else _codes_table(column)
    elif column.declares_type and column.kind in {"whole", "number"}:
        yield _number_table(column, column.attribute, column.kind)
    elif not column.declares_type:
        numbers = _number_table(column, f"{column.attribute} as number", "number")
        yield replace(numbers, is_searched=has_delta)
        if has_delta:
            yield _text_table(column)
    elif has_delta:
        yield _text_table(column)
    else:
        yield _codes_table(column)


def _make_table(
    column: SourceColumn,
    kind: str,
    settings: Mapping[str, Any],
    *,
    attribute: str = "",
    edges: Sequence[Fraction] = (),
) -> MeasuredColumn:
    """Return a table of a column that has cells for missing and other values."""
    name = attribute or column.attribute
    all_settings = {**settings, "null": "cell", "outside": "cell"}
    if name != column.name:
        all_settings["column"] = column.name
    return MeasuredColumn(
        column=column, attribute=name, kind=kind, settings=all_settings, edges=tuple(edges)
    )


def _date_table(column: SourceColumn) -> MeasuredColumn:
    """Return the table of a column of dates, counted by year."""
    dates = {"from": f"{FIRST_YEAR}-01-01", "to": f"{LAST_YEAR}-12-31", "by": "year"}
    if column.draft_zone is not None:
        dates["zone"] = column.draft_zone or "UTC"
    return _make_table(column, "date", {"dates": dates})


def _codes_table(column: SourceColumn) -> MeasuredColumn:
    """Return the table of a column of texts, counted by common codes."""
    settings = {"categories": list(_COMMON_CODES), "ignore_case": True}
    return _make_table(column, "codes", settings)


def _text_table(column: SourceColumn) -> MeasuredColumn:
    """Return the table of a column of texts with unknown categories."""
    return _make_table(column, "text", {"unknown": {"most": _MOST_CATEGORIES}})


def _number_table(column: SourceColumn, attribute: str, kind: str) -> MeasuredColumn:
    """Return the table of a column of numbers whose cells form a log grid."""
    edges = number_edges(kind, has_years=bool(_YEAR_NAME.search(column.name)))
    settings = {"edges": [number_text(edge) for edge in edges]}
    return _make_table(column, kind, settings, attribute=attribute, edges=edges)


def _with_search_share(table: MeasuredColumn, number_of_searches: int) -> MeasuredColumn:
    """Return a table with its share of the search budget, if it needs a search.

    If the column is searched for categories, the search gets an equal part of the budget for all
    searches.
    """
    if table.kind != "text":
        return table
    share = SEARCH_SHARE / number_of_searches
    unknown = {**table.settings["unknown"], "share": str(share)}
    return replace(table, settings={**table.settings, "unknown": unknown})


def with_categories(
    tables: Sequence[MeasuredColumn], categories: Mapping[str, Sequence[str]]
) -> tuple[MeasuredColumn, ...]:
    """Return the tables of a profile after the searches for categories.

    If no categories were found in a column, it is counted only as numbers. If the column is not
    counted as numbers, it is counted by common codes.

    Args:
        tables: the tables before the searches.
        categories: the found categories by attribute.
    """
    counted_columns = []
    for table in tables:
        texts = [text for text in categories.get(table.attribute, ()) if text not in _SPECIAL_CELLS]
        if table.kind != "text":
            counted_columns.append(table)
        elif texts:
            settings = {"categories": texts}
            counted_columns.append(
                replace(_make_table(table.column, "text", settings), is_searched=True)
            )
        elif table.column.declares_type:
            counted_columns.append(replace(_codes_table(table.column), is_searched=True))
    return tuple(counted_columns)


def number_edges(kind: str, *, has_years: bool = False) -> tuple[Fraction, ...]:
    """Return the edges of cells for numbers on a signed logarithmic grid.

    The edges are ascending. The grid has four parts: six cells per decade from 10 to 10^9; one cell
    per decade up to 10^15; the whole numbers from 0 to 10; and coarser cells below 0. For the kind
    "number", the grid also has cells below 1, and narrow cells that begin at the whole numbers from
    0 to 10.

    Args:
        kind: "whole" or "number".
        has_years: if True, every fifth year from 1900 to 2050 is also an edge.

    >>> len(number_edges("whole")), number_edges("whole")[-1] == 10**15
    (99, True)
    """
    positive = {Fraction(number) for number in range(LARGEST_NARROW_NUMBER + 1)}
    positive |= _log_edges(_FINE_DECADES, _STEPS_PER_DECADE)
    positive |= _log_edges(_FAR_DECADES, ("1",))
    if has_years:
        positive |= {Fraction(year) for year in range(FIRST_YEAR, LAST_YEAR + 2, 5)}
    negative = _log_edges(range(9), _COARSE_STEPS_PER_DECADE) | _log_edges(_FAR_DECADES, ("1",))
    if kind == "number":
        positive |= {number + NARROW_WIDTH for number in range(LARGEST_NARROW_NUMBER + 1)}
        positive |= _log_edges(_SMALL_DECADES, _COARSE_STEPS_PER_DECADE)
        negative |= _log_edges(range(-3, 0), ("1",))
    return tuple(sorted(positive | {-edge for edge in negative}))


def _log_edges(decades: range, steps: Sequence[str]) -> set[Fraction]:
    """Return the numbers step * 10^decade for all steps and decades."""
    return {Fraction(step) * Fraction(10) ** decade for decade, step in product(decades, steps)}
