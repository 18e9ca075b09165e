"""Readers for the descriptions of tables that other tools write.

- CSV on the Web with the vocabulary CSVW-EO for public facts: keys, partitions, bounds, the privacy
  unit and its contributions.
- ``domain.json`` of mbi (private-pgm): the number of codes of every attribute.
- The domain of an OpenDP context as ``opendp.prelude.serialize`` writes it: columns with types,
  bounds and categories. An OpenDP context holds the data and cannot be a file; its margins and
  lengths are not part of a spec.
- Metadata of SmartNoise SQL (YAML): a database, a schema, a table, and the type and bounds of every
  column.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from leastnoise._trusted.check import InputError, exact

BLANK = "FILL IN"
"""The text of a draft in the place of a public value that is not known."""
# Integers in a wider range than this are drafted as bins, not with a cell each.
MOST_INTEGER_CELLS = 1000
_DRAFT_BINS = 100  # bins of a drafted attribute of numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A table as another tool describes it, in the terms of a spec.

    Attributes:
        tool: the name of the tool that wrote the description.
        attributes: the entry of [domain] for each attribute.
        measures: the entry of [measures] for each numeric column that can be summed.
        left_out: for each column that is left out, the reason.
        unit: the column that identifies the privacy unit; None if every row is a unit.
        max_rows: the most rows of a unit; `BLANK` if the description does not state the number.
        notes: comments on the draft for its author.
    """

    tool: str
    attributes: Mapping[str, Mapping[str, Any]]
    measures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    max_rows: int | str = BLANK
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedColumn:
    """A column of a `Description`: its type and public facts about its values.

    Attributes:
        name: the name of the column.
        value_type: whole, number, date, truth or text; empty for a column that is left out.
        low: the least public value; None if unknown.
        high: the greatest public value; None if unknown.
        values: the public list of values; empty if there is none.
        edges: the ends of public bins, as texts; None without bins.
        complete: whether ``values`` has all values that occur.
        left_out: the reason, if the column is left out.
    """

    name: str
    value_type: str = ""
    low: Any = None
    high: Any = None
    values: Sequence[Any] = ()
    edges: Sequence[str] | None = None
    complete: bool = True
    left_out: str = "of a type which cannot be published"

    def to_attribute(self) -> dict[str, Any]:
        """Return a draft of the spec's table [domain.NAME] for this column.

        Unknown values are left blank.

        Numbers are clipped, as the tools clamp them.
        """
        if self.complete:
            outside = {}
        else:
            outside = {"outside": "other"}
        if self.values and self.value_type in {"text", "whole"}:
            return {"categories": list(self.values), **outside}
        if self.value_type in {"text", "truth"}:
            return {"categories": [True, False] if self.value_type == "truth" else [BLANK]}
        if self.value_type == "date":
            days = (str(day)[:10] if day else BLANK for day in (self.low, self.high))
            return {"dates": {**dict(zip(("from", "to"), days, strict=True)), "by": "month"}}
        if self.edges is not None:
            return {"edges": list(self.edges), **outside}
        ends = _exact_bounds(self.low, self.high)
        if ends is None and self.value_type == "whole":
            return {"integers": [BLANK, BLANK]}
        if ends is None:
            return {"bins": {"low": BLANK, "high": BLANK, "count": _DRAFT_BINS}}
        first, last = ends
        if (
            self.value_type == "whole"
            and last - first < MOST_INTEGER_CELLS
            and first.denominator == last.denominator == 1
        ):
            return {"integers": [int(first), int(last)], "outside": "clip"}
        return {
            "bins": {"low": _spec_number(first), "high": _spec_number(last), "count": _DRAFT_BINS},
            "outside": "clip",
        }

    def to_measure(self) -> dict[str, Any] | None:
        """Return a draft of the spec's table [measures.NAME]; None without bounds.

        Values are clipped to the bounds. The unit is the largest number such that both bounds are
        multiples of it. For numbers in a narrow range, such as shares, the unit is a hundredth of
        this number.
        """
        if self.value_type in {"whole", "number"}:
            ends = _exact_bounds(self.low, self.high)
        else:
            ends = None
        if ends is None:
            return None
        unit = Fraction(1, math.lcm(*(end.denominator for end in ends)))
        if self.value_type == "number" and ends[1] - ends[0] <= 1:
            unit /= 100
        return {
            "clip": [_spec_number(end) for end in ends],
            **({} if unit == 1 else {"unit": _spec_number(unit)}),
        }


def _make_description(tool: str, columns: Iterable[DescribedColumn], **facts: Any) -> Description:
    """Collect described columns into a `Description`."""
    described_columns = list(columns)
    return Description(
        tool=tool,
        attributes={
            column.name: column.to_attribute() for column in described_columns if column.value_type
        },
        measures={
            column.name: measure
            for column in described_columns
            if (measure := column.to_measure()) is not None
        },
        left_out={
            column.name: column.left_out for column in described_columns if not column.value_type
        },
        **facts,
    )


def _exact_bounds(low: Any, high: Any) -> tuple[Fraction, Fraction] | None:
    """Convert both bounds to exact fractions; None if they are no valid pair.

    The result is None if a bound is missing, or if the bounds are in the wrong order.
    """
    if low is None or high is None:
        return None
    first = exact("a lower bound", low)
    last = exact("an upper bound", high)
    if first < last:
        return (first, last)
    return None


def _spec_number(value: Fraction) -> int | str:
    """Write a fraction as specs do: an integer, or a decimal or fraction text."""
    if value.denominator == 1:
        return int(value)
    text = f"{float(value):.15g}"
    if Fraction(text) == value:
        return text
    return str(value)


_PERSON_REASON = "it names the person"
_WHOLE_DATATYPES = (
    "integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger "
    "negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte"
)
_TEXT_DATATYPES = "string normalizedString token anyURI language Name NMTOKEN"
_DATATYPES = {
    "whole": _WHOLE_DATATYPES,
    "number": "decimal double float number",
    "date": "date dateTime datetime dateTimeStamp",
    "text": _TEXT_DATATYPES,
}
_CSVW_VALUE_TYPES = {
    "boolean": "truth",
    **{datatype: kind for kind, datatypes in _DATATYPES.items() for datatype in datatypes.split()},
}


def from_csvw(value: Any) -> Description | None:
    """Parse a description in CSVW-EO; None for a value of another form."""
    if isinstance(value, Mapping):
        schema = value.get("tableSchema")
    else:
        schema = None
    if not (isinstance(schema, Mapping) and isinstance(schema.get("columns"), list)):
        return None
    columns = [_read_csvw_column(column, value.get("privacyUnit")) for column in schema["columns"]]
    person_columns = [column.name for column in columns if column.left_out == _PERSON_REASON]
    most_contributions = value.get("maxContributions")
    return _make_description(
        "CSVW-EO",
        columns,
        unit=person_columns[-1] if person_columns else value.get("privacyUnit"),
        max_rows=most_contributions if type(most_contributions) is int else BLANK,
        notes=(
            (
                "If metadata were generated from the data, review them: a spec must not contain "
                "facts that were not public beforehand."
            ),
        ),
    )


def _read_csvw_column(column: Mapping[str, Any], unit: object) -> DescribedColumn:
    """Parse one column of a CSVW-EO schema.

    The datatype is a text, or an object with bounds. Public values come as a list of values, or as
    a list of partitions, each of which has one value. Adjacent partitions give edges.
    """
    name = str(column.get("name") or column.get("titles") or "")
    declared_type = column.get("datatype", "string")
    if column.get("privacyId") is True or (unit is not None and name == unit):
        return DescribedColumn(name=name, left_out=_PERSON_REASON)
    if isinstance(declared_type, Mapping):
        type_facts = declared_type
    else:
        type_facts = {}
    datatype = str(type_facts.get("base", "string") if type_facts else declared_type)
    low, high = (column.get(key, type_facts.get(key)) for key in ("minimum", "maximum"))
    predicates = [
        entry.get("predicate")
        for entry in column.get("partitions") or []
        if isinstance(entry, Mapping)
    ]
    partitions = [predicate for predicate in predicates if isinstance(predicate, Mapping)]
    values = column.get("keyValues")
    if not isinstance(values, list):
        values = [
            partition["partitionValue"] for partition in partitions if "partitionValue" in partition
        ]
    return DescribedColumn(
        name=name,
        value_type=_CSVW_VALUE_TYPES.get(datatype, ""),
        low=low,
        high=high,
        values=values,
        edges=_join_partitions(partitions),
        complete=column.get("exhaustiveKeys") is not False
        and column.get("exhaustivePartitions") is not False,
        left_out=f"of type {datatype}, which cannot be published",
    )


def _join_partitions(partitions: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Return the edges of adjacent partitions as texts; None if there are gaps.

    The result is None if there are no partitions with bounds, or if they have gaps or overlap.
    """
    has_bounds = all(
        partition.get("lowerBound") is not None and partition.get("upperBound") is not None
        for partition in partitions
    )
    if not partitions or not has_bounds:
        return None
    bound = partial(exact, "a bound of a partition")
    lows = sorted((partition["lowerBound"] for partition in partitions), key=bound)
    highs = sorted((partition["upperBound"] for partition in partitions), key=bound)
    if [*map(bound, lows[1:])] != [*map(bound, highs[:-1])]:
        return None
    return [str(lows[0]), *map(str, highs)]


def from_mbi(value: Any) -> Description | None:
    """Parse a domain of the library mbi; None for a value of another form.

    Codes are 0 to size - 1.
    """
    if not (
        isinstance(value, Mapping)
        and value
        and all(type(size) is int and size > 0 for size in value.values())
    ):
        return None
    note = (
        "mbi numbers the values of an attribute from 0. If the data have other values, write "
        "categories, integers or bins instead."
    )
    return Description(
        tool="mbi", attributes={name: {"size": size} for name, size in value.items()}, notes=(note,)
    )


def from_opendp(value: Any) -> Description | None:
    """Parse the serialised domain of an OpenDP data frame; None for other values."""
    note = (
        "The unit and the budget of an OpenDP context are not in its domain: write [privacy] anew."
    )
    columns = [*_find_calls(value, "series_domain")]
    if columns:
        return _make_description("OpenDP", map(_read_opendp_column, columns), notes=(note,))
    return None


def _read_opendp_column(column: Mapping[str, Any]) -> DescribedColumn:
    """Parse the domain of one OpenDP column."""
    name = str(column.get("name"))
    element = column.get("element_domain")
    for call in (*_find_calls(element, "enum_domain"), *_find_calls(element, "categorical_domain")):
        categories = call.get("categories")
        return DescribedColumn(
            name=name, value_type="text", values=categories if isinstance(categories, list) else ()
        )
    for call in _find_calls(element, "atom_domain"):
        rust_type = str(call.get("T"))
        bounds = call.get("bounds")
        if isinstance(bounds, Mapping):
            pair = bounds.get("__tuple__")
        else:
            pair = bounds
        if isinstance(pair, list) and len(pair) == 2:
            low, high = pair
        else:
            low = None
            high = None
        if rust_type[:1] in "iu" and rust_type[1:].isdecimal():
            value_type = "whole"
        elif rust_type.startswith("f"):
            value_type = "number"
        else:
            value_type = {"bool": "truth", "String": "text"}.get(rust_type, "")
        return DescribedColumn(name=name, value_type=value_type, low=low, high=high)
    return DescribedColumn(
        name=name,
        value_type="date" if any(True for _ in _find_calls(element, "datetime_domain")) else "",
    )


def _find_calls(value: Any, function: str) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments of each call of a constructor in serialised OpenDP."""
    if isinstance(value, list):
        for inner in value:
            yield from _find_calls(inner, function)
    elif isinstance(value, Mapping):
        if value.get("__function__") == function and isinstance(value.get("__kwargs__"), Mapping):
            yield value["__kwargs__"]
        else:
            for inner in value.values():
                yield from _find_calls(inner, function)


_SMARTNOISE_VALUE_TYPES = {
    "int": "whole",
    "float": "number",
    "string": "text",
    "boolean": "truth",
    "datetime": "date",
    "unknown": "",
}


def _is_true(value: object) -> bool:
    """Return whether a value of a YAML or JSON file is true, as a flag or as text."""
    return str(value).lower() == "true"


def from_smartnoise(value: Any) -> Description | None:
    """Parse SmartNoise metadata of a single table; None for other values."""
    tables = list(_find_tables(value))
    if not tables:
        return None
    if len(tables) > 1:
        listing = ", ".join(name for name, _ in tables)
        raise InputError(
            f"A spec describes one table, but this metadata describes {len(tables)} tables "
            f"({listing}). Keep only the table that you want to publish."
        )
    _, table = tables[0]
    columns = {
        name: column
        for name, column in table.items()
        if isinstance(column, Mapping) and "type" in column
    }
    columns_of_persons = [
        name for name, column in columns.items() if _is_true(column.get("private_id"))
    ]
    column_of_person = next(iter(columns_of_persons), None)
    listed_columns = []
    for name, column in columns.items():
        if name == column_of_person:
            described = DescribedColumn(name=name, left_out=_PERSON_REASON)
        else:
            described = DescribedColumn(
                name=name,
                left_out="its type is unknown",
                value_type=_SMARTNOISE_VALUE_TYPES.get(str(column["type"]), ""),
                low=column.get("lower"),
                high=column.get("upper"),
            )
        listed_columns.append(described)
    unit = column_of_person
    if _is_true(table.get("row_privacy")):
        unit = None
    most_rows = table.get("max_ids", BLANK)
    return _make_description(
        "SmartNoise",
        listed_columns,
        unit=unit,
        max_rows=int(most_rows) if str(most_rows).isdecimal() else BLANK,
        notes=(
            (
                "SmartNoise metadata do not list the categories; a code list or a questionnaire "
                "does."
            ),
        ),
    )


def _find_tables(
    value: Any, path: str = "", depth: int = 0
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path and columns of each table in SmartNoise metadata."""
    if not isinstance(value, Mapping) or depth > 4:
        return
    columns = [
        column
        for column in value.values()
        if isinstance(column, Mapping) and str(column.get("type")) in _SMARTNOISE_VALUE_TYPES
    ]
    if columns:
        yield path, value
        return
    for name, inner in value.items():
        yield from _find_tables(inner, f"{path}.{name}" if path else str(name), depth + 1)


READERS: Mapping[str, Callable[[Any], Description | None]] = {
    "CSVW-EO": from_csvw,
    "mbi": from_mbi,
    "OpenDP": from_opendp,
    "SmartNoise": from_smartnoise,
}
"""The reader of each tool, which returns None for a description of another tool."""
_KNOWN_TOOLS = (
    "CSVW-EO (JSON), SmartNoise metadata (YAML), domain.json of mbi, and a domain that OpenDP "
    "serialized"
)


def read_description(path: Path) -> Description:
    """Read the description of a table in the format of any supported tool."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(
            f"The description {str(path)!r} cannot be read: {reason}. Name a file that you may "
            "read."
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            f"The description {str(path)!r} is not text in UTF-8. The supported formats are "
            f"{_KNOWN_TOOLS}."
        ) from None
    try:
        # Decimal numbers are kept as texts, which are exact.
        value = json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        try:
            import yaml
        except ImportError:
            raise InputError(
                "Descriptions in YAML need the extra 'yaml': pip install 'leastnoise[yaml]'."
            ) from None
        try:
            # BaseLoader makes only texts, lists and dictionaries.
            value = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506
        except (yaml.YAMLError, RecursionError):
            raise InputError(
                f"The description {str(path)!r} is neither JSON nor YAML. The supported formats "
                f"are {_KNOWN_TOOLS}."
            ) from None
    for tool, read in READERS.items():
        try:
            description = read(value)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"The description {str(path)!r} looks like one of {tool}, but is damaged. "
                "Repair it."
            ) from None
        if description is not None:
            return description
    raise InputError(
        f"The description {str(path)!r} has no known format. The supported formats are "
        f"{_KNOWN_TOOLS}."
    )
