"""Convert frozen dataclasses to JSON objects and back.

A record is a frozen dataclass whose annotations define the entries of its JSON object.
`write_record` keeps the order of the fields and omits each field that has its default value.
`read_record` checks every value, ignores unknown entries, and states the first fault in one
sentence.

The types of fields are str, bool, int, float, date, a record, ``tuple[T, ...]``, ``Mapping[str,
T]``, or a union of one of these with None or str. `Json` is for a value that has a separate codec.
A class that has the methods ``from_json`` and ``to_json`` is read and written with them.
"""

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from leastnoise._trusted.check import InputError, refuse

Json: TypeAlias = Any
"""A JSON value that is written and read without interpretation."""
_LARGEST_WHOLE = 2**62  # fits in int64
_LARGEST_NUMBER = 1e150  # its square is still finite as a double
_PREFIX = "prefix"
_IS_WRITTEN = "is written"
ALWAYS_WRITTEN = {_IS_WRITTEN: True}
"""Metadata of a field that is written even if it has its default value."""
_IS_REQUIRED = "is required"
REQUIRED = {_IS_WRITTEN: True, _IS_REQUIRED: True}
"""Metadata of a field that is always written, and must be there on reading."""
_Record = TypeVar("_Record")


def flat(prefix: str = "") -> dict[str, str]:
    """Return metadata for a field that is flattened into its parent's object.

    Args:
        prefix: the text that is put before the names of the field's entries.
    """
    return {_PREFIX: prefix}


def write_record(record: Any) -> dict[str, Any]:
    """Return a JSON object with the fields of a dataclass instance."""
    entries: dict[str, Any] = {}
    for record_field in fields(record):
        value = getattr(record, record_field.name)
        if value == record_field.default and _IS_WRITTEN not in record_field.metadata:
            continue
        prefix = record_field.metadata.get(_PREFIX)
        if prefix is None:
            entries[record_field.name] = _write_value(value)
        else:
            entries |= {f"{prefix}{name}": entry for name, entry in _write_value(value).items()}
    return entries


def _write_value(value: Any) -> Any:
    """Return a field's value as a JSON value."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return write_record(value)
    if isinstance(value, tuple):
        return [_write_value(entry) for entry in value]
    if isinstance(value, Mapping):
        return {name: _write_value(entry) for name, entry in value.items()}
    if isinstance(value, dt.date):
        return value.isoformat()
    return value


def read_record(record_class: type[_Record], value: object, location: str = "") -> _Record:
    """Create an instance of a dataclass from a JSON object.

    Args:
        record_class: the dataclass.
        value: the JSON object.
        location: the path of the object in its file, for messages.

    Raises:
        InputError: a value is missing or has the wrong type.
    """
    if not isinstance(value, Mapping):
        raise refuse(location or "the whole", value, "an object with names and values")
    if location:
        location += "."
    return _read_entries(record_class, value, location)


def _read_entries(
    record_class: type[_Record], entries: Mapping[str, Any], location: str
) -> _Record:
    """Create an instance of a dataclass from the entries of a JSON object."""
    values = {}
    # A class is hashable, which mypy does not see.
    for record_field, field_type in _typed_fields(record_class):  # type: ignore[arg-type]
        name = record_field.name
        if _PREFIX in record_field.metadata:
            value = _read_flattened_field(record_class, record_field, field_type, entries, location)
            if value is not None:
                values[name] = value
        elif name in entries:
            values[name] = _read_value(field_type, entries[name], f"{location}{name}")
        elif record_field.default is MISSING or _IS_REQUIRED in record_field.metadata:
            raise InputError(f"{location}{name} is missing. Use an intact copy.")
    return record_class(**values)


@cache
def _typed_fields(record_class: Any) -> tuple[tuple[Field[Any], Any], ...]:
    """Return the fields of a dataclass, each with its resolved type."""
    types = get_type_hints(record_class)
    return tuple((record_field, types[record_field.name]) for record_field in fields(record_class))


def _read_flattened_field(
    record_class: type[Any],
    record_field: Field[Any],
    field_type: Any,
    entries: Mapping[str, Any],
    location: str,
) -> Any:
    """Read a flattened field from the entries of its parent's object.

    A mapping receives all entries that belong to no other field. An optional record without entries
    is None.
    """
    if get_origin(field_type) is Mapping:
        names = {other.name for other in fields(record_class)}
        return {name: entry for name, entry in entries.items() if name not in names}
    prefix = record_field.metadata[_PREFIX]
    own_entries = {
        name.removeprefix(prefix): entry
        for name, entry in entries.items()
        if name.startswith(prefix)
    }
    if isinstance(field_type, UnionType):
        (field_type,) = (member for member in get_args(field_type) if member is not NoneType)
        if not {part.name for part in fields(field_type)} & own_entries.keys():
            return None
    return _read_entries(field_type, own_entries, f"{location}{prefix}")


def _read_value(value_type: Any, value: Any, location: str) -> Any:
    """Return a JSON value converted to a scalar, union, tuple, mapping or record."""
    if value_type is Any:
        return value
    if isinstance(value_type, UnionType):
        return _read_union(value_type, value, location)
    if hasattr(value_type, "from_json"):
        return value_type.from_json(value)
    if is_dataclass(value_type):
        return read_record(value_type, value, location)  # type: ignore[arg-type] # a class
    if get_origin(value_type) is tuple:
        return _read_tuple(get_args(value_type)[0], value, location)
    if get_origin(value_type) is Mapping:
        return _read_mapping(get_args(value_type)[1], value, location)
    return _SCALAR_READERS[value_type](value, location)


def _read_union(value_type: UnionType, value: Any, location: str) -> Any:
    """Return a JSON value converted to a member of a union.

    None and texts stay unchanged if the union contains their types. Any other value is read as the
    remaining member of the union.
    """
    members = get_args(value_type)
    if type(value) in members and type(value) in (NoneType, str):
        if isinstance(value, str):
            return _read_value(str, value, location)
        return None
    others = [member for member in members if member not in (NoneType, str)]
    return _read_value(others[0] if others else str, value, location)


def _read_tuple(value_type: Any, value: Any, location: str) -> tuple[Any, ...]:
    """Return a JSON list as a tuple of typed values."""
    if not isinstance(value, list):
        raise refuse(location, value, "a list")
    return tuple(
        _read_value(value_type, entry, f"{location}[{number}]")
        for number, entry in enumerate(value)
    )


def _read_mapping(value_type: Any, value: Any, location: str) -> Mapping[str, Any]:
    """Return a JSON object as a mapping with typed values."""
    if not isinstance(value, Mapping):
        raise refuse(location, value, "an object with names and values")
    return {
        name: _read_value(value_type, entry, f"{location}.{name}") for name, entry in value.items()
    }


def _read_text(value: Any, location: str) -> str:
    """Return a JSON string; raise for any other value."""
    if not isinstance(value, str) or value != value.encode("utf-8", "replace").decode("utf-8"):
        raise refuse(location, value, "a text")
    return value


def _read_boolean(value: Any, location: str) -> bool:
    """Return a JSON boolean; raise for any other value."""
    if not isinstance(value, bool):
        raise refuse(location, value, "true or false")
    return value


def _read_integer(value: Any, location: str) -> int:
    """Return a JSON integer; raise for any other value."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST_WHOLE:
        raise refuse(location, value, f"a whole number of at most {_LARGEST_WHOLE} in size")
    return value


def _read_number(value: Any, location: str) -> float:
    """Return a finite JSON number as a float; raise for any other value."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) <= _LARGEST_NUMBER or math.isnan(value):
        raise refuse(location, value, f"a number of at most {_LARGEST_NUMBER:g} in size")
    return float(value)


def _read_day(value: Any, location: str) -> dt.date:
    """Return the date that a JSON string states in ISO form."""
    try:
        return dt.date.fromisoformat(_read_text(value, location))
    except ValueError:
        raise refuse(location, value, "a day such as '2026-01-31'") from None


_SCALAR_READERS = {
    str: _read_text,
    bool: _read_boolean,
    int: _read_integer,
    float: _read_number,
    dt.date: _read_day,
}
