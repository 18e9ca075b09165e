"""The manifest of a release as a value, and its file.

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

from leastnoise._plan import read, read_json
from leastnoise._release._directory import ListedFile
from leastnoise._release._json_records import Json, flat, read_record, write_record
from leastnoise._release._options import Options
from leastnoise._release._receipt import NO_RECEIPT, ReceiptFacts
from leastnoise._release._release import TableEntry
from leastnoise._trusted.check import InputError, quoted, refuse

MANIFEST_FORMAT = 1  # of manifests; another one is refused
_ADVICE = "Name the directory that leastnoise release wrote, the one with manifest.json."


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLimit:
    """The limit on the rows of a unit in one cell of some attributes."""

    rows: int
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFacts:
    """The privacy unit: a row, or all rows of one value of a column."""

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
    """The privacy of a release: definition, parameters, risk, unit and cost."""

    definition: str
    parameters: Mapping[str, str]
    promise: str
    risk: Mapping[str, Json] | None = None
    neighbours: str
    unit: UnitFacts
    cost: PlanCost


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainFacts:
    """The domain, the rules from values to cells, and sentences on rows in no table."""

    domain: Mapping[str, Json] = field(metadata=flat())
    rules: tuple[str, ...]
    rows_outside: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """The plan; ``outcome`` has the choices of a data-dependent mechanism."""

    digest: str
    strategy: str
    mechanism: str
    mechanism_in_words: str
    details: Mapping[str, Json]
    after: tuple[Mapping[str, Json], ...] = ()
    outcome: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBlock:
    """A measured table of queries, its noise scale and the variance at weight 1."""

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
    """The files of the measurements, and their tables or the file that lists them."""

    plan: str
    observation: str
    encoding: str
    grid: int
    variance: str
    tables: tuple[MeasuredBlock, ...] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFacts:
    """The expected error; None if it depends on the data or has no lower bound."""

    total_squared_error: Json
    lower_bound: Json
    times_the_least_possible: float | None
    meaning: str
    error_bars_are_as_promised: bool
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFacts:
    """The method of intervals, and the errors they do not cover."""

    level: float
    half_width_in_noise_std: float
    half_width_added: float
    method: str
    notice: str | None = None
    does_not_cover: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostProcessing:
    """The optional columns, a note about the answers, and the rounding."""

    columns: Json
    note: str
    rounding: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTable:
    """A table with the columns of its keys."""

    entry: TableEntry = field(metadata=flat())
    key_columns: tuple[str, ...]
    answer_non_negative: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """The answers; ``tables`` may be a text that names another file."""

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
    """A statistic with its files; ``tables`` are the tables it follows from."""

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
    """A SQL statement with its files and the columns that have no interval."""

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
    """A manifest with typed values.

    Attributes:
        workload: the queries, or a text that names another file.
        receipt: None if nothing was paid or counted.
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
        """The SHA-256 of every file by its path."""
        return {file.path: file.sha256 for file in self.files}

    @property
    def paid(self) -> ReceiptFacts:
        """The receipt; empty facts if nothing was paid or counted."""
        return self.receipt or NO_RECEIPT


def write_manifest(manifest: Any, directory: Path) -> None:
    """Write a manifest of any kind into the directory of a release or a search."""
    text = json.dumps(write_record(manifest), indent=2, ensure_ascii=False, allow_nan=False)
    (directory / "manifest.json").write_text(
        text + "\n", encoding="utf-8", errors="replace", newline="\n"
    )


def read_manifest(directory: Path) -> Manifest:
    """Return the checked manifest of a release.

    Args:
        directory: the directory of the release.

    Raises:
        InputError: there is no manifest, its format is another, or a value is missing or not of its
            type.
    """
    release_name = f"The release in {str(directory)!r}"
    try:
        text = (directory / "manifest.json").read_text(encoding="utf-8")
    except OSError:
        raise InputError(
            f"There is no release in {str(directory)!r}, or it cannot be read. {_ADVICE}"
        ) from None
    except ValueError:
        raise InputError(f"{release_name} is damaged: its manifest is no text. {_ADVICE}") from None
    try:
        return read(lambda: _parse_manifest(read_json(text)), "manifest", _ADVICE)
    except OtherFormatError:
        raise
    except InputError as error:
        raise InputError(f"{release_name} is damaged. In its manifest: {error}") from None


class OtherFormatError(InputError):
    """Raised for a release in a format that only another version of the program reads."""


def _parse_manifest(value: object) -> Manifest:
    """Return a checked manifest from its JSON value."""
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
    """Return a text as one line of Markdown that displays it unchanged.

    >>> escape_markdown("a <b> & c")
    'a &lt;b&gt; &amp; c'
    """
    return _MARKDOWN_CHARACTERS.sub(r"\\\1", escape(" ".join(text.split()), quote=False))


def escape_manifest(value: Any) -> Any:
    """Return a manifest or a value of it with its texts as Markdown.

    The texts of the options stay unchanged.
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
