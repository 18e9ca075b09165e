"""Suggest parts of a draft spec from the schema of a source.

It uses only names and types, and reads no value. `init` and the studio draft from the same columns.
"""

import datetime as dt
import re
import zoneinfo
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from leastnoise._descriptions import BLANK
from leastnoise._sources import SchemaField
from leastnoise._spec._column_names import (
    implied_range,
    looks_like_identifier,
    names_age,
    names_amount,
    names_birth,
    names_day,
    names_few_codes,
    names_flag,
    names_free_text,
    names_groups,
    names_nonnegative_number,
    names_person,
    names_row_identifier,
    names_small_count,
    names_staff,
    names_whole_number,
)

_SAME_NAME = "several columns are called so; give them names of their own"
_NO_NAME = "its name is empty or has control characters; rename it"
_THE_PERSON = "it names the person"
_A_PERSON = "it names a person"
_ROWS_APART = "it tells rows apart; list its values by hand if they are few"
_FREE_TEXT = "it seems to hold names, addresses or free texts"
_YES = ("yes", "Yes", "YES", "y", "Y", "1", "True", "TRUE", "t", "T")
_NO = ("no", "No", "NO", "n", "N", "0", "False", "FALSE", "f", "F")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column of the data, with the suggestions of its name and type.

    Attributes:
        name: the column.
        attribute: the name of its tables: the name of the column without blanks around it.
        field: its entry in the schema.
        kind: text, whole, number, date or truth; empty if ``unusable`` states why it cannot be
            published.
        unusable: the reason why it cannot be published; empty if it can.
        left_out: the reason why a draft has no attribute for it; empty if the draft has one.
        names_person: whether it is the only column whose name denotes the person to whom a row
            belongs.
    """

    name: str
    attribute: str
    field: SchemaField
    kind: str
    unusable: str = ""
    left_out: str = ""
    names_person: bool = False

    @property
    def declares_type(self) -> bool:
        """Whether the data declare a type for the column."""
        return self.field.type is not None

    @property
    def draft_zone(self) -> str | None:
        """The schema's time zone; ``""`` if it has none in which days are defined."""
        zone = self.field.zone
        if zone is None:
            return None
        if offset := re.fullmatch(r"([+-])(\d\d):00", zone):
            # of these names the sign is the sign of the clock's distance to UTC
            sign = "-" if offset[1] == "+" else "+"
            zone = f"Etc/GMT{sign}{int(offset[2])}"
        if zone in zoneinfo.available_timezones():
            return zone
        return ""

    @property
    def guess(self) -> "dict[str, Any]":
        """Suggested keys of [domain.NAME] by name or type; empty without any."""
        return _guess(self)


@dataclass(frozen=True)
class SourceColumns:
    """The columns of the data, with those that may identify the person.

    Attributes:
        listed: all columns, in order.
    """

    listed: tuple[SourceColumn, ...]

    @cached_property
    def person(self) -> SourceColumn | None:
        """The only column whose name identifies a person; None if not unique."""
        return next((column for column in self.listed if column.names_person), None)

    @cached_property
    def names_several_persons(self) -> bool:
        """Whether several columns denote the person of a row."""
        return len(_columns_of_persons(self.listed)) > 1

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The columns that may identify persons, the likely ones first."""
        if self.person is not None:
            return ()
        named = [column.name for column in self.listed if _may_name_person(column)]
        return tuple(
            sorted(named, key=lambda name: (not names_person(name), names_row_identifier(name)))
        )


def source_columns(fields: Iterable[SchemaField]) -> SourceColumns:
    """Return the columns of a schema with the facts that names and types suggest."""
    schema_fields = list(fields)
    names = [field.name for field in schema_fields]
    columns = [_column_of(field, names) for field in schema_fields]
    of_persons = _columns_of_persons(columns)
    if len(of_persons) == 1:
        (person,) = of_persons
        position = columns.index(person)
        columns[position] = replace(person, left_out=_THE_PERSON, names_person=True)
    return SourceColumns(tuple(columns))


def _columns_of_persons(columns: Sequence[SourceColumn]) -> list[SourceColumn]:
    """Return the columns that identify persons; staff only if no others do."""
    named = [column for column in columns if _may_name_person(column) and names_person(column.name)]
    return [column for column in named if not names_staff(column.name)] or named


def _column_of(field: SchemaField, names: Sequence[str]) -> SourceColumn:
    """Return a column with the kind and faults that its name and type suggest."""
    name = field.name
    bare = field.name.strip()
    kind = _kind_of(field)
    unusable = ""
    if names.count(name) > 1:
        unusable = _SAME_NAME
    elif not name or not name.isprintable():
        unusable = _NO_NAME
    elif not kind:
        unusable = f"of type {field.type_name}, which cannot be published"
    return SourceColumn(
        name=name,
        # tables are called by the name without blanks around it, if no other column has that
        attribute=name if bare in {"", *names} else bare,
        field=field,
        kind="" if unusable else kind,
        unusable=unusable,
        left_out=unusable or _left_out(name, kind),
    )


def _left_out(name: str, kind: str) -> str:
    """Return the reason why a draft leaves out a column; empty if it does not."""
    if kind in {"text", "whole"}:
        if names_person(name):
            return _A_PERSON
        if names_row_identifier(name):
            return _ROWS_APART
    if kind == "text" and names_free_text(name):
        return _FREE_TEXT
    return ""


def _may_name_person(column: SourceColumn) -> bool:
    """Return whether a column may identify persons, by its name and type."""
    return column.kind in {"text", "whole", "number"} and looks_like_identifier(column.name)


def _kind_of(field: SchemaField) -> str:
    """Return the kind of a column by its type; without a type, by its name."""
    if not field.readable:
        return ""
    if field.type is None:
        return _kind_of_name(field.name)
    return _kind_of_type(field.type)


def _kind_of_name(name: str) -> str:
    """Return the kind of values that a column name suggests."""
    if names_day(name):
        return "date"
    if looks_like_identifier(name) or names_flag(name) or names_groups(name):
        return "text"
    if names_whole_number(name):
        return "whole"
    if names_amount(name):
        return "number"
    return "text"


def _kind_of_type(arrow_type: Any) -> str:
    """Return the kind of values of an Arrow type, or "" for only nulls."""
    import pyarrow.types as is_type

    if is_type.is_boolean(arrow_type):
        return "truth"
    if is_type.is_integer(arrow_type):
        return "whole"
    if is_type.is_decimal(arrow_type):
        if arrow_type.scale > 0:
            return "number"
        return "whole"
    if is_type.is_floating(arrow_type):
        return "number"
    if is_type.is_date(arrow_type) or is_type.is_timestamp(arrow_type):
        return "date"
    if is_type.is_null(arrow_type):
        return ""
    return "text"


def _guess(column: SourceColumn) -> dict[str, Any]:
    """Return suggested domain keys, with bounds so wide that no row is dropped."""
    name = column.name
    kind = column.kind
    if kind == "text" and names_flag(name):
        return {
            "categories": [True, False],
            "spellings": {"true": [*_YES], "false": [*_NO]},
            "outside": "other",
        }
    if kind not in {"whole", "number"}:
        return {}
    if ends := implied_range(name):
        low, high = ends
        guess = {**_numbers(kind, low, high, high - low), "outside": "clip"}
        if kind == "whole" and not column.declares_type and names_age(name):
            guess["rounding"] = "down"  # a file of texts may have 0.5, and ages are whole years
        return guess
    if kind == "whole" and names_small_count(name):
        return {"integers": [0, 9], "outside": "clip"}
    if kind == "whole" and column.declares_type and names_flag(name):
        return {"categories": [0, 1], "outside": "other"}
    if kind == "whole" and column.declares_type and names_few_codes(name):
        return {"integers": [0, 9], "outside": "other"}
    if kind == "whole" and looks_like_identifier(name):
        # of things, as a public list of codes has them
        return {"categories": [BLANK]}
    if of_type := _range_of_type(column):
        return of_type
    if names_nonnegative_number(name):
        return {**_numbers(kind, 0, BLANK), "outside": "clip"}
    return {}


def _numbers(kind: str, low: int, high: int | str, bins: int = 100) -> dict[str, Any]:
    """Return the spec entries for numbers: integers, or bins."""
    if kind == "whole":
        return {"integers": [low, high]}
    return {"bins": {"low": low, "high": high, "count": bins}}


def _range_of_type(column: SourceColumn) -> dict[str, Any]:
    """Return the range of an integer type of 8 bits."""
    ranges = {"int8": [-128, 127], "uint8": [0, 255]}
    bounds = ranges.get(str(column.field.type))
    if bounds and column.kind == "whole":
        return {"integers": bounds}
    return {}


_MONTH = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])(?!\d)")
_YEARS = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:[-_]((?:19|20)\d\d))?(?!\d)")


def days_in_name(source_name: str, column: SourceColumn) -> tuple[str, str, str] | None:
    """Return first day, last day and period from a file's name, or None.

    The result is None if the name has no days. It is also None for days of birth, which the name of
    a file does not state.

    >>> day = source_columns([SchemaField(name="date")]).listed[0]
    >>> days_in_name("yellow_tripdata_2024-02.parquet", day), days_in_name("sales_2019-2023.csv", day)
    (('2024-02-01', '2024-02-29', 'day'), ('2019-01-01', '2023-12-31', 'month'))
    """
    if names_birth(column.name):
        return None
    if month := _MONTH.search(source_name):
        first = dt.date(int(month[1]), int(month[2]), 1)
        last = (first + dt.timedelta(days=31)).replace(day=1) - dt.timedelta(days=1)
        return first.isoformat(), last.isoformat(), "day"
    years = _YEARS.search(source_name)
    if years is None or int(years[2] or years[1]) < int(years[1]):
        return None
    return f"{years[1]}-01-01", f"{years[2] or years[1]}-12-31", "month"
