"""Where a spec says the data are and what columns they have: files, layout, a joined table, attributes, measures, lists of categories."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from itertools import product as combinations
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._adapters import CSV, DatabaseTable, Joined, check_unit
from leastnoise._check import InputError, did_you_mean, exact, message, number_text, refuse, whole
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
    Unknown,
    attribute_name,
    known_keys,
)
from leastnoise._estimate import public_counts, read_public
from leastnoise._linop import apply_transpose
from leastnoise._workload import Product, QuerySet, groups_of, queries

PERSON = re.compile(
    r"(^|[\W_])(person|patient|customer|client|user|member|employee|respondent|subject|student|household|account|kunde?|kundin|mitglied|nutzer"
    r"|mitarbeiter|versichert|teilnehmer|proband|haushalt|konto)(e?n|s)?[\W_]*(id|nr|nummer|number|no|num|code|key|uuid|guid)\.?\s*$"
    r"|^\s*(person|patient|customer|respondent|kunde|kundin)\s*$",
    flags=re.IGNORECASE,
)
"""Names of columns that say which person a row is of."""
IDENTIFIER = re.compile(rf"(?i:{PERSON.pattern}|(^|[\W_])(id|uuid|guid|key)\s*$)|[a-z]I[Dd]\s*$")
"""Names of columns that say which person, thing or row it is."""
PLACE = ("path", "table", "connection")
LAYOUT = ("delimiter", "encoding", "header")
_JOIN = ("on", "columns", "public")
_WHERE = "[source.join]"


def text_of(name: str, value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise refuse(name, value, "a text that is not empty")
    return value


def file_of(folder: Path, value: object, name: str) -> Path | None:
    """The file that a spec names; None if it names none."""
    return None if value is None else folder / text_of(name, value)


def place_of(folder: Path, said: Mapping[str, Any], where: str) -> tuple[Path | None, DatabaseTable | None]:
    """The files or the table of a database that are named; neither if nothing is."""
    data = file_of(folder, said.get("path"), f"{where} path")
    given = [key for key in ("table", "connection") if key in said]
    if given and (given != ["table", "connection"] or "path" in said):
        raise InputError(
            f'{where} must have path, or table and connection. A connection is "env:" and the name of an environment variable.'
        )
    return data, DatabaseTable(said["table"], said["connection"]) if given else None


def layout_of(said: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is said of CSV files, checked."""
    layout = {key: said[key] for key in LAYOUT if key in said}
    with within(f"{where}: "):
        CSV("data.csv", **layout)
    return layout


def joined_with(folder: Path, first: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a second table, checked, as the arguments of `Joined`; empty if there is none."""
    if "join" not in first:
        return {}
    said = known_keys(_WHERE, first["join"], [*PLACE, *LAYOUT, *_JOIN])
    if "table" in said and "connection" in first:
        said.setdefault("connection", first["connection"])
    data, stored = place_of(folder, said, _WHERE)
    if (data is None and stored is None) or "on" not in said:
        raise InputError(f'{_WHERE} must name a table and what both have, such as path = "patients.csv" and on = "patient_id".')
    layout = layout_of(said, _WHERE)
    second: Any = CSV(data, **layout) if layout and data is not None else stored or data
    join = {"second": second, **{key: said[key] for key in _JOIN if key in said}}
    with within(f"{_WHERE}: "):
        Joined(file_of(folder, first.get("path"), "[source] path"), **join)
    return join


def path_of(data: object) -> Path | None:
    """The path of files, or None."""
    data = data.path if isinstance(data, CSV) else data
    return Path(data) if isinstance(data, (str, Path)) else None


def check_join(join: Mapping[str, Any], unit_column: str | None) -> None:
    """Refuse, before any data are there, a unit that rows of the second table need not belong to."""
    if join:
        with within(f"{_WHERE}: "):
            check_unit(Joined(None, **join), unit_column)


@contextmanager
def within(part: str) -> Iterator[None]:
    """Messages begin with the part of the spec that they are about."""
    try:
        yield
    except InputError as error:
        raise InputError(message("{part}{fault}", part=part, fault=error.args[0])) from None


UNTYPED = "unknown"  # the type of a column of a CSV file, whose kind is guessed from its name alone
_WHOLE_NAME = re.compile(
    r"(^|[_\-. ])(age|alter|year|jahr|anzahl|hours|days|weeks|children|rooms|persons|number|num|count)([_\-. ]|$)", flags=re.ASCII
)
_NUMBER_NAME = re.compile(
    r"income|salary|wage|(^|_)pay($|_)|price|amount|cost|rent|height|weight|balance|loss$|gain$|rate$|umsatz|betrag|preis|gehalt|einkommen",
    flags=re.ASCII,
)
_DATE_NAME = re.compile(
    r"(^|[_\-. ])(date|day|datum|time|timestamp|zeit|born|bought|ordered|created|updated)([_\-. ]|$)|_(at|on)$|datum$", flags=re.ASCII
)


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the data: ``kind`` is text, whole, number, date or truth, or empty where ``unusable`` says why it cannot be published."""

    name: str
    attribute: str
    typed: bool
    kind: str
    unusable: str = ""
    names_person: bool = False


def source_columns(columns: Iterable[tuple[str, str]]) -> tuple[SourceColumn, ...]:
    """What names and types suggest of each column."""
    listed = list(columns)
    names = [name for name, _ in listed]
    typed = [_column(name, written, names) for name, written in listed]
    readable = [column.name for column in typed if names.count(column.name) == 1 and column.name.isprintable()]
    naming = [name for name in readable if PERSON.search(name)] or [name for name in readable if IDENTIFIER.search(name)][:1]
    return tuple(
        SourceColumn(column.name, column.attribute, column.typed, column.kind, column.unusable, column.name in naming) for column in typed
    )


def _column(name: str, written: str, names: list[str]) -> SourceColumn:
    bare = name.strip()  # tables are called by the name without blanks around it, if no other column has that
    attribute = name if bare in {"", *names} else bare
    kind, unusable = _kind(name, written), ""
    if names.count(name) > 1:
        unusable = "several columns are called so; give them names of their own"
    elif not name or not name.isprintable():
        unusable = "its name is empty or has control characters; rename it"
    elif not kind:
        unusable = f"of type {written}, which cannot be published"
    return SourceColumn(name, attribute, written != UNTYPED, "" if unusable else kind, unusable)


def _kind(column: str, written: str) -> str:
    """What a type of DuckDB is for us, or what a name suggests where there is no type."""
    if written == UNTYPED:
        if _DATE_NAME.search(column.lower()):
            return "date"
        return "whole" if _WHOLE_NAME.search(column.lower()) else "number" if _NUMBER_NAME.search(column.lower()) else "text"
    name = written.upper().split("(")[0].strip()
    if written.endswith("]"):
        return ""
    if name in {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}:
        return "whole"
    if name in {"FLOAT", "REAL", "DOUBLE", "DECIMAL", "NUMERIC"}:
        return "number"
    if name in {"VARCHAR", "ENUM", "TEXT", "CHAR", "STRING"}:
        return "text"
    return {"BOOLEAN": "truth", "DATE": "date"}.get(name, "date" if name.startswith("TIMESTAMP") else "")


_LAYOUT = ("delimiter", "encoding")
_THE_DATA = (
    "{what} must come from a public file; got the data themselves. A list taken from the data is a release that nobody paid for: use a "
    "code list, or write the list from public knowledge."
)
_NO_CSV = "{what} names the file {path}, which cannot be read as CSV: {error}. Say its delimiter and encoding beside it."
_TWO_VALUES = "{what} must give every key one value; {code!r} has {first!r} and {second!r}."
_MOST_NAMED = 5


class PublicFiles:
    """Reads CSV files beside a spec."""

    def __init__(self, folder: Path, private: Sequence[object] = ()) -> None:
        self._folder = folder
        self._private = [path.resolve() for path in private if isinstance(path, Path)]

    def categories(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """The values of a column, each once, in the order of the file."""
        table = known_keys("categories", value, ["file", "column", *_LAYOUT])
        return tuple(dict.fromkeys(chain.from_iterable(self._columns("categories", table, "column"))))

    def pairs(self, what: str, value: Mapping[str, Any]) -> dict[str, str]:
        """The map that two columns are."""
        values: dict[str, str] = {}
        for key, group in self._columns(what, known_keys(what, value, ["file", "key", "value", *_LAYOUT]), "key", "value"):
            if values.setdefault(key, group) != group:
                raise InputError(message(_TWO_VALUES, what=what, code=key, first=values[key], second=group))
        return values

    def counts(self, what: str, value: Mapping[str, Any], product: Product) -> list[int]:
        """Whole numbers of a column, in the order of a table's cells, whose labels stand in the columns that its attributes are called."""
        table = known_keys(what, value, ["file", "column", *_LAYOUT])
        names = [f"{name}:{sets.arguments[0][0]}" if sets.kind == "level" else name for name, sets in _along(product)]
        rows = self._columns(what, {**{name: name for name in names}, **table}, *names, "column")
        labels = [[str(label) for label in sets.labels(name, product.domain.kind(name))] for name, sets in _along(product)]
        cells = dict.fromkeys(combinations(*labels), "")
        for *cell, text in rows:
            if cells.get(tuple(cell), "-") or not text.strip().isdigit():
                raise InputError(f"{what} must have one whole number for every cell of {product.name}; got {text!r} for {', '.join(cell)}.")
            cells[tuple(cell)] = text
        if missing := [cell for cell, text in cells.items() if not text]:
            raise InputError(f"{what} must have a number for every cell of {product.name}; {', '.join(missing[0])} has none.")
        return [*map(int, cells.values())]

    def _columns(self, what: str, table: Mapping[str, Any], *wanted: str) -> list[tuple[str, ...]]:
        for key in ("file", *wanted):
            if not isinstance(table.get(key), str) or not table[key]:
                raise refuse(message("{key} of {what}", key=key, what=what), table.get(key), "a text that is not empty")
        path = self._folder / table["file"]
        if path.resolve() in self._private:
            raise InputError(message(_THE_DATA, what=what))
        rows = self._rows(what, path, table)
        header = rows[0] if rows else []
        positions = []
        for key in wanted:
            if header.count(table[key]) != 1:
                near = did_you_mean(table[key], header)
                allowed = message("one column of {file}, which has {columns}", file=table["file"], columns=", ".join(header[:20]))
                raise refuse(message("{key} of {what}", key=key, what=what), table[key], allowed, near)
            positions.append(header.index(table[key]))
        known = [row for row in rows[1:] if len(row) > max(positions)]
        return [*zip(*([row[position] for row in known] for position in positions), strict=True)]

    def _rows(self, what: str, path: Path, table: Mapping[str, Any]) -> list[list[str]]:
        delimiter, encoding = table.get("delimiter", ","), table.get("encoding", "utf-8-sig")
        try:
            with path.open(encoding=encoding, newline="") as opened:
                return [row for row in csv.reader(opened, delimiter=delimiter) if row]
        except FileNotFoundError:
            raise InputError(message("{what} names the file {path}, which does not exist.", what=what, path=path)) from None
        except (OSError, ValueError, TypeError, LookupError, csv.Error) as error:
            raise InputError(message(_NO_CSV, what=what, path=path, error=type(error).__name__)) from None


# What may be said of how values are read: for all in [source], and for one attribute or measure beside it.
READING = ("nulls", "decimal", "thousands", "currency", "trim", "ignore_case")
_NO_FILES = PublicFiles(Path())


def domain_from_spec(
    attributes: Mapping[str, Any],
    measures: Mapping[str, Any] | None = None,
    files: PublicFiles = _NO_FILES,
    reading: Mapping[str, Any] | None = None,
) -> Domain:
    """Read the tables ``[domain.*]`` and ``[measures.*]`` of a spec file."""
    for what, tables in (("[domain]", attributes), ("[measures]", measures or {})):
        if not isinstance(tables, Mapping):
            raise refuse(what, tables, "a table of tables")
    kinds = {name: kind_from_spec(name, table, files, reading) for name, table in attributes.items()}
    return Domain(kinds, measures={name: measure_from_spec(name, table, reading) for name, table in (measures or {}).items()})


def kind_from_spec(name: str, table: object, files: PublicFiles = _NO_FILES, reading: Mapping[str, Any] | None = None) -> Kind:
    """Read one table ``[domain.NAME]``."""
    attribute_name("the name of an attribute", name)
    where = f"[domain.{name}]"
    beside = {"spellings": "categories", "rounding": "integers", "closed": "edges"}
    settings: dict[str, Any] = known_keys(where, table, [*_MAKERS, "outside", "null", "column", "levels", "labels", *READING, *beside])
    shapes = [key for key in _MAKERS if key in settings]
    if len(shapes) != 1:
        listed = " and ".join(repr(key) for key in shapes) or "none of them"
        words = ", ".join(repr(key) for key in [*_MAKERS][:-1])
        raise InputError(f"{where} must have exactly one of {words} and 'size'; got {listed}.")
    shape = shapes[0]
    for key, kind in beside.items():
        if key in settings and kind != shape:
            raise InputError(f"{where} has {key!r}, which belongs to {kind!r} alone; it has {shape!r}.")
    more = {key: settings[key] for key in ("outside", "null", *beside) if key in settings}
    with within(message("[domain.{name}]: ", name=name)):
        value = settings[shape]
        column = settings.get("column")
        if shape == "dates" and isinstance(value, Mapping) and "column" in value:
            column, value = value["column"], {key: entry for key, entry in value.items() if key != "column"}
        said = {**(reading or {}), **{key: settings[key] for key in READING if key in settings}}
        more["reading"] = Reading(column=None if column == name else column, **said)
        if shape == "categories":
            value = files.categories(value) if isinstance(value, Mapping) else value
            if not isinstance(value, (list, tuple)):
                raise refuse("categories", value, "a list of text or whole numbers, or { file, column }")
        if shape == "unknown" and "levels" in settings:
            more["levels"] = settings["levels"]  # which it refuses: there are no categories yet
        made = _MAKERS[shape](shape, value, more)
        return made.with_levels(_levels(settings["levels"], made, files)) if "levels" in settings else made


@dataclass(frozen=True, slots=True)
class _Table:
    """A kind that is written as a table: the keys that it needs, in the order of its arguments, and those that may be left out."""

    kind: Callable[..., Kind]
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    example: str
    read_elsewhere: tuple[str, ...] = ()

    def __call__(self, what: str, value: Any, more: dict[str, Any]) -> Kind:
        try:
            parts = known_keys(what, value, [*self.needed, *self.optional, *self.read_elsewhere])
        except InputError as error:
            raise InputError(f"{error} Write for example {self.example}.") from None
        for key in self.needed:
            if key not in parts:
                raise InputError(f"{what} must have {key!r}; write for example {self.example}.")
        optional = {key: parts[key] for key in self.optional if key in parts}
        return self.kind(*(parts[key] for key in self.needed), **optional, **more)


_BINS = "bins = { low = 0, high = 200000, count = 500 }; or, for widths of your own, edges = [0, 10, 100] in its place"
_DATES = 'dates = { from = "2024-01-01", to = "2025-12-31", by = "month" }'
_MAKERS: dict[str, Callable[[str, Any, dict[str, Any]], Kind]] = {
    "categories": lambda _, value, more: Categories(tuple(value), **more),
    "integers": lambda what, value, more: Integers(*_bounds(what, value), **more),
    "decimals": _Table(Decimals, ("low", "high", "step"), (), 'decimals = { low = "120", high = "220", step = "0.5" }'),
    "bins": _Table(Bins, ("low", "high", "count"), ("closed",), _BINS),
    "edges": lambda _, value, more: Edges(value, **more),
    "dates": _Table(Dates, ("from", "to", "by"), ("zone", "format"), _DATES),
    "unknown": _Table(Unknown, ("most",), ("longest",), "unknown = { most = 10000 }", ("share", "found")),
    "size": lambda _, value, more: Coded(value, **more),
}


def _levels(value: object, kind: Kind, files: PublicFiles) -> dict[str, Mapping[Any, Any] | list[str]]:
    """The levels as maps from cells to groups, as the groups of the cells in order, or as widths."""
    if not isinstance(value, Mapping):
        raise refuse("levels", value, "a table of tables, such as levels.region = { file = 'stores.csv', key = 'name', value = 'region' }")
    levels: dict[str, Mapping[Any, Any] | list[str]] = {}
    for name, table in value.items():
        if isinstance(table, Mapping) and "file" in table:
            levels[name] = files.pairs(message("levels.{level}", level=name), table)
            continue
        given = known_keys(f"levels.{name}", table, ["file", "key", "value", "groups", "width", *_SHORT])
        if set(given) == {"width"}:
            levels[name] = given
            continue
        if len(given) == 1 and (form := next(iter(given))) in _SHORT:
            levels[name] = _SHORT[form](message("{form} of levels.{level}", form=form, level=name), kind, given[form])
            continue
        groups = given.get("groups")
        if set(given) != {"groups"} or not isinstance(groups, Mapping) or not all(isinstance(cells, list) for cells in groups.values()):
            allowed = "{ file, key, value }, { edges = [0, 18, 65] }, { digits = 2 }, { width = 5 } (whole numbers), or "
            allowed += "{ groups = { north = ['Kiel'], south = ['Mainz'] } }"
            raise refuse(f"levels.{name}", dict(given), allowed)
        levels[name] = {str(cell): group for group, cells in groups.items() for cell in cells}
    return levels


def _by_edges(what: str, kind: Kind, given: object) -> list[str]:
    """The group of every cell from edge to edge, the last of them open: 0-17, 18-64, 65+."""
    if not isinstance(kind, (Integers, Decimals, Bins, Edges)):
        raise refuse(what, given, "given where cells are numbers (integers, decimals, bins or edges)")
    whole_numbers = isinstance(kind, Integers)
    ends = list(kind.edges) if isinstance(kind, (Bins, Edges)) else []
    starts = ends[:-1] or [Fraction(label) for label in kind.regular_labels]
    edges = [exact(what, edge) for edge in given] if isinstance(given, list) else []
    if not edges or not all(low < high for low, high in pairwise(edges)) or edges[0] > starts[0]:
        raise refuse(what, given, message("a list of rising numbers, the first of them at most {most}", most=starts[0]))
    if any((whole_numbers and edge.denominator != 1) or (ends and ends[0] < edge < ends[-1] and edge not in ends) for edge in edges):
        raise refuse(what, given, "edges between cells: no cell may lie in two groups")
    closed = kind.closed if isinstance(kind, (Bins, Edges)) else "left"
    texts = [_between(low, high, closed, whole_numbers=whole_numbers) for low, high in zip(edges, [*edges[1:], None], strict=True)]
    return [texts[sum(edge <= start for edge in edges) - 1] for start in starts]


def _between(low: Fraction, high: Fraction | None, closed: str, *, whole_numbers: bool) -> str:
    """What a group of numbers from one edge to the next is called."""
    if high is None:
        return f"{number_text(low)}+" if closed == "left" else f"> {number_text(low)}"
    if not whole_numbers:
        return f"[{number_text(low)}, {number_text(high)})" if closed == "left" else f"({number_text(low)}, {number_text(high)}]"
    last = int(high) - 1
    return number_text(low) if last == low else f"{number_text(low)}{'-' if low >= 0 else ' .. '}{last}"


def _by_digits(what: str, kind: Kind, given: object) -> list[str]:
    """The group of every code by its first digits or letters."""
    digits, codes = whole(what, given, 1), [str(label) for label in kind.regular_labels]
    lengths, listed = {*map(len, codes)}, isinstance(kind, Categories)
    if not isinstance(kind, (Categories, Integers)) or min(lengths) < digits or (len(lengths) > 1 and not listed):
        raise refuse(what, given, f"given for codes of at least {digits} digits or letters each; numbers must have equally many")
    return [code[:digits] for code in codes]


_SHORT: Mapping[str, Callable[[str, Kind, object], list[str]]] = {"edges": _by_edges, "digits": _by_digits}


def impossible_from_spec(domain: Domain, value: object) -> tuple[dict[str, tuple[int, ...]], ...]:
    """Read ``[[impossible]]``: by attribute the codes of values that do not go together; of numbers and dates a first and a last one."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) and entry for entry in value):
        raise refuse("[[impossible]]", value, "tables of attributes with values that do not go together, such as age = [0, 14]")
    stated = []
    for number, entry in enumerate(value, 1):
        what, asked = f"[[impossible]] number {number}", dict[str, object]()
        for name, values in entry.items():
            interval = name in domain.names and isinstance(domain.kind(name), (Integers, Decimals, Bins, Edges, Dates))
            asked[name] = {"ranges" if interval else "predicates": [values]}
        sets = groups_of(domain, asked, what)
        rows = {name: apply_transpose(cells.operator(name, domain.kind(name)), np.ones(1, dtype=np.int64)) for name, cells in sets.items()}
        stated.append({name: tuple(np.flatnonzero(row).tolist()) for name, row in rows.items()})
    return tuple(stated)


def public_from_spec(domain: Domain, value: object, files: PublicFiles) -> tuple[dict[str, Any], ...]:
    """Read ``[[public]]``: tables of queries whose counts are known, as the details of a plan have them."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise refuse("[[public]]", value, 'tables with counts, such as queries = { sex = "identity" } and counts = [120, 130]')
    stated = []
    for number, entry in enumerate(value, 1):
        what = f"[[public]] number {number}"
        said: dict[str, Any] = known_keys(what, entry, ["queries", "counts"])
        asked = queries(domain, said.get("queries", {}))
        (product,), counts = asked.products, said.get("counts")
        with within(f"{what}: "):
            if isinstance(counts, Mapping):
                counts = files.counts(f"counts of {what}", counts, product)
            numbers = public_counts(product, _flat(counts)).sums.counts
        stated.append({"table": asked.to_json()[0], "counts": [int(count) for count in numbers.reshape(-1)]})
    read_public(domain, stated)
    return tuple(stated)


def _flat(counts: object) -> list[object]:
    """Numbers of lists in lists."""
    return [count for inner in counts for count in _flat(inner)] if isinstance(counts, list) else [counts]


def _along(product: Product) -> list[tuple[str, QuerySet]]:
    return [*zip(product.attributes, product.query_sets, strict=True)]


def labels_from_spec(attributes: Mapping[str, Any], domain: Domain, files: PublicFiles) -> dict[str, dict[str, str]]:
    """By attribute the texts of its codes, and of those of its levels, as pages show them."""
    labels_of: dict[str, dict[str, str]] = {}
    for name, table in attributes.items():
        if "labels" not in table:
            continue
        what, said, kind = f"[domain.{name}] labels", table["labels"], domain.kind(name)
        texts = files.pairs(what, said) if isinstance(said, Mapping) and "file" in said else said
        if not isinstance(texts, Mapping) or not all(isinstance(text, str) and text for text in texts.values()):
            raise refuse(what, texts, 'texts of codes, such as { "1" = "men", "2" = "women" }, or { file, key, value }')
        codes = {str(label) for labels in (kind.labels, *(level.labels for level in kind.levels)) for label in labels}
        labels_of[name] = {code: text for code, text in texts.items() if code in codes}
        if not labels_of[name]:
            raise refuse(f"the codes in {what}", [*texts][:_MOST_NAMED], f"codes of the attribute, such as {min(codes)!r}")
    return labels_of


def measure_from_spec(name: str, table: object, reading: Mapping[str, Any] | None = None) -> Measure:
    """Read one table ``[measures.NAME]``."""
    attribute_name("the name of a measure", name)
    where = f"[measures.{name}]"
    settings: dict[str, Any] = known_keys(where, table, ["column", "clip", "unit", *READING])
    if "clip" not in settings:
        raise InputError(f"{where} must have 'clip', the public bounds of a value; write for example clip = [0, 200000].")
    with within(message("[measures.{name}]: ", name=name)):
        low, high = _bounds("clip", settings["clip"])
        said = {**(reading or {}), **{key: settings[key] for key in READING if key in settings}}
        return Measure(settings.get("column", name), low, high, settings.get("unit", "1"), reading=Reading(**said))


def _bounds(what: str, value: object) -> tuple[Any, Any]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise refuse(what, value, "a list of two numbers, [low, high]")
    return value[0], value[1]
