"""Pairs of a column's declared type and an attribute or measure that can match no value of it.

Only declared types are looked at, never a value; the types of CSV files and of Python objects are
not known. Not trusted: what is not refused here is read by the rule like everything else.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from leastnoise._domain import (
    Bins,
    Categories,
    Coded,
    Dates,
    Decimals,
    Edges,
    Integers,
    Kind,
    Measure,
)

Holds = Literal["numbers", "Booleans", "texts", "dates", "time stamps"]
_FORMS = {
    "numbers": re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?|-?inf", re.ASCII),
    "Booleans": re.compile(r"true|false"),
    "dates": re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2}", re.ASCII),
    "time stamps": re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2}( [0-9]{2}:.*)?", re.ASCII),
}
_OF_TRUTH = {"true", "false"}


def fault_of(asked: Kind | Measure, holds: Holds | None) -> str | None:
    """Return what is wrong and what to do if no value of a column can match; None if one can.

    >>> fault_of(Measure("paid", 0, 9), "time stamps")
    'it is read as numbers, which dates and time stamps are not; declare an attribute with dates'
    >>> fault_of(Integers(0, 9), "Booleans"), fault_of(Integers(0, 9), None)
    (None, None)
    """
    if holds is None:
        return None
    if isinstance(asked, (Measure, Integers, Decimals, Bins, Edges, Coded)):
        if holds in ("dates", "time stamps"):
            return (
                "it is read as numbers, which dates and time stamps are not; declare an attribute "
                "with dates"
            )
        return None
    if isinstance(asked, Dates):
        return _fault_of_dates(asked, holds)
    return _fault_of_categories(asked, holds) if isinstance(asked, Categories) else None


def _fault_of_dates(kind: Dates, holds: Holds) -> str | None:
    if holds == "Booleans":
        return "it is read as dates, which true and false are not"
    if holds == "numbers" and kind.format is None:
        return (
            "it is read as dates, and numbers are none without a format; say how they are written, "
            'for example format = "%Y%m%d", or convert the column'
        )
    return None


def _fault_of_categories(kind: Categories, holds: Holds) -> str | None:
    if holds not in _FORMS:
        return None
    forms = {kind.reading.form(str(value)) for value in kind.values}
    forms |= {kind.reading.form(text) for _, texts in kind.spellings for text in texts}
    if any(map(_FORMS[holds].fullmatch, forms)):
        return None
    examples = {
        "numbers": "such as 17 or 0.5",
        "Booleans": "true or false",
        "dates": "such as 2024-05-01",
        "time stamps": "such as 2024-05-01 13:45:00",
    }
    fault = f"none of its categories is the text of one of these, {examples[holds]}"
    if holds == "numbers" and forms <= _OF_TRUTH:
        return f'{fault}; say spellings = {{ true = ["1"], false = ["0"] }}'
    return f"{fault}; list the values as they are written so, or convert the column"


def in_all(types: Iterable[Mapping[str, Holds]]) -> dict[str, Holds]:
    """Return what columns hold in every one of several files; of others nothing is known.

    >>> in_all([{"a": "numbers", "b": "dates"}, {"a": "numbers", "b": "texts"}])
    {'a': 'numbers'}
    """
    first, *others = types
    return {
        name: holds
        for name, holds in first.items()
        if all(other.get(name) == holds for other in others)
    }


def held_by_arrow(schema: Iterable[Any]) -> dict[str, Holds]:
    """Return what the columns of an Arrow schema hold, where that is known.

    >>> held_by_arrow(pa.schema({"a": pa.int8(), "b": pa.date32(), "c": pa.list_(pa.int8())}))
    {'a': 'numbers', 'b': 'dates'}
    """
    known = {field.name: _arrow_type(field.type) for field in schema}
    return {name: holds for name, holds in known.items() if holds is not None}


def _arrow_type(kind: Any) -> Holds | None:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _arrow_type(kind.value_type)
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
}


def held_by_names(kinds: Iterable[tuple[str, str]]) -> dict[str, Holds]:
    """Return what the columns of a database hold, by the names of their types, where that is known.

    >>> held_by_names([("a", "DECIMAL(9,2)"), ("b", "timestamp with time zone"), ("c", "INTEGER[]")])
    {'a': 'numbers', 'b': 'time stamps'}
    """
    held: dict[str, Holds] = {}
    for name, kind in kinds:
        word = kind.lower()
        bare = re.sub(r"\(.*\)$", "", word)
        if word.endswith("]"):
            continue
        if bare.startswith("timestamp"):
            held[name] = "time stamps"
        elif bare in _NAMED:
            held[name] = _NAMED[bare]
    return held
