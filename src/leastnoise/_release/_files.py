"""Answers as files, a bounded number of cells at a time: Parquet by Arrow, CSV by DuckDB; rounded tables; and the index of all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._check import Exact, refuse
from leastnoise._check.arrays import Array
from leastnoise._frames import Columns, Names, label_array, to_frame
from leastnoise._release._csv import file_name, inert_text, write_rows
from leastnoise._release._excel import Workbook
from leastnoise._release._records import Records
from leastnoise._release._release import Release
from leastnoise._release._sdmx import Messages
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import NUMBERS, Part, Table, rounded
from leastnoise._release._words import cut_words, of_words
from leastnoise._threads import Beside
from leastnoise._workload import Product, level_names

MOST_TABLE_FILES = 200
BATCH_CELLS = 1_000_000
_QUIET = "SET enable_progress_bar = false"  # DuckDB would draw its own on the standard output stream of an interactive program
_ROW_GROUP = 2**18

WRITERS = {"xlsx": Workbook, "sdmx": Messages}
"""Formats beside those with one row an answer, which take parts one by one; `check_options` refuses what they cannot hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """What the index says about a table."""

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
    of: str

    def to_json(self) -> dict[str, Any]:
        """The values for JSON."""
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class _Formats:
    """What is written, and the database that writes CSV: to make one takes eight times as long as to write a small table."""

    parquet: bool
    csv: Any


@contextmanager
def _formats(names: Sequence[str]) -> Iterator[_Formats]:
    """For all files of a release."""
    if "csv" not in names:
        yield _Formats("parquet" in names, None)
        return
    import duckdb

    with duckdb.connect(":memory:") as database:
        yield _Formats("parquet" in names, database)


def in_batches(release: Release) -> bool:
    """Whether there are too many tables for a file each."""
    return len(release.tables) > MOST_TABLE_FILES


def write_answers(release: Release, directory: Path) -> list[TableEntry]:
    """Write all answers and the index ``tables.csv``.

    Guarantees: memory for one table, or for one batch of about a million answers where tables share files.
    """
    (directory / "answers").mkdir()
    entries = []
    others = [WRITERS[name](release, directory) for name in release.options.formats if name in WRITERS]
    with _formats(release.options.formats) as formats, Beside() as beside:
        for table, stem in (
            _batched(release, directory, formats, beside) if in_batches(release) else _one_by_one(release, directory, formats)
        ):
            entries.append(_entry(release, table, stem))
            for writer in others:
                writer.add(table, stem)
        for made in release.statistics:
            _write_part(made, directory / statistic_file(release, made), formats)
            for writer in others:
                writer.add(made, statistic_file(release, made))
    for writer in others:
        writer.close()
    for number, text in enumerate(release.options.statements, 1):
        answers = release.answered(text)
        for ending in {"csv", *release.options.formats} & {"csv", "parquet"}:
            write_columns(answers, directory / f"{statement_file(number)}.{ending}")
    rows = ([" x ".join(value) if isinstance(value, list) else value for value in entry.to_json().values()] for entry in entries)
    write_rows(directory / "tables.csv", TableEntry.__slots__, rows)
    return entries


def statement_file(number: int) -> str:
    """Where the answers of a SQL statement are, without the ending."""
    return f"answers/statement-{number}"


def write_columns(columns: Columns, path: Path) -> None:
    """Columns as CSV or Parquet, by the ending of the file's name."""
    if path.suffix == ".csv":
        write_rows(path, columns, zip(*(values.tolist() for values in columns.values()), strict=True))
        return
    from pyarrow.parquet import write_table

    write_table(to_frame(columns, "pyarrow"), path, compression="zstd")


def write_covariances(release: Release, directory: Path) -> None:
    """Write the covariances of the tables that were asked for, one file a table and format, each pair of answers once."""
    if not release.options.covariances:
        return
    (directory / "covariances").mkdir()
    with _formats([name for name in release.options.formats if name not in WRITERS] or ["csv"]) as formats:
        for key in release.options.covariances:
            matrix = release.covariance(key)
            first, second = np.triu_indices(len(matrix))
            columns: dict[str, Array] = {"query": np.zeros(len(first), dtype=np.int32)}
            columns |= {"answer": first + 1, "other_answer": second + 1, "covariance": matrix[first, second]}
            _copy(columns, {"query": [key]}, directory / f"covariances/{key}", formats)


def _entry(release: Release, table: Table, stem: str) -> TableEntry:
    product = table.product
    unit = None if product.measure is None else product.domain.measures[product.measure].unit
    position = int(table.id[1:]) - 1
    promised = release.plan.promise.tables if release.plan.promise is not None else ()
    # In the place of a table too large to write is one of its cells, for which nothing was promised.
    is_promised = position < len(promised) and promised[position].queries == table.cells
    return TableEntry(
        query=table.id,
        name=table.name,
        files=stem,
        attributes=product.attributes,
        answers=table.cells,
        measure=product.measure,
        unit="unit" if product.of_units else str(unit) if product.of_values else "row",
        weight=str(product.weight),
        rmse=table.rmse,
        largest_std=float(table.noise_std.max(initial=0.0)),
        promised_rmse=promised[position].rmse * float(unit or 1) if is_promised else None,
        of=of_words(release),
    )


def statistic_file(release: Release, made: StatisticTable) -> str:
    """Where the files of a statistic are, below the release's directory, without an ending."""
    return f"answers/{file_name(made.id, made.name, len(release.statistics))}"


def _one_by_one(release: Release, directory: Path, formats: _Formats) -> Iterator[tuple[Table, str]]:
    for table in release.tables:
        stem = f"answers/{file_name(table.id, table.name, len(release.tables))}"
        _write_part(table, directory / stem, formats, _level(release, table.product))
        yield table, stem


def _level(release: Release, product: Product) -> str | None:
    """The level that a table is of, along the attributes that have levels; None where no table asks for one."""
    if all(one.keys == one.attributes for one in release.workload):
        return None
    pairs = zip(product.keys, product.attributes, strict=True)
    return " x ".join(key.removeprefix(f"{name}:") for key, name in pairs if level_names(product.domain.kind(name))) or "total"


def _write_part(part: Part, stem: Path, formats: _Formats, level: str | None = None) -> None:
    """One file a format: query, one column a key, and the numbers."""
    texts: dict[str, Sequence[str]] = {"query": [part.id]}
    columns: dict[str, Array] = {"query": np.zeros(part.cells, dtype=np.int32)}
    for column, labels, place in zip(part.key_columns(), part.labels, part.places(), strict=True):
        array = label_array(labels)
        columns[column] = place if array.dtype == object else array[place]
        if array.dtype == object:
            texts[column] = [_clean(str(label)) for label in labels]
    _copy({**columns, **part.numbers()}, texts, stem, formats, level)


def _clean(text: str) -> str:
    """The text without what UTF-8 cannot hold: after the budget is spent nothing may fail for a label."""
    return text.encode("utf-8", "replace").decode()


def _batched(release: Release, directory: Path, formats: _Formats, beside: Beside) -> Iterator[tuple[Table, str]]:
    """Tables of one number of attributes go to one folder, as parts of about a million answers, written beside what is estimated."""
    batches: dict[int, list[Table]] = {}
    parts: dict[int, int] = {}

    def write(ways: int) -> None:
        beside.do(_write_batch, batches.pop(ways), directory / stem(ways), release.options.some, formats)
        parts[ways] += 1

    def stem(ways: int) -> str:
        return f"answers/{ways}-way/part-{parts.setdefault(ways, 1):05d}"

    for table in release.tables:
        ways = len(table.labels)
        (directory / stem(ways)).parent.mkdir(exist_ok=True)
        batches.setdefault(ways, []).append(table)
        yield table, stem(ways)
        if sum(each.cells for each in batches[ways]) >= BATCH_CELLS:
            write(ways)
    for ways in [*batches]:
        write(ways)


def _write_batch(tables: Sequence[Table], stem: Path, some: Sequence[str], formats: _Formats) -> None:
    """Answers of several tables along as many attributes in long form: query, attribute_1, value_1, ..., and the numbers."""
    texts: dict[str, list[str]] = {}
    sizes = [table.cells for table in tables]
    shapes = {table.answer.shape: table.places() for table in tables}

    def first_places(column: str, labels: Iterable[tuple[object, ...]]) -> Array:
        """The place of the first of some labels among the texts of a column, each of which is written once a file."""
        distinct: dict[object, int] = {}
        known = texts.setdefault(column, [])
        for each in labels:
            if each not in distinct:
                distinct[each] = len(known)
                known.extend(_clean(str(label)) for label in each)
        return np.repeat(np.array([distinct[each] for each in labels], np.int32), sizes)

    columns = {"query": first_places("query", [(table.id,) for table in tables])}
    for axis in range(len(tables[0].labels)):
        attribute, value = f"attribute_{axis + 1}", f"value_{axis + 1}"
        columns[attribute] = first_places(attribute, [(table.product.keys[axis],) for table in tables])
        within = np.concatenate([shapes[table.answer.shape][axis] for table in tables])
        columns[value] = first_places(value, [table.labels[axis] for table in tables]) + within
    numbers = [table.numbers() for table in tables]
    for name in NUMBERS:
        # Whole counts and sums in decimals share a column; not every table has those that were asked for.
        if name in some or any(name in each for each in numbers):
            values = [each.get(name, np.full(table.cells, np.nan)) for each, table in zip(numbers, tables, strict=True)]
            columns[name] = np.concatenate(values).astype(np.float64, copy=False)
    _copy(columns, texts, stem, formats)


def _copy(
    columns: Mapping[str, Array], texts: Mapping[str, Sequence[str]], stem: Path, formats: _Formats, level: str | None = None
) -> None:
    """Write columns to files; those in ``texts`` hold places in them. NaN is written as nothing. Parquet has the level too."""
    import pyarrow as pa

    given = Names(set())
    names = {name: given.give(_clean(name)) for name in columns}

    numbers = {name: _numbers(array) for name, array in columns.items()}

    def table(texts: Mapping[str, Sequence[str]], names: Iterable[str]) -> Any:
        arrays = [
            pa.DictionaryArray.from_arrays(array, _strings(texts[name])) if name in texts else array for name, array in numbers.items()
        ]
        return pa.Table.from_arrays(arrays, names=[*names])

    if formats.csv is not None:
        inert = {name: [inert_text(text) for text in known] for name, known in texts.items()}
        with formats.csv.cursor() as connection:  # of its own, as parts are written on several threads
            connection.execute(_QUIET)
            connection.register("answers", table(inert, map(inert_text, names.values())))
            path = str(stem.with_name(f"{stem.name}.csv")).replace("'", "''")
            connection.execute(f"COPY (SELECT * FROM answers) TO '{path}' (FORMAT csv, HEADER)")  # noqa: S608 - quoted
    if formats.parquet:
        from pyarrow.parquet import write_table

        repeated = [names[name] for name, array in columns.items() if name in texts or name == "noise_std" or array.dtype.kind != "f"]
        file = stem.with_name(f"{stem.name}.parquet")
        # Of the other columns the least and the largest value of a row group help no reader, and take a quarter of the time.
        statistics_of = [names["query"]]
        facts = {"use_dictionary": repeated, "write_statistics": statistics_of, "store_schema": False, "row_group_size": _ROW_GROUP}
        whole = table(texts, names.values())
        if level is not None:
            repeated.append(given.give("level"))
            whole = whole.add_column(1, repeated[-1], pa.DictionaryArray.from_arrays(numbers["query"], _strings([level])))
        write_table(whole, file, compression="zstd", **facts)


def _numbers(values: Array) -> Any:
    """An array of Arrow, without a value where one is NaN; from buffers, as ``pyarrow.array`` loads pandas."""
    import pyarrow as pa

    gone = np.isnan(values)
    known = pa.py_buffer(np.packbits(~gone, bitorder="little")) if gone.any() else None
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [known, pa.py_buffer(np.ascontiguousarray(values))])


def _strings(texts: Sequence[str]) -> Any:
    import pyarrow as pa

    coded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int64)
    return pa.Array.from_buffers(pa.large_string(), len(coded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(coded))])


def write_rounded(release: Release, directory: Path, to: Exact, below: Exact | None = None) -> None:
    """Write every table, rounded, as CSV, and beside them what that does to error bars."""
    dataset = release.receipt.get("dataset")
    lines = [f"# {dataset}: rounded tables" if dataset else "# Rounded tables", ""]
    if not release.private:
        lines += ["**NOT PRIVATE**: the noise of this release came from a seed.", ""]
    if cut := cut_words(release):
        lines += [cut, ""]
    for table in release.tables:
        rule = rounded(table, to, below)
        name = f"{file_name(table.id, table.name, len(release.tables))}.csv"
        write_columns(rule.columns(), directory / name)
        lines.append(f"- `{name}`: {rule.words()}")
    (directory / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")


def check_records_file(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if path.suffix not in (".csv", ".parquet"):
        raise refuse("the file of records", path.name, "a name that ends in .csv or .parquet")


def write_records(made: Records, path: Path) -> None:
    """As CSV or Parquet, by the ending of the file's name."""
    check_records_file(path)
    write_columns(made.columns(), path)
