"""Attributes and measures as plain JSON values. What is at its default is left out, so equal values have equal JSON."""

from collections.abc import Mapping
from typing import Any

from leastnoise._check import InputError, refuse
from leastnoise._domain._kinds import Bins, Categories, Coded, Integers, Kind, Measure
from leastnoise._domain._names import attribute_name, known_keys

_FIELDS = {
    "categories": ("values",),
    "integers": ("low", "high"),
    "bins": ("low", "high", "count"),
    "coded": ("size",),
}
_OPTIONS = {
    "categories": ("null", "outside"),
    "integers": ("null", "outside"),
    "bins": ("closed", "null", "outside"),
    "coded": ("null", "outside"),
}


def kind_to_json(kind: Kind) -> dict[str, Any]:
    """Write a kind.

    >>> kind_to_json(Bins(0, "0.5", 5, outside="clip"))
    {'kind': 'bins', 'low': '0', 'high': '1/2', 'count': 5, 'outside': 'clip'}
    """
    policies = {key: value for key, value in (("null", kind.null), ("outside", kind.outside)) if value != "drop"}
    if isinstance(kind, Categories):
        return {"kind": "categories", "values": list(kind.values), **policies}
    if isinstance(kind, Integers):
        return {"kind": "integers", "low": kind.low, "high": kind.high, **policies}
    if isinstance(kind, Coded):
        return {"kind": "coded", "size": kind.codes, **policies}
    closed = {} if kind.closed == "left" else {"closed": kind.closed}
    return {"kind": "bins", "low": str(kind.low), "high": str(kind.high), "count": kind.count, **closed, **policies}


def kind_from_json(value: Mapping[str, Any]) -> tuple[str, Kind]:
    """Read a kind with its name.

    >>> kind_from_json({"name": "zone", "kind": "coded", "size": 3})
    ('zone', Coded(3))
    """
    known = sorted({key for keys in (*_FIELDS.values(), *_OPTIONS.values()) for key in keys})
    table = known_keys("an attribute in JSON", value, ["name", "kind", *known])
    name, word = attribute_name("'name' of an attribute in JSON", table.pop("name", None)), table.pop("kind", None)
    if not isinstance(word, str) or word not in _FIELDS:
        raise refuse(f"'kind' of the attribute {name!r}", word, "one of " + ", ".join(repr(key) for key in _FIELDS))
    table = known_keys(f"the attribute {name!r} in JSON", table, [*_FIELDS[word], *_OPTIONS[word]])
    for key in _FIELDS[word]:
        if key not in table:
            raise InputError(f"the attribute {name!r} in JSON must have {key!r}, as every attribute of kind {word!r}.")
    return name, _KINDS[word](**table)


_KINDS: dict[str, Any] = {"categories": Categories, "integers": Integers, "bins": Bins, "coded": Coded}


def measure_to_json(measure: Measure) -> dict[str, Any]:
    """Write a measure.

    >>> measure_to_json(Measure("income", 0, 100, unit="0.5"))
    {'column': 'income', 'low': '0', 'high': '100', 'unit': '1/2'}
    """
    return {"column": measure.column, "low": str(measure.low), "high": str(measure.high), "unit": str(measure.unit)}


def measure_from_json(value: Mapping[str, Any]) -> tuple[str, Measure]:
    """Read a measure with its name.

    >>> measure_from_json({"name": "pay", "column": "income", "low": "0", "high": "100", "unit": "1/2"})
    ('pay', Measure('income', 0, 100, unit='0.5'))
    """
    keys = ["name", "column", "low", "high", "unit"]
    table = known_keys("a measure in JSON", value, keys)
    for key in keys:
        if key not in table:
            raise InputError(f"a measure in JSON must have {key!r}.")
    fields: dict[str, Any] = table
    return attribute_name("'name' of a measure in JSON", fields.pop("name")), Measure(**fields)
