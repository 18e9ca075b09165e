"""Metadata of SmartNoise SQL (YAML): a database, a schema, a table, and of every column its type and bounds."""

from collections.abc import Iterator, Mapping
from typing import Any

from leastnoise._check import InputError
from leastnoise._descriptions._description import BLANK, Description, clipped, numbers, whole_numbers

_TYPES = {"int", "float", "string", "boolean", "datetime", "unknown"}
_ROWS = {"max_ids", "max_rows", "row_privacy", "rows"}


def is_smartnoise(value: Any) -> bool:
    """Whether it has tables whose columns have types."""
    return any(True for _ in _tables(value))


def from_smartnoise(value: Mapping[str, Any]) -> Description:
    """The one table of the metadata."""
    tables = list(_tables(value))
    if len(tables) != 1:
        listed = ", ".join(name for name, _ in tables)
        raise InputError(f"A spec is about one table; this metadata describes {len(tables)} ({listed}). Keep the one that you publish.")
    _, table = tables[0]
    columns = {name: column for name, column in table.items() if isinstance(column, Mapping) and "type" in column}
    unit = next((name for name, column in columns.items() if _true(column.get("private_id"))), None)
    attributes: dict[str, Any] = {}
    measures: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, column in columns.items():
        kind, low, high = str(column["type"]), column.get("lower"), column.get("upper")
        if name == unit:
            left_out[name] = "it names the person"
        elif kind == "int":
            attributes[name] = whole_numbers(low, high)
        elif kind == "float":
            attributes[name] = numbers(low, high)
        elif kind == "boolean":
            attributes[name] = {"categories": [True, False]}
        elif kind == "datetime":
            attributes[name] = {"dates": {"from": BLANK, "to": BLANK, "by": "month"}}
        elif kind == "string":
            attributes[name] = {"categories": [BLANK]}
        else:
            left_out[name] = "its type is unknown"
        if kind in {"int", "float"} and name in attributes and (measure := clipped(low, high)) is not None:
            measures[name] = measure
    per_person = table.get("max_ids", BLANK)
    return Description(
        tool="SmartNoise",
        attributes=attributes,
        measures=measures,
        left_out=left_out,
        unit=None if _true(table.get("row_privacy")) else unit,
        max_rows=int(per_person) if str(per_person).isdecimal() else BLANK,
        notes=("SmartNoise says nothing about which categories there are; a code list or a questionnaire does.",),
    )


def _true(value: object) -> bool:
    return str(value).lower() == "true"


def _tables(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every mapping of columns with types, with its path."""
    if not isinstance(value, Mapping) or depth > 4:
        return
    columns = [one for one in value.values() if isinstance(one, Mapping) and str(one.get("type")) in _TYPES]
    if columns:
        yield path, value
        return
    for name, inner in value.items():
        yield from _tables(inner, f"{path}.{name}" if path else str(name), depth + 1)
