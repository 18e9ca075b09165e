"""Write the files of a release: answers, their index and the manifest.

Answers are written in batches of bounded size: Arrow writes Parquet files, and DuckDB writes CSV
files.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import astuple, fields
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leastnoise._charts import is_drawing
from leastnoise._frames import Columns, UniqueNames, label_array, to_frame
from leastnoise._pages import (
    MOST_PAGE_ROWS,
    MOST_PICTURES,
    MOST_SHORTENED_ROWS,
    MOST_TABLE_ROWS,
    collect_contents,
    describe_cuts,
    describe_row_limit,
    dropping_attributes,
    render_report,
    report_file,
)
from leastnoise._plan import AdaptivePlan, Plan
from leastnoise._publication._directory import DraftDirectory, list_files
from leastnoise._publication._manifest import escape_markdown, write_manifest
from leastnoise._publication._manifest_of_release import (
    MOST_LISTED_TABLES,
    build_manifest,
    list_measured_blocks,
)
from leastnoise._publication._publication_workbook import Publications
from leastnoise._publication._workbook_and_sdmx import SdmxMessages, Workbook
from leastnoise._release import (
    MOST_TABLE_FILES,
    NUMBER_COLUMNS,
    AnswerTable,
    Options,
    Records,
    Release,
    ResultTable,
    TableEntry,
    describe_columns,
    describe_quantity,
    make_file_name,
    make_inert,
    observation_text,
    statement_path,
    statistic_path,
    write_record,
    write_rows,
)
from leastnoise._texts import ENGLISH
from leastnoise._threads import BoundedThreadPool
from leastnoise._trusted.check import Exact, refuse
from leastnoise._trusted.check.arrays import Array
from leastnoise._workload import Product, level_names

BATCH_CELLS = 1_000_000  # number of cells that are written at a time; they take some tens of MiB
# In an interactive program DuckDB would draw a progress bar on the standard output.
_DISABLE_PROGRESS_BAR = "SET enable_progress_bar = false"
_ROW_GROUP_ROWS = 2**18
COLUMNS_KEY = "leastnoise:columns"
"""The key of the metadata of Parquet files with the quantity and unit of each column, as JSON."""

WRITERS: Mapping[str, tuple[Any, ...]] = {
    "xlsx": (Workbook, Publications),
    "sdmx": (SdmxMessages,),
}
"""Writers of the formats that hold all tables in one file; tables are added one after the other."""
# These are CPU seconds, measured on one core of 2026.
_START_SECONDS = 1.3
_PICTURE_SECONDS = 0.08
_FILE_SECONDS = 0.02
_PAGE_ROW_SECONDS = 7e-5
_ANSWER_SECONDS = 3e-6
_MEASUREMENT_SECONDS = 3e-7


class OutputFormats(NamedTuple):
    """The formats in which answers are written.

    Attributes:
        is_parquet: whether to write Parquet files.
        csv_database: the DuckDB connection that writes CSV files; None if no CSV files are written,
            because opening a connection takes longer than writing a small table.
    """

    is_parquet: bool
    csv_database: Any


@contextmanager
def _open_formats(format_names: Sequence[str]) -> Iterator[OutputFormats]:
    """Yield the output formats, and open a database if CSV is requested."""
    connection: Any = nullcontext()
    if "csv" in format_names:
        import duckdb

        connection = duckdb.connect(":memory:")
    with connection as database:
        yield OutputFormats("parquet" in format_names, database)


def write_answers(
    release: Release, directory: Path
) -> Generator[tuple[AnswerTable, TableEntry], None, None]:
    """Write all answers and ``tables.csv``; yield each table and its entry.

    Each table is estimated once, and yielded while a thread writes the table to its file.

    Guarantees: at most one table, plus one for each core, is in memory at a time. If tables share
        files, the limit counts batches of about a million answers.
    """
    (directory / "answers").mkdir()
    entries = []
    format_writers = []
    for name in release.options.formats:
        format_writers += [make_writer(release, directory) for make_writer in WRITERS.get(name, ())]
    with _open_formats(release.options.formats) as formats, BoundedThreadPool() as pool:
        write_tables = _write_single_tables
        if len(release.tables) > MOST_TABLE_FILES:
            write_tables = _write_table_batches
        for table, stem in write_tables(release, directory, formats, pool):
            entries.append(_make_entry(release, table, stem))
            for writer in format_writers:
                writer.add(table, stem)
            yield table, entries[-1]
        for statistic in release.statistics:
            _write_result(statistic, directory / statistic_path(release, statistic), formats)
            for writer in format_writers:
                writer.add(statistic, statistic_path(release, statistic))
    for writer in format_writers:
        writer.close()
    for number, text in enumerate(release.options.statements, 1):
        answers = release.answer_sql(text)
        for ending in {"csv", *release.options.formats} & {"csv", "parquet"}:
            write_columns(answers, directory / f"{statement_path(number)}.{ending}")
    write_rows(
        directory / "tables.csv",
        [entry_field.name for entry_field in fields(TableEntry)],
        map(astuple, entries),
    )


def write_columns(columns: Columns, path: Path) -> None:
    """Write columns as CSV or Parquet, depending on the file name's ending."""
    if path.suffix == ".csv":
        write_rows(
            path, columns, zip(*(values.tolist() for values in columns.values()), strict=True)
        )
        return
    from pyarrow.parquet import write_table

    write_table(to_frame(columns, "pyarrow"), path, compression="zstd")


def write_covariances(release: Release, directory: Path) -> None:
    """Write the requested covariances, one file for each table and format.

    The covariance of each pair of answers is written once.
    """
    if not release.options.covariances:
        return
    (directory / "covariances").mkdir()
    with _open_formats(
        [name for name in release.options.formats if name not in WRITERS] or ["csv"]
    ) as formats:
        for key in release.options.covariances:
            matrix = release.covariance(key)
            first, second = np.triu_indices(len(matrix))
            columns: dict[str, Array] = {"query": np.zeros(len(first), dtype=np.int32)}
            columns |= {
                "answer": first + 1,
                "other_answer": second + 1,
                "covariance": matrix[first, second],
            }
            _write_column_files(
                columns, {"query": [key]}, directory / f"covariances/{key}", formats
            )


def _make_entry(release: Release, table: AnswerTable, stem: str) -> TableEntry:
    """Return the index entry of a written table."""
    product = table.product
    if product.measure is None:
        unit = None
    else:
        unit = product.domain.measures[product.measure].unit
    position = int(table.id[1:]) - 1
    if release.plan.data_independent_error is not None:
        expected_errors = release.plan.data_independent_error.tables
    else:
        expected_errors = ()
    # A table that replaces a table too large to write has no expected error.
    promised_rmse = None
    if position < len(expected_errors) and expected_errors[position].queries == table.cells:
        promised_rmse = expected_errors[position].rmse * float(unit or 1)
    if product.of_units:
        unit_text = "unit"
    elif product.of_values:
        unit_text = str(unit)
    else:
        unit_text = "row"
    return TableEntry(
        query=table.id,
        name=table.name,
        files=stem,
        attributes=product.attributes,
        answers=table.cells,
        measure=product.measure,
        quantity=describe_quantity(product),
        unit=unit_text,
        weight=str(product.weight),
        rmse=table.rmse,
        largest_std=float(table.noise_std.max(initial=0.0)),
        promised_rmse=promised_rmse,
        leaves_out=dropping_attributes(release.plan, product),
        of=describe_row_limit(release, product=product),
    )


def _write_single_tables(
    release: Release, directory: Path, formats: OutputFormats, pool: BoundedThreadPool
) -> Iterator[tuple[AnswerTable, str]]:
    """Write each table to separate files; yield it with the name of its files.

    Parquet files have a column of levels if some table of the workload has one.
    """
    has_levels = any(product.keys != product.attributes for product in release.workload)
    for table in release.tables:
        stem = f"answers/{make_file_name(table.id, table.name, len(release.tables))}"
        if has_levels:
            level = _name_levels(table.product)
        else:
            level = None
        pool.submit(_write_result, table, directory / stem, formats, level)
        yield table, stem


def _name_levels(product: Product) -> str:
    """Return the levels of a table's keys as text, such as ``region x band``.

    For a table without levels the name is ``total``.
    """
    levels = [
        key.removeprefix(f"{name}:")
        for key, name in zip(product.keys, product.attributes, strict=True)
        if level_names(product.domain.kind(name))
    ]
    return " x ".join(levels) or "total"


def _write_result(
    result: ResultTable, stem: Path, formats: OutputFormats, levels: str | None = None
) -> None:
    """Write a table or statistic to one file for each format.

    The columns are query, one for each key, and the numbers.
    """
    texts: dict[str, Sequence[str]] = {"query": [result.id]}
    columns: dict[str, Array] = {"query": np.broadcast_to(np.int32(0), result.cells)}
    for axis, (column, labels) in enumerate(zip(result.key_columns(), result.labels, strict=True)):
        array = label_array(labels)
        if array.dtype == object:
            texts[column] = [*map(str, labels)]
            array = np.arange(len(labels), dtype=np.int32)
        columns[column] = np.broadcast_to(
            np.expand_dims(array, [*range(1, result.low.ndim - axis)]), result.low.shape
        )
    _write_column_files(
        {**columns, **result.numbers()}, texts, stem, formats, levels, describe_columns(result)
    )


def _write_table_batches(
    release: Release, directory: Path, formats: OutputFormats, pool: BoundedThreadPool
) -> Iterator[tuple[AnswerTable, str]]:
    """Write tables to shared files; yield each table with their name.

    Each file contains about a million answers. Tables with the same number of attributes share a
    folder.
    """
    batches: dict[int, list[AnswerTable]] = {}
    part_numbers: dict[int, int] = {}

    def write(attribute_count: int) -> None:
        """Write the collected tables with this number of attributes to a file."""
        pool.submit(
            _write_batch,
            batches.pop(attribute_count),
            directory / stem(attribute_count),
            release.options.occasional_columns,
            formats,
        )
        part_numbers[attribute_count] += 1

    def stem(attribute_count: int) -> str:
        """Return the path of the next file for tables, without ending."""
        return (
            f"answers/{attribute_count}-way/part-{part_numbers.setdefault(attribute_count, 1):05d}"
        )

    for table in release.tables:
        ways = len(table.labels)
        (directory / stem(ways)).parent.mkdir(exist_ok=True)
        batches.setdefault(ways, []).append(table)
        yield table, stem(ways)
        if sum(batched_table.cells for batched_table in batches[ways]) >= BATCH_CELLS:
            write(ways)
    for ways in [*batches]:
        write(ways)


def _write_batch(
    tables: Sequence[AnswerTable],
    stem: Path,
    occasional_columns: Sequence[str],
    formats: OutputFormats,
) -> None:
    """Write tables with the same number of attributes to one file per format.

    The columns are query, attribute_1, value_1, ..., and the numbers.
    """
    texts: dict[str, list[str]] = {}
    sizes = [table.cells for table in tables]
    indices_by_shape = {table.answer.shape: table.indices() for table in tables}

    def first_positions(column: str, labels: Iterable[tuple[object, ...]]) -> Array:
        """Return the position of each table's first label among a column's texts.

        Equal lists of labels occur only once among these texts.
        """
        first_position: dict[object, int] = {}
        column_texts = texts.setdefault(column, [])
        for label_set in labels:
            if label_set not in first_position:
                first_position[label_set] = len(column_texts)
                column_texts.extend(map(str, label_set))
        return np.repeat(
            np.array([first_position[label_set] for label_set in labels], np.int32), sizes
        )

    columns = {"query": first_positions("query", [(table.id,) for table in tables])}
    for axis in range(len(tables[0].labels)):
        attribute = f"attribute_{axis + 1}"
        value = f"value_{axis + 1}"
        columns[attribute] = first_positions(
            attribute, [(table.product.keys[axis],) for table in tables]
        )
        label_indices = np.concatenate(
            [indices_by_shape[table.answer.shape][axis] for table in tables]
        )
        columns[value] = (
            first_positions(value, [table.labels[axis] for table in tables]) + label_indices
        )
    numbers = [table.numbers() for table in tables]
    for name in NUMBER_COLUMNS:
        # Whole counts and decimal sums share a column, and some tables do not have every requested
        # column.
        if name in occasional_columns or any(name in label_set for label_set in numbers):
            values = [
                label_set.get(name, np.full(table.cells, np.nan))
                for label_set, table in zip(numbers, tables, strict=True)
            ]
            columns[name] = np.concatenate(values).astype(np.float64, copy=False)
    _write_column_files(columns, texts, stem, formats)


def _write_column_files(
    columns: Mapping[str, Array],
    texts: Mapping[str, Sequence[str]],
    stem: Path,
    formats: OutputFormats,
    levels: str | None = None,
    meanings: Mapping[str, str] | None = None,
) -> None:
    """Write columns to one file for each format; NaN becomes empty.

    If ``texts`` has an entry for a column, the column contains positions in these texts. Parquet
    files also have a column with ``levels``, unless it is None, and ``meanings`` as metadata.
    """
    unique_names = UniqueNames(set())
    names = {
        name: unique_names.make_unique(name.encode("utf-8", "replace").decode()) for name in columns
    }
    if formats.csv_database is not None:
        path = stem.with_name(f"{stem.name}.csv")
        _write_csv(columns, texts, names, path, formats.csv_database)
    if not formats.is_parquet:
        return
    if levels is not None:
        # An attribute may be called "level", but attributes cannot have an empty name.
        columns = {"query": columns["query"], "": columns["query"], **columns}
        texts = {**texts, "": [levels]}
        names = {"query": names["query"], "": unique_names.make_unique("level"), **names}
    path = stem.with_name(f"{stem.name}.parquet")
    _write_parquet(columns, texts, names, path, meanings or {})


def _write_csv(
    columns: Mapping[str, Array],
    texts: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
    path: Path,
    database: Any,
) -> None:
    """Write columns as CSV; no text can make a spreadsheet run a formula."""
    import pyarrow as pa

    inert_texts = {
        name: [make_inert(text) for text in column_texts] for name, column_texts in texts.items()
    }
    inert_names = map(make_inert, names.values())
    batches = _read_arrow_batches(columns, inert_texts, inert_names, pa.LargeStringArray.take)
    quoted_path = str(path).replace("'", "''")
    with database.cursor() as connection:  # one per file, because threads write files
        connection.execute(_DISABLE_PROGRESS_BAR)
        connection.register("answers", batches)
        connection.execute(
            f"COPY (SELECT * FROM answers) TO '{quoted_path}' "  # noqa: S608 - quoted
            "(FORMAT csv, HEADER)"
        )


def _write_parquet(
    columns: Mapping[str, Array],
    texts: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
    path: Path,
    meanings: Mapping[str, str],
) -> None:
    """Write columns as Parquet and ``meanings`` as its metadata."""
    from pyarrow.parquet import ParquetWriter

    dictionary_columns = [
        names[name]
        for name, array in columns.items()
        if name in texts or name == "noise_std" or array.dtype.kind != "f"
    ]
    # Minima and maxima of row groups help readers only for the query column. For all columns they
    # would take a quarter of the time.
    parquet_options = {
        "use_dictionary": dictionary_columns,
        "write_statistics": [names["query"]],
        "store_schema": False,
    }
    batches = _read_arrow_batches(columns, texts, names.values(), _dictionary_array)
    with ParquetWriter(path, batches.schema, compression="zstd", **parquet_options) as writer:
        writer.add_key_value_metadata({COLUMNS_KEY: json.dumps(meanings)})
        for batch in batches:
            writer.write_batch(batch)


def _read_arrow_batches(
    columns: Mapping[str, Array],
    texts: Mapping[str, Sequence[str]],
    names: Iterable[str],
    take_texts: Callable[..., Any],
) -> Any:
    """Return an Arrow reader that creates one batch per row group on demand."""
    import pyarrow as pa

    arrow_texts = {name: _string_array(column_texts) for name, column_texts in texts.items()}
    column_names = [*names]

    def make_batch(start: int) -> Any:
        """Return the Arrow batch of the rows that begin at row ``start``."""
        arrays = []
        for name, column in columns.items():
            array = _number_array(column.flat[start : start + _ROW_GROUP_ROWS])
            if name in arrow_texts:
                array = take_texts(arrow_texts[name], array)
            arrays.append(array)
        return pa.record_batch(arrays, names=column_names)

    first_start, *starts = range(0, columns["query"].size, _ROW_GROUP_ROWS)
    first_batch = make_batch(first_start)
    batches = chain([first_batch], map(make_batch, starts))
    return pa.RecordBatchReader.from_batches(first_batch.schema, batches)


def _dictionary_array(texts: Any, codes: Any) -> Any:
    """Return a dictionary-encoded Arrow array, limited to the texts that occur."""
    import pyarrow as pa

    numbers = np.from_dlpack(codes)
    first = int(numbers.min())
    last = int(numbers.max())
    return pa.DictionaryArray.from_arrays(
        _number_array(numbers - first), texts.slice(first, last - first + 1)
    )


def _number_array(values: Array) -> Any:
    """Return an Arrow array with NaN as null.

    The array is built from buffers, because ``pyarrow.array`` imports pandas.
    """
    import pyarrow as pa

    is_missing = np.isnan(values)
    if is_missing.any():
        validity = pa.py_buffer(np.packbits(~is_missing, bitorder="little"))
    else:
        validity = None
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype),
        len(values),
        [validity, pa.py_buffer(np.ascontiguousarray(values))],
    )


def _string_array(texts: Sequence[str]) -> Any:
    """Return texts as an Arrow array; "?" replaces unencodable characters.

    Thus no label can make a release fail after the payment.
    """
    import pyarrow as pa

    encoded = [text.encode("utf-8", "replace") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return pa.Array.from_buffers(
        pa.large_string(), len(encoded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    )


def write_rounded(release: Release, directory: Path, to: Exact, below: Exact | None = None) -> None:
    """Write every table, rounded, as CSV files into a directory.

    A README file explains how rounding affects error bars.
    """
    payment = release.receipt.payment
    if payment is not None:
        title = f"# {escape_markdown(payment.dataset)}: rounded tables"
    else:
        title = "# Rounded tables"
    lines = [title, ""]
    if not release.private:
        lines += [f"**{ENGLISH.say('not_private')}**", ""]
    if cut_note := describe_cuts(release):
        lines += [escape_markdown(cut_note), ""]
    for table in release.tables:
        rounded = table.rounded(to, below)
        name = f"{make_file_name(table.id, table.name, len(release.tables))}.csv"
        write_columns(rounded.columns(), directory / name)
        lines.append(f"- `{name}`: {rounded.describe()}")
    (directory / "README.md").write_text(
        "\n".join(lines) + "\n", encoding="utf-8", errors="replace"
    )


def check_records_file(path: Path) -> None:
    """Raise unless the file name for records ends in .csv or .parquet."""
    if path.suffix not in (".csv", ".parquet"):
        raise refuse("the file of records", path.name, "a name that ends in .csv or .parquet")


def write_records(records: Records, path: Path) -> None:
    """Write records as CSV or Parquet, depending on the file name's ending."""
    check_records_file(path)
    write_columns(records.columns(), path)


def fill_draft(release: Release, draft: DraftDirectory) -> None:
    """Write all files of a release into its draft directory."""
    _write_measurements(release, draft.path / "measurements")
    # Waits for all threads: none may write into a removed draft.
    with closing(write_answers(release, draft.path)) as written_tables:
        contents = collect_contents(release, written_tables)
    write_covariances(release, draft.path)
    for content in contents:
        page = render_report(release, content)
        (draft.path / report_file(release.options, content.catalogue.language)).write_text(
            page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n"
        )
    manifest = build_manifest(release, contents[0].entries, list_files(draft.path))
    write_manifest(manifest, draft.path)


def _write_measurements(release: Release, directory: Path) -> None:
    """Write the plan and the observation.

    If the list of measured tables is too long for the manifest, the list is written to a separate
    file.
    """
    directory.mkdir()
    observation = release.observation
    (directory / "plan.json").write_text(release.plan.to_json(), encoding="utf-8")
    with (directory / "observation.json").open("w", encoding="utf-8") as file:
        file.writelines(observation_text(release.outcome))
    if len(observation.measurements.blocks) > MOST_LISTED_TABLES:
        tables = [write_record(table) for table in list_measured_blocks(observation.measurements)]
        columns = dict.fromkeys(chain(*tables))
        rows = ([table.get(name) for name in columns] for table in tables)
        write_rows(directory / "tables.csv", columns, rows)


def finishing_seconds(plan: Plan, options: Options, *, written: bool = True) -> float:
    """Estimate the CPU seconds for measuring, estimating and writing a release.

    The estimate is 0 for a plan whose measurements depend on the data.
    """
    if isinstance(plan, AdaptivePlan):
        return 0.0
    seconds = _MEASUREMENT_SECONDS * sum(block.rows for block in plan.measured().blocks)
    if not written:
        return seconds
    sizes = [product.rows for product in plan.workload.products]
    rows = min(
        sum(size if size <= MOST_TABLE_ROWS else MOST_SHORTENED_ROWS for size in sizes),
        MOST_PAGE_ROWS,
    )
    files = min(len(sizes), MOST_TABLE_FILES) * len(options.formats) / 2
    if is_drawing():
        pictures = min(len(sizes), MOST_PICTURES)
    else:
        pictures = 0
    return (
        seconds
        + _START_SECONDS
        + _PICTURE_SECONDS * pictures
        + _FILE_SECONDS * files
        + _PAGE_ROW_SECONDS * rows
        + _ANSWER_SECONDS * sum(sizes)
    )
