"""Read the parts of a spec that describe the data.

These parts state the location of the data, the layout of files, joined tables, attributes, measures
and public files.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from itertools import product as product_of
from pathlib import Path
from typing import Any

import numpy as np

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
    group_pairs,
    map_by_text,
)
from leastnoise._estimation import public_counts, read_public
from leastnoise._texts import is_translated
from leastnoise._trusted.check import (
    InputError,
    did_you_mean,
    exact,
    message,
    number_text,
    refuse,
    whole,
)
from leastnoise._trusted.linop import apply_transpose
from leastnoise._trusted.reading import CSV, DatabaseTable, Joined
from leastnoise._workload import Product, QuerySet, groups_of, identity, queries

LOCATION_KEYS = ("path", "table", "connection")
LAYOUT_KEYS = ("delimiter", "encoding", "header")
_JOIN_KEYS = ("on", "columns", "public")


def check_text(name: str, value: object) -> str:
    """Return ``value`` if it is a non-empty text; raise InputError otherwise."""
    if not isinstance(value, str) or not value:
        raise refuse(name, value, "a text that is not empty")
    return value


def read_location(
    folder: Path, table: Mapping[str, Any], location_name: str
) -> tuple[Path | None, DatabaseTable | None]:
    """Return the path or the database table that a table of the spec names.

    Both are None if the table names neither.
    """
    if "path" in table:
        path = folder / check_text(f"{location_name} path", table["path"])
    else:
        path = None
    database_keys = [key for key in ("table", "connection") if key in table]
    if database_keys and (database_keys != ["table", "connection"] or path is not None):
        raise InputError(
            f'{location_name} must have path, or table and connection. A connection is "env:" and '
            "the name of an environment variable."
        )
    return path, DatabaseTable(table["table"], table["connection"]) if database_keys else None


def read_layout(table: Mapping[str, Any], location_name: str) -> dict[str, Any]:
    """Read and check the CSV layout (delimiter, encoding, header) in a spec table."""
    layout = {key: table[key] for key in LAYOUT_KEYS if key in table}
    with prefix_errors(f"{location_name}: "):
        CSV("data.csv", **layout)
    return layout


def read_joins(
    folder: Path, source_table: Mapping[str, Any], first_path: Path | None
) -> tuple[dict[str, Any], ...]:
    """Return the arguments of `Joined` for each [source.join] table, in order.

    ``first_path`` is the path of the first table.
    """
    if "join" not in source_table:
        return ()
    parts = source_table["join"]
    if not isinstance(parts, list):
        parts = [parts]
    joins: list[dict[str, Any]] = []
    source: Any = first_path
    for number, part in enumerate(parts, 1):
        where = name_join(number, len(parts))
        join = _read_join(folder, source_table, part, where)
        with prefix_errors(f"{where}: "):
            source = Joined(source, **join)
        joins.append(join)
    return tuple(joins)


def name_join(number: int, join_count: int) -> str:
    """Return the name of a [source.join] table in messages."""
    if join_count == 1:
        return "[source.join]"
    return f"[[source.join]] number {number}"


def _read_join(
    folder: Path, source_table: Mapping[str, Any], join_table: object, location: str
) -> dict[str, Any]:
    """Return the arguments of `Joined` for one [source.join] table."""
    table = checked_keys(location, join_table, [*LOCATION_KEYS, *LAYOUT_KEYS, *_JOIN_KEYS])
    if "table" in table and "connection" in source_table:
        table.setdefault("connection", source_table["connection"])
    path, database_table = read_location(folder, table, location)
    if (path is None and database_table is None) or "on" not in table:
        raise InputError(
            f"{location} must name a table and the columns that both tables have, such as "
            'path = "patients.csv" and on = "patient_id".'
        )
    layout = read_layout(table, location)
    second: Any = CSV(path, **layout) if layout and path is not None else database_table or path
    return {"second": second, **{key: table[key] for key in _JOIN_KEYS if key in table}}


@contextmanager
def prefix_errors(prefix: str) -> Iterator[None]:
    """Add a prefix to the message of an InputError in the ``with`` block."""
    try:
        yield
    except InputError as error:
        raise InputError(message("{part}{fault}", part=prefix, fault=error.args[0])) from None


_PUBLIC_FILE_KEYS = ("delimiter", "encoding")
_PRIVATE_FILE_MESSAGE = (
    "{what} must come from a public file; got the data themselves. A list taken from the data is a "
    "release that was not paid for. Use a code list, or write the list from public knowledge."
)
_UNREADABLE_CSV_MESSAGE = (
    "{what} names the file {path}, which cannot be read as CSV: {error}. State its delimiter and "
    "encoding next to its name."
)
_MOST_NAMED_CODES = 5  # in a message; layout


@dataclass(frozen=True, slots=True)
class PublicFiles:
    """Reads the public CSV files of a spec, and refuses the files of private data."""

    folder: Path
    private: Sequence[object] = ()

    def categories(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the distinct values of a column, in order of appearance."""
        table = checked_keys("categories", value, ["file", "column", *_PUBLIC_FILE_KEYS])
        return tuple(
            dict.fromkeys(chain.from_iterable(self.columns("categories", table, "column")))
        )

    def pairs(self, subject: str, value: Mapping[str, Any]) -> dict[str, str]:
        """Map the entries of a file's key column to the entries of its value column."""
        table = checked_keys(subject, value, ["file", "key", "value", *_PUBLIC_FILE_KEYS])
        rows = self.columns(subject, table, "key", "value")
        return map_by_text(subject, ((key, entry) for key, entry in rows))

    def counts(self, subject: str, value: Mapping[str, Any], product: Product) -> list[int]:
        """Return the counts in a file, in the order of the cells of ``product``.

        The file has a column of labels for each attribute, and a column of counts.
        """
        return [int(text) for text in self.cell_texts(subject, value, product, str.isdigit)]

    def cell_texts(
        self,
        subject: str,
        value: Mapping[str, Any],
        product: Product,
        is_allowed: Callable[[str], bool],
    ) -> list[str]:
        """Return a column of a file, in the order of the cells of ``product``.

        The file has a column of labels for each attribute, and a column of texts. Raise InputError
        if a cell is missing or repeated, or if ``is_allowed`` rejects a text.
        """
        table = checked_keys(subject, value, ["file", "column", *_PUBLIC_FILE_KEYS])
        attribute_sets = [*zip(product.attributes, product.query_sets, strict=True)]
        names = [
            f"{name}:{sets.arguments[0][0]}" if sets.kind == "level" else name
            for name, sets in attribute_sets
        ]
        rows = self.columns(subject, {**{name: name for name in names}, **table}, *names, "column")
        positions = [
            _position_finder(sets, product.domain.kind(name)) for name, sets in attribute_sets
        ]
        texts: dict[tuple[int | None, ...], str] = {}
        for *labels, text in rows:
            cell = tuple(find(label) for find, label in zip(positions, labels, strict=True))
            if None in cell or cell in texts or not is_allowed(text.strip()):
                raise InputError(
                    f"{subject} must have one number for every cell of {product.name}; got "
                    f"{text!r} for {', '.join(labels)}."
                )
            texts[cell] = text
        cells = [*product_of(*map(range, product.shape))]
        if missing_cells := [cell for cell in cells if cell not in texts]:
            names_of_cell = [
                str(labels[at]) for labels, at in zip(product.labels, missing_cells[0], strict=True)
            ]
            raise InputError(
                f"{subject} must have a number for every cell of {product.name}; "
                f"{', '.join(names_of_cell)} has none."
            )
        return [texts[cell].strip() for cell in cells]

    def columns(self, subject: str, table: Mapping[str, Any], *keys: str) -> list[tuple[str, ...]]:
        """Return the rows of a CSV file, reduced to the columns that ``keys`` names."""
        for key in ("file", *keys):
            if not isinstance(table.get(key), str) or not table[key]:
                raise refuse(
                    message("{key} of {what}", key=key, what=subject),
                    table.get(key),
                    "a text that is not empty",
                )
        path = self.folder / table["file"]
        private = [data.path if isinstance(data, CSV) else data for data in self.private]
        if path.resolve() in [
            Path(data).resolve() for data in private if isinstance(data, (str, Path))
        ]:
            raise InputError(message(_PRIVATE_FILE_MESSAGE, what=subject))
        delimiter = table.get("delimiter", ",")
        encoding = table.get("encoding", "utf-8-sig")
        try:
            with path.open(encoding=encoding, newline="") as opened:
                header, *rows = [row for row in csv.reader(opened, delimiter=delimiter) if row] or [
                    []
                ]
        except FileNotFoundError:
            raise InputError(
                message(
                    "{what} names the file {path}, which does not exist.", what=subject, path=path
                )
            ) from None
        except (OSError, ValueError, TypeError, LookupError, csv.Error) as error:
            raise InputError(
                message(
                    _UNREADABLE_CSV_MESSAGE, what=subject, path=path, error=type(error).__name__
                )
            ) from None
        for key in keys:
            if header.count(table[key]) != 1:
                near = did_you_mean(table[key], header)
                allowed = message(
                    "one column of {file}, which has {columns}",
                    file=table["file"],
                    columns=", ".join(header[:20]),
                )
                raise refuse(
                    message("{key} of {what}", key=key, what=subject), table[key], allowed, near
                )
        positions = [header.index(table[key]) for key in keys]
        return [
            tuple(row[position] for position in positions)
            for row in rows
            if len(row) > max(positions)
        ]


def _position_finder(query_set: QuerySet, kind: Kind) -> Callable[[str], int | None]:
    """Return a function that maps a label to its query's position, or to None."""
    if query_set == identity():
        return kind.names.find
    labels = query_set.labels("", kind)
    return {str(label): position for position, label in enumerate(labels)}.get


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


_BINS = (
    "bins = { low = 0, high = 200000, count = 500 }; "
    "or, for widths of your own, edges = [0, 10, 100] in its place"
)
_DATES = 'dates = { from = "2024-01-01", to = "2025-12-31", by = "month" }'
# Kinds that a spec states as a table: the class, its required keys in the order of the arguments,
# optional keys, keys that are read elsewhere, and an example.
_TABLES: Mapping[str, tuple[Callable[..., Kind], str, str, str, str]] = {
    "decimals": (
        Decimals,
        "low high step",
        "",
        "",
        'decimals = { low = "120", high = "220", step = "0.5" }',
    ),
    "bins": (Bins, "low high count", "closed", "", _BINS),
    "dates": (Dates, "from to by", "zone format century months", "", _DATES),
    "unknown": (Unknown, "most", "longest", "share found", "unknown = { most = 10000 }"),
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
            return kind.with_levels(_read_levels(settings["levels"], kind, files))
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
    if kind_key not in _TABLES:
        if kind_key == "integers":
            return Integers(*_read_pair(kind_key, value), **arguments)
        return (Edges if kind_key == "edges" else Coded)(value, **arguments)
    kind, needed, optional, ignored_keys, example = _TABLES[kind_key]
    try:
        settings = checked_keys(kind_key, value, f"{needed} {optional} {ignored_keys}".split())
    except InputError as error:
        raise InputError(f"{error} Write for example {example}.") from None
    for key in needed.split():
        if key not in settings:
            raise InputError(f"{kind_key} must have {key!r}; write for example {example}.")
    return kind(
        *(settings[key] for key in needed.split()),
        **{key: settings[key] for key in optional.split() if key in settings},
        **arguments,
    )


_LEVEL_FORMS = (
    "{ file, key, value }, { edges = [0, 18, 65] }, { digits = 2 }, { width = 5 } (whole "
    "numbers), or { groups = { north = ['Kiel'], south = ['Mainz'] } }"
)


def _read_levels(
    value: object, kind: Kind, files: PublicFiles
) -> dict[str, Mapping[Any, Any] | list[str]]:
    """Read the levels by name.

    A level is a map from cells to groups, a list, or a width.
    """
    if not isinstance(value, Mapping):
        raise refuse(
            "levels",
            value,
            "a table of tables, such as levels.region = { file = 'stores.csv', key = 'name', "
            "value = 'region' }",
        )
    levels: dict[str, Mapping[Any, Any] | list[str]] = {}
    for name, table in value.items():
        if isinstance(table, Mapping) and "file" in table:
            levels[name] = files.pairs(message("levels.{level}", level=name), table)
            continue
        settings = checked_keys(
            f"levels.{name}", table, ["file", "key", "value", "groups", "width", *_SHORT]
        )
        if set(settings) == {"width"}:
            levels[name] = settings
            continue
        if len(settings) == 1 and (form := next(iter(settings))) in _SHORT:
            levels[name] = _SHORT[form](
                message("{form} of levels.{level}", form=form, level=name), kind, settings[form]
            )
            continue
        groups = settings.get("groups")
        if set(settings) != {"groups"} or not isinstance(groups, Mapping):
            raise refuse(f"levels.{name}", dict(settings), _LEVEL_FORMS)
        levels[name] = group_pairs(f"levels.{name}", groups, kind.names)
    return levels


def _groups_from_edges(subject: str, kind: Kind, value: object) -> list[str]:
    """Return the group of each cell between edges, such as "0-17" or "65+"."""
    if not isinstance(kind, (Integers, Decimals, Bins, Edges)):
        raise refuse(subject, value, "used only for numbers (integers, decimals, bins or edges)")
    cell_edges = list(kind.edges) if isinstance(kind, (Bins, Edges)) else []
    starts = cell_edges[:-1] or [Fraction(label) for label in kind.regular_labels]
    group_edges = [exact(subject, edge) for edge in value] if isinstance(value, list) else []
    is_increasing = all(low < high for low, high in pairwise(group_edges))
    if not group_edges or not is_increasing or group_edges[0] > starts[0]:
        raise refuse(
            subject,
            value,
            message(
                "a list of increasing numbers, the first of them at most {most}", most=starts[0]
            ),
        )
    for edge in group_edges:
        divides_whole_number = isinstance(kind, Integers) and edge.denominator != 1
        is_inside = bool(cell_edges) and cell_edges[0] < edge < cell_edges[-1]
        if divides_whole_number or (is_inside and edge not in cell_edges):
            raise refuse(
                subject, value, "edges between cells, because no cell may lie in two groups"
            )
    texts = [
        _group_text(kind, low, high)
        for low, high in zip(group_edges, [*group_edges[1:], None], strict=True)
    ]
    return [texts[sum(edge <= start for edge in group_edges) - 1] for start in starts]


def _group_text(kind: Kind, low: Fraction, high: Fraction | None) -> str:
    """Return the name of the group from ``low`` to below ``high``.

    ``high`` is None for the last group, which has no upper end. If the cells include their upper
    ends, the group contains numbers above ``low`` and up to ``high``.
    """
    start = number_text(low)
    includes_low = not isinstance(kind, (Bins, Edges)) or kind.closed == "left"
    if high is None:
        return f"{start}+" if includes_low else f"> {start}"
    if not isinstance(kind, Integers):
        end = number_text(high)
        return f"[{start}, {end})" if includes_low else f"({start}, {end}]"
    last = int(high) - 1
    if last == low:
        return start
    dash = "-" if low >= 0 else " .. "
    return f"{start}{dash}{last}"


def _groups_from_digits(subject: str, kind: Kind, value: object) -> list[str]:
    """Return the group of each code, which is its first digits or letters."""
    digits = whole(subject, value, 1)
    codes = [str(label) for label in kind.regular_labels]
    lengths = {*map(len, codes)}
    is_listed = isinstance(kind, Categories)
    if (
        not isinstance(kind, (Categories, Integers))
        or min(lengths) < digits
        or (len(lengths) > 1 and not is_listed)
    ):
        raise refuse(
            subject,
            value,
            f"given for codes of at least {digits} digits or letters each; numbers must have "
            "equally many",
        )
    return [code[:digits] for code in codes]


_SHORT: Mapping[str, Callable[[str, Kind, object], list[str]]] = {
    "edges": _groups_from_edges,
    "digits": _groups_from_digits,
}


def impossible_from_spec(domain: Domain, value: object) -> tuple[dict[str, tuple[int, ...]], ...]:
    """Return the combinations in ``[[impossible]]``: cell numbers by attribute.

    Each entry of the spec lists values that do not occur together. For numbers and dates the entry
    states a first and a last value, for other attributes a list of values.
    """
    if not isinstance(value, list) or not all(
        isinstance(entry, Mapping) and entry for entry in value
    ):
        raise refuse(
            "[[impossible]]",
            value,
            ("tables of attributes with impossible combinations of values, such as age = [0, 14]"),
        )
    impossible = []
    for number, entry in enumerate(value, 1):
        subject = f"[[impossible]] number {number}"
        sets_by_attribute = dict[str, object]()
        for name, values in entry.items():
            interval = name in domain.names and isinstance(
                domain.kind(name), (Integers, Decimals, Bins, Edges, Dates)
            )
            sets_by_attribute[name] = {"ranges" if interval else "predicates": [values]}
        sets = groups_of(domain, sets_by_attribute, subject)
        rows = {
            name: apply_transpose(
                cells.operator(name, domain.kind(name)), np.ones(1, dtype=np.int64)
            )
            for name, cells in sets.items()
        }
        impossible.append({name: tuple(np.flatnonzero(row).tolist()) for name, row in rows.items()})
    return tuple(impossible)


def public_from_spec(
    domain: Domain, value: object, files: PublicFiles
) -> tuple[dict[str, Any], ...]:
    """Return the public counts of ``[[public]]`` as records for a plan.

    Each record has a table, which is a workload as JSON, and its counts in the order of the cells.
    """
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise refuse(
            "[[public]]",
            value,
            'tables with counts, such as queries = { sex = "identity" } and counts = [120, 130]',
        )
    public_tables = []
    for number, entry in enumerate(value, 1):
        subject = f"[[public]] number {number}"
        settings: dict[str, Any] = checked_keys(subject, entry, ["queries", "counts"])
        workload = queries(domain, settings.get("queries", {}))
        (product,) = workload.products
        counts = settings.get("counts")
        with prefix_errors(f"{subject}: "):
            if isinstance(counts, Mapping):
                counts = files.counts(f"counts of {subject}", counts, product)
            numbers = public_counts(product, _flatten(counts)).sums.counts
        public_tables.append(
            {
                "table": workload.to_json()[0],
                "counts": [int(count) for count in numbers.reshape(-1)],
            }
        )
    read_public(domain, public_tables)
    return tuple(public_tables)


def _flatten(counts: object) -> list[object]:
    """Flatten nested lists into one list."""
    if isinstance(counts, list):
        return [count for inner in counts for count in _flatten(inner)]
    return [counts]


Texts = dict[str, str | dict[str, str]]
"""The text of each code, or its texts by language."""


def _read_labels_file(subject: str, setting: Mapping[str, Any], files: PublicFiles) -> Texts:
    """Read the texts of codes from a public file, in one or several languages."""
    column = setting.get("value")
    if not isinstance(column, Mapping):
        return dict(files.pairs(subject, setting))
    texts: dict[str, dict[str, str]] = {}
    for language, column_of_language in column.items():
        pairs = files.pairs(subject, {**setting, "value": column_of_language})
        for code, text in pairs.items():
            texts.setdefault(code, {})[str(language)] = text
    return dict(texts)


def labels_from_spec(
    attributes: Mapping[str, Any], domain: Domain, files: PublicFiles
) -> dict[str, Texts]:
    """Return the texts that are displayed for the codes of each attribute.

    Codes are values of the attribute and groups of its levels.
    """
    labels_of: dict[str, Texts] = {}
    for name, table in attributes.items():
        if "labels" not in table:
            continue
        subject = f"[domain.{name}] labels"
        kind = domain.kind(name)
        texts = _read_texts_of_codes(subject, table["labels"], files)
        codes = {str(label) for label in kind.labels}
        for level in kind.levels:
            codes |= {str(label) for label in level.labels}
        labels_of[name] = {code: text for code, text in texts.items() if code in codes}
        if not labels_of[name]:
            raise refuse(
                f"the codes in {subject}",
                [*texts][:_MOST_NAMED_CODES],
                f"codes of the attribute, such as {min(codes)!r}",
            )
    return labels_of


def _read_texts_of_codes(subject: str, setting: object, files: PublicFiles) -> Texts:
    """Return the texts that a setting and its files give to codes.

    The setting may be a list, often of several files, with the labels of the attribute and of its
    levels.
    """
    parts: Sequence[object] = [setting]
    if isinstance(setting, list) and setting:
        parts = setting
    texts: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, Mapping):
            raise _refused_texts(subject, part)
        if "file" in part:
            texts |= _read_labels_file(subject, part, files)
        else:
            texts |= part
    if not all((isinstance(text, str) and text) or is_translated(text) for text in texts.values()):
        raise _refused_texts(subject, texts)
    return texts


def _refused_texts(subject: str, texts: object) -> InputError:
    """Return the error for labels that are no texts of codes."""
    return refuse(
        subject,
        texts,
        'texts of codes, such as { "1" = "men", "2" = "women" }, or { file, key, value }',
    )


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
            low, high = _read_pair("clip", settings["clip"])
            return Measure(column, low, high, unit, reading=reading_of_measure)
        total: dict[str, Any] = checked_keys("unit_total", settings["unit_total"], ["clip", "by"])
        if "clip" not in total:
            raise InputError(
                "unit_total must have 'clip', the public bounds of the total of one unit in a "
                'cell; write for example unit_total = { clip = [0, 2000], by = ["month"] }.'
            )
        low, high = _read_pair("clip", total["clip"])
        return UnitTotal(
            column, low, high, unit, by=total.get("by", []), reading=reading_of_measure
        )


def _read_pair(subject: str, value: object) -> tuple[Any, Any]:
    """Return the two entries of a [low, high] list; raise InputError otherwise."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise refuse(subject, value, "a list of two numbers, [low, high]")
    return value[0], value[1]
