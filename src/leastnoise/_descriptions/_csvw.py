"""CSV on the Web, with the vocabulary CSVW-EO for what is public: keys, partitions, bounds, the privacy unit and its contributions."""

from collections.abc import Mapping
from typing import Any

from leastnoise._check import exact
from leastnoise._descriptions._description import BLANK, Description, clipped, numbers, whole_numbers

_WHOLE = {
    "integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger",
    "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
}  # fmt: skip
_NUMBERS = {"decimal", "double", "float", "number"}
_DATES = {"date", "dateTime", "datetime", "dateTimeStamp"}
_TEXTS = {"string", "normalizedString", "token", "anyURI", "language", "Name", "NMTOKEN"}


def is_csvw(value: Any) -> bool:
    """Whether it has a table schema with columns."""
    schema = value.get("tableSchema") if isinstance(value, Mapping) else None
    return isinstance(schema, Mapping) and isinstance(schema.get("columns"), list)


def from_csvw(value: Mapping[str, Any]) -> Description:
    """The table of the metadata."""
    unit = value.get("privacyUnit")
    attributes: dict[str, Any] = {}
    measures: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for column in value["tableSchema"]["columns"]:
        name = str(column.get("name") or column.get("titles") or "")
        if column.get("privacyId") is True or (unit is not None and name == unit):
            unit = name
            left_out[name] = "it names the person"
            continue
        datatype, low, high = _type(column)
        table = _attribute(column, datatype, low, high)
        if table is None:
            left_out[name] = f"of type {datatype}, which cannot be published"
            continue
        attributes[name] = table
        if datatype in _WHOLE | _NUMBERS and (measure := clipped(low, high)) is not None:
            measures[name] = measure
    per_person = value.get("maxContributions")
    return Description(
        tool="CSVW-EO",
        attributes=attributes,
        measures=measures,
        left_out=left_out,
        unit=unit,
        max_rows=per_person if type(per_person) is int else BLANK,
        notes=("Metadata that were generated from the data must be reviewed: what is not public beforehand must not be in a spec.",),
    )


def _type(column: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """The datatype, which CSVW lets be a text or an object with the bounds, and its bounds."""
    given = column.get("datatype", "string")
    inner = given if isinstance(given, Mapping) else {}
    name = str(inner.get("base", "string") if inner else given)
    return name, *(column.get(key, inner.get(key)) for key in ("minimum", "maximum"))


def _attribute(column: Mapping[str, Any], datatype: str, low: Any, high: Any) -> dict[str, Any] | None:
    keys = _keys(column)
    edges = _edges(column)
    rest = {"outside": "other"} if column.get("exhaustiveKeys") is False or column.get("exhaustivePartitions") is False else {}
    if keys and datatype in _TEXTS | _WHOLE:
        return {"categories": keys, **rest}
    if datatype in _WHOLE | _NUMBERS and edges is not None:
        return {"edges": edges, **rest}
    if datatype in _WHOLE:
        return whole_numbers(low, high)
    if datatype in _NUMBERS:
        return numbers(low, high)
    if datatype in _DATES:
        return {"dates": {"from": str(low)[:10] if low else BLANK, "to": str(high)[:10] if high else BLANK, "by": "month"}}
    if datatype == "boolean":
        return {"categories": [True, False]}
    return {"categories": [BLANK]} if datatype in _TEXTS else None


def _keys(column: Mapping[str, Any]) -> list[Any]:
    """The public values, given as such or as partitions of one value each."""
    if isinstance(column.get("keyValues"), list):
        return list(column["keyValues"])
    return [one["partitionValue"] for one in _predicates(column) if "partitionValue" in one]


def _edges(column: Mapping[str, Any]) -> list[str] | None:
    """The edges of partitions that follow each other without a gap; None if they do not."""
    given = _predicates(column)
    if not given or any(one.get("lowerBound") is None or one.get("upperBound") is None for one in given):
        return None
    lows = sorted((one["lowerBound"] for one in given), key=lambda bound: exact("a bound of a partition", bound))
    highs = sorted((one["upperBound"] for one in given), key=lambda bound: exact("a bound of a partition", bound))
    if any(exact("a bound", low) != exact("a bound", high) for low, high in zip(lows[1:], highs[:-1], strict=True)):
        return None
    return [str(lows[0]), *map(str, highs)]


def _predicates(column: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = column.get("partitions") or []
    return [one["predicate"] for one in listed if isinstance(one, Mapping) and isinstance(one.get("predicate"), Mapping)]
