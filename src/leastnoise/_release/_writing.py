"""Write the files of a release: answers, their index, the manifest.

Answers in batches of bounded size (Parquet by Arrow, CSV by DuckDB).
"""

import json
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, astuple, fields
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._charts import drawing
from leastnoise._domain import READ_AS_IT_IS
from leastnoise._error import block_variance
from leastnoise._estimation import REPETITIONS
from leastnoise._frames import Columns, UniqueNames, key_columns, label_array, to_frame
from leastnoise._plan import Plan, versions
from leastnoise._release import _sentences as words
from leastnoise._release._directory import Draft, file_name, inert_text, list_files, write_rows
from leastnoise._release._formats import Messages, Workbook
from leastnoise._release._manifest import FORMAT, markdown_text
from leastnoise._release._options import Options, exact_rule
from leastnoise._release._quantities import column_meanings, quantity_of
from leastnoise._release._records import Records
from leastnoise._release._release import Release, TableEntry, statement_file
from leastnoise._release._report import (
    MOST_CELLS,
    MOST_LARGEST,
    MOST_OF_A_TABLE,
    MOST_PICTURES,
    report,
    views,
)
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import NUMBERS, ResultTable, Table
from leastnoise._release._texts import ENGLISH
from leastnoise._release._texts import texts as catalogue
from leastnoise._threads import BoundedThreadPool
from leastnoise._trusted.accounting import covers
from leastnoise._trusted.check import Exact, refuse
from leastnoise._trusted.check.arrays import Array
from leastnoise._trusted.linop import whole_bytes_text
from leastnoise._trusted.measurements import Measurements, measurements_value
from leastnoise._workload import level_names

MOST_TABLE_FILES = 200
BATCH_CELLS = 1_000_000
# DuckDB would draw its own on the standard output stream of an interactive program
_QUIET = "SET enable_progress_bar = false"
_ROW_GROUP = 2**18
COLUMNS_KEY = "leastnoise:columns"
"""The key of the metadata of Parquet files with the quantity and unit of each column, as JSON."""

WRITERS = {"xlsx": Workbook, "sdmx": Messages}
"""Writers of the formats that hold all tables together; they take the parts one by one."""
MOST_LISTED = 200
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
_DECIDED_COLUMNS = {
    "answer": "the estimate, consistent across tables; biased where the data are not as even as "
    "the choices suppose",
    "noise_std": "its standard error from the noise, given the outcome of the choices",
    "approximation_std": "the rest of its error, estimated from what was paid for; empty where "
    "nothing tells",
}
_DECIDED_POST_PROCESSING = "answer is the mechanism's estimate; it is %s. Everything after the measurements is post-processing and cost nothing."  # noqa: E501
_NOT_PROMISED = "which queries were measured was decided on the way, so the error depends on the data, and it was not promised beforehand"
# CPU seconds, measured on one core of 2026
_START, _PICTURE, _FILE, _ROW, _ANSWER, _NUMBER = 1.3, 0.08, 0.02, 7e-5, 3e-6, 3e-7
_OF_MEANS = (
    "Intervals are Fieller's, each by itself; std_error is by the delta method at the estimates, "
    "empty where the divisor is not clear of 0; the sum and the divisor are those of the tables."
)
_MEANINGS = {
    "quantiles": "the least value with at least a share of the rows at or below it; only its cell "
    "is known, so low and high are ends of "
    "cells; each interval by itself. The first and the last cell also count values beyond the "
    "bounds: may_be_below is 1 where the interval reaches to the first, so that the quantile may "
    "lie below low, and may_be_above is 1 where it reaches to the last, so that it may lie above "
    "high",
    "cdf": "share of the rows up to the end of every cell (up_to); low to high is a band that "
    "holds for all cells of a group at once. The first and the last cell also count values beyond "
    "the bounds: the last share is that of all rows, some of which may lie above the last up_to",
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
}


@contextmanager
def _formats(names: Sequence[str]) -> Iterator[tuple[bool, Any]]:
    """Yield whether Parquet is written, and the database that writes CSV.

    None without CSV; creating a database takes longer than writing a small table.
    """
    opened: Any = nullcontext()
    if "csv" in names:
        import duckdb

        opened = duckdb.connect(":memory:")
    with opened as database:
        yield "parquet" in names, database


def write_answers(
    release: Release, directory: Path
) -> Generator[tuple[Table, TableEntry], None, None]:
    """Write all answers and the index ``tables.csv``.

    Each table is estimated once, and yielded while a thread writes it.

    Guarantees: memory for one table and one more for each core, or so many batches of about a
        million answers where tables share files.
    """
    (directory / "answers").mkdir()
    entries = []
    others = [
        WRITERS[name](release, directory) for name in release.options.formats if name in WRITERS
    ]
    with _formats(release.options.formats) as formats, BoundedThreadPool() as beside:
        for table, stem in (_batched if len(release.tables) > MOST_TABLE_FILES else _one_by_one)(
            release, directory, formats, beside
        ):
            entries.append(_entry(release, table, stem))
            for writer in others:
                writer.add(table, stem)
            yield table, entries[-1]
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
    write_rows(
        directory / "tables.csv", [each.name for each in fields(TableEntry)], map(astuple, entries)
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
    """Write the requested covariances of tables.

    One file for each table and format, each pair of answers once.
    """
    if not release.options.covariances:
        return
    (directory / "covariances").mkdir()
    with _formats(
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
            _copy(columns, {"query": [key]}, directory / f"covariances/{key}", formats)


def _entry(release: Release, table: Table, stem: str) -> TableEntry:
    product = table.product
    unit = None if product.measure is None else product.domain.measures[product.measure].unit
    position = int(table.id[1:]) - 1
    promised = release.plan.promise.tables if release.plan.promise is not None else ()
    # In the place of a table too large to write is one of its cells, for which nothing was
    # promised.
    is_promised = position < len(promised) and promised[position].queries == table.cells
    return TableEntry(
        query=table.id,
        name=table.name,
        files=stem,
        attributes=product.attributes,
        answers=table.cells,
        measure=product.measure,
        quantity=quantity_of(product),
        unit="unit" if product.of_units else str(unit) if product.of_values else "row",
        weight=str(product.weight),
        rmse=table.rmse,
        largest_std=float(table.noise_std.max(initial=0.0)),
        promised_rmse=promised[position].rmse * float(unit or 1) if is_promised else None,
        leaves_out=words.left_out_of(release.plan, product),
        of=words.of_words(release),
    )


def statistic_file(release: Release, made: StatisticTable) -> str:
    """Return the path of a statistic's files, without ending.

    Below the release's directory.
    """
    return f"answers/{file_name(made.id, made.name, len(release.statistics))}"


def _one_by_one(
    release: Release, directory: Path, formats: tuple[bool, Any], beside: BoundedThreadPool
) -> Iterator[tuple[Table, str]]:
    """Write one file for each table and format.

    If some table asks for a level, Parquet has a column of levels.
    """
    leveled = any(product.keys != product.attributes for product in release.workload)
    for table in release.tables:
        stem, product = (
            f"answers/{file_name(table.id, table.name, len(release.tables))}",
            table.product,
        )
        pairs = zip(product.keys, product.attributes, strict=True)
        levels = [
            key.removeprefix(f"{name}:")
            for key, name in pairs
            if level_names(product.domain.kind(name))
        ]
        beside.do(
            _write_part,
            table,
            directory / stem,
            formats,
            (" x ".join(levels) or "total") if leveled else None,
        )
        yield table, stem


def _write_part(
    part: ResultTable, stem: Path, formats: tuple[bool, Any], level: str | None = None
) -> None:
    """Write a table or statistic, one file for each format.

    Columns query, one for each key, and the numbers.
    """
    texts: dict[str, Sequence[str]] = {"query": [part.id]}
    columns: dict[str, Array] = {"query": np.broadcast_to(np.int32(0), part.cells)}
    for axis, (column, labels) in enumerate(zip(part.key_columns(), part.labels, strict=True)):
        array = label_array(labels)
        if array.dtype == object:
            texts[column], array = [*map(str, labels)], np.arange(len(labels), dtype=np.int32)
        columns[column] = np.broadcast_to(
            np.expand_dims(array, [*range(1, part.low.ndim - axis)]), part.low.shape
        )
    _copy({**columns, **part.numbers()}, texts, stem, formats, level, column_meanings(part))


def _batched(
    release: Release, directory: Path, formats: tuple[bool, Any], beside: BoundedThreadPool
) -> Iterator[tuple[Table, str]]:
    """Write tables with equally many attributes into one folder.

    As parts of about a million answers.
    """
    batches: dict[int, list[Table]] = {}
    parts: dict[int, int] = {}

    def write(ways: int) -> None:
        beside.do(
            _write_batch, batches.pop(ways), directory / stem(ways), release.options.some, formats
        )
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


def _write_batch(
    tables: Sequence[Table], stem: Path, some: Sequence[str], formats: tuple[bool, Any]
) -> None:
    """Write several tables with equally many attributes in long form.

    Columns query, attribute_1, value_1, ..., and the numbers.
    """
    texts: dict[str, list[str]] = {}
    sizes = [table.cells for table in tables]
    shapes = {table.answer.shape: table.indices() for table in tables}

    def first_positions(column: str, labels: Iterable[tuple[object, ...]]) -> Array:
        """Return for each table the position of its first label in a column.

        Equal labels are stored once.
        """
        distinct: dict[object, int] = {}
        known = texts.setdefault(column, [])
        for each in labels:
            if each not in distinct:
                distinct[each] = len(known)
                known.extend(map(str, each))
        return np.repeat(np.array([distinct[each] for each in labels], np.int32), sizes)

    columns = {"query": first_positions("query", [(table.id,) for table in tables])}
    for axis in range(len(tables[0].labels)):
        attribute, value = f"attribute_{axis + 1}", f"value_{axis + 1}"
        columns[attribute] = first_positions(
            attribute, [(table.product.keys[axis],) for table in tables]
        )
        within = np.concatenate([shapes[table.answer.shape][axis] for table in tables])
        columns[value] = first_positions(value, [table.labels[axis] for table in tables]) + within
    numbers = [table.numbers() for table in tables]
    for name in NUMBERS:
        # Whole counts and sums in decimals share a column; not every table has those that were
        # asked for.
        if name in some or any(name in each for each in numbers):
            values = [
                each.get(name, np.full(table.cells, np.nan))
                for each, table in zip(numbers, tables, strict=True)
            ]
            columns[name] = np.concatenate(values).astype(np.float64, copy=False)
    _copy(columns, texts, stem, formats)


def _copy(
    columns: Mapping[str, Array],
    texts: Mapping[str, Sequence[str]],
    stem: Path,
    formats: tuple[bool, Any],
    level: str | None = None,
    meanings: Mapping[str, str] | None = None,
) -> None:
    """Write columns to files; a column in ``texts`` holds positions there. NaN is left empty.

    Parquet has the level too, and in its metadata the quantity and unit of each column.
    """
    import pyarrow as pa

    (parquet, csv), given = formats, UniqueNames(set())
    names = {name: given.unique(name.encode("utf-8", "replace").decode()) for name in columns}
    if csv is not None:
        inert = {name: [inert_text(text) for text in known] for name, known in texts.items()}
        with csv.cursor() as connection:  # of its own, as parts are written on several threads
            connection.execute(_QUIET)
            connection.register(
                "answers",
                _batches(columns, inert, map(inert_text, names.values()), pa.LargeStringArray.take),
            )
            path = str(stem.with_name(f"{stem.name}.csv")).replace("'", "''")
            connection.execute(f"COPY (SELECT * FROM answers) TO '{path}' (FORMAT csv, HEADER)")  # noqa: S608 - quoted
    if parquet:
        from pyarrow.parquet import ParquetWriter

        if level is not None:  # an attribute may be called so, but none has no name
            columns = {"query": columns["query"], "": columns["query"], **columns}
            texts, names = (
                {**texts, "": [level]},
                {"query": names["query"], "": given.unique("level"), **names},
            )
        repeated = [
            names[name]
            for name, array in columns.items()
            if name in texts or name == "noise_std" or array.dtype.kind != "f"
        ]
        # Of the other columns the least and the largest value of a row group help no reader, and
        # take a quarter of the time.
        facts = {
            "use_dictionary": repeated,
            "write_statistics": [names["query"]],
            "store_schema": False,
        }
        batches = _batches(columns, texts, names.values(), _labelled)
        target = stem.with_name(f"{stem.name}.parquet")
        with ParquetWriter(target, batches.schema, compression="zstd", **facts) as writer:
            writer.add_key_value_metadata({COLUMNS_KEY: json.dumps(meanings or {})})
            for batch in batches:
                writer.write_batch(batch)


def _batches(
    columns: Mapping[str, Array],
    texts: Mapping[str, Sequence[str]],
    names: Iterable[str],
    labelled: Callable[..., Any],
) -> Any:
    """Return columns as a reader of Arrow batches, created on demand.

    One row group each.
    """
    import pyarrow as pa

    known, named = {name: _strings(each) for name, each in texts.items()}, [*names]

    def batch(start: int) -> Any:
        parts = {name: array.flat[start : start + _ROW_GROUP] for name, array in columns.items()}
        arrays = [
            labelled(known[name], _numbers(part)) if name in known else _numbers(part)
            for name, part in parts.items()
        ]
        return pa.record_batch(arrays, names=named)

    first, *starts = range(0, columns["query"].size, _ROW_GROUP)
    begun = batch(first)
    return pa.RecordBatchReader.from_batches(begun.schema, chain([begun], map(batch, starts)))


def _labelled(texts: Any, codes: Any) -> Any:
    """Return a dictionary-encoded column, with the texts of this batch alone."""
    import pyarrow as pa

    numbers = np.from_dlpack(codes)
    first, last = int(numbers.min()), int(numbers.max())
    return pa.DictionaryArray.from_arrays(
        _numbers(numbers - first), texts.slice(first, last - first + 1)
    )


def _numbers(values: Array) -> Any:
    """Return an Arrow array with NaN as null.

    Made from buffers, because ``pyarrow.array`` imports pandas.
    """
    import pyarrow as pa

    gone = np.isnan(values)
    known = pa.py_buffer(np.packbits(~gone, bitorder="little")) if gone.any() else None
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype),
        len(values),
        [known, pa.py_buffer(np.ascontiguousarray(values))],
    )


def _strings(texts: Sequence[str]) -> Any:
    """Return texts as an Arrow array, without what UTF-8 cannot hold.

    After the payment nothing may fail because of a label.
    """
    import pyarrow as pa

    coded = [text.encode("utf-8", "replace") for text in texts]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int64)
    return pa.Array.from_buffers(
        pa.large_string(), len(coded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(coded))]
    )


def write_rounded(release: Release, directory: Path, to: Exact, below: Exact | None = None) -> None:
    """Write every table, rounded, as CSV, with a README.

    The README says what rounding does to error bars.
    """
    dataset = release.receipt.get("dataset")
    title = f"# {markdown_text(dataset)}: rounded tables" if dataset else "# Rounded tables"
    lines = [title, ""]
    if not release.private:
        lines += ["**NOT PRIVATE**: the noise of this release came from a seed.", ""]
    if cut := words.cut_words(release):
        lines += [markdown_text(cut), ""]
    for table in release.tables:
        rule = table.rounded(to, below)
        name = f"{file_name(table.id, table.name, len(release.tables))}.csv"
        write_columns(rule.columns(), directory / name)
        lines.append(f"- `{name}`: {rule.words()}")
    (directory / "README.md").write_text(
        "\n".join(lines) + "\n", encoding="utf-8", errors="replace"
    )


def check_records_file(path: Path) -> None:
    """Raise for a file of records with an unknown ending.

    Before anything is computed.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise refuse("the file of records", path.name, "a name that ends in .csv or .parquet")


def write_records(made: Records, path: Path) -> None:
    """Write records as CSV or Parquet, by the ending of the file's name."""
    check_records_file(path)
    write_columns(made.columns(), path)


def fill_draft(release: Release, draft: Draft) -> None:
    """Write the files of a release into a draft, which is then published."""
    _write_measurements(release, draft.path / "measurements")
    with closing(
        write_answers(release, draft.path)
    ) as written:  # whatever happens, no thread writes into a draft that is removed
        seen = views(release, written, catalogue(release.options.language))
    write_covariances(release, draft.path)
    page = report(release, seen)
    (draft.path / "report.html").write_text(
        page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n"
    )
    value = manifest(release, seen.entries, list_files(draft.path))
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (draft.path / "manifest.json").write_text(
        text, encoding="utf-8", errors="replace", newline="\n"
    )


def _write_measurements(release: Release, directory: Path) -> None:
    """Write the plan and the observation, and of many measured tables their list."""
    directory.mkdir()
    observation = release.observation
    (directory / "plan.json").write_text(release.plan.to_json(), encoding="utf-8")
    head: dict[str, Any] = {
        "plan_digest": release.plan_digest,
        "receipt": observation.receipt,
        "private": observation.private,
    }
    if release.plan.measurements is None:  # what was decided on the way
        head |= {
            "measurements": measurements_value(observation.measurements),
            "outcome": release.finding.facts(),
        }
    with (directory / "observation.json").open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "values": [')
        for number, values in enumerate(observation.values):
            file.write((", " if number else "") + whole_bytes_text(values))
        file.write("]}")
    if len(observation.measurements.blocks) > MOST_LISTED:
        tables = measured_tables(observation.measurements)
        write_rows(directory / "tables.csv", tables[0], (table.values() for table in tables))


def finishing_seconds(plan: Plan, options: Options, *, written: bool = True) -> float:
    """Estimate the CPU seconds of measuring, estimating and writing.

    0 for a plan whose measurements depend on the data.
    """
    if plan.measurements is None:
        return 0.0
    seconds = _NUMBER * sum(block.rows for block in plan.measurements.blocks)
    if not written:
        return seconds
    sizes = [product.rows for product in plan.workload.products]
    rows = min(sum(size if size <= MOST_OF_A_TABLE else MOST_LARGEST for size in sizes), MOST_CELLS)
    files = min(len(sizes), MOST_TABLE_FILES) * len(options.formats) / 2
    pictures = min(len(sizes), MOST_PICTURES) if drawing() else 0
    return (
        seconds + _START + _PICTURE * pictures + _FILE * files + _ROW * rows + _ANSWER * sum(sizes)
    )


def measured_tables(measurements: Measurements) -> list[dict[str, Any]]:
    """Return the facts about every measured block.

    Attributes, number of queries, scale and variance.
    """
    return [
        {
            "attributes": list(block.attributes),
            "queries": block.rows,
            "scale": str(block.scale),
            "variance": block_variance(measurements, block),
            "row_weights": any(factor.row_weights is not None for factor in block.factors),
            "measure": block.measure,
            **({"ends": True} if block.ends else {}),
        }
        for block in measurements.blocks
    ]


def manifest(
    release: Release, entries: Sequence[TableEntry], files: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the manifest of a release as a JSON value."""
    plan, noise, outcome = release.plan, release.measurements.noise.value, release.finding.facts()
    few = len(plan.workload.products) <= MOST_LISTED
    return {
        "format": FORMAT,
        **({} if release.private else {"warning": ENGLISH.say("not_private")}),
        "private": release.private,
        "written": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        **_protected(release),
        "workload": plan.workload.to_json()
        if few
        else "listed in measurements/plan.json under 'questions'",
        "plan": {
            "digest": release.plan_digest,
            "strategy": plan.strategy,
            "mechanism": noise,
            "mechanism_in_words": ENGLISH.say(noise),
            "details": plan.details.to_json(),
            **({"outcome": outcome} if outcome else {}),
        },
        **_measured(release, entries),
        "intervals": {
            "level": release.level,
            "half_width_in_noise_std": release.interval.multiplier,
            "half_width_added": release.interval.half_step
            + float(exact_rule(release.options)[0]) / 2,
            "method": words.interval_words(release),
            **({"notice": cut} if (cut := words.cut_words(release)) else {}),
            "does_not_cover": words.limits(release),
        },
        "post_processing": _post_processing(release),
        **_answers(release, entries),
        "options": release.options.to_json(),
        "files": [dict(entry) for entry in files],
    }


def _protected(release: Release) -> dict[str, Any]:
    """Return the manifest's parts on the promise, the payment and the domain."""
    privacy, domain, spent, second = (
        release.privacy,
        release.plan.domain,
        release.plan.cost(),
        words.joined_words(release),
    )
    name, parameters = words.definition(privacy)
    kinds = {name: domain.kind(name) for name in domain.names}
    long = sum(kind.size * (1 + len(kind.levels)) for kind in kinds.values()) > MOST_LABELS
    return {
        "privacy": {
            "definition": name,
            "parameters": parameters,
            "promise": words.promise(privacy),
            "neighbours": privacy.neighbours,
            "unit": {
                "column": privacy.unit_column,
                "max_rows": privacy.max_rows,
                **(
                    {}
                    if privacy.max_per_cell is None
                    else {"max_per_cell": privacy.max_per_cell.to_json()}
                ),
                **(
                    {}
                    if privacy.unit_reading == READ_AS_IT_IS
                    else {"reading": privacy.unit_reading.to_json()}
                ),
                "in_words": words.change(privacy),
                **({} if second is None else {"second_table": second}),
            },
            "cost": {
                **spent.to_json(),
                "in_words": words.cost_words(spent),
                "within_budget": covers(release.plan.privacy.budget, spent),
            },
        },
        "receipt": {**release.receipt, "id": release.observation.receipt}
        if release.observation.receipt or release.receipt
        else None,
        "domain": {
            **(
                {"attributes": "listed in measurements/plan.json under 'domain'"}
                if long
                else domain.to_json()
            ),
            "rules": [
                *(words.domain_words(name, kind) for name, kind in kinds.items()),
                *(words.measure_words(name, measure) for name, measure in domain.measures.items()),
            ],
            "rows_outside": words.dropped_words(release),
        },
    }


def _measured(release: Release, entries: Sequence[TableEntry]) -> dict[str, Any]:
    """Return the manifest's parts on the measurements and the promised errors."""
    measurements, promise = release.measurements, release.plan.promise
    known = [
        (entry.rmse, entry.promised_rmse) for entry in entries if entry.promised_rmse is not None
    ]
    as_promised = bool(known or release.large) and all(
        math.isclose(rmse, promised, rel_tol=1e-6) for rmse, promised in known
    )
    few = len(measurements.blocks) <= MOST_LISTED
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
            "tables": measured_tables(measurements) if few else "listed in measurements/tables.csv",
        },
        "expected_error": {
            "total_squared_error": None if promise is None else promise.total_squared_error,
            "lower_bound": None if promise is None else promise.lower_bound,
            "times_the_least_possible": words.goodness(release.plan),
            "meaning": "sum over all answers of weight squared times variance; errors of sums "
            "count in units of the most that one row can "
            "add",
            "error_bars_are_as_promised": as_promised,
            **({} if release.finding.linear else {"note": _NOT_PROMISED}),
        },
    }


def _post_processing(release: Release) -> dict[str, Any]:
    """Return the manifest's part on optional columns and on rounding."""
    options, (step, least) = release.options, exact_rule(release.options)
    used = (
        {release.tables.projection(product) for product in release.workload}
        if options.non_negative
        else ()
    )
    columns: dict[str, Any] = {}
    if options.non_negative:
        columns["answer_non_negative"] = {
            method: text for method, text in PROJECTIONS.items() if method in used
        }
    if options.integer:
        source = (
            "answer_non_negative where that is there, else answer"
            if options.non_negative
            else "answer"
        )
        columns["answer_integer"] = _MEANINGS["answer_integer"] % source
    columns |= {
        name: _MEANINGS[name]
        for name in ("answer_nnls", "nnls_rmse", "answer_local")
        if name in options.some
    }
    made = f"rounded to multiples of {step}" if step else "not rounded"
    note = f"answer is unbiased least squares; it is {made}{', and it may be negative' * (least is None)}."
    if options.biased:
        note = " ".join(words.post_processing_words(release))
    elif not release.finding.linear:
        note = _DECIDED_POST_PROCESSING % made
    value: dict[str, Any] = {"columns": columns or [], "note": note}
    if not options.rounds:
        return value
    facts: dict[str, Any] = {}
    if step:
        facts = {"multiples_of": str(step), "added_to_half_widths": float(step) / 2}
        facts["standard_error_of_rounding"] = round(
            float(step) / math.sqrt(12), 3 - math.floor(math.log10(float(step)))
        )
    if least is not None:
        facts["left_out_below"] = str(least)
    facts["note"] = (
        "post-processing, which protects nobody further; noise_std is of the noise alone; low and "
        "high hold both, and of an answer "
        "that is left out high alone is given: the true one is not above it, at the level of the "
        "intervals"
    )
    return {**value, "rounding": facts}


def _statement_entry(release: Release, number: int, text: str) -> dict[str, Any]:
    """Return the manifest's entry of a SQL statement."""
    entry: dict[str, Any] = {"sql": text, "files": statement_file(number)}
    names = release.read_statement(text).without_interval
    if names:
        entry["without_interval"] = list(names)
    return entry


def _answers(release: Release, entries: Sequence[TableEntry]) -> dict[str, Any]:
    """Return the manifest's part on answers, statistics, SQL, covariances."""
    options, of, plan = release.options, words.of_words(release), release.plan
    layout = (
        "one folder for every number of attributes, with parts of many tables each: query, "
        "attribute_1, value_1, ..., and the numbers"
        if len(release.tables) > MOST_TABLE_FILES
        else "one file a table: query, one key column an attribute, and the numbers"
    )
    tables = []
    for product, entry in zip(release.workload.products[:MOST_LISTED], entries, strict=False):
        biased = (
            {"answer_non_negative": release.tables.projection(product)}
            if options.non_negative
            else {}
        )
        tables.append(
            {**asdict(entry), "key_columns": key_columns(product.keys, NUMBERS), **biased}
        )
    answers = {
        "index": "tables.csv",
        "layout": layout,
        "formats": list(options.formats),
        "unit": "rows; a sum in the measure's own unit (the whole multiples that were measured, "
        "times its unit)",
        **({"of": of} if of else {}),
        "columns": {
            **(_COLUMNS if release.finding.linear else _DECIDED_COLUMNS),
            "low": f"lower end of the {ENGLISH.percent(release.level)} interval",
            "high": f"upper end of the {ENGLISH.percent(release.level)} interval",
        },
        **(
            {
                "too_large_to_write": [
                    words.large_words(release, product) for product in release.large
                ]
            }
            if release.large
            else {}
        ),
        "number_of_tables": len(entries),
        "number_of_answers": sum(entry.answers for entry in entries),
        "tables": tables if len(entries) <= MOST_LISTED else "listed in tables.csv",
    }
    statistics = [
        {
            "query": made.id,
            "name": made.name,
            "asked": made.statistic.to_json(),
            "tables": [product.name for product in plan.workload.tables_of(made.statistic)],
            "files": statistic_file(release, made),
            "key_columns": made.key_columns(),
            "values": made.cells,
            "meaning": f"{ENGLISH.say(made.meaning_key)} {_OF_MEANS}"
            if made.statistic.form.of_measure
            else _MEANINGS[made.statistic.kind],
            "columns": column_meanings(made),
        }
        for made in release.statistics
    ]
    statements = [
        _statement_entry(release, number, text) for number, text in enumerate(options.statements, 1)
    ]
    covariances = [{"query": key, "files": f"covariances/{key}"} for key in options.covariances]
    beside: dict[str, Any] = {"statistics": statistics, "statements": statements}
    beside |= (
        {"covariances": {"tables": covariances, "meaning": _MEANINGS["covariances"]}}
        if covariances
        else {}
    )
    return {"answers": answers, **{name: value for name, value in beside.items() if value}}
