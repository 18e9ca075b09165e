"""The content of a source's columns, by their declared types.

No value is read.

CSV files and Python objects have no declared types.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from leastnoise._trusted.domain import Holds


def common_value_types(types: Iterable[Mapping[str, Holds]]) -> dict[str, Holds]:
    """Return the value types of the columns on which all files agree.

    A file in which a column has only nulls is ignored for this column, unless the column has only
    nulls in all files. Columns on which files disagree are not in the result.

    >>> common_value_types([{"a": "numbers", "b": "dates"}, {"a": "numbers", "b": "texts"}, {"a": "nulls"}])
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
    """Return the value types of an Arrow schema's columns, where known.

    >>> arrow_value_types(pa.schema({"a": pa.int8(), "b": pa.date32(), "c": pa.list_(pa.int8())}))
    {'a': 'numbers', 'b': 'dates'}
    """
    known = {field.name: _arrow_value_type(field.type) for field in schema}
    return {name: holds for name, holds in known.items() if holds is not None}


def _arrow_value_type(kind: Any) -> Holds | None:
    """Return the value type of an Arrow type; None if it is not read."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _arrow_value_type(kind.value_type)
    if types.is_null(kind):
        return "nulls"
    if types.is_boolean(kind):
        return "Booleans"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_date(kind):
        return "dates"
    if types.is_timestamp(kind):
        return "time stamps"
    if types.is_string(kind) or types.is_large_string(kind):
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


def database_value_types(kinds: Iterable[tuple[str, str]]) -> dict[str, Holds]:
    """Return the value types of database columns, by their type names.

    Columns of unknown types are left out.

    >>> database_value_types([("a", "DECIMAL(9,2)"), ("b", "timestamp with time zone"), ("c", "INTEGER[]")])
    {'a': 'numbers', 'b': 'time stamps'}
    """
    types: dict[str, Holds] = {}
    for name, kind in kinds:
        word = kind.lower()
        bare = re.sub(r"\(.*\)$", "", word)
        if word.endswith("]"):
            continue
        if bare.startswith("timestamp"):
            types[name] = "time stamps"
        elif bare in _NAMED:
            types[name] = _NAMED[bare]
    return types
