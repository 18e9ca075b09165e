"""The manifest of a release as typed records, and its JSON file.

The same records define how the file is written and how it is read.
"""

import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from leastnoise._plan import parse_or_refuse, read_json
from leastnoise._publication._directory import ListedFile
from leastnoise._release import (
    NO_RECEIPT,
    Json,
    Options,
    ReceiptFacts,
    TableEntry,
    flat,
    read_record,
    write_record,
)
from leastnoise._trusted.check import InputError, quoted, refuse

MANIFEST_FORMAT = 1  # version of the format; manifests of other versions are refused
_ADVICE = "Name the directory that `leastnoise release` wrote; it contains manifest.json."


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLimit:
    """The largest number of rows of a unit in a cell of the given attributes."""

    rows: int
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFacts:
    """The privacy unit: a row, or all rows of one value of a column.

    Attributes:
        column: the column that identifies the units; None if every row is a unit.
        max_rows: the most rows of a unit that count.
        max_per_cell: the most rows of a unit in a cell; None without such a limit.
        reading: how texts of the column become identifiers; None for the default.
        in_words: the change between neighbouring data sets, in a sentence.
        second_table: how rows of a joined table belong to units, in a sentence; None without a
            join.
    """

    column: str | None
    max_rows: int
    max_per_cell: CellLimit | None = None
    reading: Json = None
    in_words: str
    second_table: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """The cost of the queries, and whether the plan's budget covers it."""

    cost: Mapping[str, Json] = field(metadata=flat())
    in_words: str
    within_budget: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyFacts:
    """The privacy of a release: definition, parameters, risk, unit and cost.

    Attributes:
        definition: the definition of privacy, such as ``PureDP``.
        parameters: the parameters of the budget, as exact texts.
        promise: the guarantee, in a sentence.
        risk: how much a release can improve a reader's guess about one unit; None if it is not
            stated.
        neighbours: ``add_remove`` or ``replace``.
        unit: the privacy unit.
        cost: the cost of the queries.
    """

    definition: str
    parameters: Mapping[str, str]
    promise: str
    risk: Mapping[str, Json] | None = None
    neighbours: str
    unit: UnitFacts
    cost: PlanCost


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainFacts:
    """The domain, the rules from values to cells, and a text on omitted rows."""

    domain: Mapping[str, Json] = field(metadata=flat())
    rules: tuple[str, ...]
    rows_outside: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """The plan, and the choices of a data-dependent mechanism.

    Attributes:
        digest: the SHA-256 of the plan.
        strategy: the name of the strategy.
        mechanism: the name of the noise.
        mechanism_in_words: the noise, in words.
        details: the details of the plan.
        after: facts about the earlier releases whose measurements the plan uses.
        outcome: the choices of a data-dependent mechanism; None without choices.
    """

    digest: str
    strategy: str
    mechanism: str
    mechanism_in_words: str
    details: Mapping[str, Json]
    after: tuple[Mapping[str, Json], ...] = ()
    outcome: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBlock:
    """A table of measured queries, with the scale and the variance of its noise.

    Attributes:
        attributes: the attributes of the table.
        queries: the number of measured queries.
        scale: the scale of the noise, as an exact text.
        variance: the variance of a query of weight 1, in squared rows or units of the measure.
        row_weights: whether queries have different weights.
        measure: the summed measure; None for counts.
        ends: whether the distances to both bounds of the measure are summed.
        k_norm_group: the number of the group of tables that share K-norm noise; None for other
            noise.
    """

    attributes: tuple[str, ...]
    queries: int
    scale: str
    variance: float
    row_weights: bool
    measure: str | None
    ends: bool = False
    k_norm_group: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementFacts:
    """The files of the measurements, and their tables or the file with the list.

    Attributes:
        plan: the path of the file with the measured queries.
        observation: the path of the file with the noisy values.
        encoding: how the noisy values are encoded.
        grid: the number by which the noisy values are divided.
        variance: what the variance of a table means.
        tables: the measured tables, or the name of the file that lists them.
    """

    plan: str
    observation: str
    encoding: str
    grid: int
    variance: str
    tables: tuple[MeasuredBlock, ...] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFacts:
    """The expected error and its lower bound; a value is None if it is unknown.

    Attributes:
        total_squared_error: the expected weighted squared error of all answers.
        lower_bound: the proved lower bound on it.
        times_the_least_possible: the ratio of the error to the least possible one.
        meaning: what the total squared error adds up.
        error_bars_are_as_promised: whether the errors of the answers equal the expected errors.
        note: why errors depend on the data; None if they do not.
    """

    total_squared_error: Json
    lower_bound: Json
    times_the_least_possible: float | None
    meaning: str
    error_bars_are_as_promised: bool
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFacts:
    """How intervals are computed, and which errors they do not cover.

    Attributes:
        level: the coverage of the intervals.
        half_width_in_noise_std: the half width of intervals, in standard errors.
        half_width_added: the width that is added on each side for grid and rounding.
        method: how intervals are computed, in words.
        notice: the rows and amounts that limits cut, in sentences; None without limits.
        does_not_cover: the errors that intervals do not cover, in sentences.
    """

    level: float
    half_width_in_noise_std: float
    half_width_added: float
    method: str
    notice: str | None = None
    does_not_cover: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostProcessing:
    """The optional columns, a note on the answers, and the rounding."""

    columns: Json
    note: str
    rounding: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTable:
    """The entry of a table in the manifest, with its key columns."""

    entry: TableEntry = field(metadata=flat())
    key_columns: tuple[str, ...]
    answer_non_negative: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """The files of the answers.

    Attributes:
        index: the path of the index of all tables.
        layout: the layout of the files.
        formats: the formats in which answers are written.
        unit: the unit of the answers.
        of: the rows of a unit that count, in a phrase; empty if all rows count.
        columns: the meaning of each column.
        too_large_to_write: notes on tables that are too large for the files.
        number_of_tables: the number of tables.
        number_of_answers: the number of answers of all tables.
        tables: the tables, or the name of the file that lists them.
    """

    index: str
    layout: str
    formats: tuple[str, ...]
    unit: str
    of: str = ""
    columns: Mapping[str, str]
    too_large_to_write: tuple[str, ...] = ()
    number_of_tables: int
    number_of_answers: int
    tables: tuple[ListedTable, ...] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticFacts:
    """A statistic, its files, and the tables from which it is computed.

    Attributes:
        query: the id of the statistic, such as ``s1``.
        name: the name of the statistic.
        request: the statistic as the workload requests it.
        tables: the names of the tables from which it is computed.
        files: the path of its files, without an ending.
        key_columns: the names of the columns of its groups.
        values: the number of values.
        meaning: what the values are, in words.
        columns: the meaning of each column.
    """

    query: str
    name: str
    request: Mapping[str, Json]
    tables: tuple[str, ...]
    files: str
    key_columns: tuple[str, ...]
    values: int
    meaning: str
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFacts:
    """A SQL statement, its files, and its columns without intervals."""

    sql: str
    files: str
    without_interval: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CovarianceFile:
    """The files of the covariances of a table."""

    query: str
    files: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CovarianceFacts:
    """The files with covariances, and their meaning."""

    tables: tuple[CovarianceFile, ...]
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of a release, as read from or written to JSON.

    Attributes:
        format: the number of the format.
        warning: why the release is not private; None if it is.
        private: False if the noise came from a seed.
        written: the day on which the release was written.
        versions: the versions of the program and of its libraries.
        privacy: the guarantee and its cost.
        receipt: the payment; None if nothing was paid or counted.
        domain: the domain.
        workload: the queries, or a text that names the file with the queries.
        plan: the plan and its digest.
        measurements: the measured queries and the files of their noisy values.
        expected_error: the expected error and its lower bound.
        intervals: how intervals are computed.
        post_processing: the optional columns and the rounding.
        answers: the files of the tables.
        statistics: the statistics and their files.
        statements: the SQL statements and their files.
        covariances: the files of covariances; None if not requested.
        options: the options of [output].
        files: the files of the release, with their digests.
    """

    format: int
    warning: str | None = None
    private: bool
    written: dt.date
    versions: Mapping[str, str]
    privacy: PrivacyFacts
    receipt: ReceiptFacts | None
    domain: DomainFacts
    workload: Json
    plan: PlanFacts
    measurements: MeasurementFacts
    expected_error: ErrorFacts
    intervals: IntervalFacts
    post_processing: PostProcessing
    answers: AnswerFacts
    statistics: tuple[StatisticFacts, ...] = ()
    statements: tuple[StatementFacts, ...] = ()
    covariances: CovarianceFacts | None = None
    options: Options
    files: tuple[ListedFile, ...]

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of each listed file by its path."""
        return {file.path: file.sha256 for file in self.files}

    @property
    def paid(self) -> ReceiptFacts:
        """The receipt; an empty receipt if nothing was paid or counted."""
        return self.receipt or NO_RECEIPT


def write_manifest(manifest: Any, directory: Path) -> None:
    """Write a record as the manifest file of a directory."""
    text = json.dumps(write_record(manifest), indent=2, ensure_ascii=False, allow_nan=False)
    (directory / "manifest.json").write_text(
        text + "\n", encoding="utf-8", errors="replace", newline="\n"
    )


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest in the directory of a release, and check its values.

    Args:
        directory: the directory of the release.

    Raises:
        InputError: there is no manifest, it has another format, or a value is missing or has the
            wrong type.
    """
    release_name = f"The release in {str(directory)!r}"
    try:
        text = (directory / "manifest.json").read_text(encoding="utf-8")
    except OSError:
        raise InputError(
            f"There is no release in {str(directory)!r}, or it cannot be read. {_ADVICE}"
        ) from None
    except ValueError:
        raise InputError(
            f"{release_name} is damaged: its manifest is not text. {_ADVICE}"
        ) from None
    try:
        return parse_or_refuse(lambda: _parse_manifest(read_json(text)), "manifest", _ADVICE)
    except OtherFormatError:
        raise
    except InputError as error:
        raise InputError(f"{release_name} is damaged. In its manifest: {error}") from None


class OtherFormatError(InputError):
    """Raised if only another version of the program can read a release."""


def _parse_manifest(value: object) -> Manifest:
    """Return the manifest that a JSON value represents.

    Raises:
        OtherFormatError: the value is invalid.
    """
    if isinstance(value, Mapping) and "format" in value and value["format"] != MANIFEST_FORMAT:
        versions = value.get("versions")
        if isinstance(versions, Mapping):
            version = versions.get("leastnoise", "unknown")
        else:
            version = "unknown"
        advice = f"It was written by leastnoise {quoted(version)}; read it with that."
        raise OtherFormatError(
            str(refuse("the format of a release", value["format"], str(MANIFEST_FORMAT), advice))
        )
    return read_record(Manifest, value)


_MARKDOWN_CHARACTERS = re.compile(r"([\\`*\[\]])")


def escape_markdown(text: str) -> str:
    """Return one line of Markdown that displays a text unchanged.

    >>> escape_markdown("a <b> & c")
    'a &lt;b&gt; &amp; c'
    """
    return _MARKDOWN_CHARACTERS.sub(r"\\\1", escape(" ".join(text.split()), quote=False))


def escape_manifest(value: Any) -> Any:
    """Escape all texts of a manifest, or of a part of it, for Markdown.

    The texts inside the options are not escaped.
    """
    if isinstance(value, str):
        return escape_markdown(value)
    if isinstance(value, tuple):
        return tuple(map(escape_manifest, value))
    if isinstance(value, Mapping):
        return {escape_manifest(name): escape_manifest(entry) for name, entry in value.items()}
    if is_dataclass(value) and not isinstance(value, (type, Options)):
        entries = {
            record_field.name: escape_manifest(getattr(value, record_field.name))
            for record_field in fields(value)
        }
        return replace(value, **entries)
    return value
