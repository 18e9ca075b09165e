"""Write the files of a release: answers, their index, the manifest.

Answers are written in batches of bounded size: Arrow writes Parquet, DuckDB writes CSV.
"""

import json
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, astuple, fields
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._charts import is_drawing
from leastnoise._domain import READ_AS_IT_IS
from leastnoise._error import block_variance, noise_name
from leastnoise._estimation import REPETITIONS
from leastnoise._frames import Columns, UniqueNames, label_array, name_key_columns, to_frame
from leastnoise._plan import AdaptivePlan, LinearPlan, Plan, versions
from leastnoise._release import _sentences as sentences
from leastnoise._release._csv_files import make_file_name, make_inert, write_rows
from leastnoise._release._directory import Draft, list_files
from leastnoise._release._formats import SdmxMessages, Workbook
from leastnoise._release._manifest import MANIFEST_FORMAT, Manifest, escape_markdown
from leastnoise._release._observation import observation_text
from leastnoise._release._options import (
    Options,
    rounded_quantities,
    rounding_reach,
    rounding_rule,
)
from leastnoise._release._publication import Publications
from leastnoise._release._quantities import SURVEY_COLUMNS, describe_columns, describe_quantity
from leastnoise._release._records import Records
from leastnoise._release._release import SEEDED_NOTICE, Release, TableEntry, statement_path
from leastnoise._release._report import (
    MOST_PAGE_ROWS,
    MOST_PICTURES,
    MOST_SHORTENED_ROWS,
    MOST_TABLE_ROWS,
    collect_contents,
    render_report,
    report_file,
)
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import NUMBER_COLUMNS, ResultTable, Table
from leastnoise._release._texts import ENGLISH
from leastnoise._threads import BoundedThreadPool
from leastnoise._trusted.accounting import covers
from leastnoise._trusted.check import Exact, InputError, refuse
from leastnoise._trusted.check.arrays import Array
from leastnoise._trusted.measurements import Measurements
from leastnoise._workload import Product, level_names

MOST_TABLE_FILES = 200
BATCH_CELLS = 1_000_000
# DuckDB would draw its own progress bar on the standard output of an interactive program.
_DISABLE_PROGRESS_BAR = "SET enable_progress_bar = false"
_ROW_GROUP_ROWS = 2**18
COLUMNS_KEY = "leastnoise:columns"
"""The key of the metadata of Parquet files with the quantity and unit of each column, as JSON."""

WRITERS: Mapping[str, tuple[Any, ...]] = {
    "xlsx": (Workbook, Publications),
    "sdmx": (SdmxMessages,),
}
"""Writers of the formats that hold all tables in one file; tables are added one after the other."""
MOST_LISTED_TABLES = 200
MOST_LABELS = 100_000  # of all attributes and their levels
PROJECTIONS = {
    "agreed": "from the total down, the nearest groups within each group (least squares) that are "
    "at least 0 and add up to it; all tables "
    "are sums of the one that has the cells or groups of all others, so they agree",
    "marginal": "the nearest cells (least squares) that are at least 0 and keep the estimated "
    "total, if that is positive",
    "prefix": "the nearest answers (least squares) that do not fall along the prefix sums and are "
    "at least 0",
    "clip": "negative answers are replaced by 0",
    "none": "not made, because the true answers may be negative",
}
_COLUMNS = {
    "answer": "the unbiased least squares estimate, consistent across tables",
    "noise_std": "its standard error from the noise, as the plan promised it",
}
_ADAPTIVE_COLUMNS = {
    "answer": "the estimate, consistent across tables; biased where the data are not as even as "
    "the choices suppose",
    "noise_std": "its standard error from the noise, given the outcome of the choices",
    "approximation_std": "the rest of its error, estimated from what was paid for; empty where "
    "nothing tells",
}
_ADAPTIVE_POST_PROCESSING = (
    "answer is the mechanism's estimate; it is %s. Everything after the measurements is "
    "post-processing and cost nothing."
)
_ADAPTIVE_ERROR_NOTE = (
    "which queries were measured was decided on the way, so the error depends on the data, and it "
    "was not promised beforehand"
)
# CPU seconds, measured on one core of 2026
_START_SECONDS = 1.3
_PICTURE_SECONDS = 0.08
_FILE_SECONDS = 0.02
_PAGE_ROW_SECONDS = 7e-5
_ANSWER_SECONDS = 3e-6
_MEASUREMENT_SECONDS = 3e-7
_MEAN_INTERVALS = (
    "Intervals are Fieller's, each separately; std_error is by the delta method at the estimates, "
    "empty where the divisor is not clear of 0; the sum and the divisor are from the tables."
)
_MEANINGS = {
    "variances": "root of the mean squared distance of the values of a group from their mean, with "
    "the number of values as the divisor. An interval has every value that the noise of the count, "
    "the sum and the sum of squares explains, each interval by itself; std_error is by the delta "
    "method at the estimates, empty where the count is not clear of 0 and where the estimate is 0. Values beyond the public "
    "bounds count at the nearest bound",
    "correlations": "correlation and covariance of each pair of measures, of the rows of a group "
    "with a value of every measure, with the number of these rows as the divisor. Intervals are by "
    "the delta method, each by itself; they have all values that the bounds allow, and std_error is "
    "empty, where the count or a variance is not clear of 0. Values beyond the public bounds count "
    "at the nearest bound",
    "regression": "coefficients of least squares with an intercept, of the rows of a group with a "
    "value of every measure. Intervals are for the noise only, by the delta method, each by itself; "
    "low, high and std_error are empty where the smallest eigenvalue of the normal equations is not "
    "clear of 0, so that every coefficient is possible; ridge is the amount that was then added to "
    "their diagonal, as a share of count. Values beyond the public bounds count at the nearest bound",
    "quantiles": "the least value with at least a share of the %s at or below it; only its cell "
    "is known, so low and high are ends of "
    "cells; each interval by itself. The first and the last cell also count values beyond the "
    "bounds: may_be_below is 1 where the interval reaches to the first, so that the quantile may "
    "lie below low, and may_be_above is 1 where it reaches to the last, so that it may lie above "
    "high",
    "cdf": "share of the %s up to the end of every cell (up_to); low to high is a band that "
    "holds for all cells of a group together. The first and the last cell also count values beyond "
    "the bounds: the last share covers all rows, some of which may lie above the last up_to",
    "covariances": "of the noise in two answers of one table, numbered from 1 in row-major order, "
    "each pair once; squared rows or "
    "amounts. The variance of a sum of answers is the sum of their covariances, both orders "
    "counted.",
    "answer_integer": "%s, in whole rows or multiples of the measure's unit: tables of cells by "
    "largest remainders, so that they keep "
    "their rounded total, others to the nearest; where levels are asked for and one table has the "
    "cells of all others, from the total "
    "down instead, so that all tables agree",
    "answer_nnls": "non-negative least squares over the joint table of all measurements, its "
    "total fixed to its own estimate (at least 0); "
    "it agrees across tables",
    "nnls_rmse": f"root mean square error of answer_nnls in {REPETITIONS} simulated releases in "
    "which the estimate itself was the truth; "
    "it depends on the data and is no promise of the plan",
    "answer_local": "the nearest tables, in the likelihood of the noise, that have no cell below "
    "0 and agree with each other, the total "
    "fixed to its own estimate (at least 0); no errors are known for them",
    "answer_top_down": "whole numbers of at least 0 that add up: from the total down, the cells of "
    "each group are divided by non-negative least squares and controlled rounding; public counts "
    "hold and impossible cells are 0, the total is the rounded unbiased one (at least 0) where it "
    "is not public; no errors are known for them",
}


@contextmanager
def _open_formats(names: Sequence[str]) -> Iterator[tuple[bool, Any]]:
    """Yield whether Parquet is written, and the database that writes CSV.

    The database is None without CSV: creating one takes longer than writing a small table.
    """
    connection: Any = nullcontext()
    if "csv" in names:
        import duckdb

        connection = duckdb.connect(":memory:")
    with connection as database:
        yield "parquet" in names, database


def write_answers(
    release: Release, directory: Path
) -> Generator[tuple[Table, TableEntry], None, None]:
    """Write all answers and the index ``tables.csv``.

    Each table is estimated once, and yielded while a thread writes it.

    Guarantees: memory for one table and one more for each core, or for that number of batches of
        about a million answers if tables share files.
    """
    (directory / "answers").mkdir()
    entries = []
    format_writers = [
        make_writer(release, directory)
        for name in release.options.formats
        for make_writer in WRITERS.get(name, ())
    ]
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
    """Write columns as CSV or Parquet, by the ending of the file's name."""
    if path.suffix == ".csv":
        write_rows(
            path, columns, zip(*(values.tolist() for values in columns.values()), strict=True)
        )
        return
    from pyarrow.parquet import write_table

    write_table(to_frame(columns, "pyarrow"), path, compression="zstd")


def write_covariances(release: Release, directory: Path) -> None:
    """Write the requested covariances, one file for each table and format.

    Each pair of answers is written once.
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


def _make_entry(release: Release, table: Table, stem: str) -> TableEntry:
    """Return the manifest's entry of a written table."""
    product = table.product
    if product.measure is None:
        unit = None
    else:
        unit = product.domain.measures[product.measure].unit
    position = int(table.id[1:]) - 1
    if release.plan.promise is not None:
        promised_errors = release.plan.promise.tables
    else:
        promised_errors = ()
    # A table that is too large to write has no promise: the table of its cells is in its place.
    promised_rmse = None
    if position < len(promised_errors) and promised_errors[position].queries == table.cells:
        promised_rmse = promised_errors[position].rmse * float(unit or 1)
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
        leaves_out=sentences.dropping_attributes(release.plan, product),
        of=sentences.describe_row_limit(release),
    )


def statistic_path(release: Release, statistic: StatisticTable) -> str:
    """Return the path of a statistic's files in the release, without ending."""
    return f"answers/{make_file_name(statistic.id, statistic.name, len(release.statistics))}"


def _write_single_tables(
    release: Release, directory: Path, formats: tuple[bool, Any], pool: BoundedThreadPool
) -> Iterator[tuple[Table, str]]:
    """Write one file for each table and format, and yield each table.

    Parquet files have a column of levels if some table of the workload has one.
    """
    has_levels = any(product.keys != product.attributes for product in release.workload)
    for table in release.tables:
        stem = f"answers/{make_file_name(table.id, table.name, len(release.tables))}"
        if has_levels:
            level = _name_levels(table.product)
        else:
            level = None
        pool.do(_write_result, table, directory / stem, formats, level)
        yield table, stem


def _name_levels(product: Product) -> str:
    """Name the levels of a table's keys, such as ``region x band``.

    A table without levels is ``total``.
    """
    levels = [
        key.removeprefix(f"{name}:")
        for key, name in zip(product.keys, product.attributes, strict=True)
        if level_names(product.domain.kind(name))
    ]
    return " x ".join(levels) or "total"


def _write_result(
    result: ResultTable, stem: Path, formats: tuple[bool, Any], level: str | None = None
) -> None:
    """Write a table or statistic, one file for each format.

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
        {**columns, **result.numbers()}, texts, stem, formats, level, describe_columns(result)
    )


def _write_table_batches(
    release: Release, directory: Path, formats: tuple[bool, Any], pool: BoundedThreadPool
) -> Iterator[tuple[Table, str]]:
    """Write tables in files of about a million answers, and yield each table.

    Tables with the same number of attributes share a folder.
    """
    batches: dict[int, list[Table]] = {}
    part_numbers: dict[int, int] = {}

    def write(ways: int) -> None:
        pool.do(
            _write_batch,
            batches.pop(ways),
            directory / stem(ways),
            release.options.occasional_columns,
            formats,
        )
        part_numbers[ways] += 1

    def stem(ways: int) -> str:
        return f"answers/{ways}-way/part-{part_numbers.setdefault(ways, 1):05d}"

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
    tables: Sequence[Table],
    stem: Path,
    occasional_columns: Sequence[str],
    formats: tuple[bool, Any],
) -> None:
    """Write tables with the same number of attributes in long form.

    The columns are query, attribute_1, value_1, ..., and the numbers.
    """
    texts: dict[str, list[str]] = {}
    sizes = [table.cells for table in tables]
    indices_by_shape = {table.answer.shape: table.indices() for table in tables}

    def first_positions(column: str, labels: Iterable[tuple[object, ...]]) -> Array:
        """Return for each table the position of its first label in a column.

        Equal labels are stored once.
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
        # Whole counts and decimal sums share a column, and some tables lack a requested column.
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
    formats: tuple[bool, Any],
    level: str | None = None,
    meanings: Mapping[str, str] | None = None,
) -> None:
    """Write columns as files, one for each format; NaN is left empty.

    A column that has ``texts`` holds positions in them. Parquet files also have the level, and the
    quantity and unit of each column in their metadata.
    """
    is_parquet, database = formats
    unique_names = UniqueNames(set())
    names = {
        name: unique_names.make_unique(name.encode("utf-8", "replace").decode()) for name in columns
    }
    if database is not None:
        path = stem.with_name(f"{stem.name}.csv")
        _write_csv(columns, texts, names, path, database)
    if not is_parquet:
        return
    if level is not None:
        # An attribute may be called "level", but none has an empty name.
        columns = {"query": columns["query"], "": columns["query"], **columns}
        texts = {**texts, "": [level]}
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
    """Write columns as CSV, with texts that no spreadsheet runs."""
    import pyarrow as pa

    inert_texts = {
        name: [make_inert(text) for text in column_texts] for name, column_texts in texts.items()
    }
    inert_names = map(make_inert, names.values())
    batches = _read_arrow_batches(columns, inert_texts, inert_names, pa.LargeStringArray.take)
    quoted_path = str(path).replace("'", "''")
    with database.cursor() as connection:  # one for each file, as several threads write files
        connection.execute(_DISABLE_PROGRESS_BAR)
        connection.register("answers", batches)
        connection.execute(f"COPY (SELECT * FROM answers) TO '{quoted_path}' (FORMAT csv, HEADER)")  # noqa: S608 - quoted


def _write_parquet(
    columns: Mapping[str, Array],
    texts: Mapping[str, Sequence[str]],
    names: Mapping[str, str],
    path: Path,
    meanings: Mapping[str, str],
) -> None:
    """Write columns as Parquet, with their meanings in the metadata."""
    from pyarrow.parquet import ParquetWriter

    dictionary_columns = [
        names[name]
        for name, array in columns.items()
        if name in texts or name == "noise_std" or array.dtype.kind != "f"
    ]
    # The smallest and largest values of row groups help readers only for the query column, and for
    # all columns would take a quarter of the time.
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
    """Return a reader of Arrow batches, each created on demand for a row group."""
    import pyarrow as pa

    arrow_texts = {name: _string_array(column_texts) for name, column_texts in texts.items()}
    column_names = [*names]

    def make_batch(start: int) -> Any:
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
    """Return a dictionary-encoded column that has only the texts of its batch."""
    import pyarrow as pa

    numbers = np.from_dlpack(codes)
    first = int(numbers.min())
    last = int(numbers.max())
    return pa.DictionaryArray.from_arrays(
        _number_array(numbers - first), texts.slice(first, last - first + 1)
    )


def _number_array(values: Array) -> Any:
    """Return an Arrow array with NaN as null.

    It is built from buffers, because ``pyarrow.array`` imports pandas.
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
    """Return texts as an Arrow array, with "?" for what UTF-8 cannot hold.

    So no label makes a release fail after the payment.
    """
    import pyarrow as pa

    encoded = [text.encode("utf-8", "replace") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return pa.Array.from_buffers(
        pa.large_string(), len(encoded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    )


def write_rounded(release: Release, directory: Path, to: Exact, below: Exact | None = None) -> None:
    """Write every table, rounded, as CSV.

    A README explains the effect of rounding on error bars.
    """
    dataset = release.receipt.get("dataset")
    if dataset:
        title = f"# {escape_markdown(dataset)}: rounded tables"
    else:
        title = "# Rounded tables"
    lines = [title, ""]
    if not release.private:
        lines += [f"**{SEEDED_NOTICE}**", ""]
    if cut_note := sentences.describe_cuts(release):
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
    """Raise if the name of a file of records has an unknown ending."""
    if path.suffix not in (".csv", ".parquet"):
        raise refuse("the file of records", path.name, "a name that ends in .csv or .parquet")


def write_records(records: Records, path: Path) -> None:
    """Write records as CSV or Parquet, by the ending of the file's name."""
    check_records_file(path)
    write_columns(records.columns(), path)


def fill_draft(release: Release, draft: Draft) -> None:
    """Write the files of a release into a draft."""
    _write_measurements(release, draft.path / "measurements")
    with closing(
        write_answers(release, draft.path)
    ) as written_tables:  # even after an error no thread writes into a draft that is removed
        contents = collect_contents(release, written_tables)
    write_covariances(release, draft.path)
    for content in contents:
        page = render_report(release, content)
        (draft.path / report_file(release.options, content.catalogue.language)).write_text(
            page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n"
        )
    manifest = build_manifest(release, contents[0].entries, list_files(draft.path))
    text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (draft.path / "manifest.json").write_text(
        text, encoding="utf-8", errors="replace", newline="\n"
    )


def _write_measurements(release: Release, directory: Path) -> None:
    """Write the plan and the observation, and a list of many measured tables."""
    directory.mkdir()
    observation = release.observation
    (directory / "plan.json").write_text(release.plan.to_json(), encoding="utf-8")
    with (directory / "observation.json").open("w", encoding="utf-8") as file:
        file.writelines(observation_text(release.outcome))
    if len(observation.measurements.blocks) > MOST_LISTED_TABLES:
        tables = list_measured_blocks(observation.measurements)
        write_rows(directory / "tables.csv", tables[0], (table.values() for table in tables))


def finishing_seconds(plan: Plan, options: Options, *, written: bool = True) -> float:
    """Estimate the CPU seconds of measuring, estimating and writing.

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


def list_measured_blocks(measurements: Measurements) -> list[dict[str, Any]]:
    """Return attributes, queries, scale and variance of every measured block."""
    tables = []
    for block in measurements.blocks:
        facts: dict[str, Any] = {
            "attributes": list(block.attributes),
            "queries": block.rows,
            "scale": str(block.scale),
            "variance": block_variance(measurements, block),
            "row_weights": any(factor.row_weights is not None for factor in block.factors),
            "measure": block.measure,
        }
        if block.ends:
            facts["ends"] = True
        if block.k_norm_group is not None:
            facts["k_norm_group"] = block.k_norm_group
        tables.append(facts)
    return tables


def _earlier_facts(plan: Plan) -> dict[str, Any]:
    """Return the facts of the earlier releases that count; empty without any."""
    if isinstance(plan, LinearPlan) and plan.earlier:
        return {"after": [release.facts() for release in plan.earlier]}
    return {}


def build_manifest(
    release: Release, entries: Sequence[TableEntry], files: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the manifest of a release as a JSON value."""
    plan = release.plan
    noise = noise_name(release.measurements)
    outcome = release.finding.facts()
    is_short = len(plan.workload.products) <= MOST_LISTED_TABLES
    return {
        "format": MANIFEST_FORMAT,
        **({} if release.private else {"warning": ENGLISH.say("not_private")}),
        "private": release.private,
        "written": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        **_privacy_facts(release),
        "workload": plan.workload.to_json()
        if is_short
        else "listed in measurements/plan.json under 'questions'",
        "plan": {
            "digest": release.plan_digest,
            "strategy": plan.strategy,
            "mechanism": noise,
            "mechanism_in_words": ENGLISH.say(noise),
            "details": plan.details_json(),
            **_earlier_facts(plan),
            **({"outcome": outcome} if outcome else {}),
        },
        **_measurement_facts(release, entries),
        "intervals": {
            "level": release.level,
            "half_width_in_noise_std": release.interval.multiplier,
            "half_width_added": release.interval.half_step
            + (0.0 if isinstance(release.options.round, Mapping) else _half_rounding(release)),
            "method": sentences.describe_intervals(release),
            **({"notice": cut} if (cut := sentences.describe_cuts(release)) else {}),
            "does_not_cover": sentences.list_uncovered_errors(release),
        },
        "post_processing": _post_processing_facts(release),
        **_answer_facts(release, entries),
        "options": release.options.to_json(),
        "files": [dict(entry) for entry in files],
    }


def check_manifest(manifest: Manifest, release: Release) -> None:
    """Raise if a manifest's facts differ from its plan and measurements.

    A manifest lists the digests of all other files and has none itself.

    Raises:
        InputError: a fact differs; the message names it.
    """
    privacy = release.privacy
    written = manifest.privacy
    cell_limit = privacy.max_per_cell
    written_limit = written.unit.max_per_cell
    facts = {
        "private": (manifest.private, release.private),
        "plan.digest": (manifest.plan.digest, release.plan_digest),
        "plan.strategy": (manifest.plan.strategy, release.plan.strategy),
        "privacy.parameters": (
            dict(written.parameters),
            sentences.describe_definition(privacy)[1],
        ),
        "privacy.neighbours": (written.neighbours, privacy.neighbours),
        "privacy.unit.column": (written.unit.column, privacy.unit_column),
        "privacy.unit.max_rows": (written.unit.max_rows, privacy.max_rows),
        "privacy.unit.max_per_cell": (
            written_limit and (written_limit.rows, written_limit.attributes),
            cell_limit and (cell_limit.rows, tuple(cell_limit.attributes)),
        ),
        "privacy.cost.within_budget": (
            written.cost.within_budget,
            covers(release.plan.privacy.budget, release.plan.cost()),
        ),
        "intervals.level": (manifest.intervals.level, release.level),
        "receipt.id": ((manifest.receipt or {}).get("id", ""), release.observation.receipt),
    }
    for name, (fact, fact_of_files) in facts.items():
        if fact != fact_of_files:
            raise _changed_manifest(name, fact, fact_of_files)


def check_table_facts(manifest: Manifest, release: Release) -> None:
    """Raise for a manifest that states other sizes or errors of tables.

    Raises:
        InputError: a fact differs; the message names it.
    """
    tables = manifest.answers.tables
    if isinstance(tables, str):
        return
    for position, (written, table) in enumerate(zip(tables, release.tables, strict=False)):
        place = f"answers.tables[{position}]"
        if (written.name, written.answers) != (table.name, table.cells):
            raise _changed_manifest(place, written.name, table.name)
        if not math.isclose(written.rmse, table.rmse, rel_tol=1e-6):
            raise _changed_manifest(f"{place}.rmse", written.rmse, table.rmse)


def _changed_manifest(name: str, fact: object, fact_of_files: object) -> InputError:
    """Return the error for a manifest that contradicts the files that it lists."""
    return refuse(
        f"{name} of a manifest",
        fact,
        f"{fact_of_files!r}, as in its plan and measurements",
        "The manifest was changed. Use an intact copy of the release.",
    )


def _privacy_facts(release: Release) -> dict[str, Any]:
    """Return the manifest's parts on the promise, the payment and the domain."""
    privacy = release.privacy
    domain = release.plan.domain
    cost = release.plan.cost()
    definition, parameters = sentences.describe_definition(privacy)
    kinds = {name: domain.kind(name) for name in domain.names}
    is_long = sum(kind.size * (1 + len(kind.levels)) for kind in kinds.values()) > MOST_LABELS
    domain_facts = domain.to_json()
    if is_long:
        domain_facts = {"attributes": "listed in measurements/plan.json under 'domain'"}
    receipt = None
    if release.observation.receipt or release.receipt:
        receipt = {**release.receipt, "id": release.observation.receipt}
    return {
        "privacy": {
            "definition": definition,
            "parameters": parameters,
            "promise": sentences.describe_promise(privacy),
            "risk": sentences.describe_risk(privacy, cost, _published_part(release)),
            "neighbours": privacy.neighbours,
            "unit": _unit_facts(release),
            "cost": {
                **cost.to_json(),
                "in_words": sentences.format_cost(cost),
                "within_budget": covers(release.plan.privacy.budget, cost),
            },
        },
        "receipt": receipt,
        "domain": {
            **domain_facts,
            "rules": [
                *(sentences.describe_attribute(name, kind) for name, kind in kinds.items()),
                *(
                    sentences.describe_measure(name, measure)
                    for name, measure in domain.measures.items()
                ),
            ],
            "rows_outside": sentences.describe_dropped_rows(release),
        },
    }


def _published_part(release: Release) -> str:
    """Return the part that the budget of a release covers (`published_part`)."""
    return sentences.published_part(release.plan, has_searches=bool(release.options.searches))


def _unit_facts(release: Release) -> dict[str, Any]:
    """Return the manifest's part on the privacy unit."""
    privacy = release.privacy
    facts: dict[str, Any] = {"column": privacy.unit_column, "max_rows": privacy.max_rows}
    if privacy.max_per_cell is not None:
        facts["max_per_cell"] = privacy.max_per_cell.to_json()
    if privacy.unit_reading != READ_AS_IT_IS:
        facts["reading"] = privacy.unit_reading.to_json()
    facts["in_words"] = sentences.describe_neighbours(privacy)
    second_table = sentences.describe_second_table(release)
    if second_table is not None:
        facts["second_table"] = second_table
    return facts


def _measurement_facts(release: Release, entries: Sequence[TableEntry]) -> dict[str, Any]:
    """Return the manifest's parts on the measurements and the promised errors."""
    measurements = release.measurements
    promise = release.plan.promise
    errors = [
        (entry.rmse, entry.promised_rmse) for entry in entries if entry.promised_rmse is not None
    ]
    as_promised = bool(errors or release.large_tables) and all(
        math.isclose(rmse, promised, rel_tol=1e-6) for rmse, promised in errors
    )
    measured_tables: Any = "listed in measurements/tables.csv"
    if len(measurements.blocks) <= MOST_LISTED_TABLES:
        measured_tables = list_measured_blocks(measurements)
    expected_error: dict[str, Any] = {"total_squared_error": None, "lower_bound": None}
    if promise is not None:
        expected_error["total_squared_error"] = promise.total_squared_error
        expected_error["lower_bound"] = promise.lower_bound
    expected_error |= {
        "times_the_least_possible": sentences.error_over_bound(release.plan),
        "meaning": "sum over all answers of weight squared times variance; errors of sums count "
        "in units of the most that one row can add",
        "error_bars_are_as_promised": as_promised,
    }
    if not release.finding.linear:
        expected_error["note"] = _ADAPTIVE_ERROR_NOTE
    return {
        "measurements": {
            "plan": "measurements/plan.json",
            "observation": "measurements/observation.json",
            "encoding": "values: one entry a measured table, little-endian whole numbers (int8 "
            "... int64) in base64, row by row; "
            "divide by grid",
            "grid": measurements.grid,
            "variance": "of a query of weight 1, in squared rows (or squared units of the "
            "measure); a row of weight w has 1/w^2 of it",
            "tables": measured_tables,
        },
        "expected_error": expected_error,
    }


def _half_rounding(release: Release) -> float:
    """Return the farthest that rounding moves an answer; 0 without rounding."""
    return float(rounding_reach(release.options, rounding_rule(release.options)[0]))


def _post_processing_facts(release: Release) -> dict[str, Any]:
    """Return the manifest's part on optional columns and on rounding."""
    options = release.options
    columns: dict[str, Any] = {}
    if options.non_negative:
        methods = {release.tables.projection(product) for product in release.workload}
        columns["answer_non_negative"] = {
            method: text for method, text in PROJECTIONS.items() if method in methods
        }
    if options.integer:
        source = "answer"
        if options.non_negative:
            source = "answer_non_negative where that is there, else answer"
        columns["answer_integer"] = _MEANINGS["answer_integer"] % source
    columns |= {
        name: _MEANINGS[name]
        for name in ("answer_nnls", "nnls_rmse", "answer_local", "answer_top_down")
        if name in options.occasional_columns
    }
    rounding = _describe_steps(options)
    if options.below is None:
        negative = ", and it may be negative"
    else:
        negative = ""
    note = f"answer is unbiased least squares; it is {rounding}{negative}."
    if options.has_biased_columns:
        note = " ".join(sentences.describe_optional_columns(release))
    elif not release.finding.linear:
        note = _ADAPTIVE_POST_PROCESSING % rounding
    value: dict[str, Any] = {"columns": columns or [], "note": note}
    if options.round is None and options.below is None:
        return value
    rules: dict[str, dict[str, Any]] = {}
    for key in rounded_quantities(options) or ("rows",):
        rules[key] = _rounding_facts(options, *rounding_rule(options, key))
    has_own_rules = bool(rounded_quantities(options))
    facts: dict[str, Any] = {"by_quantity": rules} if has_own_rules else rules["rows"]
    facts["note"] = (
        "post-processing, which protects nobody further; noise_std is of the noise alone; low and "
        "high hold both, and of an answer "
        "that is left out high alone is given: the true one is not above it, at the level of the "
        "intervals"
    )
    return {**value, "rounding": facts}


def _describe_steps(options: Options) -> str:
    """Return an English phrase with the multiples to which answers are rounded."""
    if isinstance(options.round, Mapping):
        steps = ", ".join(f"{step} ({key})" for key, step in options.round.items())
        return f"rounded to multiples of {steps}"
    if options.round is None:
        return "not rounded"
    return f"rounded to multiples of {options.round}"


def _rounding_facts(options: Options, step: Fraction, bound: Fraction | None) -> dict[str, Any]:
    """Return the facts about one rounding step and one bound."""
    facts: dict[str, Any] = {}
    if step:
        facts = {
            "multiples_of": str(step),
            "added_to_half_widths": float(rounding_reach(options, step)),
        }
        facts["standard_error_of_rounding"] = round(
            float(step) / math.sqrt(12), 3 - math.floor(math.log10(float(step)))
        )
    if bound is not None:
        facts["left_out_below"] = str(bound)
    return facts


def _statement_entry(release: Release, number: int, text: str) -> dict[str, Any]:
    """Return the manifest's entry of a SQL statement."""
    entry: dict[str, Any] = {"sql": text, "files": statement_path(number)}
    names = release.read_statement(text).without_interval
    if names:
        entry["without_interval"] = list(names)
    return entry


def _answer_facts(release: Release, entries: Sequence[TableEntry]) -> dict[str, Any]:
    """Return the manifest's part on answers, statistics, SQL, covariances."""
    options = release.options
    if len(release.tables) > MOST_TABLE_FILES:
        layout = (
            "one folder for every number of attributes, with parts of many tables each: query, "
            "attribute_1, value_1, ..., and the numbers"
        )
    else:
        layout = "one file a table: query, one key column an attribute, and the numbers"
    answers: dict[str, Any] = {
        "index": "tables.csv",
        "layout": layout,
        "formats": list(options.formats),
        "unit": "rows; a sum in the measure's own unit (the whole multiples that were measured, "
        "times its unit)",
    }
    row_limit = sentences.describe_row_limit(release)
    if row_limit:
        answers["of"] = row_limit
    answers["columns"] = _describe_answer_columns(release)
    large_tables = [
        sentences.describe_large_table(release, product) for product in release.large_tables
    ]
    if large_tables:
        answers["too_large_to_write"] = large_tables
    answers["number_of_tables"] = len(entries)
    answers["number_of_answers"] = sum(entry.answers for entry in entries)
    answers["tables"] = "listed in tables.csv"
    if len(entries) <= MOST_LISTED_TABLES:
        answers["tables"] = _list_tables(release, entries)
    statistics = [_statistic_facts(release, statistic) for statistic in release.statistics]
    statements = [
        _statement_entry(release, number, text) for number, text in enumerate(options.statements, 1)
    ]
    covariances = [{"query": key, "files": f"covariances/{key}"} for key in options.covariances]
    further_facts: dict[str, Any] = {"statistics": statistics, "statements": statements}
    if covariances:
        meaning = _MEANINGS["covariances"]
        further_facts["covariances"] = {"tables": covariances, "meaning": meaning}
    return {"answers": answers, **{name: value for name, value in further_facts.items() if value}}


def _describe_answer_columns(release: Release) -> dict[str, str]:
    """Return the meaning of each column of numbers of a table file."""
    level = ENGLISH.format_percent(release.level)
    columns = dict(_ADAPTIVE_COLUMNS)
    if release.finding.linear:
        columns = dict(_COLUMNS)
    columns["low"] = f"lower end of the {level} interval"
    columns["high"] = f"upper end of the {level} interval"
    if release.options.survey:
        columns |= SURVEY_COLUMNS
    return columns


def _list_tables(release: Release, entries: Sequence[TableEntry]) -> list[dict[str, Any]]:
    """Return the facts of each table for the manifest."""
    tables = []
    for product, entry in zip(release.workload.products, entries, strict=False):
        key_columns = name_key_columns(product.keys, NUMBER_COLUMNS)
        facts = {**asdict(entry), "key_columns": key_columns}
        if release.options.non_negative:
            facts["answer_non_negative"] = release.tables.projection(product)
        tables.append(facts)
    return tables


def _statistic_facts(release: Release, table: StatisticTable) -> dict[str, Any]:
    """Return the manifest's entry of a statistic."""
    statistic = table.statistic
    if statistic.kind == "means":
        meaning = f"{ENGLISH.say(table.meaning_key)} {_MEAN_INTERVALS}"
    else:
        meaning = _MEANINGS[statistic.kind]
    if statistic.kind in {"quantiles", "cdf"}:
        meaning = meaning % ("rows" if statistic.weighted_by is None else "weights")
    return {
        "query": table.id,
        "name": table.name,
        "asked": statistic.to_json(),
        "tables": [product.name for product in release.plan.workload.tables_of(statistic)],
        "files": statistic_path(release, table),
        "key_columns": table.key_columns(),
        "values": table.cells,
        "meaning": meaning,
        "columns": describe_columns(table),
    }
