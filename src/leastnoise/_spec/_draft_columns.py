"""Suggest settings of a draft spec from the schema of a source.

Only the names and types of columns are used, and no value is read. `init` and the studio use the
same suggestions in their drafts.
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

_SAME_NAME = "several columns have this name; give them different names"
_NO_NAME = "its name is empty or has control characters; rename it"
_THE_PERSON = "it names the person"
_A_PERSON = "it names a person"
_ROWS_APART = "it seems to identify a row; list its values by hand if they are few"
_FREE_TEXT = "it seems to hold names, addresses or free texts"
_YES = ("yes", "Yes", "YES", "y", "Y", "1", "True", "TRUE", "t", "T")
_NO = ("no", "No", "NO", "n", "N", "0", "False", "FALSE", "f", "F")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column of the data, and the facts that its name and type suggest.

    Attributes:
        name: the name of the column.
        attribute: the attribute's name in the draft: the column's name without surrounding blanks.
        field: the column in the schema of the source.
        kind: one of "text", "whole", "number", "date" and "truth"; an empty text if the column
            cannot be published.
        unusable: the reason why the column cannot be published, or an empty text if it can.
        left_out: the reason why the draft has no attribute for the column, or an empty text if it
            has one.
        names_person: whether this is the only column whose name denotes the person to whom a row
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
        """Whether the source declares a type for the column."""
        return self.field.type is not None

    @property
    def is_identifier(self) -> bool:
        """Whether the values seem to identify things, so their sum has no meaning."""
        has_codes = self.kind == "whole" and names_few_codes(self.name)
        return _may_name_person(self) and not has_codes

    @property
    def draft_zone(self) -> str | None:
        """The time zone in the schema; None without a zone, empty if unknown.

        The zone determines where days begin.
        """
        zone = self.field.zone
        if zone is None:
            return None
        if offset := re.fullmatch(r"([+-])(\d\d):00", zone):
            # Names of this form have the opposite sign of the offset from UTC.
            sign = "-" if offset[1] == "+" else "+"
            zone = f"Etc/GMT{sign}{int(offset[2])}"
        if zone in zoneinfo.available_timezones():
            return zone
        return ""

    @property
    def guess(self) -> "dict[str, Any]":
        """The suggested keys of [domain.NAME]; empty without a suggestion."""
        return _suggest_domain_keys(self)


@dataclass(frozen=True)
class SourceColumns:
    """The columns of the data, and which of them may identify a person.

    Attributes:
        listed: all columns, in order.
    """

    listed: tuple[SourceColumn, ...]

    @cached_property
    def person(self) -> SourceColumn | None:
        """The column whose name denotes a person; None unless exactly one does."""
        return next((column for column in self.listed if column.names_person), None)

    @cached_property
    def names_several_persons(self) -> bool:
        """Whether the names of several columns denote a person."""
        return len(_person_columns(self.listed)) > 1

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The names of columns that may identify persons, the most likely first."""
        if self.person is not None:
            return ()
        named = [column.name for column in self.listed if _may_name_person(column)]
        return tuple(
            sorted(named, key=lambda name: (not names_person(name), names_row_identifier(name)))
        )


def source_columns(fields: Iterable[SchemaField]) -> SourceColumns:
    """Return the columns of a schema, and facts that names and types suggest."""
    schema_fields = list(fields)
    names = [field.name for field in schema_fields]
    columns = [_describe_column(field, names) for field in schema_fields]
    person_columns = _person_columns(columns)
    if len(person_columns) == 1:
        (person,) = person_columns
        position = columns.index(person)
        columns[position] = replace(person, left_out=_THE_PERSON, names_person=True)
    return SourceColumns(tuple(columns))


def _person_columns(columns: Sequence[SourceColumn]) -> list[SourceColumn]:
    """Return the columns that identify persons.

    Columns of staff members count only if no other column identifies persons.
    """
    named = [column for column in columns if _may_name_person(column) and names_person(column.name)]
    return [column for column in named if not names_staff(column.name)] or named


def _describe_column(field: SchemaField, names: Sequence[str]) -> SourceColumn:
    """Return a column with the facts that its name and type suggest."""
    name = field.name
    bare = field.name.strip()
    kind = _value_kind(field)
    unusable = ""
    if names.count(name) > 1:
        unusable = _SAME_NAME
    elif not name or not name.isprintable():
        unusable = _NO_NAME
    elif not kind:
        unusable = f"of type {field.type_name}, which cannot be published"
    return SourceColumn(
        name=name,
        # The attribute gets the column's name without surrounding blanks, unless another column has
        # that name.
        attribute=name if bare in {"", *names} else bare,
        field=field,
        kind="" if unusable else kind,
        unusable=unusable,
        left_out=unusable or _reason_left_out(name, kind),
    )


def _reason_left_out(name: str, kind: str) -> str:
    """Return why a draft leaves out a column, or "" if it keeps it."""
    if kind in {"text", "whole", "number"}:
        if names_person(name):
            return _A_PERSON
        if names_row_identifier(name):
            return _ROWS_APART
    if kind == "text" and names_free_text(name):
        return _FREE_TEXT
    return ""


def _may_name_person(column: SourceColumn) -> bool:
    """Return whether a column may identify persons.

    The name and the type of the column decide this.
    """
    return column.kind in {"text", "whole", "number"} and looks_like_identifier(column.name)


def _value_kind(field: SchemaField) -> str:
    """Return the kind of a column's values from its type, or else from its name.

    The kind is "text", "whole", "number", "date", "truth", or empty if the column cannot be read.
    """
    if not field.readable:
        return ""
    if field.type is None:
        return _kind_from_name(field.name)
    return _kind_from_type(field.type)


def _kind_from_name(name: str) -> str:
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


def _kind_from_type(arrow_type: Any) -> str:
    """Return the kind of values of an Arrow type; empty for the null type."""
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


def _suggest_domain_keys(column: SourceColumn) -> dict[str, Any]:
    """Suggest keys of [domain.NAME]; suggested bounds should drop no row."""
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
        guess = {**_number_keys(kind, low, high, high - low), "outside": "clip"}
        if kind == "whole" and not column.declares_type and names_age(name):
            guess["rounding"] = "down"  # a file of texts may have 0.5, and ages are whole years
        return guess
    if kind == "whole" and names_small_count(name):
        return {"integers": [0, 9], "outside": "clip"}
    if kind == "whole" and column.declares_type and names_flag(name):
        return {"categories": [0, 1], "outside": "other"}
    if kind == "whole" and column.declares_type and names_few_codes(name):
        return {"integers": [0, 9], "outside": "other"}
    if looks_like_identifier(name):
        # Codes of things, which are in a public list; whole numbers with nulls may be floats.
        return {"categories": [BLANK]}
    if of_type := _type_range_keys(column):
        return of_type
    if names_nonnegative_number(name):
        return {**_number_keys(kind, 0, BLANK), "outside": "clip"}
    return {}


def _number_keys(kind: str, low: int, high: int | str, bins: int = 100) -> dict[str, Any]:
    """Return the spec key "integers" or "bins" with a range of numbers."""
    if kind == "whole":
        return {"integers": [low, high]}
    return {"bins": {"low": low, "high": high, "count": bins}}


def _type_range_keys(column: SourceColumn) -> dict[str, Any]:
    """Return the spec key "integers" for an 8-bit type; empty for other types."""
    ranges = {"int8": [-128, 127], "uint8": [0, 255]}
    bounds = ranges.get(str(column.field.type))
    if bounds and column.kind == "whole":
        return {"integers": bounds}
    return {}


_MONTH = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])(?!\d)")
_YEARS = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:[-_]((?:19|20)\d\d))?(?!\d)")


def date_range_in_name(data_name: str, column: SourceColumn) -> tuple[str, str, str] | None:
    """Return (first day, last day, period) from the name of the data, or None.

    The result is None if the name contains no dates. For dates of birth the result is also None,
    because the dates in a file name say nothing about them.

    >>> day = source_columns([SchemaField(name="date")]).listed[0]
    >>> (
    ...     date_range_in_name("yellow_tripdata_2024-02.parquet", day),
    ...     date_range_in_name("sales_2019-2023.csv", day),
    ... )
    (('2024-02-01', '2024-02-29', 'day'), ('2019-01-01', '2023-12-31', 'month'))
    """
    if names_birth(column.name):
        return None
    if month := _MONTH.search(data_name):
        first = dt.date(int(month[1]), int(month[2]), 1)
        last = (first + dt.timedelta(days=31)).replace(day=1) - dt.timedelta(days=1)
        return first.isoformat(), last.isoformat(), "day"
    years = _YEARS.search(data_name)
    if years is None or int(years[2] or years[1]) < int(years[1]):
        return None
    return f"{years[1]}-01-01", f"{years[2] or years[1]}-12-31", "month"
