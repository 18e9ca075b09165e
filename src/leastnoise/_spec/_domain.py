"""The parts of a spec about the data: where they are, their layout, a joined table, attributes, measures, and public files."""

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
    Unknown,
    attribute_name,
    group_pairs,
    known_keys,
    one_value_each,
)
from leastnoise._estimation import public_counts, read_public
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

PLACE = ("path", "table", "connection")
LAYOUT = ("delimiter", "encoding", "header")
_JOIN = ("on", "columns", "public")
WHERE_JOINED = "[source.join]"


def text_of(name: str, value: object) -> str:
    """Return the value if it is a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise refuse(name, value, "a text that is not empty")
    return value


def place_of(
    folder: Path, table: Mapping[str, Any], where: str
) -> tuple[Path | None, DatabaseTable | None]:
    """Return the path of the files or the table of a database that a part of the spec names; both are None if it names nothing."""
    path = folder / text_of(f"{where} path", table["path"]) if "path" in table else None
    given = [key for key in ("table", "connection") if key in table]
    if given and (given != ["table", "connection"] or path is not None):
        raise InputError(
            f'{where} must have path, or table and connection. A connection is "env:" and the '
            "name of an environment variable."
        )
    return path, DatabaseTable(table["table"], table["connection"]) if given else None


def layout_of(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what a part of the spec says about the layout of CSV files, checked."""
    layout = {key: table[key] for key in LAYOUT if key in table}
    with within(f"{where}: "):
        CSV("data.csv", **layout)
    return layout


def joined_with(folder: Path, settings: Mapping[str, Any], first: Path | None) -> dict[str, Any]:
    """Return the arguments of `Joined` for the second table that [source] says beside the file ``first``; empty if it says none."""
    if "join" not in settings:
        return {}
    table = known_keys(WHERE_JOINED, settings["join"], [*PLACE, *LAYOUT, *_JOIN])
    if "table" in table and "connection" in settings:
        table.setdefault("connection", settings["connection"])
    path, stored = place_of(folder, table, WHERE_JOINED)
    if (path is None and stored is None) or "on" not in table:
        raise InputError(
            f'{WHERE_JOINED} must name a table and what both have, such as path = "patients.csv" '
            'and on = "patient_id".'
        )
    layout = layout_of(table, WHERE_JOINED)
    second: Any = CSV(path, **layout) if layout and path is not None else stored or path
    join = {"second": second, **{key: table[key] for key in _JOIN if key in table}}
    with within(f"{WHERE_JOINED}: "):
        Joined(first, **join)
    return join


@contextmanager
def within(part: str) -> Iterator[None]:
    """Put the part of the spec that a message is about before it."""
    try:
        yield
    except InputError as error:
        raise InputError(message("{part}{fault}", part=part, fault=error.args[0])) from None


_LAYOUT = ("delimiter", "encoding")
_THE_DATA = (
    "{what} must come from a public file; got the data themselves. A list taken from the data is "
    "a release that nobody paid for: use a "
    "code list, or write the list from public knowledge."
)
_NO_CSV = "{what} names the file {path}, which cannot be read as CSV: {error}. Say its delimiter and encoding beside it."
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class PublicFiles:
    """Reads the public CSV files that a spec names, and refuses the private data themselves."""

    folder: Path
    private: Sequence[object] = ()

    def categories(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the values of a column, each once, in the order of the file."""
        table = known_keys("categories", value, ["file", "column", *_LAYOUT])
        return tuple(
            dict.fromkeys(chain.from_iterable(self.columns("categories", table, "column")))
        )

    def pairs(self, what: str, value: Mapping[str, Any]) -> dict[str, str]:
        """Return the map from the values of one column to those of another."""
        table = known_keys(what, value, ["file", "key", "value", *_LAYOUT])
        rows = self.columns(what, table, "key", "value")
        return one_value_each(what, ((key, entry) for key, entry in rows))

    def counts(self, what: str, value: Mapping[str, Any], product: Product) -> list[int]:
        """Return the counts of a table in the order of its cells; the file has a column of labels for each attribute, and one of counts."""
        table, along = (
            known_keys(what, value, ["file", "column", *_LAYOUT]),
            [*zip(product.attributes, product.query_sets, strict=True)],
        )
        names = [
            f"{name}:{sets.arguments[0][0]}" if sets.kind == "level" else name
            for name, sets in along
        ]
        rows = self.columns(what, {**{name: name for name in names}, **table}, *names, "column")
        positions = [_positions(sets, product.domain.kind(name)) for name, sets in along]
        texts: dict[tuple[int | None, ...], str] = {}
        for *labels, text in rows:
            cell = tuple(find(label) for find, label in zip(positions, labels, strict=True))
            if None in cell or cell in texts or not text.strip().isdigit():
                raise InputError(
                    f"{what} must have one whole number for every cell of {product.name}; got "
                    f"{text!r} for {', '.join(labels)}."
                )
            texts[cell] = text
        cells = [*product_of(*map(range, product.shape))]
        if missing := [cell for cell in cells if cell not in texts]:
            names_of_cell = [
                str(labels[at]) for labels, at in zip(product.labels, missing[0], strict=True)
            ]
            raise InputError(
                f"{what} must have a number for every cell of {product.name}; "
                f"{', '.join(names_of_cell)} has none."
            )
        return [int(texts[cell]) for cell in cells]

    def columns(self, what: str, table: Mapping[str, Any], *wanted: str) -> list[tuple[str, ...]]:
        """Return the rows of a file, reduced to the columns that the table names under the wanted keys."""
        for key in ("file", *wanted):
            if not isinstance(table.get(key), str) or not table[key]:
                raise refuse(
                    message("{key} of {what}", key=key, what=what),
                    table.get(key),
                    "a text that is not empty",
                )
        path = self.folder / table["file"]
        private = [data.path if isinstance(data, CSV) else data for data in self.private]
        if path.resolve() in [
            Path(data).resolve() for data in private if isinstance(data, (str, Path))
        ]:
            raise InputError(message(_THE_DATA, what=what))
        delimiter, encoding = table.get("delimiter", ","), table.get("encoding", "utf-8-sig")
        try:
            with path.open(encoding=encoding, newline="") as opened:
                header, *rows = [row for row in csv.reader(opened, delimiter=delimiter) if row] or [
                    []
                ]
        except FileNotFoundError:
            raise InputError(
                message("{what} names the file {path}, which does not exist.", what=what, path=path)
            ) from None
        except (OSError, ValueError, TypeError, LookupError, csv.Error) as error:
            raise InputError(
                message(_NO_CSV, what=what, path=path, error=type(error).__name__)
            ) from None
        for key in wanted:
            if header.count(table[key]) != 1:
                near = did_you_mean(table[key], header)
                allowed = message(
                    "one column of {file}, which has {columns}",
                    file=table["file"],
                    columns=", ".join(header[:20]),
                )
                raise refuse(
                    message("{key} of {what}", key=key, what=what), table[key], allowed, near
                )
        positions = [header.index(table[key]) for key in wanted]
        return [
            tuple(row[position] for position in positions)
            for row in rows
            if len(row) > max(positions)
        ]


def _positions(sets: QuerySet, kind: Kind) -> Callable[[str], int | None]:
    """Return the function from a label to the position of its query, None if no query has it."""
    if sets == identity():
        return kind.names.find
    labels = sets.labels("", kind)
    return {str(label): position for position, label in enumerate(labels)}.get


# How values are read, said in [source] for all columns or beside one attribute or measure.
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


_BINS = "bins = { low = 0, high = 200000, count = 500 }; or, for widths of your own, edges = [0, 10, 100] in its place"
_DATES = 'dates = { from = "2024-01-01", to = "2025-12-31", by = "month" }'
# Kinds that are written as a table: needed keys in the order of the arguments, optional keys, keys
# that are read elsewhere, and an example.
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
_BESIDE = {"spellings": "categories", "rounding": "integers", "closed": "edges"}


def kind_from_spec(
    name: str,
    table: object,
    files: PublicFiles = _NO_FILES,
    reading: Mapping[str, Any] | None = None,
) -> Kind:
    """Read one table ``[domain.NAME]``."""
    attribute_name("the name of an attribute", name)
    where = f"[domain.{name}]"
    settings: dict[str, Any] = known_keys(
        where,
        table,
        [*_SHAPES, "outside", "null", "complete", "column", "levels", "labels", *READING, *_BESIDE],
    )
    shapes = [key for key in _SHAPES if key in settings]
    if len(shapes) != 1:
        listed = " and ".join(repr(key) for key in shapes) or "none of them"
        words = ", ".join(repr(key) for key in _SHAPES[:-1])
        raise InputError(f"{where} must have exactly one of {words} and 'size'; got {listed}.")
    shape = shapes[0]
    for key, owner in _BESIDE.items():
        if key in settings and owner != shape:
            raise InputError(
                f"{where} has {key!r}, which belongs to {owner!r} alone; it has {shape!r}."
            )
    more = {
        key: settings[key] for key in ("outside", "null", "complete", *_BESIDE) if key in settings
    }
    with within(message("[domain.{name}]: ", name=name)):
        value = settings[shape]
        column = settings.get("column")
        if shape == "dates" and isinstance(value, Mapping) and "column" in value:
            column, value = (
                value["column"],
                {key: entry for key, entry in value.items() if key != "column"},
            )
        said = {**(reading or {}), **{key: settings[key] for key in READING if key in settings}}
        more["reading"] = Reading(column=None if column == name else column, **said)
        if shape == "unknown" and "levels" in settings:
            more["levels"] = settings[
                "levels"
            ]  # `Unknown` refuses them: there are no categories yet
        kind = _kind_of_shape(shape, value, more, files)
        return (
            kind.with_levels(_levels(settings["levels"], kind, files))
            if "levels" in settings
            else kind
        )


def _kind_of_shape(shape: str, value: Any, more: Mapping[str, Any], files: PublicFiles) -> Kind:
    """Return the kind from its shape, such as "bins", the value of that key, and further arguments."""
    if shape == "categories":
        value = files.categories(value) if isinstance(value, Mapping) else value
        if not isinstance(value, (list, tuple)):
            raise refuse(
                "categories", value, "a list of text or whole numbers, or { file, column }"
            )
        return Categories(tuple(value), **more)
    if shape not in _TABLES:
        return (
            Integers(*_bounds(shape, value), **more)
            if shape == "integers"
            else (Edges if shape == "edges" else Coded)(value, **more)
        )
    kind, needed, optional, elsewhere, example = _TABLES[shape]
    try:
        parts = known_keys(shape, value, f"{needed} {optional} {elsewhere}".split())
    except InputError as error:
        raise InputError(f"{error} Write for example {example}.") from None
    for key in needed.split():
        if key not in parts:
            raise InputError(f"{shape} must have {key!r}; write for example {example}.")
    return kind(
        *(parts[key] for key in needed.split()),
        **{key: parts[key] for key in optional.split() if key in parts},
        **more,
    )


_LEVEL_FORMS = (
    "{ file, key, value }, { edges = [0, 18, 65] }, { digits = 2 }, { width = 5 } (whole "
    "numbers), or { groups = { north = ['Kiel'], south = ['Mainz'] } }"
)


def _levels(
    value: object, kind: Kind, files: PublicFiles
) -> dict[str, Mapping[Any, Any] | list[str]]:
    """Return each level as a map from cells to groups, as the list of the cells' groups, or as a width."""
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
        given = known_keys(
            f"levels.{name}", table, ["file", "key", "value", "groups", "width", *_SHORT]
        )
        if set(given) == {"width"}:
            levels[name] = given
            continue
        if len(given) == 1 and (form := next(iter(given))) in _SHORT:
            levels[name] = _SHORT[form](
                message("{form} of levels.{level}", form=form, level=name), kind, given[form]
            )
            continue
        groups = given.get("groups")
        if set(given) != {"groups"} or not isinstance(groups, Mapping):
            raise refuse(f"levels.{name}", dict(given), _LEVEL_FORMS)
        levels[name] = group_pairs(f"levels.{name}", groups, kind.names)
    return levels


def _by_edges(what: str, kind: Kind, given: object) -> list[str]:
    """Return the group of every cell, where edges divide the numbers into groups and the last group is open: 0-17, 18-64, 65+."""
    if not isinstance(kind, (Integers, Decimals, Bins, Edges)):
        raise refuse(
            what, given, "given where cells are numbers (integers, decimals, bins or edges)"
        )
    whole_numbers = isinstance(kind, Integers)
    ends = list(kind.edges) if isinstance(kind, (Bins, Edges)) else []
    starts = ends[:-1] or [Fraction(label) for label in kind.regular_labels]
    edges = [exact(what, edge) for edge in given] if isinstance(given, list) else []
    if not edges or not all(low < high for low, high in pairwise(edges)) or edges[0] > starts[0]:
        raise refuse(
            what,
            given,
            message("a list of rising numbers, the first of them at most {most}", most=starts[0]),
        )
    if any(
        (whole_numbers and edge.denominator != 1)
        or (ends and ends[0] < edge < ends[-1] and edge not in ends)
        for edge in edges
    ):
        raise refuse(what, given, "edges between cells: no cell may lie in two groups")
    left = not isinstance(kind, (Bins, Edges)) or kind.closed == "left"
    texts = []
    for low, high in zip(edges, [*edges[1:], None], strict=True):
        start = number_text(low)
        if high is None:
            texts.append(f"{start}+" if left else f"> {start}")
        elif not whole_numbers:
            texts.append(
                f"[{start}, {number_text(high)})" if left else f"({start}, {number_text(high)}]"
            )
        else:
            last = int(high) - 1
            texts.append(start if last == low else f"{start}{'-' if low >= 0 else ' .. '}{last}")
    return [texts[sum(edge <= start for edge in edges) - 1] for start in starts]


def _by_digits(what: str, kind: Kind, given: object) -> list[str]:
    """Return the group of every code: its first digits or letters."""
    digits, codes = whole(what, given, 1), [str(label) for label in kind.regular_labels]
    lengths, listed = {*map(len, codes)}, isinstance(kind, Categories)
    if (
        not isinstance(kind, (Categories, Integers))
        or min(lengths) < digits
        or (len(lengths) > 1 and not listed)
    ):
        raise refuse(
            what,
            given,
            f"given for codes of at least {digits} digits or letters each; numbers must have "
            "equally many",
        )
    return [code[:digits] for code in codes]


_SHORT: Mapping[str, Callable[[str, Kind, object], list[str]]] = {
    "edges": _by_edges,
    "digits": _by_digits,
}


def impossible_from_spec(domain: Domain, value: object) -> tuple[dict[str, tuple[int, ...]], ...]:
    """Read ``[[impossible]]``: for each entry, by attribute, the codes of values that do not occur together.

    Values of numbers and dates are a first and a last one, others a list.
    """
    if not isinstance(value, list) or not all(
        isinstance(entry, Mapping) and entry for entry in value
    ):
        raise refuse(
            "[[impossible]]",
            value,
            "tables of attributes with values that do not go together, such as age = [0, 14]",
        )
    stated = []
    for number, entry in enumerate(value, 1):
        what, asked = f"[[impossible]] number {number}", dict[str, object]()
        for name, values in entry.items():
            interval = name in domain.names and isinstance(
                domain.kind(name), (Integers, Decimals, Bins, Edges, Dates)
            )
            asked[name] = {"ranges" if interval else "predicates": [values]}
        sets = groups_of(domain, asked, what)
        rows = {
            name: apply_transpose(
                cells.operator(name, domain.kind(name)), np.ones(1, dtype=np.int64)
            )
            for name, cells in sets.items()
        }
        stated.append({name: tuple(np.flatnonzero(row).tolist()) for name, row in rows.items()})
    return tuple(stated)


def public_from_spec(
    domain: Domain, value: object, files: PublicFiles
) -> tuple[dict[str, Any], ...]:
    """Read ``[[public]]``: tables whose counts are known, in the form that the details of a plan have."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise refuse(
            "[[public]]",
            value,
            'tables with counts, such as queries = { sex = "identity" } and counts = [120, 130]',
        )
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
        stated.append(
            {"table": asked.to_json()[0], "counts": [int(count) for count in numbers.reshape(-1)]}
        )
    read_public(domain, stated)
    return tuple(stated)


def _flat(counts: object) -> list[object]:
    """Return the numbers in nested lists."""
    return (
        [count for inner in counts for count in _flat(inner)]
        if isinstance(counts, list)
        else [counts]
    )


def labels_from_spec(
    attributes: Mapping[str, Any], domain: Domain, files: PublicFiles
) -> dict[str, dict[str, str]]:
    """Return the texts by code that pages show for the values of each attribute and the groups of its levels."""
    labels_of: dict[str, dict[str, str]] = {}
    for name, table in attributes.items():
        if "labels" not in table:
            continue
        what, said, kind = f"[domain.{name}] labels", table["labels"], domain.kind(name)
        texts = files.pairs(what, said) if isinstance(said, Mapping) and "file" in said else said
        if not isinstance(texts, Mapping) or not all(
            isinstance(text, str) and text for text in texts.values()
        ):
            raise refuse(
                what,
                texts,
                'texts of codes, such as { "1" = "men", "2" = "women" }, or { file, key, value }',
            )
        codes = {
            str(label)
            for labels in (kind.labels, *(level.labels for level in kind.levels))
            for label in labels
        }
        labels_of[name] = {code: text for code, text in texts.items() if code in codes}
        if not labels_of[name]:
            raise refuse(
                f"the codes in {what}",
                [*texts][:_MOST_NAMED],
                f"codes of the attribute, such as {min(codes)!r}",
            )
    return labels_of


def measure_from_spec(
    name: str, table: object, reading: Mapping[str, Any] | None = None
) -> Measure:
    """Read one table ``[measures.NAME]``."""
    attribute_name("the name of a measure", name)
    where = f"[measures.{name}]"
    settings: dict[str, Any] = known_keys(where, table, ["column", "clip", "unit", *READING])
    if "clip" not in settings:
        raise InputError(
            f"{where} must have 'clip', the public bounds of a value; write for example clip = "
            "[0, 200000]."
        )
    with within(message("[measures.{name}]: ", name=name)):
        low, high = _bounds("clip", settings["clip"])
        said = {**(reading or {}), **{key: settings[key] for key in READING if key in settings}}
        return Measure(
            settings.get("column", name),
            low,
            high,
            settings.get("unit", "1"),
            reading=Reading(**said),
        )


def _bounds(what: str, value: object) -> tuple[Any, Any]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise refuse(what, value, "a list of two numbers, [low, high]")
    return value[0], value[1]
