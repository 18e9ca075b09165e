"""Read the attributes and the measures of a spec."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leastnoise._domain import (
    Bins,
    Categories,
    Coded,
    Dates,
    Decimals,
    Domain,
    Edges,
    Integers,
    Kind,
    Measure,
    Reading,
    UnitTotal,
    Unknown,
    attribute_name,
    checked_keys,
)
from leastnoise._spec._checks import prefix_errors, read_pair
from leastnoise._spec._level_spec import read_levels
from leastnoise._spec._public_files import PublicFiles
from leastnoise._trusted.check import InputError, message, refuse

# How texts become values: set in [source] for all columns, or for one attribute or measure.
READING_KEYS = ("nulls", "decimal", "thousands", "currency", "trim", "ignore_case")
_NO_FILES = PublicFiles(Path())


def domain_from_spec(
    attributes: Mapping[str, Any],
    measures: Mapping[str, Any] | None = None,
    files: PublicFiles = _NO_FILES,
    reading: Mapping[str, Any] | None = None,
) -> Domain:
    """Build the domain from the tables ``[domain.*]`` and ``[measures.*]``."""
    for subject, tables in (("[domain]", attributes), ("[measures]", measures or {})):
        if not isinstance(tables, Mapping):
            raise refuse(subject, tables, "a table of tables")
    kinds = {
        name: kind_from_spec(name, table, files, reading) for name, table in attributes.items()
    }
    return Domain(
        kinds,
        measures={
            name: measure_from_spec(name, table, reading)
            for name, table in (measures or {}).items()
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _KindTable:
    """The keys of a kind that a spec states as a table.

    Attributes:
        kind: the class of the kind.
        required: the required keys, in the order of the arguments of the class.
        optional: the optional keys, which are keyword arguments of the class.
        read_elsewhere: further keys, which other parts of the program read.
        example: an example, for messages.
    """

    kind: Callable[..., Kind]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    read_elsewhere: tuple[str, ...] = ()
    example: str


_KIND_TABLES = {
    "decimals": _KindTable(
        kind=Decimals,
        required=("low", "high", "step"),
        example='decimals = { low = "120", high = "220", step = "0.5" }',
    ),
    "bins": _KindTable(
        kind=Bins,
        required=("low", "high", "count"),
        optional=("closed",),
        example=(
            "bins = { low = 0, high = 200000, count = 500 }; "
            "or, for widths of your own, edges = [0, 10, 100] in its place"
        ),
    ),
    "dates": _KindTable(
        kind=Dates,
        required=("from", "to", "by"),
        optional=("zone", "format", "century", "months"),
        example='dates = { from = "2024-01-01", to = "2025-12-31", by = "month" }',
    ),
    "unknown": _KindTable(
        kind=Unknown,
        required=("most",),
        optional=("longest",),
        read_elsewhere=("share", "found"),
        example="unknown = { most = 10000 }",
    ),
}
_SHAPES = ("categories", "integers", "decimals", "bins", "edges", "dates", "unknown", "size")
_ALSO_ALLOWED = {"spellings": "categories", "rounding": "integers", "closed": "edges"}
_ATTRIBUTE_KEYS = (
    *_SHAPES,
    "outside",
    "null",
    "complete",
    "column",
    "levels",
    "labels",
    *READING_KEYS,
    *_ALSO_ALLOWED,
)


def _kind_key(location: str, settings: Mapping[str, Any]) -> str:
    """Return the key that states the values of an attribute, such as "bins"."""
    shapes = [key for key in _SHAPES if key in settings]
    if len(shapes) != 1:
        listed_shapes = " and ".join(repr(key) for key in shapes) or "none of them"
        allowed_shapes = ", ".join(repr(key) for key in _SHAPES[:-1])
        raise InputError(
            f"{location} must have exactly one of {allowed_shapes} and 'size'; got {listed_shapes}."
        )
    shape = shapes[0]
    for key, owner in _ALSO_ALLOWED.items():
        if key in settings and owner != shape:
            raise InputError(
                f"{location} has {key!r}, which is allowed only together with {owner!r}; "
                f"{location} has {shape!r} instead."
            )
    return shape


def kind_from_spec(
    name: str,
    table: object,
    files: PublicFiles = _NO_FILES,
    reading: Mapping[str, Any] | None = None,
) -> Kind:
    """Build the `Kind` of an attribute from its table ``[domain.NAME]``."""
    attribute_name("the name of an attribute", name)
    where = f"[domain.{name}]"
    settings: dict[str, Any] = checked_keys(where, table, _ATTRIBUTE_KEYS)
    shape = _kind_key(where, settings)
    arguments = {
        key: settings[key]
        for key in ("outside", "null", "complete", *_ALSO_ALLOWED)
        if key in settings
    }
    with prefix_errors(message("[domain.{name}]: ", name=name)):
        value = settings[shape]
        column = settings.get("column")
        if shape == "dates" and isinstance(value, Mapping) and "column" in value:
            column = value["column"]
            value = {key: entry for key, entry in value.items() if key != "column"}
        reading_settings = {
            **(reading or {}),
            **{key: settings[key] for key in READING_KEYS if key in settings},
        }
        arguments["reading"] = Reading(
            column=None if column == name else column, **reading_settings
        )
        if shape == "unknown" and "levels" in settings:
            # `Unknown` refuses levels, because there are no categories yet.
            arguments["levels"] = settings["levels"]
        kind = _kind_from_key(shape, value, arguments, files)
        if "levels" in settings:
            return kind.with_levels(read_levels(settings["levels"], kind, files))
        return kind


def _kind_from_key(
    kind_key: str, value: Any, arguments: Mapping[str, Any], files: PublicFiles
) -> Kind:
    """Build the `Kind` of an attribute from a key such as "bins" and its value."""
    if kind_key == "categories":
        if isinstance(value, Mapping):
            value = files.categories(value)
        if not isinstance(value, (list, tuple)):
            raise refuse(
                "categories", value, "a list of text or whole numbers, or { file, column }"
            )
        return Categories(tuple(value), **arguments)
    if kind_key == "integers":
        low, high = read_pair(kind_key, value)
        return Integers(low, high, **arguments)
    if kind_key == "edges":
        return Edges(value, **arguments)
    if kind_key == "size":
        return Coded(value, **arguments)
    return _kind_from_table(kind_key, value, arguments)


def _kind_from_table(kind_key: str, value: object, arguments: Mapping[str, Any]) -> Kind:
    """Build a `Kind` that the spec states as a table, such as bins."""
    table = _KIND_TABLES[kind_key]
    allowed = [*table.required, *table.optional, *table.read_elsewhere]
    try:
        settings: dict[str, Any] = checked_keys(kind_key, value, allowed)
    except InputError as error:
        raise InputError(f"{error} Write for example {table.example}.") from None
    for key in table.required:
        if key not in settings:
            raise InputError(f"{kind_key} must have {key!r}; write for example {table.example}.")
    required = [settings[key] for key in table.required]
    optional = {key: settings[key] for key in table.optional if key in settings}
    return table.kind(*required, **optional, **arguments)


def measure_from_spec(
    name: str, table: object, reading: Mapping[str, Any] | None = None
) -> Measure:
    """Build the measure from its table ``[measures.NAME]``."""
    attribute_name("the name of a measure", name)
    where = f"[measures.{name}]"
    settings: dict[str, Any] = checked_keys(
        where, table, ["column", "clip", "unit_total", "unit", *READING_KEYS]
    )
    if ("clip" in settings) == ("unit_total" in settings):
        raise InputError(
            f"{where} must have either 'clip', the public bounds of a value, or 'unit_total', the "
            "bounds of the total of one unit in a cell; write for example clip = [0, 200000] or "
            'unit_total = { clip = [0, 200000], by = ["month"] }.'
        )
    with prefix_errors(message("[measures.{name}]: ", name=name)):
        reading_settings = {
            **(reading or {}),
            **{key: settings[key] for key in READING_KEYS if key in settings},
        }
        column = settings.get("column", name)
        unit = settings.get("unit", "1")
        reading_of_measure = Reading(**reading_settings)
        if "clip" in settings:
            low, high = read_pair("clip", settings["clip"])
            return Measure(column, low, high, unit, reading=reading_of_measure)
        total: dict[str, Any] = checked_keys("unit_total", settings["unit_total"], ["clip", "by"])
        if "clip" not in total:
            raise InputError(
                "unit_total must have 'clip', the public bounds of the total of one unit in a "
                'cell; write for example unit_total = { clip = [0, 2000], by = ["month"] }.'
            )
        low, high = read_pair("clip", total["clip"])
        return UnitTotal(
            column, low, high, unit, by=total.get("by", []), reading=reading_of_measure
        )
