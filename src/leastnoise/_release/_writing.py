"""The files of a release, and its manifest: everything that a reader needs, as one JSON object."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leastnoise._accounting import covers
from leastnoise._accuracy import block_variance
from leastnoise._charts import drawing
from leastnoise._estimate import REPETITIONS
from leastnoise._frames import key_columns
from leastnoise._linop import whole_bytes_text
from leastnoise._measurements import Measurements, measurements_value
from leastnoise._plan import Plan, versions
from leastnoise._release import _words as words
from leastnoise._release._csv import write_rows
from leastnoise._release._directory import Draft, list_files
from leastnoise._release._files import (
    MOST_TABLE_FILES,
    TableEntry,
    in_batches,
    statement_file,
    statistic_file,
    write_answers,
    write_covariances,
)
from leastnoise._release._options import Options, exact_rule, rule_facts
from leastnoise._release._release import Release
from leastnoise._release._report import MOST_CELLS, MOST_LARGEST, MOST_OF_A_TABLE, MOST_PICTURES, report
from leastnoise._release._tables import NUMBERS
from leastnoise._release._texts import ENGLISH
from leastnoise._release._words import cut_words, of_words

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


def fill_draft(release: Release, draft: Draft) -> None:
    """Write the files of a release into a draft, which is then published."""
    _write_measurements(release, draft.path / "measurements")
    entries = write_answers(release, draft.path)
    write_covariances(release, draft.path)
    page = report(release, entries)
    (draft.path / "report.html").write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")
    value = manifest(release, entries, list_files(draft.path))
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (draft.path / "manifest.json").write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _write_measurements(release: Release, directory: Path) -> None:
    """The plan, and the observation, table by table."""
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
        rows = ([" x ".join(value) if isinstance(value, list) else value for value in table.values()] for table in tables)
        write_rows(directory / "tables.csv", tables[0], rows)


def finishing_seconds(plan: Plan, options: Options, *, written: bool = True) -> float:
    """About how many CPU seconds measuring, estimating and writing take, for a plan whose measurements are known beforehand."""
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
    """What was measured and with which noise, one record a block."""
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
    release: Release,
    entries: Sequence[TableEntry],
    files: Sequence[Mapping[str, Any]],
    *,
    written: datetime | None = None,
) -> dict[str, Any]:
    """The manifest of a release as a JSON value."""
    plan = release.plan
    warning = {} if release.private else {"warning": ENGLISH.say("not_private")}
    return {
        "format": FORMAT,
        **warning,
        "private": release.private,
        "written": (written or datetime.now(UTC)).astimezone(UTC).date().isoformat(),
        "versions": versions(),
        "privacy": _privacy(release),
        "receipt": {**release.receipt, "id": release.observation.receipt} if release.observation.receipt or release.receipt else None,
        "domain": _domain(release),
        "workload": plan.workload.to_json()
        if len(plan.workload.products) <= MOST_LISTED
        else "listed in measurements/plan.json under 'questions'",
        "plan": {
            "digest": release.plan_digest,
            "strategy": plan.strategy,
            "mechanism": release.measurements.noise.value,
            "mechanism_in_words": ENGLISH.say(release.measurements.noise.value),
            "details": dict(plan.details),
            **({"outcome": outcome} if (outcome := release.finding.facts()) else {}),
        },
        "measurements": _measurements(release.measurements),
        "expected_error": _expected(release, entries),
        "intervals": {
            "level": release.level,
            "half_width_in_noise_std": release.interval.multiplier,
            "half_width_added": release.interval.half_step + float(exact_rule(release.options)[0]) / 2,
            "method": words.interval_words(release),
            **({"notice": cut} if (cut := cut_words(release)) else {}),
            "does_not_cover": words.limits(release),
        },
        "post_processing": {**_post_processing(release), **rule_facts(release.options)},
        "answers": _answers(release, entries),
        **_statistics(release),
        **_statements(release),
        **_covariances(release),
        "options": release.options.to_json(),
        "files": [dict(entry) for entry in files],
    }


def _privacy(release: Release) -> dict[str, Any]:
    plan = release.plan
    spent = plan.cost()
    name, parameters = words.definition(release.privacy)
    return {
        "definition": name,
        "parameters": parameters,
        "promise": words.promise(release.privacy),
        "neighbours": release.privacy.neighbours,
        "unit": _unit(release),
        "cost": {**spent.to_json(), "in_words": words.cost_words(spent), "within_budget": covers(plan.privacy.budget, spent)},
    }


def _unit(release: Release) -> dict[str, Any]:
    privacy, second = release.privacy, words.joined_words(release)
    joined = {} if second is None else {"second_table": second}
    bound = {} if privacy.max_per_cell is None else {"max_per_cell": privacy.max_per_cell.to_json()}
    return {"column": privacy.unit_column, "max_rows": privacy.max_rows, **bound, "in_words": words.change(privacy), **joined}


def _domain(release: Release) -> dict[str, Any]:
    domain = release.plan.domain
    kinds = [domain.kind(name) for name in domain.names]
    long = sum(kind.size * (1 + len(kind.levels)) for kind in kinds) > MOST_LABELS
    return {
        **({"attributes": "listed in measurements/plan.json under 'domain'"} if long else domain.to_json()),
        "rules": [
            *(words.domain_words(name, domain.kind(name)) for name in domain.names),
            *(words.measure_words(name, measure) for name, measure in domain.measures.items()),
        ],
        "rows_outside": words.dropped_words(release),
    }


def _measurements(measurements: Measurements) -> dict[str, Any]:
    few = len(measurements.blocks) <= MOST_LISTED
    return {
        "plan": "measurements/plan.json",
        "observation": "measurements/observation.json",
        "encoding": "values: one entry a measured table, little-endian whole numbers (int8 ... int64) in base64, row by row; "
        "divide by grid",
        "grid": measurements.grid,
        "variance": "of a query of weight 1, in squared rows (or squared units of the measure); a row of weight w has 1/w^2 of it",
        "tables": measured_tables(measurements) if few else "listed in measurements/tables.csv",
    }


def _expected(release: Release, entries: Sequence[TableEntry]) -> dict[str, Any]:
    promise = release.plan.promise
    known = [(entry.rmse, entry.promised_rmse) for entry in entries if entry.promised_rmse is not None]
    as_promised = bool(known or release.large) and all(math.isclose(rmse, promised, rel_tol=1e-6) for rmse, promised in known)
    return {
        "total_squared_error": None if promise is None else promise.total_squared_error,
        "lower_bound": None if promise is None else promise.lower_bound,
        "times_the_least_possible": words.goodness(release.plan),
        "meaning": "sum over all answers of weight squared times variance; errors of sums count in units of the most that one row can add",
        "error_bars_are_as_promised": as_promised,
        **({} if release.finding.linear else {"note": _NOT_PROMISED}),
    }


def _post_processing(release: Release) -> dict[str, Any]:
    if not release.options.biased:
        step, least = exact_rule(release.options)
        made = f"rounded to multiples of {step}" if step else "not rounded"
        if not release.finding.linear:
            return {"columns": [], "note": _DECIDED_POST_PROCESSING % made}
        return {"columns": [], "note": f"answer is unbiased least squares; it is {made}{', and it may be negative' * (least is None)}."}
    columns: dict[str, Any] = {}
    if release.options.non_negative:
        used = {release.tables.projection(product) for product in release.workload}
        columns["answer_non_negative"] = {method: text for method, text in PROJECTIONS.items() if method in used}
    if release.options.integer:
        source = "answer_non_negative where that is there, else answer" if release.options.non_negative else "answer"
        columns["answer_integer"] = (
            f"{source}, in whole rows or multiples of the measure's unit: tables of cells by largest remainders, so that they keep their "
            "rounded total, others to the nearest; where levels are asked for and one table has the cells of all others, from the total "
            "down instead, so that all tables agree"
        )
    if release.options.nnls:
        columns["answer_nnls"] = (
            "non-negative least squares over the joint table of all measurements, its total fixed to its own estimate (at least 0); it "
            "agrees across tables"
        )
        columns["nnls_rmse"] = (
            f"root mean square error of answer_nnls in {REPETITIONS} simulated releases in which the estimate itself was the truth; it "
            "depends on the data and is no promise of the plan"
        )
    if release.options.local_non_negative:
        columns["answer_local"] = (
            "the nearest tables, in the likelihood of the noise, that have no cell below 0 and agree with each other, the total fixed to "
            "its own estimate (at least 0); no errors are known for them"
        )
    return {"columns": columns, "note": " ".join(words.post_processing_words(release))}


_MEANINGS = {
    "means": "sum over count of values, group by group: rows without a value are in neither, and values beyond the public bounds are "
    "counted at the nearest bound; with Fieller's intervals, each by itself; std_error by the delta method at the estimates, empty where "
    "the count is not clear of 0; sum and count as in the tables",
    "quantiles": "the least value with at least a share of the rows at or below it; only its cell is known, so low and high are ends of "
    "cells; each interval by itself",
    "cdf": "share of the rows up to the end of every cell (up_to); low to high is a band that holds for all cells of a group at once",
}


def _statistics(release: Release) -> dict[str, Any]:
    """What was made of the tables, and where it is; nothing if nothing was asked for."""
    listed = [
        {
            "query": made.id,
            "name": made.name,
            "asked": made.statistic.to_json(),
            "tables": [product.name for product in release.plan.workload.tables_of(made.statistic)],
            "files": statistic_file(release, made),
            "key_columns": made.key_columns(),
            "values": made.cells,
            "meaning": _MEANINGS[made.statistic.kind],
        }
        for made in release.statistics
    ]
    return {"statistics": listed} if listed else {}


def _statements(release: Release) -> dict[str, Any]:
    """The SQL that was asked, and where its tables are; nothing where there was none."""
    texts = release.options.statements
    return {"statements": [{"sql": text, "files": statement_file(number)} for number, text in enumerate(texts, 1)]} if texts else {}


def _covariances(release: Release) -> dict[str, Any]:
    """Where the covariances of some tables are; nothing if none were asked for."""
    if not release.options.covariances:
        return {}
    return {
        "covariances": {
            "tables": [{"query": key, "files": f"covariances/{key}"} for key in release.options.covariances],
            "meaning": "of the noise in two answers of one table, numbered from 1 in row-major order, each pair once; squared rows or "
            "amounts. The variance of a sum of answers is the sum of their covariances, both orders counted.",
        }
    }


def _answers(release: Release, entries: Sequence[TableEntry]) -> dict[str, Any]:
    layout = (
        "one folder for every number of attributes, with parts of many tables each: query, attribute_1, value_1, ..., and the numbers"
        if in_batches(release)
        else "one file a table: query, one key column an attribute, and the numbers"
    )
    return {
        "index": "tables.csv",
        "layout": layout,
        "formats": list(release.options.formats),
        "unit": "rows; a sum in the measure's own unit (the whole multiples that were measured, times its unit)",
        **({"of": of} if (of := of_words(release)) else {}),
        "columns": {
            **(_COLUMNS if release.finding.linear else _DECIDED_COLUMNS),
            "low": f"lower end of the {ENGLISH.percent(release.level)} interval",
            "high": f"upper end of the {ENGLISH.percent(release.level)} interval",
        },
        **({"too_large_to_write": [words.large_words(release, product) for product in release.large]} if release.large else {}),
        "number_of_tables": len(entries),
        "number_of_answers": sum(entry.answers for entry in entries),
        "tables": [_table(release, position, entry) for position, entry in enumerate(entries)]
        if len(entries) <= MOST_LISTED
        else "listed in tables.csv",
    }


def _table(release: Release, position: int, entry: TableEntry) -> dict[str, Any]:
    product = release.workload.products[position]
    biased = {"answer_non_negative": release.tables.projection(product)} if release.options.non_negative else {}
    return {**entry.to_json(), "key_columns": key_columns(product.keys, NUMBERS), **biased}
