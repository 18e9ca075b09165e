"""Descriptions of tables by other tools, with a reader for each.

- CSV on the Web with the vocabulary CSVW-EO for public facts: keys, partitions, bounds, the privacy
  unit and its contributions.
- ``domain.json`` of mbi (private-pgm): the number of codes of every attribute.
- The domain of an OpenDP context as ``opendp.prelude.serialize`` writes it: columns with types,
  bounds and categories. The context itself holds the data and cannot be a file; its margins and
  lengths are no part of a spec.
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
"""What a draft has wherever a public value is needed."""
MOST_INTEGER_CELLS = 1000  # of whole numbers that get a cell each; more are drafted as bins
_DRAFT_BINS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A table as another tool describes it.

    The parts [domain] and [measures] of a spec, and the unit of privacy.
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
    """A described column: its type and what is public of its values.

    The type is whole, number, date, truth or text; or why the column is left out.
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
        """Return the table [domain.NAME] of a spec.

        With blanks for what is unknown. Numbers are clipped, as the tools clamp them.
        """
        rest = {} if self.complete else {"outside": "other"}
        if self.values and self.value_type in {"text", "whole"}:
            return {"categories": list(self.values), **rest}
        if self.value_type in {"text", "truth"}:
            return {"categories": [True, False] if self.value_type == "truth" else [BLANK]}
        if self.value_type == "date":
            days = (str(day)[:10] if day else BLANK for day in (self.low, self.high))
            return {"dates": {**dict(zip(("from", "to"), days, strict=True)), "by": "month"}}
        if self.edges is not None:
            return {"edges": list(self.edges), **rest}
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
        """Return the table [measures.NAME], clipped to the bounds; None without bounds.

        The unit is the coarsest that both bounds are multiples of, and for numbers in a narrow
        range, such as shares, a hundredth of it.
        """
        ends = (
            _exact_bounds(self.low, self.high) if self.value_type in {"whole", "number"} else None
        )
        if ends is None:
            return None
        unit = Fraction(1, math.lcm(*(end.denominator for end in ends)))
        if self.value_type == "number" and ends[1] - ends[0] <= 1:
            unit /= 100
        return {
            "clip": [_spec_number(end) for end in ends],
            **({} if unit == 1 else {"unit": _spec_number(unit)}),
        }


def _make_description(tool: str, columns: Iterable[DescribedColumn], **further: Any) -> Description:
    listed = list(columns)
    return Description(
        tool=tool,
        attributes={column.name: column.to_attribute() for column in listed if column.value_type},
        measures={
            column.name: measure
            for column in listed
            if (measure := column.to_measure()) is not None
        },
        left_out={column.name: column.left_out for column in listed if not column.value_type},
        **further,
    )


def _exact_bounds(low: Any, high: Any) -> tuple[Fraction, Fraction] | None:
    """Return both bounds exactly.

    None if one is missing or they are in the wrong order.
    """
    if low is None or high is None:
        return None
    first, last = exact("a lower bound", low), exact("an upper bound", high)
    return (first, last) if first < last else None


def _spec_number(value: Fraction) -> int | str:
    if value.denominator == 1:
        return int(value)
    text = f"{float(value):.15g}"
    return text if Fraction(text) == value else str(value)


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
    """Read CSVW-EO: an object with a table schema."""
    schema = value.get("tableSchema") if isinstance(value, Mapping) else None
    if not (isinstance(schema, Mapping) and isinstance(schema.get("columns"), list)):
        return None
    columns = [_read_csvw_column(column, value.get("privacyUnit")) for column in schema["columns"]]
    named = [column.name for column in columns if column.left_out == _PERSON_REASON]
    per_person = value.get("maxContributions")
    return _make_description(
        "CSVW-EO",
        columns,
        unit=named[-1] if named else value.get("privacyUnit"),
        max_rows=per_person if type(per_person) is int else BLANK,
        notes=(
            (
                "Metadata that were generated from the data must be reviewed: what is not public "
                "beforehand must not be in a spec."
            ),
        ),
    )


def _read_csvw_column(column: Mapping[str, Any], unit: object) -> DescribedColumn:
    """Read a column, whose datatype is a text or an object with bounds.

    Public values are listed, or are partitions of one value each; partitions that follow each other
    without a gap give edges.
    """
    name, given = (
        str(column.get("name") or column.get("titles") or ""),
        column.get("datatype", "string"),
    )
    if column.get("privacyId") is True or (unit is not None and name == unit):
        return DescribedColumn(name=name, left_out=_PERSON_REASON)
    inner = given if isinstance(given, Mapping) else {}
    datatype = str(inner.get("base", "string") if inner else given)
    low, high = (column.get(key, inner.get(key)) for key in ("minimum", "maximum"))
    listed = [
        entry.get("predicate")
        for entry in column.get("partitions") or []
        if isinstance(entry, Mapping)
    ]
    parts = [predicate for predicate in listed if isinstance(predicate, Mapping)]
    values, edges = column.get("keyValues"), None
    if parts and all(
        part.get(end) is not None for part in parts for end in ("lowerBound", "upperBound")
    ):
        bound = partial(exact, "a bound of a partition")
        lows, highs = (
            sorted((part[end] for part in parts), key=bound) for end in ("lowerBound", "upperBound")
        )
        if [*map(bound, lows[1:])] == [*map(bound, highs[:-1])]:
            edges = [str(lows[0]), *map(str, highs)]
    return DescribedColumn(
        name=name,
        value_type=_CSVW_VALUE_TYPES.get(datatype, ""),
        low=low,
        high=high,
        values=values
        if isinstance(values, list)
        else [part["partitionValue"] for part in parts if "partitionValue" in part],
        edges=edges,
        complete=column.get("exhaustiveKeys") is not False
        and column.get("exhaustivePartitions") is not False,
        left_out=f"of type {datatype}, which cannot be published",
    )


def from_mbi(value: Any) -> Description | None:
    """Read a domain of mbi: an object with the size of each attribute.

    Codes are 0 to size - 1.
    """
    if not (
        isinstance(value, Mapping)
        and value
        and all(type(size) is int and size > 0 for size in value.values())
    ):
        return None
    note = "mbi numbers the values of an attribute from 0; where the data have other values, write categories, integers or bins instead."
    return Description(
        tool="mbi", attributes={name: {"size": size} for name, size in value.items()}, notes=(note,)
    )


def from_opendp(value: Any) -> Description | None:
    """Read OpenDP: the domain of a frame."""
    note = (
        "The unit and the budget of an OpenDP context are not in its domain: write [privacy] anew."
    )
    columns = [*_find_calls(value, "series_domain")]
    return (
        _make_description("OpenDP", map(_read_opendp_column, columns), notes=(note,))
        if columns
        else None
    )


def _read_opendp_column(column: Mapping[str, Any]) -> DescribedColumn:
    name, element = str(column.get("name")), column.get("element_domain")
    for call in (*_find_calls(element, "enum_domain"), *_find_calls(element, "categorical_domain")):
        listed = call.get("categories")
        return DescribedColumn(
            name=name, value_type="text", values=listed if isinstance(listed, list) else ()
        )
    for call in _find_calls(element, "atom_domain"):
        kind, bounds = str(call.get("T")), call.get("bounds")
        pair = bounds.get("__tuple__") if isinstance(bounds, Mapping) else bounds
        low, high = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
        number = (
            "whole"
            if kind[:1] in "iu" and kind[1:].isdecimal()
            else "number"
            if kind.startswith("f")
            else ""
        )
        return DescribedColumn(
            name=name,
            value_type=number or {"bool": "truth", "String": "text"}.get(kind, ""),
            low=low,
            high=high,
        )
    return DescribedColumn(
        name=name,
        value_type="date" if any(True for _ in _find_calls(element, "datetime_domain")) else "",
    )


def _find_calls(value: Any, function: str) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments of all calls of a constructor.

    In a serialized value.
    """
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


def from_smartnoise(value: Any) -> Description | None:
    """Read SmartNoise metadata.

    They must have exactly one table whose columns have types.
    """
    tables = list(_find_tables(value))
    if not tables:
        return None
    if len(tables) > 1:
        listed = ", ".join(name for name, _ in tables)
        raise InputError(
            f"A spec is about one table; this metadata describes {len(tables)} ({listed}). Keep "
            "the one that you publish."
        )
    _, table = tables[0]
    columns = {
        name: column
        for name, column in table.items()
        if isinstance(column, Mapping) and "type" in column
    }
    unit = next(
        (
            name
            for name, column in columns.items()
            if str(column.get("private_id")).lower() == "true"
        ),
        None,
    )
    per_person, listed_columns = table.get("max_ids", BLANK), []
    for name, column in columns.items():
        facts: dict[str, Any] = {
            "value_type": _SMARTNOISE_VALUE_TYPES.get(str(column["type"]), ""),
            "low": column.get("lower"),
            "high": column.get("upper"),
        }
        is_person = name == unit
        listed_columns.append(
            DescribedColumn(
                name=name,
                left_out=_PERSON_REASON if is_person else "its type is unknown",
                **({} if is_person else facts),
            )
        )
    return _make_description(
        "SmartNoise",
        listed_columns,
        unit=None if str(table.get("row_privacy")).lower() == "true" else unit,
        max_rows=int(per_person) if str(per_person).isdecimal() else BLANK,
        notes=(
            (
                "SmartNoise says nothing about which categories there are; a code list or a "
                "questionnaire does."
            ),
        ),
    )


def _find_tables(
    value: Any, path: str = "", depth: int = 0
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each mapping of columns with types, with its path."""
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


READERS: tuple[Callable[[Any], Description | None], ...] = (
    from_csvw,
    from_mbi,
    from_opendp,
    from_smartnoise,
)
"""Each returns None for a description of another tool."""
_KNOWN_TOOLS = "CSVW-EO (JSON), SmartNoise metadata (YAML), domain.json of mbi, and a domain that OpenDP serialized"


def read_description(path: Path) -> Description:
    """Read a description; the tool is recognised by the file's contents."""
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
            f"The description {str(path)!r} is not text in UTF-8. Known are {_KNOWN_TOOLS}."
        ) from None
    try:
        value = json.loads(
            text, parse_float=str
        )  # numbers with a point stay texts, so that they are exact
    except (ValueError, RecursionError):
        try:
            import yaml
        except ImportError:
            raise InputError(
                "Descriptions in YAML need the extra 'yaml': pip install 'leastnoise[yaml]'."
            ) from None
        try:
            value = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts, lists and dictionaries alone
        except (yaml.YAMLError, RecursionError):
            raise InputError(
                f"The description {str(path)!r} is neither JSON nor YAML. Known are {_KNOWN_TOOLS}."
            ) from None
    for read in READERS:
        try:
            made = read(value)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"The description {str(path)!r} looks like one for {read.__name__}, and is "
                "damaged. Mend it."
            ) from None
        if made is not None:
            return made
    raise InputError(f"The description {str(path)!r} is none that is known: {_KNOWN_TOOLS}.")
