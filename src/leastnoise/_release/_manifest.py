"""The manifest of a release as a typed value.

`_writing` writes the file; only this module reads and checks it, so that any damage ends in one
sentence.
"""

import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from html import escape
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from leastnoise._plan import guard_share, read, read_json
from leastnoise._release._options import Options
from leastnoise._trusted.check import InputError, quoted, refuse

MANIFEST_FORMAT = 1
_LARGEST_WHOLE = 2**62
_LARGEST_NUMBER = 1e150  # its square is still a double
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
    in_words: str
    max_per_cell: CellLimit | None = None
    second_table: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """The cost of the queries, and whether the plan's budget covers it."""

    in_words: str
    within_budget: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyFacts:
    """The privacy of a release: definition, parameters, unit and cost."""

    definition: str
    parameters: Mapping[str, str]
    promise: str
    neighbours: str
    unit: UnitFacts
    cost: PlanCost


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainFacts:
    """The rules that map values to cells, and the rows in no table."""

    rules: tuple[str, ...]
    rows_outside: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """The plan; ``outcome`` has the choices of a data-dependent mechanism."""

    digest: str
    strategy: str
    mechanism_in_words: str
    outcome: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A table: its number of answers, and their typical standard error."""

    name: str
    answers: int
    unit: str
    rmse: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """The answers; ``tables`` may be a text that names another file."""

    tables: tuple[TableFacts, ...] | str
    number_of_tables: int
    number_of_answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFacts:
    """The method of intervals, and the errors they do not cover."""

    level: float
    method: str
    does_not_cover: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFacts:
    """The error over the least possible; None without a lower bound."""

    times_the_least_possible: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostProcessing:
    """A note about the post-processing of the answers."""

    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file of the release with its SHA-256 in hexadecimal."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """The payment in a ledger."""

    dataset: str
    ledger: str
    ledger_id: str
    charge: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountsOfTotal:
    """Noisy amounts kept and cut of a total of units, with standard errors."""

    measure: str
    kept: float
    cut: float
    kept_std: float
    cut_std: float

    def __post_init__(self) -> None:
        if not (self.kept_std > 0 and self.cut_std > 0):
            raise InputError("A guard must have a standard error above 0 for each of its amounts.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardCounts:
    """The payment and noisy counts of a guard; ``cut`` with a row limit."""

    share: str
    charge: str
    number: int
    used: int
    kept: int
    noise_std: float
    cut: int | None = None
    cut_std: float | None = None
    amounts: tuple[AmountsOfTotal, ...] = ()

    def __post_init__(self) -> None:
        guard_share(self.share)
        if not self.noise_std > 0 or (self.cut is None) != (self.cut_std is None):
            raise InputError("A guard must have a standard error above 0 for each of its counts.")
        if self.cut_std is not None and not self.cut_std > 0:
            raise refuse("the standard error of rows that were cut", self.cut_std, "above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondTable:
    """The second table of a join."""

    table: str | None
    on: str
    public: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest, every value of its type.

    Attributes:
        receipt: the facts about the payment, flat as in the file: the fields of `Payment` and an
            ``id``, the fields of `GuardCounts` after ``guard_``, a `SecondTable` under ``joined``,
            and perhaps more; None if nothing was paid or counted.
    """

    format: int
    private: bool
    written: dt.date
    versions: Mapping[str, str]
    privacy: PrivacyFacts
    domain: DomainFacts
    plan: PlanFacts
    answers: AnswerFacts
    intervals: IntervalFacts
    expected_error: ErrorFacts
    post_processing: PostProcessing
    options: Options
    files: tuple[ListedFile, ...]
    receipt: Mapping[str, Any] | None = None

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of every file by its path."""
        return {file.path: file.sha256 for file in self.files}

    @property
    def payment(self) -> Payment | None:
        """The payment in a ledger; None if nothing was paid."""
        receipt = self.receipt or {}
        if "ledger" in receipt:
            return read_record(Payment, receipt)
        return None

    @property
    def guard(self) -> GuardCounts | None:
        """The counts of the guard; None without one."""
        return _parse_guard_counts(self.receipt or {})


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
    """A release has a format that another version of the program reads."""


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
    manifest = read_record(Manifest, value)
    check_receipt(manifest.receipt or {})
    return manifest


def check_receipt(receipt: Mapping[str, Any]) -> None:
    """Raise if an entry of a receipt is missing or not of its type."""
    payment = {payment_field.name for payment_field in fields(Payment)}
    if payment & receipt.keys():
        read_record(Payment, receipt, "receipt")
    for name in {"id", "head"} & receipt.keys():
        _read_value(str, receipt[name], f"receipt.{name}")
    _parse_guard_counts(receipt)
    if "joined" in receipt:
        read_record(SecondTable, receipt["joined"], "receipt.joined")


def _parse_guard_counts(receipt: Mapping[str, Any]) -> GuardCounts | None:
    """Return the guard's noisy counts from a receipt; None without a guard."""
    facts = {
        name.removeprefix("guard_"): value
        for name, value in receipt.items()
        if name.startswith("guard_")
    }
    if facts:
        return read_record(GuardCounts, facts, "the guard of receipt")
    return None


_Record = TypeVar("_Record")
_MARKDOWN_CHARACTERS = re.compile(r"([\\`*\[\]])")


def escape_markdown(text: str) -> str:
    """Return a text as one line of Markdown that displays it unchanged.

    >>> escape_markdown("a <b> & c")
    'a &lt;b&gt; &amp; c'
    """
    return _MARKDOWN_CHARACTERS.sub(r"\\\1", escape(" ".join(text.split()), quote=False))


def escape_manifest(value: Any) -> Any:
    """Return a manifest or a value of it with its texts as Markdown.

    The texts of the options stay as they are.
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


def read_record(kind: type[_Record], value: object, place: str = "") -> _Record:
    """Read a JSON object as a dataclass, ignoring unknown entries.

    Args:
        kind: a dataclass with fields of the types that `_read_value` knows.
        value: the object.
        place: its place in the file, for messages.
    """
    if not isinstance(value, Mapping):
        raise refuse(place or "the whole", value, "an object with names and values")
    types = get_type_hints(kind)
    entries = {}
    for record_field in fields(kind):  # type: ignore[arg-type] # a dataclass, which has no type of its own
        if place:
            name = f"{place}.{record_field.name}"
        else:
            name = record_field.name
        if record_field.name in value:
            entries[record_field.name] = _read_value(
                types[record_field.name], value[record_field.name], name
            )
        elif record_field.default is MISSING and record_field.default_factory is MISSING:
            raise InputError(f"{name} is missing. Use an intact copy.")
    return kind(**entries)


def _read_value(kind: Any, value: Any, place: str) -> Any:
    """Read a JSON value as a scalar, union, tuple, mapping or dataclass."""
    if kind is Any:
        return value
    if isinstance(kind, UnionType):
        return _read_union(kind, value, place)
    if kind is Options:
        return _read_options(value)
    if is_dataclass(kind):
        return read_record(kind, value, place)  # type: ignore[arg-type] # a class
    if get_origin(kind) is tuple:
        return _read_tuple(get_args(kind)[0], value, place)
    if get_origin(kind) is Mapping:
        return _read_mapping(get_args(kind)[1], value, place)
    return _SCALAR_READERS[kind](value, place)


def _read_union(kind: UnionType, value: Any, place: str) -> Any:
    """Read a JSON value as a member of a union.

    None and texts stay if the union has them; other values are read as its other member.
    """
    members = get_args(kind)
    if type(value) in members and type(value) in (NoneType, str):
        if isinstance(value, str):
            return _read_value(str, value, place)
        return None
    others = [member for member in members if member not in (NoneType, str)]
    return _read_value(others[0] if others else str, value, place)


def _read_tuple(kind: Any, value: Any, place: str) -> tuple[Any, ...]:
    """Return a tuple of typed values from a JSON list."""
    if not isinstance(value, list):
        raise refuse(place, value, "a list")
    return tuple(
        _read_value(kind, entry, f"{place}[{number}]") for number, entry in enumerate(value)
    )


def _read_mapping(kind: Any, value: Any, place: str) -> Mapping[str, Any]:
    """Return a mapping with typed values from a JSON object."""
    if not isinstance(value, Mapping):
        raise refuse(place, value, "an object with names and values")
    return {name: _read_value(kind, entry, f"{place}.{name}") for name, entry in value.items()}


def _read_text(value: Any, place: str) -> str:
    """Return a JSON value that must be a valid text."""
    if not isinstance(value, str) or value != value.encode("utf-8", "replace").decode("utf-8"):
        raise refuse(place, value, "a text")
    return value


def _read_truth(value: Any, place: str) -> bool:
    """Return a JSON value that must be true or false."""
    if not isinstance(value, bool):
        raise refuse(place, value, "true or false")
    return value


def _read_whole(value: Any, place: str) -> int:
    """Return a JSON value that must be an integer."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST_WHOLE:
        raise refuse(place, value, f"a whole number of at most {_LARGEST_WHOLE} in size")
    return value


def _read_number(value: Any, place: str) -> float:
    """Return a JSON value that must be a finite number, as a float."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) <= _LARGEST_NUMBER or math.isnan(value):
        raise refuse(place, value, f"a number of at most {_LARGEST_NUMBER:g} in size")
    return float(value)


def _read_day(value: Any, place: str) -> dt.date:
    """Return the date of an ISO text in JSON."""
    try:
        return dt.date.fromisoformat(_read_text(value, place))
    except ValueError:
        raise refuse(place, value, "a day such as '2026-01-31'") from None


_SCALAR_READERS = {
    str: _read_text,
    bool: _read_truth,
    int: _read_whole,
    float: _read_number,
    dt.date: _read_day,
}


def _read_options(value: Any) -> Options:
    """Read the result of `Options.to_json`; raise for unknown names."""
    option_names = {option.name for option in fields(Options)}
    if not isinstance(value, Mapping) or not {*value} <= option_names:
        raise refuse("options", value, "an object with some of " + ", ".join(sorted(option_names)))
    return Options(**value)
