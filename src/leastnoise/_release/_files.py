"""Answers as CSV and Parquet files, written through DuckDB from numpy arrays, a bounded number of cells at a time."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leastnoise._check.arrays import Array
from leastnoise._release._columns import file_name
from leastnoise._release._formats import WRITERS
from leastnoise._release._release import Release
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import NUMBERS, Label, Table, key_columns, label_array

MOST_TABLE_FILES = 200
BATCH_CELLS = 1_000_000
_QUIET = "SET enable_progress_bar = false"  # DuckDB would draw its own on the standard output stream of an interactive program
_OPTIONS = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet, COMPRESSION zstd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """What the index says about a table.

    Args:
        query: its id.
        name: what it asks.
        files: where its answers are, below the release's directory; with formats as suffixes (``.sdmx.csv``), but for ``answers.xlsx``.
        attributes: its attributes.
        answers: how many.
        measure: what is summed, None for counts.
        unit: of what its numbers are multiples before noise; ``row`` for counts.
        weight: how much its error counted in the plan.
        rmse: square root of the mean variance, in rows or in the measure's own unit.
        largest_std: the largest standard error, same unit.
        promised_rmse: what the plan promised, same unit.
    """

    query: str
    name: str
    files: str
    attributes: tuple[str, ...]
    answers: int
    measure: str | None
    unit: str
    weight: str
    rmse: float
    largest_std: float
    promised_rmse: float | None

    def to_json(self) -> dict[str, Any]:
        """The values for JSON."""
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value for name in self.__slots__}


def in_batches(release: Release) -> bool:
    """Whether there are too many tables for a file each."""
    return len(release.tables) > MOST_TABLE_FILES


def write_answers(release: Release, directory: Path) -> list[TableEntry]:
    """Write all answers and the index ``tables.csv``.

    Args:
        release: the release; its tables are computed one at a time.
        directory: an existing directory.

    Returns:
        The index: one entry a table.

    Guarantees: memory for one table, or for one batch of about a million answers where tables share files.
    """
    import duckdb

    (directory / "answers").mkdir()
    entries = []
    with duckdb.connect(":memory:") as database:
        database.execute(_QUIET)
        for made in release.statistics:
            keys = _Keys(made.key_columns(), made.labels, made.places())
            _write_keyed(made.id, keys, made.numbers(), database, directory / statistic_file(release, made), release.options.formats)
        others = [WRITERS[name].open(release, directory) for name in release.options.formats if name in WRITERS]
        for table, stem in (_batched if in_batches(release) else _one_by_one)(release, directory, database):
            entries.append(_entry(release, table, stem))
            for writer in others:
                writer.add(table, stem)
        for writer in others:
            writer.close()
    _write_index(directory / "tables.csv", entries)
    return entries


def write_covariances(release: Release, directory: Path) -> None:
    """Write the covariances of the tables that were asked for, one file a table and format, each pair of answers once.

    Args:
        release: the release.
        directory: an existing directory.
    """
    import duckdb

    if not release.options.covariances:
        return
    (directory / "covariances").mkdir()
    with duckdb.connect(":memory:") as database:
        database.execute(_QUIET)
        for key in release.options.covariances:
            matrix = release.covariance(key)
            first, second = np.triu_indices(len(matrix))
            columns: dict[str, Array] = {"query": np.zeros(len(first), dtype=np.int32)}
            columns |= {"answer": first + 1, "other_answer": second + 1, "covariance": matrix[first, second]}
            formats = [one for one in release.options.formats if one in _OPTIONS] or ["csv"]
            _copy(database, columns, {"query"}, [key], directory / f"covariances/{key}", formats)


def _entry(release: Release, table: Table, stem: str) -> TableEntry:
    product = table.product
    unit = None if product.measure is None else product.domain.measures[product.measure].unit
    place = int(table.id[1:]) - 1
    known = release.plan.promise.tables if release.plan.promise is not None else ()
    # In the place of a table too large to write is one of its cells, for which nothing was promised.
    same = place < len(known) and known[place].queries == table.cells
    promised = known[place].rmse * float(unit or 1) if same else None
    return TableEntry(
        query=table.id,
        name=table.name,
        files=stem,
        attributes=product.attributes,
        answers=table.cells,
        measure=product.measure,
        unit="row" if unit is None else str(unit),
        weight=str(product.weight),
        rmse=table.rmse,
        largest_std=float(table.noise_std.max(initial=0.0)),
        promised_rmse=promised,
    )


def statistic_file(release: Release, made: StatisticTable) -> str:
    """Where the files of a statistic are, below the release's directory, without an ending."""
    return f"answers/{file_name(made.id, made.name, len(release.statistics))}"


def _write_index(path: Path, entries: Iterable[TableEntry]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(TableEntry.__slots__)
        for entry in entries:
            values = entry.to_json()
            rows.writerow([" x ".join(value) if isinstance(value, list) else value for value in values.values()])


@dataclass(slots=True)
class _Texts:
    """Distinct texts of a batch, to be looked up by the database."""

    known: list[str] = field(default_factory=list)
    places: dict[object, int] = field(default_factory=dict)

    def add(self, labels: tuple[Label, ...]) -> int:
        """The place of the first of some labels."""
        if labels not in self.places:
            self.places[labels] = len(self.known)
            self.known.extend(_clean(str(label)) for label in labels)
        return self.places[labels]


def _clean(text: str) -> str:
    """The text without what UTF-8 cannot hold: after the budget is spent nothing may fail for a label."""
    return text.encode("utf-8", "replace").decode()


def _one_by_one(release: Release, directory: Path, database: Any) -> Iterator[tuple[Table, str]]:
    for table in release.tables:
        stem = f"answers/{file_name(table.id, table.name, len(release.tables))}"
        keys = _Keys(key_columns(table.product.attributes), table.labels, _places(table))
        _write_keyed(table.id, keys, table.numbers(), database, directory / stem, release.options.formats)
        yield table, stem


@dataclass(frozen=True, slots=True)
class _Keys:
    """The key columns of a file, with the labels along each and the place of every row's."""

    names: list[str]
    labels: tuple[tuple[Label, ...], ...]
    places: list[npt.NDArray[np.int32]]


def _write_keyed(query: str, keys: _Keys, numbers: Mapping[str, Array], database: Any, stem: Path, formats: Sequence[str]) -> None:
    """One file a format: query, one column a key, and the numbers."""
    texts = _Texts()
    columns: dict[str, Array] = {"query": np.full(len(next(iter(numbers.values()))), texts.add((query,)), dtype=np.int32)}
    looked_up = {"query"}
    for column, labels, place in zip(keys.names, keys.labels, keys.places, strict=True):
        array = label_array(labels)
        if array.dtype == object:
            looked_up.add(column)
            columns[column] = place + texts.add(labels)
        else:
            columns[column] = array[place]
    _copy(database, {**columns, **numbers}, looked_up, texts.known, stem, formats)


def _batched(release: Release, directory: Path, database: Any) -> Iterator[tuple[Table, str]]:
    """Tables of one number of attributes go to one folder, as parts of about a million answers."""
    batches: dict[int, _Batch] = {}
    for table in release.tables:
        ways = len(table.labels)
        batch = batches.setdefault(ways, _Batch(directory / f"answers/{ways}-way", ways, release))
        part = batch.add(table)
        if batch.cells >= BATCH_CELLS:
            batch.flush(database)
        yield table, f"answers/{ways}-way/part-{part:05d}"
    for batch in batches.values():
        batch.flush(database)


@dataclass(slots=True)
class _Batch:
    """Answers of several tables in long form: query, attribute_1, value_1, ..., and the numbers."""

    folder: Path
    ways: int
    release: Release
    part: int = 1
    cells: int = 0
    texts: _Texts = field(default_factory=_Texts)
    columns: dict[str, list[Array]] = field(default_factory=dict)

    def add(self, table: Table) -> int:
        """Take a table; gives the number of the part that it will be in."""
        values = {"query": np.full(table.cells, self.texts.add((table.id,)), dtype=np.int32)}
        for number, (name, labels, place) in enumerate(zip(table.product.attributes, table.labels, _places(table), strict=True), 1):
            values[f"attribute_{number}"] = np.full(table.cells, self.texts.add((name,)), dtype=np.int32)
            values[f"value_{number}"] = place + self.texts.add(labels)
        numbers = table.numbers()
        for name in self.release.options.some:
            numbers.setdefault(name, np.full(table.cells, np.nan))
        # Whole counts and sums in decimals share a column.
        for name in NUMBERS:
            if name in numbers:
                values[name] = numbers[name].astype(np.float64)
        for name, array in values.items():
            self.columns.setdefault(name, []).append(array)
        self.cells += table.cells
        return self.part

    def flush(self, database: Any) -> None:
        """Write what is there as one part."""
        if self.cells == 0:
            return
        self.folder.mkdir(exist_ok=True)
        columns = {name: np.concatenate(self.columns.pop(name)) for name in list(self.columns)}
        looked_up = {name for name in columns if name not in NUMBERS}
        _copy(database, columns, looked_up, self.texts.known, self.folder / f"part-{self.part:05d}", self.release.options.formats)
        self.part, self.cells, self.texts, self.columns = self.part + 1, 0, _Texts(), {}


def _places(table: Table) -> list[npt.NDArray[np.int32]]:
    """Along every attribute the place of each answer's label."""
    return [place.astype(np.int32) for place in np.unravel_index(np.arange(table.cells), table.answer.shape)] if table.labels else []


def _copy(
    database: Any, columns: Mapping[str, Array], looked_up: set[str], texts: Sequence[str], stem: Path, formats: Sequence[str]
) -> None:
    """Write columns to files; those looked up hold places in ``texts``."""
    length = len(columns["query"])
    names = {name: f"c{place}" for place, name in enumerate(columns)}
    database.register("batch", {"i": np.arange(length), **{names[name]: np.ascontiguousarray(array) for name, array in columns.items()}})
    database.register("texts", {"place": np.arange(len(texts)), "label": np.array(texts, dtype=str)})
    selected, joins = [], []
    for name, short in names.items():
        quoted = '"' + _clean(name).replace('"', '""') + '"'
        if name in looked_up:
            selected.append(f"t{short}.label AS {quoted}")
            joins.append(f"JOIN texts t{short} ON t{short}.place = batch.{short}")
        elif columns[name].dtype.kind == "f":
            selected.append(f"CASE WHEN isnan({short}) THEN NULL ELSE {short} END AS {quoted}")
        else:
            selected.append(f"batch.{short} AS {quoted}")
    query = f"SELECT {', '.join(selected)} FROM batch {' '.join(joins)} ORDER BY i"  # noqa: S608 - names are quoted
    database.execute(f"CREATE OR REPLACE TEMP VIEW answers AS {query}")
    for one in (one for one in formats if one in _OPTIONS):
        path = str(stem.with_name(f"{stem.name}.{one}")).replace("'", "''")
        database.execute(f"COPY (SELECT * FROM answers) TO '{path}' ({_OPTIONS[one]})")  # noqa: S608 - quoted
    database.unregister("batch")
    database.unregister("texts")
