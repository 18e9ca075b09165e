"""Where a spec says the data are, how they are laid out, which table is joined to them, and what their columns suggest for a draft."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leastnoise._adapters import CSV, DatabaseTable, Joined, check_unit
from leastnoise._check import InputError, refuse
from leastnoise._domain import known_keys

PERSON = re.compile(
    r"(^|[\W_])(person|patient|customer|client|user|member|employee|respondent|subject|student|household|account|kunde?|kundin|mitglied|nutzer"
    r"|mitarbeiter|versichert|teilnehmer|proband|haushalt|konto)(e?n|s)?[\W_]*(id|nr|nummer|number|no|num|code|key|uuid|guid)\.?\s*$"
    r"|^\s*(person|patient|customer|respondent|kunde|kundin)\s*$",
    flags=re.IGNORECASE,
)
"""Names of columns that say which person a row is of."""
IDENTIFIER = re.compile(rf"(?i:{PERSON.pattern}|(^|[\W_])(id|uuid|guid|key)\s*$)|[a-z]I[Dd]\s*$")
"""Names of columns that say which person, thing or row it is."""
PLACE = ("path", "table", "connection")
LAYOUT = ("delimiter", "encoding", "header")
_JOIN = ("on", "columns", "public")
_WHERE = "[source.join]"


def text_of(name: str, value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise refuse(name, value, "a text that is not empty")
    return value


def file_of(folder: Path, value: object, name: str) -> Path | None:
    """The file that a spec names; None if it names none."""
    return None if value is None else folder / text_of(name, value)


def place_of(folder: Path, said: Mapping[str, Any], where: str) -> tuple[Path | None, DatabaseTable | None]:
    """The files or the table of a database that are named; neither if nothing is."""
    data = file_of(folder, said.get("path"), f"{where} path")
    given = [key for key in ("table", "connection") if key in said]
    if given and (given != ["table", "connection"] or "path" in said):
        raise InputError(
            f'{where} must have path, or table and connection. A connection is "env:" and the name of an environment variable.'
        )
    return data, DatabaseTable(said["table"], said["connection"]) if given else None


def layout_of(said: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is said of CSV files, checked."""
    layout = {key: said[key] for key in LAYOUT if key in said}
    with within(f"{where}: "):
        CSV("data.csv", **layout)
    return layout


def joined_with(folder: Path, first: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a second table, checked, as the arguments of `Joined`; empty if there is none."""
    if "join" not in first:
        return {}
    said = known_keys(_WHERE, first["join"], [*PLACE, *LAYOUT, *_JOIN])
    if "table" in said and "connection" in first:
        said.setdefault("connection", first["connection"])
    data, stored = place_of(folder, said, _WHERE)
    if (data is None and stored is None) or "on" not in said:
        raise InputError(f'{_WHERE} must name a table and what both have, such as path = "patients.csv" and on = "patient_id".')
    layout = layout_of(said, _WHERE)
    second: Any = CSV(data, **layout) if layout and data is not None else stored or data
    join = {"second": second, **{key: said[key] for key in _JOIN if key in said}}
    with within(f"{_WHERE}: "):
        Joined(file_of(folder, first.get("path"), "[source] path"), **join)
    return join


def path_of(data: object) -> Path | None:
    """The path of files, or None."""
    data = data.path if isinstance(data, CSV) else data
    return Path(data) if isinstance(data, (str, Path)) else None


def check_join(join: Mapping[str, Any], unit_column: str | None) -> None:
    """Refuse, before any data are there, a unit that rows of the second table need not belong to."""
    if join:
        with within(f"{_WHERE}: "):
            check_unit(Joined(None, **join), unit_column)


@contextmanager
def within(part: str) -> Iterator[None]:
    """Messages begin with the part of the spec that they are about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{part}{error}") from None


UNTYPED = "unknown"  # the type of a column of a CSV file, whose kind is guessed from its name alone
_WHOLE_NAME = re.compile(
    r"(^|[_\-. ])(age|alter|year|jahr|anzahl|hours|days|weeks|children|rooms|persons|number|num|count)([_\-. ]|$)", flags=re.ASCII
)
_NUMBER_NAME = re.compile(
    r"income|salary|wage|(^|_)pay($|_)|price|amount|cost|rent|height|weight|balance|loss$|gain$|rate$|umsatz|betrag|preis|gehalt|einkommen",
    flags=re.ASCII,
)
_DATE_NAME = re.compile(
    r"(^|[_\-. ])(date|day|datum|time|timestamp|zeit|born|bought|ordered|created|updated)([_\-. ]|$)|_(at|on)$|datum$", flags=re.ASCII
)


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the data: ``kind`` is text, whole, number, date or truth, or empty where ``unusable`` says why it cannot be published."""

    name: str
    attribute: str
    typed: bool
    kind: str
    unusable: str = ""
    names_person: bool = False


def source_columns(columns: Iterable[tuple[str, str]]) -> tuple[SourceColumn, ...]:
    """What names and types suggest of each column."""
    listed = list(columns)
    names = [name for name, _ in listed]
    found = [_column(name, written, names) for name, written in listed]
    readable = [column.name for column in found if names.count(column.name) == 1 and column.name.isprintable()]
    naming = [name for name in readable if PERSON.search(name)] or [name for name in readable if IDENTIFIER.search(name)][:1]
    return tuple(
        SourceColumn(column.name, column.attribute, column.typed, column.kind, column.unusable, column.name in naming) for column in found
    )


def _column(name: str, written: str, names: list[str]) -> SourceColumn:
    bare = name.strip()  # tables are called by the name without blanks around it, if no other column has that
    attribute = name if bare in {"", *names} else bare
    kind, unusable = _kind(name, written), ""
    if names.count(name) > 1:
        unusable = "several columns are called so; give them names of their own"
    elif not name or not name.isprintable():
        unusable = "its name is empty or has control characters; rename it"
    elif not kind:
        unusable = f"of type {written}, which cannot be published"
    return SourceColumn(name, attribute, written != UNTYPED, "" if unusable else kind, unusable)


def _kind(column: str, written: str) -> str:
    """What a type of DuckDB is for us, or what a name suggests where there is no type."""
    if written == UNTYPED:
        if _DATE_NAME.search(column.lower()):
            return "date"
        return "whole" if _WHOLE_NAME.search(column.lower()) else "number" if _NUMBER_NAME.search(column.lower()) else "text"
    name = written.upper().split("(")[0].strip()
    if written.endswith("]"):
        return ""
    if name in {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}:
        return "whole"
    if name in {"FLOAT", "REAL", "DOUBLE", "DECIMAL", "NUMERIC"}:
        return "number"
    if name in {"VARCHAR", "ENUM", "TEXT", "CHAR", "STRING"}:
        return "text"
    return {"BOOLEAN": "truth", "DATE": "date"}.get(name, "date" if name.startswith("TIMESTAMP") else "")
