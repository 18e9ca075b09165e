"""Attributes and measures as plain JSON values. What is at its default is left out, so equal values have equal JSON."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any

from leastnoise._check import InputError, refuse
from leastnoise._domain._cells import parts_of, plain_json
from leastnoise._domain._dates import Dates
from leastnoise._domain._kind import Kind, Level, known_keys, own_fields
from leastnoise._domain._kinds import Bins, Categories, Coded, Decimals, Edges, Integers, Unknown
from leastnoise._domain._measure import Measure, UnitCount, ValueCount, Weighted
from leastnoise._domain._reading import Reading, attribute_name

_KINDS: dict[str, type[Kind]] = {
    "categories": Categories,
    "integers": Integers,
    "decimals": Decimals,
    "bins": Bins,
    "edges": Edges,
    "dates": Dates,
    "coded": Coded,
    "unknown": Unknown,
}


def _fields(kind: type[Kind]) -> dict[str, tuple[str, Any]]:
    """The fields of a kind by their names in JSON, its own first, with those in the class, and defaults where they need not be said."""
    named = [*own_fields(kind), *(field for field in fields(Kind) if field.init)]
    return {"size" if field.name == "codes" else field.name: (field.name, field.default if field.kw_only else MISSING) for field in named}


@plain_json.register
def kind_to_json(kind: Kind) -> dict[str, Any]:
    """Write a kind."""
    word = next(word for word, kinds in _KINDS.items() if isinstance(kind, kinds))
    said = {key: (getattr(kind, name), usual) for key, (name, usual) in _fields(type(kind)).items()}
    return {"kind": word, **{key: _plain(value) for key, (value, usual) in said.items() if value != usual}}


def _plain(value: object) -> Any:
    if isinstance(value, (Level, Reading)):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value) if isinstance(value, Fraction) else value


def kind_from_json(value: Mapping[str, Any]) -> tuple[str, Kind]:
    """Read a kind with its name."""
    known = sorted({name for kind in _KINDS.values() for name in _fields(kind)})
    table = known_keys("an attribute in JSON", value, ["name", "kind", *known])
    name, word = attribute_name("'name' of an attribute in JSON", table.pop("name", None)), table.pop("kind", None)
    if not isinstance(word, str) or word not in _KINDS:
        raise refuse(f"'kind' of the attribute {name!r}", word, "one of " + ", ".join(repr(key) for key in _KINDS))
    kind = _KINDS[word]
    said: dict[str, Any] = known_keys(f"the attribute {name!r} in JSON", table, list(_fields(kind)))
    for key, (_, usual) in _fields(kind).items():
        if usual is MISSING and key not in said:
            raise InputError(f"the attribute {name!r} in JSON must have {key!r}, as every attribute of kind {word!r}.")
    return name, kind(**said)


@plain_json.register
def measure_to_json(measure: Measure) -> dict[str, Any]:
    """Write a measure."""
    if isinstance(measure, UnitCount):
        return {"units_of": list(measure.attributes)}
    if isinstance(measure, Weighted):
        return {"of": measure_to_json(measure.of), "weighted_by": measure_to_json(measure.weight)}
    said = {"column": measure.column}
    if not isinstance(measure, ValueCount):
        said |= {"low": str(measure.low), "high": str(measure.high), "unit": str(measure.unit)}
    return said | {name: value for name, value in {"reading": measure.reading.to_json()}.items() if value}


_PARTS = ("column", "low", "high", "unit", "reading")


def measure_from_json(value: Mapping[str, Any]) -> tuple[str, Measure]:
    """Read a measure with its name."""
    if "units_of" in value:
        counted: dict[str, Any] = known_keys("a count of units in JSON", value, ["name", "units_of"])
        return attribute_name("'name' of a count of units in JSON", counted.get("name")), UnitCount(counted["units_of"])
    if "weighted_by" in value:
        product: dict[str, Any] = known_keys("a weighted measure in JSON", value, ["name", "of", "weighted_by"])
        name = attribute_name("'name' of a weighted measure in JSON", product.get("name"))
        of, weight = (
            measure_from_json({"name": name, **known_keys("a measure", product.get(key), _PARTS)})[1] for key in ("of", "weighted_by")
        )
        return name, Weighted(of, weight)
    keys = ["name", "column", "low", "high", "unit"] if {*value} - {"name", "column", "reading"} else ["name", "column"]
    given: dict[str, Any] = known_keys("a measure in JSON", value, [*keys, "reading"])
    if missing := [key for key in keys if key not in given]:
        raise InputError(f"a measure in JSON must have {missing[0]!r}.")
    said: dict[str, Any] = known_keys("reading", given.pop("reading", {}), [field.name for field in fields(Reading)])
    name, reading = attribute_name("'name' of a measure in JSON", given.pop("name")), Reading(**said)
    measure = Measure(**{"low": 0, "high": 1} | given, reading=reading)
    return name, measure if "low" in given else ValueCount(measure)


@parts_of.register(object)
def _(value: object) -> tuple[list[tuple[str, Kind]], dict[str, Measure]]:
    table: dict[str, Any] = known_keys("a domain in JSON", value, ["attributes", "measures"])
    for key in ("attributes", "measures"):
        if not isinstance(table.get(key), (list, tuple)):
            raise refuse(f"{key!r} of a domain in JSON", table.get(key), "a list")
    kinds, measures = list(map(kind_from_json, table["attributes"])), list(map(measure_from_json, table["measures"]))
    if len(dict(measures)) != len(measures):
        raise InputError("a measure must be named once; got a name twice in 'measures'.")
    return kinds, dict(measures)
