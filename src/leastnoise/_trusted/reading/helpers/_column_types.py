"""Derive the kind of a source's values from the declared column types.

CSV files and Python objects have no declared types. This file is not trusted, because it reads no
value.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from leastnoise._trusted.domain import Holds


def common_value_types(types: Iterable[Mapping[str, Holds]]) -> dict[str, Holds]:
    """Return the kind of the values of each column, if all files agree.

    For each column, a file is ignored if the column has only nulls in it, unless the column has
    only nulls in all files. Kinds are "numbers", "texts", "dates" and others (`Holds`). A column is
    not in the result if files disagree on it.

    >>> common_value_types(
    ...     [{"a": "numbers", "b": "dates"}, {"a": "numbers", "b": "texts"}, {"a": "nulls"}]
    ... )
    {'a': 'numbers'}
    """
    files = list(types)
    in_every_file: dict[str, Holds] = {}
    for name in dict.fromkeys(chain.from_iterable(files)):
        held_types = {file.get(name) for file in files}
        held_values = held_types - {"nulls"} or held_types
        (holds, *others) = held_values
        if holds is not None and not others:
            in_every_file[name] = holds
    return in_every_file


def arrow_value_types(schema: Iterable[Any]) -> dict[str, Holds]:
    """Return the kind of value (`Holds`) of each column of an Arrow schema.

    Columns of unsupported types are left out.

    >>> arrow_value_types(pa.schema({"a": pa.int8(), "b": pa.date32(), "c": pa.list_(pa.int8())}))
    {'a': 'numbers', 'b': 'dates'}
    """
    known = {field.name: _arrow_value_type(field.type) for field in schema}
    return {name: holds for name, holds in known.items() if holds is not None}


def _arrow_value_type(arrow_type: Any) -> Holds | None:
    """Return the kind of the values of an Arrow type; None if not supported."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        return _arrow_value_type(arrow_type.value_type)
    if types.is_null(arrow_type):
        return "nulls"
    if types.is_boolean(arrow_type):
        return "Booleans"
    if (
        types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
        or types.is_decimal(arrow_type)
    ):
        return "numbers"
    if types.is_date(arrow_type):
        return "dates"
    if types.is_timestamp(arrow_type):
        return "time stamps"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return "texts"
    return None


_NUMBERS = (
    "tinyint",
    "smallint",
    "int",
    "integer",
    "bigint",
    "hugeint",
    "utinyint",
    "usmallint",
    "uinteger",
    "ubigint",
    "uhugeint",
    "real",
    "float",
    "double",
    "double precision",
    "decimal",
    "numeric",
)
_NAMED: dict[str, Holds] = {
    **dict.fromkeys(_NUMBERS, "numbers"),
    **dict.fromkeys(("boolean", "bool"), "Booleans"),
    **dict.fromkeys(("varchar", "text", "string", "character varying", "enum"), "texts"),
    "date": "dates",
    '"null"': "nulls",
    "void": "nulls",
}


def database_value_types(column_types: Iterable[tuple[str, str]]) -> dict[str, Holds]:
    """Return the kind of value of each database column, by its type's name.

    Columns of unknown types are left out.

    >>> database_value_types(
    ...     [("a", "DECIMAL(9,2)"), ("b", "timestamp with time zone"), ("c", "INTEGER[]")]
    ... )
    {'a': 'numbers', 'b': 'time stamps'}
    """
    types: dict[str, Holds] = {}
    for name, kind in column_types:
        word = kind.lower()
        bare = re.sub(r"\(.*\)$", "", word)
        if word.endswith("]"):
            continue
        if bare.startswith("timestamp"):
            types[name] = "time stamps"
        elif bare in _NAMED:
            types[name] = _NAMED[bare]
    return types
