"""Descriptions of tables by other tools, one reader each.

CSV on the Web, with the vocabulary CSVW-EO for what is public: keys, partitions, bounds, the privacy unit and its contributions.

``domain.json`` of mbi (private-pgm): the number of codes of every attribute.

The domain of an OpenDP context, as ``opendp.prelude.serialize`` writes it: the columns with their types, bounds and categories.

A context itself holds the data and cannot be a file; of what it says beside its domain, margins and lengths are no part of a spec.

Metadata of SmartNoise SQL (YAML): a database, a schema, a table, and of every column its type and bounds.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._check import InputError, exact

BLANK = "FILL IN"
MOST_VALUES = 1000  # of whole numbers that get a cell each; more are drafted as bins
_BINS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A described table."""

    tool: str
    attributes: Mapping[str, Mapping[str, Any]]
    measures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    max_rows: int | str = BLANK
    notes: tuple[str, ...] = ()


def whole_numbers(low: Any, high: Any) -> dict[str, Any]:
    """The domain of whole numbers between bounds, or blanks."""
    ends = _ends(low, high)
    if ends is None:
        return {"integers": [BLANK, BLANK]}
    first, last = ends
    if last - first < MOST_VALUES and first.denominator == last.denominator == 1:
        return {"integers": [int(first), int(last)], "outside": "clip"}
    return numbers(low, high)


def numbers(low: Any, high: Any) -> dict[str, Any]:
    """The domain of numbers between bounds, or blanks; values outside go to the nearest bin, as the tools clamp them."""
    ends = _ends(low, high)
    if ends is None:
        return {"bins": {"low": BLANK, "high": BLANK, "count": _BINS}}
    return {"bins": {"low": _plain(ends[0]), "high": _plain(ends[1]), "count": _BINS}, "outside": "clip"}


def clipped(low: Any, high: Any) -> dict[str, Any] | None:
    """A measure between bounds, in the coarsest unit of which both are multiples; None where there are none."""
    ends = _ends(low, high)
    if ends is None:
        return None
    unit = Fraction(1, math.lcm(*(end.denominator for end in ends)))
    return {"clip": [_plain(end) for end in ends], **({} if unit == 1 else {"unit": _plain(unit)})}


def _ends(low: Any, high: Any) -> tuple[Fraction, Fraction] | None:
    if low is None or high is None:
        return None
    first, last = exact("a lower bound", low), exact("an upper bound", high)
    return (first, last) if first < last else None


def _plain(value: Fraction) -> int | str:
    if value.denominator == 1:
        return int(value)
    text = f"{float(value):.15g}"
    return text if Fraction(text) == value else str(value)


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
        table = _csvw_attribute(column, datatype, low, high)
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


def _csvw_attribute(column: Mapping[str, Any], datatype: str, low: Any, high: Any) -> dict[str, Any] | None:
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
    return [predicate["partitionValue"] for predicate in _predicates(column) if "partitionValue" in predicate]


def _edges(column: Mapping[str, Any]) -> list[str] | None:
    """The edges of partitions that follow each other without a gap; None if they do not."""
    given = _predicates(column)
    if not given or any(predicate.get("lowerBound") is None or predicate.get("upperBound") is None for predicate in given):
        return None
    lows = sorted((predicate["lowerBound"] for predicate in given), key=lambda bound: exact("a bound of a partition", bound))
    highs = sorted((predicate["upperBound"] for predicate in given), key=lambda bound: exact("a bound of a partition", bound))
    if any(exact("a bound", low) != exact("a bound", high) for low, high in zip(lows[1:], highs[:-1], strict=True)):
        return None
    return [str(lows[0]), *map(str, highs)]


def _predicates(column: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = column.get("partitions") or []
    return [entry["predicate"] for entry in listed if isinstance(entry, Mapping) and isinstance(entry.get("predicate"), Mapping)]


def is_mbi(value: Any) -> bool:
    """Whether it is an object of sizes."""
    return isinstance(value, Mapping) and bool(value) and all(type(size) is int and size > 0 for size in value.values())


def from_mbi(value: Mapping[str, int]) -> Description:
    """Codes 0 to size - 1, as mbi's data have them."""
    note = "mbi numbers the values of an attribute from 0; where the data have other values, write categories, integers or bins instead."
    return Description(tool="mbi", attributes={name: {"size": size} for name, size in value.items()}, notes=(note,))


def is_opendp(value: Any) -> bool:
    """Whether it has columns of OpenDP."""
    return any(True for _ in _calls(value, "series_domain"))


def from_opendp(value: Any) -> Description:
    """The columns of a frame's domain."""
    attributes: dict[str, Any] = {}
    measures: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for column in _calls(value, "series_domain"):
        name, element = str(column.get("name")), column.get("element_domain")
        table = _opendp_attribute(element)
        if table is None:
            left_out[name] = "of a type which cannot be published"
            continue
        attributes[name] = table
        if ("integers" in table or "bins" in table) and (measure := clipped(*_bounds(element))) is not None:
            measures[name] = measure
    note = "The unit and the budget of an OpenDP context are not in its domain: write [privacy] anew."
    return Description(tool="OpenDP", attributes=attributes, measures=measures, left_out=left_out, notes=(note,))


def _opendp_attribute(element: Any) -> dict[str, Any] | None:
    for kind in ("enum_domain", "categorical_domain"):
        for call in _calls(element, kind):
            listed = call.get("categories")
            return {"categories": list(listed) if isinstance(listed, list) and listed else [BLANK]}
    for call in _calls(element, "atom_domain"):
        name = str(call.get("T"))
        if name == "bool":
            return {"categories": [True, False]}
        if name[:1] in "iu" and name[1:].isdecimal():
            return whole_numbers(*_bounds(element))
        if name.startswith("f"):
            return numbers(*_bounds(element))
        return {"categories": [BLANK]} if name == "String" else None
    if any(True for _ in _calls(element, "datetime_domain")):
        return {"dates": {"from": BLANK, "to": BLANK, "by": "month"}}
    return None


def _bounds(element: Any) -> tuple[Any, Any]:
    for call in _calls(element, "atom_domain"):
        bounds = call.get("bounds")
        pair = bounds.get("__tuple__") if isinstance(bounds, Mapping) else bounds
        if isinstance(pair, list) and len(pair) == 2:
            return pair[0], pair[1]
    return None, None


def _calls(value: Any, function: str) -> Iterator[Mapping[str, Any]]:
    """The arguments of every call of a constructor, wherever it stands."""
    if isinstance(value, list):
        for inner in value:
            yield from _calls(inner, function)
    elif isinstance(value, Mapping):
        if value.get("__function__") == function and isinstance(value.get("__kwargs__"), Mapping):
            yield value["__kwargs__"]
        else:
            for inner in value.values():
                yield from _calls(inner, function)


_TYPES = {"int", "float", "string", "boolean", "datetime", "unknown"}


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
    columns = [column for column in value.values() if isinstance(column, Mapping) and str(column.get("type")) in _TYPES]
    if columns:
        yield path, value
        return
    for name, inner in value.items():
        yield from _tables(inner, f"{path}.{name}" if path else str(name), depth + 1)


READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Description]], ...] = (
    (is_csvw, from_csvw),
    (is_mbi, from_mbi),
    (is_opendp, from_opendp),
    (is_smartnoise, from_smartnoise),
)
_KNOWN = "CSVW-EO (JSON), SmartNoise metadata (YAML), domain.json of mbi, and a domain that OpenDP serialized"


def read_description(path: Path) -> Description:
    """Read a description by what it holds, not by its name."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"The description {str(path)!r} cannot be read: {reason}. Name a file that you may read.") from None
    except UnicodeDecodeError:
        raise InputError(f"The description {str(path)!r} is not text in UTF-8. Known are {_KNOWN}.") from None
    value = _parsed(text, path)
    for fits, read in READERS:
        if fits(value):
            try:
                return read(value)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"The description {str(path)!r} looks like one for {read.__name__}, and is damaged. Mend it.") from None
    raise InputError(f"The description {str(path)!r} is none that is known: {_KNOWN}.")


def _parsed(text: str, path: Path) -> Any:
    """The value of a JSON or YAML text; numbers with a point stay texts, so that they are exact."""
    try:
        return json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        pass
    try:
        import yaml
    except ImportError:
        raise InputError("Descriptions in YAML need the extra 'yaml': pip install 'leastnoise[yaml]'.") from None
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts, lists and dictionaries alone
    except (yaml.YAMLError, RecursionError):
        raise InputError(f"The description {str(path)!r} is neither JSON nor YAML. Known are {_KNOWN}.") from None
