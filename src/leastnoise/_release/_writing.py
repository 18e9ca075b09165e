"""Write the files of a release: answers in batches of bounded size (Parquet by Arrow, CSV by DuckDB), their index, and the manifest."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._accounting import covers
from leastnoise._accuracy import block_variance
from leastnoise._charts import drawing
from leastnoise._check import Exact, refuse
from leastnoise._check.arrays import Array
from leastnoise._estimate import REPETITIONS
from leastnoise._frames import Columns, Names, key_columns
from leastnoise._linop import whole_bytes_text
from leastnoise._measurements import Measurements, measurements_value
from leastnoise._plan import Plan, versions
from leastnoise._release import _words as words
from leastnoise._release._directory import Draft, file_name, inert_text, list_files, write_rows
from leastnoise._release._formats import Messages, Workbook
from leastnoise._release._options import Options, exact_rule
from leastnoise._release._records import Records
from leastnoise._release._release import Release, TableEntry, statement_file
from leastnoise._release._report import MOST_CELLS, MOST_LARGEST, MOST_OF_A_TABLE, MOST_PICTURES, report, views
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import NUMBERS, Table
from leastnoise._release._texts import ENGLISH
from leastnoise._release._texts import texts as catalogue
from leastnoise._workload import Product, level_names

MOST_TABLE_FILES = 200
BATCH_CELLS = 1_000_000
_QUIET = "SET enable_progress_bar = false"  # DuckDB would draw its own on the standard output stream of an interactive program

WRITERS = {"xlsx": Workbook, "sdmx": Messages}
"""Writers of the formats that hold all tables together; they take the parts one by one."""
FORMAT = 1
MOST_LISTED = 200
MOST_LABELS = 100_000  # of all attributes and their levels
PROJECTIONS = {
    "agreed": "from the total down, the nearest groups within each group (least squares) that are at least 0 and add up to it; all tables "
    "are sums of the one that has the cells of all others, so they agree",
    "marginal": "the nearest cells (least squares) that are at least 0 and keep the estimated total, if that is positive",
    "prefix": "the nearest answers (least squares) that do not fall along the prefix sums and are at least 0",
    "clip": "negative answers are replaced by 0",
    "none": "not made, because the true answers may be negative",
}
_COLUMNS = {
    "answer": "the unbiased least squares estimate, consistent across tables",
    "noise_std": "its standard error from the noise, as the plan promised it",
}
_DECIDED_COLUMNS = {
    "answer": "the estimate, consistent across tables; biased where the data are not as even as the choices suppose",
    "noise_std": "its standard error from the noise, given the outcome of the choices",
    "approximation_std": "the rest of its error, estimated from what was paid for; empty where nothing tells",
}
_DECIDED_POST_PROCESSING = (
    "answer is the mechanism's estimate; it is %s. Everything after the measurements is post-processing and cost nothing."
)
_NOT_PROMISED = "which queries were measured was decided on the way, so the error depends on the data, and it was not promised beforehand"
# CPU seconds, measured on one core of 2026
_START, _PICTURE, _FILE, _ROW, _ANSWER, _NUMBER = 1.3, 0.08, 0.02, 7e-5, 3e-6, 3e-7
_MEANINGS = {
    "means": "sum over count of values, group by group: rows without a value are in neither, and values beyond the public bounds are "
    "counted at the nearest bound; with Fieller's intervals, each by itself; std_error by the delta method at the estimates, empty where "
    "the count is not clear of 0; sum and count as in the tables",
    "quantiles": "the least value with at least a share of the rows at or below it; only its cell is known, so low and high are ends of "
    "cells; each interval by itself",
    "cdf": "share of the rows up to the end of every cell (up_to); low to high is a band that holds for all cells of a group at once",
    "covariances": "of the noise in two answers of one table, numbered from 1 in row-major order, each pair once; squared rows or "
    "amounts. The variance of a sum of answers is the sum of their covariances, both orders counted.",
    "answer_integer": "%s, in whole rows or multiples of the measure's unit: tables of cells by largest remainders, so that they keep "
    "their rounded total, others to the nearest; where levels are asked for and one table has the cells of all others, from the total "
    "down instead, so that all tables agree",
    "answer_nnls": "non-negative least squares over the joint table of all measurements, its total fixed to its own estimate (at least 0); "
    "it agrees across tables",
    "nnls_rmse": f"root mean square error of answer_nnls in {REPETITIONS} simulated releases in which the estimate itself was the truth; "
    "it depends on the data and is no promise of the plan",
    "answer_local": "the nearest tables, in the likelihood of the noise, that have no cell below 0 and agree with each other, the total "
    "fixed to its own estimate (at least 0); no errors are known for them",
}


@contextmanager
def _writer() -> Iterator[Callable[[Columns, Path], None]]:
    """Yield a function that writes columns as CSV or Parquet, by the ending of the file's name; NaN and None are left empty.

    After the payment nothing may fail for a label: what UTF-8 cannot hold is replaced. In CSV texts are made inert.
    """
    import duckdb

    def write(columns: Columns, path: Path) -> None:
        is_csv = path.suffix == ".csv"
        spelling, given = (lambda text: inert_text(_utf8(text))) if is_csv else _utf8, Names(set())
        spelled = {given.give(spelling(name)): _spelled(values, spelling) for name, values in columns.items()}
        database.register("answers", spelled)
        form = "FORMAT csv, HEADER" if is_csv else "FORMAT parquet, COMPRESSION zstd"
        target = str(path).replace("'", "''")
        try:
            database.execute(f"COPY answers TO '{target}' ({form})")
        except duckdb.Error as error:
            raise OSError(str(error)) from None

    with duckdb.connect() as database:
        database.execute(_QUIET)
        yield write


def _utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _spelled(values: Array, spelling: Callable[[str], str]) -> Array:
    """Spell the texts of a column, each distinct one once."""
    if values.dtype != object:
        return values
    texts = (text for text in {*values.tolist()} if isinstance(text, str))
    changed = {text: spelled for text in texts if (spelled := spelling(text)) != text}
    return np.array([changed.get(value, value) for value in values.tolist()], dtype=object) if changed else values


def write_answers(release: Release, directory: Path) -> Iterator[tuple[Table, TableEntry]]:
    """Write all answers and the index ``tables.csv``; each table is estimated once, and yielded when it is in its file or waits for others.

    Guarantees: memory for one table, or for about a million answers of each number of attributes where tables share files.
    """
    (directory / "answers").mkdir()
    entries = []
    others = [WRITERS[name](release, directory) for name in release.options.formats if name in WRITERS]
    formats = [name for name in release.options.formats if name not in WRITERS]
    stems = _stems(release)
    last_of = {stem: position for position, stem in enumerate(stems)}
    waiting: dict[str, list[Table]] = {}  # the tables of a file until its last one is there
    with _writer() as write:
        for position, (table, stem) in enumerate(zip(release.tables, stems, strict=True)):
            entries.append(_entry(release, table, stem))
            waiting.setdefault(stem, []).append(table)
            if last_of[stem] == position:
                (directory / stem).parent.mkdir(exist_ok=True)
                tables = waiting.pop(stem)
                columns = _long(tables, release.options.some) if _share_files(release) else table.columns()
                for name in formats:
                    of_file = columns if name == "csv" else _with_level(columns, release, table.product)
                    write(of_file, directory / f"{stem}.{name}")
            for other in others:
                other.add(table, stem)
            yield table, entries[-1]
        for made in release.statistics:
            stem = statistic_file(release, made)
            for name in formats:
                write(made.columns(), directory / f"{stem}.{name}")
            for other in others:
                other.add(made, stem)
        for number, text in enumerate(release.options.statements, 1):
            answers = release.answered(text)
            for name in {"csv", *formats}:
                write(answers, directory / f"{statement_file(number)}.{name}")
    for other in others:
        other.close()
    write_rows(directory / "tables.csv", [each.name for each in fields(TableEntry)], map(astuple, entries))


def write_covariances(release: Release, directory: Path) -> None:
    """Write the covariances of the tables that were asked for, one file a table and format, each pair of answers once."""
    if not release.options.covariances:
        return
    (directory / "covariances").mkdir()
    formats = [name for name in release.options.formats if name not in WRITERS] or ["csv"]
    with _writer() as write:
        for key in release.options.covariances:
            matrix = release.covariance(key)
            first, second = np.triu_indices(len(matrix))
            columns: Columns = {"query": np.full(len(first), key, dtype=object)}
            columns |= {"answer": first + 1, "other_answer": second + 1, "covariance": matrix[first, second]}
            for name in formats:
                write(columns, directory / f"covariances/{key}.{name}")


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
        of=words.of_words(release),
    )


def statistic_file(release: Release, made: StatisticTable) -> str:
    """The path of the files of a statistic below the release's directory, without ending."""
    return f"answers/{file_name(made.id, made.name, len(release.statistics))}"


def _share_files(release: Release) -> bool:
    return len(release.tables) > MOST_TABLE_FILES


def _stems(release: Release) -> list[str]:
    """Return for each table the path of its files without ending: of very many tables those of equally many attributes share files."""
    products = release.workload.products
    if not _share_files(release):
        names = [file_name(f"q{number}", product.name, len(products)) for number, product in enumerate(products, 1)]
        return [f"answers/{name}" for name in names]
    stems = []
    before: Counter[int] = Counter()  # answers of earlier tables, by their number of attributes
    for product in products:
        ways = len(product.attributes)
        stems.append(f"answers/{ways}-way/part-{before[ways] // BATCH_CELLS + 1:05d}")
        before[ways] += product.rows
    return stems


def _with_level(columns: Columns, release: Release, product: Product) -> Columns:
    """Return the columns of a table for Parquet: with its level, where some table asks for a level."""
    if _share_files(release) or all(each.keys == each.attributes for each in release.workload):
        return columns
    pairs = zip(product.keys, product.attributes, strict=True)
    levels = [key.removeprefix(f"{name}:") for key, name in pairs if level_names(product.domain.kind(name))]
    level = np.full(len(columns["query"]), " x ".join(levels) or "total", dtype=object)
    return {"query": columns["query"], Names({*columns}).give("level"): level} | columns


def _long(tables: Sequence[Table], some: Sequence[str]) -> Columns:
    """Return the columns of several tables of equally many attributes: query, attribute_1, value_1, ..., and the numbers."""
    sizes, numbers = [table.cells for table in tables], [table.numbers() for table in tables]
    indices = [table.indices() for table in tables]
    columns: Columns = {"query": np.repeat(np.array([table.id for table in tables], dtype=object), sizes)}
    for axis in range(len(tables[0].labels)):
        columns[f"attribute_{axis + 1}"] = np.repeat(np.array([table.product.keys[axis] for table in tables], dtype=object), sizes)
        texts = [np.array([*map(str, table.labels[axis])], dtype=object) for table in tables]
        columns[f"value_{axis + 1}"] = np.concatenate([along[index[axis]] for along, index in zip(texts, indices, strict=True)])
    for name in NUMBERS:
        # Whole counts and sums in decimals share a column; not every table has those that were asked for.
        if name in some or any(name in each for each in numbers):
            values = [each.get(name, np.full(size, np.nan)) for each, size in zip(numbers, sizes, strict=True)]
            columns[name] = np.concatenate(values).astype(np.float64, copy=False)
    return columns


def write_rounded(release: Release, directory: Path, to: Exact, below: Exact | None = None) -> None:
    """Write every table, rounded, as CSV, and a README that says what that does to error bars."""
    dataset = release.receipt.get("dataset")
    lines = [f"# {dataset}: rounded tables" if dataset else "# Rounded tables", ""]
    if not release.private:
        lines += ["**NOT PRIVATE**: the noise of this release came from a seed.", ""]
    if cut := words.cut_words(release):
        lines += [cut, ""]
    with _writer() as write:
        for table in release.tables:
            rule = table.rounded(to, below)
            name = f"{file_name(table.id, table.name, len(release.tables))}.csv"
            write(rule.columns(), directory / name)
            lines.append(f"- `{name}`: {rule.words()}")
    (directory / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")


def check_records_file(path: Path) -> None:
    """Refuse a file of records with an unknown ending, before anything is computed."""
    if path.suffix not in (".csv", ".parquet"):
        raise refuse("the file of records", path.name, "a name that ends in .csv or .parquet")


def write_records(made: Records, path: Path) -> None:
    """Write records as CSV or Parquet, by the ending of the file's name."""
    check_records_file(path)
    with _writer() as write:
        write(made.columns(), path)


def fill_draft(release: Release, draft: Draft) -> None:
    """Write the files of a release into a draft, which is then published."""
    _write_measurements(release, draft.path / "measurements")
    seen = views(release, write_answers(release, draft.path), catalogue(release.options.language))
    write_covariances(release, draft.path)
    page = report(release, seen)
    (draft.path / "report.html").write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")
    value = manifest(release, seen.entries, list_files(draft.path))
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (draft.path / "manifest.json").write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _write_measurements(release: Release, directory: Path) -> None:
    """Write the plan and the observation, and of many measured tables their list."""
    directory.mkdir()
    observation = release.observation
    (directory / "plan.json").write_text(release.plan.to_json(), encoding="utf-8")
    head: dict[str, Any] = {"plan_digest": release.plan_digest, "receipt": observation.receipt, "private": observation.private}
    if release.plan.measurements is None:  # what was decided on the way
        head |= {"measurements": measurements_value(observation.measurements), "outcome": release.finding.facts()}
    with (directory / "observation.json").open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "values": [')
        for number, values in enumerate(observation.values):
            file.write((", " if number else "") + whole_bytes_text(values))
        file.write("]}")
    if len(observation.measurements.blocks) > MOST_LISTED:
        tables = measured_tables(observation.measurements)
        write_rows(directory / "tables.csv", tables[0], (table.values() for table in tables))


def finishing_seconds(plan: Plan, options: Options, *, written: bool = True) -> float:
    """Estimate the CPU seconds of measuring, estimating and writing; 0 for a plan whose measurements are not known beforehand."""
    if plan.measurements is None:
        return 0.0
    seconds = _NUMBER * sum(block.rows for block in plan.measurements.blocks)
    if not written:
        return seconds
    sizes = [product.rows for product in plan.workload.products]
    rows = min(sum(size if size <= MOST_OF_A_TABLE else MOST_LARGEST for size in sizes), MOST_CELLS)
    files = min(len(sizes), MOST_TABLE_FILES) * len(options.formats) / 2
    pictures = min(len(sizes), MOST_PICTURES) if drawing() else 0
    return seconds + _START + _PICTURE * pictures + _FILE * files + _ROW * rows + _ANSWER * sum(sizes)


def measured_tables(measurements: Measurements) -> list[dict[str, Any]]:
    """Return the facts about every measured block: attributes, number of queries, scale and variance."""
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


def manifest(release: Release, entries: Sequence[TableEntry], files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
        "workload": plan.workload.to_json() if few else "listed in measurements/plan.json under 'questions'",
        "plan": {
            "digest": release.plan_digest,
            "strategy": plan.strategy,
            "mechanism": noise,
            "mechanism_in_words": ENGLISH.say(noise),
            "details": dict(plan.details),
            **({"outcome": outcome} if outcome else {}),
        },
        **_measured(release, entries),
        "intervals": {
            "level": release.level,
            "half_width_in_noise_std": release.interval.multiplier,
            "half_width_added": release.interval.half_step + float(exact_rule(release.options)[0]) / 2,
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
    privacy, domain, spent, second = release.privacy, release.plan.domain, release.plan.cost(), words.joined_words(release)
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
                **({} if privacy.max_per_cell is None else {"max_per_cell": privacy.max_per_cell.to_json()}),
                "in_words": words.change(privacy),
                **({} if second is None else {"second_table": second}),
            },
            "cost": {**spent.to_json(), "in_words": words.cost_words(spent), "within_budget": covers(release.plan.privacy.budget, spent)},
        },
        "receipt": {**release.receipt, "id": release.observation.receipt} if release.observation.receipt or release.receipt else None,
        "domain": {
            **({"attributes": "listed in measurements/plan.json under 'domain'"} if long else domain.to_json()),
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
    known = [(entry.rmse, entry.promised_rmse) for entry in entries if entry.promised_rmse is not None]
    as_promised = bool(known or release.large) and all(math.isclose(rmse, promised, rel_tol=1e-6) for rmse, promised in known)
    few = len(measurements.blocks) <= MOST_LISTED
    return {
        "measurements": {
            "plan": "measurements/plan.json",
            "observation": "measurements/observation.json",
            "encoding": "values: one entry a measured table, little-endian whole numbers (int8 ... int64) in base64, row by row; "
            "divide by grid",
            "grid": measurements.grid,
            "variance": "of a query of weight 1, in squared rows (or squared units of the measure); a row of weight w has 1/w^2 of it",
            "tables": measured_tables(measurements) if few else "listed in measurements/tables.csv",
        },
        "expected_error": {
            "total_squared_error": None if promise is None else promise.total_squared_error,
            "lower_bound": None if promise is None else promise.lower_bound,
            "times_the_least_possible": words.goodness(release.plan),
            "meaning": "sum over all answers of weight squared times variance; errors of sums count in units of the most that one row can "
            "add",
            "error_bars_are_as_promised": as_promised,
            **({} if release.finding.linear else {"note": _NOT_PROMISED}),
        },
    }


def _post_processing(release: Release) -> dict[str, Any]:
    """Return the manifest's part on optional columns and on rounding."""
    options, (step, least) = release.options, exact_rule(release.options)
    used = {release.tables.projection(product) for product in release.workload} if options.non_negative else ()
    columns: dict[str, Any] = {}
    if options.non_negative:
        columns["answer_non_negative"] = {method: text for method, text in PROJECTIONS.items() if method in used}
    if options.integer:
        source = "answer_non_negative where that is there, else answer" if options.non_negative else "answer"
        columns["answer_integer"] = _MEANINGS["answer_integer"] % source
    columns |= {name: _MEANINGS[name] for name in ("answer_nnls", "nnls_rmse", "answer_local") if name in options.some}
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
        facts["standard_error_of_rounding"] = round(float(step) / math.sqrt(12), 3 - math.floor(math.log10(float(step))))
    if least is not None:
        facts["left_out_below"] = str(least)
    facts["note"] = (
        "post-processing, which protects nobody further; noise_std is of the noise alone; low and high hold both, and of an answer "
        "that is left out high alone is given: the true one is not above it, at the level of the intervals"
    )
    return {**value, "rounding": facts}


def _answers(release: Release, entries: Sequence[TableEntry]) -> dict[str, Any]:
    """Return the manifest's parts on the answers and on statistics, SQL and covariances, if any."""
    options, of, plan = release.options, words.of_words(release), release.plan
    layout = (
        "one folder for every number of attributes, with parts of many tables each: query, attribute_1, value_1, ..., and the numbers"
        if len(release.tables) > MOST_TABLE_FILES
        else "one file a table: query, one key column an attribute, and the numbers"
    )
    tables = []
    for product, entry in zip(release.workload.products[:MOST_LISTED], entries, strict=False):
        biased = {"answer_non_negative": release.tables.projection(product)} if options.non_negative else {}
        tables.append({**asdict(entry), "key_columns": key_columns(product.keys, NUMBERS), **biased})
    answers = {
        "index": "tables.csv",
        "layout": layout,
        "formats": list(options.formats),
        "unit": "rows; a sum in the measure's own unit (the whole multiples that were measured, times its unit)",
        **({"of": of} if of else {}),
        "columns": {
            **(_COLUMNS if release.finding.linear else _DECIDED_COLUMNS),
            "low": f"lower end of the {ENGLISH.percent(release.level)} interval",
            "high": f"upper end of the {ENGLISH.percent(release.level)} interval",
        },
        **({"too_large_to_write": [words.large_words(release, product) for product in release.large]} if release.large else {}),
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
            "meaning": _MEANINGS[made.statistic.kind],
        }
        for made in release.statistics
    ]
    statements = [{"sql": text, "files": statement_file(number)} for number, text in enumerate(options.statements, 1)]
    covariances = [{"query": key, "files": f"covariances/{key}"} for key in options.covariances]
    beside: dict[str, Any] = {"statistics": statistics, "statements": statements}
    beside |= {"covariances": {"tables": covariances, "meaning": _MEANINGS["covariances"]}} if covariances else {}
    return {"answers": answers, **{name: value for name, value in beside.items() if value}}
